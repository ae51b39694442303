/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* The causes, by the names of FreeBSD's sys/dev/e1000. */

#ifndef _E1000_DEFINES_H_
#define	_E1000_DEFINES_H_

#include <dev/e1000/e82545_reg.h>

#define	E1000_ICR_TXDW		E82545_ICR_TXDW
#define	E1000_ICR_TXQE		E82545_ICR_TXQE
#define	E1000_ICR_LSC		E82545_ICR_LSC
#define	E1000_ICR_RXDMT0	E82545_ICR_RXDMT0
#define	E1000_ICR_RXT0		E82545_ICR_RXT0

#endif /* !_E1000_DEFINES_H_ */
