/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The VALE backend without the fast paths of net_backend_vale.c.
 */

#ifndef _BACKEND_GENERAL_H_
#define	_BACKEND_GENERAL_H_

struct frame_port;
struct net_backend;
struct vale_desc;

/* Open VALE port `name'.  Fails the test if it cannot. */
struct net_backend *backend_general_open(const char *name);
void	backend_general_close(struct net_backend *be);
struct frame_port *backend_general_port(struct net_backend *be);

/* The VALE port of such a backend, or of net_backend_vale.c's. */
struct vale_desc *backend_general_desc(struct net_backend *be);

#endif /* !_BACKEND_GENERAL_H_ */
