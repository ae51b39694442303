/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A network that takes offloads, sending: packets with TSO go out uncut, and
 * sums of TCP and UDP are left to others.  packet_build() makes what is
 * expected, without code of the model.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <stdlib.h>
#include <string.h>

#include "e82545_check.h"

#define	BIG		(PACKET_HDR_MAX + 65536)

/* POPTS. */
#define	IP		E82545_TXD_POPTS_IXSM
#define	L4		E82545_TXD_POPTS_TXSM

static uint8_t bulk[BIG], sent[BIG], whole[BIG];

/* Queue a packet, with TSO if mss is not 0. */
static void
queue(struct host *h, const struct packet *p, size_t mss, size_t first,
    size_t step)
{
	size_t len;

	if (mss == 0) {
		len = packet_build(p, sent);
		packet_prepare(p, sent, true);
	} else
		len = packet_build_tso(p, sent);
	tx_context(h, p, mss, 0);
	tx_data(h, sent, len, first, step, mss != 0 ? E82545_TXD_TSE : 0,
	    tx_popts(p), 0);
}

/* The frame that was sent is `p', whole, with a partial checksum. */
static void
check_whole(const struct host_frame *f, const struct packet *p, size_t mss)
{
	size_t len = packet_build_partial(p, whole);

	ATF_REQUIRE_EQ(len, f->len);
	ATF_CHECK_EQ(0, memcmp(whole, f->data, len));
	ATF_CHECK_EQ(FRAME_CSUM_PARTIAL, f->frame.f_flags);
	ATF_CHECK_EQ(packet_l4(p), f->frame.f_csum_start);
	ATF_CHECK_EQ(p->udp ? 6 : 16, f->frame.f_csum_offset);
	if (mss == 0 || p->paylen <= mss) {
		ATF_CHECK_EQ(FRAME_GSO_NONE, f->frame.f_gso_type);
		return;
	}
	ATF_CHECK_EQ(p->udp ? FRAME_GSO_UDP_L4 : p->v6 ? FRAME_GSO_TCPV6 :
	    FRAME_GSO_TCPV4, f->frame.f_gso_type);
	ATF_CHECK_EQ(mss, f->frame.f_gso_size);
	ATF_CHECK_EQ(packet_hdrlen(p), f->frame.f_hdr_len);
	ATF_CHECK_EQ(packet_l3(p), f->frame.f_net_start);
}

HOST_TEST(tso, offload_up(512, 2048), "A packet with TSO is one frame; the "
    "registers count its segments")
{
	uint64_t wire = 0;
	uint32_t brk = h->brk, count = 0, i, mss, seed = 1;
	uint32_t segments = 0, uncut = 0;
	struct packet p;

	packet_fill(bulk, sizeof(bulk), 2);
	for (i = 0; i < 300; i++) {
		h->brk = brk;
		p = packet_random(bulk, 1 + test_below(&seed, i < 20 ? 65000 :
		    5000), &seed);
		if (p.paylen > 65400)
			p.paylen = 65400;
		mss = 48 + test_below(&seed, 2000);
		uncut += p.paylen > mss;
		segments += p.paylen > mss ? howmany(p.paylen, mss) : 0;
		queue(h, &p, mss, 1 + test_below(&seed, 100),
		    1200 + test_below(&seed, 4000));
		tx_go(h);
		ATF_REQUIRE_EQ(1, host_sent(h));
		check_whole(host_sent_frame(h, 0), &p, mss);
		host_sent_clear(h);
		count += howmany(p.paylen, mss);
		wire += p.paylen + howmany(p.paylen, mss) *
		    (packet_hdrlen(&p) + 4);
	}
	ATF_CHECK_EQ(i, host_counter(h, E82545_C_TX_FRAME));
	ATF_CHECK_EQ(i, host_counter(h, E82545_C_TX_TSO));
	ATF_CHECK_EQ(uncut, host_counter(h, E82545_C_TX_UNCUT));
	ATF_CHECK_EQ(segments, host_counter(h, E82545_C_TX_SEGMENT));
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_TX_BAD_CTX));
	ATF_CHECK_EQ(count, host_rd(h, E82545_GPTC));
	ATF_CHECK_EQ(count, host_rd(h, E82545_TPT));
	ATF_CHECK_EQ(wire, host_rd(h, E82545_GOTCL));
	ATF_CHECK_EQ(i, host_rd(h, E82545_TSCTC));
	ATF_CHECK_EQ(0, host_rd(h, E82545_TSCTFC));
}

