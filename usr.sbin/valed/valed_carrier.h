/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Carriers of attached interfaces, for links of ports: valed_carrier.c.
 */

#ifndef _VALED_CARRIER_H_
#define	_VALED_CARRIER_H_

/* Tell the switches.  The main thread, once a second. */
void	valed_carrier_watch(void);

#endif /* !_VALED_CARRIER_H_ */
