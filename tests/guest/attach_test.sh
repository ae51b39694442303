# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Stock guests, and a machine outside, which is another network namespace:
#
#	vm1, vm2 --- vale0 --- h0 (attached) === o0
#	         valed, in a namespace         outside
#
# and guests on two hosts, which are network namespaces, too:
#
#	vm1 --- vale0 --- vx0 =========== vx0 --- vale0 --- vm2, vm3
#	      valed, in host1               valed, in host2
#
# Both ends of the veth pair h0, o0 cut and complete what they send, so that o0
# sees frames as they are on a wire.

DRIVERS="e1000e e1000 e1000e"
. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"

# The machine outside: a command that runs another one there; its addresses.
outside=
OUTSIDE=10.0.0.9
OUTSIDE_MAC=52:54:00:82:54:09
# What udhcpd hands out.
LEASE=10.0.0.50

attach_case()
{
	guest_case "$1" "$2" require.user root \
	    require.progs "ip nsenter python3 tcpdump unshare"
}

# wired N KIND: the machine outside; valed in its sandbox, with the interface
# and N adapters on one switch; the guests on these.
wired()
{
	local i kind=$2 n=$1

	setup
	capture=$(atf_get_srcdir)/capture.py
	valectl=$OBJTOP/usr.sbin/valectl/valectl
	namespace outside
	outside=$ns
	namespace host
	$ns ip link add h0 type veth peer name o0 \
	    netns "$(cat outside.pid)" || atf_skip "no veth interfaces"
	$ns ip link set h0 up
	$outside ip link set o0 address $OUTSIDE_MAC up
	$outside ip addr add $OUTSIDE/24 dev o0
	$ns python3 "$capture" plain h0 && $outside python3 "$capture" plain \
	    o0 || atf_fail "the interfaces' offloads stay on"

	set -- -c control -a vale0:h0,kind=$kind
	for i in $(seq "$n"); do
		set -- "$@" -s "$i,$(adapter "vm$i")"
	done
	valed_start "$@" || atf_fail "valed does not start"
	wait_until "the sandbox" grep '^Seccomp:.*2' \
	    /proc/"$(cat valed.pid)"/status || atf_fail "no sandbox"
	for i in $(seq "$n"); do
		vm_valed "vm$i"
	done
	for i in $(seq "$n"); do
		vm_wait "vm$i" || wrong "vm$i does not start"
	done
}

# watch: outside, tcpdump(8) checks the checksums of all frames from now on.
# Those that leave are seen as the driver gets them.
watch()
{
	local way

	for way in in out; do
		$outside tcpdump -i o0 -Q $way -n -e -vv -l -B 131072 ip \
		    > $way.seen 2> $way.log < /dev/null &
		echo $! > $way.pid
	done
	for way in in out; do
		wait_until "tcpdump" grep "listening on" $way.log ||
		    atf_fail "no packet socket: $(cat $way.log)"
	done
}

# What tcpdump(8) prints of frames that are cut, fragments, or wrong.
wrong='offset [1-9]|flags \[[+]|incorrect|wrong|bad .*cksum|\[[|]'

# seen WAY: prints the length of the longest frame so far, and how many bytes of
# TCP's data have a right checksum.
seen()
{
	awk '/Flags .*\(correct\)/ { bytes += $NF }
	    sub(/.* ethertype IPv4 [^ ]* length /, "") && $1 + 0 > longest {
		longest = $1 + 0
	    }
	    END { print longest + 0, bytes + 0 }' "$1.seen"
}

# seen_enough LENGTH BYTES: both ways, as watched() has it.
seen_enough()
{
	local length=$1 bytes=$2 way

	for way in in out; do
		set -- $(seen $way)
		echo "$way: $*"
		[ "$1" -ge "$length" ] && [ "$2" -ge "$bytes" ] || return 1
	done
}

# watched LENGTH BYTES: ends that.  Both ways, the longest frame had this
# length, and segments of TCP this many bytes at least; nothing was wrong, or
# left to the receiver.
watched()
{
	local length=$1 way

	wait_until "all frames" seen_enough "$@" || atf_fail "not seen: $*"
	for way in in out; do
		kill "$(cat $way.pid)"
		wait "$(cat $way.pid)" || atf_fail "tcpdump: $(cat $way.log)"
		rm -f $way.pid
		atf_check -o ignore grep "^0 packets dropped by kernel" $way.log
		set -- $(seen $way)
		is "$way: longest" "$1" -eq "$length"
		atf_check -s exit:1 grep -E "$wrong" $way.seen
	done
}

