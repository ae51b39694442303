/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * vale-cap: write what ports of valed's switches send and get to a pcapng file,
 * through a monitor of each port (libvale.h).
 *
 * One thread takes a ring's worth of frames from each monitor in turn, and
 * waits when none has any; then the file is up to date.  A frame has the time
 * at which it was found in the ring.
 */

#include <sys/param.h>
#include <sys/stat.h>

#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "libvale.h"
#include "pcapng.h"
#include "vale_find.h"
#include "vale_version.h"

#define	PORTS_MAX	64

static const char usage_text[] =
    "usage: vale-cap [-c socket] [-n count] [-Q in|out|inout] [-r slots]\n"
    "                [-s bytes] [-w file] valeSSS:PPP ...\n"
    "\n"
    "  -c  valed's control socket, in place of that of the environment,\n"
    "      VALE_SOCKET\n"
    "  -n  end after so many frames\n"
    "  -Q  what the ports get, what they send, or both, the default\n"
    "  -r  slots of a monitor's ring; default 4096\n"
    "  -s  bytes that are kept of a frame; default all\n"
    "  -w  the file to write; default or -: the standard output\n"
    "  -h, --help  print this\n"
    "  --version   print the version\n";

enum {
	OPTION_VERSION = 256		/* no letter */
};

struct capture {
	FILE		*file;
	unsigned int	 what;		/* VALE_MIRROR_* */
	uint32_t	 snaplen;	/* 0: all */
	uint64_t	 left;		/* frames until the end */
	uint64_t	 frames;
	unsigned int	 nports;
	struct {
		struct vale_desc *monitor;
		uint64_t	 frames;
	}		 port[PORTS_MAX];
};

static int stop_pipe[2];

static void
stop(int sig __unused)
{
	const int error = errno;

	(void)!write(stop_pipe[1], "", 1);
	errno = error;
}

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ((uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec);
}

/*
 * Take a frame from the ring, of one slot or several.  Returns its length, and
 * as much of it in `buf' as fits in `size'.
 */
static uint32_t
take(struct netmap_ring *ring, uint8_t *buf, uint32_t size)
{
	const struct netmap_slot *slot;
	uint32_t len = 0, n;
	bool more;

	do {
		slot = &ring->slot[ring->head];
		more = (slot->flags & NS_MOREFRAG) != 0;
		if (len < size) {
			n = MIN(slot->len, size - len);
			memcpy(buf + len, NETMAP_BUF(ring, slot->buf_idx), n);
		}
		len += slot->len;
		ring->head = ring->cur = nm_ring_next(ring, ring->head);
	} while (more && ring->head != ring->tail);
	return (len);
}

/* Write what is in the ring of port number `i'.  False: there was nothing. */
static bool
capture_port(struct capture *c, unsigned int i)
{
	static uint8_t buf[VALE_FRAME_MAX];
	struct netmap_ring *ring = c->port[i].monitor->rxring;
	struct pcapng_packet p = { .interface = i, .data = buf,
	    .way = c->what == VALE_MIRROR_RX ? PCAPNG_IN :
	    c->what == VALE_MIRROR_TX ? PCAPNG_OUT : PCAPNG_UNKNOWN };

	if (vale_rxsync(c->port[i].monitor) == -1)
		err(EX_UNAVAILABLE, "%s", c->port[i].monitor->common->name);
	if (ring->head == ring->tail)
		return (false);
	p.time_ns = now_ns();
	while (ring->head != ring->tail && c->left > 0) {
		p.len = take(ring, buf, sizeof(buf));
		p.captured = MIN(p.len, sizeof(buf));
		if (c->snaplen != 0)
			p.captured = MIN(p.captured, c->snaplen);
		pcapng_packet(c->file, &p);
		c->port[i].frames++;
		c->frames++;
		c->left--;
	}
	return (true);
}

/* Wait for a frame.  False: stop, after a signal or the end of the reader. */
static bool
capture_wait(const struct capture *c)
{
	struct pollfd pfd[2 + PORTS_MAX];
	unsigned int i;

	pfd[0] = (struct pollfd){ .fd = stop_pipe[0], .events = POLLIN };
	pfd[1] = (struct pollfd){ .fd = fileno(c->file) };
	for (i = 0; i < c->nports; i++)
		pfd[2 + i] = (struct pollfd){ .fd = c->port[i].monitor->fd,
		    .events = POLLIN };
	while (poll(pfd, 2 + c->nports, -1) == -1)
		if (errno != EINTR)
			err(EX_OSERR, "poll");
	return (pfd[0].revents == 0 && pfd[1].revents == 0);
}

/* Whether nobody reads the pipe any more. */
static bool
reader_gone(const struct capture *c)
{
	struct pollfd pfd = { .fd = fileno(c->file) };

	return (poll(&pfd, 1, 0) == 1);
}

/* Without waiting: whether a signal says to stop. */
static bool
stopped(void)
{
	struct pollfd pfd = { .fd = stop_pipe[0], .events = POLLIN };

	return (poll(&pfd, 1, 0) == 1);
}

/* Have the file up to date.  Without a reader there is no need. */
static void
flush(struct capture *c, const char *name)
{
	if ((fflush(c->file) != 0 || ferror(c->file)) && !reader_gone(c))
		err(EX_IOERR, "%s", name);
}

