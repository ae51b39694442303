/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The contents of the EEPROM, and that of the 82545EM as drivers access it
 * through EECD and EERD.
 *
 * That is a 93C46: 64 words on a Microwire bus of four wires (chip select,
 * clock, data in and data out).  Software drives the wires through EECD, bit
 * by bit, or has the adapter read a word for it through EERD.  A guest may
 * write the EEPROM; the contents survive every reset, and last as long as the
 * adapter.
 *
 * 8254x SDM chapter 5, sections 13.4.3 (EECD) and 13.4.4 (EERD).
 *
 * Everything here runs under reg_mtx.
 */

#include <string.h>

#include "e82545_eeprom.h"
#include "e82545_impl.h"
#include "e82545_salvage.h"
#include "e82545_snap.h"
#include "e82545_type.h"

#define	EEPROM_WORDS	E82545_EEPROM_SUMMED
#define	EEPROM_ADDR_BITS 6

/*
 * A Microwire instruction is a start bit, a two-bit opcode and an address.
 * The two high bits of the address select one of the extended instructions.
 */
#define	MW_EXTENDED	0
#define	 MW_EWDS	0	/* write disable */
#define	 MW_WRAL	1	/* write all words */
#define	 MW_ERAL	2	/* erase all words */
#define	 MW_EWEN	3	/* write enable */
#define	MW_WRITE	1
#define	MW_READ		2
#define	MW_ERASE	3

/*
 * Contents.
 */

size_t
e82545_eeprom_size(void)
{
	return (sizeof(struct e82545_eeprom));
}

void
e82545_eeprom_init(struct e82545_eeprom *ee, const struct e82545_type *type,
    const uint8_t mac[6], uint16_t subdevice)
{
	uint16_t sum = 0;
	size_t n;
	int i;

	memset(ee->words, 0xff, sizeof(ee->words));
	for (i = 0; i < 3; i++)
		ee->words[EEPROM_MAC + i] = mac[2 * i] | mac[2 * i + 1] << 8;
	ee->words[EEPROM_SUBDEVICE] = subdevice;
	for (n = 0; n < type->et_neeprom; n++)
		ee->words[type->et_eeprom[n].eew_word] =
		    type->et_eeprom[n].eew_value;
	for (i = 0; i < EEPROM_CHECKSUM; i++)
		sum += ee->words[i];
	ee->words[EEPROM_CHECKSUM] = E82545_EEPROM_SUM - sum;
}

uint16_t
e82545_eeprom_word(const struct e82545 *dev, unsigned int word)
{
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	return (dev->eeprom->words[word % EEPROM_WORDS]);
}

void
e82545_eeprom_store(struct e82545 *dev, unsigned int word, uint16_t value)
{
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	MPASS(word < EEPROM_WORDS);
	dev->eeprom->words[word] = value;
}

/*
 * The Microwire bus.
 */

/* Decode an instruction, whose opcode and address are complete. */
static void
mw_decode(struct e82545_eeprom *ee)
{
	ee->opcode = ee->shift >> EEPROM_ADDR_BITS & 3;
	ee->addr = ee->shift & (EEPROM_WORDS - 1);
	ee->nbits = 0;
	ee->state = EE_DONE;
	switch (ee->opcode) {
	case MW_READ:
		/* DO falls to 0 with the last bit of the address. */
		ee->data_out = false;
		ee->state = EE_DATA_OUT;
		break;
	case MW_WRITE:
		ee->state = EE_DATA_IN;
		break;
	case MW_EXTENDED:
		switch (ee->addr >> (EEPROM_ADDR_BITS - 2)) {
		case MW_EWEN:
			ee->write_enabled = true;
			break;
		case MW_EWDS:
			ee->write_enabled = false;
			break;
		case MW_WRAL:
			ee->state = EE_DATA_IN;
			break;
		}
		break;
	}
}

/* Take or give a bit: the clock rises while the chip is selected. */
static void
mw_clock(struct e82545_eeprom *ee, bool data_in)
{
	switch (ee->state) {
	case EE_IDLE:
		if (data_in) {
			ee->state = EE_COMMAND;
			/* A snapshot holds 16 bits of it. */
			ee->shift = 0;
			ee->nbits = 0;
		}
		break;
	case EE_COMMAND:
		ee->shift = ee->shift << 1 | data_in;
		if (++ee->nbits == 2 + EEPROM_ADDR_BITS)
			mw_decode(ee);
		break;
	case EE_DATA_OUT:
		ee->data_out = (ee->words[ee->addr] >>
		    (15 - ee->nbits) & 1) != 0;
		if (++ee->nbits == 16) {
			ee->nbits = 0;
			ee->addr = (ee->addr + 1) % EEPROM_WORDS;
		}
		break;
	case EE_DATA_IN:
		ee->shift = (ee->shift << 1 | data_in) & 0xffff;
		if (++ee->nbits == 16)
			ee->state = EE_DONE;
		break;
	case EE_DONE:
		break;
	}
}

