/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * vale_learn(4): the learning table as the lookup function of the kernel's
 * VALE.
 *
 * The module manages a switch by setting the lookup and dtor functions of its
 * bridge.  netmap calls both with the bridge's lock held, lookup for reading
 * and dtor for writing.  Therefore
 *
 * - ports do not change while a frame is looked up, and many threads may look
 *   up at once, for which the table is designed;
 * - after netmap_bdg_regops() has restored netmap's own functions, no thread is
 *   in ours or will enter them, and their memory can be freed.
 *
 * netmap calls the module when it removes a port, but not when it adds one.  If
 * that matters, the lookup compares netmap's number of ports with sw_nports,
 * the number that is known, and adds the missing ports before it looks at the
 * frame.  When a port is removed sw_nports becomes 0, so that a port added in
 * its place is noticed.
 *
 * NM_BDG_ACTIVE holds a managed switch, even without ports.  The switch is not
 * in netmap's exclusive mode: valectl(8) could not attach adapters then, and
 * the mode could not be left while there are ports.  A switch that is no longer
 * managed is destroyed at once, or with its last port.
 */

#include <dev/netmap/vale_learn_os.h>
#include <sys/sbuf.h>

#include <dev/netmap/vale_learn_probes.h>
#include <dev/netmap/vale_learn_var.h>

_Static_assert(VALE_FDB_PORTS == NM_BDG_MAXPORTS &&
    VALE_FDB_FLOOD == NM_BDG_BROADCAST && VALE_LEARN_NONE == NM_BDG_NOPORT,
    "vale_learn.h's destinations are netmap's");

/* netmap_vale.c's limit, which it does not check. */
#define	LEARN_DST_RINGS		16

/* A virtio-net header: its bytes that tell segments, and up to there. */
#define	LEARN_VNET_TYPE		1	/* 0: not to be cut */
#define	LEARN_VNET_SIZE		4	/* bytes of payload in a segment */
#define	LEARN_VNET_GSO		6
/* The least headers of a segment: Ethernet, IPv4, UDP. */
#define	LEARN_GSO_HEADER	(14 + 20 + 8)

/* dtrace_vale(4) */
SDT_PROVIDER_DEFINE(vale);
SDT_PROBE_DEFINE3(vale, , , lookup, "char *", "uint32_t", "uint8_t *");
SDT_PROBE_DEFINE3(vale, , , learn, "char *", "uint8_t *", "int");
SDT_PROBE_DEFINE3(vale, , , flood, "char *", "uint32_t", "uint32_t");
SDT_PROBE_DEFINE4(vale, , , drop, "char *", "char *", "uint32_t", "char *");

MALLOC_DEFINE(M_VALE_LEARN, "vale_learn", "VALE switches' learning tables");

static struct sx learn_lock;
static TAILQ_HEAD(, vale_learn_switch) learn_switches =
    TAILQ_HEAD_INITIALIZER(learn_switches);

/*
 * Return how many slots of a port's receive ring senders share, or 0 for a port
 * with several rings, or an adapter, which empties its ring itself.
 */
static uint32_t
learn_share_slots(const struct netmap_vp_adapter *na)
{
	if (na->up.num_rx_rings != 1 || na->retry ||
	    na->up.num_rx_desc < 2 || na->up.num_rx_desc > UINT16_MAX)
		return (0);
	return (na->up.num_rx_desc - 1);
}

/* Free a port's memory; NULL is none. */
static void
learn_free(struct vale_learn_port *lp)
{
	unsigned int i;

	for (i = 0; lp != NULL && i < lp->lp_rings; i++)
		free(lp->lp_ring[i].lr_memory, M_VALE_LEARN);
	free(lp, M_VALE_LEARN);
}

