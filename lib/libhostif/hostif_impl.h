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

#include <sys/param.h>
#include <sys/queue.h>
#include <sys/systm.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "frame.h"
#include "hostif.h"
#include "hostif_ring.h"
#include "libvale.h"
#include "peer_log.h"

/* The descriptors in hf_fd. */
#define	HOSTIF_FD_LINK		0	/* rtnetlink(7) */
#define	HOSTIF_FD_KIND		1	/* the first one of the kind */
/* The descriptors of an interface that hostif_xdp.c moves frames of. */
#define	HOSTIF_FD_ETHTOOL	HOSTIF_FD_KIND
#define	HOSTIF_FD_PROMISC	2	/* packet(7), for promiscuous mode */
#define	HOSTIF_FD_PROGRAM	3	/* its bpf_link */
#define	HOSTIF_FD_MEMORY	4
#define	HOSTIF_FD_XSK		5	/* AF_XDP, one for each queue */

/* Frames in a batch. */
#define	HOSTIF_BATCH		256

/* How often ho_tick is called, ms. */
#define	HOSTIF_TICK_MS		250

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
	/* Set what to wait for.  Returns how many were set, at most `max'. */
	unsigned int (*ho_poll)(struct hostif *hi, struct pollfd *pfd,
	    unsigned int max);
	/* Handle one of these, which is ready. */
	void	(*ho_event)(struct hostif *hi, const struct pollfd *pfd);
	/*
	 * Do what is due each HOSTIF_TICK_MS, while the interface is not gone.
	 */
	void	(*ho_tick)(struct hostif *hi);
};

extern const struct hostif_ops hostif_packet_ops;
extern const struct hostif_ops hostif_xdp_ops;

/* What frames to the interface wait for. */
enum hostif_tx {
	HOSTIF_TX_IDLE,			/* nothing waits */
	HOSTIF_TX_FULL,			/* space in the ring */
	HOSTIF_TX_AGAIN			/* a while: the call would fail now */
};

/* What is logged once for an interface. */
#define	HOSTIF_SAID_QUEUE	0x01
#define	HOSTIF_SAID_REFUSED	0x02

/* What hostif_link.c was last told and has no other member for. */
struct hostif_link {
	bool		 hl_ether;	/* it has Ethernet's frames */
	uint32_t	 hl_master;	/* the one that it belongs to, or 0 */
	const char	*hl_hint;	/* a line about its kind, or NULL */
	char		 hl_name[HOSTIF_NAME_SIZE];
};

struct hostif {
	TAILQ_ENTRY(hostif)	 entry;		/* hostif_table.c's */
	struct hostif_fds	 fds;
	const struct hostif_ops	*ops;
	void			*data;		/* the kind's */
	struct vale_desc	*port;
	pthread_t		 thread;
	uint64_t		 serial;	/* hostif_serial() */
	int			 stop_fd;	/* event: hostif_stop() */
	enum hostif_tx		 tx_state;
	uint64_t		 tick_ns;	/* the next ho_tick */
	uint32_t		 withdrawn;	/* atomic */

	bool			 up;		/* atomic, for hostif_up() */
	bool			 gone;		/* atomic, for hostif_gone() */
	bool			 told;		/* hostif_gone_now() */
	bool			 outgrown;	/* atomic, for
						   hostif_outgrown() */
	bool			 released;	/* hostif_release() */
	uint32_t		 mtu;		/* bytes; 0: not yet known */
	unsigned int		 said;		/* HOSTIF_SAID_* */
	struct peer_log_source	 log;
	struct hostif_link	 link;

	uint64_t		 counters[HOSTIF_NCOUNTERS]; /* atomic */
	uint64_t		*live;		/* of hostif_live() */
};

static inline void
hostif_count(struct hostif *hi, enum hostif_counter counter, uint64_t n)
{
	atomic_store_64(&hi->counters[counter],
	    atomic_load_64(&hi->counters[counter]) + n);
}

/* Put a part of a frame into the next slot of the port's transmit ring. */
static inline void
hostif_put(struct hostif *hi, const void *p, uint32_t len, uint16_t flags)
{
	struct netmap_ring *ring = hi->port->txring;
	struct netmap_slot *slot = &ring->slot[ring->head];

	slot->ptr = (uintptr_t)p;
	slot->len = len;
	slot->flags = NS_INDIRECT | flags;
	ring->head = ring->cur = nm_ring_next(ring, ring->head);
}

/* Put a frame into at most two.  Returns its bytes. */
static inline uint32_t
hostif_put_frame(struct hostif *hi, const uint8_t *p, uint32_t len)
{
	const uint32_t n = MIN(len, hi->port->common->indirect_max);

	hostif_put(hi, p, n, n < len ? NS_MOREFRAG : 0);
	if (n < len)
		hostif_put(hi, p + n, len - n, 0);
	return (len);
}

