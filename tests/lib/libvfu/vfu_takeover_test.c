/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Processes that end at any instruction, and others that go on with their
 * clients.
 */

#include <sys/param.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include "test.h"
#include "vfu_takeover.h"

#ifdef SANITIZED
#define	KILLS	120
#else
#define	KILLS	600
#endif
#define	POINTS	16

TEST_WITH(flood, "timeout", "600", "Kills at any time, under a flood of all "
    "kinds of messages")
{
	unsigned int i, k, messages;
	uint32_t seed = 1;

	takeover_start();
	for (k = 0; k < KILLS; k++) {
		messages = test_below(&seed, 200);
		for (i = 0; i < messages; i++) {
			takeover_send(test_below(&seed, TAKEOVER_KINDS), &seed,
			    test_chance(&seed, 1, 8));
			if (test_chance(&seed, 1, 4))
				takeover_poll();
			if (test_chance(&seed, 1, 16))
				sched_yield();
		}
		if (test_chance(&seed, 1, 8))
			takeover_wait();
		takeover_kill();
		/* Some are sent while there is no process. */
		if (test_chance(&seed, 1, 2))
			takeover_send(test_below(&seed, TAKEOVER_KINDS), &seed,
			    test_chance(&seed, 1, 2));
		takeover_next();
	}
	takeover_check();
	takeover_end();
}

/* Have a process that lives and has nothing to do. */
static void
settle(uint32_t *seed)
{
	takeover_die_at(0);
	takeover_send(TAKEOVER_READ, seed, false);
	while (takeover_died())
		takeover_next();
}

/* Have a process die at each point of a message, with replies and without. */
static void
each_point(enum takeover_kind kind, uint32_t *seed, unsigned int *deaths)
{
	unsigned int n;
	bool died;

	for (n = 1, died = true; died; n++) {
		settle(seed);
		takeover_die_at(n);
		takeover_send(kind, seed, false);
		takeover_send(TAKEOVER_READ, seed, false);
		died = takeover_died();
		if (!died)
			break;
		++*deaths;
		/* One of the first points of the next, too. */
		if (n % 2 == 0)
			takeover_die_at(1 + n / 2 % 16);
		takeover_next();
	}
	settle(seed);
}

TEST_WITH(each, "timeout", "600", "A process dies at each point where a state "
    "is stored")
{
	unsigned int deaths = 0, kind, round;
	uint32_t seed = 1;

	takeover_start();
	for (round = 0; round < 3; round++)
		for (kind = 0; kind < TAKEOVER_KINDS; kind++)
			each_point(kind, &seed, &deaths);
	ATF_CHECK(deaths > 3 * 10 * TAKEOVER_KINDS);
	takeover_check();
	takeover_end();
}

TEST_WITH(pieces, "timeout", "600", "A descriptor comes in one piece with the "
    "end of the message before its own, whose rest comes to the next process")
{
	uint32_t seed = 1;
	unsigned int i;

	takeover_start();
	for (i = 0; i < 100; i++) {
		takeover_send(i % 2 ? TAKEOVER_MAP : TAKEOVER_READ, &seed,
		    true);
		/* A part of it that is not all. */
		takeover_send(TAKEOVER_MAP, &seed, true);
		while (takeover_missing() > 1)
			takeover_poll();
		takeover_kill();
		takeover_next();
		takeover_send(TAKEOVER_READ_PAGE, &seed, false);
		takeover_wait();
		if (i % 16 == 15)
			takeover_send(TAKEOVER_UNMAP_ALL, &seed, false);
	}
	takeover_check();
	takeover_end();
}

