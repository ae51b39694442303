/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The names of a frame port's counters; everything else is in frame_port.h.
 */

#include "frame_port.h"

const struct counter_row frame_port_counter_table[FRAME_PORT_NCOUNTERS] = {
	COUNTER_ROWS(FRAME_PORT_COUNTERS)
};
