/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The adapter's model and a hostile guest.  The guest writes registers, rings,
 * the CSB and memory, even while the model uses them; the network sends and
 * takes frames; time passes.  Invariants:
 *
 *  - The model accesses only guest memory that it got from eo_map(), until it
 *    returns: all other memory is poisoned (ASan).  While bus mastering is
 *    off, or the model is paused, it asks for none, and neither sends nor takes
 *    frames.
 *  - A call does a bounded amount of work: memory mapped, frames sent and
 *    taken.
 *  - Every frame is counted once.  Transmit: tx_frames counts frames queued,
 *    and all counters together the packets in the ring, unless the guest
 *    changed it meanwhile or there was TSO.  Receive: frames taken are
 *    received, or dropped with a reason.
 *  - At the end, after a reset, a driver starts, sends and receives.
 *  - If the guest's driver is lem(4), lem10_guest.h, nothing else writes
 *    registers and memory.  Its frames are sent in order, each once, and it
 *    takes those of the network in order, each once; those dropped are counted.
 *    In the end none is left, as far as interrupts and the timer drive it.  It
 *    is interrupted for frames sent if, and only if, it asks for that.
 *  - An input has the same effect without the fast paths: it runs twice, with
 *    the model's workers and with those of e82545_general.c, and frames,
 *    interrupts, memory and snapshots are equal.  Inputs that change memory
 *    during a call are not compared: the two read it at different times.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/mman.h>

#include <sanitizer/asan_interface.h>

#include <net/paravirt.h>

#include <stdlib.h>
#include <string.h>

#include "e1000_faults.h"
#include "e82545_general.h"
#include "e82545_host.h"
#include "lem10_guest.h"
#include "model.h"

/* Calls of eo_map() in a batch: rings, CSB, descriptors and packets. */
#define	TX_MAPS_MAX	(1024 + 256 + 8)
#define	RX_MAPS_MAX	(1024 + 8)
/* Frames taken in a batch, and waiting in the network. */
#define	RX_BATCH_MAX	256
#define	WAITING_MAX	64
/*
 * Calls of e82545_tx() until it is idle: rounds of polling the CSB, which are
 * limited, and a batch for each TSO segment of a ring.
 */
#define	TX_CALLS_MAX	100000
#define	TX_RING_MAX	65536		/* descriptors */
/* Interrupts and timers until lem(4) has nothing to do. */
#define	LEM_ROUNDS_MAX	10000

/* The host's, of which some are replaced. */
static struct e82545_ops model_ops;
static struct frame_source host_source;

static struct {
	struct host	*h;
	uint8_t		*far;
	bool		 paused;
	bool		 bus;		/* mastering is on */
	/* The driver's tails and CSB. */
	uint32_t	 txtail, rxtail;
	uint64_t	 csb;
	/* One access changes memory. */
	uint32_t	 race_in;	/* 0: none */
	uint64_t	 race_gpa, race_value;
	/* Of one call. */
	unsigned int	 maps, sent, taken_now;
	/* Of one input. */
	uint64_t	 accepted, refused, taken;
	uint64_t	 effect;	/* digest of the results */
	bool		 raced;		/* memory has changed in a call */
	bool		 race;		/* an operation asked for that */
	bool		 cut;		/* TSO was used since reset */
	int64_t		 open;		/* outcomes, less packets in the ring */
	/* lem(4). */
	bool		 lem;		/* drives the adapter */
	uint32_t	 injected, seq;	/* frames; the last one sent */
	uint64_t	 before[E82545_NCOUNTERS];
	bool		 in_model;	/* a call is under way */
	bool		 in_when;	/* a call or an action of lem(4) is */
	uint32_t	 when_in;	/* accesses of the model; 0: none */
	const struct op	*when;		/* the operations that then happen */
	unsigned int	 nwhen, happened;
} m;
static struct lem10 lem;

static void op_run(const struct op *);

/* The workers: the model's, or the general ones. */
static enum e82545_tx_state (*tx)(struct e82545 *);
static enum e82545_rx_state (*rx)(struct e82545 *);
static void (*rx_direct)(struct e82545 *, struct frame_source *);

/* FNV-1a, of 8 bytes at a time. */
static void
digest(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t word;
	size_t n;

	for (; len > 0; p += n, len -= n) {
		n = MIN(len, sizeof(word));
		word = 0;
		memcpy(&word, p, n);
		m.effect = (m.effect ^ word ^ n) * 0x100000001b3;
		m.effect ^= m.effect >> 32;
	}
}

static void
digest_number(uint64_t n)
{
	digest(&n, sizeof(n));
}

