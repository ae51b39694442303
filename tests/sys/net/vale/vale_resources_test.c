/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What ports and switches take from the system: all of it is given back, also
 * if a part of it cannot be had, and an idle port makes no system calls.
 */

#include <sys/param.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atf-c.h>

#include "fail_calls.h"
#include "frame.h"
#include "test.h"
#include "vale_switch.h"
#include "vale_test.h"
#include "wrap.h"

/* FreeBSD has none: vale_region.c. */
#ifndef MAP_NORESERVE
#define	MAP_NORESERVE	0
#endif

static bool	watch;			/* the seed is the same each time */
static int	reads, writes, write_error;
static time_t	skew_s;			/* the clock is ahead */

#define	LOCKED()	fail_held().fhl_locks

WRAP(int, clock_gettime, clockid_t id, struct timespec *ts)
{
	int error;

	error = __real_clock_gettime(id, ts);
	if (error == 0)
		ts->tv_sec += skew_s;
	return (error);
}

/* The same seed each time. */
WRAP(int, getentropy, void *buf, size_t len)
{
	if (FAIL_CALL("getentropy")) {
		errno = EIO;
		return (-1);
	}
	if (!watch)
		return (__real_getentropy(buf, len));
	memset(buf, 0x5a, len);
	return (0);
}

WRAP(ssize_t, read, int fd, void *buf, size_t len)
{
	reads++;
	return (__real_read(fd, buf, len));
}

WRAP(ssize_t, write, int fd, const void *buf, size_t len)
{
	writes++;
	if (write_error != 0) {
		errno = write_error;
		write_error = 0;
		return (-1);
	}
	return (__real_write(fd, buf, len));
}

/*
 * Let each call fail that opens a port.  If there are ports `a' and `b' of its
 * switch, these go on.
 */
static void
fail_each(const char *name, const struct vale_params *params,
    struct vale_desc *a, struct vale_desc *b)
{
	const struct fail_held before = fail_held();
	const char *failed;
	struct vale_desc *d;
	int error;
	uint32_t n = 0;

	do {
		fail_calls(NULL, ++n, 1);
		errno = 0;
		d = vale_open(name, params);
		error = errno;
		fail_calls_end();
		failed = fail_calls_name();
		ATF_CHECK_EQ_MSG(failed == NULL, d != NULL, "%s", failed);
		if (failed != NULL)
			ATF_CHECK_EQ_MSG(strcmp(failed, "getentropy") == 0 ?
			    EIO : strcmp(failed, "eventfd") == 0 ? EMFILE :
			    strcmp(failed, "pthread_mutex_init") == 0 ?
			    EAGAIN : ENOMEM, error, "%s: %d", failed, error);
		else
			vale_close(d);
		if (a != NULL) {
			t_send(a, 60, EVERYBODY, 0, n);
			t_expect(b, 60, 0, n);
		}
		fail_held_check(&before);
	} while (failed != NULL);
	ATF_CHECK_MSG(n > 8, "%u calls", n);
}

TEST(failures, "Without a resource that it needs a port is not opened, and "
    "nothing of it is left")
{
	static const struct vale_insn all[] = { { 0x06, 0, 0, 1 } };
	const struct vale_params monitor = { .monitor = VALE_MIRROR_TX,
	    .filter = all, .filter_len = 1 };
	const struct vale_params two = { .rings = 2 };
	struct vale_desc *a, *b;

	fail_each("valet0:a", NULL, NULL, NULL);
	fail_each("valet0:a", &two, NULL, NULL);
	/* Another port of that switch, and a monitor. */
	a = t_open("valet0:a", 16, 16);
	b = t_open("valet0:b", 16, 16);
	fail_each("valet0:c", NULL, a, b);
	fail_each("valet0:a", &monitor, a, b);
	vale_close(a);
	vale_close(b);
}

