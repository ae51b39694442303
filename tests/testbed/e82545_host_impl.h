/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The network (e82545_host_net.c) as part of a host's life (e82545_host.c).
 */

#ifndef _E82545_HOST_IMPL_H_
#define	_E82545_HOST_IMPL_H_

struct host;

/* Before the adapter exists: its port and its source are the network's. */
void	host_net_init(struct host *h);
/* After the adapter: free the frames. */
void	host_net_destroy(struct host *h);

#endif /* !_E82545_HOST_IMPL_H_ */
