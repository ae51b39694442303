/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What a program receives, at loads from half to ten times what its guest can
 * take.
 *
 * The guest has one processor, which is simulated: the clock advances by what
 * each of its actions costs.  It has two stages.  The first one, the driver and
 * the stack, serves the adapter and puts frames into the buffer of a socket.
 * The second one, the program, takes them from there.  The first one preempts
 * the second one, as interrupts and their threads do.  The adapter and the
 * switch have processors of their own.
 */

#include <sys/param.h>

#include <inttypes.h>
#include <stdio.h>

#include <atf-c.h>

#include "lem_test.h"

/* Costs in nanoseconds. */
#define	EXIT_NS		2000		/* a register access */
#define	INTR_NS		4000		/* an interrupt, with its exits */
#define	TURN_NS		1000		/* a turn, besides its frames */
#define	STACK_NS	10000		/* a frame in the first stage */
#define	POLL_NS		1000000		/* between polls */

#define	SOCKET		28		/* frames in the socket's buffer */
#define	PORT		256		/* frames that wait for the adapter */
#define	BUDGET		16		/* frames a turn */
#define	RUN_NS		200000000

struct world {
	struct lem_test	*t;
	uint64_t	 now;
	uint64_t	 gap_ns;	/* between frames */
	uint64_t	 next_ns;	/* the next frame */
	uint64_t	 program_ns;	/* a frame in the second stage */

	unsigned int	 socket;	/* frames in its buffer */
	uint64_t	 left_ns;	/* of the frame that the program has */
	uint64_t	 begin_ns;	/* of the first stage */
	bool		 paused;	/* the first stage lets others run */
	uint64_t	 resume_ns;	/* at the latest */
	uint64_t	 poll_ns;	/* the next poll */
	uint32_t	 share;		/* percent, or 0: no limit */
	uint64_t	 due_ns;	/* lem_share_turn() */

	uint64_t	 offered, used;	/* frames sent; used by the program */
};

static struct world world;

/* A frame from the network. */
static void
arrive(struct world *w)
{
	w->offered++;
	w->next_ns += w->gap_ns;
	if (host_rx_pending(w->t->h) < PORT)
		test_inject(w->t, 1, 60);
	host_run(w->t->h);
}

/* Time passes. */
static void
spend(struct world *w, uint64_t ns)
{
	uint64_t end = w->now + ns, step;

	while (w->now < end) {
		step = MIN(end, w->next_ns) - w->now;
		host_advance(w->t->h, step);
		host_run(w->t->h);
		w->now += step;
		if (w->now == w->next_ns)
			arrive(w);
	}
}

static uint32_t
world_read(void *arg, uint32_t reg)
{
	spend(&world, EXIT_NS);
	return (host_rd(arg, reg));
}

static void
world_write(void *arg, uint32_t reg, uint32_t value)
{
	spend(&world, EXIT_NS);
	host_wr(arg, reg, value);
}

/* The stack: a frame for the socket, or too much for it. */
static void
world_frame(void *arg, const uint8_t *data __unused, size_t len __unused,
    uint32_t flags __unused, uint16_t vlan __unused)
{
	struct world *w = arg;

	spend(w, STACK_NS);
	if (w->socket < SOCKET)
		w->socket++;
}

static bool
program_wants(const struct world *w)
{
	return (w->socket > 0 || w->left_ns > 0);
}

/* The first stage, until the ring is empty or others must run. */
static void
serve(struct world *w)
{
	struct lem_core *lc = &w->t->g.lc;
	uint64_t pause;
	unsigned int n;

	w->paused = false;
	for (; w->now < RUN_NS; w->begin_ns = w->now) {
		spend(w, TURN_NS);
		n = lem_rx(lc, BUDGET);
		/* An interrupt for something else is no turn. */
		pause = w->share == 0 ||
		    (n == 0 && (lc->lc_mode & LEM_MODE_POLL) == 0) ? 0 :
		    lem_share_turn(&w->due_ns, w->share, w->begin_ns, w->now);
		if (pause != 0 && program_wants(w)) {
			w->paused = true;
			w->resume_ns = w->now + pause;
			return;
		}
		if (n < BUDGET && !lem_intr_enable(lc))
			break;
	}
	w->poll_ns = MAX(w->now, w->begin_ns + POLL_NS);
}

/* Whether the first stage must run; the program may continue until *until. */
static bool
must_serve(struct world *w, uint64_t *until)
{
	struct lem_core *lc = &w->t->g.lc;

	w->begin_ns = w->now;
	if (w->paused) {
		*until = w->resume_ns;
		return (w->now >= w->resume_ns || !program_wants(w));
	}
	if ((lc->lc_mode & LEM_MODE_POLL) != 0) {
		*until = w->poll_ns;
		return (w->now >= w->poll_ns);
	}
	*until = w->next_ns;	/* no interrupt before: that of ITR may come */
	if (!host_line(w->t->h))
		return (false);
	spend(w, INTR_NS);
	return (lem_intr(lc));
}

/* The second stage, or nothing, until the time given or the line's change. */
static void
program(struct world *w, uint64_t until)
{
	uint64_t step = 1000;

	if (w->left_ns == 0 && w->socket > 0) {
		w->socket--;
		w->left_ns = w->program_ns;
	}
	if (until > w->now)
		step = MIN(step, until - w->now);
	if (w->left_ns == 0) {
		spend(w, step);
		return;
	}
	step = MIN(step, w->left_ns);
	spend(w, step);
	w->left_ns -= step;
	w->used += w->left_ns == 0;
}

