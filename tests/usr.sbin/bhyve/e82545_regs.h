/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The registers of the 82545EM according to the 8254x SDM, table 13-2 and
 * chapter 13, to compare the model with.
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

/* All registers: line `i' of the table, element `j', at offset `o'. */
#define	FOREACH_REG(i, j, o)						\
	for (i = 0; i < nregs; i++)					\
		for (j = 0; j < regs[i].count &&			\
		    (o = regs[i].off + j * regs[i].stride, true); j++)

/* Check that each register has its value after reset. */
void	check_reset_values(struct host *h);

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
