/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Ports are opened and closed while others send, for as many seconds as the
 * first argument says.  Two ports stay and send numbered frames to each other,
 * one batch after another; two threads open ports on the same switch, send to
 * all, and close them.  Every frame between the two that stay arrives, with
 * ascending numbers, or is counted as dropped because the ring is full.  In the
 * end no other port is left, and the memory of the process has not grown.
 */

#include <sys/param.h>

#include <err.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <libvale.h>

#define	STAYING		2
#define	COMING		2
#define	BATCH		64		/* frames in a sync */
#define	FRAME		60		/* bytes */
#define	NUMBER_OFF	14
/* For the rings of new ports; sanitizers need more, see the Makefile. */
#ifndef SLACK_KB
#define	SLACK_KB	4096
#endif

static struct station {
	struct vale_desc *d;
	uint8_t		 addr;
	uint64_t	 sent;
	uint64_t	 received;	/* from the other that stays */
	uint64_t	 next;		/* the lowest number that may follow */
	uint64_t	 others;	/* from those that come and go */
} staying[STAYING];
static uint64_t came[COMING];
static bool stop;

static void
put(struct vale_desc *d, uint8_t dst, uint8_t src, uint64_t number)
{
	struct netmap_ring *ring = d->txring;
	struct netmap_slot *slot = &ring->slot[ring->head];
	uint8_t *p = (uint8_t *)NETMAP_BUF(ring, slot->buf_idx);

	memset(p, 0, FRAME);
	p[0] = dst == 0xff ? 0xff : 2;
	memset(p + 1, dst == 0xff ? 0xff : 0, 4);
	p[5] = dst;
	p[6] = 2;
	p[11] = src;
	memcpy(p + NUMBER_OFF, &number, sizeof(number));
	slot->len = FRAME;
	ring->head = ring->cur = nm_ring_next(ring, ring->head);
}

static void
take(struct station *s, uint8_t peer)
{
	struct netmap_ring *ring = s->d->rxring;
	const uint8_t *p;
	uint64_t number;

	if (vale_rxsync(s->d) == -1)
		err(1, "rxsync");
	for (; !nm_ring_empty(ring);
	    ring->head = ring->cur = nm_ring_next(ring, ring->head)) {
		p = (uint8_t *)NETMAP_BUF(ring,
		    ring->slot[ring->head].buf_idx);
		if (ring->slot[ring->head].len != FRAME)
			errx(1, "a frame of %u bytes",
			    ring->slot[ring->head].len);
		if (p[11] != peer) {
			s->others++;
			continue;
		}
		memcpy(&number, p + NUMBER_OFF, sizeof(number));
		if (number < s->next)
			errx(1, "number %ju after %ju", (uintmax_t)number,
			    (uintmax_t)s->next - 1);
		s->next = number + 1;
		s->received++;
	}
}

static void *
stay(void *arg)
{
	struct station *s = arg;
	uint8_t peer = s == staying ? 2 : 1;
	int i;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		for (i = 0; i < BATCH; i++)
			put(s->d, peer, s->addr, s->sent++);
		if (vale_txsync(s->d) == -1)
			err(1, "txsync");
		take(s, peer);
	}
	return (NULL);
}

static void *
come_and_go(void *arg)
{
	const struct vale_params params = { .tx_slots = 128, .rx_slots = 128 };
	uint64_t *n = arg;
	struct vale_desc *d;
	char name[32];
	int i, sync;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		snprintf(name, sizeof(name), "vale0:guest%td-%d", n - came,
		    (int)(*n % 5));
		d = vale_open(name, &params);
		if (d == NULL)
			err(1, "%s", name);
		for (sync = 0; sync < (int)(*n % 7); sync++) {
			for (i = 0; i < BATCH; i++)
				put(d, i % 8 == 0 ? 0xff : i % 4, 100 + i, i);
			if (vale_txsync(d) == -1 || vale_rxsync(d) == -1)
				err(1, "%s: sync", name);
			d->rxring->head = d->rxring->cur = d->rxring->tail;
		}
		vale_close(d);
		++*n;
	}
	return (NULL);
}

