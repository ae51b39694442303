/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The register file.  A table of each adapter (e82545_type.h) describes each
 * register in one line: its offset, how many there are, the value after reset,
 * the bits that a write changes, the functions that reading and writing call,
 * and the locks that a write takes (see e82545_impl.h).  Offsets without a line
 * read as 0 and ignore writes.
 *
 * A function of the table runs under reg_mtx and may set wake_tx, wake_rx or
 * intr_off; the caller then calls the host after it has dropped the lock.
 */

#include <sys/param.h>

#include <pthread.h>

#include "e82545_impl.h"
#include "e82545_intr.h"
#include "e82545_probes.h"
#include "e82545_snap.h"
#include "e82545_stat.h"
#include "e82545_type.h"

#define	ALL	E82545_ALL

static const struct e82545_type *const types[] = {
	&e82545_em, &e82574_l
};
static pthread_once_t index_once = PTHREAD_ONCE_INIT;

static void
index_init(void)
{
	const struct e82545_line *l;
	const struct e82545_type *t;
	unsigned int i, j;

	for (i = 0; i < nitems(types); i++) {
		t = types[i];
		MPASS(t->et_nlines < UINT8_MAX);
		for (l = t->et_line; l < t->et_line + t->et_nlines; l++)
			for (j = 0; j < l->el_count; j++)
				t->et_index[(l->el_off + j * l->el_stride) /
				    4] = l - t->et_line + 1;
	}
}

void
e82545_reg_init(void)
{
	pthread_once(&index_once, index_init);
}

static const struct e82545_line *
reg_find(const struct e82545 *dev, uint32_t off)
{
	unsigned int line;

	line = dev->type->et_index[off / 4];
	return (line == 0 ? NULL : &dev->type->et_line[line - 1]);
}

/* Load the station address from the EEPROM.  reg_mtx held. */
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
	const struct e82545_line *l = dev->type->et_line;
	const struct e82545_line *end = l + dev->type->et_nlines;
	unsigned int i;

	for (; l < end; l++)
		for (i = 0; i < l->el_count; i++)
			e82545_reg_set(dev, l->el_off + i * l->el_stride,
			    l->el_reset);
	load_address(dev);
}

/*
 * The functions of registers.  Under reg_mtx; the masks have been applied.
 */

uint32_t
e82545_zero_read(struct e82545 *dev __unused, uint32_t off __unused)
{
	return (0);
}

uint32_t
e82545_ctrl_dup_read(struct e82545 *dev, uint32_t off __unused)
{
	return (e82545_reg(dev, E82545_CTRL));
}

void
e82545_ctrl_write(struct e82545 *dev, uint32_t off __unused, uint32_t value)
{
	e82545_reg_set(dev, E82545_CTRL, value);
	e82545_phy_link(dev, dev->link_up);
}

/* Write CTRL_EXT, of which two bits clear themselves: section 13.4.6. */
void
e82545_ctrl_ext_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	if ((value & E82545_CTRL_EXT_EE_RST) != 0)
		load_address(dev);
	e82545_reg_set(dev, off, value &
	    ~(E82545_CTRL_EXT_ASDCHK | E82545_CTRL_EXT_EE_RST));
}

/* Write RDBAL, RDBAH, RDLEN, RDH, RDT or RCTL: frames may be pending. */
void
e82545_rx_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	unsigned int i;

	for (i = 0; i < dev->type->et_queues; i++)
		if (off == E82545_RDH + E82574_QUEUE(i))
			e82545_rxq_moved(dev, i);
	e82545_reg_set(dev, off, value);
	dev->wake_rx = e82545_rx_unstall(dev);
}

void
e82545_rdt_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	e82545_count(dev, E82545_C_RX_KICK, 1);
	if (e82545_csb_placed(dev) && off == E82545_RDT &&
	    dev->csb.ops->ecb_defer(dev, off, value))
		dev->wake_rx = e82545_rx_kicked(dev);
	else
		e82545_rx_write(dev, off, value);
	E82545_PROBE(dev, RX_KICK, value, dev->wake_rx);
}

/*
 * Write TDBAL, TDBAH, TDLEN, TDH, TCTL or TARC: descriptors may be pending now.
 */
void
e82545_tx_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	uint32_t regs;
	unsigned int i;

	for (i = 0; i < dev->type->et_queues; i++)
		if (off == E82545_TDH + E82574_QUEUE(i))
			e82545_txq_moved(dev, i);
	e82545_reg_set(dev, off, value);
	if ((e82545_reg(dev, E82545_TCTL) & E82545_TCTL_EN) == 0)
		return;
	for (i = 0; i < dev->type->et_queues; i++) {
		regs = E82574_QUEUE(i);
		dev->wake_tx |= e82545_reg(dev, E82545_TDT + regs) !=
		    e82545_reg(dev, E82545_TDH + regs);
	}
}

