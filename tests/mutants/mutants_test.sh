# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# mutants.py: which files it knows.  On tiny/tiny.c: it kills what tiny_test
# notices, and reports what that does not notice and no reason speaks of.

. "$(atf_get_srcdir)/cases.subr"

top=$(atf_get_srcdir)/../../..

# mutants [option...]: run the program on the copy of the tree, into `out'.
mutants()
{
	/usr/bin/python3 -B "$top/tests/mutants/mutants.py" -t tree -o obj \
	    "$@" tests/mutants/tiny/tiny.c > out 2>&1
}

# table count [line...]: write the reasons as a table, `count' for tiny_flag(),
# and lines for tiny_exit().
table()
{
	count=$1
	shift
	{
		printf '%s\n' \
		    'tests/mutants/tiny/tiny.c tiny_flag' \
		    "	$count it is not called" \
		    '# The text has no comment of the line.' \
		    'tests/mutants/tiny/tiny.c tiny_steps' '	1 the sum' \
		    '		end -= MIN(end, step + 0);' \
		    'tests/mutants/tiny/tiny.c tiny_inside' '	1 no boundary' \
		    '		return (number >= low && number < high);' \
		    'tests/mutants/tiny/tiny.c tiny_max' '	2 the maximum' \
		    '		return (a > b ? TWICE(a - b) - (a - 2 * b) : b);' \
		    'tests/mutants/tiny/tiny.c tiny_exit' "$@"
	} > tree/tests/mutants/tiny.table
}

# row: print the columns mutants, killed, by an assertion, hung, listed, alive.
row()
{
	awk '$1 == "[tiny]" { print $2, $3, $4, $5, $6, $7 }' out
}

test_case tiny "Mutants are killed by tests, or must be listed"
tiny_body()
{
	/usr/bin/python3 -c 'import clang.cindex' ||
	    atf_skip "Debian's python3-clang is not installed"

	mkdir tree
	(cd "$top" && tar -cf - --exclude ./.git --exclude ./build \
	    --exclude './build-*' .) | tar -C tree -xf -

	# What lives is reported.
	! mutants || atf_fail "survivors are not reported"
	cat out
	set -- $(row)
	atf_check_equal 7 "$6"
	atf_check_equal "$1" $(($2 + $6))
	[ "$2" -ge 20 ] || atf_fail "only $2 mutants killed"
	atf_check_equal 7 "$(grep -c ': survived: \|: not reached: ' out)"
	[ "$3" -ge 1 ] || atf_fail "no mutant tripped an assertion"

	# What there is a reason for may live.
	table 4
	mutants -s || atf_fail "a survivor with a reason is reported"
	cat out
	set -- $(row)
	atf_check_equal "7 0" "$5 $6"
	all=$1

	# The three samples of one in three are all.
	sum=0
	for k in 0 1 2; do
		mutants -e 3,$k || atf_fail "sample $k is reported"
		cat out
		set -- $(row)
		[ "$1" -gt 0 ] && [ "$1" -lt $((all / 2)) ] ||
		    atf_fail "$1 of $all mutants are one of three"
		sum=$((sum + $1))
	done
	atf_check_equal "$all" $sum

	# No more than the reason says.
	table 3
	! mutants -s || atf_fail "one too many is not reported"
	atf_check_equal "6 1" "$(row | cut -d ' ' -f 5-)"

	# A reason is about what lives.
	table 4 '	1 none' '		exit(status);'
	! mutants -s || atf_fail "a stale reason is not reported"
	cat out
	grep -q '^tiny.table:[0-9]*: no mutant lives there' out ||
	    atf_fail "a stale reason is not reported"
}

test_case files "Every source is in a group, or left out for a reason, and a \
group builds libraries before what takes them"
files_body()
{
	/usr/bin/python3 -c 'import clang.cindex' ||
	    atf_skip "Debian's python3-clang is not installed"
	atf_check -o inline:"" /usr/bin/python3 -B \
	    "$top/tests/mutants/mutants.py" -t "$top" -f
	# It does notice one.
	mkdir -p tree/lib/libnew
	: > tree/lib/libnew/new.c
	atf_check -s exit:1 -o inline:"lib/libnew/new.c: in no group\n" \
	    /usr/bin/python3 -B "$top/tests/mutants/mutants.py" -t tree -f
	# And a library that is built too late.
	rm -r tree/lib/libnew
	mkdir -p tree/lib/libpeer tree/lib/libframe
	printf 'LIBADD=\tpeer\n' > tree/lib/libframe/Makefile
	atf_check -s exit:1 \
	    -o match:"^model: lib/libframe needs lib/libpeer before it$" \
	    /usr/bin/python3 -B "$top/tests/mutants/mutants.py" -t tree -f
}
