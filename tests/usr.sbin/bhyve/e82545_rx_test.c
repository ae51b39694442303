/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * The receive ring: what reaches the guest and what does not, what its
 * descriptors tell, running dry and going on, hostile guests.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <atf-c.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "e82545_host.h"
#include "e82545_packet.h"

#define	TEST(name, descr)						\
	ATF_TC(name);							\
	ATF_TC_HEAD(name, tc) { atf_tc_set_md_var(tc, "descr", descr); } \
	ATF_TC_BODY(name, tc)

#define	DONE	(E82545_RXD_DD | E82545_RXD_EOP)
#define	CSUM	(E82545_RXCSUM_IPOFL | E82545_RXCSUM_TUOFL |		\
		E82545_RXCSUM_IPV6OFL)

static const uint8_t broadcast[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

static struct host *
up(uint32_t nrxd, uint32_t bufsize)
{
	struct host *h;

	h = host_create(HOST_RAM);
	host_up(h, 64, nrxd, bufsize);
	host_wr(h, E82545_IMS, E82545_ICR_ALL);
	host_rd(h, E82545_ICR);
	return (h);
}

/* Inject a frame to the adapter's address and let it be received. */
static void
receive(struct host *h, const void *frame, size_t len)
{

	host_inject(h, frame, len, 1);
	host_run(h);
}

static struct e82545_rxd
check_taken(struct host *h, const void *data, size_t len)
{
	static uint8_t buf[65536];
	struct e82545_rxd last;
	ssize_t n;

	n = host_rx_take(h, buf, sizeof(buf), &last);
	ATF_REQUIRE_EQ_MSG((ssize_t)len, n, "%zd bytes, not %zu", n, len);
	ATF_REQUIRE_EQ(0, memcmp(data, buf, len));
	return (last);
}

static void
check_none(struct host *h)
{
	uint8_t buf[1];

	ATF_REQUIRE_EQ(-1, host_rx_take(h, buf, 0, NULL));
}

static void
check_alive(struct host *h)
{
	uint8_t frame[100];

	host_make_frame(frame, sizeof(frame), host_mac, 77);
	receive(h, frame, sizeof(frame));
	check_taken(h, frame, sizeof(frame));
	host_rx_post(h);
}

/*
 * Frames and descriptors.
 */

TEST(simple, "One frame: contents, descriptor, interrupt, statistics")
{
	struct host *h = up(64, 2048);
	struct e82545_rxd last;
	uint8_t frame[100];

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	receive(h, frame, sizeof(frame));
	last = check_taken(h, frame, sizeof(frame));
	ATF_CHECK_EQ(DONE | E82545_RXD_IXSM, last.status);
	ATF_CHECK_EQ(0, last.errors);
	ATF_CHECK_EQ(0, last.special);
	ATF_CHECK_EQ(packet_sum(frame, sizeof(frame)), last.csum);
	ATF_CHECK_EQ(h->rxbuf, last.addr);
	ATF_CHECK_EQ(1, host_rd(h, E82545_RDH));
	ATF_CHECK(host_line(h));
	ATF_CHECK((host_rd(h, E82545_ICR) & E82545_ICR_RXT0) != 0);
	ATF_CHECK_EQ(1, host_rd(h, E82545_GPRC));
	ATF_CHECK_EQ(1, host_rd(h, E82545_TPR));
	ATF_CHECK_EQ(104, host_rd(h, E82545_GORCL));
	ATF_CHECK_EQ(104, host_rd(h, E82545_TORL));
	ATF_CHECK_EQ(1, host_rd(h, E82545_PRC127));
	ATF_CHECK_EQ(0, host_rd(h, E82545_MPC));
	ATF_CHECK_EQ(0, host_rd(h, E82545_RNBC));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_FRAME));
	ATF_CHECK_EQ(100, host_counter(h, E82545_C_RX_BYTE));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_BATCH));
	host_destroy(h);
}

TEST(statistics, "Frames by size and by kind of address")
{
	static const struct {
		size_t		len;
		uint32_t	reg;
	} t[] = {
		{ 20, E82545_PRC64 }, { 60, E82545_PRC64 },
		{ 61, E82545_PRC127 }, { 123, E82545_PRC127 },
		{ 124, E82545_PRC255 }, { 251, E82545_PRC255 },
		{ 252, E82545_PRC511 }, { 507, E82545_PRC511 },
		{ 508, E82545_PRC1023 }, { 1019, E82545_PRC1023 },
		{ 1020, E82545_PRC1522 }, { 1518, E82545_PRC1522 },
	};
	static const uint8_t multicast[6] = { 0x01, 0, 0x5e, 0, 0, 1 };
	static const uint8_t other[6] = { 2, 2, 2, 2, 2, 2 };
	struct host *h = up(64, 2048);
	uint8_t frame[1600];
	unsigned int i;
	uint64_t bytes;

	bytes = 0;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		host_make_frame(frame, t[i].len, host_mac, i);
		receive(h, frame, t[i].len);
		ATF_CHECK_EQ_MSG(1, host_rd(h, t[i].reg), "length %zu",
		    t[i].len);
		bytes += MAX(t[i].len, 60) + 4;
	}
	host_set(h, E82545_RCTL, E82545_RCTL_MPE);
	host_make_frame(frame, 60, multicast, 0);
	receive(h, frame, 60);
	receive(h, frame, 60);
	host_make_frame(frame, 60, broadcast, 0);
	receive(h, frame, 60);
	ATF_CHECK_EQ(2, host_rd(h, E82545_MPRC));
	ATF_CHECK_EQ(1, host_rd(h, E82545_BPRC));
	bytes += 3 * 64;
	/* Frames for others are in the totals only. */
	host_make_frame(frame, 60, other, 0);
	receive(h, frame, 60);
	ATF_CHECK_EQ(15, host_rd(h, E82545_GPRC));
	ATF_CHECK_EQ(16, host_rd(h, E82545_TPR));
	ATF_CHECK_EQ(bytes, host_rd(h, E82545_GORCL));
	ATF_CHECK_EQ(bytes + 64, host_rd(h, E82545_TORL));
	host_destroy(h);
}

