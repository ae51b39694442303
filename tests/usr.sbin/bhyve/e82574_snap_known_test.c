/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * As e82545_snap_known_test.c, of an 82574L.  If the bytes of a version that
 * was once released differ, this program cannot go on where that has stopped.
 */

#include <sys/param.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "e82545_check.h"
#include "e82545_eeprom.h"
#include "e82545_impl.h"
#include "e82545_known.h"
#include "e82545_offload.h"

#define	HEADER		20		/* bytes */
#define	KNOWN_SIZE	4229

static const struct known_line known[] = {
	{ 0, "38323537344c000003" },
	{ 12, "85100000c7aba61f00410210" },
	{ 29, "810200001003" },
	{ 52, "100180c200000100000888" },
	{ 66, "81000086801001" },
	{ 81, "04001001" },
	{ 91, "10" },
	{ 97, "08090a8064" },
	{ 121, "02800204" },
	{ 133, "0a" },
	{ 137, "082060" },
	{ 145, "0283060008" },
	{ 157, "0d0300001400140028" },
	{ 171, "04808200cdab" },
	{ 185, "020404" },
	{ 210, "06" },
	{ 214, "06" },
	{ 218, "06" },
	{ 222, "06" },
	{ 230, "0401" },
	{ 238, "02000002" },
	{ 245, "1f" },
	{ 255, "01" },
	{ 293, "20040401000001" },
	{ 306, "04000003" },
	{ 313, "03" },
	{ 317, "f40100001f014501" },
	{ 329, "03048007" },
	{ 353, "1f01450103040045" },
	{ 441, "02" },
	{ 465, "02" },
	{ 477, "01" },
	{ 481, "80" },
	{ 489, "40" },
	{ 529, "80" },
	{ 537, "40" },
	{ 545, "02" },
	{ 549, "01" },
	{ 553, "01" },
	{ 594, "23" },
	{ 598, "80" },
	{ 1114, "0c2912" },
	{ 1177, "34560080" },
	{ 1767, "37" },
	{ 2029, "0300002001" },
	{ 2181, "b179379e62f36e3c136da6dac4e6dd787560151726da4cb5" },
	{ 2205, "d753845388cdbbf13947f38feac02a2e" },
	{ 3269, "07000001" },
	{ 3289, "f78800001903" },
	{ 3363, "0c291234560000ffff0000ffffffff" },
	{ 3382, "03401fa08680d31086800000ffffffffffffffffffffffff" },
	{ 3406, "ffffffffffffffffffffffffffffffffffffffffcdabffff" },
	{ 3430, "ffffffff0000ffffffffffffffffffffffffffffffffffff" },
	{ 3454, "ffffffffffffffffffffffffffffffffffffffffffffffff" },
	{ 3478, "ffffffffffffffffffff8d54" },
	{ 3508, "01401100004979000041010000b10c0000e10d" },
	{ 3533, "04" },
	{ 3537, "0120" },
	{ 3546, "0f" },
	{ 3570, "3000006033" },
	{ 3586, "04" },
	{ 3637, "03010001" },
	{ 3657, "ffffffff01" },
	{ 3666, "ffffffff01" },
	{ 3700, "ffffffff0e1821002232" },
	{ 3722, "230e1821002232000005" },
	{ 3735, "03003605000027" },
	{ 3814, "71ce07" },
	{ 3835, "019001" },
	{ 3844, "01" },
	{ 3854, "9001" },
	{ 3881, "be563412" },
	{ 3889, "05" },
	{ 3897, "2b" },
	{ 3905, "02" },
	{ 3921, "01" },
	{ 3929, "3c" },
	{ 3937, "01" },
	{ 4033, "01" },
	{ 4049, "02" },
	{ 4057, "78" },
	{ 4065, "02" },
	{ 4161, "05" },
	{ 4169, "02" },
	{ 4177, "01" },
};

/* Of version 2, which had no time stamps: the same state. */
#define	V2_SIZE		4205
#define	STAMPS		3339		/* where version 3 has them, as zeros */

