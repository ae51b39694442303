#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# mkinitramfs.sh source guest out file ...
#
# Packs the guests' root file system into out: init and guest.sh from the
# directory source; Debian's busybox, ethtool and kernel modules from guest
# (build/deps/guest); the given files: *.subr in /lib, others in /bin.

set -eu

src=$1
guest=$2
out=$3
shift 3
root=$out.d

rm -rf "$root"
for d in bin dev lib/x86_64-linux-gnu lib64 proc sys tmp; do
	mkdir -p "$root/$d"
done
cp "$src/init" "$root/init"
chmod 755 "$root/init"
cp "$src/guest.sh" "$root/lib/"
for f; do
	case $f in
	*.subr)	cp "$f" "$root/lib/" ;;
	*)	cp "$f" "$root/bin/" ;;
	esac
done
cp "$guest/usr/sbin/ethtool" "$root/bin/"
cp "$guest/usr/bin/busybox" "$root/bin/"
for f in $("$guest/usr/bin/busybox" --list); do
	[ -e "$root/bin/$f" ] || ln -s busybox "$root/bin/$f"
done

# ethtool's libraries.
cp "$guest/usr/lib64/ld-linux-x86-64.so.2" "$root/lib64/"
for f in libc.so.6 libm.so.6 libmnl.so.0; do
	cp -L "$guest/usr/lib/x86_64-linux-gnu/$f" "$root/lib/x86_64-linux-gnu/"
done

for f in drivers/net/ethernet/intel/e1000/e1000 net/core/pktgen net/802/mrp \
    net/802/garp net/llc/llc net/802/stp net/8021q/8021q; do
	xz -dc "$guest"/usr/lib/modules/*/kernel/$f.ko.xz \
	    > "$root/lib/${f##*/}.ko"
done

(cd "$root" && find . | LC_ALL=C sort | cpio -o -H newc -R 0:0 --quiet) \
    > "$out.tmp"
rm -rf "$root"
mv "$out.tmp" "$out"
