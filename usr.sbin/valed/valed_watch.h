/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What clients of the control socket may see of adapters and attached
 * interfaces: valed_watch.c.
 */

#ifndef _VALED_WATCH_H_
#define	_VALED_WATCH_H_

#include "adapter.h"
#include "ctl.h"

/* The adapters of the process.  The main thread's; others see them below. */
extern struct adapter_list valed_adapters;

/*
 * Append an adapter, which is seen from now on; remove it, before
 * adapter_stop().  The main thread, which does not wait for a client there.
 */
void	valed_watch_add(struct adapter *ad);
void	valed_watch_remove(struct adapter *ad);

/* List adapters: list() of ctl_devices_are().  Any thread. */
void	valed_watch_list(ctl_device_show *show, void *arg);

#endif /* !_VALED_WATCH_H_ */
