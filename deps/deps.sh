#!/bin/sh
#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# deps.sh [build | bench | arch ARCH]: set up what Linux needs.
#
#	build	Debian packages (deps/packages); "make all" needs no more
#	bench	everything, and what "make bench" and "make paper" compare with
#		(packages.bench)
#	arch	the packages, and what builds and runs programs of another
#		processor (packages.arch); under build/deps/ARCH, aarch64 or
#		riscv64, its libraries and headers
#	-	the packages; and under build/deps, without touching the system:
#		bin/qemu-system-x86_64	a QEMU that has vfio-user-pci
#		guest/			the guests' kernel, modules, programs
#		kernel/RELEASE/		that release's kernel, for guests with lem(4)
#		dpdk/			DPDK's testpmd, for a guest
#		prometheus/		prometheus(1) and promtool(1), which read metrics
#		firmware/		U-Boot, UEFI, GRUB; bin/qemu-system-riscv64
#		root/RELEASE.tar	that release, for the tests of the packages
#		zig/			compiler with FreeBSD's headers
#
# Only root can install packages; another user is shown the command.  Nothing is
# fetched twice.  Everything comes from the mirrors of the system's apt and pip;
# DEBIAN_MIRROR names another one for Debian's packages.

set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
deps=$top/build/deps
what=${1:-all}

. "$top/deps/deps.subr"

# Print the packages of the lists that are not installed.  If the name of a
# package contains a version, the list has a pattern.  apt-get expands it too.
missing_packages()
{
	local found installed list name pattern

	set -f
	list=$(sed -e '/^#/d' -e 's/[[:space:]].*//' $lists)
	installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' \
	    $list 2>/dev/null | sed -n 's/^installed //p')
	for pattern in $list; do
		found=false
		for name in $installed; do
			case $name in
			$pattern)	found=true ;;
			esac
		done
		$found || echo "$pattern"
	done
}

# apt-get update may succeed with old lists, and then apt-get install fails.
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
		die "run: sudo sh deps/deps.sh $what"
	fi
	say "installing $missing"
	quietly again install_packages $missing
}

# private_apt command...: run a command of the private apt.
private_apt()
{
	env APT_CONFIG="$deps/apt/apt.conf" "$@"
}