TEST(rules, "Of a port's rules only those in force take memory, whatever was "
    "refused, and they go with the port")
{
	static const struct {
		const char *setting, *value;
		int rules;		/* memory in use */
	} rows[] = {
		{ "vlan", "10", 1 }, { "vlan", "4095", 1 }, { "vlan", "20", 1 },
		{ "trunk", "0", 1 }, { "trunk", "10,20", 1 },
		{ "source", "none", 1 }, { "source", "own", 1 },
		{ "source", "02:00:00:00:00:01", 1 }, { "ip", "1", 1 },
		{ "ip", "192.0.2.1", 1 }, { "native", "5000", 1 },
		{ "trunk", "no", 1 }, { "ip", "any", 1 },
		{ "source", "any", 0 }, { "vlan", "0", 0 },
		{ "source", "x", 0 }, { "vlan", "10", 1 },
	};
	struct vale_desc *d;
	unsigned int i;
	int64_t before;

	d = t_open("valet0:a", 16, 16);
	before = fail_allocs();
	for (i = 0; i < nitems(rows); i++) {
		(void)vale_set("valet0:a", rows[i].setting, rows[i].value);
		ATF_CHECK_EQ_MSG(before + rows[i].rules, fail_allocs(),
		    "%s=%s", rows[i].setting, rows[i].value);
	}
	vale_close(d);
}

TEST(rules_failures, "Without memory for its rules a port has those that it "
    "had")
{
	static const struct {
		const char *setting, *before, *value;
	} rows[] = {
		{ "vlan", "10", "20" }, { "trunk", "10", "20" },
		{ "native", "0", "10" },
		{ "source", "any", "02:00:00:00:00:01" },
		{ "ip", "any", "192.0.2.1" },
	};
	char text[VALE_SETTING_SIZE];
	struct vale_desc *d;
	unsigned int i;
	uint32_t n;

	d = t_open("valet0:a", 16, 16);
	for (i = 0; i < nitems(rows); i++) {
		ATF_REQUIRE_EQ(0, vale_set("valet0:a", rows[i].setting,
		    rows[i].before));
		for (n = 1;; n++) {
			fail_calls(NULL, n, 1);
			(void)vale_set("valet0:a", rows[i].setting,
			    rows[i].value);
			if (fail_calls_end() == 0)
				break;
			ATF_CHECK_EQ(ENOMEM, errno);
			ATF_CHECK_STREQ(strerror(ENOMEM), vale_error());
			ATF_REQUIRE_EQ(0, vale_get("valet0:a", rows[i].setting,
			    text, sizeof(text)));
			ATF_CHECK_STREQ(rows[i].before, text);
		}
		ATF_CHECK_MSG(n > 1, "%s", rows[i].setting);
		ATF_REQUIRE_EQ(0, vale_get("valet0:a", rows[i].setting, text,
		    sizeof(text)));
		ATF_CHECK_STREQ(rows[i].value, text);
	}
	vale_close(d);
}

TEST(region, "A port's memory has rings aligned to cache lines and buffers "
    "aligned to pages, and no more")
{
	static const uint32_t slots[][2] = {
		{ 2, 2 }, { 3, 5 }, { 16, 17 }, { 1024, 1000 }, { 16384, 2 },
	};
	const char name[] = "vale0123456789012345678901234567:"
	    "abcdefghijklmnopqrstuvwxyz0123";
	size_t bufs, frames, rx, size, tx;
	struct vale_desc *d;
	unsigned int i;
	char *base;

	for (i = 0; i < nitems(slots); i++) {
		d = t_open(name, slots[i][0], slots[i][1]);
		base = (char *)d->common->nifp;
		ATF_CHECK_EQ(0, (uintptr_t)base % NM_CACHE_ALIGN);
		tx = roundup2(sizeof(struct netmap_if) + 2 * sizeof(ssize_t),
		    NM_CACHE_ALIGN);
		rx = tx + roundup2(sizeof(struct netmap_ring) +
		    slots[i][0] * sizeof(struct netmap_slot), NM_CACHE_ALIGN);
		bufs = rx + roundup2(sizeof(struct netmap_ring) +
		    slots[i][1] * sizeof(struct netmap_slot), NM_CACHE_ALIGN);
		frames = roundup2(bufs, 4096);
		bufs = frames + roundup2((slots[i][0] + slots[i][1]) *
		    sizeof(struct frame), 4096);
		size = bufs + (2 + slots[i][0] + slots[i][1]) * 2048;
		ATF_CHECK_EQ(base + tx, (char *)d->txring);
		ATF_CHECK_EQ(base + rx, (char *)d->rxring);
		ATF_CHECK_EQ(base + frames, (char *)d->txframe);
		ATF_CHECK_EQ(d->txframe + slots[i][0], d->rxframe);
		ATF_CHECK_EQ(base + bufs, NETMAP_BUF(d->txring, 0));
		ATF_CHECK_EQ(base + bufs, NETMAP_BUF(d->rxring, 0));
		ATF_CHECK_EQ_MSG(size, fail_map_size, "%zu, not %zu",
		    fail_map_size, size);
		/* What is not used is not charged. */
		ATF_CHECK_EQ(MAP_PRIVATE | MAP_ANON | MAP_NORESERVE,
		    fail_map_flags);
		ATF_CHECK_EQ(NM_CACHE_ALIGN, d->txring->buf_align);
		ATF_CHECK_EQ(NM_CACHE_ALIGN, d->rxring->buf_align);
		ATF_CHECK_EQ(NI_PRIV_MEM, d->common->nifp->ni_flags);
		/* A name that is too long is cut, and ends. */
		ATF_CHECK_EQ(sizeof(d->common->nifp->ni_name) - 1,
		    strnlen(d->common->nifp->ni_name,
		    sizeof(d->common->nifp->ni_name)));
		/* Behind a ring's last slot there is none. */
		if (i == 1)
			ATF_CHECK_EQ(0, d->rxring->slot[5].buf_idx);
		vale_close(d);
	}
}

