/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What an adapter's thread does: how often it polls, what it turns on and off,
 * whom it wakes, and what it says.
 */

#include <sys/param.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <dev/e1000/e82545_reg.h>

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atf-c.h>

#include "adapter_calls.h"
#include "event_stub.h"
#include "said.h"
#include "libvale.h"
#include "test.h"
#include "vale_setting.h"

static void
put(uint32_t reg, uint32_t value)
{
	e82545_write(ad->dev, E82545_BAR_MEM, reg, 4, value);
}

TEST(transmits, "A poll is repeated 16 times a round, a yield gives the \
processor away, and what is not idle goes on")
{
	static const struct {
		enum e82545_tx_state state;
		unsigned int calls, yields;
		bool again;
	} rows[] = {
		{ E82545_TX_POLL, 16, 0, true },
		{ E82545_TX_YIELD, 1, 1, true },
		{ E82545_TX_MORE, 1, 0, true },
		{ E82545_TX_IDLE, 1, 0, false },
	};
	unsigned int i;

	start();
	fake = true;
	rx_state = E82545_RX_IDLE;
	attach();
	work();
	ATF_CHECK_EQ_MSG(0, tx_calls, "not before a kick");
	ATF_CHECK_EQ(1, rx_calls);
	ATF_CHECK(!goes_on());
	for (i = 0; i < nitems(rows); i++) {
		tx_state = rows[i].state;
		tx_calls = yields = 0;
		ops->eo_tx_kick(ops_arg);
		work();
		ATF_CHECK_EQ(rows[i].calls, tx_calls);
		ATF_CHECK_EQ(rows[i].yields, yields);
		ATF_CHECK_EQ(rows[i].again, goes_on());
		work();
		ATF_CHECK_EQ_MSG(rows[i].again ? 2 * rows[i].calls : 1,
		    tx_calls, "%u: %u", i, tx_calls);
		(void)goes_on();
		ATF_CHECK(!posted());
	}
	ATF_CHECK_EQ(1, rx_calls);
}

TEST(receives, "The backend's events are off while the guest has no buffers, \
and are turned on or off once")
{
	unsigned int i;

	start();
	fake = true;
	attach();
	rx_state = E82545_RX_MORE;
	for (i = 1; i < 4; i++) {
		work();
		ATF_CHECK_EQ(i, rx_calls);
		ATF_CHECK(goes_on());
	}
	ATF_CHECK_EQ(0, enabled + disabled);
	for (i = 0; i < 2; i++) {
		rx_state = E82545_RX_IDLE;
		ops->eo_rx_ready(ops_arg);
		work();
		ATF_CHECK_EQ(1, enabled);
		ATF_CHECK(!goes_on());
	}
	work();
	ATF_CHECK_EQ_MSG(5, rx_calls, "%u: not unless wanted", rx_calls);
	rx_state = E82545_RX_MORE;
	ops->eo_rx_ready(ops_arg);
	work();
	ATF_CHECK(goes_on());
	ATF_CHECK_EQ(0, disabled);
	for (i = 0; i < 2; i++) {
		rx_state = E82545_RX_STALLED;
		ops->eo_rx_ready(ops_arg);
		work();
		ATF_CHECK_EQ(1, disabled);
		ATF_CHECK(!goes_on());
	}
	rx_state = E82545_RX_IDLE;
	ops->eo_rx_ready(ops_arg);
	work();
	ATF_CHECK_EQ(2, enabled);
	ATF_CHECK_EQ(0, tx_calls);
	ATF_CHECK_EQ(0, events_repeated);
	/* The backend says that there are frames. */
	rx_calls = 0;
	ad->rx_ev->func(-1, ad);
	work();
	ATF_CHECK_EQ(1, rx_calls);
}

TEST(ranges, "When a range has come, frames are looked for if nothing else would "
    "tell of them")
{
	static const struct {
		enum e82545_rx_state state;
		bool wanted;
		unsigned int calls;
	} rows[] = {
		{ E82545_RX_IDLE, false, 0 }, { E82545_RX_IDLE, true, 1 },
		{ E82545_RX_STALLED, false, 1 }, { E82545_RX_IDLE, false, 0 }
	};
	unsigned int i;

	start();
	fake = true;
	tx_state = E82545_TX_IDLE;
	client();
	for (i = 0; i < nitems(rows); i++) {
		rx_state = rows[i].state;
		ops->eo_rx_ready(ops_arg);
		work();
		rx_calls = tx_calls = 0;
		if (rows[i].wanted)
			ops->eo_rx_ready(ops_arg);
		share(GPA + (i + 1) * SIZE, PROT_READ | PROT_WRITE);
		work();
		ATF_CHECK_EQ_MSG(rows[i].calls, rx_calls, "%u: %u", i,
		    rx_calls);
		ATF_CHECK_EQ(1, tx_calls);
	}
}

