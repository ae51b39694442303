/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Stand-in for dev/netmap/netmap_kern.h, which is not installed: the parts that
 * a module that manages a VALE switch uses.
 */

#ifndef _DEV_NETMAP_NETMAP_KERN_H_
#define	_DEV_NETMAP_NETMAP_KERN_H_

#define	NAF_SW_ONLY		2
#define	NAF_FORCE_RECLAIM	2
#define	NKR_NETMAP_ON		0x1
#define	NR_NOSLOT		((uint32_t)-1)
#define	WORST_CASE_GSO_HEADER	(14 + 40 + 60)

struct netmap_adapter;

struct netmap_kring {
	struct netmap_ring	*ring;
	uint32_t		 nr_hwcur, nr_hwtail;
	uint32_t		 rhead, rcur, rtail;
	uint32_t		 nr_kflags;
	uint32_t		 nkr_num_slots;
	int32_t			 nkr_hwofs;
	struct netmap_adapter	*na;
	uint32_t		 nr_mode;
	struct mtx		 q_lock;
	uint32_t		*nkr_leases;
	uint32_t		 nkr_hwlease, nkr_lease_idx;
	volatile int		 nkr_stopped;
	int	(*nm_notify)(struct netmap_kring *, int);
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
	char			 name[64];
	u_int			 virt_hdr_len;
	struct netmap_vp_adapter *na_hostvp;
};

struct netmap_vp_adapter {
	struct netmap_adapter	 up;
	int			 bdg_port;
	struct nm_bridge	*na_bdg;
	int			 retry;
	u_int			 mfs;
	uint64_t		 last_smac;
};

struct nm_bdg_fwd {
	void			*ft_buf;
	uint8_t			 ft_frags;
	uint16_t		 ft_offset, ft_flags, ft_len, ft_next;
};

extern struct sx		 netmap_global_lock;
#define	NMG_LOCK()		sx_xlock(&netmap_global_lock)
#define	NMG_UNLOCK()		sx_xunlock(&netmap_global_lock)
extern struct nm_bridge		*nm_bridges;

#define	NA(ifp)			if_getnetmapadapter(ifp)
#define	NETMAP_BUF_BASE(na)	((na)->lut_base)
#define	NETMAP_BUF_SIZE(na)	((na)->lut_objsize)

int	 nm_netmap_on(struct netmap_adapter *);
uint32_t nm_next(uint32_t, uint32_t);
void	*NMB(struct netmap_adapter *, struct netmap_slot *);
uint64_t nm_get_offset(struct netmap_kring *, struct netmap_slot *);
void	 bdg_mismatch_datapath(struct netmap_vp_adapter *,
	    struct netmap_vp_adapter *, const struct nm_bdg_fwd *,
	    struct netmap_ring *, u_int *, u_int, u_int *);
void	*netmap_vale_create(const char *, int *);

#endif
