#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# bench.sh objtop: run by "make bench".  Measures the switch and the model
# beside bare loops (switch.c, model.c, segments.c), ports of another process
# beside those of one (remote.c), then other switches (peers.subr), attached
# interfaces (attach.subr), guests with a TAP interface (tap.subr), what pairs of
# guests cost their host (paper/cost.subr), driver, model and port beside DPDK's
# (dpdk.subr), and a single frame among many adapters (single.c) and through
# vhost-user (vhost.c), and prints tables.
#
# Each of ROUNDS rounds measures everything, alternatives one after the other,
# and says how long the rest will take (progress.subr); the table shows medians.
# The directory bench/ under objtop keeps results.csv and single.csv, with a line
# for each measurement, table.txt, and the plots, *.svg and *.png.

set -u

ROUNDS=${ROUNDS:-5}
bench=$1/bench
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/bench.XXXXXX")
trap 'stop_all; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

results=$bench/results.csv
skipped=$work/skipped
: > "$skipped"

skip()
{
	echo "$1: $2" >> "$skipped"
	say "$1 skipped: $2"
}

# measure program...: add the line that the program prints to the results.
measure()
{
	timeout 60 "$@" >> "$results" 2> "$work/err" ||
	    skip "$(basename "$*")" "$(cat "$work/err")"
}

. "$here/progress.subr"
. "$here/peers.subr"
. "$here/attach.subr"
. "$here/tap.subr"
. "$here/dpdk.subr"

BATCHES="1 2 4 8 16 32 64 128 256 512 1024"
SIZES="60 256 1514 9000"
PORTS="1 2 4 8 16 32 64 128 253"

sweep()
{
	local b s n subject senders

	for s in $SIZES; do
		for b in $BATCHES; do
			measure "$bench/switch" -s $s -b $b
		done
	done
	for n in $PORTS; do
		measure "$bench/switch" -d $n
		measure "$bench/switch" -f -d $n
	done
	for n in 10 100 252; do
		measure "$bench/switch" -i $n
	done
	senders=2
	while [ $senders -le "$(nproc)" ] && [ $senders -le 127 ]; do
		measure "$bench/switch" -t $senders
		senders=$((senders * 2))
	done
	for s in $SIZES; do
		measure "$bench/model" -s $s direct
	done
	for s in 64 1460; do
		for b in 1 16 64; do
			measure "$bench/remote" -s $s -b $b
		done
	done
	for subject in cut uncut; do
		for b in 1 8; do
			measure "$bench/segments" -b $b $subject
		done
	done
}

models()
{
	local b s subject

	for subject in tx rx path; do
		for s in $SIZES; do
			for b in 1 4 16 64 256; do
				measure "$bench/model" -s $s -b $b $subject
			done
		done
	done
}

# single: the time of a frame, alone and among many adapters.
single()
{
	local busy idle kind results=$bench/single.csv

	for kind in msix msi; do
		measure "$bench/single" $kind "$valed"
	done
	measure "$bench/single" -o ,poll=100 msix "$valed"
	single_vhost
	single_passt
	for busy in 0 4; do
		for idle in 0 60 240; do
			[ $busy$idle = 00 ] || measure "$bench/single" \
			    -a $busy -i $idle msix "$valed"
		done
	done
}

# costs: what a datagram and a transaction of two guests cost the host, by driver and
# adapter.
costs()
{
	PAPER=users PAPER_DIR=bench/users ROUNDS=1 \
	    sh "$here/paper/paper.sh" "${bench%/bench}" > "$work/users" 2>&1 || {
		skip costs "$(tail -n 1 "$work/users")"
		return
	}
	awk -F '\t' '$4 ~ /^host_(f[15]0|t50)$/ {
		sub(/host_/, "", $4)
		sub(/users./, "", $2)
		printf "cost-%s-%s,%d,1,1,1,0,%.0f,,\n", $4, $2,
		    $4 ~ /f/ ? 1460 : 1, $5 * 1e3
	    }' "$bench/users/results.tsv" >> "$results"
	sed 's/\t/: /' "$bench/users/skipped.tsv" >> "$skipped"
}

# parts: print the parts of a round: how many seconds one takes on two
# processors, its function, and what that measures.
parts()
{
	cat <<-EOF
	60 sweep the switch
	10 models the model
	20 peers other switches
	10 attached attached interfaces
	40 tap guests and TAP interfaces
	260 costs what guests cost their host
	10 dpdk DPDK's virtio-user and vhost
	10 single a single frame
	EOF
}

valed=$1/usr.sbin/valed/valed
: > "$bench/single.csv"
echo "subject,bytes,batch,destinations,senders,idle,ns,bare_ns,ratio" \
    > "$results"
parts > "$work/parts"
progress_begin $(($(awk '{ n += $1 } END { print n }' "$work/parts") * ROUNDS))
round=1
while [ $round -le "$ROUNDS" ]; do
	while read -r seconds command what <&4; do
		say "round $round of $ROUNDS: $what"
		$command
		progress_done "$seconds"
	done 4< "$work/parts"
	round=$((round + 1))
done
awk -F, -v machine="$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)" \
    -v cores="$(nproc)" -f "$here/median.awk" \
    -f "$here/table.awk" "$results" > "$bench/table.txt"
awk -F, -f "$here/median.awk" -f "$here/single.awk" "$bench/single.csv" \
    >> "$bench/table.txt"
[ ! -s "$skipped" ] || {
	echo
	echo "Skipped:"
	sort -u "$skipped" | sed 's/^/  /'
} >> "$bench/table.txt"
awk -F, -v dir="$work" -f "$here/curves.awk" "$results"
for term in svg png; do
	(cd "$work" && gnuplot -e "term='$term'; out='$bench'" \
	    "$here/plot.gp") || skip "plots" "gnuplot failed"
done
say "done; tables, CSV and plots are in $bench"
cat "$bench/table.txt"
