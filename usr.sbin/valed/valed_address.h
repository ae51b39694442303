/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The Ethernet address of an adapter for which the configuration has none.  It
 * is a function of the host's machine-id, which it does not reveal, and of the
 * adapter's place and port: the same at each start, and another on another
 * host.  One thread, which can open files.
 */

#ifndef _VALED_ADDRESS_H_
#define	_VALED_ADDRESS_H_

#include <stddef.h>
#include <stdint.h>

#include "adapter_config.h"

/* The file with the machine-id: machine-id(5). */
extern const char *valed_address_file;

/* Set the address of *ac. */
void	valed_address(struct adapter_config *ac);

/* Return SipHash-2-4 of `len' bytes with a key of 16 bytes. */
uint64_t valed_address_hash(const uint8_t key[16], const void *data,
	    size_t len);

#endif /* !_VALED_ADDRESS_H_ */