TEST(rounds, "A round is counted, sends interrupts before and after, and goes \
both ways if rings were joined")
{
	uint64_t n;

	start();
	fake = true;
	tx_state = E82545_TX_IDLE;
	rx_state = E82545_RX_IDLE;
	n = ad->counters[ADAPTER_C_WAKEUP];
	round_ends = 0;
	work();
	ATF_CHECK_EQ(1, round_ends);
	ATF_CHECK_STREQ("flush;flush;", calls);
	ATF_CHECK_EQ(n + 1, ad->counters[ADAPTER_C_WAKEUP]);
	ATF_CHECK_EQ(0, tx_calls + rx_calls);
	ATF_CHECK_EQ(0, ad->vfu.vdev_counters[VFU_C_DMA_JOIN]);
	ATF_CHECK_EQ(0, drops);
	/* Memory that a ring needs is seen to. */
	wanted(ad);
	ATF_CHECK(posted());
	joins = true;
	work();
	ATF_CHECK_EQ(1, tx_calls);
	ATF_CHECK_EQ(1, rx_calls);
	ATF_CHECK_EQ(1, ad->vfu.vdev_counters[VFU_C_DMA_JOIN]);
}

TEST(sees_to, "An event has the server listen; it sees to memory that is gone,\
 and to memory that is not shared")
{
	const char *mapped;

	start();
	client();
	memcpy(ram + 16, "here", 5);
	mapped = ops->eo_map(ops_arg, GPA + 16, 5, E82545_MAP_READ);
	ATF_REQUIRE(mapped != NULL);
	ATF_CHECK_STREQ("here", mapped);
	said_start();
	listens = 0;
	work();
	ATF_CHECK_EQ(1, listens);
	ATF_CHECK_EQ(0, drops);
	ATF_CHECK_EQ(0, ad->vfu.vdev_counters[VFU_C_GONE]);
	ATF_CHECK_STREQ("", said());
	said_start();
	gone = GPA;
	work();
	ATF_CHECK_EQ(1, drops);
	ATF_CHECK_EQ(1, ad->vfu.vdev_counters[VFU_C_GONE]);
	ATF_CHECK_STREQ("adapter_work_test: a: client dropped: its memory at "
	    "0x500000000 is gone\n", said());
	said_start();
	refused = GPA;
	work();
	ATF_CHECK_EQ(1, drops);
	ATF_CHECK(ad->unshared);
	ATF_CHECK_STREQ("adapter_work_test: a: the guest uses memory that its "
	    "client does not share, at 0x500000000: QEMU needs "
	    "memory-backend-memfd with share=on\n", said());
	said_start();
	refused = GPA;
	work();
	ATF_CHECK_STREQ("", said());
}

TEST(links, "The driver has the link of the port, and a client a time at which "
    "it came")
{
	const char *name;
	struct e82545_mode mode;

	start();
	client();
	ATF_CHECK(atomic_load_64(&ad->since_s) > 1000000000);
	name = ad->config.ac_backend;
	(void)posted();
	e82545_mode(ad->dev, &mode);
	ATF_CHECK(mode.em_link);
	ATF_CHECK_EQ(0, vale_set(name, "link", "down"));
	ATF_CHECK(posted());
	/* The thread does it. */
	e82545_mode(ad->dev, &mode);
	ATF_CHECK(mode.em_link);
	work();
	e82545_mode(ad->dev, &mode);
	ATF_CHECK(!mode.em_link);
	/* A reset, and another client, change nothing. */
	detach();
	ATF_CHECK_EQ(0, atomic_load_64(&ad->since_s));
	attach();
	work();
	e82545_mode(ad->dev, &mode);
	ATF_CHECK(!mode.em_link);
	/* What has passed when the thread looks is not shown. */
	ATF_CHECK_EQ(0, vale_set(name, "link", "up"));
	ATF_CHECK_EQ(0, vale_set(name, "link", "down"));
	work();
	e82545_mode(ad->dev, &mode);
	ATF_CHECK(!mode.em_link);
	ATF_CHECK_EQ(0, vale_set(name, "link", "up"));
	work();
	e82545_mode(ad->dev, &mode);
	ATF_CHECK(mode.em_link);
}

