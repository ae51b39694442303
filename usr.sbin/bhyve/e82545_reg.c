/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The register file.  One table describes each register in one line: its
 * offset, how many there are, the value after reset, the bits that a write
 * changes, the functions that reading and writing call, and the locks that a
 * write takes (see e82545_impl.h).  Offsets without a line read as 0 and ignore
 * writes.
 *
 * A function of the table runs under reg_mtx and may set wake_tx or wake_rx;
 * the caller then calls the host after it has dropped the lock.
 */

#include <pthread.h>

#include "e82545_eeprom.h"
#include "e82545_impl.h"
#include "e82545_intr.h"
#include "e82545_phy.h"
#include "e82545_probes.h"
#include "e82545_snap.h"
#include "e82545_stat.h"

struct reg {
	uint32_t	off;		/* bytes */
	uint16_t	count;		/* 1, or the length of the array */
	uint16_t	stride;		/* bytes between its elements */
	const char	*name;
	uint32_t	reset;
	uint32_t	mask;		/* bits that writing changes */
	/* Returns the value; NULL: the one stored. */
	uint32_t	(*read)(struct e82545 *dev, uint32_t off);
	/* Called with the mask applied; NULL: the value is stored. */
	void		(*write)(struct e82545 *dev, uint32_t off,
			    uint32_t value);
	/* The rings whose mutexes a write takes before reg_mtx. */
	enum e82545_rings ring;
};

static uint32_t ctrl_dup_read(struct e82545 *, uint32_t);
static void	ctrl_write(struct e82545 *, uint32_t, uint32_t);
static void	ctrl_ext_write(struct e82545 *, uint32_t, uint32_t);
static void	rx_write(struct e82545 *, uint32_t, uint32_t);
static void	rdt_write(struct e82545 *, uint32_t, uint32_t);
static void	tx_write(struct e82545 *, uint32_t, uint32_t);
static void	pba_write(struct e82545 *, uint32_t, uint32_t);
static void	tdt_write(struct e82545 *, uint32_t, uint32_t);
static uint32_t	zero_read(struct e82545 *, uint32_t);

#define	ALL	0xffffffff

/* Stored as written, under a mask. */
#define	RW(off, name, reset, mask)					\
	{ off, 1, 4, name, reset, mask, NULL, NULL, RING_NONE }
/* Stored under a mask, of a register that places a ring or turns it on. */
#define	RXRING(off, name, mask)						\
	{ off, 1, 4, name, 0, mask, NULL, rx_write, RING_RX }
#define	TXRING(off, name, mask)						\
	{ off, 1, 4, name, 0, mask, NULL, tx_write, RING_TX }
/* An array. */
#define	ARRAY(off, count, stride, name, mask)				\
	{ off, count, stride, name, 0, mask, NULL, NULL, RING_NONE }
/* A register with functions. */
#define	FN(off, name, reset, mask, read, write, ring)			\
	{ off, 1, 4, name, reset, mask, read, write, ring }
