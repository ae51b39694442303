/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The EEPROM of the 82574L, as drivers access it through EECD, EERD and EEWR.
 *
 * It is an AT25010: 128 bytes on an SPI bus, with addresses of one byte.
 * Software drives the wires through EECD, bit by bit, or has the adapter read
 * or write a word for it.  A word has its low byte first.
 *
 * The chip is selected while CS is 0, takes a bit when the clock rises, and
 * shows its own next bit when the clock falls.  A byte that was shifted in is
 * written at once, as far as its page of eight bytes, and then from the page's
 * first byte on.  Of the status register there is one bit, WEN: no part of the
 * EEPROM is protected, and a write takes no time.
 *
 * Drivers differ in whether they request access, so the wires lead to the
 * EEPROM without a request, too.
 *
 * 82574 datasheet, EECD, EERD and EEWR; Atmel AT25010 datasheet, instructions.
 *
 * Everything here runs under reg_mtx.
 */

#include "e82545_eeprom.h"
#include "e82545_impl.h"
#include "e82574.h"

#define	SPI_BYTES	(2 * E82545_EEPROM_SUMMED)
#define	SPI_PAGE	8	/* bytes */

/* Opcodes; bit 3 is the ninth bit of larger EEPROMs' addresses. */
#define	SPI_WRITE	2
#define	SPI_READ	3
#define	SPI_WRDI	4
#define	SPI_RDSR	5
#define	SPI_WREN	6
#define	SPI_OPCODE	0x07
#define	SPI_ADDR_8	0x08

#define	SPI_STATUS_WEN	0x02

static void
spi_begin(struct e82545_eeprom *ee, enum eeprom_state state)
{
	ee->state = state;
	ee->nbits = 0;
}

/* Decode the opcode, which is complete. */
static void
spi_opcode(struct e82545_eeprom *ee)
{
	ee->opcode = ee->shift & SPI_OPCODE;
	switch (ee->shift & ~SPI_ADDR_8) {
	case SPI_READ:
	case SPI_WRITE:
		/* The address follows. */
		break;
	case SPI_RDSR:
		spi_begin(ee, EE_DATA_OUT);
		break;
	case SPI_WREN:
	case SPI_WRDI:
		ee->write_enabled = ee->opcode == SPI_WREN;
		/* FALLTHROUGH */
	default:
		spi_begin(ee, EE_DONE);
	}
}

static uint8_t
spi_byte(const struct e82545_eeprom *ee)
{
	if (ee->opcode == SPI_RDSR)
		return (ee->write_enabled ? SPI_STATUS_WEN : 0);
	return (ee->words[ee->addr / 2] >> 8 * (ee->addr % 2));
}

static void
spi_store(struct e82545_eeprom *ee)
{
	const unsigned int shift = 8 * (ee->addr % 2);
	uint16_t *word = &ee->words[ee->addr / 2];

	if (ee->write_enabled)
		*word = (*word & ~(0xff << shift)) |
		    (ee->shift & 0xff) << shift;
	ee->addr = (ee->addr & ~(SPI_PAGE - 1)) |
	    ((ee->addr + 1) & (SPI_PAGE - 1));
}

/* Take a bit: the clock rises while the chip is selected. */
static void
spi_rise(struct e82545_eeprom *ee, bool data_in)
{
	switch (ee->state) {
	case EE_IDLE:
		spi_begin(ee, EE_COMMAND);
		ee->shift = 0;
		/* FALLTHROUGH */
	case EE_COMMAND:
		ee->shift = (ee->shift << 1 | data_in) & 0xffff;
		if (++ee->nbits == 8)
			spi_opcode(ee);
		else if (ee->nbits == 16) {
			ee->addr = ee->shift & (SPI_BYTES - 1);
			spi_begin(ee, ee->opcode == SPI_READ ? EE_DATA_OUT :
			    EE_DATA_IN);
		}
		break;
	case EE_DATA_IN:
		ee->shift = (ee->shift << 1 | data_in) & 0xffff;
		if (++ee->nbits == 8) {
			spi_store(ee);
			ee->nbits = 0;
		}
		break;
	case EE_DATA_OUT:
	case EE_DONE:
		break;
	}
}

/* Give a bit: the clock falls while the chip is selected. */
static void
spi_fall(struct e82545_eeprom *ee)
{
	if (ee->state != EE_DATA_OUT)
		return;
	ee->data_out = (spi_byte(ee) >> (7 - ee->nbits) & 1) != 0;
	if (++ee->nbits == 8) {
		ee->nbits = 0;
		ee->addr = (ee->addr + 1) & (SPI_BYTES - 1);
	}
}

/*
 * End an instruction, as chip select falls.  A write disables further writes.
 */
static void
spi_deselect(struct e82545_eeprom *ee)
{
	if (ee->state == EE_DATA_IN)
		ee->write_enabled = false;
	spi_begin(ee, EE_IDLE);
}

static unsigned int
spi_bits(enum eeprom_state state)
{
	return (state == EE_COMMAND ? 15 : 7);
}

const struct e82545_eeprom_bus e82574_spi = { spi_bits, SPI_OPCODE,
    SPI_BYTES - 1 };

/* Grant each request at once.  DO is driven while the EEPROM sends. */
uint32_t
e82574_eecd_read(struct e82545 *dev, uint32_t off)
{
	uint32_t eecd;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	/* Guests can write DO, in vain. */
	eecd = (e82545_reg(dev, off) & ~E82545_EECD_DO) | E82574_EECD_ADDR_1;
	if ((eecd & E82545_EECD_REQ) != 0)
		eecd |= E82545_EECD_GNT;
	if (dev->eeprom->state == EE_DATA_OUT && dev->eeprom->data_out)
		eecd |= E82545_EECD_DO;
	return (eecd);
}

void
e82574_eecd_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	struct e82545_eeprom *ee = dev->eeprom;
	const uint32_t changed = e82545_reg(dev, off) ^ value;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	e82545_reg_set(dev, off, value);
	if ((value & E82545_EECD_CS) != 0) {
		spi_deselect(ee);
		return;
	}
	/* A clock that changes with the selection is none. */
	if ((changed & (E82545_EECD_CS | E82545_EECD_SK)) != E82545_EECD_SK)
		return;
	if ((value & E82545_EECD_SK) != 0)
		spi_rise(ee, (value & E82545_EECD_DI) != 0);
	else
		spi_fall(ee);
}

/* Read a word, which completes at once, and fails if there is no such word. */
void
e82574_eerd_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	const uint32_t word = E82574_EERW_ADDR(value);
	uint32_t result = value & E82574_EERW_ADDR_MASK;

	if ((value & E82574_EERW_START) != 0 && word < E82545_EEPROM_SUMMED)
		result |= E82574_EERW_DONE | (uint32_t)e82545_eeprom_word(dev,
		    word) << E82574_EERW_DATA_SHIFT;
	e82545_reg_set(dev, off, result);
}

void
e82574_eewr_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	const uint32_t word = E82574_EERW_ADDR(value);
	uint32_t result = value & ~(E82574_EERW_START | E82574_EERW_DONE);

	if ((value & E82574_EERW_START) != 0 && word < E82545_EEPROM_SUMMED) {
		e82545_eeprom_store(dev, word, E82574_EERW_DATA(value));
		result |= E82574_EERW_DONE;
	}
	e82545_reg_set(dev, off, result);
}
