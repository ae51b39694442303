#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# upstream.sh [-s series] [-x command] source
#
# Lays this project into a FreeBSD source tree, as a series of commits to the
# branch that is checked out in `source', a clean clone of FreeBSD's repository.
# Each commit builds; -x runs a command in the source tree after each, and ends
# the series if it fails.  The author is the user of git(1) there.
#
# The series is `large', the default, which adds this tree's files, or `small',
# which edits FreeBSD's.  docs/upstream.md describes both.  FreeBSD's own files are
# edited by the functions below, which fail if a file is not as they expect.

set -eu
LC_ALL=C
export LC_ALL

die()
{
	echo "upstream.sh: $*" >&2
	exit 1
}

usage()
{
	echo "usage: upstream.sh [-s large | small] [-x command] source" >&2
	exit 2
}

check=:
series=large
while getopts s:x: option; do
	case $option in
	s)	series=$OPTARG ;;
	x)	check=$OPTARG ;;
	*)	usage ;;
	esac
done
shift $((OPTIND - 1))
here=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 1 ] || usage
case $series in
large | small)	;;
*)	usage ;;
esac
top=$(cd "$here/../.." && pwd)
cd "$1" || exit 1
for f in usr.sbin/bhyve/bhyverun.c sys/dev/netmap/netmap_vale.c \
    share/man/man4/Makefile; do
	[ -f $f ] || die "$1: not a FreeBSD source tree: no $f"
done
git rev-parse -q --verify HEAD > /dev/null || die "$1: not a git repository"
[ -z "$(git status --porcelain)" ] || die "$1: has changes"

# fail MESSAGE: end; commits made so far stay, other changes do not.
fail()
{
	git reset -q --hard
	git clean -qfd
	die "$@"
}

# put DIRECTORY FILE...: copy files of this tree.  bhyve is compiled with the
# kernel's headers at hand, so its files take the kernel's names (atomic(9),
# KASSERT(9)) from a header of another name.
put()
{
	local dir=$1 f

	shift
	mkdir -p "$dir"
	for f; do
		if [ "$dir" = usr.sbin/bhyve ]; then
			sed 's,<sys/systm.h>,"kernel_names.h",' "$top/$f" \
			    > "$dir/${f##*/}"
		else
			cp "$top/$f" "$dir/"
		fi
	done
}

# edit FILE EXPRESSION...: apply sed(1) expressions, each of which must match.
edit()
{
	local file=$1 expression

	shift
	[ -f "$file" ] || fail "no $file"
	for expression; do
		sed -e "$expression" "$file" > "$file.new"
		! cmp -s "$file" "$file.new" ||
			fail "$file: nothing matches $expression"
		mv "$file.new" "$file"
	done
}

# page FILE EXPRESSION...: edit a manual page, and set its date.
page()
{
	edit "$@"
	sed "s/^\.Dd .*/.Dd $(date '+%B %-d, %Y')/" "$1" > "$1.new"
	mv "$1.new" "$1"
}

# list FILE VARIABLE WORD...: insert words in a makefile's sorted list, a word a
# line, which begins where the variable is set first.
list()
{
	local file=$1 variable=$2 word

	shift 2
	for word; do
		awk -v variable="$variable" -v word="$word" '
		function entry(line) {
			sub(/^[^ \t]*=/, "", line)
			gsub(/[ \t\\]/, "", line)
			return (line)
		}
		# As the line `like`, which ends with a backslash or not.
		function add(like, last,   indent, gap) {
			match(like, /^[ \t]*/)
			indent = substr(like, 1, RLENGTH)
			gap = " "
			if (like ~ /\t\\$/)
				for (gap = "\t"; 8 + length(word) + \
				    8 * length(gap) < 32; )
					gap = gap "\t"
			print indent word (last ? "" : gap "\\")
			done = 1
		}
		!on && $0 ~ "^" variable "[+?]?=.*\\\\$" { on = 1 }
		on && !done {
			if ($0 !~ /=/ && entry($0) > word)
				add($0, 0)
			else if ($0 !~ /\\$/) {
				print $0 " \\"
				add(previous, 1)
				next
			}
			previous = $0
		}
		{ print }
		END { exit !done }' "$file" > "$file.new" ||
			fail "$file: no list $variable"
		mv "$file.new" "$file"
	done
}

# commit SUBJECT: commit all changes; the message's body is standard input.
# Print the lines added and removed outside of tests, as docs/upstream.md has.
commit()
{
	git add -A
	{ echo "$1"; echo; cat; } | git commit -q -F -
	git show --numstat --format=%h | awk -v subject="$1" '
		NR == 1 { id = $1 }
		NR > 1 && $3 !~ /tests/ {
			added += $1
			removed += $2
		}
		END { printf("%s +%d -%d %s\n", id, added, removed, subject) }'
	sh -c "$check" < /dev/null || die "$1: the command failed"
}

# sources MAKEFILE VARIABLE: print the files in a list of this tree.
sources()
{
	awk -v variable="$2" '
		$1 == variable "=" || index($1, variable "=") == 1 { on = 1 }
		on {
			for (i = 1; i <= NF; i++)
				if ($i ~ /\.c$/)
					print $i
			on = /\\$/
		}' "$top/$1"
}

. "$here/$series.subr"
