/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A frame port (frame_port.h) without a network: it drops what is sent, and
 * receives nothing.
 */

#ifndef _FRAME_NONE_H_
#define	_FRAME_NONE_H_

#include "frame_port.h"

/*
 * Make *port one, with *source as its frame source; both must outlive its use.
 * Other members stay as they are.  The receiving thread, while no other one
 * uses the port.
 */
void	frame_none_init(struct frame_port *port, struct frame_source *source);

#endif /* !_FRAME_NONE_H_ */
