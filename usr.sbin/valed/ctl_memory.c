/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* The control socket: memory of ports and pipes.  See ctl_memory.h. */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/systm.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl_memory.h"
#include "vale_layout.h"
#include "vale_pipe.h"
#include "vfu_dma.h"

struct ctl_memory *ctl_memories[CTL_MAX];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t table_closed = PTHREAD_COND_INITIALIZER;

void
ctl_memories_lock(void)
{
	pthread_mutex_lock(&table_lock);
}

void
ctl_memories_unlock(void)
{
	pthread_mutex_unlock(&table_lock);
}

/* Lay it out. */
static void
memory_layout(struct ctl_memory *mm, uint32_t slots)
{
	const struct vale_params *params = &mm->mm_params;
	struct vale_pipe_layout pl;

	mm->mm_port_size = vale_shared_size(params, mm->mm_extra_bufs);
	mm->mm_bufs = vale_shared_bufs(params);
	mm->mm_pipes = roundup2(mm->mm_port_size, VFU_DMA_PAGE);
	slots = MAX(slots, MAX(params->tx_slots, params->rx_slots));
	slots = MIN(MAX(slots, VALE_SLOTS_DEFAULT), VALE_PIPE_SLOTS_MAX);
	vale_pipe_layout(&pl, (uint32_t[2]){ slots, slots });
	mm->mm_pipe_slots = slots;
	mm->mm_pipe_size = pl.pl_size;
	mm->mm_nulls = mm->mm_pipes + CTL_PIPES * mm->mm_pipe_size;
	mm->mm_extra = mm->mm_nulls + CTL_NULLS * VFU_DMA_PAGE;
	mm->mm_size = mm->mm_extra + CTL_EXTRA * VALE_BUF_SIZE;
}

size_t
ctl_memory_size(const struct vale_params *params)
{
	struct ctl_memory mm = { .mm_params = *params };

	memory_layout(&mm, 0);
	return (mm.mm_size);
}

static int
memory_create(struct ctl_memory *mm)
{
	int error;

	mm->mm_fd = memfd_create("vale", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (mm->mm_fd == -1)
		return (errno);
	if (ftruncate(mm->mm_fd, mm->mm_size) == 0 && fcntl(mm->mm_fd,
	    F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		return (0);
	error = errno;
	close(mm->mm_fd);
	return (error);
}

struct ctl_memory *
ctl_memory_new(const struct vale_params *params, uint32_t extra_bufs,
    uint32_t slots)
{
	struct ctl_memory *mm;
	unsigned int i;
	int error;

	for (i = 0; i < CTL_MAX && ctl_memories[i] != NULL; i++)
		continue;
	MPASS(i < CTL_MAX);
	mm = calloc(1, sizeof(*mm));
	if (mm == NULL)
		return (NULL);
	mm->mm_index = i;
	mm->mm_params = *params;
	mm->mm_extra_bufs = extra_bufs;
	memory_layout(mm, slots);
	error = memory_create(mm);
	if (error == 0) {
		error = pthread_mutex_init(&mm->mm_lock, NULL);
		if (error != 0)
			close(mm->mm_fd);
	}
	if (error != 0) {
		free(mm);
		errno = error;
		return (NULL);
	}
	mm->mm_refs = 1;
	ctl_memories[i] = mm;
	return (mm);
}

void
ctl_memory_release(struct ctl_memory *mm)
{
	if (--mm->mm_refs > 0)
		return;
	ctl_memories[mm->mm_index] = NULL;
	close(mm->mm_fd);
	pthread_mutex_destroy(&mm->mm_lock);
	free(mm);
}

struct ctl_memory *
ctl_memory_by_id(unsigned int id)
{
	if (id < CTL_MEMORY_FIRST || id >= CTL_MEMORY_FIRST + CTL_MAX)
		return (NULL);
	return (ctl_memories[id - CTL_MEMORY_FIRST]);
}

/* Write an index of the memory.  Returns whether it could be. */
static bool
extra_write(const struct ctl_memory *mm, uint32_t idx, size_t at)
{
	return (pwrite(mm->mm_fd, &idx, sizeof(idx), at) == sizeof(idx));
}

uint32_t
ctl_memory_extra(struct ctl_memory *mm, size_t nifp, uint32_t n)
{
	const size_t head = nifp + offsetof(struct netmap_if, ni_bufs_head);
	uint32_t first, i;
	size_t at;

	ctl_memories_lock();
	n = MIN(n, CTL_EXTRA - mm->mm_extra_used);
	at = mm->mm_extra + mm->mm_extra_used * VALE_BUF_SIZE;
	mm->mm_extra_used += n;
	ctl_memories_unlock();
	first = (at - mm->mm_bufs) / VALE_BUF_SIZE;
	for (i = 0; i < n; i++)
		if (!extra_write(mm, i + 1 < n ? first + i + 1 : 0,
		    at + i * VALE_BUF_SIZE))
			break;
	/* There is no memory for all of them. */
	if (i < n || !extra_write(mm, n > 0 ? first : 0, head))
		return (0);
	return (n);
}

struct ctl_memory *
ctl_memory_find(const char *name)
{
	struct ctl_memory *found = NULL, *mm;
	unsigned int i;

	for (i = 0; i < CTL_MAX; i++) {
		mm = ctl_memories[i];
		if (mm == NULL || strcmp(mm->mm_name, name) != 0)
			continue;
		if (mm->mm_port)
			return (mm);
		found = mm;
	}
	return (found);
}

/* Whether such a port can be where an earlier one was, or its place is. */
static bool
memory_fits(const struct ctl_memory *mm, const struct vale_params *params,
    uint32_t extra_bufs)
{
	/* Extra buffers of the earlier port may be anywhere. */
	return (mm->mm_extra_bufs == 0 && extra_bufs == 0 &&
	    mm->mm_params.tx_slots == params->tx_slots &&
	    mm->mm_params.rx_slots == params->rx_slots &&
	    mm->mm_params.rings == params->rings);
}

struct ctl_memory *
ctl_memory_open(const char *name, const struct vale_params *params,
    uint32_t extra_bufs)
{
	struct ctl_memory *mm;

	ctl_memories_lock();
	do {
		mm = name != NULL ? ctl_memory_find(name) : NULL;
	} while (mm != NULL && mm->mm_closing &&
	    pthread_cond_wait(&table_closed, &table_lock) == 0);
	if (mm != NULL && mm->mm_port) {
		mm = NULL;
		errno = EBUSY;
	} else if (mm != NULL && memory_fits(mm, params, extra_bufs)) {
		mm->mm_refs++;
		mm->mm_port = true;
	} else {
		mm = ctl_memory_new(params, extra_bufs, 0);
		if (mm != NULL)
			mm->mm_port = true;
	}
	ctl_memories_unlock();
	return (mm);
}

void
ctl_memory_opened(struct ctl_memory *mm, const char *name)
{
	ctl_memories_lock();
	memcpy(mm->mm_name, name, strlen(name) + 1);
	ctl_memories_unlock();
}

void
ctl_memory_closing(struct ctl_memory *mm)
{
	ctl_memories_lock();
	mm->mm_closing = true;
	ctl_memories_unlock();
}

void
ctl_memory_closed(struct ctl_memory *mm)
{
	ctl_memories_lock();
	mm->mm_port = mm->mm_closing = false;
	ctl_memory_release(mm);
	pthread_cond_broadcast(&table_closed);
	ctl_memories_unlock();
}
