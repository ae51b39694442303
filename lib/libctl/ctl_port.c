/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The control socket: ports of other processes (libvale.h, struct vale_csb).
 *
 * A port's memory (ctl_memory.h) is mapped.  Its users can punch holes into it;
 * if there is no page to fill one, the port's client is dropped (peer_fault.h).
 *
 * Kicks are bytes on a pair of sockets for each ring, of which the client has
 * one.  valed writes without waiting, whatever the client does with its own: an
 * eventfd's writer could be made to wait by who else has the descriptor.  It
 * reads the first transmit ring's only, and then looks at all transmit rings.
 * It keeps the client's ends, for processes to which the connection is passed
 * (VALE_WIRE_SHARE).
 *
 * While its user transmits, the thread spins for more, CTL_ROUNDS rounds,
 * before it asks for a kick, and yields the processor after each.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl_impl.h"
#include "ctl_memory.h"
#include "frame_vnet.h"
#include "vale_filter.h"
#include "vale_pipe.h"
#include "vale_shared.h"
#include "peer_fault.h"

#define	CTL_ROUNDS	64
/* Batches after which requests are looked for. */
#define	CTL_BATCHES	64

/*
 * Ring pairs of all ports, without each port's first: their sockets must not be
 * all the descriptors that valed may have.
 */
static uint32_t more_rings;	/* atomic */
static uint32_t more_rings_max = UINT32_MAX;

void
ctl_port_limit(void)
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