static uint8_t *
known_v2(void)
{
	static const uint8_t size_and_sum[] = { 0x6d, 0x10, 0, 0, 0xa5, 0x30,
	    0x86, 0x79 };
	uint8_t *bytes = known_bytes(known, nitems(known), KNOWN_SIZE);

	bytes[8] = 2;
	memcpy(bytes + 12, size_and_sum, sizeof(size_and_sum));
	memmove(bytes + STAMPS, bytes + STAMPS + KNOWN_SIZE - V2_SIZE,
	    V2_SIZE - STAMPS);
	return (bytes);
}

/* Of version 1, which had no second queues: the same state. */
#define	V1_SIZE		4122

static const struct known_line known_v1[] = {
	{ 0, "38323537344c000001" },
	{ 12, "1a10000002a84ea500410210" },
	{ 29, "810200001003" },
	{ 52, "100180c200000100000888" },
	{ 66, "81000086801001" },
	{ 81, "04001001" },
	{ 91, "10" },
	{ 97, "08090a8064" },
	{ 121, "02800204" },
	{ 133, "0a" },
	{ 137, "082060" },
	{ 145, "0283060008" },
	{ 157, "0d0300001400140028" },
	{ 171, "04808200cdab" },
	{ 185, "020404" },
	{ 210, "06" },
	{ 214, "06" },
	{ 218, "06" },
	{ 222, "06" },
	{ 230, "0401" },
	{ 238, "02000002" },
	{ 245, "1f" },
	{ 255, "01" },
	{ 273, "20040401000001" },
	{ 286, "04000003" },
	{ 293, "03" },
	{ 297, "f40100001f014501" },
	{ 309, "030480071f01450103040045" },
	{ 401, "02" },
	{ 425, "02" },
	{ 437, "01" },
	{ 441, "80" },
	{ 449, "40" },
	{ 489, "80" },
	{ 497, "40" },
	{ 505, "02" },
	{ 509, "01" },
	{ 513, "01" },
	{ 554, "23" },
	{ 558, "80" },
	{ 1074, "0c2912" },
	{ 1137, "34560080" },
	{ 1727, "37" },
	{ 1989, "0300002001" },
	{ 2141, "b179379e62f36e3c136da6dac4e6dd787560151726da4cb5" },
	{ 2165, "d753845388cdbbf13947f38feac02a2e" },
	{ 3229, "07000001" },
	{ 3249, "f78800001903" },
	{ 3299, "0c291234560000ffff0000ffffffff" },
	{ 3318, "03401fa08680d31086800000ffffffffffffffffffffffff" },
	{ 3342, "ffffffffffffffffffffffffffffffffffffffffcdabffff" },
	{ 3366, "ffffffff0000ffffffffffffffffffffffffffffffffffff" },
	{ 3390, "ffffffffffffffffffffffffffffffffffffffffffffffff" },
	{ 3414, "ffffffffffffffffffff8d54" },
	{ 3444, "01401100004979000041010000b10c0000e10d" },
	{ 3469, "04" },
	{ 3473, "0120" },
	{ 3482, "0f" },
	{ 3506, "3000006033" },
	{ 3522, "04" },
	{ 3573, "03010001" },
	{ 3593, "ffffffff01" },
	{ 3602, "ffffffff01" },
	{ 3636, "ffffffff0e1821002232" },
	{ 3658, "230e1821002232000005" },
	{ 3671, "03003605000027" },
	{ 3707, "71ce07" },
	{ 3728, "019001" },
	{ 3737, "01" },
	{ 3747, "9001" },
	{ 3774, "be563412" },
	{ 3782, "05" },
	{ 3790, "2b" },
	{ 3798, "02" },
	{ 3814, "01" },
	{ 3822, "3c" },
	{ 3830, "01" },
	{ 3926, "01" },
	{ 3942, "02" },
	{ 3950, "78" },
	{ 3958, "02" },
	{ 4054, "05" },
	{ 4062, "02" },
	{ 4070, "01" },
};

#define	RXQ0		0x00100000
#define	LSC		0x00000004
#define	OTHER		0x01000000

