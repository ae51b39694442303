/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Write a pcapng file (IETF draft-ietf-opsawg-pcapng, the sections named), in
 * the byte order of the host: a section header (4.1), a description of each
 * interface (4.2), packets (4.3), and at the end statistics of each interface
 * (4.6).
 *
 * Errors stay in the stream: see ferror(3).  One thread at a time may use a
 * stream.
 */

#ifndef _PCAPNG_H_
#define	_PCAPNG_H_

#include <stdint.h>
#include <stdio.h>

/* Begin the file; `program' is the name of the one that writes it. */
void	pcapng_begin(FILE *f, const char *program);

/*
 * Describe the next interface; the first is number 0.  Packets have up to
 * `snaplen' bytes, or any number if it is 0.
 */
void	pcapng_interface(FILE *f, const char *name, uint32_t snaplen);

/* Which way a packet went; flags of option epb_flags. */
enum pcapng_way {
	PCAPNG_UNKNOWN,
	PCAPNG_IN,		/* the interface received it */
	PCAPNG_OUT
};

/* A packet: bytes of it that are captured, and how many it had. */
struct pcapng_packet {
	uint32_t	interface;	/* its number */
	uint64_t	time_ns;	/* since 1970 */
	const void	*data;
	uint32_t	captured;	/* bytes at `data' */
	uint32_t	len;		/* bytes of the packet */
	enum pcapng_way	way;
};

/* Write a packet.  An error is one of `f', as with the functions above. */
void	pcapng_packet(FILE *f, const struct pcapng_packet *p);

/* Write what interface number `interface' has captured, and dropped. */
void	pcapng_statistics(FILE *f, uint32_t interface, uint64_t time_ns,
	    uint64_t captured, uint64_t dropped);

#endif /* !_PCAPNG_H_ */
