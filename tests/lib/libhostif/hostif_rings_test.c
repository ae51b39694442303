/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Attached interfaces: what the kernel, or who has the same descriptors, may
 * write to their rings.  The rings are files of memory, this process is the
 * kernel, and the interface has no thread.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>

#include <linux/if_packet.h>
#include <linux/if_xdp.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "frame_vnet.h"
#include "hostif_impl.h"
#include "test.h"
#include "wrap.h"

#define	PACKET_SIZE							\
	((size_t)(HOSTIF_RX_BLOCKS + HOSTIF_TX_BLOCKS) * HOSTIF_BLOCK_SIZE)
/* Offsets in a ring of AF_XDP. */
#define	PRODUCER	0
#define	CONSUMER	64
#define	FLAGS		128
#define	ENTRIES		192

static struct hostif	hi;
static struct vale_desc	*other;		/* another port of the switch */
static uint8_t		*memory;	/* rings of packet(7); chunks */
static uint32_t		 drops;		/* that PACKET_STATISTICS tells */

WRAP(int, getsockopt, int fd __unused, int level, int name, void *value,
    socklen_t *len)
{
	static const struct xdp_ring_offset off = { .producer = PRODUCER,
	    .consumer = CONSUMER, .flags = FLAGS, .desc = ENTRIES };

	memset(value, 0, *len);
	if (level == SOL_SOCKET && name == SO_DOMAIN)
		*(int *)value = AF_PACKET;
	if (level == SOL_XDP && name == XDP_MMAP_OFFSETS)
		*(struct xdp_mmap_offsets *)value = (struct xdp_mmap_offsets){
			.rx = off, .tx = off, .fr = off, .cr = off };
	if (level == SOL_PACKET && name == PACKET_STATISTICS)
		((struct tpacket_stats *)value)->tp_drops = drops;
	return (0);
}

WRAP(int, setsockopt, int fd __unused, int level __unused, int name __unused,
    const void *value __unused, socklen_t len __unused)
{
	return (0);
}

WRAP(ssize_t, sendto, int fd __unused, const void *p __unused,
    size_t len __unused, int flags __unused, const struct sockaddr *to __unused,
    socklen_t tolen __unused)
{
	errno = EAGAIN;
	return (-1);
}

/* A file of memory, mapped from `at' on. */
static uint8_t *
file(size_t size, uint64_t at, size_t mapped)
{
	uint8_t *p;
	int fd = memfd_create("rings", MFD_ALLOW_SEALING);

	ATF_REQUIRE(fd != -1 && ftruncate(fd, at + size) == 0);
	ATF_REQUIRE_EQ(0, fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	p = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);
	ATF_REQUIRE(p != MAP_FAILED);
	hi.fds.hf_fd[hi.fds.hf_nfds++] = fd;
	return (p);
}

static void
start(const struct hostif_ops *ops)
{
	hi.ops = ops;
	hi.up = true;
	hi.mtu = 1500;
	hi.port = vale_open("vale0:h", NULL);
	other = vale_open("vale0:o", NULL);
	ATF_REQUIRE(hi.port != NULL && other != NULL);
	ATF_REQUIRE_EQ(NULL, hi.ops->ho_start(&hi));
}

static uint64_t
count(enum hostif_counter c)
{
	return (hostif_counter(&hi, c));
}

/* Put a broadcast at `p', of `len' bytes if there is space for these. */
static void
make_frame(uint8_t *p, uint32_t len)
{
	memset(p, 'x', len);
	memset(p, 0xff, 6);
	memcpy(p + 6, "\x02\0\0\0\0\x01\x88\xb5", 8);
}