TEST_WITH(comes, "timeout", "600", "A process dies at each point while a "
    "client comes, which is served, unless that is where it is accepted")
{
	unsigned int deaths = 0, lost = 0, n;
	bool served;

	takeover_start();
	(void)takeover_disconnect();
	for (n = 1; ; n++, deaths++) {
		takeover_die_at(n);
		/* The kernel gives it to the process, which has it kept. */
		served = takeover_connect();
		ATF_CHECK_EQ_MSG(!takeover_unkept(), served, "at point %u", n);
		lost += takeover_unkept();
		if (!takeover_disconnect())
			break;
	}
	ATF_CHECK_MSG(lost > 0, "%u of %u", lost, deaths);
	ATF_CHECK_MSG(deaths > 20, "%u", deaths);
	ATF_CHECK(takeover_connect());
	takeover_end();
}

TEST_WITH(least, "timeout", "120", "A client with the smallest send buffer "
    "does not wait for ever")
{
	uint32_t seed = 1;
	unsigned int i;

	takeover_sndbuf = 1;
	takeover_start();
	for (i = 0; i < 100; i++) {
		/* More than it takes, without a reply. */
		takeover_send(TAKEOVER_POST, &seed, false);
		if (i % 20 != 19)
			continue;
		takeover_kill();
		takeover_next();
		takeover_send(TAKEOVER_POST_MULTI, &seed, false);
		takeover_send(TAKEOVER_MAP, &seed, false);
	}
	takeover_check();
	takeover_end();
}

TEST_WITH(part, "timeout", "120", "If the rest of a message does not come, a "
    "line says what a client needs")
{
	uint32_t seed = 1;

	takeover_start();
	takeover_send(TAKEOVER_READ, &seed, true);
	while (strstr(takeover_said(), "a send buffer of 32 KB") == NULL)
		takeover_poll();
	takeover_check();
	takeover_end();
}

/*
 * Instruction by instruction.
 */

static bool
traced_step(int how)
{
	int status;

	ATF_REQUIRE_EQ(0, ptrace(how, takeover_pid, NULL, NULL));
	ATF_REQUIRE_EQ(takeover_pid, waitpid(takeover_pid, &status, 0));
	return (WIFSTOPPED(status));
}

/*
 * Let it handle a message for `n' instructions, or until it waits for the next
 * one; returns how many there were.
 */
static unsigned long
traced_run(unsigned long n)
{
	unsigned long i;

	for (i = 0; i < n; i++) {
		ATF_REQUIRE(traced_step(PTRACE_SINGLESTEP));
		if (i % 16 != 0)
			continue;
		takeover_poll();
		if (takeover_missing() == 0)
			break;
	}
	return (i);
}

/* Kill it after each of POINTS parts of a message of this kind. */
static void
points(enum takeover_kind kind, uint32_t *seed)
{
	unsigned long n;
	unsigned int i;

	/* A message before it, so that all of it has been used once. */
	takeover_send(kind, seed, false);
	takeover_send(TAKEOVER_READ, seed, false);
	n = traced_run(-1UL);
	printf("kind %d: %lu instructions\n", kind, n);
	for (i = 0; i < POINTS; i++) {
		takeover_kill();
		takeover_next();
		takeover_send(kind, seed, false);
		takeover_send(TAKEOVER_READ, seed, false);
		(void)traced_run(n * i / POINTS + test_below(seed,
		    n / POINTS + 1));
	}
	(void)traced_run(-1UL);
}

TEST_WITH(instructions, "timeout", "600", "A message of each kind is cut off "
    "after any instruction")
{
	uint32_t seed = 1;
	unsigned int kind;
	cpu_set_t cpu;

#ifdef SANITIZED
	atf_tc_skip("a sanitizer's own instructions are too many");
#endif
	/* On one processor, a step takes less time. */
	CPU_ZERO(&cpu);
	CPU_SET(sched_getcpu(), &cpu);
	(void)sched_setaffinity(0, sizeof(cpu), &cpu);
	takeover_start();
	takeover_kill();
	takeover_traced = true;
	takeover_next();
	for (kind = 0; kind < TAKEOVER_KINDS; kind++)
		points(kind, &seed);
	takeover_kill();
	takeover_traced = false;
	takeover_next();
	takeover_check();
	takeover_end();
}

TEST_PROGRAM
