# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Where an adapter can be on a machine's buses, and adapters that come and go.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"

# Buses beside those of the machine.  Linux's e1000 needs I/O ports, which the
# firmware has for the first ones only.
pc_buses="
    pci-bridge,id=bridge,chassis_nr=1"
q35_buses="
    pcie-root-port,id=hot1,chassis=1
    pcie-root-port,id=hot2,chassis=2
    pcie-root-port,id=port1,chassis=3
    pcie-root-port,id=port2,chassis=4
    pcie-root-port,id=port3,chassis=5
    x3130-upstream,id=switch,bus=port3
    xio3130-downstream,id=switch1,bus=switch,chassis=6
    xio3130-downstream,id=switch2,bus=switch,chassis=7
    pcie-pci-bridge,id=bridge
    pxb-pcie,id=expander,bus_nr=64
    pcie-root-port,id=expander1,bus=expander,chassis=8"

# Where the adapters are: guest, device, bus.  No e1000 is behind the expander:
# Linux's driver has INTx, which does not come from there in QEMU 11, of QEMU's own
# adapter neither.
places="\
vm1 e1000 pci.0
vm1 e1000e pci.0
vm1 e1000 bridge
vm1 e1000e bridge
vm2 e1000 pcie.0
vm2 e1000e pcie.0
vm2 e1000 port1
vm2 e1000e port2
vm2 e1000 switch1
vm2 e1000e switch2
vm2 e1000 bridge
vm2 e1000e bridge
vm2 e1000e expander1
vm2 e1000 hot1
vm2 e1000e hot2"

# for_places COMMAND...: runs a command with four more arguments, for each place:
# its number, guest, device and bus.
for_places()
{
	local bus device guest n=9

	while read -r guest device bus <&3; do
		n=$((n + 1))
		"$@" $n $guest $device $bus
	done 3<<-END
	$places
	END
}

# place_adapter N GUEST DEVICE BUS: prints valed's options for the adapter.
place_adapter()
{
	echo "-s $1,$3,vale0:$1,path=$1.sock,mac=52:54:00:82:54:$1"
}

# place_device GUEST N GUEST DEVICE BUS: prints QEMU's device for an adapter, if
# that is in this guest when it starts.
place_device()
{
	case $3,$5 in
	*,hot?)	;;
	$1,*)	echo "-device $(valed_device $2 "\"bus\":\"$5\"")" ;;
	esac
}

# buses BUS...: prints QEMU's arguments.
buses()
{
	printf -- '-device %s\n' "$@"
}

# interface N: prints a command that sets `i' to the name of an interface.
interface()
{
	echo "i=\$(grep -l :$1\\\$ /sys/class/net/*/address) &&
	    i=\${i%/address} && i=\${i##*/}"
}

# interface_up N GUEST ADDRESS: configures the interface of an adapter.
interface_up()
{
	on $2 "$(interface $1) && ip addr add $3/24 dev \$i &&
	    ip link set \$i up && carrier \$i"
}

# place_check PEER N GUEST DEVICE BUS: if an adapter is in this guest, it has a
# driver and a link, and the other guest's adapter answers to it.
place_check()
{
	local peer=$1

	shift
	[ "$peer" != $2 ] || return 0
	echo "$2: $3 on $4"
	case $4 in
	hot?)	qmp $2 "{\"execute\": \"device_add\", \"arguments\":
		    $(valed_device $1 "\"bus\":\"$4\"")}" ||
		    atf_fail "$3 on $4: not plugged" ;;
	esac
	on $2 "wait_until 'the interface of $3 on $4' \
	    eval 'grep :$1\$ /sys/class/net/*/address'"
	interface_up $1 $2 10.0.0.1
	# An adapter without a driver keeps a broadcast frame: no pings().
	on $2 "wait_until 'an answer' ping -q -c 1 -W 10 10.0.0.2 &&
	    ping -q -c 3 -W 60 10.0.0.2"
	on $2 "$(interface $1) && readlink /sys/class/net/\$i/device/driver &&
	    ip link set \$i down && ip addr flush dev \$i" > driver
	grep -q "/$3\$" driver || atf_fail "$3 on $4: $(cat driver)"
	vm_alive $2 || atf_fail "$3 on $4: $(cat $2.qemu)"
}

guest_case places "Both adapters work on each kind of bus, also plugged into a \
port of a machine that runs"
places_body()
{
	local guest

	setup
	valed_start $(for_places place_adapter) || atf_fail "valed does not start"
	GUEST_MB=256
	vm_start vm1 $(buses $pc_buses) $(for_places place_device vm1)
	vm_start vm2 -machine q35 -qmp unix:vm2.qmp,server=on,wait=off \
	    $(buses $q35_buses) $(for_places place_device vm2)
	vm_wait vm1 vm2 || {
		cat vm?.qemu vm?.log valed.log
		atf_fail "the guests do not start"
	}
	for guest in vm1 vm2; do
		on $guest "module e1000 && module e1000e"
	done
	interface_up 10 vm1 10.0.0.2
	for_places place_check vm1
	on vm1 "$(interface 10) && ip link set \$i down && ip addr flush dev \$i"
	interface_up 14 vm2 10.0.0.2
	for_places place_check vm2
	finish
}

