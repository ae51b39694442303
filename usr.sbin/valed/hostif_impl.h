/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What the files of an attached interface share.  Except as noted, only the
 * interface's thread uses any of it.
 */

#ifndef _HOSTIF_IMPL_H_
#define	_HOSTIF_IMPL_H_

#include <sys/systm.h>

#include <poll.h>
#include <pthread.h>

#include "frame.h"
#include "hostif.h"
#include "libvale.h"

/* The descriptors in hf_fd. */
#define	HOSTIF_FD_LINK		0	/* rtnetlink(7) */
#define	HOSTIF_FD_KIND		1	/* the first one of the kind */

/* Frames in a batch. */
#define	HOSTIF_BATCH		256

/* Bytes of an Ethernet header and of a VLAN tag. */
#define	HOSTIF_ETHER		14
#define	HOSTIF_TAG		4

struct hostif;

/* A kind of interface. */
struct hostif_ops {
	/*
	 * Map the rings and set hi->data.  Returns NULL or the step that
	 * failed, with errno.  The thread that calls hostif_start().
	 */
	const char *(*ho_start)(struct hostif *hi);
	/* Undo that.  The thread that calls hostif_stop(). */
	void	(*ho_stop)(struct hostif *hi);
	/* Move at most a batch to the switch.  Returns the number of frames. */
	unsigned int (*ho_receive)(struct hostif *hi);
	/*
	 * Move at most a batch from the switch, whose frames vale_rxsync() has
	 * shown, to the interface, and set hi->tx_state.  Returns the number of
	 * frames taken from the port.
	 */
	unsigned int (*ho_send)(struct hostif *hi);
	/* What to wait for; returns how many were set, at most `max'. */
	unsigned int (*ho_poll)(struct hostif *hi, struct pollfd *pfd,
	    unsigned int max);
	/* One of these is ready. */
	void	(*ho_event)(struct hostif *hi, const struct pollfd *pfd);
};

extern const struct hostif_ops hostif_packet_ops;

/* What frames to the interface wait for. */
enum hostif_tx {
	HOSTIF_TX_IDLE,			/* nothing waits */
	HOSTIF_TX_FULL,			/* space in the ring */
	HOSTIF_TX_AGAIN			/* a while: the call would fail now */
};

struct hostif {
	struct hostif_fds	 fds;
	const struct hostif_ops	*ops;
	void			*data;		/* the kind's */
	struct vale_desc	*port;
	pthread_t		 thread;
	int			 stop_fd;	/* event: hostif_stop() */
	enum hostif_tx		 tx_state;

	bool			 up;
	bool			 gone;		/* for good */
	uint32_t		 mtu;		/* bytes; 0: not yet known */

	uint64_t		 counters[HOSTIF_NCOUNTERS]; /* atomic */
	uint64_t		*live;		/* of hostif_live() */
};

static inline void
hostif_count(struct hostif *hi, enum hostif_counter counter, uint64_t n)
{
	atomic_store_64(&hi->counters[counter],
	    atomic_load_64(&hi->counters[counter]) + n);
}

/* Write a line about the interface to stderr. */
void	hostif_log(const struct hostif *hi, const char *fmt, ...)
	    __attribute__((__format__(__printf__, 2, 3)));

/*
 * Describe the frame at *slot of the port's receive ring, and set *slot to the
 * one after it.  The caller must have set frame->f_iov, to FRAME_MAXIOV
 * elements.  Returns false at the end of the ring.
 */
bool	hostif_peek(struct hostif *hi, uint32_t *slot, struct frame *frame);

/*
 * Whether the interface takes the frame; else counts why not.
 */
bool	hostif_takes(struct hostif *hi, const struct frame *frame);

/*
 * hostif_link.c
 */

/* Ask the kernel for the interface's state.  The result is an event. */
void	hostif_link_ask(struct hostif *hi);

/* The descriptor is ready: note the interface's state. */
void	hostif_link_event(struct hostif *hi);

/*
 * hostif_drop.c: have the host's stack get no frames of the interface, until
 * the descriptor that this returns is closed.  Returns -1 if this kernel has no
 * means for that.  Needs privileges.
 */
int	hostif_drop(const char *ifname, uint32_t index);

/*
 * hostif_packet.c: the geometry of the rings, which hostif_open() sets.  A slot
 * has space for 64 KB with its headers, from the start of a page.
 */
#define	HOSTIF_SLOT_SIZE	69632
#define	HOSTIF_BLOCK_SIZE	1048576
#define	HOSTIF_BLOCK_SLOTS	(HOSTIF_BLOCK_SIZE / HOSTIF_SLOT_SIZE)
#define	HOSTIF_RX_BLOCKS	34
#define	HOSTIF_TX_BLOCKS	17
/* Space before a received frame, for a VLAN tag. */
#define	HOSTIF_RESERVE		16

#endif /* !_HOSTIF_IMPL_H_ */
