/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * State of an adapter, shared by if_lem.c (newbus, configuration, interrupts),
 * if_lem_txrx.c (mbufs) and if_lem_netmap.c.
 *
 * Three locks, taken in this order:
 *
 *   ctl	sleeps; whoever starts, stops or reconfigures the adapter
 *   rx_mtx	the receive side of lem_core, and the link's state
 *   tx_mtx	the transmit side
 *
 * lem_core's calls that need both sides are made under all three.
 */

#ifndef _DEV_E1000_IF_LEM_H_
#define	_DEV_E1000_IF_LEM_H_

#include <sys/param.h>
#include <sys/systm.h>
#include <sys/bus.h>
#include <sys/callout.h>
#include <sys/lock.h>
#include <sys/malloc.h>
#include <sys/mutex.h>
#include <sys/sx.h>
#include <sys/socket.h>
#include <sys/taskqueue.h>

#include <net/ethernet.h>
#include <net/if.h>
#include <net/if_var.h>
#include <net/if_media.h>

#include <dev/e1000/lem_core.h>

struct buf_ring;
struct mbuf;
struct netmap_adapter;

#define	LEM_NDESC	1024	/* descriptors in a ring */
#define	LEM_BR_SLOTS	4096	/* packets that wait for room in one */
#define	LEM_TSO_MAX	65535	/* bytes with all headers */

/* What a descriptor points at. */
struct lem_buf {
	struct mbuf	*m;
	bus_dmamap_t	 map;
	bus_addr_t	 addr;
};

struct lem_softc {
	struct lem_core	 core;
	device_t	 dev;
	if_t		 ifp;
	struct ifmedia	 media;
	uint8_t		 mac[ETHER_ADDR_LEN];
	struct sx	 ctl;
	bool		 detaching;	/* ctl */
	bool		 suspended;	/* ctl */
	uint32_t	 mode;		/* ctl: LEM_MODE_* asked for */
	uint32_t	 mta[128];	/* ctl */
	u_int		 if_flags;	/* ctl: as the filters were set */

	int		 mem_rid;
	int		 irq_rid;
	struct resource	*irq;
	void		*irq_cookie;
	struct taskqueue *tq;
	struct task	 intr_task;
	struct task	 tx_task;
	struct task	 reset_task;
	struct callout	 tick;		/* tx_mtx */
	uint32_t	 causes;	/* atomic: LEM_INTR_*, not yet served */

	struct mtx	 rx_mtx;
	bus_dma_tag_t	 rx_tag;
	struct lem_buf	 rx_buf[LEM_NDESC];
	bus_dmamap_t	 rx_spare;
	uint32_t	 rx_budget;	/* frames a batch */
	struct mbuf	*rx_frame;	/* pieces of the frame that comes in */
	struct mbuf	*rx_frame_last;
	struct mbuf	*rx_list;	/* frames to hand to the stack */
	struct mbuf	**rx_list_end;
	uint64_t	 rx_bytes;
	uint64_t	 rx_frames;

	struct mtx	 tx_mtx;
	bus_dma_tag_t	 tx_tag;
	struct lem_buf	 tx_buf[LEM_NDESC];
	bus_dmamap_t	 tx_spare;
	bus_dma_segment_t tx_dseg[LEM_TX_MAXSEGS];
	struct lem_seg	 tx_seg[LEM_TX_MAXSEGS];
	struct buf_ring	*tx_br;
	uint64_t	 tx_done;	/* packets that came back */
	uint64_t	 tx_done_seen;	/* of those at the last progress */
	u_int		 tx_stuck;	/* seconds without any */
	uint64_t	 watchdogs;

	/* netmap mode; each under its side's lock. */
	bool		 nm_rx, nm_tx;
	bool		 nm_bad;	/* a slot named no buffer */
	uint32_t	 nm_rx_head;	/* first slot that the user holds */
	uint32_t	 nm_rx_next;	/* lc_rx_next as of the last sync */
	uint32_t	 nm_rx_frame;	/* slot where this frame began */
};

static inline struct lem_softc *
lem_softc(struct lem_core *lc)
{
	return (__containerof(lc, struct lem_softc, core));
}

/* if_lem.c: ctl held, detaching not set. */
void	lem_up(struct lem_softc *sc);
void	lem_down(struct lem_softc *sc);

/*
 * if_lem_txrx.c
 *
 * lem_rxeof() takes up to `budget' frames, hands them to the stack, and returns
 * how many; it takes rx_mtx, and nothing is held while the stack runs.
 * lem_txeof() takes completions and sends what waits in the buf_ring; it takes
 * tx_mtx, which lem_txeof_locked()'s caller holds.  lem_transmit() and
 * lem_qflush() are the interface's methods.
 * lem_txrx_alloc() and lem_txrx_free() are for attach and detach, the latter
 * also after a failed former; lem_rx_purge() drops the buffers of a stopped
 * adapter, rx_mtx held.
 */
int	lem_txrx_alloc(struct lem_softc *sc, bus_dma_tag_t parent);
void	lem_txrx_free(struct lem_softc *sc);
u_int	lem_rxeof(struct lem_softc *sc, u_int budget);
void	lem_rx_purge(struct lem_softc *sc);
void	lem_txeof(struct lem_softc *sc);
void	lem_txeof_locked(struct lem_softc *sc);
int	lem_transmit(if_t ifp, struct mbuf *m);
void	lem_qflush(if_t ifp);

/*
 * if_lem_netmap.c
 *
 * lem_netmap_start() is called with all locks held before lem_start(), and
 * decides for both sides whether netmap has them.  lem_netmap_{rx,tx}_irq() are
 * for an interrupt, no lock held: true if netmap took it.  lem_netmap_busy()
 * is whether a user has it.  The last three stand in for the hooks of lem_os.h
 * where nm_rx is set.
 */
int	lem_netmap_attach(struct lem_softc *sc);
void	lem_netmap_detach(struct lem_softc *sc);
void	lem_netmap_start(struct lem_softc *sc);
bool	lem_netmap_busy(struct lem_softc *sc);
bool	lem_netmap_rx_irq(struct lem_softc *sc);
bool	lem_netmap_tx_irq(struct lem_softc *sc);
uint64_t lem_netmap_rx_buf(struct lem_softc *sc, uint32_t slot);
void	lem_netmap_rx(struct lem_softc *sc, uint32_t slot,
	    const struct lem_rx *rx);
void	lem_netmap_rx_drop(struct lem_softc *sc);

#endif /* !_DEV_E1000_IF_LEM_H_ */
