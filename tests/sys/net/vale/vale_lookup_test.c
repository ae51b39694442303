/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * How often vale_lookup.c decides, looks up and copies: once for frames of a
 * kind that follow each other.  And what changes while a batch is under way.
 */

#include <sys/param.h>

#include <string.h>
#include <time.h>

#include <atf-c.h>

#include "frame.h"
#include "test.h"
#include "vale_pair.h"
#include "vale_rules.h"
#include "vale_switch.h"
#include "vale_test.h"
#include "wrap.h"

#define	ADDRS	12		/* bytes of a frame's addresses */

/* Calls of the switch. */
static struct {
	unsigned int	lookups, sources, checks, heads, forms, copies;
} calls;

/* Called once by the next vale_now_ns(). */
static void	(*at_clock)(void);
/* The time, or 0: the real one. */
static time_t	clock_s;

WRAP(unsigned int, vale_fdb_lookup, const struct vale_fdb *f,
    const uint8_t *addr, unsigned int vlan, uint32_t now_s)
{
	calls.lookups++;
	return (__real_vale_fdb_lookup(f, addr, vlan, now_s));
}

WRAP(bool, vale_guard_source, const struct vale_guard *gd,
    const uint8_t *source)
{
	calls.sources++;
	return (__real_vale_guard_source(gd, source));
}

WRAP(enum vale_guard_verdict, vale_guard_check, const struct vale_guard *gd,
    const uint8_t *head, uint32_t len)
{
	const unsigned int sources = calls.sources;
	enum vale_guard_verdict v;

	calls.checks++;
	v = __real_vale_guard_check(gd, head, len);
	/* Of its own calls some linkers show those that are not inlined. */
	calls.sources = sources;
	return (v);
}

WRAP(uint32_t, vale_rules_copy, struct vale_txq *vt, uint32_t *dropped)
{
	calls.heads++;
	return (__real_vale_rules_copy(vt, dropped));
}

WRAP(uint32_t, vale_rules_form, struct vale_txq *vt, uint32_t frame,
    unsigned int vlan, bool tagged)
{
	calls.forms++;
	return (__real_vale_rules_form(vt, frame, vlan, tagged));
}

WRAP(void, vale_txq_copy, struct vale_txq *vt, struct vale_frag *fg, uint32_t n)
{
	calls.copies++;
	__real_vale_txq_copy(vt, fg, n);
}

WRAP(int, clock_gettime, clockid_t clock, struct timespec *ts)
{
	void (*fn)(void) = at_clock;

	at_clock = NULL;
	if (fn != NULL)
		fn();
	if (clock_s == 0)
		return (__real_clock_gettime(clock, ts));
	*ts = (struct timespec){ .tv_sec = clock_s };
	return (0);
}

/* What a letter in a row stands for. */
static const struct kind {
	char		letter;
	unsigned int	dst;		/* station */
	uint32_t	tci;		/* of a tag, or T_NONE */
	uint32_t	len, fraglen;	/* without the tag; of each fragment */
} kinds[] = {
	{ 'b', 1, T_NONE, 60, 60 },
	{ 'c', 2, T_NONE, 60, 60 },
	{ 'E', EVERYBODY, T_NONE, 60, 60 },
	{ 'B', 1, 10, 60, 64 },
	{ 'P', 1, 0x600a, 60, 64 },	/* with a priority */
	{ 'd', 1, 20, 60, 64 },		/* in a VLAN of nobody */
	/* The addresses, and a tag, in several fragments, or in just one. */
	{ 's', 1, T_NONE, 60, 7 },
	{ 'k', 1, T_NONE, 60, 12 },
	{ 'i', 1, T_NONE, 60, 17 },
	{ 'h', 1, T_NONE, 60, 18 },
	{ 'x', 1, T_NONE, 17, 17 },
	{ 'y', 1, T_NONE, 18, 18 },
	{ 'z', 1, 10, 13, 17 },		/* its tag is cut off */
};

static const struct kind *
kind_of(char letter)
{
	unsigned int i;

	for (i = 0; kinds[i].letter != letter; i++)
		ATF_REQUIRE(i + 1 < nitems(kinds));
	return (&kinds[i]);
}

/*
 * Queue frames of a row.  What follows their type, and the type behind a tag,
 * differs from frame to frame.
 */
static void
queue(const char *letters, bool indirect)
{
	static uint8_t frame[32][128];
	const struct kind *k;
	uint32_t at, len;
	unsigned int i;

	for (i = 0; letters[i] != '\0'; i++) {
		ATF_REQUIRE(i < nitems(frame));
		k = kind_of(letters[i]);
		memset(frame[i], 0, sizeof(frame[i]));
		len = t_make_tagged(frame[i], MAX(k->len, T_FRAME_MIN), k->tci,
		    k->dst, 0, i);
		len -= MAX(k->len, T_FRAME_MIN) - k->len;
		at = ADDRS + (k->tci == T_NONE ? 2 : 4);
		frame[i][at] = frame[i][at + 1] = 3 + i;
		t_put(t_port[0], frame[i], len, k->fraglen, indirect);
	}
}

