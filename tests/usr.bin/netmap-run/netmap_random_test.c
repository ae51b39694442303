/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Random calls under netmap-run(1), compared with a model of what the numbers
 * of the program stand for: descriptors of /dev/netmap, which may share a port,
 * others, or none.
 */

#include <sys/param.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atf-c.h>

#include "netmap_port.h"
#include "wait_until.h"

/* The program's numbers.  The library has lower ones. */
#define	FIRST		200
#define	NUMBERS		20
#define	NPORTS		3
#define	NRINGS		2

struct desc {
	unsigned int	refs;		/* numbers */
	int		port;		/* or -1 */
	unsigned int	first, end;	/* its rings, */
	bool		has[2];		/* transmit, receive, */
	bool		exclusive;	/* for nobody else */
};

static struct number {
	bool		open;
	bool		cloexec;
	struct desc	*desc;		/* or NULL: of another kind */
} numbers[NUMBERS];

static struct desc descs[NUMBERS];
static uint32_t	seed;
static bool	before[FIRST];		/* open, and not the library's */
static unsigned int port_fds;		/* that the library has of a port */

/* Whether a number is open, as the kernel says. */
static bool
is_open(int fd)
{
	return (syscall(SYS_fcntl, fd, F_GETFD) != -1);
}

/* Whether the library has the number. */
static bool
is_own(int fd)
{
	return (!before[fd] && is_open(fd));
}

/* How many descriptors the library has. */
static unsigned int
own(void)
{
	unsigned int n = 0;
	int fd;

	for (fd = 0; fd < FIRST; fd++)
		n += is_own(fd);
	return (n);
}

/* Prepare: no call of the test opens anything that stays. */
static void
begin(uint32_t s)
{
	int fd;

	seed = s;
	ATF_REQUIRE_EQ(0, ports());
	for (fd = 0; fd < FIRST; fd++)
		before[fd] = is_open(fd);
}

static unsigned int
users(int port, unsigned int dir, unsigned int ring, bool exclusive)
{
	unsigned int i, n = 0;

	for (i = 0; i < NUMBERS; i++)
		n += descs[i].refs > 0 && descs[i].port == port &&
		    descs[i].has[dir] && ring >= descs[i].first &&
		    ring < descs[i].end &&
		    (!exclusive || descs[i].exclusive);
	return (n);
}

static unsigned int
port_count(void)
{
	unsigned int i, n = 0;
	int port;

	for (port = 0; port < NPORTS; port++) {
		for (i = 0; i < NUMBERS; i++)
			if (descs[i].refs > 0 && descs[i].port == port)
				break;
		n += i < NUMBERS;
	}
	return (n);
}

/* The errno of a sync of a number, or 0. */
static int
sync_errno(const struct number *n)
{
	return (!n->open ? EBADF : n->desc == NULL ? ENOTTY :
	    n->desc->port == -1 ? ENXIO : 0);
}

/* What the program can see is what the model says. */
static bool
agrees(void)
{
	unsigned int i, own_fds = port_count() * port_fds;
	bool same = true;
	int flags, r;

	for (i = 0; i < NUMBERS; i++) {
		flags = fcntl(FIRST + i, F_GETFD);
		same &= flags == (!numbers[i].open ? -1 :
		    numbers[i].cloexec ? FD_CLOEXEC : 0);
		r = ioctl(FIRST + i, NIOCRXSYNC, NULL);
		same &= (r == -1 ? errno : 0) == sync_errno(&numbers[i]);
		r = ioctl(FIRST + i, NIOCTXSYNC, NULL);
		same &= (r == -1 ? errno : 0) == sync_errno(&numbers[i]);
		own_fds += descs[i].refs > 0 && descs[i].port == -1;
	}
	return (same && own() == own_fds);
}

/* The number stands for nothing. */
static void
clear(unsigned int i)
{
	if (numbers[i].open && numbers[i].desc != NULL)
		numbers[i].desc->refs--;
	numbers[i] = (struct number){ .open = false };
}

static void
set(unsigned int i, struct desc *desc, bool cloexec)
{
	if (desc != NULL)
		desc->refs++;
	clear(i);
	numbers[i] = (struct number){ .open = true, .cloexec = cloexec,
	    .desc = desc };
}

static struct desc *
desc_new(void)
{
	unsigned int i;

	for (i = 0; descs[i].refs > 0; i++)
		continue;
	descs[i] = (struct desc){ .port = -1 };
	return (&descs[i]);
}

/* Open something, with any number, and give it another. */
static void
do_open(unsigned int i, bool netmap, bool cloexec)
{
	struct desc *desc;
	int fd = netmap ? open("/dev/netmap", O_RDWR |
	    (cloexec ? O_CLOEXEC : 0)) : eventfd(0, cloexec ? EFD_CLOEXEC : 0);

	ATF_REQUIRE(fd != -1);
	ATF_CHECK_EQ(cloexec ? FD_CLOEXEC : 0, fcntl(fd, F_GETFD));
	ATF_REQUIRE_EQ(FIRST + (int)i, dup3(fd, FIRST + i, cloexec ?
	    O_CLOEXEC : 0));
	errno = EXDEV;
	ATF_REQUIRE_EQ(0, close(fd));
	ATF_CHECK_EQ(EXDEV, errno);
	/* The number may have been a descriptor's last, whose place is free. */
	clear(i);
	desc = netmap ? desc_new() : NULL;
	set(i, desc, cloexec);
}

