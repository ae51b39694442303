/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The interfaces that the configuration attaches.  The main thread, without
 * another reload in progress.
 */

#ifndef _VALED_INTERFACES_H_
#define	_VALED_INTERFACES_H_

#include <stdbool.h>

#include "valed_options.h"

struct valed_why;

/* Begin with the interfaces of *opt, which are taken from it. */
void	valed_interfaces_begin(struct valed_options *opt);

/*
 * Attach all of them.  Returns false if one of an option -a cannot be, which
 * was said; others are attached later.
 */
bool	valed_interfaces_start(void);

/*
 * Note that the interface of the configuration that has this port, if there is
 * one, could not be attached, for the reason `why', which was printed, or is
 * gone: "".
 */
void	valed_interfaces_absent(const char *port, const char *why);

/*
 * Attach those that are not attached and have come back.  Once a second.
 */
void	valed_interfaces_again(void);

/*
 * Detach interfaces that *opt does not have, and then attach those of *opt that
 * are not attached, whose list is taken from *opt: a reload.  Errors are
 * printed; *first gets the first one.
 */
void	valed_interfaces_detach(const struct valed_options *opt);
void	valed_interfaces_attach(struct valed_options *opt,
	    struct valed_why *first);

#endif /* !_VALED_INTERFACES_H_ */
