/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef _DEV_E1000_LEM_SPIN_H_
#define	_DEV_E1000_LEM_SPIN_H_

/*
 * How much of the processor a driver uses: lem_spin.c.  These functions call no
 * kernel, and all drivers share them.
 */

#if defined(__KERNEL__)		/* Linux */
#include <linux/types.h>
#elif defined(_KERNEL)		/* FreeBSD */
#include <sys/types.h>
#else
#include <stdbool.h>
#include <stdint.h>
#endif

/* For how long to spin before one asks to be woken. */
struct lem_spin {
	uint32_t	 sp_max;	/* rounds, at most, */
	uint32_t	 sp_rounds;	/* now */
	uint32_t	 sp_misses;	/* wakeups since the last trial, */
	uint32_t	 sp_pause;	/* until the next one */
	bool		 sp_trial;	/* this spin is one */
	bool		 sp_fresh;	/* there was no spin yet */
	bool		 sp_learn;	/* finding work changes sp_rounds */
};

/*
 * Begin with `max' rounds, and learn.  lem_spin_paid() says that work was found
 * by spinning, and changes nothing unless sp_learn is set.  lem_spin_missed()
 * says that a wakeup was needed, which does not count for the first time.  The
 * lock of the side, transmit or receive, that `sp' is of.
 */
void	lem_spin_init(struct lem_spin *sp, uint32_t max);
void	lem_spin_paid(struct lem_spin *sp);
void	lem_spin_missed(struct lem_spin *sp);

/*
 * Bound reception.  A driver that receives before all else leaves no time to
 * the programs that use the frames.  Reception has used the processor from
 * begin_ns to end_ns, of a clock that does not stop.  Returns how many
 * nanoseconds it must leave to others to use no more than `percent' of the
 * time, 1 to 100; they need not be waited for if nobody wants the processor.
 * *due_ns is 0 before the first call.  The receive lock.
 */
uint64_t lem_share_turn(uint64_t *due_ns, uint32_t percent, uint64_t begin_ns,
	    uint64_t end_ns);

#endif /* !_DEV_E1000_LEM_SPIN_H_ */
