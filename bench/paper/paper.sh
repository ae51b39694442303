#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# paper.sh objtop: run by "make paper".  Measures what the papers on netmap, VALE
# and the e1000 published, on this project's code, and shows both (report.sh).
#
# Each of ROUNDS rounds measures every part once, so that alternatives take turns;
# the report has medians, and ratios of what was measured in the same round.  A
# part is a function of guests.subr, cost.subr, micro.subr or switch.subr; the list
# below says which figures need it, and how many seconds a round of it takes on two
# processors.  PAPER=fig4,fig10 leaves out all others; it may name parts, too.
# "make demo" is a single round of the parts that have the word demo.
#
# The directory paper/ under objtop keeps results.tsv, a line for each measurement
# (round, series, x, quantity, value; series.tsv lists them), skipped.tsv,
# machine.tsv, what the report made of them, table.txt, which is printed at the end,
# and in run/ the guests' consoles.

set -u

if [ -z "${PAPER_NAMESPACE:-}" ]; then
	for namespace in -n -rn; do
		unshare $namespace true 2> /dev/null || continue
		PAPER_NAMESPACE=yes exec unshare $namespace sh "$0" "$@"
	done
	echo "paper: no network namespace can be made; run it as root" >&2
	exit 1
fi
OBJTOP=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
ROUNDS=${ROUNDS:-3}
PAPER=${PAPER:-all}
out=$OBJTOP/${PAPER_DIR:-paper}
bench=$OBJTOP/bench
work=$out/run
results=$out/results.tsv
skipped=$out/skipped.tsv

# part NAME SECONDS FIGURES COMMAND...: a line of the list of parts.
part()
{
	echo "$*"
}

# The parts, by what they start: programs in guests of lem(4), of other drivers,
# the switch.
parts()
{
	part livelock 20 fig3,demo livelock
	part livelock-virtio 20 fig3 livelock_virtio
	part micro 35 fig4,netmap,table1,demo micro_modes
	part unchanged 8 fig10,demo micro_unchanged
	part lem-vale-1 80 fig4,fig6,fig7,fig8,fig11,table1,survey \
	    guests_lem waiting vale 1 base itr itr4000 itr+sc csb itr+csb
	part lem-vale-2 60 fig4,fig6,fig7,fig8 \
	    guests_lem waiting vale 2 base itr itr+sc csb
	part lem-tap-1 55 fig4,fig8,table1 \
	    guests_lem waiting tap 1 base itr itr4000 itr+sc csb
	part lem-tap-2 60 fig4,fig6,fig7,fig8 \
	    guests_lem waiting tap 2 base itr itr4000 itr+sc csb
	part lem-host 80 fig4,fig8,fig9 \
	    guests_host 1 base itr itr+sc csb itr+csb
	part lem-posted 65 users,fig4,demo \
	    guests_lem posted vale 1 base itr+sc csb
	part lem-82574l 35 users,table1,demo guests_82574l
	part e1000 35 users,fig4,table1,survey,demo \
	    guests_stock e1000 posted vale 1
	part e1000e 35 users,fig4,survey,demo guests_stock e1000e posted vale 1
	part qemu-e1000 35 users,fig4,fig10,table1,demo \
	    guests_stock e1000 qemu tap 1
	part qemu-e1000e 35 users,fig4,demo guests_stock e1000e qemu tap 1
	part virtio-1 40 users,fig6,fig7,fig8,fig9,fig11,table1,survey,demo \
	    guests_virtio 1
	part vhost 35 users,demo guests_vhost
	part virtio-2 25 fig6,fig7,fig8,fig11 guests_virtio 2
	part eastwest 30 eastwest,fig11 guests_eastwest
	part switch-6 11 vale6,vale7,table1 of_switch paper_switch_fig6
	part switch-8 8 vale8 of_switch paper_switch_fig8
	part switch-9 7 vale9 of_switch paper_switch_fig9
	part switch-10 11 vale10 of_switch paper_switch_fig10
	part switch-11 16 vale11 of_switch paper_switch_fig11
	part switch-12 2 vale12 of_switch paper_switch_fig12
	part instr 20 instr instructions
}

# put SERIES X QUANTITY VALUE
put()
{
	[ -n "${4:-}" ] || {
		skip "$1" "$3 was not measured"
		return
	}
	printf '%s\t%s\t%s\t%s\t%s\n' $round "$1" "$2" "$3" "$4" >> "$results"
}

# latest SERIES QUANTITY: print what was put last.
latest()
{
	awk -F '\t' -v series="$1" -v quantity="$2" '
	    $2 == series && $4 == quantity { value = $5 }
	    END { print (value == "" ? "-" : value) }' "$results"
}

# in_words SERIES: print what it is called.
in_words()
{
	awk -v series="$1" "$(cat "$here/words.awk")
	    BEGIN { print series_words(series) }"
}

# skip SERIES REASON: say why a series, or all that begin so, is missing.
skip()
{
	printf '%s\t%s\n' "$1" "$(printf '%s' "$2" | tr '\t\n' '  ')" >> "$skipped"
	say "$(in_words "$1") skipped: $2"
}

# wanted WORDS: whether PAPER names one of them.
wanted()
{
	local figure

	[ "$PAPER" != all ] || return 0
	for figure in $(echo "$1" | tr , ' '); do
		case ,$PAPER, in
		*,$figure,*)	return 0 ;;
		esac
	done
	return 1
}