HOST_TEST(sums, offload_up(512, 2048), "The sum of TCP or UDP is left to "
    "others, that of IP is not")
{
	uint32_t brk = h->brk, i, seed = 3;
	struct packet p;

	packet_fill(bulk, sizeof(bulk), 4);
	for (i = 0; i < 300; i++) {
		h->brk = brk;
		p = packet_random(bulk, 20 + test_below(&seed, 1400), &seed);
		/* Some in one descriptor. */
		queue(h, &p, 0, 1 + test_below(&seed,
		    i % 4 == 0 ? 3000 : 100), 100 + test_below(&seed, 4000));
		tx_go(h);
		ATF_REQUIRE_EQ(1, host_sent(h));
		check_whole(host_sent_frame(h, 0), &p, 0);
		host_sent_clear(h);
	}
	ATF_CHECK_EQ(i, host_counter(h, E82545_C_TX_FRAME));
	ATF_CHECK_EQ(i, host_counter(h, E82545_C_TX_PARTIAL));
	ATF_CHECK_EQ(i, host_rd(h, E82545_GPTC));
}

HOST_TEST(tag, offload_up(64, 2048), "Offsets are those behind the tag")
{
	struct packet p = { .payload = bulk, .paylen = 1000 }, tagged;
	size_t len, mss;

	packet_fill(bulk, sizeof(bulk), 5);
	host_set(h, E82545_CTRL, E82545_CTRL_VME);
	host_wr(h, E82545_VET, 0x8100);
	tagged = p;
	tagged.vlan = true;
	tagged.tag = 0x2064;
	for (mss = 0; mss < 200; mss += 100) {
		len = packet_build(&p, sent);
		packet_prepare(&p, sent, mss == 0);
		tx_context(h, &p, mss, 0);
		tx_data(h, sent, len, 54, 2000, E82545_TXD_VLE |
		    (mss != 0 ? E82545_TXD_TSE : 0), tx_popts(&p), 0x2064);
		tx_go(h);
		ATF_REQUIRE_EQ(1, host_sent(h));
		check_whole(host_sent_frame(h, 0), &tagged, mss);
		host_sent_clear(h);
	}
}

/* Send a packet with TSO, and expect it in segments. */
static void
check_cut(struct host *h, const struct packet *p, size_t mss, size_t step)
{
	unsigned int i, n = howmany(p->paylen, mss);
	size_t len;

	queue(h, p, mss, packet_hdrlen(p), step);
	tx_go(h);
	ATF_REQUIRE_EQ(n, host_sent(h));
	for (i = 0; i < n; i++) {
		memset(whole, 0, 60);
		len = packet_build_segment(p, i * mss, mss, whole);
		ATF_CHECK_EQ(0, host_sent_frame(h, i)->frame.f_flags);
		check_sent(h, i, whole, MAX(len, 60));
	}
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_TX_UNCUT));
	host_sent_clear(h);
}

HOST_TEST(cut, offload_up(512, 2048), "A packet that no virtio-net header can "
    "describe is cut: of too many fragments, too long, or of too many segments")
{
	struct packet p = { .payload = bulk };

	packet_fill(bulk, sizeof(bulk), 6);
	p.paylen = 62 * 1000;
	check_cut(h, &p, 1000, 1000);
	p.paylen = 65532 - 54;
	check_cut(h, &p, 1000, 8000);
	p.paylen = FRAME_SEGMENTS_MAX * 2 + 1 - 54;
	check_cut(h, &p, 2, 8000);
}

HOST_TEST(uncut, offload_up(512, 2048), "At each of these limits a packet goes "
    "uncut")
{
	struct packet p = { .payload = bulk };

	/* With its header 62 fragments. */
	p.paylen = 61 * 1000;
	queue(h, &p, 1000, 54, 1000);
	/* With a tag, a byte less than 64 KB. */
	p.paylen = 65531 - 54;
	queue(h, &p, 1000, 54, 8000);
	p.paylen = FRAME_SEGMENTS_MAX * 2 - 54;
	queue(h, &p, 2, 54, 8000);
	tx_go(h);
	ATF_CHECK_EQ(3, host_sent(h));
	ATF_CHECK_EQ(3, host_counter(h, E82545_C_TX_UNCUT));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_TX_BATCH));
}

