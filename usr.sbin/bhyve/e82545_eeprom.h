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
