/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The network of e82545_host.h: it records the frames sent, and delivers those
 * injected.
 *
 * Two rules of struct frame_port are tested: a frame sent is read only at the
 * flush, and a frame received is freed as soon as it is taken.
 */

#include <sys/types.h>

#include <stdlib.h>
#include <string.h>

#include "e82545_host.h"
#include "e82545_host_impl.h"
#include "require.h"

static struct host *
host_of_port(struct frame_port *port)
{
	return (__containerof(port, struct host, port));
}

static bool
host_send(struct frame_port *port, const struct frame *frame)
{
	struct host *h = host_of_port(port);
	const struct iovec *iov = frame->f_iov;
	size_t len;
	int i, niov = frame->f_niov;

	REQUIRE(niov > 0 && niov <= FRAME_MAXIOV);
	len = 0;
	for (i = 0; i < niov; i++) {
		REQUIRE(iov[i].iov_len > 0 || frame->f_flags != 0);
		len += iov[i].iov_len;
	}
	REQUIRE(len == frame->f_len);
	REQUIRE(frame_longest(frame) <= E82545_FRAME_MAX);
	if (frame->f_flags != 0)
		REQUIRE(port->fp_offloads);
	else
		REQUIRE(frame->f_gso_type == FRAME_GSO_NONE);
	if (h->tx_hook != NULL)
		h->tx_hook(h);
	pthread_mutex_lock(&h->mtx);
	if (h->tx_space == 0) {
		pthread_mutex_unlock(&h->mtx);
		return (false);
	}
	h->tx_space--;
	REQUIRE(h->ntx < HOST_FRAMES);
	h->tx[h->ntx].len = len;
	h->tx[h->ntx].nfrags = niov;
	h->tx[h->ntx].frame = *frame;
	h->tx_iov[h->ntx] = calloc(niov, sizeof(*iov));
	REQUIRE(h->tx_iov[h->ntx] != NULL);
	memcpy(h->tx_iov[h->ntx], iov, niov * sizeof(*iov));
	h->ntx++;
	REQUIRE(h->ntx - h->ntx_flushed <= E82545_TX_FRAMES);
	pthread_mutex_unlock(&h->mtx);
	return (true);
}

static void
host_tx_flatten(struct host *h, unsigned int n)
{
	struct host_frame *f = &h->tx[n];
	size_t off;
	int i;

	f->data = malloc(f->len);
	REQUIRE(f->data != NULL);
	off = 0;
	for (i = 0; i < f->nfrags; i++) {
		memcpy(f->data + off, h->tx_iov[n][i].iov_base,
		    h->tx_iov[n][i].iov_len);
		off += h->tx_iov[n][i].iov_len;
	}
	free(h->tx_iov[n]);
	h->tx_iov[n] = NULL;
}

static void
host_tx_forget(struct host *h)
{
	unsigned int i;

	for (i = 0; i < h->ntx; i++) {
		free(h->tx[i].data);
		h->tx[i].data = NULL;
	}
	h->ntx = h->ntx_flushed = 0;
}

static void
host_flush(struct frame_port *port)
{
	struct host *h = host_of_port(port);

	pthread_mutex_lock(&h->mtx);
	h->nflush++;
	while (h->ntx_flushed < h->ntx)
		host_tx_flatten(h, h->ntx_flushed++);
	if (h->tx_discard)
		host_tx_forget(h);
	pthread_mutex_unlock(&h->mtx);
}

static struct host *
host_of_source(struct frame_source *source)
{
	return (__containerof(source, struct host, source));
}

static bool
host_peek(struct frame_source *source, struct frame *frame)
{
	struct host *h = host_of_source(source);
	struct host_frame *f;
	bool pending;

	pthread_mutex_lock(&h->mtx);
	pending = h->rx_head != h->rx_tail;
	if (pending) {
		f = &h->rx[h->rx_head % HOST_FRAMES];
		memcpy(frame->f_iov, h->rx_iov[h->rx_head % HOST_FRAMES],
		    f->nfrags * sizeof(*frame->f_iov));
		f->frame.f_iov = frame->f_iov;
		*frame = f->frame;
	}
	pthread_mutex_unlock(&h->mtx);
	return (pending);
}

static void
host_rx_free(struct host *h)
{
	struct host_frame *f = &h->rx[h->rx_head % HOST_FRAMES];
	struct iovec *iov = h->rx_iov[h->rx_head % HOST_FRAMES];
	int i;

	for (i = 0; i < f->nfrags; i++)
		free(iov[i].iov_base);
	free(iov);
	h->rx_head++;
}

