/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The limits of each part of a snapshot: what they allow is accepted and comes
 * back, the next value is refused.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <stdlib.h>
#include <string.h>

#include "e82545_guest.h"
#include "e82545_impl.h"
#include "e82545_intr.h"
#include "e82545_loop.h"
#include "e82545_regs.h"
#include "e82545_snap.h"
#include "test.h"

TEST(values, "Values are refused, and nothing is copied, beyond the limit or "
    "the buffer's end; saving changes nothing")
{
	struct e82545_snap s;
	uint8_t buf[4], bytes[4], v;

	/* Saved, whatever the limit. */
	memset(buf, 0xee, sizeof(buf));
	s = (struct e82545_snap){ .save = buf, .size = 2 };
	v = 9;
	e82545_snap_u8(&s, &v, 3);
	ATF_CHECK(!s.bad && v == 9 && buf[0] == 9 && s.done == 1);
	memset(bytes, 7, sizeof(bytes));
	e82545_snap_bytes(&s, bytes, 2);
	ATF_CHECK(s.bad && s.done == 1 && buf[1] == 0xee);
	s.bad = false;
	e82545_snap_bytes(&s, bytes, 1);
	ATF_CHECK(!s.bad && s.done == 2 && buf[1] == 7 && buf[2] == 0xee);

	/* Restored up to the limit. */
	memset(buf, 4, sizeof(buf));
	s = (struct e82545_snap){ .restore = buf, .size = 2 };
	e82545_snap_u8(&s, &v, 4);
	ATF_CHECK(!s.bad && v == 4 && s.done == 1);
	v = 9;
	e82545_snap_u8(&s, &v, 3);
	ATF_CHECK(s.bad && v == 9);
	s.bad = false;
	s.done = 1;
	e82545_snap_bytes(&s, bytes, 2);
	ATF_CHECK(s.bad && s.done == 1 && bytes[0] == 7);
	e82545_snap_u8(&s, &v, 4);
	ATF_CHECK(s.done == 1 && v == 9);
}

/* The parts of a transmit ring's state: two contexts, a flag, a number. */
#define	TXQ_CTX		19		/* bytes of a context */
#define	TXQ_PAYLEN	8		/* offset in it */
#define	TXQ_SKIPPING	(2 * TXQ_CTX)
#define	TXQ_SENT	(2 * TXQ_CTX + 1)
#define	TXQ_SIZE	(2 * TXQ_CTX + 5)

HOST_TEST(txq_limits, tx_up(16), "The transmit ring's state has limits, which "
    "are accepted")
{
	static const struct {
		size_t		off;
		uint32_t	max;
		size_t		len;
	} t[] = {
		{ TXQ_PAYLEN, 0xfffff, 4 },
		{ TXQ_CTX + TXQ_PAYLEN, 0xfffff, 4 },
		{ TXQ_SKIPPING, 1, 1 },
		{ TXQ_SENT, 255 + 0xfffff, 4 },
	};
	uint8_t buf[TXQ_SIZE], good[TXQ_SIZE];
	unsigned int i;

	ATF_REQUIRE_EQ(TXQ_SIZE, snap_part(h, e82545_txq_snap, good, NULL,
	    sizeof(good)));
	for (i = 0; i < nitems(t); i++) {
		memcpy(buf, good, sizeof(buf));
		le32enc(buf + t[i].off, (le32dec(buf + t[i].off) &
		    ~(t[i].len == 4 ? UINT32_MAX : 0xff)) | t[i].max);
		ATF_CHECK_EQ_MSG(TXQ_SIZE, snap_part(h, e82545_txq_snap, NULL,
		    buf, sizeof(buf)), "%u", i);
		le32enc(buf + t[i].off, le32dec(buf + t[i].off) + 1);
		ATF_CHECK_EQ_MSG(0, snap_part(h, e82545_txq_snap, NULL, buf,
		    sizeof(buf)), "%u", i);
	}
}

