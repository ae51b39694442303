/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What senders see of a switch that changes, and who waits: only the change.
 * Without threads: what another thread does is done where the change waits, in
 * sched_yield(2).
 */

#include <sys/param.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include <atf-c.h>

#include "setting.h"
#include "test.h"
#include "vale_switch.h"
#include "vale_view.h"
#include "vale_test.h"
#include "wrap.h"

/* What is done while a change waits; NULL: nothing. */
static void		(*meanwhile)(void);
static struct vale_pair	*sending;	/* the sender that it waits for */
static unsigned int	 yields;
static struct vale_desc	*d[4];

/* Sanitizers call this, too. */
WRAP(int, sched_yield, void)
{
	void (*fn)(void) = meanwhile;

	if (fn == NULL)
		return (__real_sched_yield());
	meanwhile = NULL;
	yields++;
	fn();
	return (0);
}

static void
enter_again(void)
{
	vale_view_enter(&sending->pa_tx, &sending->pa_port->vp_switch->vs_view);
}

/* Have `port' be in the switch, and fn() done while a change waits for it. */
static void
enter(struct vale_desc *port, void (*fn)(void))
{
	yields = 0;
	meanwhile = fn;
	sending = vale_desc_pair(port);
	enter_again();
}

static void
leave(void)
{
	vale_view_leave(&sending->pa_tx);
}

static void
open_all(void)
{
	d[0] = t_open("valeview:a", 64, 64);
	d[1] = t_open("valeview:b", 64, 64);
	d[2] = t_open("valeview:c", 64, 64);
	d[3] = t_open("valeother:d", 64, 64);
}

static void
close_all(void)
{
	unsigned int i;

	for (i = 0; i < nitems(d); i++)
		if (d[i] != NULL)
			vale_close(d[i]);
}

/* All learn where each other is. */
static void
learn(void)
{
	unsigned int i;

	for (i = 0; i < 3; i++)
		t_send(d[i], 60, EVERYBODY, i, 1);
	for (i = 0; i < 3; i++)
		ATF_CHECK_EQ(2, t_drain(d[i]));
}

TEST(change_waits, "A change waits for each port that sends")
{
	unsigned int i;

	open_all();
	for (i = 0; i < 3; i++) {
		enter(d[i], leave);
		ATF_REQUIRE_EQ(0, vale_set(d[0]->common->name, "private", i %
		    2 ? "on" : "off"));
		ATF_CHECK_EQ_MSG(1, yields, "port %u", i);
	}
	/* Nobody sends. */
	meanwhile = leave;
	ATF_REQUIRE_EQ(0, vale_set(d[0]->common->name, "private", "off"));
	ATF_CHECK(meanwhile != NULL);
	meanwhile = NULL;
	close_all();
}

static void
again(void)
{
	vale_view_leave(&sending->pa_tx);
	enter_again();
}

TEST(busy, "A change does not wait for a sender that has left and is there "
    "again, and has the change then")
{
	open_all();
	enter(d[1], again);
	ATF_REQUIRE_EQ(0, vale_set(d[0]->common->name, "private", "on"));
	ATF_CHECK_EQ(1, yields);
	ATF_CHECK(sending->pa_tx.vt_view->vi_private[0]);
	leave();
	close_all();
}

static void
former_vlan(void)
{
	t_send(d[2], 60, 1, 2, 5);
	leave();
}

TEST(vlan_changes, "While a change of a port's VLAN waits, its address in the "
    "former one leads nobody there to the port")
{
	unsigned int i;

	open_all();
	for (i = 0; i < 3; i++)
		ATF_REQUIRE_EQ(0, vale_set(d[i]->common->name, "vlan", "10"));
	learn();
	enter(d[0], former_vlan);
	ATF_REQUIRE_EQ(0, vale_set(d[1]->common->name, "vlan", "20"));
	ATF_CHECK_EQ(1, yields);
	t_expect_none(d[1]);
	t_expect(d[0], 60, 2, 5);
	T_COUNT(d[2], TX_FLOOD, 2);
	close_all();
}

static int
nothing(const struct vale_port_info *info __unused, void *arg)
{
	++*(unsigned int *)arg;
	return (0);
}

