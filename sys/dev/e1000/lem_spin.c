/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
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
	if (sp->sp_rounds > sp->sp_max) /* mutants: the same number */
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
	/* mutants: at the maximum there is nothing to learn */
	sp->sp_learn = sp->sp_trial || sp->sp_rounds < sp->sp_max;
}