HOST_TEST(eeprom_limits, tx_up(16), "The EEPROM's state has limits, which are "
    "accepted")
{
	static const struct eeprom_limit t[] = {
		{ 0, SNAP_EE_NBITS, 16 }, { 1, SNAP_EE_NBITS, 7 },
		{ 2, SNAP_EE_NBITS, 15 },
		{ 3, SNAP_EE_NBITS, 15 }, { 4, SNAP_EE_NBITS, 16 },
		{ 0, SNAP_EE_SHIFT, 0xffff }, { 0, SNAP_EE_OPCODE, 3 },
		{ 0, SNAP_EE_ADDR, 63 },
	};
	uint8_t after[SNAP_EE_SIZE], buf[SNAP_EE_SIZE], good[SNAP_EE_SIZE];
	unsigned int i;

	ATF_REQUIRE_EQ(SNAP_EE_SIZE, snap_part(h, e82545_eeprom_snap, good,
	    NULL, SNAP_EE_SIZE));
	check_eeprom_limits(h, t, nitems(t), good);
	memcpy(buf, good, SNAP_EE_SIZE);
	buf[SNAP_EE_STATE] = 5;
	ATF_CHECK_EQ(0, snap_part(h, e82545_eeprom_snap, NULL, buf,
	    SNAP_EE_SIZE));
	/* Every byte comes back. */
	packet_fill(buf, SNAP_EE_STATE, 1);
	buf[SNAP_EE_ENABLED] = 1;
	buf[SNAP_EE_STATE] = 3;
	le32enc(buf + SNAP_EE_NBITS, 11);
	le32enc(buf + SNAP_EE_SHIFT, 0xabcd);
	le32enc(buf + SNAP_EE_OPCODE, 1);
	le32enc(buf + SNAP_EE_ADDR, 63);
	for (i = 0; i < 2; i++) {
		buf[SNAP_EE_DATA_OUT] = i;
		ATF_CHECK_EQ(SNAP_EE_SIZE, snap_part(h, e82545_eeprom_snap,
		    NULL, buf, SNAP_EE_SIZE));
		ATF_CHECK_EQ(SNAP_EE_SIZE, snap_part(h, e82545_eeprom_snap,
		    after, NULL, SNAP_EE_SIZE));
		ATF_CHECK_EQ(0, memcmp(buf, after, SNAP_EE_SIZE));
	}
}

/* The PHY's state: each register and its page, then four bytes. */
#define	PHY_SPEED	128
#define	PHY_SIZE	132

HOST_TEST(phy_limits, tx_up(16), "The PHY's state: bits that software cannot "
    "write are those after reset")
{
	/* Of registers 0 to 31: bits that a snapshot may differ in. */
	static const uint16_t may[32] = {
		[0] = 0x7dc0, [4] = 0xbfff, [7] = 0xbfff, [9] = 0xff00,
		[16] = 0xffff, [18] = 0xffff, [19] = 0x0400, [20] = 0xffff,
		[24] = 0xffff, [26] = 0xffff, [29] = 0xffff,
	};
	uint8_t after[PHY_SIZE], buf[PHY_SIZE], good[PHY_SIZE];
	unsigned int bit, i;

	ATF_REQUIRE_EQ(PHY_SIZE, snap_part(h, e82545_phy_snap, good, NULL,
	    PHY_SIZE));
	/* The link came up: its interrupt is pending. */
	ATF_CHECK_EQ(0x0400, le16dec(good + 4 * 19));
	for (i = 0; i < 32; i++) {
		for (bit = 0; bit < 16; bit++) {
			memcpy(buf, good, PHY_SIZE);
			buf[4 * i + bit / 8] ^= 1 << bit % 8;
			ATF_CHECK_EQ_MSG((may[i] >> bit & 1) != 0 ? PHY_SIZE :
			    0, snap_part(h, e82545_phy_snap, NULL, buf,
			    PHY_SIZE), "register %u bit %u", i, bit);
		}
	}
	for (i = 0; i < 4; i++) {
		memcpy(buf, good, PHY_SIZE);
		buf[PHY_SPEED + i] = i == 0 ? 3 : 1;
		ATF_CHECK_EQ(PHY_SIZE, snap_part(h, e82545_phy_snap, NULL, buf,
		    PHY_SIZE));
		buf[PHY_SPEED + i]++;
		ATF_CHECK_EQ(0, snap_part(h, e82545_phy_snap, NULL, buf,
		    PHY_SIZE));
	}
	/* Every byte comes back, and PHY loopback is on. */
	memcpy(buf, good, PHY_SIZE);
	for (i = 0; i < 32; i++) {
		le16enc(buf + 4 * i, le16dec(good + 4 * i) ^
		    (may[i] & 0x5aa5));
		le16enc(buf + 4 * i + 2, 0x1234 + i);
	}
	le16enc(buf, 0x4140);
	ATF_CHECK(!e82545_loopback(h->dev));
	ATF_CHECK_EQ(PHY_SIZE, snap_part(h, e82545_phy_snap, NULL, buf,
	    PHY_SIZE));
	ATF_CHECK_EQ(PHY_SIZE, snap_part(h, e82545_phy_snap, after, NULL,
	    PHY_SIZE));
	ATF_CHECK_EQ(0, memcmp(buf, after, PHY_SIZE));
	ATF_CHECK(e82545_loopback(h->dev));
}

