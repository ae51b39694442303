#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# fuzz.sh run|merge top: "make fuzz" and "make fuzz-merge".
#
#	run	runs each of FUZZERS (all) for FUZZ_SECONDS (300), from the
#		committed corpus, which make has unpacked, and from inputs that
#		earlier runs left in build-san/fuzz.  A finding ends the run of
#		its fuzzer and is kept there; the command printed repeats it.
#		clients_fuzz runs with seeds that begin at the time of day.
#		An input takes milliseconds; NAME.opts allows 100 s, because
#		the machine may be busy.
#	merge	makes of both the smallest corpus with the same coverage, and
#		writes it to tests/fuzz/corpus/NAME.tar.  The same inputs make
#		the same archive.

set -u

what=$1
top=$2
bin=$top/build-san/tests/fuzz
work=$top/build-san/fuzz
status=0

# pack directory archive: of the files of one directory, at least one.
pack()
{
	[ -n "$(ls "$1")" ] && ls "$1" | LC_ALL=C sort |
	    tar -c -f "$2.new" --format=ustar --mtime=@0 --mode=0644 \
	    --owner=0 --group=0 --numeric-owner -C "$1" -T - &&
	    mv "$2.new" "$2"
}

# The fuzzer writes beside the directory it is in.
mkdir -p "$work"
cd "$work" || exit 1

# run_clients: run clients_fuzz, which has neither inputs nor options of
# libFuzzer.
run_clients()
{
	echo "clients: ${FUZZ_SECONDS:-300} s"
	if "$bin/clients_fuzz" -t "${FUZZ_SECONDS:-300}" -s "$(date +%s)" \
	    > clients.log 2>&1; then
		tail -n 1 clients.log
	else
		status=1
		grep -e SUMMARY -e 'does not hold' -e 'waited' clients.log
		echo "again: $bin/clients_fuzz -r 100 -s" \
		    "$(sed -n 's/^seed //p' clients.log | tail -n 1)," \
		    "see $work/clients.log"
	fi
}

for name in ${FUZZERS:-model server switch options core control hostif filter state clients}; do
	if [ "$name" = clients ]; then
		[ "$what" = merge ] || run_clients
		continue
	fi
	fuzzer=$bin/${name}_fuzz
	corpus=$bin/corpus/$name
	archive=$top/tests/fuzz/corpus/$name.tar
	options=$(cat "$bin/$name.opts")
	[ ! -e "$bin/$name.dict" ] || options="$options -dict=$bin/$name.dict"
	mkdir -p "$name"
	case $what in
	run)
		echo "$name: ${FUZZ_SECONDS:-300} s"
		if "$fuzzer" $options -max_total_time="${FUZZ_SECONDS:-300}" \
		    -print_final_stats=1 -artifact_prefix="$name-" \
		    "$name" "$corpus" > "$name.log" 2>&1; then
			grep -e DONE -e number_of_executed "$name.log"
		else
			status=1
			grep -e SUMMARY -e 'does not hold' -e 'Test unit' \
			    "$name.log"
			echo "again: cd $work && $fuzzer $options $name-..."
		fi
		;;
	merge)
		rm -rf "$name.min"
		mkdir "$name.min"
		if "$fuzzer" $options -merge=1 "$name.min" "$corpus" "$name" \
		    > "$name.log" 2>&1 && pack "$name.min" "$archive"; then
			echo "$name: $(ls "$name.min" | wc -l) inputs," \
			    "$(du -sk --apparent-size "$name.min" |
			    cut -f1) KB"
		else
			status=1
			echo "$name: not merged, see $work/$name.log" >&2
		fi
		;;
	esac
done
exit $status
