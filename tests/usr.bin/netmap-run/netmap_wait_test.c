/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Waiting for netmap's descriptors under netmap-run(1): poll(2), select(2) and
 * epoll(7).  A wait without a time limit ends only if the wakeup comes.
 */

#include <sys/param.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "libvale.h"
#include "netmap_port.h"
#include "wait_until.h"

PID_TEST(polls, "poll(2) waits for frames and for space, and syncs")
{
	static const struct nmreq_register small = { .nr_tx_slots = 16 };
	struct port a = port_open("vale0:a", &small);
	struct port b = port_open("vale0:b", NULL);
	struct timespec ts = { 0, 1000000 };
	struct pollfd pfd;
	unsigned int i;
	pthread_t t;

	ATF_CHECK_EQ(0, poll_one(b.fd, POLLIN, 0));
	ATF_CHECK_EQ(0, poll_one(b.fd, POLLIN, 30));
	pfd = (struct pollfd){ .fd = b.fd, .events = POLLIN };
	ATF_CHECK_EQ(0, ppoll(&pfd, 1, &ts, NULL));
	ts.tv_nsec = -1;
	ATF_CHECK_ERRNO(EINVAL, ppoll(&pfd, 1, &ts, NULL) == -1);
	ATF_CHECK_EQ(POLLOUT, poll_one(b.fd, POLLIN | POLLOUT, -1));
	t = later(send_later, &a);
	ATF_CHECK_EQ(POLLIN, poll_one(b.fd, POLLIN, -1));
	pthread_join(t, NULL);
	/* Until it is taken. */
	ATF_CHECK_EQ(POLLIN | POLLRDNORM, poll_one(b.fd, POLLIN | POLLRDNORM,
	    0));
	ATF_CHECK_EQ(1, port_take(&b));
	ATF_CHECK_EQ(0, poll_one(b.fd, POLLIN, 0));
	/* Waiting sends, for frames as for space. */
	for (i = 0; i < 200; i++) {
		if (nm_ring_empty(a.tx))
			ATF_CHECK_EQ(POLLOUT, poll_one(a.fd, POLLOUT, -1));
		port_put(&a, 60, i);
	}
	ATF_CHECK_EQ(0, poll_one(a.fd, POLLIN, 0));
	for (i = 0; i < 200; i++)
		port_expect(&b, 60, i);
	port_close(&a);
	port_close(&b);
}

PID_TEST(flags, "NR_NO_TX_POLL, NR_DO_RX_POLL and rings of one direction")
{
	static const struct nmreq_register quiet = { .nr_rx_slots = 8,
	    .nr_flags = NR_NO_TX_POLL | NR_DO_RX_POLL };
	static const struct nmreq_register tx = {
	    .nr_flags = NR_TX_RINGS_ONLY };
	struct port a = port_open("vale0:a", &quiet);
	struct port b = port_open("vale0:b", NULL);
	struct port c = port_open("vale1:c", &tx);
	uint64_t counters[VALE_NCOUNTERS];

	/* A wait for frames does not send, one for space does. */
	port_put(&a, 60, 1);
	ATF_CHECK_EQ(0, poll_one(a.fd, POLLIN, 10));
	ATF_REQUIRE_EQ(0, vale_port_counters("vale0:a", counters));
	ATF_CHECK_EQ(0, counters[VALE_C_TX_FRAME]);
	ATF_CHECK_EQ(POLLOUT, poll_one(a.fd, POLLOUT, -1));
	port_expect(&b, 60, 1);
	/* A wait for space shows frames, and that is all. */
	port_send(&b, 60, 2);
	wait_until(poll_one(a.fd, POLLOUT, -1) == POLLOUT &&
	    !nm_ring_empty(a.rx), "no frame");
	/* A ring that the descriptor does not have is never ready. */
	ATF_CHECK_EQ(0, poll_one(c.fd, POLLIN, 10));
	ATF_CHECK_EQ(POLLOUT, poll_one(c.fd, POLLIN | POLLOUT, 10));
	ATF_CHECK_EQ(0, ioctl(c.fd, NIOCRXSYNC, NULL));
	port_close(&a);
	port_close(&b);
	port_close(&c);
}

