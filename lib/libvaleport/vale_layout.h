/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What memory with netmap's rings consists of that processes share, for ports
 * and pipes (vale_pipe.c), and what programs see of it: windows.
 *
 * Memory is shared by all programs that have a port or pipe there, and by
 * valed.  Any of them may write anything to it at any time.  But a netmap
 * program believes what rings say: where buffers are, how large, and which one
 * a slot has.  So what it finds at nr_offset is not in that memory.  It is the
 * window, a file of the connection that opened the port, and nobody else has
 * it:
 *
 *	struct vale_window | netmap_ifs | transmit rings | receive rings
 *	| a struct vale_window_ring for each ring pair
 *
 * The netmap_ifs are of all rings, and, if there are several ring pairs, of
 * each: its ring_ofs[] is 0 except for its rings, as netmap shows them to who
 * opens one ring (NR_REG_ONE_NIC).
 *
 * The window is mapped over a part of the memory that has nothing else, from a
 * multiple of VALE_WINDOW_ALIGN on.  No buffer is there, or a slot that another
 * process has filled in could make a program write to its own window.  A sync
 * (vale_client.c) copies slots from one to the other, and checks those that it
 * takes.
 */

#ifndef _VALE_LAYOUT_H_
#define	_VALE_LAYOUT_H_

#include <stddef.h>
#include <stdint.h>

#include "vale_region.h"

#define	VALE_WINDOW_ALIGN	65536	/* no kernel's pages are larger */

/*
 * A port whose user is another process, which the switch does not trust.  Both
 * have mapped the same memory: a CSB for each ring pair at its beginning,
 * behind them the rings and buffers.  The rings are used as above, except that
 * the user publishes head and cur in the CSB, and finds the tail there
 * (netmap's CSB mode, with struct nm_csb_atok and nm_csb_ktoa of
 * <net/netmap.h>).  For each ring
 *
 *	the user	stores its cur and head with release semantics;
 *			if kern_need_kick of its transmit ring is set, clears it
 *			and kicks: the switch's side calls vale_shared_tx()
 *	the switch	stores hwcur and hwtail; if appl_need_kick is set,
 *			clears it and calls wake(arg, ring, tx), `ring' the
 *			number of the ring pair, `tx' if it is the transmit ring
 *
 * with a full barrier between the two steps.  Before a side sleeps, it sets its
 * need_kick, and after a full barrier looks once more.
 *
 * Slots with NS_INDIRECT are dropped (tx_drop_buf).
 */
struct vale_csb {
	struct nm_csb_atok	tx_atok;
	struct nm_csb_ktoa	tx_ktoa;
	struct nm_csb_atok	rx_atok;
	struct nm_csb_ktoa	rx_ktoa;
};

/*
 * Lay out the memory of a port whose user is another process.  `params' must be
 * in range, without defaults.
 *
 *	CSBs | a netmap_if, and places for as many as the window has
 *	| transmit rings | receive rings | a place for the window (rl_frames)
 *	| buffer 0 | 1 | ...
 *
 * Behind the buffers of the transmit rings are those of no ring, in a list as
 * netmap has it.  The memory may go on behind all buffers, for pipes
 * (vale_pipe.h).  Buffers are numbered through, and slots may have those that
 * have been given out so far (vale_shared_more()).
 */
void	vale_shared_layout(struct vale_region_layout *rl,
	    const struct vale_params *params, uint32_t extra_bufs);

/* What a window begins with: valed's part.  Constant. */
struct vale_window {
	uint64_t	vv_bufs;	/* offset of buffer 0 in the memory, */
	uint64_t	vv_end;		/* and of what is behind the last one */
	uint64_t	vv_pipe;	/* offset of the pipe, or 0 */
	uint32_t	vv_extra;	/* the first extra buffer, or 0 */
	_Alignas(NM_CACHE_ALIGN) char vv_nifp[];
};

/* Heads that a program has published, where no other can change them. */
struct vale_window_ring {
	uint32_t	vwr_sent;
	uint32_t	vwr_released;
};

/* Where everything is in the window of `rings' ring pairs. */
struct vale_window_layout {
	size_t		wl_tx;
	size_t		wl_tx_size;
	size_t		wl_rx;
	size_t		wl_rx_size;
	size_t		wl_ring;	/* struct vale_window_ring[] */
	size_t		wl_size;	/* a multiple of VALE_WINDOW_ALIGN */
};

/* Lay out a window.  Of memory without a port or pipe, `rings' is 0. */
void	vale_window_layout(struct vale_window_layout *wl, uint32_t rings,
	    uint32_t tx_slots, uint32_t rx_slots);

/* nr_offset of a window at `at'; and the reverse. */
#define	VALE_WINDOW_OFFSET(at)	((at) + sizeof(struct vale_window))
#define	VALE_WINDOW_AT(offset)	((offset) & ~((uint64_t)VALE_WINDOW_ALIGN - 1))

#endif /* !_VALE_LAYOUT_H_ */
