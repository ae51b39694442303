/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A network that takes offloads, receiving: what comes in uncut, or with a
 * partial checksum, is completed for the guest.  packet_build() makes what is
 * expected, without code of the model.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <string.h>

#include "e82545_check.h"

#define	BIG		(PACKET_HDR_MAX + 65536)

static uint8_t bulk[BIG], sent[BIG], whole[BIG];

static void
inject(struct host *h, const struct packet *p, size_t mss, int nfrags)
{
	struct frame frame;
	size_t len = offload_frame(p, mss, &frame, sent);

	host_inject_offload(h, &frame, sent, len, nfrags);
}

/*
 * Expect a segment next, without its tag if `strip'.  Returns its length, with
 * it, and without padding.
 */
static size_t
check_segment(struct host *h, const struct packet *p, size_t off, size_t mss,
    bool strip)
{
	struct e82545_rxd rxd;
	size_t len = packet_build_segment(p, off, mss, whole), unpadded = len;
	size_t pcss = host_rd(h, E82545_RXCSUM) & E82545_RXCSUM_PCSS;

	memcpy(whole, host_mac, sizeof(host_mac));
	if (len < 60) {
		memset(whole + len, 0, 60 - len);
		len = 60;
	}
	if (strip) {
		memmove(whole + 12, whole + 16, len - 16);
		len -= 4;
	}
	rxd = check_taken(h, whole, len);
	ATF_CHECK_EQ(RXD_DONE | (p->v6 ? 0 : E82545_RXD_IPCS) |
	    E82545_RXD_TCPCS | (strip ? E82545_RXD_VP : 0), rxd.status);
	ATF_CHECK_EQ(0, rxd.errors);
	ATF_CHECK_EQ(packet_sum(whole + pcss, len - pcss), rxd.csum);
	if (strip)
		ATF_CHECK_EQ(p->tag, le16toh(rxd.special));
	return (unpadded);
}

/* Expect all segments. */
static void
check_segments(struct host *h, const struct packet *p, size_t mss)
{
	size_t off;

	for (off = 0; off < p->paylen; off += mss)
		check_segment(h, p, off, mss, false);
}

TEST(receive, "The guest gets complete segments, their sums verified, in "
    "buffers of all sizes")
{
	static const uint32_t sizes[] = { 256, 512, 1024, 2048, 4096, 16384 };
	struct host *h;
	struct packet p;
	uint32_t i, mss, off, s, segments, seed = 8, cut;
	uint64_t bytes;
	bool strip;

	packet_fill(bulk, sizeof(bulk), 9);
	for (s = 0; s < nitems(sizes); s++) {
		h = offload_up(sizes[s] > 4096 ? 256 : 1024, sizes[s]);
		host_set(h, E82545_RCTL, E82545_RCTL_LPE);
		host_wr(h, E82545_RXCSUM, RXCSUM_ON);
		segments = cut = bytes = 0;
		for (i = 0; i < 100; i++) {
			p = packet_random(bulk, 1 + test_below(&seed, 5000),
			    &seed);
			p.vlan = test_chance(&seed, 1, 3);
			p.tag = 0x2064;
			strip = p.vlan && test_chance(&seed, 1, 2);
			if (strip)
				host_set(h, E82545_CTRL, E82545_CTRL_VME);
			else
				host_clear(h, E82545_CTRL, E82545_CTRL_VME);
			mss = i % 3 == 0 ? p.paylen :
			    1 + test_below(&seed, 3000);
			/* The packet checksum's begin. */
			host_wr(h, E82545_RXCSUM, RXCSUM_ON |
			    test_below(&seed, 56));
			inject(h, &p, i % 3 == 0 ? 0 : mss,
			    2 + test_below(&seed, 30));
			host_run(h);
			for (off = 0; off < p.paylen; off += mss)
				bytes += check_segment(h, &p, off, mss, strip);
			check_none(h);
			host_rx_post(h);
			if (mss < p.paylen) {
				segments += howmany(p.paylen, mss);
				cut++;
			}
		}
		ATF_CHECK_EQ(i, host_counter(h, E82545_C_RX_FRAME));
		ATF_CHECK_EQ(cut, host_counter(h, E82545_C_RX_CUT));
		ATF_CHECK_EQ(segments, host_counter(h, E82545_C_RX_SEGMENT));
		ATF_CHECK_EQ(bytes, host_counter(h, E82545_C_RX_BYTE));
		ATF_CHECK_EQ(i - cut + segments, host_rd(h, E82545_GPRC));
		ATF_CHECK_EQ(0, host_counter(h, E82545_C_RX_STALL));
		host_destroy(h);
	}
}

