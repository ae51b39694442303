/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The module's copy of a ruled frame, and its forms: see vale_learn_form.h.
 *
 * The virtio-net header (struct nm_vnet_hdr of netmap) is the sender's word.
 * netmap computes checksums and cuts segments by it where a receiver has no
 * such header, and trusts what is checked here.
 */

#include <sys/param.h>
#include <sys/systm.h>

#include <dev/netmap/vale_learn_form.h>

#define	ADDRS_LEN	12		/* bytes of a frame's two addresses */
#define	TCI_PRIORITY	0xf000		/* and DEI */

/* A virtio-net header: little-endian numbers of 16 bits. */
#define	VNET_FLAGS	0
#define	VNET_NEEDS_CSUM	1
#define	VNET_GSO	1		/* 0: not to be cut */
#define	VNET_HDR_LEN	2
#define	VNET_CSUM_START	6		/* from the frame's beginning */
#define	VNET_CSUM_OFFSET 8		/* from there */
#define	VNET_LEN	10

static uint16_t
get16(const uint8_t *p)
{
	return (p[0] << 8 | p[1]);
}

static uint16_t
get16le(const uint8_t *p)
{
	return (p[1] << 8 | p[0]);
}

static void
put16le(uint8_t *p, uint16_t value)
{
	p[0] = value & 0xff;
	p[1] = value >> 8;
}

void
vale_learn_frame_begin(struct vale_learn_frame *lf, uint32_t header)
{
	MPASS(header <= VALE_LEARN_VNET_MAX);
	lf->lf_start = lf->lf_bytes + VALE_VLAN_TAG;
	lf->lf_header = header;
	lf->lf_len = 0;
}

uint8_t *
vale_learn_frame_append(struct vale_learn_frame *lf, uint32_t len)
{
	uint8_t *to = lf->lf_start + lf->lf_len;

	if (len > lf->lf_header + VALE_LEARN_FRAME_MAX - lf->lf_len)
		return (NULL);
	lf->lf_len += len;
	return (to);
}

bool
vale_learn_frame_end(struct vale_learn_frame *lf)
{
	if (lf->lf_len < lf->lf_header + VALE_LEARN_HEADER)
		return (false);
	lf->lf_len -= lf->lf_header;
	return (true);
}

bool
vale_learn_frame_tagged(const struct vale_learn_frame *lf)
{
	return (get16(vale_learn_frame_data(lf) + ADDRS_LEN) ==
	    VALE_VLAN_TYPE);
}

/* Whether there are at most two tags. */
static bool
frame_tags(const struct vale_learn_frame *lf)
{
	const uint8_t *type = vale_learn_frame_data(lf) + ADDRS_LEN;
	uint32_t left = lf->lf_len - ADDRS_LEN;
	unsigned int tags = 0;

	while (left >= 2 && get16(type) == VALE_VLAN_TYPE) {
		if (tags++ == 2 || left < VALE_VLAN_TAG)
			return (false);
		type += VALE_VLAN_TAG;
		left -= VALE_VLAN_TAG;
	}
	return (true);
}

bool
vale_learn_frame_sound(const struct vale_learn_frame *lf)
{
	const uint8_t *vh = lf->lf_start;
	uint32_t start;

	if (lf->lf_header < VNET_LEN)
		return (true);
	if ((vh[VNET_FLAGS] & VNET_NEEDS_CSUM) != 0) {
		start = get16le(vh + VNET_CSUM_START);
		if (start < VALE_LEARN_HEADER + (vale_learn_frame_tagged(lf) ?
		    VALE_VLAN_TAG : 0) ||
		    start + get16le(vh + VNET_CSUM_OFFSET) + 2 >
		    MIN(lf->lf_len, VALE_LEARN_HEADERS))
			return (false);
	}
	return (vh[VNET_GSO] == 0 || frame_tags(lf));
}

/* The frame's headers are longer by `more' bytes, a tag, or shorter. */
static void
frame_fix(struct vale_learn_frame *lf, int more)
{
	uint8_t *vh = lf->lf_start;
	uint16_t len;

	if (lf->lf_header < VNET_LEN)
		return;
	if ((vh[VNET_FLAGS] & VNET_NEEDS_CSUM) != 0)
		put16le(vh + VNET_CSUM_START,
		    get16le(vh + VNET_CSUM_START) + more);
	/* It is a hint, and may be anything. */
	len = get16le(vh + VNET_HDR_LEN);
	if (vh[VNET_GSO] != 0 && len >= VALE_LEARN_HEADER + VALE_VLAN_TAG &&
	    len <= UINT16_MAX - VALE_VLAN_TAG)
		put16le(vh + VNET_HDR_LEN, len + more);
}

/* Move the virtio-net header and the addresses; `by': a tag's bytes or less. */
static void
frame_move(struct vale_learn_frame *lf, int by)
{
	MPASS(lf->lf_start + by >= lf->lf_bytes);
	memmove(lf->lf_start + by, lf->lf_start, lf->lf_header + ADDRS_LEN);
	lf->lf_start += by;
	lf->lf_len -= by;
	frame_fix(lf, -by);
}

void
vale_learn_frame_form(struct vale_learn_frame *lf, unsigned int vlan,
    bool tagged)
{
	const bool had = vale_learn_frame_tagged(lf);
	uint8_t *tag;
	uint16_t tci;

	if (vlan == 0 || (!had && !tagged))
		return;
	MPASS(!had || lf->lf_len >= VALE_LEARN_HEADER + VALE_VLAN_TAG);
	if (!tagged) {
		frame_move(lf, VALE_VLAN_TAG);
		return;
	}
	tci = vlan;
	if (had)
		tci |= get16(vale_learn_frame_data(lf) + VALE_LEARN_HEADER) &
		    TCI_PRIORITY;
	else
		frame_move(lf, -VALE_VLAN_TAG);
	tag = vale_learn_frame_data(lf) + ADDRS_LEN;
	tag[0] = VALE_VLAN_TYPE >> 8;
	tag[1] = VALE_VLAN_TYPE & 0xff;
	tag[2] = tci >> 8;
	tag[3] = tci & 0xff;
}
