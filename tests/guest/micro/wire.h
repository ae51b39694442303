/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The frames of the packet generator, as they are in memory of a little-endian
 * machine: traffic.c says who sends them when.  The last eight bytes of a frame
 * are its number again.
 */

#ifndef _WIRE_H_
#define	_WIRE_H_

#include <stdint.h>

#define	WIRE_ETHERTYPE	0xb588		/* 0x88b5, for experiments */
#define	WIRE_MAGIC	0x6d6c
#define	WIRE_HELLO	1
#define	WIRE_WELCOME	2
#define	WIRE_DATA	3
#define	WIRE_BYE	4
#define	WIRE_THANKS	5
#define	WIRE_DONE	6

struct wire {
	uint8_t		dst[6];
	uint8_t		src[6];
	uint16_t	type;
	uint16_t	magic;
	uint32_t	kind;
	uint32_t	size;		/* of the frame */
	uint64_t	seq;
	uint64_t	count;		/* BYE: DATA sent */
} __attribute__((__packed__));

#endif /* !_WIRE_H_ */
