/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The rings of packet(7) of an attached interface.  Nothing here has a state.
 */

#ifndef _HOSTIF_RING_H_
#define	_HOSTIF_RING_H_

#include <sys/types.h>

#include <linux/if_packet.h>

/*
 * The geometry of both rings.  A slot has space for 64 KB with its headers,
 * from the start of a page.
 */
#define	HOSTIF_SLOT_SIZE	69632
#define	HOSTIF_BLOCK_SIZE	1048576
#define	HOSTIF_BLOCK_SLOTS	(HOSTIF_BLOCK_SIZE / HOSTIF_SLOT_SIZE)
#define	HOSTIF_RX_BLOCKS	34
#define	HOSTIF_TX_BLOCKS	17
/* Space before a received frame, for a VLAN tag. */
#define	HOSTIF_RESERVE		16

/* The receive ring, and none: all that the sandbox permits. */
extern const struct tpacket_req hostif_ring_none;
extern const struct tpacket_req hostif_ring_receive;

/* Give the packet socket this one.  Returns 0, or -1 with errno. */
int	hostif_ring_set(int s, const struct tpacket_req *req);

/*
 * Give the packet socket, whose rings are mapped at `mem', a new receive ring,
 * with all slots the kernel's, and map the rings there again.  The transmit
 * ring is unchanged.  Takes as long as the kernel waits for others that look
 * at the ring, tens of milliseconds.  Returns 0; or -1 with errno, and then the
 * memory is no ring.
 */
int	hostif_ring_reopen(int s, void *mem, size_t size);

#endif /* !_HOSTIF_RING_H_ */
