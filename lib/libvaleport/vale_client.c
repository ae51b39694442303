/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A connection to valed, and ports over it: vale_client.h.
 *
 * libvale.h has the protocol of the memory (struct vale_csb).  A sync makes a
 * system call only if the other side sleeps, or if this side is about to.
 *
 * The program's rings are in the window (vale_layout.h).  A sync of a port
 * copies what is published into the memory's slots, and takes from there the
 * length and flags of what has come; which buffer a slot has, only this side
 * changes.  A sync of a pipe is that of vale_pipe.c.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/systm.h>
#include <sys/time.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peer_fds.h"
#include "peer_fd.h"
#include "vale_client.h"
#include "vale_window.h"

/* The descriptors of a port with `n' ring pairs. */
#define	PORT_FDS(n)	(2 + 2 * (n))
/* Reads of kicks at a time. */
#define	KICK_READS	16

int
vale_client_socket(void)
{
	return (socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

int
vale_client_join(int fd, const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(sun.sun_path)) {
		errno = ENAMETOOLONG;
		return (-1);
	}
	memcpy(sun.sun_path, path, strlen(path));
	return (connect(fd, (struct sockaddr *)&sun, sizeof(sun)));
}

int
vale_client_connect(const char *path)
{
	int error, fd = vale_client_socket();

	if (fd == -1)
		return (-1);
	if (vale_client_join(fd, path) == -1) {
		error = errno;
		close(fd);
		errno = error;
		return (-1);
	}
	return (fd);
}

/*
 * Return whether to try again after an error.  The program may have made the
 * descriptor one that does not wait: that is for its own calls.
 */
static bool
call_again(int fd, short events)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	if (errno == EAGAIN)
		poll(&pfd, 1, -1);
	return (errno == EAGAIN || errno == EINTR);
}

static int
call_send(int fd, struct vale_client_call *call, struct vale_wire *wire)
{
	const size_t fds = call->nfds * sizeof(int);
	struct iovec iov[2] = {
		{ wire, sizeof(*wire) },
		{ __DECONST(void *, call->body), call->size },
	};
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = nitems(iov) };
	union {
		struct cmsghdr	align;
		char		space[CMSG_SPACE(sizeof(call->fds))];
	} control;
	struct cmsghdr *c;
	ssize_t n;

	if (fds > 0) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(fds);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(fds);
		memcpy(CMSG_DATA(c), call->fds, fds);
	}
	do {
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	} while (n == -1 && call_again(fd, POLLOUT));
	return (n == -1 ? -1 : 0);
}

static void
call_close_fds(struct vale_client_call *call)
{
	while (call->nfds > 0)
		close(call->fds[--call->nfds]);
}

static int
call_receive(int fd, struct vale_client_call *call, struct vale_wire *wire)
{
	const struct iovec iov[2] = {
		{ wire, sizeof(*wire) },
		{ call->reply, call->reply_max },
	};
	struct peer_fds mf = { .mf_fd = call->fds,
	    .mf_max = nitems(call->fds) };
	ssize_t n;

	do {
		n = peer_fds_recv(fd, iov, nitems(iov), &mf, 0);
	} while (n == -1 && call_again(fd, POLLIN));
	if (n == -1)
		return (-1);
	call->nfds = mf.mf_n;
	if (n >= (ssize_t)sizeof(*wire) && wire->vw_magic == VALE_WIRE_MAGIC &&
	    !mf.mf_lost && !mf.mf_cut) {
		call->reply_size = n - sizeof(*wire);
		return (0);
	}
	call_close_fds(call);
	errno = n == 0 ? EPIPE : EPROTO;
	return (-1);
}

/* Fail: valed has gone, if it left unread what was sent.  Returns -1. */
static int
call_fail(void)
{
	if (errno == ECONNRESET)
		errno = EPIPE;
	return (-1);
}

int
vale_client_ask(int fd, struct vale_client_call *call)
{
	struct vale_wire wire = { .vw_magic = VALE_WIRE_MAGIC,
	    .vw_header = *call->hdr };

	call->why[0] = '\0';
	wire.vw_header.nr_body = 0;
	return (call_send(fd, call, &wire) == -1 ? call_fail() : 0);
}