/* Statistics: cleared when read. */
#define	STAT(name)							\
	FN(E82545_##name, #name, 0, 0, e82545_stat_read, NULL, RING_NONE)
#define	STAT64(name)							\
	FN(E82545_##name##L, #name "L", 0, 0, e82545_stat_low_read,	\
	    NULL, RING_NONE),						\
	FN(E82545_##name##H, #name "H", 0, 0, e82545_stat_high_read,	\
	    NULL, RING_NONE)

static const struct reg regs[] = {
	/* SLU as firmware leaves it: drivers that never set it have a link. */
	FN(E82545_CTRL, "CTRL", E82545_CTRL_FD | E82545_CTRL_SLU |
	    E82545_CTRL_SPEED_1000, 0xdbfc1be9, NULL, ctrl_write, RING_NONE),
	FN(E82545_CTRL_DUP, "CTRL_DUP", 0,
	    0xdbfc1be9, ctrl_dup_read, ctrl_write, RING_NONE),
	RW(E82545_STATUS, "STATUS", 0, 0),
	FN(E82545_EECD, "EECD", E82545_EECD_PRES | E82545_EECD_FWE_DIS,
	    E82545_EECD_SK | E82545_EECD_CS | E82545_EECD_DI |
	    E82545_EECD_FWE | E82545_EECD_REQ,
	    e82545_eecd_read, e82545_eecd_write, RING_NONE),
	FN(E82545_EERD, "EERD", 0, E82545_EERD_START | E82545_EERD_ADDR_MASK,
	    NULL, e82545_eerd_write, RING_NONE),
	FN(E82545_CTRL_EXT, "CTRL_EXT", 0, 0x00c2bfff,
	    NULL, ctrl_ext_write, RING_NONE),
	RW(E82545_FLA, "FLA", 0, 0x00000017),
	FN(E82545_MDIC, "MDIC", E82545_MDIC_READY, 0x2fffffff,
	    NULL, e82545_mdic_write, RING_NONE),
	RW(E82545_FCAL, "FCAL", 0, ALL),
	RW(E82545_FCAH, "FCAH", 0, 0x0000ffff),
	RW(E82545_FCT, "FCT", 0, 0x0000ffff),
	RW(E82545_VET, "VET", 0x8100, 0x0000ffff),

	FN(E82545_ICR, "ICR", 0, E82545_ICR_ALL,
	    e82545_icr_read, e82545_icr_write, RING_NONE),
	FN(E82545_ITR, "ITR", 0, E82545_ITR_MASK,
	    NULL, e82545_itr_write, RING_NONE),
	FN(E82545_ICS, "ICS", 0, E82545_ICR_ALL,
	    zero_read, e82545_ics_write, RING_NONE),
	FN(E82545_IMS, "IMS", 0, E82545_ICR_ALL,
	    NULL, e82545_ims_write, RING_NONE),
	FN(E82545_IMC, "IMC", 0, E82545_ICR_ALL,
	    zero_read, e82545_imc_write, RING_NONE),

	RXRING(E82545_RCTL, "RCTL", 0x06dfb3fe),
	RW(E82545_FCTTV, "FCTTV", 0, 0x0000ffff),
	RW(E82545_TXCW, "TXCW", 0, 0xc000ffff),
	RW(E82545_RXCW, "RXCW", 0, 0),
	TXRING(E82545_TCTL, "TCTL", 0x03fffffa),
	RW(E82545_TIPG, "TIPG", 0, 0x3fffffff),
	RW(E82545_AIFS, "AIFS", 0, 0x0000ffff),
	RW(E82545_LEDCTL, "LEDCTL", 0x07068302, 0xcfcfcfef),
	FN(E82545_PBA, "PBA", 0x00100030, E82545_PBA_RX,
	    NULL, pba_write, RING_NONE),
	RW(E82545_FCRTL, "FCRTL", 0, 0x8000fff8),
	RW(E82545_FCRTH, "FCRTH", 0, 0x0000fff8),

	RW(E82545_RDFH, "RDFH", 0, 0x00001fff),
	RW(E82545_RDFT, "RDFT", 0, 0x00001fff),
	RW(E82545_RDFHS, "RDFHS", 0, 0x00001fff),
	RW(E82545_RDFTS, "RDFTS", 0, 0x00001fff),
	RW(E82545_RDFPC, "RDFPC", 0, 0x00001fff),
	RW(E82545_TDFH, "TDFH", 0, 0x00001fff),
	RW(E82545_TDFT, "TDFT", 0, 0x00001fff),
	RW(E82545_TDFHS, "TDFHS", 0, 0x00001fff),
	RW(E82545_TDFTS, "TDFTS", 0, 0x00001fff),
	RW(E82545_TDFPC, "TDFPC", 0, 0x00001fff),

	RXRING(E82545_RDBAL, "RDBAL", E82545_DBAL_MASK),
	RXRING(E82545_RDBAH, "RDBAH", ALL),
	RXRING(E82545_RDLEN, "RDLEN", E82545_DLEN_MASK),
	RXRING(E82545_RDH, "RDH", E82545_DPTR_MASK),
	FN(E82545_RDT, "RDT", 0, E82545_DPTR_MASK, NULL, rdt_write, RING_NONE),
	FN(E82545_RDTR, "RDTR", 0, 0x0000ffff | E82545_RDTR_FPD,
	    NULL, e82545_rdtr_write, RING_NONE),
	RW(E82545_RXDCTL, "RXDCTL", 0x00010000, 0x013f3f3f),
	RW(E82545_RADV, "RADV", 0, 0x0000ffff),
	RW(E82545_RSRPD, "RSRPD", 0, 0x00000fff),
	FN(E82545_CSBAL, "CSBAL", 0, ALL, NULL, e82545_csbal_write, RING_BOTH),
	FN(E82545_CSBAH, "CSBAH", 0, ALL, NULL, e82545_csbah_write, RING_NONE),

	RW(E82545_TXDMAC, "TXDMAC", 0, 0x00000001),
	TXRING(E82545_TDBAL, "TDBAL", E82545_DBAL_MASK),
	TXRING(E82545_TDBAH, "TDBAH", ALL),
	TXRING(E82545_TDLEN, "TDLEN", E82545_DLEN_MASK),
	TXRING(E82545_TDH, "TDH", E82545_DPTR_MASK),
	FN(E82545_TDT, "TDT", 0, E82545_DPTR_MASK, NULL, tdt_write, RING_NONE),
	RW(E82545_TIDV, "TIDV", 0, 0x0000ffff),
	RW(E82545_TXDCTL, "TXDCTL", 0, 0xff3f3f3f),
	RW(E82545_TADV, "TADV", 0, 0x0000ffff),
	RW(E82545_TSPMT, "TSPMT", 0x01000400, ALL),

	STAT(CRCERRS), STAT(ALGNERRC), STAT(SYMERRS), STAT(RXERRC),
	FN(E82545_MPC, "MPC", 0, 0, e82545_stat_missed_read, NULL, RING_NONE),
	STAT(SCC), STAT(ECOL), STAT(MCC), STAT(LATECOL),
	STAT(COLC), STAT(DC), STAT(TNCRS), STAT(SEC), STAT(CEXTERR),
	STAT(RLEC), STAT(XONRXC), STAT(XONTXC), STAT(XOFFRXC),
	STAT(XOFFTXC), STAT(FCRUC), STAT(PRC64), STAT(PRC127),
	STAT(PRC255), STAT(PRC511), STAT(PRC1023), STAT(PRC1522),
	STAT(GPRC), STAT(BPRC), STAT(MPRC), STAT(GPTC), STAT64(GORC),
	STAT64(GOTC), STAT(RNBC), STAT(RUC), STAT(RFC), STAT(ROC),
	STAT(RJC), STAT(MGTPRC), STAT(MGTPDC), STAT(MGTPTC), STAT64(TOR),
	STAT64(TOT), STAT(TPR), STAT(TPT), STAT(PTC64), STAT(PTC127),
	STAT(PTC255), STAT(PTC511), STAT(PTC1023), STAT(PTC1522),
	STAT(MPTC), STAT(BPTC), STAT(TSCTC), STAT(TSCTFC),

	RW(E82545_RXCSUM, "RXCSUM", 0, 0x000007ff),
	ARRAY(E82545_MTA, E82545_MTA_COUNT, 4, "MTA", ALL),
	ARRAY(E82545_RAL(0), E82545_RA_COUNT, 8, "RAL", ALL),
	ARRAY(E82545_RAH(0), E82545_RA_COUNT, 8, "RAH", 0x8003ffff),
	ARRAY(E82545_VFTA, E82545_VFTA_COUNT, 4, "VFTA", ALL),

	RW(E82545_WUC, "WUC", 0, 0x0000000b),
	RW(E82545_WUFC, "WUFC", 0, 0x000f80ff),
	RW(E82545_WUS, "WUS", 0, 0),
	RW(E82545_MANC, "MANC", 0, ALL),
	RW(E82545_IPAV, "IPAV", 0, 0x0001000f),
	ARRAY(E82545_IP4AT(0), E82545_IP4AT_COUNT, 8, "IP4AT", ALL),
	ARRAY(E82545_IP6AT, E82545_IP6AT_COUNT, 4, "IP6AT", ALL),
	RW(E82545_WUPL, "WUPL", 0, 0),
	ARRAY(E82545_WUPM, E82545_WUPM_COUNT, 4, "WUPM", 0),
	RW(E82545_SWSM, "SWSM", 0, E82545_SWSM_ALL),
	ARRAY(E82545_FFLT(0), E82545_FFLT_COUNT, 8, "FFLT", 0x0000007f),
	ARRAY(E82545_FFMT(0), E82545_FFMT_COUNT, 8, "FFMT", 0x0000000f),
	ARRAY(E82545_FFVT(0), E82545_FFVT_COUNT, 8, "FFVT", ALL),
};

#define	NLINES	(sizeof(regs) / sizeof(regs[0]))
_Static_assert(NLINES < UINT8_MAX, "lines are numbered in a byte");

/* Register to line of the table, counted from 1; 0: none. */
static uint8_t reg_line[E82545_BAR_MEM_SIZE / 4];
static pthread_once_t reg_line_once = PTHREAD_ONCE_INIT;

static void
reg_line_init(void)
{
	const struct reg *r;
	unsigned int i;

	for (r = regs; r < regs + NLINES; r++)
		for (i = 0; i < r->count; i++)
			reg_line[(r->off + i * r->stride) / 4] = r - regs + 1;
}

void
e82545_reg_init(void)
{
	pthread_once(&reg_line_once, reg_line_init);
}

static const struct reg *
reg_find(uint32_t off)
{
	unsigned int line;

	line = reg_line[off / 4];
	return (line == 0 ? NULL : &regs[line - 1]);
}

/* The station address comes from the EEPROM.  reg_mtx held. */
static void
load_address(struct e82545 *dev)
{
	e82545_reg_set(dev, E82545_RAL(0), e82545_eeprom_word(dev, 0) |
	    (uint32_t)e82545_eeprom_word(dev, 1) << 16);
	e82545_reg_set(dev, E82545_RAH(0), e82545_eeprom_word(dev, 2) |
	    E82545_RAH_AV);
}

void
e82545_reg_reset(struct e82545 *dev)
{
	const struct reg *r;
	unsigned int i;

	/* mutants: the register behind is in a later line */
	for (r = regs; r < regs + NLINES; r++)
		for (i = 0; i < r->count; i++)
			e82545_reg_set(dev, r->off + i * r->stride, r->reset);
	load_address(dev);
}

/*
 * The functions of registers.  Under reg_mtx; the masks have been applied.
 */

static uint32_t
zero_read(struct e82545 *dev __unused, uint32_t off __unused)
{
	return (0);
}

static uint32_t
ctrl_dup_read(struct e82545 *dev, uint32_t off __unused)
{
	return (e82545_reg(dev, E82545_CTRL));
}

static void
ctrl_write(struct e82545 *dev, uint32_t off __unused, uint32_t value)
{
	e82545_reg_set(dev, E82545_CTRL, value);
	e82545_phy_link(dev, dev->link_up);
}

/* Both bits clear themselves: section 13.4.6. */
static void
ctrl_ext_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	if ((value & E82545_CTRL_EXT_EE_RST) != 0)
		load_address(dev);
	e82545_reg_set(dev, off, value &
	    ~(E82545_CTRL_EXT_ASDCHK | E82545_CTRL_EXT_EE_RST));
}