/* Any sender's thread. */
static void
port_wake(void *arg, unsigned int ring, bool tx)
{
	struct ctl_conn *cc = arg;
	const struct ctl_kick *kick = &cc->cc_kick[ring];

	/* If the socket is full, the user has not read earlier kicks. */
	(void)send(tx ? kick->tx : kick->rx, "", 1,
	    MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* The memory has vanished.  Any thread, in the handler of SIGBUS. */
static void
port_lost(void *arg)
{
	struct ctl_conn *cc = arg;

	shutdown(cc->cc_fd, SHUT_RDWR);
}

/* The memory is mapped before the port is opened, and until it is closed. */
static void
port_pause(void *arg __unused, bool paused __unused)
{
}

/* Have memory for the port, and map it.  Returns it, or NULL with errno. */
static void *
port_memory(struct ctl_conn *cc, uint32_t extra_bufs)
{
	struct ctl_memory *mm;
	const char *why;
	int error;

	mm = ctl_memory_open(cc, cc->cc_params.monitor != 0 ? NULL :
	    cc->cc_wire->vw_header.nr_name, &cc->cc_params, extra_bufs);
	if (mm == NULL)
		return (NULL);
	error = peer_mem_map(&cc->cc_dma, mm->mm_fd, 0, 0, mm->mm_size,
	    PROT_READ | PROT_WRITE, &why);
	if (error != 0) {
		ctl_memory_closed(mm);
		errno = error;
		return (NULL);
	}
	cc->cc_memory = mm;
	return (peer_mem_addr(&cc->cc_dma, 0, mm->mm_size,
	    PROT_READ | PROT_WRITE));
}

/* How many ring pairs are asked for. */
static unsigned int
register_rings(const struct nmreq_register *reg)
{
	return (MAX(1, MAX(reg->nr_tx_rings, reg->nr_rx_rings)));
}

int
ctl_port_check(struct ctl_conn *cc, const struct nmreq_register *reg)
{
	const unsigned int rings = register_rings(reg);
	const char *error = vale_name_error(cc->cc_wire->vw_header.nr_name);

	if (error != NULL)
		return (ctl_why(cc, EINVAL, "%s", error));
	/* As netmap: its older API has these modes, and changes the name. */
	if (reg->nr_mode == NR_REG_PIPE_MASTER ||
	    reg->nr_mode == NR_REG_PIPE_SLAVE)
		return (ctl_why(cc, EINVAL, "a pipe has a name like %s{1",
		    "vale0:x"));
	/* Which of the rings a thread uses is the user's. */
	if ((reg->nr_mode != NR_REG_ALL_NIC &&
	    reg->nr_mode != NR_REG_ONE_NIC) ||
	    reg->nr_host_tx_rings != 0 || reg->nr_host_rx_rings != 0)
		return (ctl_why(cc, EOPNOTSUPP,
		    "a port has no rings of the host"));
	if ((reg->nr_flags & NR_ZCOPY_MON) != 0)
		return (ctl_why(cc, EOPNOTSUPP,
		    "monitors get copies: zero-copy is not supported"));
	if (rings > VALE_RINGS_MAX)
		return (ctl_why(cc, EINVAL,
		    "a port has up to %u rings in each direction",
		    VALE_RINGS_MAX));
	if (reg->nr_mode == NR_REG_ONE_NIC && reg->nr_ringid >= rings)
		return (ctl_why(cc, EINVAL, "ring %u of %u", reg->nr_ringid,
		    rings));
	if (vale_shared_size(&(struct vale_params){ .rings = rings,
	    .tx_slots = reg->nr_tx_slots, .rx_slots = reg->nr_rx_slots },
	    reg->nr_extra_bufs) == 0)
		return (ctl_why(cc, EINVAL, "slots must be %u to %u, for all "
		    "rings of a direction, extra buffers up to %u",
		    VALE_SLOTS_MIN, VALE_SLOTS_MAX, VALE_EXTRA_BUFS_MAX));
	return (0);
}

/* Close the sockets of the first `n' ring pairs. */
static void
kicks_close(struct ctl_kick *kick, unsigned int n)
{
	while (n-- > 0) {
		close(kick[n].tx);
		close(kick[n].rx);
	}
}

/* Create the sockets of a ring pair: valed's ends and the user's. */
static int
kick_open(struct ctl_kick *ours, struct ctl_kick *theirs)
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
	*ours = (struct ctl_kick){ tx[0], rx[0] };
	*theirs = (struct ctl_kick){ tx[1], rx[1] };
	return (0);
}

/* Create the sockets of `n' ring pairs.  Returns 0 or an errno, and none. */
static int
kicks_open(struct ctl_kick *ours, struct ctl_kick *theirs, unsigned int n)
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

void
ctl_port_params(const struct nmreq_register *reg, struct vale_params *params)
{
	params->rings = register_rings(reg);
	params->tx_slots = reg->nr_tx_slots;
	params->rx_slots = reg->nr_rx_slots;
	if (params->tx_slots == 0)
		params->tx_slots = VALE_SLOTS_DEFAULT;
	if (params->rx_slots == 0)
		params->rx_slots = VALE_SLOTS_DEFAULT;
	/* Other flags say how poll(2) works: that is the user's. */
	params->monitor =
	    ((reg->nr_flags & NR_MONITOR_TX) != 0 ? VALE_MIRROR_TX : 0) |
	    ((reg->nr_flags & NR_MONITOR_RX) != 0 ? VALE_MIRROR_RX : 0);
	/* port_open() knows the filter. */
	params->filter = NULL;
	params->filter_len = 0;
}

void
ctl_filter_drop(struct ctl_conn *cc)
{
	free(cc->cc_filter);
	cc->cc_filter = NULL;
}

int
ctl_filter(struct ctl_conn *cc, size_t *size __unused)
{
	const struct vale_wire_filter *wf = cc->cc_body;

	if (ctl_registered(cc))
		return (ctl_why(cc, EBUSY, "the connection has a port"));
	if (wf->wf_len > nitems(wf->wf_insn))
		return (ctl_why(cc, E2BIG, "a filter has up to %u "
		    "instructions", VALE_FILTER_MAX));
	if (wf->wf_len > 0 && !vale_filter_valid(wf->wf_insn, wf->wf_len))
		return (ctl_why(cc, EINVAL, "the filter is not valid"));
	ctl_filter_drop(cc);
	if (wf->wf_len == 0)
		return (0);
	cc->cc_filter = malloc(sizeof(*wf));
	if (cc->cc_filter == NULL)
		return (ctl_why_errno(cc, ENOMEM));
	memcpy(cc->cc_filter, wf, sizeof(*wf));
	return (0);
}

int
ctl_reply_fd(struct ctl_conn *cc, int fd)
{
	int error;

	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd != -1) {
		cc->cc_fds[cc->cc_nfds++] = fd;
		return (0);
	}
	error = errno;
	while (cc->cc_nfds > 0)
		close(cc->cc_fds[--cc->cc_nfds]);
	return (error);
}

int
ctl_port_fds(struct ctl_conn *cc)
{
	int error = ctl_null_fds(cc);
	unsigned int i;

	for (i = 0; error == 0 && i < cc->cc_params.rings; i++) {
		error = ctl_reply_fd(cc, cc->cc_theirs[i].tx);
		if (error == 0)
			error = ctl_reply_fd(cc, cc->cc_theirs[i].rx);
	}
	return (error);
}

/*
 * Make the port's window; the list of extra buffers begins where libvale's
 * does.
 */
