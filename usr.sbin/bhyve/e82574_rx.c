/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Receive descriptors of the 82574L with RFCTL.EXTEN, as the adapter writes
 * them back; e82574_reg.h has the layouts.  The batch makes the upper halves of
 * the other format, which have all that is known of a frame.  Here each becomes
 * a descriptor when it is stored: a descriptor has no address afterwards, so
 * nothing may be stored before the batch is known to end (e82545_salvage.c).
 *
 * With RSS the batch makes the lower halves, too: e82574_rss.c.
 *
 * With RCTL.DTYP a descriptor has four buffers, and takes two places of the
 * other formats.  The headers of an IP packet go to the first buffer of its
 * first descriptor, alone, if they fit there and there are others; a frame of
 * another kind fills one buffer after the other.  Headers are those of
 * Ethernet, with VLAN tags, IP with options or extension headers, and TCP or
 * UDP.  Headers of iSCSI and NFS, for which RFCTL has bits, are payload here.
 *
 * The registers that decide about that change only between two batches.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/systm.h>

#include "e82545_rx_impl.h"
#include "e82574.h"
#include "frame_cursor.h"
#include "frame_hdr.h"

/* Bytes of a frame in which headers are found. */
#define	HEADERS_MAX	256

#define	IP4_FRAGMENT	6
#define	 IP4_FRAGMENT_MASK 0x3fff	/* more fragments, offset */
#define	PROTO_FRAGMENT	44
#define	TCP_OFF		12
#define	TCP_HDRLEN	20
#define	UDP_HDRLEN	8

/*
 * Return where the headers of a packet end whose IP header is at `net', or 0.
 */
static uint32_t
headers_end(const struct e82545 *dev, const uint8_t *p, uint32_t len,
    uint32_t net, uint16_t type)
{
	const bool fragments = (e82545_reg(dev, E82574_RFCTL) &
	    E82574_RFCTL_IPFRSP_DIS) == 0;
	struct frame_hdr fh;
	uint32_t hdrlen;

	if (type == FRAME_TYPE_IP4 && net + FRAME_IP4_HDRLEN <= len &&
	    (be16dec(p + net + IP4_FRAGMENT) & IP4_FRAGMENT_MASK) != 0) {
		hdrlen = (p[net] & 0xf) * 4;
		return (fragments && p[net] >> 4 == 4 &&
		    hdrlen >= FRAME_IP4_HDRLEN ? net + hdrlen : 0);
	}
	if (!frame_hdr_ip(p, len, net, &fh) ||
	    type != (fh.fh_ip4 ? FRAME_TYPE_IP4 : FRAME_TYPE_IP6))
		return (0);
	switch (fh.fh_proto) {
	case PROTO_FRAGMENT:
		return (fragments || fh.fh_ip4 ? fh.fh_l4 : 0);
	case FRAME_PROTO_TCP:
		if (fh.fh_l4 + TCP_HDRLEN > len)
			return (0);
		hdrlen = (p[fh.fh_l4 + TCP_OFF] >> 4) * 4;
		return (hdrlen >= TCP_HDRLEN ? fh.fh_l4 + hdrlen : 0);
	case FRAME_PROTO_UDP:
		return (fh.fh_l4 + UDP_HDRLEN);
	}
	return (fh.fh_l4);
}

size_t
e82574_rx_header(const struct e82545 *dev, const struct frame *f, size_t strip)
{
	const uint32_t len = MIN(f->f_len, (uint32_t)HEADERS_MAX);
	uint8_t p[HEADERS_MAX];
	struct frame_cursor cur;
	uint32_t end, net;
	uint16_t type;

	frame_cursor_init(&cur, f->f_iov);
	frame_cursor_copy(&cur, p, len);
	net = frame_hdr_ether(p, len, 0, &type);
	if (net == 0)
		return (0);
	end = headers_end(dev, p, len, net, type);
	/*
	 * The limit of the field is beyond HEADERS_MAX.  A buffer has no place
	 * for 0 less `strip'.
	 */
	if (end > len || end - strip >
	    E82574_PSRCTL_BSIZE0(e82545_reg(dev, E82574_PSRCTL)))
		return (0);
	return (end - strip);
}