/*
 * Guest memory.
 */

static uint8_t *
memory(uint64_t gpa, size_t len)
{
	if (gpa < MODEL_RAM && len <= MODEL_RAM - gpa)
		return (m.h->ram + gpa);
	if (gpa >= MODEL_FAR && gpa - MODEL_FAR < MODEL_FAR_SIZE &&
	    len <= MODEL_FAR_SIZE - (gpa - MODEL_FAR))
		return (m.far + (gpa - MODEL_FAR));
	return (NULL);
}

static void
put64(uint64_t gpa, uint64_t value)
{
	uint8_t *p = memory(gpa, sizeof(value));

	if (p != NULL)
		memcpy(p, &value, sizeof(value));
}

static void
put32(uint64_t gpa, uint32_t value)
{
	uint8_t *p = memory(gpa, sizeof(value));

	if (p != NULL)
		memcpy(p, &value, sizeof(value));
}

/* Another CPU of the guest may access poisoned memory. */
__attribute__((__no_sanitize__("address", "undefined")))
static void
race(void)
{
	uint8_t *p;
	size_t i, n;

	if (m.race_in == 0 || --m.race_in != 0)
		return;
	p = memory(m.race_gpa, sizeof(m.race_value));
	n = m.lem ? sizeof(uint32_t) : sizeof(m.race_value);
	for (i = 0; p != NULL && i < n; i++)
		p[i] = m.race_value >> (8 * i);
	m.raced = true;
}

/* The operations of MODEL_WHEN happen. */
static void
when(void)
{
	unsigned int n;

	n = m.nwhen;
	m.nwhen = 0;
	m.happened++;
	m.in_when = true;
	for (; n > 0; n--)
		op_run(m.when++);
	m.in_when = false;
}

static void
lem_hook(struct lem10 *l __unused)
{
	when();
}

/* Another CPU of the guest runs lem(4), which accesses poisoned memory. */
static void
race_lem(void)
{
	if (m.when_in == 0 || --m.when_in != 0)
		return;
	ASAN_UNPOISON_MEMORY_REGION(m.h->ram, MODEL_RAM);
	m.in_model = true;
	when();
	m.in_model = false;
}

static void
call_begin(void)
{
	if (m.in_model)
		return;
	m.maps = m.sent = m.taken_now = 0;
	ASAN_POISON_MEMORY_REGION(m.h->ram, MODEL_RAM);
	ASAN_POISON_MEMORY_REGION(m.far, MODEL_FAR_SIZE);
}

static void
call_end(void)
{
	if (m.in_model)
		return;
	ASAN_UNPOISON_MEMORY_REGION(m.h->ram, MODEL_RAM);
	ASAN_UNPOISON_MEMORY_REGION(m.far, MODEL_FAR_SIZE);
}

/*
 * The host of the model's tests, which counts memory and frames.
 */

static void *
model_map(void *arg __unused, uint64_t gpa, size_t len)
{
	void *p;

	race();
	m.maps++;
	INVARIANT(len > 0);
	INVARIANT(m.bus && !m.paused);
	p = memory(gpa, len);
	if (p != NULL)
		ASAN_UNPOISON_MEMORY_REGION(p, len);
	return (p);
}

/* A frame from lem(4): in order, and not for the second time. */
static void
lem_sends(const struct frame *frame)
{
	uint32_t seq;

	INVARIANT(frame->f_niov == 1 && frame->f_len == LEM10_LEN);
	seq = be32dec((uint8_t *)frame->f_iov[0].iov_base + LEM10_SEQ);
	INVARIANT(seq > m.seq && seq <= lem.posted);
	m.seq = seq;
}

static bool
model_send(struct frame_port *port, const struct frame *frame)
{
	bool ok;
	int i;

	INVARIANT(m.bus);
	race();
	race_lem();
	if (m.lem)
		lem_sends(frame);
	m.sent++;
	for (i = 0; i < frame->f_niov; i++)
		digest(frame->f_iov[i].iov_base, frame->f_iov[i].iov_len);
	ok = host_port_ops.fpo_send(port, frame);
	digest_number(ok);
	if (ok)
		m.accepted++;
	else
		m.refused++;
	return (ok);
}

static void
model_flush(struct frame_port *port)
{
	race();
	race_lem();
	host_port_ops.fpo_flush(port);
}

static void
model_sync(struct frame_port *port)
{
	host_port_ops.fpo_sync(port);
}

static const struct frame_port_ops model_port_ops = {
	.fpo_send = model_send,
	.fpo_flush = model_flush,
	.fpo_sync = model_sync,
};

