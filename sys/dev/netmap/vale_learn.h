/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What vale_learn(4) decides: where each frame of a switch goes.  It is the
 * learning table, who may talk to whom, who gets copies, how many addresses a
 * port may have, and what is counted of all that.
 *
 * It knows no kernel.  The module (vale_learn_mod.c) tells it of ports, hands
 * it the addresses of each frame and does what it says.
 *
 * "Forwarding": any number of threads at once call vale_learn_forward(), one
 * at a time for a lane.  Under "exclusion" nobody forwards; the
 * kernel has it with the bridge's lock held for writing.
 */

#ifndef _DEV_NETMAP_VALE_LEARN_H_
#define	_DEV_NETMAP_VALE_LEARN_H_

#ifdef _KERNEL
#include <sys/param.h>
#include <sys/systm.h>
#else
#include <string.h>
#endif
#include <dev/netmap/vale_fdb.h>

#define	VALE_LEARN_NAME		64	/* bytes of a port's name, with NUL */
#define	VALE_LEARN_TEXT		1024	/* of a list, with NUL */
#define	VALE_LEARN_WORD		32	/* of a word of a list, with NUL */
#define	VALE_LEARN_HEADER	14	/* bytes of a frame that must be seen */
#define	VALE_LEARN_ADDRS	12	/* of which these are looked at */

/* Where to: a port, VALE_FDB_FLOOD, or nowhere.  Netmap has the same. */
#define	VALE_LEARN_NONE		(VALE_FDB_FLOOD + 1)
/* Set beside one of these where there are copies to make. */
#define	VALE_LEARN_COPIES	0x100

/*
 * Counters of a port, from its coming: of frames that came from it.
 *
 *	frames = unicast + flooded + all of drop_* but drop_copy
 *
 * unicast frames are not counted, being what is left.  "drop" is what the
 * lookup drops; what finds the destination's ring full is lost later, and
 * netmap keeps no count of that.
 *
 * X(identifier, name)
 */
#define	VALE_LEARN_COUNTERS(X)						\
	X(FRAME,	"frames")	/* taken from the port */	\
	X(BYTE,		"bytes")					\
	X(FLOOD,	"flooded")	/* to all that may have it */	\
	X(LEARNED,	"learned")	/* addresses new on the port */	\
	X(MOVED,	"moved")	/* addresses from another port */ \
	X(COPY,		"copies")	/* made for other ports */	\
	X(DROP_RUNT,	"drop_runt")	/* no header in the first slot */ \
	X(DROP_FAULT,	"drop_fault")	/* indirect, and not readable */ \
	X(DROP_SELF,	"drop_self")	/* for a station on that port */ \
	X(DROP_LIMIT,	"drop_limit")	/* from an address too many */	\
	X(DROP_PRIVATE,	"drop_private")	/* both ports are private */	\
	X(DROP_MIRROR,	"drop_mirror")	/* from a mirror port */	\
	X(DROP_COPY,	"drop_copy")	/* copies that found no room */

enum vale_learn_counter {
#define	VALE_LEARN_ENUM(id, name)	VALE_LEARN_C_##id,
	VALE_LEARN_COUNTERS(VALE_LEARN_ENUM)
#undef VALE_LEARN_ENUM
	VALE_LEARN_NCOUNTERS
};

/* A set of ports. */
#define	VALE_LEARN_WORDS	4
struct vale_learn_set {
	uint64_t	s_word[VALE_LEARN_WORDS];
};

static inline bool
vale_learn_set_has(const struct vale_learn_set *s, unsigned int port)
{
	return ((__atomic_load_n(&s->s_word[port / 64], __ATOMIC_RELAXED) >>
	    port % 64 & 1) != 0);
}

/* Where a frame with these addresses went, if it was to one port. */
struct vale_learn_way {
	uint8_t		lw_addrs[VALE_LEARN_ADDRS];
	uint32_t	lw_now_s;
	uint32_t	lw_changes;	/* vale_fdb_changes() then; 0: none */
	uint32_t	lw_dst;
};

