/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Invalid transmit rings and descriptors: they are counted, and neither stop
 * nor crash the model.
 */

#include "e82545_check.h"

HOST_TEST(bad_ring, tx_up(64), "Invalid rings are counted and not used")
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

HOST_TEST(bad_ring_later, tx_up(64), "A ring that was valid in the batch "
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

HOST_TEST(bad_address, tx_up(64), "Buffers outside guest memory")
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

HOST_TEST(bad_descriptor, tx_up(64), "Unknown types, and legacy and data "
    "descriptors mixed")
{
	unsigned int bad, dtyp;
	uint32_t n;

	bad = 0;
	for (dtyp = 2; dtyp < 16; dtyp++) {
		n = tx_desc(h, 0x1000, E82545_TXD_DEXT | dtyp << 20 |
		    TXD_LAST | 100, 0);
		tx_go(h);
		ATF_CHECK(host_tx_done(h, n));
		ATF_CHECK_EQ(++bad, host_counter(h, E82545_C_TX_BAD_DESC));
		/* In the middle of a frame. */
		tx_desc(h, 0x1000, TXD_DATA | 100, 0);
		tx_desc(h, 0x1000, E82545_TXD_DEXT | dtyp << 20 | 100, 0);
		tx_desc(h, 0x1000, TXD_DATA | TXD_LAST | 100, 0);
		tx_go(h);
		ATF_CHECK_EQ(++bad, host_counter(h, E82545_C_TX_BAD_DESC));
	}
	tx_desc(h, 0x1000, TXD_DATA | 100, 0);
	tx_desc(h, 0x1000, TXD_LAST | 100, 0);
	tx_desc(h, 0x1000, 100, 0);
	tx_desc(h, 0x1000, TXD_DATA | TXD_LAST | 100, 0);
	tx_go(h);
	ATF_CHECK_EQ(bad + 2, host_counter(h, E82545_C_TX_BAD_DESC));
	ATF_CHECK_EQ(0, host_sent(h));
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

HOST_TEST(context_like_data, tx_up(64), "A context descriptor is not a packet, "
    "though it has EOP's and IFCS's bits, a length and an address")
{
	union e82545_txd txd;

	memset(&txd, 0, sizeof(txd));
	txd.addr = h->txring;
	txd.lower = TXD_CONTEXT | E82545_TXD_TUCMD_TCP | E82545_TXD_TUCMD_IP |
	    100;
	ATF_REQUIRE_EQ(E82545_TXD_EOP | E82545_TXD_IFCS,
	    txd.lower & (E82545_TXD_EOP | E82545_TXD_IFCS));
	host_tx_desc(h, &txd);
	tx_go(h);
	ATF_CHECK_EQ(1, host_rd(h, E82545_TDH));
	ATF_CHECK_EQ(0, host_sent(h));
	check_tx_alive(h);
}

/* Random descriptors, many of them valid. */
static void
random_desc(struct host *h, uint32_t i, uint32_t *seed)
{
	union e82545_txd *txd = host_txd(h, i);
	uint32_t r = test_random(seed);

	txd->addr = test_random(seed) % (HOST_RAM + 4096);
	if (r % 4 == 0)
		txd->addr &= ~63ULL;
	if (r % 64 == 0)
		txd->addr |= (uint64_t)test_random(seed) << 32;
	txd->lower = test_random(seed);
	txd->upper = test_random(seed);
	switch (r / 64 % 8) {
	case 0:
		break;
	case 1:
		txd->lower = TXD_CONTEXT | (txd->lower & 0x0f0fffff);
		txd->context.hdrlen = 54 + r % 40;
		break;
	case 2:
		txd->lower = TXD_CONTEXT | (txd->lower & 0x0f0fffff);
		txd->context.ipcss = 14;
		txd->context.tucss = 34;
		txd->context.tucso = (txd->lower & E82545_TXD_TUCMD_TCP) != 0 ?
		    50 : 40;
		txd->context.hdrlen = 54 + r % 8;
		txd->context.mss |= 64;
		break;
	case 3:
	case 4:
		txd->lower = (txd->lower & 0xdf0007ff) | E82545_TXD_EOP;
		break;
	default:
		txd->lower = TXD_DATA | (txd->lower & 0xc7001fff) |
		    ((r & 0x10000) != 0 ? E82545_TXD_TSE : 0);
		break;
	}
}

HOST_TEST(fuzz, tx_up(512), "Random descriptors neither stop nor crash the "
    "model")
{
	static const uint32_t regs[] = {
		E82545_TDH, E82545_TDLEN, E82545_TDBAL, E82545_CTRL,
		E82545_TCTL, E82545_RCTL, E82545_VET, E82545_TXDCTL
	};
	uint32_t i, reg, seed = 0x82545;
	unsigned int calls, round;
	uint8_t *mem;

	h->tx_discard = true;
	/* Many addresses look like a header of IPv4 and TCP. */
	mem = host_mem(h, 0, HOST_RAM);
	for (i = 0; i < HOST_RAM; i += 64) {
		mem[i + 14] = 0x45;
		mem[i + 46] = 0x50;
	}
	for (round = 0; round < 300; round++) {
		for (i = 0; i < 512; i++)
			random_desc(h, i, &seed);
		host_wr(h, E82545_TDT, test_random(&seed) % 520);
		for (calls = 0; calls < 40 && e82545_tx(h->dev); calls++)
			random_desc(h, test_random(&seed) % 512, &seed);
		if (round % 4 == 0) {
			reg = regs[test_random(&seed) % 8];
			host_wr(h, reg, test_random(&seed) &
			    ~(E82545_CTRL_RST | E82545_CTRL_PHY_RST));
		}
		if (round % 16 == 0) {
			e82545_reset(h->dev);
			h->brk = 0x10000;
			host_up(h, 512, 64, 2048);
			host_set(h, E82545_CTRL, E82545_CTRL_VME);
		}
	}
	/* Some were valid. */
	ATF_CHECK(host_counter(h, E82545_C_TX_FRAME) > 1000);
	ATF_CHECK(host_counter(h, E82545_C_TX_TSO) > 10);
	h->tx_discard = false;
	e82545_reset(h->dev);
	h->brk = 0x10000;
	host_up(h, 512, 64, 2048);
	check_tx_alive(h);
}

TEST_PROGRAM
