/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The 82545EM and the 82574L in bhyve: `-s slot,e1000,backend[,mac=][,mtu=]
 * [,itr=][,itr_min=][,csb=]', and e1000e with the same options.
 *
 * This file gives the model (e82545.h) its threads and its ways out:
 *
 *	register	the vCPU threads, through the BARs
 *	transmit	a thread of the adapter's own, which sleeps until kicked
 *	timer		the same thread, because the event loop's timers count
 *			ms and interrupt moderation ns.  If a batch that it has
 *			sent arms the timer, it sleeps until that is due, and no
 *			other thread is woken to do so.
 *	receive		bhyve's event loop
 *
 * Frames go through a frame port (net_port.h) over bhyve's network backend.
 *
 * Receiving: the backend's event calls e82545_rx().  When the guest has no
 * buffers the event is disabled, so that frames wait in the backend.  All of
 * that happens in the event loop's thread; a vCPU thread that posts buffers
 * again only writes to ready_fd, an event of its own, whose handler enables the
 * backend's.  So the two cannot cross, and frames that come from the model
 * itself (loopback) are found although the backend has none.
 *
 * `mtx' protects what the vCPUs, the event loop and the adapter's thread share.
 * That lock is held for a few instructions, and nothing is called under it.
 *
 * MSI-X of the 82574L: bhyve has the capability, and the table in a BAR of its
 * own; pci_msix_pending.c keeps the messages of masked vectors.
 *
 * SIGINFO prints the counters of all adapters: ^T on bhyve's terminal.
 *
 * Save and restore: bhyve pauses its vCPUs, then the devices.  What the kernel
 * saves of its interrupt controllers counts the devices that hold a line
 * asserted; bhyve does not save that this device did.  So a paused device
 * releases its line, and asserts it again when it is resumed, here or in the
 * process that restored it.  A message that comes while the device is paused is
 * pending until then.
 */

#ifndef WITHOUT_CAPSICUM
#include <sys/capsicum.h>
#endif
#include <sys/eventfd.h>
#include <sys/nv.h>
#include <sys/queue.h>
#include <sys/systm.h>

#include <dev/e1000/e82574_reg.h>
#ifdef BHYVE_SNAPSHOT
#include <machine/vmm_snapshot.h>
#endif

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <pthread_np.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bhyverun.h"
#include "config.h"
#include "debug.h"
#include "e82545.h"
#include "frame_port.h"
#include "mevent.h"
#include "net_backends.h"
#include "net_port.h"
#include "pci_e82545_opts.h"
#include "pci_emul.h"
#include "pci_msix_pending.h"

/*
 * Batches received in one call from the event loop, which has other devices to
 * serve.  If frames are still pending then, ready_fd brings us back.
 */
#define	E82545_RX_ROUNDS	16

#define	NSEC		1000000000

/* Where the header of configuration space ends. */
#define	PCI_HEADER_SIZE		0x40

struct pci_e82545 {
	SLIST_ENTRY(pci_e82545) link;	/* pci_e82545_all */
	struct pci_devinst *pi;
	struct e82545	*dev;
	net_backend_t	*be;
	struct frame_port *port;
	int		 ready_fd;
	struct mevent	*ready;

	/* The model's register lock; a pause waits until nobody has it. */
	bool		 line;		/* asserted, by the model; atomic */
	bool		 paused;

	struct pci_msix_pending msix;	/* its mutex after the register lock */

	pthread_mutex_t	 mtx;
	pthread_cond_t	 cond;		/* for the thread, of what follows */
	pthread_t	 thread;
	bool		 tx_kicked;
	uint64_t	 timer_ns;	/* when it runs out; 0: disarmed */
};

/* All adapters of this virtual machine.  The event loop's thread. */
static SLIST_HEAD(, pci_e82545) pci_e82545_all =
    SLIST_HEAD_INITIALIZER(pci_e82545_all);

/*
 * The model's operations: see e82545.h.
 */

