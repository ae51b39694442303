/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * bhyve's network backends, the frontend's interface.
 *
 * The beginning of a backend's name ("vale0:vm1", "tap0") selects it among
 * those linked into the program.  One thread may send while another receives.
 * The callback runs in the event loop of the thread that called netbe_init().
 */

#ifndef _NET_BACKENDS_H_
#define	_NET_BACKENDS_H_

#include <sys/types.h>
#include <sys/nv.h>
#include <sys/uio.h>

#include <stdint.h>

#include "mevent.h"

typedef struct net_backend net_backend_t;

/* Offloads of a virtio-net header: VIRTIO 1.2, section 5.1.3. */
#define	VIRTIO_NET_F_CSUM	(1 << 0)
#define	VIRTIO_NET_F_GUEST_CSUM	(1 << 1)
#define	VIRTIO_NET_F_GUEST_TSO4	(1 << 7)
#define	VIRTIO_NET_F_GUEST_TSO6	(1 << 8)
#define	VIRTIO_NET_F_GUEST_UFO	(1 << 10)
#define	VIRTIO_NET_F_HOST_TSO4	(1 << 11)
#define	VIRTIO_NET_F_HOST_TSO6	(1 << 12)
#define	VIRTIO_NET_F_HOST_UFO	(1 << 14)

/* Frames may have arrived.  `param' is that of netbe_init(). */
typedef void (*net_be_rxeof_t)(int fd, enum ev_type type, void *param);

/*
 * Open the backend that `nvl' describes: "backend" is its name, "type" selects
 * it if the name does not.  Receiving is disabled at first.  Returns 0; or
 * nonzero, with a message on stderr and *be NULL.
 */
int	netbe_init(net_backend_t **be, nvlist_t *nvl, net_be_rxeof_t cb,
	    void *param);

/*
 * Set nodes of `nvl' from an option string, "vale0:vm1,mac=...": "backend", and
 * what pci_parse_legacy_config() sets.  If `opts' is NULL, set nothing.
 * Returns 0, or -1 if there is no memory.
 */
int	netbe_legacy_config(nvlist_t *nvl, const char *opts);

/* Close it.  No other call may be in progress.  `be' may be NULL. */
void	netbe_cleanup(net_backend_t *be);

/*
 * Offloads as feature bits of virtio: netbe_get_cap() returns what the backend
 * supports, netbe_set_cap() selects what the frontend uses and the length of
 * its virtio-net header (10 or 12, or 0 for none).  It returns 0, or -1 if the
 * backend does not support that.
 */
uint64_t netbe_get_cap(net_backend_t *be);
int	netbe_set_cap(net_backend_t *be, uint64_t features,
	    unsigned int vnet_hdr_len);
size_t	netbe_get_vnet_hdr_len(net_backend_t *be);

/* Send one frame.  Returns its length, or -1 with errno if it is dropped. */
ssize_t	netbe_send(net_backend_t *be, const struct iovec *iov, int iovcnt);

/*
 * Return the length of the next frame; receive it, truncated to the space in
 * `iov'; or drop it.  All return its length in bytes, 0 if there is no frame,
 * or a negative value on failure.
 */
ssize_t	netbe_peek_recvlen(net_backend_t *be);
ssize_t	netbe_recv(net_backend_t *be, const struct iovec *iov, int iovcnt);
ssize_t	netbe_rx_discard(net_backend_t *be);

/* Whether the callback is called.  Any thread may call these. */
void	netbe_rx_disable(net_backend_t *be);
void	netbe_rx_enable(net_backend_t *be);

#endif /* !_NET_BACKENDS_H_ */
