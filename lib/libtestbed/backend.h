/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * bhyve's network backends, opened as its command line would.
 */

#ifndef _BACKEND_H_
#define	_BACKEND_H_

#include "net_backends.h"

/* A callback for those who look for frames by themselves. */
void	backend_ignore(int fd, enum ev_type type, void *param);

/*
 * The backend of an option string such as "vale0:a,mtu=9000", in a fresh
 * configuration.  backend_try() returns what netbe_init() does; where
 * backend_open() has no backend to return, the test case has failed.
 */
int	backend_try(net_backend_t **be, const char *opts);
net_backend_t *backend_open(const char *opts, net_be_rxeof_t cb, void *param);

#endif /* !_BACKEND_H_ */
