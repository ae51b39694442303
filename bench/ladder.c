/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The ladder: one guest sends to another over the switch, in this process
 * (lem_ladder.h), once in each mode of the driver.  Prints a line for each mode
 * and frame size: frames received a second, the ratio to BASE, and exits and
 * interrupts a frame of both guests.
 *
 *	-h	the receiver is a program on a port of the switch
 *	-1	an adapter sends, and if polling also receives, in its guest's
 *		thread
 *	-p	each guest has a processor of its own
 *	-m	run one mode only
 *	-r	all frames go through the ring of the receiver's port, as they
 *		do without -r if the guest polls in its own thread
 */

#include <err.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lem_core.h"
#include "lem_ladder.h"

static const struct {
	const char	*name;
	uint32_t	mode;
	bool		moderated;
} step[] = {
	{ "BASE",	0,				false },
	{ "moderation",	0,				true },
	{ "SC",		LEM_MODE_SC,			false },
	{ "SC+mod",	LEM_MODE_SC,			true },
	{ "lazy",	LEM_MODE_LAZY,			false },
	/* The sender polls when it has no descriptors. */
	{ "polling",	LEM_MODE_POLL,			false },
	{ "polling+SC",	LEM_MODE_POLL | LEM_MODE_SC,	false },
	{ "CSB",	LEM_MODE_CSB,			true },
};
#define	NSTEPS	(sizeof(step) / sizeof(step[0]))

static void
usage(void)
{
	fprintf(stderr, "usage: ladder [-1hpr] [-b batch] [-e exit_ns] "
	    "[-i itr_256ns] [-m mode]\n              [-s bytes] "
	    "[-t milliseconds]\n");
	exit(1);
}

static uint32_t
number(const char *s, uint32_t min, uint32_t max)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(s, &end, 10);
	if (errno != 0 || end == s || *end != '\0' || n < min || n > max)
		usage();
	return (n);
}

/* Returns frames received a microsecond. */
static double
run(unsigned int i, struct ladder_params *params, double base)
{
	const struct ladder_side *side;
	struct ladder_result r;
	double frames, mpps;
	int error, j;

	error = ladder_run(params, &r);
	if (error != 0)
		errx(1, "%s: %s", step[i].name, strerror(error));
	if (r.wrong != 0 || r.received == 0)
		errx(1, "%s: of %ju frames, %ju received, %ju wrong",
		    step[i].name, (uintmax_t)r.sent, (uintmax_t)r.received,
		    (uintmax_t)r.wrong);
	mpps = r.received * 1e3 / r.ns;
	printf("%-12s%6u%10.1f%8.1f", step[i].name, params->len, mpps * 1e3,
	    base == 0 ? 1 : mpps / base);
	for (j = 0; j < 2; j++) {
		side = &r.guest[j];
		frames = j == 0 ? r.sent : r.received;
		printf("%10.4f%10.4f", side->exits / frames,
		    side->interrupts / frames);
	}
	printf("%8.1f%%%8.2f\n", 100.0 * (r.sent - r.received) / r.sent,
	    1.0 + (double)r.copied / (r.direct + r.copied));
	return (mpps);
}

int
main(int argc, char **argv)
{
	static const uint32_t sizes[] = { 60, 1514 };
	struct ladder_params params;
	uint32_t itr, only;
	unsigned int i, s;
	const char *mode = NULL;
	double base, mpps;
	int ch;

	memset(&params, 0, sizeof(params));
	params.exit_ns = 3700;
	params.batch = 1;
	params.run_ns = 500 * 1000000ULL;
	itr = 400;
	only = 0;
	while ((ch = getopt(argc, argv, "1b:e:hi:m:prs:t:")) != -1) {
		switch (ch) {
		case '1':
			params.own_thread = true;
			break;
		case 'h':
			params.to_host = true;
			break;
		case 'b':
			params.batch = number(optarg, 1, 1024);
			break;
		case 'e':
			params.exit_ns = number(optarg, 0, 1000000);
			break;
		case 'i':
			itr = number(optarg, 0, E82545_ITR_MAX);
			break;
		case 'm':
			mode = optarg;
			break;
		case 'p':
			params.pinned = true;
			break;
		case 'r':
			params.by_ring = true;
			break;
		case 's':
			only = number(optarg, 60, 1514);
			break;
		case 't':
			params.run_ns = number(optarg, 1, 3600000) * 1000000ULL;
			break;
		default:
			usage();
		}
	}
	if (optind != argc)
		usage();
	printf("an exit %ju ns, moderation %.1f us, %u frames a flush\n",
	    (uintmax_t)params.exit_ns, itr * 0.256, params.batch);
	printf("%38s%20s%20s\n", "", "sender, a frame", "receiver, a frame");
	printf("%-12s%6s%10s%8s%10s%10s%10s%10s%9s%8s\n", "mode", "bytes",
	    "Kpps", "x BASE", "exits", "intr", "exits", "intr", "dropped",
	    "copies");
	for (s = 0; s < (only != 0 ? 1 : 2); s++) {
		params.len = only != 0 ? only : sizes[s];
		base = 0;
		for (i = 0; i < NSTEPS; i++) {
			if (mode != NULL && strcmp(mode, step[i].name) != 0)
				continue;
			params.mode = step[i].mode;
			params.itr_256ns = step[i].moderated ? itr : 0;
			mpps = run(i, &params, base);
			if (base == 0)
				base = mpps;
		}
	}
	return (0);
}
