/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <sys/param.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "libvale.h"
#include "netmap_port.h"
#include "wait_until.h"


/* What says that the library is there already, and where it is. */
#define	AGAIN	"NETMAP_TEST_AGAIN"
#define	LIBRARY	"NETMAP_TEST_LIBRARY"

static void again(int argc, char **argv) __attribute__((__constructor__));

static void
again(int argc __unused, char **argv)
{
	static const char name[] = "lib/libnetmap_run/libnetmap-run.so";
	char self[PATH_MAX], lib[PATH_MAX];
	ssize_t n;
	int i;

	/* What a user's programs can do, root's can, too. */
	valed_run_program = true;
	if (getenv(AGAIN) != NULL) {
		/* valed must not have it. */
		unsetenv("LD_PRELOAD");
		unsetenv(AGAIN);
		return;
	}
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n == -1)
		abort();
	self[n] = '\0';
	/* build/tests/usr.bin/netmap-run/program */
	for (i = 0; i < 4; i++)
		*strrchr(self, '/') = '\0';
	if (snprintf(lib, sizeof(lib), "%s/%s", self, name) >=
	    (int)sizeof(lib) || access(lib, R_OK) != 0)
		abort();
	setenv("LD_PRELOAD", lib, 1);
	setenv(LIBRARY, lib, 1);
	setenv(AGAIN, "1", 1);
	execv("/proc/self/exe", argv);
	abort();
}

void
preload(void)
{
	const uid_t uid = geteuid();
	char fd[32];

	/* The build may be where root only looks. */
	(void)!seteuid(0);
	snprintf(fd, sizeof(fd), "/proc/self/fd/%d",
	    open(getenv(LIBRARY), O_RDONLY));
	if (seteuid(uid) == -1)
		abort();
	setenv("LD_PRELOAD", fd, 1);
	setenv(AGAIN, "1", 1);
}

int
request(int fd, uint16_t type, const char *name, void *body)
{
	struct nmreq_header hdr = { .nr_version = NETMAP_API,
	    .nr_reqtype = type, .nr_body = (uintptr_t)body };

	strncpy(hdr.nr_name, name, sizeof(hdr.nr_name) - 1);
	return (ioctl(fd, NIOCCTRL, &hdr) == -1 ? errno : 0);
}

int
device(void)
{
	int fd = open("/dev/netmap", O_RDWR);

	ATF_REQUIRE_MSG(fd != -1, "%s", strerror(errno));
	return (fd);
}

static int
port_try(struct port *p, const char *name, const struct nmreq_register *reg)
{
	int error;

	memset(p, 0, sizeof(*p));
	if (reg != NULL)
		p->reg = *reg;
	if (p->reg.nr_mode == NR_REG_DEFAULT)
		p->reg.nr_mode = NR_REG_ALL_NIC;
	p->fd = device();
	error = request(p->fd, NETMAP_REQ_REGISTER, name, &p->reg);
	if (error != 0)
		close(p->fd);
	return (error);
}

static struct port
port_opened(struct port p, const char *name, int error)
{
	unsigned int ring;

	ATF_REQUIRE_MSG(error == 0, "%s: %s", name, strerror(error));
	p.memory = mmap(NULL, p.reg.nr_memsize, PROT_READ | PROT_WRITE,
	    MAP_SHARED, p.fd, 0);
	ATF_REQUIRE_MSG(p.memory != MAP_FAILED, "%s", strerror(errno));
	p.nifp = (void *)(p.memory + p.reg.nr_offset);
	if (p.reg.nr_mode == NR_REG_NULL)
		return (p);
	ring = p.reg.nr_mode == NR_REG_ONE_NIC ? p.reg.nr_ringid : 0;
	p.tx = NETMAP_TXRING(p.nifp, ring);
	p.rx = NETMAP_RXRING(p.nifp, ring);
	return (p);
}

struct port
port_open(const char *name, const struct nmreq_register *reg)
{
	struct port p;
	int error = port_try(&p, name, reg);

	return (port_opened(p, name, error));
}

struct port
port_passed(const char *name, int fd, const struct nmreq_register *reg)
{
	return (port_opened((struct port){ .fd = fd, .reg = *reg }, name, 0));
}

void
port_close(struct port *p)
{
	ATF_CHECK_EQ(0, munmap(p->memory, p->reg.nr_memsize));
	ATF_CHECK_EQ(0, close(p->fd));
}

