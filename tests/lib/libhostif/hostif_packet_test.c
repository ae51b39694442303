/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What an attached interface receives through the ring of packet(7), its start
 * and its events: each slot, each call and each counter.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/socket.h>

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include "hostif_packet_kernel.h"
#include "test.h"

TEST(start, "Each step of the start, what is undone if it fails, and the end")
{
	static const struct {
		const char	*step, *calls, *result;
	} steps[] = {
		{ "calloc", "calloc; ", "memory" },
		{ "domain", "calloc; domain; free; ", "rings" },
		{ "map", "calloc; domain; map; free; ", "rings" },
		{ "header", "calloc; domain; map; header; unmap; free; ",
		    "virtio-net headers" },
	};
	size_t i;

	start();
	hi.ops->ho_stop(&hi);
	CALLS("unmap; free; ");
	for (i = 0; i < nitems(steps); i++) {
		fails = steps[i].step;
		errno = 0;
		ATF_CHECK_STREQ(steps[i].result, hi.ops->ho_start(&hi));
		ATF_CHECK_EQ(EIO, errno);
		CALLS(steps[i].calls);
	}
	fails = NULL;
	hi.data = NULL;
	ATF_CHECK(hi.ops->ho_start(&hi) == NULL);
	ATF_CHECK(hi.data != NULL);
	CALLS("calloc; domain; map; header; ");
	for (domain = AF_PACKET - 1; domain <= AF_PACKET + 1; domain += 2) {
		ATF_CHECK_STREQ("rings", hi.ops->ho_start(&hi));
		ATF_CHECK_EQ(EAFNOSUPPORT, errno);
		CALLS("calloc; domain; free; ");
	}
}

/*
 * Receive
 */

#define	MAC		256		/* offset of frames */

static uint32_t kernel_rx;		/* the kernel's next slot */

/* The kernel receives `len' bytes at p, with a header or zeros. */
static struct tpacket2_hdr *
receive(const uint8_t *hdr, const uint8_t *p, uint32_t len)
{
	struct tpacket2_hdr *h = slot(false, kernel_rx);
	uint8_t *frame = (uint8_t *)h + MAC;

	kernel_rx = (kernel_rx + 1) % RX_SLOTS;
	ATF_REQUIRE_EQ(TP_STATUS_KERNEL, h->tp_status);
	memset(frame - FRAME_VNET_SHORT, 0, FRAME_VNET_SHORT);
	if (hdr != NULL)
		memcpy(frame - FRAME_VNET_SHORT, hdr, FRAME_VNET_SHORT);
	memcpy(frame, p, len);
	h->tp_mac = MAC;
	h->tp_snaplen = h->tp_len = len;
	h->tp_status = TP_STATUS_USER;
	return (h);
}

/* What the switch has got is this. */
static void
is_got(uint32_t i, const uint8_t *p, uint32_t len)
{
	ATF_REQUIRE(i < ngot);
	ATF_CHECK_EQ(len, got[i].len);
	ATF_CHECK_EQ(0, memcmp(got[i].p, p, len));
}

TEST(receive, "Batches of at most 256 slots around the ring, each given back "
    "after the switch has copied it")
{
	uint8_t frame[60];
	uint32_t i, n, round;

	start();
	ATF_CHECK_EQ(0, hi.ops->ho_receive(&hi));
	CALLS("");
	counted_all();
	/* What is behind the ring is not touched. */
	slot(true, 0)->tp_status = 0xa5;
	/* Three times the ring's slots: a batch, and what is left. */
	for (round = 0; round < 5; round++) {
		for (i = 0; i < 306; i++) {
			number(frame, round * 1000 + i);
			(void)receive(NULL, frame, sizeof(frame));
		}
		ATF_CHECK_EQ(256, hi.ops->ho_receive(&hi));
		CALLS("sync 256; ");
		ATF_CHECK_EQ(50, hi.ops->ho_receive(&hi));
		CALLS("sync 50; ");
		ATF_CHECK_EQ(0, hi.ops->ho_receive(&hi));
		CALLS("");
		counted(HOSTIF_C_RX_FRAME, 306);
		counted(HOSTIF_C_RX_BYTE, 306 * 60);
		counted(HOSTIF_C_RX_BATCH, 2);
		counted_all();
		ATF_REQUIRE_EQ(306, ngot);
		for (i = 0; i < ngot; i++) {
			number(frame, round * 1000 + i);
			is_got(i, frame, sizeof(frame));
			ATF_CHECK(!got[i].headed);
		}
		nothing_got();
		for (n = 0; n < RX_SLOTS; n++)
			ATF_CHECK_EQ(TP_STATUS_KERNEL,
			    slot(false, n)->tp_status);
	}
	ATF_CHECK_EQ(0xa5, slot(true, 0)->tp_status);
	/* What is not ours is not looked at, nor what is behind it. */
	receive(NULL, frame, sizeof(frame))->tp_status = TP_STATUS_COPY;
	(void)receive(NULL, frame, sizeof(frame));
	ATF_CHECK_EQ(0, hi.ops->ho_receive(&hi));
	CALLS("");
}

