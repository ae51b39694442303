# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# What hosts, tunnels and guests of others send through an attached interface.
# The cases are functions of outside.py, which run beside another host's kernel.

. "$(atf_get_srcdir)/valed.subr"
. "$(atf_get_srcdir)/hosts.subr"

# features PID INTERFACE FEATURE on|off...: sets them, or skips the test.
features()
{
	local pid=$1 name=$2

	shift 2
	in_host $pid ethtool -K $name "$@" > ethtool.out 2>&1 ||
	    atf_skip "ethtool -K $*: $(tail -n 1 ethtool.out)"
}

# between: hosts O and S, and valed at S with two guests' adapters.
between()
{
	host O && host S
	wire $S pa $O ea
	in_host $O ip addr add 192.0.2.1/24 dev ea
	in_host $O ip -6 addr add fd00::1/64 dev ea nodad
	in_host $O ip neigh add 192.0.2.2 lladdr 52:54:00:82:54:01 dev ea
	in_host $O ip neigh add fd00::2 lladdr 52:54:00:82:54:01 dev ea
}

serve()
{
	valed_in $S -a vale0:pa -s 1,e1000,vale0:vm1,path=vm1.sock \
	    -s 2,e1000,vale0:vm2,path=vm2.sock
	for s in vm1 vm2; do
		listening $s.sock || atf_fail "no socket"
	done
}

# outside_case NAME: runs a function of outside.py.
outside_case()
{
	PYTHONDONTWRITEBYTECODE=1 python3 "$(atf_get_srcdir)/outside.py" \
	    $1 $O || atf_fail "outside.py $1"
	counters $VALED_PID $S
	valed_ends $VALED_PID valed.err.$S
}

# collect PID INTERFACE: has the kernel put together what it receives in the
# next fifth of a second.
collect()
{
	nsenter -t $1 -n unshare -m sh -c "mount -t sysfs none /sys &&
	    echo 200000000 > /sys/class/net/$2/gro_flush_timeout &&
	    echo 100000 > /sys/class/net/$2/napi_defer_hard_irqs" ||
	    atf_skip "the time of GRO cannot be set"
}

host_case tunnels "Segments in IPIP, GRE, VXLAN and others that the kernel \
puts together arrive as they were sent" ethtool
tunnels_body()
{
	tunnels off
}

host_case tunnels_fraglist "So do those that it puts together in lists, also if \
it has a tunnel of this kind itself" ethtool
tunnels_fraglist_body()
{
	tunnels on
}

# tunnels rx-gro-list
tunnels()
{
	between
	features $O ea gso off tso off
	features $S pa gro on rx-gro-list $1
	[ $1 = off ] || in_host $S ip link add vx type vxlan id 9 dstport 4789 \
	    local 192.0.2.9 remote 192.0.2.8 || atf_skip "no VXLAN"
	[ $1 = off ] || in_host $S ip link set vx up
	collect $S pa
	serve
	outside_case tunnels
	[ $(value $S pa rx_cut) -ge 1 ] ||
	    atf_skip "the kernel has put nothing together"
	[ $(value $S pa rx_segments) -gt $(value $S pa rx_cut) ] ||
	    atf_fail "one segment each"
	atf_check_equal 0 $(value $S pa rx_drop_offload)
	atf_check_equal 0 $(value $S pa port_tx_drop_header)
}

host_case checksums "Checksums that are left to the interface are completed, \
also those of SCTP" ethtool
checksums_body()
{
	between
	serve
	outside_case checksums
	atf_check_equal 0 $(value $S pa rx_drop_offload)
}

host_case segments "Datagrams of UDP_SEGMENT arrive one by one" ethtool
segments_body()
{
	between
	serve
	outside_case segments
	[ $(value $S vm1 rx_cut) -ge 4 ] || atf_fail "not uncut to the switch"
}

# grouped FEATURE: the host's kernel puts datagrams together as that says.
grouped()
{
	between
	features $O ea tx-udp-segmentation off gso off tx off
	features $S pa gro on $1 on
	serve
	outside_case segments
	atf_check_equal 0 $(value $S pa port_tx_drop_header)
	atf_check_equal 0 $(value $S pa rx_drop_offload)
}

host_case fraglist "So do those that the kernel puts together in lists" ethtool
fraglist_body()
{
	grouped rx-gro-list
}

host_case forwarded "So do those that the kernel puts together to forward \
them" ethtool
forwarded_body()
{
	grouped rx-udp-gro-forwarding
}

host_case invalid "Whatever a guest asks to be cut, the frames of others leave" ethtool
invalid_body()
{
	between
	serve
	outside_case invalid
	# The kernel was given nothing that it cannot send.
	atf_check_equal 0 $(value $S pa tx_drop_refused)
	atf_check_equal 4 $(value $S vm1 tx_bad_ctx)
}

host_case vxlan "TCP in VXLAN, in large segments, through two interfaces" ethtool
vxlan_body()
{
	host A && host S && host B
	wire $S pa $A ea
	wire $S pb $B eb
	in_host $A ip addr add 192.0.2.1/24 dev ea
	in_host $B ip addr add 192.0.2.2/24 dev eb
	in_host $A ip link add vx0 type vxlan id 7 remote 192.0.2.2 \
	    dstport 4789 dev ea || atf_skip "no vxlan interfaces"
	in_host $B ip link add vx0 type vxlan id 7 remote 192.0.2.1 \
	    dstport 4789 dev eb
	in_host $A ip addr add 10.9.0.1/24 dev vx0
	in_host $B ip addr add 10.9.0.2/24 dev vx0
	in_host $A ip link set vx0 up
	in_host $B ip link set vx0 up
	valed_in $S -a vale0:pa -a vale0:pb
	tcp $B 10.9.0.2 $A 5000000
	tcp $A 10.9.0.1 $B 5000000
	counters $VALED_PID $S
	[ $(value $S pa rx_cut) -ge 1 ] || atf_fail "nothing was cut"
	for h in $A $B; do
		in_host $h cat /proc/net/snmp > snmp
		awk '/^Tcp: [0-9]/ { exit $NF != 0 }' snmp ||
		    atf_fail "checksums: $(grep Tcp: snmp | tail -n 1)"
	done
	for i in pa pb; do
		atf_check_equal 0 $(value $S $i tx_drop_refused)
		atf_check_equal 0 $(value $S $i rx_drop_offload)
	done
}
