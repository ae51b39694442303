/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Private state of the 82545EM model; only the files below include this.
 *
 *	e82545.c	 life cycle, register file
 *	e82545_stat.c	 statistics registers
 *	e82545_eeprom.c	 EEPROM
 *	e82545_phy.c	 PHY
 *	e82545_intr.c	 ICR, IMS and the moderation engine
 *	e82545_tx.c	 transmit ring: batches
 *	e82545_tx_collect.c  the descriptors of a packet
 *	e82545_tx_send.c     a packet as one frame
 *	e82545_tx_tso.c	     a packet as segments, or uncut
 *	e82545_rx.c	 receive ring: batches
 *	e82545_rx_frame.c    a frame: does the guest get it, in how many parts
 *	e82545_rx_copy.c     a frame into the guest's buffers
 *	e82545_rx_stall.c    too few descriptors
 *	e82545_loop.c	 loopback: frames from one to the other
 *	e82545_filter.c	 address and VLAN filters
 *	e82545_csb*.c	 the communication status block
 *	e82545_snap.c	 snapshots
 *	e82545_offload.c checksum, TSO and VLAN arithmetic on bytes: no state
 *	e82545_crc.c	 CRC-32
 *	e82545_probes.c	 the names of what probes report
 *
 * Locks.  Three mutexes, taken in this order:
 *
 *	tx_mtx	the transmit ring and struct e82545_txq; held for a batch, which
 *		may deliver frames to other adapters: e82545_rx_direct()
 *	rx_mtx	the receive ring and struct e82545_rxq; held for a batch
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
#include <string.h>

#include "e82545.h"
#include "frame_port.h"
#include "frame_sum.h"

/* The register file covers offsets 0 to 0x9fff: 8254x SDM table 13-2. */
#define	E82545_NREGS	(0xa000 / 4)

/* What moderation depends on: see e82545_intr.c.  Under reg_mtx. */
struct e82545_moderation {
	uint64_t	last_ns;	/* when the line was last asserted;
					   0: not since reset */
	uint64_t	rx_packet_ns;	/* when RDTR expires; 0: not running */
	uint64_t	rx_absolute_ns;	/* when RADV expires; 0: not running */
	uint64_t	tx_packet_ns;	/* when TIDV expires; 0: not running */
	uint64_t	tx_absolute_ns;	/* when TADV expires; 0: not running */
	bool		asserted;	/* the line */
	bool		held;		/* a cause waits for ITR */
};

/* An event, and the registers that decide about it. */
struct e82545_moder_event {
	uint64_t	now_ns;
	uint32_t	icr;		/* causes so far */
	uint32_t	ims;		/* causes that may interrupt */
	uint32_t	raise;		/* causes that go at once */
	bool		rx;		/* packets received: RXT0 by timer */
	bool		tx;		/* packets sent: TXDW by timer, */
	bool		tx_delayed;	/* if all of them have IDE */
	uint16_t	itr_256ns;	/* in force; 0: none */
	uint16_t	rdtr_1024ns, radv_1024ns;
	uint16_t	tidv_1024ns, tadv_1024ns;
};

/* The result. */
struct e82545_moder_verdict {
	struct e82545_moderation next;
	uint32_t	icr;		/* causes now */
	bool		fire;		/* assert the line */
	bool		drop;		/* deassert the line */
	bool		put_off;	/* ITR delays another cause */
	uint64_t	arm_ns;		/* call again after this; 0: no need */
};

/* Ethernet: IEEE 802.3, 802.1Q.  Bytes. */
#define	E82545_ETHERTYPE_IP4	0x0800
#define	E82545_ETHERTYPE_IP6	0x86dd
#define	E82545_VLAN_OFF		12	/* where a tag goes */

/* A checksum in a frame, offsets in bytes. */
struct e82545_sum_where {
	uint8_t		start;		/* first byte summed */
	uint8_t		field;		/* where the checksum goes */
	uint16_t	end;		/* last byte summed, 0: to the end */
};

/*
 * A transmit context, as the last context descriptor of its kind set it: one
 * for TSO, one for everything else.  Under tx_mtx.
 */
