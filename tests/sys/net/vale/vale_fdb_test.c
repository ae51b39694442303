/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The learning table, with a clock that the tests set.
 */

#include <sys/mman.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include <dev/netmap/vale_fdb.h>

#include "aborts.h"
#include "test.h"
#include "touch.h"

static const uint64_t seed[2] = { 0x0123456789abcdef, 0xfedcba9876543210 };
static struct vale_fdb fdb;

static const uint8_t *
addr(uint32_t n)
{
	static _Thread_local uint8_t a[6];

	a[0] = 2;
	memcpy(a + 2, &n, sizeof(n));
	return (a);
}

static unsigned int
entries(uint32_t now_s)
{
	struct vale_fdb_entry e;
	unsigned int cursor = 0, n = 0;

	while (vale_fdb_next(&fdb, &cursor, now_s, &e))
		n++;
	return (n);
}

/* Find `n' addresses that hash into the bucket of addr(0). */
static void
same_bucket(uint32_t *out, unsigned int n)
{
	struct vale_fdb_bucket *b;
	uint32_t i;
	unsigned int found = 0;

	vale_fdb_init(&fdb, seed);
	vale_fdb_learn(&fdb, addr(0), 0, 0, 0);
	for (b = fdb.fdb_bucket; b->fb_entry[0] == 0; b++)
		;
	out[found++] = 0;
	for (i = 1; found < n; i++) {
		b->fb_entry[1] = 0;
		vale_fdb_learn(&fdb, addr(i), 0, 0, 0);
		if (b->fb_entry[1] != 0)
			out[found++] = i;
	}
	vale_fdb_init(&fdb, seed);
}

TEST(every_bit, "Addresses that differ in any one bit are different stations")
{
	uint8_t a[6];
	unsigned int bit;

	vale_fdb_init(&fdb, seed);
	for (bit = 1; bit < 48; bit++) {
		memset(a, 0, sizeof(a));
		a[bit / 8] = 1 << bit % 8;
		ATF_CHECK_EQ(VALE_FDB_LEARNED,
		    vale_fdb_learn(&fdb, a, 0, bit, 0));
	}
	for (bit = 1; bit < 48; bit++) {
		memset(a, 0, sizeof(a));
		a[bit / 8] = 1 << bit % 8;
		ATF_CHECK_EQ(bit, vale_fdb_lookup(&fdb, a, 0, 0));
	}
	ATF_CHECK_EQ(47, entries(0));
}

TEST(hostile, "Multicast addresses and zero are never learned nor found")
{
	static const uint8_t bad[][6] = {
		{ 0, 0, 0, 0, 0, 0 },
		{ 1, 0, 0, 0, 0, 0 },
		{ 1, 0, 0x5e, 0, 0, 1 },
		{ 0x33, 0x33, 0, 0, 0, 1 },
		{ 3, 2, 3, 4, 5, 6 },
		{ 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
	};
	unsigned int i;

	vale_fdb_init(&fdb, seed);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ATF_CHECK_EQ(VALE_FDB_IGNORED,
		    vale_fdb_learn(&fdb, bad[i], 0, 1, 0));
		ATF_CHECK_EQ(VALE_FDB_FLOOD,
		    vale_fdb_lookup(&fdb, bad[i], 0, 0));
	}
	ATF_CHECK_EQ(0, entries(0));
}

