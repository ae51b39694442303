/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Interrupts: the events that a client sees, and which requests it may make.
 * <linux/vfio.h>, "struct vfio_irq_info" and "struct vfio_irq_set".
 */

#include <sys/param.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "event_stub.h"
#include "open_fds.h"
#include "test.h"
#include "vfu_irq.h"

#define	INTX		VFIO_PCI_INTX_IRQ_INDEX
#define	MSI		VFIO_PCI_MSI_IRQ_INDEX
#define	MSIX		VFIO_PCI_MSIX_IRQ_INDEX
#define	NONE		VFIO_IRQ_SET_DATA_NONE
#define	BOOL		VFIO_IRQ_SET_DATA_BOOL
#define	EVENTFD		VFIO_IRQ_SET_DATA_EVENTFD
#define	TRIGGER		VFIO_IRQ_SET_ACTION_TRIGGER
#define	MASK		VFIO_IRQ_SET_ACTION_MASK
#define	UNMASK		VFIO_IRQ_SET_ACTION_UNMASK

static struct vfu_irq	irq;

static void
start_vectors(unsigned int n)
{
	memset(&irq, 0xa5, sizeof(irq));
	vfu_irq_init(&irq, n);
	irq.calls = UINT32_MAX - 1;	/* it wraps at the first call */
}

static void
start(void)
{
	start_vectors(0);
}

static int
set_full(uint32_t index, uint32_t flags, uint32_t first, uint32_t count,
    const void *data, size_t len, int *fds, int nfds)
{
	struct vfio_user_irq_set set = { .argsz = sizeof(set) + len,
	    .flags = flags, .index = index, .start = first, .count = count };

	return (vfu_irq_set(&irq, &set, data, len, fds, nfds));
}

/* A request for one interrupt without descriptors. */
static int
set_irq(uint32_t index, uint32_t flags)
{
	return (set_full(index, flags, 0, 1, NULL, 0, NULL, 0));
}

static int
set_bool(uint32_t index, uint32_t action, uint8_t value)
{
	return (set_full(index, BOOL | action, 0, 1, &value, 1, NULL, 0));
}

/* Pass a copy of `fd'; it is closed if the request does not keep it. */
static int
set_fd(uint32_t index, uint32_t action, int fd)
{
	int copy, error;

	copy = dup(fd);
	ATF_REQUIRE(copy != -1);
	error = set_full(index, EVENTFD | action, 0, 1, NULL, 0, &copy, 1);
	ATF_CHECK_EQ(error == 0, copy == -1);
	if (copy != -1)
		close(copy);
	return (error);
}

static int
event(void)
{
	int fd;

	fd = eventfd(0, EFD_NONBLOCK);
	ATF_REQUIRE(fd != -1);
	return (fd);
}

/* The events on a descriptor since the last call. */
static uint64_t
fired(int fd)
{
	uint64_t n;

	return (read(fd, &n, sizeof(n)) == (ssize_t)sizeof(n) ? n : 0);
}

static void
assert_line(unsigned int times)
{
	for (; times > 0; times--)
		vfu_irq_level(&irq, true);
	vfu_irq_flush(&irq);
}

/*
 * Start with one eventfd for MSI, for INTx and to unmask INTx; returns it.
 * *base is the number of descriptors without the server's copies.
 */
static int
start_all(unsigned int *base)
{
	int fd;

	start();
	fd = event();
	*base = open_fds();
	ATF_REQUIRE_EQ(0, set_fd(MSI, TRIGGER, fd));
	ATF_REQUIRE_EQ(0, set_fd(INTX, TRIGGER, fd));
	ATF_REQUIRE_EQ(0, set_fd(INTX, UNMASK, fd));
	return (fd);
}

TEST(info, "INTx and MSI have one interrupt each, MSI-X and REQ none")
{
	const struct {
		uint32_t index, flags, count;
	} want[] = {
		{ INTX, VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_MASKABLE |
		    VFIO_IRQ_INFO_AUTOMASKED, 1 },
		{ MSI, VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_NORESIZE, 1 },
		{ VFIO_PCI_MSIX_IRQ_INDEX, 0, 0 },
		{ VFIO_PCI_REQ_IRQ_INDEX, 0, 0 },
	};
	struct vfio_user_irq_info info;
	unsigned int i;

	start();
	for (i = 0; i < nitems(want); i++) {
		memset(&info, 0xa5, sizeof(info));
		info.index = want[i].index;
		ATF_CHECK_EQ(0, vfu_irq_info(&irq, &info));
		ATF_CHECK_EQ(want[i].flags, info.flags);
		ATF_CHECK_EQ(want[i].count, info.count);
	}
	info.index = VFIO_PCI_ERR_IRQ_INDEX;
	ATF_CHECK_EQ(EINVAL, vfu_irq_info(&irq, &info));
	info.index = VFIO_PCI_NUM_IRQS;
	ATF_CHECK_EQ(EINVAL, vfu_irq_info(&irq, &info));
}

