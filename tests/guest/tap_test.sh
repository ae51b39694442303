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
	local bytes=20000000 wire

	. "$(atf_get_srcdir)/tests.subr"
	setup
	wire=$(atf_get_srcdir)/wire
	network
	valed_start -s 1,e1000,tap0,path=vm1.sock,mac=$(mac 1) ||
	    atf_fail "valed does not start"
	tap_up tap0 10.0.0.9/24
	vm_valed vm1
	vm_wait vm1 || wrong "vm1 does not start"
	up 1
	pings vm1 10.0.0.9

	$ns "$wire" tcp-recv 5001 > recv 2>&1 < /dev/null &
	on vm1 "wire tcp-send 10.0.0.9 5001 $bytes"
	wait_until "the stream" grep bytes recv
	grep -q "^bytes $bytes bad 0 " recv ||
	    wrong "the host received other data: $(cat recv)"
	some tap0 tx_uncut

	on vm1 "rm -f /tmp/recv
	    wire tcp-recv 5001 > /tmp/recv 2>&1 < /dev/null &"
	$ns "$wire" tcp-send 10.0.0.1 5001 $bytes
	on vm1 "wait_word bytes /tmp/recv" > recv
	grep -q "^bytes $bytes bad 0 " recv ||
	    wrong "vm1 received other data: $(cat recv)"
	some tap0 rx_cut

	no_checksum_errors vm1
	$ns cat /proc/net/snmp > snmp.host
	awk '/^Tcp: [0-9]/ { exit $NF != 0 }' snmp.host ||
	    wrong "the host: $(grep Tcp: snmp.host | tail -n 1)"
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
