# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The files and functions that the pages in docs/ name in backquotes must exist:
#
#	file.c:function		the file, and in it a definition of the function
#	function()		a definition of the function
#	struct name		a definition of the structure
#	dir/file, file.c, dir/	the file or directory; without a directory, a
#				file of that name anywhere; * is a pattern
#	some_test, some_test:case	the test program, and a word of it
#	some_name		a word of the sources
#
# Everything else in backquotes (commands, options, values) is not looked at.
#
# A list of a directory's files, in a page or a comment, has all of them, and
# none that does not exist: lists.table.
#
# A prefix of members is that of one structure.
#
# A function's comment begins with a verb.
#
# Directories with TSAN_TESTS are in the list of those that a build with
# ThreadSanitizer has.

. "$(atf_get_srcdir)/cases.subr"

top=$(atf_get_srcdir)/../../..

# Directories with sources: not what is built.
dirs=$(cd "$top" && ls -d */ | grep -v '^build' | tr -d /)

# Gather what exists: files, functions (file:function), structs, words.
gather()
{
	(cd "$top" && find $dirs -type f ! -name '*.o') > files
	(cd "$top" && find $dirs -name '*.[ch]' -type f -exec grep -E \
	    -e '^([a-z_][a-z0-9_]*|#define[[:space:]]+[a-zA-Z_]+)\(' \
	    -e '^struct [a-z0-9_]+ \{' \
	    /dev/null {} + | sed -E 's/#define[[:space:]]+//; s/[({].*//') \
	    > defined
	(cd "$top" && find $dirs \( -name '*.[chd]' -o -name '*.py' -o \
	    -name rules \) \
	    -type f -exec grep -ohE '[A-Za-z_][A-Za-z0-9_]*' {} + |
	    sort -u) > words
}

# file_exists PATTERN
file_exists()
{
	case $1 in
	*/)	[ -d "$top/$1" ] ;;
	*/*)	(cd "$top" && ls -d $1 > /dev/null 2>&1) ;;
	*)	grep -q "\(^\|/\)$(printf '%s' "$1" |
		    sed 's/[.]/[.]/g; s/[*]/[^\/]*/g')\$" files ;;
	esac
}

# test_exists PROGRAM CASE: a case may be the program, that is none.
test_exists()
{
	grep -E "(^|/)$1[.](c|sh)\$" files > programs || return 1
	[ "$1" = "$2" ] || (cd "$top" && xargs grep -qw -e "$2") < programs
}

# name_exists NAME
name_exists()
{
	local file function

	case $1 in
	*.[ch]:[a-z_]*)
		file=${1%%:*}
		function=${1#*:}
		grep -q "\(^\|/\)$file:$function\$" defined
		;;
	*"()")
		grep -q ":${1%()}\$" defined
		;;
	"struct "*)
		grep -q ":$1 *\$" defined
		;;
	/* | *" "* | -* | *=* | *,* | build/* | build-*)
		;;
	*_test | *_test:[a-z]*)
		test_exists "${1%%:*}" "${1##*:}"
		;;
	*/* | *.[chd] | *.[1-9] | *.sh | *.py | *.mk | *.pml | *.awk)
		file_exists "$1"
		;;
	*[!a-z0-9_]*)
		;;
	*_*)
		grep -qx "$1" words
		;;
	esac
}

# missing PAGE: print the names in a page that do not exist.
missing()
{
	local name

	grep -o '`[^`]*`' "$1" | tr -d '`' | sort -u | while read -r name; do
		name_exists "$name" || echo "$1: $name"
	done
}

# ambiguous PAGE [NAME...]: print the files that a page names without their
# directory, and of which there are several, except NAMEs.
ambiguous()
{
	local n name page

	page=$1
	shift
	grep -o '`[^`]*`' "$page" | tr -d '`' | sed -n \
	    -e 's/:.*//' -e '/^[a-z0-9_]*[.][chd]$/p' | sort -u |
	while read -r name; do
		case " $* " in
		*" $name "*)	continue ;;
		esac
		n=$(grep -c "\(^\|/\)$name\$" files)
		[ $n -le 1 ] || echo "$page: $n files are $name"
	done
}

