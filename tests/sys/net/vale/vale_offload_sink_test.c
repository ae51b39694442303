/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What the sink of a port sees of frames with virtio-net headers.
 */

#include <sys/param.h>
#include <sys/uio.h>

#include <string.h>

#include <atf-c.h>

#include "frame.h"
#include "test.h"
#include "vale_vnet.h"

/*
 * A sink that sees a frame in the sender's memory, and then changes all of it.
 */
static struct vn_sent *changed;
static unsigned int peeked;

static void
change(void *arg, struct frame_source *frames)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };

	if (!frame_peek(frames, &frame))
		return;
	peeked++;
	ATF_CHECK_EQ(changed->len, frame.f_len);
	ATF_CHECK_EQ(NEEDS_CSUM, frame.f_flags);
	ATF_CHECK_EQ(GSO_TCPV4, frame.f_gso_type);
	ATF_CHECK_EQ(changed->mss, frame.f_gso_size);
	ATF_CHECK_EQ(packet_hdrlen(&changed->packet), frame.f_hdr_len);
	ATF_CHECK_EQ(packet_l4(&changed->packet), frame.f_csum_start);
	ATF_CHECK_EQ(16, frame.f_csum_offset);
	frame_next(frames);
	memset(changed->data, 0xff, packet_hdrlen(&changed->packet));
	memset(arg, 0xff, VN_LONG);
}

TEST(changed, "A sink takes the frame with what its header says; a sender that "
    "changes its headers meanwhile changes nothing")
{
	static struct vn_sent s, copy;
	struct vale_desc *from, *sink, *to;
	struct packet p = { .payload = vn_payload, .paylen = 5000 };
	uint8_t hdr[VN_LONG];

	packet_fill(vn_payload, sizeof(vn_payload), 9);
	sink = vn_port("valet0:sink", VALE_HEADER_FRAME, 64, 3);
	to = vn_port("valet0:to", 0, 64, 2);
	from = vn_port("valet0:from", VN_LONG, 64, 1);
	vn_drain(to);
	vn_drain(sink);
	/* The mirror gets what its port has got. */
	ATF_REQUIRE_EQ(0, vale_set("valet0:to", "mirror", "valet0:sink/r"));
	vn_make(&s, &p, 1000, 3, 1);
	copy = s;
	changed = &s;
	memcpy(hdr, s.hdr, VN_LONG);
	ATF_REQUIRE_EQ(0, vale_set_sink(sink, change, hdr));
	/* Header and frame where they are. */
	vn_put(from, VN_LONG, hdr, s.data, s.len, 2048, true);
	ATF_REQUIRE_EQ(0, vale_txsync(from));
	ATF_CHECK_EQ(1, peeked);
	ATF_REQUIRE_EQ(0, vale_rxsync(to));
	vn_expect(to, 0, &copy);
	vn_expect_none(to);
	ATF_REQUIRE_EQ(0, vale_rxsync(sink));
	vn_expect_none(sink);
	vale_close(from);
	vale_close(to);
	vale_close(sink);
}

static void
refuse(void *arg, struct frame_source *frames)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	unsigned int *n = arg;

	for (; frame_peek(frames, &frame); frame_next(frames)) {
		ATF_CHECK_EQ(0, frame.f_flags);
		++*n;
	}
}

/* A sink for frames as struct vn_sent says; each fragment counts. */
static void
compare(void *arg, struct frame_source *frames)
{
	const struct vn_sent *s = arg;
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	uint32_t len = 0;
	int i;

	ATF_REQUIRE(frame_peek(frames, &frame));
	ATF_CHECK_EQ(iov, frame.f_iov);
	ATF_REQUIRE(frame.f_niov >= 1 && frame.f_niov <= FRAME_MAXIOV);
	for (i = 0; i < frame.f_niov; i++) {
		ATF_REQUIRE(iov[i].iov_len <= s->len - len);
		ATF_CHECK_EQ(0, memcmp(s->data + len, iov[i].iov_base,
		    iov[i].iov_len));
		len += iov[i].iov_len;
		/* No payload is behind headers that are all of the frame. */
		ATF_CHECK(iov[i].iov_len > 0 ||
		    (i == 1 && frame.f_niov == 2));
	}
	ATF_CHECK_EQ(s->len, len);
	ATF_CHECK_EQ(s->len, frame.f_len);
	ATF_CHECK_EQ(NEEDS_CSUM, frame.f_flags);
	ATF_CHECK_EQ(s->hdr[1], frame.f_gso_type);
	ATF_CHECK_EQ(s->mss == 0 ? packet_l4(&s->packet) +
	    (s->packet.udp ? 8 : 18) : packet_hdrlen(&s->packet),
	    frame.f_hdr_len);
	frame_next(frames);
	ATF_CHECK(!frame_peek(frames, &frame));
	peeked++;
}

