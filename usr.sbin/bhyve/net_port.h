/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A frame port over any of bhyve's network backends.
 *
 * bhyve's net_backend sends and receives one frame a call.  A backend that can
 * do more has a frame port of its own, which it announces beside its
 * net_backend; VALE's shows frames where they lie and sends a batch with one
 * sync.  Over every other backend a frame goes out at once, comes in through a
 * bounce buffer, and flush and sync do nothing.
 */

#ifndef _NET_PORT_H_
#define	_NET_PORT_H_

#include <sys/linker_set.h>

#include <stdint.h>

struct frame_port;
struct net_backend;

/*
 * What a backend has besides its struct net_backend: a table in
 * net_backend_port_set, found by the backend's prefix.
 */
struct net_backend_port {
	const char	*nbp_prefix;	/* nb->prefix */
	/*
	 * Return the frame port of an open backend, with everything set except
	 * fp_frame_max; the port lives as long as the backend.  From now on
	 * frames go through the port only, and not through netbe_send() and
	 * netbe_recv().
	 */
	struct frame_port *(*nbp_port)(struct net_backend *be);
};
SET_DECLARE(net_backend_port_set, struct net_backend_port);

/*
 * Create the frame port of backend `be', which must outlive the port, for
 * frames of at most `frame_max' bytes without FCS.  Returns NULL if out of
 * memory.  The thread that opened the backend.
 */
struct frame_port *net_port_create(struct net_backend *be, uint32_t frame_max);

/* Free it.  No other call may be in progress or follow.  NULL is allowed. */
void	net_port_destroy(struct frame_port *port);

#endif /* !_NET_PORT_H_ */
