#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# count.sh objtop: count the instructions a frame with callgrind; unlike times
# they repeat exactly.  Prints a line for each path of a frame: its name and
# the instructions.  bench/baseline is the output of an earlier run on Debian
# 12, bench/baseline.trixie of one on Debian 13, and the test
# tests/bench/instructions_test.sh compares.  The output begins with what else
# the counts depend on, as "# name value": the compiler, and the C library,
# whose choice of memcpy is made independent of the processor.
#
#	sh bench/count.sh build > bench/baseline

set -eu

FRAMES=20480
bench=$1/bench
out=$(mktemp -d "${TMPDIR:-/tmp}/count.XXXXXX")
trap 'rm -rf "$out"' EXIT

hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX,-ERMS,-FSRM
hwcaps=$hwcaps,-AVX_Fast_Unaligned_Load
export GLIBC_TUNABLES="glibc.cpu.hwcaps=$hwcaps"

# Keep the symbols, but not clang's DWARF 5, which Debian 12's valgrind cannot
# read.
for prog in model switch; do
	llvm-strip -g -o "$out/$prog" "$bench/$prog"
done

# count name program option...
count()
{
	local name=$1 prog=$2

	shift 2
	valgrind --tool=callgrind --callgrind-out-file="$out/callgrind" \
	    --toggle-collect=bench_counted "$out/$prog" -n $FRAMES "$@" \
	    > "$out/log" 2>&1 || {
		cat "$out/log" >&2
		exit 1
	}
	awk -v name="$name" -v frames=$FRAMES '/^summary:/ {
	    printf "%s %.1f\n", name, $2 / frames }' "$out/callgrind"
}

echo "# compiler $(${CC:-clang} --version | head -1)"
echo "# libc $(getconf GNU_LIBC_VERSION)"
count switch-60-256 switch -s 60 -b 256
count switch-60-8 switch -s 60 -b 8
count switch-1514-256 switch -s 1514 -b 256
count switch-guard-60-256 switch -g -s 60 -b 256
count idle-60-256-252 switch -i 252 -s 60 -b 256
count flood-60-256-8 switch -f -d 8 -s 60 -b 256
count flood-60-256-64 switch -f -d 64 -s 60 -b 256
count spread-60-256-8 switch -d 8 -s 60 -b 256
count tx-60-64 model -s 60 -b 64 tx
count tx-60-1 model -s 60 -b 1 tx
count rx-60-64 model -s 60 -b 64 rx
count rx-1514-64 model -s 1514 -b 64 rx
count path-60-64 model -s 60 -b 64 path
count direct-60-64 model -s 60 -b 64 direct
count direct-guard-60-64 model -g -s 60 -b 64 direct
count path-guard-60-64 model -g -s 60 -b 64 path
