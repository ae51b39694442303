/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Partial checksums whose place the sender chooses: what guards, VLANs and
 * mirrors have seen of a frame is what is delivered.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include "frame_cut.h"
#include "test.h"
#include "vale_vnet.h"

#define	LEN	96		/* bytes of a frame, zeros at the end */

/* Whether frame_cut_begin() finds its frame invalid. */
static bool	cut_fails;

bool	__real_frame_cut_begin(struct frame_cut *cut, const struct frame *f);
bool	__wrap_frame_cut_begin(struct frame_cut *cut, const struct frame *f);

bool
__wrap_frame_cut_begin(struct frame_cut *cut, const struct frame *f)
{
	return (!cut_fails && __real_frame_cut_begin(cut, f));
}

/* The sum of bytes, RFC 1071, of big-endian numbers. */
static uint32_t
sum(const uint8_t *p, uint32_t len)
{
	uint32_t i, s = 0;

	for (i = 0; i < len; i++)
		s += (i & 1) != 0 ? p[i] : p[i] << 8;
	while (s >> 16 != 0)
		s = (s & 0xffff) + (s >> 16);
	return (s);
}

/* Complete a checksum as the next station would. */
static void
complete(uint8_t *frame, uint32_t len, uint16_t start, uint16_t offset)
{
	uint16_t v = ~sum(frame + start, len - start);

	be16enc(frame + start + offset, v == 0 && offset == 6 ? 0xffff : v);
}

static uint32_t
from_hex(const char *text, uint8_t *to)
{
	unsigned int byte;
	uint32_t n = 0;

	for (; sscanf(text, " %2x", &byte) == 1; text += 2 + (text[0] == ' '))
		to[n++] = byte;
	return (n);
}

#define	ADDRS	"020000000002 020000000001"
#define	ARP	"0001 0800 06 04 0002 020000000001 c0000205 020000000002 " \
		"c0000209"
#define	IP4	"0800 4500 0030 0000 0000 40 11 0000"
#define	NA	"86dd 60000000 0020 3a ff" \
		"20010db8000000000000000000000005" \
		"ff020000000000000000000000000001 88 00 0000 60000000"

/*
 * Frames of a port with source= and ip=, or vlan=10, that pass as they are; and
 * what makes of them ones that do not.
 */
static const struct forged {
	const char	*what, *frame;
	uint16_t	 start, field, value;
	enum vale_counter drop;
} forged[] = {
	{ "the source", ADDRS IP4 "c0000205 c0000209", 10, 10, 2,
	  VALE_C_TX_DROP_SOURCE },
	{ "the source, summed from the beginning", ADDRS IP4
	  "c0000205 c0000209", 0, 10, 2, VALE_C_TX_DROP_SOURCE },
	{ "the sender of ARP", ADDRS "0806" ARP, 30, 30, 0x0206,
	  VALE_C_TX_DROP_IP },
	{ "the same behind a tag", ADDRS "8100 0000 0806" ARP, 34, 34, 0x0206,
	  VALE_C_TX_DROP_IP },
	{ "the IP source", ADDRS IP4 "c0000205 c0000209", 28, 28, 0x0206,
	  VALE_C_TX_DROP_IP },
	{ "a DHCP client's port", ADDRS IP4 "00000000 ffffffff 0044 0043 0008",
	  34, 34, 67, VALE_C_TX_DROP_IP },
	{ "a neighbour's address", ADDRS NA "20010db8000000000000000000000005"
	  "0201 020000000001", 76, 76, 1, VALE_C_TX_DROP_IP },
	{ "an option behind the sum", ADDRS NA
	  "20010db8000000000000000000000001", 54, 56, 0, VALE_C_TX_DROP_IP },
	{ "a tag", ADDRS "88b6 0014 88b5", 12, 12, 0x8100,
	  VALE_C_TX_DROP_VLAN },
};

