/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The switch with several threads.
 */

#include <sys/cdefs.h>
#include <sys/types.h>
#include <sys/mman.h>
#include <dev/netmap/vale_rate.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atf-c.h>

#include "frame.h"
#include "setting.h"
#include "test.h"
#include "vale_test.h"
#include "wait_until.h"

#define	NSTATIONS	4

/* One port, with a thread that sends and one that receives. */
struct station {
	struct vale_desc	*d;
	unsigned int		 id;
	uint32_t		 nframes;	/* to send */
	bool			 bad_order;
	uint32_t		 received;
	uint32_t		 bytes;
	uint32_t		 next[NSTATIONS + 1];	/* by sender; atomic */
	bool			 stop;		/* atomic */
	uint32_t		 rnd;
};

static struct station station[NSTATIONS];

static unsigned int
rnd(struct station *st)
{
	return (test_random(&st->rnd));
}

static void
stations_open(uint32_t rx_slots)
{
	char name[VALE_NAME_SIZE];
	unsigned int i;

	memset(station, 0, sizeof(station));
	for (i = 0; i < NSTATIONS; i++) {
		snprintf(name, sizeof(name), "valet0:s%u", i);
		station[i].d = t_open(name, 512, rx_slots);
		station[i].id = i;
		station[i].rnd = i + 1;
	}
}

static void
stations_close(void)
{
	unsigned int i;

	for (i = 0; i < NSTATIONS; i++)
		vale_close(station[i].d);
}

static void
start(pthread_t *thread, void *(*func)(void *), struct station *st)
{
	ATF_REQUIRE_EQ(0, pthread_create(thread, NULL, func, st));
}

static void
finish(pthread_t thread)
{
	ATF_REQUIRE_EQ(0, pthread_join(thread, NULL));
}

static void
stop(struct station *st)
{
	__atomic_store_n(&st->stop, true, __ATOMIC_RELEASE);
}

static bool
stopped(struct station *st)
{
	return (__atomic_load_n(&st->stop, __ATOMIC_ACQUIRE));
}

/* Frames of each sender must arrive in the order of their numbers. */
static void
take_all(struct station *st)
{
	struct t_frame f;

	while (t_take(st->d, &f)) {
		ATF_REQUIRE(f.tf_src <= NSTATIONS);
		ATF_REQUIRE_MSG(f.tf_seq >= st->next[f.tf_src],
		    "%u: frame %u of %u comes after %u", st->id, f.tf_seq,
		    f.tf_src, st->next[f.tf_src] - 1);
		__atomic_store_n(&st->next[f.tf_src], f.tf_seq + 1,
		    __ATOMIC_RELAXED);
		st->bytes += f.tf_len;
		st->received++;
	}
}

/* A receiver that sleeps when its ring is empty, until it is stopped. */
static void *
receive(void *arg)
{
	struct station *st = arg;
	struct pollfd pfd = { .fd = st->d->fd, .events = POLLIN };
	bool last;

	do {
		last = stopped(st);
		ATF_REQUIRE_EQ(0, vale_rxsync(st->d));
		take_all(st);
		if (!last && nm_ring_empty(st->d->rxring)) {
			ATF_REQUIRE_EQ(0, vale_rxsync(st->d));
			if (nm_ring_empty(st->d->rxring))
				poll(&pfd, 1, 10);
		}
	} while (!last);
	return (NULL);
}

/* Unicast, unknown addresses, broadcast, jumbo and malformed, in batches. */
static void *
send_mixed(void *arg)
{
	struct station *st = arg;
	struct netmap_ring *ring = st->d->txring;
	uint32_t len, seq = 0;
	unsigned int dst;

	while (seq < st->nframes) {
		do {
			len = rnd(st) % 10 == 0 ? 60 + rnd(st) % 9000 :
			    60 + rnd(st) % 200;
			dst = rnd(st) % (NSTATIONS + 1);
			if (dst == NSTATIONS)
				dst = rnd(st) % 2 == 0 ? EVERYBODY : 12345;
			if (rnd(st) % 50 == 0)
				t_put(st->d, (const uint8_t *)"runt", 5,
				    ring->nr_buf_size, false);
			else
				t_queue(st->d, len, dst, st->id, seq);
			seq++;
		} while (seq < st->nframes && nm_ring_space(ring) > 5 &&
		    rnd(st) % 100 != 0);
		ATF_REQUIRE_EQ(0, vale_txsync(st->d));
	}
	return (NULL);
}

