# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The Debian packages of debian/: built from a copy of the tree, checked with
# lintian, installed in an empty root, started there and removed again; installed
# and used in a clean root of the release (installed.subr), also by its systemd
# (units.subr), and as valed(7) has it (page.subr).  The cases use the same
# packages, which the first one makes, and a root each.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/wait_until.subr"
. "$(atf_get_srcdir)/installed.subr"
. "$(atf_get_srcdir)/booted.subr"
. "$(atf_get_srcdir)/units.subr"
. "$(atf_get_srcdir)/pages.subr"
. "$(atf_get_srcdir)/page.subr"
. "$(atf_get_srcdir)/tree.subr"

# files_of DIRECTORY
files_of()
{
	(cd "$1" && find . -path ./.git -prune -o -path ./build -prune -o \
	    -path './build-*' -prune -o ! -type d -print | sort)
}

# Builds the packages of source/.  What it takes is in deps/packages; gcc, which
# every package may take for granted, is not.  The package of the sources has what
# is in the tree, without what make(1) has fetched and built.
build()
{
	mkdir -p source/build/deps source/build-san
	: > source/build/deps/fetched
	: > source/build-san/built
	(cd source && alone env \
	    DEB_BUILD_OPTIONS="parallel=2 noautodbgsym" \
	    dpkg-buildpackage -d -us -uc) > log 2>&1 ||
	    atf_fail "dpkg-buildpackage: $(tail -5 log | paste -sd ' ')"
	# A second build, as nothing is left of the first.
	(cd source && alone debian/rules clean) > log 2>&1 ||
	    atf_fail "clean: $(tail -5 log | paste -sd ' ')"
	files_of source > after
	files_of "$top" > before
	atf_check diff -u before after
	grep -v '^[.]/[.]git' before > expected
	tar -tf bhyve-vale_*.tar.xz | grep -v '/$' | sed 's,^[^/]*,.,' |
	    sort > packed
	atf_check diff -u expected packed
}

