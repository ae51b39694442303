# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Traffic between Linux guests, each with another adapter and driver: the
# receiver compares every byte with what was sent, and Linux's own stack checks
# headers and checksums.

DRIVERS=${DRIVERS-"e1000 e1000e lem@e1000e,csb=on"}
. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"

# members_up: starts the guests, and configures their interfaces.
members_up()
{
	guests "$(members | wc -l)"
	up $(members)
}

# no_errors: Linux counted no wrong checksum or header in any guest.
no_errors()
{
	local i

	for i in $(members); do
		no_checksum_errors vm$i
	done
}

guest_case sizes "Datagrams of every size up to the MTU, IPv4 and IPv6"
sizes_body()
{
	members_up
	each_pair sizes_to
	no_errors
	finish
}

# verified GUEST: prints of how many packets the adapter has verified the checksum.
verified()
{
	on "$1" "ethtool -S eth0" | sed -n 's/.* rx_csum_offload_good: //p'
}

# sizes_to FROM N: from a guest to the Nth; IPv6 the other way.
sizes_to()
{
	local i size was

	sweep "$1" "vm$2" "10.0.0.$2" 8 1472
	was=$(verified "$1")
	sweep "vm$2" "$1" "fd00::${1#vm}" 8 1452
	# An 82545EM does not unless the driver asks for that.
	[ "$(guest_word "$1")" != e1000e ] ||
	    is "$1: verified" $(($(verified "$1") - was)) -ge 1445
	# Larger ones, in fragments.  One datagram at a time: the fragments of
	# several are bursts that a busy machine may lose.
	missing "$1" "vm$2"
	for size in 1473 20000 65000; do
		for i in 1 2 3; do
			DROPPED=dropped PINGS=1 pings "$1" "10.0.0.$2" -s $size
			DROPPED=dropped PINGS=1 pings "vm$2" "fd00::${1#vm}" \
			    -s $size
		done
	done
}

# missing A B: sets there and back to how many frames more one driver has sent than
# the other has received: those before both were up.
missing()
{
	ends="$1 $2"
	frames "$1" "$2"
	there=$((sent - received))
	frames "$2" "$1"
	back=$((sent - received))
}

# dropped: since missing(), each driver has received what the other has sent.
dropped()
{
	local was="$there $back"

	guest_counters
	wait_until "as many frames as were sent" missing_same "$was"
}

missing_same()
{
	missing $ends
	[ "$there $back" = "$1" ]
}

# sweep FROM TO ADDRESS FIRST LAST: one datagram of each size is received.  If
# Linux has dropped one before the driver had it, as the counters must show, all
# are sent again.
sweep()
{
	sweep_once "$@" && return
	lost_above "$1" "$2" && sweep_once "$@" ||
	    wrong "$1 to $2: $(($5 - $4 + 1)) sent, $(paste -sd ' ' recv)"
}

sweep_once()
{
	# Linux drops the first datagram if it must resolve the address.
	pings "$1" "$3"
	# The multicasts that Linux sends are counted, too.
	on "$2" "ifconfig eth0 allmulti"
	frames "$1" "$2"
	on "$2" "rm -f /tmp/recv
	    wire udp-recv 5002 > /tmp/recv 2>&1 < /dev/null &
	    wait_port 5002"
	on "$1" "wire udp-sweep $3 5002 $4 $5"
	on "$2" "wait_word good /tmp/recv" > recv
	[ "$(cat recv)" = "good $(($5 - $4 + 1)) bad 0 duplicate 0 late 0" ]
}

# frames FROM TO: sets sent and received to the counters of the two drivers, with no
# frame on its way.
frames()
{
	wait_until "a time without frames" frames_read "$@" ||
	    wrong "$1 to $2: frames that are no datagrams do not end"
}

frames_read()
{
	sent=$(on "$1" "stat tx_packets") received=$(on "$2" "stat rx_packets")
	[ "$(on "$1" "stat tx_packets")" -eq "$sent" ]
}

