/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * The filter of iflib(4) for an adapter whose interrupt is a line or an MSI: a
 * receive queue and a transmit queue, whose tasks the test counts.
 */

/* Call the filter; what there is: packets that were sent, and received. */
void	filter_call(int sent, int received);

/* Tasks queued, and calls that enable the interrupt. */
extern unsigned int filter_tx_tasks, filter_rx_tasks, filter_enables;
