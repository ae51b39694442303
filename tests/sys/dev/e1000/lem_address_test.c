/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The station address, and the driver's core on the adapters of other
 * hypervisors.
 *
 * Those are played in front of the model: what CTRL.RST does, what the first
 * receive filter and EECD read as, and the EEPROM behind its wires.  All other
 * registers are the model's.  As far as a driver sees them, the adapters are:
 *
 *   bhyve	The filter has the address.  A reset clears AV and leaves the
 *		rest.  There is no EERD.
 *   QEMU	The filter has the address.  A reset does nothing at all.  EECD
 *		grants access unasked, and DO is 1 when nothing is read.
 *   VirtualBox	A reset loads the filter.  The EEPROM has wires only after a
 *		request.  Old versions have a filter of 0.
 *   VMware	Not published.  The least that drivers which work there need:
 *		the filter has the address, until a reset.
 *   82544	EECD has no request.  The EEPROM may have 256 words.
 */

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <atf-c.h>

#include "lem_test.h"

enum ra_reset { RA_LOAD, RA_INVALID, RA_ZERO };

struct adapter {
	const char	*name;
	enum ra_reset	 reset;		/* what a reset does to the filter */
	bool		 no_reset;	/* CTRL.RST does nothing */
	bool		 ra_zero;	/* the filter is 0 at first */
	bool		 granted;	/* EECD.GNT is always set, */
	bool		 no_grant;	/* is never set, and not needed, */
	unsigned int	 late_grant;	/* or is read 0 so often */
	bool		 eeprom_256;	/* EECD.SIZE */
	bool		 no_eeprom;	/* no wires */
};

static const struct adapter adapters[] = {
	{ .name = "82545EM", .reset = RA_LOAD },
	{ .name = "bhyve", .reset = RA_INVALID },
	{ .name = "QEMU", .no_reset = true, .granted = true },
	{ .name = "VirtualBox", .reset = RA_LOAD },
	{ .name = "old VirtualBox", .reset = RA_ZERO, .ra_zero = true },
	{ .name = "VMware", .reset = RA_ZERO, .no_eeprom = true },
	{ .name = "82544", .reset = RA_LOAD, .no_grant = true },
	{ .name = "82544, no filter", .reset = RA_ZERO, .ra_zero = true,
	    .no_grant = true, .eeprom_256 = true },
	{ .name = "82545EM, EEPROM in use", .reset = RA_ZERO, .ra_zero = true,
	    .late_grant = 7 },
};
#define	NADAPTERS	(sizeof(adapters) / sizeof(adapters[0]))

/* The adapter that is played. */
static struct {
	struct adapter	 type;
	uint32_t	 ral, rah, eecd;
	uint16_t	 word[256];
	uint32_t	 in;		/* bits shifted in and their number, */
	unsigned int	 nin;		/* from the start bit on */
	uint32_t	 out;		/* word to be read, bits left of it,
					   17: the 0 that comes first */
	unsigned int	 nout;
	unsigned int	 waits;		/* reads of EECD until the grant */
	unsigned int	 writes;	/* to registers other than EECD */
} ad;

static void
ra_load(void)
{
	ad.ral = ad.word[0] | (uint32_t)ad.word[1] << 16;
	ad.rah = ad.word[2] | E82545_RAH_AV;
}

static void
ra_reset(void)
{
	switch (ad.type.reset) {
	case RA_LOAD:
		ra_load();
		break;
	case RA_INVALID:
		ad.rah &= ~E82545_RAH_AV;
		break;
	case RA_ZERO:
		ad.ral = ad.rah = 0;
		break;
	}
}

/* The EEPROM's checksum fits its contents. */
static void
eeprom_seal(void)
{
	unsigned int i;
	uint16_t sum = 0;

	for (i = 0; i < E82545_EEPROM_SUMMED - 1; i++)
		sum += ad.word[i];
	ad.word[i] = E82545_EEPROM_SUM - sum;
}

/* A rising edge of the clock, while the chip is selected. */
static void
eeprom_edge(bool di)
{
	unsigned int abits = ad.type.eeprom_256 ? 8 : 6;

	if (ad.nout > 0) {
		ATF_CHECK(!di);
		ad.nout--;
		return;
	}
	if (ad.nin == 0 && !di)
		return;			/* no start bit yet */
	ad.in = ad.in << 1 | di;
	if (++ad.nin < 3 + abits)
		return;
	/* Read is the only instruction there is. */
	ATF_CHECK_EQ(6, ad.in >> abits);
	ad.out = ad.word[ad.in & ((1u << abits) - 1)];
	ad.nout = 17;
	ad.in = ad.nin = 0;
}

