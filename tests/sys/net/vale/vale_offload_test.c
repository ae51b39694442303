/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * virtio-net headers: frames that pass the switch as they are, and those that
 * it cuts.  packet_build() makes what is expected, without code of ours.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/uio.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "e82545_packet.h"
#include "frame.h"
#include "test.h"
#include "vale_test.h"

#define	LONG		12		/* bytes of a header */
#define	SHORT		10
#define	BYTES		(PACKET_HDR_MAX + 65536)
#define	GSO_NONE	0
#define	GSO_TCPV4	1
#define	GSO_UDP		3
#define	GSO_TCPV6	4
#define	GSO_UDP_L4	5
#define	GSO_ECN		0x80
#define	NEEDS_CSUM	1
#define	DATA_VALID	2

static uint8_t payload[BYTES];

/* How a port's frames begin. */
static const unsigned int kinds[] = { 0, SHORT, LONG, VALE_HEADER_SLOT };

/* A frame and its header, as a program writes them. */
struct sent {
	struct packet	packet;
	uint8_t		hdr[LONG];
	uint8_t		data[BYTES];	/* partial checksum */
	uint8_t		done[BYTES];	/* complete, if it is not cut */
	uint32_t	len, mss;
};

static void
make_hdr(uint8_t *hdr, uint8_t flags, uint8_t type, uint16_t hdr_len,
    uint16_t gso_size, uint16_t start, uint16_t offset)
{
	hdr[0] = flags;
	hdr[1] = type;
	le16enc(hdr + 2, hdr_len);
	le16enc(hdr + 4, gso_size);
	le16enc(hdr + 6, start);
	le16enc(hdr + 8, offset);
	le16enc(hdr + 10, 1);
}

/* From station `src' to `dst'; mss 0: a partial checksum alone. */
static void
make(struct sent *s, const struct packet *p, uint32_t mss, unsigned int dst,
    unsigned int src)
{
	uint8_t *ip;

	s->packet = *p;
	s->mss = mss;
	s->len = packet_build(p, s->done);
	ATF_REQUIRE(s->len <= VALE_FRAME_MAX);
	t_addr(s->done, dst);
	t_addr(s->done + 6, src);
	memcpy(s->data, s->done, s->len);
	packet_prepare(p, s->data, true);
	ip = s->data + packet_l3(p);
	if (!p->v6)
		memcpy(ip + 10, s->done + packet_l3(p) + 10, 2);
	make_hdr(s->hdr, NEEDS_CSUM, mss == 0 ? GSO_NONE : p->udp ?
	    GSO_UDP_L4 : p->v6 ? GSO_TCPV6 : GSO_TCPV4, mss == 0 ? 0 :
	    packet_hdrlen(p), mss, packet_l4(p), p->udp ? 6 : 16);
}

/* Put a header of kind `kind' and a frame into the ring. */
static void
put(struct vale_desc *d, unsigned int kind, const uint8_t *hdr,
    const uint8_t *data, uint32_t len, uint32_t fraglen, bool indirect)
{
	static const uint32_t behind[] = { 1, 0, 54, 14, 42, 200, 1000 };
	static unsigned int next;
	struct netmap_ring *ring = d->txring;
	struct netmap_slot *slot = &ring->slot[ring->head];
	uint32_t n;

	if (kind == VALE_HEADER_SLOT) {
		t_put(d, hdr, LONG, LONG, false);
		slot->flags |= VALE_SLOT_HEADER | NS_MOREFRAG;
	} else if (kind != 0) {
		/* And the first bytes of the frame. */
		next = (next + 1) % nitems(behind);
		n = MIN(len - 1, behind[next]);
		memcpy(NETMAP_BUF(ring, slot->buf_idx), hdr, kind);
		memcpy(NETMAP_BUF(ring, slot->buf_idx) + kind, data, n);
		slot->len = kind + n;
		slot->flags = NS_MOREFRAG;
		ring->head = ring->cur = nm_ring_next(ring, ring->head);
		data += n;
		len -= n;
	}
	t_put(d, data, len, fraglen, indirect);
}

static void
put_sent(struct vale_desc *d, unsigned int kind, const struct sent *s,
    uint32_t fraglen, bool indirect)
{
	put(d, kind, s->hdr, s->data, s->len, fraglen, indirect);
}

/*
 * Take what the ring shows next, without a sync: bytes to `buf', a header to
 * `hdr', or zeros.  Returns the length without the header; 0: none.
 */
static uint32_t
take(struct vale_desc *d, unsigned int kind, uint8_t *hdr, uint8_t *buf)
{
	struct netmap_ring *ring = d->rxring;
	struct netmap_slot *slot;
	uint32_t len = 0, n, rfrags;
	const char *data;

	memset(hdr, 0, LONG);
	if (nm_ring_empty(ring))
		return (0);
	rfrags = NS_RFRAGS(&ring->slot[ring->head]);
	n = 0;
	do {
		ATF_REQUIRE(ring->head != ring->tail);
		slot = &ring->slot[ring->head];
		ATF_REQUIRE(slot->len > 0 && slot->len <= ring->nr_buf_size);
		ATF_CHECK_EQ(rfrags, (uint32_t)NS_RFRAGS(slot));
		ATF_CHECK_EQ(0, slot->flags & 0xff & ~(NS_MOREFRAG |
		    VALE_SLOT_HEADER));
		data = NETMAP_BUF(ring, slot->buf_idx);
		ATF_REQUIRE(len + slot->len <= BYTES);
		if (n == 0 && (slot->flags & VALE_SLOT_HEADER) != 0) {
			ATF_CHECK_EQ(VALE_HEADER_SLOT, kind);
			ATF_REQUIRE_EQ(LONG, slot->len);
			memcpy(hdr, data, LONG);
		} else {
			memcpy(buf + len, data, slot->len);
			len += slot->len;
		}
		n++;
		ring->head = ring->cur = nm_ring_next(ring, ring->head);
	} while ((slot->flags & NS_MOREFRAG) != 0);
	ATF_CHECK_EQ(rfrags, n);
	if (kind == SHORT || kind == LONG) {
		ATF_REQUIRE(len > kind);
		memcpy(hdr, buf, kind);
		memmove(buf, buf + kind, len - kind);
		len -= kind;
		if (kind == SHORT)
			le16enc(hdr + 10, 1);
		else
			ATF_CHECK_EQ(1, le16dec(hdr + 10));
	}
	return (len);
}

