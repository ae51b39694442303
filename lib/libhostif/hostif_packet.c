/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * An interface through the rings of packet(7): hostif_impl.h.
 *
 *	receive ring	  | header | reserve | virtio-net header | frame |
 *	transmit ring	  | header |	       virtio-net header | frame |
 *
 * Each slot has a status word, which says whether it is the kernel's or ours,
 * and space for 64 KB.  So packets of several segments and partial checksums
 * pass both ways as they are.  The rings are those of TPACKET_V2: a slot is
 * shown when it is filled.  TPACKET_V3 shows a block of frames when it is full
 * or after a time of at least a millisecond, which each answer would wait.
 *
 * Receive.  The transmit slots of the port point at the frames where they lie;
 * the switch copies them, and the kernel gets a batch of slots back after the
 * sync.  A VLAN tag, which the kernel has taken out of the frame, is put back.
 * What the virtio-net header cannot say of a packet is completed before
 * (frame_host.h); a packet in a tunnel is cut here, with all its headers.
 *
 * Transmit.  Frames are copied to the ring, and one sendto(2) sends a batch.
 * It may send a part (the socket's buffer is full, the interface is down): the
 * slots left are sent by the next one.  If it fails for a frame that the kernel
 * has freed, that frame is lost, as with a bridge, but the kernel would try its
 * slot for ever.  So the slot is made invalid: with PACKET_LOSS the kernel
 * then skips it.  Segments of UDP are cut here, because Linux has a virtio-net
 * header for them only since 6.2.
 *
 * The memory is the kernel's.  A process with the same descriptors could write
 * to it, so offsets and lengths are read once and checked.  Only the
 * interface's thread.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <errno.h>

#include <linux/if_packet.h>

#include <stdlib.h>
#include <string.h>

#include "frame_cursor.h"
#include "frame_cut.h"
#include "frame_host.h"
#include "frame_tunnel.h"
#include "frame_vnet.h"
#include "hostif_impl.h"

#define	PACKET_FD	HOSTIF_FD_KIND
#define	RX_SLOTS	(HOSTIF_RX_BLOCKS * HOSTIF_BLOCK_SLOTS)
#define	TX_SLOTS	(HOSTIF_TX_BLOCKS * HOSTIF_BLOCK_SLOTS)
#define	RX_SIZE		((size_t)HOSTIF_RX_BLOCKS * HOSTIF_BLOCK_SIZE)
#define	TX_SIZE		((size_t)HOSTIF_TX_BLOCKS * HOSTIF_BLOCK_SIZE)
/* Offset of the virtio-net header in a slot of the transmit ring. */
#define	TX_DATA		(TPACKET2_HDRLEN - sizeof(struct sockaddr_ll))
/*
 * The kernel copies as many bytes of a frame as the virtio-net header says that
 * its headers have; of the others it takes the pages, which costs more than to
 * copy a frame as short as that.
 */
#define	TX_COPIED	2048
#define	VNET_HDR_LEN	2		/* offset of that number */
/* The longest pause between two new rings, ticks. */
#define	PAUSES_MAX	7
/* The addresses of an Ethernet header. */
#define	ADDRS		12

_Static_assert(TX_DATA + FRAME_VNET_SHORT + VALE_FRAME_MAX <= HOSTIF_SLOT_SIZE,
    "slot of the transmit ring");

struct packet {
	uint8_t		*pk_mem;	/* receive ring, transmit ring */
	uint32_t	 pk_rx_next;	/* slot to look at */
	uint32_t	 pk_tx_next;	/* slot to fill */
	uint32_t	 pk_unsent;	/* slots before it that the kernel has
					   not taken */
	bool		 pk_received;	/* since the last tick */
	uint64_t	 pk_longs;	/* packets that are too long, before */
	bool		 pk_long;	/* a line was written about others */
	uint32_t	 pk_pause;	/* ticks until the ring may be opened
					   again, */
	uint32_t	 pk_pauses;	/* and the number after that */
	/* Segments of a received packet in a tunnel; one fits at least. */
	uint8_t		 pk_cut[2 * HOSTIF_SLOT_SIZE];
	/* Headers of received frames, each in a slot of the port. */
};

static struct tpacket2_hdr *
packet_slot(uint8_t *ring, uint32_t i)
{
	return ((struct tpacket2_hdr *)(ring +
	    (size_t)(i / HOSTIF_BLOCK_SLOTS) * HOSTIF_BLOCK_SIZE +
	    (size_t)(i % HOSTIF_BLOCK_SLOTS) * HOSTIF_SLOT_SIZE));
}

static struct tpacket2_hdr *
packet_rx_slot(const struct packet *pk, uint32_t i)
{
	return (packet_slot(pk->pk_mem, i));
}

static struct tpacket2_hdr *
packet_tx_slot(const struct packet *pk, uint32_t i)
{
	return (packet_slot(pk->pk_mem + RX_SIZE, i));
}

/*
 * Map the rings.  Those of a packet socket are the kernel's memory, which
 * cannot vanish; a file that was passed in its place could be anybody's.
 */
static uint8_t *
packet_map(int fd)
{
	socklen_t len = sizeof(int);
	int domain;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == -1)
		return (MAP_FAILED);
	if (domain != AF_PACKET) {
		errno = EAFNOSUPPORT;
		return (MAP_FAILED);
	}
	return (mmap(NULL, RX_SIZE + TX_SIZE, PROT_READ | PROT_WRITE,
	    MAP_SHARED, fd, 0));
}

