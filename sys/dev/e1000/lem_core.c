/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * An 8254x driver without an operating system; see lem_core.h.
 *
 * What is dear under a hypervisor is not work but telling: each register
 * access and each interrupt is an exit.  So both rings keep what was done
 * apart from what the adapter was told of:
 *
 *	TX   head            told            tail
 *	  ----+---------------+---------------+----
 *	      | the adapter's | not told yet  |	     free, one slot always
 *	  ----+---------------+---------------+----
 *	RX   tail            next            told (= tail after a refill)
 *	  ----+---------------+---------------+----
 *	      | taken, to be  | the adapter's |
 *	      | given back    |		      |
 *
 * TX.  RS is set in the last descriptor before `told' moves, and where a
 * quarter of the ring has gone by without one, so that one DD stands for many
 * packets; lc_tx_rs[] lists these slots.  `told' moves, with one write to TDT,
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
 *
 * RX.  Slots are given back in the order of the ring, so one that has no
 * buffer stops those behind it until there is one.
 *
 * Whatever the adapter writes (descriptors, the CSB's host part) is read once
 * and then checked; it is never an index.  8254x SDM sections: lem_reg.h.
 */

#ifdef _KERNEL
#include <sys/errno.h>
#else
#include <errno.h>
#endif

#include "lem_core.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
    "hypervisors with an 8254x run on little endian machines");

#define	ALL_ONES	0xffffffff	/* what a device that is gone reads */
#define	RESET_TRIES	10		/* of a millisecond */
#define	HEADERS		18		/* bytes: Ethernet, VLAN tag */
#define	FRAME_MIN	14		/* bytes */
#define	SEG_MAX		16383		/* bytes */
#define	PACKET_MAX	0xfffff		/* bytes: DTALEN, PAYLEN */
#define	CSB_TXCYCLES	256		/* host's empty rounds before sleep */

#define	MODE_ALL							\
	(LEM_MODE_SC | LEM_MODE_CSB | LEM_MODE_LAZY | LEM_MODE_POLL)
#define	CAUSES_RX	(LEM_ICR_RXT0 | LEM_ICR_RXDMT0 | LEM_ICR_RXO)
#define	CAUSES_LINK	(LEM_ICR_LSC | LEM_ICR_RXSEQ)
#define	FLAGS_TSO	(LEM_TX_TSO4 | LEM_TX_TSO6)
#define	FLAGS_L4	(LEM_TX_TCPSUM | LEM_TX_UDPSUM | FLAGS_TSO)
#define	FLAGS_OFFLOAD	(LEM_TX_IPSUM | FLAGS_L4)
#define	FLAGS_ALL	(FLAGS_OFFLOAD | LEM_TX_VLAN)

/*
 * Memory that the adapter writes, too.
 */
#define	SHARED_GET(field)	__atomic_load_n(&(field), __ATOMIC_RELAXED)
#define	SHARED_SET(field, value)					\
	__atomic_store_n(&(field), (value), __ATOMIC_RELAXED)

static void
give_up(struct lem_core *lc)
{
	if (!lc->lc_dead) {
		lc->lc_dead = true;
		lc->lc_stats.dead++;
	}
}

/* No register that is read here has all bits set in a live adapter. */
static uint32_t
reg_read(struct lem_core *lc, uint32_t reg)
{
	uint32_t value;

	value = lem_os_read(lc, reg);
	if (value == ALL_ONES)
		give_up(lc);
	return (value);
}

static bool
usable(const struct lem_core *lc)
{
	return (lc->lc_running && !lc->lc_dead);
}

static bool
csb_on(const struct lem_core *lc)
{
	return ((lc->lc_mode & LEM_MODE_CSB) != 0);
}

/* The adapter has one, and the host brought the page. */
static bool
csb_there(const struct lem_core *lc)
{
	return (lc->lc_has_csb && lc->lc_csb != NULL);
}

static bool
polling(const struct lem_core *lc)
{
	return ((lc->lc_mode & LEM_MODE_POLL) != 0);
}

/* Slots from `a' on to `b', in a ring of `n'. */
static uint32_t
distance(uint32_t a, uint32_t b, uint32_t n)
{
	return (b >= a ? b - a : b + n - a);
}

static uint32_t
next(uint32_t slot, uint32_t n)
{
	return (slot + 1 == n ? 0 : slot + 1);
}

/*
 * Reset, identity.
 */

static int
reset(struct lem_core *lc)
{
	uint32_t ctrl;
	int i;

	lc->lc_dead = false;
	SHARED_SET(lc->lc_intr_on, false);
	SHARED_SET(lc->lc_unread, false);
	lem_os_write(lc, LEM_IMC, ALL_ONES);
	lem_os_write(lc, LEM_RCTL, 0);
	lem_os_write(lc, LEM_TCTL, LEM_TCTL_PSP);
	if (lc->lc_has_csb) {
		/* A reset leaves it, and who placed it may be long gone. */
		lem_os_write(lc, LEM_CSBAH, 0);
		lem_os_write(lc, LEM_CSBAL, 0);
	}
	ctrl = reg_read(lc, LEM_CTRL);
	if (lc->lc_dead)
		return (ENXIO);
	lem_os_write(lc, LEM_CTRL, ctrl | LEM_CTRL_RST);
	i = 0;
	do {
		lem_os_delay(lc, 1000);
		ctrl = reg_read(lc, LEM_CTRL);
	} while (!lc->lc_dead && (ctrl & LEM_CTRL_RST) != 0 &&
	    ++i < RESET_TRIES);
	if ((ctrl & LEM_CTRL_RST) != 0)
		give_up(lc);
	lem_os_write(lc, LEM_IMC, ALL_ONES);
	(void)reg_read(lc, LEM_ICR);
	return (lc->lc_dead ? ENXIO : 0);
}

