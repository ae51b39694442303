/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The counters of adapters' ports, which continue after a restart on purpose:
 * a text in the store, "counters".  Each line has, between tabs, the name of a
 * port, that of a counter, and its value.  Nothing in it is trusted.
 */

#ifndef _VALED_COUNTERS_KEEP_H_
#define	_VALED_COUNTERS_KEEP_H_

struct valed_options;

/*
 * Have the counters of ports of *opt begin with what an earlier process has
 * left.  The main thread, when the adapters have ports, and nobody else has.
 */
void	valed_counters_keep_start(const struct valed_options *opt);

/* Leave them to the next process.  The main thread, when adapters are saved. */
void	valed_counters_keep(void);

#endif /* !_VALED_COUNTERS_KEEP_H_ */
