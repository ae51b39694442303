# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Stock guests and their host, through a TAP interface in a network namespace.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"

guest_case tcp "TCP passes uncut to the host, and is cut for the guest" \
    require.progs "unshare nsenter"
tcp_body()
{
	tap_tcp
}

guest_case e1000e "The same with the 82574L" require.progs "unshare nsenter"
e1000e_body()
{
	DRIVER=e1000e
	tap_tcp
}

tap_tcp()
{
	tap_guest
	tcp_streams "$ns" 10.0.0.9 10.0.0.1 20000000
	some tap0 tx_uncut
	some tap0 rx_cut
	finish
}
