/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Limits of ports with VLANs or guards: the longest frames, and headers.
 */

#include <sys/param.h>

#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "frame.h"
#include "test.h"
#include "vale_clock.h"
#include "vale_pair.h"
#include "vale_switch.h"
#include "vale_test.h"

#define	ADDRS	12		/* bytes of a frame's addresses */
#define	TAG	4

static uint8_t	frame[VALE_FRAME_MAX + TAG + 1], got[VALE_FRAME_MAX + TAG];
/* Bytes of `frame' that are overwritten when a receiver has got it. */
static uint32_t	overwrite;

void	__real_vale_rxq_wake(struct vale_pair *pair);
void	__wrap_vale_rxq_wake(struct vale_pair *pair);

void
__wrap_vale_rxq_wake(struct vale_pair *pair)
{
	memset(frame, 0xee, overwrite);
	__real_vale_rxq_wake(pair);
}

/* Send `len' bytes of `frame' in fragments of `fraglen'. */
static void
send_frame(unsigned int from, uint32_t len, uint32_t fraglen)
{
	t_put(t_port[from], frame, len, fraglen, true);
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[from]));
}

/* A frame of one station to another, or EVERYBODY. */
static void
make(unsigned int dst, unsigned int src, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		frame[i] = i * 7 + i / 251;
	t_addr(frame, dst);
	t_addr(frame + 6, src);
}

/* Take the next frame.  Returns its length, or 0. */
static uint32_t
take(unsigned int at)
{
	struct netmap_ring *ring = t_port[at]->rxring;
	struct netmap_slot *slot;
	uint32_t len = 0;

	ATF_REQUIRE_EQ(0, vale_rxsync(t_port[at]));
	if (nm_ring_empty(ring))
		return (0);
	do {
		slot = &ring->slot[ring->head];
		ATF_REQUIRE(len + slot->len <= sizeof(got));
		memcpy(got + len, NETMAP_BUF(ring, slot->buf_idx), slot->len);
		len += slot->len;
		ring->head = ring->cur = nm_ring_next(ring, ring->head);
	} while ((slot->flags & NS_MOREFRAG) != 0);
	return (len);
}

/* Expect what `frame' is, with a tag of VLAN 10 or none. */
static void
expect(unsigned int at, uint32_t len, bool tagged)
{
	static const uint8_t tag[TAG] = { 0x81, 0, 0, 10 };

	const uint32_t n = take(at);

	ATF_REQUIRE_EQ_MSG(len + (tagged ? TAG : 0), n, "%u bytes, not %u", n,
	    len);
	ATF_CHECK(memcmp(frame, got, ADDRS) == 0);
	if (tagged)
		ATF_CHECK(memcmp(tag, got + ADDRS, TAG) == 0);
	ATF_CHECK(memcmp(frame + ADDRS, got + ADDRS + (tagged ? TAG : 0),
	    len - ADDRS) == 0);
}

TEST(longest, "A frame with no space for a tag goes to who gets it without one")
{
	static const uint32_t lens[] = { 65531, 65532, 65533, 65536 };
	unsigned int i, drops = 0;

	t_ports_open(3);
	t_port_set(0, "vlan", "10");
	t_port_set(1, "trunk", "10");
	t_port_set(2, "vlan", "10");
	make(EVERYBODY, 2, 60);
	send_frame(2, 60, 60);
	ATF_CHECK(take(0) != 0 && take(1) != 0);
	/* The trunk's station, by a frame with a tag. */
	make(EVERYBODY, 1, 64);
	memcpy(frame + ADDRS, "\x81\x00\x00\x0a", TAG);
	send_frame(1, 64, 64);
	ATF_CHECK(take(0) != 0 && take(2) != 0);
	for (i = 0; i < nitems(lens); i++) {
		make(2, 0, lens[i]);
		send_frame(0, lens[i], 2000);
		expect(2, lens[i], false);
		ATF_CHECK_EQ(0, take(1));
		make(1, 0, lens[i]);
		send_frame(0, lens[i], 2000);
		ATF_CHECK_EQ(0, take(2));
		if (lens[i] <= VALE_FRAME_MAX - TAG)
			expect(1, lens[i], true);
		else
			drops++;
		ATF_CHECK_EQ(0, take(1));
		make(EVERYBODY, 0, lens[i]);
		send_frame(0, lens[i], 2000);
		if (lens[i] <= VALE_FRAME_MAX - TAG) {
			expect(1, lens[i], true);
			expect(2, lens[i], false);
		} else
			drops++;
		ATF_CHECK_EQ(0, take(1));
		ATF_CHECK_EQ(0, take(2));
		T_COUNT(t_port[0], TX_DROP_FRAGS, drops);
	}
	t_ports_close();
}

