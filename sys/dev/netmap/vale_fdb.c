/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The learning table: see vale_fdb.h.
 *
 * A hash table of buckets.  A bucket has five ways and fills one cache line, so
 * a lookup costs at most one miss.  A way is two words: the entry (station and
 * port, 0 if free), and the second in which the station was last seen.  Threads
 * load and store both with relaxed atomics, and look at a word only after they
 * have loaded it once:
 *
 * - An entry is complete in itself; it refers to nothing that needs ordering.
 * - A refresh, by far the most frequent case, is one store of the time, and
 *   only if the second has changed.
 * - A thread that adds, moves or replaces an entry first takes the bucket's
 *   fb_writer, by compare and set, so no station is in a bucket twice.  If
 *   another thread has it, the frame is not learned; the next one will be.
 *   Nor does it wait, so the table may be used in any context of a kernel.
 *   Only a flush waits for a bucket.
 * - fdb_used[] counts the entries of each port in all buckets.  A writer counts
 *   an entry before it stores that, and takes the count back if the port is at
 *   its limit; so no port has more entries than its limit.
 * - A lookup or a refresh may see an entry together with the time of the one
 *   that was in the same way a moment ago, and then flood a frame whose
 *   destination is known, use an expired entry once, or refresh an entry just
 *   written.  Another order of the same events has the same results.
 */

#include <sys/param.h>
#include <sys/systm.h>

#include <dev/netmap/vale_fdb.h>

_Static_assert(sizeof(struct vale_fdb_bucket) == 64, "one cache line");
_Static_assert(VALE_FDB_FLOOD >= VALE_FDB_PORTS && VALE_FDB_FLOOD <= 255,
    "a destination is a port or flood, in a byte");

/*
 * A station is its VLAN, 12 bits, above its address, 48 bits in the host's
 * order.  fdb_mix() maps it to another number of 64 bits, one to one.  The
 * upper 10 bits of that choose the bucket, so an entry need not have them: an
 * entry is the other 54, a bit that is set, and the port.
 */
#define	FDB_ADDR_BITS	48
#define	FDB_BUCKET_BITS	10
#define	FDB_PORT_BITS	8
#define	FDB_PORT_MASK	((UINT64_C(1) << FDB_PORT_BITS) - 1)
#define	FDB_USED	(UINT64_C(1) << FDB_PORT_BITS)
#define	FDB_TAG(e)	((e) & ~FDB_PORT_MASK)
#define	FDB_PORT(e)	((unsigned int)((e) & FDB_PORT_MASK))

_Static_assert(VALE_FDB_BUCKETS == 1 << FDB_BUCKET_BITS, "the hash's width");
_Static_assert(FDB_PORT_BITS < FDB_BUCKET_BITS, "a bit for FDB_USED");

/* 2^64 / golden ratio, and its inverse modulo 2^64. */
#define	FDB_PHI		UINT64_C(0x9e3779b97f4a7c15)
#define	FDB_PHI_INVERSE	UINT64_C(0xf1de83e19937733d)

static uint64_t
fdb_key(const uint8_t *addr, unsigned int vlan)
{
	uint32_t first;
	uint16_t last;

	memcpy(&first, addr, sizeof(first));
	memcpy(&last, addr + sizeof(first), sizeof(last));
	return ((uint64_t)vlan << FDB_ADDR_BITS | (uint64_t)last << 32 | first);
}

/* Return whether the key has an address that is not all zeros. */
static bool
fdb_key_valid(uint64_t key)
{
	return (key << (64 - FDB_ADDR_BITS) != 0);
}

static uint64_t
fdb_mix(const struct vale_fdb *f, uint64_t key)
{
	uint64_t h;

	h = (key ^ f->fdb_seed[0]) * f->fdb_seed[1];
	h ^= h >> 32;
	return (h * FDB_PHI);
}

/* Return the key of fdb_mix(). */
static uint64_t
fdb_unmix(const struct vale_fdb *f, uint64_t h)
{
	uint64_t inverse = f->fdb_seed[1];
	int i;

	/* Three bits are right at first, and twice as many each time. */
	for (i = 0; i < 5; i++)
		inverse *= 2 - f->fdb_seed[1] * inverse;
	h *= FDB_PHI_INVERSE;
	h ^= h >> 32;
	return (h * inverse ^ f->fdb_seed[0]);
}

/* Return the bucket of a mixed key. */
static unsigned int
fdb_bucket(uint64_t h)
{
	return (h >> (64 - FDB_BUCKET_BITS));
}

