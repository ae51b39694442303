/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Calls that fail while a port of valed is opened.  A program of its own:
 * ThreadSanitizer calls what fail_calls.c takes the place of before it is ready.
 */

#include <sys/param.h>
#include <sys/systm.h>

#include <errno.h>
#include <stdio.h>

#include <atf-c.h>

#include "fail_calls.h"
#include "libvale.h"
#include "test.h"
#include "valed_run.h"
#include "wait_until.h"

VALED_TEST(open, "Whatever call fails, no port is opened, and nothing is left")
{
	const struct vale_params params = { .rings = 2 };
	struct fail_held before;
	struct vale_desc *d;
	char name[32];
	bool failed = true;
	uint32_t n;

	/* An error that does not pass. */
	fail_calls_error(EIO);
	for (n = 1; failed; n++) {
		snprintf(name, sizeof(name), "vale0:p%u", n);
		before = fail_held();
		fail_calls(NULL, n, 1);
		d = vale_open(name, &params);
		failed = fail_calls_end() > 0;
		ATF_CHECK_EQ_MSG(failed, d == NULL, "%s, call %u",
		    fail_calls_name(), n);
		if (d == NULL) {
			fail_held_check(&before);
			/* Nor has valed a port of that name. */
			wait_until((d = vale_open(name, &params)) != NULL,
			    "%s", name);
		}
		vale_close(d);
	}
	ATF_CHECK_MSG(n > 12, "%u", n);
}

TEST_PROGRAM
