/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Frames that wait for a user in another process: vale_inbox.c.
 */

#ifndef _VALE_INBOX_H_
#define	_VALE_INBOX_H_

#include <stdbool.h>
#include <stddef.h>

#include "libvale.h"

struct vale_pair;
struct vale_port;

/*
 * Create the inbox of a ring pair, whose receive ring exists.  Returns 0 or
 * -1.
 */
int	vale_inbox_create(struct vale_pair *pair);

/* Free the inbox of a ring pair, if it has one. */
void	vale_inbox_destroy(struct vale_pair *pair);

/* The pair's port, which may have no inboxes, has its place in the switch. */
void	vale_inbox_attach(struct vale_pair *pair);

/* Bytes of the inboxes of a port; no number of `params' may be a default. */
size_t	vale_inbox_size(const struct vale_params *params);

/* Whether all that was in it is delivered.  Any thread. */
bool	vale_inbox_empty(struct vale_port *in);

#endif /* !_VALE_INBOX_H_ */