TEST(sizes, "Every buffer size, frames to the byte and over many descriptors")
{
	static const uint32_t sizes[] =
	    { 256, 512, 1024, 2048, 4096, 8192, 16384 };
	static const size_t lens[] = {
		60, 255, 256, 257, 511, 512, 513, 1024, 1025, 1514, 2048,
		2049, 4095, 4096, 4097, 8192, 8193, 9014, E82545_FRAME_MAX
	};
	struct host *h;
	uint8_t frame[E82545_FRAME_MAX];
	unsigned int i, j, k, need;
	uint32_t first, head;
	struct e82545_rxd *rxd;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		h = up(128, sizes[i]);
		host_set(h, E82545_RCTL, E82545_RCTL_LPE);
		for (j = 0; j < sizeof(lens) / sizeof(lens[0]); j++) {
			need = howmany(lens[j], sizes[i]);
			first = host_rd(h, E82545_RDH);
			host_make_frame(frame, lens[j], host_mac, j);
			host_inject(h, frame, lens[j], 1 + j * 3);
			host_run(h);
			head = host_rd(h, E82545_RDH);
			ATF_CHECK_EQ((first + need) % 128, head);
			for (k = 0; k < need; k++) {
				rxd = host_rxd(h, (first + k) % 128);
				ATF_CHECK_EQ((k < need - 1 ? E82545_RXD_DD :
				    DONE | E82545_RXD_IXSM), rxd->status);
				if (k < need - 1)
					ATF_CHECK_EQ(sizes[i], rxd->length);
			}
			check_taken(h, frame, lens[j]);
			host_rx_post(h);
		}
		ATF_CHECK_EQ(j, host_counter(h, E82545_C_RX_FRAME));
		host_destroy(h);
	}
}

TEST(reserved_size, "The reserved buffer size is that of the default")
{
	struct host *h = up(64, 2048);
	uint8_t frame[3000];

	host_set(h, E82545_RCTL, E82545_RCTL_BSEX | E82545_RCTL_LPE);
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	receive(h, frame, sizeof(frame));
	ATF_CHECK_EQ(2, host_rd(h, E82545_RDH));
	check_taken(h, frame, sizeof(frame));
	host_destroy(h);
}

TEST(fcs, "Without SECRC, four bytes of FCS are in the buffer")
{
	struct host *h = up(64, 256);
	uint8_t frame[260];

	host_clear(h, E82545_RCTL, E82545_RCTL_SECRC);
	host_make_frame(frame, 100, host_mac, 1);
	memset(frame + 100, 0, 4);
	memset(host_mem(h, h->rxbuf, 256), 0xa5, 256);
	receive(h, frame, 100);
	check_taken(h, frame, 104);
	ATF_CHECK_EQ(0xa5, *(uint8_t *)host_mem(h, h->rxbuf + 104, 1));
	/* Also where it alone goes into the next buffer. */
	host_make_frame(frame, 256, host_mac, 1);
	memset(frame + 256, 0, 4);
	receive(h, frame, 256);
	ATF_CHECK_EQ(3, host_rd(h, E82545_RDH));
	ATF_CHECK_EQ(4, host_rxd(h, 2)->length);
	check_taken(h, frame, 260);
	host_destroy(h);
}

TEST(padding, "Short frames are padded with zeros; buffers keep the rest")
{
	struct host *h = up(64, 256);
	uint8_t frame[61];
	uint32_t n;
	size_t len;

	for (len = 14; len < 62; len++) {
		memset(frame, 0, sizeof(frame));
		host_make_frame(frame, MIN(len, 61), host_mac, len);
		n = h->rxnext;
		memset(host_mem(h, h->rxbuf + n * 256, 256), 0xa5, 256);
		receive(h, frame, MIN(len, 61));
		check_taken(h, frame, MIN(MAX(len, 60), 61));
		ATF_CHECK_EQ(0xa5, *(uint8_t *)host_mem(h,
		    h->rxbuf + n * 256 + 61, 1));
		host_rx_post(h);
	}
	host_destroy(h);
}

TEST(tiny, "Frames shorter than a header do no harm")
{
	struct host *h = up(64, 256);
	uint8_t frame[60];
	size_t len;

	host_set(h, E82545_RCTL, E82545_RCTL_UPE | E82545_RCTL_MPE);
	host_set(h, E82545_CTRL, E82545_CTRL_VME);
	host_wr(h, E82545_VET, 0);
	for (len = 1; len < 14; len++) {
		memset(frame, 0, sizeof(frame));
		memset(frame, len, len);
		receive(h, frame, len);
		check_taken(h, frame, sizeof(frame));
	}
	/* What an address lacks is zeros, not what came before. */
	host_clear(h, E82545_RCTL, E82545_RCTL_UPE | E82545_RCTL_MPE);
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	host_inject(h, frame, sizeof(frame), 1);
	host_inject(h, frame, 5, 1);
	host_run(h);
	check_taken(h, frame, sizeof(frame));
	check_none(h);
	host_destroy(h);
}

TEST(pieces, "A frame in up to 64 pieces")
{
	struct host *h = up(64, 512);
	uint8_t frame[1514];
	int n;

	for (n = 1; n <= E82545_MAXIOV; n++) {
		host_make_frame(frame, sizeof(frame), host_mac, n);
		host_inject(h, frame, sizeof(frame), n);
		host_run(h);
		check_taken(h, frame, sizeof(frame));
		host_rx_post(h);
	}
	host_destroy(h);
}

