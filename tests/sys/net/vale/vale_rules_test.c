/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * VLANs and guards of a switch's ports: who gets what, and in which form.  What
 * is expected is written down here once more, for a switch that looks at one
 * frame at a time: random_vlans compares the two.
 */

#include <sys/param.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "frame.h"
#include "test.h"
#include "vale_test.h"
#include "vale_vnet.h"

#define	PORTS		T_PORTS
#define	ADDRS		12		/* bytes of the two addresses */
#define	TAG		4
#define	NONE		UINT32_MAX	/* no tag */
#define	LEN_MAX		9000

/* A numbered frame, with a tag behind its addresses or NONE. */
static uint32_t
make(uint8_t *buf, uint32_t len, uint32_t tci, unsigned int dst,
    unsigned int src, uint32_t seq)
{
	uint8_t plain[LEN_MAX];

	t_make(plain, len, dst, src, seq);
	memcpy(buf, plain, ADDRS);
	if (tci == NONE) {
		memcpy(buf + ADDRS, plain + ADDRS, len - ADDRS);
		return (len);
	}
	buf[ADDRS] = 0x81;
	buf[ADDRS + 1] = 0x00;
	buf[ADDRS + 2] = tci >> 8;
	buf[ADDRS + 3] = tci;
	memcpy(buf + ADDRS + TAG, plain + ADDRS, len - ADDRS);
	return (len + TAG);
}

static void
queue(unsigned int from, uint32_t tci, unsigned int dst, unsigned int src,
    uint32_t seq)
{
	uint8_t buf[LEN_MAX];
	uint32_t len;

	len = make(buf, 60, tci, dst, src, seq);
	t_put(t_port[from], buf, len, len, false);
}

static void
send_tagged(unsigned int from, uint32_t tci, unsigned int dst,
    unsigned int src, uint32_t seq)
{
	queue(from, tci, dst, src, seq);
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[from]));
}

/* Take the next frame's bytes.  Returns its length, or 0. */
static uint32_t
take(struct vale_desc *d, uint8_t *buf)
{
	struct netmap_ring *ring = d->rxring;
	struct netmap_slot *slot;
	uint32_t head = ring->head, len = 0;

	if (nm_ring_empty(ring))
		return (0);
	do {
		ATF_REQUIRE(head != ring->tail);
		slot = &ring->slot[head];
		memcpy(buf + len, NETMAP_BUF(ring, slot->buf_idx), slot->len);
		len += slot->len;
		head = nm_ring_next(ring, head);
	} while ((slot->flags & NS_MOREFRAG) != 0);
	ring->head = ring->cur = head;
	return (len);
}

static void
expect_frame(struct vale_desc *d, const uint8_t *frame, uint32_t len)
{
	uint8_t buf[T_FRAME_MAX];
	uint32_t got;

	got = take(d, buf);
	ATF_REQUIRE_EQ_MSG(len, got, "%s: %u bytes, not %u", d->common->name,
	    got, len);
	ATF_REQUIRE_MSG(memcmp(frame, buf, len) == 0, "%s: other bytes",
	    d->common->name);
}

/* Sync, and expect the numbered frame with this tag, and no other. */
static void
expect(unsigned int at, uint32_t tci, unsigned int dst, unsigned int src,
    uint32_t seq)
{
	uint8_t buf[LEN_MAX];
	uint32_t len;

	len = make(buf, 60, tci, dst, src, seq);
	ATF_REQUIRE_EQ(0, vale_rxsync(t_port[at]));
	expect_frame(t_port[at], buf, len);
	ATF_REQUIRE(nm_ring_empty(t_port[at]->rxring));
}

