/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * One guest sends frames of 60 bytes over the switch, in this process
 * (lem_ladder.h):
 *
 *	ladder guest	to another guest
 *	ladder host	to a program on a port of the switch
 *
 * Both ends poll, and have a processor each: a guest's thread does the work of
 * its adapter, too.  Prints nanoseconds a frame received.  The demo measures
 * the driver's modes, with tests/guest/micro.
 */

#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "lem_core.h"
#include "lem_ladder.h"

#define	RUN_NS		500000000ULL

int
main(int argc, char **argv)
{
	struct ladder_params params = {
		.mode = LEM_MODE_POLL, .len = 60, .batch = 64,
		.run_ns = RUN_NS, .own_thread = true, .pinned = true,
	};
	struct ladder_result r;
	int error;

	if (argc != 2 || (strcmp(argv[1], "guest") != 0 &&
	    strcmp(argv[1], "host") != 0))
		errx(1, "usage: ladder guest | host");
	params.to_host = strcmp(argv[1], "host") == 0;
	error = ladder_run(&params, &r);
	if (error != 0)
		errx(1, "%s", strerror(error));
	if (r.wrong != 0 || r.received == 0)
		errx(1, "of %ju frames, %ju received, %ju wrong",
		    (uintmax_t)r.sent, (uintmax_t)r.received,
		    (uintmax_t)r.wrong);
	printf("%.2f\n", (double)r.ns / r.received);
	return (0);
}
