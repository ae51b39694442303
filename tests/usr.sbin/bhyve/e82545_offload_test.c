/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The arithmetic of e82545_offload.c against known vectors and against a
 * straightforward implementation.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <stdlib.h>
#include <string.h>

#include "e82545_check.h"
#include "e82545_offload.h"

/* What a context descriptor names. */
#define	TCP4	(E82545_TXD_TUCMD_TCP | E82545_TXD_TUCMD_IP)
#define	TCP6	E82545_TXD_TUCMD_TCP
#define	UDP4	E82545_TXD_TUCMD_IP
#define	UDP6	0

/* Split `len' bytes into fragments of 0 to 40 bytes. */
static int
cut(uint8_t *buf, size_t len, struct iovec *iov, uint32_t *seed)
{
	size_t n;
	int i;

	for (i = 0; len > 0; i++) {
		n = test_random(seed) % 41;
		n = MIN(n, len);
		iov[i].iov_base = buf;
		iov[i].iov_len = n;
		buf += n;
		len -= n;
	}
	return (i);
}

TEST(insert, "A checksum is inserted at its offset, or not at all")
{
	static const struct {
		uint8_t		start, field;
		uint16_t	end;
		bool		ok;
	} t[] = {
		{ 14, 24, 33, true },
		{ 14, 24, 0, true },
		{ 0, 0, 99, true },
		{ 99, 48, 0, true },
		{ 99, 48, 99, true },
		{ 14, 24, 13, false },		/* ends before it begins */
		{ 14, 24, 100, false },		/* ends outside */
		{ 14, 24, 0xffff, false },
		{ 100, 24, 0, false },		/* begins outside */
		{ 255, 24, 0, false },
		{ 14, 49, 0, false },		/* not in the first fragment */
		{ 14, 255, 0, false },
	};
	uint8_t buf[100], expect[100];
	struct e82545_sum_where where;
	struct iovec iov[2];
	uint32_t seed = 3;
	size_t i, n;
	uint16_t sum;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		for (n = 0; n < sizeof(buf); n++)
			buf[n] = test_random(&seed);
		memcpy(expect, buf, sizeof(buf));
		iov[0].iov_base = buf;
		iov[0].iov_len = 50;
		iov[1].iov_base = buf + 50;
		iov[1].iov_len = 50;
		where.start = t[i].start;
		where.field = t[i].field;
		where.end = t[i].end;
		if (t[i].ok) {
			n = t[i].end == 0 ? 99 : t[i].end;
			sum = packet_sum(buf + t[i].start,
			    n - t[i].start + 1);
			be16enc(expect + t[i].field, sum);
		}
		ATF_CHECK_EQ_MSG(t[i].ok, e82545_sum_insert(iov, sizeof(buf),
		    &where, false), "case %zu", i);
		ATF_CHECK_EQ_MSG(0, memcmp(buf, expect, sizeof(buf)),
		    "case %zu", i);
	}
}

TEST(sum_copy, "A sum made while copying")
{
	uint8_t from[700], to[700 + 1];
	size_t i, len, off;

	packet_fill(from, sizeof(from), 9);
	for (len = 0; len < 640; len++) {
		off = len % 7;
		memset(to, 0x5a, sizeof(to));
		ATF_REQUIRE_EQ_MSG(e82545_sum(from + off, len, 0, false),
		    frame_sum_copy(to + 1, from + off, len), "%zu", len);
		ATF_REQUIRE_EQ_MSG(packet_sum(from + off, len),
		    be16toh(frame_sum_fold(frame_sum_copy(to + 1,
		    from + off, len))), "%zu", len);
		ATF_REQUIRE_EQ(0, memcmp(to + 1, from + off, len));
		ATF_REQUIRE_EQ(0x5a, to[0]);
		for (i = 1 + len; i < sizeof(to); i++)
			ATF_REQUIRE_EQ(0x5a, to[i]);
	}
	memset(from, 0xff, sizeof(from));
	for (len = 0; len < 640; len++)
		ATF_REQUIRE_EQ(packet_sum(from, len), be16toh(frame_sum_fold(
		    e82545_sum(from, len, 0, false))));
}