static const char *
packet_start(struct hostif *hi)
{
	struct packet *pk;

	pk = calloc(1, sizeof(*pk));
	if (pk == NULL)
		return ("memory");
	pk->pk_mem = packet_map(hi->fds.hf_fd[PACKET_FD]);
	if (pk->pk_mem == MAP_FAILED) {
		free(pk);
		return ("rings");
	}
	if (vale_set_header(hi->port, VALE_HEADER_FRAME) == -1) {
		munmap(pk->pk_mem, RX_SIZE + TX_SIZE);
		free(pk);
		return ("virtio-net headers");
	}
	pk->pk_longs = hi->counters[HOSTIF_C_RX_LONG];
	hi->data = pk;
	return (NULL);
}

static void
packet_stop(struct hostif *hi)
{
	struct packet *pk = hi->data;

	munmap(pk->pk_mem, RX_SIZE + TX_SIZE);
	free(pk);
}

/* Put the VLAN tag back, at the cost of the virtio-net header before it. */
static uint8_t *
packet_tag(uint8_t *frame, const struct tpacket2_hdr *h, uint32_t status)
{
	const uint16_t tpid = (status & TP_STATUS_VLAN_TPID_VALID) != 0 ?
	    h->tp_vlan_tpid : 0x8100;
	const uint16_t tci = h->tp_vlan_tci;

	memmove(frame - HOSTIF_TAG, frame, ADDRS);
	frame -= HOSTIF_TAG;
	frame[ADDRS] = tpid >> 8;
	frame[ADDRS + 1] = (uint8_t)tpid;
	frame[ADDRS + 2] = tci >> 8;
	frame[ADDRS + 3] = (uint8_t)tci;
	return (frame);
}

/*
 * Put the segments of a packet in a tunnel into the port's ring, which is
 * empty, and sync.  Returns their number.
 */
static uint32_t
packet_cut(struct hostif *hi, const struct frame *frame)
{
	struct packet *pk = hi->data;
	struct frame_tunnel ft;
	struct frame_cut *cut = &ft.ft_cut;
	uint32_t len, n = 0, used = 0;
	uint8_t *p;

	if (!frame_tunnel_begin(&ft, frame))
		return (0);
	while (frame_cut_next(cut)) {
		len = cut->fc_hdrlen + cut->fc_paylen;
		if (used + len > sizeof(pk->pk_cut) ||
		    n % HOSTIF_BATCH == HOSTIF_BATCH - 1) {
			vale_txsync(hi->port);
			used = 0;
		}
		p = pk->pk_cut + used;
		frame_cut_copy(cut, p + cut->fc_hdrlen, cut->fc_paylen);
		frame_tunnel_header(&ft, p);
		(void)hostif_put_frame(hi, p, len);
		used += len;
		n++;
	}
	vale_txsync(hi->port);
	return (n);
}