/*
 * Rings in use, of which each has moved; a context; RSS set up as a driver with
 * one queue does; MSI-X, with a message sent, and another one held by EITR;
 * SYSTIM runs; a timer waits, from before MSI-X was on.
 */
static struct host *
known_state(void)
{
	struct host *h = host_create_82574(HOST_RAM);
	struct packet p = { .payload = (const uint8_t *)"known",
	    .paylen = 5 };
	uint8_t frame[60];
	unsigned int i;

	host_wr(h, 0x5008, 0x8000);	/* RFCTL.EXTEN */
	host_up(h, 64, 32, 512);
	for (i = 0; i < 10; i++)	/* RSSRK */
		host_wr(h, 0x5c80 + 4 * i, 0x9e3779b1 * (i + 1));
	host_wr(h, 0x5000, 0x2300);	/* RXCSUM.PCSD */
	host_wr(h, 0x5818, 0x00370000);	/* MRQC */
	host_wr(h, 0x3840, 0x07800403);	/* TARC0 */
	host_wr(h, 0x3940, 0x45000403);	/* TARC1 */
	host_wr(h, 0x3828, 0x0145011f);	/* TXDCTL, TXDCTL1 */
	host_wr(h, 0x3928, 0x0145011f);
	host_wr(h, 0x2928, 0x01040420);	/* RXDCTL1 */
	host_wr(h, E82545_IMC, 0xffffffff);
	host_rd(h, E82545_ICR);
	tx_context(h, &p, 0, 0);
	tx_context(h, &p, 3, 0);
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	host_tx_frame(h, frame, sizeof(frame), E82545_TXD_IDE);
	host_wr(h, E82545_TIDV, 500);
	tx_go(h);
	ATF_CHECK_EQ(3, host_rd(h, E82545_TDH));
	e82545_msix(h->dev, true);
	host_wr(h, 0x00e4, 0x800a0908);	/* IVAR, as Linux */
	host_wr(h, 0x00dc, RXQ0);	/* EIAC */
	host_wr(h, 0x00e8, 100);	/* EITR0 */
	host_wr(h, E82545_IMS, RXQ0 | LSC | OTHER);
	host_wr(h, 0xb608, 1 << 24 | 7);	/* TIMINCA */
	host_wr(h, 0xb600, 0x12345678);
	for (i = 0; i < 2; i++) {
		rx_receive(h, frame, sizeof(frame));
		host_wr(h, E82545_IMS, RXQ0);
	}
	ATF_CHECK_EQ(2, host_rd(h, E82545_RDH));
	e82545_link(h->dev, false);
	/* As version 1 had them: vectors of MSI-X, and the checksum. */
	pthread_mutex_lock(&h->dev->reg_mtx);
	e82545_eeprom_store(h->dev, 0x1b, 0xffff);
	e82545_eeprom_store(h->dev, 0x3f, 0x548d);
	pthread_mutex_unlock(&h->dev->reg_mtx);
	host_wr(h, 0x102c, 0xabcd0000 | 0x20 << 2 | 1);	/* EEWR */
	host_rd(h, 0x5b50);		/* SWSM */
	host_advance(h, 400);
	e82545_pause(h->dev);
	return (h);
}

HOST_TEST(saved, known_state(), "An 82574L in a known state is saved as the "
    "known bytes")
{
	known_check(h, known, nitems(known), KNOWN_SIZE);
}

/* The state of known_state(), in another adapter. */
static void
check_state(struct host *h)
{
	ATF_CHECK_EQ(3, host_rd(h, E82545_TDH));
	ATF_CHECK_EQ(2, host_rd(h, E82545_RDH));
	ATF_CHECK_EQ(0x00370000, host_rd(h, 0x5818));
	ATF_CHECK_EQ(0x9e3779b1, host_rd(h, 0x5c80));
	ATF_CHECK_EQ(0x45000403, host_rd(h, 0x3940));
	ATF_CHECK_EQ(0x0145011f, host_rd(h, 0x3928));
	ATF_CHECK_EQ(0x01040420, host_rd(h, 0x2928));
	ATF_CHECK_EQ(0x12345678 + 400 / 40 * 7, host_rd(h, 0xb600));
	/* The vector of receive is held for the rest of 100 * 256 ns. */
	ATF_CHECK_EQ(0, h->nmessages[0]);
	host_advance(h, 100 * 256 - 400 - 1);
	ATF_CHECK_EQ(0, h->nmessages[0]);
	host_advance(h, 1);
	ATF_CHECK_EQ(1, h->nmessages[0]);
	ATF_CHECK_EQ(0x80000000 | OTHER | LSC, host_rd(h, E82545_ICR) &
	    (0x80000000 | OTHER | LSC | 0x00400001));
	/* TIDV. */
	host_advance(h, 500 * 1024);
	ATF_CHECK_EQ(0x00400001, host_rd(h, E82545_ICR) & 0x00400001);
}