/* RDBAL, RDBAH, RDLEN, RDH, RDT or RCTL: frames may be pending for it. */
static void
rx_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	if (off == E82545_RDH)
		e82545_rxq_moved(dev);
	e82545_reg_set(dev, off, value);
	dev->wake_rx = e82545_rx_unstall(dev);
}

static void
rdt_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	e82545_count(dev, E82545_C_RX_KICK, 1);
	if (e82545_csb_placed(dev) && dev->csb.ops->ecb_keep(dev, off, value))
		dev->wake_rx = e82545_rx_kicked(dev);
	else
		rx_write(dev, off, value);
	E82545_PROBE(dev, RX_KICK, value, dev->wake_rx);
}

/* TDBAL, TDBAH, TDLEN, TDH or TCTL: descriptors may be pending now. */
static void
tx_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	if (off == E82545_TDH)
		e82545_txq_moved(dev);
	e82545_reg_set(dev, off, value);
	dev->wake_tx = (e82545_reg(dev, E82545_TCTL) & E82545_TCTL_EN) != 0 &&
	    e82545_reg(dev, E82545_TDT) != e82545_reg(dev, E82545_TDH);
}

/*
 * The kick does not depend on TDH, which a batch stores at its end only: a ring
 * that looks empty by it may have been filled while the batch is in progress,
 * and that batch has read TDT before.
 */
