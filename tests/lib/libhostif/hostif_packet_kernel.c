/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The kernel and the switch of an attached interface: hostif_packet_kernel.h.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "hostif_packet_kernel.h"
#include "wrap.h"

#define	MEMORY_SIZE	(51U << 20)	/* of both rings */

const char		*fails;
int			 domain = AF_PACKET;
uint32_t		 drops;
uint8_t			*memory;
struct got		 got[RING_SLOTS];
uint32_t		 ngot;
bool			 busy;
uint32_t		 kernel_slot;

static uint8_t		 pool[4U << 20]; /* bytes of what the switch got */
static uint32_t		 used;

static bool
call(const char *name)
{
	note("%s; ", name);
	if (fails == NULL || strcmp(fails, name) != 0)
		return (false);
	errno = EIO;
	return (true);
}

struct tpacket2_hdr *
slot(bool tx, uint32_t i)
{
	return ((void *)(memory + (tx ? 34U << 20 : 0) + ((i / 15) << 20) +
	    i % 15 * 69632));
}

/*
 * The thread
 */

void
hostif_lost(struct hostif *one __unused, int error)
{
	note("lost %d; ", error);
}

int
hostif_ring_reopen(int s, void *mem, size_t size)
{
	ATF_CHECK_EQ(PACKET_SOCKET, s);
	ATF_CHECK_EQ((void *)memory, mem);
	ATF_CHECK_EQ(MEMORY_SIZE, size);
	return (call("reopen") ? -1 : 0);
}

/*
 * The switch
 */

WRAP(int, vale_set_header, struct vale_desc *d, int header)
{
	ATF_CHECK_EQ(&port, d);
	ATF_CHECK_EQ(VALE_HEADER_FRAME, header);
	return (call("header") ? -1 : 0);
}

/* It copies each frame, of as many slots as there are. */
WRAP(int, vale_txsync, struct vale_desc *d)
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
		if ((s->flags & VALE_SLOT_FRAME) != 0) {
			ATF_CHECK_EQ(1, fragments);
			g->headed = true;
			frame_vnet_encode(&d->txframe[next], g->hdr,
			    FRAME_VNET_LONG);
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

WRAP(void *, calloc, size_t n, size_t size)
{
	ATF_CHECK_EQ(1, n);
	return (call("calloc") ? NULL : __real_calloc(n, size));
}

WRAP(void, free, void *p)
{
	ATF_CHECK(p != NULL);
	note("free; ");
	__real_free(p);
}

WRAP(int, getsockopt, int s, int level, int name, void *value, socklen_t *len)
{
	ATF_CHECK_EQ(PACKET_SOCKET, s);
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

WRAP(void *, mmap, void *p, size_t size, int prot, int flags, int fd,
    off_t offset)
{
	ATF_CHECK(p == NULL && offset == 0);
	ATF_CHECK_EQ(MEMORY_SIZE, size);
	ATF_CHECK_EQ(PROT_READ | PROT_WRITE, prot);
	ATF_CHECK_EQ(MAP_SHARED, flags);
	ATF_CHECK_EQ(PACKET_SOCKET, fd);
	return (call("map") ? MAP_FAILED : memory);
}

WRAP(int, munmap, void *p, size_t size)
{
	ATF_CHECK_EQ((void *)memory, p);
	ATF_CHECK_EQ(MEMORY_SIZE, size);
	note("unmap; ");
	return (0);
}

WRAP(ssize_t, recv, int s, void *p __unused, size_t len, int flags)
{
	ATF_CHECK_EQ(PACKET_SOCKET, s);
	ATF_CHECK_EQ(1, len);
	ATF_CHECK_EQ(MSG_DONTWAIT, flags);
	note("recv; ");
	return (-1);
}

WRAP(ssize_t, sendto, int s, const void *p, size_t len, int flags,
    const struct sockaddr *to, socklen_t tolen)
{
	struct tpacket2_hdr *h;
	struct sends next = sends_next(p, len, flags, to, tolen);

	ATF_CHECK_EQ(PACKET_SOCKET, s);
	for (; next.take > 0; next.take--) {
		h = slot(true, kernel_slot);
		if (h->tp_status != TP_STATUS_SEND_REQUEST)
			break;
		h->tp_status = busy ? TP_STATUS_SENDING : TP_STATUS_AVAILABLE;
		kernel_slot = (kernel_slot + 1) % TX_SLOTS;
	}
	errno = next.error;
	return (next.error == 0 ? 1 : -1);
}

void
start(void)
{
	unsigned int i;

	memory = __real_mmap(NULL, MEMORY_SIZE, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ATF_REQUIRE(memory != MAP_FAILED);
	memset(memory + (34U << 20), 0xa5, 17U << 20);
	for (i = 0; i < TX_SLOTS; i++)
		slot(true, i)->tp_status = TP_STATUS_AVAILABLE;
	hostif_stub_init(90);
	hi.fds.hf_fd[HOSTIF_FD_KIND] = PACKET_SOCKET;
	hi.ops = &hostif_packet_ops;
	common.indirect_max = INDIRECT;
	ATF_REQUIRE(hi.ops->ho_start(&hi) == NULL);
	trace[0] = '\0';
}

void
nothing_got(void)
{
	ngot = used = 0;
}

void
number(uint8_t *frame, uint32_t n)
{
	memset(frame, 'x', 60);
	memcpy(frame + 20, &n, sizeof(n));
}
