/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The assertions of the model: each call breaks a rule of e82545_impl.h in a
 * child process, and the child must abort.
 */

#include <atf-c.h>

#include "aborts.h"
#include "e82545_check.h"
#include "e82545_csb_impl.h"
#include "e82545_intr.h"
#include "e82545_loop.h"

static void
write_unlocked(void *arg)
{
	e82545_reg_set(arg, E82545_TDT, 0);
}

static void
raise_unlocked(void *arg)
{
	e82545_intr_raise(arg, E82545_ICR_LSC);
}

static void
count_tx_unlocked(void *arg)
{
	e82545_count(arg, E82545_C_TX_FRAME, 1);
}

static void
count_rx_unlocked(void *arg)
{
	struct e82545 *dev = arg;

	e82545_lock(&dev->tx_mtx);
	e82545_count(dev, E82545_C_RX_FRAME, 1);
}

static void
reset_without_ring(void *arg)
{
	struct e82545 *dev = arg;

	pthread_mutex_lock(&dev->reg_mtx);
	e82545_txq_reset(dev);
}

static void
release_without_ring(void *arg)
{
	struct e82545 *dev = arg;

	e82545_lock(&dev->tx_mtx);
	pthread_mutex_lock(&dev->reg_mtx);
	csb_release(dev);
}

static void
loop_with_rx(void *arg)
{
	const struct frame frame = { .f_niov = 0 };

	e82545_lock_all(arg);
	(void)e82545_loop_send(arg, &frame);
}

HOST_TEST(locks, host_create(1 << 20), "Assertions fire if a function is "
    "called without the locks of its contract, or with one too many")
{
	ATF_CHECK(aborts(write_unlocked, h->dev, "reg_mtx not owned"));
	ATF_CHECK(aborts(raise_unlocked, h->dev, "reg_mtx not owned"));
	ATF_CHECK(aborts(count_tx_unlocked, h->dev, "tx_mtx.mtx not owned"));
	ATF_CHECK(aborts(count_rx_unlocked, h->dev, "rx_mtx.mtx not owned"));
	ATF_CHECK(aborts(reset_without_ring, h->dev, "tx_mtx.mtx not owned"));
	ATF_CHECK(aborts(release_without_ring, h->dev,
	    "rx_mtx.mtx not owned"));
	ATF_CHECK(aborts(loop_with_rx, h->dev, "rx_mtx.mtx owned"));
}

static void
write_beyond(void *arg)
{
	e82545_lock_all(arg);
	e82545_reg_set(arg, E82545_NREGS * 4, 0);
}

static void
begin_paused(void *arg)
{
	struct e82545 *dev = arg;

	e82545_pause(dev);
	e82545_lock_all(dev);
	csb_tx_begin(dev);
}

static void
notify_off(void *arg)
{
	e82545_lock_all(arg);
	csb_rx_notify(arg, 0);
}

static void
skip_unread(void *arg)
{
	struct e82545 *dev = arg;

	csb_rx_forget(&dev->csb, NULL);
	csb_rx_move(&dev->csb, CSB_RX_ON);
}

static void
next_of_none(void *arg)
{
	struct e82545 *dev = arg;

	e82545_lock(&dev->rx_mtx);
	frame_next(e82545_loop_source(dev));
}

HOST_TEST(states, host_create(1 << 20), "Assertions fire: a register that does "
    "not exist, a batch while paused, a notification without a CSB, an old "
    "index of the CSB left unread, a frame taken from an empty queue")
{
	ATF_CHECK(aborts(write_beyond, h->dev, "E82545_NREGS"));
	ATF_CHECK(aborts(begin_paused, h->dev, "e82545_dma(dev)"));
	ATF_CHECK(aborts(notify_off, h->dev, "c->rx != NULL"));
	ATF_CHECK(aborts(skip_unread, h->dev, "CSB_RX_UNREAD"));
	ATF_CHECK(aborts(next_of_none, h->dev, "loop_pending(loop)"));
}

TEST_PROGRAM
