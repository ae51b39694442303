/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * An adapter without a model, for tests of the files that serve its client
 * (vfu_*.c): instead of adapter.c and e82545.c.  Each call is written down, and
 * the test compares the text.
 */

#ifndef _ADAPTER_STUB_H_
#define	_ADAPTER_STUB_H_

#include "adapter.h"

extern struct adapter	ad;

/* What e82545_read() returns, and the level that each write sets, or -1. */
extern uint64_t		stub_value;
extern int		stub_level;

/* Initialize the adapter, with this listening socket. */
void	stub_start(int listen_fd);

/*
 * The calls since the last time, each followed by a semicolon:
 *
 *	read BAR+OFFSET,SIZE	write BAR+OFFSET,SIZE=VALUE	master 0|1
 *	attach	detach	reset	work	pause	resume
 *	log PRIORITY: TEXT
 *
 * Offsets and values are in hexadecimal.
 */
const char *stub_calls(void);

/* A counter since the last time. */
uint64_t stub_count(enum adapter_counter counter);

/* Descriptors that this process has open. */
int	stub_fds(void);

/* A sealed memfd of this size. */
int	stub_memory(size_t size);

#endif /* !_ADAPTER_STUB_H_ */