TEST(ageing, "An entry expires to the second, later when refreshed, never with "
    "an ageing time of 0")
{
	/* The clock wraps meanwhile. */
	uint32_t t0 = UINT32_MAX - 200;

	vale_fdb_init(&fdb, seed);
	vale_fdb_learn(&fdb, addr(1), 0, 7, t0);
	ATF_CHECK_EQ(7, vale_fdb_lookup(&fdb, addr(1), 0, t0 + 300));
	ATF_CHECK_EQ(VALE_FDB_FLOOD, vale_fdb_lookup(&fdb, addr(1), 0,
	    t0 + 301));
	ATF_CHECK_EQ(0, entries(t0 + 301));
	ATF_CHECK_EQ(1, entries(t0 + 300));

	ATF_CHECK_EQ(VALE_FDB_KNOWN,
	    vale_fdb_learn(&fdb, addr(1), 0, 7, t0 + 300));
	ATF_CHECK_EQ(7, vale_fdb_lookup(&fdb, addr(1), 0, t0 + 600));
	ATF_CHECK_EQ(VALE_FDB_LEARNED,
	    vale_fdb_learn(&fdb, addr(1), 0, 7, t0 + 601));
	ATF_CHECK_EQ(VALE_FDB_LEARNED,
	    vale_fdb_learn(&fdb, addr(1), 0, 8, t0 + 902));
	ATF_CHECK_EQ(8, vale_fdb_lookup(&fdb, addr(1), 0, t0 + 902));

	vale_fdb_set_ageing(&fdb, 10);
	ATF_CHECK_EQ(8, vale_fdb_lookup(&fdb, addr(1), 0, t0 + 912));
	ATF_CHECK_EQ(VALE_FDB_FLOOD, vale_fdb_lookup(&fdb, addr(1), 0,
	    t0 + 913));
	vale_fdb_set_ageing(&fdb, 0);
	ATF_CHECK_EQ(8, vale_fdb_lookup(&fdb, addr(1), 0, t0 + 1000000000));
	vale_fdb_set_ageing(&fdb, UINT32_MAX);
	ATF_CHECK_EQ(8, vale_fdb_lookup(&fdb, addr(1), 0,
	    t0 + 902 + VALE_FDB_AGEING_MAX_S));
	ATF_CHECK_EQ(VALE_FDB_FLOOD, vale_fdb_lookup(&fdb, addr(1), 0,
	    t0 + 903 + VALE_FDB_AGEING_MAX_S));
	vale_fdb_set_ageing(&fdb, VALE_FDB_AGEING_MAX_S + 1);
	ATF_CHECK_EQ(VALE_FDB_AGEING_MAX_S, fdb.fdb_ageing_s);
}

TEST(clock_behind, "A thread whose clock is a second behind finds the entries "
    "of others")
{
	struct vale_fdb_entry e;
	uint32_t a[VALE_FDB_WAYS + 1];
	unsigned int cursor = 0, i;

	vale_fdb_init(&fdb, seed);
	vale_fdb_learn(&fdb, addr(1), 0, 7, 100);
	ATF_CHECK_EQ(7, vale_fdb_lookup(&fdb, addr(1), 0, 99));
	ATF_CHECK_EQ(VALE_FDB_KNOWN, vale_fdb_learn(&fdb, addr(1), 0, 7, 99));
	vale_fdb_learn(&fdb, addr(1), 0, 7, 100);
	ATF_REQUIRE(vale_fdb_next(&fdb, &cursor, 99, &e));
	ATF_CHECK_EQ(0, e.fe_age_s);
	cursor = 0;
	ATF_REQUIRE(vale_fdb_next(&fdb, &cursor, 101, &e));
	ATF_CHECK_EQ(1, e.fe_age_s);

	/* Of entries ahead of its clock it replaces the one least ahead. */
	same_bucket(a, VALE_FDB_WAYS + 1);
	for (i = 0; i < VALE_FDB_WAYS; i++)
		vale_fdb_learn(&fdb, addr(a[i]), 0, 10 + i, i == 3 ? 101 : 102);
	vale_fdb_learn(&fdb, addr(a[i]), 0, 1, 100);
	for (i = 0; i < VALE_FDB_WAYS; i++)
		ATF_CHECK_EQ(i == 3 ? VALE_FDB_FLOOD : 10 + i,
		    vale_fdb_lookup(&fdb, addr(a[i]), 0, 102));
}

TEST(listed_any, "Each station is listed as it was learned, whatever the seed")
{
	struct vale_fdb_entry e;
	uint32_t numbers = 3;
	unsigned int cursor, i, vlan;
	uint64_t s[2];
	uint8_t a[6];

	for (i = 0; i < 2000; i++) {
		s[0] = (uint64_t)test_random(&numbers) << 32 | i;
		s[1] = (uint64_t)test_random(&numbers) << 32 |
		    test_random(&numbers);
		a[0] = test_random(&numbers) & 0xfe;
		memset(a + 1, test_random(&numbers), 5);
		a[5] = i | 1;
		vlan = i == 0 ? 4095 : test_random(&numbers) % 4096;
		vale_fdb_init(&fdb, s);
		ATF_REQUIRE_EQ(VALE_FDB_LEARNED, vale_fdb_learn(&fdb, a, vlan,
		    i % 254, 7));
		cursor = 0;
		ATF_REQUIRE(vale_fdb_next(&fdb, &cursor, 7, &e));
		ATF_REQUIRE_EQ(0, memcmp(a, e.fe_addr, 6));
		ATF_REQUIRE_EQ(vlan, e.fe_vlan);
		ATF_REQUIRE_EQ(i % 254, e.fe_port);
	}
}