# setup_apt [architecture]: set it up for packages of amd64, and another.
setup_apt()
{
	local apt=$deps/apt foreign=${1:+"\"$1\";"} mirror

	[ ! -e "$apt/.done" ] || return 0
	[ "$(dpkg --print-architecture)" = amd64 ] ||
	    die "QEMU and the guests are set up on x86-64 only"
	[ -r "$keyring" ] || die "$keyring is missing: install" \
	    "debian-archive-keyring"
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" \
	    "$apt/etc/preferences.d" "$apt/log"
	: > "$apt/status"
	sed -e "s,@DIR@,$apt,g" -e "s/{ \"amd64\"; }/{ \"amd64\"; $foreign }/" \
	    "$top/deps/apt.conf.in" > "$apt/apt.conf"
	apt_acquire >> "$apt/apt.conf"
	mirror=$(debian_mirror)
	cat > "$apt/etc/debian.sources" <<-EOT
	Types: deb
	URIs: $mirror
	Suites: trixie
	Components: main
	Signed-By: $keyring

	Types: deb
	URIs: $mirror
	Suites: trixie-backports
	Architectures: amd64
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

# unpack from to: unpack the packages in one directory into another, and remove
# them.
unpack()
{
	local f

	mkdir -p "$2"
	for f in "$1"/*.deb; do
		dpkg-deb --fsys-tarfile "$f" |
		    tar -C "$2" --no-same-owner -xf - \
		    --exclude './usr/share/doc/*' --exclude './usr/share/man/*'
		rm "$f"
	done
}

has_vfio_user()
{
	"$1" -device vfio-user-pci,help 2>/dev/null | grep -q socket
}

# private_qemu PROGRAM: has bin/PROGRAM run that of the unpacked QEMU, by its own
# dynamic linker.
private_qemu()
{
	local bin=$deps/bin/$1

	cat > "$bin" <<-EOT
	#!/bin/sh
	# Another clone may have a link to this file.
	root=\$(dirname "\$(readlink -f "\$0")")/../qemu
	lib=\$root/usr/lib/x86_64-linux-gnu
	export QEMU_MODULE_DIR=\$lib/qemu
	exec \$root/usr/lib64/ld-linux-x86-64.so.2 --inhibit-cache \\
	    --library-path \$lib \$root/usr/bin/$1 \\
	    -L \$root/usr/share/qemu -L \$root/usr/share/seabios \\
	    -L \$root/usr/lib/ipxe/qemu "\$@"
	EOT
	chmod +x "$bin"
	has_vfio_user "$bin" || die "$bin lacks vfio-user-pci"
}

# Use the system's QEMU if it has vfio-user-pci.  Otherwise unpack that of
# trixie-backports with its libraries.  It has no root of its own, so it opens the
# same files and sockets as valed.
setup_qemu()
{
	local bin=$deps/bin/qemu-system-x86_64 root=$deps/qemu f

	if [ -x "$bin" ] && [ -e "$deps/.qemu" ]; then
		return 0
	fi
	mkdir -p "$deps/bin"
	rm -f "$bin"
	if f=$(command -v qemu-system-x86_64) && has_vfio_user "$f"; then
		ln -s "$f" "$bin"
		touch "$deps/.qemu"
		return 0
	fi
	setup_apt
	say "fetching QEMU from trixie-backports"
	quietly again private_apt apt-get -q -y install --download-only \
	    qemu-system-x86
	rm -rf "$root" "$deps/.firmware"
	unpack "$deps/apt/cache/archives" "$root"
	private_qemu qemu-system-x86_64
	touch "$deps/.qemu"
}

# extract_kernel bzImage file: extract the ELF kernel, compressed by zstd or xz;
# the header has its place (Linux's Documentation/arch/x86/boot.rst).  A guest
# that starts it need not spend its first seconds on decompression.
extract_kernel()
{
	local sects off len unpack=zstd

	sects=$(od -An -tu1 -j497 -N1 "$1")
	off=$(($(od -An -tu4 -j584 -N4 "$1") + (sects + 1) * 512))
	len=$(od -An -tu4 -j588 -N4 "$1")
	[ $(od -An -tu1 -j$off -N1 "$1") -ne 253 ] || unpack=xz
	tail -c +$((off + 1)) "$1" | head -c $((len - 4)) |
	    $unpack -qdc > "$2"
}

# Fetch Debian's kernel and the programs that run in a guest.
setup_guest()
{
	local guest=$deps/guest image

	[ ! -e "$deps/.guest" ] || return 0
	setup_apt
	say "fetching the guests' kernel and programs"
	image=$(private_apt apt-cache depends linux-image-amd64 |
	    sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p')
	rm -rf "$guest"
	mkdir -p "$guest/debs"
	(cd "$guest/debs" && quietly again private_apt apt-get -q download \
	    $image busybox-static ethtool libmnl0 libc6)
	unpack "$guest/debs" "$guest"
	rmdir "$guest/debs"
	extract_kernel "$guest"/boot/vmlinuz-* "$guest/vmlinux"
	touch "$deps/.guest"
}

# Fetch the kernel whose headers the system has: lem(4) is built for it, with the
# compiler of the same release.  Of its modules, those for networks are kept.
setup_kernel()
{
	local kernel name version

	kernel=$deps/kernel/$(os_release VERSION_CODENAME)
	[ ! -e "$kernel/headers/Makefile" ] || return 0
	# The mirror has the current image only.
	[ "$(id -u)" -ne 0 ] || quietly again install_packages \
	    linux-headers-amd64
	name=$(dpkg-query -W -f '${Depends}' linux-headers-amd64 |
	    sed -n 's/^\(linux-headers-[^ ,]*\).*/\1/p')
	version=${name#linux-headers-}
	[ -d "/usr/src/$name" ] || die "/usr/src/$name is missing"
	say "fetching the kernel $version"
	rm -rf "$kernel"
	mkdir -p "$kernel/debs"
	(cd "$kernel/debs" &&
	    quietly again apt-get -q download "linux-image-$version")
	unpack "$kernel/debs" "$kernel"
	rmdir "$kernel/debs"
	find "$kernel" -name '*.ko*' ! -path '*/net/*' ! -path '*/virtio/*' \
	    -delete
	extract_kernel "$kernel/boot/vmlinuz-$version" "$kernel/vmlinux"
	ln -s "/usr/src/$name" "$kernel/headers"
}

# Fetch DPDK's testpmd, with the libraries that it is linked to, and with its
# drivers.  All else that its package depends on is for other uses.
setup_dpdk()
{
	local archives=$deps/apt/cache/archives libs

	[ ! -e "$deps/.dpdk" ] || return 0
	setup_apt
	say "fetching DPDK"
	libs=$(private_apt apt-cache depends dpdk-dev |
	    sed -n 's/^ *Depends: \(lib.*\)/\1/p' | grep -v -e '-dev$')
	rm -rf "$deps/dpdk"
	quietly again private_apt apt-get -q -y install --download-only \
	    $libs 'librte-net-e1000-[0-9]*' 'librte-mempool-ring[0-9]*'
	(cd "$archives" &&
	    quietly again private_apt apt-get -q download dpdk-dev)
	unpack "$archives" "$deps/dpdk"
	touch "$deps/.dpdk"
}

# Fetch firmware that boots over the network: U-Boot for two processors, with a
# QEMU for the second, UEFI, and GRUB.  If the system's own QEMU is used, that one is
# the system's, too, or there is none.
setup_firmware()
{
	local firmware=$deps/firmware riscv=qemu-system-riscv64 f

	[ ! -e "$deps/.firmware" ] || return 0
	setup_apt
	say "fetching U-Boot, UEFI and GRUB"
	rm -rf "$firmware" "$deps/bin/$riscv"
	mkdir -p "$firmware/debs"
	(cd "$firmware/debs" &&
	    quietly again private_apt apt-get -q download u-boot-qemu ovmf \
	    grub-efi-amd64-bin grub-efi-amd64-unsigned)
	unpack "$firmware/debs" "$firmware"
	find "$firmware" ! -type d ! -path '*/qemu-x86/u-boot.rom' \
	    ! -path '*/qemu-riscv64/u-boot.bin' ! -path '*/ovmf/OVMF.fd' \
	    ! -name grubnetx64.efi ! -name hashsum.mod -delete
	find "$firmware" -type d -empty -delete
	if [ ! -L "$deps/bin/qemu-system-x86_64" ]; then
		mkdir -p "$deps/qemu/debs"
		(cd "$deps/qemu/debs" && quietly again private_apt \
		    apt-get -q download qemu-system-riscv)
		unpack "$deps/qemu/debs" "$deps/qemu"
		rm -r "$deps/qemu/debs" "$deps/qemu/usr/bin/qemu-system-riscv32"
		private_qemu $riscv
	elif f=$(command -v $riscv) && has_vfio_user "$f"; then
		ln -s "$f" "$deps/bin/$riscv"
	fi
	touch "$deps/.firmware"
}

# Fetch Prometheus's server.  Of what its package depends on, the programs need
# libc only.
setup_prometheus()
{
	local prometheus=$deps/prometheus

	[ ! -e "$deps/.prometheus" ] || return 0
	setup_apt
	say "fetching Prometheus"
	rm -rf "$prometheus"
	mkdir -p "$prometheus/debs"
	(cd "$prometheus/debs" &&
	    quietly again private_apt apt-get -q download prometheus promtool)
	unpack "$prometheus/debs" "$prometheus"
	rm -r "$prometheus/debs" "$prometheus/etc" "$prometheus/usr/share"
	touch "$deps/.prometheus"
}

setup_zig()
{
	local list=$top/deps/requirements.txt sum

	sum=$(sha256sum < "$list")
	[ "$(cat "$deps/.zig" 2>/dev/null)" != "$sum" ] || return 0
	say "fetching zig"
	rm -rf "$deps/zig" "$deps/pip"
	quietly again python3 -m pip install --root-user-action=ignore \
	    --no-deps --no-compile --no-cache-dir --only-binary :all: \
	    --require-hashes --target "$deps/pip" -r "$list"
	mv "$deps/pip/ziglang" "$deps/zig"
	rm -r "$deps/pip"
	echo "$sum" > "$deps/.zig"
}

# The libraries of another processor, for clang's --sysroot and QEMU's
# -L.
setup_arch()
{
	local root=$deps/$1 debian f

	[ ! -e "$deps/.$1" ] || return 0
	case $1 in
	aarch64)	debian=arm64 ;;
	riscv64)	debian=riscv64 ;;
	*)		die "ARCH is aarch64 or riscv64, not $1" ;;
	esac
	rm -rf "$deps/apt" "$root"
	setup_apt "$debian"
	say "fetching libraries for $1"
	mkdir -p "$root/debs" "$root/usr/lib"
	ln -s usr/lib "$root/lib"
	(cd "$root/debs" && quietly again private_apt apt-get -q download \
	    linux-libc-dev "libc6:$debian" "libc6-dev:$debian" \
	    "libgcc-s1:$debian" "libgcc-14-dev:$debian" \
	    "libatf-c-1:$debian" "libatf-dev:$debian" \
	    "libjansson4:$debian" "libjansson-dev:$debian")
	for f in "$root"/debs/*.deb; do
		dpkg-deb --fsys-tarfile "$f" |
		    tar -C "$root" --no-same-owner --keep-directory-symlink \
		    -xf - --exclude './usr/share/*'
	done
	rm -r "$root/debs" "$deps/apt"
	touch "$deps/.$1"
}

umask 022
mkdir -p "$deps"
if [ "$(id -u)" -eq 0 ]; then
	# What root fetches for another user's clone is that user's.
	trap 'chown --reference="$top" "$top/build"
	    chown -hR --reference="$top" "$deps"' EXIT
fi
lists=$top/deps/packages
case $what in
arch|bench) lists="$lists $top/deps/packages.$what" ;;
esac
packages
[ "$what" != build ] || exit 0

exec 9< "$deps"
flock 9
if [ "$what" = arch ]; then
	setup_arch "${2:-}"
	exit
fi
setup_qemu
setup_guest
setup_kernel
setup_dpdk
setup_firmware
setup_prometheus
# Tests install the packages that are built here in a copy of it.
[ "$(id -u)" -ne 0 ] || release_tar "$(os_release VERSION_CODENAME)"
setup_zig
rm -rf "$deps/apt"
