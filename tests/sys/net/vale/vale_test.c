/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <sys/types.h>

#include <errno.h>
#include <poll.h>
#include <string.h>

#include <atf-c.h>

#include "vale_test.h"
#include "wait_until.h"

#define	HDR_LEN		14
#define	ADDRS_LEN	12	/* bytes of the two addresses */
#define	TAG_LEN		4

void
t_addr(uint8_t *addr, unsigned int station)
{
	if (station == EVERYBODY) {
		memset(addr, 0xff, 6);
		return;
	}
	memset(addr, 0, 6);
	addr[0] = 2;
	addr[4] = station >> 8;
	addr[5] = station;
}

static uint8_t
pattern(uint32_t seq, uint32_t i)
{
	return (seq * 31 + i * 7 + (i >> 8));
}

void
t_make(uint8_t *buf, uint32_t len, unsigned int dst, unsigned int src,
    uint32_t seq)
{
	uint32_t i, src32 = src;

	t_addr(buf, dst);
	t_addr(buf + 6, src);
	buf[12] = 0x88;
	buf[13] = 0xb5;
	memcpy(buf + HDR_LEN, &src32, sizeof(src32));
	memcpy(buf + HDR_LEN + 4, &seq, sizeof(seq));
	for (i = T_FRAME_MIN; i < len; i++)
		buf[i] = pattern(seq, i);
}

struct vale_desc *
t_open(const char *name, uint32_t tx_slots, uint32_t rx_slots)
{
	struct vale_params params = { .tx_slots = tx_slots,
	    .rx_slots = rx_slots };
	struct vale_desc *d;

	d = vale_open(name, &params);
	ATF_REQUIRE_MSG(d != NULL, "%s: %s", name, strerror(errno));
	return (d);
}

void
t_put(struct vale_desc *d, const uint8_t *buf, uint32_t len, uint32_t fraglen,
    bool indirect)
{
	struct netmap_ring *ring = d->txring;
	struct netmap_slot *slot;
	uint32_t head = ring->head, n;

	do {
		ATF_REQUIRE_MSG(head != ring->tail, "transmit ring is full");
		slot = &ring->slot[head];
		n = len < fraglen ? len : fraglen;
		slot->len = n;
		slot->flags = n < len ? NS_MOREFRAG : 0;
		if (indirect) {
			slot->flags |= NS_INDIRECT;
			slot->ptr = (uintptr_t)buf;
		} else
			memcpy(NETMAP_BUF(ring, slot->buf_idx), buf, n);
		buf += n;
		len -= n;
		head = nm_ring_next(ring, head);
	} while (len > 0);
	ring->head = ring->cur = head;
}

void
t_queue(struct vale_desc *d, uint32_t len, unsigned int dst, unsigned int src,
    uint32_t seq)
{
	static _Thread_local uint8_t buf[T_FRAME_MAX];

	t_make(buf, len, dst, src, seq);
	t_put(d, buf, len, d->txring->nr_buf_size, false);
}

void
t_send(struct vale_desc *d, uint32_t len, unsigned int dst, unsigned int src,
    uint32_t seq)
{
	t_queue(d, len, dst, src, seq);
	ATF_REQUIRE_EQ(0, vale_txsync(d));
}

bool
t_take(struct vale_desc *d, struct t_frame *f)
{
	static _Thread_local uint8_t buf[T_FRAME_MAX];
	struct netmap_ring *ring = d->rxring;
	struct netmap_slot *slot;
	uint32_t head = ring->head, i, slots;

	if (nm_ring_empty(ring))
		return (false);
	slots = NS_RFRAGS(&ring->slot[head]);
	f->tf_len = f->tf_slots = 0;
	do {
		ATF_REQUIRE(head != ring->tail);
		slot = &ring->slot[head];
		ATF_REQUIRE(slot->len <= ring->nr_buf_size);
		ATF_REQUIRE_EQ(slots, (uint32_t)NS_RFRAGS(slot));
		memcpy(buf + f->tf_len, NETMAP_BUF(ring, slot->buf_idx),
		    slot->len);
		f->tf_len += slot->len;
		f->tf_slots++;
		head = nm_ring_next(ring, head);
	} while ((slot->flags & NS_MOREFRAG) != 0);
	ATF_REQUIRE_EQ(slots, f->tf_slots);
	ring->head = ring->cur = head;

	ATF_REQUIRE(f->tf_len >= T_FRAME_MIN);
	memcpy(&f->tf_src, buf + HDR_LEN, sizeof(f->tf_src));
	memcpy(&f->tf_seq, buf + HDR_LEN + 4, sizeof(f->tf_seq));
	for (i = T_FRAME_MIN; i < f->tf_len; i++) {
		if (buf[i] != pattern(f->tf_seq, i))
			break;
	}
	ATF_REQUIRE_EQ_MSG(f->tf_len, i, "%s: frame %u of %u: byte %u is wrong",
	    d->common->name, f->tf_seq, f->tf_src, i);
	return (true);
}

/* Whether there is a frame. */
static bool
t_sync(struct vale_desc *d)
{
	ATF_REQUIRE_EQ(0, vale_rxsync(d));
	return (!nm_ring_empty(d->rxring));
}