/* Whether two addresses are in one bucket of a table with this seed. */
static bool
collide(uint64_t s0, uint64_t s1, uint32_t x, uint32_t y)
{
	const uint64_t s[2] = { s0, s1 };
	unsigned int i;

	vale_fdb_init(&fdb, s);
	vale_fdb_learn(&fdb, addr(x), 0, 1, 0);
	vale_fdb_learn(&fdb, addr(y), 0, 1, 0);
	for (i = 0; i < VALE_FDB_BUCKETS; i++)
		if (fdb.fdb_bucket[i].fb_entry[1] != 0)
			return (true);
	return (false);
}

TEST(seeded, "Who does not know the seed, either half of it, does not know "
    "which stations share a bucket")
{
	uint32_t x, y, seeds = 1;
	unsigned int i, other0, other1;
	uint64_t s;

	/* Two that share one with this seed. */
	x = 0;
	for (y = 1; !collide(seed[0], seed[1], x, y); y++)
		;
	other0 = other1 = 0;
	for (i = 0; i < 50; i++) {
		s = (uint64_t)test_random(&seeds) << 32;
		s |= test_random(&seeds);
		other0 += !collide(s, seed[1], x, y);
		other1 += !collide(seed[0], s, x, y);
	}
	ATF_CHECK_MSG(other0 > 25, "first half: %u of 50", other0);
	ATF_CHECK_MSG(other1 > 25, "second half: %u of 50", other1);
}

TEST(spread, "Stations with addresses in sequence find room, whatever the seed")
{
	static const uint64_t seeds[][2] = {
		{ 0, 0 }, { 1, 1 }, { UINT64_MAX, UINT64_MAX },
		{ 0x0123456789abcdef, 0 }, { 0, 0xfedcba9876543210 },
	};
	uint32_t i, n = VALE_FDB_ENTRIES / 2;
	unsigned int j, shift;

	for (j = 0; j < sizeof(seeds) / sizeof(seeds[0]); j++) {
		for (shift = 0; shift <= 16; shift += 8) {
			vale_fdb_init(&fdb, seeds[j]);
			for (i = 0; i < n; i++)
				vale_fdb_learn(&fdb, addr(i << shift), 0, 1,
				    0);
			/* Four a bucket if evenly; eight fit. */
			ATF_CHECK_MSG(entries(0) >= n - n / 8,
			    "seed %u, shift %u: %u of %u", j, shift,
			    entries(0), n);
		}
	}
}

TEST(flush, "A flush removes a port's stations, and no others")
{
	uint32_t i;

	vale_fdb_init(&fdb, seed);
	for (i = 0; i < 100; i++)
		vale_fdb_learn(&fdb, addr(i), 0, i % 3, 0);
	vale_fdb_flush(&fdb, 0);
	for (i = 0; i < 100; i++)
		ATF_CHECK_EQ(i % 3 == 0 ? VALE_FDB_FLOOD : i % 3,
		    vale_fdb_lookup(&fdb, addr(i), 0, 0));
	ATF_CHECK_EQ(66, entries(0));
	ATF_CHECK_EQ(VALE_FDB_LEARNED, vale_fdb_learn(&fdb, addr(0), 0, 1, 0));
}

