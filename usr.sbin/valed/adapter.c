/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * One adapter: its thread, and the host's side of the model.  See adapter.h.
 *
 * The thread plays all of the model's parts.  It takes register accesses from
 * the client's messages.  Event handlers only set flags; after all of them,
 * adapter_work() sends and receives one batch each.  If more is pending then,
 * it posts an event to be called again.  So neither direction waits until the
 * other is idle, and a message waits for at most one batch each way.
 *
 * Frames of other adapters of this process do not wait for the thread: their
 * threads deliver them (adapter_sink()), unless direct=off, as long as the
 * client has enabled bus mastering, the guest has posted buffers, and nothing
 * older is in the port's ring.  They wake the thread only for an interrupt.
 *
 * The thread sends interrupts outside of the model: the client may make its
 * eventfd block, and other threads may wait for the model's locks.
 */

#include <sys/param.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <dev/e1000/e82545_reg.h>

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "adapter.h"
#include "debug.h"
#include "e82545.h"
#include "frame_port.h"
#include "libvale.h"
#include "mevent.h"
#include "net_backends.h"
#include "net_port.h"
#include "valed.h"
#include "peer_fault.h"

/*
 * Polls of the guest's CSB in one call of adapter_work().  A poll is far
 * cheaper than a turn of the event loop.
 */
#define	TX_POLLS	16
#define	NS_PER_S	1000000000ULL
/* Between two looks at others while an adapter opens what it needs. */
#define	READY_NS	10000000

static uint64_t
adapter_now(void *arg __unused)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (ts.tv_sec * NS_PER_S + ts.tv_nsec);
}

_Static_assert(E82545_MAP_READ == PROT_READ && E82545_MAP_WRITE == PROT_WRITE,
    "an access is that of mmap(2)");

static void *
adapter_map(void *arg, uint64_t gpa, size_t len, unsigned int access)
{
	struct adapter *ad = arg;

	return (peer_mem_addr(&ad->dma, gpa, len, (int)access));
}

static void
adapter_intr(void *arg, bool asserted)
{
	struct adapter *ad = arg;

	vfu_irq_level(&ad->irq, asserted);
}

static void
adapter_timer(void *arg, uint64_t when_ns)
{
	struct adapter *ad = arg;
	struct itimerspec its;

	memset(&its, 0, sizeof(its));
	its.it_value.tv_sec = when_ns / NS_PER_S;
	its.it_value.tv_nsec = when_ns % NS_PER_S;
	timerfd_settime(ad->timer_fd, TFD_TIMER_ABSTIME, &its, NULL);
}

static void
adapter_tx_kick(void *arg)
{
	struct adapter *ad = arg;

	ad->tx_wanted = true;
}

static void
adapter_rx_ready(void *arg)
{
	struct adapter *ad = arg;

	ad->rx_wanted = true;
}

/* Wake the thread for adapter_work().  Any thread. */
static void
adapter_post(struct adapter *ad)
{
	uint64_t one = 1;

	atomic_thread_fence_rel();
	if (atomic_swap_32(&ad->work_posted, 1) == 0 &&
	    write(ad->work_fd, &one, sizeof(one)) != (ssize_t)sizeof(one))
		atomic_store_rel_32(&ad->work_posted, 0);
}

/*
 * The client's memory has vanished under an access, a ring must be mapped, or
 * memory cannot be accessed: have the thread see to it.  Any thread, also in
 * the handler of SIGBUS.
 */
static void
adapter_memory(void *arg)
{
	adapter_post(arg);
}

/* Keep all threads out of guest memory. */
static void
adapter_pause(void *arg, bool paused)
{
	struct adapter *ad = arg;

	if (paused)
		e82545_pause(ad->dev);
	else
		e82545_resume(ad->dev);
}

/* Frames of another adapter, on that adapter's thread. */
static void
adapter_sink(void *arg, struct frame_source *frames)
{
	struct adapter *ad = arg;

	e82545_rx_direct(ad->dev, frames);
	if (vfu_irq_pending(&ad->irq))
		adapter_post(ad);
}

static const struct e82545_ops adapter_ops = {
	.eo_map = adapter_map,
	.eo_intr = adapter_intr,
	.eo_now = adapter_now,
	.eo_timer = adapter_timer,
	.eo_tx_kick = adapter_tx_kick,
	.eo_rx_ready = adapter_rx_ready,
};

/* Turn the backend's events on or off; if off, frames wait in the port. */
static void
adapter_rx_events(struct adapter *ad, bool on)
{
	if (on == !ad->rx_stopped)
		return;
	ad->rx_stopped = !on;
	if (on)
		netbe_rx_enable(ad->be);
	else
		netbe_rx_disable(ad->be);
}

