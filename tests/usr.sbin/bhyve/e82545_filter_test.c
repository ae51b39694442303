/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Filters by address, VLAN and length.
 */

#include <sys/types.h>
#include <sys/endian.h>

#include <string.h>

#include "e82545_check.h"

static const uint8_t broadcast[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

/* Whether a frame to `dst' passes, and whether its descriptor has PIF. */
static void
check_filter(struct host *h, const uint8_t dst[6], bool pass, bool pif)
{
	struct e82545_rxd last;
	uint8_t frame[60];
	uint64_t filtered;

	filtered = host_counter(h, E82545_C_RX_FILTERED);
	host_make_frame(frame, sizeof(frame), dst, dst[5]);
	rx_receive(h, frame, sizeof(frame));
	if (!pass) {
		check_none(h);
		ATF_CHECK_EQ(filtered + 1,
		    host_counter(h, E82545_C_RX_FILTERED));
		ATF_CHECK_EQ(0, host_rx_pending(h));
		return;
	}
	last = check_taken(h, frame, sizeof(frame));
	ATF_CHECK_EQ(pif, (last.status & E82545_RXD_PIF) != 0);
	host_rx_post(h);
}

HOST_TEST(unicast, rx_up(64, 256), "Station addresses, their valid bit, and "
    "UPE")
{
	uint8_t mac[6] = { 0x02, 0x11, 0x22, 0x33, 0x44, 0x55 };
	uint8_t near[6];
	unsigned int i;

	check_filter(h, host_mac, true, false);
	/* Entries that are not valid are 0. */
	check_filter(h, (const uint8_t[6]){ 0 }, false, false);
	check_filter(h, (const uint8_t[6]){ 3 }, false, false);
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
		/* An address that is compared with the source. */
		host_wr(h, E82545_RAH(i), le16dec(mac + 4) |
		    E82545_RAH_AV | 1 << 16);
		check_filter(h, mac, false, false);
	}
	host_set(h, E82545_RCTL, E82545_RCTL_UPE);
	check_filter(h, near, true, true);
	check_filter(h, host_mac, true, false);
}

HOST_TEST(multicast, rx_up(64, 256), "The hash of each RCTL.MO, MPE, exact "
    "addresses, broadcast")
{
	/* Bytes 4 and 5 are b5 8a: 8ab5, of which MO takes 12 bits. */
	static const uint8_t group[6] = { 0x01, 0x00, 0x5e, 0x77, 0xb5, 0x8a };
	static const uint16_t hash[4] = { 0x8ab, 0x156, 0x2ad, 0xab5 };
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
		/* All bits except this one. */
		for (i = 0; i < E82545_MTA_COUNT; i++)
			host_wr(h, E82545_MTA + i * 4, 0xffffffff);
		host_wr(h, reg, ~(1u << hash[mo] % 32));
		check_filter(h, group, false, false);
	}
	/* The hash applies to multicast only. */
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
}

HOST_TEST(vlan, rx_up(64, 256), "VFE, VFTA and CFI")
{
	uint8_t frame[64];
	unsigned int i, passed, vid;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	be16enc(frame + 12, 0x8100);
#define	PASSES(tci)							\
	(be16enc(frame + 14, (tci)),					\
	rx_receive(h, frame, sizeof(frame)),				\
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
	/*
	 * The filter passes frames without a tag, or with a type other than
	 * VET.
	 */
	be16enc(frame + 12, 0x0800);
	ATF_CHECK(PASSES(5));
	be16enc(frame + 12, 0x8100);
	host_wr(h, E82545_VET, 0x88a8);
	ATF_CHECK(PASSES(5));
#undef PASSES
}

HOST_TEST(long_packets, rx_up(64, 2048), "1522 bytes with FCS are the limit "
    "without LPE")
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
			rx_receive(h, frame, t[i].len);
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
}

TEST_PROGRAM