# block FILE WORDS: print the comment, or in a page the row or paragraph, that
# has these words.
block()
{
	awk -v words="$2" -v page="${1##*.}" '
	function end()
	{
		if (hit)
			printf "%s", text
		text = ""
		hit = 0
	}
	page == "md" && /^[|]/ { end() }
	!(page == "md" ? $0 != "" : /^(#| [*]|[\/][*])/) { end(); next }
	index($0, words) { hit = 1 }
	{ text = text $0 "\n" }
	END { end() }' "$top/$1"
}

# listed FILE WORDS: print the names of files in that list.  A first word
# without a suffix stands for the files that have it as their name.
listed()
{
	block "$1" "$2" > block
	grep -oE '[A-Za-z0-9_*]+[.](c|h|S|d|py|sh|subr|pml)([^a-z]|$)' block |
	    sed 's/[^a-z]$//;s/[.]$//'
	sed -nE 's/^(#| [*])	([a-z0-9_]+)	.*/\2.*/p' block
}

# in_directory DIRECTORY FILES: print the files that a list must have.
in_directory()
{
	case $1 in
	"**")	cat files ;;
	*)	grep "^$1/[^/]*\$" files ;;
	esac | while read -r file; do
		case $2 in
		"<"*)	grep -qF "#include ${2#<}" "$top/$file" &&
			    echo "${file##*/}" ;;
		*)	matched "${file##*/}" $2 && echo "${file##*/}" ;;
		esac
	done
}

# matched NAME PATTERN...: one of the patterns matches.
matched()
{
	local name pattern

	name=$1
	shift
	for pattern; do
		case $name in
		$pattern)	return 0 ;;
		esac
	done
	return 1
}

# check_list FILE DIRECTORY FILES WORDS: print what a list lacks, and what it
# names that does not exist.
check_list()
{
	local name names

	names=$(listed "$1" "$4")
	[ -n "$names" ] || {
		echo "$1: no list with \"$4\""
		return
	}
	in_directory "$2" "$3" > must
	[ -s must ] || echo "$1: no files $3 in $2"
	while read -r name; do
		matched "$name" $names || echo "$1: lacks $name of $2"
	done < must
	for name in $names; do
		case ${name##*.} in
		"*")	;;
		*)	file_exists "$name" ||
			    echo "$1: $name does not exist" ;;
		esac
	done
}

# check_lists TABLE: all lists in a table.
check_lists()
{
	local file directory files words

	while IFS='	' read -r file directory files words; do
		case $file in
		"" | "#"*)	continue ;;
		esac
		[ "$files" = - ] ||
		    check_list "$file" "$directory" "$files" "$words"
	done < "$1"
}

# unknown_lists TABLE: print the files that are not in a table, and have three
# lines or more of comments that begin with names of files beside them.
unknown_lists()
{
	local file name

	(cd "$top" && find $dirs -type f \( -name '*.[ch]' -o -name '*.mk' \
	    -o -name Makefile -o -name '*.sh' -o -name '*.subr' \) \
	    -exec grep -oE '^(#| [*])	[a-z0-9_]+([*]?[.][a-z]+)?[	,]' \
	    /dev/null {} +) | sed -E 's/:(#| [*])	/ /' | tr -d ',	' |
	while read -r file name; do
		set -- "$top/${file%/*}"/${name%.*}.*
		[ ! -e "$1" ] || echo "$file"
	done | sort | uniq -c | awk '$1 >= 3 { print $2 }' > with
	grep -v '^#' "$1" | cut -f 1 | sort -u | comm -13 - with |
	    sed 's/$/: its list is not in the table/'
}

# page PAGE NAMES: fail if a name in a page does not exist, or is of several
# files, or if there are fewer names.
page()
{
	gather
	missing "$top/$1" > bad
	[ "$(grep -o '`[^`]*`' "$top/$1" | wc -l)" -ge $2 ] ||
	    atf_fail "$1 has fewer than $2 names"
	[ ! -s bad ] || {
		cat bad
		atf_fail "$(wc -l < bad) names in $1 do not exist"
	}
	ambiguous "$top/$1" lem_os.h > bad
	[ ! -s bad ] || {
		cat bad
		atf_fail "$(wc -l < bad) names in $1 are of several files"
	}
}

# cells N PAGE: print the cells of a page's tables that have more than N words.
cells()
{
	awk -F ' *[|] *' -v most="$1" '/^[|]/ {
		for (i = 2; i < NF; i++)
			if ((n = split($i, word, " ")) > most)
				print n ": " $i
	}' "$2"
}

