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
#define	TX_SLOTS	(HOSTIF_TX_BLOCKS * HOSTIF_BLOCK_SLOTS)
/* Offsets in a ring of AF_XDP. */
#define	PRODUCER	0
#define	CONSUMER	64
#define	FLAGS		128
#define	ENTRIES		192

static struct hostif	hi;
static struct vale_desc	*other;		/* another port of the switch */
static uint8_t		*memory;	/* rings of packet(7); chunks */
static uint32_t		 drops;		/* that PACKET_STATISTICS tells */
static bool		 takes;		/* the kernel takes frames to send; */
static int		 send_error = EAGAIN; /* if it does not */
static int		 domain = AF_PACKET; /* of all sockets */
static bool		 set_fails;	/* setsockopt(2) */

WRAP(int, getsockopt, int fd __unused, int level, int name, void *value,
    socklen_t *len)
{
	static const struct xdp_ring_offset off = { .producer = PRODUCER,
	    .consumer = CONSUMER, .flags = FLAGS, .desc = ENTRIES };

	memset(value, 0, *len);
	if (level == SOL_SOCKET && name == SO_DOMAIN)
		*(int *)value = domain;
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
	return (set_fails ? -1 : 0);
}

/* A slot of the transmit ring of packet(7). */
static struct tpacket2_hdr *
tx_slot(uint32_t i)
{
	return ((void *)(memory + (HOSTIF_RX_BLOCKS + i / HOSTIF_BLOCK_SLOTS) *
	    (size_t)HOSTIF_BLOCK_SIZE + i % HOSTIF_BLOCK_SLOTS *
	    (size_t)HOSTIF_SLOT_SIZE));
}