static uint8_t found_hdr[LONG], found[BYTES + LONG];

/* The segment of s->packet with the payload from `off' on. */
static uint32_t
segment(const struct sent *s, uint32_t off, uint8_t *buf)
{
	struct packet q = packet_segment(&s->packet, off, s->mss);
	uint32_t len;

	len = packet_build(&q, buf);
	memcpy(buf, s->data, 12);
	return (len);
}

/* Expect the frame at a port of that kind, without a sync. */
static void
expect(struct vale_desc *d, unsigned int kind, const struct sent *s)
{
	static uint8_t one[BYTES];
	uint32_t len, off;

	if (kind != 0) {
		ATF_REQUIRE_EQ(s->len, take(d, kind, found_hdr, found));
		ATF_CHECK_EQ(0, memcmp(s->hdr, found_hdr, LONG));
		ATF_CHECK_EQ(0, memcmp(s->data, found, s->len));
		return;
	}
	if (s->mss == 0) {
		ATF_REQUIRE_EQ(s->len, take(d, kind, found_hdr, found));
		ATF_CHECK_EQ(0, memcmp(s->done, found, s->len));
		return;
	}
	for (off = 0; off < s->packet.paylen; off += s->mss) {
		len = segment(s, off, one);
		ATF_REQUIRE_EQ(len, take(d, kind, found_hdr, found));
		ATF_CHECK_EQ_MSG(0, memcmp(one, found, len),
		    "segment at %u of %zu", off, s->packet.paylen);
	}
}

static void
expect_none(struct vale_desc *d)
{
	ATF_CHECK_EQ(0, take(d, 0, found_hdr, found));
}

/* Open a port of a kind; station `n' is there. */
static struct vale_desc *
port(const char *name, unsigned int kind, uint32_t rx_slots, unsigned int n)
{
	struct vale_desc *d = t_open(name, 1024, rx_slots);
	uint8_t hello[60], zero[LONG] = { 0 };

	ATF_REQUIRE_EQ(0, vale_set_header(d, kind));
	t_make(hello, sizeof(hello), EVERYBODY, n, 0);
	put(d, kind == VALE_HEADER_SLOT ? 0 : kind, zero, hello, sizeof(hello),
	    1000, false);
	ATF_REQUIRE_EQ(0, vale_txsync(d));
	return (d);
}

static void
drain(struct vale_desc *d)
{
	ATF_REQUIRE_EQ(0, vale_rxsync(d));
	d->rxring->head = d->rxring->cur = d->rxring->tail;
	ATF_REQUIRE_EQ(0, vale_rxsync(d));
}

static struct packet
packet(uint32_t paylen, uint32_t *seed)
{
	struct packet p = {
		.v6 = test_chance(seed, 1, 2), .udp = test_chance(seed, 1, 3),
		.vlan = test_chance(seed, 1, 3), .tag = 0x2064,
		.tcpopts = test_below(seed, 11),
		.id = test_random(seed), .seq = test_random(seed),
		.flags = test_random(seed), .payload = payload,
		.paylen = paylen,
	};

	if (!p.v6 && test_chance(seed, 1, 3))
		p.ipopts = test_below(seed, 11);
	return (p);
}

TEST(kinds, "Between ports of any two kinds a frame passes, or is cut")
{
	static struct sent s;
	struct vale_desc *from, *to;
	uint32_t i, mss, seed = 1;
	unsigned int a, b;
	struct packet p;

	packet_fill(payload, sizeof(payload), 2);
	for (a = 1; a < nitems(kinds); a++)
		for (b = 0; b < nitems(kinds); b++) {
			to = port("valet0:to", kinds[b], 2048, 2);
			from = port("valet0:from", kinds[a], 64, 1);
			drain(to);
			for (i = 0; i < 100; i++) {
				/* Some have headers only. */
				p = packet(i % 10 == 9 ? 0 :
				    1 + test_below(&seed,
				    i < 10 ? 65000 : 4000), &seed);
				mss = i % 4 == 0 || p.paylen < 100 ? 0 :
				    48 + test_below(&seed, MIN(p.paylen,
				    9000) - 48);
				/* A segment in each slot of the ring. */
				if (mss != 0 && p.paylen / mss > 1000)
					mss = 100;
				make(&s, &p, mss, 2, 1);
				put_sent(from, kinds[a], &s,
				    1100 + test_below(&seed, 900),
				    test_chance(&seed, 1, 2));
				ATF_REQUIRE_EQ(0, vale_txsync(from));
				ATF_REQUIRE_EQ(0, vale_rxsync(to));
				expect(to, kinds[b], &s);
				expect_none(to);
				ATF_REQUIRE_EQ(0, vale_rxsync(to));
			}
			T_COUNT(from, TX_BAD_HEADER, 0);
			T_COUNT(to, RX_FRAME, 101);
			T_COUNT(to, RX_FULL, 0);
			vale_close(from);
			vale_close(to);
		}
}

