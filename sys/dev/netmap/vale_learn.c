/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The policy of vale_learn(4): see vale_learn.h.
 *
 * A frame with the addresses of a recent frame costs two additions to counters
 * that only its sender writes; any other costs one or two lookups in the table.
 * If there are rules for private or mirror ports, or VLANs, results are not
 * cached.
 *
 * netmap gives the free slots of a receive ring to the sender that asks first,
 * and drops the frames of the others.  No sender must starve, so the module looks
 * at the ring before, and while frames are refused admits frames in the sender's
 * share: vale_learn_admit().
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
 * Ruled frames (vale_learn.h) are copied to all their ports.  A guard decides
 * before anything is learned; each VLAN is learned and flooded by itself.
 * Whether a ring's frames are ruled is noted in the ring: others pay a test.
 *
 * A set of ports is stored word by word.  While threads forward, sets only
 * grow, when a port is added; a frame may or may not find the new port.  A
 * thread that finds the port finds its state, too.
 */

#include <sys/param.h>
#include <sys/systm.h>

#include <dev/netmap/vale_learn.h>
#include <dev/netmap/vale_learn_probes.h>

#define	ADDR_LEN	6	/* bytes; the destination comes first */
#define	TYPE		12	/* offset of a frame's type */

const struct counter_row vale_learn_counter_table[VALE_LEARN_NCOUNTERS] = {
	COUNTER_ROWS(VALE_LEARN_COUNTERS)
};

static void
set_put(struct vale_learn_set *s, unsigned int port, bool in)
{
	uint64_t *word = &s->s_word[port / 64], bit = 1ULL << port % 64;

	MPASS(port < VALE_FDB_PORTS);
	atomic_store_rel_64(word, in ? *word | bit : *word & ~bit);
}

void
vale_learn_init(struct vale_learn *vl, const uint64_t seed[2])
{
	memset(vl, 0, sizeof(*vl));
	vl->vl_reserved = true;
	vale_fdb_init(&vl->vl_fdb, seed);
}

/*
 * Divide a rate among a port's rings, because each is synced by a thread of its
 * own.  Every part is at least 1, for 0 would be no limit.
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

/* Set *value to the value of a rule for a port. */
static void
learn_match(const struct vale_learn *vl, const struct vale_learn_port *lp,
    enum vale_learn_rule rule, union vale_learn_value *value)
{
	vale_learn_rule_match(rule, vl->vl_rule[rule], lp->lp_name, value);
}

static void
learn_set_vlans(const struct vale_learn *vl, struct vale_learn_port *lp)
{
	union vale_learn_value value;

	learn_match(vl, lp, VALE_LEARN_TRUNK, &value);
	lp->lp_vlan = value.v_trunk;
	if (lp->lp_vlan.vln_mode == VALE_VLAN_TRUNK) {
		learn_match(vl, lp, VALE_LEARN_NATIVE, &value);
		lp->lp_vlan.vln_native = value.v_number;
		return;
	}
	learn_match(vl, lp, VALE_LEARN_VLAN, &value);
	if (value.v_number != 0)
		vale_vlan_access(&lp->lp_vlan, value.v_number);
}

static void
learn_set_guard(const struct vale_learn *vl, struct vale_learn_port *lp)
{
	struct vale_guard *gd = &lp->lp_guard;
	union vale_learn_value value;

	learn_match(vl, lp, VALE_LEARN_SOURCE, &value);
	*gd = value.v_guard;
	learn_match(vl, lp, VALE_LEARN_IP, &value);
	gd->gd_nprefixes = value.v_guard.gd_nprefixes;
	memcpy(gd->gd_prefix, value.v_guard.gd_prefix, sizeof(gd->gd_prefix));
}

/* Apply the rules to a port. */
static void
learn_classify(struct vale_learn *vl, unsigned int index,
    struct vale_learn_port *lp)
{
	union vale_learn_value value;
	bool mirror;

