/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Attached interfaces: a network interface of the host as a port of a switch.
 *
 *	vale0:eth0  <---  vale_txsync  <---  receive ring   <---  eth0
 *	(a port)    --->  vale_rxsync  --->  transmit ring  --->
 *
 * One thread for each moves frames in batches between the port and rings that
 * it shares with the kernel.  It takes no system call to receive while frames
 * are pending, and one to transmit a batch.
 *
 * An interface is attached in two steps.  hostif_open() needs privileges, and
 * its result is plain data and descriptors, which may be sent to another
 * process.  hostif_start() needs none; valed calls it in its sandbox.  Whatever
 * was changed on the interface ends when the last of these descriptors is
 * closed, in whatever way: promiscuous mode, and that the host's stack gets no
 * frames.
 *
 *	hostif_open.c	opens the descriptors
 *	hostif.c	the thread, its port, its counters
 *	hostif_link.c	whether the interface is up, and its MTU
 *	hostif_packet.c	the rings of packet(7)
 *	hostif_ring.c	opens one of them again
 *	hostif_open_xdp.c, hostif_xdp.c	those of AF_XDP
 *	hostif_ethtool.c	what these depend on, and may change
 *	hostif_drop.c	keeps the frames from the host's stack
 *	hostif_table.c	the attached interfaces of this process
 *	hostif_why.c	lines about errors
 *
 * A function that can fail returns 0, or -1 with errno; hostif_start() returns
 * NULL in place of -1.  If the function has an argument `why', it then also
 * writes one line, without a newline, that names the interface or the port.
 * Functions without these words cannot fail.
 */

#ifndef _HOSTIF_H_
#define	_HOSTIF_H_

#include <sys/types.h>
#include <sys/counter_table.h>

#include <stdbool.h>
#include <stdint.h>

/* Bytes of an interface's name with its NUL: Linux's IFNAMSIZ. */
#define	HOSTIF_NAME_SIZE	16
#define	HOSTIF_FDS_MAX		17
/* Attached interfaces of a process. */
#define	HOSTIF_MAX		64
/* Bytes of a line about an interface, with its NUL. */
#define	HOSTIF_WHY		256

enum hostif_kind {
	HOSTIF_AUTO,			/* HOSTIF_PACKET */
	HOSTIF_PACKET,			/* packet(7), any interface */
	HOSTIF_XDP,			/* AF_XDP, whole frames on the wire */
	HOSTIF_NKINDS
};

/* hf_flags */
#define	HOSTIF_HOST_GETS	0x01	/* the host's stack still gets the
					   frames, because this kernel has no
					   means to prevent it that ends with a
					   descriptor */

/* An open interface. */
struct hostif_fds {
	char		hf_name[HOSTIF_NAME_SIZE];
	uint32_t	hf_kind;	/* enum hostif_kind, not HOSTIF_AUTO */
	uint32_t	hf_index;	/* the interface's */
	uint32_t	hf_flags;	/* HOSTIF_* */
	uint32_t	hf_family;	/* of ethtool's messages, or 0 */
	uint32_t	hf_nfds;
	int		hf_fd[HOSTIF_FDS_MAX];
};

/* "rx" is from the interface to the switch, "tx" to the interface. */
#define	HOSTIF_COUNTERS(X)						\
	X(HOSTIF_C_RX_FRAME, "rx_frames", "frames taken from the interface") \
	X(HOSTIF_C_RX_BYTE, "rx_bytes", "bytes of these frames")	\
	X(HOSTIF_C_RX_BATCH, "rx_batches", "batches of these frames")	\
	X(HOSTIF_C_RX_FULL, "rx_drop_full",				\
	    "frames dropped by the kernel: ring full, or no header for them", \
	    DROP)							\
	X(HOSTIF_C_RX_LONG, "rx_drop_long",				\
	    "frames dropped: longer than a slot of the ring", DROP)	\
	X(HOSTIF_C_RX_BAD, "rx_drop_bad",				\
	    "frames dropped: too short, or outside their slot", DROP)	\
	X(HOSTIF_C_RX_OFFLOAD, "rx_drop_offload",			\
	    "frames dropped: offloads that cannot be completed", DROP)	\
	X(HOSTIF_C_RX_UNTAGGED, "rx_drop_untagged",			\
	    "frames dropped: the interface takes VLAN tags out", DROP)	\
	X(HOSTIF_C_RX_CUT, "rx_cut",					\
	    "packets in tunnels that were cut")				\
	X(HOSTIF_C_RX_SEGMENT, "rx_segments",				\
	    "segments of these packets")				\
	X(HOSTIF_C_RX_STOP, "rx_stops",					\
	    "times the receive ring had stopped and was opened again")	\
	X(HOSTIF_C_TX_FRAME, "tx_frames", "frames given to the interface") \
	X(HOSTIF_C_TX_BYTE, "tx_bytes", "bytes of these frames")	\
	X(HOSTIF_C_TX_BATCH, "tx_batches", "batches of these frames")	\
	X(HOSTIF_C_TX_CALL, "tx_calls", "system calls to transmit")	\
	X(HOSTIF_C_TX_ERROR, "tx_errors", "those that failed")		\
	X(HOSTIF_C_TX_WAIT, "tx_waits",					\
	    "times frames waited because the ring was full")		\
	X(HOSTIF_C_TX_DOWN, "tx_drop_down",				\
	    "frames dropped: interface down or gone", DROP)		\
	X(HOSTIF_C_TX_MTU, "tx_drop_mtu",				\
	    "frames dropped: longer than the MTU permits", DROP)	\
	X(HOSTIF_C_TX_QUEUE, "tx_drop_queue",				\
	    "frames dropped by the interface's queue or a filter", DROP) \
	X(HOSTIF_C_TX_REFUSED, "tx_drop_refused",			\
	    "frames dropped: the kernel cannot send them", DROP)	\
	X(HOSTIF_C_TX_NOROOM, "tx_drop_noroom",				\
	    "segments dropped: ring full", DROP)			\
	X(HOSTIF_C_TX_BAD, "tx_drop_bad", "frames dropped: bad headers", DROP) \
	X(HOSTIF_C_POLL, "polls", "times the thread looked for events")	\
	X(HOSTIF_C_LINK, "link_changes",				\
	    "times the interface went down, came up, or changed its MTU")

enum hostif_counter {
	COUNTER_IDS(HOSTIF_COUNTERS)
	HOSTIF_NCOUNTERS
};
extern const struct counter_row hostif_counter_table[HOSTIF_NCOUNTERS];

struct hostif;

/* Set *kind to the kind named `name', "packet" or "xdp".  Any thread. */
int	hostif_kind(const char *name, enum hostif_kind *kind);

