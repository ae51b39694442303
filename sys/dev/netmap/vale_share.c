/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Fair shares of a receive ring: see vale_share.h.
 *
 * What a sender holds is known from a list of runs: the slots in the order in
 * which they were taken, neighbours of the same sender as one run.  When slots
 * were returned, as many are removed from the head of the list.  Each slot is
 * added and removed once, so this takes constant time a batch on average, and
 * with a single sender the list is one run.  Slots that were taken before the
 * first frame was refused are not in the list and count for nobody.
 *
 * The time is measured in slots taken: no sender can make time pass, and no
 * time passes while the receiver does nothing.
 */

#include <sys/param.h>
#include <sys/systm.h>

#include <dev/netmap/vale_share.h>

void
vale_share_init(struct vale_share *sh, uint32_t slots, void *runs,
    const uint8_t *weights)
{
	MPASS(slots >= 1 && slots <= UINT16_MAX);
	memset(sh, 0, sizeof(*sh));
	sh->sh_slots = slots;
	sh->sh_run = runs;
	sh->sh_weight = weights;
}

static uint32_t
share_weight(const struct vale_share *sh, unsigned int sender)
{
	return (sh->sh_weight == NULL ? 1 :
	    atomic_load_8(&sh->sh_weight[sender]));
}

/* Note that the sender is active. */
static void
share_see(struct vale_share *sh, unsigned int sender)
{
	const uint64_t bit = 1ULL << sender % 64;
	const unsigned int word = sender / 64;

	MPASS(sender < VALE_FDB_PORTS);
	if (((sh->sh_seen[0][word] | sh->sh_seen[1][word]) & bit) == 0)
		sh->sh_active += share_weight(sh, sender);
	sh->sh_seen[0][word] |= bit;
}

/* Begin a period: a ring's worth of slots was taken. */
static void
share_period(struct vale_share *sh)
{
	unsigned int i;
	uint64_t word;

	sh->sh_left = sh->sh_refused ? sh->sh_slots : 0;
	sh->sh_refused = false;
	sh->sh_active = 0;
	for (i = 0; i < VALE_SHARE_WORDS; i++) {
		sh->sh_seen[1][i] = sh->sh_seen[0][i];
		sh->sh_seen[0][i] = 0;
		for (word = sh->sh_seen[1][i]; word != 0; word &= word - 1)
			sh->sh_active += share_weight(sh, i * 64 +
			    __builtin_ctzll(word));
	}
}

/* Remove slots that are no longer in use from the list. */
static void
share_return(struct vale_share *sh, uint32_t used)
{
	struct vale_share_run *run;
	uint32_t n;

	while (sh->sh_total > used) {
		run = &sh->sh_run[sh->sh_first];
		n = MIN(run->ru_slots, sh->sh_total - used);
		MPASS(n > 0 && n <= sh->sh_held[run->ru_sender]);
		sh->sh_held[run->ru_sender] -= n;
		sh->sh_total -= n;
		run->ru_slots -= n;
		if (run->ru_slots == 0) {
			sh->sh_first = (sh->sh_first + 1) % sh->sh_slots;
			sh->sh_nruns--;
		}
	}
}

uint32_t
vale_share_max(struct vale_share *sh, unsigned int sender, uint32_t used,
    uint32_t first)
{
	uint32_t held, share, weight;

	MPASS(vale_share_on(sh) && first >= 1);
	share_see(sh, sender);
	share_return(sh, used);
	/* Weights may have changed since they were added. */
	weight = share_weight(sh, sender);
	share = MIN(sh->sh_slots * weight / sh->sh_active, sh->sh_slots);
	held = sh->sh_held[sender];
	if (held == 0)
		return (MAX(share, first));
	return (MAX(share, held) - held);
}

void
vale_share_take(struct vale_share *sh, unsigned int sender, uint32_t n)
{
	struct vale_share_run *run;
	uint32_t end = sh->sh_first + sh->sh_nruns;	/* of the list */

	MPASS(vale_share_on(sh) && n >= 1);
	MPASS(n <= sh->sh_slots - sh->sh_total);
	run = NULL;
	if (sh->sh_nruns > 0)
		run = &sh->sh_run[(end - 1) % sh->sh_slots];
	if (run == NULL || run->ru_sender != sender) {
		run = &sh->sh_run[end % sh->sh_slots];
		run->ru_sender = sender;
		run->ru_slots = 0;
		sh->sh_nruns++;
	}
	run->ru_slots += n;
	sh->sh_held[sender] += n;
	sh->sh_total += n;
	if (n < sh->sh_left)
		sh->sh_left -= n;
	else
		share_period(sh);
}

void
vale_share_refused(struct vale_share *sh, unsigned int sender)
{
	if (!vale_share_on(sh)) {
		/* Nothing is known of the slots in use. */
		vale_share_init(sh, sh->sh_slots, sh->sh_run, sh->sh_weight);
		sh->sh_left = sh->sh_slots;
	}
	share_see(sh, sender);
	sh->sh_refused = true;
}
