# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Linux's driver and its own tests of the adapter; the driver is loaded and
# unloaded.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"

# self_test offline|online: vm1's driver tests the adapter, successfully.
self_test()
{
	wait_until "a loopback test in time" self_test_once "$1"
	cat result
	grep -q 'result is PASS' result ||
	    atf_fail "ethtool -t: $(tr '\n' ' ' < result)"
}

# The driver's loopback test waits 200 ms for 64 frames, and counts ticks while
# it checks them.  It returns 13 if one is missing or wrong, and 14, with all
# frames good, if the guest did not run for two ticks.  On a busy machine
# neither is a result: a frame that is wrong stays wrong.
self_test_once()
{
	vm vm1 "ethtool -t eth0 $1" > result 2>&1
	cat result
	! grep -q 'Loopback.*[[:space:]]1[34]$' result
}

guest_case ethtool "ethtool -t passes: registers, EEPROM, interrupt, loopback, \
link"
ethtool_body()
{
	guests 2
	up 1 2
	self_test offline
	self_test online
	# The adapter still works.
	on vm1 carrier eth0
	pings vm2 10.0.0.1
	finish
}

guest_case identity "The driver finds the MAC address of mac= and a gigabit \
link"
identity_body()
{
	guests 1
	up 1
	on vm1 cat /sys/class/net/eth0/address > address
	atf_check -o inline:"$(mac 1)\n" cat address
	on vm1 ethtool eth0 > link
	atf_check -o ignore grep 'Speed: 1000Mb/s' link
	atf_check -o ignore grep 'Duplex: Full' link
	atf_check -o ignore grep 'Link detected: yes' link
	on vm1 ethtool -i eth0 > driver
	atf_check -o ignore grep '^driver: e1000$' driver
	on vm1 ethtool -d eth0 > registers
	atf_check -o ignore grep CTRL registers
	on vm1 "dmesg | grep -i e1000" > dmesg
	atf_check -s exit:1 grep -i -e fail -e error -e hang -e invalid dmesg
	finish
}

guest_case reload "The driver is unloaded and loaded again under load"
reload_body()
{
	local i

	guests 3
	up 1 2 3
	# vm1 sends to vm2 without a pause, and to vm3 while the switch has not
	# learned vm2's address.
	on vm1 "pktgen_setup $(mac 2) 10.0.0.2 60; pktgen_start"
	for i in 0 1 3; do
		on vm2 "rmmod e1000 && up 2 InterruptThrottleRate=$i"
	done
	on vm1 pktgen_stop
	pings vm2 10.0.0.3
	pings vm3 10.0.0.1
	# And while vm2 itself sends.
	for i in 1 2; do
		on vm2 "wire udp-send 10.0.0.3 9 1000 1000000 > /dev/null 2>&1 &
		    wait_sent 100
		    ip link set eth0 down; rmmod e1000; kill %1; up 2"
	done
	pings vm2 10.0.0.3
	pings vm1 10.0.0.2
	transfer vm3 vm2 10.0.0.2 5000000
	finish
}
