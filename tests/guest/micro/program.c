/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A receiver of two stages, which shows receive livelock: the stack puts frames
 * into a socket's buffer, and the program uses them.  The stack runs in the
 * interrupt handlers (nic_preempt()) and preempts the program.
 *
 * Frames have the number of the sender's step, in each of which it sends at
 * another rate.  A step lasts until the stack sees the next one's first frame.
 */

#include "lem_core.h"
#include "micro.h"

#define	SOCKET_MAX	4096

static const struct options *opt;
static uint8_t buffer[SOCKET_MAX];	/* the frames' steps */
static volatile uint32_t head, tail;	/* the program's, the stack's */
static volatile bool working;		/* the program has a frame */

static struct {
	uint64_t	 ns;		/* the first frame */
	uint64_t	 received;	/* by the stack */
	uint64_t	 used;		/* by the program */
} steps[STEPS + 1];
static uint32_t last;			/* step */

static bool
program_busy(void)
{
	return (working || head != tail);
}

void
program_frame(uint64_t step)
{
	if (step >= STEPS)
		panic("step %lu", step);
	if (steps[step].received++ == 0)
		steps[step].ns = now_ns();
	last = (uint32_t)step;
	if (tail - head >= opt->socket)
		return;
	buffer[tail % SOCKET_MAX] = (uint8_t)step;
	tail++;
}

/* The time spent in handlers is not the program's. */
bool
program_use(void)
{
	uint64_t had = nic_preempted_ns(), start = now_ns();
	uint8_t step;

	if (head == tail) {
		nic_idle();
		return (head != tail);
	}
	working = true;
	step = buffer[head % SOCKET_MAX];
	head++;
	while (now_ns() - start < opt->program_ns + nic_preempted_ns() - had)
		continue;
	steps[step].used++;
	working = false;
	return (true);
}

void
program_start(const struct options *o)
{
	opt = o;
	nic_preempt(o->share, program_busy);
}

void
program_report(void)
{
	uint32_t i;

	steps[last + 1].ns = now_ns();
	for (i = 0; i <= last; i++) {
		print("step_%u_received %lu\n", i, steps[i].received);
		print("step_%u_used %lu\n", i, steps[i].used);
		print("step_%u_us %lu\n", i,
		    (steps[i + 1].ns - steps[i].ns) / 1000);
	}
}