TEST(sink, "A sink gets the fragments of a frame, and no others, however its "
    "slots begin")
{
	static struct vn_sent s;
	struct vale_desc *from, *to;
	uint32_t i, seed = 20;
	struct packet p;
	unsigned int a;

	packet_fill(vn_payload, sizeof(vn_payload), 21);
	peeked = 0;
	for (a = 1; a < nitems(vn_kinds); a++) {
		to = vn_port("valet0:to", VALE_HEADER_FRAME, 64, 2);
		from = vn_port("valet0:from", vn_kinds[a], 64, 1);
		vn_drain(to);
		ATF_REQUIRE_EQ(0, vale_set_sink(to, compare, &s));
		for (i = 0; i < 200; i++) {
			p = vn_packet(i % 10 == 9 ? 0 : 1 + test_below(&seed,
			    5000), &seed);
			vn_make(&s, &p, p.paylen < 100 ? 0 : 48 +
			    test_below(&seed, p.paylen - 48), 2, 1);
			vn_put_sent(from, vn_kinds[a], &s, 100 +
			    test_below(&seed, 1900), test_chance(&seed, 1, 2));
			ATF_REQUIRE_EQ(0, vale_txsync(from));
			ATF_REQUIRE_EQ(200 * (a - 1) + i + 1, peeked);
		}
		vale_close(from);
		vale_close(to);
	}
}

/* A sink for frames of one fragment. */
static void
single(void *arg, struct frame_source *frames)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	unsigned int *n = arg;

	for (; frame_peek(frames, &frame); frame_next(frames)) {
		ATF_CHECK_EQ(0, frame.f_flags);
		ATF_CHECK_EQ(1, frame.f_niov);
		ATF_CHECK_EQ(frame.f_len, iov[0].iov_len);
		++*n;
	}
}

TEST(sink_plain, "A slot that has a header alone is no fragment of the frame")
{
	static const uint8_t zero[VN_LONG] = { 0 };
	struct vale_desc *from, *to;
	struct netmap_slot *slot;
	unsigned int a, n;

	for (a = 1; a < nitems(vn_kinds); a++) {
		to = vn_port("valet0:to", 0, 64, 2);
		from = vn_port("valet0:from", vn_kinds[a], 64, 1);
		vn_drain(to);
		n = 0;
		ATF_REQUIRE_EQ(0, vale_set_sink(to, single, &n));
		slot = &from->txring->slot[from->txring->head];
		if (vn_kinds[a] != VALE_HEADER_FRAME) {
			t_put(from, zero, vn_kinds[a], VN_LONG, false);
			slot->flags |= NS_MOREFRAG;
		}
		t_queue(from, 60, 2, 1, 0);
		if (vn_kinds[a] == VALE_HEADER_FRAME)
			slot->flags |= VALE_SLOT_FRAME;
		ATF_REQUIRE_EQ(0, vale_txsync(from));
		ATF_CHECK_EQ(1, n);
		T_COUNT(to, RX_DIRECT, 1);
		vale_close(from);
		vale_close(to);
	}
}

TEST(other_sink, "The sink of a port with headers of another kind, or none, "
    "takes frames without alone")
{
	static struct vn_sent s;
	struct vale_desc *from, *to;
	struct packet p = { .payload = vn_payload, .paylen = 3000 };
	unsigned int b, n;

	for (b = 0; b < 3; b++) {
		to = vn_port("valet0:to", vn_kinds[b], 64, 2);
		from = vn_port("valet0:from", VALE_HEADER_FRAME, 64, 1);
		vn_drain(to);
		n = 0;
		ATF_REQUIRE_EQ(0, vale_set_sink(to, refuse, &n));
		vn_make(&s, &p, 1000, 2, 1);
		t_queue(from, 60, 2, 1, 0);
		vn_put_sent(from, VALE_HEADER_FRAME, &s, 2048, true);
		ATF_REQUIRE_EQ(0, vale_txsync(from));
		ATF_CHECK_EQ(1, n);
		ATF_REQUIRE_EQ(0, vale_rxsync(to));
		vn_expect(to, vn_kinds[b], &s);
		vn_expect_none(to);
		vale_close(from);
		vale_close(to);
	}
}

TEST_PROGRAM