TEST(dropped, "A slot with a frame that is dropped is given back, too, and is "
    "no frame")
{
	uint8_t frame[60], other[60];

	start();
	number(frame, 1);
	number(other, 2);
	receive(NULL, frame, sizeof(frame))->tp_snaplen = 59;
	(void)receive(NULL, frame, HOSTIF_ETHER - 1);
	(void)receive(NULL, other, sizeof(other));
	/* Nobody knows segments of this kind. */
	(void)receive((const uint8_t *)"\1\3\x2a\0\x10\0\x22\0\6\0", frame,
	    sizeof(frame));
	ATF_CHECK_EQ(4, hi.ops->ho_receive(&hi));
	CALLS("sync 1; ");
	is_got(0, other, sizeof(other));
	counted(HOSTIF_C_RX_LONG, 1);
	counted(HOSTIF_C_RX_BAD, 1);
	counted(HOSTIF_C_RX_OFFLOAD, 1);
	counted(HOSTIF_C_RX_FRAME, 1);
	counted(HOSTIF_C_RX_BYTE, 60);
	counted(HOSTIF_C_RX_BATCH, 1);
	counted_all();
}

TEST(long_frame, "A frame of more than one slot of the port takes two")
{
	static uint8_t frame[VALE_FRAME_MAX];
	static const uint32_t lengths[] = { INDIRECT, INDIRECT + 1,
	    sizeof(frame) };
	uint32_t i;

	start();
	for (i = 0; i < sizeof(frame); i++)
		frame[i] = (uint8_t)(i * 7 + i / 251);
	for (i = 0; i < nitems(lengths); i++) {
		hi.port->txring->slot[hi.port->txring->head].flags = 0xffff;
		(void)receive(NULL, frame, lengths[i]);
		ATF_CHECK_EQ(1, hi.ops->ho_receive(&hi));
		is_got(i, frame, lengths[i]);
		counted(HOSTIF_C_RX_BYTE, lengths[i]);
	}
	CALLS("sync 1; sync 1; sync 1; ");
	/* The slots that these took. */
	ATF_CHECK_EQ(5, hi.port->txring->head);
	ATF_CHECK_EQ(NS_INDIRECT, hi.port->txring->slot[0].flags);
	ATF_CHECK_EQ(NS_INDIRECT | NS_MOREFRAG, hi.port->txring->slot[1].flags);
	ATF_CHECK_EQ(NS_INDIRECT, hi.port->txring->slot[2].flags);
}

/* Headers of Ethernet, IPv4 and TCP, and the rest. */
static void
make_tcp(uint8_t *p, uint32_t len)
{
	memset(p, 'x', len);
	memset(p + 12, 0, 42);
	memcpy(p + 12, "\x08\x00\x45", 3);
	p[16] = (len - 14) >> 8;
	p[17] = (uint8_t)(len - 14);
	memcpy(p + 22, "\x40\x06\0\0\x0a\0\0\1\x0a\0\0\2", 12);
	p[46] = 5 << 4;
}

