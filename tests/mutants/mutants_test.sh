# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# mutants.py: which files it knows.  On tiny/tiny.c: it kills what tiny_test
# notices, and reports what that does not notice and survivors does not list.

. "$(atf_get_srcdir)/cases.subr"

top=$(atf_get_srcdir)/../../..

# mutants [option...]: run the program, into `out'.
mutants()
{
	/usr/bin/python3 -B "$top/tests/mutants/mutants.py" -o obj "$@" \
	    tests/mutants/tiny/tiny.c > out 2>&1
}

# The mutants of tiny.c that no test kills.
alive()
{
	cat <<-'EOF'
	tests/mutants/tiny/tiny.c:tiny_inside
	    `return (number >= low && number < high);`: `number < high` -> `number <= high`
	    The test does not try the boundary.
	tests/mutants/tiny/tiny.c:tiny_flag
	    `*flags |= TINY_FLAG;`: `*flags |= TINY_FLAG` -> ``
	    `*flags |= TINY_FLAG;`: `*flags |= TINY_FLAG` -> `*flags = TINY_FLAG`
	    `*flags |= TINY_FLAG;`: `TINY_FLAG` -> `0`
	    `*flags |= TINY_FLAG;`: `TINY_FLAG` -> `TINY_FLAG << 1`
	    The test does not call the function.
	tests/mutants/tiny/tiny.c:tiny_steps
	    `end -= MIN(end, step + 0);`: `step + 0` -> `step - 0`
	    Equivalent: the same sum.
	tests/mutants/tiny/tiny.c:tiny_max
	    `return (a > b ? TWICE(a - b) - (a - 2 * b) : b);`: `a > b` -> `a >= b`
	    Equivalent: both are the maximum.
	EOF
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

	# What lives is reported.
	: > none
	! mutants -l none || atf_fail "survivors are not reported"
	cat out
	set -- $(row)
	atf_check_equal 7 "$6"
	atf_check_equal "$1" $(($2 + $6))
	[ "$2" -ge 20 ] || atf_fail "only $2 mutants killed"
	atf_check_equal 7 "$(grep -c ': survived: \|: not reached: ' out)"
	[ "$3" -ge 1 ] || atf_fail "no mutant tripped an assertion"

	# What is listed may live.
	alive > list
	mutants -s -l list || atf_fail "a listed survivor is reported"
	cat out
	set -- $(row)
	atf_check_equal "7 0" "$5 $6"
	all=$1

	# The three samples of one in three are all.
	sum=0
	for k in 0 1 2; do
		mutants -e 3,$k -l list || atf_fail "sample $k is reported"
		cat out
		set -- $(row)
		[ "$1" -gt 0 ] && [ "$1" -lt $((all / 2)) ] ||
		    atf_fail "$1 of $all mutants are one of three"
		sum=$((sum + $1))
	done
	atf_check_equal "$all" $sum

	# What is listed must live.
	sed 's/low &&/low \&\& /' list > stale
	! mutants -s -l stale || atf_fail "a stale line is not reported"
	cat out
	grep -q "^listed, but not alive: .*tiny_inside" out ||
	    atf_fail "a stale line is not reported"
}

test_case files "Every source is in a group, or left out for a reason"
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
}
