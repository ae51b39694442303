/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What the files of the transmit ring share: e82545_tx.c, e82545_tx_collect.c,
 * e82545_tx_send.c, e82545_tx_tso.c.  All of it needs tx_mtx.
 */

#ifndef _E82545_TX_IMPL_H_
#define	_E82545_TX_IMPL_H_

#include <sys/param.h>

#include <errno.h>
#include <string.h>

#include "e82545_impl.h"
#include "e82545_offload.h"
#include "e82545_probes.h"
#include "e82545_stat.h"

/* Descriptors one packet may take. */
#define	TX_PACKET_DESCS		256
/* Descriptors after which a batch takes no further packet. */
#define	TX_BATCH_DESCS		1024
/* Pages, not contiguous, of buffers after which it takes no further packet. */
#define	TX_BATCH_PIECES		1024
/* The longest packet, header and PAYLEN, bytes. */
#define	TX_PACKET_MAX		(255 + E82545_TXD_LEN)
/*
 * Fragments of a packet, each in one page: of a buffer, the first and the last
 * may be shorter than that.
 */
#define	TX_PACKET_FRAGS		(2 * TX_PACKET_DESCS +			\
				    howmany(TX_PACKET_MAX, E82545_PIECE))

/*
 * A header slot, bytes: a VLAN tag, then what the farthest checksum (at 255,
 * two bytes) or HDRLEN (255) can reach.
 */
#define	TX_SLOT			264
_Static_assert(E82545_VLAN_LEN + 255 + 2 <= TX_SLOT, "a slot is too short");

/* What the ring's state is besides TDH. */
struct tx_state {
	struct e82545_txctx	ctx[2];		/* [1]: TSO */
	uint32_t		sent;		/* payload bytes sent of the
						   TSO packet at the head */
	bool			skipping;	/* up to the next EOP */
};

struct e82545_txq {
	struct tx_state		now;		/* at a batch's head */
	/* How a batch ends: e82545_salvage.c. */
	struct tx_state		settled;	/* at TDH */
	uint32_t		end;		/* what TDH becomes, or has
						   become; TX_END_NONE */
	uint32_t		nreports;	/* to be written back, if TDH
						   is not `end'; or
						   E82545_FIRST */
	unsigned int		npieces;	/* mapped since a batch ended
						   because of them */
	/* For one batch. */
	uint16_t		report[TX_BATCH_DESCS + TX_PACKET_DESCS];
	bool			delay[TX_BATCH_DESCS + TX_PACKET_DESCS];
	uint8_t			pool[E82545_TX_FRAMES][TX_SLOT];
	/* For one packet. */
	struct iovec		frags[TX_PACKET_FRAGS];
	struct iovec		uncut[1 + TX_PACKET_FRAGS];	/* with TSO */
};

#define	TX_END_NONE	UINT32_MAX	/* TDH was written or reset */

struct tx_batch {
	struct e82545_txq *q;		/* the queue, */
	uint32_t	regs;		/* and E82574_QUEUE() of it */
	uint64_t	(*ring)[2];	/* descriptors */
	uint32_t	size;		/* of them */
	uint32_t	start, head, tail;	/* indices */
	unsigned int	ndescs;		/* taken */
	unsigned int	nreports;	/* of them to write back */
	unsigned int	nframes;	/* made, at most E82545_TX_FRAMES */
	uint16_t	vet;
	bool		vme, psp, link, loopback;
	bool		to_end;		/* TDT is behind the last descriptor */
	bool		queued;		/* the port has frames to flush */
	bool		looped;		/* the receive path has frames */
	uint64_t	stamp_ns;	/* when a packet was sent that gets a
					   time stamp; 0: none was */
	/* tx_single_desc()'s. */
	uint32_t	single_max;	/* bytes of a frame */
	struct iovec	iov;
	struct frame	frame;		/* one fragment: iov */
	struct e82545_tally tally;
	unsigned int	ntso, ntsofail;
	uint64_t	counts[E82545_NCOUNTERS];
};

#define	TX_NO_ERROR	E82545_NCOUNTERS

struct tx_packet {
	unsigned int	ndescs;		/* descriptors */
	unsigned int	nfrags;	/* of txq->frags */
	uint32_t	len;		/* bytes */
	bool		begun;		/* a descriptor with data was seen */
	bool		data;		/* data descriptors, not legacy */
	bool		tso;
	bool		stamp;		/* E82574_TXD_STAMP */
	uint8_t		popts;		/* E82545_TXD_POPTS_* */
	uint32_t	flags;		/* E82545_TXD_*: VLE, IFCS, IC */
	uint16_t	tag;		/* VLAN */
	bool		late;		/* others sum TCP or UDP */
	struct e82545_sum_where legacy;	/* with IC */
	enum e82545_counter error;	/* why it is invalid, or TX_NO_ERROR */
};

