/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * e82545_rx_direct(): frames that another thread puts into the receive ring.
 * Here their source is the network of e82545_host.h.
 */

#include <sys/param.h>

#include <pthread.h>
#include <string.h>

#include "e82545_guest.h"
#include "e82545_impl.h"
#include "test.h"
#include "wait_until.h"

/* Pass all waiting frames to e82545_rx_direct(). */
static void
direct(struct host *h)
{
	e82545_rx_direct(h->dev, &h->source);
}

static void
offer(struct host *h, unsigned int from, unsigned int to)
{
	uint8_t frame[60];

	for (; from < to; from++) {
		host_make_frame(frame, sizeof(frame), host_mac, from);
		host_inject(h, frame, sizeof(frame), 1);
	}
}

static void
taken(struct host *h, unsigned int from, unsigned int to)
{
	uint8_t frame[60];

	for (; from < to; from++) {
		host_make_frame(frame, sizeof(frame), host_mac, from);
		check_taken(h, frame, sizeof(frame));
	}
}

HOST_TEST(delivered, rx_up(64, 2048), "Direct frames of another thread are "
    "received like those of the network")
{
	unsigned int raised = host_raised(h), syncs = h->nsync;

	offer(h, 0, 10);
	direct(h);
	ATF_CHECK_EQ(0, host_rx_pending(h));
	ATF_CHECK_EQ(10, host_counter(h, E82545_C_RX_FRAME));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_BATCH));
	ATF_CHECK_EQ(10, host_rd(h, E82545_RDH));
	ATF_CHECK_EQ(10, host_rd(h, E82545_GPRC));
	ATF_CHECK_EQ(raised + 1, host_raised(h));
	ATF_CHECK((host_rd(h, E82545_ICR) & E82545_ICR_RXT0) != 0);
	/* The receive thread does not use the network. */
	ATF_CHECK_EQ(syncs, h->nsync);
	taken(h, 0, 10);
	check_none(h);
}

HOST_TEST(refused, rx_up(64, 2048), "No frame is taken with bus mastering off, "
    "or in a pause")
{
	e82545_bus_master(h->dev, false);
	offer(h, 0, 4);
	direct(h);
	ATF_CHECK_EQ(4, host_rx_pending(h));
	e82545_bus_master(h->dev, true);
	e82545_pause(h->dev);
	direct(h);
	ATF_CHECK_EQ(4, host_rx_pending(h));
	e82545_resume(h->dev);
	e82545_bus_master(h->dev, false);
	direct(h);
	ATF_CHECK_EQ(4, host_rx_pending(h));
	check_none(h);
	e82545_bus_master(h->dev, true);
	direct(h);
	ATF_CHECK_EQ(0, host_rx_pending(h));
	taken(h, 0, 4);
	/* A reset does not change the setting, and turns the receiver off. */
	e82545_reset(h->dev);
	offer(h, 0, 1);
	direct(h);
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_DISABLED));
}

HOST_TEST(csb, guest_up(64, 16, 2048, 1), "Interrupts, buffers and kicks "
    "follow the CSB")
{
	uint8_t buf[2048];
	unsigned int i;

	CSB_SET(h, guest_need_rxkick, 0);
	for (i = 0; i < 20; i++) {
		offer(h, 3 * i, 3 * i + 3);
		direct(h);
		taken(h, 3 * i, 3 * i + 3);
		ATF_CHECK(!guest_give(h));
	}
	ATF_CHECK_EQ(0, host_raised(h));
	ATF_CHECK_EQ(20, host_counter(h, E82545_C_INTR_SAVED));
	ATF_CHECK(host_counter(h, E82545_C_RX_KICK_SAVED) > 0);
	CSB_SET(h, guest_need_rxkick, 1);
	offer(h, 0, 1);
	direct(h);
	ATF_CHECK_EQ(1, host_raised(h));
	taken(h, 0, 1);
	guest_give(h);

	/* If the ring is empty, only the receive thread asks for a kick, */
	offer(h, 0, 20);
	direct(h);
	ATF_CHECK_EQ(5, host_rx_pending(h));
	ATF_CHECK_EQ(NET_PARAVIRT_NONE, CSB_GET(h, host_rxkick_at));
	ATF_CHECK_EQ(E82545_RX_STALLED, e82545_rx(h->dev));
	i = CSB_GET(h, host_rxkick_at);
	ATF_CHECK(i != NET_PARAVIRT_NONE);
	/* and a direct call does not cancel that. */
	taken(h, 0, 4);
	ATF_CHECK(!guest_give(h));
	direct(h);
	ATF_CHECK_EQ(i, CSB_GET(h, host_rxkick_at));
	ATF_CHECK_EQ(5, host_rx_pending(h));
	while (host_rx_take(h, buf, sizeof(buf), NULL) > 0)
		continue;
	ATF_CHECK(guest_give(h));
	direct(h);
	ATF_CHECK_EQ(0, host_rx_pending(h));
	ATF_CHECK_EQ(NET_PARAVIRT_NONE, CSB_GET(h, host_rxkick_at));
	taken(h, 15, 20);
}

