/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Interrupts of the 82574L.
 *
 * Without MSI-X they are those of the 82545EM, e82545_intr.c, and reading ICR
 * can mask causes (CTRL_EXT.IAME, IAM).  With MSI-X a queue's causes are also
 * one bit of ICR, all others that are not of a queue another one, and IVAR
 * gives each of these a vector:
 *
 *	event --> ICR --(& IMS)--> IVAR --> [EITR] --> message
 *
 * The delay timers (RDTR, RADV, TIDV, TADV) delay nothing then: EITR does that,
 * for each vector.  Linux's driver sets RDTR and TIDV with EITR, because
 * hardware then writes descriptors back in bursts, as a batch does here, and a
 * lone frame would wait for both.
 *
 * RXT0, RXDMT0 and TXDW are for both queues of a direction.
 *
 * A message is sent when a bit becomes set in both ICR and IMS, and not again
 * before it is clear in one of them.  EIAC has the bits that a message clears,
 * in ICR and in IMS: the driver need not read ICR, and writes IMS when it has
 * handled the interrupt.  With CTRL_EXT.EIAME a message clears those of IAM in
 * IMS, too.
 *
 * 82574 datasheet, sections on interrupts, ICR, EIAC, IAM, IVAR and EITR.
 *
 * Everything here runs under reg_mtx.
 */

#include <sys/param.h>

#include <string.h>

#include "e82545_impl.h"
#include "e82545_intr.h"
#include "e82545_probes.h"
#include "e82545_salvage.h"
#include "e82545_snap.h"
#include "e82574.h"

/* The first of the causes that have a vector. */
#define	MSIX_SHIFT	20
#define	ALL_QUEUES	0x3		/* as bits */

/* Return the causes that IVAR gives vector `v'. */
static uint32_t
vector_causes(uint32_t ivar, unsigned int v)
{
	uint32_t causes = 0;
	unsigned int i;

	for (i = 0; i < E82574_VECTORS; i++)
		if (E82574_IVAR_VALID(ivar, i) &&
		    E82574_IVAR_VECTOR(ivar, i) == v)
			causes |= 1U << (MSIX_SHIFT + i);
	return (causes);
}

struct e82574_verdict
e82574_moderate(const struct e82574 *state, const struct e82574_event *ev)
{
	struct e82574_verdict r;
	struct e82574_vector *vec;
	uint32_t causes, clear, pending;
	uint64_t free_ns;
	unsigned int v;

	memset(&r, 0, sizeof(r));
	r.ed_next = *state;
	r.ed_icr = ev->xe_icr;
	r.ed_ims = ev->xe_ims;
	pending = ev->xe_icr & ev->xe_ims & E82574_ICR_MSIX;
	r.ed_next.xs_sent &= pending;
	pending &= ~r.ed_next.xs_sent;
	for (v = 0; v < E82574_VECTORS; v++) {
		vec = &r.ed_next.xs_vector[v];
		causes = pending & vector_causes(ev->xe_ivar, v);
		free_ns = vec->ev_last_ns == 0 ? 0 :
		    vec->ev_last_ns + ev->xe_itr_256ns[v] * 256ULL;
		if (causes == 0) {
			vec->ev_held = false;
		} else if (free_ns <= ev->xe_now_ns) {
			vec->ev_held = false;
			vec->ev_last_ns = ev->xe_now_ns;
			r.ed_messages |= 1U << v;
			clear = causes & ev->xe_eiac;
			r.ed_icr &= ~clear;
			r.ed_ims &= ~clear;
			if ((ev->xe_ctrl_ext & E82574_CTRL_EXT_EIAME) != 0)
				r.ed_ims &= ~(causes & ev->xe_iam);
			r.ed_next.xs_sent |= causes & r.ed_icr & r.ed_ims;
		} else {
			if (!vec->ev_held)
				r.ed_put_off |= 1U << v;
			vec->ev_held = true;
			if (r.ed_deadline_ns == 0 ||
			    free_ns < r.ed_deadline_ns)
				r.ed_deadline_ns = free_ns;
		}
	}
	return (r);
}

/* Causes that both queues of a direction have. */
#define	RX_QUEUES	(E82545_ICR_RXT0 | E82545_ICR_RXDMT0)
#define	TX_QUEUES	E82545_ICR_TXDW

/*
 * Return the bits with a vector that an event's causes set: of queues the
 * event's, or of both if the event is not about packets.  A timer that still
 * ran when MSI-X was turned on does not say for which queue.
 */
static uint32_t
msix_causes(const struct e82545_moder_event *mev, uint32_t causes)
{
	const uint32_t rx = mev->rx || (mev->raise & RX_QUEUES) != 0 ?
	    1U << mev->queue : ALL_QUEUES;
	const uint32_t tx = mev->tx || (mev->raise & TX_QUEUES) != 0 ?
	    1U << mev->queue : ALL_QUEUES;

	return (((causes & RX_QUEUES) != 0 ? rx * E82574_ICR_RXQ0 : 0) |
	    ((causes & TX_QUEUES) != 0 ? tx * E82574_ICR_TXQ0 : 0) |
	    ((causes & E82574_ICR_OTHERS) != 0 ? E82574_ICR_OTHER : 0));
}