# packages: the packages of the tree are in the current directory.  The first case
# that is here builds them; those that run at the same time wait.
packages()
{
	local dir=$(atf_get_srcdir)/packages

	mkdir -p "$dir"
	(
		flock 9
		tree=$(tar_tree | sha256sum)
		[ "$(cat "$dir/tree" 2> /dev/null)" != "$tree" ] || exit 0
		rm -rf "$dir"/*
		cd "$dir"
		mkdir source
		tar_tree | tar -C source -xf -
		build
		echo "$tree" > tree
	) 9> "$dir.lock" || exit 1
	cp "$dir"/*.* .
}

# dpkg_root argument...: dpkg(1) in root/.  The packages that valed depends on
# are not there, and its scripts run outside, with DPKG_ROOT.
dpkg_root()
{
	atf_check -o ignore -e ignore env PATH="$PATH:/usr/sbin:/sbin" dpkg \
	    --root="$PWD/root" --force-depends --force-not-root \
	    --force-script-chrootless --no-triggers "$@"
}

# files: what is in the root, except dpkg's own and directories.
files()
{
	(cd root && find . -path ./var/lib/dpkg -prune -o ! -type d -print |
	    sort)
}

# check_lem: lem-dkms has the sources that lem(4) is built of, and needs no dkms(8)
# that Debian 12 lacks; kbuild and dkms(8) build the module, for the kernel of
# guests.  The package is not installed: its scripts would call the system's
# dkms(8).
check_lem()
{
	local kernel tree version

	version=$(dpkg-deb -f lem-dkms_*.deb Version)
	dpkg-deb -f lem-dkms_*.deb Depends > depends
	atf_check -o match:'dkms \(>= 2[.]1[.]0[.]0\)' cat depends
	# Debian 13's dkms(8) has no headers installed, and builds nothing then.
	dpkg-deb -f lem-dkms_*.deb Recommends > recommends
	atf_check -o match:linux-headers-amd64 cat recommends
	dpkg-deb -x lem-dkms_*.deb lem
	[ -f lem/usr/share/man/man4/lem.4.gz ] || atf_fail "no lem.4.gz"
	tree=$PWD/lem/usr/src/lem-$version
	sh "$top/sys/dev/e1000/linux/source.sh" "$top" expected
	atf_check diff -r -x dkms.conf expected "$tree"
	atf_check -o inline:"PACKAGE_VERSION=\"$version\"\n" \
	    grep ^PACKAGE_VERSION= "$tree/dkms.conf"

	kernel=$top/build/deps/kernel/$(. /etc/os-release &&
	    echo $VERSION_CODENAME)
	if [ ! -f "$kernel/headers/Makefile" ]; then
		echo "no headers of the guests' kernel: lem(4) is not built"
		return
	fi
	cp -r "$tree" lem_build
	env -i PATH="$PATH" make -C "$kernel/headers/" M="$PWD/lem_build" \
	    KCFLAGS=-Werror modules > log 2>&1 ||
	    atf_fail "kbuild: $(tail -5 log | paste -sd ' ')"
	check_loading lem_build/lem.ko "$kernel"
	if [ -x /usr/sbin/dkms ]; then
		check_dkms "$(readlink -f "$kernel/headers")" "$version"
	else
		echo "no dkms(8): it does not build lem(4)"
	fi
}

# check_dkms headers version.  Without sign_file it would make keys in /var/lib.
check_dkms()
{
	local kernel=${1##*/linux-headers-}

	mkdir -p dkms
	env -i PATH="$PATH:/usr/sbin:/sbin" TMPDIR="$PWD" \
	    sign_file="$PWD/none" dkms build --dkmstree "$PWD/dkms" \
	    --sourcetree "$PWD/lem/usr/src" -m lem -v "$2" -k "$kernel" \
	    --kernelsourcedir "$1" > log 2>&1 ||
	    atf_fail "dkms: $(tail -5 log | paste -sd ' ')"
	atf_check -o ignore ls dkms/lem/"$2"/"$kernel"/*/module/lem.ko*
}

# check_loading lem.ko kernel: nothing loads the module by itself; the lines of
# lem(4) for modprobe.d(5) load it before e1000 and e1000e, from the modules of the
# kernel.
check_loading()
{
	local PATH="$PATH:/usr/sbin:/sbin" driver e1000 version

	e1000=$(find "$2" -path '*/kernel/drivers/net/*' -name 'e1000.ko*')
	version=${e1000#*/lib/modules/}
	version=${version%%/*}
	mkdir -p modprobe.d modules/lib/modules/"$version"
	cp "$1" "$e1000" "${e1000%/*/*}"/e1000e/e1000e.ko* \
	    modules/lib/modules/"$version"
	atf_check -e ignore depmod -b "$PWD/modules" "$version"
	atf_check -s exit:1 grep lem modules/lib/modules/"$version"/modules.alias
	zcat lem/usr/share/man/man4/lem.4.gz |
	    sed -n "s/^# echo '\(softdep .*\)' >.*/\1/p" > modprobe.d/lem.conf
	for driver in e1000 e1000e; do
		atf_check -o save:loaded modprobe -d "$PWD/modules" \
		    -S "$version" -C "$PWD/modprobe.d" --show-depends $driver
		atf_check -o inline:"lem.ko\n$driver.ko\n" \
		    sed -e 's,.*/,,' -e 's,ko[.a-z]*.*,ko,' loaded
	done
}

programs="dpkg-buildpackage dh dh_dkms lintian gcc tcpdump"