/* Have one line for a client whose memory its guest cannot use. */
static void
adapter_unshared(struct adapter *ad, const char *what, uint64_t gpa)
{
	if (ad->unshared)
		return;
	ad->unshared = true;
	adapter_log(ad, LOG_WARNING, "%s at %#" PRIx64 ": QEMU needs "
	    "memory-backend-memfd with share=on", what, gpa);
}

/*
 * A guest whose memory the client shares, but has itself as a private copy,
 * seems to post descriptors of zeros.  Look for that until something was sent.
 */
static void
adapter_look(struct adapter *ad)
{
	const uint64_t *desc;
	uint64_t gpa;
	uint32_t head;

	head = e82545_read(ad->dev, E82545_BAR_MEM, E82545_TDH, 4);
	if (head == e82545_read(ad->dev, E82545_BAR_MEM, E82545_TDT, 4)) {
		/* Both are 0 before the first packet. */
		ad->looked = head != 0;
		return;
	}
	if (!vfu_pci_busmaster(&ad->pci))
		return;
	gpa = e82545_read(ad->dev, E82545_BAR_MEM, E82545_TDBAH, 4) << 32 |
	    (e82545_read(ad->dev, E82545_BAR_MEM, E82545_TDBAL, 4) &
	    E82545_DBAL_MASK);
	gpa += head * sizeof(union e82545_txd);
	desc = peer_mem_addr(&ad->dma, gpa, sizeof(union e82545_txd), PROT_READ);
	if (desc == NULL || (desc[0] | desc[1]) != 0)
		return;
	ad->looked = true;
	adapter_unshared(ad, "the guest's transmit descriptors are not in its "
	    "memory", gpa);
}

/* Send a batch, if one is pending.  Returns true if it must be called again. */
static bool
adapter_tx(struct adapter *ad)
{
	enum e82545_tx_state state;
	int i = 0;

	do {
		state = e82545_tx(ad->dev);
	} while ((state == E82545_TX_POLL || state == E82545_TX_YIELD) &&
	    ++i < TX_POLLS);
	if (state == E82545_TX_YIELD)
		sched_yield();
	if (state == E82545_TX_IDLE && !ad->looked)
		adapter_look(ad);
	return (state != E82545_TX_IDLE);
}

/* Send and receive a batch. */
static void
adapter_batches(struct adapter *ad)
{
	adapter_assert_thread(ad);
	adapter_count(ad, ADAPTER_C_WAKEUP);
	if (ad->tx_wanted) {
		ad->tx_wanted = false;
		if (adapter_tx(ad))
			ad->tx_wanted = true;
	}
	if (ad->rx_wanted) {
		ad->rx_wanted = false;
		switch (e82545_rx(ad->dev)) {
		case E82545_RX_IDLE:
			adapter_rx_events(ad, true);
			break;
		case E82545_RX_MORE:
			ad->rx_wanted = true;
			break;
		case E82545_RX_STALLED:
			adapter_rx_events(ad, false);
			break;
		}
	}
	if (ad->tx_wanted || ad->rx_wanted)
		adapter_post(ad);
}

/* The end of a round of events. */
static void
adapter_work(void *arg)
{
	struct adapter *ad = arg;

	/* Other threads may have raised interrupts; so may the batches. */
	vfu_irq_flush(&ad->irq);
	adapter_batches(ad);
	vfu_irq_flush(&ad->irq);
}

static void
adapter_work_event(int fd, enum ev_type type __unused, void *arg)
{
	struct adapter *ad = arg;
	uint64_t gpa, n;

	/* Pairs with adapter_post(): what that thread did before is visible. */
	if (read(fd, &n, sizeof(n)) == (ssize_t)sizeof(n)) {
		(void)atomic_swap_32(&ad->work_posted, 0);
		atomic_thread_fence_acq();
	}
	vfu_server_listen(ad);
	if (peer_mem_gone(&ad->dma, &gpa)) {
		adapter_log(ad, LOG_WARNING, "client dropped: its memory at "
		    "%#" PRIx64 " is gone", gpa);
		adapter_count(ad, ADAPTER_C_GONE);
		vfu_server_drop(ad);
	}
	if (peer_mem_refused(&ad->dma, &gpa))
		adapter_unshared(ad, "the guest uses memory that its client "
		    "does not share,", gpa);
	if (peer_mem_join(&ad->dma)) {
		adapter_count(ad, ADAPTER_C_DMA_JOIN);
		ad->tx_wanted = ad->rx_wanted = true;
	}
}

