/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What a client in another process is granted, on its request
 * NETMAP_REQ_REGISTER (vale_wire.h): a port of a switch of this process, an end
 * of a pipe, or memory only.
 *
 *	vale_grant.c		the reply, and what is asked for
 *	vale_grant_port.c	a port or monitor, which a thread serves
 *	vale_grant_pipe.c	an end of a pipe
 *	vale_grant_null.c	memory without a port
 *	vale_memory.c		the memory of all of them
 *
 * Who may have what is the caller's to decide: lib/libctl.  A grant is used by
 * one thread, except where noted.  Functions that return an errno have said why
 * in gr_why.
 */

#ifndef _VALE_GRANT_H_
#define	_VALE_GRANT_H_

#include <sys/types.h>
#include <net/if.h>
#include <net/netmap.h>

#include <stdbool.h>
#include <stddef.h>

#include "libvale.h"
#include "peer_mem.h"
#include "vale_wire.h"

struct vale_memory;
struct vale_memory_pipe;

/* The sockets for kicks of a ring pair. */
struct vale_grant_kick {
	int		 tx;
	int		 rx;
};

/* Zeroed at first, and what vale_grant_init() sets. */
struct vale_grant {
	/* The client: constant. */
	uid_t		 gr_uid;
	bool		 gr_admin;	/* the limit of a user is not its own */
	int		 gr_fd;		/* the connection */
	/* Its request: the caller's. */
	const char	*gr_name;	/* of the port, with NUL */
	int		 gr_passed[VALE_WIRE_FDS]; /* descriptors with it */
	unsigned int	 gr_npassed;
	/* The reply. */
	char		*gr_why;	/* what is wrong: as vw_why */
	int		 gr_fds[VALE_WIRE_REPLY_FDS]; /* descriptors */
	unsigned int	 gr_nfds;
	/* All grants. */
	struct vale_memory *gr_memory;	/* of the port, or the pipe */
	int		 gr_window;	/* what the client believes, or -1 */
	/* A port, or NULL. */
	struct vale_desc *gr_port;
	struct vale_params gr_params;
	struct vale_grant_kick gr_kick[VALE_RINGS_MAX];	/* gr_params.rings */
	struct vale_grant_kick gr_theirs[VALE_RINGS_MAX]; /* its ends */
	struct peer_mem	 gr_dma;	/* its memory, mapped */
	uint64_t	 gr_rest_ns;	/* of its thread: vale_yield() */
	/* An end of a pipe, or NULL. */
	struct vale_memory_pipe *gr_pipe;
	unsigned int	 gr_end;
	/* Memory without a port or pipe. */
	bool		 gr_null;
	unsigned int	 gr_place;	/* of its netmap_if */
};

/* Initialize *gr for a client: `name' and `why' are as gr_name and gr_why. */
void	vale_grant_init(struct vale_grant *gr, uid_t uid, bool admin, int fd,
	    const char *name, char *why);

/* Return whether the client has been granted something. */
bool	vale_grant_any(const struct vale_grant *gr);

/* Say what is wrong with the request.  Returns `error'. */
int	vale_grant_why(struct vale_grant *gr, int error, const char *fmt, ...)
	    __attribute__((__format__(__printf__, 3, 4)));

/*
 * Say what strerror(3) says of `error', unless vale_grant_why() was called.
 * Returns `error'.
 */
int	vale_grant_why_errno(struct vale_grant *gr, int error);

/*
 * Append a copy of a descriptor to the reply.  Returns 0; or an errno, with no
 * descriptor in the reply, and no reason in gr_why.
 */
int	vale_grant_reply(struct vale_grant *gr, int fd);

/*
 * Grant what the registration *reg asks for, and fill in its fields as netmap
 * does: the port or monitor gr_name, with a filter unless that is NULL; the end
 * of the pipe gr_name; or memory.  Nothing has been granted before.  The reply
 * gets the descriptors.  Returns 0 or an errno; of a port, errnos that the
 * caller knows more about are not explained: EBUSY, ENOSPC, ENXIO.
 */
int	vale_grant_port(struct vale_grant *gr, struct nmreq_register *reg,
	    const struct vale_wire_filter *filter);
int	vale_grant_pipe(struct vale_grant *gr, struct nmreq_register *reg);
int	vale_grant_null(struct vale_grant *gr, struct nmreq_register *reg);

/* Leave others half of the descriptors that this process may have.  Once. */
void	vale_grant_limit(void);

/* Check whether the modes and numbers of a port may be asked for. */
int	vale_grant_check(struct vale_grant *gr,
	    const struct nmreq_register *reg);

/* Return how many ring pairs *reg asks for. */
unsigned int vale_grant_rings(const struct nmreq_register *reg);

/* Fill in what a new port would have.  *reg is valid. */
void	vale_grant_params(const struct nmreq_register *reg,
	    struct vale_params *params);

/*
 * Transmit what the client has published in all rings of its port, and deliver
 * what waits for it.  Returns false if there was nothing.
 */
bool	vale_grant_transmit(struct vale_grant *gr);

/* Serve the port until a request comes on gr_fd, or the client leaves. */
void	vale_grant_serve(struct vale_grant *gr);

/*
 * Fill in the memory that the client has for the port gr_name, if it has that
 * port.
 */
void	vale_grant_port_info(struct vale_grant *gr,
	    struct nmreq_port_info_get *info);

/* Fill in what the pipe gr_name has, or the memory that *info names. */
int	vale_grant_pipe_info(struct vale_grant *gr,
	    struct nmreq_port_info_get *info);
int	vale_grant_null_info(struct vale_grant *gr,
	    struct nmreq_port_info_get *info);

/*
 * Fill in what a port or pipe gr_name would have, which is not there, with the
 * slots and rings that *info asks for.
 */
int	vale_grant_port_plan(struct vale_grant *gr,
	    struct nmreq_port_info_get *info);
int	vale_grant_pipe_plan(struct vale_grant *gr,
	    struct nmreq_port_info_get *info);

/* Do what vale_grant_fds() and vale_grant_close() ask for. */
int	vale_grant_port_fds(struct vale_grant *gr);
int	vale_grant_pipe_fds(struct vale_grant *gr);
int	vale_grant_null_fds(struct vale_grant *gr);
void	vale_grant_port_close(struct vale_grant *gr);
void	vale_grant_pipe_close(struct vale_grant *gr);
void	vale_grant_null_close(struct vale_grant *gr);

/*
 * Append the descriptors of what is granted to the reply once more, for another
 * process.  Returns as vale_grant_reply() does.
 */
static inline int
vale_grant_fds(struct vale_grant *gr)
{
	return (gr->gr_pipe != NULL ? vale_grant_pipe_fds(gr) :
	    gr->gr_port != NULL ? vale_grant_port_fds(gr) :
	    vale_grant_null_fds(gr));
}

/*
 * Give back what is granted, if anything.  What a port's client has published
 * after the last vale_grant_transmit() is not sent.
 */
static inline void
vale_grant_close(struct vale_grant *gr)
{
	if (gr->gr_port != NULL)
		vale_grant_port_close(gr);
	if (gr->gr_pipe != NULL)
		vale_grant_pipe_close(gr);
	if (gr->gr_null)
		vale_grant_null_close(gr);
}

#endif /* !_VALE_GRANT_H_ */
