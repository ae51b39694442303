/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Probes whose argument is a reason: the name of its counter.  As functions,
 * because these probes fire seldom, their code is not in the callers.
 */

#include "e82545_impl.h"
#include "e82545_probes.h"

/*
 * Read the name, so that its page is resident: a tracer cannot fault pages in.
 */
static char *
present(const char *name)
{
	(void)*(const volatile char *)name;
	return (__DECONST(char *, name));
}

static char *
reason_name(enum e82545_counter reason)
{
	return (present(e82545_counter_table[reason].cr_name));
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

void
e82545_probe_tx_overmtu(struct e82545 *dev, uint32_t index)
{
	E82545_PROBE(dev, TX_DROP,
	    present(frame_port_counter_table[FRAME_PORT_C_TX_OVERMTU].cr_name),
	    index);
}

void
e82545_probe_rx_overmtu(struct e82545 *dev, uint32_t index)
{
	E82545_PROBE(dev, RX_DROP,
	    present(frame_port_counter_table[FRAME_PORT_C_RX_OVERMTU].cr_name),
	    index);
}
