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
#include "peer_signal.h"
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

/*
 * A client and a device do anything, in any order, beside a model.  Each
 * interrupt has two eventfds, of which the client passes one or none.
 */

enum { S_INTX, S_MSI, S_UNMASK, S_MSIX, NSLOTS = S_MSIX + VFU_IRQ_VECTORS };

static struct {
	int		fd[NSLOTS][2];	/* the client's */
	int		has[NSLOTS];	/* which one the device has, or -1 */
	uint64_t	unread[NSLOTS][2]; /* events that it has sent */
	bool		level, masked, shown, disabled, posted;
	uint32_t	rises, message[VFU_IRQ_VECTORS];
	uint64_t	sent, unmasked;
} m;

/* The device sends events. */
static void
m_send(unsigned int slot, uint64_t n)
{
	if (m.has[slot] == -1)
		return;
	m.unread[slot][m.has[slot]] += n;
	m.sent += n;
}

static void
m_intx(void)
{
	if (!m.level || m.masked || m.disabled || m.has[S_INTX] == -1)
		return;
	m.masked = m.shown = true;
	m_send(S_INTX, 1);
}

static void
m_unmask(void)
{
	m.unmasked++;
	m.masked = m.shown = false;
	m_intx();
}

/* Messages that wait are sent when the vector gets a descriptor. */
static void
m_messages(unsigned int v)
{
	if (m.has[S_MSIX + v] == -1)
		return;
	m_send(S_MSIX + v, m.message[v]);
	m.message[v] = 0;
}

static void
m_flush(void)
{
	const uint32_t rises = m.rises;
	unsigned int v;

	for (v = 0; v < VFU_IRQ_VECTORS && m.posted; v++)
		m_messages(v);
	m.posted = false;
	m.rises = 0;
	if (rises > 0 && m.has[S_MSI] != -1)
		m_send(S_MSI, rises);
	else if (rises > 0)
		m_intx();
}

/* The device takes back what the client has not read of a descriptor. */
static bool
m_unsend(unsigned int slot)
{
	uint64_t *n = &m.unread[slot][MAX(m.has[slot], 0)];
	const bool any = m.has[slot] != -1 && *n != 0;

	if (m.has[slot] != -1)
		*n = 0;
	return (any);
}

static void
m_msix_none(void)
{
	memset(m.message, 0, sizeof(m.message));
	memset(m.has + S_MSIX, 0xff, VFU_IRQ_VECTORS * sizeof(m.has[0]));
	m.posted = false;
}

/* The request has no descriptors: a command, with or without data. */
static void
command(uint32_t index, uint32_t action, uint32_t first, uint32_t *seed)
{
	const uint32_t how = test_below(seed, 3);
	const uint8_t value = how;
	bool done;

	if (how == 2)
		ATF_REQUIRE_EQ(0, set_full(index, NONE | action, first, 1, NULL,
		    0, NULL, 0));
	else
		ATF_REQUIRE_EQ(0, set_full(index, BOOL | action, first, 1,
		    &value, 1, NULL, 0));
	done = how != 0;
	if (done && action == MASK)
		m.masked = true;
	else if (done && action == UNMASK)
		m_unmask();
	else if (done)
		m_send(index == INTX ? S_INTX : index == MSI ? S_MSI :
		    S_MSIX + first, 1);
}

/* Pass `n' descriptors, or take them away. */
static void
pass(uint32_t index, uint32_t action, unsigned int slot, unsigned int n,
    uint32_t *seed)
{
	const bool none = test_chance(seed, 1, 4);
	int copies[VFU_IRQ_VECTORS];
	unsigned int i;

	for (i = 0; i < n; i++) {
		m.has[slot + i] = none ? -1 : (int)test_below(seed, 2);
		copies[i] = none ? -1 : dup(m.fd[slot + i][m.has[slot + i]]);
		if (!none && index == MSIX)
			m_messages(slot + i - S_MSIX);
	}
	ATF_REQUIRE_EQ(0, set_full(index, EVENTFD | action,
	    index == MSIX ? slot - S_MSIX : 0, n, NULL, 0, copies,
	    none ? 0 : n));
	for (i = 0; i < n; i++)
		ATF_CHECK_EQ(-1, copies[i]);
	if (slot == S_INTX && !none) {
		m.masked = m.shown = false;
		m_intx();
	}
}

/* The interrupt is disabled. */
static void
disable(uint32_t index)
{
	ATF_REQUIRE_EQ(0, set_full(index, NONE | TRIGGER, 0, 0, NULL, 0, NULL,
	    0));
	if (index == MSIX)
		m_msix_none();
	else
		m.has[index == MSI ? S_MSI : S_INTX] = -1;
	if (index == INTX)
		m.has[S_UNMASK] = -1;
}

/* By an event, which counts only on the descriptor that the device has. */
static void
unmask_by(int which)
{
	ATF_REQUIRE_EQ(0, eventfd_write(m.fd[S_UNMASK][which], 5));
	events_run();
	if (m.has[S_UNMASK] == which)
		m_unmask();
	else
		ATF_CHECK_EQ(5, fired(m.fd[S_UNMASK][which]));
}

static void
withdraw(uint32_t vectors)
{
	unsigned int v;

	vfu_irq_withdraw(&irq, vectors);
	for (v = 0; v < irq.nvectors; v++)
		if ((vectors & 1U << v) != 0) {
			m.message[v] = 0;
			(void)m_unsend(S_MSIX + v);
		}
	if (vectors != 0)
		return;
	m.rises = 0;
	(void)m_unsend(S_MSI);
	if (m_unsend(S_INTX))
		m.masked = m.shown = false;
}

