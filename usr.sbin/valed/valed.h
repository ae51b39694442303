/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What valed is made of, room by room:
 *
 *	valed.c		 main: options in, threads up, sandbox, signals
 *	valed_options.c	 the command line
 *	valed_socket.c	 the sockets' names: taking over, cleaning up
 *	valed_sandbox.c	 giving up rights
 *	valed_stats.c	 counters on demand
 *	adapter.c	 one VM: its thread, and the model's host operations
 *	vfu_server.c	 its client: connection and framing
 *	vfu_version.c	 negotiation
 *	vfu_device.c	 commands
 *	vfu_dma.c vfu_irq.c vfu_pci.c	what the commands act upon
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
	int		vc_slot;
	int		vc_func;
	struct nvlist	*vc_nvl;	/* for the backend */
	const char	*vc_backend;	/* "vale0:vm1" */
	const char	*vc_name;	/* "vm1"; see valed.8, COUNTERS */
	char		vc_path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	uint8_t		vc_mac[6];
	uint32_t	vc_mtu;		/* bytes; 0: any */
	uint32_t	vc_itr_256ns;
	bool		vc_csb;
	bool		vc_direct;
	int		vc_listen;	/* the socket, listening */
};

/* Devices on a PCI bus: one bus, 32 slots, 8 functions. */
#define	VALED_MAXVMS	256

struct valed_options {
	bool		 vo_verbose;
	unsigned int	 vo_nvms;
	struct adapter_config *vo_vms;
};

/*
 * valed_options.c: parse and check the command line.  Says what is wrong on
 * one line of stderr and exits, EX_USAGE; nothing has been created then.
 */
void	valed_options(int argc, char **argv, struct valed_options *opt);

/*
 * valed_socket.c
 */

/*
 * Bind and listen on every VM's socket.  A socket that nobody listens to any
 * more is replaced.  Exits with one line on stderr if a name cannot be had,
 * leaving none behind.
 */
void	valed_sockets_open(struct valed_options *opt);

/*
 * Start the process that removes the sockets when this one ends in whatever
 * way.  Before any thread is started.
 */
void	valed_sockets_guard(const struct valed_options *opt);

/* Have the sockets removed, and wait until they are. */
void	valed_sockets_close(void);

/*
 * valed_sandbox.c
 */

/* Give up all capabilities of the calling thread.  0 or -1 with errno. */
int	valed_sandbox_drop(void);

/*
 * From now on no thread of the process can open a file, start a program or
 * gain rights; a system call outside the short list kills the process.
 * Returns 0 or -1 with errno.
 */
int	valed_sandbox_enter(void);

/*
 * valed_stats.c: the main thread.
 */

/* Print "vm counter value" for every counter, to stdout. */
void	valed_stats_print(struct adapter **adapters, unsigned int nadapters);

/* Print one line for each VM: what happened in the last second. */
void	valed_stats_live(struct adapter **adapters, unsigned int nadapters);

#endif /* !_VALED_H_ */
