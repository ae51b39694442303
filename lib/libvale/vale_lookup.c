/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The second stage of forwarding (vale_forward.c): learn the source of each
 * frame, and append the frame to the list of its destination, or to that of
 * frames to flood.
 *
 * If the sender has a guard, or any port of the switch has VLANs, frames are
 * also checked, and belong to a VLAN: vale_rules.c.  Each destination gets a
 * frame with a tag or without.  Flooded frames are then a part of the batch of
 * their own, in one VLAN, with a list for each of the two forms: so each
 * destination gets all frames in the order in which they were sent.
 */

#include <string.h>

#include "vale_lookup.h"
#include "vale_pair.h"
#include "vale_probes.h"
#include "vale_switch.h"

/* A header begins with two addresses. */
#define	ADDRS_LEN	12
#define	ADDR_LEN	6

#define	LOOKUP_REFUSED	(VALE_FDB_FLOOD + 1)

/* Return the clock of addresses. */
static inline uint32_t
lookup_now_s(const struct vale_txq *vt)
{
	return (vt->vt_now_ns / 1000000000);
}

/*
 * Return what a lookup returned: not the index of a port that is being removed,
 * or is left out for a moment.
 */
static inline unsigned int
lookup_there(const struct vale_view *vi, unsigned int dst)
{
	return (vi->vi_port[dst] == NULL ? VALE_FDB_FLOOD : dst);
}

/*
 * Learn the source address and look up the destination.  Returns a port's
 * index, VALE_FDB_FLOOD, or LOOKUP_REFUSED if the port is at its address limit;
 * sets *news to what was learned.  Inlined, for the frames of a batch that go to
 * many.
 */
static inline unsigned int __attribute__((__always_inline__))
lookup_dst(struct vale_pair *pair, const struct vale_port *port,
    const uint8_t *addrs, unsigned int vlan, uint32_t now_s,
    enum vale_fdb_news *news)
{
	struct vale_switch *vs = port->vp_switch;

	*news = vale_fdb_learn(&vs->vs_fdb, addrs + ADDR_LEN, vlan,
	    port->vp_index, now_s);
	switch (*news) {
	case VALE_FDB_LEARNED:
		vale_count(pair, VALE_C_LEARNED, 1);
		VALE_PROBE(pair, LEARN, addrs + ADDR_LEN, 0);
		break;
	case VALE_FDB_MOVED:
		vale_count(pair, VALE_C_MOVED, 1);
		VALE_PROBE(pair, LEARN, addrs + ADDR_LEN, 1);
		break;
	case VALE_FDB_REFUSED:
		return (LOOKUP_REFUSED);
	case VALE_FDB_KNOWN:
	case VALE_FDB_IGNORED:
		break;
	}
	return (lookup_there(pair->pa_tx.vt_view,
	    vale_fdb_lookup(&vs->vs_fdb, addrs, vlan, now_s)));
}

/*
 * Do as lookup_dst() for the first frame of a batch without VLANs.  That often
 * has the addresses of the first frame of the batch before, and vt_result is
 * what was found then: as long as the table's generation and the second are the
 * same, to learn and look up once more would do nothing, and find the same.
 */
static unsigned int
lookup_first(struct vale_pair *pair, const struct vale_port *port,
    const uint8_t *addrs, uint32_t now_s)
{
	struct vale_txq *vt = &pair->pa_tx;
	struct vale_result *lu = &vt->vt_result;
	const uint32_t changes = vale_fdb_changes(&port->vp_switch->vs_fdb);
	enum vale_fdb_news news;
	unsigned int dst;

	if (lu->lu_changes == changes && lu->lu_now_s == now_s &&
	    memcmp(lu->lu_addrs, addrs, ADDRS_LEN) == 0)
		return (lookup_there(vt->vt_view, lu->lu_dst));
	dst = lookup_dst(pair, port, addrs, 0, now_s, &news);
	memcpy(lu->lu_addrs, addrs, ADDRS_LEN);
	lu->lu_now_s = now_s;
	lu->lu_changes = news == VALE_FDB_KNOWN && dst < VALE_FDB_FLOOD ?
	    changes : 0;
	lu->lu_dst = dst;
	return (dst);
}

/*
 * Return whether frames with this destination are for stations on the link, and
 * go through no bridge: 01:80:c2:00:00:00 to 0f (IEEE 802.1Q, table 8-1).
 */
