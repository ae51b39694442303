# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Guests are reset and killed, and start again, while others send.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"

guest_case reset "A guest is reset while it receives and while it sends"
reset_body()
{
	guests 3
	up 1 2 3
	# vm2 is reset while it receives, then while it sends.
	on vm1 "pktgen_setup $(mac 2) 10.0.0.2 60; pktgen_start"
	reboot vm2
	up 2
	on vm1 pktgen_stop
	pings vm2 10.0.0.3
	on vm2 "pktgen_setup $(mac 3) 10.0.0.3 1500; pktgen_start"
	reboot vm2
	up 2
	pings vm2 10.0.0.3
	pings vm1 10.0.0.2
	transfer vm1 vm3 10.0.0.3 5000000
	some vm2 resets
	[ "$(counter vm2 disconnects)" -eq 0 ] ||
	    atf_fail "QEMU lost its connection"
	finish
}

# reboot GUEST: resets a guest without shutting the driver down, and waits until
# it has started again: the driver is not loaded then.  A command that the reset
# interrupts is not answered, and is repeated after 20 s.
reboot()
{
	wait_until "$1 without a driver" without_driver "$1" ||
	    atf_fail "$1 is not reset"
}

# without_driver GUEST: whether it has no driver; else resets it.
without_driver()
{
	"$GCTL" -w -t 20 "$1.ctl" 'test ! -d /sys/class/net/eth0 || {
		{ sleep 0.2; echo b > /proc/sysrq-trigger; } \
		    < /dev/null > /dev/null 2>&1 &
		false
	    }' && return
	# Unless the machine is busy, no command is interrupted.
	sleep 1
	return 1
}

guest_case killed "A guest is killed under load; others are not affected"
killed_body()
{
	local i

	guests 3
	up 1 2 3
	for i in 1 2; do
		# vm1 sends to vm2, which checks every byte.
		on vm2 "rm -f /tmp/recv; wire tcp-recv 5001 > /tmp/recv 2>&1 \
		    < /dev/null &"
		on vm1 "rm -f /tmp/send; wire tcp-send 10.0.0.2 5001 30000000 \
		    > /tmp/send 2>&1 < /dev/null &"
		# vm3 sends to both, and is killed.
		on vm3 "pktgen_setup ff:ff:ff:ff:ff:ff 10.0.0.255 60
		    pktgen_start; wait_sent 1000"
		vm_kill vm3
		vm_alive valed || atf_fail "valed is gone"
		on vm1 wait_word bytes /tmp/send
		on vm2 wait_word bytes /tmp/recv > recv
		grep -q '^bytes 30000000 bad 0 ' recv ||
		    atf_fail "vm1 to vm2: $(cat recv)"
		# It starts again on the same socket.
		vm_valed vm3
		vm_wait vm3 || atf_fail "vm3 does not start again"
		up 3
		pings vm3 10.0.0.1
		pings vm2 10.0.0.3
	done
	valed_counters
	[ "$(counter vm3 connects)" -eq 3 ] || atf_fail "vm3 connected" \
	    "$(counter vm3 connects) times"
	[ "$(counter vm1 disconnects)" -eq 0 ] || atf_fail "vm1 was cut off"
	[ "$(counter vm2 disconnects)" -eq 0 ] || atf_fail "vm2 was cut off"
	finish
}

guest_case receiver_killed "A guest is killed while it receives, and starts \
again"
receiver_killed_body()
{
	guests 2
	up 1 2
	on vm1 "pktgen_setup $(mac 2) 10.0.0.2 1500; pktgen_start
	    wait_sent 1000"
	vm_kill vm2
	# More than fit into vm2's ring.
	on vm1 wait_sent 5000
	vm_valed vm2
	vm_wait vm2 || atf_fail "vm2 does not start again"
	up 2
	on vm1 pktgen_stop
	pings vm1 10.0.0.2
	transfer vm1 vm2 10.0.0.2 5000000
	finish
}

guest_case stopped "A guest that is stopped does not delay others"
stopped_body()
{
	guests 3
	up 1 2 3
	pings vm1 10.0.0.3
	# A thousand broadcasts a second: they fill vm3's ring, and leave room in
	# vm2's for the acknowledgements of TCP on a busy machine, too.
	on vm1 "pktgen_setup ff:ff:ff:ff:ff:ff 10.0.0.255 60
	    pg eth0 'delay 1000000'; pktgen_start"
	kill -STOP "$(cat vm3.pid)"
	wait_until "a full ring" drops vm3 || atf_fail "vm3's ring is not full"
	transfer vm2 vm1 10.0.0.1 3000000
	kill -CONT "$(cat vm3.pid)"
	on vm1 pktgen_stop
	pings vm3 10.0.0.1
	pings vm2 10.0.0.3
	finish
}
# drops GUEST: whether frames to the guest found its ring full.
drops()
{
	valed_counters && [ "$(counter "$1" port_rx_drop_full)" -gt 0 ]
}
stopped_clean()
{
	setup
	for f in vm3.pid; do
		[ ! -e "$f" ] || kill -CONT "$(cat "$f")" 2> /dev/null
	done
	stop_all
}