/* Return the entry of a mixed key, without the port. */
static uint64_t
fdb_tag(uint64_t h)
{
	return (h << FDB_BUCKET_BITS | FDB_USED);
}

/* Set the station of an entry in bucket number `bucket'. */
static void
fdb_station(const struct vale_fdb *f, unsigned int bucket, uint64_t entry,
    struct vale_fdb_entry *fe)
{
	const uint64_t key = fdb_unmix(f,
	    (uint64_t)bucket << (64 - FDB_BUCKET_BITS) |
	    entry >> FDB_BUCKET_BITS);
	const uint32_t first = (uint32_t)key;
	const uint16_t last = (uint16_t)(key >> 32);

	memcpy(fe->fe_addr, &first, sizeof(first));
	memcpy(fe->fe_addr + sizeof(first), &last, sizeof(last));
	fe->fe_vlan = key >> FDB_ADDR_BITS;
}

/* Return whether an entry has expired; another thread may be a tick ahead. */
static bool
fdb_expired(const struct vale_fdb *f, uint32_t seen_s, uint32_t now_s)
{
	uint32_t ageing_s = atomic_load_32(&f->fdb_ageing_s);

	return (ageing_s != 0 && (int32_t)(now_s - seen_s) > (int32_t)ageing_s);
}

void
vale_fdb_init(struct vale_fdb *f, const uint64_t seed[2])
{
	MPASS(((uintptr_t)f & 63) == 0);
	memset(f, 0, sizeof(*f));
	f->fdb_seed[0] = seed[0];
	/* Odd, so that the product has an inverse. */
	f->fdb_seed[1] = seed[1] | 1;
	f->fdb_ageing_s = VALE_FDB_AGEING_S;
	f->fdb_changes = 1;
}

/* Begin a generation: a thread that acquires the number sees the change. */
static void
fdb_changed(struct vale_fdb *f)
{
	atomic_add_rel_32(&f->fdb_changes, 1);
}

void
vale_fdb_set_ageing(struct vale_fdb *f, uint32_t seconds)
{
	if (seconds > VALE_FDB_AGEING_MAX_S)
		seconds = VALE_FDB_AGEING_MAX_S;
	atomic_store_32(&f->fdb_ageing_s, seconds);
	fdb_changed(f);
}

void
vale_fdb_set_limit(struct vale_fdb *f, unsigned int port, unsigned int limit)
{
	MPASS(port < VALE_FDB_PORTS && limit <= VALE_FDB_ENTRIES);
	atomic_store_32(&f->fdb_limit[port], limit);
	fdb_changed(f);
}

/*
 * Return the way for a new address of `port': a free or expired way, else the
 * port's own oldest, else the oldest.
 */
static unsigned int
fdb_victim(const struct vale_fdb *f, const struct vale_fdb_bucket *b,
    unsigned int port, uint32_t now_s)
{
	uint64_t entry;
	uint32_t seen_s;
	int32_t age_s, best_age_s = 0;
	unsigned int best = 0, w;
	bool own, best_own = false;

	for (w = 0; w < VALE_FDB_WAYS; w++) {
		entry = atomic_load_64(&b->fb_entry[w]);
		seen_s = atomic_load_32(&b->fb_seen_s[w]);
		if (entry == 0 || fdb_expired(f, seen_s, now_s))
			return (w);
		own = FDB_PORT(entry) == port;
		age_s = (int32_t)(now_s - seen_s);
		if (w == 0 || own > best_own ||
		    (own == best_own && age_s > best_age_s)) {
			best = w;
			best_own = own;
			best_age_s = age_s;
		}
	}
	return (best);
}

static bool
fdb_writer_enter(struct vale_fdb_bucket *b)
{
	return (atomic_cmpset_acq_32(&b->fb_writer, 0, 1) != 0);
}

static void
fdb_writer_leave(struct vale_fdb_bucket *b)
{
	MPASS(atomic_load_32(&b->fb_writer) == 1);
	atomic_store_rel_32(&b->fb_writer, 0);
}

/* Count an entry of `port'.  Returns false if the port is at its limit. */
static bool
fdb_take(struct vale_fdb *f, unsigned int port)
{
	unsigned int limit = atomic_load_32(&f->fdb_limit[port]), used;

	used = atomic_fetchadd_32(&f->fdb_used[port], 1);
	if (limit == 0 || used < limit)
		return (true);
	atomic_subtract_32(&f->fdb_used[port], 1);
	return (false);
}

