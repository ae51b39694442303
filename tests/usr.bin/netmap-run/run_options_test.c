/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Options of requests at the limit of what a request has space for, as netmap
 * counts it: 4096 bytes, of which each option takes 32 besides its own.
 */

#include <sys/param.h>

#include <errno.h>
#include <string.h>

#include <atf-c.h>

#include "netmap_run.h"
#include "test.h"

#define	OPTIONS_MAX	4096
#define	OPTION		32
#define	UNKNOWN		NETMAP_REQ_OPT_MAX	/* of no type that is known */

static struct nmreq_option options[OPTIONS_MAX / OPTION + 1];

/* Make a list of `n' options of a type. */
static void
list(unsigned int n, uint32_t type)
{
	unsigned int i;

	memset(options, 0, sizeof(options));
	for (i = 0; i < n; i++) {
		options[i].nro_reqtype = type;
		options[i].nro_status = 7;
		options[i].nro_next = i + 1 < n ?
		    (uintptr_t)&options[i + 1] : 0;
	}
}

/* What is said of the list, and of its first and last option. */
static void
check(int error, unsigned int n, uint32_t status)
{
	const struct nmreq_header hdr = { .nr_options = (uintptr_t)options };

	errno = 0;
	ATF_CHECK_EQ(-1, run_options_refuse(&hdr));
	ATF_CHECK_EQ(error, errno);
	ATF_CHECK_EQ(status, options[0].nro_status);
	ATF_CHECK_EQ(status, options[n - 1].nro_status);
}

TEST(many, "There may be as many options as fit")
{
	list(OPTIONS_MAX / OPTION, UNKNOWN);
	check(EOPNOTSUPP, OPTIONS_MAX / OPTION, EOPNOTSUPP);
	list(OPTIONS_MAX / OPTION + 1, UNKNOWN);
	check(EMSGSIZE, OPTIONS_MAX / OPTION + 1, 7);
	list(OPTIONS_MAX / OPTION, UNKNOWN + 1);
	check(EOPNOTSUPP, OPTIONS_MAX / OPTION, EOPNOTSUPP);
}

TEST(large, "An option may be as large as fits, whatever it says")
{
	static const struct {
		uint64_t size;
		int error;
	} rows[] = {
		{ 0, EOPNOTSUPP },
		{ 1, EOPNOTSUPP },
		{ sizeof(struct nmreq_option), EOPNOTSUPP },
		{ sizeof(struct nmreq_option) + OPTIONS_MAX - OPTION,
		    EOPNOTSUPP },
		{ sizeof(struct nmreq_option) + OPTIONS_MAX - OPTION + 1,
		    EMSGSIZE },
		{ UINT64_MAX, EMSGSIZE },
	};
	unsigned int i;

	for (i = 0; i < nitems(rows); i++) {
		list(1, 1);
		options[0].nro_size = rows[i].size;
		check(rows[i].error, 1, rows[i].error == EOPNOTSUPP ?
		    EOPNOTSUPP : 7);
	}
	/* That of an unknown type does not count. */
	list(1, UNKNOWN);
	options[0].nro_size = UINT64_MAX;
	check(EOPNOTSUPP, 1, EOPNOTSUPP);
}

TEST(sum, "Together they are as large as fits")
{
	const uint64_t rest = OPTIONS_MAX - 2 * OPTION;

	list(2, 1);
	options[1].nro_reqtype = 2;
	options[0].nro_size = sizeof(options[0]) + 2000;
	options[1].nro_size = sizeof(options[0]) + rest - 2000;
	check(EOPNOTSUPP, 2, EOPNOTSUPP);
	options[1].nro_size++;
	options[0].nro_status = options[1].nro_status = 7;
	check(EMSGSIZE, 2, 7);
	/* The second one is a byte too long, without any of its own. */
	list(2, 1);
	options[1].nro_reqtype = UNKNOWN;
	options[0].nro_size = sizeof(options[0]) + rest + 1;
	check(EMSGSIZE, 2, 7);
	options[0].nro_size--;
	check(EOPNOTSUPP, 2, EOPNOTSUPP);
}

TEST(wrong, "An option without a type, or that is there twice, says so")
{
	list(2, 1);
	check(EINVAL, 2, EINVAL);
	list(2, UNKNOWN - 1);
	check(EINVAL, 2, EINVAL);
	list(1, 0);
	check(EINVAL, 1, EINVAL);
}

TEST_PROGRAM
