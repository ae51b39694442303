# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Traffic between two stock Linux guests: the receiver compares every byte with
# what was sent, and Linux's own stack checks headers and checksums.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"

guest_case sizes "Datagrams of every size up to the MTU, IPv4 and IPv6"
sizes_body()
{
	local i size

	guests 2
	up 1 2
	sweep vm1 vm2 10.0.0.2 8 1472
	sweep vm2 vm1 fd00::1 8 1452
	# Larger ones, in fragments.  One datagram at a time: the fragments of
	# several are bursts that a busy machine may lose.
	for size in 1473 20000 65000; do
		for i in 1 2 3 4 5; do
			PINGS=1 pings vm1 10.0.0.2 -s $size
			PINGS=1 pings vm2 fd00::1 -s $size
		done
	done
	no_checksum_errors vm1
	no_checksum_errors vm2
	finish
}

# sweep FROM TO ADDRESS FIRST LAST: one datagram of each size is received.
sweep()
{
	local n=$(($5 - $4 + 1))

	# Linux drops the first datagram if it must resolve the address.
	pings "$1" "$3"
	on "$2" "rm -f /tmp/recv
	    wire udp-recv 5002 > /tmp/recv 2>&1 < /dev/null &
	    wait_port 5002"
	on "$1" "wire udp-sweep $3 5002 $4 $5"
	on "$2" "wait_word good /tmp/recv" > recv
	[ "$(cat recv)" = "good $n bad 0 duplicate 0 late 0" ] ||
	    wrong "$1 to $2: $n sent, $(cat recv)"
}

guest_case jumbo "Jumbo frames: MTU 9000 and the driver's largest, 16110"
jumbo_body()
{
	local mtu

	guests 2
	up 1 2
	for mtu in 3000 9000 16110; do
		on vm1 "ip link set eth0 mtu $mtu && carrier eth0"
		on vm2 "ip link set eth0 mtu $mtu && carrier eth0"
		sweep vm1 vm2 10.0.0.2 $((mtu - 28 - 200)) $((mtu - 28))
		transfer vm2 vm1 10.0.0.1 10000000
	done
	no_checksum_errors vm1
	no_checksum_errors vm2
	finish
}

guest_case tcp "TCP streams, IPv4 and IPv6, with all offloads and none"
tcp_body()
{
	local rx tx

	guests 2
	up 1 2
	for tx in on off; do
		for rx in on off; do
			on vm1 "ethtool -K eth0 tx $tx tso $tx 2> /dev/null"
			on vm2 "ethtool -K eth0 rx $rx"
			transfer vm1 vm2 10.0.0.2 10000000
			transfer vm1 vm2 fd00::2 10000000
		done
	done
	transfer vm2 vm1 10.0.0.1 10000000
	no_checksum_errors vm1
	no_checksum_errors vm2
	# The adapter has done TSO.
	some vm1 tx_tso
	finish
}

guest_case udp "Datagrams both ways at once arrive intact and in order"
udp_body()
{
	local n

	guests 2
	up 1 2
	for n in 1 2; do
		on vm$n "rm -f /tmp/recv
		    wire udp-recv 5002 > /tmp/recv 2>&1 < /dev/null &
		    wait_port 5002"
	done
	vm vm1 wire udp-send 10.0.0.2 5002 1000 20000 & first=$!
	on vm2 wire udp-send 10.0.0.1 5002 60 20000
	wait $first || atf_fail "vm1 could not send"
	for n in 1 2; do
		on vm$n "wait_word good /tmp/recv" > recv
		# Some may be lost; count_test counts frames.
		grep -q '^good [1-9][0-9]* bad 0 duplicate 0 late 0$' recv ||
		    atf_fail "vm$n: $(cat recv)"
		no_checksum_errors vm$n
	done
	finish
}

guest_case vlan "The adapter inserts, strips and filters VLAN tags"
vlan_body()
{
	local n rxvlan

	guests 2
	up 1 2
	for n in 1 2; do
		on vm$n "module 8021q || exit 1
		    for id in 7 4094; do
			ip link add link eth0 name v\$id type vlan id \$id &&
			    ip link set v\$id up || exit 1
		    done
		    ip addr add 10.7.0.$n/24 dev v7
		    ip addr add 10.94.0.$n/24 dev v4094"
	done
	for rxvlan in on off; do
		# Off: Linux strips tags that vm1's adapter inserted.
		on vm2 "ethtool -K eth0 rxvlan $rxvlan"
		pings vm1 10.7.0.2
		pings vm1 10.94.0.2 -s 1472
		pings vm1 10.0.0.2
		transfer vm1 vm2 10.7.0.2 5000000
		transfer vm2 vm1 10.94.0.1 5000000
	done
	# lem(4) leaves that to the stack.
	[ "$DRIVER" = lem ] || vlan_filtered
	no_checksum_errors vm1
	no_checksum_errors vm2
	finish
}

# A VLAN that vm2 has no interface for is filtered.
vlan_filtered()
{
	local filtered

	on vm1 "ip link add link eth0 name v9 type vlan id 9 &&
	    ip link set v9 up && ip addr add 10.9.0.1/24 dev v9"
	on vm2 "ethtool -K eth0 rxvlan on"
	valed_counters
	filtered=$(counter vm2 rx_filtered)
	vm vm1 ping -q -c 3 -i 0.2 -W 1 10.9.0.2 &&
	    atf_fail "an answer from a VLAN that vm2 is not in"
	valed_counters
	[ "$(counter vm2 rx_filtered)" -gt "$filtered" ] ||
	    atf_fail "the frames were not filtered"
}

guest_case cable "The driver sees whether the port has a link (valectl -o link=)"
cable_body()
{
	local valectl

	[ "$ADAPTER" != qemu ] || atf_skip "QEMU's adapter has no such port"
	VALED_MORE="-c control"
	guests 2
	valectl=$plain/usr.sbin/valectl/valectl
	up 1 2
	pings vm1 10.0.0.2
	"$valectl" -c control -o vale0:vm1 link=down || atf_fail "link=down"
	on vm1 "wait_until 'no carrier' grep -x 0 /sys/class/net/eth0/carrier"
	on vm1 "ethtool eth0" > seen
	grep -q "Link detected: no" seen || atf_fail "$(cat seen)"
	on vm2 "grep -qx 1 /sys/class/net/eth0/carrier"
	vm vm2 ping -q -c 2 -i 0.2 -W 1 10.0.0.1 &&
	    atf_fail "an answer without a link"
	"$valectl" -c control -o vale0:vm1 link=up || atf_fail "link=up"
	on vm1 carrier eth0
	pings vm2 10.0.0.1
	# There is no uplink.
	"$valectl" -c control -o vale0:vm2 link=uplink ||
	    atf_fail "link=uplink"
	on vm2 "wait_until 'no carrier' grep -x 0 /sys/class/net/eth0/carrier"
	"$valectl" -c control -o vale0:vm2 link=up || atf_fail "link=up"
	on vm2 carrier eth0
	transfer vm1 vm2 10.0.0.2 1000000
	finish
}
