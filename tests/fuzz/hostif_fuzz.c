/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Attached interfaces: hostif_packet.c and hostif_xdp.c, and the switch behind
 * them.  An input is a sequence of operations (ops.h).  This process is the
 * kernel: its rings are files of memory, it fills and empties them as Linux
 * does, and another process with the same descriptors writes anything to them.
 * A second port of the switch sends packets to be cut and summed.
 *
 * Invariants: the interface gives the switch what the kernel received, and the
 * kernel what the switch had for it, each frame once or counted as dropped, in
 * slots that are the kernel's turn, with a length that the MTU permits; and
 * whatever was written, two new ports exchange a frame at the end.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>

#include <linux/if_packet.h>
#include <linux/if_xdp.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "frame_vnet.h"
#include "hostif_impl.h"
#include "ops.h"
#include "wrap.h"

#define	QUEUES		2		/* of AF_XDP */
#define	HEADROOM	256		/* of a chunk: the kernel's */
#define	PACKET_RX	(HOSTIF_RX_BLOCKS * HOSTIF_BLOCK_SLOTS)
#define	PACKET_TX	(HOSTIF_TX_BLOCKS * HOSTIF_BLOCK_SLOTS)
#define	PACKET_SIZE							\
	((size_t)(HOSTIF_RX_BLOCKS + HOSTIF_TX_BLOCKS) * HOSTIF_BLOCK_SIZE)
/* Where Linux puts a received frame, and reads one to send. */
#define	PACKET_MAC	(TPACKET_ALIGN(TPACKET2_HDRLEN) + 16 +		\
			HOSTIF_RESERVE + FRAME_VNET_SHORT)
#define	PACKET_DATA	(TPACKET2_HDRLEN - sizeof(struct sockaddr_ll))
/* Offsets in a mapped ring of AF_XDP. */
#define	XDP_PRODUCER	0
#define	XDP_CONSUMER	64
#define	XDP_FLAGS	128
#define	XDP_ENTRIES	192
#define	XDP_RING_SIZE	(XDP_ENTRIES + HOSTIF_XDP_SLOTS *		\
	sizeof(struct xdp_desc))

enum {
	HOSTIF_ATTACH,		/* of kind a & 1, with a >> 1 & 1 more queues */
	HOSTIF_LINK,		/* up if a & 1; the MTU is b */
	HOSTIF_FRAME,		/* the kernel receives one: make_packet() */
	HOSTIF_RECEIVE,
	HOSTIF_PUT,		/* the other port sends one */
	HOSTIF_SEND,		/* the kernel sends b & 255 frames a call */
	HOSTIF_SENT,		/* and b & 255 of its own accord */
	HOSTIF_WRITE,		/* d to ring a & 3: op_write() */
	HOSTIF_TICK,		/* the kernel has dropped b & 3 frames */
	HOSTIF_NOPS
};

/* A ring of AF_XDP as the kernel has it. */
struct ring {
	uint8_t		*map;
	uint32_t	 next;		/* the kernel's end */
};

static struct {
	struct hostif	 hi;
	bool		 attached;
	bool		 written;	/* to the memory: nothing is certain */
	uint32_t	 mtu_max;	/* the greatest so far */
	uint32_t	 budget;	/* frames of a call */
	uint32_t	 dropped;	/* not yet told */
	uint8_t		*mem;		/* rings of packet(7); chunks */
	size_t		 size;
	uint32_t	 rx_next;	/* packet(7): slot to fill */
	uint32_t	 tx_next;	/* and to send */
	uint64_t	 received;	/* frames, well-formed */
	uint64_t	 put;		/* frames that the other port sent */
	uint64_t	 sent;
	uint64_t	 skipped;	/* slots that were made invalid */
	unsigned int	 nqueues;
	struct ring	 rx[QUEUES], fill[QUEUES], tx, completion;
} k;
static struct vale_desc	*other;
static uint8_t		 bytes[FRAME_VNET_LONG + HOSTIF_SLOT_SIZE];

/* The switch's time and key are the same whenever an input runs. */
int	fuzz_clock_gettime(clockid_t clock, struct timespec *ts);

int
fuzz_clock_gettime(clockid_t clock __unused, struct timespec *ts)
{
	ts->tv_sec = 1;
	ts->tv_nsec = 0;
	return (0);
}

int
getentropy(void *buf, size_t len)
{
	memset(buf, 0x5a, len);
	return (0);
}

