/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * One adapter: its start and its end, what the model and the client's commands
 * call, and what the main thread asks of it.  See adapter.h.  What its thread
 * does in between is adapter_work.c, its port adapter_port.c, and what it
 * announces adapter_announce.c.
 *
 * Everything is of the adapter's thread but the last part, which is of the main
 * thread.  A thread that delivers frames to the guest also calls adapter_now(),
 * adapter_map(), adapter_intr(), adapter_message() and adapter_timer(); any
 * thread calls adapter_memory().  The lock of adapter.h is of what the two
 * threads tell each other.
 */

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <dev/e1000/e82574_reg.h>

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "adapter_impl.h"
#include "adapter_keep.h"
#include "e82545.h"
#include "frame_port.h"
#include "loop.h"
#include "peer_fault.h"
#include "valed_sandbox.h"

#define	NS_PER_S	1000000000ULL
/* Between two calls of watch() while an adapter opens what it needs. */
#define	READY_NS	10000000

/* What the model calls the devices. */
static const enum e82545_kind kinds[ADAPTER_NDEVICES] = {
	[ADAPTER_E1000] = E82545_KIND_EM,
	[ADAPTER_E1000E] = E82545_KIND_82574L,
};

/*
 * What the model calls.
 */

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

	return (peer_mem_addr(&ad->vfu.vdev_mem, gpa, len, (int)access));
}

static void
adapter_intr(void *arg, bool asserted)
{
	struct adapter *ad = arg;

	vfu_irq_level(&ad->vfu.vdev_irq, asserted);
}

static void
adapter_message(void *arg, unsigned int vector)
{
	struct adapter *ad = arg;

	vfu_irq_message(&ad->vfu.vdev_irq, vector);
}