TEST(full, "A full bucket replaces an expired entry, else the port's own "
    "oldest, else the oldest")
{
	uint32_t a[VALE_FDB_WAYS + 3];
	unsigned int i;

	/* All of one bucket: two of port 1, the others of other ports. */
	same_bucket(a, VALE_FDB_WAYS + 3);
	for (i = 0; i < VALE_FDB_WAYS; i++)
		ATF_REQUIRE_EQ(VALE_FDB_LEARNED, vale_fdb_learn(&fdb,
		    addr(a[i]), 0, i < 2 ? 1 : 10 + i, i == 4 ? 50 : 100 + i));
	/* None has expired: port 1 loses the older of its own. */
	vale_fdb_learn(&fdb, addr(a[5]), 0, 1, 200);
	ATF_CHECK_EQ(VALE_FDB_FLOOD, vale_fdb_lookup(&fdb, addr(a[0]), 0, 200));
	for (i = 1; i < VALE_FDB_WAYS + 1; i++)
		ATF_CHECK(vale_fdb_lookup(&fdb, addr(a[i]), 0, 200) !=
		    VALE_FDB_FLOOD);
	/* Port 3 has none here: the oldest of all goes, which is the fifth. */
	vale_fdb_learn(&fdb, addr(a[6]), 0, 3, 200);
	ATF_CHECK_EQ(VALE_FDB_FLOOD, vale_fdb_lookup(&fdb, addr(a[4]), 0, 200));
	ATF_CHECK_EQ(3, vale_fdb_lookup(&fdb, addr(a[6]), 0, 200));
	/* At 403 the third has expired, and goes before port 3's own. */
	vale_fdb_learn(&fdb, addr(a[3]), 0, 13, 300);
	vale_fdb_learn(&fdb, addr(a[1]), 0, 1, 300);
	vale_fdb_learn(&fdb, addr(a[7]), 0, 3, 403);
	ATF_CHECK_EQ(3, vale_fdb_lookup(&fdb, addr(a[6]), 0, 403));
	ATF_CHECK_EQ(3, vale_fdb_lookup(&fdb, addr(a[7]), 0, 403));
	ATF_CHECK_EQ(VALE_FDB_FLOOD, vale_fdb_lookup(&fdb, addr(a[2]), 0, 403));
	ATF_CHECK_EQ(VALE_FDB_WAYS, entries(403));
}

TEST(flooded, "A port that sends from endless addresses fills the table, then "
    "replaces only its own entries")
{
	uint32_t i;
	unsigned int lost = 0;

	vale_fdb_init(&fdb, seed);
	for (i = 0; i < 100; i++)
		vale_fdb_learn(&fdb, addr(i), 0, 1, 0);
	for (i = 1000; i < 500000; i++)
		vale_fdb_learn(&fdb, addr(i), 0, 2, 1);
	for (i = 0; i < 100; i++)
		lost += vale_fdb_lookup(&fdb, addr(i), 0, 1) != 1;
	ATF_CHECK_EQ(0, lost);
	ATF_CHECK_EQ(VALE_FDB_ENTRIES, entries(1));
}

TEST(limit, "A port learns up to its limit; expired and moved entries do not "
    "count")
{
	uint32_t i;

	vale_fdb_init(&fdb, seed);
	vale_fdb_set_limit(&fdb, 1, 3);
	for (i = 0; i < 10; i++)
		ATF_CHECK_EQ(i < 3 ? VALE_FDB_LEARNED : VALE_FDB_REFUSED,
		    vale_fdb_learn(&fdb, addr(i), 0, 1, 100 + i));
	ATF_CHECK_EQ(3, entries(110));
	ATF_CHECK_EQ(VALE_FDB_FLOOD, vale_fdb_lookup(&fdb, addr(3), 0, 110));
	ATF_CHECK_EQ(VALE_FDB_KNOWN, vale_fdb_learn(&fdb, addr(2), 0, 1, 110));
	ATF_CHECK_EQ(VALE_FDB_LEARNED, vale_fdb_learn(&fdb, addr(4), 0, 2,
	    110));

	/* A station that moves is not learned at a port with a full limit, */
	ATF_CHECK_EQ(VALE_FDB_REFUSED, vale_fdb_learn(&fdb, addr(4), 0, 1,
	    110));
	ATF_CHECK_EQ(2, vale_fdb_lookup(&fdb, addr(4), 0, 110));
	/* and one that leaves makes another possible. */
	ATF_CHECK_EQ(VALE_FDB_MOVED, vale_fdb_learn(&fdb, addr(0), 0, 2, 110));
	ATF_CHECK_EQ(VALE_FDB_MOVED, vale_fdb_learn(&fdb, addr(4), 0, 1, 110));
	ATF_CHECK_EQ(VALE_FDB_REFUSED, vale_fdb_learn(&fdb, addr(5), 0, 1,
	    110));

	/* addr(1), of 101, expires. */
	ATF_CHECK_EQ(VALE_FDB_REFUSED, vale_fdb_learn(&fdb, addr(5), 0, 1,
	    401));
	ATF_CHECK_EQ(VALE_FDB_LEARNED, vale_fdb_learn(&fdb, addr(5), 0, 1,
	    402));
	ATF_CHECK_EQ(VALE_FDB_REFUSED, vale_fdb_learn(&fdb, addr(6), 0, 1,
	    402));
	/* All of them do. */
	for (i = 20; i < 24; i++)
		ATF_CHECK_EQ(i < 23 ? VALE_FDB_LEARNED : VALE_FDB_REFUSED,
		    vale_fdb_learn(&fdb, addr(i), 0, 1, 1000));

	/* The table is searched for expired ones once a second. */
	vale_fdb_set_ageing(&fdb, 1);
	vale_fdb_learn(&fdb, addr(20), 0, 1, 1002);
	vale_fdb_set_ageing(&fdb, 300);
	ATF_CHECK_EQ(VALE_FDB_REFUSED, vale_fdb_learn(&fdb, addr(30), 0, 1,
	    1100));
	vale_fdb_set_ageing(&fdb, 1);
	ATF_CHECK_EQ(VALE_FDB_REFUSED, vale_fdb_learn(&fdb, addr(30), 0, 1,
	    1100));
	ATF_CHECK_EQ(VALE_FDB_LEARNED, vale_fdb_learn(&fdb, addr(30), 0, 1,
	    1101));
	vale_fdb_set_ageing(&fdb, 300);

	/* A flush removes the entries of a port, and its limit. */
	vale_fdb_flush(&fdb, 1);
	vale_fdb_set_limit(&fdb, 1, 3);
	for (i = 0; i < 4; i++)
		ATF_CHECK_EQ(i < 3 ? VALE_FDB_LEARNED : VALE_FDB_REFUSED,
		    vale_fdb_learn(&fdb, addr(40 + i), 0, 1, 1500));
	vale_fdb_flush(&fdb, 1);
	for (i = 0; i < 100; i++)
		ATF_CHECK_EQ(VALE_FDB_LEARNED,
		    vale_fdb_learn(&fdb, addr(i), 0, 1, 2000));
	/* Setting a limit removes no entries. */
	vale_fdb_set_limit(&fdb, 1, 1);
	ATF_CHECK_EQ(VALE_FDB_REFUSED,
	    vale_fdb_learn(&fdb, addr(100), 0, 1, 2001));
	ATF_CHECK_EQ(100, entries(2001));
}

