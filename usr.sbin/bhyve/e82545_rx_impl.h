/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What the files of the receive ring share: e82545_rx.c, e82545_rx_copy.c,
 * e82545_rx_frame.c, e82545_rx_stall.c.  All of it needs rx_mtx.
 */

#ifndef _E82545_RX_IMPL_H_
#define	_E82545_RX_IMPL_H_

#include <sys/param.h>
#include <sys/endian.h>

#include "e82545_filter.h"
#include "e82545_impl.h"
#include "e82545_offload.h"
#include "e82545_probes.h"
#include "e82545_salvage.h"
#include "e82545_stat.h"
#include "frame_cut.h"

#define	RX_BATCH	256		/* frames, dropped ones too */
/* The longest frame that is not cut, bytes. */
#define	RX_UNCUT_MAX	65536
/*
 * Descriptors after which a batch takes no frame of several descriptors, and
 * those of the longest frame: buffers have at least 256 bytes.
 */
#define	RX_BATCH_DESCS	1024
#define	RX_FRAME_DESCS	howmany(RX_UNCUT_MAX + E82545_ETH_FCS, 256)
_Static_assert(RX_FRAME_DESCS <= RX_BATCH_DESCS, "no frame would fit");
/*
 * Pieces of the longest frame: of a buffer, the first and the last may be less
 * than a page.
 */
#define	RX_FRAME_PIECES	(2 * RX_FRAME_DESCS + RX_UNCUT_MAX / E82545_PIECE)
/* So many suffice for a frame of E82545_FRAME_MAX in four buffers, too. */
_Static_assert(2 * E82574_SPLIT_BUFFERS * howmany(E82545_FRAME_MAX +
    E82545_ETH_FCS, 256) + E82545_FRAME_MAX / E82545_PIECE <= RX_FRAME_PIECES,
    "a split frame would not fit");

/* Bytes of a frame that RSS looks at. */
#define	RSS_HEAD	256

/* The smallest and largest buffers, bytes: section 13.4.22. */
#define	RX_BUFSIZE_MIN	256
#define	RX_BUFSIZE_MAX	16384

/* Frames with an FCS: RCTL.LPE, section 13.4.22. */
#define	RX_WIRE_MAX	1522

struct e82545_rxq {
	/* How a batch ends: e82545_salvage.c. */
	uint32_t	 ndone;		/* of `done' to be written back; or
					   E82545_FIRST */
	uint32_t	 end;		/* what RDH becomes, or has become, if
					   none is; RX_END_NONE */

	/* For one batch: the upper halves of its descriptors. */
	uint64_t	 done[RX_BATCH_DESCS + RX_BATCH];
	/* With RSS the lower halves of extended ones: e82574_rss.c. */
	bool		 hashed;
	uint64_t	 lower[RX_BATCH_DESCS + RX_BATCH];
	/* Of those with four buffers: as e82574_rx_lens() takes it. */
	uint16_t	 split[RX_BATCH_DESCS + RX_BATCH];

	/* Of `done', the one whose frame has a time stamp, from 1; 0: none. */
	uint32_t	 stamped;

	/* What goes to buffers outside guest memory. */
	uint8_t		 dump[RX_BUFSIZE_MAX];
};

#define	RX_END_NONE	UINT32_MAX	/* RDH was written or reset */

enum rx_verdict {
	RX_TAKEN,		/* delivered or dropped */
	RX_NODESC,		/* the guest has posted too few descriptors */
	RX_FULL			/* the batch has no space for more of them */
};

struct rx_batch {
	struct e82545_rxq *q;		/* the queue, */
	uint32_t	regs;		/* and E82574_QUEUE() of it */
	uint64_t	(*ring)[2];	/* descriptors; NULL: none */
	uint32_t	size;		/* of them */
	uint32_t	start, head;	/* indices */
	uint32_t	posted;		/* descriptors the guest has posted */
	uint32_t	ndone;		/* descriptors used */
	uint32_t	need;		/* descriptors of the frame that did not
					   fit */
	uint32_t	rctl, rxcsum;
	uint32_t	bufsize;	/* bytes */
	uint32_t	payload;	/* of these, in buffers behind the first
					   one; 0: packets are not split */
	uint8_t		*vnet;		/* the header ring; NULL: none */
	uint64_t	own;		/* the guest's: e82545_filter_own() */
	size_t		single_max;	/* bytes of a frame that
					   rx_single_buffer() may take;
					   0: none */
	size_t		fcs;		/* bytes of FCS that the guest gets */
	uint16_t	vet;
	bool		vme, on, link, loopback;
	bool		endless;	/* RDT is never reached */
	bool		stamp;		/* a frame may get a time stamp */
	bool		direct;		/* the frames are another adapter's */
	bool		looped;		/* frames are of the loopback queue */
	bool		end;		/* no more frames are pending */
	struct e82545_tally tally;	/* frames delivered */
	uint64_t	padding;	/* bytes of them */
	unsigned int	cut;		/* frames cut, the last segment taken */
	unsigned int	segments;	/* frames delivered that are segments */
	unsigned int	uncut;		/* frames delivered as they are */
	unsigned int	lost;		/* frames seen and not delivered */
	uint64_t	lost_bytes;	/* theirs, with FCS */
	uint64_t	counts[E82545_NCOUNTERS];
};

