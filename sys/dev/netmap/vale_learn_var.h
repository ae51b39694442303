/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The module's state for a managed switch; see vale_learn_mod.c.
 *
 * Locks, in the order in which they are taken:
 *
 *	learn_lock	the list of switches
 *	NMG_LOCK	netmap's, for all changes of a bridge
 *	bdg_lock	netmap's, one for each bridge: held for reading while
 *			frames are forwarded, for writing as vale_learn.h's
 *			exclusion
 *	sw_scan		held while ports are added
 *	sw_share	held to divide a ring that is short of space
 *
 * The handlers of a switch's variables must not take learn_lock:
 * vale_learn_sysctl_remove() waits for them with that lock held.
 */

#ifndef _DEV_NETMAP_VALE_LEARN_VAR_H_
#define	_DEV_NETMAP_VALE_LEARN_VAR_H_

#include <dev/netmap/vale_learn.h>

#define	LEARN_SWITCH_NAME	16	/* bytes of "vale0", with NUL */

struct vale_learn_memory;

struct vale_learn_switch {
	struct vale_learn sw_learn;	/* first, for its alignment */
	TAILQ_ENTRY(vale_learn_switch) sw_link;
	char		sw_name[LEARN_SWITCH_NAME];	/* "vale0" */
	char		sw_bdg_name[LEARN_SWITCH_NAME + 1];	/* "vale0:" */
	bool		sw_listed;	/* learn_lock: is in the new list, */
	bool		sw_new;		/* was created for it */
	struct nm_bridge *sw_bdg;	/* exists while the switch is managed */
	struct mtx	sw_scan;
	struct mtx	sw_share;	/* shares of all ports' rings */
	uint32_t	sw_nports;	/* written under sw_scan: ports that
					   were added; 0: look again */
	counter_u64_t	sw_nomem;	/* frames lost, no memory */
	struct sysctl_ctx_list sw_ctx;
};

MALLOC_DECLARE(M_VALE_LEARN);

/* vale_learn_mod.c */

/*
 * Add the ports that are new.  Returns false without memory.  The caller must
 * hold bdg_lock for reading.
 */
bool	vale_learn_scan(struct vale_learn_switch *sw);

/*
 * Return whether a frame of `slots' slots that `na' sends to the single port
 * `dst' may go to its ring: see vale_learn_admit().  `before' slots of the
 * batch come before the frame.  The caller must hold bdg_lock for reading.
 */
bool	vale_learn_switch_admit(struct vale_learn_switch *sw,
	    struct vale_learn_ring *lr, const struct netmap_vp_adapter *na,
	    unsigned int dst, uint32_t before, uint32_t slots);

/* Set a rule of the switch: see vale_learn_rule_set().  May sleep. */
int	vale_learn_switch_rule(struct vale_learn_switch *sw,
	    enum vale_learn_rule rule, const char *text);

/* List the managed switches, "vale0 vale1".  May sleep. */
void	vale_learn_attached(char text[VALE_LEARN_TEXT]);

/*
 * Manage the switches of this list and no others.  Returns 0, EINVAL, EBUSY if
 * another module manages a switch, or ENOSPC if netmap is at its maximum of
 * switches; after an error the list is unchanged.  May sleep.
 */
int	vale_learn_attach(const char *text);

/* Add and remove variables: of the module, and of a switch. */
int	vale_learn_sysctl_load(void);
void	vale_learn_sysctl_unload(void);
void	vale_learn_sysctl_add(struct vale_learn_switch *sw);
void	vale_learn_sysctl_remove(struct vale_learn_switch *sw);

/* vale_learn_copy.c */

/*
 * Put a copy of a frame into a port's receive ring.  `ft' is the argument of
 * the lookup function.  Returns false if the ring is full or not in use.  The
 * caller must hold bdg_lock for reading.
 */
bool	vale_learn_copy(const struct nm_bdg_fwd *ft,
	    struct netmap_vp_adapter *src, struct netmap_vp_adapter *dst);

/* Do the same from the slot `ft' on, which may have but a virtio-net header. */
bool	vale_learn_copy_slots(const struct nm_bdg_fwd *ft,
	    struct netmap_vp_adapter *src, struct netmap_vp_adapter *dst);

/* vale_learn_ruled.c */

/*
 * Allocate the memory that a ring needs whose frames may be ruled.  `how':
 * M_WAITOK or M_NOWAIT, which may return NULL.  To be freed with free(9).
 */
struct vale_learn_memory *vale_learn_memory_new(int how);

/*
 * Decide about a ruled frame that `na' sends through ring `lr', and put the
 * frame into the receive rings of its ports.  `first' is its first slot;
 * without the virtio-net header the frame has `bytes' bytes, `len' of these in
 * the first slot.  The caller must hold bdg_lock for reading.
 */
void	vale_learn_ruled(struct vale_learn_switch *sw,
	    const struct nm_bdg_fwd *first, struct netmap_vp_adapter *na,
	    struct vale_learn_ring *lr, uint32_t len, uint32_t bytes);

#endif /* !_DEV_NETMAP_VALE_LEARN_VAR_H_ */
