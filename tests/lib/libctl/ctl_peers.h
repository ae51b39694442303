/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Three clients of the control socket: users 1001 and 1002, and an
 * administrator.  A case calls peers_start() first, and peers_stop() in the
 * end.
 */

#ifndef _CTL_PEERS_H_
#define	_CTL_PEERS_H_

#include "ctl_calls.h"

#define	REG_SIZE	sizeof(struct nmreq_register)

static struct peer one, two, root;

static inline void
peers_start(void)
{
	peer_connect(&one, 1001, false);
	peer_connect(&two, 1002, false);
	peer_connect(&root, 0, true);
}

static inline void
peers_stop(void)
{
	peer_end(&one);
	peer_end(&two);
	peer_end(&root);
}

/* Open a port, and drop the descriptors. */
static inline void
port_open(struct peer *p, const char *name)
{
	GRANTED(REG_SIZE, 4, p, REGISTER(name, .nr_mode = NR_REG_ALL_NIC));
	peer_close_fds(p);
}

#endif /* !_CTL_PEERS_H_ */
