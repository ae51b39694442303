/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The host's side of the model: how often the adapter's thread polls, what it
 * turns on and off, whom it wakes, what it says, and what it undoes.
 */

#include <sys/param.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <dev/e1000/e82545_reg.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atf-c.h>

#include "adapter_calls.h"
#include "adapter_keep.h"
#include "event_stub.h"
#include "open_fds.h"
#include "said.h"
#include "libvale.h"
#include "test.h"
#include "vale_setting.h"
#include "wait_until.h"

#define	TX_POLLS	16		/* in one call of adapter_work() */

static void
put(uint32_t reg, uint32_t value)
{
	e82545_write(ad->dev, E82545_BAR_MEM, reg, 4, value);
}

TEST(transmits, "A poll is repeated 16 times a round, a yield once more gives \
the processor away, and what is not idle goes on")
{
	static const struct {
		enum e82545_tx_state state;
		unsigned int calls, yields;
		bool again;
	} rows[] = {
		{ E82545_TX_POLL, TX_POLLS, 0, true },
		{ E82545_TX_YIELD, TX_POLLS, 1, true },
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
	ATF_CHECK_STREQ("adapter_test: a: client dropped: its memory at 0x500000000 "
	    "is gone\n", said());
	said_start();
	refused = GPA;
	work();
	ATF_CHECK_EQ(1, drops);
	ATF_CHECK(ad->unshared);
	ATF_CHECK_STREQ("adapter_test: a: the guest uses memory that its client does "
	    "not share, at 0x500000000: QEMU needs memory-backend-memfd with "
	    "share=on\n", said());
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

TEST(attaches, "A new client finds nothing of the former")
{
	start();
	fake = true;
	rx_state = E82545_RX_IDLE;
	client();
	ATF_CHECK_EQ(1, pauses);
	ATF_CHECK_EQ(1, resumes);
	ad->vfu.vdev_irq.msi_fd = eventfd(0, EFD_CLOEXEC);
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
	check_zeros(3, 0, 0, "adapter_test: a: the guest's transmit descriptors are not "
	    "in its memory at 0x500001040: QEMU needs memory-backend-memfd "
	    "with share=on\n");
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

TEST(configures, "The model, the port and its descriptors are as configured")
{
	struct e82545_config want;

	config.ac_itr_256ns = 1000;
	config.ac_itr_min_256ns = 250;
	config.ac_poll_us = 1000;
	config.ac_csb = true;
	config.ac_mtu = 1500;
	strlcpy(config.ac_where, "f:1", sizeof(config.ac_where));
	memset(&want, 0, sizeof(want));
	memcpy(want.ec_mac, "\2\0\0\0\0\7", 6);
	want.ec_itr_256ns = 1000;
	want.ec_itr_min_256ns = 250;
	want.ec_csb = true;
	start();
	want.ec_name = ad->config.ac_name;
	want.ec_memory = adapter_keep_model(ad, &want.ec_memory_size);
	ATF_CHECK(want.ec_memory_size >= e82545_memory_size());
	ATF_CHECK_EQ(0, memcmp(&want, &model, sizeof(want)));
	ATF_CHECK_EQ(E82545_PCI_SUBDEVICE_CSB, ad->vfu.vdev_pci.subdevice);
	ATF_CHECK(ad->net.an_port->fp_offloads);
	ATF_CHECK_EQ(1000000, polls_ns);
	ATF_CHECK_STREQ("a", thread_name);
	ATF_CHECK_EQ(1500 + E82545_HDRLEN_MAX,
	    ad->net.an_port->fp_frame_max);
	ATF_CHECK_EQ(0, memcmp(want.ec_mac, address, sizeof(address)));
	ATF_CHECK_STREQ("vale0:a", addressed);
	ATF_CHECK(sink == NULL);
	ATF_CHECK_EQ(O_NONBLOCK, fcntl(ad->timer_fd, F_GETFL) & O_NONBLOCK);
	ATF_CHECK_EQ(O_NONBLOCK, fcntl(ad->work_fd, F_GETFL) & O_NONBLOCK);
	ATF_CHECK_EQ(FD_CLOEXEC, fcntl(ad->timer_fd, F_GETFD));
	ATF_CHECK_EQ(FD_CLOEXEC, fcntl(ad->work_fd, F_GETFD));
	/* Frames wait in the port until there is a client. */
	ATF_CHECK(ad->rx_stopped);
	ATF_CHECK_EQ(3, events_on());
}

TEST(defaults, "What is not configured is not set")
{
	start();
	ATF_CHECK_EQ(UINT32_MAX, ad->net.an_port->fp_frame_max);
	ATF_CHECK(!model.ec_csb);
	ATF_CHECK_EQ(E82545_PCI_SUBDEVICE, ad->vfu.vdev_pci.subdevice);
	ATF_CHECK_EQ(-1, ad->vfu.vdev_irq.msi_fd);
	ATF_CHECK_EQ(-1, ad->vfu.vdev_irq.intx_fd);
	ATF_CHECK_EQ(0, model.ec_itr_256ns + model.ec_itr_min_256ns);
}

static unsigned int watched;

static void
watch(struct adapter *ending)
{
	ATF_CHECK_EQ(NULL, ending);
	watched++;
}

TEST(ends, "A signal interrupts no wait, and others are watched meanwhile; at "
    "its end, all is undone, and freed")
{
	unsigned int i;

	configure();
	config.ac_direct = serves = true;
	for (i = 0; i < 3; i++) {
		interrupted = go_interrupted = i;
		watched = 0;
		ad = adapter_start(&config, i != 1 ? watch : NULL);
		ATF_REQUIRE(ad != NULL);
		ATF_CHECK(i == 1 ? watched == 0 : watched >= i);
		ATF_CHECK_EQ(0, interrupted);
		wait_until(atomic_load_32(&go_waits) == i + 1, "%u waits",
		    go_waits);
		ATF_CHECK(!adapter_ended(ad));
		ad->live = malloc(8);
		if (i == 0)
			freed = ad->live;
		adapter_stop(ad);
		ATF_CHECK_EQ(i + 1, stops);
		adapter_go(ad);
		wait_until(adapter_ended(ad), "the thread's end");
		ATF_CHECK(was_freed);
		was_freed = false;
		ATF_CHECK_STREQ("no sink;destroy;no port;", calls);
		ATF_CHECK_EQ(0, events_used());
	}
}

/* Whether the adapter is open that is being started. */
static bool
opened(void)
{
	struct adapter *a = __DECONST(struct adapter *, freed);
	bool is;

	pthread_mutex_lock(&a->mtx);
	is = a->opened;
	pthread_mutex_unlock(&a->mtx);
	return (is);
}

static void
watch_opened(struct adapter *ending __unused)
{
	watched++;
	wait_until(opened(), "the adapter");
}

/* End the adapter, and wait for its thread. */
static void
end(void)
{
	adapter_stop(ad);
	adapter_go(ad);
	wait_until(adapter_ended(ad), "the thread's end");
}

TEST(told, "adapter_start() is woken when the adapter is open, and returns")
{
	configure();
	serves = true;
	patient = true;
	ad = adapter_start(&config, watch);
	ATF_REQUIRE(ad != NULL);
	ATF_CHECK_EQ(1, clockwaits);
	ATF_CHECK_EQ(0, watched);
	end();
	patient = false;
	interrupted = 1;
	clockwaits = 0;
	ad = adapter_start(&config, watch_opened);
	ATF_REQUIRE(ad != NULL);
	ATF_CHECK_EQ(1, watched);
	ATF_CHECK_EQ(1, clockwaits);
	end();
}

TEST(waits, "The main thread waits for a hundredth of a second at a time")
{
	static const struct timespec rows[][2] = {
		{ { 5, 0 }, { 5, 10000000 } },
		{ { 5, 989999999 }, { 5, 999999999 } },
		{ { 5, 990000000 }, { 6, 0 } },
		{ { 5, 999999999 }, { 6, 9999999 } },
	};
	unsigned int i;

	configure();
	serves = true;
	for (i = 0; i < nitems(rows); i++) {
		clock_now = rows[i][0];
		interrupted = 1;
		watched = 0;
		ad = adapter_start(&config, watch);
		ATF_REQUIRE(ad != NULL);
		ATF_CHECK_EQ_MSG(rows[i][1].tv_sec, waited.tv_sec, "%u", i);
		ATF_CHECK_EQ_MSG(rows[i][1].tv_nsec, waited.tv_nsec, "%u", i);
		ATF_CHECK(watched > 0);
		clock_now.tv_sec = 0;
		adapter_stop(ad);
		adapter_go(ad);
		wait_until(adapter_ended(ad), "the thread's end");
	}
}

static volatile sig_atomic_t signals;

static void
count_signal(int sig __unused)
{
	signals++;
}

TEST(watches, "A call that three checks find is interrupted")
{
	unsigned int i;

	start();
	signal(PEER_SIGNAL, count_signal);
	ad->vfu.vdev_irq.calls = 2;
	ad->vfu.vdev_server.calls = 4;
	for (i = 0; i < 4; i++)
		adapter_watch(ad);
	ATF_CHECK_EQ(0, signals);
	/* The third check of a call; it is the sum that counts. */
	ad->vfu.vdev_irq.calls = 3;
	adapter_watch(ad);
	ad->vfu.vdev_irq.calls = 2;
	ad->vfu.vdev_server.calls = 5;
	adapter_watch(ad);
	ATF_CHECK_EQ(0, signals);
	adapter_watch(ad);
	ATF_CHECK_EQ(1, signals);
}

TEST(fails, "A step that fails is named in one line, and undone")
{
	static const struct {
		const char *step, *line;
	} rows[] = {
		{ "timer", "event descriptors" },
		{ "event", "event descriptors" },
		{ "round", "event descriptors" },
		{ "address", "address of the port" },
		{ "model", "adapter" },
		{ "fault", "spare page" },
		{ "server", "socket" },
		{ "sandbox", "capabilities" },
		{ "sem", "cannot start" },
		{ "thread", "cannot start" },
	};
	const char *text;
	char line[128];
	unsigned int fds, i;

	configure();
	fds = open_fds();
	for (i = 0; i < nitems(rows); i++) {
		fail_at = rows[i].step;
		was_freed = false;
		joined = 0;
		errno = 0;
		said_start();
		ATF_CHECK_MSG(adapter_start(&config, NULL) == NULL, "%s",
		    rows[i].step);
		ATF_CHECK_EQ_MSG(ENOBUFS, errno, "%s: %d", rows[i].step, errno);
		snprintf(line, sizeof(line), "adapter_test: a: %s: %s\n",
		    rows[i].line, strerror(ENOBUFS));
		ATF_CHECK_STREQ(line, said());
		ATF_CHECK_EQ_MSG(fds, open_fds(), "%s: %u", rows[i].step,
		    open_fds());
		ATF_CHECK_EQ(0, events_used());
		ATF_CHECK_MSG(was_freed, "%s", rows[i].step);
		/* Of the last two there is no thread. */
		ATF_CHECK_EQ_MSG(i < nitems(rows) - 2, joined, "%s: %u",
		    rows[i].step, joined);
	}
	fail_at = "alloc";
	ATF_CHECK(adapter_start(&config, NULL) == NULL);
	ATF_CHECK_EQ(ENOBUFS, errno);
	/* Each event. */
	fail_at = NULL;
	for (i = 1; i <= 2; i++) {
		events_fail = i;
		ATF_CHECK(adapter_start(&config, NULL) == NULL);
		ATF_CHECK_EQ(ENOSPC, errno);
		ATF_CHECK_EQ(fds, open_fds());
		ATF_CHECK_EQ(0, events_used());
	}
	/* A port that cannot be opened has a sentence, and its place. */
	strlcpy(config.ac_where, "f:1", sizeof(config.ac_where));
	strlcpy(config.ac_backend, "vale0:", sizeof(config.ac_backend));
	said_start();
	ATF_CHECK(adapter_start(&config, NULL) == NULL);
	ATF_CHECK_EQ(EIO, errno);
	text = said();
	ATF_CHECK_MSG(strstr(text, ": f:1: backend=vale0:: ") != NULL, "%s",
	    text);
	ATF_CHECK(strstr(text, ": a: ") == NULL);
	ATF_CHECK_EQ(fds, open_fds());
	strlcpy(config.ac_backend, "vale0:a", sizeof(config.ac_backend));
	events_fail = 3;
	said_start();
	ATF_CHECK(adapter_start(&config, NULL) == NULL);
	ATF_CHECK_EQ(EIO, errno);
	text = said();
	ATF_CHECK_MSG(strstr(text, ": f:1: vale0:a: cannot wait for frames: ")
	    != NULL, "%s", text);
	ATF_CHECK_EQ(fds, open_fds());
	ATF_CHECK_EQ(0, events_used());
}

TEST(change, "A change in place is made once, by the adapter's thread")
{
	struct adapter_config new;

	start();
	new = config;
	calls[0] = '\0';
	new.ac_itr_256ns = 5;
	new.ac_itr_min_256ns = 6;
	new.ac_poll_us = 7;
	polls_ns = 1;
	adapter_change(ad, &new);
	new.ac_mtu = 1500;
	adapter_change(ad, &new);
	ATF_CHECK(ad->work_posted != 0);
	ATF_CHECK(strstr(calls, "change") == NULL);
	ATF_CHECK(events_step() >= 1);
	ATF_CHECK(strstr(calls, "change") != NULL);
	ATF_CHECK_EQ(5, changed[0]);
	ATF_CHECK_EQ(6, changed[1]);
	ATF_CHECK_EQ(1500 + E82545_HDRLEN_MAX, changed[2]);
	ATF_CHECK_EQ(7000, polls_ns);
	calls[0] = '\0';
	(void)events_step();
	ATF_CHECK(strstr(calls, "change") == NULL);
	new.ac_mtu = 0;
	adapter_change(ad, &new);
	ATF_CHECK(events_step() >= 1);
	ATF_CHECK_EQ(UINT32_MAX, changed[2]);
}

/* Move the adapter. */
static int
move(const char *port, const char *name)
{
	struct adapter_config new = config;
	int error;

	strlcpy(new.ac_backend, port, sizeof(new.ac_backend));
	strlcpy(new.ac_name, name, sizeof(new.ac_name));
	strlcpy(new.ac_where, "f:2", sizeof(new.ac_where));
	new.ac_listen = -1;
	calls[0] = '\0';
	stepping = true;
	error = adapter_move(ad, &new, watch);
	stepping = false;
	return (error);
}

/* Whether there is a port. */
static bool
is_port(const char *name)
{
	uint64_t counters[VALE_NCOUNTERS];

	return (vale_port_counters(name, counters) == 0);
}

static void
send_frame(struct vale_desc *d, uint8_t byte)
{
	struct netmap_slot *slot = &d->txring->slot[d->txring->head];
	char *buf = NETMAP_BUF(d->txring, slot->buf_idx);

	memset(buf, 0xff, 6);
	memset(buf + 6, byte, 54);
	slot->len = 60;
	slot->flags = 0;
	d->txring->head = d->txring->cur = nm_ring_next(d->txring,
	    d->txring->head);
	ATF_REQUIRE_EQ(0, vale_txsync(d));
}

static struct vale_desc *other;

/* To both ports of an adapter that is moved. */
static void
send_to_both(void)
{
	ATF_CHECK(is_port("vale0:a") && is_port("vale0:b"));
	send_frame(other, 1);
}

/* Whether a frame waits in the adapter's port. */
static bool
waits(void)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };

	frame_port_sync(ad->net.an_port);
	return (frame_peek(ad->net.an_port->fp_source, &frame));
}

TEST(move, "An adapter is moved to another port, and what came to both is dropped; "
    "the old one goes when the model does not use it any more")
{
	unsigned int fds;

	config.ac_direct = true;
	start();
	fds = open_fds();
	other = vale_open("vale0:other", NULL);
	ATF_REQUIRE(other != NULL);
	ATF_CHECK(sink != NULL);
	sink = NULL;
	close_hook = send_to_both;
	ATF_CHECK_EQ(0, move("vale0:b", "b"));
	close_hook = NULL;
	ATF_CHECK(!waits());
	send_frame(other, 2);
	ATF_CHECK(waits());
	vale_close(other);
	ATF_CHECK_STREQ("no sink;move;no port;change;sink;flush;flush;", calls);
	ATF_CHECK(sink != NULL && sink_arg == ad);
	ATF_CHECK(!is_port("vale0:a") && is_port("vale0:b"));
	ATF_CHECK_STREQ("vale0:b", addressed);
	ATF_CHECK_EQ(0, memcmp(config.ac_mac, address, sizeof(address)));
	ATF_CHECK_STREQ("vale0:b", ad->config.ac_backend);
	ATF_CHECK_STREQ("b", ad->config.ac_name);
	ATF_CHECK_STREQ("b", e82545_name(ad->dev));
	ATF_CHECK_EQ(config.ac_listen, ad->config.ac_listen);
	ATF_CHECK(ad->net.an_port->fp_offloads);
	/* Its frames are looked for. */
	ATF_CHECK_EQ(1, rx_calls);
	/* To nowhere, and back. */
	ATF_CHECK_EQ(0, move("none", "b"));
	ATF_CHECK(!is_port("vale0:b"));
	ATF_CHECK_EQ(0, move("vale1:c", "c"));
	ATF_CHECK(is_port("vale1:c"));
	ATF_CHECK_EQ(fds, open_fds());
	ATF_CHECK_EQ(3, events_used() - 1);
}

TEST(move_link, "The guest sees the link of the new port, and no change if that "
    "is the same")
{
	const struct vale_setting_value down = { .sv_text = "down" };

	start();
	put(E82545_CTRL, E82545_CTRL_SLU);
	(void)e82545_read(ad->dev, E82545_BAR_MEM, E82545_ICR, 4);
	ATF_CHECK_EQ(0, move("vale0:b", "b"));
	ATF_CHECK_EQ(0, e82545_read(ad->dev, E82545_BAR_MEM, E82545_ICR, 4) &
	    E82545_ICR_LSC);
	ATF_REQUIRE_EQ(0, vale_setting_keep("vale0:c", VALE_SETTING_LINK,
	    &down));
	ATF_CHECK_EQ(0, move("vale0:c", "c"));
	ATF_CHECK_EQ(E82545_ICR_LSC, e82545_read(ad->dev, E82545_BAR_MEM,
	    E82545_ICR, 4) & E82545_ICR_LSC);
	ATF_CHECK_EQ(0, e82545_read(ad->dev, E82545_BAR_MEM, E82545_STATUS, 4) &
	    E82545_STATUS_LU);
	ATF_CHECK_EQ(0, move("vale0:d", "d"));
	ATF_CHECK_EQ(E82545_STATUS_LU, e82545_read(ad->dev, E82545_BAR_MEM,
	    E82545_STATUS, 4) & E82545_STATUS_LU);
}

TEST(move_fails, "An adapter that cannot be moved is as it was")
{
	struct vale_desc *d = vale_open("vale0:b", NULL);
	unsigned int fds, used;
	const char *text;

	config.ac_direct = true;
	start();
	fds = open_fds();
	used = events_used();
	said_start();
	ATF_CHECK_EQ(EIO, move("vale0:b", "b"));
	ATF_CHECK_STREQ("none;flush;flush;", calls);
	text = said();
	ATF_CHECK_MSG(strstr(text, ": f:2: backend=vale0:b: the port is open "
	    "already\n") != NULL, "%s", text);
	fail_at = "address";
	said_start();
	ATF_CHECK_EQ(ENOBUFS, move("vale0:c", "c"));
	ATF_CHECK_STREQ("no port;flush;flush;", calls);
	text = said();
	ATF_CHECK_MSG(strstr(text, ": a: address of the port: ") != NULL, "%s",
	    text);
	fail_at = NULL;
	events_fail = 1;
	ATF_CHECK_EQ(EIO, move("vale0:c", "c"));
	ATF_CHECK(is_port("vale0:a") && !is_port("vale0:c"));
	ATF_CHECK_STREQ("vale0:a", ad->config.ac_backend);
	ATF_CHECK_STREQ("a", ad->config.ac_name);
	ATF_CHECK(sink != NULL);
	ATF_CHECK_EQ(fds, open_fds());
	ATF_CHECK_EQ(used, events_used());
	vale_close(d);
	ATF_CHECK_EQ(0, move("vale0:b", "b"));
}

TEST_PROGRAM
