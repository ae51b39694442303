/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A sync costs nearly the same for one frame as for several, so frames that
 * come fast share one.  After a sync there is a window, as long as WINDOW syncs
 * take.  A frame that comes after the window is synced at once, by its sender.
 * Frames that come within the window stay pending, and go with the first that
 * comes after it, or as soon as BATCH are pending.
 *
 * If no frame comes after the window, a thread syncs.  The first pending frame
 * arms it.  The thread wakes up two windows after the last sync; if nothing is
 * pending then, it is disarmed.  So a sender of single frames never wakes it,
 * and one that sends without pause only once in two windows.
 *
 * vsn_mtx protects all, also during a sync.
 */

#include <sys/param.h>
#include <sys/systm.h>

#include <time.h>

#include "vale_sender.h"

#define	BATCH		64	/* frames */
#define	WINDOW		8	/* syncs */
#define	COST_MAX_NS	100000	/* a sync that takes longer was interrupted */
#define	NSEC		1000000000

static uint64_t
sender_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((uint64_t)ts.tv_sec * NSEC + ts.tv_nsec);
}

/* Sync.  The cost is an average, of syncs of one frame. */
static void
sender_sync(struct vale_sender *s, uint64_t now_ns)
{
	uint64_t took_ns;

	s->vsn_sync(s->vsn_arg);
	s->vsn_end_ns = sender_now_ns();
	if (s->vsn_pending == 1) {
		took_ns = MIN(s->vsn_end_ns - now_ns, COST_MAX_NS);
		s->vsn_cost_ns = (7 * s->vsn_cost_ns + took_ns) / 8;
	}
	s->vsn_pending = 0;
}

/* Sleep until there is work, or until that time if it is not 0. */
static void
sender_sleep(struct vale_sender *s, uint64_t until_ns)
{
	const struct timespec ts = {
		.tv_sec = until_ns / NSEC, .tv_nsec = until_ns % NSEC
	};

	if (until_ns == 0)
		pthread_cond_wait(&s->vsn_work, &s->vsn_mtx);
	else
		pthread_cond_timedwait(&s->vsn_work, &s->vsn_mtx, &ts);
}

static void *
sender_thread(void *arg)
{
	struct vale_sender *s = arg;
	uint64_t due_ns, now_ns;

	pthread_mutex_lock(&s->vsn_mtx);
	while (!s->vsn_stop) {
		due_ns = s->vsn_end_ns + 2 * WINDOW * s->vsn_cost_ns;
		now_ns = sender_now_ns();
		if (!s->vsn_armed)
			sender_sleep(s, 0);
		else if (now_ns < due_ns)
			sender_sleep(s, due_ns);
		else if (s->vsn_pending > 0)
			sender_sync(s, now_ns);
		else
			s->vsn_armed = false;
	}
	pthread_mutex_unlock(&s->vsn_mtx);
	return (NULL);
}

int
vale_sender_init(struct vale_sender *s, void (*sync)(void *arg), void *arg)
{
	pthread_condattr_t attr;
	int error;

	*s = (struct vale_sender){
		.vsn_sync = sync, .vsn_arg = arg,
		.vsn_mtx = PTHREAD_MUTEX_INITIALIZER,
	};
	error = pthread_condattr_init(&attr);
	if (error != 0)
		return (error);
	error = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	if (error == 0)
		error = pthread_cond_init(&s->vsn_work, &attr);
	pthread_condattr_destroy(&attr);
	return (error);
}

void
vale_sender_fini(struct vale_sender *s)
{
	pthread_mutex_lock(&s->vsn_mtx);
	s->vsn_stop = true;
	pthread_cond_signal(&s->vsn_work);
	pthread_mutex_unlock(&s->vsn_mtx);
	if (s->vsn_started)
		pthread_join(s->vsn_thread, NULL);
	if (s->vsn_pending > 0)
		sender_sync(s, sender_now_ns());
	pthread_mutex_destroy(&s->vsn_mtx);
	pthread_cond_destroy(&s->vsn_work);
}

void
vale_sender_lock(struct vale_sender *s)
{
	pthread_mutex_lock(&s->vsn_mtx);
}

void
vale_sender_unlock(struct vale_sender *s)
{
	pthread_mutex_unlock(&s->vsn_mtx);
}

/* Have the thread sync.  Returns false if there is none. */
static bool
sender_arm(struct vale_sender *s)
{
	if (!s->vsn_started)
		s->vsn_started = pthread_create(&s->vsn_thread, NULL,
		    sender_thread, s) == 0;
	s->vsn_armed = s->vsn_started;
	pthread_cond_signal(&s->vsn_work);
	return (s->vsn_started);
}

void
vale_sender_post(struct vale_sender *s, bool now)
{
	const uint64_t now_ns = sender_now_ns();

	s->vsn_pending++;
	if (now || s->vsn_pending >= BATCH || now_ns - s->vsn_end_ns >=
	    WINDOW * s->vsn_cost_ns || (!s->vsn_armed && !sender_arm(s)))
		sender_sync(s, now_ns);
}
