/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * One virtual machine: its thread, and what the adapter model asks of its
 * host.  See vm.h.
 *
 * The thread plays all of the model's parts.  Register accesses come out of
 * the client's messages; when all that had arrived are done, vm_work() sends
 * and receives one batch each.  What is left over after a batch is asked for
 * again through an event of our own, so that neither direction, nor the
 * client, has to wait for the others to run dry.
 *
 * What other VMs of this process send does not wait for the thread: theirs
 * bring it here (vm_sink()), unless direct=off says otherwise, as long as the
 * client lets the adapter have the bus, the guest has buffers, and nothing
 * older is in the port's ring.  An interrupt is the only thing that the thread
 * is woken for then.
 *
 * Interrupts are sent from here, and not from inside the model: the client may
 * make its event block, and others may be waiting for the model's locks.
 */

#include <sys/param.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <dev/e1000/e82545_reg.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "e82545.h"
#include "frame_port.h"
#include "libvale.h"
#include "mevent.h"
#include "net_backends.h"
#include "net_port.h"
#include "valed.h"
#include "vm.h"

/*
 * Rounds of transmit without a frame, the model polling the guest's CSB, before
 * others have their turn, the guest, messages and the receive side: a round is
 * far cheaper than a turn.
 */
#define	TX_POLLS	16
/* Lines of log a second. */
#define	LOG_LIMIT	10
#define	NS_PER_S	1000000000ULL

static uint64_t
vm_now(void *arg __unused)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (ts.tv_sec * NS_PER_S + ts.tv_nsec);
}

static void *
vm_map(void *arg, uint64_t gpa, size_t len)
{
	struct vm *vm = arg;

	return (vfu_dma_addr(&vm->dma, gpa, len));
}

static void
vm_intr(void *arg, bool asserted)
{
	struct vm *vm = arg;

	vfu_irq_level(&vm->irq, asserted);
}

static void
vm_timer(void *arg, uint64_t when_ns)
{
	struct vm *vm = arg;
	struct itimerspec its;

	memset(&its, 0, sizeof(its));
	its.it_value.tv_sec = when_ns / NS_PER_S;
	its.it_value.tv_nsec = when_ns % NS_PER_S;
	timerfd_settime(vm->timer_fd, TFD_TIMER_ABSTIME, &its, NULL);
}

static void
vm_tx_kick(void *arg)
{
	struct vm *vm = arg;

	vm->tx_wanted = true;
}

static void
vm_rx_ready(void *arg)
{
	struct vm *vm = arg;

	vm->rx_wanted = true;
}

/* Have the thread look for what there is to do.  Any thread. */
static void
vm_post(struct vm *vm)
{
	uint64_t one = 1;

	if (!__atomic_exchange_n(&vm->work_posted, true, __ATOMIC_ACQ_REL) &&
	    write(vm->work_fd, &one, sizeof(one)) != (ssize_t)sizeof(one))
		__atomic_store_n(&vm->work_posted, false, __ATOMIC_RELEASE);
}

/* Frames of another VM, on its thread. */
static void
vm_sink(void *arg, struct frame_source *frames)
{
	struct vm *vm = arg;

	e82545_rx_direct(vm->dev, frames);
	if (vfu_irq_pending(&vm->irq))
		vm_post(vm);
}

static const struct e82545_ops vm_ops = {
	.eo_map = vm_map,
	.eo_intr = vm_intr,
	.eo_now = vm_now,
	.eo_timer = vm_timer,
	.eo_tx_kick = vm_tx_kick,
	.eo_rx_ready = vm_rx_ready,
};

/* Have the backend tell us of frames, or not: then they wait at the port. */
static void
vm_rx_events(struct vm *vm, bool on)
{
	if (on == !vm->rx_stopped)
		return;
	vm->rx_stopped = !on;
	if (on)
		netbe_rx_enable(vm->be);
	else
		netbe_rx_disable(vm->be);
}

