# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# tools/upstream/upstream.sh, on a stand-in for FreeBSD's tree that has what the
# script edits.  Whether the result builds, only a whole tree can show.

. "$(atf_get_srcdir)/cases.subr"

top=$(cd "$(atf_get_srcdir)/../../.." && pwd)
script=$top/tools/upstream/upstream.sh

# words FILE VARIABLE WORD...: a makefile with this list.
words()
{
	local file=$1 variable=$2 word

	shift 2
	mkdir -p "$(dirname "$file")"
	{
		printf '%s=' "$variable"
		for word; do
			printf '\t%s \\\n' "$word"
		done
		printf '\tzzz\n\n'
	} >> "$file"
}

# A clone of the stand-in, in tree/.
make_tree()
{
	local bhyve=tree/usr.sbin/bhyve

	mkdir -p $bhyve tree/sys/dev/netmap tree/sys/dev/e1000 \
	    tree/sys/modules/em tree/sys/conf
	echo "MAN=	bhyve.8 bhyve_config.5" > $bhyve/Makefile
	words $bhyve/Makefile SRCS acpi.c hda_codec.c net_utils.c \
	    pci_e82545.c virtio.c
	echo ".include <bsd.prog.mk>" >> $bhyve/Makefile
	touch $bhyve/bhyverun.c $bhyve/pci_e82545.c
	touch tree/sys/dev/netmap/netmap_vale.c
	printf '%s\n' 'static struct net_backend vale_backend = {' '	0' \
	    '};' '' 'DATA_SET(net_backend_set, netmap_backend);' \
	    'DATA_SET(net_backend_set, vale_backend);' \
	    > $bhyve/net_backend_netmap.c
	printf '%s\n' '.It Cm e1000' '.It Cm uart' '.Xr bhyvectl 8 ,' \
	    '.Sh SEE ALSO' '.Xr vmm 4 ,' '.Xr bhyvectl 8 ,' > $bhyve/bhyve.8
	words tree/share/man/man4/Makefile MAN aac.4 em.4 vale.4
	printf '%s\n' '.Sh LOADER TUNABLES' '.Sh FILES' '.Sh SEE ALSO' \
	    '.Xr arp 4 ,' '.Xr vlan 4' > tree/share/man/man4/em.4
	# What em_pv_script_test has more of.
	printf '%s\n' 'static void	*em_register(device_t);' \
	    'static driver_t em_if_driver = {' \
	    'static struct if_shared_ctx em_sctx_init = {' \
	    '	return (&em_sctx_init);' > tree/sys/dev/e1000/if_em.c
	printf 'CORE_SRC = if_em.c em_txrx.c e1000_osdep.c\n' \
	    > tree/sys/modules/em/Makefile
	printf '%s\n' 'dev/e1000/e1000_osdep.c		optional em \' \
	    '	compile-with "${NORMAL_C} -I$S/dev/e1000"' \
	    > tree/sys/conf/files
	words tree/share/man/man4/Makefile _dtrace_provs dtrace_tcp.4
	words tree/share/man/man9/Makefile MAN accept.9 panic.9
	mkdir -p tree/sys/modules
	echo 'SUBDIR=${MODULES_OVERRIDE}' > tree/sys/modules/Makefile
	words tree/sys/modules/Makefile SUBDIR aac vge
	cd tree
	git init -q
	git config user.name test
	git config user.email test@localhost
	git add -A
	git commit -q -m base
	git tag base
	cd ..
}

# has FILE LINE: the file has the line, white space aside.
has()
{
	tr -s '\t ' ' ' < "$1" | grep -qx " *$2" ||
	    atf_fail "$1: no line $2: $(cat "$1")"
}

# ours BEFORE AFTER FILE: names in a file of bhyve, of files of this project.
ours()
{
	(cd tree/usr.sbin/bhyve && grep -ohE \
	    "$1(e825[0-9]*|frame|net_port|net_backend_vale|(lib)?vale|kernel_)\
[a-z_]*$2" \
	    $3) | sed 's/.*["[:space:]]//' | sort -u
}

test_case series "Each commit adds its files and their names in makefiles" \
    require.progs git
