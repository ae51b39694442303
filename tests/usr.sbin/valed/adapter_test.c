/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * An adapter begins and ends: how it is configured, who waits for whom, and
 * what is undone if a step fails.
 */

#include <sys/param.h>
#include <dev/e1000/e82545_reg.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <atf-c.h>

#include "adapter_calls.h"
#include "adapter_keep.h"
#include "event_stub.h"
#include "fail_calls.h"
#include "open_fds.h"
#include "said.h"
#include "test.h"
#include "wait_until.h"

TEST(configures, "The model, the port and its descriptors are as configured")
{
	struct e82545_config want;

	config.ac_itr_256ns = 1000;
	config.ac_itr_min_256ns = 250;
	config.ac_poll_us = 1000;
	config.ac_csb = E82545_CSB_COMPAT;
	config.ac_mtu = 1500;
	strlcpy(config.ac_where, "f:1", sizeof(config.ac_where));
	memset(&want, 0, sizeof(want));
	memcpy(want.ec_mac, "\2\0\0\0\0\7", 6);
	want.ec_itr_256ns = 1000;
	want.ec_itr_min_256ns = 250;
	want.ec_csb = E82545_CSB_COMPAT;
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

TEST(resumes, "What an earlier process has left of one keeps nobody waiting")
{
	configure();
	serves = true;
	ad = adapter_start(&config, NULL);
	ATF_REQUIRE(ad != NULL);
	ATF_CHECK_EQ(1, atomic_load_32(&keep_resumes));
	ATF_CHECK(adapter_resumed(ad));
	end();
	ATF_CHECK_EQ(1, atomic_load_32(&keep_resumes));
	keep_found = true;
	ad = adapter_start(&config, NULL);
	ATF_REQUIRE(ad != NULL);
	ATF_CHECK_EQ(1, atomic_load_32(&keep_resumes));
	ATF_CHECK(!adapter_resumed(ad));
	adapter_go(ad);
	wait_until(adapter_resumed(ad), "that it goes on");
	ATF_CHECK_EQ(2, atomic_load_32(&keep_resumes));
	adapter_stop(ad);
	wait_until(adapter_ended(ad), "the thread's end");
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

/*
 * Start an adapter while call `n' fails.  Returns false if there are not so
 * many; counts in *refused those that kept the adapter from starting.
 */
static bool
start_failing(uint32_t n, unsigned int *refused)
{
	const unsigned int fds = open_fds();
	const char *end_of, *name, *text;
	char line[128];
	bool failed;
	int error;

	was_freed = false;
	errno = 0;
	said_start();
	fail_calls(NULL, n, 1);
	ad = adapter_start(&config, NULL);
	error = errno;
	failed = fail_calls_end() > 0;
	name = fail_calls_name();
	text = said();
	if (ad != NULL) {
		end();
		ATF_CHECK_STREQ_MSG("", text, "%s, call %u", name, n);
		/* A thread may be without its name; no mutex fails here. */
		ATF_CHECK_MSG(!failed || strcmp(name, "prctl") == 0 ||
		    strcmp(name, "pthread_mutex_init") == 0, "%s, call %u",
		    name, n);
	} else {
		ATF_REQUIRE(failed);
		ATF_CHECK_MSG(error != 0, "%s, call %u", name, n);
		/* One line; what is wrong with the port has its place. */
		snprintf(line, sizeof(line), ": %s\n", strerror(error));
		end_of = strchr(text, '\n');
		ATF_REQUIRE_MSG(end_of != NULL && end_of[1] == '\0',
		    "%s, call %u: %s", name, n, text);
		ATF_CHECK_MSG(strncmp(text, "adapter_test: f:1: ", 19) == 0 ||
		    (strncmp(text, "adapter_test: a: ", 17) == 0 &&
		    strcmp(end_of + 1 - strlen(line), line) == 0),
		    "%s, call %u: %s", name, n, text);
		/* The first call is for its memory. */
		ATF_CHECK_MSG(was_freed || n == 1, "%s, call %u", name, n);
		++*refused;
	}
	ATF_CHECK_EQ_MSG(fds, open_fds(), "%s, call %u: %u", name, n,
	    open_fds());
	ATF_CHECK_EQ(0, events_used());
	return (failed);
}

TEST(fails, "A step that fails is named in one line, and undone")
{
	unsigned int fds, i, refused = 0;
	const char *text;
	uint32_t n = 0;

	configure();
	strlcpy(config.ac_where, "f:1", sizeof(config.ac_where));
	serves = true;
	while (start_failing(++n, &refused))
		continue;
	ATF_CHECK_MSG(refused >= 10, "%u of %u", refused, n - 1);
	serves = false;
	fds = open_fds();
	/* What no call of the system's fails for. */
	for (i = 0; i < 2; i++) {
		fail_at = i == 0 ? "address" : "sandbox";
		said_start();
		ATF_CHECK(adapter_start(&config, NULL) == NULL);
		ATF_CHECK_EQ(ENOBUFS, errno);
		ATF_CHECK_STREQ(i == 0 ? "adapter_test: a: address of the "
		    "port: No buffer space available\n" : "adapter_test: a: "
		    "capabilities: No buffer space available\n", said());
		ATF_CHECK_EQ(fds, open_fds());
		ATF_CHECK_EQ(0, events_used());
	}
	fail_at = NULL;
	/* Each event. */
	for (i = 1; i <= 2; i++) {
		events_fail = i;
		ATF_CHECK(adapter_start(&config, NULL) == NULL);
		ATF_CHECK_EQ(ENOSPC, errno);
		ATF_CHECK_EQ(fds, open_fds());
		ATF_CHECK_EQ(0, events_used());
	}
	/* A port that cannot be opened has a sentence, and its place. */
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

TEST_PROGRAM
