/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Forwarding between ports, and opening and closing them.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include "test.h"
#include "vale_test.h"

#define	NPORTS	4

/* Ports vt0:p0 to vt0:p3; station n is at port n. */
static struct vale_desc *port[NPORTS];

static void
open_ports(void)
{
	char name[VALE_NAME_SIZE];
	unsigned int i;

	for (i = 0; i < NPORTS; i++) {
		snprintf(name, sizeof(name), "valet0:p%u", i);
		port[i] = t_open(name, 0, 0);
	}
}

static void
close_ports(void)
{
	unsigned int i;

	for (i = 0; i < NPORTS; i++)
		vale_close(port[i]);
}

/* Send a frame from each station. */
static void
learn_ports(void)
{
	unsigned int i;

	for (i = 0; i < NPORTS; i++)
		t_send(port[i], 60, EVERYBODY, i, 0);
	for (i = 0; i < NPORTS; i++)
		ATF_REQUIRE_EQ(NPORTS - 1, t_drain(port[i]));
}

TEST(mixed, "One sync of frames to known, unknown and all stations, in runs "
    "and in turn, is counted exactly")
{
	/* Stations, of which 9 is unknown. */
	static const unsigned int to[] = {
		1, 1, 1, 9, 9, 2, 9, 2, 2, EVERYBODY, EVERYBODY, 1, 0, 0, 3
	};
	struct t_frame f;
	unsigned int dst, i, got[NPORTS] = { 0 };
	uint32_t bytes, flooded, copies, nself;

	open_ports();
	learn_ports();
	bytes = flooded = copies = nself = 0;
	for (i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
		t_queue(port[0], 60 + i, to[i], 0, i);
		bytes += 60 + i;
		if (to[i] == 0)
			nself++;
		else if (to[i] >= NPORTS) {
			flooded++;
			copies += NPORTS - 1;
		} else
			copies++;
	}
	ATF_REQUIRE_EQ(0, vale_txsync(port[0]));
	for (dst = 1; dst < NPORTS; dst++) {
		ATF_REQUIRE_EQ(0, vale_rxsync(port[dst]));
		for (i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
			if (to[i] != dst && to[i] < NPORTS)
				continue;
			ATF_REQUIRE(t_take(port[dst], &f));
			ATF_CHECK_EQ(i, f.tf_seq);
			ATF_CHECK_EQ(60 + i, f.tf_len);
			got[dst]++;
		}
		t_expect_none(port[dst]);
		T_COUNT(port[dst], RX_FRAME, NPORTS - 1 + got[dst]);
		T_COUNT(port[dst], RX_COPY, NPORTS - 1 + got[dst]);
		T_COUNT(port[dst], RX_BATCH, NPORTS);
	}
	/* With what learn_ports() sent. */
	T_COUNT(port[0], TX_SYNC, 2);
	T_COUNT(port[0], TX_BATCH, 2);
	T_COUNT(port[0], TX_FRAME, 1 + sizeof(to) / sizeof(to[0]));
	T_COUNT(port[0], TX_BYTE, 60 + bytes);
	T_COUNT(port[0], TX_FLOOD, 1 + flooded);
	T_COUNT(port[0], TX_COPY, NPORTS - 1 + copies);
	T_COUNT(port[0], TX_DROP_SELF, nself);
	T_COUNT(port[0], LEARNED, 1);
	close_ports();
}

TEST(multicast, "Broadcast and multicast go to all others, even after a frame "
    "with such a source address")
{
	static const uint8_t group[6] = { 0x01, 0, 0x5e, 0, 0, 1 };
	uint8_t buf[60];
	unsigned int i, n;

	open_ports();
	learn_ports();
	/* From a multicast address, and from zero, to station 1. */
	t_make(buf, sizeof(buf), 1, 2, 1);
	memcpy(buf + 6, group, sizeof(group));
	t_put(port[2], buf, sizeof(buf), sizeof(buf), false);
	memset(buf + 6, 0, 6);
	t_put(port[2], buf, sizeof(buf), sizeof(buf), false);
	ATF_REQUIRE_EQ(0, vale_txsync(port[2]));
	ATF_CHECK_EQ(2, t_drain(port[1]));
	T_COUNT(port[2], LEARNED, 1);

	for (n = 0; n < 2; n++) {
		t_make(buf, sizeof(buf), EVERYBODY, 0, n);
		if (n == 1)
			memcpy(buf, group, sizeof(group));
		t_put(port[0], buf, sizeof(buf), sizeof(buf), false);
		ATF_REQUIRE_EQ(0, vale_txsync(port[0]));
		for (i = 1; i < NPORTS; i++)
			t_expect(port[i], sizeof(buf), 0, n);
		t_expect_none(port[0]);
	}
	T_COUNT(port[0], TX_FLOOD, 3);
	close_ports();
}

