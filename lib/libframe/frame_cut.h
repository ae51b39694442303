/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Divide a packet into segments and complete their checksums, in the pass that
 * copies it, for a receiver without offloads.  A frame without a segment size
 * is one segment.
 *
 *	struct frame_cut cut;
 *
 *	if (!frame_cut_begin(&cut, frame))
 *		drop the frame
 *	while (frame_cut_next(&cut)) {
 *		space = room for fc_hdrlen + fc_paylen bytes
 *		frame_cut_copy(&cut, space + fc_hdrlen, fc_paylen);
 *		frame_cut_header(&cut, space);
 *	}
 *
 * Each byte of the payload is read once, to copy and to sum it; each byte of
 * the headers once, at the begin.  So a guest that changes the frame meanwhile
 * changes the payload of the segments and nothing else.
 *
 * One thread at a time for each struct frame_cut; no locks.
 *
 * The header of each segment: for TCP, RFC 9293, section 3.1 (sequence number;
 * FIN and PSH in the last segment only) and RFC 3168, section 6.1.2 (CWR in the
 * first only); IP, RFC 791, section 3.1 (length, identification, checksum), and
 * RFC 8200, section 3 (payload length); UDP, RFC 768 (length).
 */

#ifndef _FRAME_CUT_H_
#define	_FRAME_CUT_H_

#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>

#include "frame.h"
#include "frame_cursor.h"

/* The most bytes of headers, up to the end of the checksum or of TCP's. */
#define	FRAME_CUT_HDRLEN	512

struct frame_cut {
	/* For the caller.  Set by frame_cut_check(): */
	uint32_t	 fc_hdrlen;	/* bytes of headers of each segment */
	uint8_t		 fc_hdr[FRAME_CUT_HDRLEN]; /* those of the frame */
	bool		 fc_direct;	/* nothing but Ethernet's header and
					   VLAN tags precedes the IP header */
	/* Set by frame_cut_begin(): */
	uint32_t	 fc_segments;	/* how many are left */
	uint32_t	 fc_longest;	/* bytes of the longest, with headers */
	/* Set by frame_cut_next(): */
	uint32_t	 fc_paylen;	/* bytes of payload in this one */

	/* Private to frame_cut.c.  The frame: */
	uint32_t	 fc_total;	/* bytes of payload */
	uint32_t	 fc_mss;	/* bytes of payload in a segment */
	uint16_t	 fc_net;	/* offset of the IP header; 0: the frame
					   is not cut */
	uint16_t	 fc_l4;		/* offset of the first byte summed */
	uint16_t	 fc_field;	/* offset of the checksum */
	uint16_t	 fc_pseudo;	/* sum of the pseudo-header; of a frame
					   to be cut, without a length */
	uint8_t		 fc_type;	/* FRAME_GSO_*, without _ECN */
	uint8_t		 fc_tcp_flags;
	bool		 fc_ip4;
	uint32_t	 fc_seq;	/* of TCP */
	/* The segment: */
	uint32_t	 fc_off;	/* bytes of payload before it */
	uint16_t	 fc_id;		/* of IPv4 */
	bool		 fc_odd;	/* the next byte's offset, from fc_l4 */
	uint64_t	 fc_sum;	/* of the payload taken; after
					   frame_cut_header(), of all */
	struct frame_cursor fc_cur;	/* the payload not taken */
	/* Set by frame_cut_begin(), which clears the fields of fc_hdr that
	   differ between segments: sums of the rest. */
	uint64_t	 fc_hdr_sum;	/* of all */
	uint64_t	 fc_ip_sum;	/* of IPv4's header */
	uint64_t	 fc_l4_sum;	/* from fc_l4 */
};

/*
 * See whether a frame that has FRAME_CSUM_PARTIAL can be cut, and copy its
 * headers to fc_hdr.  An f_hdr_len of 0 means what TCP's header says.
 *
 * Returns false if it is invalid: the checksum or a header is outside the
 * frame or beyond FRAME_CUT_HDRLEN; or, of a frame to be cut, the segment size
 * is 0 or makes an IP packet longer than 65535 bytes, or the headers are not
 * what every host and adapter can cut: an IP header of the version that
 * Ethernet's type and f_gso_type name, not of a fragment, and directly after it
 * and its options or extension headers (frame_hdr_ip()), at f_csum_start, TCP's
 * or UDP's.  If f_net_start is not 0, Ethernet's type does not count.
 * FRAME_GSO_UDP, which is cut into fragments of IP, is not supported.
 */
bool	frame_cut_check(struct frame_cut *cut, const struct frame *frame);

/*
 * Call frame_cut_check(), and begin with the frame, which must stay in place
 * until the last segment is taken.
 */
bool	frame_cut_begin(struct frame_cut *cut, const struct frame *frame);

/*
 * Begin with the segment that has byte `off' of the payload; if the frame is
 * shorter, with the last.  Before the first frame_cut_next().
 */
void	frame_cut_seek(struct frame_cut *cut, uint32_t off);

/*
 * Return the bytes of payload in the next segment, of which one must be left.
 */
uint32_t frame_cut_peek(const struct frame_cut *cut);

/*
 * Begin the next segment.  All payload of the segment before must be taken.
 * Returns false if there is none.
 */
bool	frame_cut_next(struct frame_cut *cut);

/* Take the next `len' bytes of the segment's payload: copy and sum them. */
void	frame_cut_copy(struct frame_cut *cut, void *dst, size_t len);

/*
 * Take all of the segment's payload, without a copy: sum it, and describe it by
 * fragments in `iov', at most `max'.  Returns how many, or -1 if it has more.
 */
int	frame_cut_slice(struct frame_cut *cut, struct iovec *iov, int max);

/*
 * Write the segment's headers, fc_hdrlen bytes.  All payload must be taken.
 * Once for each segment.
 */
void	frame_cut_header(struct frame_cut *cut, void *dst);

/* Return the sum of the segment, not folded.  After frame_cut_header(). */
uint64_t frame_cut_sum(const struct frame_cut *cut);

#endif /* !_FRAME_CUT_H_ */
