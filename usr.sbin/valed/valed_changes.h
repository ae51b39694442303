/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What the serving process has, and how a reload changes that: valed_changes.c.
 * One thread, of valed before there is a guard, then of the guard.
 */

#ifndef _VALED_CHANGES_H_
#define	_VALED_CHANGES_H_

#include <stdbool.h>

struct adapter_config;
struct valed_options;
struct valed_why;

/*
 * Listen at the adapter's path.  Returns the socket, or -1 with *why, which
 * tells where the path was set.
 */
int	valed_changes_socket(const struct adapter_config *ac,
	    struct valed_why *why);

/*
 * The serving process is to have what *opt says, whose lists must stay.
 * Returns false with *why if there is no memory.
 */
bool	valed_changes_begin(const struct valed_options *opt,
	    struct valed_why *why);

/* Close the adapters' sockets, in the guard; forget all of this, in the serving
   process. */
void	valed_changes_close(void);
void	valed_changes_drop(void);

/*
 * Have the serving process change to what *opt says, whose lists are taken.
 * Errors are printed; *why gets the first.  If an adapter would be replaced
 * that has a client, this is an error, and nothing is changed, unless `replace'
 * is set.
 */
void	valed_changes(struct valed_options *opt, bool replace,
	    struct valed_why *why);

/* Remove the sockets on which no adapter of the configuration listens. */
void	valed_changes_prune(void);

/*
 * The adapter of this place could not be started: its socket is removed, and
 * the next reload adds it.  A client may have the process: any numbers.
 */
void	valed_changes_absent(int bus, int slot, int func);

/*
 * The interface of the configuration that has this port, if there is one, is
 * not attached, or is gone; `why', or "", was told.
 */
void	valed_changes_unattached(const char *port, const char *why);

/*
 * Whether an interface of the configuration is not attached; attach those whose
 * names exist.
 */
bool	valed_changes_unattached_any(void);
void	valed_changes_attach(void);

#endif /* !_VALED_CHANGES_H_ */
