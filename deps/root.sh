#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# root.sh release target...: run make(1) in a clean root of a Debian release.
# The release is trixie or bookworm; if it is empty, the one of the two that the
# system does not run.
#
# Each run deletes the root under build/root/RELEASE, unpacks the release there
# and copies the sources to the path that they have outside; with KEEP=yes it goes
# on in the root of the last run, if that ended without an error.  The root shares
# build/deps with the system: it has what deps.sh has fetched, in root/ the
# release as debootstrap installs it, and in archives/ the packages that earlier
# roots have fetched.
#
# All mounts are made in a new mount namespace.  They end with its last process,
# even if this script is killed.

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

# Whether this run continues in the root of the last one.
kept()
{
	[ "${KEEP:-no}" = yes ] && [ -e "$root.done" ]
}

install_release()
{
	release_tar "$release"
	say "unpacking $release in $root"
	rm -rf --one-file-system "$root"
	mkdir -p "$root"
	tar -C "$root" -xpf "$deps/root/$release.tar"
	apt_acquire > "$root/etc/apt/apt.conf.d/90system"
	# dpkg(1) need not wait for the disk: the root is made again each time.
	echo force-unsafe-io > "$root/etc/dpkg/dpkg.cfg.d/unsafe-io"
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

# run command...: run it in the root, with a clean environment.  Proxies are
# kept.
run()
{
	env -i PATH=$path HOME=/root TERM="${TERM:-dumb}" LC_ALL=C.UTF-8 \
	    ${CI:+CI="$CI"} ${JOBS:+JOBS="$JOBS"} \
	    ${http_proxy:+http_proxy="$http_proxy"} \
	    ${https_proxy:+https_proxy="$https_proxy"} \
	    chroot "$root" "$@"
}

kept || install_release
mount_all
if ! kept; then
	copy_sources
	quietly again run apt-get -q update
	quietly again run apt-get -q -y install --no-install-recommends make
fi
rm -f "$root.done"
say "make $* in $root"
run make -C "$top" --no-print-directory "$@" < /dev/null
: > "$root.done"
