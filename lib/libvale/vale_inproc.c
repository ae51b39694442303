/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * libvale.h over the switch in this process, vale.h, which has
 * vale_offer_peek() and vale_offer_next() of its own.
 */

#include <sys/cdefs.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libvale.h"
#include "vale.h"

struct inproc {
	struct vale_desc	 ip_desc;	/* must be first */
	struct vale_port	*ip_port;
};

static int
inproc_result(int error)
{
	if (error == 0)
		return (0);
	errno = error;
	return (-1);
}

struct vale_desc *
vale_open(const char *name, const struct vale_params *params)
{
	struct inproc *ip;
	struct vale_desc *d;
	int error;

	ip = calloc(1, sizeof(*ip));
	if (ip == NULL)
		return (NULL);
	error = vale_port_create(name, params != NULL ? params->tx_slots : 0,
	    params != NULL ? params->rx_slots : 0, &ip->ip_port);
	if (error != 0) {
		free(ip);
		errno = error;
		return (NULL);
	}
	d = &ip->ip_desc;
	d->fd = vale_port_fd(ip->ip_port);
	d->nifp = vale_port_nifp(ip->ip_port);
	d->txring = NETMAP_TXRING(d->nifp, 0);
	d->rxring = NETMAP_RXRING(d->nifp, 0);
	memcpy(d->name, name, strlen(name) + 1);
	return (d);
}

void
vale_close(struct vale_desc *d)
{
	struct inproc *ip = (struct inproc *)d;

	vale_port_destroy(ip->ip_port);
	free(ip);
}

int
vale_set_header(struct vale_desc *d __unused, unsigned int len)
{
	return (inproc_result(len == 0 ? 0 : EOPNOTSUPP));
}

int
vale_txsync(struct vale_desc *d)
{
	return (inproc_result(vale_port_txsync(((struct inproc *)d)->ip_port)));
}

int
vale_rxsync(struct vale_desc *d)
{
	return (inproc_result(vale_port_rxsync(((struct inproc *)d)->ip_port)));
}

int
vale_set_sink(struct vale_desc *d, void (*sink)(void *, struct vale_offer *),
    void *arg)
{
	vale_port_sink(((struct inproc *)d)->ip_port, sink, arg);
	return (0);
}
