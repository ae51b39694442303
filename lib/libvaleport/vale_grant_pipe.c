/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Ends of pipes (vale_pipe.h): vale_grant.h.
 *
 * valed makes the memory and the sockets of a pipe, gives them to who opens an
 * end, and has nothing to do with its frames.  It keeps the sockets of both
 * ends: so an end whose program has gone is not closed to the other, and can be
 * opened again.  The pipe is there until both ends are closed.
 *
 * A pipe is initialized when its first end is opened, in a copy of its rings.
 * Which buffers they have is read for that, and checked: in memory that is
 * older than the pipe, other pipes and the port may have those of this one.
 *
 * Pipes of one name that are of two users are two pipes, and neither knows of
 * the other.  Who names the memory of another user, and proves to have it, has
 * the pipes that are there.
 */

#include <sys/param.h>
#include <sys/socket.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vale_grant.h"
#include "vale_memory.h"
#include "vale_layout.h"
#include "vale_pipe.h"

/* The memory of a pipe whose port is not there is that of such a port. */
static const struct vale_params pipe_params = {
	.tx_slots = VALE_SLOTS_DEFAULT,
	.rx_slots = VALE_SLOTS_DEFAULT,
	.rings = 1,
};

/* What an end is asked for with. */
struct pipe_request {
	char		 pr_name[VALE_NAME_SIZE]; /* before the brace, */
	const char	*pr_id;		/* and behind it */
	unsigned int	 pr_end;
	uint32_t	 pr_slots[2];	/* of the ends' transmit rings, or 0 */
	uint16_t	 pr_mem_id;	/* or 0 */
};

static const char id_chars[] = "abcdefghijklmnopqrstuvwxyz"
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

static bool
name_valid(const char *name)
{
	return (*name != '\0' && name[strspn(name, id_chars)] == '\0');
}

/*
 * Split the name of a pipe.  What a pipe is of need not be a port: netmap's
 * programs name pipes of a port's memory as they like.
 */
static int
pipe_parse(struct vale_grant *gr, struct pipe_request *pr)
{
	const char *name = gr->gr_name;
	const size_t len = vale_pipe_name(name, &pr->pr_end);

	memcpy(pr->pr_name, name, len);
	pr->pr_name[len] = '\0';
	pr->pr_id = name + len + 1;
	if (vale_name_error(pr->pr_name) != NULL && !name_valid(pr->pr_name))
		return (vale_grant_why(gr, EINVAL,
		    "the name before the pipe is that of no port"));
	if (!name_valid(pr->pr_id))
		return (vale_grant_why(gr, EINVAL, "the name of a pipe "
		    "consists of letters, digits, '_', '-' and '.'"));
	return (0);
}

/* Check that what is asked for is what a pipe has. */
static int
pipe_check(struct vale_grant *gr, const struct nmreq_register *reg)
{
	if ((reg->nr_mode != NR_REG_ALL_NIC &&
	    reg->nr_mode != NR_REG_ONE_NIC) || reg->nr_ringid != 0 ||
	    reg->nr_tx_rings > 1 || reg->nr_rx_rings > 1 ||
	    reg->nr_host_tx_rings != 0 || reg->nr_host_rx_rings != 0)
		return (vale_grant_why(gr, EOPNOTSUPP,
		    "a pipe has one ring in each direction"));
	if ((reg->nr_flags & (NR_MONITOR_TX | NR_MONITOR_RX |
	    NR_ZCOPY_MON)) != 0)
		return (vale_grant_why(gr, EOPNOTSUPP,
		    "monitors of pipes are not supported"));
	if (reg->nr_tx_slots == 1 || reg->nr_tx_slots > VALE_PIPE_SLOTS_MAX ||
	    reg->nr_rx_slots == 1 || reg->nr_rx_slots > VALE_PIPE_SLOTS_MAX)
		return (vale_grant_why(gr, EINVAL,
		    "slots of a pipe must be %u to %u", VALE_SLOTS_MIN,
		    VALE_PIPE_SLOTS_MAX));
	return (0);
}

