/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The model and a hostile guest, of an 82545EM, or of an 82574L if an input
 * has MODEL_MSIX.  The guest writes registers, rings, the CSB and memory, even
 * while the model uses them; the network sends and takes frames; time passes.
 * Invariants:
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
 *    is interrupted for frames sent if, and only if, it asks for that, and at
 *    once for frames received after a write to IMS.
 *  - An input has the same effect without the fast paths: it runs twice, with
 *    the model's workers and with those of e82545_general.c, and frames,
 *    interrupts, memory and snapshots are equal, and the snapshot is restored.
 *    Inputs that change memory during a call are not compared: the two read it
 *    at different times.
 *  - The memory that the adapter lies in can be salvaged at the end, and, with
 *    some bytes of it changed, is refused or not.
 *
 * Here are the operations that play a hostile driver, an input's run and its
 * end.  model_host.c is the host, model_work.c runs the workers and checks
 * their work, model_lem.c has lem(4).  model_ops.c generates operations.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/mman.h>

#include <net/paravirt.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "e1000_faults.h"
#include "e82545_general.h"
#include "model_impl.h"

/*
 * Calls of e82545_tx() until it is idle: rounds of polling the CSB, which are
 * limited, and a batch for each TSO segment of a ring.
 */
#define	TX_CALLS_MAX	100000

/* The workers: the model's, and the general ones. */
static const struct model_workers fast_workers = {
	e82545_tx, e82545_rx, e82545_rx_direct
}, general_workers = {
	e82545_general_tx, e82545_general_rx, e82545_general_rx_direct
};

/*
 * Operations.
 */

/* Registers of the driver's queue are so many bytes after queue 0's. */
static uint32_t
queue_regs(void)
{
	return (E82574_QUEUE(m.queue));
}

/* The second queues, behind the first ones, and RSS, which needs EXTEN, too. */
static void
up_second(const struct op *op)
{
	const bool two = (op->d & 0x100) != 0;
	unsigned int i;

	reg_write(E82545_TDBAL + E82574_QUEUE(1), 0x20000);
	reg_write(E82545_TDLEN + E82574_QUEUE(1), two ? op->a * 128 : 0);
	reg_write(E82545_TDH + E82574_QUEUE(1), 0);
	reg_write(E82545_TDT + E82574_QUEUE(1), 0);
	reg_write(E82545_RDBAL + E82574_QUEUE(1), 0x28000);
	reg_write(E82545_RDLEN + E82574_QUEUE(1), two ? op->b * 128 : 0);
	reg_write(E82545_RDH + E82574_QUEUE(1), 0);
	reg_write(E82545_RDT + E82574_QUEUE(1), 0);
	reg_write(E82545_RXCSUM, two ? E82574_RXCSUM_PCSD : 0);
	reg_write(E82574_MRQC, two ? E82574_MRQC_ENABLE_RSS |
	    (0x1f << 16 & ~(op->c << 16)) : 0);
	for (i = 0; i < E82574_RETA_COUNT; i++)
		reg_write(E82574_RETA + 4 * i, 0x80008000);
	for (i = 0; i < E82574_RSSRK_COUNT; i++)
		reg_write(E82574_RSSRK + 4 * i, 0x9e3779b1 * (i + 1));
}

static void
op_queue(const struct op *op)
{
	uint32_t tail;

	if (m.kind != E82545_KIND_82574L || (op->a & 1) == m.queue)
		return;
	m.queue = op->a & 1;
	tail = m.txtail;
	m.txtail = m.txtail_other;
	m.txtail_other = tail;
	tail = m.rxtail;
	m.rxtail = m.rxtail_other;
	m.rxtail_other = tail;
}

static void
op_up(const struct op *op)
{
	reg_write(E82545_CTRL, E82545_CTRL_SLU | (op->d & E82545_CTRL_VME));
	reg_write(E82545_TDBAL, 0x10000);
	reg_write(E82545_TDBAH, 0);
	reg_write(E82545_TDLEN, op->a * 128);
	reg_write(E82545_TDH, 0);
	reg_write(E82545_TDT, 0);
	reg_write(E82545_RDBAL, 0x18000);
	reg_write(E82545_RDBAH, 0);
	reg_write(E82545_RDLEN, op->b * 128);
	reg_write(E82545_RDH, 0);
	reg_write(E82545_RDT, 0);
	m.txtail = m.rxtail = m.txtail_other = m.rxtail_other = 0;
	if (m.kind == E82545_KIND_82574L) {
		up_second(op);
		reg_write(E82574_RFCTL, op->d & E82574_RFCTL_EXTEN);
		reg_write(E82574_EIAC, op->d & E82574_ICR_MSIX);
		reg_write(E82574_IVAR, 0x000a0908);	/* as Linux */
	}
	reg_write(E82545_IMS, E82574_ICR_ALL);
	reg_write(E82545_TCTL, E82545_TCTL_EN | (op->d & E82545_TCTL_PSP));
	reg_write(E82545_RCTL, op->c);
}

