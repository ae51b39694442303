/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A VALE switch in user space: Ethernet switches whose ports are netmap rings
 * in memory.  lib/libvale is its user; others use libvale.h and vale_ctl.h.
 *
 * Ports are named "vale0:vm1"; what stands before the colon names the switch,
 * which is there as long as it has ports.  Errors are errno values.
 *
 * How it works is told where it is done: forwarding in vale_forward.c and
 * vale_deliver.c, the receiving end of a port in vale_rxq.c, memory in
 * vale_region.c, coming and going of ports in vale_switch.c, learning in
 * vale_fdb.c.
 */

#ifndef _VALE_H_
#define	_VALE_H_

#include <dev/netmap/vale_fdb.h>

#include <stdbool.h>
#include <stdint.h>

#include "vale_name.h"

/* In the flags of a receive ring, for its user to set: libvale.h. */
#define	VALE_RING_POLLED	0x80000000

#define	VALE_SLOTS_MIN		2
#define	VALE_SLOTS_MAX		16384
#define	VALE_SLOTS_DEFAULT	1024

/* Frames shorter or longer are dropped: an Ethernet header, 64 KB. */
#define	VALE_FRAME_MIN		14
#define	VALE_FRAME_MAX		65536

/*
 * Counters of a port, from its creation.  "tx" is what the port sends into the
 * switch, "rx" what the switch puts into its ring or its sink takes.  A frame
 * is lost in one place and counted there, so that
 *
 *	tx_frames = unicast + tx_flooded + all of tx_drop_*
 *	tx_copies = unicast + tx_flooded * (ports - 1)
 *
 * and the sum of tx_copies over all ports is that of rx_frames and
 * rx_drop_full, when no port came or went and nobody is sending.  At each port
 *
 *	rx_frames = rx_copies + rx_direct
 *
 * X(identifier, name, what is counted)
 */
#define	VALE_COUNTERS(X)						\
	X(TX_SYNC,	"tx_syncs",	"transmit syncs")		\
	X(TX_BATCH,	"tx_batches",	"batches taken from the port")	\
	X(TX_FRAME,	"tx_frames",	"frames taken from the port")	\
	X(TX_BYTE,	"tx_bytes",	"bytes of those that were well formed")\
	X(TX_FLOOD,	"tx_flooded",	"frames sent to all other ports") \
	X(TX_COPY,	"tx_copies",	"frames times destinations")	\
	X(LEARNED,	"learned",	"addresses learned on the port") \
	X(MOVED,	"moved",	"addresses that moved to the port") \
	X(TX_BAD_RING,	"tx_bad_ring",	"transmit rings with a bad head") \
	X(TX_RUNT,	"tx_drop_runt",	"frames without a whole header") \
	X(TX_OVERSIZE,	"tx_drop_oversize", "frames of more than 64 KB") \
	X(TX_BAD_BUF,	"tx_drop_buf",	"frames in no buffer of the port") \
	X(TX_BAD_LEN,	"tx_drop_len",	"slots longer than a buffer")	\
	X(TX_FRAGS,	"tx_drop_frags", "frames of too many slots")	\
	X(TX_CUT,	"tx_drop_cut",	"frames whose last slot is missing") \
	X(TX_NODEST,	"tx_drop_nodest", "frames with no port to go to") \
	X(TX_SELF,	"tx_drop_self",	"frames that would go back to it") \
	X(TX_LIMIT,	"tx_drop_limit", "frames of addresses over the limit") \
	X(RX_SYNC,	"rx_syncs",	"receive syncs")		\
	X(RX_BATCH,	"rx_batches",	"batches put into the ring")	\
	X(RX_FRAME,	"rx_frames",	"frames that the port got")	\
	X(RX_BYTE,	"rx_bytes",	"bytes of those")		\
	X(RX_COPY,	"rx_copies",	"frames copied into the ring")	\
	X(RX_DIRECT,	"rx_direct",	"frames the sink took, not copied") \
	X(RX_WAKE,	"rx_wakeups",	"times a sleeping receiver was woken") \
	X(RX_BAD_RING,	"rx_bad_ring",	"receive rings with bad positions") \
	X(RX_BAD_BUF,	"rx_bad_buf",	"receive slots with a bad buffer") \
	X(RX_FULL,	"rx_drop_full",	"frames that found the ring full")

enum vale_counter {
#define	VALE_COUNTER_ENUM(id, name, what)	VALE_C_##id,
	VALE_COUNTERS(VALE_COUNTER_ENUM)
#undef VALE_COUNTER_ENUM
	VALE_NCOUNTERS
};

