/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The transmit ring; see the drawing in lem_impl.h.
 *
 * Batches.  One DD stands for a batch of packets.  RS is set in the last
 * descriptor of a batch, which ends when packets are posted, or when it fills a
 * quarter of the ring.  lc_tx_last[] of a batch's first slot is the slot with
 * RS.  The last batch, from lc_tx_batch to the tail, has none yet.
 *
 * Posting.  Pending packets are posted with one write to TDT:
 *
 *	otherwise	by each lem_tx_flush()
 *	LEM_MODE_SC	by lem_tx_flush() if the ring is short of descriptors or
 *			no interrupt will come; else they are deferred, and
 *			posted by the lem_tx_clean() of that interrupt
 *	SC and POLL	by lem_tx_flush() if they fill a quarter of the ring;
 *			else they are deferred, and posted by the lem_tx_clean()
 *			of the next poll
 *	LEM_MODE_CSB	in the CSB; TDT is written only if the host sleeps
 *
 * An interrupt will come if TXDW is unmasked and RS is set in posted packets;
 * so send combining defers nothing with CSB, nor with LAZY unless the host
 * polls.  Deferred packets are posted when lem_tx_clean() finds completions, or
 * nothing to wait for; by every lem_tx_clean() if the host polls.  Therefore
 * neither a lost interrupt nor another caller's lem_tx_clean() can leave them
 * behind.
 *
 * Reports.  With CSB or LAZY nothing reports a packet that was sent, unless
 * lem_tx_report() asks for that: by guest_txkick_at in the CSB, else by
 * unmasking TXDW.  lc_tx_at is then the end of a batch, from which on three
 * quarters of what was posted are sent; one such request lasts until the head
 * has passed that.
 *
 * Waiting for descriptors.  If the ring is short, all packets are posted, then
 * an interrupt is requested (LAZY: TXDW is unmasked; CSB: guest_need_txkick),
 * then the ring is checked again, because completions may have come before the
 * request.
 */

#include "lem_impl.h"

#define	SEG_MAX		16383		/* bytes */
/* PAYLEN has 20 bits. */
_Static_assert(LEM_TX_MAXSEGS * SEG_MAX <= 0xfffff, "a packet is too long");
#define	HEADERS_MAX	UINT8_MAX	/* bytes: HDRLEN; TUCSO: */
#define	L4_MAX		(UINT8_MAX - 16)

/*
 * Free descriptors: the ring is short if it has less.  Also the descriptors of
 * a batch, and those that wait for a poll.
 */
#define	LOW(lc)		((lc)->lc_ntxd / 4)

/* A bit for each mode in which packets wait after others were posted. */
#define	SC_MODES	(1U << LEM_MODE_SC |				\
	1U << (LEM_MODE_SC | LEM_MODE_POLL) |				\
	1U << (LEM_MODE_SC | LEM_MODE_POLL | LEM_MODE_LAZY))

#define	FLAGS_TSO	(LEM_TX_TSO4 | LEM_TX_TSO6)
#define	FLAGS_L4	(LEM_TX_TCPSUM | LEM_TX_UDPSUM | FLAGS_TSO)
#define	FLAGS_IP	(LEM_TX_IPSUM | LEM_TX_TSO4)
#define	FLAGS_OFFLOAD	(LEM_TX_IPSUM | FLAGS_L4)

uint32_t
lem_tx_avail(const struct lem_core *lc)
{
	lem_os_assert_tx(lc);
	return (lc->lc_ntxd - 1 -
	    DISTANCE(lc->lc_tx_head, lc->lc_tx_tail, lc->lc_ntxd));
}

/* End the batch: set RS in its last descriptor. */
static void
tx_report(struct lem_core *lc)
{
	uint32_t last = (lc->lc_tx_tail - 1) & (lc->lc_ntxd - 1);

	lem_tx_assert(lc);
	if (lc->lc_tx_batch == lc->lc_tx_tail)
		return;
	lc->lc_txd[last].rest |= E82545_TXD_RS;
	lc->lc_tx_last[lc->lc_tx_batch] = last;
	lc->lc_tx_batch = lc->lc_tx_tail;
}

