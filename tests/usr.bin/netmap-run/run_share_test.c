/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Descriptors that come from another process: which are taken for those of
 * /dev/netmap.
 */

#include <sys/param.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include <atf-c.h>

#include "netmap_run.h"
#include "run_said.h"
#include "test.h"

_Atomic(struct run_desc *) run_fds[RUN_FDS];
atomic_uint run_count;
_Thread_local unsigned int run_held;

void
run_desc_free(struct run_desc *rd __unused)
{
	atf_tc_fail("nothing is freed");
}

/* The socket that is looked at, and what fails. */
static const struct sock {
	int		domain;
	int		type;
	bool		connected;
	struct ucred	peer;
	int		fails;		/* the option that does, */
	int		is_short;	/* or that has less in it */
} right = { AF_UNIX, SOCK_SEQPACKET, true, { 10, 20, 30 }, -1, -1 };
static struct sock sock;

/* Of the connection that is made to compare it. */
static struct ucred valed = { 10, 20, 30 };
static int	own_fails = -1;
static int	connect_error;
static int	copy_error, memory_error, share_error;

static struct run_desc desc, other;

int	__wrap_getsockopt(int, int, int, void *, socklen_t *);
int	__wrap_getpeername(int, struct sockaddr *, socklen_t *);

int
__wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *len)
{
	const void *is;
	socklen_t size = sizeof(int);

	ATF_CHECK(fd == 9 || (fd == 8 && option == SO_PEERCRED));
	ATF_CHECK_EQ(SOL_SOCKET, level);
	if (option == (fd == 8 ? own_fails : sock.fails)) {
		/* As if it had been there. */
		memcpy(value, option == SO_PEERCRED ? (void *)&valed :
		    option == SO_TYPE ? (void *)&right.type :
		    (void *)&right.domain, *len);
		errno = ENOTSOCK;
		return (-1);
	}
	switch (option) {
	case SO_DOMAIN:
		is = &sock.domain;
		break;
	case SO_TYPE:
		is = &sock.type;
		break;
	default:
		ATF_CHECK_EQ(SO_PEERCRED, option);
		is = fd == 8 ? &valed : &sock.peer;
		size = sizeof(struct ucred);
	}
	ATF_CHECK_EQ(size, *len);
	memcpy(value, is, size);
	if (fd == 9 && option == sock.is_short)
		*len = size - 1;
	return (0);
}

int
__wrap_getpeername(int fd, struct sockaddr *sa, socklen_t *len)
{
	ATF_CHECK_EQ(9, fd);
	ATF_CHECK(sa != NULL);
	ATF_CHECK_EQ(sizeof(struct sockaddr_storage), *len);
	errno = ENOTCONN;
	return (sock.connected ? 0 : -1);
}

static int
the_fcntl(int fd, int cmd, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	ATF_CHECK_EQ(F_DUPFD_CLOEXEC, cmd);
	say(" copy(%d,%p)", fd, arg);
	errno = copy_error;
	return (copy_error != 0 ? -1 : 0);
}

static int
the_close(int fd)
{
	say(" close(%d)", fd);
	errno = EXDEV;
	return (0);
}

const struct run_calls *
run_calls(void)
{
	static const struct run_calls calls = { .fcntl = the_fcntl,
	    .close = the_close };

	return (&calls);
}

const char *
vale_find_path(void)
{
	return ("/path");
}

int
vale_client_connect(const char *path)
{
	say(" connect(%s)", path);
	errno = connect_error;
	return (connect_error != 0 ? -1 : 8);
}

struct run_desc *
run_desc_new(int copy)
{
	say(" new(%d)", copy);
	errno = memory_error;
	return (memory_error != 0 ? NULL : &desc);
}

void
run_desc_add(struct run_desc *rd, int fd)
{
	ATF_CHECK(rd == &desc);
	say(" add(%d)", fd);
}

int
run_port_share(struct run_desc *rd)
{
	ATF_CHECK(rd == &desc);
	ATF_CHECK(!rd->rd_registered);
	say(" port");
	errno = share_error;
	return (share_error != 0 ? -1 : 0);
}

