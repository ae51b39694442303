/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The policy of vale_learn(4): see vale_learn.h.
 *
 * A frame whose addresses are those of a recent frame costs two additions to
 * counters that only its sender writes; any other costs one or two lookups in
 * the table.  If there are rules for private or mirror ports, results are not
 * cached.
 *
 * netmap gives the free slots of a receive ring to the sender that asks first,
 * and nobody is told which frames it drops.  So that none starves, the module
 * looks at the ring before, and while frames are refused admits those in the
 * sender's share: vale_learn_admit().
 *
 * A lookup function of netmap's returns one port, or all.  Some frames go to
 * several ports:
 *
 *	flooded by a private port	all ports that are not private
 *	flooded, and there are mirrors	all ports
 *	unicast, and there are mirrors	the port and the mirrors
 *
 * The module copies these to the ports of a set, immediately, before netmap
 * delivers the rest of the batch.  Netmap itself could flood in the second
 * case; a mirror would then get a sender's frames out of order.
 *
 * A set of ports is stored word by word.  While threads forward, sets only
 * grow, when a port is added; a frame may or may not find the new port.
 */

#include <sys/param.h>
#include <sys/systm.h>

#include <dev/netmap/vale_learn.h>
#include <dev/netmap/vale_learn_probes.h>

#define	ADDR_LEN	6	/* bytes; the destination comes first */

const struct counter_row vale_learn_counter_table[VALE_LEARN_NCOUNTERS] = {
	COUNTER_ROWS(VALE_LEARN_COUNTERS)
};

static void
set_put(struct vale_learn_set *s, unsigned int port, bool in)
{
	uint64_t *word = &s->s_word[port / 64], bit = 1ULL << port % 64;

	MPASS(port < VALE_FDB_PORTS);
	atomic_store_64(word, in ? *word | bit : *word & ~bit);
}

void
vale_learn_init(struct vale_learn *vl, const uint64_t seed[2])
{
	memset(vl, 0, sizeof(*vl));
	vale_fdb_init(&vl->vl_fdb, seed);
}

/*
 * Divide a rate among a port's rings, because each is synced by a thread of its
 * own.  Every part is at least 1, for 0 would be none.
 */
static void
learn_set_rate(struct vale_learn_port *lp, const struct vale_rate_conf *conf)
{
	struct vale_rate_conf part = *conf;
	unsigned int i;
	int error;

	part.rc_rate = howmany(conf->rc_rate, lp->lp_rings);
	part.rc_burst = howmany(conf->rc_burst, lp->lp_rings);
	for (i = 0; i < lp->lp_rings; i++) {
		error = vale_rate_set(&lp->lp_ring[i].lr_rate, &part);
		MPASS(error == 0);
		(void)error;
	}
}

/* Apply the rules to a port. */
static void
learn_classify(struct vale_learn *vl, unsigned int index)
{
	union vale_learn_value value[VALE_LEARN_NRULES];
	bool mirror;
	unsigned int r;

	for (r = 0; r < VALE_LEARN_NRULES; r++)
		vale_learn_rule_match(r, vl->vl_rule[r],
		    vl->vl_port[index]->lp_name, &value[r]);
	/* A mirror gets everything, and isolation is between others. */
	mirror = value[VALE_LEARN_MIRROR].v_number;
	set_put(&vl->vl_private, index,
	    !mirror && value[VALE_LEARN_PRIVATE].v_number);
	set_put(&vl->vl_mirror, index, mirror);
	vale_fdb_set_limit(&vl->vl_fdb, index,
	    value[VALE_LEARN_LIMIT].v_number);
	learn_set_rate(vl->vl_port[index], &value[VALE_LEARN_RATE].v_rate);
}

size_t
vale_learn_port_size(unsigned int rings, uint32_t slots)
{
	return (sizeof(struct vale_learn_port) +
	    rings * sizeof(struct vale_learn_ring) + vale_share_size(slots));
}

void
vale_learn_port_add(struct vale_learn *vl, unsigned int index,
    const char *name, unsigned int rings, uint32_t slots,
    struct vale_learn_port *lp)
{
	size_t len = strlen(name);

	MPASS(index < VALE_FDB_PORTS && vl->vl_port[index] == NULL);
	MPASS(rings >= 1);
	if (len >= sizeof(lp->lp_name))
		len = sizeof(lp->lp_name) - 1;
	memcpy(lp->lp_name, name, len);
	lp->lp_rings = rings;
	if (slots > 0)
		vale_share_init(&lp->lp_share, slots, &lp->lp_ring[rings],
		    NULL);
	atomic_store_rel_ptr((uintptr_t *)&vl->vl_port[index], (uintptr_t)lp);
	learn_classify(vl, index);
	set_put(&vl->vl_present, index, true);
}

