/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What an adapter is made of: its registers, its PHY, what is in its EEPROM.
 * Each adapter has a file with its tables: e82545_em.c has the 82545EM's,
 * e82574.c the 82574L's.  Everything else is the same for all of them.
 *
 * Private; only the model's files include this.
 */

#ifndef _E82545_TYPE_H_
#define	_E82545_TYPE_H_

#include <stddef.h>
#include <stdint.h>

#include "e82545_eeprom.h"
#include "e82545_impl.h"
#include "e82545_phy.h"

struct e82545_snap;

/* A register, or an array of them: a line of an adapter's table. */
struct e82545_line {
	uint32_t	el_off;		/* bytes */
	uint16_t	el_count;	/* 1, or the length of the array */
	uint16_t	el_stride;	/* bytes between its elements */
	uint32_t	el_reset;	/* the value after a reset */
	uint32_t	el_mask;	/* bits that writing changes */
	uint32_t	el_own;		/* bits that the model sets, too */
	/* Return the value; NULL: the stored value. */
	uint32_t	(*el_read)(struct e82545 *dev, uint32_t off);
	/* Write the value, with the mask applied; NULL: store it. */
	void		(*el_write)(struct e82545 *dev, uint32_t off,
			    uint32_t value);
	/* The rings whose mutexes a write takes before reg_mtx. */
	enum e82545_rings el_ring;
};

#define	E82545_ALL	0xffffffff

/* A register with functions. */
#define	LINE_FN(off, reset, mask, read, write, ring)			\
	{ off, 1, 4, reset, mask, 0, read, write, ring }
/*
 * A register with functions, in which the model sets bits that guests cannot.
 */
#define	LINE_OWN(off, reset, mask, own, read, write)			\
	{ off, 1, 4, reset, mask, own, read, write, RING_NONE }
/* Stored as written, under a mask. */
#define	LINE_RW(off, reset, mask)					\
	LINE_FN(off, reset, mask, NULL, NULL, RING_NONE)
/* Stored under a mask, of a register that places a ring or turns it on. */
#define	LINE_RXRING(off, mask)						\
	LINE_FN(off, 0, mask, NULL, e82545_rx_write, RING_RX)
#define	LINE_TXRING(off, mask)						\
	LINE_FN(off, 0, mask, NULL, e82545_tx_write, RING_TX)
/* An array. */
#define	LINE_ARRAY(off, count, stride, mask)				\
	{ off, count, stride, 0, mask, 0, NULL, NULL, RING_NONE }
