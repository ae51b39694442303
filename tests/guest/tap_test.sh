# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# A stock guest and its host, through a TAP interface in a network namespace.

atf_test_case tcp cleanup
tcp_head()
{
	atf_set descr "TCP passes uncut to the host, and is cut for the guest"
	atf_set require.progs "unshare nsenter"
	atf_set timeout 3600
}
tcp_body()
{
	. "$(atf_get_srcdir)/tests.subr"
	tap_guest
	tcp_streams "$ns" 10.0.0.9 10.0.0.1 20000000
	some tap0 tx_uncut
	some tap0 rx_cut
	finish
}
tcp_cleanup()
{
	. "$(atf_get_srcdir)/tests.subr"
	setup
	stop_all
}

atf_init_test_cases()
{
	atf_add_test_case tcp
}
