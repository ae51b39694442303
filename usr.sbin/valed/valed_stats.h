/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Reading and printing counters.
 *
 * Only the main thread may call those that print.
 */

#ifndef _VALED_STATS_H_
#define	_VALED_STATS_H_

#include "adapter.h"
#include "hostif.h"
#include "vale_wire.h"

/* Print all counters to stdout: see valed(8), COUNTERS. */
void	valed_stats_print(const struct adapter_list *adapters);

/* Print those of an attached interface, under its name. */
void	valed_stats_hostif(struct hostif *hi, void *arg);

/* Print a line for each adapter to stdout: changes since the last call. */
void	valed_stats_live(const struct adapter_list *adapters);

/* Print such a line for an attached interface. */
void	valed_stats_hostif_live(struct hostif *hi, void *arg);

/*
 * Append the counters of an adapter, or of an attached interface, to *wd, which
 * has no counters before.  Those of the port are left out.  Any thread; the
 * adapter or interface must not be freed meanwhile.
 */
void	valed_stats_adapter(const struct adapter *ad,
	    struct vale_wire_device *wd);
void	valed_stats_interface(const struct hostif *hi,
	    struct vale_wire_device *wd);

#endif /* !_VALED_STATS_H_ */
