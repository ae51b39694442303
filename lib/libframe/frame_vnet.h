/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The virtio-net header, which says the same of a frame as struct frame does:
 * VIRTIO 1.2, section 5.1.6.  All of it is little endian.  No state.
 */

#ifndef _FRAME_VNET_H_
#define	_FRAME_VNET_H_

#include <sys/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame.h"

/* Bytes of a header: without the number of buffers, and with it. */
#define	FRAME_VNET_SHORT	10
#define	FRAME_VNET_LONG		12

/*
 * Set what the header `hdr', of FRAME_VNET_SHORT bytes at least, says of a
 * frame: f_flags, f_gso_type and, as far as these tell, f_hdr_len, f_gso_size,
 * f_csum_start, f_csum_offset.  f_net_start becomes 0.  f_len must be set.
 *
 * Returns false if the header is invalid.  The rules, each beside VIRTIO 1.2,
 * section 5.1.6, and Linux's virtio_net_hdr_to_skb():
 *
 *	checksum within the frame	both
 *	type known			both; UDP_L4 Linux since 6.2
 *	segments: partial checksum	VIRTIO (5.1.6.2).  Linux takes segments
 *					without, and so does
 *					frame_host_prepare()
 *	gso_size not 0			both
 *	FRAME_SEGMENTS_MAX segments	ours; Linux has none for TCP
 *
 * hdr_len is a hint, which may be anything (Linux: how much of a packet is
 * linear).  A segment size that is not less than the payload is valid; Linux
 * takes such a frame for one without a segment size.  The headers themselves
 * are up to frame_cut_check().
 */
bool	frame_vnet_decode(struct frame *frame, const uint8_t *hdr);

/* Return whether what is known of a frame is valid by these rules. */
bool	frame_vnet_valid(const struct frame *frame);

/*
 * Make the header of a frame: `len' bytes, FRAME_VNET_SHORT or FRAME_VNET_LONG.
 */
void	frame_vnet_encode(const struct frame *frame, uint8_t *hdr, size_t len);

#endif /* !_FRAME_VNET_H_ */
