/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The window that a program has of its rings (vale_layout.h): what it consists
 * of, and the copies between it and the memory that others write to.
 *
 * Of the memory each field is read once, checked, and used.
 */

#ifndef _VALE_WINDOW_H_
#define	_VALE_WINDOW_H_

#include <stddef.h>
#include <stdint.h>

#include "vale_layout.h"

/*
 * Map the window `fd', `size' bytes, over the memory whose first byte is mapped
 * at `base', which has `memsize' bytes; nr_offset is `offset'.  Returns 0, or
 * -1 with errno: EPROTO if the place or the size are not as they must be.
 */
int	vale_window_map(char *base, size_t memsize, uint64_t offset, int fd,
	    size_t size);

/*
 * Do the same with a window of this process, which begins as that of `fd' does:
 * who else has that file cannot change the window.  EPROTO also if `fd' is not
 * sealed against shrinking.
 */
int	vale_window_copy(char *base, size_t memsize, uint64_t offset, int fd,
	    size_t size);

/*
 * Initialize the window of a new port or pipe.  `base' is where the memory
 * begins; of `reg', nr_offset, slots and rings are those granted.  Slots are
 * left alone.
 */
void	vale_window_init(char *base, const struct nmreq_register *reg,
	    const char *name);

/* Say where things are in the window at `window' of `wl'. */
struct netmap_ring *vale_window_txring(char *window,
	    const struct vale_window_layout *wl, unsigned int ring);
struct netmap_ring *vale_window_rxring(char *window,
	    const struct vale_window_layout *wl, unsigned int ring);
struct vale_window_ring *vale_window_heads(char *window,
	    const struct vale_window_layout *wl, unsigned int ring);

/*
 * Begin with the buffers that the memory's slots `from' have: where that is
 * invalid, with `first' and the slot's number.
 */
void	vale_window_begin(struct netmap_ring *ring,
	    const struct netmap_slot *from, uint32_t first, uint32_t nbufs);

/* Copy the slots from `i' to before `end' to the memory's, `to'. */
void	vale_window_put(const struct netmap_ring *ring, struct netmap_slot *to,
	    uint32_t i, uint32_t end);
/* Copy only which buffers the slots from `i' to before `end' have, to `to'. */
void	vale_window_release(const struct netmap_ring *ring,
	    struct netmap_slot *to, uint32_t i, uint32_t end);

/*
 * Take the slots up to `tail', whatever that is, from the memory's, `from', and
 * advance the ring's tail.  With `nbufs' the buffer, too, of so many; with 0
 * each slot keeps its own.  Returns 0, or -1 with EIO, and nothing is shown,
 * if what is there is not valid.
 */
int	vale_window_take(struct netmap_ring *ring,
	    const struct netmap_slot *from, uint32_t tail, uint32_t nbufs);
/*
 * Advance the ring's tail to `tail', whatever that is, without taking slots.
 * Returns 0, or -1 with EIO.
 */
int	vale_window_tail(struct netmap_ring *ring, uint32_t tail);

#endif /* !_VALE_WINDOW_H_ */
