# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Every frame is accounted for: a frame that one guest's driver sends is
# received by the other's, or counted with the reason why not; filters of
# multicast addresses included.

. "$(atf_get_srcdir)/cases.subr"
. "$(atf_get_srcdir)/tests.subr"

# accounted SENT1 SENT2 RECEIVED1 RECEIVED2: valed's counters agree with those
# of the drivers of vm1 and vm2, when traffic has ended.
accounted()
{
	local from to sent received missing

	valed_counters || atf_fail "valed does not print its counters"
	for from in 1 2; do
		to=$((3 - from))
		if [ $from = 1 ]; then
			sent=$1 received=$4
		else
			sent=$2 received=$3
		fi
		equal "vm$from: driver and adapter, sent" "$sent" \
		    "$(counter vm$from $SENT tx_linkdown tx_noroom)"
		equal "vm$from: adapter and port" \
		    "$(counter vm$from tx_frames)" \
		    "$(counter vm$from port_tx_frames tx_overmtu)"
		equal "vm$from to vm$to: ports" \
		    "$(counter vm$from port_tx_frames)" \
		    "$(($(counter vm$to port_rx_frames port_rx_drop_full) +
		    $(counter vm$from port_tx_drop_runt port_tx_drop_oversize \
		    port_tx_drop_buf port_tx_drop_len port_tx_drop_frags \
		    port_tx_drop_cut port_tx_drop_nodest port_tx_drop_self \
		    port_tx_drop_limit port_tx_drop_header)))"
		equal "vm$to: port and adapter" \
		    "$(counter vm$to port_rx_frames)" \
		    "$(counter vm$to rx_frames rx_filtered rx_oversize \
		    rx_disabled rx_bad_addr rx_bad_offload rx_overmtu)"
		equal "vm$to: adapter and driver, received" \
		    "$(counter vm$to $RECEIVED)" "$received"
	done
}

equal()
{
	echo "$1: $2 $3"
	[ "$2" -eq "$3" ] || atf_fail "$1: $2 is not $3"
}

# driver GUEST SENT RECEIVED: prints how many frames the driver sent and took,
# once that is as many as its adapter did.  It reads the adapter's statistics
# every two seconds.
driver()
{
	on "$1" "wait_until '$2 frames sent, $3 received' eval \
	    'stat tx_packets; stat rx_packets
	    [ \$(stat tx_packets) -ge $2 ] && [ \$(stat rx_packets) -ge $3 ]'
	    echo \$(stat tx_packets) \$(stat rx_packets)"
}

# both_ways SETTING SIZE: both guests send at full rate, then all frames are
# accounted for.
both_ways()
{
	local n

	guests 2 "$1"
	# No addresses, so that the guests send no frames of their own.
	for n in 1 2; do
		on vm$n "load && sysctl -q -w \
		    net.ipv6.conf.eth0.disable_ipv6=1 &&
		    ip link set eth0 up && carrier eth0"
	done
	for n in 1 2; do
		on vm$n "pktgen_setup $(mac $((3 - n))) 10.0.0.9 $2 30000"
	done
	vm vm1 pktgen_run & first=$!
	on vm2 pktgen_run
	wait $first || atf_fail "vm1 could not send"
	drained
	valed_counters || atf_fail "valed does not print its counters"
	set -- $(driver vm1 $(counter vm1 $SENT) $(counter vm1 $RECEIVED)) \
	    $(driver vm2 $(counter vm2 $SENT) $(counter vm2 $RECEIVED))
	equal "vm1 sent" 30000 "$1"
	equal "vm2 sent" 30000 "$3"
	accounted "$1" "$3" "$2" "$4"
}

guest_case small "60-byte frames both ways are all accounted for"
small_body()
{
	both_ways "" 60
	finish
}

guest_case large "1514-byte frames both ways, with itr=250, are all accounted \
for"
large_body()
{
	both_ways ",itr=250" 1514
	finish
}

guest_case multicast "The driver sets multicast and promiscuous filters"
multicast_body()
{
	guests 3
	up 1 2 3
	# The group that only vm3 has joined, for its address fd00::3.
	on vm1 "pktgen_setup 33:33:ff:00:00:03 10.0.0.9 60 100"
	hundred vm3 rx_frames
	hundred vm2 rx_filtered
	on vm2 "ip link set eth0 promisc on"
	hundred vm2 rx_frames
	on vm2 "ip link set eth0 promisc off"
	hundred vm2 rx_filtered
	on vm2 "ifconfig eth0 allmulti"
	hundred vm2 rx_frames
	on vm2 "ifconfig eth0 -allmulti"
	hundred vm2 rx_filtered
	finish
}

# hundred GUEST COUNTER: vm1 sends 100 frames, which the counter counts.
hundred()
{
	local before

	valed_counters
	before=$(counter "$1" "$2")
	on vm1 pktgen_run
	# The other adapter may be behind it.
	wait_until "100 frames in $2 of $1" counted "$1" "$2" "$before" ||
	    wrong "$1: less than 100 frames in $2"
}

# counted GUEST COUNTER BEFORE: whether the counter has grown by 100.
counted()
{
	valed_counters
	echo "$3, now $(counter "$1" "$2")"
	[ $(($(counter "$1" "$2") - $3)) -ge 100 ]
}
