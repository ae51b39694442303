/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Two guests, each with its adapter, on a VALE switch, in one process: a thread
 * for each guest's processor and one for each adapter.  One guest sends at full
 * speed, the other receives.
 */

#ifndef _LEM_LADDER_H_
#define	_LEM_LADDER_H_

#include <stdbool.h>
#include <stdint.h>

struct ladder_params {
	uint32_t	mode;		/* LEM_MODE_* */
	uint32_t	itr_256ns;	/* moderation, 0: none */
	uint64_t	exit_ns;	/*
	uint64_t	exit_ns;	 * extra cost of a register access or an
	uint64_t	exit_ns;	 * interrupt; 0: none
	uint64_t	exit_ns;	 */
	uint32_t	len;		/* bytes of a frame, 60 to 1514 */
	uint32_t	batch;		/* frames for each lem_tx_flush() */
	uint64_t	frames;		/* to send; 0: for run_ns */
	uint64_t	run_ns;
	uint64_t	window;		/*
	uint64_t	window;		 * limit of frames under way, so that
	uint64_t	window;		 * none is dropped; 0: no limit
	uint64_t	window;		 */
	bool		split;		/* the sender's interrupts are another
					   thread's, with locks as lem_core.h
					   has them; hook has both */
	bool		to_host;	/* the receiver is a program on a port
					   of the switch, not a guest */
	bool		own_thread;	/* an adapter sends in the thread of
					   its processor: an exit that waits for
					   it; LEM_MODE_POLL, receives, too, and
					   polls its port's ring for that */
	bool		by_ring;	/* all frames go through the ports'
					   rings, none straight to the guest */
	bool		pinned;		/* a guest's threads are kept on one of
					   the host's processors, the other's on
					   another */
	/* Called by both guests' processors at times; the sender is 0. */
	void		(*hook)(struct ladder_params *params, int guest,
			    void *lem_core);
	void		*hook_arg;
};

/* Of one guest. */
struct ladder_side {
	uint64_t	exits;		/* register accesses, once started */
	uint64_t	tx_kicks, rx_kicks;	/* of them, TDT and RDT */
	uint64_t	interrupts;	/* served */
	uint64_t	raised;		/* sent by the adapter */
	uint64_t	misuses;	/* see lem_os.h */
};

struct ladder_result {
	struct ladder_side guest[2];	/* sender, receiver */
	uint64_t	sent, received;	/* frames */
	uint64_t	missing;	/* gaps in what was received */
	uint64_t	wrong;		/* out of order, or other frames */
	uint64_t	direct;		/* frames straight to the receiver, */
	uint64_t	copied;		/* into its port's ring, */
	uint64_t	dropped;	/* and not there for want of room */
	uint64_t	ns;		/* from the first frame to the last */
};

/* Run it.  0, or an errno value. */
int	ladder_run(struct ladder_params *params, struct ladder_result *result);

#endif /* !_LEM_LADDER_H_ */
