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

/* Whether the calling thread has locked the mutex.  For assertions. */
int	pthread_mutex_isowned_np(pthread_mutex_t *mutex);

#endif /* !_COMPAT_PTHREAD_NP_H_ */