TEST(access, "Access ports of a VLAN see each other, and nobody else")
{
	t_ports_open(PORTS);
	t_port_set(0, "vlan", "10");
	t_port_set(1, "vlan", "10");
	t_port_set(2, "vlan", "20");
	t_port_set(3, "vlan", "20");
	send_tagged(0, NONE, EVERYBODY, 0, 1);
	expect(1, NONE, EVERYBODY, 0, 1);
	t_expect_none(t_port[2]);
	t_expect_none(t_port[3]);
	/* A port without VLANs is in all of them. */
	expect(4, 10, EVERYBODY, 0, 1);
	/* The address is known in VLAN 10 only. */
	send_tagged(3, NONE, 0, 3, 2);
	expect(2, NONE, 0, 3, 2);
	expect(4, 20, 0, 3, 2);
	t_expect_none(t_port[0]);
	send_tagged(1, NONE, 0, 1, 3);
	expect(0, NONE, 0, 1, 3);
	t_expect_none(t_port[4]);
	/* A priority is no VLAN; a tag is not the guest's to set. */
	send_tagged(1, 0xe000, 0, 1, 4);
	expect(0, NONE, 0, 1, 4);
	send_tagged(1, 20, 3, 1, 5);
	send_tagged(1, 10, 0, 1, 6);
	t_expect_none(t_port[0]);
	t_expect_none(t_port[3]);
	T_COUNT(t_port[1], TX_DROP_VLAN, 2);
	/* No VLAN any more. */
	t_port_set(1, "vlan", "0");
	send_tagged(1, 10, 0, 1, 7);
	expect(0, NONE, 0, 1, 7);
	t_ports_close();
}

TEST(none_any_more, "When the last VLAN has gone, what a port floods reaches "
    "all ports, with and without a guard of its own")
{
	unsigned int i, n = 0;

	t_ports_open(PORTS);
	for (i = 0; i < 4; i++) {
		t_port_set(0, "vlan", "10");
		t_port_set(1, "vlan", "10");
		send_tagged(0, NONE, EVERYBODY, 0, ++n);
		expect(1, NONE, EVERYBODY, 0, n);
		expect(2, 10, EVERYBODY, 0, n);
		t_port_set(0, "vlan", "0");
		t_port_set(1, "vlan", "0");
		t_port_set(0, "source", i % 2 == 0 ? "any" :
		    "02:00:00:00:00:00");
		send_tagged(0, NONE, EVERYBODY, 0, ++n);
		expect(1, NONE, EVERYBODY, 0, n);
		expect(2, NONE, EVERYBODY, 0, n);
	}
	t_ports_close();
}

TEST(forgets, "A port whose VLAN changes has no addresses in the former one, "
    "which would count for its limit")
{
	t_ports_open(PORTS);
	ATF_REQUIRE_EQ(0, vale_set_limit(t_port_name(0), 1));
	send_tagged(0, NONE, EVERYBODY, 0, 1);
	expect(1, NONE, EVERYBODY, 0, 1);
	t_port_set(0, "vlan", "10");
	t_port_set(1, "vlan", "10");
	send_tagged(0, NONE, EVERYBODY, 0, 2);
	expect(1, NONE, EVERYBODY, 0, 2);
	t_port_set(0, "vlan", "20");
	t_port_set(1, "vlan", "20");
	send_tagged(0, NONE, EVERYBODY, 0, 3);
	expect(1, NONE, EVERYBODY, 0, 3);
	T_COUNT(t_port[0], TX_DROP_LIMIT, 0);
	/* The limit stays, and a guard is no VLAN. */
	t_port_set(0, "source", "02:00:00:00:00:00,02:00:00:00:00:07");
	send_tagged(0, NONE, EVERYBODY, 7, 4);
	T_COUNT(t_port[0], TX_DROP_LIMIT, 1);
	t_ports_close();
}

