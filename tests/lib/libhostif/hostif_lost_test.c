/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Frames that the kernel does not send: each is counted under its reason, and
 * none holds up another.
 */

#include <sys/param.h>
#include <sys/systm.h>

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "frame_vnet.h"
#include "hostif_pair.h"
#include "test.h"
#include "wait_until.h"

/* More than the transmit ring has slots. */
#define	FRAMES	400

/* Frame `number', of `len' bytes, leaves through the interface. */
static void
put(uint32_t len, uint32_t number)
{
	static uint8_t frames[FRAMES][1514];
	uint8_t *p = frames[number % FRAMES];

	make_frame(p, len, number);
	port_put(NULL, p, len);
}

static void
arrives(uint32_t len, uint32_t number)
{
	uint8_t hdr[FRAME_VNET_LONG];

	ATF_REQUIRE_EQ(len, wire_receive(hdr));
	ATF_REQUIRE_EQ(number, frame_number(buf));
}

/* The calls fail with this error, `n' times. */
static void
fail_calls(int error, unsigned int n)
{
	send_error = error;
	atomic_store_32(&send_failures, n);
}

ROOT_TEST(queue, "Frames that a queue of the interface drops are counted; "
    "those after them leave")
{
	uint32_t i;

	setup();
	/* It drops what is longer than its burst. */
	if (system("tc qdisc add dev h0 root tbf rate 1000mbit burst 1000 "
	    "limit 1000000 2> /dev/null") != 0)
		atf_tc_skip("no tbf, or no tc(8)");
	for (i = 0; i < FRAMES; i++)
		put(i % 2 == 0 ? 1400 : 60, i);
	ATF_REQUIRE_EQ(0, vale_txsync(port));
	for (i = 1; i < FRAMES; i += 2)
		arrives(60, i);
	wait_until(counter(HOSTIF_C_TX_QUEUE) == FRAMES / 2, "%ju dropped",
	    (uintmax_t)counter(HOSTIF_C_TX_QUEUE));
	ATF_REQUIRE_EQ(FRAMES, counter(HOSTIF_C_TX_FRAME));
	ATF_REQUIRE_EQ(FRAMES / 2, counter(HOSTIF_C_TX_ERROR));
	ATF_REQUIRE_EQ(0, counter(HOSTIF_C_TX_REFUSED));
	/* Each error ends a call, and no call is made in vain. */
	ATF_REQUIRE(counter(HOSTIF_C_TX_CALL) <= FRAMES / 2 +
	    counter(HOSTIF_C_TX_BATCH));
	hostif_stop(hi);
}

ROOT_TEST(reasons, "Every error is an error of the frame, or is one that "
    "passes")
{
	static const struct {
		int	error;
		int	counter;	/* -1: the frame leaves later */
	} errors[] = {
		{ ENOBUFS, HOSTIF_C_TX_QUEUE }, { EBUSY, HOSTIF_C_TX_QUEUE },
		{ ENOMEM, HOSTIF_C_TX_REFUSED },
		{ EINVAL, HOSTIF_C_TX_REFUSED },
		{ EMSGSIZE, HOSTIF_C_TX_REFUSED },
		{ EPERM, HOSTIF_C_TX_REFUSED },
		{ EIO, HOSTIF_C_TX_REFUSED },
		{ EAGAIN, -1 }, { EINTR, -1 }, { ENETDOWN, -1 }, { ENXIO, -1 },
	};
	uint64_t before;
	size_t i;

	setup();
	for (i = 0; i < nitems(errors); i++) {
		before = errors[i].counter == -1 ? 0 :
		    counter(errors[i].counter);
		fail_calls(errors[i].error, errors[i].counter == -1 ? 3 : 1);
		put(60, 2 * i);
		put(60, 2 * i + 1);
		ATF_REQUIRE_EQ(0, vale_txsync(port));
		if (errors[i].counter == -1)
			arrives(60, 2 * i);
		arrives(60, 2 * i + 1);
		if (errors[i].counter != -1)
			ATF_REQUIRE_EQ_MSG(before + 1,
			    counter(errors[i].counter), "%d", errors[i].error);
	}
	ATF_REQUIRE_EQ(2, counter(HOSTIF_C_TX_QUEUE));
	ATF_REQUIRE_EQ(5, counter(HOSTIF_C_TX_REFUSED));
	hostif_stop(hi);
}

TEST_PROGRAM