/* Moderation: when the last interrupt was, four deadlines, two flags. */
#define	INTR_ASSERTED	40
#define	INTR_HELD	41
#define	INTR_SIZE	42
#define	INTR_DELAY_MAX	(65535 * UINT64_C(1024) + 1)
#define	INTR_AGO_MAX	(65535 * UINT64_C(256))

HOST_TEST(intr_limits, tx_up(16), "Moderation's state has limits, which are "
    "accepted")
{
	uint8_t after[INTR_SIZE], buf[INTR_SIZE], good[INTR_SIZE];
	unsigned int i;

	ATF_REQUIRE_EQ(INTR_SIZE, snap_part(h, e82545_intr_snap, good, NULL,
	    INTR_SIZE));
	for (i = 0; i < 5; i++) {
		memcpy(buf, good, INTR_SIZE);
		le64enc(buf + 8 * i, i == 0 ? INTR_AGO_MAX : INTR_DELAY_MAX);
		ATF_CHECK_EQ_MSG(INTR_SIZE, snap_part(h, e82545_intr_snap, NULL,
		    buf, INTR_SIZE), "%u", i);
		le64enc(buf + 8 * i, le64dec(buf + 8 * i) + 1);
		ATF_CHECK_EQ_MSG(0, snap_part(h, e82545_intr_snap, NULL, buf,
		    INTR_SIZE), "%u", i);
	}
	/* An interrupt is asserted or held back, not both, with a cause. */
	for (i = 0; i < 16; i++) {
		memset(buf, 0, INTR_SIZE);
		buf[INTR_ASSERTED] = i & 1;
		buf[INTR_HELD] = i >> 1 & 1;
		host_rd(h, E82545_ICR);
		host_wr(h, E82545_IMC, ALL);
		if ((i & 4) != 0)
			host_wr(h, E82545_IMS, E82545_ICR_RXO);
		if ((i & 8) != 0)
			host_wr(h, E82545_ICS, E82545_ICR_RXO);
		ATF_CHECK_EQ_MSG((i & 3) == 0 || i == 13 || i == 14 ?
		    INTR_SIZE : 0, snap_part(h, e82545_intr_snap, NULL, buf,
		    INTR_SIZE), "%u", i);
		/* Low, for the adapter and for its host. */
		memset(buf, 0, INTR_SIZE);
		ATF_REQUIRE_EQ(INTR_SIZE, snap_part(h, e82545_intr_snap, NULL,
		    buf, INTR_SIZE));
		h->line = false;
	}
	/* Every byte comes back. */
	memset(buf, 0, INTR_SIZE);
	for (i = 0; i < 5; i++)
		le64enc(buf + 8 * i, 1000 + i);
	h->now_ns = 0;
	ATF_REQUIRE_EQ(INTR_SIZE, snap_part(h, e82545_intr_snap, NULL, buf,
	    INTR_SIZE));
	ATF_REQUIRE_EQ(INTR_SIZE, snap_part(h, e82545_intr_snap, after, NULL,
	    INTR_SIZE));
	le64enc(buf, 0);
	le64enc(after, 0);
	ATF_CHECK_EQ(0, memcmp(buf, after, INTR_SIZE));
}

/* Times are relative to this. */
static void
intr_snap_at(struct host *h, uint64_t now_ns, uint8_t *save,
    const uint8_t *restore)
{
	struct e82545_snap s = { .save = save, .restore = restore,
	    .size = INTR_SIZE, .now_ns = now_ns };

	e82545_lock_all(h->dev);
	e82545_intr_snap(h->dev, &s);
	e82545_unlock_all(h->dev);
	ATF_REQUIRE(!s.bad && s.done == INTR_SIZE);
}

