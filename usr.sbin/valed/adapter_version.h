/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The version of the state that an adapter leaves to the next process
 * (adapter_keep.h).
 */

#ifndef _ADAPTER_VERSION_H_
#define	_ADAPTER_VERSION_H_

#include "e82545.h"
#include "peer_mem_journal.h"
#include "vfu_state.h"

/* The version of struct adapter_saved. */
#define	ADAPTER_SAVED_VERSION	1

/*
 * The versions of the parts of that state, as text.  A program goes on from the
 * state of another one if both have the same text.
 */
#define	ADAPTER_TEXT_OF(n)	#n
#define	ADAPTER_TEXT(n)		ADAPTER_TEXT_OF(n)
#define	ADAPTER_VERSION							\
	ADAPTER_TEXT(ADAPTER_SAVED_VERSION) "."				\
	ADAPTER_TEXT(VFU_STATE_VERSION) "."				\
	ADAPTER_TEXT(E82545_SNAPSHOT_VERSION) "."			\
	ADAPTER_TEXT(PEER_MEM_JOURNAL_VERSION)

#endif /* !_ADAPTER_VERSION_H_ */
