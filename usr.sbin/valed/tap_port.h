/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A frame port over a TAP: an Ethernet interface of the host with a file at its
 * other end.
 */

#ifndef _TAP_PORT_H_
#define	_TAP_PORT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct frame_port;

/* Bytes of an interface's name, with its NUL: Linux's IFNAMSIZ. */
#define	TAP_NAME_SIZE	16

/*
 * Open the TAP `name', set its MTU in bytes unless `mtu' is 0, and bring it up.
 * The caller sets fp_frame_max.  Returns NULL with a sentence of at most `size'
 * bytes in `why'.
 */
struct frame_port *tap_port_open(const char *name, uint32_t mtu, char *why,
	    size_t size);

/* Close it.  No other call may be in progress or follow. */
void	tap_port_close(struct frame_port *port);

/* Return the descriptor that is readable if frames are pending. */
int	tap_port_fd(const struct frame_port *port);

/*
 * Return whether the interface was deleted: its descriptor stays readable, and
 * no frame comes any more.  The receiving thread.
 */
bool	tap_port_gone(const struct frame_port *port);

#endif /* !_TAP_PORT_H_ */