HOST_TEST(intr_times, tx_up(16), "The last interrupt's age, and what is left "
    "of deadlines, at the limits; saving changes nothing")
{
	static const struct {
		uint64_t	now_ns, last_ns, ago_ns;
	} save[] = {
		{ 1000, 0, 0 }, { 1000, 1, 999 }, { 1000, 999, 1 },
		{ 1000, 1000, 1 },
		{ INTR_AGO_MAX + 1, 1, INTR_AGO_MAX },
		{ INTR_AGO_MAX + 2, 1, 0 },
	}, restore[] = {
		{ 1000, 0, 0 }, { 1000, 999, 1 }, { 1000, 1, 999 },
		{ 1000, 1, 1000 }, { 1000, 1, 1001 },
	};
	struct e82545_moderation m, *const dm = &h->dev->moder;
	uint8_t buf[INTR_SIZE];
	unsigned int i;

	memset(&m, 0, sizeof(m));
	for (i = 0; i < nitems(save); i++) {
		m.last_ns = save[i].last_ns;
		*dm = m;
		intr_snap_at(h, save[i].now_ns, buf, NULL);
		ATF_CHECK_EQ_MSG(save[i].ago_ns, le64dec(buf), "%u", i);
		ATF_CHECK_EQ_MSG(0, memcmp(&m, dm, sizeof(m)), "%u", i);
	}
	memset(buf, 0, sizeof(buf));
	for (i = 0; i < nitems(restore); i++) {
		le64enc(buf, restore[i].ago_ns);
		intr_snap_at(h, restore[i].now_ns, NULL, buf);
		ATF_CHECK_EQ_MSG(restore[i].last_ns, dm->last_ns, "%u: %ju", i,
		    (uintmax_t)dm->last_ns);
	}
	/* Deadlines off, late, due, and to come. */
	memset(&m, 0, sizeof(m));
	m.last_ns = 1;			/* too old */
	m.rx_absolute_ns = 1;
	m.tx_packet_ns = 2 * INTR_AGO_MAX;
	m.tx_absolute_ns = 2 * INTR_AGO_MAX + 5;
	*dm = m;
	intr_snap_at(h, 2 * INTR_AGO_MAX, buf, NULL);
	ATF_CHECK_EQ(0, memcmp(&m, dm, sizeof(m)));
	ATF_CHECK_EQ(0, le64dec(buf + 8));
	ATF_CHECK_EQ(1, le64dec(buf + 16));
	ATF_CHECK_EQ(1, le64dec(buf + 24));
	ATF_CHECK_EQ(6, le64dec(buf + 32));
	intr_snap_at(h, 1000, NULL, buf);
	ATF_CHECK_EQ(0, dm->rx_packet_ns);
	ATF_CHECK_EQ(1000, dm->rx_absolute_ns);
	ATF_CHECK_EQ(1000, dm->tx_packet_ns);
	ATF_CHECK_EQ(1005, dm->tx_absolute_ns);
}

/* The 82574L: causes of which messages were sent, vectors, the time. */
#define	MSIX_VECTOR	9		/* bytes: an age, a flag */
#define	MSIX_SYSTIM	(4 + 5 * MSIX_VECTOR)
#define	MSIX_SIZE	(MSIX_SYSTIM + 8)
#define	MSIX_ALL	0x01f00000

