/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The receive ring; see the drawing in lem_impl.h.
 *
 * Slots are refilled in the order of the ring.  If there is no buffer for one,
 * those behind it wait until there is.
 */

#include "lem_impl.h"

/* The second word of a descriptor, as the adapter writes it, 3.2.3. */
#define	STATUS(bits)	E82545_REST_STATUS(E82545_RXD_##bits)
#define	ERROR(bit)	E82545_REST_ERRORS(E82545_RXD_ERR_##bit)
#define	BAD	(ERROR(CE) | ERROR(SE) | ERROR(SEQ) | ERROR(CXE) | ERROR(RXE))

/* lv_flags. */
#define	VNET_PARTIAL	0x01

/* Return the number of slots to refill. */
static uint32_t
rx_missing(const struct lem_core *lc)
{
	return (DISTANCE(lc->lc_rx_tail, lc->lc_rx_next, lc->lc_nrxd));
}

/* Store the tail in the CSB.  Returns whether RDT must be written. */
static bool
rx_publish(struct lem_core *lc, uint32_t old)
{
	uint32_t at;

	if (!CSB_ON(lc))
		return (true);
	atomic_store_rel_32(&lc->lc_csb->guest_rdt, lc->lc_rx_posted);
	atomic_thread_fence_seq_cst();
	at = atomic_load_acq_32(&lc->lc_csb->host_rxkick_at);
	if (at == NET_PARAVIRT_NONE)
		return (false);
	if (at >= lc->lc_nrxd) {
		/* Not a slot: it would wait for ever. */
		lc->lc_counter[LEM_C_RX_BAD]++;
		return (true);
	}
	/* No buffer for the next slot: it may take long to get to `at'. */
	if (rx_missing(lc) > 1)
		return (true);
	/* Did this step reach it? */
	at = DISTANCE(old, at, lc->lc_nrxd);
	return (at > 0 && at <= DISTANCE(old, lc->lc_rx_posted, lc->lc_nrxd));
}

static void
rx_post(struct lem_core *lc)
{
	uint32_t old = lc->lc_rx_posted;
	uint32_t n = DISTANCE(old, lc->lc_rx_tail, lc->lc_nrxd);

	lem_rx_assert(lc);
	if (n == 0)
		return;
	lc->lc_rx_posted = lc->lc_rx_tail;
	if (rx_publish(lc, old)) {
		lem_os_write(lc, E82545_RDT, lc->lc_rx_posted);
		lc->lc_counter[LEM_C_RX_KICK]++;
		n--;
	}
	lc->lc_counter[LEM_C_RX_KICK_SAVED] += n;
}

/* Refill all slots but one: a ring with equal head and tail is empty. */
static void
rx_refill(struct lem_core *lc)
{
	uint64_t addr;
	uint32_t n = lc->lc_nrxd, slot;

	lem_os_assert_rx(lc);
	for (slot = lc->lc_rx_tail; NEXT(slot, n) != lc->lc_rx_next;
	    slot = NEXT(slot, n)) {
		if (!lc->lc_rx_empty[slot])
			continue;
		addr = lem_os_rx_buf(lc, slot);
		if (addr == 0) {
			lc->lc_counter[LEM_C_RX_NOBUF]++;
			break;
		}
		lc->lc_rxd[slot].addr = addr;
		lc->lc_rx_empty[slot] = false;
	}
	lc->lc_rx_tail = slot;
}

bool
lem_rx_init(struct lem_core *lc)
{
	uint32_t slot;

	lem_os_assert_rx(lc);
	for (slot = 0; slot < lc->lc_nrxd; slot++) {
		if (lc->lc_vnet != NULL)
			lc->lc_vnet[slot] = (struct lem_vnet){ 0 };
		atomic_store_rel_64(&lc->lc_rxd[slot].rest, 0);
		lc->lc_rx_empty[slot] = true;
	}
	lc->lc_rx_next = lc->lc_rx_tail = lc->lc_rx_len = 0;
	lc->lc_rx_skip = false;
	lc->lc_rx_vnet = (struct lem_vnet){ 0 };
	rx_refill(lc);
	lc->lc_rx_posted = lc->lc_rx_tail;
	return (lc->lc_rx_tail != 0);
}

