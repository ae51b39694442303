/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Mirrors and monitors: who gets copies of what, and that nobody else notices.
 */

#include <sys/param.h>

#include <errno.h>
#include <string.h>

#include <atf-c.h>

#include "setting.h"
#include "test.h"
#include "vale_test.h"
#include "vale_vnet.h"

/* Station n is at port[n]. */
static struct vale_desc *port[4];
static const char *const port_name[] = { "valet0:p0", "valet0:p1",
    "valet0:p2", "valet0:p3" };

static void
open_ports(void)
{
	unsigned int i;

	for (i = 0; i < nitems(port); i++)
		port[i] = t_open(port_name[i], 0, 0);
	for (i = 0; i < nitems(port); i++)
		t_send(port[i], 60, EVERYBODY, i, 0);
	for (i = 0; i < nitems(port); i++)
		t_drain(port[i]);
}

static void
close_ports(void)
{
	unsigned int i;

	for (i = 0; i < nitems(port); i++)
		vale_close(port[i]);
}

static struct vale_desc *
monitor(const char *name, unsigned int what)
{
	const struct vale_params params = { .monitor = what };
	struct vale_desc *d;

	d = vale_open(name, &params);
	ATF_REQUIRE_MSG(d != NULL, "monitor of %s: %s", name, strerror(errno));
	return (d);
}

TEST(dropped, "A monitor of what a port sends gets what the switch drops, and "
    "nothing malformed")
{
	struct vale_desc *m;

	open_ports();
	m = monitor(port_name[1], VALE_MIRROR_TX);
	ATF_REQUIRE_EQ(0, vale_set(port_name[1], "limit", "1"));
	/* To itself; from an address too many; too short. */
	t_send(port[1], 60, 1, 1, 1);
	t_expect(m, 60, 1, 1);
	t_send(port[1], 60, 0, 99, 2);
	t_expect(m, 60, 99, 2);
	t_put(port[1], (const uint8_t *)"short", 5, 5, false);
	ATF_REQUIRE_EQ(0, vale_txsync(port[1]));
	t_expect_none(m);
	T_COUNT(port[1], TX_DROP_SELF, 1);
	T_COUNT(port[1], TX_DROP_LIMIT, 1);
	T_COUNT(port[1], TX_DROP_RUNT, 1);
	vale_close(m);
	close_ports();
}

TEST(silent, "A monitor sends nothing, and is no destination")
{
	struct vale_desc *m;

	open_ports();
	m = monitor(port_name[1], VALE_MIRROR_BOTH);
	ATF_CHECK_EQ(0, vale_txsync(m));
	t_queue(m, 60, EVERYBODY, 7, 1);
	ATF_CHECK_ERRNO(EIO, vale_txsync(m) == -1);
	ATF_CHECK_EQ(m->txring->num_slots - 1, nm_ring_space(m->txring));
	/* Its head may be anything. */
	m->txring->head = m->txring->num_slots;
	ATF_CHECK(vale_txsync(m) == -1);
	t_expect_none(port[0]);
	/* Flooded: neither a copy for it nor a place in the count. */
	t_send(port[0], 60, EVERYBODY, 0, 1);
	T_COUNT(port[0], TX_COPY, 2 * (nitems(port) - 1));
	ATF_CHECK_EQ(1, t_drain(m));
	vale_close(m);
	close_ports();
}

TEST(again, "A monitor stays when its port is closed, and goes on with the "
    "next of this name; the switch ends with the last of both")
{
	struct vale_desc *a, *m;

	ATF_CHECK_ERRNO(ENXIO, vale_open("valet1:a",
	    &(struct vale_params){ .monitor = VALE_MIRROR_TX }) == NULL);
	a = t_open("valet1:a", 0, 0);
	ATF_CHECK_ERRNO(ENXIO, vale_open("valet1:b",
	    &(struct vale_params){ .monitor = VALE_MIRROR_TX }) == NULL);
	ATF_CHECK_ERRNO(EINVAL, vale_open("valet1:a",
	    &(struct vale_params){ .monitor = 4 }) == NULL);
	m = monitor("valet1:a", VALE_MIRROR_TX);
	t_send(a, 60, 0, 1, 1);
	t_expect(m, 60, 1, 1);
	vale_close(a);
	t_expect_none(m);
	ATF_CHECK_EQ(0, vale_set("valet1", "ageing", "17"));
	a = t_open("valet1:a", 0, 0);
	t_send(a, 60, 0, 1, 2);
	t_expect(m, 60, 1, 2);
	vale_close(a);
	vale_close(m);
	ATF_CHECK_ERRNO(ENXIO, vale_set("valet1", "ageing", "17") == -1);
}

