/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The driver's core with a header ring: frames that are not cut, and headers
 * that lie.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "lem_test.h"

#define	VNET_GPA	(8u << 20)
#define	FLEN		(54 + 3000)	/* bytes: Ethernet, IPv4, TCP */

static struct lem_vnet *ring;

/* What the host got last. */
static struct got {
	unsigned int	 frames;
	size_t		 len;
	uint32_t	 flags;
	struct lem_offload offload;
	uint8_t		 data[LEM_RX_OFFLOAD_MAX];
} got;
static struct lem_test *t;

static void
take(void *arg __unused, const uint8_t *data, size_t len, uint32_t flags,
    uint16_t vlan __unused)
{
	got.frames++;
	got.len = len;
	got.flags = flags;
	got.offload = t->g.lc.lc_rx_offload;
	ATF_REQUIRE(len <= sizeof(got.data));
	memcpy(got.data, data, len);
}

/* Start the driver with its header ring at address `dma'. */
static void
up_at(uint32_t mode, uint32_t bufsize, uint64_t dma)
{
	struct lem_core *lc;

	memset(&got, 0, sizeof(got));
	t = test_create_down(bufsize);
	lc = &t->g.lc;
	ring = host_mem(t->h, VNET_GPA, TEST_RING * sizeof(*ring));
	memset(ring, 0x5a, TEST_RING * sizeof(*ring));
	lc->lc_vnet = ring;
	lc->lc_vnet_dma = dma;
	lc->lc_os.frame = take;
	t->h->port.fp_offloads = true;
	ATF_REQUIRE_EQ(0, lem_set_mode(lc, mode));
	ATF_REQUIRE_EQ(0, guest_up(&t->g, 1500));
	test_settle(t);
}

static void
up(uint32_t mode, uint32_t bufsize)
{
	up_at(mode, bufsize, VNET_GPA);
}

/* A frame of `len' bytes, to be cut if mss is not 0, arrives. */
static void
inject(uint32_t len, uint16_t mss)
{
	static uint8_t data[LEM_RX_OFFLOAD_MAX];
	uint32_t i;

	for (i = 0; i < len; i++)
		data[i] = i * 7 + i / 256;
	memcpy(data, t->g.mac, 6);
	host_inject_tcp(t->h, data, len, mss);
}

static void
check(uint32_t len, uint16_t mss)
{
	uint32_t i;

	ATF_REQUIRE_EQ(len, got.len);
	ATF_CHECK_EQ(LEM_RX_OFFLOAD, got.flags & (LEM_RX_OFFLOAD |
	    LEM_RX_IPSUM | LEM_RX_L4SUM));
	ATF_CHECK_EQ(34, got.offload.lo_csum_start);
	ATF_CHECK_EQ(16, got.offload.lo_csum_offset);
	ATF_CHECK_EQ(mss, got.offload.lo_mss);
	ATF_CHECK_EQ(mss == 0 ? LEM_OFFLOAD_NONE : LEM_OFFLOAD_TCP4,
	    got.offload.lo_type);
	for (i = 50; i < len && got.data[i] == (uint8_t)(i * 7 + i / 256); i++)
		;
	ATF_CHECK_EQ(len, i);
}

TEST(uncut, "Frames of up to 64 KB, in buffers of both sizes, between plain "
    "ones, over many laps")
{
	static const uint32_t lens[] = { 60, 1514, FLEN, 16129, 65535 };
	uint32_t bufsize, i, n = 0;

	for (bufsize = 2048; bufsize <= 4096; bufsize *= 2) {
		up(LEM_MODE_CSB, bufsize);
		for (i = 0; i < 400; i++) {
			inject(lens[i % 5], lens[i % 5] > 100 ? 1000 : 0);
			test_settle(t);
			ATF_REQUIRE_EQ(++n, got.frames);
			check(lens[i % 5], lens[i % 5] > 100 ? 1000 : 0);
			test_inject(t, 1, 60);
			test_settle(t);
			ATF_REQUIRE_EQ(++n, got.frames);
			ATF_CHECK_EQ(0, got.flags & LEM_RX_OFFLOAD);
			ATF_CHECK_EQ(60, got.len);
		}
		ATF_CHECK_EQ(i, t->g.lc.lc_counter[LEM_C_RX_OFFLOAD]);
		ATF_CHECK_EQ(2 * i, t->g.lc.lc_counter[LEM_C_RX_PACKET]);
		ATF_CHECK_EQ(0, t->g.lc.lc_counter[LEM_C_RX_BAD]);
		ATF_CHECK_EQ(0, t->g.lc.lc_os.misuses);
		test_destroy(t);
		n = 0;
	}
}