static void
adapter_timer_event(int fd, enum ev_type type __unused, void *arg)
{
	struct adapter *ad = arg;
	uint64_t n;

	if (read(fd, &n, sizeof(n)) == (ssize_t)sizeof(n))
		e82545_timer(ad->dev);
}

/* The backend has frames. */
static void
adapter_rx_event(int fd __unused, enum ev_type type __unused, void *arg)
{
	struct adapter *ad = arg;

	ad->rx_wanted = true;
}

void
adapter_attach(struct adapter *ad)
{
	adapter_assert_thread(ad);
	ad->tx_wanted = false;
	ad->rx_wanted = true;
	ad->unshared = ad->looked = false;
	ad->refusals = 0;
}

void
adapter_reset(struct adapter *ad)
{
	adapter_assert_thread(ad);
	e82545_bus_master(ad->dev, false);
	e82545_reset(ad->dev);
	vfu_pci_reset(&ad->pci);
	vfu_irq_intx_disable(&ad->irq, false);
}

void
adapter_detach(struct adapter *ad)
{
	adapter_reset(ad);
	vfu_irq_clear(&ad->irq);
	peer_mem_reset(&ad->dma);
}

void
adapter_log(struct adapter *ad, int priority, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	peer_log(&ad->log, priority, ad->config->ac_name, fmt, ap);
	va_end(ap);
}

/*
 * Open everything that the adapter needs, in its own thread, because the events
 * belong to that thread's loop.  If a step fails, adapter_close() undoes the
 * others.
 */
static int
adapter_open(struct adapter *ad)
{
	const struct adapter_config *ac = ad->config;
	struct e82545_config config;
	int error;

	memset(&config, 0, sizeof(config));
	memcpy(config.ec_mac, ac->ac_mac, sizeof(config.ec_mac));
	config.ec_itr_256ns = ac->ac_itr_256ns;
	config.ec_itr_min_256ns = ac->ac_itr_min_256ns;
	config.ec_csb = ac->ac_csb;
	config.ec_name = ac->ac_name;

	ad->failed = "event descriptors";
	ad->timer_fd = timerfd_create(CLOCK_MONOTONIC,
	    TFD_NONBLOCK | TFD_CLOEXEC);
	ad->work_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (ad->timer_fd == -1 || ad->work_fd == -1 ||
	    mevent_round(adapter_work, ad) == -1 ||
	    (ad->timer_ev = mevent_add(ad->timer_fd, EVF_READ,
	    adapter_timer_event, ad)) == NULL ||
	    (ad->work_ev = mevent_add(ad->work_fd, EVF_READ,
	    adapter_work_event, ad)) == NULL)
		return (errno);
	ad->loop = mevent_loop();
	ad->failed = NULL;		/* netbe_init() reports it */
	debug_where(ac->ac_where);
	error = netbe_init(&ad->be, ac->ac_nvl, adapter_rx_event, ad);
	debug_where(NULL);
	if (error != 0)
		return (EIO);
	ad->failed = "settings of the port";
	if ((ac->ac_rate.rc_rate != 0 &&
	    vale_set_rate(ac->ac_backend, &ac->ac_rate) != 0) ||
	    (ac->ac_limit != 0 &&
	    vale_set_limit(ac->ac_backend, ac->ac_limit) != 0) ||
	    (ac->ac_private && vale_set_private(ac->ac_backend, true) != 0) ||
	    (ac->ac_weight != 0 &&
	    vale_set_weight(ac->ac_backend, ac->ac_weight) != 0))
		return (errno);
	ad->failed = "frame port";
	ad->port = net_port_create(ad->be, ac->ac_mtu == 0 ? UINT32_MAX :
	    ac->ac_mtu + E82545_HDRLEN_MAX);
	if (ad->port == NULL)
		return (errno);
	frame_port_set_offloads(ad->port);
	ad->failed = "adapter";
	ad->dev = e82545_create(&config, &adapter_ops, ad, ad->port);
	if (ad->dev == NULL)
		return (errno);
	netbe_rx_disable(ad->be);
	peer_mem_init(&ad->dma, ac->ac_mem, adapter_pause, ad);
	peer_mem_set_wanted(&ad->dma, adapter_memory);
	ad->failed = "spare page";
	error = peer_fault_add(&ad->dma, adapter_memory, ad);
	if (error != 0)
		return (error);
	/* Not every backend can; without it frames are copied once more. */
	if (ac->ac_direct)
		frame_port_set_sink(ad->port, adapter_sink, ad);
	ad->failed = "socket";
	if (vfu_server_init(ad) != 0)
		return (errno);
	ad->failed = "capabilities";
	if (valed_sandbox_drop() != 0)
		return (errno);
	return (0);
}