static void	(*on_lock)(void);

void
run_ports_lock(void)
{
	say(" lock");
	if (on_lock != NULL)
		on_lock();
}

void
run_ports_unlock(void)
{
	say(" unlock");
}

/* What is said of a socket; errno is unchanged. */
#define	SHARE(rd, connected, what) do {					\
	memset(&desc, 0, sizeof(desc));					\
	errno = EILSEQ;							\
	ATF_CHECK(run_share(9, connected) == (rd));			\
	ATF_CHECK_EQ(EILSEQ, errno);					\
	SAID(what);							\
} while (0)

#define	CHECKED		" lock connect(/path) close(8)"
#define	TAKEN		CHECKED " copy(9,(nil)) new(0) port add(9) unlock"

TEST(kinds, "Only a socket of the right kind is looked at")
{
	sock = right;
	sock.domain = AF_INET;
	SHARE(NULL, true, "");
	sock = right;
	sock.type = SOCK_STREAM;
	SHARE(NULL, true, "");
	sock = right;
	sock.fails = SO_DOMAIN;
	SHARE(NULL, true, "");
	sock.fails = SO_TYPE;
	SHARE(NULL, true, "");
	sock = right;
	sock.is_short = SO_DOMAIN;
	SHARE(NULL, true, "");
	sock.is_short = SO_TYPE;
	SHARE(NULL, true, "");
	/* A number that the table does not have. */
	ATF_CHECK(run_share(-1, true) == NULL);
	ATF_CHECK(run_share(RUN_FDS, true) == NULL);
	SAID("");
}

TEST(connections, "One that is connected must be to this process's valed")
{
	sock = right;
	SHARE(&desc, false, TAKEN);
	ATF_CHECK(desc.rd_registered && desc.rd_connected);
	SHARE(&desc, true, TAKEN);
	ATF_CHECK(desc.rd_registered && desc.rd_connected);
	/* Without a port. */
	share_error = ENXIO;
	SHARE(&desc, false, TAKEN);
	ATF_CHECK(!desc.rd_registered && desc.rd_connected);
	/* Of another process, user or group. */
	valed.pid++;
	SHARE(NULL, false, CHECKED " unlock");
	valed.pid--;
	valed.gid++;
	SHARE(NULL, false, CHECKED " unlock");
	valed.gid--;
	connect_error = ECONNREFUSED;
	SHARE(NULL, false, " lock connect(/path) unlock");
	connect_error = 0;
	sock.fails = SO_PEERCRED;
	SHARE(NULL, false, CHECKED " unlock");
	sock = right;
	sock.is_short = SO_PEERCRED;
	SHARE(NULL, false, CHECKED " unlock");
	sock = right;
	own_fails = SO_PEERCRED;
	SHARE(NULL, false, CHECKED " unlock");
	own_fails = -1;
	/* What cannot be mapped must have a connection. */
	sock.connected = false;
	SHARE(&desc, true, TAKEN);
}

TEST(unconnected, "One that is not connected yet may be of /dev/netmap")
{
	sock = right;
	sock.connected = false;
	SHARE(&desc, false, " lock copy(9,(nil)) new(0) add(9) unlock");
	ATF_CHECK(!desc.rd_registered && !desc.rd_connected);
}

TEST(errors, "No copy, and no memory")
{
	sock = right;
	copy_error = EMFILE;
	SHARE(NULL, false, CHECKED " copy(9,(nil)) unlock");
	copy_error = 0;
	memory_error = ENOMEM;
	SHARE(NULL, false, CHECKED " copy(9,(nil)) new(0) close(0) unlock");
}

static void
found(void)
{
	other.rd_refs = 1;
	run_fds[9] = &other;
}

TEST(twice, "Another thread has found it already")
{
	sock = right;
	on_lock = found;
	SHARE(&other, false, " lock unlock");
	ATF_CHECK_EQ(2, other.rd_refs);
	sock.connected = false;
	SHARE(&other, false, " lock unlock");
}

TEST_PROGRAM
