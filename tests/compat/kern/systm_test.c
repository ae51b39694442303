/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * compat/kern's <sys/systm.h>: assertions fire, and atomic(9) returns what its
 * page says.
 */

#include <sys/systm.h>

#include <atf-c.h>

#include "aborts.h"
#include "test.h"

static pthread_mutex_t mtx = PTHREAD_MUTEX_INITIALIZER;

static void
mpass_false(void *arg)
{
	int *n = arg;

	MPASS(*n == 2);
}

static void
kassert_false(void *arg)
{
	int *n = arg;

	KASSERT(*n == 2, ("n is %d", *n));
}

TEST(mpass, "MPASS and KASSERT trip and say why")
{
	int n = 1, two = 2;

	ATF_CHECK(aborts(mpass_false, &n, "Assertion *n == 2 failed at "));
	ATF_CHECK(aborts(mpass_false, &n, "systm_test.c:"));
	ATF_CHECK(aborts(kassert_false, &n, "n is 1"));
	mpass_false(&two);
	kassert_false(&two);
}

static void
owned(void *arg)
{
	mtx_assert((pthread_mutex_t *)arg, MA_OWNED);
}

static void
not_owned(void *arg)
{
	mtx_assert((pthread_mutex_t *)arg, MA_NOTOWNED);
}

static void *
lock(void *arg)
{
	pthread_mutex_lock(arg);
	return (NULL);
}

TEST(mutex, "A mutex is owned by the thread that holds it")
{
	const char *no = "mutex (pthread_mutex_t *)arg not owned at ";
	pthread_t thread;

	ATF_CHECK(aborts(owned, &mtx, no));
	not_owned(&mtx);
	pthread_mutex_lock(&mtx);
	owned(&mtx);
	pthread_mutex_unlock(&mtx);
	ATF_CHECK(aborts(owned, &mtx, no));

	/* Another thread's. */
	pthread_create(&thread, NULL, lock, &mtx);
	pthread_join(thread, NULL);
	ATF_CHECK(aborts(owned, &mtx, no));
	not_owned(&mtx);
}

static void
lock_and_deny(void *arg)
{
	pthread_mutex_lock(arg);
	not_owned(arg);
}

static void
lock_and_claim(void *arg)
{
	pthread_mutex_lock(arg);
	owned(arg);
	pthread_mutex_unlock(arg);
	MPASS(arg == NULL);
}

TEST(mutex_child, "A child of fork has a thread number of its own")
{
	/* The parent's thread number is known before it forks. */
	not_owned(&mtx);
	ATF_CHECK(aborts(lock_and_deny, &mtx, " owned at "));
	ATF_CHECK(aborts(lock_and_claim, &mtx, "arg == NULL"));
}

static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

static void *
signal_once(void *arg)
{
	bool *signalled = arg;

	pthread_mutex_lock(&mtx);
	*signalled = true;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&mtx);
	return (NULL);
}

TEST(mutex_cond, "A thread that waited for a condition owns the mutex again")
{
	pthread_t thread;
	bool signalled = false;

	pthread_mutex_lock(&mtx);
	pthread_create(&thread, NULL, signal_once, &signalled);
	while (!signalled)
		pthread_cond_wait(&cond, &mtx);
	owned(&mtx);
	pthread_mutex_unlock(&mtx);
	not_owned(&mtx);
	pthread_join(thread, NULL);
}

#define	CHECK_MODIFY(n, max)						\
static void								\
check_modify_##n(void)							\
{									\
	uint##n##_t v = 5;						\
									\
	atomic_add_##n(&v, 2);						\
	ATF_CHECK(atomic_load_##n(&v) == 7);				\
	atomic_add_rel_##n(&v, 1);					\
	atomic_subtract_##n(&v, 3);					\
	ATF_CHECK(atomic_load_acq_##n(&v) == 5);			\
	ATF_CHECK(atomic_fetchadd_##n(&v, max) == 5);			\
	ATF_CHECK(atomic_swap_##n(&v, 9) == 4);				\
	ATF_CHECK(atomic_cmpset_acq_##n(&v, 8, 1) == 0 && v == 9);	\
	ATF_CHECK(atomic_cmpset_acq_##n(&v, 9, 1) != 0 && v == 1);	\
	atomic_store_##n(&v, max);					\
	ATF_CHECK(v == max);						\
	atomic_store_rel_##n(&v, 0);					\
	ATF_CHECK(v == 0);						\
}
CHECK_MODIFY(32, UINT32_MAX)
CHECK_MODIFY(64, UINT64_MAX)

TEST(atomic, "Each operation of atomic(9) that is used does what its name says")
{
	uint8_t u8 = 0;
	uint16_t u16 = 0;
	bool b = false;
	const char *p = NULL, *text = "text";

	check_modify_32();
	check_modify_64();
	atomic_store_rel_8(&u8, 0xff);
	atomic_store_rel_16(&u16, 0xffff);
	atomic_store_bool(&b, true);
	atomic_store_ptr(&p, text);
	ATF_CHECK(atomic_load_acq_8(&u8) == 0xff && atomic_load_8(&u8) == 0xff);
	ATF_CHECK(atomic_load_acq_16(&u16) == 0xffff);
	ATF_CHECK(atomic_load_bool(&b));
	ATF_CHECK(atomic_load_ptr(&p) == text);
	atomic_store_rel_ptr((uintptr_t *)&p, 0);
	ATF_CHECK(atomic_load_acq_ptr((uintptr_t *)&p) == 0);
	atomic_thread_fence_acq();
	atomic_thread_fence_rel();
	atomic_thread_fence_seq_cst();
}

TEST_PROGRAM
