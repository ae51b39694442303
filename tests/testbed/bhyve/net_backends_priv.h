/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * bhyve's network backends, the backend's interface.
 */

#ifndef _NET_BACKENDS_PRIV_H_
#define	_NET_BACKENDS_PRIV_H_

#include <sys/linker_set.h>

/*
 * A backend registers one of these with DATA_SET(net_backend_set, ...).  Each
 * open instance is a copy, followed by priv_size bytes of its own.  The
 * operations are the netbe_*() functions of net_backends.h.
 */
struct net_backend {
	const char *prefix;		/* of the names that select it */

	/* init() returns 0, or nonzero after a message on stderr. */
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

	int	fd;			/* -1 before init() */
	/* Bytes of the virtio-net header: backend's and frontend's. */
	unsigned int be_vnet_hdr_len;
	unsigned int fe_vnet_hdr_len;

	size_t	priv_size;		/* bytes, zero before init() */
};

#define	NET_BE_PRIV(be)		((void *)((be) + 1))

SET_DECLARE(net_backend_set, struct net_backend);

#endif /* !_NET_BACKENDS_PRIV_H_ */
