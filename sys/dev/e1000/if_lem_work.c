/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The work that an adapter asks for: interrupts and polling.
 *
 * The filter reads the causes, masks the interrupt and enqueues a task.  The
 * task works in turns of rx_budget frames, and enqueues itself again after each
 * until the ring is empty; only then it unmasks the interrupt.
 *
 * Polling.  Interrupts remain masked, and a callout enqueues the task, again
 * and again: the task arms it when the ring is empty, as long as the adapter
 * runs.  If polling(4) polls instead, its handler does the same work, without
 * the task.
 *
 * The task's thread has the priority of interrupts.  So that the programs that
 * use the frames get their turn, it lets others run when reception has used
 * rx_share percent of the processor (lem_rx_turn()): it waits with a priority
 * below all others, until the processor is idle or a callout raises it.
 * Interrupts remain masked meanwhile.
 */

#include <dev/e1000/if_lem.h>

#include <sys/kernel.h>
#include <sys/priority.h>
#include <sys/proc.h>
#include <sys/sched.h>

/* polling(4): NULL unless the kernel has options DEVICE_POLLING. */
#pragma weak ether_poll_register
#pragma weak ether_poll_deregister

/* The clock that the scheduler uses: reading it is no exit. */
static uint64_t
lem_now_ns(void)
{
	uint64_t hz = cpu_tickrate(), t = cpu_ticks();

	return (t / hz * 1000000000 + t % hz * 1000000000 / hz);
}

int
lem_filter(void *arg)
{
	struct lem_softc *sc = arg;
	uint64_t now_ns = lem_now_ns();

	if (!lem_intr(&sc->core))
		return (FILTER_STRAY);
	atomic_store_rel_64(&sc->intr_ns, now_ns);
	taskqueue_enqueue(sc->tq, &sc->intr_task);
	return (FILTER_HANDLED);
}

/* Serve both sides.  Returns `budget' if there may be more frames, or fewer. */
static u_int
lem_serve(struct lem_softc *sc, u_int budget, bool lro)
{
	u_int n = lem_rxeof(sc, budget, lro);

	/* In netmap mode, too: send combining depends on it. */
	lem_txeof(sc);
	return (lem_netmap_irq(sc) ? budget : n);
}

/* After lem_suspend(), which locks rx.mtx, the interface may be going away. */
void
lem_link_update(struct lem_softc *sc)
{
	mtx_assert(&sc->rx.mtx, MA_OWNED);
	if (!sc->suspended)
		if_link_state_change(sc->ifp, sc->core.lc_link ?
		    LINK_STATE_UP : LINK_STATE_DOWN);
}

static void
lem_resume_thread(void *arg)
{
	struct thread *td = arg;

	thread_lock(td);
	sched_prio(td, PI_NET);
	thread_unlock(td);
}

/*
 * Let others run, at most for `ns'.  While the priority is low, the callout is
 * pending: if it came before, or was stopped, nothing would raise it, and the
 * thread would wait until the processor is idle.
 */
static void
lem_yield(struct lem_softc *sc, uint64_t ns)
{
	struct thread *td = curthread;

	critical_enter();
	thread_lock(td);
	sched_prio(td, PRI_MIN_IDLE);
	thread_unlock(td);
	callout_reset_sbt(&sc->resume, nstosbt(ns), 0, lem_resume_thread, td,
	    C_DIRECT_EXEC);
	critical_exit();
	kern_yield(PRI_UNCHANGED);
	lem_resume_thread(td);
	(void)callout_drain(&sc->resume);
}

static void
lem_poll_due(void *arg)
{
	struct lem_softc *sc = arg;

	taskqueue_enqueue(sc->tq, &sc->intr_task);
}

/*
 * After a turn: whether there may be more to do, as there is if it was `full'.
 * If not, interrupts are unmasked, or the next poll is due later, not before
 * pause_ns.  In netmap mode with the CSB the ring may hold frames until its
 * user takes them: lem_netmap_rxsync() asks for the next interrupt for frames,
 * which a user that only sends never calls.
 */
