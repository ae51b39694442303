/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A netmap program, for tests of netmap-run(1): ports that are opened as any
 * netmap program does, with system calls.  The program runs itself again with
 * the library, before main().
 */

#ifndef _NETMAP_PORT_H_
#define	_NETMAP_PORT_H_

#include <sys/types.h>
#include <net/netmap_user.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "test.h"
#include "valed_run.h"

struct port {
	int			 fd;
	struct nmreq_register	 reg;
	char			*memory;
	struct netmap_if	*nifp;
	/* Ring 0, or the one of NR_REG_ONE_NIC. */
	struct netmap_ring	*tx;
	struct netmap_ring	*rx;
};

/* ioctl(fd, NIOCCTRL) of a request.  Returns 0 or an errno. */
int	request(int fd, uint16_t type, const char *name, void *body);

/*
 * Have a program that this process executes preload the library, with this
 * process's user.
 */
void	preload(void);

/* Open /dev/netmap. */
int	device(void);

/* Open the port with `reg', whose mode may be 0, or with NULL. */
struct port port_open(const char *name, const struct nmreq_register *reg);
/* One that another process has opened so, and passed. */
struct port port_passed(const char *name, int fd,
	    const struct nmreq_register *reg);
void	port_close(struct port *p);

/* Put a frame of `len' bytes in the next slot; its last byte is `seq'. */
void	port_put(struct port *p, uint16_t len, uint8_t seq);
/* The same, and NIOCTXSYNC. */
void	port_send(struct port *p, uint16_t len, uint8_t seq);
/* Wait, with NIOCRXSYNC, for such a frame, and take it. */
void	port_expect(struct port *p, uint16_t len, uint8_t seq);
/* Take all frames that are in the ring. */
unsigned int port_take(struct port *p);

/* poll(2) of one descriptor.  Returns its events. */
short	poll_one(int fd, short events, int ms);

/* Start a thread with `fn'. */
pthread_t later(void *(*fn)(void *), void *arg);
/* For that: send a frame when the other has gone to sleep, or so. */
void	*send_later(void *port);

/* Threads that send so many frames of 60 bytes, and that expect all of them. */
struct port_flow {
	struct port	*port;
	unsigned int	 frames;
};
void	*port_flow_send(void *flow);
void	*port_flow_receive(void *flow);

/* The number of ports of valed. */
unsigned int ports(void);

#endif /* !_NETMAP_PORT_H_ */