static void
tdt_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	if (!e82545_csb_placed(dev) || !dev->csb.ops->ecb_keep(dev, off, value))
		e82545_reg_set(dev, off, value);
	e82545_count(dev, E82545_C_TX_KICK, 1);
	dev->wake_tx = (e82545_reg(dev, E82545_TCTL) & E82545_TCTL_EN) != 0;
	/* mutants: placing a block clears the flag */
	if (dev->wake_tx && e82545_csb_placed(dev))
		atomic_store_rel_32(&dev->csb.kicked, 1);
	E82545_PROBE(dev, TX_KICK, value, dev->wake_tx);
}

/* 64 KB in all: transmit has what receive does not get.  Section 13.4.16. */
static void
pba_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	uint32_t rx_kb;

	rx_kb = value & E82545_PBA_RX;
	if (rx_kb > 64) /* mutants 2: 64 becomes 64 */
		rx_kb = 64;
	e82545_reg_set(dev, off, rx_kb | (64 - rx_kb) << 16);
}

/*
 * Snapshots.
 */

/* Bits that the model sets, besides those that guests can write. */
static uint32_t
reg_own(uint32_t off)
{
	switch (off) {
	case E82545_STATUS:
		return (E82545_STATUS_FD | E82545_STATUS_LU |
		    E82545_STATUS_SPEED | E82545_STATUS_ASDV);
	case E82545_EERD:
		return (E82545_EERD_DONE | ALL << E82545_EERD_DATA_SHIFT);
	case E82545_MDIC:
		return (E82545_MDIC_READY | E82545_MDIC_ERROR);
	case E82545_PBA:
		/* mutants: guests can write the bit, too */
		return (E82545_PBA_TX);
	default:
		/* mutants: offsets are multiples of four */
		return (off >= E82545_STAT_FIRST && off <= E82545_STAT_LAST ?
		    ALL : 0);
	}
}

