/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The decisions of vale_learn(4), without a kernel.  Ports are added as by the
 * module; `to' is where a frame went, followed by the ports that got copies.
 */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include <dev/netmap/vale_learn.h>

#include "test.h"

static const uint64_t seed[2] = { 0x0123456789abcdef, 0xfedcba9876543210 };
static struct vale_learn vl;

#define	SLOTS	255		/* that a receive ring can hold */

static void
add(unsigned int index, const char *name, unsigned int rings)
{
	struct vale_learn_port *lp;

	lp = calloc(1, vale_learn_port_size(rings, SLOTS));
	ATF_REQUIRE(lp != NULL);
	vale_learn_port_add(&vl, index, name, rings, SLOTS, lp);
}

static void
drop(unsigned int index)
{
	struct vale_learn_port *lp = vale_learn_port_remove(&vl, index);

	ATF_CHECK(lp != NULL);
	free(lp);
}

static void
end(void)
{
	unsigned int i;

	for (i = 0; i < VALE_FDB_PORTS; i++)
		free(vale_learn_port_remove(&vl, i));
}

static void
frame(uint8_t *addrs, unsigned int src, unsigned int dst)
{
	memset(addrs, dst == 0 ? 0xff : 0, 6);
	memset(addrs + 6, 0, 6);
	if (dst != 0) {
		addrs[0] = 2;
		addrs[5] = dst;
	}
	addrs[6] = 2;
	addrs[11] = src;
}

/* Where a frame goes: "port", "flood", "-", then "+port" for each copy. */
static const char *
to(unsigned int port, unsigned int ring, unsigned int src, unsigned int dst,
    uint32_t now_s)
{
	static char text[256];
	struct vale_learn_set copies;
	uint8_t addrs[VALE_LEARN_ADDRS];
	unsigned int d, i;
	size_t n;

	frame(addrs, src, dst);
	memset(&copies, 0xff, sizeof(copies));
	d = vale_learn_forward(&vl, vale_learn_ring(&vl, port, ring), port,
	    addrs, 60, 60, now_s, &copies);
	if ((d & 0xff) == VALE_FDB_FLOOD)
		n = sprintf(text, "flood");
	else if ((d & 0xff) == VALE_LEARN_NONE)
		n = sprintf(text, "-");
	else
		n = sprintf(text, "%u", d & 0xff);
	for (i = 0; (d & VALE_LEARN_COPIES) != 0 && i < VALE_FDB_PORTS; i++) {
		if (vale_learn_set_has(&copies, i))
			n += sprintf(text + n, "+%u", i);
	}
	return (text);
}

static uint64_t
counted(unsigned int port, enum vale_learn_counter c)
{
	struct vale_learn_port_info info;

	vale_learn_port_info(&vl, port, &info);
	return (info.lpi_counter[c]);
}

static int
rule(enum vale_learn_rule r, const char *text)
{
	return (vale_learn_rule_set(&vl, r, text));
}

TEST(plain, "Without rules frames are flooded or forwarded, never to the port "
    "they came from")
{
	vale_learn_init(&vl, seed);
	add(0, "vale0:a", 1);
	add(100, "vale0:b", 1);
	add(253, "vale0:c", 1);
	ATF_CHECK_STREQ("flood", to(0, 0, 1, 2, 0));
	ATF_CHECK_STREQ("0", to(253, 0, 2, 1, 0));
	ATF_CHECK_STREQ("253", to(0, 0, 1, 2, 0));
	ATF_CHECK_STREQ("-", to(253, 0, 3, 2, 0));
	ATF_CHECK_STREQ("flood", to(253, 0, 3, 0, 0));
	ATF_CHECK_STREQ("flood", to(0, 0, 1, 2, 301));

	ATF_CHECK_EQ(3, counted(0, VALE_LEARN_C_FRAME));
	ATF_CHECK_EQ(180, counted(0, VALE_LEARN_C_BYTE));
	ATF_CHECK_EQ(2, counted(0, VALE_LEARN_C_FLOOD));
	ATF_CHECK_EQ(2, counted(0, VALE_LEARN_C_LEARNED));
	ATF_CHECK_EQ(1, counted(253, VALE_LEARN_C_DROP_SELF));
	ATF_CHECK_EQ(0, counted(100, VALE_LEARN_C_FRAME));
	to(100, 0, 3, 0, 301);
	to(253, 0, 3, 0, 301);
	ATF_CHECK_EQ(1, counted(253, VALE_LEARN_C_MOVED));
	end();
}

TEST(unseen, "A frame whose header is short or unreadable is dropped and not "
    "learned from")
{
	struct vale_learn_ring *lr;
	struct vale_learn_set copies;
	struct vale_learn_port_info info;
	uint8_t addrs[VALE_LEARN_ADDRS];

	vale_learn_init(&vl, seed);
	add(0, "vale0:a", 1);
	frame(addrs, 1, 0);
	lr = vale_learn_ring(&vl, 0, 0);
	ATF_CHECK_EQ(VALE_LEARN_NONE, vale_learn_forward(&vl, lr, 0, addrs,
	    VALE_LEARN_HEADER - 1, 100, 0, &copies));
	ATF_CHECK_EQ(VALE_LEARN_NONE, vale_learn_forward(&vl, lr, 0, NULL, 0,
	    0, 0, &copies));
	ATF_CHECK_EQ(VALE_LEARN_NONE, vale_learn_forward(&vl, lr, 0, NULL, 60,
	    60, 0, &copies));
	vale_learn_port_info(&vl, 0, &info);
	ATF_CHECK_EQ(2, info.lpi_counter[VALE_LEARN_C_DROP_RUNT]);
	ATF_CHECK_EQ(1, info.lpi_counter[VALE_LEARN_C_DROP_FAULT]);
	ATF_CHECK_EQ(3, info.lpi_counter[VALE_LEARN_C_FRAME]);
	ATF_CHECK_EQ(160, info.lpi_counter[VALE_LEARN_C_BYTE]);
	ATF_CHECK_EQ(0, info.lpi_used);
	end();
}

TEST(mirror, "A mirror port gets a copy of each forwarded frame, private or "
    "not, and cannot send")
{
	vale_learn_init(&vl, seed);
	add(0, "vale0:a", 1);
	add(1, "vale0:b", 1);
	add(2, "vale0:mon", 1);
	add(3, "vale0:mon2", 1);
	to(2, 0, 7, 0, 0);
	ATF_CHECK_STREQ("2", to(0, 0, 1, 7, 0));
	ATF_REQUIRE_EQ(0, rule(VALE_LEARN_MIRROR, "mon*"));
	/* Earlier frames do not count. */
	ATF_CHECK_STREQ("-+1+2+3", to(0, 0, 1, 7, 0));
	ATF_CHECK_STREQ("0+2+3", to(1, 0, 2, 1, 0));
	ATF_CHECK_STREQ("-", to(2, 0, 8, 1, 0));
	ATF_CHECK_EQ(1, counted(2, VALE_LEARN_C_DROP_MIRROR));
	/* To a station on the same port: not forwarded, not mirrored. */
	ATF_CHECK_STREQ("-", to(1, 0, 3, 2, 0));

	ATF_REQUIRE_EQ(0, rule(VALE_LEARN_PRIVATE, "*"));
	ATF_CHECK_STREQ("-+2+3", to(0, 0, 1, 0, 0));
	ATF_CHECK_STREQ("-", to(0, 0, 1, 2, 0));
	drop(2);
	drop(3);
	ATF_CHECK_STREQ("-", to(0, 0, 1, 0, 0));
	ATF_REQUIRE_EQ(0, rule(VALE_LEARN_PRIVATE, ""));
	ATF_CHECK_STREQ("flood", to(0, 0, 1, 0, 0));
	ATF_CHECK(vl.vl_special);
	ATF_REQUIRE_EQ(0, rule(VALE_LEARN_MIRROR, " "));
	ATF_CHECK(!vl.vl_special);
	end();
}

TEST(same_way, "A frame like the last one takes the cached route, unless "
    "anything changed")
{
	unsigned int i, other;

	vale_learn_init(&vl, seed);
	for (i = 0; i < 4; i++)
		add(i, i == 3 ? "vale0:mon" : "vale0:a", 1);
	to(1, 0, 2, 0, 0);
	for (i = 0; i < 3; i++)
		ATF_CHECK_STREQ("1", to(0, 0, 1, 2, 0));
	ATF_CHECK_EQ(3, counted(0, VALE_LEARN_C_FRAME));

	/* The destination moves; the source does, and comes back. */
	to(2, 0, 2, 0, 0);
	ATF_CHECK_STREQ("2", to(0, 0, 1, 2, 0));
	ATF_CHECK_STREQ("2", to(0, 0, 1, 2, 0));
	to(2, 0, 1, 0, 0);
	ATF_CHECK_STREQ("-", to(2, 0, 2, 1, 0));
	ATF_CHECK_STREQ("2", to(0, 0, 1, 2, 0));
	ATF_CHECK_STREQ("0", to(2, 0, 2, 1, 0));
	ATF_CHECK_EQ(1, counted(0, VALE_LEARN_C_MOVED));

	/* Another destination, another source, another port. */
	ATF_CHECK_STREQ("2", to(0, 0, 1, 2, 0));
	ATF_CHECK_STREQ("flood", to(0, 0, 1, 3, 0));
	ATF_CHECK_STREQ("2", to(0, 0, 3, 2, 0));
	ATF_CHECK_STREQ("-", to(0, 0, 1, 3, 0));

	/* Destinations in the same slot of the cache as 2. */
	other = 2 + VALE_LEARN_RESULTS;
	ATF_CHECK_STREQ("2", to(0, 0, 1, 2, 0));
	ATF_CHECK_STREQ("2", to(0, 0, 1, 2, 0));
	ATF_CHECK_STREQ("flood", to(0, 0, 1, other, 0));
	to(1, 0, other, 0, 0);
	for (i = 0; i < 3; i++) {
		ATF_CHECK_STREQ("1", to(0, 0, 1, other, 0));
		ATF_CHECK_STREQ("2", to(0, 0, 1, 2, 0));
	}
	/* The source is looked up again if it may have moved. */
	to(2, 0, 1, 2, 0);
	ATF_CHECK_STREQ("1", to(0, 0, 1, other, 0));
	ATF_CHECK_EQ(2, counted(0, VALE_LEARN_C_MOVED));
	ATF_CHECK_STREQ("0", to(2, 0, 2, 1, 0));

	/* Time passes: an entry that is used by the cached route stays. */
	ATF_CHECK_STREQ("2", to(0, 0, 1, 2, 300));
	ATF_CHECK_STREQ("flood", to(0, 0, 1, 2, 301));
	ATF_CHECK_STREQ("0", to(2, 0, 2, 1, 301));
	ATF_CHECK_STREQ("2", to(0, 0, 1, 2, 301));
	vale_fdb_set_ageing(&vl.vl_fdb, 5);
	ATF_CHECK_STREQ("2", to(0, 0, 1, 2, 306));
	vale_fdb_set_ageing(&vl.vl_fdb, 4);
	ATF_CHECK_STREQ("flood", to(0, 0, 1, 2, 306));
	vale_fdb_set_ageing(&vl.vl_fdb, 300);

	/* Rules are added; the port is removed. */
	ATF_CHECK_STREQ("2", to(0, 0, 1, 2, 306));
	ATF_REQUIRE_EQ(0, rule(VALE_LEARN_PRIVATE, "a"));
	ATF_CHECK_STREQ("-", to(0, 0, 1, 2, 306));
	ATF_REQUIRE_EQ(0, rule(VALE_LEARN_PRIVATE, ""));
	ATF_CHECK_STREQ("2", to(0, 0, 1, 2, 306));
	ATF_REQUIRE_EQ(0, rule(VALE_LEARN_MIRROR, "mon"));
	ATF_CHECK_STREQ("2+3", to(0, 0, 1, 2, 306));
	ATF_REQUIRE_EQ(0, rule(VALE_LEARN_MIRROR, ""));
	ATF_CHECK_STREQ("2", to(0, 0, 1, 2, 306));
	drop(2);
	ATF_CHECK_STREQ("flood", to(0, 0, 1, 2, 306));
	end();
}

TEST(rules, "In a list the last match counts; an invalid list is refused and "
    "changes nothing")
{
	static const struct {
		enum vale_learn_rule	 rule;
		const char		*text, *port;
		unsigned int		 value;
	} good[] = {
		{ VALE_LEARN_PRIVATE, "", "vale0:vm1", 0 },
		{ VALE_LEARN_PRIVATE, " ,\t\n,", "vale0:vm1", 0 },
		{ VALE_LEARN_PRIVATE, "vm1", "vale0:vm1", 1 },
		{ VALE_LEARN_PRIVATE, "vm1", "vale0:vm10", 0 },
		{ VALE_LEARN_PRIVATE, "vm", "vale0:vm1", 0 },
		{ VALE_LEARN_PRIVATE, "vale0", "vale0:vm1", 0 },
		{ VALE_LEARN_PRIVATE, "*,!vm1", "vale0:vm1", 0 },
		{ VALE_LEARN_PRIVATE, "!vm1 *", "vale0:vm1", 1 },
		{ VALE_LEARN_PRIVATE, "* !em?^", "vale0:em0^", 0 },
		{ VALE_LEARN_MIRROR, "m[0-9]", "vale:m7", 1 },
		{ VALE_LEARN_LIMIT, "5120", "vale0:vm1", 5120 },
		{ VALE_LEARN_LIMIT, "4 vm1=7", "vale0:vm1", 7 },
		{ VALE_LEARN_LIMIT, "vm1=7 4", "vale0:vm1", 4 },
		{ VALE_LEARN_LIMIT, "4,vm*=0", "vale0:vm1", 0 },
		{ VALE_LEARN_LIMIT, "vm*=3", "vale0:x", 0 },
		{ VALE_LEARN_LIMIT, "a=b=3", "vale0:a=b", 3 },
		{ VALE_LEARN_PRIVATE, "a23456789012345678901234567890",
		    "a23456789012345678901234567890", 1 },
	};
	static const struct {
		enum vale_learn_rule	 rule;
		const char		*text;
	} bad[] = {
		{ VALE_LEARN_PRIVATE, "!" },
		{ VALE_LEARN_PRIVATE, "vm1 ! vm2" },
		{ VALE_LEARN_PRIVATE, "vm\001" },
		{ VALE_LEARN_PRIVATE, "vm\200" },
		{ VALE_LEARN_LIMIT, "x" },
		{ VALE_LEARN_LIMIT, "5121" },
		{ VALE_LEARN_LIMIT, "-1" },
		{ VALE_LEARN_LIMIT, "4294967297" },
		{ VALE_LEARN_LIMIT, "vm=" },
		{ VALE_LEARN_LIMIT, "=" },
		{ VALE_LEARN_LIMIT, "=4" },
		{ VALE_LEARN_LIMIT, "vm=4 vm=0x4" },
		{ VALE_LEARN_RATE, "5" },
		{ VALE_LEARN_RATE, "vm=" },
		{ VALE_LEARN_RATE, "=1bit/s" },
		{ VALE_LEARN_RATE, "vm=1bit/s:" },
		{ VALE_LEARN_RATE, "vm=1bit/s:0" },
		{ VALE_LEARN_RATE, "vm=1bit/s:1:1" },
		{ VALE_LEARN_RATE, "vm=:1" },
		{ VALE_LEARN_RATE, "1bit/s vm=1001Gbit/s" },
	};
	char text[VALE_LEARN_TEXT + 1];
	union vale_learn_value value;
	unsigned int i;

	vale_learn_init(&vl, seed);
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		ATF_CHECK_EQ_MSG(0, rule(good[i].rule, good[i].text), "%s",
		    good[i].text);
		vale_learn_rule_match(good[i].rule, good[i].text, good[i].port,
		    &value);
		ATF_CHECK_EQ_MSG(good[i].value, value.v_number, "%s of %s",
		    good[i].text, good[i].port);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		strcpy(text, vl.vl_rule[bad[i].rule]);
		ATF_CHECK_EQ_MSG(EINVAL, rule(bad[i].rule, bad[i].text), "%s",
		    bad[i].text);
		ATF_CHECK_STREQ(text, vl.vl_rule[bad[i].rule]);
	}
	memset(text, 'a', VALE_LEARN_WORD);
	text[VALE_LEARN_WORD] = '\0';
	ATF_CHECK_EQ(EINVAL, rule(VALE_LEARN_MIRROR, text));
	ATF_CHECK_EQ(0, rule(VALE_LEARN_MIRROR, text + 1));
	memset(text, ',', sizeof(text) - 1);
	text[VALE_LEARN_TEXT] = '\0';
	ATF_CHECK_EQ(EINVAL, rule(VALE_LEARN_LIMIT, text));
	ATF_CHECK_EQ(0, rule(VALE_LEARN_LIMIT, text + 1));
}

TEST(long_name, "A name that is too long is truncated")
{
	char name[2 * VALE_LEARN_NAME];
	struct vale_learn_port_info info;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	vale_learn_init(&vl, seed);
	add(0, name, 1);
	vale_learn_port_info(&vl, 0, &info);
	ATF_CHECK_EQ(VALE_LEARN_NAME - 1, strlen(info.lpi_name));
	end();
}

#define	THREADS	4
#define	FRAMES	50000

static void *
send_frames(void *arg)
{
	unsigned int i, ring = (unsigned int)(uintptr_t)arg;
	struct vale_learn_ring *lr = vale_learn_ring(&vl, 0, ring);
	struct vale_learn_set copies;
	uint8_t addrs[VALE_LEARN_ADDRS];

	for (i = 0; i < FRAMES; i++) {
		frame(addrs, i % 8 + 1, i % 3);
		vale_learn_forward(&vl, lr, 0, addrs, 60, 60, i / 1000,
		    &copies);
		vale_learn_count(lr, VALE_LEARN_C_COPY, 2);
	}
	return (NULL);
}

TEST(rings, "A port that sends on several rings while ports are added counts "
    "every frame")
{
	struct vale_learn_port_info info;
	pthread_t thread[THREADS];
	unsigned int c, i;
	uint64_t sum = 0;

	vale_learn_init(&vl, seed);
	ATF_REQUIRE_EQ(0, rule(VALE_LEARN_PRIVATE, "p*"));
	ATF_REQUIRE_EQ(0, rule(VALE_LEARN_LIMIT, "6"));
	add(0, "vale0:p0", THREADS);
	for (i = 0; i < THREADS; i++)
		ATF_REQUIRE_EQ(0, pthread_create(&thread[i], NULL, send_frames,
		    (void *)(uintptr_t)(i + 3)));
	for (i = 1; i < 200; i++)
		add(i, i % 2 ? "vale0:p" : "vale0:x", 1);
	for (i = 0; i < THREADS; i++)
		ATF_REQUIRE_EQ(0, pthread_join(thread[i], NULL));
	vale_learn_port_info(&vl, 0, &info);
	ATF_CHECK_EQ(THREADS * FRAMES, info.lpi_counter[VALE_LEARN_C_FRAME]);
	ATF_CHECK_EQ(THREADS * FRAMES * 60,
	    info.lpi_counter[VALE_LEARN_C_BYTE]);
	ATF_CHECK_EQ(THREADS * FRAMES * 2,
	    info.lpi_counter[VALE_LEARN_C_COPY]);
	/*
	 * Each ring has a struct lr of its own; that of ring 3 is the last of
	 * four.
	 */
	for (i = 0; i < THREADS; i++)
		ATF_CHECK_EQ(FRAMES, vl.vl_port[0]->lp_ring[i].
		    lr_counter[VALE_LEARN_C_FRAME]);
	/* All stations are at port 0: a frame is flooded or dropped. */
	for (c = VALE_LEARN_C_DROP_RUNT; c < VALE_LEARN_C_DROP_COPY; c++)
		sum += info.lpi_counter[c];
	ATF_CHECK_EQ(THREADS * FRAMES,
	    sum + info.lpi_counter[VALE_LEARN_C_FLOOD]);
	ATF_CHECK_EQ(6, info.lpi_used);
	ATF_CHECK(info.lpi_counter[VALE_LEARN_C_DROP_LIMIT] > 0);
	end();
}

/* A limit that the list gives to a port. */
static void
check_rate(const char *text, const char *port, uint64_t rate, uint32_t burst,
    bool frames)
{
	union vale_learn_value value;

	ATF_CHECK_EQ_MSG(0, rule(VALE_LEARN_RATE, text), "%s", text);
	vale_learn_rule_match(VALE_LEARN_RATE, text, port, &value);
	ATF_CHECK_MSG(value.v_rate.rc_rate == rate &&
	    value.v_rate.rc_burst == burst && value.v_rate.rc_frames == frames,
	    "%s of %s: %ju %u", text, port, (uintmax_t)value.v_rate.rc_rate,
	    value.v_rate.rc_burst);
}

TEST(rates, "A list of rates gives each port the last one that matches it")
{
	vale_learn_init(&vl, seed);
	check_rate("", "vale0:a", 0, 0, false);
	check_rate("300Mbit/s", "vale0:a", 300000000, 0, false);
	check_rate("300Mbit/s:1M", "vale0:a", 300000000, 1 << 20, false);
	check_rate("1Gbit/s:64K vm*=100Kpkt/s:7", "vale0:vm1", 100000, 7, true);
	check_rate("1Gbit/s:64K vm*=100Kpkt/s:7", "vale0:a", 1000000000, 65536,
	    false);
	check_rate("1Gbit/s:64K,a=0", "vale0:a", 0, 0, false);
	check_rate("a=2Byte/s", "vale0:b", 0, 0, false);
}

/* How many of `n' frames of `len' bytes pass at a time. */
static unsigned int
pass(unsigned int port, unsigned int ring, unsigned int n, uint32_t len,
    uint64_t now_ns)
{
	struct vale_learn_ring *lr = vale_learn_ring(&vl, port, ring);
	unsigned int passed = 0;

	while (n-- > 0)
		passed += !vale_learn_exceeds(&vl, lr, port, 1, len, len,
		    now_ns);
	return (passed);
}

