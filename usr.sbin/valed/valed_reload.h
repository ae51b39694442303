/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Carrying out what a changed configuration says.  The main thread.
 */

#ifndef _VALED_RELOAD_H_
#define	_VALED_RELOAD_H_

#include <stdbool.h>

#include "valed_options.h"
#include "valed_why.h"

/* Begin with the settings of *opt, which are kept, and are taken from it. */
void	valed_reload_begin(struct valed_options *opt);

/*
 * Change adapters, settings and interfaces to what *opt says, whose lists are
 * taken.  Errors are printed; *why gets the first.  If an adapter would be
 * replaced that has a client, this is an error, and nothing is changed, unless
 * `replace' is set.  Waits for adapters, and for the guard.
 */
void	valed_reload(struct valed_options *opt, bool replace,
	    struct valed_why *why);

#endif /* !_VALED_RELOAD_H_ */
