/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See e82545_crash.h.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/mman.h>
#include <sys/systm.h>
#include <dev/e1000/e82545_reg.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if __has_feature(address_sanitizer)
#include <sanitizer/lsan_interface.h>
#endif

#include "e82545_check.h"
#include "e82545_crash.h"
#include "require.h"

/* Guest memory. */
#define	TXRING		0x1000
#define	RXRING		0x2000
#define	CSB_PAGE	0x3000
#define	TXBUF		0x8000
#define	TXBUF_SIZE	1024
#define	RXBUF		0x4000
#define	RXBUF_SIZE	256

#define	FRAME_NUMBER	34	/* where a frame has it, behind its headers */

#define	WINDOW_FEW	5		/* descriptors; a frame has up to 4 */
#define	NEW_RDH		4
#define	OLD_RDT		14

#define	KINDS		7
#define	TSO_PAYLEN	900

static union e82545_txd *
txd(struct crash *c, uint32_t i)
{
	return ((union e82545_txd *)(void *)(c->ram + TXRING) + i);
}

bool crash_extended;
unsigned int crash_queue;
bool crash_numbers;
bool crash_old_rdt;

static struct e82545_rxd *
rxd(struct crash *c, uint32_t i)
{
	return ((struct e82545_rxd *)(void *)(c->ram + RXRING) + i);
}

static struct paravirt_csb *
page(struct crash *c)
{
	return ((struct paravirt_csb *)(void *)(c->ram + CSB_PAGE));
}

#define	PAGE_GET(c, field)	le32toh(atomic_load_acq_32(&page(c)->field))
#define	PAGE_SET(c, field, value)					\
	atomic_store_rel_32(&page(c)->field, htole32(value))

/*
 * What is sent.
 */

static uint8_t payload[1200];

/* Of packets with TSO, bytes. */
static uint16_t mss = 200;

/*
 * The packets differ in kind and payload.  Those of kinds 1 to 3 have the
 * context of kind 0, those of kind 6 that of kind 5.
 */
static struct packet
packet_of(uint32_t k)
{
	struct packet p;

	memset(&p, 0, sizeof(p));
	packet_fill(payload, sizeof(payload), k + 1);
	p.payload = payload;
	p.paylen = 100 + k % 16;
	p.id = k;
	if (k % KINDS < 4) {
		p.udp = true;
		p.ipopts = 2;
	} else if (k % KINDS == 4) {
		p.tcpopts = 3;
		p.paylen = TSO_PAYLEN;
	}
	return (p);
}

static uint64_t
hash(const struct iovec *iov, int n)
{
	uint64_t h = 0xcbf29ce484222325;
	size_t j;
	int i;

	for (i = 0; i < n; i++)
		for (j = 0; j < iov[i].iov_len; j++)
			h = (h ^ ((uint8_t *)iov[i].iov_base)[j]) *
			    0x100000001b3;
	return (h);
}

static uint32_t
tso_frames(void)
{
	return (howmany(TSO_PAYLEN, mss));
}

uint32_t
crash_frames(uint32_t packet)
{
	return (packet + (packet + KINDS - 5) / KINDS * (tso_frames() - 1));
}

uint64_t
crash_hash(uint32_t frame)
{
	const uint32_t per = KINDS + tso_frames() - 1;
	uint32_t k = frame / per * KINDS, n = frame % per;
	struct packet p;
	struct iovec iov;
	uint8_t buf[2048];

	if (n >= 4 + tso_frames())
		k += n - (tso_frames() - 1);
	else
		k += MIN(n, 4);
	p = packet_of(k);
	iov.iov_base = buf;
	iov.iov_len = k % KINDS == 4 ?
	    packet_build_segment(&p, (n - 4) * mss, mss, buf) :
	    packet_build(&p, buf);
	return (hash(&iov, 1));
}

/*
 * The host.
 */

/* A point at which a process may end by itself. */
static void
point(struct crash *c)
{
	if (++c->point == c->die_at)
		_exit(0);
}

static void *
crash_map(void *arg, uint64_t gpa, size_t len, unsigned int access __unused)
{
	struct crash *c = arg;

	point(c);
	return (gpa > CRASH_RAM || len > CRASH_RAM - gpa ? NULL : c->ram + gpa);
}

static void
crash_intr(void *arg, bool asserted)
{
	struct crash *c = arg;

	point(c);
	c->line = asserted;
	c->rises += asserted;
}

