/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Compares bhyve's two backends for the kernel's VALE, on FreeBSD: the source
 * tree's net_backend_netmap.c and net_backend_vale.c.  Both are linked into
 * this program, as they are into bhyve.
 *
 * A run opens two ports with one backend, and repeatedly sends a batch of
 * frames on the first and receives it on the second, with the calls that a
 * frontend of that backend makes: the tree's syncs for each frame that it
 * sends, or once a batch if it has netbe_flush(), and looks for frames if
 * poll(2) says so; ours does both once a batch.
 * Frames are copied on arrival, as a device model does.  Only frames that
 * arrive complete count.
 *
 * The backends alternate.  Prints each run, the medians and their ratio.
 */

#include <sys/types.h>
#include <sys/param.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "frame_port.h"
#include "net_backends.h"
#include "net_backends_priv.h"
#include "net_port.h"

#define	NSEC		1000000000ULL
#define	BATCH_MAX	512		/* frames */
#define	FRAME_MIN	60		/* bytes */
#define	FRAME_MAX	1514
#define	RUNS_MAX	99
#define	MAXIOV		64

static uint32_t batch = 64, length = 60, runs = 5, run_ms = 2000;

struct end {
	net_backend_t	*be;
	struct frame_port *port;	/* ours; NULL: the tree's */
	uint8_t		 mac[6];
};

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (ts.tv_sec * NSEC + ts.tv_nsec);
}

static void
ignore(int fd __unused, enum ev_type type __unused, void *param __unused)
{
}

static void
end_open(struct end *e, bool ours, const char *port)
{
	nvlist_t *nvl;

	init_config();
	nvl = create_config_node("bench");
	set_config_value_node(nvl, "type", ours ? "vale" : "netmap");
	set_config_value_node(nvl, "backend", port);
	if (netbe_init(&e->be, nvl, ignore, e) != 0)
		errx(1, "%s: cannot be opened", port);
	if (strcmp(e->be->prefix, ours ? "vale" : "netmap") != 0)
		errx(1, "%s: opened with the other backend", port);
	if (ours) {
		e->port = net_port_create(e->be, UINT32_MAX);
		if (e->port == NULL)
			err(1, "%s", port);
	}
}

/* Send `n' frames with sequence numbers from `first' + 1. */
static void
end_send(struct end *e, const uint8_t dst[6], uint64_t first, uint32_t n)
{
	static uint8_t frames[BATCH_MAX][FRAME_MAX];
	struct iovec iov;
	struct frame frame = { .f_iov = &iov };
	uint32_t i;

	for (i = 0; i < n; i++) {
		memcpy(frames[i], dst, 6);
		memcpy(frames[i] + 6, e->mac, 6);
		frames[i][12] = 0x88;
		frames[i][13] = 0xb5;
		first++;
		memcpy(frames[i] + 14, &first, sizeof(first));
		iov.iov_base = frames[i];
		iov.iov_len = length;
		frame_set(&frame, 1, length);
		if (e->port != NULL ? frame_port_send(e->port, &frame) != 0 :
		    netbe_send(e->be, &iov, 1) < 0)
			warn("send");
	}
	if (e->port != NULL)
		frame_port_flush(e->port);
#ifdef HAVE_NETBE_FLUSH
	else
		netbe_flush(e->be);
#endif
}

static bool
frame_ok(const uint8_t *frame, size_t len, uint64_t *last)
{
	uint64_t seq;

	memcpy(&seq, frame + 14, sizeof(seq));
	if (len != length || seq <= *last)
		return (false);
	*last = seq;
	return (true);
}

/* Receive all pending frames; returns how many are complete. */
static uint64_t
receive_ours(struct end *e, uint64_t *last)
{
	struct frame_source *source = e->port->fp_source;
	struct iovec iov[FRAME_MAXIOV];
	struct frame f = { .f_iov = iov };
	uint8_t frame[FRAME_MAX];
	uint64_t n;

	n = 0;
	frame_port_sync(e->port);
	while (frame_peek(source, &f) && f.f_niov == 1) {
		memcpy(frame, iov[0].iov_base,
		    MIN(iov[0].iov_len, sizeof(frame)));
		n += frame_ok(frame, iov[0].iov_len, last);
		frame_next(source);
	}
	frame_port_sync(e->port);
	return (n);
}

