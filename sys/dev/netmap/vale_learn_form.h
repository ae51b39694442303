/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A ruled frame of vale_learn(4): the module's own copy, which the sender
 * cannot change, and which gets or loses a tag for the ports that need that.
 *
 * The copy is one piece of memory, behind space for a tag: so only the
 * addresses move, and the virtio-net header before them.
 *
 * One thread at a time may use a frame.  No function calls the kernel.
 */

#ifndef _DEV_NETMAP_VALE_LEARN_FORM_H_
#define	_DEV_NETMAP_VALE_LEARN_FORM_H_

#include <sys/param.h>
#include <sys/systm.h>

#include <dev/netmap/vale_learn.h>

#define	VALE_LEARN_FRAME_MAX	65536	/* bytes of a frame */
#define	VALE_LEARN_VNET_MAX	64	/* bytes of a virtio-net header */
/* The headers of a frame that netmap cuts are in so many bytes. */
#define	VALE_LEARN_HEADERS	256
/* netmap's copies are of multiples of 64 bytes. */
#define	VALE_LEARN_BEHIND	64

struct vale_learn_frame {
	uint8_t		*lf_start;	/* virtio-net header, then the frame */
	uint32_t	 lf_header;	/* bytes of the header, or 0 */
	uint32_t	 lf_len;	/* bytes of the frame */
	uint8_t		 lf_bytes[VALE_VLAN_TAG + VALE_LEARN_VNET_MAX +
			    VALE_LEARN_FRAME_MAX + VALE_LEARN_BEHIND];
};

/* Return the frame, behind its virtio-net header. */
static inline uint8_t *
vale_learn_frame_data(const struct vale_learn_frame *lf)
{
	return (lf->lf_start + lf->lf_header);
}

/*
 * Begin a frame with a virtio-net header of `header' bytes, 0 to
 * VALE_LEARN_VNET_MAX, which the caller appends first.
 */
void	vale_learn_frame_begin(struct vale_learn_frame *lf, uint32_t header);

/*
 * Append `len' bytes, which the caller must write where the returned pointer
 * points.  NULL if the frame would have more than VALE_LEARN_FRAME_MAX bytes
 * behind its virtio-net header.
 */
uint8_t	*vale_learn_frame_append(struct vale_learn_frame *lf, uint32_t len);

/*
 * End a frame: all bytes were appended.  Returns false if there are fewer than
 * the header and VALE_LEARN_HEADER.
 */
bool	vale_learn_frame_end(struct vale_learn_frame *lf);

/*
 * Complete the checksum that a virtio-net header asks for, if there is one,
 * except TCP's or UDP's directly behind an IP header.  Returns false if the
 * checksum is outside the frame, or if the frame is to be cut into segments of
 * anything but what its type says, directly behind an IP header and at most two
 * tags.
 */
bool	vale_learn_frame_complete(struct vale_learn_frame *lf);

/* Return whether the frame has a tag. */
bool	vale_learn_frame_tagged(const struct vale_learn_frame *lf);

/*
 * Give the frame the form that a member of `vlan', 0 to 4095, gets, with a tag
 * if `tagged' is set.  A new tag has the priority of the tag that it replaces,
 * or 0.  The virtio-net header is changed, too.  A frame in no VLAN, 0, stays
 * unchanged; a tag that is cut off must not be removed.
 */
void	vale_learn_frame_form(struct vale_learn_frame *lf, unsigned int vlan,
	    bool tagged);

#endif /* !_DEV_NETMAP_VALE_LEARN_FORM_H_ */
