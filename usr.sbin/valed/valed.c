/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The files of valed:
 *
 *	valed.c		 main(): the start
 *	valed_serve.c	 what the main thread does then, until the end
 *	valed_hostif_keep.c interfaces of valectl(8), for the next process
 *	valed_options.c	 the command line
 *	valed_config.c	 configuration files: variables as text
 *	valed_values.c	 their values
 *	valed_address.c	 the default address of an adapter
 *	valed_control.c	 the option -c
 *	valed_counters_keep.c counters of ports, for the next process
 *	valed_activation.c the sockets that are inherited
 *	valed_notify.c	 messages to the service manager
 *	valed_socket.c	 the sockets in the file system
 *	valed_why.c	 errors as values
 *	valed_guard.c	 the guard: reads files again, opens what they name
 *	valed_opener.c	 a process that opens a port of another valed: control=
 *	valed_plan.c	 what a reload changes
 *	valed_print.c	 prints the configuration: -T
 *	valed_reload.c	 carries it out
 *	valed_adapters.c adapters that come, change and go
 *	valed_interfaces.c interfaces that the configuration attaches
 *	valed_settings.c settings of switches and ports
 *	valed_settings_keep.c those that were changed, for the next process
 *	valed_sandbox.c	 drops privileges
 *	valed_carrier.c	 carriers of attached interfaces, for links of ports
 *	valed_stats.c	 prints counters
 *	valed_store.c	 descriptors that outlast the process
 *	valed_supervisor.c starts it again: -R
 *	valed_watch.c	 what clients of the control socket see of adapters
 *	adapter.c	 an adapter: its start and end, and the host side of the
 *			 model
 *	adapter_work.c	 what its thread does in between
 *	adapter_keep.c	 what is kept of it for the next process
 *	adapter_resume.c what an earlier process has left of it
 *	adapter_net.c	 its network: a port, of another valed's switch, too, or
 *			 a TAP
 *	adapter_port.c	 opens that, follows its link, moves to another one
 *	adapter_announce.c announces its address to the network
 *	adapter_pci.c	 what it is on the PCI bus
 *	tap_port.c	 a frame port over a TAP
 */

/*
 * valed: e1000 adapters for virtual machines that run in other processes.
 *
 *	 QEMU (vfio-user-pci)		    QEMU
 *	   | socket   | memory, eventfds      |
 *	 ..|..........|.......................|............ valed
 *	 vfu_server  peer_mem, vfu_irq	     (the same)
 *	   |          |                       |
 *	 vfu_device --+-- e82545 model	    e82545 model
 *		      |			      |
 *		  adapter_net, port	   (the same)
 *		      |			      |
 *		      +---- VALE switch ------+		libvale
 *
 * valed takes the place of bhyve on Linux.  It is the host of the adapter
 * model, and a server of vfio-user, the protocol by which QEMU uses a device of
 * another process.
 *
 * Each adapter has a thread that does all of its work (adapter_work.c).
 * Adapters meet only in the switch, where a port cannot see another port's
 * memory.  The main thread opens the sockets, starts the other threads, drops
 * the privileges of the process (this file), and then waits for signals
 * (valed_serve.c), and carries out what changed configurations say
 * (valed_reload.c).  A second process, the guard, reads these, opens what they
 * name, and removes the sockets at the end (valed_guard.c).  With a control
 * socket a third one passes
 * descriptors (ctl_pass.c), and with control= there is one for each such
 * adapter, which opens its port (valed_opener.c).  With -R another one, the
 * first of all, starts the serving process again, which then goes on with the
 * clients that it had (valed_supervisor.c).
 *
 * Neither clients nor the guests behind them are trusted:
 *
 *  - valed checks what a client sends before it uses it.  Buffers and tables
 *    have fixed sizes and belong to one adapter; only the JSON of VERSION takes
 *    memory, until it is answered.
 *  - A client that stalls, floods or disconnects delays only its own thread,
 *    and not for long.
 *  - A client that takes guest memory away is dropped: peer_fault.h.
 *  - If all of this fails, the process still can open no file and start no
 *    program.
 */