/* Put the frame into the port's ring. */
static void
packet_put(struct hostif *hi, const struct frame *frame)
{
	struct netmap_ring *ring = hi->port->txring;
	const struct iovec *iov = frame->f_iov;
	const uint32_t head = ring->head;

	(void)hostif_put_frame(hi, iov->iov_base, iov->iov_len);
	if ((frame->f_flags & FRAME_CSUM_PARTIAL) != 0) {
		ring->slot[head].flags |= VALE_SLOT_FRAME;
		frame_set_known(&hi->port->txframe[head], frame);
	}
}

/*
 * Put a packet in a tunnel into the port's ring, cut into segments.  Returns
 * false if it cannot be cut.
 */
static bool
packet_put_tunnel(struct hostif *hi, const struct frame *frame)
{
	uint32_t n;

	vale_txsync(hi->port);
	n = packet_cut(hi, frame);
	if (n == 0)
		return (false);
	hostif_count(hi, HOSTIF_C_RX_CUT, 1);
	hostif_count(hi, HOSTIF_C_RX_SEGMENT, n);
	return (true);
}

/*
 * Put a received frame of `len' bytes at `p', which a virtio-net header
 * precedes, into the port's ring.  Returns its bytes, or 0.
 */
static uint32_t
packet_offer(struct hostif *hi, uint8_t *p, uint32_t len,
    const struct tpacket2_hdr *h, uint32_t status)
{
	struct iovec iov[2] = { { NULL, 0 }, { NULL, 0 } };
	struct frame frame = { .f_iov = iov };
	enum frame_host verdict;

	frame_set(&frame, nitems(iov), len);
	(void)frame_vnet_decode(&frame, p - FRAME_VNET_SHORT);
	verdict = frame_host_prepare(&frame, p);
	if ((status & TP_STATUS_VLAN_VALID) != 0) {
		p = packet_tag(p, h, status);
		frame.f_len += HOSTIF_TAG;
		frame.f_csum_start += HOSTIF_TAG;
	}
	if (frame.f_len > VALE_FRAME_MAX) {
		hostif_count(hi, HOSTIF_C_RX_LONG, 1);
		return (0);
	}
	iov[0].iov_base = p;
	iov[0].iov_len = frame.f_len;
	if (verdict == FRAME_HOST_OK)
		packet_put(hi, &frame);
	else if (verdict == FRAME_HOST_BAD || !packet_put_tunnel(hi, &frame)) {
		hostif_count(hi, HOSTIF_C_RX_OFFLOAD, 1);
		return (0);
	}
	return (frame.f_len);
}

/* Put a received frame into the port's ring.  Returns its bytes, or 0. */
static uint32_t
packet_receive_frame(struct hostif *hi, struct tpacket2_hdr *h,
    uint32_t status)
{
	const uint32_t mac = *(volatile uint16_t *)&h->tp_mac;
	const uint32_t len = *(volatile uint32_t *)&h->tp_snaplen;

	if (len < *(volatile uint32_t *)&h->tp_len) {
		hostif_count(hi, HOSTIF_C_RX_LONG, 1);
		return (0);
	}
	if (len < HOSTIF_ETHER || len > HOSTIF_SLOT_SIZE ||
	    mac < sizeof(*h) + FRAME_VNET_SHORT + HOSTIF_TAG ||
	    mac + len > HOSTIF_SLOT_SIZE) {
		hostif_count(hi, HOSTIF_C_RX_BAD, 1);
		return (0);
	}
	return (packet_offer(hi, (uint8_t *)h + mac, len, h, status));
}

