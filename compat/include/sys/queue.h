/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * glibc's <sys/queue.h>, and those loops of queue(3), except the SLIST's, that
 * allow the caller to remove the element.
 */

#ifndef _COMPAT_SYS_QUEUE_H_
#define	_COMPAT_SYS_QUEUE_H_

#include_next <sys/queue.h>

#ifndef STAILQ_FOREACH_SAFE
#define	STAILQ_FOREACH_SAFE(var, head, field, next)			\
	for ((var) = STAILQ_FIRST(head);				\
	    (var) != NULL && ((next) = STAILQ_NEXT(var, field), 1);	\
	    (var) = (next))
#endif
#ifndef LIST_FOREACH_SAFE
#define	LIST_FOREACH_SAFE(var, head, field, next)			\
	for ((var) = LIST_FIRST(head);					\
	    (var) != NULL && ((next) = LIST_NEXT(var, field), 1);	\
	    (var) = (next))
#endif
#ifndef TAILQ_FOREACH_SAFE
#define	TAILQ_FOREACH_SAFE(var, head, field, next)			\
	for ((var) = TAILQ_FIRST(head);					\
	    (var) != NULL && ((next) = TAILQ_NEXT(var, field), 1);	\
	    (var) = (next))
#endif

#endif /* !_COMPAT_SYS_QUEUE_H_ */
