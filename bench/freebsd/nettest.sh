#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# nettest.sh [-c processors] [-d directions] [-m megabytes] [-n rounds]
#     [-o directory] [-s sets] [-t seconds] image [image2]
#
# Measures two guests of bhyve(8), and the host, with nettest and pkt-gen: what
# a program sends, and what a program at the other end receives.  Prints a table
# for each direction, with ratios to the row BASE.  Run as root on FreeBSD.
#
#	-c	processors of a guest; a list runs everything for each (1)
#	-d	directions: guest (guest 2 sends to guest 1), host (it sends to
#		the host) and from-host (the host sends to it); all by default
#	-m	memory of a guest (512)
#	-n	rounds; the table has medians (3)
#	-o	directory for results.tsv, table.txt, and the consoles of guests
#		that did not come to an end, SET-PROCESSORS.N (nettest.out)
#	-s	sets of rows, below (all)
#	-t	seconds of a measurement (2)
#
# The image is a disk with FreeBSD that boots with a read-only root file system
# and gives root a shell on its serial console, without a password.  It holds
# if_em_pv.ko, nettest and, if its figures are wanted, pkt-gen.  Without a second
# image both guests use the first.
#
# Environment:
#
#	BHYVE		this project's bhyve (/usr/local/sbin/bhyve)
#	TREE_BHYVE	the system's (/usr/sbin/bhyve)
#	BHYVES		more of them, words NAME=PROGRAM[,OPTION]..., each with
#			the sets NAME-e1000-vale and NAME-virtio-vale; the
#			options are its e1000's, of which csb=true adds rows
#	LOADER		loads a virtual machine in place of bhyveload(8); called
#			with its name, its megabytes and its image
#	EM_PV		the module in the guest (if_em_pv)
#	BOOT_S		seconds until a guest must have booted (300)
#
# The guests have 192.0.2.1 and 192.0.2.2, the host 192.0.2.254.

set -u

here=$(cd "$(dirname "$0")" && pwd)
BHYVE=${BHYVE:-/usr/local/sbin/bhyve}
TREE_BHYVE=${TREE_BHYVE:-/usr/sbin/bhyve}
EM_PV=${EM_PV:-if_em_pv}
SWITCH=valent
BHYVES="tree=$TREE_BHYVE ${BHYVES:-}"
# What TCP has learned in one row must not help in the next one.
HOSTCACHE=net.inet.tcp.hostcache.enable

# A set is one boot of both guests: bhyve, adapter, backend.  Its rows are what
# is set in the guests, one after the other.
ALL_SETS="e1000-vale e1000-tap tree-e1000-vale virtio-vale tree-virtio-vale \
tree-virtio-tap"
for word in ${BHYVES#* }; do
	ALL_SETS="$ALL_SETS ${word%%=*}-e1000-vale ${word%%=*}-virtio-vale"
done
BASE="itr=0 sc=0 csb=0"

# rows SET: print a row a line; "-" stands for the driver of the base system.
rows()
{
	case $1 in
	e1000-*)
		cat <<-EOF
		-
		$BASE
		itr=250 sc=0 csb=0
		itr=250 sc=1 csb=0
		itr=0 sc=1 csb=0 poll=2000
		itr=0 sc=0 csb=1
		itr=250 sc=0 csb=1
		EOF
		;;
	*-e1000-*)
		cat <<-EOF
		-
		$BASE
		itr=0 sc=1 csb=0
		itr=250 sc=1 csb=0
		EOF
		case $options in
		*,csb=true*)
			echo "itr=0 sc=0 csb=1"
			;;
		esac
		;;
	*)
		echo -
		;;
	esac
}

usage()
{
	sed -n '7,8s/^# //p' "$here/nettest.sh" >&2
	exit 2
}

. "$here/guests.subr"

say()
{
	printf '%5ds  %s\n' $(($(date +%s) - begun)) "$*" >&2
}

# host_up SET: the host's end, with its address; sets port1 and port2, the
# backends of the guests.
host_up()
{
	local word

	case $1 in
	*-vale)
		# One end is on the switch, the other the host's.
		host_if=$(ifconfig epair create) &&
		    ifconfig $host_if up promisc &&
		    ifconfig ${host_if%a}b inet 192.0.2.254/24 up || return
		for word in -rxcsum -txcsum -rxcsum6 -txcsum6; do
			ifconfig ${host_if%a}b $word 2> /dev/null
		done
		valectl -a $SWITCH:$host_if > "$work/err" 2>&1 || {
			complain "$(tail -n 1 "$work/err")"
			return 1
		}
		port1=$SWITCH:vm1
		port2=$SWITCH:vm2
		;;
	*-tap)
		sysctl net.link.tap.up_on_open=1 > /dev/null
		port1=$(ifconfig tap create) && port2=$(ifconfig tap create) &&
		    host_if=$(ifconfig bridge create) &&
		    ifconfig $host_if addm $port1 addm $port2 up &&
		    ifconfig $host_if inet 192.0.2.254/24
		;;
	esac
}

