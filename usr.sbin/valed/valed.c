/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * valed: e1000 adapters for virtual machines, from a process of their own.
 *
 *	 QEMU (vfio-user-pci)		    QEMU
 *	   | socket   | memory, eventfds      |
 *	 ..|..........|.......................|............ valed
 *	 vfu_server  vfu_dma, vfu_irq	     (the same)
 *	   |          |                       |
 *	 vfu_device --+-- e82545 model	    e82545 model
 *		      |			      |
 *		   net_batch, backend	   backend
 *		      |			      |
 *		      +---- VALE switch ------+		libvale
 *
 * Where there is no bhyve, valed is in its place: it gives the adapter model
 * what it needs of a host, and the world vfio-user, by which QEMU takes a
 * device out of another process as it would take one out of a PCI slot.
 *
 * Each VM has a thread, which does all its work (adapter.c); VMs meet in the
 * switch only, where a port never sees another port's memory.  The main thread
 * opens sockets, starts the others, gives up the process's rights
 * and then waits for signals.  A small second process removes the sockets'
 * names in the end (valed_socket.c).
 *
 * Clients are not trusted, and neither are the guests behind them:
 *
 *  - What a client sends is checked before it is used.  Buffers and tables
 *    have fixed sizes and belong to one VM; only the JSON of VERSION takes
 *    memory, until it is answered.
 *  - A client that stalls, floods or breaks off holds up its own thread, and
 *    not for long.
 *  - Guest memory is mapped only where it cannot vanish (vfu_dma.h).
 *  - Should all of this fail, the process can open and start nothing.
 */

#include <sys/param.h>
#include <sys/resource.h>

#include <err.h>
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "adapter.h"
#include "valed.h"

static void
signal_nothing(int sig __unused)
{
}

/*
 * Signals are taken by the main thread alone, by waiting for them; but for one,
 * which does nothing more than to end a system call.
 */
static void
signals_block(sigset_t *set)
{
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = signal_nothing;
	sigaction(ADAPTER_SIGNAL, &sa, NULL);
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGUSR1);
#ifdef SIGINFO
	sigaddset(set, SIGINFO);
#endif
	sigprocmask(SIG_BLOCK, set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Twenty-odd descriptors a VM: take all that may be had. */
static void
limits_raise(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
}

/* Seconds on the clock that -v goes by, in ns. */
static int64_t
clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (ts.tv_sec * 1000000000LL + ts.tv_nsec);
}

/* Wait for a signal until `until' on clock_ns(); 0 where none came. */
static int
signal_wait(const sigset_t *set, int64_t until)
{
	struct timespec ts;
	int64_t left;
	int sig;

	left = MAX(until - clock_ns(), 0);
	ts.tv_sec = left / 1000000000;
	ts.tv_nsec = left % 1000000000;
	sig = sigtimedwait(set, NULL, &ts);
	return (sig == -1 ? 0 : sig);
}

/* Serve signals, look after the VMs, and -v, until a signal ends us. */
static void
run(const sigset_t *set, struct adapter **adapters,
    const struct valed_options *opt)
{
	const int64_t second = 1000000000;
	unsigned int i;
	int64_t next;
	int sig;

	next = clock_ns() + second;
	for (;;) {
		sig = signal_wait(set, next);
		if (sig == SIGTERM || sig == SIGINT)
			return;
		if (sig != 0)
			valed_stats_print(adapters, opt->vo_nvms);
		if (clock_ns() < next)
			continue;
		next += second;
		for (i = 0; i < opt->vo_nvms; i++)
			adapter_watch(adapters[i]);
		if (opt->vo_verbose)
			valed_stats_live(adapters, opt->vo_nvms);
	}
}

int
main(int argc, char **argv)
{
	struct valed_options opt;
	struct adapter **adapters;
	sigset_t set;
	unsigned int i;

	valed_options(argc, argv, &opt);
	adapters = calloc(opt.vo_nvms, sizeof(*adapters));
	if (adapters == NULL)
		err(EX_OSERR, NULL);
	limits_raise();
	/* From a file, which the sandbox will not let it open. */
	json_object_seed(0);
	signals_block(&set);
	valed_sockets_open(&opt);
	valed_sockets_guard(&opt);
	for (i = 0; i < opt.vo_nvms; i++) {
		adapters[i] = adapter_start(&opt.vo_vms[i]);
		if (adapters[i] == NULL) {
			valed_sockets_close();
			_exit(EX_UNAVAILABLE);
		}
	}
	if (valed_sandbox_enter() == -1) {
		warn("sandbox");
		valed_sockets_close();
		_exit(EX_OSERR);
	}
	for (i = 0; i < opt.vo_nvms; i++)
		adapter_go(adapters[i]);
	run(&set, adapters, &opt);

	/* The threads may be busy: they end with the process. */
	valed_sockets_close();
	fflush(stdout);
	_exit(EX_OK);
}