HOST_TEST(msix_limits, host_create_82574(HOST_RAM), "The state of MSI-X has "
    "limits, which are accepted; saving changes nothing")
{
	static const struct {
		uint32_t	sent, icr, ims;
		bool		good;
	} t[] = {
		{ 0, 0, 0, true },
		{ MSIX_ALL, ALL, ALL, true },
		{ MSIX_ALL, MSIX_ALL, MSIX_ALL, true },
		{ MSIX_ALL, MSIX_ALL & ~0x00200000, MSIX_ALL, false },
		{ MSIX_ALL, MSIX_ALL, MSIX_ALL & ~0x01000000, false },
		{ 0x00100000, 0x00100000, 0x00100000, true },
		{ 0x00100000, 0x00100000, 0, false },
		{ 0x00100000, 0, 0x00100000, false },
		{ 0x00100000, 0, 0, false },
		{ 0x00080000, ALL, ALL, false },
		{ 0x00000004, ALL, ALL, false },
		{ 0x02000000, ALL, ALL, false },
	};
	struct e82574 *const x = &h->dev->x;
	uint8_t after[MSIX_SIZE], buf[MSIX_SIZE], good[MSIX_SIZE];
	unsigned int i;

	ATF_REQUIRE_EQ(MSIX_SIZE, snap_part(h, e82574_snap, good, NULL,
	    MSIX_SIZE));
	for (i = 0; i < nitems(t); i++) {
		host_wr(h, E82545_IMC, ALL);
		host_wr(h, E82545_ICR, ALL);
		host_wr(h, E82545_ICS, t[i].icr);
		host_wr(h, E82545_IMS, t[i].ims);
		memcpy(buf, good, MSIX_SIZE);
		le32enc(buf, t[i].sent);
		ATF_CHECK_EQ_MSG(t[i].good ? MSIX_SIZE : 0, snap_part(h,
		    e82574_snap, NULL, buf, MSIX_SIZE), "%u", i);
	}
	for (i = 0; i < 5; i++) {
		memcpy(buf, good, MSIX_SIZE);
		le64enc(buf + 4 + i * MSIX_VECTOR, INTR_AGO_MAX);
		buf[4 + i * MSIX_VECTOR + 8] = 1;
		ATF_CHECK_EQ_MSG(MSIX_SIZE, snap_part(h, e82574_snap, NULL,
		    buf, MSIX_SIZE), "%u", i);
		buf[4 + i * MSIX_VECTOR + 8] = 2;
		ATF_CHECK_EQ_MSG(0, snap_part(h, e82574_snap, NULL, buf,
		    MSIX_SIZE), "%u", i);
		buf[4 + i * MSIX_VECTOR + 8] = 0;
		le64enc(buf + 4 + i * MSIX_VECTOR, INTR_AGO_MAX + 1);
		ATF_CHECK_EQ_MSG(0, snap_part(h, e82574_snap, NULL, buf,
		    MSIX_SIZE), "%u", i);
	}
	/* Every byte of a time comes back; a period goes on. */
	memset(buf, 0, MSIX_SIZE);
	packet_fill(buf + MSIX_SYSTIM, 8, 1);
	ATF_REQUIRE_EQ(MSIX_SIZE, snap_part(h, e82574_snap, NULL, buf,
	    MSIX_SIZE));
	ATF_CHECK_EQ(le64dec(buf + MSIX_SYSTIM), x->xs_systim);
	ATF_CHECK_EQ(0, x->xs_systim_ns);
	ATF_REQUIRE_EQ(MSIX_SIZE, snap_part(h, e82574_snap, after, NULL,
	    MSIX_SIZE));
	ATF_CHECK_EQ(0, memcmp(buf, after, MSIX_SIZE));
	host_wr(h, E82574_TIMINCA, 2 << 24 | 3);
	host_wr(h, E82574_SYSTIML, 100);
	host_wr(h, E82574_SYSTIMH, 0);
	host_advance(h, 79);
	ATF_REQUIRE_EQ(MSIX_SIZE, snap_part(h, e82574_snap, after, NULL,
	    MSIX_SIZE));
	ATF_CHECK_EQ(100, le64dec(after + MSIX_SYSTIM));
	host_advance(h, 1);
	ATF_CHECK_EQ(103, host_rd(h, E82574_SYSTIML));
}

/* The loopback queue: a number of frames, and each with its length. */
#define	LOOP_FRAMES	256
#define	LOOP_FRAME	(4 + E82545_ETH_HDRLEN)	/* one of the shortest */
#define	LOOP_SIZE	(4 + (LOOP_FRAMES + 1) * LOOP_FRAME)

HOST_TEST(loop_limits, tx_up(16), "The loopback queue has limits, which are "
    "accepted")
{
	uint8_t after[LOOP_SIZE], buf[LOOP_SIZE], *big, *p;
	const size_t full = LOOP_SIZE - LOOP_FRAME;
	size_t size;
	unsigned int i, len;

	for (i = 0; i <= LOOP_FRAMES; i++) {
		p = buf + 4 + i * LOOP_FRAME;
		le32enc(p, E82545_ETH_HDRLEN);
		packet_fill(p + 4, E82545_ETH_HDRLEN, i);
	}
	le32enc(buf, LOOP_FRAMES + 1);
	ATF_CHECK_EQ(0, snap_part(h, e82545_loop_snap, NULL, buf, LOOP_SIZE));
	e82545_reset(h->dev);
	le32enc(buf, LOOP_FRAMES);
	ATF_CHECK_EQ(full, snap_part(h, e82545_loop_snap, NULL, buf, full));
	/* Every byte comes back. */
	ATF_CHECK_EQ(full, snap_part(h, e82545_loop_snap, after, NULL, full));
	ATF_CHECK_EQ(0, memcmp(buf, after, full));
	e82545_reset(h->dev);

	/* From the shortest frame to the longest. */
	big = calloc(1, 8 + E82545_FRAME_MAX + 1);
	ATF_REQUIRE(big != NULL);
	le32enc(big, 1);
	for (len = 0; len <= E82545_FRAME_MAX + 1; len++) {
		le32enc(big + 4, len);
		size = snap_part(h, e82545_loop_snap, NULL, big, 8 + len);
		ATF_CHECK_EQ_MSG(len >= E82545_ETH_HDRLEN &&
		    len <= E82545_FRAME_MAX ? 8 + len : 0, size, "%u", len);
		e82545_reset(h->dev);
	}
	free(big);
}

