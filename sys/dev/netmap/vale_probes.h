/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * The probes of the switch in user space, dtrace_vale(4).  Compiled out
 * WITHOUT_DTRACE.
 *
 *	VALE_PROBE(port, BATCH_IN, frames, slots);
 *
 * One that nobody watches is a nop.  So its arguments must be at hand: what
 * would have to be worked out first belongs under VALE_PROBE_WATCHED().
 */

#ifndef _DEV_NETMAP_VALE_PROBES_H_
#define	_DEV_NETMAP_VALE_PROBES_H_

#ifndef WITHOUT_DTRACE
#include "vale_provider.h"

#define	VALE_PROBE(port, probe, ...)					\
	VALE_##probe((const char *)(port)->vp_name, ##__VA_ARGS__)
#define	VALE_PROBE_WATCHED(probe)	(VALE_##probe##_ENABLED())

#else

static inline void
vale_probe_nothing(const void *port __unused, ...)
{
}

#define	VALE_PROBE(port, probe, ...)					\
	vale_probe_nothing(port, ##__VA_ARGS__)
#define	VALE_PROBE_WATCHED(probe)	(false)

#endif

#endif /* !_DEV_NETMAP_VALE_PROBES_H_ */