/* Reset loads the address from the EEPROM into the first filter, 13.5.2. */
int
lem_attach(struct lem_core *lc, uint8_t mac[6])
{
	uint64_t addr;
	uint32_t high;
	int i;

	if (reset(lc) != 0)
		return (ENXIO);
	addr = reg_read(lc, LEM_RAL(0));
	high = reg_read(lc, LEM_RAH(0));
	if (lc->lc_dead)
		return (ENXIO);
	addr |= (uint64_t)(high & 0xffff) << 32;
	for (i = 0; i < 6; i++)
		mac[i] = addr >> 8 * i;
	return ((high & LEM_RAH_AV) != 0 && addr != 0 && (mac[0] & 1) == 0 ?
	    0 : EIO);
}

/*
 * Interrupts.
 */

/* What is to be unmasked in the mode as it is. */
static uint32_t
wanted_causes(const struct lem_core *lc)
{
	uint32_t causes;

	if (polling(lc))
		return (0);
	causes = CAUSES_RX | CAUSES_LINK;
	if ((lc->lc_mode & LEM_MODE_LAZY) == 0 || csb_on(lc) ||
	    SHARED_GET(lc->lc_tx_short))
		causes |= LEM_ICR_TXDW;
	return (causes);
}

/* Read and clear the causes. */
static uint32_t
causes_read(struct lem_core *lc)
{
	uint32_t bits, icr;

	icr = reg_read(lc, LEM_ICR);
	if (lc->lc_dead)
		return (0);
	bits = 0;
	if ((icr & CAUSES_RX) != 0)
		bits |= LEM_INTR_RX;
	if ((icr & LEM_ICR_TXDW) != 0)
		bits |= LEM_INTR_TX;
	if ((icr & CAUSES_LINK) != 0)
		bits |= LEM_INTR_LINK;
	return (bits);
}

/*
 * With the CSB, the need-kick flags keep interrupts away until the rings have
 * been looked at, and the masks stay as they are: two exits less.  The one that
 * reads the causes can wait where no line has to be lowered.
 */
uint32_t
lem_intr(struct lem_core *lc)
{
	uint32_t bits;

	if (!usable(lc) || polling(lc))
		return (0);
	if (csb_on(lc) && lc->lc_msi) {
		SHARED_SET(lc->lc_unread, true);
		bits = LEM_INTR_RX | LEM_INTR_TX;
	} else
		bits = causes_read(lc);
	if (bits == 0)
		return (0);
	lc->lc_stats.interrupts++;
	if (csb_on(lc)) {
		if ((bits & LEM_INTR_RX) != 0)
			SHARED_SET(lc->lc_csb->guest_need_rxkick, 0);
		if ((bits & LEM_INTR_TX) != 0)
			SHARED_SET(lc->lc_csb->guest_need_txkick, 0);
	} else
		lem_intr_disable(lc);
	return (bits);
}

/* Pairs with tx_wait(): lc_intr_on is set before lc_tx_short is read. */
static void
intr_on(struct lem_core *lc)
{
	SHARED_SET(lc->lc_intr_on, true);
	lem_os_mb();
	lem_os_write(lc, LEM_IMS, wanted_causes(lc));
}

uint32_t
lem_intr_enable(struct lem_core *lc)
{
	if (!usable(lc) || polling(lc))
		return (0);
	if (SHARED_GET(lc->lc_unread)) {
		SHARED_SET(lc->lc_unread, false);
		return (causes_read(lc));
	}
	if (!SHARED_GET(lc->lc_intr_on))
		intr_on(lc);
	return (0);
}

void
lem_intr_disable(struct lem_core *lc)
{
	SHARED_SET(lc->lc_intr_on, false);
	lem_os_write(lc, LEM_IMC, ALL_ONES);
}

int
lem_set_itr(struct lem_core *lc, uint32_t itr_256ns)
{
	if (itr_256ns > LEM_ITR_MAX)
		return (EINVAL);
	lc->lc_itr_256ns = itr_256ns;
	if (usable(lc))
		lem_os_write(lc, LEM_ITR, itr_256ns);
	return (0);
}

/*
 * Transmit.
 */

uint32_t
lem_tx_room(const struct lem_core *lc)
{
	return (lc->lc_ntxd - 1 -
	    distance(lc->lc_tx_head, lc->lc_tx_tail, lc->lc_ntxd));
}

