/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * Which tasks the filter of iflib(4) queues, and when it enables the interrupt.
 */

#include <atf-c.h>
#include <stdlib.h>

#include "iflib_filter.h"

/* All that iflib.c needs of the kernel here. */
void	panic(const char *fmt, ...) __dead2;

void
panic(const char *fmt __unused, ...)
{
	abort();
}

static void
check(int sent, int received, unsigned int enables)
{
	filter_call(sent, received);
	ATF_CHECK_EQ(sent, (int)filter_tx_tasks);
	ATF_CHECK_EQ(received, (int)filter_rx_tasks);
	ATF_CHECK_EQ_MSG(enables, filter_enables, "%u enables", filter_enables);
}

ATF_TC_WITHOUT_HEAD(idle);
ATF_TC_BODY(idle, tc)
{
	check(0, 0, 1);
}

/* A task enables the interrupt when it ends. */
ATF_TC_WITHOUT_HEAD(sent);
ATF_TC_BODY(sent, tc)
{
	check(1, 0, 0);
}

ATF_TC_WITHOUT_HEAD(received);
ATF_TC_BODY(received, tc)
{
	check(0, 1, 0);
}

ATF_TC_WITHOUT_HEAD(both);
ATF_TC_BODY(both, tc)
{
	check(1, 1, 0);
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, idle);
	ATF_TP_ADD_TC(tp, sent);
	ATF_TP_ADD_TC(tp, received);
	ATF_TP_ADD_TC(tp, both);
	return (atf_no_error());
}
