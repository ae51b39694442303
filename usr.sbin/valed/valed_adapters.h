/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The adapters of the process, each known by its place.  The main thread, which
 * calls valed_serve_watch() while an adapter starts, ends or moves.
 */

#ifndef _VALED_ADAPTERS_H_
#define	_VALED_ADAPTERS_H_

#include <stdbool.h>

#include "adapter.h"
#include "adapter_config.h"

/*
 * Copy the configurations of all adapters to `all', which has room for
 * VALED_MAXADAPTERS.  Returns how many there are.
 */
unsigned int valed_adapters_copy(struct adapter_config *all);

/*
 * Reserve the name of the port that an adapter is to have (ctl_names.h).
 * Returns false if another adapter, a program or an interface has it, or a
 * program captures it.  valed_adapters_end() ends all that is reserved, and
 * closes the sockets that valed_adapters_remove() has kept.
 */
bool	valed_adapters_reserve(const struct adapter_config *ac);
void	valed_adapters_end(void);

/*
 * Start an adapter with *ac, whose ac_listen is -1 if it takes the socket of
 * one with the same path that was removed.  Returns false after a line; the
 * descriptors of *ac are closed then.
 */
bool	valed_adapters_add(const struct adapter_config *ac);

/* Remove the adapter at the place of *ac, if there is one; wait for its end. */
void	valed_adapters_remove(const struct adapter_config *ac);

/* Change the adapter at the place of *ac as adapter_change() does. */
void	valed_adapters_change(const struct adapter_config *ac);

/*
 * Move the adapter at the place of *ac as adapter_move() does; the name that
 * was reserved is its own then, or else free.  Returns false if it cannot be
 * moved, after a line.
 */
bool	valed_adapters_move(const struct adapter_config *ac);

/* Return whether the adapter at the place of *ac has a client. */
bool	valed_adapters_client(const struct adapter_config *ac);

#endif /* !_VALED_ADAPTERS_H_ */