/* Read a descriptor, once: guest memory may change at any time. */
static inline union e82545_txd
tx_load(const uint64_t *ring)
{
	union e82545_txd txd;
	uint64_t d[2];

	d[0] = atomic_load_64(&ring[0]);
	d[1] = atomic_load_64(&ring[1]);
	memcpy(&txd, d, sizeof(txd));
	return (txd);
}

/* Write a descriptor back. */
static inline void
tx_report(uint64_t (*ring)[2], uint32_t i)
{
	atomic_store_rel_8((uint8_t *)ring[i] +
	    offsetof(struct e82545_txd_legacy, status), E82545_TXD_DD);
}

/* Return the ring's size; `regs' is E82574_QUEUE() of the queue, also below. */
static inline uint32_t
tx_ring_size(const struct e82545 *dev, uint32_t regs)
{
	return ((e82545_reg(dev, E82545_TDLEN + regs) & E82545_DLEN_MASK) /
	    sizeof(union e82545_txd));
}

/* Map the ring, of `size' descriptors; NULL if its address is invalid. */
static inline uint64_t (*
tx_ring_map(const struct e82545 *dev, uint32_t regs, uint32_t size))[2]
{
	uint64_t base;
	void *ring;

	base = (uint64_t)e82545_reg(dev, E82545_TDBAH + regs) << 32 |
	    (e82545_reg(dev, E82545_TDBAL + regs) & E82545_DBAL_MASK);
	ring = e82545_map(dev, base, size * sizeof(union e82545_txd));
	return ((uintptr_t)ring % sizeof(uint64_t) != 0 ? NULL : ring);
}

/* Note that the packet at the head is invalid. */
static inline void
tx_bad(struct e82545 *dev, struct tx_batch *b, enum e82545_counter why)
{
	b->counts[why]++;
	e82545_probe_bad(dev, why, b->head);
}

/* Drop a frame of it. */
static inline void
tx_drop(struct e82545 *dev, struct tx_batch *b, enum e82545_counter why)
{
	b->counts[why]++;
	e82545_probe_tx_drop(dev, why, b->head);
}

/* Drop it because it is invalid. */
static inline void
tx_bad_drop(struct e82545 *dev, struct tx_batch *b, enum e82545_counter why)
{
	tx_bad(dev, b, why);
	e82545_probe_tx_drop(dev, why, b->head);
}

/* Account for a frame of `len' bytes; frame_port_send() returned `error'. */
static inline void
tx_sent(struct e82545 *dev, struct tx_batch *b, size_t len, int error)
{
	b->queued = true;
	if (error == ENOBUFS) {
		tx_drop(dev, b, E82545_C_TX_NOROOM);
		return;
	}
	b->counts[E82545_C_TX_FRAME]++;
	b->counts[E82545_C_TX_BYTE] += len;
	/* To the guest it was sent, and lost on the wire. */
	if (error == EMSGSIZE)
		e82545_probe_tx_overmtu(dev, b->head);
}

static inline size_t
tx_taglen(const struct tx_packet *p)
{
	return ((p->flags & E82545_TXD_VLE) != 0 ? E82545_VLAN_LEN : 0);
}

static inline uint8_t *
tx_slot(const struct tx_batch *b)
{
	return (b->q->pool[b->nframes] + E82545_VLAN_LEN);
}

/*
 * Return how many bytes a frame of `len' lacks, if the guest wants them added.
 */
static inline size_t
tx_padding(const struct tx_batch *b, size_t len)
{
	return (b->psp && len < E82545_ETH_MIN ? E82545_ETH_MIN - len : 0);
}

/*
 * Return whether the network takes what the model need not sum or cut itself.
 */
static inline bool
tx_offloads(const struct e82545 *dev, const struct tx_batch *b)
{
	return (dev->port->fp_offloads && !b->loopback);
}

/*
 * e82545_tx_collect.c
 */

/*
 * Collect the descriptors of a packet from b->head on, or a context
 * descriptor before one.  Returns false if EOP is not posted yet.
 */
bool	e82545_tx_collect(struct e82545 *dev, struct tx_batch *b,
	    struct tx_packet *p);

/*
 * e82545_tx_send.c
 */

/*
 * Send a packet, or drop it if it is invalid.  Returns false if the batch is
 * full before all of its frames are sent: the next batch must collect it again.
 */
bool	e82545_tx_send(struct e82545 *dev, struct tx_batch *b,
	    struct tx_packet *p);
/* Pass a frame to the network, or to the receive ring with loopback on. */
void	e82545_tx_out(struct e82545 *dev, struct tx_batch *b,
	    const struct frame *frame);

/*
 * e82545_tx_tso.c
 */

/*
 * Send a packet uncut, or its remaining segments.  Returns false if the batch
 * is full before the last one.
 */
bool	e82545_tx_tso(struct e82545 *dev, struct tx_batch *b,
	    const struct tx_packet *p);

#endif /* !_E82545_TX_IMPL_H_ */