static bool
model_peek(struct frame_source *source, struct frame *frame)
{
	race();
	race_lem();
	return (host_source.fs_peek(source, frame));
}

static void
model_next(struct frame_source *source)
{
	INVARIANT(m.bus);
	m.taken_now++;
	m.taken++;
	host_source.fs_next(source);
}

/*
 * Registers and rings.
 */

static uint32_t
get(uint32_t off)
{
	return (e82545_read(m.h->dev, E82545_BAR_MEM, off, 4));
}

static void
set(uint32_t off, uint32_t value)
{
	call_begin();
	e82545_write(m.h->dev, E82545_BAR_MEM, off, 4, value);
	call_end();
}

static uint64_t
ring_base(uint32_t low)
{
	return ((uint64_t)get(low + 4) << 32 | get(low));
}

static uint32_t
ring_size(uint32_t len)
{
	return (MAX(get(len) / sizeof(union e82545_txd), 1));
}

/* A reset drops incomplete packets. */
static void
forget(void)
{
	m.open = 0;
	m.cut = false;
}

/*
 * Transmit, and the outcome of each packet.
 */

static int64_t
outcomes(void)
{
	static const enum e82545_counter which[] = {
		E82545_C_TX_FRAME, E82545_C_LOOPBACK, E82545_C_TX_NOROOM,
		E82545_C_TX_LINKDOWN, E82545_C_TX_BAD_DESC,
		E82545_C_TX_BAD_ADDR, E82545_C_TX_BAD_LEN
	};
	uint64_t counters[E82545_NCOUNTERS];
	int64_t n;
	size_t i;

	e82545_counters(m.h->dev, counters);
	n = 0;
	for (i = 0; i < nitems(which); i++)
		n += counters[which[i]];
	return (n);
}

/* Copied before the call: the model writes into the ring. */
static uint32_t ring[TX_RING_MAX];

static void
ring_copy(uint32_t size)
{
	uint64_t base = ring_base(E82545_TDBAL);
	uint8_t *p;
	uint32_t i;

	memset(ring, 0, size * sizeof(ring[0]));
	p = memory(base, size * sizeof(union e82545_txd));
	for (i = 0; p != NULL && i < size; i++)
		memcpy(&ring[i], p + i * sizeof(union e82545_txd) +
		    offsetof(union e82545_txd, lower), sizeof(ring[0]));
	if (m.csb < base + size * sizeof(union e82545_txd) &&
	    base < m.csb + NET_PARAVIRT_CSB_SIZE)
		m.raced = true;		/* the model writes there */
}

static bool
is_context(uint32_t lower)
{
	return ((lower & (E82545_TXD_DEXT | E82545_TXD_DTYP)) ==
	    (E82545_TXD_DEXT | E82545_TXD_DTYP_CONTEXT));
}

/* Whether the CSB is on, and lem(4) wants interrupts for frames sent. */
static bool
lem_wants(bool wanted)
{
	return (lem.csb->guest_csb_on != 0 &&
	    (lem.csb->guest_need_txkick != 0) == wanted);
}

static bool
lem_transmit(void)
{
	const bool loud = lem_wants(true) &&
	    (get(E82545_IMS) & E82545_ICR_TXDW) != 0;
	const bool quiet = lem_wants(false) && !m.h->line;
	const unsigned int happened = m.happened;
	const uint64_t accepted = m.accepted;
	bool more;

	call_begin();
	more = tx(m.h->dev);
	call_end();
	INVARIANT(m.sent <= E82545_TX_FRAMES);
	if (m.raced || m.happened != happened)
		return (more);
	if (loud && lem_wants(true) && m.accepted > accepted)
		INVARIANT(m.h->line);
	if (quiet && lem_wants(false))
		INVARIANT(!m.h->line);
	return (more);
}

static bool
transmit(void)
{
	uint32_t head, i, size;
	int64_t before;
	bool more;

	if (m.lem)
		return (lem_transmit());

	head = get(E82545_TDH);
	size = MIN(ring_size(E82545_TDLEN), TX_RING_MAX);
	if (!m.raced && !m.cut)
		ring_copy(size);
	before = outcomes();
	call_begin();
	more = tx(m.h->dev);
	call_end();
	INVARIANT(m.maps <= TX_MAPS_MAX);
	INVARIANT(m.sent <= E82545_TX_FRAMES);
	if (m.raced || m.cut || head >= size)
		return (more);
	for (i = 0; i < size; i++)
		if ((ring[i] & E82545_TXD_DEXT) != 0 &&
		    (ring[i] & E82545_TXD_TSE) != 0)
			m.cut = true;
	if (m.cut)
		return (more);
	m.open += outcomes() - before;
	for (i = head; i != get(E82545_TDH); i = (i + 1) % size)
		if ((ring[i] & E82545_TXD_EOP) != 0 && !is_context(ring[i]))
			m.open--;
	/* A packet that is too long is counted before its end. */
	INVARIANT(m.open == 0 || m.open == 1);
	return (more);
}