/* One batch, if there is one; true where it is to be called again. */
static bool
vm_tx(struct vm *vm)
{
	enum e82545_tx_state state;
	int i = 0;

	do {
		state = e82545_tx(vm->dev);
	} while ((state == E82545_TX_POLL || state == E82545_TX_YIELD) &&
	    ++i < TX_POLLS);
	if (state == E82545_TX_YIELD)
		sched_yield();
	return (state != E82545_TX_IDLE);
}

/* A batch each way. */
static void
vm_batches(struct vm *vm)
{
	/* Without a client or the bus, memory is out of reach. */
	if (vm->server.fd == -1 || !vfu_pci_busmaster(&vm->pci)) {
		vm_rx_events(vm, false);
		return;
	}
	vm_count(vm, VM_C_WAKEUP);
	if (vm->tx_wanted) {
		vm->tx_wanted = false;
		if (vm_tx(vm))
			vm->tx_wanted = true;
	}
	if (vm->rx_wanted) {
		vm->rx_wanted = false;
		switch (e82545_rx(vm->dev)) {
		case E82545_RX_IDLE:
			vm_rx_events(vm, true);
			break;
		case E82545_RX_MORE:
			vm->rx_wanted = true;
			break;
		case E82545_RX_STALLED:
			vm_rx_events(vm, false);
			break;
		}
	}
	if (vm->tx_wanted || vm->rx_wanted)
		vm_post(vm);
}

void
vm_work(struct vm *vm)
{
	/* Other threads may have asked for some, batches may. */
	vfu_irq_flush(&vm->irq);
	vm_batches(vm);
	vfu_irq_flush(&vm->irq);
}

static void
vm_work_event(int fd, enum ev_type type __unused, void *arg)
{
	struct vm *vm = arg;
	uint64_t n;

	/* What whoever posted it did before is then seen here. */
	if (read(fd, &n, sizeof(n)) == (ssize_t)sizeof(n))
		__atomic_exchange_n(&vm->work_posted, false, __ATOMIC_ACQ_REL);
	vm_work(vm);
}

static void
vm_timer_event(int fd, enum ev_type type __unused, void *arg)
{
	struct vm *vm = arg;
	uint64_t n;

	if (read(fd, &n, sizeof(n)) == (ssize_t)sizeof(n))
		e82545_timer(vm->dev);
	vfu_irq_flush(&vm->irq);
}

/* The backend has frames. */
static void
vm_rx_event(int fd __unused, enum ev_type type __unused, void *arg)
{
	struct vm *vm = arg;

	vm->rx_wanted = true;
	vm_work(vm);
}

void
vm_attach(struct vm *vm)
{
	vm->tx_wanted = false;
	vm->rx_wanted = true;
}

void
vm_reset(struct vm *vm)
{
	e82545_rx_direct_enable(vm->dev, false);
	e82545_reset(vm->dev);
	vfu_pci_reset(&vm->pci);
	vfu_irq_intx_disable(&vm->irq, false);
}

void
vm_detach(struct vm *vm)
{
	vm_reset(vm);
	vfu_irq_clear(&vm->irq);
	e82545_pause(vm->dev);
	vfu_dma_clear(&vm->dma);
	e82545_resume(vm->dev);
	vm_work(vm);
}

void
vm_log(struct vm *vm, const char *fmt, ...)
{
	char line[256];
	uint64_t now;
	va_list ap;
	int n;

	now = vm_now(vm);
	if (vm->log_ns == 0 || now - vm->log_ns >= NS_PER_S) {
		vm->log_ns = now;
		vm->log_lines = 0;
	}
	if (vm->log_lines++ >= LOG_LIMIT)
		return;
	n = snprintf(line, sizeof(line), "valed: %s: ", vm->config->vc_name);
	va_start(ap, fmt);
	n += vsnprintf(line + n, sizeof(line) - n, fmt, ap);
	va_end(ap);
	n = MIN(n, (int)sizeof(line) - 1);
	line[n++] = '\n';
	/* Not through stdio, whose lock the other VMs' threads share. */
	if (write(STDERR_FILENO, line, n) == -1)
		return;
}

