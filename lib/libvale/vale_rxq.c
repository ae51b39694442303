/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The receiving end of a port: its receive ring, who may write where in it,
 * and when its user is woken.
 *
 * The ring's slots, going round, are in one of four states:
 *
 *	rq_cur          rq_tail           rq_next          rq_cur
 *	   |   the user's  |  being filled   |     free      |
 *	   +---------------+-----------------+---------------+
 *	     rxsync takes     publish moves     lease moves
 *	     back: rq_cur     rq_tail           rq_next
 *
 * One slot always stays free, or full would look like empty.
 *
 * Leases.  A sender reserves slots under rq_lock, fills them without it, and
 * ends the lease under it: so any number of senders copy at the same time,
 * and none waits for another's memory, which is a guest's and may be slow to
 * come in.  Slots become the user's in the order of leases: a sender that
 * ends its lease before an older one leaves it marked, and whoever ends the
 * oldest publishes both.  All frames of one sender hence keep their order.  A
 * lease is known by its first slot, and so there is a place for every one, no
 * matter how many end while an older one goes on.
 *
 * Waking.  rq_fd is readable exactly while the user may find something, so
 * that waiting on it may start at any time, by any level-triggered means, and
 * it is written and read only at the turns from idle to busy and back:
 *
 *	rxsync that finds nothing beyond cur	reads rq_fd empty, is asleep
 *	publish to one that is asleep		no longer asleep, writes rq_fd
 *
 * Both happen under rq_lock, after their look at, or change of, the ring; so
 * a frame is either seen by that rxsync or finds the user asleep.  Only the
 * write itself comes after the lock is dropped.  It may be late: the user
 * wakes by itself, takes the frame and goes to sleep before it is there to be
 * read.  rq_woken and rq_drained tell; the write then wakes the user once for
 * nothing, and that rxsync reads it.
 *
 * A user that looks again and again (VALE_RING_POLLED) never is asleep, and
 * its rq_fd stays readable: at full load those turns, two system calls, would
 * come with every batch.  Such a user takes no lock either, which senders would
 * find taken most of the time: it has rq_cur for itself, and rq_tail is all it
 * needs to know of them.  rq_polled says so, and changes under the lock.
 */

#include <sys/eventfd.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "vale_impl.h"
#include "vale_probes.h"

int
vale_rxq_init(struct vale_rxq *rq, uint32_t nslots)
{
	rq->rq_lease = calloc(nslots, sizeof(*rq->rq_lease));
	if (rq->rq_lease == NULL)
		return (ENOMEM);
	rq->rq_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (rq->rq_fd == -1) {
		free(rq->rq_lease);
		return (errno);
	}
	pthread_mutex_init(&rq->rq_lock, NULL);
	rq->rq_nslots = nslots;
	rq->rq_asleep = true;
	return (0);
}

void
vale_rxq_fini(struct vale_rxq *rq)
{
	pthread_mutex_destroy(&rq->rq_lock);
	close(rq->rq_fd);
	free(rq->rq_lease);
}

/* rq_lock is owned, and the indices are in the order of the drawing above. */
static void
rxq_assert(const struct vale_rxq *rq)
{
#ifdef INVARIANTS
	uint32_t cur = vale_rxq_cur(rq), n = rq->rq_nslots;
	uint32_t tail = atomic_load_32(&rq->rq_tail);

	mtx_assert(&rq->rq_lock, MA_OWNED);
	MPASS(cur < n && tail < n && rq->rq_next < n);
	MPASS(vale_slot_sub(tail, cur, n) <=
	    vale_slot_sub(rq->rq_next, cur, n));
#else
	(void)rq;
#endif
}

uint32_t
vale_rxq_space(const struct vale_rxq *rq)
{
	rxq_assert(rq);
	return (rq->rq_nslots - 1 -
	    vale_slot_sub(rq->rq_next, vale_rxq_cur(rq), rq->rq_nslots));
}

/* Reserve the `nslots' slots from rq_next on, at least one. */
uint32_t
vale_rxq_lease(struct vale_rxq *rq, uint32_t nslots)
{
	uint32_t lease = rq->rq_next;

	MPASS(nslots >= 1 && nslots <= vale_rxq_space(rq));
	rq->rq_next = vale_slot_add(lease, nslots, rq->rq_nslots);
	rq->rq_lease[lease].vl_end = rq->rq_next;
	rq->rq_lease[lease].vl_done = false;
	return (lease);
}

/* End a lease.  Returns whether to call vale_rxq_wake() afterwards. */
bool
vale_rxq_publish(struct vale_rxq *rq, uint32_t lease)
{
	uint32_t tail = rq->rq_tail;

	rxq_assert(rq);
	/* Of the open leases, and ended once. */
	MPASS(lease < rq->rq_nslots && !rq->rq_lease[lease].vl_done);
	MPASS(vale_slot_sub(lease, tail, rq->rq_nslots) <
	    vale_slot_sub(rq->rq_next, tail, rq->rq_nslots));
	rq->rq_lease[lease].vl_done = true;
	if (lease != tail)
		return (false);
	do {
		tail = rq->rq_lease[tail].vl_end;
	} while (tail != rq->rq_next && rq->rq_lease[tail].vl_done);
	atomic_store_rel_32(&rq->rq_tail, tail);
	if (!rq->rq_asleep)
		return (false);
	rq->rq_asleep = false;
	rq->rq_woken++;
	return (true);
}

/*
 * The write can fail only if the counter is about to overflow, and then the
 * descriptor is readable.
 */
void
vale_rxq_wake(struct vale_rxq *rq)
{
	uint64_t one = 1;

	while (write(rq->rq_fd, &one, sizeof(one)) == -1 && errno == EINTR)
		;
}

/* The user found nothing: make rq_fd wait for the next frame. */
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
 * head and cur must be in this order between the last head and the tail the
 * user was shown.
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

int
vale_rxsync(struct vale_desc *d)
{
	struct vale_port *port = vale_desc_port(d);
	struct netmap_ring *ring = port->vp_region.vr_rxring;
	struct vale_rxq *rq = &port->vp_rx;
	uint32_t cur, freed, head;
	int result = 0;
	bool locked, polled;

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
	/* Going from one way of receiving to the other, and to sleep. */
	locked = !polled || !rq->rq_polled || result != 0;
	if (locked)
		pthread_mutex_lock(&rq->rq_lock);
	if (freed > 0)
		atomic_store_rel_32(&rq->rq_cur, head);
	rq->rq_shown = atomic_load_acq_32(&rq->rq_tail);
	if (locked) {
		rq->rq_polled = polled;
		if (result != 0)
			vale_count(port, VALE_C_RX_BAD_RING, 1);
		if (cur == rq->rq_shown && !polled)
			rxq_sleep(rq);
		pthread_mutex_unlock(&rq->rq_lock);
	}
	atomic_store_64(&rq->rq_syncs, rq->rq_syncs + 1);
	VALE_PROBE(port, RX_SYNC, freed,
	    vale_slot_sub(rq->rq_shown, head, rq->rq_nslots));
	ring->tail = rq->rq_shown;
	return (result);
}
