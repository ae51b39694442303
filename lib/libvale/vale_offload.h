/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Frames of a batch of which something is known: vale_offload.c.
 *
 * The sending thread calls all of these.
 */

#ifndef _VALE_OFFLOAD_H_
#define	_VALE_OFFLOAD_H_

#include <stdbool.h>
#include <stdint.h>

#include "frame_cut.h"
#include "libvale.h"
#include "vale_txq.h"

struct vale_pair;

/*
 * Take what is known of the frame that begins in slot number `slot' of the
 * transmit ring, which has `flags', or its virtio-net header.  The frame has
 * the first `*nfrags' of fragments `fg', `*len' bytes in all.  If nothing is
 * asked for, the frame is plain.  Else its own headers become a fragment of
 * their own, which no guest can change, and fg[0].fg_offload is set.
 *
 * Returns the reason to drop the frame, or 0.
 */
enum vale_counter vale_offload_collect(struct vale_pair *pair, uint32_t slot,
	    uint16_t flags, struct vale_frag *fg, uint32_t *nfrags,
	    uint32_t *len);

/* Return whether the batch has space for one more of these frames. */
static inline bool
vale_offload_space(const struct vale_offloads *of)
{
	return (of->of_frames < VALE_OFFLOADS &&
	    sizeof(of->of_headers) - of->of_used >= FRAME_CUT_HDRLEN);
}

/* Return what a frame of the batch asks for, or NULL. */
static inline const struct frame *
vale_offload(const struct vale_txq *vt, const struct vale_frag *fg)
{
	return (fg->fg_offload == VALE_PLAIN ? NULL :
	    &vt->vt_offloads.of_frame[fg->fg_offload]);
}

/*
 * Return how many frames a frame of the batch makes where it is cut, and, in
 * *bytes, their length in all.
 */
uint32_t vale_offload_makes(const struct vale_txq *vt,
	    const struct vale_frag *fg, uint64_t *bytes);

/*
 * Return how many slots a frame of the batch takes in a ring of a port whose
 * vp_header is `header'.
 */
uint32_t vale_offload_slots(const struct vale_txq *vt, unsigned int header,
	    const struct vale_frag *fg);

/*
 * Put a frame of the batch into the slots of `dst' from `i' on, and count slots
 * with invalid buffers in *badbufs.  Returns the slot after the last.  The
 * frame has a virtio-net header, or the vp_header of dst's port, which is
 * `header', wants one for every frame.
 */
uint32_t vale_offload_deliver(const struct vale_txq *vt, unsigned int header,
	    struct vale_pair *dst, const struct vale_frag *fg, uint32_t i,
	    uint32_t *badbufs);

#endif /* !_VALE_OFFLOAD_H_ */
