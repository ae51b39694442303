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
 * Check that each register keeps its writable bits, and no others.  It has its
 * value after reset then.
 */
void	check_writable(struct host *h, const struct reg *rows, size_t n);
/* Check that other offsets read as 0 and ignore writes. */
void	check_nowhere(struct host *h, const struct reg *rows, size_t n);

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