static unsigned int
packet_receive(struct hostif *hi)
{
	struct packet *pk = hi->data;
	struct tpacket2_hdr *h;
	uint64_t bytes = 0;
	uint32_t i = pk->pk_rx_next, len, status;
	unsigned int frames = 0, n;

	for (n = 0; n < HOSTIF_BATCH; n++) {
		h = packet_rx_slot(pk, i);
		status = atomic_load_acq_32(&h->tp_status);
		if ((status & TP_STATUS_USER) == 0)
			break;
		len = packet_receive_frame(hi, h, status);
		bytes += len;
		frames += len != 0;
		i = i + 1 == RX_SLOTS ? 0 : i + 1;
	}
	if (n == 0)
		return (0);
	vale_txsync(hi->port);
	while (pk->pk_rx_next != i) {
		h = packet_rx_slot(pk, pk->pk_rx_next);
		atomic_store_rel_32(&h->tp_status, TP_STATUS_KERNEL);
		pk->pk_rx_next = pk->pk_rx_next + 1 == RX_SLOTS ? 0 :
		    pk->pk_rx_next + 1;
	}
	hostif_count(hi, HOSTIF_C_RX_FRAME, frames);
	hostif_count(hi, HOSTIF_C_RX_BYTE, bytes);
	hostif_count(hi, HOSTIF_C_RX_BATCH, 1);
	pk->pk_received = true;
	return (n);
}

/*
 * Return the next slot of the transmit ring, or NULL if the kernel still has
 * it.
 */
static uint8_t *
packet_space(const struct packet *pk)
{
	struct tpacket2_hdr *h = packet_tx_slot(pk, pk->pk_tx_next);

	if (atomic_load_acq_32(&h->tp_status) != TP_STATUS_AVAILABLE)
		return (NULL);
	return ((uint8_t *)h + TX_DATA);
}

/*
 * Complete the virtio-net header of a frame that is not cut; the flags are set.
 */
static void
packet_copied(uint8_t *vnet, uint32_t len)
{
	if (len <= TX_COPIED)
		le16enc(vnet + VNET_HDR_LEN, len);
}

/* Send the slot, which has a virtio-net header and a frame of `len' bytes. */
static void
packet_commit(struct hostif *hi, uint32_t len)
{
	struct packet *pk = hi->data;
	struct tpacket2_hdr *h = packet_tx_slot(pk, pk->pk_tx_next);

	h->tp_len = FRAME_VNET_SHORT + len;
	atomic_store_rel_32(&h->tp_status, TP_STATUS_SEND_REQUEST);
	pk->pk_tx_next = pk->pk_tx_next + 1 == TX_SLOTS ? 0 :
	    pk->pk_tx_next + 1;
	pk->pk_unsent++;
	hostif_count(hi, HOSTIF_C_TX_FRAME, 1);
	hostif_count(hi, HOSTIF_C_TX_BYTE, len);
}

/* Send the segments of a frame, as far as there is space. */
static void
packet_send_cut(struct hostif *hi, const struct frame *frame)
{
	struct packet *pk = hi->data;
	struct frame_cut cut;
	uint8_t *p;

	if (!frame_cut_begin(&cut, frame)) {
		hostif_count(hi, HOSTIF_C_TX_BAD, 1);
		return;
	}
	while ((p = packet_space(pk)) != NULL && frame_cut_next(&cut)) {
		memset(p, 0, FRAME_VNET_SHORT);
		packet_copied(p, cut.fc_hdrlen + cut.fc_paylen);
		p += FRAME_VNET_SHORT;
		frame_cut_copy(&cut, p + cut.fc_hdrlen, cut.fc_paylen);
		frame_cut_header(&cut, p);
		packet_commit(hi, cut.fc_hdrlen + cut.fc_paylen);
	}
	hostif_count(hi, HOSTIF_C_TX_NOROOM, cut.fc_segments);
}

/* Send a frame; there is a slot. */
static void
packet_send_frame(struct hostif *hi, const struct frame *frame, uint8_t *p)
{
	struct frame_cursor cur;

	if (!hostif_takes(hi, frame))
		return;
	if ((frame->f_gso_type & ~FRAME_GSO_ECN) == FRAME_GSO_UDP_L4) {
		packet_send_cut(hi, frame);
		return;
	}
	if (frame->f_flags == 0 && frame->f_gso_type == FRAME_GSO_NONE)
		memset(p, 0, FRAME_VNET_SHORT);
	else
		frame_vnet_encode(frame, p, FRAME_VNET_SHORT);
	if (frame->f_gso_type == FRAME_GSO_NONE)
		packet_copied(p, frame->f_len);
	frame_cursor_init(&cur, frame->f_iov);
	frame_cursor_copy(&cur, p + FRAME_VNET_SHORT, frame->f_len);
	packet_commit(hi, frame->f_len);
}

