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

#include "ctl_impl.h"
#include "ctl_memory.h"
#include "vale_pipe.h"
#include "vale_shared.h"
#include "peer_close.h"
#include "peer_fstat.h"

struct ctl_memory *ctl_memories[CTL_MAX];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t limit_all = UINT64_MAX, limit_user = UINT64_MAX;

void
ctl_memory_limits(uint64_t all, uint64_t user)
{
	limit_all = all;
	limit_user = user;
}

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

size_t
ctl_memory_pipe_size(const uint32_t slots[2])
{
	struct vale_pipe_layout pl;

	vale_pipe_layout(&pl, slots);
	return (pl.pl_size);
}

/* Bytes of a window. */
static size_t
window_size(uint32_t rings, uint32_t slots)
{
	struct vale_window_layout wl;

	vale_window_layout(&wl, rings, slots, slots);
	return (wl.wl_size);
}

size_t
ctl_memory_pipe_window(const struct ctl_memory *mm, unsigned int pipe,
    unsigned int end)
{
	return (mm->mm_windows + (2 * pipe + end) * window_size(1,
	    mm->mm_pipe_slots));
}

size_t
ctl_memory_null_window(const struct ctl_memory *mm, unsigned int place)
{
	return (ctl_memory_pipe_window(mm, CTL_PIPES, 0) +
	    place * window_size(0, 0));
}

/* Lay it out.  Extra buffers are given out in pages. */
static void
memory_layout(struct ctl_memory *mm, uint32_t slots)
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
	mm->mm_windows = roundup2(mm->mm_used + CTL_PIPES *
	    ctl_memory_pipe_size((uint32_t[2]){ slots, slots }) +
	    CTL_EXTRA * VALE_PAGE, VALE_WINDOW_ALIGN);
	mm->mm_size = ctl_memory_null_window(mm, CTL_NULLS);
}

size_t
ctl_memory_size(const struct vale_params *params)
{
	struct ctl_memory mm = { .mm_params = *params };

	memory_layout(&mm, 0);
	return (mm.mm_size);
}

/* A memfd of this size, which it keeps.  Returns an errno. */
static int
memfd_new(const char *name, size_t size, int *fdp)
{
	int error, fd;

	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd == -1)
		return (errno);
	if (ftruncate(fd, size) == 0 && fcntl(fd, F_ADD_SEALS,
	    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
		*fdp = fd;
		return (0);
	}
	error = errno;
	close(fd);
	return (error);
}

