/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Ports of other processes: vale_grant.h.
 *
 * A port's memory (vale_memory.h) is mapped.  Its users can punch holes there;
 * if there is no page to fill one, the port's client is dropped (peer_fault.h).
 *
 * Kicks are bytes on a pair of sockets for each ring, of which the client has
 * one.  valed writes without waiting, whatever the client does with its own: an
 * eventfd's writer could be made to wait by who else has the descriptor.  valed
 * reads the first transmit ring's only, and then looks at all transmit rings.
 * The client's ends are kept for processes to which the connection is passed
 * (VALE_WIRE_SHARE).
 *
 * While its user transmits, the thread spins for more, ROUNDS rounds, before it
 * asks for a kick, and yields the processor after each; no longer if another
 * thread computes there (vale_yield()).
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/systm.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peer_fault.h"
#include "vale_clock.h"
#include "vale_grant.h"
#include "vale_memory.h"
#include "vale_shared.h"

#define	ROUNDS	64
/* Batches after which requests are looked for. */
#define	BATCHES	64

/*
 * Ring pairs of all ports, without each port's first: their sockets must not be
 * all the descriptors that valed may have.
 */
static uint32_t more_rings;	/* atomic */
static uint32_t more_rings_max = UINT32_MAX;

void
vale_grant_limit(void)
{
	struct rlimit rl;

	/* A ring pair has four. */
	if (getrlimit(RLIMIT_NOFILE, &rl) == 0)
		more_rings_max = MIN(rl.rlim_cur / 8, UINT32_MAX);
}

/* Reserve a port's ring pairs.  Returns an errno. */
static int
rings_reserve(unsigned int n)
{
	if (atomic_fetchadd_32(&more_rings, n - 1) + n - 1 <= more_rings_max)
		return (0);
	atomic_subtract_32(&more_rings, n - 1);
	return (EMFILE);
}

static void
rings_release(unsigned int n)
{
	atomic_subtract_32(&more_rings, n - 1);
}

