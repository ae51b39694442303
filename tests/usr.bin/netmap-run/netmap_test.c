/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * netmap's requests and descriptors under netmap-run(1), but for waiting.
 */

#include <sys/param.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "libvale.h"
#include "netmap_port.h"
#include "said.h"
#include "wait_until.h"

PID_TEST(registers, "A port has what NETMAP_REQ_REGISTER asks for")
{
	static const struct nmreq_register ask = { .nr_tx_slots = 32,
	    .nr_rx_slots = 64, .nr_extra_bufs = 3 };
	struct nmreq_port_info_get info;
	struct nmreq_vale_list list;
	struct nmreq_port_hdr hdr;
	struct port p = port_open("vale0:a", &ask);
	struct port q = port_open("vale0:b", NULL);
	uint32_t buf;
	unsigned int n;

	ATF_CHECK_EQ(32, p.tx->num_slots);
	ATF_CHECK_EQ(64, p.rx->num_slots);
	ATF_CHECK_EQ(32, p.reg.nr_tx_slots);
	ATF_CHECK_EQ(1, p.reg.nr_tx_rings);
	ATF_CHECK_EQ(1, p.nifp->ni_rx_rings);
	ATF_CHECK_EQ(3, p.reg.nr_extra_bufs);
	ATF_CHECK(p.reg.nr_mem_id != q.reg.nr_mem_id);
	for (n = 0, buf = p.nifp->ni_bufs_head; buf != 0; n++)
		buf = *(uint32_t *)(void *)NETMAP_BUF(p.tx, buf);
	ATF_CHECK_EQ(3, n);
	ATF_CHECK_EQ(0, request(p.fd, NETMAP_REQ_PORT_INFO_GET, "vale0:b",
	    &info));
	ATF_CHECK_EQ(1024, info.nr_tx_slots);
	hdr.nr_hdr_len = 12;
	ATF_CHECK_EQ(0, request(p.fd, NETMAP_REQ_PORT_HDR_SET, "vale0:a",
	    &hdr));
	memset(&hdr, 0, sizeof(hdr));
	ATF_CHECK_EQ(0, request(p.fd, NETMAP_REQ_PORT_HDR_GET, "vale0:a",
	    &hdr));
	ATF_CHECK_EQ(12, hdr.nr_hdr_len);
	memset(&list, 0, sizeof(list));
	ATF_CHECK_EQ(0, request(p.fd, NETMAP_REQ_VALE_LIST, "vale0:b", &list));
	ATF_CHECK_EQ(1, list.nr_port_idx);
	ATF_CHECK_EQ(2, ports());
	port_close(&p);
	port_close(&q);
	ATF_CHECK_EQ(0, ports());
}

/* The errno of a registration. */
static int
refused(const char *name, uint32_t mode, uint64_t flags)
{
	struct nmreq_register reg = { .nr_mode = mode, .nr_flags = flags };
	int error, fd = device();

	error = request(fd, NETMAP_REQ_REGISTER, name, &reg);
	close(fd);
	return (error);
}

