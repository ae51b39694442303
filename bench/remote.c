/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What it costs to have a port on another valed's switch (control=), a frame:
 * a thread sends batches through one frame port and takes them from another
 * one.  Both are on a switch of another process, through its control socket; in
 * the place of the bare loop, on a switch of this process.  The thread sends as
 * long as less than WINDOW batches are on their way; with a batch of one frame
 * it waits for each: then it measures how long the processes take to wake each
 * other.
 */

#include <sys/types.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "ctl.h"
#include "ctl_who.h"
#include "libvale.h"
#include "peer_accept.h"
#include "peer_close.h"
#include "peer_fault.h"
#include "vale_remote.h"

#define	WINDOW	4
#define	TX	0
#define	RX	1

/* The ports of a run. */
struct net {
	const struct bench_what *what;
	struct frame_port *port[2];
	int		 fd;		/* of the receiving one */
	uint64_t	 took;		/* frames */
	struct net	*local;		/* the same on a switch of this process */
	struct vale_remote remote[2];
	struct vale_frame_port vale[2];
};

static const char *const names[] = { "vale0:tx", "vale0:rx" };

static uint8_t	data[2][16128];

static int
nothing(void)
{
	return (0);
}

/*
 * A process with a switch and a control socket, until this one ends.  `path'
 * has its socket.
 */
static void
serve(const char *path)
{
	const struct ctl_options options = { .admin = CTL_WHO_NOGROUP,
	    .mem = 1ULL << 30, .user_mem = 1ULL << 30 };
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	pid_t pid;

	strlcpy(sun.sun_path, path, sizeof(sun.sun_path));
	if (s == -1 || bind(s, (void *)&sun, sizeof(sun)) == -1 ||
	    listen(s, 8) == -1)
		err(1, "%s", path);
	pid = fork();
	if (pid == -1)
		err(1, "fork");
	if (pid != 0) {
		close(s);
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if ((errno = peer_fault_init()) != 0 ||
	    (errno = peer_accept_start()) != 0 ||
	    (errno = peer_close_start(nothing)) != 0 ||
	    (errno = ctl_start(s, &options, nothing)) != 0)
		err(1, "control socket");
	ctl_go();
	for (;;)
		pause();
}

static void
open_remote(struct net *net, unsigned int i, const char *path)
{
	struct vale_remote *vr = &net->remote[i];
	struct nmreq_register reg;
	int conn = vale_client_connect(path), fds[VALE_REMOTE_FDS];
	char why[sizeof(((struct vale_wire *)0)->vw_why)];

	if (conn == -1 || vale_remote_ask(conn, names[i]) == -1 ||
	    vale_remote_answer(conn, &reg, fds, why) == -1 ||
	    vale_remote_ready(conn, why) == -1)
		err(1, "%s: %s", path, names[i]);
	vale_remote_init(vr);
	if (vale_remote_open(vr, names[i], &reg, fds) == -1)
		err(1, "%s", names[i]);
	net->port[i] = &vr->vrm_frames.vfp_port;
	net->fd = vale_remote_fd(vr);
}

static void
vlog(const char *fmt, va_list ap)
{
	vwarnx(fmt, ap);
}

static void
open_local(struct net *net, unsigned int i)
{
	struct vale_desc *d = vale_open(names[i], NULL);

	if (d == NULL || vale_frame_port_init(&net->vale[i], d, vlog) == -1)
		err(1, "%s", names[i]);
	net->port[i] = &net->vale[i].vfp_port;
	net->fd = d->fd;
}

/* Send frames, of which the switch has not more than it can take. */
static void
send_frames(struct net *net, unsigned int i, uint32_t n)
{
	struct iovec iov = { data[i], net->what->bytes };
	struct frame frame = { .f_iov = &iov };

	for (; n > 0; n--) {
		frame_set(&frame, 1, iov.iov_len);
		if (frame_port_send(net->port[i], &frame) != 0)
			errx(1, "a frame was lost");
	}
	frame_port_flush(net->port[i]);
}

/* Take what has come, and look at each frame. */
static void
take_frames(struct net *net, unsigned int i)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	static uint8_t to[16128];

	frame_port_sync(net->port[i]);
	while (frame_peek(net->port[i]->fp_source, &frame)) {
		memcpy(to, iov[0].iov_base, iov[0].iov_len);
		frame_next(net->port[i]->fp_source);
		net->took++;
	}
}

static void
run(void *arg, unsigned int thread __attribute__((unused)), uint64_t frames)
{
	struct net *net = arg;
	const uint32_t batch = net->what->batch;
	const uint64_t end = net->took + frames, first = net->took;
	uint64_t sent = 0;
	struct pollfd pfd = { .fd = net->fd, .events = POLLIN };

	while (net->took < end) {
		if (sent < frames && sent - (net->took - first) <=
		    (batch == 1 ? 0 : (WINDOW - 1) * batch)) {
			send_frames(net, TX, frames - sent < batch ?
			    frames - sent : batch);
			sent += frames - sent < batch ? frames - sent : batch;
			take_frames(net, RX);
		} else {
			poll(&pfd, 1, -1);
			take_frames(net, RX);
		}
	}
}

static void
run_local(void *arg, unsigned int thread, uint64_t frames)
{
	struct net *net = arg;

	run(net->local, thread, frames);
}

/* Begin: the switch learns where both are. */
static void
begin(struct net *net)
{
	struct pollfd pfd = { .fd = net->fd, .events = POLLIN };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		net->port[i]->fp_frame_max = UINT32_MAX;
		frame_port_set_offloads(net->port[i]);
	}
	take_frames(net, RX);
	send_frames(net, RX, 1);
	send_frames(net, TX, 1);
	while (net->took == 0) {
		poll(&pfd, 1, -1);
		take_frames(net, RX);
	}
}

static void
usage(void)
{
	fprintf(stderr, "usage: remote [-b batch] [-s bytes]\n");
	exit(1);
}

int
main(int argc, char **argv)
{
	struct bench_what what = { "remote", 60, 64, 1, 1, 0 };
	char dir[] = "/tmp/bench-remote.XXXXXX", path[64];
	static struct net net, local;
	unsigned int i;
	int ch;

	while ((ch = getopt(argc, argv, "b:s:")) != -1) {
		switch (ch) {
		case 'b':
			what.batch = bench_number(optarg, 1, 1023 / WINDOW);
			break;
		case 's':
			what.bytes = bench_number(optarg, 60, 2000);
			break;
		default:
			usage();
		}
	}
	if (optind != argc)
		usage();
	for (i = 0; i < 2; i++) {
		memset(data[i], 0, 12);
		data[i][0] = data[i][6] = 2;
		data[i][5] = i == TX ? RX : TX;
		data[i][11] = i;
	}
	if (mkdtemp(dir) == NULL)
		err(1, "%s", dir);
	snprintf(path, sizeof(path), "%s/control", dir);
	serve(path);
	net.what = local.what = &what;
	net.local = &local;
	for (i = 0; i < 2; i++) {
		open_remote(&net, i, path);
		open_local(&local, i);
	}
	unlink(path);
	rmdir(dir);
	begin(&net);
	begin(&local);
	bench_measure(&what, run, run_local, &net, 0);
	return (0);
}
