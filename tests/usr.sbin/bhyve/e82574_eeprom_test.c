/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The EEPROM of the 82574L as drivers use it: SPI through EECD.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <string.h>

#include <atf-c.h>

#include "e82545_check.h"
#include "e82545_host.h"
#include "e82545_regs.h"
#include "e82545_snap.h"
#include "test.h"

#define	SK	E82545_EECD_SK
#define	CS	E82545_EECD_CS
#define	DI	E82545_EECD_DI
#define	DO	E82545_EECD_DO

#define	WRSR	1
#define	WRITE	2
#define	READ	3
#define	WRDI	4
#define	RDSR	5
#define	WREN	6

/* End an instruction. */
static void
spi_standby(struct host *h)
{
	host_set(h, E82545_EECD, CS);
	host_clear(h, E82545_EECD, CS);
}

static uint8_t
spi_status(struct host *h)
{
	uint8_t v;

	eecd_out(h, RDSR, 8);
	v = eecd_in(h, 8);
	spi_standby(h);
	return (v);
}

static uint8_t
spi_read(struct host *h, unsigned int addr)
{
	uint8_t v;

	eecd_out(h, READ << 8 | addr, 16);
	v = eecd_in(h, 8);
	spi_standby(h);
	return (v);
}

static void
spi_command(struct host *h, uint32_t opcode)
{
	eecd_out(h, opcode, 8);
	spi_standby(h);
}

static uint16_t
nvm_read(struct host *h, unsigned int word)
{
	host_wr(h, E82545_EERD, word << 2 | 1);
	return (host_rd(h, E82545_EERD) >> 16);
}

/* As U-Boot does: it requests nothing, and reads several words at once. */
TEST(read, "Each word, from any address on, and from the last one to the first")
{
	struct host *h;
	unsigned int i;
	uint16_t sum = 0, v;

	h = host_create_82574(HOST_RAM);
	/* There is an EEPROM of 64 words, with addresses of one byte. */
	ATF_CHECK_EQ(0x8300, host_rd(h, E82545_EECD) & 0x1ff00);
	host_clear(h, E82545_EECD, CS | SK);
	ATF_CHECK_EQ(0, spi_status(h));
	eecd_out(h, READ << 8, 16);
	for (i = 0; i < 64; i++) {
		v = eecd_in(h, 8);
		v |= eecd_in(h, 8) << 8;
		ATF_CHECK_EQ_MSG(nvm_read(h, i), v, "%u", i);
		sum += v;
	}
	ATF_CHECK_EQ(0xbaba, sum);
	ATF_CHECK_EQ(host_mac[0], eecd_in(h, 8));
	ATF_CHECK_EQ(host_mac[1], eecd_in(h, 8));
	spi_standby(h);
	ATF_CHECK_EQ(host_mac[5], spi_read(h, 5));
	/*
	 * Seven bits of the address count; larger ones have one in the opcode.
	 */
	ATF_CHECK_EQ(host_mac[5], spi_read(h, 0x85));
	eecd_out(h, (READ | 8) << 8 | 4, 16);
	ATF_CHECK_EQ(host_mac[4], eecd_in(h, 8));
	host_destroy(h);
}

HOST_TEST(request, host_create_82574(HOST_RAM), "A request is granted; DO is "
    "low when the EEPROM does not send")
{
	ATF_CHECK_EQ(0x8310, host_rd(h, E82545_EECD));
	host_set(h, E82545_EECD, E82545_EECD_REQ | DO);
	ATF_CHECK_EQ(0x83d0, host_rd(h, E82545_EECD));
	/* Status 02: the last bit but one is high, until deselection. */
	spi_command(h, WREN);
	eecd_out(h, RDSR, 8);
	ATF_CHECK_EQ(0, eecd_in(h, 6));
	ATF_CHECK_EQ(0x83d8, host_rd(h, E82545_EECD));
	host_set(h, E82545_EECD, CS);
	ATF_CHECK_EQ(0, host_rd(h, E82545_EECD) & DO);
	host_clear(h, E82545_EECD, E82545_EECD_REQ);
	ATF_CHECK_EQ(0, host_rd(h, E82545_EECD) & E82545_EECD_GNT);
}

