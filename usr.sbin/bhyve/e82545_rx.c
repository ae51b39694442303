/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The receive ring: 8254x SDM section 3.2.  Everything here runs under rx_mtx
 * except e82545_rx_unstall().
 *
 * A call of e82545_rx() processes one batch, of frames from the port; a call of
 * e82545_rx_direct() one or more, of frames from its caller:
 *
 *	begin	take a snapshot of the registers, map the ring
 *	run	for each frame, where it lies: filter; check its length; copy
 *		it, once, into the guest's buffers, and verify its checksums
 *	end	write the descriptors back, in order; then, once, under reg_mtx:
 *		RDH, statistics, interrupt
 *
 * Stalls.  A frame is taken only if enough descriptors for all of it are
 * posted. If not, it stays in the port with all frames behind it, and the
 * switch drops what the port cannot hold.  This counts as RNBC, as when frames
 * wait in the adapter's FIFO, and what the switch drops counts as MPC
 * (e82545_stat_missed()).  RXO is not raised.
 *
 *	 running --- run: too few descriptors ----> (end) read RDT again
 *	    ^                                       |            |
 *	    |<--- now enough: E82545_RX_MORE -------+            | still too few
 *	    |                                                    v
 *	    +--- e82545_rx_unstall(), then eo_rx_ready() --- stalled
 *
 * The batch reads RDT again and sets `stalled' under reg_mtx, and
 * e82545_rx_unstall() runs under it.  So if the guest posts descriptors at that
 * moment, either the batch sees them or the guest's write sees the stall.  A
 * reset does not change `stalled'.  With the CSB on, the batch first reads what
 * the guest posted there: see e82545_csb.c.
 *
 * A direct call never waits for a batch in progress, whose copy may wait for a
 * page of another guest.  It leaves frames that do not fit to its caller, which
 * has the network keep them; e82545_rx() finds them there and stalls.  While
 * the receive side is stalled no frame goes directly, because the guest has
 * been asked to kick.
 *
 * A frame with a partial checksum, or to be cut, is completed by that copy
 * (frame_cut.h): the guest cannot be told of either.  Each segment is a frame
 * of its own then.  If there are too few descriptors for all of them, the frame
 * stays in the port, and cut_off tells how much of it the guest has.  A direct
 * call takes all segments of a frame or none.
 *
 * A guest with a header ring (e82545_csb_vnet.c) gets such a frame uncut, of up
 * to 64 KB, whatever RCTL permits.
 *
 * RDT equal to the number of descriptors or greater: the head never reaches it,
 * so the guest gets frames into all descriptors, round after round, as from
 * hardware.  Some drivers write this once, to post all of the ring; their first
 * write of a smaller index ends it.  A batch takes at most one round.
 *
 * A descriptor with address 0 has no buffer: section 3.2.5.  It is written back
 * with DD set and all else as it was, and the data goes to the next.
 *
 * Frames arrive without FCS; the guest gets four bytes of zeros for it if
 * RCTL.SECRC is off.  Short frames are padded with zeros to the minimum.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/fast_path.h>

#include <stdlib.h>
#include <string.h>

#include "e82545_impl.h"
#include "e82545_probes.h"
#include "e82545_snap.h"
#include "frame_cursor.h"
#include "frame_cut.h"
#include "frame_vnet.h"

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
/* Its pieces: of a buffer, the first and the last may be less than a page. */
#define	RX_FRAME_PIECES	(2 * RX_FRAME_DESCS + RX_UNCUT_MAX / E82545_PIECE)

/* The largest buffer, bytes: section 13.4.22. */
#define	RX_BUFSIZE_MAX	16384

/* Frames with an FCS: RCTL.LPE, section 13.4.22. */
#define	RX_WIRE_MAX	1522

struct e82545_rxq {
	/* Bytes of payload that the guest has of the port's first frame. */
	uint32_t	 cut_off;

	/* reg_mtx. */
	bool		 stalled;
	uint32_t	 need;		/* descriptors the frame would take */
	uint32_t	 need_rctl;	/* with this RCTL */

	/* For one batch: the upper halves of its descriptors. */
	uint64_t	 done[RX_BATCH_DESCS + RX_BATCH];

	/* What goes to buffers outside guest memory. */
	uint8_t		 dump[RX_BUFSIZE_MAX];
};

enum rx_verdict {
	RX_TAKEN,		/* delivered or dropped */
	RX_NODESC,		/* the guest has posted too few descriptors */
	RX_FULL			/* the batch has no space for more of them */
};

