/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See bench.h.  All threads of a run start together, at a barrier; the run ends
 * with the last of them.
 */

#include <sys/socket.h>

#include <err.h>
#include <errno.h>
#include <ifaddrs.h>

#include <linux/if_link.h>
#include <linux/if_packet.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "libvale.h"

#define	RUN_NS		2000000		/* length of a run */
#define	ROUNDS		21		/* of one run each */
#define	FRAMES_MIN	4096		/* of a run and a thread */
#define	TRIPS_MAX	1000000
#define	TRIP_MS		100		/* until a frame counts as lost */
#define	LOST_MAX	50		/* in a row */

/* One run of all threads. */
struct crew {
	pthread_barrier_t start;
	bench_run_t	*run;		/* NULL: end */
	void		*arg;
	uint64_t	 frames;	/* for each */
};

struct member {
	struct crew	*crew;
	unsigned int	 thread;
	pthread_t	 id;
};

uint64_t
bench_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (ts.tv_sec * 1000000000ULL + ts.tv_nsec);
}

void
bench_guard(const char *name, const uint8_t source[6])
{
	char text[18];

	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x",
	    source[0], source[1], source[2], source[3], source[4], source[5]);
	if (vale_set(name, "vlan", "10") == -1 ||
	    vale_set(name, "source", text) == -1)
		errx(1, "%s: %s", name, vale_error());
}

uint32_t
bench_number(const char *s, uint32_t min, uint32_t max)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(s, &end, 10);
	if (errno != 0 || end == s || *end != '\0' || n < min || n > max)
		errx(1, "%s: not from %u to %u", s, min, max);
	return (n);
}

void
bench_pin(unsigned int n)
{
	cpu_set_t all, one;
	int cpu;

	if (sched_getaffinity(0, sizeof(all), &all) == -1)
		err(1, "processors");
	n %= CPU_COUNT(&all);
	for (cpu = 0; !CPU_ISSET(cpu, &all) || n-- > 0; cpu++)
		continue;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (pthread_setaffinity_np(pthread_self(), sizeof(one), &one) != 0)
		errx(1, "cannot bind a thread to processor %d", cpu);
}

static void *
member_main(void *arg)
{
	struct member *m = arg;
	struct crew *crew = m->crew;

	bench_pin(m->thread);
	for (;;) {
		pthread_barrier_wait(&crew->start);
		if (crew->run == NULL)
			return (NULL);
		crew->run(crew->arg, m->thread, crew->frames);
		pthread_barrier_wait(&crew->start);
	}
}

/* Returns nanoseconds. */
static uint64_t
crew_run(struct crew *crew, bench_run_t *run, void *arg, uint64_t frames)
{
	uint64_t ns;

	crew->run = run;
	crew->arg = arg;
	crew->frames = frames;
	pthread_barrier_wait(&crew->start);
	ns = bench_now_ns();
	if (run == NULL)
		return (0);
	run(arg, 0, frames);
	pthread_barrier_wait(&crew->start);
	return (bench_now_ns() - ns);
}

/* Returns how many frames a thread passes in about RUN_NS. */
static uint64_t
crew_frames(struct crew *crew, bench_run_t *run, void *arg)
{
	uint64_t frames, ns;

	for (frames = FRAMES_MIN;; frames *= 2) {
		ns = crew_run(crew, run, arg, frames);
		if (ns >= RUN_NS / 2)
			return (frames * RUN_NS / ns);
	}
}

uint32_t
bench_arrived(const char *ifname)
{
	const struct rtnl_link_stats *stats;
	struct ifaddrs *all, *ifa;
	uint32_t n = 0;

	if (getifaddrs(&all) == -1)
		err(1, "getifaddrs");
	for (ifa = all; ifa != NULL; ifa = ifa->ifa_next) {
		if (ifa->ifa_addr == NULL || ifa->ifa_data == NULL ||
		    ifa->ifa_addr->sa_family != AF_PACKET ||
		    strcmp(ifa->ifa_name, ifname) != 0)
			continue;
		stats = ifa->ifa_data;
		n = stats->rx_packets;
	}
	freeifaddrs(all);
	return (n);
}

static int
compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x < *y ? -1 : *x > *y);
}

static double
median(double *v, int n)
{
	qsort(v, n, sizeof(*v), compare);
	return (v[n / 2]);
}

void
bench_trips(bench_trip_t *trip, void *arg, uint64_t ns)
{
	double *us = calloc(TRIPS_MAX, sizeof(*us));
	uint64_t begin = 0, end, start;
	unsigned int lost = 0;
	uint32_t i;
	int n = 0;

	if (us == NULL)
		err(1, NULL);
	for (i = 0; n < TRIPS_MAX; i++) {
		start = bench_now_ns();
		if (!trip(arg, i, TRIP_MS)) {
			if (++lost == LOST_MAX)
				errx(1, "no answer");
			continue;
		}
		end = bench_now_ns();
		us[n++] = (end - start) / 1e3;
		lost = 0;
		if (begin == 0)
			begin = end;
		if (end - begin >= ns)
			break;
	}
	printf("%.2f\n", median(us, n));
	free(us);
}

__attribute__((__noinline__)) void
bench_counted(bench_run_t *run, void *arg, uint64_t frames)
{
	run(arg, 0, frames);
	/* No tail call: callgrind needs this function's end. */
	__asm__ volatile("" ::: "memory");
}

void
bench_measure(const struct bench_what *what, bench_run_t *run,
    bench_run_t *bare, void *arg, uint64_t frames)
{
	double ns[ROUNDS], bare_ns[ROUNDS], ratio[ROUNDS];
	struct member *member;
	struct crew crew;
	uint64_t n, nbare;
	unsigned int i;

	if (frames != 0) {
		bench_counted(run, arg, frames);
		return;
	}
	member = calloc(what->senders, sizeof(*member));
	if (member == NULL)
		err(1, NULL);
	pthread_barrier_init(&crew.start, NULL, what->senders);
	for (i = 1; i < what->senders; i++) {
		member[i].crew = &crew;
		member[i].thread = i;
		if (pthread_create(&member[i].id, NULL, member_main,
		    &member[i]) != 0)
			errx(1, "cannot start a thread");
	}
	bench_pin(0);
	n = crew_frames(&crew, run, arg);
	nbare = crew_frames(&crew, bare, arg);
	for (i = 0; i < ROUNDS; i++) {
		ns[i] = (double)crew_run(&crew, run, arg, n) /
		    (n * what->senders);
		bare_ns[i] = (double)crew_run(&crew, bare, arg, nbare) /
		    (nbare * what->senders);
		ratio[i] = ns[i] / bare_ns[i];
	}
	crew_run(&crew, NULL, NULL, 0);
	for (i = 1; i < what->senders; i++)
		pthread_join(member[i].id, NULL);
	pthread_barrier_destroy(&crew.start);
	free(member);
	printf("%s,%u,%u,%u,%u,%u,%.2f,%.2f,%.2f\n", what->subject,
	    what->bytes, what->batch, what->destinations, what->senders,
	    what->idle, median(ns, ROUNDS), median(bare_ns, ROUNDS),
	    median(ratio, ROUNDS));
}