host_down()
{
	case $host_if in
	epair*)
		valectl -d $SWITCH:$host_if > /dev/null 2>&1
		;;
	bridge*)
		ifconfig $port1 destroy
		ifconfig $port2 destroy
		;;
	esac
	[ -z "$host_if" ] || ifconfig $host_if destroy
	host_if=
}

# setup N: nettest's server, and a place for files, in guest N.
setup()
{
	guest_run $1 $ANSWER_S "mount -t tmpfs tmpfs /tmp;
	    sysctl net.inet.icmp.icmplim=0 $HOSTCACHE=0 > /dev/null;
	    { nettest serve > /dev/null 2>&1 & }"
}

# row_up ROW: the driver and its settings in both guests.
row_up()
{
	local n settings

	for n in 1 2; do
		case $1 in
		-)
			settings=:
			;;
		*)
			settings="{ kldstat -q -n if_em_pv || { devctl detach em0;
			    kldload $EM_PV; }; } > /dev/null;
			    sysctl dev.em.0.poll=0$(printf ' dev.em.0.%s' $1) \
			    > /dev/null"
			;;
		esac
		guest_run $n $ANSWER_S "$settings 2>&1" > "$work/err" || {
			! guests_answer ||
			    complain "guest $n, $1: $(tail -n 1 "$work/err")"
			return 1
		}
		guest_run $n $ANSWER_S \
		    "ifconfig $nic inet 192.0.2.$n/24 up" || return
	done
	# Both are there, and both know each other's address.
	guest_run 2 $ANSWER_S "until ping -c 1 -t 1 192.0.2.1 &&
	    ping -c 1 -t 1 192.0.2.254; do sleep 1; done > /dev/null" || {
		! guests_answer ||
		    complain "$1: guest 1 and the host do not answer guest 2"
		return 1
	}
}

# nettest_to DIRECTION arguments: run nettest where the direction begins.
nettest_to()
{
	local test=$2 peer

	case $1 in
	guest)
		peer=192.0.2.1
		;;
	host)
		peer=192.0.2.254
		;;
	from-host)
		peer=192.0.2.2
		;;
	esac
	shift 2
	if [ $peer = 192.0.2.2 ]; then
		host_run $((seconds + ANSWER_S)) nettest $test $peer "$@"
	else
		guest_run 2 $((seconds + ANSWER_S)) "nettest $test $peer $*"
	fi
}

# A test sets `line' to what says its figures; none says that there are none.

# field NAME LINE: the number after NAME=.
field()
{
	printf '%s\n' "$2" | sed -n "s/.*[ ]$1=\([0-9.]*\).*/\1/p" | tail -n 1
}

# result TEST SENT RECEIVED SECONDS: add a line, with rates.
result()
{
	awk -v head="$set	$cpus	$row	$direction	$round	$1" \
	    -v sent="${2:--}" -v received="${3:--}" -v s="${4:-0}" 'BEGIN {
		OFS = "\t"
		print head, (s > 0 && sent != "-" ? sent / s : "-"),
		    (s > 0 && received != "-" ? received / s : "-")
	}' >> "$results"
}

udp()
{
	line=$(nettest_to $direction udp $1 $seconds)
	result udp$1 "$(field sent "$line")" "$(field received "$line")" \
	    "$(field seconds "$line")"
}

tcp()
{
	line=$(nettest_to $direction tcp $seconds)
	result tcp - "$(field bytes "$line")" "$(field seconds "$line")"
}

rr()
{
	line=$(nettest_to $direction rr $seconds)
	result rr - "$(field transactions "$line")" "$(field seconds "$line")"
}

# pktgen_start NAME OPTIONS: print a command that starts pkt-gen in the background,
# with its output in a file of that name, and waits until it has its rings.  That
# takes the first one of a boot seconds, for netmap's memory.
pktgen_start()
{
	# The last one's file says that it was ready.
	echo "out=\${TMPDIR:-/tmp}/$1; rm -f \$out;
	    pkt-gen -i netmap:$nic $2 > \$out 2>&1 & gen=\$!;
	    until grep -q Ready \$out || ! kill -0 \$gen; do sleep 0.1; done \
	    2> /dev/null"
}

# Prints a command that ends it, and shows its figures.
pktgen_stop()
{
	echo "kill -INT \$gen 2> /dev/null; wait \$gen; tail -n 3 \$out"
}

# packets WORD: how many a pkt-gen says, on standard input, after that word.
packets()
{
	sed -n "s/.*$1 \([0-9]*\) .*/\1/p; s/.*$1 nothing.*/0/p"
}

