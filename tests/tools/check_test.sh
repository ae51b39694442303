# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# tests/check.sh ("make check"), with a make and a kyua that do nothing.

. "$(atf_get_srcdir)/cases.subr"

top=$(atf_get_srcdir)/../../..

test_case parts "Each part says when it begins, and in the end how long it took and \
what it has counted; the last line counts all"
parts_body()
{
	local name

	mkdir -p bin tree/tests tree/share tree/usr.sbin tree/lib tree/sys
	cp "$top/tests/check.sh" "$top/tests/groups.sh" tree/tests
	: > tree/tests/groups.table
	: > tree/share/page.1
	for name in "" -san -tsan; do
		mkdir -p tree/build$name/tests
		echo 'atf_test_program{name="one", timeout=900 }' \
		    > tree/build$name/tests/Kyuafile
	done
	printf '#!/bin/sh\n' | tee bin/mandoc bin/make > bin/kyua
	cat >> bin/kyua <<-'EOF'
		[ "$1" != report ] || echo "Test cases: 9 total, 2 skipped," \
		    "1 expected failures, 1 broken, 2 failed"
	EOF
	chmod +x bin/*
	PATH=$PWD/bin:$PATH
	sh tree/tests/check.sh "$PWD/tree" make "" > out && atf_fail "no failure"
	sed -n 's/[0-9]* s\( in all\)*$/N s\1/; /^check: /p; $p' out > lines
	cat > expected <<-'EOF'
		check: build: begins after N s
		check: build, in N s
		check: tests: begins after N s
		check: tests: 4 passed, 3 failed, in N s
		check: build with sanitizers: begins after N s
		check: build with sanitizers, in N s
		check: tests with sanitizers: begins after N s
		check: tests with sanitizers: 4 passed, 3 failed, in N s
		check: build with ThreadSanitizer: begins after N s
		check: build with ThreadSanitizer, in N s
		check: tests with ThreadSanitizer: begins after N s
		check: tests with ThreadSanitizer: 4 passed, 3 failed, in N s
		check: manual pages: begins after N s
		check: manual pages: 1 passed, 0 failed, in N s
		check: compile for FreeBSD: begins after N s
		check: compile for FreeBSD: 1 passed, 0 failed, in N s
		check: N s in all
		14 passed, 9 failed, 6 skipped
	EOF
	diff expected lines || atf_fail "other lines"
}
