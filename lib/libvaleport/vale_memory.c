/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* The memory of ports and pipes of other processes: vale_memory.h. */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/systm.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vale_grant.h"
#include "vale_memory.h"
#include "vale_pipe.h"
#include "vale_shared.h"
#include "peer_close.h"
#include "peer_fd.h"

struct vale_memory *vale_memories[VALE_MEMORIES];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t limit_all = UINT64_MAX, limit_user = UINT64_MAX;

void
vale_memory_limits(uint64_t all, uint64_t user)
{
	limit_all = all;
	limit_user = user;
}

void
vale_memory_lock(void)
{
	pthread_mutex_lock(&table_lock);
}

void
vale_memory_unlock(void)
{
	pthread_mutex_unlock(&table_lock);
}

size_t
vale_memory_pipe_size(const uint32_t slots[2])
{
	struct vale_pipe_layout pl;

	vale_pipe_layout(&pl, slots);
	return (pl.pl_size);
}

/* Return the bytes of a window. */
static size_t
window_size(uint32_t rings, uint32_t slots)
{
	struct vale_window_layout wl;

	vale_window_layout(&wl, rings, slots, slots);
	return (wl.wl_size);
}

size_t
vale_memory_pipe_window(const struct vale_memory *mm, unsigned int pipe,
    unsigned int end)
{
	return (mm->mm_windows + (2 * pipe + end) * window_size(1,
	    mm->mm_pipe_slots));
}

size_t
vale_memory_null_window(const struct vale_memory *mm, unsigned int place)
{
	return (vale_memory_pipe_window(mm, VALE_PIPES, 0) +
	    place * window_size(0, 0));
}

/* Lay it out.  Extra buffers are given out in pages. */
static void
memory_layout(struct vale_memory *mm, uint32_t slots)
{
	const struct vale_params *params = &mm->mm_params;
	struct vale_region_layout rl;

	vale_shared_layout(&rl, params, mm->mm_extra_bufs);
	mm->mm_port_size = rl.rl_size;
	mm->mm_bufs = rl.rl_bufs;
	mm->mm_used = roundup2(mm->mm_port_size, VALE_PAGE);
	slots = MAX(slots, MAX(params->tx_slots, params->rx_slots));
	slots = MIN(MAX(slots, VALE_SLOTS_DEFAULT), VALE_PIPE_SLOTS_MAX);
	mm->mm_pipe_slots = slots;
	mm->mm_windows = roundup2(mm->mm_used + VALE_PIPES *
	    vale_memory_pipe_size((uint32_t[2]){ slots, slots }) +
	    VALE_EXTRA * VALE_PAGE, VALE_WINDOW_ALIGN);
	mm->mm_size = vale_memory_null_window(mm, VALE_NULLS);
}

size_t
vale_memory_size(const struct vale_params *params)
{
	struct vale_memory mm = { .mm_params = *params };

	memory_layout(&mm, 0);
	return (mm.mm_size);
}

static int
memory_create(struct vale_memory *mm)
{
	struct stat st;
	int error;

	mm->mm_fd = peer_memory_new("vale", mm->mm_size);
	if (mm->mm_fd == -1)
		return (errno);
	if (peer_fstat(mm->mm_fd, &st) == 0) {
		mm->mm_dev = st.st_dev;
		mm->mm_ino = st.st_ino;
		return (0);
	}
	error = errno;
	close(mm->mm_fd);
	return (error);
}

/* Charge what the memory may come to use besides.  The table's lock. */
static int
memory_charge(struct vale_grant *gr, struct vale_memory *mm, uint64_t bytes)
{
	uint64_t all = bytes, user = bytes;
	unsigned int i;

	for (i = 0; i < VALE_MEMORIES; i++) {
		if (vale_memories[i] == NULL)
			continue;
		all += vale_memories[i]->mm_charged;
		if (vale_memories[i]->mm_uid == mm->mm_uid)
			user += vale_memories[i]->mm_charged;
	}
	if (!mm->mm_admin && user > limit_user)
		return (vale_grant_why(gr, ENOMEM, "this user's ports may not "
		    "have more memory: user_mem= of valed's -c"));
	if (all > limit_all)
		return (vale_grant_why(gr, ENOMEM, "ports may not have more "
		    "memory: mem= of valed's -c"));
	mm->mm_charged += bytes;
	return (0);
}

