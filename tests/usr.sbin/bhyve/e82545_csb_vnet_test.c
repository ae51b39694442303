/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The CSB's header ring: frames reach the guest uncut, each with what its
 * virtio-net header says.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <stdlib.h>
#include <string.h>

#include "e82545_guest.h"
#include "e82545_impl.h"
#include "frame_vnet.h"
#include "test.h"

#define	ENTRY		FRAME_VNET_SHORT
#define	BYTES		(PACKET_HDR_MAX + 65536)
#define	RX_UNCUT_MAX	65536		/* bytes of a frame */

static uint8_t bulk[BYTES], sent[BYTES], found[BYTES];
static const uint8_t plain[ENTRY];
/* The array, and the entry of the frame in `sent'. */
static uint8_t *ring, hdr[ENTRY];

/* The array is at `gpa_ring', or anywhere if that is 0; the mode is on. */
static struct host *
up(uint32_t nrxd, uint32_t bufsize, uint64_t gpa_ring)
{
	struct host *h = guest_up(64, nrxd, bufsize, 1);
	uint64_t gpa;

	packet_fill(bulk, sizeof(bulk), 2);
	h->port.fp_offloads = true;
	gpa = (uint64_t)host_rd(h, E82545_CSBAH) << 32 |
	    host_rd(h, E82545_CSBAL);
	guest_place(h, 0);
	if (gpa_ring == 0) {
		gpa_ring = host_alloc(h, nrxd * ENTRY, 16);
		ring = host_mem(h, gpa_ring, nrxd * ENTRY);
		memset(ring, 0x5a, nrxd * ENTRY);
	}
	CSB_SET(h, vnet_ring_high, gpa_ring >> 32);
	CSB_SET(h, vnet_ring_low, gpa_ring);
	CSB_SET(h, pad[1], E82545_CSB_HEADERS_UDP);
	guest_place(h, gpa);
	host_run(h);
	return (h);
}

/* Make the packet and its header; returns the length of the frame. */
static size_t
make(const struct packet *p, size_t mss, struct frame *frame)
{
	size_t len = offload_frame(p, mss, frame, sent);

	memset(hdr, 0, sizeof(hdr));
	hdr[0] = 1;
	hdr[1] = frame->f_gso_type;
	if (mss != 0) {
		le16enc(hdr + 2, frame->f_hdr_len);
		le16enc(hdr + 4, mss);
	}
	le16enc(hdr + 6, frame->f_csum_start);
	le16enc(hdr + 8, frame->f_csum_offset);
	return (len);
}

/* Let it arrive, in fragments. */
static size_t
receive(struct host *h, const struct packet *p, size_t mss)
{
	struct frame frame;
	size_t len = make(p, mss, &frame);

	host_inject_offload(h, &frame, sent, len, 5);
	host_run(h);
	return (len);
}

/* Take a frame, and expect the header in the entry of its first descriptor. */
static void
check(struct host *h, size_t len)
{
	struct e82545_rxd rxd;
	uint32_t first = h->rxnext;

	ATF_REQUIRE_EQ((ssize_t)len, host_rx_take(h, found, sizeof(found),
	    &rxd));
	ATF_CHECK_EQ(0, memcmp(sent, found, len));
	ATF_CHECK_EQ_MSG(0, memcmp(hdr, ring + first * ENTRY, ENTRY),
	    "entry %u", first);
	ATF_CHECK_EQ(RXD_DONE | E82545_RXD_IXSM, rxd.status);
}