TEST(accounted, "Each frame of four senders is received intact and in order by "
    "four receivers, or counted as dropped")
{
	pthread_t rx[NSTATIONS], tx[NSTATIONS];
	struct vale_desc *d;
	uint64_t copies = 0, drops, flooded, full = 0, received = 0, unicast;
	enum vale_counter c;
	unsigned int i;

	stations_open(128);
	for (i = 0; i < NSTATIONS; i++) {
		station[i].nframes = 50000;
		start(&rx[i], receive, &station[i]);
	}
	for (i = 0; i < NSTATIONS; i++)
		start(&tx[i], send_mixed, &station[i]);
	for (i = 0; i < NSTATIONS; i++)
		finish(tx[i]);
	for (i = 0; i < NSTATIONS; i++) {
		stop(&station[i]);
		finish(rx[i]);
	}
	for (i = 0; i < NSTATIONS; i++) {
		d = station[i].d;
		T_COUNT(d, TX_FRAME, station[i].nframes);
		flooded = t_count(d, VALE_C_TX_FLOOD);
		unicast = t_count(d, VALE_C_TX_COPY) -
		    flooded * (NSTATIONS - 1);
		drops = 0;
		for (c = VALE_C_TX_DROP_RUNT; c <= VALE_C_TX_DROP_LIMIT; c++)
			drops += t_count(d, c);
		ATF_CHECK_EQ(drops, t_count(d, VALE_C_TX_DROP_RUNT) +
		    t_count(d, VALE_C_TX_DROP_SELF));
		ATF_CHECK(t_count(d, VALE_C_TX_DROP_RUNT) > 0);
		ATF_CHECK_EQ(station[i].nframes, flooded + unicast + drops);
		ATF_CHECK_EQ(station[i].received, t_count(d, VALE_C_RX_FRAME));
		ATF_CHECK_EQ(station[i].bytes, t_count(d, VALE_C_RX_BYTE));
		copies += t_count(d, VALE_C_TX_COPY);
		full += t_count(d, VALE_C_RX_DROP_FULL);
		received += station[i].received;
	}
	ATF_CHECK_EQ(copies, received + full);
	stations_close();
}

/* Send frames to station 0 that all fit in its ring, in batches of 1 to 32. */
static void *
send_numbered(void *arg)
{
	struct station *st = arg;
	uint32_t n, seq = 0;

	while (seq < st->nframes) {
		for (n = rnd(st) % 32 + 1; n > 0 && seq < st->nframes; n--) {
			t_queue(st->d, 60 + seq % 300, seq % 8 == 0 ?
			    EVERYBODY : 0, st->id, seq);
			seq++;
		}
		ATF_REQUIRE_EQ(0, vale_txsync(st->d));
	}
	return (NULL);
}

TEST(no_loss, "Three senders fill one ring at once: no frame is lost, "
    "duplicated or out of order")
{
	pthread_t tx[NSTATIONS];
	uint32_t n = 16380 / (NSTATIONS - 1), round;
	unsigned int i;

	stations_open(16384);
	t_send(station[0].d, 60, EVERYBODY, 0, 0);
	for (round = 0; round < 3; round++) {
		for (i = 1; i < NSTATIONS; i++) {
			station[i].nframes = n;
			start(&tx[i], send_numbered, &station[i]);
		}
		for (i = 1; i < NSTATIONS; i++)
			finish(tx[i]);
		memset(station[0].next, 0, sizeof(station[0].next));
		ATF_REQUIRE_EQ(0, vale_rxsync(station[0].d));
		ATF_CHECK_EQ((NSTATIONS - 1) * n,
		    nm_ring_space(station[0].d->rxring));
		take_all(&station[0]);
		ATF_CHECK_EQ((round + 1) * (NSTATIONS - 1) * n,
		    station[0].received);
		for (i = 1; i < NSTATIONS; i++) {
			ATF_CHECK_EQ(n, station[0].next[i]);
			t_drain(station[i].d);
		}
		t_expect_none(station[0].d);
	}
	T_COUNT(station[0].d, RX_DROP_FULL, 0);
	stations_close();
}

