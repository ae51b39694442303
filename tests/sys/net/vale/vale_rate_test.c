/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Limits of senders: the token bucket alone, and in the switch, with a virtual
 * clock.  The linker's --wrap brings calls of clock_gettime(2) here.
 */

#include <sys/param.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include <atf-c.h>

#include <dev/netmap/vale_rate.h>

#include "setting.h"
#include "test.h"
#include "vale_switch.h"
#include "vale_test.h"
#include "vale_vnet.h"
#include "wrap.h"

#define	SECOND	1000000000ULL
#define	MS	1000000ULL

static uint64_t	now_ns = SECOND;

WRAP(int, clock_gettime, clockid_t clock __attribute__((__unused__)),
    struct timespec *ts)
{
	ts->tv_sec = (time_t)(now_ns / SECOND);
	ts->tv_nsec = (long)(now_ns % SECOND);
	return (0);
}

static struct vale_rate_conf
bits(uint64_t rate, uint32_t burst)
{
	struct vale_rate_conf conf = { rate, burst, false };

	return (conf);
}

static struct vale_rate_conf
frames(uint64_t rate, uint32_t burst)
{
	struct vale_rate_conf conf = { rate, burst, true };

	return (conf);
}

static void
set(struct vale_rate *r, struct vale_rate_conf conf)
{
	ATF_REQUIRE_EQ(0, vale_rate_set(r, &conf));
}

/* How many of `n' frames of `len' bytes pass now. */
static unsigned int
pass(struct vale_rate *r, unsigned int n, uint64_t len)
{
	unsigned int passed = 0;

	while (n-- > 0)
		passed += vale_rate_frame(r, 1, len);
	return (passed);
}

TEST(parse, "Rates and bursts are parsed, or refused as they are")
{
	static const struct {
		const char	*text;
		uint64_t	 rate;
		bool		 frames;
	} good[] = {
		{ "0", 0, false }, { "0bit/s", 0, false },
		{ "0pkt/s", 0, true },
		{ "1bit/s", 1, false }, { "9bit/s", 9, false },
		{ "300Mbit/s", 300000000, false },
		{ "1Kbit/s", 1000, false }, { "2Gbit/s", 2000000000, false },
		{ "1000Gbit/s", VALE_RATE_MAX, false },
		{ "1000000000000bit/s", VALE_RATE_MAX, false },
		{ "10Byte/s", 80, false }, { "5KByte/s", 40000, false },
		{ "125GByte/s", VALE_RATE_MAX, false },
		{ "100Kpkt/s", 100000, true }, { "7pkt/s", 7, true },
		{ "1000Gpkt/s", VALE_RATE_MAX, true },
	};
	static const char *const bad[] = {
		"", "1", "10", "bit/s", "Mbit/s", "-1bit/s", "+1bit/s",
		" 1bit/s", "1 bit/s", "1bit/s ", "1mbit/s", "1Tbit/s",
		"1MMbit/s", "1.5Mbit/s", "0x1bit/s", "1Bit/s", "1bits/s",
		"1byte/s", "1pkts/s", "1K", "00", "1001Gbit/s", ":bit/s",
		"1000000000001bit/s", "126GByte/s", "1001Gpkt/s", "/bit/s",
		"99999999999999999999999999bit/s",
		"18446744073709551617bit/s",
	};
	static const struct {
		const char	*text;
		uint32_t	 burst;
	} good_burst[] = {
		{ "1", 1 }, { "64K", 65536 }, { "1M", 1048576 },
		{ "536870912", VALE_RATE_BURST_MAX },
		{ "512M", VALE_RATE_BURST_MAX }, { "109", 109 },
	};
	static const char *const bad_burst[] = {
		"", "0", "0K", "K", "-1", "1k", "1KB", "513M", "1G", "1 ",
		"536870913", "4294967297", "1T", "18446744073709551617",
	};
	struct vale_rate_conf conf;
	size_t i;

	for (i = 0; i < nitems(good); i++) {
		conf = frames(5, 6);
		if (i % 2 == 0)
			conf.rc_frames = false;
		ATF_CHECK_MSG(vale_rate_parse(good[i].text, &conf) &&
		    conf.rc_rate == good[i].rate &&
		    conf.rc_frames == good[i].frames, "%s", good[i].text);
		ATF_CHECK_EQ(6, conf.rc_burst);
	}
	for (i = 0; i < nitems(bad); i++) {
		conf = frames(5, 6);
		ATF_CHECK_MSG(!vale_rate_parse(bad[i], &conf) &&
		    conf.rc_rate == 5 && conf.rc_burst == 6 && conf.rc_frames,
		    "%s", bad[i]);
	}
	for (i = 0; i < nitems(good_burst); i++) {
		conf = frames(5, 6);
		ATF_CHECK_MSG(vale_rate_parse_burst(good_burst[i].text,
		    &conf) && conf.rc_burst == good_burst[i].burst, "%s",
		    good_burst[i].text);
		ATF_CHECK(conf.rc_rate == 5 && conf.rc_frames);
	}
	for (i = 0; i < nitems(bad_burst); i++) {
		conf = frames(5, 6);
		ATF_CHECK_MSG(!vale_rate_parse_burst(bad_burst[i], &conf) &&
		    conf.rc_burst == 6, "%s", bad_burst[i]);
	}
}