# asked ADDRESS [ping arguments]: ten pings from outside are all answered.
asked()
{
	local to=$1

	shift
	for i in $(seq 10); do
		$outside "$BUSYBOX" ping -q -c 1 -W 60 "$@" "$to" > ping.out \
		    2>&1 || wrong "outside: ping $to: $(cat ping.out)"
	done
}

# dhcp: vm1 gets its address, and its route, from outside.
dhcp()
{
	: > leases
	cat > udhcpd.conf <<-END
	start $LEASE
	end $LEASE
	max_leases 1
	interface o0
	lease_file $PWD/leases
	pidfile $PWD/udhcpd.pidfile
	option subnet 255.255.255.0
	option router $OUTSIDE
	END
	$outside "$BUSYBOX" udhcpd -f udhcpd.conf > udhcpd.log 2>&1 \
	    < /dev/null &
	echo $! > udhcpd.pid
	on vm1 'load && ip link set eth0 up && carrier eth0
	    printf "%s\n" "#!/bin/sh" "[ \$1 = bound ] || exit 0" \
		"ip addr add \$ip/\$mask dev eth0" \
		"ip route add default via \$router" > /tmp/bound
	    chmod 755 /tmp/bound
	    wait_until "a lease" udhcpc -i eth0 -n -q -t 3 -s /tmp/bound
	    ip addr show dev eth0 && ip route' > address
	grep -q "inet $LEASE/24 " address && grep -q \
	    "^default via $OUTSIDE " address ||
		wrong "no lease: $(cat address udhcpd.log)"
	proc_end TERM udhcpd
	pings vm1 $OUTSIDE
	asked $LEASE
}

# jumbo: vm1 and the machine outside send frames of 9014 bytes; longer ones than
# the interface takes are dropped and counted.
jumbo()
{
	$ns ip link set h0 mtu 9000
	$outside ip link set o0 mtu 9000
	on vm1 "ip link set eth0 mtu 9000 && carrier eth0"
	watch
	# Linux does not fragment what fits.
	pings vm1 $OUTSIDE -s 8972
	asked $LEASE -s 8972
	watched 9014 0

	on vm1 "ip link set eth0 mtu 9200 && carrier eth0"
	pings vm1 $OUTSIDE
	is "dropped before" "$(counter h0 tx_drop_mtu)" -eq 0
	on vm1 "for i in 1 2 3; do
	    ping -q -c 1 -W 1 -s 8973 $OUTSIDE && exit 1; done; true"
	wait_until "dropped frames" dropped || wrong "they are not counted"
	pings vm1 $OUTSIDE -s 8972
	is "dropped" "$(counter h0 tx_drop_mtu)" -eq 3
}

dropped()
{
	valed_counters && [ "$(counter h0 tx_drop_mtu)" -ge 3 ]
}

attach_case outside "A guest gets its address from outside; TCP is cut and has \
right checksums on the wire; frames of 9014 bytes pass"
outside_body()
{
	reached packet
	jumbo
	finish
}

# reached KIND: a guest and the machine outside reach each other.
reached()
{
	local bytes=4000000

	wired 1 "$1"
	dhcp
	watch
	tcp_streams "$outside" $OUTSIDE $LEASE $bytes
	watched 1514 $bytes
	# The guest did not cut them, and its checksums were not complete.
	some vm1 tx_uncut
}

attach_case xdp "The same with AF_XDP, in frames of 1514 bytes; the switch \
cuts for it"
xdp_body()
{
	python3 -c 'import socket; socket.socket(44, socket.SOCK_RAW)' ||
	    atf_skip "the kernel has no AF_XDP"
	reached xdp
	finish
}

# learned PORT ADDRESS [SOCKET]: the switch knows the address at that port.
learned()
{
	"$valectl" -c "${3:-control}" -t vale0 | grep "^$2 vale0:$1 "
}

