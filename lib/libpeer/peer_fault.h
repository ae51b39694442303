/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Pages that vanish from memory that others share: guests' memory, that of
 * other processes' ports, and that of interfaces attached through AF_XDP.
 *
 * A client can punch holes into the memory that it shares, however it is
 * sealed.  The next access allocates a new page, or raises SIGBUS if there is
 * none: no huge page is free, the limit of vm.overcommit_memory=2 is reached,
 * or the page was lost to a memory error.  The access may be that of another
 * adapter's thread, which copies a frame.
 *
 * The handler of SIGBUS looks for the table of memory (struct peer_mem) in
 * which the address lies, maps a spare page there, and calls that table's
 * owner, who must drop the client, or detach the interface.  The thread goes on
 * with the spare page.  Each owner has one of its own, since what is written
 * there can be read there, and it exists before it is needed.  A SIGBUS
 * anywhere else ends the process.
 */

#ifndef _PEER_FAULT_H_
#define	_PEER_FAULT_H_

struct peer_mem;

/*
 * Tables that the handler knows, at most: VALED_MAXADAPTERS, CTL_MAX and
 * HOSTIF_MAX together.
 */
#define	PEER_FAULT_MAX	640

/* Set the handler.  The main thread.  Returns 0 or an errno. */
int	peer_fault_init(void);

/*
 * Have the handler call end() before a SIGBUS ends the process, in the thread
 * that has caused it.  The main thread, before there are others.
 */
void	peer_fault_on_end(void (*end)(void));

/*
 * Add a table.  When its memory has vanished, the handler calls
 * peer_mem_lose(), then lost(arg), which must be safe in a signal handler and
 * in any thread.  Returns 0 or an errno.  Any thread, before the table is used.
 */
int	peer_fault_add(struct peer_mem *dma, void (*lost)(void *arg),
	    void *arg);

/*
 * Remove a table, which must be empty; nothing happens if it was not added.  On
 * return no handler uses it, or will.  Any thread.
 */
void	peer_fault_remove(struct peer_mem *dma);

#endif /* !_PEER_FAULT_H_ */