TEST(rate, "Frames over a port's rate are dropped and counted; its rings have "
    "a part of it each")
{
	const uint64_t s = 1000000000;
	struct vale_learn_port_info info;
	uint64_t now = s;

	vale_learn_init(&vl, seed);
	ATF_REQUIRE_EQ(0, rule(VALE_LEARN_RATE, "vm*=10pkt/s:5 x=0"));
	add(0, "vale0:vm0", 1);
	add(1, "vale0:x", 1);
	add(2, "vale0:vm2", 4);
	ATF_CHECK(vale_rate_limited(&vale_learn_ring(&vl, 0, 0)->lr_rate));
	ATF_CHECK(!vale_rate_limited(&vale_learn_ring(&vl, 1, 0)->lr_rate));
	ATF_CHECK_EQ(5, pass(0, 0, 20, 60, now));
	ATF_CHECK_EQ(15, counted(0, VALE_LEARN_C_DROP_RATE));
	/* Only those dropped: the others are counted as they are forwarded. */
	ATF_CHECK_EQ(15, counted(0, VALE_LEARN_C_FRAME));
	ATF_CHECK_EQ(15 * 60, counted(0, VALE_LEARN_C_BYTE));
	now += s / 10;
	ATF_CHECK_EQ(1, pass(0, 0, 20, 60, now));

	/* Another list is set: what is in force goes on. */
	ATF_REQUIRE_EQ(0, rule(VALE_LEARN_LIMIT, "7"));
	ATF_CHECK_EQ(0, pass(0, 0, 20, 60, now));
	/* And this one: from the beginning. */
	ATF_REQUIRE_EQ(0, rule(VALE_LEARN_RATE, "10pkt/s:6"));
	ATF_CHECK_EQ(6, pass(0, 0, 20, 60, now));
	ATF_CHECK_EQ(6, pass(1, 0, 20, 60, now));
	vale_learn_port_info(&vl, 0, &info);
	ATF_CHECK(info.lpi_rate.rc_rate == 10 && info.lpi_rate.rc_burst == 6 &&
	    info.lpi_rate.rc_frames);

	/* Four rings: 3 frames a second, and 2 at once. */
	ATF_CHECK_EQ(2, pass(2, 0, 20, 60, now));
	ATF_CHECK_EQ(2, pass(2, 3, 20, 60, now));
	now += s;
	ATF_CHECK_EQ(2, pass(2, 0, 20, 60, now));
	ATF_REQUIRE_EQ(0, rule(VALE_LEARN_RATE, ""));
	ATF_CHECK(!vale_rate_limited(&vale_learn_ring(&vl, 2, 3)->lr_rate));
	end();
}

