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
#include "vale_grant.h"
#include "vale_wire.h"

struct ctl_conn {
	uint32_t	 cc_used;	/* the slot is taken; atomic */
	bool		 cc_open;	/* its thread runs: ctl.c */
	bool		 cc_stuck;	/* it has left, and does not end:
					   ctl_settle() */
	uint64_t	 cc_serial;	/* no other connection has the same */
	int		 cc_fd;
	bool		 cc_reserved;	/* that is of peer_accept.h's reserve */
	struct ctl_who	 cc_who;	/* its client */
	unsigned int	 cc_unread;	/* descriptors that were sent and the
					   client has not received: ctl.c */
	bool		 cc_lingers;	/* the connection has ended, and keeps
					   its slot until they are received */
	/* The request, and the reply that takes its place. */
	struct vale_wire *cc_wire;
	void		*cc_body;	/* behind it */
	size_t		 cc_size;	/* bytes of the request's */
	/* What it has registered, as it was granted. */
	struct nmreq_register cc_reg;
	char		 cc_name[NETMAP_REQ_IFNAMSIZ];
	struct ctl_owner cc_owner;	/* of that port, or monitor */
	struct vale_grant cc_grant;	/* what it has, and the descriptors of
					   request and reply */
	unsigned int	 cc_header;	/* of its port: vale_set_header() */
	struct vale_wire_filter *cc_filter; /* of the next monitor, or NULL */
};

/* Bytes of a body. */
#define	CTL_BODY_MAX	(VALE_WIRE_MAX - sizeof(struct vale_wire))

/* Say what is wrong with the request, in the reply: vale_grant.h. */
#define	ctl_why(cc, ...)	vale_grant_why(&(cc)->cc_grant, __VA_ARGS__)
#define	ctl_why_errno(cc, error) vale_grant_why_errno(&(cc)->cc_grant, (error))
/* Say what `error', of a function of ctl_owner.h, means.  Returns an errno. */
int	ctl_why_owner(struct ctl_conn *cc, int error);

/*
 * Handle a request, which is in cc_body, of the right length, with zeros behind
 * it, and whose name ends.  Leave the reply's body there and its length in
 * *size, which is 0 before, or return an errno after ctl_why().  Descriptors
 * that came with the request are closed, unless gr_npassed is set to 0.
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
int	ctl_mirror(struct ctl_conn *cc, size_t *size);
int	ctl_settings(struct ctl_conn *cc, size_t *size);
int	ctl_filter(struct ctl_conn *cc, size_t *size);
int	ctl_missed(struct ctl_conn *cc, size_t *size);
int	ctl_attach(struct ctl_conn *cc, size_t *size);
int	ctl_detach(struct ctl_conn *cc, size_t *size);
int	ctl_reload(struct ctl_conn *cc, size_t *size);

/*
 * Give back what the connection has been granted, and its filter; a port's name
 * is free for others before the port is closed.  ctl_port.c.
 */
void	ctl_port_close(struct ctl_conn *cc);
/* Refuse to open a port whose name is reserved.  Returns an errno. */
int	ctl_port_reserved(struct ctl_conn *cc, enum ctl_name_of of);

/* Begin, before the first request.  Returns 0 or an errno.  ctl_reload.c. */
int	ctl_reload_start(void);

/*
 * Wait until what connections had whose clients have left is closed.  `self' is
 * the caller's connection, or NULL.  ctl.c.
 */
void	ctl_settle(const struct ctl_conn *self);

#endif /* !_CTL_IMPL_H_ */
