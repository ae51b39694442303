/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * valed's vfio-user server and hostile clients: one VM of valed, its client at
 * the other end of a socket, messages with descriptors, split, too many,
 * malformed.  Pages of its memory go at any time, also between a look-up of the
 * adapter and its access, and the switch changes.  The event loop is
 * event_stub.c, so that all runs in one thread, step by step.  The adapter is
 * an 82545EM, or an 82574L if SERVER_DEVICE in the environment is e1000e.
 * Invariants:
 *
 *  - Replies have lengths that the protocol allows, and each answers a
 *    command.
 *  - After a client disconnects valed keeps none of its descriptors, mappings
 *    and events.
 *  - A correct client is served afterwards: frames pass between its memory and
 *    another port, and interrupts are sent.
 */

#include <sys/param.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <dev/e1000/e82545_reg.h>
#include <dev/netmap/vale_fdb_entry.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapter.h"
#include "adapter_config.h"
#include "event_stub.h"
#include "libvale.h"
#include "loop.h"
#include "send_fds.h"
#include "server.h"
#include "setting.h"
#include "valed_sandbox.h"
#include "vfu_message.h"
#include "wrap.h"

#define	ROUNDS		16		/* of events, in one go */
#define	PIECES		8		/* of a message; the last: the rest */
#define	MSG_FDS		20
#define	TXRING		0x1000		/* in the good client's memory */
#define	RXRING		0x2000
#define	TXBUF		0x4000
#define	RXBUF		0x8000

/* The VM's thread sets it up and ends; this file is its event loop. */
void
loop_run(void)
{
	pthread_exit(NULL);
}

/*
 * Run while there is work, but not for ever: a guest can keep the model
 * polling.
 */
static void
dispatch(void)
{
	int round;

	for (round = 0; round < ROUNDS && events_step() != 0; round++)
		;
}

int
valed_sandbox_drop(void)
{
	return (0);
}

/*
 * A client that withdraws pages which the adapter is about to use.
 */

static struct {
	unsigned int	 countdown;	/* lookups; 0: not */
	int		 fd;
	off_t		 from;
} snatch;

static void	 memory_punch(int fd, off_t from);

WRAP(void *, peer_mem_addr, struct peer_mem *dma, uint64_t gpa, size_t len,
    int prot)
{
	void *addr = __real_peer_mem_addr(dma, gpa, len, prot);

	if (addr != NULL && snatch.countdown > 0 && --snatch.countdown == 0)
		memory_punch(snatch.fd, snatch.from);
	return (addr);
}

/*
 * valed, started once.
 */

static struct {
	struct adapter	*ad;
	struct adapter_config config;
	struct sockaddr_un sun;
	socklen_t	 sunlen;
	struct vale_desc *peer;
	int		 fds[FD_COUNT];
	uint8_t		*ram;		/* FD_RAM's */
	unsigned int	 nevents;	/* without a client */
	int		 nfds;		/* open before there was one */
	/* The client. */
	int		 s;
	unsigned int	 piece;
	bool		 deaf;
	uint16_t	 id;
	uint8_t		 reply[VFU_REPLY_MAX + 4096];
	size_t		 replylen;
} v = { .s = -1 };

static int
memory_fd(bool sealed)
{
	int fd;

	fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	INVARIANT(fd != -1 && ftruncate(fd, SERVER_RAM) == 0);
	if (sealed)
		INVARIANT(fcntl(fd, F_ADD_SEALS,
		    F_SEAL_SHRINK | F_SEAL_GROW) == 0);
	return (fd);
}

static void
make_fds(void)
{
	int s[2];

	v.fds[FD_NONE] = -1;
	v.fds[FD_RAM] = memory_fd(true);
	v.fds[FD_RAM2] = memory_fd(true);
	v.fds[FD_UNSEALED] = memory_fd(false);
	v.fds[FD_EVENT] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	v.fds[FD_EVENT2] = eventfd(0, EFD_CLOEXEC);
	v.fds[FD_UNMASK] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	INVARIANT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) == 0);
	v.fds[FD_SOCKET] = s[0];
	v.fds[FD_FILE] = open("/dev/null", O_RDWR | O_CLOEXEC);
	v.ram = mmap(NULL, SERVER_RAM, PROT_READ | PROT_WRITE, MAP_SHARED,
	    v.fds[FD_RAM], 0);
	INVARIANT(v.ram != MAP_FAILED);
}

