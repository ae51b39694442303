/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What an 82574L does that an 82545EM does not: MSI-X, e82574_intr.c; extended
 * receive descriptors, e82574_rx.c; RSS, e82574_rss.c; its time, e82574.c.
 * The caller must hold reg_mtx, unless a function says another mutex.
 */

#ifndef _E82574_H_
#define	_E82574_H_

#include <dev/e1000/e82574_reg.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct e82545;
struct e82545_moder_event;
struct e82545_rxq;
struct frame;
struct e82545_snap;

struct e82574_vector {
	uint64_t	ev_last_ns;	/* when a message was sent; 0: not
					   since reset */
	bool		ev_held;	/* a cause waits for EITR */
};

struct e82574 {
	/* MSI-X. */
	bool		xs_msix;	/* the guest has enabled it */
	uint32_t	xs_sent;	/* causes in ICR and IMS of which a
					   message was sent */
	struct e82574_vector xs_vector[E82574_VECTORS];
	/* SYSTIM was so much at that time. */
	uint64_t	xs_systim;
	uint64_t	xs_systim_ns;
};

/* What e82574_moderate() depends on, besides causes and timers. */
struct e82574_event {
	uint64_t	xe_now_ns;
	uint32_t	xe_icr, xe_ims, xe_iam, xe_eiac, xe_ivar, xe_ctrl_ext;
	uint16_t	xe_itr_256ns[E82574_VECTORS];	/* in force */
};

/* The result. */
struct e82574_verdict {
	struct e82574	ed_next;
	uint32_t	ed_icr, ed_ims;	/* now */
	uint32_t	ed_messages;	/* vectors that send one, as bits */
	uint32_t	ed_put_off;	/* vectors that EITR delays now */
	uint64_t	ed_deadline_ns;	/* call again then; 0: no need */
};

/*
 * Decide which vectors send a message: a pure function.  e82574_intr.c says
 * how.
 */
struct e82574_verdict e82574_moderate(const struct e82574 *state,
	    const struct e82574_event *event);
/* Handle an event with MSI-X on, as intr_event() in e82545_intr.c does. */
void	e82574_intr_event(struct e82545 *dev, struct e82545_moder_event *ev);

/* RSS: what does not change within a batch. */
struct e82574_rss {
	uint32_t	er_mrqc, er_rfctl;
	uint16_t	er_vet;
	uint8_t		er_key[E82574_RSSRK_COUNT * 4];
};

/* Bytes that have a hash, at most: the addresses and ports of IPv6. */
#define	E82574_RSS_INPUT	36

/*
 * Return whether frames are for two queues, if descriptors are extended.
 * rx_mtx held.
 */
bool	e82574_rss_on(const struct e82545 *dev);
/* Read what does not change within a batch.  rx_mtx held. */
void	e82574_rss_begin(const struct e82545 *dev, struct e82574_rss *r);
/*
 * Return the queue that a frame is for, and set *lower to the first half of its
 * last descriptor.  rx_mtx held.
 */
unsigned int e82574_rss_queue(const struct e82545 *dev,
	    const struct e82574_rss *r, const struct frame *f,
	    uint64_t *lower);
/* Return the hash of up to E82574_RSS_INPUT bytes: a pure function. */
uint32_t e82574_rss_hash(const uint8_t key[E82574_RSSRK_COUNT * 4],
	    const uint8_t *data, size_t len);

/* Reset, save or restore, and salvage what is the 82574L's.  All locks held. */
void	e82574_reset(struct e82545 *dev);
void	e82574_snap(struct e82545 *dev, struct e82545_snap *s);
void	e82574_salvage(struct e82545 *dev, const struct e82545 *old);

/* Access ICR, ICS, IVAR and EITR, for the register table. */
uint32_t e82574_icr_read(struct e82545 *dev, uint32_t off);
void	e82574_icr_write(struct e82545 *dev, uint32_t off, uint32_t value);
uint32_t e82574_ics_read(struct e82545 *dev, uint32_t off);
void	e82574_vector_write(struct e82545 *dev, uint32_t off, uint32_t value);
/* Return the vectors, as bits, that have no cause which is enabled. */
uint32_t e82574_vectors_off(const struct e82545 *dev);

/*
 * Return the interval in force, as e82545_itr() does, of the vector that
 * received frames have, or of INTx and MSI.
 */
uint16_t e82574_itr(const struct e82545 *dev);

/* Return SYSTIM now. */
uint64_t e82574_systim(struct e82545 *dev);

/*
 * Store the time stamp of a packet that was sent at this time by eo_now(), and
 * whose descriptor asked for one.
 */
void	e82574_tx_stamp(struct e82545 *dev, uint64_t now_ns);
/*
 * Store the time stamp of a frame that has just been received, if it gets one.
 * Returns whether it does: its last descriptor must say so, E82574_RXD_STAMP.
 * rx_mtx held, and no other mutex.
 */
bool	e82574_rx_stamp(struct e82545 *dev, const struct frame *f);

/*
 * Return the value of RXCSUM as an 82545EM has it: IPV6OFL is set unless RFCTL
 * turns checksums of IPv6 packets off.
 */
uint32_t e82574_rxcsum(const struct e82545 *dev, uint32_t rxcsum);

/*
 * Write back the first `n' descriptors of a batch of `q', from `start' on,
 * except the first, as rx_store() does, in the extended format.  rx_mtx held.
 */
void	e82574_rx_store(const struct e82545 *dev, uint64_t (*ring)[2],
	    uint32_t size, uint32_t start, const struct e82545_rxq *q,
	    uint32_t n);
/*
 * Store the `which'-th descriptor of the batch, at `i' of the ring.  rx_mtx
 * held.
 */
void	e82574_rx_store_one(const struct e82545 *dev, uint64_t (*ring)[2],
	    uint32_t i, const struct e82545_rxq *q, uint32_t which);
/*
 * Return the word of that descriptor that has DD, as it is stored.  rx_mtx
 * held.
 */
uint64_t e82574_rx_status(const struct e82545 *dev, const struct e82545_rxq *q,
	    uint32_t which);
/*
 * Find how many of `len' bytes are in each of the four buffers of a descriptor,
 * and return the sum.  UINT32_MAX: the sizes of the buffers.  `split' is 0 if
 * the packet is not split, else E82574_HEADER_SPLIT and how many bytes of
 * headers are in the first buffer.  rx_mtx held.
 */
uint32_t e82574_rx_lens(const struct e82545 *dev, uint32_t len, uint16_t split,
	    uint32_t lens[E82574_SPLIT_BUFFERS]);
/*
 * Return the bytes of headers that are split from a frame's payload, less
 * `strip', which the guest does not get; 0 if the frame is not split.  rx_mtx
 * held.
 */
size_t	e82574_rx_header(const struct e82545 *dev, const struct frame *f,
	    size_t strip);

#endif /* !_E82574_H_ */