# check_words: exit if a word of PAPER is no figure, nor a part.
check_words()
{
	local known word

	known=$(parts | awk '{ gsub(",", "\n", $3); print $1 "\n" $3 }' |
	    sort -uV)
	for word in $(echo "$PAPER" | tr , ' '); do
		[ "$word" = all ] || echo "$known" | grep -qx -- "$word" || {
			echo "paper: $word: no such figure; there are" $known >&2
			exit 2
		}
	done
}

# What machine.tsv says.
machine()
{
	printf '%s\t%s\n' guest linux \
	    machine "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)" \
	    cpus "$(nproc)" accel "$(accel_text)" kernel "$(uname -sr)" \
	    date "$(date +%Y-%m-%d)" commit "$(git -C "$here" rev-parse --short \
	    HEAD 2> /dev/null || echo unknown)" rounds "$ROUNDS"
}

# try COMMAND...: run it, and forget what it put if it fails.
try()
{
	local status=1

	cp "$results" results.before
	cp "$skipped" skipped.before
	"$@" && status=0
	guests_stop
	[ $status -eq 0 ] || {
		mv results.before "$results"
		mv skipped.before "$skipped"
	}
	return $status
}

# of_switch FUNCTION: call one of switch.subr, which stops its own processes.
of_switch()
{
	(
		. "$here/switch.subr"
		trap stop_all EXIT
		trap 'exit 1' INT TERM
		"$1"
		# It has said what it could not measure.
		:
	)
}

# instructions: those of a frame, which are the same each time.
instructions()
{
	local name value

	[ $round -eq 1 ] || return 0
	sh "$here/../count.sh" "$OBJTOP" > count.out 2>&1 || return
	while read -r name value <&5; do
		[ "$name" = "#" ] || put instr/$name - instructions $value
	done 5< count.out
	say "instructions for a frame sent: $(latest instr/tx-60-64 instructions)"
}

# part_words NAME: print what a part measures.
part_words()
{
	case $1 in
	livelock)	echo "guests that are sent more than they can take" ;;
	livelock-virtio) echo "the same with virtio-net" ;;
	micro)		echo "guests without a kernel, in each mode of the driver" ;;
	unchanged)	echo "the same on QEMU's own e1000" ;;
	lem-host)	echo "a Linux guest with lem, and its host" ;;
	lem-82574l)	echo "two Linux guests, lem on valed's e1000e" ;;
	lem-posted)	echo "two Linux guests, lem on valed's e1000" ;;
	lem-*)		echo "two Linux guests, lem, each access an exit: $1" ;;
	e1000|e1000e)	echo "two Linux guests, Linux's $1 on valed's" ;;
	qemu-*)		echo "two Linux guests, Linux's driver on QEMU's ${1#qemu-}" ;;
	virtio-*)	echo "two Linux guests, virtio-net, processors: ${1#*-}" ;;
	vhost)		echo "two Linux guests, virtio-net on vhost" ;;
	eastwest)	echo "two Linux guests, offloads one by one" ;;
	switch-*)	echo "the switch alone" ;;
	instr)		echo "instructions a frame" ;;
	esac
}

# run_parts: all of a round.
run_parts()
{
	local all command figures n=0 name rounds= seconds

	all=$(wc -l < parts)
	[ "$ROUNDS" -eq 1 ] || rounds="round $round of $ROUNDS, "
	while read -r name seconds figures command <&4; do
		n=$((n + 1))
		say "${rounds}part $n of $all: $(part_words "$name")"
		# A guest may not have started.
		try $command || try $command ||
		    skip "$name" "it failed; see $PWD"
		progress_done "$seconds"
	done 4< parts
}

. "$OBJTOP/tests/guest/guest.subr"
. "$OBJTOP/tests/guest/micro.subr"
. "$here/../progress.subr"
. "$here/guests.subr"
. "$here/cost.subr"
. "$here/micro.subr"

missing=$(guest_missing; micro_missing)
[ -z "$missing" ] || { echo "paper: $missing" >&2; exit 1; }
check_words
mkdir -p "$out/run" && cd "$out/run" || exit 1
stop_all
rm -f ./* "$out"/*.*
trap 'stop_all; exit 130' INT TERM
parts | while read -r name seconds figures command; do
	! wanted "$name,$figures" || echo "$name $seconds $figures $command"
done > parts
: > "$results"
: > "$skipped"
machine > "$out/machine.tsv"
progress_begin $(($(awk '{ n += $2 } END { print n }' parts) * ROUNDS))
host_up || { echo "paper: no TAP interface or bridge; see $PWD" >&2; exit 1; }
cost_why=$(cost_missing)
round=1
while [ $round -le "$ROUNDS" ]; do
	run_parts
	round=$((round + 1))
done
stop_all
short=
[ "$PAPER" = all ] || short=-s
sh "$here/report.sh" $short "$out" > summary || exit
{
	awk -f "$here/words.awk" -f "$here/table.awk" FS='\t' what=curves "$here/curves.tsv" \
	    FS=, what=medians "$out/medians.csv"
	echo
	echo "All guests ran on $(accel_text)."
	echo
	cat summary
	echo "$(($(date +%s) - begun)) seconds"
} > "$out/table.txt"
cat "$out/table.txt"
