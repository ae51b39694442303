# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The Debian packages of debian/: built from a copy of the tree, checked with
# lintian, installed and used in a clean root of the release (installed.subr) under
# its systemd (units.subr), and as valed(7) has it (page.subr).  The cases use the
# same packages, which the first one makes, and a root each.

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

test_case package "The Debian packages are built, free of lintian's errors and \
warnings; lem(4) is built from its package; pages name what there is" \
    require.progs "$programs" timeout 5400
package_body()
{
	local f

	packages
	# Without --allow-root, lintian says that it is run as root.
	atf_check -o empty -e empty lintian --allow-root \
	    --fail-on error,warning *.changes

	unpack_pages
	for f in NEWS.md.gz SECURITY.md; do
		[ -f all/usr/share/doc/valed/$f ] || atf_fail "no $f"
	done
	# Wireshark looks there.
	f=$(echo all/usr/lib/*/wireshark/extcap/vale-cap)
	atf_check_equal all/usr/bin/vale-cap \
	    "all/usr/$(realpath -m --relative-to=all/usr "$f")"
	check_lem
	check_pages
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

root_case check_units units "In a clean root systemd starts, reloads, restarts, \
upgrades and stops what is installed, guests and programs use it, and purging \
leaves nothing"
root_case check_page page "In a clean root the commands of valed(7) run"
