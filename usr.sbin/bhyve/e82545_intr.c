/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Interrupts of the 82545EM: causes, masks and moderation.
 *
 * The line is asserted while ICR and IMS have a bit in common.  Two mechanisms
 * can delay an event on its way to the line:
 *
 *	delay timers	A received packet sets RXT0 when no other packet has
 *	(RDTR, RADV,	followed for RDTR, or at the latest RADV after the
 *	TIDV, TADV)	first one.  TIDV and TADV do the same for TXDW, if the
 *			descriptors have IDE set.  Units of 1.024 us.
 *	throttle (ITR)	A cause sets its bit in ICR at once, but the line is
 *			asserted no sooner than ITR after it was last asserted.
 *			Units of 256 ns.
 *
 *	event --> [delay timer] --> ICR --(& IMS)--> [throttle] --> line
 *
 * e82545_moderate() implements both, as a pure function: from the state, one
 * event and the registers it computes the next state and what must be done.
 * The rest of this file gathers its arguments and carries out its result.
 *
 * 8254x SDM sections 3.2.7.1 (receive timers), 3.4.3.1 (delayed transmit
 * interrupts), 13.4.17 to 13.4.21 (ICR, ITR, ICS, IMS, IMC), 13.4.30 and
 * 13.4.31 (RDTR, RADV), 13.4.41 and 13.4.44 (TIDV, TADV).
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

/* Causes that announce received packets, and therefore stop the timers. */
#define	RX_CAUSES	(E82545_ICR_RXT0 | E82545_ICR_RXDMT0 |		\
			 E82545_ICR_RXO | E82545_ICR_SRPD)

/* The longest settings of the delay timers and the throttle. */
#define	DELAY_MAX_NS	(UINT16_MAX * 1024ULL)
#define	THROTTLE_MAX_NS	(E82545_ITR_MASK * 256ULL)

static bool
due(uint64_t deadline_ns, uint64_t now_ns)
{
	return (deadline_ns != 0 && deadline_ns <= now_ns);
}

static uint64_t
earlier(uint64_t a_ns, uint64_t b_ns)
{
	if (a_ns == 0)
		return (b_ns);
	if (b_ns == 0)
		return (a_ns);
	return (a_ns < b_ns ? a_ns : b_ns);
}

/*
 * Start the timers of a packet at `now_ns': restart the packet timer of its
 * direction, and start the absolute timer unless that is running.  Returns
 * false if the packet timer is 0: the caller must announce the packet at once.
 * An absolute timer alone delays nothing (sections 13.4.30, 13.4.41).
 */
static bool
start_timers(uint64_t *packet_ns, uint64_t *absolute_ns, uint64_t now_ns,
    uint16_t packet_1024ns, uint16_t absolute_1024ns)
{
	if (packet_1024ns == 0)
		return (false);
	*packet_ns = now_ns + packet_1024ns * 1024ULL;
	if (absolute_1024ns != 0 && *absolute_ns == 0)
		*absolute_ns = now_ns + absolute_1024ns * 1024ULL;
	return (true);
}

/*
 * Apply the delay timers.  Returns the causes that an event and expired timers
 * set in ICR.  Expired timers come first: a later packet must not restart them.
 */
static inline uint32_t __attribute__((__always_inline__))
delay(struct e82545_moderation *m, const struct e82545_moder_event *ev)
{
	uint32_t causes;

	causes = ev->raise;
	if (due(m->rx_packet_ns, ev->now_ns) ||
	    due(m->rx_absolute_ns, ev->now_ns))
		causes |= E82545_ICR_RXT0;
	if (due(m->tx_packet_ns, ev->now_ns) ||
	    due(m->tx_absolute_ns, ev->now_ns))
		causes |= E82545_ICR_TXDW;

	/*
	 * Any cause that makes the guest read its ring stops the timers,
	 * and saves a second interrupt: sections 3.2.7.1, 13.4.41.
	 */
	if ((causes & RX_CAUSES) != 0) {
		if (m->rx_packet_ns != 0)
			causes |= E82545_ICR_RXT0;
		m->rx_packet_ns = m->rx_absolute_ns = 0;
	}
	if ((causes & E82545_ICR_TXDW) != 0)
		m->tx_packet_ns = m->tx_absolute_ns = 0;

	if (ev->rx) {
		if ((ev->raise & RX_CAUSES) != 0 ||
		    !start_timers(&m->rx_packet_ns, &m->rx_absolute_ns,
		    ev->now_ns, ev->rdtr_1024ns, ev->radv_1024ns)) {
			causes |= E82545_ICR_RXT0;
			m->rx_packet_ns = m->rx_absolute_ns = 0;
		}
	}
	if (ev->tx) {
		if (!ev->tx_delayed ||
		    !start_timers(&m->tx_packet_ns, &m->tx_absolute_ns,
		    ev->now_ns, ev->tidv_1024ns, ev->tadv_1024ns)) {
			causes |= E82545_ICR_TXDW;
			m->tx_packet_ns = m->tx_absolute_ns = 0;
		}
	}
	return (causes);
}