/* Learn that the adapter was awake, or had to be kicked, when a packet came. */
static void
tx_spun(struct lem_core *lc, bool awake)
{
	struct lem_spin *sp = &lc->lc_tx_spin;
	uint32_t old = sp->sp_rounds;

	if (awake)
		lem_spin_paid(sp);
	else
		lem_spin_missed(sp);
	if (sp->sp_rounds != old)
		atomic_store_32(&lc->lc_csb->host_txcycles_lim, sp->sp_rounds);
}

/*
 * Store the tail, which was `old' before, in the CSB.  Returns whether TDT must
 * be written.
 */
static bool
tx_publish(struct lem_core *lc, uint32_t old)
{
	if (!CSB_ON(lc))
		return (true);
	atomic_store_rel_32(&lc->lc_csb->guest_tdt, lc->lc_tx_posted);
	atomic_thread_fence_seq_cst();
	if ((atomic_load_acq_32(&lc->lc_csb->host_need_txkick) & 1) == 0) {
		/* Had it sent all? */
		if (lc->lc_tx_spin.sp_learn &&
		    atomic_load_32(&lc->lc_csb->host_tdh) == old)
			tx_spun(lc, true);
		return (false);
	}
	tx_spun(lc, false);
	/* One kick is enough, even if the host takes long to wake up. */
	atomic_store_rel_32(&lc->lc_csb->host_need_txkick, 0);
	return (true);
}

void
lem_tx_post(struct lem_core *lc)
{
	uint32_t old = lc->lc_tx_posted;

	lem_tx_assert(lc);
	if (old == lc->lc_tx_tail)
		return;
	tx_report(lc);
	MPASS(lc->lc_tx_pending > 0 && lc->lc_tx_batch == lc->lc_tx_tail);
	lc->lc_tx_posted = lc->lc_tx_tail;
	if (tx_publish(lc, old)) {
		lem_os_write(lc, E82545_TDT, lc->lc_tx_posted);
		lc->lc_counter[LEM_C_TX_KICK]++;
		lc->lc_tx_pending--;
	}
	lc->lc_counter[LEM_C_TX_KICK_SAVED] += lc->lc_tx_pending;
	lc->lc_counter[LEM_C_TX_COMBINED] += lc->lc_tx_deferred;
	lc->lc_counter[LEM_C_TX_FLUSH] += lc->lc_tx_deferred > 0;
	lc->lc_tx_pending = lc->lc_tx_deferred = 0;
	lc->lc_tx_waiting = (SC_MODES >> lc->lc_mode & 1) != 0;
}

/* Return whether send combining has room for the pending packets. */
static bool
tx_may_wait(const struct lem_core *lc)
{
	if (SC_POLLS(lc))
		return (DISTANCE(lc->lc_tx_posted, lc->lc_tx_tail,
		    lc->lc_ntxd) < LOW(lc));
	return (lem_tx_avail(lc) > LOW(lc));
}

void
lem_tx_flush(struct lem_core *lc)
{
	lem_os_assert_tx(lc);
	if (!USABLE(lc))
		return;
	if (lc->lc_tx_waiting && tx_may_wait(lc))
		lc->lc_tx_deferred = lc->lc_tx_pending;
	else
		lem_tx_post(lc);
}

unsigned int
lem_tx_drop(struct lem_core *lc, uint32_t end)
{
	unsigned int n = 0;

	lem_os_assert_tx(lc);
	MPASS(DISTANCE(lc->lc_tx_head, end, lc->lc_ntxd) <=
	    DISTANCE(lc->lc_tx_head, lc->lc_tx_tail, lc->lc_ntxd));
	for (; lc->lc_tx_head != end; n++) {
		lem_os_tx_done(lc, lc->lc_tx_head);
		lc->lc_tx_head = NEXT(lc->lc_tx_head, lc->lc_ntxd);
	}
	return (n);
}