TEST(uncut, "Frames of up to 64 KB arrive as they are, over many laps, in "
    "buffers of all sizes; entries of plain frames are zeros")
{
	static const uint32_t sizes[] = { 256, 2048, 16384 };
	struct packet p;
	struct host *h;
	uint32_t i, first, mss, s, seed = 1;
	uint64_t uncut;
	size_t len;

	for (s = 0; s < nitems(sizes); s++) {
		h = up(sizes[s] == 256 ? 512 : 72, sizes[s], 0);
		uncut = 0;
		for (i = 0; i < 72; i++)
			ATF_CHECK_EQ(0, memcmp(plain, ring + i * ENTRY,
			    ENTRY));
		for (i = 0; i < 500; i++) {
			memset(&p, 0, sizeof(p));
			p.v6 = test_chance(&seed, 1, 2);
			p.udp = test_chance(&seed, 1, 3);
			p.payload = bulk;
			p.paylen = 100 + test_below(&seed, i % 8 == 0 ?
			    65300 : 3000);
			mss = test_chance(&seed, 1, 3) ? 0 : 100;
			if (test_chance(&seed, 1, 2)) {
				len = receive(h, &p, mss);
				check(h, len);
				uncut++;
			} else {
				first = h->rxnext;
				guest_inject(h, 1);
				ATF_REQUIRE_EQ(1, guest_take(h, 1));
				ATF_CHECK_EQ(0, memcmp(plain,
				    ring + first * ENTRY, ENTRY));
			}
			(void)guest_give(h);
		}
		ATF_CHECK_EQ(uncut, host_counter(h, E82545_C_RX_UNCUT));
		ATF_CHECK_EQ(i, host_counter(h, E82545_C_RX_FRAME));
		ATF_CHECK_EQ(0, host_counter(h, E82545_C_RX_CUT));
		host_destroy(h);
	}
}

HOST_TEST(tag, up(64, 2048, 0), "Without its tag, offsets are those of what "
    "the guest gets")
{
	struct packet p = { .payload = bulk, .paylen = 3000, .vlan = true,
	    .tag = 0x2064 };
	struct e82545_rxd rxd;
	size_t len;

	host_set(h, E82545_CTRL, E82545_CTRL_VME);
	host_wr(h, E82545_VET, 0x8100);
	len = receive(h, &p, 1000);
	le16enc(hdr + 2, le16dec(hdr + 2) - 4);
	le16enc(hdr + 6, le16dec(hdr + 6) - 4);
	memmove(sent + 12, sent + 16, len - 16);
	ATF_REQUIRE_EQ((ssize_t)len - 4, host_rx_take(h, found, sizeof(found),
	    &rxd));
	ATF_CHECK_EQ(0, memcmp(sent, found, len - 4));
	ATF_CHECK_EQ(0, memcmp(hdr, ring, ENTRY));
	ATF_CHECK_EQ(p.tag, le16toh(rxd.special));
}

/* The next frame is `p', complete. */
static void
check_whole(struct host *h, const struct packet *p)
{
	struct e82545_rxd rxd;
	size_t len;

	len = packet_build(p, sent);
	memcpy(sent, host_mac, sizeof(host_mac));
	ATF_REQUIRE_EQ((ssize_t)len, host_rx_take(h, found, sizeof(found),
	    &rxd));
	ATF_CHECK_EQ(0, memcmp(sent, found, len));
}

/* Three segments of 1000 bytes. */
static void
check_cut(struct host *h, const struct packet *p)
{
	struct packet q = *p;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		q.payload = p->payload + i * 1000;
		q.paylen = 1000;
		q.id = p->id + i;
		q.seq = p->seq + i * 1000;
		check_whole(h, &q);
	}
}

TEST(without, "The guest gets complete segments with the mode off, or if the "
    "array is outside memory, or the ring larger than it")
{
	struct packet p = { .payload = bulk, .paylen = 3000 };
	struct host *h;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		h = up(64, 2048, i == 1 ? HOST_RAM - 64 * ENTRY + 1 : i == 2 ?
		    1ULL << 40 : 0);
		if (i == 0)
			CSB_SET(h, guest_csb_on, 0);
		else if (i == 2)
			ATF_CHECK_EQ(1ULL << 40, h->dev->csb.vnet_gpa);
		ATF_CHECK_EQ(i == 1 || i == 2,
		    host_counter(h, E82545_C_CSB_BAD) != 0);
		if (i == 3) {
			/* The first 64 descriptors are posted. */
			host_wr(h, E82545_RDLEN, 72 * 16);
			host_wr(h, E82545_RDH, 0);
			host_wr(h, E82545_RDT, 63);
		}
		receive(h, &p, 1000);
		check_cut(h, &p);
		if (i == 0 || i == 3)
			ATF_CHECK_EQ(0, memcmp(plain, ring, ENTRY));
		ATF_CHECK_EQ(0, host_counter(h, E82545_C_RX_UNCUT));
		ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_CUT));
		host_destroy(h);
	}
}