TEST(trunk, "A trunk has the tags of its VLANs, and a native one without")
{
	t_ports_open(PORTS);
	t_port_set(0, "vlan", "10");
	t_port_set(1, "vlan", "20");
	t_port_set(2, "vlan", "30");
	t_port_set(3, "trunk", "10,20-25");
	t_port_set(4, "trunk", "20,30");
	t_port_set(4, "native", "10");
	send_tagged(0, NONE, EVERYBODY, 0, 1);
	expect(3, 10, EVERYBODY, 0, 1);
	expect(4, NONE, EVERYBODY, 0, 1);
	t_expect_none(t_port[1]);
	t_expect_none(t_port[2]);
	/* The priority stays where there is a tag. */
	send_tagged(0, 0xa000, EVERYBODY, 0, 2);
	expect(3, 0xa00a, EVERYBODY, 0, 2);
	expect(4, NONE, EVERYBODY, 0, 2);
	send_tagged(3, 0x6014, EVERYBODY, 3, 3);
	expect(1, NONE, EVERYBODY, 3, 3);
	expect(4, 0x6014, EVERYBODY, 3, 3);
	t_expect_none(t_port[0]);
	/* Not a VLAN of the trunk. */
	send_tagged(3, 30, EVERYBODY, 3, 4);
	send_tagged(3, NONE, EVERYBODY, 3, 5);
	T_COUNT(t_port[3], TX_DROP_VLAN, 2);
	t_expect_none(t_port[2]);
	/* To one port: without a tag, with one, and with another form. */
	send_tagged(4, NONE, 0, 4, 6);
	expect(0, NONE, 0, 4, 6);
	send_tagged(3, 10, 0, 3, 7);
	expect(0, NONE, 0, 3, 7);
	t_expect_none(t_port[4]);
	send_tagged(0, NONE, 3, 0, 8);
	expect(3, 10, 3, 0, 8);
	send_tagged(2, NONE, EVERYBODY, 2, 9);
	expect(4, 30, EVERYBODY, 2, 9);
	t_expect_none(t_port[3]);
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

static uint32_t
model_vlan(unsigned int p, uint32_t tci)
{
	const struct model_port *m = &model[p];
	const uint32_t vlan = tci == NONE ? 0 : tci & 0xfff;

	if (m->any)
		return (vlan);
	if (vlan == 0)
		return (m->native != 0 ? m->native : NONE);
	return (m->trunk && m->set[vlan] ? vlan : NONE);
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
		return (NONE);
	return ((tci == NONE ? 0 : tci & 0xf000) | vlan);
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
	if (s->vlan == NONE)
		return;
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
	static const uint32_t tags[] = { NONE, NONE, 0, 0x6000, 0x1000, 1, 10,
	    266, 4094, 0xe00a, 0x100a, 0xf10a, 0x3ffe, 31, 4095 };
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
		s->len = make(s->bytes, s->plain, s->tci, s->dst, s->src, i);
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
			len = make(want, s->plain, vlans ? model_tag(at,
			    s->vlan, s->tci) : s->tci, s->dst, s->src, i);
			expect_frame(t_port[at], want, len);
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
	t_ports_open(PORTS);
	for (i = 0; i < PORTS; i++) {
		model_set(i, test_random(&seed) % 4, &seed);
		vlans = vlans || !model[i].any;
		/* All that these ports send is their own. */
		if (test_random(&seed) % 3 == 0)
			t_port_set(i, "source",
			    "02:00:00:00:00:00,02:00:00:00:00:01,"
			    "02:00:00:00:00:02,02:00:00:00:00:03,"
			    "02:00:00:00:00:04");
	}
	for (i = 0; i < 30; i++)
		random_batch(test_random(&seed) % PORTS, &seed,
		    test_random(&seed) % 2 != 0, vlans);
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
		len = make(buf, 60, NONE, EVERYBODY, 0, i);
		t_put(t_port[0], buf, len, 31, false);
	}
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
	ATF_REQUIRE_EQ(0, vale_rxsync(t_port[1]));
	ATF_REQUIRE_EQ(0, vale_rxsync(t_port[2]));
	for (i = 0; i < n; i++) {
		len = make(want, 60, 10, EVERYBODY, 0, i);
		expect_frame(t_port[1], want, len);
		expect_frame(t_port[2], want, len);
	}
	/* The same to one port. */
	ATF_REQUIRE_EQ(0, vale_rxsync(t_port[1]));
	len = make(buf, 60, 10, EVERYBODY, 1, 0);
	t_put(t_port[1], buf, len, len, false);
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[1]));
	for (i = 0; i < n; i++) {
		len = make(buf, 60, NONE, 1, 0, i);
		t_put(t_port[0], buf, len, len, false);
	}
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
	ATF_REQUIRE_EQ(0, vale_rxsync(t_port[1]));
	for (i = 0; i < n; i++) {
		len = make(want, 60, 10, 1, 0, i);
		expect_frame(t_port[1], want, len);
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
	len = make(buf, 64 * 20, NONE, EVERYBODY, 0, 1);
	t_put(t_port[0], buf, len, 20, false);
	len = make(buf, 63 * 20, NONE, EVERYBODY, 0, 2);
	t_put(t_port[0], buf, len, 20, false);
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
	T_COUNT(t_port[0], TX_DROP_FRAGS, 1);
	ATF_REQUIRE_EQ(0, vale_rxsync(t_port[1]));
	len = make(buf, 63 * 20, 10, EVERYBODY, 0, 2);
	expect_frame(t_port[1], buf, len);
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

TEST(source, "Frames from other sources than the list's are dropped")
{
	const uint8_t own[6] = { 2, 0, 0, 0, 0, 1 };
	uint8_t buf[LEN_MAX];
	uint32_t len;

	t_ports_open(PORTS);
	ATF_CHECK_EQ(-1, vale_set(t_port_name(0), "source", "own"));
	ATF_CHECK_STREQ("the switch does not know the port's own address: "
	    "source must be a list", vale_error());
	vale_set_address(t_port[1], own);
	t_port_set(1, "source", "own");
	send_tagged(1, NONE, EVERYBODY, 1, 1);
	expect(0, NONE, EVERYBODY, 1, 1);
	/* It is dropped, and not learned from. */
	queue(1, NONE, EVERYBODY, 2, 2);
	queue(1, NONE, EVERYBODY, 2, 3);
	queue(1, NONE, 0, 1, 4);
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[1]));
	T_COUNT(t_port[1], TX_DROP_SOURCE, 2);
	T_COUNT(t_port[1], LEARNED, 1);
	/* A tag is not looked at on a switch without VLANs. */
	send_tagged(1, 77, 0, 1, 5);
	ATF_REQUIRE_EQ(0, vale_rxsync(t_port[0]));
	len = make(buf, 60, NONE, 0, 1, 4);
	expect_frame(t_port[0], buf, len);
	len = make(buf, 60, 77, 0, 1, 5);
	expect_frame(t_port[0], buf, len);
	t_port_set(1, "source", "any");
	send_tagged(1, NONE, EVERYBODY, 2, 6);
	T_COUNT(t_port[1], TX_DROP_SOURCE, 2);
	t_ports_close();
}

