/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A frame port: the network as an adapter model sees it.  Frames go out by
 * frame_port_send() and frame_port_flush(); they come in from the port's frame
 * source (frame.h), in batches that frame_port_sync() begins.
 *
 * A network provides one as a struct frame_port_ops.
 *
 * The port applies the host's mtu=, both ways, and counts the frames that it
 * drops for that.
 *
 * Sending and receiving may be two threads, one each: the sending thread calls
 * frame_port_send() and frame_port_flush(), the receiving thread everything
 * else, except where noted.
 */

#ifndef _FRAME_PORT_H_
#define	_FRAME_PORT_H_

#include <sys/types.h>
#include <sys/counter_table.h>
#include <sys/systm.h>

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame.h"

/* Counters, in sys/counter_table.h's form. */
#define	FRAME_PORT_COUNTERS(X)						\
	X(FRAME_PORT_C_TX_OVERMTU, "tx_overmtu",			\
	    "TX frames dropped: longer than mtu=", DROP)		\
	X(FRAME_PORT_C_RX_OVERMTU, "rx_overmtu",			\
	    "RX frames dropped: longer than mtu=", DROP)		\
	X(FRAME_PORT_C_RX_BAD_HEADER, "rx_bad_header",			\
	    "RX frames dropped: invalid virtio-net header", DROP)

enum frame_port_counter {
	COUNTER_IDS(FRAME_PORT_COUNTERS)
	FRAME_PORT_NCOUNTERS
};
extern const struct counter_row frame_port_counter_table[FRAME_PORT_NCOUNTERS];

struct frame_port;

/* What a port's implementation does.  Each is called by the function below. */
struct frame_port_ops {
	bool	(*fpo_send)(struct frame_port *port,
		    const struct frame *frame);
	void	(*fpo_flush)(struct frame_port *port);
	void	(*fpo_sync)(struct frame_port *port);
	/* The rest may be NULL. */
	void	(*fpo_destroy)(struct frame_port *port);
	bool	(*fpo_set_sink)(struct frame_port *port,
		    void (*sink)(void *arg, struct frame_source *frames),
		    void *arg);
	bool	(*fpo_set_offloads)(struct frame_port *port);
	bool	(*fpo_takes_uncut)(const struct frame_port *port,
		    const struct frame *frame);
	uint64_t (*fpo_missed)(const struct frame_port *port);
};

/* An implementation embeds this struct. */
struct frame_port {
	const struct frame_port_ops *fp_ops;
	/*
	 * Frames received.  They stay in place until the frame_port_sync()
	 * after frame_next(), if the backend can, else until the frame_peek()
	 * after it.
	 */
	struct frame_source *fp_source;
	uint32_t	 fp_frame_max;	/* bytes, as frame_longest(); longer
					   ones are dropped */
	bool		 fp_offloads;	/* frame_port_set_offloads() */
	uint64_t	 fp_counter[FRAME_PORT_NCOUNTERS]; /* atomic */
};

/* Add one to a counter: one thread at a time for each. */
static inline void
frame_port_count(struct frame_port *port, enum frame_port_counter counter)
{
	uint64_t *c = &port->fp_counter[counter];

	atomic_store_64(c, atomic_load_64(c) + 1);
}

/* Return the value of a counter.  Any thread. */
static inline uint64_t
frame_port_counter(const struct frame_port *port,
    enum frame_port_counter counter)
{
	return (atomic_load_64(&port->fp_counter[counter]));
}

/*
 * Send, as frame_port_send() does, a frame that the caller has found to be
 * within fp_frame_max.
 */
static inline int
frame_port_send_short(struct frame_port *port, const struct frame *frame)
{
	return (port->fp_ops->fpo_send(port, frame) ? 0 : ENOBUFS);
}

/*
 * Queue a frame.  The caller must leave the fragments as they are until
 * frame_port_flush() returns; *frame and its iovec array are needed for the
 * call only.  The port may send at once.
 *
 * Returns 0; EMSGSIZE if the frame is longer than mtu= allows and was dropped,
 * which the port counts; ENOBUFS if the network has no space for it and it was
 * dropped, which the caller counts.
 */
static inline int
frame_port_send(struct frame_port *port, const struct frame *frame)
{
	if (__predict_false(frame->f_len > port->fp_frame_max) &&
	    frame_longest(frame) > port->fp_frame_max) {
		frame_port_count(port, FRAME_PORT_C_TX_OVERMTU);
		return (EMSGSIZE);
	}
	return (frame_port_send_short(port, frame));
}

/* Send what is queued: once a batch. */
static inline void
frame_port_flush(struct frame_port *port)
{
	port->fp_ops->fpo_flush(port);
}

/*
 * Return the space of frames taken from the source to the network, and look for
 * new frames: once a batch.
 */
static inline void
frame_port_sync(struct frame_port *port)
{
	port->fp_ops->fpo_sync(port);
}

/*
 * Return whether a frame received is within mtu=.  Counts one that is not; the
 * caller must drop it.  Frames that reach the adapter past the port's source
 * must be checked, too.  One thread at a time.
 */
static inline bool
frame_port_accepts(struct frame_port *port, const struct frame *frame)
{
	if (__predict_true(frame->f_len <= port->fp_frame_max) ||
	    frame_longest(frame) <= port->fp_frame_max)
		return (true);
	frame_port_count(port, FRAME_PORT_C_RX_OVERMTU);
	return (false);
}

/*
 * Have frames that another port of the same switch, in the same process, sends
 * here offered to sink(arg, frames), on the sender's thread, before they are
 * copied into this port's ring: libvale.h, vale_set_sink(), says what a sink
 * may do.  NULL ends it.  Frames keep their order if those taken from
 * fp_source are processed before the next frame_port_sync().
 * Any thread.  Returns false if the port cannot do this.
 */
static inline bool
frame_port_set_sink(struct frame_port *port,
    void (*sink)(void *arg, struct frame_source *frames), void *arg)
{
	if (port->fp_ops->fpo_set_sink == NULL)
		return (sink == NULL);
	return (port->fp_ops->fpo_set_sink(port, sink, arg));
}

/*
 * Return the number of frames that the network has dropped because frames
 * before them were not taken from the source, since the port was created.  0 if
 * the network does not count them.  Any thread; takes no lock.
 */
static inline uint64_t
frame_port_missed(const struct frame_port *port)
{
	return (port->fp_ops->fpo_missed == NULL ? 0 :
	    port->fp_ops->fpo_missed(port));
}

/*
 * Let frames with FRAME_CSUM_PARTIAL pass, both ways.  Until then, and if the
 * port cannot, they must not be sent, and none is received.  Before the first
 * frame.  fp_offloads says whether it was done.
 */
static inline void
frame_port_set_offloads(struct frame_port *port)
{
	port->fp_offloads = port->fp_ops->fpo_set_offloads != NULL &&
	    port->fp_ops->fpo_set_offloads(port);
}

/*
 * Return whether the port, which has fp_offloads, sends this frame, whose
 * f_gso_type is not FRAME_GSO_NONE.  If not, the caller must cut it.
 */
static inline bool
frame_port_takes_uncut(const struct frame_port *port, const struct frame *frame)
{
	return (port->fp_ops->fpo_takes_uncut == NULL ||
	    port->fp_ops->fpo_takes_uncut(port, frame));
}

#endif /* !_FRAME_PORT_H_ */