#include <sys/resource.h>

#include <err.h>
#include <errno.h>
#include <jansson.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "adapter.h"
#include "adapter_config.h"
#include "adapter_keep.h"
#include "ctl.h"
#include "ctl_names.h"
#include "ctl_pass.h"
#include "hostif.h"
#include "peer_accept.h"
#include "peer_close.h"
#include "peer_fault.h"
#include "peer_signal.h"
#include "peer_log.h"
#include "vale_version.h"
#include "valed_activation.h"
#include "valed_control.h"
#include "valed_counters_keep.h"
#include "valed_guard.h"
#include "valed_hostif_keep.h"
#include "valed_interfaces.h"
#include "valed_notify.h"
#include "valed_options.h"
#include "valed_print.h"
#include "valed_reload.h"
#include "valed_sandbox.h"
#include "valed_serve.h"
#include "valed_settings_keep.h"
#include "valed_store.h"
#include "valed_supervisor.h"
#include "valed_watch.h"
#include "valed_why.h"

/* Bytes of memory that malloc(3) maps. */
#define	LARGE		(128 * 1024)

_Static_assert(VALED_MAXADAPTERS == CTL_NAMES_ADAPTERS,
    "the ports of all adapters have names");
_Static_assert(VALED_MAXADAPTERS + CTL_MAX + HOSTIF_MAX <=
    PEER_FAULT_MAX, "each has memory that may vanish");

/* Raise the limits: an adapter takes more than twenty descriptors. */
static void
limits_raise(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
}

/* What is served; the main thread's. */
static struct valed_options	opt;

/* Reserve the names of the ports that the configuration has. */
static void
names_start(void)
{
	unsigned int i;

	for (i = 0; i < opt.vo_nadapters; i++)
		ctl_names_adapter(valed_place(&opt.vo_adapters[i]),
		    opt.vo_adapters[i].ac_backend);
}

/* End before valed serves, after a message. */
static void __dead2
give_up(int code)
{
	valed_guard_end(false);
	_exit(code);
}

/* Keep the settings of switches and ports, before there are any. */
static void
settings_start(void)
{
	const struct valed_setting *st = opt.vo_settings.vss_list;
	unsigned int failed, n = opt.vo_settings.vss_n;
	struct vale_setting_change sc;

	for (; n > 0; st++, n--) {
		sc = (struct vale_setting_change){ .sc_preset = true,
		    .sc_setting = st->vst_setting, .sc_value = st->vst_value };
		if (vale_setting_preset_all(st->vst_name, &sc, 1, &failed) ==
		    -1) {
			warnx("%s: %s=: %s", st->vst_name,
			    vale_setting_table[st->vst_setting].se_name,
			    vale_error());
			give_up(EX_OSERR);
		}
	}
	valed_reload_begin(&opt);
}

/*
 * Start the adapters.  One that cannot start has said why, and does not keep
 * the others down; but there must be something to serve.
 */
static void
adapters_start(void)
{
	struct adapter_config *ac;
	struct adapter *ad;

	for (ac = opt.vo_adapters; ac < opt.vo_adapters + opt.vo_nadapters;
	    ac++) {
		ad = adapter_start(ac, NULL);
		if (ad != NULL) {
			valed_watch_add(ad);
			continue;
		}
		close(ac->ac_listen);
		if (valed_is_remote(ac))
			close(ac->ac_opener);
		(void)valed_guard_unlink(ac->ac_path);
	}
	if (opt.vo_nadapters > 0 && TAILQ_EMPTY(&valed_adapters) &&
	    opt.vo_control == NULL && opt.vo_nhostifs == 0)
		give_up(EX_UNAVAILABLE);
}

/*
 * Attach the interfaces of -a, and of lines.  An option -a that fails ends
 * valed, if no earlier process has served.
 */