PID_TEST(mixed, "Other descriptors are waited for at the same time, many "
    "too")
{
	struct port a = port_open("vale0:a", NULL);
	struct port b = port_open("vale0:b", NULL);
	struct pollfd pfd[40];
	unsigned int i;
	int fds[2];
	pthread_t t;

	ATF_REQUIRE_EQ(0, pipe(fds));
	for (i = 0; i < nitems(pfd); i++)
		pfd[i] = (struct pollfd){ .fd = -1 };
	pfd[1] = (struct pollfd){ .fd = fds[0], .events = POLLIN };
	pfd[3] = (struct pollfd){ .fd = b.fd, .events = POLLIN };
	pfd[39] = (struct pollfd){ .fd = a.fd, .events = POLLIN };
	for (i = 4; i <= nitems(pfd); i += 36) {
		ATF_CHECK_EQ(0, poll(pfd, i, 0));
		t = later(send_later, &a);
		ATF_CHECK_EQ(1, poll(pfd, i, -1));
		pthread_join(t, NULL);
		ATF_CHECK_EQ(POLLIN, pfd[3].revents);
		ATF_REQUIRE_EQ(1, write(fds[1], "", 1));
		ATF_CHECK_EQ(2, poll(pfd, i, -1));
		ATF_CHECK_EQ(POLLIN, pfd[1].revents);
		ATF_CHECK_EQ(1, port_take(&b));
		ATF_CHECK_EQ(1, poll(pfd, i, -1));
		ATF_REQUIRE_EQ(1, read(fds[0], &t, 1));
		ATF_CHECK_EQ(0, poll(pfd, i, 1));
	}
	/* A descriptor that is not open. */
	pfd[0].fd = 555;
	ATF_CHECK_EQ(1, poll(pfd, 40, -1));
	ATF_CHECK_EQ(POLLNVAL, pfd[0].revents);
	port_close(&a);
	port_close(&b);
}

static void
on_signal(int sig __unused)
{
}

PID_TEST(signals, "A signal ends a wait, and a mask applies to it")
{
	const struct sigaction sa = { .sa_handler = on_signal };
	struct port a = port_open("vale0:a", NULL);
	struct pollfd pfd = { .fd = a.fd, .events = POLLIN };
	sigset_t block, none;

	ATF_REQUIRE_EQ(0, sigaction(SIGUSR1, &sa, NULL));
	sigemptyset(&none);
	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	ATF_REQUIRE_EQ(0, pthread_sigmask(SIG_BLOCK, &block, NULL));
	ATF_REQUIRE_EQ(0, raise(SIGUSR1));
	ATF_CHECK_EQ(0, poll(&pfd, 1, 10));
	ATF_CHECK_ERRNO(EINTR, ppoll(&pfd, 1, NULL, &none) == -1);
	port_close(&a);
}

PID_TEST(selects, "select(2) and pselect(2)")
{
	struct port a = port_open("vale0:a", NULL);
	struct port b = port_open("vale0:b", NULL);
	struct timeval tv = { 0, 10000 };
	struct timespec ts = { 0, 1000 };
	fd_set rd, wr;
	int fds[2], n;
	pthread_t t;

	ATF_REQUIRE_EQ(0, pipe(fds));
	n = MAX(MAX(a.fd, b.fd), fds[1]) + 1;
	FD_ZERO(&rd);
	FD_ZERO(&wr);
	FD_SET(b.fd, &rd);
	FD_SET(fds[0], &rd);
	ATF_CHECK_EQ(0, select(n, &rd, NULL, NULL, &tv));
	ATF_CHECK_EQ(0, tv.tv_sec + tv.tv_usec);
	ATF_CHECK(!FD_ISSET(b.fd, &rd) && !FD_ISSET(fds[0], &rd));
	FD_SET(b.fd, &rd);
	FD_SET(fds[0], &rd);
	FD_SET(fds[1], &wr);
	FD_SET(a.fd, &wr);
	ATF_CHECK_EQ(2, pselect(n, &rd, &wr, NULL, &ts, NULL));
	ATF_CHECK(FD_ISSET(a.fd, &wr) && FD_ISSET(fds[1], &wr));
	ATF_CHECK(!FD_ISSET(b.fd, &rd) && !FD_ISSET(fds[0], &rd));
	t = later(send_later, &a);
	FD_SET(b.fd, &rd);
	FD_SET(fds[0], &rd);
	ATF_CHECK_EQ(1, select(n, &rd, NULL, NULL, NULL));
	ATF_CHECK(FD_ISSET(b.fd, &rd) && !FD_ISSET(fds[0], &rd));
	pthread_join(t, NULL);
	/* A limit that was not needed is left. */
	tv.tv_sec = 1000;
	ATF_CHECK_EQ(1, select(n, &rd, NULL, NULL, &tv));
	ATF_CHECK(tv.tv_sec > 0 && tv.tv_sec <= 1000);
	FD_SET(n + 5, &rd);
	ATF_CHECK_ERRNO(EBADF, select(n + 6, &rd, NULL, NULL, NULL) == -1);
	tv.tv_sec = -1;
	ATF_CHECK_ERRNO(EINVAL, select(n, &rd, NULL, NULL, &tv) == -1);
	port_close(&a);
	port_close(&b);
}