/* A frame of IPv4 from 192.0.2.`host'. */
static void
queue_ip(unsigned int from, unsigned int host, uint32_t fraglen)
{
	uint8_t buf[64];

	t_make(buf, sizeof(buf), EVERYBODY, from, 0);
	memcpy(buf + ADDRS, (const uint8_t[]){ 8, 0, 0x45, 0, 0, 50, 0, 0, 0, 0,
	    64, 17, 0, 0, 192, 0, 2, host, 192, 0, 2, 1 }, 22);
	t_put(t_port[from], buf, sizeof(buf), fraglen, false);
}

TEST(ip, "Frames from other IP addresses than the list's are dropped")
{
	uint8_t buf[T_FRAME_MAX];
	unsigned int n = 0;

	t_ports_open(PORTS);
	t_port_set(0, "ip", "192.0.2.5");
	queue_ip(0, 5, 64);
	queue_ip(0, 6, 64);
	queue_ip(0, 5, 17);
	queue_ip(0, 6, 17);
	queue_ip(0, 7, 17);
	queue_ip(0, 5, 64);
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
	T_COUNT(t_port[0], TX_DROP_IP, 3);
	ATF_REQUIRE_EQ(0, vale_rxsync(t_port[1]));
	while (take(t_port[1], buf) != 0) {
		ATF_CHECK_EQ(5, buf[14 + 15]);
		n++;
	}
	ATF_CHECK_EQ(3, n);
	t_ports_close();
}

/* What a sink does: another processor of the sender changes its memory. */
static uint8_t	changed[2][64];

static void
change(void *arg __unused, struct frame_source *frames)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };

	while (frame_peek(frames, &frame)) {
		memcpy(changed[1] + 6, (const uint8_t[]){ 2, 0, 0, 0, 0, 9 },
		    6);
		memcpy(changed[1] + ADDRS, (const uint8_t[]){ 0x81, 0, 0, 20 },
		    4);
		frame_next(frames);
	}
}

TEST(memory, "What was checked is what is delivered, though the sender changes "
    "its memory meanwhile")
{
	uint8_t before[64];
	unsigned int i;

	t_ports_open(PORTS);
	t_port_set(0, "source", "02:00:00:00:00:00");
	t_port_set(0, "vlan", "10");
	t_port_set(1, "vlan", "10");
	t_port_set(2, "vlan", "10");
	for (i = 1; i <= 2; i++) {
		send_tagged(i, NONE, EVERYBODY, i, 0);
		t_drain(t_port[0]);
		t_drain(t_port[3 - i]);
	}
	ATF_REQUIRE_EQ(0, vale_set_sink(t_port[1], change, NULL));
	for (i = 0; i < 2; i++) {
		t_make(changed[i], sizeof(changed[i]), i + 1, 0, i);
		t_put(t_port[0], changed[i], sizeof(changed[i]),
		    sizeof(changed[i]), true);
	}
	memcpy(before, changed[1], sizeof(before));
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
	ATF_CHECK(memcmp(before, changed[1], ADDRS + 4) != 0);
	ATF_REQUIRE_EQ(0, vale_rxsync(t_port[2]));
	expect_frame(t_port[2], before, sizeof(before));
	t_ports_close();
}

