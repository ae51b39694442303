/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * valed: e1000 adapters for virtual machines that run in other processes.
 *
 *	 QEMU (vfio-user-pci)		    QEMU
 *	   | socket   | memory, eventfds      |
 *	 ..|..........|.......................|............ valed
 *	 vfu_server  vfu_dma, vfu_irq	     (the same)
 *	   |          |                       |
 *	 vfu_device --+-- e82545 model	    e82545 model
 *		      |			      |
 *		   net_port, backend	   backend
 *		      |			      |
 *		      +---- VALE switch ------+		libvale
 *
 * valed takes the place of bhyve on Linux.  It is the host of the adapter
 * model, and a server of vfio-user, the protocol by which QEMU uses a device of
 * another process.
 *
 * Each adapter has a thread that does all of its work (adapter.c).  Adapters
 * meet only in the switch, where a port cannot see another port's memory.  The
 * main thread opens the sockets, starts the other threads, drops the privileges
 * of the process, and then waits for signals.  A second process removes the
 * sockets at the end (valed_socket.c).
 *
 * Neither clients nor the guests behind them are trusted:
 *
 *  - valed checks what a client sends before it uses it.  Buffers and tables
 *    have fixed sizes and belong to one adapter; only the JSON of VERSION takes
 *    memory, until it is answered.
 *  - A client that stalls, floods or disconnects delays only its own thread,
 *    and not for long.
 *  - A client that takes guest memory away is dropped: vfu_fault.h.
 *  - If all of this fails, the process still can open no file and start no
 *    program.
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
#include <unistd.h>

#include "adapter.h"
#include "ctl.h"
#include "valed.h"
#include "vfu_close.h"
#include "vfu_fault.h"
#include "watch.h"

static void
signal_nothing(int sig __unused)
{
}

/*
 * The main thread waits for all signals except one, whose handler does nothing:
 * it only interrupts a system call.
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

/* An adapter takes more than twenty descriptors. */
static void
limits_raise(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
}

/* Handle signals until one ends the program; once a second, check adapters. */
static void
run(const sigset_t *set, struct adapter **adapters,
    const struct valed_options *opt)
{
	uint64_t next_ns;
	unsigned int i;
	bool due;
	int sig;

	next_ns = watch_start();
	for (;;) {
		sig = watch_wait(set, &next_ns, &due);
		if (sig == SIGTERM || sig == SIGINT)
			return;
		if (sig != 0)
			valed_stats_print(adapters, opt->vo_nadapters);
		if (!due)
			continue;
		for (i = 0; i < opt->vo_nadapters; i++)
			adapter_watch(adapters[i]);
		vfu_close_watch();
		valed_notify_watch();
		if (opt->vo_verbose)
			valed_stats_live(adapters, opt->vo_nadapters);
	}
}

int
main(int argc, char **argv)
{
	struct valed_options opt;
	struct adapter **adapters;
	sigset_t set;
	unsigned int i;

	valed_log_init();
	valed_options(argc, argv, &opt);
	valed_notify_open();
	adapters = calloc(opt.vo_nadapters, sizeof(*adapters));
	if (adapters == NULL)
		err(EX_OSERR, NULL);
	limits_raise();
	/* It opens a file for that, which the sandbox prohibits later. */
	json_object_seed(0);
	signals_block(&set);
	if ((errno = vfu_fault_init()) != 0)
		err(EX_OSERR, "SIGBUS");
	valed_sockets_open(&opt);
	valed_sockets_guard(&opt);
	if ((errno = vfu_close_start()) != 0) {
		warn("thread");
		valed_sockets_close();
		_exit(EX_OSERR);
	}
	for (i = 0; i < opt.vo_nadapters; i++) {
		adapters[i] = adapter_start(&opt.vo_adapters[i]);
		if (adapters[i] == NULL) {
			valed_sockets_close();
			_exit(EX_UNAVAILABLE);
		}
	}
	if (opt.vo_control != NULL &&
	    (errno = ctl_start(opt.vo_control_listen)) != 0) {
		warn("control socket");
		valed_sockets_close();
		_exit(EX_OSERR);
	}
	if (valed_sandbox_enter(opt.vo_control != NULL) == -1) {
		warn("sandbox");
		valed_sockets_close();
		_exit(EX_OSERR);
	}
	for (i = 0; i < opt.vo_nadapters; i++)
		adapter_go(adapters[i]);
	valed_notify_ready(opt.vo_nadapters);
	run(&set, adapters, &opt);
	valed_notify("STOPPING=1");

	/* Threads that are busy end with the process. */
	valed_sockets_close();
	fflush(stdout);
	_exit(EX_OK);
}