TEST(clock, "A clock that stands still or goes back adds nothing")
{
	struct vale_rate r = { .r_level = 0 };
	uint64_t now = SECOND;

	set(&r, frames(10, 10));
	vale_rate_refill(&r, now);
	ATF_CHECK_EQ(10, pass(&r, 100, 60));
	vale_rate_refill(&r, now);
	ATF_CHECK_EQ(0, pass(&r, 100, 60));
	vale_rate_refill(&r, now - SECOND / 2);
	ATF_CHECK_EQ(0, pass(&r, 100, 60));
	vale_rate_refill(&r, now);
	ATF_CHECK_EQ(0, pass(&r, 100, 60));
	vale_rate_refill(&r, now + SECOND / 10);
	ATF_CHECK_EQ(1, pass(&r, 100, 60));
	vale_rate_refill(&r, now + SECOND / 5);
	ATF_CHECK_EQ(1, pass(&r, 100, 60));
}

TEST(change, "A change of the limit fills the bucket, and an equal one does "
    "nothing")
{
	struct vale_rate r = { .r_level = 0 };

	ATF_CHECK(!vale_rate_limited(&r));
	set(&r, frames(10, 7));
	ATF_CHECK(vale_rate_limited(&r));
	vale_rate_refill(&r, SECOND);
	ATF_CHECK_EQ(7, pass(&r, 100, 60));
	set(&r, frames(10, 7));
	ATF_CHECK_EQ(0, pass(&r, 100, 60));
	set(&r, frames(11, 7));
	ATF_CHECK_EQ(7, pass(&r, 100, 60));
	set(&r, frames(11, 8));
	ATF_CHECK_EQ(8, pass(&r, 100, 60));
	set(&r, bits(11, 8));
	ATF_CHECK_EQ(1, pass(&r, 100, 60));
	set(&r, bits(0, 8));
	ATF_CHECK(!vale_rate_limited(&r));
	ATF_CHECK_EQ(0, r.r_conf.rc_burst);
	/* No limit of one kind is that of another. */
	set(&r, frames(0, 0));
	ATF_CHECK(!r.r_conf.rc_frames);

	/* Defaults of the burst: 1/2 s, within its range. */
	set(&r, bits(8 * 2 * 262145ULL, 0));
	ATF_CHECK_EQ(262145, r.r_conf.rc_burst);
	ATF_CHECK_EQ(263, pass(&r, 1000, 1000));
	set(&r, bits(1, 0));
	ATF_CHECK_EQ(262144, r.r_conf.rc_burst);
	set(&r, bits(VALE_RATE_MAX, 0));
	ATF_CHECK_EQ(VALE_RATE_BURST_MAX, r.r_conf.rc_burst);
	set(&r, frames(2 * 65, 0));
	ATF_CHECK_EQ(65, r.r_conf.rc_burst);
	set(&r, frames(1, 0));
	ATF_CHECK_EQ(64, r.r_conf.rc_burst);
	/* The same with the default given. */
	ATF_CHECK_EQ(64, pass(&r, 100, 60));
	set(&r, frames(1, 64));
	ATF_CHECK_EQ(0, pass(&r, 100, 60));

	ATF_CHECK_EQ(EINVAL, vale_rate_set(&r,
	    &(struct vale_rate_conf){ VALE_RATE_MAX + 1, 1, false }));
	ATF_CHECK_EQ(EINVAL, vale_rate_set(&r,
	    &(struct vale_rate_conf){ 1, VALE_RATE_BURST_MAX + 1, false }));
	ATF_CHECK(r.r_conf.rc_frames && r.r_conf.rc_burst == 64);
	set(&r, bits(VALE_RATE_MAX, VALE_RATE_BURST_MAX));
	ATF_CHECK_EQ(VALE_RATE_BURST_MAX, r.r_conf.rc_burst);
}