/*
 * Open all that the VM needs, in its own thread, to whose loop the events
 * belong.  If something fails the whole program ends, so nothing is undone.
 */
static int
vm_open(struct vm *vm)
{
	const struct vm_config *vc = vm->config;
	struct e82545_config config;

	memset(&config, 0, sizeof(config));
	memcpy(config.ec_mac, vc->vc_mac, sizeof(config.ec_mac));
	config.ec_itr_256ns = vc->vc_itr_256ns;
	config.ec_csb = vc->vc_csb;
	config.ec_name = vc->vc_name;

	vm->failed = "event descriptors";
	vm->timer_fd = timerfd_create(CLOCK_MONOTONIC,
	    TFD_NONBLOCK | TFD_CLOEXEC);
	vm->work_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (vm->timer_fd == -1 || vm->work_fd == -1 ||
	    mevent_add(vm->timer_fd, EVF_READ, vm_timer_event, vm) == NULL ||
	    mevent_add(vm->work_fd, EVF_READ, vm_work_event, vm) == NULL)
		return (errno);
	vm->failed = NULL;		/* netbe_init() reports it */
	if (netbe_init(&vm->be, vc->vc_nvl, vm_rx_event, vm) != 0)
		return (EIO);
	vm->failed = "frame port";
	vm->port = net_port_create(vm->be, vc->vc_mtu == 0 ? UINT32_MAX :
	    vc->vc_mtu + E82545_HDRLEN_MAX);
	if (vm->port == NULL)
		return (errno);
	vm->failed = "adapter";
	vm->dev = e82545_create(&config, &vm_ops, vm, vm->port);
	if (vm->dev == NULL)
		return (errno);
	netbe_rx_disable(vm->be);
	/* Not every backend can; without it frames are copied once more. */
	if (vc->vc_direct)
		frame_port_set_sink(vm->port, vm_sink, vm);
	vm->failed = "socket";
	if (vfu_server_init(vm) != 0)
		return (errno);
	vm->failed = "capabilities";
	if (valed_sandbox_drop() != 0)
		return (errno);
	return (0);
}

static void *
vm_thread(void *arg)
{
	struct vm *vm = arg;

	/* For top(1) and taskset(1). */
	prctl(PR_SET_NAME, vm->config->vc_name);
	vm->error = vm_open(vm);
	sem_post(&vm->ready);
	if (vm->error != 0)
		return (NULL);
	while (sem_wait(&vm->go) == -1)
		continue;
	mevent_dispatch();
	return (NULL);
}

struct vm *
vm_start(const struct vm_config *config)
{
	struct vm *vm;

	vm = calloc(1, sizeof(*vm));
	if (vm == NULL)
		return (NULL);
	vm->config = config;
	vm->rx_stopped = true;
	vfu_pci_init(&vm->pci, config->vc_csb ? E82545_PCI_SUBDEVICE_CSB :
	    E82545_PCI_SUBDEVICE);
	vfu_irq_init(&vm->irq);
	if (sem_init(&vm->ready, 0, 0) == -1 || sem_init(&vm->go, 0, 0) == -1)
		goto fail;
	errno = pthread_create(&vm->thread, NULL, vm_thread, vm);
	if (errno != 0)
		goto fail;
	while (sem_wait(&vm->ready) == -1)
		continue;
	if (vm->error != 0) {
		if (vm->failed != NULL)
			vm_log(vm, "%s: %s", vm->failed, strerror(vm->error));
		errno = vm->error;
		return (NULL);		/* the thread has vm still */
	}
	return (vm);

fail:
	vm_log(vm, "cannot start: %s", strerror(errno));
	free(vm);
	return (NULL);
}

void
vm_go(struct vm *vm)
{
	sem_post(&vm->go);
}

void
vm_watch(struct vm *vm)
{
	uint32_t calls;

	calls = __atomic_load_n(&vm->irq.calls, __ATOMIC_RELAXED);
	if (calls % 2 != 0 && calls == vm->watched)
		pthread_kill(vm->thread, VM_SIGNAL);
	vm->watched = calls;
}
