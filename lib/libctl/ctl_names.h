/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Names of ports that the configuration has: those of adapters, and of -a.
 *
 * They are reserved, whether the ports are open or not: before valed has opened
 * them, while a reload replaces an adapter, and if an adapter could not be
 * added.  Only a monitor can be opened under such a name by another.
 *
 *		reserve ---> new --- add ---> configured <--- adapter
 *			      |			  | remove
 *			     end		leaving
 *			      v			  | end
 *			    free <----------------+
 *
 * A reload reserves the names of all adapters that it adds or moves before it
 * removes any.  So a port that another has is found then, and nobody can open
 * one between.  What a reload no longer has is free at its end.
 */

#ifndef _CTL_NAMES_H_
#define	_CTL_NAMES_H_

#include <stdbool.h>

/* Adapters at a time. */
#define	CTL_NAMES_ADAPTERS	256

enum ctl_name_of {
	CTL_NAME_FREE,
	CTL_NAME_ADAPTER,
	CTL_NAME_HOSTIF		/* -a, and attach.NAME */
};

/*
 * Reserve the name of an adapter's port, until a reload, or of an interface's,
 * until ctl_names_hostif_remove(); false: it was.  No other adapter has the
 * same `place'.  There are up to CTL_NAMES_ADAPTERS and HOSTIF_MAX of them.
 * The main thread.
 */
void	ctl_names_adapter(unsigned int place, const char *name);
bool	ctl_names_hostif(const char *name);
void	ctl_names_hostif_remove(const char *name);

/*
 * Take the steps of a reload, for the adapter at a place; see above.  After
 * ctl_names_reserve() the caller must look whether a port with this name is
 * open or being opened (ctl_owner_taken()), and if so call
 * ctl_names_unreserve().  ctl_names_move() is the end of one name and the
 * beginning of the other, if that is reserved.  The main thread.
 */
void	ctl_names_reserve(unsigned int place, const char *name);
void	ctl_names_unreserve(unsigned int place);
void	ctl_names_add(unsigned int place);
void	ctl_names_remove(unsigned int place);
void	ctl_names_move(unsigned int place);
void	ctl_names_end(void);

/*
 * Return whose a name is.  Who opens a port for a program has claimed the name
 * (ctl_owner_claim()), so that either sees the other.  Any thread.
 */
enum ctl_name_of ctl_names_of(const char *name);

#endif /* !_CTL_NAMES_H_ */
