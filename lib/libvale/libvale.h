/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Ports on a VALE switch, through netmap's API: rings, slots and buffers are
 * laid out as <net/netmap.h> says and used with <net/netmap_user.h>; only
 * opening, closing and the two syncs are calls.  On FreeBSD they go to
 * /dev/netmap (vale_netmap.c), elsewhere to a switch in this process
 * (vale_inproc.c).  The same program works with both.
 *
 * One thread at a time may use the transmit side of a port, and one the
 * receive side; the two may be different threads.  Opening and closing may
 * happen on any thread, closing when no other call on that port is going on.
 */

#ifndef _LIBVALE_H_
#define	_LIBVALE_H_

#include <sys/types.h>
#include <sys/uio.h>
#include <net/if.h>
#include <net/netmap.h>
#include <net/netmap_user.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An open port.  Read only, but for what the rings' rules let users write. */
struct vale_desc {
	int			 fd;	/* readable when frames wait, from a
					   vale_rxsync() that found none */
	struct netmap_if	*nifp;
	struct netmap_ring	*txring;	/* ring 0, as is */
	struct netmap_ring	*rxring;	/* ring 0 */
	bool			 whole;	/* better not use NS_MOREFRAG: ports of
					   adapters and of the host's stack take
					   every slot for a frame */
	char			 name[64];	/* "vale0:vm1" */
};

/* What to open a port with; all zero means netmap's defaults. */
struct vale_params {
	uint32_t	tx_slots;	/* 0, or 2 to 16384; default 1024 */
	uint32_t	rx_slots;
};

/*
 * Open port `name', "valeSWITCH:PORT": SWITCH may be empty, both are letters,
 * digits, '_', '-' and '.'.  Makes the switch if there is none of that name,
 * and the port; both go away when the last user closes.  `params' may be NULL.
 * Returns NULL with errno set: EINVAL for a bad name or params, EBUSY if the
 * port is open already, ENOSPC when the switch has 254 ports, ENOMEM, or what
 * open(2) of /dev/netmap, its ioctl(2)s, or eventfd(2) say.
 */
struct vale_desc *vale_open(const char *name, const struct vale_params *params);

/* Close the port.  Frames it has not received are dropped. */
void	vale_close(struct vale_desc *d);

/*
 * Whether frames of this port begin with a virtio-net header, and of how many
 * bytes: 0 for none, as after vale_open(), 10 or 12.  A switch that knows of
 * them translates between ports.  Not during a sync.  0, or -1 with errno:
 * EINVAL for another length, EOPNOTSUPP where the switch has no headers.
 */
int	vale_set_header(struct vale_desc *d, unsigned int len);

/*
 * Transmit the slots before ring->head.  All are consumed when it returns: a
 * frame is delivered or dropped, never left.  Slots may have NS_INDIRECT set,
 * `ptr' then being the address of `len' bytes (not more than nr_buf_size), and
 * NS_MOREFRAG, when the frame goes on in the next slot (NETMAP_MAX_FRAGS at
 * most).  A frame whose last slot is missing is dropped.  0, or -1 with errno:
 * ENXIO when the port has gone; EINVAL when head is outside the ring, which is
 * then put back to where it was.
 */
int	vale_txsync(struct vale_desc *d);

/*
 * Return the slots before ring->head to the switch and show new frames up to
 * ring->tail.  When none wait beyond ring->cur, d->fd becomes readable with the
 * next one, and stays so until a vale_rxsync() again finds none: one may stop
 * waiting on it with frames left, and will find it readable later.
 * 0, or -1 with errno as above, EINVAL also for ring->cur not between head and
 * tail.
 */
int	vale_rxsync(struct vale_desc *d);

/*
 * In rxring->flags, set and cleared by the port's user, who calls vale_rxsync()
 * again and again and does not wait on d->fd: senders need not wake it, and
 * d->fd may stay readable with no frames there until a vale_rxsync() without
 * the flag finds none.  Its frames go through the ring, and none to a sink: two
 * processors are at work there, and do best when each does a part of it, the
 * sender up to the ring, the receiver from there.  Each vale_rxsync() goes by
 * what is set then.  Switches that do not know the flag take no notice.
 */
#define	VALE_RING_POLLED	0x80000000

/*
 * Past the ring.  Frames for the port are offered to sink(arg, offer) where
 * they lie, in their sender's memory, before they are copied into the receive
 * ring; what it leaves goes there.  They are offered only while the ring is
 * empty, all of its slots are given back, and it is not polled: so frames of
 * one sender keep their order if those taken from the ring are done with before
 * the vale_rxsync() that gives them back.  NULL: no longer.
 *
 * The sink is called by whatever thread sends, by several at a time where there
 * are several senders, and each of them waits for it.  It may call the two
 * functions below, and no others of this library.
 *
 * On return no call of the former sink is in progress.  Any thread.  0, or -1
 * with errno EOPNOTSUPP where the switch does not do this.
 */
struct vale_offer;			/* opaque; for the time of the call */
int	vale_set_sink(struct vale_desc *d,
	    void (*sink)(void *arg, struct vale_offer *offer), void *arg);

/*
 * The first frame that has not been stepped over: sets up to `maxiov' pieces,
 * some of which may be empty, and returns how many; 0 when there are no more
 * frames, or this one has more pieces.  They are to be read only, and the
 * sender may be writing to them.
 */
int	vale_offer_peek(struct vale_offer *offer, struct iovec *iov,
	    int maxiov);

/* Step over that frame: it has been taken. */
void	vale_offer_next(struct vale_offer *offer);

#endif /* !_LIBVALE_H_ */