HOST_TEST(udp, up(64, 2048, 0), "A guest that does not announce UDP gets "
    "complete datagrams; TCP comes with a header all the same; the guest may "
    "change that at any time")
{
	struct packet p = { .payload = bulk, .paylen = 3000 };
	unsigned int i;
	uint32_t first;
	bool takes;
	size_t len;

	for (i = 0; i < 200; i++) {
		takes = i % 5 == 0;
		first = h->rxnext;
		CSB_SET(h, pad[1], takes ? UINT32_MAX : UINT32_MAX - 1);
		p.v6 = i % 2 != 0;
		p.udp = i % 3 != 0;
		len = receive(h, &p, i % 4 == 0 ? 0 : 1000);
		if (takes || !p.udp)
			check(h, len);
		else if (i % 4 != 0)
			check_cut(h, &p);
		else {
			/* Longer than a frame may be. */
			ATF_CHECK_EQ(0, host_rx_pending(h));
			p.paylen = 1000;
			receive(h, &p, 0);
			check_whole(h, &p);
			p.paylen = 3000;
		}
		if (!takes && p.udp)
			ATF_CHECK_EQ(0, memcmp(plain, ring + first * ENTRY,
			    ENTRY));
		(void)guest_give(h);
	}
}

HOST_TEST(odd, up(64, 2048, 0), "Segments of UDP with the checksum of TCP are "
    "none for a guest without UDP, and for nobody else")
{
	struct packet p = { .payload = bulk, .paylen = 3000, .udp = true };
	struct frame frame;
	size_t len = make(&p, 1000, &frame);

	CSB_SET(h, pad[1], 0);
	frame.f_csum_offset = 16;
	host_inject_offload(h, &frame, sent, len, 5);
	host_run(h);
	ATF_CHECK_EQ(0, host_rx_pending(h));
	ATF_CHECK(!host_rx_done(h, h->rxnext));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_BAD_OFFLOAD));
}

/* The entries from `first' on, `n' of them, up to the end of the array. */
static bool
entries_are(uint32_t first, uint32_t n, uint8_t byte)
{
	uint32_t i;

	for (i = first * ENTRY; i < (first + n) * ENTRY; i++)
		if (ring[i] != byte)
			return (false);
	return (true);
}

/* A frame for a direct call. */
struct one {
	struct frame_source source;
	struct frame	 frame;
	struct iovec	 iov[2];
	bool		 taken;
};

static bool
one_peek(struct frame_source *source, struct frame *frame)
{
	struct one *o = __containerof(source, struct one, source);
	struct iovec *iov = frame->f_iov;

	if (o->taken)
		return (false);
	*frame = o->frame;
	frame->f_iov = iov;
	frame->f_niov = 2;
	memcpy(iov, o->iov, sizeof(o->iov));
	return (true);
}

static void
one_next(struct frame_source *source)
{
	__containerof(source, struct one, source)->taken = true;
}

HOST_TEST(between, up(2048, 256, 0), "Between two batches of such a frame, "
    "that of a direct call is not cut")
{
	struct packet p = { .payload = bulk, .paylen = 1300 * 50 };
	struct packet q = { .payload = bulk, .paylen = 3000 };
	struct one o = { .source = { one_peek, one_next } };
	struct frame frame;
	unsigned int i;
	size_t len;

	CSB_SET(h, guest_csb_on, 0);
	len = make(&p, 50, &frame);
	host_inject_offload(h, &frame, sent, len, 5);
	ATF_CHECK_EQ(E82545_RX_MORE, e82545_rx(h->dev));
	for (i = 0; i < 1024; i++)
		ATF_REQUIRE_EQ(104, host_rx_take(h, found, sizeof(found),
		    NULL));
	CSB_SET(h, guest_csb_on, 1);
	len = make(&q, 1000, &o.frame);
	o.iov[0].iov_base = sent;
	o.iov[0].iov_len = 60;
	o.iov[1].iov_base = sent + 60;
	o.iov[1].iov_len = len - 60;
	e82545_rx_direct(h->dev, &o.source);
	ATF_CHECK(o.taken);
	check(h, len);
	host_run(h);
	for (; i < 1300; i++)
		ATF_REQUIRE_EQ(104, host_rx_take(h, found, sizeof(found),
		    NULL));
	check_none(h);
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_UNCUT));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_CUT));
}

HOST_TEST(bad_ring, up(64, 2048, 0), "Without a receive ring no entry is "
    "touched")
{
	memset(ring, 0x5a, 64 * ENTRY);
	host_wr(h, E82545_RDBAH, 1);
	host_wr(h, E82545_RDH, 99);
	guest_offer(h, 1);
	ATF_CHECK_EQ(E82545_RX_STALLED, e82545_rx(h->dev));
	ATF_CHECK(entries_are(0, 64, 0x5a));
}

