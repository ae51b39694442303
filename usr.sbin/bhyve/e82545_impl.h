/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Private state of the 82545EM model: the adapter, its locks, registers and
 * counters.  Only the files below include this, and tests.  Each of those that
 * others call has a header of its own.
 *
 *	e82545.c		life cycle
 *	e82545_em.c		what an 82545EM is made of: tables
 *	e82574.c		what an 82574L is made of
 *	e82574_eeprom.c		its EEPROM's bus
 *	e82574_intr.c		its interrupts
 *	e82574_rx.c		its receive descriptors
 *	e82574_rss.c		which of its queues a frame is for
 *	e82545_reg.c		register file
 *	e82545_stat.c		statistics registers
 *	e82545_eeprom.c		EEPROM, and the 82545EM's bus
 *	e82545_phy.c		PHY
 *	e82545_intr.c		ICR, IMS and the moderation engine
 *	e82545_tx.c		transmit ring: batches
 *	e82545_tx_collect.c	the descriptors of a packet
 *	e82545_tx_send.c	a packet as one frame
 *	e82545_tx_tso.c		a packet as segments, or uncut
 *	e82545_rx.c		receive ring: batches
 *	e82545_rx_frame.c	whether the guest gets a frame, and in what
 *	e82545_rx_copy.c	a frame into the guest's buffers
 *	e82545_rx_stall.c	too few descriptors
 *	e82545_loop.c		loopback: frames from one ring to the other
 *	e82545_filter.c		address and VLAN filters
 *	e82545_csb*.c		the communication status block
 *	e82545_snap.c		snapshots
 *	e82545_salvage.c	what a crash leaves
 *	e82545_offload.c	checksum, TSO and VLAN arithmetic on bytes
 *	e82545_crc.c		CRC-32
 *	e82545_probes.c		the names of what probes report
 *
 * Locks.  Three mutexes, taken in this order:
 *
 *	tx_mtx	the transmit rings and struct e82545_txq; held for a batch,
 *		which may deliver frames to other adapters: e82545_rx_direct()
 *	rx_mtx	the receive rings and struct e82545_rxq; held for a batch
 *	reg_mtx	everything else: the register file, the interrupt state
 *
 * A register access takes reg_mtx only.  A batch reads the registers it depends
 * on at its start, without reg_mtx (e82545_reg(), a relaxed load; TDT and RDT
 * with acquire), and takes it once at its end to store heads, statistics and
 * interrupt causes.  A reset takes all three, so no batch is in progress.
 * e82545_pause() takes the rings' two.  A write to a register that places a
 * ring or turns it on or off (base, length, head; TCTL, RCTL) takes the ring's
 * before reg_mtx, and one that places the CSB both rings': when it returns, no
 * batch uses the old value.
 *
 * The model calls only eo_intr, eo_timer and eo_now under reg_mtx, and eo_map
 * for a descriptor that the CSB announces.  The order holds across adapters: a
 * thread that holds an rx_mtx never waits for a tx_mtx, not even another
 * adapter's.  No thread waits for another adapter's ring: e82545_rx_direct()
 * takes rx_mtx if it is free.
 *
 * A worker releases its ring's mutex only for an instant between two batches,
 * and would get a plain mutex again and again.  So the rings have struct
 * e82545_lock, which is fair.
 */

#ifndef _E82545_IMPL_H_
#define	_E82545_IMPL_H_

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/systm.h>
#include <dev/e1000/e82545_reg.h>

#include <pthread.h>

#include "e82545.h"
#include "e82545_csb.h"
#include "e82545_intr.h"
#include "e82545_lock.h"
#include "e82574.h"
#include "frame_port.h"

/*
 * The register file covers offsets 0 to 0xbfff: 8254x SDM table 13-2, and the
 * time of the 82574L.
 */
#define	E82545_NREGS	(0xc000 / 4)

#define	E82545_MAGIC	0x3832353435454d01	/* "82545EM" */

struct e82545_txq;			/* e82545_tx_impl.h */
struct e82545_rxq;			/* e82545_rx_impl.h */
struct e82545_eeprom;			/* e82545_eeprom.c */
struct e82545_phy;			/* e82545_phy.c */
struct e82545_type;			/* e82545_type.h */

/* The most queues that an adapter has in each direction: et_queues. */
#define	E82545_QUEUES		2

/* What the port's first frame waits for: e82545_rx_stall.c. */
struct e82545_rx_wait {
	bool		stalled;
	uint32_t	need;		/* descriptors the frame would take */
	uint32_t	rctl;		/* with this RCTL, */
	uint32_t	regs;		/* in the queue with E82574_QUEUE() */
};

/*
 * The adapter, in one piece of memory with the four parts that it points to,
 * but not `loop', zeros at first: e82545_memory_size().  e82545_salvage() makes
 * a snapshot of that, so what a snapshot has must be there.
 */
