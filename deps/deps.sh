#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Sets up what the build, the tests and the demo need on Linux:
#
#	deps.sh build	Debian packages (deps/packages); what "make all" needs
#	deps.sh bench	those, and what it is compared with (deps/packages.bench)
#	deps.sh		those of deps/packages, and under build/deps, without touching the system:
#		bin/qemu-system-x86_64	one that has vfio-user-pci
#		guest/			the guests' kernel, modules, programs
#		zig/			compiler with FreeBSD's headers
#
# Packages are installed when run as root; another user is told the command.
# The rest needs no root.  What is there is not fetched again.

set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
deps=$top/build/deps
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

zig_version=0.17.0
zig_url=https://files.pythonhosted.org/packages/fe/6f
zig_url=$zig_url/e1c380fe61db36cb464d5d4d18c557338812500986885373e2550d4ebf6b
zig_url=$zig_url/ziglang-$zig_version-py3-none-manylinux_2_12_x86_64
zig_url=$zig_url.manylinux2010_x86_64.musllinux_1_1_x86_64.whl
zig_sha256=97079827064a7492cce5541ceb438ae8003ce1e54e399676da2d62fb7a5dc08b

# Runs a command that fetches something: where it fails, that may pass.
again()
{
	local i

	for i in 1 2 3; do
		! "$@" || return 0
		sleep 10
	done
	"$@"
}

# Runs a command, and shows what it wrote only if it fails.
quietly()
{
	if ! "$@" > "$deps/log" 2>&1; then
		cat "$deps/log" >&2
		die "failed: $*"
	fi
}

say()
{
	echo "deps: $*" >&2
}

die()
{
	say "$*"
	exit 1
}

# Prints the packages of the lists that are not installed.
missing_packages()
{
	local list installed p

	list=$(sed -e '/^#/d' -e 's/[[:space:]].*//' $lists)
	installed=" $(dpkg-query -W -f '${db:Status-Status} ${Package}\n' \
	    $list 2>/dev/null | sed -n 's/^installed //p' | tr '\n' ' ')"
	for p in $list; do
		case $installed in
		*" $p "*)	;;
		*)		echo "$p" ;;
		esac
	done
}

# update takes old lists for none, and install finds out.
install_packages()
{
	apt-get -q update && env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
	    -o DPkg::Lock::Timeout=600 install --no-install-recommends "$@"
}

packages()
{
	local missing

	if ! command -v dpkg-query >/dev/null; then
		command -v bmake >/dev/null && return
		die "not a Debian system; install what deps/packages lists"
	fi
	missing=$(missing_packages | tr '\n' ' ')
	[ -n "$missing" ] || return 0
	if [ "$(id -u)" -ne 0 ]; then
		say "missing: $missing"
		die "run: sudo make deps"
	fi
	say "installing $missing"
	quietly again install_packages $missing
}

# apt-get and apt-cache of the private apt.
private_apt()
{
	env APT_CONFIG="$deps/apt/apt.conf" "$@"
}

setup_apt()
{
	local apt=$deps/apt

	[ ! -e "$apt/.done" ] || return 0
	[ "$(dpkg --print-architecture)" = amd64 ] ||
	    die "QEMU and the guests are set up on x86-64 only"
	[ -r "$keyring" ] || die "$keyring is missing: install" \
	    "debian-archive-keyring"
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" \
	    "$apt/etc/preferences.d" "$apt/log"
	: > "$apt/status"
	sed "s,@DIR@,$apt,g" "$top/deps/apt.conf.in" > "$apt/apt.conf"
	cat > "$apt/etc/debian.sources" <<-EOT
	Types: deb
	URIs: $mirror
	Suites: trixie trixie-backports
	Components: main
	Signed-By: $keyring
	EOT
	cat > "$apt/etc/preferences" <<-EOT
	Package: src:qemu src:seabios
	Pin: release n=trixie-backports
	Pin-Priority: 990
	EOT
	quietly again private_apt apt-get -q update
	touch "$apt/.done"
}

has_vfio_user()
{
	"$1" -device vfio-user-pci,help 2>/dev/null | grep -q socket
}

