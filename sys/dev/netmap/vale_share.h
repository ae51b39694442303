/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Fair shares of a receive ring that is short of space.
 *
 * Without shares the sender that looks first after the receiver has returned
 * slots takes them all, and the same sender may be first each time.  So, while
 * frames are refused, each sender may hold so many slots of the ring: the
 * ring's slots, divided among the active senders by their weights, which are
 * usually equal.  A ring is emptied in the order in which it was filled.  So
 * senders that hold equally many slots get equally many frames through, in
 * slots: a frame of several slots counts as several.  A sender that needs less
 * than its share finds space for all its frames, and how often a sender asks
 * makes no difference.
 *
 * A sender is active if it asked for slots while the last two rings' worth of
 * slots were filled, at most; at least one.  So a single sender may fill the
 * ring, and a sender that stops takes a part of the ring from others for a
 * short time; but never all of the ring, so the receiver has work meanwhile.
 *
 * Nothing is counted before the first frame is refused, and from the end of a
 * ring's worth of slots in which no frame was.
 *
 * A sender that holds nothing may take one frame even if the share is smaller.
 * But the slots must be free: with more senders than the ring has slots for,
 * the first gets them, as without shares.
 *
 * All functions of a ring need exclusion: the user-space switch calls them with
 * the ring's rq_lock, vale_learn(4) with a mutex of its own.
 */

#ifndef _DEV_NETMAP_VALE_SHARE_H_
#define	_DEV_NETMAP_VALE_SHARE_H_

#include <dev/netmap/vale_fdb.h>

#define	VALE_SHARE_WORDS	howmany(VALE_FDB_PORTS, 64)

/* Consecutive slots of one sender. */
struct vale_share_run {
	uint8_t		ru_sender;
	uint16_t	ru_slots;
};

/* Private to vale_share.c, except that the caller allocates it, zeroed. */
struct vale_share {
	uint32_t	sh_left;	/* slots to the end of the period; 0:
					   no frame was refused lately */
	uint32_t	sh_slots;	/* that the ring can hold; a period */
	uint32_t	sh_active;	/* weights of the senders in sh_seen */
	bool		sh_refused;	/* a frame, in this period */
	uint64_t	sh_seen[2][VALE_SHARE_WORDS];	/* this, last period */
	uint16_t	sh_held[VALE_FDB_PORTS];	/* slots of a sender */
	/* The slots counted in sh_held, in the order of the ring. */
	uint32_t	sh_total;
	uint32_t	sh_first;	/* index of sh_run */
	uint32_t	sh_nruns;
	struct vale_share_run *sh_run;	/* sh_slots of them */
	const uint8_t	*sh_weight;	/* of each sender; NULL: all 1 */
};

/* Return the bytes of `runs', for a ring that can hold `slots' slots. */
static inline size_t
vale_share_size(uint32_t slots)
{
	return (slots * sizeof(struct vale_share_run));
}

/* A sender's weight. */
#define	VALE_SHARE_WEIGHT_MAX	100

/*
 * Initialize.  `slots' is 1 to 65535; `runs' has vale_share_size() bytes and
 * belongs to the ring until its end.  `weights' has a weight for each of the
 * VALE_FDB_PORTS senders, 1 to VALE_SHARE_WEIGHT_MAX; NULL stands for 1 each.
 * A change, which needs exclusion, takes effect within two rings' worth of
 * slots.
 */
void	vale_share_init(struct vale_share *sh, uint32_t slots, void *runs,
	    const uint8_t *weights);

/* Return whether frames were refused lately; else all slots may be taken. */
static inline bool
vale_share_on(const struct vale_share *sh)
{
	return (sh->sh_left != 0);
}

/*
 * Return how many slots sender `sender' may take; more may be free, or less.
 * `used' is the number of slots in use, and `first' the number that the
 * sender's next frame needs, at least 1.  vale_share_on() must be true.
 */
uint32_t vale_share_max(struct vale_share *sh, unsigned int sender,
	    uint32_t used, uint32_t first);

/*
 * Count `n' slots, at least 1, that the sender takes.  vale_share_on() must be
 * true, and vale_share_max() must have been called since slots were last
 * returned, so that no more are in use than the ring can hold.
 */
void	vale_share_take(struct vale_share *sh, unsigned int sender, uint32_t n);

/* Note that a frame of the sender was refused, for lack of space or share. */
void	vale_share_refused(struct vale_share *sh, unsigned int sender);

#endif /* !_DEV_NETMAP_VALE_SHARE_H_ */
