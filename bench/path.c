/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The host's work for a frame: from one model's TX ring over the switch into
 * another model's RX ring, in one thread, with just enough of a guest to fill
 * the rings.  Prints thousands of frames a second.  Each run does the same
 * work, so that instructions can be compared.  "bench/model path" measures the
 * same beside a bare loop.
 */

#include <err.h>
#include <stdio.h>
#include <unistd.h>

#include "bare_guest.h"
#include "bench.h"

int
main(int argc, char **argv)
{
	static struct bare_guest guest[2];
	uint32_t batch = 64, frames = 10000000, len = 60, n;
	uint64_t ns;
	int ch;

	while ((ch = getopt(argc, argv, "b:n:s:")) != -1) {
		switch (ch) {
		case 'b':
			batch = bench_number(optarg, 1, GUEST_RING / 2);
			break;
		case 'n':
			frames = bench_number(optarg, 1, UINT32_MAX / 2);
			break;
		case 's':
			len = bench_number(optarg, 60, 1514);
			break;
		default:
			fprintf(stderr,
			    "usage: path [-b batch] [-n frames] [-s bytes]\n");
			return (1);
		}
	}
	bare_guest_create(&guest[0], 1, true);
	bare_guest_create(&guest[1], 2, true);
	bare_guest_up(&guest[0], &guest[1], len);
	bare_guest_up(&guest[1], &guest[0], len);
	/* The switch learns where the receiver is. */
	bare_guest_send(&guest[1], 1);
	if (bare_guest_receive(&guest[0]) != 1)
		errx(1, "no frame was received");
	ns = bench_now_ns();
	for (n = 0; n < frames; n += batch) {
		bare_guest_send(&guest[0], batch);
		if (bare_guest_receive(&guest[1]) != batch)
			errx(1, "frames are missing");
	}
	ns = bench_now_ns() - ns;
	printf("%.1f\n", n * 1e6 / ns);
	return (0);
}
