/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * TCP and UDP segmentation, compared with segments built one by one.
 */

#include <sys/param.h>

#include <string.h>

#include "e82545_guest.h"
#include "test.h"

/* A packet before its segmentation, and its payload. */
static uint8_t big[PACKET_HDR_MAX + 65536], bulk[65536];

/* Build segment `i'; returns its length, 0 after the last. */
static size_t
segment(const struct packet *p, unsigned int i, size_t mss, uint8_t *frame)
{
	struct packet seg = *p;
	size_t len, off;

	off = i * mss;
	if (off >= p->paylen && !(i == 0 && p->paylen == 0))
		return (0);
	seg.payload = p->payload + off;
	seg.paylen = MIN(mss, p->paylen - off);
	seg.id = p->id + i;
	seg.seq = p->seq + off;
	if (off + seg.paylen < p->paylen)
		seg.flags &= ~(PACKET_FIN | PACKET_PSH);
	len = packet_build(&seg, frame);
	if (len < 60) {
		memset(frame + len, 0, 60 - len);
		len = 60;
	}
	return (len);
}

static void
check_tso(struct host *h, const struct packet *p, size_t mss)
{
	uint8_t want[E82545_FRAME_MAX];
	unsigned int i;
	size_t len;

	for (i = 0; (len = segment(p, i, mss, want)) != 0; i++)
		check_sent(h, i, want, len);
	ATF_REQUIRE_EQ(i, host_sent(h));
}

/*
 * Queue the packet as data descriptors of `first', then `step' bytes; returns
 * the index of the last one.
 */
static uint32_t
queue(struct host *h, const struct packet *p, size_t mss, size_t first,
    size_t step)
{
	size_t len;

	len = packet_build_tso(p, big);
	tx_context(h, p, mss, 0);
	return (tx_data(h, big, len, first, step, E82545_TXD_TSE, tx_popts(p),
	    0));
}

HOST_TEST(vlan_single, tx_up(64), "A packet that is one segment gets its tag")
{
	struct packet p = { .payload = bulk };
	uint8_t want[2000];
	size_t len, want_len;

	packet_fill(bulk, sizeof(bulk), 6);
	host_set(h, E82545_CTRL, E82545_CTRL_VME);
	for (p.paylen = 0; p.paylen <= 1000; p.paylen++) {
		p.vlan = false;
		h->brk = 0x100000;
		len = packet_build_tso(&p, big);
		tx_context(h, &p, 1000, 0);
		tx_data(h, big, len, 54, 2000, E82545_TXD_TSE | E82545_TXD_VLE,
		    tx_popts(&p), 0x6abc);
		tx_go(h);
		p.vlan = true;
		p.tag = 0x6abc;
		want_len = packet_build(&p, want);
		memset(want + want_len, 0, 60);
		check_sent(h, 0, want, MAX(want_len, 60));
		host_sent_clear(h);
	}
}

HOST_TEST(batch_last, tx_up(64), "A packet of one segment more than a batch")
{
	struct packet p = { .payload = bulk,
	    .paylen = 60 * (E82545_TX_FRAMES + 1) };

	packet_fill(bulk, sizeof(bulk), 7);
	queue(h, &p, 60, 54, 40000);
	tx_go(h);
	check_tso(h, &p, 60);
}

HOST_TEST(batches, tx_up(4096), "A packet of more segments than a batch, "
    "between other packets")
{
	struct packet p = { .payload = bulk, .paylen = 60000 };
	uint8_t frame[64], want[200];
	size_t len;
	uint32_t last, n;
	unsigned int calls, i;

	packet_fill(bulk, sizeof(bulk), 7);
	len = packet_build_tso(&p, big);
	host_make_frame(frame, sizeof(frame), host_mac, 9);
	for (i = 0; i < 10; i++)
		host_tx_frame(h, frame, sizeof(frame), 0);
	tx_context(h, &p, 60, E82545_TXD_RS);
	n = tx_data(h, big, len, 54, 4000, E82545_TXD_TSE | E82545_TXD_RS,
	    tx_popts(&p), 0);
	last = host_tx_frame(h, frame, sizeof(frame), 0);
	host_tx_go(h);
	/* 10 + 1000 + 1 frames. */
	for (calls = 1; e82545_tx(h->dev); calls++) {
		ATF_REQUIRE(calls < 10);
		ATF_CHECK_EQ(calls, h->nflush);
		ATF_CHECK_EQ(calls * 256, host_sent(h));
		/* No descriptor of it is done before the whole packet is. */
		ATF_CHECK_EQ(11, host_rd(h, E82545_TDH));
		for (i = 11; i <= n; i++)
			ATF_CHECK(!host_tx_done(h, i));
	}
	ATF_CHECK_EQ(4, calls);
	ATF_CHECK_EQ(1011, host_sent(h));
	ATF_CHECK(host_tx_done(h, n));
	ATF_CHECK(host_tx_done(h, last));
	for (i = 0; i < 1000; i++) {
		len = segment(&p, i, 60, want);
		check_sent(h, 10 + i, want, len);
	}
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_TX_TSO));
	ATF_CHECK_EQ(4, host_counter(h, E82545_C_TX_BATCH));
}

