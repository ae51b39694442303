/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The transmit ring; its drawing is in lem_impl.h.
 *
 * RS is set in the last descriptor before `told' moves, and where a quarter of
 * the ring has gone by without one, so that one DD stands for a batch of
 * packets: lc_tx_last[] of the slot where it begins is the one that has RS, but
 * for the last batch, from lc_tx_batch to the tail.  `told' moves, with one
 * write to TDT,
 *
 *	always		when lem_tx_flush() is called,
 *	LEM_MODE_SC	when it is called and no interrupt is to come that
 *			would do it, or the ring runs short; else from
 *			lem_tx_clean(), which that interrupt brings about,
 *	LEM_MODE_CSB	in memory, and TDT is written if the other side sleeps.
 *
 * An interrupt is to come where TXDW is unmasked and RS is set in what was
 * told; so send combining holds nothing back with LAZY, POLL or CSB.  What is
 * held back is let go when completions are seen, and when none are left to
 * wait for: neither a lost interrupt nor somebody else's lem_tx_clean() can
 * leave it behind.
 *
 * Short of descriptors, everything is told, then the interrupt asked for
 * (LAZY: TXDW unmasked; CSB: guest_need_txkick), then completions are looked
 * for again, since they may have come before the asking.
 */

#include "lem_impl.h"

#define	SEG_MAX		16383		/* bytes */
#define	PACKET_MAX	0xfffff		/* bytes: DTALEN, PAYLEN */
#define	HEADERS_MAX	UINT8_MAX	/* bytes: HDRLEN; TUCSO: */
#define	L4_MAX		(UINT8_MAX - 16)

/* Free descriptors: below this, waiting costs more than telling. */
#define	LOW(lc)		((lc)->lc_ntxd / 4)

#define	FLAGS_TSO	(LEM_TX_TSO4 | LEM_TX_TSO6)
#define	FLAGS_L4	(LEM_TX_TCPSUM | LEM_TX_UDPSUM | FLAGS_TSO)
#define	FLAGS_IP	(LEM_TX_IPSUM | LEM_TX_TSO4)
#define	FLAGS_OFFLOAD	(LEM_TX_IPSUM | FLAGS_L4)

uint32_t
lem_tx_room(const struct lem_core *lc)
{
	return (lc->lc_ntxd - 1 -
	    DISTANCE(lc->lc_tx_head, lc->lc_tx_tail, lc->lc_ntxd));
}

/* End the batch: have the completion of its last packet reported. */
static void
tx_report(struct lem_core *lc)
{
	uint32_t last = (lc->lc_tx_tail - 1) & (lc->lc_ntxd - 1);

	if (lc->lc_tx_batch == lc->lc_tx_tail)
		return;
	lc->lc_txd[last].rest |= E82545_TXD_RS;
	lc->lc_tx_last[lc->lc_tx_batch] = last;
	lc->lc_tx_batch = lc->lc_tx_tail;
}

/* True where the adapter needs TDT to be written. */
static bool
tx_publish(struct lem_core *lc)
{
	if (!CSB_ON(lc))
		return (true);
	lem_os_wmb();
	SHARED_SET(lc->lc_csb->guest_tdt, lc->lc_tx_told);
	lem_os_mb();
	if ((SHARED_GET(lc->lc_csb->host_need_txkick) & 1) == 0)
		return (false);
	/* One kick is enough, however long the host takes to wake up. */
	SHARED_SET(lc->lc_csb->host_need_txkick, 0);
	return (true);
}

void
lem_tx_tell(struct lem_core *lc)
{
	if (lc->lc_tx_told == lc->lc_tx_tail)
		return;
	tx_report(lc);
	lem_os_sync(lc, true);
	lc->lc_tx_told = lc->lc_tx_tail;
	lem_os_probe(lc, flush, lc->lc_tx_untold);
	if (tx_publish(lc)) {
		lem_os_probe(lc, tx__kick, lc->lc_tx_told);
		lem_os_write(lc, E82545_TDT, lc->lc_tx_told);
		lc->lc_counter[LEM_C_TX_KICK]++;
		lc->lc_tx_untold--;
	} else
		lem_os_probe(lc, tx__kick__saved, lc->lc_tx_told);
	lc->lc_counter[LEM_C_TX_KICK_SAVED] += lc->lc_tx_untold;
	lc->lc_counter[LEM_C_TX_COMBINED] += lc->lc_tx_held;
	lc->lc_counter[LEM_C_TX_FLUSH] += lc->lc_tx_held > 0;
	lc->lc_tx_untold = lc->lc_tx_held = 0;
	lc->lc_tx_waiting = lc->lc_mode == LEM_MODE_SC;
}

void
lem_tx_flush(struct lem_core *lc)
{
	if (!USABLE(lc))
		return;
	if (lc->lc_tx_waiting && lem_tx_room(lc) > LOW(lc)) {
		lc->lc_tx_held = lc->lc_tx_untold;
		lem_os_probe(lc, combine, lc->lc_tx_held);
	} else
		lem_tx_tell(lc);
}