WRAP(ssize_t, sendto, int fd __unused, const void *p __unused,
    size_t len __unused, int flags __unused, const struct sockaddr *to __unused,
    socklen_t tolen __unused)
{
	uint32_t i;

	for (i = 0; takes && i < TX_SLOTS; i++)
		if (tx_slot(i)->tp_status == TP_STATUS_SEND_REQUEST)
			tx_slot(i)->tp_status = TP_STATUS_SENDING;
	errno = send_error;
	return (takes ? 0 : -1);
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

TEST(packet_takes, "A frame that is too short is bad; one that is longer than "
    "the MTU, without one VLAN tag, is dropped, as are all while it is down")
{
	static const struct {
		int		counter;	/* or -1 */
		uint32_t	len, first;	/* bytes; in the first slot */
		const char	*type;		/* Ethernet's */
	} rows[] = {
		{ -1, 14, 14, "\x08\0" }, { HOSTIF_C_TX_BAD, 13, 13, "\x08\0" },
		{ -1, 1514, 2, "\x08\0" },
		{ HOSTIF_C_TX_MTU, 1515, 1515, "\x08\0" },
		{ -1, 1518, 18, "\x81\0" },
		{ HOSTIF_C_TX_MTU, 1518, 17, "\x81\0" },
		{ HOSTIF_C_TX_MTU, 1519, 1519, "\x81\0" },
		{ -1, 1518, 1518, "\x88\xa8" },
		{ HOSTIF_C_TX_MTU, 1518, 1518, "\x80\0" },
		{ HOSTIF_C_TX_MTU, 1518, 1518, "\x81\x01" },
		{ HOSTIF_C_TX_MTU, 1518, 1518, "\x87\xa8" },
		{ HOSTIF_C_TX_MTU, 1518, 1518, "\x88\xa7" },
	};
	static uint8_t bytes[1519];
	struct iovec iov[2] = { { bytes, 0 }, { bytes, 0 } };
	struct frame frame = { .f_iov = iov, .f_niov = 2 };
	size_t i;

	start_packet();
	for (i = 0; i < nitems(rows); i++) {
		memset(hi.counters, 0, sizeof(hi.counters));
		memcpy(bytes + 12, rows[i].type, 2);
		frame.f_len = rows[i].len;
		iov[0].iov_len = rows[i].first;
		iov[1].iov_len = rows[i].len - rows[i].first;
		ATF_CHECK_EQ_MSG(rows[i].counter == -1,
		    hostif_takes(&hi, &frame), "%zu", i);
		ATF_CHECK_EQ(rows[i].counter == HOSTIF_C_TX_BAD,
		    count(HOSTIF_C_TX_BAD));
		ATF_CHECK_EQ_MSG(rows[i].counter == HOSTIF_C_TX_MTU,
		    count(HOSTIF_C_TX_MTU), "%zu", i);
	}
	frame.f_len = 60;
	hi.up = false;
	ATF_CHECK(!hostif_takes(&hi, &frame));
	ATF_CHECK_EQ(1, count(HOSTIF_C_TX_DOWN));
	hi.up = true;
	hi.mtu = 0;
	frame.f_len = 60000;
	ATF_CHECK(hostif_takes(&hi, &frame));
	hi.ops->ho_stop(&hi);
}

TEST(packet_full, "Frames wait while the kernel has all slots, which is "
    "counted once; they are dropped when the interface goes down")
{
	start_packet();
	takes = true;
	send_frames(300);
	(void)hi.ops->ho_send(&hi);
	ATF_REQUIRE_EQ(TX_SLOTS, count(HOSTIF_C_TX_FRAME));
	ATF_REQUIRE_EQ(HOSTIF_TX_FULL, hi.tx_state);
	/* The kernel copies a short frame. */
	ATF_REQUIRE_EQ(60, le16dec((uint8_t *)tx_slot(0) + TPACKET2_HDRLEN -
	    sizeof(struct sockaddr_ll) + 2));
	tx_slot(0)->tp_status = tx_slot(1)->tp_status = TP_STATUS_AVAILABLE;
	ATF_REQUIRE_EQ(2, hi.ops->ho_send(&hi));
	ATF_REQUIRE_EQ(TX_SLOTS + 2, count(HOSTIF_C_TX_FRAME));
	ATF_REQUIRE_EQ(1, count(HOSTIF_C_TX_WAIT));
	hi.up = false;
	ATF_REQUIRE_EQ(300 - TX_SLOTS - 2, hi.ops->ho_send(&hi));
	ATF_REQUIRE_EQ(300 - TX_SLOTS - 2, count(HOSTIF_C_TX_DOWN));
	ATF_REQUIRE_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	hi.up = true;
	ATF_REQUIRE_EQ(0, hi.ops->ho_send(&hi));
	ATF_REQUIRE_EQ(2, count(HOSTIF_C_TX_WAIT));
	hi.ops->ho_stop(&hi);
}

TEST(packet_stubborn, "A kernel that takes no frame, and says that it cannot, "
    "is called for each slot twice, and each frame is lost once")
{
	start_packet();
	send_error = EIO;
	send_frames(10);
	ATF_REQUIRE_EQ(10, count(HOSTIF_C_TX_REFUSED));
	ATF_REQUIRE_EQ(2 * TX_SLOTS, count(HOSTIF_C_TX_CALL));
	ATF_REQUIRE_EQ(HOSTIF_TX_AGAIN, hi.tx_state);
	takes = true;
	ATF_REQUIRE_EQ(0, hi.ops->ho_send(&hi));
	ATF_REQUIRE_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	hi.ops->ho_stop(&hi);
}

TEST(packet_family, "Rings are mapped from a socket of packet(7) only")
{
	start_packet();
	hi.ops->ho_stop(&hi);
	for (domain = AF_PACKET - 1; domain <= AF_PACKET + 1; domain += 2) {
		ATF_REQUIRE_STREQ("rings", hi.ops->ho_start(&hi));
		ATF_REQUIRE_EQ(EAFNOSUPPORT, errno);
	}
}

/*
 * The kernel receives a packet of TCP with `len' bytes of payload, to be cut
 * into segments of `mss', in IPv6 with a destination option of `option' bytes.
 * The other port gets the segments.
 */
static void
tunnel(uint32_t option, uint32_t len, uint32_t mss)
{
	static uint8_t buf[HOSTIF_SLOT_SIZE];
	static uint32_t next;
	const uint32_t l4 = 14 + 40 + option + 20, hdrlen = l4 + 20;
	struct tpacket2_hdr *h = (void *)(memory + next++ * HOSTIF_SLOT_SIZE);
	uint8_t *p = (uint8_t *)h + 256, *ip = p + 54 + option;
	uint32_t k, n;

	memset(p - FRAME_VNET_SHORT, 0, FRAME_VNET_SHORT + hdrlen);
	memset(p + hdrlen, 'x', len);
	p[-FRAME_VNET_SHORT] = 1;
	p[-FRAME_VNET_SHORT + 1] = FRAME_GSO_TCPV4;
	le16enc(p - 6, mss);
	le16enc(p - 4, l4);
	le16enc(p - 2, 16);
	memcpy(p + 12, "\x86\xdd\x60", 3);
	be16enc(p + 18, hdrlen + len - 54);
	p[20] = option > 0 ? 60 : 4;
	/* One option is padding of all. */
	if (option > 0)
		memcpy(p + 54, (const uint8_t []){ 4, option / 8 - 1, 1,
		    option - 4 }, 4);
	ip[0] = 0x45;
	be16enc(ip + 2, hdrlen + len - (ip - p));
	ip[9] = 6;
	ip[20 + 12] = 5 << 4;
	h->tp_mac = 256;
	h->tp_snaplen = h->tp_len = hdrlen + len;
	h->tp_status = TP_STATUS_USER;
	ATF_REQUIRE_EQ(1, hi.ops->ho_receive(&hi));
	for (k = 0; k < len; k += mss) {
		n = hdrlen + MIN(mss, len - k);
		ATF_REQUIRE_EQ(n, received(buf));
		ATF_REQUIRE_EQ(k, be32dec(buf + l4 + 4));
		ATF_REQUIRE_EQ(n - 54, be16dec(buf + 18));
		ATF_REQUIRE_EQ(n - (l4 - 20), be16dec(buf + l4 - 18));
		ATF_REQUIRE(buf[hdrlen] == 'x' && buf[n - 1] == 'x');
	}
	ATF_REQUIRE_EQ(0, received(buf));
}

TEST(packet_tunnel, "A packet in a tunnel is cut, into more segments than one "
    "batch or the space for them has")
{
	start_packet();
	tunnel(0, 60000, 100);
	tunnel(0, 25500, 100);
	tunnel(0, 25501, 100);
	/* Segments of 550 bytes. */
	tunnel(256, 51000, 200);
	ATF_REQUIRE_EQ(4, count(HOSTIF_C_RX_CUT));
	ATF_REQUIRE_EQ(600 + 255 + 256 + 255, count(HOSTIF_C_RX_SEGMENT));
	ATF_REQUIRE_EQ(4, count(HOSTIF_C_RX_FRAME));
	hi.ops->ho_stop(&hi);
}

TEST(packet_reopen, "A ring in which frames are dropped and none arrives is "
    "opened again, after longer and longer pauses")
{
	static const unsigned int pauses[] = { 1, 1, 2, 4, 8, 8 };
	unsigned int i, n;

	start_packet();
	drops = 1;
	for (i = 0; i < nitems(pauses); i++) {
		for (n = 0; count(HOSTIF_C_RX_STOP) == i; n++)
			hi.ops->ho_tick(&hi);
		ATF_REQUIRE_EQ(pauses[i], n);
	}
	/* One that arrives ends the pauses, also one that waits. */
	packet_is(-1, 256, 60, 60, false);
	hi.ops->ho_tick(&hi);
	((struct tpacket2_hdr *)(void *)(memory +
	    HOSTIF_SLOT_SIZE))->tp_status = TP_STATUS_USER;
	hi.ops->ho_tick(&hi);
	ATF_REQUIRE_EQ(i, count(HOSTIF_C_RX_STOP));
	ATF_REQUIRE_EQ(1, hi.ops->ho_receive(&hi));
	hi.ops->ho_tick(&hi);
	ATF_REQUIRE(hi.up && !hi.gone);
	set_fails = true;
	hi.ops->ho_tick(&hi);
	ATF_REQUIRE_EQ(i + 1, count(HOSTIF_C_RX_STOP));
	ATF_REQUIRE(!hi.up && hi.gone);
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

TEST(xdp_stubborn, "Calls go on while frames are dropped, for each slot once; "
    "those that fail for what passes are made again later")
{
	start_xdp();
	*word(tx, FLAGS) = XDP_RING_NEED_WAKEUP;
	send_error = ENOBUFS;
	send_frames(1);
	ATF_REQUIRE_EQ(1, count(HOSTIF_C_TX_CALL));
	ATF_REQUIRE_EQ(1, count(HOSTIF_C_TX_ERROR));
	ATF_REQUIRE_EQ(HOSTIF_TX_AGAIN, hi.tx_state);
	send_error = EBUSY;
	ATF_REQUIRE_EQ(0, hi.ops->ho_send(&hi));
	ATF_REQUIRE_EQ(HOSTIF_XDP_SLOTS + 2, count(HOSTIF_C_TX_CALL));
	ATF_REQUIRE_EQ(HOSTIF_XDP_SLOTS + 1, count(HOSTIF_C_TX_QUEUE));
	ATF_REQUIRE_EQ(1, count(HOSTIF_C_TX_ERROR));
	ATF_REQUIRE_EQ(HOSTIF_TX_IDLE, hi.tx_state);
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