/*
 * Write TDT, and kick.  The kick does not depend on TDH, which a batch stores
 * at its end only: a ring that looks empty by it may have been filled while the
 * batch is in progress, and that batch has read TDT before.  A write that does
 * not change TDT posts nothing, unless it is a kick of the CSB.
 */
void
e82545_tdt_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	const bool csb = e82545_csb_placed(dev) && off == E82545_TDT;
	const uint32_t old = e82545_reg(dev, off);

	if (!csb || !dev->csb.ops->ecb_defer(dev, off, value))
		e82545_reg_set(dev, off, value);
	e82545_count(dev, E82545_C_TX_KICK, 1);
	dev->wake_tx = (e82545_reg(dev, E82545_TCTL) & E82545_TCTL_EN) != 0 &&
	    (csb || value != old);
	if (dev->wake_tx && csb)
		atomic_store_rel_32(&dev->csb.kicked, 1);
	E82545_PROBE(dev, TX_KICK, value, dev->wake_tx);
}

/*
 * Snapshots.
 */

void
e82545_reg_snap(struct e82545 *dev, struct e82545_snap *s)
{
	const struct e82545_line *l = dev->type->et_line;
	const struct e82545_line *end = l + dev->type->et_nlines;
	uint32_t off, value;
	unsigned int i;
	bool csb;

	csb = dev->config.ec_csb != E82545_CSB_OFF;
	e82545_snap_bool(s, &csb);
	e82545_snap_check(s, csb == (dev->config.ec_csb != E82545_CSB_OFF));
	for (; l < end; l++)
		for (i = 0; i < l->el_count; i++) {
			off = l->el_off + i * l->el_stride;
			value = e82545_reg(dev, off);
			e82545_snap_u32(s, &value, ALL);
			e82545_snap_check(s, ((value ^ l->el_reset) &
			    ~(l->el_mask | l->el_own)) == 0);
			e82545_reg_set(dev, off, value);
		}
	value = atomic_load_32(&dev->io_addr);
	e82545_snap_u32(s, &value, ALL);
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
	const struct e82545_line *l;
	uint32_t value;

	l = reg_find(dev, off);
	if (l == NULL)
		return (0);
	if (l->el_read == NULL)
		return (e82545_reg_acquire(dev, off));
	pthread_mutex_lock(&dev->reg_mtx);
	value = l->el_read(dev, off);
	pthread_mutex_unlock(&dev->reg_mtx);
	return (value);
}

/* Return the new value: written bits under the mask, all others as stored. */
static uint32_t
reg_merge(const struct e82545 *dev, const struct e82545_line *l, uint32_t off,
    uint32_t value)
{
	return ((value & l->el_mask) | (e82545_reg(dev, off) & ~l->el_mask));
}

static void
reg_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	const struct e82545_line *l;
	uint32_t intr_off;
	bool rx, tx;

	if ((off == E82545_CTRL || off == E82545_CTRL_DUP) &&
	    (value & E82545_CTRL_RST) != 0) {
		e82545_reset_guest(dev);
		return;
	}
	l = reg_find(dev, off);
	if (l == NULL)
		return;
	e82545_lock_rings(dev, l->el_ring);
	if ((off == E82545_TDH || off == E82545_RDH) &&
	    e82545_csb_placed(dev))
		dev->csb.ops->ecb_restart(dev, off);
	pthread_mutex_lock(&dev->reg_mtx);
	if (l->el_write != NULL)
		l->el_write(dev, off, reg_merge(dev, l, off, value));
	else
		e82545_reg_set(dev, off, reg_merge(dev, l, off, value));
	tx = dev->wake_tx;
	rx = dev->wake_rx;
	dev->wake_tx = dev->wake_rx = false;
	intr_off = dev->intr_off;
	dev->intr_off = 0;
	pthread_mutex_unlock(&dev->reg_mtx);
	e82545_unlock_rings(dev, l->el_ring);
	e82545_intr_withdraw(dev, intr_off);
	if (tx)
		dev->ops->eo_tx_kick(dev->arg);
	if (rx)
		dev->ops->eo_rx_ready(dev->arg);
}

/*
 * Find the register of the I/O BAR, which is a window of one: section 13.2.2.1.
 * Offsets beyond the memory BAR, where the flash would be, and unaligned ones
 * have no register.
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

/* Return whether the adapter decodes an access. */
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

/*
 * Return what a write leaves alone: the bits as stored, or 0 if writing 1 acts.
 */
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

/*
 * Write the registers that an access touches.  The I/O BAR ignores writes of
 * less than 32 bits: section 13.2.2.
 */
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

/* Return whether an access is to one register in memory, as nearly all are. */
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