static uint64_t
receive_tree(struct end *e, uint64_t *last)
{
	struct pollfd pfd = { .fd = e->be->fd, .events = POLLIN };
	uint8_t frame[FRAME_MAX];
	struct iovec iov = { frame, sizeof(frame) };
	ssize_t len;
	uint64_t n;

	n = 0;
	if (poll(&pfd, 1, 0) < 1)
		return (0);
	while ((len = netbe_recv(e->be, &iov, 1)) > 0)
		n += frame_ok(frame, len, last);
	return (n);
}

/* Returns frames a second. */
static double
run(bool ours)
{
	struct end a = { .mac = { 2, 0, 0, 0, 0, 1 } };
	struct end b = { .mac = { 2, 0, 0, 0, 0, 2 } };
	uint64_t begin_ns, end_ns, got, last, sent;
	double rate;

	end_open(&a, ours, "vale9:a");
	end_open(&b, ours, "vale9:b");
	/* The switch learns where b is. */
	end_send(&b, a.mac, 0, 1);
	got = last = sent = 0;
	begin_ns = now_ns();
	do {
		end_send(&a, b.mac, sent, batch);
		sent += batch;
		got += ours ? receive_ours(&b, &last) :
		    receive_tree(&b, &last);
		end_ns = now_ns();
	} while (end_ns - begin_ns < run_ms * 1000000ULL);
	rate = got * 1e9 / (end_ns - begin_ns);
	printf("%-20s %9ju sent %9ju arrived %9.0f ns/frame %9.0f frames/s\n",
	    ours ? "net_backend_vale" : "net_backend_netmap", (uintmax_t)sent,
	    (uintmax_t)got, 1e9 / rate, rate);
	netbe_cleanup(a.be);
	netbe_cleanup(b.be);
	return (rate);
}

/*
 * Each run has its own process: only bhyve's event loop, which does not run
 * here, forgets the events of closed descriptors.
 */
static double
run_apart(bool ours)
{
	double rate;
	pid_t pid;
	int fd[2], status;

	fflush(stdout);
	if (pipe(fd) != 0 || (pid = fork()) == -1)
		err(1, "fork");
	if (pid == 0) {
		rate = run(ours);
		fflush(stdout);
		_exit(write(fd[1], &rate, sizeof(rate)) != sizeof(rate));
	}
	close(fd[1]);
	if (read(fd[0], &rate, sizeof(rate)) != sizeof(rate))
		errx(1, "a run has failed");
	close(fd[0]);
	waitpid(pid, &status, 0);
	return (rate);
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return ((x > y) - (x < y));
}

static double
median(double *v, uint32_t n)
{
	qsort(v, n, sizeof(*v), compare);
	return (n % 2 != 0 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2);
}

static uint32_t
number(const char *s, uint32_t min, uint32_t max)
{
	const char *errstr;
	uint32_t n;

	n = strtonum(s, min, max, &errstr);
	if (errstr != NULL)
		errx(1, "%s: %s, must be %u to %u", s, errstr, min, max);
	return (n);
}

int
main(int argc, char **argv)
{
	double ours[RUNS_MAX], tree[RUNS_MAX];
	uint32_t i;
	int c;

	while ((c = getopt(argc, argv, "b:l:n:t:")) != -1)
		switch (c) {
		case 'b':
			batch = number(optarg, 1, BATCH_MAX);
			break;
		case 'l':
			length = number(optarg, FRAME_MIN, FRAME_MAX);
			break;
		case 'n':
			runs = number(optarg, 1, RUNS_MAX);
			break;
		case 't':
			run_ms = number(optarg, 1, 60000);
			break;
		default:
			fprintf(stderr, "usage: backends [-b batch] "
			    "[-l bytes] [-n runs] [-t milliseconds]\n");
			return (1);
		}
	printf("%u bytes, batches of %u, %u runs of %u ms each\n", length,
	    batch, runs, run_ms);
	for (i = 0; i < runs; i++) {
		tree[i] = run_apart(false);
		ours[i] = run_apart(true);
	}
	printf("median: net_backend_netmap %.0f, net_backend_vale %.0f "
	    "frames/s: %.2f times\n", median(tree, runs), median(ours, runs),
	    median(ours, runs) / median(tree, runs));
	return (0);
}