/* Allocate a new port, or return NULL. */
static struct vale_learn_port *
learn_alloc(const struct vale_learn_switch *sw, uint32_t rings, uint32_t slots)
{
	struct vale_learn_port *lp;
	uint32_t i;

	lp = malloc(vale_learn_port_size(rings, slots), M_VALE_LEARN,
	    M_NOWAIT | M_ZERO);
	if (lp == NULL || !sw->sw_learn.vl_rules)
		return (lp);
	lp->lp_rings = rings;
	for (i = 0; i < rings; i++) {
		lp->lp_ring[i].lr_memory = vale_learn_memory_new(M_NOWAIT);
		if (lp->lp_ring[i].lr_memory == NULL) {
			learn_free(lp);
			return (NULL);
		}
	}
	return (lp);
}

bool
vale_learn_scan(struct vale_learn_switch *sw)
{
	struct nm_bridge *b = sw->sw_bdg;
	struct netmap_adapter *na;
	struct vale_learn_port *lp;
	uint32_t i, index, rings, slots;
	bool done = true;

	rw_assert(&b->bdg_lock, RA_LOCKED);
	mtx_lock(&sw->sw_scan);
	for (i = 0; done && i < b->bdg_active_ports; i++) {
		index = b->bdg_port_index[i];
		if (sw->sw_learn.vl_port[index] != NULL)
			continue;
		na = &b->bdg_ports[index]->up;
		rings = max(na->num_tx_rings, 1);
		slots = learn_share_slots(b->bdg_ports[index]);
		lp = learn_alloc(sw, rings, slots);
		if (lp == NULL)
			done = false;
		else
			vale_learn_port_add(&sw->sw_learn, index, na->name,
			    rings, slots, lp);
	}
	if (done)
		atomic_store_rel_32(&sw->sw_nports, b->bdg_active_ports);
	mtx_unlock(&sw->sw_scan);
	return (done);
}

/* Make the copies of a frame. */
static void
learn_copy_all(struct vale_learn_switch *sw, const struct nm_bdg_fwd *ft,
    struct netmap_vp_adapter *na, struct vale_learn_ring *lr,
    const struct vale_learn_set *copies)
{
	const struct nm_bridge *b = sw->sw_bdg;
	uint32_t i, index, lost = 0, made = 0;

	rw_assert(&b->bdg_lock, RA_LOCKED);
	for (i = 0; i < b->bdg_active_ports; i++) {
		index = b->bdg_port_index[i];
		if (!vale_learn_set_has(copies, index))
			continue;
		if (vale_learn_copy(ft, na, b->bdg_ports[index])) {
			made++;
			continue;
		}
		lost++;
		VALE_LEARN_PROBE4(drop, b->bdg_ports[index]->up.name,
		    vale_learn_counter_table[VALE_LEARN_C_DROP_COPY].cr_name, 1,
		    na->up.name);
	}
	vale_learn_count(lr, VALE_LEARN_C_COPY, made);
	vale_learn_count(lr, VALE_LEARN_C_DROP_COPY, lost);
}

/* Return the destination in the table's terms: a flood if all get copies. */
static unsigned int
learn_dst(unsigned int dst)
{
	return (dst == (VALE_LEARN_NONE | VALE_LEARN_COPIES) ?
	    VALE_FDB_FLOOD : dst & ~VALE_LEARN_COPIES);
}

/* Return the number of ports that a flooded frame goes to, for the probe. */
static __unused uint32_t
learn_flooded(const struct vale_learn_switch *sw, unsigned int dst,
    const struct vale_learn_set *copies)
{
	uint32_t i, n = 0;

	if (dst == VALE_FDB_FLOOD)
		return (sw->sw_bdg->bdg_active_ports - 1);
	for (i = 0; i < VALE_FDB_PORTS; i++)
		n += vale_learn_set_has(copies, i);
	return (n);
}

/*
 * Return the state of a ring.  Looks for new ports if the sender is new, and,
 * if there are rules, whenever the number of ports has changed: a rule may
 * apply to a port that has not sent yet.
 */
