/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The guest's side of the CSB, paravirt_csb(9), on top of the driver of
 * e82545_host.h.  As there, what belongs to transmit and to receive is for one
 * thread at a time each.
 */

#ifndef _E82545_GUEST_H_
#define	_E82545_GUEST_H_

#include <sys/endian.h>
#include <net/paravirt.h>

#include <stdbool.h>
#include <stdint.h>

#include "e82545_check.h"

/* Fields of the block, as the model may change them at any time. */
#define	CSB_GET(csb, field)						\
	le32toh(__atomic_load_n(&(csb)->field, __ATOMIC_ACQUIRE))
#define	CSB_SET(csb, field, value)					\
	__atomic_store_n(&(csb)->field, htole32(value), __ATOMIC_RELEASE)
#define	CSB_BARRIER()	__atomic_thread_fence(__ATOMIC_SEQ_CST)

/*
 * An adapter that is up, all interrupts on and none pending, with the mode on
 * and nothing said yet.  *csbp is the block; the host polls for `rounds'.
 */
struct host *guest_up(uint32_t ntxd, uint32_t nrxd, uint32_t bufsize,
	    uint32_t rounds, struct paravirt_csb **csbp);

/* A zeroed page with what the guest sets before it places the block. */
uint64_t guest_alloc(struct host *h, struct paravirt_csb **csbp);
/* Place the block, 0: take it back. */
void	guest_place(struct host *h, uint64_t gpa);

/* Put frames in the ring, `n' of 60 bytes. */
void	guest_frames(struct host *h, unsigned int n);
/* Tell of what is in the TX ring; whether that took a kick. */
bool	guest_send(struct host *h, struct paravirt_csb *csb);
/* Give back the buffers taken; whether that took a kick. */
bool	guest_give(struct host *h, struct paravirt_csb *csb);

/* Calls of e82545_tx() until it wants no more, that one too. */
unsigned int guest_rounds(struct host *h);

#endif /* !_E82545_GUEST_H_ */