TEST(msix, "Each vector has events of its own, once it has a descriptor")
{
	struct vfio_user_irq_info info = { .index = MSIX };
	int copies[5], fds[5];
	unsigned int base, i;
	uint8_t which[5] = { 0, 1, 0, 0, 2 };

	start_vectors(5);
	ATF_CHECK_EQ(0, vfu_irq_info(&irq, &info));
	ATF_CHECK_EQ(VFIO_IRQ_INFO_EVENTFD, info.flags);
	ATF_CHECK_EQ(5, info.count);
	for (i = 0; i < 5; i++)
		fds[i] = event();
	base = open_fds();
	/* The first one alone, as QEMU does; then others. */
	copies[0] = dup(fds[0]);
	ATF_CHECK_EQ(0, set_full(MSIX, EVENTFD | TRIGGER, 0, 1, NULL, 0,
	    copies, 1));
	ATF_CHECK_EQ(-1, copies[0]);
	for (i = 1; i < 5; i++)
		copies[i] = dup(fds[i]);
	ATF_CHECK_EQ(0, set_full(MSIX, EVENTFD | TRIGGER, 1, 3, NULL, 0,
	    copies + 1, 3));
	ATF_CHECK_EQ(base + 5, open_fds());
	for (i = 0; i < 4; i++) {
		vfu_irq_message(&irq, i);
		ATF_CHECK(vfu_irq_pending(&irq));
		ATF_CHECK_EQ(0, fired(fds[i]));
		vfu_irq_flush(&irq);
		ATF_CHECK(!vfu_irq_pending(&irq));
		ATF_CHECK_EQ(1, fired(fds[i]));
	}
	vfu_irq_message(&irq, 2);
	vfu_irq_message(&irq, 0);
	vfu_irq_message(&irq, 2);
	vfu_irq_flush(&irq);
	ATF_CHECK_EQ(1, fired(fds[0]));
	ATF_CHECK_EQ(0, fired(fds[1]));
	ATF_CHECK_EQ(2, fired(fds[2]));
	ATF_CHECK_EQ(7, irq.sent);
	/* Without one it waits, and keeps nobody awake. */
	vfu_irq_message(&irq, 4);
	vfu_irq_flush(&irq);
	ATF_CHECK(!vfu_irq_pending(&irq));
	ATF_CHECK_EQ(0, set_full(MSIX, EVENTFD | TRIGGER, 4, 1, NULL, 0,
	    copies + 4, 1));
	ATF_CHECK_EQ(1, fired(fds[4]));
	/* Events on request. */
	ATF_CHECK_EQ(0, set_full(MSIX, NONE | TRIGGER, 2, 2, NULL, 0, NULL, 0));
	ATF_CHECK_EQ(0, set_full(MSIX, BOOL | TRIGGER, 0, 5, which, 5, NULL,
	    0));
	for (i = 0; i < 5; i++)
		ATF_CHECK_EQ(i > 0, fired(fds[i]));
	/* Two lose theirs, then all, with what waits. */
	ATF_CHECK_EQ(0, set_full(MSIX, EVENTFD | TRIGGER, 0, 2, NULL, 0, NULL,
	    0));
	ATF_CHECK_EQ(base + 3, open_fds());
	ATF_CHECK_EQ(0, set_full(MSIX, NONE | TRIGGER, 0, 2, NULL, 0, NULL, 0));
	vfu_irq_message(&irq, 0);
	vfu_irq_flush(&irq);
	ATF_CHECK_EQ(0, set_full(MSIX, NONE | TRIGGER, 0, 0, NULL, 0, NULL, 0));
	ATF_CHECK_EQ(base, open_fds());
	copies[0] = dup(fds[0]);
	ATF_CHECK_EQ(0, set_full(MSIX, EVENTFD | TRIGGER, 0, 1, NULL, 0,
	    copies, 1));
	ATF_CHECK_EQ(0, fired(fds[0]));
	/* The next client finds none. */
	vfu_irq_message(&irq, 1);
	vfu_irq_clear(&irq);
	ATF_CHECK(!vfu_irq_pending(&irq));
	ATF_CHECK_EQ(base, open_fds());
	ATF_CHECK_EQ(0, irq.calls % 2);
}

TEST(msix_restored, "After a restart a vector gets a message even if it has no "
    "descriptor yet, unless MSI-X was off")
{
	const struct vfu_irq_state state = { 0 };
	int copy, fd, fds[VFU_IRQ_VECTORS];
	unsigned int on;

	for (on = 0; on < 2; on++) {
		start_vectors(5);
		memset(fds, 0xff, sizeof(fds));
		if (on != 0)
			fds[1] = event();
		ATF_REQUIRE_EQ(0, vfu_irq_restore(&irq, &state, -1, -1, -1,
		    fds));
		vfu_irq_flush(&irq);
		if (on != 0)
			ATF_CHECK_EQ(1, fired(fds[1]));
		fd = event();
		copy = dup(fd);
		ATF_CHECK_EQ(0, set_full(MSIX, EVENTFD | TRIGGER, 4, 1, NULL,
		    0, &copy, 1));
		ATF_CHECK_EQ(on, fired(fd));
		ATF_CHECK_EQ(2 * on, irq.sent);
	}
}