static void
host_next(struct frame_source *source)
{
	struct host *h = host_of_source(source);

	if (h->rx_hook != NULL)
		h->rx_hook(h);
	pthread_mutex_lock(&h->mtx);
	REQUIRE(h->rx_head != h->rx_tail);
	host_rx_free(h);
	h->rx_unsynced++;
	pthread_mutex_unlock(&h->mtx);
}

static void
host_sync(struct frame_port *port)
{
	struct host *h = host_of_port(port);

	pthread_mutex_lock(&h->mtx);
	h->nsync++;
	h->rx_unsynced = 0;
	pthread_mutex_unlock(&h->mtx);
}

static uint64_t
host_missed(const struct frame_port *port)
{
	return (__containerof(port, const struct host, port)->missed);
}

const struct frame_port_ops host_port_ops = {
	.fpo_send = host_send,
	.fpo_flush = host_flush,
	.fpo_sync = host_sync,
	.fpo_missed = host_missed,
};

void
host_net_init(struct host *h)
{
	h->tx_space = UINT32_MAX;
	h->source.fs_peek = host_peek;
	h->source.fs_next = host_next;
	h->port.fp_ops = &host_port_ops;
	h->port.fp_source = &h->source;
	h->port.fp_frame_max = UINT32_MAX;
}

void
host_net_destroy(struct host *h)
{
	unsigned int i;

	for (i = h->ntx_flushed; i < h->ntx; i++)
		free(h->tx_iov[i]);
	host_tx_forget(h);
	while (h->rx_head != h->rx_tail)
		host_rx_free(h);
}

void
host_inject(struct host *h, const void *data, size_t len, int nfrags)
{
	struct frame frame;

	frame_set(&frame, nfrags, len);
	host_inject_offload(h, &frame, data, len, nfrags);
}

void
host_inject_offload(struct host *h, const struct frame *frame,
    const void *data, size_t len, int nfrags)
{
	const uint8_t *p = data;
	struct host_frame *f;
	struct iovec *iov;
	size_t left, n;
	int i;

	REQUIRE(nfrags > 0 && nfrags <= FRAME_MAXIOV);
	REQUIRE(len >= (size_t)nfrags);
	iov = calloc(nfrags, sizeof(*iov));
	REQUIRE(iov != NULL);
	left = len;
	for (i = 0; i < nfrags; i++) {
		n = left / (nfrags - i);
		iov[i].iov_base = malloc(n);
		REQUIRE(iov[i].iov_base != NULL);
		iov[i].iov_len = n;
		memcpy(iov[i].iov_base, p, n);
		p += n;
		left -= n;
	}
	pthread_mutex_lock(&h->mtx);
	REQUIRE(h->rx_tail - h->rx_head < HOST_FRAMES);
	f = &h->rx[h->rx_tail % HOST_FRAMES];
	f->nfrags = nfrags;
	f->frame = *frame;
	f->frame.f_niov = nfrags;
	f->frame.f_len = len;
	h->rx_iov[h->rx_tail % HOST_FRAMES] = iov;
	h->rx_tail++;
	h->ready = true;
	pthread_cond_signal(&h->rx_cv);
	pthread_mutex_unlock(&h->mtx);
}

void
host_inject_tcp(struct host *h, uint8_t *data, size_t len, uint16_t mss)
{
	struct frame frame;

	data[12] = 8;
	data[13] = 0;
	data[14] = 0x45;
	data[20] = data[21] = 0;
	data[23] = 6;
	data[46] = 0x50;
	memset(&frame, 0, sizeof(frame));
	frame_set(&frame, 1, len);
	frame.f_flags = FRAME_CSUM_PARTIAL;
	frame.f_csum_start = 34;
	frame.f_csum_offset = 16;
	if (mss != 0) {
		frame.f_gso_type = FRAME_GSO_TCPV4;
		frame.f_gso_size = mss;
		frame.f_hdr_len = 54;
	}
	host_inject_offload(h, &frame, data, len, 2);
}

unsigned int
host_rx_pending(struct host *h)
{
	unsigned int n;

	pthread_mutex_lock(&h->mtx);
	n = h->rx_tail - h->rx_head;
	pthread_mutex_unlock(&h->mtx);
	return (n);
}

unsigned int
host_sent(struct host *h)
{
	unsigned int n;

	pthread_mutex_lock(&h->mtx);
	n = h->ntx_flushed;
	pthread_mutex_unlock(&h->mtx);
	return (n);
}

const struct host_frame *
host_sent_frame(struct host *h, unsigned int n)
{
	REQUIRE(n < host_sent(h));
	return (&h->tx[n]);
}

void
host_sent_clear(struct host *h)
{
	pthread_mutex_lock(&h->mtx);
	REQUIRE(h->ntx == h->ntx_flushed);
	host_tx_forget(h);
	pthread_mutex_unlock(&h->mtx);
}
