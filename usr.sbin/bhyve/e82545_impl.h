/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * Private state of the 82545EM model; only e82545*.c include this.
 *
 *	e82545.c	 life cycle, register file, counters
 *	e82545_nvm.c	 EEPROM and PHY
 *	e82545_intr.c	 ICR, IMS and the moderation engine
 *	e82545_tx.c	 transmit ring
 *	e82545_rx.c	 receive ring, address filters, loopback
 *	e82545_offload.c checksum, TSO and VLAN arithmetic on bytes: no state
 *
 * Locks.  Three mutexes, taken in this order:
 *
 *	tx_mtx	the transmit ring and struct e82545_txq; held for a batch
 *	rx_mtx	the receive ring and struct e82545_rxq; held for a batch
 *	reg_mtx	everything else: the register file, the interrupt state
 *
 * A register access takes reg_mtx alone.  The workers read the registers they
 * depend on without it (e82545_reg(), a relaxed load; TDT and RDT with
 * acquire), at the start of each batch, and take it once at the end of a
 * batch to store heads, statistics and interrupt causes.  A reset takes all
 * three, so it finds no batch in progress; so do e82545_pause() and changes
 * of the registers that place a ring.  Nothing of the host is called under
 * reg_mtx but eo_intr, eo_timer and eo_now.
 */

#ifndef _E82545_IMPL_H_
#define	_E82545_IMPL_H_

#include <pthread.h>

#include "e82545.h"
#include "e82545_reg.h"

/* The register file covers offsets 0 to 0x9fff: 8254x SDM table 13-2. */
#define	E82545_NREGS	(0xa000 / 4)

/* What moderation depends on: see e82545_intr.c.  Under reg_mtx. */
struct e82545_moderation {
	uint64_t	last_ns;	/* when the line was last asserted */
	uint64_t	rx_packet_ns;	/* when RDTR runs out; 0: not running */
	uint64_t	rx_absolute_ns;	/* when RADV runs out; 0: not running */
	uint64_t	tx_packet_ns;	/* when TIDV runs out; 0: not running */
	uint64_t	tx_absolute_ns;	/* when TADV runs out; 0: not running */
	uint64_t	armed_ns;	/* what the host's timer is set to */
	bool		asserted;	/* the line, as the host was told */
};

/* The transmit context: the last context descriptor.  Under tx_mtx. */
struct e82545_txctx {
	uint8_t		ipcss, ipcso, tucss, tucso;
	uint16_t	ipcse, tucse;
	uint32_t	paylen;		/* TSO payload, bytes */
	uint8_t		hdrlen;		/* TSO header, bytes */
	uint16_t	mss;		/* bytes */
	uint8_t		cmd;		/* TUCMD: IP, TCP, TSE bits */
};

struct e82545_txq;			/* e82545_tx.c */
struct e82545_rxq;			/* e82545_rx.c */
struct e82545_nvm;			/* e82545_nvm.c */

struct e82545 {
	const struct e82545_ops	*ops;
	void			*arg;
	struct e82545_config	 config;
	char			 name[32];

	pthread_mutex_t		 tx_mtx;
	struct e82545_txq	*txq;
	pthread_mutex_t		 rx_mtx;
	struct e82545_rxq	*rxq;

	pthread_mutex_t		 reg_mtx;
	uint32_t		 regs[E82545_NREGS];
	uint32_t		 io_addr;	/* IOADDR, in the I/O BAR */
	struct e82545_nvm	*nvm;
	struct e82545_moderation moder;
	bool			 link_up;	/* the cable, not the register */
	bool			 paused;	/* under tx_mtx and rx_mtx */

	uint64_t		 counters[E82545_NCOUNTERS]; /* relaxed atomics */
};

/*
 * Registers by offset in bytes.  Any thread; writers hold reg_mtx.  TDT and
 * RDT publish descriptors: _acquire pairs with the release in e82545_reg_set().
 */
static inline uint32_t
e82545_reg(const struct e82545 *dev, uint32_t off)
{
	return (__atomic_load_n(&dev->regs[off / 4], __ATOMIC_RELAXED));
}

static inline uint32_t
e82545_reg_acquire(const struct e82545 *dev, uint32_t off)
{
	return (__atomic_load_n(&dev->regs[off / 4], __ATOMIC_ACQUIRE));
}

static inline void
e82545_reg_set(struct e82545 *dev, uint32_t off, uint32_t value)
{
	__atomic_store_n(&dev->regs[off / 4], value, __ATOMIC_RELEASE);
}

