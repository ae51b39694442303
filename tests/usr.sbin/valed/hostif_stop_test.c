/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Attached interfaces: frames that the kernel drops.
 */

#include <sys/param.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "frame_vnet.h"
#include "hostif_pair.h"
#include "test.h"
#include "wait_until.h"

#define	ROOT_TEST(name, descr)						\
	ATF_TC(name);							\
	ATF_TC_HEAD(name, tc)						\
	{								\
		atf_tc_set_md_var(tc, "descr", descr);			\
		atf_tc_set_md_var(tc, "require.user", "root");		\
		atf_tc_set_md_var(tc, "require.progs", "ip");		\
	}								\
	ATF_TC_BODY(name, tc)

/* More than a call takes before Linux 6.17. */
#define	LOST	100

/* Skip the test if veth does not say that it dropped a frame: Linux 6.5. */
static void
needs_veth_drops(void)
{
	if (system("[ \"$(printf '6.6\\n%s\\n' $(uname -r) | sort -V | "
	    "head -n 1)\" = 6.6 ]") != 0)
		atf_tc_skip("before Linux 6.6 veth does not tell of frames "
		    "that it drops");
}

ROOT_TEST(xdp_lost, "Frames that the driver drops do not hold up others, and "
    "are counted")
{
	static uint8_t frame[1514];
	uint8_t hdr[FRAME_VNET_LONG];
	uint32_t i;

	use_xdp();
	needs_veth_drops();
	setup();
	/* The driver's transmit function drops what its peer does not take. */
	run("ip link set w0 mtu 1000");
	make_frame(frame, sizeof(frame), 1);
	port_put(NULL, frame, 60);
	for (i = 0; i < LOST; i++)
		port_put(NULL, frame, sizeof(frame));
	port_put(NULL, frame, 61);
	ATF_REQUIRE_EQ(0, vale_txsync(port));
	ATF_REQUIRE_EQ(60, wire_receive(hdr));
	ATF_REQUIRE_EQ(61, wire_receive(hdr));
	wait_until(counter(HOSTIF_C_TX_QUEUE) == LOST, "%ju lost",
	    (uintmax_t)counter(HOSTIF_C_TX_QUEUE));
	ATF_REQUIRE_EQ(0, counter(HOSTIF_C_TX_ERROR));
	ATF_REQUIRE_EQ(0, counter(HOSTIF_C_TX_REFUSED));
	/* Nothing is left in the ring. */
	thread_sleeps();
	/* A frame that is the last one is lost, too. */
	port_put(NULL, frame, sizeof(frame));
	ATF_REQUIRE_EQ(0, vale_txsync(port));
	wait_until(counter(HOSTIF_C_TX_QUEUE) == LOST + 1, "%ju lost",
	    (uintmax_t)counter(HOSTIF_C_TX_QUEUE));
	thread_sleeps();
	ATF_REQUIRE_EQ(LOST + 1, counter(HOSTIF_C_TX_QUEUE));
	hostif_stop(hi);
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, xdp_lost);
	return (atf_no_error());
}