/* Reclaim completed batches. */
static unsigned int
tx_reclaim(struct lem_core *lc)
{
	struct e82545_desc *txd;
	const uint8_t *status;
	unsigned int n = 0;
	uint32_t head, last;

	lem_tx_assert(lc);
	while ((head = lc->lc_tx_head) != lc->lc_tx_batch) {
		last = lc->lc_tx_last[head];
		txd = &lc->lc_txd[last];
		/* The adapter writes this byte only. */
		status = (const uint8_t *)txd +
		    offsetof(struct e82545_txd_data, status);
		if ((atomic_load_acq_8(status) & E82545_TXD_DD) == 0)
			break;
		/* Completed before it was posted? */
		if (DISTANCE(head, last, lc->lc_ntxd) >=
		    DISTANCE(head, lc->lc_tx_posted, lc->lc_ntxd)) {
			lc->lc_counter[LEM_C_TX_BAD]++;
			atomic_store_rel_64(&txd->rest, txd->rest &
			    ~E82545_REST_STATUS(E82545_TXD_DD));
			break;
		}
		n += lem_tx_drop(lc, NEXT(last, lc->lc_ntxd));
	}
	if (n > 0)
		lc->lc_counter[LEM_C_TX_CLEAN]++;
	return (n);
}

/*
 * Reports.
 */

/*
 * Return whether the adapter has been asked for a report, and by what the driver
 * has seen has not got there.
 */
static bool
tx_asked(const struct lem_core *lc)
{
	const uint32_t at = DISTANCE(lc->lc_tx_head, lc->lc_tx_at, lc->lc_ntxd);

	return (lc->lc_tx_at != NET_PARAVIRT_NONE && at > 0 &&
	    at <= DISTANCE(lc->lc_tx_head, lc->lc_tx_posted, lc->lc_ntxd));
}

/* Ask for a report at `at', or for none. */
static void
tx_ask_at(struct lem_core *lc, uint32_t at)
{
	atomic_store_rel_32(&lc->lc_tx_at, at);
	if (CSB_ON(lc))
		atomic_store_rel_32(&lc->lc_csb->guest_txkick_at, at);
	atomic_thread_fence_seq_cst();
}

/*
 * Return the end of the batch with which three quarters of the posted
 * descriptors are sent, or NET_PARAVIRT_NONE if there are none.
 */
static uint32_t
tx_report_at(const struct lem_core *lc)
{
	const uint32_t n = lc->lc_ntxd, head = lc->lc_tx_head;
	const uint32_t posted = DISTANCE(head, lc->lc_tx_posted, n);
	uint32_t at = head;

	while (DISTANCE(head, at, n) < posted - posted / 4)
		at = NEXT(lc->lc_tx_last[at], n);
	return (posted > 0 ? at : NET_PARAVIRT_NONE);
}

/* Unmask TXDW, if no interrupt is being handled: lem_intr_enable() does then. */
static void
tx_unmask(struct lem_core *lc)
{
	if ((lc->lc_mode & ~LEM_MODE_SC) == LEM_MODE_LAZY &&
	    atomic_load_acq_32(&lc->lc_intr_on) != 0)
		lem_os_write(lc, E82545_IMS, CAUSES_TX(lc));
}

void
lem_tx_report(struct lem_core *lc)
{
	lem_os_assert_tx(lc);
	if (!USABLE(lc) || POLLING(lc) ||
	    (lc->lc_mode & (LEM_MODE_CSB | LEM_MODE_LAZY)) == 0)
		return;
	/* The next packet that is sent is reported then. */
	if (lc->lc_tx_short != 0)
		return;
	/* What was sent before the adapter saw the request is not reported. */
	while (!tx_asked(lc)) {
		tx_ask_at(lc, tx_report_at(lc));
		if (lc->lc_tx_at == NET_PARAVIRT_NONE)
			return;
		tx_unmask(lc);
		tx_reclaim(lc);
	}
}

/* Note that the host waits for descriptors, or no longer waits. */
static void
tx_set_short(struct lem_core *lc, bool on)
{
	atomic_store_rel_32(&lc->lc_tx_short, on);
	if (CSB_ON(lc) && !POLLING(lc))
		atomic_store_rel_32(&lc->lc_csb->guest_need_txkick,
		    on ? lem_ask(lc, &lc->lc_tx_asked) : 0);
	atomic_thread_fence_seq_cst();
}

