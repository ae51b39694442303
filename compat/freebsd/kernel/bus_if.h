/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Stand-in for the header that makeobjops.awk generates from kern/bus_if.m. */

#ifndef _bus_if_h_
#define	_bus_if_h_

int BUS_READ_IVAR(device_t dev, device_t child, int index, uintptr_t *result);

#endif