static void
do_dup_to(unsigned int from, unsigned int to, bool dup3_, bool cloexec)
{
	const struct number n = numbers[from];
	int r;

	errno = 0;
	r = dup3_ ? dup3(FIRST + from, FIRST + to, cloexec ? O_CLOEXEC : 0) :
	    dup2(FIRST + from, FIRST + to);
	if (dup3_ && from == to) {
		ATF_REQUIRE(r == -1 && errno == EINVAL);
	} else if (!n.open) {
		ATF_REQUIRE(r == -1 && errno == EBADF);
	} else {
		ATF_REQUIRE_EQ(FIRST + (int)to, r);
		if (from != to)
			set(to, n.desc, dup3_ && cloexec);
	}
}

/* A copy with the first free number, by each call. */
static void
do_dup(unsigned int from, unsigned int to, unsigned int how)
{
	const struct number n = numbers[from];
	int r;

	errno = 0;
	r = how == 0 ? dup(FIRST + from) : fcntl(FIRST + from, how == 1 ?
	    F_DUPFD : F_DUPFD_CLOEXEC, FIRST);
	if (!n.open) {
		ATF_REQUIRE(r == -1 && errno == EBADF);
		return;
	}
	ATF_REQUIRE(r >= 0 && (how == 0 || r >= FIRST));
	ATF_CHECK_EQ(how == 2 ? FD_CLOEXEC : 0, fcntl(r, F_GETFD));
	if (r >= FIRST && r < FIRST + NUMBERS) {
		ATF_REQUIRE(!numbers[r - FIRST].open);
		set(r - FIRST, n.desc, how == 2);
	} else {
		ATF_REQUIRE_EQ(FIRST + (int)to, dup2(r, FIRST + to));
		ATF_REQUIRE_EQ(0, close(r));
		set(to, n.desc, false);
	}
}

static void
do_close(unsigned int i)
{
	int r;

	errno = EXDEV;
	r = close(FIRST + i);
	ATF_REQUIRE_EQ(numbers[i].open ? 0 : -1, r);
	ATF_CHECK_EQ(r == 0 ? EXDEV : EBADF, errno);
	clear(i);
}

static void
do_close_range(unsigned int a, unsigned int b, bool cloexec)
{
	unsigned int i;

	ATF_REQUIRE_EQ(0, close_range(FIRST + a, FIRST + b, cloexec ?
	    CLOSE_RANGE_CLOEXEC : 0));
	for (i = a; i <= b; i++) {
		if (!cloexec)
			clear(i);
		else if (numbers[i].open)
			numbers[i].cloexec = true;
	}
}

/* The errno that the model has for a registration. */
static int
register_errno(const struct number *n, const struct desc *d)
{
	unsigned int dir, ring;

	if (!n->open || n->desc == NULL)
		return (!n->open ? EBADF : ENOTTY);
	if (n->desc->port != -1)
		return (EBUSY);
	if (!d->has[0] && !d->has[1])
		return (EINVAL);
	for (dir = 0; dir < 2; dir++)
		for (ring = d->first; d->has[dir] && ring < d->end; ring++)
			if (users(d->port, dir, ring, !d->exclusive) > 0)
				return (EBUSY);
	return (0);
}

static void
do_register(unsigned int i)
{
	struct nmreq_register reg = { .nr_tx_rings = NRINGS,
	    .nr_rx_rings = NRINGS };
	struct desc d = { .port = test_below(&seed, NPORTS), .end = NRINGS,
	    .has = { test_chance(&seed, 3, 4), test_chance(&seed, 3, 4) },
	    .exclusive = test_chance(&seed, 1, 8) };
	char name[16];
	int error;

	reg.nr_mode = NR_REG_ALL_NIC;
	if (test_chance(&seed, 2, 3)) {
		reg.nr_mode = NR_REG_ONE_NIC;
		reg.nr_ringid = d.first = test_below(&seed, NRINGS);
		d.end = d.first + 1;
	}
	reg.nr_flags = (d.has[0] ? 0 : NR_RX_RINGS_ONLY) |
	    (d.has[1] ? 0 : NR_TX_RINGS_ONLY) |
	    (d.exclusive ? NR_EXCLUSIVE : 0);
	snprintf(name, sizeof(name), "vale0:%d", d.port);
	error = register_errno(&numbers[i], &d);
	ATF_REQUIRE_EQ(error, request(FIRST + i, NETMAP_REQ_REGISTER, name,
	    &reg));
	if (error != 0)
		return;
	ATF_CHECK_EQ(NRINGS, reg.nr_tx_rings);
	d.refs = numbers[i].desc->refs;
	*numbers[i].desc = d;
}

/* Nothing that the program does to the library's numbers changes them. */
static void
do_own(void)
{
	const unsigned int n = own();
	int fd;

	for (fd = 0; fd < FIRST; fd++) {
		if (!is_own(fd))
			continue;
		ATF_CHECK_ERRNO(EBADF, close(fd) == -1);
		ATF_CHECK_ERRNO(EBUSY, dup2(0, fd) == -1);
		ATF_CHECK_ERRNO(EBUSY, dup3(0, fd, 0) == -1);
		if (port_count() > 0)
			ATF_CHECK_EQ(0, close_range(fd, fd, 0));
	}
	ATF_CHECK_EQ(n, own());
}

/* A child has what its parent has, and what it closes is the parent's still. */
static void
do_fork(unsigned int i)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		status = !agrees();
		do_close(i);
		do_dup(test_below(&seed, NUMBERS), i, 0);
		_exit(status + 2 * !agrees());
	}
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	ATF_REQUIRE_EQ(0, status);
}

/* A child of vfork(2) has numbers of its own, and the parent's memory. */
static void
do_vfork(volatile unsigned int i)
{
	int status;
	pid_t pid = vfork();

	if (pid == 0) {
		close(FIRST + i);
		dup2(FIRST + (i + 1) % NUMBERS, FIRST + i);
		fcntl(FIRST + i, F_DUPFD, FIRST);
		_exit(0);
	}
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	ATF_REQUIRE_EQ(0, status);
}