static void
frame_make(uint8_t *buf, uint16_t len, uint8_t seq)
{
	memset(buf, 0, len);
	memset(buf, 0xff, 6);
	buf[6] = 2;
	buf[len - 1] = seq;
}

void
port_put(struct port *p, uint16_t len, uint8_t seq)
{
	struct netmap_slot *slot = &p->tx->slot[p->tx->head];

	ATF_REQUIRE(!nm_ring_empty(p->tx));
	frame_make((uint8_t *)NETMAP_BUF(p->tx, slot->buf_idx), len, seq);
	slot->len = len;
	slot->flags = 0;
	p->tx->head = p->tx->cur = nm_ring_next(p->tx, p->tx->head);
}

void
port_send(struct port *p, uint16_t len, uint8_t seq)
{
	port_put(p, len, seq);
	ATF_REQUIRE_EQ(0, ioctl(p->fd, NIOCTXSYNC, NULL));
}

void
port_expect(struct port *p, uint16_t len, uint8_t seq)
{
	const struct netmap_slot *slot;
	const uint8_t *buf;

	wait_until(ioctl(p->fd, NIOCRXSYNC, NULL) == 0 &&
	    !nm_ring_empty(p->rx), "frame %u", seq);
	slot = &p->rx->slot[p->rx->head];
	buf = (const uint8_t *)NETMAP_BUF(p->rx, slot->buf_idx);
	ATF_CHECK_EQ(len, slot->len);
	ATF_CHECK_EQ(seq, buf[slot->len - 1]);
	p->rx->head = p->rx->cur = nm_ring_next(p->rx, p->rx->head);
}

unsigned int
port_take(struct port *p)
{
	const unsigned int n = nm_ring_space(p->rx);

	p->rx->head = p->rx->cur = p->rx->tail;
	return (n);
}

short
poll_one(int fd, short events, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = events, .revents = -1 };
	int r = poll(&pfd, 1, ms);

	ATF_REQUIRE_EQ_MSG(pfd.revents != 0, r, "%d, %#x: %s", r, pfd.revents,
	    strerror(errno));
	return (pfd.revents);
}

void *
send_later(void *arg)
{
	usleep(20000);
	port_send(arg, 60, 9);
	return (NULL);
}

pthread_t
later(void *(*fn)(void *), void *arg)
{
	pthread_t thread;

	ATF_REQUIRE_EQ(0, pthread_create(&thread, NULL, fn, arg));
	return (thread);
}

void *
port_flow_send(void *arg)
{
	struct port_flow *flow = arg;
	struct pollfd pfd = { .fd = flow->port->fd, .events = POLLOUT };
	unsigned int i = 0;

	while (i < flow->frames) {
		ATF_REQUIRE_EQ(1, poll(&pfd, 1, -1));
		while (i < flow->frames && !nm_ring_empty(flow->port->tx))
			port_put(flow->port, 60, i++);
	}
	ATF_REQUIRE_EQ(0, ioctl(pfd.fd, NIOCTXSYNC, NULL));
	return (NULL);
}

void *
port_flow_receive(void *arg)
{
	struct port_flow *flow = arg;
	struct port *p = flow->port;
	struct pollfd pfd = { .fd = p->fd, .events = POLLIN };
	unsigned int i = 0;

	while (i < flow->frames) {
		ATF_REQUIRE_EQ(1, poll(&pfd, 1, -1));
		ATF_REQUIRE_EQ(POLLIN, pfd.revents);
		while (!nm_ring_empty(p->rx)) {
			const struct netmap_slot *slot =
			    &p->rx->slot[p->rx->head];

			ATF_REQUIRE_EQ((uint8_t)i, (uint8_t)NETMAP_BUF(p->rx,
			    slot->buf_idx)[slot->len - 1]);
			p->rx->head = p->rx->cur = nm_ring_next(p->rx,
			    p->rx->head);
			i++;
		}
	}
	ATF_REQUIRE_EQ(0, ioctl(pfd.fd, NIOCRXSYNC, NULL));
	return (NULL);
}

static int
one_port(const struct vale_port_info *info __unused, void *arg)
{
	++*(unsigned int *)arg;
	return (0);
}

unsigned int
ports(void)
{
	unsigned int n = 0;

	ATF_REQUIRE_EQ(0, vale_list(NULL, one_port, &n));
	return (n);
}
