# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Memory that a kernel takes away from valed: what only happens to a whole
# machine, so it happens to a guest.  lost_page.c has the steps.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"

# lost ARGUMENT [COMMAND]: starts a guest, runs the command and lost_page in it.
lost()
{
	local status

	setup
	vm_start vm1
	vm_wait vm1 || {
		cat vm1.qemu vm1.log
		atf_fail "vm1 does not start"
	}
	vm vm1 "${2:-true}; lost_page $1" > out
	status=$?
	cat out
	[ $status -ne 77 ] || atf_skip "$(tail -n 1 out)"
	[ $status -eq 0 ] || {
		tail -n 20 vm1.log
		atf_fail "lost_page $1: status $status"
	}
}

guest_case poisoned "Pages with a memory error are lost when accessed"
poisoned_body()
{
	lost poison
	grep '^2 lost' out || atf_fail "other pages are lost"
	grep -c 'Memory failure: .*Recovered' vm1.log
}

guest_case poisoned_early "The same, if the kernel tells of errors early"
poisoned_early_body()
{
	lost poison 'sysctl -w vm.memory_failure_early_kill=1'
	grep '^2 lost' out || atf_fail "other pages are lost"
}

guest_case overcommit "A hole that vm.overcommit_memory=2 keeps from being \
filled"
overcommit_body()
{
	lost overcommit
	grep '^1 lost' out || atf_fail "other pages are lost"
}
