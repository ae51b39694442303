/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * An emulated Intel 82545EM: where to start reading.
 *
 *	    guest's registers			   guest's memory
 *	  |			|		 |		  ^
 *	  v			v		 v		  |
 *	e82545_reg.c TDT --> eo_tx_kick --> e82545_tx.c		  |
 *	register  -- RDT --> eo_rx_ready -------------------> e82545_rx.c
 *	table			      TX causes |   | frames	  ^ |
 *	  |   |					v   v		  | | RX causes
 *	  |   +- ICR, IMS, ITR ... --> e82545_intr.c <-------------+
 *	  +- EECD --> e82545_eeprom.c	  | eo_intr, eo_timer	  |
 *	  +- MDIC --> e82545_phy.c	  v			frames
 *				     interrupt line	      frame port
 *
 * This file has the life cycle.  If the guest's driver uses the CSB, most of
 * what goes through TDT, RDT and the interrupt line goes through a page of its
 * memory instead: e82545_csb.c.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "e82545_eeprom.h"
#include "e82545_filter.h"
#include "e82545_impl.h"
#include "e82545_intr.h"
#include "e82545_loop.h"
#include "e82545_phy.h"
#include "e82545_probes.h"
#include "e82545_stat.h"
#include "e82545_type.h"

/* Frames that wait in a port: no port holds more. */
#define	PORT_FRAMES	4096

/*
 * Locks.
 */

void
e82545_lock_all(struct e82545 *dev)
{
	e82545_lock_rings(dev, RING_BOTH);
	pthread_mutex_lock(&dev->reg_mtx);
}

void
e82545_unlock_all(struct e82545 *dev)
{
	pthread_mutex_unlock(&dev->reg_mtx);
	e82545_unlock_rings(dev, RING_BOTH);
}

static int
lock_init(struct e82545_lock *lock)
{
	int error;

	error = pthread_mutex_init(&lock->gate, NULL);
	if (error != 0)
		return (error);
	error = pthread_mutex_init(&lock->mtx, NULL);
	if (error != 0)
		pthread_mutex_destroy(&lock->gate);
	return (error);
}

static void
lock_destroy(struct e82545_lock *lock)
{
	pthread_mutex_destroy(&lock->mtx);
	pthread_mutex_destroy(&lock->gate);
}

/*
 * Reset, chapter 14: registers, rings, PHY and interrupts get their power-up
 * state, and the station address comes from the EEPROM.  The CSB stays where
 * the guest placed it.  All locks held.
 */
static void
reset_locked(struct e82545 *dev)
{
	unsigned int i;

	for (i = 0; i < E82545_QUEUES; i++) {
		e82545_txq_moved(dev, i);
		e82545_rxq_moved(dev, i);
	}
	e82545_reg_reset(dev);
	e82545_stat_reset(dev);
	e82545_csb_reset(dev);
	e82545_intr_reset(dev);
	if (dev->type->et_reset != NULL)
		dev->type->et_reset(dev);
	e82545_eeprom_reset(dev);
	e82545_phy_reset(dev);
	e82545_txq_reset(dev);
	e82545_loop_reset(dev);
}

/* Reset by the guest, or from outside, which releases the CSB. */
static void
reset(struct e82545 *dev, bool outside)
{
	uint32_t intr_off;

	e82545_lock_rings(dev, RING_BOTH);
	if (e82545_csb_placed(dev) && !outside)
		dev->csb.ops->ecb_idle(dev);
	pthread_mutex_lock(&dev->reg_mtx);
	if (e82545_csb_placed(dev) && outside)
		dev->csb.ops->ecb_release(dev);
	reset_locked(dev);
	intr_off = e82545_intr_off(dev);
	pthread_mutex_unlock(&dev->reg_mtx);
	e82545_unlock_rings(dev, RING_BOTH);
	e82545_intr_withdraw(dev, intr_off);
	e82545_count_any(dev, E82545_C_RESET);
	E82545_PROBE(dev, RESET);
}

/*
 * Life cycle.
 */

/* Where the parts are, bytes from struct e82545. */
struct layout {
	size_t		eeprom, phy, txq, rxq;
	size_t		end;
};

static size_t
layout_add(struct layout *l, size_t size)
{
	const size_t off = l->end;

	l->end = roundup2(off + size, E82545_MEMORY_ALIGN);
	return (off);
}

static struct layout
memory_layout(void)
{
	struct layout l = { .end = 0 };

	layout_add(&l, sizeof(struct e82545));
	l.eeprom = layout_add(&l, e82545_eeprom_size());
	l.phy = layout_add(&l, e82545_phy_size());
	l.txq = layout_add(&l, e82545_txq_size());
	l.rxq = layout_add(&l, e82545_rxq_size());
	return (l);
}

size_t
e82545_memory_size(void)
{
	return (memory_layout().end);
}