/* Frames that the program uses in RUN_NS. */
static uint64_t
run(uint32_t mode, uint32_t itr, uint32_t share, uint64_t program_ns,
    uint64_t gap_ns)
{
	struct world *w = &world;
	struct lem_core *lc;
	uint64_t until;

	*w = (struct world){ .t = test_create(mode, 2048, 1500),
	    .gap_ns = gap_ns, .next_ns = gap_ns, .program_ns = program_ns,
	    .share = share };
	lc = &w->t->g.lc;
	ATF_REQUIRE_EQ(0, lem_set_itr(lc, itr));
	lc->lc_os.reg_read = world_read;
	lc->lc_os.reg_write = world_write;
	lc->lc_os.frame = world_frame;
	lc->lc_os.frame_arg = w;
	while (w->now < RUN_NS) {
		if (must_serve(w, &until))
			serve(w);
		else
			program(w, until);
	}
	w->next_ns = UINT64_MAX;
	test_destroy(w->t);
	return (w->used);
}

static const uint64_t programs_ns[] = { 5000, 20000, 100000 };
/* Tenths of what the guest can take. */
static const unsigned int loads[] = { 5, 10, 20, 50, 100 };

struct curve {
	uint64_t	 used[nitems(loads)];
	uint64_t	 peak;
};

static void
curve(struct curve *c, const char *name, uint32_t mode, uint32_t itr,
    uint32_t share, uint64_t program_ns)
{
	unsigned int i;

	printf("%-16s program %3" PRIu64 " us:", name, program_ns / 1000);
	c->peak = 0;
	for (i = 0; i < nitems(loads); i++) {
		c->used[i] = run(mode, itr, share, program_ns,
		    (STACK_NS + program_ns) * 10 / loads[i]);
		c->peak = MAX(c->peak, c->used[i]);
		printf(" %6" PRIu64, c->used[i]);
	}
	printf("\n");
}

/* The program uses `least' percent of what it can, whatever the load. */
static void
check_program(const char *name, uint32_t mode, uint32_t itr, uint32_t share,
    uint64_t program_ns, unsigned int least)
{
	struct curve c;
	unsigned int i;

	curve(&c, name, mode, itr, share, program_ns);
	for (i = 0; i < nitems(loads); i++)
		ATF_CHECK_MSG(c.used[i] * 100 >=
		    c.peak * least * MIN(loads[i], 10) / 10,
		    "load %u/10: %" PRIu64 " of %" PRIu64, loads[i],
		    c.used[i], c.peak);
}

/*
 * A program that needs more than the others' share for a frame runs while
 * reception takes its own.
 */
static void
check_kept(const char *name, uint32_t mode, uint32_t itr)
{
	check_program(name, mode, itr, 20, 5000, 90);
	check_program(name, mode, itr, 20, 20000, 90);
	check_program(name, mode, itr, 20, 40000, 90);
	check_program(name, mode, itr, 20, 100000, 72);
	check_program(name, mode, itr, 10, 100000, 90);
}

TEST(livelock, "Without a limit, a program gets less than 30 % of its peak at "
    "ten times its load")
{
	struct curve c;
	unsigned int p;

	for (p = 0; p < nitems(programs_ns); p++) {
		curve(&c, "no limit", 0, 0, 0, programs_ns[p]);
		ATF_CHECK(c.peak > 0);
		ATF_CHECK(c.used[nitems(loads) - 1] * 10 < c.peak * 3);
	}
}

TEST(base, "With interrupts and a share, the program keeps 90 % of its peak")
{
	check_kept("interrupts", 0, 0);
}

TEST(itr, "With moderation and a share, the program keeps 90 % of its peak")
{
	check_kept("itr=488", 0, 488);
}

TEST(csb, "With the CSB and a share, the program keeps 90 % of its peak")
{
	check_kept("csb", LEM_MODE_CSB, 0);
}

TEST(poll, "With polling and a share, the program keeps 90 % of its peak")
{
	check_kept("poll", LEM_MODE_POLL, 0);
}

#define	SLACK_NS	10000000	/* of time not used, kept for later */

TEST(turn, "A turn is followed by its part of the others' time, less what was "
    "not used before, up to 10 ms")
{
	static const struct {
		uint64_t	begin_ns, end_ns, pause_ns;
	} t[] = {
		/* The slack was not used, and one nanosecond more. */
		{ SLACK_NS + 1, 2 * SLACK_NS + 1, 3 * SLACK_NS },
		/* At its end; then earlier, which counts for this turn only. */
		{ 5 * SLACK_NS + 1, 6 * SLACK_NS + 1, 4 * SLACK_NS },
		{ 6 * SLACK_NS + 51, 6 * SLACK_NS + 151, 400 },
		/* Half of the slack is left, then it is used. */
		{ 6 * SLACK_NS + 551 + SLACK_NS / 2,
		  6 * SLACK_NS + 651 + SLACK_NS / 2, 0 },
		{ 6 * SLACK_NS + 651 + SLACK_NS / 2,
		  7 * SLACK_NS + 651 + SLACK_NS / 2,
		  4 * SLACK_NS - SLACK_NS / 2 + 400 },
	};
	uint64_t due_ns = 0;
	unsigned int i;

	for (i = 0; i < nitems(t); i++)
		ATF_CHECK_EQ_MSG(t[i].pause_ns, lem_share_turn(&due_ns, 20,
		    t[i].begin_ns, t[i].end_ns), "turn %u", i);
}

TEST_PROGRAM
