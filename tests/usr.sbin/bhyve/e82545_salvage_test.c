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

#define	TSO		200		/* bytes of a segment */
#define	FRAMES_MAX	4096

/* What a guest does. */
struct traffic {
	bool		csb;
	uint32_t	packets;	/* it sends */
	uint16_t	tso;		/* bytes of segments */
	uint32_t	frames;		/* it receives */
};

/* What a crash leaves of batches. */
struct left {
	bool		tx_ended, rx_ended;	/* they were writing back */
	bool		taken;		/* an index was, from the CSB */
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
	l.taken = c->csb && (old->csb.tdt.taken != NET_PARAVIRT_NONE ||
	    old->csb.rdt.taken != NET_PARAVIRT_NONE);
	l.nsent = c->nsent;
	l.rx_next = c->rx_next;
	return (l);
}

/*
 * All frames that were sent are right, in order, each once, but for those from
 * the batch on that the crash has cut off.
 */
static void
check_tx(const struct crash *c, const struct left *l, uint32_t batch,
    uint32_t told)
{
	static uint64_t want[FRAMES_MAX];
	static uint16_t tso;
	const uint32_t total = crash_frames(c->packets);
	uint32_t again, i;

	ATF_REQUIRE(total <= nitems(want));
	if (tso != c->tso)
		memset(want, 0, sizeof(want));
	tso = c->tso;
	for (i = total; i-- > 0 && want[i] == 0;)
		want[i] = crash_hash(i);
	ATF_REQUIRE_EQ(c->packets, c->told);
	ATF_REQUIRE(told <= l->nsent);
	for (i = 0; i < l->nsent; i++)
		ATF_REQUIRE_EQ_MSG(want[i], c->sent[i], "frame %u", i);
	ATF_REQUIRE(c->nsent >= total);
	again = c->nsent - total;
	if (l->tx_ended)
		ATF_REQUIRE_EQ(0, again);
	ATF_REQUIRE_MSG(again <= l->nsent - batch, "%u again of %u", again,
	    l->nsent);
	ATF_REQUIRE(l->nsent - again >= told);
	for (i = l->nsent; i < c->nsent; i++)
		ATF_REQUIRE_EQ_MSG(want[i - again], c->sent[i],
		    "frame %u, %u again", i, again);
}

/* Frames are lost that were taken from the port by that batch, and no other. */
static void
check_rx(const struct crash *c, const struct left *l, uint32_t batch,
    uint32_t frames)
{
	const uint32_t lost = c->nlost + frames - c->rx_frame;

	ATF_REQUIRE_EQ(frames, c->nreceived + lost);
	if (l->rx_ended)
		ATF_REQUIRE_EQ(0, lost);
	ATF_REQUIRE(lost <= l->rx_next - batch);
	if (c->nlost > 0)
		ATF_REQUIRE(c->lost_first >= batch &&
		    c->lost_last < l->rx_next);
}

/* The process that ran the adapter has ended: it goes on in this one. */
static void
check_left(struct crash *c, const struct traffic *t, bool look)
{
	const uint32_t batch_rx = c->batch_rx, batch_sent = c->batch_sent;
	const struct left l = look_at(c);
	uint32_t told;

	/* The guest may see what there is before another process does. */
	if (look)
		crash_look(c);
	told = crash_frames(c->told);
	ATF_REQUIRE_EQ(0, crash_recover(c));
	/* An access that was in progress is done again. */
	crash_serve(c);
	crash_run(c, 400, t->frames);
	check_tx(c, &l, batch_sent, told);
	check_rx(c, &l, batch_rx, t->frames);
	crash_down(c);
}

