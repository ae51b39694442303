/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The work of an adapter's thread between its start and its end (adapter.c).
 *
 * The thread plays all of the model's parts.  It takes register accesses from
 * the client's messages.  Event handlers only set flags; after all of them,
 * adapter_work() sends and receives one batch each.  If more is pending then,
 * the loop does not wait for events before the next round.  So neither
 * direction waits until the other is idle, and a message waits for at most one
 * batch each way.
 *
 * The thread sends interrupts outside of the model: the client may make its
 * eventfd block, and other threads may wait for the model's locks.
 *
 * Other threads call only adapter_post().
 */

#include <sys/mman.h>

#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <syslog.h>
#include <unistd.h>

#include "adapter_impl.h"
#include "adapter_keep.h"
#include "e82545.h"
#include "loop.h"

/* Batches that adapter_end() receives: more than a port's ring holds. */
#define	DRAIN_BATCHES	1024
/* Rounds before adapter_end(): the last one looks for events anew. */
#define	END_ROUNDS	2

void
adapter_post(struct adapter *ad)
{
	uint64_t one = 1;

	atomic_thread_fence_rel();
	if (atomic_swap_32(&ad->work_posted, 1) == 0 &&
	    write(ad->work_fd, &one, sizeof(one)) != (ssize_t)sizeof(one))
		atomic_store_rel_32(&ad->work_posted, 0);
}

/* Have one line for a client whose memory its guest cannot use. */
static void
adapter_unshared(struct adapter *ad, const char *what, uint64_t gpa)
{
	if (ad->unshared)
		return;
	ad->unshared = true;
	adapter_log(ad, LOG_WARNING, "%s at %#" PRIx64 ": QEMU needs "
	    "memory-backend-memfd with share=on", what, gpa);
}

/*
 * Check, until something was sent, for descriptors of zeros: a guest whose
 * memory the client shares, but has itself as a private copy, seems to post
 * these.
 */
static void
adapter_check(struct adapter *ad)
{
	const uint64_t *desc;
	uint64_t gpa;
	uint32_t head;

	head = e82545_read(ad->dev, E82545_BAR_MEM, E82545_TDH, 4);
	if (head == e82545_read(ad->dev, E82545_BAR_MEM, E82545_TDT, 4)) {
		/* Both are 0 before the first packet. */
		ad->checked = head != 0;
		return;
	}
	if (!vfu_pci_busmaster(&ad->vfu.vdev_pci))
		return;
	gpa = e82545_read(ad->dev, E82545_BAR_MEM, E82545_TDBAH, 4) << 32 |
	    (e82545_read(ad->dev, E82545_BAR_MEM, E82545_TDBAL, 4) &
	    E82545_DBAL_MASK);
	gpa += head * sizeof(union e82545_txd);
	desc = peer_mem_addr(&ad->vfu.vdev_mem, gpa, sizeof(union e82545_txd),
	    PROT_READ);
	if (desc == NULL || (desc[0] | desc[1]) != 0)
		return;
	ad->checked = true;
	adapter_unshared(ad, "the guest's transmit descriptors are not in its "
	    "memory", gpa);
}

/*
 * Send a batch, if one is pending.  Returns true if it must be called again.  A
 * poll of the guest's CSB is far cheaper than a turn of the event loop.
 */
static bool
adapter_tx(struct adapter *ad)
{
	enum e82545_tx_state state;
	int i = 0;

	do {
		state = e82545_tx(ad->dev);
	} while (state == E82545_TX_POLL && ++i < E82545_TX_POLLS);
	if (state == E82545_TX_YIELD)
		sched_yield();
	if (state == E82545_TX_IDLE && !ad->checked)
		adapter_check(ad);
	return (state != E82545_TX_IDLE);
}

/* Return whether there is a batch to send. */
static bool
adapter_sends(const struct adapter *ad)
{
	return (ad->tx_wanted && !ad->quiesced);
}

/* Send and receive a batch. */
static void
adapter_batches(struct adapter *ad)
{
	adapter_assert_thread(ad);
	adapter_count(ad, ADAPTER_C_WAKEUP);
	if (adapter_sends(ad)) {
		ad->tx_wanted = false;
		if (adapter_tx(ad))
			ad->tx_wanted = true;
	}
	if (ad->rx_wanted) {
		ad->rx_wanted = false;
		switch (e82545_rx(ad->dev)) {
		case E82545_RX_IDLE:
			adapter_port_events(ad, true);
			break;
		case E82545_RX_MORE:
			ad->rx_wanted = true;
			break;
		case E82545_RX_STALLED:
			adapter_port_events(ad, false);
			break;
		}
	}
	if (adapter_sends(ad) || ad->rx_wanted)
		loop_round_within(0);
}

