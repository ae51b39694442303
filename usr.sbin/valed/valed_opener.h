/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The opener: a process for each adapter whose port is on a switch of another
 * valed (control=).  It opens the port, and keeps the connection.
 */

#ifndef _VALED_OPENER_H_
#define	_VALED_OPENER_H_

#include <net/netmap.h>

#include "vale_wire.h"

struct adapter_config;

/* What it sends to the adapter, each a packet. */
struct valed_opened {
	enum {
		VALED_OPENED,		/* the port; VALE_REMOTE_FDS descriptors
					   come with it */
		VALED_LOST,		/* it is closed */
		VALED_NONE		/* there is none, and has been none for
					   a second */
	}			 vod_what;
	struct nmreq_register	 vod_reg;	/* VALED_OPENED */
	char			 vod_why[256];	/* VALED_NONE */
};

/*
 * Start the process for an adapter.  Returns a descriptor of type
 * SOCK_SEQPACKET, or -1 with errno of socketpair(2) or fork(2).  Each byte that
 * is sent on it closes the port, and a new one comes; the end closes the port
 * and ends the process.  The caller has no other thread, and ignores SIGCHLD.
 */
int	valed_opener_start(const struct adapter_config *ac);

#endif /* !_VALED_OPENER_H_ */