/* Reset the adapter, and set the ring up again without a write to RDH. */
static void
reset_ring(struct host *h)
{
	uint32_t rctl = host_rd(h, E82545_RCTL);

	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	host_set(h, E82545_CTRL, E82545_CTRL_SLU);
	host_wr(h, E82545_RDBAL, h->rxring);
	host_wr(h, E82545_RDBAH, h->rxring >> 32);
	host_wr(h, E82545_RDLEN, h->nrxd * sizeof(struct e82545_rxd));
	host_wr(h, E82545_RCTL, rctl);
}

TEST(restarted, "No entry of a frame of before the ring was started is left")
{
	struct packet p = { .payload = bulk, .paylen = 3000 };
	struct host *h;
	uint32_t n;
	size_t len;

	for (n = 1; n < 50; n++) {
		h = up(32, 2048, 0);
		len = receive(h, &p, 1000);
		check(h, len);
		(void)guest_give(h);
		guest_inject(h, n % 25);
		guest_take(h, n % 25);
		host_clear(h, E82545_RCTL, E82545_RCTL_EN);
		/* A reset does it, too. */
		if (n < 25)
			host_wr(h, E82545_RDH, 0);
		else
			reset_ring(h);
		host_wr(h, E82545_RDT, 31);
		h->rxnext = 0;
		h->rxtail = h->rxposted = 31;
		host_set(h, E82545_RCTL, E82545_RCTL_EN);
		guest_receive(h, 1);
		ATF_CHECK_EQ(0, memcmp(plain, ring, ENTRY));
		host_destroy(h);
	}
}

TEST(too_long, "A frame that no ring of this size can hold is cut")
{
	struct packet p = { .payload = bulk, .paylen = 3000 };
	struct host *h;

	h = up(8, 256, 0);
	receive(h, &p, 1000);
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_RX_UNCUT));
	ATF_CHECK(host_rx_done(h, 0));
	host_destroy(h);
	/* One buffer stays empty. */
	for (p.paylen = 7 * 256 - 54; p.paylen <= 7 * 256 - 53; p.paylen++) {
		h = up(8, 256, 0);
		receive(h, &p, 1000);
		ATF_CHECK_EQ(p.paylen == 7 * 256 - 54,
		    host_counter(h, E82545_C_RX_UNCUT));
		ATF_CHECK(host_rx_done(h, 0));
		host_destroy(h);
	}
}

TEST(longest, "A frame of more than 65536 bytes is cut")
{
	struct packet p = { .payload = bulk };
	struct host *h;
	uint32_t over;
	size_t len;

	for (over = 0; over < 2; over++) {
		h = up(64, 2048, 0);
		p.paylen = RX_UNCUT_MAX - 54 + over;
		len = receive(h, &p, 1400);
		if (over == 0)
			check(h, len);
		ATF_CHECK_EQ(over == 0, host_counter(h, E82545_C_RX_UNCUT));
		ATF_CHECK_EQ(over == 1, host_counter(h, E82545_C_RX_CUT));
		host_destroy(h);
	}
}

HOST_TEST(padded, up(64, 2048, 0), "A short frame is padded, and counted "
    "without that")
{
	struct packet p = { .udp = true, .payload = bulk, .paylen = 5 };
	size_t len;

	memset(host_mem(h, h->rxbuf, 2048), 0xaa, 2048);
	len = receive(h, &p, 0);
	ATF_REQUIRE_EQ(47, len);
	memset(sent + len, 0, 60 - len);
	check(h, 60);
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_FRAME));
	ATF_CHECK_EQ(len, host_counter(h, E82545_C_RX_BYTE));
}

HOST_TEST(waits, up(8, 2048, 0), "A frame waits until all of its buffers are "
    "posted")
{
	struct packet p = { .payload = bulk, .paylen = 5000 };
	unsigned int i;
	size_t len;

	for (i = 0; i < 3; i++)
		len = receive(h, &p, 1000);
	ATF_CHECK_EQ(1, host_rx_pending(h));
	for (i = 0; i < 3; i++) {
		check(h, len);
		(void)guest_give(h);
		host_run(h);
	}
	ATF_CHECK_EQ(0, host_rx_pending(h));
	ATF_CHECK_EQ(3, host_counter(h, E82545_C_RX_UNCUT));
}