/* Stop counting `entry', if there was one. */
static void
fdb_give(struct vale_fdb *f, uint64_t entry)
{
	if (entry == 0)
		return;
	MPASS(atomic_load_32(&f->fdb_used[FDB_PORT(entry)]) > 0);
	atomic_subtract_32(&f->fdb_used[FDB_PORT(entry)], 1);
}

/*
 * Free the expired entries of a port at its limit.  This walks the table, so at
 * most once a second for each port.
 */
static void
fdb_sweep(struct vale_fdb *f, unsigned int port, uint32_t now_s)
{
	struct vale_fdb_bucket *b;
	uint64_t entry;
	unsigned int w;

	if (atomic_swap_32(&f->fdb_swept_s[port], now_s) == now_s)
		return;
	for (b = f->fdb_bucket; b < f->fdb_bucket + VALE_FDB_BUCKETS; b++) {
		for (w = 0; w < VALE_FDB_WAYS; w++) {
			entry = atomic_load_64(&b->fb_entry[w]);
			if (entry == 0 || FDB_PORT(entry) != port ||
			    !fdb_expired(f, atomic_load_32(&b->fb_seen_s[w]),
			    now_s))
				continue;
			if (!fdb_writer_enter(b))
				break;
			if (atomic_load_64(&b->fb_entry[w]) == entry) {
				atomic_store_64(&b->fb_entry[w], 0);
				fdb_give(f, entry);
				fdb_changed(f);
			}
			fdb_writer_leave(b);
		}
	}
}

/* Add or move a station.  The caller must have the bucket's fb_writer. */
static enum vale_fdb_news
fdb_write(struct vale_fdb *f, struct vale_fdb_bucket *b, uint64_t tag,
    unsigned int port, uint32_t now_s)
{
	enum vale_fdb_news news = VALE_FDB_LEARNED;
	uint64_t entry;
	uint32_t seen_s;
	unsigned int w;

	MPASS(atomic_load_32(&b->fb_writer) == 1);
	for (w = 0; w < VALE_FDB_WAYS; w++) {
		entry = atomic_load_64(&b->fb_entry[w]);
		if (FDB_TAG(entry) == tag)
			break;
	}
	if (w == VALE_FDB_WAYS) {
		w = fdb_victim(f, b, port, now_s);
		entry = atomic_load_64(&b->fb_entry[w]);
	} else {
		seen_s = atomic_load_32(&b->fb_seen_s[w]);
		if (FDB_PORT(entry) == port)
			news = VALE_FDB_KNOWN;
		else if (!fdb_expired(f, seen_s, now_s))
			news = VALE_FDB_MOVED;
	}
	if (news == VALE_FDB_KNOWN)
		return (news);
	if (!fdb_take(f, port))
		return (VALE_FDB_REFUSED);
	fdb_give(f, entry);
	atomic_store_32(&b->fb_seen_s[w], now_s);
	atomic_store_64(&b->fb_entry[w], tag | port);
	fdb_changed(f);
	return (news);
}

/*
 * Learn a station of `port' that the bucket of mixed key `h' does not have.  Not
 * inlined, for the registers of vale_fdb_learn().
 */
static enum vale_fdb_news __attribute__((__noinline__))
fdb_add(struct vale_fdb *f, uint64_t h, unsigned int port, uint32_t now_s)
{
	struct vale_fdb_bucket *b = &f->fdb_bucket[fdb_bucket(h)];
	const uint32_t limit = atomic_load_32(&f->fdb_limit[port]);
	enum vale_fdb_news news;

	if (limit != 0 && atomic_load_32(&f->fdb_used[port]) >= limit)
		fdb_sweep(f, port, now_s);
	if (!fdb_writer_enter(b))
		return (VALE_FDB_IGNORED);
	news = fdb_write(f, b, fdb_tag(h), port, now_s);
	fdb_writer_leave(b);
	return (news);
}

