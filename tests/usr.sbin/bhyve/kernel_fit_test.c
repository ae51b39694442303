/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Which kernels bhyve starts on.  bhyve_test has what it prints otherwise. */

#include <atf-c.h>

#include "kernel_fit.h"
#include "test.h"

TEST(branch, "The kernel it was built for, and later ones of the branch")
{
	ATF_CHECK(kernel_fits(1501000, 1501000));
	ATF_CHECK(kernel_fits(1501000, 1501001));
	ATF_CHECK(kernel_fits(1501000, 1502000));
	ATF_CHECK(kernel_fits(1501000, 1599999));
	ATF_CHECK(kernel_fits(1500000, 1500000));
}

TEST(older, "No older kernel")
{
	ATF_CHECK(!kernel_fits(1501000, 1500999));
	ATF_CHECK(!kernel_fits(1501000, 1403000));
	ATF_CHECK(!kernel_fits(1501000, 0));
	ATF_CHECK(!kernel_fits(1501000, -1));
}

TEST(next_branch, "No kernel of the next branch")
{
	ATF_CHECK(!kernel_fits(1501000, 1600000));
	ATF_CHECK(!kernel_fits(1599999, 1600000));
	ATF_CHECK(!kernel_fits(1401000, 1501000));
}

TEST_PROGRAM
