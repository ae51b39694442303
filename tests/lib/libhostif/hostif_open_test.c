/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Opening an interface of the kernel's, and starting it, with each call failing
 * in turn.
 */

#include <sys/param.h>

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atf-c.h>

#include "fail_calls.h"
#include "frame_vnet.h"
#include "hostif_impl.h"
#include "hostif_pair.h"
#include "test.h"
#include "vale_clock.h"
#include "wrap.h"

static struct hostif_fds fds;
static char why[HOSTIF_WHY];
static unsigned int host_gets;		/* openings after which it does */
static bool busy;			/* a queue was: a former socket's */

/* How a queue is waited for.  Each try is a call more. */
WRAP(int, nanosleep, const struct timespec *ts, struct timespec *left)
{
	busy = true;
	return (__real_nanosleep(ts, left));
}

/* Open h0 and start it while call `n' fails; otherwise `why' is a line. */
static void
starts(uint32_t n)
{
	fail_calls(NULL, n, 1);
	if (hostif_open("h0", kind, &fds, why) == 0) {
		host_gets += (fds.hf_flags & HOSTIF_HOST_GETS) != 0;
		hi = hostif_start("vale0:h0", &fds, why);
	} else
		ATF_CHECK_EQ(0, fds.hf_nfds);
}

static void
find(struct hostif *one, void *arg __unused)
{
	hi = one;
}

/* Attach h0 and let it go; then attach it again while call `n' fails. */
static void
renews(uint32_t n)
{
	ATF_REQUIRE_EQ(0, hostif_open("h0", kind, &fds, why));
	ATF_REQUIRE_EQ(0, hostif_attach("vale0:h0", &fds, why));
	hostif_let_go("vale0:h0");
	hostif_each(find, NULL);
	ATF_REQUIRE(hostif_gone(hi) && !hostif_up(hi));
	ATF_REQUIRE(hostif_gone_now(hi) && !hostif_gone_now(hi));
	ATF_REQUIRE_EQ(0, hostif_open("h0", kind, &fds, why));
	fail_calls(NULL, n, 1);
	if (hostif_attach("vale0:h0", &fds, why) == -1)
		hi = NULL;
	else
		ATF_CHECK(hostif_up(hi) && !hostif_gone(hi));
}

/*
 * Each call that can fail does so, and nothing is left behind.  The lines are
 * expected in this order, without the error.
 */
static void
each_fails(void (*act)(uint32_t n), const char *expected)
{
	char all[2048] = "", last[HOSTIF_WHY] = "";
	struct fail_held before;
	uint32_t failed, n = 0;
	char *error;

	do {
		before = fail_held();
		hi = NULL;
		errno = 0;
		busy = false;
		act(++n);
		ATF_CHECK(hi != NULL || errno != 0);
		error = strstr(why, strerror(errno));
		failed = fail_calls_end();
		if (hi == NULL)
			hostif_close(&fds);
		else if (hostif_detach("vale0:h0") == -1)
			hostif_stop(hi);
		if (busy)
			/* Another call has failed: once more. */
			n--;
		else if (hi == NULL) {
			if (error != NULL)
				*error = '\0';
			strlcat(why, "\n", sizeof(why));
			if (strcmp(last, why) != 0)
				strlcat(all, why, sizeof(all));
			strlcpy(last, why, sizeof(last));
		}
		fail_held_check(&before);
	} while (failed > 0 || busy);
	ATF_CHECK_STREQ(expected, all);
}

#define	OPENS								\
	"h0: rtnetlink: \nh0: socket: \nh0: no such interface\nh0: \n"
#define	PORT								\
	"vale0:h0: out of memory\nvale0:h0: port: \nvale0:h0: eventfd: \n"
#define	PACKET								\
	OPENS "h0: packet socket: \nh0: TPACKET_V2: \n"			\
	"h0: PACKET_RESERVE: \nh0: virtio-net headers: \n"		\
	"h0: PACKET_LOSS: \nh0: PACKET_IGNORE_OUTGOING: \n"		\
	"h0: SO_SNDBUFFORCE: \nh0: receive ring: \nh0: transmit ring: \n" \
	"h0: bind: \nh0: promiscuous mode: \n"				\
	PORT "vale0:h0: memory: \nvale0:h0: rings: \nvale0:h0: thread: \n"

