/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * ICR, IMS and the moderation engine: e82545_intr.c.  reg_mtx held throughout.
 */

#ifndef _E82545_INTR_H_
#define	_E82545_INTR_H_

#include <stdbool.h>
#include <stdint.h>

struct e82545;

/* What moderation depends on: see e82545_intr.c.  Under reg_mtx. */
struct e82545_moderation {
	uint64_t	last_ns;	/* when the line was last asserted;
					   0: not since reset */
	uint64_t	rx_packet_ns;	/* when RDTR expires; 0: not running */
	uint64_t	rx_absolute_ns;	/* when RADV expires; 0: not running */
	uint64_t	tx_packet_ns;	/* when TIDV expires; 0: not running */
	uint64_t	tx_absolute_ns;	/* when TADV expires; 0: not running */
	bool		asserted;	/* the line */
	bool		held;		/* a cause waits for ITR */
};

/* An event, and the registers that decide about it. */
struct e82545_moder_event {
	uint64_t	now_ns;
	uint32_t	icr;		/* causes so far */
	uint32_t	ims;		/* causes that may interrupt */
	uint32_t	raise;		/* causes that go at once */
	unsigned int	queue;		/* that they, and packets, are of */
	bool		rx;		/* packets received: RXT0 by timer */
	bool		tx;		/* packets sent: TXDW by timer, */
	bool		tx_delayed;	/* if all of them have IDE */
	uint16_t	itr_256ns;	/* in force; 0: none */
	uint16_t	rdtr_1024ns, radv_1024ns;
	uint16_t	tidv_1024ns, tadv_1024ns;
};

/* The result. */
struct e82545_moder_verdict {
	struct e82545_moderation next;
	uint32_t	icr;		/* causes now */
	bool		fire;		/* assert the line */
	bool		drop;		/* deassert the line */
	bool		put_off;	/* ITR delays another cause */
	uint64_t	arm_ns;		/* call again after this; 0: no need */
};

/* Reset: leave no cause, moderation or timer.  All locks held. */
void	e82545_intr_reset(struct e82545 *dev);
/* Moderate: the engine, a pure function, is described in e82545_intr.c. */
struct e82545_moder_verdict e82545_moderate(
	    const struct e82545_moderation *state,
	    const struct e82545_moder_event *event);
/*
 * Compute the parts of e82545_moderate(): the causes that an event and expired
 * timers set; when the next timer expires, or 0; whether the time matters to
 * that.
 */
uint32_t e82545_delay(struct e82545_moderation *state,
	    const struct e82545_moder_event *event);
uint64_t e82545_delay_deadline(const struct e82545_moderation *state);
bool	e82545_delay_timed(const struct e82545_moderation *state,
	    const struct e82545_moder_event *event);
/*
 * Clear the causes that the guest was last interrupted for and has handled
 * without reading ICR, so that the next cause interrupts.  Causes that
 * moderation holds back stay.
 */
void	e82545_intr_taken(struct e82545 *dev);
/* Decide again without an event: a register was written, or time has passed. */
void	e82545_intr_again(struct e82545 *dev);
/*
 * Return the interrupts that are off; have the host withdraw them, without
 * locks.
 */
uint32_t e82545_intr_off(const struct e82545 *dev);
void	e82545_intr_withdraw(const struct e82545 *dev, uint32_t off);
/* Have the host's timer expire at when_ns, or before. */
void	e82545_intr_arm(struct e82545 *dev, uint64_t when_ns);
/* Handle the host's timer. */
void	e82545_intr_timer(struct e82545 *dev);
/*
 * Give the host the line as it is after a snapshot was restored, before which
 * it was `asserted', and disarm the timer.
 */
void	e82545_intr_restored(struct e82545 *dev, bool asserted);
/* Raise causes at once (ICR bits), then update the line. */
void	e82545_intr_raise(struct e82545 *dev, uint32_t causes);
/*
 * Handle a batch of a queue that was written back (`done': some descriptors
 * report status).  Raise TXDW after TIDV/TADV if all of these have IDE set
 * (`delayed'), else at once; raise `causes' at once, too.
 */
void	e82545_intr_tx(struct e82545 *dev, unsigned int queue, bool done,
	    bool delayed, uint32_t causes);
/*
 * Raise RXT0 after RDTR/RADV, `causes' at once: a batch was received into a
 * queue.
 */
void	e82545_intr_rx(struct e82545 *dev, unsigned int queue, bool done,
	    uint32_t causes);
/* Access ICR, ICS, IMS, IMC, ITR and RDTR, for the register table. */
uint32_t e82545_icr_read(struct e82545 *dev, uint32_t off);
void	e82545_icr_write(struct e82545 *dev, uint32_t off, uint32_t value);
void	e82545_ics_write(struct e82545 *dev, uint32_t off, uint32_t value);
void	e82545_ims_write(struct e82545 *dev, uint32_t off, uint32_t value);
void	e82545_imc_write(struct e82545 *dev, uint32_t off, uint32_t value);
/* Return the interval in force, in units of 256 ns.  Any thread. */
uint16_t e82545_itr(const struct e82545 *dev);
void	e82545_itr_write(struct e82545 *dev, uint32_t off, uint32_t value);
void	e82545_rdtr_write(struct e82545 *dev, uint32_t off, uint32_t value);

#endif /* !_E82545_INTR_H_ */
