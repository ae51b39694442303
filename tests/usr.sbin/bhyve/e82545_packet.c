/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See e82545_packet.h.
 */

#include <sys/param.h>

#include <string.h>

#include "e82545_packet.h"
#include "test.h"

static const uint8_t dst_mac[6] = { 0x00, 0x0c, 0x29, 0x12, 0x34, 0x56 };
static const uint8_t src_mac[6] = { 0x02, 0x00, 0x5e, 0x10, 0x20, 0x31 };

static void
put16(uint8_t *p, unsigned int v)
{
	p[0] = v >> 8;
	p[1] = v;
}

static void
put32(uint8_t *p, uint32_t v)
{
	put16(p, v >> 16);
	put16(p + 2, v & 0xffff);
}

/* A sum under way: bytes at even offsets count 256 times. */
static uint32_t
add(uint32_t sum, const uint8_t *data, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		sum += i % 2 == 0 ? data[i] << 8 : data[i];
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return (sum);
}

uint16_t
packet_sum(const uint8_t *data, size_t len)
{
	return (~add(0, data, len));
}

size_t
packet_l3(const struct packet *p)
{
	return (p->vlan ? 18 : 14);
}

size_t
packet_l4(const struct packet *p)
{
	return (packet_l3(p) + (p->v6 ? 40 : 20 + 4 * p->ipopts));
}

size_t
packet_hdrlen(const struct packet *p)
{
	return (packet_l4(p) + (p->udp ? 8 : 20 + 4 * p->tcpopts));
}

static uint32_t
pseudo(const struct packet *p, const uint8_t *frame, size_t l4len)
{
	const uint8_t *ip = frame + packet_l3(p);
	uint8_t tail[4];
	uint32_t sum;

	sum = p->v6 ? add(0, ip + 8, 32) : add(0, ip + 12, 8);
	put16(tail, p->udp ? 17 : 6);
	put16(tail + 2, l4len);
	return (add(sum, tail, 4));
}

static size_t
sum_offset(const struct packet *p)
{
	return (packet_l4(p) + (p->udp ? 6 : 16));
}

static void
build_ip(const struct packet *p, uint8_t *ip, size_t len)
{
	unsigned int hdrlen, i;

	if (p->v6) {
		memset(ip, 0, 40);
		ip[0] = 0x60;
		put16(ip + 4, len - 40);
		ip[6] = p->udp ? 17 : 6;
		ip[7] = 64;
		for (i = 8; i < 40; i++)
			ip[i] = 0x21 + i * 5;
		return;
	}
	hdrlen = 20 + 4 * p->ipopts;
	memset(ip, 0x01, hdrlen);	/* options: no operation */
	ip[0] = 0x40 | hdrlen / 4;
	ip[1] = 0;
	put16(ip + 2, len);
	put16(ip + 4, p->id);
	put16(ip + 6, p->frag);
	ip[8] = 64;
	ip[9] = p->udp ? 17 : 6;
	put16(ip + 10, 0);
	put32(ip + 12, 0x0a000001);
	put32(ip + 16, 0x0a0000fe);
	put16(ip + 10, packet_sum(ip, hdrlen));
}

static void
build_l4(const struct packet *p, uint8_t *l4)
{
	put16(l4, 0x1234);
	put16(l4 + 2, 0x0050);
	if (p->udp) {
		put16(l4 + 4, 8 + p->paylen);
		put16(l4 + 6, 0);
		return;
	}
	memset(l4 + 4, 0x01, 16 + 4 * p->tcpopts);
	put32(l4 + 4, p->seq);
	put32(l4 + 8, 0x55667788);
	l4[12] = (5 + p->tcpopts) << 4;
	l4[13] = p->flags;
	put16(l4 + 14, 0x4000);
	put16(l4 + 16, 0);
	put16(l4 + 18, 0);
}

struct packet
packet_segment(const struct packet *p, size_t off, size_t mss)
{
	struct packet q = *p;

	q.payload += off;
	q.paylen = MIN(mss, p->paylen - off);
	q.id += off / mss;
	q.seq += off;
	if (off + q.paylen < p->paylen)
		q.flags &= ~(PACKET_FIN | PACKET_PSH);
	if (off > 0)
		q.flags &= ~PACKET_CWR;
	return (q);
}

size_t
packet_build(const struct packet *p, uint8_t *frame)
{
	uint8_t *type = frame + 12;
	size_t l4, len;
	uint16_t sum;

	l4 = packet_l4(p);
	len = packet_hdrlen(p) + p->paylen;
	memcpy(frame, dst_mac, 6);
	memcpy(frame + 6, src_mac, 6);
	if (p->vlan) {
		put16(type, 0x8100);
		put16(type + 2, p->tag);
		type += 4;
	}
	put16(type, p->v6 ? 0x86dd : 0x0800);
	build_ip(p, frame + packet_l3(p), len - packet_l3(p));
	build_l4(p, frame + l4);
	if (p->paylen > 0)
		memcpy(frame + packet_hdrlen(p), p->payload, p->paylen);
	sum = ~add(pseudo(p, frame, len - l4), frame + l4, len - l4);
	if (p->udp && sum == 0)
		sum = 0xffff;
	put16(frame + sum_offset(p), sum);
	return (len);
}

void
packet_prepare(const struct packet *p, uint8_t *frame, bool length)
{
	size_t l4len;

	l4len = packet_hdrlen(p) - packet_l4(p) + p->paylen;
	if (!p->v6)
		put16(frame + packet_l3(p) + 10, 0);
	put16(frame + sum_offset(p), pseudo(p, frame, length ? l4len : 0));
}

size_t
packet_build_segment(const struct packet *p, size_t off, size_t mss,
    uint8_t *frame)
{
	struct packet q = packet_segment(p, off, mss);

	return (packet_build(&q, frame));
}

size_t
packet_build_partial(const struct packet *p, uint8_t *frame)
{
	const size_t l3 = packet_l3(p), len = packet_build(p, frame);

	packet_prepare(p, frame, true);
	if (!p->v6)
		put16(frame + l3 + 10, packet_sum(frame + l3,
		    20 + 4 * p->ipopts));
	return (len);
}

size_t
packet_build_tso(const struct packet *p, uint8_t *packet)
{
	struct packet header = *p;
	size_t hdrlen;

	/* Lengths in the headers have 16 bits. */
	header.paylen = 0;
	hdrlen = packet_build(&header, packet);
	packet_prepare(&header, packet, false);
	if (p->paylen > 0)
		memcpy(packet + hdrlen, p->payload, p->paylen);
	return (hdrlen + p->paylen);
}

struct packet
packet_random(const uint8_t *payload, size_t paylen, uint32_t *seed)
{
	struct packet p = {
		.v6 = test_chance(seed, 1, 2), .udp = test_chance(seed, 1, 3),
		.tcpopts = test_below(seed, 11), .id = test_random(seed),
		.seq = test_random(seed), .flags = test_random(seed),
		.payload = payload, .paylen = paylen,
	};

	if (!p.v6 && test_chance(seed, 1, 3))
		p.ipopts = test_below(seed, 11);
	return (p);
}

void
packet_fill(uint8_t *buf, size_t len, uint32_t seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = test_random(&seed);
}
