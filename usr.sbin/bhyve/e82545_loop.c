/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Loopback: what the guest sends comes back to it, by RCTL.LBM (8254x SDM
 * section 13.4.22) or by the control register of the PHY (13.4.7.1).
 *
 * Frames wait in a queue, copied, since the guest's memory is its own again
 * when a batch of transmit ends.  One thread puts in at the tail, under tx_mtx,
 * one takes out at the head, under rx_mtx; each writes its own index and reads
 * the other's.  The queue is emptied, saved and restored with both held.
 */

#include <sys/param.h>

#include <stdlib.h>

#include "e82545_impl.h"
#include "e82545_iov.h"
#include "e82545_snap.h"

#define	LOOP_FRAMES	256		/* a power of two */

struct looped {
	void		*data;
	size_t		 len;		/* bytes */
};

struct e82545_loop {
	struct looped	 frame[LOOP_FRAMES];
	uint32_t	 head, tail;	/* free-running; atomic */
};

struct e82545_loop *
e82545_loop_create(void)
{
	return (calloc(1, sizeof(struct e82545_loop)));
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
	loop_clear(dev->loop);
}

bool
e82545_loopback(struct e82545 *dev)
{
	uint32_t lbm;

	lbm = e82545_reg(dev, E82545_RCTL) & E82545_RCTL_LBM;
	return (lbm == E82545_RCTL_LBM_MAC || lbm == E82545_RCTL_LBM_TCVR ||
	    __atomic_load_n(&dev->phy_loopback, __ATOMIC_RELAXED));
}

bool
e82545_loop_send(struct e82545 *dev, const struct iovec *iov, int niov)
{
	struct e82545_loop *loop = dev->loop;
	struct e82545_cursor cur;
	struct looped *l;
	size_t len;
	int i;

	if (loop->tail - __atomic_load_n(&loop->head, __ATOMIC_ACQUIRE) ==
	    LOOP_FRAMES)
		return (false);
	len = 0;
	for (i = 0; i < niov; i++)
		len += iov[i].iov_len;
	l = &loop->frame[loop->tail % LOOP_FRAMES];
	l->data = malloc(len);
	if (l->data == NULL)
		return (false);
	l->len = len;
	e82545_cursor_init(&cur, iov);
	e82545_cursor_copy(&cur, l->data, len);
	__atomic_store_n(&loop->tail, loop->tail + 1, __ATOMIC_RELEASE);
	return (true);
}

bool
e82545_loop_waits(const struct e82545 *dev)
{
	const struct e82545_loop *loop = dev->loop;

	return (__atomic_load_n(&loop->head, __ATOMIC_RELAXED) !=
	    __atomic_load_n(&loop->tail, __ATOMIC_ACQUIRE));
}

static int
loop_peek(void *arg, struct iovec *iov)
{
	const struct e82545 *dev = arg;
	const struct looped *l;

	if (!e82545_loop_waits(dev))
		return (0);
	l = &dev->loop->frame[dev->loop->head % LOOP_FRAMES];
	iov[0].iov_base = l->data;
	iov[0].iov_len = l->len;
	return (1);
}

static void
loop_next(void *arg)
{
	struct e82545_loop *loop = ((struct e82545 *)arg)->loop;

	free(loop->frame[loop->head % LOOP_FRAMES].data);
	__atomic_store_n(&loop->head, loop->head + 1, __ATOMIC_RELEASE);
}

struct e82545_source
e82545_loop_source(struct e82545 *dev)
{
	return ((struct e82545_source){ loop_peek, loop_next, dev });
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
		if (s->restore != NULL) {
			l->data = malloc(MAX(len, 1));
			s->nomem = l->data == NULL;
			e82545_snap_check(s, !s->nomem);
			if (s->bad) {
				free(l->data);
				return;
			}
			l->len = len;
			loop->tail++;
		}
		e82545_snap_bytes(s, l->data, len);
	}
}
