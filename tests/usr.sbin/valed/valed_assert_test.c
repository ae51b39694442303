/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The assertions of valed: each call breaks a rule in a child process, and the
 * child must abort.
 */

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include <atf-c.h>

#include "aborts.h"
#include "adapter.h"
#include "test.h"

static struct adapter ad;

static void *
nothing(void *arg)
{
	return (arg);
}

static void
count(void *arg)
{
	adapter_count(arg, ADAPTER_C_WAKEUP);
}

TEST(thread, "An assertion fires if another thread than the adapter's counts")
{
	ATF_REQUIRE_EQ(0, pthread_create(&ad.thread, NULL, nothing, NULL));
	ATF_CHECK(aborts(count, &ad, "pthread_equal(ad->thread"));
	ATF_REQUIRE_EQ(0, pthread_join(ad.thread, NULL));
	ad.thread = pthread_self();
	count(&ad);
	ATF_CHECK_EQ(1, ad.counters[ADAPTER_C_WAKEUP]);
}

static void
map(void *arg)
{
	const char *why;

	(void)peer_mem_map(arg, -1, 0, 0x1000, 0x1000, 0, &why);
}

static void
clear(void *arg)
{
	peer_mem_clear(arg);
}

static void
no_pause(void *arg __attribute__((__unused__)),
    bool paused __attribute__((__unused__)))
{
}

TEST(memory, "Assertions fire if the sizes of the guest memory do not add up")
{
	static struct peer_mem dma;

	peer_mem_init(&dma, 0, no_pause, NULL);
	map(&dma);
	peer_mem_clear(&dma);
	dma.mapped = PEER_MEM_BYTES + 1;
	ATF_CHECK(aborts(map, &dma, "dma->mapped <= dma->limit"));
	ATF_CHECK(aborts(clear, &dma, "dma->mapped == 0"));
}

TEST_PROGRAM
