/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Loopback: the guest receives what it sends, by RCTL.LBM (8254x SDM section
 * 13.4.22) or by the control register of the PHY (13.4.7.1).
 *
 * Frames wait in a queue as copies, because the guest may reuse its memory when
 * the transmit batch ends.  One thread appends at the tail, under tx_mtx; one
 * removes at the head, under rx_mtx.  Each writes its own index and reads the
 * other's.  Reset, save and restore hold both mutexes.
 */

#include <stdlib.h>

#include "e82545_impl.h"
#include "e82545_loop.h"
#include "e82545_snap.h"
#include "frame_cursor.h"

#define	LOOP_FRAMES	256		/* a power of two */

struct looped {
	void		*data;
	size_t		 len;		/* bytes */
};

struct e82545_loop {
	struct frame_source source;
	struct looped	 frame[LOOP_FRAMES];
	uint32_t	 head, tail;	/* free-running; atomic */
};

static bool
loop_pending(const struct e82545_loop *loop)
{
	return (atomic_load_32(&loop->head) !=
	    atomic_load_acq_32(&loop->tail));
}

static bool
loop_peek(struct frame_source *source, struct frame *frame)
{
	const struct e82545_loop *loop =
	    __containerof(source, struct e82545_loop, source);
	const struct looped *l;

	if (!loop_pending(loop))
		return (false);
	l = &loop->frame[loop->head % LOOP_FRAMES];
	frame->f_iov[0].iov_base = l->data;
	frame->f_iov[0].iov_len = l->len;
	frame_set(frame, 1, l->len);
	return (true);
}

static void
loop_next(struct frame_source *source)
{
	struct e82545_loop *loop =
	    __containerof(source, struct e82545_loop, source);

	MPASS(loop_pending(loop));
	free(loop->frame[loop->head % LOOP_FRAMES].data);
	atomic_store_rel_32(&loop->head, loop->head + 1);
}

struct e82545_loop *
e82545_loop_create(void)
{
	struct e82545_loop *loop;

	loop = calloc(1, sizeof(*loop));
	if (loop == NULL)
		return (NULL);
	loop->source.fs_peek = loop_peek;
	loop->source.fs_next = loop_next;
	/* The indices wrap soon: whatever runs long enough sees it early. */
	loop->head = loop->tail = UINT32_MAX;
	return (loop);
}

static void
loop_clear(struct e82545_loop *loop)
{
	while (loop->head != loop->tail)
		free(loop->frame[loop->head++ % LOOP_FRAMES].data);
}

void
e82545_loop_destroy(struct e82545_loop *loop)
{
	loop_clear(loop);
	free(loop);
}

void
e82545_loop_reset(struct e82545 *dev)
{
	e82545_assert_all(dev);
	loop_clear(dev->loop);
}

bool
e82545_loopback(struct e82545 *dev)
{
	uint32_t lbm;

	lbm = e82545_reg(dev, E82545_RCTL) & E82545_RCTL_LBM;
	return (lbm == E82545_RCTL_LBM_MAC || lbm == E82545_RCTL_LBM_TCVR ||
	    atomic_load_bool(&dev->phy_loopback));
}

bool
e82545_loop_send(struct e82545 *dev, const struct frame *frame)
{
	struct e82545_loop *loop = dev->loop;
	struct frame_cursor cur;
	struct looped *l;

	mtx_assert(&dev->tx_mtx.mtx, MA_OWNED);
	mtx_assert(&dev->rx_mtx.mtx, MA_NOTOWNED);
	MPASS(loop->tail - atomic_load_32(&loop->head) <= LOOP_FRAMES);
	if (loop->tail - atomic_load_acq_32(&loop->head) == LOOP_FRAMES)
		return (false);
	l = &loop->frame[loop->tail % LOOP_FRAMES];
	l->data = malloc(frame->f_len);
	if (l->data == NULL)
		return (false);
	l->len = frame->f_len;
	frame_cursor_init(&cur, frame->f_iov);
	frame_cursor_copy(&cur, l->data, l->len);
	atomic_store_rel_32(&loop->tail, loop->tail + 1);
	return (true);
}

bool
e82545_loop_pending(const struct e82545 *dev)
{
	return (loop_pending(dev->loop));
}

struct frame_source *
e82545_loop_source(struct e82545 *dev)
{
	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	return (&dev->loop->source);
}

void
e82545_loop_snap(struct e82545 *dev, struct e82545_snap *s)
{
	struct e82545_loop *loop = dev->loop;
	struct looped *l;
	uint32_t i, len, n;

	n = loop->tail - loop->head;
	e82545_snap_u32(s, &n, LOOP_FRAMES);
	for (i = 0; i < n && !s->bad; i++) {
		l = &loop->frame[(loop->head + i) % LOOP_FRAMES];
		len = l->len;
		e82545_snap_u32(s, &len, E82545_FRAME_MAX);
		e82545_snap_check(s, len >= E82545_ETH_HDRLEN);
		if (s->restore != NULL) {
			l->data = malloc(len);
			s->nomem = l->data == NULL;
			e82545_snap_check(s, !s->nomem);
			l->len = len;
			loop->tail++;
		}
		e82545_snap_bytes(s, l->data, len);
	}
}