static bool
lookup_reserved(const uint8_t *addrs)
{
	static const uint8_t reserved[] = { 0x01, 0x80, 0xc2, 0, 0 };

	return (memcmp(addrs, reserved, sizeof(reserved)) == 0 &&
	    addrs[sizeof(reserved)] <= 0x0f);
}

/* Return whether the switch drops frames for their reserved destination. */
static bool
lookup_blocks(const struct vale_port *port, const uint8_t *addrs)
{
	return (!atomic_load_bool(&port->vp_switch->vs_reserved) &&
	    lookup_reserved(addrs));
}

/* Return the number of ports that a flooded frame goes to. */
static unsigned int
lookup_flood(const struct vale_view *vi, const struct vale_port *port)
{
	return (vi->vi_nports - (vi->vi_private[port->vp_index] ?
	    vi->vi_nprivate : 1));
}

/*
 * Flood or drop a frame that may go to no single destination.  Returns the
 * number of copies.
 */
static unsigned int __attribute__((__noinline__))
lookup_other(struct vale_pair *pair, uint32_t frame, unsigned int dst,
    const uint8_t *addrs)
{
	struct vale_txq *vt = &pair->pa_tx;
	const struct vale_port *port = pair->pa_port;
	const unsigned int others = lookup_flood(vt->vt_view, port);
	struct vale_frag *fg = &vt->vt_frag[frame];

	if (dst == LOOKUP_REFUSED)
		vale_pair_drop(pair, VALE_C_TX_DROP_LIMIT, 1, port);
	else if (lookup_blocks(port, addrs))
		vale_pair_drop(pair, VALE_C_TX_DROP_RESERVED, 1, port);
	else if (others == 0)
		vale_pair_drop(pair, VALE_C_TX_DROP_NODEST, 1, port);
	else if (dst == VALE_FDB_FLOOD) {
		vale_list_append(vt, &vt->vt_list[dst], frame);
		vale_count(pair, VALE_C_TX_FLOOD, 1);
		VALE_PROBE(pair, FLOOD, fg->fg_frame_len, others);
		if (others > 1 && vt->vt_indirect && !vt->vt_copied)
			vale_txq_copy(vt, fg, fg->fg_nfrags);
		return (others);
	} else if (dst == port->vp_index)
		vale_pair_drop(pair, VALE_C_TX_DROP_SELF, 1, port);
	else
		vale_pair_drop(pair, VALE_C_TX_DROP_PRIVATE, 1, port);
	return (0);
}

/* Return whether frames go to port number `dst' alone. */
static bool
lookup_single(const struct vale_view *vi, unsigned int src, unsigned int dst)
{
	return (dst < VALE_FDB_FLOOD && dst != src &&
	    !(vi->vi_private[src] && vi->vi_private[dst]));
}

/* Return whether a frame's first fragment has the addresses `addrs'. */
static bool
lookup_same(const struct vale_frag *fg, const uint8_t *addrs)
{
	return (fg->fg_len >= ADDRS_LEN &&
	    memcmp(fg->fg_buf, addrs, ADDRS_LEN) == 0);
}

/*
 * Consecutive frames often have the same two addresses, and so the same
 * destination.  The next two functions take the frame at `i' and the following
 * ones that have its addresses, `addrs'.
 */

/* Append frames to the list of port number `dst'.  Returns the next frame. */
static uint32_t
lookup_run(struct vale_txq *vt, unsigned int dst, uint32_t i,
    const uint8_t *addrs, uint64_t *copies)
{
	struct vale_list *li = &vt->vt_list[dst];
	uint64_t n = 0;

	if (li->li_first == VALE_END)
		vt->vt_dst[vt->vt_ndsts++] = dst;
	do {
		vale_list_append(vt, li, i);
		n++;
		i += vt->vt_frag[i].fg_nfrags;
	} while (i < vt->vt_nfrags && lookup_same(&vt->vt_frag[i], addrs));
	*copies += n;
	return (i);
}

/*
 * Flood or drop frames.  Sets *i to the frame after the last.  Ends, too, where
 * vt_copy may not have space for another frame; returns false then.
 */