/* Set a member that the main thread waits for. */
static void
adapter_has(struct adapter *ad, bool *what)
{
	pthread_mutex_lock(&ad->mtx);
	*what = true;
	pthread_mutex_unlock(&ad->mtx);
}

/*
 * Receive what is in the port, and save the state: the process ends.  Adapters
 * send nothing any more, but programs and interfaces may go on to.
 */
static void __dead2
adapter_end(struct adapter *ad)
{
	int i;

	for (i = 0; i < DRAIN_BATCHES; i++) {
		if (e82545_rx(ad->dev) != E82545_RX_MORE)
			break;
	}
	adapter_keep_save(ad);
	adapter_has(ad, &ad->saved);
	for (;;)
		poll(NULL, 0, -1);
}

void
adapter_work(void *arg)
{
	struct adapter *ad = arg;

	/* Other threads may have raised interrupts; so may the batches. */
	vfu_irq_flush(&ad->vfu.vdev_irq);
	adapter_announce(ad);
	adapter_batches(ad);
	vfu_irq_flush(&ad->vfu.vdev_irq);
	adapter_port_check(ad);
	vfu_server_round(&ad->vfu);
	if (ad->end_rounds == 0)
		return;
	if (--ad->end_rounds == 0)
		adapter_end(ad);
	loop_round_within(0);
}

/* Do what the main thread has asked for. */
static void
adapter_changes(struct adapter *ad)
{
	struct adapter_config config;
	struct adapter_change ch;
	int error = 0;

	pthread_mutex_lock(&ad->mtx);
	ch = ad->change;
	ad->change.ch_pending = false;
	ad->change.ch_move = NULL;
	pthread_mutex_unlock(&ad->mtx);
	if (ch.ch_quiesce)
		adapter_has(ad, &ad->quiesced);
	/*
	 * Descriptors that the client has posted meanwhile may take frames that
	 * are in the port: its messages come first.
	 */
	if (ch.ch_save && ad->end_rounds == 0)
		ad->end_rounds = END_ROUNDS;
	if (ch.ch_move != NULL)
		error = adapter_port_move(ad, ch.ch_move);
	if (ch.ch_pending && error == 0) {
		pthread_mutex_lock(&ad->mtx);
		config = ad->config;
		pthread_mutex_unlock(&ad->mtx);
		e82545_change(ad->dev, config.ac_itr_256ns,
		    config.ac_itr_min_256ns,
		    adapter_net_frame_max(config.ac_mtu));
		adapter_port_direct(ad, config.ac_direct);
		loop_poll(config.ac_poll_us * NS_PER_US);
	}
	if (ch.ch_move == NULL)
		return;
	pthread_mutex_lock(&ad->mtx);
	ad->error = error;
	ad->moved = true;
	pthread_cond_signal(&ad->ready);
	pthread_mutex_unlock(&ad->mtx);
}

void
adapter_work_event(int fd, void *arg)
{
	struct adapter *ad = arg;
	uint64_t gpa, n;

	/* Pairs with adapter_post(): what that thread did before is visible. */
	if (read(fd, &n, sizeof(n)) == (ssize_t)sizeof(n)) {
		(void)atomic_swap_32(&ad->work_posted, 0);
		atomic_thread_fence_acq();
	}
	adapter_port_show_link(ad);
	adapter_changes(ad);
	vfu_server_listen(&ad->vfu);
	peer_mem_drop(&ad->vfu.vdev_mem);
	if (peer_mem_gone(&ad->vfu.vdev_mem, &gpa)) {
		adapter_log(ad, LOG_WARNING, "client dropped: its memory at "
		    "%#" PRIx64 " is gone", gpa);
		vfu_count(&ad->vfu, VFU_C_GONE);
		vfu_server_drop(&ad->vfu);
	}
	if (peer_mem_refused(&ad->vfu.vdev_mem, &gpa))
		adapter_unshared(ad, "the guest uses memory that its client "
		    "does not share,", gpa);
	if (peer_mem_join(&ad->vfu.vdev_mem)) {
		vfu_count(&ad->vfu, VFU_C_DMA_JOIN);
		ad->tx_wanted = ad->rx_wanted = true;
	}
}

void
adapter_timer_event(int fd, void *arg)
{
	struct adapter *ad = arg;
	uint64_t n;

	if (read(fd, &n, sizeof(n)) == (ssize_t)sizeof(n))
		e82545_timer(ad->dev);
}