struct e82545 {
	uint64_t		 magic;		/* E82545_MAGIC: it is set up */
	bool			 allocated;	/* the memory, by the model */
	const struct e82545_type *type;
	const struct e82545_ops	*ops;
	void			*arg;
	struct frame_port	*port;
	struct e82545_config	 config;
	char			 name[32];

	struct e82545_lock	 tx_mtx;
	struct e82545_txq	*txq;		/* E82545_QUEUES of them */
	unsigned int		 tx_turn;	/* modulo that: the next */
	struct e82545_lock	 rx_mtx;
	struct e82545_rxq	*rxq;		/* as many */
	uint32_t		 rx_cut_off;	/* bytes of payload that the
						   guest has of the port's
						   first frame */
	struct e82545_loop	*loop;

	pthread_mutex_t		 reg_mtx;
	uint32_t		 regs[E82545_NREGS];
	uint32_t		 io_addr;	/* IOADDR, in the I/O BAR */
	struct e82545_eeprom	*eeprom;
	struct e82545_phy	*phy;
	struct e82545_csb	 csb;
	struct e82545_moderation moder;
	struct e82574		 x;		/* of an 82574L */
	uint64_t		 armed_ns;	/* the host's timer; 0: not */
	uint64_t		 stat_latch[4];	/* byte counts, low half read */
	bool			 stat_latched[4];
	uint64_t		 stat_missed;	/* frame_port_missed() in MPC */
	struct e82545_rx_wait	 rx_wait;
	bool			 wake_tx;	/* eo_tx_kick, unlocked */
	bool			 wake_rx;	/* eo_rx_ready, unlocked */
	uint32_t		 intr_off;	/* eo_withdraw, unlocked */
	bool			 link_up;	/* cable, not register */
	bool			 phy_loopback;	/* the PHY's; atomic */
	/* Written with all locks held. */
	bool			 paused;
	bool			 bus_master;	/* on */

	uint64_t		 counters[E82545_NCOUNTERS]; /* atomic */
};

/* Return whether the guest has placed a CSB.  Any of the three locks held. */
static inline bool
e82545_csb_placed(const struct e82545 *dev)
{
	return (dev->csb.gpa != 0);
}

/* Assert that the caller holds all of the locks. */
static inline void
e82545_assert_all(const struct e82545 *dev)
{
	mtx_assert(&dev->tx_mtx.mtx, MA_OWNED);
	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	(void)dev;
}

/*
 * Return whether the model may access guest memory.  A batch asks once, at its
 * start: a change waits for its end.  tx_mtx or rx_mtx held.
 */
static inline bool
e82545_dma(const struct e82545 *dev)
{
	return (dev->bus_master && !dev->paused);
}

/* Call eo_map(); every access to guest memory begins here. */
static inline void *
e82545_map_for(const struct e82545 *dev, uint64_t gpa, size_t len,
    unsigned int access)
{
	MPASS(e82545_dma(dev));
	return (dev->ops->eo_map(dev->arg, gpa, len, access));
}

/* Map memory that is both read and written: rings and the CSB. */
static inline void *
e82545_map(const struct e82545 *dev, uint64_t gpa, size_t len)
{
	return (e82545_map_for(dev, gpa, len, E82545_MAP_RW));
}

/*
 * Behind an IOMMU the pages of a buffer may be anywhere in the host.  Bytes of
 * the first piece of a buffer, which is contiguous.
 */
#define	E82545_PIECE	4096

static inline size_t
e82545_piece(uint64_t gpa, size_t len)
{
	return (MIN(len, E82545_PIECE - gpa % E82545_PIECE));
}

/*
 * Access registers by offset in bytes.  Any thread; writers hold reg_mtx.  TDT
 * and RDT publish descriptors: _acquire pairs with the release in
 * e82545_reg_set().
 */
static inline uint32_t
e82545_reg(const struct e82545 *dev, uint32_t off)
{
	return (atomic_load_32(&dev->regs[off / 4]));
}

static inline uint32_t
e82545_reg_acquire(const struct e82545 *dev, uint32_t off)
{
	return (atomic_load_acq_32(&dev->regs[off / 4]));
}

static inline void
e82545_reg_set(struct e82545 *dev, uint32_t off, uint32_t value)
{
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	MPASS(off % 4 == 0 && off / 4 < E82545_NREGS);
	atomic_store_rel_32(&dev->regs[off / 4], value);
}

/*
 * Add to a counter, once a batch, not once a frame.  The caller must hold the
 * counter's lock: tx_mtx for TX_*, rx_mtx for RX_*, reg_mtx for TX_KICK,
 * RX_KICK and INTR_*.
 */