HOST_TEST(elsewhere, offload_up(64, 2048), "A packet whose IP header is not "
    "behind Ethernet's is cut, as the hardware does")
{
	struct packet p = { .payload = bulk, .paylen = 3000 };
	union e82545_txd txd;
	size_t at, len, mpls = 4;
	unsigned int i;

	packet_fill(bulk, sizeof(bulk), 7);
	len = packet_build(&p, sent);
	packet_prepare(&p, sent, false);
	memmove(sent + 14 + mpls, sent + 14, len - 14);
	memcpy(sent + 12, "\x88\x47\x00\x01\x01\x40", 6);
	memset(&txd, 0, sizeof(txd));
	txd.context.ipcss = 14 + mpls;
	txd.context.ipcso = 24 + mpls;
	txd.context.ipcse = htole16(33 + mpls);
	txd.context.tucss = 34 + mpls;
	txd.context.tucso = 50 + mpls;
	txd.context.lower = htole32(TXD_CONTEXT | E82545_TXD_TUCMD_TCP |
	    E82545_TXD_TUCMD_IP | E82545_TXD_TUCMD_TSE | 3000);
	txd.context.hdrlen = 54 + mpls;
	txd.context.mss = htole16(1000);
	host_tx_desc(h, &txd);
	tx_data(h, sent, len + mpls, 54 + mpls, 4000, E82545_TXD_TSE,
	    tx_popts(&p), 0);
	tx_go(h);
	ATF_REQUIRE_EQ(3, host_sent(h));
	for (i = 0; i < 3; i++) {
		at = packet_build_segment(&p, i * 1000, 1000, whole);
		ATF_CHECK_EQ(at + mpls, host_sent_frame(h, i)->len);
		ATF_CHECK_EQ(0, host_sent_frame(h, i)->frame.f_flags);
		ATF_CHECK_EQ(0, memcmp(whole + 14,
		    host_sent_frame(h, i)->data + 14 + mpls, at - 14));
	}
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_TX_UNCUT));
}

HOST_TEST(half_cut, offload_up(64, 2048), "The rest of a packet goes in "
    "segments, though the network takes it uncut by then")
{
	struct packet p = { .payload = bulk, .paylen = 60000 };

	h->port.fp_offloads = false;
	queue(h, &p, 100, 54, 40000);
	host_tx_go(h);
	ATF_CHECK_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	ATF_CHECK_EQ(E82545_TX_FRAMES, host_sent(h));
	h->port.fp_offloads = true;
	host_run(h);
	ATF_CHECK_EQ(600, host_sent(h));
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_TX_UNCUT));
}

/* A port that does not take segments of UDP. */
static bool
takes_tcp(const struct frame_port *port __unused, const struct frame *frame)
{
	ATF_CHECK(frame->f_gso_type != FRAME_GSO_NONE);
	return (frame->f_gso_type != FRAME_GSO_UDP_L4);
}

HOST_TEST(refused, offload_up(512, 2048), "A packet of a kind that the port "
    "does not take is cut")
{
	static struct frame_port_ops ops;
	struct packet p = { .udp = true, .payload = bulk, .paylen = 40 * 1000 };

	packet_fill(bulk, sizeof(bulk), 6);
	ops = *h->port.fp_ops;
	ops.fpo_takes_uncut = takes_tcp;
	h->port.fp_ops = &ops;
	check_cut(h, &p, 1000, 8000);
	p.paylen = 1000;
	queue(h, &p, 1000, packet_hdrlen(&p), 8000);
	tx_go(h);
	check_whole(host_sent_frame(h, 0), &p, 1000);
	host_sent_clear(h);
	p.udp = false;
	p.paylen = 40 * 1000;
	queue(h, &p, 1000, packet_hdrlen(&p), 8000);
	tx_go(h);
	check_whole(host_sent_frame(h, 0), &p, 1000);
}