TEST(batch, "A batch is 256 frames, one sync and one interrupt")
{
	struct host *h = up(1024, 256);
	uint8_t frame[64];
	unsigned int i, raised;

	for (i = 0; i < 600; i++) {
		host_make_frame(frame, sizeof(frame), host_mac, i);
		host_inject(h, frame, sizeof(frame), 1);
	}
	raised = host_raised(h);
	for (i = 1; i <= 3; i++) {
		ATF_CHECK_EQ(E82545_RX_MORE, e82545_rx(h->dev));
		ATF_CHECK_EQ(i, h->nsync);
		ATF_CHECK_EQ(MIN(i * 256, 600), host_rd(h, E82545_RDH));
		ATF_CHECK_EQ(600 - MIN(i * 256, 600), host_rx_waiting(h));
		ATF_CHECK_EQ(raised + i, host_raised(h));
		host_rd(h, E82545_ICR);
	}
	ATF_CHECK_EQ(3, host_counter(h, E82545_C_RX_BATCH));
	/* What was stepped over is given back before all is quiet. */
	ATF_CHECK(h->rx_unsynced > 0);
	ATF_CHECK_EQ(E82545_RX_IDLE, e82545_rx(h->dev));
	ATF_CHECK_EQ(0, h->rx_unsynced);
	ATF_CHECK_EQ(raised + 3, host_raised(h));
	for (i = 0; i < 600; i++) {
		host_make_frame(frame, sizeof(frame), host_mac, i);
		check_taken(h, frame, sizeof(frame));
	}
	host_destroy(h);
}

TEST(many_descriptors, "Batches of long frames in short buffers end in time")
{
	struct host *h = up(4096, 256);
	uint8_t frame[E82545_FRAME_MAX];
	unsigned int i;

	host_set(h, E82545_RCTL, E82545_RCTL_LPE);
	for (i = 0; i < 60; i++) {
		host_make_frame(frame, sizeof(frame), host_mac, i);
		host_inject(h, frame, sizeof(frame), 1);
	}
	ATF_CHECK_EQ(E82545_RX_MORE, e82545_rx(h->dev));
	ATF_CHECK(host_rx_waiting(h) > 0);
	host_run(h);
	ATF_CHECK_EQ(0, host_rx_waiting(h));
	for (i = 0; i < 60; i++) {
		host_make_frame(frame, sizeof(frame), host_mac, i);
		check_taken(h, frame, sizeof(frame));
	}
	host_destroy(h);
}

TEST(threshold, "RXDMT0 when the free descriptors come down to RDMTS")
{
	struct host *h;
	uint8_t frame[60];
	unsigned int i, rdmts;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	for (rdmts = 0; rdmts < 3; rdmts++) {
		h = up(64, 256);
		host_set(h, E82545_RCTL, rdmts << 8);
		/* 63 are free; the limits are 32, 16 and 8. */
		for (i = 1; i <= 63; i++) {
			receive(h, frame, sizeof(frame));
			ATF_CHECK_EQ_MSG(63 - i == 64u >> (rdmts + 1),
			    (host_rd(h, E82545_ICR) & E82545_ICR_RXDMT0) != 0,
			    "rdmts %u, %u received", rdmts, i);
		}
		host_destroy(h);
	}
}

TEST(delay, "RXT0 waits for RDTR")
{
	struct host *h = up(64, 256);
	uint8_t frame[60];

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	host_wr(h, E82545_RDTR, 50);
	receive(h, frame, sizeof(frame));
	check_taken(h, frame, sizeof(frame));
	ATF_CHECK_EQ(0, host_rd(h, E82545_ICR) & E82545_ICR_RXT0);
	host_advance(h, 51200);
	ATF_CHECK((host_rd(h, E82545_ICR) & E82545_ICR_RXT0) != 0);
	host_destroy(h);
}

/*
 * Filters.
 */

/* Whether a frame to `dst' passes, and whether it says PIF. */
static void
check_filter(struct host *h, const uint8_t dst[6], bool pass, bool pif)
{
	struct e82545_rxd last;
	uint8_t frame[60];
	uint64_t filtered;

	filtered = host_counter(h, E82545_C_RX_FILTERED);
	host_make_frame(frame, sizeof(frame), dst, dst[5]);
	receive(h, frame, sizeof(frame));
	if (!pass) {
		check_none(h);
		ATF_CHECK_EQ(filtered + 1,
		    host_counter(h, E82545_C_RX_FILTERED));
		ATF_CHECK_EQ(0, host_rx_waiting(h));
		return;
	}
	last = check_taken(h, frame, sizeof(frame));
	ATF_CHECK_EQ(pif, (last.status & E82545_RXD_PIF) != 0);
	host_rx_post(h);
}

TEST(unicast, "Station addresses, their valid bit, and UPE")
{
	struct host *h = up(64, 256);
	uint8_t mac[6] = { 0x02, 0x11, 0x22, 0x33, 0x44, 0x55 };
	uint8_t near[6];
	unsigned int i;

	check_filter(h, host_mac, true, false);
	for (i = 0; i < 48; i++) {
		memcpy(near, host_mac, 6);
		near[i / 8] ^= 1 << i % 8;
		check_filter(h, near, false, false);
	}
	for (i = 1; i < E82545_RA_COUNT; i++) {
		mac[5] = i;
		check_filter(h, mac, false, false);
		host_wr(h, E82545_RAL(i), le32dec(mac));
		host_wr(h, E82545_RAH(i), le16dec(mac + 4));
		check_filter(h, mac, false, false);
		host_wr(h, E82545_RAH(i), le16dec(mac + 4) |
		    E82545_RAH_AV);
		check_filter(h, mac, true, false);
		/* An address to be looked for as the source. */
		host_wr(h, E82545_RAH(i), le16dec(mac + 4) |
		    E82545_RAH_AV | 1 << 16);
		check_filter(h, mac, false, false);
	}
	host_set(h, E82545_RCTL, E82545_RCTL_UPE);
	check_filter(h, near, true, true);
	check_filter(h, host_mac, true, false);
	host_destroy(h);
}