static void
receive(unsigned int calls)
{
	enum e82545_rx_state state;

	do {
		call_begin();
		state = rx(m.h->dev);
		call_end();
		INVARIANT(m.maps <= RX_MAPS_MAX);
		INVARIANT(m.taken_now <= RX_BATCH_MAX);
	} while (state == E82545_RX_MORE && --calls > 0);
}

/* Receive until all frames are taken or one does not fit. */
static void
receive_direct(void)
{
	uint64_t stalls;
	unsigned int waiting;

	waiting = host_rx_pending(m.h) - m.injected;
	stalls = host_counter(m.h, E82545_C_RX_STALL);
	call_begin();
	rx_direct(m.h->dev, &m.h->source);
	call_end();
	waiting += m.injected;
	INVARIANT(m.taken_now + host_rx_pending(m.h) == waiting);
	INVARIANT(m.maps <= (waiting / RX_BATCH_MAX + 2) * RX_MAPS_MAX);
	INVARIANT(host_counter(m.h, E82545_C_RX_STALL) == stalls);
}

static void
check_counters(void)
{
	uint64_t c[E82545_NCOUNTERS], dropped;

	e82545_counters(m.h->dev, c);
	INVARIANT(c[E82545_C_TX_FRAME] == m.accepted);
	INVARIANT(c[E82545_C_TX_NOROOM] >= m.refused);
	dropped = c[E82545_C_RX_FILTERED] + c[E82545_C_RX_OVERSIZE] +
	    c[E82545_C_RX_DISABLED] + c[E82545_C_RX_BAD_ADDR];
	INVARIANT(c[E82545_C_RX_FRAME] + dropped >= m.taken);
	INVARIANT(c[E82545_C_RX_FRAME] + dropped <=
	    m.taken + c[E82545_C_LOOPBACK]);
}

/*
 * Operations.
 */

static void
op_up(const struct op *op)
{
	set(E82545_CTRL, E82545_CTRL_SLU | (op->d & E82545_CTRL_VME));
	set(E82545_TDBAL, 0x10000);
	set(E82545_TDBAH, 0);
	set(E82545_TDLEN, op->a * 128);
	set(E82545_TDH, 0);
	set(E82545_TDT, 0);
	set(E82545_RDBAL, 0x18000);
	set(E82545_RDBAH, 0);
	set(E82545_RDLEN, op->b * 128);
	set(E82545_RDH, 0);
	set(E82545_RDT, 0);
	m.txtail = m.rxtail = 0;
	set(E82545_IMS, E82545_ICR_ALL);
	set(E82545_TCTL, E82545_TCTL_EN | (op->d & E82545_TCTL_PSP));
	set(E82545_RCTL, op->c);
}

static void
op_txd(const struct op *op)
{
	uint32_t size = ring_size(E82545_TDLEN);
	uint64_t at;

	m.txtail %= size;
	at = ring_base(E82545_TDBAL) + m.txtail * sizeof(union e82545_txd);
	put64(at, op->d);
	put64(at + 8, op->c | (uint64_t)op->b << 40 | (uint64_t)op->a << 56);
	m.txtail = (m.txtail + 1) % size;
}

static void
op_tx_kick(const struct op *op)
{
	uint32_t tail = m.txtail + (int8_t)op->a;

	if ((op->b & 1) != 0) {
		put32(m.csb + offsetof(struct paravirt_csb, guest_tdt), tail);
		if ((op->b & 2) != 0)
			return;
	}
	set(E82545_TDT, tail);
}

static void
op_rx_give(const struct op *op)
{
	uint32_t i, size = ring_size(E82545_RDLEN);
	uint64_t base = ring_base(E82545_RDBAL);

	for (i = 0; i < op->a; i++) {
		m.rxtail %= size;
		put64(base + m.rxtail * sizeof(struct e82545_rxd),
		    op->d + i * 2048);
		m.rxtail = (m.rxtail + 1) % size;
	}
	if ((op->b & 1) != 0) {
		put32(m.csb + offsetof(struct paravirt_csb, guest_rdt),
		    m.rxtail);
		if ((op->b & 2) != 0)
			return;
	}
	set(E82545_RDT, m.rxtail);
}

