/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What the files of an adapter's thread share: adapter.c, which starts and ends
 * it, adapter_port.c, which has its port, adapter_announce.c, which announces
 * its address, and adapter_work.c, which has the rounds of its event loop.
 */

#ifndef _ADAPTER_IMPL_H_
#define	_ADAPTER_IMPL_H_

#include <stdbool.h>

#include "adapter.h"

#define	NS_PER_US	1000ULL

/*
 * adapter_port.c: the adapter's thread
 */

/*
 * Open the port of a configuration, and have an event for its frames, or
 * ad->port_ev if another process opens it.  Returns 0, or an errno, and
 * ad->failed is set; the steps that were done must be undone then, too.
 */
int	adapter_port_open(struct adapter *ad, const struct adapter_config *ac,
	    struct adapter_net *an, struct loop_event **ev);
/* Undo adapter_port_open(), or those of its steps that were done. */
void	adapter_port_close(struct adapter_net *an, struct loop_event *ev);
/*
 * Have the adapter on the port of *ac.  Returns 0, or an errno after a line if
 * that cannot be opened: then it stays where it is.
 */
int	adapter_port_move(struct adapter *ad, const struct adapter_config *ac);
/*
 * Turn the port's events on or off; if off, frames wait in the port.  Those of
 * one that has gone stay off.
 */
void	adapter_port_events(struct adapter *ad, bool on);
/*
 * Let others deliver to the guest directly, or not.  Not every backend can;
 * without it frames are copied once more.
 */
void	adapter_port_direct(struct adapter *ad, bool on);
/* Have the port tell of its link from now on. */
void	adapter_port_on_link(struct adapter *ad);
/* Have the guest's driver see the port's link. */
void	adapter_port_show_link(struct adapter *ad);
/* Reopen the port after a second valed wrote to its memory. */
void	adapter_port_check(struct adapter *ad);

/*
 * adapter_announce.c
 */

/* Have the next round announce the address.  Any thread. */
void	adapter_announce_soon(struct adapter *ad);
/*
 * Announce the address, if that is asked for and has not been done too often.
 * The adapter's thread, once a round.
 */
void	adapter_announce(struct adapter *ad);

/*
 * adapter_work.c
 */

/* Wake the thread for adapter_work().  Any thread, also in a signal handler. */
void	adapter_post(struct adapter *ad);
/* End a round of events, for loop_round().  The adapter's thread. */
void	adapter_work(void *arg);
/* Handle ad->work_ev and ad->timer_ev.  The adapter's thread. */
void	adapter_work_event(int fd, void *arg);
void	adapter_timer_event(int fd, void *arg);

#endif /* !_ADAPTER_IMPL_H_ */
