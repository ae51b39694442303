/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * VLANs of a switch's ports: who gets what, and in which form.  What
 * is expected is written down here once more, for a switch that looks at one
 * frame at a time: random_vlans compares the two.
 */

#include <sys/param.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "frame.h"
#include "test.h"
#include "vale_test.h"

#define	PORTS		T_PORTS
#define	ADDRS		12		/* bytes of the two addresses */
#define	LEN_MAX		9000

TEST(forgets, "A port whose VLAN changes has no addresses in the former one, "
    "which would count for its limit")
{
	t_ports_open(PORTS);
	ATF_REQUIRE_EQ(0, vale_set(t_port_name(0), "limit", "1"));
	t_send_tagged(0, T_NONE, EVERYBODY, 0, 1);
	t_expect_tagged(1, T_NONE, EVERYBODY, 0, 1);
	t_port_set(0, "vlan", "10");
	t_port_set(1, "vlan", "10");
	t_send_tagged(0, T_NONE, EVERYBODY, 0, 2);
	t_expect_tagged(1, T_NONE, EVERYBODY, 0, 2);
	t_port_set(0, "vlan", "20");
	t_port_set(1, "vlan", "20");
	t_send_tagged(0, T_NONE, EVERYBODY, 0, 3);
	t_expect_tagged(1, T_NONE, EVERYBODY, 0, 3);
	T_COUNT(t_port[0], TX_DROP_LIMIT, 0);
	/* The limit stays, and a guard is no VLAN. */
	t_port_set(0, "source", "02:00:00:00:00:00,02:00:00:00:00:07");
	t_send_tagged(0, T_NONE, EVERYBODY, 7, 4);
	T_COUNT(t_port[0], TX_DROP_LIMIT, 1);
	t_ports_close();
}

/*
 * What a switch with VLANs does, one frame after the other.
 */
struct model_port {
	uint32_t	native;		/* 0: none, or any */
	bool		trunk;
	bool		any;
	bool		set[4096];	/* the trunk's VLANs */
};

static struct model_port model[PORTS];
static int	where[4096][PORTS];	/* station in VLAN: port, or -1 */
static unsigned int refused[PORTS];	/* frames of a port */

static uint32_t
model_vlan(unsigned int p, uint32_t tci)
{
	const struct model_port *m = &model[p];
	const uint32_t vlan = tci == T_NONE ? 0 : tci & 0xfff;

	if (m->any)
		return (vlan);
	if (vlan == 0)
		return (m->native != 0 ? m->native : T_NONE);
	return (m->trunk && m->set[vlan] ? vlan : T_NONE);
}

static bool
model_member(unsigned int p, uint32_t vlan)
{
	const struct model_port *m = &model[p];

	return (m->any || (vlan != 0 && (vlan == m->native ||
	    (m->trunk && m->set[vlan]))));
}

static uint32_t
model_tag(unsigned int p, uint32_t vlan, uint32_t tci)
{
	if (vlan == 0)
		return (tci);
	if (vlan == model[p].native)
		return (T_NONE);
	return ((tci == T_NONE ? 0 : tci & 0xf000) | vlan);
}

static void
model_set(unsigned int p, unsigned int what, uint32_t *seed)
{
	static const uint32_t some[] = { 1, 10, 266, 4094 };
	struct model_port *m = &model[p];
	char list[64] = "";
	unsigned int i;

	*m = (struct model_port){ .any = what == 0, .trunk = what >= 2 };
	switch (what) {
	case 0:
		t_port_set(p, "vlan", "0");
		t_port_set(p, "trunk", "no");
		break;
	case 1:
		m->native = some[test_random(seed) % nitems(some)];
		snprintf(list, sizeof(list), "%u", m->native);
		t_port_set(p, "vlan", list);
		break;
	default:
		for (i = 0; i < nitems(some); i++)
			if (i == what % nitems(some) ||
			    test_random(seed) % 2 != 0) {
				m->set[some[i]] = true;
				snprintf(list + strlen(list),
				    sizeof(list) - strlen(list), "%s%u",
				    list[0] != '\0' ? "," : "", some[i]);
			}
		t_port_set(p, "vlan", "0");
		t_port_set(p, "trunk", list);
		if (what == 3) {
			m->native = some[test_random(seed) % nitems(some)];
			snprintf(list, sizeof(list), "%u", m->native);
			t_port_set(p, "native", list);
		}
		break;
	}
}