HOST_TEST(restored, host_create_82574(HOST_RAM), "The known bytes restore an "
    "82574L to that state, and it goes on")
{
	uint8_t *bytes = known_bytes(known, nitems(known), KNOWN_SIZE);

	h->now_ns = 123456789;
	e82545_msix(h->dev, true);
	e82545_pause(h->dev);
	ATF_REQUIRE_EQ(0, e82545_snapshot_restore(h->dev, bytes, KNOWN_SIZE));
	known_check(h, known, nitems(known), KNOWN_SIZE);
	free(bytes);
	e82545_resume(h->dev);
	check_state(h);
}

/*
 * Restore `size' bytes of an earlier version into an adapter in which registers
 * that the version does not have are not as after a reset; and go on.  Frees
 * them.
 */
static void
check_earlier(struct host *h, uint8_t *bytes, size_t size)
{
	uint8_t *known_now, *now;
	size_t saved;

	h->now_ns = 123456789;
	e82545_msix(h->dev, true);
	e82545_pause(h->dev);
	ATF_REQUIRE_EQ(0, e82545_snapshot_restore(h->dev, bytes, size));
	now = known_save(h, &saved);
	ATF_REQUIRE_EQ(KNOWN_SIZE, saved);
	known_now = known_bytes(known, nitems(known), KNOWN_SIZE);
	ATF_CHECK_EQ(0, memcmp(now + HEADER, known_now + HEADER,
	    saved - HEADER));
	free(now);
	free(known_now);
	e82545_resume(h->dev);
	check_state(h);
	/* It is not one of another version. */
	e82545_pause(h->dev);
	bytes[8]++;
	ATF_CHECK_EQ(EINVAL, e82545_snapshot_restore(h->dev, bytes, size));
	/* None before, and none that is not known. */
	bytes[8] = 0;
	ATF_CHECK_EQ(ENOTSUP, e82545_snapshot_restore(h->dev, bytes, size));
	bytes[8] = E82574_SNAPSHOT_VERSION + 1;
	ATF_CHECK_EQ(ENOTSUP, e82545_snapshot_restore(h->dev, bytes, size));
	free(bytes);
}

HOST_TEST(version_1, host_create_82574(HOST_RAM), "What version 1 has saved "
    "restores an 82574L whose second queues are as after a reset")
{
	static const uint32_t second[] = { 0x2900, 0x2904, 0x2908, 0x2910,
	    0x2918, 0x3900, 0x3904, 0x3908, 0x3910, 0x3918 };
	unsigned int i;

	for (i = 0; i < nitems(second); i++)
		host_wr(h, second[i], 0x180);
	check_earlier(h, known_bytes(known_v1, nitems(known_v1), V1_SIZE),
	    V1_SIZE);
	for (i = 0; i < nitems(second); i++)
		ATF_CHECK_EQ(0, host_rd(h, second[i]));
}

HOST_TEST(version_2, host_create_82574(HOST_RAM), "What version 2 has saved "
    "restores an 82574L without time stamps")
{
	uint32_t off;

	for (off = 0xb618; off <= 0xb630; off += 4)
		if (off != 0xb620)
			h->dev->regs[off / 4] = 0x180;
	check_earlier(h, known_v2(), V2_SIZE);
	for (off = 0xb618; off <= 0xb630; off += 4)
		ATF_CHECK_EQ(0, host_rd(h, off));
}

TEST_PROGRAM
