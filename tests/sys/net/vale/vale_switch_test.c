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

TEST_PROGRAM
