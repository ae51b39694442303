/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The EEPROM of the 82545EM as drivers use it: Microwire through EECD, and
 * EERD.
 */

#include <sys/param.h>

#include <atf-c.h>

#include "e82545_host.h"
#include "e82545_regs.h"
#include "test.h"

#define	NWORDS		64

#define	SK	E82545_EECD_SK
#define	CS	E82545_EECD_CS
#define	DI	E82545_EECD_DI
#define	DO	E82545_EECD_DO

static void
mw_acquire(struct host *h)
{
	host_set(h, E82545_EECD, E82545_EECD_REQ);
	ATF_REQUIRE((host_rd(h, E82545_EECD) & E82545_EECD_GNT) != 0);
	host_clear(h, E82545_EECD, DI | SK | CS);
}

static void
mw_release(struct host *h)
{
	host_clear(h, E82545_EECD, E82545_EECD_REQ);
	ATF_REQUIRE((host_rd(h, E82545_EECD) & E82545_EECD_GNT) == 0);
}

/* Between instructions: deselect, a clock, select while the clock is high. */
static void
mw_standby(struct host *h)
{
	host_clear(h, E82545_EECD, CS | SK);
	host_set(h, E82545_EECD, SK);
	host_set(h, E82545_EECD, CS);
	host_clear(h, E82545_EECD, SK);
}

static uint16_t
mw_read(struct host *h, unsigned int addr)
{
	uint16_t v;

	host_set(h, E82545_EECD, CS);
	eecd_out(h, 6, 3);
	eecd_out(h, addr, 6);
	ATF_CHECK((host_rd(h, E82545_EECD) & DO) == 0);
	v = eecd_in(h, 16);
	mw_standby(h);
	return (v);
}

/* Shift in an instruction from the start bit on, and execute it. */
static void
mw_command(struct host *h, uint32_t bits, int n)
{
	host_set(h, E82545_EECD, CS);
	eecd_out(h, bits, n);
	mw_standby(h);
	/* DO goes high when the EEPROM is ready. */
	ATF_CHECK((host_rd(h, E82545_EECD) & DO) != 0);
	host_clear(h, E82545_EECD, CS);
}

#define	EWEN(h)		mw_command(h, 0x13 << 4, 9)
#define	EWDS(h)		mw_command(h, 0x10 << 4, 9)
#define	ERAL(h)		mw_command(h, 0x12 << 4, 9)
#define	WRAL(h, v)	mw_command(h, 0x11 << 20 | (v), 25)
#define	WRITE(h, a, v)	mw_command(h, 5 << 22 | (a) << 16 | (v), 25)
#define	ERASE(h, a)	mw_command(h, 7 << 6 | (a), 9)

static uint16_t
eerd(struct host *h, uint32_t addr)
{
	uint32_t v;

	host_wr(h, E82545_EERD, addr << 8 | E82545_EERD_START);
	v = host_rd(h, E82545_EERD);
	ATF_CHECK_EQ(E82545_EERD_DONE, v & 0xff);
	ATF_CHECK_EQ(addr, v >> 8 & 0xff);
	return (v >> 16);
}

TEST(contents, "MAC address, checksum and IDs, through EECD and through EERD")
{
	struct host *h;
	uint16_t sum, words[NWORDS];
	int i;

	h = host_create(HOST_RAM);
	ATF_CHECK_EQ(0, host_rd(h, E82545_EECD) & E82545_EECD_SIZE);
	ATF_CHECK((host_rd(h, E82545_EECD) & E82545_EECD_PRES) != 0);
	mw_acquire(h);
	sum = 0;
	for (i = 0; i < NWORDS; i++) {
		words[i] = mw_read(h, i);
		sum += words[i];
		ATF_CHECK_EQ_MSG(words[i], eerd(h, i), "word %#x", i);
	}
	mw_release(h);
	ATF_CHECK_EQ(0xbaba, sum);
	for (i = 0; i < 6; i++)
		ATF_CHECK_EQ(host_mac[i], words[i / 2] >> i % 2 * 8 & 0xff);
	/* Subsystem, device, vendor; the signature of a valid EEPROM. */
	ATF_CHECK_EQ(0x1008, words[0x0b]);
	ATF_CHECK_EQ(0x8086, words[0x0c]);
	ATF_CHECK_EQ(0x100f, words[0x0d]);
	ATF_CHECK_EQ(0x8086, words[0x0e]);
	ATF_CHECK_EQ(0x4000, words[0x0a] & 0xc000);
	/* LED settings: erased, so that the driver chooses. */
	ATF_CHECK_EQ(0xffff, words[0x04]);
	/* Drivers print a version other than this one. */
	ATF_CHECK_EQ(0, words[0x05]);
	/* No wake on LAN. */
	ATF_CHECK_EQ(0, words[0x24] & 0x0400);
	/* The EEPROM decodes six bits of the address. */
	ATF_CHECK_EQ(words[5], eerd(h, 64 + 5));
	ATF_CHECK_EQ(words[63], eerd(h, 255));
	/* Without START nothing is read. */
	host_wr(h, E82545_EERD, 3 << 8);
	ATF_CHECK_EQ(3 << 8, host_rd(h, E82545_EERD));
	host_destroy(h);
}