void
lem_tx_wait(struct lem_core *lc, uint32_t need)
{
	lem_os_assert_tx(lc);
	if (!USABLE(lc))
		return;
	lem_tx_post(lc);
	lc->lc_tx_want = need < LOW(lc) ? LOW(lc) :
	    need < lc->lc_ntxd ? need : lc->lc_ntxd - 1;
	tx_set_short(lc, true);
	tx_unmask(lc);
	tx_reclaim(lc);
	if (lem_tx_avail(lc) >= need)
		tx_set_short(lc, false);
}

unsigned int
lem_tx_clean(struct lem_core *lc)
{
	unsigned int n;

	lem_os_assert_tx(lc);
	if (!USABLE(lc))
		return (0);
	n = tx_reclaim(lc);
	if (lc->lc_tx_short != 0) {
		tx_set_short(lc, lem_tx_avail(lc) < lc->lc_tx_want);
		if (lc->lc_tx_short != 0)
			n += tx_reclaim(lc);
	}
	if (lc->lc_tx_at != NET_PARAVIRT_NONE && !tx_asked(lc))
		tx_ask_at(lc, NET_PARAVIRT_NONE);
	if (n > 0 || lc->lc_tx_head == lc->lc_tx_posted || SC_POLLS(lc)) {
		lc->lc_tx_waiting = SC_POLLS(lc);
		/* Other pending packets wait for lem_tx_flush(). */
		if (lc->lc_tx_deferred > 0)
			lem_tx_post(lc);
	}
	return (n);
}

/* Return the length of a packet in bytes; 0 if the packet is invalid. */
static uint32_t
tx_length(const struct lem_packet *lp)
{
	unsigned int flags = lp->lpk_flags, tso = flags & FLAGS_TSO;
	unsigned int headers, i, l4;
	uint32_t len = 0;

	if (lp->lpk_nsegs > LEM_TX_MAXSEGS ||
	    (flags & ~(FLAGS_OFFLOAD | LEM_TX_VLAN)) != 0)
		return (0);
	for (i = 0; i < lp->lpk_nsegs; i++) {
		if (lp->lpk_segs[i].ls_len == 0 ||
		    lp->lpk_segs[i].ls_len > SEG_MAX)
			return (0);
		len += lp->lpk_segs[i].ls_len;
	}
	if (len < E82545_ETH_HDRLEN || (tso == 0 && len > E82545_FRAME_MAX))
		return (0);
	if ((flags & FLAGS_OFFLOAD) == 0)
		return (len);
	l4 = lp->lpk_l2len + lp->lpk_l3len;
	headers = l4 + lp->lpk_l4len;
	/* The offsets of the checksums, and HDRLEN, have one byte each. */
	if (lp->lpk_l2len == 0 || lp->lpk_l3len == 0 || headers > len ||
	    l4 > L4_MAX || ((flags & LEM_TX_UDPSUM) != 0 &&
	    (flags & FLAGS_L4) != LEM_TX_UDPSUM))
		return (0);
	return (tso == 0 || (tso != FLAGS_TSO && headers <= HEADERS_MAX &&
	    headers < len && lp->lpk_l4len != 0 && lp->lpk_mss != 0 &&
	    headers + lp->lpk_mss <= E82545_FRAME_MAX) ? len : 0);
}

static void
tx_put(struct lem_core *lc, uint64_t addr, uint64_t rest)
{
	struct e82545_desc *txd = &lc->lc_txd[lc->lc_tx_tail];

	MPASS(NEXT(lc->lc_tx_tail, lc->lc_ntxd) != lc->lc_tx_head);
	txd->addr = addr;
	txd->rest = rest;
	lc->lc_tx_tail = NEXT(lc->lc_tx_tail, lc->lc_ntxd);
}

/*
 * Put the context descriptor of a packet with offloads, 3.3.6.  A context stays
 * in force, and is put only if it differs from the last one, except for TSO,
 * which counts PAYLEN down.
 */
