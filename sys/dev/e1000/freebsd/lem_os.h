/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * What lem_core.h asks of its host, for FreeBSD's kernel: registers through
 * bus_space, rings through busdma.  The hooks that move packets are in
 * if_lem_txrx.c.
 */

#ifndef _DEV_E1000_FREEBSD_LEM_OS_H_
#define	_DEV_E1000_FREEBSD_LEM_OS_H_

#include <sys/param.h>
#include <sys/systm.h>
#include <sys/bus.h>

#include <machine/bus.h>
#include <machine/resource.h>
#include <sys/rman.h>

/* Memory that the adapter reads and writes. */
struct lem_dma {
	bus_dma_tag_t	 tag;
	bus_dmamap_t	 map;
	void		*mem;
	bus_addr_t	 addr;
};

struct lem_os {
	struct resource	*mem;		/* registers */
	struct lem_dma	 txd, rxd, csb;
};

static inline uint32_t
lem_os_read(struct lem_core *lc, uint32_t reg)
{
	return (bus_read_4(LEM_OS(lc)->mem, reg));
}

static inline void
lem_os_write(struct lem_core *lc, uint32_t reg, uint32_t value)
{
	wmb();
	bus_write_4(LEM_OS(lc)->mem, reg, value);
}

static inline void
lem_os_delay(struct lem_core *lc __unused, unsigned int us)
{
	DELAY(us);
}

static inline void
lem_os_mb(void)
{
	atomic_thread_fence_seq_cst();
}

static inline void
lem_os_rmb(void)
{
	atomic_thread_fence_acq();
}

static inline void
lem_os_wmb(void)
{
	atomic_thread_fence_rel();
}

static inline void
lem_os_ring_sync(struct lem_dma *ring, bool before)
{
	bus_dmamap_sync(ring->tag, ring->map, before ?
	    BUS_DMASYNC_PREREAD | BUS_DMASYNC_PREWRITE :
	    BUS_DMASYNC_POSTREAD | BUS_DMASYNC_POSTWRITE);
}

static inline void
lem_os_txring_sync(struct lem_core *lc, bool before)
{
	lem_os_ring_sync(&LEM_OS(lc)->txd, before);
}

static inline void
lem_os_rxring_sync(struct lem_core *lc, bool before)
{
	lem_os_ring_sync(&LEM_OS(lc)->rxd, before);
}

void	 lem_os_tx_done(struct lem_core *lc, uint32_t slot);
uint64_t lem_os_rx_buf(struct lem_core *lc, uint32_t slot);
bool	 lem_os_rx(struct lem_core *lc, uint32_t slot,
	    const struct lem_rx *rx);
void	 lem_os_rx_drop(struct lem_core *lc);

#endif /* !_DEV_E1000_FREEBSD_LEM_OS_H_ */