/*
 * Open interface `ifname' of this network namespace and set *fds, in which
 * nothing is open after an error.  Requires CAP_NET_RAW, and CAP_NET_ADMIN and
 * CAP_BPF to keep frames from the host's stack.  Any thread.
 */
int	hostif_open(const char *ifname, enum hostif_kind kind,
	    struct hostif_fds *fds, char why[HOSTIF_WHY]);

/*
 * Write what the administrator should know of an open interface: the host's
 * stack still gets its frames, or the interface has an address at which the
 * host is not reached while the interface is attached.  Returns false, and
 * writes nothing, if neither is so.  In the interface's network namespace,
 * outside of the sandbox; any thread.
 */
bool	hostif_warning(const struct hostif_fds *fds, char line[HOSTIF_WHY]);

/*
 * Prepare the descriptors of an interface that another process has served,
 * which has ended, for hostif_start(): empty the rings.  Takes no privileges,
 * and waits for frames in transmission, and for the other process's memory to
 * go, until `end_ms' at most, a time of vale_now_ms().  errno is EOPNOTSUPP if
 * the interface is not one of packet(7); the descriptors stay the caller's.  Any
 * thread, before the sandbox.
 */
int	hostif_again(const struct hostif_fds *fds, uint64_t end_ms);

/* Close the descriptors.  Any thread; keeps errno. */
void	hostif_close(struct hostif_fds *fds);

/*
 * Open port `port_name' ("vale0:eth0") and serve the interface in a thread of
 * its own.  The descriptors then belong to the interface, and *fds is not used
 * any more; after an error they are the caller's.  Any thread.
 */
struct hostif *hostif_start(const char *port_name, const struct hostif_fds *fds,
	    char why[HOSTIF_WHY]);

/*
 * Detach the interface: wait for its thread, close the port and the
 * descriptors, free it.  Any thread; no other call with it may be in progress
 * or follow.
 */
void	hostif_stop(struct hostif *hi);

/*
 * Attach an interface as hostif_start() does, and put it into this process's
 * table, which has HOSTIF_MAX places (ENOSPC).  An interface that is gone gives
 * its place to this one, and the port stays open; errno is EEXIST if the port
 * has an interface that is there.  Any thread.
 */
int	hostif_attach(const char *port_name, const struct hostif_fds *fds,
	    char why[HOSTIF_WHY]);

/*
 * Detach the interface whose port has this name.  errno is ENXIO if there is
 * none.  Any thread; waits for the interface's.
 */
int	hostif_detach(const char *port_name);

/*
 * Close the interface at this port, if there is one, but not the port: the
 * interface is gone then, and another process may open it.  Any thread; waits
 * for the interface's.
 */
void	hostif_let_go(const char *port_name);

/*
 * Call fn(hi, arg) for each attached interface.  fn must not attach, detach or
 * let go.  Any thread.
 */
void	hostif_each(void (*fn)(struct hostif *hi, void *arg), void *arg);

/*
 * Return a number that no other interface of this process has had, and the
 * descriptors, which stay the interface's.  Valid until hostif_stop().
 */
uint64_t hostif_serial(const struct hostif *hi);
const struct hostif_fds *hostif_fds(const struct hostif *hi);

/*
 * Return the name of the port, and of the interface.  Valid until
 * hostif_stop().
 */
const char *hostif_port_name(const struct hostif *hi);
const char *hostif_name(const struct hostif *hi);

/* Return whether the interface is there, up, and has a carrier.  Any thread. */
bool	hostif_up(const struct hostif *hi);

/*
 * Return whether the interface was removed, or moved to another network
 * namespace.  It does not come back; another one may get its name.  Any thread.
 */
bool	hostif_gone(const struct hostif *hi);

/* Return true once after the interface is gone.  hostif_each()'s thread. */
bool	hostif_gone_now(struct hostif *hi);

/*
 * Return whether the interface has more receive queues than when it was opened,
 * so that frames are lost, and hostif_open() takes as many.  Any thread.
 */
bool	hostif_outgrown(const struct hostif *hi);

/*
 * Return a pointer that belongs to the caller of hostif_each(): NULL at first,
 * and passed to free() by hostif_stop().  One thread.
 */
uint64_t **hostif_live(struct hostif *hi);

/* Return a counter, which was 0 at hostif_start().  Any thread. */
uint64_t hostif_counter(const struct hostif *hi, enum hostif_counter counter);

#endif /* !_HOSTIF_H_ */
