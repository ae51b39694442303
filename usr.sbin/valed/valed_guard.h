/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The guard: a process with the privileges of the start.  It reads the
 * configuration, opens what that names, and removes the sockets at the end.
 */

#ifndef _VALED_GUARD_H_
#define	_VALED_GUARD_H_

#include <stdbool.h>

#include "adapter_config.h"
#include "hostif.h"
#include "valed_options.h"
#include "valed_why.h"

#define	VALED_GUARD_GONE						\
	"the process that reads the files has ended: restart valed"

/*
 * Create the sockets of all adapters and the control socket, start the openers,
 * and start the guard.  The caller must have no other thread yet, and must not
 * change argv.  On an error, leaves no socket, and returns false with *why.
 */
bool	valed_guard_start(int argc, char **argv, struct valed_options *opt,
	    struct valed_why *why);

/*
 * The functions below are the serving process's main thread's, send a request
 * to the guard, and wait for the reply; meanwhile valed_serve_watch() is called,
 * a hundred times a second.  If the guard has gone, they fail with EPIPE, and
 * *why says so.
 */

/*
 * Have the guard read the configuration again.  Returns at once: false with
 * errno if the request cannot be sent.  The guard's descriptor is readable when
 * the reply is there, or the guard has gone, and valed_guard_options() then
 * sets *opt, whose lists are the caller's (valed_options_free()): the adapters,
 * interfaces and settings, and no more of it.  Returns false with *why if the
 * configuration has an error, or could not be read.  Until then no other
 * function may be called.
 */
int	valed_guard_fd(void);
bool	valed_guard_read(void);
bool	valed_guard_options(struct valed_options *opt, struct valed_why *why);

/*
 * Get a descriptor of an adapter of the configuration that was read last, at
 * the place of *ac: its listening socket, which is created if it is not
 * inherited, or that of its opener (valed_opener.h), which is started.  Returns
 * -1 with *why.
 */
int	valed_guard_socket(const struct adapter_config *ac,
	    struct valed_why *why);
int	valed_guard_opener(const struct adapter_config *ac,
	    struct valed_why *why);

/*
 * Open the interface that this configuration has for a port.  Returns true with
 * *fds, whose descriptors are the caller's, and with what hostif_warning() says
 * in `line', or ""; or false with errno and a line.  ENXIO: there is no
 * interface of this name.
 */
bool	valed_guard_open(const char *port, struct hostif_fds *fds,
	    char line[HOSTIF_WHY]);

/*
 * Set `where' to the place of that configuration where a variable (VALED_V_*)
 * of the adapter at the place of *ac was set, as errors have it; if it was not,
 * to that of the adapter's first one, and return false.
 */
bool	valed_guard_where(const struct adapter_config *ac, int variable,
	    char where[VALED_WHERE_SIZE]);

/*
 * Remove the socket of an adapter, if valed has created it.  Returns false if
 * there is no guard.
 */
bool	valed_guard_unlink(const char *path);

/*
 * End the guard, and wait for that.  It removes the sockets, unless they are to
 * be kept for the next process (valed_store.h).
 */
void	valed_guard_end(bool keep);

#endif /* !_VALED_GUARD_H_ */
