/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Checksums, segmentation and VLAN tags, from the driver's core to the model
 * and back.
 */

#include <errno.h>
#include <string.h>

#include <atf-c.h>

#include "lem_test.h"

/*
 * Build a frame with Ethernet, IPv4, TCP or UDP, of `len' bytes; the last two
 * bytes of the payload identify it.
 */
static void
make_ip(uint8_t *p, size_t len, bool tcp, unsigned int seed)
{
	size_t i;

	host_make_frame(p, len, test_peer, seed);
	p[12] = 0x08;
	p[13] = 0x00;
	memset(p + 14, 0, 40);
	p[14] = 0x45;
	p[16] = (len - 14) >> 8;
	p[17] = len - 14;
	p[22] = 64;
	p[23] = tcp ? 6 : 17;
	for (i = 26; i < 34; i++)
		p[i] = i;
	if (tcp)
		p[46] = 0x50;
	else {
		p[38] = (len - 34) >> 8;
		p[39] = len - 34;
	}
}

/*
 * The ones' complement sum of bytes, folded: 0xffff if the checksum is correct.
 */
static uint32_t
sum(const uint8_t *p, size_t len, uint32_t start)
{
	uint32_t s = start;
	size_t i;

	for (i = 0; i < len; i++)
		s += (i & 1) != 0 ? p[i] : (uint32_t)p[i] << 8;
	while (s > 0xffff)
		s = (s & 0xffff) + (s >> 16);
	return (s);
}

/* Send bytes as a packet in three fragments of odd lengths. */
static int
send_ip(struct lem_test *t, uint8_t *frame, size_t len, unsigned int flags,
    uint16_t mss, uint16_t vlan)
{
	struct lem_os *os = &t->g.lc.lc_os;
	struct lem_packet lp;
	struct lem_seg seg[3];
	uint64_t gpa;
	bool tcp = (flags & (LEM_TX_TCPSUM | LEM_TX_TSO4)) != 0;
	int error;

	/* The sum of the pseudo-header, where the hardware starts from. */
	uint32_t s = sum(frame + 26, 8, (tcp ? 6 : 17) +
	    ((flags & LEM_TX_TSO4) != 0 ? 0 : len - 34));
	frame[tcp ? 50 : 40] = s >> 8;
	frame[tcp ? 51 : 41] = s;
	gpa = guest_txbuf(&t->g);
	memcpy(os->ram + gpa, frame, len);
	seg[0] = (struct lem_seg){ gpa, 14 };
	seg[1] = (struct lem_seg){ gpa + 14, 43 };
	seg[2] = (struct lem_seg){ gpa + 57, len - 57 };
	memset(&lp, 0, sizeof(lp));
	lp.lp_segs = seg;
	lp.lp_nsegs = 3;
	lp.lp_flags = flags;
	lp.lp_l2len = 14;
	lp.lp_l3len = 20;
	lp.lp_l4len = tcp ? 20 : 8;
	lp.lp_mss = mss;
	lp.lp_vlan = vlan;
	error = guest_tx(&t->g, &lp);
	lem_tx_flush(&t->g.lc);
	return (error);
}

static void
check_sums(const uint8_t *p, size_t len, bool tcp)
{
	ATF_CHECK_EQ(0xffff, sum(p + 14, 20, 0));
	ATF_CHECK_EQ(0xffff, sum(p + 34, len - 34, sum(p + 26, 8,
	    (tcp ? 6 : 17) + (len - 34))));
}

TEST(checksums, "IP, TCP and UDP checksums; a context that does not change is "
    "sent once")
{
	struct lem_test *t = test_create(0, 2048, 1500);
	const unsigned int tcp = LEM_TX_IPSUM | LEM_TX_TCPSUM;
	const unsigned int udp = LEM_TX_IPSUM | LEM_TX_UDPSUM;
	/* Descriptors: three fragments, and a context at each change. */
	static const struct {
		bool		tcp;
		uint32_t	descs;
	} step[] = {
		{ true, 4 }, { true, 3 }, { true, 3 }, { false, 4 },
		{ false, 3 }, { true, 4 }
	};
	uint8_t frame[1000];
	unsigned int i;
	uint32_t tail;

	for (i = 0; i < 6; i++) {
		make_ip(frame, 101 + i, step[i].tcp, i);
		tail = t->g.lc.lc_tx_tail;
		ATF_REQUIRE_EQ(0, send_ip(t, frame, 101 + i,
		    step[i].tcp ? tcp : udp, 0, 0));
		ATF_CHECK_EQ(step[i].descs, t->g.lc.lc_tx_tail - tail);
		test_settle(t);
		ATF_REQUIRE_EQ(i + 1, host_sent(t->h));
		ATF_CHECK_EQ(101 + i, host_sent_frame(t->h, i)->len);
		check_sums(host_sent_frame(t->h, i)->data, 101 + i,
		    step[i].tcp);
	}
	/* A reset clears the context in the adapter and in the driver. */
	lem_stop(&t->g.lc);
	ATF_REQUIRE_EQ(0, lem_start(&t->g.lc, t->g.mac, 1500));
	make_ip(frame, 101, true, 0);
	ATF_REQUIRE_EQ(0, send_ip(t, frame, 101, tcp, 0, 0));
	ATF_CHECK_EQ(4, t->g.lc.lc_tx_tail);
	host_run(t->h);
	check_sums(host_sent_frame(t->h, 6)->data, 101, true);
	(void)lem_tx_clean(&t->g.lc);
	test_destroy(t);
}