/* Return whether there are slots that the kernel has not taken. */
static bool
packet_unsent(struct packet *pk)
{
	const struct tpacket2_hdr *h;

	for (; pk->pk_unsent > 0; pk->pk_unsent--) {
		h = packet_tx_slot(pk, (pk->pk_tx_next + TX_SLOTS -
		    pk->pk_unsent) % TX_SLOTS);
		if (atomic_load_acq_32(&h->tp_status) ==
		    TP_STATUS_SEND_REQUEST)
			return (true);
	}
	return (false);
}

/*
 * Have the kernel skip the slot, which is not sent: it has no virtio-net
 * header.  Returns false if that was done before.
 */
static bool
packet_skip(struct tpacket2_hdr *h)
{
	if (h->tp_len == 0)
		return (false);
	h->tp_len = 0;
	return (true);
}

/*
 * Return whether sendto(2) failed for the frame in the first slot, and not for
 * what passes: no memory for the socket's frames, the interface is down or
 * gone.
 */
static bool
packet_frame_failed(int error)
{
	return (error != EAGAIN && error != EINTR && error != ENETDOWN &&
	    error != ENXIO);
}

/* Skip `max' slots that are not sent.  Returns how many there were. */
static uint32_t
packet_skip_unsent(struct packet *pk, uint32_t max)
{
	uint32_t i, n = 0;

	for (i = pk->pk_unsent; i > 0 && n < max; i--)
		n += packet_skip(packet_tx_slot(pk, (pk->pk_tx_next +
		    TX_SLOTS - i) % TX_SLOTS));
	return (n);
}

/*
 * Have the kernel send the slots.  A call takes one from it at least, or is the
 * last.
 */
static void
packet_kick(struct hostif *hi)
{
	struct packet *pk = hi->data;
	uint32_t before;
	unsigned int calls;
	int error;

	for (calls = 0; calls < 2 * TX_SLOTS && packet_unsent(pk); calls++) {
		before = pk->pk_unsent;
		hostif_count(hi, HOSTIF_C_TX_CALL, 1);
		if (sendto(hi->fds.hf_fd[PACKET_FD], NULL, 0, MSG_DONTWAIT,
		    NULL, 0) != -1) {
			if (packet_unsent(pk) && pk->pk_unsent == before)
				return;
			continue;
		}
		hostif_count(hi, HOSTIF_C_TX_ERROR, 1);
		if (!packet_frame_failed(errno))
			return;
		error = errno;
		if (packet_unsent(pk) && packet_skip_unsent(pk, 1) > 0)
			hostif_lost(hi, error);
	}
}

static unsigned int
packet_send(struct hostif *hi)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	struct packet *pk = hi->data;
	struct netmap_ring *ring = hi->port->rxring;
	uint32_t next = ring->head;
	uint8_t *p = NULL;
	unsigned int n;
	bool waited = hi->tx_state == HOSTIF_TX_FULL;

	for (n = 0; n < HOSTIF_BATCH; n++) {
		/* While it is down, frames are dropped, not queued. */
		p = packet_space(pk);
		if ((p == NULL && hi->up) || !hostif_peek(hi, &next, &frame))
			break;
		packet_send_frame(hi, &frame, p);
		ring->head = ring->cur = next;
	}
	if (n > 0)
		hostif_count(hi, HOSTIF_C_TX_BATCH, 1);
	if (hi->up)
		packet_kick(hi);
	else if (packet_unsent(pk))
		/* Frames must not be sent late. */
		hostif_count(hi, HOSTIF_C_TX_DOWN,
		    packet_skip_unsent(pk, TX_SLOTS));
	if (hi->up && pk->pk_unsent > 0)
		hi->tx_state = HOSTIF_TX_AGAIN;
	else if (hi->up && p == NULL)
		hi->tx_state = HOSTIF_TX_FULL;
	else
		hi->tx_state = HOSTIF_TX_IDLE;
	if (hi->tx_state == HOSTIF_TX_FULL && !waited)
		hostif_count(hi, HOSTIF_C_TX_WAIT, 1);
	return (n);
}

