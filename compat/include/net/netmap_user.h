/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Access to netmap's memory: netmap(4), as far as it is used here.
 */

#ifndef _NET_NETMAP_USER_H_
#define	_NET_NETMAP_USER_H_

#include <net/netmap.h>

/* The device; here, only messages name it. */
#define	NETMAP_DEVICE_NAME	"/dev/netmap"

/* Ring `i' of an interface. */
#define	NETMAP_TXRING(nifp, i)						\
	((struct netmap_ring *)(void *)((char *)(nifp) + (nifp)->ring_ofs[i]))
#define	NETMAP_RXRING(nifp, i)						\
	NETMAP_TXRING(nifp, (i) + (nifp)->ni_tx_rings +			\
	    (nifp)->ni_host_tx_rings)

/* Buffer `idx' of the ring's memory. */
#define	NETMAP_BUF(ring, idx)						\
	((char *)(ring) + (ring)->buf_ofs +				\
	    (size_t)(idx) * (ring)->nr_buf_size)

/* Return the slot after `i'. */
static inline uint32_t
nm_ring_next(struct netmap_ring *ring, uint32_t i)
{
	return (i + 1 == ring->num_slots ? 0 : i + 1);
}

/* Return the number of slots that the user owns. */
static inline uint32_t
nm_ring_space(struct netmap_ring *ring)
{
	uint32_t n = ring->tail - ring->head;

	return (ring->tail < ring->head ? n + ring->num_slots : n);
}

static inline int
nm_ring_empty(struct netmap_ring *ring)
{
	return (ring->head == ring->tail);
}

#endif /* !_NET_NETMAP_USER_H_ */
