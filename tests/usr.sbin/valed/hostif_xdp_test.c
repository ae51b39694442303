/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The rings of AF_XDP of an attached interface: each entry, each call and each
 * counter.  The kernel, the switch and the interface's thread are this file's.
 * hostif_rings_test has what a hostile kernel may write.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "test.h"

#include "hostif_xdp.c"

#define	ETHTOOL		11
#define	MEMORY		14
#define	XSK		15		/* and the one behind it */
#define	QUEUES		2
#define	SLOTS		HOSTIF_XDP_SLOTS
#define	FIRST		(QUEUES * SLOTS) /* chunk to transmit */
#define	SIZE		((QUEUES + 1) * 2048 * 4096U)
#define	RING_SLOTS	1024		/* of the port */

/* Where the parts of each kind of ring are. */
static const struct xdp_mmap_offsets offsets = {
	.rx = { .producer = 64, .consumer = 128, .desc = 256, .flags = 192 },
	.tx = { .producer = 4, .consumer = 68, .desc = 512, .flags = 132 },
	.fr = { .producer = 8, .consumer = 72, .desc = 1024, .flags = 136 },
	.cr = { .producer = 12, .consumer = 76, .desc = 2048, .flags = 140 }
};

static char		 trace[4096];
static unsigned int	 ncalls, fail_call;	/* the n-th of the start */
static bool		 short_offsets;
static uint8_t		 maps[6][40960];	/* mapped rings */
static size_t		 map_size[nitems(maps)];
static unsigned int	 nmaps, nmapped;
static uint8_t		*memory;
static struct xdp_statistics statistics[QUEUES];
static bool		 old_kernel;		/* it tells the first ones */

static uint8_t		 got[RING_SLOTS][4096];	/* what the switch got */
static uint32_t		 got_len[RING_SLOTS], ngot;
static struct frame	 frames[600];		/* for the interface */
static uint32_t		 nframes;
static struct hostif_ethtool told;		/* by ethtool */
static bool		 told_all = true;

/* What sendto(2) does: it takes frames, then it fails. */
static struct {
	uint32_t	take;
	int		error;		/* 0: none */
} sends[8];
static unsigned int	 nsends, nsent;

static union {
	struct netmap_ring ring;
	uint8_t		 bytes[sizeof(struct netmap_ring) +
			    RING_SLOTS * sizeof(struct netmap_slot)];
} tx_ring, rx_ring;
static struct vale_desc	 port = { .txring = &tx_ring.ring,
    .rxring = &rx_ring.ring, .indirect_max = 4096 };
static struct hostif	 hi = { .port = &port, .up = true,
    .ops = &hostif_xdp_ops };

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

/* Whether a call of the start must fail. */
static bool
call_fails(void)
{
	errno = EIO;
	return (++ncalls == fail_call);
}

/*
 * The thread
 */