/* One sink's frames. */
static uint32_t sunk;

static void
sink(void *arg __unused, struct frame_source *frames __unused)
{
	sunk++;
}

TEST(sink, "The sink of a mirror is not asked: its copies go through the ring")
{
	open_ports();
	ATF_REQUIRE_EQ(0, vale_set_sink(port[3], sink, NULL));
	ATF_REQUIRE_EQ(0, setting_mirror(port_name[3], port_name[1],
	    VALE_MIRROR_BOTH));
	t_send(port[1], 60, 0, 1, 1);
	t_expect(port[3], 60, 1, 1);
	t_send(port[0], 60, 1, 0, 2);
	t_expect(port[3], 60, 0, 2);
	ATF_CHECK_EQ(0, sunk);
	/* About its own frames it is. */
	t_send(port[0], 60, 3, 0, 3);
	ATF_CHECK_EQ(1, sunk);
	close_ports();
}

/* A filter: the frame's number, modulo 4, is in a set of bits. */
#define	NUMBER_FILTER(set)						\
	{ 0x30, 0, 0, 18 },		/* ldb: its lowest byte */	\
	{ 0x54, 0, 0, 3 },		/* and #3 */			\
	{ 0x07, 0, 0, 0 },		/* tax */			\
	{ 0x00, 0, 0, (set) },		/* ld #set */			\
	{ 0x7c, 0, 0, 0 },		/* rsh x */			\
	{ 0x54, 0, 0, 1 },		/* and #1 */			\
	{ 0x16, 0, 0, 0 }		/* ret a */

static struct vale_desc *
filtered(const char *name, unsigned int what, const struct vale_insn *filter,
    uint32_t len)
{
	const struct vale_params params = { .monitor = what, .filter = filter,
	    .filter_len = len };
	struct vale_desc *d;

	d = vale_open(name, &params);
	ATF_REQUIRE_MSG(d != NULL, "monitor of %s: %s", name, strerror(errno));
	return (d);
}

TEST(filter, "A monitor with a filter gets what that lets pass, in order, and "
    "only that is counted; others get all")
{
	static const struct vale_insn some[] = { NUMBER_FILTER(6) };
	static const struct vale_insn one[] = { NUMBER_FILTER(8) };
	static const struct vale_insn none[] = { { 0x06, 0, 0, 0 } };
	struct vale_desc *all[2], *m[4];
	struct t_frame f;
	uint32_t i, round;

	open_ports();
	/* Before and behind those without. */
	m[0] = filtered(port_name[1], VALE_MIRROR_TX, some, nitems(some));
	m[1] = filtered(port_name[0], VALE_MIRROR_RX, one, nitems(one));
	all[0] = monitor(port_name[1], VALE_MIRROR_TX);
	all[1] = monitor(port_name[0], VALE_MIRROR_RX);
	m[2] = filtered(port_name[0], VALE_MIRROR_RX, some, nitems(some));
	m[3] = filtered(port_name[1], VALE_MIRROR_BOTH, none, nitems(none));
	for (round = 0; round < 3; round++) {
		/* To port 0 come every fourth, flooded, and every second. */
		for (i = 0; i < 200; i++)
			t_queue(port[1], 60 + 20 * i, i % 4 == 0 ? EVERYBODY :
			    i % 2 == 1 ? 0 : 2, 1, i);
		ATF_REQUIRE_EQ(0, vale_txsync(port[1]));
		ATF_REQUIRE_EQ(0, vale_rxsync(m[0]));
		ATF_REQUIRE_EQ(0, vale_rxsync(m[1]));
		ATF_REQUIRE_EQ(0, vale_rxsync(m[2]));
		for (i = 0; i < 200; i++) {
			if (i % 4 == 1 || i % 4 == 2) {
				ATF_REQUIRE(t_take(m[0], &f));
				ATF_REQUIRE_EQ(i, f.tf_seq);
				ATF_REQUIRE_EQ(60 + 20 * i, f.tf_len);
			}
			if (i % 4 == 3) {
				ATF_REQUIRE(t_take(m[1], &f));
				ATF_REQUIRE_EQ(i, f.tf_seq);
			}
			if (i % 4 == 1) {
				ATF_REQUIRE(t_take(m[2], &f));
				ATF_REQUIRE_EQ(i, f.tf_seq);
			}
		}
		for (i = 0; i < nitems(m); i++)
			t_expect_none(m[i]);
		ATF_CHECK_EQ(200, t_drain(all[0]));
		ATF_CHECK_EQ(150, t_drain(all[1]));
		ATF_CHECK_EQ(150, t_drain(port[0]));
		ATF_CHECK_EQ(100, t_drain(port[2]));
		ATF_CHECK_EQ(50, t_drain(port[3]));
		T_COUNT(port[1], TX_MIRROR, (round + 1) *
		    (100 + 50 + 200 + 150 + 50));
	}
	for (i = 0; i < nitems(m); i++) {
		ATF_CHECK_EQ(0, vale_missed(m[i]));
		vale_close(m[i]);
	}
	vale_close(all[0]);
	vale_close(all[1]);
	close_ports();
}

