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
 *	 start, reserve ---> new --- add ---> configured
 *			      |			  | remove
 *			     end		leaving
 *			      v			  | end
 *			    free <----------------+
 *
 * A reload reserves the names of all adapters that it adds before it removes
 * any.  So a port that another has is found then, and nobody can open one
 * between.  What a reload no longer has is free at its end.
 */

#ifndef _VALED_NAMES_H_
#define	_VALED_NAMES_H_

#include <sys/queue.h>

struct adapter_config;
struct valed_options;

enum valed_name_of {
	VALED_NAME_FREE,
	VALED_NAME_ADAPTER,
	VALED_NAME_HOSTIF		/* -a */
};

/* A port that is being opened under a free name. */
struct valed_opening {
	LIST_ENTRY(valed_opening) vo_link;
	const char		*vo_name;
};

/* Reserve what is in *opt, for good or until a reload.  The main thread. */
void	valed_names_start(const struct valed_options *opt);

/*
 * The steps of a reload, for the adapter at a place; see above.
 * valed_names_reserve() returns 0, or EBUSY if another is opening a port with
 * this name.  After it, the caller must look whether one is open, and if so
 * call valed_names_unreserve().  The main thread.
 */
int	valed_names_reserve(const struct adapter_config *place,
	    const char *name);
void	valed_names_unreserve(const struct adapter_config *place);
void	valed_names_add(const struct adapter_config *place);
void	valed_names_remove(const struct adapter_config *place);
void	valed_names_end(void);

/*
 * Begin to open a port for a program.  If the name is free, *vo and `name' must
 * stay until valed_names_opened(), when the port is open or could not be.
 * Otherwise returns whose it is, and there is nothing to end.  Any thread.
 */
enum valed_name_of valed_names_open(struct valed_opening *vo,
	    const char *name);
void	valed_names_opened(struct valed_opening *vo);

#endif /* !_VALED_NAMES_H_ */