# pktgen NAME OPTIONS: 60-byte frames from one adapter in netmap mode to the
# other.
pktgen()
{
	local received s sent

	guest_run 1 $ANSWER_S "$(pktgen_start rx "-f rx -w 1")" > "$work/err"
	line=$(guest_run 2 $((seconds + ANSWER_S)) "$(pktgen_start tx \
	    "-f tx -l 60 -w 2 -D 02:be:ef:00:00:01 $2"); sleep $seconds;
	    $(pktgen_stop)")
	s=$(printf '%s\n' "$line" | sed -n 's/.* in \([0-9.]*\) sec.*/\1/p')
	sent=$(printf '%s\n' "$line" | packets Sent)
	received=$(guest_run 1 $ANSWER_S "$(pktgen_stop)" | packets Received)
	result $1 "$sent" "$received" "${s:-$seconds}"
}

# try TEST...: make its line of results; fails if a guest cannot be used any more.
try()
{
	"$@"
	if [ -n "$line" ]; then
		guests_run
	else
		guests_answer
	fi
}

measure()
{
	for direction in $directions; do
		try udp 8 && try udp 1460 && try tcp && try rr || return
		[ $direction = guest ] && $has_pktgen || continue
		try pktgen pkt-gen-1 "-b 1" && try pktgen pkt-gen "" || return
	done
}

# boot SET CPUS: run its rows.
boot()
{
	local bhyve=$BHYVE device=e1000 options= word

	set=$1 cpus=$2 nic=em0
	for word in $BHYVES; do
		case $set in
		${word%%=*}-*)
			bhyve=${word#*=}
			options=${bhyve#"${bhyve%%,*}"}
			bhyve=${bhyve%%,*}
			;;
		esac
	done
	case $set in
	*virtio-*)
		device=virtio-net nic=vtnet0 options=
		;;
	esac
	say "$set, processors of a guest: $cpus"
	host_up $set &&
	    guest_start 1 "$bhyve" $cpus $mb "$image1" \
	    $device,$port1,mac=02:be:ef:00:00:01$options &&
	    guest_start 2 "$bhyve" $cpus $mb "$image2" \
	    $device,$port2,mac=02:be:ef:00:00:02$options &&
	    guest_wait 1 && guest_wait 2 && setup 1 && setup 2 || return
	has_pktgen=false
	guest_run 2 30 "command -v pkt-gen > /dev/null" && has_pktgen=true
	rows $set > "$work/rows"
	round=1
	while [ $round -le $rounds ]; do
		while read -r row <&4; do
			# The base system's driver does not come back.
			[ $round -eq 1 ] || [ "$row" != - ] ||
			    [ $(wc -l < "$work/rows") -eq 1 ] || continue
			say "round $round: $row"
			row_up "$row" && measure || return
		done 4< "$work/rows"
		round=$((round + 1))
	done
}

finish()
{
	guests_stop
	host_down
	[ -z "$server" ] || kill $server
	server=
	[ -z "$hostcache" ] || sysctl $HOSTCACHE=$hostcache > /dev/null
	hostcache=
}

cpu_counts=1 directions="guest host from-host" mb=512 rounds=3
out=nettest.out sets=$ALL_SETS seconds=2
while getopts c:d:m:n:o:s:t: option; do
	case $option in
	c)	cpu_counts=$OPTARG ;;
	d)	directions=$OPTARG ;;
	m)	mb=$OPTARG ;;
	n)	rounds=$OPTARG ;;
	o)	out=$OPTARG ;;
	s)	sets=$OPTARG ;;
	t)	seconds=$OPTARG ;;
	*)	usage ;;
	esac
done
shift $((OPTIND - 1))
[ $# -eq 1 ] || [ $# -eq 2 ] || usage
image1=$1 image2=${2:-$1}
need_numbers $cpu_counts $mb $rounds $seconds
for word in $sets; do
	case " $ALL_SETS " in
	*" $word "*)
		;;
	*)
		complain "$word: the sets are $ALL_SETS"
		exit 2
		;;
	esac
done
for word in $directions; do
	case $word in
	guest | host | from-host)
		;;
	*)
		complain "$word: the directions are guest, host and from-host"
		exit 2
		;;
	esac
done
need_image "$image1" "$image2"

mkdir -p "$out" || exit
out=$(cd "$out" && pwd)
rm -f "$out"/*-*.[12]
results=$out/results.tsv
work=$(mktemp -d "${TMPDIR:-/tmp}/nettest.XXXXXX") || exit
: > "$work/commands"
: > "$results"
begun=$(date +%s)
host_if= server= hostcache= failed=0
trap 'finish; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

kldstat -q -m vmm || kldload vmm || exit
hostcache=$(sysctl -n $HOSTCACHE)
sysctl $HOSTCACHE=0 > /dev/null || exit
nettest serve > /dev/null 2>&1 &
server=$!
for n in $cpu_counts; do
	for word in $sets; do
		boot $word $n || {
			failed=1
			guests_keep "$out/$word-$n."
			complain "$word: stopped; consoles: $out/$word-$n.*"
		}
		guests_stop
		host_down
	done
done
awk -v base="$BASE" -f "$here/table.awk" "$results" > "$out/table.txt"
cat "$out/table.txt"
say "table.txt and results.tsv are in $out"
exit $failed
