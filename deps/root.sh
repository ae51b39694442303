#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# root.sh release target...: make targets in a clean root of a Debian release.
# Without a release, it is the other one of Debian 12 and 13.
#
# Installs the release under build/root/RELEASE, copies the sources to where they
# are outside, so that names do not change, and runs make(1) there.  The root is
# made anew each time.  It shares build/deps with the system: what deps.sh has
# fetched, and the packages that this root has installed before.
#
# What is mounted is mounted in a namespace of its own: it is gone when the last
# process of the root is, however that ends.

set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
deps=$top/build/deps
path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

. "$top/deps/deps.subr"

release=${1:-}
[ $# -eq 0 ] || shift
if [ -z "$release" ]; then
	release=trixie
	[ "$(os_release VERSION_CODENAME)" != trixie ] || release=bookworm
fi
root=$top/build/root/$release
archives=$deps/archives/$release

[ "$(id -u)" -eq 0 ] || die "run as root: make check-root"
if [ -z "${IN_NAMESPACE:-}" ]; then
	exec env IN_NAMESPACE=yes unshare --mount --propagation private \
	    sh "$0" "$release" "$@"
fi
mkdir -p "$root" "$archives"
exec 9> "$root.lock"
flock -n 9 || die "$root is in use"

install_release()
{
	say "installing $release in $root"
	rm -rf --one-file-system "$root"
	mkdir -p "$root"
	quietly again debootstrap --variant=minbase --include=make \
	    --cache-dir="$archives" --keyring="$keyring" \
	    "$release" "$root" "$(debian_mirror)"
	apt_acquire > "$root/etc/apt/apt.conf.d/90system"
	cp /etc/resolv.conf /etc/hosts "$root/etc/"
	cat "$root/etc/debian_version" >&2
}

mount_all()
{
	mount -t proc proc "$root/proc"
	mount --rbind /sys "$root/sys"
	mount --rbind /dev "$root/dev"
	mount -t tmpfs tmpfs "$root/run"
	mount --bind "$archives" "$root/var/cache/apt/archives"
	mkdir -p "$root$top/build/deps"
	mount --bind "$deps" "$root$top/build/deps"
}

copy_sources()
{
	tar -C "$top" --exclude './build' --exclude './build-*' \
	    --exclude './.git' -cf - . | tar -C "$root$top" -xf -
}

# run command...: in the root, with an environment that is clean except for
# what the network needs.
run()
{
	env -i PATH=$path HOME=/root TERM="${TERM:-dumb}" LC_ALL=C.UTF-8 \
	    ${CI:+CI="$CI"} ${JOBS:+JOBS="$JOBS"} \
	    ${http_proxy:+http_proxy="$http_proxy"} \
	    ${https_proxy:+https_proxy="$https_proxy"} \
	    chroot "$root" "$@"
}

install_release
mount_all
copy_sources
say "make $* in $root"
run make -C "$top" --no-print-directory "$@" < /dev/null