bool
lem_tx_idle(const struct lem_core *lc)
{
	return (lc->lc_tx_head == lc->lc_tx_tail);
}

/* Below this, waiting costs more than telling. */
static uint32_t
tx_low(const struct lem_core *lc)
{
	return (lc->lc_ntxd / 4);
}

/* Have the completion of the last packet reported. */
static void
tx_report(struct lem_core *lc)
{
	uint32_t slot;

	if (lc->lc_tx_since_rs == 0)
		return;
	slot = (lc->lc_tx_tail == 0 ? lc->lc_ntxd : lc->lc_tx_tail) - 1;
	lc->lc_txd[slot].lower |= LEM_TXD_RS;
	lc->lc_tx_rs[lc->lc_tx_rs_tail++ % LEM_RING_MAX] = slot;
	lc->lc_tx_since_rs = 0;
}

/* True where the adapter needs TDT to be written. */
static bool
tx_publish(struct lem_core *lc)
{
	struct paravirt_csb *csb = lc->lc_csb;

	if (!csb_on(lc))
		return (true);
	lem_os_wmb();
	SHARED_SET(csb->guest_tdt, lc->lc_tx_told);
	lem_os_mb();
	if ((SHARED_GET(csb->host_need_txkick) & 1) == 0)
		return (false);
	/* One kick is enough, however long the host takes to wake up. */
	SHARED_SET(csb->host_need_txkick, 0);
	return (true);
}

/* Tell the adapter of all packets. */
static void
tx_tell(struct lem_core *lc)
{
	if (lc->lc_tx_told == lc->lc_tx_tail)
		return;
	tx_report(lc);
	lem_os_txring_sync(lc, true);
	lc->lc_tx_told = lc->lc_tx_tail;
	if (tx_publish(lc)) {
		lem_os_write(lc, LEM_TDT, lc->lc_tx_told);
		lc->lc_stats.tx_kicks++;
		lc->lc_tx_untold--;
	}
	lc->lc_stats.tx_kicks_saved += lc->lc_tx_untold;
	lc->lc_tx_untold = lc->lc_tx_held = 0;
	lc->lc_tx_waiting = (lc->lc_mode & MODE_ALL) == LEM_MODE_SC;
}

void
lem_tx_flush(struct lem_core *lc)
{
	if (!usable(lc))
		return;
	if (lc->lc_tx_waiting && lem_tx_room(lc) > tx_low(lc)) {
		lc->lc_stats.tx_combined += lc->lc_tx_untold - lc->lc_tx_held;
		lc->lc_tx_held = lc->lc_tx_untold;
		return;
	}
	tx_tell(lc);
}

/* Drop the packets up to and with the one that ends in `last'. */
static unsigned int
tx_drop(struct lem_core *lc, uint32_t last)
{
	unsigned int n;
	uint32_t eop;

	n = 0;
	do {
		eop = lc->lc_tx_eop[lc->lc_tx_head];
		lc->lc_tx_head = next(eop, lc->lc_ntxd);
		lem_os_tx_done(lc, eop);
		n++;
	} while (eop != last);
	return (n);
}

/* Take back what is done. */
static unsigned int
tx_reclaim(struct lem_core *lc)
{
	unsigned int n;
	uint32_t slot;

	n = 0;
	lem_os_txring_sync(lc, false);
	while (lc->lc_tx_rs_head != lc->lc_tx_rs_tail) {
		slot = lc->lc_tx_rs[lc->lc_tx_rs_head % LEM_RING_MAX];
		if ((SHARED_GET(lc->lc_txd[slot].upper) & LEM_TXD_DD) == 0)
			break;
		/* Done before the adapter can know of it? */
		if (distance(lc->lc_tx_head, slot, lc->lc_ntxd) >=
		    distance(lc->lc_tx_head, lc->lc_tx_told, lc->lc_ntxd)) {
			lc->lc_stats.tx_bad++;
			SHARED_SET(lc->lc_txd[slot].upper,
			    lc->lc_txd[slot].upper & ~LEM_TXD_DD);
			break;
		}
		lem_os_rmb();
		lc->lc_tx_rs_head++;
		n += tx_drop(lc, slot);
	}
	if (n > 0)
		lc->lc_stats.tx_cleans++;
	return (n);
}

/* The host waits for room, or waits no more. */
static void
tx_set_short(struct lem_core *lc, bool on)
{
	SHARED_SET(lc->lc_tx_short, on);
	if (csb_on(lc) && !polling(lc))
		SHARED_SET(lc->lc_csb->guest_need_txkick, on);
	lem_os_mb();
}

/* Ask for an interrupt when there is room, and look again. */
static void
tx_wait(struct lem_core *lc, uint32_t need)
{
	tx_tell(lc);
	tx_set_short(lc, true);
	if ((lc->lc_mode & MODE_ALL & ~LEM_MODE_SC) == LEM_MODE_LAZY &&
	    SHARED_GET(lc->lc_intr_on))
		lem_os_write(lc, LEM_IMS, LEM_ICR_TXDW);
	tx_reclaim(lc);
	if (lem_tx_room(lc) >= need)
		tx_set_short(lc, false);
}