static void
check_csb_batches(struct host *h)
{
	struct packet p = { .payload = bulk, .paylen = 60000 };

	packet_fill(bulk, sizeof(bulk), 7);
	CSB_SET(h, guest_need_txkick, 1);
	queue(h, &p, 60, 54, 40000);
	guest_send(h);
	/* The context's descriptor. */
	ATF_CHECK_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	ATF_CHECK_EQ(256, host_sent(h));
	host_rd(h, E82545_ICR);
	h->nraised = 0;
	/* Another request, or the same one if requests have no number. */
	CSB_SET(h, guest_need_txkick, 3);
	while (host_rd(h, E82545_TDH) == 1) {
		ATF_CHECK_EQ(0, host_raised(h));
		ATF_REQUIRE(e82545_tx(h->dev) != E82545_TX_IDLE);
	}
	ATF_CHECK_EQ(1000, host_sent(h));
	ATF_CHECK_EQ(1, host_raised(h));
}

HOST_TEST(csb_batches, guest_up(64, 8, 2048, 0), "An interrupt that the CSB "
    "asks for comes when the packet's descriptors are free, not with its first "
    "segments")
{
	check_csb_batches(h);
}

HOST_TEST(bad_header, tx_up(64), "A packet whose header is not what the TSO "
    "context says is dropped and counted")
{
	struct packet p = { .payload = bulk, .paylen = 1000 };
	unsigned int i;
	uint32_t n;
	uint8_t *hdr;

	packet_fill(bulk, sizeof(bulk), 3);
	for (i = 0; i < 5; i++) {
		n = queue(h, &p, 100, 54, 2000);
		hdr = host_mem(h, le64toh(host_txd(h, n - 1)->addr), 54);
		if (i == 0)
			hdr[14] = 0x65;		/* IPv6 */
		else if (i == 1)
			hdr[14] = 0x44;
		else if (i == 2)
			hdr[14] = 0x46;		/* over TCP's header */
		else if (i == 3)
			hdr[46] = 0x40;
		tx_go(h);
		ATF_CHECK_EQ_MSG(MIN(i + 1, 4),
		    host_counter(h, E82545_C_TX_BAD_CTX), "%u", i);
		ATF_CHECK_EQ_MSG(i < 4 ? 0 : 10, host_sent(h), "%u", i);
	}
}

HOST_TEST(single, tx_up(64), "A packet of one segment gets the IP header's "
    "checksum, whatever it had, if that header is complete")
{
	struct packet p = { .payload = bulk, .paylen = 80 };
	uint8_t frame[134];
	uint32_t n;
	uint8_t *hdr;

	packet_fill(bulk, sizeof(bulk), 3);
	n = queue(h, &p, 100, 54, 2000);
	hdr = host_mem(h, le64toh(host_txd(h, n - 1)->addr), 54);
	be16enc(hdr + 24, 0xabcd);
	tx_go(h);
	ATF_REQUIRE_EQ(134, packet_build(&p, frame));
	check_sent(h, 0, frame, 134);
	n = queue(h, &p, 100, 54, 2000);
	hdr = host_mem(h, le64toh(host_txd(h, n - 1)->addr), 54);
	/* 40 bytes, of which TCP's header is the second half. */
	hdr[14] = frame[14] = 0x4a;
	be16enc(hdr + 24, 0xabcd);
	be16enc(frame + 24, 0xabcd);
	tx_go(h);
	check_sent(h, 1, frame, 134);
}

