/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The thread of a port: how often it looks, when it sleeps and what for; and
 * how many ring pairs all ports have.
 */

#include <sys/param.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "ctl_calls.h"
#include "fail_calls.h"
#include "test.h"
#include "wrap.h"

#define	REG_SIZE	sizeof(struct nmreq_register)
#define	ALL		.nr_mode = NR_REG_ALL_NIC
#define	RINGS		3

static struct peer one, two;
static struct vale_desc *port;	/* of the first, or NULL */

/*
 * The thread's calls.  A script says what it finds.
 */

static struct {
	unsigned int	tx, rx, waits, polls, yields, owned;
} c;
static bool	busy;			/* in all looks, */
static unsigned int tx_until, rx_until;	/* or in those up to this one, */
static unsigned int wait_ring = 100;	/* and when it is about to sleep */
static void	(*on_poll)(struct pollfd *pfd);

WRAP(bool, vale_shared_tx, struct vale_desc *d)
{
	/* Each ring in turn. */
	if (port != NULL)
		ATF_CHECK(d == vale_ring(port, c.tx % RINGS));
	c.tx++;
	return (busy || c.tx <= tx_until);
}

WRAP(bool, vale_shared_rx, struct vale_desc *d)
{
	if (port != NULL)
		ATF_CHECK(d == vale_ring(port, c.rx % RINGS));
	c.rx++;
	ATF_CHECK_EQ(c.tx, c.rx);
	return (c.rx <= rx_until);
}

WRAP(void, vale_close, struct vale_desc *d)
{
	c.owned += one.pe_cc->cc_owner.ow_name[0] != '\0';
	__real_vale_close(d);
}

WRAP(bool, vale_shared_wait, struct vale_desc *d)
{
	ATF_CHECK(d == vale_ring(port, c.waits % RINGS));
	return (c.waits++ != wait_ring);
}

WRAP(int, sched_yield, void)
{
	c.yields++;
	return (0);
}

static int	poll_timeout;

WRAP(int, poll, struct pollfd *pfd, nfds_t n, int timeout)
{
	unsigned int i;

	/* A look whether a client has left. */
	if (n == 1)
		return (__real_poll(pfd, n, timeout));
	ATF_CHECK_EQ(2 + RINGS, n);
	ATF_CHECK_EQ(one.pe_cc->cc_fd, pfd[0].fd);
	for (i = 0; i < RINGS; i++)
		ATF_CHECK_EQ(vale_shared_fd(vale_ring(port, i)),
		    pfd[2 + i].fd);
	for (i = 0; i < n; i++) {
		ATF_CHECK_EQ(POLLIN, pfd[i].events);
		pfd[i].revents = 0;
	}
	poll_timeout = timeout;
	ATF_REQUIRE_MSG(++c.polls < 1000, "serves for ever");
	on_poll(pfd);
	return (1);
}

/* A request, or the end. */
static void
ask(struct pollfd *pfd)
{
	pfd[0].revents = POLLIN;
}

static void
serve(void (*script)(struct pollfd *))
{
	memset(&c, 0, sizeof(c));
	on_poll = script;
	vale_grant_serve(&one.pe_cc->cc_grant);
}

static void
start(void)
{
	peer_connect(&one, 1001, false);
	GRANTED(REG_SIZE, 2 + 2 * RINGS, &one, REGISTER("vale0:a", ALL,
	    .nr_tx_rings = RINGS));
	port = one.pe_cc->cc_grant.gr_port;
}

TEST(pauses, "A thread whose user has paused looks once, and sleeps; each look "
    "is at all rings, in both directions")
{
	start();
	serve(ask);
	ATF_CHECK_EQ(1, c.polls);
	ATF_CHECK_EQ(-1, poll_timeout);
	ATF_CHECK_EQ(RINGS, c.tx);
	ATF_CHECK_EQ(RINGS, c.rx);
	ATF_CHECK_EQ(1, c.yields);
	ATF_CHECK_EQ(RINGS, c.waits);
	/* If one of the rings has something before it sleeps, it does not. */
	for (wait_ring = 0; wait_ring < RINGS; wait_ring++) {
		serve(ask);
		ATF_CHECK_EQ(0, poll_timeout);
		ATF_CHECK_EQ(wait_ring + 1, c.waits);
	}
	peer_end(&one);
}

TEST(looks, "After a batch it looks 64 times more, and yields between")
{
	start();
	tx_until = 1;
	serve(ask);
	ATF_CHECK_EQ((1 + 64) * RINGS, c.tx);
	ATF_CHECK_EQ(64, c.yields);
	ATF_CHECK_EQ(-1, poll_timeout);
	ATF_CHECK_EQ(RINGS, c.waits);
	/* In the last ring, and what it is to get, too. */
	tx_until = 0;
	rx_until = 2 * RINGS;
	serve(ask);
	ATF_CHECK_EQ((2 + 64) * RINGS, c.tx);
	ATF_CHECK_EQ(64, c.yields);
	peer_end(&one);
}

static void
ask_second(struct pollfd *pfd)
{
	ATF_CHECK_EQ(0, poll_timeout);
	ATF_CHECK_EQ(64 * RINGS * c.polls, c.tx);
	if (c.polls == 2)
		ask(pfd);
}

TEST(batches, "After 64 batches it looks for a request, and does not sleep")
{
	start();
	busy = true;
	serve(ask_second);
	ATF_CHECK_EQ(2, c.polls);
	ATF_CHECK_EQ(0, c.waits);
	ATF_CHECK_EQ(0, c.yields);
	busy = false;
	/* The 64th is the last one. */
	tx_until = 63 * RINGS;
	serve(ask);
	ATF_CHECK_EQ((63 + 64) * RINGS, c.tx);
	ATF_CHECK_EQ(-1, poll_timeout);
	peer_end(&one);
}

