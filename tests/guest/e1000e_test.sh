# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Drivers for the 82574L, on valed's e1000e: how each interrupt is taken, what a
# suspend under traffic leaves, and time stamps.

DRIVER=e1000e

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"
. "$(atf_get_srcdir)/restart.subr"

# e1000e_up MODE: has both guests use the driver with that IntMode.
e1000e_up()
{
	local i

	for i in 1 2; do
		on vm$i "[ ! -d /sys/module/e1000e ] || rmmod e1000e
		    up $i IntMode=$1; grep eth0 /proc/interrupts"
	done
}

# e1000e_reads: the guests exchange requests and answers; sets `reads' and
# `interrupts' to what these took of vm1's adapter.
e1000e_reads()
{
	valed_counters
	reads=$(counter vm1 reg_reads)
	interrupts=$(counter vm1 intr_sent)
	on vm1 "nettest rr 10.0.0.2 5"
	valed_counters
	reads=$(($(counter vm1 reg_reads) - reads))
	interrupts=$(($(counter vm1 intr_sent) - interrupts))
}

guest_case driver "Linux's e1000e: MSI-X, without a register read for an \
interrupt; MSI; INTx"
driver_body()
{
	guests 2
	e1000e_up 2 > interrupts
	atf_check -o match:"MSI-?X.*eth0-rx-0" -o match:"MSI-?X.*eth0-tx-0" \
	    cat interrupts
	on vm2 "nettest serve > /tmp/serve 2>&1 < /dev/null &"
	pings vm1 10.0.0.2
	e1000e_reads
	# What it reads are statistics, every two seconds.
	is "reads and interrupts" $((2 * reads)) -lt $interrupts
	on vm1 "nettest tcp 10.0.0.2 3"
	e1000e_up 1 > interrupts
	atf_check -o match:"MSI[^X]*eth0" cat interrupts
	e1000e_reads
	is "reads and interrupts, MSI" $reads -ge $interrupts
	e1000e_up 0 > interrupts
	atf_check -o match:"IO-APIC.*eth0" cat interrupts
	pings vm1 10.0.0.2
	e1000e_reads
	is "reads and interrupts, INTx" $reads -ge $interrupts
	on vm1 "dmesg | grep e1000e" > dmesg
	atf_check -s exit:1 grep -i -e fail -e error -e hang -e invalid dmesg
	finish
}

# suspending: vm1's console says that its devices are suspended.
suspending()
{
	grep -a "suspend debug: Waiting" vm1.log
}

# suspended: vm1 suspends and resumes while vm2 sends frames, not so many that
# vm1 has no buffers posted.  They end before it resumes, and valed is restarted:
# a message of MSI-X that came from that would, when vm1 turns MSI-X on, make
# Linux's e1000e post buffers before it resets the ring.
suspended()
{
	on vm1 "dmesg -n 8
	    echo N > /sys/module/printk/parameters/console_suspend
	    echo devices > /sys/power/pm_test
	    echo 5 > /sys/module/suspend/parameters/pm_test_delay"
	on vm2 "pktgen_setup $(mac 1) 10.0.0.1 60
	    pg eth0 'delay 500000'; pktgen_start"
	on vm1 "echo freeze > /sys/power/state" &
	wait_until "the suspend" suspending || atf_fail "vm1 does not suspend"
	on vm2 pktgen_stop
	restart
	wait $! || atf_fail "vm1 does not resume"
}

guest_case suspend "Linux's e1000e and e1000 receive after a suspend while frames \
arrive and valed is restarted"
suspend_body()
{
	local driver

	VALED_MORE="-R -c control"
	for driver in e1000e e1000; do
		DRIVERS="$driver e1000"
		guests 2
		up 1 2
		suspended
		# The frames that waited in its port are lost: no pings().
		on vm1 "ping -q -c 3 -W 60 10.0.0.2"
		finish
	done
}

guest_case stamps "Messages of PTP have time stamps of the adapter's clock, sent \
and received"
stamps_body()
{
	guests 2
	up 1 2
	on vm2 "(stamp pong eth0 20; echo status \$?) > /tmp/pong 2>&1 < /dev/null &
	    wait_word ready /tmp/pong"
	on vm1 "stamp ping eth0 20"
	on vm2 "wait_word status /tmp/pong" > pong
	atf_check -o inline:"ready\nstamps 20\nstatus 0\n" cat pong
	on vm1 "ethtool -S eth0" > counters
	atf_check -o match:"tx_hwtstamp_timeouts: 0" \
	    -o match:"tx_hwtstamp_skipped: 0" cat counters
	finish
}

guest_case lem "lem(4): MSI-X, without a register read for an interrupt, with the \
CSB and without"
lem_body()
{
	local csb

	DRIVERS="lem@e1000e,csb=on lem@e1000e,csb=on"
	guests 2
	up 1 2
	on vm1 "cat /sys/class/net/eth0/device/msi_irqs/*" > interrupts
	atf_check -o inline:"msix\n" cat interrupts
	on vm2 "nettest serve > /tmp/serve 2>&1 < /dev/null &"
	for csb in on off; do
		for i in 1 2; do
			on vm$i "ethtool --set-priv-flags eth0 csb $csb"
		done
		pings vm1 10.0.0.2
		e1000e_reads
		# Once a second it reads the link.
		is "reads and interrupts, CSB $csb" $((2 * reads)) -lt \
		    $interrupts
	done
	on vm1 "nettest tcp 10.0.0.2 2"
	on vm1 "ethtool -t eth0 online"
	finish
}
