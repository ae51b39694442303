/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Send frames of 60 bytes through another switch:
 *
 *	pump tap in out		between two existing TAP interfaces
 *	pump vde socket		between two ports of a vde_switch
 *
 * Runs for a second with up to WINDOW frames in flight, and prints nanoseconds
 * a frame received.  If no frame arrives for 5 ms, those in flight count as
 * lost.
 */

#include <sys/ioctl.h>

#include <dlfcn.h>
#include <err.h>
#include <fcntl.h>

#include <linux/if.h>
#include <linux/if_tun.h>

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define	WINDOW		64		/* frames in flight */
#define	RUN_NS		1000000000ULL
#define	LEN		60

struct end {
	int	 fd;
	void	*vde;
};

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
	return ((end->vde != NULL ?
	    plug_send(end->vde, frame, LEN, 0) :
	    write(end->fd, frame, LEN)) == LEN);
}

/*
 * Receive a frame.  Sets *ours if it was sent by end_send(); others, such as
 * IPv6's, do not count.
 */
static bool
end_receive(struct end *end, bool *ours)
{
	uint8_t frame[2048];
	ssize_t n;

	n = end->vde != NULL ?
	    plug_recv(end->vde, frame, sizeof(frame), 0) :
	    read(end->fd, frame, sizeof(frame));
	*ours = n >= LEN && frame[12] == 0x88 && frame[13] == 0xb5;
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
	unsigned int in_flight = 0;
	bool ours;

	while (bench_now_ns() < until) {
		while (in_flight < WINDOW && end_send(from, frame))
			in_flight++;
		while (end_receive(to, &ours)) {
			if (ours && in_flight > 0)
				in_flight--;
			received += ours;
		}
		if (in_flight == WINDOW && poll(&pfd, 1, 5) == 0)
			in_flight = 0;
	}
	return (received);
}

int
main(int argc, char **argv)
{
	struct end end[2] = { { -1, NULL }, { -1, NULL } };
	uint8_t frame[LEN] = { 0 };
	uint64_t n;
	int i;

	if (argc == 4 && strcmp(argv[1], "tap") == 0) {
		tap_open(&end[0], argv[2]);
		tap_open(&end[1], argv[3]);
	} else if (argc == 3 && strcmp(argv[1], "vde") == 0) {
		vde_load();
		plug(&end[0], argv[2]);
		plug(&end[1], argv[2]);
	} else
		errx(1, "usage: pump tap in out | pump vde socket");
	/* The switch learns both addresses. */
	for (i = 1; i >= 0; i--) {
		address(frame, i);
		if (pump(&end[i], &end[!i], frame, RUN_NS / 10) == 0)
			warnx("no frame was received yet");
	}
	n = pump(&end[0], &end[1], frame, RUN_NS);
	if (n == 0)
		errx(1, "no frame was received");
	printf("%.2f\n", (double)RUN_NS / n);
	return (0);
}