static struct vale_learn_ring *
learn_ring(struct vale_learn_switch *sw, unsigned int port, unsigned int ring)
{
	struct vale_learn_ring *lr;

	lr = vale_learn_ring(&sw->sw_learn, port, ring);
	if (lr != NULL && (!sw->sw_learn.vl_special || sw->sw_bdg->
	    bdg_active_ports == atomic_load_acq_32(&sw->sw_nports)))
		return (lr);
	if (vale_learn_scan(sw))
		return (vale_learn_ring(&sw->sw_learn, port, ring));
	counter_u64_add(sw->sw_nomem, 1);
	return (NULL);
}

/*
 * Return how many frames a frame of `bytes' bytes makes where it is cut, and,
 * in *made, their bytes.  The virtio-net header is the sender's word, and so is
 * how much of the frame are headers: assume the least.
 */
static uint32_t
learn_segments(const struct nm_bdg_fwd *first,
    const struct netmap_vp_adapter *na, uint32_t bytes, uint64_t *made)
{
	uint8_t hdr[LEARN_VNET_GSO];
	uint32_t n, size;

	*made = bytes;
	if (na->up.virt_hdr_len < sizeof(hdr))
		return (1);
	if ((first->ft_flags & NS_INDIRECT) == 0)
		memcpy(hdr, first->ft_buf, sizeof(hdr));
	else if (copyin(first->ft_buf, hdr, sizeof(hdr)) != 0)
		return (1);
	size = le16dec(hdr + LEARN_VNET_SIZE);
	if (hdr[LEARN_VNET_TYPE] == 0 || size == 0 ||
	    bytes <= LEARN_GSO_HEADER)
		return (1);
	n = howmany(bytes - LEARN_GSO_HEADER, size);
	*made += (uint64_t)(n - 1) * LEARN_GSO_HEADER;
	return (n);
}

/* Return whether the frame exceeds the rate of its port. */
static bool
learn_exceeds(struct vale_learn_switch *sw, struct vale_learn_ring *lr,
    const struct nm_bdg_fwd *first, const struct netmap_vp_adapter *na,
    uint32_t bytes)
{
	uint64_t made;
	uint32_t frames;

	frames = learn_segments(first, na, bytes, &made);
	return (vale_learn_exceeds(&sw->sw_learn, lr, na->bdg_port, frames,
	    made, bytes, (uint64_t)sbttons(getsbinuptime())));
}

/*
 * Admit a frame if the ring has space, or within the sender's share.  netmap
 * takes q_lock to look at the ring, and another batch may fill the ring in
 * between: then netmap drops the frame.
 */
bool
vale_learn_switch_admit(struct vale_learn_switch *sw,
    struct vale_learn_ring *lr, const struct netmap_vp_adapter *na,
    unsigned int dst, uint32_t before, uint32_t slots)
{
	struct netmap_vp_adapter *to = sw->sw_bdg->bdg_ports[dst];
	struct netmap_kring *kring;
	uint32_t cur, used;
	bool admit;

	if (to == NULL || vale_learn_share(&sw->sw_learn, dst) == NULL ||
	    !nm_netmap_on(&to->up))
		return (true);
	kring = to->up.rx_rings[0];
	cur = atomic_load_32(&kring->nr_hwcur);
	used = atomic_load_32(&kring->nkr_hwlease);
	used = used >= cur ? used - cur : used + kring->nkr_num_slots - cur;
	if (vale_learn_fits(&sw->sw_learn, dst, used, before, slots))
		return (true);
	mtx_lock(&sw->sw_share);
	admit = vale_learn_admit(&sw->sw_learn, lr, na->bdg_port, dst, used,
	    slots);
	mtx_unlock(&sw->sw_share);
	return (admit);
}

/*
 * Return the destination of the frame that starts at `ft': netmap's lookup
 * function.  *dst_ring is the source ring on entry, the destination ring on
 * return.
 */
