/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The policy of vale_learn(4): the destination of each frame of a switch, by
 * the learning table, private ports, mirror ports, the limit of addresses for
 * each port, VLANs and guards; and the counters.
 *
 * The policy calls no kernel function.  The module (vale_learn_mod.c) adds and
 * removes ports, passes in the addresses of each frame, and delivers the frame
 * as vale_learn_forward() says.  A frame is ruled if its sender has a guard, or
 * if any port of the switch is in VLANs: then the module first copies the
 * frame, and vale_learn_rule_frame() says which ports get which form.
 *
 * Any number of threads may forward, that is, be in these functions, but only
 * one for each ring.  A function that requires exclusion must be called while
 * no thread forwards; the module owns the bridge's lock for writing then.
 */

#ifndef _DEV_NETMAP_VALE_LEARN_H_
#define	_DEV_NETMAP_VALE_LEARN_H_

#include <sys/param.h>
#include <sys/systm.h>
#include <sys/counter_table.h>

#include <dev/netmap/vale_fdb.h>
#include <dev/netmap/vale_guard.h>
#include <dev/netmap/vale_rate.h>
#include <dev/netmap/vale_share.h>
#include <dev/netmap/vale_vlan.h>

#define	VALE_LEARN_NAME		64	/* bytes of a port's name, with NUL */
#define	VALE_LEARN_TEXT		8192	/* bytes of a list, with NUL */
/* Bytes of a word, with NUL: a name, and VALE_GUARD_PREFIXES prefixes. */
#define	VALE_LEARN_WORD		768
#define	VALE_LEARN_HEADER	14	/* bytes of an Ethernet header */
#define	VALE_LEARN_ADDRS	12	/* bytes of its addresses */

/* A destination is a port, VALE_FDB_FLOOD, or none; the values are netmap's. */
#define	VALE_LEARN_NONE		(VALE_FDB_FLOOD + 1)
/* Set in addition if other ports get copies. */
#define	VALE_LEARN_COPIES	0x100

/*
 * Counters of the frames that a port sent since it was added.
 *
 *	frames = unicast + flooded + drop_*, without drop_copy
 *
 * The unicast frames are the remainder and have no counter.  drop_* count what
 * the lookup drops.  Netmap drops frames later if the destination's ring has
 * become full, and does not count these.
 */
#define	VALE_LEARN_COUNTERS(X)						\
	X(VALE_LEARN_C_FRAME, "frames", "frames taken from the port")	\
	X(VALE_LEARN_C_BYTE, "bytes", "bytes of those frames")		\
	X(VALE_LEARN_C_FLOOD, "flooded", "frames flooded")		\
	X(VALE_LEARN_C_LEARNED, "learned", "addresses learned on the port") \
	X(VALE_LEARN_C_MOVED, "moved", "addresses that moved to the port") \
	X(VALE_LEARN_C_COPY, "copies", "copies made for other ports")	\
	X(VALE_LEARN_C_DROP_RATE, "drop_rate",				\
	    "frames dropped: over the port's rate")			\
	X(VALE_LEARN_C_DROP_RUNT, "drop_runt",				\
	    "frames dropped: no header in the first slot")		\
	X(VALE_LEARN_C_DROP_FAULT, "drop_fault",			\
	    "frames dropped: indirect memory not readable")		\
	X(VALE_LEARN_C_DROP_SELF, "drop_self",				\
	    "frames filtered: destination is the source port")		\
	X(VALE_LEARN_C_DROP_LIMIT, "drop_limit",			\
	    "frames dropped: source over the address limit")		\
	X(VALE_LEARN_C_DROP_PRIVATE, "drop_private",			\
	    "frames dropped: both ports are private")			\
	X(VALE_LEARN_C_DROP_MIRROR, "drop_mirror",			\
	    "frames dropped: sent by a mirror port")			\
	X(VALE_LEARN_C_DROP_OVERSIZE, "drop_oversize",			\
	    "frames dropped: too long to be copied")			\
	X(VALE_LEARN_C_DROP_HEADER, "drop_header",			\
	    "frames dropped: invalid virtio-net header")		\
	X(VALE_LEARN_C_DROP_SOURCE, "drop_source",			\
	    "frames dropped: Ethernet source not allowed")		\
	X(VALE_LEARN_C_DROP_IP, "drop_ip",				\
	    "frames dropped: IP address not allowed")			\
	X(VALE_LEARN_C_DROP_VLAN, "drop_vlan",				\
	    "frames dropped: not in a VLAN of the port")		\
	X(VALE_LEARN_C_DROP_RESERVED, "drop_reserved",			\
	    "frames filtered: for the link only")			\
	X(VALE_LEARN_C_DROP_SHARE, "drop_share",			\
	    "frames dropped: ring full, or the sender's share of it")	\
	X(VALE_LEARN_C_DROP_COPY, "drop_copy", "copies dropped: no space")

