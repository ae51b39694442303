/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * pthread_np(3): pthread_set_name_np(), pthread_mutex_isowned_np().
 */

#include <pthread.h>
#include <pthread_np.h>
#include <string.h>
#include <unistd.h>

void
pthread_set_name_np(pthread_t thread, const char *name)
{
	char shortname[16];

	strlcpy(shortname, name, sizeof(shortname));
	pthread_setname_np(thread, shortname);
}

static _Thread_local pid_t self;	/* 0: not known yet */

/*
 * Forget the thread's ID: after fork(2), the child's only thread has another
 * one.
 */
static void
self_forget(void)
{
	self = 0;
}

static void
self_init(void)
{
	pthread_atfork(NULL, NULL, self_forget);
}

/*
 * Compare thread IDs: glibc stores the owner's in a mutex of any type, unless
 * lock elision is on, which is off by default.
 */
int
pthread_mutex_isowned_np(pthread_mutex_t *mutex)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (self == 0) {
		pthread_once(&once, self_init);
		self = gettid();
	}
	return (__atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED) ==
	    self);
}