TEST(alone, "Frames of the only port of a switch are dropped and counted; a "
    "second port gets later ones")
{
	struct vale_desc *a, *b;

	a = t_open("valet0:a", 0, 0);
	t_send(a, 60, EVERYBODY, 1, 1);
	t_send(a, 60, 2, 1, 2);
	T_COUNT(a, TX_DROP_NODEST, 2);
	T_COUNT(a, TX_FLOOD, 0);
	b = t_open("valet0:b", 0, 0);
	t_send(a, 60, EVERYBODY, 1, 3);
	t_expect(b, 60, 1, 3);
	vale_close(b);
	t_send(a, 60, EVERYBODY, 1, 4);
	T_COUNT(a, TX_DROP_NODEST, 3);
	T_COUNT(a, TX_FRAME, 4);
	vale_close(a);
}

TEST(move, "Frames follow a station to another port")
{
	open_ports();
	learn_ports();
	t_send(port[3], 60, 0, 1, 1);
	t_expect(port[0], 60, 1, 1);
	T_COUNT(port[3], MOVED, 1);
	t_send(port[0], 60, 1, 0, 2);
	t_expect(port[3], 60, 0, 2);
	t_expect_none(port[1]);
	T_COUNT(port[3], LEARNED, 1);
	close_ports();
}

TEST(batches, "A sync of more frames than a batch sends them all in order, "
    "many times round the ring")
{
	struct vale_desc *a, *b;
	struct t_frame f;
	uint32_t round, seq = 0, taken = 0;

	a = t_open("valet0:a", 5000, 0);
	b = t_open("valet0:b", 0, 4500);
	ATF_CHECK_EQ(5000, a->txring->num_slots);
	ATF_CHECK_EQ(4500, b->rxring->num_slots);
	for (round = 0; round < 7; round++) {
		while (seq < (round + 1) * 4000)
			t_queue(a, 60, 1, 0, seq++);
		ATF_REQUIRE_EQ(0, vale_txsync(a));
		ATF_CHECK_EQ(4999, nm_ring_space(a->txring));
		ATF_REQUIRE_EQ(0, vale_rxsync(b));
		for (; t_take(b, &f); taken++)
			ATF_REQUIRE_EQ(taken, f.tf_seq);
		t_expect_none(b);
	}
	ATF_CHECK_EQ(seq, taken);
	T_COUNT(a, TX_BATCH, 7 * 4);
	T_COUNT(a, TX_SYNC, 7);
	/* Two full batches, and two with one frame more than one. */
	for (; round < 9; round++) {
		for (taken = 0; taken < (round == 7 ? 2048 : 1025); taken++)
			t_queue(a, 60, 1, 0, seq++);
		ATF_REQUIRE_EQ(0, vale_txsync(a));
		ATF_CHECK_EQ(taken, t_drain(b));
	}
	T_COUNT(a, TX_BATCH, 7 * 4 + 2 + 2);
	T_COUNT(b, RX_DROP_FULL, 0);
	vale_close(a);
	vale_close(b);
}

TEST(ring_full, "A receiver with a full ring loses later frames, which are "
    "counted, until it releases slots")
{
	struct vale_desc *a, *b, *c;
	struct t_frame f;
	uint32_t seq;

	a = t_open("valet0:a", 64, 64);
	b = t_open("valet0:b", 64, 16);
	c = t_open("valet0:c", 64, 64);
	for (seq = 0; seq < 20; seq++)
		t_queue(a, 60, EVERYBODY, 0, seq);
	ATF_REQUIRE_EQ(0, vale_txsync(a));
	t_send(a, 60, EVERYBODY, 0, 20);
	T_COUNT(b, RX_FRAME, 15);
	T_COUNT(b, RX_DROP_FULL, 6);
	ATF_CHECK_EQ(6, vale_missed(b));
	T_COUNT(b, RX_BATCH, 1);
	T_COUNT(c, RX_DROP_FULL, 0);
	ATF_CHECK_EQ(21, t_drain(c));

	/* Release three slots, and keep the others. */
	ATF_REQUIRE_EQ(0, vale_rxsync(b));
	ATF_CHECK_EQ(15, nm_ring_space(b->rxring));
	for (seq = 0; seq < 3; seq++) {
		ATF_REQUIRE(t_take(b, &f));
		ATF_CHECK_EQ(seq, f.tf_seq);
	}
	ATF_REQUIRE_EQ(0, vale_rxsync(b));
	for (seq = 30; seq < 35; seq++)
		t_send(a, 60, EVERYBODY, 0, seq);
	T_COUNT(b, RX_DROP_FULL, 8);
	ATF_REQUIRE_EQ(0, vale_rxsync(b));
	for (seq = 3; seq < 33; seq = seq == 14 ? 30 : seq + 1) {
		ATF_REQUIRE(t_take(b, &f));
		ATF_CHECK_EQ(seq, f.tf_seq);
	}
	t_expect_none(b);
	T_COUNT(b, RX_FRAME, 18);
	vale_close(a);
	vale_close(b);
	vale_close(c);
}