enum vale_learn_counter {
	COUNTER_IDS(VALE_LEARN_COUNTERS)
	VALE_LEARN_NCOUNTERS
};
extern const struct counter_row vale_learn_counter_table[VALE_LEARN_NCOUNTERS];

/* A set of ports. */
#define	VALE_LEARN_WORDS	4
struct vale_learn_set {
	uint64_t	s_word[VALE_LEARN_WORDS];
};

static inline bool
vale_learn_set_has(const struct vale_learn_set *s, unsigned int port)
{
	MPASS(port < VALE_FDB_PORTS);
	return ((atomic_load_64(&s->s_word[port / 64]) >> port % 64 & 1) != 0);
}

/* The cached destination, a single port, of frames with these addresses. */
struct vale_learn_result {
	uint8_t		re_addrs[VALE_LEARN_ADDRS];
	uint32_t	re_now_s;
	uint32_t	re_changes;	/* vale_fdb_changes() then; 0: unused */
	uint32_t	re_dst;
};

/*
 * A transmit ring's counters, and the results for its last frames, indexed by
 * the low bits of their destinations.  Only the thread that syncs the ring
 * writes these, without a lock and in cache lines of their own.
 */
#define	VALE_LEARN_RESULTS		16
struct vale_learn_ring {
	uint64_t	lr_counter[VALE_LEARN_NCOUNTERS];
	uint64_t	lr_pad[24 - VALE_LEARN_NCOUNTERS];
	/* The ring's part of the port's rate. */
	struct vale_rate lr_rate;
	/* This batch: its first and its last frame, and the slots that
	   vale_learn_admit() gave to its frames. */
	const void	*lr_first;
	const void	*lr_last;
	uint32_t	lr_pending;
	uint32_t	lr_ruled;	/* 1: its frames are ruled */
	void		*lr_memory;	/* the module's, for a frame */
	struct vale_learn_result lr_result[VALE_LEARN_RESULTS];
};
_Static_assert(sizeof(struct vale_learn_ring) == 640, "ten cache lines");

struct vale_learn_port {
	char		lp_name[VALE_LEARN_NAME];	/* "vale0:vm1" */
	unsigned int	lp_rings;
	struct vale_share lp_share;	/* of its receive ring, or sh_slots
					   is 0 */
	struct vale_vlan lp_vlan;
	struct vale_guard lp_guard;
	struct vale_learn_ring lp_ring[];
};

/* Lists of patterns for ports: see vale_learn_rule_set(). */
enum vale_learn_rule {
	VALE_LEARN_PRIVATE,
	VALE_LEARN_MIRROR,
	VALE_LEARN_LIMIT,
	VALE_LEARN_RATE,
	VALE_LEARN_VLAN,
	VALE_LEARN_TRUNK,
	VALE_LEARN_NATIVE,
	VALE_LEARN_SOURCE,
	VALE_LEARN_IP,
	VALE_LEARN_NRULES
};

/* A switch.  Private to vale_learn.c, except that the caller allocates it. */
struct vale_learn {
	struct vale_fdb	vl_fdb;		/* aligned to 64 bytes */
	struct vale_learn_port *vl_port[VALE_FDB_PORTS];
	struct vale_learn_set vl_present;
	struct vale_learn_set vl_private;
	struct vale_learn_set vl_mirror;
	bool		vl_special;	/* PRIVATE, MIRROR, VLAN or TRUNK is
					   not empty */
	bool		vl_rules;	/* VLAN, TRUNK, SOURCE or IP is not */
	bool		vl_reserved;	/* reserved addresses pass; atomic */
	uint32_t	vl_nvlans;	/* ports that are in VLANs */
	char		vl_rule[VALE_LEARN_NRULES][VALE_LEARN_TEXT];
};

/*
 * Make a switch without ports.  `vl' must be aligned to 64 bytes.  `seed': see
 * vale_fdb_init().
 */
void	vale_learn_init(struct vale_learn *vl, const uint64_t seed[2]);

/*
 * Return the size in bytes of a port with `rings' transmit rings, and a receive
 * ring that can hold `slots' slots; 0: its senders have no shares.
 */
