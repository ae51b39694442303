/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A guest and a host for scenarios: the driver's core and the model, with rings
 * of NDESCS, in shared memory.  A scenario ends when all frames have arrived; a
 * kick or interrupt that got lost is a deadlock, because then both sides wait.
 * Descriptors and frames are plain memory, so an index that is seen before what
 * it stands for is a data race.
 */

#ifndef _BED_H_
#define	_BED_H_

#include <sys/param.h>
#include <sys/systm.h>
#include <net/paravirt.h>

#include "e82545.h"
#include "frame_port.h"
#include "lem_core.h"
#include "lem_impl.h"

#define	NDESCS		8	/* the shortest ring that the model accepts */
#define	LEN		60	/* bytes of a frame */

/* Guest memory: the buffers of descriptor i are STRIDE * i behind these. */
#define	GPA_TXBUF	0x4000
#define	GPA_RXBUF	0x5000
#define	STRIDE		64
#define	RX_STRIDE	2048

extern uint8_t *ram;
extern struct e82545 *dev;
extern struct lem_core *lc;
extern struct paravirt_csb *csb;

/* What both sides tell each other, besides through the CSB. */
extern struct mm_event intr, tx_kick, rx_ready;

/* The network.  Threads own what they write. */
struct net {
	struct frame_port port;
	struct frame_source source;
	unsigned int	sent;		/* frames that the host has sent */
	unsigned int	tosend;		/* in all */
	unsigned int	offered;	/* frames that came in, */
	unsigned int	taken;		/* of them, taken by the model */
	uint8_t		frame[LEN];
};
extern struct net *net;

/* Start both sides, in a LEM_MODE_*; the host sleeps, and no event is set. */
void	bed_setup(uint32_t mode);

/* Send frame `number'; lem_tx_flush() posts it.  False: the ring is full. */
bool	guest_send(unsigned int number);
/* Fill the ring with the first NDESCS - 1 frames, in setup. */
void	guest_fill(void);
/* Send frames `first' to `last', waiting for interrupts if the ring is full. */
void	guest_send_all(unsigned int first, unsigned int last);
/* Check received frame `number', in descriptor `slot', and erase it. */
void	guest_check(uint32_t slot, unsigned int number);

/* What a driver does on x86; these are no sites. */
static inline void
barrier(void)
{
	mm_fence(__ATOMIC_SEQ_CST, NULL);
}

static inline uint32_t
get(const uint32_t *p)
{
	uint32_t value = atomic_load_32(p);

	mm_fence(__ATOMIC_ACQUIRE, NULL);
	return (value);
}

static inline void
put(uint32_t *p, uint32_t value)
{
	mm_fence(__ATOMIC_RELEASE, NULL);
	atomic_store_32(p, value);
}

/* The host's threads: until net->tosend frames are sent, */
void	host_tx(void);
/* and until net->offered frames are taken. */
void	host_rx(void);

#endif /* !_BED_H_ */