/*
 * Generating operations.
 */

static void
make_op(struct rng *rng, struct op *op, uint8_t kind)
{
	memset(op, 0, sizeof(*op));
	op->kind = kind;
	op->a = rng_next(rng);
	switch (kind) {
	case HOSTIF_LINK:
		op->a = rng_below(rng, 8) != 0;
		op->b = rng_one_in(rng, 4) ? rng_number(rng) : 1500;
		break;
	case HOSTIF_FRAME:
	case HOSTIF_PUT:
		op->b = rng_one_in(rng, 4) ? rng_number(rng) :
		    rng_one_in(rng, 2) ? 1420 + rng_below(rng, 100) :
		    rng_below(rng, 4000);
		op->c = rng_one_in(rng, 4) ? rng_number(rng) :
		    40 + rng_below(rng, 1500);
		op->d = rng_next(rng) & 0xffffff;
		if (rng_one_in(rng, 3))
			op->d |= (uint64_t)rng_below(rng, 256) << 24;
		break;
	case HOSTIF_SEND:
	case HOSTIF_SENT:
		op->b = rng_one_in(rng, 2) ? 255 : rng_below(rng, 4);
		break;
	case HOSTIF_WRITE:
		op->b = rng_below(rng, 8);
		op->c = rng_below(rng, 64);
		op->d = rng_one_in(rng, 2) ? rng_number(rng) : rng_next(rng);
		break;
	default:
		break;
	}
}

void
target_op(struct rng *rng, struct op *op)
{
	make_op(rng, op, rng_below(rng, HOSTIF_NOPS));
}

/*
 * Frames both ways through a new interface; or what was received, or sent, and
 * is changed before the interface looks.
 */
size_t
target_phrase(struct rng *rng, struct op *ops, size_t max)
{
	const bool write = rng_one_in(rng, 2);
	size_t n = 0, i;

	if (!write)
		make_op(rng, &ops[n++], HOSTIF_ATTACH);
	for (i = rng_below(rng, 4); i > 0; i--)
		make_op(rng, &ops[n++], HOSTIF_FRAME);
	if (write)
		make_op(rng, &ops[n++], HOSTIF_WRITE);
	make_op(rng, &ops[n++], HOSTIF_RECEIVE);
	for (i = rng_below(rng, 4); i > 0; i--)
		make_op(rng, &ops[n++], HOSTIF_PUT);
	make_op(rng, &ops[n++], HOSTIF_SEND);
	make_op(rng, &ops[n++], HOSTIF_SENT);
	if (write) {
		make_op(rng, &ops[n++], HOSTIF_WRITE);
		make_op(rng, &ops[n++], HOSTIF_SEND);
		make_op(rng, &ops[n++], HOSTIF_PUT);
		make_op(rng, &ops[n++], HOSTIF_SEND);
	}
	return (MIN(n, max));
}

/* What the kernel may have made of a packet: a >> 2 & 7 of an operation. */
enum {
	PLAIN,			/* and the numbers that have no name */
	IPIP = 3,		/* it is in a tunnel */
	GRE,
	VXLAN,
	SCTP,			/* its partial checksum is at offset 8 */
	LIST			/* segments without a partial checksum */
};

/*
 * Put the packet of `len' bytes behind the Ethernet header at `f' into a tunnel
 * over IPv4.  Returns how many bytes that adds.
 */
static uint32_t
wrap_packet(uint8_t *f, uint32_t len, unsigned int kind)
{
	const bool v6 = f[14] >> 4 == 6;
	const uint32_t n = 20 + (kind == GRE ? 4 : kind == VXLAN ? 30 : 0);

	if (FRAME_VNET_LONG + len + n > sizeof(bytes))
		return (0);
	memmove(f + 14 + n, f + 14, len - 14);
	memset(f + 14, 0, n);
	f[14] = 0x45;
	be16enc(f + 16, len + n - 14);
	f[23] = kind == GRE ? 47 : kind == VXLAN ? 17 : v6 ? 41 : 4;
	if (kind == GRE)
		be16enc(f + 36, v6 ? 0x86dd : 0x0800);
	be16enc(f + 12, 0x0800);
	return (n);
}

