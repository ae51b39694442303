/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The rings of packet(7) of an attached interface: each slot, each call and each
 * counter.  The kernel, the switch and the interface's thread are this file's.
 * hostif_rings_test has what a hostile kernel may write to a slot.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <netinet/in.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "test.h"

#include "hostif_packet.c"

#define	SOCKET		11
#define	MEMORY_SIZE	(51U << 20)	/* of both rings */
#define	RING_SLOTS	1024		/* of the port */
#define	INDIRECT	2048		/* bytes of one */

struct got {				/* a frame that the switch got */
	uint32_t	 len;
	bool		 headed;
	uint8_t		 hdr[FRAME_VNET_LONG];
	uint8_t		*p;
};

static char		 trace[4096];
static const char	*fails;		/* the call that fails */
static int		 domain = AF_PACKET;
static uint32_t		 drops;		/* that PACKET_STATISTICS tells */
static uint8_t		*memory;
static struct got	 got[RING_SLOTS];
static uint32_t		 ngot;
static uint8_t		 pool[4U << 20]; /* bytes of those */
static uint32_t		 used;

/* Frames for the interface. */
static struct frame	 frames[2 * HOSTIF_BATCH];
static uint32_t		 nframes;

/* What sendto(2) does: it takes slots, then it fails. */
static struct {
	uint32_t	take;
	int		error;		/* 0: none */
} sends[8];
static unsigned int	 nsends, nsent;
static uint32_t		 kernel_slot;	/* of the transmit ring */
static bool		 busy;		/* slots that are taken are not free */

static union {
	struct netmap_ring ring;
	uint8_t		 bytes[sizeof(struct netmap_ring) +
			    RING_SLOTS * sizeof(struct netmap_slot)];
} tx_ring, rx_ring;
static struct vale_desc	 port = { .txring = &tx_ring.ring,
    .rxring = &rx_ring.ring, .indirect_max = INDIRECT };
static struct hostif	 hi = { .port = &port, .up = true,
    .ops = &hostif_packet_ops };

static void note(const char *fmt, ...)
    __attribute__((__format__(__printf__, 1, 2)));

static void
note(const char *fmt, ...)
{
	const size_t len = strlen(trace);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(trace + len, sizeof(trace) - len, fmt, ap);
	va_end(ap);
}

/* These calls were made since the last time. */
#define	CALLS(expected)							\
	do {								\
		ATF_CHECK_STREQ(expected, trace);			\
		trace[0] = '\0';					\
	} while (0)

static bool
call(const char *name)
{
	note("%s; ", name);
	if (fails == NULL || strcmp(fails, name) != 0)
		return (false);
	errno = EIO;
	return (true);
}

/* A slot of a ring of slots of 68 KB, 15 in each MB. */
static struct tpacket2_hdr *
slot(bool tx, uint32_t i)
{
	return ((void *)(memory + (tx ? 34U << 20 : 0) + ((i / 15) << 20) +
	    i % 15 * 69632));
}

/*
 * The thread
 */

bool
hostif_peek(struct hostif *one __unused, uint32_t *at, struct frame *frame)
{
	struct iovec *iov = frame->f_iov;

	if (*at == nframes)
		return (false);
	*frame = frames[*at];
	memcpy(iov, frame->f_iov, frame->f_niov * sizeof(*iov));
	frame->f_iov = iov;
	++*at;
	return (true);
}

/* A frame of 13 bytes is not taken. */
bool
hostif_takes(struct hostif *one, const struct frame *frame)
{
	return (one->up && frame->f_len != 13);
}

void
hostif_lost(struct hostif *one __unused, int error)
{
	note("lost %d; ", error);
}

void
hostif_log(struct hostif *one __unused, const char *fmt, ...)
{
	va_list ap;
	size_t len;

	note("log ");
	len = strlen(trace);
	va_start(ap, fmt);
	vsnprintf(trace + len, sizeof(trace) - len, fmt, ap);
	va_end(ap);
	note("; ");
}

int
hostif_ring_reopen(int s, void *mem, size_t size)
{
	ATF_CHECK_EQ(SOCKET, s);
	ATF_CHECK_EQ((void *)memory, mem);
	ATF_CHECK_EQ(MEMORY_SIZE, size);
	return (call("reopen") ? -1 : 0);
}

/*
 * The switch
 */

int	__wrap_vale_set_header(struct vale_desc *d, int header);
int	__wrap_vale_txsync(struct vale_desc *d);

int
__wrap_vale_set_header(struct vale_desc *d, int header)
{
	ATF_CHECK_EQ(&port, d);
	ATF_CHECK_EQ(VALE_HEADER_SLOT, header);
	return (call("header") ? -1 : 0);
}

/* It copies each frame, of as many slots as there are. */
int
__wrap_vale_txsync(struct vale_desc *d)
{
	static uint32_t next;
	struct netmap_ring *ring = d->txring;
	const struct netmap_slot *s;
	struct got *g = &got[ngot];
	const uint32_t before = ngot;
	unsigned int fragments = 0;

	ATF_CHECK_EQ(&port, d);
	ATF_CHECK_EQ(ring->head, ring->cur);
	for (; next != ring->head; next = nm_ring_next(ring, next)) {
		s = &ring->slot[next];
		ATF_REQUIRE(ngot < nitems(got));
		ATF_CHECK((s->flags & NS_INDIRECT) != 0);
		if (fragments++ == 0)
			*g = (struct got){ .p = pool + used };
		if ((s->flags & VALE_SLOT_HEADER) != 0) {
			ATF_CHECK_EQ(NS_INDIRECT | NS_MOREFRAG |
			    VALE_SLOT_HEADER, s->flags);
			ATF_CHECK_EQ(1, fragments);
			ATF_REQUIRE_EQ(FRAME_VNET_LONG, s->len);
			g->headed = true;
			memcpy(g->hdr, (void *)(uintptr_t)s->ptr, s->len);
			continue;
		}
		ATF_REQUIRE(s->len > 0);
		/* The rest is in one slot. */
		ATF_CHECK_EQ((s->flags & NS_MOREFRAG) != 0 ? INDIRECT :
		    (int)s->len, s->len);
		ATF_REQUIRE(used + s->len <= sizeof(pool));
		memcpy(pool + used, (void *)(uintptr_t)s->ptr, s->len);
		used += s->len;
		g->len += s->len;
		if ((s->flags & NS_MOREFRAG) == 0) {
			g = &got[++ngot];
			fragments = 0;
		}
	}
	note("sync %u; ", ngot - before);
	return (0);
}