static uint32_t
learn_lookup(struct nm_bdg_fwd *ft, uint8_t *dst_ring,
    struct netmap_vp_adapter *na, void *private_data)
{
	struct vale_learn_switch *sw = private_data;
	struct vale_learn_ring *lr;
	struct vale_learn_set copies;
	const struct nm_bdg_fwd *f, *first;
	const uint8_t *addrs = (const uint8_t *)ft->ft_buf + ft->ft_offset;
	uint8_t indirect[VALE_LEARN_ADDRS];
	uint32_t bytes, len = ft->ft_len - ft->ft_offset;
	unsigned int dst;

	rw_assert(&sw->sw_bdg->bdg_lock, RA_LOCKED);
	lr = learn_ring(sw, na->bdg_port, *dst_ring);
	if (lr == NULL) {
		VALE_LEARN_PROBE4(drop, na->up.name, "drop_nomem", 1,
		    na->up.name);
		return (NM_BDG_NOPORT);
	}
	/* The virtio-net header may be in a slot of its own, before `ft'. */
	first = na->up.virt_hdr_len != 0 && ft->ft_offset == 0 ? ft - 1 : ft;
	vale_learn_batch(lr, first);
	if (*dst_ring >= LEARN_DST_RINGS)
		*dst_ring %= LEARN_DST_RINGS;
	for (f = ft, bytes = len; (f->ft_flags & NS_MOREFRAG) != 0; )
		bytes += (++f)->ft_len;
	if (vale_rate_limited(&lr->lr_rate) &&
	    learn_exceeds(sw, lr, first, na, bytes))
		return (NM_BDG_NOPORT);
	if (__predict_false(atomic_load_32(&lr->lr_ruled) != 0)) {
		vale_learn_ruled(sw, first, na, lr, len, bytes);
		return (NM_BDG_NOPORT);
	}
	if ((ft->ft_flags & NS_INDIRECT) != 0) {
		if (len >= VALE_LEARN_HEADER &&
		    copyin(addrs, indirect, sizeof(indirect)) == 0)
			addrs = indirect;
		else
			addrs = NULL;
	}
	dst = vale_learn_forward(&sw->sw_learn, lr, na->bdg_port, addrs, len,
	    bytes, (uint32_t)time_uptime, &copies);
	VALE_LEARN_PROBE3(lookup, na->up.name, learn_dst(dst), addrs);
	if (learn_dst(dst) == VALE_FDB_FLOOD)
		VALE_LEARN_PROBE3(flood, na->up.name, bytes,
		    learn_flooded(sw, dst, &copies));
	if ((dst & VALE_LEARN_COPIES) != 0) {
		dst &= ~VALE_LEARN_COPIES;
		learn_copy_all(sw, ft, na, lr, &copies);
	}
	if (dst < VALE_FDB_PORTS && !vale_learn_switch_admit(sw, lr, na, dst,
	    first - (const struct nm_bdg_fwd *)lr->lr_first, first->ft_frags))
		return (NM_BDG_NOPORT);
	return (dst);
}

static void
learn_forget(struct vale_learn_switch *sw, unsigned int index)
{
	rw_assert(&sw->sw_bdg->bdg_lock, RA_WLOCKED);
	learn_free(vale_learn_port_remove(&sw->sw_learn, index));
	sw->sw_nports = 0;
}

/*
 * Remove a port: netmap's dtor function.  An adapter and its host port are
 * removed together, with one call for the adapter.
 */
static void
learn_dtor(const struct netmap_vp_adapter *na)
{
	struct vale_learn_switch *sw = na->na_bdg->private_data;
	const struct netmap_vp_adapter *host = na->up.na_hostvp;

	learn_forget(sw, na->bdg_port);
	if (host != NULL && host->na_bdg == na->na_bdg &&
	    sw->sw_bdg->bdg_ports[host->bdg_port] == host)
		learn_forget(sw, host->bdg_port);
}