static void
start(void)
{
	const struct vale_params params = { .tx_slots = 16, .rx_slots = 16 };
	struct adapter_config *vc = &v.config;
	const char *device;
	int n;

	signal(SIGPIPE, SIG_IGN);
	make_fds();
	v.peer = vale_open("vale0:peer", &params);
	INVARIANT(v.peer != NULL);
	v.sun.sun_family = AF_UNIX;
	n = snprintf(v.sun.sun_path + 1, sizeof(v.sun.sun_path) - 1,
	    "bhyve-vale-fuzz-%d", getpid());
	v.sunlen = offsetof(struct sockaddr_un, sun_path) + 1 + n;
	vc->ac_listen = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	INVARIANT(bind(vc->ac_listen, (void *)&v.sun, v.sunlen) == 0);
	INVARIANT(listen(vc->ac_listen, 8) == 0);
	strlcpy(vc->ac_backend, "vale0:vm", sizeof(vc->ac_backend));
	strlcpy(vc->ac_name, "vm", sizeof(vc->ac_name));
	vc->ac_mac[5] = 1;
	vc->ac_csb = E82545_CSB_ON;
	device = getenv("SERVER_DEVICE");
	if (device != NULL && strcmp(device, "e1000e") == 0)
		vc->ac_device = ADAPTER_E1000E;
	v.ad = adapter_start(vc, NULL);
	INVARIANT(v.ad != NULL);
	adapter_go(v.ad);
	pthread_join(v.ad->thread, NULL);
	v.ad->thread = v.ad->vfu.vdev_thread = pthread_self();
	dispatch();
	v.nevents = events_used();
}

/*
 * The client's end.
 */

/* Read replies, which are complete, one after another. */
static void
take_replies(void)
{
	struct vfio_user_header h;
	ssize_t n;

	while (v.s != -1 && !v.deaf) {
		n = recv(v.s, v.reply + v.replylen,
		    sizeof(v.reply) - v.replylen, MSG_DONTWAIT);
		if (n <= 0)
			return;
		v.replylen += n;
		while (v.replylen >= sizeof(h)) {
			memcpy(&h, v.reply, sizeof(h));
			INVARIANT((h.flags & VFIO_USER_F_TYPE) ==
			    VFIO_USER_F_REPLY);
			INVARIANT(h.size >= sizeof(h));
			INVARIANT(h.size <= VFU_REPLY_MAX);
			INVARIANT((h.flags & VFIO_USER_F_ERROR) == 0 ||
			    (h.size == sizeof(h) && h.error != 0));
			if (h.size > v.replylen)
				break;
			v.replylen -= h.size;
			memmove(v.reply, v.reply + h.size, v.replylen);
		}
	}
}

static void
client_come(void)
{
	v.s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	INVARIANT(connect(v.s, (void *)&v.sun, v.sunlen) == 0);
	v.deaf = false;
	v.replylen = 0;
	v.piece = 0;
	dispatch();
}

/*
 * The client closes its end.  The socket may exist a little longer, if a
 * process looks at /proc/PID/fd; the connection does not.
 */
static void
hang_up(int s)
{
	if (s == -1)
		return;
	(void)shutdown(s, SHUT_RDWR);
	close(s);
}

static void
client_go(void)
{
	unsigned int i;

	hang_up(v.s);
	v.s = -1;
	dispatch();
	/* What the client has sent before takes some rounds. */
	for (i = 0; i < ROUNDS && v.ad->vfu.vdev_server.fd != -1; i++)
		dispatch();
	INVARIANT(v.ad->vfu.vdev_server.fd == -1);
	INVARIANT(v.ad->vfu.vdev_mem.n == 0 && v.ad->vfu.vdev_mem.mapped == 0);
	INVARIANT(events_used() == v.nevents);
	INVARIANT(fds_open() == v.nfds);
}

