/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * An adapter whose process has died goes on in another process: from ec_memory,
 * in which the state of the adapter lies at all times.
 *
 *	e82545_salvage()	makes a snapshot of it
 *	e82545_recover()	completes, in guest memory, what the process had
 *				begun
 *
 * The process may have ended at any instruction, also inside of a batch.  Most
 * of the state is valid then: a register is stored at once.  The rest is made
 * valid: functions named *_salvage().  That costs nothing before.  What does
 * are a few stores for each batch.  Because a process ends between two of its
 * instructions, only the compiler could change the order of its stores, and
 * e82545_stored() keeps it from that.
 *
 * A batch of the transmit ring:
 *
 *	run	TDH stands.  `now' changes: contexts, what is sent of a packet.
 *		Before the batch it was `settled'.
 *	flush	All frames are sent.
 *	end =	`end' is the index behind the last descriptor, `nreports' of
 *		them must be written back.
 *	settled = now
 *	DD	is written to the descriptors, except the first
 *	nreports |= E82545_FIRST
 *	DD	is written to the first
 *	nreports = 0
 *	TDH =	end
 *
 * If `end' is TDH, the batch has not got there.  Its frames may have been sent
 * or not; the guest has been told of none, and the next process sends them from
 * TDH on, once more, with `settled'.  If `end' is not TDH, all frames are sent,
 * the head is `end', the state is `now', and what nreports says is left to be
 * written back.
 *
 * A batch of the receive ring:
 *
 *	run	Frames are in the guest's buffers, descriptors in `done'.  RDH
 *		stands.
 *	ndone	of them must be written back.
 *	end =	the index behind the last one
 *	write	the descriptors back, except the first
 *	ndone |= E82545_FIRST
 *	write	the first one back
 *	ndone =	0
 *	RDH =	end
 *
 * If `ndone' is not 0, all of the descriptors are written back, and the head is
 * behind them.  The guest has processed none, because it waits for the first
 * one.  If `ndone' is 0 and `end' is not RDH, they have been written back, and
 * the guest may even have posted them again.  This is why the first one is
 * written last: DD alone would not tell.
 *
 * With E82545_FIRST, which is there for two instructions, the first descriptor
 * may have been written back or not.  The first was written back if DD is set,
 * or if the guest has cleared DD in others, or in the first alone:
 * rx_processed().  A guest that processes the only descriptor of a batch, and
 * clears all of it, gets it twice.  On transmit such a guest must have posted
 * the descriptor again; it is then told too early that this was sent.
 *
 * An adapter with two queues has this for each of them.
 *
 * The CSB: an index is taken from the page in one step, and stored in a
 * register in another; `taken' has it between.  Both sides end awake: the
 * transmit side as if the guest had kicked, the receive side as if it had
 * stalled, and the guest by an interrupt.
 *
 * What is lost: frames in the port and in the loopback queue, those that a
 * batch of the receive ring has taken from the port and not begun to write
 * back, and what the last batch would have counted.
 *
 * The memory may have been written by an attacker who controlled the process.
 * So no pointer in it is used, no number before its limits are checked, and the
 * snapshot is checked when it is restored as any other.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "e82545_impl.h"
#include "e82545_intr.h"
#include "e82545_phy.h"
#include "e82545_salvage.h"
#include "e82545_snap.h"
#include "e82545_type.h"

/* Causes of which the guest looks at its rings, or at the link. */
#define	TX_CAUSES	(E82545_ICR_TXDW | E82545_ICR_TXQE |		\
			 E82545_ICR_TXD_LOW)
#define	RX_CAUSES	(E82545_ICR_RXT0 | E82545_ICR_RXDMT0)

static uint64_t
salvage_now(void *arg)
{
	return (*(const uint64_t *)arg);
}

/* The adapter that has the state never runs: the rest is not called. */
static const struct e82545_ops salvage_ops = { .eo_now = salvage_now };
static const struct frame_port_ops salvage_port_ops;

/* Take over what no other file owns. */
static void
salvage_regs(struct e82545 *dev, const struct e82545 *old)
{
	int i;

	memcpy(dev->regs, old->regs, sizeof(dev->regs));
	dev->io_addr = old->io_addr;
	dev->link_up = e82545_salvage_bool(&old->link_up);
	for (i = 0; i < E82545_NCOUNTERS; i++)
		dev->counters[i] = old->counters[i];
}

static bool
salvage_state(struct e82545 *dev, const struct e82545 *old)
{
	salvage_regs(dev, old);
	if (dev->type->et_salvage != NULL)
		dev->type->et_salvage(dev, old);
	return (e82545_stat_salvage(dev, old) &&
	    e82545_eeprom_salvage(dev, old) && e82545_phy_salvage(dev, old) &&
	    e82545_csb_salvage(dev, old) && e82545_txq_salvage(dev, old) &&
	    e82545_rxq_salvage(dev, old) && e82545_intr_salvage(dev, old));
}

/* Copy the memory, with pointers to its parts.  Returns NULL with errno. */
static struct e82545 *
salvage_copy(const void *memory, size_t size)
{
	struct e82545 *old;

	if (size < e82545_memory_size()) {
		errno = EINVAL;
		return (NULL);
	}
	old = malloc(e82545_memory_size());
	if (old == NULL) {
		errno = ENOMEM;
		return (NULL);
	}
	memcpy(old, memory, e82545_memory_size());
	if (old->magic != E82545_MAGIC) {
		free(old);
		errno = EINVAL;
		return (NULL);
	}
	e82545_memory_parts(old, old);
	return (old);
}

ssize_t
e82545_salvage(const void *memory, size_t size,
    const struct e82545_config *config, uint64_t now_ns, void *buf,
    size_t bufsize)
{
	struct frame_port port = { .fp_ops = &salvage_port_ops };
	struct e82545_config c = *config;
	struct e82545 *dev, *old;
	size_t len;
	int error;

	old = salvage_copy(memory, size);
	if (old == NULL)
		return (-1);
	if (old->config.ec_kind != config->ec_kind) {
		free(old);
		errno = EINVAL;
		return (-1);
	}
	c.ec_memory = NULL;
	dev = e82545_create(&c, &salvage_ops, &now_ns, &port);
	if (dev == NULL) {
		error = errno;
		goto out;
	}
	e82545_pause(dev);
	e82545_lock_all(dev);
	error = salvage_state(dev, old) ? 0 : EINVAL;
	e82545_unlock_all(dev);
	len = e82545_snapshot_size(dev);
	/* A state that a snapshot cannot have. */
	if (len == 0)
		error = EINVAL;
	if (error == 0 && buf != NULL)
		error = bufsize < len ? ENOSPC :
		    e82545_snapshot_save(dev, buf, len);
	e82545_destroy(dev);
out:
	free(old);
	if (error != 0) {
		errno = error;
		return (-1);
	}
	return (len);
}

/*
 * Raise every cause that may be lost: an interrupt for nothing does no harm.
 * But for LSC: drivers look at the link, and Linux's e1000 finds it down if a
 * second LSC comes while it does.
 */
static void
recover_intr(struct e82545 *dev)
{
	uint32_t causes = 0;
	unsigned int i;

	if ((e82545_reg(dev, E82545_TCTL) & E82545_TCTL_EN) != 0)
		causes |= TX_CAUSES;
	if ((e82545_reg(dev, E82545_RCTL) & E82545_RCTL_EN) != 0)
		causes |= RX_CAUSES;
	if (causes != 0 && e82545_phy_unseen(dev))
		causes |= E82545_ICR_LSC;
	for (i = 0; i < dev->type->et_queues; i++)
		e82545_intr_rx(dev, i, false, causes);
}

static bool
recover_rings(struct e82545 *dev, struct e82545 *old)
{
	struct e82545 parts;
	unsigned int i;
	bool ok = true;

	if (!dev->bus_master)
		return (true);
	e82545_memory_parts(&parts, old);
	/* Only here: all locks are held. */
	dev->paused = false;
	for (i = 0; i < dev->type->et_queues && ok; i++)
		ok = e82545_tx_recover(dev, i, parts.txq,
		    atomic_load_32(&old->regs[(E82545_TDH +
		    E82574_QUEUE(i)) / 4])) &&
		    e82545_rx_recover(dev, i, parts.rxq,
		    atomic_load_32(&old->regs[(E82545_RDH +
		    E82574_QUEUE(i)) / 4]));
	if (ok && e82545_csb_placed(dev))
		e82545_csb_recover(dev, atomic_load_32(&old->csb.tdt.taken),
		    atomic_load_32(&old->csb.rdt.taken));
	dev->paused = true;
	return (ok);
}

int
e82545_recover(struct e82545 *dev, void *memory, size_t size)
{
	struct e82545 *old = memory;
	int error = 0;

	if (size < e82545_memory_size())
		return (EINVAL);
	e82545_lock_all(dev);
	if (!dev->paused)
		error = EBUSY;
	else if (old->magic != E82545_MAGIC || !recover_rings(dev, old))
		error = EINVAL;
	else
		recover_intr(dev);
	e82545_unlock_all(dev);
	return (error);
}