struct vale_learn_port *
vale_learn_port_remove(struct vale_learn *vl, unsigned int index)
{
	struct vale_learn_port *lp = vl->vl_port[index];

	if (lp == NULL)
		return (NULL);
	set_put(&vl->vl_present, index, false);
	set_put(&vl->vl_private, index, false);
	set_put(&vl->vl_mirror, index, false);
	vl->vl_port[index] = NULL;
	vale_fdb_flush(&vl->vl_fdb, index);
	return (lp);
}

/* Drop a frame from `port'. */
static unsigned int
learn_drop(const struct vale_learn *vl, struct vale_learn_ring *lr,
    unsigned int port, enum vale_learn_counter why)
{
	vale_learn_count(lr, why, 1);
	VALE_LEARN_PROBE4(drop, vl->vl_port[port]->lp_name,
	    vale_learn_counter_table[why].cr_name, 1,
	    vl->vl_port[port]->lp_name);
	return (VALE_LEARN_NONE);
}

/*
 * The ports that get a copy of a frame for `dst', one port or VALE_FDB_FLOOD.
 * Returns the destination for netmap.
 */
static unsigned int
learn_copies(const struct vale_learn *vl, unsigned int port, unsigned int dst,
    struct vale_learn_set *copies)
{
	struct vale_learn_set set;
	uint64_t any = 0;
	unsigned int i;
	bool mine = vale_learn_set_has(&vl->vl_private, port);

	for (i = 0; i < VALE_LEARN_WORDS; i++) {
		set.s_word[i] = atomic_load_64(&vl->vl_mirror.s_word[i]);
		any |= set.s_word[i];
	}
	if (dst == VALE_FDB_FLOOD && (any != 0 || mine)) {
		dst = VALE_LEARN_NONE;
		for (i = 0; i < VALE_LEARN_WORDS; i++) {
			set.s_word[i] =
			    atomic_load_64(&vl->vl_present.s_word[i]);
			if (mine)
				set.s_word[i] &=
				    ~atomic_load_64(&vl->vl_private.s_word[i]);
		}
		set_put(&set, port, false);
	} else if (any == 0)
		return (dst);
	*copies = set;
	return (dst | VALE_LEARN_COPIES);
}

/* The destination if there are rules. */
static unsigned int
learn_special(const struct vale_learn *vl, struct vale_learn_ring *lr,
    unsigned int port, unsigned int dst, struct vale_learn_set *copies)
{
	if (dst != VALE_FDB_FLOOD &&
	    vale_learn_set_has(&vl->vl_private, port) &&
	    vale_learn_set_has(&vl->vl_private, dst))
		return (learn_drop(vl, lr, port, VALE_LEARN_C_DROP_PRIVATE));
	if (dst == VALE_FDB_FLOOD)
		vale_learn_count(lr, VALE_LEARN_C_FLOOD, 1);
	return (learn_copies(vl, port, dst, copies));
}

/* The destination if there are none.  `known': the source is in the table. */
static unsigned int
learn_plain(struct vale_learn_ring *lr, const uint8_t *addrs,
    unsigned int dst, bool known, uint32_t now_s, uint32_t changes)
{
	struct vale_learn_result *re = vale_learn_result(lr, addrs);

	if (dst == VALE_FDB_FLOOD)
		vale_learn_count(lr, VALE_LEARN_C_FLOOD, 1);
	else if (known) {
		memcpy(re->re_addrs, addrs, sizeof(re->re_addrs));
		re->re_now_s = now_s;
		re->re_changes = changes;
		re->re_dst = dst;
	}
	return (dst);
}

/* Learn the source, except if a recent frame had the same one. */
static enum vale_fdb_news
learn_source(struct vale_learn *vl, struct vale_learn_ring *lr,
    unsigned int port, const uint8_t *addrs, uint32_t now_s)
{
	const struct vale_learn_result *re = vale_learn_result(lr, addrs);
	enum vale_fdb_news news;

	if (vale_learn_same_source(addrs, re->re_addrs) &&
	    vale_learn_valid(vl, re, now_s))
		return (VALE_FDB_KNOWN);
	news = vale_fdb_learn(&vl->vl_fdb, addrs + ADDR_LEN, 0, port, now_s);
	if (news == VALE_FDB_LEARNED || news == VALE_FDB_MOVED) {
		vale_learn_count(lr, news == VALE_FDB_LEARNED ?
		    VALE_LEARN_C_LEARNED : VALE_LEARN_C_MOVED, 1);
		VALE_LEARN_PROBE3(learn, vl->vl_port[port]->lp_name,
		    addrs + ADDR_LEN, news == VALE_FDB_MOVED);
	}
	return (news);
}

bool
vale_learn_exceeds(struct vale_learn *vl, struct vale_learn_ring *lr,
    unsigned int port, uint32_t frames, uint64_t made, uint32_t bytes,
    uint64_t now_ns)
{
	vale_rate_refill(&lr->lr_rate, now_ns);
	if (vale_rate_frame(&lr->lr_rate, frames, made))
		return (false);
	vale_learn_count(lr, VALE_LEARN_C_FRAME, 1);
	vale_learn_count(lr, VALE_LEARN_C_BYTE, bytes);
	(void)learn_drop(vl, lr, port, VALE_LEARN_C_DROP_RATE);
	return (true);
}

