/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The part of nv(9) that bhyve's configuration needs: lists of named values,
 * each a string or another list.  No two values of a list have the same name.
 * No locks: a list belongs to one thread at a time.
 *
 * As in nv(9), asking for a value that is not there is a bug of the caller's
 * and ends the program.
 */

#ifndef _COMPAT_SYS_NV_H_
#define	_COMPAT_SYS_NV_H_

#include <sys/types.h>

#include <stdbool.h>

#define	NV_TYPE_STRING	4
#define	NV_TYPE_NVLIST	5

typedef struct nvlist nvlist_t;

/* An empty list, or NULL with ENOMEM.  `flags' must be 0. */
nvlist_t *nvlist_create(int flags);

/* Free a list and all that is in it.  NULL is allowed. */
void	nvlist_destroy(nvlist_t *nvl);

bool	nvlist_empty(const nvlist_t *nvl);
bool	nvlist_exists(const nvlist_t *nvl, const char *name);
bool	nvlist_exists_string(const nvlist_t *nvl, const char *name);
bool	nvlist_exists_nvlist(const nvlist_t *nvl, const char *name);

/* The value stays the list's; it is valid until removed. */
const char *nvlist_get_string(const nvlist_t *nvl, const char *name);
const nvlist_t *nvlist_get_nvlist(const nvlist_t *nvl, const char *name);

/*
 * Add a copy of a string; add a list, which becomes part of this one.  The
 * name must be new.  Out of memory ends the program.
 */
void	nvlist_add_string(nvlist_t *nvl, const char *name, const char *value);
void	nvlist_move_nvlist(nvlist_t *nvl, const char *name, nvlist_t *value);

/* Remove a value. */
void	nvlist_free(nvlist_t *nvl, const char *name);

/*
 * Walk over a list in the order values were added: start with *cookiep NULL.
 * Returns the name and sets the type, or NULL at the end.
 */
const char *nvlist_next(const nvlist_t *nvl, int *typep, void **cookiep);

#endif /* !_COMPAT_SYS_NV_H_ */
