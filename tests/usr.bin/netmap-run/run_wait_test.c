/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Waits for descriptors of /dev/netmap with poll(2) and select(2): which rings
 * are synced, what the kernel is then asked for, for how long, and which events
 * are returned.
 */

#include <sys/param.h>

#include <errno.h>
#include <string.h>

#include <atf-c.h>

#include "run_kernel.h"
#include "test.h"

/*
 * run_poll(), after which no memory is left; what is behind the descriptors is
 * not of it.
 */
static int
polled(struct pollfd *fds, nfds_t n, const struct timespec *timeout)
{
	struct pollfd more[64];
	int error, r;

	memcpy(more, fds, n * sizeof(*fds));
	more[n] = (struct pollfd){ 10, POLLIN | POLLOUT, 0x5555 };
	r = run_poll(more, NULL, n, timeout, NULL);
	error = errno;
	memcpy(fds, more, n * sizeof(*fds));
	ATF_CHECK_EQ(0x5555, more[n].revents);
	ATF_CHECK_EQ(0, blocks);
	ATF_CHECK_EQ(nanswers, asked);
	nanswers = asked = 0;
	errno = error;
	return (r);
}

TEST(limits, "A time limit is valid, or EINVAL")
{
	static const struct {
		struct timespec limit;
		int error;
	} rows[] = {
		{ { -1, 0 }, EINVAL },
		{ { 0, -1 }, EINVAL },
		{ { 0, 1000000000 }, EINVAL },
		{ { 0, 999999999 }, 0 },
		{ { 0, 0 }, 0 },
	};
	struct pollfd pfd = { .fd = 10, .events = POLLIN };
	unsigned int i;

	have(0, 10, 0, 1);
	rxring[0].tail = 1;
	for (i = 0; i < nitems(rows); i++) {
		errno = 0;
		ATF_CHECK_EQ_MSG(rows[i].error == 0 ? 1 : -1,
		    polled(&pfd, 1, &rows[i].limit), "%u", i);
		if (rows[i].error != 0)
			ATF_CHECK_EQ_MSG(rows[i].error, errno, "%u", i);
		SAID(rows[i].error == 0 ? " R0" : "");
	}
}

TEST(events, "What is synced, and what is ready then")
{
	static const struct {
		bool tx, rx, tx_poll, rx_poll;
		int events;
		/* 0 nothing, 1 ready, -1 fails */
		int t, r;
		int revents;
		const char *said;
	} rows[] = {
		{ 1, 1, 0, 0, IN, 1, 1, IN, " R0" },
		{ 1, 1, 0, 0, OUT, 1, 1, OUT, " T0" },
		{ 1, 1, 0, 0, POLLRDNORM, 1, 1, POLLRDNORM, " R0" },
		{ 1, 1, 0, 0, POLLWRNORM, 1, 1, POLLWRNORM, " T0" },
		{ 1, 1, 0, 0, IN | POLLRDNORM, 1, 1, IN | POLLRDNORM, " R0" },
		{ 1, 1, 0, 0, OUT | POLLWRNORM, 1, 1, OUT | POLLWRNORM,
		    " T0" },
		{ 1, 1, 0, 0, IN | OUT, 1, 1, IN | OUT, " T0 R0" },
		{ 1, 1, 0, 0, IN | OUT | POLLPRI, 0, 1, IN, " T0 R0" },
		{ 1, 1, 0, 0, IN | OUT, 1, 0, OUT, " T0 R0" },
		{ 1, 1, 1, 0, IN, 1, 1, IN, " T0 R0" },
		{ 1, 1, 0, 1, OUT, 1, 1, OUT, " T0 R0" },
		{ 0, 1, 1, 0, IN | OUT, 1, 1, IN, " R0" },
		{ 1, 0, 0, 1, IN | OUT, 1, 1, OUT, " T0" },
		{ 1, 1, 0, 0, OUT, -1, 0, POLLERR, " T0" },
		{ 1, 1, 0, 0, IN, 0, -1, POLLERR, " R0" },
		{ 1, 1, 0, 0, IN | OUT, -1, 1, IN | POLLERR, " T0 R0" },
		{ 1, 1, 0, 0, IN | OUT, 1, -1, OUT | POLLERR, " T0 R0" },
		{ 1, 1, 1, 0, IN, -1, 0, POLLERR, " T0 R0" },
		{ 1, 1, 0, 1, OUT, 0, -1, POLLERR, " T0 R0" },
	};
	struct pollfd pfd;
	unsigned int i;

	for (i = 0; i < nitems(rows); i++) {
		struct run_desc *rd = have(0, 10, 0, 1);

		rd->rd_tx = rows[i].tx;
		rd->rd_rx = rows[i].rx;
		rd->rd_tx_poll = rows[i].tx_poll;
		rd->rd_rx_poll = rows[i].rx_poll;
		txring[0].cur = rxring[0].cur = 3;
		txring[0].tail = rows[i].t != 0 ? 2 : 3;
		rxring[0].tail = rows[i].r != 0 ? 4 : 3;
		tx_result[0] = MIN(rows[i].t, 0);
		rx_result[0] = MIN(rows[i].r, 0);
		pfd = (struct pollfd){ 10, rows[i].events, -1 };
		ATF_CHECK_EQ_MSG(1, polled(&pfd, 1, NULL), "%u", i);
		ATF_CHECK_EQ_MSG(rows[i].revents, pfd.revents, "%u: %#x", i,
		    pfd.revents);
		SAID(rows[i].said);
	}
	ATF_CHECK_EQ(0, clocks);
	ATF_CHECK_EQ(0, made);
}