static uint64_t
crash_now(void *arg)
{
	struct crash *c = arg;

	return (atomic_load_64(&c->now_ns));
}

static void
crash_timer(void *arg, uint64_t when_ns)
{
	struct crash *c = arg;

	c->timer_ns = when_ns;
}

static void
crash_tx_kick(void *arg)
{
	struct crash *c = arg;

	c->kicked = true;
}

static void
crash_rx_ready(void *arg)
{
	struct crash *c = arg;

	c->ready = true;
	c->stalled = false;
}

static const struct e82545_ops crash_ops = {
	.eo_map = crash_map,
	.eo_intr = crash_intr,
	.eo_now = crash_now,
	.eo_timer = crash_timer,
	.eo_tx_kick = crash_tx_kick,
	.eo_rx_ready = crash_rx_ready,
};

static bool
crash_send(struct frame_port *port, const struct frame *frame)
{
	struct crash *c = __containerof(port, struct crash, port);

	point(c);
	REQUIRE(c->nqueued < E82545_TX_FRAMES);
	c->queued[c->nqueued++] = hash(frame->f_iov, frame->f_niov);
	return (true);
}

static void
crash_flush(struct frame_port *port)
{
	struct crash *c = __containerof(port, struct crash, port);
	unsigned int i;

	point(c);
	for (i = 0; i < c->nqueued; i++) {
		c->sent[c->nsent % CRASH_SENT] = c->queued[i];
		atomic_store_rel_32(&c->nsent, c->nsent + 1);
	}
	c->nqueued = 0;
	point(c);
}

static void
crash_sync(struct frame_port *port)
{
	struct crash *c = __containerof(port, struct crash, port);

	c->batch_rx = c->rx_next;
}

static const struct frame_port_ops crash_port_ops = {
	.fpo_send = crash_send,
	.fpo_flush = crash_flush,
	.fpo_sync = crash_sync,
};

static size_t
rx_len(uint32_t k)
{
	static const size_t lens[] = { 60, 200, 700, 61, 900 };

	return (lens[k % nitems(lens)]);
}

static void
rx_fill(uint8_t *data, uint32_t k)
{
	size_t i;

	memcpy(data, host_mac, 6);
	memset(data + 6, 2, 6);
	for (i = 12; i < rx_len(k); i++)
		data[i] = k * 7 + i;
	/* Of IPv4, so that RSS has a hash. */
	be16enc(data + 12, 0x0800);
	data[14] = 0x45;
	be32enc(data + FRAME_NUMBER, k);
}

static bool
crash_peek(struct frame_source *source, struct frame *frame)
{
	struct crash *c = __containerof(source, struct crash, source);
	const uint32_t k = c->rx_next;
	uint8_t *data = c->rx_data[k % nitems(c->rx_data)];

	if (k >= atomic_load_acq_32(&c->rx_limit))
		return (false);
	rx_fill(data, k);
	frame->f_iov[0].iov_base = data;
	frame->f_iov[0].iov_len = rx_len(k);
	frame_set(frame, 1, rx_len(k));
	return (true);
}

static void
crash_next(struct frame_source *source)
{
	struct crash *c = __containerof(source, struct crash, source);

	atomic_store_rel_32(&c->rx_next, c->rx_next + 1);
}

struct crash *
crash_alloc(void)
{
	struct crash *c;

	c = mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANON, -1, 0);
	REQUIRE(c != MAP_FAILED);
#if __has_feature(address_sanitizer)
	/* The model has pointers there. */
	__lsan_register_root_region(c, sizeof(*c));
#endif
	return (c);
}

void
crash_free(struct crash *c)
{
#if __has_feature(address_sanitizer)
	__lsan_unregister_root_region(c, sizeof(*c));
#endif
	munmap(c, sizeof(*c));
}

void
crash_config(struct crash *c, struct e82545_config *config)
{
	memset(config, 0, sizeof(*config));
	memcpy(config->ec_mac, host_mac, sizeof(config->ec_mac));
	config->ec_kind = crash_extended ? E82545_KIND_82574L :
	    E82545_KIND_EM;
	config->ec_csb = c->csb;
	config->ec_name = "crash";
}

