/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See lem_ladder.h.  A thread that wakes another stores the work, and then
 * checks whether the other sleeps; a thread that goes to sleep sets `asleep',
 * and then checks for work.
 */

#include <sys/types.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "e82545.h"
#include "frame_port.h"
#include "lem_guest.h"
#include "lem_ladder.h"
#include "libvale.h"
#include "net_backends.h"
#include "net_backends_priv.h"
#include "net_port.h"
#include "wait_until.h"

#define	RAM		(32u << 20)	/* bytes of each guest */
#define	RING		1024		/* descriptors */
#define	BUFSIZE		2048		/* bytes */
#define	BUDGET		64		/* frames for a call of lem_rx() */
#define	HOOK_EVERY	16		/* rounds of a processor */
#define	SLEEP_MS	20		/* then check anyway */
#define	ROUNDS		2		/* begun: one sees all work */
#define	LOOKS		10		/* no frame: no more come */
/* Rounds of transmit before the network is checked. */
#define	RX_EVERY	16

#define	GET(x)		__atomic_load_n(&(x), __ATOMIC_SEQ_CST)
#define	SET(x, v)	__atomic_store_n(&(x), (v), __ATOMIC_SEQ_CST)
#define	SWAP(x, v)	__atomic_exchange_n(&(x), (v), __ATOMIC_SEQ_CST)

/* A thread that may sleep. */
struct sleeper {
	int		 fd;		/* eventfd */
	bool		 asleep;
	uint64_t	 rounds;	/* of its loop */
};

struct vm {
	struct guest	 g;
	struct ladder_params *params;
	int		 index;		/* 0: sends */
	struct vm	*other;
	uint8_t		*ram;

	struct e82545	*dev;
	net_backend_t	*be;
	struct frame_port *port;
	struct sleeper	 model, cpu;
	pthread_t	 model_thread, cpu_thread, intr_thread;
	pthread_mutex_t	 tx_mtx, rx_mtx;	/* split */

	struct vale_desc *vale;		/* to_host */
	bool		 line, tx_wanted, rx_wanted, listening, stop;
	uint64_t	 timer_ns;
	struct ladder_side before;	/* counts when started */
	uint64_t	 first_ns, last_ns;
};

static void
wake(struct sleeper *s)
{
	uint64_t one = 1;

	if (SWAP(s->asleep, false) &&
	    write(s->fd, &one, sizeof(one)) != (ssize_t)sizeof(one))
		abort();
}

/*
 * Sleep, at most `ns', until woken or `fd' (or -1) is readable.  The caller
 * must set s->asleep, and then check for work.  True if `fd' is readable.
 */
static bool
doze(struct sleeper *s, int fd, uint64_t ns)
{
	struct pollfd pfd[2] = {
		{ s->fd, POLLIN, 0 }, { fd, POLLIN, 0 }
	};
	struct timespec ts = { ns / 1000000000, ns % 1000000000 };
	uint64_t n;

	(void)ppoll(pfd, fd == -1 ? 1 : 2, &ts, NULL);
	SET(s->asleep, false);
	if ((pfd[0].revents & POLLIN) != 0 &&
	    read(s->fd, &n, sizeof(n)) != (ssize_t)sizeof(n))
		abort();
	return (fd != -1 && pfd[1].revents != 0);
}

/*
 * True if the processor, which polls, receives; else the adapter's thread does.
 */
static bool
rx_inline(const struct vm *vm)
{
	return (vm->params->own_thread &&
	    (vm->params->mode & LEM_MODE_POLL) != 0);
}

/*
 * The model's operations.
 */

static void *
vm_map(void *arg, uint64_t gpa, size_t len)
{
	struct vm *vm = arg;

	return (gpa > RAM || len > RAM - gpa ? NULL : vm->ram + gpa);
}

static void
vm_intr(void *arg, bool asserted)
{
	struct vm *vm = arg;

	SET(vm->line, asserted);
	if (asserted)
		wake(&vm->cpu);
}

static uint64_t
vm_now(void *arg __unused)
{
	return (lem_os_now());
}

static void
vm_timer(void *arg, uint64_t when_ns)
{
	struct vm *vm = arg;

	SET(vm->timer_ns, when_ns);
	wake(&vm->model);
}

static void
vm_tx_kick(void *arg)
{
	struct vm *vm = arg;

	SET(vm->tx_wanted, true);
	if (!vm->params->own_thread)
		wake(&vm->model);
}

static void
vm_rx_ready(void *arg)
{
	struct vm *vm = arg;

	SET(vm->rx_wanted, true);
	wake(&vm->model);
}

static const struct e82545_ops vm_ops = {
	.eo_map = vm_map,
	.eo_intr = vm_intr,
	.eo_now = vm_now,
	.eo_timer = vm_timer,
	.eo_tx_kick = vm_tx_kick,
	.eo_rx_ready = vm_rx_ready,
};

/* Direct frames of the other guest's thread. */
static void
vm_sink(void *arg, struct frame_source *frames)
{
	struct vm *vm = arg;

	e82545_rx_direct(vm->dev, frames);
}

/* The thread that receives from the port, and sets the ring's flag. */
static enum e82545_rx_state
vm_receive(struct vm *vm)
{
	frame_port_set_polled(vm->port, rx_inline(vm));
	return (e82545_rx(vm->dev));
}

/*
 * Keep a thread of this guest on its processor: the first that this process
 * may use for one, the last for the other.
 */
static void
pin(const struct vm *vm)
{
	cpu_set_t may, one;
	int cpu, found = -1;

	if (!vm->params->pinned ||
	    sched_getaffinity(0, sizeof(may), &may) == -1)
		return;
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &may) && (found == -1 || vm->index != 0))
			found = cpu;
	}
	CPU_ZERO(&one);
	CPU_SET(found, &one);
	(void)pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
}

/*
 * The adapter's thread.
 */

static void
model_timer(struct vm *vm)
{
	uint64_t when_ns;

	when_ns = GET(vm->timer_ns);
	if (when_ns != 0 && when_ns <= lem_os_now()) {
		__atomic_compare_exchange_n(&vm->timer_ns, &when_ns, 0, false,
		    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		e82545_timer(vm->dev);
	}
}

static void
model_receive(struct vm *vm)
{
	SET(vm->rx_wanted, false);
	switch (vm_receive(vm)) {
	case E82545_RX_IDLE:
		SET(vm->listening, true);
		break;
	case E82545_RX_MORE:
		SET(vm->rx_wanted, true);
		break;
	case E82545_RX_STALLED:
		SET(vm->listening, false);
		break;
	}
}

static bool
model_tx_wanted(struct vm *vm)
{
	return (!vm->params->own_thread && GET(vm->tx_wanted));
}

static bool
model_rx_wanted(struct vm *vm)
{
	return (!rx_inline(vm) && GET(vm->rx_wanted));
}

static void
model_transmit(struct vm *vm)
{
	if (model_tx_wanted(vm) && SWAP(vm->tx_wanted, false) &&
	    e82545_tx(vm->dev) != E82545_TX_IDLE)
		SET(vm->tx_wanted, true);
}

static void
model_sleep(struct vm *vm)
{
	uint64_t now_ns, ns, when_ns;

	SET(vm->model.asleep, true);
	if (model_tx_wanted(vm) || model_rx_wanted(vm) || GET(vm->stop)) {
		SET(vm->model.asleep, false);
		return;
	}
	ns = SLEEP_MS * 1000000ULL;
	when_ns = GET(vm->timer_ns);
	now_ns = lem_os_now();
	if (when_ns != 0 && when_ns < now_ns + ns)
		ns = when_ns > now_ns ? when_ns - now_ns : 0;
	if (doze(&vm->model, GET(vm->listening) && !rx_inline(vm) ?
	    vm->be->fd : -1, ns))
		SET(vm->rx_wanted, true);
}

static void *
model_main(void *arg)
{
	struct vm *vm = arg;
	uint64_t rounds;

	pin(vm);
	for (rounds = 0; !GET(vm->stop); rounds++) {
		SET(vm->model.rounds, rounds);
		model_timer(vm);
		model_transmit(vm);
		if (!rx_inline(vm) && (GET(vm->rx_wanted) ||
		    (GET(vm->listening) && rounds % RX_EVERY == 0)))
			model_receive(vm);
		if (!model_tx_wanted(vm) && !model_rx_wanted(vm))
			model_sleep(vm);
	}
	return (NULL);
}

/*
 * The guests' processors.
 */

static uint32_t
vm_reg_read(void *arg, uint32_t reg)
{
	struct vm *vm = arg;

	return (e82545_read(vm->dev, E82545_BAR_MEM, reg, 4));
}

static void
vm_reg_write(void *arg, uint32_t reg, uint32_t value)
{
	struct vm *vm = arg;

	e82545_write(vm->dev, E82545_BAR_MEM, reg, 4, value);
	while (vm->params->own_thread && GET(vm->tx_wanted))
		SET(vm->tx_wanted,
		    e82545_tx(vm->dev) != E82545_TX_IDLE);
}

/* Read for every frame: such hooks change it. */
static bool
cpu_polls(const struct vm *vm)
{
	return ((vm->g.lc.lc_mode & LEM_MODE_POLL) != 0);
}

static void
cpu_interrupts(struct vm *vm)
{
	while (GET(vm->line)) {
		lem_os_spin(vm->params->exit_ns);
		if (!guest_interrupt(&vm->g, BUDGET))
			break;
	}
}

/* HLT. */
static void
cpu_halt(struct vm *vm)
{
	SET(vm->cpu.asleep, true);
	if (GET(vm->line) || GET(vm->stop))
		SET(vm->cpu.asleep, false);
	else
		(void)doze(&vm->cpu, -1, SLEEP_MS * 1000000ULL);
}

/* No free descriptors: wait until some may be. */
static void
cpu_wait(struct vm *vm)
{
	if (cpu_polls(vm)) {
		if (lem_tx_clean(&vm->g.lc) == 0)
			sched_yield();
	} else
		cpu_halt(vm);
}

static bool
window_open(const struct vm *vm)
{
	return (vm->params->window == 0 || vm->g.sent -
	    GET(vm->other->g.received) < vm->params->window);
}

static bool
send_more(const struct vm *vm)
{
	if (vm->params->frames != 0)
		return (vm->g.sent < vm->params->frames);
	return (lem_os_now() - vm->first_ns < vm->params->run_ns);
}

static void
cpu_hook(struct vm *vm, unsigned int round)
{
	if (vm->params->hook != NULL && round % HOOK_EVERY == 0)
		vm->params->hook(vm->params, vm->index, &vm->g.lc);
}

static void *
sender_main(void *arg)
{
	struct vm *vm = arg;
	unsigned int i, round;
	int error;

	pin(vm);
	vm->first_ns = lem_os_now();
	for (round = 1; send_more(vm) && !GET(vm->stop); round++) {
		cpu_hook(vm, round);
		cpu_interrupts(vm);
		if (!window_open(vm)) {
			if (cpu_polls(vm))
				(void)lem_tx_clean(&vm->g.lc);
			sched_yield();
			continue;
		}
		error = 0;
		for (i = 0; i < vm->params->batch && error == 0; i++)
			error = guest_send(&vm->g, vm->other->g.mac,
			    vm->params->len);
		lem_tx_flush(&vm->g.lc);
		if (error != 0)
			cpu_wait(vm);
	}
	/* Wait until all frames are sent. */
	while (!lem_tx_idle(&vm->g.lc) && !GET(vm->stop)) {
		cpu_interrupts(vm);
		(void)lem_tx_clean(&vm->g.lc);
		sched_yield();
	}
	vm->last_ns = lem_os_now();
	return (NULL);
}

static void *
receiver_main(void *arg)
{
	struct vm *vm = arg;
	uint64_t round;
	unsigned int n, taken;

	pin(vm);
	for (round = 1; !GET(vm->stop); round++) {
		SET(vm->cpu.rounds, round);
		cpu_hook(vm, round);
		if (cpu_polls(vm)) {
			if (rx_inline(vm) &&
			    (GET(vm->listening) || GET(vm->rx_wanted)))
				model_receive(vm);
			/* Receive all frames before the next look. */
			n = taken = lem_rx(&vm->g.lc, BUDGET);
			while (n == BUDGET)
				n = lem_rx(&vm->g.lc, BUDGET);
			if (taken == 0)
				sched_yield();
		} else {
			cpu_interrupts(vm);
			cpu_halt(vm);
		}
	}
	return (NULL);
}

/*
 * The sender as two processors: one sends, one serves interrupts.
 */

static void *
split_interrupts(void *arg)
{
	struct vm *vm = arg;
	struct lem_core *lc = &vm->g.lc;

	while (!GET(vm->stop)) {
		if (!GET(vm->line)) {
			cpu_halt(vm);
			continue;
		}
		if (!lem_intr(lc))
			continue;
		pthread_mutex_lock(&vm->tx_mtx);
		(void)lem_tx_clean(lc);
		pthread_mutex_unlock(&vm->tx_mtx);
		pthread_mutex_lock(&vm->rx_mtx);
		while (lem_rx(lc, BUDGET) == BUDGET)
			continue;
		pthread_mutex_unlock(&vm->rx_mtx);
		lem_intr_enable(lc);
	}
	return (NULL);
}

/*
 * Interrupts clean the ring when it is full or all is sent; polling, this
 * thread does.
 */
static void *
split_sender(void *arg)
{
	struct vm *vm = arg;
	unsigned int round;
	bool more;

	vm->first_ns = lem_os_now();
	for (round = 1, more = true; more; round++) {
		pthread_mutex_lock(&vm->tx_mtx);
		pthread_mutex_lock(&vm->rx_mtx);
		cpu_hook(vm, round);
		pthread_mutex_unlock(&vm->rx_mtx);
		if (send_more(vm) && window_open(vm))
			(void)guest_send(&vm->g, vm->other->g.mac,
			    vm->params->len);
		lem_tx_flush(&vm->g.lc);
		if (cpu_polls(vm) || !send_more(vm))
			(void)lem_tx_clean(&vm->g.lc);
		more = send_more(vm) || !lem_tx_idle(&vm->g.lc);
		pthread_mutex_unlock(&vm->tx_mtx);
		if (!window_open(vm))
			sched_yield();
	}
	vm->last_ns = lem_os_now();
	return (NULL);
}

/* A program on a port: sees every frame's number. */
static void *
host_main(void *arg)
{
	struct vm *vm = arg;
	struct netmap_ring *ring = vm->vale->rxring;
	uint32_t i;

	pin(vm);
	ring->flags |= VALE_RING_POLLED;
	while (!GET(vm->stop)) {
		SET(vm->cpu.rounds, vm->cpu.rounds + 1);
		(void)vale_rxsync(vm->vale);
		if (ring->head == ring->tail) {
			sched_yield();
			continue;
		}
		for (i = ring->head; i != ring->tail;
		    i = nm_ring_next(ring, i))
			vm->g.lc.lc_os.frame(&vm->g, (uint8_t *)NETMAP_BUF(
			    ring, ring->slot[i].buf_idx), ring->slot[i].len,
			    0, 0);
		ring->head = ring->cur = ring->tail;
	}
	return (NULL);
}

/*
 * Setting up.
 */

static void
vm_count(const struct vm *vm, struct ladder_side *side)
{
	const struct lem_core *lc = &vm->g.lc;
	uint64_t counters[E82545_NCOUNTERS];

	e82545_counters(vm->dev, counters);
	side->exits = guest_exits(&vm->g) - vm->before.exits;
	side->tx_kicks = lc->lc_counter[LEM_C_TX_KICK];
	side->rx_kicks = lc->lc_counter[LEM_C_RX_KICK];
	side->interrupts = lc->lc_counter[LEM_C_INTERRUPT] -
	    vm->before.interrupts;
	side->raised = counters[E82545_C_INTR_SENT] - vm->before.raised;
	side->misuses = lc->lc_os.misuses;
}

static void
no_event(int fd __unused, enum ev_type type __unused, void *arg __unused)
{
}

static int
vm_open(struct vm *vm, struct ladder_params *params, int index,
    const char *port)
{
	struct e82545_config config = {
		.ec_mac = { 0x02, 0, 0, 0, 0, index + 1 },
		.ec_csb = true,
		.ec_name = port,
	};
	struct lem_core *lc = &vm->g.lc;
	nvlist_t *nvl;

	vm->params = params;
	vm->index = index;
	pthread_mutex_init(&vm->tx_mtx, NULL);
	pthread_mutex_init(&vm->rx_mtx, NULL);
	memcpy(vm->g.mac, config.ec_mac, sizeof(vm->g.mac));
	vm->model.fd = eventfd(0, EFD_NONBLOCK);
	vm->cpu.fd = eventfd(0, EFD_NONBLOCK);
	vm->ram = mmap(NULL, RAM, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANON, -1, 0);
	if (vm->model.fd == -1 || vm->cpu.fd == -1 || vm->ram == MAP_FAILED)
		return (errno);
	nvl = create_config_node(port);
	if (netbe_legacy_config(nvl, port) != 0 ||
	    netbe_init(&vm->be, nvl, no_event, NULL) != 0)
		return (EIO);
	vm->port = net_port_create(vm->be, UINT32_MAX);
	if (vm->port == NULL)
		return (ENOMEM);
	vm->dev = e82545_create(&config, &vm_ops, vm, vm->port);
	if (vm->dev == NULL)
		return (ENOMEM);
	e82545_rx_direct_enable(vm->dev, true);
	if (!params->by_ring && !frame_port_set_sink(vm->port, vm_sink, vm))
		return (EOPNOTSUPP);
	if (guest_init(&vm->g, vm->ram, 4096, RAM, RING, RING, BUFSIZE, BUFSIZE,
	    true) == 0)
		return (ENOMEM);
	lc->lc_os.reg_read = vm_reg_read;
	lc->lc_os.reg_write = vm_reg_write;
	lc->lc_os.arg = vm;
	SET(vm->rx_wanted, true);
	errno = lem_set_mode(lc, params->mode);
	if (errno == 0)
		errno = lem_set_itr(lc, params->itr_256ns);
	if (errno == 0)
		errno = guest_up(&vm->g, 1500);
	if (errno != 0)
		return (errno);
	/* Nothing is received while the processor waits for its adapter. */
	if (params->own_thread)
		SET(lc->lc_csb->host_txcycles_lim, 0);
	/* The link came up. */
	while (vm->line && guest_interrupt(&vm->g, BUDGET))
		continue;
	vm_count(vm, &vm->before);
	lc->lc_os.exit_ns = params->exit_ns;
	return (0);
}

/* No guest, only a place for a frame. */
static int
host_open(struct vm *vm, struct ladder_params *params, const char *port)
{
	static const uint8_t mac[6] = { 0x02, 0, 0, 0, 0, 2 };

	vm->params = params;
	vm->index = 1;
	vm->model.fd = vm->cpu.fd = -1;
	memcpy(vm->g.mac, mac, sizeof(mac));
	guest_listen(&vm->g);
	vm->vale = vale_open(port, NULL);
	return (vm->vale == NULL ? errno : 0);
}

static void
vm_close(struct vm *vm)
{
	if (vm->dev != NULL) {
		lem_stop(&vm->g.lc);
		e82545_destroy(vm->dev);
	}
	net_port_destroy(vm->port);
	netbe_cleanup(vm->be);
	if (vm->vale != NULL)
		vale_close(vm->vale);
	if (vm->ram != NULL && vm->ram != MAP_FAILED)
		munmap(vm->ram, RAM);
	close(vm->model.fd);
	close(vm->cpu.fd);
}

static void
stop(struct vm *vm, pthread_t thread, struct sleeper *s)
{
	SET(vm->stop, true);
	wake(s);
	pthread_join(thread, NULL);
}

static void
settle_thread(const struct sleeper *s)
{
	uint64_t rounds;

	rounds = GET(s->rounds);
	wait_until(GET(s->rounds) - rounds >= ROUNDS, "%ju rounds",
	    (uintmax_t)(GET(s->rounds) - rounds));
}

/* Whether all frames were received or dropped. */
static bool
all_received(const struct vm *vm)
{
	uint64_t counters[VALE_NCOUNTERS];

	if (vale_port_counters("valeladder:b", counters) != 0)
		abort();
	return (GET(vm->g.received) + counters[VALE_C_RX_FULL] >=
	    vm->other->g.sent);
}

/*
 * Wait until all frames are received.  A frame is lost if none is received
 * while both threads of the receiver check for work several times, one after
 * the other: either may have to wait for the other, and for the timer.
 */
static void
settle(const struct vm *vm)
{
	uint64_t received;
	unsigned int looks;

	for (looks = 0; looks < LOOKS && !all_received(vm); looks++) {
		received = GET(vm->g.received);
		if (vm->dev != NULL)
			settle_thread(&vm->model);
		settle_thread(&vm->cpu);
		if (GET(vm->g.received) != received)
			looks = 0;
	}
}

int
ladder_run(struct ladder_params *params, struct ladder_result *result)
{
	uint64_t counters[VALE_NCOUNTERS];
	struct vm *vm;
	int error, guests, i;

	init_config();
	memset(result, 0, sizeof(*result));
	vm = calloc(2, sizeof(*vm));
	if (vm == NULL)
		return (ENOMEM);
	vm[0].other = &vm[1];
	vm[1].other = &vm[0];
	guests = params->to_host ? 1 : 2;
	error = vm_open(&vm[0], params, 0, "valeladder:a");
	if (error == 0 && params->to_host)
		error = host_open(&vm[1], params, "valeladder:b");
	else if (error == 0)
		error = vm_open(&vm[1], params, 1, "valeladder:b");
	if (error != 0)
		goto out;
	for (i = 0; i < guests; i++) {
		if (pthread_create(&vm[i].model_thread, NULL, model_main,
		    &vm[i]) != 0)
			abort();
	}
	if (params->split) {
		vm[0].g.lc.lc_os.tx_lock = &vm[0].tx_mtx;
		vm[0].g.lc.lc_os.rx_lock = &vm[0].rx_mtx;
	}
	if (params->split && pthread_create(&vm[0].intr_thread, NULL,
	    split_interrupts, &vm[0]) != 0)
		abort();
	if (pthread_create(&vm[1].cpu_thread, NULL, params->to_host ?
	    host_main : receiver_main, &vm[1]) != 0)
		abort();
	/* A port that is polled must be from the first frame on. */
	if (rx_inline(&vm[1]))
		wait_until(GET(vm[1].cpu.rounds) >= ROUNDS, "%ju rounds",
		    (uintmax_t)GET(vm[1].cpu.rounds));
	if (pthread_create(&vm[0].cpu_thread, NULL, params->split ?
	    split_sender : sender_main, &vm[0]) != 0)
		abort();
	pthread_join(vm[0].cpu_thread, NULL);
	result->ns = vm[0].last_ns - vm[0].first_ns;
	settle(&vm[1]);
	stop(&vm[1], vm[1].cpu_thread, &vm[1].cpu);
	if (params->split) {
		stop(&vm[0], vm[0].intr_thread, &vm[0].cpu);
		vm[0].g.lc.lc_os.tx_lock = vm[0].g.lc.lc_os.rx_lock = NULL;
	}
	for (i = 0; i < guests; i++) {
		stop(&vm[i], vm[i].model_thread, &vm[i].model);
		vm_count(&vm[i], &result->guest[i]);
	}
	result->sent = vm[0].g.sent;
	result->received = vm[1].g.received;
	result->missing = vm[1].g.missing;
	result->wrong = vm[1].g.wrong;
	if (vale_port_counters("valeladder:b", counters) != 0)
		abort();
	result->direct = counters[VALE_C_RX_DIRECT];
	result->copied = counters[VALE_C_RX_COPY];
	result->dropped = counters[VALE_C_RX_FULL];
out:
	for (i = 0; i < 2; i++)
		vm_close(&vm[i]);
	free(vm);
	return (error);
}