struct rx_batch {
	uint64_t	(*ring)[2];	/* descriptors; NULL: none */
	uint32_t	size;		/* of them */
	uint32_t	start, head;	/* indices */
	uint32_t	posted;		/* descriptors the guest has posted */
	uint32_t	ndone;		/* descriptors used */
	uint32_t	need;		/* descriptors of the frame that did not
					   fit */
	uint32_t	rctl, rxcsum;
	uint32_t	bufsize;	/* bytes */
	uint8_t		*vnet;		/* the header ring; NULL: none */
	uint64_t	own;		/* the guest's: e82545_filter_own() */
	uint32_t	single_max;	/* bytes of a frame that
					   rx_single_buffer() may take;
					   0: none */
	uint32_t	fcs;		/* bytes of FCS that the guest gets */
	uint16_t	vet;
	bool		vme, on, link, loopback;
	bool		endless;	/* RDT is never reached */
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

struct e82545_rxq *
e82545_rxq_create(void)
{
	return (calloc(1, sizeof(struct e82545_rxq)));
}

void
e82545_rxq_destroy(struct e82545_rxq *rxq)
{
	free(rxq);
}

/*
 * Posted descriptors.
 */

static uint32_t
rx_ring_size(const struct e82545 *dev)
{
	return ((e82545_reg(dev, E82545_RDLEN) & E82545_DLEN_MASK) /
	    sizeof(struct e82545_rxd));
}

/* Whether the head never reaches RDT. */
static bool
rx_endless(const struct e82545 *dev, uint32_t size)
{
	return (e82545_reg(dev, E82545_RDT) >= size);
}

/* Descriptors that the guest has posted; 0 if the ring is invalid. */
static uint32_t
rx_ring_posted(const struct e82545 *dev, uint32_t head, uint32_t size)
{
	uint32_t tail;

	tail = e82545_reg_acquire(dev, E82545_RDT);
	if (head >= size)
		return (0);
	if (tail >= size)
		return (size);
	return (tail >= head ? tail - head : tail + size - head);
}

static bool
rx_stalled(const struct e82545 *dev)
{
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	return (dev->rxq->stalled);
}

bool
e82545_rx_unstall(struct e82545 *dev)
{
	struct e82545_rxq *rxq = dev->rxq;

	if (!rx_stalled(dev))
		return (e82545_loop_pending(dev));
	/* If RCTL is another, the receiver may be off. */
	if (e82545_reg(dev, E82545_RCTL) == rxq->need_rctl &&
	    rx_ring_posted(dev, e82545_reg(dev, E82545_RDH),
	    rx_ring_size(dev)) < rxq->need)
		return (false);
	rxq->stalled = false;
	return (true);
}

bool
e82545_rx_kicked(struct e82545 *dev)
{
	if (!rx_stalled(dev))
		return (e82545_loop_pending(dev));
	dev->rxq->stalled = false;
	return (true);
}

/*
 * One frame.
 */

/* The address of the next buffer: guest memory, read once. */
static uint64_t
rx_buffer(const struct rx_batch *b)
{
	MPASS(b->ring != NULL && b->head < b->size);
	return (le64toh(atomic_load_64(&b->ring[b->head][0])));
}

/* The posted descriptors that the batch has not used. */
static uint32_t
rx_room(const struct rx_batch *b)
{
	MPASS(b->posted >= b->ndone);
	return (b->posted - b->ndone);
}

/*
 * With the CSB on, see whether the guest has posted more.  It may have taken
 * back some meanwhile: with the mode off, RDT is what was written last.  Those
 * that the batch has used stay used.
 */
static void
rx_look(struct e82545 *dev, struct rx_batch *b)
{
	if (dev->csb.rx_on && e82545_csb_rx_tail(dev)) {
		b->posted = MAX(b->ndone,
		    rx_ring_posted(dev, b->start, b->size));
		if (b->vnet != NULL)
			e82545_csb_vnet_clear(dev, b->vnet, b->size, b->head,
			    rx_room(b));
	}
}

/*
 * That buffer is filled: make its descriptor's upper half.  `sums' as from
 * e82545_rx_sum().
 */
static void
rx_done(struct e82545 *dev, struct rx_batch *b, size_t len, uint64_t sums,
    uint8_t status, uint8_t errors, uint16_t special)
{
	MPASS(rx_room(b) > 0 && b->ndone < nitems(dev->rxq->done));
	dev->rxq->done[b->ndone++] = htole64(len | sums |
	    (uint64_t)status << 32 | (uint64_t)errors << 40 |
	    (uint64_t)special << 48);
	if (++b->head == b->size)
		b->head = 0;
}

/*
 * The descriptor at the head has no buffer: pass over it.  Returns false if
 * only `keep' more are posted, which the frame needs, or the batch has no
 * space.
 */
static bool
rx_null(struct e82545 *dev, struct rx_batch *b, size_t keep)
{
	uint64_t upper;

	if (rx_room(b) <= keep || b->ndone + keep >= RX_BATCH_DESCS)
		return (false);
	upper = le64toh(atomic_load_64(&b->ring[b->head][1]));
	dev->rxq->done[b->ndone++] = htole64(upper |
	    (uint64_t)E82545_RXD_DD << 32);
	if (++b->head == b->size)
		b->head = 0;
	return (true);
}

/* The longest frame that RCTL accepts, bytes without FCS. */
static uint32_t
rx_longest(const struct rx_batch *b)
{
	return ((b->rctl & E82545_RCTL_LPE) != 0 ? E82545_FRAME_MAX :
	    RX_WIRE_MAX - E82545_ETH_FCS);
}

/* A frame being received. */
struct rx_frame {
	struct frame	 f;
	size_t		 wire;		/* bytes, padded, with FCS */
	bool		 tagged, strip;	/* has a VLAN tag; it is removed */
	bool		 inexact;	/* PIF */
	uint8_t		 head[E82545_RX_HEAD]; /* first bytes, then zeros */
};

/* The buffers of a frame being received. */
struct rx_space {
	struct iovec	 iov[RX_FRAME_PIECES];
	uint32_t	 first;		/* the first one's descriptor */
	size_t		 last;		/* bytes in the last one */
	bool		 ok;		/* all are in guest memory */
};

/*
 * Find the `n' bytes of a buffer, and add them to `iov'.  Returns NULL if they
 * are not all in guest memory.
 */
static struct iovec *
rx_pieces(struct e82545 *dev, uint64_t gpa, size_t n, struct iovec *iov)
{
	if (gpa == 0)
		return (NULL);
	iov->iov_len = n;
	iov->iov_base = e82545_map_for(dev, gpa, n, E82545_MAP_WRITE);
	if (iov->iov_base != NULL)
		return (iov + 1);
	if (e82545_piece(gpa, n) == n)
		return (NULL);
	for (; n > 0; iov++) {
		iov->iov_len = e82545_piece(gpa, n);
		iov->iov_base = e82545_map_for(dev, gpa, iov->iov_len,
		    E82545_MAP_WRITE);
		if (iov->iov_base == NULL)
			return (NULL);
		gpa += iov->iov_len;
		n -= iov->iov_len;
	}
	return (iov);
}

/*
 * Find the buffers of as many descriptors as `len' bytes take, and complete all
 * of these except the last.
 */
static void
rx_place(struct e82545 *dev, struct rx_batch *b, size_t len,
    struct rx_space *space)
{
	struct iovec *end, *iov = space->iov;
	uint64_t gpa;
	size_t n;

