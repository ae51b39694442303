#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# paper.sh [option of nettest.sh]... image [image2]
#
# Measures what the papers did of guests in bhyve(8), with nettest.sh, and sets it
# beside their numbers, as "make paper" does on Linux: figures 5 to 8, 10 and 11 of
# ANCS 2013.  Run as root on FreeBSD; gnuplot draws the pictures, if it is there.
#
# The directory paper.out, or PAPER_OUT, keeps nettest/, what nettest.sh left, and
# what bench/paper/report.sh made of it, index.html first.  RESULTS names the
# results.tsv of an earlier nettest.sh: nothing is measured then, and a machine.tsv
# that is there stays, as it may be another machine's.

set -u

here=$(cd "$(dirname "$0")" && pwd)
out=${PAPER_OUT:-paper.out}
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit
measured=${RESULTS:-$out/nettest/results.tsv}

machine()
{
	printf '%s\t%s\n' guest freebsd machine "$(sysctl -n hw.model)" \
	    cpus "$(sysctl -n hw.ncpu)" accel "bhyve" kernel "$(uname -sr)" \
	    date "$(date +%Y-%m-%d)"
}

status=0
[ -n "${RESULTS:-}" ] || {
	# A set that failed does not take the others away.
	sh "$here/nettest.sh" -o "$out/nettest" "$@" || status=$?
	[ $status -ne 2 ] || exit 2
}
[ -r "$measured" ] || {
	echo "paper.sh: $measured: cannot open" >&2
	exit 1
}
awk -f "$here/paper.awk" "$measured" > "$out/results.tsv" || exit
for series in micro livelock switch rtt copy cost instr ew; do
	printf '%s\t%s\n' $series 'bench/freebsd does not measure it'
done > "$out/skipped.tsv"
[ -n "${RESULTS:-}" ] && [ -r "$out/machine.tsv" ] ||
    machine > "$out/machine.tsv"
sh "$here/../paper/report.sh" -s "$out" || exit
exit $status