unsigned int
lem_tx_drop(struct lem_core *lc, uint32_t end)
{
	unsigned int n = 0;

	for (; lc->lc_tx_head != end; n++) {
		lem_os_tx_done(lc, lc->lc_tx_head);
		lc->lc_tx_head = NEXT(lc->lc_tx_head, lc->lc_ntxd);
	}
	return (n);
}

/* Take back what is done. */
static unsigned int
tx_reclaim(struct lem_core *lc)
{
	struct e82545_desc *txd;
	const uint8_t *status;
	unsigned int n = 0;
	uint32_t head, last;

	lem_os_sync(lc, false);
	while ((head = lc->lc_tx_head) != lc->lc_tx_batch) {
		last = lc->lc_tx_last[head];
		txd = &lc->lc_txd[last];
		/* Read as the adapter writes it, which is this byte alone. */
		status = (const uint8_t *)txd +
		    offsetof(struct e82545_txd_data, status);
		if ((SHARED_GET(*status) & E82545_TXD_DD) == 0)
			break;
		/* Done before the adapter can know of it? */
		if (DISTANCE(head, last, lc->lc_ntxd) >=
		    DISTANCE(head, lc->lc_tx_told, lc->lc_ntxd)) {
			lc->lc_counter[LEM_C_TX_BAD]++;
			SHARED_SET(txd->rest, txd->rest &
			    ~E82545_REST_STATUS(E82545_TXD_DD));
			break;
		}
		lem_os_rmb();
		n += lem_tx_drop(lc, NEXT(last, lc->lc_ntxd));
	}
	if (n > 0) {
		lem_os_probe(lc, clean, n);
		lc->lc_counter[LEM_C_TX_CLEAN]++;
	}
	return (n);
}

/* The host waits for room, or waits no more. */
static void
tx_set_short(struct lem_core *lc, bool on)
{
	SHARED_SET(lc->lc_tx_short, on);
	if (CSB_ON(lc) && !POLLING(lc))
		SHARED_SET(lc->lc_csb->guest_need_txkick, on);
	lem_os_mb();
}

void
lem_tx_wait(struct lem_core *lc, uint32_t need)
{
	if (!USABLE(lc))
		return;
	lem_tx_tell(lc);
	tx_set_short(lc, true);
	if ((lc->lc_mode & ~LEM_MODE_SC) == LEM_MODE_LAZY &&
	    SHARED_GET(lc->lc_intr_on))
		lem_os_write(lc, E82545_IMS, E82545_ICR_TXDW);
	tx_reclaim(lc);
	if (lem_tx_room(lc) >= need)
		tx_set_short(lc, false);
}

unsigned int
lem_tx_clean(struct lem_core *lc)
{
	unsigned int n;

	if (!USABLE(lc))
		return (0);
	n = tx_reclaim(lc);
	if (lc->lc_tx_short) {
		tx_set_short(lc, lem_tx_room(lc) < LOW(lc));
		if (lc->lc_tx_short)
			n += tx_reclaim(lc);
	}
	if (n > 0 || lc->lc_tx_head == lc->lc_tx_batch) {
		lc->lc_tx_waiting = false;
		/* What was not flushed yet waits for lem_tx_flush(). */
		if (lc->lc_tx_held > 0)
			lem_tx_tell(lc);
	}
	return (n);
}

/* Bytes of a packet; 0 for one that cannot be. */
static uint32_t
tx_length(const struct lem_packet *lp)
{
	unsigned int flags = lp->lp_flags, tso = flags & FLAGS_TSO;
	unsigned int headers, i, l4;
	uint32_t len = 0;

	if (lp->lp_nsegs > LEM_TX_MAXSEGS ||
	    (flags & ~(FLAGS_OFFLOAD | LEM_TX_VLAN)) != 0)
		return (0);
	for (i = 0; i < lp->lp_nsegs; i++) {
		if (lp->lp_segs[i].ls_len == 0 ||
		    lp->lp_segs[i].ls_len > SEG_MAX)
			return (0);
		len += lp->lp_segs[i].ls_len;
	}
	if (len < E82545_ETH_HDRLEN ||
	    len > (tso != 0 ? PACKET_MAX : E82545_FRAME_MAX))
		return (0);
	if ((flags & FLAGS_OFFLOAD) == 0)
		return (len);
	l4 = lp->lp_l2len + lp->lp_l3len;
	headers = l4 + lp->lp_l4len;
	/* A byte must hold where each checksum goes, and HDRLEN. */
	if (lp->lp_l2len == 0 || lp->lp_l3len == 0 || headers > len ||
	    l4 > L4_MAX || ((flags & LEM_TX_UDPSUM) != 0 &&
	    (flags & FLAGS_L4) != LEM_TX_UDPSUM))
		return (0);
	return (tso == 0 || (tso != FLAGS_TSO && headers <= HEADERS_MAX &&
	    headers < len && lp->lp_l4len != 0 && lp->lp_mss != 0 &&
	    headers + lp->lp_mss <= E82545_FRAME_MAX) ? len : 0);
}

