/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * How long to look for work before one asks to be woken.
 *
 * A wakeup costs an exit or an interrupt.  To look again and again, in rounds,
 * costs the processor that does it, and that processor may be the one that is
 * to make the work.  Nobody knows beforehand which is less.  So the number of
 * rounds follows what was seen last:
 *
 *	work was found		twice as many, up to the maximum
 *	a wakeup was needed	half as many, down to one
 *
 * The way up begins with work that is found.  If it takes more than a round to
 * come, one round never finds it, so after some wakeups in a row one look has
 * the maximum, on trial.  If that does not pay either, the next trial is after
 * twice as many wakeups.
 */

#include "lem_impl.h"

/* Wakeups in a row between two trials: the first time, and at most. */
#define	TRIAL_MIN	16
#define	TRIAL_MAX	1024

void
lem_look_init(struct lem_look *ll, uint32_t max)
{
	*ll = (struct lem_look){
		.ll_max = max,
		.ll_rounds = max,
		.ll_pause = TRIAL_MIN,
		.ll_fresh = true
	};
}

void
lem_look_paid(struct lem_look *ll)
{
	ll->ll_rounds *= 2;
	if (ll->ll_rounds > ll->ll_max) /* mutants: the same number */
		ll->ll_rounds = ll->ll_max;
	ll->ll_misses = 0;
	ll->ll_pause = TRIAL_MIN;
	ll->ll_trial = false;
	ll->ll_learn = ll->ll_rounds < ll->ll_max;
}

void
lem_look_missed(struct lem_look *ll)
{
	if (ll->ll_fresh) {
		/* There was no look. */
		ll->ll_fresh = false;
		return;
	}
	if (ll->ll_trial) {
		ll->ll_trial = false;
		ll->ll_rounds = 1;
		if (ll->ll_pause < TRIAL_MAX)
			ll->ll_pause *= 2;
	} else if (ll->ll_rounds > 1) {
		ll->ll_rounds /= 2;
	} else if (ll->ll_rounds == 1 && ++ll->ll_misses == ll->ll_pause) {
		ll->ll_misses = 0;
		ll->ll_trial = true;
		ll->ll_rounds = ll->ll_max;
	}
	/* mutants: at the maximum there is nothing to learn */
	ll->ll_learn = ll->ll_trial || ll->ll_rounds < ll->ll_max;
}
