/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What the files of em_pv(4) share.  em_pv.c says what each has.
 */

#ifndef _EM_PV_H_
#define	_EM_PV_H_

#include "if_em.h"

#include <sys/callout.h>
#include <sys/sdt.h>

#include <machine/atomic.h>

#include <net/paravirt.h>

#include "lem_spin.h"

#define	EM_PV_QUEUES	2		/* of an 82574L */

/* Slots from a to b in a ring of n, a power of two. */
#define	DISTANCE(a, b, n)	(((b) - (a)) & ((n) - 1))

/* dtrace_lem(4) */
SDT_PROVIDER_DECLARE(lem);
#define	EM_PV_PROBE(pv, probe, value)					\
	SDT_PROBE2(lem, , , probe, device_get_nameunit((pv)->sc.dev), value)

/* An entry of the header ring, which has one for each receive descriptor. */
struct em_pv_hdr {
	uint8_t		 flags, type;
	uint16_t	 len, mss, csum_start, csum_offset;
};
_Static_assert(sizeof(struct em_pv_hdr) == 10, "paravirt_csb(9)");

struct em_pv_tx {
	qidx_t		 tail;		/* as of the last flush */
	qidx_t		 posted;	/* last value of TDT (or guest_tdt) */
	bool		 rs;		/* the descriptor before it has RS */
	qidx_t		 report;	/* last posted descriptor with RS */
	bool		 waiting;	/* its report is due */
};

struct em_pv_rx {
	qidx_t		 next;		/* next descriptor to be received */
	qidx_t		 seen;		/* the same, of the last look that
					   found a frame there */
	qidx_t		 posted;	/* last value of RDT (or guest_rdt) */
	bool		 kick;		/* the next value goes to RDT */
	uint32_t	 frames;	/* since the last value */
	/* lem_share_turn() */
	uint64_t	 begin_ns;	/* of this turn, or 0 */
	uint64_t	 due_ns;
	uint64_t	 resume_ns;	/* the end of a pause, or 0 */
};

struct em_pv {
	struct e1000_softc sc;		/* em(4)'s; must be first */
	const struct if_txrx *base;	/* em(4)'s functions of the rings */
	struct if_txrx	 txrx;		/* with ours */
	struct mtx	 lock;
	struct em_pv_tx	 tx[EM_PV_QUEUES];
	struct em_pv_rx	 rx;		/* of queue 0 */
	struct paravirt_csb *csb;	/* one page, or NULL */
	struct iflib_dma_info csb_dma;
	struct em_pv_hdr *hdrs;		/* the header ring, or NULL */
	struct iflib_dma_info hdrs_dma;
	bool		 hdrs_on;	/* as of em_pv_init() */
	struct lem_spin	 tx_spin;	/* the host's, for packets */
	struct lem_spin	 rx_spin;	/* for frames */
	uint32_t	 tx_asked;	/* numbers of the last requests for */
	uint32_t	 rx_asked;	/* interrupts */
	bool		 running;	/* between IFDI_INIT and IFDI_STOP */
	bool		 detaching;
	bool		 masked;	/* by IMC */
	bool		 unread;	/* an MSI came, and ICR was not read */
	bool		 csb_on;	/* csb, while running */
	uint32_t	 ims;		/* em(4)'s, with MSI-X */
	struct callout	 poll_callout, rx_callout;
	struct sysctl_ctx_list sysctls;
	uint32_t	 updates;	/* with the CSB, by the admin task */
	bool		 itr_set;	/* somebody has set itr */
	uint32_t	 itr_em;	/* em(4)'s, as of em_pv_init() */
	/* Knobs. */
	u_int		 itr, sc_on, poll, rx_share;
	u_int		 csb_wanted;	/* not without a CSB */
	/* Counters. */
	u_long		 tx_kicks, tx_kicks_saved, tx_combined, tx_flushes;
	u_long		 rx_kicks, rx_kicks_saved, rx_offload, rx_bad;
	u_long		 rx_pauses;
	u_long		 interrupts, icr_reads, polls;
};

/*
 * em_pv.c
 */

/* Apply the knobs to a running adapter.  With iflib's context lock. */
void	em_pv_mode(struct em_pv *pv);

/*
 * Write the interval between interrupts: em(4)'s, unless the CSB is on or
 * somebody has set one.
 */
void	em_pv_itr(struct em_pv *pv);

/*
 * em_pv_txrx.c
 */

/* Replace em(4)'s functions of the rings in pv->txrx, but ift_legacy_intr. */
void	em_pv_txrx_init(struct em_pv *pv);

/*
 * Return the value of a need-kick flag of the CSB for a request, as lem_ask()
 * does.  With pv->lock; `last' is the flag's.
 */
uint32_t em_pv_ask(struct em_pv *pv, uint32_t *last);

/* Post all descriptors before the tail.  With pv->lock. */
void	em_pv_tx_post(struct em_pv *pv, int q);

/*
 * Post what was held back, if what it waited for has come: the report of the
 * last posted packet, or, with `poll', a poll.  Returns whether a report is to
 * come now.
 */
bool	em_pv_tx_done(struct em_pv *pv, int q, bool poll);

/*
 * End a turn of reception, and begin the next one if `more'; not in a filter,
 * which is no turn.  Returns whether reception pauses.
 */
bool	em_pv_rx_pauses(struct em_pv *pv, bool more);

/* Return whether a frame has come, or begins to. */
bool	em_pv_rx_ready(struct em_pv *pv);

/*
 * Spin until a frame has come, while nobody else wants the processor.  A filter
 * does not spin.
 */
void	em_pv_rx_spin(struct em_pv *pv);

/* Return whether a user of netmap has the rings. */
bool	em_pv_netmap(struct em_pv *pv);

/*
 * Return whether frames may come as others of this host send them: uncut, with
 * partial checksums.
 */
bool	em_pv_takes_partial(struct em_pv *pv);

/*
 * em_pv_sysctl.c
 */

/* Add the knobs and counters to dev.em.N. */
void	em_pv_sysctl_attach(struct em_pv *pv);

#endif /* !_EM_PV_H_ */