TEST(limit_one_bucket, "Entries replaced in a full bucket no longer count for "
    "their port")
{
	uint32_t a[2 * VALE_FDB_WAYS];
	unsigned int i;

	same_bucket(a, 2 * VALE_FDB_WAYS);
	vale_fdb_set_limit(&fdb, 1, VALE_FDB_WAYS);
	for (i = 0; i < VALE_FDB_WAYS; i++)
		vale_fdb_learn(&fdb, addr(a[i]), 0, 1, 0);
	for (; i < 2 * VALE_FDB_WAYS; i++)
		ATF_CHECK_EQ(VALE_FDB_LEARNED,
		    vale_fdb_learn(&fdb, addr(a[i]), 0, 2 + i, i));
	ATF_CHECK_EQ(0, fdb.fdb_used[1]);
	for (i = 0; i < VALE_FDB_WAYS; i++)
		ATF_CHECK_EQ(VALE_FDB_LEARNED,
		    vale_fdb_learn(&fdb, addr(10000 + i), 0, 1, 20));
	ATF_CHECK_EQ(VALE_FDB_REFUSED,
	    vale_fdb_learn(&fdb, addr(20000), 0, 1, 20));
}

static bool
changed(void)
{
	static uint32_t before;
	uint32_t now = vale_fdb_changes(&fdb), was = before;

	before = now;
	return (now != was);
}

TEST(changes, "The change counter changes exactly when lookups may")
{
	vale_fdb_init(&fdb, seed);
	ATF_CHECK(changed());
	vale_fdb_learn(&fdb, addr(1), 0, 1, 0);
	ATF_CHECK(changed());
	vale_fdb_learn(&fdb, addr(1), 0, 1, 0);
	vale_fdb_learn(&fdb, addr(1), 0, 1, 300);
	vale_fdb_lookup(&fdb, addr(1), 0, 300);
	ATF_CHECK(!changed());
	vale_fdb_learn(&fdb, addr(1), 0, 1, 601);	/* was forgotten */
	ATF_CHECK(changed());
	vale_fdb_learn(&fdb, addr(1), 0, 2, 601);
	ATF_CHECK(changed());
	vale_fdb_set_limit(&fdb, 2, 1);
	ATF_CHECK(changed());
	ATF_REQUIRE_EQ(VALE_FDB_REFUSED,
	    vale_fdb_learn(&fdb, addr(2), 0, 2, 602));
	ATF_CHECK(!changed());
	vale_fdb_set_ageing(&fdb, 10);
	ATF_CHECK(changed());
	vale_fdb_flush(&fdb, 1);
	ATF_CHECK(changed());

	/* A search for expired entries frees none, of port 0 and others. */
	vale_fdb_init(&fdb, seed);
	vale_fdb_learn(&fdb, addr(1), 0, 5, 0);
	vale_fdb_learn(&fdb, addr(2), 0, 0, 1000);
	vale_fdb_set_limit(&fdb, 0, 1);
	changed();
	ATF_REQUIRE_EQ(VALE_FDB_REFUSED,
	    vale_fdb_learn(&fdb, addr(3), 0, 0, 1000));
	ATF_CHECK(!changed());
}