/* Add to a counter.  Any thread; once a batch, not once a frame. */
static inline void
e82545_count(struct e82545 *dev, enum e82545_counter counter, uint64_t n)
{
	if (n != 0)
		__atomic_fetch_add(&dev->counters[counter], n,
		    __ATOMIC_RELAXED);
}

/*
 * e82545.c
 */

/*
 * Add to a statistics register, sticking at all ones as they do; the 64-bit
 * ones take the offset of the low half.  reg_mtx held.
 * 8254x SDM section 13.7.
 */
void	e82545_stat(struct e82545 *dev, uint32_t off, uint64_t n);
void	e82545_stat64(struct e82545 *dev, uint32_t off, uint64_t n);

/* The register bank that counts frames by size: PRC64... or PTC64....
   `first' is its first offset, `len' includes the FCS.  reg_mtx held. */
void	e82545_stat_size(struct e82545 *dev, uint32_t first, size_t len,
	    uint64_t n);

/*
 * e82545_nvm.c: reg_mtx held throughout.
 */
struct e82545_nvm *e82545_nvm_create(const uint8_t mac[6]);
void	e82545_nvm_destroy(struct e82545_nvm *nvm);
/* Device reset: the PHY goes back to its defaults, the EEPROM keeps. */
void	e82545_nvm_reset(struct e82545 *dev);
/* EECD, EERD and MDIC, as the register table calls them. */
uint32_t e82545_eecd_read(struct e82545 *dev, uint32_t off);
void	e82545_eecd_write(struct e82545 *dev, uint32_t off, uint32_t value);
void	e82545_eerd_write(struct e82545 *dev, uint32_t off, uint32_t value);
void	e82545_mdic_write(struct e82545 *dev, uint32_t off, uint32_t value);
/* EEPROM word `word' (0 to 63): where reset loads RAL0/RAH0 from. */
uint16_t e82545_nvm_word(const struct e82545 *dev, unsigned int word);
/* The PHY loops frames back (PHY control bit 14). */
bool	e82545_phy_loopback(const struct e82545 *dev);
/* The link, up or down, as PHY and STATUS show it.  LSC if it changed. */
void	e82545_phy_link(struct e82545 *dev, bool up);

/*
 * e82545_intr.c: reg_mtx held throughout.
 */
void	e82545_intr_reset(struct e82545 *dev);
/* Raise causes at once (ICR bits), then decide about the line. */
void	e82545_intr_raise(struct e82545 *dev, uint32_t causes);
/*
 * A batch was written back: TXDW by way of TIDV/TADV when all of its
 * descriptors that report status have IDE set (`delayed'), else at once;
 * `causes' are raised at once besides.
 */
void	e82545_intr_tx(struct e82545 *dev, bool done, bool delayed,
	    uint32_t causes);
/* A batch was received: RXT0 by way of RDTR/RADV; `causes' at once. */
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
 * e82545_tx.c
 */
struct e82545_txq *e82545_txq_create(void);
void	e82545_txq_destroy(struct e82545_txq *txq);
/* tx_mtx and reg_mtx held. */
void	e82545_txq_reset(struct e82545 *dev);

/*
 * e82545_rx.c
 */
struct e82545_rxq *e82545_rxq_create(void);
void	e82545_rxq_destroy(struct e82545_rxq *rxq);
/* rx_mtx and reg_mtx held. */
void	e82545_rxq_reset(struct e82545 *dev);
/*
 * RDT, RCTL or the loopback queue changed: whether a stalled receive path can
 * go on, so that the caller, having dropped its locks, calls eo_rx_ready.
 * reg_mtx held.
 */
bool	e82545_rx_unstall(struct e82545 *dev);
/*
 * A frame the guest sent with loopback on: queue a copy of it for the receive
 * path.  Returns false where the queue is full.  Transmit thread, without
 * rx_mtx.
 */
bool	e82545_rx_loopback(struct e82545 *dev, const struct iovec *iov,
	    int niov);

/*
 * e82545_offload.c: pure functions on bytes.
 */

/* The sum of bytes in ones' complement, continuing `sum'; `odd' tells that an
   odd number of bytes went before.  Not folded. */
uint64_t e82545_sum(const void *data, size_t len, uint64_t sum, bool odd);
/* The checksum field that goes with a sum, in network order. */
uint16_t e82545_sum_fold(uint64_t sum);

#endif /* !_E82545_IMPL_H_ */