/*
 * Memory that a reader must wait for: a page without access, and a handler that
 * reports the access and waits until it may go on.
 */
static uint8_t *slow_mem;
static size_t slow_size;
static int slow_touched[2], slow_ready[2];	/* pipes */

static void
slow_fault(int sig __unused)
{
	char c = 0;

	if (write(slow_touched[1], &c, 1) != 1 ||
	    read(slow_ready[0], &c, 1) != 1 ||
	    mprotect(slow_mem, slow_size, PROT_READ) == -1)
		_exit(1);
}

static void *
send_slow(void *arg)
{
	struct station *st = arg;

	ATF_REQUIRE_EQ(0, vale_txsync(st->d));
	return (NULL);
}

/* A sink that takes a frame, and slow memory away. */
static void
take_away(void *arg __unused, struct frame_source *frames)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };

	ATF_REQUIRE(frame_peek(frames, &frame));
	frame_next(frames);
	ATF_REQUIRE_EQ(0, mprotect(slow_mem, slow_size, PROT_NONE));
}

/* A sink that takes a frame, after so long that sleeps are looked for then. */
static void
take_late(void *arg __unused, struct frame_source *frames)
{
	const struct timespec pause = { 1, 0 };
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };

	ATF_REQUIRE(frame_peek(frames, &frame));
	frame_next(frames);
	nanosleep(&pause, NULL);
}

/* A sink that takes no frame. */
static unsigned int asked;		/* atomic */

static void
take_none(void *arg __unused, struct frame_source *frames __unused)
{
	__atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
}

static int
list_nothing(const struct vale_port_info *info __unused, void *arg __unused)
{
	return (0);
}

/*
 * What does not wait for a sender that waits; if that is not in the switch, nor
 * do changes.
 */
static void
others_go_on(bool change)
{
	const struct vale_params monitor = { .monitor = VALE_MIRROR_BOTH };
	const char *const name = station[1].d->common->name;
	uint64_t counters[VALE_NCOUNTERS];
	struct vale_desc *d;

	ATF_CHECK_EQ(0, vale_list(NULL, list_nothing, NULL));
	ATF_CHECK_EQ(0, vale_port_counters(name, counters));
	ATF_CHECK_EQ(0, vale_set(name, "rate", "0"));
	ATF_CHECK_EQ(0, vale_set(name, "weight", "1"));
	d = t_open("valeother:a", 64, 64);
	ATF_CHECK_EQ(0, vale_set(d->common->name, "private", "on"));
	vale_close(d);
	if (!change)
		return;
	d = vale_open(name, &monitor);
	ATF_REQUIRE(d != NULL);
	vale_close(d);
	d = t_open("valet0:more", 64, 64);
	ATF_CHECK_EQ(0, vale_set_header(d, VALE_HEADER_FRAME));
	ATF_CHECK_EQ(0, vale_set(d->common->name, "private", "on"));
	ATF_CHECK_EQ(0, setting_mirror(d->common->name, name, VALE_MIRROR_TX));
	ATF_CHECK_EQ(0, vale_set_sink(d, take_none, NULL));
	vale_close(d);
}

/*
 * A sender waits for a page: it goes away before the batch (early) or, by a
 * sink, after the pages were touched and before the copy.
 */