static long
memory_kb(void)
{
	long pages;
	FILE *f;

	f = fopen("/proc/self/statm", "r");
	if (f == NULL || fscanf(f, "%*d %ld", &pages) != 1)
		errx(1, "statm");
	fclose(f);
	return (pages * (sysconf(_SC_PAGESIZE) / 1024));
}

static uint64_t
count(const struct station *s, enum vale_counter c)
{
	uint64_t counters[VALE_NCOUNTERS];

	if (vale_port_counters(s->d->common->name, counters) == -1)
		err(1, "%s", s->d->common->name);
	return (counters[c]);
}

static int
count_port(const struct vale_port_info *pi __unused, void *arg)
{
	++*(int *)arg;
	return (0);
}

static void
check(void)
{
	struct station *s;
	int i, n;

	n = 0;
	vale_list(NULL, count_port, &n);
	if (n != STAYING)
		errx(1, "%d ports are left", n);
	for (i = 0; i < STAYING; i++) {
		s = &staying[i];
		take(s, 3 - s->addr);
		if (count(s, VALE_C_TX_FRAME) != s->sent)
			errx(1, "%s: sent %ju, counted %ju", s->d->common->name,
			    (uintmax_t)s->sent,
			    (uintmax_t)count(s, VALE_C_TX_FRAME));
		if (count(s, VALE_C_RX_FRAME) != s->received + s->others)
			errx(1, "%s: received %ju and %ju, counted %ju",
			    s->d->common->name, (uintmax_t)s->received,
			    (uintmax_t)s->others,
			    (uintmax_t)count(s, VALE_C_RX_FRAME));
		/* A frame that the other sent was received or dropped here. */
		if (staying[1 - i].sent > s->received +
		    count(s, VALE_C_RX_DROP_FULL))
			errx(1, "%s: %ju of %ju are missing",
			    s->d->common->name,
			    (uintmax_t)(staying[1 - i].sent - s->received -
			    count(s, VALE_C_RX_DROP_FULL)),
			    (uintmax_t)staying[1 - i].sent);
	}
}

int
main(int argc, char **argv)
{
	pthread_t threads[STAYING + COMING];
	struct timespec second = { 1, 0 };
	long before, now;
	int i, s, seconds;

	seconds = argc == 2 ? MAX(atoi(argv[1]), 2) : 20;
	staying[0].d = vale_open("vale0:one", NULL);
	staying[1].d = vale_open("vale0:two", NULL);
	for (i = 0; i < STAYING; i++) {
		if (staying[i].d == NULL)
			err(1, "vale_open");
		staying[i].addr = i + 1;
	}
	for (i = 0; i < STAYING; i++)
		if (pthread_create(&threads[i], NULL, stay, &staying[i]) != 0)
			errx(1, "pthread_create");
	for (i = 0; i < COMING; i++)
		if (pthread_create(&threads[STAYING + i], NULL, come_and_go,
		    &came[i]) != 0)
			errx(1, "pthread_create");
	before = 0;
	for (s = 0; s < seconds; s++) {
		nanosleep(&second, NULL);
		now = memory_kb();
		if (s == seconds / 4)
			before = now;
		if (before != 0 && now > before + SLACK_KB)
			errx(1, "memory: %ld KB, now %ld KB", before, now);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < STAYING + COMING; i++)
		pthread_join(threads[i], NULL);
	check();
	printf("%d s: %ju and %ju frames sent, %ju and %ju received; "
	    "%ju ports came; memory %ld KB, then %ld KB\n", seconds,
	    (uintmax_t)staying[0].sent, (uintmax_t)staying[1].sent,
	    (uintmax_t)staying[0].received, (uintmax_t)staying[1].received,
	    (uintmax_t)(came[0] + came[1]), before, memory_kb());
	for (i = 0; i < STAYING; i++)
		vale_close(staying[i].d);
	return (0);
}