static unsigned int
received(unsigned int at)
{
	struct netmap_ring *ring = t_port[at]->rxring;
	unsigned int n;

	ATF_REQUIRE_EQ(0, vale_rxsync(t_port[at]));
	n = (ring->tail + ring->num_slots - ring->head) % ring->num_slots;
	ring->head = ring->cur = ring->tail;
	ATF_REQUIRE_EQ(0, vale_rxsync(t_port[at]));
	return (n);
}

/*
 * Open ports, each of which is `.' without rules, access port of VLAN 10,
 * trunk, or has a guard of the source or of IP addresses, and teach the switch
 * their stations.
 */
static void
open_ports(const char *ports)
{
	unsigned int i, n = strlen(ports);

	t_ports_open(n);
	for (i = 0; i < n; i++)
		if (ports[i] == 'a')
			t_port_set(i, "vlan", "10");
		else if (ports[i] == 't')
			t_port_set(i, "trunk", "10");
		else if (ports[i] == 's')
			t_port_set(i, "source", "02:00:00:00:00:00");
		else if (ports[i] == 'i')
			t_port_set(i, "ip", "0.0.0.0/0");
	for (i = 0; i < n; i++)
		if (ports[i] != 'i')
			t_send_tagged(i, ports[i] == 't' ? 10 : T_NONE,
			    EVERYBODY, i, 0);
	for (i = 0; i < n; i++)
		(void)received(i);
	memset(&calls, 0, sizeof(calls));
}

TEST(kinds, "Frames of a kind that follow each other are looked up once, and "
    "decided about once; what differs, or may, is not of a kind")
{
	static const struct {
		const char	*ports, *frames;
		unsigned int	lookups, sources, checks, forms;
		unsigned int	got[2];		/* of ports 1 and 2 */
	} rows[] = {
		{ "...", "bbbbcccbb", 3, 0, 0, 0, { 6, 3 } },
		{ "...", "EEEE", 1, 0, 0, 0, { 4, 4 } },
		{ "...", "bEEb", 3, 0, 0, 0, { 4, 2 } },
		{ "...", "bkkb", 1, 0, 0, 0, { 4, 0 } },
		{ "...", "bssb", 3, 0, 0, 0, { 4, 0 } },
		{ "aaa", "bbbb", 1, 1, 0, 0, { 4, 0 } },
		{ "aaa", "bbcb", 3, 3, 0, 0, { 3, 1 } },
		{ "aaa", "EEEE", 1, 1, 0, 4, { 4, 4 } },
		{ "aaa", "bhhb", 1, 1, 0, 0, { 4, 0 } },
		{ "aaa", "bibi", 3, 3, 0, 0, { 4, 0 } },
		{ "aaa", "yyyy", 1, 1, 0, 0, { 4, 0 } },
		{ "aaa", "xxxx", 4, 4, 0, 0, { 4, 0 } },
		{ "aaa", "dddd", 0, 1, 0, 0, { 0, 0 } },
		{ "aaa", "dbdb", 2, 4, 0, 0, { 2, 0 } },
		{ "aat", "cccc", 1, 1, 0, 4, { 0, 4 } },
		{ "aat", "EEE", 1, 1, 0, 6, { 3, 3 } },
		{ "att", "EEE", 1, 1, 0, 3, { 3, 3 } },
		{ "taa", "BBBB", 1, 1, 0, 4, { 4, 0 } },
		{ "taa", "BPPB", 3, 3, 0, 4, { 4, 0 } },
		{ "tta", "BBBB", 1, 1, 0, 0, { 4, 0 } },
		/* What is dropped is no other's kind. */
		{ "tta", "BzB", 2, 3, 0, 0, { 2, 0 } },
		{ "taa", "Bzd", 1, 3, 0, 1, { 1, 0 } },
		/* A guard of IP addresses sees each frame. */
		{ "s..", "bbbb", 1, 1, 0, 0, { 4, 0 } },
		{ "s..", "EEE", 1, 1, 0, 3, { 3, 3 } },
		{ "iaa", "bbbb", 0, 4, 4, 0, { 0, 0 } },
	};
	unsigned int i, j;

	for (i = 0; i < nitems(rows); i++) {
		open_ports(rows[i].ports);
		queue(rows[i].frames, false);
		ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
		ATF_CHECK_EQ_MSG(rows[i].lookups, calls.lookups,
		    "row %u: %u lookups", i, calls.lookups);
		ATF_CHECK_EQ_MSG(rows[i].sources, calls.sources,
		    "row %u: %u sources", i, calls.sources);
		ATF_CHECK_EQ_MSG(rows[i].checks, calls.checks,
		    "row %u: %u checks", i, calls.checks);
		ATF_CHECK_EQ_MSG(rows[i].forms, calls.forms,
		    "row %u: %u forms", i, calls.forms);
		for (j = 0; j < 2; j++)
			ATF_CHECK_EQ_MSG(rows[i].got[j], received(1 + j),
			    "row %u: port %u", i, 1 + j);
		/* Of all, the one that taught the switch was flooded. */
		T_COUNT(t_port[0], TX_COPY, rows[i].got[0] + rows[i].got[1] +
		    (rows[i].ports[0] == 'i' ? 0 : 2));
		t_ports_close();
	}
}

