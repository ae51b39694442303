/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Receive descriptors of the 82574L: as those of the 82545EM, or extended.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <string.h>

/* The model's headers need no probes here. */
#ifndef WITHOUT_DTRACE
#define	WITHOUT_DTRACE
#endif

#include "e82545_check.h"
#include "e82545_rx_impl.h"
#include "e82574.h"

#define	RFCTL		0x5008
#define	RFCTL_EXTEN	0x8000
#define	RFCTL_IPFRSP_DIS 0x4000
/* An adapter with extended descriptors. */
static struct host *
ext_up(uint32_t nrxd, uint32_t bufsize)
{
	struct host *h;

	h = host_create_82574(HOST_RAM);
	host_wr(h, RFCTL, RFCTL_EXTEN);
	host_up(h, 64, nrxd, bufsize);
	host_set(h, E82545_RCTL, E82545_RCTL_LPE);
	host_wr(h, E82545_IMS, 0xffffffff);
	return (h);
}

TEST(store, "Each bit of a descriptor has its place; the first is not stored "
    "with the others")
{
	const uint64_t done[3] = { htole64(0xfedcba9876543210),
	    htole64(UINT64_MAX), htole64(0x87654321abcd1234) };
	static struct e82545_rxq q;
	uint64_t ring[5][2];
	struct host *h;
	unsigned int i;

	h = ext_up(64, 2048);
	memset(ring, 0x55, sizeof(ring));
	memcpy(q.done, done, sizeof(done));
	for (i = 0; i < 3; i++)
		q.lower[i] = htole64(i + 1);
	/* Around the end: 3, 4 and 0. */
	e82574_rx_store(h->dev, ring, 5, 3, &q, 3);
	ATF_CHECK_EQ(0xffff000000000000, le64toh(ring[4][0]));
	ATF_CHECK_EQ(0xffffffffff0000ff, le64toh(ring[4][1]));
	ATF_CHECK_EQ(0xabcd000000000000, le64toh(ring[0][0]));
	ATF_CHECK_EQ(0x8765123443000021, le64toh(ring[0][1]));
	ATF_CHECK_EQ(0x5555555555555555, ring[3][0]);
	ATF_CHECK_EQ(0x5555555555555555, ring[3][1]);
	q.hashed = true;
	e82574_rx_store(h->dev, ring, 5, 3, &q, 3);
	ATF_CHECK_EQ(2, le64toh(ring[4][0]));
	ATF_CHECK_EQ(3, le64toh(ring[0][0]));
	ATF_CHECK_EQ(0x5555555555555555, ring[3][0]);
	e82574_rx_store_one(h->dev, ring, 3, &q, 0);
	ATF_CHECK_EQ(1, le64toh(ring[3][0]));
	ATF_CHECK_EQ(0xfedc3210ba000098, le64toh(ring[3][1]));
	q.stamped = 1;
	e82574_rx_store_one(h->dev, ring, 3, &q, 0);
	ATF_CHECK_EQ(0xfedc3210ba000198, le64toh(ring[3][1]));
	/* And no other one. */
	for (i = 1; i < 3; i++) {
		ATF_CHECK_EQ(0x5555555555555555, ring[i][0]);
		ATF_CHECK_EQ(0x5555555555555555, ring[i][1]);
	}
	host_destroy(h);
}

/*
 * An adapter whose descriptors have four buffers, of sizes as in PSRCTL, at
 * split_buf(), and are all posted but one.
 */
#define	NSPLIT		16		/* descriptors */
#define	SPLIT_BUF	8192		/* bytes between buffers */

static uint64_t split_base;

static uint64_t
split_buf(uint32_t n, int i)
{
	return (split_base + (n * 4 + i) * SPLIT_BUF);
}

static struct e82574_rxd_split *
split_desc(struct host *h, uint32_t n)
{
	return (host_mem(h, h->rxring + n * 32, 32));
}

static void
split_post(struct host *h, uint32_t n)
{
	uint64_t *desc = (void *)split_desc(h, n);
	int i;

	for (i = 0; i < 4; i++)
		desc[i] = htole64(split_buf(n, i));
}

