# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

. "$(atf_get_srcdir)/valed.subr"

seconds=${SOAK_SECONDS:-10}

test_case guests "Guests of one valed send, are reset, are killed and return: \
all frames are accounted for, and memory does not grow" require.progs python3
guests_body()
{
	local plain=$(cd "$(atf_get_srcdir)/../../../build" 2>/dev/null && pwd)

	VALED=$(atf_get_srcdir)/../../usr.sbin/valed/valed
	QEMU=$plain/deps/bin/qemu-system-x86_64
	MICRO=$plain/tests/guest/micro/micro
	export VALED QEMU MICRO
	PYTHONDONTWRITEBYTECODE=1 python3 "$(atf_get_srcdir)/soak.py" \
	    "$seconds" || atf_fail "soak.py"
}

test_case control "Rogue clients of the control socket, of two users, and a \
rogue guest withdraw and scribble on memory, while the switch changes and \
valed reloads: others are served, nothing is left" \
    require.progs python3 require.user root
control_body()
{
	VALED=$(atf_get_srcdir)/../../usr.sbin/valed/valed
	export VALED
	PYTHONDONTWRITEBYTECODE=1 python3 \
	    "$(atf_get_srcdir)/soak_control.py" "${SOAK_SECONDS:-8}" ||
	    atf_fail "soak_control.py"
}