/* Wake the client.  Any sender's thread. */
static void
port_wake(void *arg, unsigned int ring, bool tx)
{
	struct vale_grant *gr = arg;
	const struct vale_grant_kick *kick = &gr->gr_kick[ring];

	/* If the socket is full, the user has not read earlier kicks. */
	(void)send(tx ? kick->tx : kick->rx, "", 1,
	    MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Drop the client, whose memory has vanished.  In the handler of SIGBUS. */
static void
port_lost(void *arg)
{
	struct vale_grant *gr = arg;

	shutdown(gr->gr_fd, SHUT_RDWR);
}

/* Do nothing: the memory is mapped as long as the port is open. */
static void
port_pause(void *arg __unused, bool paused __unused)
{
}

/* Have memory for the port, and map it.  Returns it, or NULL with errno. */
static void *
port_memory(struct vale_grant *gr, uint32_t extra_bufs)
{
	struct vale_memory *mm;
	const char *why;
	int error;

	mm = vale_memory_open(gr, gr->gr_params.monitor != 0 ? NULL :
	    gr->gr_name, &gr->gr_params, extra_bufs);
	if (mm == NULL)
		return (NULL);
	error = peer_mem_map(&gr->gr_dma, mm->mm_fd, 0, 0, mm->mm_size,
	    PROT_READ | PROT_WRITE, &why);
	if (error != 0) {
		vale_memory_closed(mm);
		errno = error;
		return (NULL);
	}
	gr->gr_memory = mm;
	return (peer_mem_addr(&gr->gr_dma, 0, mm->mm_size,
	    PROT_READ | PROT_WRITE));
}

int
vale_grant_check(struct vale_grant *gr, const struct nmreq_register *reg)
{
	const unsigned int rings = vale_grant_rings(reg);
	const char *error = vale_name_error(gr->gr_name);

	if (error != NULL)
		return (vale_grant_why(gr, EINVAL, "%s", error));
	/* As netmap: its older API has these modes, and changes the name. */
	if (reg->nr_mode == NR_REG_PIPE_MASTER ||
	    reg->nr_mode == NR_REG_PIPE_SLAVE)
		return (vale_grant_why(gr, EINVAL,
		    "a pipe has a name like %s{1", "vale0:x"));
	/* Which of the rings a thread uses is the user's. */
	if ((reg->nr_mode != NR_REG_ALL_NIC &&
	    reg->nr_mode != NR_REG_ONE_NIC) ||
	    reg->nr_host_tx_rings != 0 || reg->nr_host_rx_rings != 0)
		return (vale_grant_why(gr, EOPNOTSUPP,
		    "a port has no rings of the host"));
	if ((reg->nr_flags & NR_ZCOPY_MON) != 0)
		return (vale_grant_why(gr, EOPNOTSUPP,
		    "monitors get copies: zero-copy is not supported"));
	if (rings > VALE_RINGS_MAX)
		return (vale_grant_why(gr, EINVAL,
		    "a port has up to %u rings in each direction",
		    VALE_RINGS_MAX));
	if (reg->nr_mode == NR_REG_ONE_NIC && reg->nr_ringid >= rings)
		return (vale_grant_why(gr, EINVAL, "ring %u of %u",
		    reg->nr_ringid, rings));
	if (vale_shared_size(&(struct vale_params){ .rings = rings,
	    .tx_slots = reg->nr_tx_slots, .rx_slots = reg->nr_rx_slots },
	    reg->nr_extra_bufs) == 0)
		return (vale_grant_why(gr, EINVAL, "slots must be %u to %u, "
		    "for all rings of a direction, extra buffers up to %u",
		    VALE_SLOTS_MIN, VALE_SLOTS_MAX, VALE_EXTRA_BUFS_MAX));
	return (0);
}

void
vale_grant_port_info(struct vale_grant *gr, struct nmreq_port_info_get *info)
{
	const struct vale_memory *mm;

	vale_memory_lock();
	mm = vale_memory_find(gr, gr->gr_name, false);
	if (mm != NULL && mm->mm_port) {
		info->nr_memsize = mm->mm_size;
		info->nr_mem_id = VALE_MEMORY_ID(mm);
	}
	vale_memory_unlock();
}

int
vale_grant_port_plan(struct vale_grant *gr, struct nmreq_port_info_get *info)
{
	const struct nmreq_register reg = { .nr_mode = NR_REG_ALL_NIC,
	    .nr_tx_slots = info->nr_tx_slots,
	    .nr_rx_slots = info->nr_rx_slots,
	    .nr_tx_rings = info->nr_tx_rings,
	    .nr_rx_rings = info->nr_rx_rings };
	struct vale_params params;
	int error = vale_grant_check(gr, &reg);

	if (error != 0)
		return (error);
	vale_grant_params(&reg, &params);
	memset(info, 0, sizeof(*info));
	info->nr_memsize = vale_memory_size(&params);
	info->nr_tx_slots = params.tx_slots;
	info->nr_rx_slots = params.rx_slots;
	info->nr_tx_rings = info->nr_rx_rings = params.rings;
	return (0);
}

/* Close the sockets of the first `n' ring pairs. */
static void
kicks_close(struct vale_grant_kick *kick, unsigned int n)
{
	while (n-- > 0) {
		close(kick[n].tx);
		close(kick[n].rx);
	}
}

/* Create the sockets of a ring pair: valed's ends and the user's. */
static int
kick_open(struct vale_grant_kick *ours, struct vale_grant_kick *theirs)
{
	int error, tx[2], rx[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, tx) == -1)
		return (errno);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, rx) == -1) {
		error = errno;
		close(tx[0]);
		close(tx[1]);
		return (error);
	}
	*ours = (struct vale_grant_kick){ tx[0], rx[0] };
	*theirs = (struct vale_grant_kick){ tx[1], rx[1] };
	return (0);
}

/* Create the sockets of `n' ring pairs.  Returns 0 or an errno, and none. */
static int
kicks_open(struct vale_grant_kick *ours, struct vale_grant_kick *theirs,
    unsigned int n)
{
	unsigned int i;
	int error;

	for (i = 0; i < n; i++) {
		error = kick_open(&ours[i], &theirs[i]);
		if (error != 0) {
			kicks_close(ours, i);
			kicks_close(theirs, i);
			return (error);
		}
	}
	return (0);
}