/* A batch of frames of one port: up to 40 in up to three fragments each. */
struct sent {
	uint8_t		bytes[LEN_MAX];
	uint32_t	len, tci, vlan, plain;
	unsigned int	dst, src;
	bool		to[PORTS];
};

static struct sent	sent[40];

static void
model_frame(struct sent *s, unsigned int p, bool vlans)
{
	unsigned int i;
	int dst;

	memset(s->to, 0, sizeof(s->to));
	s->vlan = vlans ? model_vlan(p, s->tci) : 0;
	if (s->vlan == T_NONE) {
		refused[p]++;
		return;
	}
	where[s->vlan][s->src] = p;
	dst = s->dst == EVERYBODY ? -1 : where[s->vlan][s->dst];
	if (dst != -1 && vlans && !model_member(dst, s->vlan))
		dst = -1;
	for (i = 0; i < PORTS; i++)
		s->to[i] = i != p && (dst == -1 || (int)i == dst) &&
		    (!vlans || model_member(i, s->vlan));
}

static void
random_batch(unsigned int p, uint32_t *seed, bool indirect, bool vlans)
{
	/* With DEI, 0x1000, too; 10 and 266 have the same last byte. */
	static const uint32_t tags[] = { T_NONE, T_NONE, 0, 0x6000, 0x1000, 1,
	    10, 266, 4094, 0xe00a, 0x100a, 0xf10a, 0x3ffe, 31, 4095 };
	static const uint32_t lens[] = { 60, 60, 60, 200, 1500, 4000 };
	uint8_t want[LEN_MAX];
	unsigned int at, i, n = 1 + test_random(seed) % nitems(sent);
	uint32_t len;
	struct sent *s;

	for (i = 0; i < n; i++) {
		s = &sent[i];
		if (i > 0 && test_random(seed) % 2 != 0) {
			*s = s[-1];
		} else {
			s->tci = tags[test_random(seed) % nitems(tags)];
			s->src = p;
			s->dst = test_random(seed) % (PORTS + 2);
			if (s->dst >= PORTS)
				s->dst = EVERYBODY;
			s->plain = lens[test_random(seed) % nitems(lens)];
		}
		s->len = t_make_tagged(s->bytes, s->plain, s->tci, s->dst,
		    s->src, i);
		/* At most 60 fragments. */
		t_put(t_port[p], s->bytes, s->len, s->len / 60 + 1 +
		    test_random(seed) % 1900, indirect);
		model_frame(s, p, vlans);
	}
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[p]));
	for (at = 0; at < PORTS; at++) {
		ATF_REQUIRE_EQ(0, vale_rxsync(t_port[at]));
		for (i = 0; i < n; i++) {
			s = &sent[i];
			if (!s->to[at])
				continue;
			len = t_make_tagged(want, s->plain, vlans ?
			    model_tag(at, s->vlan, s->tci) : s->tci, s->dst,
			    s->src, i);
			t_expect_bytes(t_port[at], want, len);
		}
		ATF_REQUIRE(nm_ring_empty(t_port[at]->rxring));
	}
}

static void
random_round(uint32_t round)
{
	uint32_t seed = round + 1;
	unsigned int i;
	bool vlans = false;

	memset(where, -1, sizeof(where));
	memset(refused, 0, sizeof(refused));
	t_ports_open(PORTS);
	for (i = 0; i < PORTS; i++) {
		model_set(i, test_random(&seed) % 4, &seed);
		vlans = vlans || !model[i].any;
		/* All that these ports send is their own. */
		if (test_random(&seed) % 3 == 0)
			t_port_set(i, "source", "02:00:00:00:00:00,"
			    "02:00:00:00:00:01,02:00:00:00:00:02,"
			    "02:00:00:00:00:03,02:00:00:00:00:04");
	}
	for (i = 0; i < 30; i++)
		random_batch(test_random(&seed) % PORTS, &seed,
		    test_random(&seed) % 2 != 0, vlans);
	for (i = 0; i < PORTS; i++)
		T_COUNT(t_port[i], TX_DROP_VLAN, refused[i]);
	t_ports_close();
}

