/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Probes that give a reason, by its counter's name.  They are called seldom,
 * and kept out of the way of what is not.
 */

#include "e82545_impl.h"
#include "e82545_probes.h"

/* A tracer sees only memory that is present: so look at the name first. */
static char *
reason_name(enum e82545_counter reason)
{
	const char *name;

	name = e82545_counter_table[reason].cr_name;
	(void)*(const volatile char *)name;
	return (__DECONST(char *, name));
}

void
e82545_probe_bad(struct e82545 *dev, enum e82545_counter reason,
    uint32_t index)
{
	E82545_PROBE(dev, BAD_DESCRIPTOR, reason_name(reason), index);
}

void
e82545_probe_tx_drop(struct e82545 *dev, enum e82545_counter reason,
    uint32_t index)
{
	E82545_PROBE(dev, TX_DROP, reason_name(reason), index);
}

void
e82545_probe_rx_drop(struct e82545 *dev, enum e82545_counter reason,
    uint32_t index)
{
	E82545_PROBE(dev, RX_DROP, reason_name(reason), index);
}