static unsigned int
packet_poll(struct hostif *hi, struct pollfd *pfd, unsigned int max __unused)
{
	pfd->fd = hi->fds.hf_fd[PACKET_FD];
	pfd->events = POLLIN;
	if (hi->tx_state == HOSTIF_TX_FULL)
		pfd->events |= POLLOUT;
	return (1);
}

static void
packet_event(struct hostif *hi __unused, const struct pollfd *pfd)
{
	uint8_t byte;

	/*
	 * Take the error, such as ENETDOWN, or poll(2) returns it for ever.
	 * What it means comes from hostif_link.c.
	 */
	if ((pfd->revents & POLLERR) != 0)
		(void)recv(pfd->fd, &byte, sizeof(byte), MSG_DONTWAIT);
}

/* Open the receive ring again.  If that fails, the interface is of no use. */
static void
packet_reopen(struct hostif *hi)
{
	struct packet *pk = hi->data;

	hostif_count(hi, HOSTIF_C_RX_STOP, 1);
	if (hi->counters[HOSTIF_C_RX_STOP] == 1)
		hostif_log(hi, "the kernel's receive ring stopped at a packet "
		    "that it cannot describe: opened again");
	if (hostif_ring_reopen(hi->fds.hf_fd[PACKET_FD], pk->pk_mem,
	    RX_SIZE + TX_SIZE) == -1) {
		hostif_log(hi, "the receive ring: %s: attach the interface "
		    "again", strerror(errno));
		hi->up = false;
		atomic_store_bool(&hi->gone, true);
	}
	pk->pk_rx_next = 0;
	pk->pk_pause = pk->pk_pauses;
	pk->pk_pauses = MIN(2 * pk->pk_pauses + 1, PAUSES_MAX);
}

/*
 * Count frames that the kernel has dropped.  All slots were the kernel's after
 * the last batch, so if it dropped some since the last tick, and gave us none,
 * its ring has stopped: hostif_ring.c.  Or nothing came but packets that it
 * cannot describe, which looks the same; then a new ring does no harm.  While
 * nothing arrives between two such ticks, the pauses between them grow.
 */
static void
packet_check(struct hostif *hi)
{
	struct packet *pk = hi->data;
	struct tpacket_stats stats = { .tp_drops = 0 };
	socklen_t len = sizeof(stats);

	if (getsockopt(hi->fds.hf_fd[PACKET_FD], SOL_PACKET, PACKET_STATISTICS,
	    &stats, &len) == 0)
		hostif_count(hi, HOSTIF_C_RX_FULL, stats.tp_drops);
	if (pk->pk_received) {
		pk->pk_received = false;
		pk->pk_pause = pk->pk_pauses = 0;
	} else if (pk->pk_pause > 0)
		pk->pk_pause--;
	else if (stats.tp_drops > 0 && packet_rx_slot(pk,
	    pk->pk_rx_next)->tp_status == TP_STATUS_KERNEL)
		packet_reopen(hi);
}

static void
packet_tick(struct hostif *hi)
{
	struct packet *pk = hi->data;

	packet_check(hi);
	if (pk->pk_long || hi->counters[HOSTIF_C_RX_LONG] == pk->pk_longs)
		return;
	pk->pk_long = true;
	hostif_log(hi, "packets of more than 64 KB are dropped: set "
	    "gso_max_size of what sends them and gro_max_size of %s to 65536, "
	    "by ip link set", hi->link.hl_name);
}

const struct hostif_ops hostif_packet_ops = {
	.ho_start = packet_start,
	.ho_stop = packet_stop,
	.ho_receive = packet_receive,
	.ho_send = packet_send,
	.ho_poll = packet_poll,
	.ho_event = packet_event,
	.ho_tick = packet_tick,
};
