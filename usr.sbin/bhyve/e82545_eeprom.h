/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The EEPROM: e82545_eeprom.c.  reg_mtx held throughout.
 */

#ifndef _E82545_EEPROM_H_
#define	_E82545_EEPROM_H_

#include <stddef.h>
#include <stdint.h>

struct e82545;
struct e82545_eeprom;
struct e82545_type;

/* Words, of all adapters: 8254x SDM table 5-2, 82574 datasheet chapter 6. */
#define	EEPROM_MAC	0x00	/* to 0x02 */
#define	EEPROM_COMPAT	0x03
#define	 EEPROM_COMPAT_SERVER	0x0400
#define	EEPROM_VERSION	0x05	/* of the image; drivers print any but 0 */
#define	EEPROM_PBA	0x08	/* and 0x09: part number of the board */
#define	EEPROM_INIT1	0x0a
#define	 EEPROM_INIT1_IDS	0x0003	/* the next four words are valid */
#define	 EEPROM_INIT1_PM	0x0008	/* power management */
#define	 EEPROM_INIT1_FD	0x0400	/* full duplex */
#define	 EEPROM_INIT1_VALID	0x4000	/* signature of a valid EEPROM */
#define	EEPROM_SUBDEVICE	0x0b
#define	EEPROM_SUBVENDOR	0x0c
#define	EEPROM_DEVICE	0x0d
#define	EEPROM_VENDOR	0x0e
#define	EEPROM_INIT2	0x0f
#define	 EEPROM_INIT2_PAUSE	0x3000	/* supports flow control */
#define	EEPROM_PCIE_CTRL 0x1b	/* of an 82574L */
#define	 EEPROM_PCIE_MSIX(n)	(((n) - 1) << 7)	/* vectors */
#define	EEPROM_INIT3	0x24
#define	EEPROM_CHECKSUM	0x3f

struct e82545_eeprom_word {
	uint16_t	eew_word;
	uint16_t	eew_value;
};

size_t	e82545_eeprom_size(void);	/* bytes of struct e82545_eeprom */
/* Fill an EEPROM: its station address and PCI subsystem device ID. */
void	e82545_eeprom_init(struct e82545_eeprom *ee,
	    const struct e82545_type *type, const uint8_t mac[6],
	    uint16_t subdevice);
/* Device reset: aborts an instruction and disables writes, keeps contents. */
void	e82545_eeprom_reset(struct e82545 *dev);
/* EECD and EERD, as the register table calls them. */
uint32_t e82545_eecd_read(struct e82545 *dev, uint32_t off);
void	e82545_eecd_write(struct e82545 *dev, uint32_t off, uint32_t value);
void	e82545_eerd_write(struct e82545 *dev, uint32_t off, uint32_t value);
/* EEPROM word `word', 0 to 63.  A reset loads RAL0 and RAH0 from 0 to 2. */
uint16_t e82545_eeprom_word(const struct e82545 *dev, unsigned int word);
void	e82545_eeprom_store(struct e82545 *dev, unsigned int word,
	    uint16_t value);

#endif /* !_E82545_EEPROM_H_ */