/* Change the packet and its virtio-net header.  Returns the packet's length. */
static uint32_t
change_packet(uint8_t *f, uint32_t len, uint32_t max, unsigned int kind)
{
	uint32_t n;

	switch (kind) {
	case IPIP:
	case GRE:
	case VXLAN:
		n = wrap_packet(f, len, kind);
		le16enc(bytes + 6, le16dec(bytes + 6) + n);
		return (MIN(len + n, max));
	case SCTP:
		f[f[14] >> 4 == 6 ? 20 : 23] = 132;
		bytes[1] = FRAME_GSO_NONE;
		bytes[8] = 8;
		break;
	case LIST:
		bytes[0] = 0;
		break;
	}
	return (len);
}

/*
 * A packet of TCP or UDP in segments of c bytes, with b bytes of payload, and
 * its virtio-net header of FRAME_VNET_LONG bytes before it, in `bytes'; of
 * protocol d & 3, from station d >> 4 & 3 to station 1 or, with d >> 6 & 1, to
 * all, with a VLAN tag's type if d >> 7 & 1, byte d >> 16 & 127 changed by d >>
 * 24; changed by change_packet().  Returns the packet's length, `max' at most.
 */
static uint32_t
make_packet(const struct op *op, uint32_t max)
{
	const bool v6 = (op->d & 1) != 0, udp = (op->d >> 1 & 1) != 0;
	const uint32_t l4 = v6 ? 54 : 34, hdrlen = l4 + (udp ? 8 : 20);
	uint32_t len = MIN(hdrlen + op->b, max);
	uint8_t *f = bytes + FRAME_VNET_LONG;

	memset(bytes, 0, FRAME_VNET_LONG + hdrlen);
	if ((op->d >> 2 & 3) != 0) {
		bytes[0] = FRAME_CSUM_PARTIAL;
		bytes[1] = op->c == 0 ? FRAME_GSO_NONE : udp ?
		    FRAME_GSO_UDP_L4 : v6 ? FRAME_GSO_TCPV6 : FRAME_GSO_TCPV4;
		le16enc(bytes + 2, hdrlen);
		le16enc(bytes + 4, op->c);
		le16enc(bytes + 6, l4);
		le16enc(bytes + 8, udp ? 6 : 16);
	}
	f[0] = f[6] = 2;
	f[5] = 1;
	f[11] = op->d >> 4 & 3;
	if ((op->d >> 6 & 1) != 0)
		memset(f, 0xff, 6);
	be16enc(f + 12, (op->d >> 7 & 1) != 0 ? 0x8100 : v6 ? 0x86dd : 0x0800);
	f[14] = v6 ? 0x60 : 0x45;
	f[v6 ? 20 : 23] = udp ? 17 : 6;
	be16enc(f + (v6 ? 18 : 16), len - (v6 ? 54 : 14));
	if (!udp)
		f[l4 + 12] = 0x50;
	len = change_packet(f, len, max, op->a >> 2 & 7);
	bytes[(op->d >> 16 & 127) % (FRAME_VNET_LONG + len)] ^= op->d >> 24;
	return (len);
}

/*
 * The kernel, with packet(7).
 */

static struct tpacket2_hdr *
packet_slot(bool tx, uint32_t i)
{
	const uint32_t block = i / HOSTIF_BLOCK_SLOTS +
	    (tx ? HOSTIF_RX_BLOCKS : 0);

	return ((struct tpacket2_hdr *)(void *)(k.mem +
	    (size_t)block * HOSTIF_BLOCK_SIZE +
	    (size_t)(i % HOSTIF_BLOCK_SLOTS) * HOSTIF_SLOT_SIZE));
}

static void
packet_frame(const struct op *op)
{
	struct tpacket2_hdr *h = packet_slot(false, k.rx_next);
	const uint32_t len = make_packet(op, HOSTIF_SLOT_SIZE - PACKET_MAC);

	if (h->tp_status != TP_STATUS_KERNEL)
		return;
	h->tp_mac = PACKET_MAC;
	h->tp_len = h->tp_snaplen = len;
	h->tp_vlan_tci = op->d >> 32;
	h->tp_vlan_tpid = op->d >> 48;
	memcpy((uint8_t *)h + PACKET_MAC - FRAME_VNET_SHORT, bytes,
	    FRAME_VNET_SHORT);
	memcpy((uint8_t *)h + PACKET_MAC, bytes + FRAME_VNET_LONG, len);
	h->tp_status = TP_STATUS_USER |
	    ((op->d >> 8 & 1) != 0 ? TP_STATUS_VLAN_VALID : 0) |
	    ((op->d >> 9 & 1) != 0 ? TP_STATUS_VLAN_TPID_VALID : 0) |
	    ((op->d >> 10 & 7) == 0 ? TP_STATUS_LOSING : 0);
	k.rx_next = (k.rx_next + 1) % PACKET_RX;
	k.received++;
}