	space->ok = true;
	for (;;) {
		n = MIN(len, b->bufsize);
		gpa = rx_buffer(b);
		if (gpa == 0 && rx_null(dev, b, howmany(len, b->bufsize)))
			continue;
		if (iov == space->iov)
			space->first = b->head;
		end = rx_pieces(dev, gpa, n, iov);
		if (end == NULL) {
			iov->iov_base = dev->rxq->dump;
			iov->iov_len = n;
			space->ok = false;
			end = iov + 1;
		}
		iov = end;
		if ((len -= n) == 0)
			break;
		rx_done(dev, b, n, 0, E82545_RXD_DD, 0, 0);
	}
	space->last = n;
}

/* Copy and sum `len' bytes; the next byte is at an odd offset if `odd'. */
static uint64_t
rx_copy(struct frame_cursor *to, struct frame_cursor *from, size_t len,
    bool odd)
{
	struct iovec dst, src;
	uint64_t s, sum = 0;
	size_t off;

	for (; len > 0; len -= dst.iov_len) {
		dst = frame_cursor_run(to, len);
		for (off = 0; off < dst.iov_len; off += src.iov_len) {
			src = frame_cursor_run(from, dst.iov_len - off);
			s = frame_sum_copy((uint8_t *)dst.iov_base + off,
			    src.iov_base, src.iov_len);
			sum += odd ? frame_sum_odd(s) : s;
			odd ^= src.iov_len & 1;
		}
	}
	return (sum);
}

/* Copy without a sum. */
static void
rx_move(struct frame_cursor *to, struct frame_cursor *from, size_t len)
{
	struct iovec run;

	for (; len > 0; len -= run.iov_len) {
		run = frame_cursor_run(to, len);
		frame_cursor_copy(from, run.iov_base, run.iov_len);
	}
}

static void
rx_put(struct frame_cursor *to, const uint8_t *data, size_t len)
{
	struct iovec run;

	for (; len > 0; len -= run.iov_len) {
		run = frame_cursor_run(to, len);
		memcpy(run.iov_base, data, run.iov_len);
		data += run.iov_len;
	}
}

static void
rx_zero(struct frame_cursor *to, size_t len)
{
	struct iovec run;

	for (; len > 0; len -= run.iov_len) {
		run = frame_cursor_run(to, len);
		memset(run.iov_base, 0, run.iov_len);
	}
}

static uint16_t
rx_type(const uint8_t *head, bool tagged)
{
	return (be16dec(head + E82545_VLAN_OFF + (tagged ? E82545_VLAN_LEN :
	    0)));
}

/* Drop the frame before its length is known. */
static void
rx_drop(struct e82545 *dev, struct rx_batch *b, enum e82545_counter why)
{
	b->counts[why]++;
	e82545_probe_rx_drop(dev, why, b->head);
}

/* Drop the frame and count it in TPR and TOR. */
static void
rx_lose(struct e82545 *dev, struct rx_batch *b, size_t wire,
    enum e82545_counter why)
{
	b->lost++;
	b->lost_bytes += wire;
	rx_drop(dev, b, why);
}

/*
 * The frame, or a segment, is in its buffers: complete its last descriptor.
 * `wire' is its length there, padded and with FCS; `sums' as from
 * e82545_rx_sum().  Returns whether all of it is in guest memory.
 */
static bool
rx_complete(struct e82545 *dev, struct rx_batch *b, const struct rx_frame *f,
    const struct rx_space *space, size_t wire, size_t padding, uint64_t sums)
{
	uint8_t errors = 0, status = E82545_RXD_DD | E82545_RXD_EOP;
	uint16_t tag = 0;

	if (f->inexact)
		status |= E82545_RXD_PIF;
	if (f->strip) {
		status |= E82545_RXD_VP;
		tag = be16dec(f->head + E82545_VLAN_OFF + 2);
	}
	if (space->ok) {
		b->padding += padding;
		e82545_tally(&b->tally, f->head, wire, 1);
	} else {
		rx_lose(dev, b, wire, E82545_C_RX_BAD_ADDR);
		e82545_probe_bad(dev, E82545_C_RX_BAD_ADDR, b->head);
		errors |= E82545_RXD_ERR_RXE;
	}
	rx_done(dev, b, space->last, sums, status, errors, tag);
	return (space->ok);
}

/* The bytes that the guest gets of a frame of `wire' bytes. */
static size_t
rx_guest_len(const struct rx_batch *b, const struct rx_frame *f, size_t wire)
{
	return (wire - (f->strip ? E82545_VLAN_LEN : 0) -
	    (E82545_ETH_FCS - b->fcs));
}

/* Give the frame to the guest, which gets `len' bytes. */
static void
rx_deliver(struct e82545 *dev, struct rx_batch *b, struct rx_frame *f,
    size_t len)
{
	struct frame_cursor from, to;
	struct rx_space space;
	size_t skip = 0;
	uint64_t sum = 0;

	rx_place(dev, b, len, &space);
	frame_cursor_init(&from, f->f.f_iov);
	frame_cursor_init(&to, space.iov);
	if (f->strip) {
		skip = E82545_VLAN_OFF + E82545_VLAN_LEN;
		rx_put(&to, f->head, E82545_VLAN_OFF);
		sum = frame_sum_bytes(f->head, skip);
		frame_cursor_skip(&from, skip);
		len -= E82545_VLAN_OFF;
	}
	sum += rx_copy(&to, &from, f->f.f_len - skip, false);
	rx_zero(&to, len - (f->f.f_len - skip));
	rx_complete(dev, b, f, &space, f->wire,
	    f->wire - E82545_ETH_FCS - f->f.f_len,
	    e82545_rx_sum(f->f.f_iov, f->f.f_len, sum, rx_type(f->head,
	    f->tagged), b->rxcsum, f->tagged, f->strip));
}

static void
rx_measure(const struct rx_batch *b, struct rx_frame *f)
{
	struct frame_cursor cur;

	f->wire = MAX(f->f.f_len, (uint32_t)E82545_ETH_MIN) + E82545_ETH_FCS;
	memset(f->head, 0, sizeof(f->head));
	frame_cursor_init(&cur, f->f.f_iov);
	frame_cursor_copy(&cur, f->head,
	    MIN((size_t)f->f.f_len, sizeof(f->head)));
	f->tagged = rx_type(f->head, false) == b->vet &&
	    f->f.f_len >= E82545_ETH_HDRLEN + E82545_VLAN_LEN;
	f->strip = f->tagged && b->vme;
}

/*
 * Whether the guest gets the frame.  It does not pass the host's mtu=, the
 * receiver is off, or the filters drop it.
 */
static bool
rx_wanted(struct e82545 *dev, struct rx_batch *b, struct rx_frame *f)
{
	enum e82545_filter_result result;

	if (!b->looped && !frame_port_accepts(dev->port, &f->f)) {
		e82545_probe_rx_overmtu(dev, b->head);
		return (false);
	}
	/* Receiver off, no link, or only looped frames are received. */
	if (!b->on || (!b->looped && (!b->link || b->loopback))) {
		rx_drop(dev, b, E82545_C_RX_DISABLED);
		return (false);
	}
	rx_measure(b, f);
	result = e82545_filter(dev, b->rctl, f->head, f->tagged);
	if (result == E82545_FILTER_DROP) {
		rx_lose(dev, b, f->wire, E82545_C_RX_FILTERED);
		return (false);
	}
	f->inexact = result == E82545_FILTER_INEXACT;
	return (true);
}

/*
 * Whether the guest can ever get a frame of `flen' bytes, of which its buffers
 * would have `len': no longer than RCTL accepts, and than the ring.
 */
static bool
rx_fits(const struct rx_batch *b, size_t flen, size_t len)
{
	return (flen <= rx_longest(b) &&
	    (b->size == 0 || howmany(len, b->bufsize) < b->size));
}

/* See whether a frame of `len' bytes, as the guest gets it, has space now. */
static enum rx_verdict
rx_space(struct e82545 *dev, struct rx_batch *b, size_t len, bool single)
{
	size_t need = len <= b->bufsize ? 1 : howmany(len, b->bufsize);

	/* Pass over those before the frame even if it does not fit yet. */
	while (rx_room(b) > 0 && rx_buffer(b) == 0) {
		if (b->ndone >= RX_BATCH_DESCS)
			return (RX_FULL);
		rx_null(dev, b, 0);
	}
	if (need > rx_room(b) && b->ring != NULL)
		rx_look(dev, b);
	if (need > rx_room(b)) {
		b->need = need;
		return (RX_NODESC);
	}
	if ((need > 1 || !single) && b->ndone + need > RX_BATCH_DESCS)
		return (RX_FULL);
	return (RX_TAKEN);
}

static __attribute__((__noinline__)) enum rx_verdict
rx_frame(struct e82545 *dev, struct rx_batch *b, struct rx_frame *f)
{
	enum rx_verdict verdict;
	size_t len;

	if (!rx_wanted(dev, b, f))
		return (RX_TAKEN);
	len = rx_guest_len(b, f, f->wire);
	if (!rx_fits(b, f->f.f_len, len)) {
		rx_lose(dev, b, f->wire, E82545_C_RX_OVERSIZE);
		return (RX_TAKEN);
	}
	verdict = rx_space(dev, b, len, true);
	if (verdict == RX_TAKEN)
		rx_deliver(dev, b, f, len);
	return (verdict);
}

/* The next segment's length on the wire: padded, with FCS. */
static size_t
rx_segment_wire(const struct frame_cut *cut, size_t paylen)
{
	return (MAX(cut->fc_hdrlen + paylen, (size_t)E82545_ETH_MIN) +
	    E82545_ETH_FCS);
}

/* Give the next segment to the guest.  Returns as rx_complete(). */
static bool
rx_segment(struct e82545 *dev, struct rx_batch *b, const struct rx_frame *f,
    struct frame_cut *cut)
{
	const size_t skip = f->strip ? E82545_VLAN_LEN : 0;
	const size_t flen = cut->fc_hdrlen + cut->fc_paylen;
	const size_t wire = rx_segment_wire(cut, cut->fc_paylen);
	const size_t len = rx_guest_len(b, f, wire);
	struct iovec iov[1 + RX_FRAME_PIECES], run;
	struct frame_cursor to;
	struct rx_space space;
	uint8_t hdr[FRAME_CUT_HDRLEN];
	uint64_t sums;
	size_t left;
	int n = 1;