TEST(idle, "Rings that are not ready ask for a byte on the sockets of what is "
    "waited for")
{
	static const struct {
		bool tx, rx;
		int events;
		const char *said;
	} rows[] = {
		{ 1, 1, IN, " R1 r1 P-1/1,102/0,103/1+0@0.000000000" },
		{ 1, 1, POLLRDNORM, " R1 r1 P-1/64,102/0,103/1+0@0.000000000" },
		{ 1, 1, OUT, " T1 t1 P-1/4,102/1,103/0+0@0.000000000" },
		{ 1, 1, IN | OUT,
		    " T1 R1 t1 r1 P-1/5,102/1,103/1+0@0.000000000" },
		{ 0, 1, IN | OUT, " R1 r1 P-1/5,102/0,103/1+0@0.000000000" },
		{ 1, 0, IN | OUT, " T1 t1 P-1/5,102/1,103/0+0@0.000000000" },
		{ 1, 1, POLLPRI, " P-1/2,102/0,103/0+0@0.000000000" },
	};
	struct pollfd pfd;
	unsigned int i;

	for (i = 0; i < nitems(rows); i++) {
		struct run_desc *rd = have(0, 10, 1, 2);

		rd->rd_tx = rows[i].tx;
		rd->rd_rx = rows[i].rx;
		pfd = (struct pollfd){ 10, rows[i].events, -1 };
		answer(0, 0, -2, 0, 0);
		ATF_CHECK_EQ_MSG(0, polled(&pfd, 1, &zero), "%u", i);
		ATF_CHECK_EQ(0, pfd.revents);
		SAID(rows[i].said);
	}
	/* Without a limit, or with that of no time, no clock is needed. */
	ATF_CHECK_EQ(0, clocks);
}

TEST(meanwhile, "What has become ready meanwhile is synced at once")
{
	struct pollfd pfd = { .fd = 10, .events = IN | OUT };

	have(0, 10, 0, 2);
	tx_ready[0] = 1;
	answer(0, 0, -2, 0, 0);
	ATF_CHECK_EQ(0, polled(&pfd, 1, &zero));
	SAID(" T0 R0 T1 R1 t0 r0 t1 r1 T0 R0 T1 R1 t0 r0 t1 r1"
	    " P-1/5,100/1,101/1,102/1,103/1+0@0.000000000");
	rx_ready[0] = 1;
	tx_ready[1] = 2;
	rx_ready[1] = 3;
	answer(0, 0, -2, 0, 0);
	ATF_CHECK_EQ(0, polled(&pfd, 1, &zero));
	SAID(" T0 R0 T1 R1 t0 r0 t1 r1 T0 R0 T1 R1 t0 r0 t1 r1"
	    " T0 R0 T1 R1 t0 r0 t1 r1 T0 R0 T1 R1 t0 r0 t1 r1"
	    " P-1/5,100/1,101/1,102/1,103/1+0@0.000000000");
}

