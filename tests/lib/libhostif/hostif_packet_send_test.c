/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What an attached interface sends through the ring of packet(7): each slot,
 * each call and each counter.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <netinet/in.h>

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include "hostif_packet_kernel.h"
#include "test.h"

/* A frame of `len' bytes waits in the port, the next of those. */
static struct frame *
put(uint8_t *p, uint32_t len)
{
	static struct iovec iov[nitems(frames)][2];
	struct frame *frame = &frames[nframes];

	ATF_REQUIRE(nframes < nitems(frames));
	/* In two parts. */
	iov[nframes][0] = (struct iovec){ p, len / 2 };
	iov[nframes][1] = (struct iovec){ p + len / 2, len - len / 2 };
	*frame = (struct frame){ .f_iov = iov[nframes], .f_niov = 2,
	    .f_len = len };
	nframes++;
	return (frame);
}

/* There are none any more. */
static void
port_empty(void)
{
	ATF_CHECK_EQ(nframes, hi.port->rxring->head);
	ATF_CHECK_EQ(nframes, hi.port->rxring->cur);
	nframes = hi.port->rxring->head = hi.port->rxring->cur = 0;
}

/* Slot i of the transmit ring has this header and frame. */
static void
is_sent(uint32_t i, const void *hdr, const uint8_t *p, uint32_t len)
{
	const struct tpacket2_hdr *h = slot(true, i);

	ATF_CHECK_EQ(10 + len, h->tp_len);
	ATF_CHECK_EQ_MSG(0, memcmp((const uint8_t *)h + 32, hdr, 10), "%u", i);
	ATF_CHECK_EQ_MSG(0, memcmp((const uint8_t *)h + 42, p, len), "%u", i);
}

TEST(send, "Frames fill the ring's slots, around its end, and one call sends a "
    "batch")
{
	static uint8_t bytes[100][64];
	uint8_t hdr[10] = { 0, 0, 60 };
	uint32_t i, round;

	start();
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	counted_all();
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	for (round = 0; round < 6; round++) {
		for (i = 0; i < nitems(bytes); i++) {
			number(bytes[i], round * 1000 + i);
			(void)put(bytes[i], 60);
		}
		ATF_CHECK_EQ(100, hi.ops->ho_send(&hi));
		port_empty();
		for (i = 0; i < nitems(bytes); i++)
			is_sent((round * 100 + i) % 255, hdr, bytes[i], 60);
		ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
		counted(HOSTIF_C_TX_FRAME, 100);
		counted(HOSTIF_C_TX_BYTE, 6000);
		counted(HOSTIF_C_TX_BATCH, 1);
		counted(HOSTIF_C_TX_CALL, 1);
		counted_all();
	}
	CALLS("");
}

TEST(send_headers, "The virtio-net header: what the kernel must complete, and "
    "how much of a short frame it may copy")
{
	static const struct {
		uint32_t	len;
		uint8_t		flags, gso;
		uint8_t		hdr[10];
	} cases[] = {
		{ 2048, 0, 0, { 0, 0, 0, 8 } },
		{ 2049, 0, 0, { 0 } },
		{ 2048, 1, 0, { 1, 0, 0, 8, 0, 0, 34, 0, 16 } },
		{ 2049, 1, 0, { 1, 0, 0, 0, 0, 0, 34, 0, 16 } },
		{ 60, 2, 0, { 2, 0, 60 } },
		{ 1000, 1, FRAME_GSO_TCPV4, { 1, 1, 54, 0, 100, 0, 34, 0,
		    16 } },
		{ 1000, 1, FRAME_GSO_TCPV6 | FRAME_GSO_ECN, { 1, 0x84, 54, 0,
		    100, 0, 34, 0, 16 } },
		{ 1000, 0, FRAME_GSO_TCPV4, { 0, 1, 54, 0, 100 } },
	};
	static uint8_t bytes[4096];
	struct frame *frame;
	uint32_t i;

	start();
	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + i / 251);
	for (i = 0; i < nitems(cases); i++) {
		frame = put(bytes, cases[i].len);
		frame->f_flags = cases[i].flags;
		frame->f_gso_type = cases[i].gso;
		frame->f_hdr_len = 54;
		frame->f_gso_size = 100;
		frame->f_csum_start = 34;
		frame->f_csum_offset = 16;
	}
	ATF_CHECK_EQ(nitems(cases), hi.ops->ho_send(&hi));
	port_empty();
	for (i = 0; i < nitems(cases); i++)
		is_sent(i, cases[i].hdr, bytes, cases[i].len);
}

