/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Packets that come from the host's kernel with a virtio-net header.
 *
 * The kernel's own description of a packet says more than the header can, so
 * what the header says must be completed from the packet, or it is not true:
 *
 *	the partial checksum of SCTP is a CRC32c (RFC 9260, appendix A)
 *	segments without a partial checksum: what GRO has put together from
 *	    datagrams or with fragment lists; the checksum is that of the first
 *	segments in a tunnel: the header has one place for a checksum and none
 *	    for the outer headers, each of which has a length (frame_tunnel.h)
 *	a segment size that is not less than the payload: one segment
 *
 * A switch and its ports have none of these.
 */

#ifndef _FRAME_HOST_H_
#define	_FRAME_HOST_H_

#include <sys/types.h>

#include <stdint.h>

#include "frame.h"

enum frame_host {
	FRAME_HOST_OK,
	FRAME_HOST_TUNNEL,	/* must be cut: frame_tunnel_begin() */
	FRAME_HOST_BAD		/* must be dropped: the header is invalid or not
				   one of this packet, or a checksum that it
				   leaves is unknown here */
};

/*
 * Complete the packet, frame->f_len contiguous bytes at `p' that are the
 * caller's, and what frame_vnet_decode() has found in its header, of which the
 * result does not count.  If another process changes the bytes meanwhile, the
 * result may be wrong, and who cuts or sums the frame finds that
 * (frame_cut_check()).  f_hdr_len becomes 0.  Any thread; no state.
 */
enum frame_host frame_host_prepare(struct frame *frame, uint8_t *p);

#endif /* !_FRAME_HOST_H_ */