uint32_t
e82545_delay(struct e82545_moderation *m, const struct e82545_moder_event *ev)
{
	return (delay(m, ev));
}

uint64_t
e82545_delay_deadline(const struct e82545_moderation *m)
{
	return (earlier(earlier(m->rx_packet_ns, m->rx_absolute_ns),
	    earlier(m->tx_packet_ns, m->tx_absolute_ns)));
}

struct e82545_moder_verdict
e82545_moderate(const struct e82545_moderation *state,
    const struct e82545_moder_event *ev)
{
	struct e82545_moder_verdict v;
	struct e82545_moderation *m = &v.next;
	uint64_t deadline_ns, free_ns;
	bool pending;

	memset(&v, 0, sizeof(v));
	*m = *state;
	/*
	 * The guest has taken or masked all causes.  A timer that expires now
	 * sets another one, for which MSI needs another message.
	 */
	v.drop = m->asserted && (ev->icr & ev->ims) == 0;
	if (v.drop)
		m->asserted = false;
	v.icr = ev->icr | delay(m, ev);
	pending = (v.icr & ev->ims) != 0;

	/*
	 * The throttle counts from assertion to assertion.  Reading ICR, or
	 * masking and unmasking, does not restart it.
	 */
	free_ns = m->last_ns == 0 ? 0 : m->last_ns + ev->itr_256ns * 256ULL;
	deadline_ns = 0;
	if (!pending) {
		m->held = false;
	} else if (!m->asserted && free_ns <= ev->now_ns) {
		v.fire = m->asserted = true;
		m->held = false;
		m->last_ns = ev->now_ns;
	} else if (!m->asserted) {
		v.put_off = !m->held;
		m->held = true;
		deadline_ns = free_ns;
	}

	deadline_ns = earlier(deadline_ns, e82545_delay_deadline(m));
	if (deadline_ns != 0)
		v.arm_ns = deadline_ns - ev->now_ns;
	return (v);
}

/* Return the causes of an event. */
static uint32_t
intr_causes(const struct e82545_moder_event *ev)
{
	return (ev->raise | (ev->rx ? E82545_ICR_RXT0 : 0) |
	    (ev->tx ? E82545_ICR_TXDW : 0));
}

bool
e82545_delay_timed(const struct e82545_moderation *m,
    const struct e82545_moder_event *ev)
{
	return (m->rx_packet_ns != 0 || m->rx_absolute_ns != 0 ||
	    m->tx_packet_ns != 0 || m->tx_absolute_ns != 0 ||
	    (ev->rx && ev->rdtr_1024ns != 0) ||
	    (ev->tx && ev->tidv_1024ns != 0));
}

/*
 * Return whether the result depends on the time: a timer is running or may
 * start, or an interrupt may be sent.  No interrupt is sent while the line is
 * asserted or all causes are masked, because the guest then polls its rings.
 * Reading the clock costs as much as many frames, so it is read only if needed.
 */
static bool
intr_timed(const struct e82545_moderation *m,
    const struct e82545_moder_event *ev)
{
	return ((!m->asserted &&
	    ((ev->icr | intr_causes(ev)) & ev->ims) != 0) ||
	    e82545_delay_timed(m, ev));
}

/*
 * Arm the host's timer.  That costs a system call, and most deadlines are put
 * off before they are reached: every batch restarts RDTR, and a read of ICR
 * cancels the throttle's.  The timer is therefore only set to an earlier time,
 * never to a later one.  If it expires too early, e82545_intr_timer() sets it
 * again.
 */
void
e82545_intr_arm(struct e82545 *dev, uint64_t when_ns)
{
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	if (dev->armed_ns != 0 && dev->armed_ns <= when_ns)
		return;
	dev->armed_ns = when_ns;
	dev->ops->eo_timer(dev->arg, when_ns);
}

uint16_t
e82545_itr(const struct e82545 *dev)
{
	uint16_t itr_256ns = e82545_reg(dev, E82545_ITR);

	if (itr_256ns == 0)
		itr_256ns = dev->config.ec_itr_256ns;
	return (MAX(itr_256ns, dev->config.ec_itr_min_256ns));
}

static void
intr_asked(struct e82545 *dev, const struct e82545_moder_event *ev)
{
	if (ev->raise != 0 || ev->rx || ev->tx) {
		e82545_count(dev, E82545_C_INTR_ASKED, 1);
		E82545_PROBE(dev, INTR_ASKED, intr_causes(ev));
	}
}

