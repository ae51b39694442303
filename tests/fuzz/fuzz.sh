#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# fuzz.sh run|merge top: "make fuzz" and "make fuzz-merge".
#
#	run	each of FUZZERS (all) for FUZZ_SECONDS (300), from the corpus
#		that is committed and what earlier runs have found, which stays
#		in build-san/fuzz.  A finding ends the run of its fuzzer and is
#		kept there; the command shown repeats it.
#	merge	makes of both the least corpus that reaches as much, in
#		tests/fuzz/corpus.

set -u

what=$1
top=$2
bin=$top/build-san/tests/fuzz
work=$top/build-san/fuzz
status=0

# The fuzzer writes beside the directory it is in.
mkdir -p "$work"
cd "$work" || exit 1

for name in ${FUZZERS:-model server switch options core}; do
	fuzzer=$bin/${name}_fuzz
	corpus=$top/tests/fuzz/corpus/$name
	options=$(cat "$bin/$name.opts")
	[ ! -e "$bin/$name.dict" ] || options="$options -dict=$bin/$name.dict"
	mkdir -p "$name" "$corpus"
	case $what in
	run)
		echo "$name: ${FUZZ_SECONDS:-300} s"
		if "$fuzzer" $options -max_total_time="${FUZZ_SECONDS:-300}" \
		    -print_final_stats=1 -artifact_prefix="$name-" \
		    "$name" "$corpus" > "$name.log" 2>&1; then
			grep -e DONE -e number_of_executed "$name.log"
		else
			status=1
			grep -e SUMMARY -e 'not so' -e 'Test unit' "$name.log"
			echo "again: cd $work && $fuzzer $options $name-..."
		fi
		;;
	merge)
		rm -rf "$name.min"
		mkdir "$name.min"
		"$fuzzer" $options -merge=1 "$name.min" "$corpus" "$name" \
		    > "$name.log" 2>&1 || status=1
		rm -rf "$corpus"
		mv "$name.min" "$corpus"
		echo "$name: $(ls "$corpus" | wc -l) inputs," \
		    "$(du -sk --apparent-size "$corpus" | cut -f1) KB"
		;;
	esac
done
exit $status