TEST(idle, "A port writes once when it turns busy and reads once when it turns "
    "idle; one that polls does neither")
{
	struct vale_desc *a, *b;
	unsigned int i, j;

	a = t_open("valet0:a", 64, 64);
	b = t_open("valet0:b", 64, 64);
	for (i = 0; i < 10; i++) {
		reads = writes = 0;
		for (j = 0; j < 5; j++)
			t_send(a, 60, EVERYBODY, 0, i * 5 + j);
		ATF_CHECK_EQ_MSG(1, writes, "%d", writes);
		ATF_CHECK_EQ(0, reads);
		ATF_CHECK(t_readable(b));
		ATF_CHECK_EQ(5, t_drain(b));
		ATF_CHECK_EQ_MSG(1, reads, "%d", reads);
		ATF_CHECK(!t_readable(b));
		for (j = 0; j < 3; j++)
			t_expect_none(b);
		ATF_CHECK_EQ_MSG(1, reads, "%d", reads);
		ATF_CHECK_EQ(1, writes);
	}
	/* A signal does not lose the wakeup. */
	reads = writes = 0;
	write_error = EINTR;
	t_send(a, 60, EVERYBODY, 0, 0);
	ATF_CHECK_EQ(2, writes);
	ATF_CHECK(t_readable(b));
	ATF_CHECK_EQ(1, t_drain(b));
	/* Any other error does not make it try for ever. */
	reads = writes = 0;
	write_error = EAGAIN;
	t_send(a, 60, EVERYBODY, 0, 0);
	ATF_CHECK_EQ(1, writes);
	ATF_CHECK_EQ(1, t_drain(b));
	t_send(a, 60, EVERYBODY, 0, 0);
	ATF_CHECK_EQ(1, t_drain(b));
	/* Polled: no system calls from the sync on that says so. */
	b->rxring->flags |= VALE_RING_POLLED;
	reads = writes = 0;
	t_expect_none(b);
	for (i = 0; i < 5; i++) {
		t_send(a, 60, EVERYBODY, 0, i);
		t_expect(b, 60, 0, i);
		t_expect_none(b);
	}
	ATF_CHECK_EQ_MSG(0, reads, "%d", reads);
	ATF_CHECK_MSG(writes <= 1, "%d", writes);
	/* A bad head is counted there, too, and locks are given back. */
	b->rxring->head = b->rxring->num_slots;
	ATF_CHECK_EQ(-1, vale_rxsync(b));
	ATF_CHECK_EQ(EINVAL, errno);
	T_COUNT(b, RX_BAD_RING, 1);
	ATF_CHECK_EQ(0, LOCKED());
	vale_close(a);
	vale_close(b);
}

TEST(last_slot, "At the end of the ring, too, a receive head or cur that is no "
    "slot is refused")
{
	const uint32_t n = 8;
	struct vale_desc *a, *b;
	uint32_t bad, i, which;

	a = t_open("valet0:a", 64, 64);
	b = t_open("valet0:b", 64, n);
	/* The user is at the last slot, and frames follow from the first on. */
	for (i = 0; i < n - 1; i++)
		t_send(a, 60, EVERYBODY, 0, i);
	ATF_CHECK_EQ(n - 1, t_drain(b));
	for (i = 0; i < n - 1; i++)
		t_send(a, 60, EVERYBODY, 0, i);
	ATF_REQUIRE_EQ(0, vale_rxsync(b));
	ATF_REQUIRE_EQ(n - 1, b->rxring->head);
	for (bad = n; bad < 2 * n; bad++) {
		for (which = 1; which <= 3; which++) {
			/* Where it would be, if slots went on. */
			b->rxring->head = which & 1 ? bad : n - 1;
			b->rxring->cur = which & 2 ? bad : bad % n;
			ATF_CHECK_EQ_MSG(-1, vale_rxsync(b), "%u, %u",
			    b->rxring->head, b->rxring->cur);
			ATF_REQUIRE_EQ(n - 1, b->rxring->head);
			ATF_REQUIRE_EQ(n - 1, b->rxring->cur);
		}
	}
	for (i = 0; i < n - 1; i++)
		ATF_CHECK(t_take(b, &(struct t_frame){ 0 }));
	vale_close(a);
	vale_close(b);
}