TEST(headers, "A frame may be headers alone, whatever its port has sent before")
{
	static struct sent s;
	struct vale_desc *from, *to;
	struct packet p = { .udp = true };
	unsigned int a, b, i;

	for (a = 1; a < nitems(kinds); a++)
		for (b = 0; b < nitems(kinds); b++) {
			to = port("valet0:to", kinds[b], 64, 2);
			from = t_open("valet0:from", 64, 64);
			ATF_REQUIRE_EQ(0, vale_set_header(from, kinds[a]));
			drain(to);
			make(&s, &p, 0, 2, 1);
			/* The checksum is the last of its bytes. */
			ATF_REQUIRE_EQ(packet_l4(&p) + 8, s.len);
			for (i = 0; i < 2; i++) {
				put_sent(from, kinds[a], &s, 2048, true);
				ATF_REQUIRE_EQ(0, vale_txsync(from));
				ATF_REQUIRE_EQ(0, vale_rxsync(to));
				expect(to, kinds[b], &s);
				expect_none(to);
				ATF_REQUIRE_EQ(0, vale_rxsync(to));
			}
			vale_close(from);
			vale_close(to);
		}
}

TEST(plain, "A frame that asks for nothing has a header of zeros, or none")
{
	/* The last one has a second slot with a header before it alone. */
	static const uint32_t lens[4] = { 60, 60, 5000, 2040 };
	static const uint8_t valid[LONG] = { DATA_VALID };
	static const uint8_t zero[LONG] = { 0 };
	uint8_t buf[5000];
	struct vale_desc *from, *to;
	unsigned int a, b, i;
	uint32_t len;

	for (a = 0; a < nitems(kinds); a++)
		for (b = 0; b < nitems(kinds); b++) {
			to = port("valet0:to", kinds[b], 64, 2);
			from = port("valet0:from", kinds[a], 64, 1);
			drain(to);
			for (i = 0; i < 4; i++) {
				len = lens[i];
				t_make(buf, len, 2, 1, i);
				put(from, kinds[a], i % 2 == 0 ? zero : valid,
				    buf, len, 1800, false);
				ATF_REQUIRE_EQ(0, vale_txsync(from));
				ATF_REQUIRE_EQ(0, vale_rxsync(to));
				ATF_REQUIRE_EQ(len, take(to, kinds[b],
				    found_hdr, found));
				ATF_CHECK_EQ(0, memcmp(buf, found, len));
				ATF_CHECK_EQ(0, memcmp(zero, found_hdr, 10));
				expect_none(to);
				ATF_REQUIRE_EQ(0, vale_rxsync(to));
			}
			T_COUNT(from, TX_BAD_HEADER, 0);
			vale_close(from);
			vale_close(to);
		}
}

TEST(flood, "A frame to all ports reaches each in its own form")
{
	static struct sent s;
	struct vale_desc *from, *to[nitems(kinds)];
	char name[] = "valet0:0";
	uint32_t i, seed = 3;
	struct packet p;
	unsigned int b;

	packet_fill(payload, sizeof(payload), 4);
	for (b = 0; b < nitems(kinds); b++) {
		name[7] = '0' + b;
		to[b] = port(name, kinds[b], 1024, 10 + b);
	}
	from = port("valet0:from", VALE_HEADER_SLOT, 64, 1);
	for (b = 0; b < nitems(kinds); b++)
		drain(to[b]);
	for (i = 0; i < 50; i++) {
		p = packet(20000, &seed);
		make(&s, &p, i % 2 == 0 ? 1448 : 0, EVERYBODY, 1);
		put_sent(from, VALE_HEADER_SLOT, &s, 2048, true);
		ATF_REQUIRE_EQ(0, vale_txsync(from));
		for (b = 0; b < nitems(kinds); b++) {
			ATF_REQUIRE_EQ(0, vale_rxsync(to[b]));
			expect(to[b], kinds[b], &s);
			expect_none(to[b]);
			ATF_REQUIRE_EQ(0, vale_rxsync(to[b]));
		}
	}
	for (b = 0; b < nitems(kinds); b++)
		vale_close(to[b]);
	vale_close(from);
}

TEST(many, "More such frames than a batch takes, and others between them, "
    "arrive in order")
{
	static struct sent s[400];
	uint8_t other[60];
	struct vale_desc *from, *to;
	uint32_t i, seed = 5;
	struct packet p;
	unsigned int b;

	packet_fill(payload, sizeof(payload), 6);
	for (b = 0; b < nitems(kinds); b++) {
		to = port("valet0:to", kinds[b], 4096, 2);
		from = t_open("valet0:from", 4096, 64);
		ATF_REQUIRE_EQ(0, vale_set_header(from, VALE_HEADER_SLOT));
		drain(to);
		for (i = 0; i < nitems(s); i++) {
			p = packet(300, &seed);
			make(&s[i], &p, i % 3 * 100, 2, 1);
			put_sent(from, VALE_HEADER_SLOT, &s[i], 2048, true);
			t_queue(from, sizeof(other), 2, 1, i);
		}
		ATF_REQUIRE_EQ(0, vale_txsync(from));
		ATF_REQUIRE_EQ(0, vale_rxsync(to));
		for (i = 0; i < nitems(s); i++) {
			expect(to, kinds[b], &s[i]);
			t_make(other, sizeof(other), 2, 1, i);
			ATF_REQUIRE_EQ(sizeof(other), take(to, kinds[b],
			    found_hdr, found));
			ATF_CHECK_EQ(0, memcmp(other, found, sizeof(other)));
		}
		expect_none(to);
		T_COUNT(to, RX_FRAME, 2 * nitems(s));
		vale_close(from);
		vale_close(to);
	}
}

