/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A frame port over a port of another valed's switch; see vale_remote.h.
 *
 * Send.  Frames are copied into the buffers of the transmit ring's slots, each
 * behind a virtio-net header, so that their sender's memory is free when the
 * flush returns.  The other valed sends them when its thread runs.  If the ring
 * is full, a flush waits for that thread, but not for long; and if it has
 * waited in vain, no flush waits until slots are free.  What finds no slot is
 * dropped.
 *
 * Receive.  The other valed copies frames into buffers of the receive ring, and
 * they are shown there.  It may write to them at any time, as a guest may to
 * frames that it sends.  Which slots there are, and their lengths, are read
 * once (vale_client.c).
 *
 * A frame is copied once more than over a port of this process, and a kick
 * wakes the one process or the other if it sleeps.
 */

#include <sys/socket.h>
#include <sys/systm.h>
#include <sys/fast_path.h>

#include <net/ethernet.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "frame_none.h"
#include "frame_vnet.h"
#include "peer_close.h"
#include "peer_fd.h"
#include "vale_clock.h"
#include "vale_error.h"
#include "vale_remote.h"

/* How long a flush waits for slots, ms. */
#define	REMOTE_WAIT_MS	10

/* fds[]: PORT_FDS of vale_client.c. */
#define	REMOTE_TX_KICK	2
#define	REMOTE_RX_KICK	3

static struct vale_remote *
remote_of(struct frame_port *port)
{
	return (__containerof(port, struct vale_remote, vrm_frames.vfp_port));
}

/*
 * The process with the connection.
 */

static int
ask(int fd, const char *name, uint16_t type, const void *body, size_t size)
{
	struct nmreq_header hdr = { .nr_version = NETMAP_API,
	    .nr_reqtype = type };
	struct vale_client_call call = { .hdr = &hdr, .body = body,
	    .size = size };

	strlcpy(hdr.nr_name, name, sizeof(hdr.nr_name));
	return (vale_client_ask(fd, &call));
}

int
vale_remote_ask(int fd, const char *name)
{
	const struct nmreq_register reg = { .nr_mode = NR_REG_ALL_NIC,
	    .nr_tx_rings = 1, .nr_rx_rings = 1 };
	const struct nmreq_port_hdr hdr = { .nr_hdr_len = VALE_HEADER };

	return (ask(fd, name, NETMAP_REQ_REGISTER, &reg, sizeof(reg)) == -1 ||
	    ask(fd, name, NETMAP_REQ_PORT_HDR_SET, &hdr, sizeof(hdr)) == -1 ?
	    -1 : 0);
}

static int
answer(int fd, struct vale_client_call *call, char *why)
{
	const int result = vale_client_answer(fd, call);

	memcpy(why, call->why, sizeof(call->why));
	return (result);
}

static bool
answer_valid(const struct vale_client_call *call)
{
	return (call->reply_size == sizeof(struct nmreq_register) &&
	    call->nfds == VALE_REMOTE_FDS &&
	    fcntl(call->fds[0], F_GET_SEALS) != -1 &&
	    fcntl(call->fds[1], F_GET_SEALS) != -1 &&
	    peer_socket_is(call->fds[REMOTE_TX_KICK], SO_DOMAIN, AF_UNIX) &&
	    peer_socket_is(call->fds[REMOTE_RX_KICK], SO_DOMAIN, AF_UNIX));
}

int
vale_remote_answer(int fd, struct nmreq_register *reg,
    int fds[VALE_REMOTE_FDS], char *why)
{
	struct nmreq_header hdr = { .nr_version = NETMAP_API };
	struct vale_client_call call = { .hdr = &hdr, .reply = reg,
	    .reply_max = sizeof(*reg) };

	if (answer(fd, &call, why) == -1)
		return (-1);
	if (!answer_valid(&call)) {
		while (call.nfds > 0)
			close(call.fds[--call.nfds]);
		return (vale_fail(EPROTO));
	}
	memcpy(fds, call.fds, sizeof(call.fds[0]) * VALE_REMOTE_FDS);
	return (0);
}

