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
 * Returns false if the header is invalid: the checksum or the headers are not
 * within the frame; there is a segment size without a partial checksum; it is
 * less than FRAME_GSO_SIZE_MIN or not less than the frame; the type is unknown.
 * f_hdr_len is the sender's word alone.
 */
bool	frame_vnet_decode(struct frame *frame, const uint8_t *hdr);

/*
 * Make the header of a frame: `len' bytes, FRAME_VNET_SHORT or FRAME_VNET_LONG.
 */
void	frame_vnet_encode(const struct frame *frame, uint8_t *hdr, size_t len);

#endif /* !_FRAME_VNET_H_ */