static void *
pci_e82545_map(void *arg, uint64_t gpa, size_t len,
    unsigned int access __unused)
{
	struct pci_e82545 *pe;

	pe = arg;
	return (paddr_guest2host(pe->pi->pi_vmctx, gpa, len));
}

/*
 * Set the line, of which bhyve learns even with MSI on: it is pending then, and
 * right if the guest turns MSI off.
 */
static void
pci_e82545_intr(void *arg, bool asserted)
{
	struct pci_e82545 *pe;

	pe = arg;
	atomic_store_bool(&pe->line, asserted);
	if (pe->paused)
		return;
	if (asserted) {
		pci_lintr_assert(pe->pi);
		if (pci_msi_enabled(pe->pi))
			pci_generate_msi(pe->pi, 0);
	} else
		pci_lintr_deassert(pe->pi);
}

static void
pci_e82545_message(void *arg, unsigned int vector)
{
	struct pci_e82545 *pe;

	pe = arg;
	pci_msix_pending_send(&pe->msix, vector);
}

static uint64_t
pci_e82545_now(void *arg __unused)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((uint64_t)ts.tv_sec * NSEC + ts.tv_nsec);
}

/*
 * Set the timer.  The thread is woken only if it would wake too late by itself.
 */
static void
pci_e82545_timer(void *arg, uint64_t when_ns)
{
	struct pci_e82545 *pe;
	uint64_t old_ns;

	pe = arg;
	pthread_mutex_lock(&pe->mtx);
	old_ns = pe->timer_ns;
	pe->timer_ns = when_ns;
	pthread_mutex_unlock(&pe->mtx);
	if (when_ns != 0 && (old_ns == 0 || when_ns < old_ns))
		pthread_cond_signal(&pe->cond);
}

static void
pci_e82545_tx_kick(void *arg)
{
	struct pci_e82545 *pe;
	bool kicked;

	pe = arg;
	pthread_mutex_lock(&pe->mtx);
	kicked = pe->tx_kicked;
	pe->tx_kicked = true;
	pthread_mutex_unlock(&pe->mtx);
	if (!kicked)
		pthread_cond_signal(&pe->cond);
}

static void
pci_e82545_rx_ready(void *arg)
{
	struct pci_e82545 *pe;

	pe = arg;
	eventfd_write(pe->ready_fd, 1);
}

static const struct e82545_ops pci_e82545_ops = {
	.eo_map = pci_e82545_map,
	.eo_intr = pci_e82545_intr,
	.eo_message = pci_e82545_message,
	.eo_now = pci_e82545_now,
	.eo_timer = pci_e82545_timer,
	.eo_tx_kick = pci_e82545_tx_kick,
	.eo_rx_ready = pci_e82545_rx_ready,
};

/*
 * The receive thread, which is bhyve's event loop.
 */

static void
pci_e82545_rx(struct pci_e82545 *pe)
{
	enum e82545_rx_state state;
	int rounds;

	rounds = E82545_RX_ROUNDS;
	do {
		state = e82545_rx(pe->dev);
	} while (state == E82545_RX_MORE && --rounds > 0);
	if (state == E82545_RX_STALLED)
		netbe_rx_disable(pe->be);
	else if (state == E82545_RX_MORE)
		eventfd_write(pe->ready_fd, 1);
}

static void
pci_e82545_rx_event(int fd __unused, enum ev_type type __unused, void *param)
{
	pci_e82545_rx(param);
}

static void
pci_e82545_ready_event(int fd, enum ev_type type __unused, void *param)
{
	struct pci_e82545 *pe;
	eventfd_t n;

	pe = param;
	eventfd_read(fd, &n);
	netbe_rx_enable(pe->be);
	pci_e82545_rx(pe);
}

/*
 * Print the counters that are not 0, a line each, on SIGINFO.  The event loop's
 * thread.
 */
