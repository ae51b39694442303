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

#include <stddef.h>

#include "libvale.h"

struct vale_pair;

/*
 * Create the inbox of a ring pair, whose receive ring exists.  Returns 0 or
 * -1.
 */
int	vale_inbox_create(struct vale_pair *pair);

/* Free the inbox of a ring pair, if it has one. */
void	vale_inbox_destroy(struct vale_pair *pair);

/* Return the bytes of a port's inboxes; `params' are without defaults. */
size_t	vale_inbox_size(const struct vale_params *params);

#endif /* !_VALE_INBOX_H_ */
