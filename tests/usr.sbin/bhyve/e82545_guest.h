/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The guest's side of the CSB, paravirt_csb(9), on top of the driver of
 * e82545_host.h.  As there, only one thread at a time may transmit, and one
 * receive.
 */

#ifndef _E82545_GUEST_H_
#define	_E82545_GUEST_H_

#include <sys/endian.h>
#include <net/paravirt.h>

#include <stdbool.h>
#include <stdint.h>

#include "e82545_check.h"

/*
 * Fields of the CSB that is x->csb, which the model may change at any time.
 * The functions below use h->csb.
 */
#define	CSB_GET(x, field)						\
	le32toh(atomic_load_acq_32(&(x)->csb->field))
#define	CSB_SET(x, field, value)					\
	atomic_store_rel_32(&(x)->csb->field, htole32(value))
#define	CSB_BARRIER()	atomic_thread_fence_seq_cst()

/*
 * Create an adapter with its rings and the CSB on, all interrupts on and none
 * pending.  The host polls for `rounds' empty rounds.
 */
struct host *guest_up(uint32_t ntxd, uint32_t nrxd, uint32_t bufsize,
	    uint32_t rounds);

/* As guest_up(), and the host polls: it has sent `n' frames after one kick. */
struct host *guest_awake(unsigned int n, uint32_t rounds);

/*
 * Allocate a CSB, which becomes h->csb, with the fields that the guest sets
 * before it places it.
 */
uint64_t guest_alloc(struct host *h);
/* Write a CSB's address to CSBAH and CSBAL; 0 turns it off. */
void	guest_place(struct host *h, uint64_t gpa);

/* Allocate another CSB, with the mode on, and place it. */
void	guest_move(struct host *h);

/*
 * Move the guest to a new host by a snapshot, with its memory, block and
 * receive ring.  Destroys `h'; the new host's adapter is paused.
 */
struct host *guest_migrate(struct host *h);

/* Queue `n' frames of 60 bytes. */
void	guest_frames(struct host *h, unsigned int n);
/* Publish the TX ring's tail.  True if that took a kick. */
bool	guest_send(struct host *h);
/* Post the buffers of received frames.  True if that took a kick. */
bool	guest_give(struct host *h);

/* Queue `n' frames, and publish them as guest_send() does. */
bool	guest_post(struct host *h, unsigned int n);
/* guest_post(), and the adapter runs. */
void	guest_transmit(struct host *h, unsigned int n);
/* Queue `n' frames, and publish them in the CSB alone, without a kick. */
void	guest_store(struct host *h, unsigned int n);

/* Let `n' frames of 60 bytes arrive; guest_inject() runs the adapter, too. */
void	guest_offer(struct host *h, unsigned int n);
void	guest_inject(struct host *h, unsigned int n);
/* Take up to `max' frames out of the ring; returns their number. */
unsigned int guest_take(struct host *h, unsigned int max);
/* Check that `n' frames can be taken, and do as guest_give(). */
bool	guest_return(struct host *h, unsigned int n);
/* Let `n' frames arrive, and check that these can be taken, and no others. */
void	guest_receive(struct host *h, unsigned int n);

/* Call e82545_tx() until it returns false; the number of calls. */
unsigned int guest_rounds(struct host *h);

#endif /* !_E82545_GUEST_H_ */