static struct netmap_bdg_ops learn_ops = {
	.lookup = learn_lookup,
	.dtor = learn_dtor,
};

/*
 * Create or find the bridge, and hold it.  Returns EBUSY if another module
 * manages the bridge.
 */
static int
learn_take(struct vale_learn_switch *sw)
{
	struct nm_bridge *b;
	int created, error;

	do {
		(void)netmap_vale_create(sw->sw_bdg_name, &created);
		if (created == ENOMEM)
			return (ENOSPC);
		error = 0;
		NMG_LOCK();
		b = nm_find_bridge(sw->sw_bdg_name, 0, NULL);
		if (b == NULL)
			error = EAGAIN;
		else if (created == EEXIST && ((b->bdg_flags &
		    (NM_BDG_ACTIVE | NM_BDG_EXCLUSIVE)) != 0 ||
		    b->bdg_ops.lookup != b->bdg_saved_ops.lookup))
			error = EBUSY;
		else {
			b->bdg_flags &= ~NM_BDG_EXCLUSIVE;
			b->bdg_flags |= NM_BDG_ACTIVE;
			sw->sw_bdg = b;
		}
		NMG_UNLOCK();
	} while (error == EAGAIN);
	if (error == 0)
		error = netmap_bdg_regops(sw->sw_bdg_name, &learn_ops, sw,
		    NULL);
	return (error);
}

/*
 * Give the bridge back to netmap, with an empty table.  netmap learns a source
 * address only if it differs from the port's last one: reset these.
 */
static void
learn_give(struct vale_learn_switch *sw)
{
	struct nm_bridge *b = sw->sw_bdg;
	uint32_t i;

	NMG_LOCK();
	BDG_WLOCK(b);
	for (i = 0; i < b->bdg_active_ports; i++)
		b->bdg_ports[b->bdg_port_index[i]]->last_smac = 0;
	BDG_WUNLOCK(b);
	NMG_UNLOCK();
	(void)netmap_bdg_regops(sw->sw_bdg_name, NULL, NULL, NULL);
	NMG_LOCK();
	b->bdg_flags &= ~NM_BDG_ACTIVE;
	(void)netmap_bdg_free(b);
	NMG_UNLOCK();
}

static int
learn_switch_create(const char *name)
{
	struct vale_learn_switch *sw;
	uint64_t seed[2];
	int error;

	sx_assert(&learn_lock, SA_XLOCKED);
	sw = malloc(sizeof(*sw), M_VALE_LEARN, M_WAITOK | M_ZERO);
	strlcpy(sw->sw_name, name, sizeof(sw->sw_name));
	snprintf(sw->sw_bdg_name, sizeof(sw->sw_bdg_name), "%s:", name);
	arc4random_buf(seed, sizeof(seed));
	vale_learn_init(&sw->sw_learn, seed);
	mtx_init(&sw->sw_scan, "vale_learn scan", NULL, MTX_DEF);
	mtx_init(&sw->sw_share, "vale_learn share", NULL, MTX_DEF);
	sw->sw_nomem = counter_u64_alloc(M_WAITOK);
	error = learn_take(sw);
	if (error != 0)
		goto fail;
	sw->sw_listed = sw->sw_new = true;
	TAILQ_INSERT_TAIL(&learn_switches, sw, sw_link);
	vale_learn_sysctl_add(sw);
	return (0);

fail:
	counter_u64_free(sw->sw_nomem);
	mtx_destroy(&sw->sw_share);
	mtx_destroy(&sw->sw_scan);
	free(sw, M_VALE_LEARN);
	return (error);
}

