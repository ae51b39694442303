/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Cut a packet of several segments whose TCP or UDP is in a tunnel: IP, then an
 * inner IP header, which is preceded by nothing, by GRE, or by UDP and whatever
 * a tunnel over UDP has (VXLAN, GENEVE, FOU).  Each segment gets all headers.
 *
 *	if (!frame_tunnel_begin(&ft, &frame))
 *		drop the frame
 *	while (frame_cut_next(&ft.ft_cut)) {
 *		p = room for ft.ft_cut.fc_hdrlen + fc_paylen bytes
 *		frame_cut_copy(&ft.ft_cut, p + fc_hdrlen, fc_paylen);
 *		frame_tunnel_header(&ft, p);
 *	}
 *
 * frame_cut.h does the inner headers.  The outer ones are IP's (length,
 * identification, checksum), UDP's (length, and the checksum unless it is 0)
 * and GRE's (checksum, if there is one: RFC 2784, 2890).
 *
 * One thread at a time for each struct frame_tunnel; no locks.
 */

#ifndef _FRAME_TUNNEL_H_
#define	_FRAME_TUNNEL_H_

#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>

#include "frame_cut.h"
#include "frame_hdr.h"

struct frame_tunnel {
	struct frame_cut ft_cut;

	/* Private to frame_tunnel.c. */
	struct frame_hdr ft_outer;
	uint16_t	 ft_id;		/* of the next one, if it is IPv4 */
	bool		 ft_sum;	/* UDP or GRE has a checksum */
};

/*
 * Begin with a frame that has FRAME_CSUM_PARTIAL, whose f_csum_start is in the
 * tunnel.  It must stay in place until the last segment is taken.
 *
 * Returns false if it is not one of these tunnels, there are two, GRE has
 * sequence numbers, which differ in a way that nobody knows, or frame_cut.h
 * finds the inner headers invalid.
 */
bool	frame_tunnel_begin(struct frame_tunnel *ft, const struct frame *frame);

/*
 * Write the segment's headers to `p', before its payload, which must be there:
 * once for each segment, in place of frame_cut_header().
 */
void	frame_tunnel_header(struct frame_tunnel *ft, uint8_t *p);

#endif /* !_FRAME_TUNNEL_H_ */
