/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * As e82545_snap_known_test.c, of an 82574L.
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

#define	KNOWN_SIZE	4229

static const struct known_line known[] = {
	{ 0, "38323537344c000001" },
	{ 12, "851000004d15550a00410210" },
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
	{ 3406, "ffffffffffffffffffff0002ffffffffffffffffcdabffff" },
	{ 3430, "ffffffff0000ffffffffffffffffffffffffffffffffffff" },
	{ 3454, "ffffffffffffffffffffffffffffffffffffffffffffffff" },
	{ 3478, "ffffffffffffffffffff8c52" },
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

TEST_PROGRAM