uint32_t
e82574_rx_lens(const struct e82545 *dev, uint32_t len, uint16_t split,
    uint32_t lens[E82574_SPLIT_BUFFERS])
{
	const uint32_t psrctl = e82545_reg(dev, E82574_PSRCTL);
	uint32_t size, sum = 0;
	int i;

	for (i = 0; i < E82574_SPLIT_BUFFERS; i++) {
		if (i > 0)
			size = E82574_PSRCTL_BSIZE(psrctl, i);
		else if (split != 0)
			size = split & E82574_HEADER_LEN;
		else
			size = E82574_PSRCTL_BSIZE0(psrctl);
		lens[i] = MIN(size, len - sum);
		sum += lens[i];
	}
	return (sum);
}

uint64_t
e82574_rx_status(const struct e82545 *dev, const struct e82545_rxq *q,
    uint32_t which)
{
	const uint64_t d = le64toh(q->done[which]);
	uint32_t lens[E82574_SPLIT_BUFFERS] = { d & 0xffff };

	if (rx_split(dev))
		(void)e82574_rx_lens(dev, d & 0xffff, q->split[which], lens);
	return (htole64((d >> 32 & 0xff) | (d >> 40 & 0xff) << 24 |
	    (which + 1 == q->stamped ? E82574_RXD_STAMP : 0) |
	    (uint64_t)lens[0] << 32 | (d >> 48) << 48));
}

uint32_t
e82574_rxcsum(const struct e82545 *dev, uint32_t rxcsum)
{
	if ((e82545_reg(dev, E82574_RFCTL) & (E82574_RFCTL_IP6_DIS |
	    E82574_RFCTL_IP6_XSUM_DIS)) != 0)
		return (rxcsum & ~E82545_RXCSUM_IPV6OFL);
	return (rxcsum | E82545_RXCSUM_IPV6OFL);
}

/*
 * Return the first word if RSS is off.  With PCSD the guest wants a hash in
 * place of the checksum: there is none.
 */
static uint64_t
rx_unhashed(const struct e82545 *dev, uint64_t d)
{
	return ((e82545_reg(dev, E82545_RXCSUM) & E82574_RXCSUM_PCSD) != 0 ?
	    0 : htole64((d >> 16 & 0xffff) << 48));
}

/*
 * Store the word with DD last, with release: a guest that sees it sees the
 * rest.
 */
void
e82574_rx_store_one(const struct e82545 *dev, uint64_t (*ring)[2], uint32_t i,
    const struct e82545_rxq *q, uint32_t which)
{
	const uint64_t d = le64toh(q->done[which]);
	const uint64_t *lower = rx_lower(q);
	uint64_t *desc = rx_desc(dev, ring, i);
	uint32_t lens[E82574_SPLIT_BUFFERS];
	uint16_t split;

	atomic_store_64(&desc[0], lower != NULL ? lower[which] :
	    rx_unhashed(dev, d));
	if (rx_split(dev)) {
		split = q->split[which] &
		    (E82574_HEADER_SPLIT | E82574_HEADER_LEN);
		(void)e82574_rx_lens(dev, d & 0xffff, split, lens);
		/* Only the first descriptor of a packet has headers. */
		if (split == E82574_HEADER_SPLIT)
			split = 0;
		atomic_store_64(&desc[2], htole64(split |
		    (uint64_t)lens[1] << 16 | (uint64_t)lens[2] << 32 |
		    (uint64_t)lens[3] << 48));
		atomic_store_64(&desc[3], 0);
	}
	atomic_store_rel_64(&desc[1], e82574_rx_status(dev, q, which));
}

void
e82574_rx_store(const struct e82545 *dev, uint64_t (*ring)[2], uint32_t size,
    uint32_t start, const struct e82545_rxq *q, uint32_t n)
{
	uint32_t i;

	for (i = n; i-- > 1;)
		e82574_rx_store_one(dev, ring, (start + i) % size, q, i);
}
