/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The functions of bhyve's main program that device models call.
 */

#ifndef _BHYVERUN_H_
#define	_BHYVERUN_H_

#include <stddef.h>
#include <stdint.h>

struct vmctx;

/*
 * The host's address of guest memory [addr, addr + len), or NULL if some of the
 * range is not guest memory.
 */
void	*paddr_guest2host(struct vmctx *ctx, uintptr_t addr, size_t len);

#endif /* !_BHYVERUN_H_ */
