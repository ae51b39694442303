# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# What all programs that are installed have in common: their options, and how
# they find valed.

. "$(atf_get_srcdir)/valed.subr"

source=$(atf_get_srcdir)/../../../..
build=$(atf_get_srcdir)/../../..
VALECTL=$build/usr.sbin/valectl/valectl
VALE_CAP=$build/usr.bin/vale-cap/vale-cap
NETMAP_RUN=$build/usr.bin/netmap-run/netmap-run

# The directories of the programs: all but bhyve's, which is FreeBSD's.
programs()
{
	(cd "$source" && grep -l '^PROG=\|^SCRIPTS=' usr.bin/*/Makefile \
	    usr.sbin/*/Makefile) | grep -v usr.sbin/bhyve/ | xargs -n 1 dirname
}

# version_of: print the version, as the sources have it.
version_of()
{
	sed -n 's/.*VALE_VERSION.*"\(.*\)"/\1/p' \
	    "$source/lib/libvale/vale_version.h"
}

test_case options "Each program has --help, -h and --version, for the standard \
output, and says on the other what is wrong"
options_body()
{
	local dir name version

	version=$(version_of)
	programs > programs
	[ $(wc -l < programs) -ge 4 ] || atf_fail "$(cat programs)"
	while read -r dir; do
		name=${dir##*/}
		for option in --help -h; do
			atf_check -o match:"^usage: $name " \
			    -o match:"-h, --help" -o match:"--version" \
			    "$build/$dir/$name" $option
		done
		atf_check -o inline:"$name $version\n" \
		    "$build/$dir/$name" --version
		for option in --helpless -Z; do
			atf_check -s exit:64 -e match:"$name: |^usage: $name " \
			    "$build/$dir/$name" $option
		done
	done < programs
	# This takes an argument in FreeBSD's, and does something.
	atf_check -s exit:64 -e match:"^valectl: -h vale0:em0: .*veth" \
	    $VALECTL -h vale0:em0
}

test_case version "The version is that of the packages and ports, and of the files \
that pages name"
version_body()
{
	local version=$(version_of)

	atf_check -o match:'^[0-9]+[.][0-9]+[.][0-9]+$' echo "$version"
	atf_check_equal "$version" "$(sed -n \
	    '1s/^bhyve-vale (\([^-)]*\)) .*/\1/p' "$source/debian/changelog")"
	atf_check_equal "$version" \
	    "$(sed -n 's/^DISTVERSION=[[:space:]]*//p' \
	    "$source"/ports/net/*/Makefile | sort -u)"
	grep -ohE '(bhyve-vale|em_pv-kmod|lem|lem-dkms|valed)[-_][0-9]+[.][0-9.]*' \
	    "$source"/share/man/man?/* "$source"/ports/README.md |
	    sed -E 's/.*[-_]([0-9]+[.][0-9]+[.][0-9]+).*/\1/' > named
	[ $(wc -l < named) -ge 3 ] || atf_fail "few names: $(cat named)"
	atf_check_equal "$version" "$(sort -u named)"
	# 1.0 was the first.
	atf_check -s exit:1 grep -rn 'bhyve-vale 0[.]' "$source"/share/man
}

# What to run programs with.
inside=

# lost [SOCKET] LINE: no program finds valed, and each says so.
lost()
{
	local option=

	[ $# -eq 1 ] || option="-c $1"
	[ $# -eq 1 ] || shift
	atf_check -s exit:69 -e inline:"valectl: $1\n" $inside $VALECTL $option
	atf_check -s exit:69 -e inline:"vale-cap: $1\n" \
	    $inside $VALE_CAP $option vale0:a
	# It says so once, to a program that tries again.
	atf_check -o match:"^E[A-Z]*$" -e inline:"netmap-run: $1\n" \
	    $inside $NETMAP_RUN $option \
	    python3 "$(atf_get_srcdir)/register.py" vale0:a vale0:b
}

test_case no_valed "Where no valed is, each program says where it looked" \
    require.progs python3
no_valed_body()
{
	unset VALE_SOCKET
	lost $PWD/none "no valed at $PWD/none"
	for verb in "-t vale0" "-k vale0:a" "-l vale0:a" "-o vale0:a" \
	    "-o vale0:a limit=1" "-s all 1 1" "-d vale0:a"; do
		atf_check -s exit:69 -e inline:"valectl: no valed at none\n" \
		    $VALECTL -c none $verb
	done
	# A socket that no process listens on, as a killed valed may leave.
	atf_check python3 -c 'import socket
socket.socket(socket.AF_UNIX).bind("stale")'
	lost $PWD/stale "no valed at $PWD/stale"
	VALE_SOCKET=$PWD/other
	export VALE_SOCKET
	lost "no valed at $PWD/other"
	touch file
	lost $PWD/file "no valed at $PWD/file"
}

test_case no_port "A program that is refused a port learns why, once if it \
tries again" require.progs python3
no_port_body()
{
	"$VALED" -c control -s 1,e1000,vale0:vm,path=vm.sock &
	pid=$!
	listening control
	sed 's/^/netmap-run: /' > expected <<-END
	vale0:vm: the port is an adapter's of valed's configuration
	eth0: not the name of a pipe or of a switch's port, which begins with vale
	vale0: the port's name is missing (valeSWITCH:PORT)
	vale0:b: the program has another version of netmap's API
	vale0:vm: the port is an adapter's of valed's configuration
	END
	atf_check -e file:expected \
	    -o inline:"EPERM\nEPERM\nENXIO\nEINVAL\n1024 slots\nEINVAL\nEPERM\n" \
	    $NETMAP_RUN -c control \
	    python3 "$(atf_get_srcdir)/register.py" vale0:vm vale0:vm eth0 \
	    vale0 vale0:a vale0:b,13 vale0:vm
	# All of them.
	head -n 1 expected | sed p > twice
	atf_check -e file:twice -o ignore env NETMAP_RUN_DEBUG=1 $NETMAP_RUN \
	    -c control python3 "$(atf_get_srcdir)/register.py" vale0:vm vale0:vm
	kill $pid
	wait $pid || atf_fail "valed failed"
}

# start PLACE: starts a valed with a control socket there, below /run.
start()
{
	mkdir -p $root/run/$1
	$inside "$VALED" -c /run/$1/control &
	echo $! >> pids
	listening $root/run/$1/control
}

# stop PLACE: ends it.
stop()
{
	kill $2
	wait $2 || atf_fail "valed failed"
	[ ! -e $root/run/$1/control ] || atf_fail "$1 is still there"
}

# What a list without ports is.
head="PORT KIND ADDRESS CLIENT LINK VLAN RATE TX RX DROP\n"

# found NAME: all programs find a valed, in which a port can be opened.
found()
{
	atf_check -o inline:"1024 slots\n" $inside $NETMAP_RUN \
	    python3 "$(atf_get_srcdir)/register.py" "vale0:$1"
	atf_check -o inline:"$head" $inside $VALECTL
	atf_check -s exit:65 -e match:"valectl: vale0: there is no such" \
	    $inside $VALECTL -s vale0 1 1
	atf_check -s exit:65 -e match:"vale-cap: vale0:x: there is no" \
	    $inside $VALE_CAP vale0:x
}

test_case -c instance_clean instance "The only instance of valed@ is found; of \
several, each program says which there are" \
    require.user root require.progs "nsenter python3 unshare"
instance_body()
{
	local a b default which

	unset VALE_SOCKET
	unshare -m sh -c 'mount -t tmpfs none /run && touch /run/ready &&
	    exec sleep 1000' &
	echo $! >> pids
	root=/proc/$!/root
	inside="nsenter -t $! -m --wd=$PWD"
	wait_must "a directory /run" [ -e $root/run/ready -o ! -e $root ]
	[ -e $root/run/ready ] || atf_skip "no mount namespace"

	lost "no valed at /run/valed/control"
	# Nothing but a name.
	mkdir -p $root/run/valed-x/control $root/run/valed-y
	lost "no valed at /run/valed/control"
	start valed-b
	b=$!
	found b
	start valed-a
	a=$!
	which="there are several valed, and -c or VALE_SOCKET must say which:"
	lost "$which /run/valed-a/control, /run/valed-b/control"
	atf_check -o inline:"$head" $inside $VALECTL -c /run/valed-a/control
	VALE_SOCKET=/run/valed-b/control
	export VALE_SOCKET
	found b
	unset VALE_SOCKET
	# The service that is no instance comes before them.
	start valed
	default=$!
	found default
	stop valed-a $a
	stop valed $default
	found b
	stop valed-b $b
	lost "no valed at /run/valed/control"
}
instance_clean()
{
	local pid

	for pid in $(cat pids 2> /dev/null); do
		kill -9 $pid 2> /dev/null
	done
	return 0
}
