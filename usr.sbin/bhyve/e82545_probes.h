/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The model's probes, dtrace_e82545(4).  Compiled out WITHOUT_DTRACE.
 *
 *	E82545_PROBE(dev, TX_BATCH, frames, bytes, descriptors);
 *
 * The arguments are evaluated only while the probe is enabled.  Otherwise the
 * probe is a test of a word that never changes, which costs less than keeping
 * the arguments ready for a nop.
 */

#ifndef _E82545_PROBES_H_
#define	_E82545_PROBES_H_

#include <stdint.h>

#include "e82545.h"

#ifndef WITHOUT_DTRACE
#include <sys/cdefs.h>

#include "e82545_provider.h"

#define	E82545_PROBE(dev, probe, ...) do {				\
	if (__predict_false(E82545EM_##probe##_ENABLED()))		\
		E82545EM_##probe(__DECONST(char *, (dev)->name),	\
		    ##__VA_ARGS__);					\
} while (0)

#else

static inline void
e82545_probe_nothing(const void *dev __unused, ...)
{
}

#define	E82545_PROBE(dev, probe, ...) do {				\
	if (false)							\
		e82545_probe_nothing(dev, ##__VA_ARGS__);		\
} while (0)

#endif

/*
 * Fire a probe with a reason, which is a counter: a descriptor is invalid, or a
 * frame is dropped.  `index' is that of the descriptor.  Any thread.
 */
void	e82545_probe_bad(struct e82545 *dev, enum e82545_counter reason,
	    uint32_t index);
void	e82545_probe_tx_drop(struct e82545 *dev, enum e82545_counter reason,
	    uint32_t index);
void	e82545_probe_rx_drop(struct e82545 *dev, enum e82545_counter reason,
	    uint32_t index);
/* Fire a probe for a frame that the frame port dropped, and counted. */
void	e82545_probe_tx_overmtu(struct e82545 *dev, uint32_t index);
void	e82545_probe_rx_overmtu(struct e82545 *dev, uint32_t index);

#endif /* !_E82545_PROBES_H_ */
