# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Linux's driver lem(4): it starts and ends, with the adapter and without, under
# load, and if that fails; and is called from interrupts.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"
. "$(atf_get_srcdir)/lem.subr"

guest_case reload "Twenty times unloaded and loaded under flood"
reload_body()
{
	local n

	APPEND=slub_debug=FZPU
	lem_guests 3
	on vm1 "pktgen_setup $(mac 2) 10.0.0.2 60; pktgen_start"
	for n in $(seq 10); do
		on vm2 "rmmod lem && up 2 csb=$((n % 2))"
	done
	on vm1 pktgen_stop
	pings vm2 10.0.0.3
	# And while vm2 itself sends.
	for n in $(seq 10); do
		on vm2 "wire udp-send 10.0.0.3 9 1000 1000000 > /dev/null 2>&1 &
		    wait_sent 100
		    ip link set eth0 down; rmmod lem; kill %1
		    up 2 csb=$((n % 2)) sc=$((n % 3 / 2))"
	done
	pings vm2 10.0.0.3
	pings vm1 10.0.0.2
	transfer vm3 vm2 10.0.0.2 5000000
	clean vm2
	finish
}

# sends CSB: vm1 sends datagrams that nobody takes, with the CSB or without, and
# completions wait for the longest time, until "killall wire".  With the CSB no
# completion holds the sender up, and it pauses, so that the guest hears commands.
sends()
{
	local pause=0

	[ $1 = off ] || pause=100
	on vm1 "ethtool --set-priv-flags eth0 csb $1
	    ethtool -C eth0 rx-usecs 16776
	    arp -s 10.0.0.9 $(mac 9)
	    wire udp-send 10.0.0.9 9 1000 16000000 $pause > /dev/null 2>&1 &
	    wait_sent 100"
}

# fails FUNCTION VALUE N COMMAND: the command changes a setting of vm1, and fails
# with a function of the driver, whose next N calls do nothing but return the
# value.  The setting stays, and traffic goes on.
fails()
{
	on vm1 "n=\$(dmesg | grep -c 'cannot start')
	    settings > /tmp/before
	    trouble fail $1 $2 $3
	    if { $4; } > /dev/null 2>&1; then
	        echo 'it did not fail'
	        exit 1
	    fi
	    settings > /tmp/after
	    diff /tmp/before /tmp/after && carrier eth0 && wait_sent 1100 &&
	    grep '^0 ' /sys/module/trouble/parameters/fail &&
	    [ \$(dmesg | grep -c 'cannot start') -le \$((n + 1)) ]"
}

guest_case restarts "The rings are restarted under a sender, by all that does so, \
also if that fails"
restarts_body()
{
	lem_guests 2
	on vm1 "echo 0 > /sys/module/suspend/parameters/pm_test_delay
	    echo devices > /sys/power/pm_test"
	restarted off 1400 7 256 off
	# No packet completes.
	sends off
	on vm1 "trouble fail lem_tx_clean 0 1000000
	    wait_until 'a reset' eval 'dmesg | grep \"transmit timeout\"'
	    trouble fail lem_tx_clean 0 0
	    carrier eth0 && wait_sent 1100 && killall wire"
	is "watchdogs" "$(e vm1 watchdogs)" -ge 1
	restarted on 1500 1 1024 on
	sends on
	fails lem_buffers_alloc -12 3 "ip link set eth0 mtu 1400"
	fails lem_buffers_alloc -12 1 "ip link set eth0 address $(mac 7)"
	fails lem_buffers_alloc -12 1 "ethtool -G eth0 rx 256 tx 256"
	fails lem_buffers_alloc -12 1 "xdp eth0 pass"
	fails lem_buffers_alloc -12 1 "ethtool -K eth0 rx-gro-hw off"
	fails lem_set_itr 22 1 "ethtool -C eth0 rx-usecs 7"
	fails lem_set_mode 22 1 "ethtool --set-priv-flags eth0 sc off"
	fails lem_set_rounds 22 1 "echo 7 > /sys/class/net/eth0/lem/csb_rounds"
	on vm1 "killall wire"
	transfer vm2 vm1 10.0.0.1 2000000
	# The interface is down while the machine sleeps, and has another address.
	on vm1 "ip link set eth0 down && echo freeze > /sys/power/state &&
	    ip link set eth0 address $(mac 7) && ip link set eth0 up &&
	    carrier eth0"
	on vm2 "arp -d 10.0.0.1; true"
	pings vm2 10.0.0.1
	clean vm1
	finish
}

