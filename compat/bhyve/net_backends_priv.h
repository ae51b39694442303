/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * bhyve's network backends, for backends.
 */

#ifndef _NET_BACKENDS_PRIV_H_
#define	_NET_BACKENDS_PRIV_H_

#include <sys/linker_set.h>

/*
 * A backend registers one of these with DATA_SET(net_backend_set, ...); every
 * opened instance is a copy, with priv_size bytes of its own behind it.  The
 * operations are netbe_*() of net_backends.h one to one.
 */
struct net_backend {
	const char *prefix;		/* names it serves begin so */

	/* As netbe_init() and netbe_cleanup(); 0, or not after a message. */
	int	(*init)(struct net_backend *be, const char *devname,
		    nvlist_t *nvl, net_be_rxeof_t cb, void *param);
	void	(*cleanup)(struct net_backend *be);

	ssize_t	(*send)(struct net_backend *be, const struct iovec *iov,
		    int iovcnt);
	ssize_t	(*peek_recvlen)(struct net_backend *be);
	ssize_t	(*recv)(struct net_backend *be, const struct iovec *iov,
		    int iovcnt);
	void	(*recv_enable)(struct net_backend *be);
	void	(*recv_disable)(struct net_backend *be);
	uint64_t (*get_cap)(struct net_backend *be);
	int	(*set_cap)(struct net_backend *be, uint64_t features,
		    unsigned int vnet_hdr_len);

	int	fd;			/* -1 in init() */
	/* virtio-net headers, bytes: of the network, of the frontend. */
	unsigned int be_vnet_hdr_len;
	unsigned int fe_vnet_hdr_len;

	size_t	priv_size;		/* bytes, zeroed before init() */
};

#define	NET_BE_PRIV(be)		((void *)((be) + 1))

SET_DECLARE(net_backend_set, struct net_backend);

#endif /* !_NET_BACKENDS_PRIV_H_ */