static const struct e82545_type *const types[E82545_NKINDS] = {
	[E82545_KIND_EM] = &e82545_em,
	[E82545_KIND_82574L] = &e82574_l,
};

const char *const e82545_csb_names[E82545_NCSBS] = {
	[E82545_CSB_OFF] = "off",
	[E82545_CSB_ON] = "on",
	[E82545_CSB_COMPAT] = "compat",
};

uint16_t
e82545_subdevice(enum e82545_kind kind, enum e82545_csb_kind csb)
{
	return (csb == E82545_CSB_COMPAT ? E82545_PCI_SUBDEVICE_CSB :
	    types[kind]->et_subdevice);
}

static bool
config_valid(const struct e82545_config *config)
{
	if (config->ec_itr_256ns > E82545_ITR_MASK ||
	    config->ec_itr_min_256ns > E82545_ITR_MASK ||
	    (unsigned int)config->ec_kind >= E82545_NKINDS ||
	    (config->ec_mac[0] & 1) != 0)
		return (false);
	return (config->ec_memory == NULL ||
	    ((uintptr_t)config->ec_memory % E82545_MEMORY_ALIGN == 0 &&
	    config->ec_memory_size >= e82545_memory_size()));
}

void
e82545_memory_parts(struct e82545 *dev, void *memory)
{
	const struct layout l = memory_layout();
	uint8_t *p = memory;

	dev->eeprom = (void *)(p + l.eeprom);
	dev->phy = (void *)(p + l.phy);
	dev->txq = (void *)(p + l.txq);
	dev->rxq = (void *)(p + l.rxq);
}

/* Get the memory of an adapter, zeros.  Returns NULL if there is none. */
static struct e82545 *
memory_get(const struct e82545_config *config)
{
	struct e82545 *dev = config->ec_memory;

	if (dev == NULL && (dev = calloc(1, e82545_memory_size())) == NULL)
		return (NULL);
	MPASS(dev->type == NULL);
	dev->allocated = config->ec_memory == NULL;
	e82545_memory_parts(dev, dev);
	return (dev);
}

static void
memory_put(struct e82545 *dev)
{
	dev->magic = 0;
	if (dev->allocated)
		free(dev);
}

/* Fill the EEPROM as it is before a guest writes to it. */
static void
eeprom_fill(struct e82545 *dev)
{
	e82545_eeprom_init(dev->eeprom, dev->type, dev->config.ec_mac,
	    e82545_subdevice(dev->config.ec_kind, dev->config.ec_csb));
}

struct e82545 *
e82545_create(const struct e82545_config *config, const struct e82545_ops *ops,
    void *arg, struct frame_port *port)
{
	struct e82545 *dev;

	if (!config_valid(config)) {
		errno = EINVAL;
		return (NULL);
	}
	e82545_reg_init();
	dev = memory_get(config);
	if (dev == NULL)
		goto nodev;
	dev->type = types[config->ec_kind];
	dev->ops = ops;
	dev->arg = arg;
	dev->port = port;
	dev->config = *config;
	if (config->ec_name != NULL)
		strncpy(dev->name, config->ec_name, sizeof(dev->name) - 1);
	dev->config.ec_name = dev->name;
	/* Another adapter with this configuration must have its own. */
	dev->config.ec_memory = NULL;
	dev->link_up = true;
	eeprom_fill(dev);
	if ((dev->loop = e82545_loop_create()) == NULL)
		goto noloop;
	if (lock_init(&dev->tx_mtx) != 0)
		goto notx;
	if (lock_init(&dev->rx_mtx) != 0)
		goto norx;
	if (pthread_mutex_init(&dev->reg_mtx, NULL) != 0)
		goto noreg;
	e82545_lock_all(dev);
	reset_locked(dev);
	e82545_unlock_all(dev);
	dev->magic = E82545_MAGIC;
	return (dev);

noreg:
	lock_destroy(&dev->rx_mtx);
norx:
	lock_destroy(&dev->tx_mtx);
notx:
	e82545_loop_destroy(dev->loop);
noloop:
	memory_put(dev);
nodev:
	errno = ENOMEM;
	return (NULL);
}

void
e82545_destroy(struct e82545 *dev)
{
	pthread_mutex_destroy(&dev->reg_mtx);
	lock_destroy(&dev->rx_mtx);
	lock_destroy(&dev->tx_mtx);
	e82545_loop_destroy(dev->loop);
	memory_put(dev);
}

void
e82545_timer(struct e82545 *dev)
{
	const struct e82545_csb_ops *ops;
	uint32_t due = 0;

	pthread_mutex_lock(&dev->reg_mtx);
	ops = dev->csb.ops;
	if (!dev->paused) {
		if (e82545_csb_placed(dev))
			due = ops->ecb_due(dev);
		e82545_intr_timer(dev);
	}
	pthread_mutex_unlock(&dev->reg_mtx);
	if ((due & E82545_CSB_TX) != 0 && ops->ecb_tx_recheck(dev))
		dev->ops->eo_tx_kick(dev->arg);
	if ((due & E82545_CSB_RX) != 0 && ops->ecb_rx_recheck(dev))
		dev->ops->eo_rx_ready(dev->arg);
}

