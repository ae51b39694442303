/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * The model's probes, dtrace_e82545(4).  Compiled out WITHOUT_DTRACE.
 *
 *	E82545_PROBE(dev, TX_BATCH, frames, bytes, descriptors);
 *	E82545_PROBE_REASON(dev, TX_DROP, E82545_C_TX_NOROOM, descriptor);
 *
 * One that nobody watches is a nop.  So its arguments must be at hand: what
 * would have to be worked out first belongs under E82545_PROBE_WATCHED().
 */

#ifndef _E82545_PROBES_H_
#define	_E82545_PROBES_H_

#ifndef WITHOUT_DTRACE
#include "e82545_provider.h"

#define	E82545_PROBE(dev, probe, ...)					\
	E82545_##probe((const char *)(dev)->name, ##__VA_ARGS__)
#define	E82545_PROBE_WATCHED(probe)	(E82545_##probe##_ENABLED())

#else

static inline void
e82545_probe_nothing(const void *dev __unused, ...)
{
}

#define	E82545_PROBE(dev, probe, ...)					\
	e82545_probe_nothing(dev, ##__VA_ARGS__)
#define	E82545_PROBE_WATCHED(probe)	(false)

#endif

/*
 * One whose second argument is a counter, by its name: that is read first, as
 * a tracer sees only memory that is present.
 */
#define	E82545_PROBE_REASON(dev, probe, counter, index) do {		\
	const char *_reason;						\
									\
	if (E82545_PROBE_WATCHED(probe)) {				\
		_reason = e82545_counter_name(counter);			\
		if (*(const volatile char *)_reason != '\0')		\
			E82545_PROBE(dev, probe, _reason, index);	\
	}								\
} while (0)

#endif /* !_E82545_PROBES_H_ */
