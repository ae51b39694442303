# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Guests are reset, killed and stopped, and start again, while others send.  Each
# guest has another adapter and driver.

DRIVERS="e1000 e1000e lem,csb=on"
. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"

guest_case reset "A guest is reset while it receives and sends"
reset_body()
{
	guests 3
	up 1 2 3
	each_pair reset_by
	finish
}

# reset_by FROM N: the Nth guest is reset, while it receives from one guest and
# sends to the other.
reset_by()
{
	local from=$1 other to=$2

	other=$(next "$2")
	on "$from" "pktgen_setup $(mac "$to") 10.0.0.$to 60; pktgen_start"
	on "vm$to" "pktgen_setup $(mac "$other") 10.0.0.$other 1500
	    pktgen_start"
	reboot "vm$to"
	up "$to"
	on "$from" pktgen_stop
	pings "vm$to" "10.0.0.$other"
	pings "$from" "10.0.0.$to"
	transfer "vm$to" "vm$other" "10.0.0.$other" 3000000
	some "vm$to" resets
	[ "$(counter "vm$to" disconnects)" -eq 0 ] ||
	    atf_fail "QEMU lost its connection"
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
	guests 3
	up 1 2 3
	each_pair killed_beside
	for i in 1 2 3; do
		[ "$(counter vm$i connects)" -eq 2 ] || atf_fail \
		    "vm$i connected $(counter vm$i connects) times"
	done
	finish
}

# killed_beside FROM N: the guest that is neither is killed.
killed_beside()
{
	local from=$1 to=$2 victim

	victim=$(next "$2")
	# One sends to the other, which checks every byte.
	on "vm$to" "rm -f /tmp/recv; wire tcp-recv 5001 > /tmp/recv 2>&1 \
	    < /dev/null &"
	on "$from" "rm -f /tmp/send; wire tcp-send 10.0.0.$to 5001 20000000 \
	    > /tmp/send 2>&1 < /dev/null &"
	# The third sends to both.
	on "vm$victim" "pktgen_setup ff:ff:ff:ff:ff:ff 10.0.0.255 60
	    pktgen_start; wait_sent 1000"
	vm_kill "vm$victim"
	vm_alive valed || atf_fail "valed is gone"
	on "$from" wait_word bytes /tmp/send
	on "vm$to" wait_word bytes /tmp/recv > recv
	grep -q '^bytes 20000000 bad 0 ' recv ||
	    atf_fail "$from to vm$to: $(cat recv)"
	valed_counters
	killed_disconnects=$((${killed_disconnects:-0} + 1))
	[ "$(($(counter vm1 disconnects) + $(counter vm2 disconnects) +
	    $(counter vm3 disconnects)))" -eq $killed_disconnects ] ||
	    atf_fail "another guest was cut off"
	# It starts again on the same socket.
	start_again "$victim"
	pings "vm$victim" "10.0.0.$to"
	pings "$from" "10.0.0.$victim"
	valed_counters
}

# start_again N: starts the Nth guest after it was killed.
start_again()
{
	vm_valed "vm$1"
	vm_wait "vm$1" || atf_fail "vm$1 does not start again"
	up "$1"
}

guest_case receiver_killed "A guest is killed while it receives, and starts \
again"
receiver_killed_body()
{
	guests 3
	up 1 2 3
	each_pair receiver_killed_by
	finish
}

# receiver_killed_by FROM N: the Nth receives from the other one.
receiver_killed_by()
{
	on "$1" "pktgen_setup $(mac "$2") 10.0.0.$2 1500; pktgen_start
	    wait_sent 1000"
	vm_kill "vm$2"
	# More than fit into its ring.
	on "$1" wait_sent 5000
	start_again "$2"
	on "$1" pktgen_stop
	pings "$1" "10.0.0.$2"
	transfer "$1" "vm$2" "10.0.0.$2" 5000000
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