#define	THREADS		4
#define	STATIONS	64
#define	ROUNDS		20000
#define	ROAM_LIMIT	20	/* of port 1 */

static void *
roam(void *arg)
{
	unsigned int port = (unsigned int)(uintptr_t)arg;
	uint32_t i;
	unsigned int dst;

	for (i = 0; i < ROUNDS; i++) {
		vale_fdb_learn(&fdb, addr(i * (port + 1) % STATIONS), 0, port,
		    i / 1000);
		if (atomic_load_32(&fdb.fdb_used[1]) > ROAM_LIMIT + THREADS)
			return ((void *)1);
		dst = vale_fdb_lookup(&fdb, addr(i % STATIONS), 0, i / 1000);
		if (dst >= THREADS && dst != VALE_FDB_FLOOD)
			return ((void *)1);
	}
	return (NULL);
}

TEST(threads, "Stations that move between four threads' ports are found once, "
    "at a port they used, and counted")
{
	struct vale_fdb_entry e;
	pthread_t thread[THREADS];
	void *bad;
	unsigned int cursor = 0, i, seen[STATIONS] = { 0 };
	unsigned int used[THREADS] = { 0 };
	uint32_t n;

	vale_fdb_init(&fdb, seed);
	vale_fdb_set_ageing(&fdb, 2);
	vale_fdb_set_limit(&fdb, 1, ROAM_LIMIT);
	for (i = 0; i < THREADS; i++)
		ATF_REQUIRE_EQ(0, pthread_create(&thread[i], NULL, roam,
		    (void *)(uintptr_t)i));
	for (i = 0; i < THREADS; i++) {
		ATF_REQUIRE_EQ(0, pthread_join(thread[i], &bad));
		ATF_CHECK(bad == NULL);
	}
	vale_fdb_set_ageing(&fdb, 0);
	while (vale_fdb_next(&fdb, &cursor, ROUNDS / 1000, &e)) {
		memcpy(&n, e.fe_addr + 2, sizeof(n));
		ATF_REQUIRE(n < STATIONS);
		seen[n]++;
		used[e.fe_port]++;
	}
	for (i = 0; i < STATIONS; i++)
		ATF_CHECK(seen[i] <= 1);
	for (i = 0; i < THREADS; i++)
		ATF_CHECK_EQ(used[i], fdb.fdb_used[i]);
	ATF_CHECK(used[1] <= ROAM_LIMIT);
}

TEST(flush_threads, "A flush of a port while other ports' threads learn its "
    "stations leaves none of it, and the others counted")
{
	struct vale_fdb_entry e;
	pthread_t thread[THREADS];
	unsigned int cursor = 0, i, j, used[THREADS] = { 0 };
	void *bad;

	vale_fdb_init(&fdb, seed);
	for (i = 0; i < ROAM_LIMIT; i++)
		vale_fdb_learn(&fdb, addr(i), 0, 1, 0);
	for (i = 0; i < THREADS; i++)
		if (i != 1)
			ATF_REQUIRE_EQ(0, pthread_create(&thread[i], NULL, roam,
			    (void *)(uintptr_t)i));
	for (j = 0; j < 100; j++) {
		vale_fdb_flush(&fdb, 1);
		ATF_CHECK_EQ(0, atomic_load_32(&fdb.fdb_used[1]));
	}
	for (i = 0; i < THREADS; i++)
		if (i != 1) {
			ATF_REQUIRE_EQ(0, pthread_join(thread[i], &bad));
			ATF_CHECK(bad == NULL);
		}
	vale_fdb_set_ageing(&fdb, 0);
	while (vale_fdb_next(&fdb, &cursor, ROUNDS / 1000, &e))
		used[e.fe_port]++;
	for (i = 0; i < THREADS; i++)
		ATF_CHECK_EQ(used[i], fdb.fdb_used[i]);
	ATF_CHECK_EQ(0, used[1]);
}