TEST(copies, "A frame to many is copied, once, if it is in the memory of "
    "others; heads are, if there are rules")
{
	static const struct {
		const char	*ports, *frames;
		bool		indirect;
		unsigned int	copies, heads;
	} rows[] = {
		{ "...", "EE", true, 2, 0 }, { "...", "EE", false, 0, 0 },
		{ "..", "EE", true, 0, 0 }, { "...", "bb", true, 0, 0 },
		{ "aaa", "EE", true, 2, 1 }, { "aaa", "EE", false, 0, 0 },
		{ "aat", "EE", true, 2, 1 }, { "aa", "EE", true, 0, 1 },
		{ "att", "EE", true, 2, 1 }, { "at", "EE", true, 0, 1 },
		{ "aaa", "bb", true, 0, 1 }, { "aaa", "bb", false, 0, 0 },
		{ "s..", "EE", true, 2, 1 },
	};
	unsigned int i;

	for (i = 0; i < nitems(rows); i++) {
		open_ports(rows[i].ports);
		queue(rows[i].frames, rows[i].indirect);
		ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
		ATF_CHECK_EQ_MSG(rows[i].copies, calls.copies,
		    "row %u: %u copies", i, calls.copies);
		ATF_CHECK_EQ_MSG(rows[i].heads, calls.heads,
		    "row %u: %u heads", i, calls.heads);
		t_ports_close();
	}
}

TEST(full, "Frames to many are delivered in parts of what the memory for "
    "copies holds; a batch that is copied before is one part")
{
	static const char *const rows[] = { "...", "aaa" };
	static uint8_t frame[60000];
	struct vale_pair *pair;
	unsigned int i, j, slow;

	for (i = 0; i < nitems(rows); i++)
		for (slow = 0; slow < 2; slow++) {
			open_ports(rows[i]);
			pair = vale_desc_pair(t_port[0]);
			if (slow != 0)
				pair->pa_tx.vt_copy_ns = UINT64_MAX;
			for (j = 0; j < 10; j++) {
				t_make(frame, sizeof(frame), EVERYBODY, 0, 5);
				t_put(t_port[0], frame, sizeof(frame), 2000,
				    true);
			}
			ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
			/* Four make more than 4 x 64 KB less a frame. */
			ATF_CHECK_EQ_MSG(3, calls.lookups, "%s, %u: %u lookups",
			    rows[i], slow, calls.lookups);
			ATF_CHECK_EQ(10, calls.copies);
			ATF_CHECK_EQ(i != 0 && slow == 0, calls.heads);
			ATF_REQUIRE_EQ(0, vale_rxsync(t_port[1]));
			for (j = 0; j < 10; j++)
				t_expect_bytes(t_port[1], frame, sizeof(frame));
			ATF_CHECK(nm_ring_empty(t_port[1]->rxring));
			t_ports_close();
		}
}

/* The sender's memory, and what it had in it before. */
static uint8_t	memory[64 * 200], before[sizeof(memory)];

static void
guard(void)
{
	t_port_set(0, "source", "02:00:00:00:00:00");
}

static void
change(void *arg __unused, struct frame_source *frames)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };

	for (; frame_peek(frames, &frame); frame_next(frames))
		memset(memory, 0xee, 200);
}