/*
 * TCP over IPv6 with `len' bytes of options between, behind a tag of 802.1ad if
 * `more' is 4: its checksum is partial.
 */
static void
long_headers(unsigned int at, uint32_t more, uint32_t len)
{
	struct netmap_ring *ring = t_port[0]->txring;
	const uint32_t net = 14 + more, l4 = net + 40 + len;
	struct frame *known = &t_port[0]->txframe[ring->head];

	make(at, 0, l4 + 40);
	memcpy(frame + ADDRS, "\x88\xa8\0\1", 4);
	memcpy(frame + ADDRS + more, "\x86\xdd\x60", 3);
	frame[net + 6] = 60;
	frame[net + 40] = 6;
	frame[net + 41] = len / 8 - 1;
	frame_set(known, 1, l4 + 40);
	known->f_flags = FRAME_CSUM_PARTIAL;
	known->f_csum_start = l4;
	known->f_csum_offset = 16;
	t_put(t_port[0], frame, l4 + 40, l4 + 40, true);
	ring->slot[(ring->head + ring->num_slots - 1) %
	    ring->num_slots].flags |=
	    VALE_SLOT_FRAME;
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
}

TEST(headers, "The longest headers leave no space for a tag, which those of "
    "508 bytes have")
{
	static const struct {
		uint32_t	more, len, drops;
	} rows[] = {
		/* 504, 508 and 512 bytes, up to the checksum. */
		{ 0, 432, 0 }, { TAG, 432, 0 }, { 0, 440, 1 },
	};
	unsigned int i;
	uint32_t len;

	for (i = 0; i < nitems(rows); i++) {
		t_ports_open(2);
		ATF_REQUIRE_EQ(0, vale_set_header(t_port[0],
		    VALE_HEADER_FRAME));
		t_port_set(0, "vlan", "10");
		t_port_set(1, "trunk", "10");
		long_headers(EVERYBODY, rows[i].more, rows[i].len);
		T_COUNT(t_port[0], TX_DROP_FRAGS, rows[i].drops);
		T_COUNT(t_port[0], TX_DROP_HEADER, 0);
		len = take(1);
		ATF_CHECK_EQ(rows[i].drops != 0 ? 0 : 14 + rows[i].more + 40 +
		    rows[i].len + 40 + TAG, len);
		t_ports_close();
	}
}

TEST(split, "Frames with their addresses in several fragments go each to its "
    "own station, with rules and without")
{
	static const uint32_t frags[] = { 5, 7, 11, 12, 13, 60 };
	unsigned int i, n, next[3] = { 0 }, ruled, to;
	uint32_t seed = 3;

	for (ruled = 0; ruled < 2; ruled++) {
		t_ports_open(3);
		for (i = 0; i < 3 && ruled != 0; i++)
			t_port_set(i, "vlan", "10");
		for (i = 0; i < 3; i++)
			t_send(t_port[i], 60, EVERYBODY, i, 0);
		for (i = 0; i < 3; i++)
			(void)t_drain(t_port[i]);
		for (n = 0; n < 100; n++) {
			memset(next, 0, sizeof(next));
			for (i = 0; i < 16; i++) {
				to = 1 + test_random(&seed) % 2;
				t_make(frame, 60, to, 0, next[to]++);
				t_put(t_port[0], frame, 60, frags[
				    test_random(&seed) % nitems(frags)], false);
			}
			ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
			for (to = 1; to < 3; to++)
				for (i = 0; i < next[to]; i++) {
					t_make(frame, 60, to, 0, i);
					expect(to, 60, false);
				}
			ATF_CHECK_EQ(0, take(1));
			ATF_CHECK_EQ(0, take(2));
		}
		t_ports_close();
	}
}

