/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What valed prints of its counters, line by line: each of them has a value of
 * its own here, and what holds them ends where memory does.
 */

#include <sys/param.h>
#include <sys/mman.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "adapter.h"
#include "adapter_config.h"
#include "e82545.h"
#include "frame_port.h"
#include "libvale.h"
#include "test.h"
#include "valed_stats.h"
#include "wrap.h"

#define	MODEL		1000		/* values, from 0 on */
#define	ADAPTER		2000
#define	FRAME_PORT	3000
#define	IRQ		4000
#define	PORT		5000
#define	HOSTIF		6000

static const struct counter_row adapter_names[ADAPTER_NCOUNTERS] = {
	COUNTER_ROWS(ADAPTER_COUNTERS)
};
/* Of which no description says what it is. */
#define	ROW(id, name, desc, ...)					\
	[id] = { name, "?", COUNTER_KIND_##__VA_ARGS__ },
const struct counter_row hostif_counter_table[HOSTIF_NCOUNTERS] = {
	HOSTIF_COUNTERS(ROW)
};

static bool	no_port, no_memory;
static size_t	asked;			/* bytes of the last calloc(3) */
/* The counter that is one more than at first, or all. */
static uint64_t	more;
#define	ALL	UINT64_MAX
static uint64_t	*live;			/* the interface's */
static char	text[65536], expected[65536];
static size_t	at;			/* the end of `expected' */
static off_t	seen;

static uint64_t
value(uint64_t n)
{
	return (n + (more == n || more == ALL));
}

WRAP(void, e82545_counters, const struct e82545 *dev,
    uint64_t counters[E82545_NCOUNTERS])
{
	unsigned int i;

	ATF_CHECK_EQ((const void *)1, (const void *)dev);
	for (i = 0; i < E82545_NCOUNTERS; i++)
		counters[i] = value(MODEL + i);
}

WRAP(int, vale_port_counters, const char *name,
    uint64_t counters[VALE_NCOUNTERS])
{
	unsigned int i;

	ATF_CHECK_STREQ("vale3:p", name);
	for (i = 0; i < VALE_NCOUNTERS; i++)
		counters[i] = value(PORT + i);
	return (no_port ? ENXIO : 0);
}

uint64_t
hostif_counter(const struct hostif *hi, enum hostif_counter counter)
{
	ATF_CHECK_EQ((const void *)2, (const void *)hi);
	ATF_CHECK(counter < HOSTIF_NCOUNTERS);
	return (value(HOSTIF + counter));
}

const char *
hostif_port_name(const struct hostif *hi __unused)
{
	return ("vale3:p");
}

const char *
hostif_name(const struct hostif *hi __unused)
{
	return ("eth7");
}

uint64_t **
hostif_live(struct hostif *hi __unused)
{
	return (&live);
}

WRAP(void *, calloc, size_t n, size_t size)
{
	asked = n * size;
	return (no_memory ? NULL : __real_calloc(n, size));
}

/* Zeros, which end where a page ends that cannot be read. */
static void *
end_of_page(size_t size)
{
	const size_t len = roundup(size, 4096);
	char *p = mmap(NULL, len + 4096, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANON, -1, 0);

	ATF_REQUIRE(p != MAP_FAILED);
	ATF_REQUIRE_EQ(0, mprotect(p + len, 4096, PROT_NONE));
	return (p + len - size);
}

static const struct adapter_config config = { .ac_name = "vm1",
	.ac_backend = "vale3:p" };

static struct adapter *
adapter_make(void)
{
	struct adapter *ad = end_of_page(sizeof(*ad));

	ad->config = config;
	ad->dev = (void *)1;
	ad->net.an_port = end_of_page(sizeof(*ad->net.an_port));
	return (ad);
}

static void
adapter_fill(struct adapter *ad)
{
	unsigned int i;

	for (i = 0; i < VFU_NCOUNTERS; i++)
		ad->vfu.vdev_counters[i] = value(ADAPTER + i);
	for (i = 0; i < ADAPTER_NCOUNTERS; i++)
		ad->counters[i] = value(ADAPTER + VFU_NCOUNTERS + i);
	for (i = 0; i < FRAME_PORT_NCOUNTERS; i++)
		ad->net.an_port->fp_counter[i] = value(FRAME_PORT + i);
	ad->vfu.vdev_irq.sent = value(IRQ);
	ad->vfu.vdev_irq.unmasked = value(IRQ + 1);
	ad->announces = value(IRQ + 2);
}

static void __printflike(1, 2)
expect(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	at += vsnprintf(expected + at, sizeof(expected) - at, fmt, ap);
	va_end(ap);
	ATF_REQUIRE(at < sizeof(expected));
}

/* Standard output is in a file from now on. */
static void
start(void)
{
	ATF_REQUIRE(freopen("out", "w", stdout) != NULL);
}

/* What is in it; nobody has to flush it. */
static void
look(void)
{
	int fd = open("out", O_RDONLY);
	ssize_t n;

	ATF_REQUIRE(fd != -1);
	n = pread(fd, text, sizeof(text) - 1, seen);
	ATF_REQUIRE(n >= 0);
	text[n] = '\0';
	close(fd);
	seen += n;
}

/* That is what is expected. */
static void
printed(void)
{
	look();
	ATF_CHECK_STREQ(expected, text);
	expected[0] = '\0';
	at = 0;
}

static void
expect_port(const char *name)
{
	unsigned int i;

	for (i = 0; i < VALE_NCOUNTERS; i++)
		expect("%s port_%s %u\n", name, vale_counter_table[i].cr_name,
		    no_port ? 0 : PORT + i);
}

TEST(adapters, "Each counter of each adapter has a line, in order")
{
	struct adapter_list list = TAILQ_HEAD_INITIALIZER(list);
	struct adapter *ad[2];
	unsigned int i, pass;

	start();
	valed_stats_print(&list);
	printed();
	for (i = 0; i < nitems(ad); i++) {
		ad[i] = adapter_make();
		adapter_fill(ad[i]);
		TAILQ_INSERT_TAIL(&list, ad[i], link);
	}
	for (pass = 0; pass < 2; pass++) {
		no_port = pass > 0;
		for (i = 0; i < E82545_NCOUNTERS; i++)
			expect("vm1 %s %u\n", e82545_counter_table[i].cr_name,
			    MODEL + i);
		for (i = 0; i < VFU_NCOUNTERS; i++)
			expect("vm1 %s %u\n", vfu_counter_table[i].cr_name,
			    ADAPTER + i);
		for (i = 0; i < ADAPTER_NCOUNTERS; i++)
			expect("vm1 %s %u\n", adapter_names[i].cr_name,
			    ADAPTER + VFU_NCOUNTERS + i);
		for (i = 0; i < FRAME_PORT_NCOUNTERS; i++)
			expect("vm1 %s %u\n",
			    frame_port_counter_table[i].cr_name,
			    FRAME_PORT + i);
		expect("vm1 irq_sent %u\nvm1 irq_unmasked %u\n", IRQ, IRQ + 1);
		expect("vm1 announces %u\n", IRQ + 2);
		expect("vm1 copies %u\n", MODEL + E82545_C_RX_FRAME +
		    (no_port ? 0 : PORT + VALE_C_RX_COPY));
		expect_port("vm1");
		memcpy(expected + at, expected, at);
		at *= 2;
		expected[at] = '\0';
		valed_stats_print(&list);
		printed();
	}
}

TEST(interface, "Each counter of an interface has a line, and those of its "
    "port follow")
{
	unsigned int i, pass;

	start();
	for (pass = 0; pass < 2; pass++) {
		no_port = pass > 0;
		for (i = 0; i < HOSTIF_NCOUNTERS; i++)
			expect("eth7 %s %u\n", hostif_counter_table[i].cr_name,
			    HOSTIF + i);
		expect_port("eth7");
		valed_stats_hostif((void *)2, NULL);
		printed();
	}
}

/* The line of -v of an adapter that has done nothing, or everything once. */
static void
expect_live(int n)
{
	expect("vm1 tx %d frames %d batches %d kicks, rx %d frames %d batches, "
	    "%d interrupts, %d exits, port tx %d rx %d", n, n, n, n, n, n,
	    2 * n, n, n);
}

TEST(adapters_live, "-v prints what was counted since the line before, and "
    "what was dropped")
{
	static const struct {
		uint64_t counter;
		const char *text;	/* the line's end, if it is a drop */
	} rows[] = {
		{ MODEL + E82545_C_TX_BAD_DESC, "tx_bad_desc" },
		{ MODEL + E82545_C_TX_NOROOM, "tx_noroom" },
		{ MODEL + E82545_C_RX_DISABLED, "rx_disabled" },
		{ FRAME_PORT + FRAME_PORT_C_RX_OVERMTU, "rx_overmtu" },
		{ PORT + VALE_C_TX_DROP_RUNT, "port_tx_drop_runt" },
		{ PORT + VALE_C_RX_DROP_FULL, "port_rx_drop_full" },
		{ ADAPTER + VFU_C_CONNECT, NULL },
	};
	struct adapter_list list = TAILQ_HEAD_INITIALIZER(list);
	const uint64_t rx_frame = MODEL + E82545_C_RX_FRAME;
	struct adapter *ad = adapter_make();
	size_t count = E82545_NCOUNTERS + VFU_NCOUNTERS + ADAPTER_NCOUNTERS +
	    FRAME_PORT_NCOUNTERS + 4 + VALE_NCOUNTERS;
	uint64_t *first;
	unsigned int i;

	start();
	TAILQ_INSERT_TAIL(&list, ad, link);
	/* The first line has all since the start. */
	adapter_fill(ad);
	no_memory = true;
	valed_stats_live(&list);
	printed();
	ATF_CHECK(ad->live == NULL);
	no_memory = false;
	valed_stats_live(&list);
	ATF_REQUIRE(ad->live != NULL);
	ATF_CHECK_EQ(count * sizeof(*ad->live), asked);
	ATF_CHECK_EQ(MODEL, ad->live[0]);
	expect("vm1 tx %d frames %d batches %d kicks, rx %d frames %d batches, "
	    "%d interrupts, %d exits, port tx %d rx %d",
	    MODEL + E82545_C_TX_FRAME, MODEL + E82545_C_TX_BATCH,
	    MODEL + E82545_C_TX_KICK, MODEL + E82545_C_RX_FRAME,
	    MODEL + E82545_C_RX_BATCH, IRQ, 2 * MODEL + E82545_C_REG_READ +
	    E82545_C_REG_WRITE, PORT + VALE_C_TX_FRAME, PORT + VALE_C_RX_FRAME);
	look();
	ATF_CHECK_EQ(0, strncmp(expected, text, at));
	expected[0] = '\0';
	at = 0;
	/* No more memory than it has. */
	first = ad->live;
	ad->live = memcpy(end_of_page(count * sizeof(*ad->live)), first,
	    count * sizeof(*ad->live));
	free(first);
	valed_stats_live(&list);
	expect_live(0);
	expect("\n");
	printed();
	for (i = 0; i < nitems(rows); i++) {
		more = rows[i].counter;
		adapter_fill(ad);
		no_memory = true;		/* which it needs no more */
		valed_stats_live(&list);
		expect_live(0);
		if (rows[i].text != NULL)
			expect(", %s 1", rows[i].text);
		expect("\n");
		printed();
		/* The next line has none of it. */
		more = 0;
		adapter_fill(ad);
		valed_stats_live(&list);
		look();
		valed_stats_live(&list);
		expect_live(0);
		expect("\n");
		printed();
	}
	more = rx_frame;
	valed_stats_live(&list);
	expect("vm1 tx 0 frames 0 batches 0 kicks, rx 1 frames 0 batches, "
	    "0 interrupts, 0 exits, port tx 0 rx 0\n");
	printed();
}

static void
expect_drops(const char *prefix, const struct counter_row *row, unsigned int n)
{
	for (; n > 0; n--, row++)
		if (row->cr_kind == COUNTER_KIND_DROP)
			expect(", %s%s 1", prefix, row->cr_name);
}

TEST(drops_live, "-v has every counter of dropped frames, in order")
{
	struct adapter_list list = TAILQ_HEAD_INITIALIZER(list);
	struct adapter *ad = adapter_make();

	start();
	TAILQ_INSERT_TAIL(&list, ad, link);
	adapter_fill(ad);
	valed_stats_live(&list);
	look();
	more = ALL;
	adapter_fill(ad);
	valed_stats_live(&list);
	expect_live(1);
	expect(", tx_bad_desc 1, tx_bad_addr 1, tx_bad_len 1, tx_noroom 1, "
	    "tx_linkdown 1, rx_bad_offload 1, rx_oversize 1, rx_disabled 1, "
	    "rx_bad_addr 1, tx_overmtu 1, rx_overmtu 1, rx_bad_header 1");
	expect_drops("port_", vale_counter_table, VALE_NCOUNTERS);
	expect("\n");
	printed();
	free(ad->live);
}

TEST(interface_live, "An interface has such a line, too")
{
	const unsigned int n = HOSTIF_NCOUNTERS + VALE_NCOUNTERS;
	unsigned int i;

	start();
	no_memory = true;
	valed_stats_hostif_live((void *)2, NULL);
	printed();
	no_memory = false;
	live = end_of_page(n * sizeof(*live));
	for (i = 0; i < HOSTIF_NCOUNTERS; i++)
		live[i] = HOSTIF + i;
	for (; i < n; i++)
		live[i] = PORT + i - HOSTIF_NCOUNTERS;
	no_memory = true;
	valed_stats_hostif_live((void *)2, NULL);
	expect("eth7 tx 0 frames 0 batches 0 calls, rx 0 frames 0 batches, "
	    "port tx 0 rx 0\n");
	printed();
	more = ALL;
	valed_stats_hostif_live((void *)2, NULL);
	expect("eth7 tx 1 frames 1 batches 1 calls, rx 1 frames 1 batches, "
	    "port tx 1 rx 1");
	expect_drops("", hostif_counter_table, HOSTIF_NCOUNTERS);
	expect_drops("port_", vale_counter_table, VALE_NCOUNTERS);
	expect("\n");
	printed();
	valed_stats_hostif_live((void *)2, NULL);
	expect("eth7 tx 0 frames 0 batches 0 calls, rx 0 frames 0 batches, "
	    "port tx 0 rx 0\n");
	printed();
	/* The first line has all since the start; then there is memory. */
	no_memory = false;
	live = NULL;
	more = 0;
	valed_stats_hostif_live((void *)2, NULL);
	ATF_REQUIRE(live != NULL);
	ATF_CHECK_EQ(n * sizeof(*live), asked);
	for (i = 0; i < HOSTIF_NCOUNTERS; i++)
		ATF_CHECK_EQ(HOSTIF + i, live[i]);
	for (; i < n; i++)
		ATF_CHECK_EQ(PORT + i - HOSTIF_NCOUNTERS, live[i]);
}

TEST_PROGRAM
