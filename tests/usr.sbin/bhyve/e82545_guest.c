/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See e82545_guest.h.
 */

#include <sys/param.h>

#include <string.h>

#include "e82545_guest.h"

uint64_t
guest_alloc(struct host *h)
{
	uint64_t gpa;

	gpa = host_alloc(h, NET_PARAVIRT_CSB_SIZE, NET_PARAVIRT_CSB_SIZE);
	h->csb = host_mem(h, gpa, NET_PARAVIRT_CSB_SIZE);
	CSB_SET(h, host_need_txkick, 1);
	CSB_SET(h, guest_need_rxkick, 1);
	CSB_SET(h, guest_txkick_at, NET_PARAVIRT_NONE);
	return (gpa);
}

void
guest_place(struct host *h, uint64_t gpa)
{
	host_wr(h, E82545_CSBAH, gpa >> 32);
	host_wr(h, E82545_CSBAL, gpa);
}

void
guest_move(struct host *h)
{
	const uint64_t gpa = guest_alloc(h);

	CSB_SET(h, guest_tdt, h->txtail);
	CSB_SET(h, guest_rdt, h->rxtail);
	CSB_SET(h, guest_csb_on, 1);
	guest_place(h, gpa);
}

struct host *
guest_up(uint32_t ntxd, uint32_t nrxd, uint32_t bufsize, uint32_t rounds)
{
	struct host *h;
	uint64_t gpa;

	h = host_create_csb(HOST_RAM);
	gpa = guest_alloc(h);
	host_up(h, ntxd, nrxd, bufsize);
	CSB_SET(h, guest_rdt, h->rxtail);
	CSB_SET(h, host_txcycles_lim, rounds);
	guest_place(h, gpa);
	CSB_SET(h, guest_csb_on, 1);
	/* Without TXD_LOW, which the CSB's flags do not cover. */
	host_wr(h, E82545_IMS, E82545_ICR_ALL & ~E82545_ICR_TXD_LOW);
	host_run(h);
	host_rd(h, E82545_ICR);
	h->nraised = 0;
	return (h);
}

struct host *
guest_awake(unsigned int n, uint32_t rounds)
{
	struct host *h = guest_up(64, 16, 2048, rounds);

	ATF_REQUIRE(guest_post(h, n));
	ATF_REQUIRE_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	ATF_REQUIRE_EQ(n, host_sent(h));
	h->kicked = false;
	return (h);
}

struct host *
guest_migrate(struct host *h)
{
	struct host *to = host_create_csb(HOST_RAM);
	uint8_t buf[65536];
	size_t size;

	size = e82545_snapshot_size(h->dev);
	ATF_REQUIRE(size != 0 && size <= sizeof(buf));
	e82545_pause(h->dev);
	ATF_REQUIRE_EQ(0, e82545_snapshot_save(h->dev, buf, size));
	memcpy(to->ram, h->ram, HOST_RAM);
	to->csb = host_mem(to, (uint8_t *)h->csb - h->ram, sizeof(*to->csb));
	to->rxring = h->rxring;
	to->nrxd = h->nrxd;
	e82545_pause(to->dev);
	ATF_REQUIRE_EQ(0, e82545_snapshot_restore(to->dev, buf, size));
	host_destroy(h);
	return (to);
}

void
guest_frames(struct host *h, unsigned int n)
{
	uint8_t frame[60];

	while (n-- > 0) {
		host_make_frame(frame, sizeof(frame), host_mac, h->txtail);
		host_tx_frame(h, frame, sizeof(frame), 0);
	}
}

bool
guest_send(struct host *h)
{
	CSB_SET(h, guest_tdt, h->txtail);
	CSB_BARRIER();
	if (CSB_GET(h, guest_csb_on) != 0 &&
	    (CSB_GET(h, host_need_txkick) & 1) == 0)
		return (false);
	host_tx_go(h);
	return (true);
}

bool
guest_post(struct host *h, unsigned int n)
{
	guest_frames(h, n);
	return (guest_send(h));
}

void
guest_transmit(struct host *h, unsigned int n)
{
	(void)guest_post(h, n);
	host_run(h);
}

void
guest_store(struct host *h, unsigned int n)
{
	guest_frames(h, n);
	CSB_SET(h, guest_tdt, h->txtail);
}

bool
guest_give(struct host *h)
{
	uint32_t at, given, old;

	old = h->rxposted;
	given = (h->rxtail + h->nrxd - old) % h->nrxd;
	CSB_SET(h, guest_rdt, h->rxtail);
	h->rxposted = h->rxtail;
	CSB_BARRIER();
	at = CSB_GET(h, host_rxkick_at);
	if (CSB_GET(h, guest_csb_on) != 0 && (at >= h->nrxd ||
	    (at + h->nrxd - old - 1) % h->nrxd >= given))
		return (false);
	host_rx_post(h);
	return (true);
}

void
guest_offer(struct host *h, unsigned int n)
{
	uint8_t frame[60];

	for (; n > 0; n--) {
		host_make_frame(frame, sizeof(frame), host_mac, n);
		host_inject(h, frame, sizeof(frame), 1);
	}
}

void
guest_inject(struct host *h, unsigned int n)
{
	guest_offer(h, n);
	host_run(h);
}

unsigned int
guest_take(struct host *h, unsigned int max)
{
	uint8_t buf[2048];
	unsigned int n;

	for (n = 0; n < max && host_rx_take(h, buf, sizeof(buf), NULL) > 0; n++)
		;
	return (n);
}

bool
guest_return(struct host *h, unsigned int n)
{
	ATF_CHECK_EQ(n, guest_take(h, n));
	return (guest_give(h));
}

void
guest_receive(struct host *h, unsigned int n)
{
	guest_inject(h, n);
	ATF_CHECK_EQ(n, guest_take(h, n + 1));
}

unsigned int
guest_rounds(struct host *h)
{
	unsigned int n;

	h->kicked = false;
	for (n = 1; e82545_tx(h->dev); n++)
		;
	return (n);
}