static int
port_window(struct ctl_conn *cc, uint32_t extra_bufs)
{
	const struct vale_params *params = &cc->cc_params;

	return (ctl_memory_window(cc, params->rings, params->tx_slots,
	    params->rx_slots, extra_bufs == 0 ? 0 : VALE_BUF_FIRST +
	    params->rings * params->tx_slots));
}

/* Open it in the switch, with the connection's filter. */
static struct vale_desc *
port_open(const struct ctl_conn *cc, const struct vale_shared *shared)
{
	struct vale_params params = cc->cc_params;

	if (cc->cc_filter != NULL) {
		params.filter = cc->cc_filter->wf_insn;
		params.filter_len = cc->cc_filter->wf_len;
	}
	return (vale_open_shared(cc->cc_wire->vw_header.nr_name, &params,
	    shared));
}

/* Open the port. */
static int
register_open(struct ctl_conn *cc, struct nmreq_register *reg)
{
	struct vale_shared shared = { .extra_bufs = reg->nr_extra_bufs,
	    .wake = port_wake, .arg = cc };
	struct vale_params *params = &cc->cc_params;
	struct vale_region_layout rl;
	int error;

	ctl_port_params(reg, params);
	error = rings_reserve(params->rings);
	if (error != 0)
		return (error);
	peer_mem_init(&cc->cc_dma, 0, port_pause, NULL);
	error = peer_fault_add(&cc->cc_dma, port_lost, cc);
	if (error != 0)
		goto fail_fault;
	error = kicks_open(cc->cc_kick, cc->cc_theirs, params->rings);
	if (error != 0)
		goto fail;
	shared.memory = port_memory(cc, reg->nr_extra_bufs);
	if (shared.memory == NULL) {
		error = errno;
		goto fail_memory;
	}
	error = port_window(cc, reg->nr_extra_bufs);
	if (error != 0)
		goto fail_window;
	shared.more = ctl_memory_more(cc->cc_memory);
	cc->cc_header = 0;
	cc->cc_port = port_open(cc, &shared);
	if (cc->cc_port == NULL) {
		error = errno;
		goto fail_open;
	}
	if (params->monitor == 0)
		ctl_memory_opened(cc->cc_memory, cc->cc_port, shared.more);
	reg->nr_memsize = cc->cc_memory->mm_size;
	vale_shared_layout(&rl, params, 0);
	reg->nr_offset = VALE_WINDOW_OFFSET(rl.rl_frames);
	error = ctl_port_fds(cc);
	if (error != 0)
		ctl_port_close(cc);
	return (error);

fail_open:
	close(cc->cc_window);
	cc->cc_window = -1;
fail_window:
	peer_mem_reset(&cc->cc_dma);
	ctl_memory_closed(cc->cc_memory);
fail_memory:
	kicks_close(cc->cc_kick, params->rings);
	kicks_close(cc->cc_theirs, params->rings);
fail:
	peer_fault_remove(&cc->cc_dma);
fail_fault:
	rings_release(params->rings);
	return (error);
}

/* The fields that netmap fills in. */
static void
port_describe(struct ctl_conn *cc, struct nmreq_register *reg)
{
	reg->nr_tx_slots = cc->cc_params.tx_slots;
	reg->nr_rx_slots = cc->cc_params.rx_slots;
	reg->nr_tx_rings = reg->nr_rx_rings = cc->cc_params.rings;
	reg->nr_mem_id = CTL_MEMORY_ID(cc->cc_memory);
}

int
ctl_port_reserved(struct ctl_conn *cc, enum ctl_name_of of)
{
	return (ctl_why(cc, EPERM, "the port is %s of valed's configuration",
	    of == CTL_NAME_ADAPTER ? "an adapter's" : "an interface's"));
}

/* Say what is wrong, unless that has been said.  Returns `error'. */
static int
register_why(struct ctl_conn *cc, int error)
{
	switch (error) {
	case EBUSY:
		return (ctl_why(cc, error, "the port is open already"));
	case ENOSPC:
		return (ctl_why(cc, error,
		    "the switch has no place for another port"));
	case ENXIO:
		return (ctl_why(cc, error, "there is no such port"));
	default:
		return (ctl_why_errno(cc, error));
	}
}

