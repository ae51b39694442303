/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The passer, a process that passes descriptors to clients of the control
 * socket.
 *
 * Only sendmsg(2) passes descriptors.  It also takes an address, in memory,
 * where seccomp(2) cannot see it; and with an address, a packet socket sends on
 * any interface of its network namespace.  So valed's sandbox permits
 * sendmsg(2) on one descriptor, which is connected to the passer, and no call
 * that could put another file in that descriptor's place:
 *
 *	serving process			passer			client
 *	   | -- connection, reply, fds -->|
 *	   |				  | -- reply, fds ------->|
 *	   | <-------- whether it was sent|
 *
 * The passer is in a sandbox of its own.  It gives away what ports need, memory
 * and connected local sockets, and only on connections that are local sockets
 * with packets; it never names an address.  It does not wait for a client.
 *
 * If the passer has ended, no reply with descriptors is sent any more, which
 * valed logs once: programs cannot open ports, and all else goes on.
 */

#include <sys/param.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "ctl_pass.h"
#include "peer_fd.h"
#include "peer_fds.h"
#include "vale_wire.h"

/* A reply's, and the connection. */
#define	PASS_FDS	(VALE_WIRE_REPLY_FDS + 1)
/* The passer has no others, but for standard input, output and error. */
#define	PASS_FD		(STDERR_FILENO + 1)

/* The connection: this process's end.  -1: there is no passer. */
static int	pass_fd = -1;
/* A thread has it from a packet until the answer. */
static pthread_mutex_t pass_lock = PTHREAD_MUTEX_INITIALIZER;

int
ctl_pass_fd(void)
{
	return (pass_fd);
}

void
ctl_pass_moved(int fd)
{
	pass_fd = fd;
}

/*
 * Receive whether the passer is ready, or has sent a packet.  Returns false if
 * there is no answer.
 */
static bool
pass_answer(bool *sent)
{
	ssize_t n;

	do {
		n = recv(pass_fd, sent, sizeof(*sent), 0);
	} while (n == -1 && errno == EINTR);
	return (n == sizeof(*sent));
}

bool
ctl_pass(int s, const void *p, size_t len, const int *fds, unsigned int n)
{
	static bool said;
	int all[PASS_FDS];
	bool ended = false, sent = false;

	if (pass_fd == -1)
		return (peer_fds_send(s, p, len, fds, n,
		    PEER_FDS_WAIT_LIMIT) != -1);
	all[0] = s;
	memcpy(all + 1, fds, n * sizeof(int));
	pthread_mutex_lock(&pass_lock);
	if (peer_fds_send(pass_fd, p, len, all, n + 1, PEER_FDS_WAIT) != -1)
		ended = !pass_answer(&sent);
	else if (errno == ETOOMANYREFS)
		warnx("a program cannot open a port: processes of this user "
		    "have sent too many descriptors that were not received");
	else
		/* After any other error there is a passer, and no answer. */
		ended = errno == EPIPE || errno == ECONNRESET;
	if (ended && !said) {
		said = true;
		warnx("the process that passes descriptors has ended: no "
		    "program can open a port until valed is restarted");
	}
	pthread_mutex_unlock(&pass_lock);
	return (sent);
}

/*
 * The passer.
 */

/* Return whether a descriptor may be given away. */
static bool
passable(int fd)
{
	return (fcntl(fd, F_GET_SEALS) != -1 ||
	    (peer_socket_is(fd, SO_DOMAIN, AF_UNIX) &&
	    peer_socket_is(fd, SO_ACCEPTCONN, 0)));
}

/*
 * Pass on what came: the connection is the first of the descriptors.  Returns
 * whether it was sent.
 */
static bool
pass(const void *p, size_t len, const int *fds, unsigned int n)
{
	unsigned int i;

	if (n < 2 || !peer_socket_is(fds[0], SO_DOMAIN, AF_UNIX) ||
	    !peer_socket_is(fds[0], SO_TYPE, SOCK_SEQPACKET))
		return (false);
	for (i = 1; i < n; i++)
		if (!passable(fds[i]))
			return (false);
	/* A client that does not read is not waited for. */
	return (peer_fds_send(fds[0], p, len, fds + 1, n - 1,
	    PEER_FDS_WAIT_LIMIT) != -1);
}

/* Receive a packet, pass it on, and answer.  Returns false at the end. */
static bool
pass_next(int s)
{
	static char packet[VALE_WIRE_MAX];
	int fds[PASS_FDS];
	const struct iovec iov = { packet, sizeof(packet) };
	struct peer_fds mf = { .mf_fd = fds, .mf_max = nitems(fds) };
	const ssize_t len = peer_fds_recv(s, &iov, 1, &mf, 0);
	bool sent = false;

	if (len <= 0)
		return (false);
	if (!mf.mf_lost && !mf.mf_cut)
		sent = pass(packet, len, fds, mf.mf_n);
	while (mf.mf_n > 0)
		close(fds[--mf.mf_n]);
	return (peer_fds_send(s, &sent, sizeof(sent), NULL, 0,
	    PEER_FDS_WAIT) != -1);
}

static void __dead2
pass_main(int s, int (*enter)(void))
{
	const bool ready = true;
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	prctl(PR_SET_NAME, "valed-pass");
	if (dup2(s, PASS_FD) == -1 ||
	    close_range(PASS_FD + 1, ~0U, 0) == -1 ||
	    enter() == -1 ||
	    peer_fds_send(PASS_FD, &ready, sizeof(ready), NULL, 0,
	    PEER_FDS_WAIT) == -1)
		_exit(EX_OSERR);
	while (pass_next(PASS_FD))
		continue;
	_exit(EX_OK);
}

int
ctl_pass_start(int (*enter)(void))
{
	int error, fds[2];
	pid_t pid;
	bool ready;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == -1)
		return (errno);
	pid = fork();
	error = errno;
	if (pid == 0)
		pass_main(fds[1], enter);
	close(fds[1]);
	pass_fd = fds[0];
	if (pid != -1 && pass_answer(&ready))
		return (0);
	close(pass_fd);
	pass_fd = -1;
	return (pid == -1 ? error : ECHILD);
}