/* Not paused at first: then it looks 64 times before it sleeps. */
static void
pause_second(struct pollfd *pfd)
{
	busy = false;
	if (c.polls == 1) {
		ATF_CHECK_EQ(0, poll_timeout);
		return;
	}
	ATF_CHECK_EQ((64 + 64) * RINGS, c.tx);
	ATF_CHECK_EQ(64, c.yields);
	ATF_CHECK_EQ(-1, poll_timeout);
	ask(pfd);
}

TEST(pauses_later, "One whose user was busy looks 64 times before it sleeps")
{
	start();
	busy = true;
	serve(pause_second);
	ATF_CHECK_EQ(2, c.polls);
	peer_end(&one);
}

/* Kicks; then the user closes its socket. */
static void
kick(struct pollfd *pfd)
{
	const int ours = one.pe_cc->cc_grant.gr_kick[0].tx;
	char kicks[65];

	switch (c.polls) {
	case 1:
		ATF_CHECK_EQ(ours, pfd[1].fd);
		memset(kicks, 'k', sizeof(kicks));
		ATF_CHECK_EQ(65, send(one.pe_fds[2], kicks, 65, 0));
		pfd[1].revents = POLLIN;
		break;
	case 2:
		/* 64 at a time; the rest is there. */
		ATF_CHECK_EQ(ours, pfd[1].fd);
		ATF_CHECK_EQ(1, recv(ours, kicks, 65, MSG_PEEK |
		    MSG_DONTWAIT));
		pfd[1].revents = POLLIN;
		break;
	case 3:
		ATF_CHECK_EQ(ours, pfd[1].fd);
		ATF_CHECK_EQ(-1, recv(ours, kicks, 65, MSG_DONTWAIT));
		/* There is none after all: it does not wait for one. */
		pfd[1].revents = POLLIN;
		break;
	case 4:
		ATF_CHECK_EQ(ours, pfd[1].fd);
		ATF_CHECK_EQ(0, shutdown(one.pe_fds[2], SHUT_WR));
		pfd[1].revents = POLLIN | POLLHUP;
		break;
	case 5:
		/* It is not looked at any more. */
		ATF_CHECK_EQ(-1, pfd[1].fd);
		break;
	default:
		ATF_CHECK_EQ(-1, pfd[1].fd);
		ask(pfd);
	}
}

TEST(kicks, "Kicks are taken away; a user that closes their socket is served "
    "on, without")
{
	start();
	serve(kick);
	ATF_CHECK_EQ(6, c.polls);
	ATF_CHECK_EQ(6 * RINGS, c.tx);
	peer_end(&one);
}

TEST(closes, "A port transmits once, and is nobody's, before it is closed")
{
	start();
	memset(&c, 0, sizeof(c));
	peer_end(&one);
	ATF_CHECK_EQ(RINGS, c.tx);
	ATF_CHECK_EQ(RINGS, c.rx);
	ATF_CHECK_EQ(0, c.owned);
}

/*
 * Ring pairs.
 */

static rlim_t	nofile;
static bool	limit_fails;

/* A sanitizer asks for other limits, before it is ready itself. */
WRAP(int __attribute__((__no_sanitize__("address"))), getrlimit, int what,
    struct rlimit *rl)
{
	if (what != RLIMIT_NOFILE)
		return (__real_getrlimit(what, rl));
	if (limit_fails)
		return (-1);
	*rl = (struct rlimit){ .rlim_cur = nofile, .rlim_max = 1 };
	return (0);
}

static const char many[] = "Too many open files";

TEST(rings, "Ring pairs besides each port's first are an eighth of the "
    "descriptors; what is closed, or was not opened, is free again")
{
	struct peer more;
	unsigned int i;

	peer_connect(&one, 1001, false);
	peer_connect(&two, 1001, false);
	peer_connect(&more, 1001, false);
	nofile = 5 * 8 + 7;
	vale_grant_limit();
	REFUSED(EMFILE, many, &two, REGISTER("vale0:b", ALL,
	    .nr_tx_rings = 7));
	GRANTED(REG_SIZE, 2 + 2 * 6, &two, REGISTER("vale0:b", ALL,
	    .nr_tx_rings = 6));
	GRANTED(REG_SIZE, 4, &more, REGISTER("vale0:c", ALL));
	REFUSED(EMFILE, many, &one, REGISTER("vale0:a", ALL,
	    .nr_tx_rings = 2));
	for (i = 0; i < 3; i++) {
		peer_end(&two);
		peer_connect(&two, 1001, false);
		/* Taken back, if it fails later. */
		fail_calls("pwrite", 1, 2);
		REFUSED(ENOMEM, strerror(ENOMEM), &two, REGISTER("vale0:b",
		    ALL, .nr_tx_rings = 6));
		ATF_CHECK_EQ(2, fail_calls_end());
		GRANTED(REG_SIZE, 2 + 2 * 4, &two, REGISTER("vale0:b", ALL,
		    .nr_tx_rings = 4));
		REFUSED(EMFILE, many, &one, REGISTER("vale0:a", ALL,
		    .nr_tx_rings = 4));
	}
	/* As it was, if it is not known. */
	limit_fails = true;
	vale_grant_limit();
	REFUSED(EMFILE, many, &one, REGISTER("vale0:a", ALL,
	    .nr_tx_rings = 4));
	limit_fails = false;
	nofile = RLIM_INFINITY;
	vale_grant_limit();
	GRANTED(REG_SIZE, 2 + 2 * 16, &one, REGISTER("vale0:a", ALL,
	    .nr_tx_rings = 16));
	peer_end(&one);
	peer_end(&two);
	peer_end(&more);
}

TEST_PROGRAM
