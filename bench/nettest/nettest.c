/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * nettest.h says what this is.  One machine serves, another asks:
 *
 *	nettest [-p port] serve [address]
 *	nettest [-p port] [-r rate] udp address size seconds
 *	nettest [-p port] [-n streams] [-r rate] [-w bytes] tcp address seconds
 *	nettest [-p port] [-r rate] rr address seconds
 *
 * udp sends datagrams of `size' bytes (1 to 65507) as fast as it can, or `rate'
 * a second; tcp sends a pattern over `streams' connections (1), `bytes' with
 * each write (65536), and has the server compare it; with a rate the system sends
 * at most so many bytes a second of each (SO_MAX_PACING_RATE); rr sends a byte and
 * waits for its answer, again and again, or `rate' times a second.  Each prints
 * one line:
 *
 *	udp size=8 seconds=1.000 sent=15874 full=0 received=15874
 *	tcp streams=1 seconds=5.012 bytes=52428800
 *	rr seconds=1.000 transactions=259 p50_us=3812.0 p99_us=5230.1
 *
 * `full' counts datagrams that the system did not take (ENOBUFS); the seconds
 * of tcp end when the server has all bytes; half of the transactions took no
 * longer than p50_us microseconds, 99 of 100 no longer than p99_us.  Only POSIX
 * and SO_MAX_PACING_RATE are used, so this runs in any guest.
 */

#include <sys/types.h>
#include <sys/socket.h>

#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nettest.h"

#define	PERIOD		(1 << 20)	/* bytes until the pattern repeats */

static uint8_t pattern[PERIOD + NETTEST_CHUNK];

void
nettest_pattern_init(void)
{
	uint32_t state = 1;
	size_t i;

	for (i = 0; i < PERIOD; i++) {
		state = state * 1664525 + 1013904223;
		pattern[i] = state >> 24;
	}
	memcpy(pattern + PERIOD, pattern, NETTEST_CHUNK);
}

const uint8_t *
nettest_pattern(uint64_t offset)
{
	return (pattern + offset % PERIOD);
}

int
nettest_read_line(int fd, char line[NETTEST_LINE])
{
	size_t len;

	for (len = 0; len < NETTEST_LINE; len++) {
		if (read(fd, line + len, 1) != 1)
			return (-1);
		if (line[len] == '\n') {
			line[len] = '\0';
			return (0);
		}
	}
	return (-1);
}

int
nettest_write(int fd, const void *data, size_t len)
{
	const char *p = data;
	ssize_t n;

	for (; len > 0; p += n, len -= n) {
		n = write(fd, p, len);
		if (n == -1)
			return (-1);
	}
	return (0);
}

int
nettest_socket(const char *address, const char *port, int type, int flags,
    int (*call)(int, const struct sockaddr *, socklen_t))
{
	const struct addrinfo hints = {
		.ai_family = address == NULL ? AF_INET : AF_UNSPEC,
		.ai_socktype = type,
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | flags
	};
	struct addrinfo *ai;
	int error, fd, on = 1;

	error = getaddrinfo(address, port, &hints, &ai);
	if (error != 0)
		errx(1, "%s, port %s: %s", address == NULL ? "*" : address,
		    port, gai_strerror(error));
	fd = socket(ai->ai_family, type, 0);
	if (fd == -1)
		err(1, "socket");
	if (flags != 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == -1)
		err(1, "SO_REUSEADDR");
	if (call(fd, ai->ai_addr, ai->ai_addrlen) == -1)
		err(1, "%s, port %s", address == NULL ? "*" : address, port);
	freeaddrinfo(ai);
	return (fd);
}

static void
usage(void)
{
	fprintf(stderr, "usage: nettest [-p port] serve [address]\n"
	    "       nettest [-p port] [-r rate] udp address size seconds\n"
	    "       nettest [-p port] [-n streams] [-r rate] [-w bytes] tcp "
	    "address seconds\n"
	    "       nettest [-p port] [-r rate] rr address seconds\n");
	exit(2);
}

static unsigned int
number(const char *s, unsigned long max)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(s, &end, 10);
	if (errno != 0 || *s < '0' || *s > '9' || *end != '\0' || n < 1 ||
	    n > max)
		errx(2, "%s: not a number from 1 to %lu", s, max);
	return (n);
}

int
main(int argc, char **argv)
{
	struct nettest_client c = { .port = NETTEST_PORT };
	const char *what;
	bool for_tcp;
	int ch;

	while ((ch = getopt(argc, argv, "n:p:r:w:")) != -1) {
		switch (ch) {
		case 'n':
			c.streams = number(optarg, NETTEST_STREAMS);
			break;
		case 'p':
			(void)number(optarg, UINT16_MAX);
			c.port = optarg;
			break;
		case 'r':
			c.rate = number(optarg, 1000000000);
			break;
		case 'w':
			c.chunk = number(optarg, NETTEST_CHUNK);
			break;
		default:
			usage();
		}
	}
	argc -= optind;
	argv += optind;
	if (argc < 1)
		usage();
	what = argv[0];
	c.address = argv[1];
	nettest_pattern_init();
	/* A peer that is gone is an error of write(2). */
	(void)signal(SIGPIPE, SIG_IGN);
	for_tcp = c.streams != 0 || c.chunk != 0;
	if (strcmp(what, "serve") == 0 && argc <= 2 && !for_tcp && c.rate == 0)
		nettest_serve(c.address, c.port);
	else if (strcmp(what, "udp") == 0 && argc == 4 && !for_tcp) {
		c.size = number(argv[2], 65507);
		c.seconds = number(argv[3], 86400);
		nettest_udp(&c);
	} else if (strcmp(what, "tcp") == 0 && argc == 3) {
		if (c.streams == 0)
			c.streams = 1;
		if (c.chunk == 0)
			c.chunk = NETTEST_CHUNK;
		c.seconds = number(argv[2], 86400);
		nettest_tcp(&c);
	} else if (strcmp(what, "rr") == 0 && argc == 3 && !for_tcp) {
		c.seconds = number(argv[2], 86400);
		nettest_rr(&c);
	} else
		usage();
	return (0);
}