/* Handle an event with MSI-X. */
static __attribute__((__noinline__)) void
msix_event(struct e82545 *dev, struct e82545_moder_event *ev)
{
	intr_asked(dev, ev);
	e82574_intr_event(dev, ev);
}

/* Pass an event through moderation, and carry out the result. */
static void
intr_event(struct e82545 *dev, struct e82545_moder_event *ev)
{
	struct e82545_moder_verdict v;

	ev->icr = e82545_reg(dev, E82545_ICR);
	ev->ims = e82545_reg(dev, E82545_IMS);
	ev->itr_256ns = e82545_itr(dev);
	ev->rdtr_1024ns = e82545_reg(dev, E82545_RDTR);
	ev->radv_1024ns = e82545_reg(dev, E82545_RADV);
	ev->tidv_1024ns = e82545_reg(dev, E82545_TIDV);
	ev->tadv_1024ns = e82545_reg(dev, E82545_TADV);
	if (dev->x.xs_msix) {
		msix_event(dev, ev);
		return;
	}
	if (intr_timed(&dev->moder, ev))
		ev->now_ns = dev->ops->eo_now(dev->arg);

	v = e82545_moderate(&dev->moder, ev);
	dev->moder = v.next;
	e82545_reg_set(dev, E82545_ICR, v.icr);

	intr_asked(dev, ev);
	if (v.put_off) {
		e82545_count(dev, E82545_C_INTR_HELD, 1);
		E82545_PROBE(dev, INTR_HELD, v.icr & ev->ims,
		    v.next.last_ns + ev->itr_256ns * 256ULL - ev->now_ns);
	}
	if (v.drop)
		dev->ops->eo_intr(dev->arg, false);
	if (v.fire) {
		e82545_count(dev, E82545_C_INTR_SENT, 1);
		E82545_PROBE(dev, INTR_SENT, v.icr & ev->ims, ev->now_ns,
		    ev->itr_256ns * 256ULL);
		dev->ops->eo_intr(dev->arg, true);
	}
	if (v.arm_ns != 0)
		e82545_intr_arm(dev, ev->now_ns + v.arm_ns);
}

void
e82545_intr_again(struct e82545 *dev)
{
	struct e82545_moder_event ev = { .raise = 0 };

	intr_event(dev, &ev);
}

void
e82545_intr_taken(struct e82545 *dev)
{
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	if (dev->moder.asserted) {
		e82545_reg_set(dev, E82545_ICR, 0);
		e82545_intr_again(dev);
	}
}

void
e82545_intr_reset(struct e82545 *dev)
{
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	if (dev->moder.asserted)
		dev->ops->eo_intr(dev->arg, false);
	memset(&dev->moder, 0, sizeof(dev->moder));
	if (dev->armed_ns != 0) {
		dev->armed_ns = 0;
		dev->ops->eo_timer(dev->arg, 0);
	}
}

/* A bit that is no vector's. */
#define	OFF_LINE	(1U << 31)

uint32_t
e82545_intr_off(const struct e82545 *dev)
{
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	if (dev->x.xs_msix)
		return (e82574_vectors_off(dev));
	return (e82545_reg(dev, E82545_IMS) == 0 ? OFF_LINE : 0);
}

void
e82545_intr_withdraw(const struct e82545 *dev, uint32_t off)
{
	if (off != 0 && dev->ops->eo_withdraw != NULL)
		dev->ops->eo_withdraw(dev->arg, off & ~OFF_LINE);
}

void
e82545_intr_timer(struct e82545 *dev)
{
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	dev->armed_ns = 0;
	e82545_intr_again(dev);
	if (e82545_csb_placed(dev))
		dev->csb.ops->ecb_arm(dev);
}

void
e82545_intr_restored(struct e82545 *dev, bool asserted)
{
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	if (dev->moder.asserted != asserted)
		dev->ops->eo_intr(dev->arg, !asserted);
	if (dev->armed_ns != 0) {
		dev->armed_ns = 0;
		dev->ops->eo_timer(dev->arg, 0);
	}
}

/*
 * Save or restore a deadline, as the time left plus 1 ns; 0 if the timer is
 * off.
 */
static void
snap_deadline(struct e82545_snap *s, uint64_t *deadline_ns)
{
	uint64_t left_ns;

	left_ns = *deadline_ns == 0 ? 0 :
	    MAX(*deadline_ns, s->now_ns) - s->now_ns + 1;
	e82545_snap_u64(s, &left_ns, DELAY_MAX_NS + 1);
	if (s->restore != NULL)
		*deadline_ns = left_ns == 0 ? 0 : s->now_ns + left_ns - 1;
}

