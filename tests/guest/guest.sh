# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Functions for the commands that run in a guest.

. /lib/wait_until.subr

# Shorter than that of the host's side, so that what was seen is reported.  On an
# idle machine the tries take about 40 seconds, on a busy one as much longer as a
# guest is slower there.
WAIT_S=300
WAIT_TRIES=600

# The driver of this guest's adapters, as vm_start() says.  A guest with e1000e
# may continue from a state in which it had booted for e1000 (mkbooted.sh), so
# an 82574L says which of these two it is.
DRIVER=$(sed -n 's/.* driver=\([a-z0-9_]*\).*/\1/p' /proc/cmdline)
DRIVER=${DRIVER:-e1000}
if [ "$DRIVER" = e1000 ] &&
    grep -q 0x10d3 /sys/bus/pci/devices/*/device; then
	DRIVER=e1000e
fi

# Loads the driver with the given module options, and waits for the interface.
load()
{
	module "$DRIVER" "$@" || return 1
	wait_until eth0 [ -d /sys/class/net/eth0 ]
}

# module NAME [options]: loads a module, and those that it needs before.  One that
# has no mutants ignores that option.
module()
{
	local m name=$1

	shift
	for m in $(cat /lib/$name.needs 2>/dev/null); do
		[ -d /sys/module/$m ] || insmod /lib/$m.ko || return 1
	done
	[ -d /sys/module/$name ] ||
	    insmod /lib/$name.ko ${MUTANT:+mutant=$MUTANT} "$@"
}

# up N [options]: loads the driver and gives eth0 the addresses 10.0.0.N and
# fd00::N.
up()
{
	local n=$1

	shift
	load "$@" && address "$n"
}

address()
{
	sysctl -q -w net.ipv6.conf.eth0.accept_dad=0
	# Linux asks a neighbour three times, a second apart, before it drops
	# what is for it.  On a busy machine the answer takes longer.
	for ip in ipv4 ipv6; do
		for ask in mcast_solicit ucast_solicit; do
			sysctl -q -w net.$ip.neigh.eth0.$ask=300
		done
	done
	ip addr add 10.0.0.$1/24 dev eth0 &&
	    ip addr add fd00::$1/64 dev eth0 &&
	    ip link set eth0 up && carrier eth0
}

# Waits until an interface is up: its driver has found the link, and the kernel,
# up to a second later, sends through it.
carrier()
{
	wait_until "carrier of $1" grep '^up$' /sys/class/net/$1/operstate
}

# wait_port PORT: waits until a background command has bound the UDP port.
wait_port()
{
	wait_until "UDP port $1" \
	    grep ":$(printf %04X "$1") " /proc/net/udp6
}

# wait_word WORD FILE: waits until a background command has written the word to
# the file, and prints the file.
wait_word()
{
	wait_until "'$1' in $2" grep "$1" "$2"
	cat "$2"
}

# wait_sent N: waits until eth0 has sent N frames from now on.
wait_sent()
{
	wait_until "$1 frames sent" more_than $(($(stat tx_packets) + $1 - 1))
}

more_than()
{
	stat tx_packets
	[ "$(stat tx_packets)" -gt "$1" ]
}

# stat NAME: one of eth0's counters.
stat()
{
	cat /sys/class/net/eth0/statistics/$1
}

# settings: prints what is set of eth0.
settings()
{
	for o in -g -c -k --show-priv-flags; do
		ethtool $o eth0 | sed 's/ .requested.*//'
	done
	(cd /sys/class/net/eth0 && cat mtu address lem/csb_rounds)
}

# trouble PARAMETER VALUE...: makes some (trouble.c).
trouble()
{
	local name=$1

	module trouble || return 1
	shift
	echo "$*" > /sys/module/trouble/parameters/$name
}

# calls: how often the function of "trouble fail" was called.
calls()
{
	cut -d " " -f 3 /sys/module/trouble/parameters/fail
}