static inline void
e82545_count(struct e82545 *dev, enum e82545_counter counter, uint64_t n)
{
	uint64_t *c = &dev->counters[counter];

	if (counter == E82545_C_TX_KICK || counter == E82545_C_RX_KICK ||
	    (counter >= E82545_C_INTR_ASKED && counter <= E82545_C_INTR_SAVED))
		mtx_assert(&dev->reg_mtx, MA_OWNED);
	else if (counter > E82545_C_RX_KICK && counter < E82545_C_LOOPBACK)
		mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	else
		mtx_assert(&dev->tx_mtx.mtx, MA_OWNED);
	atomic_store_64(c, atomic_load_64(c) + n);
}

/* Add the counts of a batch, which has only those from `c' to `last'. */
static inline void
e82545_count_batch(struct e82545 *dev, const uint64_t counts[E82545_NCOUNTERS],
    enum e82545_counter c, enum e82545_counter last)
{
	for (; c <= last; c++)
		if (counts[c] != 0)
			e82545_count(dev, c, counts[c]);
}

/* Add one to any other counter.  Any thread. */
static inline void
e82545_count_any(struct e82545 *dev, enum e82545_counter counter)
{
	atomic_add_64(&dev->counters[counter], 1);
}

/*
 * Order stores: a process may end at any instruction, and what it has stored
 * until then is found in ec_memory, so the compiler must not move stores past
 * this.
 */
static inline void
e82545_stored(void)
{
	__asm __volatile("" : : : "memory");
}

/* Of descriptors to be written back only the first one is left. */
#define	E82545_FIRST	0x80000000

/* Rings, whose mutexes one takes before reg_mtx. */
enum e82545_rings {
	RING_NONE = 0,
	RING_TX = 1,
	RING_RX = 2,
	RING_BOTH = RING_TX | RING_RX
};

static inline void
e82545_lock_rings(struct e82545 *dev, enum e82545_rings rings)
{
	if ((rings & RING_TX) != 0)
		e82545_lock(&dev->tx_mtx);
	if ((rings & RING_RX) != 0)
		e82545_lock(&dev->rx_mtx);
}

static inline void
e82545_unlock_rings(struct e82545 *dev, enum e82545_rings rings)
{
	if ((rings & RING_RX) != 0)
		e82545_unlock(&dev->rx_mtx);
	if ((rings & RING_TX) != 0)
		e82545_unlock(&dev->tx_mtx);
}

/*
 * e82545.c
 */
/* Set `dev' to the parts of the adapter that `memory' belongs to. */
void	e82545_memory_parts(struct e82545 *dev, void *memory);
/* Take, or release, all of the locks. */
void	e82545_lock_all(struct e82545 *dev);
void	e82545_unlock_all(struct e82545 *dev);
/* Reset by the guest, CTRL.RST: it keeps the CSB.  No lock held. */
void	e82545_reset_guest(struct e82545 *dev);

/*
 * e82545_reg.c
 */
/* Number the lines of the table, once.  Any thread. */
void	e82545_reg_init(void);
/*
 * Set all registers to what they are after a reset, and the station address
 * from the EEPROM.  All locks held.
 */
void	e82545_reg_reset(struct e82545 *dev);

/*
 * e82545_tx_collect.c
 */
/* Return the bytes of the queues. */
size_t	e82545_txq_size(void);
/* Reset the queues.  tx_mtx and reg_mtx held. */
void	e82545_txq_reset(struct e82545 *dev);
/*
 * Note that a queue's TDH is going to be changed, but not by a batch.  tx_mtx
 * held.
 */
void	e82545_txq_moved(struct e82545 *dev, unsigned int queue);

/*
 * e82545_rx_stall.c
 */
/* Return the bytes of the queues. */
size_t	e82545_rxq_size(void);
/*
 * Note that a queue's RDH is going to be changed, but not by a batch.  rx_mtx
 * held.
 */
void	e82545_rxq_moved(struct e82545 *dev, unsigned int queue);
/* Note that the port is another one: no frame is cut off.  rx_mtx held. */
void	e82545_rxq_port(struct e82545 *dev);
/*
 * Note that RDT, RCTL or the loopback queue changed.  Returns whether the
 * receive path has something to do; the caller must then call eo_rx_ready()
 * after it has dropped its locks.  A stall outlasts a reset: frames are still
 * pending.  reg_mtx held.
 */
bool	e82545_rx_unstall(struct e82545 *dev);
/*
 * Note that RDT was written and is set aside, so that how many descriptors are
 * posted is not known yet; or the frame may be another queue's.  Returns as
 * e82545_rx_unstall().  reg_mtx held.
 */
bool	e82545_rx_kicked(struct e82545 *dev);

#endif /* !_E82545_IMPL_H_ */