TEST(newer, "A guard that is newer than the batch sees a copy, too; a frame "
    "that has no space for one is dropped")
{
	uint8_t first[60];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		open_ports("...");
		ATF_REQUIRE_EQ(0, vale_set_sink(t_port[1], change, NULL));
		t_make(first, sizeof(first), 1, 0, 1);
		t_put(t_port[0], first, sizeof(first), sizeof(first), true);
		t_make(memory, sizeof(memory), 2, 0, 2);
		memcpy(before, memory, sizeof(before));
		/* 63 fragments, or 64. */
		t_put(t_port[0], memory, 200 * (63 + i), 200, true);
		at_clock = guard;
		ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
		ATF_CHECK(at_clock == NULL);
		ATF_CHECK_EQ(1, calls.heads);
		ATF_CHECK_EQ(0xee, memory[0]);
		T_COUNT(t_port[0], TX_DROP_FRAGS, i);
		ATF_REQUIRE_EQ(0, vale_rxsync(t_port[2]));
		if (i == 0) {
			memset(before + VALE_GUARD_HEAD, 0xee,
			    200 - VALE_GUARD_HEAD);
			t_expect_bytes(t_port[2], before, 200 * 63);
		}
		ATF_CHECK(nm_ring_empty(t_port[2]->rxring));
		t_ports_close();
	}
}

static void
link_down(void)
{
	t_port_set(0, "link", "down");
}

TEST(down, "A link that goes down when a batch is collected drops all its "
    "frames")
{
	open_ports("...");
	queue("bcE", true);
	at_clock = link_down;
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
	T_COUNT(t_port[0], TX_DROP_LINK, 3);
	ATF_CHECK_EQ(0, received(1) + received(2));
	t_ports_close();
}

/* Send frame `seq' from station 0.  Returns how often it is looked up. */
static unsigned int
lookups(unsigned int dst, uint32_t seq)
{
	calls.lookups = 0;
	t_send(t_port[0], 60, dst, 0, seq);
	return (calls.lookups);
}

/* Whether another thread writes to all of the table's buckets. */
static void
writing(uint32_t writer)
{
	struct vale_fdb *f = &vale_desc_port(t_port[0])->vp_switch->vs_fdb;
	unsigned int i;

	for (i = 0; i < VALE_FDB_BUCKETS; i++)
		f->fdb_bucket[i].fb_writer = writer;
}

TEST(again, "The first frame of a batch is not looked up if that of the batch "
    "before had its addresses, until the table changes or a second passes")
{
	clock_s = 1000;
	t_ports_open(3);
	t_send(t_port[1], 60, EVERYBODY, 1, 0);
	t_expect(t_port[0], 60, 1, 0);
	t_expect(t_port[2], 60, 1, 0);
	/* Its source is learned, and is known the next time. */
	ATF_CHECK_EQ(1, lookups(1, 1));
	ATF_CHECK_EQ(1, lookups(1, 2));
	ATF_CHECK_EQ(0, lookups(1, 3));
	ATF_CHECK_EQ(0, lookups(1, 4));
	ATF_CHECK_EQ(4, t_drain(t_port[1]));
	t_expect_none(t_port[2]);
	/* Another destination, which nobody knows; another source. */
	ATF_CHECK_EQ(1, lookups(2, 5));
	ATF_CHECK_EQ(1, lookups(2, 6));
	ATF_CHECK_EQ(2, t_drain(t_port[1]));
	ATF_CHECK_EQ(2, t_drain(t_port[2]));
	ATF_CHECK_EQ(1, lookups(1, 7));
	t_send(t_port[0], 60, 1, 9, 0);
	T_COUNT(t_port[0], LEARNED, 2);
	ATF_CHECK_EQ(1, lookups(1, 8));
	ATF_CHECK_EQ(3, t_drain(t_port[1]));
	/* A source that is not learned at once. */
	writing(1);
	t_send(t_port[0], 60, 1, 8, 0);
	writing(0);
	t_send(t_port[0], 60, 1, 8, 1);
	T_COUNT(t_port[0], LEARNED, 3);
	ATF_CHECK_EQ(2, t_drain(t_port[1]));
	ATF_CHECK_EQ(1, lookups(1, 14));
	ATF_CHECK_EQ(1, t_drain(t_port[1]));
	/* The destination moves. */
	ATF_CHECK_EQ(0, lookups(1, 9));
	t_send(t_port[2], 60, 0, 1, 0);
	t_expect(t_port[0], 60, 1, 0);
	ATF_CHECK_EQ(1, lookups(1, 10));
	t_expect(t_port[1], 60, 0, 9);
	t_expect(t_port[2], 60, 0, 10);
	/* A second passes, and an hour, after which nobody knows it. */
	ATF_CHECK_EQ(0, lookups(1, 11));
	clock_s++;
	ATF_CHECK_EQ(1, lookups(1, 12));
	ATF_CHECK_EQ(2, t_drain(t_port[2]));
	t_expect_none(t_port[1]);
	clock_s += 3600;
	ATF_CHECK_EQ(1, lookups(1, 13));
	t_expect(t_port[1], 60, 0, 13);
	t_expect(t_port[2], 60, 0, 13);
	t_ports_close();
}

TEST_PROGRAM
