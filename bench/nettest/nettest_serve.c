/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The server.  A thread counts datagrams, one system call for each; another one
 * serves each connection.
 */

#include <sys/types.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nettest.h"

#define	QUIET_NS	20000000	/* without a datagram: all are here */

static struct {
	int		 fd;
	atomic_ullong	 datagrams;
	atomic_ullong	 bytes;
	atomic_bool	 busy;		/* a connection counts */
} udp;

static void *
udp_main(void *arg)
{
	static uint8_t buf[NETTEST_CHUNK];
	ssize_t n;

	for (;;) {
		n = recv(udp.fd, buf, sizeof(buf), 0);
		if (n == -1) {
			if (errno == EINTR)
				continue;
			err(1, "datagrams");
		}
		atomic_fetch_add_explicit(&udp.bytes, n, memory_order_relaxed);
		atomic_fetch_add_explicit(&udp.datagrams, 1,
		    memory_order_relaxed);
	}
	return (arg);
}

/* Wait until no datagram has come for a while, and none is queued. */
static void
udp_settle(void)
{
	const struct timespec quiet = { .tv_nsec = QUIET_NS };
	unsigned long long before;
	int queued;

	do {
		before = udp.datagrams;
		(void)nanosleep(&quiet, NULL);
		if (ioctl(udp.fd, FIONREAD, &queued) == -1)
			err(1, "FIONREAD");
	} while (queued != 0 || udp.datagrams != before);
}

static void
serve_udp(int fd)
{
	char line[NETTEST_LINE];
	bool idle = false;

	if (!atomic_compare_exchange_strong(&udp.busy, &idle, true)) {
		(void)nettest_write(fd, "busy\n", 5);
		return;
	}
	/* Nothing of an earlier test counts. */
	udp_settle();
	udp.datagrams = udp.bytes = 0;
	if (nettest_write(fd, "ready\n", 6) == 0 &&
	    nettest_read_line(fd, line) == 0 && strcmp(line, "end") == 0) {
		udp_settle();
		snprintf(line, sizeof(line), "%llu %llu\n", udp.datagrams,
		    udp.bytes);
		(void)nettest_write(fd, line, strlen(line));
	}
	udp.busy = false;
}

static void
serve_tcp(int fd)
{
	uint8_t *buf = malloc(NETTEST_CHUNK);
	char line[NETTEST_LINE];
	uint64_t bytes;
	bool ok = true;
	ssize_t n;

	if (buf == NULL)
		return;
	for (bytes = 0; (n = read(fd, buf, NETTEST_CHUNK)) > 0; bytes += n)
		if (memcmp(buf, nettest_pattern(bytes), n) != 0)
			ok = false;
	free(buf);
	if (n == -1)
		return;
	snprintf(line, sizeof(line), "%" PRIu64 " %s\n", bytes,
	    ok ? "ok" : "corrupt");
	(void)nettest_write(fd, line, strlen(line));
}

static void
serve_rr(int fd)
{
	char c;

	while (read(fd, &c, 1) == 1 && nettest_write(fd, &c, 1) == 0)
		continue;
}

static void *
connection_main(void *arg)
{
	char line[NETTEST_LINE];
	int fd = (intptr_t)arg, on = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (nettest_read_line(fd, line) == 0) {
		if (strcmp(line, "udp") == 0)
			serve_udp(fd);
		else if (strcmp(line, "tcp") == 0)
			serve_tcp(fd);
		else if (strcmp(line, "rr") == 0)
			serve_rr(fd);
	}
	close(fd);
	return (NULL);
}

void
nettest_serve(const char *address, const char *port)
{
	pthread_t thread;
	int error, fd, lfd;

	lfd = nettest_socket(address, port, SOCK_STREAM, AI_PASSIVE, bind);
	udp.fd = nettest_socket(address, port, SOCK_DGRAM, AI_PASSIVE, bind);
	if (listen(lfd, NETTEST_STREAMS) == -1)
		err(1, "listen");
	error = pthread_create(&thread, NULL, udp_main, NULL);
	if (error != 0)
		errx(1, "thread: %s", strerror(error));
	puts("ready");
	fflush(stdout);
	for (;;) {
		fd = accept(lfd, NULL, NULL);
		if (fd == -1) {
			if (errno == ECONNABORTED || errno == EINTR)
				continue;
			err(1, "accept");
		}
		error = pthread_create(&thread, NULL, connection_main,
		    (void *)(intptr_t)fd);
		if (error != 0) {
			warnx("thread: %s", strerror(error));
			close(fd);
		} else
			(void)pthread_detach(thread);
	}
}
