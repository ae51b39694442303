/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A connection to valed's control socket, for valectl(8), for netmap-run(1),
 * for vale_valed.c, which is libvale over it, and for another valed
 * (vale_remote.h).  vale_wire.h has the protocol.
 *
 * One thread at a time may use a connection, and one each ring of a port.
 * Functions that return an int return 0, or -1 with errno set.
 */

#ifndef _VALE_CLIENT_H_
#define	_VALE_CLIENT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vale_layout.h"
#include "vale_pipe.h"
#include "vale_wire.h"

/*
 * Connect to valed at `path'.  Returns a descriptor, or -1 with errno of
 * socket(2) or connect(2), or ENAMETOOLONG.
 */
int	vale_client_connect(const char *path);
/* Do the two parts of that: make a socket, and connect it. */
int	vale_client_socket(void);
int	vale_client_join(int fd, const char *path);

/* A request and its reply. */
struct vale_client_call {
	/* Both ways; nr_name, nr_reqtype and nr_body of the request. */
	struct nmreq_header	*hdr;
	const void		*body;	/* of the request */
	size_t			 size;	/* bytes, up to VALE_CLIENT_BODY */
	void			*reply;	/* space for that of the reply; may be
					   `body' */
	size_t			 reply_max;	/* bytes of it */
	size_t			 reply_size;	/* bytes that the reply has */
	/* Descriptors: those to send, and then those received. */
	int			 fds[VALE_WIRE_REPLY_FDS];
	unsigned int		 nfds;
	/* What is wrong, in valed's words, or "". */
	char			 why[sizeof(((struct vale_wire *)0)->vw_why)];
};
#define	VALE_CLIENT_BODY	(VALE_WIRE_MAX - sizeof(struct vale_wire))

/*
 * Send a request, and wait for its reply.  The caller keeps the descriptors
 * that it sends, and owns those received.
 *
 * Fails with the errno of the reply, and valed's sentence in `why'; EPROTO if
 * the reply is malformed, EPIPE if valed has gone, or an errno of sendmsg(2) or
 * recvmsg(2).
 */
int	vale_client_call(int fd, struct vale_client_call *call);
/* Do the two parts of that, for who waits for more than the reply. */
int	vale_client_ask(int fd, struct vale_client_call *call);
int	vale_client_answer(int fd, struct vale_client_call *call);

/* A ring pair of such a port. */
struct vale_client_ring {
	/* In the window: vale_layout.h. */
	struct netmap_ring	*vcr_txring;
	struct netmap_ring	*vcr_rxring;
	struct vale_window_ring	*vcr_heads;
	/* In the memory, to which others may write. */
	struct vale_csb		*vcr_csb;	/* this side's indexes: atok */
	struct netmap_slot	*vcr_tx_slots;
	struct netmap_slot	*vcr_rx_slots;
	int			 vcr_tx_kick;	/* sockets to wait for */
	int			 vcr_rx_kick;
};

/*
 * An open port in valed, or an end of a pipe (vale_pipe.h), with one ring pair.
 * The rings are netmap's; the two syncs below take the place of NIOCTXSYNC and
 * NIOCRXSYNC, of one ring each.
 */
struct vale_client_port {
	int			 cp_fd;		/* the connection, or -1 */
	int			 cp_memory;	/* descriptors */
	int			 cp_window;
	char			*cp_base;	/* where it is mapped */
	size_t			 cp_window_size;
	size_t			 cp_bufs;	/* offset of buffer 0 */
	uint32_t		 cp_nbufs;	/* that the memory may have */
	struct netmap_if	*cp_nifp;
	unsigned int		 cp_nrings;	/* ring pairs */
	struct vale_client_ring	 cp_ring[VALE_RINGS_MAX];
	struct nmreq_register	 cp_reg;	/* as valed has granted it */
	bool			 cp_private;	/* vale_client_take() */
	bool			 cp_is_pipe;
	struct vale_pipe	 cp_pipe;
	uint32_t		 cp_gone;	/* valed has ended; set by
						   the functions that wait;
						   atomic */
};