int
vale_grant_port_fds(struct vale_grant *gr)
{
	int error = vale_grant_null_fds(gr);
	unsigned int i;

	for (i = 0; error == 0 && i < gr->gr_params.rings; i++) {
		error = vale_grant_reply(gr, gr->gr_theirs[i].tx);
		if (error == 0)
			error = vale_grant_reply(gr, gr->gr_theirs[i].rx);
	}
	return (error);
}

/*
 * Make the port's window; the list of extra buffers begins where libvale's
 * does.
 */
static int
port_window(struct vale_grant *gr, uint32_t extra_bufs)
{
	const struct vale_params *params = &gr->gr_params;

	return (vale_memory_window(gr, params->rings, params->tx_slots,
	    params->rx_slots, extra_bufs == 0 ? 0 : VALE_BUF_FIRST +
	    params->rings * params->tx_slots));
}

/* Open the port in the switch. */
static struct vale_desc *
port_open(const struct vale_grant *gr, const struct vale_wire_filter *filter,
    const struct vale_shared *shared)
{
	struct vale_params params = gr->gr_params;

	if (filter != NULL) {
		params.filter = filter->wf_insn;
		params.filter_len = filter->wf_len;
	}
	return (vale_open_shared(gr->gr_name, &params, shared));
}

/* Fill in what netmap does. */
static void
port_describe(struct vale_grant *gr, struct nmreq_register *reg)
{
	reg->nr_tx_slots = gr->gr_params.tx_slots;
	reg->nr_rx_slots = gr->gr_params.rx_slots;
	reg->nr_tx_rings = reg->nr_rx_rings = gr->gr_params.rings;
	reg->nr_mem_id = VALE_MEMORY_ID(gr->gr_memory);
}

int
vale_grant_port(struct vale_grant *gr, struct nmreq_register *reg,
    const struct vale_wire_filter *filter)
{
	struct vale_shared shared = { .extra_bufs = reg->nr_extra_bufs,
	    .wake = port_wake, .arg = gr };
	struct vale_params *params = &gr->gr_params;
	struct vale_region_layout rl;
	int error;

	vale_grant_params(reg, params);
	error = rings_reserve(params->rings);
	if (error != 0)
		return (error);
	peer_mem_init(&gr->gr_dma, 0, port_pause, NULL);
	error = peer_fault_add(&gr->gr_dma, port_lost, gr);
	if (error != 0)
		goto fail_fault;
	error = kicks_open(gr->gr_kick, gr->gr_theirs, params->rings);
	if (error != 0)
		goto fail;
	shared.memory = port_memory(gr, reg->nr_extra_bufs);
	if (shared.memory == NULL) {
		error = errno;
		goto fail_memory;
	}
	error = port_window(gr, reg->nr_extra_bufs);
	if (error != 0)
		goto fail_window;
	shared.more = vale_memory_more(gr->gr_memory);
	gr->gr_port = port_open(gr, filter, &shared);
	if (gr->gr_port == NULL) {
		error = errno;
		goto fail_open;
	}
	if (params->monitor == 0)
		vale_memory_opened(gr->gr_memory, gr->gr_port, shared.more);
	reg->nr_memsize = gr->gr_memory->mm_size;
	vale_shared_layout(&rl, params, 0);
	reg->nr_offset = VALE_WINDOW_OFFSET(rl.rl_frames);
	error = vale_grant_port_fds(gr);
	if (error != 0)
		vale_grant_port_close(gr);
	else
		port_describe(gr, reg);
	return (error);

fail_open:
	close(gr->gr_window);
	gr->gr_window = -1;
fail_window:
	vale_memory_closed(gr->gr_memory);
fail_memory:
	/* A map that failed may have left a mapping. */
	peer_mem_reset(&gr->gr_dma);
	kicks_close(gr->gr_kick, params->rings);
	kicks_close(gr->gr_theirs, params->rings);
fail:
	peer_fault_remove(&gr->gr_dma);
fail_fault:
	rings_release(params->rings);
	return (error);
}

bool
vale_grant_transmit(struct vale_grant *gr)
{
	struct vale_desc *ring;
	unsigned int i;
	bool any = false;

	for (i = 0; i < gr->gr_params.rings; i++) {
		ring = vale_ring(gr->gr_port, i);
		any |= vale_shared_tx(ring);
		any |= vale_shared_rx(ring);
	}
	return (any);
}

