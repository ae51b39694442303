/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* guest_memory.h. */

#include <sys/param.h>
#include <sys/mman.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "guest_memory.h"

int
memory(unsigned int flags, size_t size, int seals)
{
	int fd;

	fd = memfd_create("guest", MFD_ALLOW_SEALING | flags);
	if (fd == -1 && flags == MFD_HUGETLB)
		atf_tc_skip("no huge pages: %s", strerror(errno));
	ATF_REQUIRE_MSG(fd != -1, "memfd_create: %s", strerror(errno));
	ATF_REQUIRE_EQ(0, ftruncate(fd, size));
	if (seals != 0)
		ATF_REQUIRE_EQ(0, fcntl(fd, F_ADD_SEALS, seals));
	return (fd);
}

void
drop_idle(struct peer_mem *dma)
{
	int i;

	for (i = 0; i < 2; i++) {
		(void)peer_mem_idle(dma);
		peer_mem_drop(dma);
	}
}

bool
is_mapped(void *p)
{
	return (msync(p, PAGE, MS_ASYNC) == 0);
}