static void
step(void)
{
	const unsigned int i = test_below(&seed, NUMBERS);
	const unsigned int k = test_below(&seed, NUMBERS);
	const bool flag = test_chance(&seed, 1, 2);

	switch (test_below(&seed, 24)) {
	case 0: case 1: case 2: case 3: case 4:
		do_open(i, test_chance(&seed, 4, 5), flag);
		break;
	case 5: case 6:
		do_dup_to(i, k, test_chance(&seed, 1, 2), flag);
		break;
	case 7: case 8:
		do_dup(i, k, test_below(&seed, 3));
		break;
	case 9: case 10: case 11:
		do_close(i);
		break;
	case 12:
		do_close_range(MIN(i, k), MIN(MAX(i, k), MIN(i, k) + 5),
		    flag);
		break;
	case 13:
		do_own();
		break;
	case 14:
		do_fork(i);
		break;
	case 15:
		do_vfork(i);
		break;
	default:
		do_register(i);
		break;
	}
}

/* How many of the library's descriptors are a port's. */
static unsigned int
measure(void)
{
	struct nmreq_register reg = { .nr_tx_rings = NRINGS,
	    .nr_rx_rings = NRINGS };
	struct port p = port_open("vale0:0", &reg);
	const unsigned int n = own();

	/* Of the port's own number, too. */
	port_close(&p);
	ATF_REQUIRE_EQ(0, own());
	ATF_REQUIRE(n > 2 * NRINGS);
	return (n - 1);
}

PID_TEST(calls, "Numbers are copied, closed, registered and inherited in any "
    "order")
{
	unsigned int i;

	begin(4711);
	port_fds = measure();
	for (i = 0; i < 6000; i++) {
		step();
		ATF_REQUIRE_MSG(agrees(), "step %u", i);
		if (i % 16 == 0)
			wait_until(ports() == port_count(), "%u of %u ports",
			    ports(), port_count());
	}
	do_close_range(0, NUMBERS - 1, false);
	ATF_CHECK_EQ(0, own());
	wait_until(ports() == 0, "%u ports", ports());
}


/* Mappings of what the library may have mapped. */
static unsigned int
mappings(void)
{
	char line[512];
	unsigned int n = 0;
	FILE *f = fopen("/proc/self/maps", "r");

	ATF_REQUIRE(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL)
		n += strstr(line, "memfd:") != NULL;
	fclose(f);
	return (n);
}

/* A file that is created by one of the calls has this mode. */
static void
check_mode(int fd, mode_t mode)
{
	struct stat st;

	ATF_REQUIRE(fd != -1);
	ATF_REQUIRE_EQ(0, fstat(fd, &st));
	ATF_CHECK_EQ(mode, st.st_mode & 0777);
	ATF_REQUIRE_EQ(0, close(fd));
}

PID_TEST(others, "Files are created with their modes, and errors are the "
    "kernel's")
{
	/* Whose declarations say that a path is never NULL. */
	int (*const volatile open_)(const char *, int, ...) = open;
	int (*const volatile openat_)(int, const char *, int, ...) = openat;
	const int flags = O_CREAT | O_RDWR, tmp = O_TMPFILE | O_RDWR;
	struct port p = port_open("vale0:a", NULL);
	const unsigned int maps = mappings();
	void *map;

	umask(0);
	check_mode(open("1", flags, 0640), 0640);
	check_mode(open64("2", flags, 0641), 0641);
	check_mode(openat(AT_FDCWD, "3", flags, 0642), 0642);
	check_mode(openat64(AT_FDCWD, "4", flags, 0643), 0643);
	check_mode(open(".", tmp, 0644), 0644);
	check_mode(openat(AT_FDCWD, ".", tmp, 0645), 0645);
	ATF_CHECK_ERRNO(ENOENT, open("/dev/netmap0", O_RDWR) == -1);
	ATF_CHECK_ERRNO(ENOENT, open("netmap", O_RDWR) == -1);
	ATF_CHECK_ERRNO(EFAULT, open_(NULL, O_RDWR) == -1);
	ATF_CHECK_ERRNO(EFAULT, openat_(AT_FDCWD, NULL, O_RDWR) ==
	    -1);
	/* That has no descriptor, whatever it says. */
	map = mmap(NULL, p.reg.nr_memsize, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, p.fd, 0);
	ATF_REQUIRE(map != MAP_FAILED);
	ATF_CHECK_EQ(maps, mappings());
	ATF_CHECK_ERRNO(ENODEV, mmap(NULL, 4096, PROT_READ, MAP_SHARED,
	    eventfd(0, 0), 0) == MAP_FAILED);
	port_close(&p);
}

PID_TEST(numbers, "A number that the library has no place for is no descriptor "
    "of /dev/netmap")
{
	const uid_t uid = geteuid();
	const int last = 65535;
	struct rlimit rl;
	struct port p;
	int fd;

	ATF_REQUIRE_EQ(0, getrlimit(RLIMIT_NOFILE, &rl));
	rl.rlim_cur = last + 16;
	rl.rlim_max = MAX(rl.rlim_max, rl.rlim_cur);
	(void)!seteuid(0);
	if (setrlimit(RLIMIT_NOFILE, &rl) == -1)
		atf_tc_skip("there are too few descriptors");
	ATF_REQUIRE_EQ(0, seteuid(uid));
	p = port_open("vale0:a", NULL);
	ATF_CHECK_EQ(last, dup2(p.fd, last));
	ATF_CHECK_EQ(0, ioctl(last, NIOCRXSYNC, NULL));
	ATF_CHECK_ERRNO(EMFILE, fcntl(p.fd, F_DUPFD, last) == -1);
	ATF_CHECK_ERRNO(EMFILE, dup2(p.fd, last + 1) == -1);
	ATF_CHECK(!is_open(last + 1));
	fd = eventfd(0, 0);
	while (dup(fd) <= last)
		continue;
	ATF_CHECK_ERRNO(EMFILE, open("/dev/netmap", O_RDWR) == -1);
	ATF_CHECK(is_open(last + 1) && !is_open(last + 2) &&
	    !is_open(last + 3));
	ATF_CHECK_EQ(0, close_range(FIRST, ~0u, 0));
	port_close(&p);
	wait_until(ports() == 0, "%u ports", ports());
}

