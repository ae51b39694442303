#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# mkinitramfs.sh source guest kernel modules out file ...
#
# Packs the guests' root file system into out: init and guest.sh from the
# directory source; Debian's busybox and ethtool from guest (build/deps/guest);
# modules, and those that they need, of the directory kernel, in /lib, with
# NAME.needs, which lists what must be loaded before; the given files: *.subr and
# *.ko in /lib, others in /bin.

set -eu

src=$1
guest=$2
kernel=$3
modules=$4
out=$5
shift 5
root=$out.d

# needs FILE: prints the modules that a module needs.
needs()
{
	tr '\0' '\n' < "$1" | sed -n 's/^depends=//p' | tr ',' ' '
}

# add_module NAME: adds a module, unless it is built in, and those that it needs.
add_module()
{
	local file m order=

	[ ! -e "$root/lib/$1.ko" ] || return 0
	file=$(find "$kernel"/usr/lib/modules "$kernel"/lib/modules \
	    -name "$1.ko*" 2>/dev/null | head -n 1) || true
	case $file in
	*.xz)	xz -dc "$file" > "$root/lib/$1.ko" ;;
	?*)	cp "$file" "$root/lib/$1.ko" ;;
	*)	return 0 ;;
	esac
	for m in $(needs "$root/lib/$1.ko"); do
		add_module $m
		order="$order $(cat "$root/lib/$m.needs") $m"
	done
	echo $order > "$root/lib/$1.needs"
}

rm -rf "$root"
for d in bin dev lib/x86_64-linux-gnu lib64 proc sys tmp; do
	mkdir -p "$root/$d"
done
cp "$src/init" "$root/init"
chmod 755 "$root/init"
cp "$src/guest.sh" "$root/lib/"
for f; do
	case $f in
	*.subr|*.ko) cp "$f" "$root/lib/" ;;
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

for m in $modules; do
	add_module $m
done

(cd "$root" && find . | LC_ALL=C sort | cpio -o -H newc -R 0:0 --quiet) \
    > "$out.tmp"
rm -rf "$root"
mv "$out.tmp" "$out"
