/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Values of a port's link: vale_link.c, vale_view.c.
 */

#ifndef _VALE_LINK_H_
#define	_VALE_LINK_H_

/* The setting "link": vp_link. */
#define	VALE_LINK_UP		0
#define	VALE_LINK_DOWN		1
#define	VALE_LINK_UPLINK	2

/* vp_carrier: a port that is no uplink, and those that are. */
#define	VALE_CARRIER_NONE	0
#define	VALE_CARRIER_DOWN	1
#define	VALE_CARRIER_UP		2

#endif /* !_VALE_LINK_H_ */
