/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The control socket: valectl(8), and programs whose ports are on a switch of
 * this valed.  vale_wire.h has the protocol.
 *
 *	ctl.c		connections, requests
 *	ctl_hostif.c	requests about attached interfaces
 *	ctl_names.c	reserves the names of the configuration's ports
 *	ctl_owner.c	whose a port is
 *	ctl_pass.c	passes descriptors where the sandbox keeps valed from it
 *	ctl_port.c	requests about ports and pipes of other processes, which
 *			lib/libvaleport grants
 *	ctl_reload.c	the requests for a reload and a restart
 *	ctl_switch.c	requests about switches
 *	ctl_who.c	clients: users and groups
 *
 * Each connection has a thread, which waits for requests and for kicks of its
 * port, and transmits what the port's user has published.  A client can delay
 * its own thread only; and for the time that it takes to close its port, who
 * asks for that port or its place, or what there is.
 */

#ifndef _CTL_H_
#define	_CTL_H_

#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>

/* Connections at a time, */
#define	CTL_MAX		320
/* of which the last are for administrators only; */
#define	CTL_ADMIN	8
/* and of one user who is none. */
#define	CTL_USER_MAX	((CTL_MAX - CTL_ADMIN) / 2)

/* Bytes of a reload's error, with its NUL: the longest path and value fit. */
#define	CTL_RELOAD_WHY_SIZE	8192

struct ctl_options {
	gid_t		 admin;		/* of ctl_who_init() */
	uint64_t	 mem;		/* of vale_memory_limits() */
	uint64_t	 user_mem;
};

/*
 * Start the thread that accepts connections on `fd', a listening socket of type
 * SOCK_SEQPACKET, and wait until it has dropped its privileges: drop() does
 * that, on the thread, and returns 0, or -1 with errno.  The main thread,
 * before the sandbox.  Returns 0 or an errno.
 */
int	ctl_start(int fd, const struct ctl_options *options,
	    int (*drop)(void));

/* Let that thread accept connections, which wait for that.  The main thread. */
void	ctl_go(void);

/*
 * What serves ports in this process: adapters and attached interfaces, of which
 * the control socket knows nothing.  list() calls show(device, arg) for each,
 * until it returns non-zero; it may be called by any thread, and locks what it
 * reads.  show() takes the locks of libvale and of ctl_owner.h.  Before
 * ctl_start().
 */
struct vale_wire_device;
typedef int	ctl_device_show(const struct vale_wire_device *device,
		    void *arg);
void	ctl_devices_are(void (*list)(ctl_device_show *show, void *arg));

/*
 * Return whether descriptors that this process was given are those of an
 * interface, as ctl_attach() takes them.  Any thread, also before the sandbox.
 */
struct hostif_fds;
bool	ctl_attach_accepts(const struct hostif_fds *fds);

/*
 * Call changed() after each request by which an administrator has changed a
 * setting or an attached interface, on the connection's thread, before the
 * reply.  Others can change only settings of their own ports, which end with
 * these.  Before ctl_start().
 */
void	ctl_changes_are(void (*changed)(void));

/*
 * Reloads, and restarts, that clients ask for: ctl_reload.c.  The main thread,
 * which never waits for a client there.
 */
enum ctl_wish {
	CTL_RESTART,
	CTL_REPLACE,		/* a reload that may disconnect clients */
	CTL_RELOAD,
	CTL_NWISHES
};

/*
 * Return the descriptor that is readable if a reload or restart is asked for;
 * -1 before ctl_start().  Return which is to begin then: the first, if there is
 * a choice.
 */
int	ctl_reload_fd(void);
enum ctl_wish ctl_reload_wish(void);

/*
 * Begin a reload or restart, which answers every request made so far; end it,
 * with the first error, or "".
 */
void	ctl_reload_begin(enum ctl_wish wish);
void	ctl_reload_end(enum ctl_wish wish, const char *why);

#endif /* !_CTL_H_ */
