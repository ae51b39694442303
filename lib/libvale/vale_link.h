/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Whether a port's link is up: vale_link.c.
 */

#ifndef _VALE_LINK_H_
#define	_VALE_LINK_H_

struct vale_switch;

/* The setting "link": vp_link. */
#define	VALE_LINK_UP		0
#define	VALE_LINK_DOWN		1
#define	VALE_LINK_UPLINK	2

/* vp_carrier: a port that is no uplink, and those that are. */
#define	VALE_CARRIER_NONE	0
#define	VALE_CARRIER_DOWN	1
#define	VALE_CARRIER_UP		2

/*
 * A change of the switch: set vp_down of all ports, and tell those of which it
 * has changed, before the view is filled in.  The locks of a change.
 */
void	vale_link_update(struct vale_switch *vs);

#endif /* !_VALE_LINK_H_ */
