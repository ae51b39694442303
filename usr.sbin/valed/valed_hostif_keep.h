/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Interfaces that valectl(8) has attached, kept for the next process; those of
 * the configuration are opened at each start.  In the store (valed_store.h)
 * are, N from 0:
 *
 *	hostif.N	struct hostif_kept, in memory
 *	hostif.N.I	the descriptors, if it is one of packet(7)
 *
 * The next process has no privileges that valectl had, and needs none for those
 * of packet(7), which get empty rings.  The memory of AF_XDP cannot be taken
 * over: such an interface is opened again, with the privileges of the start.
 * Nothing in the store is trusted: a client may have taken over the process.
 */

#ifndef _VALED_HOSTIF_KEEP_H_
#define	_VALED_HOSTIF_KEEP_H_

#include <stdbool.h>

struct valed_options;

/*
 * Take the interfaces that an earlier process had from the store, unless the
 * configuration has their ports, and reserve these.  One that cannot be
 * attached again is told.  The main thread, before ctl_start() and the sandbox,
 * when the names of the configuration are reserved.
 */
void	valed_hostif_keep_start(const struct valed_options *opt);

/*
 * Return whether a port is one of these.  The main thread, until they are
 * attached.
 */
bool	valed_hostif_keep_has(const char *port);

/* Attach them.  The main thread, in the sandbox. */
void	valed_hostif_keep_attach(void);

/*
 * Have the store keep the interfaces that are attached now.  Without a store,
 * nothing.  Any thread, with no lock.
 */
void	valed_hostif_keep(void);

#endif /* !_VALED_HOSTIF_KEEP_H_ */
