# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# bhyve with this adapter: invalid options, another kernel, and a guest.  Needs
# FreeBSD and
#
#	kyua -v test_suites.bhyve-vale.bhyve=/usr/local/sbin/bhyve
#	    -v test_suites.bhyve-vale.guest=/vm/guest.img test ...
#
# `guest' is a disk with a FreeBSD that brings its em0 up when it boots.  With
# `kernel' bhyveload boots from that directory, its -h; `loader' is its -l, and
# the words of `env' are its -e.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/wait_until.subr"

mac=02:be:ef:00:00:01

need()
{
	[ "$(uname)" = FreeBSD ] || atf_skip "bhyve runs on FreeBSD"
	[ -c /dev/netmap ] || atf_skip "there is no /dev/netmap"
	bhyve=$(atf_config_get bhyve /usr/local/sbin/bhyve)
	[ -x "$bhyve" ] || atf_skip "$bhyve does not exist; set bhyve="
	kldstat -q -m vmm || kldload vmm || atf_skip "vmm.ko does not load"
	[ -c /dev/vmmctl ] || [ -e /dev/vmm ] ||
	    sysctl -n hw.vmm.maxcpu > /dev/null 2>&1 ||
	    atf_skip "the processor has no virtualization that vmm can use"
}

# nodes name=value...: prints the options of the device for bhyve_config(5).
nodes()
{
	printf -- '-o pci.0.2.0.device=e1000'
	printf -- ' -o pci.0.2.0.%s' "$@"
}

# refuses "options" text: bhyve exits with the text, before a guest starts.
refuses()
{
	bhyvectl --create --vm=valetest > /dev/null 2>&1
	timeout 20 "$bhyve" -c 1 -m 64M -s 0,hostbridge $1 valetest \
	    > out 2> err < /dev/null
	status=$?
	bhyvectl --destroy --vm=valetest > /dev/null 2>&1
	[ $status -ne 0 ] && [ $status -ne 124 ] ||
	    atf_fail "$1: accepted, status $status"
	grep -q -- "$2" err || { cat err >&2; atf_fail "$1: no '$2'"; }
}

test_case -c refused_clean refused "An invalid option ends bhyve before the \
guest starts, with the option and the reason" require.user root timeout 300
refused_body()
{
	need
	refuses "-s 2,e1000" "no network backend given"
	refuses -s2,e1000,nosuch0 "backend=nosuch0"
	refuses -s2,e1000,vale7 "backend=vale7: the port's name is missing"
	refuses -s2,e1000,vale7:a/b "backend=vale7:a/b: after the ':' only"
	refuses -s2,e1000,vale7:t,irt=488 'unknown option "irt"'
	refuses -s2,e1000,vale7:t,irt=488 "error: Invalid argument"
	refuses -s2,e1000,vale7:t,itr=65536 "itr=65536"
	refuses -s2,e1000,vale7:t,mtu=67 "mtu=67"
	refuses -s2,e1000,vale7:t,csb=maybe "csb=maybe"
	refuses -s2,e1000e,vale7:t,csb=maybe "e1000e 2:0: csb=maybe"
	refuses -s2,e1000,vale7:t,mac=01:00:00:00:00:01 \
	    "e1000 2:0: mac=01:00:00:00:00:01: not a unicast Ethernet address"
	refuses "$(nodes backend=vale7)" "backend=vale7: the port's name"
	refuses "$(nodes backend=vale7:t itr=-1)" "itr=-1"
	refuses "$(nodes backend=vale7:t mac=x)" "mac=x: not a unicast"
	refuses "$(nodes mtu=1500)" "no network backend given"
	"$(atf_get_srcdir)"/see vale7:t $mac 100 > /dev/null 2>&1 &
	see=$!
	wait_until "port vale7:t" sh -c "valectl | grep '^vale7:t'" ||
	    atf_fail "no port vale7:t"
	refuses -s2,e1000,vale7:t "backend=vale7:t: the port is open already"
	kill $see
}
refused_clean()
{
	bhyvectl --destroy --vm=valetest > /dev/null 2>&1
	return 0
}

test_case kernel "On a kernel that it was not built for, bhyve prints the \
versions and exits"
kernel_body()
{
	[ "$(uname)" = FreeBSD ] || atf_skip "bhyve runs on FreeBSD"
	bhyve=$(atf_config_get bhyve /usr/local/sbin/bhyve)
	[ -x "$bhyve" ] || atf_skip "$bhyve does not exist; set bhyve="
	atf_check -s exit:0 -o ignore -e ignore "$bhyve" -h
	# getosreldate(3) takes this for the kernel's version.
	for version in 1300139 1999999; do
		atf_check -s exit:71 -e save:err env OSVERSION=$version \
		    "$bhyve" -h
		[ $(wc -l < err) -eq 1 ] || atf_fail "$(cat err)"
		grep -q "^bhyve: built from the sources of FreeBSD .*($version)" \
		    err || atf_fail "$(cat err)"
	done
}

# frame_or_exit PID: whether see(1) or bhyve has ended.
frame_or_exit()
{
	tail -n 3 guest.out
	[ -e exited ] || ! kill -0 $1 2> /dev/null
}

test_case -c guest_clean guest "A guest boots, and its adapter sends a frame \
from the MAC address of mac=" require.user root timeout 600
guest_body()
{
	need
	image=$(atf_config_get guest "")
	[ -n "$image" ] || atf_skip "set guest= to a disk image"
	[ -e "$image" ] || atf_skip "$image does not exist"
	loader=$(atf_config_get loader "")
	kernel=$(atf_config_get kernel "")
	env=$(atf_config_get env "")
	bhyvectl --destroy --vm=valetest > /dev/null 2>&1
	if [ -n "$kernel" ]; then
		set -- -h "$kernel"
	else
		set -- -d "$image"
	fi
	for e in $env; do
		set -- "$@" -e "$e"
	done
	timeout 100 bhyveload ${loader:+-l "$loader"} -m 160M "$@" \
	    -c stdio valetest < /dev/null > load.out 2>&1 ||
	    { cat load.out; atf_fail "bhyveload"; }
	"$(atf_get_srcdir)"/see vale7:eye $mac 200 > seen 2>&1 &
	see=$!
	mkfifo console
	( exec 3<> console
	"$bhyve" -c 1 -m 160M -AH -s 0,hostbridge \
	    -s "1,virtio-blk,$image,ro" \
	    $(nodes backend=vale7:guest mac=$mac itr=488 csb=off) \
	    -s 31,lpc -l com1,stdio valetest <&3 > guest.out 2>&1
	echo $? > exited ) &
	wait_must "a frame from $mac" frame_or_exit $see
	if [ -e exited ]; then
		kill $see
		tail -30 guest.out
		atf_fail "bhyve has exited: $(cat exited)"
	fi
	wait $see || { tail -30 guest.out; atf_fail "no frame from $mac"; }
	bhyvectl --force-poweroff --vm=valetest
}
guest_clean()
{
	bhyvectl --destroy --vm=valetest > /dev/null 2>&1
	return 0
}
