/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Descriptors that go and come with a message over a UNIX-domain socket
 * (SCM_RIGHTS).
 *
 * Other control messages come, too, if the socket has options for them: who
 * inherits a socket, or passes one on, also sets its options, and what
 * accept(2) returns has those of the socket that listens.  The kernel puts
 * credentials and a security context before the descriptors, so a receiver
 * needs space for those, as well.
 */

#ifndef _PEER_FDS_H_
#define	_PEER_FDS_H_

#include <sys/socket.h>

#include <sys/types.h>
#include <sys/uio.h>

#include <stdbool.h>
#include <stddef.h>

/* Descriptors of a message, at most: SCM_MAX_FD of unix(7). */
#define	PEER_FDS_MAX	253

/*
 * What a send waits for.  All processes of a user share a limit of descriptors
 * that were sent and not yet received (unix(7), ETOOMANYREFS), which others may
 * use up for a moment: for the limit a send waits for a second at most.
 */
enum peer_fds_wait {
	PEER_FDS_WAIT_NOT,
	PEER_FDS_WAIT_LIMIT,
	PEER_FDS_WAIT		/* for space, too, if the socket waits */
};

/*
 * Send `len' bytes with `n' descriptors, PEER_FDS_MAX at most, which the caller
 * keeps.  Returns as sendmsg(2) without an address does that no signal
 * interrupts, and that fails for lack of the kernel's memory only if the lack
 * lasts for a second.  Any thread.
 */
ssize_t	peer_fds_send(int s, const void *p, size_t len, const int *fds,
	    unsigned int n, enum peer_fds_wait wait);

/*
 * Bytes of control messages: `n' descriptors and what may come before them,
 * credentials and a security context, of which the kernel passes what fits.  If
 * there is none, more than `n' descriptors fit.
 */
#define	PEER_FDS_SPACE(n)	(CMSG_SPACE((n) * sizeof(int)) +	\
    CMSG_SPACE(3 * sizeof(int)) + CMSG_SPACE(256))

struct peer_fds {
	int		*mf_fd;
	unsigned int	 mf_n;		/* there are */
	unsigned int	 mf_max;	/* fit */
	/* Close one that does not fit, or NULL for close(2). */
	void		(*mf_drop)(void *arg, int fd);
	void		*mf_arg;
	bool		 mf_lost;	/* not all descriptors have come */
	bool		 mf_cut;	/* peer_fds_recv()'s: nor all bytes */
};

/*
 * Append the descriptors that came with a message which recvmsg(2) has
 * received.  Other control messages are ignored, and the descriptor of a
 * process (SO_PASSPIDFD) is closed.  Returns false, and mf_lost is set, if not
 * all of them fit into *mf, or the kernel had no space or no descriptors for
 * all: it has closed what is missing.  Any thread.
 */
bool	peer_fds_take(struct msghdr *msg, struct peer_fds *mf);

/*
 * Receive a message, and append its descriptors, mf_max at most, as
 * peer_fds_take() does; MSG_CMSG_CLOEXEC is set.  Returns as recvmsg(2) that no
 * signal interrupts, and that fails for lack of memory only after a second.  Any
 * thread.
 */
ssize_t	peer_fds_recv(int s, const struct iovec *iov, size_t niov,
	    struct peer_fds *mf, int flags);

#endif /* !_PEER_FDS_H_ */