	rx_place(dev, b, len, &space);
	frame_cursor_init(&to, space.iov);
	frame_cursor_skip(&to, cut->fc_hdrlen - skip);
	for (left = cut->fc_paylen; left > 0; left -= run.iov_len) {
		run = frame_cursor_run(&to, left);
		frame_cut_copy(cut, run.iov_base, run.iov_len);
		iov[n++] = run;
	}
	rx_zero(&to, len - (flen - skip));
	frame_cut_header(cut, hdr);
	iov[0].iov_base = hdr;
	iov[0].iov_len = cut->fc_hdrlen;
	sums = e82545_rx_sum(iov, flen, frame_cut_sum(cut),
	    rx_type(f->head, f->tagged), b->rxcsum, f->tagged, f->strip);
	frame_cursor_init(&to, space.iov);
	if (skip > 0)
		rx_put(&to, hdr, E82545_VLAN_OFF);
	rx_put(&to, hdr + (skip > 0 ? E82545_VLAN_OFF + skip : 0),
	    cut->fc_hdrlen - (skip > 0 ? E82545_VLAN_OFF + skip : 0));
	return (rx_complete(dev, b, f, &space, wire,
	    wire - E82545_ETH_FCS - flen, sums));
}

/* The guest gets the frame as it is, in `len' bytes. */
static void
rx_uncut(struct e82545 *dev, struct rx_batch *b, struct rx_frame *f,
    size_t len)
{
	struct frame_cursor from, to;
	struct frame told = f->f;
	struct rx_space space;
	size_t skip = 0;

	rx_place(dev, b, len, &space);
	frame_cursor_init(&from, f->f.f_iov);
	frame_cursor_init(&to, space.iov);
	if (f->strip) {
		skip = E82545_VLAN_OFF + E82545_VLAN_LEN;
		rx_put(&to, f->head, E82545_VLAN_OFF);
		frame_cursor_skip(&from, skip);
		len -= E82545_VLAN_OFF;
		told.f_csum_start -= E82545_VLAN_LEN;
		told.f_hdr_len -= E82545_VLAN_LEN;
	}
	rx_move(&to, &from, f->f.f_len - skip);
	rx_zero(&to, len - (f->f.f_len - skip));
	frame_vnet_encode(&told, b->vnet + space.first * FRAME_VNET_SHORT,
	    FRAME_VNET_SHORT);
	b->uncut += rx_complete(dev, b, f, &space, f->wire,
	    f->wire - E82545_ETH_FCS - f->f.f_len,
	    (uint64_t)E82545_RXD_IXSM << 32);
}

/* Whether a direct call can take all segments. */
static bool
rx_all_fit(const struct rx_batch *b, const struct rx_frame *f,
    const struct frame_cut *cut)
{
	size_t need;

	need = howmany(rx_guest_len(b, f, MAX(cut->fc_longest,
	    (uint32_t)E82545_ETH_MIN) + E82545_ETH_FCS), b->bufsize);
	need *= cut->fc_segments;
	return (need <= rx_room(b) && b->ndone + need <= RX_BATCH_DESCS);
}

/* A frame with a partial checksum. */
static __attribute__((__noinline__)) enum rx_verdict
rx_offload(struct e82545 *dev, struct rx_batch *b, struct rx_frame *f)
{
	struct e82545_rxq *rxq = dev->rxq;
	enum rx_verdict verdict;
	struct frame_cut cut;
	size_t len, paylen, wire;
	bool several;

	if (!rx_wanted(dev, b, f))
		goto taken;
	len = rx_guest_len(b, f, f->wire);
	if (b->vnet != NULL && dev->csb.rx_on && f->f.f_len <= RX_UNCUT_MAX &&
	    howmany(len, b->bufsize) < b->size && (b->direct ||
	    rxq->cut_off == 0)) {
		if (f->f.f_csum_start < E82545_VLAN_OFF + E82545_VLAN_LEN) {
			rx_lose(dev, b, f->wire, E82545_C_RX_BAD_OFFLOAD);
			goto taken;
		}
		verdict = rx_space(dev, b, len, false);
		if (verdict == RX_TAKEN)
			rx_uncut(dev, b, f, len);
		return (verdict);
	}
	if (!frame_cut_begin(&cut, &f->f) ||
	    cut.fc_hdrlen < E82545_VLAN_OFF + E82545_VLAN_LEN) {
		rx_lose(dev, b, f->wire, E82545_C_RX_BAD_OFFLOAD);
		goto taken;
	}
	wire = MAX(cut.fc_longest, (uint32_t)E82545_ETH_MIN) + E82545_ETH_FCS;
	if (!rx_fits(b, cut.fc_longest, rx_guest_len(b, f, wire))) {
		rx_lose(dev, b, f->wire, E82545_C_RX_OVERSIZE);
		goto taken;
	}
	several = cut.fc_segments > 1;
	if (!b->direct)
		frame_cut_seek(&cut, rxq->cut_off);
	else if (!rx_all_fit(b, f, &cut))
		return (b->ndone > 0 ? RX_FULL : RX_NODESC);
	while (cut.fc_segments > 0) {
		paylen = frame_cut_peek(&cut);
		verdict = rx_space(dev, b, rx_guest_len(b, f,
		    rx_segment_wire(&cut, paylen)), false);
		if (verdict != RX_TAKEN)
			return (verdict);
		frame_cut_next(&cut);
		b->segments += rx_segment(dev, b, f, &cut) && several;
		if (!b->direct)
			rxq->cut_off += paylen;
	}
	b->cut += several;
taken:
	if (!b->direct)
		rxq->cut_off = 0;
	return (RX_TAKEN);
}

/*
 * The fast path of rx_frame(): a frame of one fragment, untagged, that fits
 * into one buffer.  Returns false, having done nothing, if it is another.
 */
static bool
rx_single_buffer(struct e82545 *dev, struct rx_batch *b,
    const struct iovec *iov)
{
	const uint8_t *frame = iov->iov_base;
	size_t full, len = iov->iov_len;
	uint64_t gpa, sum;
	uint16_t type;
	uint8_t *dst, status;

	if (len < E82545_ETH_MIN || len > b->single_max ||
	    b->ndone >= b->posted)
		return (false);
	type = rx_type(frame, false);
	if (type == b->vet)
		return (false);
	status = E82545_RXD_DD | E82545_RXD_EOP;
	if ((le64dec(frame) & 0xffffffffffff) != b->own) {
		switch (e82545_filter(dev, b->rctl, frame, false)) {
		case E82545_FILTER_DROP:
			rx_lose(dev, b, len + E82545_ETH_FCS,
			    E82545_C_RX_FILTERED);
			return (true);
		case E82545_FILTER_PASS:
			break;
		case E82545_FILTER_INEXACT:
			status |= E82545_RXD_PIF;
			break;
		}
	}
	gpa = rx_buffer(b);
	if (gpa == 0)
		return (false);
	full = len + b->fcs;
	dst = e82545_map_for(dev, gpa, full, E82545_MAP_WRITE);
	if (dst == NULL)
		return (false);
	sum = frame_sum_copy(dst, frame, len);
	if (b->fcs != 0)
		memset(dst + len, 0, E82545_ETH_FCS);
	rx_done(dev, b, full, e82545_rx_sum(iov, len, sum, type, b->rxcsum,
	    false, false), status, 0, 0);
	e82545_tally(&b->tally, frame, len + E82545_ETH_FCS, 1);
	return (true);
}

/*
 * The batch.
 */

/* Section 13.4.22.  The reserved combination means the default. */
static uint32_t
rx_bufsize(uint32_t rctl)
{
	uint32_t size;

	size = 2048 >> E82545_RCTL_BSIZE(rctl);
	if ((rctl & E82545_RCTL_BSEX) != 0 && E82545_RCTL_BSIZE(rctl) != 0)
		size *= 16;
	return (size);
}

static void
rx_begin(struct e82545 *dev, struct rx_batch *b)
{
	uint64_t base;

	memset(b, 0, sizeof(*b));
	b->rctl = e82545_reg(dev, E82545_RCTL);
	b->on = (b->rctl & E82545_RCTL_EN) != 0;
	b->link = (e82545_reg(dev, E82545_STATUS) & E82545_STATUS_LU) != 0;
	b->loopback = e82545_loopback(dev);
	b->looped = e82545_loop_pending(dev);
	b->own = e82545_filter_own(dev);
	b->rxcsum = e82545_reg(dev, E82545_RXCSUM);
	b->vet = e82545_reg(dev, E82545_VET);
	b->vme = (e82545_reg(dev, E82545_CTRL) & E82545_CTRL_VME) != 0;
	b->bufsize = rx_bufsize(b->rctl);
	b->fcs = (b->rctl & E82545_RCTL_SECRC) != 0 ? 0 : E82545_ETH_FCS;
	b->start = b->head = e82545_reg(dev, E82545_RDH);
	b->size = rx_ring_size(dev);
	b->posted = rx_ring_posted(dev, b->head, b->size);
	if (!b->on || b->size == 0)
		return;
	base = (uint64_t)e82545_reg(dev, E82545_RDBAH) << 32 |
	    (e82545_reg(dev, E82545_RDBAL) & E82545_DBAL_MASK);
	if (b->head < b->size)
		b->ring = e82545_map(dev, base,
		    b->size * sizeof(struct e82545_rxd));
	if ((uintptr_t)b->ring % sizeof(uint64_t) != 0)
		b->ring = NULL;
	if (b->ring == NULL)
		b->posted = 0;
	if (b->ring != NULL && dev->csb.vnet_gpa != 0 &&
	    dev->port->fp_offloads)
		b->vnet = e82545_csb_vnet(dev, b->size);
	if (b->vnet != NULL)
		e82545_csb_vnet_clear(dev, b->vnet, b->size, b->head,
		    b->posted);
	if (b->ring != NULL && b->link && !b->loopback && !b->looped)
		b->single_max = MIN(dev->port->fp_frame_max,
		    MIN(rx_longest(b), b->bufsize - b->fcs));
	b->endless = b->ring != NULL && rx_endless(dev, b->size);
	if (b->ring == NULL) {
		b->counts[E82545_C_RX_BAD_RING]++;
		e82545_probe_bad(dev, E82545_C_RX_BAD_RING,
		    b->head);
	}
}

static enum e82545_rx_state
rx_run(struct e82545 *dev, struct rx_batch *b, struct frame_source *frames)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame_source *source = frames;
	struct rx_frame f;
	unsigned int n;