/*
 * The system's
 */

void	*__real_calloc(size_t n, size_t size);
void	*__wrap_calloc(size_t n, size_t size);
void	__wrap_free(void *p);
int	__wrap_getsockopt(int s, int level, int name, void *value,
	    socklen_t *len);
void	*__wrap_mmap(void *p, size_t size, int prot, int flags, int fd,
	    off_t offset);
void	*__real_mmap(void *p, size_t size, int prot, int flags, int fd,
	    off_t offset);
int	__wrap_munmap(void *p, size_t size);
ssize_t	__wrap_recv(int s, void *p, size_t len, int flags);
ssize_t	__wrap_sendto(int s, const void *p, size_t len, int flags,
	    const struct sockaddr *to, socklen_t tolen);

void *
__wrap_calloc(size_t n, size_t size)
{
	ATF_REQUIRE_EQ(sizeof(struct packet), n * size);
	return (call("calloc") ? NULL : __real_calloc(n, size));
}

void
__wrap_free(void *p)
{
	ATF_CHECK(p != NULL);
	note("free; ");
}

int
__wrap_getsockopt(int s, int level, int name, void *value, socklen_t *len)
{
	ATF_CHECK_EQ(SOCKET, s);
	if (level == SOL_SOCKET && name == SO_DOMAIN) {
		ATF_CHECK_EQ(sizeof(domain), *len);
		if (call("domain"))
			return (-1);
		*(int *)value = domain;
		return (0);
	}
	ATF_CHECK_EQ(SOL_PACKET, level);
	ATF_CHECK_EQ(PACKET_STATISTICS, name);
	ATF_CHECK_EQ(sizeof(struct tpacket_stats), *len);
	if (fails != NULL && strcmp(fails, "statistics") == 0)
		return (-1);
	((struct tpacket_stats *)value)->tp_drops = drops;
	return (0);
}

void *
__wrap_mmap(void *p, size_t size, int prot, int flags, int fd, off_t offset)
{
	ATF_CHECK(p == NULL && offset == 0);
	ATF_CHECK_EQ(MEMORY_SIZE, size);
	ATF_CHECK_EQ(PROT_READ | PROT_WRITE, prot);
	ATF_CHECK_EQ(MAP_SHARED, flags);
	ATF_CHECK_EQ(SOCKET, fd);
	return (call("map") ? MAP_FAILED : memory);
}

int
__wrap_munmap(void *p, size_t size)
{
	ATF_CHECK_EQ((void *)memory, p);
	ATF_CHECK_EQ(MEMORY_SIZE, size);
	note("unmap; ");
	return (0);
}

ssize_t
__wrap_recv(int s, void *p __unused, size_t len, int flags)
{
	ATF_CHECK_EQ(SOCKET, s);
	ATF_CHECK_EQ(1, len);
	ATF_CHECK_EQ(MSG_DONTWAIT, flags);
	note("recv; ");
	return (-1);
}

ssize_t
__wrap_sendto(int s, const void *p, size_t len, int flags,
    const struct sockaddr *to, socklen_t tolen)
{
	struct tpacket2_hdr *h;
	uint32_t take = UINT32_MAX;
	int error = 0;

	ATF_CHECK_EQ(SOCKET, s);
	ATF_CHECK(p == NULL && len == 0 && to == NULL && tolen == 0);
	ATF_CHECK_EQ(MSG_DONTWAIT, flags);
	if (nsends > 0) {
		take = sends[nsent].take;
		error = sends[nsent].error;
		/* The last one is repeated. */
		nsent += nsent + 1 < nsends;
	}
	for (; take > 0; take--) {
		h = slot(true, kernel_slot);
		if (h->tp_status != TP_STATUS_SEND_REQUEST)
			break;
		h->tp_status = busy ? TP_STATUS_SENDING : TP_STATUS_AVAILABLE;
		kernel_slot = (kernel_slot + 1) % TX_SLOTS;
	}
	errno = error;
	return (error == 0 ? 1 : -1);
}

