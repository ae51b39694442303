/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Ports whose user is another process: the only interface between the switch
 * and lib/libvaleport, where all else for such users is.  Of that library the
 * switch calls only the two functions in struct vale_user_port.
 *
 * The library makes the memory's layout, and the switch initializes the rings.
 * A port comes and goes in steps:
 *
 *	vale_port_new()		it has ring pairs, and is in no switch
 *	...			the library fills in pa_tx_user, pa_rx_user,
 *				and pa_inbox
 *	vale_port_attach()	senders find it
 *	vale_close()		they no longer do; then up_closed()
 *
 * An inbox (vale_shared.c) is a port without a switch: the first step only.  If
 * a pair has an inbox, the switch fills the pair's receive ring only if the
 * sender has chosen to send to the port, the port's memory is not slow, and the
 * inbox is empty; otherwise the receive ring of the inbox.
 */

#ifndef _VALE_USER_H_
#define	_VALE_USER_H_

#include <stdbool.h>

#include "vale_pair.h"
#include "vale_region.h"
#include "vale_switch.h"

/* A port whose user is another process, as vale_port_new() gets it. */
struct vale_user_port {
	/* Slots may have rl_nbufs buffers, which may be more than are laid
	   out. */
	struct vale_region_layout up_layout;
	void	*up_memory;
	/*
	 * Wake the user of a ring of pair `ring': the transmit ring if `tx'.
	 * Any thread.  Must neither wait nor call the library.
	 */
	void	(*up_wake)(void *arg, unsigned int ring, bool tx);
	void	*up_arg;
	/* vale_port_free(): free what the library has of the port. */
	void	(*up_closed)(struct vale_port *port);
};

/*
 * Replace each 0 by its default.  Returns 0, or -1 with EINVAL: a number is out
 * of range.
 */
int	vale_port_params(struct vale_params *params);

/*
 * Make a port or monitor that is in no switch.  `up' is NULL if its user is in
 * this process.  Returns NULL with errno: EINVAL, E2BIG, or a call's.
 */
struct vale_port *vale_port_new(const char *name,
	    const struct vale_params *params, const struct vale_user_port *up);

/* Free a port that is in no switch. */
void	vale_port_free(struct vale_port *port);

/*
 * Add a port to its switch, which is created if necessary.  Returns 0, or -1
 * with an errno of vale_open().
 */
int	vale_port_attach(struct vale_port *port);

/* The sending thread, of vale_shared_tx() or vale_shared_rx(), calls the rest. */

/*
 * Forward all slots before `head', which must be in the ring, through all
 * stages (vale_forward.c).
 */
void	vale_forward(struct vale_pair *pair, uint32_t head);

/* Count a head outside the ring (tx_bad_ring). */
void	vale_forward_invalid(struct vale_pair *pair);

/*
 * Collect a batch of the slots before `head', which must be in the ring: the
 * first stage only.
 */
void	vale_forward_collect(struct vale_pair *pair, uint32_t head);

/*
 * Deliver all frames of the batch of inbox `in' to `dst', the ring pair that
 * has the inbox.
 */
void	vale_deliver_inbox(struct vale_pair *in, struct vale_pair *dst);

#endif /* !_VALE_USER_H_ */
