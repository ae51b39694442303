/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The files of valed:
 *
 *	valed.c		 main(): starts the threads, waits for signals
 *	valed_options.c	 the command line
 *	valed_socket.c	 the sockets in the file system
 *	valed_sandbox.c	 drops privileges
 *	valed_stats.c	 prints counters
 *	ctl.c		 the control socket: connections, requests
 *	ctl_port.c	 its requests about ports of other processes
 *	ctl_switch.c	 its requests about switches
 *	adapter.c	 an adapter: its thread, and the host side of the model
 *	vfu_server.c	 its client: connection and framing
 *	vfu_version.c	 version negotiation
 *	vfu_device.c	 all other commands
 *	vfu_dma.c	 guest memory
 *	vfu_fault.c	 guest memory that vanishes
 *	vfu_irq.c	 interrupts
 *	vfu_close.c	 closes descriptors that clients passed
 *	vfu_pci.c	 PCI configuration space
 *	watch.c		 the watchdog for calls that clients block
 */

#ifndef _VALED_H_
#define	_VALED_H_

#include <sys/types.h>
#include <sys/un.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nvlist;
struct adapter;

/* One -s option. */
struct adapter_config {
	int		ac_slot;
	int		ac_func;
	struct nvlist	*ac_nvl;	/* for the backend */
	const char	*ac_backend;	/* "vale0:vm1" */
	const char	*ac_name;	/* "vm1"; see valed.8, COUNTERS */
	char		ac_path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	uint8_t		ac_mac[6];
	uint32_t	ac_mtu;		/* bytes; 0: no limit */
	uint32_t	ac_itr_256ns;
	uint32_t	ac_itr_min_256ns;
	uint64_t	ac_mem;		/* bytes a client may share; 0: the
					   default of vfu_dma_init() */
	bool		ac_csb;
	bool		ac_direct;
	int		ac_listen;	/* the listening socket */
};

/* As many as a PCI bus has: 32 slots with 8 functions. */
#define	VALED_MAXADAPTERS	256

struct valed_options {
	bool		 vo_verbose;
	unsigned int	 vo_nadapters;
	struct adapter_config *vo_adapters;
	const char	*vo_control;	/* the control socket's path, or NULL */
	int		 vo_control_listen;
};

/*
 * valed_options.c: parse and check the command line.  On an error, prints a
 * line to stderr and exits with EX_USAGE, before anything is created.
 */
void	valed_options(int argc, char **argv, struct valed_options *opt);

/*
 * valed_socket.c
 */

/*
 * Create the sockets of all adapters and listen on them.  Replaces a socket on
 * which no process listens.  On an error, removes the sockets, prints a line to
 * stderr and exits.
 */
void	valed_sockets_open(struct valed_options *opt);

/*
 * Start the guard, a process that removes the sockets when this one ends, in
 * whatever way.  The caller must not have started a thread yet.
 */
void	valed_sockets_guard(const struct valed_options *opt);

/* Let the guard remove the sockets, and wait until it has. */
void	valed_sockets_close(void);

/*
 * valed_sandbox.c
 */

/* Drop all capabilities of the calling thread.  0, or -1 with errno. */
int	valed_sandbox_drop(void);

/*
 * Enter the sandbox: no thread of the process can open a file, start a program
 * or gain privileges any more, and a system call that the filter does not allow
 * kills the process.  With a control socket (`control'), threads, memory and pairs
 * of local sockets can be created.  0, or -1 with errno.
 */
int	valed_sandbox_enter(bool control);

/*
 * valed_stats.c.  Only the main thread may call these functions.
 */

/* Print all counters to stdout: see valed(8), COUNTERS. */
void	valed_stats_print(struct adapter **adapters, unsigned int nadapters);

/* Print a line for each adapter to stdout: changes since the last call. */
void	valed_stats_live(struct adapter **adapters, unsigned int nadapters);

#endif /* !_VALED_H_ */