/* Return whether an end is open. */
static bool
pipe_used(const struct vale_memory_pipe *pi)
{
	return (pi->cpi_open[0] || pi->cpi_open[1]);
}

/*
 * Find the pipe, with its memory, or NULL.  The pipe is in a memory of the
 * user; in `named', if that is another user's.  The table's lock.
 */
static struct vale_memory_pipe *
pipe_find(const struct vale_grant *gr, const struct pipe_request *pr,
    const struct vale_memory *named, struct vale_memory **mmp)
{
	struct vale_memory *mm;
	struct vale_memory_pipe *pi;
	const bool other = named != NULL && !vale_memory_own(gr, named);
	unsigned int i;

	for (i = 0; i < VALE_MEMORIES; i++) {
		mm = vale_memories[i];
		if (mm == NULL || (other ? mm != named :
		    !vale_memory_own(gr, mm)))
			continue;
		for (pi = mm->mm_pipe; pi < mm->mm_pipe + VALE_PIPES; pi++)
			if (pipe_used(pi) &&
			    strcmp(pi->cpi_name, pr->pr_name) == 0 &&
			    strcmp(pi->cpi_id, pr->pr_id) == 0) {
				*mmp = mm;
				return (pi);
			}
	}
	return (NULL);
}

/*
 * Find or make the memory for a new pipe, with a reference: that which the
 * request names, that of the port, or new.  The table's lock.
 */
static int
pipe_memory(struct vale_grant *gr, const struct pipe_request *pr,
    struct vale_memory *mm, struct vale_memory **mmp)
{
	if (mm == NULL)
		mm = vale_memory_find(gr, pr->pr_name, false);
	if (mm == NULL && vale_memory_find(gr, pr->pr_name, true) != NULL)
		return (vale_grant_why(gr, EPERM, "the port is another user's, "
		    "and the request has no descriptor of its memory"));
	if (mm != NULL)
		mm->mm_refs++;
	else {
		mm = vale_memory_new(gr, &pipe_params, 0, MAX(pr->pr_slots[0],
		    pr->pr_slots[1]));
		if (mm == NULL)
			return (vale_grant_why_errno(gr, errno));
		memcpy(mm->mm_name, pr->pr_name, sizeof(mm->mm_name));
	}
	*mmp = mm;
	return (0);
}

/*
 * Find a place for a pipe with so many slots: a new one, or one where a pipe
 * had as many, or NULL.
 */
static struct vale_memory_pipe *
pipe_place(struct vale_memory *mm, const uint32_t slots[2])
{
	struct vale_memory_pipe *pi;

	for (pi = mm->mm_pipe; pi < mm->mm_pipe + VALE_PIPES; pi++)
		if (!pipe_used(pi) && (pi->cpi_slots[0] == 0 ||
		    (pi->cpi_slots[0] == slots[0] &&
		    pi->cpi_slots[1] == slots[1])))
			return (pi);
	return (NULL);
}

/* Make a place this pipe.  The table's lock. */
static int
pipe_new(struct vale_grant *gr, const struct pipe_request *pr,
    struct vale_memory *mm, struct vale_memory_pipe **pip)
{
	const uint32_t port[2] = { mm->mm_params.tx_slots,
	    mm->mm_params.rx_slots };
	const unsigned int max = mm->mm_pipe_slots;
	struct vale_memory_pipe *pi;
	uint32_t slots[2];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		slots[i] = pr->pr_slots[i] != 0 ? pr->pr_slots[i] :
		    MIN(port[i == pr->pr_end ? 0 : 1], max);
		if (slots[i] > max)
			return (vale_grant_why(gr, EINVAL,
			    "pipes in this memory have up to %u slots", max));
	}
	pi = pipe_place(mm, slots);
	if (pi == NULL)
		return (vale_grant_why(gr, ENOSPC, "the memory has no place "
		    "for another pipe: %u at most", VALE_PIPES));
	if (pi->cpi_at == 0) {
		pi->cpi_at = vale_memory_take(gr, mm,
		    vale_memory_pipe_size(slots));
		if (pi->cpi_at == 0)
			return (vale_grant_why_errno(gr, errno));
	}
	memcpy(pi->cpi_name, pr->pr_name, sizeof(pi->cpi_name));
	memcpy(pi->cpi_id, pr->pr_id, strlen(pr->pr_id) + 1);
	memcpy(pi->cpi_slots, slots, sizeof(pi->cpi_slots));
	*pip = pi;
	return (0);
}

