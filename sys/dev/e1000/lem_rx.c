/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The receive ring; its drawing is in lem_impl.h.
 *
 * Slots are given back in the order of the ring, so one that has no buffer
 * stops those behind it until there is one.
 */

#include "lem_impl.h"

/* What the adapter writes, 3.2.3: the descriptor's second word. */
#define	STATUS(bits)	E82545_REST_STATUS(E82545_RXD_##bits)
#define	ERROR(bit)	E82545_REST_ERRORS(E82545_RXD_ERR_##bit)
#define	BAD	(ERROR(CE) | ERROR(SE) | ERROR(SEQ) | ERROR(CXE) | ERROR(RXE))

/* Slots that were taken and not given back. */
static uint32_t
rx_owed(const struct lem_core *lc)
{
	return (DISTANCE(lc->lc_rx_tail, lc->lc_rx_next, lc->lc_nrxd));
}

/* True where the adapter needs RDT to be written. */
static bool
rx_publish(struct lem_core *lc, uint32_t old)
{
	uint32_t at;

	if (!CSB_ON(lc))
		return (true);
	lem_os_wmb();
	SHARED_SET(lc->lc_csb->guest_rdt, lc->lc_rx_told);
	lem_os_mb();
	at = SHARED_GET(lc->lc_csb->host_rxkick_at);
	if (at == NET_PARAVIRT_NONE)
		return (false);
	if (at >= lc->lc_nrxd) {
		/* It waits for what cannot come. */
		lc->lc_counter[LEM_C_RX_BAD]++;
		return (true);
	}
	/* No buffer for the next slot: it may be long before we get there. */
	if (rx_owed(lc) > 1)
		return (true);
	/* Reached, or gone past, by this step? */
	at = DISTANCE(old, at, lc->lc_nrxd);
	return (at > 0 && at <= DISTANCE(old, lc->lc_rx_told, lc->lc_nrxd));
}

static void
rx_tell(struct lem_core *lc)
{
	uint32_t old = lc->lc_rx_told;
	uint32_t n = DISTANCE(old, lc->lc_rx_tail, lc->lc_nrxd);

	if (n == 0)
		return;
	lem_os_sync(lc, true);
	lc->lc_rx_told = lc->lc_rx_tail;
	if (rx_publish(lc, old)) {
		lem_os_probe(lc, rx__kick, lc->lc_rx_told);
		lem_os_write(lc, E82545_RDT, lc->lc_rx_told);
		lc->lc_counter[LEM_C_RX_KICK]++;
		n--;
	} else
		lem_os_probe(lc, rx__kick__saved, lc->lc_rx_told);
	lc->lc_counter[LEM_C_RX_KICK_SAVED] += n;
}

/* Give slots back, all but one: head and tail alike mean none. */
static void
rx_refill(struct lem_core *lc)
{
	uint64_t addr;
	uint32_t n = lc->lc_nrxd, slot;

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

	for (slot = 0; slot < lc->lc_nrxd; slot++) {
		SHARED_SET(lc->lc_rxd[slot].rest, 0);
		lc->lc_rx_empty[slot] = true;
	}
	lc->lc_rx_next = lc->lc_rx_tail = lc->lc_rx_len = 0;
	lc->lc_rx_skip = false;
	rx_refill(lc);
	lc->lc_rx_told = lc->lc_rx_tail;
	lem_os_sync(lc, true);
	return (lc->lc_rx_tail != 0);
}

/* Whether a descriptor that was written back is as it should be. */
static bool
rx_check(struct lem_core *lc, uint64_t done)
{
	uint32_t len = (uint16_t)done, sum = lc->lc_rx_len + len;
	bool eop = (done & STATUS(EOP)) != 0;

	/* A frame is cut only where a buffer ends. */
	if (len == 0 || len > lc->lc_rx_bufsize ||
	    (!eop && len != lc->lc_rx_bufsize) ||
	    sum < E82545_ETH_HDRLEN || sum > E82545_FRAME_MAX) {
		lc->lc_counter[LEM_C_RX_BAD]++;
		return (false);
	}
	if (eop && (done & BAD) != 0) {
		lc->lc_counter[LEM_C_RX_ERROR]++;
		return (false);
	}
	return (true);
}

/* Hand a slot to the host.  True at the end of a frame, and of none. */
static bool
rx_slot(struct lem_core *lc, uint32_t slot, uint64_t done)
{
	bool bad = lc->lc_rx_skip || !rx_check(lc, done);
	uint64_t ip = done & (STATUS(IXSM) | STATUS(IPCS) | ERROR(IPE));
	uint64_t l4 = done & (STATUS(IXSM) | STATUS(TCPCS) | ERROR(TCPE));
	uint32_t flags;

	flags = (lc->lc_rx_len == 0 ? LEM_RX_SOP : 0) |
	    ((done & STATUS(EOP)) != 0 ? LEM_RX_EOP : 0) |
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
	return (true);
}

/*
 * Take what came back; at most `budget' of frames and of pieces that belong
 * to none, so that an adapter that writes nonsense costs no more than others.
 */
static unsigned int
rx_take(struct lem_core *lc, unsigned int budget)
{
	unsigned int n;
	uint64_t done;
	uint32_t slot;

	for (n = 0; n < budget; ) {
		slot = lc->lc_rx_next;
		done = SHARED_GET(lc->lc_rxd[slot].rest);
		if ((done & STATUS(DD)) == 0)
			break;
		SHARED_SET(lc->lc_rxd[slot].rest, 0);
		if (slot == lc->lc_rx_told) {
			lc->lc_counter[LEM_C_RX_BAD]++;	/* not the adapter's */
			n++;
			break;
		}
		lem_os_rmb();
		lc->lc_rx_next = NEXT(slot, lc->lc_nrxd);
		n += rx_slot(lc, slot, done);
		if (rx_owed(lc) > lc->lc_nrxd / 4) {
			rx_refill(lc);
			rx_tell(lc);
		}
	}
	return (n);
}

unsigned int
lem_rx(struct lem_core *lc, unsigned int budget)
{
	const bool kicks = CSB_ON(lc) && !POLLING(lc);
	unsigned int n = 0;

	if (!USABLE(lc))
		return (0);
	for (;;) {
		if (kicks)
			SHARED_SET(lc->lc_csb->guest_need_rxkick, 0);
		lem_os_sync(lc, false);
		n += rx_take(lc, budget - n);
		rx_refill(lc);
		/* Polling, a few at a time can wait. */
		if (!POLLING(lc) || rx_owed(lc) > 1 ||
		    DISTANCE(lc->lc_rx_told, lc->lc_rx_tail, lc->lc_nrxd) >=
		    lc->lc_nrxd / 8)
			rx_tell(lc);
		if (!kicks || n >= budget)
			break;
		SHARED_SET(lc->lc_csb->guest_need_rxkick, 1);
		lem_os_mb();
		lem_os_sync(lc, false);
		if ((SHARED_GET(lc->lc_rxd[lc->lc_rx_next].rest) &
		    STATUS(DD)) == 0)
			break;
	}
	if (POLLING(lc))
		lem_os_probe(lc, poll, n);
	if (n > 0) {
		lem_os_probe(lc, receive, n);
		lc->lc_counter[LEM_C_RX_BATCH]++;
	}
	return (n);
}