TEST(msix_requests, "Requests for vectors that there are not, or without what "
    "they need, are refused, and do nothing")
{
	const struct {
		uint32_t flags, start, count;
		size_t len;
		int nfds;
	} bad[] = {
		{ NONE | TRIGGER, 3, 1, 0, 0 },
		{ NONE | TRIGGER, 0, 4, 0, 0 },
		{ NONE | TRIGGER, 2, 2, 0, 0 },
		{ NONE | TRIGGER, 1, 0xffffffff, 0, 0 },
		{ NONE | TRIGGER, 0xffffffff, 1, 0, 0 },
		{ NONE | TRIGGER, 1, 0, 0, 0 },
		{ NONE | TRIGGER, 0, 0, 0, 1 },
		{ NONE | TRIGGER, 0, 1, 0, 1 },
		{ BOOL | TRIGGER, 0, 2, 1, 0 },
		{ BOOL | TRIGGER, 0, 1, 1, 1 },
		{ EVENTFD | TRIGGER, 0, 0, 0, 0 },
		{ EVENTFD | TRIGGER, 0, 2, 0, 1 },
		{ EVENTFD | TRIGGER, 0, 1, 0, 2 },
		{ EVENTFD | TRIGGER, 2, 2, 0, 2 },
		{ TRIGGER, 0, 1, 1, 0 },
		{ NONE | BOOL | TRIGGER, 0, 1, 1, 0 },
		{ NONE | TRIGGER | 0x40, 0, 1, 0, 0 },
		{ NONE, 0, 1, 0, 0 },
		{ NONE | MASK, 0, 1, 0, 0 },
		{ NONE | UNMASK, 0, 1, 0, 0 },
		{ EVENTFD | UNMASK, 0, 1, 0, 1 },
	};
	const uint8_t data[2] = { 1, 1 };
	int copy, fds[2], good, other[2];
	unsigned int base, i;

	start_vectors(3);
	good = event();
	copy = dup(good);
	ATF_REQUIRE_EQ(0, set_full(MSIX, EVENTFD | TRIGGER, 0, 1, NULL, 0,
	    &copy, 1));
	fds[0] = event();
	fds[1] = event();
	base = open_fds();
	for (i = 0; i < nitems(bad); i++) {
		ATF_CHECK_EQ_MSG(EINVAL, set_full(MSIX, bad[i].flags,
		    bad[i].start, bad[i].count, data, bad[i].len, fds,
		    bad[i].nfds), "request %u", i);
		ATF_CHECK_EQ_MSG(0, fired(good), "request %u", i);
		ATF_CHECK_EQ_MSG(base, open_fds(), "request %u", i);
		ATF_CHECK(fds[0] != -1 && fds[1] != -1);
	}
	/* One that is no eventfd: none is taken. */
	other[0] = event();
	other[1] = memfd_create("memory", 0);
	ATF_CHECK_EQ(EINVAL, set_full(MSIX, EVENTFD | TRIGGER, 0, 2, NULL, 0,
	    other, 2));
	ATF_CHECK(other[0] != -1 && other[1] != -1);
	vfu_irq_message(&irq, 0);
	vfu_irq_flush(&irq);
	ATF_CHECK_EQ(1, fired(good));
}

TEST(msi, "MSI sends as many events as the line was asserted")
{
	uint32_t calls;
	unsigned int fds;
	int fd, second;

	start();
	fd = event();
	second = event();
	ATF_CHECK(!vfu_irq_pending(&irq));
	ATF_REQUIRE_EQ(0, set_fd(MSI, TRIGGER, fd));
	vfu_irq_flush(&irq);
	ATF_CHECK_EQ(0, fired(fd));
	vfu_irq_level(&irq, true);
	ATF_CHECK(vfu_irq_pending(&irq));
	ATF_CHECK_EQ(0, fired(fd));
	vfu_irq_flush(&irq);
	ATF_CHECK(!vfu_irq_pending(&irq));
	ATF_CHECK_EQ(1, fired(fd));
	/* Nothing is pending: no system call. */
	calls = irq.calls;
	vfu_irq_flush(&irq);
	ATF_CHECK_EQ(calls, irq.calls);
	ATF_CHECK_EQ(0, fired(fd));
	vfu_irq_level(&irq, false);
	ATF_CHECK(!vfu_irq_pending(&irq));
	assert_line(3);
	ATF_CHECK_EQ(3, fired(fd));
	ATF_CHECK_EQ(4, irq.sent);
	/* One event on request, whatever the line's level. */
	vfu_irq_level(&irq, false);
	ATF_CHECK_EQ(0, set_irq(MSI, NONE | TRIGGER));
	ATF_CHECK_EQ(1, fired(fd));
	ATF_CHECK_EQ(0, set_bool(MSI, TRIGGER, 0));
	ATF_CHECK_EQ(0, fired(fd));
	ATF_CHECK_EQ(0, set_bool(MSI, TRIGGER, 2));
	ATF_CHECK_EQ(1, fired(fd));
	/* Another descriptor takes its place; without one there is none. */
	fds = open_fds();
	ATF_CHECK_EQ(0, set_fd(MSI, TRIGGER, second));
	ATF_CHECK_EQ(fds, open_fds());
	assert_line(1);
	ATF_CHECK_EQ(0, fired(fd));
	ATF_CHECK_EQ(1, fired(second));
	ATF_CHECK_EQ(0, set_full(MSI, EVENTFD | TRIGGER, 0, 1, NULL, 0, NULL,
	    0));
	calls = irq.calls;
	assert_line(1);
	ATF_CHECK_EQ(0, set_irq(MSI, NONE | TRIGGER));
	ATF_CHECK_EQ(0, fired(second));
	ATF_CHECK_EQ(calls, irq.calls);
	ATF_CHECK_EQ(7, irq.sent);
	ATF_CHECK_EQ(0, irq.calls % 2);
}