/*
 * What a sender like TCP gets of a limit in `seconds' (RFC 5681, 6298, with
 * Linux's least timeout of 0.2 s): each millisecond it sends a window of
 * packets of up to 64 KB.  If some are lost the window is halved; if all, it
 * waits, twice as long each time, and begins with one segment.  At most `most'
 * bytes pass in any second.
 */
static uint64_t
tcp(struct vale_rate *r, unsigned int seconds, uint64_t most)
{
	static uint64_t passed[30 * 1000];
	const uint64_t mss = 1448, packet = 45 * mss;
	uint64_t window = 10 * mss, threshold = 1 << 20, sum = 0, last = 0;
	uint64_t all = 0, len, left, got, wait = 200;
	unsigned int ms, pause = 0;

	for (ms = 0; ms < seconds * 1000; ms++) {
		vale_rate_refill(r, now_ns += MS);
		passed[ms] = got = 0;
		for (left = pause == 0 ? window : 0; left > 0; left -= len) {
			len = MIN(left, packet);
			if (vale_rate_frame(r, 1, len))
				got += len;
		}
		if (pause > 0)
			pause--;
		else if (got == 0) {
			threshold = MAX(window / 2, 2 * mss);
			window = mss;
			pause = wait;
			wait *= 2;
		} else {
			wait = 200;
			if (got < window)
				window = threshold = MAX(window / 2, 2 * mss);
			else
				window += window < threshold ? window : mss;
		}
		passed[ms] = got;
		all += got;
		sum += got - (ms >= 1000 ? last : 0);
		last = ms >= 999 ? passed[ms - 999] : 0;
		ATF_REQUIRE(sum <= most);
	}
	return (all);
}

TEST(tcp, "With the default burst TCP gets at least 0.9 of a limit, and in no "
    "second more than the limit, the burst and a packet")
{
	static const unsigned int mbits[] = { 1, 10, 50, 200, 1000 };
	struct vale_rate r;
	uint64_t bytes;
	size_t i;

	for (i = 0; i < nitems(mbits); i++) {
		memset(&r, 0, sizeof(r));
		set(&r, bits(mbits[i] * 1000000ULL, 0));
		vale_rate_refill(&r, now_ns);
		bytes = mbits[i] * 1000000ULL / 8;
		ATF_CHECK_MSG(tcp(&r, 30, bytes + r.r_conf.rc_burst + 65160) >=
		    bytes * 30 * 9 / 10, "%u Mbit/s", mbits[i]);
	}
}

TEST(extremes, "The largest rates, bursts, frames and times are exact")
{
	const uint64_t max = VALE_RATE_BURST_MAX;
	struct vale_rate r = { .r_level = 0 };
	uint64_t now = 0;

	set(&r, bits(VALE_RATE_MAX, VALE_RATE_BURST_MAX));
	vale_rate_refill(&r, UINT64_MAX);
	ATF_CHECK_EQ(512, pass(&r, 1000, max / 512));
	vale_rate_refill(&r, UINT64_MAX);
	ATF_CHECK_EQ(0, pass(&r, 1000, 1));

	/* Full but for a bit, a frame that costs all: owed at 1 bit/s. */
	memset(&r, 0, sizeof(r));
	set(&r, bits(1, VALE_RATE_BURST_MAX));
	vale_rate_refill(&r, now);
	ATF_CHECK(vale_rate_frame(&r, 1, max - 1));
	ATF_CHECK(vale_rate_frame(&r, UINT64_MAX, UINT64_MAX));
	now += (max - 1) * 8 * SECOND;
	vale_rate_refill(&r, now);
	ATF_CHECK_EQ(0, pass(&r, 1, 1));
	vale_rate_refill(&r, ++now);
	ATF_CHECK_EQ(1, pass(&r, 2, 1));
	/* From the deepest debt to a full bucket at once. */
	memset(&r, 0, sizeof(r));
	set(&r, frames(VALE_RATE_MAX, VALE_RATE_BURST_MAX));
	vale_rate_refill(&r, SECOND);
	ATF_CHECK(vale_rate_frame(&r, max - 1, 60));
	ATF_CHECK(vale_rate_frame(&r, max, 60));
	vale_rate_refill(&r, 2 * SECOND);
	ATF_CHECK(vale_rate_frame(&r, max - 1, 60));
	ATF_CHECK(vale_rate_frame(&r, 1, 60));
	ATF_CHECK_EQ(0, pass(&r, 1, 60));
}