TEST(reserved, "Frames to 01:80:c2:00:00:00 to 0f pass, or are dropped with "
    "reserved=no")
{
	uint8_t buf[60];
	unsigned int i;
	char value[VALE_SETTING_SIZE];

	t_ports_open(PORTS);
	ATF_REQUIRE_EQ(0, vale_get("valet0", "reserved", value, sizeof(value)));
	ATF_CHECK_STREQ("yes", value);
	for (i = 0; i <= 0x10; i++) {
		t_make(buf, sizeof(buf), EVERYBODY, 0, i);
		memcpy(buf, (const uint8_t[]){ 1, 0x80, 0xc2, 0, 0, i }, 6);
		t_put(t_port[0], buf, sizeof(buf), sizeof(buf), false);
	}
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
	ATF_CHECK_EQ(0x11, t_drain(t_port[1]));
	ATF_REQUIRE_EQ(0, vale_set("valet0", "reserved", "no"));
	for (i = 0; i <= 0x10; i++) {
		t_make(buf, sizeof(buf), EVERYBODY, 0, i);
		memcpy(buf, (const uint8_t[]){ 1, 0x80, 0xc2, 0, 0, i }, 6);
		t_put(t_port[0], buf, sizeof(buf), sizeof(buf), false);
	}
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
	ATF_CHECK_EQ(1, t_drain(t_port[1]));
	T_COUNT(t_port[0], TX_DROP_RESERVED, 16);
	/* In VLANs. */
	t_port_set(0, "vlan", "10");
	t_port_set(1, "vlan", "10");
	t_make(buf, sizeof(buf), EVERYBODY, 0, 0);
	memcpy(buf, (const uint8_t[]){ 1, 0x80, 0xc2, 0, 0, 2 }, 6);
	t_put(t_port[0], buf, sizeof(buf), sizeof(buf), false);
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
	T_COUNT(t_port[0], TX_DROP_RESERVED, 17);
	t_ports_close();
}

TEST(mirror, "A mirror gets what a port sends, and what it gets, in the form "
    "that the port has")
{
	const struct vale_params params = { .monitor = VALE_MIRROR_BOTH };
	uint8_t buf[LEN_MAX];
	struct vale_desc *m;
	uint32_t len;

	t_ports_open(PORTS);
	t_port_set(0, "vlan", "10");
	t_port_set(1, "trunk", "10,20");
	t_port_set(2, "vlan", "10");
	m = vale_open(t_port_name(1), &params);
	ATF_REQUIRE(m != NULL);
	send_tagged(0, NONE, EVERYBODY, 0, 1);
	send_tagged(1, 10, 0, 1, 2);
	send_tagged(1, 30, 0, 1, 3);
	ATF_REQUIRE_EQ(0, vale_rxsync(m));
	len = make(buf, 60, 10, EVERYBODY, 0, 1);
	expect_frame(m, buf, len);
	len = make(buf, 60, 10, 0, 1, 2);
	expect_frame(m, buf, len);
	/* This one is dropped. */
	len = make(buf, 60, 30, 0, 1, 3);
	expect_frame(m, buf, len);
	ATF_CHECK(nm_ring_empty(m->rxring));
	T_COUNT(t_port[1], TX_DROP_VLAN, 1);
	vale_close(m);
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
	send_tagged(0, NONE, EVERYBODY, 0, 1);
	send_tagged(1, 10, EVERYBODY, 1, 2);
	send_tagged(2, NONE, EVERYBODY, 2, 3);
	send_tagged(0, NONE, 1, 0, 4);
	send_tagged(0, NONE, 2, 0, 5);
	ATF_REQUIRE_EQ(0, vale_rxsync(trunk));
	len = make(buf, 60, 10, EVERYBODY, 0, 1);
	expect_frame(trunk, buf, len);
	len = make(buf, 60, 10, EVERYBODY, 2, 3);
	expect_frame(trunk, buf, len);
	len = make(buf, 60, 10, 1, 0, 4);
	expect_frame(trunk, buf, len);
	ATF_CHECK(nm_ring_empty(trunk->rxring));
	t_expect_none(access);
	/* The port has all of its frames. */
	ATF_REQUIRE_EQ(0, vale_rxsync(t_port[2]));
	len = make(buf, 60, NONE, EVERYBODY, 0, 1);
	expect_frame(t_port[2], buf, len);
	len = make(buf, 60, NONE, EVERYBODY, 1, 2);
	expect_frame(t_port[2], buf, len);
	len = make(buf, 60, NONE, 2, 0, 5);
	expect_frame(t_port[2], buf, len);
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
	ATF_REQUIRE_EQ(0, vale_set_private(t_port_name(0), true));
	ATF_REQUIRE_EQ(0, vale_set_private(t_port_name(1), true));
	send_tagged(0, NONE, EVERYBODY, 0, 1);
	expect(2, NONE, EVERYBODY, 0, 1);
	t_expect_none(t_port[1]);
	send_tagged(1, NONE, 0, 1, 2);
	T_COUNT(t_port[1], TX_DROP_PRIVATE, 1);
	t_expect_none(t_port[0]);
	/* To itself; nobody is in the VLAN. */
	send_tagged(1, NONE, 1, 1, 3);
	T_COUNT(t_port[1], TX_DROP_SELF, 1);
	t_port_set(3, "vlan", "30");
	t_port_set(4, "vlan", "40");
	send_tagged(3, NONE, EVERYBODY, 3, 4);
	T_COUNT(t_port[3], TX_DROP_NODEST, 1);
	t_ports_close();
}