/* Headers of Ethernet, IPv4 and UDP, and the rest, to be cut. */
static void
make_udp(uint8_t *p, uint32_t len, struct frame *frame)
{
	memset(p, 'x', len);
	memset(p + 12, 0, 30);
	memcpy(p + 12, "\x08\x00\x45", 3);
	p[16] = (len - 14) >> 8;
	p[17] = (uint8_t)(len - 14);
	memcpy(p + 22, "\x40\x11\0\0\x0a\0\0\1\x0a\0\0\2", 12);
	p[38] = (len - 34) >> 8;
	p[39] = (uint8_t)(len - 34);
	/* The sum of the pseudo-header. */
	be16enc(p + 40, 0x0a00 + 1 + 0x0a00 + 2 + IPPROTO_UDP + len - 34);
	frame->f_flags = FRAME_CSUM_PARTIAL;
	frame->f_gso_type = FRAME_GSO_UDP_L4;
	frame->f_hdr_len = 42;
	frame->f_gso_size = 100;
	frame->f_csum_start = 34;
	frame->f_csum_offset = 6;
}

/* The sum of a datagram and its pseudo-header is right. */
static bool
sum_right(const uint8_t *p, uint32_t len)
{
	uint32_t i, sum = IPPROTO_UDP + len - 34;

	for (i = 26; i < len; i++)
		sum += i % 2 == 0 ? (uint32_t)p[i] << 8 : p[i];
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return (sum == 0xffff);
}

/* A datagram is in this slot, with so much payload. */
static void
is_datagram(uint32_t i, uint32_t payload)
{
	const uint8_t hdr[10] = { 0, 0, 42 + payload };
	const uint8_t *p = (const uint8_t *)slot(true, i) + 42;

	is_sent(i, hdr, p, 42 + payload);
	ATF_CHECK_EQ(28 + payload, be16dec(p + 16));
	ATF_CHECK_EQ(8 + payload, be16dec(p + 38));
	ATF_CHECK_EQ('x', p[42]);
	ATF_CHECK_EQ('x', p[41 + payload]);
	ATF_CHECK(sum_right(p, 42 + payload));
}

TEST(send_cut, "Segments of UDP are cut, as far as the ring has space; bad "
    "headers are counted")
{
	static uint8_t bytes[3][1000], small[60];
	struct frame *frame;
	uint32_t i;

	start();
	make_udp(bytes[0], 42 + 250, put(bytes[0], 42 + 250));
	frame = put(bytes[1], 42 + 200);
	make_udp(bytes[1], 42 + 200, frame);
	frame->f_gso_type |= FRAME_GSO_ECN;
	frame = put(bytes[2], 42 + 200);
	make_udp(bytes[2], 42 + 200, frame);
	bytes[2][14] = 0x65;
	ATF_CHECK_EQ(3, hi.ops->ho_send(&hi));
	port_empty();
	counted(HOSTIF_C_TX_FRAME, 5);
	counted(HOSTIF_C_TX_BYTE, 450 + 5 * 42);
	counted(HOSTIF_C_TX_BAD, 1);
	counted(HOSTIF_C_TX_BATCH, 1);
	counted(HOSTIF_C_TX_CALL, 1);
	counted_all();
	is_datagram(0, 100);
	is_datagram(1, 100);
	is_datagram(2, 50);
	is_datagram(3, 100);
	is_datagram(4, 100);
	/* One slot is left, the last one of the ring. */
	busy = true;
	for (i = 5; i < TX_SLOTS - 1; i++)
		(void)put(small, sizeof(small));
	make_udp(bytes[0], 42 + 250, put(bytes[0], 42 + 250));
	for (i = 0; i < 5; i++)
		slot(true, i)->tp_status = TP_STATUS_SENDING;
	ATF_CHECK_EQ(TX_SLOTS - 5, hi.ops->ho_send(&hi));
	port_empty();
	is_datagram(TX_SLOTS - 1, 100);
	counted(HOSTIF_C_TX_NOROOM, 2);
	counted(HOSTIF_C_TX_FRAME, TX_SLOTS - 5);
	ATF_CHECK_EQ(HOSTIF_TX_FULL, hi.tx_state);
}

/* `n' short frames wait. */
static void
put_short(uint32_t n, uint32_t len)
{
	static uint8_t bytes[60];

	for (; n > 0; n--)
		(void)put(bytes, len);
}