TEST(write, "A write is enabled before, wraps at the end of its page, and "
    "disables the next one")
{
	struct host *h;
	uint8_t old;

	h = host_create_82574(HOST_RAM);
	old = spi_read(h, 0x5e);
	eecd_out(h, WRITE << 16 | 0x5e << 8 | 0x12, 24);
	spi_standby(h);
	ATF_CHECK_EQ(old, spi_read(h, 0x5e));
	spi_command(h, WREN);
	ATF_CHECK_EQ(2, spi_status(h));
	spi_command(h, WRDI);
	ATF_CHECK_EQ(0, spi_status(h));
	spi_command(h, WREN);
	eecd_out(h, WRITE << 8 | 0x5e, 16);
	eecd_out(h, 0x1122, 16);
	eecd_out(h, 0x3344, 16);
	spi_standby(h);
	ATF_CHECK_EQ(0, spi_status(h));
	ATF_CHECK_EQ(0x2211, nvm_read(h, 0x2f));
	ATF_CHECK_EQ(0x4433, nvm_read(h, 0x2c));
	ATF_CHECK_EQ(0xff, spi_read(h, 0x60));
	/* Disabled again. */
	eecd_out(h, WRITE << 16 | 0x5e << 8 | 0x99, 24);
	spi_standby(h);
	ATF_CHECK_EQ(0x11, spi_read(h, 0x5e));
	/* Seven bits are no byte. */
	spi_command(h, WREN);
	eecd_out(h, WRITE << 8 | 0x5e, 16);
	eecd_out(h, 0x55, 7);
	spi_standby(h);
	ATF_CHECK_EQ(0x11, spi_read(h, 0x5e));
	/* Not even the status register protects it: there is no other bit. */
	spi_command(h, WREN);
	eecd_out(h, WRSR << 8 | 0x8c, 16);
	spi_standby(h);
	ATF_CHECK_EQ(2, spi_status(h));
	/* The address comes from it after a reset, which disables writes. */
	eecd_out(h, WRITE << 16 | 0 << 8 | 0x02, 24);
	spi_standby(h);
	spi_command(h, WREN);
	host_set(h, E82545_CTRL, E82545_CTRL_RST);
	ATF_CHECK_EQ(0x12290c02, host_rd(h, E82545_RAL(0)));
	ATF_CHECK_EQ(0, spi_status(h));
	host_destroy(h);
}

