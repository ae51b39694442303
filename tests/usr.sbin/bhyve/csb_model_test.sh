#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# spin checks csb.pml: the protocol, and the protocol without each barrier.

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

# needs barrier define...: the checker finds an error without the barrier.
needs()
{
	local barrier=$1

	shift
	check -DNO_BARRIER_$barrier "$@"
	atf_check -o ignore grep 'invalid end state' out
}

ring()
{
	local b

	holds "$@"
	for b in GUEST_TELL GUEST_SLEEP HOST_TELL HOST_SLEEP; do
		needs $b "$@"
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

atf_init_test_cases()
{
	atf_add_test_case tx_boolean
	atf_add_test_case tx_threshold
	atf_add_test_case rx_boolean
	atf_add_test_case rx_threshold
}
