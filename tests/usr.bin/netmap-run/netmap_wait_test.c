/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Waiting for netmap's descriptors under netmap-run(1): what a wait sends and
 * receives, and a program that closes all descriptors.  netmap_random_test has
 * the other calls that wait.
 */

#include <sys/param.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "libvale.h"
#include "netmap_port.h"
#include "vale_clock.h"
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

static atomic_bool waiting;
static int stops[2][2];		/* pipes: the thread has stopped; goes on */

static void
stop(int sig __unused)
{
	char c = 0;

	(void)!write(stops[0][1], &c, 1);
	(void)!read(stops[1][0], &c, 1);
}

/* Wait for frames, of which none come. */
static void *
wait_in_vain(void *arg)
{
	struct pollfd pfd = { .fd = *(int *)arg, .events = POLLIN };

	while (atomic_load(&waiting))
		ATF_CHECK(poll(&pfd, 1, 0) <= 0);
	return (NULL);
}

/* Put a frame that lies in the program's memory. */
static void
put_indirect(struct port *p)
{
	static uint8_t data[2048] = { [0 ... 5] = 0xff, [6] = 2 };
	struct netmap_slot *slot = &p->tx->slot[p->tx->head];

	ATF_REQUIRE(!nm_ring_empty(p->tx));
	slot->ptr = (uintptr_t)data;
	slot->len = sizeof(data);
	slot->flags = NS_INDIRECT;
	p->tx->head = p->tx->cur = nm_ring_next(p->tx, p->tx->head);
}

PID_TEST(threads, "A thread sends, while another one waits for frames of the "
    "port, which sends, too: each frame is sent once")
{
	const unsigned int frames = 32, rounds = 1000;
	struct port a = port_open("vale0:a", NULL);
	struct port b = port_open("vale0:b", NULL);
	unsigned int i, k;
	pthread_t thread;
	char c = 0;

	ATF_REQUIRE_EQ(0, pipe(stops[0]));
	ATF_REQUIRE_EQ(0, pipe(stops[1]));
	signal(SIGUSR1, stop);
	atomic_store(&waiting, true);
	thread = later(wait_in_vain, &a.fd);
	for (i = 0; i < rounds; i++) {
		for (k = 0; k < frames; k++)
			put_indirect(&a);
		/* Wherever it is: perhaps in the midst of a sync. */
		ATF_REQUIRE_EQ(0, pthread_kill(thread, SIGUSR1));
		ATF_REQUIRE_EQ(1, read(stops[0][0], &c, 1));
		ATF_REQUIRE_EQ(0, ioctl(a.fd, NIOCTXSYNC, NULL));
		port_send(&a, 60, i);
		ATF_REQUIRE_EQ(1, write(stops[1][1], &c, 1));
		for (k = 0; k < frames; k++)
			port_expect(&b, 2048, 0);
		port_expect(&b, 60, i);
	}
	atomic_store(&waiting, false);
	pthread_join(thread, NULL);
	ATF_REQUIRE_EQ(0, ioctl(b.fd, NIOCRXSYNC, NULL));
	ATF_CHECK_EQ(0, nm_ring_space(b.rx));
	port_close(&a);
	port_close(&b);
}

static int
ep(int epfd, int op, int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.fd = fd };

	return (epoll_ctl(epfd, op, fd, &ev) == -1 ? errno : 0);
}

static atomic_int waiter;	/* a thread, or 0 */

/* Wait for an event of an epoll(7) descriptor, and return its number. */
static void *
epoll_one(void *epfd)
{
	struct epoll_event ev[2];

	atomic_store(&waiter, gettid());
	ATF_CHECK_EQ(1, epoll_wait(*(int *)epfd, ev, 2, -1));
	ATF_CHECK_EQ(EPOLLIN, ev[0].events);
	return ((void *)(intptr_t)ev[0].data.fd);
}

/* Return whether that thread sleeps in a call. */
static bool
sleeps(long call)
{
	char path[64];
	long now = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall",
	    atomic_load(&waiter));
	f = fopen(path, "r");
	if (f != NULL) {
		if (fscanf(f, "%ld", &now) != 1)
			now = -1;
		fclose(f);
	}
	return (now == call);
}