ROOT_TEST(packet_fails, "Each call for packet(7) fails: that is one line, or "
    "does no harm, and nothing is left behind")
{
	make_pair();
	each_fails(starts, PACKET);
	ATF_CHECK_EQ(0, host_gets);
}

ROOT_TEST(nft_fails, "The same where nf_tables must keep the frames from the "
    "host's stack, which gets them if a call for that fails")
{
	no_bpf = true;
	make_pair();
	each_fails(starts, PACKET);
	/* socket(2), send(2), and recv(2) twice. */
	ATF_CHECK_EQ(4, host_gets);
	/* Nor are there two of the table. */
	attach();
	ATF_CHECK_EQ(0, hostif_open("h0", HOSTIF_PACKET, &fds, why));
	ATF_CHECK_EQ(HOSTIF_HOST_GETS, fds.hf_flags);
	hostif_close(&fds);
	hostif_stop(hi);
}

ROOT_TEST(xdp_fails, "The same for AF_XDP")
{
	use_xdp();
	make_pair();
	each_fails(starts, OPENS "h0: netlink: \nh0: \nh0: packet socket: \n"
	    "h0: promiscuous mode: \nh0: memory: \nh0: AF_XDP: \n"
	    "h0: AF_XDP memory: \nh0: transmit ring: \nh0: receive ring: \n"
	    "h0: bind: \n" PORT "vale0:h0: memory: \nvale0:h0: rings: \n"
	    "vale0:h0: thread: \n");
}

ROOT_TEST(renew_fails, "The same for an interface that takes the place of one "
    "that is gone: the port stays open")
{
	make_pair();
	each_fails(renews, "vale0:h0: eventfd: \nvale0:h0: memory: \n"
	    "vale0:h0: rings: \nvale0:h0: thread: \n");
}

ROOT_TEST(again, "A ring that is mapped is waited for until a time, and is "
    "then as a new one")
{
	struct hostif_fds second;
	uint64_t end_ms;
	uint8_t frame[60], hdr[FRAME_VNET_LONG];
	uint32_t i;

	setup();
	second = *hostif_fds(hi);
	for (i = 0; i < second.hf_nfds; i++)
		second.hf_fd[i] = fcntl(second.hf_fd[i], F_DUPFD_CLOEXEC, 0);
	end_ms = vale_now_ms() + 20;
	ATF_CHECK_ERRNO(EBUSY, hostif_again(&second, end_ms) == -1);
	ATF_CHECK(vale_now_ms() >= end_ms);
	/* Of several interfaces. */
	ATF_CHECK_ERRNO(EBUSY, hostif_again(&second, 0) == -1);
	hostif_stop(hi);
	ATF_CHECK_EQ(0, hostif_again(&second, 0));
	hi = hostif_start("vale0:h0", &second, why);
	ATF_REQUIRE_MSG(hi != NULL, "%s", why);
	make_frame(frame, sizeof(frame), 5);
	wire_send(NULL, frame, sizeof(frame));
	ATF_CHECK_EQ(60, port_receive(hdr));
	ATF_CHECK_EQ(5, frame_number(buf));
	second.hf_kind = HOSTIF_XDP;
	ATF_CHECK_ERRNO(EOPNOTSUPP, hostif_again(&second, 0) == -1);
	hostif_stop(hi);
}

TEST(names, "Kinds have names; if the service may not use a socket family, the "
    "error names the drop-in that permits it")
{
	static const char *const none[] = { "auto", "pack", "" };
	enum hostif_kind k;
	unsigned int i;

	ATF_CHECK(hostif_kind("packet", &k) == 0 && k == HOSTIF_PACKET);
	ATF_CHECK(hostif_kind("xdp", &k) == 0 && k == HOSTIF_XDP);
	for (i = 0; i < nitems(none); i++)
		ATF_CHECK_ERRNO(EINVAL, hostif_kind(none[i], &k) == -1);
	ATF_CHECK_EQ(HOSTIF_XDP, k);
	errno = EAFNOSUPPORT;
	ATF_CHECK_EQ(-1, hostif_fail_step(why, "h0", "rtnetlink"));
	ATF_CHECK_STREQ("h0: rtnetlink: Address family not supported by "
	    "protocol: the kernel has none, or the service may not use it: it "
	    "takes the drop-in attach.conf, and then a restart", why);
}

TEST_PROGRAM
