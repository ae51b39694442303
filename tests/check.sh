#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# check.sh top make groups [plain | threads]: do what "make check" does.  Build,
# run the tests, run them again with sanitizers, check the man pages, and
# compile for FreeBSD.  `plain' ("make test") builds and runs the tests once;
# `threads' runs the tests that have threads under ThreadSanitizer.  The groups
# of groups.sh that are in `groups' run, too.
#
# A failure does not end the run.  The last lines have what each failed test
# wrote at last, after "  | ", name each failure, after "failed: ", and count
# all results.  The exit status is 0 if nothing failed.

top=$1
make=$2
groups=$3
what=${4:-all}
passed=0
failed=0
skipped=0
failures=
begun=$(date +%s)
doing=

# part [what]: say how many seconds the part before has taken, and what it has
# counted, and which one begins, if one does.
part()
{
	local now=$(date +%s) ok bad

	if [ -n "$doing" ]; then
		ok=$((passed - passed_before)) bad=$((failed - failed_before))
		[ $((ok + bad)) -eq 0 ] || doing="$doing: $ok passed, $bad failed"
		echo "check: $doing, in $((now - doing_since)) s"
	fi
	doing=$* doing_since=$now passed_before=$passed failed_before=$failed
	[ -z "$doing" ] || echo "check: $doing: begins after $((now - begun)) s"
}

# fail what: count a failure, and name it in the last lines.
fail()
{
	failed=$((failed + 1))
	failures="${failures}failed: $*
"
}

# ahead argument...: begin to make that for a later part, while tests wait.
# That part says what is wrong.
ahead()
{
	nice -n 19 $make "$@" < /dev/null > /dev/null 2>&1 &
}

# build [argument...]: build everything.  If that fails, no test can run.
build()
{
	wait
	if ! $make "$@" all; then
		fail "$make $* all"
		finish
	fi
}

# kyua_run objtop: run the tests in objtop, without those of other groups, and
# add their results to the counts.
kyua_run()
{
	local db="$1/check.db" kyuafile="$1/tests/Kyuafile" numbers name
	local build=${1##*/} programs

	# Without names Kyua would run all.
	programs=$(sh tests/groups.sh tests "$kyuafile" "$groups")
	set -- ${programs:?}
	rm -f "$db"
	# More than processors: tests wait, too; those with sanitizers, which
	# have few guests, for a greater part of their time.
	kyua -v parallelism=$((${slots:-2} * $(nproc))) test -k "$kyuafile" \
	    -r "$db" "$@"
	# Total, skipped, broken, failed.
	numbers=$(kyua report -r "$db" 2>/dev/null |
	    sed -n -e 's/, [0-9]* expected failures//' \
	    -e '/^Test cases: /s/[^0-9]\{1,\}/ /gp')
	set -- $numbers
	if [ $# -ne 4 ] || [ "$1" -eq 0 ]; then
		fail "$build: no test was run"
		return
	fi
	passed=$((passed + $1 - $2 - $3 - $4))
	skipped=$((skipped + $2))
	[ "$2" -eq 0 ] || kyua report -r "$db" --results-filter=skipped
	[ $(($3 + $4)) -gt 0 ] || return 0
	failed=$((failed + $3 + $4))
	kyua report -r "$db" --verbose --results-filter=broken,failed > "$db.out"
	cat "$db.out"
	failures="$failures$(failures "$build" < "$db.out")
"
}

# failures build: name each failed test of a verbose report, with the last lines
# that the test wrote, without the commands that atf-check executed.
failures()
{
	awk -v build="$1" '
	    function lines() {
		if (n)
			print "  | " name ":"
		for (i = n > 12 ? n - 11 : 1; i <= n; i++)
			print "  | " substr(line[i], 1, 300)
		n = out = 0
	    }
	    /^===> / { lines(); name = $2 }
	    /^Result: / {
		sub(/^Result: */, "")
		print "failed: " build ": " name "  ->  " $0
	    }
	    out && !/^Executing command / { line[++n] = $0 }
	    /^Standard (output|error):$/ { out = 1 }'
}

# one command...: run a check that counts as one test.
one()
{
	if "$@"; then
		passed=$((passed + 1))
		echo "$*  ->  passed"
	else
		fail "$*"
	fi
}

finish()
{
	part
	# A reader of a long log sees its last lines: names come last.
	printf '%s' "$failures" | grep '^  | '
	printf '%s' "$failures" | grep -v '^  | '
	echo "check: $(($(date +%s) - begun)) s in all"
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ]
	exit
}

# The tests that have threads: TSAN_TESTS of bsd.test.mk.
threads()
{
	part build with ThreadSanitizer
	build SAN=thread
	[ "$what" = threads ] || ahead freebsd
	part tests with ThreadSanitizer
	TSAN_OPTIONS=report_thread_leaks=0 kyua_run "$top/build-tsan"
}

cd "$top" || exit 1

if [ "$what" = threads ]; then
	threads
	finish
fi

sh tests/groups.sh wanted "$groups" > /dev/null || exit
part build
build
[ "$what" = plain ] || ahead SAN=address,undefined all
part tests
kyua_run "$top/build"
[ "$what" != plain ] || finish

part build with sanitizers
build SAN=address,undefined
ahead SAN=thread all
part tests with sanitizers
slots=3 \
ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1 \
UBSAN_OPTIONS=print_stacktrace=1 \
    kyua_run "$top/build-san"

threads

part manual pages
for page in $(find share usr.sbin lib sys -name '*.[1-9]'); do
	one mandoc -Tlint -Wwarning "$page"
done

part compile for FreeBSD
wait
one $make freebsd

finish