static void
pci_e82545_info(int sig __unused, enum ev_type type __unused,
    void *arg __unused)
{
	uint64_t n[E82545_NCOUNTERS];
	struct pci_e82545 *pe;
	const char *name;
	uint64_t value;
	int i;

	SLIST_FOREACH(pe, &pci_e82545_all, link) {
		name = e82545_name(pe->dev);
		e82545_counters(pe->dev, n);
		for (i = 0; i < E82545_NCOUNTERS; i++)
			if (n[i] != 0)
				EPRINTLN("%s: %s %" PRIu64, name,
				    e82545_counter_table[i].cr_name, n[i]);
		for (i = 0; i < FRAME_PORT_NCOUNTERS; i++) {
			value = frame_port_counter(pe->port, i);
			if (value != 0)
				EPRINTLN("%s: %s %" PRIu64, name,
				    frame_port_counter_table[i].cr_name,
				    value);
		}
	}
}

/* Add an adapter to those that SIGINFO shows; the first one adds the event. */
static void
pci_e82545_info_add(struct pci_e82545 *pe)
{
	if (SLIST_EMPTY(&pci_e82545_all) &&
	    mevent_add(SIGINFO, EVF_SIGNAL, pci_e82545_info, NULL) == NULL)
		EPRINTLN("%s: no counters on SIGINFO: %s",
		    e82545_name(pe->dev), strerror(errno));
	SLIST_INSERT_HEAD(&pci_e82545_all, pe, link);
}

/*
 * The adapter's own thread.
 */

/* Send a batch.  Returns whether there is more to do. */
static bool
pci_e82545_tx(struct pci_e82545 *pe)
{
	enum e82545_tx_state state;

	state = e82545_tx(pe->dev);
	if (state == E82545_TX_YIELD)
		sched_yield();
	return (state != E82545_TX_IDLE);
}

/* Wait for a kick or the timer; mtx is held. */
static void
pci_e82545_wait(struct pci_e82545 *pe)
{
	struct timespec ts;

	if (pe->timer_ns == 0) {
		pthread_cond_wait(&pe->cond, &pe->mtx);
		return;
	}
	ts.tv_sec = pe->timer_ns / NSEC;
	ts.tv_nsec = pe->timer_ns % NSEC;
	pthread_cond_timedwait(&pe->cond, &pe->mtx, &ts);
}

static void *
pci_e82545_main(void *arg)
{
	struct pci_e82545 *pe;
	bool due, more;

	pe = arg;
	more = false;
	pthread_mutex_lock(&pe->mtx);
	for (;;) {
		due = pe->timer_ns != 0 && pci_e82545_now(pe) >= pe->timer_ns;
		if (due) {
			pe->timer_ns = 0;
			pthread_mutex_unlock(&pe->mtx);
			e82545_timer(pe->dev);
			pthread_mutex_lock(&pe->mtx);
		}
		/* A guest may have the timer due again at once. */
		if (more || pe->tx_kicked) {
			pe->tx_kicked = false;
			pthread_mutex_unlock(&pe->mtx);
			more = pci_e82545_tx(pe);
			pthread_mutex_lock(&pe->mtx);
		} else if (!due)
			pci_e82545_wait(pe);
	}
	/* NOTREACHED */
}

/* Start the thread, under a name such as "e82545-2:0". */
static int
pci_e82545_start(struct pci_e82545 *pe)
{
	char name[32];
	int error;

	error = pthread_create(&pe->thread, NULL, pci_e82545_main, pe);
	if (error == 0) {
		snprintf(name, sizeof(name), "e82545-%d:%d", pe->pi->pi_slot,
		    pe->pi->pi_func);
		pthread_set_name_np(pe->thread, name);
	}
	return (error);
}

/*
 * bhyve's side: creation, configuration space and register accesses.
 */

/*
 * Fill in configuration space.  The revision stays 0, as of bhyve's own:
 * Windows has it in its devices' IDs.
 */
