/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Stand-in for Concurrency Kit's queues, in sys/contrib/ck: kernel headers name
 * them in structs and inline code.  The plain ones have the same members.
 */

#ifndef CK_QUEUE_H
#define	CK_QUEUE_H

#include <sys/queue.h>

#define	CK_STAILQ_HEAD	STAILQ_HEAD
#define	CK_STAILQ_ENTRY	STAILQ_ENTRY
#define	CK_LIST_HEAD	LIST_HEAD
#define	CK_LIST_ENTRY	LIST_ENTRY
#define	CK_SLIST_HEAD	SLIST_HEAD
#define	CK_SLIST_ENTRY	SLIST_ENTRY
#define	CK_STAILQ_FOREACH STAILQ_FOREACH
#define	CK_LIST_FOREACH	LIST_FOREACH
#define	CK_SLIST_FOREACH SLIST_FOREACH

#endif
