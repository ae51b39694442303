/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See e82574_two.h.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/socket.h>

#include <netinet/in.h>

#include <arpa/inet.h>

#include <string.h>

#include "e82545_check.h"
#include "e82574_two.h"

const uint8_t two_key[40] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2,
	0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
	0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4,
	0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
	0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

const struct vector two_vectors[NVECTORS] = {
	{ "161.142.100.80", "66.9.149.187", 1766, 2794,
	  0x323e8fc2, 0x51ccc178 },
	{ "65.69.140.83", "199.92.111.2", 4739, 14230,
	  0xd718262a, 0xc626b0ea },
	{ "12.22.207.184", "24.19.198.95", 38024, 12898,
	  0xd2d0a5de, 0x5c2b394a },
	{ "209.142.163.6", "38.27.205.30", 2217, 48228,
	  0x82989176, 0xafc7327f },
	{ "202.188.127.2", "153.39.163.191", 1303, 44251,
	  0x5d1809c5, 0x10e828a2 },
	{ "3ffe:2501:200:3::1", "3ffe:2501:200:1fff::7", 1766, 2794,
	  0x2cc18cd5, 0x40207d3d },
	{ "ff02::1", "3ffe:501:8::260:97ff:fe40:efab", 4739, 14230,
	  0x0f0c461c, 0xdde51bbf },
	{ "fe80::200:f8ff:fe21:67cf", "3ffe:1900:4545:3:200:f8ff:fe21:67cf",
	  38024, 44251, 0x4b61e985, 0x02d1feef },
};

uint64_t two_ring1, two_buf1;

struct e82574_rxd
two_desc(struct host *h, unsigned int queue, uint32_t n)
{
	struct e82574_rxd d;

	memcpy(&d, queue == 0 ? (void *)host_rxd(h, n) :
	    host_mem(h, two_ring1 + n * sizeof(d), sizeof(d)), sizeof(d));
	return (d);
}

void
two_post1(struct host *h, uint32_t n)
{
	struct e82545_rxd *d;
	uint32_t i;

	for (i = 0; i < n; i++) {
		d = host_mem(h, two_ring1 + i * sizeof(*d), sizeof(*d));
		memset(d, 0, sizeof(*d));
		d->addr = htole64(two_buf1 + i * 2048);
	}
	host_wr(h, RDT1, n);
}

void
two_post0(struct host *h, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		memset(host_rxd(h, i), 0, 16);
		host_rxd(h, i)->addr = htole64(h->rxbuf + i * 2048);
	}
	host_wr(h, E82545_RDT, n);
}

void
two_place1(struct host *h, uint32_t nrxd)
{
	two_ring1 = host_alloc(h, nrxd * sizeof(struct e82545_rxd), 128);
	two_buf1 = host_alloc(h, nrxd * 2048, 4096);
	host_wr(h, 0x2900, two_ring1);
	host_wr(h, 0x2904, 0);
	host_wr(h, 0x2908, nrxd * sizeof(struct e82545_rxd));
	host_wr(h, RDH1, 0);
	two_post1(h, nrxd - 1);
}

void
two_set_reta(struct host *h, uint32_t bit)
{
	uint32_t value;
	unsigned int i, j;

	for (i = 0; i < 32; i++) {
		value = 0;
		for (j = 0; j < 4; j++)
			if (((4 * i + j) & bit) != 0)
				value |= 0x80U << 8 * j;
		host_wr(h, RETA(i), value);
	}
}

struct host *
two_up(uint32_t nrxd)
{
	struct host *h;
	unsigned int i;

	h = host_create_82574(HOST_RAM);
	host_wr(h, RFCTL, EXTEN);
	host_up(h, 64, nrxd, 2048);
	host_set(h, E82545_RCTL, E82545_RCTL_LPE | E82545_RCTL_MPE);
	two_place1(h, nrxd);
	for (i = 0; i < 10; i++)
		host_wr(h, RSSRK(i), le32dec(two_key + 4 * i));
	two_set_reta(h, 1);
	host_set(h, E82545_RXCSUM, RXCSUM_PCSD);
	host_wr(h, MRQC, RSS_ALL);
	host_rd(h, E82545_ICR);
	return (h);
}

size_t
two_vector_frame(const struct vector *v, bool v6, uint8_t proto, uint8_t *frame)
{
	const size_t l4 = v6 ? 54 : 34;

	memset(frame, 0, 100);
	memcpy(frame, host_mac, 6);
	be16enc(frame + 12, v6 ? 0x86dd : 0x0800);
	if (v6) {
		frame[14] = 0x60;
		be16enc(frame + 18, 20);
		frame[20] = proto;
		frame[21] = 64;
		ATF_REQUIRE_EQ(1, inet_pton(AF_INET6, v->src, frame + 22));
		ATF_REQUIRE_EQ(1, inet_pton(AF_INET6, v->dst, frame + 38));
	} else {
		frame[14] = 0x45;
		be16enc(frame + 16, 40);
		frame[22] = 64;
		frame[23] = proto;
		ATF_REQUIRE_EQ(1, inet_pton(AF_INET, v->src, frame + 26));
		ATF_REQUIRE_EQ(1, inet_pton(AF_INET, v->dst, frame + 30));
	}
	be16enc(frame + l4, v->sport);
	be16enc(frame + l4 + 2, v->dport);
	frame[l4 + 12] = 0x50;
	return (MAX(l4 + 20, 60));
}

size_t
two_frame_for(unsigned int queue, uint8_t *frame)
{
	const struct vector *v = &two_vectors[queue == 0 ? 0 : 3];

	ATF_REQUIRE_EQ(queue, v->hash_tcp & 1);
	return (two_vector_frame(v, false, PROTO_TCP, frame));
}