/*
 * Waiting.  What each of these descriptors is ready for is known: two ports, of
 * which one has another number, too; an end of a pipe of netmap's, whose ring
 * the other end leaves full or not; one without a port; an eventfd(2); one that
 * is not open.
 */
enum { PORT_A, PORT_B, COPY_B, PIPE, NO_PORT, EVENT, CLOSED, KINDS };

#define	IN	(POLLIN | POLLRDNORM)
#define	OUT	(POLLOUT | POLLWRNORM)

static int	kinds[KINDS];
static short	ready[KINDS];
static struct port sender, port[2], ends[2];
static unsigned int frames[2];	/* that wait in the ports */
static volatile sig_atomic_t signals;

static void
count_signal(int sig __unused)
{
	signals++;
}

static void
waits_begin(void)
{
	unsigned int i;

	begin(815);
	sender = port_open("vale0:s", NULL);
	port[0] = port_open("vale0:a", NULL);
	port[1] = port_open("vale0:b", NULL);
	ends[0] = port_open("vale0:p{1", NULL);
	ends[1] = port_open("vale0:p}1", NULL);
	kinds[PORT_A] = port[0].fd;
	kinds[PORT_B] = port[1].fd;
	kinds[COPY_B] = dup2(port[1].fd, FIRST);
	kinds[PIPE] = ends[0].fd;
	kinds[NO_PORT] = device();
	kinds[EVENT] = eventfd(0, EFD_NONBLOCK);
	kinds[CLOSED] = FIRST + 1;
	for (i = 0; i <= PIPE; i++)
		ready[i] = OUT;
	ready[NO_PORT] = POLLERR;
	ready[EVENT] = POLLOUT;
	ready[CLOSED] = POLLNVAL;
	signal(SIGUSR1, count_signal);
}

/* Change what one of them is ready for. */
static void
waits_change(void)
{
	const unsigned int i = test_below(&seed, KINDS);
	unsigned int k;
	uint64_t n = 1;

	switch (i) {
	case PORT_A:
	case PORT_B:
		if ((ready[i] & IN) != 0) {
			ATF_REQUIRE_EQ(frames[i], port_take(&port[i]));
			ATF_REQUIRE_EQ(0, ioctl(port[i].fd, NIOCRXSYNC, NULL));
			frames[i] = 0;
			ready[i] &= ~IN;
		} else {
			/* To both. */
			port_send(&sender, 60, 1);
			for (k = 0; k < 2; k++) {
				frames[k]++;
				wait_until(ioctl(port[k].fd, NIOCRXSYNC,
				    NULL) == 0 && nm_ring_space(port[k].rx) ==
				    frames[k], "%u frames", frames[k]);
				ready[k] |= IN;
			}
		}
		ready[COPY_B] = ready[PORT_B];
		break;
	case PIPE:
		if ((ready[i] & OUT) != 0) {
			do
				while (!nm_ring_empty(ends[0].tx))
					port_send(&ends[0], 60, 2);
			while (poll_one(ends[0].fd, POLLOUT, 0) != 0);
			ready[i] &= ~OUT;
		} else {
			ATF_REQUIRE_EQ(0, ioctl(ends[1].fd, NIOCRXSYNC, NULL));
			(void)port_take(&ends[1]);
			ATF_REQUIRE_EQ(0, ioctl(ends[1].fd, NIOCRXSYNC, NULL));
			ready[i] |= OUT;
		}
		break;
	case EVENT:
		if ((ready[i] & POLLIN) != 0)
			ATF_REQUIRE_EQ(8, read(kinds[i], &n, 8));
		else
			ATF_REQUIRE_EQ(8, write(kinds[i], &n, 8));
		ready[i] ^= POLLIN;
		break;
	}
}

/* What of `events' is true. */
static short
expected(unsigned int i, short events)
{
	return (ready[i] & (events | POLLERR | POLLNVAL));
}

static short
some_events(void)
{
	static const short some[] = { POLLIN, POLLOUT, POLLIN | POLLOUT,
	    POLLRDNORM, POLLWRNORM, 0, POLLPRI, POLLIN | POLLRDNORM };

	return (some[test_below(&seed, nitems(some))]);
}

/* A time that is not over before something is ready, or is soon. */
static int
some_ms(int n)
{
	return (test_chance(&seed, 1, 2) ? 0 : n == 0 ? 2 :
	    test_chance(&seed, 1, 2) ? -2 : 30000);
}

static struct timespec *
limit(struct timespec *ts, int ms)
{
	ts->tv_sec = ms / 1000;
	ts->tv_nsec = ms % 1000 * 1000000;
	return (ms < 0 ? NULL : ts);
}