static void
crash_create(struct crash *c, void *memory)
{
	struct e82545_config config;

	crash_config(c, &config);
	memset(memory, 0, CRASH_MODEL);
	config.ec_memory = memory;
	config.ec_memory_size = CRASH_MODEL;
	REQUIRE(e82545_memory_size() <= CRASH_MODEL);
	c->source.fs_peek = crash_peek;
	c->source.fs_next = crash_next;
	c->port.fp_ops = &crash_port_ops;
	c->port.fp_source = &c->source;
	c->port.fp_frame_max = UINT32_MAX;
	c->line = c->kicked = c->ready = c->stalled = false;
	c->nqueued = 0;
	c->timer_ns = 0;
	c->dev = e82545_create(&config, &crash_ops, c, &c->port);
	REQUIRE(c->dev != NULL);
	e82545_bus_master(c->dev, true);
}

/* Until this is done, the old memory is what counts. */
int
crash_recover(struct crash *c)
{
	struct e82545_config config;
	uint8_t buf[65536], *old = c->model[c->cur];
	ssize_t len;
	int error;

	c->in_model = false;
	c->die_at = 0;
	crash_config(c, &config);
	len = e82545_salvage(old, CRASH_MODEL, &config, c->now_ns, buf,
	    sizeof(buf));
	if (len == -1)
		return (errno);
	crash_create(c, c->model[!c->cur]);
	e82545_pause(c->dev);
	error = e82545_snapshot_restore(c->dev, buf, len);
	if (error == 0)
		error = e82545_recover(c->dev, old, CRASH_MODEL);
	if (error != 0) {
		e82545_destroy(c->dev);
		return (error);
	}
	c->cur = !c->cur;
	e82545_resume(c->dev);
	return (0);
}

void
crash_down(struct crash *c)
{
	e82545_destroy(c->dev);
}

void
crash_host(struct crash *c)
{
	enum e82545_tx_state tx;
	enum e82545_rx_state rx;
	unsigned int n;

	c->in_model = true;
	if (c->timer_ns != 0 && c->timer_ns <= atomic_load_64(&c->now_ns)) {
		c->timer_ns = 0;
		e82545_timer(c->dev);
	}
	for (n = 0; n < 8 && c->kicked; n++) {
		c->kicked = false;
		c->batch_sent = c->nsent;
		tx = e82545_tx(c->dev);
		c->kicked |= tx != E82545_TX_IDLE;
	}
	if (!c->stalled && c->rx_next < atomic_load_acq_32(&c->rx_limit))
		c->ready = true;
	for (n = 0; n < 8 && c->ready; n++) {
		c->ready = false;
		rx = e82545_rx(c->dev);
		c->ready |= rx == E82545_RX_MORE;
		c->stalled = rx == E82545_RX_STALLED && !c->ready;
	}
	c->in_model = false;
}

/*
 * The guest.
 */

void
crash_serve(struct crash *c)
{
	struct crash_access *a = &c->access;

	if (atomic_load_acq_32(&a->state) != CRASH_ASKED)
		return;
	c->in_model = true;
	if (a->write)
		e82545_write(c->dev, E82545_BAR_MEM, a->off, 4, a->value);
	else
		a->value = e82545_read(c->dev, E82545_BAR_MEM, a->off, 4);
	c->in_model = false;
	atomic_store_rel_32(&a->state, CRASH_DONE);
}

/* With `remote', the access may be pending when this returns. */
static uint32_t
access_reg(struct crash *c, uint32_t off, uint32_t value, bool write)
{
	struct crash_access *a = &c->access;

	a->off = off;
	a->value = value;
	a->write = write;
	atomic_store_rel_32(&a->state, CRASH_ASKED);
	if (c->remote)
		return (0);
	crash_serve(c);
	atomic_store_32(&a->state, CRASH_IDLE);
	return (a->value);
}

static void
wr(struct crash *c, uint32_t off, uint32_t value)
{
	access_reg(c, off, value, true);
}

static void
put(struct crash *c, const uint8_t *data, size_t len, uint32_t lower,
    uint32_t upper)
{
	const uint32_t i = c->tx_tail;
	union e82545_txd *d = txd(c, i);

	REQUIRE(len <= TXBUF_SIZE);
	memcpy(c->ram + TXBUF + i * TXBUF_SIZE, data, len);
	d->addr = htole64(TXBUF + i * TXBUF_SIZE);
	d->lower = htole32(lower | len);
	d->upper = htole32(upper);
	c->tx_tail = (i + 1) % CRASH_TXD;
}

