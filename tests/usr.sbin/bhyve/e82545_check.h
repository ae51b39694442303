/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What several tests of the rings do: bring an adapter up, put descriptors and
 * frames on its rings, and compare what comes out.  Functions that check end
 * the test case where what they look at is not there.
 */

#ifndef _E82545_CHECK_H_
#define	_E82545_CHECK_H_

#include <sys/types.h>

#include <stddef.h>
#include <stdint.h>

#include <atf-c.h>

#include "e82545_host.h"
#include "e82545_packet.h"

#define	TEST(name, descr)						\
	ATF_TC(name);							\
	ATF_TC_HEAD(name, tc) { atf_tc_set_md_var(tc, "descr", descr); } \
	ATF_TC_BODY(name, tc)

/*
 * Transmit.
 */

/* The last descriptor of a frame; data and context descriptors. */
#define	TXD_LAST	(E82545_TXD_EOP | E82545_TXD_IFCS | E82545_TXD_RS)
#define	TXD_DATA	(E82545_TXD_DEXT | E82545_TXD_DTYP_DATA)
#define	TXD_CONTEXT	(E82545_TXD_DEXT | E82545_TXD_DTYP_CONTEXT)

/* An adapter that is up, with all interrupts on and none pending. */
struct host *tx_up(uint32_t ntxd);

/* Fresh guest memory with these bytes, next to nothing else. */
uint64_t tx_put(struct host *h, const void *data, size_t len);

/* Put a descriptor at the tail; returns its index.  TDT is not written. */
uint32_t tx_desc(struct host *h, uint64_t addr, uint32_t lower,
	    uint32_t upper);

/* A context descriptor for a packet, for TSO if `mss' is not 0. */
uint32_t tx_context(struct host *h, const struct packet *p, uint16_t mss,
	    uint32_t cmd);

/*
 * A packet as data descriptors, cut after `first' bytes and then each `step';
 * `flags' are of all of them.  Returns the last one's index.
 */
uint32_t tx_data(struct host *h, const uint8_t *frame, size_t len,
	    size_t first, size_t step, uint32_t flags, uint8_t popts,
	    uint16_t tag);

/* The POPTS that ask for all checksums a packet has. */
uint8_t	tx_popts(const struct packet *p);

/* Write TDT, and let everything happen that comes of it. */
void	tx_go(struct host *h);

/* The n-th frame sent has these bytes. */
void	check_sent(struct host *h, unsigned int n, const void *data,
	    size_t len);

/* That the ring works is what a test of bad input ends with. */
void	check_tx_alive(struct host *h);

/*
 * Receive.
 */

/* The last descriptor of a frame; all checksums checked. */
#define	RXD_DONE	(E82545_RXD_DD | E82545_RXD_EOP)
#define	RXCSUM_ON	(E82545_RXCSUM_IPOFL | E82545_RXCSUM_TUOFL |	\
			E82545_RXCSUM_IPV6OFL)

/* As tx_up(), with receive buffers of `bufsize' bytes. */
struct host *rx_up(uint32_t nrxd, uint32_t bufsize);

/* Inject a frame in one piece and let it be received. */
void	rx_receive(struct host *h, const void *frame, size_t len);

/* The next packet in the ring has these bytes; returns its last descriptor. */
struct e82545_rxd check_taken(struct host *h, const void *data, size_t len);
/* No packet is in the ring. */
void	check_none(struct host *h);

/* As check_tx_alive(). */
void	check_rx_alive(struct host *h);

#endif /* !_E82545_CHECK_H_ */
