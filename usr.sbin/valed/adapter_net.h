/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The network of an adapter: a port of a switch, a TAP, or none for a moment.
 * The adapter's thread.
 */

#ifndef _ADAPTER_NET_H_
#define	_ADAPTER_NET_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct frame_port;
struct vale_desc;

/*
 * The name of no network: no frame comes, and none can be sent.  A configuration
 * cannot have it.
 */
#define	ADAPTER_NET_NONE	"none"

/* May be copied. */
struct adapter_net {
	struct frame_port	*an_port;	/* NULL: it is not open */
	int			 an_fd;		/* readable if frames are
						   pending */
	struct vale_desc	*an_vale;	/* the switch's port, or NULL */
	const struct adapter_net_type *an_type;
};

/*
 * Open the network that `name' names, without an MTU if `mtu' is 0 bytes.
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