/* Bytes of a frame that the other port has got; 0: there is none. */
static uint32_t
received(uint8_t *p)
{
	struct netmap_ring *ring = other->rxring;
	const struct netmap_slot *slot;
	uint32_t len = 0;
	bool more = true;

	vale_rxsync(other);
	while (more && ring->head != ring->tail) {
		slot = &ring->slot[ring->head];
		memcpy(p + len, NETMAP_BUF(ring, slot->buf_idx), slot->len);
		len += slot->len;
		more = (slot->flags & NS_MOREFRAG) != 0;
		ring->head = ring->cur = nm_ring_next(ring, ring->head);
	}
	return (len);
}

/*
 * packet(7)
 */

static void
start_packet(void)
{
	hi.fds.hf_kind = HOSTIF_PACKET;
	hi.fds.hf_nfds = HOSTIF_FD_KIND;
	memory = file(PACKET_SIZE, 0, PACKET_SIZE);
	start(&hostif_packet_ops);
}

/* The kernel receives a frame that the slot's header describes so. */
static void
packet(uint32_t mac, uint32_t snaplen, uint32_t len, bool tagged)
{
	static uint32_t next;
	struct tpacket2_hdr *h = (void *)(memory + next++ * HOSTIF_SLOT_SIZE);

	ATF_REQUIRE(next <= HOSTIF_BLOCK_SLOTS);
	if (mac + HOSTIF_ETHER <= HOSTIF_SLOT_SIZE)
		make_frame((uint8_t *)h + mac, MIN(snaplen,
		    HOSTIF_SLOT_SIZE - mac));
	if (mac >= sizeof(*h) + FRAME_VNET_SHORT)
		memset((uint8_t *)h + mac - FRAME_VNET_SHORT, 0,
		    FRAME_VNET_SHORT);
	h->tp_mac = mac;
	h->tp_snaplen = snaplen;
	h->tp_len = len;
	h->tp_vlan_tci = 5;
	h->tp_status = TP_STATUS_USER | (tagged ? TP_STATUS_VLAN_VALID : 0);
	ATF_REQUIRE_EQ(1, hi.ops->ho_receive(&hi));
	ATF_REQUIRE_EQ(TP_STATUS_KERNEL, h->tp_status);
	/* What stands before the frame is as it was. */
	ATF_REQUIRE_EQ(snaplen, h->tp_snaplen);
	ATF_REQUIRE_EQ(5, h->tp_vlan_tci);
}

/* Such a frame is counted so, or with -1 reaches the other port. */
static void
packet_is(int counter, uint32_t mac, uint32_t snaplen, uint32_t len,
    bool tagged)
{
	static uint8_t buf[HOSTIF_SLOT_SIZE], expected[HOSTIF_SLOT_SIZE];
	const uint64_t before = counter == -1 ? 0 : count(counter);
	const uint64_t frames = count(HOSTIF_C_RX_FRAME);

	packet(mac, snaplen, len, tagged);
	if (counter != -1) {
		ATF_REQUIRE_EQ_MSG(before + 1, count(counter),
		    "mac %u, length %u of %u", mac, snaplen, len);
		ATF_REQUIRE_EQ(frames, count(HOSTIF_C_RX_FRAME));
		ATF_REQUIRE_EQ(0, received(buf));
		return;
	}
	ATF_REQUIRE_EQ(frames + 1, count(HOSTIF_C_RX_FRAME));
	ATF_REQUIRE_EQ(snaplen + (tagged ? HOSTIF_TAG : 0), received(buf));
	make_frame(expected, snaplen);
	if (tagged) {
		ATF_REQUIRE_EQ(0, memcmp(buf + 12, "\x81\0\0\x05", 4));
		memmove(buf + 12, buf + 16, snaplen - 12);
	}
	ATF_REQUIRE_EQ(0, memcmp(buf, expected, snaplen));
}