/* Return all bits with a vector that the causes may set. */
static uint32_t
msix_possible(uint32_t causes)
{
	return (((causes & RX_QUEUES) != 0 ? E82574_ICR_RXQ0 |
	    E82574_ICR_RXQ1 : 0) | ((causes & TX_QUEUES) != 0 ?
	    E82574_ICR_TXQ0 | E82574_ICR_TXQ1 : 0) |
	    ((causes & E82574_ICR_OTHERS) != 0 ? E82574_ICR_OTHER : 0));
}

static uint16_t
vector_itr(const struct e82545 *dev, unsigned int v)
{
	uint16_t itr_256ns = e82545_reg(dev, E82574_EITR(v));

	if (itr_256ns == 0)
		itr_256ns = dev->config.ec_itr_256ns;
	return (MAX(itr_256ns, dev->config.ec_itr_min_256ns));
}

uint16_t
e82574_itr(const struct e82545 *dev)
{
	const uint32_t ivar = e82545_reg(dev, E82574_IVAR);
	const unsigned int v = E82574_IVAR_VECTOR(ivar, 0);

	return (E82574_IVAR_VALID(ivar, 0) && v < E82574_VECTORS ?
	    vector_itr(dev, v) : e82545_itr(dev));
}

/* Carry out what e82574_moderate() has decided. */
static void
msix_send(struct e82545 *dev, const struct e82574_event *ev)
{
	struct e82574_verdict r;
	unsigned int v;

	r = e82574_moderate(&dev->x, ev);
	dev->x = r.ed_next;
	/* As by a read of ICR, the guest has been told of these. */
	if ((ev->xe_icr & ~r.ed_icr & E82574_ICR_RXQ0) != 0 &&
	    e82545_csb_placed(dev))
		dev->csb.ops->ecb_icr_read(dev);
	e82545_reg_set(dev, E82545_ICR, r.ed_icr);
	e82545_reg_set(dev, E82545_IMS, r.ed_ims);
	for (v = 0; v < E82574_VECTORS; v++) {
		if ((r.ed_put_off & 1U << v) != 0) {
			e82545_count(dev, E82545_C_INTR_HELD, 1);
			E82545_PROBE(dev, INTR_HELD, ev->xe_icr & ev->xe_ims,
			    dev->x.xs_vector[v].ev_last_ns +
			    ev->xe_itr_256ns[v] * 256ULL - ev->xe_now_ns);
		}
		if ((r.ed_messages & 1U << v) != 0) {
			e82545_count(dev, E82545_C_INTR_SENT, 1);
			E82545_PROBE(dev, INTR_SENT, ev->xe_icr & ev->xe_ims,
			    ev->xe_now_ns, ev->xe_itr_256ns[v] * 256ULL);
			dev->ops->eo_message(dev->arg, v);
		}
	}
	if (r.ed_deadline_ns != 0)
		e82545_intr_arm(dev, r.ed_deadline_ns);
}

void
e82574_intr_event(struct e82545 *dev, struct e82545_moder_event *mev)
{
	struct e82574_event ev;
	uint64_t deadline_ns;
	uint32_t causes;
	unsigned int v;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	mev->rdtr_1024ns = mev->tidv_1024ns = 0;
	ev.xe_icr = mev->icr;
	ev.xe_ims = mev->ims;
	ev.xe_eiac = e82545_reg(dev, E82574_EIAC);
	ev.xe_iam = e82545_reg(dev, E82574_IAM);
	ev.xe_ivar = e82545_reg(dev, E82574_IVAR);
	ev.xe_ctrl_ext = e82545_reg(dev, E82545_CTRL_EXT);
	for (v = 0; v < E82574_VECTORS; v++)
		ev.xe_itr_256ns[v] = vector_itr(dev, v);
	/* The causes that the event may raise: is the time needed? */
	causes = mev->raise | (mev->rx ? E82545_ICR_RXT0 : 0) |
	    (mev->tx ? E82545_ICR_TXDW : 0);
	if (((ev.xe_icr | causes | msix_possible(causes)) & ev.xe_ims &
	    E82574_ICR_MSIX & ~dev->x.xs_sent) != 0 ||
	    e82545_delay_timed(&dev->moder, mev))
		mev->now_ns = dev->ops->eo_now(dev->arg);
	ev.xe_now_ns = mev->now_ns;
	causes = e82545_delay(&dev->moder, mev);
	ev.xe_icr |= causes | msix_causes(mev, causes);
	msix_send(dev, &ev);
	deadline_ns = e82545_delay_deadline(&dev->moder);
	if (deadline_ns != 0)
		e82545_intr_arm(dev, deadline_ns);
}