static void
pci_e82545_cfgspace(struct pci_devinst *pi, enum e82545_kind kind,
    enum e82545_csb_kind csb)
{
	pci_set_cfgdata16(pi, PCIR_VENDOR, E82545_PCI_VENDOR);
	pci_set_cfgdata16(pi, PCIR_DEVICE, kind == E82545_KIND_EM ?
	    E82545_PCI_DEVICE : E82574_PCI_DEVICE);
	pci_set_cfgdata16(pi, PCIR_SUBVEND_0, E82545_PCI_VENDOR);
	pci_set_cfgdata16(pi, PCIR_SUBDEV_0, e82545_subdevice(kind, csb));
	pci_set_cfgdata8(pi, PCIR_CLASS, PCIC_NETWORK);
	pci_set_cfgdata8(pi, PCIR_SUBCLASS, PCIS_NETWORK_ETHERNET);
	pci_set_cfgdata8(pi, PCIR_HDRTYPE, PCIM_HDRTYPE_NORMAL);
	pci_set_cfgdata8(pi, PCIR_INTPIN, 1);
}

/*
 * Add the capability of the CSB.  bhyve has it read-only, as each that it does
 * not know, and finds a capability by the offset of the next one.
 */
static void
pci_e82545_csbcap(struct pci_devinst *pi)
{
	const int off = pi->pi_capend + 1;

	pci_set_cfgdata8(pi, off, PCIY_VENDOR);
	pci_set_cfgdata8(pi, off + E82545_CSB_CAP_LENGTH, E82545_CSB_CAP_SIZE);
	pci_set_cfgdata32(pi, off + E82545_CSB_CAP_SIGNATURE,
	    E82545_CSB_SIGNATURE);
	pci_set_cfgdata32(pi, off + E82545_CSB_CAP_VERSION,
	    E82545_CSB_VERSION);
	pci_set_cfgdata8(pi, pi->pi_prevcap + PCICAP_NEXTPTR, off);
	pi->pi_prevcap = off;
	pi->pi_capend = off + E82545_CSB_CAP_SIZE - 1;
}

/* Add what an adapter of this kind has; bhyve chooses the BAR of MSI-X. */
static int
pci_e82545_resources(struct pci_devinst *pi, enum e82545_kind kind)
{
	const bool em = kind == E82545_KIND_EM;

	if (pci_emul_alloc_bar(pi, E82545_BAR_MEM, PCIBAR_MEM32,
	    E82545_BAR_MEM_SIZE) != 0 ||
	    (!em && pci_emul_alloc_bar(pi, E82574_BAR_FLASH, PCIBAR_MEM32,
	    E82574_BAR_FLASH_SIZE) != 0) ||
	    pci_emul_alloc_bar(pi, E82545_BAR_IO, PCIBAR_IO,
	    em ? E82545_BAR_IO_SIZE : E82574_BAR_IO_SIZE) != 0 ||
	    pci_emul_add_msicap(pi, 1) != 0)
		return (-1);
	if (!em && (pci_emul_add_pciecap(pi, PCIEM_TYPE_ENDPOINT) != 0 ||
	    pci_emul_add_msixcap(pi, E82574_VECTORS, E82574_BAR_MSIX) != 0))
		return (-1);
	pci_lintr_request(pi);
	return (0);
}

static int
pci_e82545_sync_init(struct pci_e82545 *pe)
{
	pthread_condattr_t attr;
	int error;

	error = pthread_condattr_init(&attr);
	if (error != 0)
		return (error);
	error = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	if (error != 0)
		goto out;
	error = pthread_mutex_init(&pe->mtx, NULL);
	if (error != 0)
		goto out;
	error = pci_msix_pending_init(&pe->msix, pe->pi);
	if (error != 0)
		goto fail_mtx;
	error = pthread_cond_init(&pe->cond, &attr);
	if (error == 0)
		goto out;
	pci_msix_pending_destroy(&pe->msix);
fail_mtx:
	pthread_mutex_destroy(&pe->mtx);
out:
	pthread_condattr_destroy(&attr);
	return (error);
}

static void
pci_e82545_sync_destroy(struct pci_e82545 *pe)
{
	pthread_cond_destroy(&pe->cond);
	pci_msix_pending_destroy(&pe->msix);
	pthread_mutex_destroy(&pe->mtx);
}

