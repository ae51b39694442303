# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# tests/groups.sh, with a table of two groups and Kyuafiles of three programs;
# and the tree's own table.

. "$(atf_get_srcdir)/cases.subr"

top=$(atf_get_srcdir)/../../..

# make_tree: groups.sh in a tree of its own.
make_tree()
{
	mkdir -p tree/tests tree/a tree/b tree/x tree/z
	cp "$top/tests/groups.sh" tree/tests
	echo one > tree/a/file
	echo two > tree/b/file
	printf '%s\n' '# comment' 'first tests x/one' 'second tests z' \
	    'first files a' 'second files b/file' 'second files a' \
	    > tree/tests/groups.table
	printf '%s\n' 'atf_test_program{name="one", timeout=900 }' \
	    'atf_test_program{name="two", timeout=900 }' > tree/x/Kyuafile
	printf '%s\n' 'atf_test_program{name="three", timeout=900 }' \
	    > tree/z/Kyuafile
	printf '%s\n' 'include("x/Kyuafile")' 'include("z/Kyuafile")' \
	    > tree/Kyuafile
}

# groups argument...: run it, from another directory.
groups()
{
	sh "$tree/tests/groups.sh" "$@" 2> why
}

# wanted which name...: these groups run.
wanted()
{
	local which=$1

	shift
	groups wanted "$which" > got || atf_fail "wanted $which: $(cat why)"
	atf_check_equal "$*" "$(paste -sd ' ' got)"
}

test_case changed "A group runs if its files have changed, or days have passed"
changed_body()
{
	make_tree
	tree=$PWD/tree
	mkdir elsewhere
	cd elsewhere
	wanted changed first second
	groups passed first,second
	wanted changed
	atf_check_equal 2 "$(grep -c 'passed with the same files' why)"
	# A file's contents, its name, and one that is new.
	echo three > "$tree/b/file"
	wanted changed second
	groups passed second
	wanted changed
	mv "$tree/a/file" "$tree/a/file2"
	wanted changed first second
	groups passed first
	wanted changed second
	groups passed all
	wanted changed
	: > "$tree/a/new"
	wanted changed first second
	groups passed all
	# What Python leaves behind is no change.
	mkdir "$tree/a/__pycache__"
	: > "$tree/a/__pycache__/x.pyc"
	wanted changed
	sed -i /^second/d "$tree/tests/groups.passed"
	wanted changed second
	groups passed second
	wanted due
	sed -i "/^first/s/[^ ]*\$/$(date -u -d '4 days ago' +%Y-%m-%d)/" \
	    "$tree/tests/groups.passed"
	wanted changed
	wanted due first
}

test_case programs "Programs of other groups are left out"
programs_body()
{
	make_tree
	tree=$PWD/tree
	wanted ""
	atf_check -o inline:"x/two\n" sh "$tree/tests/groups.sh" tests \
	    tree/Kyuafile ""
	atf_check -o inline:"x/one\nx/two\n" sh "$tree/tests/groups.sh" tests \
	    tree/Kyuafile first
	atf_check -o inline:"x/two\nz/three\n" sh "$tree/tests/groups.sh" \
	    tests tree/Kyuafile second
	atf_check -o inline:"x/one\nx/two\nz/three\n" sh \
	    "$tree/tests/groups.sh" tests tree/Kyuafile all
	atf_check -s exit:2 -e match:"third: there is no such group" \
	    -o inline:"first\n" sh "$tree/tests/groups.sh" wanted first,third
	rm "$tree/b/file"
	atf_check -s exit:2 -o ignore -e match:"there is no b/file" sh \
	    "$tree/tests/groups.sh" passed second
}

# rows kind: the names of the tree's table.
rows()
{
	awk -v kind="$1" '!/^#/ && $2 == kind {
	    for (i = 3; i <= NF; i++) print $i }' "$top/tests/groups.table"
}

test_case table "The tree's table names files and tests that exist"
table_body()
{
	local objtop=$(atf_get_srcdir)/../.. all name

	all=$(sh "$top/tests/groups.sh" tests "$objtop/tests/Kyuafile" all)
	for name in $(rows tests); do
		# A release's root has some of the tests.
		[ -e "$objtop/tests/$name" ] || continue
		echo "$all" | grep -q "^$name\(/\|$\)" ||
		    atf_fail "$name is no test"
	done
	for name in $(rows files); do
		[ -e "$top/$name" ] || atf_fail "there is no $name"
	done
}
