/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Descriptors of /dev/netmap that are passed to another process.
 *
 * netmap's functional tests have a server that opens each port, and passes it
 * to the programs that use it.  The cases with their names, which are those for
 * VALE ports, pipes and monitors, do that.  What is refused is in
 * ctl_request_test.
 */

#include <sys/param.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "netmap_port.h"
#include "send_fds.h"
#include "wait_until.h"

/* What the server is asked for, and its answer. */
struct ask {
	char			 name[NETMAP_REQ_IFNAMSIZ];
	struct nmreq_register	 reg;
	int			 error;
};

static int server = -1;

static void
send_fd(int s, struct ask *ask, int fd)
{
	if (send_fds(s, ask, sizeof(*ask), &fd, fd != -1, 0) == -1)
		abort();
}

static int
receive_fd(int s, struct ask *ask)
{
	union {
		struct cmsghdr	align;
		char		space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { ask, sizeof(*ask) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = &control, .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	int fd;

	ATF_REQUIRE_EQ((ssize_t)sizeof(*ask), recvmsg(s, &msg, 0));
	c = CMSG_FIRSTHDR(&msg);
	if (c == NULL)
		return (-1);
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return (fd);
}

/* Open each port once, and pass it as often as it is asked for. */
static void __attribute__((__noreturn__))
serve(int s)
{
	struct {
		struct ask	ask;
		int		fd;
	} open[8];
	unsigned int i, n = 0;
	struct ask ask;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (recv(s, &ask, sizeof(ask), 0) == (ssize_t)sizeof(ask)) {
		for (i = 0; i < n; i++)
			if (strcmp(open[i].ask.name, ask.name) == 0 &&
			    ((open[i].ask.reg.nr_flags ^ ask.reg.nr_flags) &
			    (NR_MONITOR_TX | NR_MONITOR_RX)) == 0)
				break;
		if (i == n) {
			open[i].fd = device();
			open[i].ask = ask;
			ask.error = request(open[i].fd, NETMAP_REQ_REGISTER,
			    ask.name, &open[i].ask.reg);
			if (ask.error != 0) {
				close(open[i].fd);
				send_fd(s, &ask, -1);
				continue;
			}
			n++;
		}
		send_fd(s, &open[i].ask, open[i].fd);
	}
	_exit(0);
}

static void
serve_start(void)
{
	int s[2];
	pid_t pid;

	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
	    s));
	pid = fork();
	ATF_REQUIRE(pid != -1);
	if (pid == 0) {
		close(s[0]);
		serve(s[1]);
	}
	close(s[1]);
	server = s[0];
}

/* Ask for a port.  Returns an errno. */
static int
serve_try(const char *name, const struct nmreq_register *reg, struct port *p)
{
	struct ask ask = { .error = 0 };
	int fd;

	if (server == -1)
		serve_start();
	snprintf(ask.name, sizeof(ask.name), "%s", name);
	if (reg != NULL)
		ask.reg = *reg;
	if (ask.reg.nr_mode == NR_REG_DEFAULT)
		ask.reg.nr_mode = NR_REG_ALL_NIC;
	ATF_REQUIRE(send(server, &ask, sizeof(ask), 0) != -1);
	fd = receive_fd(server, &ask);
	if (fd == -1)
		return (ask.error);
	*p = port_passed(name, fd, &ask.reg);
	return (0);
}

static struct port
served(const char *name)
{
	struct port p;
	int error = serve_try(name, NULL, &p);

	ATF_REQUIRE_MSG(error == 0, "%s: %s", name, strerror(error));
	return (p);
}

/* The errno of a registration by this process. */
static int
refused(const char *name, uint64_t flags)
{
	struct nmreq_register reg = { .nr_mode = NR_REG_ALL_NIC,
	    .nr_flags = flags };
	int error, fd = device();

	error = request(fd, NETMAP_REQ_REGISTER, name, &reg);
	close(fd);
	return (error);
}

/* And by the server. */
static int
serve_refused(const char *name, uint64_t flags)
{
	struct nmreq_register reg = { .nr_flags = flags };
	struct port p;
	int error = serve_try(name, &reg, &p);

	if (error == 0)
		port_close(&p);
	return (error);
}

/* What the server has cannot be opened by who does not have it passed. */
static void
exclusive(const char *name, uint64_t flags)
{
	ATF_CHECK_EQ(0, serve_refused(name, flags));
	ATF_CHECK_EQ(EBUSY, refused(name, 0));
	ATF_CHECK_EQ(EBUSY, refused(name, NR_EXCLUSIVE));
}

