/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Compiles the two files again, under other names and without fast paths.
 */

#include <sys/types.h>

#define	NO_FAST_PATH
#ifndef WITHOUT_DTRACE
#define	WITHOUT_DTRACE
#endif

#define	e82545_tx		e82545_general_tx
#define	e82545_txq_create	e82545_general_txq_create
#define	e82545_txq_destroy	e82545_general_txq_destroy
#define	e82545_txq_reset	e82545_general_txq_reset
#define	e82545_txq_snap		e82545_general_txq_snap

#define	e82545_rx		e82545_general_rx
#define	e82545_rx_direct	e82545_general_rx_direct
#define	e82545_rx_kicked	e82545_general_rx_kicked
#define	e82545_rx_unstall	e82545_general_rx_unstall
#define	e82545_rxq_create	e82545_general_rxq_create
#define	e82545_rxq_destroy	e82545_general_rxq_destroy

#include "e82545_rx.c"
#include "e82545_tx.c"