static int
nothing_addr(const struct vale_fdb_entry *fe __unused, void *arg)
{
	++*(unsigned int *)arg;
	return (0);
}

/* Everything that must not wait for the change, or the sender. */
static void
others(void)
{
	uint64_t counters[VALE_NCOUNTERS];
	unsigned int ports = 0, addrs = 0;
	struct vale_desc *other;

	/* Forwarding, also to the port that changes. */
	t_send(d[1], 60, 0, 1, 2);
	t_send(d[1], 60, EVERYBODY, 1, 3);
	ATF_CHECK_EQ(2, t_drain(d[0]));
	ATF_CHECK_EQ(1, t_drain(d[2]));
	/* Lists and counters. */
	vale_list(NULL, nothing, &ports);
	ATF_CHECK_EQ(4, ports);
	ATF_CHECK_EQ(0, vale_fdb_list("valeview", nothing_addr, &addrs));
	ATF_CHECK_EQ(3, addrs);
	ATF_CHECK_EQ(0, vale_port_counters(d[0]->common->name, counters));
	ATF_CHECK_EQ(0, vale_missed(d[0]));
	/* Settings: to read them, and those that are not in views. */
	ATF_CHECK_STREQ("0", setting_of(d[0]->common->name, "limit"));
	ATF_CHECK_STREQ("300", setting_of("valeview", "ageing"));
	ATF_CHECK_EQ(0, vale_set(d[1]->common->name, "rate", "1Gbit/s"));
	ATF_CHECK_EQ(0, vale_set(d[1]->common->name, "weight", "2"));
	ATF_CHECK_EQ(0, vale_set(d[1]->common->name, "limit", "2"));
	ATF_CHECK_EQ(0, vale_set("valeview", "batch", "128"));
	ATF_CHECK_EQ(0, vale_set("valeview", "ageing", "100"));
	/* Changes of another switch. */
	ATF_CHECK_EQ(0, vale_set(d[3]->common->name, "private", "on"));
	other = t_open("valeother:e", 64, 64);
	ATF_CHECK_EQ(0, vale_set_header(other, VALE_HEADER_FRAME));
	vale_close(other);
	leave();
}

static void	change_private(void);
static void	change_mirror(void);
static void	change_open(void);
static void	change_monitor(void);

static void
change_private(void)
{
	ATF_CHECK_EQ(0, vale_set(d[2]->common->name, "private", "on"));
}

static void
change_mirror(void)
{
	ATF_CHECK_EQ(0, vale_set(d[2]->common->name, "mirror", "no"));
}

static void
change_open(void)
{
	const struct vale_params params = { .tx_slots = 64, .rx_slots = 64 };
	struct vale_desc *new;

	/* It is in the list when the change waits. */
	vale_close(d[3]);
	d[3] = NULL;
	new = vale_open("valeview:d", &params);
	ATF_REQUIRE(new != NULL);
	d[3] = new;
	ATF_REQUIRE_EQ(1, yields);
	vale_close(d[3]);
	d[3] = t_open("valeother:d", 64, 64);
}

static void
change_monitor(void)
{
	const struct vale_params params = { .monitor = VALE_MIRROR_BOTH };
	struct vale_desc *new;

	new = vale_open(d[2]->common->name, &params);
	ATF_REQUIRE(new != NULL);
	vale_close(new);
}

/* As others(), where there is another port. */
static void
others_open(void)
{
	unsigned int ports = 0;

	t_send(d[1], 60, 0, 1, 2);
	ATF_CHECK_EQ(1, t_drain(d[0]));
	vale_list(NULL, nothing, &ports);
	ATF_CHECK_EQ(4, ports);
	leave();
}

TEST(nobody_else_waits, "While a change waits for a sender, others forward, "
    "lists, counters and settings are had, and other switches change")
{
	static const struct {
		void	(*change)(void);
		void	(*meanwhile)(void);
	} changes[] = {
		{ change_private, others },
		{ change_mirror, others },
		{ change_monitor, others },
		{ change_open, others_open },
	};
	unsigned int i;

	for (i = 0; i < nitems(changes); i++) {
		open_all();
		learn();
		enter(d[2], changes[i].meanwhile);
		changes[i].change();
		ATF_CHECK_EQ_MSG(1, yields, "change %u", i);
		close_all();
	}
}