static void
wait_for_page(bool early)
{
	const struct timespec pause = { 0, 500000000 };
	struct sigaction sa;
	struct t_frame f;
	pthread_t tx;
	struct netmap_slot *slot;
	struct vale_desc *d;
	uint8_t frame[1000];
	uint32_t n, seq;
	char c = 0;

	stations_open(256);
	t_send(station[0].d, 60, EVERYBODY, 0, 0);
	slow_size = (size_t)sysconf(_SC_PAGESIZE);
	slow_mem = mmap(NULL, slow_size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANON, -1, 0);
	ATF_REQUIRE(slow_mem != MAP_FAILED);
	ATF_REQUIRE(pipe(slow_touched) == 0 && pipe(slow_ready) == 0);
	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = slow_fault;
	ATF_REQUIRE_EQ(0, sigaction(SIGSEGV, &sa, NULL));
	ATF_REQUIRE_EQ(0, sigaction(SIGBUS, &sa, NULL));

	/* Station 1: a frame, one with its second part in slow memory, two. */
	d = station[1].d;
	if (!early) {
		t_send(station[3].d, 60, 0, 3, 0);
		t_drain(station[0].d);
		t_drain(station[3].d);
		t_expect_none(station[3].d);
		ATF_REQUIRE_EQ(0, vale_set_sink(station[3].d, take_late,
		    NULL));
		t_send(d, 60, 3, 1, 0);
		T_COUNT(d, TX_SLOW, 0);
		ATF_REQUIRE_EQ(0, vale_set_sink(station[3].d, take_away,
		    NULL));
		t_queue(d, 60, 3, 1, 0);
		ATF_REQUIRE_EQ(0, vale_set_sink(station[0].d, take_none,
		    NULL));
	}
	t_queue(d, 60, 0, 1, 0);
	t_make(frame, sizeof(frame), 0, 1, 1);
	memcpy(slow_mem, frame + 100, sizeof(frame) - 100);
	slot = &d->txring->slot[d->txring->head];
	t_put(d, frame, 100, 100, false);
	slot->flags |= NS_MOREFRAG;
	t_put(d, slow_mem, sizeof(frame) - 100, sizeof(frame) - 100, true);
	t_queue(d, 60, 0, 1, 2);
	t_queue(d, 60, 0, 1, 3);
	if (early)
		ATF_REQUIRE_EQ(0, mprotect(slow_mem, slow_size, PROT_NONE));
	start(&tx, send_slow, &station[1]);
	ATF_REQUIRE_EQ(1, read(slow_touched[0], &c, 1));

	/* It waits.  Others send more frames than the ring has slots. */
	for (seq = 0; seq < 600; seq++) {
		t_send(station[2].d, 60, 0, 2, seq);
		t_send(station[3].d, 60, 0, 3, seq);
	}
	if (early) {
		/* Nobody waits for it. */
		ATF_REQUIRE_EQ(0, vale_rxsync(station[0].d));
		for (n = 0; n < 255; n++) {
			ATF_REQUIRE(t_take(station[0].d, &f));
			ATF_CHECK_EQ(2 + n % 2, f.tf_src);
			ATF_CHECK_EQ(n / 2, f.tf_seq);
		}
		t_expect_none(station[0].d);
	} else {
		/* Its slots come first; so no sink is called meanwhile. */
		ATF_CHECK_EQ(1, __atomic_load_n(&asked, __ATOMIC_RELAXED));
		t_expect_none(station[0].d);
		ATF_CHECK(!t_readable(station[0].d));
	}
	t_send(station[3].d, 60, 2, 3, 600);
	ATF_CHECK(t_drain(station[2].d) > 0);
	others_go_on(early);

	/* Long enough to count as slow. */
	nanosleep(&pause, NULL);
	ATF_REQUIRE_EQ(1, write(slow_ready[1], &c, 1));
	finish(tx);
	T_COUNT(d, TX_SLOW, early ? 0 : 1);
	ATF_CHECK(t_readable(station[0].d));
	ATF_REQUIRE_EQ(0, vale_rxsync(station[0].d));
	for (n = 0; n < 4; n++) {
		ATF_REQUIRE(t_take(station[0].d, &f));
		ATF_CHECK_EQ(1, f.tf_src);
		ATF_CHECK_EQ(n, f.tf_seq);
		ATF_CHECK_EQ(n == 1 ? sizeof(frame) : 60, f.tf_len);
	}
	for (n = 0; !early && n < 255 - 4; n++) {
		ATF_REQUIRE(t_take(station[0].d, &f));
		ATF_CHECK_EQ(2 + n % 2, f.tf_src);
		ATF_CHECK_EQ(n / 2, f.tf_seq);
	}
	t_expect_none(station[0].d);
	T_COUNT(station[0].d, RX_DROP_FULL, 1200 - (early ? 255 : 255 - 4));
	T_COUNT(station[0].d, RX_WAKE, 2);
	munmap(slow_mem, slow_size);
	stations_close();
}

