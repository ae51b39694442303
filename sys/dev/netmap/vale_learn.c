/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The decisions of vale_learn(4): see vale_learn.h.
 *
 * A frame between two stations whose frames its sender just had costs two
 * additions to counters that only the sender writes; others a visit to the
 * learning table or two.  With rules for private ports or mirrors each frame is
 * decided anew.
 *
 * What a lookup function of netmap's can ask for is one port, or all.  Where a
 * frame is for some, that is
 *
 *	flooded from a private port	all but private ports
 *	flooded, and there are mirrors	all
 *	for one port, with mirrors	that port, and mirrors
 *
 * those are asked for as copies, which the module makes by itself, at once:
 * before netmap delivers what else is in the batch.  In the second case netmap
 * could do it, but a mirror would then see a sender's frames out of order.
 *
 * Sets of ports change by whole words, and while frames are forwarded they
 * only grow (ports come): a frame at that moment sees the port or does not.
 */

#ifdef _KERNEL
#include <sys/param.h>
#include <sys/systm.h>
#else
#include <errno.h>
#include <string.h>
#endif

#include <dev/netmap/vale_learn.h>
#include <dev/netmap/vale_learn_probes.h>

#define	ADDR_LEN	6	/* bytes; the destination's comes first */

#define	LEARN_LOAD(p)		__atomic_load_n((p), __ATOMIC_RELAXED)
#define	LEARN_STORE(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELAXED)

static const char *const learn_counter_name[VALE_LEARN_NCOUNTERS] = {
#define	LEARN_NAME(id, name)	[VALE_LEARN_C_##id] = name,
	VALE_LEARN_COUNTERS(LEARN_NAME)
#undef LEARN_NAME
};

const char *
vale_learn_counter_name(enum vale_learn_counter c)
{
	return (learn_counter_name[c]);
}

static void
set_put(struct vale_learn_set *s, unsigned int port, bool in)
{
	uint64_t *word = &s->s_word[port / 64], bit = 1ULL << port % 64;

	LEARN_STORE(word, in ? *word | bit : *word & ~bit);
}

void
vale_learn_init(struct vale_learn *vl, const uint64_t seed[2])
{
	memset(vl, 0, sizeof(*vl));
	vale_fdb_init(&vl->vl_fdb, seed);
}

/* Find out again what a port is. */
static void
learn_classify(struct vale_learn *vl, unsigned int index)
{
	unsigned int r, value[VALE_LEARN_NRULES];

	for (r = 0; r < VALE_LEARN_NRULES; r++)
		value[r] = vale_learn_rule_match(r, vl->vl_rule[r],
		    vl->vl_port[index]->lp_name);
	/* A mirror gets everything, and isolation is between others. */
	if (value[VALE_LEARN_MIRROR])
		value[VALE_LEARN_PRIVATE] = 0;
	set_put(&vl->vl_private, index, value[VALE_LEARN_PRIVATE]);
	set_put(&vl->vl_mirror, index, value[VALE_LEARN_MIRROR]);
	vale_fdb_set_limit(&vl->vl_fdb, index, value[VALE_LEARN_LIMIT]);
}

size_t
vale_learn_port_size(unsigned int rings)
{
	return (sizeof(struct vale_learn_port) +
	    rings * sizeof(struct vale_learn_lane));
}