/* Memory, and the interface. */
static void
start(void)
{
	unsigned int i;

	memory = __real_mmap(NULL, MEMORY_SIZE, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ATF_REQUIRE(memory != MAP_FAILED);
	*(uint32_t *)(uintptr_t)&tx_ring.ring.num_slots = RING_SLOTS;
	*(uint32_t *)(uintptr_t)&rx_ring.ring.num_slots = RING_SLOTS;
	for (i = 0; i < nitems(hi.fds.hf_fd); i++)
		hi.fds.hf_fd[i] = 90 + i;
	hi.fds.hf_fd[PACKET_FD] = SOCKET;
	strlcpy(hi.fds.hf_name, "h0", sizeof(hi.fds.hf_name));
	ATF_REQUIRE(hi.ops->ho_start(&hi) == NULL);
	trace[0] = '\0';
}

/* Counters since the last time: an expected one is subtracted. */
static void
counted(enum hostif_counter c, uint64_t n)
{
	ATF_CHECK_EQ_MSG(n, hi.counters[c], "counter %d: %ju", c,
	    (uintmax_t)hi.counters[c]);
	hi.counters[c] = 0;
}

/* There are no others. */
static void
counted_all(void)
{
	int c;

	for (c = 0; c < HOSTIF_NCOUNTERS; c++)
		counted(c, 0);
}

TEST(start, "Each step of the start, what is undone if it fails, and the end")
{
	static const struct {
		const char	*step, *calls, *result;
	} steps[] = {
		{ "calloc", "calloc; ", "memory" },
		{ "domain", "calloc; domain; free; ", "rings" },
		{ "map", "calloc; domain; map; free; ", "rings" },
		{ "header", "calloc; domain; map; header; unmap; free; ",
		    "virtio-net headers" },
	};
	size_t i;

	start();
	hi.ops->ho_stop(&hi);
	CALLS("unmap; free; ");
	for (i = 0; i < nitems(steps); i++) {
		fails = steps[i].step;
		errno = 0;
		ATF_CHECK_STREQ(steps[i].result, hi.ops->ho_start(&hi));
		ATF_CHECK_EQ(EIO, errno);
		CALLS(steps[i].calls);
	}
	fails = NULL;
	hi.data = NULL;
	ATF_CHECK(hi.ops->ho_start(&hi) == NULL);
	ATF_CHECK(hi.data != NULL);
	CALLS("calloc; domain; map; header; ");
	for (domain = AF_PACKET - 1; domain <= AF_PACKET + 1; domain += 2) {
		ATF_CHECK_STREQ("rings", hi.ops->ho_start(&hi));
		ATF_CHECK_EQ(EAFNOSUPPORT, errno);
		CALLS("calloc; domain; free; ");
	}
}

/*
 * Receive
 */

#define	MAC		256		/* offset of frames */

static uint32_t kernel_rx;		/* the kernel's next slot */

/* The kernel receives `len' bytes at p, with a header or zeros. */
static struct tpacket2_hdr *
receive(const uint8_t *hdr, const uint8_t *p, uint32_t len)
{
	struct tpacket2_hdr *h = slot(false, kernel_rx);
	uint8_t *frame = (uint8_t *)h + MAC;

	kernel_rx = (kernel_rx + 1) % RX_SLOTS;
	ATF_REQUIRE_EQ(TP_STATUS_KERNEL, h->tp_status);
	memset(frame - FRAME_VNET_SHORT, 0, FRAME_VNET_SHORT);
	if (hdr != NULL)
		memcpy(frame - FRAME_VNET_SHORT, hdr, FRAME_VNET_SHORT);
	memcpy(frame, p, len);
	h->tp_mac = MAC;
	h->tp_snaplen = h->tp_len = len;
	h->tp_status = TP_STATUS_USER;
	return (h);
}

/* What the switch has got is this. */
static void
is_got(uint32_t i, const uint8_t *p, uint32_t len)
{
	ATF_REQUIRE(i < ngot);
	ATF_CHECK_EQ(len, got[i].len);
	ATF_CHECK_EQ(0, memcmp(got[i].p, p, len));
}

static void
nothing_got(void)
{
	ngot = used = 0;
}

static void
number(uint8_t *frame, uint32_t n)
{
	memset(frame, 'x', 60);
	memcpy(frame + 20, &n, sizeof(n));
}

TEST(receive, "Batches of at most 256 slots around the ring, each given back "
    "after the switch has copied it")
{
	struct packet *pk;
	uint8_t frame[60];
	uint32_t i, n, round;

	start();
	pk = hi.data;
	ATF_CHECK_EQ(0, hi.ops->ho_receive(&hi));
	CALLS("");
	counted_all();
	ATF_CHECK(!pk->pk_received);
	/* Three times the ring's slots: a batch, and what is left. */
	for (round = 0; round < 5; round++) {
		for (i = 0; i < 306; i++) {
			number(frame, round * 1000 + i);
			(void)receive(NULL, frame, sizeof(frame));
		}
		pk->pk_received = false;
		ATF_CHECK_EQ(256, hi.ops->ho_receive(&hi));
		CALLS("sync 256; ");
		ATF_CHECK(pk->pk_received);
		ATF_CHECK_EQ(50, hi.ops->ho_receive(&hi));
		CALLS("sync 50; ");
		ATF_CHECK_EQ(0, hi.ops->ho_receive(&hi));
		CALLS("");
		counted(HOSTIF_C_RX_FRAME, 306);
		counted(HOSTIF_C_RX_BYTE, 306 * 60);
		counted(HOSTIF_C_RX_BATCH, 2);
		counted_all();
		ATF_REQUIRE_EQ(306, ngot);
		for (i = 0; i < ngot; i++) {
			number(frame, round * 1000 + i);
			is_got(i, frame, sizeof(frame));
			ATF_CHECK(!got[i].headed);
		}
		nothing_got();
		for (n = 0; n < RX_SLOTS; n++)
			ATF_CHECK_EQ(TP_STATUS_KERNEL,
			    slot(false, n)->tp_status);
	}
	/* What is not ours is not looked at, nor what is behind it. */
	receive(NULL, frame, sizeof(frame))->tp_status = TP_STATUS_COPY;
	(void)receive(NULL, frame, sizeof(frame));
	ATF_CHECK_EQ(0, hi.ops->ho_receive(&hi));
	CALLS("");
}

TEST(dropped, "A slot with a frame that is dropped is given back, too, and is "
    "no frame")
{
	uint8_t frame[60], other[60];

	start();
	number(frame, 1);
	number(other, 2);
	receive(NULL, frame, sizeof(frame))->tp_snaplen = 59;
	(void)receive(NULL, frame, HOSTIF_ETHER - 1);
	(void)receive(NULL, other, sizeof(other));
	/* Nobody knows segments of this kind. */
	(void)receive((const uint8_t *)"\1\3\x2a\0\x10\0\x22\0\6\0", frame,
	    sizeof(frame));
	ATF_CHECK_EQ(4, hi.ops->ho_receive(&hi));
	CALLS("sync 1; ");
	is_got(0, other, sizeof(other));
	counted(HOSTIF_C_RX_LONG, 1);
	counted(HOSTIF_C_RX_BAD, 1);
	counted(HOSTIF_C_RX_OFFLOAD, 1);
	counted(HOSTIF_C_RX_FRAME, 1);
	counted(HOSTIF_C_RX_BYTE, 60);
	counted(HOSTIF_C_RX_BATCH, 1);
	counted_all();
}

TEST(long_frame, "A frame of more than one slot of the port takes two")
{
	static uint8_t frame[VALE_FRAME_MAX];
	static const uint32_t lengths[] = { INDIRECT, INDIRECT + 1,
	    sizeof(frame) };
	uint32_t i;

	start();
	for (i = 0; i < sizeof(frame); i++)
		frame[i] = (uint8_t)(i * 7 + i / 251);
	for (i = 0; i < nitems(lengths); i++) {
		tx_ring.ring.slot[tx_ring.ring.head].flags = 0xffff;
		(void)receive(NULL, frame, lengths[i]);
		ATF_CHECK_EQ(1, hi.ops->ho_receive(&hi));
		is_got(i, frame, lengths[i]);
		counted(HOSTIF_C_RX_BYTE, lengths[i]);
	}
	CALLS("sync 1; sync 1; sync 1; ");
	/* The slots that these took. */
	ATF_CHECK_EQ(5, tx_ring.ring.head);
	ATF_CHECK_EQ(NS_INDIRECT, tx_ring.ring.slot[0].flags);
	ATF_CHECK_EQ(NS_INDIRECT | NS_MOREFRAG, tx_ring.ring.slot[1].flags);
	ATF_CHECK_EQ(NS_INDIRECT, tx_ring.ring.slot[2].flags);
}

/* Headers of Ethernet, IPv4 and TCP, and the rest. */
static void
make_tcp(uint8_t *p, uint32_t len)
{
	memset(p, 'x', len);
	memset(p + 12, 0, 42);
	memcpy(p + 12, "\x08\x00\x45", 3);
	p[16] = (len - 14) >> 8;
	p[17] = (uint8_t)(len - 14);
	memcpy(p + 22, "\x40\x06\0\0\x0a\0\0\1\x0a\0\0\2", 12);
	p[46] = 5 << 4;
}

TEST(headers, "Each frame with a partial checksum has a header of its own, "
    "which counts a tag")
{
	static const uint8_t hdr[2][FRAME_VNET_SHORT] = {
		{ 1, 0, 0, 0, 0, 0, 34, 0, 16, 0 },
		{ 1, 1, 54, 0, 100, 0, 34, 0, 16, 0 },
	};
	static const uint8_t expected[3][FRAME_VNET_LONG] = {
		{ 1, 0, 0, 0, 0, 0, 34, 0, 16, 0, 1, 0 },
		{ 1, 1, 0, 0, 100, 0, 34, 0, 16, 0, 1, 0 },
		{ 1, 1, 0, 0, 100, 0, 38, 0, 16, 0, 1, 0 },
	};
	uint8_t packet[500 + 4];
	struct tpacket2_hdr *h;

	start();
	make_tcp(packet, 500);
	(void)receive(hdr[0], packet, 500);
	(void)receive(hdr[1], packet, 500);
	h = receive(hdr[1], packet, 500);
	h->tp_status |= TP_STATUS_VLAN_VALID;
	h->tp_vlan_tci = 0x6ffe;
	h->tp_vlan_tpid = 0x9100;
	h = receive(hdr[1], packet, 500);
	h->tp_status |= TP_STATUS_VLAN_VALID | TP_STATUS_VLAN_TPID_VALID;
	h->tp_vlan_tci = 0x6ffe;
	h->tp_vlan_tpid = 0x88a8;
	h = receive(NULL, packet, 500);
	h->tp_vlan_tci = 0x6ffe;
	h->tp_status |= TP_STATUS_VLAN_TPID_VALID;
	/* It is verified, not partial. */
	(void)receive((const uint8_t *)"\2\0\0\0\0\0\0\0\0\0", packet, 500);
	ATF_CHECK_EQ(6, hi.ops->ho_receive(&hi));
	CALLS("sync 6; ");
	counted(HOSTIF_C_RX_BYTE, 6 * 500 + 8);
	is_got(0, packet, 500);
	is_got(1, packet, 500);
	is_got(4, packet, 500);
	is_got(5, packet, 500);
	ATF_CHECK_EQ(0, memcmp(got[0].hdr, expected[0], FRAME_VNET_LONG));
	ATF_CHECK_EQ(0, memcmp(got[1].hdr, expected[1], FRAME_VNET_LONG));
	ATF_CHECK_EQ(0, memcmp(got[2].hdr, expected[2], FRAME_VNET_LONG));
	ATF_CHECK_EQ(0, memcmp(got[3].hdr, expected[2], FRAME_VNET_LONG));
	ATF_CHECK(got[0].headed && got[3].headed && !got[4].headed &&
	    !got[5].headed);
	memmove(packet + 16, packet + 12, 488);
	memcpy(packet + 12, "\x81\x00\x6f\xfe", 4);
	is_got(2, packet, 504);
	memcpy(packet + 12, "\x88\xa8\x6f\xfe", 4);
	is_got(3, packet, 504);
}

/*
 * Receive a packet of TCP, with `len' bytes of payload and segments of `mss',
 * in IPv6 with a destination option of `option' bytes; and the same that can
 * not be cut.
 */
static uint32_t
tunnel(uint32_t option, uint32_t len, uint32_t mss, bool bad)
{
	static uint8_t p[VALE_FRAME_MAX];
	const uint32_t l4 = 14 + 40 + option + 20, all = l4 + 20 + len;
	uint8_t hdr[FRAME_VNET_SHORT] = { 1, FRAME_GSO_TCPV4 };
	uint8_t *ip;

	memset(p, 0, l4 + 20);
	memcpy(p + 12, "\x86\xdd\x60", 3);
	p[18] = (all - 54) >> 8;
	p[19] = (uint8_t)(all - 54);
	p[20] = option > 0 ? 60 : 4;
	p[21] = 64;
	if (option > 0) {
		p[54] = 4;
		p[55] = option / 8 - 1;
		/* One option is padding of all. */
		p[56] = 1;
		p[57] = option - 4;
	}
	ip = p + 54 + option;
	ip[0] = bad ? 0x55 : 0x45;
	ip[2] = (all - (ip - p)) >> 8;
	ip[3] = (uint8_t)(all - (ip - p));
	ip[8] = 64;
	ip[9] = 6;
	ip[20 + 12] = 5 << 4;
	memset(p + l4 + 20, 'x', len);
	le16enc(hdr + 4, mss);
	le16enc(hdr + 6, l4);
	le16enc(hdr + 8, 16);
	(void)receive(hdr, p, all);
	return (all);
}

/* Segments from the i-th on, `n' in all. */
static void
segments(uint32_t i, uint32_t n, uint32_t headers, uint32_t len, uint32_t mss)
{
	uint32_t k;

	for (k = 0; k < n; k++, i++) {
		ATF_REQUIRE(i < ngot);
		ATF_CHECK_EQ(headers + MIN(mss, len - k * mss), got[i].len);
		ATF_CHECK_EQ('x', got[i].p[headers]);
		ATF_CHECK_EQ('x', got[i].p[got[i].len - 1]);
		/* Sequence numbers, the inner and the outer length. */
		ATF_CHECK_EQ(k * mss, be32dec(got[i].p + headers - 16));
		ATF_CHECK_EQ(got[i].len - (headers - 40),
		    be16dec(got[i].p + headers - 38));
		ATF_CHECK_EQ(got[i].len - 54, be16dec(got[i].p + 18));
	}
}

TEST(tunnel, "A packet in a tunnel is cut, in as many syncs as its segments "
    "need; frames before and behind it keep their order")
{
	uint8_t frame[60], last[60];
	uint32_t bytes;

	start();
	number(frame, 1);
	number(last, 2);
	(void)receive(NULL, frame, sizeof(frame));
	bytes = tunnel(0, 60000, 100, false);
	(void)receive(NULL, last, sizeof(last));
	ATF_CHECK_EQ(3, hi.ops->ho_receive(&hi));
	CALLS("sync 1; sync 255; sync 256; sync 89; sync 1; ");
	is_got(0, frame, sizeof(frame));
	segments(1, 600, 94, 60000, 100);
	is_got(601, last, sizeof(last));
	counted(HOSTIF_C_RX_CUT, 1);
	counted(HOSTIF_C_RX_SEGMENT, 600);
	counted(HOSTIF_C_RX_FRAME, 3);
	counted(HOSTIF_C_RX_BYTE, 120 + bytes);
	counted(HOSTIF_C_RX_BATCH, 1);
	counted_all();
	nothing_got();
	/* One sync is enough for 255. */
	(void)tunnel(0, 25500, 100, false);
	(void)tunnel(0, 25501, 100, false);
	ATF_CHECK_EQ(2, hi.ops->ho_receive(&hi));
	CALLS("sync 0; sync 255; sync 0; sync 255; sync 1; sync 0; ");
	segments(0, 255, 94, 25500, 100);
	segments(255, 256, 94, 25501, 100);
	nothing_got();
	/* Segments of 550 bytes, with so many headers: 253 have space. */
	(void)tunnel(256, 51000, 200, false);
	ATF_CHECK_EQ(1, hi.ops->ho_receive(&hi));
	CALLS("sync 0; sync 253; sync 2; sync 0; ");
	segments(0, 255, 350, 51000, 200);
	counted(HOSTIF_C_RX_CUT, 3);
	counted(HOSTIF_C_RX_SEGMENT, 255 + 256 + 255);
	counted(HOSTIF_C_RX_OFFLOAD, 0);
	nothing_got();
	/* What is in it is no IPv4. */
	(void)tunnel(0, 1000, 100, true);
	ATF_CHECK_EQ(1, hi.ops->ho_receive(&hi));
	CALLS("sync 0; sync 0; ");
	counted(HOSTIF_C_RX_OFFLOAD, 1);
	counted(HOSTIF_C_RX_CUT, 0);
	ATF_CHECK_EQ(0, ngot);
}

/*
 * Transmit
 */

/* A frame of `len' bytes waits in the port, the next of those. */
static struct frame *
put(uint8_t *p, uint32_t len)
{
	static struct iovec iov[nitems(frames)][2];
	struct frame *frame = &frames[nframes];

	ATF_REQUIRE(nframes < nitems(frames));
	/* In two parts. */
	iov[nframes][0] = (struct iovec){ p, len / 2 };
	iov[nframes][1] = (struct iovec){ p + len / 2, len - len / 2 };
	*frame = (struct frame){ .f_iov = iov[nframes], .f_niov = 2,
	    .f_len = len };
	nframes++;
	return (frame);
}

/* There are none any more. */
static void
port_empty(void)
{
	ATF_CHECK_EQ(nframes, rx_ring.ring.head);
	ATF_CHECK_EQ(nframes, rx_ring.ring.cur);
	nframes = rx_ring.ring.head = rx_ring.ring.cur = 0;
}

/* From now on calls do this; without any, each takes all. */
#define	SENDS(...)							\
	do {								\
		static const __typeof__(sends[0]) all_[] = { __VA_ARGS__ }; \
									\
		memcpy(sends, all_, sizeof(all_));			\
		nsends = nitems(all_);					\
		nsent = 0;						\
	} while (0)

/* Slot i of the transmit ring has this header and frame. */
static void
is_sent(uint32_t i, const void *hdr, const uint8_t *p, uint32_t len)
{
	const struct tpacket2_hdr *h = slot(true, i);

	ATF_CHECK_EQ(10 + len, h->tp_len);
	ATF_CHECK_EQ_MSG(0, memcmp((const uint8_t *)h + 32, hdr, 10), "%u", i);
	ATF_CHECK_EQ_MSG(0, memcmp((const uint8_t *)h + 42, p, len), "%u", i);
}

TEST(send, "Frames fill the ring's slots, around its end, and one call sends a "
    "batch")
{
	static uint8_t bytes[100][64];
	uint8_t hdr[10] = { 0, 0, 60 };
	uint32_t i, round;

	start();
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	counted_all();
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	memset(memory + (34U << 20), 0xa5, 17U << 20);
	for (i = 0; i < TX_SLOTS; i++)
		slot(true, i)->tp_status = TP_STATUS_AVAILABLE;
	for (round = 0; round < 6; round++) {
		for (i = 0; i < nitems(bytes); i++) {
			number(bytes[i], round * 1000 + i);
			(void)put(bytes[i], 60);
		}
		ATF_CHECK_EQ(100, hi.ops->ho_send(&hi));
		port_empty();
		for (i = 0; i < nitems(bytes); i++)
			is_sent((round * 100 + i) % 255, hdr, bytes[i], 60);
		ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
		counted(HOSTIF_C_TX_FRAME, 100);
		counted(HOSTIF_C_TX_BYTE, 6000);
		counted(HOSTIF_C_TX_BATCH, 1);
		counted(HOSTIF_C_TX_CALL, 1);
		counted_all();
	}
	CALLS("");
}

TEST(send_headers, "The virtio-net header: what the kernel must complete, and "
    "how much of a short frame it may copy")
{
	static const struct {
		uint32_t	len;
		uint8_t		flags, gso;
		uint8_t		hdr[10];
	} cases[] = {
		{ 2048, 0, 0, { 0, 0, 0, 8 } },
		{ 2049, 0, 0, { 0 } },
		{ 2048, 1, 0, { 1, 0, 0, 8, 0, 0, 34, 0, 16 } },
		{ 2049, 1, 0, { 1, 0, 0, 0, 0, 0, 34, 0, 16 } },
		{ 60, 2, 0, { 2, 0, 60 } },
		{ 1000, 1, FRAME_GSO_TCPV4, { 1, 1, 54, 0, 100, 0, 34, 0,
		    16 } },
		{ 1000, 1, FRAME_GSO_TCPV6 | FRAME_GSO_ECN, { 1, 0x84, 54, 0,
		    100, 0, 34, 0, 16 } },
		{ 1000, 0, FRAME_GSO_TCPV4, { 0, 1, 54, 0, 100 } },
	};
	static uint8_t bytes[4096];
	struct frame *frame;
	uint32_t i;

	start();
	memset(memory + (34U << 20), 0xa5, 17U << 20);
	for (i = 0; i < TX_SLOTS; i++)
		slot(true, i)->tp_status = TP_STATUS_AVAILABLE;
	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + i / 251);
	for (i = 0; i < nitems(cases); i++) {
		frame = put(bytes, cases[i].len);
		frame->f_flags = cases[i].flags;
		frame->f_gso_type = cases[i].gso;
		frame->f_hdr_len = 54;
		frame->f_gso_size = 100;
		frame->f_csum_start = 34;
		frame->f_csum_offset = 16;
	}
	ATF_CHECK_EQ(nitems(cases), hi.ops->ho_send(&hi));
	port_empty();
	for (i = 0; i < nitems(cases); i++)
		is_sent(i, cases[i].hdr, bytes, cases[i].len);
}