TEST(tso_valid, "A TSO context whose headers are not in HDRLEN is refused, or "
    "whose headers overlap, or with another protocol's checksum")
{
	static const struct {
		uint32_t	cmd;
		uint16_t	mss;
		uint8_t		hdrlen, ip, l4, field;
		bool		ok;
	} t[] = {
		{ TCP4, 1460, 54, 14, 34, 50, true },
		{ TCP4, 1, 54, 14, 34, 50, true },
		{ TCP4, 0, 54, 14, 34, 50, false },
		{ TCP4, 1460, 53, 14, 34, 50, false },
		{ TCP4, 1460, 0, 14, 34, 50, false },
		{ TCP4, 1460, 54, 15, 34, 50, false },
		{ TCP4, 1460, 54, 255, 34, 50, false },
		{ TCP4, 1460, 55, 14, 35, 51, true },
		{ TCP4, 1460, 54, 14, 35, 51, false },
		{ TCP4, 1460, 54, 14, 34, 49, false },
		{ TCP4, 1460, 54, 14, 34, 40, false },
		{ UDP4, 1460, 42, 14, 34, 40, true },
		{ UDP4, 1460, 41, 14, 34, 40, false },
		{ UDP4, 1460, 54, 14, 34, 50, false },
		{ TCP6, 1460, 74, 14, 54, 70, true },
		{ TCP6, 1460, 74, 15, 54, 70, false },
		{ TCP6, 1460, 73, 14, 54, 70, false },
		{ UDP6, 1460, 62, 14, 54, 60, true },
		{ TCP4, 65535, 255, 14, 235, 251, true },
		{ TCP4, 65535, 255, 14, 236, 252, false },
	};
	struct e82545_txctx ctx;
	unsigned int i;

	for (i = 0; i < nitems(t); i++) {
		memset(&ctx, 0, sizeof(ctx));
		ctx.cmd = t[i].cmd;
		ctx.mss = t[i].mss;
		ctx.hdrlen = t[i].hdrlen;
		ctx.ip.start = t[i].ip;
		ctx.l4.start = t[i].l4;
		ctx.l4.field = t[i].field;
		ATF_CHECK_EQ_MSG(t[i].ok, e82545_tso_valid(&ctx), "row %u", i);
	}
}

/* Checksum status of a receive descriptor. */
struct rx_sums {
	uint16_t	csum;
	uint8_t		status, errors;
};

static void
rx_sum(uint8_t *frame, size_t len, uint32_t rxcsum, bool strip, uint32_t *seed,
    struct rx_sums *rs)
{
	struct iovec iov[2000];
	uint64_t upper;
	bool tagged;

	cut(frame, len, iov, seed);
	tagged = len >= 18 && be16dec(frame + 12) == 0x8100;
	upper = e82545_rx_sum(iov, len, e82545_sum_iov(iov, 0, len, false),
	    len < 14 ? 0 : be16dec(frame + 12 + (tagged ? 4 : 0)), rxcsum,
	    tagged, tagged && strip);
	rs->csum = upper >> 16;
	rs->status = upper >> 32;
	rs->errors = upper >> 40;
}

#define	ALL_ON	(E82545_RXCSUM_IPOFL | E82545_RXCSUM_TUOFL |		\
		E82545_RXCSUM_IPV6OFL)

TEST(rx_switches, "Each kind of check can be turned off, or does not apply")
{
	uint8_t frame[PACKET_HDR_MAX + 64], payload[64] = { 1, 2, 3 };
	struct packet p4 = { .payload = payload, .paylen = 20 };
	struct packet p6 = { .v6 = true, .payload = payload, .paylen = 20 };
	struct packet u4 = { .udp = true, .payload = payload, .paylen = 20 };
	struct rx_sums rs;
	uint32_t seed = 5;
	size_t len;

#define	EXPECT(p, rxcsum, want) do {					\
	len = packet_build(&(p), frame);				\
	rx_sum(frame, len, (rxcsum), false, &seed, &rs);		\
	ATF_CHECK_EQ((want), rs.status);				\
	ATF_CHECK_EQ(0, rs.errors);					\
} while (0)
	EXPECT(p4, 0, E82545_RXD_IXSM);
	EXPECT(p4, E82545_RXCSUM_IPOFL, E82545_RXD_IPCS);
	EXPECT(p4, E82545_RXCSUM_TUOFL, E82545_RXD_TCPCS);
	EXPECT(p6, E82545_RXCSUM_IPOFL, E82545_RXD_IXSM);
	EXPECT(p6, E82545_RXCSUM_TUOFL, E82545_RXD_IXSM);
	EXPECT(p6, E82545_RXCSUM_TUOFL | E82545_RXCSUM_IPV6OFL,
	    E82545_RXD_TCPCS);
	/* Fragments: the first, and one in the middle. */
	p4.frag = 0x2000;
	EXPECT(p4, ALL_ON, E82545_RXD_IPCS);
	p4.frag = 0x2003;
	EXPECT(p4, ALL_ON, E82545_RXD_IPCS);
	p4.frag = 0x0003;
	EXPECT(p4, ALL_ON, E82545_RXD_IPCS);
	p4.frag = 0x4000;
	EXPECT(p4, ALL_ON, E82545_RXD_IPCS | E82545_RXD_TCPCS);