TEST(multicast, "The hash of each RCTL.MO, MPE, exact addresses, broadcast")
{
	/* Bytes 4 and 5 are b5 8a: 8ab5, of which MO takes 12 bits. */
	static const uint8_t group[6] = { 0x01, 0x00, 0x5e, 0x77, 0xb5, 0x8a };
	static const uint16_t hash[4] = { 0x8ab, 0x156, 0x2ad, 0xab5 };
	struct host *h = up(64, 256);
	uint32_t reg;
	unsigned int i, mo;

	for (mo = 0; mo < 4; mo++) {
		host_clear(h, E82545_RCTL, 3 << 12);
		host_set(h, E82545_RCTL, mo << 12);
		for (i = 0; i < E82545_MTA_COUNT; i++)
			host_wr(h, E82545_MTA + i * 4, 0);
		check_filter(h, group, false, false);
		reg = E82545_MTA + hash[mo] / 32 * 4;
		host_wr(h, reg, 1u << hash[mo] % 32);
		check_filter(h, group, true, true);
		/* All bits but this. */
		for (i = 0; i < E82545_MTA_COUNT; i++)
			host_wr(h, E82545_MTA + i * 4, 0xffffffff);
		host_wr(h, reg, ~(1u << hash[mo] % 32));
		check_filter(h, group, false, false);
	}
	/* The hash is for multicasts only. */
	check_filter(h, (const uint8_t[6]){ 2, 9, 9, 9, 9, 9 }, false, false);
	for (i = 0; i < E82545_MTA_COUNT; i++)
		host_wr(h, E82545_MTA + i * 4, 0);
	host_wr(h, E82545_RAL(3), le32dec(group));
	host_wr(h, E82545_RAH(3), le16dec(group + 4) | E82545_RAH_AV);
	check_filter(h, group, true, false);
	host_wr(h, E82545_RAH(3), 0);
	check_filter(h, group, false, false);

	check_filter(h, broadcast, true, false);
	host_clear(h, E82545_RCTL, E82545_RCTL_BAM);
	check_filter(h, broadcast, false, false);
	host_set(h, E82545_RCTL, E82545_RCTL_MPE);
	check_filter(h, group, true, true);
	check_filter(h, broadcast, true, true);
	check_filter(h, (const uint8_t[6]){ 2, 9, 9, 9, 9, 9 }, false, false);
	host_destroy(h);
}

TEST(vlan_filter, "VFE, VFTA and CFI")
{
	struct host *h = up(64, 256);
	uint8_t frame[64];
	unsigned int i, passed, vid;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	be16enc(frame + 12, 0x8100);
#define	PASSES(tci)							\
	(be16enc(frame + 14, (tci)), receive(h, frame, sizeof(frame)),	\
	host_rx_done(h, h->rxnext) ?					\
	(check_taken(h, frame, sizeof(frame)), host_rx_post(h), true) : false)
	ATF_CHECK(PASSES(100));
	host_set(h, E82545_RCTL, E82545_RCTL_VFE);
	ATF_CHECK(!PASSES(100));
	for (vid = 0; vid < 4096; vid += 211) {
		host_wr(h, E82545_VFTA + vid / 32 * 4, 1u << vid % 32);
		ATF_CHECK(PASSES(vid));
		ATF_CHECK(PASSES(vid | 0xf000));
		passed = 0;
		for (i = 0; i < 4096; i += 37)
			passed += i != vid && PASSES(i);
		ATF_CHECK_EQ(0, passed);
		host_wr(h, E82545_VFTA + vid / 32 * 4, 0);
	}
	for (i = 0; i < E82545_VFTA_COUNT; i++)
		host_wr(h, E82545_VFTA + i * 4, 0xffffffff);
	host_set(h, E82545_RCTL, E82545_RCTL_CFIEN);
	ATF_CHECK(PASSES(5));
	ATF_CHECK(!PASSES(5 | 0x1000));
	host_set(h, E82545_RCTL, E82545_RCTL_CFI);
	ATF_CHECK(!PASSES(5));
	ATF_CHECK(PASSES(5 | 0x1000));
	/* Frames without a tag are none of its business, nor of another
	   type than VET. */
	be16enc(frame + 12, 0x0800);
	ATF_CHECK(PASSES(5));
	be16enc(frame + 12, 0x8100);
	host_wr(h, E82545_VET, 0x88a8);
	ATF_CHECK(PASSES(5));
#undef PASSES
	host_destroy(h);
}

TEST(long_packets, "1522 bytes with FCS are the limit without LPE")
{
	static const struct {
		size_t	len;
		bool	short_ok, long_ok;
	} t[] = {
		{ 1514, true, true }, { 1518, true, true },
		{ 1519, false, true }, { 9000, false, true },
		{ E82545_FRAME_MAX, false, true },
		{ E82545_FRAME_MAX + 1, false, false },
		{ 65000, false, false },
	};
	struct host *h = up(64, 2048);
	static uint8_t frame[65000];
	unsigned int i, lpe, over;
	bool ok;

	over = 0;
	for (lpe = 0; lpe < 2; lpe++) {
		if (lpe)
			host_set(h, E82545_RCTL, E82545_RCTL_LPE);
		for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
			ok = lpe ? t[i].long_ok : t[i].short_ok;
			host_make_frame(frame, t[i].len, host_mac, i);
			receive(h, frame, t[i].len);
			if (ok)
				check_taken(h, frame, t[i].len);
			else
				check_none(h);
			host_rx_post(h);
			over += !ok;
			ATF_CHECK_EQ(over,
			    host_counter(h, E82545_C_RX_OVERSIZE));
		}
	}
	ATF_CHECK_EQ(over, host_rd(h, E82545_ROC));
	host_destroy(h);
}

/*
 * VLAN tags and checksums.
 */

