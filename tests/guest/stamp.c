/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Checks the time stamps of an adapter inside the guests, by messages of PTP:
 *
 *	stamp ping interface count	sends so many, each when the one before
 *					was answered
 *	stamp pong interface count	receives and answers them
 *
 * Each message must have a stamp of hardware, of the time in which it was sent
 * or received by the clock of the adapter, /dev/ptp0.  Prints one line, and
 * exits with 0 then.  Linux's Documentation/networking/timestamping.rst.
 */

#include <sys/ioctl.h>
#include <sys/socket.h>

#include <net/if.h>

#include <linux/errqueue.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define	PTP_TYPE	0x88f7
/* The first byte of a message: Sync, which is stamped, and Follow_Up. */
#define	PTP_SYNC	0x00
#define	PTP_FOLLOW_UP	0x08
#define	NS_PER_S	1000000000LL
#define	WAIT_MS		60000

/* A clock by its descriptor: <linux/posix-timers.h>. */
#define	FD_CLOCK(fd)	((clockid_t)((~(unsigned int)(fd) << 3) | 3))

static int ptp_fd;

static int64_t
ptp_now(void)
{
	struct timespec ts;

	if (clock_gettime(FD_CLOCK(ptp_fd), &ts) == -1)
		err(1, "/dev/ptp0: clock_gettime");
	return (ts.tv_sec * NS_PER_S + ts.tv_nsec);
}

/* Returns a socket for PTP on an interface whose adapter makes stamps. */
static int
ptp_open(const char *name)
{
	struct hwtstamp_config config = { .tx_type = HWTSTAMP_TX_ON,
	    .rx_filter = HWTSTAMP_FILTER_PTP_V2_L2_SYNC };
	struct sockaddr_ll sll = { .sll_family = AF_PACKET,
	    .sll_protocol = htons(PTP_TYPE) };
	struct ifreq ifr = { .ifr_data = (void *)&config };
	const int on = SOF_TIMESTAMPING_TX_HARDWARE |
	    SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE;
	int s;

	ptp_fd = open("/dev/ptp0", O_RDWR);
	s = socket(AF_PACKET, SOCK_DGRAM, htons(PTP_TYPE));
	if (ptp_fd == -1 || s == -1)
		err(1, "%s", ptp_fd == -1 ? "/dev/ptp0" : "socket");
	strncpy(ifr.ifr_name, name, IFNAMSIZ - 1);
	sll.sll_ifindex = (int)if_nametoindex(name);
	if (ioctl(s, SIOCSHWTSTAMP, &ifr) == -1 ||
	    setsockopt(s, SOL_SOCKET, SO_TIMESTAMPING, &on, sizeof(on)) == -1 ||
	    bind(s, (struct sockaddr *)&sll, sizeof(sll)) == -1)
		err(1, "%s", name);
	return (s);
}

/*
 * Wait for a message, or with MSG_ERRQUEUE for the one that was sent.  Returns
 * its first byte, and its stamp in *stamp, 0 if it has none.
 */
static int
ptp_wait(int s, int flags, int64_t *stamp)
{
	struct pollfd pfd = { .fd = s,
	    .events = (flags & MSG_ERRQUEUE) != 0 ? 0 : POLLIN };
	union {
		struct cmsghdr	align;
		char		buf[512];
	} control;
	uint8_t data[128];
	struct iovec iov = { .iov_base = data, .iov_len = sizeof(data) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = &control, .msg_controllen = sizeof(control) };
	struct scm_timestamping ts;
	struct cmsghdr *cm;
	ssize_t n;

	if (poll(&pfd, 1, WAIT_MS) != 1)
		errx(1, "no %s", (flags & MSG_ERRQUEUE) != 0 ? "stamp" :
		    "message");
	n = recvmsg(s, &msg, flags);
	if (n == -1)
		err(1, "recvmsg");
	*stamp = 0;
	for (cm = CMSG_FIRSTHDR(&msg); cm != NULL; cm = CMSG_NXTHDR(&msg, cm))
		if (cm->cmsg_level == SOL_SOCKET &&
		    cm->cmsg_type == SCM_TIMESTAMPING) {
			memcpy(&ts, CMSG_DATA(cm), sizeof(ts));
			*stamp = ts.ts[2].tv_sec * NS_PER_S + ts.ts[2].tv_nsec;
		}
	return (data[0] & 0xf);
}

/* Send a message to all. */
static void
ptp_send(int s, const char *name, uint8_t first)
{
	struct sockaddr_ll sll = { .sll_family = AF_PACKET,
	    .sll_protocol = htons(PTP_TYPE), .sll_halen = 6,
	    .sll_addr = "\xff\xff\xff\xff\xff\xff" };
	uint8_t message[44] = { first, 2, 0, sizeof(message) };

	sll.sll_ifindex = (int)if_nametoindex(name);
	if (sendto(s, message, sizeof(message), 0, (struct sockaddr *)&sll,
	    sizeof(sll)) != (ssize_t)sizeof(message))
		err(1, "sendto");
}

/* A stamp must be of a time from `begin' until now. */
static void
check(const char *what, int i, int64_t stamp, int64_t begin)
{
	const int64_t end = ptp_now();

	if (stamp == 0)
		errx(1, "%s %d: no stamp", what, i);
	if (stamp < begin || stamp > end)
		errx(1, "%s %d: %jd is not from %jd to %jd", what, i,
		    (intmax_t)stamp, (intmax_t)begin, (intmax_t)end);
}

static void
ping(int s, const char *name, int count)
{
	int64_t begin, stamp;
	int i;

	for (i = 0; i < count; i++) {
		begin = ptp_now();
		ptp_send(s, name, PTP_SYNC);
		ptp_wait(s, MSG_ERRQUEUE, &stamp);
		check("sent", i, stamp, begin);
		while (ptp_wait(s, 0, &stamp) != PTP_FOLLOW_UP)
			continue;
		if (stamp != 0)
			errx(1, "a message that is no Sync has a stamp");
	}
}

/* The next message may come while the stamp of the answer is awaited. */
static void
pong(int s, const char *name, int count)
{
	int64_t begin = ptp_now(), sent, stamp;
	int i;

	for (i = 0; i < count; i++) {
		while (ptp_wait(s, 0, &stamp) != PTP_SYNC)
			continue;
		check("received", i, stamp, begin);
		begin = stamp;
		ptp_send(s, name, PTP_FOLLOW_UP);
		ptp_wait(s, MSG_ERRQUEUE, &sent);
		check("answered", i, sent, begin);
	}
}

int
main(int argc, char **argv)
{
	int count, s;

	if (argc != 4) {
		fprintf(stderr, "usage: stamp ping|pong interface count\n");
		return (2);
	}
	s = ptp_open(argv[2]);
	count = atoi(argv[3]);
	printf("ready\n");
	fflush(stdout);
	if (strcmp(argv[1], "ping") == 0)
		ping(s, argv[2], count);
	else
		pong(s, argv[2], count);
	printf("stamps %d\n", count);
	return (0);
}