TEST(filter_copied, "The filter is the library's own, and seen over fragments")
{
	struct vale_insn one[] = { NUMBER_FILTER(2) };
	struct vale_desc *m;
	struct t_frame f;
	uint8_t buf[60];
	uint32_t frag, i;

	open_ports();
	m = filtered(port_name[1], VALE_MIRROR_TX, one, nitems(one));
	memset(one, 0xff, sizeof(one));
	for (frag = 1; frag < 20; frag++)
		for (i = 0; i < 4; i++) {
			t_make(buf, sizeof(buf), 0, 1, i);
			t_put(port[1], buf, sizeof(buf), frag, i % 2 == 0);
			ATF_REQUIRE_EQ(0, vale_txsync(port[1]));
		}
	ATF_REQUIRE_EQ(0, vale_rxsync(m));
	for (frag = 1; frag < 20; frag++) {
		ATF_REQUIRE(t_take(m, &f));
		ATF_CHECK_EQ(1, f.tf_seq);
	}
	t_expect_none(m);
	vale_close(m);
	close_ports();
}

TEST(filter_invalid, "A filter that cannot be run, or is not a monitor's, "
    "opens nothing")
{
	static struct vale_insn long_one[VALE_FILTER_MAX + 1];
	static const struct vale_insn loop[] = { { 0x05, 0, 0, UINT32_MAX },
	    { 0x06, 0, 0, 1 } };
	struct vale_params params = { .monitor = VALE_MIRROR_TX,
	    .filter = loop, .filter_len = nitems(loop) };
	struct vale_desc *d;
	unsigned int i;

	open_ports();
	ATF_CHECK_ERRNO(EINVAL, vale_open(port_name[1], &params) == NULL);
	for (i = 0; i < nitems(long_one); i++)
		long_one[i] = (struct vale_insn){ 0x06, 0, 0, 1 };
	params.filter = long_one;
	params.filter_len = nitems(long_one);
	ATF_CHECK_ERRNO(E2BIG, vale_open(port_name[1], &params) == NULL);
	params.filter_len--;
	d = vale_open(port_name[1], &params);
	ATF_REQUIRE(d != NULL);
	t_send(port[1], 60, 0, 1, 1);
	t_expect(d, 60, 1, 1);
	vale_close(d);
	params.monitor = 0;
	ATF_CHECK_ERRNO(EINVAL, vale_open("valet0:new", &params) == NULL);
	/* Without a length there is none. */
	params.filter_len = 0;
	d = vale_open("valet0:new", &params);
	ATF_CHECK(d != NULL);
	vale_close(d);
	close_ports();
}