unsigned int
vale_learn_decide(struct vale_learn *vl, struct vale_learn_ring *lr,
    unsigned int port, const uint8_t *addrs, uint32_t len, uint32_t now_s,
    struct vale_learn_set *copies)
{
	enum vale_learn_counter drop;
	enum vale_fdb_news news;
	uint32_t changes = vale_fdb_changes(&vl->vl_fdb);
	unsigned int dst;

	drop = VALE_LEARN_C_DROP_RUNT;
	if (len < VALE_LEARN_HEADER)
		goto drop;
	drop = VALE_LEARN_C_DROP_FAULT;
	if (addrs == NULL)
		goto drop;
	drop = VALE_LEARN_C_DROP_MIRROR;
	if (vale_learn_set_has(&vl->vl_mirror, port))
		goto drop;
	drop = VALE_LEARN_C_DROP_LIMIT;
	news = learn_source(vl, lr, port, addrs, now_s);
	if (news == VALE_FDB_REFUSED)
		goto drop;
	dst = vale_fdb_lookup(&vl->vl_fdb, addrs, 0, now_s);
	drop = VALE_LEARN_C_DROP_SELF;
	if (dst == port)
		goto drop;
	if (vl->vl_special)
		return (learn_special(vl, lr, port, dst, copies));
	return (learn_plain(lr, addrs, dst, news == VALE_FDB_KNOWN, now_s,
	    changes));

drop:
	return (learn_drop(vl, lr, port, drop));
}

bool
vale_learn_admit(struct vale_learn *vl, struct vale_learn_ring *lr,
    unsigned int port, unsigned int dst, uint32_t used, uint32_t slots)
{
	struct vale_share *sh = vale_learn_share(vl, dst);
	uint32_t max = UINT32_MAX;

	/* What netmap has not yet put into the ring. */
	used += lr->lr_pending;
	if (vale_share_on(sh)) {
		max = vale_share_max(sh, port, used, slots);
		used = MAX(used, sh->sh_total);
	}
	if (slots > max || used + slots > sh->sh_slots) {
		vale_share_refused(sh, port);
		(void)learn_drop(vl, lr, port, VALE_LEARN_C_DROP_SHARE);
		return (false);
	}
	if (vale_share_on(sh))
		vale_share_take(sh, port, slots);
	lr->lr_pending += slots;
	return (true);
}

/* Whether the list is not empty. */
static bool
learn_ruled(const struct vale_learn *vl, enum vale_learn_rule rule)
{
	char word[VALE_LEARN_WORD];
	const char *text = vl->vl_rule[rule];

	return (vale_learn_word(&text, word) == 1);
}

int
vale_learn_rule_set(struct vale_learn *vl, enum vale_learn_rule rule,
    const char *text)
{
	size_t len = strlen(text);
	unsigned int i;

	if (len >= VALE_LEARN_TEXT || !vale_learn_rule_valid(rule, text))
		return (EINVAL);
	memcpy(vl->vl_rule[rule], text, len + 1);
	vl->vl_special = learn_ruled(vl, VALE_LEARN_PRIVATE) ||
	    learn_ruled(vl, VALE_LEARN_MIRROR);
	for (i = 0; i < VALE_FDB_PORTS; i++) {
		if (vl->vl_port[i] == NULL)
			continue;
		learn_classify(vl, i);
		if (vale_learn_set_has(&vl->vl_mirror, i))
			vale_fdb_flush(&vl->vl_fdb, i);
	}
	return (0);
}

void
vale_learn_port_info(const struct vale_learn *vl, unsigned int index,
    struct vale_learn_port_info *info)
{
	const struct vale_learn_port *lp;
	union vale_learn_value value;
	unsigned int c, ring;

	lp = (const struct vale_learn_port *)
	    atomic_load_acq_ptr((const uintptr_t *)&vl->vl_port[index]);
	MPASS(lp != NULL);
	memset(info, 0, sizeof(*info));
	memcpy(info->lpi_name, lp->lp_name, sizeof(info->lpi_name));
	info->lpi_private = vale_learn_set_has(&vl->vl_private, index);
	info->lpi_mirror = vale_learn_set_has(&vl->vl_mirror, index);
	info->lpi_limit = atomic_load_32(&vl->vl_fdb.fdb_limit[index]);
	info->lpi_used = atomic_load_32(&vl->vl_fdb.fdb_used[index]);
	vale_learn_rule_match(VALE_LEARN_RATE, vl->vl_rule[VALE_LEARN_RATE],
	    lp->lp_name, &value);
	info->lpi_rate = value.v_rate;
	for (ring = 0; ring < lp->lp_rings; ring++) {
		for (c = 0; c < VALE_LEARN_NCOUNTERS; c++)
			info->lpi_counter[c] +=
			    atomic_load_64(&lp->lp_ring[ring].lr_counter[c]);
	}
}