/*
 * One ring's counters, and its last frames' ways by the last bits of their
 * destinations.  Written by the thread that has the ring, so that it costs
 * neither a lock nor a cache line that others write.
 */
#define	VALE_LEARN_WAYS		16
struct vale_learn_lane {
	uint64_t	ln_counter[VALE_LEARN_NCOUNTERS];
	uint64_t	ln_pad[16 - VALE_LEARN_NCOUNTERS];
	struct vale_learn_way ln_way[VALE_LEARN_WAYS];
};
_Static_assert(sizeof(struct vale_learn_lane) == 512, "eight cache lines");

struct vale_learn_port {
	char		lp_name[VALE_LEARN_NAME];	/* "vale0:vm1" */
	unsigned int	lp_rings;
	struct vale_learn_lane lp_lane[];
};

/* What ports are: lists of patterns, as vale_learn_rule_set() has them. */
enum vale_learn_rule {
	VALE_LEARN_PRIVATE,
	VALE_LEARN_MIRROR,
	VALE_LEARN_LIMIT,
	VALE_LEARN_NRULES
};

/* A switch.  Private to vale_learn.c; here for those who allocate it. */
struct vale_learn {
	struct vale_fdb	vl_fdb;		/* aligned to 64 bytes */
	struct vale_learn_port *vl_port[VALE_FDB_PORTS];
	struct vale_learn_set vl_present;
	struct vale_learn_set vl_private;
	struct vale_learn_set vl_mirror;
	bool		vl_special;	/* there are rules for these */
	char		vl_rule[VALE_LEARN_NRULES][VALE_LEARN_TEXT];
};

/*
 * Make a switch without ports in memory aligned to 64 bytes.  `seed': see
 * vale_fdb_init().
 */
void	vale_learn_init(struct vale_learn *vl, const uint64_t seed[2]);

/* Bytes of memory, zeroed, that a port of so many rings needs. */
size_t	vale_learn_port_size(unsigned int rings);

/*
 * A port has come.  `index' is 0 to 253 and not in use, `rings' the number of
 * its transmit rings, at least 1; `name' is cut if need be; `lp'
 * is memory of vale_learn_port_size(), the switch's until removal.  One call
 * at a time, and not at the same time as another that changes something;
 * others may be forwarding.
 */
void	vale_learn_port_add(struct vale_learn *vl, unsigned int index,
	    const char *name, unsigned int rings, struct vale_learn_port *lp);

/*
 * A port has gone, and what was learned on it.  Returns its memory, or NULL
 * when there was no such port.  Under exclusion.
 */
struct vale_learn_port *vale_learn_port_remove(struct vale_learn *vl,
	    unsigned int index);

/* vale_learn_forward() where the last frame's way will not do. */
unsigned int vale_learn_decide(struct vale_learn *vl,
	    struct vale_learn_lane *lane, unsigned int port,
	    const uint8_t *addrs, uint32_t len, uint32_t now_s,
	    struct vale_learn_set *copies);

static inline void
vale_learn_lane_count(struct vale_learn_lane *lane, enum vale_learn_counter c,
    uint64_t n)
{
	__atomic_store_n(&lane->ln_counter[c], lane->ln_counter[c] + n,
	    __ATOMIC_RELAXED);
}

/*
 * A ring's lane; NULL: the port was not added.  The rings of a port are
 * numbered one after another, but not always from 0: the host's of an adapter
 * come after its own.
 */
static inline struct vale_learn_lane *
vale_learn_lane(const struct vale_learn *vl, unsigned int port,
    unsigned int ring)
{
	struct vale_learn_port *lp;

	lp = __atomic_load_n(&vl->vl_port[port], __ATOMIC_ACQUIRE);
	if (lp == NULL)
		return (NULL);
	return (&lp->lp_lane[ring < lp->lp_rings ? ring :
	    ring % lp->lp_rings]);
}

/* Whether two frames have the same source; and the same destination, too. */
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

static inline bool
vale_learn_same(const uint8_t *a, const uint8_t *b)
{
	uint64_t x, y;
	uint32_t u, v;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	memcpy(&u, a + 8, sizeof(u));
	memcpy(&v, b + 8, sizeof(v));
	return (x == y && u == v);
}

