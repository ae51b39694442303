/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The registers of the 82545EM according to the 8254x SDM, table 13-2 and
 * chapter 13, to compare the model with; and the comparison, of any adapter's
 * table with the model.
 */

#ifndef _E82545_REGS_H_
#define	_E82545_REGS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "e82545_host.h"

#define	ALL	0xffffffff

/* Whether a register has side effects. */
enum reg_kind {
	REG_RW,		/* kept under the mask */
	REG_RO,		/* ignores writes */
	REG_RC,		/* statistics: cleared when read */
	REG_FX,		/* writing has effects: tested one by one */
};

struct reg {
	uint32_t	off;		/* bytes */
	uint16_t	count, stride;	/* elements, bytes between them */
	const char	*name;
	uint32_t	reset;		/* with the address host_mac */
	uint32_t	mask;		/* bits that can be written */
	enum reg_kind	kind;
};

extern const struct reg regs[];
extern const size_t nregs;

/* Registers that both adapters have alike. */
#define	REGS_COMMON							\
	{ 0x0014, 1, 4, "EERD", 0, 0, REG_FX },				\
	{ 0x001c, 1, 4, "FLA", 0, 0x00000017, REG_RW },			\
	{ 0x0020, 1, 4, "MDIC", 0x10000000, 0, REG_FX },		\
	{ 0x0038, 1, 4, "VET", 0x8100, 0xffff, REG_RW },		\
	{ 0x00c0, 1, 4, "ICR", 0, 0, REG_FX },				\
	{ 0x00c4, 1, 4, "ITR", 0, 0xffff, REG_RW },			\
	{ 0x00c8, 1, 4, "ICS", 0, 0, REG_FX },				\
	{ 0x00d0, 1, 4, "IMS", 0, 0, REG_FX },				\
	{ 0x00d8, 1, 4, "IMC", 0, 0, REG_FX },				\
	{ 0x0170, 1, 4, "FCTTV", 0, 0xffff, REG_RW },			\
	{ 0x0178, 1, 4, "TXCW", 0, 0xc000ffff, REG_RW },		\
	{ 0x2160, 1, 4, "FCRTL", 0, 0x8000fff8, REG_RW },		\
	{ 0x2168, 1, 4, "FCRTH", 0, 0xfff8, REG_RW },			\
	{ 0x2410, 5, 8, "RDFH..RDFPC", 0, 0x1fff, REG_RW },		\
	{ 0x2800, 1, 4, "RDBAL", 0, 0xfffffff0, REG_RW },		\
	{ 0x2804, 1, 4, "RDBAH", 0, ALL, REG_RW },			\
	{ 0x2808, 1, 4, "RDLEN", 0, 0x000fff80, REG_RW },		\
	{ 0x2810, 1, 4, "RDH", 0, 0xffff, REG_RW },			\
	{ 0x2818, 1, 4, "RDT", 0, 0xffff, REG_RW },			\
	{ 0x2820, 1, 4, "RDTR", 0, 0xffff, REG_RW },			\
	{ 0x2828, 1, 4, "RXDCTL", 0x00010000, 0x013f3f3f, REG_RW },	\
	{ 0x282c, 1, 4, "RADV", 0, 0xffff, REG_RW },			\
	{ 0x2c00, 1, 4, "RSRPD", 0, 0x0fff, REG_RW },			\
	{ 0x3800, 1, 4, "TDBAL", 0, 0xfffffff0, REG_RW },		\
	{ 0x3804, 1, 4, "TDBAH", 0, ALL, REG_RW },			\
	{ 0x3808, 1, 4, "TDLEN", 0, 0x000fff80, REG_RW },		\
	{ 0x3810, 1, 4, "TDH", 0, 0xffff, REG_RW },			\
	{ 0x3818, 1, 4, "TDT", 0, 0xffff, REG_RW },			\
	{ 0x3820, 1, 4, "TIDV", 0, 0xffff, REG_RW },			\
	{ 0x382c, 1, 4, "TADV", 0, 0xffff, REG_RW },			\
	{ 0x4000, 9, 4, "CRCERRS..LATECOL", 0, 0, REG_RC },		\
	{ 0x4028, 1, 4, "COLC", 0, 0, REG_RC },				\
	{ 0x4030, 5, 4, "DC..RLEC", 0, 0, REG_RC },			\
	{ 0x4048, 15, 4, "XONRXC..GPTC", 0, 0, REG_RC },		\
	{ 0x4088, 4, 4, "GORC, GOTC", 0, 0, REG_RO },			\
	{ 0x40a0, 8, 4, "RNBC..MGTPTC", 0, 0, REG_RC },			\
	{ 0x40c0, 4, 4, "TOR, TOT", 0, 0, REG_RO },			\
	{ 0x40d0, 12, 4, "TPR..TSCTFC", 0, 0, REG_RC },			\
	{ 0x5200, 128, 4, "MTA", 0, ALL, REG_RW },			\
	{ 0x5400, 1, 4, "RAL0", 0x12290c00, ALL, REG_RW },		\
	{ 0x5404, 1, 4, "RAH0", 0x80005634, 0x8003ffff, REG_RW },	\
	{ 0x5408, 15, 8, "RAL", 0, ALL, REG_RW },			\
	{ 0x540c, 15, 8, "RAH", 0, 0x8003ffff, REG_RW },		\
	{ 0x5600, 128, 4, "VFTA", 0, ALL, REG_RW },			\
	{ 0x5800, 1, 4, "WUC", 0, 0x0b, REG_RW },			\
	{ 0x5808, 1, 4, "WUFC", 0, 0x000f80ff, REG_RW },		\
	{ 0x5810, 1, 4, "WUS", 0, 0, REG_RO },				\
	{ 0x5820, 1, 4, "MANC", 0, ALL, REG_RW },			\
	{ 0x5838, 1, 4, "IPAV", 0, 0x0001000f, REG_RW },		\
	{ 0x5840, 4, 8, "IP4AT", 0, ALL, REG_RW },			\
	{ 0x5880, 4, 4, "IP6AT", 0, ALL, REG_RW },			\
	{ 0x5900, 1, 4, "WUPL", 0, 0, REG_RO },				\
	{ 0x5a00, 32, 4, "WUPM", 0, 0, REG_RO },			\
	{ 0x9000, 128, 8, "FFMT", 0, 0x0f, REG_RW },			\
	{ 0x9800, 128, 8, "FFVT", 0, ALL, REG_RW }