# restarted CSB MTU ADDRESS RING GRO: vm1's adapter is restarted while it sends,
# with each of these, by a test, and by suspend and resume; and gets another
# interval between interrupts.
restarted()
{
	local before step

	sends $1
	for step in "ip link set eth0 mtu $2" \
	    "ip link set eth0 address $(mac $3); arp -s 10.0.0.9 $(mac 9)" \
	    "ethtool -G eth0 rx $4 tx $4" "ethtool -K eth0 rx-gro-hw $5" \
	    "xdp eth0 pass" "xdp eth0 off" "ethtool -t eth0 offline" \
	    "echo freeze > /sys/power/state"; do
		before=$(a vm1 resets)
		on vm1 "$step && carrier eth0 && wait_sent 1100"
		is "$step: resets" "$(a vm1 resets)" -gt "$before"
	done
	on vm1 "ethtool -C eth0 rx-usecs 0 && wait_sent 1100 &&
	    ethtool -C eth0 rx-usecs 16776 && wait_sent 1100"
	on vm1 "killall wire"
	pings vm2 10.0.0.1
}

guest_case netpoll "Messages sent from hard interrupts (netconsole), and frames in \
a program's memory, stop or spoil nothing"
netpoll_body()
{
	local csb n

	lem_guests 2
	on vm1 "arp -s 10.0.0.9 $(mac 9)"
	for csb in off on; do
		on vm1 "ethtool --set-priv-flags eth0 csb $csb
		    pktgen_setup $(mac 9) 10.0.0.9 60 && pktgen_start &&
		    trouble netpoll '1000 @10.0.0.1/eth0,@10.0.0.2/$(mac 2)' &&
		    wait_messages 1000 && pktgen_stop"
		# Their polls receive nothing, and hold no interrupt.  Without the
		# CSB the adapter reports each message, for which NAPI polls.
		[ $csb = off ] || for n in lem_rx lem_intr_hold; do
			on vm1 "trouble fail $n 0 0 &&
			    wait_messages 1000 && calls" > calls
			is "$n" "$(cat calls)" -lt 500
		done
		# Each frame that comes causes an interrupt nevertheless.
		n=$(e vm1 interrupts)
		on vm2 "ping -q -c 10 -i 0.1 -W 60 10.0.0.1"
		is "interrupts" $(($(e vm1 interrupts) - n)) -ge 9
		on vm1 "trouble netpoll 0"
		packet_ring
	done
	clean vm1
	finish
}

# packet_ring: vm1 sends from memory of a program, which overwrites each frame as
# soon as the kernel reports it as sent, before lem has posted it.
packet_ring()
{
	on vm2 "rm -f /tmp/recv
	    wire udp-recv 5003 > /tmp/recv 2>&1 < /dev/null &
	    wait_port 5003"
	on vm1 "rm -f /tmp/ring
	    trouble fail lem_tx_flush 0 1000000
	    wire ring-send eth0 $(mac 2) 10.0.0.2 5003 1000 64 > /tmp/ring &
	    wait_word sent /tmp/ring
	    trouble fail lem_tx_flush 0 0
	    wait_word all /tmp/ring
	    wire udp-send 10.0.0.2 5003 60 0"
	on vm2 "wait_word good /tmp/recv" > recv
	grep "^good 64 bad 0 " recv || wrong "vm2 received: $(cat recv)"
}

