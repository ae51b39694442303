/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* See pass_fds.h. */

#include <sys/param.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <netinet/in.h>

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ops.h"
#include "pass_fds.h"

#define	PASS_MEMORY	0x10000		/* bytes */
#define	PASS_MAX	64		/* kinds; descriptors of a message */

static int fds[PASS_MAX];
static unsigned int nfds;

static void
add(int fd)
{
	INVARIANT(nfds < PASS_MAX);
	if (fd == -1)
		fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	INVARIANT(fd != -1);
	fds[nfds++] = fd;
}

static void
add_pair(int type)
{
	int s[2];

	INVARIANT(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, s) == 0);
	add(s[0]);
	add(s[1]);
}

/* A socket that listens at an address of the kernel's choice. */
static int
listener(int family, int type)
{
	struct sockaddr_storage ss = { .ss_family = family };
	const socklen_t len = family == AF_UNIX ? sizeof(sa_family_t) :
	    sizeof(struct sockaddr_in);
	int s = socket(family, type | SOCK_CLOEXEC, 0);

	if (family == AF_INET)
		((struct sockaddr_in *)(void *)&ss)->sin_addr.s_addr =
		    htonl(INADDR_LOOPBACK);
	if (s != -1 && (bind(s, (void *)&ss, len) == -1 ||
	    listen(s, 1) == -1)) {
		close(s);
		return (-1);
	}
	return (s);
}

/* One that is connected, with data that nobody reads, and SO_LINGER. */
static int
lingering(void)
{
	const struct linger linger = { 1, 1000 };
	struct sockaddr_in sin;
	socklen_t len = sizeof(sin);
	int l = listener(AF_INET, SOCK_STREAM);
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (l == -1 || getsockname(l, (void *)&sin, &len) == -1 ||
	    connect(s, (void *)&sin, len) == -1)
		return (-1);
	add(l);
	(void)setsockopt(s, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	(void)send(s, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	return (s);
}

static int
memory(int seals)
{
	int fd = memfd_create("pass", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	INVARIANT(fd != -1 && ftruncate(fd, PASS_MEMORY) == 0);
	INVARIANT(fcntl(fd, F_ADD_SEALS, seals) == 0);
	return (fd);
}

static void
add_sockets(void)
{
	static const struct {
		int	family, type, protocol;
	} kinds[] = {
		{ AF_UNIX, SOCK_STREAM, 0 },
		{ AF_INET, SOCK_STREAM, 0 },
		{ AF_INET, SOCK_DGRAM, 0 },
		{ AF_INET6, SOCK_DGRAM, 0 },
		{ AF_PACKET, SOCK_RAW, 0 },
		{ AF_PACKET, SOCK_DGRAM, 0 },
		{ AF_NETLINK, SOCK_RAW, 0 },
		{ AF_NETLINK, SOCK_RAW, 16 },	/* NETLINK_GENERIC */
		{ AF_XDP, SOCK_RAW, 0 },
		{ AF_VSOCK, SOCK_STREAM, 0 },
	};
	unsigned int i;

	add_pair(SOCK_STREAM);
	add_pair(SOCK_SEQPACKET);
	add_pair(SOCK_DGRAM);
	for (i = 0; i < nitems(kinds); i++)
		add(socket(kinds[i].family, kinds[i].type | SOCK_CLOEXEC,
		    kinds[i].protocol));
	add(listener(AF_UNIX, SOCK_STREAM));
	add(listener(AF_UNIX, SOCK_SEQPACKET));
	add(listener(AF_INET, SOCK_STREAM));
	add(lingering());
}

static void
add_all(void)
{
	sigset_t set;
	int p[2];

	add_sockets();
	add(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	add(eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE));
	add(memory(F_SEAL_SHRINK | F_SEAL_GROW));
	add(memory(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL));
	add(memory(F_SEAL_GROW));
	add(memory(0));
	INVARIANT(pipe2(p, O_CLOEXEC) == 0);
	add(p[0]);
	add(p[1]);
	add(open("/dev/null", O_RDWR | O_CLOEXEC));
	add(open("/dev/zero", O_RDWR | O_CLOEXEC));
	add(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	add(open("/", O_PATH | O_CLOEXEC));
	add(open("/proc/self/status", O_RDONLY | O_CLOEXEC));
	add(epoll_create1(EPOLL_CLOEXEC));
	add(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
	add(inotify_init1(IN_CLOEXEC));
	sigemptyset(&set);
	add(signalfd(-1, &set, SFD_CLOEXEC));
}

int
pass_fd(unsigned int n)
{
	if (nfds == 0)
		add_all();
	return (fds[n % nfds]);
}

/* Append a control message. */
static void
append(struct msghdr *msg, struct cmsghdr **c, int type, const void *data,
    size_t len)
{
	*c = *c == NULL ? CMSG_FIRSTHDR(msg) : CMSG_NXTHDR(msg, *c);
	INVARIANT(*c != NULL);
	(*c)->cmsg_level = SOL_SOCKET;
	(*c)->cmsg_type = type;
	(*c)->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(*c), data, len);
}

long
pass_send(int s, const void *data, size_t len, const int *rights,
    unsigned int n, unsigned int messages)
{
	union {
		struct cmsghdr	align;
		char		space[CMSG_SPACE(PASS_MAX * sizeof(int)) +
				    CMSG_SPACE(sizeof(struct ucred))];
	} control;
	const struct ucred cred = { getpid(), getuid(), getgid() };
	struct iovec iov = { (void *)(uintptr_t)data, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = &control };
	struct cmsghdr *c = NULL;

	if (n == 0)
		messages &= ~(unsigned int)PASS_RIGHTS;
	memset(&control, 0, sizeof(control));
	if ((messages & PASS_RIGHTS) != 0)
		msg.msg_controllen += CMSG_SPACE(n * sizeof(int));
	if ((messages & PASS_CREDS) != 0)
		msg.msg_controllen += CMSG_SPACE(sizeof(cred));
	if (msg.msg_controllen == 0)
		msg.msg_control = NULL;
	if ((messages & PASS_CREDS) != 0 && (messages & PASS_FIRST) != 0)
		append(&msg, &c, SCM_CREDENTIALS, &cred, sizeof(cred));
	if ((messages & PASS_RIGHTS) != 0)
		append(&msg, &c, SCM_RIGHTS, rights, n * sizeof(int));
	if ((messages & PASS_CREDS) != 0 && (messages & PASS_FIRST) == 0)
		append(&msg, &c, SCM_CREDENTIALS, &cred, sizeof(cred));
	return (sendmsg(s, &msg, MSG_NOSIGNAL | MSG_DONTWAIT));
}