static void
adapter_withdraw(void *arg, uint32_t vectors)
{
	struct adapter *ad = arg;

	vfu_irq_withdraw(&ad->vfu.vdev_irq, vectors);
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

/*
 * Have the thread see to the client's memory: it has vanished under an access,
 * a ring must be mapped, or memory cannot be accessed.  Any thread, also in the
 * handler of SIGBUS.
 */
static void
adapter_memory(void *arg)
{
	adapter_post(arg);
}

/*
 * Keep all threads out of guest memory.  The port's event tells of frames that
 * the model has missed, unless the model waits for something else.
 */
static void
adapter_pause(void *arg, bool paused)
{
	struct adapter *ad = arg;
	const bool wanted = ad->rx_wanted;

	if (paused) {
		e82545_pause(ad->dev);
		return;
	}
	e82545_resume(ad->dev);
	ad->rx_wanted = wanted || ad->rx_stopped;
}

static const struct e82545_ops adapter_ops = {
	.eo_map = adapter_map,
	.eo_intr = adapter_intr,
	.eo_message = adapter_message,
	.eo_withdraw = adapter_withdraw,
	.eo_now = adapter_now,
	.eo_timer = adapter_timer,
	.eo_tx_kick = adapter_tx_kick,
	.eo_rx_ready = adapter_rx_ready,
};

/*
 * What the client's commands do.
 */

static uint64_t
adapter_read(void *arg, int bar, uint64_t off, int size)
{
	struct adapter *ad = arg;

	return (e82545_read(ad->dev, bar, off, size));
}

static void
adapter_write(void *arg, int bar, uint64_t off, int size, uint64_t value)
{
	struct adapter *ad = arg;

	e82545_write(ad->dev, bar, off, size, value);
}

static void
adapter_bus_master(void *arg, bool on)
{
	struct adapter *ad = arg;

	e82545_bus_master(ad->dev, on);
	if (on)
		adapter_announce_soon(ad);
}

static void
adapter_msix(void *arg, bool on)
{
	struct adapter *ad = arg;

	e82545_msix(ad->dev, on);
}

/* Start receiving: a client has connected, perhaps another guest's. */
static void
adapter_attach(void *arg)
{
	struct adapter *ad = arg;
	struct timespec ts;

	adapter_assert_thread(ad);
	e82545_power_cycle(ad->dev);
	ad->tx_wanted = false;
	ad->rx_wanted = true;
	ad->unshared = ad->checked = false;
	clock_gettime(CLOCK_REALTIME, &ts);
	atomic_store_64(&ad->since_s, ts.tv_sec);
}

/* Reset the adapter as by PCI RST#. */
static void
adapter_reset(void *arg)
{
	struct adapter *ad = arg;

	adapter_assert_thread(ad);
	e82545_bus_master(ad->dev, false);
	e82545_reset(ad->dev);
	vfu_device_reset(&ad->vfu);
}

static void
adapter_detach(void *arg)
{
	struct adapter *ad = arg;

	adapter_reset(ad);
	vfu_device_release(&ad->vfu);
	atomic_store_64(&ad->since_s, 0);
}

static void __attribute__((__format__(__printf__, 3, 0)))
adapter_vlog(void *arg, int priority, const char *fmt, va_list ap)
{
	struct adapter *ad = arg;

	peer_log(&ad->log, priority, ad->config.ac_name, fmt, ap);
}

static const struct vfu_device_ops adapter_vfu_ops = {
	.vdo_read = adapter_read,
	.vdo_write = adapter_write,
	.vdo_bus_master = adapter_bus_master,
	.vdo_msix = adapter_msix,
	.vdo_reset = adapter_reset,
	.vdo_attach = adapter_attach,
	.vdo_detach = adapter_detach,
	.vdo_log = adapter_vlog,
};

void
adapter_log(struct adapter *ad, int priority, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	adapter_vlog(ad, priority, fmt, ap);
	va_end(ap);
}

/*
 * The thread.
 */

/* Say which limit a client exceeds that shares more memory than mem=. */
static void
memory_over(struct adapter *ad)
{
	const struct adapter_config *ac = &ad->config;
	const char *unit = "MGT";
	uint64_t n = ac->ac_mem >> 20;

	for (; n % 1024 == 0 && unit[1] != '\0' && n > 0; unit++)
		n /= 1024;
	snprintf(ad->mem_over, sizeof(ad->mem_over), "more than mem=%" PRIu64
	    "%c of pci.%d.%d.%d (%s)", n, *unit, ac->ac_bus, ac->ac_slot,
	    ac->ac_func, ac->ac_path[0] != '\0' ? ac->ac_path : "fd=");
	peer_mem_set_over(&ad->vfu.vdev_mem, ad->mem_over);
}

/* Say what the model is made with. */
static void
adapter_model(struct adapter *ad, struct e82545_config *config)
{
	const struct adapter_config *ac = &ad->config;

	memset(config, 0, sizeof(*config));
	pthread_mutex_lock(&ad->mtx);
	config->ec_kind = kinds[ac->ac_device];
	memcpy(config->ec_mac, ac->ac_mac, sizeof(config->ec_mac));
	config->ec_itr_256ns = ac->ac_itr_256ns;
	config->ec_itr_min_256ns = ac->ac_itr_min_256ns;
	config->ec_csb = ac->ac_csb;
	pthread_mutex_unlock(&ad->mtx);
	config->ec_name = ac->ac_name;
	config->ec_memory = adapter_keep_model(ad, &config->ec_memory_size);
}

/*
 * Open everything that the adapter needs, in its own thread, because the events
 * belong to that thread's loop.  If a step fails, adapter_close() undoes the
 * others.
 */
static int
adapter_open(struct adapter *ad)
{
	const struct adapter_config *ac = &ad->config;
	struct e82545_config config;
	int error;

	adapter_model(ad, &config);
	ad->failed = "event descriptors";
	ad->timer_fd = timerfd_create(CLOCK_MONOTONIC,
	    TFD_NONBLOCK | TFD_CLOEXEC);
	ad->work_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (ad->timer_fd == -1 || ad->work_fd == -1 ||
	    loop_round(adapter_work, ad) == -1 ||
	    (ad->timer_ev = loop_add(ad->timer_fd, LOOP_READ,
	    adapter_timer_event, ad)) == NULL ||
	    (ad->work_ev = loop_add(ad->work_fd, LOOP_READ,
	    adapter_work_event, ad)) == NULL)
		return (errno);
	ad->loop = loop_self();
	loop_poll(ac->ac_poll_us * NS_PER_US);
	error = adapter_port_open(ad, ac, &ad->net, &ad->rx_ev);
	if (error != 0)
		return (error);
	ad->failed = "adapter";
	ad->dev = e82545_create(&config, &adapter_ops, ad, ad->net.an_port);
	if (ad->dev == NULL)
		return (errno);
	adapter_port_on_link(ad);
	peer_mem_init(&ad->vfu.vdev_mem, ac->ac_mem, adapter_pause, ad);
	memory_over(ad);
	peer_mem_set_wanted(&ad->vfu.vdev_mem, adapter_memory);
	adapter_keep_start(ad);
	ad->failed = "spare page";
	error = peer_fault_add(&ad->vfu.vdev_mem, adapter_memory, ad);
	if (error != 0)
		return (error);
	ad->failed = "socket";
	if (vfu_server_init(&ad->vfu, ac->ac_listen) != 0)
		return (errno);
	ad->failed = "capabilities";
	if (valed_sandbox_drop() != 0)
		return (errno);
	return (0);
}

/*
 * Go on from what an earlier process has left, if there is something, while
 * other adapters serve: a client may have much.
 */
static void
adapter_resume(struct adapter *ad)
{
	struct e82545_config config;
	bool direct;

	adapter_model(ad, &config);
	adapter_keep_resume(ad, &config);
	/* The link was that of the earlier process's port. */
	ad->shown_down = atomic_load_32(&ad->down) != 0;
	e82545_link(ad->dev, !ad->shown_down);
	adapter_keep_live(ad);
	pthread_mutex_lock(&ad->mtx);
	direct = ad->config.ac_direct;
	pthread_mutex_unlock(&ad->mtx);
	if (direct)
		adapter_port_direct(ad, true);
	/* From now on ports come. */
	if (ad->port_ev != NULL)
		loop_enable(ad->port_ev);
	if (ad->vfu.vdev_server.fd != -1) {
		/* The client was taken over. */
		vfu_irq_flush(&ad->vfu.vdev_irq);
		adapter_post(ad);
	}
	pthread_mutex_lock(&ad->mtx);
	ad->resumed = true;
	pthread_mutex_unlock(&ad->mtx);
}

/* Undo adapter_open(), or those of its steps that were done. */
static void
adapter_close(struct adapter *ad)
{
	vfu_server_fini(&ad->vfu);
	peer_fault_remove(&ad->vfu.vdev_mem);
	/* When this returns, no other thread is in adapter_sink(). */
	if (ad->net.an_port != NULL)
		frame_port_set_sink(ad->net.an_port, NULL, NULL);
	if (ad->dev != NULL)
		e82545_destroy(ad->dev);
	if (ad->port_ev != NULL)
		loop_delete(ad->port_ev);
	adapter_port_close(&ad->net, ad->rx_ev);
	if (ad->work_ev != NULL)
		loop_delete(ad->work_ev);
	if (ad->timer_ev != NULL)
		loop_delete(ad->timer_ev);
	if (ad->work_fd != -1)
		close(ad->work_fd);
	if (ad->timer_fd != -1)
		close(ad->timer_fd);
}

static void *
adapter_thread(void *arg)
{
	struct adapter *ad = arg;

	/* For top(1) and taskset(1). */
	prctl(PR_SET_NAME, ad->config.ac_name);
	adapter_keep_blame(ad);
	ad->error = adapter_open(ad);
	if (ad->error != 0)
		adapter_close(ad);
	else if (!adapter_keep_found(ad))
		adapter_resume(ad);
	pthread_mutex_lock(&ad->mtx);
	ad->opened = true;
	pthread_cond_signal(&ad->ready);
	pthread_mutex_unlock(&ad->mtx);
	if (ad->error != 0)
		return (NULL);
	while (sem_wait(&ad->go) == -1)
		continue;
	if (!ad->resumed)
		adapter_resume(ad);
	loop_run();
	adapter_close(ad);
	if (valed_is_remote(&ad->config))
		close(ad->config.ac_opener);
	adapter_keep_forget(ad);
	return (NULL);
}

/*
 * The main thread.
 */

static void
adapter_free(struct adapter *ad)
{
	pthread_cond_destroy(&ad->ready);
	pthread_mutex_destroy(&ad->mtx);
	sem_destroy(&ad->go);
	free(ad->live);
	adapter_keep_free(ad);
}

/* Wait for a moment.  Returns whether opened, or moved, is set. */
static bool
ready_wait(struct adapter *ad, const bool *set)
{
	struct timespec ts;
	bool is_set;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_nsec += READY_NS;
	if (ts.tv_nsec >= (long)NS_PER_S) {
		ts.tv_nsec -= NS_PER_S;
		ts.tv_sec++;
	}
	pthread_mutex_lock(&ad->mtx);
	if (!*set)
		pthread_cond_clockwait(&ad->ready, &ad->mtx, CLOCK_MONOTONIC,
		    &ts);
	is_set = *set;
	pthread_mutex_unlock(&ad->mtx);
	return (is_set);
}

struct adapter *
adapter_start(const struct adapter_config *config,
    void (*watch)(struct adapter *ending))
{
	struct adapter *ad;
	int error;

	ad = adapter_keep_alloc(config);
	if (ad == NULL)
		return (NULL);
	ad->config = *config;
	ad->rx_stopped = true;
	vfu_device_init(&ad->vfu, &adapter_vfu_ops,
	    &adapter_pci[config->ac_device][config->ac_csb != E82545_CSB_OFF],
	    e82545_subdevice(kinds[config->ac_device], config->ac_csb), ad);
	pthread_mutex_init(&ad->mtx, NULL);
	pthread_cond_init(&ad->ready, NULL);
	if (sem_init(&ad->go, 0, 0) == -1)
		goto fail;
	errno = pthread_create(&ad->thread, NULL, adapter_thread, ad);
	if (errno != 0)
		goto fail;
	while (!ready_wait(ad, &ad->opened))
		if (watch != NULL)
			watch(NULL);
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
	adapter_keep_free(ad);
	return (NULL);
}

void
adapter_go(struct adapter *ad)
{
	sem_post(&ad->go);
}

/* Have the thread change to *config, and to its port if `move' is set. */
static void
change(struct adapter *ad, const struct adapter_config *config, bool move)
{
	pthread_mutex_lock(&ad->mtx);
	if (!move) {
		ad->config.ac_itr_256ns = config->ac_itr_256ns;
		ad->config.ac_itr_min_256ns = config->ac_itr_min_256ns;
		ad->config.ac_mtu = config->ac_mtu;
		ad->config.ac_poll_us = config->ac_poll_us;
		ad->config.ac_direct = config->ac_direct;
		ad->config.ac_announce = config->ac_announce;
	}
	ad->moved = false;
	ad->change.ch_pending = true;
	ad->change.ch_move = move ? config : NULL;
	pthread_mutex_unlock(&ad->mtx);
	adapter_post(ad);
}

void
adapter_change(struct adapter *ad, const struct adapter_config *config)
{
	change(ad, config, false);
}

int
adapter_move(struct adapter *ad, const struct adapter_config *config,
    void (*watch)(struct adapter *ending))
{
	change(ad, config, true);
	while (!ready_wait(ad, &ad->moved))
		watch(NULL);
	return (ad->error);
}

/* Set one of the adapter's members, and wake the thread. */
static void
ask(struct adapter *ad, bool *what)
{
	pthread_mutex_lock(&ad->mtx);
	*what = true;
	pthread_mutex_unlock(&ad->mtx);
	adapter_post(ad);
}

/* Return one of the adapter's members, which the thread sets. */
static bool
is_set(struct adapter *ad, const bool *what)
{
	bool set;

	pthread_mutex_lock(&ad->mtx);
	set = *what;
	pthread_mutex_unlock(&ad->mtx);
	return (set);
}

bool
adapter_resumed(struct adapter *ad)
{
	return (is_set(ad, &ad->resumed));
}

void
adapter_quiesce(struct adapter *ad)
{
	ask(ad, &ad->change.ch_quiesce);
}

bool
adapter_quiesced(struct adapter *ad)
{
	return (is_set(ad, &ad->quiesced));
}

void
adapter_save(struct adapter *ad)
{
	ask(ad, &ad->change.ch_save);
}

bool
adapter_saved(struct adapter *ad)
{
	return (is_set(ad, &ad->saved));
}

void
adapter_stop(struct adapter *ad)
{
	loop_stop(ad->loop);
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
	if (peer_watch_check(&ad->watch,
	    atomic_load_32(&ad->vfu.vdev_irq.calls) +
	    atomic_load_32(&ad->vfu.vdev_server.calls)))
		pthread_kill(ad->thread, PEER_SIGNAL);
}

void
adapter_listen(struct adapter *ad)
{
	const bool idle = peer_mem_idle(&ad->vfu.vdev_mem);

	if (vfu_server_again(&ad->vfu.vdev_server) || idle ||
	    atomic_load_32(&ad->announce) != 0)
		adapter_post(ad);
}