void
lem_tx_wait(struct lem_core *lc)
{
	if (usable(lc))
		tx_wait(lc, tx_low(lc));
}

unsigned int
lem_tx_clean(struct lem_core *lc)
{
	unsigned int n;
	bool held;

	if (!usable(lc))
		return (0);
	n = tx_reclaim(lc);
	if (lc->lc_tx_short) {
		tx_set_short(lc, lem_tx_room(lc) < tx_low(lc));
		if (lc->lc_tx_short)
			n += tx_reclaim(lc);
	}
	if (n > 0 || lc->lc_tx_rs_head == lc->lc_tx_rs_tail) {
		lc->lc_tx_waiting = false;
		held = lc->lc_tx_held > 0;
		tx_tell(lc);
		if (held)
			lc->lc_stats.tx_flushes++;
	}
	return (n);
}

/* EINVAL: what is wrong with a packet. */
static int
tx_check(const struct lem_packet *lp)
{
	unsigned int headers, i;
	uint32_t len;

	if (lp->lp_nsegs == 0 || lp->lp_nsegs > LEM_TX_MAXSEGS ||
	    lp->lp_len < FRAME_MIN || lp->lp_len > PACKET_MAX ||
	    (lp->lp_flags & ~FLAGS_ALL) != 0)
		return (EINVAL);
	len = 0;
	for (i = 0; i < lp->lp_nsegs; i++) {
		if (lp->lp_segs[i].ls_len == 0 ||
		    lp->lp_segs[i].ls_len > SEG_MAX)
			return (EINVAL);
		len += lp->lp_segs[i].ls_len;
	}
	if (len != lp->lp_len)
		return (EINVAL);
	if ((lp->lp_flags & FLAGS_OFFLOAD) == 0)
		return (len <= LEM_MTU_MAX + HEADERS ? 0 : EINVAL);
	if ((lp->lp_flags & LEM_TX_UDPSUM) != 0 &&
	    (lp->lp_flags & (LEM_TX_TCPSUM | FLAGS_TSO)) != 0)
		return (EINVAL);
	if ((lp->lp_flags & FLAGS_TSO) == FLAGS_TSO)
		return (EINVAL);
	/* A byte must hold where each checksum goes, and HDRLEN. */
	headers = lp->lp_l2len + lp->lp_l3len + lp->lp_l4len;
	if (lp->lp_l2len == 0 || lp->lp_l3len == 0 || headers > len ||
	    lp->lp_l2len + lp->lp_l3len > UINT8_MAX - 16)
		return (EINVAL);
	if ((lp->lp_flags & FLAGS_TSO) == 0)
		return (len <= LEM_MTU_MAX + HEADERS ? 0 : EINVAL);
	return (headers <= UINT8_MAX && lp->lp_mss != 0 &&
	    lp->lp_l4len != 0 && headers < len &&
	    headers + lp->lp_mss <= LEM_MTU_MAX + HEADERS ? 0 : EINVAL);
}

/* The context descriptor of a packet with offloads, 3.3.6. */
static void
tx_context(const struct lem_packet *lp, uint64_t ctx[2])
{
	unsigned int headers, ip, l4;
	uint32_t lower;

	ip = lp->lp_l2len;
	l4 = ip + lp->lp_l3len;
	lower = LEM_TXD_DEXT;
	if ((lp->lp_flags & LEM_TX_UDPSUM) == 0)
		lower |= LEM_TXD_CTX_TCP;
	if ((lp->lp_flags & LEM_TX_TSO6) == 0)
		lower |= LEM_TXD_CTX_IP;
	ctx[0] = LEM_CTX_IP(ip, ip + 10, l4 - 1) |
	    LEM_CTX_L4(l4, l4 + ((lower & LEM_TXD_CTX_TCP) != 0 ? 16 : 6));
	ctx[1] = 0;
	if ((lp->lp_flags & FLAGS_TSO) != 0) {
		headers = l4 + lp->lp_l4len;
		lower |= LEM_TXD_TSE | (lp->lp_len - headers);
		ctx[1] = LEM_CTX_TSO(headers, lp->lp_mss);
	}
	ctx[1] |= lower;
}

/* What is common to the data descriptors of a packet. */
static void
tx_bits(const struct lem_packet *lp, uint32_t *lower, uint32_t *upper)
{
	*lower = LEM_TXD_IFCS;
	*upper = 0;
	if ((lp->lp_flags & FLAGS_OFFLOAD) != 0)
		*lower |= LEM_TXD_DEXT | LEM_TXD_DATA;
	if ((lp->lp_flags & FLAGS_TSO) != 0)
		*lower |= LEM_TXD_TSE;
	if ((lp->lp_flags & (LEM_TX_IPSUM | LEM_TX_TSO4)) != 0)
		*upper |= LEM_TXD_IXSM;
	if ((lp->lp_flags & FLAGS_L4) != 0)
		*upper |= LEM_TXD_TXSM;
	if ((lp->lp_flags & LEM_TX_VLAN) != 0) {
		*lower |= LEM_TXD_VLE;
		*upper |= (uint32_t)lp->lp_vlan << LEM_TXD_VLAN_SHIFT;
	}
}

