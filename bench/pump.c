/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Send frames through another switch:
 *
 *	pump [-p] [-l bytes] [-t ms] [-w window] tap in out
 *				between two existing TAP interfaces
 *	pump [-p] [-l bytes] [-t ms] [-w window] vde socket
 *				between two ports of a vde_switch
 *
 * Runs for a second, or -t, with up to 64 frames in flight, or -w, and prints
 * nanoseconds a frame received.  If no frame arrives for 5 ms, those in flight
 * count as lost.
 *
 * With -p a process at the other end answers each frame, and there is one in
 * flight: prints microseconds a round trip, the median.
 *
 * Frames have 60 bytes, or -l.
 */

#include <sys/ioctl.h>
#include <sys/prctl.h>

#include <dlfcn.h>
#include <err.h>
#include <fcntl.h>

#include <linux/if.h>
#include <linux/if_tun.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define	NS_MS		UINT64_C(1000000)
#define	LEARN_NS	(100 * NS_MS)
#define	LEARN_MAX	30		/* times, until a frame arrives */
#define	MAX		1514

struct end {
	int	 fd;
	void	*vde;
};

static uint32_t	len = 60;		/* of a frame */
static uint32_t	window = 64;		/* frames in flight */
static uint64_t	run_ns = 1000 * NS_MS;

/* From libvdeplug.so.2, if it is installed. */
static void	*(*plug_open)(const char *, const char *, int, void *);
static ssize_t	(*plug_send)(void *, const void *, size_t, int);
static ssize_t	(*plug_recv)(void *, void *, size_t, int);
static int	(*plug_fd)(void *);

static void
tap_open(struct end *end, const char *name)
{
	struct ifreq ifr;

	memset(&ifr, 0, sizeof(ifr));
	ifr.ifr_flags = IFF_TAP | IFF_NO_PI;
	strncpy(ifr.ifr_name, name, sizeof(ifr.ifr_name) - 1);
	end->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
	if (end->fd == -1 || ioctl(end->fd, TUNSETIFF, &ifr) == -1)
		err(1, "%s", name);
}

static void
vde_load(void)
{
	void *lib;

	lib = dlopen("libvdeplug.so.2", RTLD_NOW);
	if (lib == NULL)
		errx(1, "%s", dlerror());
	*(void **)&plug_open = dlsym(lib, "vde_open_real");
	*(void **)&plug_send = dlsym(lib, "vde_send");
	*(void **)&plug_recv = dlsym(lib, "vde_recv");
	*(void **)&plug_fd = dlsym(lib, "vde_datafd");
	if (plug_open == NULL || plug_send == NULL || plug_recv == NULL ||
	    plug_fd == NULL)
		errx(1, "%s", dlerror());
}

static void
plug(struct end *end, const char *path)
{
	end->vde = plug_open(path, "bench", 1, NULL);
	if (end->vde == NULL)
		err(1, "%s", path);
	end->fd = plug_fd(end->vde);
	/* The library passes no flags on. */
	if (fcntl(end->fd, F_SETFL, O_NONBLOCK) == -1)
		err(1, "%s", path);
}

static bool
end_send(struct end *end, const uint8_t *frame)
{
	ssize_t n;

	n = end->vde != NULL ?
	    plug_send(end->vde, frame, len, 0) :
	    write(end->fd, frame, len);
	return (n == (ssize_t)len);
}

/*
 * Receive a frame.  Sets *ours if it was sent by end_send(); others, such as
 * IPv6's, do not count.
 */
static bool
end_receive(struct end *end, uint8_t frame[MAX], bool *ours)
{
	ssize_t n;

	n = end->vde != NULL ?
	    plug_recv(end->vde, frame, MAX, 0) :
	    read(end->fd, frame, MAX);
	*ours = n >= (ssize_t)len && frame[12] == 0x88 && frame[13] == 0xb5;
	return (n > 0);
}

static const uint8_t macs[2][6] = {
	{ 2, 0, 0, 0, 0, 1 }, { 2, 0, 0, 0, 0, 2 }
};

static void
address(uint8_t *frame, int from)
{
	memcpy(frame, macs[!from], 6);
	memcpy(frame + 6, macs[from], 6);
	frame[12] = 0x88;
	frame[13] = 0xb5;
}