/* Port 0 is being removed: nothing is delivered there, nor lost to others. */
static void
removing(void)
{
	struct vale_port *port = vale_desc_port(d[0]);
	unsigned int i, ports = 0;

	ATF_CHECK(((const struct vale_view *)
	    port->vp_switch->vs_view)->vi_port[0] == NULL);
	/* Batches of several frames with the same addresses. */
	for (i = 2; i < 8; i++) {
		t_queue(d[1], 60, 0, 1, i);
		if (i % 3 == 1)
			ATF_REQUIRE_EQ(0, vale_txsync(d[1]));
	}
	ATF_CHECK_EQ(0, t_count(d[1], VALE_C_TX_DROP_NODEST));
	T_COUNT(d[1], TX_FLOOD, 1 + 6);
	vale_list(NULL, nothing, &ports);
	ATF_CHECK_EQ(3, ports);
	/* The sender still has it. */
	ATF_CHECK(sending->pa_tx.vt_view->vi_port[0] == port);
	leave();
}

TEST(removed, "A port that is removed stays until no sender has it; its frames "
    "are flooded, and at the end its addresses are gone")
{
	unsigned int addrs = 0;
	struct t_frame f;
	uint32_t seq;

	open_all();
	learn();
	enter(d[2], removing);
	vale_close(d[0]);
	d[0] = NULL;
	ATF_CHECK_EQ(1, yields);
	ATF_REQUIRE_EQ(0, vale_rxsync(d[2]));
	for (seq = 2; seq < 8; seq++) {
		ATF_REQUIRE_MSG(t_take(d[2], &f), "frame %u", seq);
		ATF_CHECK_EQ(seq, f.tf_seq);
	}
	t_expect_none(d[2]);
	ATF_CHECK_EQ(0, vale_fdb_list("valeview", nothing_addr, &addrs));
	ATF_CHECK_EQ(2, addrs);
	close_all();
}

/* Port 0 changes, and is there. */
static void
changing(void)
{
	t_send(d[1], 60, 0, 1, 2);
	leave();
}

static void
take_none(void *arg __unused, struct frame_source *frames __unused)
{
}

TEST(changed, "A port whose sink or header changes gets frames; the change waits "
    "until no sender uses the old one")
{
	unsigned int i;

	for (i = 0; i < 3; i++) {
		open_all();
		learn();
		enter(d[2], changing);
		ATF_REQUIRE_EQ(0, i == 0 ?
		    vale_set_header(d[0], VALE_HEADER_FRAME) :
		    vale_set_sink(d[0], i == 1 ? take_none : NULL, NULL));
		ATF_CHECK_EQ(1, yields);
		t_expect(d[0], 60, 1, 2);
		t_expect_none(d[2]);
		close_all();
	}
}

TEST(mirrors, "A switch has up to 512 mirrors")
{
	const struct vale_params params = { .tx_slots = 2, .rx_slots = 2,
	    .monitor = VALE_MIRROR_TX };
	struct vale_desc *monitor[VALE_MIRRORS], *a;
	unsigned int i;

	a = t_open("valemirrors:a", 64, 64);
	for (i = 0; i < VALE_MIRRORS; i++) {
		monitor[i] = vale_open("valemirrors:a", &params);
		ATF_REQUIRE_MSG(monitor[i] != NULL, "monitor %u: %s", i,
		    strerror(errno));
	}
	ATF_CHECK_EQ(NULL, vale_open("valemirrors:a", &params));
	ATF_CHECK_EQ(ENOSPC, errno);
	vale_close(monitor[7]);
	monitor[7] = vale_open("valemirrors:a", &params);
	ATF_REQUIRE(monitor[7] != NULL);
	t_send(a, 60, EVERYBODY, 1, 1);
	T_COUNT(a, TX_MIRROR, VALE_MIRRORS);
	for (i = 0; i < VALE_MIRRORS; i++) {
		ATF_CHECK_EQ(1, t_drain(monitor[i]));
		vale_close(monitor[i]);
	}
	vale_close(a);
}

TEST_PROGRAM