int
vale_remote_ready(int fd, char *why)
{
	struct nmreq_header hdr = { .nr_version = NETMAP_API };
	struct vale_client_call call = { .hdr = &hdr };

	if (answer(fd, &call, why) == -1)
		return (-1);
	while (call.nfds > 0)
		close(call.fds[--call.nfds]);
	return (0);
}

/*
 * The frame port.
 */

/*
 * Send a frame of one fragment of which nothing is known, the fast path of
 * remote_send(), if the frame fits into a slot behind its header.
 */
static bool
remote_send_single_slot(struct netmap_ring *ring, const struct frame *frame)
{
	struct netmap_slot *slot = &ring->slot[ring->head];
	uint8_t *buf;

	if (ring->head == ring->tail || frame->f_len <= ETHER_HDR_LEN ||
	    frame->f_len > VALE_BUF_SIZE - VALE_HEADER)
		return (false);
	buf = (uint8_t *)NETMAP_BUF(ring, slot->buf_idx);
	frame_vnet_encode(frame, buf, VALE_HEADER);
	memcpy(buf + VALE_HEADER, frame->f_iov[0].iov_base, frame->f_len);
	slot->len = VALE_HEADER + frame->f_len;
	slot->flags = 0;
	ring->head = ring->cur = nm_ring_next(ring, ring->head);
	return (true);
}

static bool
remote_send(struct frame_port *port, const struct frame *frame)
{
	if (frame_single(frame) && FAST_PATH(remote_send_single_slot(
	    remote_of(port)->vrm_desc.txring, frame)))
		return (true);
	return (vale_frame_port_send_header(port, frame));
}

/* Wait for slots for any frame. */
static void
remote_wait(struct vale_remote *vr)
{
	struct vale_client_port *cp = &vr->vrm_client;
	struct netmap_ring *ring = vr->vrm_desc.txring;
	struct pollfd pfd = { .fd = vr->vrm_fds[REMOTE_TX_KICK],
	    .events = POLLIN };
	const uint64_t end = vale_now_ms() + REMOTE_WAIT_MS;
	uint64_t now;

	if (vr->vrm_stuck && ring->tail == vr->vrm_tail)
		return;
	vr->vrm_stuck = false;
	for (;;) {
		(void)vale_client_txwait(cp, 0);
		if (nm_ring_space(ring) >= NETMAP_MAX_FRAGS)
			return;
		now = vale_now_ms();
		if (now >= end || atomic_load_32(&cp->cp_gone) != 0)
			break;
		poll(&pfd, 1, end - now);
	}
	vr->vrm_stuck = true;
	vr->vrm_tail = ring->tail;
}

static void
remote_flush(struct frame_port *port)
{
	struct vale_remote *vr = remote_of(port);
	struct netmap_ring *ring = vr->vrm_desc.txring;

	if (ring->head == vr->vrm_sent &&
	    nm_ring_space(ring) >= NETMAP_MAX_FRAGS)
		return;
	if (vale_client_txsync(&vr->vrm_client, 0) == -1)
		vr->vrm_bad = true;
	vr->vrm_sent = ring->head;
	if (nm_ring_space(ring) < NETMAP_MAX_FRAGS)
		remote_wait(vr);
}

/*
 * Ask for a kick when the next frame comes, unless there are frames.  The
 * caller of a sync that finds none waits for that kick.
 */
static void
remote_rxwait(struct vale_remote *vr)
{
	struct netmap_ring *ring = vr->vrm_desc.rxring;

	if (ring->cur != ring->tail || (ring->flags & VALE_RING_POLLED) != 0)
		return;
	(void)vale_client_rxwait(&vr->vrm_client, 0);
	vr->vrm_found = true;
}

static void
remote_sync(struct frame_port *port)
{
	struct vale_remote *vr = remote_of(port);
	struct netmap_ring *ring = vr->vrm_desc.rxring;

	ring->head = ring->cur = vr->vrm_frames.vfp_rx_next;
	vr->vrm_found = false;
	if (vale_client_rxsync(&vr->vrm_client, 0) == -1)
		vr->vrm_bad = true;
	else
		remote_rxwait(vr);
}