TEST(intx, "INTx masks itself with each event, and follows the level")
{
	int fd;

	start();
	fd = event();
	vfu_irq_flush(&irq);
	ATF_REQUIRE_EQ(0, set_fd(INTX, TRIGGER, fd));
	ATF_CHECK_EQ(0, fired(fd));
	assert_line(3);
	ATF_CHECK_EQ(1, fired(fd));
	assert_line(1);
	ATF_CHECK_EQ(0, fired(fd));
	/* Asserted when it is unmasked. */
	ATF_CHECK_EQ(0, set_irq(INTX, NONE | UNMASK));
	ATF_CHECK_EQ(1, fired(fd));
	ATF_CHECK_EQ(0, set_bool(INTX, UNMASK, 0));
	ATF_CHECK_EQ(0, fired(fd));
	ATF_CHECK_EQ(0, set_bool(INTX, UNMASK, 1));
	ATF_CHECK_EQ(1, fired(fd));
	/* Not asserted: the next assertion sends the event. */
	vfu_irq_level(&irq, false);
	ATF_CHECK_EQ(0, set_irq(INTX, NONE | UNMASK));
	ATF_CHECK_EQ(0, fired(fd));
	assert_line(1);
	ATF_CHECK_EQ(1, fired(fd));
	ATF_CHECK_EQ(3, irq.unmasked);
	ATF_CHECK_EQ(4, irq.sent);
	/* Nor if it was asserted and deasserted before the flush. */
	vfu_irq_level(&irq, false);
	ATF_CHECK_EQ(0, set_irq(INTX, NONE | UNMASK));
	vfu_irq_level(&irq, true);
	vfu_irq_level(&irq, false);
	vfu_irq_flush(&irq);
	ATF_CHECK_EQ(0, fired(fd));
	/* Masked by the client. */
	ATF_CHECK_EQ(0, set_bool(INTX, MASK, 0));
	assert_line(1);
	ATF_CHECK_EQ(1, fired(fd));
	vfu_irq_level(&irq, false);
	ATF_CHECK_EQ(0, set_irq(INTX, NONE | UNMASK));
	ATF_CHECK_EQ(0, set_bool(INTX, MASK, 1));
	assert_line(1);
	ATF_CHECK_EQ(0, fired(fd));
	ATF_CHECK_EQ(0, set_irq(INTX, NONE | UNMASK));
	ATF_CHECK_EQ(1, fired(fd));
	vfu_irq_level(&irq, false);
	ATF_CHECK_EQ(0, set_irq(INTX, NONE | UNMASK));
	ATF_CHECK_EQ(0, set_irq(INTX, NONE | MASK));
	assert_line(1);
	ATF_CHECK_EQ(0, fired(fd));
	/* A new descriptor starts unmasked, and sees the level. */
	ATF_CHECK_EQ(0, set_fd(INTX, TRIGGER, fd));
	ATF_CHECK_EQ(1, fired(fd));
	/* One event on request, though it is masked. */
	ATF_CHECK_EQ(0, set_irq(INTX, NONE | TRIGGER));
	ATF_CHECK_EQ(1, fired(fd));
	ATF_CHECK_EQ(0, irq.calls % 2);
}

