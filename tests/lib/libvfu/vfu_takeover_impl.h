/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What the client (vfu_takeover.c) shares with the processes that it starts,
 * and with the store (vfu_takeover_process.c).
 */

#ifndef _VFU_TAKEOVER_IMPL_H_
#define	_VFU_TAKEOVER_IMPL_H_

#include <sys/un.h>

#include <stdint.h>

#include "peer_mem_journal.h"
#include "vfu_device.h"

#define	PAGE		4096
#define	BAR		0
#define	PAGES_AT	0x10000		/* a register for each page */
#define	GPA		0x100000

/* What outlives the processes. */
extern struct takeover_shared {
	uint32_t	current;	/* index of dev; atomic */
	uint32_t	ready;		/* processes that serve; atomic */
	uint32_t	fds;		/* of the process, as it began */
	uint32_t	die_at;		/* points left, or 0; atomic */
	uint32_t	unkept;		/* a client was accepted, and is not in
					   the store; atomic */
	uint32_t	resets, attaches, detaches;
	uint64_t	last;		/* the last write's number */
	uint64_t	wrong;		/* a write's that was not the next */
	char		why[128];	/* of a process that cannot go on */
	struct vfu_device dev[2];
	struct peer_mem_journal journal;
} *takeover_sh;

/* Where the processes listen. */
extern const struct sockaddr_un takeover_sun;

/* Have the processes' socket, the store, and what outlives the processes. */
void	takeover_process_init(void);

/*
 * In the client: have another process go on, if the last one has died at a
 * point.
 */
void	takeover_process_again(void);

/* In a process: close the descriptors that only the client has. */
void	takeover_client_close(void);

/* The value of the register at this offset of the BAR, below PAGES_AT. */
uint32_t takeover_reg(uint64_t off);

/* Have the store do what the processes have told it. */
void	takeover_store_poll(void);
/* How many descriptors it has whose names begin so. */
unsigned int takeover_store_count(const char *prefix);

#endif /* !_VFU_TAKEOVER_IMPL_H_ */