/* The one place where the way of a frame may be remembered. */
static inline struct vale_learn_way *
vale_learn_way(struct vale_learn_lane *lane, const uint8_t *addrs)
{
	return (&lane->ln_way[addrs[5] % VALE_LEARN_WAYS]);
}

/* What is remembered still holds. */
static inline bool
vale_learn_holds(const struct vale_learn *vl, const struct vale_learn_way *way,
    uint32_t now_s)
{
	return (way->lw_now_s == now_s &&
	    way->lw_changes == vale_fdb_changes(&vl->vl_fdb));
}

/*
 * Where a frame goes that `port' sends through the ring of `lane'.  `addrs'
 * are the 12 bytes it begins with, `len' the bytes of its first slot, `bytes'
 * all of its; where `len' is less than VALE_LEARN_HEADER, or `addrs' NULL
 * because nobody can read them, it is dropped.  `now_s': see vale_fdb.h.
 *
 * Returns a port, VALE_FDB_FLOOD or VALE_LEARN_NONE; with VALE_LEARN_COPIES
 * added, each port of *copies gets a copy beside that.
 *
 * Most frames have the addresses of another shortly before, in the same second
 * and with nothing changed in between: those cost no visit to the table.
 */
static inline unsigned int
vale_learn_forward(struct vale_learn *vl, struct vale_learn_lane *lane,
    unsigned int port, const uint8_t *addrs, uint32_t len, uint32_t bytes,
    uint32_t now_s, struct vale_learn_set *copies)
{
	const struct vale_learn_way *way;

	vale_learn_lane_count(lane, VALE_LEARN_C_FRAME, 1);
	vale_learn_lane_count(lane, VALE_LEARN_C_BYTE, bytes);
	if (len >= VALE_LEARN_HEADER && addrs != NULL) {
		way = vale_learn_way(lane, addrs);
		if (vale_learn_same(addrs, way->lw_addrs) &&
		    vale_learn_holds(vl, way, now_s))
			return (way->lw_dst);
	}
	return (vale_learn_decide(vl, lane, port, addrs, len, now_s, copies));
}

/*
 * Set what ports are.  `text' is a list of words, separated by blanks or
 * commas:
 *
 *	PRIVATE, MIRROR		PATTERN, or !PATTERN for those it is not for
 *	LIMIT			N for all ports, or PATTERN=N; N is 0 to
 *				VALE_FDB_ENTRIES, 0 for any number
 *
 * PATTERN is matched as in fnmatch(3) to what follows the colon in a port's
 * name; the last word that matches counts.  Applies to ports that are there
 * and those to come.  Returns 0, or EINVAL and changes nothing.
 * Under exclusion.
 */
int	vale_learn_rule_set(struct vale_learn *vl, enum vale_learn_rule rule,
	    const char *text);

/* A port's state, for listings; `index' was added and is not being removed. */
struct vale_learn_port_info {
	char		pi_name[VALE_LEARN_NAME];
	bool		pi_private;
	bool		pi_mirror;
	unsigned int	pi_limit;
	unsigned int	pi_used;	/* addresses in the table */
	uint64_t	pi_counter[VALE_LEARN_NCOUNTERS];
};
void	vale_learn_port_info(const struct vale_learn *vl, unsigned int index,
	    struct vale_learn_port_info *info);

const char *vale_learn_counter_name(enum vale_learn_counter c);

/* vale_learn_rule.c: words of lists. */

/*
 * Copy the next word of *text and step over it.  1; 0 at the end; -1 where it
 * is longer than VALE_LEARN_WORD or has other than printable ASCII in it.
 */
int	vale_learn_word(const char **text, char word[VALE_LEARN_WORD]);

/* Whether `text' is a list for that rule. */
bool	vale_learn_rule_valid(enum vale_learn_rule rule, const char *text);

/* What a valid list says of the port: 0 or 1, or its limit. */
unsigned int vale_learn_rule_match(enum vale_learn_rule rule,
	    const char *text, const char *port_name);

#endif /* !_DEV_NETMAP_VALE_LEARN_H_ */
