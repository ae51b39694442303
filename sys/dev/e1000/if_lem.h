/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * State of an adapter, shared by if_lem.c (newbus, interface), if_lem_work.c
 * (interrupts, polling), if_lem_sysctl.c, if_lem_txrx.c (mbufs) and
 * if_lem_netmap.c.
 *
 * Three locks, taken in this order:
 *
 *   ctl	an sx(9) lock: held to start, stop or reconfigure the adapter
 *   rx.mtx	the receive side of lem_core
 *   tx.mtx	the transmit side of lem_core
 *
 * A call of lem_core's that requires both locks is made under all three.
 */

#ifndef _DEV_E1000_IF_LEM_H_
#define	_DEV_E1000_IF_LEM_H_

/*
 * Declare polling(4).  Its functions are weak references, so a module offers it
 * in any kernel that has it, and loads in others.
 */
#undef DEVICE_POLLING
#define	DEVICE_POLLING	1

#include <dev/e1000/lem_core.h>

#include <sys/callout.h>
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

#include <netinet/in.h>
#include <netinet/tcp_lro.h>

#define	LEM_NDESC	1024	/* descriptors in a ring */
#define	LEM_BR_SLOTS	4096	/* packets that wait for descriptors */
#define	LEM_TSO_MAX	65535	/* bytes with all headers */
#define	LEM_POLL_MAX	100000	/* polls a second */

/* The tunables of dev.em.N; their ranges are in if_lem_sysctl.c. */
struct lem_knobs {
	u_int		 itr;		/* minimum between interrupts, 256 ns */
	u_int		 rx_budget;	/* frames a turn */
	u_int		 rx_share;	/* percent: lem_rx_turn() */
	u_int		 sc;		/* LEM_MODE_SC */
	u_int		 csb;		/* LEM_MODE_CSB */
	u_int		 csb_rounds;	/* lem_set_rounds() */
	u_int		 tx_lazy;	/* LEM_MODE_LAZY */
	u_int		 poll;		/* LEM_MODE_POLL: polls a second; not
					   with polling(4) */
};

/* Memory that the adapter reads and writes, except packets. */
struct lem_shared {
	struct e82545_desc txd[LEM_NDESC];
	struct e82545_desc rxd[LEM_NDESC];
	uint8_t		 csb[NET_PARAVIRT_CSB_SIZE];
	struct lem_vnet	 vnet[LEM_NDESC];
};
_Static_assert(offsetof(struct lem_shared, csb) % NET_PARAVIRT_CSB_SIZE == 0,
    "the CSB is a page");

/* The mbuf of a slot; TX: of a packet's first slot. */
struct lem_buf {
	struct mbuf	*m;		/* loaded into `map', or NULL */
	bus_dmamap_t	 map;
};

/* Receive side, transmit side. */
struct lem_side {
	struct mtx	 mtx;
	bus_dma_tag_t	 tag;
	struct lem_buf	 buf[LEM_NDESC];
	bool		 netmap;	/* in netmap(4) mode */
};

struct lem_softc {
	struct lem_core	 core;
	device_t	 dev;
	if_t		 ifp;
	struct ifmedia	 media;
	uint8_t		 mac[ETHER_ADDR_LEN];
	struct sx	 ctl;
	bool		 suspended;	/* or not attached */
	struct lem_knobs knobs;		/* ctl */

	struct lem_shared *shared;
	bus_addr_t	 shared_dma;
	struct resource	*msix;		/* the table of MSI-X, if that is used */
	struct resource	*irq;
	void		*irq_cookie;
	struct taskqueue *tq;
	struct task	 intr_task;
	uint64_t	 intr_ns;	/* of its interrupt; atomic */
	struct callout	 resume;	/* ends lem_yield() */
	struct callout	 poll;		/* the next poll, by lc_poll_ns */
	struct timeout_task tick;

	struct lem_side	 rx;
	struct mbuf	*rx_frame;	/* buffers of an incomplete frame */
	struct mbufq	 rx_queue;	/* frames for the stack */
	struct lro_ctrl	 rx_lro;	/* the task's */
	bool		 rx_bad;	/* a netmap slot has no valid buffer */
	bool		 rx_forwards;	/* the stack forwards packets: restart
					   without lc_vnet */

	struct lem_side	 tx;
	struct lem_seg	 tx_seg[LEM_TX_MAXSEGS];
	struct buf_ring	*tx_br;
	uint64_t	 tx_cleans;	/* ctl: as of the last tick */
	u_int		 tx_stuck;	/* ctl: seconds without a completion */
	uint64_t	 watchdogs;
};

