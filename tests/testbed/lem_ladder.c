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
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "e82545.h"
#include "frame_port.h"
#include "lem_guest.h"
#include "lem_ladder.h"
#include "libvale.h"
#include "vale_frame_port.h"
#include "wait_until.h"

#define	RAM		(32u << 20)	/* bytes of each guest */
#define	RING		1024		/* descriptors */
#define	BUFSIZE		2048		/* bytes */
#define	BUDGET		64		/* frames for a call of lem_rx() */
#define	HOOK_EVERY	16		/* rounds of a processor */
#define	SLEEP_MS	20		/* longest sleep */
#define	ROUNDS		2		/* begun: one of them sees all work */
#define	CHECKS		10		/* without a frame: the rest is lost */
#define	RX_EVERY	16		/* rounds of transmit */

#define	GET(x)		__atomic_load_n(&(x), __ATOMIC_SEQ_CST)
#define	SET(x, v)	__atomic_store_n(&(x), (v), __ATOMIC_SEQ_CST)
#define	SWAP(x, v)	__atomic_exchange_n(&(x), (v), __ATOMIC_SEQ_CST)

/* A thread that may sleep. */
struct sleeper {
	int		 fd;		/* eventfd */
	bool		 asleep;
	uint64_t	 rounds;	/* of its loop */
};

/* A guest with its adapter, or (to_host) a program on a port. */
struct side {
	struct guest	 g;
	struct ladder_params *params;
	int		 index;		/* 0: sends */
	struct side	*other;
	uint8_t		*ram;

	struct e82545	*dev;
	struct vale_desc *vale;
	struct vale_frame_port vale_port; /* not to_host */
	struct frame_port *port;	/* its */
	struct sleeper	 model, cpu;
	pthread_t	 model_thread, cpu_thread, intr_thread;
	pthread_mutex_t	 tx_mtx, rx_mtx;	/* split */

