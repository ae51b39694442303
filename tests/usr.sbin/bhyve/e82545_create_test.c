/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Adapters when memory or mutexes are exhausted, and what an adapter leaves
 * when it is destroyed: nothing.
 *
 * Calls are counted between count_begin() and count_end() only, so that those
 * of the test and of its host do not matter.
 */

#include <sys/param.h>
#include <sys/mman.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "e82545_check.h"
#include "e82545_impl.h"
#include "fail_calls.h"

/* What the model has, from count_begin() to count_end(). */
static int64_t live_memory, live_mutexes;
static struct fail_held begun;

/* From here on, call number `n' fails; 0: none. */
static void
count_begin(unsigned int n)
{
	begun = fail_held();
	fail_calls(NULL, n, 1);
}

/* Returns the number of calls that could fail. */
static unsigned int
count_end(void)
{
	const struct fail_held now = fail_held();

	fail_calls_end();
	live_memory += now.fhl_allocs - begun.fhl_allocs;
	live_mutexes += now.fhl_mutexes - begun.fhl_mutexes;
	return (fail_calls_made());
}

#define	NAME_SPACE	65536		/* bytes, of pages of its own */

static const struct e82545_config config = {
	.ec_name = "vm0", .ec_mac = { 2, 0, 0, 0, 0, 1 }, .ec_csb = E82545_CSB_ON
};

HOST_TEST(exhausted, host_create(HOST_RAM), "e82545_create() without memory or "
    "mutexes fails with ENOMEM and frees what it had")
{
	struct e82545 *dev;
	unsigned int n, total;

	count_begin(0);
	dev = e82545_create(&config, &host_ops, h, &h->port);
	total = count_end();
	ATF_REQUIRE(dev != NULL);
	/* The adapter, its loopback queue, and five mutexes. */
	ATF_CHECK_EQ(7, total);
	ATF_CHECK_EQ(2, live_memory);
	ATF_CHECK_EQ(5, live_mutexes);
	count_begin(0);
	e82545_destroy(dev);
	count_end();
	ATF_CHECK_EQ(0, live_memory);
	ATF_CHECK_EQ(0, live_mutexes);

	for (n = 1; n <= total; n++) {
		errno = 0;
		count_begin(n);
		dev = e82545_create(&config, &host_ops, h, &h->port);
		count_end();
		ATF_CHECK_MSG(dev == NULL, "call %u", n);
		ATF_CHECK_EQ(ENOMEM, errno);
		ATF_CHECK_EQ_MSG(0, live_memory, "call %u: %jd", n,
		    (intmax_t)live_memory);
		ATF_CHECK_EQ_MSG(0, live_mutexes, "call %u: %jd", n,
		    (intmax_t)live_mutexes);
	}
}

TEST(memory, "The state of an adapter lies in the host's memory, which is long "
    "enough and aligned; only the loopback queue does not")
{
	struct e82545_config c = config;
	const size_t size = e82545_memory_size();
	struct e82545 *dev;
	struct host *h;
	uint8_t *memory;

	h = host_create(HOST_RAM);
	memory = aligned_alloc(E82545_MEMORY_ALIGN,
	    size + E82545_MEMORY_ALIGN);
	ATF_REQUIRE(memory != NULL);
	/* What lies behind does not change. */
	memset(memory, 0, size);
	memset(memory + size, 0xa5, E82545_MEMORY_ALIGN);
	c.ec_memory = memory;
	c.ec_memory_size = size;
	count_begin(0);
	dev = e82545_create(&c, &host_ops, h, &h->port);
	count_end();
	ATF_REQUIRE(dev != NULL);
	ATF_CHECK_EQ(1, live_memory);
	ATF_CHECK((void *)dev == memory);
	ATF_CHECK((uint8_t *)dev->txq > memory &&
	    (uint8_t *)dev->txq + e82545_txq_size() <= memory + size);
	ATF_CHECK((uint8_t *)dev->rxq > memory &&
	    (uint8_t *)dev->rxq + e82545_rxq_size() <= memory + size);
	ATF_CHECK((uint8_t *)dev->eeprom > memory &&
	    (uint8_t *)dev->eeprom < memory + size);
	ATF_CHECK((uint8_t *)dev->phy > memory &&
	    (uint8_t *)dev->phy < memory + size);
	ATF_CHECK_EQ(0xa5, memory[size]);
	count_begin(0);
	e82545_destroy(dev);
	count_end();
	ATF_CHECK_EQ(0, live_mutexes);

	c.ec_memory_size = size - 1;
	errno = 0;
	ATF_CHECK(e82545_create(&c, &host_ops, h, &h->port) == NULL);
	ATF_CHECK_EQ(EINVAL, errno);
	c.ec_memory_size = size;
	c.ec_memory = memory + 8;
	errno = 0;
	ATF_CHECK(e82545_create(&c, &host_ops, h, &h->port) == NULL);
	ATF_CHECK_EQ(EINVAL, errno);
	free(memory);
	host_destroy(h);
}