static bool
lem_more(struct lem_softc *sc, bool full, uint64_t pause_ns, uint64_t begin_ns,
    uint64_t end_ns)
{
	struct lem_core *lc = &sc->core;
	uint64_t wait_ns;

	mtx_assert(&sc->rx.mtx, MA_OWNED);
	if (sc->rx.netmap && (lc->lc_mode & (LEM_MODE_CSB | LEM_MODE_POLL)) ==
	    LEM_MODE_CSB)
		return (full || lem_intr_enable_tx(lc));
	if ((lc->lc_mode & LEM_MODE_POLL) == 0)
		return (full || pause_ns != 0 || lem_intr_enable(lc));
	if (lc->lc_poll_ns == 0 || !lc->lc_running)
		return (false);
	wait_ns = MAX(pause_ns, lem_poll_wait(lc, begin_ns, end_ns));
	if (full || wait_ns == 0)
		return (true);
	callout_reset_sbt(&sc->poll, nstosbt(wait_ns), 0, lem_poll_due, sc,
	    C_DIRECT_EXEC);
	return (false);
}

/* A turn.  If there may be more to do, the task is enqueued again. */
static void
lem_intr_task(void *arg, int pending __unused)
{
	struct lem_softc *sc = arg;
	uint64_t begin_ns = atomic_load_acq_64(&sc->intr_ns);
	uint64_t end_ns, pause_ns;
	u_int budget = sc->knobs.rx_budget, n;
	bool again;

	if (begin_ns == 0)
		begin_ns = lem_now_ns();
	atomic_store_rel_64(&sc->intr_ns, 0);
	n = lem_serve(sc, budget, true);
	mtx_lock(&sc->rx.mtx);
	end_ns = lem_now_ns();
	pause_ns = lem_rx_turn(&sc->core, n, begin_ns, end_ns);
	if (pause_ns != 0 && !sched_runnable())
		pause_ns = 0;
	again = lem_more(sc, n >= budget, pause_ns, begin_ns, end_ns);
	lem_link_update(sc);
	if (sc->rx_forwards)
		taskqueue_enqueue_timeout(sc->tq, &sc->tick, 0);
	mtx_unlock(&sc->rx.mtx);
	if (!again)
		return;
	if (pause_ns != 0)
		lem_yield(sc, pause_ns);
	taskqueue_enqueue(sc->tq, &sc->intr_task);
}

/* polling(4) has a limit of its own: kern.polling.user_frac. */
static int
lem_poll(if_t ifp, enum poll_cmd cmd, int count)
{
	struct lem_softc *sc = if_getsoftc(ifp);
	u_int n;

	if (cmd == POLL_AND_CHECK_STATUS)
		lem_link(&sc->core);
	/* Another thread than the task's. */
	n = lem_serve(sc, imin(count, sc->knobs.rx_budget), false);
	mtx_lock(&sc->rx.mtx);
	lem_link_update(sc);
	mtx_unlock(&sc->rx.mtx);
	return (n);
}

bool
lem_poll_offered(void)
{
	return (ether_poll_register != NULL && ether_poll_deregister != NULL);
}

int
lem_poll_register(struct lem_softc *sc, bool on)
{
	sx_assert(&sc->ctl, SX_XLOCKED);
	if (!lem_poll_offered())
		return (EOPNOTSUPP);
	if (!on)
		return (ether_poll_deregister(sc->ifp));
	return (sc->knobs.poll != 0 ? EBUSY :
	    ether_poll_register(lem_poll, sc->ifp));
}

void
lem_work_init(struct lem_softc *sc)
{
	sc->tq = taskqueue_create_fast("em", M_WAITOK,
	    taskqueue_thread_enqueue, &sc->tq);
	TASK_INIT(&sc->intr_task, 0, lem_intr_task, sc);
	callout_init(&sc->resume, 1);
	callout_init(&sc->poll, 1);
}

int
lem_work_start(struct lem_softc *sc)
{
	return (taskqueue_start_threads(&sc->tq, 1, PI_NET, "%s taskq",
	    device_get_nameunit(sc->dev)));
}

void
lem_work_free(struct lem_softc *sc)
{
	/* The adapter is stopped: the task does not arm it again. */
	(void)callout_drain(&sc->poll);
	taskqueue_free(sc->tq);
}
