/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Filters of monitors: programs of classic BPF, vale_filter.c.
 */

#ifndef _VALE_FILTER_H_
#define	_VALE_FILTER_H_

#include <stdbool.h>
#include <stdint.h>

#include "libvale.h"
#include "vale_txq.h"

/*
 * Return whether a program of `n' instructions can be run: there are 1 to
 * VALE_FILTER_MAX, libvale.h lists each, no jump leads out of the program, and
 * the last instruction returns.  The instructions may be anything.  Any thread.
 */
bool	vale_filter_valid(const struct vale_insn *insns, uint32_t n);

/*
 * Run a valid program on a frame of a batch, which is not empty.  Returns what
 * the program does: 0 if the frame does not pass.  A program ends with 0, too,
 * where it reads behind the frame's end or divides by zero.
 *
 * The sending thread.  Takes at most one step for each instruction.  Others may
 * change the frame meanwhile: a byte that the program reads twice may differ.
 */
uint32_t vale_filter_run(const struct vale_insn *insns,
	    const struct vale_frag *frame);

#endif /* !_VALE_FILTER_H_ */
