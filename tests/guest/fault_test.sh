# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Guests that are reset, killed, and come back, while others go on.

atf_test_case reset cleanup
reset_head()
{
	atf_set descr "A guest is reset under load, sending and receiving"
	atf_set timeout 900
}
reset_body()
{
	. "$(atf_get_srcdir)/tests.subr"
	guests 3
	up 1 2 3
	# vm2 is reset while frames pour in, then while it pours them out.
	on vm1 "pktgen_setup $(mac 2) 10.0.0.2 60; pktgen_start"
	reboot vm2
	up 2
	on vm1 pktgen_stop
	hears vm2 10.0.0.3
	on vm2 "pktgen_setup $(mac 3) 10.0.0.3 1500; pktgen_start"
	reboot vm2
	up 2
	hears vm2 10.0.0.3
	hears vm1 10.0.0.2
	transfer vm1 vm3 10.0.0.3 5000000
	some vm2 resets
	[ "$(counter vm2 disconnects)" -eq 0 ] ||
	    atf_fail "QEMU lost its connection"
	finish
}
reset_cleanup()
{
	. "$(atf_get_srcdir)/tests.subr"
	setup
	stop_all
}

# reboot GUEST: as by its reset button, without a word to the driver, which is
# what tells the guest of before from that of after.
reboot()
{
	local i

	on "$1" '{ sleep 0.2; echo b > /proc/sysrq-trigger; } \
	    < /dev/null > /dev/null 2>&1 &'
	for i in $(seq 20); do
		sleep 2
		vm_wait "$1" || atf_fail "$1 does not start again"
		! vm -t 20 "$1" test ! -d /sys/class/net/eth0 || return 0
	done
	atf_fail "$1 is not reset"
}

atf_test_case killed cleanup
killed_head()
{
	atf_set descr "A guest is killed under load; the others do not notice"
	atf_set timeout 900
}
killed_body()
{
	local i

	. "$(atf_get_srcdir)/tests.subr"
	guests 3
	up 1 2 3
	for i in 1 2; do
		# vm1 and vm2 talk to each other and check every byte.
		on vm2 "rm -f /tmp/recv; wire tcp-recv 5001 > /tmp/recv 2>&1 < /dev/null &"
		on vm1 "rm -f /tmp/send; wire tcp-send 10.0.0.2 5001 30000000 \
		    > /tmp/send 2>&1 < /dev/null &"
		# vm3 sends to both and is shot.
		on vm3 "pktgen_setup ff:ff:ff:ff:ff:ff 10.0.0.255 60
		    pktgen_start; sleep 0.5"
		vm_kill vm3
		vm_alive valed || atf_fail "valed is gone"
		on vm1 said bytes /tmp/send
		on vm2 said bytes /tmp/recv > recv
		grep -q '^bytes 30000000 bad 0 ' recv ||
		    atf_fail "the others did notice: $(cat recv)"
		# It comes back on the same socket.
		vm_valed vm3
		vm_wait vm3 || atf_fail "vm3 does not start again"
		up 3
		hears vm3 10.0.0.1
		hears vm2 10.0.0.3
	done
	valed_counters
	[ "$(counter vm3 connects)" -eq 3 ] || atf_fail "vm3 connected" \
	    "$(counter vm3 connects) times"
	[ "$(counter vm1 disconnects)" -eq 0 ] || atf_fail "vm1 was cut off"
	[ "$(counter vm2 disconnects)" -eq 0 ] || atf_fail "vm2 was cut off"
	finish
}
killed_cleanup()
{
	. "$(atf_get_srcdir)/tests.subr"
	setup
	stop_all
}

atf_test_case receiver_killed cleanup
receiver_killed_head()
{
	atf_set descr "A guest that is being sent to is killed, and comes back"
	atf_set timeout 900
}
receiver_killed_body()
{
	. "$(atf_get_srcdir)/tests.subr"
	guests 2
	up 1 2
	on vm1 "pktgen_setup $(mac 2) 10.0.0.2 1500; pktgen_start; sleep 0.5"
	vm_kill vm2
	on vm1 "sleep 1; a=\$(stat tx_packets); sleep 1
	    [ \$(stat tx_packets) -gt \$a ]"
	vm_valed vm2
	vm_wait vm2 || atf_fail "vm2 does not start again"
	up 2
	on vm1 pktgen_stop
	hears vm1 10.0.0.2
	transfer vm1 vm2 10.0.0.2 5000000
	finish
}
receiver_killed_cleanup()
{
	. "$(atf_get_srcdir)/tests.subr"
	setup
	stop_all
}

atf_test_case stopped cleanup
stopped_head()
{
	atf_set descr "A guest that stands still holds nobody else up"
	atf_set timeout 900
}
stopped_body()
{
	. "$(atf_get_srcdir)/tests.subr"
	guests 3
	up 1 2 3
	hears vm1 10.0.0.3
	on vm1 "pktgen_setup ff:ff:ff:ff:ff:ff 10.0.0.255 60; pktgen_start"
	kill -STOP "$(cat vm3.pid)"
	transfer vm2 vm1 10.0.0.1 3000000
	kill -CONT "$(cat vm3.pid)"
	on vm1 pktgen_stop
	hears vm3 10.0.0.1
	hears vm2 10.0.0.3
	finish
}
stopped_cleanup()
{
	. "$(atf_get_srcdir)/tests.subr"
	setup
	for f in vm3.pid; do
		[ ! -e "$f" ] || kill -CONT "$(cat "$f")" 2> /dev/null
	done
	stop_all
}

atf_init_test_cases()
{
	atf_add_test_case reset
	atf_add_test_case killed
	atf_add_test_case receiver_killed
	atf_add_test_case stopped
}