/* Take an end, with a reference to its memory.  The table's lock. */
static int
pipe_take(struct vale_grant *gr, const struct pipe_request *pr)
{
	struct vale_memory *mm, *named;
	struct vale_memory_pipe *pi;
	int error;

	named = vale_memory_named(gr, pr->pr_mem_id, &error);
	if (error != 0)
		return (error);
	pi = pipe_find(gr, pr, named, &mm);
	if (pi != NULL) {
		if (pi->cpi_open[pr->pr_end])
			return (vale_grant_why(gr, EBUSY,
			    "this end of the pipe is open already"));
		mm->mm_refs++;
	} else {
		error = pipe_memory(gr, pr, named, &mm);
		if (error != 0)
			return (error);
		error = pipe_new(gr, pr, mm, &pi);
		if (error != 0) {
			vale_memory_release(mm);
			return (error);
		}
	}
	pi->cpi_open[pr->pr_end] = true;
	gr->gr_memory = mm;
	gr->gr_pipe = pi;
	gr->gr_end = pr->pr_end;
	return (0);
}

static void
kicks_close(int kick[2][2], unsigned int n)
{
	while (n-- > 0) {
		close(kick[n][0]);
		close(kick[n][1]);
	}
}

/*
 * Write the slots of a ring that are this end's, from `first' to the tail, to
 * the ring at `at' of the memory: so the next who opens the end finds the
 * buffers that they have, and not those that they had.
 */
static void
ring_return(const struct vale_memory *mm, size_t at,
    const struct netmap_ring *ring, uint32_t first, uint32_t nslots)
{
	const uint32_t tail = ring->tail;
	uint32_t end;

	if (first >= nslots || tail >= nslots)
		return;
	while (first != tail) {
		end = tail > first ? tail : nslots;
		/* Without memory for that they had better be lost. */
		(void)!pwrite(mm->mm_fd, &ring->slot[first],
		    (end - first) * sizeof(ring->slot[0]), at +
		    offsetof(struct netmap_ring, slot) +
		    first * sizeof(ring->slot[0]));
		first = end == nslots ? 0 : end;
	}
}

/*
 * Write the slots of both rings that are this end's to the memory, as
 * ring_return() does.  Nothing of the window is trusted.
 */
static void
pipe_return(const struct vale_grant *gr)
{
	const uint32_t *slots = gr->gr_pipe->cpi_slots;
	const unsigned int end = gr->gr_end;
	const size_t at = gr->gr_pipe->cpi_at;
	const struct vale_window_ring *heads;
	struct vale_pipe_layout pl;
	struct vale_window_layout wl;
	char *window;

	vale_pipe_layout(&pl, slots);
	vale_window_layout(&wl, 1, slots[end], slots[!end]);
	window = malloc(wl.wl_size);
	if (window != NULL && pread(gr->gr_window, window, wl.wl_size, 0) ==
	    (ssize_t)wl.wl_size) {
		heads = (void *)(window + wl.wl_ring);
		ring_return(gr->gr_memory, at + pl.pl_tx[end],
		    (void *)(window + wl.wl_tx), heads->vwr_sent, slots[end]);
		ring_return(gr->gr_memory, at + pl.pl_rx[end],
		    (void *)(window + wl.wl_rx), heads->vwr_released,
		    slots[!end]);
	}
	free(window);
}

