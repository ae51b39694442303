/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The network of an adapter: a port of a switch, or a TAP.  The adapter's
 * thread.
 */

#ifndef _ADAPTER_NET_H_
#define	_ADAPTER_NET_H_

#include "vale_frame_port.h"

struct adapter_net {
	struct frame_port	*an_port;	/* NULL: it is not open */
	int			 an_fd;		/* readable if frames are
						   pending */
	struct vale_desc	*an_vale;	/* the switch's port, or NULL */
	struct vale_frame_port	 an_vale_port;
};

/*
 * Open the port or TAP that `name' names, without an MTU if `mtu' is 0 bytes.
 * Returns 0, or -1 with a sentence of at most `size' bytes in `why'.
 */
int	adapter_net_open(struct adapter_net *an, const char *name,
	    uint32_t mtu, char *why, size_t size);

/* The longest frame of an MTU, in bytes; of 0, without a limit. */
uint32_t adapter_net_frame_max(uint32_t mtu);

/* Close it, if it is open. */
void	adapter_net_close(struct adapter_net *an);

/* Whether there is none any more: an_fd stays readable. */
bool	adapter_net_gone(const struct adapter_net *an);

#endif /* !_ADAPTER_NET_H_ */
