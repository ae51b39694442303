/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The command line: words "name=value", separated by spaces.
 *
 *	role=sink	counts what comes (default)
 *	role=echo	sends it back
 *	role=program	gives it to a program: program.c
 *	role=source	sends to a sink or an echo, as the options below say
 *	role=rr		sends one frame, waits for it to come back from an echo,
 *			and so on
 *	size=N		bytes of a frame without FCS, 60 (default) to 1514
 *	rate=N[,N...]	frames a second, sent in bursts at each tick; 0
 *			(default): as fast as possible.  Several: one after
 *			another, each for ms
 *	work=N		ns that a sink, or a program's stack, spends on each
 *			frame.  0
 *	program=N	ns that a program spends on each frame.  0
 *	socket=N	frames that wait for the program, 1 to 4096.  28
 *	share=N		percent of the processor for the stack, while the
 *			program needs it; 0 (default): all
 *	rounds=N	for how many rounds the adapter looks for frames, at
 *			most, with the CSB.  1024
 *	batch=N		frames queued for each flush, 1 (default) to 4096
 *	ms=N		how long to send; 0: no limit.  3000
 *	count=N		how many frames to send; 0 (default): no limit
 *	mode=W,W...	base (default), sc, lazy, poll, csb, itr=N (units of
 *			256 ns); see lem_core.h
 *	ring=N		descriptors in each ring, 128 to 4096, a power of two.
 *			256
 *	tick=N		us between timer interrupts, at which polling mode looks
 *			for work; 0: it never sleeps.  1000
 *	intr=msi|intx|auto	MSI if there is (auto, default)
 *	mac=M		station address; default the adapter's own
 *	dst=M		address that HELLO is sent to; default broadcast
 */

#include "lem_core.h"
#include "micro.h"

struct word {
	const char	*name;
	uint32_t	 value;
};

static const struct word roles[] = {
	{ "sink", ROLE_SINK }, { "source", ROLE_SOURCE },
	{ "echo", ROLE_ECHO }, { "rr", ROLE_RR }, { "program", ROLE_PROGRAM },
	{ NULL, 0 }
};
static const struct word intrs[] = {
	{ "auto", INTR_AUTO }, { "intx", INTR_INTX }, { "msi", INTR_MSI },
	{ NULL, 0 }
};
static const struct word modes[] = {
	{ "base", 0 }, { "sc", LEM_MODE_SC }, { "lazy", LEM_MODE_LAZY },
	{ "poll", LEM_MODE_POLL }, { "csb", LEM_MODE_CSB }, { NULL, 0 }
};

/* Steps over a prefix of *s. */
static bool
skip(const char **s, const char *prefix)
{
	size_t n = strlen(prefix);

	if (memcmp(*s, prefix, n) != 0)
		return (false);
	*s += n;
	return (true);
}

static bool
ends(const char *s, char also)
{
	return (*s == '\0' || *s == ' ' || *s == also);
}

static uint64_t
number(const char **s, uint64_t min, uint64_t max)
{
	uint64_t v = 0;
	const char *start = *s;

	for (; **s >= '0' && **s <= '9' && v <= max; ++*s)
		v = v * 10 + (uint64_t)(**s - '0');
	if (*s == start || v < min || v > max)
		panic("not a number from %lu to %lu: %s", min, max, start);
	return (v);
}

static uint32_t
word(const char **s, const struct word *words)
{
	const char *at;

	for (; words->name != NULL; words++) {
		at = *s;
		if (skip(&at, words->name) && ends(at, ',')) {
			*s = at;
			return (words->value);
		}
	}
	panic("unknown word: %s", *s);
}

static int
hex(char c)
{
	if (c >= '0' && c <= '9')
		return (c - '0');
	if (c >= 'a' && c <= 'f')
		return (c - 'a' + 10);
	if (c >= 'A' && c <= 'F')
		return (c - 'A' + 10);
	return (-1);
}

static void
ether(const char **s, uint8_t mac[6])
{
	const char *start = *s;
	int i, lo, hi;

	for (i = 0; i < 6; i++, *s += 3) {
		hi = hex((*s)[0]);
		lo = hi < 0 ? -1 : hex((*s)[1]);
		if (lo < 0 || (i < 5 && (*s)[2] != ':'))
			panic("not an Ethernet address: %s", start);
		mac[i] = (uint8_t)(hi << 4 | lo);
	}
	--*s;
}

static void
mode(const char **s, struct options *opt)
{
	for (;; ++*s) {
		if (skip(s, "itr="))
			opt->itr = (uint32_t)number(s, 0, E82545_ITR_MAX);
		else
			opt->mode |= word(s, modes);
		if (**s != ',')
			break;
	}
}

static void
rates(const char **s, struct options *opt)
{
	for (;; ++*s) {
		if (opt->nrates == STEPS)
			panic("more than %u rates", STEPS);
		opt->rate[opt->nrates++] = (uint32_t)number(s, 0, 100000000);
		if (**s != ',')
			break;
	}
}

static void
option(const char **s, struct options *opt)
{
	const char *start = *s;

	if (skip(s, "role="))
		opt->role = word(s, roles);
	else if (skip(s, "size="))
		opt->size = (uint32_t)number(s, FRAME_MIN, FRAME_MAX);
	else if (skip(s, "rate="))
		rates(s, opt);
	else if (skip(s, "work="))
		opt->work_ns = (uint32_t)number(s, 0, 1000000000);
	else if (skip(s, "program="))
		opt->program_ns = (uint32_t)number(s, 0, 1000000000);
	else if (skip(s, "socket="))
		opt->socket = (uint32_t)number(s, 1, 4096);
	else if (skip(s, "rounds="))
		opt->rounds = (uint32_t)number(s, 0, LEM_ROUNDS_MAX);
	else if (skip(s, "share="))
		opt->share = (uint32_t)number(s, 0, 100);
	else if (skip(s, "batch="))
		opt->batch = (uint32_t)number(s, 1, LEM_RING_MAX);
	else if (skip(s, "ms="))
		opt->ms = (uint32_t)number(s, 0, 86400000);
	else if (skip(s, "count="))
		opt->count = number(s, 0, ~0ul / 16);
	else if (skip(s, "mode="))
		mode(s, opt);
	else if (skip(s, "ring="))
		opt->ring = (uint32_t)number(s, LEM_RING_MIN, LEM_RING_MAX);
	else if (skip(s, "tick="))
		opt->tick = (uint32_t)number(s, 0, 1000000);
	else if (skip(s, "intr="))
		opt->intr = word(s, intrs);
	else if (skip(s, "mac=")) {
		ether(s, opt->mac);
		opt->has_mac = true;
	} else if (skip(s, "dst="))
		ether(s, opt->dst);
	else
		panic("unknown option: %s", start);
	if (!ends(*s, ' '))
		panic("more than expected: %s", start);
}

void
options_parse(struct options *opt, const char *cmdline)
{
	memset(opt, 0, sizeof(*opt));
	opt->size = FRAME_MIN;
	opt->batch = 1;
	opt->ms = 3000;
	opt->ring = 256;
	opt->tick = 1000;
	opt->socket = 28;
	opt->rounds = LEM_ROUNDS_DEFAULT;
	memset(opt->dst, 0xff, sizeof(opt->dst));
	for (;;) {
		while (*cmdline == ' ')
			cmdline++;
		if (*cmdline == '\0')
			break;
		option(&cmdline, opt);
	}
	if ((opt->ring & (opt->ring - 1)) != 0)
		panic("ring=%u is not a power of two", opt->ring);
}