/* The name of a counter, as in the list above. */
const char *vale_counter_name(enum vale_counter counter);

struct iovec;
struct netmap_if;
struct vale_port;			/* opaque */

/*
 * Frames on their way to one port, offered to its sink, in order: opaque, and
 * valid as long as the call that got it.
 *
 * vale_offer_peek() shows the first frame that has not been stepped over: sets
 * up to `maxiov' pieces, some of which may be empty, and returns how many; 0
 * when there are no more frames, or this one has more pieces.  They lie in the
 * sender's memory, which the sender may be writing to, and are to be read only.
 * vale_offer_next() steps over a frame that was shown: it has been taken.
 */
struct vale_offer;
int	vale_offer_peek(struct vale_offer *offer, struct iovec *iov,
	    int maxiov);
void	vale_offer_next(struct vale_offer *offer);

/* A port as vale_walk() shows it. */
struct vale_port_info {
	char		pi_name[VALE_NAME_SIZE];	/* "vale0:vm1" */
	uint8_t		pi_index;	/* 0 to 253, as in vale_fdb_entry */
	uint32_t	pi_tx_slots;
	uint32_t	pi_rx_slots;
	uint64_t	pi_counter[VALE_NCOUNTERS];
};

/*
 * Make port `name', and its switch if it is the first.  The numbers of slots
 * are 0 for the default, or VALE_SLOTS_MIN to VALE_SLOTS_MAX.
 * EINVAL, EBUSY when it is there already, ENOSPC when the switch is full,
 * ENOMEM, or what eventfd(2) and getentropy(3) say.
 */
int	vale_port_create(const char *name, uint32_t tx_slots,
	    uint32_t rx_slots, struct vale_port **portp);

/*
 * Remove the port, and its switch if it was the last.  Waits for batches
 * under way.  No other call with this port may be in progress or follow.
 */
void	vale_port_destroy(struct vale_port *port);

/* Where its rings are; valid as long as the port. */
struct netmap_if *vale_port_nifp(const struct vale_port *port);

/*
 * Descriptor for poll(2), as vale_desc's fd; made to be waited on and not to
 * be read.
 */
int	vale_port_fd(const struct vale_port *port);

/*
 * Forward the slots before the transmit ring's head.  On return all are
 * consumed.  EINVAL where head is outside the ring, which is then put back to
 * where it was, and its frames forgotten.  One thread at a time.
 */
int	vale_port_txsync(struct vale_port *port);

/*
 * Take back the slots before the receive ring's head and show new frames.
 * With none beyond cur, arms the descriptor.  EINVAL where head or cur are not
 * the user's; they are then put back to where they were.
 * One thread at a time, which may be another than txsync's.
 */
int	vale_port_rxsync(struct vale_port *port);

/*
 * Have frames for the port offered to sink(arg, offer) before they are copied
 * into its ring; those that it leaves go there.  NULL: no longer.  They are
 * offered only while the ring is empty and its user has given back all of its
 * slots, so that frames of one sender keep their order: whoever takes some from
 * the ring has to be done with them before the vale_port_rxsync() that gives
 * them back.  Nor are they while the ring's user polls it (VALE_RING_POLLED).
 *
 * The sink is called by whatever thread sends, by several at a time where
 * there are several senders, and holds up that sender, and changes to the
 * switch.  It must not call the switch but for the two functions above.
 *
 * Waits for batches under way: on return no call of the former sink is in
 * progress.  Any thread.
 */
void	vale_port_sink(struct vale_port *port,
	    void (*sink)(void *arg, struct vale_offer *offer), void *arg);

/*
 * Show all ports of all switches to `show', until it returns non-zero;
 * returns that or 0.  `show' must not call vale_port_create(),
 * vale_port_destroy() or the functions below.
 */
int	vale_walk(int (*show)(const struct vale_port_info *, void *),
	    void *arg);

/*
 * Show the addresses switch "vale0" has learned, in no order; as vale_walk().
 * Returns -1 when there is no such switch.
 */
int	vale_walk_fdb(const char *switch_name,
	    int (*show)(const struct vale_fdb_entry *, void *), void *arg);

/* How long "vale0" remembers: see vale_fdb_set_ageing().  False: no switch. */
bool	vale_ageing(const char *switch_name, uint32_t seconds);

/*
 * How many addresses port "vale0:vm1" may have: see vale_fdb_set_limit().
 * Frames from others are dropped.  False: no such port.
 */
bool	vale_limit(const char *name, unsigned int limit);

#endif /* !_VALE_H_ */