/* A pair of ports; the first has rules that drop frames, if any. */
static void
ports(unsigned int from, unsigned int to, enum vale_counter drop)
{
	t_port[0] = vn_port(t_port_name(0), from, 64, 1);
	t_port[1] = vn_port(t_port_name(1), to, 64, 2);
	vn_drain(t_port[0]);
	if (drop == VALE_C_TX_DROP_VLAN)
		t_port_set(0, "vlan", "10");
	else if (drop != 0) {
		t_port_set(0, "source", "02:00:00:00:00:01");
		t_port_set(0, "ip", "192.0.2.5,2001:db8::5");
	}
}

static void
send_sum(unsigned int kind, uint8_t flags, const uint8_t *frame, uint32_t len,
    uint16_t start, uint16_t offset, uint32_t fraglen)
{
	uint8_t hdr[VN_LONG];

	vn_make_hdr(hdr, flags, GSO_NONE, 0, 0, start, offset);
	vn_put(t_port[0], kind, hdr, frame, len, fraglen, true);
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
}

/* Have the checksum come out as the row says, by the frame's last bytes. */
static void
choose(uint8_t frame[LEN], const struct forged *f)
{
	uint32_t s;

	memset(frame, 0, LEN);
	(void)from_hex(f->frame, frame);
	s = (~f->value & 0xffff) - sum(frame + f->start, LEN - f->start);
	be16enc(frame + LEN - 2, s - (s >> 16 != 0));
}

static void
forge(unsigned int from, unsigned int to, const struct forged *f)
{
	uint8_t frame[LEN], other[LEN];
	uint64_t n;

	ports(from, to, f->drop);
	choose(frame, f);
	memcpy(other, frame, LEN);
	complete(other, LEN, f->start, f->field - f->start);
	if (f->value != 0)
		ATF_REQUIRE_EQ(f->value, be16dec(other + f->field));
	send_sum(from, 0, other, LEN, 0, 0, 40);
	n = t_count(t_port[0], f->drop);
	ATF_CHECK_EQ_MSG(1, n, "%s: as it is", f->what);
	send_sum(from, NEEDS_CSUM, frame, LEN, f->start, f->field - f->start,
	    40);
	n = t_count(t_port[0], f->drop);
	ATF_CHECK_EQ_MSG(2, n, "%s: by a sum", f->what);
	/* Without it the frame is good, unless what is wrong is behind it. */
	if (f->value != 0)
		send_sum(from, 0, frame, LEN, 0, 0, 40);
	n = t_count(t_port[1], VALE_C_RX_FRAME);
	ATF_CHECK_EQ_MSG(f->value != 0, n, "%s", f->what);
	vale_close(t_port[0]);
	vale_close(t_port[1]);
}

TEST(forged, "No checksum makes of a frame that passes one that does not")
{
	unsigned int a, b, i;

	for (a = 1; a < VN_NKINDS; a++)
		for (b = 0; b < VN_NKINDS; b++)
			for (i = 0; i < nitems(forged); i++)
				forge(vn_kinds[a], vn_kinds[b], &forged[i]);
}

/* Expect a frame of which nothing is known. */
static void
expect_plain(unsigned int kind, const uint8_t *frame, uint32_t len)
{
	static const uint8_t zeros[VN_SHORT];
	uint32_t got;

	ATF_REQUIRE_EQ(0, vale_rxsync(t_port[1]));
	got = vn_take(t_port[1], kind, vn_hdr, vn_frame);
	ATF_REQUIRE_EQ(len, got);
	ATF_CHECK(memcmp(zeros, vn_hdr, sizeof(zeros)) == 0);
	ATF_REQUIRE(memcmp(frame, vn_frame, len) == 0);
	ATF_CHECK(nm_ring_empty(t_port[1]->rxring));
}

TEST(anywhere, "A checksum anywhere in the headers is completed, whatever the "
    "ports and the fragments")
{
	static uint8_t frame[9000];
	uint32_t fraglen, len, round, seed = 3, start, offset;
	unsigned int a, b;

	for (a = 1; a < VN_NKINDS; a++)
		for (b = 0; b < VN_NKINDS; b++) {
			ports(vn_kinds[a], vn_kinds[b], 0);
			for (round = 0; round < 60; round++) {
				len = 20 + test_random(&seed) % 8980;
				packet_fill(frame, len, round);
				t_addr(frame, 2);
				t_addr(frame + 6, 1);
				/* The type of nothing. */
				be16enc(frame + 12, 0x88b5);
				start = 14 + test_random(&seed) %
				    (MIN(len, 512) - 15);
				offset = test_random(&seed) %
				    (MIN(len, 512) - start - 1) & ~1U;
				fraglen = len / 60 + 1 + test_random(&seed) %
				    2000;
				send_sum(vn_kinds[a], NEEDS_CSUM, frame, len,
				    start, offset, fraglen);
				complete(frame, len, start, offset);
				expect_plain(vn_kinds[b], frame, len);
			}
			vale_close(t_port[0]);
			vale_close(t_port[1]);
		}
}

