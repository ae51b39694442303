/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What a port may send, and the VLANs that it is in: vale_lookup.c asks.
 *
 * The decisions are those of vale_guard.h and vale_vlan.h.  A guest can change
 * its memory at any time, so its frames' first bytes are copied before anything
 * is decided, and the copies are what is delivered.  That is done when the
 * frames are collected, where nobody waits for a page of their memory.
 *
 * A frame passes the switch in the form in which it was sent, and is given
 * another form, with a tag or without, only for ports that need that form.
 * That form is a frame of its own, behind those of the batch in vt_frag: its
 * first fragment is a copy of the addresses and the new tag, the others are
 * those of the frame.  So no byte of payload moves.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <stdlib.h>
#include <string.h>

#include "frame_cut.h"
#include "vale_offload.h"
#include "vale_rules.h"
#include "vale_slot.h"

#define	ADDR_LEN	6
#define	ADDRS_LEN	12		/* bytes of a frame's two addresses */
#define	TCI_PRIORITY	0xf000		/* and DEI */

const struct vale_rules vale_rules_none;

void
vale_rules_free(const struct vale_rules *ru)
{
	if (ru != &vale_rules_none)
		free(__DECONST(struct vale_rules *, ru));
}

bool
vale_rules_empty(const struct vale_rules *ru)
{
	return (ru->rls_vlan.vln_mode == VALE_VLAN_ANY &&
	    !vale_rules_guard(ru));
}

void
vale_rules_gather_split(const struct vale_frag *fg, uint32_t len, uint8_t *to)
{
	uint32_t i, n, done = 0;

	for (i = 0; i < fg->fg_nfrags && done < len; i++, done += n) {
		n = MIN(fg[i].fg_len, len - done);
		memcpy(to + done, fg[i].fg_buf, n);
	}
	memset(to + done, 0, len - done);
}

/*
 * Append to the first fragment at `to' the fragments of a frame without its
 * first `skip' bytes.  `to' may be before `fg' in the same array.
 */
static void
append_rest(struct vale_frag *to, const struct vale_frag *fg, uint32_t nfrags,
    uint32_t skip)
{
	uint32_t i;

	for (i = 0; i < nfrags && fg[i].fg_len <= skip; i++)
		skip -= fg[i].fg_len;
	to->fg_nfrags = 1 + nfrags - i;
	memmove(to + 1, fg + i, (nfrags - i) * sizeof(*fg));
	/* Without fragments left, no bytes are left to skip. */
	if (skip > 0) {
		to[1].fg_buf += skip;
		to[1].fg_len -= skip;
	}
}

/*
 * Copy frames of one short fragment whole, up to the first of another kind.
 * Returns the fragment after them.
 */
static uint32_t
copy_whole(struct vale_txq *vt, uint32_t *used)
{
	struct vale_frag *const end = vt->vt_frag + vt->vt_nfrags;
	uint8_t *to = vt->vt_heads;
	struct vale_frag *fg;
	uint32_t len;

	for (fg = vt->vt_frag; fg < end; fg++) {
		len = fg->fg_len;
		if (fg->fg_nfrags != 1 || len > VALE_GUARD_HEAD)
			break;
		vale_slot_copy(to, fg->fg_buf, len);
		fg->fg_buf = to;
		to += len;
	}
	*used = to - vt->vt_heads;
	return (fg - vt->vt_frag);
}

/* Copy the head of a frame.  Returns its number of fragments, or 0. */
static uint32_t
copy_head(struct vale_frag *to, const struct vale_frag *fg, uint8_t *head,
    uint32_t len)
{
	struct vale_frag first = *fg;

	/* The frame's headers are a copy. */
	if (fg->fg_offload != VALE_PLAIN) {
		memmove(to, fg, fg->fg_nfrags * sizeof(*fg));
		return (first.fg_nfrags);
	}
	if (fg->fg_nfrags == NETMAP_MAX_FRAGS && fg->fg_len > len)
		return (0);
	vale_rules_gather(fg, len, head);
	append_rest(to, fg, first.fg_nfrags, len);
	first.fg_nfrags = to->fg_nfrags;
	first.fg_buf = head;
	first.fg_len = len;
	*to = first;
	return (first.fg_nfrags);
}

uint32_t
vale_rules_copy(struct vale_txq *vt, uint32_t *dropped)
{
	struct vale_frag *to, *fg, *end;
	uint32_t first, frames = 0, len, n, used;

	vt->vt_headed = true;
	*dropped = 0;
	first = copy_whole(vt, &used);
	fg = vt->vt_frag + first;
	end = vt->vt_frag + vt->vt_nfrags;
	for (to = fg; to < end; to += to->fg_nfrags)
		frames++;
	/* Each of these frames may need one more fragment. */
	to = fg;
	memmove(fg + frames, fg, (end - fg) * sizeof(*fg));
	fg += frames;
	end += frames;
	for (; fg < end; fg += n) {
		/* The frame may be overwritten. */
		n = fg->fg_nfrags;
		len = MIN(fg->fg_frame_len, VALE_GUARD_HEAD);
		MPASS(used + len <= VALE_HEADS_SIZE);
		if (copy_head(to, fg, vt->vt_heads + used, len) == 0)
			++*dropped;
		else
			to += to->fg_nfrags;
		used += len;
	}
	vt->vt_nfrags = to - vt->vt_frag;
	return (first);
}