	/* A mirror gets everything, and isolation is between others. */
	learn_match(vl, lp, VALE_LEARN_MIRROR, &value);
	mirror = value.v_number;
	learn_match(vl, lp, VALE_LEARN_PRIVATE, &value);
	set_put(&vl->vl_private, index, !mirror && value.v_number);
	set_put(&vl->vl_mirror, index, mirror);
	learn_match(vl, lp, VALE_LEARN_LIMIT, &value);
	vale_fdb_set_limit(&vl->vl_fdb, index, value.v_number);
	learn_match(vl, lp, VALE_LEARN_RATE, &value);
	learn_set_rate(lp, &value.v_rate);
	memset(&lp->lp_vlan, 0, sizeof(lp->lp_vlan));
	memset(&lp->lp_guard, 0, sizeof(lp->lp_guard));
	if (!mirror) {
		learn_set_vlans(vl, lp);
		learn_set_guard(vl, lp);
	}
}

/* Note in a port's rings whether their frames are ruled. */
static void
learn_set_ruled(const struct vale_learn *vl, struct vale_learn_port *lp)
{
	const bool ruled = vl->vl_nvlans > 0 || lp->lp_guard.gd_naddrs > 0 ||
	    lp->lp_guard.gd_nprefixes > 0;
	unsigned int i;

	for (i = 0; i < lp->lp_rings; i++)
		atomic_store_32(&lp->lp_ring[i].lr_ruled, ruled);
}