/* Put a packet at the tail, after context `ctx' if that is not NULL. */
static void
tx_fill(struct lem_core *lc, const struct lem_packet *lp, const uint64_t *ctx,
    uint32_t *slotp)
{
	uint32_t first, i, last, lower, upper;
	union lem_txd *txd;

	first = last = lc->lc_tx_tail;
	if (ctx != NULL) {
		lc->lc_txd[first].word[0] = ctx[0];
		lc->lc_txd[first].word[1] = ctx[1];
		last = next(last, lc->lc_ntxd);
	}
	tx_bits(lp, &lower, &upper);
	for (i = 0; i < lp->lp_nsegs; i++) {
		if (i > 0)
			last = next(last, lc->lc_ntxd);
		txd = &lc->lc_txd[last];
		txd->addr = lp->lp_segs[i].ls_addr;
		txd->lower = lower | lp->lp_segs[i].ls_len;
		txd->upper = upper;
	}
	lc->lc_txd[last].lower |= LEM_TXD_EOP;
	lc->lc_tx_eop[first] = *slotp = last;
	lc->lc_tx_tail = next(last, lc->lc_ntxd);
}

int
lem_tx(struct lem_core *lc, const struct lem_packet *lp, uint32_t *slotp)
{
	uint64_t ctx[2];
	uint32_t need;
	bool fresh;

	if (!usable(lc))
		return (ENXIO);
	if (tx_check(lp) != 0)
		return (EINVAL);
	/* One that stays is sent once; TSO counts PAYLEN down, 3.3.6. */
	fresh = false;
	if ((lp->lp_flags & FLAGS_OFFLOAD) != 0) {
		tx_context(lp, ctx);
		fresh = (lp->lp_flags & FLAGS_TSO) != 0 ||
		    ctx[0] != lc->lc_tx_ctx[0] || ctx[1] != lc->lc_tx_ctx[1];
	}
	need = lp->lp_nsegs + fresh;
	if (lem_tx_room(lc) < need)
		lem_tx_clean(lc);
	if (lem_tx_room(lc) < need)
		tx_wait(lc, need);
	if (lem_tx_room(lc) < need) {
		lc->lc_stats.tx_full++;
		return (ENOBUFS);
	}
	if (fresh) {
		lc->lc_tx_ctx[0] = ctx[0];
		lc->lc_tx_ctx[1] = ctx[1];
	}
	tx_fill(lc, lp, fresh ? ctx : NULL, slotp);
	lc->lc_tx_untold++;
	lc->lc_tx_since_rs += need;
	if (lc->lc_tx_since_rs >= tx_low(lc))
		tx_report(lc);
	lc->lc_stats.tx_packets++;
	return (0);
}

/*
 * Receive.
 */

/* True where the adapter needs RDT to be written. */
static bool
rx_publish(struct lem_core *lc, uint32_t old)
{
	struct paravirt_csb *csb = lc->lc_csb;
	uint32_t at;

	if (!csb_on(lc))
		return (true);
	lem_os_wmb();
	SHARED_SET(csb->guest_rdt, lc->lc_rx_told);
	lem_os_mb();
	at = SHARED_GET(csb->host_rxkick_at);
	if (at == NET_PARAVIRT_NONE)
		return (false);
	if (at >= lc->lc_nrxd) {
		/* It waits for what cannot come. */
		lc->lc_stats.rx_bad++;
		return (true);
	}
	/* No buffer for the next slot: it may be long before we get there. */
	if (distance(lc->lc_rx_tail, lc->lc_rx_next, lc->lc_nrxd) > 1)
		return (true);
	/* Reached, or gone past, by this step? */
	at = distance(old, at, lc->lc_nrxd);
	return (at > 0 && at <= distance(old, lc->lc_rx_told, lc->lc_nrxd));
}

static void
rx_tell(struct lem_core *lc)
{
	uint32_t n, old;

	old = lc->lc_rx_told;
	n = distance(old, lc->lc_rx_tail, lc->lc_nrxd);
	if (n == 0)
		return;
	lem_os_rxring_sync(lc, true);
	lc->lc_rx_told = lc->lc_rx_tail;
	if (rx_publish(lc, old)) {
		lem_os_write(lc, LEM_RDT, lc->lc_rx_told);
		lc->lc_stats.rx_kicks++;
		n--;
	}
	lc->lc_stats.rx_kicks_saved += n;
}

/* Give slots back, all but one: head and tail alike mean none. */
static void
rx_refill(struct lem_core *lc)
{
	uint64_t addr;
	uint32_t end, slot;

	end = (lc->lc_rx_next == 0 ? lc->lc_nrxd : lc->lc_rx_next) - 1;
	for (slot = lc->lc_rx_tail; slot != end;
	    slot = next(slot, lc->lc_nrxd)) {
		if (lc->lc_rx_empty[slot]) {
			addr = lem_os_rx_buf(lc, slot);
			if (addr == 0) {
				lc->lc_stats.rx_nobuf++;
				break;
			}
			lc->lc_rxd[slot].addr = addr;
			lc->lc_rx_empty[slot] = false;
			lc->lc_rx_missing--;
		}
	}
	lc->lc_rx_tail = slot;
}