static struct host *
split_up(uint32_t psrctl)
{
	struct host *h;
	uint32_t n;

	h = ext_up(2 * NSPLIT, 256);
	host_clear(h, E82545_RCTL, E82545_RCTL_EN);
	split_base = host_alloc(h, NSPLIT * 4 * SPLIT_BUF, 4096);
	for (n = 0; n < NSPLIT; n++)
		split_post(h, n);
	host_wr(h, E82545_RDT, 2 * (NSPLIT - 1));
	host_wr(h, 0x2170, psrctl);
	host_set(h, E82545_RCTL, E82545_RCTL_EN | 0x400);
	return (h);
}

/*
 * Check `len' bytes in descriptor `n', with buffers of these sizes, of which
 * `header' are apart.
 */
static void
split_check_bytes(struct host *h, uint32_t n, const uint8_t *frame, size_t len,
    const uint32_t sizes[4], uint32_t header)
{
	const struct e82574_rxd_split *d = split_desc(h, n);
	size_t here;
	int i;

	ATF_CHECK_EQ(0, d->first.mrq);
	ATF_CHECK_EQ_MSG(header == 0 ? 0 : 0x8000 | header, d->header,
	    "%#x %#x", header, d->header);
	ATF_CHECK_EQ(0, d->reserved);
	for (i = 0; i < 4; i++) {
		here = MIN(len, i == 0 && header != 0 ? header : sizes[i]);
		ATF_CHECK_EQ(here, i == 0 ? d->first.length :
		    d->length[i - 1]);
		if (here > 0)
			ATF_CHECK_EQ(0, memcmp(frame, host_mem(h,
			    split_buf(n, i), here), here));
		frame += here;
		len -= here;
	}
	ATF_CHECK_EQ(0, len);
}

/* The same of a frame that is no packet, or of a part of it. */
static void
split_check(struct host *h, uint32_t n, const uint8_t *frame, size_t len,
    const uint32_t sizes[4], bool last)
{
	ATF_CHECK_EQ(last ? RXD_DONE | E82545_RXD_IXSM : E82545_RXD_DD,
	    split_desc(h, n)->first.status);
	split_check_bytes(h, n, frame, len, sizes, 0);
}

TEST(split_sizes, "Buffers of any sizes, none, and too small ones")
{
	static const struct {
		uint32_t	psrctl;
		uint32_t	sizes[4];
	} good[] = {
		{ 2, { 256, 0, 0, 0 } },
		{ 0x7f, { 16256, 0, 0, 0 } },
		{ 1 | 1 << 16, { 128, 0, 1024, 0 } },
		{ 1 << 8 | 1 << 24, { 0, 1024, 0, 1024 } },
		{ 0x01010101, { 128, 1024, 1024, 1024 } },
	};
	struct host *h;
	uint8_t frame[200];
	unsigned int i;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	for (i = 0; i < nitems(good); i++) {
		h = split_up(good[i].psrctl);
		rx_receive(h, frame, sizeof(frame));
		split_check(h, 0, frame, sizeof(frame), good[i].sizes, true);
		host_destroy(h);
	}
	for (i = 0; i < 2; i++) {
		h = split_up(i);
		rx_receive(h, frame, sizeof(frame));
		ATF_CHECK_EQ(0, host_rd(h, E82545_RDH));
		ATF_CHECK(host_counter(h, E82545_C_RX_BAD_RING) > 0);
		/* Nor without a ring, or with the receiver off. */
		host_wr(h, E82545_RDLEN, 0);
		rx_receive(h, frame, sizeof(frame));
		host_wr(h, E82545_RDLEN, 32 * NSPLIT);
		host_clear(h, E82545_RCTL, E82545_RCTL_EN);
		rx_receive(h, frame, sizeof(frame));
		host_set(h, E82545_RCTL, E82545_RCTL_EN);
		/* It goes on when they are larger. */
		host_wr(h, 0x2170, 2);
		rx_receive(h, frame, sizeof(frame));
		split_check(h, 0, frame, sizeof(frame), good[0].sizes, true);
		host_destroy(h);
	}
}

