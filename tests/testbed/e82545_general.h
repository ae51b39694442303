/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The model's workers without the fast paths of e82545_tx.c and e82545_rx.c.
 * A test may call each in place of the function without "general".
 */

#ifndef _E82545_GENERAL_H_
#define	_E82545_GENERAL_H_

#include "e82545.h"

enum e82545_tx_state e82545_general_tx(struct e82545 *dev);
enum e82545_rx_state e82545_general_rx(struct e82545 *dev);
void	e82545_general_rx_direct(struct e82545 *dev,
	    struct frame_source *frames);

#endif /* !_E82545_GENERAL_H_ */