/* Send for `ns'; returns how many frames were received. */
static uint64_t
pump(struct end *from, struct end *to, const uint8_t *frame, uint64_t ns)
{
	struct pollfd pfd = { to->fd, POLLIN, 0 };
	uint64_t received = 0, until = bench_now_ns() + ns;
	uint32_t in_flight = 0;
	uint8_t in[MAX];
	bool ours;

	while (bench_now_ns() < until) {
		while (in_flight < window && end_send(from, frame))
			in_flight++;
		while (end_receive(to, in, &ours)) {
			if (ours && in_flight > 0)
				in_flight--;
			received += ours;
		}
		if (in_flight == window && poll(&pfd, 1, 5) == 0)
			in_flight = 0;
	}
	return (received);
}

/* Have the switch learn both addresses, and be ready. */
static void
learn(struct end end[2], uint8_t *frame)
{
	int i, n;

	for (i = 1; i >= 0; i--) {
		address(frame, i);
		for (n = 0; pump(&end[i], &end[!i], frame, LEARN_NS) == 0; n++)
			if (n == LEARN_MAX)
				errx(1, "no frame was received");
	}
}

static void
frames(struct end end[2])
{
	uint8_t frame[MAX] = { 0 };
	uint64_t n;

	learn(end, frame);
	n = pump(&end[0], &end[1], frame, run_ns);
	if (n == 0)
		errx(1, "no frame was received");
	printf("%.2f\n", (double)run_ns / n);
}

static void
answer_all(struct end *end)
{
	struct pollfd pfd = { end->fd, POLLIN, 0 };
	uint8_t frame[MAX];
	bool ours;

	for (;;) {
		(void)poll(&pfd, 1, -1);
		while (end_receive(end, frame, &ours)) {
			address(frame, 1);
			if (ours)
				(void)end_send(end, frame);
		}
	}
}

/* Send frame `n' and wait for its answer. */
static bool
ping(void *arg, uint32_t n, int ms)
{
	struct end *end = arg;
	struct pollfd pfd = { end->fd, POLLIN, 0 };
	uint8_t frame[MAX] = { 0 };
	bool ours;

	address(frame, 0);
	memcpy(frame + 14, &n, sizeof(n));
	if (!end_send(end, frame))
		return (false);
	while (poll(&pfd, 1, ms) > 0)
		while (end_receive(end, frame, &ours))
			if (ours && memcmp(frame + 14, &n, sizeof(n)) == 0)
				return (true);
	return (false);
}

static void
trips(struct end end[2])
{
	pid_t pid;

	pid = fork();
	if (pid == -1)
		err(1, "fork");
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		answer_all(&end[1]);
	}
	bench_trips(ping, &end[0], run_ns);
}

static void
usage(void)
{
	fprintf(stderr, "usage: pump [-p] [-l bytes] [-t ms] [-w window] "
	    "tap in out\n       pump [-p] [-l bytes] [-t ms] [-w window] "
	    "vde socket\n");
	exit(1);
}

static void
ends_open(struct end end[2], int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[0], "tap") == 0) {
		tap_open(&end[0], argv[1]);
		tap_open(&end[1], argv[2]);
	} else if (argc == 2 && strcmp(argv[0], "vde") == 0) {
		vde_load();
		plug(&end[0], argv[1]);
		plug(&end[1], argv[1]);
	} else
		usage();
}

int
main(int argc, char **argv)
{
	struct end end[2] = { { -1, NULL }, { -1, NULL } };
	bool answered = false;
	int ch;

	while ((ch = getopt(argc, argv, "l:pt:w:")) != -1) {
		switch (ch) {
		case 'l':
			len = bench_number(optarg, 60, MAX);
			break;
		case 'p':
			answered = true;
			break;
		case 't':
			run_ns = bench_number(optarg, 1, 60000) * NS_MS;
			break;
		case 'w':
			window = bench_number(optarg, 1, 1024);
			break;
		default:
			usage();
		}
	}
	ends_open(end, argc - optind, argv + optind);
	if (answered)
		trips(end);
	else
		frames(end);
	return (0);
}
