/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The receive side of a port: the receive ring, which thread may write to which
 * of its slots, and when the user is woken.
 *
 * A slot of the ring is in one of three states:
 *
 *	rq_cur          rq_tail           rq_next          rq_cur
 *	   |  the user's   |     leased      |     free      |
 *	   +---------------+-----------------+---------------+
 *	     rxsync returns   publish moves     lease moves
 *	     slots: rq_cur    rq_tail           rq_next
 *
 * One slot is always free, so that a full ring differs from an empty one.
 *
 * Leases.  A sender leases slots under rq_lock, fills them without the lock,
 * and ends the lease under the lock.  So any number of senders copy at the same
 * time, and none waits for another's memory, which may be a guest's and not
 * resident.  Slots are published in the order of leases: a sender that ends its
 * lease before an older one only marks it done, and the sender that ends the
 * oldest publishes both.  So all frames of one sender keep their order.  A
 * lease is stored under its first slot, so any number of leases may be done
 * before an older one.
 *
 * Wakeups.  rq_fd is readable while the user may find frames, so the user may
 * start to wait at any time, with any level-triggered call.  rq_fd is written
 * to when the ring turns busy and read when the ring turns idle:
 *
 *	rxsync that finds no slot beyond cur	reads rq_fd; the user is asleep
 *	publish, if the user is asleep		it no longer is; writes rq_fd
 *
 * Both test or change the ring and rq_asleep under rq_lock, so either that
 * rxsync sees the frame, or its sender finds the user asleep.  Only the write
 * comes after the lock is released, and may be late: the user may call rxsync
 * unprompted, take the frame, and be asleep again before the write.  Then
 * rq_woken and rq_drained differ.  The write wakes the user once for nothing,
 * and the next rxsync reads it.
 *
 * An rxsync that finds frames takes no lock, because senders would find that
 * lock taken most of the time: only the user writes rq_cur, and rq_tail is all
 * that the user reads of the senders'.
 *
 * A user that polls (VALE_RING_POLLED) is never asleep, and its rq_fd stays
 * readable: at full load the two system calls would come with every batch.
 * rq_polled is set meanwhile, and changes under the lock.
 *
 * A user in another process (vale_user.h) calls no vale_rxsync() here.  A
 * sender that needs slots takes the slots that the user's CSB has returned, and
 * publish puts the tail there.  Whether the user sleeps is in the CSB, too, so
 * rq_fd, rq_asleep and rq_polled are not used.
 */

#include <sys/eventfd.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "vale_error.h"
#include "vale_pair.h"
#include "vale_probes.h"
#include "vale_rxq.h"
#include "vale_slot.h"
#include "vale_switch.h"

int
vale_rxq_init(struct vale_rxq *rq, uint32_t nslots,
    const struct vale_user *user)
{
	void *runs;
	int error;

	rq->rq_lease = calloc(nslots, sizeof(*rq->rq_lease));
	runs = calloc(1, vale_share_size(nslots - 1));
	error = ENOMEM;
	if (rq->rq_lease == NULL || runs == NULL)
		goto fail;
	rq->rq_user = user;
	rq->rq_fd = user != NULL ? -1 : eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (rq->rq_fd == -1 && user == NULL) {
		error = errno;
		goto fail;
	}
	error = pthread_mutex_init(&rq->rq_lock, NULL);
	if (error != 0)
		goto fail_fd;
	vale_share_init(&rq->rq_share, nslots - 1, runs, NULL);
	rq->rq_nslots = nslots;
	rq->rq_asleep = true;
	return (0);

fail_fd:
	if (rq->rq_fd != -1)
		close(rq->rq_fd);
fail:
	free(runs);
	free(rq->rq_lease);
	return (vale_fail(error));
}

void
vale_rxq_fini(struct vale_rxq *rq)
{
	pthread_mutex_destroy(&rq->rq_lock);
	if (rq->rq_fd != -1)
		close(rq->rq_fd);
	free(rq->rq_share.sh_run);
	free(rq->rq_lease);
}

bool
vale_rxq_take(struct vale_rxq *rq)
{
	uint32_t cur, head, n = rq->rq_nslots;

	vale_rxq_assert(rq);
	MPASS(rq->rq_user != NULL);
	cur = vale_rxq_cur(rq);
	head = atomic_load_acq_32(&rq->rq_user->vu_atok->head);
	if (head >= n || vale_slot_sub(head, cur, n) >
	    vale_slot_sub(atomic_load_32(&rq->rq_tail), cur, n))
		return (false);
	/* Others read rq_cur under rq_lock, too. */
	atomic_store_32(&rq->rq_cur, head);
	return (true);
}

