/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Steps that drivers of the 8254x have in common, for tests that repeat a
 * driver's register accesses.  Frames have numbers: the bytes of frame `n'
 * follow from `n', its length and its destination.  Functions that check end
 * the test case if a frame or descriptor is missing.
 */

#ifndef _E1000_DRIVER_H_
#define	_E1000_DRIVER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "e82545_check.h"

#define	BROADCAST	((const uint8_t[6]){ 255, 255, 255, 255, 255, 255 })

/*
 * Create an adapter, and memory for rings of `ntxd' and `nrxd' descriptors.
 * The receive descriptors have their buffers, of `bufsize' bytes.  No register
 * is written.
 */
struct host *adapter(uint32_t ntxd, uint32_t nrxd, uint32_t bufsize);

/* Check the address in the first receive address register. */
void	check_address(struct host *h);
/* Check the address in the EEPROM, by EERD. */
void	check_eerd(struct host *h);
/*
 * The same by EECD, and the checksum.  `hold': request access once for all
 * words, not for each.
 */
void	check_microwire(struct host *h, bool hold);
/* Whether STATUS says that there is a link. */
bool	has_link(struct host *h);

/*
 * Put frame number `n', of `len' bytes, into descriptor `n', with the command
 * bits `cmd'.  TDT is not written.
 */
void	fill_tx(struct host *h, uint32_t n, uint16_t len, uint32_t cmd);
/* Check that only frame number `n' was sent, padded if it is short. */
void	check_tx(struct host *h, unsigned int n, uint16_t len);
/*
 * Send frame number `n' in one legacy descriptor, with EOP, IFCS, RS and the
 * bits `more', and check that it is sent and the descriptor done.
 */
void	send_one(struct host *h, uint32_t n, uint16_t len, uint32_t more);

/* Frame number `n' arrives, for the station or for `dst'. */
void	arrive(struct host *h, unsigned int n, size_t len);
void	arrive_at(struct host *h, const uint8_t dst[6], unsigned int n,
	    size_t len);
/*
 * Check that descriptor `i' has that frame, followed by `fcs' bytes (0 or 4),
 * and clear the descriptor's status.
 */
void	check_rx(struct host *h, uint32_t i, unsigned int n, size_t len,
	    size_t fcs);
void	check_rx_at(struct host *h, uint32_t i, const uint8_t dst[6],
	    unsigned int n, size_t len, size_t fcs);

#endif /* !_E1000_DRIVER_H_ */
