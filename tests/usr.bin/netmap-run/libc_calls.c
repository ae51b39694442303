/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A netmap program that makes each call by every name that the C library has
 * for it, and by those that the compiler's flags choose.  It needs nothing but
 * netmap's headers, so that it is compiled with any flags, and runs where the
 * packages are installed.  Exits with 0, or says what is wrong.
 *
 * A name that does not reach the library finds no /dev/netmap, keeps the port
 * open, or waits until the alarm.
 */

#ifndef _GNU_SOURCE
#define	_GNU_SOURCE
#endif

#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>

#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <net/netmap.h>
#define	NETMAP_WITH_LIBS
#include <net/netmap_user.h>

/* Names that headers declare only with some flags, or not at all. */
int	__open(const char *, int, ...);
int	__open64(const char *, int, ...);
int	__open_2(const char *, int);
int	__open64_2(const char *, int);
int	__openat_2(int, const char *, int);
int	__openat64_2(int, const char *, int);
int	__close(int);
int	__dup2(int, int);
int	__fcntl(int, int, ...);
int	__poll(struct pollfd *, nfds_t, int);
int	__poll_chk(struct pollfd *, nfds_t, int, size_t);
int	__ppoll_chk(struct pollfd *, nfds_t, const struct timespec *,
	    const sigset_t *, size_t);
int	__select(int, fd_set *, fd_set *, fd_set *, struct timeval *);

struct port {
	int			 fd;
	struct nmreq_register	 reg;
	char			*memory;
	struct netmap_ring	*tx;
	struct netmap_ring	*rx;
};

#define	NETMAP		"/dev/netmap"
/* Free descriptors, for dup2(2) and its like. */
#define	COPY		900

/* What the compiler must not know, or it does not check. */
static volatile nfds_t one = 1;
static volatile int rdwr = O_RDWR;

/* What is waited for. */
static struct pollfd pfd[1];
static fd_set fds;

static void
port_register(struct port *p, int fd, const char *name)
{
	struct nmreq_header hdr = { .nr_version = NETMAP_API,
	    .nr_reqtype = NETMAP_REQ_REGISTER,
	    .nr_body = (uintptr_t)&p->reg };

	memset(&p->reg, 0, sizeof(p->reg));
	p->reg.nr_mode = NR_REG_ALL_NIC;
	p->fd = fd;
	strcpy(hdr.nr_name, name);
	if (fd == -1 || ioctl(fd, NIOCCTRL, &hdr) == -1)
		err(1, "%s", name);
}

static void
port_map(struct port *p, char *memory)
{
	struct netmap_if *nifp = (void *)(memory + p->reg.nr_offset);

	if (memory == MAP_FAILED)
		err(1, "mmap");
	p->memory = memory;
	p->tx = NETMAP_TXRING(nifp, 0);
	p->rx = NETMAP_RXRING(nifp, 0);
}

/* Open with a name of open(2), and close with one of close(2). */
#define	OPEN(call) do {							\
	struct port _p;							\
									\
	warnx("%s", #call);						\
	port_register(&_p, call, "vale0:x");				\
	if (close(_p.fd) == -1)						\
		err(1, "close");					\
} while (0)

