#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# demo.sh objtop: run by "make demo".
#
# Two stock Linux guests exchange traffic, first through the 82545EM of valed
# and its VALE switch, then through QEMU's own 82545EM and a socket: the same
# kernel, driver, workload and machine.  Each adapter runs with three settings
# of interrupt moderation:
#
#	itr=0		none
#	itr=250		at least 64 us between interrupts; valed imposes it
#			(its option itr=250), with QEMU the driver sets it
#	driver		chosen by Linux's driver
#
# and each setting with four workloads: ping; pktgen, which sends 60-byte UDP
# frames as fast as it can, in one guest and then in both at once; and one TCP
# stream.  The rings have the most descriptors that the adapter allows.
#
# Then Linux guests run the module lem beside other drivers (module.sh); two
# micro-guests run the driver in each of its modes (ladder.sh), and one of them
# receives more than it can take (livelock.sh).
#
# The directory demo/ under objtop keeps all results: ladder.tsv and the picture
# of it, demo.png and demo.svg; livelock.tsv, demo-livelock.png and .svg;
# results.tsv, demo-stock.png and .svg; module.tsv; and the guests' consoles.
#
# All of it runs in a network namespace, if one can be made, for the TAP
# interfaces and the bridge of module.sh.

set -u

if [ -z "${DEMO_NAMESPACE:-}" ]; then
	for namespace in -n -rn; do
		unshare $namespace true 2> /dev/null || continue
		DEMO_NAMESPACE=yes exec unshare $namespace sh "$0" "$@"
	done
fi
OBJTOP=$1
here=$(cd "$(dirname "$0")" && pwd)
. "$OBJTOP/tests/guest/guest.subr"
. "$OBJTOP/tests/guest/micro.subr"
. "$here/ladder.sh"
. "$here/livelock.sh"
. "$here/module.sh"

UDP_SECONDS=2
TCP_SECONDS=2
# pktgen hands the driver this many frames at a time, as Linux's queues do if
# more than one is waiting; the driver writes the tail register once for them.
BURST=16
MAC1=52:54:00:82:54:01
MAC2=52:54:00:82:54:02
# The driver's module option, in interrupts a second.
ITR_0=InterruptThrottleRate=0
ITR_250=InterruptThrottleRate=15625
RINGS="TxDescriptors=4096 RxDescriptors=4096"

fail()
{
	stop_all
	printf '\n%s\n' "demo: $*" >&2
	exit 1
}

progress()
{
	printf '  %-18s %s\n' "$label" "$*"
}