enum vale_fdb_news
vale_fdb_learn(struct vale_fdb *f, const uint8_t *addr, unsigned int vlan,
    unsigned int port, uint32_t now_s)
{
	struct vale_fdb_bucket *b;
	uint64_t entry, h, key;
	uint32_t seen_s;
	unsigned int w;

	MPASS(port < VALE_FDB_PORTS && vlan < VALE_FDB_VLANS);
	key = fdb_key(addr, vlan);
	if ((addr[0] & 1) != 0 || !fdb_key_valid(key))
		return (VALE_FDB_IGNORED);
	h = fdb_mix(f, key);
	entry = fdb_tag(h) | port;
	b = &f->fdb_bucket[fdb_bucket(h)];
	for (w = 0; w < VALE_FDB_WAYS; w++) {
		if (atomic_load_64(&b->fb_entry[w]) != entry)
			continue;
		seen_s = atomic_load_32(&b->fb_seen_s[w]);
		if (seen_s == now_s)
			return (VALE_FDB_KNOWN);
		atomic_store_32(&b->fb_seen_s[w], now_s);
		if (!fdb_expired(f, seen_s, now_s))
			return (VALE_FDB_KNOWN);
		fdb_changed(f);
		return (VALE_FDB_LEARNED);
	}
	return (fdb_add(f, h, port, now_s));
}

unsigned int
vale_fdb_lookup(const struct vale_fdb *f, const uint8_t *addr,
    unsigned int vlan, uint32_t now_s)
{
	const struct vale_fdb_bucket *b;
	uint64_t entry, h, tag;
	unsigned int w;

	MPASS(vlan < VALE_FDB_VLANS);
	/* Group addresses are never learned, nor is zero. */
	if ((addr[0] & 1) != 0)
		return (VALE_FDB_FLOOD);
	h = fdb_mix(f, fdb_key(addr, vlan));
	tag = fdb_tag(h);
	b = &f->fdb_bucket[fdb_bucket(h)];
	for (w = 0; w < VALE_FDB_WAYS; w++) {
		entry = atomic_load_64(&b->fb_entry[w]);
		if (FDB_TAG(entry) != tag)
			continue;
		if (fdb_expired(f, atomic_load_32(&b->fb_seen_s[w]), now_s))
			break;
		MPASS(FDB_PORT(entry) < VALE_FDB_PORTS);
		return (FDB_PORT(entry));
	}
	return (VALE_FDB_FLOOD);
}

/* Remove the entries of `port' from a bucket that has any. */
static void
fdb_flush_bucket(struct vale_fdb *f, struct vale_fdb_bucket *b,
    unsigned int port)
{
	uint64_t entry;
	unsigned int w;

	/* The bucket is another thread's for a few instructions. */
	while (!fdb_writer_enter(b))
		continue;
	for (w = 0; w < VALE_FDB_WAYS; w++) {
		entry = atomic_load_64(&b->fb_entry[w]);
		if (entry != 0 && FDB_PORT(entry) == port) {
			atomic_store_64(&b->fb_entry[w], 0);
			fdb_give(f, entry);
		}
	}
	fdb_writer_leave(b);
}

void
vale_fdb_forget(struct vale_fdb *f, unsigned int port)
{
	struct vale_fdb_bucket *b;
	uint64_t entry;
	unsigned int w;

	MPASS(port < VALE_FDB_PORTS);
	for (b = f->fdb_bucket; b < f->fdb_bucket + VALE_FDB_BUCKETS; b++) {
		for (w = 0; w < VALE_FDB_WAYS; w++) {
			entry = atomic_load_64(&b->fb_entry[w]);
			if (entry != 0 && FDB_PORT(entry) == port)
				break;
		}
		if (w < VALE_FDB_WAYS)
			fdb_flush_bucket(f, b, port);
	}
	fdb_changed(f);
}

void
vale_fdb_flush(struct vale_fdb *f, unsigned int port)
{
	vale_fdb_forget(f, port);
	MPASS(atomic_load_32(&f->fdb_used[port]) == 0);
	vale_fdb_set_limit(f, port, 0);
}

bool
vale_fdb_next(const struct vale_fdb *f, unsigned int *cursor, uint32_t now_s,
    struct vale_fdb_entry *entry)
{
	const struct vale_fdb_bucket *b;
	uint64_t e;
	uint32_t seen_s;
	unsigned int bucket, w;

	while (*cursor < VALE_FDB_ENTRIES) {
		bucket = *cursor / VALE_FDB_WAYS;
		b = &f->fdb_bucket[bucket];
		w = (*cursor)++ % VALE_FDB_WAYS;
		e = atomic_load_64(&b->fb_entry[w]);
		seen_s = atomic_load_32(&b->fb_seen_s[w]);
		if (e == 0 || fdb_expired(f, seen_s, now_s))
			continue;
		fdb_station(f, bucket, e, entry);
		entry->fe_port = FDB_PORT(e);
		entry->fe_age_s = (int32_t)(now_s - seen_s) > 0 ?
		    now_s - seen_s : 0;
		return (true);
	}
	return (false);
}
