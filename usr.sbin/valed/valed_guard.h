/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The guard: a process that removes sockets, and reads changed files.
 */

#ifndef _VALED_GUARD_H_
#define	_VALED_GUARD_H_

#include <stdbool.h>

#include "adapter_config.h"
#include "hostif.h"
#include "valed_options.h"
#include "valed_why.h"

#define	VALED_FAILED	0x10000

/* A change of the adapters, as the guard sends it to the serving process. */
struct valed_change {
	enum {
		VALED_RESERVE,		/* the name of its port, before all
					   other changes: EBUSY if another has
					   it open */
		VALED_REMOVE,		/* the adapter with this place */
		VALED_ADD,
		VALED_END,		/* no more changes */
		VALED_SET,		/* settings of vc_name, together */
		VALED_CHANGE,		/* the adapter, in place */
		VALED_ATTACH,		/* vc_hostif to the port ac_backend */
		VALED_DETACH,		/* what has the port ac_backend */
		VALED_ASK,		/* EISCONN: the adapter has a client */
		VALED_MOVE		/* the adapter, to another port, and in
					   place */
	}		vc_what;
	struct adapter_config vc_config; /* ac_listen -1: that of the adapter
					   removed before that had this path */
	bool		vc_lost;	/* there were too few descriptors for
					   its socket and opener, or for
					   vc_hostif: valed_guard_change() */
	struct hostif_fds vc_hostif;	/* the receiver's */
	char		vc_name[VALE_NAME_SIZE];	/* VALED_SET; the answer
					   is errno, and VALED_FAILED times
					   vale_setting_keep_all()'s `failed' */
	struct vale_setting_change vc_change[VALE_NSETTINGS];
	unsigned int	vc_nchanges;
	bool		vc_absent;	/* VALED_END: an interface of the
					   configuration is not attached */
	char		vc_why[VALED_WHY_SIZE];	/* VALED_END: the first error,
					   or "" */
};

/*
 * Create the sockets of all adapters, and start the guard.  The caller must
 * have no other thread yet, and must not change argv.  On an error, leaves no
 * socket, and returns false with *why.
 */
bool	valed_guard_start(int argc, char **argv, struct valed_options *opt,
	    struct valed_why *why);

/*
 * In the guard: have the serving process carry out a change, with the adapter's
 * socket and opener, or the interface's descriptors, which stay the caller's.
 * Returns its answer.  If that process has ended, so does the guard.
 */
int	valed_guard_carry(struct valed_change *vc);

/*
 * The functions below are the serving process's main thread's.  The guard's
 * descriptor is readable when a change has come; then valed_guard_change()
 * fills in *vc.  If the guard has gone, there is none, and it returns false.
 * Each change but VALED_END must be answered with 0 or an errno.
 * valed_guard_reload() asks for changes, and VALED_END is the last one;
 * `replace' is whether they may disconnect clients of adapters that remain.
 * Returns false with errno if that fails, with EPIPE if the guard has gone.
 */
int	valed_guard_fd(void);
bool	valed_guard_reload(bool replace);
bool	valed_guard_change(struct valed_change *vc);
void	valed_guard_answer(int error);

/*
 * An adapter could not be started: have the guard remove its socket, and try
 * again with the next reload.  The main thread, before it serves.
 */
void	valed_guard_absent(const struct adapter_config *ac);

/*
 * The interface of the configuration that has this port, if there is one, could
 * not be attached, for a reason that was told, or is gone: `why' is "" then.
 * The main thread, when no reload is in progress.
 */
void	valed_guard_unattached(const char *port, const char *why);

/*
 * If there are such interfaces, have the guard attach those that are there
 * again.  Returns whether it was asked; VALED_END follows, as after a reload.
 */
bool	valed_guard_attach(void);

/*
 * End the guard, and wait for that.  It removes the sockets, unless they are to
 * be kept for the next process (valed_store.h).
 */
void	valed_guard_end(bool keep);

#endif /* !_VALED_GUARD_H_ */