void
vale_grant_pipe_close(struct vale_grant *gr)
{
	struct vale_memory_pipe *pi = gr->gr_pipe;

	if (gr->gr_window != -1)
		pipe_return(gr);
	vale_memory_lock();
	pi->cpi_open[gr->gr_end] = false;
	if (!pipe_used(pi) && pi->cpi_ready) {
		kicks_close(pi->cpi_kick, 2);
		pi->cpi_ready = false;
	}
	if (gr->gr_window != -1)
		close(gr->gr_window);
	gr->gr_window = -1;
	vale_memory_release(gr->gr_memory);
	vale_memory_unlock();
	gr->gr_pipe = NULL;
}

/* Initialize the memory.  mm_lock. */
static int
pipe_init(const struct vale_memory *mm, const struct vale_memory_pipe *pi,
    uint32_t nbufs)
{
	const size_t at = pi->cpi_at;
	struct vale_pipe_layout pl;
	int error = 0;
	void *head;

	vale_pipe_layout(&pl, pi->cpi_slots);
	head = malloc(pl.pl_bufs);
	if (head == NULL)
		return (ENOMEM);
	if (pread(mm->mm_fd, head, pl.pl_bufs, at) != (ssize_t)pl.pl_bufs)
		error = EIO;
	if (error == 0) {
		vale_pipe_init(head, &pl, (at + pl.pl_bufs - mm->mm_bufs) /
		    VALE_BUF_SIZE, nbufs);
		/* The head is not longer than memory allows. */
		if (pwrite(mm->mm_fd, head, pl.pl_bufs, at) !=
		    (ssize_t)pl.pl_bufs)
			error = ENOMEM;
	}
	free(head);
	return (error);
}

/* Make what the pipe needs, when its first end is opened.  mm_lock. */
static int
pipe_start(const struct vale_memory *mm, struct vale_memory_pipe *pi,
    uint32_t nbufs)
{
	unsigned int i;
	int error;

	for (i = 0; i < 2; i++)
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
		    pi->cpi_kick[i]) == -1)
			break;
	error = i < 2 ? errno : pipe_init(mm, pi, nbufs);
	if (error != 0)
		kicks_close(pi->cpi_kick, i);
	else
		pi->cpi_ready = true;
	return (error);
}

/* Reply with the memory, the window, and the end's sockets. */
int
vale_grant_pipe_fds(struct vale_grant *gr)
{
	const unsigned int end = gr->gr_end;
	const struct vale_memory_pipe *pi = gr->gr_pipe;
	const int fds[4] = { gr->gr_memory->mm_fd, gr->gr_window,
	    pi->cpi_kick[end][end], pi->cpi_kick[!end][end] };
	unsigned int i;
	int error = 0;

	for (i = 0; error == 0 && i < nitems(fds); i++)
		error = vale_grant_reply(gr, fds[i]);
	return (error);
}

/* Fill in what netmap does. */
static void
pipe_describe(const struct vale_grant *gr, struct nmreq_register *reg)
{
	const struct vale_memory *mm = gr->gr_memory;
	const struct vale_memory_pipe *pi = gr->gr_pipe;

	reg->nr_offset = VALE_WINDOW_OFFSET(vale_memory_pipe_window(mm,
	    pi - mm->mm_pipe, gr->gr_end));
	reg->nr_memsize = mm->mm_size;
	reg->nr_tx_slots = pi->cpi_slots[gr->gr_end];
	reg->nr_rx_slots = pi->cpi_slots[!gr->gr_end];
	reg->nr_tx_rings = reg->nr_rx_rings = 1;
	reg->nr_mem_id = VALE_MEMORY_ID(mm);
}

/* Make the end's window, with extra buffers. */
static int
pipe_window(struct vale_grant *gr, struct nmreq_register *reg)
{
	const uint32_t *slots = gr->gr_pipe->cpi_slots;
	uint32_t first;

	reg->nr_extra_bufs = vale_memory_extra(gr, gr->gr_memory,
	    reg->nr_extra_bufs, &first);
	return (vale_memory_window(gr, 1, slots[gr->gr_end], slots[!gr->gr_end],
	    first));
}