#define	LONGEST		200		/* frames in a sync */

TEST(longest, "More frames with the longest headers than a batch has space for "
    "arrive in order")
{
	uint8_t buf[600], hdr[LONG];
	struct vale_desc *from, *to;
	uint32_t i;

	make_hdr(hdr, NEEDS_CSUM, GSO_NONE, 0, 0, 490, 20);
	to = port("valet0:to", LONG, 1024, 2);
	from = t_open("valet0:from", 1024, 64);
	ATF_REQUIRE_EQ(0, vale_set_header(from, VALE_HEADER_SLOT));
	drain(to);
	for (i = 0; i < LONGEST; i++) {
		t_make(buf, sizeof(buf), 2, 1, i);
		put(from, VALE_HEADER_SLOT, hdr, buf, sizeof(buf), 2048,
		    false);
	}
	ATF_REQUIRE_EQ(0, vale_txsync(from));
	ATF_REQUIRE_EQ(0, vale_rxsync(to));
	for (i = 0; i < LONGEST; i++) {
		t_make(buf, sizeof(buf), 2, 1, i);
		ATF_REQUIRE_EQ(sizeof(buf), take(to, LONG, found_hdr, found));
		ATF_CHECK_EQ(0, memcmp(buf, found, sizeof(buf)));
		ATF_CHECK_EQ(0, memcmp(hdr, found_hdr, LONG));
	}
	expect_none(to);
	/* 64 KB of headers. */
	T_COUNT(from, TX_BATCH, 2);
	vale_close(from);
	vale_close(to);
}

TEST(slots, "A frame, or a segment, may have its last byte in a slot of its "
    "own")
{
	static struct sent s;
	struct vale_desc *from, *to;
	struct packet p = { .payload = payload };
	uint32_t len, mss;
	unsigned int b;

	packet_fill(payload, sizeof(payload), 22);
	for (b = 0; b < nitems(kinds); b++) {
		to = port("valet0:to", kinds[b], 64, 2);
		from = port("valet0:from", VALE_HEADER_SLOT, 64, 1);
		drain(to);
		for (len = 4096 - LONG - 1; len <= 4096 + 1; len++)
			for (mss = 0; mss <= len - 54; mss += len - 54) {
				p.paylen = mss == 0 ? len - 54 : 2 * mss;
				make(&s, &p, mss, 2, 1);
				put_sent(from, VALE_HEADER_SLOT, &s, 2048,
				    true);
				ATF_REQUIRE_EQ(0, vale_txsync(from));
				ATF_REQUIRE_EQ(0, vale_rxsync(to));
				expect(to, kinds[b], &s);
				expect_none(to);
				ATF_REQUIRE_EQ(0, vale_rxsync(to));
			}
		vale_close(from);
		vale_close(to);
	}
}

TEST(second_slot, "A segment may have its last byte in a second slot")
{
	static struct sent s;
	struct vale_desc *from, *to;
	struct packet p = { .payload = payload };
	uint32_t mss;

	packet_fill(payload, sizeof(payload), 23);
	to = port("valet0:to", 0, 64, 2);
	from = port("valet0:from", VALE_HEADER_SLOT, 64, 1);
	drain(to);
	for (mss = 2048 - 55; mss <= 2048 - 53; mss++) {
		p.paylen = 3 * mss;
		make(&s, &p, mss, 2, 1);
		put_sent(from, VALE_HEADER_SLOT, &s, 2048, true);
		ATF_REQUIRE_EQ(0, vale_txsync(from));
		ATF_REQUIRE_EQ(0, vale_rxsync(to));
		expect(to, 0, &s);
		expect_none(to);
		ATF_REQUIRE_EQ(0, vale_rxsync(to));
	}
	vale_close(from);
	vale_close(to);
}

TEST(hint, "The sender's length of the headers is a hint: TCP's header says "
    "where they end")
{
	static struct sent s;
	struct vale_desc *from, *to;
	struct packet p = { .payload = payload, .paylen = 1000 };
	uint8_t hdr[LONG];
	unsigned int b;

	packet_fill(payload, sizeof(payload), 24);
	for (b = 0; b < nitems(kinds); b++) {
		to = port("valet0:to", kinds[b], 64, 2);
		from = port("valet0:from", VALE_HEADER_SLOT, 64, 1);
		drain(to);
		make(&s, &p, 300, 2, 1);
		memcpy(hdr, s.hdr, LONG);
		le16enc(hdr + 2, 66);
		put(from, VALE_HEADER_SLOT, hdr, s.data, s.len, 2048, true);
		ATF_REQUIRE_EQ(0, vale_txsync(from));
		ATF_REQUIRE_EQ(0, vale_rxsync(to));
		expect(to, kinds[b], &s);
		expect_none(to);
		vale_close(from);
		vale_close(to);
	}
}