static void
tx_context(struct lem_core *lc, const struct lem_packet *lp, uint32_t len)
{
	const bool udp = (lp->lpk_flags & LEM_TX_UDPSUM) != 0;
	const bool tso = (lp->lpk_flags & FLAGS_TSO) != 0;
	const uint64_t ip = lp->lpk_l2len, l4 = ip + lp->lpk_l3len;
	const uint64_t headers = l4 + lp->lpk_l4len;
	uint64_t addr, rest;

	/* IPCSS, IPCSO, IPCSE; TUCSS, TUCSO. */
	addr = ip | (ip + 10) << 8 | (l4 - 1) << 16 |
	    l4 << 32 | (l4 + (udp ? 6 : 16)) << 40;
	rest = E82545_TXD_DEXT | (udp ? 0 : E82545_TXD_TUCMD_TCP) |
	    ((lp->lpk_flags & LEM_TX_TSO6) != 0 ? 0 : E82545_TXD_TUCMD_IP);
	if (tso)
		rest |= E82545_TXD_TUCMD_TSE | (len - headers) |
		    E82545_REST_HDRLEN(headers) | E82545_REST_MSS(lp->lpk_mss);
	if (tso || addr != lc->lc_tx_ctx[0] || rest != lc->lc_tx_ctx[1])
		tx_put(lc, addr, rest);
	lc->lc_tx_ctx[0] = addr;
	lc->lc_tx_ctx[1] = rest;
}

/* Put a packet of `len' bytes at the tail, 3.3.7. */
static void
tx_fill(struct lem_core *lc, const struct lem_packet *lp, uint32_t len)
{
	const struct lem_seg *seg = lp->lpk_segs;
	const unsigned int flags = lp->lpk_flags;
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
		rest |= E82545_TXD_VLE | E82545_REST_SPECIAL(lp->lpk_vlan);
	for (i = 1; i < lp->lpk_nsegs; i++, seg++)
		tx_put(lc, seg->ls_addr, rest | seg->ls_len);
	tx_put(lc, seg->ls_addr, rest | E82545_TXD_EOP | seg->ls_len);
	lc->lc_tx_pending++;
	lc->lc_counter[LEM_C_TX_PACKET]++;
	if (DISTANCE(lc->lc_tx_batch, lc->lc_tx_tail, lc->lc_ntxd) >= LOW(lc))
		tx_report(lc);
}

/* See that `need' descriptors are free. */
static int
tx_space(struct lem_core *lc, uint32_t need)
{
	if (lem_tx_avail(lc) < need) {
		lem_tx_clean(lc);
		if (lem_tx_avail(lc) < need)
			lem_tx_wait(lc, need);
		if (lem_tx_avail(lc) < need) {
			lc->lc_counter[LEM_C_TX_FULL]++;
			return (ENOBUFS);
		}
	}
	return (0);
}

int
lem_tx(struct lem_core *lc, const struct lem_packet *lp)
{
	uint32_t len;
	int error;

	lem_os_assert_tx(lc);
	if (!USABLE(lc))
		return (ENXIO);
	len = tx_length(lp);
	if (len == 0)
		return (EINVAL);
	/* Including a context descriptor, which may turn out not to be sent. */
	error = tx_space(lc, lp->lpk_nsegs +
	    ((lp->lpk_flags & FLAGS_OFFLOAD) != 0));
	if (error == 0)
		tx_fill(lc, lp, len);
	return (error);
}

void
lem_tx_init(struct lem_core *lc)
{
	lem_os_assert_tx(lc);
	lc->lc_tx_head = lc->lc_tx_tail = 0;
	lc->lc_tx_posted = lc->lc_tx_batch = 0;
	lc->lc_tx_pending = lc->lc_tx_deferred = 0;
	lc->lc_tx_waiting = SC_POLLS(lc);
	lc->lc_tx_short = 0;
	lc->lc_tx_want = LOW(lc);
	lc->lc_tx_ctx[0] = lc->lc_tx_ctx[1] = 0;
	lc->lc_tx_at = NET_PARAVIRT_NONE;
}
