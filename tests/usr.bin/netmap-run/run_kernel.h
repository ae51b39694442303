/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * For tests of run_wait.c and run_epoll.c: rings whose syncs say that they are
 * synced, a clock of the test's own, and a kernel that says what it is asked
 * and gives the answers that it was given:
 *
 *	T0 R0	rings 0 are synced
 *	t0 r0	a byte is asked for on the sockets of rings 0
 *	P	ppoll(2): descriptors with events, how many of -1 behind them,
 *		m with a mask, and the time limit
 *	c	epoll_ctl(2)
 *	E	epoll_wait(2), with space for so many
 *
 * Needs <atf-c.h>.
 */

#ifndef _RUN_KERNEL_H_
#define	_RUN_KERNEL_H_

#include <sys/param.h>

#include <errno.h>
#include <string.h>

#include "netmap_run.h"
#include "run_memory.h"
#include "run_said.h"

_Atomic(struct run_desc *) run_fds[RUN_FDS];
atomic_uint run_count;
_Thread_local unsigned int run_held;

static unsigned int freed;

/* What another thread may do only if nobody has it. */
void
run_desc_free(struct run_desc *rd)
{
	freed++;
	memset(rd, 0xa5, sizeof(*rd));
}

/* The table's lock. */
static int	locked;
static unsigned int locks;
static void	(*on_unlock)(void);	/* what another thread does next */

void
run_lock(void)
{
	ATF_REQUIRE_EQ(0, locked++);
	locks++;
}

void
run_unlock(void)
{
	ATF_REQUIRE_EQ(1, locked--);
	if (on_unlock != NULL)
		on_unlock();
}

/* The clock. */
static struct timespec now = { 1000, 700000000 };
static unsigned int clocks;

int	__wrap_clock_gettime(clockid_t, struct timespec *);

int
__wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	ATF_CHECK_EQ(CLOCK_MONOTONIC, id);
	clocks++;
	*ts = now;
	return (0);
}

/* Rings, and what their syncs and waits return. */
#define	RINGS	4

static struct run_port port;
static struct netmap_ring txring[RINGS], rxring[RINGS];
static int	tx_result[RINGS], rx_result[RINGS];
static int	tx_ready[RINGS], rx_ready[RINGS];	/* so many times */
static struct run_desc desc[4];

int
vale_client_txsync(struct vale_client_port *cp, unsigned int i)
{
	ATF_CHECK(cp == &port.rp_client);
	say(" T%u", i);
	return (tx_result[i]);
}

int
vale_client_rxsync(struct vale_client_port *cp, unsigned int i)
{
	ATF_CHECK(cp == &port.rp_client);
	say(" R%u", i);
	return (rx_result[i]);
}

bool
vale_client_txwait(struct vale_client_port *cp, unsigned int i)
{
	ATF_CHECK(cp == &port.rp_client);
	say(" t%u", i);
	return (tx_ready[i] > 0 && tx_ready[i]-- > 0);
}

bool
vale_client_rxwait(struct vale_client_port *cp, unsigned int i)
{
	ATF_CHECK(cp == &port.rp_client);
	say(" r%u", i);
	return (rx_ready[i] > 0 && rx_ready[i]-- > 0);
}

/* Let desc[n] be found as `fd', with rings from `first' to before `end'. */
static struct run_desc *
have(int n, int fd, unsigned int first, unsigned int end)
{
	unsigned int i;

	for (i = 0; i < RINGS; i++) {
		port.rp_client.cp_ring[i].vcr_txring = &txring[i];
		port.rp_client.cp_ring[i].vcr_rxring = &rxring[i];
		port.rp_client.cp_ring[i].vcr_tx_kick = 100 + 2 * i;
		port.rp_client.cp_ring[i].vcr_rx_kick = 101 + 2 * i;
	}
	desc[n] = (struct run_desc){ .rd_port = &port, .rd_first = first,
	    .rd_end = end, .rd_tx = true, .rd_rx = true,
	    .rd_registered = true, .rd_refs = 1 };
	run_fds[fd] = &desc[n];
	return (&desc[n]);
}

/* What the kernel answers: r or errno, then what two descriptors have. */
static struct answer {
	int	r;
	int	error;
	int	fd[2];
	short	revents[2];
	int	ms;		/* that pass */
} answers[16];
static unsigned int nanswers, asked;
static void	(*on_ppoll)(void);

static void
answer(int r, int error, int fd, short revents, int ms)
{
	ATF_REQUIRE(nanswers < nitems(answers));
	answers[nanswers++] = (struct answer){ r, error, { fd, -2 },
	    { revents, 0 }, ms };
}

static int
the_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *ts,
    const sigset_t *mask)
{
	const struct answer *a;
	nfds_t end, i, k;

	ATF_CHECK_EQ(0, locked);
	say(" P");
	for (end = n; end > 0 && fds[end - 1].fd == -1 &&
	    fds[end - 1].events == 0; end--)
		continue;
	for (i = 0; i < end; i++)
		say("%s%d/%d", i == 0 ? "" : ",", fds[i].fd, fds[i].events);
	say("+%zu%s", (size_t)(n - end), mask != NULL ? "m" : "");
	if (ts != NULL)
		say("@%jd.%09ld", (intmax_t)ts->tv_sec, ts->tv_nsec);
	ATF_REQUIRE(asked < nanswers);
	a = &answers[asked++];
	for (i = 0; i < n; i++) {
		ATF_CHECK_EQ(0, fds[i].revents);
		for (k = 0; k < 2; k++)
			if (fds[i].fd == a->fd[k])
				fds[i].revents = a->revents[k];
	}
	if (on_ppoll != NULL)
		on_ppoll();
	now.tv_nsec += a->ms * 1000000L;
	now.tv_sec += now.tv_nsec / 1000000000;
	now.tv_nsec %= 1000000000;
	errno = a->error;
	return (a->r);
}

/* The kernel's epoll(7). */
static int	ctl_error;		/* or 0 */
static int	wait_results[8];	/* -errno if it fails */
static unsigned int waited;

static int
the_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	say(" c%d,%d,%d", epfd, op, fd);
	ATF_CHECK(event == NULL);
	ATF_CHECK_EQ(1, locked);
	errno = ctl_error;
	return (ctl_error != 0 ? -1 : 0);
}

static int
the_epoll_wait(int epfd, struct epoll_event *events, int max, int ms)
{
	const int r = wait_results[waited++];
	int i;

	ATF_CHECK_EQ(0, ms);
	say(" E%d,%d", epfd, max);
	for (i = 0; i < r; i++)
		events[i] = (struct epoll_event){ .events = EPOLLPRI,
		    .data.fd = 7 };
	errno = -r;
	return (r < 0 ? -1 : r);
}

const struct run_calls *
run_calls(void)
{
	static const struct run_calls calls = { .ppoll = the_ppoll,
	    .epoll_ctl = the_epoll_ctl, .epoll_wait = the_epoll_wait };

	return (&calls);
}

static const struct timespec zero;

#define	IN	POLLIN
#define	OUT	POLLOUT

#endif /* !_RUN_KERNEL_H_ */
