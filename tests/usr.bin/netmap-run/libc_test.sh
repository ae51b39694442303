# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# netmap-run's library has every name of the C library for the calls that it
# intercepts: a program reaches it, with whatever flags it was compiled.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/wait_until.subr"
. "$(atf_get_srcdir)/valed_ports.subr"

srcdir=$(atf_get_srcdir)
lib=$srcdir/../../../lib/libnetmap_run/libnetmap-run.so
run=$srcdir/../../../usr.bin/netmap-run/netmap-run
source=$srcdir/../../../..

# Flags, and what a program calls with them: so they do what they are for.
flags()
{
	cat <<-END
	-O0 open openat poll ppoll mmap fcntl
	-O2,-fPIE,-pie,-fno-plt open openat poll ppoll mmap fcntl
	-O2,-D_FORTIFY_SOURCE=1 __poll_chk __fdelt_chk
	-O2,-D_FORTIFY_SOURCE=2 __poll_chk __fdelt_chk
	-O2,-D_FORTIFY_SOURCE=3 __poll_chk __fdelt_chk
	-O0,-D_FILE_OFFSET_BITS=64 open64 openat64 mmap64 fcntl64
	-O2,-D_FORTIFY_SOURCE=3,-D_FILE_OFFSET_BITS=64,-D_TIME_BITS=64 mmap64
	END
}

# names FILE: the names that a library exports, as nm(1) prints them.
names()
{
	nm -D --defined-only "$1"
}

test_case all "The library has each name that the C library has for its calls, \
and no other" require.progs nm
all_body()
{
	local libc

	libc=$(ldd "$lib" | sed -n 's/.*libc\.so\.6 => \([^ ]*\).*/\1/p')
	[ -r "$libc" ] || atf_skip "the C library is not glibc"
	names "$lib" > ours
	names "$libc" > libc
	[ "$(wc -l < ours)" -ge 30 ] || atf_fail "ours: $(wc -l < ours) names"
	atf_check awk -f "$srcdir/libc_names.awk" ours libc
	awk '{ sub(/@.*/, "", $3); print $3 }' libc | sort -u > theirs
	awk '{ print $3 }' ours | sort | atf_check comm -23 - theirs
}

# compile COMPILER FLAGS: the program.
compile()
{
	$1 -w $(echo "$2" | tr , ' ') -I "$source/compat/include" \
	    "$source/tests/usr.bin/netmap-run/libc_calls.c" -o calls \
	    2> cc.err || atf_fail "$*: $(cat cc.err)"
}

# each FUNCTION: call it with "compiler flags names..." for each of both.
each()
{
	local cc line

	flags > flags
	for cc in gcc clang; do
		command -v $cc > /dev/null || continue
		while read -r line; do
			"$1" $cc $line < /dev/null
		done < flags
	done
}

# calls COMPILER FLAGS NAME...: the program does what it is to do.
calls()
{
	local name

	compile "$1" "$2"
	nm -D -u calls | sed -e 's/.* //' -e 's/@.*//' > called
	echo "$@: $(paste -sd ' ' called)"
	shift 2
	for name; do
		grep -qx "$name" called || atf_fail "$name is not called"
	done
	"$run" ./calls 2> err || atf_fail "$(tail -n 2 err | paste -sd ' ')"
	done=$((done + 1))
}

test_case compiled "A program compiled with any flags makes all calls" \
    require.progs "gcc nm"
compiled_body()
{
	done=0
	setup_valed
	each calls
	[ $done -ge "$(wc -l < flags)" ] || atf_fail "$done were run"
	teardown
}

# exported COMPILER FLAGS...: the library has the same names with them.
exported()
{
	$1 -w -std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden \
	    $(echo "$2" | tr , ' ') \
	    -I "$source/compat/include" -I "$source/compat/kern" \
	    -I "$source/sys" -I "$source/lib/libvale" \
	    -I "$source/lib/libvaleport" -c -o calls.o \
	    "$source/lib/libnetmap_run/run_calls.c" || atf_fail "$1 $2"
	# run_calls() is of the library itself.
	nm -g --defined-only calls.o | awk '$3 != "run_calls" { print $3 }' |
	    sort > built
	atf_check diff -u ours built
}

test_case built "The library has its names whatever flags it is built with" \
    require.progs "gcc nm"
built_body()
{
	names "$lib" | awk '{ print $3 }' | sort > ours
	each exported
}

test_case ends "What the C library ends a program for still does" \
    require.progs gcc
ends_body()
{
	local call

	compile gcc -O2
	for call in open open64 openat openat64 poll ppoll; do
		for with in "" "$run"; do
			atf_check -s signal:abrt -e match:"terminated" \
			    $with ./calls $call
		done
	done
	[ ! -e created ] || atf_fail "a file was created"
}