/*
 * Send one or a few frames at a time, never more than fit, to a receiver that
 * sleeps most of the time.
 */
static void *
send_slowly(void *arg)
{
	struct station *st = arg;
	uint32_t n, seq = 0;

	while (seq < st->nframes) {
		for (n = rnd(st) % 4 == 0 ? rnd(st) % 16 + 1 : 1;
		    n > 0 && seq < st->nframes; n--)
			t_queue(st->d, 60, 0, st->id, seq++);
		ATF_REQUIRE_EQ(0, vale_txsync(st->d));
		wait_until(seq - __atomic_load_n(&station[0].next[st->id],
		    __ATOMIC_RELAXED) <= 100 || stopped(st),
		    "%u of %u frames received",
		    __atomic_load_n(&station[0].next[st->id],
		    __ATOMIC_RELAXED), seq);
		for (n = rnd(st) % 64; n > 40; n--)
			sched_yield();
	}
	return (NULL);
}

/*
 * Wait, sync, and take all frames, or only some; sync only after a wakeup.
 */
static void *
receive_asleep(void *arg)
{
	struct station *st = arg;
	struct t_frame f;
	uint32_t n;

	while (st->received < st->nframes) {
		wait_readable(st->d->fd, "asleep with %u of %u frames",
		    st->received, st->nframes);
		ATF_REQUIRE_EQ(0, vale_rxsync(st->d));
		for (n = rnd(st) % 8 == 0 ? rnd(st) % 4 : UINT32_MAX;
		    n > 0 && t_take(st->d, &f); n--) {
			if (f.tf_seq != st->next[f.tf_src])
				st->bad_order = true;
			__atomic_store_n(&st->next[f.tf_src], f.tf_seq + 1,
			    __ATOMIC_RELAXED);
			st->received++;
		}
		if (rnd(st) % 16 == 0)
			sched_yield();
	}
	return (NULL);
}

TEST(slow_source, "While a sender waits for a page of its frames, others send "
    "and receive")
{
	wait_for_page(true);
}

TEST(slow_copy, "A sender whose page goes away later does not delay other "
    "senders, and its frames keep their place")
{
	wait_for_page(false);
}

TEST_WITH(wakeups, "timeout", "600", "A receiver that syncs only after a "
    "wakeup, and at times leaves frames, gets all frames of three senders")
{
	pthread_t rx, tx[NSTATIONS];
	uint32_t n = 30000;
	unsigned int i;

	/* Slots for the frames under way, and for as many not released yet. */
	stations_open(2048);
	t_send(station[0].d, 60, EVERYBODY, 0, 0);
	station[0].nframes = (NSTATIONS - 1) * n;
	start(&rx, receive_asleep, &station[0]);
	for (i = 1; i < NSTATIONS; i++) {
		station[i].nframes = n;
		start(&tx[i], send_slowly, &station[i]);
	}
	finish(rx);
	for (i = 1; i < NSTATIONS; i++) {
		stop(&station[i]);
		finish(tx[i]);
	}
	ATF_CHECK(!station[0].bad_order);
	ATF_CHECK_EQ(station[0].nframes, station[0].received);
	T_COUNT(station[0].d, RX_FRAME, station[0].nframes);
	T_COUNT(station[0].d, RX_DROP_FULL, 0);
	/* There was a frame after each wakeup. */
	ATF_CHECK(t_count(station[0].d, VALE_C_RX_WAKE) <=
	    t_count(station[0].d, VALE_C_RX_BATCH));
	t_expect_none(station[0].d);
	t_expect_none(station[0].d);
	ATF_CHECK(!t_readable(station[0].d));
	stations_close();
}