/* Each row: a setting, what it is set to, whether it is valid. */
static const struct {
	const char *setting, *value, *error, *vlan, *trunk, *native;
} rows[] = {
	{ "vlan", "10", NULL, "10", "no", "0" },
	{ "vlan", "4095", "the VLAN must be 0 to 4094", "10", "no", "0" },
	{ "native", "5", "a native VLAN is that of a trunk", "10", "no", "0" },
	{ "native", "0", NULL, "10", "no", "0" },
	{ "trunk", "no", NULL, "10", "no", "0" },
	{ "trunk", "10,20-30", NULL, "0", "10,20-30", "0" },
	{ "native", "5", NULL, "0", "10,20-30", "5" },
	{ "trunk", "0", "trunk is a list of VLANs and ranges from 1 to 4094, "
	    "all or no", "0", "10,20-30", "5" },
	{ "trunk", "all", NULL, "0", "all", "5" },
	{ "native", "4095", "the native VLAN must be 0 to 4094", "0", "all",
	    "5" },
	{ "vlan", "ten", "the value is not a number", "0", "all", "5" },
	{ "trunk", "no", NULL, "0", "no", "0" },
	{ "trunk", "1", NULL, "0", "1", "0" },
	{ "vlan", "0", NULL, "0", "1", "0" },
	{ "vlan", "7", NULL, "7", "no", "0" },
	{ "vlan", "0", NULL, "0", "no", "0" },
	{ "ageing", "5", "ageing is not a setting of a port", "0", "no", "0" },
	{ "x", "5", "x is not a setting of a port", "0", "no", "0" },
};

static void
check_setting(const char *setting, const char *value)
{
	char text[VALE_SETTING_SIZE];

	ATF_REQUIRE_EQ(0, vale_get(t_port_name(0), setting, text,
	    sizeof(text)));
	ATF_CHECK_STREQ(value, text);
}

