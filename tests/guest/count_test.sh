# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Every frame is accounted for: a frame that one guest's driver sends is
# received by another's, or counted with the reason why not; filters of
# multicast addresses included.  Each guest has another adapter and driver.

DRIVERS="e1000 e1000e lem,csb=on"
. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"

# accounted FROM N: the Nth guest receives what the other one sends, and the
# broadcast of each further guest (all_at_once).  Valed's counters agree with
# those of their drivers (driver_counts), when traffic has ended.
accounted()
{
	local from=$1 to=vm$2

	equal "$from: driver and adapter, sent" "$(cat "$from.sent")" \
	    "$(counter "$from" $SENT tx_linkdown tx_noroom)"
	equal "$from: adapter and port" \
	    "$(counter "$from" tx_frames)" \
	    "$(counter "$from" port_tx_frames tx_overmtu)"
	equal "$from to $to: ports" \
	    "$(($(counter "$from" port_tx_frames) + $(members | wc -l) - 2))" \
	    "$(($(counter "$to" port_rx_frames port_rx_drop_full) +
	    $(counter "$from" port_tx_drop_runt port_tx_drop_oversize \
	    port_tx_drop_buf port_tx_drop_len port_tx_drop_frags \
	    port_tx_drop_cut port_tx_drop_nodest port_tx_drop_self \
	    port_tx_drop_limit port_tx_drop_header)))"
	equal "$to: port and adapter" \
	    "$(counter "$to" port_rx_frames)" \
	    "$(counter "$to" rx_frames rx_filtered rx_oversize \
	    rx_disabled rx_bad_addr rx_bad_offload rx_overmtu)"
	equal "$to: adapter and driver, received" \
	    "$(counter "$to" $RECEIVED)" "$(cat "$to.received")"
}

equal()
{
	echo "$1: $2 $3"
	[ "$2" -eq "$3" ] || atf_fail "$1: $2 is not $3"
}

# driver_counts GUEST: puts how many frames the driver sent and took into
# GUEST.sent and GUEST.received, once that is as many as its adapter did.  It
# reads the adapter's statistics every two seconds.
driver_counts()
{
	local received sent

	sent=$(counter "$1" $SENT)
	received=$(counter "$1" $RECEIVED)
	on "$1" "wait_until '$sent frames sent, $received received' eval \
	    'stat tx_packets; stat rx_packets
	    [ \$(stat tx_packets) -ge $sent ] &&
	    [ \$(stat rx_packets) -ge $received ]'" > /dev/null
	on "$1" "stat tx_packets" > "$1.sent"
	on "$1" "stat rx_packets" > "$1.received"
}

# all_at_once SETTING SIZE: each guest sends a broadcast, from which the switch
# learns its address, then frames to the next guest at full rate; all frames are
# accounted for.
all_at_once()
{
	local i n=20000 senders=

	guests "$(members | wc -l)" "$1"
	# No addresses, so that the guests send no frames of their own.
	for i in $(members); do
		on vm$i "load && sysctl -q -w \
		    net.ipv6.conf.eth0.disable_ipv6=1 &&
		    ip link set eth0 up && carrier eth0"
	done
	for i in $(members); do
		on vm$i "pktgen_setup ff:ff:ff:ff:ff:ff 10.0.0.255 60 1
		    pktgen_run"
	done
	for i in $(members); do
		on vm$i "pktgen_setup $(mac "$(next $i)") 10.0.0.9 $2 $n"
	done
	for i in $(members); do
		vm vm$i pktgen_run & senders="$senders $!"
	done
	for i in $senders; do
		wait "$i" || atf_fail "a guest could not send"
	done
	drained
	valed_counters || atf_fail "valed does not print its counters"
	for i in $(members); do
		driver_counts vm$i
		equal "vm$i sent" $((n + 1)) "$(cat vm$i.sent)"
	done
	each_pair accounted
	finish
}

guest_case small "60-byte frames from each guest to another are all \
accounted for"
small_body()
{
	all_at_once "" 60
}

guest_case large "1514-byte frames from each guest to another, with itr=250, \
are all accounted for"
large_body()
{
	all_at_once ",itr=250" 1514
}

guest_case multicast "The driver sets multicast and promiscuous filters"
multicast_body()
{
	guests "$(members | wc -l)"
	up $(members)
	each_pair multicast_to
	finish
}

# multicast_to SENDER N: the Nth guest gets frames for a group only if it has
# joined it, or wants all.
multicast_to()
{
	local from=$1 to=vm$2

	# The group of its address.
	on "$from" "pktgen_setup 33:33:ff:00:00:0$2 10.0.0.9 60 100"
	hundred "$from" "$to" rx_frames
	# One that nobody has joined, and whose bit in the table of multicast
	# addresses is no other group's.
	on "$from" "pktgen_setup 33:33:ff:00:00:77 10.0.0.9 60 100"
	hundred "$from" "$to" rx_filtered
	on "$to" "ip link set eth0 promisc on"
	hundred "$from" "$to" rx_frames
	# And another station's, which the switch does not know.
	on "$from" "pktgen_setup $(mac 9) 10.0.0.9 60 100"
	hundred "$from" "$to" rx_frames
	on "$to" "ip link set eth0 promisc off"
	hundred "$from" "$to" rx_filtered
	on "$from" "pktgen_setup 33:33:ff:00:00:77 10.0.0.9 60 100"
	hundred "$from" "$to" rx_filtered
	on "$to" "ifconfig eth0 allmulti"
	hundred "$from" "$to" rx_frames
	on "$to" "ifconfig eth0 -allmulti"
	hundred "$from" "$to" rx_filtered
}

# hundred SENDER GUEST COUNTER: the sender sends 100 frames, which the guest's
# counter counts.
hundred()
{
	local before

	valed_counters
	before=$(counter "$2" "$3")
	on "$1" pktgen_run
	# The other adapter may be behind it.
	wait_until "100 frames in $3 of $2" counted "$2" "$3" "$before" ||
	    wrong "$2: less than 100 frames in $3"
}

# counted GUEST COUNTER BEFORE: whether the counter has grown by 100.
counted()
{
	valed_counters
	echo "$3, now $(counter "$1" "$2")"
	[ $(($(counter "$1" "$2") - $3)) -ge 100 ]
}