void
vale_learn_port_add(struct vale_learn *vl, unsigned int index,
    const char *name, unsigned int rings, struct vale_learn_port *lp)
{
	size_t len = strlen(name);

	if (len >= sizeof(lp->lp_name))
		len = sizeof(lp->lp_name) - 1;
	memcpy(lp->lp_name, name, len);
	lp->lp_rings = rings;
	__atomic_store_n(&vl->vl_port[index], lp, __ATOMIC_RELEASE);
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

/* A frame from `port' ends here. */
static unsigned int
learn_drop(const struct vale_learn *vl, struct vale_learn_lane *lane,
    unsigned int port, enum vale_learn_counter why)
{
	vale_learn_lane_count(lane, why, 1);
	VALE_LEARN_PROBE4(drop, vl->vl_port[port]->lp_name,
	    learn_counter_name[why], 1, vl->vl_port[port]->lp_name);
	return (VALE_LEARN_NONE);
}

/*
 * Who gets a copy of a frame for one port, or for all; returns who gets it
 * from netmap.
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
		set.s_word[i] = LEARN_LOAD(&vl->vl_mirror.s_word[i]);
		any |= set.s_word[i];
	}
	if (dst == VALE_FDB_FLOOD && (any != 0 || mine)) {
		dst = VALE_LEARN_NONE;
		for (i = 0; i < VALE_LEARN_WORDS; i++) {
			set.s_word[i] = LEARN_LOAD(&vl->vl_present.s_word[i]);
			if (mine)
				set.s_word[i] &=
				    ~LEARN_LOAD(&vl->vl_private.s_word[i]);
		}
		set_put(&set, port, false);
	} else if (any == 0)
		return (dst);
	*copies = set;
	return (dst | VALE_LEARN_COPIES);
}

/* Where to, where there are rules. */
static unsigned int
learn_special(const struct vale_learn *vl, struct vale_learn_lane *lane,
    unsigned int port, unsigned int dst, struct vale_learn_set *copies)
{
	if (dst != VALE_FDB_FLOOD &&
	    vale_learn_set_has(&vl->vl_private, port) &&
	    vale_learn_set_has(&vl->vl_private, dst))
		return (learn_drop(vl, lane, port, VALE_LEARN_C_DROP_PRIVATE));
	if (dst == VALE_FDB_FLOOD)
		vale_learn_lane_count(lane, VALE_LEARN_C_FLOOD, 1);
	return (learn_copies(vl, port, dst, copies));
}

/* Where to, where there are none; `known': the source was. */
static unsigned int
learn_plain(struct vale_learn_lane *lane, const uint8_t *addrs,
    unsigned int dst, bool known, uint32_t now_s, uint32_t changes)
{
	struct vale_learn_way *way = vale_learn_way(lane, addrs);

	if (dst == VALE_FDB_FLOOD)
		vale_learn_lane_count(lane, VALE_LEARN_C_FLOOD, 1);
	else if (known) {
		memcpy(way->lw_addrs, addrs, sizeof(way->lw_addrs));
		way->lw_now_s = now_s;
		way->lw_changes = changes;
		way->lw_dst = dst;
	}
	return (dst);
}

/* Learn the source, if that is not what was just done. */
static enum vale_fdb_news
learn_source(struct vale_learn *vl, struct vale_learn_lane *lane,
    unsigned int port, const uint8_t *addrs, uint32_t now_s)
{
	const struct vale_learn_way *way = vale_learn_way(lane, addrs);
	enum vale_fdb_news news;

	if (vale_learn_same_source(addrs, way->lw_addrs) &&
	    vale_learn_holds(vl, way, now_s))
		return (VALE_FDB_KNOWN);
	news = vale_fdb_learn(&vl->vl_fdb, addrs + ADDR_LEN, port, now_s);
	if (news == VALE_FDB_LEARNED || news == VALE_FDB_MOVED) {
		vale_learn_lane_count(lane, news == VALE_FDB_LEARNED ?
		    VALE_LEARN_C_LEARNED : VALE_LEARN_C_MOVED, 1);
		VALE_LEARN_PROBE3(learn, vl->vl_port[port]->lp_name,
		    addrs + ADDR_LEN, news == VALE_FDB_MOVED);
	}
	return (news);
}

unsigned int
vale_learn_decide(struct vale_learn *vl, struct vale_learn_lane *lane,
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
	news = learn_source(vl, lane, port, addrs, now_s);
	if (news == VALE_FDB_REFUSED)
		goto drop;
	dst = vale_fdb_lookup(&vl->vl_fdb, addrs, now_s);
	drop = VALE_LEARN_C_DROP_SELF;
	if (dst == port)
		goto drop;
	if (vl->vl_special)
		return (learn_special(vl, lane, port, dst, copies));
	return (learn_plain(lane, addrs, dst, news == VALE_FDB_KNOWN, now_s,
	    changes));

drop:
	return (learn_drop(vl, lane, port, drop));
}

/* There is a word in the list. */
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
	unsigned int c, ring;

	lp = __atomic_load_n(&vl->vl_port[index], __ATOMIC_ACQUIRE);
	memset(info, 0, sizeof(*info));
	memcpy(info->pi_name, lp->lp_name, sizeof(info->pi_name));
	info->pi_private = vale_learn_set_has(&vl->vl_private, index);
	info->pi_mirror = vale_learn_set_has(&vl->vl_mirror, index);
	info->pi_limit = LEARN_LOAD(&vl->vl_fdb.f_limit[index]);
	info->pi_used = LEARN_LOAD(&vl->vl_fdb.f_used[index]);
	for (ring = 0; ring < lp->lp_rings; ring++) {
		for (c = 0; c < VALE_LEARN_NCOUNTERS; c++)
			info->pi_counter[c] +=
			    LEARN_LOAD(&lp->lp_lane[ring].ln_counter[c]);
	}
}
