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
struct valed_change;
struct valed_options;

/*
 * Listen at the adapter's path.  Returns the socket.  If there is none, prints
 * a line that says where the path was set, and exits.
 */
int	valed_changes_socket(const struct adapter_config *ac);

/*
 * The serving process is to have what *opt says, whose lists must stay.  Prints
 * a line and exits if there is no memory.
 */
void	valed_changes_begin(const struct valed_options *opt);

/*
 * In the guard: `fd' is the connection to the serving process; in its child, to
 * the guard.  Send a change there, with the adapter's socket and opener, or the
 * interface's descriptors, which stay the caller's.  Returns false if that
 * fails.
 */
void	valed_changes_to(int fd);
bool	valed_changes_send(struct valed_change *vc);

/*
 * In the guard: the serving process has carried out a change of the child, the
 * only error is a lack of memory, of which it prints a line and exits.  If the
 * child has then failed, remove the sockets on which no adapter listens.
 */
void	valed_changes_record(const struct valed_change *vc);
void	valed_changes_failed(void);

/* In the serving process: none of this is needed. */
void	valed_changes_drop(void);

/*
 * Have the serving process change to what *opt says, whose lists are taken.
 * Errors are printed: valed_error.h.  If an adapter would be replaced that has
 * a client, prints a line and exits, unless `replace' is set.
 */
void	valed_changes(struct valed_options *opt, bool replace);

/* No more changes; the first error, or "". */
void	valed_changes_end(const char *why);

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
 * In the guard: whether there are interfaces of the configuration that are not
 * attached and whose names exist.  In its child: attach them, and end with
 * valed_changes_end().
 */
bool	valed_changes_attachable(void);
void	valed_changes_attach(void);

#endif /* !_VALED_CHANGES_H_ */
