/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Stand-in for the header generated from kern/device_if.m. */

#ifndef _device_if_h_
#define	_device_if_h_

typedef void device_identify_t(driver_t *driver, device_t parent);
typedef int device_probe_t(device_t dev);
typedef int device_attach_t(device_t dev);
typedef int device_detach_t(device_t dev);
typedef int device_shutdown_t(device_t dev);
typedef int device_suspend_t(device_t dev);
typedef int device_resume_t(device_t dev);

extern struct kobjop_desc device_identify_desc, device_probe_desc,
    device_attach_desc, device_detach_desc, device_shutdown_desc,
    device_suspend_desc, device_resume_desc;

#endif