TEST(pages, "An adapter takes no page of its memory for what only batches use")
{
	const size_t page = sysconf(_SC_PAGESIZE);
	const size_t n = howmany(e82545_memory_size(), page);
	struct e82545_config c = config;
	unsigned char present[1024];
	unsigned int kind, taken;
	struct e82545 *dev;
	struct host *h;
	void *memory;
	size_t i;

	h = host_create(HOST_RAM);
	ATF_REQUIRE(n <= sizeof(present));
	for (kind = 0; kind < E82545_NKINDS; kind++) {
		/* Shared memory: the kernel makes no huge page of it. */
		memory = mmap(NULL, n * page, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANON, -1, 0);
		ATF_REQUIRE(memory != MAP_FAILED);
		c.ec_kind = kind;
		c.ec_memory = memory;
		c.ec_memory_size = n * page;
		dev = e82545_create(&c, &host_ops, h, &h->port);
		ATF_REQUIRE(dev != NULL);
		ATF_REQUIRE(mincore(memory, n * page, (void *)present) == 0);
		for (i = taken = 0; i < n; i++)
			taken += present[i] & 1;
		/* All of struct e82545, and the heads of four queues. */
		ATF_CHECK_MSG(taken > 0 && taken <=
		    howmany(sizeof(struct e82545), page) + 6, "%u of %zu pages",
		    taken, n);
		e82545_destroy(dev);
		munmap(memory, n * page);
	}
	host_destroy(h);
}

HOST_TEST(name, host_create(HOST_RAM), "An adapter has a copy of its "
    "configuration's name, cut to fit")
{
	struct e82545_config c = config;
	struct e82545 *dev;
	char *name;
	void *buf;
	size_t size;

	name = mmap(NULL, NAME_SPACE, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANON, -1, 0);
	ATF_REQUIRE(name != MAP_FAILED);
	memset(name, 'x', 200);
	c.ec_name = name;
	dev = e82545_create(&c, &host_ops, h, &h->port);
	ATF_REQUIRE(dev != NULL);
	/* The caller's is not read again. */
	munmap(name, NAME_SPACE);
	e82545_pause(dev);
	size = e82545_snapshot_size(dev);
	buf = malloc(size);
	ATF_REQUIRE(buf != NULL);
	ATF_CHECK_EQ(0, e82545_snapshot_save(dev, buf, size));
	ATF_CHECK_EQ(0, e82545_snapshot_restore(dev, buf, size));
	free(buf);
	ATF_CHECK_EQ(sizeof(dev->name) - 1, strlen(e82545_name(dev)));
	ATF_CHECK_EQ(strlen(e82545_name(dev)), strspn(e82545_name(dev), "x"));
	e82545_destroy(dev);
}

/* A host whose adapter loops `n' frames, which wait to be received. */
static struct host *
loop_frames(unsigned int n)
{
	struct host *h;
	uint8_t frame[60];

	h = host_create(HOST_RAM);
	host_up(h, 16, 8, 2048);
	host_set(h, E82545_RCTL, E82545_RCTL_LBM_MAC);
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	for (; n > 0; n--)
		host_tx_frame(h, frame, sizeof(frame), 0);
	host_tx_go(h);
	return (h);
}

TEST(looped, "Memory of looped frames goes when they are received, and at a "
    "reset; without memory a frame is lost")
{
	struct host *h;
	int i;

	for (i = 0; i < 2; i++) {
		h = loop_frames(5);
		count_begin(0);
		e82545_tx(h->dev);
		count_end();
		ATF_CHECK_EQ(5, live_memory);
		count_begin(0);
		if (i == 0)
			e82545_rx(h->dev);
		else
			e82545_reset(h->dev);
		count_end();
		ATF_CHECK_EQ(0, live_memory);
		ATF_CHECK_EQ(i == 0 ? 5 : 0, host_counter(h,
		    E82545_C_RX_FRAME));
		host_destroy(h);
	}
	h = loop_frames(5);
	count_begin(2);
	e82545_tx(h->dev);
	count_end();
	ATF_CHECK_EQ(4, live_memory);
	ATF_CHECK_EQ(4, host_counter(h, E82545_C_LOOPBACK));
	e82545_rx(h->dev);
	ATF_CHECK_EQ(4, host_counter(h, E82545_C_RX_FRAME));
	host_destroy(h);
}

HOST_TEST(restored, loop_frames(5), "A restore replaces looped frames; without "
    "memory it fails with ENOMEM and changes nothing")
{
	void *buf;
	size_t size;
	unsigned int n, total;

	count_begin(0);
	e82545_tx(h->dev);
	count_end();
	ATF_CHECK_EQ(5, live_memory);
	e82545_pause(h->dev);
	size = e82545_snapshot_size(h->dev);
	buf = malloc(size);
	ATF_REQUIRE(buf != NULL);
	ATF_REQUIRE_EQ(0, e82545_snapshot_save(h->dev, buf, size));
	count_begin(0);
	ATF_CHECK_EQ(0, e82545_snapshot_restore(h->dev, buf, size));
	total = count_end();
	/* An adapter, as above, and five frames. */
	ATF_CHECK_EQ(7 + 5, total);
	ATF_CHECK_EQ(5, live_memory);
	for (n = 1; n <= total; n++) {
		count_begin(n);
		ATF_CHECK_EQ_MSG(ENOMEM, e82545_snapshot_restore(h->dev, buf,
		    size), "call %u", n);
		count_end();
		ATF_CHECK_EQ_MSG(5, live_memory, "call %u: %jd", n,
		    (intmax_t)live_memory);
		ATF_CHECK_EQ(0, live_mutexes);
	}
	free(buf);
	e82545_resume(h->dev);
	e82545_rx(h->dev);
	ATF_CHECK_EQ(5, host_counter(h, E82545_C_RX_FRAME));
}

TEST_PROGRAM
