#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# probes.sh [rounds]: measure the cost of disabled probes.  Builds the model
# and the switch with and without probes, and has both carry frames of 60 bytes
# from one adapter to another (model.c), in batches of several lengths.  Prints
# for each length thousands of frames a second (the best of the rounds, which
# alternate) and, if valgrind is installed, the instructions a frame; each with
# probes, without, and the difference.
#
# The alignment of functions changes the rate by some percent, more than probes
# do.  Both are therefore built with several alignments; each has a line, and
# the last line is the mean.

set -eu

rounds=${1:-8}
layouts="16 32 64 128"
top=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# build OBJTOP ALIGNMENT [option]: build model into the work directory, without
# the debug information, which valgrind may not be able to read.
build()
{
	local dir

	for dir in . bench; do
		(cd "$top/$dir" && MAKEFLAGS= bmake -m "$top/compat/mk" \
		    OBJTOP="$work/$1.d" OPTFLAGS="-O2 -g -falign-functions=$2" \
		    ONLY_LIBS=yes ${3:-} all) > /dev/null
	done
	strip -g -o "$work/$1" "$work/$1.d/bench/model"
}

# best PROGRAM RATE: run the program; print its rate or RATE, the higher one.
best()
{
	"$work/$1" -b $batch path |
	    awk -F, -v was="$2" '{ r = 1e6 / $7; print (r > was ? r : was) }'
}

# instructions PROGRAM: print the instructions a frame.  Two runs differ only
# in the number of frames; the difference leaves out start and end.
instructions()
{
	local n

	for n in 20480 122880; do
		valgrind --tool=callgrind --callgrind-out-file=/dev/null \
		    "$work/$1" -b $batch -n $n path 2>&1 |
		    sed -n 's/.*Collected : //p'
	done | awk '{ n[NR] = $1 } END { print (n[2] - n[1]) / 102400 }'
}

show()
{
	awk -v what="$1" -v batch=$batch -v with="$2" -v without="$3" 'BEGIN {
		printf "%-16s%6d%12.1f%12.1f%9.2f%%\n", what, batch, with,
		    without, (with / without - 1) * 100
	}'
}

mean()
{
	awk -v batch=$batch '{ sum += $NF }
	    END { printf "%-16s%6d%33.2f%%\n", "  mean", batch, sum / NR }'
}

for layout in $layouts; do
	build probes$layout $layout
	build none$layout $layout WITHOUT_DTRACE=yes
done
printf '%-16s%6s%12s%12s%10s\n' "" batch probes without ""
for batch in 1 16 64 256; do
	for layout in $layouts; do
		with=0
		without=0
		for i in $(seq "$rounds"); do
			with=$(best probes$layout $with)
			without=$(best none$layout $without)
		done
		show "frames/ms, $layout" "$with" "$without"
	done | tee "$work/rates"
	mean < "$work/rates"
done
command -v valgrind > /dev/null || exit 0
for batch in 1 16 64 256; do
	show "instructions" "$(instructions probes16)" \
	    "$(instructions none16)"
done
