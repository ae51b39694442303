/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A device for tests of lib/libvfu, with two BARs, of memory and of I/O ports.
 * Each call of its functions is written down, and the test compares the text.
 */

#ifndef _VFU_STUB_H_
#define	_VFU_STUB_H_

#include "vfu_device.h"

#define	STUB_BAR0_SIZE	0x20000		/* bytes */
#define	STUB_BAR5_SIZE	8

extern struct vfu_device dev;

/* What vdo_read() returns, and the level that each write sets, or -1. */
extern uint64_t		stub_value;
extern int		stub_level;
/* The listening socket. */
extern int		stub_listen_fd;

#define	STUB_MSIX	0x40		/* its capability's place */
#define	STUB_VECTORS	3

/*
 * Initialize the device, with this listening socket; or one of PCI Express,
 * with MSI-X.
 */
void	stub_start(int listen_fd);
void	stub_start_msix(int listen_fd);

/*
 * The calls since the last time, each followed by a semicolon:
 *
 *	read BAR+OFFSET,SIZE	write BAR+OFFSET,SIZE=VALUE	master 0|1
 *	msix 0|1	attach	detach	reset	work	pause	resume
 *	log PRIORITY: TEXT
 *
 * Offsets and values are in hexadecimal.
 */
const char *stub_calls(void);

/* A counter since the last time. */
uint64_t stub_count(enum vfu_counter counter);

/* A sealed memfd of this size. */
int	stub_memory(size_t size);

#endif /* !_VFU_STUB_H_ */
