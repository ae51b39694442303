/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * State of an adapter, shared by if_lem.c (newbus, interface, interrupts),
 * if_lem_sysctl.c, if_lem_txrx.c (mbufs) and if_lem_netmap.c.
 *
 * Three locks, taken in this order:
 *
 *   ctl	sleeps; whoever starts, stops or reconfigures the adapter
 *   rx.mtx	the receive side of lem_core
 *   tx.mtx	the transmit side
 *
 * lem_core's calls that need both sides are made under all three.
 */

#ifndef _DEV_E1000_IF_LEM_H_
#define	_DEV_E1000_IF_LEM_H_

#include <dev/e1000/lem_core.h>

#include <sys/lock.h>
#include <sys/malloc.h>
#include <sys/mbuf.h>
#include <sys/mutex.h>
#include <sys/sx.h>
#include <sys/socket.h>
#include <sys/taskqueue.h>

#include <net/ethernet.h>
#include <net/if.h>
#include <net/if_var.h>
#include <net/if_media.h>

#define	LEM_NDESC	1024	/* descriptors in a ring */
#define	LEM_BR_SLOTS	4096	/* packets that wait for room in one */
#define	LEM_TSO_MAX	65535	/* bytes with all headers */

/* What dev.em.N sets; ranges are in if_lem_sysctl.c. */
struct lem_knobs {
	u_int		 itr;		/* between interrupts, 256 ns */
	u_int		 rx_budget;	/* frames a batch */
	u_int		 sc;		/* LEM_MODE_SC */
	u_int		 csb;		/* LEM_MODE_CSB */
	u_int		 tx_lazy;	/* LEM_MODE_LAZY */
};

/* What the adapter reads and writes, besides packets. */
struct lem_shared {
	struct e82545_desc txd[LEM_NDESC];
	struct e82545_desc rxd[LEM_NDESC];
	uint8_t		 csb[NET_PARAVIRT_CSB_SIZE];
};
_Static_assert(offsetof(struct lem_shared, csb) % NET_PARAVIRT_CSB_SIZE == 0,
    "the CSB is a page");

/* What a slot's descriptor points at; TX: that of a packet's first. */
struct lem_buf {
	struct mbuf	*m;		/* if any, it is loaded */
	bus_dmamap_t	 map;
};

/* Receive side, transmit side. */
struct lem_side {
	struct mtx	 mtx;
	bus_dma_tag_t	 tag;
	struct lem_buf	 buf[LEM_NDESC];
	bool		 netmap;	/* netmap(4) has it */
};

struct lem_softc {
	struct lem_core	 core;
	device_t	 dev;
	if_t		 ifp;
	struct ifmedia	 media;
	uint8_t		 mac[ETHER_ADDR_LEN];
	struct sx	 ctl;
	bool		 suspended;	/* newbus's; or to be detached */
	struct lem_knobs knobs;		/* ctl */

	struct lem_shared *shared;
	bus_addr_t	 shared_dma;
	struct resource	*irq;
	void		*irq_cookie;
	struct taskqueue *tq;
	struct task	 intr_task;
	struct timeout_task tick;

	struct lem_side	 rx;
	struct mbuf	*rx_frame;	/* pieces of the frame that comes in */
	struct mbufq	 rx_queue;	/* frames to hand to the stack */
	bool		 rx_bad;	/* a netmap slot named no buffer */

	struct lem_side	 tx;
	struct lem_seg	 tx_seg[LEM_TX_MAXSEGS];
	struct buf_ring	*tx_br;
	uint64_t	 tx_cleans;	/* ctl: as of the last tick */
	u_int		 tx_stuck;	/* ctl: seconds without any since */
	uint64_t	 watchdogs;
};

#define	LEM_SOFTC(lc)	__containerof(lc, struct lem_softc, core)

/*
 * if_lem.c: ctl held.  lem_up() does nothing where the adapter runs, is not to,
 * or is to go, which is no error; else it returns what lem_start() does.
 * lem_mode_update() puts the knobs in force, ENOTSUP where the adapter cannot.
 */
int	lem_up(struct lem_softc *sc);
void	lem_down(struct lem_softc *sc);
int	lem_mode_update(struct lem_softc *sc);

/* if_lem_sysctl.c: for attach. */
void	lem_sysctls(struct lem_softc *sc);

/*
 * if_lem_txrx.c
 *
 * lem_rxeof() takes up to `budget' frames, hands them to the stack, and returns
 * how many; it takes rx.mtx, and nothing is held while the stack runs.  It does
 * nothing where netmap has the side.
 * lem_txeof() takes completions and sends what waits in the buf_ring; it takes
 * tx.mtx.  lem_transmit() and lem_qflush() are the interface's methods.
 * lem_side_alloc() and lem_side_free() are for attach and detach, the latter
 * also after a failed former, or none; packets of a side have up to `size'
 * bytes in `nsegs' pieces.  lem_rx_purge() drops the buffers of a stopped
 * adapter, rx.mtx held.
 */
int	lem_side_alloc(struct lem_softc *sc, struct lem_side *side,
	    bus_size_t size, int nsegs);
void	lem_side_free(struct lem_side *side);
u_int	lem_rxeof(struct lem_softc *sc, u_int budget);
void	lem_rx_purge(struct lem_softc *sc);
void	lem_txeof(struct lem_softc *sc);
int	lem_transmit(if_t ifp, struct mbuf *m);
void	lem_qflush(if_t ifp);

/*
 * if_lem_netmap.c
 *
 * lem_netmap_start() is called with all locks held before lem_start(), and
 * decides for both sides whether netmap has them; lem_netmap_irq() is for an
 * interrupt, no lock held, and wakes the users of those it has.
 * lem_netmap_detach() is EBUSY while there are users.  The last two stand in
 * for the hooks of lem_os.h.
 */
int	lem_netmap_attach(struct lem_softc *sc);
int	lem_netmap_detach(struct lem_softc *sc);
void	lem_netmap_start(struct lem_softc *sc);
void	lem_netmap_irq(struct lem_softc *sc);
uint64_t lem_netmap_rx_buf(struct lem_softc *sc, uint32_t slot);
void	lem_netmap_rx(struct lem_softc *sc, uint32_t slot, uint32_t len,
	    uint32_t flags);

#endif /* !_DEV_E1000_IF_LEM_H_ */
