/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The opener; see valed_opener.h.
 *
 *	serving process		opener			the other valed
 *	   |			  | -- connect, open port ----->|
 *	   |			  | <-- memory, sockets --------|
 *	   | <- memory, sockets --|				|
 *	   | ......... frames and kicks, in memory ............>|
 *
 * The serving process is in a sandbox in which it can connect to nobody.  What
 * takes it over has the memory of one port, and no connection on which it could
 * ask for another; and it cannot choose where the opener connects to, which is
 * what the configuration says.
 *
 * The opener tries again after a while, which doubles from 20 ms to 2 s unless
 * the port stays for a second.  Whatever the other valed does, the opener waits
 * for nothing without waiting for the end of the serving process, too.
 */

#include <sys/param.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "adapter_config.h"
#include "peer_fds.h"
#include "vale_clock.h"
#include "vale_remote.h"
#include "valed_opener.h"
#include "valed_sandbox.h"

/* The opener has no others, but for standard input, output and error, */
#define	ADAPTER_FD	(STDERR_FILENO + 1)	/* to the serving process */
/* a connection, and what it passes on. */

#define	DELAY_MIN_MS	20
#define	DELAY_MAX_MS	2000
/*
 * So long without a port is said; a port that stays for so long is a good one.
 */
#define	SHORT_MS	1000

struct opener {
	const struct adapter_config *op_config;
	uint64_t	 op_since_ms;	/* when there was no port any more */
	char		 op_said[256];	/* the last vod_why, or "" */
	unsigned int	 op_delay_ms;
};

/* Say something to the adapter.  If that has gone, so does the process. */
static void
say(const struct valed_opened *vod, const int *fds, unsigned int n)
{
	if (peer_fds_send(ADAPTER_FD, vod, sizeof(*vod), fds, n,
	    PEER_FDS_WAIT) == -1)
		_exit(EX_OK);
}

/* Say why there is no port, after a while, and if it is not known. */
static void __printflike(2, 3)
say_none(struct opener *op, const char *fmt, ...)
{
	struct valed_opened vod = { .vod_what = VALED_NONE };
	va_list ap;

	if (vale_now_ms() - op->op_since_ms < SHORT_MS)
		return;
	va_start(ap, fmt);
	vsnprintf(vod.vod_why, sizeof(vod.vod_why), fmt, ap);
	va_end(ap);
	if (strcmp(op->op_said, vod.vod_why) == 0)
		return;
	strlcpy(op->op_said, vod.vod_why, sizeof(op->op_said));
	say(&vod, NULL, 0);
}

/*
 * Wait until `fd', unless it is -1, is readable, for so long at most, or for
 * any time with -1.
 */
enum came {
	NOTHING,
	THERE,			/* it is readable */
	AGAIN			/* the adapter asks for another port */
};

static enum came
wait_for(int fd, int ms)
{
	struct pollfd pfd[2] = {
		{ .fd = ADAPTER_FD, .events = POLLIN },
		{ .fd = fd, .events = POLLIN },
	};
	char c;

	while (poll(pfd, nitems(pfd), ms) == -1)
		continue;
	if (pfd[0].revents == 0)
		return (pfd[1].revents != 0 ? THERE : NOTHING);
	if (recv(ADAPTER_FD, &c, sizeof(c), MSG_DONTWAIT) <= 0)
		_exit(EX_OK);
	return (AGAIN);
}

/* Wait for an answer, and say so if that takes long. */
static bool
wait_answer(struct opener *op, int fd)
{
	enum came came = wait_for(fd, SHORT_MS);

	if (came == NOTHING) {
		say_none(op, "%s: no answer", op->op_config->ac_control);
		came = wait_for(fd, -1);
	}
	return (came == THERE);
}

/* Connect, and ask for the port.  Returns the connection or -1. */
static int
connect_to(struct opener *op)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC |
	    SOCK_NONBLOCK, 0);

	if (fd != -1 && vale_client_join(fd, op->op_config->ac_control) == 0 &&
	    vale_remote_ask(fd, op->op_config->ac_backend) == 0)
		return (fd);
	say_none(op, "%s: %s", op->op_config->ac_control, strerror(errno));
	if (fd != -1)
		close(fd);
	return (-1);
}

/* Say why the other valed does not give the port. */
static void
say_refused(struct opener *op, const char *why)
{
	say_none(op, "%s: %s: %s", op->op_config->ac_control,
	    op->op_config->ac_backend, why[0] != '\0' ? why : strerror(errno));
}

/*
 * Open the port over a connection, on which both requests were sent.  Returns
 * whether it is.
 */
static bool
open_port(struct opener *op, int fd)
{
	struct valed_opened vod = { .vod_what = VALED_OPENED };
	char why[sizeof(((struct vale_wire *)0)->vw_why)];
	int fds[VALE_REMOTE_FDS];
	unsigned int i;
	bool ready;

	if (!wait_answer(op, fd))
		return (false);
	if (vale_remote_answer(fd, &vod.vod_reg, fds, why) == -1) {
		say_refused(op, why);
		return (false);
	}
	ready = wait_answer(op, fd);
	if (ready && vale_remote_ready(fd, why) == -1) {
		say_refused(op, why);
		ready = false;
	}
	if (ready)
		say(&vod, fds, nitems(fds));
	for (i = 0; i < nitems(fds); i++)
		close(fds[i]);
	return (ready);
}

/* Have the port, as long as there is one. */
static void
have_port(struct opener *op)
{
	const struct valed_opened lost = { .vod_what = VALED_LOST };
	const int fd = connect_to(op);
	uint64_t opened;

	if (fd != -1 && open_port(op, fd)) {
		opened = vale_now_ms();
		op->op_said[0] = '\0';
		(void)wait_for(fd, -1);
		op->op_since_ms = vale_now_ms();
		if (op->op_since_ms - opened >= SHORT_MS)
			op->op_delay_ms = DELAY_MIN_MS;
		say(&lost, NULL, 0);
	}
	if (fd != -1)
		close(fd);
}

static void __dead2
opener_main(int s, const struct adapter_config *ac)
{
	struct opener op = { .op_config = ac, .op_since_ms = vale_now_ms(),
	    .op_delay_ms = DELAY_MIN_MS };
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	prctl(PR_SET_NAME, "valed-port");
	if (dup2(s, ADAPTER_FD) == -1 ||
	    close_range(ADAPTER_FD + 1, ~0U, 0) == -1 ||
	    valed_sandbox_enter_opener() == -1)
		_exit(EX_OSERR);
	for (;;) {
		have_port(&op);
		(void)wait_for(-1, (int)op.op_delay_ms);
		op.op_delay_ms = MIN(2 * op.op_delay_ms, DELAY_MAX_MS);
	}
}

int
valed_opener_start(const struct adapter_config *ac)
{
	int error, fds[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == -1)
		return (-1);
	pid = fork();
	error = errno;
	if (pid == 0)
		opener_main(fds[1], ac);
	close(fds[1]);
	if (pid != -1)
		return (fds[0]);
	close(fds[0]);
	errno = error;
	return (-1);
}