static void
eecd_write(uint32_t value)
{
	const uint32_t old = ad.eecd;

	/* Flash writes stay as they were. */
	ATF_CHECK_EQ(E82545_EECD_FWE_DIS, value & E82545_EECD_FWE);
	ad.eecd = value & (E82545_EECD_SK | E82545_EECD_CS | E82545_EECD_DI |
	    E82545_EECD_REQ | E82545_EECD_FWE);
	if ((value & E82545_EECD_REQ) == 0)
		ad.waits = ad.type.late_grant;
	if (((value & E82545_EECD_REQ) == 0 || ad.waits != 0) &&
	    !ad.type.granted && !ad.type.no_grant)
		return;
	/* The chip is selected while clock and data are low. */
	if ((value & ~old & E82545_EECD_CS) != 0)
		ATF_CHECK_EQ(0, value & (E82545_EECD_SK | E82545_EECD_DI));
	if ((value & E82545_EECD_CS) == 0)
		ad.in = ad.nin = ad.nout = 0;
	else if (!ad.type.no_eeprom && (value & ~old & E82545_EECD_SK) != 0)
		eeprom_edge((value & E82545_EECD_DI) != 0);
}

static uint32_t
eecd_read(void)
{
	uint32_t value = ad.eecd | E82545_EECD_PRES;
	bool grant = ad.type.granted || (ad.eecd & E82545_EECD_REQ) != 0;

	if ((ad.eecd & E82545_EECD_REQ) != 0 && ad.waits > 0) {
		ad.waits--;
		grant = false;
	}
	if (ad.type.eeprom_256)
		value |= E82545_EECD_SIZE;
	if (grant && !ad.type.no_grant)
		value |= E82545_EECD_GNT;
	if (ad.nout == 0 ||
	    (ad.nout < 17 && (ad.out >> (ad.nout - 1) & 1) != 0))
		value |= E82545_EECD_DO;
	return (value);
}

static uint32_t
ad_read(void *arg, uint32_t reg)
{
	switch (reg) {
	case E82545_RAL(0):
		return (ad.ral);
	case E82545_RAH(0):
		return (ad.rah);
	case E82545_EECD:
		return (eecd_read());
	case E82545_EERD:
		atf_tc_fail("EERD is read");
	default:
		return (host_rd(arg, reg));
	}
}

static void
ad_write(void *arg, uint32_t reg, uint32_t value)
{
	if (reg == E82545_EECD) {
		eecd_write(value);
		return;
	}
	ad.writes++;
	if (reg == E82545_RAL(0))
		ad.ral = value;
	if (reg == E82545_RAH(0))
		ad.rah = value;
	if (reg == E82545_CTRL && (value & E82545_CTRL_RST) != 0) {
		if (ad.type.no_reset)
			value &= ~E82545_CTRL_RST;
		else
			ra_reset();
	}
	host_wr(arg, reg, value);
}

/* A machine with this adapter. */
static struct lem_test *
ad_create(const struct adapter *type)
{
	struct lem_test *t = test_create_down(2048);

	memset(&ad, 0, sizeof(ad));
	ad.type = *type;
	memcpy(ad.word, host_mac, 6);
	memset(ad.word + 3, 0x5a, 32);
	eeprom_seal();
	if (!type->ra_zero)
		ra_load();
	ad.eecd = E82545_EECD_FWE_DIS;
	ad.waits = type->late_grant;
	t->g.lc.lc_csb = NULL;
	t->g.lc.lc_os.reg_read = ad_read;
	t->g.lc.lc_os.reg_write = ad_write;
	return (t);
}

/* The adapter is as it was before: the wires, and all other registers. */
static void
untouched(const char *name)
{
	ATF_CHECK_MSG(ad.writes == 0, "%s: %u writes", name, ad.writes);
	ATF_CHECK_EQ_MSG(E82545_EECD_FWE_DIS, ad.eecd, "%s", name);
}

TEST(traffic, "The driver attaches to each adapter, has its address, and "
    "exchanges frames, also after a restart")
{
	struct lem_test *t;
	unsigned int i, j;

	for (i = 0; i < NADAPTERS; i++) {
		t = ad_create(&adapters[i]);
		ATF_REQUIRE_EQ_MSG(0, guest_up(&t->g, 1500), "%s",
		    adapters[i].name);
		ATF_CHECK_EQ(0, memcmp(host_mac, t->g.mac, 6));
		for (j = 0; j < 3; j++) {
			test_settle(t);
			test_inject(t, 300, 60);
			test_settle(t);
			test_send(t, 100, 60);
			test_settle(t);
			(void)lem_tx_clean(&t->g.lc);
			test_check_received(t);
			test_check_sent(t, 60);
			ATF_CHECK_EQ(E82545_RAH_AV, ad.rah & E82545_RAH_AV);
			ATF_REQUIRE_EQ(0,
			    lem_start(&t->g.lc, t->g.mac, 1500));
			lem_intr_enable(&t->g.lc);
		}
		test_destroy(t);
	}
}

