/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Functions to send and receive frames with virtio-net headers on ports of the
 * switch.  packet_build() makes what is expected, without code of ours.
 */

#ifndef _VALE_VNET_H_
#define	_VALE_VNET_H_

#include <sys/types.h>

#include <stdint.h>

#include "e82545_packet.h"
#include "vale_test.h"

#define	VN_LONG		12		/* bytes of a header */
#define	VN_SHORT	10
#define	VN_BYTES	(PACKET_HDR_MAX + 65536)
#define	GSO_NONE	0
#define	GSO_TCPV4	1
#define	GSO_UDP		3
#define	GSO_TCPV6	4
#define	GSO_UDP_L4	5
#define	GSO_ECN		0x80
#define	NEEDS_CSUM	1

/* How a port's frames begin: what vale_set_header() takes. */
#define	VN_NKINDS	4
extern const unsigned int vn_kinds[VN_NKINDS];

/* A frame and its header, as a program writes them. */
struct vn_sent {
	struct packet	packet;
	uint8_t		hdr[VN_LONG];
	uint8_t		data[VN_BYTES];	/* partial checksum */
	uint8_t		done[VN_BYTES];	/* complete, if it is not cut */
	uint32_t	len, mss;
};

/* The payload of vn_packet()'s packets, and what vn_expect() took last. */
extern uint8_t vn_payload[VN_BYTES];
extern uint8_t vn_hdr[VN_LONG], vn_frame[VN_BYTES + VN_LONG];

/*
 * Make a header; a packet with up to `paylen' bytes of vn_payload, of random
 * kind; a frame from station `src' to `dst', in segments of `mss' bytes, or for
 * 0 with a partial checksum alone.
 */
void	vn_make_hdr(uint8_t *hdr, uint8_t flags, uint8_t type,
	    uint16_t hdr_len, uint16_t gso_size, uint16_t start,
	    uint16_t offset);
struct packet vn_packet(uint32_t paylen, uint32_t *seed);
void	vn_make(struct vn_sent *s, const struct packet *p, uint32_t mss,
	    unsigned int dst, unsigned int src);

/* Open a port of a kind; station `n' is there.  Take all that it received. */
struct vale_desc *vn_port(const char *name, unsigned int kind,
	    uint32_t rx_slots, unsigned int n);
void	vn_drain(struct vale_desc *d);

/*
 * Put a header and a frame into the ring of a port of that kind, without a
 * sync, in fragments of up to `fraglen' bytes, copied or, if `indirect', by
 * reference.
 */
void	vn_put(struct vale_desc *d, unsigned int kind, const uint8_t *hdr,
	    const uint8_t *data, uint32_t len, uint32_t fraglen,
	    bool indirect);
void	vn_put_sent(struct vale_desc *d, unsigned int kind,
	    const struct vn_sent *s, uint32_t fraglen, bool indirect);

/*
 * Take what the ring shows next, without a sync: bytes to `buf', a header to
 * `hdr', or zeros.  Returns the length without the header; 0: none.
 */
uint32_t vn_take(struct vale_desc *d, unsigned int kind, uint8_t *hdr,
	    uint8_t *buf);
/* Expect the frame, or its segments, at a port of that kind, without a sync. */
void	vn_expect(struct vale_desc *d, unsigned int kind,
	    const struct vn_sent *s);
void	vn_expect_none(struct vale_desc *d);

#endif /* !_VALE_VNET_H_ */
