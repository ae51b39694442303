/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Invalid receive rings and descriptors: they are counted, and neither stop nor
 * crash the model.
 */

#include <sys/param.h>

#include <string.h>

#include "e82545_check.h"

HOST_TEST(bad_address, rx_up(64, 256), "A frame with a buffer outside guest "
    "memory is an error")
{
	static const uint64_t bad[] = {
		HOST_RAM, HOST_RAM - 59, UINT64_MAX, UINT64_MAX - 59,
		0x8000000000000000, 0x100000000
	};
	uint8_t buf[256], frame[600];
	struct e82545_rxd *rxd;
	unsigned int i;
	uint32_t n;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		n = h->rxnext;
		rxd = host_rxd(h, n);
		rxd->addr = bad[i];
		rx_receive(h, frame, 60);
		ATF_CHECK_EQ(RXD_DONE | E82545_RXD_IXSM, rxd->status);
		ATF_CHECK_EQ(E82545_RXD_ERR_RXE, rxd->errors);
		ATF_CHECK_EQ(60, rxd->length);
		ATF_CHECK_EQ(i + 1, host_counter(h, E82545_C_RX_BAD_ADDR));
		rxd->addr = h->rxbuf + n * 256;
		ATF_CHECK_EQ(60, host_rx_take(h, buf, sizeof(buf), NULL));
	}
	ATF_CHECK_EQ(0, host_rd(h, E82545_GPRC));
	/*
	 * A buffer may end where memory ends, or reach beyond if the frame does
	 * not.
	 */
	rxd = host_rxd(h, h->rxnext);
	rxd->addr = HOST_RAM - 60;
	rx_receive(h, frame, 60);
	ATF_CHECK_EQ(0, memcmp(host_mem(h, HOST_RAM - 60, 60), frame, 60));
	ATF_CHECK_EQ(0, rxd->errors);
	rxd->addr = h->rxbuf;
	ATF_CHECK_EQ(60, host_rx_take(h, buf, sizeof(buf), NULL));
	/*
	 * One invalid buffer among three: the others are filled, and the last
	 * descriptor has the error.
	 */
	n = h->rxnext;
	host_rxd(h, n + 1)->addr = HOST_RAM;
	rx_receive(h, frame, 600);
	ATF_CHECK_EQ(E82545_RXD_DD, host_rxd(h, n + 1)->status);
	ATF_CHECK_EQ(0, host_rxd(h, n + 1)->errors);
	ATF_CHECK_EQ(E82545_RXD_ERR_RXE, host_rxd(h, n + 2)->errors);
	ATF_CHECK_EQ(0, memcmp(host_mem(h, h->rxbuf + (n + 2) * 256, 88),
	    frame + 512, 88));
}

HOST_TEST(bad_ring, rx_up(64, 256), "Invalid rings are counted; frames wait")
{
	static const struct {
		uint64_t	base;
		uint32_t	len, head, tail;
		unsigned int	bad;
	} t[] = {
		{ 0x20000, 1024, 64, 1, 1 },
		{ 0x20000, 1024, 65535, 65535, 1 },
		{ 0x20000, 0, 0, 0, 0 },		/* not set up yet */
		{ 0x20000, 0, 5, 9, 0 },
		{ HOST_RAM, 1024, 0, 1, 1 },
		{ HOST_RAM - 1008, 1024, 0, 1, 1 },
		{ 0xfffffffffffffff0, 1024, 0, 1, 1 },
		{ HOST_RAM - 0x10000, 0xfff80, 0, 1, 1 },
	};
	uint8_t frame[60];
	unsigned int bad, i;

	bad = 0;
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	host_inject(h, frame, sizeof(frame), 1);
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		host_wr(h, E82545_RDBAL, t[i].base);
		host_wr(h, E82545_RDBAH, t[i].base >> 32);
		host_wr(h, E82545_RDLEN, t[i].len);
		host_wr(h, E82545_RDH, t[i].head);
		host_wr(h, E82545_RDT, t[i].tail);
		ATF_CHECK_EQ_MSG(E82545_RX_STALLED, e82545_rx(h->dev),
		    "case %u", i);
		bad += t[i].bad;
		ATF_CHECK_EQ_MSG(bad, host_counter(h, E82545_C_RX_BAD_RING),
		    "case %u", i);
		ATF_CHECK_EQ(t[i].head, host_rd(h, E82545_RDH));
		ATF_CHECK_EQ(1, host_rx_pending(h));
	}
	h->ready = false;
	host_up(h, 64, 64, 256);
	ATF_CHECK(h->ready);
	host_run(h);
	check_taken(h, frame, sizeof(frame));
	check_rx_alive(h);
}