	bool		 line, tx_pending, rx_pending, listening, stop;
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
rx_inline(const struct side *side)
{
	return (side->params->own_thread &&
	    (side->params->mode & LEM_MODE_POLL) != 0);
}

/*
 * The model's operations.
 */

static void *
side_map(void *arg, uint64_t gpa, size_t len,
    unsigned int access __unused)
{
	struct side *side = arg;

	return (gpa > RAM || len > RAM - gpa ? NULL : side->ram + gpa);
}

static void
side_intr(void *arg, bool asserted)
{
	struct side *side = arg;

	/* A message that was sent cannot be taken back. */
	if (asserted || !side->params->msi)
		SET(side->line, asserted);
	if (asserted)
		wake(&side->cpu);
}

/* Whether an interrupt is pending; a message is no longer. */
static bool
cpu_interrupted(struct side *side)
{
	if (!GET(side->line))
		return (false);
	if (side->params->msi)
		SET(side->line, false);
	return (true);
}

static uint64_t
side_now(void *arg __unused)
{
	return (lem_os_now());
}

static void
side_timer(void *arg, uint64_t when_ns)
{
	struct side *side = arg;

	SET(side->timer_ns, when_ns);
	wake(&side->model);
}

static void
side_tx_kick(void *arg)
{
	struct side *side = arg;

	SET(side->tx_pending, true);
	if (!side->params->own_thread)
		wake(&side->model);
}

static void
side_rx_ready(void *arg)
{
	struct side *side = arg;

	SET(side->rx_pending, true);
	wake(&side->model);
}

static const struct e82545_ops side_ops = {
	.eo_map = side_map,
	.eo_intr = side_intr,
	.eo_now = side_now,
	.eo_timer = side_timer,
	.eo_tx_kick = side_tx_kick,
	.eo_rx_ready = side_rx_ready,
};

/* Receive frames in the other guest's thread. */
static void
side_sink(void *arg, struct frame_source *frames)
{
	struct side *side = arg;

	e82545_rx_direct(side->dev, frames);
}

/* Receive from the port.  The caller polls if rx_inline(). */
static enum e82545_rx_state
side_receive(struct side *side)
{
	if (rx_inline(side))
		side->vale->rxring->flags |= VALE_RING_POLLED;
	else
		side->vale->rxring->flags &= ~VALE_RING_POLLED;
	return (e82545_rx(side->dev));
}

/*
 * Keep a thread of this guest on its processor: the first that this process
 * may use for one, the last for the other.
 */
static void
pin(const struct side *side)
{
	cpu_set_t may, one;
	int cpu, found = -1;

	if (!side->params->pinned ||
	    sched_getaffinity(0, sizeof(may), &may) == -1)
		return;
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &may) && (found == -1 || side->index != 0))
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
model_timer(struct side *side)
{
	uint64_t when_ns;

	when_ns = GET(side->timer_ns);
	if (when_ns != 0 && when_ns <= lem_os_now()) {
		__atomic_compare_exchange_n(&side->timer_ns, &when_ns, 0, false,
		    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		e82545_timer(side->dev);
	}
}

static void
model_receive(struct side *side)
{
	SET(side->rx_pending, false);
	switch (side_receive(side)) {
	case E82545_RX_IDLE:
		SET(side->listening, true);
		break;
	case E82545_RX_MORE:
		SET(side->rx_pending, true);
		break;
	case E82545_RX_STALLED:
		SET(side->listening, false);
		break;
	}
}

static bool
model_tx_pending(struct side *side)
{
	return (!side->params->own_thread && GET(side->tx_pending));
}

static bool
model_rx_pending(struct side *side)
{
	return (!rx_inline(side) && GET(side->rx_pending));
}

static void
model_transmit(struct side *side)
{
	if (model_tx_pending(side) && SWAP(side->tx_pending, false) &&
	    e82545_tx(side->dev) != E82545_TX_IDLE)
		SET(side->tx_pending, true);
}

static void
model_sleep(struct side *side)
{
	uint64_t now_ns, ns, when_ns;

	SET(side->model.asleep, true);
	if (model_tx_pending(side) || model_rx_pending(side) ||
	    GET(side->stop)) {
		SET(side->model.asleep, false);
		return;
	}
	ns = SLEEP_MS * 1000000ULL;
	when_ns = GET(side->timer_ns);
	now_ns = lem_os_now();
	if (when_ns != 0 && when_ns < now_ns + ns)
		ns = when_ns > now_ns ? when_ns - now_ns : 0;
	if (doze(&side->model, GET(side->listening) && !rx_inline(side) ?
	    side->vale->fd : -1, ns))
		SET(side->rx_pending, true);
}

static void *
model_main(void *arg)
{
	struct side *side = arg;
	uint64_t rounds;

	pin(side);
	for (rounds = 0; !GET(side->stop); rounds++) {
		SET(side->model.rounds, rounds);
		model_timer(side);
		model_transmit(side);
		if (!rx_inline(side) && (GET(side->rx_pending) ||
		    (GET(side->listening) && rounds % RX_EVERY == 0)))
			model_receive(side);
		if (!model_tx_pending(side) && !model_rx_pending(side))
			model_sleep(side);
	}
	return (NULL);
}

/*
 * The guests' processors.
 */

static uint32_t
side_reg_read(void *arg, uint32_t reg)
{
	struct side *side = arg;

	return (e82545_read(side->dev, E82545_BAR_MEM, reg, 4));
}

static void
side_reg_write(void *arg, uint32_t reg, uint32_t value)
{
	struct side *side = arg;

	e82545_write(side->dev, E82545_BAR_MEM, reg, 4, value);
	while (side->params->own_thread && GET(side->tx_pending))
		SET(side->tx_pending,
		    e82545_tx(side->dev) != E82545_TX_IDLE);
}

/* Read for every frame, because hooks change it. */
static bool
cpu_polls(const struct side *side)
{
	return ((side->g.lc.lc_mode & LEM_MODE_POLL) != 0);
}

static void
cpu_interrupts(struct side *side)
{
	while (cpu_interrupted(side)) {
		lem_os_spin(side->params->exit_ns);
		if (!guest_interrupt(&side->g, BUDGET))
			break;
	}
}

/* HLT. */
static void
cpu_halt(struct side *side)
{
	SET(side->cpu.asleep, true);
	if (GET(side->line) || GET(side->stop))
		SET(side->cpu.asleep, false);
	else
		(void)doze(&side->cpu, -1, SLEEP_MS * 1000000ULL);
}

/* Wait for free descriptors. */
static void
cpu_wait(struct side *side)
{
	if (cpu_polls(side)) {
		if (lem_tx_clean(&side->g.lc) == 0)
			sched_yield();
	} else
		cpu_halt(side);
}

static bool
window_open(const struct side *side)
{
	return (side->params->window == 0 || side->g.sent -
	    GET(side->other->g.received) < side->params->window);
}

static bool
send_more(const struct side *side)
{
	if (side->params->frames != 0)
		return (side->g.sent < side->params->frames);
	return (lem_os_now() - side->first_ns < side->params->run_ns);
}

static void
cpu_hook(struct side *side, unsigned int round)
{
	if (side->params->hook != NULL && round % HOOK_EVERY == 0)
		side->params->hook(side->params, side->index, &side->g.lc);
}

static void *
sender_main(void *arg)
{
	struct side *side = arg;
	unsigned int i, round;
	int error;

	pin(side);
	side->first_ns = lem_os_now();
	for (round = 1; send_more(side) && !GET(side->stop); round++) {
		cpu_hook(side, round);
		cpu_interrupts(side);
		if (!window_open(side)) {
			if (cpu_polls(side))
				(void)lem_tx_clean(&side->g.lc);
			sched_yield();
			continue;
		}
		error = 0;
		for (i = 0; i < side->params->batch && error == 0; i++)
			error = guest_send(&side->g, side->other->g.mac,
			    side->params->len);
		lem_tx_flush(&side->g.lc);
		if (error != 0)
			cpu_wait(side);
	}
	/* Wait until all frames are sent. */
	while (!lem_tx_idle(&side->g.lc) && !GET(side->stop)) {
		cpu_interrupts(side);
		(void)lem_tx_clean(&side->g.lc);
		sched_yield();
	}
	side->last_ns = lem_os_now();
	return (NULL);
}

static void *
receiver_main(void *arg)
{
	struct side *side = arg;
	uint64_t round;
	unsigned int n, taken;

	pin(side);
	for (round = 1; !GET(side->stop); round++) {
		SET(side->cpu.rounds, round);
		cpu_hook(side, round);
		if (cpu_polls(side)) {
			if (rx_inline(side) &&
			    (GET(side->listening) || GET(side->rx_pending)))
				model_receive(side);
			/* Receive all frames of this round. */
			n = taken = lem_rx(&side->g.lc, BUDGET);
			while (n == BUDGET)
				n = lem_rx(&side->g.lc, BUDGET);
			if (taken == 0)
				sched_yield();
		} else {
			cpu_interrupts(side);
			cpu_halt(side);
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
	struct side *side = arg;
	struct lem_core *lc = &side->g.lc;
	bool again;

	while (!GET(side->stop)) {
		if (!cpu_interrupted(side)) {
			cpu_halt(side);
			continue;
		}
		if (!lem_intr(lc))
			continue;
		do {
			pthread_mutex_lock(&side->tx_mtx);
			(void)lem_tx_clean(lc);
			pthread_mutex_unlock(&side->tx_mtx);
			pthread_mutex_lock(&side->rx_mtx);
			while (lem_rx(lc, BUDGET) == BUDGET)
				continue;
			again = lem_intr_enable(lc);
			pthread_mutex_unlock(&side->rx_mtx);
		} while (again);
	}
	return (NULL);
}

/*
 * Interrupts clean the ring when it is full or all frames are sent.  If the
 * guest polls, this thread does.
 */
static void *
split_sender(void *arg)
{
	struct side *side = arg;
	unsigned int round;
	bool more;

	side->first_ns = lem_os_now();
	for (round = 1, more = true; more; round++) {
		pthread_mutex_lock(&side->tx_mtx);
		pthread_mutex_lock(&side->rx_mtx);
		cpu_hook(side, round);
		pthread_mutex_unlock(&side->rx_mtx);
		if (send_more(side) && window_open(side))
			(void)guest_send(&side->g, side->other->g.mac,
			    side->params->len);
		lem_tx_flush(&side->g.lc);
		if (cpu_polls(side) || !send_more(side))
			(void)lem_tx_clean(&side->g.lc);
		more = send_more(side) || !lem_tx_idle(&side->g.lc);
		pthread_mutex_unlock(&side->tx_mtx);
		if (!window_open(side))
			sched_yield();
	}
	side->last_ns = lem_os_now();
	return (NULL);
}

/* A program on a port, which checks the number of each frame. */
static void *
host_main(void *arg)
{
	struct side *side = arg;
	struct netmap_ring *ring = side->vale->rxring;
	uint32_t i;

	pin(side);
	ring->flags |= VALE_RING_POLLED;
	while (!GET(side->stop)) {
		SET(side->cpu.rounds, side->cpu.rounds + 1);
		(void)vale_rxsync(side->vale);
		if (ring->head == ring->tail) {
			sched_yield();
			continue;
		}
		for (i = ring->head; i != ring->tail;
		    i = nm_ring_next(ring, i))
			side->g.lc.lc_os.frame(&side->g, (uint8_t *)NETMAP_BUF(
			    ring, ring->slot[i].buf_idx), ring->slot[i].len,
			    0, 0);
		ring->head = ring->cur = ring->tail;
	}
	return (NULL);
}

/*
 * Start and stop.
 */

static void
side_count(const struct side *side, struct ladder_side *count)
{
	const struct lem_core *lc = &side->g.lc;
	uint64_t counters[E82545_NCOUNTERS];

	e82545_counters(side->dev, counters);
	count->exits = guest_exits(&side->g) - side->before.exits;
	count->tx_kicks = lc->lc_counter[LEM_C_TX_KICK];
	count->rx_kicks = lc->lc_counter[LEM_C_RX_KICK];
	count->interrupts = lc->lc_counter[LEM_C_INTERRUPT] -
	    side->before.interrupts;
	count->raised = counters[E82545_C_INTR_SENT] - side->before.raised;
	count->misuses = lc->lc_os.misuses;
}

/* No sync fails. */
static void __attribute__((__format__(__printf__, 1, 0)))
side_vlog(const char *fmt, va_list ap)
{
	vfprintf(stderr, fmt, ap);
	abort();
}

static int
side_open(struct side *side, struct ladder_params *params, int index,
    const char *port)
{
	struct e82545_config config = {
		.ec_mac = { 0x02, 0, 0, 0, 0, index + 1 },
		.ec_csb = E82545_CSB_ON,
		.ec_name = port,
	};
	struct lem_core *lc = &side->g.lc;

	side->params = params;
	side->index = index;
	pthread_mutex_init(&side->tx_mtx, NULL);
	pthread_mutex_init(&side->rx_mtx, NULL);
	memcpy(side->g.mac, config.ec_mac, sizeof(side->g.mac));
	side->model.fd = eventfd(0, EFD_NONBLOCK);
	side->cpu.fd = eventfd(0, EFD_NONBLOCK);
	side->ram = mmap(NULL, RAM, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANON, -1, 0);
	if (side->model.fd == -1 || side->cpu.fd == -1 ||
	    side->ram == MAP_FAILED)
		return (errno);
	side->vale = vale_open(port, NULL);
	if (side->vale == NULL ||
	    vale_frame_port_init(&side->vale_port, side->vale, side_vlog) != 0)
		return (errno);
	side->port = &side->vale_port.vfp_port;
	side->port->fp_frame_max = UINT32_MAX;
	frame_port_set_offloads(side->port);
	side->dev = e82545_create(&config, &side_ops, side, side->port);
	if (side->dev == NULL)
		return (ENOMEM);
	e82545_bus_master(side->dev, true);
	if (!params->by_ring &&
	    !frame_port_set_sink(side->port, side_sink, side))
		return (EOPNOTSUPP);
	if (guest_init(&side->g, side->ram, 4096, RAM, RING, RING, BUFSIZE,
	    BUFSIZE, true) == 0)
		return (ENOMEM);
	lc->lc_os.reg_read = side_reg_read;
	lc->lc_os.reg_write = side_reg_write;
	lc->lc_os.arg = side;
	lc->lc_irq = params->msi ? LEM_IRQ_MSI : LEM_IRQ_LINE;
	SET(side->rx_pending, true);
	errno = lem_set_mode(lc, params->mode);
	if (errno == 0)
		errno = lem_set_itr(lc, params->itr_256ns);
	if (errno == 0)
		errno = guest_up(&side->g, 1500);
	if (errno != 0)
		return (errno);
	/* The adapter must not poll: the processor waits for it. */
	if (params->own_thread)
		(void)lem_set_rounds(lc, 0);
	/* The link change. */
	while (cpu_interrupted(side) && guest_interrupt(&side->g, BUDGET))
		continue;
	side_count(side, &side->before);
	lc->lc_os.exit_ns = params->exit_ns;
	return (0);
}

/* The receiver as a program: a port, and a guest that only checks frames. */
static int
host_open(struct side *side, struct ladder_params *params, const char *port)
{
	static const uint8_t mac[6] = { 0x02, 0, 0, 0, 0, 2 };

	side->params = params;
	side->index = 1;
	side->model.fd = side->cpu.fd = -1;
	memcpy(side->g.mac, mac, sizeof(mac));
	guest_listen(&side->g);
	side->vale = vale_open(port, NULL);
	return (side->vale == NULL ? errno : 0);
}

static void
side_close(struct side *side)
{
	if (side->dev != NULL) {
		lem_stop(&side->g.lc);
		e82545_destroy(side->dev);
	}
	if (side->vale != NULL)
		vale_close(side->vale);
	if (side->ram != NULL && side->ram != MAP_FAILED)
		munmap(side->ram, RAM);
	close(side->model.fd);
	close(side->cpu.fd);
}

static void
stop(struct side *side, pthread_t thread, struct sleeper *s)
{
	SET(side->stop, true);
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
all_received(const struct side *side)
{
	uint64_t counters[VALE_NCOUNTERS];

	if (vale_port_counters("valeladder:b", counters) != 0)
		abort();
	return (GET(side->g.received) + counters[VALE_C_RX_DROP_FULL] >=
	    side->other->g.sent);
}

/*
 * Wait until all frames are received.  The rest is lost if no frame arrives
 * while the receiver's two threads check for work several times in turn: each
 * may have to wait for the other, and for the timer.
 */
static void
settle(const struct side *side)
{
	uint64_t received;
	unsigned int checks;

	for (checks = 0; checks < CHECKS && !all_received(side); checks++) {
		received = GET(side->g.received);
		if (side->dev != NULL)
			settle_thread(&side->model);
		settle_thread(&side->cpu);
		if (GET(side->g.received) != received)
			checks = 0;
	}
}

int
ladder_run(struct ladder_params *params, struct ladder_result *result)
{
	uint64_t counters[VALE_NCOUNTERS];
	struct side *side;
	int error, guests, i;

	memset(result, 0, sizeof(*result));
	side = calloc(2, sizeof(*side));
	if (side == NULL)
		return (ENOMEM);
	side[0].other = &side[1];
	side[1].other = &side[0];
	guests = params->to_host ? 1 : 2;
	error = side_open(&side[0], params, 0, "valeladder:a");
	if (error == 0 && params->to_host)
		error = host_open(&side[1], params, "valeladder:b");
	else if (error == 0)
		error = side_open(&side[1], params, 1, "valeladder:b");
	if (error != 0)
		goto out;
	for (i = 0; i < guests; i++) {
		if (pthread_create(&side[i].model_thread, NULL, model_main,
		    &side[i]) != 0)
			abort();
	}
	if (params->split) {
		side[0].g.lc.lc_os.tx_lock = &side[0].tx_mtx;
		side[0].g.lc.lc_os.rx_lock = &side[0].rx_mtx;
	}
	if (params->split && pthread_create(&side[0].intr_thread, NULL,
	    split_interrupts, &side[0]) != 0)
		abort();
	if (pthread_create(&side[1].cpu_thread, NULL, params->to_host ?
	    host_main : receiver_main, &side[1]) != 0)
		abort();
	/* If the receiver polls, it must do so before the first frame. */
	if (rx_inline(&side[1]))
		wait_until(GET(side[1].cpu.rounds) >= ROUNDS, "%ju rounds",
		    (uintmax_t)GET(side[1].cpu.rounds));
	if (pthread_create(&side[0].cpu_thread, NULL, params->split ?
	    split_sender : sender_main, &side[0]) != 0)
		abort();
	pthread_join(side[0].cpu_thread, NULL);
	result->ns = side[0].last_ns - side[0].first_ns;
	settle(&side[1]);
	stop(&side[1], side[1].cpu_thread, &side[1].cpu);
	if (params->split) {
		stop(&side[0], side[0].intr_thread, &side[0].cpu);
		side[0].g.lc.lc_os.tx_lock = side[0].g.lc.lc_os.rx_lock = NULL;
	}
	for (i = 0; i < guests; i++) {
		stop(&side[i], side[i].model_thread, &side[i].model);
		side_count(&side[i], &result->guest[i]);
	}
	result->sent = side[0].g.sent;
	result->received = side[1].g.received;
	result->missing = side[1].g.missing;
	result->wrong = side[1].g.wrong;
	if (vale_port_counters("valeladder:b", counters) != 0)
		abort();
	result->direct = counters[VALE_C_RX_DIRECT];
	result->copied = counters[VALE_C_RX_COPY];
	result->dropped = counters[VALE_C_RX_DROP_FULL];
out:
	for (i = 0; i < 2; i++)
		side_close(&side[i]);
	free(side);
	return (error);
}
