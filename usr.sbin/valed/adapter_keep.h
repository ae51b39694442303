/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What is kept of an adapter for the next process: with a store (valed_store.h)
 * the adapter lies in memory that is kept, and when the process ends on
 * purpose, it writes the adapter's state to a file of a versioned format, which
 * is kept, too.
 *
 *	file in the store	names: "PPPP." and, PPPP the place,
 *	  memory		struct adapter_keep
 *	  journal		the client's memory: peer_mem_journal.h
 *	  saved			struct adapter_saved, states of device and model
 *	  client, mem.0, ...	descriptors of the client: vfu_device.h
 *
 * The next process restores what was saved, or, if the other one has crashed,
 * makes the same from its memory; a program of another file does not read that.
 * Nothing in either is trusted: a client may have taken over the process.
 *
 * The functions are the adapter's thread's, unless they say something else.
 */

#ifndef _ADAPTER_KEEP_H_
#define	_ADAPTER_KEEP_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct adapter;
struct adapter_config;
struct e82545_config;

/*
 * Allocate an adapter of zeros, in memory that is kept if there is a store, and
 * free it.  NULL with errno, after a line.  The main thread.
 */
struct adapter *adapter_keep_alloc(const struct adapter_config *ac);
void	adapter_keep_free(struct adapter *ad);

/* Return where its model lies: ec_memory of struct e82545_config. */
void	*adapter_keep_model(struct adapter *ad, size_t *size);

/* Have its device and its memory kept, before its server is started. */
void	adapter_keep_start(struct adapter *ad);

/* Return whether an earlier process has left something of it. */
bool	adapter_keep_found(struct adapter *ad);

/*
 * Take over the client that an earlier process had, with the state of the
 * adapter, or reset what cannot be taken over, after a line.  The adapter is
 * complete and has no client.  The adapter's thread is the only one that uses
 * it.
 */
void	adapter_keep_resume(struct adapter *ad,
	    const struct e82545_config *config);

/* With how many clients this process has gone on, and in which way. */
struct adapter_resumed {
	uint64_t	ar_saved;	/* from states that were saved */
	uint64_t	ar_salvaged;	/* from the memory of a process that
					   has crashed */
	uint64_t	ar_reset;	/* the adapter is reset */
	uint64_t	ar_lost;	/* none: the client is disconnected */
};

/*
 * Return how adapters have gone on.  The main thread, after all have started.
 */
struct adapter_resumed adapter_keep_resumed(void);

/* Let the next process go on from this adapter's memory from now on. */
void	adapter_keep_live(struct adapter *ad);

/*
 * Save its state for the next process.  The adapter must not be used after
 * that.  Without a store, nothing.
 */
void	adapter_keep_save(struct adapter *ad);

/* Forget an adapter that ends: nothing is kept. */
void	adapter_keep_forget(struct adapter *ad);

/*
 * Note that the calling thread serves this adapter: if it ends the process, by
 * a fault or by a system call that the sandbox does not permit, that is noted
 * in the memory.  After adapter_keep_signals(), of the main thread, after
 * peer_fault_init() and before the sandbox.
 */
void	adapter_keep_blame(struct adapter *ad);
void	adapter_keep_signals(void);

/*
 * Note that the calling thread, of any kind, hands frames to this adapter until
 * it says NULL: if it ends the process meanwhile, that is noted in this
 * adapter's memory, too.
 */
void	adapter_keep_receiver(struct adapter *ad);

#endif /* !_ADAPTER_KEEP_H_ */