static void
tx_put(struct lem_core *lc, uint64_t addr, uint64_t rest)
{
	struct e82545_desc *txd = &lc->lc_txd[lc->lc_tx_tail];

	txd->addr = addr;
	txd->rest = rest;
	lc->lc_tx_tail = NEXT(lc->lc_tx_tail, lc->lc_ntxd);
}

/*
 * The context descriptor of a packet with offloads, 3.3.6.  One that stays is
 * sent once; TSO counts PAYLEN down.
 */
static void
tx_context(struct lem_core *lc, const struct lem_packet *lp, uint32_t len)
{
	const bool udp = (lp->lp_flags & LEM_TX_UDPSUM) != 0;
	const bool tso = (lp->lp_flags & FLAGS_TSO) != 0;
	const uint64_t ip = lp->lp_l2len, l4 = ip + lp->lp_l3len;
	const uint64_t headers = l4 + lp->lp_l4len;
	uint64_t addr, rest;

	/* IPCSS, IPCSO, IPCSE; TUCSS, TUCSO. */
	addr = ip | (ip + 10) << 8 | (l4 - 1) << 16 |
	    l4 << 32 | (l4 + (udp ? 6 : 16)) << 40;
	rest = E82545_TXD_DEXT | (udp ? 0 : E82545_TXD_TUCMD_TCP) |
	    ((lp->lp_flags & LEM_TX_TSO6) != 0 ? 0 : E82545_TXD_TUCMD_IP);
	if (tso)
		rest |= E82545_TXD_TUCMD_TSE | (len - headers) |
		    E82545_REST_HDRLEN(headers) | E82545_REST_MSS(lp->lp_mss);
	if (tso || addr != lc->lc_tx_ctx[0] || rest != lc->lc_tx_ctx[1])
		tx_put(lc, addr, rest);
	lc->lc_tx_ctx[0] = addr;
	lc->lc_tx_ctx[1] = rest;
}

/* Put a packet of `len' bytes at the tail, 3.3.7. */
static void
tx_fill(struct lem_core *lc, const struct lem_packet *lp, uint32_t len)
{
	const struct lem_seg *seg = lp->lp_segs;
	const unsigned int flags = lp->lp_flags;
	uint64_t rest = E82545_TXD_IFCS;
	unsigned int i;

	if ((flags & FLAGS_OFFLOAD) != 0) {
		tx_context(lc, lp, len);
		rest |= E82545_TXD_DEXT | E82545_TXD_DTYP_DATA |
		    ((flags & FLAGS_TSO) != 0 ? E82545_TXD_TSE : 0) |
		    ((flags & FLAGS_IP) != 0 ?
		    E82545_REST_POPTS(E82545_TXD_POPTS_IXSM) : 0) |
		    ((flags & FLAGS_L4) != 0 ?
		    E82545_REST_POPTS(E82545_TXD_POPTS_TXSM) : 0);
	}
	if ((flags & LEM_TX_VLAN) != 0)
		rest |= E82545_TXD_VLE | E82545_REST_SPECIAL(lp->lp_vlan);
	for (i = 1; i < lp->lp_nsegs; i++, seg++)
		tx_put(lc, seg->ls_addr, rest | seg->ls_len);
	tx_put(lc, seg->ls_addr, rest | E82545_TXD_EOP | seg->ls_len);
	lc->lc_tx_untold++;
	lc->lc_counter[LEM_C_TX_PACKET]++;
	if (DISTANCE(lc->lc_tx_batch, lc->lc_tx_tail, lc->lc_ntxd) >= LOW(lc))
		tx_report(lc);
}

int
lem_tx(struct lem_core *lc, const struct lem_packet *lp)
{
	uint32_t len, need;

	if (!USABLE(lc))
		return (ENXIO);
	len = tx_length(lp);
	if (len == 0)
		return (EINVAL);
	/* With a context, which may turn out to stay. */
	need = lp->lp_nsegs + ((lp->lp_flags & FLAGS_OFFLOAD) != 0);
	if (lem_tx_room(lc) < need) {
		lem_tx_clean(lc);
		if (lem_tx_room(lc) < need)
			lem_tx_wait(lc, need);
		if (lem_tx_room(lc) < need) {
			lc->lc_counter[LEM_C_TX_FULL]++;
			return (ENOBUFS);
		}
	}
	tx_fill(lc, lp, len);
	return (0);
}

void
lem_tx_init(struct lem_core *lc)
{
	lc->lc_tx_head = lc->lc_tx_tail = lc->lc_tx_told = lc->lc_tx_batch = 0;
	lc->lc_tx_untold = lc->lc_tx_held = 0;
	lc->lc_tx_waiting = lc->lc_tx_short = false;
	lc->lc_tx_ctx[0] = lc->lc_tx_ctx[1] = 0;
}
