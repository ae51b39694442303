/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A ring whose user is another process: its part of the CSB, which libvale.h
 * describes.
 */

#ifndef _VALE_SHARED_H_
#define	_VALE_SHARED_H_

#include <net/netmap.h>

#include <stdbool.h>
#include <stdint.h>

struct vale_user {
	struct nm_csb_atok	*vu_atok;
	struct nm_csb_ktoa	*vu_ktoa;
};

/*
 * Show the user `cur', the first slot not consumed, and the tail.  Returns true
 * if it sleeps: then the caller must call vp_wake().  Who has the ring: for a
 * receive ring the owner of rq_lock, for a transmit ring its thread.
 */
bool	vale_shared_show(const struct vale_user *vu, uint32_t cur,
	    uint32_t tail);

#endif /* !_VALE_SHARED_H_ */