TEST(time, "What is left of a time limit after wakeups for nothing")
{
	struct pollfd pfd = { .fd = 10, .events = IN };
	struct timespec limit = { 2, 500000000 };
	const sigset_t mask = { { 0 } };

	/* 1000.7 s, until 1003.2 s. */
	have(0, 10, 0, 1);
	answer(1, 0, 101, POLLIN, 0);
	answer(1, 0, 101, POLLIN, 200);
	answer(1, 0, 101, POLLIN, 200);
	answer(1, 0, 101, POLLIN, 2000);
	answer(1, 0, 101, POLLIN, 100);
	answer(1, 0, 101, POLLIN, 1);
	ATF_CHECK_EQ(0, polled(&pfd, 1, &limit));
	SAID(" R0 r0 P-1/1,100/0,101/1+0@2.500000000"
	    " R0 r0 P-1/1,100/0,101/1+0@2.500000000"
	    " R0 r0 P-1/1,100/0,101/1+0@2.300000000"
	    " R0 r0 P-1/1,100/0,101/1+0@2.100000000"
	    " R0 r0 P-1/1,100/0,101/1+0@0.100000000"
	    " R0 r0 P-1/1,100/0,101/1+0@0.000000000 R0");
	/* In parts of a second, without and with a carry. */
	now = (struct timespec){ 5, 0 };
	limit = (struct timespec){ 1, 100000000 };
	answer(1, 0, 101, POLLIN, 500);
	answer(0, 0, -2, 0, 0);
	ATF_CHECK_EQ(0, polled(&pfd, 1, &limit));
	SAID(" R0 r0 P-1/1,100/0,101/1+0@1.100000000"
	    " R0 r0 P-1/1,100/0,101/1+0@0.600000000");
	now = (struct timespec){ 5, 700000000 };
	limit = (struct timespec){ 1, 300000000 };
	answer(1, 0, 101, POLLIN, 300);
	answer(0, 0, -2, 0, 0);
	ATF_CHECK_EQ(0, polled(&pfd, 1, &limit));
	SAID(" R0 r0 P-1/1,100/0,101/1+0@1.300000000"
	    " R0 r0 P-1/1,100/0,101/1+0@1.000000000");
	/* From a full second to another one; only a second, only less. */
	now = (struct timespec){ 5, 0 };
	limit = (struct timespec){ 1, 0 };
	answer(0, 0, -2, 0, 1000);
	ATF_CHECK_EQ(0, polled(&pfd, 1, &limit));
	SAID(" R0 r0 P-1/1,100/0,101/1+0@1.000000000");
	now = (struct timespec){ 5, 999999999 };
	limit = (struct timespec){ 0, 1 };
	answer(0, 0, -2, 0, 1000);
	ATF_CHECK_EQ(0, polled(&pfd, 1, &limit));
	SAID(" R0 r0 P-1/1,100/0,101/1+0@0.000000001");
	/* Until one second after a boot. */
	now = (struct timespec){ 0, 0 };
	limit = (struct timespec){ 1, 0 };
	answer(0, 0, -2, 0, 1000);
	ATF_CHECK_EQ(0, polled(&pfd, 1, &limit));
	SAID(" R0 r0 P-1/1,100/0,101/1+0@1.000000000");
	now = (struct timespec){ 0, 0 };
	limit = (struct timespec){ 0, 5 };
	answer(0, 0, -2, 0, 1000);
	ATF_CHECK_EQ(0, polled(&pfd, 1, &limit));
	SAID(" R0 r0 P-1/1,100/0,101/1+0@0.000000005");
	/* As long as there is. */
	limit = (struct timespec){ INT32_MAX, 5 };
	answer(0, 0, -2, 0, 0);
	ATF_CHECK_EQ(0, polled(&pfd, 1, &limit));
	SAID(" R0 r0 P-1/1,100/0,101/1+0@2147483647.000000005");
	limit.tv_sec = INT64_MAX;
	answer(0, 0, -2, 0, 0);
	ATF_CHECK_EQ(0, polled(&pfd, 1, &limit));
	SAID(" R0 r0 P-1/1,100/0,101/1+0@2147483647.000000005");
	/* And without one; a signal. */
	answer(-1, EINTR, -2, 0, 0);
	ATF_CHECK_EQ(-1, run_poll(&pfd, NULL, 1, NULL, &mask));
	ATF_CHECK_EQ(EINTR, errno);
	SAID(" R0 r0 P-1/1,100/0,101/1+0m");
}

