/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <string.h>

#include "e1000_driver.h"

#define	FRAME_MAX	16384		/* bytes */

struct host *
adapter(uint32_t ntxd, uint32_t nrxd, uint32_t bufsize)
{
	struct host *h = host_create(HOST_RAM);

	host_rings(h, ntxd, nrxd, bufsize);
	return (h);
}

void
check_address(struct host *h)
{
	ATF_CHECK_EQ(le32dec(host_mac), host_rd(h, E82545_RAL(0)));
	ATF_CHECK_EQ(le16dec(host_mac + 4) | E82545_RAH_AV,
	    host_rd(h, E82545_RAH(0)));
}

void
check_eerd(struct host *h)
{
	uint32_t i, v;

	for (i = 0; i < 3; i++) {
		host_wr(h, E82545_EERD, i << 8 | E82545_EERD_START);
		v = host_rd(h, E82545_EERD);
		ATF_CHECK((v & E82545_EERD_DONE) != 0);
		ATF_CHECK_EQ(le16dec(host_mac + 2 * i), v >> 16);
	}
}

/* Without the pauses between instructions that Linux and FreeBSD make. */
static uint16_t
microwire_read(struct host *h, unsigned int addr)
{
	uint32_t eecd, i, op;
	uint16_t data;

	eecd = host_rd(h, E82545_EECD) & ~(E82545_EECD_SK | E82545_EECD_DI);
	host_wr(h, E82545_EECD, eecd);
	eecd |= E82545_EECD_CS;
	host_wr(h, E82545_EECD, eecd);
	op = 6 << 6 | addr;
	for (i = 9; i-- > 0;) {
		eecd &= ~E82545_EECD_DI;
		if ((op >> i & 1) != 0)
			eecd |= E82545_EECD_DI;
		host_wr(h, E82545_EECD, eecd);
		host_wr(h, E82545_EECD, eecd | E82545_EECD_SK);
		host_wr(h, E82545_EECD, eecd);
	}
	/* DI stays as the address left it. */
	data = 0;
	for (i = 0; i < 16; i++) {
		host_wr(h, E82545_EECD, eecd | E82545_EECD_SK);
		data = data << 1 |
		    ((host_rd(h, E82545_EECD) & E82545_EECD_DO) != 0);
		host_wr(h, E82545_EECD, eecd);
	}
	host_wr(h, E82545_EECD, eecd & ~E82545_EECD_CS);
	return (data);
}

void
check_microwire(struct host *h, bool hold)
{
	uint16_t sum, word;
	unsigned int i;

	sum = 0;
	for (i = 0; i < 64; i++) {
		host_set(h, E82545_EECD, E82545_EECD_REQ);
		ATF_REQUIRE((host_rd(h, E82545_EECD) &
		    E82545_EECD_GNT) != 0);
		word = microwire_read(h, i);
		sum += word;
		if (i < 3)
			ATF_CHECK_EQ(le16dec(host_mac + 2 * i), word);
		if (!hold)
			host_clear(h, E82545_EECD, E82545_EECD_REQ);
	}
	host_clear(h, E82545_EECD, E82545_EECD_REQ);
	ATF_CHECK_EQ(0xbaba, sum);
}

bool
has_link(struct host *h)
{
	return ((host_rd(h, E82545_STATUS) & E82545_STATUS_LU) != 0);
}

void
fill_tx(struct host *h, uint32_t n, uint16_t len, uint32_t cmd)
{
	uint8_t frame[FRAME_MAX];
	union e82545_txd *txd;

	host_make_frame(frame, len, BROADCAST, n);
	txd = host_txd(h, n);
	memset(txd, 0, sizeof(*txd));
	txd->addr = tx_put(h, frame, len);
	txd->lower = cmd | len;
}

void
check_tx(struct host *h, unsigned int n, uint16_t len)
{
	uint8_t frame[FRAME_MAX] = { 0 };

	host_run(h);
	ATF_REQUIRE_EQ(1, host_sent(h));
	host_make_frame(frame, len, BROADCAST, n);
	check_sent(h, 0, frame, MAX(len, 60));
	host_sent_clear(h);
}

void
send_one(struct host *h, uint32_t n, uint16_t len, uint32_t more)
{
	fill_tx(h, n, len, TXD_LAST | more);
	host_wr(h, E82545_TDT, (n + 1) % h->ntxd);
	check_tx(h, n, len);
	ATF_CHECK(host_tx_done(h, n));
}

void
arrive_at(struct host *h, const uint8_t dst[6], unsigned int n, size_t len)
{
	uint8_t frame[FRAME_MAX];

	host_make_frame(frame, len, dst, n);
	rx_receive(h, frame, len);
}

void
arrive(struct host *h, unsigned int n, size_t len)
{
	arrive_at(h, host_mac, n, len);
}

void
check_rx_at(struct host *h, uint32_t i, const uint8_t dst[6], unsigned int n,
    size_t len, size_t fcs)
{
	uint8_t frame[FRAME_MAX];
	struct e82545_rxd *rxd;

	host_make_frame(frame, len, dst, n);
	rxd = host_rxd(h, i);
	ATF_REQUIRE_EQ_MSG(RXD_DONE, rxd->status & RXD_DONE,
	    "descriptor %u: status %#x", i, rxd->status);
	ATF_CHECK_EQ(0, rxd->errors);
	ATF_REQUIRE_EQ(len + fcs, rxd->length);
	ATF_CHECK(memcmp(frame, host_mem(h, rxd->addr, len), len) == 0);
	rxd->status = 0;
}

void
check_rx(struct host *h, uint32_t i, unsigned int n, size_t len, size_t fcs)
{
	check_rx_at(h, i, host_mac, n, len, fcs);
}
