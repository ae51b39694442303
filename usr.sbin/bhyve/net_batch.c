/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Batches over any backend; see net_batch.h.  A VALE port does the work
 * itself.  For the others there is one frame of room: received ahead so that
 * it can be looked at, kept until stepped over.
 */

#include <sys/types.h>
#include <sys/uio.h>

#include <stdint.h>
#include <stdlib.h>

#include "net_backends.h"
#include "net_backend_vale.h"
#include "net_batch.h"

/* More than the longest frame of any backend: TAP's MTU is 16 bits. */
#define	NET_BATCH_FRAME	(65536 + 64)

struct net_batch {
	struct net_backend *nb_be;
	bool		 nb_vale;
	ssize_t		 nb_len;	/* of the frame in nb_frame; 0: none */
	uint8_t		 nb_frame[];	/* not over VALE */
};

struct net_batch *
net_batch_create(struct net_backend *be)
{
	struct net_batch *nb;
	bool vale;

	vale = net_backend_vale(be);
	nb = malloc(sizeof(*nb) + (vale ? 0 : NET_BATCH_FRAME));
	if (nb == NULL)
		return (NULL);
	nb->nb_be = be;
	nb->nb_vale = vale;
	nb->nb_len = 0;
	if (vale)
		net_backend_vale_defer(be);
	return (nb);
}

void
net_batch_destroy(struct net_batch *nb)
{
	free(nb);
}

bool
net_batch_send(struct net_batch *nb, const struct iovec *iov, int niov)
{
	return (netbe_send(nb->nb_be, iov, niov) >= 0);
}

void
net_batch_flush(struct net_batch *nb)
{
	if (nb->nb_vale)
		net_backend_vale_flush(nb->nb_be);
}

int
net_batch_peek(struct net_batch *nb, struct iovec *iov, int maxiov)
{
	struct iovec room;

	if (nb->nb_vale)
		return (net_backend_vale_peek(nb->nb_be, iov, maxiov));
	if (nb->nb_len == 0) {
		room.iov_base = nb->nb_frame;
		room.iov_len = NET_BATCH_FRAME;
		nb->nb_len = netbe_recv(nb->nb_be, &room, 1);
		if (nb->nb_len <= 0) {
			nb->nb_len = 0;
			return (0);
		}
	}
	iov[0].iov_base = nb->nb_frame;
	iov[0].iov_len = nb->nb_len;
	return (1);
}

void
net_batch_next(struct net_batch *nb)
{
	if (nb->nb_vale)
		net_backend_vale_next(nb->nb_be);
	nb->nb_len = 0;
}

void
net_batch_sync(struct net_batch *nb)
{
	if (nb->nb_vale)
		net_backend_vale_sync(nb->nb_be);
}

void
net_batch_polled(struct net_batch *nb, bool on)
{
	if (nb->nb_vale)
		net_backend_vale_polled(nb->nb_be, on);
}

bool
net_batch_direct(struct net_batch *nb,
    void (*sink)(void *, struct vale_offer *), void *arg)
{
	if (!nb->nb_vale)
		return (sink == NULL);
	return (net_backend_vale_direct(nb->nb_be, sink, arg));
}