/*
 * In the switch.
 */

static struct vale_desc *rx, *tx;

static void
ports_open(struct vale_rate_conf conf)
{
	rx = t_open("valet0:rx", 64, 1024);
	tx = t_open("valet0:tx", 1024, 64);
	t_send(rx, 60, EVERYBODY, 0, 0);
	t_drain(tx);
	ATF_REQUIRE_EQ(0, setting_rate("valet0:tx", &conf));
}

static void
ports_close(void)
{
	vale_close(rx);
	vale_close(tx);
}

/* Each frame of tx is counted once. */
static void
accounted(void)
{
	uint64_t drops = 0, flooded = t_count(tx, VALE_C_TX_FLOOD);
	enum vale_counter c;

	for (c = VALE_C_TX_DROP_RUNT; c <= VALE_C_TX_DROP_LIMIT; c++)
		drops += t_count(tx, c);
	/* There is one other port. */
	ATF_CHECK_EQ(t_count(tx, VALE_C_TX_FRAME), drops +
	    t_count(tx, VALE_C_TX_COPY));
	ATF_CHECK(flooded <= t_count(tx, VALE_C_TX_COPY));
	ATF_CHECK_EQ(t_count(tx, VALE_C_TX_COPY),
	    t_count(rx, VALE_C_RX_FRAME) + t_count(rx, VALE_C_RX_DROP_FULL));
}

TEST(removed, "A limit that is removed while a batch is collected limits it "
    "no longer")
{
	struct vale_desc *a = t_open("valet0:a", 64, 64);
	struct vale_desc *b = t_open("valet0:b", 64, 64);
	unsigned int i;

	/* The sender has looked before. */
	vale_desc_port(a)->vp_limited = true;
	for (i = 0; i < 10; i++)
		t_send(a, 60, EVERYBODY, 1, i);
	ATF_CHECK_EQ(10, t_drain(b));
	T_COUNT(a, TX_DROP_RATE, 0);
	vale_close(a);
	vale_close(b);
}

TEST(rings, "The limit is of all rings of a port together")
{
	const struct vale_params params = { .rings = 3 };
	unsigned int i, k;

	rx = t_open("valet0:rx", 64, 1024);
	tx = vale_open("valet0:tx", &params);
	ATF_REQUIRE(tx != NULL);
	ATF_REQUIRE_EQ(0, vale_set("valet0:tx", "rate", "100pkt/s,burst=10"));
	for (k = 0; k < 3; k++) {
		for (i = 0; i < 4; i++)
			t_queue(vale_ring(tx, k), 60, EVERYBODY, 1, i);
		ATF_REQUIRE_EQ(0, vale_txsync(vale_ring(tx, k)));
	}
	T_COUNT(tx, TX_DROP_RATE, 2);
	/* Five more, for whichever comes first. */
	now_ns += 50 * MS;
	for (i = 0; i < 7; i++)
		t_send(vale_ring(tx, 2 - i % 3), 60, EVERYBODY, 1, i);
	T_COUNT(tx, TX_DROP_RATE, 4);
	ATF_CHECK_EQ(15, t_drain(rx));
	accounted();
	ATF_CHECK_STREQ("100pkt/s,burst=10", setting_of("valet0:tx", "rate"));
	ATF_REQUIRE_EQ(0, vale_set("valet0:tx", "rate", "0"));
	for (i = 0; i < 30; i++)
		t_send(vale_ring(tx, i % 3), 60, EVERYBODY, 1, i);
	T_COUNT(tx, TX_DROP_RATE, 4);
	ports_close();
}

/* A thread that sends 5000 frames on its ring pair. */
static void *
send_frames(void *arg)
{
	struct vale_desc *d = arg;
	uint32_t i;

	for (i = 0; i < 5000; i++) {
		t_queue(d, 60, EVERYBODY, 1, i);
		if (i % 50 == 49)
			ATF_REQUIRE_EQ(0, vale_txsync(d));
	}
	return (NULL);
}

