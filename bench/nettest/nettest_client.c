/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The tests, as the client runs them.
 */

#include <sys/types.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nettest.h"

#define	SECOND		1000000000ULL	/* ns */
#define	SLEEP_MIN	200000		/* ns: a sleep may take so much longer */

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (ts.tv_sec * SECOND + ts.tv_nsec);
}

/* A connection for a test, which the server knows of. */
static int
begin(const struct nettest_client *c, const char *test)
{
	int fd;

	fd = nettest_socket(c->address, c->port, SOCK_STREAM, 0, connect);
	if (nettest_write(fd, test, strlen(test)) == -1)
		err(1, "%s", c->address);
	return (fd);
}

/* The server's answer. */
static void
answer(int fd, char line[NETTEST_LINE])
{
	if (nettest_read_line(fd, line) == -1)
		errx(1, "the server has ended the test");
}

/*
 * Wait until packet or transaction `n' is due: asleep if there is time, so that the
 * processor's time is that of the packets.  Returns the time.
 */
static uint64_t
pace(uint64_t start, uint64_t n, unsigned int rate)
{
	uint64_t due = start + n * SECOND / rate, now;
	struct timespec ts;

	while ((now = now_ns()) < due) {
		if (due - now < SLEEP_MIN) {
			sched_yield();
			continue;
		}
		ts.tv_sec = (due - now) / SECOND;
		ts.tv_nsec = (due - now) % SECOND;
		(void)nanosleep(&ts, NULL);
	}
	return (now);
}

void
nettest_udp(const struct nettest_client *c)
{
	uint64_t bytes, end, full = 0, n, now, received, sent = 0, start;
	char line[NETTEST_LINE];
	int fd, ufd;

	fd = begin(c, "udp\n");
	answer(fd, line);
	if (strcmp(line, "ready") != 0)
		errx(1, "the server is busy");
	ufd = nettest_socket(c->address, c->port, SOCK_DGRAM, 0, connect);
	start = now = now_ns();
	end = start + c->seconds * SECOND;
	for (n = 0; now < end; n++) {
		if (c->rate != 0)
			now = pace(start, n, c->rate);
		else if (n % 16 == 0)
			now = now_ns();
		if (send(ufd, nettest_pattern(n), c->size, 0) != -1)
			sent++;
		else if (errno == ENOBUFS)
			full++;
		else
			err(1, "%s", c->address);
	}
	now = now_ns();
	if (nettest_write(fd, "end\n", 4) == -1)
		err(1, "%s", c->address);
	answer(fd, line);
	if (sscanf(line, "%" SCNu64 " %" SCNu64, &received, &bytes) != 2 ||
	    bytes != received * c->size)
		errx(1, "wrong datagrams: %s", line);
	printf("udp size=%u seconds=%.3f sent=%" PRIu64 " full=%" PRIu64
	    " received=%" PRIu64 "\n", c->size, (now - start) / 1e9, sent,
	    full, received);
}

struct stream {
	const struct nettest_client *client;
	pthread_t	 thread;
	int		 fd;
	uint64_t	 end;		/* stop sending */
	uint64_t	 bytes;
};

static void *
stream_main(void *arg)
{
	struct stream *s = arg;
	uint64_t received;
	char line[NETTEST_LINE], result[NETTEST_LINE];

	for (; now_ns() < s->end; s->bytes += s->client->chunk)
		if (nettest_write(s->fd, nettest_pattern(s->bytes),
		    s->client->chunk) == -1)
			err(1, "%s", s->client->address);
	if (shutdown(s->fd, SHUT_WR) == -1)
		err(1, "%s", s->client->address);
	answer(s->fd, line);
	if (sscanf(line, "%" SCNu64 " %63s", &received, result) != 2 ||
	    received != s->bytes || strcmp(result, "ok") != 0)
		errx(1, "sent %" PRIu64 " bytes, received %s", s->bytes, line);
	return (NULL);
}

void
nettest_tcp(const struct nettest_client *c)
{
	struct stream s[NETTEST_STREAMS];
	uint64_t bytes = 0, start;
	unsigned int i;
	int error;

	for (i = 0; i < c->streams; i++) {
		s[i] = (struct stream){ .client = c, .fd = begin(c, "tcp\n") };
		if (c->rate != 0 && setsockopt(s[i].fd, SOL_SOCKET,
		    SO_MAX_PACING_RATE, &c->rate, sizeof(c->rate)) == -1)
			err(1, "SO_MAX_PACING_RATE");
	}
	start = now_ns();
	for (i = 0; i < c->streams; i++) {
		s[i].end = start + c->seconds * SECOND;
		error = pthread_create(&s[i].thread, NULL, stream_main, &s[i]);
		if (error != 0)
			errx(1, "thread: %s", strerror(error));
	}
	for (i = 0; i < c->streams; i++) {
		(void)pthread_join(s[i].thread, NULL);
		bytes += s[i].bytes;
	}
	printf("tcp streams=%u seconds=%.3f bytes=%" PRIu64 "\n", c->streams,
	    (now_ns() - start) / 1e9, bytes);
}

/* How long each transaction took, in ns. */
struct times {
	uint64_t	*ns;
	size_t		 n;
	size_t		 max;		/* entries of ns */
};

static void
times_add(struct times *t, uint64_t ns)
{
	if (t->n == t->max) {
		t->max = t->max == 0 ? 65536 : 2 * t->max;
		t->ns = realloc(t->ns, t->max * sizeof(*t->ns));
		if (t->ns == NULL)
			err(1, NULL);
	}
	t->ns[t->n++] = ns;
}

static int
times_compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y ? -1 : x > y);
}

/* The time, in us, that `percent' percent of the sorted ones do not exceed. */
static double
times_percentile(const struct times *t, unsigned int percent)
{
	return (t->n == 0 ? 0 : t->ns[(t->n - 1) * percent / 100] / 1e3);
}

void
nettest_rr(const struct nettest_client *c)
{
	struct times times = { NULL, 0, 0 };
	uint64_t begun, end, now, start;
	char byte = 0;
	int fd, on = 1;

	fd = begin(c, "rr\n");
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	start = now = now_ns();
	end = start + c->seconds * SECOND;
	while (now < end) {
		if (c->rate != 0)
			now = pace(start, times.n, c->rate);
		begun = now;
		if (nettest_write(fd, &byte, 1) == -1 ||
		    read(fd, &byte, 1) != 1)
			errx(1, "%s: no answer", c->address);
		now = now_ns();
		times_add(&times, now - begun);
	}
	qsort(times.ns, times.n, sizeof(*times.ns), times_compare);
	printf("rr seconds=%.3f transactions=%zu p50_us=%.1f p99_us=%.1f\n",
	    (now - start) / 1e9, times.n, times_percentile(&times, 50),
	    times_percentile(&times, 99));
	free(times.ns);
}