TEST(strip, "Tags are taken out with CTRL.VME, however the frame is cut")
{
	struct host *h = up(64, 512);
	struct e82545_rxd last;
	uint8_t frame[1514], want[1514];
	size_t len;
	int n;

	host_set(h, E82545_CTRL, E82545_CTRL_VME);
	for (n = 1; n <= E82545_MAXIOV; n++) {
		len = n % 2 == 0 ? sizeof(frame) : 64 + n;
		host_make_frame(frame, len, host_mac, n);
		be16enc(frame + 12, 0x8100);
		be16enc(frame + 14, 0x3000 + n);
		memcpy(want, frame, 12);
		memcpy(want + 12, frame + 16, len - 16);
		host_inject(h, frame, len, n);
		host_run(h);
		last = check_taken(h, want, len - 4);
		ATF_CHECK((last.status & E82545_RXD_VP) != 0);
		ATF_CHECK_EQ(0x3000 + n, last.special);
		ATF_CHECK_EQ(packet_sum(want, len - 4), last.csum);
		host_rx_post(h);
	}
	/* A short frame is padded before the tag is out. */
	memset(want + 40, 0, 20);
	host_make_frame(frame, 44, host_mac, 9);
	be16enc(frame + 12, 0x8100);
	be16enc(frame + 14, 7);
	memcpy(want + 12, frame + 16, 28);
	receive(h, frame, 44);
	last = check_taken(h, want, 56);
	ATF_CHECK_EQ(7, last.special);
	/* Cut off in the tag: there is none. */
	receive(h, frame, 17);
	memcpy(want, frame, 17);
	memset(want + 17, 0, 43);
	last = check_taken(h, want, 60);
	ATF_CHECK_EQ(0, last.status & E82545_RXD_VP);
	/* Another type than VET, or the mode off. */
	host_wr(h, E82545_VET, 0x9100);
	host_make_frame(frame, 100, host_mac, 9);
	be16enc(frame + 12, 0x8100);
	receive(h, frame, 100);
	last = check_taken(h, frame, 100);
	ATF_CHECK_EQ(0, last.status & E82545_RXD_VP);
	host_wr(h, E82545_VET, 0x8100);
	host_clear(h, E82545_CTRL, E82545_CTRL_VME);
	receive(h, frame, 100);
	last = check_taken(h, frame, 100);
	ATF_CHECK_EQ(0, last.status & E82545_RXD_VP);
	ATF_CHECK_EQ(0, last.special);
	host_destroy(h);
}

TEST(checksum, "IPCS, TCPCS, IPE, TCPE of good and spoilt packets")
{
	struct host *h = up(64, 256);
	struct e82545_rxd last;
	uint8_t frame[PACKET_HDR_MAX + 600], payload[600], want;
	struct packet p;
	unsigned int i, spoil;
	size_t len;

	host_wr(h, E82545_RXCSUM, CSUM);
	for (i = 0; i < sizeof(payload); i++)
		payload[i] = i * 11;
	for (i = 0; i < 24 * 3; i++) {
		spoil = i / 24;
		memset(&p, 0, sizeof(p));
		p.v6 = i & 1;
		p.udp = i & 2;
		p.vlan = i & 4;
		p.payload = payload;
		p.paylen = i % 24 < 8 ? 0 : i % 24 < 16 ? 1 : 600;
		len = packet_build(&p, frame);
		want = 0;
		if (spoil == 1) {
			frame[packet_l4(&p) + 1] ^= 1;
			want = E82545_RXD_ERR_TCPE;
		} else if (spoil == 2 && !p.v6) {
			frame[packet_l3(&p) + 1] ^= 4;
			want = E82545_RXD_ERR_IPE;
		}
		host_inject(h, frame, len, 1 + i % 7);
		host_run(h);
		if (len < 60) {
			memset(frame + len, 0, 60 - len);
			len = 60;
		}
		last = check_taken(h, frame, len);
		ATF_CHECK_EQ_MSG(DONE | E82545_RXD_TCPCS |
		    (p.v6 ? 0 : E82545_RXD_IPCS), last.status, "case %u", i);
		ATF_CHECK_EQ_MSG(want, last.errors, "case %u", i);
		ATF_CHECK_EQ(packet_sum(frame, len), last.csum);
		host_rx_post(h);
	}
	/* All off: the guest is told to ignore them. */
	host_wr(h, E82545_RXCSUM, 0);
	receive(h, frame, len);
	last = check_taken(h, frame, len);
	ATF_CHECK_EQ(DONE | E82545_RXD_IXSM, last.status);
	/* PCSS. */
	host_wr(h, E82545_RXCSUM, 14);
	receive(h, frame, len);
	last = check_taken(h, frame, len);
	ATF_CHECK_EQ(packet_sum(frame + 14, len - 14), last.csum);
	host_destroy(h);
}

/*
 * Off, and running dry.
 */

TEST(states, "Receiver off, no link, paused")
{
	struct host *h = up(64, 256);
	uint8_t frame[60];
	unsigned int i;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	host_clear(h, E82545_RCTL, E82545_RCTL_EN);
	for (i = 0; i < 300; i++)
		host_inject(h, frame, sizeof(frame), 1);
	ATF_CHECK_EQ(E82545_RX_MORE, e82545_rx(h->dev));
	ATF_CHECK_EQ(44, host_rx_waiting(h));
	host_run(h);
	ATF_CHECK_EQ(0, host_rx_waiting(h));
	ATF_CHECK_EQ(300, host_counter(h, E82545_C_RX_DISABLED));
	check_none(h);
	ATF_CHECK_EQ(0, host_rd(h, E82545_TPR));
	host_set(h, E82545_RCTL, E82545_RCTL_EN);
	e82545_link(h->dev, false);
	receive(h, frame, sizeof(frame));
	ATF_CHECK_EQ(301, host_counter(h, E82545_C_RX_DISABLED));
	e82545_link(h->dev, true);
	e82545_pause(h->dev);
	receive(h, frame, sizeof(frame));
	ATF_CHECK_EQ(1, host_rx_waiting(h));
	check_none(h);
	e82545_resume(h->dev);
	host_run(h);
	check_taken(h, frame, sizeof(frame));
	host_destroy(h);
}