TEST(end_of_batch, "The last frame of a batch may have its headers in 42 "
    "fragments")
{
	static struct sent s;
	struct vale_desc *from, *to;
	struct packet p = { .udp = true, .payload = payload, .paylen = 21 };
	uint32_t i;

	packet_fill(payload, sizeof(payload), 25);
	to = port("valet0:to", VALE_HEADER_SLOT, 2048, 2);
	from = t_open("valet0:from", 2048, 64);
	ATF_REQUIRE_EQ(0, vale_set_header(from, VALE_HEADER_SLOT));
	drain(to);
	make(&s, &p, 0, 2, 1);
	ATF_REQUIRE_EQ(63, s.len);
	for (i = 0; i < 1023; i++)
		t_queue(from, 60, 2, 1, i);
	put_sent(from, VALE_HEADER_SLOT, &s, 1, true);
	ATF_REQUIRE_EQ(0, vale_txsync(from));
	T_COUNT(from, TX_BATCH, 1);
	ATF_REQUIRE_EQ(0, vale_rxsync(to));
	for (i = 0; i < 1023; i++)
		ATF_REQUIRE_EQ(60, take(to, VALE_HEADER_SLOT, found_hdr,
		    found));
	expect(to, VALE_HEADER_SLOT, &s);
	expect_none(to);
	/* What is behind the batch is the port's ring. */
	t_send(to, 60, 1, 2, 7);
	t_expect(from, 60, 2, 7);
	vale_close(from);
	vale_close(to);
}

TEST(full, "A frame whose segments do not all fit is dropped, and a shorter "
    "one after it is not")
{
	static struct sent big, small;
	struct vale_desc *from, *to;
	uint32_t seed = 7;
	struct packet p;

	packet_fill(payload, sizeof(payload), 8);
	to = port("valet0:to", 0, 32, 2);
	from = port("valet0:from", VALE_HEADER_SLOT, 64, 1);
	drain(to);
	p = packet(31 * 100, &seed);
	make(&small, &p, 100, 2, 1);
	p = packet(31 * 100 + 1, &seed);
	make(&big, &p, 100, 2, 1);
	put_sent(from, VALE_HEADER_SLOT, &big, 2048, false);
	put_sent(from, VALE_HEADER_SLOT, &small, 2048, false);
	put_sent(from, VALE_HEADER_SLOT, &big, 2048, false);
	ATF_REQUIRE_EQ(0, vale_txsync(from));
	ATF_REQUIRE_EQ(0, vale_rxsync(to));
	expect(to, 0, &small);
	expect_none(to);
	T_COUNT(to, RX_FULL, 2);
	/* And the one that port() sent. */
	T_COUNT(to, RX_FRAME, 2);
	vale_close(from);
	vale_close(to);
}

/*
 * A sink that sees a frame in the sender's memory, and then changes all of it.
 */
static struct sent *changed;
static unsigned int peeked;

static void
change(void *arg, struct frame_source *frames)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };

	if (!frame_peek(frames, &frame))
		return;
	peeked++;
	ATF_CHECK_EQ(changed->len, frame.f_len);
	ATF_CHECK_EQ(NEEDS_CSUM, frame.f_flags);
	ATF_CHECK_EQ(GSO_TCPV4, frame.f_gso_type);
	ATF_CHECK_EQ(changed->mss, frame.f_gso_size);
	ATF_CHECK_EQ(packet_hdrlen(&changed->packet), frame.f_hdr_len);
	ATF_CHECK_EQ(packet_l4(&changed->packet), frame.f_csum_start);
	ATF_CHECK_EQ(16, frame.f_csum_offset);
	frame_next(frames);
	memset(changed->data, 0xff, packet_hdrlen(&changed->packet));
	memset(arg, 0xff, LONG);
}

TEST(changed, "A sink takes the frame with what its header says; a sender that "
    "changes its headers meanwhile changes nothing")
{
	static struct sent s, copy;
	struct vale_desc *from, *sink, *to;
	struct packet p = { .payload = payload, .paylen = 5000 };
	uint8_t hdr[LONG];

	packet_fill(payload, sizeof(payload), 9);
	sink = port("valet0:sink", VALE_HEADER_SLOT, 64, 3);
	to = port("valet0:to", 0, 64, 2);
	from = port("valet0:from", LONG, 64, 1);
	drain(to);
	drain(sink);
	make(&s, &p, 1000, EVERYBODY, 1);
	copy = s;
	changed = &s;
	memcpy(hdr, s.hdr, LONG);
	ATF_REQUIRE_EQ(0, vale_set_sink(sink, change, hdr));
	/* Header and frame where they are. */
	put(from, LONG, hdr, s.data, s.len, 2048, true);
	ATF_REQUIRE_EQ(0, vale_txsync(from));
	ATF_CHECK_EQ(1, peeked);
	ATF_REQUIRE_EQ(0, vale_rxsync(to));
	expect(to, 0, &copy);
	expect_none(to);
	ATF_REQUIRE_EQ(0, vale_rxsync(sink));
	expect_none(sink);
	vale_close(from);
	vale_close(to);
	vale_close(sink);
}

static void
refuse(void *arg, struct frame_source *frames)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	unsigned int *n = arg;

	for (; frame_peek(frames, &frame); frame_next(frames)) {
		ATF_CHECK_EQ(0, frame.f_flags);
		++*n;
	}
}

/* A sink for frames as struct sent says; each fragment counts. */
static void
compare(void *arg, struct frame_source *frames)
{
	const struct sent *s = arg;
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	uint32_t len = 0;
	int i;

	ATF_REQUIRE(frame_peek(frames, &frame));
	ATF_CHECK_EQ(iov, frame.f_iov);
	ATF_REQUIRE(frame.f_niov >= 2 && frame.f_niov <= FRAME_MAXIOV);
	for (i = 0; i < frame.f_niov; i++) {
		ATF_REQUIRE(iov[i].iov_len <= s->len - len);
		ATF_CHECK_EQ(0, memcmp(s->data + len, iov[i].iov_base,
		    iov[i].iov_len));
		len += iov[i].iov_len;
		/* No payload is behind headers that are all of the frame. */
		ATF_CHECK(iov[i].iov_len > 0 ||
		    (i == 1 && frame.f_niov == 2));
	}
	ATF_CHECK_EQ(s->len, len);
	ATF_CHECK_EQ(s->len, frame.f_len);
	ATF_CHECK_EQ(NEEDS_CSUM, frame.f_flags);
	ATF_CHECK_EQ(s->hdr[1], frame.f_gso_type);
	ATF_CHECK_EQ(s->mss == 0 ? packet_l4(&s->packet) +
	    (s->packet.udp ? 8 : 18) : packet_hdrlen(&s->packet),
	    frame.f_hdr_len);
	frame_next(frames);
	ATF_CHECK(!frame_peek(frames, &frame));
	peeked++;
}

