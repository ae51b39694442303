/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* The window that a program has of its rings: vale_window.h. */

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/systm.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "peer_fd.h"
#include "vale_error.h"
#include "vale_slot.h"
#include "vale_window.h"

/* Return whether the place and the size of a window are as they must be. */
static bool
window_fits(size_t memsize, uint64_t offset, int fd, size_t size)
{
	const uint64_t at = VALE_WINDOW_AT(offset);
	struct stat st;

	return (offset == VALE_WINDOW_OFFSET(at) && size <= memsize &&
	    at <= memsize - size && peer_fstat(fd, &st) == 0 &&
	    (uint64_t)st.st_size == size);
}

int
vale_window_map(char *base, size_t memsize, uint64_t offset, int fd,
    size_t size)
{
	const uint64_t at = VALE_WINDOW_AT(offset);

	if (!window_fits(memsize, offset, fd, size))
		return (vale_fail(EPROTO));
	if (mmap(base + at, size, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		return (-1);
	return (0);
}

int
vale_window_copy(char *base, size_t memsize, uint64_t offset, int fd,
    size_t size)
{
	const uint64_t at = VALE_WINDOW_AT(offset);
	const int seals = fcntl(fd, F_GET_SEALS);
	struct vale_window *theirs;

	if (!window_fits(memsize, offset, fd, size) || seals == -1 ||
	    (seals & F_SEAL_SHRINK) == 0)
		return (vale_fail(EPROTO));
	theirs = mmap(NULL, VALE_PAGE, PROT_READ, MAP_SHARED, fd, 0);
	if (theirs == MAP_FAILED)
		return (-1);
	if (mmap(base + at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE |
	    MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
		munmap(theirs, VALE_PAGE);
		return (-1);
	}
	memcpy(base + at, theirs, sizeof(*theirs));
	munmap(theirs, VALE_PAGE);
	return (0);
}

struct netmap_ring *
vale_window_txring(char *window, const struct vale_window_layout *wl,
    unsigned int ring)
{
	return ((void *)(window + wl->wl_tx + ring * wl->wl_tx_size));
}

struct netmap_ring *
vale_window_rxring(char *window, const struct vale_window_layout *wl,
    unsigned int ring)
{
	return ((void *)(window + wl->wl_rx + ring * wl->wl_rx_size));
}

struct vale_window_ring *
vale_window_heads(char *window, const struct vale_window_layout *wl,
    unsigned int ring)
{
	return ((struct vale_window_ring *)(void *)(window + wl->wl_ring) +
	    ring);
}

/* Initialize a netmap_if with ring pairs `first' to before `end'. */
static void
window_nifp(char *window, const struct vale_window_layout *wl,
    struct netmap_if *nifp, const struct nmreq_register *reg, const char *name,
    unsigned int first, unsigned int end)
{
	const unsigned int n = reg->nr_tx_rings;
	const uint32_t extra = nifp->ni_bufs_head;
	unsigned int i;

	vale_nifp_init(nifp, name, n);
	VALE_LAYOUT_SET(uint32_t, nifp->ni_rx_rings, reg->nr_rx_rings);
	nifp->ni_bufs_head = extra;
	for (i = first; i < end; i++) {
		VALE_LAYOUT_SET(ssize_t, nifp->ring_ofs[i],
		    (char *)vale_window_txring(window, wl, i) - (char *)nifp);
		VALE_LAYOUT_SET(ssize_t, nifp->ring_ofs[n + i],
		    (char *)vale_window_rxring(window, wl, i) - (char *)nifp);
	}
}

/* Initialize a ring of the window, without slots. */
static void
window_ring(char *base, struct netmap_ring *ring, uint64_t bufs, unsigned int i,
    unsigned int dir, uint32_t nslots)
{
	vale_ring_init(ring, (int64_t)bufs - ((char *)ring - base), i, dir,
	    nslots);
}

void
vale_window_init(char *base, const struct nmreq_register *reg, const char *name)
{
	char *window = base + VALE_WINDOW_AT(reg->nr_offset);
	struct vale_window *vv = (void *)window;
	struct netmap_if *nifp = (void *)vv->vv_nifp;
	const bool null = reg->nr_mode == NR_REG_NULL;
	const unsigned int n = null ? 0 : reg->nr_tx_rings;
	struct vale_window_layout wl;
	unsigned int i;

	vale_window_layout(&wl, n, reg->nr_tx_slots, reg->nr_rx_slots);
	nifp->ni_bufs_head = vv->vv_extra;
	window_nifp(window, &wl, nifp, reg, name, 0, n);
	for (i = 0; n > 1 && i < n; i++)
		window_nifp(window, &wl, (void *)(vv->vv_nifp + (1 + i) *
		    VALE_NIFP_SIZE(n)), reg, name, i, i + 1);
	for (i = 0; i < n; i++) {
		window_ring(base, vale_window_txring(window, &wl, i),
		    vv->vv_bufs, i, 0, reg->nr_tx_slots);
		window_ring(base, vale_window_rxring(window, &wl, i),
		    vv->vv_bufs, i, 1, reg->nr_rx_slots);
	}
}

void
vale_window_begin(struct netmap_ring *ring, const struct netmap_slot *from,
    uint32_t first, uint32_t nbufs)
{
	uint32_t i, idx;

	for (i = 0; i < ring->num_slots; i++) {
		idx = atomic_load_32(&from[i].buf_idx);
		if (!vale_buf_valid(idx, nbufs))
			idx = first + i;
		ring->slot[i] = (struct netmap_slot){ .buf_idx = idx };
	}
}

void
vale_window_put(const struct netmap_ring *ring, struct netmap_slot *to,
    uint32_t i, uint32_t end)
{
	for (; i != end; i = vale_slot_next(i, ring->num_slots))
		to[i] = ring->slot[i];
}

void
vale_window_release(const struct netmap_ring *ring, struct netmap_slot *to,
    uint32_t i, uint32_t end)
{
	for (; i != end; i = vale_slot_next(i, ring->num_slots))
		atomic_store_32(&to[i].buf_idx, ring->slot[i].buf_idx);
}

int
vale_window_tail(struct netmap_ring *ring, uint32_t tail)
{
	if (tail >= ring->num_slots)
		return (vale_fail(EIO));
	ring->tail = tail;
	return (0);
}

int
vale_window_take(struct netmap_ring *ring, const struct netmap_slot *from,
    uint32_t tail, uint32_t nbufs)
{
	struct netmap_slot *slot;
	uint32_t i, idx;
	uint16_t len;

	if (tail >= ring->num_slots)
		return (vale_fail(EIO));
	for (i = ring->tail; i != tail; i = vale_slot_next(i, ring->num_slots)) {
		slot = &ring->slot[i];
		len = atomic_load_16(&from[i].len);
		if (len > VALE_BUF_SIZE)
			return (vale_fail(EIO));
		slot->len = len;
		slot->flags = atomic_load_16(&from[i].flags);
		if (nbufs == 0)
			continue;
		idx = atomic_load_32(&from[i].buf_idx);
		if (!vale_buf_valid(idx, nbufs))
			return (vale_fail(EIO));
		slot->buf_idx = idx;
		slot->ptr = atomic_load_64(&from[i].ptr);
	}
	ring->tail = tail;
	return (0);
}
