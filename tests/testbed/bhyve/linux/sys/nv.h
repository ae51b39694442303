/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The part of nv(9) that bhyve's configuration uses: lists of named values,
 * each a string or another list.  The names in a list are distinct.  The
 * functions do not lock: one thread at a time may use a list.
 *
 * As in nv(9), a program that gets a value that does not exist has a bug, and
 * exits.
 */

#ifndef _COMPAT_SYS_NV_H_
#define	_COMPAT_SYS_NV_H_

#include <sys/types.h>

#include <stdbool.h>

#define	NV_TYPE_STRING	4
#define	NV_TYPE_NVLIST	5

typedef struct nvlist nvlist_t;

/* Create an empty list.  `flags' must be 0.  NULL with errno on failure. */
nvlist_t *nvlist_create(int flags);

/* Free a list and all its values.  `nvl' may be NULL. */
void	nvlist_destroy(nvlist_t *nvl);

bool	nvlist_empty(const nvlist_t *nvl);
bool	nvlist_exists(const nvlist_t *nvl, const char *name);
bool	nvlist_exists_string(const nvlist_t *nvl, const char *name);
bool	nvlist_exists_nvlist(const nvlist_t *nvl, const char *name);

/* The list owns the value, which is valid until it is removed. */
const char *nvlist_get_string(const nvlist_t *nvl, const char *name);
const nvlist_t *nvlist_get_nvlist(const nvlist_t *nvl, const char *name);

/*
 * Add a copy of a string; add a list, which `nvl' then owns.  The name must not
 * be in the list.  The functions exit if there is no memory.
 */
void	nvlist_add_string(nvlist_t *nvl, const char *name, const char *value);
void	nvlist_move_nvlist(nvlist_t *nvl, const char *name, nvlist_t *value);

/* Remove a value. */
void	nvlist_free(nvlist_t *nvl, const char *name);

/*
 * Return the name of the next value in the order of addition and set *typep, or
 * return NULL at the end.  The caller must set *cookiep to NULL at first.
 */
const char *nvlist_next(const nvlist_t *nvl, int *typep, void **cookiep);

#endif /* !_COMPAT_SYS_NV_H_ */
