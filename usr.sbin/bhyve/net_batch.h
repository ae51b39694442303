/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Batches of frames over any of bhyve's network backends.
 *
 * bhyve's net_backend sends and receives one frame a call.  A device model
 * that works in batches goes through this: over VALE a batch is one sync and
 * frames are seen where they lie; over every other backend a frame goes out
 * at once, comes in through a bounce buffer, and flush and sync do nothing.
 *
 * Sending and receiving may be two threads, one each.
 */

#ifndef _NET_BATCH_H_
#define	_NET_BATCH_H_

#include <sys/uio.h>

#include <stdbool.h>

struct net_backend;
struct net_batch;
struct vale_offer;

/* Wrap a backend, which must outlive it.  NULL: out of memory. */
struct net_batch *net_batch_create(struct net_backend *be);
void	net_batch_destroy(struct net_batch *nb);

/*
 * Queue a frame.  Its memory stays in place until net_batch_flush().  False:
 * the backend had no room, and the frame is dropped.  The sending thread.
 */
bool	net_batch_send(struct net_batch *nb, const struct iovec *iov, int niov);
void	net_batch_flush(struct net_batch *nb);

/*
 * The next frame, in up to `maxiov' pieces; 0: none.  It stays in place until
 * net_batch_sync(), over backends other than VALE until the next peek after
 * net_batch_next().  The receiving thread.
 */
int	net_batch_peek(struct net_batch *nb, struct iovec *iov, int maxiov);
void	net_batch_next(struct net_batch *nb);
void	net_batch_sync(struct net_batch *nb);

/*
 * Say that the receiving thread looks for frames again and again, or that it no
 * longer does: libvale.h, VALE_RING_POLLED, says what comes of that, from the
 * next sync on.  Over other backends nothing does.  The receiving thread.
 */
void	net_batch_polled(struct net_batch *nb, bool on);

/*
 * From now on have frames that another port of the same switch, in the same
 * process, sends offered to sink(arg, offer) before they are copied for
 * net_batch_peek(): libvale.h says what a sink may do, vale_set_sink(); NULL
 * ends it.  Frames stay in order if those peeked at are done with before the
 * next sync.  False where the backend does not do this.
 */
bool	net_batch_direct(struct net_batch *nb,
	    void (*sink)(void *arg, struct vale_offer *offer), void *arg);

#endif /* !_NET_BATCH_H_ */
