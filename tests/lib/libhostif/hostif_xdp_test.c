/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The rings of AF_XDP of an attached interface: each entry, each call and each
 * counter.  hostif_rings_test has what a hostile kernel may write.
 */

#include <sys/param.h>

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "hostif_xdp_kernel.h"
#include "test.h"

#include "hostif_xdp.c"

TEST(start, "Each step of the start, what is undone if it fails, and the end")
{
	static const char *const steps[] = { "calloc; ", "init; add; ",
	    "memory; ", "offsets 0; ", "map 0 0 33024; ",
	    "map 0 0x100000000 17408; ", "map 0 0x80000000 33280; ",
	    "map 0 0x180000000 18432; ", "offsets 1; ", "map 1 0 33024; ",
	    "map 1 0x100000000 17408; " };
	static const int errors[] = { EIO, ENOSPC, EPERM, EIO };
	char expected[512];
	const struct xdp *xd;
	unsigned int i, n;

	for (n = 0; n < nitems(steps); n++) {
		prepare();
		fail_call = n + 1;
		expected[0] = '\0';
		for (i = 0; i <= n; i++)
			strlcat(expected, steps[i], sizeof(expected));
		if (n > 0)
			strlcat(expected, "reset; remove; free; ",
			    sizeof(expected));
		ATF_CHECK_STREQ(n < 3 ? "memory" : "rings",
		    hi.ops->ho_start(&hi));
		ATF_CHECK_EQ(errors[MIN(n, 3)], errno);
		CALLS(expected);
		ATF_CHECK_EQ(0, nmapped);
	}
	fail_call = 0;
	prepare();
	short_offsets = true;
	ATF_CHECK_STREQ("rings", hi.ops->ho_start(&hi));
	CALLS("calloc; init; add; memory; offsets 0; reset; remove; free; ");
	short_offsets = false;
	prepare();
	ATF_CHECK(hi.ops->ho_start(&hi) == NULL);
	expected[0] = '\0';
	for (i = 0; i < nitems(steps); i++)
		strlcat(expected, steps[i], sizeof(expected));
	strlcat(expected, "ask 9 of 7; ", sizeof(expected));
	CALLS(expected);
	/* The kernel has all chunks to receive. */
	for (i = 0; i < SLOTS; i++) {
		ATF_CHECK_EQ(i * 4096UL, *chunk(FILL0, i));
		ATF_CHECK_EQ((SLOTS + i) * 4096UL, *chunk(FILL1, i));
	}
	ATF_CHECK_EQ(SLOTS, *word(FILL0, FILL_PRODUCER));
	ATF_CHECK_EQ(SLOTS, *word(FILL1, FILL_PRODUCER));
	ATF_CHECK_EQ(0, *word(TX, TX_PRODUCER));
	/* What is behind the last one. */
	ATF_CHECK_EQ(0, *word(FILL0, FILL_ENTRIES + SLOTS * 8));
	xd = hi.data;
	ATF_CHECK_EQ(QUEUES, xd->xd_ethtool.he_queues);
	ATF_CHECK_EQ(SLOTS, xd->xd_nfree);
	for (i = 0; i < SLOTS; i++)
		ATF_CHECK_EQ(FIRST + i, xd->xd_free[i]);
	ATF_CHECK_EQ(6, nmapped);
	hi.ops->ho_stop(&hi);
	CALLS("reset; remove; free; ");
	ATF_CHECK_EQ(0, nmapped);
}

/* The kernel receives `n' frames in a queue, with numbers from `number' on. */
static void
receive(unsigned int queue, uint32_t n, uint32_t number)
{
	const unsigned int ring = queue == 0 ? RX0 : RX1;
	uint32_t i = *word(ring, RX_PRODUCER);
	uint64_t addr;

	for (; n > 0; n--, i++, number++) {
		addr = ((uint64_t)queue * SLOTS + i % SLOTS) * 4096 + 256;
		*desc(ring, i) = (struct xdp_desc){ .addr = addr, .len = 60 };
		memcpy(memory + addr, &number, sizeof(number));
	}
	*word(ring, RX_PRODUCER) = i;
}

/* The switch has got `n' frames with numbers from `number' on. */
static void
is_got(uint32_t n, uint32_t number)
{
	uint32_t i;

	ATF_CHECK_EQ(n, ngot);
	for (i = 0; i < n; i++) {
		ATF_CHECK_EQ(60, got_len[i]);
		ATF_CHECK_EQ(number + i, *(uint32_t *)(void *)got[i]);
	}
	counted(HOSTIF_C_RX_FRAME, n);
	counted(HOSTIF_C_RX_BYTE, n * 60);
	counted(HOSTIF_C_RX_BATCH, n > 0);
	counted_all();
	ngot = 0;
}

