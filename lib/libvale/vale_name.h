/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef _VALE_NAME_H_
#define	_VALE_NAME_H_

#include <stdbool.h>

/* Bytes of a port's name with its final NUL: netmap's NETMAP_REQ_IFNAMSIZ. */
#define	VALE_NAME_SIZE	64

/*
 * Whether `name' is "valeSWITCH:PORT": SWITCH may be empty, both are letters,
 * digits, '_', '-' and '.', and all of it fits in VALE_NAME_SIZE.
 */
bool	vale_name_valid(const char *name);

#endif /* !_VALE_NAME_H_ */
