/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The part of nv(9) that a device of bhyve uses: its configuration, a list of
 * named strings.
 */

#ifndef _COMPAT_SYS_NV_H_
#define	_COMPAT_SYS_NV_H_

#define	NV_TYPE_STRING	4

typedef struct nvlist nvlist_t;

/*
 * Return the name of the next value in the order of addition and set *typep, or
 * return NULL at the end.  The caller must set *cookiep to NULL at first.
 */
const char *nvlist_next(const nvlist_t *nvl, int *typep, void **cookiep);

#endif /* !_COMPAT_SYS_NV_H_ */