static void
waits_poll(void)
{
	/* More than need no memory. */
	struct pollfd pfd[64];
	unsigned int at[64], i, n;
	struct timespec ts;
	int count = 0, r, ms;

	n = 1 + test_below(&seed, test_chance(&seed, 1, 8) ? 64 : 6);
	for (i = 0; i < n; i++) {
		at[i] = test_below(&seed, KINDS);
		pfd[i] = (struct pollfd){ .fd = kinds[at[i]],
		    .events = some_events(), .revents = -1 };
		if (test_chance(&seed, 1, 8))
			pfd[i].fd = -1;
		count += pfd[i].fd != -1 && expected(at[i], pfd[i].events) != 0;
	}
	ms = some_ms(count);
	r = test_chance(&seed, 1, 2) ? poll(pfd, n, ms) :
	    ppoll(pfd, n, limit(&ts, ms), NULL);
	ATF_REQUIRE_EQ_MSG(count, r, "%d, not %d", r, count);
	for (i = 0; i < n; i++)
		ATF_REQUIRE_EQ_MSG(pfd[i].fd == -1 ? 0 :
		    expected(at[i], pfd[i].events), pfd[i].revents,
		    "%u, %#x: %#x", at[i], pfd[i].events, pfd[i].revents);
}

static void
waits_select(void)
{
	fd_set want[3], got[3];
	struct timeval tv;
	struct timespec ts;
	int bits = 0, ms, r;
	bool closed = false, on;
	unsigned int i, k;

	for (k = 0; k < 3; k++)
		FD_ZERO(&want[k]);
	for (i = 0; i < KINDS; i++)
		for (k = 0; k < 3; k++) {
			if (!test_chance(&seed, 1, 3) ||
			    (i == CLOSED && !test_chance(&seed, 1, 10)))
				continue;
			FD_SET(kinds[i], &want[k]);
			closed |= i == CLOSED;
			bits += k < 2 && (ready[i] & ((k == 0 ? IN : OUT) |
			    POLLERR)) != 0;
		}
	memcpy(got, want, sizeof(got));
	ms = some_ms(closed ? 1 : bits);
	limit(&ts, ms);
	tv = (struct timeval){ ts.tv_sec, ts.tv_nsec / 1000 };
	errno = 0;
	if (test_chance(&seed, 1, 2))
		r = select(FIRST + 2, &got[0], &got[1], &got[2],
		    ms < 0 ? NULL : &tv);
	else
		r = pselect(FIRST + 2, &got[0], &got[1], &got[2],
		    ms < 0 ? NULL : &ts, NULL);
	if (closed) {
		ATF_REQUIRE(r == -1 && errno == EBADF);
		return;
	}
	ATF_REQUIRE_EQ_MSG(bits, r, "%d, not %d", r, bits);
	for (i = 0; i < KINDS; i++)
		for (k = 0; k < 3; k++) {
			on = k < 2 && FD_ISSET(kinds[i], &want[k]) &&
			    (ready[i] & ((k == 0 ? IN : OUT) | POLLERR)) != 0;
			ATF_REQUIRE_EQ(on, FD_ISSET(kinds[i], &got[k]) != 0);
		}
}

/* What is in an epoll(7) descriptor. */
static struct {
	bool		in;
	bool		reported;	/* once, as asked for */
	struct epoll_event event;
} entries[CLOSED];

static void
waits_ctl(int epfd)
{
	static const int ops[] = { EPOLL_CTL_ADD, EPOLL_CTL_MOD,
	    EPOLL_CTL_DEL, 77 };
	const unsigned int i = test_below(&seed, KINDS);
	const int op = ops[test_chance(&seed, 1, 20) ? 3 :
	    test_below(&seed, 3)];
	struct epoll_event event = { .data.u64 = test_random(&seed) };
	int error, r;

	event.events = some_events() & ~POLLPRI;
	if (event.events != 0 && test_chance(&seed, 1, 3))
		event.events |= EPOLLONESHOT;
	if (i == CLOSED)
		error = EBADF;
	else if (op == 77)
		error = EINVAL;
	else if (op == EPOLL_CTL_ADD)
		error = entries[i].in ? EEXIST : 0;
	else
		error = entries[i].in ? 0 : ENOENT;
	/* Another number, another entry: the data says which. */
	event.data.u32 = i;
	errno = 0;
	r = epoll_ctl(epfd, op, kinds[i], &event);
	ATF_REQUIRE_EQ_MSG(error, r == -1 ? errno : 0, "%d of %u: %s", op, i,
	    strerror(errno));
	if (error != 0)
		return;
	entries[i].in = op != EPOLL_CTL_DEL;
	entries[i].reported = false;
	entries[i].event = event;
}

static void
waits_epoll(int epfd)
{
	struct epoll_event got[KINDS];
	uint32_t events[KINDS] = { 0 };
	struct timespec ts;
	int count = 0, i, max, ms, r;

	for (i = 0; i < CLOSED; i++) {
		if (!entries[i].in || entries[i].reported)
			continue;
		events[i] = (uint32_t)expected(i, entries[i].event.events);
		count += events[i] != 0;
	}
	max = 1 + test_below(&seed, KINDS);
	ms = some_ms(count);
	switch (test_below(&seed, 3)) {
	case 0:
		r = epoll_wait(epfd, got, max, ms);
		break;
	case 1:
		r = epoll_pwait(epfd, got, max, ms, NULL);
		break;
	default:
		r = epoll_pwait2(epfd, got, max, limit(&ts, ms), NULL);
	}
	ATF_REQUIRE_EQ_MSG(MIN(count, max), r, "%d of %d", r, count);
	while (r-- > 0) {
		i = (int)got[r].data.u32;
		/* Once. */
		ATF_REQUIRE_EQ_MSG(events[i], got[r].events, "%d: %#x", i,
		    got[r].events);
		ATF_REQUIRE(events[i] != 0);
		events[i] = 0;
		entries[i].reported = (entries[i].event.events &
		    EPOLLONESHOT) != 0;
	}
}