static int
ep(int epfd, int op, int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.fd = fd };

	return (epoll_ctl(epfd, op, fd, &ev) == -1 ? errno : 0);
}

PID_TEST(epolls, "epoll(7): frames, space, once, changes, errors")
{
	struct port a = port_open("vale0:a", NULL);
	struct port b = port_open("vale0:b", NULL);
	struct epoll_event ev[4];
	int epfd = epoll_create1(0), fds[2], i, seen = 0;
	pthread_t t;

	ATF_REQUIRE_EQ(0, pipe(fds));
	ATF_CHECK_EQ(0, ep(epfd, EPOLL_CTL_ADD, b.fd, EPOLLIN));
	ATF_CHECK_EQ(0, ep(epfd, EPOLL_CTL_ADD, fds[0], EPOLLIN));
	ATF_CHECK_EQ(EEXIST, ep(epfd, EPOLL_CTL_ADD, b.fd, EPOLLIN));
	ATF_CHECK_EQ(ENOENT, ep(epfd, EPOLL_CTL_MOD, a.fd, EPOLLIN));
	ATF_CHECK_EQ(ENOENT, ep(epfd, EPOLL_CTL_DEL, a.fd, EPOLLIN));
	ATF_CHECK_EQ(EINVAL, ep(fds[0], EPOLL_CTL_ADD, a.fd, EPOLLIN));
	ATF_CHECK_EQ(EBADF, ep(-1, EPOLL_CTL_ADD, a.fd, EPOLLIN));
	ATF_CHECK_ERRNO(EFAULT, epoll_ctl(epfd, EPOLL_CTL_ADD, a.fd,
	    NULL) == -1);
	ATF_CHECK_EQ(0, epoll_wait(epfd, ev, 4, 0));
	ATF_CHECK_EQ(0, epoll_wait(epfd, ev, 4, 10));
	ATF_CHECK_ERRNO(EINVAL, epoll_wait(epfd, ev, 0, 0) == -1);
	t = later(send_later, &a);
	for (i = 0; i < 2; i++) {	/* level-triggered */
		ATF_CHECK_EQ(1, epoll_pwait(epfd, ev, 4, -1, NULL));
		ATF_CHECK_EQ(EPOLLIN, ev[0].events);
		ATF_CHECK_EQ(b.fd, ev[0].data.fd);
	}
	pthread_join(t, NULL);
	/* With space for one, both come in turn. */
	ATF_REQUIRE_EQ(1, write(fds[1], "", 1));
	ATF_CHECK_EQ(2, epoll_wait(epfd, ev, 4, -1));
	for (i = 0; i < 4; i++) {
		ATF_CHECK_EQ(1, epoll_wait(epfd, ev, 1, -1));
		seen |= ev[0].data.fd == b.fd ? 1 : 2;
	}
	ATF_CHECK_EQ(3, seen);
	ATF_REQUIRE_EQ(1, read(fds[0], &t, 1));
	ATF_CHECK_EQ(1, port_take(&b));
	ATF_CHECK_EQ(0, epoll_wait(epfd, ev, 4, 0));
	/* Space, and once. */
	ATF_CHECK_EQ(0, ep(epfd, EPOLL_CTL_MOD, b.fd, EPOLLIN | EPOLLOUT |
	    EPOLLONESHOT));
	ATF_CHECK_EQ(1, epoll_wait(epfd, ev, 4, -1));
	ATF_CHECK_EQ(EPOLLOUT, ev[0].events);
	ATF_CHECK_EQ(0, epoll_wait(epfd, ev, 4, 10));
	ATF_CHECK_EQ(0, ep(epfd, EPOLL_CTL_MOD, b.fd, EPOLLOUT));
	ATF_CHECK_EQ(1, epoll_wait(epfd, ev, 4, -1));
	ATF_CHECK_EQ(0, ep(epfd, EPOLL_CTL_DEL, b.fd, 0));
	ATF_CHECK_EQ(0, epoll_wait(epfd, ev, 4, 10));
	/* Closing takes it out. */
	ATF_CHECK_EQ(0, ep(epfd, EPOLL_CTL_ADD, b.fd, EPOLLOUT));
	ATF_CHECK_EQ(1, epoll_wait(epfd, ev, 4, -1));
	port_close(&b);
	ATF_CHECK_EQ(0, epoll_wait(epfd, ev, 4, 10));
	ATF_CHECK_EQ(0, ep(epfd, EPOLL_CTL_ADD, a.fd, EPOLLOUT));
	close(epfd);
	ATF_CHECK_ERRNO(EBADF, epoll_wait(epfd, ev, 4, 0) == -1);
	port_close(&a);
}