TEST(others, "Descriptors of other kinds are waited for in the same call, in "
    "no time if one of netmap's is ready")
{
	const struct timespec limit = { 3, 0 };
	struct pollfd pfd[4] = { { 5, POLLIN | POLLPRI, -1 }, { 10, IN, -1 },
	    { -1, POLLIN, -1 }, { 11, OUT, -1 } };

	have(0, 10, 0, 1);
	have(1, 11, 2, 4);
	answer(1, 0, 5, POLLPRI, 0);
	ATF_CHECK_EQ(1, polled(pfd, 4, NULL));
	SAID(" R0 T2 T3 r0 t2 t3"
	    " P5/3,-1/1,-1/1,-1/4,100/0,101/1,104/1,105/0,106/1,107/0+0");
	ATF_CHECK_EQ(POLLPRI, pfd[0].revents);
	ATF_CHECK_EQ(0, pfd[1].revents);
	ATF_CHECK_EQ(0, pfd[2].revents);
	ATF_CHECK_EQ(0, pfd[3].revents);
	/* One of netmap's is ready. */
	txring[3].tail = 1;
	answer(0, 0, -2, 0, 0);
	ATF_CHECK_EQ(1, polled(pfd, 4, NULL));
	SAID(" R0 T2 T3 P5/3,-1/1,-1/1,-1/4+6@0.000000000");
	ATF_CHECK_EQ(0, pfd[0].revents);
	ATF_CHECK_EQ(0, pfd[1].revents);
	ATF_CHECK_EQ(OUT, pfd[3].revents);
	/* Three are. */
	rxring[0].tail = 1;
	answer(1, 0, 5, POLLHUP, 0);
	ATF_CHECK_EQ(3, polled(pfd, 4, &limit));
	SAID(" R0 T2 T3 P5/3,-1/1,-1/1,-1/4+6@0.000000000");
	ATF_CHECK_EQ(POLLHUP, pfd[0].revents);
	ATF_CHECK_EQ(IN, pfd[1].revents);
	ATF_CHECK_EQ(OUT, pfd[3].revents);
	/* All are netmap's. */
	ATF_CHECK_EQ(1, polled(pfd + 3, 1, &limit));
	SAID(" T2 T3");
	pfd[2] = pfd[1];
	ATF_CHECK_EQ(2, polled(pfd + 2, 2, NULL));
	SAID(" R0 T2 T3");
	/* The first of its rings. */
	txring[3].tail = 0;
	txring[2].tail = 1;
	ATF_CHECK_EQ(1, polled(pfd + 3, 1, NULL));
	SAID(" T2 T3");
	ATF_CHECK_EQ(0, made);
}

static void
rx_ready0(void)
{
	rxring[0].tail = 1;
}

static void
opened5(void)
{
	have(1, 5, 2, 4);
}

