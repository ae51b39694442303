/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Files as clients share them, for tests of peer_mem.h.  One thread. */

#ifndef _GUEST_MEMORY_H_
#define	_GUEST_MEMORY_H_

#include <stdbool.h>
#include <stddef.h>

#include "peer_mem.h"

#define	PAGE		PEER_MEM_PAGE
#define	RW		(PROT_READ | PROT_WRITE)
#define	HUGE		(2UL << 20)
#define	SEALS		(F_SEAL_SHRINK | F_SEAL_GROW)

/*
 * A memfd of `size' bytes with these flags and seals.  Skips the test if there
 * are no huge pages.
 */
int	memory(unsigned int flags, size_t size, int seals);

/* Let two seconds pass: files without ranges are unmapped. */
void	drop_idle(struct peer_mem *dma);

/* Whether something is mapped at `p', the start of a page. */
bool	is_mapped(void *p);

#endif /* !_GUEST_MEMORY_H_ */