PID_TEST(exclusive_open_ephemeral_vale_port, "001")
{
	exclusive("vale0:v0", NR_EXCLUSIVE);
}

PID_TEST(exclusive_open_pipe, "003")
{
	exclusive("pipeA{1", NR_EXCLUSIVE);
}

/* Frames both ways, each time with the ports passed anew. */
static void
send_receive(const char *a, const char *b)
{
	struct port from, to;
	unsigned int i;

	to = served(b);
	port_close(&to);
	for (i = 0; i < 4; i++) {
		from = served(i % 2 == 0 ? a : b);
		to = served(i % 2 == 0 ? b : a);
		port_send(&from, 274, i);
		port_close(&from);
		port_expect(&to, 274, i);
		ATF_REQUIRE_EQ(0, ioctl(to.fd, NIOCRXSYNC, NULL));
		port_close(&to);
	}
}

/* Send from an extra buffer. */
static void
extra_send_receive(const char *a, const char *b)
{
	static const struct nmreq_register extra = { .nr_extra_bufs = 12 };
	struct port from, to = served(b);
	struct netmap_slot *slot;
	uint32_t buf, n = 0;

	ATF_REQUIRE_EQ(0, serve_try(a, &extra, &from));
	ATF_CHECK_EQ(12, from.reg.nr_extra_bufs);
	for (buf = from.nifp->ni_bufs_head; buf != 0; n++)
		buf = *(uint32_t *)(void *)NETMAP_BUF(from.tx, buf);
	ATF_CHECK_EQ(12, n);
	slot = &from.tx->slot[from.tx->head];
	buf = slot->buf_idx;
	slot->buf_idx = from.nifp->ni_bufs_head;
	port_put(&from, 274, 1);
	slot->flags = NS_BUF_CHANGED;
	ATF_CHECK_EQ(0, ioctl(from.fd, NIOCTXSYNC, NULL));
	from.nifp->ni_bufs_head = buf;
	port_expect(&to, 274, 1);
}

PID_TEST(extra_buf_send_rec_ephemeral_vale_ports, "004")
{
	extra_send_receive("vale0:v0", "vale0:v1");
}

PID_TEST(extra_buf_send_rec_pipe, "006")
{
	extra_send_receive("pipeA}1", "pipeA{1");
}

/* A frame between the ports whose addresses end in `from' and `to'. */
static void
send_to(struct port *p, uint8_t from, uint8_t to)
{
	struct netmap_slot *slot = &p->tx->slot[p->tx->head];
	char *buf = NETMAP_BUF(p->tx, slot->buf_idx);

	port_put(p, 60, from);
	memset(buf, 0, 12);
	buf[0] = buf[6] = 2;
	buf[5] = to;
	buf[11] = from;
	ATF_REQUIRE_EQ(0, ioctl(p->fd, NIOCTXSYNC, NULL));
}

PID_TEST(learning_bridge, "007")
{
	struct port v0 = served("vale0:v0"), v1 = served("vale0:v1"),
	    v2 = served("vale0:v2");

	send_to(&v0, 1, 2);
	port_expect(&v1, 60, 1);
	port_expect(&v2, 60, 1);
	/* Where 1 is, is known. */
	send_to(&v1, 2, 1);
	port_expect(&v0, 60, 2);
	/* And 2. */
	send_to(&v0, 1, 2);
	port_expect(&v1, 60, 1);
	ATF_CHECK_EQ(0, ioctl(v2.fd, NIOCRXSYNC, NULL));
	ATF_CHECK_EQ(0, port_take(&v2));
}

PID_TEST(partial_read_pipe, "008: what is not received stays in the "
    "sender's ring; but who was not passed the pipe cannot open it")
{
	struct port from, to;
	unsigned int i;

	exclusive("pipeA}1", 0);
	from = served("pipeA}1");
	to = served("pipeA{1");
	for (i = 0; i < 10; i++)
		port_put(&from, 274, i);
	ATF_CHECK_EQ(0, ioctl(from.fd, NIOCTXSYNC, NULL));
	port_close(&from);
	for (i = 0; i < 7; i++)
		port_expect(&to, 274, i);
	ATF_CHECK_EQ(0, ioctl(to.fd, NIOCRXSYNC, NULL));
	port_close(&to);
	from = served("pipeA}1");
	ATF_CHECK_EQ(0, ioctl(from.fd, NIOCTXSYNC, NULL));
	ATF_CHECK_EQ(3, from.tx->num_slots - 1 - nm_ring_space(from.tx));
	to = served("pipeA{1");
	for (; i < 10; i++)
		port_expect(&to, 274, i);
}