static void
op_txd(const struct op *op)
{
	uint32_t size = ring_size(E82545_TDLEN + queue_regs());
	uint64_t at;

	m.txtail %= size;
	at = ring_base(E82545_TDBAL + queue_regs()) +
	    m.txtail * sizeof(union e82545_txd);
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
	reg_write(E82545_TDT + queue_regs(), tail);
}

static void
op_rx_give(const struct op *op)
{
	uint32_t i, size = ring_size(E82545_RDLEN + queue_regs());
	uint64_t base = ring_base(E82545_RDBAL + queue_regs());

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
	reg_write(E82545_RDT + queue_regs(), m.rxtail);
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
	/* TCP, UDP, or of IPv6 headers that are as the rest of the frame. */
	frame[(op->c & 1) != 0 ? 23 : 20] = (op->c & 2) != 0 ? 6 :
	    (op->c & 12) == 12 ? op->c : 17;
	memcpy(frame + 26, &op->d, sizeof(op->d));
	host_inject(m.h, frame, len, MIN(pieces, (int)len));
}

static void
op_packet(const struct op *op)
{
	static uint8_t frame[UINT16_MAX + 1];
	const bool udp = (op->a & 1) != 0, v6 = (op->a & 2) != 0;
	const uint32_t tag = op->a & 4, l4 = 14 + tag + (v6 ? 40 : 20);
	const uint32_t hdrlen = l4 + (udp ? 8 : 20);
	struct frame f = { 0 };
	size_t len = MIN(hdrlen + op->b, sizeof(frame));

	if (host_rx_pending(m.h) >= WAITING_MAX)
		return;
	memset(frame, op->c, len);
	memcpy(frame, host_mac, 6);
	if (tag != 0)
		be32enc(frame + 12, 0x81000064);
	be16enc(frame + 12 + tag, v6 ? 0x86dd : 0x0800);
	frame[14 + tag] = v6 ? 0x60 : 0x45;
	frame[l4 + 12] = 0x50;
	frame_set(&f, 2, len);
	f.f_flags = FRAME_CSUM_PARTIAL;
	f.f_csum_start = l4;
	f.f_csum_offset = udp ? 6 : 16;
	f.f_gso_type = op->c == 0 ? FRAME_GSO_NONE : udp ? FRAME_GSO_UDP_L4 :
	    v6 ? FRAME_GSO_TCPV6 : FRAME_GSO_TCPV4;
	f.f_gso_size = op->c;
	f.f_hdr_len = hdrlen;
	switch (op->d >> 16 & 7) {
	case 1:
		f.f_csum_start = op->d;
		break;
	case 2:
		f.f_csum_offset = op->d;
		break;
	case 3:
		f.f_gso_type = op->d;
		break;
	case 4:
		f.f_hdr_len = op->d;
		break;
	case 5:
		f.f_net_start = op->d;
		break;
	}
	m.offloads = true;
	host_inject_offload(m.h, &f, frame, len, MIN(2 + (op->a >> 3),
	    FRAME_MAXIOV));
}

static void
op_reset(const struct op *op)
{
	if ((op->a & 1) != 0)
		reg_write(E82545_CTRL, E82545_CTRL_RST);
	else {
		call_begin();
		e82545_reset(m.h->dev);
		call_end();
	}
	forget();
}

void
op_run(const struct op *op)
{
	unsigned int i;

	if (m.lem && !lem_allows(op))
		return;
	switch (op->kind) {
	case MODEL_WRITE:
		reg_write(op->b * 4, op->c);
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
		reg_write(E82545_CSBAH, op->d >> 32);
		reg_write(E82545_CSBAL, op->d);
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
		host_pause(op->a & 1);
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
		host_bus(op->a & 1);
		break;
	case MODEL_LEM:
		if (m.lem)
			lem_run(op);
		else if (op->b % LEM_NOPS == LEM_START && !m.offloads &&
		    !m.h->port.fp_offloads && m.kind == E82545_KIND_EM)
			lem_start(16 + op->c % 8 * 8, op->a & 1);
		break;
	case MODEL_WHEN:
		if (m.lem)
			lem_when(op);
		break;
	case MODEL_OFFLOADS:
		m.h->port.fp_offloads = !m.lem && (op->a & 1) != 0;
		break;
	case MODEL_PACKET:
		if (!m.lem)
			op_packet(op);
		break;
	case MODEL_MSIX:
		e82545_msix(m.h->dev, (op->a & 1) != 0);
		break;
	case MODEL_QUEUE:
		op_queue(op);
		break;
	}
}

/* The adapter that an input is for. */
static enum e82545_kind
kind_of(const struct op *ops, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (ops[i].kind == MODEL_MSIX)
			return (E82545_KIND_82574L);
	return (E82545_KIND_EM);
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
	host_pause(false);
	host_bus(true);
	if (m.lem)
		lem_settle();
	put32(m.csb + offsetof(struct paravirt_csb, host_txcycles_lim), 8);
	for (i = 0; i < TX_CALLS_MAX && transmit(); i++)
		;
	INVARIANT(i < TX_CALLS_MAX);
	check_counters();
}

