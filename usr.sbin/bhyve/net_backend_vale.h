/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What net_backend_vale.c offers beyond bhyve's net_backend: batches out and
 * frames in place.  net_batch.c is the only user; device models use that.
 *
 * A backend opened as vale* serves frontends that know nothing of this too:
 * until net_backend_vale_defer() every send is followed by its own sync.
 */

#ifndef _NET_BACKEND_VALE_H_
#define	_NET_BACKEND_VALE_H_

#include <sys/uio.h>

#include <stdbool.h>

struct net_backend;

/* Whether `be' is a VALE port, and so may be given to the calls below. */
bool	net_backend_vale(const struct net_backend *be);

/*
 * From now on send() only queues: the frame's memory must stay as it is until
 * net_backend_vale_flush().  Call once, before the first frame.
 */
void	net_backend_vale_defer(struct net_backend *be);

/* Hand the queued frames to the switch: one sync.  The sending thread. */
void	net_backend_vale_flush(struct net_backend *be);

/*
 * Look at the next frame received without copying it: sets up to `maxiov'
 * pieces, returns how many, 0 if no frame waits.  A frame of more pieces is
 * skipped.  Frames stay in place until net_backend_vale_sync().
 * The receiving thread, as the next two.
 */
int	net_backend_vale_peek(struct net_backend *be, struct iovec *iov,
	    int maxiov);
void	net_backend_vale_next(struct net_backend *be);

/* Return the frames stepped over to the switch and take in new ones. */
void	net_backend_vale_sync(struct net_backend *be);

/* As net_batch_polled().  The receiving thread. */
void	net_backend_vale_polled(struct net_backend *be, bool on);

/* As net_batch_direct(); false where the switch does not do this. */
struct vale_offer;
bool	net_backend_vale_direct(struct net_backend *be,
	    void (*sink)(void *arg, struct vale_offer *offer), void *arg);

#endif /* !_NET_BACKEND_VALE_H_ */
