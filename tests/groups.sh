#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Groups of tests that take long and depend on few files.  "make check" leaves
# out those whose files are the same as when .ci/run passed, "make check-all"
# none.  groups.table has each group's tests and files.  groups.passed has, for
# a group, a sum of the files with which .ci/run has passed last, and the date.
#
#	groups.sh wanted WHICH	print the groups to run, a line each, and to
#				stderr why others are left out.  WHICH is all,
#				names with commas, changed (the groups whose
#				files have changed, or that groups.passed does
#				not have), or due (these, and those that passed
#				more than three days ago)
#	groups.sh tests KYUAFILE WHICH
#				print the test programs of a Kyuafile of
#				bsd.test.mk without those of other groups
#	groups.sh passed WHICH	note in groups.passed that these have passed

set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
table=$top/tests/groups.table
passed=$top/tests/groups.passed

die()
{
	echo "groups.sh: $*" >&2
	exit 2
}

# names group kind: print the names of a group's tests or files, a line each.
names()
{
	awk -v group="$1" -v kind="$2" '$1 == group && $2 == kind {
	    for (i = 3; i <= NF; i++) print $i }' "$table"
}

# The names of all groups.
groups()
{
	awk '!/^#/ && NF && !seen[$1]++ { print $1 }' "$table"
}

# sum group: print a sum of the names and contents of its files.
sum()
{
	local files file

	files=$(names "$1" files)
	cd "$top"
	for file in $files; do
		[ -e "$file" ] || die "groups.table: there is no $file"
	done
	find $files -name __pycache__ -prune -o -type f -print0 |
	    LC_ALL=C sort -zu | xargs -0 sha256sum | sha256sum |
	    cut -d ' ' -f 1
}

# left_out group days: succeed if it has passed with the same files, and not
# more than this many days ago.  Say when.
left_out()
{
	local date

	date=$(awk -v group="$1" -v sum="$(sum "$1")" \
	    '$1 == group && $2 == sum { print $3 }' "$passed" 2> /dev/null)
	[ -n "$date" ] || return
	[ $(($(date +%s) - $(date -d "$date" +%s))) -le $(($2 * 86400)) ] ||
	    return
	echo "tests of $1 are left out: they passed with the same files" \
	    "on $date" >&2
}

wanted()
{
	local group days

	case $1 in
	all)	groups ;;
	changed | due)
		[ "$1" = due ] && days=3 || days=100000
		for group in $(groups); do
			left_out "$group" $days || echo "$group"
		done ;;
	*)	for group in $(echo "$1" | tr , ' '); do
			groups | grep -x -e "$group" ||
			    die "$group: there is no such group of tests"
		done ;;
	esac
}

# listed kyuafile directory: print its programs, as Kyua names them.  Kyua would
# run each of them for that.
listed()
{
	local directory=$2 name

	sed -n "s/^atf_test_program{name=\"\([^\"]*\)\".*/\1/p" "$1" |
	    sed "s,^,$directory,"
	for name in $(sed -n 's/^include("\(.*\)\/Kyuafile").*/\1/p' "$1"); do
		listed "${1%/*}/$name/Kyuafile" "$directory$name/"
	done
}

# programs kyuafile group...: print the programs but those of other groups.
programs()
{
	local kyuafile=$1 group left=

	shift
	for group in $(groups); do
		case " $* " in
		*" $group "*) ;;
		*)	left="$left $(names "$group" tests)" ;;
		esac
	done
	listed "$kyuafile" "" | awk -v left="$(echo $left)" '
	    BEGIN { n = split(left, a); for (i = 1; i <= n; i++) out[a[i]] }
	    { at = $1; while (!(at in out) && sub(/\/[^\/]*$/, "", at)) ; }
	    !(at in out)'
}

note_passed()
{
	local group now

	{
		echo '# Written by .ci/run: groups.sh.'
		for group in $(groups); do
			case " $* " in
			*" $group "*)
				now=$(sum "$group")
				echo "$group $now $(date -u +%Y-%m-%d)" ;;
			*)	grep "^$group " "$passed" 2> /dev/null || : ;;
			esac
		done
	} > "$passed.new"
	mv "$passed.new" "$passed"
}

case $#,${1:-} in
2,wanted)	wanted "$2" ;;
3,tests)	which=$(wanted "$3" 2> /dev/null)
		programs "$2" $which ;;
2,passed)	which=$(wanted "$2" 2> /dev/null)
		note_passed $which ;;
*)		die "usage: wanted WHICH | tests KYUAFILE WHICH |" \
		    "passed WHICH" ;;
esac
