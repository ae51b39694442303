# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

. "$(atf_get_srcdir)/cases.subr"

test_case ports "Ports are created and destroyed while others send: frames \
arrive intact and in order, counters add up, memory does not grow"
ports_body()
{
	atf_check -o save:out "$(atf_get_srcdir)/soak_ports" \
	    "${SOAK_SECONDS:-10}"
	cat out
}