HOST_TEST(long_headers, offload_up(64, 256), "Headers may end in a second "
    "buffer")
{
	struct frame frame = { .f_flags = 0 };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		packet_fill(sent, 400, 19 + i);
		memcpy(sent, host_mac, sizeof(host_mac));
		frame_set(&frame, 1, 400);
		frame.f_flags = FRAME_CSUM_PARTIAL;
		frame.f_csum_start = 201;
		frame.f_csum_offset = i == 0 ? 54 : 100;
		host_inject_offload(h, &frame, sent, 400, 3);
		host_run(h);
		memcpy(whole, sent, 400);
		be16enc(whole + 201 + frame.f_csum_offset,
		    packet_sum(sent + 201, 199));
		check_taken(h, whole, 400);
	}
}

/* Without a kick: the batch alone. */
static void
check_batch(struct host *h, uint32_t rdh, enum e82545_rx_state state)
{
	ATF_CHECK_EQ(state, e82545_rx(h->dev));
	ATF_CHECK_EQ(rdh, host_rd(h, E82545_RDH));
}

HOST_TEST(ring_full, offload_up(8, 256), "Segments that would take all of the "
    "ring's buffers are never delivered")
{
	struct packet p = { .payload = bulk, .paylen = 5000 };
	uint32_t off;

	packet_fill(bulk, sizeof(bulk), 22);
	host_set(h, E82545_RCTL, E82545_RCTL_LPE);
	host_wr(h, E82545_RXCSUM, RXCSUM_ON);
	inject(h, &p, 7 * 256 - 53, 4);
	host_run(h);
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_OVERSIZE));
	ATF_CHECK_EQ(0, host_rx_pending(h));
	inject(h, &p, 7 * 256 - 54, 4);
	for (off = 0; off < p.paylen; off += 7 * 256 - 54) {
		host_run(h);
		check_segment(h, &p, off, 7 * 256 - 54, false);
		host_rx_post(h);
	}
	ATF_CHECK_EQ(0, host_rx_pending(h));
}

HOST_TEST(moved, offload_up(16, 2048), "A frame of which the guest has a part "
    "is lost with its port; the first one of another port is complete")
{
	struct packet p = { .payload = bulk, .paylen = 3000 };
	struct host *other = offload_up(16, 2048);
	uint32_t off;

	packet_fill(bulk, sizeof(bulk), 11);
	host_wr(h, E82545_RXCSUM, RXCSUM_ON);
	inject(h, &p, 100, 40);
	inject(other, &p, 500, 7);
	host_run(h);
	for (off = 0; off < 1500; off += 100)
		check_segment(h, &p, off, 100, false);
	check_none(h);
	e82545_move(h->dev, &other->port, "moved");
	/* The guest's buffers: the stall ends. */
	host_rx_post(h);
	host_run(h);
	for (off = 0; off < p.paylen; off += 500)
		check_segment(h, &p, off, 500, false);
	check_none(h);
	ATF_CHECK_EQ(0, host_rx_pending(other));
	ATF_CHECK_EQ(1, host_rx_pending(h));
	e82545_move(h->dev, &h->port, "back");
	host_destroy(other);
}

/* A source for a direct call: a short frame, and another so many times. */
struct direct {
	struct frame_source source;
	struct frame	 frame;
	struct iovec	 iov[2];
	bool		 short_first;
	unsigned int	 left;		/* with the short one */
};

static bool
direct_peek(struct frame_source *source, struct frame *frame)
{
	struct direct *d = __containerof(source, struct direct, source);
	struct iovec *iov = frame->f_iov;

	if (d->left == 0)
		return (false);
	memcpy(iov, d->iov, sizeof(d->iov));
	if (d->short_first) {
		frame_set(frame, 1, iov[0].iov_len);
		return (true);
	}
	*frame = d->frame;
	frame->f_iov = iov;
	frame->f_niov = 2;
	return (true);
}