TEST(stall, "Without descriptors frames wait; RDT lets them in, in order")
{
	struct host *h = up(8, 256);
	uint8_t frame[60];
	unsigned int i, next;

	for (i = 0; i < 20; i++) {
		host_make_frame(frame, sizeof(frame), host_mac, i);
		host_inject(h, frame, sizeof(frame), 1);
	}
	ATF_CHECK_EQ(E82545_RX_STALLED, e82545_rx(h->dev));
	ATF_CHECK_EQ(13, host_rx_waiting(h));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_STALL));
	ATF_CHECK_EQ(1, host_rd(h, E82545_RNBC));
	ATF_CHECK_EQ(0, host_rd(h, E82545_MPC));
	ATF_CHECK_EQ(0, host_rd(h, E82545_ICR) & E82545_ICR_RXO);
	/* The same RDT again gives no room. */
	h->ready = false;
	host_rx_post(h);
	ATF_CHECK(!h->ready);
	next = 0;
	while (next < 20) {
		host_make_frame(frame, sizeof(frame), host_mac, next++);
		check_taken(h, frame, sizeof(frame));
		h->ready = false;
		host_rx_post(h);
		ATF_CHECK_EQ(next <= 13, h->ready);
		host_run(h);
		ATF_CHECK_EQ(13 - MIN(next, 13), host_rx_waiting(h));
	}
	ATF_CHECK_EQ(20, host_counter(h, E82545_C_RX_FRAME));
	host_destroy(h);
}

TEST(stall_long, "A frame of many descriptors waits for all of them")
{
	struct host *h = up(16, 256);
	uint8_t frame[1500], small[60];
	unsigned int i;

	/* 12 of 15 descriptors gone; the next frame takes 6. */
	for (i = 0; i < 12; i++) {
		host_make_frame(small, sizeof(small), host_mac, i);
		receive(h, small, sizeof(small));
	}
	host_make_frame(frame, sizeof(frame), host_mac, 99);
	receive(h, frame, sizeof(frame));
	ATF_CHECK_EQ(1, host_rx_waiting(h));
	for (i = 0; i < 3; i++) {
		ATF_CHECK_EQ(12, host_rd(h, E82545_RDH));
		host_make_frame(small, sizeof(small), host_mac, i);
		check_taken(h, small, sizeof(small));
		h->ready = false;
		host_rx_post(h);
		ATF_CHECK_EQ(i == 2, h->ready);
	}
	host_run(h);
	ATF_CHECK_EQ(0, host_rx_waiting(h));
	for (; i < 12; i++) {
		host_make_frame(small, sizeof(small), host_mac, i);
		check_taken(h, small, sizeof(small));
	}
	check_taken(h, frame, sizeof(frame));
	host_destroy(h);
}

TEST(stall_ends, "A stall ends when RCTL changes or the receiver goes off")
{
	struct host *h = up(8, 256);
	uint8_t frame[60];
	unsigned int i;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	for (i = 0; i < 8; i++)
		host_inject(h, frame, sizeof(frame), 1);
	host_run(h);
	ATF_CHECK_EQ(1, host_rx_waiting(h));
	h->ready = false;
	host_set(h, E82545_RCTL, E82545_RCTL_LPE);
	ATF_CHECK(h->ready);
	host_run(h);
	ATF_CHECK_EQ(1, host_rx_waiting(h));
	ATF_CHECK_EQ(2, host_counter(h, E82545_C_RX_STALL));
	/* A reset, and the driver comes back. */
	e82545_reset(h->dev);
	h->ready = false;
	host_up(h, 64, 8, 256);
	ATF_CHECK(h->ready);
	host_run(h);
	check_taken(h, frame, sizeof(frame));
	host_rx_post(h);
	for (i = 0; i < 8; i++)
		host_inject(h, frame, sizeof(frame), 1);
	host_run(h);
	ATF_CHECK_EQ(1, host_rx_waiting(h));
	host_clear(h, E82545_RCTL, E82545_RCTL_EN);
	host_run(h);
	ATF_CHECK_EQ(0, host_rx_waiting(h));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_DISABLED));
	host_destroy(h);
}

TEST(never_fits, "A frame too long for the whole ring is dropped")
{
	struct host *h = up(8, 256);
	uint8_t frame[2048];

	host_set(h, E82545_RCTL, E82545_RCTL_LPE);
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	receive(h, frame, 1793);
	ATF_CHECK_EQ(0, host_rx_waiting(h));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_OVERSIZE));
	receive(h, frame, 1792);
	check_taken(h, frame, 1792);
	host_destroy(h);
}

TEST(race, "A guest that adds descriptors as the ring runs dry is not missed")
{
	struct host *h = up(8, 256);
	uint8_t buf[256], frame[64];
	unsigned int in, out;
	ssize_t len;

	host_start_threads(h);
	in = out = 0;
	while (out < 20000) {
		/* Always more waiting than fit. */
		while (in < 20000 && in - out < 40) {
			host_make_frame(frame, sizeof(frame), host_mac, in);
			be32enc(frame + 14, in++);
			host_inject(h, frame, sizeof(frame), 1);
		}
		/* A lost wake-up leaves this loop without an end, and the
		   test to its timeout. */
		while ((len = host_rx_take(h, buf, sizeof(buf), NULL)) == -1)
			sched_yield();
		ATF_REQUIRE_EQ(64, len);
		ATF_REQUIRE_EQ(out, be32dec(buf + 14));
		out++;
		host_rx_post(h);
	}
	host_stop_threads(h);
	ATF_CHECK(host_counter(h, E82545_C_RX_STALL) > 0);
	ATF_CHECK_EQ(20000, host_counter(h, E82545_C_RX_FRAME));
	host_destroy(h);
}

/*
 * Loopback.
 */