# wait_messages N: waits until "trouble netpoll" has sent N messages from now on.
wait_messages()
{
	wait_until "$1 messages" more_messages $(($(messages) + $1))
}

more_messages()
{
	messages
	[ "$(messages)" -ge "$1" ]
}

messages()
{
	cat /sys/module/trouble/parameters/netpoll
}

# The number of eth0's interrupts.
interrupts()
{
	awk '/eth0/ { n += $2 } END { print n + 0 }' /proc/interrupts
}

pg()
{
	echo "$2" > /proc/net/pktgen/$1
}

# pktgen_setup MAC ADDRESS SIZE [COUNT]: prepares pktgen on eth0.  SIZE is
# without FCS.  COUNT is the number of frames; 0, the default, is no limit.
pktgen_setup()
{
	local setting

	module pktgen || return 1
	if [ -e /proc/net/pktgen/eth0 ]; then
		pg kpktgend_0 "rem_device_all" || return 1
		wait_until "pktgen to let go of eth0" \
		    [ ! -e /proc/net/pktgen/eth0 ] || return 1
	fi
	pg kpktgend_0 "add_device eth0" || return 1
	for setting in "count ${4:-0}" "pkt_size $3" "clone_skb 1000" \
	    "delay 0" "dst $2" "dst_mac $1" "udp_dst_min 9" "udp_dst_max 9"; do
		pg eth0 "$setting" || return 1
	done
}

# Starts pktgen, which runs for its count or until pktgen_stop, and waits until it
# sends.  The write of "start" may return before pktgen's thread has started: it
# waits for 125 ms at most.  A setting is written first, because its result replaces
# that of the last run.
pktgen_start()
{
	pg eth0 "udp_dst_min 9"
	echo start > /proc/net/pktgen/pgctrl &
	wait_until "pktgen to start" \
	    grep -E "^Result: (Starting|$PKTGEN_ENDED)" /proc/net/pktgen/eth0
}

# What pktgen's result begins with when it has ended.  That of a setting is
# also "OK", with its name.
PKTGEN_ENDED="OK: [0-9]+\("

# Waits until pktgen has ended.
pktgen_ended()
{
	wait_until "the end of pktgen" \
	    grep -E "^Result: $PKTGEN_ENDED" /proc/net/pktgen/eth0
	wait
}

# Runs pktgen once after pktgen_setup, and waits until it has sent its count.
pktgen_run()
{
	pktgen_start
	pktgen_ended
}

# Stops pktgen, and waits until it has stopped.
pktgen_stop()
{
	echo stop > /proc/net/pktgen/pgctrl
	wait_until "pktgen to stop" pktgen_stopped
}

pktgen_stopped()
{
	cat /proc/net/pktgen/kpktgend_0
	! grep -q "^Running: *eth0" /proc/net/pktgen/kpktgend_0
}

# sample SECONDS: prints how much time passed, in ms, how many frames eth0 sent
# and received, and how many interrupts it raised.
sample()
{
	local before after

	before=$(counts)
	sleep "$1"
	after=$(counts)
	set -- $before $after
	echo $(($5 - $1)) $(($6 - $2)) $(($7 - $3)) $(($8 - $4))
}

# flood SECONDS FILE [0]: in the background, runs pktgen for a second, takes a
# sample, which it writes to the file, and runs pktgen for two seconds more.  A
# guest under full load can take long to read a command, so this is a single
# one.  With 0 for the last argument it does not run pktgen.
flood()
{
	rm -f "$2"
	{
		[ "${3:-1}" = 0 ] || pktgen_start
		sleep 1
		sample "$1" > "$2.new"
		sleep 2
		[ "${3:-1}" = 0 ] || pktgen_stop
		mv "$2.new" "$2"
	} > /dev/null 2>&1 < /dev/null &
}

counts()
{
	echo $(awk '{ print int($1 * 1000) }' /proc/uptime) \
	    $(stat tx_packets) $(stat rx_packets) $(interrupts)
}