# lost_above FROM TO: of the last sweep a single datagram was lost, and the
# receiver's driver has got every frame that the sender's has had.
lost_above()
{
	cat recv
	guest_counters
	grep -qx 'lost [0-9]*' recv && grep -q ' bad 0 duplicate 0 late 0$' recv &&
	    wait_until "as many frames as were sent" frames_equal "$@"
}

frames_equal()
{
	[ $(($(vm "$1" stat tx_packets) - sent)) -eq \
	    $(($(vm "$2" stat rx_packets) - received)) ]
}

guest_case jumbo "Jumbo frames: MTU 9000 and the driver's largest"
jumbo_body()
{
	local i mtu

	members_up
	for mtu in 3000 9000; do
		for i in $(members); do
			on vm$i "ip link set eth0 mtu $mtu && carrier eth0"
		done
		each_pair jumbo_to $mtu
	done
	for i in $(members); do
		headers_split vm$i
	done
	for i in $(members); do
		on vm$i "ip link set eth0 mtu $(largest_mtu vm$i) &&
		    carrier eth0"
	done
	each_pair jumbo_largest
	no_errors
	finish
}

# headers_split GUEST: for MTUs above 1500 Linux's e1000e asks for headers that
# are split from their packets, and has counted some.
headers_split()
{
	[ "$(guest_word "$1")" = e1000e ] || return 0
	on "$1" "ethtool -S eth0" > stats
	is "$1: headers split" \
	    "$(sed -n 's/.* rx_header_split: //p' stats)" -gt 1000
}

# largest_mtu GUEST: prints the largest MTU that its driver takes.
largest_mtu()
{
	case $(guest_word "$1") in
	e1000e)	echo 9212 ;;
	*)	echo 16110 ;;
	esac
}

# jumbo_to MTU FROM N: datagrams up to the MTU, and a stream the other way.
jumbo_to()
{
	sweep "$2" "vm$3" "10.0.0.$3" $(($1 - 28 - 200)) $(($1 - 28))
	transfer "vm$3" "$2" "10.0.0.${2#vm}" 5000000
}

# jumbo_largest FROM N: datagrams that both guests' MTUs let pass.
jumbo_largest()
{
	local mtu

	mtu=$({ largest_mtu "$1"; largest_mtu "vm$2"; } | sort -n | head -n 1)
	jumbo_to "$mtu" "$1" "$2"
}

guest_case tcp "TCP streams, IPv4 and IPv6, with all offloads and none"
tcp_body()
{
	local i rx tx

	members_up
	for tx in on off; do
		for rx in on off; do
			for i in $(members); do
				on vm$i "ethtool -K eth0 tx $tx tso $tx rx $rx \
				    2> /dev/null"
			done
			each_pair tcp_to
		done
	done
	no_errors
	# The adapter has done TSO.
	for i in $(members); do
		some vm$i tx_tso
	done
	finish
}

# tcp_to FROM N: streams from a guest to the Nth.
tcp_to()
{
	transfer "$1" "vm$2" "10.0.0.$2" 4000000
	transfer "$1" "vm$2" "fd00::$2" 4000000
}

guest_case udp "Datagrams from all to all at once arrive intact and in order"
udp_body()
{
	local i senders=

	members_up
	for i in $(members); do
		on vm$i "rm -f /tmp/recv
		    wire udp-recv 5002 > /tmp/recv 2>&1 < /dev/null &
		    wait_port 5002"
	done
	for i in $(members); do
		vm vm$i wire udp-send "10.0.0.$(next $i)" 5002 \
		    $((i % 2 ? 1000 : 60)) 20000 & senders="$senders $!"
	done
	for i in $senders; do
		wait "$i" || atf_fail "a guest could not send"
	done
	for i in $(members); do
		on vm$i "wait_word good /tmp/recv" > recv
		# Some may be lost; count_test counts frames.
		grep -q '^good [1-9][0-9]* bad 0 duplicate 0 late 0$' recv ||
		    atf_fail "vm$i: $(cat recv)"
	done
	no_errors
	finish
}

