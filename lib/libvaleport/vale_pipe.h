/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Pipes, as netmap(4) has them: two ends, "vale0:x{1" the master and
 * "vale0:x}1" the slave, with a transmit and a receive ring each.  What one end
 * sends the other gets, without a copy: a sync hands over slots.
 *
 * Both ends are programs, and do all the work in their own syncs.  valed makes
 * the memory and the sockets (vale_grant_pipe.c), and reads of the memory only
 * slots, before the pipe is opened.
 *
 * A pipe lies in the memory of ports (vale_shared.h), behind their buffers, and
 * slots may have any buffer of that memory:
 *
 *	CSB of the master | of the slave
 *	| places for a netmap_if of each
 *	| master's transmit ring | slave's receive ring
 *	| slave's transmit ring | master's receive ring
 *	| buffers of these rings
 *
 * Of these rings only the slots are used.  A program's netmap_if and rings are
 * in its window (vale_layout.h): what a sync hands over goes from the one end's
 * window to the slots of the other end's ring, from where a sync takes it.
 *
 * Slots.  A direction has a transmit ring and a receive ring with the same
 * number of slots, and a buffer for each.  Slot i of both rings belongs either
 * to the sender, which has the buffer in its own ring, or to the receiver,
 * which has it in its own:
 *
 *	released          published         released
 *	   |  the receiver's  |  the sender's  |
 *	   +------------------+----------------+
 *	  rxsync moves       txsync moves
 *
 * The sender copies slots into the receiver's ring, and then publishes them;
 * the receiver copies them back, with what it has left in them, and then
 * releases them.  When an end is closed, valed copies the slots that are its
 * own from its window to its ring.  One slot is always the sender's, so that a
 * full ring differs from an empty one.
 *
 * These two indexes are the whole state.  Each has one writer, in the CSB of
 * its end: tx_atok.head is what it has published, rx_atok.head what it has
 * released; ktoa is not used.  A program that is killed in a sync has changed
 * only slots that are its own.  Who opens the end next goes on where the
 * indexes are: what was published is received, and what was received and not
 * released is received again.
 *
 * Wakeups.  Before an end sleeps, it sets appl_need_kick of its ring, and after
 * a full barrier looks once more.  The other end stores its index, and after a
 * full barrier looks at appl_need_kick; if that is set, it clears it and kicks.
 *
 * The ends trust each other with the frames.  But an index that is not valid
 * makes a sync fail, and leads nowhere else.
 */

#ifndef _VALE_PIPE_H_
#define	_VALE_PIPE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vale_layout.h"

/* Slots of a ring: VALE_SLOTS_MIN to this, as in netmap. */
#define	VALE_PIPE_SLOTS_MAX	4096

/* Ends, as indexes. */
#define	VALE_PIPE_MASTER	0
#define	VALE_PIPE_SLAVE		1

/*
 * Return the length of the part of `name' before the pipe, and its end in *end;
 * 0 if `name' is not that of a pipe.  What is behind the brace is the pipe's
 * name.
 */
size_t	vale_pipe_name(const char *name, unsigned int *end);

/* Where everything is, from the pipe's beginning. */
struct vale_pipe_layout {
	uint32_t	pl_slots[2];	/* of each end's transmit ring, and so
					   of the other's receive ring */
	size_t		pl_csb[2];
	size_t		pl_tx[2];
	size_t		pl_rx[2];
	size_t		pl_bufs;	/* its buffers, on a page */
	size_t		pl_size;	/* a multiple of VALE_PAGE */
};

/* Fill it in.  `slots' are those of the transmit rings. */
void	vale_pipe_layout(struct vale_pipe_layout *pl, const uint32_t slots[2]);

/*
 * Initialize a pipe that no program has open.  `head' is a copy of its first
 * pl_bufs bytes.  Slots keep their buffers if these are valid: those of ports
 * and pipes are exchanged.  `first' is the pipe's first buffer in the memory,
 * which has `nbufs', with 0 and 1.
 */
void	vale_pipe_init(void *head, const struct vale_pipe_layout *pl,
	    uint32_t first, uint32_t nbufs);

/* An end that this process has opened. */
struct vale_pipe {
	/* In its window, which nobody else writes to. */
	struct netmap_ring	*pp_txring;
	struct netmap_ring	*pp_rxring;
	struct vale_window_ring	*pp_heads;
	/* In the memory. */
	struct vale_csb		*pp_csb;
	struct vale_csb		*pp_peer;	/* the other end's */
	struct netmap_slot	*pp_tx_slots;
	struct netmap_slot	*pp_rx_slots;
	struct netmap_slot	*pp_peer_tx;
	struct netmap_slot	*pp_peer_rx;
	uint32_t		 pp_nbufs;	/* that the memory has */
};

/*
 * Find what `end' has in the memory of a pipe that is mapped at `pipe'.  The
 * rest of *pp is the caller's.
 */
void	vale_pipe_find(struct vale_pipe *pp, char *pipe,
	    const struct vale_pipe_layout *pl, unsigned int end);

/*
 * Begin with the end, in a new window: set head, cur and tail of its rings, and
 * the buffers of their slots.  One of its own whose buffer in the memory is
 * invalid gets that which it had at first; `first' as above.
 */
void	vale_pipe_attach(struct vale_pipe *pp,
	    const struct vale_pipe_layout *pl, unsigned int end,
	    uint32_t first);

/*
 * Sync an end: publish frames that are complete, or release slots; show in the
 * tail what the other end has done.  One thread at a time for each.  If
 * *kick is true on return, the caller must wake the other end.  Return 0, or -1
 * with errno:
 *	EINVAL	head or cur is not between the last head and the tail, or a slot
 *		has an invalid buffer or length.  They are set back to the last
 *		head.
 *	EIO	what the other end has left is not valid, and is not shown
 */
int	vale_pipe_txsync(struct vale_pipe *pp, bool *kick);
int	vale_pipe_rxsync(struct vale_pipe *pp, bool *kick);

/*
 * Ask to be woken when the other end has released slots, or published frames.
 * Return true if there is space now beyond the ring's cur, or a frame.
 */
bool	vale_pipe_txwait(struct vale_pipe *pp);
bool	vale_pipe_rxwait(struct vale_pipe *pp);

#endif /* !_VALE_PIPE_H_ */