/* Ask for a kick with any of them.  False if there is something. */
static bool
rings_wait(struct vale_grant *gr)
{
	unsigned int i;

	for (i = 0; i < gr->gr_params.rings; i++)
		if (!vale_shared_wait(vale_ring(gr->gr_port, i)))
			return (false);
	return (true);
}

/*
 * Transmit until the user pauses, or for BATCHES batches.  Returns whether
 * it pauses.  One that did already gets one round.
 */
static bool
port_transmit(struct vale_grant *gr, bool paused)
{
	unsigned int batches = 0, round = paused ? ROUNDS - 1 : 0;

	while (round < ROUNDS) {
		if (vale_grant_transmit(gr)) {
			round = 0;
			if (++batches == BATCHES)
				return (false);
		} else {
			round++;
			if (!vale_yield(&gr->gr_rest_ns))
				break;
		}
	}
	return (rings_wait(gr));
}

void
vale_grant_serve(struct vale_grant *gr)
{
	struct pollfd pfd[2 + VALE_RINGS_MAX] = {
		{ .fd = gr->gr_fd, .events = POLLIN },
		{ .fd = gr->gr_kick[0].tx, .events = POLLIN },
	};
	unsigned int i, n = 2;
	char kicks[64];
	bool paused = true;

	for (i = 0; i < gr->gr_params.rings; i++)
		pfd[n++] = (struct pollfd){ .events = POLLIN,
		    .fd = vale_shared_fd(vale_ring(gr->gr_port, i)) };
	do {
		paused = port_transmit(gr, paused);
		poll(pfd, n, paused ? -1 : 0);
		/* The user may have closed its end: only requests count. */
		if (pfd[1].revents != 0 && recv(gr->gr_kick[0].tx, kicks,
		    sizeof(kicks), MSG_DONTWAIT) == 0)
			pfd[1].fd = -1;
	} while (pfd[0].revents == 0);
}

/*
 * Have the slots of a ring in the memory, at `at', have the buffers that those
 * of the window have: the user may have exchanged them with pipes.  What is no
 * buffer of the memory is found when the port is opened again.
 */
static void
ring_return(struct netmap_ring *to, const struct netmap_ring *from,
    uint32_t nslots)
{
	uint32_t i;

	for (i = 0; i < nslots; i++)
		atomic_store_32(&to->slot[i].buf_idx, from->slot[i].buf_idx);
}

/*
 * Call ring_return() for all rings.  If there is no memory for that, it is not
 * done.
 */
static void
port_return(struct vale_grant *gr)
{
	const struct vale_params *params = &gr->gr_params;
	struct vale_region_layout rl;
	struct vale_window_layout wl;
	char *memory, *window;
	unsigned int i;

	vale_window_layout(&wl, params->rings, params->tx_slots,
	    params->rx_slots);
	vale_shared_layout(&rl, params, 0);
	memory = peer_mem_addr(&gr->gr_dma, 0, rl.rl_frames,
	    PROT_READ | PROT_WRITE);
	window = malloc(wl.wl_size);
	if (memory != NULL && window != NULL && pread(gr->gr_window, window,
	    wl.wl_size, 0) == (ssize_t)wl.wl_size)
		for (i = 0; i < params->rings; i++) {
			ring_return((void *)(memory + rl.rl_tx +
			    i * rl.rl_tx_size), (void *)(window + wl.wl_tx +
			    i * wl.wl_tx_size), params->tx_slots);
			ring_return((void *)(memory + rl.rl_rx +
			    i * rl.rl_rx_size), (void *)(window + wl.wl_rx +
			    i * wl.wl_rx_size), params->rx_slots);
		}
	free(window);
}

void
vale_grant_port_close(struct vale_grant *gr)
{
	vale_memory_closing(gr->gr_memory);
	vale_close(gr->gr_port);
	gr->gr_port = NULL;
	kicks_close(gr->gr_kick, gr->gr_params.rings);
	kicks_close(gr->gr_theirs, gr->gr_params.rings);
	rings_release(gr->gr_params.rings);
	port_return(gr);
	close(gr->gr_window);
	gr->gr_window = -1;
	peer_mem_reset(&gr->gr_dma);
	peer_fault_remove(&gr->gr_dma);
	vale_memory_closed(gr->gr_memory);
}