static void
learn_bad_port(void *arg)
{
	(void)arg;
	vale_fdb_learn(&fdb, addr(0), 0, VALE_FDB_PORTS, 0);
}

static void
move_uncounted(void *arg)
{
	(void)arg;
	vale_fdb_learn(&fdb, addr(0), 0, 0, 0);
	fdb.fdb_used[0] = 0;
	vale_fdb_learn(&fdb, addr(0), 0, 1, 0);
}

TEST(asserts, "Assertions fire: a port out of range, entries that are not "
    "counted")
{
	vale_fdb_init(&fdb, seed);
	ATF_CHECK(aborts(learn_bad_port, NULL, "port < VALE_FDB_PORTS"));
	ATF_CHECK(aborts(move_uncounted, NULL, "fdb_used[FDB_PORT(entry)]"));
}

/* Where addr(0) is, in an empty table. */
static struct vale_fdb_bucket *
first_bucket(struct vale_fdb *f)
{
	struct vale_fdb_bucket *b;

	vale_fdb_init(f, seed);
	vale_fdb_learn(f, addr(0), 0, 0, 0);
	for (b = f->fdb_bucket; b->fb_entry[0] == 0; b++)
		;
	vale_fdb_init(f, seed);
	return (b);
}

TEST(times, "The times behind a bucket's addresses are not taken for another "
    "address")
{
	struct vale_fdb_entry e;
	struct vale_fdb_bucket *b;
	uint32_t a[2], high, low, n;
	unsigned int cursor = 0, port = 7;
	uint8_t fake[6] = { 0 };

	same_bucket(a, 2);
	b = first_bucket(&fdb);
	/*
	 * Two times that together are an entry of `port', for an address whose
	 * place is this bucket.
	 */
	for (n = 4; b->fb_entry[0] == 0; n += 2) {
		memcpy(fake, &n, sizeof(n));
		vale_fdb_learn(&fdb, fake, 0, port, 0);
	}
	high = (uint32_t)(b->fb_entry[0] >> 32);
	low = (uint32_t)b->fb_entry[0];
	vale_fdb_init(&fdb, seed);
	vale_fdb_set_ageing(&fdb, 0);
	ATF_CHECK_EQ(VALE_FDB_LEARNED, vale_fdb_learn(&fdb, addr(a[0]), 0, 1,
	    low));
	ATF_CHECK_EQ(VALE_FDB_LEARNED, vale_fdb_learn(&fdb, addr(a[1]), 0, 2,
	    high));
	ATF_REQUIRE_EQ(low, b->fb_seen_s[0]);
	ATF_REQUIRE_EQ(high, b->fb_seen_s[1]);
	ATF_CHECK_EQ(VALE_FDB_FLOOD, vale_fdb_lookup(&fdb, fake, 0, low));

	vale_fdb_flush(&fdb, port);
	ATF_CHECK_EQ(low, b->fb_seen_s[0]);

	/* Its port is at its limit, and searches for what has expired. */
	vale_fdb_set_ageing(&fdb, 1);
	vale_fdb_set_limit(&fdb, port, 1);
	vale_fdb_learn(&fdb, addr(30000), 0, port, low);
	vale_fdb_learn(&fdb, addr(30001), 0, port, low + 1);
	ATF_CHECK_EQ(low, b->fb_seen_s[0]);
	ATF_CHECK_EQ(high, b->fb_seen_s[1]);

	vale_fdb_set_limit(&fdb, port, 0);
	vale_fdb_set_ageing(&fdb, 0);
	ATF_CHECK_EQ(VALE_FDB_LEARNED, vale_fdb_learn(&fdb, fake, 0, port,
	    low));
	ATF_CHECK_EQ(0, b->fb_writer);
	ATF_CHECK_EQ(port, vale_fdb_lookup(&fdb, fake, 0, low));
	for (n = 0; vale_fdb_next(&fdb, &cursor, low, &e);)
		n++;
	ATF_CHECK_EQ(4, n);
}

