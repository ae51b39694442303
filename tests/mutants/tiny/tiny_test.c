/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Tests of tiny.c with known gaps.
 */

#include <stddef.h>

#include <atf-c.h>

#include "tiny.h"

ATF_TC_WITHOUT_HEAD(steps);
ATF_TC_BODY(steps, tc)
{
	ATF_REQUIRE_EQ(0, tiny_steps(0, 3));
	ATF_REQUIRE_EQ(1, tiny_steps(3, 3));
	ATF_REQUIRE_EQ(2, tiny_steps(4, 3));
}

ATF_TC_WITHOUT_HEAD(inside);
ATF_TC_BODY(inside, tc)
{
	ATF_REQUIRE(tiny_inside(2, 2, 5));
	ATF_REQUIRE(tiny_inside(4, 2, 5));
	ATF_REQUIRE(!tiny_inside(1, 2, 5));
	ATF_REQUIRE(!tiny_inside(6, 2, 5));
}

ATF_TC_WITHOUT_HEAD(max);
ATF_TC_BODY(max, tc)
{
	ATF_REQUIRE_EQ(7, tiny_max(7, 3));
	ATF_REQUIRE_EQ(7, tiny_max(3, 7));
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, steps);
	ATF_TP_ADD_TC(tp, inside);
	ATF_TP_ADD_TC(tp, max);

	return (atf_no_error());
}
