/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Interrupts that another thread sends than the device's: the client sees the
 * same events, nothing is lost or comes twice, and the other thread waits for
 * nobody.
 */

#include <sys/param.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "event_stub.h"
#include "peer_signal.h"
#include "test.h"
#include "vfu_irq.h"
#include "wrap.h"

#define	INTX		VFIO_PCI_INTX_IRQ_INDEX
#define	MSI		VFIO_PCI_MSI_IRQ_INDEX
#define	MSIX		VFIO_PCI_MSIX_IRQ_INDEX
#define	NONE		VFIO_IRQ_SET_DATA_NONE
#define	EVENTFD		VFIO_IRQ_SET_DATA_EVENTFD
#define	TRIGGER		VFIO_IRQ_SET_ACTION_TRIGGER
#define	UNMASK		VFIO_IRQ_SET_ACTION_UNMASK

static struct vfu_irq	irq;
static unsigned int	signals;	/* calls of peer_signal() */
static unsigned int	fewer;		/* that one signals */
static void		(*hook)(void);	/* it calls this first */

WRAP(unsigned int, peer_signal, const int *fds, unsigned int n)
{
	signals++;
	if (hook != NULL)
		hook();
	return (__real_peer_signal(fds, n - MIN(n, fewer)));
}

static void
start(unsigned int vectors)
{
	memset(&irq, 0xa5, sizeof(irq));
	vfu_irq_init(&irq, vectors);
	if (peer_signal_context() == 0)
		ATF_REQUIRE_EQ(0, peer_signal_start());
}

static void
set(uint32_t index, uint32_t flags, uint32_t first, int *fd)
{
	const struct vfio_user_irq_set is = { .argsz = sizeof(is),
	    .flags = flags, .index = index, .start = first, .count = 1 };
	int copy = fd == NULL ? -1 : dup(*fd);

	ATF_CHECK_EQ(0, vfu_irq_set(&irq, &is, NULL, 0, &copy, fd != NULL));
	ATF_CHECK_EQ(-1, copy);
}

/* Pass an eventfd for an interrupt; returns it. */
static int
pass(uint32_t index, uint32_t first)
{
	int fd = eventfd(0, EFD_NONBLOCK);

	ATF_REQUIRE(fd != -1);
	set(index, EVENTFD | TRIGGER, first, &fd);
	return (fd);
}

static uint64_t
fired(int fd)
{
	uint64_t n;

	return (read(fd, &n, sizeof(n)) == (ssize_t)sizeof(n) ? n : 0);
}

TEST(many, "What one call has no space for is left to the device's thread")
{
	unsigned int i;
	int fd[2], msi;

	start(2);
	fd[0] = pass(MSIX, 0);
	fd[1] = pass(MSIX, 1);
	for (i = 0; i < PEER_SIGNAL_MAX + 5; i++)
		vfu_irq_message(&irq, 0);
	vfu_irq_message(&irq, 1);
	ATF_CHECK(!vfu_irq_signal(&irq));
	ATF_CHECK_EQ(PEER_SIGNAL_MAX, fired(fd[0]));
	vfu_irq_flush(&irq);
	ATF_CHECK_EQ(5, fired(fd[0]));
	ATF_CHECK_EQ(1, fired(fd[1]));
	msi = pass(MSI, 0);
	for (i = 0; i < PEER_SIGNAL_MAX + 5; i++)
		vfu_irq_level(&irq, true);
	ATF_CHECK(!vfu_irq_signal(&irq));
	ATF_CHECK_EQ(PEER_SIGNAL_MAX, fired(msi));
	vfu_irq_flush(&irq);
	ATF_CHECK_EQ(5, fired(msi));
}

TEST(back, "What cannot be signalled is left to the device's thread")
{
	static const int hard[] = { MSIX, MSI, INTX };
	unsigned int i;
	int fd;

	for (i = 0; i < nitems(hard); i++) {
		start(1);
		fd = pass(hard[i], 0);
		fewer = 1;
		if (hard[i] == MSIX) {
			vfu_irq_message(&irq, 0);
			vfu_irq_message(&irq, 0);
		} else
			vfu_irq_level(&irq, true);
		ATF_CHECK(!vfu_irq_signal(&irq));
		ATF_CHECK_EQ(hard[i] == MSIX, fired(fd));
		ATF_CHECK(vfu_irq_pending(&irq));
		ATF_CHECK(!irq.masked && !irq.shown);
		fewer = 0;
		vfu_irq_flush(&irq);
		ATF_CHECK_EQ(1, fired(fd));
		ATF_CHECK_EQ(hard[i] == INTX, irq.masked);
		ATF_CHECK_EQ(hard[i] == MSIX ? 2 : 1, irq.sent);
	}
}

TEST(others, "An anonymous file that is no eventfd fails as for a write")
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);

	start(0);
	set(MSI, EVENTFD | TRIGGER, 0, &fd);
	vfu_irq_level(&irq, true);
	ATF_CHECK(!vfu_irq_signal(&irq));
	vfu_irq_flush(&irq);
	ATF_CHECK(!vfu_irq_pending(&irq));
	ATF_CHECK_EQ(0, irq.sent);
}

