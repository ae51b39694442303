/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Address and VLAN filters: e82545_filter.c.
 */

#ifndef _E82545_FILTER_H_
#define	_E82545_FILTER_H_

#include <dev/e1000/e82545_reg.h>

#include <stdbool.h>
#include <stdint.h>

struct e82545;

enum e82545_filter_result {
	E82545_FILTER_DROP,
	E82545_FILTER_PASS,
	E82545_FILTER_INEXACT	/* by hash or in promiscuous mode: PIF */
};
/* The first bytes of a frame, up to its type behind a VLAN tag. */
#define	E82545_RX_HEAD	E82545_HDRLEN_MAX
/*
 * Return the guest's own address, which always passes, as the first 48 bits of
 * a frame read as little endian; UINT64_MAX if there is none.  Any thread.
 */
uint64_t e82545_filter_own(const struct e82545 *dev);
/*
 * Return whether the guest wants a frame with these first bytes; `tagged' if it
 * has a VLAN tag.  Any thread.
 */
enum e82545_filter_result e82545_filter(const struct e82545 *dev,
	    uint32_t rctl, const uint8_t *head, bool tagged);

#endif /* !_E82545_FILTER_H_ */
