/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Fair shares of a receive ring, without a switch: a ring that is a queue of
 * senders, which come in a given order.  vale_threads_test has the same with
 * the switch.
 */

#include <sys/param.h>

#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include <dev/netmap/vale_share.h>

#include "aborts.h"
#include "test.h"

#define	SLOTS	1023
#define	SENDERS	VALE_FDB_PORTS

static struct vale_share sh;
static uint8_t	queue[65536];		/* senders of the slots in use */
static bool	known[65536];		/* and whether shares count them */
static uint32_t	nqueue, nslots;
static uint64_t	got[SENDERS];		/* slots that were received */
static uint64_t	refused;
static const uint8_t *weights;		/* of vale_share_init() */

static void
begin(uint32_t slots)
{
	void *runs = malloc(vale_share_size(slots));

	ATF_REQUIRE(runs != NULL);
	vale_share_init(&sh, slots, runs, weights);
	nslots = slots;
	nqueue = 0;
	refused = 0;
	memset(got, 0, sizeof(got));
}

static void
end(void)
{
	free(sh.sh_run);
}

/* A sender has `n' frames of `each' slots.  Returns how many find slots. */
static uint32_t
offer(unsigned int sender, uint32_t n, uint32_t each)
{
	uint32_t frames, space = nslots - nqueue;
	bool on = vale_share_on(&sh);

	if (on)
		space = MIN(space, vale_share_max(&sh, sender, nqueue, each));
	frames = MIN(n, space / each);
	if (frames > 0 && on)
		vale_share_take(&sh, sender, frames * each);
	memset(queue + nqueue, (int)sender, frames * each);
	memset(known + nqueue, on, frames * each);
	nqueue += frames * each;
	if (frames < n) {
		refused += n - frames;
		/* Shares begin with unknown slots. */
		if (!vale_share_on(&sh))
			memset(known, false, sizeof(known));
		vale_share_refused(&sh, sender);
	}
	return (frames);
}

/* The receiver takes up to `n' slots. */
static void
receive(uint32_t n)
{
	uint32_t i;

	n = MIN(n, nqueue);
	for (i = 0; i < n; i++)
		got[queue[i]]++;
	nqueue -= n;
	memmove(queue, queue + n, nqueue);
	memmove(known, known + n, nqueue);
}

TEST(single, "A single sender may use the whole ring, and nothing is counted "
    "before a frame is refused")
{
	uint32_t i;

	begin(SLOTS);
	ATF_CHECK_EQ(SLOTS, offer(7, SLOTS, 1));
	ATF_CHECK(!vale_share_on(&sh));
	ATF_CHECK_EQ(0, offer(7, 1, 1));
	ATF_CHECK(vale_share_on(&sh));
	for (i = 0; i < 10000; i++) {
		receive(1 + i % 100);
		ATF_REQUIRE_EQ(1 + i % 100, offer(7, 2000, 1));
		ATF_REQUIRE_EQ(SLOTS, nqueue);
		ATF_REQUIRE_EQ(1, sh.sh_nruns);
		ATF_REQUIRE_EQ(1, sh.sh_active);
	}
	end();
}

TEST(off, "A ring's worth of slots without a refused frame ends the shares")
{
	begin(100);
	ATF_CHECK_EQ(100, offer(1, 101, 1));
	receive(100);
	/* The rest of this period, in which one was refused. */
	ATF_CHECK_EQ(99, offer(1, 99, 1));
	receive(99);
	ATF_CHECK_EQ(1, offer(1, 1, 1));
	receive(1);
	/* The next one. */
	ATF_CHECK_EQ(99, offer(1, 99, 1));
	receive(99);
	ATF_CHECK(vale_share_on(&sh));
	ATF_CHECK_EQ(1, offer(1, 1, 1));
	ATF_CHECK(!vale_share_on(&sh));
	/* And they begin again, with nobody holding anything. */
	ATF_CHECK_EQ(99, offer(1, 100, 1));
	ATF_CHECK(vale_share_on(&sh));
	ATF_CHECK_EQ(0, offer(2, 1, 1));
	receive(100);
	ATF_CHECK_EQ(50, offer(1, 100, 1));
	end();

	/* Whoever was refused is active; what was held before is not. */
	begin(100);
	ATF_CHECK_EQ(100, offer(1, 101, 1));
	receive(100);
	ATF_CHECK_EQ(50, offer(2, 100, 1));
	ATF_CHECK_EQ(50, offer(1, 50, 1));
	while (vale_share_on(&sh)) {
		receive(10);
		offer(2, 10, 1);
	}
	ATF_CHECK(sh.sh_held[2] >= 50);
	receive(100);
	ATF_CHECK_EQ(100, offer(1, 101, 1));
	ATF_CHECK_EQ(0, offer(2, 1, 1));
	ATF_CHECK_EQ(2, sh.sh_active);
	receive(30);
	ATF_CHECK_EQ(30, offer(2, 100, 1));
	end();
}

/*
 * `n' senders that always have `batch[i % 4]' frames of `each' slots, in order,
 * and a receiver that takes `take' slots after each turn or, if `often', after
 * each sender.
 */