/* Set how many ports are in VLANs: all rings' frames may be ruled then. */
static void
learn_set_nvlans(struct vale_learn *vl, uint32_t n)
{
	unsigned int i;

	atomic_store_32(&vl->vl_nvlans, n);
	for (i = 0; i < VALE_FDB_PORTS; i++) {
		if (vl->vl_port[i] != NULL)
			learn_set_ruled(vl, vl->vl_port[i]);
	}
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
	/* The guard is in force before the port's first frame. */
	learn_classify(vl, index, lp);
	if (lp->lp_vlan.vln_mode != VALE_VLAN_ANY)
		learn_set_nvlans(vl, vl->vl_nvlans + 1);
	learn_set_ruled(vl, lp);
	atomic_store_rel_ptr((uintptr_t *)&vl->vl_port[index], (uintptr_t)lp);
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
	if (lp->lp_vlan.vln_mode != VALE_VLAN_ANY)
		learn_set_nvlans(vl, vl->vl_nvlans - 1);
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

void
vale_learn_refuse(const struct vale_learn *vl, struct vale_learn_ring *lr,
    unsigned int port, uint32_t bytes, enum vale_learn_counter why)
{
	vale_learn_count(lr, VALE_LEARN_C_FRAME, 1);
	vale_learn_count(lr, VALE_LEARN_C_BYTE, bytes);
	(void)learn_drop(vl, lr, port, why);
}

void
vale_learn_set_reserved(struct vale_learn *vl, bool pass)
{
	atomic_store_bool(&vl->vl_reserved, pass);
}

/* Return whether frames with this destination must not pass. */
static bool
learn_blocks(const struct vale_learn *vl, const uint8_t *addrs)
{
	static const uint8_t reserved[] = { 0x01, 0x80, 0xc2, 0, 0 };

	return (!atomic_load_bool(&vl->vl_reserved) &&
	    memcmp(addrs, reserved, sizeof(reserved)) == 0 &&
	    addrs[sizeof(reserved)] <= 0x0f);
}

/* Set *set to the ports that a flooded frame goes to. */
static void
learn_flood(const struct vale_learn *vl, unsigned int port,
    struct vale_learn_set *set)
{
	const bool mine = vale_learn_set_has(&vl->vl_private, port);
	unsigned int i;

	for (i = 0; i < VALE_LEARN_WORDS; i++) {
		set->s_word[i] = atomic_load_acq_64(&vl->vl_present.s_word[i]);
		if (mine)
			set->s_word[i] &=
			    ~atomic_load_64(&vl->vl_private.s_word[i]);
	}
	set_put(set, port, false);
}

/*
 * Set *copies to the ports that get a copy of a frame for `dst', one port or
 * VALE_FDB_FLOOD.  Returns the destination for netmap.
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
		learn_flood(vl, port, &set);
	} else if (any == 0)
		return (dst);
	*copies = set;
	return (dst | VALE_LEARN_COPIES);
}

/* Return whether both ports are private. */
static bool
learn_isolated(const struct vale_learn *vl, unsigned int a, unsigned int b)
{
	return (vale_learn_set_has(&vl->vl_private, a) &&
	    vale_learn_set_has(&vl->vl_private, b));
}

/* Return the destination if there are rules. */
static unsigned int
learn_special(const struct vale_learn *vl, struct vale_learn_ring *lr,
    unsigned int port, unsigned int dst, struct vale_learn_set *copies)
{
	if (dst != VALE_FDB_FLOOD && learn_isolated(vl, port, dst))
		return (learn_drop(vl, lr, port, VALE_LEARN_C_DROP_PRIVATE));
	if (dst == VALE_FDB_FLOOD)
		vale_learn_count(lr, VALE_LEARN_C_FLOOD, 1);
	return (learn_copies(vl, port, dst, copies));
}

/* Return the destination without rules; `known': the table has the source. */
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

/* Learn the source of a frame. */
static enum vale_fdb_news
learn_station(struct vale_learn *vl, struct vale_learn_ring *lr,
    unsigned int port, const uint8_t *addrs, unsigned int vlan, uint32_t now_s)
{
	enum vale_fdb_news news;

	news = vale_fdb_learn(&vl->vl_fdb, addrs + ADDR_LEN, vlan, port, now_s);
	if (news == VALE_FDB_LEARNED || news == VALE_FDB_MOVED) {
		vale_learn_count(lr, news == VALE_FDB_LEARNED ?
		    VALE_LEARN_C_LEARNED : VALE_LEARN_C_MOVED, 1);
		VALE_LEARN_PROBE3(learn, vl->vl_port[port]->lp_name,
		    addrs + ADDR_LEN, news == VALE_FDB_MOVED);
	}
	return (news);
}

/* Learn the source, unless a recent frame had the same. */
static enum vale_fdb_news
learn_source(struct vale_learn *vl, struct vale_learn_ring *lr,
    unsigned int port, const uint8_t *addrs, uint32_t now_s)
{
	const struct vale_learn_result *re = vale_learn_result(lr, addrs);

	if (vale_learn_same_source(addrs, re->re_addrs) &&
	    vale_learn_valid(vl, re, now_s))
		return (VALE_FDB_KNOWN);
	return (learn_station(vl, lr, port, addrs, 0, now_s));
}

bool
vale_learn_exceeds(struct vale_learn *vl, struct vale_learn_ring *lr,
    unsigned int port, uint32_t frames, uint64_t made, uint32_t bytes,
    uint64_t now_ns)
{
	vale_rate_refill(&lr->lr_rate, now_ns);
	if (vale_rate_frame(&lr->lr_rate, frames, made))
		return (false);
	vale_learn_refuse(vl, lr, port, bytes, VALE_LEARN_C_DROP_RATE);
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
	drop = VALE_LEARN_C_DROP_RESERVED;
	if (dst == VALE_FDB_FLOOD && learn_blocks(vl, addrs))
		goto drop;
	if (vl->vl_special)
		return (learn_special(vl, lr, port, dst, copies));
	return (learn_plain(lr, addrs, dst, news == VALE_FDB_KNOWN, now_s,
	    changes));

drop:
	return (learn_drop(vl, lr, port, drop));
}

/* Return the reason to drop a frame of a port, or 0, and the frame's VLAN. */
static enum vale_learn_counter
learn_check(const struct vale_learn *vl, const struct vale_learn_port *lp,
    const uint8_t *frame, uint32_t len, unsigned int *vlan)
{
	const uint16_t type = frame[TYPE] << 8 | frame[TYPE + 1];
	uint16_t tci = 0;

	*vlan = 0;
	switch (vale_guard_check(&lp->lp_guard, frame,
	    MIN(len, VALE_GUARD_HEAD))) {
	case VALE_GUARD_SOURCE:
		return (VALE_LEARN_C_DROP_SOURCE);
	case VALE_GUARD_IP:
		return (VALE_LEARN_C_DROP_IP);
	case VALE_GUARD_PASS:
		break;
	}
	/* A switch without VLANs does not look at tags. */
	if (atomic_load_32(&vl->vl_nvlans) == 0)
		return (0);
	if (type == VALE_VLAN_TYPE) {
		/* The tag is cut off. */
		if (len < VALE_LEARN_HEADER + VALE_VLAN_TAG)
			return (VALE_LEARN_C_DROP_VLAN);
		tci = frame[TYPE + 2] << 8 | frame[TYPE + 3];
	}
	*vlan = vale_vlan_of(&lp->lp_vlan, type, tci);
	return (*vlan == VALE_VLAN_REFUSED ? VALE_LEARN_C_DROP_VLAN : 0);
}

/* Put a port into one of the plan's sets, if it is a member of the VLAN. */
static void
plan_put(const struct vale_learn *vl, struct vale_learn_plan *plan,
    unsigned int port)
{
	const struct vale_vlan *vn = &vl->vl_port[port]->lp_vlan;

	if (vale_vlan_member(vn, plan->lpn_vlan))
		set_put(&plan->lpn_to[vale_vlan_tagged(vn, plan->lpn_vlan)],
		    port, true);
}

/* Divide the ports that get a frame for `dst' by the form that they want. */
static void
plan_make(const struct vale_learn *vl, unsigned int port, unsigned int dst,
    struct vale_learn_plan *plan)
{
	struct vale_learn_set set;
	unsigned int i;
	uint64_t word;

	memset(plan->lpn_to, 0, sizeof(plan->lpn_to));
	if (dst == VALE_FDB_FLOOD)
		learn_flood(vl, port, &set);
	else {
		for (i = 0; i < VALE_LEARN_WORDS; i++)
			set.s_word[i] = atomic_load_acq_64(&vl->vl_present.
			    s_word[i]) & atomic_load_64(&vl->vl_mirror.
			    s_word[i]);
		set_put(&set, dst, true);
	}
	for (i = 0; i < VALE_LEARN_WORDS; i++) {
		for (word = set.s_word[i]; word != 0; word &= word - 1)
			plan_put(vl, plan, i * 64 + __builtin_ctzll(word));
	}
}

unsigned int
vale_learn_rule_frame(struct vale_learn *vl, struct vale_learn_ring *lr,
    unsigned int port, const uint8_t *frame, uint32_t len, uint32_t now_s,
    struct vale_learn_plan *plan)
{
	const struct vale_learn_port *lp = vl->vl_port[port];
	enum vale_learn_counter drop;
	unsigned int dst;

	MPASS(len >= VALE_LEARN_HEADER);
	vale_learn_count(lr, VALE_LEARN_C_FRAME, 1);
	vale_learn_count(lr, VALE_LEARN_C_BYTE, len);
	drop = VALE_LEARN_C_DROP_MIRROR;
	if (vale_learn_set_has(&vl->vl_mirror, port))
		goto drop;
	drop = learn_check(vl, lp, frame, len, &plan->lpn_vlan);
	if (drop != 0)
		goto drop;
	drop = VALE_LEARN_C_DROP_LIMIT;
	if (learn_station(vl, lr, port, frame, plan->lpn_vlan, now_s) ==
	    VALE_FDB_REFUSED)
		goto drop;
	dst = vale_fdb_lookup(&vl->vl_fdb, frame, plan->lpn_vlan, now_s);
	/* The destination is no member any more. */
	if (dst != VALE_FDB_FLOOD && !vale_vlan_member(
	    &vl->vl_port[dst]->lp_vlan, plan->lpn_vlan))
		dst = VALE_FDB_FLOOD;
	drop = VALE_LEARN_C_DROP_SELF;
	if (dst == port)
		goto drop;
	drop = VALE_LEARN_C_DROP_PRIVATE;
	if (dst != VALE_FDB_FLOOD && learn_isolated(vl, port, dst))
		goto drop;
	drop = VALE_LEARN_C_DROP_RESERVED;
	if (dst == VALE_FDB_FLOOD && learn_blocks(vl, frame))
		goto drop;
	if (dst == VALE_FDB_FLOOD)
		vale_learn_count(lr, VALE_LEARN_C_FLOOD, 1);
	plan_make(vl, port, dst, plan);
	return (dst);

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

/* Return whether one of `n' lists is not empty. */
static bool
learn_any(const struct vale_learn *vl, const enum vale_learn_rule *rule,
    unsigned int n)
{
	while (n-- > 0) {
		if (!vale_learn_rule_empty(vl->vl_rule[rule[n]]))
			return (true);
	}
	return (false);
}

/* Lists that matter before a port has sent. */
static const enum vale_learn_rule special[] = {
	VALE_LEARN_PRIVATE, VALE_LEARN_MIRROR, VALE_LEARN_VLAN, VALE_LEARN_TRUNK
};
/* Lists that make frames ruled. */
static const enum vale_learn_rule ruling[] = {
	VALE_LEARN_VLAN, VALE_LEARN_TRUNK, VALE_LEARN_SOURCE, VALE_LEARN_IP
};

bool
vale_learn_rule_rules(const struct vale_learn *vl, enum vale_learn_rule rule,
    const char *text)
{
	unsigned int i;

	for (i = 0; i < nitems(ruling); i++) {
		if (!vale_learn_rule_empty(ruling[i] == rule ? text :
		    vl->vl_rule[ruling[i]]))
			return (true);
	}
	return (false);
}

int
vale_learn_rule_set(struct vale_learn *vl, enum vale_learn_rule rule,
    const char *text)
{
	size_t len = strlen(text);
	struct vale_vlan before;
	unsigned int i, nvlans = 0;

	if (len >= VALE_LEARN_TEXT || !vale_learn_rule_valid(rule, text))
		return (EINVAL);
	memcpy(vl->vl_rule[rule], text, len + 1);
	vl->vl_special = learn_any(vl, special, nitems(special));
	vl->vl_rules = learn_any(vl, ruling, nitems(ruling));
	for (i = 0; i < VALE_FDB_PORTS; i++) {
		if (vl->vl_port[i] == NULL)
			continue;
		before = vl->vl_port[i]->lp_vlan;
		learn_classify(vl, i, vl->vl_port[i]);
		nvlans += vl->vl_port[i]->lp_vlan.vln_mode != VALE_VLAN_ANY;
		/* The port's stations would count twice for the limit. */
		if (memcmp(&before, &vl->vl_port[i]->lp_vlan,
		    sizeof(before)) != 0)
			vale_fdb_forget(&vl->vl_fdb, i);
		if (vale_learn_set_has(&vl->vl_mirror, i))
			vale_fdb_flush(&vl->vl_fdb, i);
	}
	learn_set_nvlans(vl, nvlans);
	return (0);
}

static unsigned int
learn_listed(const struct vale_vlan *vn)
{
	unsigned int n = 0, vlan;

	for (vlan = 1; vlan <= VALE_VLAN_MAX; vlan++)
		n += vale_vlan_listed(vn, vlan);
	return (n);
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
	if (lp->lp_vlan.vln_mode == VALE_VLAN_ACCESS)
		info->lpi_vlan = lp->lp_vlan.vln_native;
	else
		info->lpi_native = lp->lp_vlan.vln_native;
	info->lpi_trunk = learn_listed(&lp->lp_vlan);
	info->lpi_source = lp->lp_guard.gd_naddrs;
	info->lpi_ip = lp->lp_guard.gd_nprefixes;
	for (ring = 0; ring < lp->lp_rings; ring++) {
		for (c = 0; c < VALE_LEARN_NCOUNTERS; c++)
			info->lpi_counter[c] +=
			    atomic_load_64(&lp->lp_ring[ring].lr_counter[c]);
	}
}