TEST(last, "Nothing behind the table is accessed")
{
	const size_t page = TOUCH_PAGE;
	struct vale_fdb_entry e;
	struct vale_fdb *f;
	size_t size;
	uint8_t *p;
	unsigned int cursor = 0;
	uint32_t i;

	size = (sizeof(*f) + page - 1) / page * page;
	p = touch_pages(size / page + 1);
	ATF_REQUIRE_EQ(0, mprotect(p + size, page, PROT_NONE));
	f = (void *)(p + size - sizeof(*f));
	vale_fdb_init(f, seed);
	vale_fdb_set_limit(f, 1, 4000);
	for (i = 0; i < 5000; i++)
		vale_fdb_learn(f, addr(i), 0, 1, 0);
	ATF_CHECK_EQ(4000, f->fdb_used[1]);
	/* All have expired, in each way of a bucket. */
	ATF_CHECK_EQ(VALE_FDB_LEARNED, vale_fdb_learn(f, addr(0), 0, 1, 301));
	ATF_CHECK_EQ(VALE_FDB_LEARNED, vale_fdb_learn(f, addr(5000), 0, 1,
	    301));
	ATF_CHECK_EQ(2, f->fdb_used[1]);
	for (i = 0; vale_fdb_next(f, &cursor, 301, &e);)
		i++;
	ATF_CHECK_EQ(2, i);
	vale_fdb_flush(f, 1);
	ATF_CHECK_EQ(VALE_FDB_FLOOD, vale_fdb_lookup(f, addr(0), 0, 301));
}

/*
 * A table of which the first 64 bytes, with fdb_ageing_s, are in one page, and
 * the members of port 200 in the next.  Its addresses are in buckets behind
 * that.
 */
static struct split {
	uint8_t		*pages;
	struct vale_fdb	*f;
	uint32_t	 old, new;	/* for addr() */
	struct vale_fdb_bucket *b;	/* of `old' */
} split;

static void
split_init(void)
{
	struct vale_fdb *f;

	split.pages = touch_pages(sizeof(*f) / TOUCH_PAGE + 2);
	split.f = f = (void *)(split.pages + TOUCH_PAGE - 64);
	ATF_REQUIRE((uint8_t *)&f->fdb_ageing_s < split.pages + TOUCH_PAGE);
	ATF_REQUIRE((uint8_t *)&f->fdb_limit[200] >= split.pages + TOUCH_PAGE);
	for (split.old = 0;; split.old++) {
		vale_fdb_init(f, seed);
		vale_fdb_learn(f, addr(split.old), 0, 200, 0);
		for (split.b = f->fdb_bucket; split.b->fb_entry[0] == 0;
		    split.b++)
			;
		if ((uint8_t *)split.b >= split.pages + 2 * TOUCH_PAGE)
			break;
	}
	split.new = split.old + 1;
	vale_fdb_init(f, seed);
}

static void
learn_old(void *arg)
{
	unsigned int *port = arg;

	ATF_CHECK_EQ(VALE_FDB_LEARNED, vale_fdb_learn(split.f, addr(split.old),
	    0, *port, 301));
}

static void
take_bucket(void *arg __unused)
{
	split.b->fb_writer = 1;
}

static void (*second)(void *arg);

static void
then_second(void *arg)
{
	touch_next(split.pages, second, arg);
}

TEST(sweep_race, "An expired entry that another thread changes, or a bucket "
    "that it writes to, is not freed")
{
	unsigned int port = 201;

	split_init();
	vale_fdb_set_limit(split.f, 200, 1);
	vale_fdb_learn(split.f, addr(split.old), 0, 200, 0);
	second = learn_old;
	touch_next(split.pages + TOUCH_PAGE, then_second, &port);
	ATF_CHECK_EQ(VALE_FDB_LEARNED, vale_fdb_learn(split.f, addr(split.new),
	    0, 200, 301));
	ATF_CHECK_EQ(201, vale_fdb_lookup(split.f, addr(split.old), 0, 301));
	ATF_CHECK_EQ(1, split.f->fdb_used[201]);

	vale_fdb_init(split.f, seed);
	vale_fdb_set_limit(split.f, 200, 1);
	vale_fdb_learn(split.f, addr(split.old), 0, 200, 0);
	second = take_bucket;
	touch_next(split.pages + TOUCH_PAGE, then_second, NULL);
	ATF_CHECK_EQ(VALE_FDB_REFUSED, vale_fdb_learn(split.f, addr(split.new),
	    0, 200, 301));
	ATF_CHECK_EQ(1, split.b->fb_writer);
	ATF_CHECK(split.b->fb_entry[0] != 0);
	ATF_CHECK_EQ(1, split.f->fdb_used[200]);
}

TEST_PROGRAM