/* A number that others use as they like. */
#define	NUMBER	200

static atomic_bool replaced;

static void *
poll_number(void *arg __unused)
{
	struct pollfd pfd[40];
	unsigned int i;

	for (i = 0; i < nitems(pfd); i++)
		pfd[i] = (struct pollfd){ .fd = NUMBER, .events = POLLIN };
	while (!atomic_load(&replaced))
		ATF_REQUIRE(poll(pfd, nitems(pfd), 1) >= 0);
	return (NULL);
}

static void *
epoll_number(void *epfd)
{
	struct epoll_event ev[2];

	while (!atomic_load(&replaced))
		ATF_REQUIRE(epoll_wait(*(int *)epfd, ev, 2, 1) >= 0);
	return (NULL);
}

PID_TEST(replaces, "Another thread closes what poll(2) waits for, and opens "
    "ports with other numbers of rings in its place")
{
	struct nmreq_register reg = { .nr_tx_slots = 4, .nr_rx_slots = 4 };
	struct port p;
	unsigned int i;
	pthread_t e, t;
	int epfd;

	epfd = epoll_create1(EPOLL_CLOEXEC);
	ATF_REQUIRE(epfd != -1);
	t = later(poll_number, NULL);
	e = later(epoll_number, &epfd);
	for (i = 0; i < 100; i++) {
		reg.nr_tx_rings = reg.nr_rx_rings = i % 3 * 7 + 1;
		p = port_open("vale0:a", &reg);
		ATF_REQUIRE_EQ(NUMBER, dup2(p.fd, NUMBER));
		ATF_CHECK_EQ(0, ep(epfd, EPOLL_CTL_ADD, NUMBER, EPOLLIN |
		    (i % 5 == 0 ? EPOLLONESHOT | EPOLLOUT : 0)));
		port_close(&p);
		if (i % 2 == 0) {
			usleep(1000);
			close(NUMBER);
		}
		/* A wait may have it still. */
		wait_until(ports() == i % 2, "%u", i);
		if (i % 2 != 0)
			ATF_REQUIRE_EQ(NUMBER, dup2(STDERR_FILENO, NUMBER));
		wait_until(ports() == 0, "%u", i);
	}
	atomic_store(&replaced, true);
	pthread_join(t, NULL);
	pthread_join(e, NULL);
	close(NUMBER);
	close(epfd);
}

/*
 * Close all behind the ports, then in a loop, and use a.  Returns what failed.
 */
static int
closes_all(struct port *a, int last)
{
	struct stat st;
	int fd, file = -1, i, n = 0;

	closefrom(last + 1);
	/*
	 * Of b, and of a if they are not before b's: the connection, the
	 * memory, the window, two kicks.
	 */
	for (fd = last + 1; fd < 1000; fd++)
		n += fcntl(fd, F_GETFD) != -1;
	if (n != 5 && n != 10)
		return (6);
	for (i = 0; i < 8; i++) {
		file = open("file", O_RDWR | O_CREAT | O_APPEND, 0600);
		if (file == -1)
			return (1);
	}
	port_send(a, 60, 7);
	if (poll_one(a->fd, POLLIN, 30) != 0)
		return (2);
	if (fstat(file, &st) == -1 || st.st_size != 0)
		return (3);
	for (fd = last + 1; fd < 1000; fd++)
		close(fd);
	if (close_range(last + 1, ~0u, CLOSE_RANGE_UNSHARE) == -1)
		return (4);
	port_send(a, 60, 8);
	return (poll_one(a->fd, POLLIN, 0) != 0 ? 5 : 0);
}

PID_TEST(daemons, "A program that closes all descriptors that it does not "
    "know, with closefrom(3), close_range(2) and close(2), has its port still, "
    "and no file of its is the library's")
{
	struct port a = port_open("vale0:a", NULL);
	struct port b = port_open("vale0:b", NULL);
	int status;
	pid_t pid;

	/* The test's own valed is in this process. */
	pid = fork();
	ATF_REQUIRE(pid != -1);
	if (pid == 0)
		_exit(closes_all(&a, MAX(a.fd, b.fd)));
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	ATF_REQUIRE_EQ(0, status);
	port_expect(&b, 60, 7);
	port_expect(&b, 60, 8);
	port_close(&a);
	port_close(&b);
}

TEST_PROGRAM
