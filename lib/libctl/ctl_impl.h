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
#include "ctl_names.h"
#include "ctl_owner.h"
#include "ctl_who.h"
#include "vale_wire.h"
#include "peer_mem.h"

struct ctl_memory;
struct ctl_pipe;

/* The sockets of a ring pair. */
struct ctl_kick {
	int		 tx;
	int		 rx;
};

struct ctl_conn {
	uint32_t	 cc_used;	/* the slot is taken; atomic */
	bool		 cc_open;	/* its thread runs: ctl.c */
	bool		 cc_stuck;	/* it has left, and does not end:
					   ctl_settle() */
	uint64_t	 cc_serial;	/* no other connection has the same */
	int		 cc_fd;
	bool		 cc_reserved;	/* that is of peer_accept.h's reserve */
	struct ctl_who	 cc_who;	/* its client */
	int		 cc_passed[VALE_WIRE_FDS]; /* with the request */
	unsigned int	 cc_npassed;
	int		 cc_fds[VALE_WIRE_REPLY_FDS]; /* for the reply */
	unsigned int	 cc_nfds;
	unsigned int	 cc_unread;	/* descriptors that were sent and the
					   client has not received: ctl.c */
	bool		 cc_lingers;	/* the connection has ended, and keeps
					   its slot until they are received */
	/* The request, and the reply that takes its place. */
	struct vale_wire *cc_wire;
	void		*cc_body;	/* behind it */
	/* What it has registered, as it was granted. */
	struct nmreq_register cc_reg;
	char		 cc_name[NETMAP_REQ_IFNAMSIZ];
	struct ctl_owner cc_owner;	/* of that port, or monitor */
	/* The port, or NULL.  ctl_port.c. */
	struct vale_desc *cc_port;
	struct vale_params cc_params;
	unsigned int	 cc_header;	/* bytes: vale_set_header() */
	struct vale_wire_filter *cc_filter; /* of the next monitor, or NULL */
	struct ctl_kick	 cc_kick[VALE_RINGS_MAX];	/* cc_params.rings */
	struct ctl_kick	 cc_theirs[VALE_RINGS_MAX];	/* the user's ends */
	struct peer_mem	 cc_dma;	/* its memory, mapped */
	struct ctl_memory *cc_memory;	/* of the port, or the pipe */
	int		 cc_window;	/* of what it has registered */
	/* An end of a pipe, or NULL.  ctl_pipe.c. */
	struct ctl_pipe	*cc_pipe;
	unsigned int	 cc_end;
	/* Memory without a port or pipe.  ctl_null.c. */
	bool		 cc_null;
	unsigned int	 cc_place;	/* of its netmap_if */
};

/* Whether it has registered something. */
static inline bool
ctl_registered(const struct ctl_conn *cc)
{
	return (cc->cc_port != NULL || cc->cc_pipe != NULL || cc->cc_null);
}

/* Bytes of a body. */
#define	CTL_BODY_MAX	(VALE_WIRE_MAX - sizeof(struct vale_wire))

/* Say what is wrong with the request, in the reply.  Returns `error'. */
int	ctl_why(struct ctl_conn *cc, int error, const char *fmt, ...)
	    __attribute__((__format__(__printf__, 3, 4)));
/* Say what `error', of a function of ctl_owner.h, means.  Returns an errno. */
int	ctl_why_owner(struct ctl_conn *cc, int error);

/*
 * Say what strerror(3) says of `error', unless ctl_why() was called.  Returns
 * `error'.
 */
int	ctl_why_errno(struct ctl_conn *cc, int error);

/*
 * Requests: each finds one of the right length in cc_body, zeros behind it, and
 * a name that ends.  It leaves the reply's body there and its length in *size,
 * which is 0 before, or returns an errno after ctl_why().  One that keeps the
 * descriptors that came with it sets cc_npassed to 0; the others are closed.
 */