void
e82545_snap_last(struct e82545_snap *s, uint64_t *last_ns)
{
	uint64_t ago_ns;

	ago_ns = *last_ns == 0 ? 0 : MAX(s->now_ns - *last_ns, 1);
	if (ago_ns > THROTTLE_MAX_NS)
		ago_ns = 0;
	e82545_snap_u64(s, &ago_ns, THROTTLE_MAX_NS);
	if (s->restore != NULL)
		*last_ns = ago_ns == 0 ? 0 : ago_ns < s->now_ns ?
		    s->now_ns - ago_ns : 1;
}

void
e82545_intr_snap(struct e82545 *dev, struct e82545_snap *s)
{
	struct e82545_moderation *m = &dev->moder;

	e82545_snap_last(s, &m->last_ns);
	snap_deadline(s, &m->rx_packet_ns);
	snap_deadline(s, &m->rx_absolute_ns);
	snap_deadline(s, &m->tx_packet_ns);
	snap_deadline(s, &m->tx_absolute_ns);
	e82545_snap_bool(s, &m->asserted);
	e82545_snap_bool(s, &m->held);
	e82545_snap_check(s, !m->asserted || !m->held);
	e82545_snap_check(s, (!m->asserted && !m->held) ||
	    (e82545_reg(dev, E82545_ICR) & e82545_reg(dev, E82545_IMS)) != 0);
}

/* Take over the state: ICR and the line change one after the other. */
bool
e82545_intr_salvage(struct e82545 *dev, const struct e82545 *old)
{
	struct e82545_moderation *m = &dev->moder;
	const bool pending = (e82545_reg(dev, E82545_ICR) &
	    e82545_reg(dev, E82545_IMS)) != 0;

	*m = old->moder;
	m->asserted = e82545_salvage_bool(&old->moder.asserted) && pending;
	m->held = e82545_salvage_bool(&old->moder.held) && pending &&
	    !m->asserted;
	return (true);
}

void
e82545_intr_raise(struct e82545 *dev, uint32_t causes)
{
	struct e82545_moder_event ev = { .raise = causes };

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	if (causes != 0)
		intr_event(dev, &ev);
}

void
e82545_intr_tx(struct e82545 *dev, unsigned int queue, bool done, bool delayed,
    uint32_t causes)
{
	struct e82545_moder_event ev = {
		.raise = causes, .queue = queue, .tx = done,
		.tx_delayed = delayed
	};

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	if (done || causes != 0)
		intr_event(dev, &ev);
}

void
e82545_intr_rx(struct e82545 *dev, unsigned int queue, bool done,
    uint32_t causes)
{
	struct e82545_moder_event ev = {
		.raise = causes, .queue = queue, .rx = done
	};

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	if (done || causes != 0)
		intr_event(dev, &ev);
}

/*
 * Registers.
 */

/* Read and clear all causes, also masked ones: section 13.4.17. */
uint32_t
e82545_icr_read(struct e82545 *dev, uint32_t off)
{
	uint32_t icr;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	icr = e82545_reg(dev, off);
	if (icr != 0) {
		if (e82545_csb_placed(dev))
			dev->csb.ops->ecb_icr_read(dev);
		e82545_reg_set(dev, off, 0);
		e82545_intr_again(dev);
	}
	return (icr);
}

/* Write 1 to clear. */
void
e82545_icr_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	e82545_reg_set(dev, off, e82545_reg(dev, off) & ~value);
	e82545_intr_again(dev);
}

void
e82545_ics_write(struct e82545 *dev, uint32_t off __unused, uint32_t value)
{
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	e82545_intr_raise(dev, value);
}

void
e82545_ims_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	struct e82545_moder_event ev = {
		.raise = e82545_csb_placed(dev) ?
		    dev->csb.ops->ecb_unmask(dev, value) : 0
	};

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	e82545_reg_set(dev, off, e82545_reg(dev, off) | value);
	intr_event(dev, &ev);
}

void
e82545_imc_write(struct e82545 *dev, uint32_t off __unused, uint32_t value)
{
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	e82545_reg_set(dev, E82545_IMS,
	    e82545_reg(dev, E82545_IMS) & ~value);
	e82545_intr_again(dev);
	dev->intr_off = e82545_intr_off(dev);
}

void
e82545_itr_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	e82545_reg_set(dev, off, value);
	e82545_intr_again(dev);
}

/*
 * Write RDTR, whose bit FPD expires the receive timers, and reads as 0: section
 * 13.4.30.
 */
void
e82545_rdtr_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	e82545_reg_set(dev, off, value & ~E82545_RDTR_FPD);
	if ((value & E82545_RDTR_FPD) != 0)
		e82545_intr_raise(dev, E82545_ICR_RXT0);
}
