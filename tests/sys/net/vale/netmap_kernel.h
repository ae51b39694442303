/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What files of vale_learn(4) see of the kernel and of netmap, outside of a
 * kernel, in place of <dev/netmap/vale_learn_os.h>.  A test includes this file
 * first, and then those files.  There is one thread: locks are flags.
 */

#ifndef _NETMAP_KERNEL_H_
#define	_NETMAP_KERNEL_H_
#define	_DEV_NETMAP_VALE_LEARN_OS_H_

#include <sys/param.h>
#include <sys/queue.h>
#include <sys/systm.h>

#include <stdlib.h>

#include "libvale.h"

#ifndef howmany
#define	howmany(x, y)	(((x) + ((y) - 1)) / (y))
#endif

/* The kernel. */
#define	M_NOWAIT	1
#define	M_VALE_LEARN	0
#define	MALLOC_DECLARE(type)	struct kernel_unused
#define	malloc(size, type, how)	((void)(how), (malloc)(size))
#define	bitcount64(n)	((uint32_t)__builtin_popcountll(n))
#define	RA_LOCKED	0
#define	rw_assert(lock, what)	((void)(lock))
#undef mtx_assert
#define	mtx_assert(lock, what)	MPASS((lock)->held)
#define	mtx_lock(lock)	((lock)->held = true)
#define	mtx_unlock(lock) ((lock)->held = false)

struct mtx {
	bool	held;
};
struct rwlock {
	int	unused;
};
struct sysctl_ctx_list {
	int	unused;
};
typedef uint64_t *counter_u64_t;
extern time_t time_uptime;

/* Memory at this address cannot be read. */
extern const char no_memory[];
int	copyin(const void *from, void *to, size_t len);

/* netmap: netmap_kern.h and netmap_bdg.h. */
#define	NAF_SW_ONLY		2
#define	NAF_FORCE_RECLAIM	2
#define	NKR_NETMAP_ON		1
#define	NR_NOSLOT		((uint32_t)-1)
#define	WORST_CASE_GSO_HEADER	(14 + 40 + 60)
#define	NETMAP_BUF_SIZE(na)	((na)->lut_objsize)

struct netmap_adapter;

struct netmap_kring {
	struct netmap_ring	*ring;
	uint32_t		 nr_hwcur, nr_hwtail;
	uint32_t		 nkr_num_slots;
	struct netmap_adapter	*na;
	uint32_t		 nr_mode;
	struct mtx		 q_lock;
	uint32_t		*nkr_leases;
	uint32_t		 nkr_hwlease, nkr_lease_idx;
	int			 nkr_stopped;
	int	(*nm_notify)(struct netmap_kring *, int);
};

struct netmap_adapter {
	uint32_t		 na_flags;
	unsigned int		 lut_objsize;
	struct netmap_kring	**rx_rings;
	char			 name[64];
	unsigned int		 virt_hdr_len;
	char			*buffers;	/* the test's */
};

struct netmap_vp_adapter {
	struct netmap_adapter	 up;
	int			 bdg_port;
	struct nm_bridge	*na_bdg;
	int			 retry;
	unsigned int		 mfs;
};

struct nm_bdg_fwd {
	void			*ft_buf;
	uint8_t			 ft_frags;
	uint16_t		 ft_offset, ft_flags, ft_len, ft_next;
};

struct nm_bridge {
	struct rwlock		 bdg_lock;
	uint32_t		 bdg_active_ports;
	uint32_t		 bdg_port_index[254];
	struct netmap_vp_adapter *bdg_ports[254];
};

static inline uint32_t
nm_next(uint32_t i, uint32_t last)
{
	return (i == last ? 0 : i + 1);
}

static inline bool
nm_netmap_on(const struct netmap_adapter *na)
{
	return (na->rx_rings != NULL);
}

static inline void *
NMB(struct netmap_adapter *na, const struct netmap_slot *slot)
{
	return (na->buffers + (size_t)slot->buf_idx * na->lut_objsize);
}

static inline uint64_t
nm_get_offset(const struct netmap_kring *kring, const struct netmap_slot *slot)
{
	(void)kring;
	return (slot->ptr);
}

/* For headers of different lengths: without checksums and segments. */
void	bdg_mismatch_datapath(struct netmap_vp_adapter *src,
	    struct netmap_vp_adapter *dst, const struct nm_bdg_fwd *ft,
	    struct netmap_ring *ring, unsigned int *j, unsigned int last,
	    unsigned int *left);

#endif /* !_NETMAP_KERNEL_H_ */