TEST(withdraw, "What the client has not read is taken back, and is not sent; "
    "the line can interrupt again")
{
	unsigned int i;
	int fds[3];

	/* MSI. */
	start_vectors(3);
	fds[0] = event();
	ATF_REQUIRE_EQ(0, set_fd(MSI, TRIGGER, fds[0]));
	assert_line(2);
	vfu_irq_level(&irq, true);
	vfu_irq_withdraw(&irq, 0x7);
	vfu_irq_flush(&irq);
	ATF_CHECK_EQ(3, fired(fds[0]));
	assert_line(2);
	vfu_irq_level(&irq, true);
	vfu_irq_level(&irq, false);
	vfu_irq_withdraw(&irq, 0);
	ATF_CHECK(!vfu_irq_pending(&irq));
	ATF_CHECK_EQ(0, fired(fds[0]));
	assert_line(1);
	ATF_CHECK_EQ(1, fired(fds[0]));
	/* INTx: one that was read is masked until the client unmasks. */
	start_vectors(3);
	ATF_REQUIRE_EQ(0, set_fd(INTX, TRIGGER, fds[0]));
	assert_line(1);
	vfu_irq_level(&irq, false);
	vfu_irq_withdraw(&irq, 0);
	ATF_CHECK(!vfu_irq_asserted(&irq));
	assert_line(1);
	ATF_CHECK_EQ(1, fired(fds[0]));
	vfu_irq_level(&irq, false);
	vfu_irq_withdraw(&irq, 0);
	ATF_CHECK(vfu_irq_asserted(&irq));
	assert_line(1);
	ATF_CHECK_EQ(0, fired(fds[0]));
	/* MSI-X: of the vectors that are meant. */
	start_vectors(3);
	fds[1] = event();
	fds[2] = event();
	for (i = 0; i < 3; i++) {
		int copy = dup(fds[i]);

		ATF_REQUIRE_EQ(0, set_full(MSIX, EVENTFD | TRIGGER, i, 1, NULL,
		    0, &copy, 1));
		vfu_irq_message(&irq, i);
	}
	vfu_irq_flush(&irq);
	vfu_irq_message(&irq, 1);
	vfu_irq_message(&irq, 2);
	vfu_irq_withdraw(&irq, 0x5);
	vfu_irq_flush(&irq);
	ATF_CHECK_EQ(0, fired(fds[0]));
	ATF_CHECK_EQ(2, fired(fds[1]));
	ATF_CHECK_EQ(0, fired(fds[2]));
	vfu_irq_message(&irq, 2);
	vfu_irq_flush(&irq);
	ATF_CHECK_EQ(1, fired(fds[2]));
	vfu_irq_clear(&irq);
	ATF_CHECK_EQ(0, irq.calls % 2);
}

TEST(intx_disable, "The command register holds INTx back, but not MSI")
{
	int fd, msi;

	start();
	fd = event();
	msi = event();
	ATF_REQUIRE_EQ(0, set_fd(INTX, TRIGGER, fd));
	vfu_irq_intx_disable(&irq, true);
	assert_line(1);
	ATF_CHECK_EQ(0, fired(fd));
	vfu_irq_intx_disable(&irq, true);
	ATF_CHECK_EQ(0, fired(fd));
	vfu_irq_intx_disable(&irq, false);
	ATF_CHECK_EQ(1, fired(fd));
	/* The guest uses MSI: the line sends nothing. */
	ATF_REQUIRE_EQ(0, set_irq(INTX, NONE | UNMASK));
	ATF_CHECK_EQ(1, fired(fd));
	ATF_REQUIRE_EQ(0, set_fd(MSI, TRIGGER, msi));
	vfu_irq_intx_disable(&irq, true);
	ATF_REQUIRE_EQ(0, set_irq(INTX, NONE | UNMASK));
	ATF_CHECK_EQ(0, fired(fd));
	vfu_irq_intx_disable(&irq, false);
	assert_line(2);
	ATF_CHECK_EQ(2, fired(msi));
	ATF_CHECK_EQ(0, fired(fd));
}

TEST(asserted, "The guest finds the line asserted while it is, and from an "
    "event until the client unmasks")
{
	int fd;

	start();
	ATF_CHECK(!vfu_irq_asserted(&irq));
	/* Nobody takes events; INTx is disabled; it is masked. */
	vfu_irq_level(&irq, true);
	ATF_CHECK(vfu_irq_asserted(&irq));
	vfu_irq_flush(&irq);
	vfu_irq_level(&irq, false);
	ATF_CHECK(!vfu_irq_asserted(&irq));
	fd = event();
	ATF_REQUIRE_EQ(0, set_fd(INTX, TRIGGER, fd));
	vfu_irq_intx_disable(&irq, true);
	assert_line(1);
	ATF_CHECK(vfu_irq_asserted(&irq));
	vfu_irq_level(&irq, false);
	ATF_CHECK(!vfu_irq_asserted(&irq));
	vfu_irq_intx_disable(&irq, false);
	ATF_CHECK_EQ(0, set_irq(INTX, NONE | MASK));
	assert_line(1);
	vfu_irq_level(&irq, false);
	ATF_CHECK(!vfu_irq_asserted(&irq));
	ATF_CHECK_EQ(0, set_irq(INTX, NONE | UNMASK));
	ATF_CHECK_EQ(0, fired(fd));
	/* The client has the event, and the line is deasserted meanwhile. */
	assert_line(1);
	vfu_irq_level(&irq, false);
	ATF_CHECK(vfu_irq_asserted(&irq));
	vfu_irq_intx_disable(&irq, true);
	ATF_CHECK(vfu_irq_asserted(&irq));
	ATF_CHECK_EQ(0, set_irq(INTX, NONE | UNMASK));
	ATF_CHECK(!vfu_irq_asserted(&irq));
	vfu_irq_intx_disable(&irq, false);
	/* It takes no more events, or takes them elsewhere. */
	assert_line(1);
	vfu_irq_level(&irq, false);
	ATF_CHECK(vfu_irq_asserted(&irq));
	ATF_CHECK_EQ(0, set_full(INTX, NONE | TRIGGER, 0, 0, NULL, 0, NULL,
	    0));
	ATF_CHECK(!vfu_irq_asserted(&irq));
	ATF_REQUIRE_EQ(0, set_fd(INTX, TRIGGER, fd));
	ATF_CHECK(!vfu_irq_asserted(&irq));
	assert_line(1);
	vfu_irq_level(&irq, false);
	ATF_REQUIRE_EQ(0, set_fd(INTX, TRIGGER, fd));
	ATF_CHECK(!vfu_irq_asserted(&irq));
	/* The next client. */
	assert_line(1);
	vfu_irq_level(&irq, false);
	vfu_irq_clear(&irq);
	ATF_REQUIRE_EQ(0, set_fd(INTX, TRIGGER, fd));
	ATF_CHECK(!vfu_irq_asserted(&irq));
}

