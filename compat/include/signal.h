/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* SIGINFO, which Linux has as SIGPWR on those processors that have it. */

#ifndef _COMPAT_SIGNAL_H_
#define	_COMPAT_SIGNAL_H_

#include_next <signal.h>

#ifndef SIGINFO
#define	SIGINFO		SIGPWR
#endif

#endif /* !_COMPAT_SIGNAL_H_ */