# after_loss RUN COMMAND...: vm1 runs a command after its QEMU has lost the socket
# of an adapter.  At times QEMU 11 aborts then, for it sets an Error that is set
# (hw/vfio-user/proxy.c): the test case starts again with RUN, up to five times.
aborts=0
after_loss()
{
	local run=$1 status=0

	shift
	vm vm1 "$*" > vm1.out 2>&1 || status=$?
	cat vm1.out
	[ $status -ne 0 ] || return 0
	cat vm1.qemu
	aborts=$((aborts + 1))
	[ $aborts -le 5 ] && grep -q "error_setv: Assertion" vm1.qemu ||
	    atf_fail "vm1: $*: status $status"
	echo "QEMU aborted; again"
	stop_all
	$run
	atf_pass
}

# qmp_loss COMMAND: vm1's QEMU executes a command, or has ended.
qmp_loss()
{
	qmp vm1 "$1" || ! vm_alive vm1
}

guest_case unplug "The adapter is unplugged under load, and plugged again"
unplug_body()
{
	local dev n

	setup
	valed_start \
	    -s "1,e1000,vale0:vm1,path=vm1.sock,mac=$(mac 1),csb=on" \
	    -s "2,e1000,vale0:vm2,path=vm2.sock,mac=$(mac 2),csb=on" ||
	    atf_fail "valed does not start"
	dev=$(valed_device vm1 '"id":"nic","bus":"pci.0"')
	vm_start vm1 -qmp unix:vm1.qmp,server=on,wait=off -device "$dev"
	vm_valed vm2
	vm_wait vm1 vm2 || atf_fail "the guests do not start"
	up 1 2
	on vm2 "pktgen_setup $(mac 1) 10.0.0.1 60; pktgen_start"
	for n in 1 2; do
		on vm1 "wire udp-send 10.0.0.2 9 1000 1000000 > /dev/null 2>&1 &
		    wait_sent 100"
		qmp_loss '{"execute": "device_del",
		    "arguments": {"id": "nic"}}' || atf_fail "not unplugged"
		after_loss unplug_run "wait_until 'the end of eth0' \
		    eval '! [ -d /sys/class/net/eth0 ]'"
		# QEMU has let go of the socket when it takes the name again.
		wait_until "the adapter" qmp_loss "{\"execute\": \"device_add\",
		    \"arguments\": $dev}" || atf_fail "not plugged"
		after_loss unplug_run "wait_until eth0 [ -d /sys/class/net/eth0 ]
		    killall wire; address 1"
	done
	on vm2 pktgen_stop
	pings vm1 10.0.0.2
	transfer vm2 vm1 10.0.0.1 2000000
	clean vm1
	finish
}

guest_case kdump "A kernel started by a panic takes over the running adapter"
kdump_body()
{
	local kernel status

	setup
	# vm2 has the kernel and the initramfs as files.
	kernel=$(ls "${KERNEL%/*}"/boot/vmlinuz-*)
	mkdir crash
	cp "$kernel" crash/vmlinuz
	cp "$INITRAMFS" crash/initramfs
	{
		cat "$INITRAMFS"
		find crash | cpio -o -H newc --quiet
	} > initramfs
	rm -r crash
	valed_start \
	    -s "1,e1000,vale0:vm1,path=vm1.sock,mac=$(mac 1),csb=on" \
	    -s "2,e1000,vale0:vm2,path=vm2.sock,mac=$(mac 2),csb=on" ||
	    atf_fail "valed does not start"
	vm_valed vm1
	GUEST_MB=512 INITRAMFS=$PWD/initramfs APPEND=crashkernel=192M
	vm_valed vm2
	vm_wait vm1 vm2 || atf_fail "the guests do not start"
	up 1 2
	on vm2 "crash_kernel /crash/vmlinuz /crash/initramfs \
	    \"\$(sed 's/crashkernel=[^ ]*/reset_devices/' /proc/cmdline)\""
	pings vm1 10.0.0.2
	# Frames come in all the time.
	on vm1 "pktgen_setup $(mac 2) 10.0.0.2 60; pktgen_start"
	on vm2 "{ sleep 1; echo c > /proc/sysrq-trigger; } \
	    < /dev/null > /dev/null 2>&1 &"
	sleep 1
	wait_until "the kernel after the panic" "$GCTL" -w -t 20 vm2.ctl \
	    'grep -q reset_devices /proc/cmdline' ||
	    wrong "vm2 does not start again"
	up 2
	on vm1 pktgen_stop
	pings vm1 10.0.0.2
	transfer vm1 vm2 10.0.0.2 2000000
	transfer vm2 vm1 10.0.0.1 2000000
	clean vm2
	# vm1 has no such kernel, and no answer is waited for: gctl.c.
	status=0
	vm vm1 "echo c > /proc/sysrq-trigger" || status=$?
	is "status" $status -eq 125
	finish
}

