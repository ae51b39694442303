/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The driver of e82545_host.h: guest memory, and the guest's side of the rings.
 */

#include <sys/types.h>
#include <sys/endian.h>

#include <string.h>

#include "e82545_host.h"
#include "require.h"

void *
host_mem(struct host *h, uint64_t gpa, size_t len)
{
	REQUIRE(gpa < h->ram_size && len <= h->ram_size - gpa);
	return (h->ram + gpa);
}

uint64_t
host_alloc(struct host *h, size_t len, size_t align)
{
	uint64_t gpa;

	gpa = (h->brk + align - 1) & ~((uint64_t)align - 1);
	memset(host_mem(h, gpa, len), 0, len);
	h->brk = gpa + len;
	return (gpa);
}

uint32_t
host_rctl_bsize(uint32_t rxbufsize)
{
	switch (rxbufsize) {
	case 256:
		return (3 << 16);
	case 512:
		return (2 << 16);
	case 1024:
		return (1 << 16);
	case 2048:
		return (0);
	case 4096:
		return (3 << 16 | E82545_RCTL_BSEX);
	case 8192:
		return (2 << 16 | E82545_RCTL_BSEX);
	case 16384:
		return (1 << 16 | E82545_RCTL_BSEX);
	default:
		REQUIRE(!"buffer size");
		return (0);
	}
}

void
host_rings(struct host *h, uint32_t ntxd, uint32_t nrxd, uint32_t rxbufsize)
{
	uint32_t i;

	h->ntxd = ntxd;
	h->txring = host_alloc(h, ntxd * sizeof(union e82545_txd), 128);
	h->nrxd = nrxd;
	h->rxbufsize = rxbufsize;
	h->rxring = host_alloc(h, nrxd * sizeof(struct e82545_rxd), 128);
	h->rxbuf = host_alloc(h, (size_t)nrxd * rxbufsize, 128);
	for (i = 0; i < nrxd; i++)
		host_rxd(h, i)->addr = h->rxbuf + (uint64_t)i * rxbufsize;
}

void
host_place_tx(struct host *h)
{
	host_wr(h, E82545_TDBAL, h->txring);
	host_wr(h, E82545_TDBAH, h->txring >> 32);
	host_wr(h, E82545_TDLEN, h->ntxd * sizeof(union e82545_txd));
	host_wr(h, E82545_TDH, 0);
	host_wr(h, E82545_TDT, 0);
}

void
host_place_rx(struct host *h)
{
	host_wr(h, E82545_RDBAL, h->rxring);
	host_wr(h, E82545_RDBAH, h->rxring >> 32);
	host_wr(h, E82545_RDLEN, h->nrxd * sizeof(struct e82545_rxd));
	host_wr(h, E82545_RDH, 0);
}

void
host_up(struct host *h, uint32_t ntxd, uint32_t nrxd, uint32_t rxbufsize)
{
	host_set(h, E82545_CTRL, E82545_CTRL_SLU);
	host_rings(h, ntxd, nrxd, rxbufsize);
	h->txtail = 0;
	host_place_tx(h);
	h->rxnext = 0;
	h->rxtail = h->rxposted = nrxd - 1;
	host_place_rx(h);
	host_wr(h, E82545_RDT, h->rxtail);
	host_wr(h, E82545_TCTL, E82545_TCTL_EN | E82545_TCTL_PSP);
	host_wr(h, E82545_RCTL, E82545_RCTL_EN | E82545_RCTL_BAM |
	    E82545_RCTL_SECRC | host_rctl_bsize(rxbufsize));
}

union e82545_txd *
host_txd(struct host *h, uint32_t n)
{
	REQUIRE(n < h->ntxd);
	return (host_mem(h, h->txring + n * sizeof(union e82545_txd),
	    sizeof(union e82545_txd)));
}

struct e82545_rxd *
host_rxd(struct host *h, uint32_t n)
{
	REQUIRE(n < h->nrxd);
	return (host_mem(h, h->rxring + n * sizeof(struct e82545_rxd),
	    sizeof(struct e82545_rxd)));
}

uint32_t
host_tx_desc(struct host *h, const union e82545_txd *txd)
{
	uint32_t n;

	n = h->txtail;
	*host_txd(h, n) = *txd;
	h->txtail = (n + 1) % h->ntxd;
	return (n);
}

uint32_t
host_tx_legacy(struct host *h, uint64_t gpa, uint16_t len, uint32_t cmd)
{
	union e82545_txd txd;

	memset(&txd, 0, sizeof(txd));
	txd.addr = gpa;
	txd.lower = cmd | len;
	return (host_tx_desc(h, &txd));
}

uint32_t
host_tx_frame(struct host *h, const void *data, uint16_t len, uint32_t cmd)
{
	uint64_t gpa;

	gpa = host_alloc(h, len, 1);
	memcpy(host_mem(h, gpa, len), data, len);
	return (host_tx_legacy(h, gpa, len, cmd | E82545_TXD_EOP |
	    E82545_TXD_IFCS | E82545_TXD_RS));
}

void
host_tx_go(struct host *h)
{
	host_wr(h, E82545_TDT, h->txtail);
}

bool
host_tx_done(struct host *h, uint32_t n)
{
	volatile uint8_t *status = &host_txd(h, n)->legacy.status;

	return ((atomic_load_acq_8(status) & E82545_TXD_DD) != 0);
}

bool
host_rx_done(struct host *h, uint32_t n)
{
	/* Read at once, as it is written. */
	const uint64_t *done = (const void *)&host_rxd(h, n)->length;

	return ((le64toh(atomic_load_acq_64(done)) >> 32 & E82545_RXD_DD) !=
	    0);
}

ssize_t
host_rx_take(struct host *h, void *buf, size_t size, struct e82545_rxd *last)
{
	struct e82545_rxd *rxd;
	uint32_t i, n;
	size_t len;
	bool eop;

	eop = false;
	for (i = 0; i < h->nrxd && !eop; i++) {
		n = (h->rxnext + i) % h->nrxd;
		if (!host_rx_done(h, n))
			return (-1);
		eop = (host_rxd(h, n)->status & E82545_RXD_EOP) != 0;
	}
	REQUIRE(eop);
	len = 0;
	do {
		rxd = host_rxd(h, h->rxnext);
		REQUIRE(rxd->length <= h->rxbufsize);
		REQUIRE(rxd->length <= size - len);
		memcpy((uint8_t *)buf + len,
		    host_mem(h, rxd->addr, rxd->length), rxd->length);
		len += rxd->length;
		eop = (rxd->status & E82545_RXD_EOP) != 0;
		if (last != NULL)
			*last = *rxd;
		rxd->length = rxd->csum = rxd->special = 0;
		rxd->status = rxd->errors = 0;
		h->rxnext = (h->rxnext + 1) % h->nrxd;
		h->rxtail = (h->rxtail + 1) % h->nrxd;
	} while (!eop);
	return (len);
}

void
host_rx_post(struct host *h)
{
	h->rxposted = h->rxtail;
	host_wr(h, E82545_RDT, h->rxtail);
}

void
host_make_frame(uint8_t *frame, size_t len, const uint8_t dst[6],
    unsigned int seed)
{
	static const uint8_t src[6] = { 0x02, 0, 0, 0, 0, 0x01 };
	size_t i;

	REQUIRE(len >= 14);
	memcpy(frame, dst, 6);
	memcpy(frame + 6, src, 6);
	/* An EtherType for experiments, which no filter parses. */
	frame[12] = 0x88;
	frame[13] = 0xb5;
	for (i = 14; i < len; i++)
		frame[i] = seed + i * 7;
}