static unsigned int	shown;
static uint32_t		oldest_s;

static int
show(const struct vale_fdb_entry *entry, void *arg)
{
	oldest_s = MAX(oldest_s, entry->fe_age_s);
	return (++shown == *(unsigned int *)arg ? 7 : 0);
}

TEST(addresses, "A table that is full is listed from the first entry to the "
    "last, or until the caller has enough")
{
	uint64_t counters[VALE_NCOUNTERS];
	unsigned int i, stop;
	struct vale_desc *a, *b;

	watch = true;			/* the seed is the same each time */
	a = t_open("valet0:a", 64, 64);
	b = t_open("valet0:b", 64, 64);
	for (i = 0; i < 20000; i++)
		t_send(a, 60, EVERYBODY, i, i);
	stop = 0;
	skew_s = 200;			/* of the 300 that an entry lives */
	ATF_CHECK_EQ(0, vale_fdb_list("valet0", show, &stop));
	ATF_CHECK_EQ_MSG(VALE_FDB_ENTRIES, shown, "%u", shown);
	ATF_CHECK_MSG(oldest_s >= 200 && oldest_s < 300, "%u", oldest_s);
	skew_s = 0;
	shown = 0;
	stop = 5;
	ATF_CHECK_EQ(7, vale_fdb_list("valet0", show, &stop));
	ATF_CHECK_EQ(5, shown);
	ATF_CHECK_EQ(0, LOCKED());
	ATF_CHECK_EQ(-1, vale_fdb_list("valet", show, &stop));
	ATF_CHECK_EQ(-1, vale_fdb_list("valet01", show, &stop));
	ATF_CHECK_EQ(5, shown);
	ATF_CHECK_EQ(0, vale_set("valet0:a", "limit", "5120"));
	ATF_CHECK_EQ(0, vale_set("valet0", "ageing", "17"));
	ATF_CHECK_EQ(17, vale_desc_port(a)->vp_switch->vs_fdb.fdb_ageing_s);
	ATF_CHECK_EQ(0, vale_port_counters("valet0:a", counters));
	ATF_CHECK_EQ(20000, counters[VALE_C_TX_FRAME]);
	ATF_CHECK_EQ(0, LOCKED());
	vale_close(a);
	vale_close(b);
	watch = false;
}

/* A sink that takes up to *arg frames. */
static void
take(void *arg, struct frame_source *frames)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	unsigned int *n = arg;

	ATF_CHECK_EQ(0, LOCKED());
	for (; *n > 0 && frame_peek(frames, &frame); --*n)
		frame_next(frames);
}

TEST(sink, "Each lock is taken and released, whether a sink takes a frame or "
    "not, and none is held in its call")
{
	struct vale_desc *rx, *tx;
	unsigned int i, n;

	rx = t_open("valet0:rx", 16, 16);
	tx = t_open("valet0:tx", 16, 16);
	t_send(rx, 60, EVERYBODY, 0, 0);
	ATF_REQUIRE_EQ(0, vale_set_sink(rx, take, &n));
	for (i = 0; i < 2; i++) {
		n = 1;
		/* To the sink, the ring, and the ring behind it. */
		t_send(tx, 60, 0, 1, 0);
		ATF_CHECK_EQ(0, n);
		ATF_CHECK_EQ(0, LOCKED());
		t_send(tx, 60, 0, 1, 1);
		ATF_CHECK_EQ(0, LOCKED());
		t_send(tx, 60, 0, 1, 2);
		ATF_CHECK_EQ(0, LOCKED());
		ATF_CHECK_EQ(2, t_drain(rx));
		ATF_CHECK_EQ(0, LOCKED());
	}
	T_COUNT(rx, RX_DIRECT, 2);
	vale_close(rx);
	vale_close(tx);
}

TEST_PROGRAM