PID_TEST(refuses, "What is wrong or not there has an errno")
{
	struct nmreq_header hdr = { .nr_version = NETMAP_API,
	    .nr_reqtype = NETMAP_REQ_REGISTER };
	struct nmreq_option opt[2] = { { .nro_reqtype = 1 },
	    { .nro_reqtype = 5 } };
	struct nmreq_register reg = { .nr_mode = NR_REG_ALL_NIC };
	struct nmreq_port_info_get info;
	struct port p = port_open("vale0:a", NULL);
	struct pollfd pfd = { .events = POLLIN | POLLOUT };
	int fd = device(), on = 1;
	uint32_t i;

	ATF_CHECK_EQ(ENXIO, refused("eth0", NR_REG_ALL_NIC, 0));
	ATF_CHECK_EQ(ENXIO, refused("val", NR_REG_ALL_NIC, 0));
	ATF_CHECK_EQ(ENXIO, refused("xvale0:b", NR_REG_ALL_NIC, 0));
	ATF_CHECK_EQ(ENXIO, refused("netmap:eth0", NR_REG_ALL_NIC, 0));
	ATF_CHECK_EQ(EINVAL, refused("vale0", NR_REG_ALL_NIC, 0));
	ATF_CHECK_EQ(EBUSY, refused("vale0:a", NR_REG_ALL_NIC, NR_EXCLUSIVE));
	ATF_CHECK_EQ(EOPNOTSUPP, refused("vale0:b", NR_REG_SW, 0));
	ATF_CHECK_EQ(EINVAL, refused("vale0:b", NR_REG_NULL, 0));
	ATF_CHECK_EQ(EINVAL, refused("vale0:b", NR_REG_ALL_NIC,
	    NR_RX_RINGS_ONLY | NR_TX_RINGS_ONLY));
	ATF_CHECK_EQ(EBUSY, request(p.fd, NETMAP_REQ_REGISTER, "vale0:b",
	    &reg));
	/* Before there is a port. */
	ATF_CHECK_ERRNO(ENXIO, ioctl(fd, NIOCTXSYNC, NULL) == -1);
	ATF_CHECK_ERRNO(ENXIO, ioctl(fd, NIOCRXSYNC, NULL) == -1);
	ATF_CHECK_ERRNO(EINVAL, mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd,
	    0) == MAP_FAILED);
	pfd.fd = fd;
	ATF_CHECK_EQ(1, poll(&pfd, 1, -1));
	ATF_CHECK_EQ(POLLERR, pfd.revents);
	/* Requests. */
	memset(&info, 0, sizeof(info));
	ATF_CHECK_EQ(ENXIO, request(fd, NETMAP_REQ_PORT_INFO_GET, "eth0",
	    &info));
	ATF_CHECK_EQ(EINVAL, request(fd, NETMAP_REQ_PORT_INFO_GET, "vale0:a",
	    NULL));
	ATF_CHECK_EQ(EINVAL, request(fd, NETMAP_REQ_REGISTER, "vale0:b",
	    NULL));
	ATF_CHECK_EQ(EOPNOTSUPP, request(fd, NETMAP_REQ_POOLS_INFO_GET, "",
	    &info));
	for (i = 0; i <= UINT16_MAX; i++)
		if (i != NETMAP_REQ_REGISTER && i != NETMAP_REQ_VALE_LIST &&
		    i != NETMAP_REQ_PORT_INFO_GET &&
		    i != NETMAP_REQ_PORT_HDR_SET &&
		    i != NETMAP_REQ_PORT_HDR_GET)
			ATF_REQUIRE_EQ_MSG(EOPNOTSUPP, request(fd, i,
			    "vale0:a", &info), "%u", i);
	ATF_CHECK_ERRNO(EOPNOTSUPP, ioctl(fd, _IO('i', 1), NULL) == -1);
	ATF_CHECK_ERRNO(EFAULT, ioctl(fd, NIOCCTRL, NULL) == -1);
	ATF_CHECK_EQ(0, ioctl(fd, FIONBIO, &on));
	strcpy(hdr.nr_name, "vale0:b");
	hdr.nr_body = (uintptr_t)&reg;
	opt[0].nro_next = (uintptr_t)&opt[1];
	hdr.nr_options = (uintptr_t)&opt[0];
	ATF_CHECK_ERRNO(EOPNOTSUPP, ioctl(fd, NIOCCTRL, &hdr) == -1);
	ATF_CHECK_EQ(EOPNOTSUPP, opt[0].nro_status);
	ATF_CHECK_EQ(EOPNOTSUPP, opt[1].nro_status);
	hdr.nr_options = 0;
	hdr.nr_version = 11;
	ATF_CHECK_ERRNO(EINVAL, ioctl(fd, NIOCCTRL, &hdr) == -1);
	ATF_CHECK_EQ(NETMAP_API, hdr.nr_version);
	/* The descriptor can still be used, as all who failed can. */
	ATF_CHECK_EQ(0, ioctl(fd, NIOCCTRL, &hdr));
	close(fd);
	port_close(&p);
}