TEST(unmask, "An eventfd unmasks INTx, until it is replaced or removed")
{
	unsigned int base;
	int fd, one, two;

	start();
	fd = event();
	one = event();
	two = event();
	base = open_fds();
	ATF_REQUIRE_EQ(0, set_fd(INTX, TRIGGER, fd));
	ATF_REQUIRE_EQ(0, set_fd(INTX, UNMASK, one));
	ATF_CHECK_EQ(1, events_on());
	assert_line(1);
	ATF_CHECK_EQ(1, fired(fd));
	ATF_CHECK_EQ(0, events_step());
	ATF_REQUIRE_EQ(0, eventfd_write(one, 5));
	events_run();
	ATF_CHECK_EQ(1, fired(fd));
	ATF_CHECK_EQ(1, irq.unmasked);
	ATF_CHECK_EQ(base + 2, open_fds());
	/* A wakeup without an event does nothing. */
	events[0].func(irq.unmask_fd, &irq);
	ATF_CHECK_EQ(1, irq.unmasked);
	ATF_CHECK_EQ(1, events_on());
	ATF_CHECK_EQ(0, irq.calls % 2);
	/* Another one. */
	ATF_REQUIRE_EQ(0, set_fd(INTX, UNMASK, two));
	ATF_CHECK_EQ(1, events_used());
	ATF_CHECK_EQ(base + 2, open_fds());
	ATF_REQUIRE_EQ(0, eventfd_write(one, 1));
	ATF_CHECK_EQ(0, events_step());
	ATF_REQUIRE_EQ(0, eventfd_write(two, 1));
	events_run();
	ATF_CHECK_EQ(2, irq.unmasked);
	/* None. */
	ATF_CHECK_EQ(0, set_full(INTX, EVENTFD | UNMASK, 0, 1, NULL, 0, NULL,
	    0));
	ATF_CHECK_EQ(0, events_used());
	ATF_CHECK_EQ(base + 1, open_fds());
	/* To disable the interrupt removes both. */
	ATF_REQUIRE_EQ(0, set_fd(INTX, UNMASK, one));
	ATF_CHECK_EQ(0, set_full(INTX, NONE | TRIGGER, 0, 0, NULL, 0, NULL,
	    0));
	ATF_CHECK_EQ(0, events_used());
	ATF_CHECK_EQ(base, open_fds());
	/* The event loop has no space. */
	events_fail = 1;
	ATF_CHECK_EQ(EINVAL, set_full(INTX, EVENTFD | UNMASK, 0, 1, NULL, 0,
	    &(int){ dup(one) }, 1));
	ATF_CHECK_EQ(base, open_fds());
	ATF_CHECK_EQ(-1, irq.unmask_fd);
}

TEST(disable, "MSI is disabled without INTx's unmask descriptor")
{
	unsigned int base;

	(void)start_all(&base);
	ATF_CHECK_EQ(base + 3, open_fds());
	ATF_CHECK_EQ(0, set_full(MSI, NONE | TRIGGER, 0, 0, NULL, 0, NULL,
	    0));
	ATF_CHECK_EQ(base + 2, open_fds());
	ATF_CHECK_EQ(1, events_on());
	ATF_CHECK(irq.intx_fd != -1 && irq.msi_fd == -1);
}

