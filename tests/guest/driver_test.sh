# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Linux's drivers and their own tests of the adapter; a driver is loaded and
# unloaded.

DRIVERS="e1000 e1000e e1000"
. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"

# self_test GUEST offline|online: its driver tests the adapter, successfully.
self_test()
{
	wait_until "a loopback test in time" self_test_once "$@"
	cat result
	grep -q 'result is PASS' result ||
	    atf_fail "$1: ethtool -t: $(tr '\n' ' ' < result)"
}

# The driver's loopback test waits 200 ms for 64 frames, and counts ticks while
# it checks them.  It returns 13 if one is missing or wrong, and 14, with all
# frames good, if the guest did not run for two ticks.  On a busy machine
# neither is a result: a frame that is wrong stays wrong.
self_test_once()
{
	vm "$1" "ethtool -t eth0 $2" > result 2>&1
	cat result
	! grep -q 'Loopback.*[[:space:]]1[34]$' result
}

guest_case ethtool "ethtool -t passes: registers, EEPROM, interrupt, loopback, \
link"
ethtool_body()
{
	local i

	guests 2
	up 1 2
	for i in 1 2; do
		self_test vm$i offline
		self_test vm$i online
		# The adapter still works.
		on vm$i carrier eth0
		pings vm$i 10.0.0.$((3 - i))
	done
	finish
}

guest_case identity "The driver finds the MAC address of mac= and a gigabit \
link"
identity_body()
{
	guests 2
	up 1 2
	identity 1 e1000
	identity 2 e1000e
	finish
}

# identity N DRIVER: of the Nth guest, with that driver.
identity()
{
	on "vm$1" cat /sys/class/net/eth0/address > address
	atf_check -o inline:"$(mac "$1")\n" cat address
	on "vm$1" ethtool eth0 > link
	atf_check -o ignore grep 'Speed: 1000Mb/s' link
	atf_check -o ignore grep 'Duplex: Full' link
	atf_check -o ignore grep 'Link detected: yes' link
	on "vm$1" ethtool -i eth0 > driver
	atf_check -o ignore grep "^driver: $2\$" driver
	on "vm$1" ethtool -d eth0 > registers
	atf_check -o ignore grep CTRL registers
	on "vm$1" "dmesg | grep -i e1000" > dmesg
	atf_check -s exit:1 grep -i -e fail -e error -e hang -e invalid dmesg
}

guest_case reload "The driver is unloaded and loaded again under load"
reload_body()
{
	guests 3
	up 1 2 3
	reload vm1 2 3
	reload vm2 1 3
	finish
}

# reload FROM N OTHER: the Nth guest's driver is unloaded and loaded, while it
# receives, then while it sends to the other.
reload()
{
	local from=$1 i other=$3 to=$2

	# Without a pause, and to the other, too, while the switch has not
	# learned the address.
	on "$from" "pktgen_setup $(mac "$to") 10.0.0.$to 60; pktgen_start"
	for i in 0 1 3; do
		on "vm$to" "rmmod \$DRIVER && up $to InterruptThrottleRate=$i"
	done
	on "$from" pktgen_stop
	pings "vm$to" "10.0.0.$other"
	for i in 1 2; do
		on "vm$to" "wire udp-send 10.0.0.$other 9 1000 1000000 \
		    > /dev/null 2>&1 &
		    wait_sent 100
		    ip link set eth0 down; rmmod \$DRIVER; kill %1; up $to"
	done
	pings "vm$to" "10.0.0.$other"
	pings "$from" "10.0.0.$to"
	transfer "vm$other" "vm$to" "10.0.0.$to" 5000000
}
