/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A guest and its adapter, all in one thread: nothing of a guest but what puts
 * descriptors into rings.  The adapter is on a port of a VALE switch, or on a
 * network of nothing: there, what is sent is gone, and frames to receive are
 * there while `waiting' is not 0.
 */

#ifndef _BARE_GUEST_H_
#define	_BARE_GUEST_H_

#include <dev/e1000/e82545_reg.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "e82545.h"
#include "frame_port.h"

#define	VM_RING		1024		/* descriptors */
#define	VM_BUF		2048		/* bytes of a receive buffer */
#define	VM_TXBUF	16384		/* bytes of a transmit buffer, if long */
#define	VM_LEN_MAX	9216		/* of a frame */
/* Addresses of the rings in a guest's RAM. */
#define	VM_RXRING	0x10000
#define	VM_TXRING	0x20000
#define	VM_RXBUFS	0x100000
#define	VM_TXBUFS	(VM_RXBUFS + VM_RING * VM_BUF)
#define	VM_RAM		(VM_TXBUFS + VM_RING * VM_TXBUF)

struct vm {
	struct e82545	*dev;
	struct net_backend *be;
	struct frame_port *port;
	uint8_t		*ram;
	uint32_t	 len;		/* of the frames it sends */
	uint32_t	 tail, next;	/* TX, RX */
	bool		 line;
	bool		 direct;	/* vm_direct() was called */
	uint8_t		 mac[6];
	/* The port without a network. */
	struct frame_port null_port;
	struct frame_source null_source;
	uint8_t		*frames;	/* VM_RING buffers of VM_BUF bytes */
	uint32_t	 frame_len;	/* of each */
	uint32_t	 frame;		/* buffer the next one begins in */
	uint32_t	 waiting;	/* frames */
};

/* Guest `n' with an adapter on port "vale0:vm`n'", or on nothing. */
void	vm_create(struct vm *vm, int n, bool port);

/*
 * Fill the transmit ring with frames of `len' bytes to `to', the receive ring
 * with buffers, and switch the adapter on.
 */
void	vm_up(struct vm *vm, const struct vm *to, uint32_t len);

/* Frames of `len' bytes to `vm' for the network of nothing. */
void	vm_frames(struct vm *vm, uint32_t len);

/* Receive frames of other guests direct, into the receive ring. */
void	vm_direct(struct vm *vm);

/* Send `batch' frames with one write to TDT. */
void	vm_send(struct vm *vm, uint32_t batch);

/* Receive all frames and post the buffers; the number of descriptors. */
uint32_t vm_receive(struct vm *vm);

/* The descriptors. */
static inline union e82545_txd *
vm_txd(const struct vm *vm)
{
	return ((union e82545_txd *)(void *)(vm->ram + VM_TXRING));
}

static inline struct e82545_rxd *
vm_rxd(const struct vm *vm)
{
	return ((struct e82545_rxd *)(void *)(vm->ram + VM_RXRING));
}

/* The n-th buffer, from 0, of the next frame of the network of nothing. */
static inline uint8_t *
vm_frame_buf(const struct vm *vm, uint32_t n)
{
	return (vm->frames + (size_t)((vm->frame + n) % VM_RING) * VM_BUF);
}

#endif /* !_BARE_GUEST_H_ */