TEST(requests, "Requests with invalid arguments are refused, and do nothing")
{
	const struct {
		int error;
		uint32_t index, flags, start, count;
		size_t len;
		int nfds;
	} bad[] = {
		{ EINVAL, VFIO_PCI_MSIX_IRQ_INDEX, NONE | TRIGGER, 0, 1, 0, 0 },
		{ EINVAL, VFIO_PCI_ERR_IRQ_INDEX, NONE | TRIGGER, 0, 1, 0, 0 },
		{ EINVAL, VFIO_PCI_REQ_IRQ_INDEX, NONE | TRIGGER, 0, 1, 0, 0 },
		{ EINVAL, 77, NONE | TRIGGER, 0, 1, 0, 0 },
		/* Flags: one kind of data, one action, nothing else. */
		{ EINVAL, INTX, TRIGGER, 0, 1, 1, 0 },
		{ EINVAL, INTX, NONE, 0, 1, 0, 0 },
		{ EINVAL, INTX, NONE | BOOL | TRIGGER, 0, 1, 1, 0 },
		{ EINVAL, INTX, NONE | EVENTFD | TRIGGER, 0, 1, 0, 1 },
		{ EINVAL, INTX, NONE | TRIGGER | UNMASK, 0, 1, 0, 0 },
		{ EINVAL, INTX, NONE | TRIGGER | 0x40, 0, 1, 0, 0 },
		{ EINVAL, MSI, NONE | TRIGGER | 0x80000000, 0, 1, 0, 0 },
		/* There is one interrupt. */
		{ EINVAL, MSI, NONE | TRIGGER, 1, 1, 0, 0 },
		{ EINVAL, MSI, NONE | TRIGGER, 0, 2, 0, 0 },
		{ EINVAL, MSI, BOOL | TRIGGER, 0, 2, 2, 0 },
		{ EINVAL, MSI, EVENTFD | TRIGGER, 0, 2, 0, 1 },
		{ EINVAL, MSI, EVENTFD | TRIGGER, 0, 0, 0, 0 },
		{ EINVAL, MSI, BOOL | TRIGGER, 0, 0, 1, 0 },
		{ EINVAL, INTX, NONE | UNMASK, 0, 0, 0, 0 },
		{ EINVAL, INTX, NONE | MASK, 0, 0, 0, 0 },
		/* Data and descriptors are those of the kind. */
		{ EINVAL, MSI, BOOL | TRIGGER, 0, 1, 0, 0 },
		{ EINVAL, MSI, BOOL | TRIGGER, 0, 1, 1, 1 },
		{ EINVAL, MSI, NONE | TRIGGER, 0, 1, 0, 1 },
		{ EINVAL, MSI, NONE | TRIGGER, 0, 0, 0, 1 },
		{ EINVAL, MSI, EVENTFD | TRIGGER, 0, 1, 0, 2 },
		/* MSI cannot be masked here, nor INTx by an eventfd. */
		{ EINVAL, MSI, NONE | UNMASK, 0, 1, 0, 0 },
		{ EINVAL, MSI, BOOL | UNMASK, 0, 1, 1, 0 },
		{ EINVAL, MSI, EVENTFD | UNMASK, 0, 1, 0, 1 },
		{ ENOTSUP, MSI, NONE | MASK, 0, 1, 0, 0 },
		{ ENOTSUP, INTX, EVENTFD | MASK, 0, 1, 0, 1 },
		{ ENOTSUP, INTX, EVENTFD | MASK, 0, 1, 0, 0 },
	};
	const uint8_t data[2] = { 1, 1 };
	unsigned int base;
	int fds[2], intx, msi;
	unsigned int i;

	start();
	intx = event();
	msi = event();
	fds[0] = event();
	fds[1] = event();
	ATF_REQUIRE_EQ(0, set_fd(INTX, TRIGGER, intx));
	assert_line(1);
	ATF_REQUIRE_EQ(1, fired(intx));
	ATF_REQUIRE_EQ(0, set_fd(MSI, TRIGGER, msi));
	base = open_fds();
	for (i = 0; i < nitems(bad); i++) {
		ATF_CHECK_EQ_MSG(bad[i].error, set_full(bad[i].index,
		    bad[i].flags, bad[i].start, bad[i].count, data,
		    bad[i].len, fds, bad[i].nfds), "request %u", i);
		ATF_CHECK_EQ_MSG(0, fired(intx) + fired(msi), "request %u", i);
		ATF_CHECK_EQ_MSG(base, open_fds(), "request %u", i);
		ATF_CHECK(fds[0] != -1 && fds[1] != -1);
		ATF_CHECK_EQ(0, events_used());
	}
	ATF_CHECK_EQ(0, irq.unmasked);
	ATF_CHECK(irq.masked);
	/* The interrupts still work. */
	assert_line(1);
	ATF_CHECK_EQ(1, fired(msi));
	ATF_CHECK_EQ(0, set_irq(INTX, NONE | UNMASK));
	ATF_CHECK_EQ(1, fired(intx));
}