#define	TAKEN	"netmap-run: vale0:a: other descriptors have the rings\n"
#define	NAMES								\
	"netmap-run: it does not begin with \"vale\"\n"		\
	"netmap-run: eth0: not the name of a pipe or of a switch's "	\
	"port, which begins with vale\n"

PID_TEST(says, "Why a port is refused is said, once if it is tried again; each "
    "time, and of other requests, if that is asked for")
{
	static const char *const expected[] = { TAKEN NAMES,
	    TAKEN TAKEN NAMES "netmap-run: vale0:b: the connection does not "
	    "have this port\nnetmap-run: Operation not supported\n" };
	struct nmreq_port_hdr hdr = { .nr_hdr_len = 0 };
	struct port p = port_open("vale0:a", NULL);
	const char *text;
	int fd = device();
	unsigned int i;

	for (i = 0; i < nitems(expected); i++) {
		said_start();
		(void)refused("vale0:a", NR_REG_ALL_NIC, NR_EXCLUSIVE);
		(void)refused("vale0:a", NR_REG_ALL_NIC, NR_EXCLUSIVE);
		(void)refused("", NR_REG_SW, 0);
		(void)refused("eth0", NR_REG_ALL_NIC, 0);
		(void)request(fd, NETMAP_REQ_PORT_HDR_GET, "vale0:b", &hdr);
		(void)request(fd, 999, "", &hdr);
		text = said();
		ATF_CHECK_STREQ(expected[i], text);
		setenv("NETMAP_RUN_DEBUG", "", 1);
	}
	close(fd);
	port_close(&p);
}

PID_TEST(frames, "Frames pass: in one slot, in several, from memory "
    "elsewhere, from a buffer that was exchanged")
{
	static const struct nmreq_register extra = { .nr_extra_bufs = 1 };
	struct port a = port_open("vale0:a", &extra);
	struct port b = port_open("vale0:b", NULL);
	struct netmap_slot *slot;
	uint8_t frame[100];

	port_send(&a, 60, 1);
	port_expect(&b, 60, 1);
	port_send(&b, 1514, 2);
	port_expect(&a, 1514, 2);
	/* A frame of two slots. */
	port_put(&a, 2048, 3);
	a.tx->slot[1].flags = NS_MOREFRAG;
	port_send(&a, 100, 4);
	port_expect(&b, 2048, 3);
	ATF_CHECK((b.rx->slot[1].flags & NS_MOREFRAG) != 0);
	port_expect(&b, 100, 4);
	/* Indirect. */
	memset(frame, 0xff, sizeof(frame));
	frame[6] = 2;
	frame[99] = 5;
	slot = &a.tx->slot[a.tx->head];
	port_put(&a, 100, 0);
	slot->flags = NS_INDIRECT;
	slot->ptr = (uintptr_t)frame;
	ATF_CHECK_EQ(0, ioctl(a.fd, NIOCTXSYNC, NULL));
	port_expect(&b, 100, 5);
	/* The extra buffer. */
	slot = &a.tx->slot[a.tx->head];
	slot->buf_idx = a.nifp->ni_bufs_head;
	port_put(&a, 60, 6);
	slot->flags = NS_BUF_CHANGED;
	ATF_CHECK_EQ(0, ioctl(a.fd, NIOCTXSYNC, NULL));
	port_expect(&b, 60, 6);
	/* An invalid head is set back to that of the last sync. */
	ATF_CHECK_EQ(0, ioctl(b.fd, NIOCRXSYNC, NULL));
	a.tx->head = a.tx->num_slots;
	ATF_CHECK_ERRNO(EINVAL, ioctl(a.fd, NIOCTXSYNC, NULL) == -1);
	b.rx->head = b.rx->num_slots;
	ATF_CHECK_ERRNO(EINVAL, ioctl(b.fd, NIOCRXSYNC, NULL) == -1);
	port_send(&a, 60, 7);
	port_expect(&b, 60, 7);
	port_close(&a);
	port_close(&b);
}

static atomic_int asker;	/* a thread, or 0 */

