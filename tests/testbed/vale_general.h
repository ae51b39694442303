/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * vale_txsync() without the fast paths of vale_forward.c and vale_deliver.c.
 * Works with any port of the switch in this process.
 */

#ifndef _VALE_GENERAL_H_
#define	_VALE_GENERAL_H_

struct vale_desc;

int	vale_general_txsync(struct vale_desc *d);

#endif /* !_VALE_GENERAL_H_ */
