#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# goodput.sh [-l bytes] [-m megabytes] [-r rates] [-t seconds] image
#
# Measures receive livelock in a guest of bhyve(8): UDP datagrams a second that
# its program receives, over those a second that the host offers, by mode of the
# guest's driver.  pkt-gen(8) offers them on a port of the guest's VALE switch,
# so nothing but the guest slows them down.  Run as root on FreeBSD.
#
#	-l	bytes of a frame, without FCS (60)
#	-m	memory of the guest (512)
#	-r	datagrams a second (5000 10000 20000 50000 100000)
#	-t	seconds for each (2)
#
# Image and environment are those of nettest.sh.  The guest, which has one
# processor, runs `nettest serve'; its kernel counts what it delivers to that
# program's socket.  The program reads all of it.

set -u

here=$(cd "$(dirname "$0")" && pwd)
BHYVE=${BHYVE:-/usr/local/sbin/bhyve}
EM_PV=${EM_PV:-if_em_pv}
SWITCH=valegp
MAC=02:be:ef:00:00:01
PORT=5678		# nettest's
DRAIN_S=${DRAIN_S:-2}	# seconds until the guest must have read its ring

# What is set in the guest, a row a line; "-" stands for the driver of the base
# system.  The second one has no bound on the receive task's share.
ROWS="-
itr=0 sc=0 csb=0 rx_share=100
itr=0 sc=0 csb=0 rx_share=20
itr=250 sc=0 csb=0 rx_share=20
itr=0 sc=0 csb=0 rx_share=20 poll=2000
itr=0 sc=0 csb=1 rx_share=20"

usage()
{
	sed -n '7s/^# //p' "$here/goodput.sh" >&2
	exit 2
}

. "$here/guests.subr"

# row_up ROW: the driver and its settings.
row_up()
{
	[ "$1" != - ] || return 0
	guest_run 1 60 "{ kldstat -q -n if_em_pv || { devctl detach em0;
	    kldload $EM_PV; ifconfig em0 inet 192.0.2.1/24 up; }; };
	    sysctl dev.em.0.poll=0$(printf ' dev.em.0.%s' $1)" > "$work/err"
}

# Datagrams that the guest has delivered to sockets.
delivered()
{
	guest_run 1 60 "netstat -s -p udp" |
	    awk '$2 == "delivered" { print $1 }'
}

# measure RATE: print the datagrams delivered of those offered in the time.
measure()
{
	local before sent after

	before=$(delivered)
	sent=$(timeout -s INT $((seconds + 60)) pkt-gen -i $SWITCH:gen -f tx \
	    -l $bytes -w 1 -b 16 -n $(($1 * seconds)) -R $1 \
	    -s 192.0.2.254:1000 -d 192.0.2.1:$PORT -D $MAC 2>&1 |
	    awk '$1 == "Sent" { print $2 }')
	# What the guest still has in its ring counts, too.
	sleep $DRAIN_S
	after=$(delivered)
	[ -n "$before" ] && [ -n "$after" ] &&
	    [ "${sent:-0}" -eq $(($1 * seconds)) ] || {
		complain "$1 a second: pkt-gen sent ${sent:-nothing}," \
		    "delivered from ${before:-?} to ${after:-?}"
		return 1
	}
	awk -v n=$((after - before)) -v s=$seconds \
	    'BEGIN { printf " %9.1f", n / s / 1000 }'
}

bytes=60 mb=512 rates="5000 10000 20000 50000 100000" seconds=2
while getopts l:m:r:t: option; do
	case $option in
	l)	bytes=$OPTARG ;;
	m)	mb=$OPTARG ;;
	r)	rates=$OPTARG ;;
	t)	seconds=$OPTARG ;;
	*)	usage ;;
	esac
done
shift $((OPTIND - 1))
[ $# -eq 1 ] || usage
need_numbers $bytes $mb $rates $seconds
need_image "$1"

work=$(mktemp -d "${TMPDIR:-/tmp}/goodput.XXXXXX") || exit
: > "$work/commands"
trap 'guests_stop; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

kldstat -q -m vmm || kldload vmm || exit
guest_start 1 "$BHYVE" 1 $mb "$1" e1000,$SWITCH:vm1,mac=$MAC && guest_wait 1 &&
    guest_run 1 60 "ifconfig em0 inet 192.0.2.1/24 up;
	{ nettest serve > /dev/null 2>&1 & }" > "$work/err" || exit 1

echo "Frames of $bytes bytes, thousands a second: received by a program, over"
echo "offered."
echo
printf '%-40s' ""
for rate in $rates; do
	awk -v n=$rate 'BEGIN { printf " %9.1f", n / 1000 }'
done
echo
echo "$ROWS" > "$work/rows"
while read -r row <&4; do
	row_up "$row" || {
		complain "$row: $(tail -n 1 "$work/err")"
		exit 1
	}
	printf '%-40s' "$row"
	for rate in $rates; do
		measure $rate || exit 1
	done
	echo
done 4< "$work/rows"