TEST(reserved, "With reserved=off other groups pass that end or begin as those")
{
	static const uint8_t groups[][6] = {
		{ 0x01, 0x80, 0xc2, 0, 0, 0x10 }, { 0x01, 0x80, 0xc2, 0, 1, 5 },
		{ 0x01, 0x80, 0xc2, 1, 0, 5 }, { 0x01, 0x80, 0xc3, 0, 0, 5 },
		{ 0x01, 0x81, 0xc2, 0, 0, 5 }, { 0x03, 0x80, 0xc2, 0, 0, 5 },
		{ 0x01, 0x00, 0x5e, 0, 0, 5 }, { 0x33, 0x33, 0, 0, 0, 1 },
		{ 0x02, 0x80, 0xc2, 0, 0, 5 }, { 0, 0, 0, 0, 0, 5 },
	};
	unsigned int i, ruled;

	t_ports_open(2);
	ATF_REQUIRE_EQ(0, vale_set("valet0", "reserved", "off"));
	for (ruled = 0; ruled < 2; ruled++) {
		for (i = 0; i < nitems(groups); i++) {
			make(EVERYBODY, 0, 60);
			memcpy(frame, groups[i], 6);
			send_frame(0, 60, 60);
			ATF_CHECK_EQ_MSG(60, take(1), "%u", i);
		}
		T_COUNT(t_port[0], TX_DROP_RESERVED, 0);
		t_port_set(0, "vlan", "10");
		t_port_set(1, "vlan", "10");
	}
	t_ports_close();
}

TEST(no_vlans, "A guard on a switch without VLANs leaves tags alone: addresses "
    "are those of all")
{
	t_ports_open(3);
	t_port_set(0, "source", "02:00:00:00:00:00");
	make(EVERYBODY, 0, 60);
	memcpy(frame + ADDRS, "\x81\x00\x00\x4d", TAG);
	send_frame(0, 60, 60);
	expect(1, 60, false);
	expect(2, 60, false);
	/* Its address is known, without a tag and with another one. */
	make(0, 1, 60);
	send_frame(1, 60, 60);
	expect(0, 60, false);
	make(0, 2, 60);
	memcpy(frame + ADDRS, "\x81\x00\x00\x05", TAG);
	send_frame(2, 60, 60);
	expect(0, 60, false);
	ATF_CHECK_EQ(0, take(1));
	ATF_CHECK_EQ(0, take(2));
	T_COUNT(t_port[0], LEARNED, 1);
	t_ports_close();
}

TEST(left, "A port gets nothing of a VLAN that it is no member of, though its "
    "address there is not forgotten yet")
{
	static const uint8_t addr[6] = { 2, 0, 0, 0, 0, 1 };
	const struct vale_port *port;

	t_ports_open(3);
	t_port_set(0, "vlan", "10");
	t_port_set(1, "vlan", "20");
	t_port_set(2, "vlan", "10");
	port = vale_desc_port(t_port[1]);
	ATF_CHECK_EQ(VALE_FDB_LEARNED, vale_fdb_learn(&port->vp_switch->vs_fdb,
	    addr, 10, port->vp_index, vale_now_ms() / 1000));
	make(1, 0, 60);
	ATF_REQUIRE_EQ(0, memcmp(frame, addr, sizeof(addr)));
	send_frame(0, 60, 60);
	ATF_CHECK_EQ(0, take(1));
	expect(2, 60, false);
	t_ports_close();
}

TEST_PROGRAM