TEST(changes, "What becomes ready, or netmap's, while the kernel waits")
{
	const struct timespec limit = { 3, 0 };
	struct pollfd pfd[2] = { { 5, POLLIN, 0 }, { 10, IN, 0 } };

	have(0, 10, 0, 2);
	on_ppoll = rx_ready0;
	answer(1, 0, 101, POLLIN, 0);
	answer(0, 0, -2, 0, 0);
	ATF_CHECK_EQ(1, polled(pfd, 2, &limit));
	SAID(" R0 R1 r0 r1 P5/1,-1/1,100/0,101/1,102/0,103/1+0@3.000000000"
	    " R0 R1 P5/1,-1/1+4@0.000000000");
	ATF_CHECK_EQ(0, pfd[0].revents);
	ATF_CHECK_EQ(IN, pfd[1].revents);
	rxring[0].tail = 0;
	on_ppoll = opened5;
	answer(1, 0, 100, POLLHUP, 0);
	ATF_CHECK_EQ(1, polled(pfd, 2, &limit));
	ATF_CHECK_EQ(0, pfd[0].revents);
	ATF_CHECK_EQ(POLLERR, pfd[1].revents);
}

TEST(gone, "A socket whose other end has gone is an error of its port's "
    "descriptor")
{
	static const struct {
		int fd;
		short revents;
		short is[3];
	} rows[] = {
		{ 100, POLLHUP, { POLLERR, 0, 0 } },
		{ 101, POLLHUP | POLLIN, { POLLERR, 0, 0 } },
		{ 104, POLLNVAL, { 0, 0, POLLERR } },
		{ 105, POLLHUP | POLLERR, { 0, 0, POLLERR } },
		{ 106, POLLHUP, { 0, 0, POLLERR } },
		{ 107, POLLHUP, { 0, 0, POLLERR } },
	};
	unsigned int i, k;

	have(0, 10, 0, 1);
	have(1, 11, 2, 4);
	for (i = 0; i < nitems(rows); i++) {
		struct pollfd pfd[3] = { { 10, IN, 0 }, { 5, POLLIN, 0 },
		    { 11, IN, 0 } };

		answer(1, 0, rows[i].fd, rows[i].revents, 0);
		ATF_CHECK_EQ(1, polled(pfd, 3, NULL));
		for (k = 0; k < 3; k++)
			ATF_CHECK_EQ_MSG(rows[i].is[k], pfd[k].revents,
			    "%u, %u: %#x", i, k, pfd[k].revents);
	}
}

static void
registered(void)
{
	desc[0].rd_registered = true;
}

TEST(no_port, "A descriptor without a port is in error, and may get one "
    "meanwhile")
{
	struct pollfd pfd[2] = { { 10, IN, 0 }, { 5, POLLIN, 0 } };
	char said[64];

	ATF_REQUIRE(2 * VALE_RINGS_MAX + 2 <= 48);
	have(0, 10, 1, 3)->rd_registered = false;
	ATF_CHECK_EQ(1, polled(pfd, 1, NULL));
	ATF_CHECK_EQ(POLLERR, pfd[0].revents);
	SAID("");
	answer(0, 0, -2, 0, 0);
	ATF_CHECK_EQ(1, polled(pfd, 2, NULL));
	snprintf(said, sizeof(said), " P-1/1,5/1+%u@0.000000000",
	    2 * VALE_RINGS_MAX);
	SAID(said);
	/* Of that many, some memory is allocated. */
	have(1, 11, 0, 1)->rd_registered = false;
	have(2, 12, 0, 1)->rd_registered = false;
	on_alloc = registered;
	pfd[1].fd = 11;
	answer(0, 0, -2, 0, 0);
	{
		struct pollfd four[4] = { pfd[0], pfd[1], { 12, IN, 0 },
		    { 5, IN, 0 } };

		ATF_CHECK_EQ(2, polled(four, 4, NULL));
		ATF_CHECK_EQ(0, four[0].revents);
		ATF_CHECK_EQ(POLLERR, four[1].revents);
		ATF_CHECK_EQ(POLLERR, four[2].revents);
	}
	snprintf(said, sizeof(said),
	    " R1 R2 P-1/1,-1/1,-1/1,5/1+%u@0.000000000", 6 * VALE_RINGS_MAX);
	SAID(said);
	ATF_CHECK_EQ(1, made);
}