# Bind each guest, and the valed thread that serves it, to a processor of its
# own, so that sender and receiver do not share one.
pin()
{
	local guest cpu=0 valed=

	[ "$(nproc)" -ge 2 ] || return 0
	[ "$1" = qemu ] || valed=/proc/$(cat valed.pid)/task
	for guest in vm1 vm2; do
		taskset -acp $cpu "$(cat $guest.pid)" > /dev/null
		[ -z "$valed" ] || taskset -cp $cpu "$(basename "$(
		    grep -lx "$guest" "$valed"/*/comm | xargs dirname)")" \
		    > /dev/null
		cpu=$((cpu + 1))
	done || fail "taskset: cannot bind the guests to processors"
}

# Load the driver with the given options in both guests; unload it first if it
# is there.
drivers()
{
	vm vm1 "rmmod e1000 2>/dev/null; up 1 $RINGS $*" > /dev/null &&
	    vm vm2 "rmmod e1000 2>/dev/null; up 2 $RINGS $*" > /dev/null ||
	    fail "the guests' driver does not start"
	vm vm1 ping -q -c 3 -i 0.1 10.0.0.2 > /dev/null ||
	    fail "the guests do not reach each other"
}

measure_ping()
{
	rtt=$(vm vm1 ping -q -c 100 -i 0.01 10.0.0.2 |
	    sed -n 's,^round-trip.*= [^/]*/\([^/]*\)/.*,\1,p')
	[ -n "$rtt" ] || fail "ping was not answered"
	rtt=$(awk "BEGIN { printf \"%.0f\", $rtt * 1000 }")
	progress "ping: $rtt us"
}

# udp SENDS1 SENDS2: vm1 sends to vm2 if SENDS1 is 1, vm2 to vm1 if SENDS2 is 1,
# as fast as they can.  Sets sent and kpps, the thousands of frames sent and
# received a second, and fpi, the frames sent and received an interrupt; each is
# the sum over both guests.
udp()
{
	vm vm1 "flood $UDP_SECONDS /tmp/sample $1" &&
	    vm vm2 "flood $UDP_SECONDS /tmp/sample $2" ||
	    fail "pktgen does not start"
	sleep 1
	exits_before
	sleep $UDP_SECONDS
	exits_after
	sleep 1
	for guest in vm1 vm2; do
		vm $guest "wait_word ' ' /tmp/sample" > $guest.sample ||
		    fail "$guest does not report its counters"
	done
	set -- $(cat vm1.sample vm2.sample | awk '
	    $1 > 0 {
		sent += $2 / $1; pps += $3 / $1
		frames += $2 + $3; interrupts += $4
	    }
	    END { printf "%.1f %.1f %.1f\n", sent, pps,
		frames / (interrupts ? interrupts : 1) }')
	sent=$1
	kpps=$2
	fpi=$3
}

measure_udp()
{
	vm vm1 "pktgen_setup $MAC2 10.0.0.2 60; pg eth0 'burst $BURST'" &&
	    vm vm2 "pktgen_setup $MAC1 10.0.0.1 60; pg eth0 'burst $BURST'" ||
	    fail "pktgen cannot be set up"
	udp 1 0
	sent_one=$sent
	kpps_one=$kpps
	fpi_one=$fpi
	progress "UDP, one way: $sent Kpps sent, $kpps arrived," \
	    "$fpi frames an interrupt"
	udp 1 1
	progress "UDP, both ways: $sent Kpps sent, $kpps arrived," \
	    "$fpi frames an interrupt, $epf exits a frame"
}

# serve: start nettest's server in vm2, and end the one that was there.
serve()
{
	vm vm2 "killall nettest 2> /dev/null
	    nettest serve > /tmp/serve 2>&1 < /dev/null &
	    wait_word ready /tmp/serve" > serve.out ||
	    fail "nettest does not serve: $(tail -n 1 serve.out)"
}

# tcp_mbps SECONDS: print the Mbit/s of a TCP stream from vm1 to vm2's server.
tcp_mbps()
{
	vm vm1 nettest tcp 10.0.0.2 $1 | awk -F '[= ]' '
	    $5 > 0 { printf "%.0f", $7 * 8 / $5 / 1e6 }'
}

measure_tcp()
{
	serve
	mbps=$(tcp_mbps $TCP_SECONDS)
	[ -n "$mbps" ] || fail "the TCP stream broke"
	progress "TCP: $mbps Mbit/s"
}

# Print register accesses and frames of vm1's adapter, from valed's counters.
valed_exits()
{
	valed_counters
	echo $(counter vm1 reg_reads reg_writes) \
	    $(counter vm1 tx_frames rx_frames)
}

# QEMU has no such counters, but traces register accesses.  The demo takes a
# short trace while traffic flows; exits.awk derives the number of frames from
# the movement of the two tail registers.
trace()
{
	echo "trace-event memory_region_ops_* $1" > vm1.mon.in
}

# exits_before, exits_after: measure the register accesses (exits) of vm1's
# driver between the two calls; exits_after sets epf, exits a frame.
exits_before()
{
	if [ "$kind" = valed ]; then
		before=$(valed_exits)
	fi
}

exits_after()
{
	if [ "$kind" = valed ]; then
		set -- $before $(valed_exits)
		epf=$(awk "BEGIN { printf \"%.2f\", ($3 - $1) / ($4 - $2) }")
		return
	fi
	: > vm1.trace
	trace on
	sleep 0.5
	trace off
	sleep 0.2
	epf=$(awk -f "$here/exits.awk" vm1.trace)
}

# run KIND SETTING options...: measure one setting on running guests.
run()
{
	kind=$1
	setting=$2
	shift 2
	label="$kind, $setting"
	drivers "$@"
	measure_ping
	measure_udp
	measure_tcp
	printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' \
	    "$kind" "$setting" "$sent_one" "$kpps_one" "$sent" "$kpps" \
	    "$fpi_one" "$fpi" "$epf" "$mbps" "$rtt" >> results.tsv
}

# pair_valed [option]: start two guests on a new valed.
pair_valed()
{
	valed_start -s "1,e1000,vale0:vm1,path=vm1.sock,mac=$MAC1$1" \
	    -s "2,e1000,vale0:vm2,path=vm2.sock,mac=$MAC2$1" ||
	    fail "valed does not start"
	vm_valed vm1
	vm_valed vm2
	vm_wait vm1 vm2 || fail "the guests do not start"
	pin valed
}

pair_qemu()
{
	rm -f vm1.mon.in vm1.mon.out
	mkfifo vm1.mon.in vm1.mon.out
	cat vm1.mon.out > /dev/null &
	echo $! > monitor.pid
	vm_qemu vm1 $MAC1 on -D vm1.trace \
	    -chardev pipe,id=mon,path=vm1.mon -monitor chardev:mon
	vm_qemu vm2 $MAC2 off
	vm_wait vm1 vm2 || fail "the guests do not start"
	pin qemu
}

# Print the memory that valed uses, in MB, without that of the guests.
valed_memory()
{
	awk '/^[0-9a-f]+-/ { guest = /memory-backend-memfd/ }
	    /^Rss:/ && !guest { kb += $2 }
	    END { printf "%.1f", kb / 1024 }' "/proc/$(cat valed.pid)/smaps"
}

missing=$(guest_missing; micro_missing)
[ -z "$missing" ] || { echo "demo: $missing" >&2; exit 1; }
mkdir -p "$OBJTOP/demo" && cd "$OBJTOP/demo" || exit 1
stop_all
rm -f ./*
trap 'stop_all; exit 130' INT TERM
start=$(date +%s)
: > results.tsv

echo "Two guests on valed, its 82545EM and VALE:"
pair_valed ""
run valed itr=0 $ITR_0
run valed driver
stop_all
pair_valed ",itr=250"
run valed itr=250 $ITR_0
memory=$(valed_memory)
stop_all

echo "The same guests on QEMU's own 82545EM:"
pair_qemu
run qemu itr=0 $ITR_0
run qemu driver
run qemu itr=250 $ITR_250
stop_all

echo "Programs in Linux guests, on the module lem and other drivers:"
module

echo "Two micro-guests on valed:"
ladder
livelock

echo
echo "All guests ran on $(accel_text)."
awk -f "$here/table.awk" -v memory="$memory" results.tsv
awk -f "$here/module.awk" module.tsv
awk -f "$here/ladder.awk" ladder.tsv
for plot in plot livelock; do
	gnuplot -c "$here/$plot.gp" 2> gnuplot.log ||
	    fail "gnuplot: see $PWD/gnuplot.log"
done
echo
echo "Pictures: $PWD/demo.png (driver modes), demo-livelock.png (overload),"
echo "demo-stock.png (stock guests); all also as .svg"
echo "$(($(date +%s) - start)) seconds"