/* The registers' state: if there is a CSB, registers, IOADDR, the cable. */
#define	REGS_TAIL	5		/* bytes of the last two */

/* Bits of register `o' that a snapshot may have, other than after reset. */
static uint32_t
reg_may(const struct reg *r, uint32_t o)
{
	/* Side effects; those that the adapter sets; statistics. */
	switch (o) {
	case E82545_CTRL:
	case E82545_CTRL_DUP:
		return (0xdbfc1be9);
	case E82545_STATUS:
		return (0x000003c3);
	case E82545_EECD:
		return (0x00000077);
	case E82545_EERD:
		return (0xffffff11);
	case E82545_CTRL_EXT:
		return (0x00c2bfff);
	case E82545_MDIC:
		return (0x7fffffff);
	case E82545_ICR:
	case E82545_ICS:
	case E82545_IMS:
	case E82545_IMC:
		return (0x0001ffff);
	case E82545_PBA:
		return (0x007f007f);
	case E82545_RDTR:
		return (0x8000ffff);
	default:
		return (o >= 0x4000 && o < 0x4100 ? ALL : r->mask);
	}
}

/* Where a register is in the registers' state, by changing its bits `may'. */
static size_t
reg_place(struct host *h, uint32_t o, uint32_t may, const uint8_t *good,
    uint8_t *buf, size_t size)
{
	size_t i;
	uint32_t v;

	e82545_lock_all(h->dev);
	v = e82545_reg(h->dev, o);
	e82545_reg_set(h->dev, o, v ^ may);
	e82545_unlock_all(h->dev);
	ATF_REQUIRE_EQ(size, snap_part(h, e82545_reg_snap, buf, NULL, size));
	e82545_lock_all(h->dev);
	e82545_reg_set(h->dev, o, v);
	e82545_unlock_all(h->dev);
	for (i = 0; i < size && buf[i] == good[i]; i++)
		continue;
	for (; (may & 0xff) == 0; may >>= 8)
		i--;
	ATF_REQUIRE(i + 4 <= size);
	ATF_REQUIRE_EQ(v, le32dec(good + i));
	ATF_REQUIRE_EQ(0, memcmp(buf + i + 4, good + i + 4, size - i - 4));
	return (i);
}

HOST_TEST(regs_limits, host_create(HOST_RAM), "A register's bits are those "
    "after reset, but those that the guest writes and the adapter sets")
{
	unsigned int bit, i, j;
	uint32_t may, o, seed;
	uint8_t *after, *all, *buf, *good;
	size_t at, size;

	size = snap_part(h, e82545_reg_snap, NULL, NULL, 0);
	good = malloc(size);
	buf = malloc(size);
	all = malloc(size);
	after = malloc(size);
	ATF_REQUIRE(good != NULL && buf != NULL && all != NULL &&
	    after != NULL);
	ATF_REQUIRE_EQ(size, snap_part(h, e82545_reg_snap, good, NULL, size));
	memcpy(all, good, size);
	seed = 12;
	FOREACH_REG(i, j, o) {
		may = reg_may(&regs[i], o);
		if (may == 0)
			continue;
		at = reg_place(h, o, may, good, buf, size);
		le32enc(all + at, le32dec(good + at) ^ (may &
		    test_random(&seed)));
		if (j != 0 && j != regs[i].count - 1u)
			continue;
		for (bit = 0; bit < 32; bit++) {
			memcpy(buf, good, size);
			buf[at + bit / 8] ^= 1 << bit % 8;
			ATF_CHECK_EQ_MSG((may >> bit & 1) != 0 ? size : 0,
			    snap_part(h, e82545_reg_snap, NULL, buf, size),
			    "%s bit %u", regs[i].name, bit);
		}
		ATF_REQUIRE_EQ(size, snap_part(h, e82545_reg_snap, NULL, good,
		    size));
	}
	/* Every byte comes back. */
	le32enc(all + size - REGS_TAIL, 0xfedcba98);
	for (i = 0; i < 2; i++) {
		all[size - 1] = i;
		ATF_CHECK_EQ(size, snap_part(h, e82545_reg_snap, NULL, all,
		    size));
		ATF_CHECK_EQ(size, snap_part(h, e82545_reg_snap, after, NULL,
		    size));
		ATF_CHECK_EQ(0, memcmp(all, after, size));
		ATF_CHECK_EQ(0xfedcba98, e82545_read(h->dev, E82545_BAR_IO,
		    0, 4));
	}
	all[size - 1] = 2;
	ATF_CHECK_EQ(0, snap_part(h, e82545_reg_snap, NULL, all, size));
	/* Saving changes nothing. */
	all[size - 1] = 1;
	ATF_CHECK_EQ(size, snap_part(h, e82545_reg_snap, after, NULL, size));
	ATF_CHECK_EQ(0, memcmp(all, after, size - 1));
	/* The one who has the CSB is another adapter. */
	good[0] ^= 1;
	ATF_CHECK_EQ(0, snap_part(h, e82545_reg_snap, NULL, good, size));
	free(good);
	free(buf);
	free(all);
	free(after);
}