# pasted PAGE: print the commands of a page that are pasted together; fail if
# apt-get(8) asks in one of them, or does not have the shell read the next one
# before: apt-get(8) and its dpkg(1) read what the terminal has.
pasted()
{
	grep -E '^    (apt-get|dpkg-buildpackage) ' "$top/$1" > commands
	grep apt-get commands > apt
	atf_check -s exit:1 grep -vE ' apt-get (update|-y .*) &&$' apt >&2
	sed 's/ &&$//' commands
}

test_case readme "README.md is short, and files and functions in it exist"
readme_body()
{
	page README.md 10
	[ "$(wc -l < "$top/README.md")" -le 120 ] || atf_fail "too long"
}

test_case architecture "Files and functions in docs/architecture.md exist, and \
its table of directories has all"
architecture_body()
{
	local d

	page docs/architecture.md 50
	sed -n '/^## What is where/,$s/^| \(`[^|]*\) |.*/\1/p' \
	    "$top/docs/architecture.md" |
	    grep -o '`[^`]*/`' | tr -d '`' > table
	[ -s table ] || atf_fail "no table"
	# A directory is in the table, or those in it are.
	(cd "$top" && find $dirs -mindepth 1 -maxdepth 1 -type d) |
	    sed 's,$,/,' > directories
	printf '%s/\n' $dirs > tops
	for d in $(cat tops directories); do
		grep -q "^$d" table ||
		    { sed 's,[^/]*/$,,' table | grep -qx "$d"; } ||
		    grep -qx "${d%%/*}/" table || echo "$d"
	done > bad
	atf_check cat bad
}

test_case latency "Files and functions in docs/latency.md exist"
latency_body()
{
	page docs/latency.md 5
}

test_case formats "Files in docs/formats.md exist"
formats_body()
{
	page docs/formats.md 10
}

test_case security "Files and functions in docs/security.md exist, and no cell \
of its tables is long"
security_body()
{
	page docs/security.md 50
	# A cell is read at once.
	cells 40 "$top/docs/security.md" > bad
	atf_check cat bad
	echo "| a | 1 2 3 | 1 2 |" > cells.md
	atf_check_equal "3: 1 2 3" "$(cells 2 cells.md)"
}

test_case upstream "Files and functions in docs/upstream.md exist"
upstream_body()
{
	page docs/upstream.md 20
}

test_case building "Files and functions in docs/building.md exist; packages are \
made as README.md has it, by commands that ask nothing"
building_body()
{
	page docs/building.md 50
	pasted docs/building.md > made
	pasted README.md > installed
	atf_check_equal 3 $(wc -l < made)
	head -n 3 installed > first
	atf_check cmp first made
}

test_case freebsd "Files and functions in docs/freebsd.md exist"
freebsd_body()
{
	page docs/freebsd.md 50
}

test_case lists "Lists of a directory's files are complete"
lists_body()
{
	gather
	check_lists "$top/tests/docs/lists.table" > bad
	unknown_lists "$top/tests/docs/lists.table" >> bad
	[ ! -s bad ] || {
		cat bad
		atf_fail "$(wc -l < bad) faults of lists"
	}
}

