/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The functions of FreeBSD's pthread_np(3) that are used here.
 */

#ifndef _COMPAT_PTHREAD_NP_H_
#define	_COMPAT_PTHREAD_NP_H_

#include <pthread.h>

/* Name a thread for debuggers.  Linux keeps the first 15 characters. */
void	pthread_set_name_np(pthread_t thread, const char *name);

/* Return whether the calling thread owns the mutex.  For assertions. */
int	pthread_mutex_isowned_np(pthread_mutex_t *mutex);

#endif /* !_COMPAT_PTHREAD_NP_H_ */
