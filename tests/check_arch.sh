#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# check_arch.sh top make arch: do what "make check-arch" does.  Build the
# libraries and the tests that are programs for another processor, in
# build-ARCH, and run them under QEMU's user emulation.
#
# LLVM 14 cannot link for riscv64.

set -eu

top=$1
make=$2
arch=$3
build=$top/build-$arch
sysroot=$top/build/deps/$arch
tests="compat/kern sys/sys sys/net/vale sys/dev/e1000 usr.sbin/bhyve \
    lib/libframe"

# cross directory argument...: build a directory.
cross()
{
	local dir=$1

	shift
	(cd "$top/$dir" && $make OBJTOP="$build" MK_DTRACE=no \
	    CC="clang-19 --target=$arch-linux-gnu --sysroot=$sysroot \
	    -DWITHOUT_DTRACE" "$@" all)
}

cross . ONLY_LIBS=yes
echo "syntax(2)" > "$build/Kyuafile"
for dir in $tests; do
	cross "tests/$dir" EMULATOR="qemu-$arch -L $sysroot"
	echo "include('tests/$dir/Kyuafile')" >> "$build/Kyuafile"
done
kyua -v parallelism="$(nproc)" test -k "$build/Kyuafile"