TEST(many, "48 descriptors need no memory")
{
	struct pollfd pfd[49];
	unsigned int i;

	/* The one behind is of netmap, and does not count. */
	have(0, 10, 0, 1);
	for (i = 0; i < nitems(pfd); i++)
		pfd[i] = (struct pollfd){ .fd = 1000 + i, .events = POLLIN };
	answer(1, 0, 1047, POLLIN, 0);
	ATF_CHECK_EQ(1, polled(pfd, 48, NULL));
	ATF_CHECK_EQ(0, made);
	ATF_CHECK_EQ(0, pfd[46].revents);
	ATF_CHECK_EQ(POLLIN, pfd[47].revents);
	answer(1, 0, 1048, POLLIN, 0);
	ATF_CHECK_EQ(1, polled(pfd, 49, NULL));
	ATF_CHECK_EQ(2, made);
	ATF_CHECK_EQ(POLLIN, pfd[48].revents);
	/* Its sockets count. */
	pfd[0] = (struct pollfd){ .fd = 10, .events = IN };
	answer(1, 0, 1045, POLLIN, 0);
	ATF_CHECK_EQ(1, polled(pfd, 46, NULL));
	ATF_CHECK_EQ(2, made);
	answer(-1, EINTR, -2, 0, 0);
	ATF_CHECK_EQ(-1, polled(pfd, 47, NULL));
	ATF_CHECK_EQ(EINTR, errno);
	ATF_CHECK_EQ(3, made);
	fails = made;
	ATF_CHECK_EQ(-1, polled(pfd, 47, NULL));
	ATF_CHECK_EQ(ENOMEM, errno);
	/* The first of two, and the second. */
	for (i = 0; i < 2; i++) {
		fails = made + i;
		ATF_CHECK_EQ(-1, polled(pfd, 49, NULL));
		ATF_CHECK_EQ(ENOMEM, errno);
	}
	ATF_CHECK_EQ(1, desc[0].rd_refs);
}

/*
 * Another thread, while this one is in ppoll(2).
 */

static void
opens_netmap(void)
{
	on_ppoll = NULL;
	have(1, 11, 0, RINGS);
	have(2, 12, 0, RINGS);
}

TEST(opened_meanwhile, "What is opened as a polled number while poll(2) waits "
    "is not waited for")
{
	struct pollfd pfd[3] = { { 10, IN, 0 }, { 11, IN, 0 }, { 12, IN, 0 } };

	have(0, 10, 0, 1);
	on_ppoll = opens_netmap;
	/* Woken for a frame that another has taken. */
	answer(1, 0, 101, POLLIN, 0);
	answer(1, 0, 11, POLLHUP, 0);
	ATF_CHECK_EQ(1, polled(pfd, 3, NULL));
	SAID(" R0 r0 P-1/1,11/1,12/1,100/0,101/1+0"
	    " R0 r0 P-1/1,11/1,12/1,100/0,101/1+0");
	ATF_CHECK_EQ(0, pfd[0].revents);
	ATF_CHECK_EQ(POLLHUP, pfd[1].revents);
	ATF_CHECK_EQ(0, pfd[2].revents);
	ATF_CHECK_EQ(1, desc[1].rd_refs);
}

/* run_closed() */
static void
closes_netmap(void)
{
	on_ppoll = NULL;
	run_fds[10] = NULL;
	run_held++;
	run_put(&desc[0]);
	ATF_CHECK_EQ(0, freed);
	rxring[0].tail = 1;
}

TEST(closed_meanwhile, "What is closed while poll(2) waits is there until that "
    "returns")
{
	struct pollfd pfd[2] = { { 10, IN, 0 }, { 10, OUT, 0 } };

	have(0, 10, 0, 1);
	on_ppoll = closes_netmap;
	answer(1, 0, 101, POLLIN, 0);
	ATF_CHECK_EQ(1, polled(pfd, 2, NULL));
	SAID(" R0 T0 r0 t0 P-1/1,-1/4,100/0,101/1,100/1,101/0+0 R0 T0");
	ATF_CHECK_EQ(IN, pfd[0].revents);
	ATF_CHECK_EQ(0, pfd[1].revents);
	ATF_CHECK_EQ(1, freed);
	ATF_CHECK_EQ(0, run_held);
}

/* And something else is opened. */
static void
closes_both(void)
{
	closes_netmap();
	have(1, 10, 0, RINGS);
}

