/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * For tests of one kind of attached interface: the interface, which has no
 * thread, and what the thread and sendto(2) do.  One thread.
 */

#ifndef _HOSTIF_STUB_H_
#define	_HOSTIF_STUB_H_

#include <stdint.h>
#include <string.h>

#include "hostif_impl.h"
#include "trace.h"

#define	RING_SLOTS	1024		/* of the port */

extern struct hostif	 hi;		/* up; its ops are the test's to set */
extern struct vale_common common;
extern struct vale_desc	 port;

/* Frames for the interface; the port's ring has their indices. */
extern struct frame	 frames[600];
extern uint32_t		 nframes;

/* What sendto(2) does: it takes some, then it fails.  The last is repeated. */
extern struct sends {
	uint32_t	take;
	int		error;		/* 0: none */
}			 sends[8];
extern unsigned int	 nsends, nsent;

/* From now on calls do this; without any, each takes all. */
#define	SENDS(...)							\
	do {								\
		static const struct sends all_[] = { __VA_ARGS__ };	\
									\
		memcpy(sends, all_, sizeof(all_));			\
		nsends = nitems(all_);					\
		nsent = 0;						\
	} while (0)

/* Check the arguments of a sendto(2) that only wakes; what it does. */
struct sends sends_next(const void *p, size_t len, int flags, const void *to,
	    socklen_t tolen);

/* Set the sizes of the port's rings, the name, and the first descriptor. */
void	hostif_stub_init(int first_fd);
/* A counter since the last time. */
void	counted(enum hostif_counter c, uint64_t n);
/* No counter has changed since then. */
void	counted_all(void);

#endif /* !_HOSTIF_STUB_H_ */