TEST(random_vlans, "Ports with any VLANs get what one frame after the other "
    "would give them, byte for byte and in order")
{
	uint32_t round;

	for (round = 0; round < 60; round++)
		random_round(round);
}

TEST(large_batch, "A batch of other forms that has no space is delivered in "
    "parts")
{
	uint8_t buf[LEN_MAX], want[LEN_MAX];
	uint32_t i, len, n = 1023;

	t_port[0] = t_open(t_port_name(0), 2048, 4096);
	t_port[1] = t_open(t_port_name(1), 2048, 4096);
	t_port[2] = t_open(t_port_name(2), 2048, 4096);
	t_port_set(0, "vlan", "10");
	t_port_set(1, "trunk", "10");
	t_port_set(2, "trunk", "10");
	for (i = 0; i < n; i++) {
		len = t_make_tagged(buf, 60, T_NONE, EVERYBODY, 0, i);
		t_put(t_port[0], buf, len, 31, false);
	}
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
	ATF_REQUIRE_EQ(0, vale_rxsync(t_port[1]));
	ATF_REQUIRE_EQ(0, vale_rxsync(t_port[2]));
	for (i = 0; i < n; i++) {
		len = t_make_tagged(want, 60, 10, EVERYBODY, 0, i);
		t_expect_bytes(t_port[1], want, len);
		t_expect_bytes(t_port[2], want, len);
	}
	/* The same to one port. */
	ATF_REQUIRE_EQ(0, vale_rxsync(t_port[1]));
	len = t_make_tagged(buf, 60, 10, EVERYBODY, 1, 0);
	t_put(t_port[1], buf, len, len, false);
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[1]));
	for (i = 0; i < n; i++) {
		len = t_make_tagged(buf, 60, T_NONE, 1, 0, i);
		t_put(t_port[0], buf, len, len, false);
	}
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
	ATF_REQUIRE_EQ(0, vale_rxsync(t_port[1]));
	for (i = 0; i < n; i++) {
		len = t_make_tagged(want, 60, 10, 1, 0, i);
		t_expect_bytes(t_port[1], want, len);
	}
	ATF_REQUIRE(nm_ring_empty(t_port[1]->rxring));
	vale_close(t_port[0]);
	vale_close(t_port[1]);
	vale_close(t_port[2]);
}

TEST(fragments, "A frame that would have too many fragments is dropped")
{
	uint8_t buf[LEN_MAX];
	uint32_t len;

	t_ports_open(PORTS);
	t_port_set(0, "vlan", "10");
	t_port_set(1, "trunk", "10");
	/* 64 fragments, and 63. */
	len = t_make_tagged(buf, 64 * 20, T_NONE, EVERYBODY, 0, 1);
	t_put(t_port[0], buf, len, 20, false);
	len = t_make_tagged(buf, 63 * 20, T_NONE, EVERYBODY, 0, 2);
	t_put(t_port[0], buf, len, 20, false);
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
	T_COUNT(t_port[0], TX_DROP_FRAGS, 1);
	ATF_REQUIRE_EQ(0, vale_rxsync(t_port[1]));
	len = t_make_tagged(buf, 63 * 20, 10, EVERYBODY, 0, 2);
	t_expect_bytes(t_port[1], buf, len);
	/* A tag that is cut off. */
	memset(buf, 0, sizeof(buf));
	buf[0] = 2;
	buf[ADDRS] = 0x81;
	t_put(t_port[2], buf, 16, 16, false);
	t_put(t_port[2], buf, 17, 17, false);
	t_put(t_port[2], buf, 18, 18, false);
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[2]));
	T_COUNT(t_port[2], TX_DROP_VLAN, 2);
	t_ports_close();
}