test_case -c package_clean package "The Debian packages are built, free of \
lintian's errors and warnings, and install, serve and remove valed; lem(4) is \
built from its package" require.progs "$programs" timeout 5400
package_body()
{
	local root=$PWD/root f pid unit

	packages
	# Without --allow-root, lintian says that it is run as root.
	atf_check -o empty -e empty lintian --allow-root \
	    --fail-on error,warning *.changes

	mkdir -p root/var/lib/dpkg/info root/var/lib/dpkg/updates
	: > root/var/lib/dpkg/status
	dpkg_root -i $(ls *.deb | grep -v ^lem-dkms_)
	for f in usr/sbin/valed usr/share/man/man8/valed.8.gz \
	    usr/sbin/valectl usr/share/man/man8/valectl.8.gz \
	    usr/bin/vale-cap usr/share/man/man1/vale-cap.1.gz \
	    usr/lib/*/libvale.so.2 usr/share/man/man3/libvale.3.gz \
	    usr/share/doc/valed/NEWS.md.gz usr/share/doc/valed/SECURITY.md \
	    usr/include/bhyve-vale/libvale.h usr/bin/netmap-run \
	    usr/lib/netmap-run/libnetmap-run.so; do
		[ -f "$(echo root/$f)" ] || atf_fail "no $f: $(files)"
	done
	[ -d root/etc/valed ] || atf_fail "no etc/valed"
	# Wireshark looks there.
	f=$(echo root/usr/lib/*/wireshark/extcap/vale-cap)
	atf_check_equal root/usr/bin/vale-cap \
	    "root/usr/$(realpath -m --relative-to=root/usr "$f")"
	for unit in valed.service valed@.service; do
		f=$(find root/*/ -path "*lib/systemd/system/*" -name $unit -type f)
		atf_check -o ignore grep "ExecStart=/usr/sbin/valed -R -c /run" $f
	done
	for unit in valed-directory.service valed-directory@.service \
	    valectl-metrics.socket valectl-metrics@.service; do
		f=$(find root/*/ -path "*lib/systemd/system/*" -name $unit -type f)
		[ -f "$f" ] || atf_fail "no $unit"
	done
	atf_check -o match:"^ExecStart=-/usr/sbin/valectl " cat "$f"
	# The group that they name; it stays when the package goes.
	atf_check -o match:"^valed:.:[0-9]+:$" cat root/etc/group
	rm -f root/etc/group* root/etc/gshadow* root/etc/.pwd.lock

	check_lem
	check_pages

	# As the unit starts it.
	cat > root/etc/valed/valed.conf <<-END
	pci.0.1.0.device=e1000
	pci.0.1.0.backend=vale0:vm1
	pci.0.1.0.path=$PWD/vm1.sock
	END
	root/usr/sbin/valed -R -c control -k root/etc/valed/valed.conf &
	pid=$!
	echo $pid > pid
	wait_until "the socket" [ -S vm1.sock -a ! -e vm1.sock.lock ] ||
	    atf_fail "valed does not serve"
	atf_check -o inline:"vale0:vm1 bridge_idx 0 port_idx 0\n" \
	    root/usr/sbin/valectl -c control -l all
	kill $pid
	wait $pid || atf_fail "valed failed"
	rm pid

	# What the administrator wrote or enabled stays.
	dpkg_root -r valed netmap-run libvale-dev libvale2
	files | grep -v -e ^./etc/systemd/ -e ^./var/lib/systemd/ > left
	atf_check -o inline:'./etc/valed/valed.conf\n' cat left
	rm root/etc/valed/valed.conf
	dpkg_root -P valed netmap-run libvale-dev libvale2
	files > left
	atf_check -o empty cat left
}
package_clean()
{
	[ ! -e pid ] || kill $(cat pid)
}

# root_case CHECK NAME DESCRIPTION: a case in a clean root.
root_case()
{
	test_case -c root_clean "$2" "$3" require.progs "$programs" timeout 5400
	eval "$2_body() { packages; $1; }"
}
root_clean()
{
	booted_stop "$clean"
	guests_subr
	stop_all
}

root_case check_installed installed "In a clean root guests and programs use \
what is installed, and purging leaves nothing"
root_case check_units units "In a clean root systemd starts, reloads, restarts, \
upgrades and stops what is installed"
root_case check_page page "In a clean root the commands of valed(7) run"