	/* Looped frames first; those looped during this batch wait. */
	if (b->looped)
		source = e82545_loop_source(dev);
	f.f.f_iov = iov;
	for (n = 0; n < RX_BATCH; n++) {
		if (!frame_peek(source, &f.f)) {
			if (b->looped) {
				b->looped = false;
				source = frames;
				continue;
			}
			b->end = true;
			/* The next sync returns the space of the frames. */
			return (n == 0 ? E82545_RX_IDLE : E82545_RX_MORE);
		}
		MPASS(f.f.f_niov > 1 ||
		    (f.f.f_flags & FRAME_CSUM_PARTIAL) == 0);
		if (f.f.f_niov == 1 &&
		    FAST_PATH(rx_single_buffer(dev, b, iov))) {
			frame_next(source);
			continue;
		}
		switch ((f.f.f_flags & FRAME_CSUM_PARTIAL) != 0 ?
		    rx_offload(dev, b, &f) : rx_frame(dev, b, &f)) {
		case RX_TAKEN:
			frame_next(source);
			break;
		case RX_NODESC:
			return (E82545_RX_STALLED);
		case RX_FULL:
			return (E82545_RX_MORE);
		}
	}
	return (E82545_RX_MORE);
}

/* Stores with release: a guest that sees DD sees the data. */
static void
rx_write_back(struct e82545 *dev, const struct rx_batch *b)
{
	const uint64_t *done = dev->rxq->done;
	uint32_t first, i, left, run;

	MPASS(b->ndone == 0 ||
	    (b->start + b->ndone) % b->size == b->head);
	/* Up to the end of the ring, then from its beginning. */
	first = b->start;
	for (left = b->ndone; left > 0; left -= run) {
		run = MIN(left, b->size - first);
		for (i = 0; i < run; i++)
			atomic_store_rel_64(&b->ring[first + i][1], *done++);
		first = 0;
	}
}

