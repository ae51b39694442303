/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Invalid rings and descriptors: they are counted, and neither stop nor crash
 * the model.
 */

#include <string.h>

#include "e82545_check.h"

HOST_TEST(rx_bad_address, rx_up(64, 256), "A frame with a buffer outside guest "
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

HOST_TEST(rx_bad_ring, rx_up(64, 256), "Invalid rings are counted; frames wait")
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

HOST_TEST(tx_bad_ring, tx_up(64), "Invalid rings are counted and not used")
{
	static const struct {
		uint64_t	base;
		uint32_t	len, head, tail;
		unsigned int	bad;
	} t[] = {
		{ 0x20000, 1024, 0, 65, 1 },
		{ 0x20000, 1024, 0, 65535, 1 },
		{ 0x20000, 1024, 64, 1, 1 },
		{ 0x20000, 1024, 65535, 65534, 1 },
		{ 0x20000, 1024, 65535, 65535, 0 },	/* "empty" */
		{ 0x20000, 0, 0, 1, 1 },
		{ 0x20000, 0, 0, 0, 0 },
		{ HOST_RAM, 1024, 0, 1, 1 },
		{ HOST_RAM - 1008, 1024, 0, 1, 1 },
		{ 0xfffffffffffffff0, 1024, 0, 1, 1 },
		{ 0xfffffffffffffc00, 1024, 0, 1, 1 },
		{ HOST_RAM - 0x10000, 0xfff80, 0, 1, 1 },
	};
	unsigned int bad, i;

	bad = 0;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		host_wr(h, E82545_TDBAL, t[i].base);
		host_wr(h, E82545_TDBAH, t[i].base >> 32);
		host_wr(h, E82545_TDLEN, t[i].len);
		host_wr(h, E82545_TDH, t[i].head);
		host_wr(h, E82545_TDT, t[i].tail);
		ATF_CHECK(!e82545_tx(h->dev));
		bad += t[i].bad;
		ATF_CHECK_EQ_MSG(bad, host_counter(h, E82545_C_TX_BAD_RING),
		    "case %u", i);
		ATF_CHECK_EQ(t[i].head, host_rd(h, E82545_TDH));
	}
	ATF_CHECK_EQ(0, h->nflush);
	host_up(h, 64, 64, 2048);
	check_tx_alive(h);
}

HOST_TEST(tx_bad_ring_later, tx_up(64), "A ring that was valid in the batch "
    "before")
{
	uint8_t *ram = h->ram;

	check_tx_alive(h);
	host_wr(h, E82545_TDT, 65);
	ATF_CHECK(!e82545_tx(h->dev));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_TX_BAD_RING));
	/* Where the host has it, it is not aligned. */
	host_up(h, 64, 64, 2048);
	memmove(ram + 4, ram, HOST_RAM - 4);
	h->ram += 4;
	h->ram_size -= 4;
	tx_desc(h, h->txring, TXD_LAST | 100, 0);
	tx_go(h);
	ATF_CHECK_EQ(2, host_counter(h, E82545_C_TX_BAD_RING));
	ATF_CHECK_EQ(0, host_rd(h, E82545_TDH));
	h->ram = ram;
	h->ram_size = HOST_RAM;
	host_up(h, 64, 64, 2048);
	check_tx_alive(h);
}

HOST_TEST(tx_bad_address, tx_up(64), "Buffers outside guest memory")
{
	static const struct {
		uint64_t	addr;
		uint16_t	len;
		bool		ok;
	} t[] = {
		{ HOST_RAM - 100, 100, true },
		{ HOST_RAM - 99, 100, false },
		{ HOST_RAM, 100, false },
		{ 0xffffffffffffffff, 100, false },
		{ 0xffffffffffffff9c, 100, false },
		{ 0x8000000000000000, 65535, false },
		{ 0x100000000, 100, false },
	};
	unsigned int bad, i;
	uint32_t n;

	bad = 0;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		host_sent_clear(h);
		/* As the only, the first and the last descriptor of a frame. */
		n = host_tx_legacy(h, t[i].addr, t[i].len, TXD_LAST);
		host_tx_legacy(h, t[i].addr, t[i].len, 0);
		host_tx_legacy(h, 0x1000, 100, TXD_LAST);
		host_tx_legacy(h, 0x1000, 100, 0);
		host_tx_legacy(h, t[i].addr, t[i].len, TXD_LAST);
		tx_go(h);
		ATF_CHECK(host_tx_done(h, n));
		bad += t[i].ok ? 0 : 3;
		ATF_CHECK_EQ_MSG(bad, host_counter(h, E82545_C_TX_BAD_ADDR),
		    "case %u", i);
		ATF_CHECK_EQ(t[i].ok ? 3 : 0, host_sent(h));
	}
	check_tx_alive(h);
}

HOST_TEST(lengths, tx_up(64), "The 20 bits of a data descriptor's length, and "
    "the 16 of a legacy one's")
{
	uint8_t frame[100];
	uint64_t gpa;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	gpa = tx_put(h, frame, sizeof(frame));
	tx_desc(h, gpa, TXD_DATA | TXD_LAST | 1 << 16 | 100, 0);
	tx_go(h);
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_TX_BAD_LEN));
	/* What follows the length is CSO, which nothing asks for. */
	tx_desc(h, gpa, TXD_LAST | 0x17 << 16 | 100, 0);
	tx_go(h);
	check_sent(h, 0, frame, sizeof(frame));
}

TEST_PROGRAM
