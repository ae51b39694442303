/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What device models use of bhyve's main program.
 */

#ifndef _BHYVERUN_H_
#define	_BHYVERUN_H_

#include <stddef.h>
#include <stdint.h>

struct vmctx;

/*
 * The host's address of [addr, addr + len) of guest memory, NULL if any of it
 * is none.
 */
void	*paddr_guest2host(struct vmctx *ctx, uintptr_t addr, size_t len);

#endif /* !_BHYVERUN_H_ */
