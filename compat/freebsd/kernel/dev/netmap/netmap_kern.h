/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * Stand-in for dev/netmap/netmap_kern.h, which is not installed: what a driver
 * in native mode sees of it.
 */

#ifndef _DEV_NETMAP_NETMAP_KERN_H_
#define	_DEV_NETMAP_NETMAP_KERN_H_

#define	NAF_BDG_MAYSLEEP	32
#define	NAF_MOREFRAG		512
#define	NKR_PENDINTR		0x1
#define	NM_IRQ_PASS		0

enum txrx { NR_RX = 0, NR_TX = 1 };

struct netmap_adapter;

struct netmap_kring {
	struct netmap_ring	*ring;
	uint32_t		 nr_hwcur, nr_hwtail;
	uint32_t		 rhead, rcur, rtail;
	uint32_t		 nr_kflags;
	uint32_t		 nkr_num_slots;
	int32_t			 nkr_hwofs;
	struct netmap_adapter	*na;
};

struct netmap_adapter {
	uint32_t		 na_flags;
	u_int			 num_rx_rings, num_tx_rings;
	u_int			 num_tx_desc, num_rx_desc;
	struct netmap_kring	**tx_rings, **rx_rings;
	if_t			 ifp;
	int	(*nm_register)(struct netmap_adapter *, int);
	int	(*nm_txsync)(struct netmap_kring *, int);
	int	(*nm_rxsync)(struct netmap_kring *, int);
	unsigned		 rx_buf_maxsize;
	void			*lut_base;
	u_int			 lut_objsize;
};

#define	NA(ifp)			if_getnetmapadapter(ifp)
#define	NETMAP_BUF_BASE(na)	((na)->lut_base)
#define	NETMAP_BUF_SIZE(na)	((na)->lut_objsize)

int	 netmap_attach(struct netmap_adapter *);
void	 netmap_detach(if_t);
int	 netmap_ring_reinit(struct netmap_kring *);
int	 netmap_rx_irq(if_t, u_int, u_int *);
#define	netmap_tx_irq(ifp, ring)	netmap_rx_irq(ifp, ring, NULL)
struct netmap_slot *netmap_reset(struct netmap_adapter *, enum txrx, u_int,
	    u_int);
void	 nm_set_native_flags(struct netmap_adapter *);
void	 nm_clear_native_flags(struct netmap_adapter *);
int	 nm_netmap_on(struct netmap_adapter *);
int	 netmap_idx_n2k(struct netmap_kring *, int);
void	*PNMB(struct netmap_adapter *, struct netmap_slot *, uint64_t *);
uint32_t nm_next(uint32_t, uint32_t);
uint32_t nm_prev(uint32_t, uint32_t);

#endif
