/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The probes of the switch in user space, described in dtrace_vale(4).
 * The first argument of each is the name of a port.
 */

provider vale {
	/* frames, slots */
	probe batch__in(const char *, uint32_t, uint32_t);
	/* destination's index, both addresses */
	probe lookup(const char *, uint32_t, const uint8_t *);
	/* address, 1 if it was on another port */
	probe learn(const char *, const uint8_t *, int);
	/* bytes, destinations */
	probe flood(const char *, uint32_t, uint32_t);
	/* sending port, frames, bytes, slots pending */
	probe deliver(const char *, const char *, uint32_t, uint64_t,
	    uint32_t);
	/* sending port, frames, bytes */
	probe direct(const char *, const char *, uint32_t, uint64_t);
	/* reason, frames, sending port */
	probe drop(const char *, const char *, uint32_t, const char *);
	probe wake(const char *);
	/* slots returned, slots pending */
	probe rx__sync(const char *, uint32_t, uint32_t);
};
