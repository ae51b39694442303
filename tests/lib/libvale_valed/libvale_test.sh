# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# libvale(3) as it is installed: the headers are complete, both libraries work,
# and the manual page has every function.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/wait_until.subr"

find_all()
{
	srcdir=$(atf_get_srcdir)
	lib=$srcdir/../../../lib/libvale_valed
	valed=$srcdir/../../../usr.sbin/valed/valed
	[ -d "$lib" ] && [ -x "$valed" ] ||
	    atf_skip "the build tree is not there"
	cc=$(command -v clang || command -v cc) ||
	    atf_skip "there is no C compiler"
}

# run_installed program: with a valed of its own.
run_installed()
{
	"$valed" -c "$PWD/control" & pid=$!
	wait_must "the control socket" test -S control
	atf_check -o inline:"vale0:a rx_frames 0\nvale0:b rx_frames 1\n" \
	    env VALE_SOCKET="$PWD/control" LD_LIBRARY_PATH="$PWD" "$1"
	kill $pid
	wait $pid || atf_fail "valed failed"
}

test_case shared "A program compiles with the headers, and runs with the \
shared library"
shared_body()
{
	find_all
	ln -s "$lib/libvale.so.2" libvale.so.2
	atf_check "$cc" -Wall -Wextra -Werror -std=c11 -D_DEFAULT_SOURCE \
	    -I "$lib/include" "$srcdir/installed.c" libvale.so.2 -o program
	run_installed ./program
}

test_case static "A program compiles with the headers, and runs with the \
static library"
static_body()
{
	find_all
	if nm "$lib/libvale.a" | grep -q __asan; then
		atf_skip "the library was built with sanitizers"
	fi
	atf_check "$cc" -I "$lib/include" "$srcdir/installed.c" \
	    "$lib/libvale.a" -o program
	run_installed ./program
}

test_case manual "The manual page has each function, and the library has no \
other"
manual_body()
{
	find_all
	nm -D --defined-only "$lib/libvale.so.2" |
	    sed -n 's/.* [A-Z] \([a-z_]*\)@.*/\1/p' | sort > exported
	[ -s exported ] || atf_fail "nothing is exported"
	sed -n -e 's/^\.F[no] \([a-z_]*\).*/\1/p' \
	    -e 's/^\.Vt.* \([a-z_]*\)\[.*/\1/p' "$srcdir/libvale.3" |
	    sort -u > described
	atf_check diff -u exported described
}