static void
direct_next(struct frame_source *source)
{
	struct direct *d = __containerof(source, struct direct, source);

	d->short_first = false;
	d->left--;
}

/* Call with `n' frames of the packet, behind a short one.  Returns the rest. */
static unsigned int
direct_call_behind(struct host *h, const struct packet *p, size_t mss,
    unsigned int n, bool short_first)
{
	struct direct d = { .source = { direct_peek, direct_next },
	    .short_first = short_first, .left = n + short_first };
	size_t len = offload_frame(p, mss, &d.frame, sent);

	d.iov[0].iov_base = sent;
	d.iov[0].iov_len = 60;
	d.iov[1].iov_base = sent + 60;
	d.iov[1].iov_len = len - 60;
	e82545_rx_direct(h->dev, &d.source);
	return (d.left);
}

static unsigned int
direct_call(struct host *h, const struct packet *p, size_t mss, unsigned int n)
{
	return (direct_call_behind(h, p, mss, n, false));
}

HOST_TEST(direct, offload_up(32, 2048), "A direct call takes all segments, or "
    "leaves the frame")
{
	struct packet p = { .payload = bulk, .paylen = 3200 };
	uint32_t off;

	packet_fill(bulk, sizeof(bulk), 11);
	host_wr(h, E82545_RXCSUM, RXCSUM_ON);
	ATF_CHECK_EQ(1, direct_call(h, &p, 100, 1));
	check_none(h);
	p.paylen = 3100;
	ATF_CHECK_EQ(0, direct_call(h, &p, 100, 1));
	for (off = 0; off < p.paylen; off += 100)
		check_segment(h, &p, off, 100, false);
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_FRAME));
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_RX_STALL));
}

HOST_TEST(direct_after, offload_up(8, 256), "A direct call has frames again "
    "when a batch has dropped the one that waited")
{
	struct packet p = { .payload = bulk, .paylen = 100 };
	uint8_t frame[2000];
	uint32_t rah;

	packet_fill(bulk, sizeof(bulk), 24);
	host_wr(h, E82545_RXCSUM, RXCSUM_ON);
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	host_set(h, E82545_RCTL, E82545_RCTL_LPE);
	host_inject(h, frame, 1500, 1);
	host_run(h);
	check_taken(h, frame, 1500);
	host_inject(h, frame, 1500, 1);
	host_run(h);
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_STALL));
	ATF_CHECK_EQ(1, direct_call(h, &p, 50, 1));
	/* Its address is no longer the adapter's. */
	rah = host_rd(h, E82545_RAH(0));
	host_wr(h, E82545_RAH(0), 0);
	ATF_CHECK(e82545_rx(h->dev) != E82545_RX_STALLED);
	ATF_CHECK_EQ(0, host_rx_pending(h));
	host_wr(h, E82545_RAH(0), rah);
	p.paylen = 50;
	ATF_CHECK_EQ(0, direct_call(h, &p, 50, 1));
	check_segments(h, &p, 50);
}

HOST_TEST(between, offload_up(2048, 256), "Between two batches of a frame that "
    "is cut, a direct call has frames of its own")
{
	struct packet p = { .payload = bulk, .paylen = 1300 * 50 };
	struct packet q = { .payload = bulk, .paylen = 10 * 50 };
	uint32_t off;

	packet_fill(bulk, sizeof(bulk), 21);
	host_wr(h, E82545_RXCSUM, RXCSUM_ON);
	inject(h, &p, 50, 4);
	check_batch(h, 1024, E82545_RX_MORE);
	ATF_CHECK_EQ(0, direct_call(h, &q, 50, 1));
	ATF_CHECK_EQ(1034, host_rd(h, E82545_RDH));
	host_run(h);
	for (off = 0; off < 1024 * 50; off += 50)
		check_segment(h, &p, off, 50, false);
	check_segments(h, &q, 50);
	for (; off < p.paylen; off += 50)
		check_segment(h, &p, off, 50, false);
	check_none(h);
	/* Nor does the next frame of the port begin elsewhere. */
	ATF_CHECK_EQ(0, direct_call(h, &q, 50, 1));
	inject(h, &q, 50, 4);
	host_run(h);
	check_segments(h, &q, 50);
	check_segments(h, &q, 50);
	check_none(h);
}