void
e82545_reg_snap(struct e82545 *dev, struct e82545_snap *s)
{
	const struct reg *r;
	uint32_t off, value;
	unsigned int i;
	bool csb;

	csb = dev->config.ec_csb;
	e82545_snap_bool(s, &csb);
	e82545_snap_check(s, csb == dev->config.ec_csb);
	for (r = regs; r < regs + NLINES; r++)
		for (i = 0; i < r->count; i++) {
			off = r->off + i * r->stride;
			value = e82545_reg(dev, off);
			e82545_snap_u32(s, &value, ALL);
			e82545_snap_check(s, ((value ^ r->reset) &
			    ~(r->mask | reg_own(off))) == 0);
			e82545_reg_set(dev, off, value);
		}
	value = atomic_load_32(&dev->io_addr);
	e82545_snap_u32(s, &value, ALL);
	/* mutants: wrong only if IOADDR is written between */
	if (s->restore != NULL)
		atomic_store_32(&dev->io_addr, value);
	e82545_snap_bool(s, &dev->link_up);
}

/*
 * Access to registers.
 */

static uint32_t
reg_read(struct e82545 *dev, uint32_t off)
{
	const struct reg *r;
	uint32_t value;

	r = reg_find(off);
	if (r == NULL)
		return (0);
	if (r->read == NULL)
		return (e82545_reg_acquire(dev, off));
	pthread_mutex_lock(&dev->reg_mtx);
	value = r->read(dev, off);
	pthread_mutex_unlock(&dev->reg_mtx);
	return (value);
}