/* The pieces of a frame so far are worth nothing. */
static void
rx_abandon(struct lem_core *lc)
{
	if (lc->lc_rx_len > 0)
		lem_os_rx_drop(lc);
	lc->lc_rx_len = 0;
}

/* Whether a descriptor that was written back is as it should be. */
static bool
rx_check(struct lem_core *lc, uint64_t done)
{
	uint32_t len;

	len = LEM_RXD_LEN(done);
	/* A frame is cut only where a buffer ends. */
	if (len == 0 || len > lc->lc_rx_bufsize ||
	    ((done & LEM_RXD_EOP) == 0 && len != lc->lc_rx_bufsize) ||
	    lc->lc_rx_len + len > LEM_MTU_MAX + HEADERS) {
		lc->lc_stats.rx_bad++;
		return (false);
	}
	if ((done & LEM_RXD_EOP) != 0 && (done & LEM_RXD_BAD) != 0) {
		lc->lc_stats.rx_errors++;
		return (false);
	}
	return (true);
}

/* Hand a piece to the host. */
static void
rx_piece(struct lem_core *lc, uint32_t slot, uint64_t done)
{
	struct lem_rx rx;

	rx.len = LEM_RXD_LEN(done);
	rx.eop = (done & LEM_RXD_EOP) != 0;
	rx.vlan = (done & LEM_RXD_VP) != 0;
	rx.tag = LEM_RXD_TAG(done);
	rx.ipsum_ok = (done & (LEM_RXD_IXSM | LEM_RXD_IPCS |
	    LEM_RXD_IPE)) == LEM_RXD_IPCS;
	rx.l4sum_ok = (done & (LEM_RXD_IXSM | LEM_RXD_TCPCS |
	    LEM_RXD_TCPE)) == LEM_RXD_TCPCS;
	if (lem_os_rx(lc, slot, &rx)) {
		lc->lc_rx_empty[slot] = true;
		lc->lc_rx_missing++;
	}
	if (rx.eop) {
		lc->lc_rx_len = 0;
		lc->lc_stats.rx_packets++;
	} else
		lc->lc_rx_len += rx.len;
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
	bool eop;

	for (n = 0; n < budget; ) {
		slot = lc->lc_rx_next;
		done = SHARED_GET(lc->lc_rxd[slot].done);
		if ((done & LEM_RXD_DD) == 0)
			break;
		SHARED_SET(lc->lc_rxd[slot].done, 0);
		if (slot == lc->lc_rx_told) {
			lc->lc_stats.rx_bad++;	/* not the adapter's */
			n++;
			break;
		}
		lem_os_rmb();
		lc->lc_rx_next = next(slot, lc->lc_nrxd);
		eop = (done & LEM_RXD_EOP) != 0;
		if (lc->lc_rx_skip) {
			lc->lc_rx_skip = !eop;
			n++;
		} else if (rx_check(lc, done)) {
			rx_piece(lc, slot, done);
			n += eop;
		} else {
			rx_abandon(lc);
			lc->lc_rx_skip = !eop;
			n++;
		}
		if (distance(lc->lc_rx_tail, lc->lc_rx_next, lc->lc_nrxd) >
		    lc->lc_nrxd / 4) {
			rx_refill(lc);
			rx_tell(lc);
		}
	}
	return (n);
}

unsigned int
lem_rx(struct lem_core *lc, unsigned int budget)
{
	struct paravirt_csb *csb = lc->lc_csb;
	unsigned int n;
	bool kicks;

	if (!usable(lc))
		return (0);
	kicks = csb_on(lc) && !polling(lc);
	for (n = 0;;) {
		if (kicks)
			SHARED_SET(csb->guest_need_rxkick, 0);
		lem_os_rxring_sync(lc, false);
		n += rx_take(lc, budget - n);
		rx_refill(lc);
		/* Polling, a few at a time can wait. */
		if (!polling(lc) || lc->lc_rx_missing > 0 ||
		    distance(lc->lc_rx_told, lc->lc_rx_tail, lc->lc_nrxd) >=
		    lc->lc_nrxd / 8)
			rx_tell(lc);
		if (!kicks || n >= budget)
			break;
		SHARED_SET(csb->guest_need_rxkick, 1);
		lem_os_mb();
		lem_os_rxring_sync(lc, false);
		if ((SHARED_GET(lc->lc_rxd[lc->lc_rx_next].done) &
		    LEM_RXD_DD) == 0)
			break;
	}
	if (n > 0)
		lc->lc_stats.rx_batches++;
	return (n);
}

/*
 * The CSB and the mode.
 */

