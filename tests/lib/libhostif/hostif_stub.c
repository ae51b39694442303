/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <sys/param.h>
#include <sys/socket.h>
#include <sys/systm.h>

#include <stdarg.h>

#include <atf-c.h>

#include "hostif_stub.h"

static union {
	struct netmap_ring ring;
	uint8_t		 bytes[sizeof(struct netmap_ring) +
			    RING_SLOTS * sizeof(struct netmap_slot)];
} tx_ring, rx_ring;
struct vale_common common;
static struct frame	 txframe[RING_SLOTS], rxframe[RING_SLOTS];
struct vale_desc	 port = { .common = &common,
    .txframe = txframe, .rxframe = rxframe, .txring = &tx_ring.ring,
    .rxring = &rx_ring.ring };
struct hostif		 hi = { .port = &port, .up = true };
struct frame		 frames[600];
uint32_t		 nframes;
struct sends		 sends[8];
unsigned int		 nsends, nsent;

bool
hostif_peek(struct hostif *one __unused, uint32_t *at, struct frame *frame)
{
	struct iovec *iov = frame->f_iov;

	if (*at == nframes)
		return (false);
	*frame = frames[*at];
	memcpy(iov, frame->f_iov, frame->f_niov * sizeof(*iov));
	frame->f_iov = iov;
	++*at;
	return (true);
}

/* A frame of 13 bytes is not taken. */
bool
hostif_takes(struct hostif *one, const struct frame *frame)
{
	return (one->up && frame->f_len != 13);
}

void
hostif_log(struct hostif *one __unused, const char *fmt, ...)
{
	va_list ap;

	note("log ");
	va_start(ap, fmt);
	note_va(fmt, ap);
	va_end(ap);
	note("; ");
}

struct sends
sends_next(const void *p, size_t len, int flags, const void *to,
    socklen_t tolen)
{
	struct sends next = { .take = UINT32_MAX };

	ATF_CHECK(p == NULL && len == 0 && to == NULL && tolen == 0);
	ATF_CHECK_EQ(MSG_DONTWAIT, flags);
	if (nsends > 0) {
		next = sends[nsent];
		nsent += nsent + 1 < nsends;
	}
	return (next);
}

void
hostif_stub_init(int first_fd)
{
	unsigned int i;

	*(uint32_t *)(uintptr_t)&tx_ring.ring.num_slots = RING_SLOTS;
	*(uint32_t *)(uintptr_t)&rx_ring.ring.num_slots = RING_SLOTS;
	for (i = 0; i < nitems(hi.fds.hf_fd); i++)
		hi.fds.hf_fd[i] = first_fd + i;
	strlcpy(hi.fds.hf_name, "h0", sizeof(hi.fds.hf_name));
}

void
counted(enum hostif_counter c, uint64_t n)
{
	ATF_CHECK_EQ_MSG(n, hi.counters[c], "counter %d: %ju", c,
	    (uintmax_t)hi.counters[c]);
	hi.counters[c] = 0;
}

void
counted_all(void)
{
	int c;

	for (c = 0; c < HOSTIF_NCOUNTERS; c++)
		counted(c, 0);
}
