/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * When to sync a transmit ring whose frames come one a call, from a frontend
 * that does not say which is the last of several:
 *
 *	vale_sender_lock(s);
 *	put a frame into the ring
 *	vale_sender_post(s, false);
 *	vale_sender_unlock(s);
 *
 * The data of a frame that is posted must stay in place until the sync, which
 * may come after vale_sender_post() has returned, on another thread.
 */

#ifndef _VALE_SENDER_H_
#define	_VALE_SENDER_H_

#include <sys/types.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct vale_sender {
	void		(*vsn_sync)(void *arg);
	void		*vsn_arg;
	pthread_mutex_t	 vsn_mtx;	/* all below, and the ring */
	pthread_cond_t	 vsn_work;
	uint32_t	 vsn_pending;	/* frames posted, not synced */
	bool		 vsn_armed;	/* the thread will sync */
	bool		 vsn_started;
	bool		 vsn_stop;
	uint64_t	 vsn_end_ns;	/* the last sync's end */
	uint64_t	 vsn_cost_ns;	/* about what a sync of a frame takes */
	pthread_t	 vsn_thread;
};

/*
 * Begin.  sync(arg) sends what is in the ring and handles its errors; it is
 * called with the lock held, by the sender or by a thread.  Returns 0 or an
 * errno.
 */
int	vale_sender_init(struct vale_sender *s, void (*sync)(void *arg),
	    void *arg);

/*
 * Sync what is pending, and end.  No other call may be in progress or follow.
 */
void	vale_sender_fini(struct vale_sender *s);

/* Lock, or unlock, around each use of the ring.  Any thread. */
void	vale_sender_lock(struct vale_sender *s);
void	vale_sender_unlock(struct vale_sender *s);

/*
 * Note that a frame was put into the ring.  The frame is synced before the call
 * returns if `now' is set, or soon.  The lock must be held.
 */
void	vale_sender_post(struct vale_sender *s, bool now);

#endif /* !_VALE_SENDER_H_ */