TEST(settings, "A port is an access port or a trunk, as it was set last")
{
	char list[VALE_SETTING_SIZE + 1];
	unsigned int i;

	t_ports_open(PORTS);
	for (i = 0; i < nitems(rows); i++) {
		ATF_CHECK_EQ_MSG(rows[i].error == NULL ? 0 : -1,
		    vale_set(t_port_name(0), rows[i].setting, rows[i].value),
		    "row %u: %s", i, vale_error());
		if (rows[i].error != NULL)
			ATF_CHECK_STREQ(rows[i].error, vale_error());
		check_setting("vlan", rows[i].vlan);
		check_setting("trunk", rows[i].trunk);
		check_setting("native", rows[i].native);
	}
	check_setting("source", "any");
	check_setting("ip", "any");
	t_port_set(0, "source", "02:00:00:00:00:01");
	t_port_set(0, "ip", "192.0.2.5,2001:db8::/64");
	check_setting("source", "02:00:00:00:00:01");
	check_setting("ip", "192.0.2.5,2001:db8::/64");
	ATF_CHECK_EQ(-1, vale_set(t_port_name(0), "ip", "192.0.2"));
	ATF_CHECK_STREQ("ip is a list of at most 16 addresses or prefixes, or "
	    "any", vale_error());
	ATF_CHECK_EQ(EINVAL, errno);
	memset(list, 'x', sizeof(list) - 1);
	list[sizeof(list) - 1] = '\0';
	ATF_CHECK_EQ(-1, vale_set(t_port_name(0), "ip", list));
	ATF_CHECK_STREQ("the value has more than 511 characters",
	    vale_error());
	check_setting("ip", "192.0.2.5,2001:db8::/64");
	ATF_CHECK_EQ(-1, vale_set("valet0:none", "ip", "any"));
	ATF_CHECK_STREQ("there is no such port", vale_error());
	ATF_CHECK_EQ(ENXIO, errno);
	ATF_CHECK_EQ(-1, vale_set("valet0", "vlan", "1"));
	ATF_CHECK_STREQ("vlan is not a setting of a switch", vale_error());
	t_ports_close();
}

/*
 * A packet of several segments (or, if `mss' is 0, with a partial checksum)
 * from an access port or a trunk, to one of each.  The station n is at port n.
 */
static void
offloads(unsigned int from, unsigned int to, uint32_t paylen, uint32_t mss,
    bool tagged, unsigned int dst, uint32_t *seed)
{
	static struct vn_sent plain, tag;
	struct packet p = vn_packet(paylen, seed);
	unsigned int i;

	p.vlan = false;
	p.tag = 0x600a;
	vn_make(&plain, &p, mss, dst, 0);
	p.vlan = true;
	/* What the switch tags has no priority. */
	p.tag = tagged ? 0x600a : 10;
	vn_make(&tag, &p, mss, dst, 0);
	for (i = 0; i < 3; i++)
		t_port[i] = vn_port(t_port_name(i), i == 0 ? from : to, 0, i);
	for (i = 1; i < 3; i++)
		vn_drain(t_port[i]);
	t_port_set(0, tagged ? "trunk" : "vlan", "10");
	t_port_set(1, "vlan", "10");
	t_port_set(2, "trunk", "10");
	/* Teach it the stations of VLAN 10. */
	for (i = 1; i < 3 && dst != EVERYBODY; i++) {
		uint8_t hello[64], zero[VN_LONG] = { 0 };
		uint32_t len = make(hello, 60, i == 2 ? 10 : NONE, EVERYBODY,
		    i, 0);

		vn_put(t_port[i], to == VALE_HEADER_FRAME ? 0 : to, zero, hello,
		    len, 1000, false);
		ATF_REQUIRE_EQ(0, vale_txsync(t_port[i]));
	}
	for (i = 0; i < 3; i++)
		vn_drain(t_port[i]);
	vn_put_sent(t_port[0], from, tagged ? &tag : &plain, 700,
	    paylen % 2 != 0);
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
	for (i = 1; i < 3; i++) {
		ATF_REQUIRE_EQ(0, vale_rxsync(t_port[i]));
		if (dst == EVERYBODY || dst == i)
			vn_expect(t_port[i], to, i == 1 ? &plain : &tag);
		vn_expect_none(t_port[i]);
	}
	for (i = 0; i < 3; i++)
		vale_close(t_port[i]);
}

TEST(offloads, "Offloads survive a tag that is added or taken")
{
	static const uint32_t sizes[][2] = { { 9000, 1460 }, { 9001, 536 },
	    { 500, 0 }, { 501, 0 } };
	unsigned int from, i, to;
	uint32_t seed = 7;

	for (from = 1; from < VN_NKINDS; from++)
		for (to = 0; to < VN_NKINDS; to++)
			for (i = 0; i < 6 * nitems(sizes); i++)
				offloads(vn_kinds[from], vn_kinds[to],
				    sizes[i / 6][0], sizes[i / 6][1],
				    i % 2 != 0, i % 6 / 2 == 0 ? EVERYBODY :
				    i % 6 / 2, &seed);
}

TEST_PROGRAM