static void
put_context(struct crash *c, const struct packet *p, uint16_t tso)
{
	const size_t l3 = packet_l3(p), l4 = packet_l4(p);
	union e82545_txd *d = txd(c, c->tx_tail);

	memset(d, 0, sizeof(*d));
	d->context.ipcss = l3;
	d->context.ipcso = l3 + 10;
	d->context.ipcse = htole16(l4 - 1);
	d->context.tucss = l4;
	d->context.tucso = l4 + (p->udp ? 6 : 16);
	d->context.lower = htole32(TXD_CONTEXT | E82545_TXD_TUCMD_IP |
	    (p->udp ? 0 : E82545_TXD_TUCMD_TCP) |
	    (tso != 0 ? p->paylen | E82545_TXD_TUCMD_TSE : 0));
	d->context.hdrlen = tso != 0 ? packet_hdrlen(p) : 0;
	d->context.mss = htole16(tso);
	c->tx_tail = (c->tx_tail + 1) % CRASH_TXD;
}

static void
put_packet(struct crash *c, uint32_t k)
{
	const bool rs = k % KINDS != 3 || k + 1 == c->packets;
	const uint32_t last = E82545_TXD_EOP | E82545_TXD_IFCS |
	    (rs ? E82545_TXD_RS : 0);
	struct packet p = packet_of(k);
	const uint32_t popts = tx_popts(&p) << 8;
	uint8_t buf[2048];
	size_t len;

	len = k % KINDS == 4 ? packet_build_tso(&p, buf) :
	    packet_build(&p, buf);
	if (k % KINDS != 4)
		packet_prepare(&p, buf, true);
	switch (k % KINDS) {
	case 0:
	case 5:
		put_context(c, &p, 0);
		/* FALLTHROUGH */
	default:
		put(c, buf, len, TXD_DATA | last, popts);
		break;
	case 4:
		put_context(c, &p, mss);
		put(c, buf, 500, TXD_DATA | E82545_TXD_TSE, popts);
		put(c, buf + 500, len - 500, TXD_DATA | E82545_TXD_TSE | last,
		    popts);
		break;
	case 2:				/* as it is */
		packet_build(&p, buf);
		put(c, buf, len, last, 0);
		break;
	case 6:				/* several descriptors */
		put(c, buf, 60, TXD_DATA, popts);
		put(c, buf + 60, 30, TXD_DATA | E82545_TXD_RS, 0);
		put(c, buf + 90, len - 90, TXD_DATA | last, 0);
		break;
	}
	if (rs) {
		c->report[c->report_tail % CRASH_TXD].last =
		    (c->tx_tail + CRASH_TXD - 1) % CRASH_TXD;
		c->report[c->report_tail++ % CRASH_TXD].packet = k;
	}
}

/* Take back what was sent, and post more.  Returns whether any was. */
static bool
look_tx(struct crash *c)
{
	const uint32_t old = c->tx_tail;
	bool any = false;
	uint32_t i;

	while (c->report_head != c->report_tail) {
		i = c->report[c->report_head % CRASH_TXD].last;
		if ((le32toh(atomic_load_acq_32(&txd(c, i)->upper)) &
		    E82545_TXD_DD) == 0)
			break;
		c->told = c->report[c->report_head % CRASH_TXD].packet + 1;
		c->tx_clean = (i + 1) % CRASH_TXD;
		c->report_head++;
		any = true;
	}
	while (c->next_packet < c->packets &&
	    (c->tx_clean + CRASH_TXD - c->tx_tail - 1) % CRASH_TXD >= 4)
		put_packet(c, c->next_packet++);
	if (c->tx_tail != old) {
		if (c->csb)
			PAGE_SET(c, guest_tdt, c->tx_tail);
		c->tdt = true;
	}
	return (any);
}

/* The status and the length of a receive descriptor. */
static uint8_t *
rx_status(struct crash *c, uint32_t i)
{
	return ((uint8_t *)rxd(c, i) + (crash_extended ?
	    offsetof(struct e82574_rxd, status) :
	    offsetof(struct e82545_rxd, status)));
}

static uint32_t
rx_length(struct crash *c, uint32_t i)
{
	return (le16dec((uint8_t *)rxd(c, i) + (crash_extended ?
	    offsetof(struct e82574_rxd, length) :
	    offsetof(struct e82545_rxd, length))));
}