size_t	vale_learn_port_size(unsigned int rings, uint32_t slots);

/*
 * Add a port.  `index', 0 to 253, must not be in use; `rings' is the number of
 * its transmit rings, at least 1; `slots': see vale_learn_port_size(); a `name'
 * that is too long is truncated.  `lp' must be zeroed memory of
 * vale_learn_port_size() bytes, except lr_memory of its rings, and belongs to
 * the switch until vale_learn_port_remove().  Other threads may forward
 * meanwhile; none may add, remove or set rules.
 */
void	vale_learn_port_add(struct vale_learn *vl, unsigned int index,
	    const char *name, unsigned int rings, uint32_t slots,
	    struct vale_learn_port *lp);

/*
 * Remove a port and its addresses.  Returns its memory, or NULL if there is no
 * such port.  Requires exclusion.
 */
struct vale_learn_port *vale_learn_port_remove(struct vale_learn *vl,
	    unsigned int index);

/* Return as vale_learn_forward() does, without a cached result. */
unsigned int vale_learn_decide(struct vale_learn *vl,
	    struct vale_learn_ring *lr, unsigned int port,
	    const uint8_t *addrs, uint32_t len, uint32_t now_s,
	    struct vale_learn_set *copies);

/* Which ports get a ruled frame. */
struct vale_learn_plan {
	unsigned int	lpn_vlan;	/* the frame's; 0: none */
	/*
	 * Ports that get the frame without a tag, and with one.  In VLAN 0 all
	 * get the frame unchanged.
	 */
	struct vale_learn_set lpn_to[2];
};

/*
 * Decide which ports get a ruled frame that `port' sends through ring `lr'.
 * The frame's `len' bytes, at least VALE_LEARN_HEADER, are at `frame', where
 * the sender cannot change them.  `now_s': see vale_fdb.h.
 *
 * Returns a port or VALE_FDB_FLOOD, and sets *plan; mirrors are among its
 * ports.  Or returns VALE_LEARN_NONE if the caller must drop the frame.
 */
unsigned int vale_learn_rule_frame(struct vale_learn *vl,
	    struct vale_learn_ring *lr, unsigned int port,
	    const uint8_t *frame, uint32_t len, uint32_t now_s,
	    struct vale_learn_plan *plan);

/*
 * Count a frame of `bytes' bytes which the caller drops for the reason `why',
 * VALE_LEARN_C_DROP_*.
 */
void	vale_learn_refuse(const struct vale_learn *vl,
	    struct vale_learn_ring *lr, unsigned int port, uint32_t bytes,
	    enum vale_learn_counter why);

static inline void
vale_learn_count(struct vale_learn_ring *lr, enum vale_learn_counter c,
    uint64_t n)
{
	atomic_store_64(&lr->lr_counter[c], lr->lr_counter[c] + n);
}

/*
 * Return the state of transmit ring `ring', or NULL if the port was not added.
 * The rings of a port have consecutive numbers that need not start at 0: the
 * host rings of an adapter follow its own.
 */
static inline struct vale_learn_ring *
vale_learn_ring(const struct vale_learn *vl, unsigned int port,
    unsigned int ring)
{
	struct vale_learn_port *lp;

	MPASS(port < VALE_FDB_PORTS);
	lp = (struct vale_learn_port *)
	    atomic_load_acq_ptr((const uintptr_t *)&vl->vl_port[port]);
	if (lp == NULL)
		return (NULL);
	return (&lp->lp_ring[ring < lp->lp_rings ? ring :
	    ring % lp->lp_rings]);
}

/* Return whether two frames have the same source. */
static inline bool
vale_learn_same_source(const uint8_t *a, const uint8_t *b)
{
	uint32_t x, y;
	uint16_t u, v;

	memcpy(&x, a + 6, sizeof(x));
	memcpy(&y, b + 6, sizeof(y));
	memcpy(&u, a + 10, sizeof(u));
	memcpy(&v, b + 10, sizeof(v));
	return (x == y && u == v);
}

/* Return whether two frames have the same source and destination. */
static inline bool
vale_learn_same_addrs(const uint8_t *a, const uint8_t *b)
{
	uint64_t x, y;
	uint32_t u, v;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	memcpy(&u, a + 8, sizeof(u));
	memcpy(&v, b + 8, sizeof(v));
	return (x == y && u == v);
}

