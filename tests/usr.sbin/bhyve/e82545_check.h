/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Functions for the tests of the rings: they start an adapter, put descriptors
 * and frames into its rings, and compare the results.  Functions that check end
 * the test case if a frame or descriptor is missing.
 */

#ifndef _E82545_CHECK_H_
#define	_E82545_CHECK_H_

#include <sys/types.h>

#include <stddef.h>
#include <stdint.h>

#include <atf-c.h>

#include "e82545_host.h"
#include "e82545_packet.h"
#include "test.h"

/* A test case with a host, `h', which `create' creates; it is destroyed. */
#define	HOST_TEST(name, create, descr)					\
	static void name##_test(struct host *h);			\
	TEST(name, descr)						\
	{								\
		struct host *h = create;				\
									\
		name##_test(h);						\
		host_destroy(h);					\
	}								\
	static void							\
	name##_test(struct host *h)

/*
 * Transmit.
 */

/* The last descriptor of a frame; data and context descriptors. */
#define	TXD_LAST	(E82545_TXD_EOP | E82545_TXD_IFCS | E82545_TXD_RS)
#define	TXD_DATA	(E82545_TXD_DEXT | E82545_TXD_DTYP_DATA)
#define	TXD_CONTEXT	(E82545_TXD_DEXT | E82545_TXD_DTYP_CONTEXT)

/* Create an adapter with its rings on, all interrupts on and none pending. */
struct host *tx_up(uint32_t ntxd);

/* Put bytes into new guest memory that is not adjacent to any other. */
uint64_t tx_put(struct host *h, const void *data, size_t len);

/* Put a descriptor at the tail; returns its index.  TDT is not written. */
uint32_t tx_desc(struct host *h, uint64_t addr, uint32_t lower,
	    uint32_t upper);

/* Queue a context descriptor for a packet, for TSO if `mss' is not 0. */
uint32_t tx_context(struct host *h, const struct packet *p, uint16_t mss,
	    uint32_t cmd);

/*
 * Queue a packet as data descriptors of `first', then `step' bytes, each with
 * `flags'.  Returns the index of the last one.
 */
uint32_t tx_data(struct host *h, const uint8_t *frame, size_t len,
	    size_t first, size_t step, uint32_t flags, uint8_t popts,
	    uint16_t tag);

/* The POPTS that ask for all of a packet's checksums. */
uint8_t	tx_popts(const struct packet *p);

/* Write TDT, and run the adapter until it has nothing to do. */
void	tx_go(struct host *h);

/* Check that the n-th frame sent has these bytes. */
void	check_sent(struct host *h, unsigned int n, const void *data,
	    size_t len);

/* Check that the ring still works, at the end of a test of bad input. */
void	check_tx_alive(struct host *h);

/*
 * Snapshots.
 */

struct e82545;
struct e82545_snap;

/*
 * Pause the adapter, and save one part of its state in `save', or restore it
 * from `restore'; the other is NULL.  Returns its length, 0 if it is invalid or
 * not of `size' bytes or less.
 */
size_t	snap_part(struct host *h,
	    void (*snap)(struct e82545 *, struct e82545_snap *), void *save,
	    const void *restore, size_t size);

/* The EEPROM's part: its words, then an instruction on its bus. */
#define	SNAP_EE_ENABLED	128
#define	SNAP_EE_STATE	129
#define	SNAP_EE_NBITS	130
#define	SNAP_EE_SHIFT	134
#define	SNAP_EE_OPCODE	138
#define	SNAP_EE_ADDR		142
#define	SNAP_EE_DATA_OUT	146
#define	SNAP_EE_SIZE		147

/* In this state, the largest value of the number at `off'. */
struct eeprom_limit {
	uint8_t		state;
	size_t		off;
	uint32_t	max;
};

/* Each of `n' limits can be restored, and the next larger number cannot. */
void	check_eeprom_limits(struct host *h, const struct eeprom_limit *t,
	    size_t n, const uint8_t good[SNAP_EE_SIZE]);

/*
 * Locks.
 */

struct e82545_lock;

/* Whether a thread waits for a lock that another one holds. */
bool	lock_has_waiter(struct e82545_lock *lock);

/*
 * Receive.
 */

/* The last descriptor of a frame; all checksums checked. */
#define	RXD_DONE	(E82545_RXD_DD | E82545_RXD_EOP)
#define	RXCSUM_ON	(E82545_RXCSUM_IPOFL | E82545_RXCSUM_TUOFL |	\
			E82545_RXCSUM_IPV6OFL)

/* As tx_up(), with receive buffers of `bufsize' bytes. */
struct host *rx_up(uint32_t nrxd, uint32_t bufsize);

/* An adapter with its rings on, whose network takes offloads. */
struct host *offload_up(uint32_t ndescs, uint32_t rxbufsize);

/*
 * Make a frame to the adapter with a partial checksum, of segments if `mss' is
 * not 0, and its bytes in `buf'.  Returns their number.
 */
size_t	offload_frame(const struct packet *p, size_t mss, struct frame *frame,
	    uint8_t *buf);

/* Inject a frame as one fragment, and run the adapter. */
void	rx_receive(struct host *h, const void *frame, size_t len);

/*
 * Check that the next packet in the ring has these bytes; returns its last
 * descriptor.
 */
struct e82545_rxd check_taken(struct host *h, const void *data, size_t len);
/* Check that no packet is in the ring. */
void	check_none(struct host *h);

/* As check_tx_alive(). */
void	check_rx_alive(struct host *h);

#endif /* !_E82545_CHECK_H_ */