/* The CSB's state. */
#define	CSB_GPA		0
#define	CSB_ON		8		/* the first of four flags */
#define	CSB_RX_OLD	12
#define	CSB_TDT		16		/* an index, a flag, an index */
#define	CSB_TX_FIRST	21
#define	CSB_RDT		25
#define	CSB_RX_FIRST	30
#define	CSB_UNMASKED	34
#define	CSB_HELD	35
#define	CSB_AT_USED	39
#define	CSB_AWAKE	40		/* the first of two flags */
#define	CSB_ROUNDS	42
#define	CSB_ARMED	46
#define	CSB_VNET_GPA	47
#define	CSB_VNET_SIZE	55
#define	CSB_VNET_CLEAN	59
#define	CSB_SIZE	63

TEST(csb_limits, "The CSB's state has limits, which are accepted")
{
	static const struct {
		size_t		off, len;
		uint32_t	max;
	} t[] = {
		{ CSB_ON, 1, 1 }, { CSB_ON + 1, 1, 1 }, { CSB_ON + 2, 1, 1 },
		{ CSB_ON + 3, 1, 1 }, { CSB_TDT, 4, 0xffff },
		{ CSB_TDT + 4, 1, 1 }, { CSB_RDT, 4, 0xffff },
		{ CSB_RDT + 4, 1, 1 }, { CSB_UNMASKED, 1, 1 },
		{ CSB_AT_USED, 1, 1 }, { CSB_AWAKE, 1, 1 },
		{ CSB_AWAKE + 1, 1, 1 },
		{ CSB_ROUNDS, 4, 65536 }, { CSB_ARMED, 1, 1 },
		{ CSB_VNET_SIZE, 4, 0xfff80 / 16 },
	};
	static const size_t with_block[] = { CSB_ON, CSB_AWAKE, CSB_ARMED,
	    CSB_VNET_GPA };
	uint8_t after[CSB_SIZE], buf[CSB_SIZE], good[CSB_SIZE];
	struct host *h = host_create_csb(HOST_RAM);
	unsigned int bit, i;

	ATF_REQUIRE_EQ(CSB_SIZE, snap_part(h, e82545_csb_snap, good, NULL,
	    CSB_SIZE));
	le64enc(good + CSB_GPA, 0x123456789abc1000);
	for (i = 0; i < nitems(t); i++) {
		memcpy(buf, good, CSB_SIZE);
		if (t[i].len == 1)
			buf[t[i].off] = t[i].max;
		else
			le32enc(buf + t[i].off, t[i].max);
		ATF_CHECK_EQ_MSG(CSB_SIZE, snap_part(h, e82545_csb_snap, NULL,
		    buf, CSB_SIZE), "%u", i);
		ATF_CHECK_EQ(CSB_SIZE, snap_part(h, e82545_csb_snap, after,
		    NULL, CSB_SIZE));
		ATF_CHECK_EQ_MSG(0, memcmp(buf, after, CSB_SIZE), "%u", i);
		if (t[i].len == 1)
			buf[t[i].off]++;
		else
			le32enc(buf + t[i].off, t[i].max + 1);
		ATF_CHECK_EQ_MSG(0, snap_part(h, e82545_csb_snap, NULL, buf,
		    CSB_SIZE), "%u", i);
	}
	/* Causes that were suppressed: TXDW, TXQE, RXDMT0 and RXT0 only. */
	for (bit = 0; bit < 32; bit++) {
		memcpy(buf, good, CSB_SIZE);
		le32enc(buf + CSB_HELD, 1u << bit);
		ATF_CHECK_EQ_MSG((0x93 & 1u << bit) != 0 ? CSB_SIZE : 0,
		    snap_part(h, e82545_csb_snap, NULL, buf, CSB_SIZE), "%u",
		    bit);
	}
	/* Without a block the mode is off and nobody waits. */
	for (i = 0; i < nitems(with_block); i++) {
		memcpy(buf, good, CSB_SIZE);
		le64enc(buf + CSB_GPA, 0);
		ATF_CHECK_EQ(CSB_SIZE, snap_part(h, e82545_csb_snap, NULL, buf,
		    CSB_SIZE));
		buf[with_block[i]] = 1;
		ATF_CHECK_EQ_MSG(0, snap_part(h, e82545_csb_snap, NULL, buf,
		    CSB_SIZE), "%u", i);
	}
	/* Every byte comes back. */
	memcpy(buf, good, CSB_SIZE);
	le32enc(buf + CSB_TDT, 0x1234);
	le32enc(buf + CSB_RDT, 0x5678);
	le32enc(buf + CSB_HELD, 0x90);
	le32enc(buf + CSB_TX_FIRST, 0xfffffffe);
	le32enc(buf + CSB_RX_FIRST, 0xfffffffc);
	le32enc(buf + CSB_RX_OLD, 0xfffffffd);
	le32enc(buf + CSB_ROUNDS, 0x8765);
	le64enc(buf + CSB_VNET_GPA, 0xfedcba9876543210);
	le32enc(buf + CSB_VNET_SIZE, 0x7654);
	le32enc(buf + CSB_VNET_CLEAN, 0xfffffffb);
	ATF_CHECK_EQ(CSB_SIZE, snap_part(h, e82545_csb_snap, NULL, buf,
	    CSB_SIZE));
	ATF_CHECK_EQ(CSB_SIZE, snap_part(h, e82545_csb_snap, after, NULL,
	    CSB_SIZE));
	ATF_CHECK_EQ(0, memcmp(buf, after, CSB_SIZE));
	host_destroy(h);

	/* An adapter without the CSB has no block. */
	h = host_create(HOST_RAM);
	le64enc(good + CSB_GPA, 0);
	ATF_CHECK_EQ(CSB_SIZE, snap_part(h, e82545_csb_snap, NULL, good,
	    CSB_SIZE));
	le64enc(good + CSB_GPA, 1);
	ATF_CHECK_EQ(0, snap_part(h, e82545_csb_snap, NULL, good, CSB_SIZE));
	host_destroy(h);
}