/* A frame of `len' bytes, as it is on the wire, is one that the MTU permits. */
static void
check_length(uint32_t len)
{
	INVARIANT(len >= HOSTIF_ETHER && len <= VALE_FRAME_MAX);
	INVARIANT(k.mtu_max == 0 ||
	    len <= k.mtu_max + HOSTIF_ETHER + HOSTIF_TAG);
}

static void
packet_check(const struct tpacket2_hdr *h)
{
	struct frame frame = { .f_len = h->tp_len - FRAME_VNET_SHORT };

	INVARIANT(h->tp_len > FRAME_VNET_SHORT &&
	    PACKET_DATA + h->tp_len <= HOSTIF_SLOT_SIZE);
	INVARIANT(frame_vnet_decode(&frame, (const uint8_t *)h + PACKET_DATA));
	INVARIANT((frame.f_gso_type & ~FRAME_GSO_ECN) != FRAME_GSO_UDP_L4);
	check_length(frame_longest(&frame));
}

/*
 * Send up to `n' frames, and skip invalid ones.  Returns whether any was left.
 */
static bool
packet_sent(uint32_t n)
{
	struct tpacket2_hdr *h;

	for (;;) {
		h = packet_slot(true, k.tx_next);
		if (h->tp_status != TP_STATUS_SEND_REQUEST)
			return (false);
		if (h->tp_len < FRAME_VNET_SHORT)
			k.skipped++;
		else if (n-- == 0)
			return (true);
		else {
			if (!k.written)
				packet_check(h);
			k.sent++;
		}
		h->tp_status = TP_STATUS_AVAILABLE;
		k.tx_next = (k.tx_next + 1) % PACKET_TX;
	}
}

/*
 * The kernel, with AF_XDP.
 */

static uint32_t *
ring_index(const struct ring *r, unsigned int at)
{
	return ((uint32_t *)(void *)(r->map + at));
}

static struct xdp_desc *
ring_desc(const struct ring *r, uint32_t i)
{
	return ((struct xdp_desc *)(void *)(r->map + XDP_ENTRIES) +
	    i % HOSTIF_XDP_SLOTS);
}

static uint64_t *
ring_chunk(const struct ring *r, uint32_t i)
{
	return ((uint64_t *)(void *)(r->map + XDP_ENTRIES) +
	    i % HOSTIF_XDP_SLOTS);
}

static void
xdp_frame(const struct op *op)
{
	const unsigned int q = op->a % k.nqueues;
	const uint32_t len = make_packet(op, HOSTIF_XDP_CHUNK - HEADROOM);
	uint64_t addr;

	if (*ring_index(&k.fill[q], XDP_PRODUCER) == k.fill[q].next ||
	    k.rx[q].next - *ring_index(&k.rx[q], XDP_CONSUMER) >=
	    HOSTIF_XDP_SLOTS)
		return;
	addr = rounddown2(*ring_chunk(&k.fill[q], k.fill[q].next++),
	    HOSTIF_XDP_CHUNK);
	*ring_index(&k.fill[q], XDP_CONSUMER) = k.fill[q].next;
	if (addr >= k.size)
		return;
	INVARIANT(k.written || addr / HOSTIF_XDP_CHUNK / HOSTIF_XDP_SLOTS == q);
	memcpy(k.mem + addr + HEADROOM, bytes + FRAME_VNET_LONG, len);
	*ring_desc(&k.rx[q], k.rx[q].next++) = (struct xdp_desc){
		.addr = addr + HEADROOM, .len = len };
	*ring_index(&k.rx[q], XDP_PRODUCER) = k.rx[q].next;
	k.received++;
}