static void
rx_stats(struct e82545 *dev, const struct rx_batch *b)
{
	const struct e82545_tally *t = &b->tally;

	e82545_stat(dev, E82545_TPR, t->frames + b->lost);
	e82545_stat64(dev, E82545_TORL, t->bytes + b->lost_bytes);
	e82545_stat(dev, E82545_ROC, b->counts[E82545_C_RX_OVERSIZE]);
	e82545_stat(dev, E82545_GPRC, t->frames);
	e82545_stat64(dev, E82545_GORCL, t->bytes);
	e82545_stat(dev, E82545_BPRC, t->broadcast);
	e82545_stat(dev, E82545_MPRC, t->multicast);
	e82545_stat_sizes(dev, E82545_PRC64, t);
}

/*
 * RXDMT0 if the posted descriptors fall to a half, quarter or eighth of the
 * ring: section 13.4.22, RDMTS.  Before the batch is written back.  Those up to
 * the ring's end count if RDT is never reached.
 */
static uint32_t
rx_causes(struct e82545 *dev, struct rx_batch *b)
{
	uint32_t left, low;

	low = b->size >> (1 + MIN(E82545_RCTL_RDMTS(b->rctl), 2));
	if (b->endless) {
		left = b->size - b->start;
		return (left > low && b->ndone >= left - low ?
		    E82545_ICR_RXDMT0 : 0);
	}
	if (b->posted <= low || rx_room(b) > low)
		return (0);
	rx_look(dev, b);
	return (rx_room(b) <= low ? E82545_ICR_RXDMT0 : 0);
}