/* Ask valed about the port of the descriptor `arg'. */
static void *
ask(void *arg)
{
	struct nmreq_port_info_get info;

	atomic_store(&asker, gettid());
	ATF_CHECK_EQ(0, request(*(int *)arg, NETMAP_REQ_PORT_INFO_GET,
	    "vale0:a", &info));
	return (NULL);
}

/* Return whether a thread waits for an answer. */
static bool
asks(void)
{
	char path[64];
	long call = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall",
	    atomic_load(&asker));
	f = fopen(path, "r");
	if (f != NULL) {
		if (fscanf(f, "%ld", &call) != 1)
			call = -1;
		fclose(f);
	}
	return (call == SYS_recvmsg);
}

PID_TEST(forks_request, "A child makes requests, although another thread of its "
    "parent was waiting for an answer")
{
	struct port a = port_open("vale0:a", NULL);
	int fds[2] = { a.fd, device() }, i, status;
	struct nmreq_port_hdr hdr;
	pthread_t thread;
	pid_t pid;

	for (i = 0; i < 2; i++) {
		atomic_store(&asker, 0);
		valed_kill(valed, SIGSTOP);
		thread = later(ask, &fds[i]);
		wait_until(asks(), "no request");
		pid = fork();
		ATF_REQUIRE(pid != -1);
		if (pid == 0) {
			alarm(20);
			if (i == 0 && request(a.fd, NETMAP_REQ_PORT_HDR_GET,
			    "vale0:a", &hdr) != 0)
				_exit(1);
			/* It may be at the place of the other. */
			close(fds[i]);
			(void)port_open("vale0:c", NULL);
			_exit(ports() == 2 ? 0 : 2);
		}
		valed_kill(valed, SIGCONT);
		ATF_REQUIRE_EQ(0, pthread_join(thread, NULL));
		ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
		ATF_CHECK_EQ_MSG(0, status, "%d: %#x", i, status);
		wait_until(ports() == 1, "%u", ports());
	}
	close(fds[1]);
	port_close(&a);
}

PID_TEST(last, "What was published before the port is closed is sent")
{
	struct port b = port_open("vale0:b", NULL), a;
	unsigned int i, k;

	for (i = 0; i < 50; i++) {
		a = port_open("vale0:a", NULL);
		for (k = 0; k < 8; k++)
			port_put(&a, 60, k);
		ATF_REQUIRE_EQ(0, ioctl(a.fd, NIOCTXSYNC, NULL));
		port_close(&a);
		for (k = 0; k < 8; k++)
			port_expect(&b, 60, k);
		wait_until(ports() == 1, "%u", ports());
	}
	port_close(&b);
}

PID_TEST(dies, "A port whose valed has died is in error, and does not block")
{
	struct port a = port_open("vale0:a", NULL);
	struct pollfd pfd = { .fd = a.fd, .events = POLLIN };
	struct nmreq_port_hdr hdr = { .nr_hdr_len = 0 };
	int error, status;

	ATF_CHECK_EQ(0, poll(&pfd, 1, 0));
	valed_kill(valed, SIGKILL);
	ATF_CHECK_EQ(1, poll(&pfd, 1, -1));
	ATF_CHECK_EQ(POLLERR, pfd.revents);
	ATF_REQUIRE_EQ(valed, waitpid(valed, &status, 0));
	valed_killed = true;
	/* The process that passed its reply may have the connection yet. */
	wait_until(ioctl(a.fd, NIOCRXSYNC, NULL) == -1 && errno == ENXIO,
	    "%s", strerror(errno));
	ATF_CHECK_ERRNO(ENXIO, ioctl(a.fd, NIOCTXSYNC, NULL) == -1);
	ATF_CHECK_EQ(ENXIO, request(a.fd, NETMAP_REQ_PORT_HDR_SET, "vale0:a",
	    &hdr));
	while (!nm_ring_empty(a.tx))
		port_put(&a, 60, 0);
	pfd.events = POLLOUT;
	ATF_CHECK_EQ(1, poll(&pfd, 1, -1));
	ATF_CHECK_EQ(POLLERR, pfd.revents);
	error = refused("vale0:a", NR_REG_ALL_NIC, 0);
	/*
	 * The other process of valed closes the socket, and removes its name, a
	 * little later.
	 */
	ATF_CHECK_MSG(error == ECONNREFUSED || error == ENOENT ||
	    error == ENXIO, "%s", strerror(error));
	port_close(&a);
}