/*
 * Have the thread of interface `arg', whose memory has vanished (peer_fault.h),
 * detach the interface.  Any thread, in the handler of SIGBUS.
 */
void	hostif_withdrawn(void *arg);
/* Return whether hostif_withdrawn() was called.  Any thread. */
bool	hostif_is_withdrawn(const struct hostif *hi);

/*
 * End the thread and close the descriptors, but not the port.  The interface is
 * not in the table, and gone from then on.
 */
void	hostif_release(struct hostif *hi);

/*
 * Serve another interface, with the same port and counters.  The interface is
 * not in the table.  After an error it is detached, and the descriptors are the
 * caller's.
 */
int	hostif_renew(struct hostif *hi, const struct hostif_fds *fds,
	    char why[HOSTIF_WHY]);

/*
 * Take the interface out of the table, for its own thread.  Returns false if
 * the interface is not there: another thread stops it.  hostif_table.c.
 */
bool	hostif_forget(const struct hostif *hi);

/* Write a line about the interface to stderr. */
void	hostif_log(struct hostif *hi, const char *fmt, ...)
	    __attribute__((__format__(__printf__, 2, 3)));

/*
 * Describe the frame at *slot of the port's receive ring, and set *slot to the
 * one after it.  The caller must have set frame->f_iov, to FRAME_MAXIOV
 * elements.  Returns false at the end of the ring.
 */
bool	hostif_peek(struct hostif *hi, uint32_t *slot, struct frame *frame);

/* Return whether the interface takes the frame; if not, count why. */
bool	hostif_takes(struct hostif *hi, const struct frame *frame);

/*
 * Count a frame that the kernel was given and has dropped with this errno, and
 * log the first frame of each reason.
 */
void	hostif_lost(struct hostif *hi, int error);

/*
 * hostif_link.c
 */

/* Ask the kernel for the interface's state.  The result is an event. */
void	hostif_link_ask(struct hostif *hi);

/* Note the interface's state: the descriptor is ready. */
void	hostif_link_event(struct hostif *hi);

/*
 * hostif_open.c: for the kinds
 */

/* Close a descriptor, if it is not -1, and keep errno.  Returns -1. */
static inline int
hostif_fd_close(int fd)
{
	const int error = errno;

	if (fd != -1)
		close(fd);
	errno = error;
	return (-1);
}

/* Add a descriptor. */
void	hostif_fds_add(struct hostif_fds *fds, int fd);

/*
 * Set promiscuous mode until the packet socket is closed.  Returns 0, or -1
 * with errno.
 */
int	hostif_promiscuous(int s, uint32_t index);

/*
 * hostif_why.c
 */

/*
 * Write what step failed with errno, and what capability it takes, if that is
 * why.  Returns -1.
 */
int	hostif_fail_step(char why[HOSTIF_WHY], const char *ifname,
	    const char *step);

/* Write why a function fails and set errno to `error'.  Returns -1. */
int	hostif_fail(char why[HOSTIF_WHY], int error, const char *fmt, ...)
	    __attribute__((__format__(__printf__, 3, 4)));

/*
 * Open interface fds->hf_name, whose index is known; `s' is a socket for
 * ioctl(2).  After an error the caller closes the descriptors.
 * hostif_open_xdp.c.
 */
int	hostif_open_xdp(struct hostif_fds *fds, int s, char why[HOSTIF_WHY]);

/* hostif_drop.c: bpf(2).  Returns -1 with errno on an error. */
union bpf_attr;
int	hostif_bpf(int command, union bpf_attr *attr);

/*
 * Have the host's stack get no frames of the interface, until the descriptor
 * that this returns is closed.  Returns -1 if this kernel has no means for
 * that.  Needs privileges.  hostif_drop.c.
 */
int	hostif_drop(const char *ifname, uint32_t index);

/*
 * hostif_xdp.c: the geometry of the rings, which hostif_open_xdp() sets.  A
 * chunk begins with 256 bytes that are the kernel's.
 */
#define	HOSTIF_XDP_QUEUES	(HOSTIF_FDS_MAX - HOSTIF_FD_XSK)
#define	HOSTIF_XDP_SLOTS	2048U	/* of each ring; a power of two */
#define	HOSTIF_XDP_CHUNK	4096U
#define	HOSTIF_XDP_MTU		((int)HOSTIF_XDP_CHUNK - 256 -		\
				    HOSTIF_ETHER - HOSTIF_TAG)
/* Bytes: chunks to receive for each queue, and chunks to transmit. */
#define	HOSTIF_XDP_MEMORY(queues)					\
	((size_t)((queues) + 1) * HOSTIF_XDP_SLOTS * HOSTIF_XDP_CHUNK)

#endif /* !_HOSTIF_IMPL_H_ */
