/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* frame_vnet.h. */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/systm.h>

#include <string.h>

#include "frame_vnet.h"

/* Offsets in the header. */
#define	VNET_FLAGS		0
#define	VNET_GSO_TYPE		1
#define	VNET_HDR_LEN		2
#define	VNET_GSO_SIZE		4
#define	VNET_CSUM_START		6
#define	VNET_CSUM_OFFSET	8
#define	VNET_NUM_BUFFERS	10

#define	VNET_FLAGS_KNOWN	(FRAME_CSUM_PARTIAL | FRAME_CSUM_VERIFIED)

static bool
vnet_type_known(uint8_t type)
{
	switch (type) {
	case FRAME_GSO_TCPV4:
	case FRAME_GSO_TCPV4 | FRAME_GSO_ECN:
	case FRAME_GSO_TCPV6:
	case FRAME_GSO_TCPV6 | FRAME_GSO_ECN:
	case FRAME_GSO_UDP:
	case FRAME_GSO_UDP_L4:
		return (true);
	default:
		return (false);
	}
}

bool
frame_vnet_decode(struct frame *frame, const uint8_t *hdr)
{
	frame->f_flags = hdr[VNET_FLAGS] & VNET_FLAGS_KNOWN;
	frame->f_gso_type = hdr[VNET_GSO_TYPE];
	frame->f_hdr_len = le16dec(hdr + VNET_HDR_LEN);
	frame->f_gso_size = le16dec(hdr + VNET_GSO_SIZE);
	frame->f_csum_start = le16dec(hdr + VNET_CSUM_START);
	frame->f_csum_offset = le16dec(hdr + VNET_CSUM_OFFSET);
	frame->f_net_start = 0;
	return (frame_vnet_valid(frame));
}

bool
frame_vnet_valid(const struct frame *frame)
{
	if ((frame->f_flags & FRAME_CSUM_PARTIAL) != 0 &&
	    frame->f_csum_start + frame->f_csum_offset + 2U > frame->f_len)
		return (false);
	if (frame->f_gso_type == FRAME_GSO_NONE)
		return (true);
	return (vnet_type_known(frame->f_gso_type) &&
	    (frame->f_flags & FRAME_CSUM_PARTIAL) != 0 &&
	    frame->f_gso_size != 0 &&
	    howmany(frame->f_len, frame->f_gso_size) <= FRAME_SEGMENTS_MAX);
}

void
frame_vnet_encode(const struct frame *frame, uint8_t *hdr, size_t len)
{
	MPASS(len == FRAME_VNET_SHORT || len == FRAME_VNET_LONG);
	memset(hdr, 0, len);
	hdr[VNET_FLAGS] = frame->f_flags;
	hdr[VNET_GSO_TYPE] = frame->f_gso_type;
	if (frame->f_gso_type != FRAME_GSO_NONE) {
		le16enc(hdr + VNET_HDR_LEN, frame->f_hdr_len);
		le16enc(hdr + VNET_GSO_SIZE, frame->f_gso_size);
	}
	if ((frame->f_flags & FRAME_CSUM_PARTIAL) != 0) {
		le16enc(hdr + VNET_CSUM_START, frame->f_csum_start);
		le16enc(hdr + VNET_CSUM_OFFSET, frame->f_csum_offset);
	}
	if (len == FRAME_VNET_LONG)
		le16enc(hdr + VNET_NUM_BUFFERS, 1);
}