/*
 * Make a text that valed has sent, `size' bytes of any kind, a string of one
 * line: `?' stands for what is no printable character of ASCII, so that no text
 * of others changes a terminal, or begins a line of a log.
 */
void	vale_client_text(char *text, size_t size);

/*
 * vale_valed.c: call show(entry, arg) for each entry of a list of `name', whose
 * request is `type', until it returns non-zero.  An entry has `size' bytes.
 * Returns that value, 0, or -1 with errno if valed does not answer.
 */
int	vale_client_list(const char *name, uint16_t type, size_t size,
	    int (*show)(const void *entry, void *arg), void *arg);

/*
 * Open the port `name' as `reg' says, over the connection `fd', which becomes
 * the port's.  `proof' is a descriptor of the memory that it shall be in, if
 * that is another user's, or -1.  On failure the connection stays usable;
 * `why', if it is not NULL, takes as many bytes as vw_why.
 */
int	vale_client_open(struct vale_client_port *cp, int fd, const char *name,
	    const struct nmreq_register *reg, int proof, char *why);

/*
 * Find the port of the connection `fd', which another process has opened and
 * still may use: its rings are as they are.  `name' is set.  ENXIO if it has
 * none, or errors of vale_client_call(); the connection stays the caller's
 * then.
 */
int	vale_client_share(struct vale_client_port *cp, int fd,
	    char name[NETMAP_REQ_IFNAMSIZ]);

/*
 * Take a new port `name', no pipe, which another process has opened, and whose
 * connection that one keeps: `reg' and `fds' are of the reply.  valed is not
 * trusted: its memory must be sealed against shrinking, and nobody else has the
 * window.  The descriptors stay the caller's, and must stay open as long as the
 * port is used.  EPROTO if what valed has sent is not valid, or errors of
 * mmap(2).  Also in a sandbox.
 */
int	vale_client_take(struct vale_client_port *cp, const char *name,
	    const struct nmreq_register *reg, const int *fds,
	    unsigned int nfds);
/* Unmap the memory of such a port. */
void	vale_client_unmap(struct vale_client_port *cp);

/* Close the port and its connection. */
void	vale_client_close(struct vale_client_port *cp);

/*
 * Publish the head of transmit ring `ring', 0 to cp_nrings - 1 as in all of
 * these, and show in its tail what has been sent.  Slots with NS_INDIRECT are
 * copied into their buffers, which they must fit.  EINVAL and EIO as
 * vale_txsync(), of a pipe as vale_pipe_txsync(), which copies nothing; EIO
 * also if what is in the memory is not valid.  After fork(2), either process
 * may do this.
 */
int	vale_client_txsync(struct vale_client_port *cp, unsigned int ring);

/*
 * Return the receive ring's slots, show new frames, and set its ts to the time
 * of day, as netmap does; that of a transmit ring only if it has NR_TIMESTAMP.
 * EINVAL as vale_rxsync(); of a pipe, errors of vale_pipe_rxsync(); EIO if what
 * is in the memory is not valid.
 */
int	vale_client_rxsync(struct vale_client_port *cp, unsigned int ring);

/*
 * Ask for a byte on vcr_rx_kick with the next frame.  Returns true if there is
 * one now, beyond the ring's cur.
 */
bool	vale_client_rxwait(struct vale_client_port *cp, unsigned int ring);

/*
 * Ask for a byte on vcr_tx_kick when more of the transmit ring has been sent.
 * Returns true if there is space now, beyond the ring's cur.
 */
bool	vale_client_txwait(struct vale_client_port *cp, unsigned int ring);

/* Return whether valed still serves the connection `fd'.  A system call. */
bool	vale_client_alive(int fd);

#endif /* !_VALE_CLIENT_H_ */
