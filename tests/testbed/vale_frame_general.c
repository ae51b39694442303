/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Compiles the file again, under other names and without fast paths.
 */

#include "vale_frame_general.h"

#define	NO_FAST_PATH
#define	vale_frame_port_init	vale_frame_general_init
#define	vale_frame_port_put	vale_frame_general_put
#define	vale_frame_port_why	vale_frame_general_why

#include "vale_frame_port.c"
