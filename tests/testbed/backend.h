/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * bhyve's network backends, opened as by its command line.
 */

#ifndef _BACKEND_H_
#define	_BACKEND_H_

#include "net_backends.h"

/* A callback for tests that poll for frames. */
void	backend_ignore(int fd, enum ev_type type, void *param);

/*
 * Open the backend of an option string such as "vale0:a,mtu=9000", in a new
 * configuration.  backend_try() returns the result of netbe_init();
 * backend_open() fails the test case if there is no backend.
 */
int	backend_try(net_backend_t **be, const char *opts);
net_backend_t *backend_open(const char *opts, net_be_rxeof_t cb, void *param);

#endif /* !_BACKEND_H_ */