/*
 * What must not return while a call is in progress.  The call stops in its
 * middle until the thread that calls one of these waits for its lock.
 */
static bool in_call;			/* atomic */

static void
stop_in_call(struct host *h)
{
	if (!__atomic_exchange_n(&in_call, true, __ATOMIC_SEQ_CST))
		wait_until(lock_has_waiter(&h->dev->rx_mtx),
		    "no thread waits for the call");
}

static void *
direct_thread(void *arg)
{
	direct(arg);
	return (NULL);
}

static void
reset_by_ctrl(struct host *h)
{
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
}

static void
reset_by_pci(struct host *h)
{
	e82545_reset(h->dev);
}

static void
pause_model(struct host *h)
{
	e82545_pause(h->dev);
}

static void
receive_off(struct host *h)
{
	host_wr(h, E82545_RCTL, 0);
}

static void
move_ring(struct host *h)
{
	host_wr(h, E82545_RDBAL, 0);
}

static void
refuse(struct host *h)
{
	e82545_bus_master(h->dev, false);
}

TEST(wait_for_call, "Reset, pause, and writes that stop or move the ring wait "
    "for a call in progress")
{
	static void (*const how[])(struct host *) = {
		reset_by_ctrl, reset_by_pci, pause_model, receive_off,
		move_ring, refuse
	};
	struct host *h;
	pthread_t thread;
	unsigned int i;

	for (i = 0; i < nitems(how); i++) {
		h = rx_up(64, 2048);
		offer(h, 0, 3);
		in_call = false;
		h->rx_hook = stop_in_call;
		ATF_REQUIRE_EQ(0, pthread_create(&thread, NULL, direct_thread,
		    h));
		wait_until(__atomic_load_n(&in_call, __ATOMIC_SEQ_CST),
		    "no call: %u", i);
		how[i](h);
		ATF_CHECK_MSG(host_rx_done(h, 2), "%u", i);
		pthread_join(thread, NULL);
		host_destroy(h);
	}
}

/* A source of one frame. */
static uint8_t one_frame[60];
static bool one_taken;

static bool
one_peek(struct frame_source *source __unused, struct frame *frame)
{
	if (one_taken)
		return (false);
	frame->f_iov[0].iov_base = one_frame;
	frame->f_iov[0].iov_len = sizeof(one_frame);
	frame_set(frame, 1, sizeof(one_frame));
	return (true);
}

static void
one_next(struct frame_source *source __unused)
{
	one_taken = true;
}

static struct frame_source one_source = { one_peek, one_next };
static bool batch_may_end;		/* atomic */

static void
stay_in_batch(struct host *h __unused)
{
	__atomic_store_n(&in_call, true, __ATOMIC_SEQ_CST);
	wait_until(__atomic_load_n(&batch_may_end, __ATOMIC_SEQ_CST),
	    "a direct call waits for a batch");
}

static void *
batch_thread(void *arg)
{
	struct host *h = arg;

	(void)e82545_rx(h->dev);
	return (NULL);
}

HOST_TEST(busy, rx_up(64, 2048), "A direct call does not wait for a batch in "
    "progress, and leaves its frames")
{
	pthread_t thread;

	host_make_frame(one_frame, sizeof(one_frame), host_mac, 9);
	offer(h, 0, 1);
	h->rx_hook = stay_in_batch;
	ATF_REQUIRE_EQ(0, pthread_create(&thread, NULL, batch_thread, h));
	wait_until(__atomic_load_n(&in_call, __ATOMIC_SEQ_CST), "no batch");
	e82545_rx_direct(h->dev, &one_source);
	ATF_CHECK(!one_taken);
	__atomic_store_n(&batch_may_end, true, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
	e82545_rx_direct(h->dev, &one_source);
	ATF_CHECK(one_taken);
	taken(h, 0, 1);
	check_taken(h, one_frame, sizeof(one_frame));
}

HOST_TEST(waiter, rx_up(64, 2048), "A direct call does not overtake a thread "
    "that waits for the lock")
{
	offer(h, 0, 1);
	pthread_mutex_lock(&h->dev->rx_mtx.gate);
	direct(h);
	ATF_CHECK_EQ(1, host_rx_pending(h));
	pthread_mutex_unlock(&h->dev->rx_mtx.gate);
	direct(h);
	ATF_CHECK_EQ(0, host_rx_pending(h));
}

TEST_PROGRAM