/* Return whether the guard of IP addresses lets a frame pass. */
static bool
guard_ip(const struct vale_guard *gd, const struct vale_frag *fg)
{
	uint8_t head[VALE_GUARD_HEAD];
	const uint32_t len = MIN(fg->fg_frame_len, sizeof(head));

	vale_rules_gather(fg, len, head);
	return (vale_guard_check(gd, head, len) == VALE_GUARD_PASS);
}

enum vale_counter
vale_rules_admit(const struct vale_rules *ru, const struct vale_frag *fg,
    const uint8_t *head, unsigned int *vlan)
{
	const uint16_t type = be16dec(head + ADDRS_LEN);

	if (!vale_guard_source(&ru->rls_guard, head + ADDR_LEN))
		return (VALE_C_TX_DROP_SOURCE);
	if (ru->rls_guard.gd_nprefixes > 0 && !guard_ip(&ru->rls_guard, fg))
		return (VALE_C_TX_DROP_IP);
	if (vlan == NULL)
		return (0);
	/* A tag that is cut off. */
	if (type == VALE_VLAN_TYPE && fg->fg_frame_len < VALE_HEAD_TAG)
		return (VALE_C_TX_DROP_VLAN);
	*vlan = vale_vlan_of(&ru->rls_vlan, type,
	    be16dec(head + VALE_HEAD_TYPE));
	return (*vlan == VALE_VLAN_REFUSED ? VALE_C_TX_DROP_VLAN : 0);
}

bool
vale_rules_formable(const struct vale_txq *vt, const struct vale_frag *fg)
{
	const struct frame *frame = vale_offload(vt, fg);

	return (fg->fg_nfrags < NETMAP_MAX_FRAGS &&
	    fg->fg_frame_len <= VALE_FRAME_MAX - VALE_VLAN_TAG &&
	    (frame == NULL ||
	    frame->f_hdr_len <= FRAME_CUT_HDRLEN - VALE_VLAN_TAG));
}

/*
 * Say what is known of a frame, in a form whose headers are longer by `more'
 * bytes.  Returns the number of the entry.
 */
static uint16_t
form_offload(struct vale_txq *vt, const struct frame *frame, int more)
{
	const uint16_t n = VALE_OFFLOADS + vt->vt_form_offloads++;
	struct frame *other = &vt->vt_offloads.of_frame[n];

	*other = *frame;
	other->f_len += more;
	other->f_hdr_len += more;
	other->f_csum_start += more;
	return (n);
}

/* Write the first fragment of a form.  Returns its bytes. */
static uint32_t
form_head(uint8_t *to, const uint8_t *head, unsigned int vlan, bool tagged)
{
	uint16_t tci = vlan;

	memcpy(to, head, ADDRS_LEN);
	if (!tagged)
		return (ADDRS_LEN);
	if (vale_rules_tag(head) != VALE_TAG_NONE)
		tci |= be16dec(head + VALE_HEAD_TYPE) & TCI_PRIORITY;
	be16enc(to + ADDRS_LEN, VALE_VLAN_TYPE);
	be16enc(to + VALE_HEAD_TYPE, tci);
	return (ADDRS_LEN + VALE_VLAN_TAG);
}

uint32_t
vale_rules_form(struct vale_txq *vt, uint32_t frame, unsigned int vlan,
    bool tagged)
{
	const struct vale_frag *fg = &vt->vt_frag[frame];
	const uint32_t index = VALE_FORM_FIRST + vt->vt_form_frags;
	const struct frame *offload = vale_offload(vt, fg);
	struct vale_frag *to = &vt->vt_frag[index];
	uint8_t head[VALE_HEAD_TAG], *first;
	uint32_t skip = ADDRS_LEN;
	int more;

	vale_rules_gather(fg, sizeof(head), head);
	if (vale_rules_has_form(head, vlan, tagged))
		return (frame);
	if (!vale_rules_formable(vt, fg))
		return (VALE_END);
	first = vt->vt_form[vt->vt_nforms++];
	to->fg_buf = first;
	to->fg_len = form_head(first, head, vlan, tagged);
	if (vale_rules_tag(head) != VALE_TAG_NONE)
		skip += VALE_VLAN_TAG;
	more = (int)to->fg_len - (int)skip;
	to->fg_frame_len = fg->fg_frame_len + more;
	to->fg_slots = vale_frame_slots(to->fg_frame_len);
	to->fg_offload = offload == NULL ? VALE_PLAIN :
	    form_offload(vt, offload, more);
	append_rest(to, fg, fg->fg_nfrags, skip);
	vt->vt_form_frags += to->fg_nfrags;
	return (index);
}