/* Apply the low byte of the PCI command register. */
static void
pci_e82545_bus_master(struct pci_e82545 *pe, uint8_t command)
{
	e82545_bus_master(pe->dev, (command & PCIM_CMD_BUSMASTEREN) != 0);
}

/* Return whether the device has MSI-X. */
static bool
pci_e82545_has_msix(struct pci_devinst *pi)
{
	return (pci_msix_table_bar(pi) != -1);
}

/* Apply the capability of MSI-X, and that of MSI, which overrides it. */
static void
pci_e82545_msix(struct pci_e82545 *pe)
{
	if (pci_e82545_has_msix(pe->pi))
		e82545_msix(pe->dev, pci_msix_enabled(pe->pi) != 0);
}

/*
 * Create an event whose descriptor has no rights but to wait, to read and to
 * write.  A kernel without capsicum(4) has no rights to take.
 */
static int
pci_e82545_eventfd(void)
{
#ifndef WITHOUT_CAPSICUM
	cap_rights_t rights;
#endif
	int fd;

	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
#ifndef WITHOUT_CAPSICUM
	cap_rights_init(&rights, CAP_EVENT, CAP_READ, CAP_WRITE);
	if (fd != -1 && cap_rights_limit(fd, &rights) == -1 &&
	    errno != ENOSYS) {
		close(fd);
		return (-1);
	}
#endif
	return (fd);
}

static int
pci_e82545_create(struct pci_devinst *pi, nvlist_t *nvl,
    enum e82545_kind kind)
{
	struct e82545_config config;
	struct pci_e82545 *pe;
	char name[32];
	uint32_t mtu;
	int error;

	memset(&config, 0, sizeof(config));
	snprintf(name, sizeof(name), "%s %d:%d", pi->pi_d->pe_emu, pi->pi_slot,
	    pi->pi_func);
	config.ec_kind = kind;
	config.ec_name = name;
	config.ec_csb = E82545_CSB_ON;
	mtu = E82545_MTU_MAX;
	if (pci_e82545_opts(pi, nvl, &config, &mtu) != 0) {
		error = EINVAL;
		goto told;
	}
	pci_e82545_cfgspace(pi, kind, config.ec_csb);
	if (pci_e82545_resources(pi, kind) != 0) {
		EPRINTLN("%s: no address space for its BARs", name);
		error = ENXIO;
		goto told;
	}
	if (config.ec_csb != E82545_CSB_OFF)
		pci_e82545_csbcap(pi);

	pe = calloc(1, sizeof(*pe));
	if (pe == NULL) {
		error = ENOMEM;
		goto fail;
	}
	pe->pi = pi;
	error = pci_e82545_sync_init(pe);
	if (error != 0)
		goto fail_pe;
	pe->ready_fd = pci_e82545_eventfd();
	if (pe->ready_fd == -1) {
		error = errno;
		goto fail_sync;
	}
	error = netbe_init(&pe->be, nvl, pci_e82545_rx_event, pe);
	if (error == EINVAL)
		EPRINTLN("%s: backend=%s: no network backend has this name",
		    name, get_config_value_node(nvl, "backend"));
	if (error != 0) {
		error = ENXIO;
		goto fail_fd;
	}
	pe->port = net_port_create(pe->be, mtu + E82545_HDRLEN_MAX);
	if (pe->port == NULL) {
		error = ENOMEM;
		goto fail_be;
	}
	frame_port_set_offloads(pe->port);
	pe->dev = e82545_create(&config, &pci_e82545_ops, pe, pe->port);
	if (pe->dev == NULL) {
		error = errno;
		goto fail_port;
	}
	pe->ready = mevent_add(pe->ready_fd, EVF_READ,
	    pci_e82545_ready_event, pe);
	if (pe->ready == NULL) {
		error = ENOMEM;
		goto fail_dev;
	}
	pi->pi_arg = pe;
	pci_e82545_info_add(pe);
	error = pci_e82545_start(pe);
	if (error != 0)
		goto fail_info;
	netbe_rx_enable(pe->be);
	pci_e82545_bus_master(pe, pci_get_cfgdata8(pi, PCIR_COMMAND));
	return (0);

fail_info:
	SLIST_REMOVE(&pci_e82545_all, pe, pci_e82545, link);
	mevent_delete(pe->ready);
fail_dev:
	e82545_destroy(pe->dev);
fail_port:
	net_port_destroy(pe->port);
fail_be:
	netbe_cleanup(pe->be);
fail_fd:
	close(pe->ready_fd);
fail_sync:
	pci_e82545_sync_destroy(pe);
fail_pe:
	free(pe);
fail:
	EPRINTLN("%s: cannot be set up with backend=%s: %s", name,
	    get_config_value_node(nvl, "backend"), strerror(error));
told:
	/* bhyve's last line is what errno stands for. */
	errno = error;
	return (error);
}