static void
capture(struct capture *c, const char *name)
{
	unsigned int i;
	bool found;

	for (;;) {
		found = false;
		for (i = 0; i < c->nports; i++)
			found |= capture_port(c, i);
		if (c->left == 0 || (found && (stopped() || reader_gone(c))))
			return;
		if (found)
			continue;
		flush(c, name);
		if (!capture_wait(c))
			return;
	}
}

static void
capture_end(struct capture *c, const char *name)
{
	uint64_t dropped = 0, missed;
	unsigned int i;

	for (i = 0; i < c->nports; i++) {
		missed = vale_missed(c->port[i].monitor);
		pcapng_statistics(c->file, i, now_ns(), c->port[i].frames,
		    missed);
		dropped += missed;
		vale_close(c->port[i].monitor);
	}
	flush(c, name);
	fprintf(stderr, "%ju frames captured, %ju dropped\n",
	    (uintmax_t)c->frames, (uintmax_t)dropped);
}

static void
port_open(struct capture *c, const char *name, uint32_t slots)
{
	const struct vale_params params = { .rx_slots = slots,
	    .monitor = c->what };
	const char *error = vale_name_error(name);
	char why[1280];

	if (error != NULL)
		errx(EX_USAGE, "%s: %s", name, error);
	if (c->nports == PORTS_MAX)
		errx(EX_USAGE, "%s: more than %u ports", name, PORTS_MAX);
	c->port[c->nports].monitor = vale_open(name, &params);
	if (c->port[c->nports].monitor == NULL) {
		if (errno == ENXIO)
			errx(EX_DATAERR, "%s: there is no such port", name);
		if (vale_find_error(errno, why, sizeof(why)))
			errx(EX_UNAVAILABLE, "%s", why);
		err(EX_UNAVAILABLE, "%s", name);
	}
	c->nports++;
}

/* The value of option `opt', from `min' to `max'. */
static uint64_t
number(int opt, const char *s, uint64_t min, uint64_t max)
{
	uint64_t value;
	char *end;

	errno = 0;
	value = strtoull(s, &end, 10);
	if (!isdigit((unsigned char)*s) || *end != '\0' || errno != 0 ||
	    value < min || value > max)
		errx(EX_USAGE, "-%c %s: not a number from %ju to %ju", opt, s,
		    (uintmax_t)min, (uintmax_t)max);
	return (value);
}

static unsigned int
direction(const char *s)
{
	if (strcmp(s, "in") == 0)
		return (VALE_MIRROR_RX);
	if (strcmp(s, "out") == 0)
		return (VALE_MIRROR_TX);
	if (strcmp(s, "inout") == 0)
		return (VALE_MIRROR_BOTH);
	errx(EX_USAGE, "-Q %s: not in, out or inout", s);
}

/* Open the file: only its owner may read what others have sent. */
static FILE *
file_open(const char *name)
{
	FILE *f;
	int fd;

	if (strcmp(name, "-") == 0) {
		if (isatty(STDOUT_FILENO))
			errx(EX_USAGE, "the standard output is a terminal: "
			    "name a file with -w, or a program behind |");
		return (stdout);
	}
	fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
	    S_IRUSR | S_IWUSR);
	f = fd != -1 ? fdopen(fd, "w") : NULL;
	if (f == NULL)
		err(EX_CANTCREAT, "%s", name);
	return (f);
}

static void
catch_signals(void)
{
	struct sigaction sa = { .sa_handler = stop };

	if (pipe(stop_pipe) == -1)
		err(EX_OSERR, "pipe");
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	/* The write fails instead. */
	signal(SIGPIPE, SIG_IGN);
}

int
main(int argc, char **argv)
{
	static const struct option longopts[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, OPTION_VERSION },
		{ NULL, 0, NULL, 0 },
	};
	static struct capture c = { .what = VALE_MIRROR_BOTH,
	    .left = UINT64_MAX };
	const char *name = "-";
	uint32_t slots = 4096;
	int ch, i;

	while ((ch = getopt_long(argc, argv, "c:hn:Q:r:s:w:", longopts,
	    NULL)) != -1) {
		switch (ch) {
		case 'c':
			setenv("VALE_SOCKET", optarg, 1);
			break;
		case 'h':
			fputs(usage_text, stdout);
			return (EX_OK);
		case 'n':
			c.left = number(ch, optarg, 1, UINT64_MAX);
			break;
		case 'Q':
			c.what = direction(optarg);
			break;
		case 'r':
			slots = number(ch, optarg, VALE_SLOTS_MIN,
			    VALE_SLOTS_MAX);
			break;
		case 's':
			c.snaplen = number(ch, optarg, 1, VALE_FRAME_MAX);
			break;
		case 'w':
			name = optarg;
			break;
		case OPTION_VERSION:
			puts("vale-cap " VALE_VERSION);
			return (EX_OK);
		default:
			fputs(usage_text, stderr);
			return (EX_USAGE);
		}
	}
	if (optind == argc) {
		fputs(usage_text, stderr);
		return (EX_USAGE);
	}
	catch_signals();
	for (i = optind; i < argc; i++)
		port_open(&c, argv[i], slots);
	c.file = file_open(name);
	pcapng_begin(c.file, "vale-cap");
	for (i = optind; i < argc; i++)
		pcapng_interface(c.file, argv[i], c.snaplen);
	flush(&c, name);
	capture(&c, name);
	capture_end(&c, name);
	return (EX_OK);
}
