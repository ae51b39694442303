/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A guest with its adapter, without a driver and in one thread: functions put
 * descriptors into the rings.  The adapter's port is on a VALE switch, or it is
 * the null port, which discards what is sent, and has `pending' frames to
 * receive.
 */

#ifndef _BARE_GUEST_H_
#define	_BARE_GUEST_H_

#include <dev/e1000/e82545_reg.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "e82545.h"
#include "libvale.h"
#include "vale_frame_port.h"

#define	GUEST_RING		1024		/* descriptors */
#define	GUEST_BUF		2048		/* bytes of a receive buffer */
#define	GUEST_TXBUF	16384		/* of a long transmit buffer */
#define	GUEST_LEN_MAX	9216		/* of a frame */
/* Addresses of the rings in a guest's RAM. */
#define	GUEST_RXRING	0x10000
#define	GUEST_TXRING	0x20000
#define	GUEST_RXBUFS	0x100000
#define	GUEST_TXBUFS	(GUEST_RXBUFS + GUEST_RING * GUEST_BUF)
#define	GUEST_RAM		(GUEST_TXBUFS + GUEST_RING * GUEST_TXBUF)

struct bare_guest {
	struct e82545	*dev;
	struct vale_desc *vale;
	struct vale_frame_port vale_port;
	struct frame_port *port;
	uint8_t		*ram;
	uint32_t	 len;		/* of the frames it sends */
	uint32_t	 tail, next;	/* TX, RX */
	bool		 line;
	bool		 direct;	/* bare_guest_direct() was called */
	uint8_t		 mac[6];
	/* The null port. */
	struct frame_port null_port;
	struct frame_source null_source;
	uint8_t		*frames;	/* GUEST_RING of GUEST_BUF bytes */
	uint32_t	 frame_len;	/* of each */
	uint32_t	 frame;		/* first buffer of the next one */
	uint32_t	 pending;	/* frames */
};

/* Guest `n' with an adapter on port "vale0:vm`n'", or on the null port. */
void	bare_guest_create(struct bare_guest *guest, int n, bool port);

/*
 * Fill the transmit ring with frames of `len' bytes to `to', the receive ring
 * with buffers, and enable the adapter.
 */
void	bare_guest_up(struct bare_guest *guest, const struct bare_guest *to,
	    uint32_t len);

/* Have the null port receive frames of `len' bytes to `guest'. */
void	bare_guest_frames(struct bare_guest *guest, uint32_t len);

/* Give the port a sink: frames of other guests go into the receive ring. */
void	bare_guest_direct(struct bare_guest *guest);

/* Send `batch' frames with one write to TDT. */
void	bare_guest_send(struct bare_guest *guest, uint32_t batch);

/* Receive all frames and post the buffers.  Returns the descriptors used. */
uint32_t bare_guest_receive(struct bare_guest *guest);

/* The descriptors. */
static inline union e82545_txd *
bare_guest_txd(const struct bare_guest *guest)
{
	return ((union e82545_txd *)(void *)(guest->ram + GUEST_TXRING));
}

static inline struct e82545_rxd *
bare_guest_rxd(const struct bare_guest *guest)
{
	return ((struct e82545_rxd *)(void *)(guest->ram + GUEST_RXRING));
}

/* Buffer `n', from 0, of the null port's next frame. */
static inline uint8_t *
bare_guest_frame_buf(const struct bare_guest *guest, uint32_t n)
{
	return (guest->frames +
	    (size_t)((guest->frame + n) % GUEST_RING) * GUEST_BUF);
}

#endif /* !_BARE_GUEST_H_ */