TEST(replaced_meanwhile, "What is opened in place of what is closed is not "
    "waited for")
{
	struct pollfd pfd = { 10, IN, 0 };

	have(0, 10, 0, 1);
	on_ppoll = closes_both;
	answer(1, 0, 101, POLLIN, 0);
	ATF_CHECK_EQ(1, polled(&pfd, 1, NULL));
	SAID(" R0 r0 P-1/1,100/0,101/1+0 R0");
	ATF_CHECK_EQ(IN, pfd.revents);
	ATF_CHECK_EQ(1, freed);
	ATF_CHECK_EQ(1, desc[1].rd_refs);
}

/* NETMAP_REQ_REGISTER. */
static void
registers(void)
{
	on_ppoll = NULL;
	desc[0].rd_end = RINGS;
	desc[0].rd_registered = true;
}

TEST(registered_meanwhile, "What gets a port while poll(2) waits is waited for "
    "from then on")
{
	struct pollfd pfd[2] = { { 10, IN, 0 }, { 5, IN, 0 } };
	char said[128];

	have(0, 10, 0, 0)->rd_registered = false;
	on_ppoll = registers;
	answer(0, 0, -2, 0, 0);
	ATF_CHECK_EQ(1, polled(pfd, 2, NULL));
	ATF_CHECK_EQ(POLLERR, pfd[0].revents);
	snprintf(said, sizeof(said), " P-1/1,5/1+%u@0.000000000",
	    2 * VALE_RINGS_MAX);
	SAID(said);
}

/* Sets larger than an fd_set, with nothing before or behind them. */
#define	WORDS	40

static struct {
	unsigned long	before[WORDS];
	unsigned long	set[4][WORDS];	/* the last one is nobody's */
	unsigned long	behind[WORDS];
} sets;

static fd_set *
set(unsigned int i)
{
	return ((fd_set *)(void *)sets.set[i]);
}

static void
put(unsigned int i, int fd)
{
	sets.set[i][fd / 64] |= 1ul << fd % 64;
}

static bool
has(unsigned int i, int fd)
{
	return ((sets.set[i][fd / 64] >> fd % 64 & 1) != 0);
}

TEST(select_any, "A descriptor of netmap's in any set, below their size")
{
	static const int fds[] = { 0, 1, 63, 64, 65, 127, 2500 };
	fd_set *all[3] = { set(0), set(1), set(2) };
	fd_set *none[3] = { NULL, NULL, NULL };
	unsigned int i, k;

	for (i = 0; i < nitems(fds); i++) {
		const int fd = fds[i];

		have(0, fd, 0, 1);
		ATF_CHECK(!run_select_any(fd + 1, none));
		for (k = 0; k < 3; k++) {
			memset(&sets, 0, sizeof(sets));
			ATF_CHECK(!run_select_any(fd + 1, all));
			put(k, fd);
			ATF_CHECK_MSG(run_select_any(fd + 1, all), "%d", fd);
			ATF_CHECK(!run_select_any(fd, all));
			/* All others, but that one. */
			memset(&sets, 0xff, sizeof(sets));
			sets.set[0][fd / 64] &= ~(1ul << fd % 64);
			sets.set[1][fd / 64] &= ~(1ul << fd % 64);
			sets.set[2][fd / 64] &= ~(1ul << fd % 64);
			ATF_CHECK_MSG(!run_select_any(64 * WORDS, all), "%d",
			    fd);
		}
		run_fds[fd] = NULL;
	}
}