/* Open it as the client's. */
static int
register_owned(struct ctl_conn *cc, struct nmreq_register *reg, bool monitor)
{
	int error;

	error = ctl_owner_claim(&cc->cc_owner, cc->cc_wire->vw_header.nr_name,
	    &cc->cc_who, monitor);
	if (error != 0)
		return (ctl_why_owner(cc, error));
	error = register_open(cc, reg);
	if (error == 0) {
		ctl_owner_opened(&cc->cc_owner);
		return (0);
	}
	ctl_owner_leave(&cc->cc_owner);
	return (register_why(cc, error));
}

static int
port_register(struct ctl_conn *cc, size_t *size)
{
	struct nmreq_register *reg = cc->cc_body;
	const bool monitor =
	    (reg->nr_flags & (NR_MONITOR_TX | NR_MONITOR_RX)) != 0;
	struct ctl_opening og;
	enum ctl_name_of of;
	int error;

	error = ctl_port_check(cc, reg);
	if (error != 0)
		return (error);
	if (!monitor) {
		of = ctl_names_open(&og, cc->cc_wire->vw_header.nr_name);
		if (of != CTL_NAME_FREE)
			return (ctl_port_reserved(cc, of));
	}
	error = register_owned(cc, reg, monitor);
	if (!monitor)
		ctl_names_opened(&og);
	if (error != 0)
		return (error);
	port_describe(cc, reg);
	*size = sizeof(*reg);
	return (0);
}

static int
register_any(struct ctl_conn *cc, size_t *size)
{
	const struct nmreq_register *reg = cc->cc_body;
	unsigned int end;

	if (reg->nr_mode == NR_REG_NULL)
		return (ctl_null_register(cc, size));
	if (vale_pipe_name(cc->cc_wire->vw_header.nr_name, &end) != 0)
		return (ctl_pipe_register(cc, size));
	return (port_register(cc, size));
}

int
ctl_register(struct ctl_conn *cc, size_t *size)
{
	struct vale_wire *wire = cc->cc_wire;
	const struct nmreq_register *reg = cc->cc_body;
	int error;

	if (ctl_registered(cc))
		return (ctl_why(cc, EBUSY, "the connection has a port"));
	if (cc->cc_filter != NULL &&
	    (reg->nr_flags & (NR_MONITOR_TX | NR_MONITOR_RX)) == 0)
		return (ctl_why(cc, EINVAL, "only a monitor has a filter"));
	error = register_any(cc, size);
	if (error == EBUSY || error == EPERM || error == ENOSPC ||
	    error == EMFILE || error == ENOMEM) {
		ctl_settle(cc);
		memset(wire->vw_why, 0, sizeof(wire->vw_why));
		error = register_any(cc, size);
	}
	if (error != 0)
		return (error);
	ctl_filter_drop(cc);
	memcpy(&cc->cc_reg, cc->cc_body, sizeof(cc->cc_reg));
	memcpy(cc->cc_name, wire->vw_header.nr_name, sizeof(cc->cc_name));
	return (0);
}

/*
 * Who has the connection has its port: what it was given at first may be given
 * again.
 */
int
ctl_share(struct ctl_conn *cc, size_t *size)
{
	int error;

	if (!ctl_registered(cc))
		return (ctl_why(cc, ENXIO, "the connection has no port"));
	error = cc->cc_pipe != NULL ? ctl_pipe_fds(cc) :
	    cc->cc_port != NULL ? ctl_port_fds(cc) : ctl_null_fds(cc);
	if (error != 0)
		return (ctl_why(cc, error, "%s", strerror(error)));
	memcpy(cc->cc_wire->vw_header.nr_name, cc->cc_name,
	    sizeof(cc->cc_name));
	memcpy(cc->cc_body, &cc->cc_reg, sizeof(cc->cc_reg));
	*size = sizeof(cc->cc_reg);
	return (0);
}

int
ctl_header_set(struct ctl_conn *cc, size_t *size __unused)
{
	const struct nmreq_port_hdr *hdr = cc->cc_body;

	if (cc->cc_port == NULL || strcmp(cc->cc_port->common->name,
	    cc->cc_wire->vw_header.nr_name) != 0)
		return (ctl_why(cc, ENXIO,
		    "the connection does not have this port"));
	if (hdr->nr_hdr_len != 0 && hdr->nr_hdr_len != FRAME_VNET_SHORT &&
	    hdr->nr_hdr_len != FRAME_VNET_LONG)
		return (ctl_why(cc, EINVAL, "a header has 0, %u or %u bytes",
		    FRAME_VNET_SHORT, FRAME_VNET_LONG));
	vale_set_header(cc->cc_port, hdr->nr_hdr_len);
	cc->cc_header = hdr->nr_hdr_len;
	return (0);
}