/* With little space all come in turn. */
static void
waits_turns(int epfd)
{
	struct epoll_event event, got;
	uint32_t seen = 0, want = 0;
	unsigned int i;

	for (i = 0; i < CLOSED; i++) {
		event.events = EPOLLOUT;
		event.data.u32 = i;
		ATF_REQUIRE_EQ(0, epoll_ctl(epfd, entries[i].in ?
		    EPOLL_CTL_MOD : EPOLL_CTL_ADD, kinds[i], &event));
		want |= ready[i] & (OUT | POLLERR) ? 1u << i : 0;
	}
	for (i = 0; i < 4 * KINDS; i++) {
		ATF_REQUIRE_EQ(1, epoll_wait(epfd, &got, 1, -1));
		seen |= 1u << got.data.u32;
	}
	ATF_CHECK_EQ(want, seen);
}

PID_TEST(waits, "Each call that waits says what descriptors of all kinds are "
    "ready for")
{
	struct epoll_event event, *volatile none = NULL;
	unsigned int i;
	int epfd;

	waits_begin();
	epfd = epoll_create1(0);
	for (i = 0; i < 6000; i++)
		switch (test_below(&seed, 6)) {
		case 0:
			waits_change();
			break;
		case 1:
			waits_poll();
			break;
		case 2:
			waits_select();
			break;
		case 3:
			waits_ctl(epfd);
			break;
		default:
			waits_epoll(epfd);
		}
	waits_turns(epfd);
	/* A number that is closed is in it no longer. */
	close(kinds[COPY_B]);
	close(kinds[NO_PORT]);
	ready[COPY_B] = ready[NO_PORT] = 0;
	for (i = 0; i < CLOSED; i++)
		entries[i].in = i != COPY_B && i != NO_PORT;
	for (i = 0; i < CLOSED; i++)
		entries[i].event.events = EPOLLOUT;
	waits_epoll(epfd);
	kinds[NO_PORT] = device();
	ATF_CHECK_ERRNO(ENOENT, epoll_ctl(epfd, EPOLL_CTL_DEL, kinds[NO_PORT],
	    NULL) == -1);
	ATF_CHECK_ERRNO(EFAULT, epoll_ctl(epfd, EPOLL_CTL_ADD, kinds[NO_PORT],
	    NULL) == -1);
	ATF_CHECK_ERRNO(EINVAL, epoll_wait(epfd, &event, 0, 0) == -1);
	ATF_CHECK_ERRNO(EFAULT, epoll_wait(epfd, none, 1, 0) == -1);
	close(epfd);
	ATF_CHECK_ERRNO(EBADF, epoll_ctl(epfd, EPOLL_CTL_DEL, kinds[PORT_A],
	    NULL) == -1);
	ATF_CHECK_ERRNO(EBADF, epoll_wait(epfd, &event, 1, 0) == -1);
	/* Nor is it in another one. */
	ATF_REQUIRE_EQ(epfd, epoll_create1(0));
	ATF_CHECK_ERRNO(ENOENT, epoll_ctl(epfd, EPOLL_CTL_DEL, kinds[PORT_A],
	    NULL) == -1);
	ATF_REQUIRE_EQ(epfd, dup2(kinds[EVENT], epfd));
	ATF_CHECK_ERRNO(EINVAL, epoll_ctl(epfd, EPOLL_CTL_DEL, kinds[PORT_A],
	    NULL) == -1);
}

/* Wait with a call, for nothing that is ready. */
static int
wait_by(unsigned int call, const struct timespec *ts, const sigset_t *mask)
{
	/* The calls with milliseconds have no longer times. */
	const int fd = kinds[PORT_A], ms = ts == NULL || ts->tv_sec > 1000 ?
	    -1 : (int)(ts->tv_sec * 1000 + ts->tv_nsec / 1000000);
	struct epoll_event event = { .events = EPOLLIN }, got;
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	struct timeval tv;
	fd_set set;
	static int epfd = -1;

	if (epfd == -1) {
		epfd = epoll_create1(0);
		ATF_REQUIRE_EQ(0, epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event));
	}
	FD_ZERO(&set);
	FD_SET(fd, &set);
	if (ts != NULL)
		tv = (struct timeval){ ts->tv_sec, ts->tv_nsec / 1000 };
	switch (call) {
	case 0:
		return (ppoll(&pfd, 1, ts, mask));
	case 1:
		return (pselect(fd + 1, &set, NULL, NULL, ts, mask));
	case 2:
		return (epoll_pwait2(epfd, &got, 1, ts, mask));
	case 3:
		return (epoll_pwait(epfd, &got, 1, ms, mask));
	case 4:
		return (poll(&pfd, 1, ms));
	case 5:
		return (select(fd + 1, &set, NULL, NULL, ts != NULL ? &tv :
		    NULL));
	default:
		return (epoll_wait(epfd, &got, 1, ms));
	}
}

static double
seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((double)ts.tv_sec + (double)ts.tv_nsec / 1e9);
}