/* Headers of Ethernet, IPv4 and UDP, and the rest, to be cut. */
static void
make_udp(uint8_t *p, uint32_t len, struct frame *frame)
{
	memset(p, 'x', len);
	memset(p + 12, 0, 30);
	memcpy(p + 12, "\x08\x00\x45", 3);
	p[16] = (len - 14) >> 8;
	p[17] = (uint8_t)(len - 14);
	memcpy(p + 22, "\x40\x11\0\0\x0a\0\0\1\x0a\0\0\2", 12);
	p[38] = (len - 34) >> 8;
	p[39] = (uint8_t)(len - 34);
	/* The sum of the pseudo-header. */
	be16enc(p + 40, 0x0a00 + 1 + 0x0a00 + 2 + IPPROTO_UDP + len - 34);
	frame->f_flags = FRAME_CSUM_PARTIAL;
	frame->f_gso_type = FRAME_GSO_UDP_L4;
	frame->f_hdr_len = 42;
	frame->f_gso_size = 100;
	frame->f_csum_start = 34;
	frame->f_csum_offset = 6;
}

/* The sum of a datagram and its pseudo-header is right. */
static bool
sum_right(const uint8_t *p, uint32_t len)
{
	uint32_t i, sum = IPPROTO_UDP + len - 34;

	for (i = 26; i < len; i++)
		sum += i % 2 == 0 ? (uint32_t)p[i] << 8 : p[i];
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return (sum == 0xffff);
}