/* Return the only place where the result for these addresses may be. */
static inline struct vale_learn_result *
vale_learn_result(struct vale_learn_ring *lr, const uint8_t *addrs)
{
	return (&lr->lr_result[addrs[5] % VALE_LEARN_RESULTS]);
}

static inline bool
vale_learn_valid(const struct vale_learn *vl,
    const struct vale_learn_result *re, uint32_t now_s)
{
	return (re->re_now_s == now_s &&
	    re->re_changes == vale_fdb_changes(&vl->vl_fdb));
}

/*
 * Return the destination of a frame that `port' sends through ring `lr'.
 * `addrs' points at the first 12 bytes of the frame, `len' is the length of its
 * first slot and `bytes' that of the whole frame.  The frame is dropped if
 * `len' is less than VALE_LEARN_HEADER, or if `addrs' is NULL because the
 * memory is not readable.  `now_s': see vale_fdb.h.
 *
 * The destination is a port, VALE_FDB_FLOOD or VALE_LEARN_NONE.  If
 * VALE_LEARN_COPIES is set in addition, the caller must copy the frame to each
 * port of *copies, too.
 *
 * Most frames have the addresses of a recent frame of the same second, with no
 * change of the table in between, and need no look into the table.
 */
static inline unsigned int
vale_learn_forward(struct vale_learn *vl, struct vale_learn_ring *lr,
    unsigned int port, const uint8_t *addrs, uint32_t len, uint32_t bytes,
    uint32_t now_s, struct vale_learn_set *copies)
{
	const struct vale_learn_result *re;

	vale_learn_count(lr, VALE_LEARN_C_FRAME, 1);
	vale_learn_count(lr, VALE_LEARN_C_BYTE, bytes);
	if (len >= VALE_LEARN_HEADER && addrs != NULL) {
		re = vale_learn_result(lr, addrs);
		if (vale_learn_same_addrs(addrs, re->re_addrs) &&
		    vale_learn_valid(vl, re, now_s))
			return (re->re_dst);
	}
	return (vale_learn_decide(vl, lr, port, addrs, len, now_s, copies));
}

/*
 * Note each frame of a ring, by its place in the array of its batch: the first
 * frame of each batch is at the same place, and the others follow it.
 */
static inline void
vale_learn_batch(struct vale_learn_ring *lr, const void *frame)
{
	if (frame <= lr->lr_last || lr->lr_last == NULL) {
		lr->lr_first = frame;
		lr->lr_pending = 0;
	}
	lr->lr_last = frame;
}

/*
 * Fair shares (vale_share.h).  vale_learn_forward() returned the single port
 * `dst'.  Its receive ring has `used' slots in use, and `before' slots of the
 * sender's batch come before the frame, which has `slots'.
 */

/* Return the shares of the ring of `port', or NULL. */
static inline struct vale_share *
vale_learn_share(const struct vale_learn *vl, unsigned int port)
{
	struct vale_learn_port *lp;

	lp = (struct vale_learn_port *)
	    atomic_load_acq_ptr((const uintptr_t *)&vl->vl_port[port]);
	return (lp != NULL && lp->lp_share.sh_slots != 0 ? &lp->lp_share :
	    NULL);
}

/*
 * Return whether the frame fits for certain, and no frame was refused lately.
 * Takes no lock.
 */
static inline bool
vale_learn_fits(const struct vale_learn *vl, unsigned int dst, uint32_t used,
    uint32_t before, uint32_t slots)
{
	const struct vale_share *sh = vale_learn_share(vl, dst);

	return (atomic_load_32(&sh->sh_left) == 0 &&
	    used + before + slots <= sh->sh_slots);
}

/*
 * Return whether a frame for which vale_learn_fits() is false may be delivered.
 * If not, the frame is counted, and the caller must drop it.  Requires
 * exclusion from other calls, not from forwarding.
 */
bool	vale_learn_admit(struct vale_learn *vl, struct vale_learn_ring *lr,
	    unsigned int port, unsigned int dst, uint32_t used,
	    uint32_t slots);

