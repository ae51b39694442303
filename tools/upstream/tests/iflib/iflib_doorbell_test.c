/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * When iflib(4) writes the doorbell of a transmit queue.
 */

#include <atf-c.h>
#include <stdlib.h>

#include "iflib_doorbell.h"

#define	RING_SIZE	1024

/* All that iflib.c needs of the kernel here. */
void	panic(const char *fmt, ...) __dead2;

void
panic(const char *fmt __unused, ...)
{
	abort();
}

ATF_TC_WITHOUT_HEAD(nothing_pending);
ATF_TC_BODY(nothing_pending, tc)
{
	doorbell_create(RING_SIZE);
	/* As iflib_txq_drain() does before and after each of four packets. */
	for (unsigned int i = 0; i < 4; i++) {
		doorbell_check(0);
		ATF_CHECK_EQ(i, doorbell_count());
		doorbell_add(1);
		doorbell_check(0);
		ATF_CHECK_EQ(i + 1, doorbell_count());
	}
	doorbell_check(0);
	ATF_CHECK_EQ_MSG(4, doorbell_count(), "%u doorbells for 4 packets",
	    doorbell_count());
}

ATF_TC_WITHOUT_HEAD(forced);
ATF_TC_BODY(forced, tc)
{
	doorbell_create(RING_SIZE);
	doorbell_check(1);
	ATF_CHECK_EQ(1, doorbell_count());
}

ATF_TC_WITHOUT_HEAD(deferred);
ATF_TC_BODY(deferred, tc)
{
	doorbell_create(RING_SIZE);
	/* Of a ring that is half full, one for some packets, if not forced. */
	doorbell_add(RING_SIZE / 2 + 1);
	doorbell_check(0);
	ATF_CHECK_EQ(1, doorbell_count());
	doorbell_add(1);
	doorbell_check(0);
	ATF_CHECK_EQ(1, doorbell_count());
	doorbell_check(1);
	ATF_CHECK_EQ(2, doorbell_count());
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, nothing_pending);
	ATF_TP_ADD_TC(tp, forced);
	ATF_TP_ADD_TC(tp, deferred);
	return (atf_no_error());
}