TEST(packet_place, "A frame that is not wholly in its slot, behind the headers "
    "and the space for a tag, is dropped")
{
	const uint32_t first = sizeof(struct tpacket2_hdr) + FRAME_VNET_SHORT +
	    HOSTIF_TAG;

	start_packet();
	packet_is(-1, first, 60, 60, false);
	packet_is(-1, first, 60, 60, true);
	packet_is(HOSTIF_C_RX_BAD, first - 1, 60, 60, false);
	packet_is(HOSTIF_C_RX_BAD, first - HOSTIF_TAG, 60, 60, true);
	packet_is(HOSTIF_C_RX_BAD, 0, 60, 60, false);
	packet_is(-1, HOSTIF_SLOT_SIZE - 60 - 4096, 60, 60, false);
	packet_is(-1, UINT16_MAX, HOSTIF_SLOT_SIZE - UINT16_MAX,
	    HOSTIF_SLOT_SIZE - UINT16_MAX, false);
	packet_is(HOSTIF_C_RX_BAD, UINT16_MAX,
	    HOSTIF_SLOT_SIZE - UINT16_MAX + 1,
	    HOSTIF_SLOT_SIZE - UINT16_MAX + 1, false);
	packet_is(HOSTIF_C_RX_BAD, first, HOSTIF_SLOT_SIZE + 1,
	    HOSTIF_SLOT_SIZE + 1, false);
	hi.ops->ho_stop(&hi);
}

TEST(packet_length, "A frame that is too short is bad; one that is longer than "
    "a slot or a frame, with its tag, is long")
{
	const uint32_t mac = 256;

	start_packet();
	packet_is(-1, mac, HOSTIF_ETHER, HOSTIF_ETHER, false);
	packet_is(HOSTIF_C_RX_BAD, mac, HOSTIF_ETHER - 1, HOSTIF_ETHER - 1,
	    false);
	/* The kernel has cut it. */
	packet_is(HOSTIF_C_RX_LONG, mac, 60, 61, false);
	packet_is(-1, mac, 60, 60, false);
	packet_is(-1, mac, 61, 60, false);
	packet_is(-1, mac, VALE_FRAME_MAX, VALE_FRAME_MAX, false);
	packet_is(HOSTIF_C_RX_LONG, mac, VALE_FRAME_MAX + 1,
	    VALE_FRAME_MAX + 1, false);
	packet_is(-1, mac, VALE_FRAME_MAX - HOSTIF_TAG,
	    VALE_FRAME_MAX - HOSTIF_TAG, true);
	packet_is(HOSTIF_C_RX_LONG, mac, VALE_FRAME_MAX - HOSTIF_TAG + 1,
	    VALE_FRAME_MAX - HOSTIF_TAG + 1, true);
	hi.ops->ho_stop(&hi);
}

/*
 * AF_XDP
 */

#define	SIZE	HOSTIF_XDP_MEMORY(1)
#define	FIRST	HOSTIF_XDP_SLOTS	/* chunk to transmit */

static uint8_t	*rx, *fill, *tx, *completion;	/* rings */

static uint32_t *
word(uint8_t *ring, size_t at)
{
	return ((uint32_t *)(void *)(ring + at));
}

static struct xdp_desc *
desc(uint8_t *ring, uint32_t i)
{
	return ((struct xdp_desc *)(void *)(ring + ENTRIES) +
	    i % HOSTIF_XDP_SLOTS);
}

static uint64_t *
chunk(uint8_t *ring, uint32_t i)
{
	return ((uint64_t *)(void *)(ring + ENTRIES) + i % HOSTIF_XDP_SLOTS);
}

/* A ring of the socket, which is the last file. */
static uint8_t *
ring_at(uint64_t at)
{
	uint8_t *p = mmap(NULL, ENTRIES + HOSTIF_XDP_SLOTS *
	    sizeof(struct xdp_desc), PROT_READ | PROT_WRITE, MAP_SHARED,
	    hi.fds.hf_fd[hi.fds.hf_nfds - 1], at);

	ATF_REQUIRE(p != MAP_FAILED);
	return (p);
}

