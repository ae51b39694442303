/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * netmap's rings, a program's interface: netmap(4), API version 14, as far as
 * it is used here.  FreeBSD has <net/netmap.h> with the same layout, which the
 * assertions at the end check.
 */

#ifndef _NET_NETMAP_H_
#define	_NET_NETMAP_H_

#include <sys/types.h>
#include <sys/time.h>
#include <net/if.h>

#include <stddef.h>
#include <stdint.h>

#define	NETMAP_API		14
#define	NETMAP_MAX_FRAGS	64	/* slots per frame, at most */
#define	NM_CACHE_ALIGN		128
#define	NM_BDG_NAME		"vale"	/* the beginning of port names */

/* A buffer, or memory elsewhere. */
struct netmap_slot {
	uint32_t	buf_idx;
	uint16_t	len;		/* bytes */
	uint16_t	flags;		/* NS_* */
	uint64_t	ptr;		/* address, with NS_INDIRECT */
};

#define	NS_BUF_CHANGED	0x0001		/* the user has changed buf_idx */
#define	NS_INDIRECT	0x0010		/* transmit: the data are at ptr */
#define	NS_MOREFRAG	0x0020		/* the next slot continues the frame */
/* The number of slots of a received frame. */
#define	NS_RFRAGS(slot)	((slot)->flags >> 8)

/*
 * The user owns slots [head, tail): free slots of a transmit ring, frames of a
 * receive ring.  The user advances head and cur; a sync advances tail.
 */
struct netmap_ring {
	const int64_t	buf_ofs;	/* of buffer 0, from the ring */
	const uint32_t	num_slots;
	const uint32_t	nr_buf_size;	/* bytes */
	const uint16_t	ringid;
	const uint16_t	dir;		/* 0 transmit, 1 receive */
	uint32_t	head;		/* first slot of the user */
	uint32_t	cur;		/* poll(2) wakes when tail passes it */
	uint32_t	tail;		/* first slot of the switch */
	uint32_t	flags;
	struct timeval	ts;
	const uint64_t	offset_mask;
	const uint64_t	buf_align;
	_Alignas(NM_CACHE_ALIGN) uint8_t sem[128];
	struct netmap_slot slot[];
};

struct netmap_if {
	char		ni_name[IFNAMSIZ];
	const uint32_t	ni_version;
	const uint32_t	ni_flags;	/* NI_* */
#define	NI_PRIV_MEM	0x1		/* memory not shared with other ports */
	const uint32_t	ni_tx_rings;
	const uint32_t	ni_rx_rings;
	uint32_t	ni_bufs_head;	/* spare buffers; 0: none */
	const uint32_t	ni_host_tx_rings;
	const uint32_t	ni_host_rx_rings;
	uint32_t	ni_spare1[3];
	/* Offsets from here: transmit, host, receive, host rings. */
	const ssize_t	ring_ofs[];
};

_Static_assert(sizeof(struct netmap_slot) == 16, "slot");
_Static_assert(offsetof(struct netmap_slot, len) == 4, "len");
_Static_assert(offsetof(struct netmap_slot, flags) == 6, "flags");
_Static_assert(offsetof(struct netmap_slot, ptr) == 8, "ptr");
_Static_assert(offsetof(struct netmap_ring, num_slots) == 8, "num_slots");
_Static_assert(offsetof(struct netmap_ring, nr_buf_size) == 12, "nr_buf_size");
_Static_assert(offsetof(struct netmap_ring, dir) == 18, "dir");
_Static_assert(offsetof(struct netmap_ring, head) == 20, "head");
_Static_assert(offsetof(struct netmap_ring, cur) == 24, "cur");
_Static_assert(offsetof(struct netmap_ring, tail) == 28, "tail");
_Static_assert(offsetof(struct netmap_ring, flags) == 32, "flags");
_Static_assert(offsetof(struct netmap_ring, ts) == 40, "ts");
_Static_assert(offsetof(struct netmap_ring, offset_mask) == 56, "offset_mask");
_Static_assert(offsetof(struct netmap_ring, sem) == 128, "sem");
_Static_assert(offsetof(struct netmap_ring, slot) == 256, "slot[]");
_Static_assert(offsetof(struct netmap_if, ni_tx_rings) == 24, "ni_tx_rings");
_Static_assert(offsetof(struct netmap_if, ni_bufs_head) == 32, "ni_bufs_head");
_Static_assert(offsetof(struct netmap_if, ring_ofs) == 56, "ring_ofs");

#endif /* !_NET_NETMAP_H_ */