guest_case dead "The driver survives an adapter that is gone"
dead_body()
{
	lem_guests 1
	on vm1 "wire udp-send 10.0.0.9 9 1000 1000000 > /dev/null 2>&1 &"
	vm_kill valed
	after_loss dead_run "wait_until 'a message' \
	    eval 'dmesg | grep -e resetting -e \"cannot start\"'"
	on vm1 "killall wire; ethtool -S eth0; wait_until 'an error' \
	    eval 'dmesg | grep \"cannot start\"'"
	# While the next try is due.
	on vm1 "rmmod lem && sleep 2"
	clean vm1
	vm_kill vm1
}

guest_case released "An adapter that is removed, or halted, is left stopped, \
and nothing is left of it"
released_body()
{
	local before n

	lem_guests 2
	for n in 1 2; do
		on vm$n "sysctl -q -w net.ipv6.conf.eth0.disable_ipv6=1
		    ip link set eth0 mtu 9000 && carrier eth0"
	done
	transfer vm2 vm1 10.0.0.1 2000000
	transfer vm1 vm2 10.0.0.2 2000000
	# The interface goes down when the first half of a frame has come.
	on vm1 "trouble fail lem_os_rx 0 1 1"
	on vm2 "ping -q -c 1 -W 1 -s 8000 10.0.0.1; true"
	on vm1 "wait_until 'half a frame' grep '^0 ' \
	    /sys/module/trouble/parameters/fail
	    ip link set eth0 down && ip link set eth0 up && carrier eth0"
	pings vm2 10.0.0.1
	# The driver goes while it waits to try a start again.
	on vm1 "trouble fail lem_buffers_alloc -12 1000000
	    ! ip link set eth0 mtu 1500 2> /dev/null && rmmod lem && sleep 2 &&
	    up 1"
	pings vm2 10.0.0.1
	# As long as a page is mapped for the adapter, that is referenced.
	on vm1 "trouble fail pci_release_dev 0 0
	    echo 1 > /sys/class/net/eth0/device/remove
	    wait_until 'the end of the adapter' eval '[ \$(calls) -ge 1 ]' &&
	    echo 1 > /sys/bus/pci/rescan &&
	    wait_until eth0 [ -d /sys/class/net/eth0 ] && address 1"
	pings vm2 10.0.0.1
	clean vm1
	before=$(a vm1 resets)
	on vm1 "{ sleep 0.2; halt -f; } < /dev/null > /dev/null 2>&1 &"
	wait_until "the halt" grep "System halted" vm1.log ||
	    wrong "vm1 does not halt"
	is "resets" "$(a vm1 resets)" -gt "$before"
	finish
}

guest_case override "lem and e1000 share adapters as the administrator says"
override_body()
{
	local nic=/sys/bus/pci/devices/0000:00:02.0 driver

	guests 1 ,csb=on
	on vm1 "module e1000 && wait_until eth0 [ -d /sys/class/net/eth0 ]"
	# It has a driver.
	on vm1 "module lem"
	shows 'e1000$' vm1 "readlink $nic/driver"
	# The administrator moves it, there and back.
	for driver in lem e1000 lem; do
		on vm1 "echo $driver > $nic/driver_override &&
		    echo 0000:00:02.0 > $nic/driver/unbind &&
		    echo 0000:00:02.0 > /sys/bus/pci/drivers_probe"
		shows "/$driver\$" vm1 "readlink $nic/driver"
	done
	on vm1 "address 1"
	clean vm1
	finish
}
