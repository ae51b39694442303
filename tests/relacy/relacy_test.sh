#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# Each scenario holds under C11's memory model, and fails if an operation is
# weakened that sites.table says it needs.  RELACY_EXECUTIONS is the number of
# executions of each; the latest such failure takes 1155.

. "$(atf_get_srcdir)/cases.subr"

relacy()
{
	local dir="$(atf_get_srcdir)"
	local n="${RELACY_EXECUTIONS:-${executions:-4000}}"

	"$dir/relacy" -n "$n" -t "$dir/sites.table" "$@" > out || {
		cat out
		atf_fail "see above"
	}
}

test_case sites "The table has every operation that orders others"
sites_body()
{
	relacy
}

# scenario name description [executions]
scenario()
{
	test_case $1 "$2" timeout 86400
	eval "$1_body() { executions=${3:-4000}; relacy $1; }"
}

scenario tx_kick "CSB: the guest sends, the host goes to sleep"
scenario tx_done "CSB: the ring is full; guest_need_txkick"
scenario tx_at "CSB: the ring is full; guest_txkick_at"
scenario tx_report "CSB: packets are awaited; guest_txkick_at"
scenario rx_notify "CSB: frames arrive, the guest goes to sleep"
scenario rx_post "CSB: the guest returns buffers, the host stalls"
scenario tx_regs "Transmit without the CSB"
scenario rx_kicks "CSB: the guest kicks for each buffer"
scenario rx_head "CSB: the guest looks for frames by host_rdh"
scenario rx_regs "Receive without the CSB"
scenario lazy "The ring is full; LEM_MODE_LAZY"
scenario lazy_report "A packet is awaited; LEM_MODE_LAZY"
scenario poll "Polling is turned on in an interrupt"
scenario loop "Frames looped back"
scenario loop_full "Frames looped back, the queue is full"
scenario lease "Two senders lease slots; the user polls"
scenario return "A user that polls returns slots"
scenario sleep "The user waits for frames of two senders"
scenario shared_sleep "A user in another process waits for two senders"
scenario shared_return "A user in another process returns slots"
scenario shared_tx "A user in another process sends, and waits for space"
scenario inbox "Frames wait for a user in another process, and keep their order"
scenario pipe "A pipe: both ends wait for each other"
# Long executions, which fail at once.
scenario change "The switch changes while two ports send" 1000
scenario table "Learning table: two threads learn, one looks up"
scenario generation "Learning table: a cached lookup and the generation"
scenario fair "The fair mutex"