#undef EXPECT
	/* UDP without a checksum. */
	len = packet_build(&u4, frame);
	be16enc(frame + packet_l4(&u4) + 6, 0);
	rx_sum(frame, len, ALL_ON, false, &seed, &rs);
	ATF_CHECK_EQ(E82545_RXD_IPCS, rs.status);
	ATF_CHECK_EQ(0, rs.errors);
	/* UDP's length is less than IP's: the rest is not summed. */
	len = packet_build(&u4, frame);
	memset(frame + len, 0xa5, 6);
	be16enc(frame + packet_l3(&u4) + 2, len - packet_l3(&u4) + 6);
	rx_sum(frame, len + 6, E82545_RXCSUM_TUOFL, false, &seed, &rs);
	ATF_CHECK_EQ(E82545_RXD_TCPCS, rs.status);
	ATF_CHECK_EQ(0, rs.errors);
	/* Other protocols. */
	len = packet_build(&u4, frame);
	frame[packet_l3(&u4) + 9] = 50;
	rx_sum(frame, len, E82545_RXCSUM_TUOFL, false, &seed, &rs);
	ATF_CHECK_EQ(E82545_RXD_IXSM, rs.status);
}

TEST(rx_lies, "Checksums in and after an invalid header are not verified")
{
	static const struct {
		bool		v6, udp;
		/* Bytes of the IP header, in order, at `off' and off + 1. */
		int		off;
		uint16_t	value;
		uint32_t	rxcsum;
		uint8_t		status;
	} t[] = {
		/* Right. */
		{ false, false, 6, 0x4000, ALL_ON,
		    E82545_RXD_IPCS | E82545_RXD_TCPCS },
		/* Version, header length. */
		{ false, false, 0, 0x5500, ALL_ON, E82545_RXD_IXSM },
		{ false, false, 0, 0x4400, ALL_ON, E82545_RXD_IXSM },
		/* IP's length: less than a header, a header, TCP's. */
		{ false, false, 2, 19, ALL_ON, E82545_RXD_IXSM },
		{ false, false, 2, 20, ALL_ON, E82545_RXD_IPCS },
		{ false, false, 2, 39, ALL_ON, E82545_RXD_IPCS },
		{ false, false, 2, 40, ALL_ON,
		    E82545_RXD_IPCS | E82545_RXD_TCPCS },
		{ false, false, 2, 60, ALL_ON,
		    E82545_RXD_IPCS | E82545_RXD_TCPCS },
		{ false, false, 2, 61, ALL_ON, E82545_RXD_IXSM },
		/* UDP's. */
		{ false, true, 2, 27, ALL_ON, E82545_RXD_IPCS },
		{ false, true, 2, 47, ALL_ON, E82545_RXD_IPCS },
		{ false, true, 24, 7, ALL_ON, E82545_RXD_IPCS },
		{ false, true, 24, 8, ALL_ON,
		    E82545_RXD_IPCS | E82545_RXD_TCPCS },
		{ false, true, 24, 28, ALL_ON,
		    E82545_RXD_IPCS | E82545_RXD_TCPCS },
		{ false, true, 24, 29, ALL_ON, E82545_RXD_IPCS },
		/* The second fragment of eight bytes. */
		{ false, false, 6, 1, ALL_ON, E82545_RXD_IPCS },
		/* Version 6. */
		{ true, false, 6, 0x0640, ALL_ON, E82545_RXD_TCPCS },
		{ true, false, 0, 0x7000, ALL_ON, E82545_RXD_IXSM },
		{ true, false, 4, 19, ALL_ON, E82545_RXD_IXSM },
		{ true, false, 4, 40, ALL_ON, E82545_RXD_TCPCS },
		{ true, false, 4, 41, ALL_ON, E82545_RXD_IXSM },
		{ true, false, 6, 0x0640, E82545_RXCSUM_IPV6OFL,
		    E82545_RXD_IXSM },
		{ true, false, 6, 0x0640, E82545_RXCSUM_IPV6OFL |
		    E82545_RXCSUM_IPOFL, E82545_RXD_IXSM },
	};
	uint8_t frame[PACKET_HDR_MAX + 64], payload[20];
	struct packet p;
	struct rx_sums rs;
	uint32_t seed = 6;
	unsigned int i;
	size_t len;

	packet_fill(payload, sizeof(payload), 5);
	for (i = 0; i < nitems(t); i++) {
		memset(&p, 0, sizeof(p));
		p.v6 = t[i].v6;
		p.udp = t[i].udp;
		p.payload = payload;
		p.paylen = sizeof(payload);
		len = packet_build(&p, frame);
		be16enc(frame + packet_l3(&p) + t[i].off, t[i].value);
		rx_sum(frame, len, t[i].rxcsum, false, &seed, &rs);
		ATF_CHECK_EQ_MSG(t[i].status, rs.status, "row %u", i);
	}
	/* Another protocol that looks like IP. */
	for (i = 0; i < 2; i++) {
		memset(&p, 0, sizeof(p));
		p.v6 = i == 1;
		p.payload = payload;
		p.paylen = sizeof(payload);
		len = packet_build(&p, frame);
		be16enc(frame + 12, 0x88cc);
		rx_sum(frame, len, ALL_ON, false, &seed, &rs);
		ATF_CHECK_EQ(E82545_RXD_IXSM, rs.status);
	}
	/* A frame that ends with the IP header. */
	memset(&p, 0, sizeof(p));
	p.payload = payload;
	packet_build(&p, frame);
	be16enc(frame + packet_l3(&p) + 2, 20);
	rx_sum(frame, packet_l3(&p) + 20, ALL_ON, false, &seed, &rs);
	ATF_CHECK_EQ(E82545_RXD_IPCS, rs.status);
}

