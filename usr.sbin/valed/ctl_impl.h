/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A connection of the control socket: private to ctl*.c.  Only its thread uses
 * it, except where noted.
 */

#ifndef _CTL_IMPL_H_
#define	_CTL_IMPL_H_

#include <sys/systm.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl.h"
#include "vale_wire.h"
#include "vfu_dma.h"

struct ctl_memory;
struct ctl_pipe;

/* The sockets of a ring pair. */
struct ctl_kick {
	int		 tx;
	int		 rx;
};

struct ctl_conn {
	uint32_t	 cc_used;	/* the slot is taken; atomic */
	int		 cc_fd;
	int		 cc_passed[VALE_WIRE_FDS]; /* with the request */
	unsigned int	 cc_npassed;
	int		 cc_fds[VALE_WIRE_REPLY_FDS]; /* for the reply */
	unsigned int	 cc_nfds;
	/* The request, and the reply that takes its place. */
	struct vale_wire *cc_wire;
	void		*cc_body;	/* behind it */
	/* The port, or NULL.  ctl_port.c. */
	struct vale_desc *cc_port;
	struct vale_params cc_params;
	unsigned int	 cc_header;	/* bytes: vale_set_header() */
	struct ctl_kick	 cc_kick[VALE_RINGS_MAX];	/* cc_params.rings */
	struct vfu_dma	 cc_dma;	/* its memory, mapped */
	struct ctl_memory *cc_memory;	/* of the port, or the pipe */
	/* An end of a pipe, or NULL.  ctl_pipe.c. */
	struct ctl_pipe	*cc_pipe;
	unsigned int	 cc_end;
};

/* Bytes of a body. */
#define	CTL_BODY_MAX	(VALE_WIRE_MAX - sizeof(struct vale_wire))

/* Say what is wrong with a request.  Returns `error'. */
int	ctl_why(struct ctl_conn *cc, int error, const char *fmt, ...)
	    __attribute__((__format__(__printf__, 3, 4)));

/*
 * Requests: each finds one of the right length in cc_body, with a name that
 * ends, leaves the reply's body there and its length in *size, or returns an
 * errno after ctl_why().  One that keeps the descriptors that came with it sets
 * cc_npassed to 0; the others are closed.
 */
int	ctl_register(struct ctl_conn *cc, size_t *size);
int	ctl_info(struct ctl_conn *cc, size_t *size);
int	ctl_header_set(struct ctl_conn *cc, size_t *size);
int	ctl_header_get(struct ctl_conn *cc, size_t *size);
int	ctl_list(struct ctl_conn *cc, size_t *size);
int	ctl_ports(struct ctl_conn *cc, size_t *size);
int	ctl_addrs(struct ctl_conn *cc, size_t *size);
int	ctl_set(struct ctl_conn *cc, size_t *size);
int	ctl_mirror(struct ctl_conn *cc, size_t *size);
int	ctl_rate_get(struct ctl_conn *cc, size_t *size);
int	ctl_port_get(struct ctl_conn *cc, size_t *size);
int	ctl_switch_get(struct ctl_conn *cc, size_t *size);
int	ctl_missed(struct ctl_conn *cc, size_t *size);
int	ctl_attach(struct ctl_conn *cc, size_t *size);
int	ctl_detach(struct ctl_conn *cc, size_t *size);

/*
 * ctl_port.c: leave others half of the descriptors that this process may have.
 * Before the first request.
 */
void	ctl_port_limit(void);
/* Serve the port until a request comes or the client leaves. */
void	ctl_port_serve(struct ctl_conn *cc);
/* Close the port. */
void	ctl_port_close(struct ctl_conn *cc);

/* ctl_pipe.c: requests for the name of a pipe. */
int	ctl_pipe_register(struct ctl_conn *cc, size_t *size);
int	ctl_pipe_info(struct ctl_conn *cc, size_t *size);
/* Close the connection's end. */
void	ctl_pipe_close(struct ctl_conn *cc);

#endif /* !_CTL_IMPL_H_ */