/*
 * Open ports, and monitors of the stations; send a frame from each port, change
 * settings that the stations' frames do not depend on, and close them.
 */
static void *
come_and_go(void *arg)
{
	const struct vale_params small = { .tx_slots = 16, .rx_slots = 16 };
	const struct vale_params monitor = { .rx_slots = 512,
	    .monitor = VALE_MIRROR_BOTH };
	struct station *st = arg;
	struct vale_desc *d[3], *m;
	char name[VALE_NAME_SIZE];
	unsigned int i, round;

	for (round = 0; round < st->nframes; round++) {
		snprintf(name, sizeof(name), "valet0:s%u", round % NSTATIONS);
		m = vale_open(name, &monitor);
		ATF_REQUIRE(m != NULL);
		ATF_REQUIRE_EQ(0, setting_to(name, "weight", "%u", 1 + round %
		    9));
		ATF_REQUIRE_EQ(0, setting_to("valet0", "batch", "%u", 1 +
		    round));
		for (i = 0; i < 3; i++) {
			snprintf(name, sizeof(name), "valet0:new%u", i);
			d[i] = vale_open(name, &small);
			ATF_REQUIRE(d[i] != NULL);
			t_send(d[i], 60, round % 2 == 0 ? 12345 : 0,
			    NSTATIONS, round * 3 + i);
		}
		ATF_REQUIRE_EQ(0, vale_set(name, "private", round % 2 == 0 ?
		    "on" : "off"));
		ATF_REQUIRE_EQ(0, setting_mirror(name, "valet0:s1", round % 4));
		/* Its frames are whole: t_drain() checks them. */
		t_drain(m);
		vale_close(m);
		for (i = 0; i < 3; i++)
			vale_close(d[(i + round) % 3]);
	}
	return (NULL);
}

TEST_WITH(churn, "timeout", "600", "While ports are opened and closed, others "
    "lose no frame")
{
	pthread_t churn, rx, tx[NSTATIONS];
	uint32_t n = 6000;
	unsigned int i, j;

	stations_open(16384);
	t_send(station[0].d, 60, EVERYBODY, 0, 0);
	/* come_and_go() uses stations of its own. */
	station[0].nframes = 300;
	start(&churn, come_and_go, &station[0]);
	start(&rx, receive, &station[0]);
	for (i = 1; i < NSTATIONS; i++) {
		station[i].nframes = n;
		start(&tx[i], send_slowly, &station[i]);
	}
	for (i = 1; i < NSTATIONS; i++)
		finish(tx[i]);
	finish(churn);
	stop(&station[0]);
	finish(rx);
	for (i = 1; i < NSTATIONS; i++) {
		ATF_CHECK_EQ(n, station[0].next[i]);
		T_COUNT(station[i].d, TX_FRAME, n);
	}
	T_COUNT(station[0].d, RX_FRAME, station[0].received);
	T_COUNT(station[0].d, RX_DROP_FULL, 0);
	/* Those of the three senders, and three of each round. */
	ATF_CHECK_EQ((NSTATIONS - 1) * n + 3 * 300, station[0].received);
	ATF_CHECK_EQ(3 * 300, station[0].next[NSTATIONS]);
	/* No closed port is still learned. */
	for (i = 0; i < NSTATIONS; i++)
		t_drain(station[i].d);
	for (j = 1; j < NSTATIONS; j++) {
		t_send(station[j].d, 60, NSTATIONS, j, n);
		t_expect(station[0].d, 60, j, n);
	}
	stations_close();
}

TEST_PROGRAM
