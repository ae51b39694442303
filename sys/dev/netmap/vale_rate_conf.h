/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The limit of a sender as users of a switch set it (vale_rate.h).
 */

#ifndef _DEV_NETMAP_VALE_RATE_CONF_H_
#define	_DEV_NETMAP_VALE_RATE_CONF_H_

#include <sys/types.h>
#ifndef _KERNEL
#include <stdbool.h>
#include <stdint.h>
#endif

#define	VALE_RATE_MAX		1000000000000	/* bits or frames a second */
#define	VALE_RATE_BURST_MAX	(1 << 29)	/* bytes or frames */
/*
 * The default burst is what the rate allows in 1/2 s, but at least this.  TCP
 * that loses all that it has sent waits 0.2 s or more before it sends again, so
 * a burst of less is a part of the rate that TCP never gets.  Open vSwitch
 * recommends 0.8 s (ovs-vswitchd.conf.db(5), ingress_policing_burst).
 */
#define	VALE_RATE_BURST_PART	2
#define	VALE_RATE_BURST_BYTES	(256 * 1024)
#define	VALE_RATE_BURST_FRAMES	64

/* A sender's limit.  All zero: none. */
struct vale_rate_conf {
	uint64_t	rc_rate;	/* bits or frames a second, 1 to
					   VALE_RATE_MAX; 0: no limit */
	uint32_t	rc_burst;	/* bytes, or frames, that may exceed it:
					   1 to VALE_RATE_BURST_MAX; 0: the
					   default */
	bool		rc_frames;	/* the limit is one of frames */
};

#endif /* !_DEV_NETMAP_VALE_RATE_CONF_H_ */
