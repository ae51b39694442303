/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A receive ring without descriptors: frames wait until some are posted.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include "e82545_check.h"
#include "wait_until.h"

HOST_TEST(race, rx_up(8, 256), "Descriptors added while the ring runs empty "
    "are seen")
{
	uint8_t buf[256], frame[64];
	unsigned int in, out;
	ssize_t len;

	host_start_threads(h);
	in = out = 0;
	while (out < 20000) {
		/* Always more waiting than fit. */
		while (in < 20000 && in - out < 40) {
			host_make_frame(frame, sizeof(frame), host_mac, in);
			be32enc(frame + 14, in++);
			host_inject(h, frame, sizeof(frame), 1);
		}
		/* After a lost wakeup no frame comes. */
		wait_until((len = host_rx_take(h, buf, sizeof(buf),
		    NULL)) != -1, "%u of %u frames received", out, in);
		ATF_REQUIRE_EQ(64, len);
		ATF_REQUIRE_EQ(out, be32dec(buf + 14));
		out++;
		host_rx_post(h);
	}
	host_stop_threads(h);
	ATF_CHECK(host_counter(h, E82545_C_RX_STALL) > 0);
	ATF_CHECK_EQ(20000, host_counter(h, E82545_C_RX_FRAME));
}

HOST_TEST(bad_head, rx_up(8, 256), "RDH outside the ring ends no stall, a "
    "valid one does")
{
	uint8_t frame[60];
	unsigned int i;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	for (i = 0; i < 8; i++)
		rx_receive(h, frame, sizeof(frame));
	ATF_CHECK_EQ(1, host_rx_pending(h));
	h->nready = 0;
	host_wr(h, E82545_RDH, 8);
	host_wr(h, E82545_RDH, 9);
	host_wr(h, E82545_RDH, 0xffff);
	ATF_CHECK_EQ(0, h->nready);
	host_wr(h, E82545_RDH, 0);
	ATF_CHECK_EQ(1, h->nready);
}

TEST_PROGRAM