/*
 * netmap's delivery, as far as it matters here: a batch is looked up frame by
 * frame; what goes to the receiver gets as many slots as are free, from the
 * first frame on.  The ring is a queue of senders.
 */
static uint8_t	queue[SLOTS];
static uint32_t	nqueue;
static uint32_t	received[VALE_FDB_PORTS];
static uint64_t	lost;			/* by netmap */

/* Sender `port' sends `n' frames of `each' slots to the receiver, port 0. */
static void
flush(unsigned int port, unsigned int n, uint32_t each)
{
	struct vale_learn_ring *lr = vale_learn_ring(&vl, port, 0);
	static char batch[4096];	/* the places of its frames */
	uint32_t admitted = 0, before = 0;

	for (; n > 0; n--, before += each) {
		vale_learn_batch(lr, batch + before);
		ATF_REQUIRE_EQ(batch, lr->lr_first);
		ATF_REQUIRE_STREQ("0", to(port, 0, port, 100, 0));
		if (vale_learn_fits(&vl, 0, nqueue, before, each) ||
		    vale_learn_admit(&vl, lr, port, 0, nqueue, each))
			admitted++;
	}
	for (; admitted > 0 && nqueue + each <= SLOTS; admitted--) {
		memset(queue + nqueue, (int)port, each);
		nqueue += each;
	}
	lost += admitted;
}