TEST(sink, "A sink gets the fragments of a frame, and no others, however its "
    "slots begin")
{
	static struct sent s;
	struct vale_desc *from, *to;
	uint32_t i, seed = 20;
	struct packet p;
	unsigned int a;

	packet_fill(payload, sizeof(payload), 21);
	peeked = 0;
	for (a = 1; a < nitems(kinds); a++) {
		to = port("valet0:to", VALE_HEADER_SLOT, 64, 2);
		from = port("valet0:from", kinds[a], 64, 1);
		drain(to);
		ATF_REQUIRE_EQ(0, vale_set_sink(to, compare, &s));
		for (i = 0; i < 200; i++) {
			p = packet(i % 10 == 9 ? 0 : 1 + test_below(&seed,
			    5000), &seed);
			make(&s, &p, p.paylen < 100 ? 0 : 48 +
			    test_below(&seed, p.paylen - 48), 2, 1);
			put_sent(from, kinds[a], &s, 100 +
			    test_below(&seed, 1900), test_chance(&seed, 1, 2));
			ATF_REQUIRE_EQ(0, vale_txsync(from));
			ATF_REQUIRE_EQ(200 * (a - 1) + i + 1, peeked);
		}
		vale_close(from);
		vale_close(to);
	}
}

/* A sink for frames of one fragment. */
static void
single(void *arg, struct frame_source *frames)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	unsigned int *n = arg;

	for (; frame_peek(frames, &frame); frame_next(frames)) {
		ATF_CHECK_EQ(0, frame.f_flags);
		ATF_CHECK_EQ(1, frame.f_niov);
		ATF_CHECK_EQ(frame.f_len, iov[0].iov_len);
		++*n;
	}
}

TEST(sink_plain, "A slot that has a header alone is no fragment of the frame")
{
	static const uint8_t zero[LONG] = { 0 };
	struct vale_desc *from, *to;
	struct netmap_slot *slot;
	unsigned int a, n;

	for (a = 1; a < nitems(kinds); a++) {
		to = port("valet0:to", 0, 64, 2);
		from = port("valet0:from", kinds[a], 64, 1);
		drain(to);
		n = 0;
		ATF_REQUIRE_EQ(0, vale_set_sink(to, single, &n));
		slot = &from->txring->slot[from->txring->head];
		t_put(from, zero, kinds[a] == SHORT ? SHORT : LONG, LONG,
		    false);
		slot->flags |= NS_MOREFRAG | (kinds[a] == VALE_HEADER_SLOT ?
		    VALE_SLOT_HEADER : 0);
		t_queue(from, 60, 2, 1, 0);
		ATF_REQUIRE_EQ(0, vale_txsync(from));
		ATF_CHECK_EQ(1, n);
		T_COUNT(to, RX_DIRECT, 1);
		vale_close(from);
		vale_close(to);
	}
}

TEST(other_sink, "The sink of a port with headers of another kind, or none, "
    "takes frames without alone")
{
	static struct sent s;
	struct vale_desc *from, *to;
	struct packet p = { .payload = payload, .paylen = 3000 };
	unsigned int b, n;

	for (b = 0; b < 3; b++) {
		to = port("valet0:to", kinds[b], 64, 2);
		from = port("valet0:from", VALE_HEADER_SLOT, 64, 1);
		drain(to);
		n = 0;
		ATF_REQUIRE_EQ(0, vale_set_sink(to, refuse, &n));
		make(&s, &p, 1000, 2, 1);
		t_queue(from, 60, 2, 1, 0);
		put_sent(from, VALE_HEADER_SLOT, &s, 2048, true);
		ATF_REQUIRE_EQ(0, vale_txsync(from));
		ATF_CHECK_EQ(1, n);
		ATF_REQUIRE_EQ(0, vale_rxsync(to));
		expect(to, kinds[b], &s);
		expect_none(to);
		vale_close(from);
		vale_close(to);
	}
}

/* A header of a frame of 554 bytes, 54 of them headers of TCP over IPv4. */
static const struct invalid {
	const char	*what;
	uint8_t		 flags, type;
	uint16_t	 hdr_len, gso_size, start, offset;
} invalids[] = {
	{ "segments of 0 bytes", NEEDS_CSUM, GSO_TCPV4, 54, 0, 34, 16 },
	{ "segments of 47 bytes", NEEDS_CSUM, GSO_TCPV4, 54, 47, 34, 16 },
	{ "segments of more than the frame", NEEDS_CSUM, GSO_TCPV4, 54, 554,
	  34, 16 },
	{ "segments without a partial checksum", 0, GSO_TCPV4, 54, 100, 34,
	  16 },
	{ "unknown type 2", NEEDS_CSUM, 2, 54, 100, 34, 16 },
	{ "unknown type 255", NEEDS_CSUM, 255, 54, 100, 34, 16 },
	{ "ECN without TCP", NEEDS_CSUM, GSO_ECN, 54, 100, 34, 16 },
	{ "fragments of IP", NEEDS_CSUM, GSO_UDP, 54, 100, 34, 6 },
	{ "headers longer than the frame", NEEDS_CSUM, GSO_TCPV4, 554, 100, 34,
	  16 },
	{ "checksum beyond the frame", NEEDS_CSUM, GSO_NONE, 0, 0, 537, 16 },
	{ "checksum beyond what fits", NEEDS_CSUM, GSO_NONE, 0, 0, 511, 0 },
	{ "offsets that wrap", NEEDS_CSUM, GSO_NONE, 0, 0, 65535, 65535 },
	{ "another protocol's checksum", NEEDS_CSUM, GSO_TCPV4, 54, 100, 34,
	  6 },
	{ "another version of IP", NEEDS_CSUM, GSO_TCPV6, 54, 100, 34, 16 },
	{ "begin of the sum in the IP header", NEEDS_CSUM, GSO_TCPV4, 54, 100,
	  33, 16 },
};

