/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The kernel and the switch of an attached interface: hostif_xdp_kernel.h.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "hostif_xdp_kernel.h"
#include "peer_mem.h"
#include "peer_fault.h"
#include "wrap.h"

#define	MEMORY		14
#define	SIZE		((QUEUES + 1) * 2048 * 4096U)

/* Where the parts of each kind of ring are. */
static const struct xdp_mmap_offsets offsets = {
	.rx = { .producer = 64, .consumer = 128, .desc = 256, .flags = 192 },
	.tx = { .producer = 4, .consumer = 68, .desc = 512, .flags = 132 },
	.fr = { .producer = 8, .consumer = 72, .desc = 1024, .flags = 136 },
	.cr = { .producer = 12, .consumer = 76, .desc = 2048, .flags = 140 }
};

unsigned int		 fail_call;
bool			 short_offsets;
uint8_t			 maps[NRINGS][40960];
unsigned int		 nmapped;
uint8_t			*memory;
struct xdp_statistics	 statistics[QUEUES];
bool			 old_kernel;
uint8_t			 got[RING_SLOTS][4096];
uint32_t		 got_len[RING_SLOTS], ngot;
struct hostif_ethtool	 told;
bool			 told_all = true;

static unsigned int	 ncalls, nmaps;
static size_t		 map_size[NRINGS];

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

void
hostif_lost(struct hostif *one, int error)
{
	ATF_CHECK_EQ(EBUSY, error);
	hostif_count(one, HOSTIF_C_TX_QUEUE, 1);
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
peer_mem_init(struct peer_mem *dma __unused, uint64_t size,
    void (*pause)(void *arg, bool paused), void *arg)
{
	ATF_CHECK_EQ(SIZE, size);
	ATF_CHECK(pause != NULL && arg == NULL);
	note("init; ");
}

int
peer_fault_add(struct peer_mem *dma, void (*fn)(void *arg), void *arg)
{
	ATF_CHECK_EQ(hi.data, (void *)dma);
	ATF_CHECK(fn == hostif_withdrawn && arg == &hi);
	note("add; ");
	return (call_fails() ? ENOSPC : 0);
}

int
peer_mem_map(struct peer_mem *dma __unused, int fd, uint64_t offset,
    uint64_t addr, uint64_t size, int prot, const char **why __unused)
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
peer_mem_addr(struct peer_mem *dma __unused, uint64_t addr, size_t len,
    int prot)
{
	ATF_CHECK_EQ(0, addr);
	ATF_CHECK_EQ(SIZE, len);
	ATF_CHECK_EQ(PROT_READ | PROT_WRITE, prot);
	return (memory);
}

void
peer_mem_reset(struct peer_mem *dma __unused)
{
	note("reset; ");
	errno = EBADF;
}

void
peer_fault_remove(struct peer_mem *dma __unused)
{
	note("remove; ");
}

/*
 * The switch and the system
 */

WRAP(void *, calloc, size_t n, size_t size)
{
	ATF_CHECK_EQ(1, n);
	note("calloc; ");
	return (call_fails() ? NULL : __real_calloc(n, size));
}

WRAP(void, free, void *p)
{
	ATF_CHECK_EQ(hi.data, p);
	note("free; ");
	__real_free(p);
}

WRAP(int, getsockopt, int s, int level, int name, void *value, socklen_t *len)
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

WRAP(void *, mmap, void *p, size_t size, int prot, int flags, int fd,
    off_t offset)
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

WRAP(int, munmap, void *p, size_t size)
{
	const size_t i = ((uint8_t *)p - maps[0]) / sizeof(maps[0]);

	ATF_REQUIRE(i < nmaps && p == maps[i] && map_size[i] == size);
	map_size[i] = 0;
	nmapped--;
	return (0);
}

WRAP(ssize_t, recvfrom, int s, void *p, size_t len, int flags,
    struct sockaddr *from, socklen_t *fromlen)
{
	ATF_CHECK(p == NULL && len == 0 && from == NULL && fromlen == NULL);
	ATF_CHECK_EQ(MSG_DONTWAIT, flags);
	note("wake %d; ", s - XSK);
	return (-1);
}

uint32_t *
word(unsigned int ring, size_t at)
{
	return ((uint32_t *)(void *)(maps[ring] + at));
}

struct xdp_desc *
desc(unsigned int ring, uint32_t i)
{
	return ((struct xdp_desc *)(void *)(maps[ring] +
	    (ring == TX ? TX_ENTRIES : 256)) + i % SLOTS);
}

uint64_t *
chunk(unsigned int ring, uint32_t i)
{
	return ((uint64_t *)(void *)(maps[ring] +
	    (ring == COMPLETION ? CR_ENTRIES : FILL_ENTRIES)) + i % SLOTS);
}

WRAP(ssize_t, sendto, int s, const void *p, size_t len, int flags,
    const struct sockaddr *to, socklen_t tolen)
{
	uint32_t *consumer = word(TX, TX_CONSUMER);
	const struct sends next = sends_next(p, len, flags, to, tolen);

	ATF_CHECK_EQ(XSK, s);
	*consumer += MIN(next.take, *word(TX, TX_PRODUCER) - *consumer);
	errno = next.error;
	return (next.error == 0 ? 0 : -1);
}

WRAP(int, vale_txsync, struct vale_desc *d)
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

void
prepare(void)
{
	if (memory == NULL)
		memory = __real_mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ATF_REQUIRE(memory != MAP_FAILED);
	hostif_stub_init(10);
	hi.ops = &hostif_xdp_ops;
	common.indirect_max = 4096;
	hi.fds.hf_nfds = HOSTIF_FD_XSK + QUEUES;
	hi.fds.hf_index = 7;
	hi.fds.hf_family = 9;
	memset(maps, 0, sizeof(maps));
	nmaps = ncalls = 0;
	trace[0] = '\0';
}

void
start(void)
{
	prepare();
	ATF_REQUIRE(hi.ops->ho_start(&hi) == NULL);
	*word(TX, TX_FLAGS) = XDP_RING_NEED_WAKEUP;
	trace[0] = '\0';
}