static bool __attribute__((__noinline__))
lookup_run_other(struct vale_pair *pair, unsigned int dst, uint32_t *i,
    const uint8_t *addrs, uint64_t *copies)
{
	struct vale_txq *vt = &pair->pa_tx;

	do {
		*copies += lookup_other(pair, *i, dst, addrs);
		*i += vt->vt_frag[*i].fg_nfrags;
		if (vale_txq_full(vt) && !vt->vt_copied)
			return (false);
	} while (*i < vt->vt_nfrags && lookup_same(&vt->vt_frag[*i], addrs));
	return (true);
}

/*
 * Look up a part of a batch without VLANs and guard, from the frame at `i' on.
 * Ends where vt_copy may not have space for another frame.  Returns the next
 * frame.
 */
static uint32_t
lookup_plain(struct vale_pair *pair, uint32_t i)
{
	struct vale_txq *vt = &pair->pa_tx;
	const struct vale_port *port = pair->pa_port;
	const uint32_t now_s = lookup_now_s(vt);
	enum vale_fdb_news news;
	uint8_t addrs[ADDRS_LEN];
	uint64_t copies = 0;
	unsigned int dst;

	vt->vt_ndsts = 0;
	while (i < vt->vt_nfrags) {
		vale_rules_gather(&vt->vt_frag[i], ADDRS_LEN, addrs);
		dst = i == 0 ? lookup_first(pair, port, addrs, now_s) :
		    lookup_dst(pair, port, addrs, 0, now_s, &news);
		VALE_PROBE(pair, LOOKUP, dst, addrs);
		if (lookup_single(vt->vt_view, port->vp_index, dst))
			i = lookup_run(vt, dst, i, addrs, &copies);
		else if (!lookup_run_other(pair, dst, &i, addrs, &copies))
			break;
	}
	vale_count(pair, VALE_C_TX_COPY, copies);
	return (i);
}

/*
 * With VLANs or a guard.  Frames of a kind follow each other often, and what
 * was decided about the first holds for them.
 */
struct lookup_kind {
	const struct vale_rules	*lk_rules;	/* the sender's */
	uint8_t			 lk_head[VALE_HEAD_TAG];
	uint32_t		 lk_same;	/* bytes of it that tell a kind;
						   0: a frame is alone */
	unsigned int		 lk_vlan;
};

/* Set lk_head to the bytes of a frame that tell its addresses and its VLAN. */
static void
kind_head(struct lookup_kind *lk, const struct vale_frag *fg)
{
	vale_rules_gather(fg, VALE_HEAD_TAG, lk->lk_head);
	/* A guard of IP addresses sees each frame; a tag may be cut off. */
	if (lk->lk_rules->rls_guard.gd_nprefixes > 0 ||
	    fg->fg_frame_len < VALE_HEAD_TAG)
		lk->lk_same = 0;
	else
		lk->lk_same = vale_rules_tag(lk->lk_head) == VALE_TAG_NONE ?
		    VALE_HEAD_TYPE : VALE_HEAD_TCI;
}

static inline uint64_t
load64(const uint8_t *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof(word));
	return (word);
}

/* Return whether a frame is of this kind: two comparisons, which overlap. */
static inline bool
kind_same(const struct lookup_kind *lk, const struct vale_frag *fg)
{
	const uint32_t last = lk->lk_same - sizeof(uint64_t);

	return (lk->lk_same != 0 && fg->fg_len >= VALE_HEAD_TAG &&
	    load64(fg->fg_buf) == load64(lk->lk_head) &&
	    load64(fg->fg_buf + last) == load64(lk->lk_head + last));
}

/*
 * The next functions take the frame at `i' and the following ones of its kind,
 * and return the frame after the last.
 */

static uint32_t
kind_drop(struct vale_pair *pair, const struct lookup_kind *lk, uint32_t i,
    enum vale_counter reason)
{
	struct vale_txq *vt = &pair->pa_tx;
	uint32_t n = 0;

	do {
		n++;
		i += vt->vt_frag[i].fg_nfrags;
	} while (i < vt->vt_nfrags && kind_same(lk, &vt->vt_frag[i]));
	vale_pair_drop(pair, reason, n, pair->pa_port);
	return (i);
}

/* Append frames for port number `dst', unchanged. */
static uint32_t
kind_plain(struct vale_txq *vt, const struct lookup_kind *lk, unsigned int dst,
    uint32_t i, uint64_t *copies)
{
	struct vale_list *li = &vt->vt_list[dst];
	uint64_t n = 0;

	do {
		vale_list_append(vt, li, i);
		n++;
		i += vt->vt_frag[i].fg_nfrags;
	} while (i < vt->vt_nfrags && kind_same(lk, &vt->vt_frag[i]));
	*copies += n;
	return (i);
}