static void
send_piece(const uint8_t *data, size_t len, const int *fds, int nfds)
{
	int tries;

	for (tries = 0; tries < 4; tries++) {
		if (send_fds(v.s, data, len, fds, nfds, MSG_DONTWAIT) ==
		    (ssize_t)len)
			return;
		if (errno != EAGAIN)
			break;
		dispatch();
		take_replies();
	}
	/* The server is gone or does not read: stop. */
	hang_up(v.s);
	v.s = -1;
}

static void
send_bytes(const uint8_t *data, size_t len, const int *fds, int nfds)
{
	size_t i, n;

	i = 0;
	do {
		n = v.piece == 0 || ++i == PIECES ? len : MIN(v.piece, len);
		if (v.s == -1)
			return;
		send_piece(data, n, fds, nfds);
		nfds = 0;
		data += n;
		len -= n;
		if (v.piece != 0)
			dispatch();
	} while (len > 0);
	take_replies();
}

static void
send_message(uint16_t command, uint32_t flags, const void *data, size_t len,
    const int *fds, int nfds)
{
	uint8_t msg[VFU_MSG_MAX + 64];

	INVARIANT(len <= sizeof(msg) - sizeof(struct vfio_user_header));
	len = vfu_message(msg, v.id++, command, flags, data, len);
	send_bytes(msg, len, fds, nfds);
}

/*
 * Messages.
 */

static void
send_version(const struct op *op)
{
	static const char *const texts[] = {
		"{\"capabilities\":{\"max_peer_fds\":16,\"write_multiple\":true"
		",\"max_data_xfer_size\":1048576,\"pgsizes\":4096,"
		"\"migration\":{\"pgsize\":4096}}}",
		"{}", "{\"capabilities\":{}}", "[[[[[[[[[[[[[[[[[[[[[[[[]",
		"{\"a\":\"\\u0041\\\"\",\"b\":[1,2.5e3,-7,null,false]}",
		"{\"capabilities\":{\"pgsizes\":true,\"max_peer_fds\":\"x\"}}",
		"{\"capabilities\":[]}", "x", "{\"capabilities\":{\"a\":{}}} ",
	};
	struct vfio_user_version version = { op->c, op->c >> 16 };
	uint8_t data[1024];
	const char *text = texts[op->a % nitems(texts)];
	size_t len = strlen(text) + 1;

	memcpy(data, &version, sizeof(version));
	memcpy(data + sizeof(version), text, len);
	if (op->a >= 128)
		memcpy(data + sizeof(version) + op->d % len, &op->d,
		    sizeof(op->d));
	len += sizeof(version);
	send_message(VFIO_USER_VERSION, 0, data, len - op->b % len, NULL, 0);
}

/* A range, or as an IOMMU has it: some pages that lie anywhere in the file. */
static void
send_map(const struct op *op)
{
	const uint64_t offset = (uint64_t)(op->b >> 8) * 4096;
	struct vfio_user_dma_map map = {
		sizeof(map), op->b & 7, offset, op->d, (uint64_t)op->c * 4096
	};
	int fd = v.fds[op->a % FD_COUNT];
	uint32_t i;

	if ((op->b & MAP_PAGES) == 0) {
		send_message(VFIO_USER_DMA_MAP, 0, &map, sizeof(map), &fd,
		    fd != -1);
		return;
	}
	map.size = 4096;
	for (i = 0; i < op->c % 32; i++) {
		map.address = op->d + i * 4096;
		map.offset = offset + (i ^ (op->b >> 4 & 7)) * 4096;
		send_message(VFIO_USER_DMA_MAP, 0, &map, sizeof(map), &fd,
		    fd != -1);
	}
}

static void
send_unmap(const struct op *op)
{
	struct vfio_user_dma_unmap unmap = {
		sizeof(unmap), op->b & 7, op->d, (uint64_t)op->c * 4096
	};

	if (unmap.flags == VFIO_DMA_UNMAP_FLAG_ALL)
		unmap.address = unmap.size = 0;
	send_message(VFIO_USER_DMA_UNMAP, 0, &unmap, sizeof(unmap), NULL, 0);
}