/* The frame whose last descriptor is `last' is there. */
static void
took(struct crash *c, uint32_t last)
{
	uint8_t buf[CRASH_RXD * RXBUF_SIZE], want[2048];
	size_t len = 0;
	uint32_t i, k, n;

	for (i = c->rx_index;; i = (i + 1) % CRASH_RXD) {
		n = rx_length(c, i);
		REQUIRE(n > 0 && n <= RXBUF_SIZE);
		memcpy(buf + len, c->ram + RXBUF + i * RXBUF_SIZE, n);
		len += n;
		if (i == last)
			break;
	}
	REQUIRE(len >= 60);
	k = be32dec(buf + FRAME_NUMBER);
	REQUIRE(len == rx_len(k));
	rx_fill(want, k);
	REQUIRE(memcmp(buf, want, len) == 0);
	/* In order, and each once. */
	REQUIRE(k >= c->rx_frame);
	if (k > c->rx_frame) {
		if (c->nlost == 0)
			c->lost_first = c->rx_frame;
		c->lost_last = k - 1;
		c->nlost += k - c->rx_frame;
	}
	c->rx_frame = k + 1;
	c->nreceived++;
}

/* The index up to which the guest posts descriptors. */
static uint32_t
rx_tail(const struct crash *c)
{
	return ((c->rx_index + c->window) % CRASH_RXD);
}

/* Take frames, and post their descriptors.  Returns whether any came. */
static bool
look_rx(struct crash *c)
{
	const uint32_t start = c->rx_index;
	uint32_t i = start;
	uint8_t status;

	for (;;) {
		status = atomic_load_acq_8(rx_status(c, i));
		if ((status & E82545_RXD_DD) == 0)
			break;
		/* It was posted. */
		REQUIRE((i + CRASH_RXD - start) % CRASH_RXD < c->window);
		if ((status & E82545_RXD_EOP) != 0) {
			took(c, i);
			do {
				memset(c->ram + RXBUF + c->rx_index *
				    RXBUF_SIZE, 0xee, RXBUF_SIZE);
				rxd(c, c->rx_index)->addr = htole64(RXBUF +
				    c->rx_index * RXBUF_SIZE);
				atomic_store_rel_8(rx_status(c, c->rx_index),
				    0);
				c->rx_index = (c->rx_index + 1) % CRASH_RXD;
			} while (c->rx_index != (i + 1) % CRASH_RXD);
		}
		i = (i + 1) % CRASH_RXD;
		if (i == start)
			break;
	}
	if (c->rx_index == start)
		return (false);
	if (c->csb)
		PAGE_SET(c, guest_rdt, rx_tail(c));
	c->rdt = true;
	return (true);
}

/* Whether host_rxkick_at was reached. */
static bool
rx_kick_wanted(struct crash *c, uint32_t tail)
{
	const uint32_t at = PAGE_GET(c, host_rxkick_at);

	return (at < CRASH_RXD && (at + CRASH_RXD - c->rx_posted - 1) %
	    CRASH_RXD < (tail + CRASH_RXD - c->rx_posted) % CRASH_RXD);
}

/* Write the registers, if the host wants that. */
static void
kick(struct crash *c)
{
	const uint32_t tail = rx_tail(c);

	if (c->csb)
		atomic_thread_fence_seq_cst();
	if (c->tdt && atomic_load_32(&c->access.state) == CRASH_IDLE) {
		c->tdt = false;
		if (!c->csb || PAGE_GET(c, host_need_txkick) != 0)
			wr(c, E82545_TDT + E82574_QUEUE(crash_queue),
			    c->tx_tail);
	}
	if (c->rdt && atomic_load_32(&c->access.state) == CRASH_IDLE) {
		c->rdt = false;
		if (!c->csb || rx_kick_wanted(c, tail)) {
			c->rx_posted = tail;
			wr(c, E82545_RDT + E82574_QUEUE(crash_queue), tail);
		} else
			c->rx_posted = tail;
	}
}

static bool
look(struct crash *c)
{
	bool any;

	any = look_tx(c);
	any |= look_rx(c);
	return (any);
}

void
crash_look(struct crash *c)
{
	look(c);
}

static void
need(struct crash *c, bool on)
{
	const uint32_t value = !on ? 0 : !c->numbers ? 1 : (c->asked += 2);

	PAGE_SET(c, guest_need_txkick, value);
	PAGE_SET(c, guest_need_rxkick, value);
	atomic_thread_fence_seq_cst();
}

