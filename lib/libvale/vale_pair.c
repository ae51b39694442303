/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* The counters of a ring pair: vale_pair.h. */

#include "vale_pair.h"
#include "vale_probes.h"
#include "vale_switch.h"

const struct counter_row vale_counter_table[VALE_NCOUNTERS] = {
	COUNTER_ROWS(VALE_COUNTERS)
};

/* Return a counter's name, faulted in: a tracer reads resident memory only. */
static const char *
drop_reason(enum vale_counter reason)
{
	const char *name;

	name = vale_counter_table[reason].cr_name;
	(void)*(const volatile char *)name;
	return (name);
}

void
vale_pair_drop(struct vale_pair *pair, enum vale_counter reason, uint32_t n,
    const struct vale_port *from)
{
	vale_count(pair, reason, n);
	VALE_PROBE(pair, DROP, drop_reason(reason), n,
	    (const char *)from->vp_common.name);
}