HOST_TEST(loopback, offload_up(64, 2048), "The guest gets complete frames of "
    "its own")
{
	struct packet p = { .payload = bulk, .paylen = 1000 };
	unsigned int i;
	size_t len;

	packet_fill(bulk, sizeof(bulk), 7);
	host_set(h, E82545_RCTL, E82545_RCTL_LBM_MAC | E82545_RCTL_UPE);
	queue(h, &p, 300, 54, 2000);
	tx_go(h);
	host_run(h);
	for (i = 0; i < 4; i++) {
		len = packet_build_segment(&p, i * 300, 300, whole);
		check_taken(h, whole, len);
	}
	p.paylen = 100;
	queue(h, &p, 0, 54, 2000);
	tx_go(h);
	host_run(h);
	len = packet_build(&p, whole);
	check_taken(h, whole, len);
	ATF_CHECK_EQ(0, host_sent(h));
}

HOST_TEST(partial, offload_up(64, 2048), "The sum of TCP or UDP is left to "
    "others if a virtio-net header can describe it, else it is complete")
{
	static const struct {
		uint8_t		popts, ipcse, tucss, tucso, tucse;
		bool		partial, bad;
	} t[] = {
		{ IP | L4, 33, 34, 50, 0, true, false },
		{ IP | L4, 33, 34, 50, 90, false, false },
		/* IP's sum covers it. */
		{ IP | L4, 34, 34, 50, 0, false, false },
		{ IP | L4, 0, 34, 50, 0, false, false },
		/* Without IP's sum, and without that of TCP. */
		{ L4, 0, 34, 50, 0, true, false },
		{ IP, 33, 34, 50, 0, false, false },
		{ 0, 0, 34, 50, 0, false, false },
		{ 0, 0, 0, 0, 0, false, false },
		/* TUCSO at TUCSS, and before it. */
		{ L4, 0, 34, 34, 0, true, false },
		{ L4, 0, 34, 33, 0, false, false },
		/* At the frame's end, and beyond. */
		{ L4, 0, 34, 98, 0, true, false },
		{ L4, 0, 34, 99, 0, false, true },
		{ L4, 0, 34, 100, 0, false, true },
		{ L4, 0, 34, 255, 0, false, true },
	};
	const struct frame *f;
	union e82545_txd txd;
	unsigned int bad = 0, i, n = 0;

	packet_fill(bulk, sizeof(bulk), 1);
	for (i = 0; i < nitems(t); i++) {
		memset(&txd, 0, sizeof(txd));
		txd.context.ipcss = 14;
		txd.context.ipcso = 24;
		txd.context.ipcse = htole16(t[i].ipcse);
		txd.context.tucss = t[i].tucss;
		txd.context.tucso = t[i].tucso;
		txd.context.tucse = htole16(t[i].tucse);
		txd.context.lower = TXD_CONTEXT | E82545_TXD_TUCMD_TCP |
		    E82545_TXD_TUCMD_IP;
		host_tx_desc(h, &txd);
		tx_data(h, bulk, 100, 50, 50, 0, t[i].popts, 0);
		tx_go(h);
		ATF_REQUIRE_EQ(i + 1, host_sent(h));
		f = &host_sent_frame(h, i)->frame;
		ATF_CHECK_EQ_MSG(t[i].partial ? FRAME_CSUM_PARTIAL : 0,
		    f->f_flags, "row %u", i);
		if (t[i].partial) {
			ATF_CHECK_EQ(t[i].tucss, f->f_csum_start);
			ATF_CHECK_EQ(t[i].tucso - t[i].tucss, f->f_csum_offset);
		}
		n += t[i].partial;
		bad += t[i].bad;
		ATF_CHECK_EQ_MSG(n, host_counter(h, E82545_C_TX_PARTIAL),
		    "row %u", i);
		ATF_CHECK_EQ_MSG(bad, host_counter(h, E82545_C_TX_BAD_CTX),
		    "row %u", i);
	}
}

HOST_TEST(padded, offload_up(64, 2048), "The sum of a frame that is padded is "
    "complete")
{
	struct packet p = { .udp = true, .payload = bulk };
	size_t len;

	packet_fill(bulk, sizeof(bulk), 16);
	for (p.paylen = 17; p.paylen <= 18; p.paylen++) {
		queue(h, &p, 0, 100, 100);
		tx_go(h);
		ATF_CHECK_EQ(p.paylen == 17 ? 0 : FRAME_CSUM_PARTIAL,
		    host_sent_frame(h, p.paylen - 17)->frame.f_flags);
	}
	p.paylen = 17;
	len = packet_build(&p, whole);
	ATF_REQUIRE_EQ(59, len);
	whole[len] = 0;
	check_sent(h, 0, whole, 60);
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_TX_PARTIAL));
}

TEST_PROGRAM