TEST(late, "TCP's and UDP's own checksums stay partial; none beside them does")
{
	static const struct {
		uint8_t		proto, offset;
		int		start;	/* from the protocol's header */
		bool		partial;
	} rows[] = {
		{ 6, 16, 0, true }, { 17, 6, 0, true }, { 6, 6, 0, false },
		{ 17, 16, 0, false }, { 136, 6, 0, false },
		{ 33, 16, 0, false }, { 6, 14, 2, false }, { 6, 16, 2, false },
		{ 6, 18, -2, false }, { 17, 4, 2, false },
	};
	uint8_t frame[LEN];
	unsigned int i;
	uint32_t n;

	for (i = 0; i < nitems(rows); i++) {
		ports(VN_LONG, VALE_HEADER_FRAME, VALE_C_TX_DROP_IP);
		memset(frame, 0, sizeof(frame));
		(void)from_hex(ADDRS IP4 "c0000205 c0000209", frame);
		frame[14 + 9] = rows[i].proto;
		send_sum(VN_LONG, NEEDS_CSUM, frame, LEN, 34 + rows[i].start,
		    rows[i].offset, LEN);
		if (rows[i].partial) {
			ATF_REQUIRE_EQ(0, vale_rxsync(t_port[1]));
			n = vn_take(t_port[1], VALE_HEADER_FRAME, vn_hdr,
			    vn_frame);
			ATF_CHECK_EQ(LEN, n);
			ATF_CHECK_EQ_MSG(NEEDS_CSUM, vn_hdr[0], "row %u", i);
			ATF_CHECK_EQ(34, le16dec(vn_hdr + 6));
		} else {
			complete(frame, LEN, 34 + rows[i].start,
			    rows[i].offset);
			expect_plain(VALE_HEADER_FRAME, frame, LEN);
		}
		vale_close(t_port[0]);
		vale_close(t_port[1]);
	}
}

TEST(untagged, "A frame that loses its tag may have had a checksum that began "
    "before that")
{
	uint8_t frame[LEN];
	unsigned int b;
	uint16_t start;

	for (b = 0; b < VN_NKINDS; b++) {
		ports(VN_LONG, vn_kinds[b], VALE_C_TX_DROP_VLAN);
		t_port_set(0, "trunk", "10");
		t_port_set(1, "vlan", "10");
		for (start = 0; start <= 20; start++) {
			memset(frame, 0, sizeof(frame));
			(void)from_hex(ADDRS "8100 000a 88b5 010203", frame);
			send_sum(VN_LONG, NEEDS_CSUM, frame, LEN, start, 40,
			    LEN);
			complete(frame, LEN, start, 40);
			memmove(frame + 12, frame + 16, LEN - 16);
			expect_plain(vn_kinds[b], frame, LEN - 4);
		}
		vale_close(t_port[0]);
		vale_close(t_port[1]);
	}
}

TEST(stale, "No slot of a frame that cannot be cut has what was there before")
{
	static struct vn_sent s;
	struct packet p = { .payload = vn_payload, .paylen = 5000 };
	struct netmap_ring *ring;
	unsigned int i;

	packet_fill(vn_payload, sizeof(vn_payload), 12);
	ports(VN_LONG, 0, VALE_C_TX_DROP_VLAN);
	ring = t_port[1]->rxring;
	for (i = 0; i < ring->num_slots; i++)
		ring->slot[i].len = 99;
	vn_make(&s, &p, 1000, 2, 1);
	cut_fails = true;
	vn_put_sent(t_port[0], VN_LONG, &s, 2000, false);
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
	cut_fails = false;
	ATF_REQUIRE_EQ(0, vale_rxsync(t_port[1]));
	ATF_CHECK_EQ(5, nm_ring_space(ring));
	for (; !nm_ring_empty(ring); ring->head = ring->cur =
	    nm_ring_next(ring, ring->head)) {
		ATF_CHECK_EQ(0, ring->slot[ring->head].len);
		/* Each is a frame. */
		ATF_CHECK_EQ(1 << 8, ring->slot[ring->head].flags);
	}
	vale_close(t_port[0]);
	vale_close(t_port[1]);
}