TEST(threads, "Of what several threads send on the port's rings exactly the "
    "burst passes, while time stands still")
{
	const struct vale_rate_conf conf = frames(1000, 7000);
	const struct vale_params params = { .rings = 3 };
	pthread_t thread[3];
	unsigned int i;

	rx = t_open("valet0:rx", 64, 1024);
	tx = vale_open("valet0:tx", &params);
	ATF_REQUIRE(tx != NULL);
	ATF_REQUIRE_EQ(0, setting_rate("valet0:tx", &conf));
	for (i = 0; i < 3; i++)
		ATF_REQUIRE_EQ(0, pthread_create(&thread[i], NULL, send_frames,
		    vale_ring(tx, i)));
	for (i = 0; i < 3; i++)
		ATF_REQUIRE_EQ(0, pthread_join(thread[i], NULL));
	T_COUNT(tx, TX_FRAME, 15000);
	T_COUNT(tx, TX_DROP_RATE, 8000);
	accounted();
	ports_close();
}

TEST(segments, "A frame that is to be cut counts as what that makes")
{
	static struct vn_sent s;
	struct vale_desc *from, *to;
	struct vale_rate_conf conf;
	uint32_t i, n, hdrlen, seed = 5, each;
	struct packet p;

	packet_fill(vn_payload, sizeof(vn_payload), 2);
	for (i = 0; i < 6; i++) {
		to = vn_port("valet0:to", i % 2 == 0 ? 0 : VN_LONG, 2048, 2);
		from = vn_port("valet0:from", VN_LONG, 64, 1);
		vn_drain(to);
		do
			p = vn_packet(9000, &seed);
		while (p.paylen < 3000);
		vn_make(&s, &p, 1000, 2, 1);
		n = howmany(p.paylen, 1000);
		hdrlen = s.len - p.paylen;
		each = i < 3 ? n : s.len + (n - 1) * hdrlen;
		/* Two frames and nothing over; the third is dropped. */
		conf = i < 3 ? frames(1, 2 * each) : bits(8, 2 * each);
		ATF_REQUIRE_EQ(0, setting_rate("valet0:from", &conf));
		vn_put_sent(from, VN_LONG, &s, 2000, false);
		vn_put_sent(from, VN_LONG, &s, 2000, true);
		vn_put_sent(from, VN_LONG, &s, 2000, false);
		ATF_REQUIRE_EQ(0, vale_txsync(from));
		T_COUNT(from, TX_DROP_RATE, 1);
		/* One token more, and it would have passed. */
		conf.rc_burst++;
		ATF_REQUIRE_EQ(0, setting_rate("valet0:from", &conf));
		for (n = 0; n < 3; n++)
			vn_put_sent(from, VN_LONG, &s, 2000, false);
		ATF_REQUIRE_EQ(0, vale_txsync(from));
		T_COUNT(from, TX_DROP_RATE, 1);
		ATF_REQUIRE_EQ(0, vale_rxsync(to));
		for (n = 0; n < 5; n++)
			vn_expect(to, i % 2 == 0 ? 0 : VN_LONG, &s);
		vn_expect_none(to);
		/* A partial checksum alone makes one. */
		vn_make(&s, &p, 0, 2, 1);
		conf = i < 3 ? frames(1, 2) : bits(8, 2 * s.len);
		ATF_REQUIRE_EQ(0, setting_rate("valet0:from", &conf));
		for (n = 0; n < 3; n++)
			vn_put_sent(from, VN_LONG, &s, 2000, false);
		ATF_REQUIRE_EQ(0, vale_txsync(from));
		T_COUNT(from, TX_DROP_RATE, 2);
		vale_close(from);
		vale_close(to);
	}
}

TEST(settings, "A rate is read back, and refused if it is out of range")
{
	ports_open(frames(5, 6));
	ATF_CHECK_STREQ("5pkt/s,burst=6", setting_of("valet0:tx", "rate"));
	ATF_CHECK_STREQ("0", setting_of("valet0:rx", "rate"));
	ATF_CHECK_ERRNO(EINVAL, vale_set("valet0:tx", "rate", "1001Gbit/s") ==
	    -1);
	ATF_CHECK_STREQ("5pkt/s,burst=6", setting_of("valet0:tx", "rate"));
	ATF_CHECK_ERRNO(ENXIO, vale_set("valet0:no", "rate", "1bit/s") == -1);
	ATF_CHECK_ERRNO(ENXIO, vale_set("valet9:tx", "rate", "1bit/s") == -1);
	ATF_CHECK_ERRNO(ENXIO, setting_of("valet0:no", "rate") == NULL);
	/* Senders go on afterwards. */
	t_send(tx, 60, 0, 1, 0);
	t_expect(rx, 60, 1, 0);
	ports_close();
}

TEST_PROGRAM
