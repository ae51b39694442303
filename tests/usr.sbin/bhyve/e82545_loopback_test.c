/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Loopback by RCTL.LBM and by the PHY.
 */

#include <sys/param.h>

#include <string.h>

#include "e82545_check.h"
#include "e82545_impl.h"
#include "e82545_loop.h"

HOST_TEST(modes, tx_up(64), "RCTL.LBM and the PHY send frames back, the link "
    "up or down")
{
	uint8_t frame[100];
	unsigned int i;

	host_make_frame(frame, sizeof(frame), host_mac, 5);
	for (i = 0; i < 3; i++) {
		if (i == 0)
			host_set(h, E82545_RCTL, E82545_RCTL_LBM_MAC);
		else if (i == 1) {
			host_clear(h, E82545_RCTL, E82545_RCTL_LBM);
			host_wr(h, E82545_MDIC, E82545_MDIC_OP_WRITE |
			    1 << 21 | 0x4140);
		} else
			e82545_link(h->dev, false);
		host_tx_frame(h, frame, sizeof(frame), 0);
		tx_go(h);
		ATF_CHECK_EQ(0, host_sent(h));
		ATF_CHECK_EQ(i + 1, host_counter(h, E82545_C_LOOPBACK));
		check_taken(h, frame, sizeof(frame));
		ATF_CHECK_EQ(i + 1, host_rd(h, E82545_GPTC) + i);
	}
	e82545_link(h->dev, true);
	host_wr(h, E82545_MDIC, E82545_MDIC_OP_WRITE | 1 << 21 | 0x1140);
	check_tx_alive(h);
}

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

HOST_TEST(stall, rx_up(8, 256), "Looped frames wait for descriptors; a reset "
    "drops them")
{
	uint8_t frame[60];
	unsigned int i;

	host_set(h, E82545_RCTL, E82545_RCTL_LBM_MAC);
	for (i = 0; i < 20; i++) {
		host_make_frame(frame, sizeof(frame), host_mac, i);
		host_tx_frame(h, frame, sizeof(frame), 0);
	}
	tx_go(h);
	for (i = 0; i < 10; i++) {
		host_make_frame(frame, sizeof(frame), host_mac, i);
		check_taken(h, frame, sizeof(frame));
		host_rx_post(h);
		host_run(h);
	}
	e82545_reset(h->dev);
	host_up(h, 64, 8, 256);
	host_run(h);
	check_none(h);
	check_rx_alive(h);
}

TEST_PROGRAM