TEST(split_bad, "One of the four is outside memory: an error, and the frame "
    "is nowhere else")
{
	struct host *h;
	uint8_t frame[6000];
	int i;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	for (i = 0; i < 4; i++) {
		h = split_up(1 | 1 << 8 | 4 << 16 | 4 << 24);
		((uint64_t *)(void *)split_desc(h, 0))[i] =
		    htole64(1ULL << 40 | i);
		rx_receive(h, frame, sizeof(frame));
		ATF_CHECK_EQ_MSG(0x80000000, split_desc(h, 0)->first.status &
		    0xff000000, "%d", i);
		ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_BAD_ADDR));
		host_destroy(h);
	}
	/* Without the first the descriptor is passed over. */
	h = split_up(1 | 4 << 8);
	*(uint64_t *)(void *)split_desc(h, 0) = 0;
	rx_receive(h, frame, 60);
	ATF_CHECK_EQ(E82545_RXD_DD, split_desc(h, 0)->first.status);
	ATF_CHECK_EQ(0, split_desc(h, 0)->first.length);
	ATF_CHECK_EQ(60, split_desc(h, 1)->first.length);
	host_destroy(h);
}

/* A packet to the adapter, and what is changed of it. */
struct split_packet {
	struct packet	p;
	int		at;		/* offset of these bytes from the IP */
	uint8_t		bytes[2];	/* header on; none if it is 0 */
	int		header;		/* less than packet_hdrlen(), or none */
	bool		fragment;
};
#define	NO_HEADER	1000
#define	PAYLOAD		200

static const struct split_packet split_packets[] = {
	{ .p = { .udp = false } },
	{ .p = { .udp = true } },
	{ .p = { .ipopts = 3, .tcpopts = 5 } },
	{ .p = { .v6 = true } },
	{ .p = { .v6 = true, .udp = true, .vlan = true, .tag = 7 } },
	{ .p = { .vlan = true, .tag = 7 } },
	/* ICMP, and the number of IPv6's fragments: no header behind IP's. */
	{ .p = { .udp = true }, .at = 8, .bytes = { 64, 1 }, .header = 8 },
	{ .p = { .udp = true }, .at = 8, .bytes = { 64, 44 }, .header = 8 },
	/* The first fragment, and others. */
	{ .p = { .udp = true, .frag = 0x2000 }, .header = 8, .fragment = true },
	{ .p = { .udp = true, .frag = 1 }, .header = 8, .fragment = true },
	{ .p = { .udp = true, .frag = 0x1000 }, .header = 8, .fragment = true },
	{ .p = { .v6 = true, .udp = true }, .at = 6, .bytes = { 44, 64 },
	    .header = 8, .fragment = true },
	/* IPv6 with an extension header that is what UDP's header was. */
	{ .p = { .v6 = true, .udp = true }, .at = 6, .bytes = { 60, 64 },
	    .header = -1 },
	/* Wrong versions and lengths. */
	{ .p = { .udp = true }, .at = 0, .bytes = { 0x65, 0 },
	    .header = NO_HEADER },
	{ .p = { .v6 = true }, .at = 0, .bytes = { 0x40, 0 },
	    .header = NO_HEADER },
	{ .p = { .udp = true }, .at = 0, .bytes = { 0x44, 0 },
	    .header = NO_HEADER },
	{ .p = { .udp = true, .frag = 5 }, .at = 0, .bytes = { 0x44, 0 },
	    .header = NO_HEADER },
	{ .p = { .udp = true, .frag = 5 }, .at = 0, .bytes = { 0x55, 0 },
	    .header = NO_HEADER },
	{ .p = { .udp = false }, .at = 32, .bytes = { 0x4f, 0 },
	    .header = NO_HEADER },
	/* Another type than IP's. */
	{ .p = { .udp = true }, .at = -2, .bytes = { 8, 6 },
	    .header = NO_HEADER },
};

/* Build it; returns its length, and that of its headers. */
static size_t
split_build(const struct split_packet *sp, uint8_t *frame, uint32_t *header)
{
	static uint8_t payload[PAYLOAD];
	struct packet p = sp->p;
	size_t len;
	unsigned int i;

	for (i = 0; i < PAYLOAD; i++)
		payload[i] = i;
	/* As an extension header: another one follows, of 8 bytes. */
	payload[0] = 59;
	p.payload = payload;
	p.paylen = PAYLOAD;
	len = packet_build(&p, frame);
	memcpy(frame, host_mac, 6);
	if (sp->bytes[0] != 0)
		memcpy(frame + packet_l3(&p) + sp->at, sp->bytes, 2);
	*header = sp->header == NO_HEADER ? 0 :
	    (uint32_t)(packet_hdrlen(&p) - MAX(sp->header, 0));
	/* Its next one is 0x12 (no protocol with a header), its length 0. */
	if (sp->header == -1)
		memcpy(frame + packet_l4(&p), "\x12\0", 2);
	return (len);
}

