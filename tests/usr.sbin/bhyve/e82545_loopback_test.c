/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Loopback by RCTL.LBM.  e82545_phy_test has the PHY's.
 */

#include <sys/param.h>

#include <string.h>

#include "e82545_check.h"
#include "e82545_impl.h"
#include "e82545_loop.h"

HOST_TEST(source, tx_up(64), "A looped frame is one fragment of its length")
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame f = { .f_iov = iov };
	uint8_t frame[100];

	host_make_frame(frame, sizeof(frame), host_mac, 5);
	host_set(h, E82545_RCTL, E82545_RCTL_LBM_MAC);
	host_tx_frame(h, frame, sizeof(frame), 0);
	host_tx_go(h);
	ATF_CHECK(!e82545_tx(h->dev));
	e82545_lock(&h->dev->rx_mtx);
	ATF_REQUIRE(frame_peek(e82545_loop_source(h->dev), &f));
	e82545_unlock(&h->dev->rx_mtx);
	ATF_CHECK_EQ(sizeof(frame), f.f_len);
	ATF_CHECK_EQ(1, f.f_niov);
	ATF_CHECK_EQ(sizeof(frame), iov[0].iov_len);
	ATF_CHECK_EQ(0, memcmp(frame, iov[0].iov_base, sizeof(frame)));
	host_run(h);
	check_taken(h, frame, sizeof(frame));
}

HOST_TEST(mtu, tx_up(64), "mtu= is not for looped frames")
{
	uint8_t frame[200];

	host_make_frame(frame, sizeof(frame), host_mac, 6);
	host_set(h, E82545_RCTL, E82545_RCTL_LBM_MAC);
	h->port.fp_frame_max = 100;
	host_tx_frame(h, frame, sizeof(frame), 0);
	tx_go(h);
	check_taken(h, frame, sizeof(frame));
}

HOST_TEST(same_batch, tx_up(64), "Frames from the network that follow looped "
    "ones in a batch are dropped")
{
	uint8_t frame[100], other[100];

	host_make_frame(frame, sizeof(frame), host_mac, 7);
	host_make_frame(other, sizeof(other), host_mac, 8);
	host_set(h, E82545_RCTL, E82545_RCTL_LBM_MAC);
	host_tx_frame(h, frame, sizeof(frame), 0);
	host_tx_go(h);
	ATF_CHECK(!e82545_tx(h->dev));
	host_inject(h, other, sizeof(other), 1);
	host_inject(h, other, sizeof(other), 2);
	host_run(h);
	check_taken(h, frame, sizeof(frame));
	check_none(h);
	ATF_CHECK_EQ(2, host_counter(h, E82545_C_RX_DISABLED));
}

HOST_TEST(lbm, tx_up(64), "Of RCTL.LBM's four values two loop frames")
{
	static const bool loops[] = { false, true, false, true };
	uint8_t frame[100];
	unsigned int i, n;

	host_make_frame(frame, sizeof(frame), host_mac, 5);
	for (i = n = 0; i < 4; i++) {
		host_clear(h, E82545_RCTL, E82545_RCTL_LBM);
		host_set(h, E82545_RCTL, i * E82545_RCTL_LBM_MAC);
		host_tx_frame(h, frame, sizeof(frame), 0);
		tx_go(h);
		n += loops[i];
		ATF_CHECK_EQ_MSG(n, host_counter(h, E82545_C_LOOPBACK), "%u",
		    i);
		ATF_CHECK_EQ_MSG(i + 1 - n, host_sent(h), "%u", i);
	}
}

TEST_PROGRAM