/* A datagram is in this slot, with so much payload. */
static void
is_datagram(uint32_t i, uint32_t payload)
{
	const uint8_t hdr[10] = { 0, 0, 42 + payload };
	const uint8_t *p = (const uint8_t *)slot(true, i) + 42;

	is_sent(i, hdr, p, 42 + payload);
	ATF_CHECK_EQ(28 + payload, be16dec(p + 16));
	ATF_CHECK_EQ(8 + payload, be16dec(p + 38));
	ATF_CHECK_EQ('x', p[42]);
	ATF_CHECK_EQ('x', p[41 + payload]);
	ATF_CHECK(sum_right(p, 42 + payload));
}

TEST(send_cut, "Segments of UDP are cut, as far as the ring has space; bad "
    "headers are counted")
{
	static uint8_t bytes[3][1000], small[60];
	struct frame *frame;
	uint32_t i;

	start();
	memset(memory + (34U << 20), 0xa5, 17U << 20);
	for (i = 0; i < TX_SLOTS; i++)
		slot(true, i)->tp_status = TP_STATUS_AVAILABLE;
	make_udp(bytes[0], 42 + 250, put(bytes[0], 42 + 250));
	frame = put(bytes[1], 42 + 200);
	make_udp(bytes[1], 42 + 200, frame);
	frame->f_gso_type |= FRAME_GSO_ECN;
	frame = put(bytes[2], 42 + 200);
	make_udp(bytes[2], 42 + 200, frame);
	bytes[2][14] = 0x65;
	ATF_CHECK_EQ(3, hi.ops->ho_send(&hi));
	port_empty();
	counted(HOSTIF_C_TX_FRAME, 5);
	counted(HOSTIF_C_TX_BYTE, 450 + 5 * 42);
	counted(HOSTIF_C_TX_BAD, 1);
	counted(HOSTIF_C_TX_BATCH, 1);
	counted(HOSTIF_C_TX_CALL, 1);
	counted_all();
	is_datagram(0, 100);
	is_datagram(1, 100);
	is_datagram(2, 50);
	is_datagram(3, 100);
	is_datagram(4, 100);
	/* One slot is left, the last one of the ring. */
	busy = true;
	for (i = 5; i < TX_SLOTS - 1; i++)
		(void)put(small, sizeof(small));
	make_udp(bytes[0], 42 + 250, put(bytes[0], 42 + 250));
	for (i = 0; i < 5; i++)
		slot(true, i)->tp_status = TP_STATUS_SENDING;
	ATF_CHECK_EQ(TX_SLOTS - 5, hi.ops->ho_send(&hi));
	port_empty();
	is_datagram(TX_SLOTS - 1, 100);
	counted(HOSTIF_C_TX_NOROOM, 2);
	counted(HOSTIF_C_TX_FRAME, TX_SLOTS - 5);
	ATF_CHECK_EQ(HOSTIF_TX_FULL, hi.tx_state);
}