# start_two: starts vm1 with an e1000 and vm2 with an e1000e, which their QEMU can
# lose and get again, and has them reach each other.
start_two()
{
	local guest

	DRIVERS="e1000 e1000e"
	setup
	valed_start -s "1,$(adapter vm1)" -s "2,$(adapter vm2)" ||
	    atf_fail "valed does not start"
	for guest in vm1 vm2; do
		start_one $guest
	done
	vm_wait vm1 vm2 || atf_fail "the guests do not start"
	up 1 2
	pings vm1 10.0.0.2
}

# one_device GUEST: prints its adapter's device, which has a name.
one_device()
{
	valed_device $1 '"id":"nic","bus":"pci.0","addr":"0x10"'
}

start_one()
{
	vm_start $1 -qmp unix:$1.qmp,server=on,wait=off \
	    -device "$(one_device $1)"
}

# plugged GUEST: QEMU has let go of the device, and takes it again; or has ended.
plugged()
{
	qmp $1 "{\"execute\": \"device_add\", \"arguments\": $(one_device $1)}" ||
	    ! vm_alive $1
}

guest_case unplug "An e1000 is unplugged and plugged again; an e1000e ends QEMU 11"
unplug_body()
{
	local guest unplug='{"execute": "device_del", "arguments": {"id": "nic"}}'

	start_two
	qmp vm1 "$unplug" || atf_fail "not unplugged"
	wait_until "the adapter" plugged vm1 || atf_fail "not plugged"
	on vm1 "wait_until eth0 [ -d /sys/class/net/eth0 ] && address 1"
	pings vm1 10.0.0.2
	# QEMU takes the pending bits of MSI-X out of a BAR that is gone, in
	# hw/vfio-user/pci.c, wherever they are.
	qmp vm2 "$unplug" || :
	wait_must "the end of QEMU" plugged vm2
	cat vm2.qemu
	! vm_alive vm2 || atf_fail \
	    "QEMU unplugs an e1000e now: change valed(8), Restart and BUGS"
	grep -q "memory_region_del_subregion: Assertion" vm2.qemu ||
	    atf_fail "QEMU ended, and not as before"
	finish
}

# migrated GUEST: QEMU has written the guest's state, or does not want to.
migrated()
{
	qmp $1 '{"execute": "query-migrate"}' | tee migrate
	grep -e "'completed'" -e "'failed'" migrate
}

guest_case saved "A guest whose state was saved has no network until its adapter is \
looked for again"
saved_body()
{
	local guest peer

	start_two
	for guest in vm1 vm2; do
		peer=10.0.0.$((3 - ${guest#vm}))
		qmp $guest "{\"execute\": \"migrate\",
		    \"arguments\": {\"uri\": \"file:$PWD/$guest.state\"}}" ||
		    atf_fail "QEMU does not save a guest with an adapter of \
valed now: change valed(7), valed(8)"
		wait_must "the state" migrated $guest
		grep -q "'completed'" migrate ||
		    atf_fail "QEMU does not save a guest: $(cat migrate)"
		vm_kill $guest
		vm_booted() { echo "-incoming file:$PWD/$guest.state"; }
		start_one $guest
		wait_must "QEMU" vm_listens $guest
		! vm $guest "ping -q -c 3 -W 1 $peer" || atf_fail \
		    "a saved guest has its network: change valed(7), valed(8)"
		# As these pages say.
		on $guest "echo 1 > /sys/class/net/eth0/device/remove
		    echo 1 > /sys/bus/pci/rescan
		    wait_until eth0 [ -d /sys/class/net/eth0 ] &&
		    address ${guest#vm}"
		pings $guest $peer
	done
	finish
}

guest_case ended "Guests that send and receive go on when valed ends"
ended_body()
{
	local guest

	start_two
	on vm2 "nettest serve > /tmp/serve 2>&1 < /dev/null &"
	on vm1 "nettest udp 10.0.0.2 100 600 > /tmp/udp 2>&1 < /dev/null &
	    wait_until traffic eval '[ 1000 -lt \$(
	    cat /sys/class/net/eth0/statistics/tx_packets) ]'"
	valed_stop || atf_fail "valed ended with status $?"
	for guest in vm1 vm2; do
		# QEMU finds that the adapter is gone.
		on $guest "! ping -q -c 1 -W 1 10.0.0.9"
		vm_alive $guest || atf_fail "$(cat $guest.qemu)"
		vm_kill $guest
	done
}