/*
 * Too few descriptors for the frame: stall, unless enough are posted now.
 * Returns whether it stalls.  Without a ring it always does: only a write to
 * RDBAL, RDBAH, RDLEN or RDH can change that, and those wait for the end of the
 * batch.  reg_mtx held.
 */
static bool
rx_stall(struct e82545 *dev, struct rx_batch *b)
{
	struct e82545_rxq *rxq = dev->rxq;

	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	rxq->stalled = true;
	rxq->need = b->need;
	rxq->need_rctl = b->rctl;
	if (e82545_csb_placed(dev))
		e82545_csb_rx_wait(dev, b->need);
	if (b->ring != NULL && e82545_rx_unstall(dev))
		return (false);
	e82545_stat(dev, E82545_RNBC, 1);
	b->counts[E82545_C_RX_STALL]++;
	E82545_PROBE(dev, RX_STALL, b->need);
	return (true);
}

static enum e82545_rx_state
rx_end(struct e82545 *dev, struct rx_batch *b, enum e82545_rx_state state)
{
	uint32_t causes;

	if (state == E82545_RX_IDLE)
		return (state);
	causes = rx_causes(dev, b);
	rx_write_back(dev, b);
	b->counts[E82545_C_RX_FRAME] = b->tally.frames - b->segments + b->cut;
	b->counts[E82545_C_RX_CUT] = b->cut;
	b->counts[E82545_C_RX_SEGMENT] = b->segments;
	b->counts[E82545_C_RX_UNCUT] = b->uncut;
	b->counts[E82545_C_RX_BYTE] = b->tally.bytes - b->padding -
	    (uint64_t)b->tally.frames * E82545_ETH_FCS;
	E82545_PROBE(dev, RX_BATCH, (uint32_t)b->counts[E82545_C_RX_FRAME],
	    b->counts[E82545_C_RX_BYTE], b->ndone);
	pthread_mutex_lock(&dev->reg_mtx);
	if (b->ndone > 0) {
		e82545_reg_set(dev, E82545_RDH, b->head);
		if (dev->csb.rx_on)
			e82545_csb_rx_notify(dev, causes);
		else
			e82545_intr_rx(dev, true, causes);
	}
	rx_stats(dev, b);
	dev->rxq->stalled = false;
	if (state == E82545_RX_STALLED && !rx_stall(dev, b))
		state = E82545_RX_MORE;
	pthread_mutex_unlock(&dev->reg_mtx);

	b->counts[E82545_C_RX_BATCH] = b->ndone > 0;
	e82545_count_all(dev, b->counts);
	return (state);
}