struct vale_memory *
vale_memory_new(struct vale_grant *gr, const struct vale_params *params,
    uint32_t extra_bufs, uint32_t slots)
{
	struct vale_memory *mm;
	unsigned int i;
	int error;

	for (i = 0; i < VALE_MEMORIES && vale_memories[i] != NULL; i++)
		continue;
	MPASS(i < VALE_MEMORIES);
	mm = calloc(1, sizeof(*mm));
	if (mm == NULL)
		return (NULL);
	mm->mm_index = i;
	mm->mm_uid = gr->gr_uid;
	mm->mm_admin = gr->gr_admin;
	mm->mm_monitor = params->monitor != 0;
	mm->mm_params = *params;
	mm->mm_extra_bufs = extra_bufs;
	memory_layout(mm, slots);
	error = memory_charge(gr, mm, mm->mm_used +
	    vale_shared_private(params));
	if (error == 0)
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
	vale_memories[i] = mm;
	return (mm);
}

static size_t
memory_more(const struct vale_memory *mm)
{
	return (mm->mm_used - mm->mm_port_size);
}

size_t
vale_memory_more(const struct vale_memory *mm)
{
	size_t more;

	vale_memory_lock();
	more = memory_more(mm);
	vale_memory_unlock();
	return (more);
}

/* Let slots of the port have the buffers that have been given out. */
static void
memory_grown(struct vale_memory *mm)
{
	if (mm->mm_desc != NULL)
		vale_shared_more(mm->mm_desc, memory_more(mm));
}

size_t
vale_memory_take(struct vale_grant *gr, struct vale_memory *mm, size_t size)
{
	const size_t at = mm->mm_used;
	int error;

	MPASS(at + size <= mm->mm_windows);
	error = memory_charge(gr, mm, size);
	if (error != 0) {
		errno = error;
		return (0);
	}
	mm->mm_used = at + size;
	memory_grown(mm);
	return (at);
}

void
vale_memory_release(struct vale_memory *mm)
{
	if (--mm->mm_refs > 0)
		return;
	vale_memories[mm->mm_index] = NULL;
	close(mm->mm_fd);
	pthread_mutex_destroy(&mm->mm_lock);
	free(mm);
}

bool
vale_memory_own(const struct vale_grant *gr, const struct vale_memory *mm)
{
	return (mm->mm_uid == gr->gr_uid);
}

/* Find the memory of a descriptor that was passed, or NULL. */
static struct vale_memory *
memory_proved(const struct vale_grant *gr)
{
	struct vale_memory *mm;
	struct stat st;
	unsigned int i;

	/* The look at a memfd does not wait for a file system. */
	if (gr->gr_npassed != 1 ||
	    peer_fd_kind(gr->gr_passed[0]) != PEER_FD_MEMORY ||
	    peer_fstat(gr->gr_passed[0], &st) == -1)
		return (NULL);
	for (i = 0; i < VALE_MEMORIES; i++) {
		mm = vale_memories[i];
		if (mm != NULL && !mm->mm_monitor &&
		    mm->mm_dev == st.st_dev && mm->mm_ino == st.st_ino)
			return (mm);
	}
	return (NULL);
}

/* Find the memory with this nr_mem_id, or NULL. */
static struct vale_memory *
memory_by_id(unsigned int id)
{
	unsigned int i;

	for (i = 0; i < VALE_MEMORIES; i++)
		if (vale_memories[i] != NULL && !vale_memories[i]->mm_monitor &&
		    VALE_MEMORY_ID(vale_memories[i]) == id)
			return (vale_memories[i]);
	return (NULL);
}

struct vale_memory *
vale_memory_named(struct vale_grant *gr, unsigned int id, int *error)
{
	struct vale_memory *mm = memory_proved(gr);

	*error = 0;
	if (mm != NULL && (id == 0 || id == VALE_MEMORY_ID(mm)))
		return (mm);
	if (id == 0)
		return (NULL);
	mm = memory_by_id(id);
	if (mm == NULL) {
		*error = vale_grant_why(gr, EINVAL, "there is no memory %u",
		    id);
		return (NULL);
	}
	if (!vale_memory_own(gr, mm)) {
		*error = vale_grant_why(gr, EPERM, "memory %u is another "
		    "user's, and the request has no descriptor of it", id);
		return (NULL);
	}
	return (mm);
}

/* Link `n' buffers from `first' on.  False: there is no memory for them. */
static bool
extra_link(const struct vale_memory *mm, uint32_t first, uint32_t n)
{
	const size_t at = mm->mm_bufs + (size_t)first * VALE_BUF_SIZE;
	uint32_t i, next;

	for (i = 0; i < n; i++) {
		next = i + 1 < n ? first + i + 1 : 0;
		if (pwrite(mm->mm_fd, &next, sizeof(next), at +
		    (size_t)i * VALE_BUF_SIZE) != sizeof(next))
			return (false);
	}
	return (true);
}

