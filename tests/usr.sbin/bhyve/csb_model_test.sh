#
# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# spin checks csb.pml: guests that break the protocol, and what the host does
# about them, and without that.  csb_mode.pml: the mode and the start of the
# receive ring; csb_tx_mode.pml: the mode and the transmit ring.  Guests that
# follow the protocol are relacy_test's.

. "$(atf_get_srcdir)/cases.subr"

PAN=-DNOREDUCE

# check model define...: runs the checker, which writes its result to "out".
check()
{
	local model=$1

	shift
	command -v spin > /dev/null || atf_skip "spin is not installed"
	# The compiler preprocesses; spin would call gcc.
	atf_check -o ignore spin -P"${CC:-cc} -E -x c" -a "$@" \
	    "$(atf_get_srcdir)/$model"
	atf_check -e ignore "${CC:-cc}" -w -DSAFETY $PAN -o pan pan.c
	./pan -m1000000 > out 2>&1 || true
}

# holds model define...: the checker finds no error.
holds()
{
	check "$@"
	atf_check -o ignore grep -q 'errors: 0' out
	# The search was complete.
	atf_check -s exit:1 grep -e 'max search depth too small' \
	    -e 'Search not completed' -e 'out of memory' out
}

# loses model define...: the checker finds that both sides wait.
loses()
{
	check "$@"
	atf_check -o ignore grep 'invalid end state' out
}

# overwrites model define...: it finds a frame in a buffer of the guest's.
overwrites()
{
	check "$@"
	atf_check -o ignore grep 'assertion violated' out
}

TELL=-DNO_BARRIER_GUEST_TELL
SLEEP=-DNO_BARRIER_GUEST_SLEEP

test_case tx_recheck "TX, a guest without barriers: the host needs to check \
again, and nothing else"
tx_recheck_body()
{
	loses csb.pml -DRING_TX $TELL
	loses csb.pml -DRING_TX $SLEEP
	holds csb.pml -DRING_TX $TELL $SLEEP -DRECHECK
}

test_case rx_recheck "RX, a guest without barriers: the host needs to check \
again, and nothing else"
rx_recheck_body()
{
	loses csb.pml -DRING_RX $TELL
	loses csb.pml -DRING_RX $SLEEP
	holds csb.pml -DRING_RX $TELL $SLEEP -DRECHECK
}

test_case lem_rx "lem(4) leaves guest_need_rxkick at 0: a write to IMS asks \
for interrupts, or the host checks again"
lem_rx_body()
{
	local lem="-DRING_RX -DLEM"

	loses csb.pml $lem
	holds csb.pml $lem -DUNMASK
	holds csb.pml $lem -DRECHECK
	# It has no barriers.
	loses csb.pml $lem $TELL $SLEEP -DUNMASK
	holds csb.pml $lem $TELL $SLEEP -DUNMASK -DRECHECK
	# Nor does it write to IMS.
	loses csb.pml $lem -DLEM_LEGACY -DUNMASK
	holds csb.pml $lem -DLEM_LEGACY $TELL $SLEEP -DUNMASK -DRECHECK
}

test_case mode "RX, the mode changes and the ring is started again: no buffer \
of the guest's is used, and none posted is missed"
mode_body()
{
	local guest

	for guest in "" -DFEW -DREFILL "-DFEW -DREFILL" -DOFF "-DOFF -DFEW" \
	    "-DOFF -DFEW -DREFILL" -DSTARTS "-DSTARTS -DFEW -DREFILL" \
	    -DBUS_OFF "-DBUS_OFF -DFEW -DREFILL" "-DBUS_OFF -DOFF -DFEW"; do
		holds csb_mode.pml $guest
	done
}

test_case mode_late "RX, the mode changes and writes to RDT take effect later: \
no buffer of the guest's is used"
mode_late_body()
{
	PAN=-O2
	holds csb_mode.pml -DLATE
	overwrites csb_mode.pml -DLATE -DNO_DD
}

test_case mode_needs "Whatever the host leaves out shows"
mode_needs_body()
{
	loses csb_mode.pml -DNO_SWAP
	overwrites csb_mode.pml -DNO_FORGET
	overwrites csb_mode.pml -DNO_FORGET -DOFF -DFEW
	overwrites csb_mode.pml -DSTORE_OFF
	loses csb_mode.pml -DAT_ONCE
	loses csb_mode.pml -DDROP_ON
	loses csb_mode.pml -DNO_WAIT_KEPT
	loses csb_mode.pml -DNO_WAIT_KEPT -DOFF
}

test_case tx_mode "TX, the mode changes: nothing is sent twice, and no frame \
is left" timeout 1200
tx_mode_body()
{
	local guest

	PAN=-O2
	for guest in "" -DCOMBINE -DLATE -DOWN "-DOWN -DLATE"; do
		holds csb_tx_mode.pml $guest
	done
}

test_case tx_mode_needs "TX, whatever the host leaves out shows"
tx_mode_needs_body()
{
	PAN=
	overwrites csb_tx_mode.pml -DNO_DD -DCOMBINE
	overwrites csb_tx_mode.pml -DNO_DD -DLATE
	loses csb_tx_mode.pml -DNO_SWAP
	loses csb_tx_mode.pml -DNO_SWAP -DOWN
	overwrites csb_tx_mode.pml -DNO_ON
	overwrites csb_tx_mode.pml -DNO_ON -DOWN
	overwrites csb_tx_mode.pml -DSTORE_OFF -DOWN
	loses csb_tx_mode.pml -DNO_REREAD
	loses csb_tx_mode.pml -DNO_REREAD -DOWN
	loses csb_tx_mode.pml -DREREAD_ON
	overwrites csb_tx_mode.pml -DKEEP_FRESH -DOWN -DLATE
}
