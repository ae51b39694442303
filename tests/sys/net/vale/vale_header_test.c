/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * virtio-net headers that are invalid, or in slots where few programs put them.
 */

#include <sys/param.h>

#include <errno.h>
#include <string.h>

#include <atf-c.h>

#include "frame_vnet.h"
#include "test.h"
#include "vale_vnet.h"

/* A header of a frame of 554 bytes, 54 of them headers of TCP over IPv4. */
static const struct invalid {
	const char	*what;
	uint8_t		 flags, type;
	uint16_t	 hdr_len, gso_size, start, offset;
} invalids[] = {
	{ "segments of 0 bytes", NEEDS_CSUM, GSO_TCPV4, 54, 0, 34, 16 },
	{ "segments without a partial checksum", 0, GSO_TCPV4, 54, 100, 34,
	  16 },
	{ "unknown type 2", NEEDS_CSUM, 2, 54, 100, 34, 16 },
	{ "unknown type 255", NEEDS_CSUM, 255, 54, 100, 34, 16 },
	{ "ECN without TCP", NEEDS_CSUM, GSO_ECN, 54, 100, 34, 16 },
	{ "fragments of IP", NEEDS_CSUM, GSO_UDP, 54, 100, 34, 6 },
	{ "the first byte summed behind TCP's", NEEDS_CSUM, GSO_TCPV4, 54, 100,
	  38, 16 },
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
	static struct vn_sent s;
	const struct invalid *v;
	struct vale_desc *from, *to;
	struct packet p = { .payload = vn_payload, .paylen = 500 };
	uint8_t hdr[VN_LONG];
	unsigned int a, b, n;

	packet_fill(vn_payload, sizeof(vn_payload), 10);
	for (a = 1; a < nitems(vn_kinds); a++)
		for (b = 0; b < nitems(vn_kinds); b++) {
			to = vn_port("valet0:to", vn_kinds[b], 1024, 2);
			from = vn_port("valet0:from", vn_kinds[a], 64, 1);
			vn_drain(to);
			vn_make(&s, &p, 100, 2, 1);
			ATF_REQUIRE_EQ(554, s.len);
			n = 0;
			for (v = invalids; v < invalids + nitems(invalids);
			    v++) {
				vn_make_hdr(hdr, v->flags, v->type, v->hdr_len,
				    v->gso_size, v->start, v->offset);
				vn_put(from, vn_kinds[a], hdr, s.data, s.len,
				    300, n % 2 == 0);
				vn_put_sent(from, vn_kinds[a], &s, 300, false);
				ATF_REQUIRE_EQ(0, vale_txsync(from));
				ATF_REQUIRE_EQ(0, vale_rxsync(to));
				vn_expect(to, vn_kinds[b], &s);
				ATF_CHECK_EQ_MSG(0, vn_take(to, vn_kinds[b],
				    vn_hdr, vn_frame), "%s", v->what);
				ATF_REQUIRE_EQ(0, vale_rxsync(to));
				n++;
				T_COUNT(from, TX_DROP_HEADER, n);
			}
			T_COUNT(from, TX_FRAME, 1 + 2 * n);
			vale_close(from);
			vale_close(to);
		}
}

TEST(hints, "Headers' lengths that are not true and segments that are not less "
    "than the payload are valid")
{
	static const struct {
		uint16_t	hdr_len, gso_size;
	} rows[] = {
		{ 0, 500 }, { 54, 501 }, { 554, 500 }, { 65535, 65535 },
		{ 14, 554 }
	};
	static struct vn_sent s, whole;
	struct packet p = { .payload = vn_payload, .paylen = 500 };
	struct vale_desc *from, *to;
	uint8_t hdr[VN_LONG];
	unsigned int a, b, i;

	packet_fill(vn_payload, sizeof(vn_payload), 11);
	vn_make(&whole, &p, 0, 2, 1);
	for (a = 1; a < nitems(vn_kinds); a++)
		for (b = 0; b < nitems(vn_kinds); b++) {
			to = vn_port("valet0:to", vn_kinds[b], 1024, 2);
			from = vn_port("valet0:from", vn_kinds[a], 64, 1);
			vn_drain(to);
			for (i = 0; i < nitems(rows); i++) {
				/* It is one frame without TCP's checksum. */
				vn_make_hdr(hdr, NEEDS_CSUM, GSO_TCPV4,
				    rows[i].hdr_len, rows[i].gso_size, 34, 16);
				vn_put(from, vn_kinds[a], hdr, whole.data,
				    whole.len, 300, i % 2 == 0);
				/* The length is a hint here, too. */
				vn_make(&s, &p, 100, 2, 1);
				vn_make_hdr(hdr, NEEDS_CSUM, GSO_TCPV4,
				    rows[i].hdr_len, 100, 34, 16);
				vn_put(from, vn_kinds[a], hdr, s.data, s.len,
				    300, i % 2 == 0);
				ATF_REQUIRE_EQ(0, vale_txsync(from));
				ATF_REQUIRE_EQ(0, vale_rxsync(to));
				vn_expect(to, vn_kinds[b], &whole);
				vn_expect(to, vn_kinds[b], &s);
				ATF_REQUIRE_EQ(0, vale_rxsync(to));
			}
			T_COUNT(from, TX_DROP_HEADER, 0);
			vale_close(from);
			vale_close(to);
		}
}