static int
memory_create(struct ctl_memory *mm)
{
	struct stat st;
	int error = memfd_new("vale", mm->mm_size, &mm->mm_fd);

	if (error != 0)
		return (error);
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
memory_charge(struct ctl_conn *cc, struct ctl_memory *mm, uint64_t bytes)
{
	uint64_t all = bytes, user = bytes;
	unsigned int i;

	for (i = 0; i < CTL_MAX; i++) {
		if (ctl_memories[i] == NULL)
			continue;
		all += ctl_memories[i]->mm_charged;
		if (ctl_memories[i]->mm_uid == mm->mm_uid)
			user += ctl_memories[i]->mm_charged;
	}
	if (!mm->mm_admin && user > limit_user)
		return (ctl_why(cc, ENOMEM, "this user's ports may not have "
		    "more memory: user_mem= of valed's -c"));
	if (all > limit_all)
		return (ctl_why(cc, ENOMEM, "ports may not have more memory: "
		    "mem= of valed's -c"));
	mm->mm_charged += bytes;
	return (0);
}

struct ctl_memory *
ctl_memory_new(struct ctl_conn *cc, const struct vale_params *params,
    uint32_t extra_bufs, uint32_t slots)
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
	mm->mm_uid = cc->cc_who.cw_uid;
	mm->mm_admin = cc->cc_who.cw_admin;
	mm->mm_monitor = params->monitor != 0;
	mm->mm_params = *params;
	mm->mm_extra_bufs = extra_bufs;
	memory_layout(mm, slots);
	error = memory_charge(cc, mm, mm->mm_used +
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
	ctl_memories[i] = mm;
	return (mm);
}

static size_t
memory_more(const struct ctl_memory *mm)
{
	return (mm->mm_used - mm->mm_port_size);
}

size_t
ctl_memory_more(const struct ctl_memory *mm)
{
	size_t more;

	ctl_memories_lock();
	more = memory_more(mm);
	ctl_memories_unlock();
	return (more);
}

/* Slots of the port may have the buffers that have been given out. */
static void
memory_grown(struct ctl_memory *mm)
{
	if (mm->mm_desc != NULL)
		vale_shared_more(mm->mm_desc, memory_more(mm));
}

size_t
ctl_memory_take(struct ctl_conn *cc, struct ctl_memory *mm, size_t size)
{
	const size_t at = mm->mm_used;
	int error;

	MPASS(at + size <= mm->mm_windows);
	error = memory_charge(cc, mm, size);
	if (error != 0) {
		errno = error;
		return (0);
	}
	mm->mm_used = at + size;
	memory_grown(mm);
	return (at);
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

bool
ctl_memory_own(const struct ctl_conn *cc, const struct ctl_memory *mm)
{
	return (mm->mm_uid == cc->cc_who.cw_uid);
}

/* The memory of a descriptor that was passed, or NULL. */
static struct ctl_memory *
memory_proved(const struct ctl_conn *cc)
{
	struct ctl_memory *mm;
	struct stat st;
	unsigned int i;

	/* The look at a memfd does not wait for a file system. */
	if (cc->cc_npassed != 1 ||
	    peer_fd_kind(cc->cc_passed[0]) != PEER_FD_MEMORY ||
	    peer_fstat(cc->cc_passed[0], &st) == -1)
		return (NULL);
	for (i = 0; i < CTL_MAX; i++) {
		mm = ctl_memories[i];
		if (mm != NULL && !mm->mm_monitor &&
		    mm->mm_dev == st.st_dev && mm->mm_ino == st.st_ino)
			return (mm);
	}
	return (NULL);
}

/* The memory with this nr_mem_id, or NULL. */
static struct ctl_memory *
memory_by_id(unsigned int id)
{
	unsigned int i;

	for (i = 0; i < CTL_MAX; i++)
		if (ctl_memories[i] != NULL && !ctl_memories[i]->mm_monitor &&
		    CTL_MEMORY_ID(ctl_memories[i]) == id)
			return (ctl_memories[i]);
	return (NULL);
}

struct ctl_memory *
ctl_memory_named(struct ctl_conn *cc, unsigned int id, int *error)
{
	struct ctl_memory *mm = memory_proved(cc);

	*error = 0;
	if (mm != NULL && (id == 0 || id == CTL_MEMORY_ID(mm)))
		return (mm);
	if (id == 0)
		return (NULL);
	mm = memory_by_id(id);
	if (mm == NULL) {
		*error = ctl_why(cc, EINVAL, "there is no memory %u", id);
		return (NULL);
	}
	if (!ctl_memory_own(cc, mm)) {
		*error = ctl_why(cc, EPERM, "memory %u is another user's, and "
		    "the request has no descriptor of it", id);
		return (NULL);
	}
	return (mm);
}

/* Link `n' buffers from `first' on.  False: there is no memory for them. */
static bool
extra_link(const struct ctl_memory *mm, uint32_t first, uint32_t n)
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
ctl_memory_extra(struct ctl_conn *cc, struct ctl_memory *mm, uint32_t n,
    uint32_t *first)
{
	size_t at = 0;

	*first = 0;
	ctl_memories_lock();
	n = MIN(n, CTL_EXTRA - mm->mm_extra_used);
	if (n > 0)
		at = ctl_memory_take(cc, mm, roundup2((size_t)n *
		    VALE_BUF_SIZE, VALE_PAGE));
	if (at != 0)
		mm->mm_extra_used += n;
	ctl_memories_unlock();
	if (at == 0) {
		/* It is no error. */
		cc->cc_wire->vw_why[0] = '\0';
		return (0);
	}
	*first = (at - mm->mm_bufs) / VALE_BUF_SIZE;
	if (extra_link(mm, *first, n))
		return (n);
	*first = 0;
	return (0);
}

int
ctl_memory_window(struct ctl_conn *cc, uint32_t rings, uint32_t tx_slots,
    uint32_t rx_slots, uint32_t extra)
{
	const struct vale_window vv = { .vv_bufs = cc->cc_memory->mm_bufs,
	    .vv_end = cc->cc_memory->mm_windows,
	    .vv_pipe = cc->cc_pipe != NULL ? cc->cc_pipe->cpi_at : 0,
	    .vv_extra = extra };
	struct vale_window_layout wl;
	int error, fd;

	vale_window_layout(&wl, rings, tx_slots, rx_slots);
	error = memfd_new("vale-window", wl.wl_size, &fd);
	if (error != 0)
		return (error);
	if (pwrite(fd, &vv, sizeof(vv), 0) != sizeof(vv)) {
		close(fd);
		return (ENOMEM);
	}
	cc->cc_window = fd;
	return (0);
}

struct ctl_memory *
ctl_memory_find(const struct ctl_conn *cc, const char *name, bool other)
{
	struct ctl_memory *found = NULL, *mm;
	unsigned int i;

	for (i = 0; i < CTL_MAX; i++) {
		mm = ctl_memories[i];
		if (mm == NULL || strcmp(mm->mm_name, name) != 0 ||
		    ctl_memory_own(cc, mm) == other)
			continue;
		if (mm->mm_port)
			return (mm);
		if (!other)
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
ctl_memory_open(struct ctl_conn *cc, const char *name,
    const struct vale_params *params, uint32_t extra_bufs)
{
	struct ctl_memory *mm;

	ctl_memories_lock();
	mm = name != NULL ? ctl_memory_find(cc, name, false) : NULL;
	if (mm != NULL && mm->mm_port) {
		mm = NULL;
		errno = EBUSY;
	} else if (mm != NULL && memory_fits(mm, params, extra_bufs)) {
		mm->mm_refs++;
		mm->mm_port = true;
	} else {
		mm = ctl_memory_new(cc, params, extra_bufs, 0);
		if (mm != NULL)
			mm->mm_port = true;
	}
	ctl_memories_unlock();
	return (mm);
}

void
ctl_memory_opened(struct ctl_memory *mm, struct vale_desc *port,
    size_t more)
{
	ctl_memories_lock();
	strlcpy(mm->mm_name, port->common->name, sizeof(mm->mm_name));
	mm->mm_desc = port;
	/* While it was opened, a pipe may have been. */
	if (memory_more(mm) != more)
		memory_grown(mm);
	ctl_memories_unlock();
}

void
ctl_memory_closing(struct ctl_memory *mm)
{
	ctl_memories_lock();
	mm->mm_desc = NULL;
	ctl_memories_unlock();
}

void
ctl_memory_closed(struct ctl_memory *mm)
{
	ctl_memories_lock();
	mm->mm_port = false;
	ctl_memory_release(mm);
	ctl_memories_unlock();
}