static void
learn_switch_destroy(struct vale_learn_switch *sw)
{
	unsigned int i;

	sx_assert(&learn_lock, SA_XLOCKED);
	vale_learn_sysctl_remove(sw);
	TAILQ_REMOVE(&learn_switches, sw, sw_link);
	learn_give(sw);
	for (i = 0; i < VALE_FDB_PORTS; i++)
		learn_free(vale_learn_port_remove(&sw->sw_learn, i));
	counter_u64_free(sw->sw_nomem);
	mtx_destroy(&sw->sw_share);
	mtx_destroy(&sw->sw_scan);
	free(sw, M_VALE_LEARN);
}

/*
 * Memory for rings whose frames are ruled is allocated without the bridge's
 * lock: a change with too little memory changes nothing, and is tried again.
 */
struct learn_change {
	struct vale_learn_switch *lch_switch;
	enum vale_learn_rule	  lch_rule;
	const char		 *lch_text;
	uint32_t		  lch_missing;	/* rings without memory */
	uint32_t		  lch_have;	/* in lch_memory */
	void			**lch_memory;
};

/* Take memory that was allocated for a ring without; or count the ring. */
static void
learn_equip(struct learn_change *lc, struct vale_learn_ring *lr, bool give)
{
	if (lr->lr_memory != NULL)
		return;
	if (give)
		lr->lr_memory = lc->lch_memory[--lc->lch_have];
	else
		lc->lch_missing++;
}

static void
learn_equip_all(struct learn_change *lc, bool give)
{
	struct vale_learn_port *lp;
	unsigned int i, r;

	for (i = 0; i < VALE_FDB_PORTS; i++) {
		lp = lc->lch_switch->sw_learn.vl_port[i];
		for (r = 0; lp != NULL && r < lp->lp_rings; r++)
			learn_equip(lc, &lp->lp_ring[r], give);
	}
}

/* Free the memory of all rings: no frame is ruled any more. */
static void
learn_strip_all(struct vale_learn *vl)
{
	struct vale_learn_port *lp;
	unsigned int i, r;

	for (i = 0; i < VALE_FDB_PORTS; i++) {
		lp = vl->vl_port[i];
		for (r = 0; lp != NULL && r < lp->lp_rings; r++) {
			free(lp->lp_ring[r].lr_memory, M_VALE_LEARN);
			lp->lp_ring[r].lr_memory = NULL;
		}
	}
}

static void *
learn_change(void *private_data, void *arg, int *error)
{
	struct learn_change *lc = arg;
	struct vale_learn *vl = &lc->lch_switch->sw_learn;

	rw_assert(&lc->lch_switch->sw_bdg->bdg_lock, RA_WLOCKED);
	lc->lch_missing = 0;
	if (vale_learn_rule_rules(vl, lc->lch_rule, lc->lch_text))
		learn_equip_all(lc, false);
	if (lc->lch_missing > lc->lch_have) {
		*error = EAGAIN;
		return (private_data);
	}
	*error = vale_learn_rule_set(vl, lc->lch_rule, lc->lch_text);
	if (*error != 0)
		return (private_data);
	if (vl->vl_rules)
		learn_equip_all(lc, true);
	else
		learn_strip_all(vl);
	return (private_data);
}

/* Allocate memory for as many rings as lack it. */
static void
learn_change_alloc(struct learn_change *lc)
{
	void **memory;

	memory = malloc(lc->lch_missing * sizeof(*memory), M_VALE_LEARN,
	    M_WAITOK);
	if (lc->lch_have > 0)
		memcpy(memory, lc->lch_memory, lc->lch_have * sizeof(*memory));
	free(lc->lch_memory, M_VALE_LEARN);
	lc->lch_memory = memory;
	while (lc->lch_have < lc->lch_missing)
		memory[lc->lch_have++] = vale_learn_memory_new(M_WAITOK);
}