struct e82545_txctx {
	struct e82545_sum_where	ip, l4;
	uint32_t		paylen;	/* TSO payload, bytes */
	uint16_t		mss;	/* bytes */
	uint8_t			hdrlen;	/* TSO header, bytes */
	uint32_t		cmd;	/* E82545_TXD_TUCMD_* */
};

#define	E82545_NSIZES	6		/* that frames are counted by */

/* Frames of a batch, for the statistics registers. */
struct e82545_tally {
	uint32_t	frames, broadcast, multicast;
	uint64_t	bytes;		/* with FCS */
	uint32_t	size[E82545_NSIZES];	/* as PRC64 to PRC1522 */
};

/* Count `n' frames to `dst', `len' bytes with FCS each. */
static inline void
e82545_tally(struct e82545_tally *t, const uint8_t dst[6], size_t len,
    uint32_t n)
{
	static const uint8_t broadcast[6] =
	    { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	int i;

	t->frames += n;
	t->bytes += n * (uint64_t)len;
	if ((dst[0] & 1) != 0) {
		if (memcmp(dst, broadcast, sizeof(broadcast)) == 0)
			t->broadcast += n;
		else
			t->multicast += n;
	}
	i = len <= 64 ? 0 : 26 - __builtin_clz(len);
	t->size[i < E82545_NSIZES ? i : E82545_NSIZES - 1] += n;
}

/*
 * The guest's index of a ring, as it writes it to TDT or RDT.  reg_mtx;
 * csb_kept() reads it without.
 */
struct e82545_csb_tail {
	uint32_t	kept;		/* written and kept aside, or "none" */
	bool		starts;		/* not since TDH, RDH or a reset */
	uint32_t	first;		/* TDT: the only value written since,
					   else "none" */
};

/* The state of the CSB: see e82545_csb.c. */
struct e82545_csb {
	uint64_t	gpa;		/* of the block, 0: none; written with
					   all locks held */
	uint32_t	on;		/* the guest's mode when last seen;
					   atomic */
	uint32_t	kicked;		/* TDT was written; atomic */
	struct e82545_csb_tail tdt, rdt;
	/* reg_mtx. */
	bool		rx_unmasked;	/* IMS written, ICR not read since */
	uint32_t	held;		/* causes suppressed since ICR read */
	uint64_t	tx_look_ns, rx_look_ns;	/* when to look again, 0: not */
	uint32_t	rx_look_rdt;	/* guest_rdt then, until taken */
	/* tx_mtx. */
	struct paravirt_csb *tx;	/* in a batch: the block, if any, */
	bool		tx_on;		/* and whether the mode is on */
	bool		tx_awake;	/* the guest need not kick */
	bool		tx_used;	/* guest_tdt counts, since a kick with
					   the mode on */
	uint32_t	tx_rounds;	/* without anything to send */
	bool		tx_at_used;	/* guest_txkick_at was not 0 */
	/* rx_mtx. */
	struct paravirt_csb *rx;	/* as tx, tx_on */
	bool		rx_on;
	bool		rx_armed;	/* host_rxkick_at may be set */
	bool		rx_last_on;	/* the mode as seen by the last batch */
	uint32_t	rx_old;		/* guest_rdt when the ring was started,
					   until looked at, else "none" */
	bool		rx_unread;	/* it could not be read then */
	bool		rx_polled;	/* guest_rdt was taken since the look
					   was decided */
	uint64_t	vnet_gpa;	/* of the header ring, 0: none; written
					   with all locks held */
	uint32_t	vnet_size;	/* its entries */
	uint32_t	vnet_clean;	/* those before it, from RDH on, are
					   zeros; UINT32_MAX: none is */
};

/*
 * A fair mutex: waiters queue at `gate', so a thread that releases `mtx' cannot
 * retake it ahead of them.
 */
struct e82545_lock {
	pthread_mutex_t	gate, mtx;
};

static inline void
e82545_lock(struct e82545_lock *lock)
{
	pthread_mutex_lock(&lock->gate);
	pthread_mutex_lock(&lock->mtx);
	pthread_mutex_unlock(&lock->gate);
}

/* Returns false if a thread has the lock or waits for it. */
static inline bool
e82545_trylock(struct e82545_lock *lock)
{
	bool locked;

	if (pthread_mutex_trylock(&lock->gate) != 0)
		return (false);
	locked = pthread_mutex_trylock(&lock->mtx) == 0;
	pthread_mutex_unlock(&lock->gate);
	return (locked);
}

static inline void
e82545_unlock(struct e82545_lock *lock)
{
	pthread_mutex_unlock(&lock->mtx);
}

struct e82545_txq;			/* e82545_tx_impl.h */
struct e82545_rxq;			/* e82545_rx_impl.h */
struct e82545_eeprom;			/* e82545_eeprom.c */
struct e82545_phy;			/* e82545_phy.c */

struct e82545 {
	const struct e82545_ops	*ops;
	void			*arg;
	struct frame_port	*port;
	struct e82545_config	 config;
	char			 name[32];

	struct e82545_lock	 tx_mtx;
	struct e82545_txq	*txq;
	struct e82545_lock	 rx_mtx;
	struct e82545_rxq	*rxq;
	struct e82545_loop	*loop;

	pthread_mutex_t		 reg_mtx;
	uint32_t		 regs[E82545_NREGS];
	uint32_t		 io_addr;	/* IOADDR, in the I/O BAR */
	struct e82545_eeprom	*eeprom;
	struct e82545_phy	*phy;
	struct e82545_csb	 csb;
	struct e82545_moderation moder;
	uint64_t		 armed_ns;	/* the host's timer; 0: not */
	uint64_t		 stat_latch[4];	/* byte counts, low half read */
	bool			 stat_latched[4];
	uint64_t		 stat_missed;	/* frame_port_missed() in MPC */
	bool			 wake_tx;	/* eo_tx_kick, unlocked */
	bool			 wake_rx;	/* eo_rx_ready, unlocked */
	bool			 link_up;	/* cable, not register */
	bool			 phy_loopback;	/* the PHY's; atomic */
	/* Written with all locks held. */
	bool			 paused;
	bool			 bus_master;	/* on */

	uint64_t		 counters[E82545_NCOUNTERS]; /* atomic */
};

/* The caller holds all of the locks. */
static inline void
e82545_assert_all(const struct e82545 *dev)
{
	mtx_assert(&dev->tx_mtx.mtx, MA_OWNED);
	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	(void)dev;
}

/*
 * Whether the model may access guest memory.  A batch looks once, at its start:
 * a change waits for its end.  tx_mtx or rx_mtx held.
 */
static inline bool
e82545_dma(const struct e82545 *dev)
{
	return (dev->bus_master && !dev->paused);
}

/* eo_map(); every access to guest memory begins here. */
static inline void *
e82545_map_for(const struct e82545 *dev, uint64_t gpa, size_t len,
    unsigned int access)
{
	MPASS(e82545_dma(dev));
	return (dev->ops->eo_map(dev->arg, gpa, len, access));
}

/* For memory that is both read and written: rings and the CSB. */
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
 * Registers by offset in bytes.  Any thread; writers hold reg_mtx.  TDT and
 * RDT publish descriptors: _acquire pairs with the release in e82545_reg_set().
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

/* Add the counts of a batch. */
static inline void
e82545_count_all(struct e82545 *dev, const uint64_t counts[E82545_NCOUNTERS])
{
	enum e82545_counter c;

	for (c = 0; c < E82545_NCOUNTERS; c++)
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
 * e82545.c: all of the locks.
 */
void	e82545_lock_all(struct e82545 *dev);
void	e82545_unlock_all(struct e82545 *dev);

/*
 * e82545_stat.c: reg_mtx held throughout.
 */

/*
 * Add to a statistics register, which stays at all ones once it gets there; for
 * a 64-bit one, `off' is that of its low half.  8254x SDM section 13.7.
 */
void	e82545_stat(struct e82545 *dev, uint32_t off, uint64_t n);
void	e82545_stat64(struct e82545 *dev, uint32_t off, uint64_t n);

/*
 * Add to the six registers that count frames by size, of which `first' is the
 * first: PRC64 or PTC64.
 */
void	e82545_stat_sizes(struct e82545 *dev, uint32_t first,
	    const struct e82545_tally *t);

/* Device reset. */
void	e82545_stat_reset(struct e82545 *dev);
/* Reads, as the register table calls them. */
uint32_t e82545_stat_read(struct e82545 *dev, uint32_t off);
/* Add to MPC what the network has dropped; then read it. */
void	e82545_stat_missed(struct e82545 *dev);
uint32_t e82545_stat_missed_read(struct e82545 *dev, uint32_t off);
uint32_t e82545_stat_low_read(struct e82545 *dev, uint32_t off);
uint32_t e82545_stat_high_read(struct e82545 *dev, uint32_t off);

/*
 * e82545_eeprom.c: reg_mtx held throughout.
 */
struct e82545_eeprom *e82545_eeprom_create(const uint8_t mac[6],
	    uint16_t subdevice);
void	e82545_eeprom_destroy(struct e82545_eeprom *ee);
/* Device reset: aborts an instruction and disables writes, keeps contents. */
void	e82545_eeprom_reset(struct e82545 *dev);
/* EECD and EERD, as the register table calls them. */
uint32_t e82545_eecd_read(struct e82545 *dev, uint32_t off);
void	e82545_eecd_write(struct e82545 *dev, uint32_t off, uint32_t value);
void	e82545_eerd_write(struct e82545 *dev, uint32_t off, uint32_t value);
/* EEPROM word `word', 0 to 63.  A reset loads RAL0 and RAH0 from 0 to 2. */
uint16_t e82545_eeprom_word(const struct e82545 *dev, unsigned int word);

/*
 * e82545_phy.c: reg_mtx held throughout.
 */
struct e82545_phy *e82545_phy_create(void);
void	e82545_phy_destroy(struct e82545_phy *phy);
/* Device reset: every PHY register returns to its default. */
void	e82545_phy_reset(struct e82545 *dev);
/* MDIC, as the register table calls it. */
void	e82545_mdic_write(struct e82545 *dev, uint32_t off, uint32_t value);
/*
 * The cable (`up') or CTRL changed: update STATUS and the PHY registers, and
 * raise LSC if the link went up or down.  CTRL.PHY_RST holds the PHY in reset.
 */
void	e82545_phy_link(struct e82545 *dev, bool up);

/*
 * e82545_intr.c: reg_mtx held throughout.
 */
void	e82545_intr_reset(struct e82545 *dev);
/* The moderation engine: a pure function, see e82545_intr.c. */
struct e82545_moder_verdict e82545_moderate(
	    const struct e82545_moderation *state,
	    const struct e82545_moder_event *event);
/* Have the host's timer expire at when_ns, or before. */
void	e82545_intr_arm(struct e82545 *dev, uint64_t when_ns);
/* The host's timer expired. */
void	e82545_intr_timer(struct e82545 *dev);
/*
 * A snapshot was restored; before, the line was `asserted'.  Give the host the
 * line as it is now, and disarm the timer.
 */
void	e82545_intr_restored(struct e82545 *dev, bool asserted);
/* Raise causes at once (ICR bits), then update the line. */
void	e82545_intr_raise(struct e82545 *dev, uint32_t causes);
/*
 * A batch was written back (`done': some descriptors report status).  Raise
 * TXDW after TIDV/TADV if all of these have IDE set (`delayed'), else at once;
 * raise `causes' at once, too.
 */
void	e82545_intr_tx(struct e82545 *dev, bool done, bool delayed,
	    uint32_t causes);
/* A batch was received: raise RXT0 after RDTR/RADV, `causes' at once. */
void	e82545_intr_rx(struct e82545 *dev, bool done, uint32_t causes);
/* ICR, ICS, IMS, IMC, ITR, RDTR, ... as the register table calls them. */
uint32_t e82545_icr_read(struct e82545 *dev, uint32_t off);
void	e82545_icr_write(struct e82545 *dev, uint32_t off, uint32_t value);
void	e82545_ics_write(struct e82545 *dev, uint32_t off, uint32_t value);
void	e82545_ims_write(struct e82545 *dev, uint32_t off, uint32_t value);
void	e82545_imc_write(struct e82545 *dev, uint32_t off, uint32_t value);
void	e82545_itr_write(struct e82545 *dev, uint32_t off, uint32_t value);
void	e82545_rdtr_write(struct e82545 *dev, uint32_t off, uint32_t value);

/*
 * e82545_tx_collect.c
 */
struct e82545_txq *e82545_txq_create(void);
void	e82545_txq_destroy(struct e82545_txq *txq);
/* tx_mtx and reg_mtx held. */
void	e82545_txq_reset(struct e82545 *dev);

/*
 * e82545_rx_stall.c
 */
struct e82545_rxq *e82545_rxq_create(void);
void	e82545_rxq_destroy(struct e82545_rxq *rxq);
/*
 * RDT, RCTL or the loopback queue changed.  Returns whether the receive path
 * has something to do; the caller must then call eo_rx_ready() after it has
 * dropped its locks.  A stall outlasts a reset: frames are still pending.
 * reg_mtx held.
 */
bool	e82545_rx_unstall(struct e82545 *dev);
/*
 * RDT was written and is kept aside, so how many descriptors are posted is not
 * known yet.  Returns as e82545_rx_unstall().  reg_mtx held.
 */
bool	e82545_rx_kicked(struct e82545 *dev);

/*
 * e82545_loop.c
 */
struct e82545_loop *e82545_loop_create(void);
void	e82545_loop_destroy(struct e82545_loop *loop);
/* All locks held. */
void	e82545_loop_reset(struct e82545 *dev);
/* Whether loopback is on: RCTL.LBM or the PHY.  Any thread. */
bool	e82545_loopback(struct e82545 *dev);
/*
 * Queue a copy of a frame, sent with loopback on, for the receive path.
 * Returns false if the queue is full.  tx_mtx held, not rx_mtx.
 */
bool	e82545_loop_send(struct e82545 *dev, const struct frame *frame);
/* Whether frames are pending.  Any thread. */
bool	e82545_loop_pending(const struct e82545 *dev);
/* The queue as the receive path reads it.  rx_mtx held, also to use it. */
struct frame_source *e82545_loop_source(struct e82545 *dev);

/*
 * e82545_csb.c
 *
 * Only for an adapter whose guest has placed a block: e82545_csb_placed().
 * A batch then calls begin, which sets TDT or RDT to the index in the block;
 * notify, which publishes the head and interrupts the guest if it wants that;
 * and end.
 */

/* Whether there is a block.  Any of the three locks held. */
static inline bool
e82545_csb_placed(const struct e82545 *dev)
{
	return (dev->csb.gpa != 0);
}

/*
 * The guest writes TDT or RDT, at `off'.  Returns true if the CSB keeps the
 * index aside, false if it must go into the register.  reg_mtx held.
 */
bool	e82545_csb_keep(struct e82545 *dev, uint32_t off, uint32_t value);
/*
 * The guest writes TDH or RDH, at `off': its index in the CSB is old, and the
 * next write to TDT or RDT is stored as it stands.  The ring's lock held.
 */
void	e82545_csb_restart(struct e82545 *dev, uint32_t off);

/* tx_mtx held; only if e82545_dma(). */
void	e82545_csb_tx_begin(struct e82545 *dev);
/*
 * TDH moved over `ndescs' of a ring's `size' descriptors, from `start' on; then
 * as e82545_intr_tx().  csb.tx_on; tx_mtx and reg_mtx held.
 */
void	e82545_csb_tx_notify(struct e82545 *dev, uint32_t start,
	    uint32_t ndescs, uint32_t size, bool done, bool delayed,
	    uint32_t causes);
/*
 * What e82545_tx() returns: `idle' if it had nothing to do, `more' if frames
 * are still pending.  tx_mtx held.
 */
enum e82545_tx_state e82545_csb_tx_end(struct e82545 *dev, bool idle,
	    bool more);

/* rx_mtx held; only if e82545_dma(). */
void	e82545_csb_rx_begin(struct e82545 *dev);
/*
 * Look whether the guest has posted descriptors; sets RDT and returns true if
 * so.  csb.rx_on; rx_mtx held.
 */
bool	e82545_csb_rx_tail(struct e82545 *dev);
/*
 * The ring is empty: ask the guest to write RDT when at least `need'
 * descriptors are posted, and look again.  rx_mtx and reg_mtx held.
 */
void	e82545_csb_rx_wait(struct e82545 *dev, uint32_t need);
/*
 * Map the header ring, FRAME_VNET_SHORT bytes for each of `size' descriptors,
 * until the end of the batch.  vnet_gpa must be set.  NULL: the guest gets
 * complete frames, as it does with the mode off.  e82545_csb_vnet_clear()
 * clears the entries of `posted' descriptors from `head' on.  rx_mtx held.
 */
uint8_t	*e82545_csb_vnet(struct e82545 *dev, uint32_t size);
void	e82545_csb_vnet_clear(struct e82545 *dev, uint8_t *ring, uint32_t size,
	    uint32_t head, uint32_t posted);
/* RDH moved; then as e82545_intr_rx().  csb.rx_on; rx_mtx, reg_mtx held. */
void	e82545_csb_rx_notify(struct e82545 *dev, uint32_t causes);
/* rx_mtx held. */
void	e82545_csb_rx_end(struct e82545 *dev);
/*
 * The guest writes `causes' to IMS.  Returns suppressed causes to be raised.
 * reg_mtx held.
 */
uint32_t e82545_csb_unmask(struct e82545 *dev, uint32_t causes);
/* The guest reads causes from ICR.  reg_mtx held. */
void	e82545_csb_icr_read(struct e82545 *dev);

/*
 * The host's timer.  e82545_csb_arm() sets it if it is needed;
 * e82545_csb_look_due(), when it has expired, returns where to look again
 * (CSB_LOOK_*); 0: nowhere.  reg_mtx held.
 */
#define	CSB_LOOK_TX	1
#define	CSB_LOOK_RX	2
void	e82545_csb_arm(struct e82545 *dev);
uint32_t e82545_csb_look_due(struct e82545 *dev);
/*
 * Look again whether the guest waits.  Interrupts if it does; returns true if
 * the caller must call eo_tx_kick(), eo_rx_ready().  No locks held.
 */
bool	e82545_csb_look_tx(struct e82545 *dev);
bool	e82545_csb_look_rx(struct e82545 *dev);

/*
 * A reset by the guest: put the block into its idle state; the guest keeps it.
 * tx_mtx and rx_mtx held.
 */
void	e82545_csb_idle(struct e82545 *dev);
/*
 * A reset from outside: release the block without writing to it.  All locks
 * held.
 */
void	e82545_csb_release(struct e82545 *dev);
/* CSBAL and CSBAH, as the register table calls them. */
void	e82545_csbal_write(struct e82545 *dev, uint32_t off, uint32_t value);
void	e82545_csbah_write(struct e82545 *dev, uint32_t off, uint32_t value);
/* A reset sets CSBAL and CSBAH to the block's address.  reg_mtx held. */
void	e82545_csb_reset(struct e82545 *dev);

/*
 * e82545_filter.c
 */
enum e82545_filter_result {
	E82545_FILTER_DROP,
	E82545_FILTER_PASS,
	E82545_FILTER_INEXACT	/* by hash or in promiscuous mode: PIF */
};
/* The first bytes of a frame, up to its type behind a VLAN tag. */
#define	E82545_RX_HEAD	E82545_HDRLEN_MAX
/*
 * The guest's own address, which always passes, as the first 48 bits of a frame
 * read as little endian; UINT64_MAX if there is none.  Any thread.
 */
uint64_t e82545_filter_own(const struct e82545 *dev);
/*
 * Whether the guest wants a frame with these first bytes; `tagged' if it has a
 * VLAN tag.  Any thread.
 */
enum e82545_filter_result e82545_filter(const struct e82545 *dev,
	    uint32_t rctl, const uint8_t *head, bool tagged);

/*
 * e82545_crc.c
 */

/*
 * The CRC-32 of `len' bytes behind those whose CRC-32 is `crc'; 0 for the first
 * ones.  That of a frame with its FCS is E82545_CRC_WITH_FCS.  Any thread.
 */
uint32_t e82545_crc(const void *data, size_t len, uint32_t crc);
#define	E82545_CRC_WITH_FCS	0x2144df1c

/*
 * e82545_offload.c: pure functions on bytes.
 */

/*
 * The sum of bytes, added to `sum'; `odd' if an odd number of bytes precedes
 * them.  Not folded.
 */
uint64_t e82545_sum(const void *data, size_t len, uint64_t sum, bool odd);
/* The sum of bytes [off, off + len) of a frame, all of which must exist. */
uint64_t e82545_sum_iov(const struct iovec *iov, size_t off, size_t len,
	    bool odd);
/*
 * Insert a checksum into a frame of `len' bytes.  The former content of the
 * field is part of the sum; `nonzero' sends 0 as 0xffff, as UDP does. Returns
 * false, with the frame unchanged, if the bytes to sum are not in the frame or
 * the field is not in its first fragment.
 */
bool	e82545_sum_insert(const struct iovec *iov, size_t len,
	    const struct e82545_sum_where *where, bool nonzero);

/*
 * Whether the headers of a TSO context follow each other within its HDRLEN
 * bytes, and TCP's or UDP's checksum is in its place.
 */
bool	e82545_tso_valid(const struct e82545_txctx *ctx);
/* What is to be cut: FRAME_GSO_*. */
uint8_t	e82545_tso_type(const struct e82545_txctx *ctx);
/*
 * Complete the header of a packet with `paylen' bytes of payload: its lengths,
 * the checksum of IPv4, and the length in the sum of the pseudo-header, which
 * the guest leaves out.  8254x SDM section 3.5.
 */
void	e82545_tso_header(uint8_t *hdr, const struct e82545_txctx *ctx,
	    size_t paylen);
/* Insert a VLAN tag; the frame's first byte moves to hdr[-4]. */
void	e82545_vlan_insert(uint8_t *hdr, uint16_t type, uint16_t tag);

/*
 * Status byte, and above it the error byte, of the receive descriptor of a
 * frame of `len' bytes, the sum of which is `sum', with a header of `type',
 * E82545_ETHERTYPE_IP4 or IP6, at `off'; `rxcsum' is the register.
 */
uint16_t e82545_rx_ip(const struct iovec *iov, uint16_t type,
	    size_t off, size_t len, uint64_t sum, uint32_t rxcsum);
/*
 * The sum of a frame of `len' bytes from `from' on as the guest sees it:
 * without its tag if `strip' is set.
 */
uint64_t e82545_rx_seen(const struct iovec *iov, size_t len, size_t from,
	    bool strip);

/*
 * Verify a received frame of `len' bytes, the sum of which is `sum'.  `type' is
 * that of its Ethernet header, behind a VLAN tag if it has one (`tagged');
 * `strip' if the tag is removed for the guest.  Returns these bits of the upper
 * half of its descriptor, in host order: checksum, status (IXSM, or IPCS and
 * TCPCS), errors (IPE, TCPE).
 */
static inline uint64_t
e82545_rx_sum(const struct iovec *iov, size_t len, uint64_t sum, uint16_t type,
    uint32_t rxcsum, bool tagged, bool strip)
{
	uint64_t found;

	if ((type == E82545_ETHERTYPE_IP4 || type == E82545_ETHERTYPE_IP6) &&
	    (rxcsum & (E82545_RXCSUM_IPOFL | E82545_RXCSUM_TUOFL)) != 0)
		found = e82545_rx_ip(iov, type, E82545_ETH_HDRLEN + (tagged ?
		    E82545_VLAN_LEN : 0), len, sum, rxcsum);
	else
		found = E82545_RXD_IXSM;
	if (strip || (rxcsum & E82545_RXCSUM_PCSS) != 0)
		sum = e82545_rx_seen(iov, len, rxcsum & E82545_RXCSUM_PCSS,
		    strip);
	return ((uint64_t)be16toh(frame_sum_fold(sum)) << 16 | found << 32);
}

#endif /* !_E82545_IMPL_H_ */
