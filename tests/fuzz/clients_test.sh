# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# A short run of clients_fuzz; with each sanitizer in its build.

. "$(atf_get_srcdir)/cases.subr"

test_case seeds "Clients that write to memory while they withdraw it"
seeds_body()
{
	atf_check -o save:out -e ignore "$(atf_get_srcdir)/clients_fuzz" \
	    -n 1000 -r 2
	cat out
	# Of each kind of traffic there was some.
	grep -q ' [1-9][0-9]* frames direct, [1-9][0-9]* through a ring' out ||
	    atf_fail 'no frames'
	grep -q ' [1-9][0-9]* holes, [1-9][0-9]* changes of the switch' out ||
	    atf_fail 'no holes, or no changes'
}