static void
send_info(const struct op *op)
{
	static const size_t sizes[] = {
		sizeof(struct vfio_user_device_info),
		sizeof(struct vfio_user_region_info),
		sizeof(struct vfio_user_region_io_fds),
		sizeof(struct vfio_user_irq_info)
	};
	uint32_t words[16] = { op->b, 0, op->c };

	/* Some clients send more. */
	send_message(VFIO_USER_DEVICE_GET_INFO + op->a % nitems(sizes), 0,
	    words, sizes[op->a % nitems(sizes)] + op->d % 32, NULL, 0);
}

static void
send_irqs(const struct op *op)
{
	uint8_t data[sizeof(struct vfio_user_irq_set) + sizeof(op->d)];
	struct vfio_user_irq_set set = {
		sizeof(set), op->b, op->a & 7, op->a >> 3 & 3, op->c & 0xffff
	};
	int fds[3], i, n;

	memcpy(data, &set, sizeof(set));
	memcpy(data + sizeof(set), &op->d, sizeof(op->d));
	n = op->c >> 16 & 3;
	for (i = 0; i < n; i++)
		fds[i] = v.fds[1 + (op->c / (1u << 24) + i) % (FD_COUNT - 1)];
	send_message(VFIO_USER_DEVICE_SET_IRQS, 0, data, sizeof(set) +
	    (op->d % 3 == 0 ? 0 : sizeof(op->d)), fds, n);
}

static void
send_read(const struct op *op)
{
	struct vfio_user_region_rw rw = { op->d, op->a, op->b };

	send_message(VFIO_USER_REGION_READ, 0, &rw, sizeof(rw), NULL, 0);
}

static void
send_write(uint32_t region, uint64_t offset, const void *value, uint32_t count,
    bool post)
{
	struct vfio_user_region_rw rw = { offset, region, count };
	uint8_t data[sizeof(rw) + 16];

	memcpy(data, &rw, sizeof(rw));
	memset(data + sizeof(rw), 0, 16);
	memcpy(data + sizeof(rw), value, MIN(count, sizeof(uint64_t)));
	send_message(VFIO_USER_REGION_WRITE, post ? VFIO_USER_F_NO_REPLY : 0,
	    data, sizeof(rw) + MIN(count, 16), NULL, 0);
}

static void
send_multi(const struct op *op)
{
	uint8_t data[sizeof(struct vfio_user_write_multi) +
	    256 * sizeof(struct vfio_user_write_one)];
	struct vfio_user_write_multi multi = { op->b };
	struct vfio_user_write_one one;
	unsigned int i, n = op->b & 255;

	memcpy(data, &multi, sizeof(multi));
	for (i = 0; i < n; i++) {
		memset(&one, 0, sizeof(one));
		one.offset = op->c + 4 * i;
		one.region = op->a;
		one.count = 4;
		memcpy(one.data, &op->d, sizeof(op->d));
		memcpy(data + sizeof(multi) + i * sizeof(one), &one,
		    sizeof(one));
	}
	send_message(VFIO_USER_REGION_WRITE_MULTI, 0, data, sizeof(multi) +
	    n * sizeof(one), NULL, 0);
}

static void
send_raw(const struct op *op)
{
	struct vfio_user_header h = { v.id++, op->b, op->c, op->a, 0 };
	uint8_t msg[sizeof(h) + sizeof(op->d)];
	int fds[MSG_FDS], i, n;

	memcpy(msg, &h, sizeof(h));
	memcpy(msg + sizeof(h), &op->d, sizeof(op->d));
	n = MIN(op->d & 31, MSG_FDS);
	for (i = 0; i < n; i++)
		fds[i] = v.fds[1 + i % (FD_COUNT - 1)];
	send_bytes(msg, sizeof(msg), fds, n);
}