/* Append a frame in one form.  Returns whether it has that form. */
static bool
kind_append(struct vale_txq *vt, const struct lookup_kind *lk,
    unsigned int list, uint32_t frame, bool tagged)
{
	const uint32_t form = vale_rules_form(vt, frame, lk->lk_vlan, tagged);

	if (form != VALE_END)
		vale_list_append(vt, &vt->vt_list[list], form);
	return (form != VALE_END);
}

/* Append frames for port number `dst', in another form. */
static uint32_t
kind_other(struct vale_pair *pair, const struct lookup_kind *lk,
    unsigned int dst, uint32_t i, bool tagged, uint64_t *copies)
{
	struct vale_txq *vt = &pair->pa_tx;

	do {
		if (kind_append(vt, lk, dst, i, tagged))
			++*copies;
		else
			vale_pair_drop(pair, VALE_C_TX_DROP_FRAGS, 1,
			    pair->pa_port);
		i += vt->vt_frag[i].fg_nfrags;
	} while (i < vt->vt_nfrags && vale_rules_space(vt) &&
	    kind_same(lk, &vt->vt_frag[i]));
	return (i);
}

static uint32_t
kind_single(struct vale_pair *pair, const struct lookup_kind *lk,
    unsigned int dst, uint32_t i, uint64_t *copies)
{
	struct vale_txq *vt = &pair->pa_tx;
	const bool tagged = vale_vlan_tagged(&vt->vt_view->vi_rules[dst]->
	    rls_vlan, lk->lk_vlan);

	if (vt->vt_list[dst].li_first == VALE_END)
		vt->vt_dst[vt->vt_ndsts++] = dst;
	if (vale_rules_has_form(lk->lk_head, lk->lk_vlan, tagged))
		return (kind_plain(vt, lk, dst, i, copies));
	return (kind_other(pair, lk, dst, i, tagged, copies));
}

/* Count the ports that a flooded frame goes to, with a tag and without. */
static void
kind_members(const struct vale_view *vi, unsigned int src, unsigned int vlan,
    unsigned int n[2])
{
	unsigned int dst, i;

	n[false] = n[true] = 0;
	for (i = 0; i < vi->vi_nports; i++) {
		dst = vi->vi_active[i];
		if (vale_lookup_floods(vi, src, dst, vlan))
			n[vale_vlan_tagged(&vi->vi_rules[dst]->rls_vlan,
			    vlan)]++;
	}
}

/* Flood frames.  Ends, too, where there may be no space for another frame. */
static uint32_t
kind_flood(struct vale_pair *pair, const struct lookup_kind *lk, uint32_t i,
    uint64_t *copies)
{
	struct vale_txq *vt = &pair->pa_tx;
	struct vale_frag *fg;
	unsigned int n[2];
	bool made;

	if (lookup_blocks(pair->pa_port, lk->lk_head))
		return (kind_drop(pair, lk, i, VALE_C_TX_DROP_RESERVED));
	kind_members(vt->vt_view, pair->pa_port->vp_index, lk->lk_vlan, n);
	if (n[false] + n[true] == 0)
		return (kind_drop(pair, lk, i, VALE_C_TX_DROP_NODEST));
	vt->vt_vlan = lk->lk_vlan;
	do {
		fg = &vt->vt_frag[i];
		if (n[false] + n[true] > 1 && vt->vt_indirect && !vt->vt_copied)
			vale_txq_copy(vt, fg, fg->fg_nfrags);
		made = vale_rules_formable(vt, fg);
		if (made) {
			if (n[false] > 0)
				(void)kind_append(vt, lk, VALE_FDB_FLOOD, i,
				    false);
			if (n[true] > 0)
				(void)kind_append(vt, lk, VALE_FLOOD_TAGGED, i,
				    true);
			vale_count(pair, VALE_C_TX_FLOOD, 1);
			VALE_PROBE(pair, FLOOD, fg->fg_frame_len,
			    n[false] + n[true]);
			*copies += n[false] + n[true];
		} else
			vale_pair_drop(pair, VALE_C_TX_DROP_FRAGS, 1,
			    pair->pa_port);
		i += fg->fg_nfrags;
	} while (i < vt->vt_nfrags && vale_rules_space(vt) &&
	    (vt->vt_copied || !vale_txq_full(vt)) &&
	    kind_same(lk, &vt->vt_frag[i]));
	return (i);
}

