/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The frame port over a VALE port without the fast paths of vale_frame_port.c.
 */

#ifndef _VALE_FRAME_GENERAL_H_
#define	_VALE_FRAME_GENERAL_H_

#include "vale_frame_port.h"

/* As vale_frame_port_init(), vale_frame_port_put(), vale_frame_port_why(). */
int	vale_frame_general_init(struct vale_frame_port *vp,
	    struct vale_desc *d, void (*vlog)(const char *fmt, va_list ap));
int	vale_frame_general_put(struct vale_frame_port *vp,
	    const struct frame *frame, size_t hdrlen, bool copy);
const char *vale_frame_general_why(const char *name, int error);
/* The others of vale_frame_port.h. */
void	vale_frame_general_begin(struct vale_frame_port *vp,
	    struct vale_desc *d, const struct frame_port_ops *ops,
	    void (*vlog)(const char *fmt, va_list ap));
bool	vale_frame_general_send_header(struct frame_port *port,
	    const struct frame *frame);
bool	vale_frame_general_peek_header(struct frame_source *source,
	    struct frame *frame);

#endif /* !_VALE_FRAME_GENERAL_H_ */