series_body()
{
	local c f

	make_tree
	atf_check -o match:"ports" -o match:"em: send combining" \
	    sh "$script" -x 'git log -1 --format=%s >> ../ran' tree
	[ "$(git -C tree rev-list --count base..)" -eq 6 ] ||
	    atf_fail "$(git -C tree log --format=%s base..)"
	[ "$(wc -l < ran)" -eq 6 ] || atf_fail "-x: $(cat ran)"
	[ -z "$(git -C tree status --porcelain)" ] || atf_fail "files are left"
	# Whatever a makefile names is there, and has what it includes.
	for c in $(git -C tree rev-list --reverse base..); do
		git -C tree checkout -q "$c"
		for f in $(ours '[[:space:]]' '\.c' Makefile) \
		    $(ours '^#include "' '\.h' '*.[ch]' |
		    grep -v provider.h); do
			[ -f "tree/usr.sbin/bhyve/$f" ] ||
			    atf_fail "$c: no usr.sbin/bhyve/$f"
		done
		for f in $(sed -n 's/^#include <\(dev\/e1000\/.*\)>.*/\1/p' \
		    tree/usr.sbin/bhyve/*.[ch] | sort -u); do
			[ -f "tree/sys/$f" ] || atf_fail "$c: no sys/$f"
		done
		! grep -l '^#include <sys/systm.h>' \
		    tree/usr.sbin/bhyve/*.[ch] ||
		    atf_fail "$c: a kernel's header in bhyve"
	done
	for f in $(awk '/\.c/ { for (i = 1; i <= NF; i++) if ($i ~ /\.c$/)
	    print $i }' "$top/usr.sbin/bhyve/e82545.mk"); do
		has tree/usr.sbin/bhyve/Makefile "$f \\\\"
	done
	for f in em_pv.c em_pv_sysctl.c em_pv_txrx.c lem_spin.c; do
		[ -f "tree/sys/dev/e1000/$f" ] || atf_fail "no $f"
		grep -q "^dev/e1000/$f[[:blank:]]*optional em " \
		    tree/sys/conf/files || atf_fail "conf/files: no $f"
	done
	has tree/sys/modules/em/Makefile "CORE_SRC = if_em.c em_txrx.c \
e1000_osdep.c em_pv.c em_pv_sysctl.c em_pv_txrx.c lem_spin.c"
	has tree/sys/dev/e1000/if_em.c "void \*em_pv_register(device_t);"
	grep -A 99 '^.Sh SYSCTL VARIABLES' tree/share/man/man4/em.4 > section
	for f in itr sc csb poll rx_share tx_kicks; do
		grep -q "^.It Va dev.em.N.$f$" section ||
		    atf_fail "em.4: no $f: $(cat section)"
	done
	! grep 'em_pv\|Xr em 4' section || atf_fail "em.4 names the module"
	has tree/usr.sbin/bhyve/Makefile \
	    "MAN= bhyve.8 bhyve-e1000.8 bhyve_config.5"
	has tree/usr.sbin/bhyve/Makefile "SRCS+= e82545_provider.d"
	has tree/sys/modules/Makefile 'SUBDIR=${MODULES_OVERRIDE}'
	has tree/sys/modules/Makefile 'vale_learn \\'
	has tree/share/man/man4/Makefile 'vale_learn.4 \\'
	has tree/share/man/man4/Makefile 'dtrace_vale.4 \\'
	has tree/share/man/man4/Makefile 'dtrace_lem.4 \\'
	has tree/share/man/man9/Makefile 'paravirt_csb.9 \\'
	[ "$(grep -c bhyve-e1000 tree/usr.sbin/bhyve/bhyve.8)" -eq 1 ] ||
	    atf_fail "bhyve.8: $(cat tree/usr.sbin/bhyve/bhyve.8)"
	has tree/usr.sbin/bhyve/bhyve.8 '.It Cm e1000e'
	! grep vale tree/usr.sbin/bhyve/net_backend_netmap.c ||
	    atf_fail "net_backend_netmap.c still has the backend"
	[ ! -e tree/usr.sbin/bhyve/e82545_csb_none.c ] ||
	    atf_fail "the stand-in for the CSB is still there"
	grep -q 'ec_csb = E82545_CSB_ON;' tree/usr.sbin/bhyve/pci_e82545.c ||
	    atf_fail "the CSB is off in the end"
	git -C tree checkout -q "$(git -C tree rev-list --reverse base.. |
	    sed -n 3p)"
	! grep -q 'E82545_CSB_ON;\|"itr_min", "csb"' \
	    tree/usr.sbin/bhyve/pci_e82545*.c ||
	    atf_fail "an adapter without a CSB offers one"
}

test_case refused "A tree that is not FreeBSD's, has changes, or is not as  \
expected is refused, and a command that fails ends the series" require.progs git
refused_body()
{
	atf_check -s exit:2 -e match:usage sh "$script"
	mkdir empty
	for series in em ../upstream ""; do
		atf_check -s exit:2 -e match:usage \
		    sh "$script" -s "$series" empty
	done
	atf_check -s exit:1 -e match:"not a FreeBSD source tree" \
	    sh "$script" empty
	make_tree
	atf_check -s exit:1 -o empty -e match:"pci_e82545.c: nothing matches" \
	    sh "$script" -s small tree
	[ -z "$(git -C tree status --porcelain)" ] || atf_fail "files are left"
	echo >> tree/usr.sbin/bhyve/bhyve.8
	atf_check -s exit:1 -e match:"has changes" sh "$script" tree
	git -C tree checkout -q .
	atf_check -s exit:1 -o match:"frame ports" -e match:"command failed" \
	    sh "$script" -x false tree
	[ "$(git -C tree rev-list --count base..)" -eq 1 ] ||
	    atf_fail "goes on after a failure"
	git -C tree reset -q --hard base
	echo > tree/usr.sbin/bhyve/net_backend_netmap.c
	git -C tree commit -q -a -m "no backend"
	atf_check -s exit:1 -o ignore \
	    -e match:"net_backend_netmap.c: nothing matches" \
	    sh "$script" tree
	[ -z "$(git -C tree status --porcelain)" ] || atf_fail "files are left"
	git -C tree reset -q --hard base
	sed -i 's/^SUBDIR=\t/XSUBDIR=/' tree/sys/modules/Makefile
	git -C tree commit -q -a -m "no list"
	atf_check -s exit:1 -o ignore -e match:"Makefile: no list SUBDIR" \
	    sh "$script" tree
}

test_case small_tests "The small series lays each of its tests, with the cases of \
later commits, into a sorted makefile"
small_tests_body()
{
	local f tests=$top/tools/upstream/tests

	for f in "$tests"/*.c "$tests"/iflib/*.[ch]; do
		f=${f#"$tests"/}
		grep -qE "(program|cases .*) ${f%.c}( |\$)|tests/$f" \
		    "$top"/tools/upstream/*.subr || atf_fail "$f is not laid"
	done
	(
		bhyve=bhyve
		put()
		{
			cp "$top/$2" "$1/"
		}
		. "$top/tools/upstream/tests.subr"
		mkdir -p bhyve/tests
		cp "$tests/Makefile" "$tests/pci_e82545_test.c" bhyve/tests
		program net_backend_netmap_test
		program pci_emul_test
		program mevent_test
		cases pci_e82545_test pci_e82545_batch
		cases pci_e82545_test pci_e82545_moderation
	) || atf_fail "tests.subr"
	sed -n 's/^ATF_TESTS_C+=//p' bhyve/tests/Makefile > names
	atf_check -o inline:"4\n" grep -c . names
	atf_check sort -c names
	for f in $(sed -n 's/^TEST(\([a-z0-9_]*\),.*/\1/p' \
	    "$tests"/pci_e82545_*.c); do
		[ "$(grep -c "^TEST($f,\|^	ATF_TP_ADD_TC(tp, $f);" \
		    bhyve/tests/pci_e82545_test.c)" -eq 2 ] ||
		    atf_fail "no case $f"
	done
}

test_case relnotes "RELNOTES of main names the commits; no other is changed" \
    require.progs git
relnotes_body()
{
	local ids

	# As upstream.sh edits and commits, in a tree of twelve commits.
	edit()
	{
		sed "$2" "$1" > new
		mv new "$1"
	}
	commit()
	{
		cat > message
	}
	git init -q
	git config user.name test
	git config user.email test@localhost
	for ids in base $(seq 12); do
		git commit -q --allow-empty -m "$ids"
	done
	base=$(git rev-list --max-parents=0 HEAD)
	mkdir -p sys/conf
	echo 'BRANCH="STABLE"' > sys/conf/newvers.sh
	printf '%s\n' 'Changes to this file should not be MFCed.' '' \
	    '0123456789ab:' '	An entry.' > RELNOTES
	cp RELNOTES RELNOTES.base
	atf_check -o match:"not main" sh -c "base=$base
	    . '$top/tools/upstream/relnotes.subr'"
	atf_check cmp RELNOTES.base RELNOTES
	echo 'BRANCH="CURRENT"' > sys/conf/newvers.sh
	. "$top/tools/upstream/relnotes.subr"
	atf_check test -s message
	atf_check -o inline:"$(head -2 RELNOTES.base)\n\n" head -2 RELNOTES
	atf_check -o inline:"$(tail -2 RELNOTES.base)\n" tail -2 RELNOTES
	ids=$(git log --reverse --format=%h --abbrev=12 HEAD~6..HEAD~3 |
	    paste -s -d , - | sed 's/,/, /g')
	atf_check -o ignore grep -x "$ids:" RELNOTES
	sed -n 's/:$//p' RELNOTES | tr -d ' ' | tr , '\n' |
	    grep -v 0123456789ab | while read -r id; do
		git rev-parse -q --verify "$id" > /dev/null ||
		    atf_fail "$id: no commit"
	done
	expand RELNOTES | awk 'length > 80' > long
	atf_check test ! -s long
}

test_case no_csb "The stand-in for the CSB's files has their functions" \
    require.progs "cc nm"
no_csb_body()
{
	local o=$top/build/usr.sbin/bhyve

	atf_check cc -std=gnu11 -Wall -Wextra -Werror -c -o none.o \
	    -I"$top/compat/kern" -I"$top/compat/include" -I"$top/sys" \
	    -I"$top/lib/libframe" -I"$top/usr.sbin/bhyve" \
	    "$top/tools/upstream/e82545_csb_none.c"
	nm none.o | awk '$2 == "T" { print $3 }' | sort > none
	nm "$o"/e825*.o | awk '$1 == "U" && $2 ~ /^e82545_csb/ { print $2 }' |
	    sort -u > used
	nm "$o"/e82545_csb*.o | awk '$2 == "T" { print $3 }' | sort -u > defined
	comm -12 used defined > wanted
	atf_check -s exit:0 test -s wanted
	atf_check -o empty comm -13 none wanted
	atf_check -o empty comm -23 none wanted
}