TEST(loopback, "Looped frames are filtered; the network's are shut out")
{
	static const uint8_t other[6] = { 2, 9, 9, 9, 9, 9 };
	struct host *h = up(64, 256);
	uint8_t frame[100];

	host_set(h, E82545_RCTL, E82545_RCTL_LBM_MAC);
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	receive(h, frame, sizeof(frame));
	check_none(h);
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_DISABLED));
	host_tx_frame(h, frame, sizeof(frame), 0);
	h->ready = false;
	host_tx_go(h);
	e82545_tx(h->dev);
	ATF_CHECK(h->ready);
	host_run(h);
	check_taken(h, frame, sizeof(frame));
	host_make_frame(frame, sizeof(frame), other, 1);
	host_tx_frame(h, frame, sizeof(frame), 0);
	host_tx_go(h);
	host_run(h);
	check_none(h);
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_FILTERED));
	host_clear(h, E82545_RCTL, E82545_RCTL_LBM);
	check_alive(h);
	host_destroy(h);
}

TEST(loopback_stall, "Looped frames wait for descriptors, a reset drops them")
{
	struct host *h = up(8, 256);
	uint8_t frame[60];
	unsigned int i;

	host_set(h, E82545_RCTL, E82545_RCTL_LBM_MAC);
	for (i = 0; i < 20; i++) {
		host_make_frame(frame, sizeof(frame), host_mac, i);
		host_tx_frame(h, frame, sizeof(frame), 0);
	}
	host_tx_go(h);
	host_run(h);
	for (i = 0; i < 10; i++) {
		host_make_frame(frame, sizeof(frame), host_mac, i);
		check_taken(h, frame, sizeof(frame));
		host_rx_post(h);
		host_run(h);
	}
	e82545_reset(h->dev);
	host_up(h, 64, 8, 256);
	host_run(h);
	check_none(h);
	check_alive(h);
	host_destroy(h);
}

/*
 * Hostile guests.
 */

TEST(bad_address, "Buffers outside of guest memory: the frame is an error")
{
	static const uint64_t bad[] = {
		HOST_RAM, HOST_RAM - 59, UINT64_MAX, UINT64_MAX - 59,
		0x8000000000000000, 0x100000000
	};
	struct host *h = up(64, 256);
	uint8_t buf[256], frame[600];
	struct e82545_rxd *rxd;
	unsigned int i;
	uint32_t n;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		n = h->rxnext;
		rxd = host_rxd(h, n);
		rxd->addr = bad[i];
		receive(h, frame, 60);
		ATF_CHECK_EQ(DONE | E82545_RXD_IXSM, rxd->status);
		ATF_CHECK_EQ(E82545_RXD_ERR_RXE, rxd->errors);
		ATF_CHECK_EQ(60, rxd->length);
		ATF_CHECK_EQ(i + 1, host_counter(h, E82545_C_RX_BAD_ADDR));
		rxd->addr = h->rxbuf + n * 256;
		ATF_CHECK_EQ(60, host_rx_take(h, buf, sizeof(buf), NULL));
	}
	ATF_CHECK_EQ(0, host_rd(h, E82545_GPRC));
	/* The very end of memory is memory; so is less than a buffer. */
	rxd = host_rxd(h, h->rxnext);
	rxd->addr = HOST_RAM - 60;
	receive(h, frame, 60);
	ATF_CHECK_EQ(0, memcmp(host_mem(h, HOST_RAM - 60, 60), frame, 60));
	ATF_CHECK_EQ(0, rxd->errors);
	rxd->addr = h->rxbuf;
	ATF_CHECK_EQ(60, host_rx_take(h, buf, sizeof(buf), NULL));
	/* One bad buffer among three: the others are filled, the last tells. */
	n = h->rxnext;
	host_rxd(h, n + 1)->addr = HOST_RAM;
	receive(h, frame, 600);
	ATF_CHECK_EQ(E82545_RXD_DD, host_rxd(h, n + 1)->status);
	ATF_CHECK_EQ(0, host_rxd(h, n + 1)->errors);
	ATF_CHECK_EQ(E82545_RXD_ERR_RXE, host_rxd(h, n + 2)->errors);
	ATF_CHECK_EQ(0, memcmp(host_mem(h, h->rxbuf + (n + 2) * 256, 88),
	    frame + 512, 88));
	host_destroy(h);
}

TEST(bad_ring, "Rings that cannot be are counted; frames wait")
{
	static const struct {
		uint64_t	base;
		uint32_t	len, head, tail;
		unsigned int	bad;
	} t[] = {
		{ 0x20000, 1024, 0, 64, 1 },		/* RDT == size */
		{ 0x20000, 1024, 0, 65535, 1 },
		{ 0x20000, 1024, 64, 1, 1 },
		{ 0x20000, 1024, 65535, 65535, 1 },
		{ 0x20000, 0, 0, 0, 0 },		/* not set up yet */
		{ 0x20000, 0, 5, 9, 0 },
		{ HOST_RAM, 1024, 0, 1, 1 },
		{ HOST_RAM - 1008, 1024, 0, 1, 1 },
		{ 0xfffffffffffffff0, 1024, 0, 1, 1 },
		{ HOST_RAM - 0x10000, 0xfff80, 0, 1, 1 },
	};
	struct host *h = up(64, 256);
	uint8_t frame[60];
	unsigned int bad, i;

	bad = 0;
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	host_inject(h, frame, sizeof(frame), 1);
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		host_wr(h, E82545_RDBAL, t[i].base);
		host_wr(h, E82545_RDBAH, t[i].base >> 32);
		host_wr(h, E82545_RDLEN, t[i].len);
		host_wr(h, E82545_RDH, t[i].head);
		host_wr(h, E82545_RDT, t[i].tail);
		ATF_CHECK_EQ_MSG(E82545_RX_STALLED, e82545_rx(h->dev),
		    "case %u", i);
		bad += t[i].bad;
		ATF_CHECK_EQ_MSG(bad, host_counter(h, E82545_C_RX_BAD_RING),
		    "case %u", i);
		ATF_CHECK_EQ(t[i].head, host_rd(h, E82545_RDH));
		ATF_CHECK_EQ(1, host_rx_waiting(h));
	}
	h->ready = false;
	host_up(h, 64, 64, 256);
	ATF_CHECK(h->ready);
	host_run(h);
	check_taken(h, frame, sizeof(frame));
	check_alive(h);
	host_destroy(h);
}