void
vale_client_text(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (; *text != '\0'; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

int
vale_client_answer(int fd, struct vale_client_call *call)
{
	struct vale_wire wire;

	if (call_receive(fd, call, &wire) == -1)
		return (call_fail());
	wire.vw_header.nr_body = call->hdr->nr_body;
	vale_client_text(wire.vw_header.nr_name,
	    sizeof(wire.vw_header.nr_name));
	vale_client_text(wire.vw_why, sizeof(wire.vw_why));
	*call->hdr = wire.vw_header;
	if (wire.vw_error == 0)
		return (0);
	call_close_fds(call);
	memcpy(call->why, wire.vw_why, sizeof(call->why));
	errno = wire.vw_error;
	return (-1);
}

int
vale_client_call(int fd, struct vale_client_call *call)
{
	return (vale_client_ask(fd, call) == -1 ||
	    vale_client_answer(fd, call) == -1 ? -1 : 0);
}

/* Find the pipe, where the window says that it is. */
static bool
pipe_find(struct vale_client_port *cp, unsigned int end, bool new)
{
	const struct vale_client_ring *vcr = &cp->cp_ring[0];
	const struct vale_window *vv = (void *)(cp->cp_base +
	    VALE_WINDOW_AT(cp->cp_reg.nr_offset));
	const uint64_t at = vv->vv_pipe;
	const size_t size = cp->cp_bufs + (size_t)cp->cp_nbufs * VALE_BUF_SIZE;
	struct vale_pipe_layout pl;
	uint32_t slots[2];

	slots[end] = cp->cp_reg.nr_tx_slots;
	slots[!end] = cp->cp_reg.nr_rx_slots;
	vale_pipe_layout(&pl, slots);
	if (at < cp->cp_bufs || at > size || pl.pl_size > size - at)
		return (false);
	cp->cp_pipe = (struct vale_pipe){ .pp_txring = vcr->vcr_txring,
	    .pp_rxring = vcr->vcr_rxring, .pp_heads = vcr->vcr_heads,
	    .pp_nbufs = cp->cp_nbufs };
	vale_pipe_find(&cp->cp_pipe, cp->cp_base + at, &pl, end);
	if (new)
		vale_pipe_attach(&cp->cp_pipe, &pl, end,
		    (at + pl.pl_bufs - cp->cp_bufs) / VALE_BUF_SIZE);
	return (true);
}

/* Find the CSBs and slots of a port. */
static bool
port_find(struct vale_client_port *cp, bool new)
{
	const struct nmreq_register *reg = &cp->cp_reg;
	const struct vale_params params = { .rings = cp->cp_nrings,
	    .tx_slots = reg->nr_tx_slots, .rx_slots = reg->nr_rx_slots };
	struct vale_region_layout rl;
	struct vale_client_ring *vcr;
	struct netmap_ring *tx, *rx;
	unsigned int i;

	vale_shared_layout(&rl, &params, reg->nr_extra_bufs);
	if (cp->cp_bufs != rl.rl_bufs || rl.rl_nbufs > cp->cp_nbufs ||
	    reg->nr_offset != VALE_WINDOW_OFFSET(rl.rl_frames))
		return (false);
	for (i = 0; i < cp->cp_nrings; i++) {
		vcr = &cp->cp_ring[i];
		tx = (void *)(cp->cp_base + rl.rl_tx + i * rl.rl_tx_size);
		rx = (void *)(cp->cp_base + rl.rl_rx + i * rl.rl_rx_size);
		vcr->vcr_csb = (struct vale_csb *)(void *)cp->cp_base + i;
		vcr->vcr_tx_slots = tx->slot;
		vcr->vcr_rx_slots = rx->slot;
		if (!new)
			continue;
		vale_window_begin(vcr->vcr_txring, tx->slot, VALE_BUF_FIRST +
		    i * reg->nr_tx_slots, cp->cp_nbufs);
		vale_window_begin(vcr->vcr_rxring, rx->slot, rl.rl_rx_buf +
		    i * reg->nr_rx_slots, cp->cp_nbufs);
		vcr->vcr_txring->tail = reg->nr_tx_slots - 1;
	}
	return (true);
}

/* Take what the window says, and find the program's rings there. */
static bool
window_find(struct vale_client_port *cp, const struct vale_window_layout *wl,
    const char *name, bool new)
{
	char *window = cp->cp_base + VALE_WINDOW_AT(cp->cp_reg.nr_offset);
	const struct vale_window *vv = (void *)window;
	struct vale_client_ring *vcr;
	unsigned int i;

	cp->cp_nifp = (void *)(cp->cp_base + cp->cp_reg.nr_offset);
	cp->cp_bufs = vv->vv_bufs;
	if (cp->cp_bufs % VALE_PAGE != 0 || cp->cp_bufs > vv->vv_end ||
	    vv->vv_end > cp->cp_reg.nr_memsize)
		return (false);
	cp->cp_nbufs = (vv->vv_end - cp->cp_bufs) / VALE_BUF_SIZE;
	if (new)
		vale_window_init(cp->cp_base, &cp->cp_reg, name);
	for (i = 0; i < cp->cp_nrings; i++) {
		vcr = &cp->cp_ring[i];
		vcr->vcr_txring = vale_window_txring(window, wl, i);
		vcr->vcr_rxring = vale_window_rxring(window, wl, i);
		vcr->vcr_heads = vale_window_heads(window, wl, i);
	}
	return (true);
}

/*
 * Map the memory, and over it the window.  valed lays both out; it is as
 * trusted as a kernel, unless the window is private.  `end' is that of a pipe.
 * If the port is not new, another process has it, too.
 */
static int
port_map(struct vale_client_port *cp, const char *name, unsigned int end,
    bool new)
{
	struct vale_window_layout wl;
	int error = EPROTO;

	vale_window_layout(&wl, cp->cp_nrings, cp->cp_reg.nr_tx_slots,
	    cp->cp_reg.nr_rx_slots);
	cp->cp_window_size = wl.wl_size;
	cp->cp_base = mmap(NULL, cp->cp_reg.nr_memsize, PROT_READ | PROT_WRITE,
	    MAP_SHARED, cp->cp_memory, 0);
	if (cp->cp_base == MAP_FAILED)
		return (-1);
	if ((cp->cp_private ? vale_window_copy : vale_window_map)(cp->cp_base,
	    cp->cp_reg.nr_memsize, cp->cp_reg.nr_offset, cp->cp_window,
	    wl.wl_size) == -1)
		error = errno;
	else if (window_find(cp, &wl, name, new) && (cp->cp_is_pipe ?
	    pipe_find(cp, end, new) : cp->cp_nrings == 0 ||
	    port_find(cp, new)))
		return (0);
	munmap(cp->cp_base, cp->cp_reg.nr_memsize);
	errno = error;
	return (-1);
}

static bool
slots_valid(uint32_t slots)
{
	return (slots >= VALE_SLOTS_MIN && slots <= VALE_SLOTS_MAX);
}

/* Take what the reply has, if it is as vale_wire.h says. */
static bool
port_take(struct vale_client_port *cp, const struct vale_client_call *call)
{
	const bool null = cp->cp_reg.nr_mode == NR_REG_NULL;
	const unsigned int n = null ? 0 : cp->cp_reg.nr_tx_rings;
	unsigned int i;

	if (call->reply_size != sizeof(cp->cp_reg) ||
	    (!null && (n < 1 || n > VALE_RINGS_MAX ||
	    cp->cp_reg.nr_rx_rings != n)) || call->nfds != PORT_FDS(n))
		return (false);
	if (!null && (!slots_valid(cp->cp_reg.nr_tx_slots) ||
	    !slots_valid(cp->cp_reg.nr_rx_slots)))
		return (false);
	cp->cp_memory = call->fds[0];
	cp->cp_window = call->fds[1];
	cp->cp_nrings = n;
	for (i = 0; i < n; i++) {
		cp->cp_ring[i].vcr_tx_kick = call->fds[2 + 2 * i];
		cp->cp_ring[i].vcr_rx_kick = call->fds[3 + 2 * i];
	}
	return (true);
}

/* Take the port of a reply, and its descriptors, or close these. */
static int
port_start(struct vale_client_port *cp, int fd, struct vale_client_call *call,
    const char *name, bool new)
{
	unsigned int end = 0;
	int error;

	cp->cp_private = false;
	if (!port_take(cp, call)) {
		call_close_fds(call);
		errno = EPROTO;
		return (-1);
	}
	cp->cp_is_pipe = cp->cp_nrings > 0 &&
	    vale_pipe_name(name, &end) != 0;
	cp->cp_gone = 0;
	cp->cp_fd = fd;
	if (port_map(cp, name, end, new) == -1) {
		error = errno;
		call_close_fds(call);
		errno = error;
		return (-1);
	}
	return (0);
}

int
vale_client_open(struct vale_client_port *cp, int fd, const char *name,
    const struct nmreq_register *reg, int proof, char *why)
{
	struct nmreq_header hdr = { .nr_version = NETMAP_API,
	    .nr_reqtype = NETMAP_REQ_REGISTER };
	struct vale_client_call call = { .hdr = &hdr, .body = &cp->cp_reg,
	    .size = sizeof(cp->cp_reg), .reply = &cp->cp_reg,
	    .reply_max = sizeof(cp->cp_reg) };
	int error;

	cp->cp_reg = *reg;
	if (proof != -1)
		call.fds[call.nfds++] = proof;
	if (snprintf(hdr.nr_name, sizeof(hdr.nr_name), "%s", name) >=
	    (int)sizeof(hdr.nr_name)) {
		errno = EINVAL;
		return (-1);
	}
	error = vale_client_call(fd, &call);
	if (why != NULL)
		memcpy(why, call.why, sizeof(call.why));
	return (error == -1 ? -1 : port_start(cp, fd, &call, name, true));
}

int
vale_client_share(struct vale_client_port *cp, int fd,
    char name[NETMAP_REQ_IFNAMSIZ])
{
	struct nmreq_header hdr = { .nr_version = NETMAP_API,
	    .nr_reqtype = VALE_WIRE_SHARE };
	struct vale_client_call call = { .hdr = &hdr, .reply = &cp->cp_reg,
	    .reply_max = sizeof(cp->cp_reg) };

	if (vale_client_call(fd, &call) == -1 ||
	    port_start(cp, fd, &call, hdr.nr_name, false) == -1)
		return (-1);
	memcpy(name, hdr.nr_name, sizeof(hdr.nr_name));
	return (0);
}

/* Return whether nobody can take away a page of these `size' bytes. */
static bool
memory_stays(int fd, uint64_t size)
{
	const int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	return (seals != -1 && (seals & F_SEAL_SHRINK) != 0 &&
	    peer_fstat(fd, &st) == 0 && (uint64_t)st.st_size >= size);
}

int
vale_client_take(struct vale_client_port *cp, const char *name,
    const struct nmreq_register *reg, const int *fds, unsigned int nfds)
{
	struct vale_client_call call = { .nfds = nfds,
	    .reply_size = sizeof(*reg) };

	cp->cp_reg = *reg;
	cp->cp_fd = -1;
	cp->cp_gone = 0;
	cp->cp_is_pipe = false;
	cp->cp_private = true;
	if (nfds > nitems(call.fds)) {
		errno = EPROTO;
		return (-1);
	}
	memcpy(call.fds, fds, nfds * sizeof(*fds));
	if (!port_take(cp, &call) || cp->cp_nrings == 0 ||
	    !memory_stays(cp->cp_memory, reg->nr_memsize)) {
		errno = EPROTO;
		return (-1);
	}
	return (port_map(cp, name, 0, true));
}

void
vale_client_unmap(struct vale_client_port *cp)
{
	munmap(cp->cp_base, cp->cp_reg.nr_memsize);
}

void
vale_client_close(struct vale_client_port *cp)
{
	unsigned int i;

	vale_client_unmap(cp);
	for (i = 0; i < cp->cp_nrings; i++) {
		close(cp->cp_ring[i].vcr_tx_kick);
		close(cp->cp_ring[i].vcr_rx_kick);
	}
	close(cp->cp_window);
	close(cp->cp_memory);
	close(cp->cp_fd);
}

/* Set the time of a sync that has ended of a receive ring, as netmap does. */
static void
rx_stamp(struct netmap_ring *ring)
{
	gettimeofday(&ring->ts, NULL);
}

/* Set that of a transmit ring, if the program asks for it. */
static void
tx_stamp(struct netmap_ring *ring)
{
	if ((ring->flags & NR_TIMESTAMP) != 0)
		gettimeofday(&ring->ts, NULL);
}

/*
 * Copy what is elsewhere, from the last head on, into buffers.  A slot that is
 * longer than its buffer, or has none, keeps NS_INDIRECT, and valed drops it.
 */
static void
ring_copy(const struct vale_client_port *cp, struct netmap_ring *ring,
    uint32_t sent, uint32_t head)
{
	struct netmap_slot *slot;
	uint32_t i;

	for (i = sent; i != head; i = nm_ring_next(ring, i)) {
		slot = &ring->slot[i];
		if ((slot->flags & NS_INDIRECT) == 0 ||
		    slot->len > ring->nr_buf_size ||
		    !vale_buf_valid(slot->buf_idx, cp->cp_nbufs))
			continue;
		memcpy(NETMAP_BUF(ring, slot->buf_idx),
		    (const void *)(uintptr_t)slot->ptr, slot->len);
		slot->flags &= ~NS_INDIRECT;
	}
}

/* Kick the other side.  A socket that is full has earlier kicks. */
static void
kick_send(int fd)
{
	(void)send(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Kick valed after the program has published slots, if valed asks for that. */
static void
ring_kick(struct vale_client_port *cp, struct vale_csb *csb)
{
	if (atomic_load_32(&csb->tx_ktoa.kern_need_kick) != 0 &&
	    atomic_swap_32(&csb->tx_ktoa.kern_need_kick, 0) != 0)
		kick_send(cp->cp_ring[0].vcr_tx_kick);
}

/* Set a ring back to what was published last. */
static int
ring_back(struct netmap_ring *ring, uint32_t published, int error)
{
	ring->head = ring->cur = published;
	errno = error;
	return (-1);
}

/* Sync an end of a pipe; `fd' is the socket that wakes the other one. */
static int
pipe_sync(struct vale_client_port *cp,
    int (*sync)(struct vale_pipe *, bool *), int fd)
{
	bool kick;
	int error = sync(&cp->cp_pipe, &kick);

	if (kick)
		kick_send(fd);
	return (error);
}

/* Show what valed has done. */
static int
tx_show(const struct vale_client_ring *vcr)
{
	return (vale_window_tail(vcr->vcr_txring,
	    atomic_load_acq_32(&vcr->vcr_csb->tx_ktoa.hwtail)));
}

static int
rx_show(const struct vale_client_ring *vcr)
{
	return (vale_window_take(vcr->vcr_rxring, vcr->vcr_rx_slots,
	    atomic_load_acq_32(&vcr->vcr_csb->rx_ktoa.hwtail), 0));
}

int
vale_client_txsync(struct vale_client_port *cp, unsigned int i)
{
	struct vale_client_ring *vcr = &cp->cp_ring[i];
	struct netmap_ring *ring = vcr->vcr_txring;
	struct vale_csb *csb = vcr->vcr_csb;
	const uint32_t head = ring->head, sent = vcr->vcr_heads->vwr_sent;

	if (cp->cp_is_pipe) {
		if (pipe_sync(cp, vale_pipe_txsync, vcr->vcr_tx_kick) == -1)
			return (-1);
		tx_stamp(ring);
		return (0);
	}
	if ((cp->cp_reg.nr_flags & (NR_MONITOR_TX | NR_MONITOR_RX)) != 0)
		return (head == sent ? 0 : ring_back(ring, sent, EIO));
	if (head >= ring->num_slots)
		return (ring_back(ring, sent, EINVAL));
	if (head != sent) {
		ring_copy(cp, ring, sent, head);
		vale_window_put(ring, vcr->vcr_tx_slots, sent, head);
		vcr->vcr_heads->vwr_sent = head;
		atomic_store_32(&csb->tx_atok.cur, ring->cur);
		atomic_store_rel_32(&csb->tx_atok.head, head);
		atomic_thread_fence_seq_cst();
		ring_kick(cp, csb);
	}
	if (tx_show(vcr) == -1)
		return (-1);
	tx_stamp(ring);
	return (0);
}

/*
 * Receive bytes that wait.  Returns their number, or -1 if the other side has
 * closed the socket; ECONNRESET, if it left unread what this side had sent.
 */
static ssize_t
receive_now(int fd, char *buf, size_t len, int flags)
{
	ssize_t n = recv(fd, buf, len, flags | MSG_DONTWAIT);

	if (n == -1)
		return (errno == ECONNRESET ? -1 : 0);
	return (n == 0 ? -1 : n);
}

/*
 * Take all kicks, and see whether valed has ended.  There is one for each time
 * that a side has asked, which is few; who sends many does not keep this side
 * from its work.
 */
static void
kick_drain(struct vale_client_port *cp, int fd)
{
	char kicks[64];
	unsigned int i;
	ssize_t n;

	for (i = 0; i < KICK_READS; i++) {
		n = receive_now(fd, kicks, sizeof(kicks), 0);
		if (n != (ssize_t)sizeof(kicks))
			break;
	}
	if (n == -1)
		atomic_store_32(&cp->cp_gone, 1);
}

int
vale_client_rxsync(struct vale_client_port *cp, unsigned int i)
{
	struct vale_client_ring *vcr = &cp->cp_ring[i];
	struct netmap_ring *ring = vcr->vcr_rxring;
	struct vale_csb *csb = vcr->vcr_csb;
	const uint32_t cur = ring->cur, head = ring->head;

	if (cp->cp_is_pipe) {
		if (pipe_sync(cp, vale_pipe_rxsync, vcr->vcr_rx_kick) == -1)
			return (-1);
		rx_stamp(ring);
		return (0);
	}
	if (head >= ring->num_slots || cur >= ring->num_slots)
		return (ring_back(ring, vcr->vcr_heads->vwr_released, EINVAL));
	vale_window_release(ring, vcr->vcr_rx_slots,
	    vcr->vcr_heads->vwr_released, head);
	vcr->vcr_heads->vwr_released = head;
	atomic_store_32(&csb->rx_atok.cur, cur);
	atomic_store_rel_32(&csb->rx_atok.head, head);
	if (rx_show(vcr) == -1)
		return (-1);
	rx_stamp(ring);
	return (0);
}

bool
vale_client_rxwait(struct vale_client_port *cp, unsigned int i)
{
	struct vale_client_ring *vcr = &cp->cp_ring[i];

	kick_drain(cp, vcr->vcr_rx_kick);
	if (cp->cp_is_pipe)
		return (vale_pipe_rxwait(&cp->cp_pipe));
	atomic_store_32(&vcr->vcr_csb->rx_atok.appl_need_kick, 1);
	atomic_thread_fence_seq_cst();
	/* The next sync says what is wrong. */
	return (rx_show(vcr) == -1 ||
	    vcr->vcr_rxring->cur != vcr->vcr_rxring->tail);
}

bool
vale_client_txwait(struct vale_client_port *cp, unsigned int i)
{
	struct vale_client_ring *vcr = &cp->cp_ring[i];

	kick_drain(cp, vcr->vcr_tx_kick);
	if (cp->cp_is_pipe)
		return (vale_pipe_txwait(&cp->cp_pipe));
	atomic_store_32(&vcr->vcr_csb->tx_atok.appl_need_kick, 1);
	atomic_thread_fence_seq_cst();
	return (tx_show(vcr) == -1 ||
	    vcr->vcr_txring->cur != vcr->vcr_txring->tail);
}

bool
vale_client_alive(int fd)
{
	char c;

	return (receive_now(fd, &c, 1, MSG_PEEK) != -1);
}
