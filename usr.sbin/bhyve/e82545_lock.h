/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The lock of a ring.
 */

#ifndef _E82545_LOCK_H_
#define	_E82545_LOCK_H_

#include <pthread.h>
#include <stdbool.h>

/*
 * A fair mutex: waiters queue at `gate', so a thread that releases `mtx' cannot
 * retake it ahead of them.
 */
struct e82545_lock {
	pthread_mutex_t	gate, mtx;
};

static inline void
e82545_lock(struct e82545_lock *lock)
{
	pthread_mutex_lock(&lock->gate);
	pthread_mutex_lock(&lock->mtx);
	pthread_mutex_unlock(&lock->gate);
}

/*
 * Take the lock if it is free.  Returns false if a thread has the lock or waits
 * for it.
 */
static inline bool
e82545_trylock(struct e82545_lock *lock)
{
	bool locked;

	if (pthread_mutex_trylock(&lock->gate) != 0)
		return (false);
	locked = pthread_mutex_trylock(&lock->mtx) == 0;
	pthread_mutex_unlock(&lock->gate);
	return (locked);
}

static inline void
e82545_unlock(struct e82545_lock *lock)
{
	pthread_mutex_unlock(&lock->mtx);
}

#endif /* !_E82545_LOCK_H_ */
