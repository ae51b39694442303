#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# spin checks csb.pml: the protocol, and the protocol without each barrier; then
# guests that break it, and what the host does about them, and without that.

# check define...: runs the checker, which writes its result to "out".
check()
{
	command -v spin > /dev/null || atf_skip "spin is not installed"
	# The compiler preprocesses; spin would call gcc.
	atf_check -o ignore spin -P"${CC:-cc} -E -x c" -a "$@" \
	    "$(atf_get_srcdir)/csb.pml"
	atf_check -e ignore "${CC:-cc}" -w -DSAFETY -DNOREDUCE -o pan pan.c
	./pan -m100000 > out 2>&1 || true
}

# holds define...: the checker finds no error.
holds()
{
	check "$@"
	atf_check -o ignore grep -q 'errors: 0' out
	# The search was complete.
	atf_check -s exit:1 grep -e 'max search depth too small' \
	    -e 'Search not completed' -e 'out of memory' out
}

# loses define...: the checker finds that both sides wait.
loses()
{
	check "$@"
	atf_check -o ignore grep 'invalid end state' out
}

ring()
{
	local b

	holds "$@"
	for b in GUEST_TELL GUEST_SLEEP HOST_TELL HOST_SLEEP; do
		loses -DNO_BARRIER_$b "$@"
	done
}

atf_test_case tx_boolean
tx_boolean_head()
{
	atf_set descr "TX with guest_need_txkick: neither side sleeps while" \
	    "there is work, and every barrier is needed"
}
tx_boolean_body()
{
	ring -DRING_TX
}

atf_test_case tx_threshold
tx_threshold_head()
{
	atf_set descr "The same for TX with guest_txkick_at"
}
tx_threshold_body()
{
	ring -DRING_TX -DTHRESHOLD
}

atf_test_case rx_boolean
rx_boolean_head()
{
	atf_set descr "The same for RX with host_need_rxkick"
}
rx_boolean_body()
{
	ring -DRING_RX
}

atf_test_case rx_threshold
rx_threshold_head()
{
	atf_set descr "The same for RX with host_rxkick_at"
}
rx_threshold_body()
{
	ring -DRING_RX -DTHRESHOLD
}

TELL=-DNO_BARRIER_GUEST_TELL
SLEEP=-DNO_BARRIER_GUEST_SLEEP

atf_test_case tx_look
tx_look_head()
{
	atf_set descr "TX, a guest without barriers: the host needs to look" \
	    "once more, and nothing else"
}
tx_look_body()
{
	loses -DRING_TX $TELL
	loses -DRING_TX $SLEEP
	holds -DRING_TX $TELL $SLEEP -DLOOK
	holds -DRING_TX -DTHRESHOLD $TELL -DLOOK
}

atf_test_case rx_look
rx_look_head()
{
	atf_set descr "The same for RX"
}
rx_look_body()
{
	local t

	for t in "" -DTHRESHOLD; do
		loses -DRING_RX $t $TELL
		loses -DRING_RX $t $SLEEP
		holds -DRING_RX $t $TELL $SLEEP -DLOOK
	done
}

atf_test_case lem_rx
lem_rx_head()
{
	atf_set descr "lem(4) leaves guest_need_rxkick at 0: a write to IMS" \
	    "asks for interrupts, or the host looks once more"
}
lem_rx_body()
{
	local lem="-DRING_RX -DTHRESHOLD -DLEM"

	loses $lem
	holds $lem -DUNMASK
	holds $lem -DLOOK
	# It has no barriers.
	loses $lem $TELL $SLEEP -DUNMASK
	holds $lem $TELL $SLEEP -DUNMASK -DLOOK
	# Nor does it write to IMS.
	loses $lem -DLEM_LEGACY -DUNMASK
	holds $lem -DLEM_LEGACY $TELL $SLEEP -DUNMASK -DLOOK
}

atf_init_test_cases()
{
	atf_add_test_case tx_boolean
	atf_add_test_case tx_threshold
	atf_add_test_case rx_boolean
	atf_add_test_case rx_threshold
	atf_add_test_case tx_look
	atf_add_test_case rx_look
	atf_add_test_case lem_rx
}