/* A monitor gets what its port sends or receives, before that is read. */
static void
monitor(uint64_t flags, const char *from, const char *to)
{
	struct nmreq_register reg = { .nr_flags = flags };
	struct port v0 = served("vale0:v0"), v1 = served("vale0:v1"), m;

	ATF_REQUIRE_EQ(0, serve_try("vale0:v0", &reg, &m));
	port_send(strcmp(from, "vale0:v0") == 0 ? &v0 : &v1, 150, 1);
	port_expect(&m, 150, 1);
	port_expect(strcmp(to, "vale0:v0") == 0 ? &v0 : &v1, 150, 1);
}

PID_TEST(rec_cp_mon_ephemeral_vale_port, "012")
{
	monitor(NR_MONITOR_RX, "vale0:v1", "vale0:v0");
}

PID_TEST(send_cp_mon_ephemeral_vale_port, "018")
{
	monitor(NR_MONITOR_TX, "vale0:v0", "vale0:v1");
}

PID_TEST(send_rec_ephemeral_vale_ports, "021")
{
	send_receive("vale0:v0", "vale0:v1");
}

PID_TEST(send_rec_pipe, "023")
{
	send_receive("pipeA{1", "pipeA}1");
}

PID_TEST(waits, "A port that was passed is waited for, has its requests, "
    "and is there until the last process has closed it")
{
	static const struct nmreq_register one = { .nr_mode = NR_REG_ONE_NIC,
	    .nr_ringid = 1, .nr_tx_rings = 2 };
	struct nmreq_port_hdr hdr = { .nr_hdr_len = 12 };
	struct port a = port_open("vale0:a", NULL), p, again;
	struct nmreq_register reg = { .nr_mode = NR_REG_ALL_NIC };
	struct pollfd pfd = { .events = POLLIN };
	int fd;

	ATF_REQUIRE_EQ(0, serve_try("vale0:p", &one, &p));
	ATF_CHECK_EQ(1, p.rx->ringid);
	pfd.fd = p.fd;
	ATF_CHECK_EQ(0, poll(&pfd, 1, 0));
	port_send(&a, 60, 1);
	/* That goes to the port's ring 0, which is not this descriptor's. */
	ATF_CHECK_EQ(0, poll(&pfd, 1, 20));
	ATF_CHECK_EQ(0, request(p.fd, NETMAP_REQ_PORT_HDR_SET, "vale0:p",
	    &hdr));
	ATF_CHECK_EQ(EBUSY, request(p.fd, NETMAP_REQ_REGISTER, "vale0:q",
	    &reg));
	/* The descriptor once more: as dup(2). */
	ATF_REQUIRE_EQ(0, serve_try("vale0:p", &one, &again));
	ATF_CHECK_EQ(2, ports());
	close(server);
	ATF_REQUIRE(wait(NULL) != -1);
	ATF_CHECK_EQ(2, ports());
	port_close(&p);
	ATF_CHECK_EQ(2, ports());
	ATF_CHECK_EQ(0, ioctl(again.fd, NIOCTXSYNC, NULL));
	port_close(&again);
	ATF_CHECK_EQ(1, ports());
	/* What is not of /dev/netmap stays what it is. */
	fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	ATF_CHECK_ERRNO(ENODEV, mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd,
	    0) == MAP_FAILED);
	close(fd);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ATF_CHECK_ERRNO(ENOTTY, ioctl(fd, NIOCTXSYNC, NULL) == -1);
	close(fd);
	port_close(&a);
}

/* Ask for the port of another, and for its own header, in turn. */
static bool
ask_often(const struct port *p)
{
	struct nmreq_port_info_get info;
	struct nmreq_port_hdr hdr;
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		memset(&info, 0, sizeof(info));
		memset(&hdr, 0, sizeof(hdr));
		if (request(p->fd, NETMAP_REQ_PORT_INFO_GET, "vale0:b",
		    &info) != 0 || info.nr_tx_slots != 64 ||
		    request(p->fd, NETMAP_REQ_PORT_HDR_GET, "vale0:a",
		    &hdr) != 0 || hdr.nr_hdr_len != 12)
			return (false);
	}
	return (true);
}