/* What a batch counts: all that is zero at its start. */
#define	RX_COUNTS	(E82545_C_RX_BAD_ADDR - E82545_C_RX_FRAME + 1)

/* A frame being received. */
struct rx_frame {
	struct frame	 f;
	size_t		 wire;		/* bytes, padded, with FCS */
	bool		 tagged, strip;	/* has a VLAN tag; it is removed */
	bool		 inexact;	/* PIF */
	size_t		 header;	/* bytes of headers that the guest gets
					   in a buffer of their own, or 0 */
	uint8_t		 head[E82545_RX_HEAD]; /* first bytes, then zeros */
};

/*
 * Return whether descriptors are written back in the other format, and whether
 * these have four buffers: e82574_rx.c.  An 82545EM has no such register and
 * bits: it reads as 0.
 */
static inline bool
rx_extended(const struct e82545 *dev)
{
	return ((e82545_reg(dev, E82574_RFCTL) & E82574_RFCTL_EXTEN) != 0);
}

static inline bool
rx_split(const struct e82545 *dev)
{
	return (rx_extended(dev) && (e82545_reg(dev, E82545_RCTL) &
	    E82574_RCTL_DTYP) == E82574_RCTL_DTYP_SPLIT);
}

/*
 * Return RDH, counted in descriptors: one with four buffers counts twice there.
 * `regs' is E82574_QUEUE() of the queue, `split' is rx_split(), here and below.
 */
static inline uint32_t
rx_head(const struct e82545 *dev, uint32_t regs, bool split)
{
	return (e82545_reg(dev, E82545_RDH + regs) >> split);
}

/* Return descriptor `i' of a ring. */
static inline uint64_t *
rx_desc(const struct e82545 *dev, uint64_t (*ring)[2], uint32_t i)
{
	return (ring[i << rx_split(dev)]);
}

static inline uint32_t
rx_ring_size(const struct e82545 *dev, uint32_t regs, bool split)
{
	return ((e82545_reg(dev, E82545_RDLEN + regs) & E82545_DLEN_MASK) /
	    sizeof(struct e82545_rxd) >> split);
}

/* Map the ring, which is not empty; NULL if its address is invalid. */
static inline uint64_t (*
rx_ring_map(const struct e82545 *dev, uint32_t regs))[2]
{
	uint64_t base;
	void *ring;

	base = (uint64_t)e82545_reg(dev, E82545_RDBAH + regs) << 32 |
	    (e82545_reg(dev, E82545_RDBAL + regs) & E82545_DBAL_MASK);
	ring = e82545_map(dev, base,
	    e82545_reg(dev, E82545_RDLEN + regs) & E82545_DLEN_MASK);
	return ((uintptr_t)ring % sizeof(uint64_t) != 0 ? NULL : ring);
}

/*
 * Return how many descriptors the guest has posted; 0 if the ring is invalid.
 */
static inline uint32_t
rx_ring_posted(const struct e82545 *dev, uint32_t regs, uint32_t head,
    uint32_t size, bool split)
{
	uint32_t tail;

	tail = e82545_reg_acquire(dev, E82545_RDT + regs) >> split;
	if (head >= size)
		return (0);
	if (tail >= size)
		return (size);
	return (tail >= head ? tail - head : tail + size - head);
}

/*
 * Return the address of the next buffer, the first one of its descriptor: guest
 * memory, read once.  rx_buffer() if descriptors have one.
 */
static inline uint64_t
rx_buffer(const struct rx_batch *b)
{
	MPASS(b->ring != NULL && b->head < b->size);
	return (le64toh(atomic_load_64(&b->ring[b->head][0])));
}

static inline uint64_t
rx_first_buffer(const struct e82545 *dev, const struct rx_batch *b)
{
	MPASS(b->ring != NULL && b->head < b->size);
	return (le64toh(atomic_load_64(rx_desc(dev, b->ring, b->head))));
}

/* Return how many posted descriptors the batch has not used. */
static inline uint32_t
rx_room(const struct rx_batch *b)
{
	MPASS(b->posted >= b->ndone);
	return (b->posted - b->ndone);
}

/*
 * Make the upper half of the descriptor of that buffer, which is filled.
 * `sums' as from e82545_rx_sum().
 */
static inline void
rx_done(struct rx_batch *b, size_t len, uint64_t sums, uint8_t status,
    uint8_t errors, uint16_t special)
{
	MPASS(rx_room(b) > 0 && b->ndone < nitems(b->q->done));
	b->q->done[b->ndone++] = htole64(len | sums |
	    (uint64_t)status << 32 | (uint64_t)errors << 40 |
	    (uint64_t)special << 48);
	if (++b->head == b->size)
		b->head = 0;
}

/*
 * Write back `n' descriptors from `start' on, except the first.  Stores with
 * release: a guest that sees DD sees the data.
 */