static void
receive(uint32_t n)
{
	uint32_t i;

	n = n < nqueue ? n : nqueue;
	for (i = 0; i < n; i++)
		received[queue[i]]++;
	nqueue -= n;
	memmove(queue, queue + n, nqueue);
}

/*
 * `n' senders take turns, always in the same order, with `batch[i % 2]' frames;
 * the receiver takes `take' slots after each turn.
 */
static void
contend(unsigned int n, const unsigned int batch[2], uint32_t take)
{
	uint32_t total = 0;
	unsigned int i, r;
	char name[16];

	vale_learn_init(&vl, seed);
	add(0, "vale0:rx", 1);
	to(0, 0, 100, 0, 0);
	for (i = 1; i <= n; i++) {
		snprintf(name, sizeof(name), "vale0:f%u", i);
		add(i, name, 1);
		/* It is known, so that none floods. */
		to(i, 0, i, 100, 0);
	}
	nqueue = 0;
	lost = 0;
	memset(received, 0, sizeof(received));
	for (r = 0; r < 20 * SLOTS / take; r++) {
		for (i = 1; i <= n; i++)
			flush(i, batch[i % 2], 1);
		receive(take);
	}
	for (i = 1; i <= n; i++)
		total += received[i];
	for (i = 1; i <= n; i++) {
		printf("%u ", received[i]);
		ATF_CHECK_MSG(received[i] * n * 100 >= total * (n == 2 ? 80 :
		    50) && (n != 2 || received[i] * n * 100 <= total * 120),
		    "sender %u of %u: %u of %u", i, n, received[i], total);
		ATF_CHECK_EQ(counted(i, VALE_LEARN_C_FRAME) - 1,
		    20 * SLOTS / take * batch[i % 2]);
		ATF_CHECK(counted(i, VALE_LEARN_C_DROP_SHARE) > 0);
	}
	/* Whatever does not fit is dropped, and counted, before netmap does. */
	printf("of %u, %ju lost\n", total, (uintmax_t)lost);
	ATF_CHECK(lost <= 2 * SLOTS);
	end();
}

