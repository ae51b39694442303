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

#include <stdbool.h>

/* Tell the switches.  The main thread, once a second. */
void	valed_carrier_watch(void);

/*
 * Return whether the switch of a port has an uplink with a carrier, as of the
 * last valed_carrier_watch(); *came says whether an uplink got its carrier since
 * the one before.  The main thread.
 */
bool	valed_carrier_of(const char *port, bool *came);

#endif /* !_VALED_CARRIER_H_ */
