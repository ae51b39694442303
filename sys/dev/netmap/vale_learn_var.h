/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The module's own: a switch that it manages.  vale_learn_mod.c tells how.
 *
 * Locks, in the order they are taken:
 *
 *	learn_lock	which switches there are
 *	NMG_LOCK	netmap's, for all that changes a bridge
 *	bdg_lock	netmap's, one a bridge: forwarding reads; what
 *			vale_learn.h calls exclusion is to write
 *	sw_scan		one thread at a time adds ports
 *
 * Handlers of a switch's variables must not take learn_lock: whoever holds it
 * waits for them when the switch goes.
 */

#ifndef _DEV_NETMAP_VALE_LEARN_VAR_H_
#define	_DEV_NETMAP_VALE_LEARN_VAR_H_

#include <dev/netmap/vale_learn.h>

#define	LEARN_SWITCH_NAME	16	/* bytes of "vale0", with NUL */

struct vale_learn_switch {
	struct vale_learn sw_learn;	/* first, for its alignment */
	TAILQ_ENTRY(vale_learn_switch) sw_link;
	char		sw_name[LEARN_SWITCH_NAME];	/* "vale0" */
	char		sw_bdg_name[LEARN_SWITCH_NAME + 1];	/* "vale0:" */
	bool		sw_keep;	/* learn_lock: asked for by a change, */
	bool		sw_new;		/* and created for it */
	struct nm_bridge *sw_bdg;	/* stays while the switch is managed */
	struct mtx	sw_scan;
	uint32_t	sw_nports;	/* sw_scan: ports that were added; or
					   0, when one has gone since */
	counter_u64_t	sw_nomem;	/* frames lost for want of memory */
	struct sysctl_ctx_list sw_ctx;
};

MALLOC_DECLARE(M_VALE_LEARN);

/* vale_learn_mod.c */

/*
 * Add ports that have come.  False: there is no memory for one.  With bdg_lock
 * held for reading.
 */
bool	vale_learn_scan(struct vale_learn_switch *sw);

/* Set a rule of the switch: see vale_learn_rule_set().  May sleep. */
int	vale_learn_switch_rule(struct vale_learn_switch *sw,
	    enum vale_learn_rule rule, const char *text);

/* Which switches are managed, "vale0 vale1".  May sleep. */
void	vale_learn_attached(char text[VALE_LEARN_TEXT]);

/*
 * Manage these and no others.  EINVAL, EBUSY where a switch is another
 * module's, or ENOSPC when netmap has as many switches as it can; then all
 * stays as it was.  May sleep.
 */
int	vale_learn_attach(const char *text);

/* vale_learn_sysctl.c: the module's variables, and a switch's. */
int	vale_learn_sysctl_load(void);
void	vale_learn_sysctl_unload(void);
void	vale_learn_sysctl_add(struct vale_learn_switch *sw);
void	vale_learn_sysctl_remove(struct vale_learn_switch *sw);

/* vale_learn_copy.c */

/*
 * Put a copy of a frame into a port's receive ring, at once.  `ft' is what the
 * lookup function got.  False: it found no room, or nobody to receive it.
 */
bool	vale_learn_copy(const struct nm_bdg_fwd *ft,
	    struct netmap_vp_adapter *src, struct netmap_vp_adapter *dst);

#endif /* !_DEV_NETMAP_VALE_LEARN_VAR_H_ */