TEST(shares, "Two senders to one slow receiver get 40 to 60 % each, of ten "
    "none less than half of an equal share")
{
	contend(2, (const unsigned int [2]){ 2, 2 }, 1);
	contend(2, (const unsigned int [2]){ 1, 255 }, 1);
	contend(2, (const unsigned int [2]){ 255, 1 }, 1);
	contend(2, (const unsigned int [2]){ 300, 300 }, 255);
	contend(10, (const unsigned int [2]){ 1, 1 }, 1);
	contend(10, (const unsigned int [2]){ 300, 300 }, 255);
	contend(10, (const unsigned int [2]){ 32, 64 }, 50);
}

TEST(share_alone, "A single sender fills the whole ring, with frames of "
    "several slots, too; a port may have no shares")
{
	struct vale_learn_port *lp;
	uint32_t r;

	vale_learn_init(&vl, seed);
	add(0, "vale0:rx", 1);
	add(1, "vale0:f1", 1);
	to(0, 0, 100, 0, 0);
	nqueue = 0;
	flush(1, 100, 3);
	ATF_CHECK_EQ(255, nqueue);
	for (r = 1; r < 2000; r++) {
		receive(1 + r % 20);
		flush(1, 100, 3);
		ATF_REQUIRE(nqueue > 255 - 3);
	}
	/* Without any refusal the ring is nobody's, and again after a while. */
	for (r = 0; r < 600; r++) {
		receive(1);
		if (nqueue < 200)
			flush(1, 1, 1);
	}
	ATF_CHECK(!vale_share_on(vale_learn_share(&vl, 0)));
	end();

	vale_learn_init(&vl, seed);
	lp = calloc(1, vale_learn_port_size(1, 0));
	ATF_REQUIRE(lp != NULL);
	vale_learn_port_add(&vl, 0, "vale0:em0", 1, 0, lp);
	ATF_CHECK(vale_learn_share(&vl, 0) == NULL);
	ATF_CHECK(vale_learn_share(&vl, 1) == NULL);
	end();
}

TEST_PROGRAM