TEST(direct_limit, "A batch of a direct call, too, has 1024 descriptors")
{
	static const struct {
		uint32_t	segments, frames, batches;
		bool		short_first;
	} t[] = {
		{ 512, 2, 1, false }, { 205, 5, 2, false },
		{ 1024, 1, 1, false }, { 1024, 1, 2, true },
	};
	struct packet p = { .payload = bulk };
	struct host *h;
	unsigned int i, n;

	packet_fill(bulk, sizeof(bulk), 23);
	for (i = 0; i < nitems(t); i++) {
		h = offload_up(2048, 256);
		host_wr(h, E82545_RXCSUM, RXCSUM_ON);
		p.paylen = t[i].segments * 50;
		ATF_CHECK_EQ(0, direct_call_behind(h, &p, 50, t[i].frames,
		    t[i].short_first));
		if (t[i].short_first)
			check_taken(h, sent, 60);
		for (n = 0; n < t[i].frames; n++)
			check_segments(h, &p, 50);
		check_none(h);
		ATF_CHECK_EQ_MSG(t[i].batches, host_counter(h,
		    E82545_C_RX_BATCH), "row %u", i);
		host_destroy(h);
	}
}

HOST_TEST(dropped, offload_up(64, 2048), "Frames that the guest does not want, "
    "or whose headers lie, are dropped once, and the next one is not")
{
	struct packet p = { .payload = bulk, .paylen = 3000 };
	struct frame frame;
	size_t len;

	packet_fill(bulk, sizeof(bulk), 12);
	host_wr(h, E82545_RXCSUM, RXCSUM_ON);
	/* Another's address. */
	len = offload_frame(&p, 1000, &frame, sent);
	sent[5] ^= 1;
	host_inject_offload(h, &frame, sent, len, 3);
	/* IPv6, it says. */
	len = offload_frame(&p, 1000, &frame, sent);
	frame.f_gso_type = FRAME_GSO_TCPV6;
	host_inject_offload(h, &frame, sent, len, 3);
	/* A sum of two bytes, at 0. */
	len = offload_frame(&p, 0, &frame, sent);
	frame.f_csum_start = frame.f_csum_offset = 0;
	host_inject_offload(h, &frame, sent, len, 3);
	/* A sum within Ethernet's header, with a tag. */
	len = offload_frame(&p, 0, &frame, sent);
	frame.f_len = len = 100;
	frame.f_csum_start = 13;
	frame.f_csum_offset = 0;
	host_inject_offload(h, &frame, sent, len, 3);
	/* Segments longer than RCTL accepts. */
	inject(h, &p, 1465, 3);
	inject(h, &p, 1464, 3);
	host_run(h);
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_FILTERED));
	ATF_CHECK_EQ(3, host_counter(h, E82545_C_RX_BAD_OFFLOAD));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_OVERSIZE));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_FRAME));
	check_segment(h, &p, 0, 1464, false);
	check_segment(h, &p, 1464, 1464, false);
	check_segment(h, &p, 2928, 1464, false);
	check_none(h);
	/* Right behind it. */
	len = offload_frame(&p, 0, &frame, sent);
	frame.f_len = len = 100;
	frame.f_csum_start = 14;
	frame.f_csum_offset = 0;
	host_inject_offload(h, &frame, sent, len, 3);
	host_run(h);
	memcpy(whole, sent, len);
	be16enc(whole + 14, packet_sum(sent + 14, len - 14));
	check_taken(h, whole, len);
}

HOST_TEST(mtu, offload_up(64, 2048), "mtu= is for segments, not for the packet "
    "that they are of")
{
	struct packet p = { .payload = bulk, .paylen = 3000 };

	packet_fill(bulk, sizeof(bulk), 13);
	h->port.fp_frame_max = 54 + 500;
	host_wr(h, E82545_RXCSUM, RXCSUM_ON);
	inject(h, &p, 501, 3);
	inject(h, &p, 500, 3);
	host_run(h);
	check_segment(h, &p, 0, 500, false);
	ATF_CHECK_EQ(1, frame_port_counter(&h->port,
	    FRAME_PORT_C_RX_OVERMTU));
}

TEST_PROGRAM
