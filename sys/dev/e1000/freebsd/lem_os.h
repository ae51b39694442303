/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * lem_core.h's interface to its host, for FreeBSD's kernel: registers through
 * bus_space, rings through busdma.  The hooks that move packets are in
 * if_lem_txrx.c.
 */

#ifndef _DEV_E1000_FREEBSD_LEM_OS_H_
#define	_DEV_E1000_FREEBSD_LEM_OS_H_

#include <sys/param.h>
#include <sys/systm.h>
#include <sys/bus.h>
#include <sys/proc.h>
#include <sys/sched.h>
#include <sys/sdt.h>
#include <sys/stddef.h>

#include <machine/bus.h>
#include <machine/resource.h>
#include <sys/rman.h>

struct lem_os {
	const char	*name;		/* interface */
	struct resource	*regs;
	bus_dma_tag_t	 tag;		/* of rings and CSB */
	bus_dmamap_t	 map;
};

#define	lem_os_probe(lc, probe, value)					\
	SDT_PROBE2(lem, , , probe, LEM_OS(lc)->name, value)

SDT_PROVIDER_DECLARE(lem);
#define	LEM_PROBES(X)							\
	X(tx__kick) X(tx__kick__saved) X(rx__kick) X(rx__kick__saved)	\
	X(combine) X(flush) X(clean) X(interrupt) X(receive) X(poll)
#define	LEM_PROBE_DECLARE(name)	SDT_PROBE_DECLARE(lem, , , name);
LEM_PROBES(LEM_PROBE_DECLARE)

#define	lem_os_delay(lc, us)	DELAY(us)
#define	lem_os_idle(lc)		(!sched_runnable())
#define	lem_os_read(lc, reg)	bus_read_4(LEM_OS(lc)->regs, reg)

static inline void
lem_os_write(struct lem_core *lc, uint32_t reg, uint32_t value)
{
	wmb();
	bus_write_4(LEM_OS(lc)->regs, reg, value);
}

static inline void
lem_os_sync(struct lem_core *lc, bool before)
{
	bus_dmamap_sync(LEM_OS(lc)->tag, LEM_OS(lc)->map, before ?
	    BUS_DMASYNC_PREREAD | BUS_DMASYNC_PREWRITE :
	    BUS_DMASYNC_POSTREAD | BUS_DMASYNC_POSTWRITE);
}

#ifdef INVARIANTS
void	 lem_os_assert_tx(const struct lem_core *lc);
void	 lem_os_assert_rx(const struct lem_core *lc);
#else
#define	lem_os_assert_tx(lc)	((void)(lc))
#define	lem_os_assert_rx(lc)	((void)(lc))
#endif

void	 lem_os_tx_done(struct lem_core *lc, uint32_t slot);
uint64_t lem_os_rx_buf(struct lem_core *lc, uint32_t slot);
bool	 lem_os_rx(struct lem_core *lc, uint32_t slot, uint32_t len,
	    uint32_t flags, uint16_t vlan);

#endif /* !_DEV_E1000_FREEBSD_LEM_OS_H_ */