void
crash_guest(struct crash *c)
{
	struct crash_access *a = &c->access;
	const uint32_t state = atomic_load_acq_32(&a->state);

	if (state == CRASH_ASKED)
		return;
	if (state == CRASH_DONE) {
		atomic_store_32(&a->state, CRASH_IDLE);
		/* ICR was read. */
		if (!a->write && a->value != 0)
			c->awake = true;
	}
	kick(c);
	if (atomic_load_32(&a->state) != CRASH_IDLE)
		return;
	if (!c->awake) {
		if (c->numbers ? c->seen == c->rises : !c->line)
			return;
		c->seen = c->rises;
		if (!c->numbers && access_reg(c, E82545_ICR, 0, false) == 0)
			return;
		c->awake = true;
	}
	if (!c->csb) {
		look(c);
		c->awake = false;
	} else {
		if (c->idle == 0)
			need(c, false);
		c->idle = look(c) ? 1 : c->idle + 1;
		if (c->idle > 3) {
			c->idle = 0;
			need(c, true);
			c->awake = look(c);
		}
	}
	kick(c);
}

void
crash_up(struct crash *c, bool csb, uint32_t packets, uint16_t tso)
{
	const uint32_t regs = E82574_QUEUE(crash_queue);
	uint32_t i;

	memset(c, 0, sizeof(*c));
	mss = c->tso = tso;
	c->csb = csb;
	c->numbers = csb && crash_numbers;
	c->asked = 1;
	c->packets = packets;
	c->now_ns = 1000000000;
	crash_create(c, c->model[0]);
	for (i = 0; i < CRASH_RXD; i++)
		rxd(c, i)->addr = htole64(RXBUF + i * RXBUF_SIZE);
	c->window = crash_old_rdt ? WINDOW_FEW : CRASH_RXD - 1;
	c->rx_index = crash_old_rdt ? NEW_RDH : 0;
	c->rx_posted = rx_tail(c);
	wr(c, E82545_CTRL, E82545_CTRL_SLU | E82545_CTRL_FD);
	wr(c, E82545_TDBAL + regs, TXRING);
	wr(c, E82545_TDLEN + regs, CRASH_TXD * sizeof(union e82545_txd));
	if (crash_extended)
		wr(c, E82574_RFCTL, E82574_RFCTL_EXTEN);
	wr(c, E82545_RDBAL + regs, RXRING);
	wr(c, E82545_RDLEN + regs, CRASH_RXD * sizeof(struct e82545_rxd));
	if (crash_queue != 0) {
		wr(c, E82545_RXCSUM, E82574_RXCSUM_PCSD);
		wr(c, E82574_MRQC, E82574_MRQC_ENABLE_RSS | E82574_MRQC_IP4);
		for (i = 0; i < E82574_RETA_COUNT; i++)
			wr(c, E82574_RETA + 4 * i, 0x80808080);
	}
	if (csb) {
		PAGE_SET(c, host_need_txkick, 1);
		PAGE_SET(c, guest_need_txkick, 1);
		PAGE_SET(c, guest_need_rxkick, 1);
		PAGE_SET(c, pad[0], crash_numbers);
		PAGE_SET(c, guest_txkick_at, NET_PARAVIRT_NONE);
		PAGE_SET(c, guest_rdt, crash_old_rdt ? OLD_RDT : c->rx_posted);
		PAGE_SET(c, host_txcycles_lim, 2);
		wr(c, E82545_CSBAH, 0);
		wr(c, E82545_CSBAL, CSB_PAGE);
		PAGE_SET(c, guest_csb_on, 1);
		/* The ring is started again. */
		if (crash_old_rdt)
			wr(c, E82545_RDH, NEW_RDH);
	}
	wr(c, E82545_TCTL, E82545_TCTL_EN | E82545_TCTL_PSP);
	wr(c, E82545_RCTL, E82545_RCTL_EN | E82545_RCTL_SECRC |
	    host_rctl_bsize(RXBUF_SIZE));
	wr(c, E82545_RDT + regs, c->rx_posted);
	wr(c, E82545_IMS, E82545_ICR_ALL & ~E82545_ICR_TXD_LOW);
	c->awake = true;
	crash_guest(c);
}

void
crash_run(struct crash *c, unsigned int rounds, uint32_t n)
{
	unsigned int after = 30;

	while (rounds-- > 0 && after > 0) {
		c->rx_limit = MIN(c->rx_limit + 3, n);
		crash_host(c);
		crash_guest(c);
		c->now_ns += 2000000;
		if (c->told == c->packets && c->rx_next == n)
			after--;
	}
}