TEST(access, "EECD without a request; reading several words at once")
{
	struct host *h;
	uint32_t eecd;

	h = host_create(HOST_RAM);
	/* Without a request there is no grant, and the wires stay low. */
	host_wr(h, E82545_EECD, CS | SK | DI);
	eecd = host_rd(h, E82545_EECD);
	ATF_CHECK_EQ(0, eecd & (CS | SK | DI | DO | E82545_EECD_GNT));
	/* A read goes on with the next word, from the last to the first. */
	mw_acquire(h);
	host_set(h, E82545_EECD, CS);
	eecd_out(h, 6, 3);
	eecd_out(h, 63, 6);
	ATF_CHECK_EQ(eerd(h, 63), eecd_in(h, 16));
	ATF_CHECK_EQ(eerd(h, 0), eecd_in(h, 16));
	ATF_CHECK_EQ(eerd(h, 1), eecd_in(h, 16));
	mw_standby(h);
	/* Zeros before the start bit are ignored. */
	host_set(h, E82545_EECD, CS);
	eecd_out(h, 0, 7);
	eecd_out(h, 6, 3);
	eecd_out(h, 1, 6);
	ATF_CHECK_EQ(eerd(h, 1), eecd_in(h, 16));
	/* Deselecting aborts an instruction. */
	mw_standby(h);
	eecd_out(h, 6, 3);
	eecd_out(h, 1, 4);
	mw_standby(h);
	ATF_CHECK_EQ(eerd(h, 2), mw_read(h, 2));
	/* A clock that rises together with chip select is ignored. */
	host_clear(h, E82545_EECD, CS | SK | DI);
	host_set(h, E82545_EECD, CS | SK | DI);
	host_clear(h, E82545_EECD, SK | DI);
	ATF_CHECK_EQ(eerd(h, 3), mw_read(h, 3));
	/* Releasing the request aborts an instruction, too. */
	host_set(h, E82545_EECD, CS);
	eecd_out(h, 6, 3);
	mw_release(h);
	mw_acquire(h);
	ATF_CHECK_EQ(eerd(h, 2), mw_read(h, 2));
	host_destroy(h);
}

TEST(write, "Write, erase, enable, disable; contents survive a reset")
{
	struct host *h;
	uint16_t w10, w11;
	int i;

	h = host_create(HOST_RAM);
	w10 = eerd(h, 10);
	w11 = eerd(h, 11);
	mw_acquire(h);

	/* Writes are disabled. */
	WRITE(h, 10, 0x1234);
	ERASE(h, 10);
	ERAL(h);
	WRAL(h, 0x5555);
	ATF_CHECK_EQ(w10, mw_read(h, 10));
	ATF_CHECK_EQ(w11, mw_read(h, 11));

	EWEN(h);
	WRITE(h, 10, 0x1234);
	ATF_CHECK_EQ(0x1234, mw_read(h, 10));
	ATF_CHECK_EQ(w11, mw_read(h, 11));
	/* One bit short: not executed. */
	mw_command(h, (5 << 22 | 10 << 16 | 0x9999) >> 1, 24);
	ATF_CHECK_EQ(0x1234, mw_read(h, 10));
	ERASE(h, 10);
	ATF_CHECK_EQ(0xffff, mw_read(h, 10));
	EWDS(h);
	WRITE(h, 10, 0x1234);
	ATF_CHECK_EQ(0xffff, mw_read(h, 10));

	/* A reset loads the new address, and disables writes. */
	EWEN(h);
	WRITE(h, 0, 0x2202);
	WRITE(h, 2, 0x7766);
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	ATF_CHECK_EQ(0x12292202, host_rd(h, E82545_RAL(0)));
	ATF_CHECK_EQ(0x80007766, host_rd(h, E82545_RAH(0)));
	mw_acquire(h);
	ATF_CHECK_EQ(0x7766, mw_read(h, 2));
	WRITE(h, 2, 0);
	ATF_CHECK_EQ(0x7766, mw_read(h, 2));

	EWEN(h);
	WRAL(h, 0xabcd);
	for (i = 0; i < NWORDS; i++)
		ATF_CHECK_EQ(0xabcd, mw_read(h, i));
	ERAL(h);
	for (i = 0; i < NWORDS; i++)
		ATF_CHECK_EQ(0xffff, mw_read(h, i));
	/* Only the words are written. */
	WRAL(h, 0);
	WRITE(h, 10, 0x1234);
	ATF_CHECK_EQ(0x1234, mw_read(h, 10));
	host_destroy(h);
}

TEST(clock, "A bit is shifted when the clock rises while selected")
{
	struct host *h;
	uint16_t w2;

	h = host_create(HOST_RAM);
	w2 = eerd(h, 2);
	mw_acquire(h);
	host_set(h, E82545_EECD, CS);
	eecd_out(h, 6, 3);
	/* The clock stays high, and falls: no bits. */
	host_set(h, E82545_EECD, SK);
	host_set(h, E82545_EECD, SK);
	host_set(h, E82545_EECD, SK | DI);
	host_clear(h, E82545_EECD, DI | SK);
	eecd_out(h, 2, 5);
	ATF_CHECK_EQ(w2, eecd_in(h, 16));
	mw_standby(h);
	host_destroy(h);
}

TEST_PROGRAM