HOST_TEST(bus, host_create_82574(HOST_RAM), "What ends an instruction, and "
    "what is no bit of one")
{
	/* Deselected within opcode, address, and data. */
	eecd_out(h, READ, 5);
	spi_standby(h);
	eecd_out(h, READ << 4, 12);
	spi_standby(h);
	eecd_out(h, READ << 8, 16);
	(void)eecd_in(h, 3);
	spi_standby(h);
	ATF_CHECK_EQ(host_mac[3], spi_read(h, 3));
	/* While it is deselected there is no clock, nor with the selection. */
	host_set(h, E82545_EECD, CS);
	eecd_out(h, WREN, 8);
	host_set(h, E82545_EECD, SK);
	host_clear(h, E82545_EECD, CS);
	host_clear(h, E82545_EECD, SK);
	ATF_CHECK_EQ(host_mac[3], spi_read(h, 3));
	host_set(h, E82545_EECD, SK);
	host_set(h, E82545_EECD, CS);
	host_clear(h, E82545_EECD, SK);
	host_wr(h, E82545_EECD, SK);
	host_wr(h, E82545_EECD, 0);
	ATF_CHECK_EQ(host_mac[3], spi_read(h, 3));
	ATF_CHECK_EQ(0, spi_status(h));
	/* No instruction: what follows is none, either. */
	eecd_out(h, 0x07, 8);
	eecd_out(h, WREN, 8);
	spi_standby(h);
	eecd_out(h, 0x13, 8);
	eecd_out(h, 5, 8);
	ATF_CHECK_EQ(0, eecd_in(h, 8));
	spi_standby(h);
	/* Nor if the last one was a read. */
	(void)spi_read(h, 5);
	eecd_out(h, 0x13, 8);
	eecd_out(h, 5, 8);
	ATF_CHECK_EQ(0, eecd_in(h, 8));
	spi_standby(h);
	spi_command(h, WREN);
	eecd_out(h, 0x07 << 16 | 0x5e << 8 | 0x77, 24);
	spi_standby(h);
	ATF_CHECK_EQ(0xff, spi_read(h, 0x5e));
	spi_command(h, WRDI);
	eecd_out(h, WREN << 1, 8);
	spi_standby(h);
	ATF_CHECK_EQ(0, spi_status(h));
	/* A clock that does not change. */
	eecd_out(h, READ, 8);
	host_clear(h, E82545_EECD, SK);
	host_set(h, E82545_EECD, SK);
	host_set(h, E82545_EECD, SK | DI);
	host_clear(h, E82545_EECD, SK | DI);
	eecd_out(h, 1, 7);
	host_clear(h, E82545_EECD, SK | DI);
	ATF_CHECK_EQ(host_mac[1] >> 4, eecd_in(h, 4));
	host_set(h, E82545_EECD, DI);
	host_clear(h, E82545_EECD, DI);
	/* It stays high. */
	host_set(h, E82545_EECD, SK);
	host_set(h, E82545_EECD, SK | DI);
	ATF_CHECK_EQ(host_mac[1] >> 3 & 1,
	    (host_rd(h, E82545_EECD) & DO) != 0);
	host_clear(h, E82545_EECD, SK | DI);
	ATF_CHECK_EQ(host_mac[1] & 7, eecd_in(h, 3));
	/* A clock that rises together with the selection. */
	host_set(h, E82545_EECD, CS);
	host_wr(h, E82545_EECD, SK | DI);
	host_wr(h, E82545_EECD, 0);
	ATF_CHECK_EQ(host_mac[3], spi_read(h, 3));
	/* A reset ends it, too. */
	host_set(h, E82545_CTRL, E82545_CTRL_RST);
	ATF_CHECK_EQ(host_mac[3], spi_read(h, 3));
}

TEST(snapshot, "An instruction goes on after a restore; its state has limits")
{
	static const struct eeprom_limit t[] = {
		{ 0, SNAP_EE_NBITS, 7 }, { 1, SNAP_EE_NBITS, 15 },
		{ 2, SNAP_EE_NBITS, 7 },
		{ 3, SNAP_EE_NBITS, 7 }, { 4, SNAP_EE_NBITS, 7 },
		{ 0, SNAP_EE_SHIFT, 0xffff }, { 0, SNAP_EE_OPCODE, 7 },
		{ 0, SNAP_EE_ADDR, 127 },
	};
	uint8_t good[SNAP_EE_SIZE];
	struct host *h, *to;
	unsigned int bits, i;
	uint32_t n;

	h = host_create_82574(HOST_RAM);
	/* 16 bits of the instruction, then the byte. */
	for (bits = 0; bits <= 24; bits++) {
		n = MIN(bits, 16);
		eecd_out(h, (READ << 8 | 4) >> (16 - n), n);
		(void)eecd_in(h, bits - n);
		ATF_REQUIRE_EQ(SNAP_EE_SIZE, snap_part(h, e82545_eeprom_snap,
		    good, NULL, SNAP_EE_SIZE));
		to = host_create_82574(HOST_RAM);
		ATF_REQUIRE_EQ(SNAP_EE_SIZE, snap_part(to, e82545_eeprom_snap,
		    NULL, good, SNAP_EE_SIZE));
		eecd_out(to, (READ << 8 | 4) & ((1 << (16 - n)) - 1), 16 - n);
		i = 24 - MAX(bits, 16);
		ATF_CHECK_EQ_MSG(host_mac[4] & ((1 << i) - 1), eecd_in(to, i),
		    "%u", bits);
		ATF_CHECK_EQ_MSG(host_mac[5], eecd_in(to, 8), "%u", bits);
		host_destroy(to);
		spi_standby(h);
	}
	check_eeprom_limits(h, t, nitems(t), good);
	host_destroy(h);
}

TEST_PROGRAM