TEST(clock, "The EEPROM's clock is slow enough, and the wait for its grant "
    "ends with that, or after two milliseconds")
{
	static const struct {
		unsigned int	adapter, waits, abits;
	} row[] = {
		{ 4, 0, 6 }, { 7, 1000, 8 }, { 8, 7, 6 },
	};
	struct lem_test *t;
	unsigned int i;
	uint8_t mac[6];

	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		t = ad_create(&adapters[row[i].adapter]);
		ATF_CHECK_EQ(0, lem_address(&t->g.lc, mac));
		ATF_CHECK_EQ(0, memcmp(host_mac, mac, 6));
		/* A word: both halves of each clock, and once between them. */
		ATF_CHECK_EQ_MSG(2 * (row[i].waits + E82545_EEPROM_SUMMED *
		    (2 * (3 + row[i].abits + 16) + 1)),
		    t->g.lc.lc_os.delayed_us, "%s: %ju", ad.type.name,
		    (uintmax_t)t->g.lc.lc_os.delayed_us);
		test_destroy(t);
	}
}

LEM_TEST(wires_left, ad_create(&adapters[4]), "Wires that another driver left "
    "as they were do no harm")
{
	uint8_t mac[6];

	ad.eecd |= E82545_EECD_SK | E82545_EECD_CS | E82545_EECD_DI |
	    E82545_EECD_REQ;
	ATF_CHECK_EQ(0, lem_address(&t->g.lc, mac));
	ATF_CHECK_EQ(0, memcmp(host_mac, mac, 6));
	untouched("wires");
}

TEST(words, "An address of which only one word is not 0, is valid; it is all "
    "that is written")
{
	static const uint8_t want[][6] = {
		{ 0x02, 0, 0, 0, 0, 0 }, { 0, 0, 0x03, 0, 0, 0 },
		{ 0, 0, 0, 0, 0, 0x05 }
	};
	struct lem_test *t = ad_create(&adapters[1]);
	unsigned int i;
	uint8_t mac[8];

	for (i = 0; i < 3; i++) {
		memset(mac, 0xee, sizeof(mac));
		ad.ral = want[i][0] | want[i][2] << 16;
		ad.rah = want[i][5] << 8 | E82545_RAH_AV;
		ATF_CHECK_EQ(0, lem_address(&t->g.lc, mac));
		ATF_CHECK_EQ_MSG(0, memcmp(want[i], mac, 6), "%u", i);
		ATF_CHECK_EQ(0xee, mac[6]);
		ATF_CHECK_EQ(0, t->g.lc.lc_os.writes);
	}
	test_destroy(t);
}

TEST(none, "An adapter whose filter and EEPROM have no address, or a group's, "
    "is refused and left alone")
{
	static const struct {
		uint32_t	ral, rah;
		uint16_t	word;	/* all of the EEPROM */
	} row[] = {
		{ 0, 0, 0 },
		{ 0, E82545_RAH_AV, 0xffff },
		{ 0xffffffff, 0xffff | E82545_RAH_AV, 0 },
		{ 0x005e0001, 0x0001 | E82545_RAH_AV, 0xffff },
		{ 0, E82545_RAH_AV | 0x30000, 0x0101 },
	};
	struct lem_test *t = ad_create(&adapters[0]);
	unsigned int i, j;
	uint8_t mac[6];

	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		ad.ral = row[i].ral;
		ad.rah = row[i].rah;
		for (j = 0; j < 64; j++)
			ad.word[j] = row[i].word;
		ATF_CHECK_EQ_MSG(EIO, lem_address(&t->g.lc, mac), "%u", i);
		ATF_CHECK_EQ_MSG(EIO, lem_attach(&t->g.lc, mac), "%u", i);
		untouched("none");
	}
	test_destroy(t);
}

LEM_TEST(checksum, ad_create(&adapters[4]), "An EEPROM with a wrong checksum "
    "is reported, and its address used")
{
	uint8_t mac[6];

	ad.word[40] ^= 0x0100;
	ATF_CHECK_EQ(0, lem_attach(&t->g.lc, mac));
	ATF_CHECK(t->g.lc.lc_eeprom_bad);
	ATF_CHECK_EQ(0, memcmp(host_mac, mac, 6));
	ad.word[40] ^= 0x0100;
	ATF_CHECK_EQ(0, lem_attach(&t->g.lc, mac));
	ATF_CHECK(!t->g.lc.lc_eeprom_bad);
	ad.word[40] ^= 0x0100;
	ra_load();
	ATF_CHECK_EQ(0, lem_attach(&t->g.lc, mac));
	ATF_CHECK(!t->g.lc.lc_eeprom_bad);
}

TEST_PROGRAM