/* The port is free if the library has seen the last descriptor go. */
#define	CLOSE(call) do {						\
	struct port p;							\
									\
	warnx("%s", #call);						\
	port_register(&p, open(NETMAP, O_RDWR), "vale0:x");		\
	call;								\
	if (fcntl(p.fd, F_GETFD) != -1)					\
		errx(1, "%s: still open", #call);			\
} while (0)

/* The copy has the port when the first descriptor is closed. */
#define	COPIED(call) do {						\
	struct port p;							\
	int copy;							\
									\
	warnx("%s", #call);						\
	port_register(&p, open(NETMAP, O_RDWR), "vale0:x");		\
	copy = call;							\
	if (copy == -1 || close(p.fd) == -1 ||				\
	    ioctl(copy, NIOCRXSYNC, NULL) == -1 || close(copy) == -1)	\
		err(1, "%s", #call);					\
} while (0)

/* A mapping has the rings. */
#define	MAPPED(call) do {						\
	struct port p;							\
									\
	warnx("%s", #call);						\
	port_register(&p, open(NETMAP, O_RDWR), "vale0:x");		\
	port_map(&p, call);						\
	if (p.tx->num_slots != p.reg.nr_tx_slots)			\
		errx(1, "%s: %u slots", #call, p.tx->num_slots);	\
	if (munmap(p.memory, p.reg.nr_memsize) == -1 ||			\
	    close(p.fd) == -1)						\
		err(1, "%s", #call);					\
} while (0)

static void
send_one(struct port *p)
{
	struct netmap_slot *slot = &p->tx->slot[p->tx->head];

	memset(NETMAP_BUF(p->tx, slot->buf_idx), 0xff, 60);
	slot->len = 60;
	p->tx->head = p->tx->cur = nm_ring_next(p->tx, p->tx->head);
	if (ioctl(p->fd, NIOCTXSYNC, NULL) == -1)
		err(1, "NIOCTXSYNC");
}

/* The wait has synced the ring: the frame is there.  Take it. */
static void
take_one(struct port *p, const char *call)
{
	if (nm_ring_space(p->rx) != 1)
		errx(1, "%s: %u frames", call, nm_ring_space(p->rx));
	p->rx->head = p->rx->cur = p->rx->tail;
}

/* A wait without a time limit, for a frame from one port to the other. */
#define	WAIT(call, is) do {						\
	int _r;								\
									\
	warnx("%s", #call);						\
	pfd[0] = (struct pollfd){ .fd = b->fd, .events = POLLIN };	\
	FD_ZERO(&fds);							\
	FD_SET(b->fd, &fds);						\
	send_one(a);							\
	_r = call;							\
	if (_r != 1 || !(is))						\
		errx(1, "%s: %d", #call, _r);				\
	take_one(b, #call);						\
} while (0)

static void
opens(void)
{
	OPEN(open(NETMAP, O_RDWR));
	OPEN(open(NETMAP, rdwr));
	OPEN(__open(NETMAP, O_RDWR));
	OPEN(__open_2(NETMAP, O_RDWR));
	OPEN(open64(NETMAP, rdwr));
	OPEN(__open64(NETMAP, O_RDWR));
	OPEN(__open64_2(NETMAP, O_RDWR));
	OPEN(openat(AT_FDCWD, NETMAP, rdwr));
	OPEN(__openat_2(AT_FDCWD, NETMAP, O_RDWR));
	OPEN(openat64(AT_FDCWD, NETMAP, rdwr));
	OPEN(__openat64_2(AT_FDCWD, NETMAP, O_RDWR));
}

static void
closes(void)
{
	CLOSE(close(p.fd));
	CLOSE(__close(p.fd));
	CLOSE(close_range(p.fd, p.fd, 0));
	CLOSE(closefrom(p.fd));
	CLOSE(dup2(0, p.fd); __close(p.fd));
	CLOSE(__dup2(0, p.fd); __close(p.fd));
	CLOSE(dup3(0, p.fd, O_CLOEXEC); __close(p.fd));
}

static void
copies(void)
{
	COPIED(dup(p.fd));
	COPIED(dup2(p.fd, COPY));
	COPIED(__dup2(p.fd, COPY));
	COPIED(dup3(p.fd, COPY, O_CLOEXEC));
	COPIED(fcntl(p.fd, F_DUPFD, COPY));
	COPIED(fcntl64(p.fd, F_DUPFD_CLOEXEC, COPY));
	COPIED(__fcntl(p.fd, F_DUPFD, COPY));
}

static void
maps(void)
{
	MAPPED(mmap(NULL, p.reg.nr_memsize, PROT_READ | PROT_WRITE,
	    MAP_SHARED, p.fd, 0));
	MAPPED(mmap64(NULL, p.reg.nr_memsize, PROT_READ | PROT_WRITE,
	    MAP_SHARED, p.fd, 0));
}

static void
polls(struct port *a, struct port *b)
{
	WAIT(poll(pfd, one, -1), pfd[0].revents == POLLIN);
	WAIT(__poll(pfd, 1, -1), pfd[0].revents == POLLIN);
	WAIT(__poll_chk(pfd, 1, -1, sizeof(pfd)), pfd[0].revents == POLLIN);
	WAIT(ppoll(pfd, one, NULL, NULL), pfd[0].revents == POLLIN);
	WAIT(__ppoll_chk(pfd, 1, NULL, NULL, sizeof(pfd)),
	    pfd[0].revents == POLLIN);
	WAIT(select(b->fd + 1, &fds, NULL, NULL, NULL), FD_ISSET(b->fd, &fds));
	WAIT(__select(b->fd + 1, &fds, NULL, NULL, NULL),
	    FD_ISSET(b->fd, &fds));
	WAIT(pselect(b->fd + 1, &fds, NULL, NULL, NULL, NULL),
	    FD_ISSET(b->fd, &fds));
}

static void
epolls(struct port *a, struct port *b)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = 77 };
	int ep = epoll_create1(EPOLL_CLOEXEC);
	if (ep == -1 || epoll_ctl(ep, EPOLL_CTL_ADD, b->fd, &ev) == -1)
		err(1, "epoll");
	WAIT(epoll_wait(ep, &ev, 1, -1), ev.data.fd == 77);
	WAIT(epoll_pwait(ep, &ev, 1, -1, NULL), ev.data.fd == 77);
	WAIT(epoll_pwait2(ep, &ev, 1, NULL, NULL), ev.data.fd == 77);
	close(ep);
}

/* What libc itself stops: `name' is one that ends the program. */
static void
ends(const char *name)
{
	const int create = O_CREAT | O_WRONLY;

	if (strcmp(name, "open") == 0)
		__open_2("created", create);
	else if (strcmp(name, "open64") == 0)
		__open64_2("created", create);
	else if (strcmp(name, "openat") == 0)
		__openat_2(AT_FDCWD, "created", create);
	else if (strcmp(name, "openat64") == 0)
		__openat64_2(AT_FDCWD, "created", create);
	else if (strcmp(name, "poll") == 0)
		__poll_chk(pfd, 1, 0, sizeof(pfd) - 1);
	else if (strcmp(name, "ppoll") == 0)
		__ppoll_chk(pfd, 1, NULL, NULL, sizeof(pfd) - 1);
}

int
main(int argc, char **argv)
{
	struct port a, b;

	if (argc == 2) {
		ends(argv[1]);
		return (2);
	}
	alarm(120);
	opens();
	closes();
	copies();
	maps();
	port_register(&a, open(NETMAP, O_RDWR), "vale0:a");
	port_register(&b, open(NETMAP, O_RDWR), "vale0:b");
	port_map(&a, mmap(NULL, a.reg.nr_memsize, PROT_READ | PROT_WRITE,
	    MAP_SHARED, a.fd, 0));
	port_map(&b, mmap(NULL, b.reg.nr_memsize, PROT_READ | PROT_WRITE,
	    MAP_SHARED, b.fd, 0));
	polls(&a, &b);
	epolls(&a, &b);
	return (0);
}