TEST(kinds, "Only an eventfd is taken, and it does not block")
{
	unsigned int base;
	int fd, good, p[2], s[2];

	start();
	good = event();
	ATF_REQUIRE_EQ(0, set_fd(MSI, TRIGGER, good));
	base = open_fds();
	ATF_REQUIRE(pipe(p) == 0);
	ATF_REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0);
	fd = memfd_create("memory", 0);
	ATF_CHECK_EQ(EINVAL, set_fd(MSI, TRIGGER, p[1]));
	ATF_CHECK_EQ(EINVAL, set_fd(MSI, TRIGGER, s[0]));
	ATF_CHECK_EQ(EINVAL, set_fd(MSI, TRIGGER, fd));
	ATF_CHECK_EQ(EINVAL, set_fd(INTX, UNMASK, p[0]));
	ATF_CHECK_EQ(0, events_used());
	ATF_CHECK_EQ(EINVAL, set_full(MSI, EVENTFD | TRIGGER, 0, 1, NULL, 0,
	    &(int){ -1 }, 1));
	ATF_CHECK_EQ(base + 5, open_fds());
	/* What was there stays. */
	assert_line(1);
	ATF_CHECK_EQ(1, fired(good));
	/* O_NONBLOCK is set, which is the file's, so the client's, too. */
	fd = eventfd(0, 0);
	ATF_REQUIRE_EQ(0, set_fd(MSI, TRIGGER, fd));
	ATF_CHECK((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
}

TEST(clear, "The next client finds no descriptor, no mask and no event")
{
	unsigned int base;
	int fd;

	fd = start_all(&base);
	ATF_REQUIRE_EQ(0, set_irq(INTX, NONE | MASK));
	vfu_irq_intx_disable(&irq, true);
	vfu_irq_level(&irq, true);
	vfu_irq_clear(&irq);
	ATF_CHECK_EQ(base, open_fds());
	ATF_CHECK_EQ(0, events_used());
	ATF_CHECK(!vfu_irq_pending(&irq));
	/* The line keeps its level, and is neither masked nor disabled. */
	ATF_CHECK_EQ(0, fired(fd));
	ATF_REQUIRE_EQ(0, set_fd(INTX, TRIGGER, fd));
	ATF_CHECK_EQ(1, fired(fd));
	vfu_irq_clear(&irq);
	vfu_irq_clear(&irq);
	ATF_REQUIRE_EQ(0, set_irq(INTX, NONE | MASK));
	vfu_irq_clear(&irq);
	ATF_CHECK(!irq.masked);
}

static volatile sig_atomic_t	in_call, alarms;

static void
on_alarm(int sig __attribute__((__unused__)))
{
	in_call += atomic_load_32(&irq.calls) % 2;
	alarms++;
}

/* Interrupt system calls again and again, as adapter_watch() does. */
static void
start_alarms(void)
{
	const struct itimerval often = { { 0, 20000 }, { 0, 20000 } };
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = on_alarm;
	ATF_REQUIRE_EQ(0, sigaction(SIGALRM, &sa, NULL));
	ATF_REQUIRE_EQ(0, setitimer(ITIMER_REAL, &often, NULL));
}

static void
stop_alarms(void)
{
	const struct itimerval none = { { 0, 0 }, { 0, 0 } };

	ATF_REQUIRE_EQ(0, setitimer(ITIMER_REAL, &none, NULL));
	ATF_CHECK_MSG(in_call > 0, "no call was interrupted of %d",
	    (int)alarms);
	in_call = 0;
}

TEST(blocked, "A descriptor that blocks is closed when its call is interrupted")
{
	unsigned int base;
	int fd;

	start();
	fd = event();
	base = open_fds();
	ATF_REQUIRE_EQ(0, set_fd(MSI, TRIGGER, fd));
	/* The event does not fit: it is lost, and the descriptor stays. */
	ATF_REQUIRE_EQ(0, eventfd_write(fd, UINT64_MAX - 1));
	assert_line(1);
	ATF_CHECK_EQ(0, irq.sent);
	ATF_CHECK_EQ(base + 1, open_fds());
	/* The client makes the write block. */
	ATF_REQUIRE_EQ(0, fcntl(fd, F_SETFL, 0));
	start_alarms();
	assert_line(1);
	stop_alarms();
	ATF_CHECK_EQ(0, irq.sent);
	ATF_CHECK_EQ(-1, irq.msi_fd);
	ATF_CHECK_EQ(base, open_fds());
	ATF_CHECK_EQ(0, irq.calls % 2);
	/* The client makes the read of an event block that is taken back. */
	fd = event();
	ATF_REQUIRE_EQ(0, set_fd(MSI, TRIGGER, fd));
	ATF_REQUIRE_EQ(0, fcntl(fd, F_SETFL, 0));
	start_alarms();
	vfu_irq_withdraw(&irq, 0);
	stop_alarms();
	ATF_CHECK_EQ(-1, irq.msi_fd);
	ATF_CHECK_EQ(0, irq.calls % 2);
	/* And of one that unmasks. */
	fd = event();
	ATF_REQUIRE_EQ(0, set_fd(INTX, UNMASK, fd));
	ATF_REQUIRE_EQ(0, fcntl(fd, F_SETFL, 0));
	start_alarms();
	events[0].func(irq.unmask_fd, &irq);
	stop_alarms();
	ATF_CHECK_EQ(0, irq.unmasked);
	ATF_CHECK_EQ(-1, irq.unmask_fd);
	ATF_CHECK_EQ(0, events_used());
	ATF_CHECK_EQ(0, irq.calls % 2);
}

TEST_PROGRAM