PID_TEST(limits, "Each call that waits ends in time, or with a signal that its "
    "mask lets pass")
{
	const struct timespec times[] = { { 0, 30000000 }, { 0, 999000000 },
	    { 1, 2000000 } };
	const struct timespec wrong[] = { { -1, 0 }, { 0, -1 },
	    { 0, 1000000000 } }, ever = { INT64_MAX, 0 },
	    long_time = { 30, 0 };
	struct timeval tv = { 0, 1030000 };
	fd_set set;
	sigset_t none, usr1;
	unsigned int call, i;
	pthread_t thread;
	double start;

	waits_begin();
	sigemptyset(&none);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	ATF_REQUIRE_EQ(0, sigprocmask(SIG_BLOCK, &usr1, NULL));
	/* Without a mask none is let pass. */
	raise(SIGUSR1);
	for (call = 0; call < 7; call++) {
		start = seconds();
		ATF_CHECK_EQ(0, wait_by(call, &times[call % 3], NULL));
		ATF_CHECK(seconds() - start >= (double)times[call % 3].tv_sec +
		    (double)times[call % 3].tv_nsec / 1e9);
	}
	for (call = 0; call < 4; call++) {
		raise(SIGUSR1);
		ATF_CHECK_ERRNO(EINTR, wait_by(call, &long_time, &none) == -1);
		ATF_CHECK_EQ((sig_atomic_t)call + 1, signals);
	}
	for (call = 0; call < 3; call++) {
		for (i = 0; call < 2 && i < nitems(wrong); i++)
			ATF_CHECK_ERRNO(EINVAL, wait_by(call, &wrong[i],
			    NULL) == -1);
		thread = later(send_later, &sender);
		ATF_CHECK_EQ(1, wait_by(call, &ever, &none));
		ATF_REQUIRE_EQ(0, pthread_join(thread, NULL));
		(void)port_take(&port[0]);
		ATF_REQUIRE_EQ(0, ioctl(port[0].fd, NIOCRXSYNC, NULL));
	}
	/* What is left of select(2)'s limit. */
	FD_ZERO(&set);
	FD_SET(kinds[PORT_A], &set);
	start = seconds();
	ATF_CHECK_EQ(0, select(FIRST, &set, NULL, NULL, &tv));
	ATF_CHECK(seconds() - start >= 1.03);
	ATF_CHECK(tv.tv_sec == 0 && tv.tv_usec == 0);
	FD_SET(kinds[PORT_A], &set);
	tv.tv_sec = 30;
	ATF_CHECK_EQ(1, select(FIRST, NULL, &set, NULL, &tv));
	ATF_CHECK(tv.tv_sec < 30 && tv.tv_sec > 20 && tv.tv_usec < 1000000);
	tv.tv_sec = -1;
	ATF_CHECK_ERRNO(EINVAL, select(FIRST, &set, NULL, NULL, &tv) == -1);
}

static atomic_bool ends_now;

/* Wait, again and again, for a number that others change. */
static void *
waiter(void *arg __unused)
{
	/* More than need no memory, with the sockets of a port. */
	struct pollfd pfd[20];
	unsigned int i;
	int r;

	while (!ends_now) {
		for (i = 0; i < nitems(pfd); i++)
			pfd[i] = (struct pollfd){ .fd = i == 0 ?
			    kinds[PORT_A] : FIRST + 2, .events = POLLIN };
		r = poll(pfd, nitems(pfd), 1);
		ATF_REQUIRE(r >= 0 && r <= (int)nitems(pfd));
		for (i = 1; i < nitems(pfd); i++)
			ATF_REQUIRE((pfd[i].revents & ~(IN | POLLNVAL |
			    POLLERR | POLLHUP)) == 0);
	}
	return (NULL);
}

/* The same with epoll(7). */
static void *
epoll_waiter(void *epfd)
{
	struct epoll_event ev[2];

	while (!ends_now)
		ATF_REQUIRE(epoll_wait(*(int *)epfd, ev, 2, 1) >= 0);
	return (NULL);
}

PID_TEST(meanwhile, "What is waited for is opened, registered, with other "
    "numbers of rings, and closed meanwhile")
{
	struct epoll_event event = { .events = EPOLLIN };
	struct nmreq_register reg;
	pthread_t thread[2];
	unsigned int i;
	int epfd = epoll_create1(EPOLL_CLOEXEC), fd;

	waits_begin();
	thread[0] = later(waiter, NULL);
	thread[1] = later(epoll_waiter, &epfd);
	for (i = 0; i < 500; i++) {
		fd = device();
		ATF_REQUIRE_EQ(FIRST + 2, dup2(fd, FIRST + 2));
		ATF_REQUIRE_EQ(0, close(fd));
		reg = (struct nmreq_register){ .nr_mode = NR_REG_ALL_NIC,
		    .nr_tx_slots = 4, .nr_rx_slots = 4,
		    .nr_tx_rings = i % 3 * 7 + 1 };
		if (test_chance(&seed, 1, 2))
			event.events ^= EPOLLONESHOT | EPOLLOUT;
		ATF_REQUIRE_EQ(0, epoll_ctl(epfd, EPOLL_CTL_ADD, FIRST + 2,
		    &event));
		/* Until valed and a wait have let go of its port before. */
		wait_until(request(FIRST + 2, NETMAP_REQ_REGISTER, "vale0:x",
		    &reg) == 0, "not registered: %u", i);
		port_send(&sender, 60, 3);
		if (test_chance(&seed, 1, 2))
			ATF_REQUIRE_EQ(FIRST + 2, dup2(kinds[EVENT],
			    FIRST + 2));
		ATF_REQUIRE_EQ(0, close(FIRST + 2));
	}
	ends_now = true;
	for (i = 0; i < 2; i++)
		ATF_REQUIRE_EQ(0, pthread_join(thread[i], NULL));
}

#if !defined(__has_feature) || !__has_feature(address_sanitizer)
/* Memory that the library asks for, of which one request fails. */
void	*__libc_calloc(size_t, size_t);
void	*__libc_malloc(size_t);
void	*__libc_realloc(void *, size_t);

static char	*library[2];		/* its code */
static unsigned int asked, fails;	/* from 1; 0: none */