int
vale_learn_switch_rule(struct vale_learn_switch *sw, enum vale_learn_rule rule,
    const char *text)
{
	struct learn_change lc = { .lch_switch = sw, .lch_rule = rule,
	    .lch_text = text };
	int error;

	if (strlen(text) >= VALE_LEARN_TEXT ||
	    !vale_learn_rule_valid(rule, text))
		return (EINVAL);
	for (;;) {
		error = netmap_bdg_update_private_data(sw->sw_bdg_name,
		    learn_change, &lc, NULL);
		if (error != EAGAIN)
			break;
		learn_change_alloc(&lc);
	}
	while (lc.lch_have > 0)
		free(lc.lch_memory[--lc.lch_have], M_VALE_LEARN);
	free(lc.lch_memory, M_VALE_LEARN);
	return (error);
}

static struct vale_learn_switch *
learn_find(const char *name)
{
	struct vale_learn_switch *sw;

	sx_assert(&learn_lock, SA_XLOCKED);
	TAILQ_FOREACH(sw, &learn_switches, sw_link) {
		if (strcmp(sw->sw_name, name) == 0)
			break;
	}
	return (sw);
}

/* Check a name by netmap's rules: "vale", then letters, digits and '_'. */
static bool
learn_name_valid(const char *name)
{
	size_t len = strlen(name);

	return (len < LEARN_SWITCH_NAME && strncmp(name, "vale", 4) == 0 &&
	    strspn(name, "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == len);
}

/* Destroy the switches that are no longer listed; `undo': the new ones. */
static void
learn_prune(bool undo)
{
	struct vale_learn_switch *next, *sw;

	sx_assert(&learn_lock, SA_XLOCKED);
	TAILQ_FOREACH_SAFE(sw, &learn_switches, sw_link, next) {
		if (undo ? sw->sw_new : !sw->sw_listed)
			learn_switch_destroy(sw);
	}
}

int
vale_learn_attach(const char *text)
{
	struct vale_learn_switch *sw;
	char word[VALE_LEARN_WORD];
	const char *p;
	int error = 0, r;

	for (p = text; (r = vale_learn_word(&p, word)) == 1; ) {
		if (!learn_name_valid(word))
			return (EINVAL);
	}
	if (r != 0)
		return (EINVAL);

	sx_xlock(&learn_lock);
	TAILQ_FOREACH(sw, &learn_switches, sw_link)
		sw->sw_listed = sw->sw_new = false;
	for (p = text; error == 0 && vale_learn_word(&p, word) == 1; ) {
		sw = learn_find(word);
		if (sw != NULL)
			sw->sw_listed = true;
		else
			error = learn_switch_create(word);
	}
	learn_prune(error != 0);
	sx_xunlock(&learn_lock);
	return (error);
}

void
vale_learn_attached(char text[VALE_LEARN_TEXT])
{
	struct vale_learn_switch *sw;
	struct sbuf sb;

	sbuf_new(&sb, text, VALE_LEARN_TEXT, SBUF_FIXEDLEN);
	sx_slock(&learn_lock);
	TAILQ_FOREACH(sw, &learn_switches, sw_link)
		sbuf_printf(&sb, "%s%s", sbuf_len(&sb) == 0 ? "" : " ",
		    sw->sw_name);
	sx_sunlock(&learn_lock);
	sbuf_finish(&sb);
}

static int
learn_modevent(module_t mod __unused, int what, void *arg __unused)
{
	int error = 0;

	switch (what) {
	case MOD_LOAD:
		sx_init(&learn_lock, "vale_learn");
		error = vale_learn_sysctl_load();
		if (error != 0)
			sx_destroy(&learn_lock);
		break;
	case MOD_UNLOAD:
		vale_learn_sysctl_unload();
		(void)vale_learn_attach("");
		sx_destroy(&learn_lock);
		break;
	default:
		error = EOPNOTSUPP;
	}
	return (error);
}

static moduledata_t learn_mod = { "vale_learn", learn_modevent, NULL };

DECLARE_MODULE(vale_learn, learn_mod, SI_SUB_PSEUDO, SI_ORDER_ANY);
MODULE_VERSION(vale_learn, 1);
MODULE_DEPEND(vale_learn, netmap, 1, 1, 1);