/* The new value: written bits under the mask, all others as stored. */
static uint32_t
reg_merge(const struct e82545 *dev, const struct reg *r, uint32_t off,
    uint32_t value)
{
	return ((value & r->mask) | (e82545_reg(dev, off) & ~r->mask));
}

static void
reg_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	const struct reg *r;
	bool rx, tx;

	if ((off == E82545_CTRL || off == E82545_CTRL_DUP) &&
	    (value & E82545_CTRL_RST) != 0) {
		e82545_reset_guest(dev);
		return;
	}
	r = reg_find(off);
	if (r == NULL)
		return;
	e82545_lock_rings(dev, r->ring);
	/* mutants: placing a block clears the flag */
	if ((off == E82545_TDH || off == E82545_RDH) &&
	    e82545_csb_placed(dev))
		dev->csb.ops->ecb_restart(dev, off);
	pthread_mutex_lock(&dev->reg_mtx);
	if (r->write != NULL)
		r->write(dev, off, reg_merge(dev, r, off, value));
	else
		e82545_reg_set(dev, off, reg_merge(dev, r, off, value));
	tx = dev->wake_tx;
	rx = dev->wake_rx;
	dev->wake_tx = dev->wake_rx = false;
	pthread_mutex_unlock(&dev->reg_mtx);
	e82545_unlock_rings(dev, r->ring);
	if (tx)
		dev->ops->eo_tx_kick(dev->arg);
	if (rx)
		dev->ops->eo_rx_ready(dev->arg);
}

/*
 * The I/O BAR is a window of one register: section 13.2.2.1.  Offsets beyond
 * the memory BAR, where the flash would be, and unaligned ones have no
 * register.
 */
static bool
io_target(const struct e82545 *dev, uint32_t *off)
{
	*off = atomic_load_32(&dev->io_addr);
	return (*off < E82545_BAR_MEM_SIZE && *off % 4 == 0);
}

static uint32_t
io_read(struct e82545 *dev, uint32_t port)
{
	uint32_t off;

	if (port == E82545_IOADDR)
		return (atomic_load_32(&dev->io_addr));
	return (io_target(dev, &off) ? reg_read(dev, off) : UINT32_MAX);
}

static void
io_write(struct e82545 *dev, uint32_t port, uint32_t value)
{
	uint32_t off;

	if (port == E82545_IOADDR)
		atomic_store_32(&dev->io_addr, value);
	else if (io_target(dev, &off))
		reg_write(dev, off, value);
}

/* Whether the adapter decodes an access. */
static bool
access_ok(int bar, uint64_t off, int size)
{
	uint64_t limit;

	if (bar == E82545_BAR_MEM)
		limit = E82545_BAR_MEM_SIZE;
	else if (bar == E82545_BAR_IO)
		limit = E82545_BAR_IO_SIZE;
	else
		return (false);
	return (size > 0 && size <= 8 && powerof2(size) && off < limit &&
	    limit - off >= (unsigned int)size);
}

