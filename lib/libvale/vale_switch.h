/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The switches of this process: private to these files.
 *
 *	vale_switch.c	switches and ports: open, close, lists
 *	vale_view.c	what senders see of a switch, and how that changes
 *	vale_setting_switch.c	their settings
 *	vale_link.c	whether ports have a link
 *	vale_setting_preset.c	those of switches and ports to come
 *	vale_forward.c	vale_txsync(): from a transmit ring to destinations
 *	vale_lookup.c	its second stage: the destinations
 *	vale_rules.c	what a port may send, and its VLANs
 *	vale_deliver.c	its last stage: to a port's receive ring, or its sink
 *	vale_pair.c	the counters of a ring pair
 *	vale_offload.c	virtio-net headers: frames that are cut or summed late
 *	vale_mirror.c	copies of what other ports send and get
 *	vale_filter.c	which of them a monitor gets
 *	vale_rxq.c	vale_rxsync(), and the receive ring
 *	vale_txq.c	what a sender knows of its batch
 *	vale_region.c	a port's memory
 *	vale_user.h	ports whose user is another process: lib/libvaleport
 *	vale_fdb.c	the learning table, in sys/dev/netmap
 *	vale_guard.c	guards against forged addresses, there
 *	vale_vlan.c	VLANs of ports, there
 *	vale_rate.c	limits of senders, there
 *	vale_share.c	fair shares of a receive ring, there
 *
 * Locks, in the order they are taken:
 *
 *	vs_change	a change of a switch; waits for its senders
 *	vale_lock	the lists of switches, their ports and settings, for a
 *			few instructions
 *	rq_lock		a receive ring, for a few instructions; a thread owns
 *			one at a time
 *	vp_rate_lock	the bucket of a port's limit, for a batch; a thread that
 *			owns it takes no other
 *
 * To read these lists a thread must own vale_lock; to change the lists,
 * vs_change as well: vale_switch_change().  A sender owns neither, and uses a
 * view.
 */

#ifndef _VALE_SWITCH_H_
#define	_VALE_SWITCH_H_

#include <sys/queue.h>
#include <dev/netmap/vale_fdb.h>
#include <dev/netmap/vale_rate.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libvale.h"
#include "vale_pair.h"
#include "vale_region.h"
#include "vale_view.h"

struct vale_rules;

/* A port, or a monitor of one. */
struct vale_port {
	struct vale_switch	*vp_switch;
	struct vale_common	 vp_common;
	uint8_t			 vp_index;
	unsigned int		 vp_npairs;
	bool			 vp_monitor;	/* only a mirror: not in
						   vs_port */
	struct vale_insn	*vp_filter;	/* of a monitor, or NULL */
	void			*vp_memory;	/* what calloc(3) returned */
	struct vale_region	 vp_region;
	uint8_t			 vp_header;	/* vale_set_header(); atomic */
	/* Senders may call the sink, which does not change then; atomic. */
	uint32_t		 vp_direct;
	void			(*vp_sink)(void *, struct frame_source *);
	void			*vp_sink_arg;
	/* The locks of a change. */
	bool			 vp_private;
	const struct vale_rules	*vp_rules;	/* its own, or
						   vale_rules_none */
	uint8_t			 vp_address[6];	/* vale_set_address() */
	bool			 vp_sourced;	/* vale_setting_once() has set
						   its source */
	uint8_t			 vp_link;	/* vale_link.h: as it is set */
	uint8_t			 vp_carrier;	/* vale_set_carrier() */
	bool			 vp_down;	/* what both come to */
	bool			 vp_link_new;	/* that has changed */
	bool			 vp_forget;	/* have its addresses forgotten
						   when no sender has an earlier
						   view */
	void			(*vp_link_told)(void *arg, bool up);
	void			*vp_link_arg;
	uint8_t			 vp_mirror_what; /* VALE_MIRROR_TX, _RX */
	char			 vp_mirror_of[VALE_NAME_SIZE];	/* or "" */
	TAILQ_ENTRY(vale_port)	 vp_mirror_link; /* if vp_mirror_of */
	bool			 vp_ruled;	/* copy the heads of what it
						   sends: a hint; atomic */
	bool			 vp_limited;	/* vp_rate has a limit; atomic,
						   to look without the lock */
	bool			 vp_shared;	/* the user is another process:
						   vale_user.h has these */
	void			(*vp_wake)(void *arg, unsigned int ring,
				    bool tx);
	void			*vp_wake_arg;
	void			(*vp_closed)(struct vale_port *port);
	/* What all its rings send.  vp_rate_lock. */
	_Alignas(VALE_CACHE_LINE)
	pthread_mutex_t		 vp_rate_lock;
	struct vale_rate	 vp_rate;
	struct vale_pair	 vp_pair[];
};

/* Return the bytes of a port with `n' ring pairs. */
static inline size_t
vale_port_size(unsigned int n)
{
	return (sizeof(struct vale_port) + n * sizeof(struct vale_pair));
}

/* All ring pairs of a port. */
#define	VALE_PAIRS_FOREACH(pair, port)					\
	for ((pair) = (port)->vp_pair;					\
	    (pair) < (port)->vp_pair + (port)->vp_npairs; (pair)++)

struct vale_switch {
	/* Senders read these two, and the table. */
	uintptr_t		 vs_view;	/* struct vale_view; atomic */
	uint32_t		 vs_batch;	/* setting "batch"; atomic */
	bool			 vs_reserved;	/* setting "reserved"; atomic */
	/* vale_lock. */
	TAILQ_ENTRY(vale_switch) vs_link;
	char			 vs_name[VALE_NAME_SIZE];
	unsigned int		 vs_refs;	/* ports, monitors, changes */
	/* vale_lock; to write also vs_change. */
	pthread_mutex_t		 vs_change;
	unsigned int		 vs_nports;
	unsigned int		 vs_nmirrors;
	struct vale_port	*vs_port[VALE_FDB_PORTS];
	TAILQ_HEAD(, vale_port)	 vs_mirrors;
	uint8_t			 vs_weight[VALE_FDB_PORTS];	/* atomic */
	struct vale_view	 vs_views[2];	/* vs_view, and a spare */
	struct vale_fdb		 vs_fdb;
};

extern pthread_mutex_t vale_lock;

/* The caller of the next five must own vale_lock. */

/* Find the switch whose name is the first `len' bytes of `name', or NULL. */
struct vale_switch *vale_switch_find(const char *name, size_t len);

/* Find the port `name' ("vale0:vm1") of the switch, or NULL. */
struct vale_port *vale_switch_port(const struct vale_switch *vs,
	    const char *name);

/* Find the port `name' of any switch, or NULL. */
struct vale_port *vale_switch_find_port(const char *name);

/*
 * Begin a change: wait for vs_change.  vale_lock is released meanwhile, so the
 * caller must look again for what it changes.
 */
void	vale_switch_change(struct vale_switch *vs);

/* End a change.  Frees a switch of which nothing is left. */
void	vale_switch_changed(struct vale_switch *vs);

#endif /* !_VALE_SWITCH_H_ */