static int
pci_e82545_init(struct pci_devinst *pi, nvlist_t *nvl)
{
	return (pci_e82545_create(pi, nvl, E82545_KIND_EM));
}

static int
pci_e82574_init(struct pci_devinst *pi, nvlist_t *nvl)
{
	return (pci_e82545_create(pi, nvl, E82545_KIND_82574L));
}

/*
 * Interrupt status is bit 3 of the status register, whether or not the command
 * register or MSI disables the line: PCI 3.0 section 6.2.3.  Everything else is
 * read as bhyve stores it.
 */
static int
pci_e82545_cfgread(struct pci_devinst *pi, int offset, int bytes,
    uint32_t *valuep)
{
	struct pci_e82545 *pe;
	uint32_t value;
	int i;

	pe = pi->pi_arg;
	if (offset > PCIR_STATUS || offset + bytes <= PCIR_STATUS ||
	    !atomic_load_bool(&pe->line))
		return (-1);
	value = (uint32_t)PCIM_STATUS_INTxSTATE << 8 * (PCIR_STATUS - offset);
	for (i = 0; i < bytes; i++)
		value |= (uint32_t)pci_get_cfgdata8(pi, offset + i) << 8 * i;
	*valuep = value;
	return (0);
}

/*
 * Apply a write, whose value bhyve stores; bhyve makes no unaligned calls.  A
 * capability may turn MSI-X on or off, or unmask it, so bhyve is asked to store
 * it first.
 */
static int
pci_e82545_cfgwrite(struct pci_devinst *pi, int offset, int bytes,
    uint32_t value)
{
	struct pci_e82545 *pe;

	pe = pi->pi_arg;
	if (offset == PCIR_COMMAND)
		pci_e82545_bus_master(pe, value);
	if (!pci_e82545_has_msix(pi) || offset < PCI_HEADER_SIZE ||
	    offset > pi->pi_capend)
		return (-1);
	pci_msix_pending_capability(&pe->msix, offset, bytes, value);
	pci_e82545_msix(pe);
	return (0);
}

static void
pci_e82545_barwrite(struct pci_devinst *pi, int baridx, uint64_t offset,
    int size, uint64_t value)
{
	struct pci_e82545 *pe;

	pe = pi->pi_arg;
	if (baridx == pci_msix_table_bar(pi))
		pci_msix_pending_write(&pe->msix, offset, size, value);
	else
		e82545_write(pe->dev, baridx, offset, size, value);
}

static uint64_t
pci_e82545_barread(struct pci_devinst *pi, int baridx, uint64_t offset,
    int size)
{
	struct pci_e82545 *pe;

	pe = pi->pi_arg;
	if (baridx == pci_msix_table_bar(pi))
		return (pci_msix_pending_read(&pe->msix, offset, size));
	return (e82545_read(pe->dev, baridx, offset, size));
}

#ifdef BHYVE_SNAPSHOT
static int
pci_e82545_pause(struct pci_devinst *pi)
{
	struct pci_e82545 *pe;

	pe = pi->pi_arg;
	e82545_pause(pe->dev);
	pe->paused = true;
	if (pe->line)
		pci_lintr_deassert(pi);
	pci_msix_pending_pause(&pe->msix, true);
	return (0);
}