/* Undo adapter_open(), or those of its steps that were done. */
static void
adapter_close(struct adapter *ad)
{
	vfu_server_fini(ad);
	peer_fault_remove(&ad->dma);
	/* When this returns, no other thread is in adapter_sink(). */
	if (ad->port != NULL)
		frame_port_set_sink(ad->port, NULL, NULL);
	if (ad->dev != NULL)
		e82545_destroy(ad->dev);
	net_port_destroy(ad->port);
	netbe_cleanup(ad->be);
	if (ad->work_ev != NULL)
		mevent_delete(ad->work_ev);
	if (ad->timer_ev != NULL)
		mevent_delete(ad->timer_ev);
	if (ad->work_fd != -1)
		close(ad->work_fd);
	if (ad->timer_fd != -1)
		close(ad->timer_fd);
}

static void
adapter_free(struct adapter *ad)
{
	pthread_cond_destroy(&ad->ready);
	pthread_mutex_destroy(&ad->mtx);
	sem_destroy(&ad->go);
	free(ad->live);
	free(ad);
}

static void *
adapter_thread(void *arg)
{
	struct adapter *ad = arg;

	/* For top(1) and taskset(1). */
	prctl(PR_SET_NAME, ad->config->ac_name);
	ad->error = adapter_open(ad);
	if (ad->error != 0)
		adapter_close(ad);
	pthread_mutex_lock(&ad->mtx);
	ad->opened = true;
	pthread_cond_signal(&ad->ready);
	pthread_mutex_unlock(&ad->mtx);
	if (ad->error != 0)
		return (NULL);
	while (sem_wait(&ad->go) == -1)
		continue;
	mevent_dispatch();
	adapter_close(ad);
	return (NULL);
}

/* Wait for a moment.  Returns whether adapter_open() has returned. */
static bool
ready_wait(struct adapter *ad)
{
	struct timespec ts;
	bool opened;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_nsec += READY_NS;
	if (ts.tv_nsec >= (long)NS_PER_S) {
		ts.tv_nsec -= NS_PER_S;
		ts.tv_sec++;
	}
	pthread_mutex_lock(&ad->mtx);
	if (!ad->opened)
		pthread_cond_clockwait(&ad->ready, &ad->mtx, CLOCK_MONOTONIC,
		    &ts);
	opened = ad->opened;
	pthread_mutex_unlock(&ad->mtx);
	return (opened);
}

struct adapter *
adapter_start(const struct adapter_config *config,
    void (*look)(struct adapter *ending))
{
	struct adapter *ad;
	int error;

	ad = calloc(1, sizeof(*ad));
	if (ad == NULL) {
		warn("%s", config->ac_name);
		return (NULL);
	}
	ad->config = config;
	ad->rx_stopped = true;
	vfu_pci_init(&ad->pci, config->ac_csb ? E82545_PCI_SUBDEVICE_CSB :
	    E82545_PCI_SUBDEVICE);
	vfu_irq_init(&ad->irq);
	pthread_mutex_init(&ad->mtx, NULL);
	pthread_cond_init(&ad->ready, NULL);
	if (sem_init(&ad->go, 0, 0) == -1)
		goto fail;
	errno = pthread_create(&ad->thread, NULL, adapter_thread, ad);
	if (errno != 0)
		goto fail;
	while (!ready_wait(ad))
		if (look != NULL)
			look(NULL);
	if (ad->error != 0) {
		if (ad->failed != NULL)
			adapter_log(ad, LOG_ERR, "%s: %s", ad->failed,
			    strerror(ad->error));
		error = ad->error;
		pthread_join(ad->thread, NULL);
		adapter_free(ad);
		errno = error;
		return (NULL);
	}
	return (ad);

fail:
	adapter_log(ad, LOG_ERR, "cannot start: %s", strerror(errno));
	free(ad);
	return (NULL);
}

void
adapter_go(struct adapter *ad)
{
	sem_post(&ad->go);
}

void
adapter_stop(struct adapter *ad)
{
	mevent_stop(ad->loop);
}

bool
adapter_ended(struct adapter *ad)
{
	if (pthread_tryjoin_np(ad->thread, NULL) != 0)
		return (false);
	adapter_free(ad);
	return (true);
}

void
adapter_watch(struct adapter *ad)
{
	/* The thread is in one call at a time, so one of these is odd. */
	if (peer_watch_check(&ad->watch, atomic_load_32(&ad->irq.calls) +
	    atomic_load_32(&ad->server.calls)))
		pthread_kill(ad->thread, PEER_SIGNAL);
}

void
adapter_listen(struct adapter *ad)
{
	if (vfu_server_again(&ad->server))
		adapter_post(ad);
}
