/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Stand-in for dev/netmap/netmap_bdg.h, which is not installed: what a module
 * that takes over a VALE switch sees of it.
 */

#ifndef _NET_NETMAP_BDG_H_
#define	_NET_NETMAP_BDG_H_

#define	NM_BDG_MAXPORTS		254
#define	NM_BDG_BROADCAST	NM_BDG_MAXPORTS
#define	NM_BDG_NOPORT		(NM_BDG_MAXPORTS + 1)

#define	NM_BDG_ACTIVE		1
#define	NM_BDG_EXCLUSIVE	2

struct netmap_bdg_ops {
	uint32_t (*lookup)(struct nm_bdg_fwd *, uint8_t *,
	    struct netmap_vp_adapter *, void *);
	void	(*dtor)(const struct netmap_vp_adapter *);
};

struct nm_bridge {
	struct rwlock		 bdg_lock;
	uint32_t		 bdg_active_ports;
	uint32_t		 bdg_port_index[NM_BDG_MAXPORTS];
	struct netmap_vp_adapter *bdg_ports[NM_BDG_MAXPORTS];
	struct netmap_bdg_ops	 bdg_ops;
	struct netmap_bdg_ops	 bdg_saved_ops;
	void			*private_data;
	uint8_t			 bdg_flags;
};

#define	BDG_RLOCK(b)		rw_rlock(&(b)->bdg_lock)
#define	BDG_RUNLOCK(b)		rw_runlock(&(b)->bdg_lock)
#define	BDG_WLOCK(b)		rw_wlock(&(b)->bdg_lock)
#define	BDG_WUNLOCK(b)		rw_wunlock(&(b)->bdg_lock)

int	 netmap_bdg_regops(const char *, struct netmap_bdg_ops *, void *,
	    void *);
int	 netmap_bdg_update_private_data(const char *,
	    void *(*)(void *, void *, int *), void *, void *);
struct nm_bridge *nm_find_bridge(const char *, int, struct netmap_bdg_ops *);
int	 netmap_bdg_free(struct nm_bridge *);

#endif