static void
clear(void)
{
	vfu_irq_clear(&irq);
	memset(m.has, 0xff, sizeof(m.has));
	m_msix_none();
	m.masked = m.shown = m.disabled = false;
	m.rises = 0;
}

/* Send what is pending, by this thread or as another one. */
static void
send_pending(bool other)
{
	const uint64_t sent = m.sent;
	const uint32_t calls = irq.calls;

	m_flush();
	/* One call of another thread has so much space, and no more. */
	if (other && m.sent - sent < PEER_SIGNAL_MAX)
		ATF_CHECK(vfu_irq_signal(&irq));
	else
		vfu_irq_flush(&irq);
	/* Nothing to send: no system call. */
	ATF_CHECK(m.sent != sent || irq.calls == calls);
}

static void
step(uint32_t *seed)
{
	static const uint32_t indices[] = { INTX, MSI, MSIX };
	const unsigned int vectors = irq.nvectors;
	const uint32_t index = indices[test_below(seed, vectors > 0 ? 3 : 2)];
	const uint32_t v = test_below(seed, MAX(vectors, 1));
	const uint32_t op = test_below(seed, 64);

	if (op < 16) {
		m.level = op < 11;
		m.rises += m.level;
		vfu_irq_level(&irq, m.level);
	} else if (op < 24 && vectors > 0) {
		m.message[v]++;
		m.posted = true;
		vfu_irq_message(&irq, v);
	} else if (op < 34)
		send_pending(op % 2 != 0);
	else if (op < 42 && index == MSIX)
		pass(MSIX, TRIGGER, S_MSIX + v,
		    1 + test_below(seed, vectors - v), seed);
	else if (op < 42)
		pass(index, TRIGGER, index == INTX ? S_INTX : S_MSI, 1, seed);
	else if (op < 44)
		pass(INTX, UNMASK, S_UNMASK, 1, seed);
	else if (op < 48)
		command(index, TRIGGER, index == MSIX ? v : 0, seed);
	else if (op < 50)
		command(INTX, MASK, 0, seed);
	else if (op < 53)
		command(INTX, UNMASK, 0, seed);
	else if (op < 56)
		unmask_by(op % 2);
	else if (op < 59) {
		m.disabled = op % 2 != 0;
		vfu_irq_intx_disable(&irq, m.disabled);
		if (m.has[S_MSI] == -1)
			m_intx();
	} else if (op < 61)
		withdraw(op == 59 ? 0 : test_below(seed, 64));
	else if (op < 63)
		disable(index);
	else
		clear();
}

/* The client reads some of the events; the rest of the state is the model's. */
static void
compare(unsigned int base, uint32_t *seed)
{
	unsigned int i, k, used = 0;

	for (i = 0; i < NSLOTS; i++) {
		used += m.has[i] != -1;
		for (k = 0; k < 2 && i != S_UNMASK; k++)
			if (test_chance(seed, 1, 4)) {
				ATF_REQUIRE_EQ_MSG(m.unread[i][k],
				    fired(m.fd[i][k]), "slot %u", i);
				m.unread[i][k] = 0;
			}
	}
	ATF_REQUIRE_EQ(base + used, open_fds());
	ATF_REQUIRE_EQ(m.has[S_UNMASK] != -1, events_on());
	ATF_REQUIRE_EQ(m.sent, irq.sent);
	ATF_REQUIRE_EQ(m.unmasked, irq.unmasked);
	ATF_REQUIRE_EQ(m.rises != 0 || m.posted, vfu_irq_pending(&irq));
	/* What the guest finds, also while the client asserts it. */
	ATF_REQUIRE_EQ(m.level || (m.shown && m.has[S_INTX] != -1),
	    vfu_irq_asserted(&irq));
	ATF_REQUIRE_EQ(0, irq.calls % 2);
}

TEST(random, "Each event comes once, where and when it must, whatever client "
    "and device do")
{
	unsigned int base, i, round;
	uint32_t seed = 1;

	ATF_REQUIRE_EQ(0, peer_signal_start());
	for (round = 0; round < 20; round++) {
		start_vectors(round % 3 == 0 ? 0 : VFU_IRQ_VECTORS);
		memset(&m, 0, sizeof(m));
		memset(m.has, 0xff, sizeof(m.has));
		for (i = 0; i < NSLOTS; i++) {
			m.fd[i][0] = event();
			m.fd[i][1] = event();
		}
		base = open_fds();
		for (i = 0; i < 1000; i++) {
			step(&seed);
			compare(base, &seed);
		}
		clear();
		compare(base, &seed);
		for (i = 0; i < NSLOTS; i++) {
			close(m.fd[i][0]);
			close(m.fd[i][1]);
		}
	}
}

TEST(unmask_full, "Without a place in the event loop, no eventfd unmasks")
{
	unsigned int base;

	start();
	base = open_fds();
	events_fail = 1;
	ATF_CHECK_EQ(EINVAL, set_full(INTX, EVENTFD | UNMASK, 0, 1, NULL, 0,
	    &(int){ event() }, 1));
	ATF_CHECK_EQ(base, open_fds());
	ATF_CHECK_EQ(-1, irq.unmask_fd);
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