TEST(again, "INTx of a state that another process has left is the device's "
    "thread's")
{
	const struct vfu_irq_state state = { .vis_masked = true,
	    .vis_shown = true };
	const int fd = eventfd(0, EFD_NONBLOCK);
	int none[VFU_IRQ_VECTORS];

	start(0);
	memset(none, 0xff, sizeof(none));
	ATF_REQUIRE_EQ(0, vfu_irq_restore(&irq, &state, fd, -1, -1, none));
	vfu_irq_level(&irq, true);
	ATF_CHECK(!vfu_irq_signal(&irq));
	ATF_CHECK_EQ(0, fired(fd));
	vfu_irq_flush(&irq);
	ATF_CHECK_EQ(1, fired(fd));
}

TEST(full, "A client that makes writes block does not make this block")
{
	int fd;

	start(0);
	fd = pass(MSI, 0);
	ATF_REQUIRE_EQ(0, eventfd_write(fd, UINT64_MAX - 1));
	ATF_REQUIRE_EQ(0, fcntl(fd, F_SETFL, 0));
	vfu_irq_level(&irq, true);
	ATF_CHECK(vfu_irq_signal(&irq));
	ATF_CHECK_EQ(UINT64_MAX, fired(fd));
}

static void *
try_signal(void *arg)
{
	*(bool *)arg = vfu_irq_signal(&irq);
	return (NULL);
}

TEST(held, "While the device's thread is in a call, or has ended, it is left "
    "to it")
{
	bool sent = true;
	pthread_t thread;
	int fd;

	start(0);
	fd = pass(MSI, 0);
	vfu_irq_level(&irq, true);
	vfu_irq_hold(&irq);
	ATF_REQUIRE_EQ(0, pthread_create(&thread, NULL, try_signal, &sent));
	pthread_join(thread, NULL);
	ATF_CHECK(!sent);
	ATF_CHECK_EQ(0, signals);
	ATF_CHECK_EQ(0, fired(fd));
	pthread_mutex_unlock(&irq.mtx);
	vfu_irq_flush(&irq);
	ATF_CHECK_EQ(1, fired(fd));
}

static pthread_t flusher;
static int	flush_fd;
static uint32_t	flushing, flushed;	/* atomic */

static void *
flush(void *arg __unused)
{
	atomic_store_32(&flushing, 1);
	vfu_irq_flush(&irq);
	ATF_CHECK_EQ_MSG(1, fired(flush_fd), "it was not sent before");
	atomic_store_32(&flushed, 1);
	return (NULL);
}

/* Another thread begins a flush, and has time to return from it, if it does. */
static void
let_flush(void)
{
	unsigned int i;

	ATF_REQUIRE_EQ(0, pthread_create(&flusher, NULL, flush, NULL));
	while (atomic_load_32(&flushing) == 0)
		sched_yield();
	for (i = 0; i < 1000; i++)
		sched_yield();
	ATF_CHECK_EQ(0, atomic_load_32(&flushed));
}

TEST(order, "A flush waits for an event that another thread is sending")
{
	start(0);
	flush_fd = pass(MSI, 0);
	vfu_irq_level(&irq, true);
	hook = let_flush;
	ATF_CHECK(vfu_irq_signal(&irq));
	pthread_join(flusher, NULL);
	ATF_CHECK_EQ(1, irq.sent);
}

#define	MESSAGES	20000

static void *
model(void *arg __unused)
{
	unsigned int i;

	for (i = 0; i < MESSAGES; i++) {
		vfu_irq_message(&irq, i % 2);
		(void)vfu_irq_signal(&irq);
	}
	return (NULL);
}

TEST(race, "Nothing is lost or comes twice while descriptors come and go")
{
	int fd[2];
	uint64_t got[2] = { 0, 0 };
	pthread_t thread;
	unsigned int i;

	start(2);
	fd[0] = eventfd(0, EFD_NONBLOCK);
	fd[1] = eventfd(0, EFD_NONBLOCK);
	ATF_REQUIRE_EQ(0, pthread_create(&thread, NULL, model, NULL));
	for (i = 0; i < 2000; i++) {
		set(MSIX, EVENTFD | TRIGGER, i % 2, &fd[i % 2]);
		vfu_irq_flush(&irq);
		if (i % 3 == 0)
			set(MSIX, EVENTFD | TRIGGER, 1, NULL);
		got[0] += fired(fd[0]);
		sched_yield();
	}
	pthread_join(thread, NULL);
	for (i = 0; i < 2; i++) {
		set(MSIX, EVENTFD | TRIGGER, i, &fd[i]);
		vfu_irq_flush(&irq);
		got[i] += fired(fd[i]);
		ATF_CHECK_EQ_MSG(MESSAGES / 2, got[i], "%ju",
		    (uintmax_t)got[i]);
	}
	ATF_CHECK_EQ(MESSAGES, irq.sent);
	ATF_CHECK(!vfu_irq_pending(&irq));
}

TEST_PROGRAM