static bool
xdp_sent(uint32_t n)
{
	const uint32_t pending = *ring_index(&k.tx, XDP_PRODUCER) - k.tx.next;
	struct xdp_desc desc;

	if (pending > HOSTIF_XDP_SLOTS) {
		INVARIANT(k.written);
		return (true);
	}
	for (n = MIN(n, pending); n > 0; n--) {
		desc = *ring_desc(&k.tx, k.tx.next++);
		INVARIANT(k.written || (desc.addr % HOSTIF_XDP_CHUNK == 0 &&
		    desc.addr / HOSTIF_XDP_CHUNK / HOSTIF_XDP_SLOTS ==
		    k.nqueues && desc.addr < k.size));
		if (!k.written)
			check_length(desc.len);
		INVARIANT(k.written || desc.len <= HOSTIF_XDP_CHUNK);
		*ring_chunk(&k.completion, k.completion.next++) = desc.addr;
		k.sent++;
	}
	*ring_index(&k.tx, XDP_CONSUMER) = k.tx.next;
	*ring_index(&k.completion, XDP_PRODUCER) = k.completion.next;
	return (*ring_index(&k.tx, XDP_PRODUCER) != k.tx.next);
}

static bool
kernel_sent(uint32_t n)
{
	return (k.hi.fds.hf_kind == HOSTIF_XDP ? xdp_sent(n) : packet_sent(n));
}

/* The system calls of the two kinds. */

WRAP(ssize_t, sendto, int fd __unused, const void *buf __unused,
    size_t len __unused, int flags __unused, const struct sockaddr *to __unused,
    socklen_t tolen __unused)
{
	if (!kernel_sent(k.budget))
		return (0);
	/* ENOBUFS: the kernel has freed the first frame that is left. */
	errno = k.budget > 0 ? EAGAIN : ENOBUFS;
	return (-1);
}

WRAP(int, getsockopt, int fd __unused, int level, int name, void *value,
    socklen_t *len)
{
	static const struct xdp_ring_offset off = { .producer = XDP_PRODUCER,
	    .consumer = XDP_CONSUMER, .flags = XDP_FLAGS, .desc = XDP_ENTRIES };

	memset(value, 0, *len);
	if (level == SOL_SOCKET && name == SO_DOMAIN)
		*(int *)value = AF_PACKET;
	if (level == SOL_XDP && name == XDP_MMAP_OFFSETS)
		*(struct xdp_mmap_offsets *)value = (struct xdp_mmap_offsets){
			.rx = off, .tx = off, .fr = off, .cr = off };
	if (level == SOL_PACKET) {
		((struct tpacket_stats *)value)->tp_drops = k.dropped;
		k.dropped = 0;
	}
	return (0);
}

/* A receive ring, or none; the kernel has it, so it is not mapped. */
WRAP(int, setsockopt, int fd __unused, int level, int name, const void *value,
    socklen_t len)
{
	uint32_t i;

	INVARIANT(level == SOL_PACKET && name == PACKET_RX_RING);
	INVARIANT(value == &hostif_ring_none || value == &hostif_ring_receive);
	INVARIANT(len == sizeof(hostif_ring_none));
	for (i = 0; i < PACKET_RX; i++)
		packet_slot(false, i)->tp_status = TP_STATUS_KERNEL;
	k.rx_next = 0;
	return (0);
}

/*
 * Attaching: what hostif_open() and hostif_start() do, without a thread.
 */

static void *
make_memory(size_t size, uint64_t at, size_t mapped)
{
	struct hostif_fds *fds = &k.hi.fds;
	void *map;
	int fd;

	fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	INVARIANT(fd != -1 && ftruncate(fd, size) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	map = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);
	INVARIANT(map != MAP_FAILED);
	fds->hf_fd[fds->hf_nfds++] = fd;
	return (map);
}

/* One of the rings of a socket, which is the last file. */
static void
make_ring(struct ring *r, uint64_t at)
{
	r->map = mmap(NULL, XDP_RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
	    k.hi.fds.hf_fd[k.hi.fds.hf_nfds - 1], at);
	INVARIANT(r->map != MAP_FAILED);
	*ring_index(r, XDP_FLAGS) = XDP_RING_NEED_WAKEUP;
}

static void
make_rings(void)
{
	struct hostif_fds *fds = &k.hi.fds;
	unsigned int i;

	fds->hf_nfds = HOSTIF_FD_MEMORY;
	k.size = HOSTIF_XDP_MEMORY(k.nqueues);
	k.mem = make_memory(k.size, 0, k.size);
	for (i = 0; i < k.nqueues; i++) {
		munmap(make_memory(XDP_UMEM_PGOFF_COMPLETION_RING +
		    XDP_RING_SIZE, 0, 1), 1);
		make_ring(&k.rx[i], XDP_PGOFF_RX_RING);
		make_ring(&k.fill[i], XDP_UMEM_PGOFF_FILL_RING);
		if (i == 0) {
			make_ring(&k.tx, XDP_PGOFF_TX_RING);
			make_ring(&k.completion,
			    XDP_UMEM_PGOFF_COMPLETION_RING);
		}
	}
}