TEST(full, "Frames wait while the kernel has all slots, which is counted once; "
    "not for frames that are not taken, nor while the interface is down")
{
	start();
	busy = true;
	put_short(300, 60);
	ATF_CHECK_EQ(TX_SLOTS, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(TX_SLOTS, hi.port->rxring->head);
	ATF_CHECK_EQ(HOSTIF_TX_FULL, hi.tx_state);
	counted(HOSTIF_C_TX_FRAME, TX_SLOTS);
	counted(HOSTIF_C_TX_BYTE, TX_SLOTS * 60);
	counted(HOSTIF_C_TX_BATCH, 1);
	counted(HOSTIF_C_TX_CALL, 1);
	counted(HOSTIF_C_TX_WAIT, 1);
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(HOSTIF_TX_FULL, hi.tx_state);
	counted_all();
	slot(true, 0)->tp_status = TP_STATUS_AVAILABLE;
	slot(true, 1)->tp_status = TP_STATUS_AVAILABLE;
	ATF_CHECK_EQ(2, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(HOSTIF_TX_FULL, hi.tx_state);
	counted(HOSTIF_C_TX_WAIT, 0);
	counted(HOSTIF_C_TX_FRAME, 2);
	/* Down, none waits. */
	hi.up = false;
	ATF_CHECK_EQ(300 - TX_SLOTS - 2, hi.ops->ho_send(&hi));
	port_empty();
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	counted(HOSTIF_C_TX_FRAME, 0);
	counted(HOSTIF_C_TX_WAIT, 0);
	counted(HOSTIF_C_TX_DOWN, 0);
	hi.up = true;
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(HOSTIF_TX_FULL, hi.tx_state);
	counted(HOSTIF_C_TX_WAIT, 1);
	/* Frames that need no slot: a batch at a time. */
	slot(true, 2)->tp_status = TP_STATUS_AVAILABLE;
	put_short(300, 13);
	ATF_CHECK_EQ(256, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	ATF_CHECK_EQ(44, hi.ops->ho_send(&hi));
	port_empty();
	counted(HOSTIF_C_TX_FRAME, 0);
}

TEST(kick, "Calls go on while each takes a slot; those that take none, or fail "
    "for what passes, are made again later")
{
	static const int passing[] = { EAGAIN, EINTR, ENETDOWN, ENXIO };
	uint32_t i;

	start();
	/* Three, one, and one. */
	put_short(5, 60);
	SENDS({ 3, 0 }, { 1, 0 }, { 1, 0 }, { 99, EIO });
	ATF_CHECK_EQ(5, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	counted(HOSTIF_C_TX_CALL, 3);
	counted(HOSTIF_C_TX_ERROR, 0);
	/* Two, and none. */
	put_short(5, 60);
	SENDS({ 2, 0 }, { 0, 0 });
	ATF_CHECK_EQ(5, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(HOSTIF_TX_AGAIN, hi.tx_state);
	counted(HOSTIF_C_TX_CALL, 2);
	/* One, and the rest fails. */
	for (i = 0; i < nitems(passing); i++) {
		SENDS({ 0, 0 }, { 0, 0 });
		sends[0].error = passing[i];
		ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
		ATF_CHECK_EQ(HOSTIF_TX_AGAIN, hi.tx_state);
		counted(HOSTIF_C_TX_CALL, 1);
		counted(HOSTIF_C_TX_ERROR, 1);
	}
	CALLS("");
	SENDS({ 2, 0 }, { 1, 0 }, { 99, EIO });
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	counted(HOSTIF_C_TX_CALL, 2);
	/* Nothing is left. */
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	counted(HOSTIF_C_TX_CALL, 0);
	counted(HOSTIF_C_TX_ERROR, 0);
	port_empty();
	CALLS("");
}

TEST(skip, "A frame for which a call fails is lost, and its slot is skipped; "
    "the others are sent")
{
	static const int errors[] = { ENOBUFS, EBUSY, EIO, EMSGSIZE, EPERM,
	    EAGAIN + 1, EINTR + 1, ENETDOWN + 1, ENXIO + 1 };
	char expected[256];
	uint32_t first = 0, i, k;

	start();
	for (i = 0; i < nitems(errors); i++, first += 4) {
		put_short(4, 60);
		/* The kernel sends the first one and fails for the second one,
		   then skips that and sends the others. */
		SENDS({ 1, 0 }, { 0, 0 }, { 3, 0 });
		sends[1].error = errors[i];
		ATF_CHECK_EQ(4, hi.ops->ho_send(&hi));
		port_empty();
		snprintf(expected, sizeof(expected), "lost %d; ", errors[i]);
		CALLS(expected);
		for (k = 0; k < 4; k++)
			ATF_CHECK_EQ(k == 1 ? 0 : 70, slot(true, first +
			    k)->tp_len);
		ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
		counted(HOSTIF_C_TX_CALL, 3);
		counted(HOSTIF_C_TX_ERROR, 1);
		counted(HOSTIF_C_TX_FRAME, 4);
	}
	/* A kernel that frees the slot of the frame that fails. */
	put_short(3, 60);
	SENDS({ 1, EIO }, { 1, EIO }, { 1, 0 });
	ATF_CHECK_EQ(3, hi.ops->ho_send(&hi));
	port_empty();
	counted(HOSTIF_C_TX_CALL, 3);
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	CALLS("lost 5; lost 5; ");
	/* The one that fails is the last one. */
	put_short(1, 60);
	SENDS({ 1, EIO });
	ATF_CHECK_EQ(1, hi.ops->ho_send(&hi));
	port_empty();
	counted(HOSTIF_C_TX_CALL, 1);
	counted(HOSTIF_C_TX_BATCH, nitems(errors) + 2);
	CALLS("");
	/* One that is not taken is sent later. */
	put_short(1, 60);
	SENDS({ 0, 0 });
	ATF_CHECK_EQ(1, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(HOSTIF_TX_AGAIN, hi.tx_state);
}

TEST(stubborn, "A kernel that takes no slot is called as often as needed for a "
    "full ring, around its end, and each frame is lost once")
{
	uint32_t i;

	start();
	put_short(250, 60);
	ATF_CHECK_EQ(250, hi.ops->ho_send(&hi));
	port_empty();
	counted(HOSTIF_C_TX_CALL, 1);
	put_short(10, 60);
	SENDS({ 0, EIO });
	ATF_CHECK_EQ(10, hi.ops->ho_send(&hi));
	port_empty();
	counted(HOSTIF_C_TX_CALL, 2 * TX_SLOTS);
	counted(HOSTIF_C_TX_ERROR, 2 * TX_SLOTS);
	CALLS("lost 5; lost 5; lost 5; lost 5; lost 5; lost 5; lost 5; "
	    "lost 5; lost 5; lost 5; ");
	for (i = 0; i < TX_SLOTS; i++)
		ATF_CHECK_EQ(i >= 250 || i < 5 ? 0 : 70,
		    slot(true, i)->tp_len);
	ATF_CHECK_EQ(HOSTIF_TX_AGAIN, hi.tx_state);
	SENDS({ 10, 0 });
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
}

TEST(down, "What the kernel has not sent when the interface goes down is "
    "skipped, and counted once")
{
	uint32_t i;

	start();
	put_short(250, 60);
	ATF_CHECK_EQ(250, hi.ops->ho_send(&hi));
	port_empty();
	put_short(20, 60);
	SENDS({ 8, 0 }, { 0, ENETDOWN });
	ATF_CHECK_EQ(20, hi.ops->ho_send(&hi));
	port_empty();
	counted(HOSTIF_C_TX_CALL, 3);
	/* The kernel takes five of the twelve later. */
	for (i = 3; i < 8; i++)
		slot(true, i)->tp_status = TP_STATUS_AVAILABLE;
	kernel_slot += 5;
	hi.up = false;
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	counted(HOSTIF_C_TX_DOWN, 7);
	counted(HOSTIF_C_TX_CALL, 0);
	ATF_CHECK_EQ(HOSTIF_TX_IDLE, hi.tx_state);
	for (i = 0; i < TX_SLOTS; i++)
		ATF_CHECK_EQ(i >= 8 && i < 15 ? 0 : 70,
		    slot(true, i)->tp_len);
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	counted(HOSTIF_C_TX_DOWN, 0);
	/* All slots. */
	hi.up = true;
	SENDS({ 7, 0 }, { 0, ENETDOWN });
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	put_short(TX_SLOTS, 60);
	ATF_CHECK_EQ(TX_SLOTS, hi.ops->ho_send(&hi));
	port_empty();
	hi.up = false;
	ATF_CHECK_EQ(0, hi.ops->ho_send(&hi));
	counted(HOSTIF_C_TX_DOWN, TX_SLOTS);
}

TEST_PROGRAM