int	ctl_register(struct ctl_conn *cc, size_t *size);
int	ctl_info(struct ctl_conn *cc, size_t *size);
int	ctl_info_any(struct ctl_conn *cc, size_t *size);
int	ctl_share(struct ctl_conn *cc, size_t *size);
int	ctl_header_set(struct ctl_conn *cc, size_t *size);
int	ctl_header_get(struct ctl_conn *cc, size_t *size);
int	ctl_list(struct ctl_conn *cc, size_t *size);
int	ctl_ports(struct ctl_conn *cc, size_t *size);
int	ctl_addrs(struct ctl_conn *cc, size_t *size);
int	ctl_devices(struct ctl_conn *cc, size_t *size);
int	ctl_set(struct ctl_conn *cc, size_t *size);
int	ctl_set_text(struct ctl_conn *cc, size_t *size);
int	ctl_mirror(struct ctl_conn *cc, size_t *size);
int	ctl_port_settings(struct ctl_conn *cc, size_t *size);
int	ctl_switch_settings(struct ctl_conn *cc, size_t *size);
int	ctl_filter(struct ctl_conn *cc, size_t *size);
int	ctl_missed(struct ctl_conn *cc, size_t *size);
int	ctl_attach(struct ctl_conn *cc, size_t *size);
int	ctl_detach(struct ctl_conn *cc, size_t *size);
int	ctl_reload(struct ctl_conn *cc, size_t *size);
int	ctl_replace(struct ctl_conn *cc, size_t *size);
int	ctl_restart(struct ctl_conn *cc, size_t *size);

/*
 * ctl_port.c: leave others half of the descriptors that this process may have.
 * Before the first request.
 */
void	ctl_port_limit(void);
/* Serve the port until a request comes or the client leaves. */
void	ctl_port_serve(struct ctl_conn *cc);
/* Close the port. */
void	ctl_port_close(struct ctl_conn *cc);
/* Forget the filter of the monitor that the connection would open next. */
void	ctl_filter_drop(struct ctl_conn *cc);
/* Reply with copies of the user's descriptors.  Returns an errno. */
int	ctl_port_fds(struct ctl_conn *cc);
/* Append a copy of a descriptor to the reply.  Returns an errno. */
int	ctl_reply_fd(struct ctl_conn *cc, int fd);
/* Whether the modes and numbers of a port may be asked for: 0, or an errno. */
int	ctl_port_check(struct ctl_conn *cc, const struct nmreq_register *reg);
/* Refuse to open a port whose name is reserved.  Returns an errno. */
int	ctl_port_reserved(struct ctl_conn *cc, enum ctl_name_of of);
/* What a new port would have.  `reg' has been checked. */
void	ctl_port_params(const struct nmreq_register *reg,
	    struct vale_params *params);

/* ctl_pipe.c: requests for the name of a pipe. */
int	ctl_pipe_register(struct ctl_conn *cc, size_t *size);
int	ctl_pipe_info(struct ctl_conn *cc, size_t *size);
/* Reply with what a pipe that is not there would have.  Returns an errno. */
int	ctl_pipe_plan(struct ctl_conn *cc, size_t *size);
/* Close the connection's end. */
void	ctl_pipe_close(struct ctl_conn *cc);
int	ctl_pipe_fds(struct ctl_conn *cc);

/* ctl_reload.c: before the first request.  Returns 0 or an errno. */
int	ctl_reload_start(void);

/* ctl_null.c: NR_REG_NULL. */
int	ctl_null_register(struct ctl_conn *cc, size_t *size);
void	ctl_null_close(struct ctl_conn *cc);
int	ctl_null_fds(struct ctl_conn *cc);

/*
 * ctl.c: wait until what connections had whose clients have left is closed.
 * `self' is the caller's connection, or NULL.
 */
void	ctl_settle(const struct ctl_conn *self);

#endif /* !_CTL_IMPL_H_ */
