/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The control socket's server in the test's own thread, over a socketpair; and
 * calls that it makes, which leave a trace.  One thread.
 */

#ifndef _CTL_CALLS_H_
#define	_CTL_CALLS_H_

#include <sys/systm.h>

#include <stdbool.h>
#include <stdint.h>

#include "ctl_impl.h"
#include "vale_memory.h"
#include "vale_shared.h"

/* A client, and its last reply. */
struct peer {
	struct ctl_conn	*pe_cc;
	int		 pe_fd;
	union {
		struct vale_wire wire;
		char	packet[VALE_WIRE_MAX];
	} pe_reply;
	void		*pe_body;	/* of the reply, */
	size_t		 pe_size;	/* and its bytes */
	int		 pe_fds[VALE_WIRE_REPLY_FDS];
	unsigned int	 pe_nfds;
};

/* Connect; close what the last reply had; have the server close it. */
void	peer_connect(struct peer *p, uid_t uid, bool admin);
void	peer_close_fds(struct peer *p);
void	peer_end(struct peer *p);
/* Close it, and connect again as the same user. */
void	peer_renew(struct peer *p);
/* The first `n' of these, of user 1001. */
void	peers_connect(struct peer *p, unsigned int n);
void	peers_close(struct peer *p, unsigned int n);
/*
 * Have a packet answered that begins with struct vale_wire, or is shorter, and
 * check the form of the reply.  Descriptor `passed' comes with it, unless it is
 * -1.  Returns vw_error.
 */
int	peer_packet(struct peer *p, const void *packet, size_t len, int passed);
/* How many copies of it; 1 at first. */
extern unsigned int peer_copies;
/* That many others instead, or NULL. */
extern const int *peer_fds;
/* The same with a request's header, and its body. */
int	peer_pass(struct peer *p, uint16_t request, const char *name,
	    const void *body, size_t size, int passed);
int	peer_ask(struct peer *p, uint16_t request, const char *name,
	    const void *body, size_t size);

/* The reply is that error, with that reason and nothing else. */
#define	REFUSED(error, why, p, ...) do {				\
	ATF_CHECK_EQ((error), peer_ask((p), __VA_ARGS__));		\
	ATF_CHECK_STREQ((why), (p)->pe_reply.wire.vw_why);		\
	ATF_CHECK_EQ(0, (p)->pe_size);					\
	ATF_CHECK_EQ(0, (p)->pe_nfds);					\
} while (0)

/* It is none, with that many descriptors and a body of that size. */
#define	GRANTED(size, nfds, p, ...) do {				\
	ATF_CHECK_EQ_MSG(0, peer_ask((p), __VA_ARGS__), "%s",		\
	    (p)->pe_reply.wire.vw_why);					\
	ATF_CHECK_STREQ("", (p)->pe_reply.wire.vw_why);			\
	ATF_CHECK_EQ((size), (p)->pe_size);				\
	ATF_CHECK_EQ((nfds), (p)->pe_nfds);				\
} while (0)

/* Open a port or a pipe, which must succeed; the reply's body. */
struct nmreq_register peer_open(struct peer *p, const char *name,
	    struct nmreq_register reg, int passed);
#define	OPEN(p, name, ...)						\
	peer_open(p, name, (struct nmreq_register){ __VA_ARGS__ }, -1)

#define	REGISTER(name, ...)						\
	NETMAP_REQ_REGISTER, name, &(struct nmreq_register){ __VA_ARGS__ }, \
	    sizeof(struct nmreq_register)

/* What fstat(2) adds to a device's number. */
extern dev_t	fstat_dev;

/* What the last vale_open_shared() was called with. */
extern struct vale_shared shared_last;

#endif /* !_CTL_CALLS_H_ */
