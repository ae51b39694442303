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

#include <stdbool.h>

/* The version of struct adapter_saved; those of its parts are beside it. */
#define	ADAPTER_SAVED_VERSION	2
/* Bytes of a version as text, with its NUL. */
#define	ADAPTER_VERSION_SIZE	32

/*
 * The version that this program writes; and whether it goes on from one that
 * another program has written.  Any thread.
 */
void	adapter_version(char version[ADAPTER_VERSION_SIZE]);
bool	adapter_version_takes(const char *version);

#endif /* !_ADAPTER_VERSION_H_ */