/* Go on from what a crash would leave.  Returns as the step that failed. */
static int
salvage(void *memory)
{
	struct e82545_config config = { .ec_kind = m.kind, .ec_csb = E82545_CSB_ON };
	struct host *h = m.h;
	ssize_t size;
	void *buf;
	int error;

	size = e82545_salvage(memory, ADAPTER_MEMORY, &config, h->now_ns, NULL,
	    0);
	if (size == -1)
		return (errno);
	buf = malloc(size);
	INVARIANT(buf != NULL);
	INVARIANT(e82545_salvage(memory, ADAPTER_MEMORY, &config, h->now_ns,
	    buf, size) == size);
	error = e82545_snapshot_restore(h->dev, buf, size);
	free(buf);
	if (error == 0)
		error = host_recover(memory);
	return (error);
}

/* The same from memory that somebody has changed. */
static void
salvage_damaged(const uint8_t *memory)
{
	struct rng rng = { .state = m.taken | 1 };
	uint8_t *copy;
	unsigned int i;
	size_t off;
	int error;

	copy = malloc(ADAPTER_MEMORY);
	INVARIANT(copy != NULL);
	memcpy(copy, memory, ADAPTER_MEMORY);
	for (i = 1 + rng_below(&rng, 64); i > 0; i--) {
		off = rng_below(&rng, e82545_memory_size());
		copy[off] = rng_next(&rng);
	}
	error = salvage(copy);
	INVARIANT(error == 0 || error == EINVAL);
	free(copy);
}

/* The adapter and its surroundings. */
static void
digest_state(void)
{
	struct host *h = m.h;
	size_t size;
	void *buf, *memory;

	digest(h->ram, MODEL_RAM);
	digest(m.far, MODEL_FAR_SIZE);
	digest_number(h->nraised);
	digest_number(h->line);
	digest(h->nmessages, sizeof(h->nmessages));
	digest_number(h->timer_ns);
	digest_number(m.taken);
	host_pause(true);
	size = e82545_snapshot_size(h->dev);
	buf = malloc(size);
	INVARIANT(buf != NULL);
	INVARIANT(e82545_snapshot_save(h->dev, buf, size) == 0);
	digest(buf, size);
	memory = malloc(ADAPTER_MEMORY);
	INVARIANT(memory != NULL);
	memcpy(memory, model_memory, ADAPTER_MEMORY);
	INVARIANT(salvage(memory) == 0);
	salvage_damaged(memory);
	free(memory);
	INVARIANT(e82545_snapshot_restore(h->dev, buf, size) == 0);
	free(buf);
	host_pause(false);
}

static void
works(bool by_guest)
{
	uint8_t out[60], in[1514], buf[2048];
	struct host *h = m.h;

	if (by_guest) {
		reg_write(E82545_CSBAH, 0);
		reg_write(E82545_CSBAL, 0);
		reg_write(E82545_CTRL, E82545_CTRL_RST);
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

/* Run an input.  Returns the digest of its effect, 0 if there is none. */
static uint64_t
run(const struct op *ops, size_t n, const struct model_workers *workers)
{
	uint64_t effect;
	size_t i;

	model_begin(workers, kind_of(ops, n));
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
	model_end();
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
	effect = run(ops, n, &fast_workers);
	INVARIANT(run(ops, n, &general_workers) == effect);
	return (0);
}

static void
run_habits(void)
{
	struct op ops[OPS_MAX];
	uint32_t i, n;

	for (i = 0; i < 2 * HABIT_N * HABIT_TIMES; i++) {
		n = model_habit(i % 2, i / 2 % HABIT_N, i / 2 / HABIT_N, ops);
		LLVMFuzzerTestOneInput((const uint8_t *)ops, n * sizeof(*ops));
	}
}

/*
 * Before all inputs: the faults of others, and habits of lem(4).  Mutations
 * insert them, too, but what shows only at one of its accesses adds no coverage
 * that would keep the input.
 */
int
LLVMFuzzerInitialize(int *argc __unused, char ***argv __unused)
{
	struct op ops[OPS_MAX];
	unsigned int i;
	size_t n;

	for (i = 0; i < e1000_nfaults; i++) {
		n = model_fault(&e1000_faults[i], ops, OPS_MAX);
		LLVMFuzzerTestOneInput((const uint8_t *)ops, n * sizeof(*ops));
		/* The same with the other adapter. */
		memset(&ops[0], 0, sizeof(ops[0]));
		ops[0].kind = MODEL_MSIX;
		ops[0].a = i;
		n = 1 + model_fault(&e1000_faults[i], ops + 1, OPS_MAX - 1);
		LLVMFuzzerTestOneInput((const uint8_t *)ops, n * sizeof(*ops));
	}
	run_habits();
	return (0);
}
