/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Carrying out a change of the adapters.
 */

#ifndef _VALED_RELOAD_H_
#define	_VALED_RELOAD_H_

#include "adapter.h"
#include "valed_guard.h"

/*
 * Carry out a change, and answer the guard.  `watch' is called while an adapter
 * ends, and must call adapter_watch() of all adapters, also of that one, when
 * it is due.  The main thread.
 */
void	valed_reload(struct valed_change *vc, struct adapter_list *adapters,
	    void (*watch)(struct adapter *ending));

#endif /* !_VALED_RELOAD_H_ */
