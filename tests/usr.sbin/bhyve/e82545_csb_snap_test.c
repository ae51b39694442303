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

	CSB_SET(h, guest_need_rxkick, 0);
	CSB_SET(h, guest_need_txkick, 0);
	guest_inject(h, n);
	return (h);
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
	h = guest_migrate(h);
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
	unsigned int i;

	/* The mode goes off; guest_rdt stays 3 while the ring goes on. */
	CSB_SET(h, guest_rdt, 3);
	CSB_SET(h, guest_csb_on, 0);
	guest_inject(h, NRXD);
	ATF_CHECK_EQ(1, host_rx_pending(h));
	ATF_CHECK_EQ(7, host_rd(h, E82545_RDH));
	CSB_SET(h, guest_csb_on, 1);
	h = guest_migrate(h);
	/* All are taken, and posted up to there. */
	for (i = 0; i < 7; i++)
		host_rxd(h, i)->status = 0;
	CSB_SET(h, guest_rdt, 3);
	e82545_resume(h->dev);
	guest_inject(h, 1);
	host_advance(h, 0);
	host_run(h);
	ATF_CHECK_EQ(0, host_rx_pending(h));
	ATF_CHECK_EQ(0, host_rd(h, E82545_RDH));
	ATF_CHECK_EQ(3, host_rd(h, E82545_RDT));
	host_destroy(h);
}

TEST_PROGRAM