static void
op_access(const struct op *op)
{
	static const int sizes[] = { 1, 2, 4, 8 };
	int size = (op->b & 32) != 0 ? 3 : sizes[(op->b >> 2) % 4];

	call_begin();
	if ((op->b & 16) != 0)
		e82545_write(m.h->dev, op->a & 7, op->c + (op->b & 3), size,
		    op->d);
	else
		e82545_read(m.h->dev, op->a & 7, op->c + (op->b & 3), size);
	call_end();
	if ((op->b & 16) != 0)
		m.open = 0, m.cut = true;	/* may have been a reset */
}

static void
op_frame(const struct op *op)
{
	static const uint8_t dst[8][6] = {
		{ 0x00, 0x0c, 0x29, 0x12, 0x34, 0x56 },	/* host_mac */
		{ 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
		{ 0x01, 0x00, 0x5e, 0x00, 0x00, 0x01 },
		{ 0x02, 0x00, 0x00, 0x00, 0x00, 0x07 },
	};
	static uint8_t frame[UINT16_MAX + 1];
	size_t len = MAX(op->b, 1);
	int pieces = 1 + (op->a >> 3);

	if (host_rx_pending(m.h) >= WAITING_MAX)
		return;
	memset(frame, op->c, len);
	memcpy(frame, dst[op->a % 4], 6);
	/* IPv4 and TCP, IPv6 and UDP, with a tag or without; or nothing. */
	if ((op->a & 4) != 0)
		be32enc(frame + 12, 0x81000000 | (op->c & 0xffff));
	be16enc(frame + 12 + (op->a & 4), (op->c & 1) != 0 ? 0x0800 : 0x86dd);
	frame[14 + (op->a & 4)] = (op->c & 1) != 0 ? 0x40 | (op->c >> 8 & 15) :
	    0x60;
	be16enc(frame + 16 + (op->a & 4), op->c >> 16);
	frame[(op->c & 1) != 0 ? 23 : 20] = (op->c & 2) != 0 ? 6 : 17;
	memcpy(frame + 26, &op->d, sizeof(op->d));
	host_inject(m.h, frame, len, MIN(pieces, (int)len));
}

static void
op_pause(bool pause)
{
	if (pause == m.paused)
		return;
	call_begin();
	if (pause)
		e82545_pause(m.h->dev);
	else
		e82545_resume(m.h->dev);
	call_end();
	m.paused = pause;
}

static void
op_bus(bool on)
{
	call_begin();
	m.bus = on || m.bus;
	e82545_bus_master(m.h->dev, on);
	m.bus = on;
	call_end();
}

/*
 * lem(4).
 */

/* The guest starts over, with lem(4) as its driver. */
static void
lem_start(uint32_t ndesc)
{
	struct host *h = m.h;

	op_pause(false);
	op_bus(true);
	call_begin();
	e82545_reset(h->dev);
	e82545_link(h->dev, true);
	call_end();
	/* Drop what is in the network. */
	receive(UINT32_MAX);
	madvise(h->ram, MODEL_RAM, MADV_DONTNEED);
	h->tx_space = UINT32_MAX;
	h->brk = 0x10000;
	forget();
	m.race_in = 0;
	lem10_up(&lem, h, ndesc);
	lem.hook = lem_hook;
	/* As after the first frame. */
	lem.csb->guest_need_txkick = 2;
	m.csb = lem.csb_gpa;
	m.lem = true;
	e82545_counters(h->dev, m.before);
}

static uint64_t
lem_counted(enum e82545_counter counter)
{
	return (host_counter(m.h, counter) - m.before[counter]);
}

/* Whether lem(4) has a thread for an operation that waits for its locks. */
static bool
lem_free(void)
{
	bool rx, tx;

	rx = pthread_mutex_trylock(&lem.rx_mtx) == 0;
	if (rx)
		pthread_mutex_unlock(&lem.rx_mtx);
	tx = pthread_mutex_trylock(&lem.tx_mtx) == 0;
	if (tx)
		pthread_mutex_unlock(&lem.tx_mtx);
	return (rx && tx);
}

/*
 * Send `n' frames and want no interrupt for them, as a driver may that does not
 * wait for one.
 */
static void
lem_quiet(uint32_t n)
{
	lem.csb->guest_need_txkick = 0;
	lem10_send(&lem, n);
	while (transmit())
		;
	lem.csb->guest_need_txkick = 2;
	pthread_mutex_lock(&lem.tx_mtx);
	lem10_txeof(&lem);
	pthread_mutex_unlock(&lem.tx_mtx);
}

/*
 * A paused guest does not run, and one that starts has turned bus mastering on.
 */
static void
op_lem(const struct op *op)
{
	if (m.paused)
		return;
	switch (op->b % LEM_NOPS) {
	case LEM_INTR:
		if (!lem.in_task && lem_free())
			lem10_intr(&lem);
		break;
	case LEM_STRAY:
		if (!lem.in_task && lem_free())
			lem10_handler(&lem);
		break;
	case LEM_SEND:
		if (lem_free())
			lem10_send(&lem, 1 + op->c % 16);
		break;
	case LEM_CSB:
		lem10_csb(&lem, op->c & 1);
		break;
	case LEM_COMBINE:
		/* It then waits for interrupts. */
		if (lem.csb->guest_need_txkick != 0)
			lem.combining = op->c & 1;
		break;
	case LEM_QUIET:
		if (lem_free() && !m.in_model && !lem.tx_full &&
		    lem.combining == 0 && !lem.combined && !lem.tx_pending)
			lem_quiet(1 + op->c % 16);
		break;
	case LEM_RESTART:
		if (lem.in_task || m.in_model || !m.bus || !lem_free())
			break;
		lem10_init(&lem, NULL);
		/* Else it could wait for an interrupt of before the reset. */
		lem.combined = lem.tx_pending = false;
		break;
	case LEM_RX_RESTART:
		if (!lem.in_task && !m.in_model && m.bus && lem_free())
			lem10_rx_restart(&lem);
		break;
	}
}

static void
lem_frame(unsigned int pieces)
{
	uint8_t frame[LEM10_LEN];

	if (host_rx_pending(m.h) >= WAITING_MAX)
		return;
	host_make_frame(frame, sizeof(frame), host_mac, 0);
	be32enc(frame + LEM10_SEQ, ++m.injected);
	host_inject(m.h, frame, sizeof(frame), pieces);
}

static void
op_when(const struct op *op)
{
	if (m.in_model || lem.hook_in != 0 || m.when_in != 0)
		return;
	m.happened = 0;
	if ((op->c & 1) != 0) {
		m.when_in = 1 + op->b % 64;
		m.race = true;
	} else
		lem.hook_in = 1 + op->b % 256;
}

/*
 * Whether an operation can happen with lem(4) as the driver: not one that plays
 * another, nor one that waits for a batch from inside of it.
 */
static bool
lem_allows(const struct op *op)
{
	switch (op->kind) {
	case MODEL_LEM:
	case MODEL_FRAME:
	case MODEL_LINK:
	case MODEL_ROOM:
	case MODEL_WHEN:
	case MODEL_RACE:
		return (true);
	case MODEL_ACCESS:
		/* The adapter ignores it. */
		return ((op->b & 32) != 0 || (op->b & 8) == 0);
	case MODEL_TX:
	case MODEL_RX:
	case MODEL_TIME:
	case MODEL_BUS:
		return (!m.in_model);
	case MODEL_PAUSE:
		return (!m.in_when);
	default:
		return (false);
	}
}

/* Nothing is left to do, and every frame is accounted for. */
static void
lem_settle(void)
{
	struct host *h = m.h;
	unsigned int i;

	lem.hook_in = m.when_in = 0;
	h->tx_space = UINT32_MAX;
	call_begin();
	e82545_link(h->dev, true);
	call_end();
	for (i = 0; i < LEM_ROUNDS_MAX; i++) {
		while (transmit())
			;
		receive(UINT32_MAX);
		if (lem10_intr(&lem))
			continue;
		if (lem.tx_pending) {
			/* It makes up for a kick on the next interrupt. */
			e82545_link(h->dev, false);
			e82545_link(h->dev, true);
			continue;
		}
		if (h->timer_ns == 0)
			break;
		call_begin();
		host_advance(h, h->timer_ns > h->now_ns ?
		    h->timer_ns - h->now_ns : 0);
		call_end();
	}
	INVARIANT(i < LEM_ROUNDS_MAX);
	/* What is sent, it may take later. */
	lem10_txeof(&lem);
	INVARIANT(lem10_all_sent(&lem));
	INVARIANT(lem.posted - lem.tx_lost == lem_counted(E82545_C_TX_FRAME) +
	    lem_counted(E82545_C_TX_NOROOM) +
	    lem_counted(E82545_C_TX_LINKDOWN));
	INVARIANT(lem.disorder == 0);
	INVARIANT(lem.taken + lem.rx_lost == lem_counted(E82545_C_RX_FRAME));
	INVARIANT(lem.taken + lem.rx_lost + lem_counted(E82545_C_RX_DISABLED) ==
	    m.injected);
	INVARIANT(lem_counted(E82545_C_CSB_BAD) == 0);
	lem10_down(&lem);
	m.lem = false;
}

static void
op_reset(const struct op *op)
{
	if ((op->a & 1) != 0)
		set(E82545_CTRL, E82545_CTRL_RST);
	else {
		call_begin();
		e82545_reset(m.h->dev);
		call_end();
	}
	forget();
}

static void
op_run(const struct op *op)
{
	unsigned int i;

	if (m.lem && !lem_allows(op))
		return;
	switch (op->kind) {
	case MODEL_WRITE:
		set(op->b * 4, op->c);
		if (op->b * 4 <= E82545_CTRL_DUP && (op->c &
		    E82545_CTRL_RST) != 0)
			forget();
		break;
	case MODEL_ACCESS:
		op_access(op);
		break;
	case MODEL_UP:
		op_up(op);
		break;
	case MODEL_TXD:
		op_txd(op);
		break;
	case MODEL_TX_KICK:
		op_tx_kick(op);
		break;
	case MODEL_RX_GIVE:
		op_rx_give(op);
		break;
	case MODEL_CSB:
		put32(m.csb + op->a * 4, op->c);
		break;
	case MODEL_PLACE:
		m.csb = op->d;
		set(E82545_CSBAH, op->d >> 32);
		set(E82545_CSBAL, op->d);
		break;
	case MODEL_MEMORY:
		put64(op->c, op->d);
		break;
	case MODEL_TX:
		for (i = 0; i < op->a && transmit(); i++)
			;
		break;
	case MODEL_RX:
		if ((op->b & 1) != 0)
			receive_direct();
		else
			receive(MAX(op->a, 1));
		break;
	case MODEL_FRAME:
		if (m.lem)
			lem_frame(1 + (op->a >> 6));
		else
			op_frame(op);
		break;
	case MODEL_TIME:
		call_begin();
		host_advance(m.h, op->c);
		call_end();
		break;
	case MODEL_LINK:
		call_begin();
		e82545_link(m.h->dev, op->a & 1);
		call_end();
		break;
	case MODEL_RESET:
		op_reset(op);
		break;
	case MODEL_PAUSE:
		op_pause(op->a & 1);
		break;
	case MODEL_ROOM:
		m.h->tx_space = op->b;
		break;
	case MODEL_RACE:
		m.race = true;
		m.race_in = op->b;
		m.race_gpa = op->c;
		m.race_value = op->d;
		if (m.lem) {
			/* The guest stores only this at any time. */
			m.race_gpa = m.csb +
			    offsetof(struct paravirt_csb, guest_csb_on);
			m.race_value = op->d & 1;
		}
		break;
	case MODEL_BUS:
		op_bus(op->a & 1);
		break;
	case MODEL_LEM:
		if (m.lem)
			op_lem(op);
		else if (op->b % LEM_NOPS == LEM_START)
			lem_start(16 + op->c % 8 * 8);
		break;
	case MODEL_WHEN:
		if (m.lem)
			op_when(op);
		break;
	}
}

/*
 * The end: all work is done, and the adapter works after a reset.
 */

static void
settle(void)
{
	unsigned int i;

	m.race_in = 0;
	m.raced = true;
	op_pause(false);
	op_bus(true);
	if (m.lem)
		lem_settle();
	put32(m.csb + offsetof(struct paravirt_csb, host_txcycles_lim), 8);
	for (i = 0; i < TX_CALLS_MAX && transmit(); i++)
		;
	INVARIANT(i < TX_CALLS_MAX);
	check_counters();
}

/* The adapter and its surroundings. */
static void
digest_state(void)
{
	struct host *h = m.h;
	size_t size;
	void *buf;

	digest(h->ram, MODEL_RAM);
	digest(m.far, MODEL_FAR_SIZE);
	digest_number(h->nraised);
	digest_number(h->line);
	digest_number(h->timer_ns);
	digest_number(m.taken);
	op_pause(true);
	size = e82545_snapshot_size(h->dev);
	buf = malloc(size);
	INVARIANT(buf != NULL);
	INVARIANT(e82545_snapshot_save(h->dev, buf, size) == 0);
	digest(buf, size);
	free(buf);
	op_pause(false);
}

static void
works(bool by_guest)
{
	uint8_t out[60], in[1514], buf[2048];
	struct host *h = m.h;

	if (by_guest) {
		set(E82545_CSBAH, 0);
		set(E82545_CSBAL, 0);
		set(E82545_CTRL, E82545_CTRL_RST);
	} else
		e82545_reset(h->dev);
	e82545_link(h->dev, true);
	receive(UINT32_MAX);
	INVARIANT(host_rx_pending(h) == 0);
	madvise(h->ram, MODEL_RAM, MADV_DONTNEED);
	h->tx_space = UINT32_MAX;
	h->tx_discard = false;
	h->brk = 0x10000;
	host_up(h, 16, 16, 2048);
	host_make_frame(out, sizeof(out), host_mac, 1);
	host_tx_frame(h, out, sizeof(out), 0);
	host_tx_go(h);
	host_make_frame(in, sizeof(in), host_mac, 2);
	host_inject(h, in, sizeof(in), 3);
	host_run(h);
	INVARIANT(host_tx_done(h, 0));
	INVARIANT(host_sent(h) == 1);
	INVARIANT(host_sent_frame(h, 0)->len == sizeof(out));
	INVARIANT(memcmp(host_sent_frame(h, 0)->data, out, sizeof(out)) == 0);
	INVARIANT(host_rx_take(h, buf, sizeof(buf), NULL) == sizeof(in));
	INVARIANT(memcmp(buf, in, sizeof(in)) == 0);
	check_counters();
}

static void
begin(void)
{
	struct e82545_config config;
	struct host *h;

	if (m.h == NULL) {
		m.h = host_create(MODEL_RAM);
		e82545_destroy(m.h->dev);
		model_ops = host_ops;
		model_ops.eo_map = model_map;
		m.h->port.fp_ops = &model_port_ops;
		host_source = m.h->source;
		m.h->source.fs_peek = model_peek;
		m.h->source.fs_next = model_next;
	}
	h = m.h;
	memset(&m, 0, sizeof(m));
	m.h = h;
	m.far = malloc(MODEL_FAR_SIZE);
	INVARIANT(m.far != NULL);
	memset(m.far, 0, MODEL_FAR_SIZE);
	madvise(h->ram, MODEL_RAM, MADV_DONTNEED);
	h->now_ns = 1000000000;
	h->timer_ns = 0;
	h->line = h->kicked = h->ready = false;
	h->nedges = h->nraised = 0;
	h->tx_space = UINT32_MAX;
	h->tx_discard = true;
	memset(&config, 0, sizeof(config));
	memcpy(config.ec_mac, host_mac, sizeof(host_mac));
	config.ec_csb = true;
	config.ec_name = "fuzz";
	h->dev = e82545_create(&config, &model_ops, h, &h->port);
	INVARIANT(h->dev != NULL);
	op_bus(true);
}

static void
end(void)
{
	host_sent_clear(m.h);
	e82545_destroy(m.h->dev);
	m.h->dev = NULL;
	free(m.far);
}

/* Run an input.  Returns the digest of its effect, 0 if there is none. */
static uint64_t
run(const struct op *ops, size_t n)
{
	uint64_t effect;
	size_t i;

	begin();
	for (i = 0; i < n; i++) {
		op_run(&ops[i]);
		if (ops[i].kind == MODEL_WHEN && m.lem && m.nwhen == 0) {
			/* These happen later. */
			m.when = &ops[i + 1];
			m.nwhen = MIN(ops[i].a & 7, n - i - 1);
			i += m.nwhen;
		}
	}
	settle();
	digest_state();
	effect = m.race ? 0 : m.effect;
	works(n % 2 == 0);
	end();
	return (effect);
}

int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int	LLVMFuzzerInitialize(int *argc, char ***argv);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct op ops[OPS_MAX];
	uint64_t effect;
	size_t n;

	n = ops_read(data, size, ops);
	tx = e82545_tx;
	rx = e82545_rx;
	rx_direct = e82545_rx_direct;
	effect = run(ops, n);
	tx = e82545_general_tx;
	rx = e82545_general_rx;
	rx_direct = e82545_general_rx_direct;
	INVARIANT(run(ops, n) == effect);
	return (0);
}

/* Before all inputs: the faults of others.  Mutations insert them, too. */
int
LLVMFuzzerInitialize(int *argc __unused, char ***argv __unused)
{
	struct op ops[OPS_MAX];
	unsigned int i;
	size_t n;

	for (i = 0; i < e1000_nfaults; i++) {
		n = model_fault(&e1000_faults[i], ops, OPS_MAX);
		LLVMFuzzerTestOneInput((const uint8_t *)ops, n * sizeof(*ops));
	}
	return (0);
}