void
e82545_msix(struct e82545 *dev, bool on)
{
	pthread_mutex_lock(&dev->reg_mtx);
	if (on != dev->x.xs_msix) {
		/* Neither the line nor a message is pending in the other. */
		if (dev->moder.asserted)
			dev->ops->eo_intr(dev->arg, false);
		dev->moder.asserted = dev->moder.held = false;
		dev->x.xs_sent = 0;
		dev->x.xs_msix = on;
		e82545_intr_again(dev);
	}
	pthread_mutex_unlock(&dev->reg_mtx);
}

/*
 * Snapshots.  Whether MSI-X is on is in configuration space, which the host
 * saves, and is not reset with the rest.
 */

void
e82574_reset(struct e82545 *dev)
{
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	dev->x.xs_sent = 0;
	memset(dev->x.xs_vector, 0, sizeof(dev->x.xs_vector));
	dev->x.xs_systim = 0;
	dev->x.xs_systim_ns = 0;
}

void
e82574_snap(struct e82545 *dev, struct e82545_snap *s)
{
	struct e82574 *x = &dev->x;
	uint64_t systim = e82574_systim(dev);
	unsigned int v;

	e82545_snap_u32(s, &x->xs_sent, E82574_ICR_MSIX);
	e82545_snap_check(s, (x->xs_sent & ~(e82545_reg(dev, E82545_ICR) &
	    e82545_reg(dev, E82545_IMS) & E82574_ICR_MSIX)) == 0);
	for (v = 0; v < E82574_VECTORS; v++) {
		e82545_snap_last(s, &x->xs_vector[v].ev_last_ns);
		e82545_snap_bool(s, &x->xs_vector[v].ev_held);
	}
	e82545_snap_u64(s, &systim, UINT64_MAX);
	if (s->restore != NULL) {
		x->xs_systim = systim;
		x->xs_systim_ns = s->now_ns;
	}
}

/* Take over the state: registers and this change one after the other. */
void
e82574_salvage(struct e82545 *dev, const struct e82545 *old)
{
	struct e82574 *x = &dev->x;
	unsigned int v;

	x->xs_sent = old->x.xs_sent & e82545_reg(dev, E82545_ICR) &
	    e82545_reg(dev, E82545_IMS) & E82574_ICR_MSIX;
	for (v = 0; v < E82574_VECTORS; v++) {
		x->xs_vector[v].ev_last_ns = old->x.xs_vector[v].ev_last_ns;
		x->xs_vector[v].ev_held =
		    e82545_salvage_bool(&old->x.xs_vector[v].ev_held);
	}
	x->xs_systim = old->x.xs_systim;
	x->xs_systim_ns = old->x.xs_systim_ns;
}

/*
 * Registers.
 */

uint32_t
e82574_vectors_off(const struct e82545 *dev)
{
	uint32_t off = 0;
	unsigned int v;

	for (v = 0; v < E82574_VECTORS; v++)
		if ((vector_causes(e82545_reg(dev, E82574_IVAR), v) &
		    e82545_reg(dev, E82545_IMS)) == 0)
			off |= 1U << v;
	return (off);
}

/*
 * Mask the causes of IAM, if CTRL_EXT.IAME is set: what has been seen is
 * masked.
 */
static void
icr_mask(struct e82545 *dev)
{
	if ((e82545_reg(dev, E82545_CTRL_EXT) & E82574_CTRL_EXT_IAME) != 0)
		e82545_reg_set(dev, E82545_IMS, e82545_reg(dev, E82545_IMS) &
		    ~e82545_reg(dev, E82574_IAM));
}

/*
 * Return ICR with the bit that says whether it has a cause that is not masked.
 */
uint32_t
e82574_ics_read(struct e82545 *dev, uint32_t off __unused)
{
	const uint32_t icr = e82545_reg(dev, E82545_ICR);

	return (icr | ((icr & e82545_reg(dev, E82545_IMS)) != 0 ?
	    E82574_ICR_ASSERTED : 0));
}

/*
 * Read ICR, which clears all causes if one of them is not masked, or all are.
 */
uint32_t
e82574_icr_read(struct e82545 *dev, uint32_t off)
{
	const uint32_t icr = e82574_ics_read(dev, off);

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	if (icr == 0 || ((icr & E82574_ICR_ASSERTED) == 0 &&
	    e82545_reg(dev, E82545_IMS) != 0))
		return (icr);
	if (e82545_csb_placed(dev))
		dev->csb.ops->ecb_icr_read(dev);
	e82545_reg_set(dev, off, 0);
	icr_mask(dev);
	e82545_intr_again(dev);
	return (icr);
}

/* Write 1 to clear; the bit of all others clears these. */
void
e82574_icr_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	if ((value & E82574_ICR_OTHER) != 0)
		value |= E82574_ICR_OTHERS;
	if ((e82574_ics_read(dev, off) & E82574_ICR_ASSERTED) != 0)
		icr_mask(dev);
	e82545_reg_set(dev, off, e82545_reg(dev, off) & ~value);
	e82545_intr_again(dev);
}

void
e82574_vector_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	e82545_reg_set(dev, off, value);
	e82545_intr_again(dev);
}