TEST(nobody, "Without valed, the first request fails as connect(2) does")
{
	struct nmreq_register reg = { .nr_mode = NR_REG_ALL_NIC };
	const char *text;
	int fd = -1;
	pid_t pid;

	setenv("VALE_SOCKET", "nowhere", 1);
	fd = device();
	said_start();
	ATF_CHECK_EQ(ENOENT, request(fd, NETMAP_REQ_REGISTER, "vale0:a", &reg));
	text = said();
	ATF_CHECK_STREQ("netmap-run: no valed at nowhere\n", text);
	/* It is looked for again with each request. */
	pid = valed_run(atf_tc_get_config_var(tc, "srcdir"));
	ATF_CHECK_EQ(0, request(fd, NETMAP_REQ_REGISTER, "vale0:a", &reg));
	close(fd);
	valed_end(pid);
}

TEST(restarted, "A descriptor without a port finds the next valed, under all "
    "its numbers, which close on exec as before")
{
	const char *srcdir = atf_tc_get_config_var(tc, "srcdir");
	struct nmreq_register reg = { .nr_mode = NR_REG_ALL_NIC };
	struct nmreq_port_info_get info = { .nr_mem_id = 0 };
	pid_t pid = valed_run(srcdir);
	int copy, fd = device();
	struct stat before, st[2];

	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	ATF_REQUIRE_EQ(0, fstat(fd, &before));
	ATF_CHECK_EQ(0, request(fd, NETMAP_REQ_PORT_INFO_GET, "", &info));
	valed_end(pid);
	ATF_CHECK_EQ(ENXIO, request(fd, NETMAP_REQ_PORT_INFO_GET, "", &info));
	ATF_CHECK_EQ(0, fcntl(fd, F_GETFD));
	ATF_CHECK_EQ(FD_CLOEXEC, fcntl(copy, F_GETFD));
	ATF_REQUIRE(fstat(fd, &st[0]) == 0 && fstat(copy, &st[1]) == 0);
	ATF_CHECK(st[0].st_ino == st[1].st_ino &&
	    st[0].st_ino != before.st_ino);
	close(fd);
	pid = valed_run(srcdir);
	ATF_CHECK_EQ(0, request(copy, NETMAP_REQ_REGISTER, "vale0:a", &reg));
	ATF_CHECK_EQ(1, ports());
	close(copy);
	ATF_CHECK_EQ(0, ports());
	valed_end(pid);
}

PID_TEST(monitors, "A monitor, as netmap's programs open it, gets copies and "
    "sends nothing; its port stays another program's")
{
	struct nmreq_register reg = { .nr_flags = NR_MONITOR_TX };
	struct port a = port_open("vale0:a", NULL), m, r;
	struct pollfd pfd = { .events = POLLIN };

	m = port_open("vale0:a", &reg);
	reg.nr_flags = NR_MONITOR_RX;
	r = port_open("vale0:a", &reg);
	ATF_CHECK_EQ(1, ports());
	port_send(&a, 60, 7);
	/* To wait is no attempt to send. */
	pfd.fd = m.fd;
	ATF_CHECK_EQ(1, poll(&pfd, 1, -1));
	ATF_CHECK_EQ(POLLIN, pfd.revents);
	port_expect(&m, 60, 7);
	m.tx->slot[0].len = 60;
	m.tx->head = m.tx->cur = 1;
	ATF_CHECK_ERRNO(EIO, ioctl(m.fd, NIOCTXSYNC, NULL) == -1);
	ATF_CHECK_EQ(0, ioctl(r.fd, NIOCRXSYNC, NULL));
	ATF_CHECK_EQ(0, port_take(&r));
	port_close(&m);
	port_close(&r);
	port_close(&a);
}

TEST_PROGRAM