/*
 * The part of an access that lies in one register: those of its bytes that
 * PCI's byte enables select.
 */
struct lanes {
	uint32_t	off;		/* of the register */
	unsigned int	shift;		/* of the first bit in it */
	unsigned int	bytes;
	uint32_t	bits;		/* of the register */
};

static struct lanes
access_lanes(uint32_t off, unsigned int left)
{
	struct lanes l;

	l.off = off & ~3U;
	l.shift = 8 * (off % 4);
	l.bytes = MIN(left, 4 - off % 4);
	l.bits = ALL >> (32 - 8 * l.bytes) << l.shift;
	return (l);
}

static uint32_t
bar_read(struct e82545 *dev, int bar, uint32_t off)
{
	return (bar == E82545_BAR_IO ? io_read(dev, off) : reg_read(dev, off));
}

static void
bar_write(struct e82545 *dev, int bar, uint32_t off, uint32_t value)
{
	if (bar == E82545_BAR_IO)
		io_write(dev, off, value);
	else
		reg_write(dev, off, value);
}

/* What a write leaves alone: the bits as stored, or 0 if writing 1 acts. */
static uint32_t
reg_rest(const struct e82545 *dev, uint32_t off)
{
	return (off >= E82545_NREGS * 4 || off == E82545_ICR ||
	    off == E82545_ICS || off == E82545_IMS || off == E82545_IMC ? 0 :
	    e82545_reg(dev, off));
}

static uint64_t
read_parts(struct e82545 *dev, int bar, uint32_t off, unsigned int size)
{
	uint64_t value = 0;
	struct lanes l;
	unsigned int i;

	for (i = 0; i < size; i += l.bytes) {
		l = access_lanes(off + i, size - i);
		value |= (uint64_t)((bar_read(dev, bar, l.off) & l.bits) >>
		    l.shift) << (8 * i);
	}
	return (value);
}

/* The I/O BAR ignores writes of less than 32 bits: section 13.2.2. */
static void
write_parts(struct e82545 *dev, int bar, uint32_t off, unsigned int size,
    uint64_t value)
{
	struct lanes l;
	unsigned int i;
	uint32_t part;

	for (i = 0; i < size; i += l.bytes) {
		l = access_lanes(off + i, size - i);
		part = (uint32_t)(value >> (8 * i)) << l.shift;
		if (l.bits == ALL)
			bar_write(dev, bar, l.off, part);
		else if (bar == E82545_BAR_MEM)
			reg_write(dev, l.off, (part & l.bits) |
			    (reg_rest(dev, l.off) & ~l.bits));
	}
}

/* Whether an access is to one register in memory, as nearly all are. */
static bool
access_whole(int bar, uint64_t off, int size)
{
	return (bar == E82545_BAR_MEM && size == 4 &&
	    (off & ~(uint64_t)(E82545_BAR_MEM_SIZE - 4)) == 0);
}

uint64_t
e82545_read(struct e82545 *dev, int bar, uint64_t off, int size)
{
	uint64_t value;

	e82545_count_any(dev, E82545_C_REG_READ);
	if (access_whole(bar, off, size))
		value = reg_read(dev, off);
	else if (access_ok(bar, off, size))
		value = read_parts(dev, bar, off, size);
	else
		value = size == 1 ? UINT8_MAX : size == 2 ? UINT16_MAX :
		    size == 4 ? UINT32_MAX : UINT64_MAX;
	E82545_PROBE(dev, REG_READ, (uint32_t)off, value, bar);
	return (value);
}

void
e82545_write(struct e82545 *dev, int bar, uint64_t off, int size,
    uint64_t value)
{
	e82545_count_any(dev, E82545_C_REG_WRITE);
	E82545_PROBE(dev, REG_WRITE, (uint32_t)off, value, bar);
	if (access_whole(bar, off, size))
		reg_write(dev, off, value);
	else if (access_ok(bar, off, size))
		write_parts(dev, bar, off, size, value);
}