static bool
must_fail(const void *from)
{
	return (from >= (void *)library[0] && from < (void *)library[1] &&
	    ++asked == fails);
}

#define	ALLOC(name, params, args)					\
	void *name params;						\
	void *								\
	name params							\
	{								\
		if (must_fail(__builtin_return_address(0))) {		\
			errno = ENOMEM;					\
			return (NULL);					\
		}							\
		return (__libc_##name args);				\
	}

ALLOC(calloc, (size_t n, size_t size), (n, size))
ALLOC(malloc, (size_t size), (size))
ALLOC(realloc, (void *p, size_t size), (p, size))

/* Find the library's code. */
static void
find_library(void)
{
	char line[512], perms[5];
	void *start, *end;
	FILE *f = fopen("/proc/self/maps", "r");

	ATF_REQUIRE(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL)
		if (strstr(line, "libnetmap-run") != NULL &&
		    sscanf(line, "%p-%p %4s", &start, &end, perms) == 3 &&
		    perms[2] == 'x') {
			library[0] = start;
			library[1] = end;
		}
	fclose(f);
	ATF_REQUIRE(library[0] != NULL);
}

/*
 * A program that uses all that the library has memory or descriptors for, and
 * ends each part that fails.  Returns the first errno, or 0.
 */
static int
uses_all(void)
{
	struct nmreq_register reg = { .nr_mode = NR_REG_ALL_NIC,
	    .nr_tx_rings = NRINGS, .nr_rx_rings = NRINGS,
	    .nr_extra_bufs = 2 };
	struct nmreq_register one = { .nr_mode = NR_REG_ONE_NIC,
	    .nr_ringid = 1 };
	struct nmreq_register pipe = { .nr_mode = NR_REG_ALL_NIC };
	struct epoll_event event = { .events = EPOLLOUT };
	struct timespec now = { 0, 0 };
	struct pollfd pfd[60];
	int epfd = epoll_create1(0), error = 0, fd[4], i, r;
	void *memory = MAP_FAILED;
	fd_set set;

#define	TRY(expr)	do {						\
	errno = 0;							\
	if ((expr) == -1 && error == 0)					\
		error = errno;						\
} while (0)
#define	REGISTER(n, name, reg)						\
	(r = request(fd[n], NETMAP_REQ_REGISTER, name, reg), errno = r,	\
	    r == 0 ? 0 : -1)
	for (i = 0; i < 4; i++)
		TRY(fd[i] = open("/dev/netmap", O_RDWR));
	TRY(REGISTER(0, "vale0:x", &reg));
	TRY(REGISTER(1, "vale0:x", &one));
	if (reg.nr_memsize != 0)
		memory = mmap(NULL, reg.nr_memsize, PROT_READ | PROT_WRITE,
		    MAP_SHARED, fd[0], 0);
	TRY(REGISTER(2, "vale0:x{1", &pipe));
	for (i = 0; i < 60; i++)
		pfd[i] = (struct pollfd){ .fd = fd[i % 3], .events = POLLOUT };
	TRY(i = dup(fd[0]));
	if (i != -1)
		close(i);
	TRY(poll(pfd, 60, 0));
	FD_ZERO(&set);
	if (fd[0] != -1)
		FD_SET(fd[0], &set);
	TRY(pselect(FIRST, NULL, &set, NULL, &now, NULL));
	TRY(epoll_ctl(epfd, EPOLL_CTL_ADD, fd[0], &event));
	TRY(epoll_wait(epfd, &event, 1, 0));
	for (i = 0; i < 4; i++)
		if (fd[i] != -1)
			ATF_CHECK_EQ(0, close(fd[i]));
	if (memory != MAP_FAILED)
		munmap(memory, reg.nr_memsize);
	if (epfd != -1)
		close(epfd);
	return (error);
}

PID_TEST(failures, "Each descriptor that there is none for, and each request "
    "for memory that fails, is an error, and leaves nothing behind")
{
	struct rlimit all, few;
	unsigned int errors[2] = { 0, 0 }, maps;
	int error, lowest;

	begin(1);
	find_library();
	error = uses_all();
	ATF_REQUIRE_MSG(error == 0, "%s", strerror(error));
	maps = mappings();
	ATF_REQUIRE_EQ(0, getrlimit(RLIMIT_NOFILE, &all));
	for (lowest = 0; is_open(lowest); lowest++)
		continue;
	few = all;
	for (fails = 0, few.rlim_cur = lowest + 1;; few.rlim_cur++) {
		ATF_REQUIRE_EQ(0, setrlimit(RLIMIT_NOFILE, &few));
		error = uses_all();
		ATF_REQUIRE_EQ(0, setrlimit(RLIMIT_NOFILE, &all));
		ATF_CHECK_EQ_MSG(0, own(), "%ju: %u", (uintmax_t)few.rlim_cur,
		    own());
		ATF_CHECK_EQ(maps, mappings());
		wait_until(ports() == 0, "%u ports", ports());
		if (error == 0)
			break;
		errors[0]++;
	}
	for (fails = 1;; fails++) {
		asked = 0;
		error = uses_all();
		ATF_CHECK_EQ_MSG(0, own(), "%u: %u", fails, own());
		ATF_CHECK_EQ(maps, mappings());
		wait_until(ports() == 0, "%u ports", ports());
		if (asked < fails)
			break;
		ATF_CHECK_EQ_MSG(ENOMEM, error, "%u: %s", fails,
		    strerror(error));
		errors[1]++;
	}
	fails = 0;
	ATF_CHECK_EQ(0, uses_all());
	ATF_CHECK_MSG(errors[0] > 10 && errors[1] > 8, "%u, %u", errors[0],
	    errors[1]);
}
#endif

TEST_PROGRAM
