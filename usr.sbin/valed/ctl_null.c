/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The control socket: memory without a port, NR_REG_NULL.
 *
 * A program that registers this has no rings.  It maps a memory, and may have
 * extra buffers there.  That memory is one that there is, or for nr_mem_id 1,
 * which is that of netmap's interfaces, one of its own.
 */

#include <sys/param.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "ctl_impl.h"
#include "ctl_memory.h"
#include "vale_layout.h"

_Static_assert(sizeof(struct netmap_if) + 2 * VALE_RINGS_MAX *
    sizeof(ssize_t) <= VFU_DMA_PAGE, "a netmap_if is on a page");

/* What may be asked for. */
static int
null_check(struct ctl_conn *cc, const struct nmreq_register *reg)
{
	if (reg->nr_mem_id == 0)
		return (ctl_why(cc, EINVAL, "no memory is named"));
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
static struct ctl_memory *
null_memory(unsigned int id)
{
	const struct nmreq_register reg = { .nr_mode = NR_REG_ALL_NIC };
	struct vale_params params;
	struct ctl_memory *mm;

	if (id < CTL_MEMORY_FIRST) {
		ctl_port_params(&reg, &params);
		return (ctl_memory_new(&params, 0, 0));
	}
	mm = ctl_memory_by_id(id);
	if (mm == NULL)
		errno = EINVAL;
	else
		mm->mm_refs++;
	return (mm);
}

/* Take a place in it.  The table's lock. */
static int
null_take(struct ctl_conn *cc, unsigned int id)
{
	struct ctl_memory *mm = null_memory(id);
	unsigned int i;

	if (mm == NULL)
		return (errno);
	for (i = 0; i < CTL_NULLS && mm->mm_null[i]; i++)
		continue;
	if (i == CTL_NULLS) {
		ctl_memory_release(mm);
		return (ENOSPC);
	}
	mm->mm_null[i] = true;
	cc->cc_memory = mm;
	cc->cc_place = i;
	cc->cc_null = true;
	return (0);
}

static size_t
null_at(const struct ctl_conn *cc)
{
	return (cc->cc_memory->mm_nulls + cc->cc_place * VFU_DMA_PAGE);
}

/* A netmap_if whose rings are nowhere. */
static int
null_init(const struct ctl_conn *cc, const struct nmreq_register *reg)
{
	_Alignas(struct netmap_if) char page[VFU_DMA_PAGE] = { 0 };
	struct netmap_if *nifp = (void *)page;

	vale_nifp_init(nifp, cc->cc_wire->vw_header.nr_name, 0);
	VALE_LAYOUT_SET(uint32_t, nifp->ni_tx_rings, reg->nr_tx_rings);
	VALE_LAYOUT_SET(uint32_t, nifp->ni_rx_rings, reg->nr_rx_rings);
	return (pwrite(cc->cc_memory->mm_fd, page, sizeof(page), null_at(cc)) ==
	    (ssize_t)sizeof(page) ? 0 : ENOMEM);
}

int
ctl_null_register(struct ctl_conn *cc, size_t *size)
{
	struct nmreq_register *reg = cc->cc_body;
	int error = null_check(cc, reg);

	if (error != 0)
		return (error);
	ctl_memories_lock();
	error = null_take(cc, reg->nr_mem_id);
	ctl_memories_unlock();
	if (error == EINVAL)
		return (ctl_why(cc, error, "there is no memory %u",
		    reg->nr_mem_id));
	if (error == 0) {
		error = null_init(cc, reg);
		if (error == 0)
			error = ctl_reply_fd(cc, cc->cc_memory->mm_fd);
		if (error != 0)
			ctl_null_close(cc);
	}
	if (error != 0)
		return (ctl_why(cc, error, "%s", error == ENOSPC ?
		    "the memory has no place" : strerror(error)));
	reg->nr_offset = null_at(cc);
	reg->nr_memsize = cc->cc_memory->mm_size;
	reg->nr_extra_bufs = ctl_memory_extra(cc->cc_memory, reg->nr_offset,
	    reg->nr_extra_bufs);
	*size = sizeof(*reg);
	return (0);
}

void
ctl_null_close(struct ctl_conn *cc)
{
	ctl_memories_lock();
	cc->cc_memory->mm_null[cc->cc_place] = false;
	ctl_memory_release(cc->cc_memory);
	ctl_memories_unlock();
	cc->cc_null = false;
	cc->cc_memory = NULL;
}
