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

/* Print all counters to stdout: see valed(8), COUNTERS. */
void	valed_stats_print(const struct adapter_list *adapters);

/* Print those of an attached interface, under its name. */
void	valed_stats_hostif(struct hostif *hi, void *arg);

/* Print a line for each adapter to stdout: changes since the last call. */
void	valed_stats_live(const struct adapter_list *adapters);

/* Print such a line for an attached interface. */
void	valed_stats_hostif_live(struct hostif *hi, void *arg);

/*
 * Call show(counter, value, arg) for each counter of an adapter or an attached
 * interface, but for those of its port.  Any thread, while it is there.
 */
typedef void	valed_stats_show(const struct counter_row *counter,
		    uint64_t value, void *arg);
void	valed_stats_adapter(const struct adapter *ad, valed_stats_show *show,
	    void *arg);
void	valed_stats_interface(const struct hostif *hi, valed_stats_show *show,
	    void *arg);

#endif /* !_VALED_STATS_H_ */
