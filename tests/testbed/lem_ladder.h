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
	uint64_t	exit_ns;	/* extra cost of a register access or an
					   interrupt; 0: none */
	uint32_t	len;		/* bytes of a frame, 60 to 1514 */
	uint32_t	batch;		/* frames for each lem_tx_flush() */
	uint64_t	frames;		/* to send; 0: for run_ns */
	uint64_t	run_ns;
	uint64_t	window;		/* limit of frames in flight, so that
					   none is dropped; 0: no limit */
	bool		split;		/* another thread handles the sender's
					   interrupts, with the locks that
					   lem_core.h describes; the hook has
					   both */
	bool		to_host;	/* the receiver is a program on a port
					   of the switch, not a guest */
	bool		own_thread;	/* the guest's processor does the work
					   of its adapter: an exit waits until
					   the frames are sent.  With
					   LEM_MODE_POLL it also receives, and
					   polls the port's ring */
	bool		by_ring;	/* ports have no sink: all frames go
					   through their rings */
	bool		msi;		/* LEM_IRQ_MSI: messages interrupt */
	bool		pinned;		/* each guest's threads are bound to one
					   processor of the host */
	/*
	 * Called from time to time by both guests' processors; the sender is
	 * guest 0.
	 */
	void		(*hook)(struct ladder_params *params, int guest,
			    void *lem_core);
};

/* Counts of one guest. */
struct ladder_side {
	uint64_t	exits;		/* register accesses after the start */
	uint64_t	tx_kicks, rx_kicks;	/* of them, TDT and RDT */
	uint64_t	interrupts;	/* handled */
	uint64_t	raised;		/* sent by the adapter */
	uint64_t	misuses;	/* see lem_os.h */
};

struct ladder_result {
	struct ladder_side guest[2];	/* sender, receiver */
	uint64_t	sent, received;	/* frames */
	uint64_t	missing;	/* gaps in the numbers received */
	uint64_t	wrong;		/* out of order, or other frames */
	uint64_t	direct;		/* frames that the sink took */
	uint64_t	copied;		/* into the receiver's port's ring */
	uint64_t	dropped;	/* because that ring was full */
	uint64_t	ns;		/* from the first frame to the last */
};

/* Run it.  Returns 0 or an errno value. */
int	ladder_run(struct ladder_params *params, struct ladder_result *result);

#endif /* !_LEM_LADDER_H_ */