HOST_TEST(start, up(64, 2048, 0), "A sum that begins in Ethernet's header, or "
    "a tag there, is refused")
{
	struct packet p = { .payload = bulk, .paylen = 100 };
	struct frame frame;
	size_t len;

	len = make(&p, 0, &frame);
	frame.f_csum_start = 15;
	host_inject_offload(h, &frame, sent, len, 5);
	frame.f_csum_start = 16;
	host_inject_offload(h, &frame, sent, len, 5);
	host_run(h);
	le16enc(hdr + 6, 16);
	check(h, len);
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_BAD_OFFLOAD));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_FRAME));
	ATF_CHECK_EQ(0, host_rx_pending(h));
}

TEST(cleared, "An entry is cleared when its descriptor is posted, and not "
    "again")
{
	struct host *h;
	uint32_t i, j, n = 0, size = 72;

	h = up(size, 2048, 0);
	ATF_REQUIRE_EQ(size - 1, h->rxposted);
	ATF_CHECK(entries_are(0, size, 0));
	memset(ring, 0xaa, size * ENTRY);
	guest_receive(h, 3);
	ATF_CHECK(entries_are(0, size, 0xaa));
	(void)guest_give(h);
	/* For many laps; the host looks for posted ones when it needs them. */
	for (i = 0; i < 10 * size; i++) {
		memset(ring, 0xaa, size * ENTRY);
		(void)guest_give(h);
		guest_receive(h, 1);
		for (j = 0; j < size; j++)
			n += entries_are(j, 1, 0);
	}
	ATF_CHECK_MSG(n >= 9 * size && n <= 10 * size, "%u", n);
	host_destroy(h);
}

HOST_TEST(unused, up(64, 2048, 0), "All entries are cleared again after "
    "batches of a port without offloads")
{
	uint32_t first, i;

	guest_receive(h, 1);
	(void)guest_give(h);
	h->port.fp_offloads = false;
	memset(ring, 0xaa, 64 * ENTRY);
	for (i = 0; i < 70; i++) {
		guest_receive(h, 1);
		(void)guest_give(h);
	}
	ATF_CHECK(entries_are(0, 64, 0xaa));
	h->port.fp_offloads = true;
	first = h->rxnext;
	guest_receive(h, 1);
	ATF_CHECK(entries_are(first, 1, 0));
}

HOST_TEST(split, host_create_82574_csb(HOST_RAM), "So they are after batches "
    "of descriptors with four buffers")
{
	const uint64_t gpa = guest_alloc(h);
	const uint64_t at = host_alloc(h, 64 * ENTRY, 16);
	uint8_t plain_frame[60];
	uint32_t first, i, k;

	host_make_frame(plain_frame, sizeof(plain_frame), host_mac, 1);
	h->port.fp_offloads = true;
	host_wr(h, E82574_RFCTL, E82574_RFCTL_EXTEN);
	host_up(h, 64, 64, 2048);
	ring = host_mem(h, at, 64 * ENTRY);
	CSB_SET(h, vnet_ring_high, at >> 32);
	CSB_SET(h, vnet_ring_low, at);
	CSB_SET(h, guest_rdt, h->rxtail);
	guest_place(h, gpa);
	CSB_SET(h, guest_csb_on, 1);
	for (i = 0; i < 4; i++) {
		/* Two descriptors each with four buffers; one as always. */
		if (i == 1) {
			ATF_REQUIRE(entries_are(0, 2, 0));
			memset(ring, 0xaa, 64 * ENTRY);
			host_set(h, E82545_RCTL, 0x400);
		} else if (i == 3)
			host_clear(h, E82545_RCTL, 0x400);
		first = host_rd(h, E82545_RDH);
		for (k = 0; k < (i == 0 ? 2 : i == 3 ? 1 : 20); k++)
			host_inject(h, plain_frame, sizeof(plain_frame), 1);
		host_run(h);
		ATF_REQUIRE_EQ(0, host_rx_pending(h));
		if (i < 3)
			for (k = 0; k < 64; k++) {
				memset(host_rxd(h, k), 0, 16);
				host_rxd(h, k)->addr = htole64(h->rxbuf +
				    k * 2048);
			}
		k = (host_rd(h, E82545_RDH) + 63) % 64;
		CSB_SET(h, guest_rdt, k);
		host_wr(h, E82545_RDT, k);
	}
	ATF_REQUIRE_EQ(18, first);
	ATF_CHECK(entries_are(first, 1, 0));
}