int
ctl_header_get(struct ctl_conn *cc, size_t *size)
{
	struct nmreq_port_hdr *hdr = cc->cc_body;

	if (cc->cc_port == NULL || strcmp(cc->cc_port->common->name,
	    cc->cc_wire->vw_header.nr_name) != 0)
		return (ctl_why(cc, ENXIO,
		    "the connection does not have this port"));
	hdr->nr_hdr_len = cc->cc_header;
	*size = sizeof(*hdr);
	return (0);
}

int
ctl_missed(struct ctl_conn *cc, size_t *size)
{
	uint64_t missed;

	if (cc->cc_port == NULL)
		return (ctl_why(cc, ENXIO, "the connection has no port"));
	missed = vale_missed(cc->cc_port);
	memcpy(cc->cc_body, &missed, sizeof(missed));
	*size = sizeof(missed);
	return (0);
}

/*
 * Transmit what is published in all rings, and deliver what waits for the user.
 * False if there is nothing.
 */
static bool
rings_transmit(struct ctl_conn *cc)
{
	struct vale_desc *ring;
	unsigned int i;
	bool any = false;

	for (i = 0; i < cc->cc_params.rings; i++) {
		ring = vale_ring(cc->cc_port, i);
		any |= vale_shared_tx(ring);
		any |= vale_shared_rx(ring);
	}
	return (any);
}

/* Ask for a kick with any of them.  False if there is something. */
static bool
rings_wait(struct ctl_conn *cc)
{
	unsigned int i;

	for (i = 0; i < cc->cc_params.rings; i++)
		if (!vale_shared_wait(vale_ring(cc->cc_port, i)))
			return (false);
	return (true);
}

/*
 * Transmit until the user pauses, or for CTL_BATCHES batches.  Returns whether
 * it pauses.  One that did already gets one round.
 */
static bool
port_transmit(struct ctl_conn *cc, bool paused)
{
	unsigned int batches = 0, round = paused ? CTL_ROUNDS - 1 : 0;

	while (round < CTL_ROUNDS) {
		if (rings_transmit(cc)) {
			round = 0;
			if (++batches == CTL_BATCHES)
				return (false);
		} else {
			round++;
			sched_yield();
		}
	}
	return (rings_wait(cc));
}

void
ctl_port_serve(struct ctl_conn *cc)
{
	struct pollfd pfd[2 + VALE_RINGS_MAX] = {
		{ .fd = cc->cc_fd, .events = POLLIN },
		{ .fd = cc->cc_kick[0].tx, .events = POLLIN },
	};
	unsigned int i, n = 2;
	char kicks[64];
	bool paused = true;

	for (i = 0; i < cc->cc_params.rings; i++)
		pfd[n++] = (struct pollfd){ .events = POLLIN,
		    .fd = vale_shared_fd(vale_ring(cc->cc_port, i)) };
	do {
		paused = port_transmit(cc, paused);
		poll(pfd, n, paused ? -1 : 0);
		/* The user may have closed its end: only requests count. */
		if (pfd[1].revents != 0 && recv(cc->cc_kick[0].tx, kicks,
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
port_return(struct ctl_conn *cc)
{
	const struct vale_params *params = &cc->cc_params;
	struct vale_region_layout rl;
	struct vale_window_layout wl;
	char *memory, *window;
	unsigned int i;

	vale_window_layout(&wl, params->rings, params->tx_slots,
	    params->rx_slots);
	vale_shared_layout(&rl, params, 0);
	memory = peer_mem_addr(&cc->cc_dma, 0, rl.rl_frames,
	    PROT_READ | PROT_WRITE);
	window = malloc(wl.wl_size);
	if (memory != NULL && window != NULL && pread(cc->cc_window, window,
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

/* What the user has published is sent, even if it has left. */
void
ctl_port_close(struct ctl_conn *cc)
{
	rings_transmit(cc);
	ctl_owner_leave(&cc->cc_owner);
	ctl_memory_closing(cc->cc_memory);
	vale_close(cc->cc_port);
	cc->cc_port = NULL;
	kicks_close(cc->cc_kick, cc->cc_params.rings);
	kicks_close(cc->cc_theirs, cc->cc_params.rings);
	rings_release(cc->cc_params.rings);
	port_return(cc);
	close(cc->cc_window);
	cc->cc_window = -1;
	peer_mem_reset(&cc->cc_dma);
	peer_fault_remove(&cc->cc_dma);
	ctl_memory_closed(cc->cc_memory);
}
