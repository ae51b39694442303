/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Compiles the two files that have fast paths again, under other names and
 * without these.
 */

#include <sys/types.h>

#define	NO_FAST_PATH
#ifndef WITHOUT_DTRACE
#define	WITHOUT_DTRACE
#endif

#define	e82545_tx		e82545_general_tx
#define	e82545_rx		e82545_general_rx
#define	e82545_rx_direct	e82545_general_rx_direct

#include "e82545_rx.c"
#include "e82545_tx.c"