static void
send_junk(const struct op *op)
{
	uint8_t bytes[1024];
	struct rng rng = { op->d };
	size_t i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = rng_next(&rng);
	if ((op->b & 1023) > 0)
		send_bytes(bytes, op->b & 1023, NULL, 0);
}

static void
set(uint32_t off, uint32_t value)
{
	uint64_t value64 = value;

	send_write(VFIO_PCI_BAR0_REGION_INDEX, off, &value64, 4, true);
}

static void
send_driver(const struct op *op)
{
	set(E82545_CTRL, E82545_CTRL_SLU);
	set(E82545_TDBAL, TXRING);
	set(E82545_TDLEN, 128);
	set(E82545_RDBAL, RXRING);
	set(E82545_RDLEN, 128);
	set(E82545_IMS, E82545_ICR_ALL);
	set(E82545_TCTL, op->d);
	set(E82545_RCTL, op->c);
	set(E82545_RDT, 7);
	set(E82545_TDT, 4);
	dispatch();
}

/*
 * Other events.
 */

static void
memory_write(const struct op *op)
{
	int fd = v.fds[op->a % FD_COUNT];

	if (op->a % FD_COUNT >= FD_RAM && op->a % FD_COUNT <= FD_UNSEALED)
		INVARIANT(pwrite(fd, &op->d, sizeof(op->d), op->c %
		    (SERVER_RAM - sizeof(op->d))) == sizeof(op->d));
}

static void
memory_punch(int fd, off_t from)
{
	(void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from,
	    SERVER_RAM - from);
}

static void
peer_send(size_t len)
{
	struct netmap_ring *ring = v.peer->txring;
	struct netmap_slot *slot;
	size_t n;

	do {
		slot = &ring->slot[ring->head];
		n = MIN(len, ring->nr_buf_size);
		memset(NETMAP_BUF(ring, slot->buf_idx), 0xff, n);
		/* Not with the address of the receiver. */
		NETMAP_BUF(ring, slot->buf_idx)[6] = 2;
		slot->len = n;
		len -= n;
		slot->flags = len > 0 ? NS_MOREFRAG : 0;
		ring->head = nm_ring_next(ring, ring->head);
	} while (len > 0);
	INVARIANT(vale_txsync(v.peer) == 0);
}

/* Discard received frames; copy the last one, if asked. */
static size_t
peer_receive(uint8_t *buf)
{
	struct netmap_ring *ring = v.peer->rxring;
	size_t len;

	INVARIANT(vale_rxsync(v.peer) == 0);
	len = 0;
	while (!nm_ring_empty(ring)) {
		len = ring->slot[ring->head].len;
		if (buf != NULL)
			memcpy(buf, NETMAP_BUF(ring,
			    ring->slot[ring->head].buf_idx), len);
		ring->head = ring->cur = nm_ring_next(ring, ring->head);
	}
	INVARIANT(vale_rxsync(v.peer) == 0);
	return (len);
}

/* What an administrator does meanwhile. */
static void
change_switch(const struct op *op)
{
	const struct vale_params params = { .tx_slots = 16, .rx_slots = 16,
	    .monitor = op->c & (VALE_MIRROR_TX | VALE_MIRROR_RX) };
	struct vale_desc *d;

	switch (op->a % 8) {
	case 0:
		INVARIANT(setting_to("vale0", "ageing", "%u", op->c % 4) == 0);
		break;
	case 1:
		INVARIANT(setting_to("vale0", "batch", "%u", 1 + op->c % 64) ==
		    0);
		break;
	case 2:
		INVARIANT(setting_to("vale0:vm", "limit", "%u", op->c % 4) ==
		    0);
		break;
	case 3:
		INVARIANT(setting_to("vale0:vm", "rate", "%upkt/s",
		    op->c % 4 * 1000) == 0);
		break;
	case 4:
		INVARIANT(vale_set("vale0:vm", "private", (op->c & 1) ? "on" :
		    "off") == 0);
		INVARIANT(vale_set("vale0:vm", "link", (op->c & 6) == 6 ?
		    "down" : (op->c & 6) == 4 ? "uplink" : "up") == 0);
		INVARIANT(vale_set_carrier("vale0:peer", op->c & 8) == 0);
		break;
	case 5:
		INVARIANT(setting_mirror("vale0:vm", "vale0:peer",
		    params.monitor) == 0);
		break;
	default:
		d = vale_open(params.monitor != 0 ? "vale0:vm" : "vale0:new",
		    &params);
		INVARIANT(d != NULL);
		peer_send(14 + op->b % 3000);
		INVARIANT(vale_rxsync(d) == 0);
		vale_close(d);
	}
}