TEST(headers, "Each frame with a partial checksum has a header of its own, "
    "which counts a tag")
{
	static const uint8_t hdr[2][FRAME_VNET_SHORT] = {
		{ 1, 0, 0, 0, 0, 0, 34, 0, 16, 0 },
		{ 1, 1, 54, 0, 100, 0, 34, 0, 16, 0 },
	};
	static const uint8_t expected[3][FRAME_VNET_LONG] = {
		{ 1, 0, 0, 0, 0, 0, 34, 0, 16, 0, 1, 0 },
		{ 1, 1, 0, 0, 100, 0, 34, 0, 16, 0, 1, 0 },
		{ 1, 1, 0, 0, 100, 0, 38, 0, 16, 0, 1, 0 },
	};
	uint8_t packet[500 + 4];
	struct tpacket2_hdr *h;

	start();
	make_tcp(packet, 500);
	(void)receive(hdr[0], packet, 500);
	(void)receive(hdr[1], packet, 500);
	h = receive(hdr[1], packet, 500);
	h->tp_status |= TP_STATUS_VLAN_VALID;
	h->tp_vlan_tci = 0x6ffe;
	h->tp_vlan_tpid = 0x9100;
	h = receive(hdr[1], packet, 500);
	h->tp_status |= TP_STATUS_VLAN_VALID | TP_STATUS_VLAN_TPID_VALID;
	h->tp_vlan_tci = 0x6ffe;
	h->tp_vlan_tpid = 0x88a8;
	h = receive(NULL, packet, 500);
	h->tp_vlan_tci = 0x6ffe;
	h->tp_status |= TP_STATUS_VLAN_TPID_VALID;
	/* It is verified, not partial. */
	(void)receive((const uint8_t *)"\2\0\0\0\0\0\0\0\0\0", packet, 500);
	ATF_CHECK_EQ(6, hi.ops->ho_receive(&hi));
	CALLS("sync 6; ");
	counted(HOSTIF_C_RX_BYTE, 6 * 500 + 8);
	is_got(0, packet, 500);
	is_got(1, packet, 500);
	is_got(4, packet, 500);
	is_got(5, packet, 500);
	ATF_CHECK_EQ(0, memcmp(got[0].hdr, expected[0], FRAME_VNET_LONG));
	ATF_CHECK_EQ(0, memcmp(got[1].hdr, expected[1], FRAME_VNET_LONG));
	ATF_CHECK_EQ(0, memcmp(got[2].hdr, expected[2], FRAME_VNET_LONG));
	ATF_CHECK_EQ(0, memcmp(got[3].hdr, expected[2], FRAME_VNET_LONG));
	ATF_CHECK(got[0].headed && got[3].headed && !got[4].headed &&
	    !got[5].headed);
	memmove(packet + 16, packet + 12, 488);
	memcpy(packet + 12, "\x81\x00\x6f\xfe", 4);
	is_got(2, packet, 504);
	memcpy(packet + 12, "\x88\xa8\x6f\xfe", 4);
	is_got(3, packet, 504);
}

/*
 * Receive a packet of TCP, with `len' bytes of payload and segments of `mss',
 * in IPv6 with a destination option of `option' bytes; and the same that can
 * not be cut.
 */
static uint32_t
tunnel(uint32_t option, uint32_t len, uint32_t mss, bool bad)
{
	static uint8_t p[VALE_FRAME_MAX];
	const uint32_t l4 = 14 + 40 + option + 20, all = l4 + 20 + len;
	uint8_t hdr[FRAME_VNET_SHORT] = { 1, FRAME_GSO_TCPV4 };
	uint8_t *ip;

	memset(p, 0, l4 + 20);
	memcpy(p + 12, "\x86\xdd\x60", 3);
	p[18] = (all - 54) >> 8;
	p[19] = (uint8_t)(all - 54);
	p[20] = option > 0 ? 60 : 4;
	p[21] = 64;
	if (option > 0) {
		p[54] = 4;
		p[55] = option / 8 - 1;
		/* One option is padding of all. */
		p[56] = 1;
		p[57] = option - 4;
	}
	ip = p + 54 + option;
	ip[0] = bad ? 0x55 : 0x45;
	ip[2] = (all - (ip - p)) >> 8;
	ip[3] = (uint8_t)(all - (ip - p));
	ip[8] = 64;
	ip[9] = 6;
	ip[20 + 12] = 5 << 4;
	memset(p + l4 + 20, 'x', len);
	le16enc(hdr + 4, mss);
	le16enc(hdr + 6, l4);
	le16enc(hdr + 8, 16);
	(void)receive(hdr, p, all);
	return (all);
}

