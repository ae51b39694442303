/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The control socket: whose a port is.
 *
 * A port that a program opens is its user's.  All others, those of adapters and
 * of attached interfaces, are the administrators', and are not here.
 *
 * A capture, which is a monitor or a mirror, is of a name, and outlasts the
 * port.  So a name that a program captures cannot become another user's port:
 *
 *	ctl_owner_claim()	nobody else's capture is on the name; or for a
 *				capture, nobody else's port is there or comes
 *	vale_open...
 *	ctl_owner_opened()	others with this uid may ask for the port
 *	ctl_owner_leave()	no longer, and none of them is at it
 *	vale_close()
 *
 * Between the third and the fourth, the port with this name is the owner's.
 * The lock is taken last: also by functions that vale_list() calls.
 */

#ifndef _CTL_OWNER_H_
#define	_CTL_OWNER_H_

#include <sys/queue.h>

#include <stdbool.h>
#include <stdint.h>

#include "ctl_who.h"
#include "libvale.h"

/* A port, or a capture of one.  ctl_owner.c; zeroed at first. */
struct ctl_owner {
	TAILQ_ENTRY(ctl_owner) ow_link;
	char		 ow_name[VALE_NAME_SIZE];	/* "": not listed */
	struct ctl_who	 ow_who;
	bool		 ow_capture;
	bool		 ow_open;	/* the port */
	uint8_t		 ow_index;	/* its vpi_index */
	unsigned int	 ow_pins;
	/* What the port mirrors, or "", and what it is about to. */
	char		 ow_mirror[VALE_NAME_SIZE];
	char		 ow_mirror_next[VALE_NAME_SIZE];
};

/*
 * Claim the name of a port that `who' is about to open, or to capture: `name'
 * is valid.  Returns 0, and ctl_owner_leave() must follow; or
 *	EBUSY	another user captures the name; or is about to open the port
 *	EPERM	another's port, which `who' may not capture
 *	ENXIO	there is no port to capture
 */
int	ctl_owner_claim(struct ctl_owner *ow, const char *name,
	    const struct ctl_who *who, bool capture);
/*
 * Return whether a program who is no administrator captures the name; with
 * `port', also whether any program has the port, or is about to open it.
 */
bool	ctl_owner_taken(const char *name, bool port);
/* Note that the port of `ow' is open.  Does nothing for a capture. */
void	ctl_owner_opened(struct ctl_owner *ow);
/*
 * Release the port of `ow', before it is closed, or if it was not opened.
 * Waits for ctl_owner_unpin().  Does nothing if `ow' is not claimed.
 */
void	ctl_owner_leave(struct ctl_owner *ow);

/*
 * Have port `name' stay until ctl_owner_unpin(), which must not wait for
 * another connection (ctl_settle()).  NULL if it was not opened by a program,
 * or `who' may not ask for it.
 */
struct ctl_owner *ctl_owner_pin(const char *name, const struct ctl_who *who);
void	ctl_owner_unpin(struct ctl_owner *ow);

/*
 * Let the pinned port `ow', or NULL if it is nobody's, mirror `of', or nothing
 * if that is "".  Returns 0 or an errno as ctl_owner_claim() does for a
 * capture; then ctl_owner_mirrored() must follow, `done' if it does so now.
 * One caller at a time.
 */
int	ctl_owner_mirror(struct ctl_owner *ow, const char *of,
	    const struct ctl_who *who);
void	ctl_owner_mirrored(struct ctl_owner *ow, bool done);

/*
 * Return whether `who' may see port `name'.  Any thread, also from vale_list().
 */
bool	ctl_owner_sees(const char *name, const struct ctl_who *who);

/* The ports of a switch that a client may see. */
struct ctl_owner_set {
	uint64_t	 os_changes;	/* 0 at first */
	bool		 os_port[UINT8_MAX + 1];
};

/*
 * Return whether `who' may see the port with this index (vpi_index) of a
 * switch.  The first call sets *os; os_changes is 0 before.  Any thread, also
 * from vale_fdb_list().
 */
bool	ctl_owner_sees_index(struct ctl_owner_set *os, const char *switch_name,
	    uint8_t index, const struct ctl_who *who);

/* Return EPERM if another's port `name' is there, or ENXIO. */
int	ctl_owner_refuse(const char *name);

#endif /* !_CTL_OWNER_H_ */