HOST_TEST(ahead, up(64, 2048, 0), "A snapshot may say that entries are clear "
    "of descriptors that are not posted")
{
	guest_receive(h, 60);
	memset(ring, 0xaa, 64 * ENTRY);
	h->dev->csb.vnet_clean = 10;
	guest_receive(h, 1);
	ATF_CHECK(entries_are(0, 64, 0xaa));
	ATF_CHECK_EQ(63, h->dev->csb.vnet_clean);
	/* No entry has this number: none is clear. */
	h->dev->csb.vnet_clean = 64;
	guest_receive(h, 1);
	ATF_CHECK(entries_are(61, 2, 0));
}

HOST_TEST(beyond, up(64, 2048, 0), "A ring that is made shorter than its RDT: "
    "the entry of a frame is cleared for the next round, and none of no "
    "descriptor")
{
	uint32_t i;

	host_wr(h, E82545_RDLEN, 8 * sizeof(struct e82545_rxd));
	ATF_REQUIRE_EQ(63, host_rd(h, E82545_RDT));
	memset(ring, 0xaa, 64 * ENTRY);
	for (i = 1; i < 20; i++) {
		/* The guest has read the entry of the last frame. */
		memset(ring + (i + 6) % 8 * ENTRY, 0xaa, ENTRY);
		guest_inject(h, 1);
		host_run(h);
		ATF_CHECK_EQ(0, host_rx_pending(h));
		ATF_CHECK_EQ(i % 8, host_rd(h, E82545_RDH));
		ATF_CHECK(entries_are(0, 8, 0));
		ATF_CHECK(entries_are(8, 56, 0xaa));
	}
}

TEST(later, "An array that is in memory only after CSBAL is written has "
    "entries of zeros, too")
{
	struct host *h;
	uint64_t gpa;
	uint32_t i;

	for (i = 0; i < 2; i++) {
		h = up(64, 2048, HOST_RAM - 64 * ENTRY);
		ring = host_mem(h, HOST_RAM - 64 * ENTRY, 64 * ENTRY);
		gpa = host_rd(h, E82545_CSBAL);
		guest_inject(h, 10);
		guest_return(h, 10);
		guest_place(h, 0);
		h->ram_size -= i;
		guest_place(h, gpa);
		h->ram_size += i;
		ATF_CHECK_EQ(i, host_counter(h, E82545_C_CSB_BAD));
		memset(ring, 0xaa, 64 * ENTRY);
		guest_receive(h, 1);
		ATF_CHECK(entries_are(10, 1, 0));
		host_destroy(h);
	}
}

HOST_TEST(end_of_memory, up(64, 2048, HOST_RAM - 64 * ENTRY), "The array may "
    "end where memory ends; a ring without descriptors has none")
{
	struct packet p = { .payload = bulk, .paylen = 3000 };
	uint64_t gpa;
	size_t len;

	ring = host_mem(h, HOST_RAM - 64 * ENTRY, 64 * ENTRY);
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_CSB_BAD));
	len = receive(h, &p, 1000);
	check(h, len);
	(void)guest_give(h);

	gpa = (uint64_t)host_rd(h, E82545_CSBAH) << 32 |
	    host_rd(h, E82545_CSBAL);
	/* Memory at 0 is the guest's. */
	guest_place(h, 0);
	CSB_SET(h, vnet_ring_low, 0);
	memset(host_mem(h, 0, 64 * ENTRY), 0x5a, 64 * ENTRY);
	guest_place(h, gpa);
	guest_inject(h, 1);
	guest_return(h, 1);
	ring = host_mem(h, 0, 64 * ENTRY);
	ATF_CHECK(entries_are(0, 64, 0x5a));
	CSB_SET(h, vnet_ring_low, HOST_RAM - 64 * ENTRY);
	guest_place(h, 0);
	host_wr(h, E82545_RDLEN, 0);
	guest_place(h, gpa);
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_CSB_BAD));
	host_wr(h, E82545_RDLEN, 64 * 16);
	receive(h, &p, 1000);
	check_cut(h, &p);
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_UNCUT));
}

TEST_PROGRAM