TEST(tso, "TSO sends segments with correct checksums and VLAN tags")
{
	struct lem_test *t = test_create(0, 2048, 1500);
	uint8_t frame[10054];
	const struct host_frame *f;
	unsigned int i;

	lem_set_filter(&t->g.lc, 0, true, NULL);
	make_ip(frame, sizeof(frame), true, 3);
	ATF_REQUIRE_EQ(0, send_ip(t, frame, sizeof(frame),
	    LEM_TX_TSO4 | LEM_TX_VLAN, 1000, 0x0123));
	test_settle(t);
	ATF_REQUIRE_EQ(10, host_sent(t->h));
	for (i = 0; i < 10; i++) {
		f = host_sent_frame(t->h, i);
		ATF_REQUIRE_EQ(1058, f->len);
		ATF_CHECK_EQ(0x81, f->data[12]);
		ATF_CHECK_EQ(0x23, f->data[15]);
		check_sums(f->data + 4, 1054, true);
		ATF_CHECK_EQ(0, memcmp(frame + 54 + 1000 * i, f->data + 58,
		    1000));
	}
	ATF_CHECK_EQ(1, t->g.lc.lc_os.tx_done);
	ATF_CHECK_EQ(1, t->g.lc.lc_counter[LEM_C_TX_PACKET]);
	test_destroy(t);
}

TEST(tso_context, "TSO sends a context descriptor for each packet, even if it is "
    "the same")
{
	struct lem_test *t = test_create(0, 2048, 1500);
	uint8_t frame[2054];
	unsigned int i;
	uint32_t tail;

	for (i = 1; i <= 3; i++) {
		make_ip(frame, sizeof(frame), true, 3);
		tail = t->g.lc.lc_tx_tail;
		ATF_REQUIRE_EQ(0, send_ip(t, frame, sizeof(frame),
		    LEM_TX_TSO4, 1000, 0));
		ATF_CHECK_EQ(4, t->g.lc.lc_tx_tail - tail);
		test_settle(t);
		ATF_REQUIRE_EQ(2 * i, host_sent(t->h));
		check_sums(host_sent_frame(t->h, 2 * i - 1)->data, 1054, true);
	}
	test_destroy(t);
}

TEST(context_room, "A packet is refused while there is no descriptor for its "
    "context")
{
	struct lem_test *t = test_create(LEM_MODE_POLL, 2048, 1500);
	uint8_t frame[101];

	test_send(t, TEST_RING - 1 - 3, 60);
	ATF_REQUIRE_EQ(3, lem_tx_avail(&t->g.lc));
	make_ip(frame, sizeof(frame), true, 0);
	ATF_CHECK_EQ(ENOBUFS, send_ip(t, frame, sizeof(frame),
	    LEM_TX_TCPSUM, 0, 0));
	ATF_CHECK_EQ(3, lem_tx_avail(&t->g.lc));
	host_run(t->h);
	ATF_CHECK_EQ(0, send_ip(t, frame, sizeof(frame), LEM_TX_TCPSUM, 0, 0));
	host_run(t->h);
	ATF_CHECK_EQ(4, lem_tx_clean(&t->g.lc));
	ATF_CHECK_EQ(TEST_RING - 3, host_sent(t->h));
	test_destroy(t);
}

/* Flags and tag of the last frame. */
static struct {
	size_t		len;
	uint32_t	sums;
	bool		tagged;
	uint16_t	vlan;
} last;
#define	RX_SUMS	(LEM_RX_IPSUM | LEM_RX_L4SUM)

static void
keep_rx(void *arg __unused, const uint8_t *data __unused, size_t len,
    uint32_t flags, uint16_t vlan)
{
	last.len = len;
	last.sums = flags & RX_SUMS;
	last.tagged = (flags & LEM_RX_VLAN) != 0;
	last.vlan = vlan;
}

TEST(rx_offload, "Verified checksums and stripped VLAN tags are reported")
{
	struct lem_test *t = test_create(0, 2048, 1500);
	uint8_t frame[200];
	uint32_t s;

	lem_set_filter(&t->g.lc, 0, true, NULL);
	t->g.lc.lc_os.frame = keep_rx;
	make_ip(frame, 200, true, 1);
	memcpy(frame, t->g.mac, 6);
	s = ~sum(frame + 14, 20, 0);
	frame[24] = s >> 8;
	frame[25] = s;
	s = ~sum(frame + 34, 166, sum(frame + 26, 8, 6 + 166));
	frame[50] = s >> 8;
	frame[51] = s;
	host_inject(t->h, frame, 200, 1);
	test_settle(t);
	ATF_CHECK_EQ(RX_SUMS, last.sums);
	ATF_CHECK(!last.tagged);
	ATF_CHECK_EQ(200, last.len);
	frame[100]++;
	host_inject(t->h, frame, 200, 1);
	test_settle(t);
	ATF_CHECK_EQ(LEM_RX_IPSUM, last.sums);
	frame[24]++;
	host_inject(t->h, frame, 200, 1);
	test_settle(t);
	ATF_CHECK_EQ(0, last.sums & LEM_RX_IPSUM);
	memcpy(frame + 12, "\x81\x00\x0a\xbc\x88\xb5", 6);
	host_inject(t->h, frame, 200, 1);
	test_settle(t);
	ATF_CHECK(last.tagged);
	ATF_CHECK_EQ(0xabc, last.vlan);
	ATF_CHECK_EQ(196, last.len);
	ATF_CHECK_EQ(0, last.sums);
	test_destroy(t);
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, checksums);
	ATF_TP_ADD_TC(tp, tso);
	ATF_TP_ADD_TC(tp, tso_context);
	ATF_TP_ADD_TC(tp, context_room);
	ATF_TP_ADD_TC(tp, rx_offload);
	return (atf_no_error());
}