TEST(headers, "The headers of a packet are split from it")
{
	static const uint32_t sizes[4] = { 128, 1024, 0, 1024 };
	const struct split_packet *sp;
	uint8_t frame[512];
	uint32_t header;
	struct host *h;
	unsigned int i, n = 0;
	size_t len;
	int off;

	h = split_up(1 | 1 << 8 | 1 << 24);
	for (off = 0; off < 2; off++) {
		/* Fragments only unless the guest does not want that. */
		host_wr(h, RFCTL, RFCTL_EXTEN | (off ? RFCTL_IPFRSP_DIS : 0));
		for (i = 0; i < nitems(split_packets); i++) {
			sp = &split_packets[i];
			len = split_build(sp, frame, &header);
			if (off && sp->fragment)
				header = 0;
			host_inject(h, frame, len, 1 + i % 4);
			host_run(h);
			printf("%u%s\n", i, off ? ", no fragments" : "");
			ATF_CHECK_EQ(RXD_DONE, split_desc(h, n)->first.status &
			    RXD_DONE);
			split_check_bytes(h, n, frame, len, sizes, header);
			split_post(h, n);
			host_wr(h, E82545_RDT, 2 * n);
			n = (n + 1) % NSPLIT;
		}
	}
	/* Without its tag it has fewer. */
	host_set(h, E82545_CTRL, E82545_CTRL_VME);
	len = split_build(&split_packets[4], frame, &header);
	host_inject(h, frame, len, 2);
	host_run(h);
	memmove(frame + 4, frame, 12);
	split_check_bytes(h, n, frame + 4, len - 4, sizes, header - 4);
	host_destroy(h);
}

TEST(headers_cut, "Headers that are not complete are not split")
{
	static const uint32_t sizes[4] = { 128, 1024, 0, 0 };
	uint8_t frame[512], padded[512];
	uint32_t header;
	struct host *h;
	unsigned int i;
	size_t len;

	for (i = 0; i < nitems(split_packets); i++) {
		(void)split_build(&split_packets[i], frame, &header);
		for (len = 6; len < header + 2; len++) {
			h = split_up(1 | 1 << 8);
			memset(padded, 0, sizeof(padded));
			memcpy(padded, frame, len);
			host_inject(h, frame, len, 1);
			host_run(h);
			split_check_bytes(h, 0, padded, MAX(len,
			    (size_t)E82545_ETH_MIN), sizes,
			    len < header ? 0 : header);
			host_destroy(h);
		}
	}
}

TEST(headers_sizes, "Headers are split if their buffer has space, and there is "
    "another one; a packet may take several descriptors")
{
	static const struct packet p = { .ipopts = 9, .tcpopts = 9 };
	static const uint32_t one[4] = { 16256, 0, 0, 0 },
	    small[4] = { 128, 1024, 1024, 1024 },
	    large[4] = { 256, 1024, 0, 0 };
	static uint8_t payload[8000], frame[9000];
	struct packet q = p;
	struct host *h;
	uint32_t header;
	size_t len;
	unsigned int i;

	q.payload = payload;
	q.paylen = 1000;
	for (i = 0; i < sizeof(payload); i++)
		payload[i] = i * 7;
	header = packet_hdrlen(&q);
	ATF_REQUIRE_EQ(126, header);
	len = packet_build(&q, frame);
	memcpy(frame, host_mac, 6);
	h = split_up(0x7f);
	rx_receive(h, frame, len);
	split_check_bytes(h, 0, frame, len, one, 0);
	host_destroy(h);
	h = split_up(0x01010101);
	rx_receive(h, frame, len);
	split_check_bytes(h, 0, frame, len, small, header);
	/* With a tag they have 130 bytes. */
	q.vlan = true;
	len = packet_build(&q, frame);
	memcpy(frame, host_mac, 6);
	rx_receive(h, frame, len);
	split_check_bytes(h, 1, frame, len, small, 0);
	/* But not for the guest. */
	host_set(h, E82545_CTRL, E82545_CTRL_VME);
	rx_receive(h, frame, len);
	memmove(frame + 4, frame, 12);
	split_check_bytes(h, 2, frame + 4, len - 4, small, header);
	host_destroy(h);

	/* The first buffers of other descriptors are empty. */
	q.vlan = false;
	q.paylen = 5 * 1024 + 1;
	len = packet_build(&q, frame);
	memcpy(frame, host_mac, 6);
	h = split_up(2 | 1 << 8);
	rx_receive(h, frame, len);
	split_check_bytes(h, 0, frame, header + 1024, large, header);
	for (i = 1; i < 6; i++) {
		const size_t at = header + i * 1024;
		const struct e82574_rxd_split *d = split_desc(h, i);

		ATF_CHECK_EQ(0, d->header);
		ATF_CHECK_EQ(0, d->first.length);
		ATF_CHECK_EQ(i < 5 ? 1024 : 1, d->length[0]);
		ATF_CHECK_EQ(0, memcmp(frame + at, host_mem(h, split_buf(i, 1),
		    d->length[0]), d->length[0]));
		ATF_CHECK_EQ(i < 5 ? E82545_RXD_DD : RXD_DONE,
		    d->first.status & RXD_DONE);
	}
	ATF_CHECK_EQ(12, host_rd(h, E82545_RDH));
	/* It needs as many: with one less it waits. */
	host_wr(h, E82545_RDT, 2 * 11);
	rx_receive(h, frame, len);
	ATF_CHECK_EQ(12, host_rd(h, E82545_RDH));
	host_wr(h, E82545_RDT, 2 * 12);
	host_run(h);
	ATF_CHECK_EQ(24, host_rd(h, E82545_RDH));
	host_destroy(h);
}

