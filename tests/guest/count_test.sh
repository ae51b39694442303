# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Every frame is accounted for: what one guest's driver sent has been received
# by the other's, or stands in a counter that says why not.

# No frame that a valed port has seen may be lost without a reason.  Called when
# traffic has ended; $1 frames were sent by vm1's driver and $2 by vm2's since
# the driver was loaded, $3 and $4 received.
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
		    "$(counter vm$from tx_frames tx_linkdown tx_noroom)"
		equal "vm$from: adapter and port" \
		    "$(counter vm$from tx_frames)" \
		    "$(counter vm$from port_tx_frames tx_overmtu)"
		equal "vm$from to vm$to: ports" \
		    "$(counter vm$from port_tx_frames)" \
		    "$(($(counter vm$to port_rx_frames port_rx_drop_full) +
		    $(counter vm$from port_tx_drop_runt port_tx_drop_oversize \
		    port_tx_drop_buf port_tx_drop_len port_tx_drop_frags \
		    port_tx_drop_cut port_tx_drop_nodest port_tx_drop_self \
		    port_tx_drop_limit)))"
		equal "vm$to: port and adapter" \
		    "$(counter vm$to port_rx_frames)" \
		    "$(counter vm$to rx_frames rx_filtered rx_oversize \
		    rx_disabled rx_bad_addr rx_overmtu)"
		equal "vm$to: adapter and driver, received" \
		    "$(counter vm$to rx_frames)" "$received"
	done
}

equal()
{
	echo "$1: $2 $3"
	[ "$2" -eq "$3" ] || atf_fail "$1: $2 is not $3"
}

# driver GUEST: frames sent and received as the driver says, once they stand
# still.
driver()
{
	on "$1" 'a=; while :; do b="$(stat tx_packets) $(stat rx_packets)"
	    [ "$a" != "$b" ] || break; a=$b; sleep 1; done; echo $b'
}

# both_ways SETTING SIZE: full rate from both guests, then the account.
both_ways()
{
	local n

	guests 2 "$1"
	# Nothing but what is sent here: no address, no neighbour discovery.
	for n in 1 2; do
		on vm$n "load && sysctl -q -w \
		    net.ipv6.conf.eth0.disable_ipv6=1 &&
		    ip link set eth0 up && carrier eth0"
	done
	for n in 1 2; do
		on vm$n "pktgen_setup $(mac $((3 - n))) 10.0.0.9 $2 30000"
	done
	vm vm1 "pktgen_start; wait" & first=$!
	on vm2 "pktgen_start; wait"
	wait $first || atf_fail "vm1 could not send"
	drained
	set -- $(driver vm1) $(driver vm2)
	equal "vm1 sent" 30000 "$1"
	equal "vm2 sent" 30000 "$3"
	accounted "$1" "$3" "$2" "$4"
}

atf_test_case small cleanup
small_head()
{
	atf_set descr "60-byte frames both ways at full rate, all accounted for"
	atf_set timeout 900
}
small_body()
{
	. "$(atf_get_srcdir)/tests.subr"
	both_ways "" 60
	finish
}
small_cleanup()
{
	. "$(atf_get_srcdir)/tests.subr"
	setup
	stop_all
}

atf_test_case large cleanup
large_head()
{
	atf_set descr "1514-byte frames both ways at full rate, with itr=250"
	atf_set timeout 900
}
large_body()
{
	. "$(atf_get_srcdir)/tests.subr"
	both_ways ",itr=250" 1514
	finish
}
large_cleanup()
{
	. "$(atf_get_srcdir)/tests.subr"
	setup
	stop_all
}

atf_init_test_cases()
{
	atf_add_test_case small
	atf_add_test_case large
}