void
t_expect(struct vale_desc *d, uint32_t len, unsigned int src, uint32_t seq)
{
	struct t_frame f;

	/* It may come from another process's thread. */
	wait_until(t_sync(d), "%s: frame %u of %u is missing",
	    d->common->name, seq, src);
	ATF_REQUIRE(t_take(d, &f));
	ATF_CHECK_EQ(len, f.tf_len);
	ATF_CHECK_EQ(src, f.tf_src);
	ATF_CHECK_EQ(seq, f.tf_seq);
	t_expect_none(d);
}

void
t_expect_none(struct vale_desc *d)
{
	ATF_REQUIRE_EQ(0, vale_rxsync(d));
	ATF_CHECK_MSG(nm_ring_empty(d->rxring), "%s: unexpected frame",
	    d->common->name);
}

unsigned int
t_drain(struct vale_desc *d)
{
	struct t_frame f;
	unsigned int n = 0;

	ATF_REQUIRE_EQ(0, vale_rxsync(d));
	while (t_take(d, &f))
		n++;
	ATF_REQUIRE_EQ(0, vale_rxsync(d));
	return (n);
}

struct vale_desc *t_port[T_PORTS];

const char *
t_port_name(unsigned int i)
{
	static char name[T_PORTS][16];

	snprintf(name[i], sizeof(name[i]), "valet0:p%u", i);
	return (name[i]);
}

void
t_ports_open(unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		t_port[i] = t_open(t_port_name(i), 0, 0);
}

void
t_ports_close(void)
{
	unsigned int i;

	for (i = 0; i < T_PORTS; i++) {
		if (t_port[i] != NULL)
			vale_close(t_port[i]);
		t_port[i] = NULL;
	}
}

void
t_port_set(unsigned int i, const char *setting, const char *value)
{
	ATF_REQUIRE_MSG(vale_set(t_port_name(i), setting, value) == 0,
	    "%s=%s: %s", setting, value, vale_error());
}

uint32_t
t_make_tagged(uint8_t *buf, uint32_t len, uint32_t tci, unsigned int dst,
    unsigned int src, uint32_t seq)
{
	uint8_t plain[T_FRAME_MAX];

	t_make(plain, len, dst, src, seq);
	memcpy(buf, plain, ADDRS_LEN);
	if (tci == T_NONE) {
		memcpy(buf + ADDRS_LEN, plain + ADDRS_LEN, len - ADDRS_LEN);
		return (len);
	}
	buf[ADDRS_LEN] = 0x81;
	buf[ADDRS_LEN + 1] = 0x00;
	buf[ADDRS_LEN + 2] = tci >> 8;
	buf[ADDRS_LEN + 3] = tci;
	memcpy(buf + ADDRS_LEN + TAG_LEN, plain + ADDRS_LEN, len - ADDRS_LEN);
	return (len + TAG_LEN);
}

void
t_queue_tagged(unsigned int from, uint32_t tci, unsigned int dst,
    unsigned int src, uint32_t seq)
{
	uint8_t buf[T_FRAME_MAX];
	uint32_t len;

	len = t_make_tagged(buf, 60, tci, dst, src, seq);
	t_put(t_port[from], buf, len, len, false);
}

void
t_send_tagged(unsigned int from, uint32_t tci, unsigned int dst,
    unsigned int src, uint32_t seq)
{
	t_queue_tagged(from, tci, dst, src, seq);
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[from]));
}

uint32_t
t_take_bytes(struct vale_desc *d, uint8_t *buf)
{
	struct netmap_ring *ring = d->rxring;
	struct netmap_slot *slot;
	uint32_t head = ring->head, len = 0;

	if (nm_ring_empty(ring))
		return (0);
	do {
		ATF_REQUIRE(head != ring->tail);
		slot = &ring->slot[head];
		memcpy(buf + len, NETMAP_BUF(ring, slot->buf_idx), slot->len);
		len += slot->len;
		head = nm_ring_next(ring, head);
	} while ((slot->flags & NS_MOREFRAG) != 0);
	ring->head = ring->cur = head;
	return (len);
}

void
t_expect_bytes(struct vale_desc *d, const uint8_t *frame, uint32_t len)
{
	uint8_t buf[T_FRAME_MAX];
	uint32_t got;

	got = t_take_bytes(d, buf);
	ATF_REQUIRE_EQ_MSG(len, got, "%s: %u bytes, not %u", d->common->name,
	    got, len);
	ATF_REQUIRE_MSG(memcmp(frame, buf, len) == 0, "%s: other bytes",
	    d->common->name);
}

void
t_expect_tagged(unsigned int at, uint32_t tci, unsigned int dst,
    unsigned int src, uint32_t seq)
{
	uint8_t buf[T_FRAME_MAX];
	uint32_t len;

	len = t_make_tagged(buf, 60, tci, dst, src, seq);
	ATF_REQUIRE_EQ(0, vale_rxsync(t_port[at]));
	t_expect_bytes(t_port[at], buf, len);
	ATF_REQUIRE(nm_ring_empty(t_port[at]->rxring));
}

bool
t_readable(struct vale_desc *d)
{
	struct pollfd pfd = { .fd = d->fd, .events = POLLIN };

	ATF_REQUIRE(poll(&pfd, 1, 0) != -1);
	return ((pfd.revents & POLLIN) != 0);
}

uint64_t
t_count(const struct vale_desc *d, enum vale_counter c)
{
	uint64_t counters[VALE_NCOUNTERS];

	ATF_REQUIRE_EQ(0, vale_port_counters(d->common->name, counters));
	return (counters[c]);
}
