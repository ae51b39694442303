/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A process that runs an adapter ends at any instruction, and the adapter goes
 * on in another one.
 */

#include <sys/param.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#ifndef WITHOUT_DTRACE
#define	WITHOUT_DTRACE
#endif

#include "e82545_check.h"
#include "e82545_crash.h"
#include "e82545_rx_impl.h"
#include "e82545_tx_impl.h"

#define	PACKETS		60
#define	NRX		40		/* frames received */

/* What a crash leaves of batches. */
struct left {
	bool		tx_ended, rx_ended;	/* they were writing back */
	uint32_t	nsent;
	uint32_t	rx_next;
};

static struct left
look_at(struct crash *c)
{
	const struct e82545 *old = (void *)c->model[c->cur];
	struct e82545 parts;
	struct left l;

	e82545_memory_parts(&parts, c->model[c->cur]);
	l.tx_ended = parts.txq->end != TX_END_NONE &&
	    parts.txq->end != e82545_reg(old, E82545_TDH);
	l.rx_ended = parts.rxq->ndone > 0 ||
	    (parts.rxq->end != RX_END_NONE &&
	    parts.rxq->end != e82545_reg(old, E82545_RDH));
	l.nsent = c->nsent;
	l.rx_next = c->rx_next;
	return (l);
}

/*
 * All frames that were sent are right, in order, each once, but for those from
 * the batch on that the crash has cut off.
 */
static void
check_tx(const struct crash *c, const struct left *l, uint32_t told)
{
	static uint64_t want[2 * PACKETS];
	const uint32_t total = crash_frames(PACKETS);
	uint32_t again, i;

	ATF_REQUIRE(total < nitems(want));
	for (i = 0; i < total && want[total - 1] == 0; i++)
		want[i] = crash_hash(i);
	ATF_REQUIRE_EQ(PACKETS, c->told);
	ATF_REQUIRE(told <= l->nsent);
	for (i = 0; i < l->nsent; i++)
		ATF_REQUIRE_EQ_MSG(want[i], c->sent[i], "frame %u", i);
	ATF_REQUIRE(c->nsent >= total);
	again = c->nsent - total;
	if (l->tx_ended)
		ATF_REQUIRE_EQ(0, again);
	ATF_REQUIRE_MSG(again <= l->nsent - c->batch_sent ||
	    c->nsent == total, "%u again of %u", again, l->nsent);
	ATF_REQUIRE(l->nsent - again >= told);
	for (i = l->nsent; i < c->nsent; i++)
		ATF_REQUIRE_EQ_MSG(want[i - again], c->sent[i],
		    "frame %u, %u again", i, again);
}

/* Frames are lost that were taken from the port by that batch, and no other. */
static void
check_rx(const struct crash *c, const struct left *l, uint32_t batch)
{
	const uint32_t lost = c->nlost + NRX - c->rx_frame;

	ATF_REQUIRE_EQ(NRX, c->nreceived + lost);
	if (l->rx_ended)
		ATF_REQUIRE_EQ(0, lost);
	ATF_REQUIRE(lost <= l->rx_next - batch);
	if (c->nlost > 0)
		ATF_REQUIRE(c->lost_first >= batch &&
		    c->lost_last < l->rx_next);
}

/* The adapter of `from', which stands still, goes on in a copy. */
static void
check_copy(const struct crash *from, struct crash *c, bool look)
{
	const uint32_t batch_rx = from->batch_rx, batch_sent = from->batch_sent;
	struct left l;
	uint32_t told;

	memcpy(c, from, sizeof(*c));
	l = look_at(c);
	/* The guest may see what there is before another process does. */
	if (look)
		crash_look(c);
	told = crash_frames(c->told);
	ATF_REQUIRE_EQ(0, crash_recover(c));
	/* An access that was in progress is done again. */
	crash_serve(c);
	crash_run(c, 400, NRX);
	c->batch_sent = batch_sent;
	check_tx(c, &l, told);
	check_rx(c, &l, batch_rx);
	crash_down(c);
}

/* Returns false when the process has stopped by itself. */
static bool
step(pid_t pid)
{
	int status;

	ATF_REQUIRE_EQ(0, ptrace(PTRACE_SINGLESTEP, pid, 0, 0));
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	ATF_REQUIRE(WIFSTOPPED(status));
	return (WSTOPSIG(status) == SIGTRAP);
}

/*
 * Run a process up to a round, and then end it after each instruction of the
 * adapter that is one of `stride' or writes back: in a copy.
 */
static void
check_steps(bool csb, unsigned int round, unsigned int stride)
{
	struct crash *c = crash_alloc(), *copy = crash_alloc();
	unsigned int n = 0, nchecked = 0, nended = 0, nsteps;
	struct left l;
	pid_t pid;
	int status;

	pid = fork();
	ATF_REQUIRE(pid != -1);
	if (pid == 0) {
		crash_up(c, csb, PACKETS);
		crash_run(c, round, NRX);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		crash_run(c, 1, NRX);
		raise(SIGSTOP);
		_exit(0);
	}
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	ATF_REQUIRE(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	for (nsteps = 0; nsteps < 60000 && step(pid); nsteps++) {
		if (!c->in_model)
			continue;
		l = look_at(c);
		if (!l.tx_ended && !l.rx_ended && n++ % stride != 0)
			continue;
		nended += l.tx_ended || l.rx_ended;
		nchecked++;
		check_copy(c, copy, false);
		check_copy(c, copy, true);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	printf("%u instructions, %u checked, %u of them in a write back\n",
	    nsteps, nchecked, nended);
	ATF_CHECK(nended > 10);
	crash_free(copy);
	crash_free(c);
}

TEST(run, "The guest of these tests gets all frames if nothing crashes")
{
	struct crash *c = crash_alloc();
	const struct left l = { .nsent = 0 };
	int csb;

	for (csb = 0; csb < 2; csb++) {
		crash_up(c, csb, PACKETS);
		crash_run(c, 400, NRX);
		check_tx(c, &l, 0);
		check_rx(c, &l, 0);
		crash_down(c);
	}
	crash_free(c);
}

TEST(steps, "A process may end at any instruction of a batch")
{
	check_steps(false, 0, 41);
	check_steps(false, 3, 41);
}

TEST(csb_steps, "A process may end at any instruction of a batch with the CSB")
{
	check_steps(true, 0, 41);
	check_steps(true, 3, 41);
}

TEST_PROGRAM