TEST(listens_again, "The thread is woken if the server is to look for clients "
    "again")
{
	start();
	adapter_listen(ad);
	ATF_CHECK(!posted());
	again = true;
	adapter_listen(ad);
	ATF_CHECK(posted());
}

TEST(drops_files, "The thread is woken to unmap files without ranges, twice")
{
	int i;

	start();
	client();
	adapter_listen(ad);
	ATF_CHECK(!posted());
	ATF_REQUIRE_EQ(0, peer_mem_unmap(&ad->vfu.vdev_mem, GPA, SIZE));
	for (i = 0; i < 2; i++) {
		ATF_CHECK(ad->vfu.vdev_mem.mapped > 0);
		adapter_listen(ad);
		ATF_CHECK(posted());
		work();
	}
	ATF_CHECK_EQ(0, ad->vfu.vdev_mem.mapped);
	adapter_listen(ad);
	ATF_CHECK(!posted());
}

TEST(attaches, "A new client finds nothing of the former")
{
	start();
	fake = true;
	rx_state = E82545_RX_IDLE;
	client();
	ATF_CHECK_EQ(1, pauses);
	ATF_CHECK_EQ(1, resumes);
	ad->vfu.vdev_irq.msi_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ATF_REQUIRE(ad->vfu.vdev_irq.msi_fd != -1);
	ops->eo_tx_kick(ops_arg);
	work();
	ad->unshared = ad->checked = true;
	ad->tx_wanted = true;
	calls[0] = '\0';
	detach();
	ATF_CHECK_STREQ("no master;reset;intx;", calls);
	ATF_CHECK_EQ(-1, ad->vfu.vdev_irq.msi_fd);
	ATF_CHECK_EQ(0, ad->vfu.vdev_mem.n);
	ATF_CHECK(!vfu_pci_busmaster(&ad->vfu.vdev_pci));
	ad->rx_wanted = false;
	attach();
	ATF_CHECK(!ad->unshared && !ad->checked);
	tx_calls = rx_calls = 0;
	work();
	ATF_CHECK_EQ(0, tx_calls);
	ATF_CHECK_EQ(1, rx_calls);
}

