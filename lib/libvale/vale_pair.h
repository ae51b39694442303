/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A ring pair of a port.
 */

#ifndef _VALE_PAIR_H_
#define	_VALE_PAIR_H_

#include <sys/systm.h>

#include <stddef.h>
#include <stdint.h>

#include "libvale.h"
#include "vale_region.h"
#include "vale_rxq.h"
#include "vale_txq.h"

struct vale_port;

/*
 * What the pair's own threads write, and where its rings are.  All else is the
 * port's.
 */
struct vale_pair {
	struct vale_desc	 pa_desc;	/* must be first */
	struct vale_port	*pa_port;
	unsigned int		 pa_index;	/* of vp_pair */
	uint32_t		 pa_rx_buf;	/* the first buffer of its
						   receive ring */
	struct vale_user	 pa_tx_user;	/* if vp_shared */
	struct vale_user	 pa_rx_user;
	struct vale_port	*pa_inbox;	/* if vp_shared, or NULL */
	uint64_t		 pa_slow_ns;	/* atomic: the user's memory is
						   slow until then */
	_Alignas(VALE_CACHE_LINE)
	struct vale_txq		 pa_tx;
	_Alignas(VALE_CACHE_LINE)
	struct vale_rxq		 pa_rx;
	/* vale_count() says who writes which. */
	_Alignas(VALE_CACHE_LINE)
	uint64_t		 pa_counter[VALE_NCOUNTERS];
};

/* Return the ring pair of a descriptor. */
static inline struct vale_pair *
vale_desc_pair(struct vale_desc *d)
{
	return ((struct vale_pair *)(void *)d);
}

_Static_assert(offsetof(struct vale_pair, pa_desc) == 0, "vale_desc_pair()");

/* Return the port of a descriptor. */
static inline struct vale_port *
vale_desc_port(struct vale_desc *d)
{
	return (vale_desc_pair(d)->pa_port);
}

/*
 * Add to a counter.  The sending thread writes the pair's transmit counters;
 * any thread may write the receive counters under rq_lock.
 */
static inline void
vale_count(struct vale_pair *pair, enum vale_counter c, uint64_t n)
{
	if (c >= VALE_C_RX_SYNC)
		mtx_assert(&pair->pa_rx.rq_lock, MA_OWNED);
	atomic_store_64(&pair->pa_counter[c], pair->pa_counter[c] + n);
}

/*
 * Return the buffer of receive slot `i'.  The user may have changed its index;
 * if `vr', the port's memory, has no such buffer, the slot gets back the buffer
 * it was created with, and *badbufs counts it.
 */
static inline uint8_t *
vale_rx_buf(const struct vale_pair *pair, const struct vale_region *vr,
    struct netmap_slot *slot, uint32_t i, uint32_t *badbufs)
{
	uint8_t *buf;
	uint32_t idx;

	buf = vale_region_buf(vr, atomic_load_32(&slot->buf_idx));
	if (buf == NULL) {
		idx = pair->pa_rx_buf + i;
		slot->buf_idx = idx;
		buf = (uint8_t *)vr->vr_bufs + (size_t)idx * VALE_BUF_SIZE;
		++*badbufs;
	}
	return (buf);
}

/*
 * Count, and show to a tracer, `n' frames of port `from', at least one, that
 * are dropped at `pair' because of `reason'.  The thread that may count it.
 */
void	vale_pair_drop(struct vale_pair *pair, enum vale_counter reason,
	    uint32_t n, const struct vale_port *from);

#endif /* !_VALE_PAIR_H_ */