/* As without changes. */
static void
unchange_switch(void)
{

	snatch.countdown = 0;
	INVARIANT(vale_set("vale0", "ageing", "300") == 0);
	INVARIANT(vale_set("vale0", "batch", "1024") == 0);
	INVARIANT(vale_set("vale0:vm", "limit", "0") == 0);
	INVARIANT(vale_set("vale0:vm", "rate", "0") == 0);
	INVARIANT(vale_set("vale0:vm", "private", "off") == 0);
	INVARIANT(vale_set("vale0:vm", "link", "up") == 0);
	INVARIANT(vale_set("vale0:vm", "mirror", "no") == 0);
}

/*
 * A second client is refused, when it has waited: its socket is closed.  It is
 * served if the first one is dropped meanwhile.
 */
static void
second_client(void)
{
	struct pollfd pfd;
	const bool first = v.ad->vfu.vdev_server.fd != -1 && v.s != -1;
	const uint64_t drops = v.ad->vfu.vdev_counters[VFU_C_DISCONNECT];
	int s;

	s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	INVARIANT(connect(s, (void *)&v.sun, v.sunlen) == 0);
	dispatch();
	adapter_listen(v.ad);
	dispatch();
	pfd.fd = s;
	pfd.events = 0;
	if (first && v.ad->vfu.vdev_counters[VFU_C_DISCONNECT] == drops)
		INVARIANT(poll(&pfd, 1, 0) == 1 &&
		    (pfd.revents & POLLHUP) != 0);
	hang_up(s);
	dispatch();
}

static void
op_run(const struct op *op)
{
	uint64_t one = 1, i;

	switch (op->kind) {
	case SERVER_PIECES:
		v.piece = op->a;
		break;
	case SERVER_RUN:
		dispatch();
		take_replies();
		break;
	case SERVER_MEMORY:
		memory_write(op);
		break;
	case SERVER_PUNCH:
		if (op->a % FD_COUNT >= FD_RAM &&
		    op->a % FD_COUNT <= FD_UNSEALED)
			memory_punch(v.fds[op->a % FD_COUNT],
			    op->c % SERVER_RAM);
		break;
	case SERVER_SNATCH:
		if (op->a % FD_COUNT >= FD_RAM &&
		    op->a % FD_COUNT <= FD_UNSEALED) {
			snatch.fd = v.fds[op->a % FD_COUNT];
			snatch.from = op->c % SERVER_RAM;
			snatch.countdown = 1 + op->b % 64;
		}
		break;
	case SERVER_SETTING:
		change_switch(op);
		break;
	case SERVER_PEER:
		peer_send(14 + op->b % 9000);
		break;
	case SERVER_EVENT:
		if (op->a % FD_COUNT >= FD_EVENT &&
		    op->a % FD_COUNT <= FD_UNMASK)
			(void)!write(v.fds[op->a % FD_COUNT], &one,
			    sizeof(one));
		break;
	case SERVER_SECOND:
		second_client();
		break;
	case SERVER_RECONNECT:
		client_go();
		client_come();
		break;
	case SERVER_DEAF:
		v.deaf = op->a & 1;
		take_replies();
		break;
	}
	if (v.s == -1)
		return;
	switch (op->kind) {
	case SERVER_VERSION:
		send_version(op);
		break;
	case SERVER_MAP:
		send_map(op);
		break;
	case SERVER_UNMAP:
		send_unmap(op);
		break;
	case SERVER_INFO:
		send_info(op);
		break;
	case SERVER_IRQS:
		send_irqs(op);
		break;
	case SERVER_READ:
		send_read(op);
		break;
	case SERVER_WRITE:
		send_write(op->a, op->c, &op->d, op->b & 15,
		    (op->b & 16) != 0);
		break;
	case SERVER_MULTI:
		send_multi(op);
		break;
	case SERVER_RESET:
		send_message(VFIO_USER_DEVICE_RESET, 0, NULL, 0, NULL, 0);
		break;
	case SERVER_RAW:
		send_raw(op);
		break;
	case SERVER_JUNK:
		send_junk(op);
		break;
	case SERVER_DRIVER:
		send_driver(op);
		break;
	case SERVER_FLOOD:
		v.piece = 0;
		for (i = 0; i < (op->b & 511) && v.s != -1; i++)
			send_read(&(const struct op){ .a =
			    VFIO_PCI_CONFIG_REGION_INDEX, .b = 256 });
		break;
	}
}