/* The statistics' state: for each byte count what is latched, and whether. */
#define	STAT_LATCHED	8
#define	STAT_PAIR	9
#define	STAT_SIZE	(4 * STAT_PAIR)

HOST_TEST(stat_limits, tx_up(16), "No more bytes are latched than are counted")
{
	static const uint32_t pairs[] = { E82545_GORCL, E82545_GOTCL,
	    E82545_TORL, E82545_TOTL };
	const uint64_t count = 0x500000003;
	uint8_t after[STAT_SIZE], buf[STAT_SIZE] = { 0 };
	unsigned int i;
	uint8_t *p;

	for (i = 0; i < nitems(pairs); i++)
		reg_count64(h, pairs[i], count + i);
	for (i = 0; i < nitems(pairs); i++) {
		p = buf + i * STAT_PAIR;
		le64enc(p, count + i);
		p[STAT_LATCHED] = 1;
		ATF_CHECK_EQ(STAT_SIZE, snap_part(h, e82545_stat_snap, NULL,
		    buf, STAT_SIZE));
		ATF_CHECK_EQ(STAT_SIZE, snap_part(h, e82545_stat_snap, after,
		    NULL, STAT_SIZE));
		ATF_CHECK_EQ(0, memcmp(buf, after, STAT_SIZE));
		le64enc(p, count + i + 1);
		ATF_CHECK_EQ(0, snap_part(h, e82545_stat_snap, NULL, buf,
		    STAT_SIZE));
		/* What was read before does not count. */
		p[STAT_LATCHED] = 0;
		ATF_CHECK_EQ(STAT_SIZE, snap_part(h, e82545_stat_snap, NULL,
		    buf, STAT_SIZE));
	}
}

TEST_PROGRAM