HOST_TEST(overlap, rx_up(64, 256), "A ring whose buffers overlap it")
{
	uint8_t frame[600];
	unsigned int i;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	for (i = 0; i < 64; i++)
		host_rxd(h, i)->addr = h->rxring + i * 16;
	for (i = 0; i < 20; i++)
		rx_receive(h, frame, sizeof(frame));
	host_wr(h, E82545_RDT, (host_rd(h, E82545_RDH) + 63) % 64);
	host_run(h);
	ATF_CHECK(host_rd(h, E82545_RDH) < 64);
}

HOST_TEST(fuzz, rx_up(512, 2048), "Random rings, registers and frames neither "
    "stop nor crash the model")
{
	static const uint32_t regs[] = {
		E82545_RCTL, E82545_RDH, E82545_RDT, E82545_RDLEN,
		E82545_RDBAL, E82545_CTRL, E82545_RXCSUM, E82545_VET,
		E82545_RDT, E82545_RDT
	};
	uint8_t frame[20000];
	struct packet p;
	uint32_t i, reg, seed = 0x3101;
	unsigned int calls, round;
	size_t len;

	for (round = 0; round < 400; round++) {
		for (i = 0; i < 512; i++) {
			host_rxd(h, i)->addr = test_random(&seed) %
			    (HOST_RAM + 0x10000);
			if (test_random(&seed) % 64 == 0)
				host_rxd(h, i)->addr |=
				    (uint64_t)test_random(&seed) << 32;
		}
		host_wr(h, E82545_RDT, test_random(&seed) % 520);
		for (i = 0; i < 20; i++) {
			memset(&p, 0, sizeof(p));
			p.v6 = test_random(&seed) & 1;
			p.udp = test_random(&seed) & 1;
			p.vlan = test_random(&seed) & 1;
			p.payload = frame;
			p.paylen = 0;
			packet_build(&p, frame);
			len = 1 + test_random(&seed) %
			    (i % 4 == 0 ? sizeof(frame) : 200);
			frame[test_random(&seed) % 60] =
			    test_random(&seed);
			if (host_rx_pending(h) < 200)
				host_inject(h, frame, len, 1 +
				    test_random(&seed) % MIN(len, 64));
		}
		if (round % 4 == 0) {
			reg = regs[test_random(&seed) % 10];
			host_wr(h, reg, test_random(&seed) &
			    ~(E82545_CTRL_RST | E82545_CTRL_PHY_RST));
		}
		for (calls = 0; e82545_rx(h->dev) == E82545_RX_MORE; calls++)
			ATF_REQUIRE(calls < 1000);
		if (round % 16 == 0) {
			e82545_reset(h->dev);
			h->brk = 0x10000;
			host_up(h, 64, 512, 2048);
			host_set(h, E82545_CTRL, E82545_CTRL_VME);
			host_set(h, E82545_RCTL, E82545_RCTL_LPE |
			    E82545_RCTL_UPE | E82545_RCTL_MPE);
			host_wr(h, E82545_RXCSUM, RXCSUM_ON);
		}
	}
	ATF_CHECK(host_counter(h, E82545_C_RX_FRAME) > 1000);
	host_clear(h, E82545_RCTL, E82545_RCTL_EN);
	host_run(h);
	e82545_reset(h->dev);
	h->brk = 0x10000;
	host_up(h, 64, 512, 2048);
	host_run(h);
	host_rx_take(h, frame, sizeof(frame), NULL);
	while (host_rx_take(h, frame, sizeof(frame), NULL) != -1)
		;
	host_rx_post(h);
	check_rx_alive(h);
}

TEST_PROGRAM