HOST_TEST(vlan_lengths, tx_up(64), "The largest segment is as long with a tag "
    "as without")
{
	static const struct {
		size_t	mss;
		bool	tagged, ok;
	} t[] = {
		{ E82545_FRAME_MAX - 54, false, true },
		{ E82545_FRAME_MAX - 58, true, true },
		{ E82545_FRAME_MAX - 57, true, false },
		{ E82545_FRAME_MAX - 54, true, false },
	};
	struct packet p = { .payload = bulk, .paylen = 40000 };
	unsigned int i;
	uint64_t gpa;
	size_t len;

	packet_fill(bulk, sizeof(bulk), 6);
	host_set(h, E82545_CTRL, E82545_CTRL_VME);
	len = packet_build_tso(&p, big);
	gpa = tx_put(h, big, len);
	for (i = 0; i < nitems(t); i++) {
		tx_context(h, &p, t[i].mss, 0);
		tx_desc(h, gpa, TXD_DATA | E82545_TXD_TSE | TXD_LAST | len |
		    (t[i].tagged ? E82545_TXD_VLE : 0),
		    tx_popts(&p) << 8 | 0x6abcu << 16);
		tx_go(h);
		ATF_CHECK_EQ_MSG(t[i].ok ? 3 : 0, host_sent(h), "row %u", i);
		ATF_CHECK_EQ_MSG(i < 2 ? 0 : i - 1,
		    host_counter(h, E82545_C_TX_BAD_LEN), "row %u", i);
		if (t[i].ok)
			ATF_CHECK_EQ(54 + t[i].mss + (t[i].tagged ? 4 : 0),
			    host_sent_frame(h, 0)->len);
		host_sent_clear(h);
	}
}

HOST_TEST(largest, tx_up(64), "The longest header, the largest segment, a "
    "megabyte")
{
	union e82545_txd txd;
	uint8_t *hdr;
	uint64_t gpa;
	unsigned int i;

	gpa = host_alloc(h, 2 << 20, 16);
	hdr = host_mem(h, gpa, 54);
	hdr[14] = 0x45;
	hdr[23] = 6;
	hdr[46] = 0x50;
	memset(&txd, 0, sizeof(txd));
	txd.context.ipcss = 14;
	txd.context.tucss = 34;
	txd.context.tucso = 50;
	txd.context.lower = TXD_CONTEXT | E82545_TXD_TUCMD_TCP |
	    E82545_TXD_TUCMD_IP | E82545_TXD_TUCMD_TSE | E82545_TXD_LEN;
	txd.context.hdrlen = 255;
	txd.context.mss = E82545_FRAME_MAX - 255;
	host_tx_desc(h, &txd);
	tx_desc(h, gpa, TXD_DATA | E82545_TXD_TSE | 255, 0);
	tx_desc(h, gpa + 300, TXD_DATA | TXD_LAST | E82545_TXD_TSE |
	    E82545_TXD_LEN, 0);
	tx_go(h);
	ATF_CHECK_EQ(howmany(E82545_TXD_LEN, E82545_FRAME_MAX - 255),
	    host_sent(h));
	for (i = 0; i + 1 < host_sent(h); i++)
		ATF_CHECK_EQ(E82545_FRAME_MAX, host_sent_frame(h, i)->len);
	ATF_CHECK_EQ(0, host_rd(h, E82545_TSCTFC));
	/* A byte more than PAYLEN can hold. */
	host_sent_clear(h);
	tx_desc(h, gpa, TXD_DATA | E82545_TXD_TSE | 256, 0);
	tx_desc(h, gpa + 300, TXD_DATA | TXD_LAST | E82545_TXD_TSE |
	    E82545_TXD_LEN, 0);
	tx_go(h);
	ATF_CHECK_EQ(0, host_sent(h));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_TX_BAD_LEN));
	/* PAYLEN differs from the packet's length. */
	tx_desc(h, gpa, TXD_DATA | TXD_LAST | E82545_TXD_TSE | 1000, 0);
	tx_go(h);
	ATF_CHECK_EQ(1, host_sent(h));
	ATF_CHECK_EQ(1, host_rd(h, E82545_TSCTFC));
}

TEST_PROGRAM