/*
 * The good client.
 */

static void
put_descriptor(uint64_t at, uint64_t low, uint64_t high)
{
	memcpy(v.ram + at, &low, sizeof(low));
	memcpy(v.ram + at + 8, &high, sizeof(high));
}

static void
works(void)
{
	const struct op version = { 0 }, map = {
		.a = FD_RAM, .b = 3, .c = SERVER_RAM / 4096
	}, driver = {
		.c = E82545_RCTL_EN | E82545_RCTL_BAM | E82545_RCTL_SECRC,
		.d = E82545_TCTL_EN
	}, irqs = {
		.a = VFIO_PCI_MSI_IRQ_INDEX, .b = VFIO_IRQ_SET_DATA_EVENTFD |
		VFIO_IRQ_SET_ACTION_TRIGGER, .c = 1 | 1 << 16 |
		(FD_EVENT - 1) << 24
	};
	const uint64_t master = 7;
	uint8_t frame[2048];
	uint64_t n, done;
	int i;

	(void)!read(v.fds[FD_EVENT], &n, sizeof(n));
	memory_punch(v.fds[FD_RAM], 0);
	client_come();
	send_version(&version);
	send_map(&map);
	send_irqs(&irqs);
	send_write(VFIO_PCI_CONFIG_REGION_INDEX, 4, &master, 2, false);
	for (i = 0; i < 8; i++) {
		put_descriptor(RXRING + 16 * i, RXBUF + 2048 * i, 0);
		put_descriptor(TXRING + 16 * i, TXBUF, 60 | E82545_TXD_EOP |
		    E82545_TXD_IFCS | E82545_TXD_RS);
	}
	memset(v.ram + TXBUF, 0xff, 12);
	memset(v.ram + TXBUF + 6, 0x22, 54);
	dispatch();
	peer_receive(NULL);
	send_driver(&driver);
	INVARIANT(v.s != -1 && v.ad->vfu.vdev_server.fd != -1);
	INVARIANT(peer_receive(frame) == 60);
	INVARIANT(memcmp(frame, v.ram + TXBUF, 60) == 0);
	INVARIANT((v.ram[TXRING + 16 * 3 + 12] & E82545_TXD_DD) != 0);
	INVARIANT(read(v.fds[FD_EVENT], &n, sizeof(n)) == sizeof(n));
	/* Frames for earlier clients are dropped, or come first. */
	peer_send(77);
	dispatch();
	for (i = 0; i < 7; i++) {
		memcpy(&done, v.ram + RXRING + 16 * i + 8, sizeof(done));
		if ((done & 0xffff) == 77)
			break;
	}
	INVARIANT(i < 7);
	client_go();
}

int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct op ops[OPS_MAX];
	size_t i, n;

	if (v.ad == NULL)
		start();
	n = ops_read(data, size, ops);
	memory_punch(v.fds[FD_RAM], 0);
	memory_punch(v.fds[FD_RAM2], 0);
	v.nfds = fds_open();
	client_come();
	for (i = 0; i < n; i++)
		op_run(&ops[i]);
	dispatch();
	take_replies();
	client_go();
	unchange_switch();
	peer_receive(NULL);
	works();
	return (0);
}
