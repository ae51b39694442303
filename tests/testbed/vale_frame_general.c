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
#define	vale_frame_port_begin	vale_frame_general_begin
#define	vale_frame_port_send_header	vale_frame_general_send_header
#define	vale_frame_port_peek_header	vale_frame_general_peek_header

#include "vale_frame_port.c"