/* Change the header of a frame of FLEN bytes before the core sees it. */
static const struct lie {
	const char	*what;
	struct lem_vnet	 v;
	bool		 ok;
} lies[] = {
	{ "as it is", { 1, LEM_OFFLOAD_TCP4, 54, 1000, 34, 16 }, true },
	{ "hdr_len is a hint", { 1, LEM_OFFLOAD_TCP4, 65535, 1000, 34, 16 },
	  true },
	{ "TCP over IPv6", { 1, LEM_OFFLOAD_TCP6, 54, 1000, 34, 16 }, true },
	{ "UDP", { 1, LEM_OFFLOAD_UDP, 42, 1000, 34, 6 }, true },
	{ "ECN", { 1, LEM_OFFLOAD_TCP4 | LEM_OFFLOAD_ECN, 54, 1000, 34, 16 },
	  true },
	{ "one segment", { 1, LEM_OFFLOAD_NONE, 0, 0, 34, 16 }, true },
	{ "complete", { 0, LEM_OFFLOAD_NONE, 0, 0, 0, 0 }, true },
	{ "verified", { 2, LEM_OFFLOAD_NONE, 0, 0, 0, 0 }, true },
	{ "to be cut, but complete", { 0, LEM_OFFLOAD_TCP4, 54, 1000, 34, 16 },
	  false },
	{ "segments of nothing", { 1, LEM_OFFLOAD_TCP4, 54, 0, 34, 16 },
	  false },
	{ "segments of the frame", { 1, LEM_OFFLOAD_TCP4, 54, FLEN, 34, 16 },
	  false },
	{ "type 2", { 1, 2, 54, 1000, 34, 16 }, false },
	{ "fragments", { 1, 3, 54, 1000, 34, 6 }, false },
	{ "type 127", { 1, 127, 54, 1000, 34, 16 }, false },
	{ "ECN alone", { 1, LEM_OFFLOAD_ECN, 54, 1000, 34, 16 }, false },
	{ "ECN with UDP", { 1, LEM_OFFLOAD_UDP | LEM_OFFLOAD_ECN, 42, 1000,
	    34, 6 }, false },
	{ "a sum of Ethernet's header", { 1, LEM_OFFLOAD_NONE, 0, 0, 13, 16 },
	  false },
	{ "a sum of all behind it", { 1, LEM_OFFLOAD_NONE, 0, 0, 14, 16 },
	  true },
	{ "the last two bytes", { 1, LEM_OFFLOAD_NONE, 0, 0, 34,
	  FLEN - 36 }, true },
	{ "a byte beyond", { 1, LEM_OFFLOAD_NONE, 0, 0, 34, FLEN - 35 },
	  false },
	{ "offsets that wrap", { 1, LEM_OFFLOAD_NONE, 0, 0, 65535, 65535 },
	  false },
};

TEST(lies, "A frame whose header lies is dropped, and the next one is not")
{
	const struct lie *l;
	uint32_t bad = 0, n = 0, offload = 0;

	up(LEM_MODE_CSB, 2048);
	for (l = lies; l < lies + nitems(lies); l++) {
		inject(FLEN, 1000);
		host_run(t->h);
		ring[t->g.lc.lc_rx_next] = l->v;
		test_settle(t);
		n += l->ok;
		bad += !l->ok;
		offload += 1 + (l->ok && (l->v.lv_flags & 1) != 0);
		ATF_CHECK_EQ_MSG(n, got.frames, "%s", l->what);
		ATF_CHECK_EQ_MSG(bad, t->g.lc.lc_counter[LEM_C_RX_BAD], "%s",
		    l->what);
		inject(FLEN, 1000);
		test_settle(t);
		ATF_REQUIRE_EQ(++n, got.frames);
		check(FLEN, 1000);
		ATF_CHECK_EQ(offload, t->g.lc.lc_counter[LEM_C_RX_OFFLOAD]);
	}
	ATF_CHECK_EQ(0, t->g.lc.lc_os.misuses);
	test_destroy(t);
}

TEST(udp, "The driver announces that it takes UDP, too")
{
	up(LEM_MODE_CSB, 2048);
	ATF_CHECK_EQ(E82545_CSB_HEADERS_UDP,
	    E82545_CSB_GUEST_HEADERS(t->g.lc.lc_csb));
	test_destroy(t);
}