/* What is written to see which bits a register keeps. */
extern const uint32_t reg_patterns[4];

/* All registers of a table: line `i', element `j', at offset `o'. */
#define	FOREACH_ROW(rows, n, i, j, o)					\
	for (i = 0; i < (n); i++)					\
		for (j = 0; j < (rows)[i].count && (o =			\
		    (rows)[i].off + j * (rows)[i].stride, true); j++)
#define	FOREACH_REG(i, j, o)	FOREACH_ROW(regs, nregs, i, j, o)

/* Check that each register has its value after reset. */
void	check_reset_rows(struct host *h, const struct reg *rows, size_t n);
void	check_reset_values(struct host *h);
/*
 * Check that as well, that each register keeps its writable bits, and no others,
 * and that other offsets read as 0 and ignore writes.  Registers have their
 * values after reset then.
 */
void	check_registers(struct host *h, const struct reg *rows, size_t n);

/*
 * Shift `n' bits, the first one first, into the EEPROM through EECD, or out of
 * it.
 */
void	eecd_out(struct host *h, uint32_t bits, int n);
uint32_t eecd_in(struct host *h, int n);

/* Registers of the PHY through MDIC. */
uint16_t reg_phy_rd(struct host *h, unsigned int reg);
void	reg_phy_wr(struct host *h, unsigned int reg, uint16_t value);

/* Registers through IOADDR and IODATA. */
uint32_t reg_io_rd(struct host *h, uint32_t off);
void	reg_io_wr(struct host *h, uint32_t off, uint32_t value);

/*
 * Add to a statistics register, as the rings do; a pair is named by its low
 * half.
 */
void	reg_count(struct host *h, uint32_t off, uint64_t n);
void	reg_count64(struct host *h, uint32_t off, uint64_t n);

#endif /* !_E82545_REGS_H_ */
