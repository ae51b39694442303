/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * bhyve's network backends, for frontends.
 *
 * A backend is chosen by the beginning of its name ("vale0:vm1", "tap0") among
 * those linked into the program.  Sending and receiving may be two threads,
 * one each; the callback runs in the event loop of the thread that called
 * netbe_init().
 */

#ifndef _NET_BACKENDS_H_
#define	_NET_BACKENDS_H_

#include <sys/types.h>
#include <sys/nv.h>
#include <sys/uio.h>

#include <stdint.h>

#include "mevent.h"

typedef struct net_backend net_backend_t;

/* What a virtio-net header can ask for: VIRTIO 1.2, section 5.1.3. */
#define	VIRTIO_NET_F_CSUM	(1 << 0)
#define	VIRTIO_NET_F_GUEST_CSUM	(1 << 1)
#define	VIRTIO_NET_F_GUEST_TSO4	(1 << 7)
#define	VIRTIO_NET_F_GUEST_TSO6	(1 << 8)
#define	VIRTIO_NET_F_GUEST_UFO	(1 << 10)
#define	VIRTIO_NET_F_HOST_TSO4	(1 << 11)
#define	VIRTIO_NET_F_HOST_TSO6	(1 << 12)
#define	VIRTIO_NET_F_HOST_UFO	(1 << 14)

/* Frames may have come in.  `param' as given to netbe_init(). */
typedef void (*net_be_rxeof_t)(int fd, enum ev_type type, void *param);

/*
 * Open the backend that `nvl' describes: "backend", its name, and "type" where
 * that is not the name's beginning.  Receiving starts disabled.  0, or nonzero
 * after a message on stderr, and *be is NULL.
 */
int	netbe_init(net_backend_t **be, nvlist_t *nvl, net_be_rxeof_t cb,
	    void *param);

/*
 * Nodes of `nvl' from an option string, "vale0:vm1,mac=...": the name of the
 * backend, then as pci_parse_legacy_config().  NULL sets nothing.  0, or -1
 * when out of memory.
 */
int	netbe_legacy_config(nvlist_t *nvl, const char *opts);

/* Close it.  No other call may be in progress.  NULL is allowed. */
void	netbe_cleanup(net_backend_t *be);

/*
 * Offloads, as virtio's feature bits: what the backend can do, and what the
 * frontend wants, with the length of its virtio-net header (0, 10 or 12; 0: it
 * uses none).  netbe_set_cap(): 0, or -1 where the backend cannot.
 */
uint64_t netbe_get_cap(net_backend_t *be);
int	netbe_set_cap(net_backend_t *be, uint64_t features,
	    unsigned int vnet_hdr_len);
size_t	netbe_get_vnet_hdr_len(net_backend_t *be);

/* Send one frame.  Its length, or -1 with errno where it was dropped. */
ssize_t	netbe_send(net_backend_t *be, const struct iovec *iov, int iovcnt);

/*
 * The length of the next frame; the frame itself, cut to the room given; or
 * throw it away.  Lengths in bytes, 0 if there is none, or negative.
 */
ssize_t	netbe_peek_recvlen(net_backend_t *be);
ssize_t	netbe_recv(net_backend_t *be, const struct iovec *iov, int iovcnt);
ssize_t	netbe_rx_discard(net_backend_t *be);

/* Whether the callback may be called.  Any thread. */
void	netbe_rx_disable(net_backend_t *be);
void	netbe_rx_enable(net_backend_t *be);

#endif /* !_NET_BACKENDS_H_ */