void
hostif_withdrawn(void *arg __unused)
{
}

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
hostif_lost(struct hostif *one, int error)
{
	ATF_CHECK_EQ(EBUSY, error);
	hostif_count(one, HOSTIF_C_TX_QUEUE, 1);
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

void
hostif_ethtool_ask(int s, uint16_t family, uint32_t index)
{
	ATF_CHECK_EQ(ETHTOOL, s);
	note("ask %u of %u; ", family, index);
}

bool
hostif_ethtool_read(int s, uint32_t index, struct hostif_ethtool *he)
{
	ATF_CHECK_EQ(ETHTOOL, s);
	ATF_CHECK_EQ(7, index);
	*he = told;
	return (told_all);
}

/*
 * The memory
 */

void
vfu_dma_init(struct vfu_dma *dma __unused, uint64_t size,
    void (*pause)(void *arg, bool paused), void *arg)
{
	ATF_CHECK_EQ(SIZE, size);
	ATF_CHECK(pause == memory_pause && arg == NULL);
	note("init; ");
}

int
vfu_fault_add(struct vfu_dma *dma, void (*fn)(void *arg), void *arg)
{
	ATF_CHECK_EQ(&((struct xdp *)hi.data)->xd_dma, dma);
	ATF_CHECK(fn == hostif_withdrawn && arg == &hi);
	note("add; ");
	return (call_fails() ? ENOSPC : 0);
}

int
vfu_dma_map(struct vfu_dma *dma __unused, int fd, uint64_t offset, uint64_t addr,
    uint64_t size, int prot, const char **why __unused)
{
	ATF_CHECK_EQ(MEMORY, fd);
	ATF_CHECK_EQ(0, offset);
	ATF_CHECK_EQ(0, addr);
	ATF_CHECK_EQ(SIZE, size);
	ATF_CHECK_EQ(PROT_READ | PROT_WRITE, prot);
	note("memory; ");
	return (call_fails() ? EPERM : 0);
}

void *
vfu_dma_addr(struct vfu_dma *dma __unused, uint64_t addr, size_t len, int prot)
{
	ATF_CHECK_EQ(0, addr);
	ATF_CHECK_EQ(SIZE, len);
	ATF_CHECK_EQ(PROT_READ | PROT_WRITE, prot);
	return (memory);
}

void
vfu_dma_reset(struct vfu_dma *dma __unused)
{
	note("reset; ");
	errno = EBADF;
}

void
vfu_fault_remove(struct vfu_dma *dma __unused)
{
	note("remove; ");
}

/*
 * The switch and the system
 */

void	*__real_calloc(size_t n, size_t size);
void	*__wrap_calloc(size_t n, size_t size);
void	__wrap_free(void *p);
int	__wrap_getsockopt(int s, int level, int name, void *value,
	    socklen_t *len);
void	*__real_mmap(void *p, size_t size, int prot, int flags, int fd,
	    off_t offset);
void	*__wrap_mmap(void *p, size_t size, int prot, int flags, int fd,
	    off_t offset);
int	__wrap_munmap(void *p, size_t size);
ssize_t	__wrap_recvfrom(int s, void *p, size_t len, int flags,
	    struct sockaddr *from, socklen_t *fromlen);
ssize_t	__wrap_sendto(int s, const void *p, size_t len, int flags,
	    const struct sockaddr *to, socklen_t tolen);
int	__wrap_vale_txsync(struct vale_desc *d);

void *
__wrap_calloc(size_t n, size_t size)
{
	ATF_REQUIRE_EQ(sizeof(struct xdp), n * size);
	note("calloc; ");
	return (call_fails() ? NULL : __real_calloc(n, size));
}

void
__wrap_free(void *p)
{
	ATF_CHECK_EQ(hi.data, p);
	note("free; ");
}

int
__wrap_getsockopt(int s, int level, int name, void *value, socklen_t *len)
{
	const unsigned int queue = s - XSK;

	ATF_CHECK_EQ(SOL_XDP, level);
	ATF_REQUIRE(queue < QUEUES);
	if (name == XDP_MMAP_OFFSETS) {
		ATF_CHECK_EQ(sizeof(offsets), *len);
		note("offsets %u; ", queue);
		if (call_fails())
			return (-1);
		memcpy(value, &offsets, sizeof(offsets));
		*len -= short_offsets;
		return (0);
	}
	ATF_CHECK_EQ(XDP_STATISTICS, name);
	ATF_CHECK_EQ(sizeof(statistics[0]), *len);
	if (old_kernel)
		*len = offsetof(struct xdp_statistics, rx_ring_full);
	memcpy(value, &statistics[queue], *len);
	return (old_kernel && queue == 1 ? -1 : 0);
}

void *
__wrap_mmap(void *p, size_t size, int prot, int flags, int fd, off_t offset)
{
	ATF_CHECK(p == NULL);
	ATF_CHECK_EQ(PROT_READ | PROT_WRITE, prot);
	ATF_CHECK_EQ(MAP_SHARED, flags);
	note("map %d %#jx %zu; ", fd - XSK, (intmax_t)offset, size);
	if (call_fails())
		return (MAP_FAILED);
	ATF_REQUIRE(nmaps < nitems(maps) && size <= sizeof(maps[0]));
	map_size[nmaps] = size;
	nmapped++;
	return (maps[nmaps++]);
}

int
__wrap_munmap(void *p, size_t size)
{
	const size_t i = ((uint8_t *)p - maps[0]) / sizeof(maps[0]);

	ATF_REQUIRE(i < nmaps && p == maps[i] && map_size[i] == size);
	map_size[i] = 0;
	nmapped--;
	return (0);
}

ssize_t
__wrap_recvfrom(int s, void *p, size_t len, int flags, struct sockaddr *from,
    socklen_t *fromlen)
{
	ATF_CHECK(p == NULL && len == 0 && from == NULL && fromlen == NULL);
	ATF_CHECK_EQ(MSG_DONTWAIT, flags);
	note("wake %d; ", s - XSK);
	return (-1);
}

/* Words and entries of a ring, by the order in which they are mapped. */
enum { RX0, FILL0, TX, COMPLETION, RX1, FILL1 };

static uint32_t *
word(unsigned int ring, size_t at)
{
	return ((uint32_t *)(void *)(maps[ring] + at));
}

static struct xdp_desc *
desc(unsigned int ring, uint32_t i)
{
	return ((struct xdp_desc *)(void *)(maps[ring] +
	    (ring == TX ? 512 : 256)) + i % SLOTS);
}

static uint64_t *
chunk(unsigned int ring, uint32_t i)
{
	return ((uint64_t *)(void *)(maps[ring] +
	    (ring == COMPLETION ? 2048 : 1024)) + i % SLOTS);
}

#define	RX_PRODUCER	64
#define	RX_CONSUMER	128
#define	FILL_PRODUCER	8
#define	FILL_FLAGS	136
#define	TX_PRODUCER	4
#define	TX_CONSUMER	68
#define	TX_FLAGS	132
#define	CR_PRODUCER	12
#define	CR_CONSUMER	76

ssize_t
__wrap_sendto(int s, const void *p, size_t len, int flags,
    const struct sockaddr *to, socklen_t tolen)
{
	uint32_t *consumer = word(TX, TX_CONSUMER);
	uint32_t take = UINT32_MAX;
	int error = 0;

	ATF_CHECK_EQ(XSK, s);
	ATF_CHECK(p == NULL && len == 0 && to == NULL && tolen == 0);
	ATF_CHECK_EQ(MSG_DONTWAIT, flags);
	if (nsends > 0) {
		take = sends[nsent].take;
		error = sends[nsent].error;
		/* The last one is repeated. */
		nsent += nsent + 1 < nsends;
	}
	*consumer += MIN(take, *word(TX, TX_PRODUCER) - *consumer);
	errno = error;
	return (error == 0 ? 0 : -1);
}

int
__wrap_vale_txsync(struct vale_desc *d)
{
	static uint32_t next;
	struct netmap_ring *ring = d->txring;
	const struct netmap_slot *s;
	const uint32_t before = ngot;

	ATF_CHECK_EQ(&port, d);
	ATF_CHECK_EQ(ring->head, ring->cur);
	for (; next != ring->head; next = nm_ring_next(ring, next)) {
		s = &ring->slot[next];
		ATF_REQUIRE(ngot < nitems(got) && s->len <= sizeof(got[0]));
		ATF_CHECK_EQ(NS_INDIRECT, s->flags);
		memcpy(got[ngot], (void *)(uintptr_t)s->ptr, s->len);
		got_len[ngot++] = s->len;
	}
	note("sync %u; ", ngot - before);
	return (0);
}

/* Before ho_start(). */
static void
prepare(void)
{
	unsigned int i;

	if (memory == NULL)
		memory = __real_mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ATF_REQUIRE(memory != MAP_FAILED);
	*(uint32_t *)(uintptr_t)&tx_ring.ring.num_slots = RING_SLOTS;
	*(uint32_t *)(uintptr_t)&rx_ring.ring.num_slots = RING_SLOTS;
	for (i = 0; i < nitems(hi.fds.hf_fd); i++)
		hi.fds.hf_fd[i] = 10 + i;
	hi.fds.hf_nfds = HOSTIF_FD_XSK + QUEUES;
	hi.fds.hf_index = 7;
	hi.fds.hf_family = 9;
	strlcpy(hi.fds.hf_name, "h0", sizeof(hi.fds.hf_name));
	memset(maps, 0, sizeof(maps));
	nmaps = ncalls = 0;
	trace[0] = '\0';
}

static void
start(void)
{
	prepare();
	ATF_REQUIRE(hi.ops->ho_start(&hi) == NULL);
	*word(TX, TX_FLAGS) = XDP_RING_NEED_WAKEUP;
	trace[0] = '\0';
}

/* A counter since the last time; there are no others. */
static void
counted(enum hostif_counter c, uint64_t n)
{
	ATF_CHECK_EQ_MSG(n, hi.counters[c], "counter %d: %ju", c,
	    (uintmax_t)hi.counters[c]);
	hi.counters[c] = 0;
}

static void
counted_all(void)
{
	int c;

	for (c = 0; c < HOSTIF_NCOUNTERS; c++)
		counted(c, 0);
}

TEST(start, "Each step of the start, what is undone if it fails, and the end")
{
	static const char *const steps[] = { "calloc; ", "init; add; ",
	    "memory; ", "offsets 0; ", "map 0 0 33024; ",
	    "map 0 0x100000000 17408; ", "map 0 0x80000000 33280; ",
	    "map 0 0x180000000 18432; ", "offsets 1; ", "map 1 0 33024; ",
	    "map 1 0x100000000 17408; " };
	static const int errors[] = { EIO, ENOSPC, EPERM, EIO };
	char expected[512];
	const struct xdp *xd;
	unsigned int i, n;

	for (n = 0; n < nitems(steps); n++) {
		prepare();
		fail_call = n + 1;
		expected[0] = '\0';
		for (i = 0; i <= n; i++)
			strlcat(expected, steps[i], sizeof(expected));
		if (n > 0)
			strlcat(expected, "reset; remove; free; ",
			    sizeof(expected));
		ATF_CHECK_STREQ(n < 3 ? "memory" : "rings",
		    hi.ops->ho_start(&hi));
		ATF_CHECK_EQ(errors[MIN(n, 3)], errno);
		CALLS(expected);
		ATF_CHECK_EQ(0, nmapped);
	}
	fail_call = 0;
	prepare();
	short_offsets = true;
	ATF_CHECK_STREQ("rings", hi.ops->ho_start(&hi));
	CALLS("calloc; init; add; memory; offsets 0; reset; remove; free; ");
	short_offsets = false;
	prepare();
	ATF_CHECK(hi.ops->ho_start(&hi) == NULL);
	expected[0] = '\0';
	for (i = 0; i < nitems(steps); i++)
		strlcat(expected, steps[i], sizeof(expected));
	strlcat(expected, "ask 9 of 7; ", sizeof(expected));
	CALLS(expected);
	/* The kernel has all chunks to receive. */
	for (i = 0; i < SLOTS; i++) {
		ATF_CHECK_EQ(i * 4096UL, *chunk(FILL0, i));
		ATF_CHECK_EQ((SLOTS + i) * 4096UL, *chunk(FILL1, i));
	}
	ATF_CHECK_EQ(SLOTS, *word(FILL0, FILL_PRODUCER));
	ATF_CHECK_EQ(SLOTS, *word(FILL1, FILL_PRODUCER));
	ATF_CHECK_EQ(0, *word(TX, TX_PRODUCER));
	/* What is behind the last one. */
	ATF_CHECK_EQ(0, *word(FILL0, 1024 + SLOTS * 8));
	xd = hi.data;
	ATF_CHECK_EQ(QUEUES, xd->xd_ethtool.he_queues);
	ATF_CHECK_EQ(SLOTS, xd->xd_nfree);
	for (i = 0; i < SLOTS; i++)
		ATF_CHECK_EQ(FIRST + i, xd->xd_free[i]);
	ATF_CHECK_EQ(6, nmapped);
	hi.ops->ho_stop(&hi);
	CALLS("reset; remove; free; ");
	ATF_CHECK_EQ(0, nmapped);
}

/* The kernel receives `n' frames in a queue, with numbers from `number' on. */
static void
receive(unsigned int queue, uint32_t n, uint32_t number)
{
	const unsigned int ring = queue == 0 ? RX0 : RX1;
	uint32_t i = *word(ring, RX_PRODUCER);
	uint64_t addr;

	for (; n > 0; n--, i++, number++) {
		addr = ((uint64_t)queue * SLOTS + i % SLOTS) * 4096 + 256;
		*desc(ring, i) = (struct xdp_desc){ .addr = addr, .len = 60 };
		memcpy(memory + addr, &number, sizeof(number));
	}
	*word(ring, RX_PRODUCER) = i;
}

/* The switch has got `n' frames with numbers from `number' on. */
static void
is_got(uint32_t n, uint32_t number)
{
	uint32_t i;

	ATF_CHECK_EQ(n, ngot);
	for (i = 0; i < n; i++) {
		ATF_CHECK_EQ(60, got_len[i]);
		ATF_CHECK_EQ(number + i, *(uint32_t *)(void *)got[i]);
	}
	counted(HOSTIF_C_RX_FRAME, n);
	counted(HOSTIF_C_RX_BYTE, n * 60);
	counted(HOSTIF_C_RX_BATCH, n > 0);
	counted_all();
	ngot = 0;
}

/* So many frames were received in a queue, and the kernel has the chunks. */
static void
refilled(unsigned int queue, uint32_t total)
{
	const unsigned int fill = queue == 0 ? FILL0 : FILL1;
	uint32_t i;

	ATF_CHECK_EQ(total, *word(queue == 0 ? RX0 : RX1, RX_CONSUMER));
	ATF_CHECK_EQ(SLOTS + total, *word(fill, FILL_PRODUCER));
	for (i = 0; i < total; i++)
		ATF_CHECK_EQ(((uint64_t)queue * SLOTS + i % SLOTS) * 4096 +
		    256, *chunk(fill, i));
}

TEST(receive, "Queues in turn, at most 256 frames of one at a time, around the "
    "rings; the kernel gets the chunks back, and is woken if it sleeps")
{
	uint32_t round;

	start();
	ATF_CHECK_EQ(0, hi.ops->ho_receive(&hi));
	CALLS("");
	counted_all();
	receive(0, 300, 1000);
	receive(1, 10, 2000);
	ATF_CHECK_EQ(256, hi.ops->ho_receive(&hi));
	is_got(256, 1000);
	ATF_CHECK_EQ(10, hi.ops->ho_receive(&hi));
	is_got(10, 2000);
	refilled(0, 256);
	refilled(1, 10);
	ATF_CHECK_EQ(44, hi.ops->ho_receive(&hi));
	is_got(44, 1256);
	CALLS("sync 256; sync 10; sync 44; ");
	refilled(0, 300);
	/* The second one is next. */
	receive(0, 1, 1000);
	receive(1, 1, 2000);
	ATF_CHECK_EQ(1, hi.ops->ho_receive(&hi));
	is_got(1, 2000);
	ATF_CHECK_EQ(1, hi.ops->ho_receive(&hi));
	is_got(1, 1000);
	CALLS("sync 1; sync 1; ");
	*word(FILL1, FILL_FLAGS) = XDP_RING_NEED_WAKEUP | 2;
	*word(FILL0, FILL_FLAGS) = 2;
	receive(0, 1, 1000);
	receive(1, 1, 2000);
	ATF_CHECK_EQ(1, hi.ops->ho_receive(&hi));
	ATF_CHECK_EQ(1, hi.ops->ho_receive(&hi));
	CALLS("sync 1; wake 1; sync 1; ");
	ngot = 0;
	memset(hi.counters, 0, sizeof(hi.counters));
	/* Around the ring. */
	for (round = 0; round < 20; round++) {
		receive(0, 256, round * 256);
		ATF_CHECK_EQ(256, hi.ops->ho_receive(&hi));
		is_got(256, round * 256);
	}
	refilled(0, 302 + 20 * 256);
}

TEST(receive_dropped, "A frame that is dropped gives its chunk back, too; all "
    "are while the interface takes VLAN tags out")
{
	struct xdp *xd;

	start();
	xd = hi.data;
	receive(0, 3, 5);
	desc(RX0, 0)->len = 13;
	desc(RX0, 2)->len = 4097;
	ATF_CHECK_EQ(3, hi.ops->ho_receive(&hi));
	counted(HOSTIF_C_RX_BAD, 2);
	is_got(1, 6);
	refilled(0, 3);
	xd->xd_ethtool.he_untags = true;
	xd->xd_ethtool.he_untags_ad = true;
	receive(1, 4, 5);
	ATF_CHECK_EQ(4, hi.ops->ho_receive(&hi));
	counted(HOSTIF_C_RX_UNTAGGED, 4);
	counted(HOSTIF_C_RX_BATCH, 1);
	is_got(0, 0);
	refilled(1, 4);
	xd->xd_ethtool.he_untags = false;
	receive(1, 4, 5);
	ATF_CHECK_EQ(4, hi.ops->ho_receive(&hi));
	is_got(4, 5);
	/* Its producer is where it cannot be. */
	*word(RX0, RX_PRODUCER) = 2;
	ATF_CHECK_EQ(256, hi.ops->ho_receive(&hi));
}

/* `n' frames of `len' bytes wait in the port. */
static void
put(uint32_t n, uint32_t len)
{
	static uint8_t bytes[5000];
	static struct iovec iov[nitems(frames)][2];
	uint32_t i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + i / 251);
	for (; n > 0; n--, nframes++) {
		ATF_REQUIRE(nframes < nitems(frames));
		iov[nframes][0] = (struct iovec){ bytes, len / 2 };
		iov[nframes][1] = (struct iovec){ bytes + len / 2,
		    len - len / 2 };
		frames[nframes] = (struct frame){ .f_iov = iov[nframes],
		    .f_niov = 2, .f_len = len };
		rx_ring.ring.tail = nframes + 1;
	}
}