guest_case vlan "The adapter inserts, strips and filters VLAN tags"
vlan_body()
{
	local i rxvlan

	members_up
	for i in $(members); do
		on vm$i "module 8021q || exit 1
		    for id in 7 4094; do
			ip link add link eth0 name v\$id type vlan id \$id &&
			    ip link set v\$id up || exit 1
		    done
		    ip addr add 10.7.0.$i/24 dev v7
		    ip addr add 10.94.0.$i/24 dev v4094"
	done
	for rxvlan in on off; do
		# Off: Linux strips tags that the other adapter inserted.
		for i in $(members); do
			on vm$i "ethtool -K eth0 rxvlan $rxvlan"
		done
		each_pair vlan_to
	done
	each_pair vlan_filtered
	no_errors
	finish
}

# vlan_to FROM N: from a guest to the Nth, with tags and without.
vlan_to()
{
	pings "$1" "10.7.0.$2"
	pings "$1" "10.94.0.$2" -s 1472
	pings "$1" "10.0.0.$2"
	transfer "$1" "vm$2" "10.7.0.$2" 3000000
	transfer "vm$2" "$1" "10.94.0.${1#vm}" 3000000
}

# vlan_filtered FROM N: the Nth has no interface for a VLAN that the other sends
# to, and its adapter filters it.
vlan_filtered()
{
	local filtered

	# lem(4) leaves that to the stack.
	case $(guest_word "vm$2") in
	lem*)	return ;;
	esac
	on "$1" "ip link add link eth0 name v9 type vlan id 9 &&
	    ip link set v9 up && ip addr add 10.9.0.1/24 dev v9"
	on "vm$2" "ethtool -K eth0 rxvlan on"
	valed_counters
	filtered=$(counter "vm$2" rx_filtered)
	vm "$1" ping -q -c 3 -i 0.2 -W 1 10.9.0.2 &&
	    atf_fail "an answer from a VLAN that vm$2 is not in"
	on "$1" "ip link del v9"
	valed_counters
	[ "$(counter "vm$2" rx_filtered)" -gt "$filtered" ] ||
	    atf_fail "vm$2: the frames were not filtered"
}

guest_case cable "The driver sees whether the port has a link (valectl -o link=)"
cable_body()
{
	[ "$ADAPTER" != qemu ] || atf_skip "QEMU's adapter has no such port"
	VALED_MORE="-c control"
	members_up
	valectl=$plain/usr.sbin/valectl/valectl
	each_pair cable_of
	finish
}

# port_link GUEST VALUE SEEN: sets whether its port has a link; the guest sees it.
port_link()
{
	"$valectl" -c control -o "vale0:$1" "link=$2" || atf_fail "link=$2"
	on "$1" "wait_until 'link $2' grep -x $3 /sys/class/net/eth0/carrier"
}

# cable_of GUEST N: the guest's port loses its link, and gets it again; the Nth
# does not see that.
cable_of()
{
	pings "$1" "10.0.0.$2"
	port_link "$1" down 0
	on "$1" "ethtool eth0" > seen
	grep -q "Link detected: no" seen || atf_fail "$(cat seen)"
	on "vm$2" "grep -qx 1 /sys/class/net/eth0/carrier"
	vm "vm$2" ping -q -c 2 -i 0.2 -W 1 "10.0.0.${1#vm}" &&
	    atf_fail "an answer without a link"
	port_link "$1" up 1
	on "$1" carrier eth0
	pings "vm$2" "10.0.0.${1#vm}"
	# There is no uplink.
	port_link "$1" uplink 0
	port_link "$1" up 1
	on "$1" carrier eth0
	transfer "$1" "vm$2" "10.0.0.$2" 1000000
}