/* So many frames were received in a queue, and the kernel has the chunks. */
static void
refilled(unsigned int queue, uint32_t total)
{
	const unsigned int fill = queue == 0 ? FILL0 : FILL1;
	uint32_t i;

	ATF_CHECK_EQ(total, *word(queue == 0 ? RX0 : RX1, RX_CONSUMER));
	ATF_CHECK_EQ(SLOTS + total, *word(fill, FILL_PRODUCER));
	for (i = 0; i < total; i++)
		ATF_CHECK_EQ(((uint64_t)queue * SLOTS + i % SLOTS) * 4096 +
		    256, *chunk(fill, i));
}

TEST(receive, "Queues in turn, at most 256 frames of one at a time, around the "
    "rings; the kernel gets the chunks back, and is woken if it sleeps")
{
	uint32_t round;

	start();
	ATF_CHECK_EQ(0, hi.ops->ho_receive(&hi));
	CALLS("");
	counted_all();
	receive(0, 300, 1000);
	receive(1, 10, 2000);
	ATF_CHECK_EQ(256, hi.ops->ho_receive(&hi));
	is_got(256, 1000);
	ATF_CHECK_EQ(10, hi.ops->ho_receive(&hi));
	is_got(10, 2000);
	refilled(0, 256);
	refilled(1, 10);
	ATF_CHECK_EQ(44, hi.ops->ho_receive(&hi));
	is_got(44, 1256);
	CALLS("sync 256; sync 10; sync 44; ");
	refilled(0, 300);
	/* The second one is next. */
	receive(0, 1, 1000);
	receive(1, 1, 2000);
	ATF_CHECK_EQ(1, hi.ops->ho_receive(&hi));
	is_got(1, 2000);
	ATF_CHECK_EQ(1, hi.ops->ho_receive(&hi));
	is_got(1, 1000);
	CALLS("sync 1; sync 1; ");
	*word(FILL1, FILL_FLAGS) = XDP_RING_NEED_WAKEUP | 2;
	*word(FILL0, FILL_FLAGS) = 2;
	receive(0, 1, 1000);
	receive(1, 1, 2000);
	ATF_CHECK_EQ(1, hi.ops->ho_receive(&hi));
	ATF_CHECK_EQ(1, hi.ops->ho_receive(&hi));
	CALLS("sync 1; wake 1; sync 1; ");
	ngot = 0;
	memset(hi.counters, 0, sizeof(hi.counters));
	/* Around the ring. */
	for (round = 0; round < 20; round++) {
		receive(0, 256, round * 256);
		ATF_CHECK_EQ(256, hi.ops->ho_receive(&hi));
		is_got(256, round * 256);
	}
	refilled(0, 302 + 20 * 256);
}

TEST(receive_dropped, "A frame that is dropped gives its chunk back, too; all "
    "are while the interface takes VLAN tags out")
{
	struct xdp *xd;

	start();
	xd = hi.data;
	receive(0, 3, 5);
	desc(RX0, 0)->len = 13;
	desc(RX0, 2)->len = 4097;
	ATF_CHECK_EQ(3, hi.ops->ho_receive(&hi));
	counted(HOSTIF_C_RX_BAD, 2);
	is_got(1, 6);
	refilled(0, 3);
	xd->xd_ethtool.he_untags = true;
	xd->xd_ethtool.he_untags_ad = true;
	receive(1, 4, 5);
	ATF_CHECK_EQ(4, hi.ops->ho_receive(&hi));
	counted(HOSTIF_C_RX_UNTAGGED, 4);
	counted(HOSTIF_C_RX_BATCH, 1);
	is_got(0, 0);
	refilled(1, 4);
	xd->xd_ethtool.he_untags = false;
	receive(1, 4, 5);
	ATF_CHECK_EQ(4, hi.ops->ho_receive(&hi));
	is_got(4, 5);
	/* Its producer is where it cannot be. */
	*word(RX0, RX_PRODUCER) = 2;
	ATF_CHECK_EQ(256, hi.ops->ho_receive(&hi));
}

/* `n' frames of `len' bytes wait in the port. */
static void
put(uint32_t n, uint32_t len)
{
	static uint8_t bytes[5000];
	static struct iovec iov[nitems(frames)][2];
	uint32_t i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + i / 251);
	for (; n > 0; n--, nframes++) {
		ATF_REQUIRE(nframes < nitems(frames));
		iov[nframes][0] = (struct iovec){ bytes, len / 2 };
		iov[nframes][1] = (struct iovec){ bytes + len / 2,
		    len - len / 2 };
		frames[nframes] = (struct frame){ .f_iov = iov[nframes],
		    .f_niov = 2, .f_len = len };
		hi.port->rxring->tail = nframes + 1;
	}
}