/*
 * Set a rule.  `text' is a list of words, separated by blanks or commas:
 *
 *	PRIVATE, MIRROR		PATTERN, or !PATTERN to exclude ports
 *	LIMIT			N for all ports, or PATTERN=N; N is 0 to
 *				VALE_FDB_ENTRIES, 0 for no limit
 *	RATE			RATE[:BURST] for all ports, or
 *				PATTERN=RATE[:BURST]: see vale_rate_parse() and
 *				vale_rate_parse_burst().  A port with several
 *				rings has a part of both for each.
 *	VLAN			N for all ports, or PATTERN=N: access ports of
 *				this VLAN, 1 to VALE_VLAN_MAX; 0 for none
 *	TRUNK			LIST for all ports, or PATTERN=LIST: trunks, see
 *				vale_vlan_trunk(); "no" for none.  A port that
 *				is in both lists is a trunk
 *	NATIVE			N for all trunks, or PATTERN=N: the native VLAN
 *				of a trunk; 0 for none
 *	SOURCE			LIST for all ports, or PATTERN=LIST: see
 *				vale_guard_sources()
 *	IP			LIST for all ports, or PATTERN=LIST: see
 *				vale_guard_prefixes()
 *
 * A LIST has the sign + in place of commas.  Mirrors have neither VLANs nor
 * guards.
 *
 * PATTERN is matched, as by fnmatch(3), against the part of a port's name
 * behind the colon; the last match applies.  A rule applies to all ports, and
 * to ports that are added later.  Returns 0, or EINVAL and changes nothing.
 * Requires exclusion.
 */
int	vale_learn_rule_set(struct vale_learn *vl, enum vale_learn_rule rule,
	    const char *text);

/*
 * Return whether frames may be ruled, and rings need lr_memory, if this valid
 * rule is set.
 */
bool	vale_learn_rule_rules(const struct vale_learn *vl,
	    enum vale_learn_rule rule, const char *text);

/*
 * Set whether frames to 01:80:c2:00:00:00 to 0f pass, which are for stations on
 * the link (IEEE 802.1Q, table 8-1).  At first these pass.
 */
void	vale_learn_set_reserved(struct vale_learn *vl, bool pass);

/*
 * Return whether a frame that `port' sends through ring `lr' exceeds the rate
 * that the ring must have (vale_rate_limited()); then the frame is counted, and
 * the caller must drop it.  The frame makes `frames' frames and `made' bytes
 * where it is cut, and has `bytes' bytes uncut.
 */
bool	vale_learn_exceeds(struct vale_learn *vl, struct vale_learn_ring *lr,
	    unsigned int port, uint32_t frames, uint64_t made, uint32_t bytes,
	    uint64_t now_ns);

/* A port's state. */
struct vale_learn_port_info {
	char		lpi_name[VALE_LEARN_NAME];
	bool		lpi_private;
	bool		lpi_mirror;
	unsigned int	lpi_limit;
	unsigned int	lpi_used;	/* addresses in the table */
	struct vale_rate_conf lpi_rate;
	unsigned int	lpi_vlan;	/* of an access port, or 0 */
	unsigned int	lpi_trunk;	/* VLANs of a trunk's list */
	unsigned int	lpi_native;	/* of a trunk, or 0 */
	unsigned int	lpi_source;	/* addresses of the guard's list */
	unsigned int	lpi_ip;		/* prefixes of the guard's list */
	uint64_t	lpi_counter[VALE_LEARN_NCOUNTERS];
};

/*
 * Set *info to the state of the port with this index, which must exist and must
 * not be removed meanwhile.
 */
void	vale_learn_port_info(const struct vale_learn *vl, unsigned int index,
	    struct vale_learn_port_info *info);

/* vale_learn_rule.c: lists of words. */

/*
 * Copy the next word of *text and advance *text past it.  Returns 1; 0 at the
 * end; -1 if the word does not fit in VALE_LEARN_WORD bytes, or has characters
 * other than printable ASCII.
 */
int	vale_learn_word(const char **text, char word[VALE_LEARN_WORD]);

/* Return whether `text' is a valid list for `rule'. */
bool	vale_learn_rule_valid(enum vale_learn_rule rule, const char *text);

/* The value of a list for a port. */
union vale_learn_value {
	unsigned int	v_number;	/* 0 or 1, the limit, or a VLAN */
	struct vale_rate_conf v_rate;	/* of VALE_LEARN_RATE */
	struct vale_vlan v_trunk;	/* of VALE_LEARN_TRUNK */
	struct vale_guard v_guard;	/* of VALE_LEARN_SOURCE, _IP */
};

/* Return whether a list has no words. */
bool	vale_learn_rule_empty(const char *text);

/* Set *value to that of a valid list for a port; 0 if no word matches. */
void	vale_learn_rule_match(enum vale_learn_rule rule, const char *text,
	    const char *port_name, union vale_learn_value *value);

#endif /* !_DEV_NETMAP_VALE_LEARN_H_ */
