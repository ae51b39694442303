/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * An 82574L with two receive queues, for its tests: queue 0 has the ring of
 * e82545_host.h, queue 1 one of its own; and the packets of Microsoft's suite
 * for the hash of RSS.  Functions end the test case if that fails.
 */

#ifndef _E82574_TWO_H_
#define	_E82574_TWO_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "e82545_host.h"

#define	RFCTL		0x5008
#define	EXTEN		0x8000
#define	IP6_EX_DIS	0x10000
#define	NEW_IP6_EX_DIS	0x20000
#define	RXCSUM_PCSD	0x2000
#define	MRQC		0x5818
#define	RETA(n)		(0x5c00 + 4 * (n))
#define	RSSRK(n)	(0x5c80 + 4 * (n))
#define	RDH1		0x2910
#define	RDT1		0x2918
#define	RXQ0		0x00100000
#define	RXQ1		0x00200000

/* MRQC: RSS with all types; and the bit of each. */
#define	RSS_ALL		0x001f0001
#define	TCPIP4		0x00010000
#define	IP4		0x00020000
#define	TCPIP6		0x00040000
#define	IP6EX		0x00080000
#define	IP6		0x00100000

#define	PROTO_TCP	6
#define	PROTO_UDP	17

/*
 * Microsoft, "Verifying the RSS hash calculation": the key, and packets with
 * the hash of their addresses, and of these and their ports.
 */
extern const uint8_t two_key[40];
struct vector {
	const char	*dst, *src;
	uint16_t	dport, sport;
	uint32_t	hash, hash_tcp;
};
#define	NVECTORS4	5		/* the first ones are of IPv4 */
#define	NVECTORS	8
extern const struct vector two_vectors[NVECTORS];

/* Queue 1: its ring, and its buffers of 2048 bytes each.  gpa. */
extern uint64_t two_ring1, two_buf1;

/*
 * An adapter with rings of `nrxd' descriptors, all but one posted; RSS by
 * two_key with all types, and two_set_reta(h, 1).
 */
struct host *two_up(uint32_t nrxd);
/* Descriptor `n' of a queue as the adapter has written it. */
struct e82574_rxd two_desc(struct host *h, unsigned int queue, uint32_t n);
/* Post a ring's first `n' descriptors. */
void	two_post0(struct host *h, uint32_t n);
void	two_post1(struct host *h, uint32_t n);
/* Place queue 1 anew, of `nrxd' descriptors, and post all but one. */
void	two_place1(struct host *h, uint32_t nrxd);
/* Have an entry of RETA be queue 1 if it is one of a hash with this bit. */
void	two_set_reta(struct host *h, uint32_t bit);
/* A vector as the frame of a protocol.  Returns its length. */
size_t	two_vector_frame(const struct vector *v, bool v6, uint8_t proto,
	    uint8_t *frame);
/* A frame of TCP that two_up() has go to a queue.  Returns its length. */
size_t	two_frame_for(unsigned int queue, uint8_t *frame);

#endif /* !_E82574_TWO_H_ */
