/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The version of all programs, as debian/changelog has it; netmap-run's
 * makefile reads it here, too.
 */

#ifndef _VALE_VERSION_H_
#define	_VALE_VERSION_H_

#define	VALE_VERSION	"1.0.0"

#endif /* !_VALE_VERSION_H_ */