TEST(timers, "A time is the kernel's, to the nanosecond")
{
	static const uint64_t when[] = { 1, 999999999, 1000000000,
	    7000000255, 123456789987654321 };
	struct timespec ts;
	uint64_t now;
	unsigned int i;

	start();
	for (i = 0; i < nitems(when); i++) {
		ops->eo_timer(ops_arg, when[i]);
		ATF_CHECK_EQ(when[i] / 1000000000, timer.it_value.tv_sec);
		ATF_CHECK_EQ(when[i] % 1000000000, timer.it_value.tv_nsec);
		ATF_CHECK_EQ(0, timer.it_interval.tv_sec);
		ATF_CHECK_EQ(0, timer.it_interval.tv_nsec);
		ATF_CHECK_EQ(TFD_TIMER_ABSTIME, timer_flags);
	}
	/* The same clock. */
	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = ops->eo_now(ops_arg);
	ATF_CHECK(now >= ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	ATF_CHECK(now <= ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec);
	/* Its event reads it. */
	ops->eo_timer(ops_arg, now);
	calls[0] = '\0';
	while (events_step() == 0)
		continue;
	ATF_CHECK_EQ(0, strncmp(calls, "timer;", 6));
	ATF_CHECK_EQ(0, events_step());
}

TEST(interrupts, "Frames of another adapter wake the thread for an interrupt \
that their thread cannot send itself only, and once")
{
	const uint64_t most = UINT64_MAX - 1;
	uint64_t n;

	config.ac_direct = true;
	start();
	ATF_REQUIRE(sink != NULL);
	sink(sink_arg, NULL);
	ATF_CHECK_EQ(1, directs);
	ATF_CHECK(!receives());
	ATF_CHECK(!posted());
	ATF_CHECK_EQ(0, direct_sends);
	raise_level = sends_all = true;
	sink(sink_arg, NULL);
	ATF_CHECK_EQ(1, direct_sends);
	ATF_CHECK(!receives());
	ATF_CHECK(!posted());
	ATF_CHECK(!vfu_irq_pending(&ad->vfu.vdev_irq));
	sends_all = false;
	sink(sink_arg, NULL);
	ATF_CHECK(vfu_irq_pending(&ad->vfu.vdev_irq));
	sink(sink_arg, NULL);
	ATF_CHECK(posted());
	ATF_CHECK(!posted());
	/* An event that was taken may be posted again. */
	sink(sink_arg, NULL);
	ATF_CHECK(ad->work_posted != 0);
	ATF_CHECK(events_step() >= 1);
	ATF_CHECK_EQ(0, ad->work_posted);
	ATF_CHECK(!vfu_irq_pending(&ad->vfu.vdev_irq));

	/* An event that cannot be posted is posted the next time. */
	raise_level = false;
	ops->eo_intr(ops_arg, false);
	ATF_REQUIRE_EQ((ssize_t)sizeof(most), write(ad->work_fd, &most,
	    sizeof(most)));
	raise_level = true;
	sink(sink_arg, NULL);
	ATF_CHECK_EQ(0, ad->work_posted);
	ATF_REQUIRE_EQ((ssize_t)sizeof(n), read(ad->work_fd, &n, sizeof(n)));
	ATF_CHECK_EQ(most, n);
	sink(sink_arg, NULL);
	ATF_CHECK(posted());
}

/* What adapter_check() says of a descriptor, and whether it does so again. */
static void
check_zeros(uint32_t head, uint64_t first, uint64_t second, const char *line)
{
	uint64_t *desc = (void *)(ram + RING + 16 * head);

	desc[0] = first;
	desc[1] = second;
	said_start();
	ops->eo_tx_kick(ops_arg);
	work();
	ATF_CHECK_STREQ(line, said());
	ATF_CHECK_EQ(line[0] != '\0', ad->checked);
}

TEST(zeros, "One line tells of descriptors that are all zeros, at their \
address; none of others")
{
	const uint16_t none = 0, command = 7;

	start();
	fake = true;
	tx_state = E82545_TX_IDLE;
	rx_state = E82545_RX_IDLE;
	client();
	put(E82545_TDBAL, (GPA + RING) & UINT32_MAX);
	put(E82545_TDBAH, GPA >> 32);
	put(E82545_TDLEN, 16 * 64);
	put(E82545_TDH, 3);
	put(E82545_TDT, 4);
	check_zeros(3, 1, 0, "");
	check_zeros(3, 0, 1, "");
	check_zeros(3, UINT64_C(1) << 63, UINT64_C(1) << 63, "");
	vfu_pci_write(&ad->vfu.vdev_pci, 4, &none, sizeof(none));
	check_zeros(3, 0, 0, "");
	vfu_pci_write(&ad->vfu.vdev_pci, 4, &command, sizeof(command));
	/* Not in its memory. */
	put(E82545_TDBAH, 0);
	check_zeros(3, 0, 0, "");
	/* Nor in what it may read. */
	share(GPA << 1, PROT_WRITE);
	put(E82545_TDBAL, ((GPA << 1) + RING) & UINT32_MAX);
	put(E82545_TDBAH, (GPA << 1) >> 32);
	check_zeros(3, 0, 0, "");
	put(E82545_TDBAL, (GPA + RING) & UINT32_MAX);
	put(E82545_TDBAH, GPA >> 32);
	check_zeros(3, 0, 0, "adapter_work_test: a: the guest's transmit "
	    "descriptors are not in its memory at 0x500001040: QEMU needs "
	    "memory-backend-memfd with share=on\n");
	ATF_CHECK(ad->unshared);
	/* Once, and it does not check again. */
	ad->unshared = false;
	said_start();
	ops->eo_tx_kick(ops_arg);
	work();
	ATF_CHECK_STREQ("", said());
	ad->unshared = true;
	ad->checked = false;
	said_start();
	ops->eo_tx_kick(ops_arg);
	work();
	ATF_CHECK_STREQ("", said());
	/* Nothing is pending: before the first packet, and behind it. */
	attach();
	put(E82545_TDH, 3);
	put(E82545_TDT, 3);
	said_start();
	ops->eo_tx_kick(ops_arg);
	work();
	ATF_CHECK_STREQ("", said());
	ATF_CHECK(ad->checked);
	attach();
	put(E82545_TDH, 0);
	put(E82545_TDT, 0);
	ops->eo_tx_kick(ops_arg);
	work();
	ATF_CHECK(!ad->checked);
	/* While the model polls, something was sent. */
	tx_state = E82545_TX_MORE;
	put(E82545_TDT, 4);
	check_zeros(0, 0, 0, "");
}

TEST_PROGRAM
