/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Numbers of VLANs (vale_vlan.h) as users of a switch see them.
 */

#ifndef _DEV_NETMAP_VALE_VLAN_CONF_H_
#define	_DEV_NETMAP_VALE_VLAN_CONF_H_

#define	VALE_VLAN_MAX		4094	/* 4095 is reserved: IEEE 802.1Q,
					   table 9-2 */

#endif /* !_DEV_NETMAP_VALE_VLAN_CONF_H_ */
