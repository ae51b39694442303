/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The EEPROM: e82545_eeprom.c has its contents, and the Microwire bus of the
 * 82545EM; e82574_eeprom.c the SPI bus of the 82574L.  reg_mtx held throughout.
 */

#ifndef _E82545_EEPROM_H_
#define	_E82545_EEPROM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "e82545_impl.h"

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

/* An instruction on its bus. */
enum eeprom_state {
	EE_IDLE,		/* waiting for its first bit */
	EE_COMMAND,		/* shifting in opcode and address */
	EE_DATA_OUT,		/* shifting out data */
	EE_DATA_IN,		/* shifting in data to write */
	EE_DONE,		/* complete; waiting for deselection */
};

/* Only the two files of the buses know what is in it. */
struct e82545_eeprom {
	uint16_t	words[E82545_EEPROM_SUMMED];
	bool		write_enabled;

	enum eeprom_state state;
	uint32_t	nbits;		/* shifted so far in this state */
	uint32_t	shift;		/* 16 bits */
	uint32_t	opcode, addr;
	bool		data_out;	/* the level of DO */
};

/* What the state of an instruction can be, for snapshots. */
struct e82545_eeprom_bus {
	/*
	 * Return the most bits that a state has shifted before the next begins.
	 */
	unsigned int	(*eb_bits)(enum eeprom_state state);
	uint32_t	eb_opcode;	/* the largest opcode, */
	uint32_t	eb_addr;	/* and address */
};

extern const struct e82545_eeprom_bus e82545_microwire; /* e82545_eeprom.c */
extern const struct e82545_eeprom_bus e82574_spi;	/* e82574_eeprom.c */

size_t	e82545_eeprom_size(void);	/* bytes of struct e82545_eeprom */
/* Fill an EEPROM: its station address and PCI subsystem device ID. */
void	e82545_eeprom_init(struct e82545_eeprom *ee,
	    const struct e82545_type *type, const uint8_t mac[6],
	    uint16_t subdevice);
/* Reset: abort an instruction and disable writes; the contents stay. */
void	e82545_eeprom_reset(struct e82545 *dev);
/* Access EECD, EERD and EEWR, for the register tables. */
uint32_t e82545_eecd_read(struct e82545 *dev, uint32_t off);
void	e82545_eecd_write(struct e82545 *dev, uint32_t off, uint32_t value);
void	e82545_eerd_write(struct e82545 *dev, uint32_t off, uint32_t value);
uint32_t e82574_eecd_read(struct e82545 *dev, uint32_t off);
void	e82574_eecd_write(struct e82545 *dev, uint32_t off, uint32_t value);
void	e82574_eerd_write(struct e82545 *dev, uint32_t off, uint32_t value);
void	e82574_eewr_write(struct e82545 *dev, uint32_t off, uint32_t value);
/*
 * Return EEPROM word `word', 0 to 63.  A reset loads RAL0 and RAH0 from 0 to 2.
 */
uint16_t e82545_eeprom_word(const struct e82545 *dev, unsigned int word);
void	e82545_eeprom_store(struct e82545 *dev, unsigned int word,
	    uint16_t value);

#endif /* !_E82545_EEPROM_H_ */