# prefixes FILE...: print each prefix of members that is two structures' or more,
# with these.  A structure has a prefix of at most four letters if all of its
# members, two or more, begin with it.
prefixes()
{
	awk '
	function member(line)
	{
		if (line !~ /^[a-z][a-z0-9]?[a-z0-9]?[a-z0-9]?_/) {
			prefix = "-"
			return
		}
		sub(/_.*/, "_", line)
		if (n++ == 0)
			prefix = line
		else if (line != prefix)
			prefix = "-"
	}
	/^(static |const |typedef )*(struct|union) [a-z0-9_]+ [{]$/ {
		name = $(NF - 1)
		n = 0
		prefix = ""
		next
	}
	name == "" { next }
	/^}/ {
		if (n >= 2 && prefix != "-") {
			count[prefix]++
			of[prefix] = of[prefix] " " FILENAME ":" name
		}
		name = ""
		next
	}
	/^\t+[A-Za-z]/ {
		sub(/\/[*].*/, "")
		if (sub(/[^(]*[(][*]+/, "") ||
		    sub(/^\t+([A-Z_]+[(][^)]*[)]|[a-z][^;:,[]*[ \t*])[ \t*]*/,
		    ""))
			member($0)
	}
	END {
		for (prefix in count)
			if (count[prefix] > 1)
				print prefix of[prefix]
	}' "$@" | sort
}

test_case prefixes "A prefix of members is one structure's"
prefixes_body()
{
	# The members of stand-ins for others' headers are named by others.
	(cd "$top" && find $dirs -name '*.[ch]' -type f | grep -v -e ^compat/ \
	    -e ^tests/testbed/bhyve/ -e /netmap_kernel.h | sort) > sources
	[ "$(wc -l < sources)" -ge 400 ] || atf_fail "too few sources"
	here=$PWD
	cd "$top"
	prefixes $(cat "$here/sources") > "$here/bad"
	cd "$here"
	[ ! -s bad ] || {
		cat bad
		atf_fail "$(wc -l < bad) prefixes are several structures'"
	}
}

# verbless FILE...: comments of functions whose first word is no verb, as far as
# its form shows: "the", "whether" and others like them, a plural or a third
# person, an argument or a name.  A comment that begins with a file's name is
# about the functions that follow.
verbless()
{
	awk '
	FNR == 1 { comment = ended = type = 0 }
	/^\/[*]/ {
		first = $0
		sub(/^\/[*]+[ \t]*/, "", first)
		at = FNR
		comment = 1
	}
	comment && first == "" && /^ [*] / { first = substr($0, 4) }
	comment {
		if (/[*]\/[ \t]*$/) {
			comment = 0
			ended = FNR
		}
		next
	}
	BEGIN {
		n = split("A After All An Another Any As At Both Each Every " \
		    "False For From How If In It Its No Nobody None Not Of " \
		    "On One Only Or Other Some That The There These They " \
		    "This Those To True Two What When Where Whether Which " \
		    "While Who Why With Without", words)
		for (; n > 0; n--)
			other[words[n]] = 1
	}
	function bad(	word) {
		word = first
		sub(/[ ,:.;-].*/, "", word)
		return first !~ /^[a-z0-9_]+[.][ch]/ &&
		    (word !~ /^[A-Z][a-z]+$/ || word ~ /[^s]s$/ ||
		    word in other)
	}
	ended && FNR == ended + 1 && /^[a-z][^;={]*$/ && !/[,(]$/ { type = FNR }
	((type && FNR == type + 1 && /^[a-z_0-9]+[(]/) ||
	    (ended && FNR == ended + 1 && /^[a-z][^={}]*[(].*[;,]$/ &&
	    !/^typedef|=/)) && bad() {
		print FILENAME ":" at ": " first
	}' "$@"
}

test_case comments "Comments of functions begin with a verb"
comments_body()
{
	(cd "$top" && verbless $(find compat lib sys usr.bin usr.sbin \
	    -name '*.[ch]')) > bad
	[ ! -s bad ] || {
		cat bad
		atf_fail "$(wc -l < bad) comments"
	}
}

test_case tsan "Tests for ThreadSanitizer are in the list of its directories"
tsan_body()
{
	local dir list

	list=$(sed -n '/SAN:M\*thread/,/^\.endif/p' "$top/tests/Makefile" |
	    tr '\\\t\n' '   ')
	(cd "$top/tests" && grep -lr --include=Makefile '^TSAN_TESTS' .) |
	    sed 's,^\./,,; s,/Makefile$,,' > dirs
	[ "$(wc -l < dirs)" -ge 9 ] || atf_fail "$(cat dirs): not all"
	while read -r dir; do
		case " $list " in
		*" $dir "*)	;;
		*)		atf_fail "tests/Makefile lacks $dir" ;;
		esac
	done < dirs
}

test_case found "The check reports each kind of name that does not exist"
found_body()
{
	gather
	cat > good.md <<-'EOF'
	`e82545_reg.c:e82545_write`, `e82545.c`, `usr.sbin/bhyve/`, `lem_*.c`,
	`e82545_tx()`, `struct e82545_ops`, `tx_mtx`, `make all`, `itr=250`,
	`vfu_irq_test`, `vfu_irq_test:kinds`, `build/demo/`
	EOF
	cat > bad.md <<-'EOF'
	`e82545.c:e82545_tx`, `e82546.c`, `usr.sbin/bhive/`, `lom_*.c`,
	`e82545_tix()`, `struct e82545_opps`, `tx_mutex_of_old`,
	`vfu_ira_test`, `vfu_irq_test:minds`
	EOF
	missing good.md > out
	cat out
	atf_check_equal 0 "$(wc -l < out)"
	missing bad.md > out
	cat out
	atf_check_equal 9 "$(wc -l < out)"
}