static void
start_xdp(void)
{
	hi.fds.hf_kind = HOSTIF_XDP;
	hi.fds.hf_nfds = HOSTIF_FD_MEMORY;
	memory = file(SIZE, 0, SIZE);
	(void)file(1 << 20, XDP_UMEM_PGOFF_COMPLETION_RING, 1);
	rx = ring_at(XDP_PGOFF_RX_RING);
	tx = ring_at(XDP_PGOFF_TX_RING);
	fill = ring_at(XDP_UMEM_PGOFF_FILL_RING);
	completion = ring_at(XDP_UMEM_PGOFF_COMPLETION_RING);
	start(&hostif_xdp_ops);
	ATF_REQUIRE_EQ(HOSTIF_XDP_SLOTS, *word(fill, PRODUCER));
}

/* The kernel receives a frame there: it is bad, or reaches the other port. */
static void
xdp_is(bool bad, uint64_t addr, uint32_t len)
{
	static uint8_t buf[HOSTIF_SLOT_SIZE], expected[HOSTIF_SLOT_SIZE];
	const uint64_t before = count(HOSTIF_C_RX_BAD);
	const uint32_t i = *word(rx, PRODUCER);

	if (!bad)
		make_frame(memory + addr, len);
	*desc(rx, i) = (struct xdp_desc){ .addr = addr, .len = len };
	*word(rx, PRODUCER) = i + 1;
	ATF_REQUIRE_EQ(1, hi.ops->ho_receive(&hi));
	ATF_REQUIRE_EQ_MSG(before + bad, count(HOSTIF_C_RX_BAD),
	    "%#jx, length %u", (uintmax_t)addr, len);
	ATF_REQUIRE_EQ(bad ? 0 : len, received(buf));
	make_frame(expected, HOSTIF_XDP_CHUNK);
	ATF_REQUIRE(bad || memcmp(buf, expected, len) == 0);
	/* The kernel has the chunk again, and the slot. */
	ATF_REQUIRE_EQ(addr, *chunk(fill, HOSTIF_XDP_SLOTS + i));
	ATF_REQUIRE_EQ(i + 1, *word(rx, CONSUMER));
}

TEST(xdp_place, "A received frame that is not wholly in the memory, too short "
    "or too long is dropped")
{
	start_xdp();
	xdp_is(false, 0, 60);
	xdp_is(false, SIZE - 60, 60);
	xdp_is(true, SIZE - 60 + 1, 60);
	xdp_is(true, SIZE - 59, 60);
	xdp_is(true, SIZE - 1, 60);
	xdp_is(true, SIZE, 60);
	xdp_is(true, UINT64_MAX, 60);
	xdp_is(true, UINT64_MAX - 59, 60);
	xdp_is(true, 0, HOSTIF_ETHER - 1);
	xdp_is(false, 0, HOSTIF_ETHER);
	xdp_is(false, SIZE - HOSTIF_XDP_CHUNK, HOSTIF_XDP_CHUNK);
	xdp_is(true, 0, HOSTIF_XDP_CHUNK + 1);
	xdp_is(true, 0, UINT32_MAX);
	hi.ops->ho_stop(&hi);
}

/*
 * The other port sends `n' frames, and the interface has a turn for each 256.
 */
static void
send_frames(uint32_t n)
{
	static uint8_t frame[60];
	struct netmap_ring *ring = other->txring;
	struct netmap_slot *slot;

	make_frame(frame, sizeof(frame));
	for (; n > 0; n--) {
		slot = &ring->slot[ring->head];
		slot->ptr = (uintptr_t)frame;
		slot->len = sizeof(frame);
		slot->flags = NS_INDIRECT;
		ring->head = ring->cur = nm_ring_next(ring, ring->head);
		if (n % HOSTIF_BATCH != 1)
			continue;
		ATF_REQUIRE_EQ(0, vale_txsync(other));
		vale_rxsync(hi.port);
		(void)hi.ops->ho_send(&hi);
		vale_rxsync(hi.port);
	}
}

/* The kernel has sent what is there. */
static void
complete(uint64_t addr)
{
	const uint32_t i = *word(completion, PRODUCER);

	*chunk(completion, i) = addr;
	*word(completion, PRODUCER) = i + 1;
}