/*
 * Send `len' bytes of zeros; the first slot, with up to `fraglen' of them, says
 * that it has `slot_len' unless that is 0.
 */
static void
send_zeros(struct vale_desc *d, uint32_t len, uint32_t fraglen,
    uint32_t slot_len)
{
	static const uint8_t zeros[100];
	struct netmap_slot *slot = &d->txring->slot[d->txring->head];

	ATF_REQUIRE(len <= sizeof(zeros));
	t_put(d, zeros, len, fraglen, false);
	if (slot_len != 0)
		slot->len = slot_len;
	ATF_REQUIRE_EQ(0, vale_txsync(d));
}

TEST(short_header, "A header that is not complete in its slot is invalid, as "
    "is one without a frame")
{
	struct vale_desc *from, *to;
	unsigned int a;
	bool is_short;

	for (a = 1; vn_kinds[a] != VALE_HEADER_FRAME; a++) {
		is_short = vn_kinds[a] == VN_SHORT;
		to = vn_port("valet0:to", 0, 64, 2);
		from = vn_port("valet0:from", vn_kinds[a], 64, 1);
		vn_drain(to);
		send_zeros(from, 100, vn_kinds[a] - 1, 0);
		T_COUNT(from, TX_DROP_HEADER, 1);
		send_zeros(from, VN_LONG - 1, VN_LONG, 0);
		T_COUNT(from, TX_DROP_HEADER, is_short ? 1 : 2);
		T_COUNT(from, TX_DROP_RUNT, is_short ? 1 : 0);
		send_zeros(from, VN_LONG, VN_LONG, 0);
		T_COUNT(from, TX_DROP_HEADER, is_short ? 1 : 2);
		T_COUNT(from, TX_DROP_RUNT, is_short ? 2 : 1);
		/* What else is wrong with the slot was wrong before. */
		send_zeros(from, VN_LONG, VN_LONG,
		    from->txring->nr_buf_size + 1);
		T_COUNT(from, TX_DROP_HEADER, is_short ? 1 : 2);
		T_COUNT(from, TX_DROP_LEN, 1);
		vn_drain(to);
		T_COUNT(to, RX_FRAME, 1);
		vale_close(from);
		vale_close(to);
	}
}

TEST(fragments, "A frame of 64 fragments has a header before it if one of them "
    "has no more than the frame's own headers")
{
	static struct vn_sent s;
	static uint8_t whole[VN_LONG + VN_BYTES];
	struct vale_desc *from, *to;
	struct packet p = { .payload = vn_payload, .paylen = 1000 };

	packet_fill(vn_payload, sizeof(vn_payload), 11);
	to = vn_port("valet0:to", 0, 64, 2);
	from = vn_port("valet0:from", VN_LONG, 64, 1);
	vn_drain(to);
	vn_make(&s, &p, 100, 2, 1);
	/* 13 bytes, and 63 or 62 fragments of what is left. */
	vn_put_sent(from, VN_LONG, &s, howmany(s.len - 1, 63), true);
	ATF_REQUIRE_EQ(0, vale_txsync(from));
	ATF_REQUIRE_EQ(0, vale_rxsync(to));
	vn_expect(to, 0, &s);
	vn_expect_none(to);
	ATF_REQUIRE_EQ(0, vale_rxsync(to));
	/* Headers and one byte in the first of 64. */
	vale_close(from);
	from = vn_port("valet0:from", VALE_HEADER_FRAME, 64, 1);
	vn_drain(to);
	vn_put_sent(from, VALE_HEADER_FRAME, &s, howmany(s.len, 63), true);
	ATF_REQUIRE_EQ(0, vale_txsync(from));
	ATF_REQUIRE_EQ(0, vale_rxsync(to));
	vn_expect(to, 0, &s);
	vn_expect_none(to);
	T_COUNT(from, TX_DROP_FRAGS, 0);
	vale_close(from);

	/* The rest of the first fragment would be one too many. */
	from = vn_port("valet0:from", VN_LONG, 128, 1);
	vn_drain(to);
	p.paylen = 64 * 68 - VN_LONG - 54;
	vn_make(&s, &p, 100, 2, 1);
	memcpy(whole, s.hdr, VN_LONG);
	memcpy(whole + VN_LONG, s.data, s.len);
	t_put(from, whole, VN_LONG + s.len, 68, true);
	ATF_REQUIRE_EQ(0, vale_txsync(from));
	T_COUNT(from, TX_DROP_FRAGS, 1);
	t_put(from, whole, VN_LONG + s.len, 70, true);
	ATF_REQUIRE_EQ(0, vale_txsync(from));
	T_COUNT(from, TX_DROP_FRAGS, 1);
	ATF_REQUIRE_EQ(0, vale_rxsync(to));
	vn_expect(to, 0, &s);
	vn_expect_none(to);
	vale_close(from);
	vale_close(to);
}

TEST(settings, "Other lengths of headers are invalid")
{
	struct vale_desc *d = t_open("valet0:d", 16, 16);
	unsigned int len;

	for (len = 0; len < 70; len++) {
		errno = 0;
		if (len <= 1 || len == VN_SHORT || len == VN_LONG)
			ATF_CHECK_EQ(0, vale_set_header(d, len));
		else {
			ATF_CHECK_EQ(-1, vale_set_header(d, len));
			ATF_CHECK_EQ(EINVAL, errno);
		}
	}
	vale_close(d);
}

TEST_PROGRAM
