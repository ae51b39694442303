/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Arithmetic on bytes, without state: checksums, TSO and VLAN tags in
 * e82545_offload.c, the CRC-32 in e82545_crc.c.
 */

#ifndef _E82545_OFFLOAD_H_
#define	_E82545_OFFLOAD_H_

#include <sys/types.h>
#include <sys/endian.h>
#include <sys/uio.h>
#include <dev/e1000/e82545_reg.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame_sum.h"

/* Ethernet: IEEE 802.3, 802.1Q.  Bytes. */
#define	E82545_ETHERTYPE_IP4	0x0800
#define	E82545_ETHERTYPE_IP6	0x86dd
#define	E82545_VLAN_OFF		12	/* where a tag goes */

/* A checksum in a frame, offsets in bytes. */
struct e82545_sum_where {
	uint8_t		start;		/* first byte summed */
	uint8_t		field;		/* where the checksum goes */
	uint16_t	end;		/* last byte summed, 0: to the end */
};

/*
 * A transmit context, as the last context descriptor of its kind set it: one
 * for TSO, one for everything else.  Under tx_mtx.
 */
struct e82545_txctx {
	struct e82545_sum_where	ip, l4;
	uint32_t		paylen;	/* TSO payload, bytes */
	uint16_t		mss;	/* bytes */
	uint8_t			hdrlen;	/* TSO header, bytes */
	uint32_t		cmd;	/* E82545_TXD_TUCMD_* */
};

/*
 * e82545_crc.c
 */

/*
 * Return the CRC-32 of `len' bytes behind bytes whose CRC-32 is `crc'; 0 for
 * the first bytes.  The CRC-32 of a frame with its FCS is E82545_CRC_WITH_FCS.
 * Any thread.
 */
uint32_t e82545_crc(const void *data, size_t len, uint32_t crc);
#define	E82545_CRC_WITH_FCS	0x2144df1c

/*
 * e82545_offload.c: pure functions on bytes.
 */

/*
 * Return the sum of bytes, added to `sum'; `odd' if an odd number of bytes
 * precedes them.  Not folded.
 */
uint64_t e82545_sum(const void *data, size_t len, uint64_t sum, bool odd);
/*
 * Return the sum of bytes [off, off + len) of a frame, all of which must exist.
 */
uint64_t e82545_sum_iov(const struct iovec *iov, size_t off, size_t len,
	    bool odd);
/*
 * Insert a checksum into a frame of `len' bytes.  The former content of the
 * field is part of the sum; `nonzero' sends 0 as 0xffff, as UDP does. Returns
 * false, with the frame unchanged, if the bytes to sum are not in the frame or
 * the field is not in its first fragment.
 */
bool	e82545_sum_insert(const struct iovec *iov, size_t len,
	    const struct e82545_sum_where *where, bool nonzero);

/*
 * Return whether the headers of a TSO context follow each other within its
 * HDRLEN bytes, and TCP's or UDP's checksum is in its place.
 */
bool	e82545_tso_valid(const struct e82545_txctx *ctx);
/*
 * Return the kind of segments, FRAME_GSO_*, that the packet must be cut into.
 */
uint8_t	e82545_tso_type(const struct e82545_txctx *ctx);
/*
 * Complete the header of a packet with `paylen' bytes of payload: its lengths,
 * the checksum of IPv4, and the length in the sum of the pseudo-header, which
 * the guest leaves out.  8254x SDM section 3.5.
 */
void	e82545_tso_header(uint8_t *hdr, const struct e82545_txctx *ctx,
	    size_t paylen);
/* Insert a VLAN tag; the frame's first byte moves to hdr[-4]. */
void	e82545_vlan_insert(uint8_t *hdr, uint16_t type, uint16_t tag);

/*
 * Return the status byte, and above it the error byte, of the receive
 * descriptor of a frame of `len' bytes, the sum of which is `sum', with a
 * header of `type', E82545_ETHERTYPE_IP4 or IP6, at `off'; `rxcsum' is the
 * register.
 */
uint16_t e82545_rx_ip(const struct iovec *iov, uint16_t type,
	    size_t off, size_t len, uint64_t sum, uint32_t rxcsum);
/*
 * Return the sum of a frame of `len' bytes from `from' on as the guest sees it:
 * without its tag if `strip' is set.
 */
uint64_t e82545_rx_seen(const struct iovec *iov, size_t len, size_t from,
	    bool strip);

/*
 * Verify a received frame of `len' bytes, the sum of which is `sum'.  `type' is
 * that of its Ethernet header, behind a VLAN tag if it has one (`tagged');
 * `strip' if the tag is removed for the guest.  Returns these bits of the upper
 * half of its descriptor, in host order: checksum, status (IXSM, or IPCS and
 * TCPCS), errors (IPE, TCPE).
 */
static inline uint64_t
e82545_rx_sum(const struct iovec *iov, size_t len, uint64_t sum, uint16_t type,
    uint32_t rxcsum, bool tagged, bool strip)
{
	uint16_t field[2] = { 0, 0 };	/* bits 16 to 31, big endian */
	uint64_t found;

	if ((type == E82545_ETHERTYPE_IP4 || type == E82545_ETHERTYPE_IP6) &&
	    (rxcsum & (E82545_RXCSUM_IPOFL | E82545_RXCSUM_TUOFL)) != 0)
		found = e82545_rx_ip(iov, type, E82545_ETH_HDRLEN + (tagged ?
		    E82545_VLAN_LEN : 0), len, sum, rxcsum);
	else
		found = E82545_RXD_IXSM;
	if (strip || (rxcsum & E82545_RXCSUM_PCSS) != 0)
		sum = e82545_rx_seen(iov, len, rxcsum & E82545_RXCSUM_PCSS,
		    strip);
	field[0] = frame_sum_fold(sum);
	return (be32dec(field) | found << 32);
}

#endif /* !_E82545_OFFLOAD_H_ */