/* There are none any more. */
static void
port_empty(void)
{
	ATF_CHECK_EQ(nframes, rx_ring.ring.head);
	ATF_CHECK_EQ(nframes, rx_ring.ring.cur);
	nframes = rx_ring.ring.head = rx_ring.ring.cur = 0;
	rx_ring.ring.tail = 0;
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

/* Entry i of the transmit ring is a frame of this length, in this chunk. */
static void
is_sent(uint32_t i, uint32_t at, uint32_t len)
{
	const struct xdp_desc *d = desc(TX, i);
	uint32_t k;

	ATF_CHECK_EQ(at * 4096UL, d->addr);
	ATF_CHECK_EQ(len, d->len);
	ATF_CHECK_EQ(0, d->options);
	for (k = 0; k < len; k++)
		if (memory[d->addr + k] != (uint8_t)(k * 7 + k / 251))
			atf_tc_fail("byte %u of %u", k, len);
}

TEST(send, "Frames fill chunks, at most 256 at a time; the kernel is called if "
    "it sleeps")
{
	uint32_t i;

	start();
	memset(maps[TX] + 512, 0xa5, SLOTS * sizeof(struct xdp_desc));
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	counted_all();
	put(1, 60);
	put(1, 4096);
	put(1, 4097);
	put(1, 13);
	put(1, 61);
	ATF_CHECK_EQ(5, hi.ops->ho_send(&hi));
	port_empty();
	ATF_CHECK_EQ(3, *word(TX, TX_PRODUCER));
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	is_sent(0, FIRST + SLOTS - 1, 60);
	is_sent(1, FIRST + SLOTS - 2, 4096);
	is_sent(2, FIRST + SLOTS - 3, 61);
	counted(HOSTIF_C_TX_FRAME, 3);
	counted(HOSTIF_C_TX_BYTE, 60 + 4096 + 61);
	counted(HOSTIF_C_TX_MTU, 1);
	counted(HOSTIF_C_TX_BATCH, 1);
	counted(HOSTIF_C_TX_CALL, 1);
	counted_all();
	/* It looks by itself. */
	*word(TX, TX_FLAGS) = 2;
	put(300, 60);
	ATF_CHECK_EQ(256, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(256, rx_ring.ring.head);
	ATF_CHECK_EQ(3 + 256, *word(TX, TX_PRODUCER));
	ATF_CHECK_EQ(44, hi.ops->ho_send(&hi));
	port_empty();
	counted(HOSTIF_C_TX_FRAME, 300);
	counted(HOSTIF_C_TX_BYTE, 300 * 60);
	counted(HOSTIF_C_TX_BATCH, 2);
	counted_all();
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	for (i = 0; i < 300; i++)
		is_sent(3 + i, FIRST + SLOTS - 4 - i, 60);
	/* Now it sleeps; down, it is left alone. */
	*word(TX, TX_FLAGS) = XDP_RING_NEED_WAKEUP;
	hi.up = false;
	put(3, 60);
	ATF_CHECK_EQ(3, hi.ops->ho_send(&hi));
	port_empty();
	counted(HOSTIF_C_TX_BATCH, 1);
	counted_all();
	hi.up = true;
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	counted(HOSTIF_C_TX_CALL, 1);
	counted_all();
	ATF_CHECK_EQ(303, *word(TX, TX_CONSUMER));
}

TEST(kick, "Calls go on while each takes frames; those that take none are made "
    "again later; a frame that is dropped does not hold up others")
{
	static const int errors[] = { ENOBUFS, ENETDOWN, ENXIO, EINTR };
	size_t i;

	start();
	put(6, 60);
	SENDS({ 2, EAGAIN }, { 1, EAGAIN }, { 3, 0 }, { 9, EIO });
	ATF_CHECK_EQ(6, hi.ops->ho_send(&hi));
	port_empty();
	counted(HOSTIF_C_TX_CALL, 3);
	counted(HOSTIF_C_TX_ERROR, 0);
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	put(3, 60);
	SENDS({ 0, EAGAIN });
	ATF_CHECK_EQ(3, hi.ops->ho_send(&hi));
	port_empty();
	ATF_CHECK_EQ(HOSTIF_TX_AGAIN, hi.tx_state);
	counted(HOSTIF_C_TX_CALL, 1);
	counted(HOSTIF_C_TX_ERROR, 0);
	SENDS({ 0, 0 });
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(HOSTIF_TX_AGAIN, hi.tx_state);
	counted(HOSTIF_C_TX_CALL, 1);
	for (i = 0; i < nitems(errors); i++) {
		SENDS({ 0, 0 }, { 1, 0 });
		sends[0].error = errors[i];
		ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
		ATF_CHECK_EQ(HOSTIF_TX_AGAIN, hi.tx_state);
		counted(HOSTIF_C_TX_CALL, 1);
		counted(HOSTIF_C_TX_ERROR, 1);
		counted(HOSTIF_C_TX_QUEUE, 0);
	}
	/* One and an error; then a drop, of which the end shows nothing. */
	SENDS({ 1, ENOBUFS }, { 0, EBUSY }, { 2, EBUSY }, { 9, EIO });
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	counted(HOSTIF_C_TX_CALL, 3);
	counted(HOSTIF_C_TX_ERROR, 1);
	counted(HOSTIF_C_TX_QUEUE, 2);
	/* A kernel that drops without end. */
	put(1, 60);
	SENDS({ 0, EBUSY });
	ATF_CHECK_EQ(1, hi.ops->ho_send(&hi));
	port_empty();
	counted(HOSTIF_C_TX_CALL, SLOTS + 1);
	counted(HOSTIF_C_TX_QUEUE, SLOTS + 1);
	counted(HOSTIF_C_TX_ERROR, 0);
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	ATF_CHECK_EQ(1, *word(TX, TX_PRODUCER) - *word(TX, TX_CONSUMER));
}

/* The kernel has sent what was in these chunks. */
static void
complete(uint32_t at, uint32_t n)
{
	uint32_t i = *word(COMPLETION, CR_PRODUCER);

	for (; n > 0; n--)
		*chunk(COMPLETION, i++) = at++ * 4096UL + 17;
	*word(COMPLETION, CR_PRODUCER) = i;
}

TEST(full, "Frames wait while all chunks are the kernel's, which is counted "
    "once; chunks that come back are used again")
{
	uint32_t i;

	start();
	for (i = 0; i < SLOTS / 256; i++) {
		put(256, 60);
		ATF_CHECK_EQ(256, hi.ops->ho_send(&hi));
		port_empty();
		ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	}
	memset(hi.counters, 0, sizeof(hi.counters));
	/* Nothing waits. */
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	counted_all();
	put(5, 60);
	for (i = 0; i < 3; i++) {
		ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
		ATF_CHECK_EQ(HOSTIF_TX_AGAIN, hi.tx_state);
		counted(HOSTIF_C_TX_WAIT, i == 0);
		counted_all();
	}
	/* Two chunks to transmit, the first and the last one, and others. */
	complete(FIRST - 1, 2);
	complete(FIRST + SLOTS - 1, 2);
	ATF_CHECK_EQ(2, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(4, *word(COMPLETION, CR_CONSUMER));
	ATF_CHECK_EQ(2, rx_ring.ring.head);
	ATF_CHECK_EQ(HOSTIF_TX_AGAIN, hi.tx_state);
	is_sent(SLOTS, FIRST + SLOTS - 1, 60);
	is_sent(SLOTS + 1, FIRST, 60);
	counted(HOSTIF_C_TX_WAIT, 0);
	counted(HOSTIF_C_TX_CALL, 1);
	complete(FIRST + 10, 3);
	ATF_CHECK_EQ(3, hi.ops->ho_send(&hi));
	port_empty();
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	/* While the call is to be made again, it is the same wait. */
	put(1, 60);
	hi.tx_state = HOSTIF_TX_AGAIN;
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	counted(HOSTIF_C_TX_WAIT, 0);
	/* All, and more than there are, around the ring. */
	complete(FIRST, SLOTS);
	ATF_CHECK_EQ(1, hi.ops->ho_send(&hi));
	port_empty();
	ATF_CHECK_EQ(SLOTS + 7, *word(COMPLETION, CR_CONSUMER));
	ATF_CHECK_EQ(SLOTS - 1, ((struct xdp *)hi.data)->xd_nfree);
	complete(FIRST, 5);
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(SLOTS, ((struct xdp *)hi.data)->xd_nfree);
	ATF_CHECK_EQ(SLOTS + 8, *word(COMPLETION, CR_CONSUMER));
	ATF_CHECK_EQ(FIRST, ((struct xdp *)hi.data)->xd_free[SLOTS - 1]);
	/* What it says is never more than a ring has. */
	*word(COMPLETION, CR_PRODUCER) = SLOTS;
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(SLOTS, ((struct xdp *)hi.data)->xd_nfree);
	((struct xdp *)hi.data)->xd_nfree = 0;
	memset(maps[COMPLETION] + 2048, 0, SLOTS * sizeof(uint64_t));
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(2 * SLOTS + 8, *word(COMPLETION, CR_CONSUMER));
}

TEST(tick, "What the kernel has dropped in all queues since the last time")
{
	start();
	statistics[0].rx_dropped = 100;
	statistics[0].rx_ring_full = 20;
	statistics[1].rx_dropped = 3;
	statistics[1].rx_ring_full = 4;
	statistics[1].rx_fill_ring_empty_descs = 1000;
	hi.ops->ho_tick(&hi);
	counted(HOSTIF_C_RX_FULL, 127);
	hi.ops->ho_tick(&hi);
	counted(HOSTIF_C_RX_FULL, 0);
	statistics[0].rx_ring_full++;
	statistics[1].rx_dropped++;
	hi.ops->ho_tick(&hi);
	counted(HOSTIF_C_RX_FULL, 2);
	counted_all();
}

TEST(tick_old, "A kernel that tells less, and a socket that tells nothing")
{
	start();
	old_kernel = true;
	statistics[0].rx_dropped = 100;
	statistics[0].rx_ring_full = 20;
	statistics[1].rx_dropped = 3;
	hi.ops->ho_tick(&hi);
	counted(HOSTIF_C_RX_FULL, 100);
	counted_all();
}

TEST(poll, "What is waited for")
{
	struct pollfd pfd[4];
	unsigned int max;

	start();
	for (max = 1; max <= 4; max++) {
		memset(pfd, 0xff, sizeof(pfd));
		ATF_CHECK_EQ(MIN(max, 3), hi.ops->ho_poll(&hi, pfd, max));
		if (max > 1)
			ATF_CHECK_EQ(XSK, pfd[0].fd);
		if (max > 2)
			ATF_CHECK_EQ(XSK + 1, pfd[1].fd);
		ATF_CHECK_EQ(ETHTOOL, pfd[MIN(max, 3) - 1].fd);
		ATF_CHECK_EQ(POLLIN, pfd[0].events);
		ATF_CHECK_EQ(POLLIN, pfd[MIN(max, 3) - 1].events);
		ATF_CHECK_EQ(-1, pfd[3].fd);
		if (max < 3)
			ATF_CHECK_EQ(-1, pfd[max].fd);
	}
}

/* The kernel tells this: these calls. */
static void
changes(uint32_t queues, bool untags, bool untags_ad, const char *expected)
{
	const struct pollfd pfd = { .fd = ETHTOOL, .revents = POLLIN };

	told = (struct hostif_ethtool){ queues, untags, untags_ad };
	hi.ops->ho_event(&hi, &pfd);
	CALLS(expected);
	/* The same is no change. */
	hi.ops->ho_event(&hi, &pfd);
	CALLS("");
}

#define	UNTAGS								\
	"log VLAN tags would be lost, so what is received is dropped: "	\
	"ethtool -K h0 rxvlan off; "
#define	UNTAGS_AD							\
	"log VLAN tags of 802.1ad are lost: ethtool -K h0 "		\
	"rx-vlan-stag-hw-parse off; "
#define	LOST(n)								\
	"log " #n " receive queues, and what is received on more than 2 is "	\
	"lost: attach the interface again, or see ethtool -L; "

TEST(changes, "Each change of the interface that matters is a line")
{
	const struct pollfd other = { .fd = XSK, .revents = POLLIN };
	const struct pollfd pfd = { .fd = ETHTOOL, .revents = POLLIN };

	start();
	changes(2, false, false, "");
	changes(2, true, false, UNTAGS);
	changes(2, false, false, "log h0 leaves VLAN tags in frames; ");
	changes(2, false, true, UNTAGS_AD);
	changes(2, false, false, "");
	changes(2, true, true, UNTAGS UNTAGS_AD);
	changes(2, false, false, "log h0 leaves VLAN tags in frames; ");
	changes(1, false, false, "");
	changes(2, false, false, "");
	changes(3, false, false, LOST(3));
	changes(4, false, false, LOST(4));
	changes(2, false, false, "log all receive queues are used; ");
	changes(5, false, false, LOST(5));
	changes(0, false, false, "log all receive queues are used; ");
	/* It must be asked. */
	told_all = false;
	hi.ops->ho_event(&hi, &pfd);
	CALLS("ask 9 of 7; ");
	/* It is a queue. */
	told.he_queues = 9;
	hi.ops->ho_event(&hi, &other);
	CALLS("");
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, start);
	ATF_TP_ADD_TC(tp, receive);
	ATF_TP_ADD_TC(tp, receive_dropped);
	ATF_TP_ADD_TC(tp, send);
	ATF_TP_ADD_TC(tp, kick);
	ATF_TP_ADD_TC(tp, full);
	ATF_TP_ADD_TC(tp, tick);
	ATF_TP_ADD_TC(tp, tick_old);
	ATF_TP_ADD_TC(tp, poll);
	ATF_TP_ADD_TC(tp, changes);
	return (atf_no_error());
}