/* A batch of the port's frames, or (direct) of those that a caller has. */
static enum e82545_rx_state
rx_once(struct e82545 *dev, struct frame_source *frames, bool direct)
{
	enum e82545_rx_state state;
	struct rx_batch b;

	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	E82545_PROBE(dev, RX_LOOK);
	if (!direct)
		frame_port_sync(dev->port);
	if (e82545_csb_placed(dev))
		e82545_csb_rx_begin(dev);
	rx_begin(dev, &b);
	b.direct = direct;
	state = rx_run(dev, &b, frames);
	if (direct) {
		/* Nothing stalls, and there is no space to return. */
		rx_end(dev, &b, E82545_RX_MORE);
		if (b.end)
			state = E82545_RX_IDLE;
	} else
		state = rx_end(dev, &b, state);
	if (e82545_csb_placed(dev))
		e82545_csb_rx_end(dev);
	return (state);
}

enum e82545_rx_state
e82545_rx(struct e82545 *dev)
{
	enum e82545_rx_state state;

	state = E82545_RX_STALLED;
	e82545_lock(&dev->rx_mtx);
	if (e82545_dma(dev))
		state = rx_once(dev, dev->port->fp_source, false);
	e82545_unlock(&dev->rx_mtx);
	return (state);
}

static bool
rx_direct_allowed(struct e82545 *dev)
{
	bool stalled;

	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	if (!e82545_dma(dev))
		return (false);
	pthread_mutex_lock(&dev->reg_mtx);
	stalled = rx_stalled(dev);
	pthread_mutex_unlock(&dev->reg_mtx);
	return (!stalled);
}

void
e82545_rx_direct(struct e82545 *dev, struct frame_source *frames)
{
	if (!e82545_trylock(&dev->rx_mtx))
		return;
	if (rx_direct_allowed(dev))
		while (rx_once(dev, frames, true) == E82545_RX_MORE)
			continue;
	e82545_unlock(&dev->rx_mtx);
}