/* The guest's part of the block, guest_csb_on last. */
static void
csb_fill(struct lem_core *lc)
{
	struct paravirt_csb *csb = lc->lc_csb;
	bool kicks = !polling(lc);

	SHARED_SET(csb->guest_tdt, lc->lc_tx_told);
	SHARED_SET(csb->guest_rdt, lc->lc_rx_told);
	SHARED_SET(csb->guest_need_txkick, kicks && lc->lc_tx_short);
	SHARED_SET(csb->guest_need_rxkick, kicks);
	SHARED_SET(csb->guest_txkick_at, NET_PARAVIRT_NONE);
	lem_os_mb();
	SHARED_SET(csb->guest_csb_on, csb_on(lc));
	lem_os_mb();
}

static void
csb_attach(struct lem_core *lc)
{
	struct paravirt_csb *csb = lc->lc_csb;

	SHARED_SET(csb->host_txcycles_lim, CSB_TXCYCLES);
	SHARED_SET(csb->host_need_txkick, 1);
	SHARED_SET(csb->host_rxkick_at, NET_PARAVIRT_NONE);
	csb_fill(lc);
	lem_os_write(lc, LEM_CSBAH, lc->lc_csb_dma >> 32);
	lem_os_write(lc, LEM_CSBAL, lc->lc_csb_dma);
}

/*
 * Turn the CSB on or off under traffic.  Both sides go on from the same
 * place: the tails that either was told of are written to the registers
 * after the turn, which is a kick, too.
 */
static void
csb_turn(struct lem_core *lc)
{
	csb_fill(lc);
	lem_os_write(lc, LEM_TDT, lc->lc_tx_told);
	lem_os_write(lc, LEM_RDT, lc->lc_rx_told);
}

/*
 * An interrupt that was due in the old mode may not be in the new one, nor
 * ever have been sent: after the change one is asked for in each direction.
 */
int
lem_set_mode(struct lem_core *lc, uint32_t mode)
{
	uint32_t changed;

	if ((mode & ~MODE_ALL) != 0)
		return (EINVAL);
	if ((mode & LEM_MODE_CSB) != 0 && !csb_there(lc))
		return (ENOTSUP);
	changed = lc->lc_mode ^ mode;
	if (!usable(lc) || changed == 0) {
		lc->lc_mode = mode;
		return (0);
	}
	tx_tell(lc);
	lc->lc_tx_waiting = false;
	lc->lc_mode = mode;
	if ((changed & LEM_MODE_CSB) != 0 ||
	    (csb_on(lc) && (changed & LEM_MODE_POLL) != 0))
		csb_turn(lc);
	if (polling(lc))
		lem_intr_disable(lc);
	else {
		if (SHARED_GET(lc->lc_intr_on)) {
			lem_intr_disable(lc);
			intr_on(lc);
		}
		lem_os_write(lc, LEM_ICS, LEM_ICR_RXT0 | LEM_ICR_TXDW);
	}
	return (0);
}

/*
 * Start, stop.
 */

/* RCTL's BSIZE and BSEX for a buffer size, 13.4.22. */
static bool
rctl_bufsize(uint32_t size, uint32_t *rctl)
{
	uint32_t code;

	for (code = 1; code <= 3; code++) {
		*rctl = code << LEM_RCTL_BSIZE_SHIFT | LEM_RCTL_BSEX;
		if (size == 32768u >> code)
			return (true);
	}
	*rctl = 0;
	return (size == 2048);
}

static bool
ring_size_ok(uint32_t n)
{
	return (n >= LEM_RING_MIN && n <= LEM_RING_MAX && n % 8 == 0);
}

/* A ring's registers lie alike from the low half of its base on. */
static void
ring_start(struct lem_core *lc, uint32_t base, uint64_t dma, uint32_t n)
{
	lem_os_write(lc, base, dma);
	lem_os_write(lc, base + LEM_TDBAH - LEM_TDBAL, dma >> 32);
	lem_os_write(lc, base + LEM_TDLEN - LEM_TDBAL, n * 16);
	lem_os_write(lc, base + LEM_TDH - LEM_TDBAL, 0);
	lem_os_write(lc, base + LEM_TDT - LEM_TDBAL, 0);
	lem_os_write(lc, base + LEM_TIDV - LEM_TDBAL, 0);
	lem_os_write(lc, base + LEM_TADV - LEM_TDBAL, 0);
}

static void
tx_start(struct lem_core *lc)
{
	lc->lc_tx_head = lc->lc_tx_tail = lc->lc_tx_told = 0;
	lc->lc_tx_since_rs = lc->lc_tx_untold = lc->lc_tx_held = 0;
	lc->lc_tx_rs_head = lc->lc_tx_rs_tail = 0;
	lc->lc_tx_waiting = lc->lc_tx_short = false;
	lc->lc_tx_ctx[0] = lc->lc_tx_ctx[1] = 0;
	ring_start(lc, LEM_TDBAL, lc->lc_txd_dma, lc->lc_ntxd);
	lem_os_write(lc, LEM_TIPG, LEM_TIPG_COPPER);
	lem_os_write(lc, LEM_TCTL, LEM_TCTL_EN | LEM_TCTL_PSP |
	    LEM_TCTL_CT | LEM_TCTL_COLD);
}