TEST(overlap, "A ring whose buffers are the ring itself")
{
	struct host *h = up(64, 256);
	uint8_t frame[600];
	unsigned int i;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	for (i = 0; i < 64; i++)
		host_rxd(h, i)->addr = h->rxring + i * 16;
	for (i = 0; i < 20; i++)
		receive(h, frame, sizeof(frame));
	host_wr(h, E82545_RDT, (host_rd(h, E82545_RDH) + 63) % 64);
	host_run(h);
	ATF_CHECK(host_rd(h, E82545_RDH) < 64);
	host_destroy(h);
}

TEST(fuzz, "Random rings, registers and frames never stop or break the model")
{
	static const uint32_t regs[] = {
		E82545_RCTL, E82545_RDH, E82545_RDT, E82545_RDLEN,
		E82545_RDBAL, E82545_CTRL, E82545_RXCSUM, E82545_VET,
		E82545_RDT, E82545_RDT
	};
	struct host *h = up(512, 2048);
	uint8_t frame[20000];
	struct packet p;
	uint32_t i, reg, seed = 0x3101;
	unsigned int calls, round;
	size_t len;

	for (round = 0; round < 400; round++) {
		for (i = 0; i < 512; i++) {
			host_rxd(h, i)->addr = packet_random(&seed) %
			    (HOST_RAM + 0x10000);
			if (packet_random(&seed) % 64 == 0)
				host_rxd(h, i)->addr |=
				    (uint64_t)packet_random(&seed) << 32;
		}
		host_wr(h, E82545_RDT, packet_random(&seed) % 520);
		for (i = 0; i < 20; i++) {
			memset(&p, 0, sizeof(p));
			p.v6 = packet_random(&seed) & 1;
			p.udp = packet_random(&seed) & 1;
			p.vlan = packet_random(&seed) & 1;
			p.payload = frame;
			p.paylen = 0;
			packet_build(&p, frame);
			len = 1 + packet_random(&seed) %
			    (i % 4 == 0 ? sizeof(frame) : 200);
			frame[packet_random(&seed) % 60] =
			    packet_random(&seed);
			if (host_rx_waiting(h) < 200)
				host_inject(h, frame, len, 1 +
				    packet_random(&seed) % MIN(len, 64));
		}
		if (round % 4 == 0) {
			reg = regs[packet_random(&seed) % 10];
			host_wr(h, reg, packet_random(&seed) &
			    ~(E82545_CTRL_RST | E82545_CTRL_PHY_RST));
		}
		for (calls = 0; e82545_rx(h->dev) == E82545_RX_MORE; calls++)
			ATF_REQUIRE(calls < 1000);
		if (round % 16 == 0) {
			e82545_reset(h->dev);
			h->brk = 0x10000;
			host_up(h, 64, 512, 2048);
			host_set(h, E82545_CTRL, E82545_CTRL_VME);
			host_set(h, E82545_RCTL, E82545_RCTL_LPE |
			    E82545_RCTL_UPE | E82545_RCTL_MPE);
			host_wr(h, E82545_RXCSUM, CSUM);
		}
	}
	ATF_CHECK(host_counter(h, E82545_C_RX_FRAME) > 1000);
	host_clear(h, E82545_RCTL, E82545_RCTL_EN);
	host_run(h);
	e82545_reset(h->dev);
	h->brk = 0x10000;
	host_up(h, 64, 512, 2048);
	host_run(h);
	host_rx_take(h, frame, sizeof(frame), NULL);
	while (host_rx_take(h, frame, sizeof(frame), NULL) != -1)
		;
	host_rx_post(h);
	check_alive(h);
	host_destroy(h);
}

ATF_TP_ADD_TCS(tp)
{

	ATF_TP_ADD_TC(tp, simple);
	ATF_TP_ADD_TC(tp, statistics);
	ATF_TP_ADD_TC(tp, sizes);
	ATF_TP_ADD_TC(tp, reserved_size);
	ATF_TP_ADD_TC(tp, fcs);
	ATF_TP_ADD_TC(tp, padding);
	ATF_TP_ADD_TC(tp, tiny);
	ATF_TP_ADD_TC(tp, pieces);
	ATF_TP_ADD_TC(tp, batch);
	ATF_TP_ADD_TC(tp, many_descriptors);
	ATF_TP_ADD_TC(tp, threshold);
	ATF_TP_ADD_TC(tp, delay);
	ATF_TP_ADD_TC(tp, unicast);
	ATF_TP_ADD_TC(tp, multicast);
	ATF_TP_ADD_TC(tp, vlan_filter);
	ATF_TP_ADD_TC(tp, long_packets);
	ATF_TP_ADD_TC(tp, strip);
	ATF_TP_ADD_TC(tp, checksum);
	ATF_TP_ADD_TC(tp, states);
	ATF_TP_ADD_TC(tp, stall);
	ATF_TP_ADD_TC(tp, stall_long);
	ATF_TP_ADD_TC(tp, stall_ends);
	ATF_TP_ADD_TC(tp, never_fits);
	ATF_TP_ADD_TC(tp, race);
	ATF_TP_ADD_TC(tp, loopback);
	ATF_TP_ADD_TC(tp, loopback_stall);
	ATF_TP_ADD_TC(tp, bad_address);
	ATF_TP_ADD_TC(tp, bad_ring);
	ATF_TP_ADD_TC(tp, overlap);
	ATF_TP_ADD_TC(tp, fuzz);

	return (atf_no_error());
}