/*
 * Set lc_rx_offload, for a frame of `len' bytes.  Returns whether the header is
 * valid: other guests make it.  A header of zeros is that of a complete frame.
 */
static bool
rx_offload(struct lem_core *lc, uint32_t len)
{
	const struct lem_vnet *v = &lc->lc_rx_vnet;
	struct lem_offload *lo = &lc->lc_rx_offload;

	lo->lo_type = v->lv_type;
	lo->lo_csum_start = v->lv_csum_start;
	lo->lo_csum_offset = v->lv_csum_offset;
	lo->lo_mss = 0;
	if ((v->lv_flags & VNET_PARTIAL) == 0)
		return (v->lv_type == LEM_OFFLOAD_NONE &&
		    len <= E82545_FRAME_MAX);
	if (v->lv_csum_start < E82545_ETH_HDRLEN ||
	    (uint32_t)v->lv_csum_start + v->lv_csum_offset + 2 > len)
		return (false);
	switch (v->lv_type) {
	case LEM_OFFLOAD_NONE:
		return (true);
	case LEM_OFFLOAD_TCP4:
	case LEM_OFFLOAD_TCP4 | LEM_OFFLOAD_ECN:
	case LEM_OFFLOAD_TCP6:
	case LEM_OFFLOAD_TCP6 | LEM_OFFLOAD_ECN:
	case LEM_OFFLOAD_UDP:
		lo->lo_mss = v->lv_mss;
		return (v->lv_mss != 0 && v->lv_mss < len);
	default:
		return (false);
	}
}

/*
 * Return whether a descriptor that was written back is valid, and without
 * errors.
 */
static bool
rx_check(struct lem_core *lc, uint64_t done)
{
	uint32_t len = (uint16_t)done, sum = lc->lc_rx_len + len;
	bool eop = (done & STATUS(EOP)) != 0;

	/* All buffers of a frame except the last are full. */
	if (len == 0 || len > lc->lc_rx_bufsize ||
	    (!eop && len != lc->lc_rx_bufsize) ||
	    sum < E82545_ETH_HDRLEN ||
	    sum > (lc->lc_vnet != NULL ? LEM_RX_OFFLOAD_MAX :
	    E82545_FRAME_MAX) ||
	    (eop && lc->lc_vnet != NULL && !rx_offload(lc, sum))) {
		lc->lc_counter[LEM_C_RX_BAD]++;
		return (false);
	}
	if (eop && (done & BAD) != 0) {
		lc->lc_counter[LEM_C_RX_ERROR]++;
		return (false);
	}
	return (true);
}

/*
 * Pass a slot to the host.  Returns whether a frame ends with it, or the slot
 * is part of none.
 */
static bool
rx_slot(struct lem_core *lc, uint32_t slot, uint64_t done)
{
	bool bad, offload;
	uint64_t ip = done & (STATUS(IXSM) | STATUS(IPCS) | ERROR(IPE));
	uint64_t l4 = done & (STATUS(IXSM) | STATUS(TCPCS) | ERROR(TCPE));
	uint32_t flags;

	MPASS(!lc->lc_rx_empty[slot]);
	/* The header was written before the descriptor, and is read once. */
	if (lc->lc_vnet != NULL && lc->lc_rx_len == 0)
		lc->lc_rx_vnet = lc->lc_vnet[slot];
	bad = lc->lc_rx_skip || !rx_check(lc, done);
	offload = !bad && (done & STATUS(EOP)) != 0 &&
	    (lc->lc_rx_vnet.lv_flags & VNET_PARTIAL) != 0;
	flags = (lc->lc_rx_len == 0 ? LEM_RX_SOP : 0) |
	    ((done & STATUS(EOP)) != 0 ? LEM_RX_EOP : 0) |
	    (offload ? LEM_RX_OFFLOAD : 0) |
	    (ip == STATUS(IPCS) ? LEM_RX_IPSUM : 0) |
	    (l4 == STATUS(TCPCS) ? LEM_RX_L4SUM : 0) |
	    ((done & STATUS(VP)) != 0 ? LEM_RX_VLAN : 0) |
	    (bad ? LEM_RX_BAD : 0);
	if (lem_os_rx(lc, slot, bad ? 0 : (uint16_t)done, flags, done >> 48))
		lc->lc_rx_empty[slot] = true;
	lc->lc_rx_skip = bad && (flags & LEM_RX_EOP) == 0;
	if ((flags & (LEM_RX_EOP | LEM_RX_BAD)) == 0) {
		lc->lc_rx_len += (uint16_t)done;
		return (false);
	}
	lc->lc_rx_len = 0;
	lc->lc_counter[LEM_C_RX_PACKET] += !bad;
	lc->lc_counter[LEM_C_RX_OFFLOAD] += offload;
	return (true);
}