# The system's QEMU if it can; otherwise the one of trixie-backports with its
# libraries, unpacked and run through its own dynamic linker, so that it sees
# the same files and sockets as everything else.
setup_qemu()
{
	local bin=$deps/bin/qemu-system-x86_64 root=$deps/qemu f

	if [ -x "$bin" ] && [ -e "$deps/.qemu" ]; then
		return 0
	fi
	mkdir -p "$deps/bin"
	if f=$(command -v qemu-system-x86_64) && has_vfio_user "$f"; then
		ln -sf "$f" "$bin"
		touch "$deps/.qemu"
		return 0
	fi
	setup_apt
	say "fetching QEMU from trixie-backports"
	quietly again private_apt apt-get -q -y install --download-only \
	    qemu-system-x86
	rm -rf "$root"
	mkdir -p "$root"
	for f in "$deps"/apt/cache/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$f" |
		    tar -C "$root" --no-same-owner -xf - \
		    --exclude './usr/share/doc/*' --exclude './usr/share/man/*'
		rm "$f"
	done
	cat > "$bin" <<-EOT
	#!/bin/sh
	root=$root
	lib=\$root/usr/lib/x86_64-linux-gnu
	export QEMU_MODULE_DIR=\$lib/qemu
	exec \$root/usr/lib64/ld-linux-x86-64.so.2 --inhibit-cache \\
	    --library-path \$lib \$root/usr/bin/qemu-system-x86_64 \\
	    -L \$root/usr/share/qemu -L \$root/usr/share/seabios \\
	    -L \$root/usr/lib/ipxe/qemu "\$@"
	EOT
	chmod +x "$bin"
	has_vfio_user "$bin" || die "$bin lacks vfio-user-pci"
	touch "$deps/.qemu"
}

# Takes the ELF kernel out of a bzImage, where the header says (Linux's
# Documentation/arch/x86/boot.rst).  Started as it is, a guest does not spend
# its first seconds on unpacking itself.
extract_kernel()
{
	local sects off len

	sects=$(od -An -tu1 -j497 -N1 "$1")
	off=$(od -An -tu4 -j584 -N4 "$1")
	len=$(od -An -tu4 -j588 -N4 "$1")
	tail -c +$(((sects + 1) * 512 + off + 1)) "$1" | head -c $((len - 4)) |
	    zstd -qdc > "$2"
}

# Debian's kernel, and the programs that run beside it in a guest.
setup_guest()
{
	local guest=$deps/guest image f

	[ ! -e "$deps/.guest" ] || return 0
	setup_apt
	say "fetching the guests' kernel and programs"
	image=$(private_apt apt-cache depends linux-image-amd64 |
	    sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p')
	rm -rf "$guest"
	mkdir -p "$guest/debs"
	(cd "$guest/debs" && quietly again private_apt apt-get -q download \
	    $image busybox-static ethtool libmnl0 libc6)
	for f in "$guest"/debs/*.deb; do
		dpkg-deb --fsys-tarfile "$f" |
		    tar -C "$guest" --no-same-owner -xf - \
		    --exclude './usr/share/doc/*' --exclude './usr/share/man/*'
	done
	rm -r "$guest/debs"
	extract_kernel "$guest"/boot/vmlinuz-* "$guest/vmlinux"
	touch "$deps/.guest"
}

setup_zig()
{
	local wheel=$deps/zig.whl

	[ ! -e "$deps/.zig-$zig_version" ] || return 0
	say "fetching zig $zig_version"
	again curl -fsSL --retry 5 -o "$wheel" "$zig_url"
	echo "$zig_sha256  $wheel" | sha256sum -c --quiet - ||
	    die "$zig_url is not the file it was"
	rm -rf "$deps/zig"
	unzip -q "$wheel" 'ziglang/*' -d "$deps"
	mv "$deps/ziglang" "$deps/zig"
	chmod +x "$deps/zig/zig"
	rm "$wheel"
	touch "$deps/.zig-$zig_version"
}

umask 022
mkdir -p "$deps"
lists=$top/deps/packages
[ "${1:-all}" != bench ] || lists="$lists $top/deps/packages.bench"
packages
[ "${1:-all}" = all ] || exit 0

exec 9> "$deps/.lock"
flock 9
setup_qemu
setup_guest
setup_zig
rm -rf "$deps/apt"
