/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * FreeBSD's pthread_np(3), as far as it is used here.
 */

#ifndef _COMPAT_PTHREAD_NP_H_
#define	_COMPAT_PTHREAD_NP_H_

#include <pthread.h>

/* Name a thread, for debuggers; Linux shows the first 15 characters. */
void	pthread_set_name_np(pthread_t thread, const char *name);

#endif /* !_COMPAT_PTHREAD_NP_H_ */