/* `n' frames are in the ring from `i' on, in chunks to transmit: how many. */
static unsigned int
chunks(uint32_t i, uint32_t n)
{
	bool used[HOSTIF_XDP_SLOTS] = { false };
	unsigned int different = 0;
	uint64_t c;

	ATF_REQUIRE_EQ(i + n, *word(tx, PRODUCER));
	for (; n > 0; n--, i++) {
		c = desc(tx, i)->addr / HOSTIF_XDP_CHUNK - FIRST;
		ATF_REQUIRE_EQ(0, desc(tx, i)->addr % HOSTIF_XDP_CHUNK);
		ATF_REQUIRE(c < HOSTIF_XDP_SLOTS);
		different += !used[c];
		used[c] = true;
	}
	return (different);
}

/* Each has one of its own. */
static void
distinct(uint32_t i, uint32_t n)
{
	ATF_REQUIRE_EQ(n, chunks(i, n));
}

TEST(xdp_completed, "Only chunks to transmit are used again, whatever the "
    "completion ring says")
{
	start_xdp();
	send_frames(HOSTIF_XDP_SLOTS);
	distinct(0, HOSTIF_XDP_SLOTS);
	*word(tx, CONSUMER) = HOSTIF_XDP_SLOTS;
	/* No chunk is left. */
	send_frames(1);
	distinct(0, HOSTIF_XDP_SLOTS);
	ATF_REQUIRE_EQ(HOSTIF_TX_AGAIN, hi.tx_state);
	ATF_REQUIRE_EQ(1, count(HOSTIF_C_TX_WAIT));
	/* Chunks to receive, and none. */
	complete(0);
	complete((uint64_t)(FIRST - 1) * HOSTIF_XDP_CHUNK);
	complete(SIZE);
	complete(UINT64_MAX);
	send_frames(1);
	distinct(0, HOSTIF_XDP_SLOTS);
	/* The first and the last one to transmit. */
	complete((uint64_t)FIRST * HOSTIF_XDP_CHUNK);
	complete(SIZE - HOSTIF_XDP_CHUNK + 100);
	send_frames(1);
	ATF_REQUIRE_EQ(*word(completion, PRODUCER),
	    *word(completion, CONSUMER));
	distinct(HOSTIF_XDP_SLOTS, 2);
	ATF_REQUIRE_EQ(1, hi.port->rxring->tail - hi.port->rxring->head);
	hi.ops->ho_stop(&hi);
}

TEST(xdp_spurious, "Chunks that are free and come back are no more than there "
    "are")
{
	uint32_t i;

	start_xdp();
	for (i = 0; i < 9; i++)
		complete((uint64_t)(FIRST + i % 3) * HOSTIF_XDP_CHUNK);
	send_frames(HOSTIF_XDP_SLOTS);
	ATF_REQUIRE(chunks(0, HOSTIF_XDP_SLOTS) >= HOSTIF_XDP_SLOTS - 9);
	hi.ops->ho_stop(&hi);
}

TEST(xdp_down, "While the interface is down and no chunk is free, frames are "
    "dropped and do not wait")
{
	start_xdp();
	send_frames(HOSTIF_XDP_SLOTS);
	ATF_REQUIRE_EQ(HOSTIF_XDP_SLOTS, *word(tx, PRODUCER));
	hi.up = false;
	send_frames(5);
	ATF_REQUIRE_EQ(5, count(HOSTIF_C_TX_DOWN));
	ATF_REQUIRE_EQ(0, count(HOSTIF_C_TX_WAIT));
	ATF_REQUIRE_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	ATF_REQUIRE_EQ(hi.port->rxring->tail, hi.port->rxring->head);
	ATF_REQUIRE_EQ(HOSTIF_XDP_SLOTS, *word(tx, PRODUCER));
	hi.ops->ho_stop(&hi);
}

TEST_PROGRAM
