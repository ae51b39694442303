/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Looking at the switches of this process from outside: for valed and
 * valectl.  All functions may be called from any thread at any time; the
 * callbacks run under a lock and must not call anything of libvale.
 *
 * Switches go by the name that stands before the colon, "vale0".
 */

#ifndef _VALE_CTL_H_
#define	_VALE_CTL_H_

#include <stdint.h>

#include "vale.h"		/* struct vale_port_info, vale_fdb_entry, the
				   counters */

/* What a counter counts, as in VALE_COUNTERS. */
const char *vale_counter_desc(enum vale_counter counter);

/*
 * Show all ports, switch by switch; with `switch_name' not NULL, those of that
 * switch.  Ends when `show' returns non-zero, and returns that, or 0.
 */
int	vale_list(const char *switch_name,
	    int (*show)(const struct vale_port_info *, void *), void *arg);

/*
 * The counters of port "vale0:vm1".  0, or -1 with errno ENXIO when there is
 * no such port.
 */
int	vale_port_counters(const char *name, uint64_t counters[VALE_NCOUNTERS]);

/*
 * Show the addresses a switch has learned, in no order, each with the
 * pi_index of its port; else as vale_list().  -1 with errno ENXIO when there
 * is no such switch; `show' should not return -1.
 */
int	vale_fdb_list(const char *switch_name,
	    int (*show)(const struct vale_fdb_entry *, void *), void *arg);

/*
 * How long a switch remembers an address it does not see, in seconds: 0 for
 * ever, 1 to VALE_FDB_AGEING_MAX_S; VALE_FDB_AGEING_S until set.  0, or -1 with
 * errno: ENXIO when there is no such switch, EINVAL when out of range.
 */
int	vale_set_ageing(const char *switch_name, uint32_t seconds);

/*
 * How many addresses port "vale0:vm1" may have, from 1 to VALE_FDB_ENTRIES, or
 * 0 for any number, as at first; frames from others are dropped.  0, or -1
 * with errno: ENXIO when there is no such port, EINVAL when out of range.
 */
int	vale_set_limit(const char *name, uint32_t limit);

#endif /* !_VALE_CTL_H_ */