TEST(port_leaves, "A closed port's addresses and frames are gone; a new port "
    "of that name starts empty")
{
	unsigned int i;

	open_ports();
	learn_ports();
	t_send(port[0], 60, 1, 0, 1);
	vale_close(port[1]);

	t_send(port[0], 60, 1, 0, 2);
	t_expect(port[2], 60, 0, 2);
	t_expect(port[3], 60, 0, 2);

	port[1] = t_open("valet0:new", 0, 0);
	t_expect_none(port[1]);
	for (i = 0; i < VALE_NCOUNTERS; i++)
		ATF_CHECK_EQ(i == VALE_C_RX_SYNC, t_count(port[1], i));
	t_send(port[0], 60, 1, 0, 3);
	for (i = 1; i < NPORTS; i++)
		t_expect(port[i], 60, 0, 3);
	T_COUNT(port[0], TX_FLOOD, 3);
	close_ports();
}

TEST(port_limit, "A switch has up to 254 ports, which all reach each other, "
    "and refuses another until one is closed")
{
	static struct vale_desc *d[VALE_FDB_PORTS];
	const struct vale_params small = { .tx_slots = 8, .rx_slots = 8 };
	struct vale_desc *extra;
	char name[VALE_NAME_SIZE];
	unsigned int i;

	for (i = 0; i < VALE_FDB_PORTS; i++) {
		snprintf(name, sizeof(name), "valet0:p%u", i);
		d[i] = t_open(name, 8, 8);
	}
	ATF_CHECK(vale_open("valet0:extra", &small) == NULL);
	ATF_CHECK_EQ(ENOSPC, errno);
	extra = t_open("valet1:extra", 8, 8);
	vale_close(extra);

	for (i = 0; i < VALE_FDB_PORTS; i++) {
		t_send(d[i], 60, EVERYBODY, i, i);
		T_COUNT(d[i], TX_COPY, VALE_FDB_PORTS - 1);
		t_drain(d[(i + 1) % VALE_FDB_PORTS]);
	}
	for (i = 0; i < VALE_FDB_PORTS; i++)
		t_drain(d[i]);
	for (i = 0; i < VALE_FDB_PORTS; i++) {
		t_send(d[i], 60, VALE_FDB_PORTS - 1 - i, i, i);
		t_expect(d[VALE_FDB_PORTS - 1 - i], 60, i, i);
	}

	vale_close(d[100]);
	d[100] = t_open("valet0:extra", 8, 8);
	t_send(d[0], 60, 100, 0, 9);
	t_expect(d[100], 60, 0, 9);
	for (i = 0; i < VALE_FDB_PORTS; i++)
		vale_close(d[i]);
}

#define	NSWITCHES	64

TEST(switches, "Switches are separate, and each learns addresses for itself")
{
	static struct vale_desc *d[NSWITCHES][2];
	char name[VALE_NAME_SIZE];
	unsigned int i, j, n;

	for (i = 0; i < NSWITCHES; i++) {
		for (j = 0; j < 2; j++) {
			if (i == 0)
				snprintf(name, sizeof(name), "vale:p%u", j);
			else
				snprintf(name, sizeof(name), "valet%u:p%u", i,
				    j);
			d[i][j] = t_open(name, 8, 8);
		}
	}
	for (n = 0; n < 3; n++) {
		for (i = 0; i < NSWITCHES; i++)
			t_send(d[i][n % 2], 60, 1 - n % 2, n % 2, i + n);
		for (i = 0; i < NSWITCHES; i++) {
			t_expect(d[i][1 - n % 2], 60, n % 2, i + n);
			t_expect_none(d[i][n % 2]);
		}
	}
	for (i = 0; i < NSWITCHES; i++) {
		T_COUNT(d[i][0], TX_FLOOD, 1);
		T_COUNT(d[i][1], TX_FLOOD, 0);
		vale_close(d[i][0]);
		vale_close(d[i][1]);
	}
}

TEST_PROGRAM