void
e82545_link(struct e82545 *dev, bool up)
{
	pthread_mutex_lock(&dev->reg_mtx);
	e82545_phy_link(dev, up);
	pthread_mutex_unlock(&dev->reg_mtx);
}

void
e82545_reset(struct e82545 *dev)
{
	atomic_store_32(&dev->io_addr, 0);
	reset(dev, true);
}

void
e82545_power_cycle(struct e82545 *dev)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame f = { .f_iov = iov };
	unsigned int n;

	e82545_lock_rings(dev, RING_RX);
	frame_port_sync(dev->port);
	for (n = 0; n < PORT_FRAMES &&
	    frame_peek(dev->port->fp_source, &f); n++) {
		e82545_probe_rx_drop(dev, E82545_C_RX_DISABLED, 0);
		frame_next(dev->port->fp_source);
	}
	frame_port_sync(dev->port);
	e82545_count(dev, E82545_C_RX_DISABLED, n);
	e82545_rxq_port(dev);
	e82545_unlock_rings(dev, RING_RX);
	pthread_mutex_lock(&dev->reg_mtx);
	eeprom_fill(dev);
	pthread_mutex_unlock(&dev->reg_mtx);
	e82545_reset(dev);
}

void
e82545_reset_guest(struct e82545 *dev)
{
	reset(dev, false);
}

void
e82545_bus_master(struct e82545 *dev, bool on)
{
	e82545_lock_all(dev);
	dev->bus_master = on;
	e82545_unlock_all(dev);
	if (on) {
		dev->ops->eo_tx_kick(dev->arg);
		dev->ops->eo_rx_ready(dev->arg);
	}
}

void
e82545_change(struct e82545 *dev, uint32_t itr_256ns, uint32_t itr_min_256ns,
    uint32_t frame_max)
{
	MPASS(itr_256ns <= E82545_ITR_MASK && itr_min_256ns <= E82545_ITR_MASK);
	e82545_lock_all(dev);
	dev->config.ec_itr_256ns = itr_256ns;
	dev->config.ec_itr_min_256ns = itr_min_256ns;
	dev->port->fp_frame_max = frame_max;
	e82545_unlock_all(dev);
}

void
e82545_move(struct e82545 *dev, struct frame_port *port, const char *name)
{
	e82545_lock_all(dev);
	e82545_stat_missed(dev);
	memcpy(port->fp_counter, dev->port->fp_counter,
	    sizeof(port->fp_counter));
	dev->port = port;
	dev->stat_missed = frame_port_missed(port);
	e82545_rxq_port(dev);
	strncpy(dev->name, name, sizeof(dev->name) - 1);
	e82545_unlock_all(dev);
}

void
e82545_port_gone(struct e82545 *dev)
{
	e82545_lock_rings(dev, RING_RX);
	e82545_rxq_port(dev);
	e82545_unlock_rings(dev, RING_RX);
}

void
e82545_pause(struct e82545 *dev)
{
	e82545_lock_all(dev);
	dev->paused = true;
	e82545_unlock_all(dev);
}

/* Resume.  The timer may have expired during the pause. */
void
e82545_resume(struct e82545 *dev)
{
	e82545_lock_all(dev);
	dev->paused = false;
	e82545_intr_timer(dev);
	e82545_unlock_all(dev);
	dev->ops->eo_tx_kick(dev->arg);
	dev->ops->eo_rx_ready(dev->arg);
}

const struct counter_row e82545_counter_table[E82545_NCOUNTERS] = {
	COUNTER_ROWS(E82545_COUNTERS)
};

void
e82545_counters(const struct e82545 *dev, uint64_t counters[E82545_NCOUNTERS])
{
	int i;

	for (i = 0; i < E82545_NCOUNTERS; i++)
		counters[i] = atomic_load_64(&dev->counters[i]);
}

void
e82545_mode(const struct e82545 *dev, struct e82545_mode *mode)
{
	const uint64_t own = e82545_filter_own(dev);
	unsigned int i;

	mode->em_csb = atomic_load_32(&dev->csb.on) != 0;
	mode->em_link = (e82545_reg(dev, E82545_STATUS) &
	    E82545_STATUS_LU) != 0;
	/* An 82545EM has no IVAR: it reads as 0. */
	mode->em_itr_256ns = e82574_itr(dev);
	/* None is all ones, a group's, too. */
	for (i = 0; i < sizeof(mode->em_address); i++)
		mode->em_address[i] = (own & 1) != 0 ? 0 : own >> 8 * i;
}

const char *
e82545_name(const struct e82545 *dev)
{
	return (dev->name);
}