TEST(selects, "What select(2) waits for, and what it then says")
{
	static const struct {
		short revents;
		bool is[3];
	} rows[] = {
		{ POLLIN, { 1, 0, 0 } },
		{ POLLRDNORM, { 1, 0, 0 } },
		{ POLLHUP, { 1, 0, 0 } },
		{ POLLERR, { 1, 1, 0 } },
		{ POLLOUT, { 0, 1, 0 } },
		{ POLLWRNORM, { 0, 1, 0 } },
		{ POLLPRI, { 0, 0, 1 } },
		{ POLLIN | POLLOUT | POLLPRI, { 1, 1, 1 } },
	};
	fd_set *all[4] = { set(0), set(1), set(2), set(3) };
	fd_set *one[3] = { NULL, set(1), NULL };
	const sigset_t mask = { { 0 } };
	unsigned int i, k;

	for (i = 0; i < nitems(rows); i++) {
		memset(&sets, 0, sizeof(sets));
		put(0, 0);
		put(2, 63);
		for (k = 0; k < 3; k++)
			put(k, 70);
		put(1, 64);
		put(1, 71);
		memset(sets.set[3], 0xff, sizeof(sets.set[3]));
		answer(1, 0, 70, rows[i].revents, 0);
		ATF_CHECK_EQ_MSG(rows[i].is[0] + rows[i].is[1] + rows[i].is[2],
		    run_select(71, all, NULL, i == 0 ? &mask : NULL), "%u", i);
		SAID(i == 0 ?
		    " P0/65,63/2,64/260,70/327+0m" :
		    " P0/65,63/2,64/260,70/327+0");
		for (k = 0; k < 3; k++)
			ATF_CHECK_EQ_MSG(rows[i].is[k], has(k, 70),
			    "%u, %u", i, k);
		ATF_CHECK(!has(0, 0) && !has(2, 63) && !has(1, 64));
		/* That was not looked at. */
		ATF_CHECK(has(1, 71));
		for (k = 0; k < WORDS; k++)
			ATF_REQUIRE_EQ(~0ul, sets.set[3][k]);
		memset(sets.set[3], 0, sizeof(sets.set[3]));
		for (k = 0; k < 3; k++)
			sets.set[k][1] = 0;
		for (k = 0; k < sizeof(sets); k++)
			ATF_REQUIRE_EQ(0, ((char *)&sets)[k]);
		ATF_CHECK_EQ(0, blocks);
	}
	/* Two, of which only one was asked for; and nothing. */
	put(1, 0);
	put(1, 2559);
	answer(2, 0, 0, POLLOUT | POLLIN, 0);
	answers[nanswers - 1].fd[1] = 2559;
	answers[nanswers - 1].revents[1] = POLLWRNORM;
	ATF_CHECK_EQ(2, run_select(2560, one, &zero, NULL));
	SAID(" P0/260,2559/260+0@0.000000000");
	ATF_CHECK(has(1, 0) && has(1, 2559));
	answer(0, 0, -2, 0, 0);
	ATF_CHECK_EQ(0, run_select(2560, one, &zero, NULL));
	/* All that there may be. */
	put(1, 0);
	put(1, 1);
	answer(1, 0, 1, POLLOUT, 0);
	ATF_CHECK_EQ(1, run_select(2, one, NULL, NULL));
	ATF_CHECK(!has(1, 0) && has(1, 1));
	sets.set[1][0] = 0;
	ATF_CHECK(!has(1, 0) && !has(1, 2559));
	ATF_CHECK_EQ(0, blocks);
}

TEST(select_errors, "A descriptor that is not open, a signal, no memory")
{
	fd_set *all[3] = { set(0), NULL, NULL };

	put(0, 3);
	put(0, 4);
	answer(1, 0, 3, POLLNVAL, 0);
	ATF_CHECK_EQ(-1, run_select(5, all, NULL, NULL));
	ATF_CHECK_EQ(EBADF, errno);
	answer(2, 0, 4, POLLNVAL | POLLIN, 0);
	ATF_CHECK_EQ(-1, run_select(5, all, NULL, NULL));
	ATF_CHECK_EQ(EBADF, errno);
	answer(-1, EINTR, 3, POLLIN, 0);
	ATF_CHECK_EQ(-1, run_select(5, all, NULL, NULL));
	ATF_CHECK_EQ(EINTR, errno);
	fails = made;
	ATF_CHECK_EQ(-1, run_select(5, all, NULL, NULL));
	ATF_CHECK_EQ(ENOMEM, errno);
	ATF_CHECK(has(0, 3) && has(0, 4));
	ATF_CHECK_EQ(0, blocks);
}

TEST_PROGRAM