PID_TEST(requests, "Each of the processes that have a descriptor gets the "
    "answers to its own requests")
{
	static const struct nmreq_register slots = { .nr_tx_slots = 64 };
	struct nmreq_port_hdr hdr = { .nr_hdr_len = 12 };
	struct port a = port_open("vale0:a", NULL);
	struct port b = port_open("vale0:b", &slots);
	unsigned int i;
	int status;

	ATF_REQUIRE_EQ(0, request(a.fd, NETMAP_REQ_PORT_HDR_SET, "vale0:a",
	    &hdr));
	for (i = 0; i < 3; i++)
		if (fork() == 0)
			_exit(ask_often(&a) ? 0 : 1);
	ATF_CHECK(ask_often(&a));
	while (i-- > 0) {
		ATF_REQUIRE(wait(&status) != -1);
		ATF_CHECK_EQ(0, status);
	}
	port_close(&a);
	port_close(&b);
}

/* What the program does that has inherited a descriptor: netmap_port.c. */
#define	HEIR	"NETMAP_TEST_HEIR"
#define	AGAIN	"NETMAP_TEST_AGAIN"

static void heir(void) __attribute__((__constructor__));

static void
heir(void)
{
	const char *what = getenv(HEIR);
	struct nmreq_register reg = { .nr_mode = NR_REG_ALL_NIC };
	struct nmreq nmr = { .nr_version = NETMAP_API };
	struct port p;
	int fd;

	/* Without the library it is about to be executed again. */
	if (what == NULL || getenv(AGAIN) == NULL)
		return;
	if (sscanf(what, "%d %ju %ju", &fd, &reg.nr_offset,
	    &reg.nr_memsize) != 3)
		_exit(1);
	/* A program that keeps a request in an int extends its sign. */
	strcpy(nmr.nr_name, "vale0:a");
	if (ioctl(fd, (unsigned long)(int)NIOCGINFO, &nmr) == -1)
		_exit(3);
	p.memory = mmap(NULL, reg.nr_memsize, PROT_READ | PROT_WRITE,
	    MAP_SHARED, fd, 0);
	if (p.memory == MAP_FAILED)
		_exit(2);
	p.fd = fd;
	p.nifp = (void *)(p.memory + reg.nr_offset);
	p.tx = NETMAP_TXRING(p.nifp, 0);
	port_send(&p, 60, 5);
	_exit(0);
}

/* Execute this program.  Returns its status. */
static int
inherit(const struct port *p)
{
	char what[64];
	int status;
	pid_t pid;

	snprintf(what, sizeof(what), "%d %ju %ju", p->fd,
	    (uintmax_t)p->reg.nr_offset, (uintmax_t)p->reg.nr_memsize);
	pid = fork();
	ATF_REQUIRE(pid != -1);
	if (pid == 0) {
		setenv(HEIR, what, 1);
		preload();
		execl("/proc/self/exe", "heir", (char *)NULL);
		_exit(127);
	}
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	return (WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

PID_TEST(inherited, "A program that is executed has the descriptor, unless "
    "it was opened or copied to be closed then")
{
	struct port a = port_open("vale0:a", NULL);
	struct port b = port_open("vale0:b", NULL);
	struct port c = a;

	ATF_CHECK_EQ(0, inherit(&a));
	port_expect(&b, 60, 5);
	c.fd = fcntl(a.fd, F_DUPFD, 100);
	ATF_CHECK_EQ(0, inherit(&c));
	port_expect(&b, 60, 5);
	ATF_CHECK_EQ(101, dup3(a.fd, 101, O_CLOEXEC));
	c.fd = 101;
	ATF_CHECK_EQ(3, inherit(&c));
	c.fd = open("/dev/netmap", O_RDWR | O_CLOEXEC);
	ATF_CHECK_EQ(FD_CLOEXEC, fcntl(c.fd, F_GETFD));
	ATF_CHECK_EQ(0, fcntl(a.fd, F_GETFD));
	/* A descriptor that does not wait changes nothing of that. */
	ATF_CHECK_EQ(0, fcntl(a.fd, F_SETFL, O_NONBLOCK));
	ATF_CHECK_EQ(0, inherit(&a));
	port_expect(&b, 60, 5);
	port_close(&a);
	close(100);
	close(101);
	port_close(&b);
	ATF_CHECK_EQ(0, ports());
}

TEST_PROGRAM