/*
 * Receive up to `budget' frames.  A slot that is part of no frame counts as
 * one, so an adapter that writes invalid descriptors costs no more.
 */
static unsigned int
rx_take(struct lem_core *lc, unsigned int budget)
{
	unsigned int n;
	uint64_t done;
	uint32_t slot;

	for (n = 0; n < budget; ) {
		slot = lc->lc_rx_next;
		done = atomic_load_acq_64(&lc->lc_rxd[slot].rest);
		if ((done & STATUS(DD)) == 0)
			break;
		atomic_store_rel_64(&lc->lc_rxd[slot].rest, 0);
		if (slot == lc->lc_rx_posted) {
			lc->lc_counter[LEM_C_RX_BAD]++;	/* was not posted */
			n++;
			break;
		}
		lc->lc_rx_next = NEXT(slot, lc->lc_nrxd);
		n += rx_slot(lc, slot, done);
		if (rx_missing(lc) > lc->lc_nrxd / 4) {
			rx_refill(lc);
			rx_post(lc);
		}
	}
	return (n);
}

unsigned int
lem_rx(struct lem_core *lc, unsigned int budget)
{
	unsigned int n;

	lem_os_assert_rx(lc);
	if (!USABLE(lc))
		return (0);
	lem_rx_assert(lc);
	n = rx_take(lc, budget);
	rx_refill(lc);
	/* A polling guest need not post a few slots at once. */
	if (!POLLING(lc) || rx_missing(lc) > 1 ||
	    DISTANCE(lc->lc_rx_posted, lc->lc_rx_tail, lc->lc_nrxd) >=
	    lc->lc_nrxd / 8)
		rx_post(lc);
	if (POLLING(lc))
		lc->lc_counter[LEM_C_POLL]++;
	if (n > 0)
		lc->lc_counter[LEM_C_RX_BATCH]++;
	return (n);
}

bool
lem_rx_spin(struct lem_core *lc)
{
	const uint64_t *rest = &lc->lc_rxd[lc->lc_rx_next].rest;
	struct lem_spin *sp = &lc->lc_rx_spin;
	uint32_t n;

	lem_os_assert_rx(lc);
	for (n = 0; n < sp->sp_rounds; n++) {
		if (!lem_os_idle(lc))
			return (false);
		if ((atomic_load_64(rest) & STATUS(DD)) != 0) {
			lem_spin_paid(sp);
			return (true);
		}
	}
	lem_spin_missed(sp);
	return (false);
}

bool
lem_rx_wait(struct lem_core *lc)
{
	lem_os_assert_rx(lc);
	atomic_store_rel_32(&lc->lc_csb->guest_need_rxkick,
	    lem_ask(lc, &lc->lc_rx_asked));
	atomic_thread_fence_seq_cst();
	if ((atomic_load_acq_64(&lc->lc_rxd[lc->lc_rx_next].rest) &
	    STATUS(DD)) == 0)
		return (true);
	atomic_store_rel_32(&lc->lc_csb->guest_need_rxkick, 0);
	return (false);
}