TEST(complete, "A frame whose header is of zeros is no longer than without a "
    "ring")
{
	uint32_t len, n = 0;

	up(LEM_MODE_CSB, 2048);
	for (len = E82545_FRAME_MAX; len <= E82545_FRAME_MAX + 1; len++) {
		inject(len, 1000);
		host_run(t->h);
		ring[t->g.lc.lc_rx_next] = (struct lem_vnet){ 0 };
		test_settle(t);
		n += len == E82545_FRAME_MAX;
		ATF_CHECK_EQ(n, got.frames);
		ATF_CHECK_EQ(len - E82545_FRAME_MAX,
		    t->g.lc.lc_counter[LEM_C_RX_BAD]);
	}
	test_destroy(t);
}

/* The adapter has filled descriptors, `len' bytes in all. */
static void
forge(uint32_t len)
{
	struct lem_core *lc = &t->g.lc;
	uint32_t n, slot = lc->lc_rx_next;

	ring[slot] = (struct lem_vnet){ 1, LEM_OFFLOAD_NONE, 0, 0, 34, 16 };
	for (; len > 0; len -= n) {
		n = MIN(len, lc->lc_rx_bufsize);
		lc->lc_rxd[slot].rest = htole64(n |
		    (uint64_t)E82545_RXD_DD << 32 | (uint64_t)(n < len ? 0 :
		    E82545_RXD_EOP) << 32);
		slot = (slot + 1) % TEST_RING;
	}
}

TEST(longest, "The longest frame of an adapter, and one that is longer")
{
	up(LEM_MODE_CSB, 2048);
	forge(LEM_RX_OFFLOAD_MAX);
	lem_rx(&t->g.lc, 8);
	ATF_CHECK_EQ(1, got.frames);
	ATF_CHECK_EQ(LEM_RX_OFFLOAD_MAX, got.len);
	forge(LEM_RX_OFFLOAD_MAX + 1);
	lem_rx(&t->g.lc, 8);
	ATF_CHECK_EQ(1, got.frames);
	ATF_CHECK_EQ(1, t->g.lc.lc_counter[LEM_C_RX_BAD]);
	test_destroy(t);
}

TEST(taken_away, "Without a ring, after a restart, frames are complete")
{
	struct lem_core *lc;

	up(LEM_MODE_CSB, 2048);
	lc = &t->g.lc;
	inject(FLEN, 1000);
	test_settle(t);
	check(FLEN, 1000);
	lem_stop(lc);
	lc->lc_vnet = NULL;
	ATF_REQUIRE_EQ(0, lem_start(lc, t->g.mac, 1500));
	ATF_CHECK_EQ(0, lc->lc_csb->vnet_ring_low);
	lem_intr_enable(lc);
	test_inject(t, 1, 60);
	test_settle(t);
	ATF_CHECK_EQ(2, got.frames);
	ATF_CHECK_EQ(0, got.flags & LEM_RX_OFFLOAD);
	test_destroy(t);
}

TEST(high, "The ring may be beyond 4 GB")
{
	struct lem_core *lc;

	t = test_create_down(2048);
	lc = &t->g.lc;
	lc->lc_vnet = host_mem(t->h, VNET_GPA, TEST_RING * sizeof(*ring));
	lc->lc_vnet_dma = 0x123456789000;
	ATF_REQUIRE_EQ(0, lem_set_mode(lc, 0));
	ATF_REQUIRE_EQ(0, guest_up(&t->g, 1500));
	ATF_CHECK_EQ(0x1234, lc->lc_csb->vnet_ring_high);
	ATF_CHECK_EQ(0x56789000, lc->lc_csb->vnet_ring_low);
	test_destroy(t);
}

TEST(unknown, "An adapter that does not know the ring leaves it as the core "
    "made it: each frame is complete")
{
	up_at(LEM_MODE_CSB, 2048, 0);
	inject(FLEN, 1000);
	test_inject(t, 1, 60);
	test_settle(t);
	ATF_CHECK_EQ(4, got.frames);
	ATF_CHECK_EQ(0, got.flags & LEM_RX_OFFLOAD);
	ATF_CHECK_EQ(0, t->g.lc.lc_counter[LEM_C_RX_BAD]);
	test_destroy(t);
}

TEST_PROGRAM
