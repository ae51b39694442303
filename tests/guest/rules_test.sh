# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Stock guests on ports with VLANs and guards (valectl -o), with Linux's own
# VLAN interfaces, and with addresses that they change.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"

VALED_MORE="-c control"

# port GUEST setting=value...
port()
{
	local name=$1

	shift
	"$plain/usr.sbin/valectl/valectl" -c control -o "vale0:$name" "$@" ||
	    atf_fail "$name: $*"
}

# port_counter GUEST COUNTER
port_counter()
{
	"$plain/usr.sbin/valectl/valectl" -c control -k "vale0:$1" |
	    sed -n "s/^vale0:$1 $2 //p"
}

# unreachable GUEST ADDRESS [option...]: no answer to a ping.
unreachable()
{
	local address=$2 name=$1

	shift 2
	! vm "$name" ping -q -c 2 -i 0.2 -W 1 "$@" "$address" > ping.out 2>&1 ||
	    atf_fail "$name reaches $address: $(cat ping.out)"
}

guest_case vlans "Guests in VLANs reach the trunk, and not each other; offloads \
pass"
vlans_body()
{
	local tx

	guests 3
	up 1 2 3
	pings vm1 10.0.0.2
	port vm1 vlan=10
	port vm2 vlan=20
	port vm3 trunk=10,20
	unreachable vm1 10.0.0.2
	on vm1 "ip addr add 10.10.0.1/24 dev eth0"
	on vm2 "ip addr add 10.20.0.2/24 dev eth0"
	on vm3 "module 8021q || exit 1
	    for id in 10 20 30; do
		ip link add link eth0 name v\$id type vlan id \$id &&
		    ip link set v\$id up &&
		    ip addr add 10.\$id.0.3/24 dev v\$id || exit 1
	    done"
	pings vm1 10.10.0.3
	pings vm3 10.20.0.2 -s 1472
	# Frames without a tag are in no VLAN of the trunk.
	unreachable vm3 10.0.0.1
	for tx in on off; do
		on vm1 "ethtool -K eth0 tx $tx tso $tx 2> /dev/null"
		on vm3 "ethtool -K eth0 tx $tx tso $tx 2> /dev/null"
		transfer vm1 vm3 10.10.0.3 3000000
		transfer vm3 vm2 10.20.0.2 3000000
	done
	# A VLAN that is not the trunk's.
	on vm2 "ip addr add 10.30.0.2/24 dev eth0"
	port vm2 vlan=30
	unreachable vm3 10.30.0.2
	is "frames of VLAN 30 dropped" \
	    "$(port_counter vm3 tx_drop_vlan)" -gt 0
	port vm3 trunk=10,30
	pings vm3 10.30.0.2
	# The native VLAN has no tag.
	port vm1 vlan=20
	port vm3 native=20
	pings vm3 10.0.0.1
	for tx in 1 2 3; do
		no_checksum_errors vm$tx
	done
	finish
}

guest_case guards "A guest sends from its own addresses only"
guards_body()
{
	guests 2
	up 1 2
	port vm1 source="$(mac 1)" ip=10.0.0.1,fd00::1
	pings vm1 10.0.0.2
	pings vm2 10.0.0.1
	pings vm1 fd00::2
	pings vm2 fd00::1
	transfer vm1 vm2 10.0.0.2 3000000
	is "frames dropped" "$(port_counter vm1 tx_drop_source)" -eq 0
	# Another IP address, which it also answers ARP for.
	on vm1 "ip addr add 10.0.0.77/24 dev eth0"
	unreachable vm1 10.0.0.2 -I 10.0.0.77
	is "frames dropped" "$(port_counter vm1 tx_drop_ip)" -gt 0
	unreachable vm2 10.0.0.77
	# Another Ethernet address.
	on vm1 "ip link set eth0 address 52:54:00:82:54:77"
	unreachable vm1 10.0.0.2
	is "frames dropped" "$(port_counter vm1 tx_drop_source)" -gt 0
	on vm1 "ip link set eth0 address $(mac 1)"
	pings vm1 10.0.0.2
	pings vm2 fd00::1
	finish
}
