/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The probes of the switch in user space, dtrace_vale(4).  Compiled out
 * WITHOUT_DTRACE.
 *
 *	VALE_PROBE(pair, BATCH_IN, frames, slots);
 *
 * The arguments are evaluated only while the probe is enabled.  A disabled
 * probe is a test of one word, which costs less than to prepare the arguments
 * for a nop.
 */

#ifndef _VALE_PROBES_H_
#define	_VALE_PROBES_H_

#ifndef WITHOUT_DTRACE
#include "vale_provider.h"

#define	VALE_PROBE(pair, probe, ...) do {				\
	if (__predict_false(VALE_##probe##_ENABLED()))			\
		VALE_##probe(						\
		    (const char *)(pair)->pa_port->vp_common.name,	\
		    ##__VA_ARGS__);					\
} while (0)

#else

static inline void
vale_probe_nothing(const void *pair __unused, ...)
{
}

#define	VALE_PROBE(pair, probe, ...) do {				\
	if (false)							\
		vale_probe_nothing(pair, ##__VA_ARGS__);		\
} while (0)

#endif

#endif /* !_VALE_PROBES_H_ */
