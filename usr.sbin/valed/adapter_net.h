/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The network of an adapter: a port of a switch, a TAP, or none for a moment.
 * The adapter's thread.
 *
 * A port of another valed's switch comes from the opener (valed_opener.h), when
 * it can be opened, and may go and come again.
 */

#ifndef _ADAPTER_NET_H_
#define	_ADAPTER_NET_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct frame_port;
struct vale_desc;
struct vale_remote;

/*
 * The name of no network: no frame comes, and none can be sent.  A
 * configuration cannot have it.
 */
#define	ADAPTER_NET_NONE	"none"

/* May be copied. */
struct adapter_net {
	struct frame_port	*an_port;	/* NULL: it is not open */
	int			 an_fd;		/* readable if frames are
						   pending; -1: no port yet */
	struct vale_desc	*an_vale;	/* the switch's port, or NULL */
	struct vale_remote	*an_remote;	/* another valed's, or NULL */
	int			 an_opener;	/* with that, its descriptor */
	const struct adapter_net_type *an_type;
};

/*
 * Open the network that `name' names, without an MTU if `mtu' is 0 bytes.
 * If `opener' is not -1, but a descriptor, which stays the caller's, there is
 * no port yet.  Returns 0, or -1 with a sentence of at most `size' bytes in
 * `why'.
 */
int	adapter_net_open(struct adapter_net *an, const char *name,
	    uint32_t mtu, int opener, char *why, size_t size);

/*
 * Take what the opener has sent, when its descriptor is readable.  There is a
 * port then if an_fd is not -1.  If that is not the port of before, the caller
 * must have deleted its event.  `why' is a sentence if there has been no port
 * for a second, else "".  Returns false if the opener has ended.
 */
bool	adapter_net_news(struct adapter_net *an, const char *name, char *why,
	    size_t size);

/*
 * Return whether what the other valed has written to the port's memory is
 * invalid; and then open a new port in place of this one.
 */
bool	adapter_net_bad(const struct adapter_net *an);
void	adapter_net_again(struct adapter_net *an);

/* Return the longest frame of an MTU, in bytes; of 0, without a limit. */
uint32_t adapter_net_frame_max(uint32_t mtu);

/* Close it, if it is open. */
void	adapter_net_close(struct adapter_net *an);

/* Return whether the port is gone: an_fd stays readable then. */
bool	adapter_net_gone(const struct adapter_net *an);

#endif /* !_ADAPTER_NET_H_ */
