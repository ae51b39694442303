/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Packets for tests, built and summed byte by byte according to the RFCs,
 * without code of the model.
 */

#ifndef _E82545_PACKET_H_
#define	_E82545_PACKET_H_

#include <sys/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define	PACKET_HDR_MAX	(18 + 60 + 60)	/* bytes */
#define	PACKET_FIN	0x01
#define	PACKET_PSH	0x08
#define	PACKET_CWR	0x80
#define	PACKET_ACK	0x10

struct packet {
	bool		 v6;
	bool		 udp;		/* else TCP */
	bool		 vlan;
	uint16_t	 tag;		/* with vlan */
	unsigned int	 ipopts;	/* IPv4 options, 32-bit words */
	unsigned int	 tcpopts;	/* TCP options, 32-bit words */
	uint16_t	 id;		/* IPv4 */
	uint16_t	 frag;		/* IPv4 flags and fragment offset */
	uint32_t	 seq;		/* TCP */
	uint8_t		 flags;		/* TCP */
	const uint8_t	*payload;
	size_t		 paylen;
};

/* Offsets of the headers, and their length, in a frame of packet_build(). */
size_t	packet_l3(const struct packet *p);
size_t	packet_l4(const struct packet *p);
size_t	packet_hdrlen(const struct packet *p);

/* The segment of TSO with `mss' bytes of payload at most, from `off' on. */
struct packet packet_segment(const struct packet *p, size_t off, size_t mss);

/* Build the frame with all checksums; returns its length. */
size_t	packet_build(const struct packet *p, uint8_t *frame);
/* The same for that segment. */
size_t	packet_build_segment(const struct packet *p, size_t off, size_t mss,
	    uint8_t *frame);

/*
 * Build the frame with a partial checksum: that of IP is complete, that of TCP
 * or UDP is left to others.  Returns its length.
 */
size_t	packet_build_partial(const struct packet *p, uint8_t *frame);

/*
 * Build the packet, of 64 KB or more, as a guest passes it on with TSO: its
 * header, prepared, and its payload.  Returns its length.
 */
size_t	packet_build_tso(const struct packet *p, uint8_t *packet);

/* One of a random kind to the adapter. */
struct packet packet_random(const uint8_t *payload, size_t paylen,
	    uint32_t *seed);

/*
 * Clear the checksums of a frame, which the adapter must fill in.  That of TCP
 * or UDP is set to the sum of the pseudo-header, with the length or, for TSO,
 * without it.
 */
void	packet_prepare(const struct packet *p, uint8_t *frame, bool length);

/* The checksum of RFC 1071, byte by byte, in host order. */
uint16_t packet_sum(const uint8_t *data, size_t len);

/* Fill memory with pseudo-random bytes. */
void	packet_fill(uint8_t *buf, size_t len, uint32_t seed);

#endif /* !_E82545_PACKET_H_ */
