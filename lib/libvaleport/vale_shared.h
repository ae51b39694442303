/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Ports of the switches of this process whose user is another process:
 * vale_shared.c.  vale_layout.h has the CSB's protocol.
 */

#ifndef _VALE_SHARED_H_
#define	_VALE_SHARED_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libvale.h"
#include "vale_layout.h"

#define	VALE_EXTRA_BUFS_MAX	8192

struct vale_shared {
	uint32_t extra_bufs;	/* buffers that belong to no slot, in the list
				   of nifp->ni_bufs_head; up to
				   VALE_EXTRA_BUFS_MAX */
	void	*memory;	/* vale_shared_size() bytes, from a page's
				   beginning; until vale_close().  Zero-filled,
				   or that of a port which had the same numbers
				   and is closed: slots keep their buffers */
	size_t	more;		/* bytes behind them: slots may also have the
				   buffers there.  vale_shared_more() */
	/* Wake the user.  Any thread.  Must not wait, nor call this library. */
	void	(*wake)(void *arg, unsigned int ring, bool tx);
	void	*arg;
};

/*
 * Return the bytes of the memory of such a port (vale_shared_layout()), or 0 if
 * a number is out of range.
 */
size_t	vale_shared_size(const struct vale_params *params,
	    uint32_t extra_bufs);

/*
 * Return the bytes that such a port takes outside of its memory, at most: for
 * frames that wait for the user (vale_shared_rx()), and for what the switch
 * knows of its slots.  `params' must be in range.
 */
size_t	vale_shared_private(const struct vale_params *params);

/*
 * Open such a port, as vale_open() does.  Of its descriptors only the name may
 * be used, and they only by vale_ring(), vale_set_header(), vale_missed(),
 * vale_close(), and the functions below.
 *
 * Besides `memory' the port uses up to vale_shared_private() bytes of this
 * process, and those of its filter.
 */
struct vale_desc *vale_open_shared(const char *name,
	    const struct vale_params *params, const struct vale_shared *shared);

/*
 * Let slots have the buffers in `more' bytes behind the port's own, not less
 * than before.  Any thread.
 */
void	vale_shared_more(struct vale_desc *d, size_t more);

/*
 * Transmit what the user has published in this ring pair.  Returns false if
 * there was nothing.  A head outside the ring is counted (tx_bad_ring) and
 * ignored.  One thread at a time.
 */
bool	vale_shared_tx(struct vale_desc *d);

/*
 * Ask the user to kick with this ring pair.  Returns false if the user has
 * published slots meanwhile, and then no kick may come.  The thread of
 * vale_shared_tx().
 */
bool	vale_shared_wait(struct vale_desc *d);

/*
 * Deliver the frames that wait for the user of this ring pair: flooded ones and
 * copies for a mirror, whose senders do not wait for the user's memory, and all
 * while that memory is slow.  Returns false if there was none.  The descriptor
 * is readable while there may be some.  The thread of vale_shared_tx().
 */
bool	vale_shared_rx(struct vale_desc *d);
int	vale_shared_fd(const struct vale_desc *d);

#endif /* !_VALE_SHARED_H_ */
