# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# bhyve itself, the one with this adapter: what it does with options that are
# wrong, and a whole guest.  Needs FreeBSD, and says what else it needs:
#
#	kyua -v test_suites.bhyve-vale.bhyve=/usr/local/sbin/bhyve
#	    -v test_suites.bhyve-vale.guest=/vm/guest.img test ...
#
# `guest' is a disk with a FreeBSD that brings its em0 up by itself; with
# `kernel' set it is booted from that directory, which bhyveload takes with -h.
# `loader', if set, is what it takes with -l, and `env' the words with -e.

mac=02:be:ef:00:00:01

need()
{
	[ "$(uname)" = FreeBSD ] || atf_skip "bhyve runs on FreeBSD"
	[ -c /dev/netmap ] || atf_skip "there is no /dev/netmap"
	bhyve=$(atf_config_get bhyve /usr/local/sbin/bhyve)
	[ -x "$bhyve" ] || atf_skip "$bhyve is not there; set bhyve="
	kldstat -q -m vmm || kldload vmm || atf_skip "vmm.ko does not load"
	[ -c /dev/vmmctl ] || [ -e /dev/vmm ] ||
	    sysctl -n hw.vmm.maxcpu > /dev/null 2>&1 ||
	    atf_skip "the processor has no virtualization that vmm can use"
}

# nodes name=value...: the same device for bhyve_config(5).
nodes()
{
	printf -- '-o pci.0.2.0.device=e1000'
	printf -- ' -o pci.0.2.0.%s' "$@"
}

# refuses "options" why: a guest that has no kernel, with them.
refuses()
{
	bhyvectl --create --vm=valetest > /dev/null 2>&1
	timeout 20 "$bhyve" -c 1 -m 64M -s 0,hostbridge $1 valetest \
	    > out 2> err < /dev/null
	status=$?
	bhyvectl --destroy --vm=valetest > /dev/null 2>&1
	[ $status -ne 0 ] && [ $status -ne 124 ] ||
	    atf_fail "$1: taken, status $status"
	grep -q -- "$2" err || { cat err >&2; atf_fail "$1: no word of $2"; }
}

atf_test_case refused cleanup
refused_head()
{
	atf_set descr "Options that are wrong end bhyve before the guest" \
	    "starts, with the option and the reason"
	atf_set require.user root
	atf_set timeout 300
}
refused_body()
{
	need
	refuses "-s 2,e1000" "no network backend given"
	refuses -s2,e1000,nosuch0 "backend=nosuch0"
	refuses -s2,e1000,vale7 "backend=vale7: not the name of a VALE port"
	refuses -s2,e1000,vale7:a/b "backend=vale7:a/b: not the name"
	refuses -s2,e1000,vale7:t,itr=65536 "itr=65536"
	refuses -s2,e1000,vale7:t,mtu=67 "mtu=67"
	refuses -s2,e1000,vale7:t,csb=maybe "csb=maybe"
	refuses -s2,e1000,vale7:t,mac=01:00:00:00:00:01 "01:00:00:00:00:01"
	refuses "$(nodes backend=vale7)" "backend=vale7: not the name"
	refuses "$(nodes backend=vale7:t itr=-1)" "itr=-1"
	refuses "$(nodes backend=vale7:t mac=x)" "nvalid MAC\|mac=x"
	refuses "$(nodes mtu=1500)" "no network backend given"
	"$(atf_get_srcdir)"/see vale7:t $mac 100 > /dev/null 2>&1 &
	see=$!
	sleep 2
	refuses -s2,e1000,vale7:t "backend=vale7:t: the port is open already"
	kill $see
}
refused_cleanup()
{
	bhyvectl --destroy --vm=valetest > /dev/null 2>&1
	return 0
}

atf_test_case guest cleanup
guest_head()
{
	atf_set descr "A guest boots and its first frame comes out of the" \
	    "adapter, from the address it was given"
	atf_set require.user root
	atf_set timeout 600
}
guest_body()
{
	need
	image=$(atf_config_get guest "")
	[ -n "$image" ] || atf_skip "set guest= to a disk image"
	[ -e "$image" ] || atf_skip "$image is not there"
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
	while kill -0 $see 2> /dev/null && [ ! -e exited ]; do
		sleep 1
	done
	if [ -e exited ]; then
		kill $see
		tail -30 guest.out
		atf_fail "bhyve has exited: $(cat exited)"
	fi
	wait $see || { tail -30 guest.out; atf_fail "no frame from $mac"; }
	bhyvectl --force-poweroff --vm=valetest
}
guest_cleanup()
{
	bhyvectl --destroy --vm=valetest > /dev/null 2>&1
	return 0
}

atf_init_test_cases()
{
	atf_add_test_case refused
	atf_add_test_case guest
}