attach_case switch "Two guests on one switch and a machine outside reach each \
other, and the switch learns where they are"
switch_body()
{
	local i

	wired 2 packet
	up 1 2
	pings vm1 10.0.0.2
	for i in 1 2; do
		pings vm$i $OUTSIDE
		asked 10.0.0.$i
	done
	for i in "vm1 $(mac 1)" "vm2 $(mac 2)" "h0 $OUTSIDE_MAC"; do
		wait_until "the address of $i" learned $i ||
		    wrong "$i: not learned"
	done
	finish
}

attach_case virtio "A guest with virtio-net, at an attached TAP interface, and \
a machine outside exchange large packets uncut"
virtio_body()
{
	local bytes=4000000

	# The kernel that has virtio-net.
	DRIVER=lem DRIVERS=
	wired 0 packet
	$ns ip tuntap add mode tap vnet_hdr tap0 &&
	    $ns ip link set tap0 up || atf_skip "no TAP interfaces"
	printf '#!/bin/sh\nexec %s "$@"\n' "$ns $QEMU" > qemu.ns
	chmod 755 qemu.ns
	QEMU=$PWD/qemu.ns
	vm_start vm1 -netdev \
	    tap,id=net,ifname=tap0,script=no,downscript=no,vnet_hdr=on \
	    -device "virtio-net-pci,netdev=net,mac=$(mac 1)"
	$ns "$valectl" -c control -a vale0:tap0 || atf_fail "not attached"
	vm_wait vm1 || wrong "vm1 does not start"
	on vm1 "module virtio_pci && module virtio_net &&
	    wait_until eth0 [ -d /sys/class/net/eth0 ] && address 1"
	pings vm1 $OUTSIDE
	watch
	tcp_streams "$outside" $OUTSIDE 10.0.0.1 $bytes
	watched 1514 $bytes
	valed_counters || wrong "no counters"
	is "dropped" "$(counter tap0 rx_drop_offload port_tx_drop_header \
	    tx_drop_refused tx_drop_bad)" -eq 0
	# Neither the guest nor the switch cut what it sent.
	is "frames" "$(counter tap0 rx_frames)" -lt $((bytes / 1448))
	finish
}

attach_case vxlan "Three guests on two hosts reach each other through vxlan \
interfaces, which find each other by a multicast group"
vxlan_body()
{
	local h host1 host2 i

	setup
	valectl=$OBJTOP/usr.sbin/valectl/valectl
	namespace host1
	host1=$ns
	namespace host2
	host2=$ns
	$host1 ip link add eth0 type veth peer name eth0 \
	    netns "$(cat host2.pid)" || atf_skip "no veth interfaces"
	i=0
	for h in "$host1" "$host2"; do
		i=$((i + 1))
		$h ip link set eth0 up
		$h ip addr add 192.0.2.$i/24 dev eth0
		$h ip link add vx0 mtu 1450 type vxlan id 42 dstport 4789 \
		    group 239.1.1.1 dev eth0 || atf_skip "no vxlan interfaces"
		$h ip link set vx0 up
	done

	# The first host's valed, and then the second's, which is the one that
	# the functions for tests know.
	ns=$host1
	valed_start -c control1 -a vale0:vx0 \
	    -s "1,$(adapter vm1)" ||
	    atf_fail "valed does not start"
	mv valed.pid valed1.pid
	ns=$host2
	valed_start -c control -a vale0:vx0 \
	    -s "1,$(adapter vm2)" \
	    -s "2,$(adapter vm3)" ||
	    atf_fail "valed does not start"
	for i in 1 2 3; do
		vm_valed vm$i
	done
	for i in 1 2 3; do
		vm_wait vm$i || wrong "vm$i does not start"
	done
	up 1 2 3
	for i in 1 2 3; do
		on vm$i "ip link set eth0 mtu 1450 && carrier eth0"
	done

	# Frames as long as the tunnel takes: 1450 bytes are 28 of IP and ICMP.
	pings vm1 10.0.0.2 -s 1422
	pings vm1 10.0.0.3 -s 1422
	pings vm2 10.0.0.3 -s 1422
	transfer vm1 vm2 10.0.0.2 2000000
	transfer vm3 vm1 10.0.0.1 2000000
	for i in "vx0 $(mac 2) control1" "vx0 $(mac 3) control1" \
	    "vm1 $(mac 1) control1" "vx0 $(mac 1) control" \
	    "vm3 $(mac 3) control"; do
		wait_until "the address of $i" learned $i ||
		    wrong "$i: not learned"
	done
	finish
	proc_end TERM valed1
}
