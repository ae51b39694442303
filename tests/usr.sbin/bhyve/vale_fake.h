/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The only port of a switch that a test of net_backend_vale.c has in place of
 * libvale.  The syncs keep what the backend put into the rings.  One thread.
 */

#ifndef _VALE_FAKE_H_
#define	_VALE_FAKE_H_

#include <sys/types.h>
#include <sys/param.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend.h"
#include "frame.h"
#include "libvale.h"

#define	PORT_SLOTS	128
#define	PORT_BUF	2048		/* bytes */

#define	RING_SIZE	(offsetof(struct netmap_ring, slot) +		\
			    PORT_SLOTS * sizeof(struct netmap_slot))

struct port_ring {
	_Alignas(128) char	 ring[RING_SIZE];	/* struct netmap_ring */
	_Alignas(64) char	 buf[PORT_SLOTS][PORT_BUF];
};

struct port {
	struct vale_desc desc;
	struct vale_common common;
	struct port_ring tx, rx;
	struct frame	 txframe[PORT_SLOTS], rxframe[PORT_SLOTS];
	int		 pipe[2];
	uint32_t	 tx_synced;	/* slots before this were seen */
	struct netmap_slot sent[16 * PORT_SLOTS];
	unsigned int	 nsent;
	int		 txsyncs, rxsyncs;
	int		 error;		/* for the syncs to return */
	bool		 stuck;		/* txsync consumes nothing */
	uint32_t	 buf_size;	/* 0: PORT_BUF */
	uint32_t	 indirect_max;	/* 0: buf_size */
	bool		 headers;	/* virtio-net's can be had */
	unsigned int	 header;	/* and have so many bytes */
	bool		 limited;	/* vale_limit() was called */
	uint32_t	 rx_filled;	/* slots up to this hold frames */
};
extern struct port port;

/* Put a frame, or a part of one, into the ring for the next rxsync. */
void	port_receive(const char *data, size_t len, uint16_t flags);

/* Open the backend on the port. */
net_backend_t *backend(void);

/* The bytes of a slot that was sent. */
const char *slot_data(const struct netmap_slot *slot);

/*
 * Check that slots [first, nsent) are one frame of these bytes: no slot is
 * empty or too long for its buffer, and the first has the Ethernet header.
 */
void	check_frame(unsigned int first, const char *data, size_t len);

/* Fill a buffer with a pattern. */
void	fill(char *buf, size_t len);

#endif /* !_VALE_FAKE_H_ */