static void
ring_free(struct ring *r)
{
	if (r->map != NULL)
		munmap(r->map, XDP_RING_SIZE);
}

static void
detach(void)
{
	struct hostif_fds *fds = &k.hi.fds;
	unsigned int i;

	if (!k.attached)
		return;
	k.hi.ops->ho_stop(&k.hi);
	vale_close(k.hi.port);
	munmap(k.mem, k.size);
	for (i = 0; i < QUEUES; i++) {
		ring_free(&k.rx[i]);
		ring_free(&k.fill[i]);
	}
	ring_free(&k.tx);
	ring_free(&k.completion);
	for (i = HOSTIF_FD_KIND; i < fds->hf_nfds; i++)
		if (fds->hf_fd[i] > 0)
			close(fds->hf_fd[i]);
	memset(&k, 0, sizeof(k));
}

static void
attach(const struct op *op)
{
	const struct vale_params params = { .rx_slots = 256 };
	struct hostif *hi = &k.hi;

	detach();
	hi->fds.hf_kind = (op->a & 1) != 0 ? HOSTIF_XDP : HOSTIF_PACKET;
	hi->fds.hf_nfds = HOSTIF_FD_KIND;
	if (hi->fds.hf_kind == HOSTIF_XDP) {
		k.nqueues = 1 + (op->a >> 1 & 1);
		make_rings();
		hi->ops = &hostif_xdp_ops;
	} else {
		k.size = PACKET_SIZE;
		k.mem = make_memory(k.size, 0, k.size);
		hi->ops = &hostif_packet_ops;
	}
	hi->up = true;
	hi->mtu = k.mtu_max = 1500;
	hi->said = HOSTIF_SAID_QUEUE | HOSTIF_SAID_REFUSED;
	k.budget = 255;
	hi->port = vale_open("vale0:h", &params);
	INVARIANT(hi->port != NULL);
	INVARIANT(hi->ops->ho_start(hi) == NULL);
	k.attached = true;
}

/*
 * Operations.
 */

static uint64_t
count(enum hostif_counter c)
{
	return (hostif_counter(&k.hi, c));
}

/* What the kernel received is in the switch, or counted. */
static void
op_receive(void)
{
	uint64_t counters[VALE_NCOUNTERS];
	unsigned int rounds = 0;

	/* Nonsense may be endless. */
	while (k.hi.ops->ho_receive(&k.hi) > 0 && ++rounds < 64)
		continue;
	INVARIANT(vale_port_counters("vale0:h", counters) == 0);
	INVARIANT(counters[VALE_C_TX_FRAME] == count(HOSTIF_C_RX_FRAME) -
	    count(HOSTIF_C_RX_CUT) + count(HOSTIF_C_RX_SEGMENT));
	INVARIANT(k.written || k.received == count(HOSTIF_C_RX_FRAME) +
	    count(HOSTIF_C_RX_LONG) + count(HOSTIF_C_RX_BAD) +
	    count(HOSTIF_C_RX_OFFLOAD));
	/* The other port drops what it gets. */
	vale_rxsync(other);
	other->rxring->head = other->rxring->cur = other->rxring->tail;
	vale_rxsync(other);
}

static void
op_put(const struct op *op)
{
	struct netmap_ring *ring = other->txring;
	struct netmap_slot *slot;
	uint32_t at, left, len = make_packet(op, VALE_FRAME_MAX);

	(void)frame_vnet_decode(&other->txframe[ring->head], bytes);
	for (at = 0; at < len; at += slot->len) {
		left = len - at;
		slot = &ring->slot[ring->head];
		slot->ptr = (uintptr_t)bytes + FRAME_VNET_LONG + at;
		slot->len = MIN(left, 1024u + op->a * 64);
		slot->flags = NS_INDIRECT | (at == 0 ? VALE_SLOT_FRAME : 0) |
		    (slot->len < left ? NS_MOREFRAG : 0);
		ring->head = nm_ring_next(ring, ring->head);
	}
	ring->cur = ring->head;
	INVARIANT(vale_txsync(other) == 0);
}