/* Carry out an instruction that is complete, as chip select falls. */
static void
mw_deselect(struct e82545_eeprom *ee)
{
	unsigned int i;

	if (ee->state == EE_DONE && ee->write_enabled) {
		if (ee->opcode == MW_WRITE)
			ee->words[ee->addr] = ee->shift;
		else if (ee->opcode == MW_ERASE)
			ee->words[ee->addr] = 0xffff;
		else if (ee->opcode == MW_EXTENDED)
			switch (ee->addr >> (EEPROM_ADDR_BITS - 2)) {
			case MW_ERAL:
				memset(ee->words, 0xff, sizeof(ee->words));
				break;
			case MW_WRAL:
				for (i = 0; i < EEPROM_WORDS; i++)
					ee->words[i] = ee->shift;
				break;
			}
	}
	ee->state = EE_IDLE;
	/* High means ready when the chip is selected again. */
	ee->data_out = true;
}

void
e82545_eeprom_reset(struct e82545 *dev)
{
	struct e82545_eeprom *ee = dev->eeprom;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	ee->state = EE_IDLE;
	ee->write_enabled = false;
	ee->data_out = true;
}

#define	EECD_WIRES	(E82545_EECD_SK | E82545_EECD_CS | E82545_EECD_DI)

/* Grant each request at once: software is the only user of the EEPROM. */
uint32_t
e82545_eecd_read(struct e82545 *dev, uint32_t off)
{
	uint32_t eecd;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	eecd = e82545_reg(dev, off);
	if ((eecd & E82545_EECD_REQ) != 0) {
		eecd |= E82545_EECD_GNT;
		if (dev->eeprom->data_out)
			eecd |= E82545_EECD_DO;
	}
	return (eecd);
}

void
e82545_eecd_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	struct e82545_eeprom *ee = dev->eeprom;
	uint32_t old;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	/* Without a request the wires stay low. */
	if ((value & E82545_EECD_REQ) == 0)
		value &= ~EECD_WIRES;
	old = e82545_reg(dev, off);
	e82545_reg_set(dev, off, value);

	if ((old & E82545_EECD_CS) != 0 && (value & E82545_EECD_CS) == 0)
		mw_deselect(ee);
	if ((old & value & E82545_EECD_CS) != 0 &&
	    (old & E82545_EECD_SK) == 0 && (value & E82545_EECD_SK) != 0)
		mw_clock(ee, (value & E82545_EECD_DI) != 0);
}

/*
 * Read a word, which completes at once.  The EEPROM decodes six bits of the
 * address.
 */
void
e82545_eerd_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	uint32_t data;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	if ((value & E82545_EERD_START) == 0) {
		e82545_reg_set(dev, off, value & E82545_EERD_ADDR_MASK);
		return;
	}
	data = e82545_eeprom_word(dev, E82545_EERD_ADDR(value));
	e82545_reg_set(dev, off, data << E82545_EERD_DATA_SHIFT |
	    (value & E82545_EERD_ADDR_MASK) | E82545_EERD_DONE);
}

static unsigned int
mw_bits(enum eeprom_state state)
{
	switch (state) {
	case EE_COMMAND:
		return (2 + EEPROM_ADDR_BITS - 1);
	case EE_DATA_OUT:
	case EE_DATA_IN:
		return (15);
	default:
		return (16);
	}
}

const struct e82545_eeprom_bus e82545_microwire = { mw_bits, MW_ERASE,
    EEPROM_WORDS - 1 };

void
e82545_eeprom_snap(struct e82545 *dev, struct e82545_snap *s)
{
	const struct e82545_eeprom_bus *bus = dev->type->et_bus;
	struct e82545_eeprom *ee = dev->eeprom;
	uint8_t state;
	int i;

	for (i = 0; i < EEPROM_WORDS; i++)
		e82545_snap_u16(s, &ee->words[i], UINT16_MAX);
	e82545_snap_bool(s, &ee->write_enabled);
	state = ee->state;
	e82545_snap_u8(s, &state, EE_DONE);
	ee->state = state;
	e82545_snap_u32(s, &ee->nbits, bus->eb_bits(ee->state));
	e82545_snap_u32(s, &ee->shift, UINT16_MAX);
	e82545_snap_u32(s, &ee->opcode, bus->eb_opcode);
	e82545_snap_u32(s, &ee->addr, bus->eb_addr);
	e82545_snap_bool(s, &ee->data_out);
}

/* Take over the state: a bit is counted before the state changes. */
bool
e82545_eeprom_salvage(struct e82545 *dev, const struct e82545 *old)
{
	const struct e82545_eeprom *from = old->eeprom;
	struct e82545_eeprom *ee = dev->eeprom;

	*ee = *from;
	ee->write_enabled = e82545_salvage_bool(&from->write_enabled);
	ee->data_out = e82545_salvage_bool(&from->data_out);
	if ((unsigned int)ee->state > EE_DONE)
		return (false);
	ee->nbits = MIN(ee->nbits, dev->type->et_bus->eb_bits(ee->state));
	return (true);
}