/* `n' short frames wait. */
static void
put_short(uint32_t n, uint32_t len)
{
	static uint8_t bytes[60];

	for (; n > 0; n--)
		(void)put(bytes, len);
}

TEST(full, "Frames wait while the kernel has all slots, which is counted once; "
    "not for frames that are not taken, nor while the interface is down")
{
	start();
	busy = true;
	put_short(300, 60);
	ATF_CHECK_EQ(TX_SLOTS, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(TX_SLOTS, rx_ring.ring.head);
	ATF_CHECK_EQ(HOSTIF_TX_FULL, hi.tx_state);
	counted(HOSTIF_C_TX_FRAME, TX_SLOTS);
	counted(HOSTIF_C_TX_BYTE, TX_SLOTS * 60);
	counted(HOSTIF_C_TX_BATCH, 1);
	counted(HOSTIF_C_TX_CALL, 1);
	counted(HOSTIF_C_TX_WAIT, 1);
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(HOSTIF_TX_FULL, hi.tx_state);
	counted_all();
	slot(true, 0)->tp_status = TP_STATUS_AVAILABLE;
	slot(true, 1)->tp_status = TP_STATUS_AVAILABLE;
	ATF_CHECK_EQ(2, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(HOSTIF_TX_FULL, hi.tx_state);
	counted(HOSTIF_C_TX_WAIT, 0);
	counted(HOSTIF_C_TX_FRAME, 2);
	/* Down, none waits. */
	hi.up = false;
	ATF_CHECK_EQ(300 - TX_SLOTS - 2, hi.ops->ho_send(&hi));
	port_empty();
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	counted(HOSTIF_C_TX_FRAME, 0);
	counted(HOSTIF_C_TX_WAIT, 0);
	counted(HOSTIF_C_TX_DOWN, 0);
	hi.up = true;
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(HOSTIF_TX_FULL, hi.tx_state);
	counted(HOSTIF_C_TX_WAIT, 1);
	/* Frames that need no slot: a batch at a time. */
	slot(true, 2)->tp_status = TP_STATUS_AVAILABLE;
	put_short(300, 13);
	ATF_CHECK_EQ(256, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	ATF_CHECK_EQ(44, hi.ops->ho_send(&hi));
	port_empty();
	counted(HOSTIF_C_TX_FRAME, 0);
}

TEST(kick, "Calls go on while each takes a slot; those that take none, or fail "
    "for what passes, are made again later")
{
	static const int passing[] = { EAGAIN, EINTR, ENETDOWN, ENXIO };
	uint32_t i;

	start();
	/* Three, one, and one. */
	put_short(5, 60);
	SENDS({ 3, 0 }, { 1, 0 }, { 1, 0 }, { 99, EIO });
	ATF_CHECK_EQ(5, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	counted(HOSTIF_C_TX_CALL, 3);
	counted(HOSTIF_C_TX_ERROR, 0);
	/* Two, and none. */
	put_short(5, 60);
	SENDS({ 2, 0 }, { 0, 0 });
	ATF_CHECK_EQ(5, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(HOSTIF_TX_AGAIN, hi.tx_state);
	counted(HOSTIF_C_TX_CALL, 2);
	/* One, and the rest fails. */
	for (i = 0; i < nitems(passing); i++) {
		SENDS({ 0, 0 }, { 0, 0 });
		sends[0].error = passing[i];
		ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
		ATF_CHECK_EQ(HOSTIF_TX_AGAIN, hi.tx_state);
		counted(HOSTIF_C_TX_CALL, 1);
		counted(HOSTIF_C_TX_ERROR, 1);
	}
	CALLS("");
	SENDS({ 2, 0 }, { 1, 0 }, { 99, EIO });
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	counted(HOSTIF_C_TX_CALL, 2);
	/* Nothing is left. */
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	counted(HOSTIF_C_TX_CALL, 0);
	counted(HOSTIF_C_TX_ERROR, 0);
	port_empty();
	CALLS("");
}

TEST(skip, "A frame for which a call fails is lost, and its slot is skipped; "
    "the others are sent")
{
	static const int errors[] = { ENOBUFS, EBUSY, EIO, EMSGSIZE, EPERM,
	    EAGAIN + 1, EINTR + 1, ENETDOWN + 1, ENXIO + 1 };
	char expected[256];
	uint32_t first = 0, i, k;

	start();
	for (i = 0; i < nitems(errors); i++, first += 4) {
		put_short(4, 60);
		/* The kernel sends the first one and fails for the second one,
		   then skips that and sends the others. */
		SENDS({ 1, 0 }, { 0, 0 }, { 3, 0 });
		sends[1].error = errors[i];
		ATF_CHECK_EQ(4, hi.ops->ho_send(&hi));
		port_empty();
		snprintf(expected, sizeof(expected), "lost %d; ", errors[i]);
		CALLS(expected);
		for (k = 0; k < 4; k++)
			ATF_CHECK_EQ(k == 1 ? 0 : 70, slot(true, first +
			    k)->tp_len);
		ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
		counted(HOSTIF_C_TX_CALL, 3);
		counted(HOSTIF_C_TX_ERROR, 1);
		counted(HOSTIF_C_TX_FRAME, 4);
	}
	/* A kernel that frees the slot of the frame that fails. */
	put_short(3, 60);
	SENDS({ 1, EIO }, { 1, EIO }, { 1, 0 });
	ATF_CHECK_EQ(3, hi.ops->ho_send(&hi));
	port_empty();
	counted(HOSTIF_C_TX_CALL, 3);
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	CALLS("lost 5; lost 5; ");
	/* The one that fails is the last one. */
	put_short(1, 60);
	SENDS({ 1, EIO });
	ATF_CHECK_EQ(1, hi.ops->ho_send(&hi));
	port_empty();
	counted(HOSTIF_C_TX_CALL, 1);
	CALLS("");
}

TEST(stubborn, "A kernel that takes no slot is called as often as needed for a "
    "full ring, around its end, and each frame is lost once")
{
	uint32_t i;

	start();
	put_short(250, 60);
	ATF_CHECK_EQ(250, hi.ops->ho_send(&hi));
	port_empty();
	counted(HOSTIF_C_TX_CALL, 1);
	put_short(10, 60);
	SENDS({ 0, EIO });
	ATF_CHECK_EQ(10, hi.ops->ho_send(&hi));
	port_empty();
	counted(HOSTIF_C_TX_CALL, 2 * TX_SLOTS);
	counted(HOSTIF_C_TX_ERROR, 2 * TX_SLOTS);
	CALLS("lost 5; lost 5; lost 5; lost 5; lost 5; lost 5; lost 5; "
	    "lost 5; lost 5; lost 5; ");
	for (i = 0; i < TX_SLOTS; i++)
		ATF_CHECK_EQ(i >= 250 || i < 5 ? 0 : 70,
		    slot(true, i)->tp_len);
	ATF_CHECK_EQ(HOSTIF_TX_AGAIN, hi.tx_state);
	SENDS({ 10, 0 });
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
}

TEST(down, "What the kernel has not sent when the interface goes down is "
    "skipped, and counted once")
{
	uint32_t i;

	start();
	put_short(250, 60);
	ATF_CHECK_EQ(250, hi.ops->ho_send(&hi));
	port_empty();
	put_short(20, 60);
	SENDS({ 8, 0 }, { 0, ENETDOWN });
	ATF_CHECK_EQ(20, hi.ops->ho_send(&hi));
	port_empty();
	counted(HOSTIF_C_TX_CALL, 3);
	hi.up = false;
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	counted(HOSTIF_C_TX_DOWN, 12);
	counted(HOSTIF_C_TX_CALL, 0);
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	for (i = 0; i < TX_SLOTS; i++)
		ATF_CHECK_EQ(i >= 3 && i < 15 ? 0 : 70,
		    slot(true, i)->tp_len);
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	counted(HOSTIF_C_TX_DOWN, 0);
	/* All slots. */
	hi.up = true;
	SENDS({ 12, 0 }, { 0, ENETDOWN });
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	put_short(TX_SLOTS, 60);
	ATF_CHECK_EQ(TX_SLOTS, hi.ops->ho_send(&hi));
	port_empty();
	hi.up = false;
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	counted(HOSTIF_C_TX_DOWN, TX_SLOTS);
}

/*
 * Events
 */

TEST(events, "What is waited for, and that an error is taken")
{
	struct pollfd pfd = { .fd = -1, .events = -1 };

	start();
	hi.tx_state = HOSTIF_TX_IDLE;
	ATF_CHECK_EQ(1, hi.ops->ho_poll(&hi, &pfd, 4));
	ATF_CHECK_EQ(SOCKET, pfd.fd);
	ATF_CHECK_EQ(POLLIN, pfd.events);
	hi.tx_state = HOSTIF_TX_AGAIN;
	ATF_CHECK_EQ(1, hi.ops->ho_poll(&hi, &pfd, 4));
	ATF_CHECK_EQ(POLLIN, pfd.events);
	hi.tx_state = HOSTIF_TX_FULL;
	ATF_CHECK_EQ(1, hi.ops->ho_poll(&hi, &pfd, 4));
	ATF_CHECK_EQ(POLLIN | POLLOUT, pfd.events);
	pfd.revents = POLLIN | POLLOUT | POLLHUP;
	hi.ops->ho_event(&hi, &pfd);
	CALLS("");
	pfd.revents = POLLERR;
	hi.ops->ho_event(&hi, &pfd);
	CALLS("recv; ");
}

#define	STOPPED								\
	"log the kernel's receive ring stopped at a packet that it cannot "	\
	"describe: opened again; "

/* Ticks until the ring is opened again. */
static unsigned int
ticks(void)
{
	unsigned int n;

	for (n = 1; n < 100; n++) {
		hi.ops->ho_tick(&hi);
		if (trace[0] != '\0')
			break;
	}
	return (n);
}

TEST(reopen, "A ring in which frames are dropped and none arrives is opened "
    "again, at once, then after longer and longer pauses")
{
	static const unsigned int expected[] = { 1, 1, 2, 4, 8, 8 };
	uint8_t frame[60];
	size_t i;

	start();
	hi.ops->ho_tick(&hi);
	CALLS("");
	counted_all();
	/* The counter tells what was dropped before; a frame came. */
	drops = 5;
	number(frame, 1);
	(void)receive(NULL, frame, sizeof(frame));
	ATF_CHECK_EQ(1, hi.ops->ho_receive(&hi));
	trace[0] = '\0';
	hi.ops->ho_tick(&hi);
	CALLS("");
	counted(HOSTIF_C_RX_FULL, 5);
	/* It is not asked in vain. */
	fails = "statistics";
	hi.ops->ho_tick(&hi);
	CALLS("");
	counted(HOSTIF_C_RX_FULL, 0);
	fails = NULL;
	drops = 0;
	hi.ops->ho_tick(&hi);
	CALLS("");
	/* The next slot is ours: it has not stopped. */
	drops = 1;
	(void)receive(NULL, frame, sizeof(frame));
	hi.ops->ho_tick(&hi);
	CALLS("");
	ATF_CHECK_EQ(1, hi.ops->ho_receive(&hi));
	hi.ops->ho_tick(&hi);
	trace[0] = '\0';
	for (i = 0; i < nitems(expected); i++) {
		ATF_CHECK_EQ(expected[i], ticks());
		CALLS(i == 0 ? STOPPED "reopen; " : "reopen; ");
		ATF_CHECK_EQ(i + 1, hi.counters[HOSTIF_C_RX_STOP]);
		ATF_CHECK(hi.up && !hi.gone);
	}
	/* The ring begins with its first slot; then it is as at first. */
	kernel_rx = 0;
	number(frame, 2);
	(void)receive(NULL, frame, sizeof(frame));
	nothing_got();
	ATF_CHECK_EQ(1, hi.ops->ho_receive(&hi));
	is_got(0, frame, sizeof(frame));
	hi.ops->ho_tick(&hi);
	CALLS("sync 1; ");
	for (i = 0; i < 3; i++) {
		ATF_CHECK_EQ(expected[i], ticks());
		CALLS("reopen; ");
	}
	/* Pauses go on while nothing is dropped. */
	drops = 0;
	hi.ops->ho_tick(&hi);
	hi.ops->ho_tick(&hi);
	drops = 1;
	ATF_CHECK_EQ(2, ticks());
	CALLS("reopen; ");
	/* It fails. */
	fails = "reopen";
	ATF_CHECK_EQ(8, ticks());
	CALLS("reopen; log the receive ring: Input/output error: attach the "
	    "interface again; ");
	ATF_CHECK(!hi.up && hi.gone);
}

TEST(too_long, "Packets that are too long are a line, once")
{
	start();
	hi.ops->ho_tick(&hi);
	CALLS("");
	hi.counters[HOSTIF_C_RX_LONG] = 1;
	hi.ops->ho_tick(&hi);
	CALLS("log packets of more than 64 KB are dropped: set gso_max_size of "
	    "what sends them and gro_max_size of h0 to 65536, by ip link set; ");
	hi.counters[HOSTIF_C_RX_LONG]++;
	hi.ops->ho_tick(&hi);
	CALLS("");
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, start);
	ATF_TP_ADD_TC(tp, receive);
	ATF_TP_ADD_TC(tp, dropped);
	ATF_TP_ADD_TC(tp, long_frame);
	ATF_TP_ADD_TC(tp, headers);
	ATF_TP_ADD_TC(tp, tunnel);
	ATF_TP_ADD_TC(tp, send);
	ATF_TP_ADD_TC(tp, send_headers);
	ATF_TP_ADD_TC(tp, send_cut);
	ATF_TP_ADD_TC(tp, full);
	ATF_TP_ADD_TC(tp, kick);
	ATF_TP_ADD_TC(tp, skip);
	ATF_TP_ADD_TC(tp, stubborn);
	ATF_TP_ADD_TC(tp, down);
	ATF_TP_ADD_TC(tp, events);
	ATF_TP_ADD_TC(tp, reopen);
	ATF_TP_ADD_TC(tp, too_long);
	return (atf_no_error());
}
