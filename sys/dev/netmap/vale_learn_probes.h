/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The probes of vale_learn(4): see dtrace_vale(4).  Only the kernel module has
 * them.  Arguments are evaluated only while a probe is enabled.
 */

#ifndef _DEV_NETMAP_VALE_LEARN_PROBES_H_
#define	_DEV_NETMAP_VALE_LEARN_PROBES_H_

#ifdef _KERNEL
#include <sys/param.h>
#include <sys/queue.h>
#include <sys/sdt.h>

SDT_PROVIDER_DECLARE(vale);
SDT_PROBE_DECLARE(vale, , , lookup);	/* port, destination, addresses */
SDT_PROBE_DECLARE(vale, , , learn);	/* port, address, whether it moved */
SDT_PROBE_DECLARE(vale, , , flood);	/* port, bytes, destinations */
SDT_PROBE_DECLARE(vale, , , drop);	/* port, reason, frames, sending port */

#define	VALE_LEARN_PROBE3(probe, a, b, c)				\
	SDT_PROBE3(vale, , , probe, a, b, c)
#define	VALE_LEARN_PROBE4(probe, a, b, c, d)				\
	SDT_PROBE4(vale, , , probe, a, b, c, d)
#else
static inline void
vale_learn_probe_nothing(const void *port, ...)
{
	(void)port;
}

#define	VALE_LEARN_PROBE3(probe, a, b, c) do {				\
	if (false)							\
		vale_learn_probe_nothing(a, b, c);			\
} while (0)
#define	VALE_LEARN_PROBE4(probe, a, b, c, d) do {			\
	if (false)							\
		vale_learn_probe_nothing(a, b, c, d);			\
} while (0)
#endif

#endif /* !_DEV_NETMAP_VALE_LEARN_PROBES_H_ */
