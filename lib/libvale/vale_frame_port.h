/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A frame port (frame_port.h) over a port of a VALE switch.
 *
 * The sending thread and the receiving thread share no data, so there are no
 * locks.
 */

#ifndef _VALE_FRAME_PORT_H_
#define	_VALE_FRAME_PORT_H_

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame_port.h"

struct vale_desc;

/* The lengths of virtio-net headers, bytes. */
#define	VALE_HEADER	12
#define	VALE_HEADER_SHORT 10

struct vale_frame_port {
	struct frame_port	 vfp_port;	/* its user sets fp_frame_max */
	struct frame_source	 vfp_source;
	struct vale_desc	*vfp_desc;
	void			(*vfp_vlog)(const char *fmt, va_list ap);

	/* The sending thread's. */
	uint32_t	 vfp_slot_max;	/* bytes in a slot's own buffer */
	uint32_t	 vfp_indirect_max; /* and elsewhere, if aligned */
	uint32_t	 vfp_align;	/* 64 bytes, or 1: vale_frame_port.c */
	bool		 vfp_tx_failed;	/* the last sync failed, reported */

	/* The receiving thread's. */
	uint32_t	 vfp_rx_next;	/* first slot not taken */
	uint32_t	 vfp_rx_end;	/* the one after the frame shown */
	bool		 vfp_rx_failed;	/* the last sync failed, reported */
};

/*
 * Make *vp a frame port over the port `d', which is open and must outlive it.
 * vlog() prints a line without its newline, on the sending or the receiving
 * thread, when a sync fails and when a sync works again.  Returns 0, or -1 with
 * errno: EMSGSIZE if netmap's buffers are too short for the port, or that of
 * vale_set_header(3).
 */
int	vale_frame_port_init(struct vale_frame_port *vp, struct vale_desc *d,
	    void (*vlog)(const char *fmt, va_list ap));

/*
 * Set the members of *vp as vale_frame_port_init() does, with the caller's
 * operations in place of its own, for another kind of port (vale_remote.c).
 * vlog() may be NULL if these do not call vale_txsync(3) and vale_rxsync(3).
 * The functions below are operations for ports on which each frame has a header
 * of VALE_HEADER bytes.
 */
void	vale_frame_port_begin(struct vale_frame_port *vp, struct vale_desc *d,
	    const struct frame_port_ops *ops,
	    void (*vlog)(const char *fmt, va_list ap));
bool	vale_frame_port_send_header(struct frame_port *port,
	    const struct frame *frame);
bool	vale_frame_port_peek_header(struct frame_source *source,
	    struct frame *frame);

/* Bytes of netmap's buffers, at least. */
#define	VALE_FRAME_PORT_BUF_MIN	512

/*
 * Put a frame, whose fragments begin with `hdrlen' bytes of a virtio-net header
 * (0, or that of vale_set_header(3)), into the ring.  The frame is sent by
 * frame_port_flush(), at the latest.  If `copy' is set, its fragments may be
 * changed as soon as this returns, otherwise only after the flush.  The sending
 * thread.  Returns 0; or EMSGSIZE, ENOBUFS or, if the header is invalid,
 * EINVAL: the frame was dropped.
 */
int	vale_frame_port_put(struct vale_frame_port *vp,
	    const struct frame *frame, size_t hdrlen, bool copy);

/*
 * Return why vale_open(3) of `name' has failed with this errno: a sentence,
 * valid until the next call of strerror(3).
 */
const char *vale_frame_port_why(const char *name, int error);

#endif /* !_VALE_FRAME_PORT_H_ */