static void
interfaces_start(void)
{
	valed_interfaces_begin(&opt);
	if (!valed_interfaces_start() && valed_store_count() == 0)
		give_up(EX_UNAVAILABLE);
}

/*
 * Have the connections with the passer and the supervisor where the sandbox can
 * protect both.
 */
static bool
pair(void)
{
	const int fd = valed_store_pair(ctl_pass_fd());

	if (fd != -1 && ctl_pass_fd() != -1)
		ctl_pass_moved(fd);
	return (fd != -1);
}

int
main(int argc, char **argv)
{
	struct valed_why why = { .wy_status = 0 };
	int signal_fd;

	peer_log_init("valed");
	/*
	 * Map what is large, always, so that calloc(3) need not write zeros
	 * there, and free(3) gives it back: by default that ends when a large
	 * piece is freed, as after a restart.
	 */
	(void)mallopt(M_MMAP_THRESHOLD, LARGE);
	/* A line is one write(2): other processes have the same stderr. */
	setlinebuf(stderr);
	valed_activation_init();
	valed_supervisor_begin(argv);
	if (!valed_options(argc, argv, &opt, &why)) {
		warnx("%s", why.wy_text);
		valed_supervisor_mend(&why);
		return (why.wy_status);
	}
	if (opt.vo_tell == VALED_USAGE)
		valed_usage();
	if (opt.vo_tell == VALED_VERSION)
		puts("valed " VALE_VERSION);
	if (opt.vo_print)
		valed_print(&opt);
	if (opt.vo_check && fflush(stdout) != 0)
		err(EX_IOERR, "stdout");
	if (opt.vo_check || opt.vo_tell != VALED_NOTHING)
		return (EX_OK);
	if (!valed_notify_wanted())
		valed_notify_open();
	limits_raise();
	if (opt.vo_supervised)
		valed_supervise(argv);
	else
		valed_unsupervised();
	/* This opens a file, which the sandbox prohibits later. */
	json_object_seed(0);
	signal_fd = valed_serve_signals();
	if (signal_fd == -1)
		err(EX_OSERR, "signals");
	if ((errno = peer_fault_init()) != 0)
		err(EX_OSERR, "SIGBUS");
	if (!valed_guard_start(argc, argv, &opt, &why))
		errx(why.wy_status, "%s", why.wy_text);
	if ((errno = peer_accept_start()) != 0) {
		warn("descriptors");
		give_up(EX_OSERR);
	}
	if (opt.vo_control != NULL && (errno =
	    ctl_pass_start(valed_sandbox_enter_passer)) != 0) {
		warn("process that passes descriptors");
		give_up(EX_OSERR);
	}
	if (valed_store_active() && !pair()) {
		warn("supervisor");
		give_up(EX_OSERR);
	}
	if ((errno = peer_close_start(valed_sandbox_drop)) != 0) {
		warn("thread");
		give_up(EX_OSERR);
	}
	/* Without it an adapter's own thread sends all of its interrupts. */
	(void)peer_signal_start();
	if (valed_store_active())
		adapter_keep_signals();
	names_start();
	settings_start();
	valed_hostif_keep_start(&opt);
	valed_settings_keep_start(&opt);
	adapters_start();
	valed_counters_keep_start(&opt);
	ctl_devices_are(valed_watch_list);
	ctl_changes_are(valed_serve_keep);
	if (opt.vo_control != NULL &&
	    (errno = ctl_start(opt.vo_control->co_listen,
	    &opt.vo_control->co_options, valed_sandbox_drop)) != 0) {
		warn("control socket");
		give_up(EX_OSERR);
	}
	if (valed_sandbox_enter(ctl_pass_fd(), valed_store_fd()) == -1) {
		warn("sandbox");
		give_up(EX_OSERR);
	}
	interfaces_start();
	valed_hostif_keep_attach();
	valed_serve(opt.vo_verbose, signal_fd);
}