/* What the switch had for the interface was given to the kernel, or counted. */
static void
op_send(const struct op *op)
{
	struct netmap_ring *ring = k.hi.port->rxring;
	unsigned int rounds = 0;

	k.budget = op->b & 255;
	do {
		vale_rxsync(k.hi.port);
	} while (k.hi.ops->ho_send(&k.hi) > 0 && ++rounds < 64);
	INVARIANT(k.hi.up || ring->head == ring->tail);
	INVARIANT(k.written || k.budget == 0 || !k.hi.up ||
	    ring->head == ring->tail || k.hi.tx_state != HOSTIF_TX_IDLE);
	INVARIANT(k.written || k.sent + k.skipped <= count(HOSTIF_C_TX_FRAME));
	INVARIANT(k.written || k.skipped <= count(HOSTIF_C_TX_QUEUE) +
	    count(HOSTIF_C_TX_DOWN));
}

/* The kernel has sent what it was given, and no more. */
static void
op_sent(const struct op *op)
{
	if (!kernel_sent(op->b & 255) && !k.written)
		INVARIANT(k.sent + k.skipped == count(HOSTIF_C_TX_FRAME));
}

/*
 * Write to the rings: of packet(7), offset c of one of the slots around the
 * kernel's end; of AF_XDP, an index, the flags or one of the entries there.
 */
static void
op_write(const struct op *op)
{
	struct ring *const rings[] = { &k.rx[0], &k.fill[0], &k.tx,
	    &k.completion };
	const struct ring *r = rings[op->a & 3];
	const bool tx = (op->a & 1) != 0;
	uint8_t *p;

	k.written = true;
	if (k.hi.fds.hf_kind != HOSTIF_XDP)
		p = (uint8_t *)packet_slot(tx, tx ?
		    (k.tx_next + op->b % 4) % PACKET_TX :
		    (k.rx_next + PACKET_RX - op->b % 4) % PACKET_RX) +
		    op->c % 64;
	else if (op->b % 8 < 3)
		p = r->map + op->b % 8 * (XDP_CONSUMER - XDP_PRODUCER);
	else
		p = (uint8_t *)ring_desc(r, r->next - op->b % 8 + 3) +
		    op->c % 2 * 8;
	memcpy(p, &op->d, (op->a & 4) != 0 ? 8 : 4);
}

static void
op_run(const struct op *op)
{
	switch (op->kind % HOSTIF_NOPS) {
	case HOSTIF_ATTACH:
		attach(op);
		return;
	case HOSTIF_PUT:
		op_put(op);
		return;
	}
	if (!k.attached)
		return;
	switch (op->kind % HOSTIF_NOPS) {
	case HOSTIF_LINK:
		k.hi.up = (op->a & 1) != 0;
		k.hi.mtu = op->b;
		/* 0: not yet known. */
		k.mtu_max = op->b == 0 || k.mtu_max == 0 ? 0 :
		    MAX(k.mtu_max, op->b);
		break;
	case HOSTIF_FRAME:
		if (k.hi.fds.hf_kind == HOSTIF_XDP)
			xdp_frame(op);
		else
			packet_frame(op);
		break;
	case HOSTIF_RECEIVE:
		op_receive();
		break;
	case HOSTIF_SEND:
		op_send(op);
		break;
	case HOSTIF_SENT:
		op_sent(op);
		break;
	case HOSTIF_WRITE:
		op_write(op);
		break;
	case HOSTIF_TICK:
		k.dropped = op->b & 3;
		k.hi.ops->ho_tick(&k.hi);
		break;
	}
}

/* A frame from the other port reaches a new one. */
static void
works(void)
{
	const struct op op = { .b = 100, .d = 1 << 6 };
	struct vale_desc *d;

	d = vale_open("vale0:new", NULL);
	INVARIANT(d != NULL);
	op_put(&op);
	INVARIANT(vale_rxsync(d) == 0);
	INVARIANT(nm_ring_space(d->rxring) == 1);
	vale_close(d);
}

int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct op ops[OPS_MAX];
	size_t i, n;

	other = vale_open("vale0:t", NULL);
	INVARIANT(other != NULL);
	INVARIANT(vale_set_header(other, VALE_HEADER_FRAME) == 0);
	n = ops_read(data, size, ops);
	for (i = 0; i < n; i++)
		op_run(&ops[i]);
	detach();
	works();
	vale_close(other);
	return (0);
}