/* The same in a copy of `from', which stands still. */
static void
check_copy(const struct crash *from, struct crash *c, const struct traffic *t,
    bool look)
{
	memcpy(c, from, sizeof(*c));
	check_left(c, t, look);
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
 * adapter that is one of `stride', or is in the middle of something: in a copy.
 */
static void
check_steps(struct traffic t, unsigned int round, unsigned int stride)
{
	struct crash *c = crash_alloc(), *copy = crash_alloc();
	unsigned int n = 0, nchecked = 0, nleft = 0, nsteps;
	struct left l;
	pid_t pid;
	int status;

	crash_up(c, t.csb, t.packets, t.tso);
	crash_down(c);
	pid = fork();
	ATF_REQUIRE(pid != -1);
	if (pid == 0) {
		crash_up(c, t.csb, t.packets, t.tso);
		crash_run(c, round, t.frames);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		crash_run(c, 1, t.frames);
		raise(SIGSTOP);
		_exit(0);
	}
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	ATF_REQUIRE(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	for (nsteps = 0; nsteps < 60000 && step(pid); nsteps++) {
		if (!c->in_model)
			continue;
		l = look_at(c);
		if (!l.tx_ended && !l.rx_ended && !l.taken && n++ % stride != 0)
			continue;
		nleft += l.tx_ended || l.rx_ended;
		nchecked++;
		check_copy(c, copy, &t, false);
		check_copy(c, copy, &t, true);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	printf("%u instructions, %u checked, %u of them in a write back\n",
	    nsteps, nchecked, nleft);
	ATF_CHECK(nleft > 10);
	crash_free(copy);
	crash_free(c);
}

/* End a process at each `stride'-th call of the host. */
static void
check_points(struct traffic t, unsigned int stride)
{
	struct crash *c = crash_alloc();
	unsigned int at = 1;
	pid_t pid;
	int status;

	do {
		crash_up(c, t.csb, t.packets, t.tso);
		crash_down(c);
		pid = fork();
		ATF_REQUIRE(pid != -1);
		if (pid == 0) {
			crash_up(c, t.csb, t.packets, t.tso);
			c->point = 0;
			c->die_at = at;
			crash_run(c, 400, t.frames);
			c->die_at = 0;
			_exit(1);
		}
		ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
		ATF_REQUIRE(WIFEXITED(status));
		if (c->in_model)
			check_left(c, &t, at % 2 == 0);
		at += stride;
	} while (WEXITSTATUS(status) == 0);
	printf("%u points\n", at / stride);
	crash_free(c);
}

TEST(run, "The guest of these tests gets all frames if nothing crashes")
{
	struct crash *c = crash_alloc();
	const struct left l = { .nsent = 0 };
	int csb;

	for (csb = 0; csb < 2; csb++) {
		crash_up(c, csb, 60, TSO);
		crash_run(c, 400, 40);
		check_tx(c, &l, 0, 0);
		check_rx(c, &l, 0, 40);
		crash_down(c);
	}
	crash_free(c);
}

TEST(steps, "A process may end at any instruction of a batch")
{
	check_steps((struct traffic){ false, 60, TSO, 40 }, 0, 97);
	check_steps((struct traffic){ false, 60, TSO, 40 }, 3, 97);
}

TEST(tx_steps, "The same if the guest only sends")
{
	check_steps((struct traffic){ false, 7, TSO, 0 }, 0, 31);
	check_steps((struct traffic){ false, 60, TSO, 0 }, 2, 97);
}

TEST(rx_steps, "The same if the guest only receives")
{
	check_steps((struct traffic){ false, 0, TSO, 3 }, 0, 31);
	check_steps((struct traffic){ false, 0, TSO, 40 }, 4, 97);
}

TEST(csb_steps, "A process may end at any instruction of a batch with the CSB")
{
	check_steps((struct traffic){ true, 60, TSO, 40 }, 0, 97);
	check_steps((struct traffic){ true, 60, TSO, 40 }, 3, 97);
}

TEST(csb_tx_steps, "The same if the guest only sends")
{
	check_steps((struct traffic){ true, 7, TSO, 0 }, 0, 31);
	check_steps((struct traffic){ true, 60, TSO, 0 }, 2, 97);
}

TEST(csb_rx_steps, "The same if the guest only receives")
{
	check_steps((struct traffic){ true, 0, TSO, 3 }, 0, 31);
	check_steps((struct traffic){ true, 0, TSO, 40 }, 4, 97);
}

TEST(points, "A process may end in any call of the host")
{
	check_points((struct traffic){ false, 60, TSO, 40 }, 1);
}

TEST(csb_points, "A process may end in any call of the host with the CSB")
{
	check_points((struct traffic){ true, 60, TSO, 40 }, 1);
}

TEST(segments, "A process may end while a packet is sent in several batches")
{
	check_points((struct traffic){ false, 14, 3, 0 }, 7);
}

TEST_PROGRAM
