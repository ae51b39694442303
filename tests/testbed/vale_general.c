/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Compile the two files again, under other names and without fast paths.
 */

#include <sys/types.h>

#define	NO_FAST_PATH
#ifndef WITHOUT_DTRACE
#define	WITHOUT_DTRACE
#endif

#define	vale_deliver		vale_general_deliver
#define	vale_deliver_inbox	vale_general_deliver_inbox
#define	vale_forward		vale_general_forward
#define	vale_forward_collect	vale_general_forward_collect
#define	vale_forward_invalid	vale_general_forward_invalid
#define	vale_txsync		vale_general_txsync

#include "vale_deliver.c"
#include "vale_forward.c"