/* Segments from the i-th on, `n' in all. */
static void
segments(uint32_t i, uint32_t n, uint32_t headers, uint32_t len, uint32_t mss)
{
	uint32_t k;

	for (k = 0; k < n; k++, i++) {
		ATF_REQUIRE(i < ngot);
		ATF_CHECK_EQ(headers + MIN(mss, len - k * mss), got[i].len);
		ATF_CHECK_EQ('x', got[i].p[headers]);
		ATF_CHECK_EQ('x', got[i].p[got[i].len - 1]);
		/* Sequence numbers, the inner and the outer length. */
		ATF_CHECK_EQ(k * mss, be32dec(got[i].p + headers - 16));
		ATF_CHECK_EQ(got[i].len - (headers - 40),
		    be16dec(got[i].p + headers - 38));
		ATF_CHECK_EQ(got[i].len - 54, be16dec(got[i].p + 18));
	}
}

TEST(tunnel, "A packet in a tunnel is cut, in as many syncs as its segments "
    "need; frames before and behind it keep their order")
{
	uint8_t frame[60], last[60];
	uint32_t bytes;

	start();
	number(frame, 1);
	number(last, 2);
	(void)receive(NULL, frame, sizeof(frame));
	bytes = tunnel(0, 60000, 100, false);
	(void)receive(NULL, last, sizeof(last));
	ATF_CHECK_EQ(3, hi.ops->ho_receive(&hi));
	CALLS("sync 1; sync 255; sync 256; sync 89; sync 1; ");
	is_got(0, frame, sizeof(frame));
	segments(1, 600, 94, 60000, 100);
	is_got(601, last, sizeof(last));
	counted(HOSTIF_C_RX_CUT, 1);
	counted(HOSTIF_C_RX_SEGMENT, 600);
	counted(HOSTIF_C_RX_FRAME, 3);
	counted(HOSTIF_C_RX_BYTE, 120 + bytes);
	counted(HOSTIF_C_RX_BATCH, 1);
	counted_all();
	nothing_got();
	/* One sync is enough for 255. */
	(void)tunnel(0, 25500, 100, false);
	(void)tunnel(0, 25501, 100, false);
	ATF_CHECK_EQ(2, hi.ops->ho_receive(&hi));
	CALLS("sync 0; sync 255; sync 0; sync 255; sync 1; sync 0; ");
	segments(0, 255, 94, 25500, 100);
	segments(255, 256, 94, 25501, 100);
	nothing_got();
	/* Segments of 550 bytes, with so many headers: 253 have space. */
	(void)tunnel(256, 51000, 200, false);
	ATF_CHECK_EQ(1, hi.ops->ho_receive(&hi));
	CALLS("sync 0; sync 253; sync 2; sync 0; ");
	segments(0, 255, 350, 51000, 200);
	counted(HOSTIF_C_RX_CUT, 3);
	counted(HOSTIF_C_RX_SEGMENT, 255 + 256 + 255);
	counted(HOSTIF_C_RX_OFFLOAD, 0);
	nothing_got();
	/* What is in it is no IPv4. */
	(void)tunnel(0, 1000, 100, true);
	ATF_CHECK_EQ(1, hi.ops->ho_receive(&hi));
	CALLS("sync 0; sync 0; ");
	counted(HOSTIF_C_RX_OFFLOAD, 1);
	counted(HOSTIF_C_RX_CUT, 0);
	ATF_CHECK_EQ(0, ngot);
}

/*
 * Events
 */

TEST(events, "What is waited for, and that an error is taken")
{
	struct pollfd pfd = { .fd = -1, .events = -1 };

	start();
	hi.tx_state = HOSTIF_TX_IDLE;
	ATF_CHECK_EQ(1, hi.ops->ho_poll(&hi, &pfd, 4));
	ATF_CHECK_EQ(PACKET_SOCKET, pfd.fd);
	ATF_CHECK_EQ(POLLIN, pfd.events);
	hi.tx_state = HOSTIF_TX_AGAIN;
	ATF_CHECK_EQ(1, hi.ops->ho_poll(&hi, &pfd, 4));
	ATF_CHECK_EQ(POLLIN, pfd.events);
	hi.tx_state = HOSTIF_TX_FULL;
	ATF_CHECK_EQ(1, hi.ops->ho_poll(&hi, &pfd, 4));
	ATF_CHECK_EQ(POLLIN | POLLOUT, pfd.events);
	pfd.revents = POLLIN | POLLOUT | POLLHUP;
	hi.ops->ho_event(&hi, &pfd);
	CALLS("");
	pfd.revents = POLLERR;
	hi.ops->ho_event(&hi, &pfd);
	CALLS("recv; ");
}