bool
vale_rxq_publish(struct vale_rxq *rq, uint32_t lease)
{
	uint32_t tail = rq->rq_tail;

	vale_rxq_assert(rq);
	/* An open lease. */
	MPASS(lease < rq->rq_nslots && !rq->rq_lease[lease].le_done);
	MPASS(vale_slot_sub(lease, tail, rq->rq_nslots) <
	    vale_slot_sub(rq->rq_next, tail, rq->rq_nslots));
	rq->rq_lease[lease].le_done = true;
	if (lease != tail)
		return (false);
	do {
		tail = rq->rq_lease[tail].le_end;
	} while (tail != rq->rq_next && rq->rq_lease[tail].le_done);
	atomic_store_rel_32(&rq->rq_tail, tail);
	if (rq->rq_user != NULL)
		return (vale_user_show(rq->rq_user, tail, tail));
	if (!rq->rq_asleep)
		return (false);
	rq->rq_asleep = false;
	rq->rq_woken++;
	return (true);
}

/*
 * Make rq_fd readable.  write(2) fails only if the eventfd's counter would
 * overflow, and rq_fd is readable then.
 */
void
vale_rxq_wake(struct vale_pair *pair)
{
	const struct vale_port *port = pair->pa_port;
	const struct vale_rxq *rq = &pair->pa_rx;
	uint64_t one = 1;

	if (rq->rq_user != NULL) {
		port->vp_wake(port->vp_wake_arg, pair->pa_index, false);
		return;
	}
	while (write(rq->rq_fd, &one, sizeof(one)) == -1 && errno == EINTR)
		;
}

/* Let rq_fd become readable with the next frame, as no frame is pending. */
static void
rxq_sleep(struct vale_rxq *rq)
{
	uint64_t n;

	mtx_assert(&rq->rq_lock, MA_OWNED);
	if (rq->rq_woken != rq->rq_drained &&
	    read(rq->rq_fd, &n, sizeof(n)) == sizeof(n))
		rq->rq_drained += n;
	rq->rq_asleep = true;
}

/*
 * Return whether head and cur are in this order between the last head and the
 * last tail.
 */
static bool
rxq_valid(const struct vale_rxq *rq, uint32_t head, uint32_t cur)
{
	uint32_t to_cur, to_head, n = rq->rq_nslots;

	if (head >= n || cur >= n)
		return (false);
	to_head = vale_slot_sub(head, rq->rq_cur, n);
	to_cur = vale_slot_sub(cur, rq->rq_cur, n);
	return (to_head <= to_cur &&
	    to_cur <= vale_slot_sub(rq->rq_shown, rq->rq_cur, n));
}

/*
 * End a sync that concerns senders: the user begins or ends to poll, falls
 * asleep, or has left an invalid head (`bad').  Not inlined, for the registers
 * of vale_rxsync().
 */
static void __attribute__((__noinline__))
rxsync_locked(struct vale_pair *pair, uint32_t cur, bool polled, bool bad)
{
	struct vale_rxq *rq = &pair->pa_rx;

	pthread_mutex_lock(&rq->rq_lock);
	rq->rq_polled = polled;
	if (bad)
		vale_count(pair, VALE_C_RX_BAD_RING, 1);
	/* A frame may have come meanwhile. */
	rq->rq_shown = atomic_load_32(&rq->rq_tail);
	if (cur == rq->rq_shown && !polled)
		rxq_sleep(rq);
	pthread_mutex_unlock(&rq->rq_lock);
}

int
vale_rxsync(struct vale_desc *d)
{
	struct vale_pair *pair = vale_desc_pair(d);
	struct netmap_ring *ring = d->rxring;
	struct vale_rxq *rq = &pair->pa_rx;
	uint32_t cur, freed, head;
	int result = 0;
	bool polled;

	head = atomic_load_32(&ring->head);
	cur = atomic_load_32(&ring->cur);
	polled = (atomic_load_32(&ring->flags) & VALE_RING_POLLED) != 0;
	if (!rxq_valid(rq, head, cur)) {
		head = cur = ring->head = ring->cur = rq->rq_cur;
		errno = EINVAL;
		result = -1;
	}
	freed = vale_slot_sub(head, rq->rq_cur, rq->rq_nslots);
	MPASS(freed <= vale_slot_sub(rq->rq_shown, rq->rq_cur, rq->rq_nslots));
	if (freed > 0)
		atomic_store_rel_32(&rq->rq_cur, head);
	rq->rq_shown = atomic_load_acq_32(&rq->rq_tail);
	if (polled != rq->rq_polled || result != 0 ||
	    (cur == rq->rq_shown && !polled))
		rxsync_locked(pair, cur, polled, result != 0);
	atomic_store_64(&rq->rq_syncs, rq->rq_syncs + 1);
	VALE_PROBE(pair, RX_SYNC, freed,
	    vale_slot_sub(rq->rq_shown, head, rq->rq_nslots));
	ring->tail = rq->rq_shown;
	return (result);
}