#define	LEM_SOFTC(lc)	__containerof(lc, struct lem_softc, core)

/*
 * if_lem.c.  The caller must hold ctl.
 *
 * lem_up() starts the adapter and returns lem_start()'s result.  It does
 * nothing and returns 0 if the adapter is running, suspended, or not IFF_UP.
 * lem_takes_offloads() says whether the stack can take frames with partial
 * checksums, of any length, as with LRO; it needs no lock.
 * lem_mode_update() applies the knobs; it returns ENOTSUP if the adapter does
 * not support one, and EBUSY for knobs.poll if polling(4) polls.
 */
int	lem_up(struct lem_softc *sc);
void	lem_down(struct lem_softc *sc);
bool	lem_takes_offloads(struct lem_softc *sc);
int	lem_mode_update(struct lem_softc *sc);

/*
 * if_lem_work.c
 *
 * lem_work_init() must come first, lem_work_free() last; lem_work_start()
 * creates the thread and returns 0 or an errno value.  lem_filter() is the
 * interrupt's filter.  lem_poll_register() lets polling(4) poll the adapter or
 * stops that; the caller must hold ctl.  It returns EOPNOTSUPP if the kernel
 * has no polling(4), as lem_poll_offered() tells; EBUSY if the driver polls.
 *
 * lem_link_update() tells the stack what lem_link() has read, unless the adapter
 * is suspended.  The caller must hold rx.mtx.
 */
void	lem_work_init(struct lem_softc *sc);
int	lem_work_start(struct lem_softc *sc);
void	lem_work_free(struct lem_softc *sc);
int	lem_filter(void *arg);
void	lem_link_update(struct lem_softc *sc);
bool	lem_poll_offered(void);
int	lem_poll_register(struct lem_softc *sc, bool on);

/* if_lem_sysctl.c: add the variables of an adapter. */
void	lem_sysctls(struct lem_softc *sc);

/*
 * if_lem_txrx.c
 *
 * lem_side_alloc() and lem_side_free() are for attach and detach.  The packets
 * of a side have up to `size' bytes in `nsegs' segments.  lem_side_free() may
 * also be called if lem_side_alloc() failed or was not called.
 *
 * lem_rxeof() receives up to `budget' frames, passes them to the stack, and
 * returns their number.  It locks rx.mtx, and unlocks it before it calls the
 * stack.  In netmap mode it does nothing.  With LRO, tcp_lro(4) joins segments;
 * only the task may ask for that (`lro').
 *
 * lem_txeof() reclaims completed packets and sends those in the buf_ring.  It
 * locks tx.mtx.  lem_transmit() and lem_qflush() are methods of the interface.
 *
 * lem_rx_purge() frees the buffers of a stopped adapter.  The caller must hold
 * rx.mtx.
 */
int	lem_side_alloc(struct lem_softc *sc, struct lem_side *side,
	    bus_size_t size, int nsegs);
void	lem_side_free(struct lem_side *side);
u_int	lem_rxeof(struct lem_softc *sc, u_int budget, bool lro);
void	lem_rx_purge(struct lem_softc *sc);
/* Whether the stack forwards packets, IPv4 or IPv6.  Any thread. */
bool	lem_forwards(struct lem_softc *sc);
void	lem_txeof(struct lem_softc *sc);
int	lem_transmit(if_t ifp, struct mbuf *m);
void	lem_qflush(if_t ifp);

/*
 * if_lem_netmap.c
 *
 * lem_netmap_start() must be called under all locks before lem_start(); it sets
 * both sides' netmap mode.  lem_netmap_irq() wakes the users of a netmap side,
 * or passes frames to the switch that has the adapter; it returns whether that
 * has left some, so that it must be called again.  The caller must hold no
 * lock.  lem_netmap_detach() returns EBUSY while there are users.
 * lem_netmap_rx_buf() and lem_netmap_rx() replace the hooks of lem_os.h; the
 * caller must hold rx.mtx.
 */
int	lem_netmap_attach(struct lem_softc *sc);
int	lem_netmap_detach(struct lem_softc *sc);
void	lem_netmap_start(struct lem_softc *sc);
bool	lem_netmap_irq(struct lem_softc *sc);
uint64_t lem_netmap_rx_buf(struct lem_softc *sc, uint32_t slot);
void	lem_netmap_rx(struct lem_softc *sc, uint32_t slot, uint32_t len,
	    uint32_t flags);

#endif /* !_DEV_E1000_IF_LEM_H_ */
