/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Printing counters.
 *
 * Only the main thread may call these functions.
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

#endif /* !_VALED_STATS_H_ */