/*
 * Show the next frame.  If all frames of a sync were invalid, no kick was asked
 * for.
 */
static bool
remote_peek(struct frame_source *source, struct frame *frame)
{
	struct vale_remote *vr = __containerof(source, struct vale_remote,
	    vrm_frames.vfp_source);
	bool shown = vale_frame_port_peek_header(source, frame);

	if (!shown && !vr->vrm_found) {
		vr->vrm_desc.rxring->cur = vr->vrm_frames.vfp_rx_next;
		remote_rxwait(vr);
		shown = vale_frame_port_peek_header(source, frame);
	}
	vr->vrm_found |= shown;
	return (shown);
}

static bool
remote_set_offloads(struct frame_port *port __unused)
{
	return (true);
}

static const struct frame_port_ops remote_ops = {
	.fpo_send = remote_send,
	.fpo_flush = remote_flush,
	.fpo_sync = remote_sync,
	.fpo_set_offloads = remote_set_offloads,
};

/* Do without a port. */
static void
remote_none(struct vale_remote *vr)
{
	struct vale_frame_port *vp = &vr->vrm_frames;

	vr->vrm_open = vr->vrm_bad = vr->vrm_stuck = false;
	frame_none_init(&vp->vfp_port, &vp->vfp_source);
}

void
vale_remote_init(struct vale_remote *vr)
{
	memset(vr, 0, sizeof(*vr));
	remote_none(vr);
}

/* Close them: sockets that others may have passed descriptors to. */
static void
remote_close_fds(const int fds[VALE_REMOTE_FDS])
{
	unsigned int i;

	for (i = 0; i < VALE_REMOTE_FDS; i++)
		if (!peer_close(fds[i]))
			close(fds[i]);
}

int
vale_remote_open(struct vale_remote *vr, const char *name,
    const struct nmreq_register *reg, const int fds[VALE_REMOTE_FDS])
{
	struct vale_client_port *cp = &vr->vrm_client;
	int error;

	MPASS(!vr->vrm_open);
	/* So many descriptors are those of one ring pair. */
	if (vale_client_take(cp, name, reg, fds, VALE_REMOTE_FDS) == -1) {
		error = errno;
		remote_close_fds(fds);
		return (vale_fail(error));
	}
	memcpy(vr->vrm_fds, fds, sizeof(vr->vrm_fds));
	vr->vrm_common = (struct vale_common){ .nifp = cp->cp_nifp,
	    .indirect_max = VALE_BUF_SIZE };
	strlcpy(vr->vrm_common.name, name, sizeof(vr->vrm_common.name));
	vr->vrm_desc = (struct vale_desc){ .fd = fds[REMOTE_RX_KICK],
	    .txring = cp->cp_ring[0].vcr_txring,
	    .rxring = cp->cp_ring[0].vcr_rxring, .common = &vr->vrm_common };
	vr->vrm_sent = vr->vrm_desc.txring->head;
	vale_frame_port_begin(&vr->vrm_frames, &vr->vrm_desc, &remote_ops,
	    NULL);
	vr->vrm_frames.vfp_source.fs_peek = remote_peek;
	vr->vrm_open = true;
	/* What came before frames had headers has none. */
	if (vale_client_rxsync(cp, 0) == -1)
		vr->vrm_bad = true;
	vr->vrm_frames.vfp_rx_next = vr->vrm_desc.rxring->tail;
	return (0);
}

void
vale_remote_close(struct vale_remote *vr)
{
	if (!vr->vrm_open)
		return;
	remote_none(vr);
	vale_client_unmap(&vr->vrm_client);
	remote_close_fds(vr->vrm_fds);
}

int
vale_remote_fd(const struct vale_remote *vr)
{
	return (vr->vrm_desc.fd);
}

bool
vale_remote_gone(const struct vale_remote *vr)
{
	return (!vr->vrm_open || vr->vrm_bad ||
	    atomic_load_32(&vr->vrm_client.cp_gone) != 0);
}

bool
vale_remote_bad(const struct vale_remote *vr)
{
	return (vr->vrm_bad);
}