static inline void
rx_store(uint64_t (*ring)[2], uint32_t size, uint32_t start,
    const uint64_t *done, uint32_t n)
{
	const size_t first = MIN(n, size - start);
	size_t i;

	/* From the ring's beginning, and before that up to its end. */
	for (i = n; i-- > first;)
		atomic_store_rel_64(&ring[i - first][1], done[i]);
	for (i = first; i-- > 1;)
		atomic_store_rel_64(&ring[start + i][1], done[i]);
}

/* Return what RSS has made of the batch, or NULL. */
static inline const uint64_t *
rx_lower(const struct e82545_rxq *q)
{
	return (e82545_salvage_bool(&q->hashed) ? q->lower : NULL);
}

/* Return the longest frame that RCTL accepts, bytes without FCS. */
static inline uint32_t
rx_longest(const struct rx_batch *b)
{
	return ((b->rctl & E82545_RCTL_LPE) != 0 ? E82545_FRAME_MAX :
	    RX_WIRE_MAX - E82545_ETH_FCS);
}

static inline uint16_t
rx_type(const uint8_t *head, bool tagged)
{
	return (be16dec(head + E82545_VLAN_OFF + (tagged ? E82545_VLAN_LEN :
	    0)));
}

/* Drop the frame before its length is known. */
static inline void
rx_drop(struct e82545 *dev, struct rx_batch *b, enum e82545_counter why)
{
	b->counts[why]++;
	e82545_probe_rx_drop(dev, why, b->head);
}

/* Drop the frame and count it in TPR and TOR. */
static inline void
rx_lose(struct e82545 *dev, struct rx_batch *b, size_t wire,
    enum e82545_counter why)
{
	b->lost++;
	b->lost_bytes += wire;
	rx_drop(dev, b, why);
}

/* Return the bytes that the guest gets of a frame of `wire' bytes. */
static inline size_t
rx_guest_len(const struct rx_batch *b, const struct rx_frame *f, size_t wire)
{
	return (wire - (f->strip ? E82545_VLAN_LEN : 0) -
	    (E82545_ETH_FCS - b->fcs));
}

/*
 * Return how many of `len' bytes that the guest gets are headers in a buffer of
 * their own.
 */
static inline size_t
rx_header(const struct rx_frame *f, size_t len)
{
	return (f->header <= len ? f->header : 0);
}

/* Return the descriptors that `len' bytes take. */
static inline size_t
rx_need(const struct rx_batch *b, const struct rx_frame *f, size_t len)
{
	const size_t header = rx_header(f, len);

	if (header != 0)
		return (MAX(howmany(len - header, b->payload), 1));
	return (len <= b->bufsize ? 1 : howmany(len, b->bufsize));
}

/*
 * e82545_rx_stall.c
 */

/* Return whether the receive side is stalled.  reg_mtx held. */
static inline bool
rx_stalled(const struct e82545 *dev)
{
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	return (dev->rx_wait.stalled);
}

/*
 * See whether the guest has posted more descriptors, which it may do without a
 * kick with the CSB on.
 */
void	e82545_rx_poll(struct e82545 *dev, struct rx_batch *b);
/*
 * End the batch because of too few descriptors, b->need.  Returns whether the
 * receive side is stalled now, which it is not if enough have been posted.
 * reg_mtx held.
 */
bool	e82545_rx_stall(struct e82545 *dev, struct rx_batch *b);

/*
 * e82545_rx_frame.c
 */

/*
 * Deliver a frame, or drop it if the guest does not get it.  If not RX_TAKEN,
 * the frame is still pending: a later batch gets it again.
 */
enum rx_verdict e82545_rx_frame(struct e82545 *dev, struct rx_batch *b,
	    struct rx_frame *f);
/*
 * Deliver or drop a frame with a partial checksum, FRAME_CSUM_PARTIAL.  If not
 * RX_TAKEN, the frame is still pending, and the guest may have some of its
 * segments: rx_cut_off.
 */
enum rx_verdict e82545_rx_offload(struct e82545 *dev, struct rx_batch *b,
	    struct rx_frame *f);

/*
 * e82545_rx_copy.c: enough descriptors for what is given must be posted.
 */

/*
 * Pass over the descriptor at the head, which has no buffer.  Returns false if
 * only `need' more are posted, which the frame needs, or the batch has no
 * space.
 */
bool	e82545_rx_null(struct e82545 *dev, struct rx_batch *b, size_t need);
/* Give a frame to the guest, in `len' bytes. */
void	e82545_rx_deliver(struct e82545 *dev, struct rx_batch *b,
	    const struct rx_frame *f, size_t len);
/* Return the length on the wire of a segment: padded, with FCS. */
size_t	e82545_rx_segment_wire(const struct frame_cut *cut, size_t paylen);
/*
 * Give the segment at `cut' to the guest.  Returns whether its buffers are all
 * in guest memory.
 */
bool	e82545_rx_segment(struct e82545 *dev, struct rx_batch *b,
	    const struct rx_frame *f, struct frame_cut *cut);
/* Give a frame to the guest as it is, in `len' bytes, and its header. */
void	e82545_rx_uncut(struct e82545 *dev, struct rx_batch *b,
	    const struct rx_frame *f, size_t len);

#endif /* !_E82545_RX_IMPL_H_ */