TEST(unknown, "Nothing is known of a frame that does not say so, whatever is "
    "known of those before")
{
	uint8_t frame[LEN];
	struct frame *known;
	uint64_t batches;
	unsigned int i;

	ports(VALE_HEADER_FRAME, 0, 0);
	memset(frame, 0, sizeof(frame));
	(void)from_hex(ADDRS IP4 "c0000205 c0000209", frame);
	frame[14 + 9] = 6;
	send_sum(VALE_HEADER_FRAME, NEEDS_CSUM, frame, LEN, 34, 16, 40);
	complete(frame, LEN, 34, 16);
	expect_plain(0, frame, LEN);
	memset(frame + 34 + 16, 0, 2);
	known = &t_port[0]->txframe[t_port[0]->txring->head];
	known->f_flags = FRAME_CSUM_PARTIAL;
	known->f_csum_start = 34;
	known->f_csum_offset = 16;
	/* Not in the one fragment of which nothing is ever known. */
	t_put(t_port[0], frame, LEN, 40, true);
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
	expect_plain(0, frame, LEN);
	/* Several, of which something is, are a batch. */
	batches = t_count(t_port[0], VALE_C_TX_BATCH);
	for (i = 0; i < 3; i++) {
		uint8_t hdr[VN_LONG];

		vn_make_hdr(hdr, NEEDS_CSUM, GSO_NONE, 0, 0, 34, 16);
		vn_put(t_port[0], VALE_HEADER_FRAME, hdr, frame, LEN, 40, true);
	}
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
	T_COUNT(t_port[0], TX_BATCH, batches + 1);
	T_COUNT(t_port[1], RX_FRAME, 2 + 3);
	vale_close(t_port[0]);
	vale_close(t_port[1]);
}

TEST(inner, "What is cut is directly behind the IP header that a guard has "
    "seen, wherever the sender says that one is")
{
	uint8_t frame[200] = { 0 };
	struct netmap_ring *ring;
	struct frame *known;
	unsigned int i;

	/* TCP in IP in IP; then without the outer header. */
	for (i = 0; i < 2; i++) {
		ports(VALE_HEADER_FRAME, VALE_HEADER_FRAME, 0);
		(void)from_hex(i == 0 ? ADDRS "0800"
		    "4500 00ba 0000 0000 40 04 0000 c0000205 c0000209"
		    "4500 00a6 0000 0000 40 06 0000 c0000206 c0000209"
		    "0001 0002 00000000 00000000 5010" :
		    ADDRS IP4 "c0000205 c0000209"
		    "0001 0002 00000000 00000000 5010", frame);
		frame[14 + 9] = i == 0 ? 4 : 6;
		ring = t_port[0]->txring;
		known = &t_port[0]->txframe[ring->head];
		frame_set(known, 1, sizeof(frame));
		known->f_flags = FRAME_CSUM_PARTIAL;
		known->f_gso_type = FRAME_GSO_TCPV4;
		known->f_gso_size = 50;
		known->f_csum_start = i == 0 ? 54 : 34;
		known->f_csum_offset = 16;
		known->f_net_start = 34;
		t_put(t_port[0], frame, sizeof(frame), sizeof(frame), false);
		ring->slot[ring->head - 1].flags |= VALE_SLOT_FRAME;
		ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
		T_COUNT(t_port[0], TX_DROP_HEADER, i == 0);
		T_COUNT(t_port[1], RX_FRAME, i);
		vale_close(t_port[0]);
		vale_close(t_port[1]);
	}
}

TEST_PROGRAM
