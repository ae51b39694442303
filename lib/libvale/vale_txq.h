/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The transmit side of a ring pair, for the sending thread: a batch of frames,
 * and the lists that the lookup makes of the batch.  vale_forward.c.
 */

#ifndef _VALE_TXQ_H_
#define	_VALE_TXQ_H_

#include <sys/param.h>
#include <sys/systm.h>
#include <net/if.h>
#include <net/netmap.h>
#include <dev/netmap/vale_fdb.h>
#include <dev/netmap/vale_guard.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "frame.h"
#include "libvale.h"

struct vale_view;

#define	VALE_COPY_SIZE	(4 * VALE_FRAME_MAX)	/* bytes */
/* For the first bytes of a batch's frames: vale_rules.c. */
#define	VALE_HEADS_SIZE	(VALE_BATCH_MAX * VALE_GUARD_HEAD)
/* Other forms of frames, of which each has a first fragment of its own. */
#define	VALE_FORMS	1024
#define	VALE_FORM_HEAD	16		/* bytes of that fragment */

/*
 * A fragment: one transmit slot of a batch.  In vt_frag a frame is its first
 * fragment, followed by the others.
 */
struct vale_frag {
	const uint8_t	*fg_buf;
	uint32_t	 fg_frame_len;	/* first fragment: bytes of the frame */
	uint16_t	 fg_len;	/* bytes of the fragment */
	uint16_t	 fg_next;	/* first: next frame of the list */
	uint8_t		 fg_nfrags;	/* first: fragments of the frame */
	uint8_t		 fg_slots;	/* first: receive slots it needs, as
					   it is */
	uint16_t	 fg_offload;	/* first: which of of_frame, or
					   VALE_PLAIN */
};

#define	VALE_END	UINT16_MAX	/* ends a list of frames */
#define	VALE_PLAIN	UINT16_MAX	/* complete, and not to be cut */

/*
 * Return whether a frame is plain, and has one fragment, for one slot, as most:
 * one comparison of the members together.
 */
static inline bool
vale_frag_single(const struct vale_frag *fg)
{
	static const struct vale_frag single = { .fg_nfrags = 1,
	    .fg_slots = 1, .fg_offload = VALE_PLAIN };
	const size_t at = offsetof(struct vale_frag, fg_nfrags);

	return (memcmp((const char *)fg + at, (const char *)&single + at,
	    4) == 0);
}

/* The frames of a batch of which something is known: vale_offload.c. */
#define	VALE_OFFLOADS	256
#define	VALE_FORM_OFFLOADS 64	/* other forms of such frames */

struct vale_offloads {
	uint32_t	 of_frames;
	uint32_t	 of_used;	/* bytes of of_headers */
	/* What is known; no fragments. */
	struct frame	 of_frame[VALE_OFFLOADS + VALE_FORM_OFFLOADS];
	/* Copies of the frames' own headers. */
	uint8_t		 of_headers[64 * 1024];
};

/* Frames of a batch for one destination, or those to flood. */
struct vale_list {
	uint16_t	li_first;	/* index of vt_frag */
	uint16_t	li_last;
	uint32_t	li_frames;
	uint32_t	li_slots;
};

/* The port of frames with two addresses, as long as vale_fdb.h says. */
struct vale_result {
	uint8_t		lu_addrs[12];
	uint32_t	lu_now_s;
	uint32_t	lu_changes;	/* vale_fdb_changes() then; 0: unused */
	unsigned int	lu_dst;
};

#define	VALE_FLOOD_TAGGED	(VALE_FDB_FLOOD + 1)	/* of vt_list */
#define	VALE_FORM_FIRST	(2 * (VALE_BATCH_MAX + NETMAP_MAX_FRAGS))
#define	VALE_FORM_FRAGS	(VALE_BATCH_MAX + 2 * NETMAP_MAX_FRAGS)

struct vale_txq {
	uint32_t	 vt_busy;	/* odd: has a view; atomic;
					   vale_view.c */
	const struct vale_view *vt_view; /* meanwhile */
	uint32_t	 vt_nslots;	/* constant */
	uint32_t	 vt_cur;	/* first slot not consumed */
	uint32_t	 vt_nfrags;
	uint32_t	 vt_ndsts;
	bool		 vt_indirect;	/* a fragment is not in a buffer */
	/* Slow memory: vale_deliver.c. */
	uint64_t	 vt_now_ns;	/* when the last delivery ended */
	uint64_t	 vt_copy_ns;	/* copy frames first until then */
	bool		 vt_copied;	/* those of this batch were */
	uint8_t		*vt_copy;	/* VALE_COPY_SIZE bytes: copies of
					   frames */
	uint32_t	 vt_copy_used;	/* bytes of it */
	/* Rules and VLANs: vale_rules.c. */
	uint8_t		*vt_heads;	/* VALE_HEADS_SIZE bytes */
	bool		 vt_headed;	/* the batch has copies there */
	uint8_t		(*vt_form)[VALE_FORM_HEAD];	/* VALE_FORMS */
	uint32_t	 vt_nforms;
	uint32_t	 vt_form_frags;	/* entries of vt_frag from
					   VALE_FORM_FIRST on */
	uint32_t	 vt_form_offloads;
	unsigned int	 vt_vlan;	/* of the flooded frames, 0: none */
	struct vale_list *vt_flood;	/* what the destination gets of them */
	uint64_t	 vt_check_ns;	/* look for sleeps until then */
	bool		 vt_checked;	/* in this batch */
	long		 vt_sleeps;	/* of the thread, before the delivery */
	struct vale_result vt_result;	/* of a batch's first frame */
	uint8_t		 vt_dst[VALE_FDB_PORTS];	/* with a list */
	/* Of each port; flooded; the same with the tag of vt_vlan. */
	struct vale_list vt_list[VALE_FDB_PORTS + 2];
	struct vale_offloads vt_offloads;
	/*
	 * A batch, whose last frame may exceed it, or twice as many fragments
	 * if each frame has a copied head; then other forms of frames.
	 */
	struct vale_frag vt_frag[VALE_FORM_FIRST + VALE_FORM_FRAGS];
};

/* Initialize *vt, which must be zero-filled.  Returns 0 or -1. */
int	vale_txq_init(struct vale_txq *vt, uint32_t nslots);

/* Free what vale_txq_init() has allocated. */
void	vale_txq_fini(struct vale_txq *vt);

/* Make *li a list of no frames. */
static inline void
vale_list_init(struct vale_list *li)
{
	li->li_first = li->li_last = VALE_END;
	li->li_frames = li->li_slots = 0;
}

/* Append the frame at index `frame' of vt_frag. */
static inline void
vale_list_append(struct vale_txq *vt, struct vale_list *li, uint32_t frame)
{
	MPASS(frame < nitems(vt->vt_frag));
	if (li->li_first == VALE_END)
		li->li_first = frame;
	else
		vt->vt_frag[li->li_last].fg_next = frame;
	li->li_last = frame;
	vt->vt_frag[frame].fg_next = VALE_END;
	li->li_frames++;
	li->li_slots += vt->vt_frag[frame].fg_slots;
}

/* Copy `n' fragments to vt_copy, which must have space. */
void	vale_txq_copy(struct vale_txq *vt, struct vale_frag *fg, uint32_t n);

/* Return whether vt_copy may have no space for another frame. */
static inline bool
vale_txq_full(const struct vale_txq *vt)
{
	return (vt->vt_copy_used > VALE_COPY_SIZE - VALE_FRAME_MAX);
}

#endif /* !_VALE_TXQ_H_ */