TEST(rx_hostile, "Wrong lengths, and truncated packets of every length")
{
	uint8_t frame[PACKET_HDR_MAX + 64], *copy, payload[64] = { 0 };
	struct packet p;
	struct rx_sums rs;
	uint32_t seed = 7;
	size_t cutoff, len;
	unsigned int i, n;

	for (i = 0; i < 8; i++) {
		memset(&p, 0, sizeof(p));
		p.v6 = i & 1;
		p.udp = i & 2;
		p.vlan = i & 4;
		p.payload = payload;
		p.paylen = 10;
		len = packet_build(&p, frame);
		for (cutoff = 1; cutoff < len; cutoff++) {
			/* On the heap, so that sanitizers check its bounds. */
			copy = malloc(cutoff);
			ATF_REQUIRE(copy != NULL);
			memcpy(copy, frame, cutoff);
			rx_sum(copy, cutoff, ALL_ON, false, &seed, &rs);
			ATF_CHECK_EQ_MSG(E82545_RXD_IXSM, rs.status,
			    "case %u len %zu", i, cutoff);
			free(copy);
		}
		for (n = 0; n < 4000; n++) {
			packet_build(&p, frame);
			frame[test_random(&seed) % len] =
			    test_random(&seed);
			frame[packet_l3(&p) + test_random(&seed) % 8] =
			    test_random(&seed);
			rx_sum(frame, len, ALL_ON | (n & 0xff), n & 1, &seed,
			    &rs);
			if ((rs.status & E82545_RXD_TCPCS) == 0)
				ATF_REQUIRE((rs.errors &
				    E82545_RXD_ERR_TCPE) == 0);
		}
	}
}

TEST_PROGRAM