static int
pci_e82545_resume(struct pci_devinst *pi)
{
	struct pci_e82545 *pe;

	pe = pi->pi_arg;
	pe->paused = false;
	if (pe->line)
		pci_lintr_assert(pi);
	pci_msix_pending_pause(&pe->msix, false);
	e82545_resume(pe->dev);
	return (0);
}

/* Save or restore, between pause and resume. */
static int
pci_e82545_snapshot(struct vm_snapshot_meta *meta)
{
	struct pci_devinst *pi;
	struct pci_e82545 *pe;
	uint64_t size;
	uint32_t pending;
	void *buf;
	int error;

	pi = meta->dev_data;
	pe = pi->pi_arg;
	buf = NULL;
	size = e82545_snapshot_size(pe->dev);
	SNAPSHOT_VAR_OR_LEAVE(size, meta, error, out);
	pending = pe->msix.pm_bits;
	if (pci_e82545_has_msix(pi))
		SNAPSHOT_VAR_OR_LEAVE(pending, meta, error, out);
	error = EINVAL;
	if (meta->op == VM_SNAPSHOT_RESTORE &&
	    (size > meta->buffer.buf_rem || pending >> E82574_VECTORS != 0))
		goto out;
	error = ENOMEM;
	buf = malloc(size);
	if (buf == NULL)
		goto out;
	if (meta->op == VM_SNAPSHOT_SAVE) {
		error = e82545_snapshot_save(pe->dev, buf, size);
		if (error != 0)
			goto out;
	}
	SNAPSHOT_BUF_OR_LEAVE(buf, size, meta, error, out);
	if (meta->op == VM_SNAPSHOT_RESTORE) {
		/* bhyve has restored configuration space before. */
		pci_e82545_msix(pe);
		error = e82545_snapshot_restore(pe->dev, buf, size);
		if (error == 0)
			pe->msix.pm_bits = pending;
		pci_e82545_bus_master(pe, pci_get_cfgdata8(pi, PCIR_COMMAND));
	}
out:
	if (error != 0)
		EPRINTLN("%s: cannot be %s: %s%s", pi->pi_name,
		    meta->op == VM_SNAPSHOT_SAVE ? "saved" : "restored",
		    error == ENOTSUP ? "saved by another version of " :
		    error == EINVAL ? "not a snapshot of such an " :
		    strerror(error),
		    error == ENOTSUP || error == EINVAL ? pi->pi_d->pe_emu :
		    "");
	free(buf);
	return (error);
}
#endif

static const struct pci_devemu pci_de_e82545 = {
	.pe_emu = "e1000",
	.pe_init = pci_e82545_init,
	.pe_legacy_config = netbe_legacy_config,
	.pe_cfgread = pci_e82545_cfgread,
	.pe_cfgwrite = pci_e82545_cfgwrite,
	.pe_barwrite = pci_e82545_barwrite,
	.pe_barread = pci_e82545_barread,
#ifdef BHYVE_SNAPSHOT
	.pe_snapshot = pci_e82545_snapshot,
	.pe_pause = pci_e82545_pause,
	.pe_resume = pci_e82545_resume,
#endif
};
PCI_EMUL_SET(pci_de_e82545);

static const struct pci_devemu pci_de_e82574 = {
	.pe_emu = "e1000e",
	.pe_init = pci_e82574_init,
	.pe_legacy_config = netbe_legacy_config,
	.pe_cfgread = pci_e82545_cfgread,
	.pe_cfgwrite = pci_e82545_cfgwrite,
	.pe_barwrite = pci_e82545_barwrite,
	.pe_barread = pci_e82545_barread,
#ifdef BHYVE_SNAPSHOT
	.pe_snapshot = pci_e82545_snapshot,
	.pe_pause = pci_e82545_pause,
	.pe_resume = pci_e82545_resume,
#endif
};
PCI_EMUL_SET(pci_de_e82574);