TEST(headers_null, "Descriptors without a buffer are passed over, also within "
    "a packet")
{
	static const uint32_t sizes[4] = { 128, 1024, 0, 0 };
	static uint8_t payload[2000], frame[2100];
	struct packet p = { .payload = payload, .paylen = sizeof(payload) };
	struct host *h;
	size_t len;
	int i;

	len = packet_build(&p, frame);
	memcpy(frame, host_mac, 6);
	h = split_up(1 | 1 << 8);
	for (i = 0; i < 4; i += 2)
		*(uint64_t *)(void *)split_desc(h, i) = 0;
	rx_receive(h, frame, len);
	split_check_bytes(h, 1, frame, 54 + 1024, sizes, 54);
	ATF_CHECK_EQ(E82545_RXD_DD, split_desc(h, 2)->first.status);
	ATF_CHECK_EQ(0, split_desc(h, 2)->header);
	ATF_CHECK_EQ(sizeof(payload) - 1024, split_desc(h, 3)->length[0]);
	ATF_CHECK_EQ(8, host_rd(h, E82545_RDH));
	host_destroy(h);
}

TEST(ip6_sums, "Checksums of IPv6 packets are verified without a bit of RXCSUM, "
    "unless RFCTL says otherwise")
{
	static const struct {
		uint32_t	rxcsum, rfctl;
		uint8_t		status;
	} rows[] = {
		{ E82545_RXCSUM_TUOFL, 0, E82545_RXD_TCPCS },
		{ E82545_RXCSUM_TUOFL, 0x400, E82545_RXD_IXSM },
		{ RXCSUM_ON, 0x800, E82545_RXD_IXSM },
		{ E82545_RXCSUM_IPOFL, 0, E82545_RXD_IXSM },
	};
	const struct packet p = { .v6 = true,
	    .payload = (const uint8_t *)"some bytes", .paylen = 10 };
	struct host *h = host_create_82574(HOST_RAM);
	uint8_t frame[PACKET_HDR_MAX + 10];
	struct e82545_rxd rxd;
	unsigned int i, good;
	size_t len;

	host_up(h, 64, 64, 2048);
	for (i = 0; i < 2 * nitems(rows); i++) {
		good = i % 2;
		host_wr(h, E82545_RXCSUM, rows[i / 2].rxcsum);
		host_wr(h, RFCTL, rows[i / 2].rfctl);
		len = packet_build(&p, frame);
		memcpy(frame, host_mac, 6);
		frame[len - 1] += !good;
		rx_receive(h, frame, len);
		rxd = check_taken(h, frame, len);
		ATF_CHECK_EQ_MSG(RXD_DONE | rows[i / 2].status, rxd.status,
		    "%u: %#x", i, rxd.status);
		ATF_CHECK_EQ(!good && (rows[i / 2].status &
		    E82545_RXD_TCPCS) != 0 ? E82545_RXD_ERR_TCPE : 0,
		    rxd.errors);
	}
	host_destroy(h);
}

TEST_PROGRAM