TEST(invalid, "A frame with an invalid header is dropped and counted, and "
    "nothing else is")
{
	static struct sent s;
	const struct invalid *v;
	struct vale_desc *from, *to;
	struct packet p = { .payload = payload, .paylen = 500 };
	uint8_t hdr[LONG];
	unsigned int a, b, n;

	packet_fill(payload, sizeof(payload), 10);
	for (a = 1; a < nitems(kinds); a++)
		for (b = 0; b < nitems(kinds); b++) {
			to = port("valet0:to", kinds[b], 1024, 2);
			from = port("valet0:from", kinds[a], 64, 1);
			drain(to);
			make(&s, &p, 100, 2, 1);
			ATF_REQUIRE_EQ(554, s.len);
			n = 0;
			for (v = invalids; v < invalids + nitems(invalids);
			    v++) {
				make_hdr(hdr, v->flags, v->type, v->hdr_len,
				    v->gso_size, v->start, v->offset);
				put(from, kinds[a], hdr, s.data, s.len, 300,
				    n % 2 == 0);
				put_sent(from, kinds[a], &s, 300, false);
				ATF_REQUIRE_EQ(0, vale_txsync(from));
				ATF_REQUIRE_EQ(0, vale_rxsync(to));
				expect(to, kinds[b], &s);
				ATF_CHECK_EQ_MSG(0, take(to, kinds[b],
				    found_hdr, found), "%s", v->what);
				ATF_REQUIRE_EQ(0, vale_rxsync(to));
				n++;
				T_COUNT(from, TX_BAD_HEADER, n);
			}
			T_COUNT(from, TX_FRAME, 1 + 2 * n);
			vale_close(from);
			vale_close(to);
		}
}

TEST(short_header, "A header that is not complete in its slot is invalid, as "
    "is one without a frame")
{
	struct vale_desc *from, *to;
	struct netmap_ring *ring;
	uint8_t buf[100] = { 0 };
	unsigned int a;
	uint32_t first;

	for (a = 1; a < nitems(kinds); a++) {
		to = port("valet0:to", 0, 64, 2);
		from = port("valet0:from", kinds[a], 64, 1);
		ring = from->txring;
		drain(to);
		first = ring->head;
		t_put(from, buf, sizeof(buf), kinds[a] == VALE_HEADER_SLOT ?
		    LONG + 1 : kinds[a] - 1, false);
		ring->slot[first].flags |= VALE_SLOT_HEADER;
		ATF_REQUIRE_EQ(0, vale_txsync(from));
		T_COUNT(from, TX_BAD_HEADER, 1);
		first = ring->head;
		t_put(from, buf, LONG - 1, LONG, false);
		ring->slot[first].flags |= VALE_SLOT_HEADER;
		ATF_REQUIRE_EQ(0, vale_txsync(from));
		T_COUNT(from, TX_BAD_HEADER, kinds[a] == SHORT ? 1 : 2);
		T_COUNT(from, TX_RUNT, kinds[a] == SHORT ? 1 : 0);
		first = ring->head;
		t_put(from, buf, LONG, LONG, false);
		ring->slot[first].flags |= VALE_SLOT_HEADER;
		ATF_REQUIRE_EQ(0, vale_txsync(from));
		T_COUNT(from, TX_BAD_HEADER, kinds[a] == SHORT ? 1 : 2);
		T_COUNT(from, TX_RUNT, kinds[a] == SHORT ? 2 : 1);
		/* What else is wrong with the slot was wrong before. */
		first = ring->head;
		t_put(from, buf, LONG, LONG, false);
		ring->slot[first].flags |= VALE_SLOT_HEADER;
		ring->slot[first].len = ring->nr_buf_size + 1;
		ATF_REQUIRE_EQ(0, vale_txsync(from));
		T_COUNT(from, TX_BAD_HEADER, kinds[a] == SHORT ? 1 : 2);
		T_COUNT(from, TX_BAD_LEN, 1);
		drain(to);
		T_COUNT(to, RX_FRAME, 1);
		vale_close(from);
		vale_close(to);
	}
}

TEST(one_slot, "A header and a frame in one slot: the frame arrives")
{
	static const unsigned int lengths[] = { SHORT, LONG };
	struct vale_desc *from, *to;
	uint8_t buf[LONG + 60] = { 0 };
	unsigned int i;

	for (i = 0; i < nitems(lengths); i++) {
		to = port("valet0:to", 0, 64, 2);
		from = port("valet0:from", lengths[i], 64, 1);
		drain(to);
		t_make(buf + lengths[i], 60, EVERYBODY, 1, 7);
		t_put(from, buf, lengths[i] + 60, sizeof(buf), false);
		ATF_REQUIRE_EQ(0, vale_txsync(from));
		t_expect(to, 60, 1, 7);
		vale_close(from);
		vale_close(to);
	}
}

