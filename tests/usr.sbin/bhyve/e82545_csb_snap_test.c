/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The CSB in a snapshot: what the restored model finds out by itself.
 */

#include <sys/param.h>

#include <string.h>

#include "e82545_guest.h"
#include "e82545_impl.h"
#include "test.h"

#define	RECHECK_NS		10000000	/* when the host looks again */
#define	NRXD		8

/* A host whose guest polls, with `n' frames from the network. */
static struct host *
up(unsigned int n)
{
	struct host *h = guest_up(64, NRXD, 2048, 1);
	uint8_t frame[60];

	CSB_SET(h, guest_need_rxkick, 0);
	CSB_SET(h, guest_need_txkick, 0);
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	for (; n > 0; n--)
		rx_receive(h, frame, sizeof(frame));
	return (h);
}

/* A host to which `h' is moved, not yet resumed.  Destroys `h'. */
static struct host *
move(struct host *h)
{
	struct host *to = host_create_csb(HOST_RAM);
	uint8_t buf[65536];
	size_t size;

	size = e82545_snapshot_size(h->dev);
	ATF_REQUIRE(size <= sizeof(buf));
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

HOST_TEST(saved, up(1), "Saving changes nothing")
{
	struct e82545_csb before;
	uint8_t buf[65536];

	e82545_pause(h->dev);
	memcpy(&before, &h->dev->csb, sizeof(before));
	ATF_REQUIRE_EQ(0, e82545_snapshot_save(h->dev, buf,
	    e82545_snapshot_size(h->dev)));
	ATF_CHECK_EQ(0, memcmp(&before, &h->dev->csb, sizeof(before)));
}

TEST(polled, "A guest_rdt of 0, too, may be new when a restored model first "
    "looks")
{
	struct host *h = up(1);

	CSB_SET(h, guest_rdt, 0);
	h = move(h);
	e82545_resume(h->dev);
	host_run(h);
	host_advance(h, 0);
	ATF_CHECK_EQ(0, host_raised(h));
	host_advance(h, RECHECK_NS);
	ATF_CHECK_EQ(1, host_raised(h));
	host_destroy(h);
}

TEST(wrapped, "A guest_rdt that has come round to the value seen before counts "
    "after a restore")
{
	struct host *h = up(0);
	uint8_t frame[60];
	unsigned int i;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	/* The mode goes off; guest_rdt stays 3 while the ring goes on. */
	CSB_SET(h, guest_rdt, 3);
	CSB_SET(h, guest_csb_on, 0);
	for (i = 0; i < NRXD; i++)
		rx_receive(h, frame, sizeof(frame));
	ATF_CHECK_EQ(1, host_rx_pending(h));
	ATF_CHECK_EQ(7, host_rd(h, E82545_RDH));
	CSB_SET(h, guest_csb_on, 1);
	h = move(h);
	/* All are taken, and posted up to there. */
	for (i = 0; i < 7; i++)
		host_rxd(h, i)->status = 0;
	CSB_SET(h, guest_rdt, 3);
	e82545_resume(h->dev);
	rx_receive(h, frame, sizeof(frame));
	host_advance(h, 0);
	host_run(h);
	ATF_CHECK_EQ(0, host_rx_pending(h));
	ATF_CHECK_EQ(0, host_rd(h, E82545_RDH));
	ATF_CHECK_EQ(3, host_rd(h, E82545_RDT));
	host_destroy(h);
}

TEST_PROGRAM
