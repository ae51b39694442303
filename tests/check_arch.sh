#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# check_arch.sh top make arch: do what "make check-arch" does.  Build the
# libraries and the tests that are programs for another processor, in
# build-ARCH, and run them under QEMU's user emulation.

set -eu

top=$1
make=$2
arch=$3
sysroot=$top/build/deps/$arch
tests="compat/kern compat/bhyve sys/sys sys/net/vale sys/dev/e1000 \
    usr.sbin/bhyve"
failed=0

# cross directory argument...: build a directory.
cross()
{
	local dir=$1

	shift
	(cd "$top/$dir" && $make OBJTOP="$top/build-$arch" MK_DTRACE=no \
	    CC="clang --target=$arch-linux-gnu --sysroot=$sysroot \
	    -DWITHOUT_DTRACE" "$@" all)
}

for dir in compat lib/libvale lib/libtestbed usr.sbin/bhyve; do
	cross "$dir"
done
for dir in $tests; do
	cross "tests/$dir" EMULATOR="qemu-$arch -L $sysroot"
	kyua -v parallelism="$(nproc)" test \
	    -k "$top/build-$arch/tests/$dir/Kyuafile" || failed=1
done
exit $failed