/* Statistics: cleared when read. */
#define	LINE_STAT(name)							\
	LINE_OWN(E82545_##name, 0, 0, E82545_ALL, e82545_stat_read, NULL)
#define	LINE_STAT64(name)						\
	LINE_OWN(E82545_##name##L, 0, 0, E82545_ALL,			\
	    e82545_stat_low_read, NULL),				\
	LINE_OWN(E82545_##name##H, 0, 0, E82545_ALL,			\
	    e82545_stat_high_read, NULL)

/* All of the statistics registers. */
#define	LINE_MPC							\
	LINE_OWN(E82545_MPC, 0, 0, E82545_ALL, e82545_stat_missed_read, NULL)
#define	LINES_STAT							\
	LINE_STAT(CRCERRS), LINE_STAT(ALGNERRC), LINE_STAT(SYMERRS),	\
	LINE_STAT(RXERRC), LINE_MPC, LINE_STAT(SCC), LINE_STAT(ECOL),	\
	LINE_STAT(MCC), LINE_STAT(LATECOL), LINE_STAT(COLC),		\
	LINE_STAT(DC), LINE_STAT(TNCRS), LINE_STAT(SEC),		\
	LINE_STAT(CEXTERR), LINE_STAT(RLEC), LINE_STAT(XONRXC),		\
	LINE_STAT(XONTXC), LINE_STAT(XOFFRXC), LINE_STAT(XOFFTXC),	\
	LINE_STAT(FCRUC), LINE_STAT(PRC64), LINE_STAT(PRC127),		\
	LINE_STAT(PRC255), LINE_STAT(PRC511), LINE_STAT(PRC1023),	\
	LINE_STAT(PRC1522), LINE_STAT(GPRC), LINE_STAT(BPRC),		\
	LINE_STAT(MPRC), LINE_STAT(GPTC), LINE_STAT64(GORC),		\
	LINE_STAT64(GOTC), LINE_STAT(RNBC), LINE_STAT(RUC),		\
	LINE_STAT(RFC), LINE_STAT(ROC), LINE_STAT(RJC),			\
	LINE_STAT(MGTPRC), LINE_STAT(MGTPDC), LINE_STAT(MGTPTC),	\
	LINE_STAT64(TOR), LINE_STAT64(TOT), LINE_STAT(TPR),		\
	LINE_STAT(TPT), LINE_STAT(PTC64), LINE_STAT(PTC127),		\
	LINE_STAT(PTC255), LINE_STAT(PTC511), LINE_STAT(PTC1023),	\
	LINE_STAT(PTC1522), LINE_STAT(MPTC), LINE_STAT(BPTC),		\
	LINE_STAT(TSCTC), LINE_STAT(TSCTFC)

/* The pointers of the receive FIFO. */
#define	LINES_RX_FIFO							\
	LINE_RW(E82545_RDFH, 0, 0x00001fff),				\
	LINE_RW(E82545_RDFT, 0, 0x00001fff),				\
	LINE_RW(E82545_RDFHS, 0, 0x00001fff),				\
	LINE_RW(E82545_RDFTS, 0, 0x00001fff),				\
	LINE_RW(E82545_RDFPC, 0, 0x00001fff)
/* The receive ring, with its timers, and the CSB. */
#define	LINES_RX_RING							\
	LINE_RXRING(E82545_RDBAL, E82545_DBAL_MASK),			\
	LINE_RXRING(E82545_RDBAH, E82545_ALL),				\
	LINE_RXRING(E82545_RDLEN, E82545_DLEN_MASK),			\
	LINE_RXRING(E82545_RDH, E82545_DPTR_MASK),			\
	LINE_FN(E82545_RDT, 0, E82545_DPTR_MASK,			\
	    NULL, e82545_rdt_write, RING_NONE),				\
	LINE_FN(E82545_RDTR, 0, 0x0000ffff | E82545_RDTR_FPD,		\
	    NULL, e82545_rdtr_write, RING_NONE),			\
	LINE_RW(E82545_RXDCTL, 0x00010000, 0x013f3f3f),			\
	LINE_RW(E82545_RADV, 0, 0x0000ffff),				\
	LINE_RW(E82545_RSRPD, 0, 0x00000fff),				\
	LINE_FN(E82545_CSBAL, 0, E82545_ALL,				\
	    NULL, e82545_csbal_write, RING_BOTH),			\
	LINE_FN(E82545_CSBAH, 0, E82545_ALL,				\
	    NULL, e82545_csbah_write, RING_NONE)
/* The transmit ring, and its timer. */
#define	LINES_TX_RING							\
	LINE_TXRING(E82545_TDBAL, E82545_DBAL_MASK),			\
	LINE_TXRING(E82545_TDBAH, E82545_ALL),				\
	LINE_TXRING(E82545_TDLEN, E82545_DLEN_MASK),			\
	LINE_TXRING(E82545_TDH, E82545_DPTR_MASK),			\
	LINE_FN(E82545_TDT, 0, E82545_DPTR_MASK,			\
	    NULL, e82545_tdt_write, RING_NONE),				\
	LINE_RW(E82545_TIDV, 0, 0x0000ffff)
/* Addresses and VLANs that are received. */
#define	LINES_FILTER							\
	LINE_ARRAY(E82545_MTA, E82545_MTA_COUNT, 4, E82545_ALL),	\
	LINE_ARRAY(E82545_RAL(0), E82545_RA_COUNT, 8, E82545_ALL),	\
	LINE_ARRAY(E82545_RAH(0), E82545_RA_COUNT, 8, 0x8003ffff),	\
	LINE_ARRAY(E82545_VFTA, E82545_VFTA_COUNT, 4, E82545_ALL)

struct e82545_type {
	char		 et_magic[8];	/* of snapshots */
	uint16_t	 et_subdevice;	/* PCI subsystem ID */
	unsigned int	 et_queues;	/* in each direction */
	const struct e82545_line *et_line;
	size_t		 et_nlines;	/* less than UINT8_MAX */
	/* Register to line, counted from 1; 0: none.  e82545_reg_init(). */
	uint8_t		*et_index;	/* E82545_BAR_MEM_SIZE / 4 of them */
	const struct e82545_phy_reg *et_phy;	/* E82545_PHY_NREGS of them */
	unsigned int	 et_phy_page;	/* the PHY's register that selects a
					   page of others: PHY_M88_PAGE or
					   PHY_BM_PAGE */
	/*
	 * Words of the EEPROM, besides the host's addresses, and the checksum.
	 * Words that are not here are 0xffff, as if erased.
	 */
	const struct e82545_eeprom_word *et_eeprom;
	size_t		 et_neeprom;
	const struct e82545_eeprom_bus *et_bus;
	/*
	 * What is not in all adapters: reset, snapshots, salvage; or NULL.  As
	 * the functions of other parts, after these.
	 */
	void		(*et_reset)(struct e82545 *dev);
	void		(*et_snap)(struct e82545 *dev, struct e82545_snap *s);
	void		(*et_salvage)(struct e82545 *dev,
			    const struct e82545 *old);
};

extern const struct e82545_type e82545_em;	/* e82545_em.c */
extern const struct e82545_type e82574_l;	/* e82574.c */

/*
 * Access registers, for these tables.  Under reg_mtx; the masks have been
 * applied.  These functions may set wake_tx, wake_rx or intr_off.
 */
uint32_t e82545_zero_read(struct e82545 *dev, uint32_t off);
void	e82545_ctrl_write(struct e82545 *dev, uint32_t off, uint32_t value);
uint32_t e82545_ctrl_dup_read(struct e82545 *dev, uint32_t off);
void	e82545_ctrl_ext_write(struct e82545 *dev, uint32_t off,
	    uint32_t value);
void	e82545_rx_write(struct e82545 *dev, uint32_t off, uint32_t value);
void	e82545_rdt_write(struct e82545 *dev, uint32_t off, uint32_t value);
void	e82545_tx_write(struct e82545 *dev, uint32_t off, uint32_t value);
void	e82545_tdt_write(struct e82545 *dev, uint32_t off, uint32_t value);

#endif /* !_E82545_TYPE_H_ */
