#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# mkdpdk.sh dpdk initramfs out
#
# Appends to an initramfs what a guest needs to run DPDK's testpmd on its
# adapters: from dpdk (build/deps/dpdk) the program, its em driver, a memory
# pool driver, and the libraries that these name.

set -eu

dpdk=$1
out=$3
root=$out.d
libs=usr/lib/x86_64-linux-gnu

# libraries FILE: copies the libraries that an ELF file needs.
libraries()
{
	local name

	for name in $(llvm-readelf --needed-libs "$1" | grep '\.so'); do
		[ ! -e "$root/lib/x86_64-linux-gnu/$name" ] || continue
		cp -L "$dpdk/$libs/$name" "$root/lib/x86_64-linux-gnu/"
		libraries "$dpdk/$libs/$name"
	done
}

rm -rf "$root"
mkdir -p "$root/bin" "$root/lib/x86_64-linux-gnu"
cp "$dpdk/usr/bin/dpdk-testpmd" "$root/bin/"
libraries "$dpdk/usr/bin/dpdk-testpmd"
for f in librte_net_e1000.so librte_mempool_ring.so; do
	cp -L "$dpdk/$libs/$f".?? "$root/lib/$f"
	libraries "$root/lib/$f"
done

{
	cat "$2"
	(cd "$root" &&
	    find . | LC_ALL=C sort | cpio -o -H newc -R 0:0 --quiet)
} > "$out.tmp"
rm -rf "$root"
mv "$out.tmp" "$out"
