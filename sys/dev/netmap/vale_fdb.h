/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A learning switch's table: which station was last seen on which port.
 *
 * It is the lookup stage of the user-space switch (lib/libvale) and, on
 * FreeBSD, of the in-tree VALE through netmap_bdg_regops(): port numbers and
 * the two special destinations are netmap's.
 *
 * Any number of threads may learn and look up at once; nobody ever waits.
 * Time is an input: seconds on any clock that does not go back by more than
 * the threads' readings of it differ.  Addresses are 6 bytes as in a frame,
 * anything a stranger may write there is allowed.
 */

#ifndef _DEV_NETMAP_VALE_FDB_H_
#define	_DEV_NETMAP_VALE_FDB_H_

#ifdef _KERNEL
#include <sys/types.h>
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#endif

#define	VALE_FDB_PORTS		254	/* ports are 0 to 253 */
#define	VALE_FDB_FLOOD		254	/* every port but the source */

#define	VALE_FDB_BUCKETS	1024
#define	VALE_FDB_WAYS		5	/* what a cache line holds */
#define	VALE_FDB_ENTRIES	(VALE_FDB_BUCKETS * VALE_FDB_WAYS)
#define	VALE_FDB_AGEING_S	300	/* IEEE 802.1D's default */
#define	VALE_FDB_AGEING_MAX_S	1000000	/* and its greatest value */

/* Private to vale_fdb.c; the layout is here for those who allocate it. */
struct vale_fdb_bucket {
	_Alignas(64)
	uint64_t	fb_entry[VALE_FDB_WAYS];	/* address, port; 0 */
	uint32_t	fb_seen_s[VALE_FDB_WAYS];
	uint32_t	fb_writer;
};

struct vale_fdb {
	uint64_t	f_seed[2];
	uint32_t	f_ageing_s;
	uint32_t	f_changes;
	uint16_t	f_limit[VALE_FDB_PORTS];	/* 0: none */
	uint16_t	f_used[VALE_FDB_PORTS];		/* entries it has */
	uint32_t	f_swept_s[VALE_FDB_PORTS];	/* of expired ones */
	struct vale_fdb_bucket f_bucket[VALE_FDB_BUCKETS];
};

/* What vale_fdb_learn() did. */
enum vale_fdb_news {
	VALE_FDB_KNOWN,		/* nothing new */
	VALE_FDB_LEARNED,
	VALE_FDB_MOVED,		/* the station was on another port */
	VALE_FDB_IGNORED,	/* no station's address, or the bucket is being
				   written: the next frame will do */
	VALE_FDB_REFUSED,	/* the port has as many as it may */
};

struct vale_fdb_entry {
	uint8_t		fe_addr[6];
	uint8_t		fe_port;
	uint32_t	fe_age_s;	/* since last seen */
};

/*
 * Make an empty table in memory aligned to 64 bytes.  `seed' should be random:
 * it keeps strangers from choosing addresses that share a bucket.
 */
void	vale_fdb_init(struct vale_fdb *f, const uint64_t seed[2]);

/*
 * Entries not seen for more than `seconds' are no longer used; 0: for ever.
 * Values above VALE_FDB_AGEING_MAX_S count as that.
 */
void	vale_fdb_set_ageing(struct vale_fdb *f, uint32_t seconds);

/*
 * How many addresses `port' may have, up to VALE_FDB_ENTRIES; 0: any number.
 * Those it has already stay.  Expired ones make room within a second.
 */
void	vale_fdb_set_limit(struct vale_fdb *f, unsigned int port,
	    unsigned int limit);

/*
 * A frame from `addr' came in on `port'.  Where all ways of a bucket are
 * taken, a port loses its own oldest address first and another's only if it
 * has none there.
 */
enum vale_fdb_news vale_fdb_learn(struct vale_fdb *f, const uint8_t *addr,
	    unsigned int port, uint32_t now_s);

/*
 * A number that is another one whenever the table's answers may be: to
 * remember them for as long as it, and the second, stay the same.  Take it
 * before asking.  Never 0 in practice.
 */
static inline uint32_t
vale_fdb_changes(const struct vale_fdb *f)
{
	return (__atomic_load_n(&f->f_changes, __ATOMIC_ACQUIRE));
}

/* The port of `addr', VALE_FDB_FLOOD if it is unknown or a group address. */
unsigned int vale_fdb_lookup(const struct vale_fdb *f, const uint8_t *addr,
	    uint32_t now_s);

/*
 * Forget all stations on `port', and its limit.  The caller sees to it that
 * nobody learns at the same time.
 */
void	vale_fdb_flush(struct vale_fdb *f, unsigned int port);

/*
 * Step through the entries in use: *cursor starts at 0.  Returns false at the
 * end.  What is learned meanwhile may or may not be shown.
 */
bool	vale_fdb_next(const struct vale_fdb *f, unsigned int *cursor,
	    uint32_t now_s, struct vale_fdb_entry *entry);

#endif /* !_DEV_NETMAP_VALE_FDB_H_ */