int
vale_grant_pipe(struct vale_grant *gr, struct nmreq_register *reg)
{
	struct pipe_request pr = { .pr_mem_id = reg->nr_mem_id };
	uint32_t nbufs = 0;
	int error;

	error = pipe_parse(gr, &pr);
	if (error == 0)
		error = pipe_check(gr, reg);
	if (error != 0)
		return (error);
	pr.pr_slots[pr.pr_end] = reg->nr_tx_slots;
	pr.pr_slots[!pr.pr_end] = reg->nr_rx_slots;
	vale_memory_lock();
	error = pipe_take(gr, &pr);
	if (error == 0)
		nbufs = (gr->gr_memory->mm_used - gr->gr_memory->mm_bufs) /
		    VALE_BUF_SIZE;
	vale_memory_unlock();
	if (error != 0)
		return (error);
	pthread_mutex_lock(&gr->gr_memory->mm_lock);
	if (!gr->gr_pipe->cpi_ready)
		error = pipe_start(gr->gr_memory, gr->gr_pipe, nbufs);
	pthread_mutex_unlock(&gr->gr_memory->mm_lock);
	if (error == 0)
		error = pipe_window(gr, reg);
	if (error == 0)
		error = vale_grant_pipe_fds(gr);
	if (error != 0) {
		vale_grant_pipe_close(gr);
		return (vale_grant_why(gr, error, "%s", strerror(error)));
	}
	pipe_describe(gr, reg);
	return (0);
}

int
vale_grant_pipe_info(struct vale_grant *gr, struct nmreq_port_info_get *info)
{
	struct pipe_request pr = { .pr_mem_id = 0 };
	struct vale_memory *mm;
	struct vale_memory_pipe *pi;
	int error;

	error = pipe_parse(gr, &pr);
	if (error != 0)
		return (error);
	vale_memory_lock();
	pi = pipe_find(gr, &pr, NULL, &mm);
	if (pi != NULL) {
		memset(info, 0, sizeof(*info));
		info->nr_memsize = mm->mm_size;
		info->nr_tx_slots = pi->cpi_slots[pr.pr_end];
		info->nr_rx_slots = pi->cpi_slots[!pr.pr_end];
		info->nr_tx_rings = info->nr_rx_rings = 1;
		info->nr_mem_id = VALE_MEMORY_ID(mm);
	}
	vale_memory_unlock();
	if (pi == NULL)
		return (vale_grant_why(gr, ENXIO, "there is no such pipe"));
	return (0);
}

int
vale_grant_pipe_plan(struct vale_grant *gr, struct nmreq_port_info_get *info)
{
	const struct nmreq_register reg = { .nr_mode = NR_REG_ALL_NIC,
	    .nr_tx_slots = info->nr_tx_slots,
	    .nr_rx_slots = info->nr_rx_slots };
	struct pipe_request pr = { .pr_mem_id = 0 };
	uint32_t tx_slots = pipe_params.tx_slots;
	uint32_t rx_slots = pipe_params.rx_slots;
	struct vale_memory *mm;
	int error;

	error = pipe_parse(gr, &pr);
	if (error == 0)
		error = pipe_check(gr, &reg);
	if (error != 0)
		return (error);
	memset(info, 0, sizeof(*info));
	info->nr_memsize = vale_memory_size(&pipe_params);
	vale_memory_lock();
	mm = vale_memory_find(gr, pr.pr_name, false);
	if (mm != NULL) {
		info->nr_memsize = mm->mm_size;
		info->nr_mem_id = VALE_MEMORY_ID(mm);
		tx_slots = MIN(mm->mm_params.tx_slots, mm->mm_pipe_slots);
		rx_slots = MIN(mm->mm_params.rx_slots, mm->mm_pipe_slots);
	}
	vale_memory_unlock();
	info->nr_tx_slots = reg.nr_tx_slots != 0 ? reg.nr_tx_slots : tx_slots;
	info->nr_rx_slots = reg.nr_rx_slots != 0 ? reg.nr_rx_slots : rx_slots;
	info->nr_tx_rings = info->nr_rx_rings = 1;
	return (0);
}