TEST(no_header, "A port that has a header before some frames sends others of "
    "several slots, too")
{
	struct vale_desc *from, *to;
	uint8_t frame[5000];

	to = port("valet0:to", 0, 64, 2);
	from = port("valet0:from", VALE_HEADER_SLOT, 64, 1);
	drain(to);
	t_make(frame, sizeof(frame), EVERYBODY, 1, 7);
	t_put(from, frame, sizeof(frame), 1000, false);
	ATF_REQUIRE_EQ(0, vale_txsync(from));
	t_expect(to, sizeof(frame), 1, 7);
	T_COUNT(from, TX_BAD_HEADER, 0);
	vale_close(from);
	vale_close(to);
}

TEST(flagged_frame, "A slot that is flagged as a header and has a whole frame "
    "is invalid")
{
	struct vale_desc *from, *to;
	uint32_t first;

	to = port("valet0:to", 0, 64, 2);
	from = port("valet0:from", VALE_HEADER_SLOT, 64, 1);
	drain(to);
	first = from->txring->head;
	t_queue(from, 60, EVERYBODY, 1, 1);
	from->txring->slot[first].flags |= VALE_SLOT_HEADER;
	ATF_REQUIRE_EQ(0, vale_txsync(from));
	T_COUNT(from, TX_BAD_HEADER, 1);
	T_COUNT(to, RX_FRAME, 1);
	vale_close(from);
	vale_close(to);
}

TEST(fragments, "A frame of 64 fragments has a header before it if one of them "
    "has no more than the frame's own headers")
{
	static struct sent s;
	static uint8_t whole[LONG + BYTES];
	struct vale_desc *from, *to;
	struct packet p = { .payload = payload, .paylen = 1000 };

	packet_fill(payload, sizeof(payload), 11);
	to = port("valet0:to", 0, 64, 2);
	from = port("valet0:from", LONG, 64, 1);
	drain(to);
	make(&s, &p, 100, 2, 1);
	/* 13 bytes, and 63 or 62 fragments of what is left. */
	put_sent(from, LONG, &s, howmany(s.len - 1, 63), true);
	ATF_REQUIRE_EQ(0, vale_txsync(from));
	ATF_REQUIRE_EQ(0, vale_rxsync(to));
	expect(to, 0, &s);
	expect_none(to);
	ATF_REQUIRE_EQ(0, vale_rxsync(to));
	/* Headers and one byte in the first of 64. */
	vale_close(from);
	from = port("valet0:from", VALE_HEADER_SLOT, 64, 1);
	drain(to);
	put_sent(from, VALE_HEADER_SLOT, &s, howmany(s.len, 63), true);
	ATF_REQUIRE_EQ(0, vale_txsync(from));
	ATF_REQUIRE_EQ(0, vale_rxsync(to));
	expect(to, 0, &s);
	expect_none(to);
	T_COUNT(from, TX_FRAGS, 0);
	vale_close(from);

	/* The rest of the first fragment would be one too many. */
	from = port("valet0:from", LONG, 128, 1);
	drain(to);
	p.paylen = 64 * 68 - LONG - 54;
	make(&s, &p, 100, 2, 1);
	memcpy(whole, s.hdr, LONG);
	memcpy(whole + LONG, s.data, s.len);
	t_put(from, whole, LONG + s.len, 68, true);
	ATF_REQUIRE_EQ(0, vale_txsync(from));
	T_COUNT(from, TX_FRAGS, 1);
	t_put(from, whole, LONG + s.len, 70, true);
	ATF_REQUIRE_EQ(0, vale_txsync(from));
	T_COUNT(from, TX_FRAGS, 1);
	ATF_REQUIRE_EQ(0, vale_rxsync(to));
	expect(to, 0, &s);
	expect_none(to);
	vale_close(from);
	vale_close(to);
}

TEST(settings, "Other lengths of headers are invalid")
{
	struct vale_desc *d = t_open("valet0:d", 16, 16);
	unsigned int len;

	for (len = 0; len < 70; len++) {
		errno = 0;
		if (len <= 1 || len == SHORT || len == LONG)
			ATF_CHECK_EQ(0, vale_set_header(d, len));
		else {
			ATF_CHECK_EQ(-1, vale_set_header(d, len));
			ATF_CHECK_EQ(EINVAL, errno);
		}
	}
	vale_close(d);
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, kinds);
	ATF_TP_ADD_TC(tp, headers);
	ATF_TP_ADD_TC(tp, plain);
	ATF_TP_ADD_TC(tp, flood);
	ATF_TP_ADD_TC(tp, many);
	ATF_TP_ADD_TC(tp, longest);
	ATF_TP_ADD_TC(tp, slots);
	ATF_TP_ADD_TC(tp, second_slot);
	ATF_TP_ADD_TC(tp, hint);
	ATF_TP_ADD_TC(tp, end_of_batch);
	ATF_TP_ADD_TC(tp, full);
	ATF_TP_ADD_TC(tp, changed);
	ATF_TP_ADD_TC(tp, sink);
	ATF_TP_ADD_TC(tp, sink_plain);
	ATF_TP_ADD_TC(tp, other_sink);
	ATF_TP_ADD_TC(tp, invalid);
	ATF_TP_ADD_TC(tp, short_header);
	ATF_TP_ADD_TC(tp, one_slot);
	ATF_TP_ADD_TC(tp, no_header);
	ATF_TP_ADD_TC(tp, flagged_frame);
	ATF_TP_ADD_TC(tp, fragments);
	ATF_TP_ADD_TC(tp, settings);

	return (atf_no_error());
}