static void
contend(unsigned int n, const uint32_t batch[4], uint32_t each, uint32_t take,
    bool often, unsigned int rounds)
{
	unsigned int i, r;

	for (r = 0; r < rounds; r++) {
		for (i = 0; i < n; i++) {
			offer(i, batch[i % 4], each);
			if (often)
				receive(take);
		}
		if (!often)
			receive(take);
	}
}

/* The shares of `n' senders in percent of an equal one. */
static void
check_shares(unsigned int n, unsigned int min, unsigned int max)
{
	uint64_t total = 0;
	unsigned int i;

	for (i = 0; i < n; i++)
		total += got[i];
	for (i = 0; i < n; i++)
		ATF_CHECK_MSG(got[i] * n * 100 >= total * min &&
		    got[i] * n * 100 <= total * max,
		    "%u of %u: %ju of %ju", i, n, (uintmax_t)got[i],
		    (uintmax_t)total);
}

TEST(equal, "Senders get equal shares, whatever the receiver takes at a time, "
    "who comes first, and how large the batches are")
{
	static const uint32_t batches[][4] = {
		{ 1, 1, 1, 1 }, { 2000, 2000, 2000, 2000 },
		{ 2000, 1, 2000, 1 }, { 256, 16, 1, 64 },
	};
	static const unsigned int ns[] = { 2, 3, 10, 64, 254 };
	static const uint32_t takes[] = { 1, 7, 1023 };
	unsigned int b, i, often, t;

	for (i = 0; i < nitems(ns); i++)
		for (b = 0; b < nitems(batches); b++)
			for (t = 0; t < nitems(takes); t++)
				for (often = 0; often < 2; often++) {
					/* Small batches must be too much. */
					if (batches[b][3] == 1 && (often ?
					    takes[t] > 1 :
					    takes[t] > ns[i] / 2))
						continue;
					if (b == 3 && (often ||
					    takes[t] > ns[i]))
						continue;
					begin(SLOTS);
					/* The ring is full of a stranger's. */
					offer(0, SLOTS + 1, 1);
					contend(ns[i], batches[b], 1, takes[t],
					    often, 5 * SLOTS / takes[t] + 1);
					memset(got, 0, sizeof(got));
					contend(ns[i], batches[b], 1, takes[t],
					    often, 20 * SLOTS / takes[t] + 1);
					check_shares(ns[i], 80, 120);
					end();
				}
}

TEST(weighted, "Senders get shares by their weights, whichever senders they "
    "are")
{
	static uint8_t w[SENDERS];
	static const unsigned int senders[] = { 0, 63, 64, 65, 130, 253 };
	unsigned int heavy, i, round;
	uint64_t all;

	weights = w;
	for (heavy = 0; heavy < nitems(senders); heavy++) {
		memset(w, 2, sizeof(w));
		w[senders[heavy]] = 10;
		begin(SLOTS);
		for (round = 0; round < 4000; round++) {
			if (round == 1000)
				memset(got, 0, sizeof(got));
			for (i = 0; i < nitems(senders); i++)
				offer(senders[i], 100, 1);
			receive(50);
		}
		for (all = i = 0; i < nitems(senders); i++)
			all += got[senders[i]];
		/* 10 of 20, and 2 of 20 each. */
		for (i = 0; i < nitems(senders); i++)
			ATF_CHECK_MSG(got[senders[i]] * 20 >
			    all * w[senders[i]] * 9 / 10 &&
			    got[senders[i]] * 20 <
			    all * w[senders[i]] * 11 / 10,
			    "sender %u of weight %u: %ju of %ju", senders[i],
			    w[senders[i]], (uintmax_t)got[senders[i]],
			    (uintmax_t)all);
		end();
	}
	weights = NULL;
}

TEST(gone, "A sender that stops keeps others from part of the ring while two "
    "rings' worth of slots pass, and the receiver never waits")
{
	unsigned int i;

	begin(SLOTS);
	contend(2, (const uint32_t [4]){ 9, 9, 9, 9 }, 1, 1, false, 5000);
	ATF_CHECK_EQ(2, sh.sh_active);
	for (i = 0; i < 2 * SLOTS; i++) {
		offer(0, 9, 1);
		ATF_REQUIRE(nqueue >= SLOTS / 2);
		receive(1);
	}
	ATF_CHECK_EQ(1, sh.sh_active);
	offer(0, 9, 1);
	for (i = 0; i < SLOTS; i++)
		offer(0, 9, 1);
	ATF_CHECK_EQ(SLOTS, nqueue);
	end();
}

static void
take_without(void *arg __attribute__((__unused__)))
{
	vale_share_take(&sh, 1, 1);
}

static void
take_too_many(void *arg __attribute__((__unused__)))
{
	vale_share_refused(&sh, 1);
	vale_share_take(&sh, 1, 11);
}

TEST(asserted, "Slots that are not there are not taken")
{
	begin(10);
	ATF_CHECK(aborts(take_without, NULL, "vale_share_on"));
	ATF_CHECK(aborts(take_too_many, NULL, "sh_total"));
	end();
}

TEST_PROGRAM
