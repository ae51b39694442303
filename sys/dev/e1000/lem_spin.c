/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * How much of the processor a driver uses: what share reception has of it
 * (lem_share_turn()), and for how long to spin.
 *
 * For how long to spin, that is, to poll for work, before one asks to be woken.
 *
 * A wakeup costs an exit or an interrupt.  To spin costs the processor that
 * does it, and that processor may be the one that is to make the work.  Nobody
 * knows beforehand which is less.  So the number of rounds that one spins
 * follows what was seen last:
 *
 *	work was found		twice as many, up to the maximum
 *	a wakeup was needed	half as many, down to one
 *
 * The way up begins with work that is found.  If it takes more than a round to
 * come, one round never finds it, so after some wakeups in a row one spin has
 * the maximum, on trial.  If that does not pay either, the next trial is after
 * twice as many wakeups.
 */

#include "lem_spin.h"

/* Wakeups in a row between two trials: the first time, and at most. */
#define	TRIAL_MIN	16
#define	TRIAL_MAX	1024

/*
 * What reception has not used of its share in this time it may use later.  That
 * is enough for a request or its answer, even on a slow processor.
 */
#define	SLACK_NS	10000000

void
lem_spin_init(struct lem_spin *sp, uint32_t max)
{
	*sp = (struct lem_spin){
		.sp_max = max,
		.sp_rounds = max,
		.sp_pause = TRIAL_MIN,
		.sp_fresh = true
	};
}

void
lem_spin_paid(struct lem_spin *sp)
{
	sp->sp_rounds *= 2;
	if (sp->sp_rounds > sp->sp_max)
		sp->sp_rounds = sp->sp_max;
	sp->sp_misses = 0;
	sp->sp_pause = TRIAL_MIN;
	sp->sp_trial = false;
	sp->sp_learn = sp->sp_rounds < sp->sp_max;
}

void
lem_spin_missed(struct lem_spin *sp)
{
	if (sp->sp_fresh) {
		/* There was no spin. */
		sp->sp_fresh = false;
		return;
	}
	if (sp->sp_trial) {
		sp->sp_trial = false;
		sp->sp_rounds = 1;
		if (sp->sp_pause < TRIAL_MAX)
			sp->sp_pause *= 2;
	} else if (sp->sp_rounds > 1) {
		sp->sp_rounds /= 2;
	} else if (sp->sp_rounds == 1 && ++sp->sp_misses == sp->sp_pause) {
		sp->sp_misses = 0;
		sp->sp_trial = true;
		sp->sp_rounds = sp->sp_max;
	}
	sp->sp_learn = sp->sp_trial || sp->sp_rounds < sp->sp_max;
}

/*
 * End a turn: at its share, reception has used the processor by *due_ns.  Turns
 * that the host took earlier, because nobody else wanted the processor, do not
 * count: a turn is followed by at most its own part of the others' time.
 */
uint64_t
lem_share_turn(uint64_t *due_ns, uint32_t percent, uint64_t begin_ns,
    uint64_t end_ns)
{
	uint64_t from = *due_ns;

	if (from > begin_ns)
		from = begin_ns;
	else if (begin_ns - from > SLACK_NS)
		from = begin_ns - SLACK_NS;
	*due_ns = from + (end_ns - begin_ns) * 100 / percent;
	return (*due_ns > end_ns ? *due_ns - end_ns : 0);
}
