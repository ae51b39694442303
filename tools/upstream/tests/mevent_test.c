/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

#include "mevent.c"

#include <atf-c.h>

ATF_TC_WITHOUT_HEAD(timer_units);
ATF_TC_BODY(timer_units, tc)
{
	struct mevent timer = { .me_type = EVF_TIMER, .me_timid = 1 };
	struct kevent kev;

	timer.me_msecs = 125;
	mevent_populate(&timer, &kev);
	ATF_CHECK_EQ(0, kev.fflags);
	timer.me_fflags = EVFF_USECONDS;
	mevent_populate(&timer, &kev);
	ATF_CHECK_EQ(NOTE_USECONDS, kev.fflags);
	ATF_CHECK_EQ(125, kev.data);
	ATF_CHECK_EQ(EVFILT_TIMER, kev.filter);
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, timer_units);
	return (atf_no_error());
}
