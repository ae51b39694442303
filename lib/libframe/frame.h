/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * An Ethernet frame on its way, and a source of frames: a receive ring, the
 * memory of another guest, a loopback queue.
 *
 * A frame is a list of fragments and what its producer knows of it: whether its
 * checksums are complete, and whether it must be cut into segments.  That part
 * has the fields, values and meaning of a virtio-net header: VIRTIO 1.2,
 * section 5.1.6.
 */

#ifndef _FRAME_H_
#define	_FRAME_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The most fragments a frame may have. */
#define	FRAME_MAXIOV		64

/*
 * The most segments that a frame may make, so that one cannot occupy a switch
 * for long: those of 64 KB with 48 bytes of payload each.  Linux's TCP has no
 * shorter ones (tcp_min_snd_mss), its UDP makes 128 at most (UDP_MAX_SEGMENTS).
 */
#define	FRAME_SEGMENTS_MAX	1365

/* f_flags.  Neither: the checksums are complete, and nobody checked them. */
#define	FRAME_CSUM_PARTIAL	0x01	/* VIRTIO_NET_HDR_F_NEEDS_CSUM: the
					   checksum at f_csum_start +
					   f_csum_offset covers the
					   pseudo-header only */
#define	FRAME_CSUM_VERIFIED	0x02	/* VIRTIO_NET_HDR_F_DATA_VALID */

/* f_gso_type: VIRTIO_NET_HDR_GSO_*. */
#define	FRAME_GSO_NONE		0	/* one frame, sent as it is */
#define	FRAME_GSO_TCPV4		1
#define	FRAME_GSO_UDP		3
#define	FRAME_GSO_TCPV6		4
#define	FRAME_GSO_UDP_L4	5	/* datagrams; UDP: fragments */
#define	FRAME_GSO_ECN		0x80	/* or'ed in: TCP has ECN set */

struct frame {
	struct iovec	*f_iov;		/* its fragments; some may be empty */
	uint32_t	 f_len;		/* bytes in all, without FCS */
	uint16_t	 f_niov;	/* 1 to FRAME_MAXIOV */
	uint8_t		 f_flags;	/* FRAME_CSUM_* */
	uint8_t		 f_gso_type;	/* FRAME_GSO_* */
	/* If f_gso_type is not FRAME_GSO_NONE. */
	uint16_t	 f_hdr_len;	/* bytes of headers */
	uint16_t	 f_gso_size;	/* bytes of payload in a segment */
	uint16_t	 f_net_start;	/* of the IP header; 0: behind what
					   Ethernet and VLAN tags tell */
	/* With FRAME_CSUM_PARTIAL. */
	uint16_t	 f_csum_start;	/* first byte summed */
	uint16_t	 f_csum_offset;	/* of the checksum, from there */
};

/*
 * Make *frame one that is sent as it is, with complete checksums: `niov'
 * fragments, `len' bytes in all, in f_iov, which stays as it is.
 */
static inline void
frame_set(struct frame *frame, int niov, uint32_t len)
{
	frame->f_niov = niov;
	frame->f_len = len;
	frame->f_flags = 0;
	frame->f_gso_type = FRAME_GSO_NONE;
}

/* Set what is known of *frame, all but its fragments, as *known has it. */
static inline void
frame_set_known(struct frame *frame, const struct frame *known)
{
	const size_t at = offsetof(struct frame, f_flags);

	memcpy((char *)frame + at, (const char *)known + at,
	    sizeof(*frame) - at);
}

/*
 * Return whether a frame has one fragment and nothing is known of it, as of
 * most frames: one comparison of the members together.
 */
static inline bool
frame_single(const struct frame *frame)
{
	static const struct frame single = { .f_niov = 1 };
	const size_t at = offsetof(struct frame, f_niov);

	_Static_assert(offsetof(struct frame, f_gso_type) ==
	    offsetof(struct frame, f_niov) + 3, "they are one word");
	return (memcmp((const char *)frame + at, (const char *)&single + at,
	    4) == 0);
}

/* Return whether a frame has one fragment and complete checksums. */
static inline bool
frame_complete(const struct frame *frame)
{
	return (frame_single(frame) || (frame->f_niov == 1 &&
	    (frame->f_flags & FRAME_CSUM_PARTIAL) == 0));
}

/* Return the bytes of the longest frame that this one makes when it is cut. */
static inline uint32_t
frame_longest(const struct frame *frame)
{
	uint32_t longest = (uint32_t)frame->f_hdr_len + frame->f_gso_size;

	return (frame->f_gso_type == FRAME_GSO_NONE || longest > frame->f_len ?
	    frame->f_len : longest);
}

/*
 * A source of frames.  An implementation embeds this struct and fills it in;
 * users call frame_peek() and frame_next().  One thread at a time.
 */
struct frame_source {
	bool	(*fs_peek)(struct frame_source *source, struct frame *frame);
	void	(*fs_next)(struct frame_source *source);
};

/*
 * Look at the next frame, which stays where it is.  The caller must have set
 * frame->f_iov to an array of FRAME_MAXIOV elements; the source fills it in and
 * sets all other members of *frame.  Returns false if no frame is pending.
 *
 * The caller must not write to the fragments; a guest may, at any time.  They
 * stay in place until frame_next(), or for longer if the source says so.
 */
static inline bool
frame_peek(struct frame_source *source, struct frame *frame)
{
	return (source->fs_peek(source, frame));
}

/* Take the frame that frame_peek() showed: the one after it is next. */
static inline void
frame_next(struct frame_source *source)
{
	source->fs_next(source);
}

#endif /* !_FRAME_H_ */