PID_TEST(epoll_added, "A thread that waits for an epoll(7) descriptor sees "
    "what another one adds, or wants again")
{
	struct port a = port_open("vale0:a", NULL);
	struct port b = port_open("vale0:b", NULL);
	int epfd = epoll_create1(0), i;
	pthread_t thread;
	void *fd;

	/* What a process does that has had another user is not shown to it. */
	ATF_REQUIRE_EQ(0, prctl(PR_SET_DUMPABLE, 1));
	port_send(&a, 60, 1);
	wait_until(poll_one(b.fd, POLLIN, 0) == POLLIN, "no frame");
	for (i = 0; i < 3; i++) {
		/* Without another of /dev/netmap, with one, and once more. */
		if (i == 1)
			ATF_CHECK_EQ(0, ep(epfd, EPOLL_CTL_ADD, a.fd, EPOLLIN));
		atomic_store(&waiter, 0);
		thread = later(epoll_one, &epfd);
		wait_until(i > 0 ? sleeps(SYS_ppoll) : sleeps(SYS_epoll_wait) ||
		    sleeps(SYS_epoll_pwait), "no wait");
		ATF_CHECK_EQ(0, ep(epfd, i == 2 ? EPOLL_CTL_MOD :
		    EPOLL_CTL_ADD, b.fd, EPOLLIN | EPOLLONESHOT));
		ATF_REQUIRE_EQ(0, pthread_join(thread, &fd));
		ATF_CHECK_EQ(b.fd, (int)(intptr_t)fd);
		if (i == 0)
			ATF_CHECK_EQ(0, ep(epfd, EPOLL_CTL_DEL, b.fd, 0));
	}
	close(epfd);
	port_close(&a);
	port_close(&b);
}

/* The clock of the case `looks': only yields advance the clock. */
static uint64_t clock_ns, yield_ns;
static unsigned int yields;
static struct port *sender;		/* sends at the third yield; or NULL */

int
sched_yield(void)
{
	if (clock_ns == 0)
		return (syscall(SYS_sched_yield));
	clock_ns += yield_ns;
	if (++yields == 3 && sender != NULL)
		port_send(sender, 60, 1);
	return (0);
}

int
clock_gettime(clockid_t clock, struct timespec *ts)
{
	if (clock_ns == 0 || clock != CLOCK_MONOTONIC)
		return (syscall(SYS_clock_gettime, clock, ts));
	ts->tv_sec = clock_ns / 1000000000;
	ts->tv_nsec = clock_ns % 1000000000;
	return (0);
}

/* Return how often poll(2) of an empty ring, and of another file, yields. */
static unsigned int
poll_yields_with(const struct port *p, int fd)
{
	struct pollfd pfd[] = { { .fd = p->fd, .events = POLLIN },
	    { .fd = fd, .events = POLLIN } };

	yields = 0;
	ATF_CHECK_EQ(0, poll(pfd, nitems(pfd), 1));
	return (yields);
}

/* Return how often poll(2) of an empty ring yields. */
static unsigned int
poll_yields(const struct port *p, int ms, short expected)
{
	yields = 0;
	ATF_CHECK_EQ(expected, poll_one(p->fd, POLLIN, ms));
	return (yields);
}

PID_TEST(looks, "A wait looks for frames for a short time before it sleeps, "
    "unless another thread computes on its processor")
{
	struct port a = port_open("vale0:x{1", NULL);
	struct port b = port_open("vale0:x}1", NULL);
	unsigned int all;
	int fds[2];

	clock_ns = 1000000000;
	all = poll_yields(&b, 1, 0);
	ATF_REQUIRE_MSG(all > 3, "%u", all);
	ATF_CHECK_EQ(0, poll_yields(&b, 0, 0));
	ATF_CHECK_EQ(all, poll_yields_with(&b, a.fd));
	ATF_REQUIRE_EQ(0, pipe(fds));
	ATF_CHECK_EQ(0, poll_yields_with(&b, fds[0]));
	sender = &a;
	ATF_CHECK_EQ(3, poll_yields(&b, -1, POLLIN));
	ATF_CHECK_EQ(1, port_take(&b));
	sender = NULL;
	yield_ns = VALE_AWAY_NS;
	ATF_CHECK_EQ(all, poll_yields(&b, 1, 0));
	yield_ns++;
	ATF_CHECK_EQ(1, poll_yields(&b, 1, 0));
	ATF_CHECK_EQ(0, poll_yields(&b, 1, 0));
	clock_ns += VALE_REST_NS;
	ATF_CHECK_EQ(1, poll_yields(&b, 1, 0));
	clock_ns = 0;
	port_close(&a);
	port_close(&b);
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
