/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The receive ring of packet(7): opening it, also again.  No state.
 *
 * Linux reserves the slot at the head of the ring for a packet before it makes
 * the virtio-net header.  If no such header can say what the packet is
 * (segments of SCTP; of UDP before Linux 6.2), it drops the packet.  Some
 * kernels, as 6.18, leave the slot reserved then, and drop all from then on.
 * Only a new ring helps.
 *
 * The sandbox permits setsockopt(2) with the two structures here, and no other.
 */

#include <sys/mman.h>
#include <sys/socket.h>

#include "hostif_ring.h"

const struct tpacket_req hostif_ring_none;
const struct tpacket_req hostif_ring_receive = {
	.tp_block_size = HOSTIF_BLOCK_SIZE,
	.tp_block_nr = HOSTIF_RX_BLOCKS,
	.tp_frame_size = HOSTIF_SLOT_SIZE,
	.tp_frame_nr = HOSTIF_RX_BLOCKS * HOSTIF_BLOCK_SLOTS
};

int
hostif_ring_set(int s, const struct tpacket_req *req)
{
	return (setsockopt(s, SOL_PACKET, PACKET_RX_RING, req, sizeof(*req)));
}

int
hostif_ring_reopen(int s, void *mem, size_t size)
{
	/*
	 * The kernel changes no ring that is mapped.  Other memory takes its
	 * place, so the addresses are valid also if this fails.
	 */
	if (mmap(mem, size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED ||
	    hostif_ring_set(s, &hostif_ring_none) == -1 ||
	    hostif_ring_set(s, &hostif_ring_receive) == -1 ||
	    mmap(mem, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, s,
	    0) == MAP_FAILED)
		return (-1);
	return (0);
}