uint32_t
vale_memory_extra(struct vale_grant *gr, struct vale_memory *mm, uint32_t n,
    uint32_t *first)
{
	size_t at = 0;

	*first = 0;
	vale_memory_lock();
	n = MIN(n, VALE_EXTRA - mm->mm_extra_used);
	if (n > 0)
		at = vale_memory_take(gr, mm, roundup2((size_t)n *
		    VALE_BUF_SIZE, VALE_PAGE));
	if (at != 0)
		mm->mm_extra_used += n;
	vale_memory_unlock();
	if (at == 0) {
		/* This is no error. */
		gr->gr_why[0] = '\0';
		return (0);
	}
	*first = (at - mm->mm_bufs) / VALE_BUF_SIZE;
	if (extra_link(mm, *first, n))
		return (n);
	*first = 0;
	return (0);
}

int
vale_memory_window(struct vale_grant *gr, uint32_t rings, uint32_t tx_slots,
    uint32_t rx_slots, uint32_t extra)
{
	const struct vale_window vv = { .vv_bufs = gr->gr_memory->mm_bufs,
	    .vv_end = gr->gr_memory->mm_windows,
	    .vv_pipe = gr->gr_pipe != NULL ? gr->gr_pipe->cpi_at : 0,
	    .vv_extra = extra };
	struct vale_window_layout wl;
	int fd;

	vale_window_layout(&wl, rings, tx_slots, rx_slots);
	fd = peer_memory_new("vale-window", wl.wl_size);
	if (fd == -1)
		return (errno);
	if (pwrite(fd, &vv, sizeof(vv), 0) != sizeof(vv)) {
		close(fd);
		return (ENOMEM);
	}
	gr->gr_window = fd;
	return (0);
}

struct vale_memory *
vale_memory_find(const struct vale_grant *gr, const char *name, bool other)
{
	struct vale_memory *found = NULL, *mm;
	unsigned int i;

	for (i = 0; i < VALE_MEMORIES; i++) {
		mm = vale_memories[i];
		if (mm == NULL || strcmp(mm->mm_name, name) != 0 ||
		    vale_memory_own(gr, mm) == other)
			continue;
		if (mm->mm_port)
			return (mm);
		if (!other)
			found = mm;
	}
	return (found);
}

/* Return whether such a port can be where an earlier one was. */
static bool
memory_fits(const struct vale_memory *mm, const struct vale_params *params,
    uint32_t extra_bufs)
{
	/* Extra buffers of the earlier port may be anywhere. */
	return (mm->mm_extra_bufs == 0 && extra_bufs == 0 &&
	    mm->mm_params.tx_slots == params->tx_slots &&
	    mm->mm_params.rx_slots == params->rx_slots &&
	    mm->mm_params.rings == params->rings);
}

struct vale_memory *
vale_memory_open(struct vale_grant *gr, const char *name,
    const struct vale_params *params, uint32_t extra_bufs)
{
	struct vale_memory *mm;

	vale_memory_lock();
	mm = name != NULL ? vale_memory_find(gr, name, false) : NULL;
	if (mm != NULL && mm->mm_port) {
		mm = NULL;
		errno = EBUSY;
	} else if (mm != NULL && memory_fits(mm, params, extra_bufs)) {
		mm->mm_refs++;
		mm->mm_port = true;
	} else {
		mm = vale_memory_new(gr, params, extra_bufs, 0);
		if (mm != NULL)
			mm->mm_port = true;
	}
	vale_memory_unlock();
	return (mm);
}

void
vale_memory_opened(struct vale_memory *mm, struct vale_desc *port,
    size_t more)
{
	vale_memory_lock();
	strlcpy(mm->mm_name, port->common->name, sizeof(mm->mm_name));
	mm->mm_desc = port;
	/* While it was opened, a pipe may have been. */
	if (memory_more(mm) != more)
		memory_grown(mm);
	vale_memory_unlock();
}

void
vale_memory_closing(struct vale_memory *mm)
{
	vale_memory_lock();
	mm->mm_desc = NULL;
	vale_memory_unlock();
}

void
vale_memory_closed(struct vale_memory *mm)
{
	vale_memory_lock();
	mm->mm_port = false;
	vale_memory_release(mm);
	vale_memory_unlock();
}