/* There are none any more. */
static void
port_empty(void)
{
	ATF_CHECK_EQ(nframes, hi.port->rxring->head);
	ATF_CHECK_EQ(nframes, hi.port->rxring->cur);
	nframes = hi.port->rxring->head = hi.port->rxring->cur = 0;
	hi.port->rxring->tail = 0;
}

/* Entry i of the transmit ring is a frame of this length, in this chunk. */
static void
is_sent(uint32_t i, uint32_t at, uint32_t len)
{
	const struct xdp_desc *d = desc(TX, i);
	uint32_t k;

	ATF_CHECK_EQ(at * 4096UL, d->addr);
	ATF_CHECK_EQ(len, d->len);
	ATF_CHECK_EQ(0, d->options);
	for (k = 0; k < len; k++)
		if (memory[d->addr + k] != (uint8_t)(k * 7 + k / 251))
			atf_tc_fail("byte %u of %u", k, len);
}

TEST(send, "Frames fill chunks, at most 256 at a time; the kernel is called if "
    "it sleeps")
{
	uint32_t i;

	start();
	memset(maps[TX] + TX_ENTRIES, 0xa5, SLOTS * sizeof(struct xdp_desc));
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	counted_all();
	put(1, 60);
	put(1, 4096);
	put(1, 4097);
	put(1, 13);
	put(1, 61);
	ATF_CHECK_EQ(5, hi.ops->ho_send(&hi));
	port_empty();
	ATF_CHECK_EQ(3, *word(TX, TX_PRODUCER));
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	is_sent(0, FIRST + SLOTS - 1, 60);
	is_sent(1, FIRST + SLOTS - 2, 4096);
	is_sent(2, FIRST + SLOTS - 3, 61);
	counted(HOSTIF_C_TX_FRAME, 3);
	counted(HOSTIF_C_TX_BYTE, 60 + 4096 + 61);
	counted(HOSTIF_C_TX_MTU, 1);
	counted(HOSTIF_C_TX_BATCH, 1);
	counted(HOSTIF_C_TX_CALL, 1);
	counted_all();
	/* It looks by itself. */
	*word(TX, TX_FLAGS) = 2;
	put(300, 60);
	ATF_CHECK_EQ(256, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(256, hi.port->rxring->head);
	ATF_CHECK_EQ(3 + 256, *word(TX, TX_PRODUCER));
	ATF_CHECK_EQ(44, hi.ops->ho_send(&hi));
	port_empty();
	counted(HOSTIF_C_TX_FRAME, 300);
	counted(HOSTIF_C_TX_BYTE, 300 * 60);
	counted(HOSTIF_C_TX_BATCH, 2);
	counted_all();
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	for (i = 0; i < 300; i++)
		is_sent(3 + i, FIRST + SLOTS - 4 - i, 60);
	/* Now it sleeps; down, it is left alone. */
	*word(TX, TX_FLAGS) = XDP_RING_NEED_WAKEUP;
	hi.up = false;
	put(3, 60);
	ATF_CHECK_EQ(3, hi.ops->ho_send(&hi));
	port_empty();
	counted(HOSTIF_C_TX_BATCH, 1);
	counted_all();
	hi.up = true;
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	counted(HOSTIF_C_TX_CALL, 1);
	counted_all();
	ATF_CHECK_EQ(303, *word(TX, TX_CONSUMER));
}

TEST(kick, "Calls go on while each takes frames; those that take none are made "
    "again later; a frame that is dropped does not hold up others")
{
	static const int errors[] = { ENOBUFS, ENETDOWN, ENXIO, EINTR };
	size_t i;

	start();
	put(6, 60);
	SENDS({ 2, EAGAIN }, { 1, EAGAIN }, { 3, 0 }, { 9, EIO });
	ATF_CHECK_EQ(6, hi.ops->ho_send(&hi));
	port_empty();
	counted(HOSTIF_C_TX_CALL, 3);
	counted(HOSTIF_C_TX_ERROR, 0);
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	put(3, 60);
	SENDS({ 0, EAGAIN });
	ATF_CHECK_EQ(3, hi.ops->ho_send(&hi));
	port_empty();
	ATF_CHECK_EQ(HOSTIF_TX_AGAIN, hi.tx_state);
	counted(HOSTIF_C_TX_CALL, 1);
	counted(HOSTIF_C_TX_ERROR, 0);
	SENDS({ 0, 0 });
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(HOSTIF_TX_AGAIN, hi.tx_state);
	counted(HOSTIF_C_TX_CALL, 1);
	for (i = 0; i < nitems(errors); i++) {
		SENDS({ 0, 0 }, { 1, 0 });
		sends[0].error = errors[i];
		ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
		ATF_CHECK_EQ(HOSTIF_TX_AGAIN, hi.tx_state);
		counted(HOSTIF_C_TX_CALL, 1);
		counted(HOSTIF_C_TX_ERROR, 1);
		counted(HOSTIF_C_TX_QUEUE, 0);
	}
	/* One and an error; then a drop, of which the end shows nothing. */
	SENDS({ 1, ENOBUFS }, { 0, EBUSY }, { 2, EBUSY }, { 9, EIO });
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	counted(HOSTIF_C_TX_CALL, 3);
	counted(HOSTIF_C_TX_ERROR, 1);
	counted(HOSTIF_C_TX_QUEUE, 2);
	/* A kernel that drops without end. */
	put(1, 60);
	SENDS({ 0, EBUSY });
	ATF_CHECK_EQ(1, hi.ops->ho_send(&hi));
	port_empty();
	counted(HOSTIF_C_TX_CALL, SLOTS + 1);
	counted(HOSTIF_C_TX_QUEUE, SLOTS + 1);
	counted(HOSTIF_C_TX_ERROR, 0);
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	ATF_CHECK_EQ(1, *word(TX, TX_PRODUCER) - *word(TX, TX_CONSUMER));
}

/* The kernel has sent what was in these chunks. */
static void
complete(uint32_t at, uint32_t n)
{
	uint32_t i = *word(COMPLETION, CR_PRODUCER);

	for (; n > 0; n--)
		*chunk(COMPLETION, i++) = at++ * 4096UL + 17;
	*word(COMPLETION, CR_PRODUCER) = i;
}

TEST(full, "Frames wait while all chunks are the kernel's, which is counted "
    "once; chunks that come back are used again")
{
	uint32_t i;

	start();
	for (i = 0; i < SLOTS / 256; i++) {
		put(256, 60);
		ATF_CHECK_EQ(256, hi.ops->ho_send(&hi));
		port_empty();
		ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	}
	memset(hi.counters, 0, sizeof(hi.counters));
	/* Nothing waits. */
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	counted_all();
	put(5, 60);
	for (i = 0; i < 3; i++) {
		ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
		ATF_CHECK_EQ(HOSTIF_TX_AGAIN, hi.tx_state);
		counted(HOSTIF_C_TX_WAIT, i == 0);
		counted_all();
	}
	/* Two chunks to transmit, the first and the last one, and others. */
	complete(FIRST - 1, 2);
	complete(FIRST + SLOTS - 1, 2);
	ATF_CHECK_EQ(2, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(4, *word(COMPLETION, CR_CONSUMER));
	ATF_CHECK_EQ(2, hi.port->rxring->head);
	ATF_CHECK_EQ(HOSTIF_TX_AGAIN, hi.tx_state);
	is_sent(SLOTS, FIRST + SLOTS - 1, 60);
	is_sent(SLOTS + 1, FIRST, 60);
	counted(HOSTIF_C_TX_WAIT, 0);
	counted(HOSTIF_C_TX_CALL, 1);
	complete(FIRST + 10, 3);
	ATF_CHECK_EQ(3, hi.ops->ho_send(&hi));
	port_empty();
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	/* While the call is to be made again, it is the same wait. */
	put(1, 60);
	hi.tx_state = HOSTIF_TX_AGAIN;
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	counted(HOSTIF_C_TX_WAIT, 0);
	/* All, and more than there are, around the ring. */
	complete(FIRST, SLOTS);
	ATF_CHECK_EQ(1, hi.ops->ho_send(&hi));
	port_empty();
	ATF_CHECK_EQ(SLOTS + 7, *word(COMPLETION, CR_CONSUMER));
	ATF_CHECK_EQ(SLOTS - 1, ((struct xdp *)hi.data)->xd_nfree);
	complete(FIRST, 5);
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(SLOTS, ((struct xdp *)hi.data)->xd_nfree);
	ATF_CHECK_EQ(SLOTS + 8, *word(COMPLETION, CR_CONSUMER));
	ATF_CHECK_EQ(FIRST, ((struct xdp *)hi.data)->xd_free[SLOTS - 1]);
	/* What it says is never more than a ring has. */
	*word(COMPLETION, CR_PRODUCER) = SLOTS;
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(SLOTS, ((struct xdp *)hi.data)->xd_nfree);
	((struct xdp *)hi.data)->xd_nfree = 0;
	memset(maps[COMPLETION] + CR_ENTRIES, 0, SLOTS * sizeof(uint64_t));
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(2 * SLOTS + 8, *word(COMPLETION, CR_CONSUMER));
}

TEST(tick, "What the kernel has dropped in all queues since the last time")
{
	start();
	statistics[0].rx_dropped = 100;
	statistics[0].rx_ring_full = 20;
	statistics[1].rx_dropped = 3;
	statistics[1].rx_ring_full = 4;
	statistics[1].rx_fill_ring_empty_descs = 1000;
	hi.ops->ho_tick(&hi);
	counted(HOSTIF_C_RX_FULL, 127);
	hi.ops->ho_tick(&hi);
	counted(HOSTIF_C_RX_FULL, 0);
	statistics[0].rx_ring_full++;
	statistics[1].rx_dropped++;
	hi.ops->ho_tick(&hi);
	counted(HOSTIF_C_RX_FULL, 2);
	counted_all();
}

TEST(tick_old, "A kernel that tells less, and a socket that tells nothing")
{
	start();
	old_kernel = true;
	statistics[0].rx_dropped = 100;
	statistics[0].rx_ring_full = 20;
	statistics[1].rx_dropped = 3;
	hi.ops->ho_tick(&hi);
	counted(HOSTIF_C_RX_FULL, 100);
	counted_all();
}

TEST(poll, "What is waited for")
{
	struct pollfd pfd[4];
	unsigned int max;

	start();
	for (max = 1; max <= 4; max++) {
		memset(pfd, 0xff, sizeof(pfd));
		ATF_CHECK_EQ(MIN(max, 3), hi.ops->ho_poll(&hi, pfd, max));
		if (max > 1)
			ATF_CHECK_EQ(XSK, pfd[0].fd);
		if (max > 2)
			ATF_CHECK_EQ(XSK + 1, pfd[1].fd);
		ATF_CHECK_EQ(ETHTOOL, pfd[MIN(max, 3) - 1].fd);
		ATF_CHECK_EQ(POLLIN, pfd[0].events);
		ATF_CHECK_EQ(POLLIN, pfd[MIN(max, 3) - 1].events);
		ATF_CHECK_EQ(-1, pfd[3].fd);
		if (max < 3)
			ATF_CHECK_EQ(-1, pfd[max].fd);
	}
}

/* The kernel tells this: these calls. */
static void
changes(uint32_t queues, bool untags, bool untags_ad, const char *expected)
{
	const struct pollfd pfd = { .fd = ETHTOOL, .revents = POLLIN };

	told = (struct hostif_ethtool){ queues, untags, untags_ad };
	hi.ops->ho_event(&hi, &pfd);
	CALLS(expected);
	/* The same is no change. */
	hi.ops->ho_event(&hi, &pfd);
	CALLS("");
}

#define	UNTAGS								\
	"log VLAN tags would be lost, so what is received is dropped: "	\
	"ethtool -K h0 rxvlan off; "
#define	UNTAGS_AD							\
	"log VLAN tags of 802.1ad are lost: ethtool -K h0 "		\
	"rx-vlan-stag-hw-parse off; "
#define	LOST(n)								\
	"log " #n " receive queues, and what is received on more than "	\
	"2 is lost: attach the interface again, or see ethtool -L; "

TEST(changes, "Each change of the interface that matters is a line")
{
	const struct pollfd other = { .fd = XSK, .revents = POLLIN };
	const struct pollfd pfd = { .fd = ETHTOOL, .revents = POLLIN };

	start();
	changes(2, false, false, "");
	changes(2, true, false, UNTAGS);
	changes(2, false, false, "log h0 leaves VLAN tags in frames; ");
	changes(2, false, true, UNTAGS_AD);
	changes(2, false, false, "");
	changes(2, true, true, UNTAGS UNTAGS_AD);
	changes(2, false, false, "log h0 leaves VLAN tags in frames; ");
	changes(1, false, false, "");
	changes(2, false, false, "");
	changes(3, false, false, LOST(3));
	changes(4, false, false, LOST(4));
	changes(2, false, false, "log all receive queues are used; ");
	changes(5, false, false, LOST(5));
	changes(0, false, false, "log all receive queues are used; ");
	/* It must be asked. */
	told_all = false;
	hi.ops->ho_event(&hi, &pfd);
	CALLS("ask 9 of 7; ");
	/* It is a queue. */
	told.he_queues = 9;
	hi.ops->ho_event(&hi, &other);
	CALLS("");
}

TEST_PROGRAM
