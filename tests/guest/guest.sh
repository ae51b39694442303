# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Functions for the commands that run in a guest.

# Loads the driver with the given module options, and waits for the interface.
load()
{
	insmod /lib/e1000.ko "$@" || return 1
	for i in 1 2 3 4 5 6 7 8 9 10; do
		[ ! -d /sys/class/net/eth0 ] || return 0
		sleep 0.1
	done
	return 1
}

# up N [options]: loads the driver and makes this guest 10.0.0.N, fd00::N.
up()
{
	local n=$1

	shift
	load "$@" && address "$n"
}

address()
{
	sysctl -q -w net.ipv6.conf.eth0.accept_dad=0
	ip addr add 10.0.0.$1/24 dev eth0 &&
	    ip addr add fd00::$1/64 dev eth0 &&
	    ip link set eth0 up && carrier eth0
}

# Waits until an interface can be used: its driver has found the link, and the
# kernel, which takes up to a second more, sends through it.
carrier()
{
	for i in $(seq 100); do
		[ "$(cat /sys/class/net/$1/operstate)" != up ] || return 0
		sleep 0.1
	done
	echo "$1: no carrier"
	return 1
}

# bound PORT: waits until a background command has bound the port, for UDP.
bound()
{
	for i in $(seq 300); do
		! grep -q ":$(printf %04X "$1") " /proc/net/udp6 || return 0
		sleep 0.1
	done
	echo "nobody is at port $1"
	return 1
}

# said WORD FILE: waits until a background command has written a line with the
# word, two minutes at most, and shows what it wrote.
said()
{
	for i in $(seq 1200); do
		! grep -q "$1" "$2" 2> /dev/null || break
		sleep 0.1
	done
	cat "$2"
}

# stat NAME: one of eth0's counters.
stat()
{
	cat /sys/class/net/eth0/statistics/$1
}

# Interrupts that eth0 has raised.
interrupts()
{
	awk '/eth0/ { n += $2 } END { print n + 0 }' /proc/interrupts
}

pg()
{
	echo "$2" > /proc/net/pktgen/$1
}

# pktgen_setup MAC ADDRESS SIZE [COUNT]: prepares pktgen on eth0; SIZE is
# without the frame check sequence, COUNT 0 means until stopped.
pktgen_setup()
{
	[ -d /proc/net/pktgen ] || insmod /lib/pktgen.ko || return 1
	pg kpktgend_0 "rem_device_all"
	pg kpktgend_0 "add_device eth0"
	pg eth0 "count ${4:-0}"
	pg eth0 "pkt_size $3"
	pg eth0 "clone_skb 1000"
	pg eth0 "delay 0"
	pg eth0 "dst $2"
	pg eth0 "dst_mac $1"
	pg eth0 "udp_dst_min 9"
	pg eth0 "udp_dst_max 9"
}

# Runs pktgen until its count is reached or pktgen_stop.
pktgen_start()
{
	echo start > /proc/net/pktgen/pgctrl &
}

pktgen_stop()
{
	echo stop > /proc/net/pktgen/pgctrl
}

# sample SECONDS: how much time passed, in ms, and how many frames eth0 sent,
# received, and interrupts it raised meanwhile.
sample()
{
	local before after

	before=$(counts)
	sleep "$1"
	after=$(counts)
	set -- $before $after
	echo $(($5 - $1)) $(($6 - $2)) $(($7 - $3)) $(($8 - $4))
}

# flood SECONDS FILE [0]: in the background, runs pktgen for a second, for as long as
# a sample takes, which it writes into the file, and for two seconds more.  A
# guest under full load can take long to hear a command, so it gets this one
# before.  With 0 for the last argument it samples only.
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