TEST(mirror_filter, "A monitor's filter sees frames in the form that the port "
    "has")
{
	/* Whether bytes 12 and 13 are a tag's type. */
	static const struct vale_insn insns[] = { { 0x28, 0, 0, 12 },
	    { 0x15, 0, 1, 0x8100 }, { 0x06, 0, 0, 1 }, { 0x06, 0, 0, 0 } };
	const struct vale_params params = { .monitor = VALE_MIRROR_RX,
	    .filter = insns, .filter_len = nitems(insns) };
	struct vale_desc *trunk, *access;
	uint8_t buf[LEN_MAX];
	uint32_t len;

	t_ports_open(PORTS);
	t_port_set(0, "vlan", "10");
	t_port_set(1, "trunk", "10,20");
	t_port_set(2, "vlan", "10");
	trunk = vale_open(t_port_name(1), &params);
	access = vale_open(t_port_name(2), &params);
	ATF_REQUIRE(trunk != NULL && access != NULL);
	/* To all, and to each of them. */
	t_send_tagged(0, T_NONE, EVERYBODY, 0, 1);
	t_send_tagged(1, 10, EVERYBODY, 1, 2);
	t_send_tagged(2, T_NONE, EVERYBODY, 2, 3);
	t_send_tagged(0, T_NONE, 1, 0, 4);
	t_send_tagged(0, T_NONE, 2, 0, 5);
	ATF_REQUIRE_EQ(0, vale_rxsync(trunk));
	len = t_make_tagged(buf, 60, 10, EVERYBODY, 0, 1);
	t_expect_bytes(trunk, buf, len);
	len = t_make_tagged(buf, 60, 10, EVERYBODY, 2, 3);
	t_expect_bytes(trunk, buf, len);
	len = t_make_tagged(buf, 60, 10, 1, 0, 4);
	t_expect_bytes(trunk, buf, len);
	ATF_CHECK(nm_ring_empty(trunk->rxring));
	t_expect_none(access);
	/* The port has all of its frames. */
	ATF_REQUIRE_EQ(0, vale_rxsync(t_port[2]));
	len = t_make_tagged(buf, 60, T_NONE, EVERYBODY, 0, 1);
	t_expect_bytes(t_port[2], buf, len);
	len = t_make_tagged(buf, 60, T_NONE, EVERYBODY, 1, 2);
	t_expect_bytes(t_port[2], buf, len);
	len = t_make_tagged(buf, 60, T_NONE, 2, 0, 5);
	t_expect_bytes(t_port[2], buf, len);
	ATF_CHECK(nm_ring_empty(t_port[2]->rxring));
	vale_close(trunk);
	vale_close(access);
	t_ports_close();
}

TEST(private, "Private ports of a VLAN see each other no more than others")
{
	t_ports_open(PORTS);
	t_port_set(0, "vlan", "10");
	t_port_set(1, "vlan", "10");
	t_port_set(2, "vlan", "10");
	ATF_REQUIRE_EQ(0, vale_set(t_port_name(0), "private", "on"));
	ATF_REQUIRE_EQ(0, vale_set(t_port_name(1), "private", "on"));
	t_send_tagged(0, T_NONE, EVERYBODY, 0, 1);
	t_expect_tagged(2, T_NONE, EVERYBODY, 0, 1);
	t_expect_none(t_port[1]);
	t_send_tagged(1, T_NONE, 0, 1, 2);
	T_COUNT(t_port[1], TX_DROP_PRIVATE, 1);
	t_expect_none(t_port[0]);
	/* To itself; nobody is in the VLAN. */
	t_send_tagged(1, T_NONE, 1, 1, 3);
	T_COUNT(t_port[1], TX_DROP_SELF, 1);
	t_port_set(3, "vlan", "30");
	t_port_set(4, "vlan", "40");
	t_send_tagged(3, T_NONE, EVERYBODY, 3, 4);
	T_COUNT(t_port[3], TX_DROP_NODEST, 1);
	t_ports_close();
}

TEST_PROGRAM