/* Return why frames cannot go to `dst', which is no port that gets them. */
static enum vale_counter
kind_reason(const struct vale_port *port, unsigned int dst)
{
	if (dst == LOOKUP_REFUSED)
		return (VALE_C_TX_DROP_LIMIT);
	return (dst == port->vp_index ? VALE_C_TX_DROP_SELF :
	    VALE_C_TX_DROP_PRIVATE);
}

/*
 * Look up a part of a batch with VLANs or a guard, from the frame at `i' on.
 * Ends where vt_copy, or what vale_rules_form() needs, may not have space for
 * another frame; before frames that are flooded, unless these are the first;
 * and behind flooded frames.  Returns the next frame.
 */
static uint32_t
lookup_ruled(struct vale_pair *pair, uint32_t i)
{
	struct vale_txq *vt = &pair->pa_tx;
	const struct vale_view *vi = vt->vt_view;
	const struct vale_port *port = pair->pa_port;
	struct lookup_kind lk = { .lk_rules = vi->vi_rules[port->vp_index] };
	const uint32_t now_s = lookup_now_s(vt);
	enum vale_counter reason;
	enum vale_fdb_news news;
	uint64_t copies = 0;
	unsigned int dst;
	bool flood = false;

	vt->vt_ndsts = 0;
	vale_rules_begin(vt);
	while (i < vt->vt_nfrags && !flood && vale_rules_space(vt)) {
		kind_head(&lk, &vt->vt_frag[i]);
		reason = vale_rules_admit(lk.lk_rules, &vt->vt_frag[i],
		    lk.lk_head, vi->vi_nvlans > 0 ? &lk.lk_vlan : NULL);
		if (reason != 0) {
			i = kind_drop(pair, &lk, i, reason);
			continue;
		}
		dst = lookup_dst(pair, port, lk.lk_head, lk.lk_vlan, now_s,
		    &news);
		/* The destination is no member any more. */
		if (dst < VALE_FDB_FLOOD && !vale_vlan_member(
		    &vi->vi_rules[dst]->rls_vlan, lk.lk_vlan))
			dst = VALE_FDB_FLOOD;
		VALE_PROBE(pair, LOOKUP, dst, lk.lk_head);
		if (lookup_single(vi, port->vp_index, dst))
			i = kind_single(pair, &lk, dst, i, &copies);
		else if (dst != VALE_FDB_FLOOD)
			i = kind_drop(pair, &lk, i, kind_reason(port, dst));
		else if (vt->vt_ndsts == 0) {
			i = kind_flood(pair, &lk, i, &copies);
			flood = true;
		} else
			break;
	}
	vale_count(pair, VALE_C_TX_COPY, copies);
	return (i);
}

/* Drop the batch of a port that has no link. */
static void __attribute__((__noinline__))
lookup_down(struct vale_pair *pair)
{
	struct vale_txq *vt = &pair->pa_tx;
	uint32_t i, n = 0;

	for (i = 0; i < vt->vt_nfrags; i += vt->vt_frag[i].fg_nfrags)
		n++;
	vt->vt_nfrags = 0;
	vale_pair_drop(pair, VALE_C_TX_DROP_LINK, n, pair->pa_port);
}

uint32_t
vale_lookup_heads(struct vale_pair *pair)
{
	uint32_t dropped, first;

	first = vale_rules_copy(&pair->pa_tx, &dropped);
	if (dropped > 0)
		vale_pair_drop(pair, VALE_C_TX_DROP_FRAGS, dropped,
		    pair->pa_port);
	return (first);
}

void
vale_lookup_begin(struct vale_pair *pair)
{
	struct vale_txq *vt = &pair->pa_tx;

	if (vt->vt_view->vi_down[pair->pa_port->vp_index])
		lookup_down(pair);
	/* The rules may be newer than the batch. */
	if (vt->vt_indirect && !vt->vt_copied && !vt->vt_headed)
		(void)vale_lookup_heads(pair);
}

uint32_t
vale_lookup(struct vale_pair *pair, uint32_t i)
{
	return (pair->pa_tx.vt_view->vi_ruled[pair->pa_port->vp_index] ?
	    lookup_ruled(pair, i) : lookup_plain(pair, i));
}