static int
rx_start(struct lem_core *lc, uint32_t rctl)
{
	uint32_t slot;

	for (slot = 0; slot < lc->lc_nrxd; slot++) {
		SHARED_SET(lc->lc_rxd[slot].done, 0);
		lc->lc_rx_empty[slot] = true;
	}
	lc->lc_rx_missing = lc->lc_nrxd;
	lc->lc_rx_next = lc->lc_rx_tail = lc->lc_rx_told = 0;
	lc->lc_rx_len = 0;
	lc->lc_rx_skip = false;
	rx_refill(lc);
	if (lc->lc_rx_tail == 0)
		return (ENOBUFS);
	lem_os_rxring_sync(lc, true);
	ring_start(lc, LEM_RDBAL, lc->lc_rxd_dma, lc->lc_nrxd);
	lem_os_write(lc, LEM_RXCSUM, LEM_RXCSUM_IPOFL | LEM_RXCSUM_TUOFL);
	lem_os_write(lc, LEM_RCTL, rctl);
	lc->lc_rx_told = lc->lc_rx_tail;
	lem_os_write(lc, LEM_RDT, lc->lc_rx_told);
	return (0);
}

int
lem_start(struct lem_core *lc, const uint8_t mac[6], uint32_t mtu)
{
	uint32_t rctl;
	int error;

	if (!ring_size_ok(lc->lc_ntxd) || !ring_size_ok(lc->lc_nrxd) ||
	    mtu < LEM_MTU_MIN || mtu > LEM_MTU_MAX ||
	    !rctl_bufsize(lc->lc_rx_bufsize, &rctl))
		return (EINVAL);
	if (lc->lc_running)
		lem_stop(lc);
	if (reset(lc) != 0)
		return (ENXIO);
	lem_os_write(lc, LEM_CTRL, (reg_read(lc, LEM_CTRL) &
	    ~(LEM_CTRL_FRCSPD | LEM_CTRL_FRCDPX)) | LEM_CTRL_SLU |
	    LEM_CTRL_ASDE);
	lem_os_write(lc, LEM_RAL(0), mac[0] | mac[1] << 8 | mac[2] << 16 |
	    (uint32_t)mac[3] << 24);
	lem_os_write(lc, LEM_RAH(0), mac[4] | mac[5] << 8 | LEM_RAH_AV);
	lem_set_filter(lc, false, false, NULL);
	lem_os_write(lc, LEM_ITR, lc->lc_itr_256ns);
	tx_start(lc);
	rctl |= LEM_RCTL_EN | LEM_RCTL_BAM | LEM_RCTL_SECRC;
	if (mtu > 1500)
		rctl |= LEM_RCTL_LPE;
	error = rx_start(lc, rctl);
	if (error == 0 && lc->lc_dead)
		error = ENXIO;
	if (error != 0) {
		reset(lc);
		return (error);
	}
	if (csb_there(lc))
		csb_attach(lc);
	lem_link(lc);
	lc->lc_running = true;
	return (0);
}

void
lem_stop(struct lem_core *lc)
{
	bool dead;

	if (!lc->lc_running)
		return;
	if (csb_there(lc))
		SHARED_SET(lc->lc_csb->guest_csb_on, 0);
	dead = lc->lc_dead;
	(void)reset(lc);
	lc->lc_dead = lc->lc_dead || dead;
	lc->lc_running = false;
	while (lc->lc_tx_head != lc->lc_tx_tail)
		(void)tx_drop(lc, lc->lc_tx_eop[lc->lc_tx_head]);
	rx_abandon(lc);
}

/*
 * Filters, VLAN, link.
 */

void
lem_set_filter(struct lem_core *lc, bool promisc, bool allmulti,
    const uint32_t mta[128])
{
	uint32_t old, rctl;
	unsigned int i;

	old = reg_read(lc, LEM_RCTL);
	if (lc->lc_dead)
		return;
	rctl = old & ~(LEM_RCTL_UPE | LEM_RCTL_MPE);
	if (promisc)
		rctl |= LEM_RCTL_UPE | LEM_RCTL_MPE;
	if (allmulti)
		rctl |= LEM_RCTL_MPE;
	/* QEMU's e1000 receives nothing for a second after each write. */
	if (rctl != old)
		lem_os_write(lc, LEM_RCTL, rctl);
	for (i = 0; i < LEM_MTA_WORDS; i++)
		lem_os_write(lc, LEM_MTA + 4 * i, mta == NULL ? 0 : mta[i]);
}

/* 13.5.1 with RCTL.MO 0: the upper twelve bits. */
uint32_t
lem_mta_bit(const uint8_t mac[6])
{
	return (mac[4] >> 4 | mac[5] << 4);
}

void
lem_set_vlan(struct lem_core *lc, bool on)
{
	uint32_t ctrl;

	ctrl = reg_read(lc, LEM_CTRL);
	if (lc->lc_dead)
		return;
	lem_os_write(lc, LEM_CTRL,
	    on ? ctrl | LEM_CTRL_VME : ctrl & ~LEM_CTRL_VME);
}

void
lem_link(struct lem_core *lc)
{
	uint32_t status;

	status = reg_read(lc, LEM_STATUS);
	lc->lc_link = !lc->lc_dead && (status & LEM_STATUS_LU) != 0;
}
