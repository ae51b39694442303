# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Two micro-guests, each the driver core and a packet generator, in each mode of
# the driver: frames are accounted for, register accesses and interrupts
# counted.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"
. "$(atf_get_srcdir)/pair.subr"

micro_case qemu "Two micro-guests on each of QEMU's own adapters"
qemu_run()
{
	local device name

	for device in e1000 e1000-82544gc e1000-82545em; do
		micro_qemu vm2 $device $(mac 2) on "role=echo"
		micro_qemu vm1 $device $(mac 1) off "role=rr count=300 ms=0"
		micro_wait vm1 vm2 || atf_fail "$device: a guest did not end"
		for name in vm1 vm2; do
			grep "^mac $(mac ${name#vm})$" $name.log ||
			    atf_fail "$device, $name: not its address"
		done
		is "MSI" "$(v vm1 msi)" -eq 0
		answered
		rm -f wire
	done
	is "device" "$(v vm1 device)" -eq $((0x100f))
}

micro_case rr_modes "Request and response in each mode"
rr_modes_run()
{
	local mode

	for mode in base sc lazy sc,lazy itr=250 itr=250,sc csb csb,itr=250; do
		pair "role=rr count=300 ms=0 mode=$mode" "role=echo mode=$mode"
		answered
	done
	for mode in poll poll,sc csb,poll,sc; do
		pair "role=rr count=300 ms=0 mode=$mode" "role=echo mode=$mode"
		answered
		is "interrupts" "$(v vm1 irqs)" -eq 0
		is "interrupts" "$(v vm2 irqs)" -eq 0
	done
}

# One frame is under way at a time, so the receiver has a buffer for it.  The
# leader starts when the follower is up: else its first frames would wait in the
# follower's port.
micro_case one_copy "A frame is copied once, from guest to guest"
one_copy_run()
{
	local mode name FOLLOWER_FIRST=yes

	for mode in base csb poll itr=250; do
		pair "role=rr count=300 ms=0 mode=$mode size=1000 ring=256" \
		    "role=echo mode=$mode ring=256"
		answered
		for name in vm1 vm2; do
			is "$name: received" "$(c $name rx_frames)" -ge 300
			is "$name: received direct" \
			    "$(c $name port_rx_direct)" -gt 0
			is "$name: direct, or by the ring" \
			    "$(c $name port_rx_direct port_rx_copies)" -eq \
			    "$(c $name rx_frames)"
			is "$name: copies" "$(c $name copies)" -eq \
			    "$(c $name rx_frames port_rx_copies)"
		done
	done
	# More than the receiver can take: a frame is copied once or twice.
	pair "role=source ms=500 batch=64" "role=sink ring=128 work=100000"
	accounted
	is "vm2: received through the ring" "$(c vm2 port_rx_copies)" -gt 0
	is "vm2: received direct" "$(c vm2 port_rx_direct)" -gt 0
	is "vm2: copies" "$(c vm2 copies)" -eq \
	    "$(c vm2 rx_frames port_rx_copies)"
}

micro_case poll_sc "Polling and send combining: frames wait for the next poll"
poll_sc_run()
{
	pair "role=source ms=1000 mode=poll,sc ring=1024" \
	    "role=sink mode=poll ring=1024"
	accounted
	is "TDT written, twice" "$((2 * $(v vm1 tx_kicks)))" -le \
	    "$(v vm1 tx_packets)"
	is "combined" "$(v vm1 tx_combined)" -gt 0
	is "vm1's interrupts" "$(v vm1 irqs)" -eq 0
	# Fewer frames than a quarter of the ring, and none before the poll.
	pair "role=source count=200 ms=0 mode=poll,sc ring=1024 tick=100000" \
	    "role=sink"
	accounted
	is "received" "$(v vm2 received)" -eq 200
	is "TDT written" "$(v vm1 tx_kicks)" -le "$(v vm1 polls)"
}

# The receiver takes at most 10,000 frames a second.  The adapter has no
# descriptors for the others, and the switch drops them.
micro_case overload \
    "Frames that the receiver cannot take are dropped at its port"
overload_run()
{
	local mode

	for mode in csb poll; do
		pair "role=source ms=500 mode=$mode batch=64" \
		    "role=sink mode=$mode work=100000"
		accounted
		is "received" "$(v vm2 received)" -gt 0
		is "dropped at the port" "$(c vm2 port_rx_drop_full)" -gt 0
		is "lost in the adapter" "$(c vm2 rx_oversize rx_bad_ring \
		    rx_bad_addr)" -eq 0
		# vm1 sends HELLO until vm2 is up.
		is "lost before vm2 was up" "$(c vm2 rx_disabled)" -le \
		    "$(($(v vm1 total_tx_packets) - $(v vm1 tx_packets)))"
	done
}

# The guest waits for each register write, so the host has seen a kick before
# the guest can send another.
micro_case csb_exits "CSB: a register access for ten frames or more"
csb_exits_run()
{
	SYNC=true
	pair "role=source ms=1000 mode=csb" "role=sink mode=csb"
	accounted
	is "sender's accesses, ten times" \
	    "$((10 * $(v vm1 reg_reads reg_writes)))" -le "$(v vm1 sent)"
	is "receiver's accesses, ten times" \
	    "$((10 * $(v vm2 reg_reads reg_writes)))" -le "$(v vm2 received)"
}

micro_case csb_compat "csb=compat: FreeBSD 10's driver looks for 0x1101"
csb_compat_run()
{
	valed_start -s \
	    "1,e1000,vale0:vm1,path=vm1.sock,mac=$(mac 1),csb=compat" ||
	    atf_fail "valed does not start"
	micro_valed vm1 "role=sink mode=csb"
	micro_ready vm1 && valed_counters ||
	    atf_fail "the driver does not start"
	is "subsystem" "$(v vm1 subdevice)" -eq 4353
	is "CSB on" "$(c vm1 csb_on)" -ge 1
}

micro_case csb_off "The driver refuses CSB mode if the adapter has no CSB"
csb_off_run()
{
	valed_start -s \
	    "1,e1000,vale0:vm1,path=vm1.sock,mac=$(mac 1),csb=off" ||
	    atf_fail "valed does not start"
	micro_valed vm1 "role=sink mode=csb"
	micro_wait vm1 && atf_fail "the driver has turned on the CSB"
	is "subsystem" "$(v vm1 subdevice)" -eq 4104
	grep -q "^panic: start: error 45" vm1.log || atf_fail "no ENOTSUP"
}

# program OPTIONS: frames for a program, at half of what it can use, twice, and
# ten times.  What the guest can take depends on the machine, so the cases
# compare what its program used with what its stack received.  A limit in time
# is not exact where the guest itself has to wait for a processor:
# lem_share_test counts what remains of the program's peak.
program()
{
	pair "role=source rate=2500,10000,50000 ms=500 batch=16" \
	    "role=program work=50000 program=150000 tick=200 $1"
	transferred
}

micro_case livelock "Without a limit, reception starves the program"
livelock_run()
{
	program "share=0"
	is "used at ten times the load, tenths" \
	    "$((10 * $(v vm2 step_2_used)))" -lt \
	    "$((3 * $(v vm2 step_2_received)))"
}

micro_case share "With a limit, the program uses what its stack receives"
share_run()
{
	local mode step

	for mode in base itr=250 csb csb,itr=250 poll csb,poll; do
		program "share=20 mode=$mode"
		for step in 0 1 2; do
			is "$mode, used in step $step, twice" \
			    "$((2 * $(v vm2 step_${step}_used)))" -ge \
			    "$(v vm2 step_${step}_received)"
		done
	done
}
