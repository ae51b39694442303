/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <string.h>

#include <atf-c.h>

#include "frame_vnet.h"
#include "test.h"
#include "vale_vnet.h"

uint8_t vn_payload[VN_BYTES];
uint8_t vn_hdr[VN_LONG], vn_frame[VN_BYTES + VN_LONG];

const unsigned int vn_kinds[VN_NKINDS] = { 0, VN_SHORT, VN_LONG,
    VALE_HEADER_FRAME };

void
vn_make_hdr(uint8_t *hdr, uint8_t flags, uint8_t type, uint16_t hdr_len,
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

void
vn_make(struct vn_sent *s, const struct packet *p, uint32_t mss,
    unsigned int dst, unsigned int src)
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
	vn_make_hdr(s->hdr, NEEDS_CSUM, mss == 0 ? GSO_NONE : p->udp ?
	    GSO_UDP_L4 : p->v6 ? GSO_TCPV6 : GSO_TCPV4, mss == 0 ? 0 :
	    packet_hdrlen(p), mss, packet_l4(p), p->udp ? 6 : 16);
}

void
vn_put(struct vale_desc *d, unsigned int kind, const uint8_t *hdr,
    const uint8_t *data, uint32_t len, uint32_t fraglen, bool indirect)
{
	static const uint32_t behind[] = { 1, 0, 54, 14, 42, 200, 1000 };
	static unsigned int next;
	struct netmap_ring *ring = d->txring;
	const uint32_t first = ring->head;
	struct netmap_slot *slot = &ring->slot[first];
	uint32_t n;

	if (kind != 0 && kind != VALE_HEADER_FRAME) {
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
	if (kind == VALE_HEADER_FRAME) {
		/* Valid or not. */
		(void)frame_vnet_decode(&d->txframe[first], hdr);
		slot->flags |= VALE_SLOT_FRAME;
	}
}

void
vn_put_sent(struct vale_desc *d, unsigned int kind, const struct vn_sent *s,
    uint32_t fraglen, bool indirect)
{
	vn_put(d, kind, s->hdr, s->data, s->len, fraglen, indirect);
}

uint32_t
vn_take(struct vale_desc *d, unsigned int kind, uint8_t *hdr, uint8_t *buf)
{
	struct netmap_ring *ring = d->rxring;
	struct netmap_slot *slot;
	uint32_t len = 0, n, rfrags;
	const char *data;

	memset(hdr, 0, VN_LONG);
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
		    (n == 0 ? VALE_SLOT_FRAME : 0)));
		data = NETMAP_BUF(ring, slot->buf_idx);
		ATF_REQUIRE(len + slot->len <= VN_BYTES);
		if ((slot->flags & VALE_SLOT_FRAME) != 0) {
			ATF_CHECK_EQ(VALE_HEADER_FRAME, kind);
			frame_vnet_encode(&d->rxframe[ring->head], hdr,
			    VN_LONG);
		}
		memcpy(buf + len, data, slot->len);
		len += slot->len;
		n++;
		ring->head = ring->cur = nm_ring_next(ring, ring->head);
	} while ((slot->flags & NS_MOREFRAG) != 0);
	ATF_CHECK_EQ(rfrags, n);
	if (kind == VN_SHORT || kind == VN_LONG) {
		ATF_REQUIRE(len > kind);
		memcpy(hdr, buf, kind);
		memmove(buf, buf + kind, len - kind);
		len -= kind;
		if (kind == VN_SHORT)
			le16enc(hdr + 10, 1);
		else
			ATF_CHECK_EQ(1, le16dec(hdr + 10));
	}
	return (len);
}

/* The segment of s->packet with the payload from `off' on. */
static uint32_t
segment(const struct vn_sent *s, uint32_t off, uint8_t *buf)
{
	struct packet q = packet_segment(&s->packet, off, s->mss);
	uint32_t len;

	len = packet_build(&q, buf);
	memcpy(buf, s->data, 12);
	return (len);
}

void
vn_expect(struct vale_desc *d, unsigned int kind, const struct vn_sent *s)
{
	static uint8_t one[VN_BYTES];
	uint32_t len, off;

	if (kind != 0) {
		ATF_REQUIRE_EQ(s->len, vn_take(d, kind, vn_hdr, vn_frame));
		ATF_CHECK_EQ(0, memcmp(s->hdr, vn_hdr, VN_LONG));
		ATF_CHECK_EQ(0, memcmp(s->data, vn_frame, s->len));
		return;
	}
	if (s->mss == 0) {
		ATF_REQUIRE_EQ(s->len, vn_take(d, kind, vn_hdr, vn_frame));
		ATF_CHECK_EQ(0, memcmp(s->done, vn_frame, s->len));
		return;
	}
	for (off = 0; off < s->packet.paylen; off += s->mss) {
		len = segment(s, off, one);
		ATF_REQUIRE_EQ(len, vn_take(d, kind, vn_hdr, vn_frame));
		ATF_CHECK_EQ_MSG(0, memcmp(one, vn_frame, len),
		    "segment at %u of %zu", off, s->packet.paylen);
	}
}

void
vn_expect_none(struct vale_desc *d)
{
	ATF_CHECK_EQ(0, vn_take(d, 0, vn_hdr, vn_frame));
}

struct vale_desc *
vn_port(const char *name, unsigned int kind, uint32_t rx_slots, unsigned int n)
{
	struct vale_desc *d = t_open(name, 1024, rx_slots);
	uint8_t hello[60], zero[VN_LONG] = { 0 };

	ATF_REQUIRE_EQ(0, vale_set_header(d, kind));
	t_make(hello, sizeof(hello), EVERYBODY, n, 0);
	vn_put(d, kind == VALE_HEADER_FRAME ? 0 : kind, zero, hello,
	    sizeof(hello), 1000, false);
	ATF_REQUIRE_EQ(0, vale_txsync(d));
	return (d);
}

void
vn_drain(struct vale_desc *d)
{
	ATF_REQUIRE_EQ(0, vale_rxsync(d));
	d->rxring->head = d->rxring->cur = d->rxring->tail;
	ATF_REQUIRE_EQ(0, vale_rxsync(d));
}

struct packet
vn_packet(uint32_t paylen, uint32_t *seed)
{
	struct packet p = {
		.v6 = test_chance(seed, 1, 2), .udp = test_chance(seed, 1, 3),
		.vlan = test_chance(seed, 1, 3), .tag = 0x2064,
		.tcpopts = test_below(seed, 11),
		.id = test_random(seed), .seq = test_random(seed),
		.flags = test_random(seed), .payload = vn_payload,
		.paylen = paylen,
	};

	if (!p.v6 && test_chance(seed, 1, 3))
		p.ipopts = test_below(seed, 11);
	return (p);
}
