/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A guest that consists of the driver's core, memory, rings, and one buffer for
 * each TX slot.  Frames have a number, which the receiving guest checks.
 */

#ifndef _LEM_GUEST_H_
#define	_LEM_GUEST_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lem_core.h"

/* Distance of buffers of `size' bytes, which uses all sets of a cache. */
#define	GUEST_STRIDE(size)	((size) + 64)

struct guest {
	struct lem_core	 lc;
	uint8_t		 mac[6];
	uint64_t	 txbuf;		/* gpa of slot 0's buffer */
	uint32_t	 txbufsize;	/* bytes */
	uint64_t	 sent;		/* number of the next frame */
	/* Frames received, compared with the next number. */
	uint64_t	 received, bytes;
	uint64_t	 missing;	/* gaps */
	uint64_t	 wrong;		/* out of order, or not ours */
};

/*
 * Place rings, buffers (TX and RX, `txbufsize' and `rxbufsize' bytes) and a
 * page for the CSB in `ram', from `gpa' on; the adapter has a CSB if `csb'.
 * The caller must set the register functions (lc.lc_os) before lem_attach().
 * Returns the first gpa after all these, 0 if `size' is too small.
 */
uint64_t guest_init(struct guest *g, uint8_t *ram, uint64_t gpa, size_t size,
	    uint32_t ntxd, uint32_t nrxd, uint32_t txbufsize,
	    uint32_t rxbufsize, bool csb);
/* Check the number of each frame received; guest_init() calls this. */
void	guest_listen(struct guest *g);
/* lem_attach(), lem_start(), enable interrupts.  Returns 0 or an errno. */
int	guest_up(struct guest *g, uint32_t mtu);

/*
 * The gpa of the buffer for the next frame.  The slot at the tail is free, even
 * if the ring is full.
 */
uint64_t guest_txbuf(const struct guest *g);

/* Queue a packet, from memory at guest_txbuf().  As lem_tx(). */
int	guest_tx(struct guest *g, const struct lem_packet *lp);

/* Queue the next frame, `len' bytes, to `dst'.  As lem_tx(). */
int	guest_send(struct guest *g, const uint8_t dst[6], size_t len);

/* Handle an interrupt.  Returns true if it was this adapter's. */
bool	guest_interrupt(struct guest *g, unsigned int budget);

/* Register accesses so far. */
uint64_t guest_exits(const struct guest *g);

#endif /* !_LEM_GUEST_H_ */
