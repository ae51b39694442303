/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A learning switch's forwarding table: the port on which each station was last
 * seen.  A station is an address in a VLAN, so the same address may be on
 * different ports in different VLANs (independent learning of IEEE 802.1Q).
 *
 * The table is the lookup stage of the user-space switch (lib/libvale) and,
 * through netmap_bdg_regops(), of the kernel's VALE.  Port numbers and the
 * special destinations are netmap's.
 *
 * Any number of threads may learn and look up at once; none of them waits.
 * Time is an argument: seconds of a monotonic clock, whose readings may differ
 * by a tick between threads.  An address is 6 bytes as they stand in a frame;
 * any value is valid.  A VLAN is 0 to VALE_FDB_VLANS - 1; 0 stands for frames
 * in no VLAN.
 */

#ifndef _DEV_NETMAP_VALE_FDB_H_
#define	_DEV_NETMAP_VALE_FDB_H_

#include <sys/param.h>
#include <sys/systm.h>

#include <dev/netmap/vale_fdb_entry.h>

#define	VALE_FDB_PORTS		254	/* ports are 0 to 253 */
#define	VALE_FDB_FLOOD		254	/* every port but the source */
#define	VALE_FDB_VLANS		4096	/* 0 to 4095 */

/* Private to vale_fdb.c, except that the caller allocates it. */
struct vale_fdb_bucket {
	_Alignas(64)
	uint64_t	fb_entry[VALE_FDB_WAYS]; /* station, port; 0: free */
	uint32_t	fb_seen_s[VALE_FDB_WAYS];
	uint32_t	fb_writer;	/* 1: a thread is writing entries */
};

struct vale_fdb {
	uint64_t	fdb_seed[2];
	uint32_t	fdb_ageing_s;
	uint32_t	fdb_changes;
	uint32_t	fdb_limit[VALE_FDB_PORTS];	/* entries; 0: none */
	uint32_t	fdb_used[VALE_FDB_PORTS];	/* entries */
	uint32_t	fdb_swept_s[VALE_FDB_PORTS];	/* last fdb_sweep() */
	struct vale_fdb_bucket fdb_bucket[VALE_FDB_BUCKETS];
};

/* The result of vale_fdb_learn(). */
enum vale_fdb_news {
	VALE_FDB_KNOWN,		/* the entry exists */
	VALE_FDB_LEARNED,
	VALE_FDB_MOVED,		/* the station was on another port */
	VALE_FDB_IGNORED,	/* a group address or all zeros, or another
				   thread is writing to the bucket: the next
				   frame teaches the same */
	VALE_FDB_REFUSED,	/* the port is at its limit */
};

/*
 * Make an empty table.  `f' must be aligned to 64 bytes.  `seed' should be
 * random, so that nobody can choose addresses that share a bucket.
 */
void	vale_fdb_init(struct vale_fdb *f, const uint64_t seed[2]);

/*
 * Expire entries that were not seen for more than `seconds'; 0: never.  The
 * maximum is VALE_FDB_AGEING_MAX_S, also for greater values.
 */
void	vale_fdb_set_ageing(struct vale_fdb *f, uint32_t seconds);

/*
 * Limit the addresses of `port' to `limit', at most VALE_FDB_ENTRIES; 0: no
 * limit.  Entries beyond a lower limit stay until they expire.  At the limit,
 * expired entries are reused within a second.
 */
void	vale_fdb_set_limit(struct vale_fdb *f, unsigned int port,
	    unsigned int limit);

/*
 * Learn that a frame from `addr' in `vlan' came in on `port'.  If all ways of
 * the bucket are in use, the new entry replaces the port's own oldest entry,
 * or, if the port has no entry there, the oldest of all.
 */
enum vale_fdb_news vale_fdb_learn(struct vale_fdb *f, const uint8_t *addr,
	    unsigned int vlan, unsigned int port, uint32_t now_s);

/*
 * Return the table's generation.  The result of a lookup may be cached for as
 * long as the generation that was read before the lookup, and the second, stay
 * the same.  Generations wrap around after 2^32 changes; 0 stands for "none".
 */
static inline uint32_t
vale_fdb_changes(const struct vale_fdb *f)
{
	return (atomic_load_acq_32(&f->fdb_changes));
}

/*
 * Return the port of `addr' in `vlan', or VALE_FDB_FLOOD if that is unknown or
 * a group address.
 */
unsigned int vale_fdb_lookup(const struct vale_fdb *f, const uint8_t *addr,
	    unsigned int vlan, uint32_t now_s);

/*
 * Remove all entries that `port' has.  What is learned meanwhile may stay.
 * Waits for other threads that write to a bucket, a few instructions.
 */
void	vale_fdb_forget(struct vale_fdb *f, unsigned int port);

/*
 * Remove all entries of `port', and its limit.  No thread may learn for this
 * port meanwhile; any may for other ports.  Waits as vale_fdb_forget() does.
 */
void	vale_fdb_flush(struct vale_fdb *f, unsigned int port);

/*
 * Iterate over the entries in use.  *cursor must be 0 in the first call;
 * returns false at the end.  Entries that are learned meanwhile may be missed.
 */
bool	vale_fdb_next(const struct vale_fdb *f, unsigned int *cursor,
	    uint32_t now_s, struct vale_fdb_entry *entry);

#endif /* !_DEV_NETMAP_VALE_FDB_H_ */
