/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Memory without a port, NR_REG_NULL: vale_grant.h.
 *
 * A program that registers this has no rings.  It maps a memory, and may have
 * extra buffers there.  That memory is one that there is, of the same user, or
 * for nr_mem_id 1, which is that of netmap's interfaces, one of its own.
 */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "vale_grant.h"
#include "vale_memory.h"
#include "vale_layout.h"

_Static_assert(sizeof(struct vale_window) + sizeof(struct netmap_if) +
    2 * VALE_RINGS_MAX * sizeof(ssize_t) <= VALE_WINDOW_ALIGN,
    "a netmap_if is in the window");

/* Check what is asked for. */
static int
null_check(struct vale_grant *gr, const struct nmreq_register *reg)
{
	if ((reg->nr_flags & (NR_MONITOR_TX | NR_MONITOR_RX |
	    NR_ZCOPY_MON)) != 0)
		return (vale_grant_why(gr, EOPNOTSUPP,
		    "there is nothing to monitor"));
	if (reg->nr_tx_rings > VALE_RINGS_MAX ||
	    reg->nr_rx_rings > VALE_RINGS_MAX)
		return (vale_grant_why(gr, EINVAL,
		    "a port has up to %u rings in each direction",
		    VALE_RINGS_MAX));
	return (0);
}

/* Find or make the memory, with a reference.  The table's lock. */
static int
null_memory(struct vale_grant *gr, unsigned int id, struct vale_memory **mmp)
{
	const struct nmreq_register reg = { .nr_mode = NR_REG_ALL_NIC };
	struct vale_params params;
	int error;

	if (id != 0 && id < VALE_MEMORY_FIRST) {
		vale_grant_params(&reg, &params);
		*mmp = vale_memory_new(gr, &params, 0, 0);
		return (*mmp != NULL ? 0 : vale_grant_why_errno(gr, errno));
	}
	*mmp = vale_memory_named(gr, id, &error);
	if (*mmp == NULL && error == 0)
		return (vale_grant_why(gr, EINVAL, "no memory is named"));
	if (*mmp != NULL)
		(*mmp)->mm_refs++;
	return (error);
}

/* Take a place in the memory.  The table's lock. */
static int
null_take(struct vale_grant *gr, unsigned int id)
{
	struct vale_memory *mm;
	unsigned int i;
	int error;

	error = null_memory(gr, id, &mm);
	if (error != 0)
		return (error);
	for (i = 0; i < VALE_NULLS && mm->mm_null[i]; i++)
		continue;
	if (i == VALE_NULLS) {
		vale_memory_release(mm);
		return (vale_grant_why(gr, ENOSPC, "the memory has no place"));
	}
	mm->mm_null[i] = true;
	gr->gr_memory = mm;
	gr->gr_place = i;
	gr->gr_null = true;
	return (0);
}

int
vale_grant_null(struct vale_grant *gr, struct nmreq_register *reg)
{
	int error = null_check(gr, reg);
	uint32_t first;

	if (error != 0)
		return (error);
	vale_memory_lock();
	error = null_take(gr, reg->nr_mem_id);
	vale_memory_unlock();
	if (error != 0)
		return (error);
	reg->nr_extra_bufs = vale_memory_extra(gr, gr->gr_memory,
	    reg->nr_extra_bufs, &first);
	error = vale_memory_window(gr, 0, 0, 0, first);
	if (error == 0)
		error = vale_grant_null_fds(gr);
	if (error != 0) {
		vale_grant_null_close(gr);
		return (vale_grant_why_errno(gr, error));
	}
	reg->nr_offset = VALE_WINDOW_OFFSET(vale_memory_null_window(
	    gr->gr_memory, gr->gr_place));
	reg->nr_memsize = gr->gr_memory->mm_size;
	return (0);
}

int
vale_grant_null_fds(struct vale_grant *gr)
{
	int error = vale_grant_reply(gr, gr->gr_memory->mm_fd);

	return (error == 0 ? vale_grant_reply(gr, gr->gr_window) : error);
}

void
vale_grant_null_close(struct vale_grant *gr)
{
	vale_memory_lock();
	gr->gr_memory->mm_null[gr->gr_place] = false;
	vale_memory_release(gr->gr_memory);
	vale_memory_unlock();
	if (gr->gr_window != -1)
		close(gr->gr_window);
	gr->gr_window = -1;
	gr->gr_null = false;
}

int
vale_grant_null_info(struct vale_grant *gr, struct nmreq_port_info_get *info)
{
	const struct nmreq_register reg = { .nr_mode = NR_REG_ALL_NIC };
	const struct vale_memory *mm;
	struct vale_params params;
	int error;

	if (info->nr_mem_id < VALE_MEMORY_FIRST) {
		vale_grant_params(&reg, &params);
		info->nr_memsize = vale_memory_size(&params);
		info->nr_mem_id = 1;
		return (0);
	}
	vale_memory_lock();
	mm = vale_memory_named(gr, info->nr_mem_id, &error);
	if (mm != NULL)
		info->nr_memsize = mm->mm_size;
	vale_memory_unlock();
	return (error);
}