TEST(filter_offloads, "The filter sees a packet whole, without its virtio-net "
    "header; the monitor gets its segments")
{
	/* ld #len; jgt #2000, a byte of the destination: return 1 */
	static const struct vale_insn big[] = {
		{ 0x80, 0, 0, 0 },
		{ 0x25, 0, 3, 2000 },
		{ 0x30, 0, 0, 0 },
		{ 0x15, 0, 1, 2 },		/* 02:... */
		{ 0x06, 0, 0, 1 },
		{ 0x06, 0, 0, 0 },
	};
	static struct vn_sent s;
	struct vale_desc *from, *m[2], *to;
	struct packet p;
	uint32_t i, seed = 1, passed = 0;

	to = vn_port("valet0:to", VN_LONG, 256, 2);
	from = vn_port("valet0:from", VN_LONG, 256, 1);
	vn_drain(to);
	m[0] = filtered("valet0:from", VALE_MIRROR_TX, big, nitems(big));
	m[1] = filtered("valet0:to", VALE_MIRROR_RX, big, nitems(big));
	ATF_REQUIRE_EQ(0, vale_set_header(m[1], VN_LONG));
	for (i = 0; i < 50; i++) {
		p = vn_packet(i % 2 == 0 ? 200 : 20000, &seed);
		vn_make(&s, &p, i % 2 == 0 ? 0 : 700, 2, 1);
		vn_put_sent(from, VN_LONG, &s, 1800, false);
		ATF_REQUIRE_EQ(0, vale_txsync(from));
		ATF_REQUIRE_EQ(0, vale_rxsync(m[0]));
		ATF_REQUIRE_EQ(0, vale_rxsync(m[1]));
		ATF_REQUIRE_EQ(0, vale_rxsync(to));
		vn_expect(to, VN_LONG, &s);
		if (i % 2 == 0)
			continue;
		vn_expect(m[0], 0, &s);
		vn_expect(m[1], VN_LONG, &s);
		passed++;
	}
	ATF_CHECK_EQ(25, passed);
	vn_expect_none(m[0]);
	vn_expect_none(m[1]);
	T_COUNT(from, TX_MIRROR, 2 * passed);
	vale_close(m[0]);
	vale_close(m[1]);
	vale_close(from);
	vale_close(to);
}

TEST(accounted, "Each copy is received or counted as dropped, at random ports, "
    "mirrors and monitors")
{
	static const uint32_t slots[] = { 64, 128, 1024 };
	struct vale_params params = { .tx_slots = 0 };
	struct vale_desc *m[nitems(slots)];
	uint64_t copies = 0, drained = 0, missed = 0, rx = 0;
	unsigned int a, b, i, j;
	uint32_t seed = 1;

	open_ports();
	for (i = 0; i < nitems(m); i++) {
		params.rx_slots = slots[i];
		params.monitor = 1 + i;
		m[i] = vale_open(port_name[i], &params);
		ATF_REQUIRE(m[i] != NULL);
	}
	for (i = 0; i < 20000; i++) {
		a = test_below(&seed, nitems(port));
		b = test_below(&seed, nitems(port));
		switch (test_below(&seed, 64)) {
		case 0:
			(void)setting_mirror(port_name[a], port_name[b],
			    test_below(&seed, 4));
			break;
		case 1:
			ATF_REQUIRE_EQ(0, vale_set(port_name[a], "private",
			    test_chance(&seed, 1, 2) ? "on" : "off"));
			break;
		case 2:
			for (j = 0; j < nitems(m); j++)
				drained += t_drain(m[j]);
			break;
		case 3:
			t_drain(port[a]);
			break;
		default:
			t_send(port[a], 60, b == a ? EVERYBODY : b, a, i);
			break;
		}
	}
	for (j = 0; j < nitems(m); j++) {
		drained += t_drain(m[j]);
		missed += vale_missed(m[j]);
	}
	for (i = 0; i < nitems(port); i++) {
		copies += t_count(port[i], VALE_C_TX_COPY) +
		    t_count(port[i], VALE_C_TX_MIRROR);
		rx += t_count(port[i], VALE_C_RX_FRAME) +
		    t_count(port[i], VALE_C_RX_DROP_FULL);
	}
	ATF_CHECK(missed > 0);
	ATF_CHECK_EQ(copies, rx + drained + missed);
	for (j = 0; j < nitems(m); j++)
		vale_close(m[j]);
	close_ports();
}

TEST_PROGRAM
