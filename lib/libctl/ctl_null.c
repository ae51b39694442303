/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The control socket: memory without a port, NR_REG_NULL.
 *
 * A program that registers this has no rings.  It maps a memory, and may have
 * extra buffers there.  That memory is one that there is, of the same user, or
 * for nr_mem_id 1, which is that of netmap's interfaces, one of its own.
 */

#include <sys/param.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "ctl_impl.h"
#include "ctl_memory.h"
#include "vale_layout.h"

_Static_assert(sizeof(struct vale_window) + sizeof(struct netmap_if) +
    2 * VALE_RINGS_MAX * sizeof(ssize_t) <= VALE_WINDOW_ALIGN,
    "a netmap_if is in the window");

/* What may be asked for. */
static int
null_check(struct ctl_conn *cc, const struct nmreq_register *reg)
{
	if ((reg->nr_flags & (NR_MONITOR_TX | NR_MONITOR_RX |
	    NR_ZCOPY_MON)) != 0)
		return (ctl_why(cc, EOPNOTSUPP, "there is nothing to monitor"));
	if (reg->nr_tx_rings > VALE_RINGS_MAX ||
	    reg->nr_rx_rings > VALE_RINGS_MAX)
		return (ctl_why(cc, EINVAL,
		    "a port has up to %u rings in each direction",
		    VALE_RINGS_MAX));
	return (0);
}

/* The memory, with a reference.  The table's lock. */
static int
null_memory(struct ctl_conn *cc, unsigned int id, struct ctl_memory **mmp)
{
	const struct nmreq_register reg = { .nr_mode = NR_REG_ALL_NIC };
	struct vale_params params;
	int error;

	if (id != 0 && id < CTL_MEMORY_FIRST) {
		ctl_port_params(&reg, &params);
		*mmp = ctl_memory_new(cc, &params, 0, 0);
		return (*mmp != NULL ? 0 : ctl_why_errno(cc, errno));
	}
	*mmp = ctl_memory_named(cc, id, &error);
	if (*mmp == NULL && error == 0)
		return (ctl_why(cc, EINVAL, "no memory is named"));
	if (*mmp != NULL)
		(*mmp)->mm_refs++;
	return (error);
}

/* Take a place in it.  The table's lock. */
static int
null_take(struct ctl_conn *cc, unsigned int id)
{
	struct ctl_memory *mm;
	unsigned int i;
	int error;

	error = null_memory(cc, id, &mm);
	if (error != 0)
		return (error);
	for (i = 0; i < CTL_NULLS && mm->mm_null[i]; i++)
		continue;
	if (i == CTL_NULLS) {
		ctl_memory_release(mm);
		return (ctl_why(cc, ENOSPC, "the memory has no place"));
	}
	mm->mm_null[i] = true;
	cc->cc_memory = mm;
	cc->cc_place = i;
	cc->cc_null = true;
	return (0);
}

int
ctl_null_register(struct ctl_conn *cc, size_t *size)
{
	struct nmreq_register *reg = cc->cc_body;
	int error = null_check(cc, reg);
	uint32_t first;

	if (error != 0)
		return (error);
	ctl_memories_lock();
	error = null_take(cc, reg->nr_mem_id);
	ctl_memories_unlock();
	if (error != 0)
		return (error);
	reg->nr_extra_bufs = ctl_memory_extra(cc, cc->cc_memory,
	    reg->nr_extra_bufs, &first);
	error = ctl_memory_window(cc, 0, 0, 0, first);
	if (error == 0)
		error = ctl_null_fds(cc);
	if (error != 0) {
		ctl_null_close(cc);
		return (ctl_why_errno(cc, error));
	}
	reg->nr_offset = VALE_WINDOW_OFFSET(ctl_memory_null_window(
	    cc->cc_memory, cc->cc_place));
	reg->nr_memsize = cc->cc_memory->mm_size;
	*size = sizeof(*reg);
	return (0);
}

int
ctl_null_fds(struct ctl_conn *cc)
{
	int error = ctl_reply_fd(cc, cc->cc_memory->mm_fd);

	return (error == 0 ? ctl_reply_fd(cc, cc->cc_window) : error);
}

void
ctl_null_close(struct ctl_conn *cc)
{
	ctl_memories_lock();
	cc->cc_memory->mm_null[cc->cc_place] = false;
	ctl_memory_release(cc->cc_memory);
	ctl_memories_unlock();
	if (cc->cc_window != -1)
		close(cc->cc_window);
	cc->cc_window = -1;
	cc->cc_null = false;
}