#define	STOPPED								\
	"log the kernel's receive ring stopped at a packet that it "	\
	"cannot describe: opened again; "

/* Ticks until the ring is opened again. */
static unsigned int
ticks(void)
{
	unsigned int n;

	for (n = 1; n < 100; n++) {
		hi.ops->ho_tick(&hi);
		if (trace[0] != '\0')
			break;
	}
	return (n);
}

TEST(reopen, "A ring in which frames are dropped and none arrives is opened "
    "again, at once, then after longer and longer pauses")
{
	static const unsigned int expected[] = { 1, 1, 2, 4, 8, 8 };
	uint8_t frame[60];
	size_t i;

	start();
	hi.ops->ho_tick(&hi);
	CALLS("");
	counted_all();
	/* The counter tells what was dropped before; a frame came. */
	drops = 5;
	number(frame, 1);
	(void)receive(NULL, frame, sizeof(frame));
	ATF_CHECK_EQ(1, hi.ops->ho_receive(&hi));
	trace[0] = '\0';
	hi.ops->ho_tick(&hi);
	CALLS("");
	counted(HOSTIF_C_RX_FULL, 5);
	/* It is not asked in vain. */
	fails = "statistics";
	hi.ops->ho_tick(&hi);
	CALLS("");
	counted(HOSTIF_C_RX_FULL, 0);
	fails = NULL;
	drops = 0;
	hi.ops->ho_tick(&hi);
	CALLS("");
	/* The next slot is ours: it has not stopped. */
	drops = 1;
	(void)receive(NULL, frame, sizeof(frame));
	hi.ops->ho_tick(&hi);
	CALLS("");
	ATF_CHECK_EQ(1, hi.ops->ho_receive(&hi));
	hi.ops->ho_tick(&hi);
	trace[0] = '\0';
	for (i = 0; i < nitems(expected); i++) {
		ATF_CHECK_EQ(expected[i], ticks());
		CALLS(i == 0 ? STOPPED "reopen; " : "reopen; ");
		ATF_CHECK_EQ(i + 1, hi.counters[HOSTIF_C_RX_STOP]);
		ATF_CHECK(hi.up && !hi.gone);
	}
	/* The ring begins with its first slot; then it is as at first. */
	kernel_rx = 0;
	number(frame, 2);
	(void)receive(NULL, frame, sizeof(frame));
	nothing_got();
	ATF_CHECK_EQ(1, hi.ops->ho_receive(&hi));
	is_got(0, frame, sizeof(frame));
	hi.ops->ho_tick(&hi);
	CALLS("sync 1; ");
	for (i = 0; i < 3; i++) {
		ATF_CHECK_EQ(expected[i], ticks());
		CALLS("reopen; ");
	}
	/* Pauses go on while nothing is dropped. */
	drops = 0;
	hi.ops->ho_tick(&hi);
	hi.ops->ho_tick(&hi);
	drops = 1;
	ATF_CHECK_EQ(2, ticks());
	CALLS("reopen; ");
	/* It fails. */
	fails = "reopen";
	ATF_CHECK_EQ(8, ticks());
	CALLS("reopen; log the receive ring: Input/output error: attach the "
	    "interface again; ");
	ATF_CHECK(!hi.up && hi.gone);
}

TEST(too_long, "Packets that are too long are a line, once")
{
	start();
	hi.ops->ho_tick(&hi);
	CALLS("");
	hi.counters[HOSTIF_C_RX_LONG] = 1;
	hi.ops->ho_tick(&hi);
	CALLS("log packets of more than 64 KB are dropped: set gso_max_size "
	    "of what sends them and gro_max_size of h0 to 65536, by ip link "
	    "set; ");
	hi.counters[HOSTIF_C_RX_LONG]++;
	hi.ops->ho_tick(&hi);
	CALLS("");
}

TEST_PROGRAM
