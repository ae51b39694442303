/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The server and a client at the other end of its socket, in one thread, step
 * by step: connections, framing, replies and descriptors.  vfio-user
 * specification, "Socket", "Header" and "Socket Disconnection Behavior".
 */

#include <sys/param.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "adapter_stub.h"
#include "event_stub.h"
#include "test.h"
#include "vfu_close.h"

#define	HDR		sizeof(struct vfio_user_header)
#define	UNKNOWN		VFIO_USER_DEVICE_FEATURE
#define	NO_REPLY	VFIO_USER_F_NO_REPLY
#define	PAGE		4096

static int	listen_fd;
static int	client;			/* or -1 */
static int	fds_idle;		/* open without a client */
static uint16_t	next_id;

/* vfu_close() fails after so many calls; -1: never. */
static int	closes = -1;
static int	closed;			/* calls */

/*
 * What send(2) and recvmsg(2) do: fail with this errno, once; and send() leaves
 * so many bytes.
 */
static int	send_error, recv_error;
static size_t	send_leaves;

ssize_t	__real_send(int s, const void *buf, size_t len, int flags);
ssize_t	__wrap_send(int s, const void *buf, size_t len, int flags);
ssize_t	__real_recvmsg(int s, struct msghdr *msg, int flags);
ssize_t	__wrap_recvmsg(int s, struct msghdr *msg, int flags);

ssize_t
__wrap_send(int s, const void *buf, size_t len, int flags)
{
	if (send_error != 0) {
		errno = send_error;
		send_error = 0;
		return (-1);
	}
	return (__real_send(s, buf, len - MIN(len, send_leaves), flags));
}

ssize_t
__wrap_recvmsg(int s, struct msghdr *msg, int flags)
{
	/* It has space for what it asks for. */
	ATF_REQUIRE((uint8_t *)msg->msg_iov->iov_base +
	    msg->msg_iov->iov_len <= ad.server.in + sizeof(ad.server.in));
	if (recv_error != 0) {
		errno = recv_error;
		recv_error = 0;
		return (-1);
	}
	return (__real_recvmsg(s, msg, flags));
}

/* Calls of close(2) by the server that adapter_watch() would interrupt. */
static int	odd_closes;

int	__real_close(int fd);
int	__wrap_close(int fd);
bool	__real_vfu_close(int fd);
bool	__wrap_vfu_close(int fd);

int
__wrap_close(int fd)
{
	odd_closes += ad.server.calls % 2;
	return (__real_close(fd));
}

bool
__wrap_vfu_close(int fd)
{
	if (closes == 0)
		return (false);
	closes -= closes > 0;
	closed++;
	return (__real_vfu_close(fd));
}

static void
server_start(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX, .sun_path = "s" };

	listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	ATF_REQUIRE_EQ(0, bind(listen_fd, (void *)&sun, sizeof(sun)));
	ATF_REQUIRE_EQ(0, listen(listen_fd, 8));
	stub_start(listen_fd);
	ad.server.fd = 0;
	errno = EIO;
	ATF_REQUIRE_EQ(0, vfu_server_init(&ad));
	ATF_CHECK_EQ(-1, ad.server.fd);
	fds_idle = stub_fds();
	client = -1;
}

/* Connect from a socket with an address, as a client may. */
static int
dial(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX, .sun_path = "s" };
	const sa_family_t autobind = AF_UNIX;
	int s;

	s = socket(AF_UNIX, SOCK_STREAM, 0);
	ATF_REQUIRE(s != -1);
	ATF_REQUIRE_EQ(0, bind(s, (const void *)&autobind, sizeof(autobind)));
	ATF_REQUIRE_EQ(0, connect(s, (void *)&sun, sizeof(sun)));
	return (s);
}

/* Send bytes with descriptors. */
static void
put_fds(const void *data, size_t len, const int *fds, int nfds)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(32 * sizeof(int))];
	} control;
	struct iovec iov = { (void *)(uintptr_t)data, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (nfds > 0) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
	}
	ATF_REQUIRE_EQ((ssize_t)len, sendmsg(client, &msg, MSG_NOSIGNAL));
}

static void
put(const void *data, size_t len)
{
	put_fds(data, len, NULL, 0);
}

/* Build a message; returns its size. */
static size_t
message(uint8_t *buf, unsigned int command, uint32_t flags, const void *data,
    size_t len)
{
	const struct vfio_user_header h = { .id = next_id++,
	    .command = command, .size = HDR + len, .flags = flags };

	memcpy(buf, &h, HDR);
	if (len != 0)
		memcpy(buf + HDR, data, len);
	return (HDR + len);
}

static void
put_message(unsigned int command, uint32_t flags, const void *data, size_t len)
{
	uint8_t buf[VFU_MSG_MAX + 64];

	put(buf, message(buf, command, flags, data, len));
}

/* Take a reply to the oldest message without one: its error, and its data. */
static int
reply(uint16_t id, unsigned int command, void *data, size_t len)
{
	struct vfio_user_header h;
	uint8_t buf[VFU_REPLY_MAX];

	ATF_REQUIRE_EQ(HDR, recv(client, &h, HDR, MSG_DONTWAIT));
	ATF_CHECK_EQ(id, h.id);
	ATF_CHECK_EQ(command, h.command);
	ATF_CHECK_EQ(VFIO_USER_F_REPLY | (h.error != 0 ? VFIO_USER_F_ERROR :
	    0), h.flags);
	if (h.error != 0) {
		ATF_CHECK_EQ(HDR, h.size);
		return (h.error);
	}
	ATF_REQUIRE_EQ(HDR + len, h.size);
	if (len != 0)
		ATF_REQUIRE_EQ((ssize_t)len, recv(client, buf, len,
		    MSG_DONTWAIT));
	if (data != NULL)
		memcpy(data, buf, len);
	return (0);
}

static bool
no_reply(void)
{
	char c;

	return (recv(client, &c, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
}

/* Whether the server has closed the connection, after all its replies. */
static bool
hung_up(void)
{
	char c;
	ssize_t n;

	while ((n = recv(client, &c, 1, MSG_DONTWAIT)) == 1)
		continue;
	return (n == 0 || errno == ECONNRESET);
}

/* Connect, and negotiate if `version'. */
static void
client_come(bool version)
{
	static const struct vfio_user_version v;
	uint8_t data[64];

	client = dial();
	events_run();
	ATF_CHECK_STREQ("attach;", stub_calls());
	if (!version)
		return;
	put_message(VFIO_USER_VERSION, 0, &v, sizeof(v));
	events_run();
	ATF_REQUIRE_EQ(0, reply(next_id - 1, VFIO_USER_VERSION, data,
	    sizeof(v) + sizeof("{\"capabilities\":{}}")));
	ATF_CHECK_STREQ("work;", stub_calls());
}

/* The client leaves, or was dropped: nothing of it stays. */
static void
client_gone(const char *calls)
{
	const char *got;

	close(client);
	client = -1;
	events_run();
	got = stub_calls();
	ATF_CHECK_MSG(strcmp(calls, got) == 0, "%s, not %s", got, calls);
	ATF_CHECK_EQ(-1, ad.server.fd);
	ATF_CHECK_EQ(1, events_used());
	ATF_CHECK_EQ(1, events_on());
	ATF_CHECK_EQ_MSG(fds_idle, stub_fds(), "%d descriptors, not %d",
	    stub_fds(), fds_idle);
	ATF_CHECK_EQ(0, ad.server.calls % 2);
}

/* The server drops the client, for this reason, and serves the next one. */
static void
check_dropped(const char *why)
{
	char calls[256];

	events_run();
	ATF_CHECK(hung_up());
	snprintf(calls, sizeof(calls), "log: client dropped: %s;detach;", why);
	client_gone(calls);
	ATF_CHECK_EQ(1, stub_count(ADAPTER_C_BROKEN));
	client_come(true);
}

/* A register read, as payload. */
static struct vfio_user_region_rw
read_of(uint32_t region, uint64_t offset, uint32_t count)
{
	return ((struct vfio_user_region_rw){ offset, region, count });
}

TEST(connect, "One client is served at a time; the next one finds nothing of it")
{
	int i, second;

	server_start();
	for (i = 0; i < 3; i++) {
		client_come(i == 1);
		ATF_CHECK_EQ(3, events_used());
		ATF_CHECK_EQ(2, events_on());
		ATF_CHECK_EQ(1, stub_count(ADAPTER_C_CONNECT));
		ATF_CHECK((fcntl(ad.server.fd, F_GETFL) & O_NONBLOCK) != 0);
		ATF_CHECK((fcntl(ad.server.fd, F_GETFD) & FD_CLOEXEC) != 0);
		/* Half a message. */
		if (i == 2)
			put("abc", 3);
		events_run();
		(void)stub_calls();
		client_gone("detach;");
		ATF_CHECK_EQ(1, stub_count(ADAPTER_C_DISCONNECT));
	}
	client_come(true);
	second = client;
	client = dial();
	events_run();
	ATF_CHECK_STREQ("log: second client refused;", stub_calls());
	ATF_CHECK_EQ(1, stub_count(ADAPTER_C_REFUSED));
	ATF_CHECK(hung_up());
	close(client);
	client = second;
	put_message(UNKNOWN, 0, NULL, 0);
	events_run();
	ATF_CHECK_EQ(ENOTSUP, reply(next_id - 1, UNKNOWN, NULL, 0));
	client_gone("work;detach;");
}

TEST(left, "A client may connect before the last one is seen to have left")
{
	server_start();
	client_come(true);
	close(client);
	client = dial();
	/* The listening socket's event is handled first. */
	ATF_CHECK_EQ(1, events_step());
	ATF_CHECK_STREQ("detach;attach;", stub_calls());
	ATF_CHECK_EQ(0, stub_count(ADAPTER_C_REFUSED));
	events_run();
	client_gone("detach;");
}

TEST(resources, "Without space for its events a client is refused")
{
	unsigned int i;

	server_start();
	for (i = 1; i <= 2; i++) {
		events_fail = i;
		client = dial();
		events_run();
		ATF_CHECK(hung_up());
		client_gone("log: client refused: out of resources;");
		ATF_CHECK_EQ(0, stub_count(ADAPTER_C_CONNECT));
	}
	/* A connection that is gone before it is accepted. */
	ad.server.listen_ev->func(listen_fd, EVF_READ, &ad);
	client_come(true);
	client_gone("detach;");
	events_fail = 1;
	ATF_CHECK_EQ(ENOSPC, vfu_server_init(&ad));
}

TEST(version, "The first command is VERSION, and it succeeds")
{
	static const struct vfio_user_version v = { 0, 0 }, future = { 1, 0 };

	server_start();
	client_come(false);
	put_message(UNKNOWN, 0, NULL, 0);
	check_dropped("command before VERSION");
	put_message(VFIO_USER_VERSION, 0, &v, sizeof(v));
	events_run();
	ATF_CHECK_EQ(EINVAL, reply(next_id - 1, VFIO_USER_VERSION, NULL, 0));
	ATF_CHECK_EQ(1, stub_count(ADAPTER_C_ERROR));
	client_gone("work;detach;");
	/* The client gets the reply before it is dropped. */
	client_come(false);
	put_message(VFIO_USER_VERSION, 0, &future, sizeof(future));
	events_run();
	ATF_CHECK_EQ(ENOTSUP, reply(next_id - 1, VFIO_USER_VERSION, NULL, 0));
	check_dropped("no common version");
	/* The next client must negotiate, too. */
	client_gone("detach;");
	client_come(false);
	put_message(UNKNOWN, 0, NULL, 0);
	check_dropped("command before VERSION");
}

TEST(frames, "A message has a valid size and type")
{
	static const uint8_t zeros[VFU_MSG_MAX];
	struct vfio_user_header h = { .command = VFIO_USER_DEVICE_RESET };
	uint32_t type;
	uint8_t buf[VFU_MSG_MAX + 64];
	const uint32_t bad[] = { 0, 1, HDR - 1, VFU_MSG_MAX + 1, UINT32_MAX };
	unsigned int i;

	server_start();
	client_come(true);
	(void)stub_count(ADAPTER_C_MESSAGE);
	for (i = 0; i < nitems(bad); i++) {
		h.size = bad[i];
		put(&h, HDR);
		check_dropped("message of invalid size");
		/* Nothing but VERSION was executed. */
		ATF_CHECK_EQ(1, stub_count(ADAPTER_C_MESSAGE));
	}
	h.size = HDR;
	for (type = 1; type < 16; type++) {
		h.flags = type;
		put(&h, HDR);
		check_dropped("not a command");
	}
	/* The other flags are ignored. */
	put_message(UNKNOWN, (VFIO_USER_F_ERROR | 0xffffff00) &
	    ~NO_REPLY, NULL, 0);
	events_run();
	ATF_CHECK_EQ(ENOTSUP, reply(next_id - 1, UNKNOWN, NULL, 0));
	/* The longest. */
	ATF_REQUIRE_EQ(VFU_MSG_MAX, message(buf, UNKNOWN, 0, zeros,
	    VFU_MSG_MAX - HDR));
	put(buf, VFU_MSG_MAX);
	events_run();
	ATF_CHECK_EQ(ENOTSUP, reply(next_id - 1, UNKNOWN, NULL, 0));
	(void)stub_calls();
	/* What follows an invalid one is not executed. */
	put_message(VFIO_USER_DEVICE_RESET, 0, NULL, 0);
	events_run();
	ATF_CHECK_STREQ("reset;work;", stub_calls());
	i = message(buf, VFIO_USER_DEVICE_RESET, 0, NULL, 0);
	h.flags = 1;
	memcpy(buf + i, &h, HDR);
	i += HDR;
	i += message(buf + i, VFIO_USER_DEVICE_RESET, 0, NULL, 0);
	put(buf, i);
	events_run();
	ATF_CHECK_EQ(0, reply(next_id - 3, VFIO_USER_DEVICE_RESET, NULL, 0));
	ATF_CHECK_EQ(0, reply(next_id - 2, VFIO_USER_DEVICE_RESET, NULL, 0));
	client_gone("reset;log: client dropped: not a command;detach;");
}

TEST(replies, "A reply has its command's number, and errors no data")
{
	struct vfio_user_region_rw rw = read_of(VFIO_PCI_BAR0_REGION_INDEX,
	    0x10, 4);
	struct {
		struct vfio_user_region_rw rw;
		uint32_t value;
	} __attribute__((__packed__)) got;

	server_start();
	client_come(true);
	(void)stub_count(ADAPTER_C_MESSAGE);
	(void)stub_count(ADAPTER_C_SEND);
	(void)stub_count(ADAPTER_C_RECV);
	stub_value = 0x12345678;
	next_id = 0xfffe;
	put_message(VFIO_USER_REGION_READ, 0, &rw, sizeof(rw));
	events_run();
	ATF_CHECK_EQ(0, reply(0xfffe, VFIO_USER_REGION_READ, &got,
	    sizeof(got)));
	ATF_CHECK_EQ(0x12345678, got.value);
	ATF_CHECK(no_reply());
	ATF_CHECK_STREQ("read 0+0x10,4;work;", stub_calls());
	rw.count = 3;
	put_message(VFIO_USER_REGION_READ, 0, &rw, sizeof(rw));
	events_run();
	ATF_CHECK_EQ(EINVAL, reply(0xffff, VFIO_USER_REGION_READ, NULL, 0));
	ATF_CHECK_EQ(1, stub_count(ADAPTER_C_ERROR));
	/* None if the client wants none. */
	put_message(VFIO_USER_REGION_READ, NO_REPLY, &rw, sizeof(rw));
	put_message(VFIO_USER_DEVICE_RESET, NO_REPLY, NULL, 0);
	events_run();
	ATF_CHECK(no_reply());
	ATF_CHECK_STREQ("work;reset;work;", stub_calls());
	ATF_CHECK_EQ(1, stub_count(ADAPTER_C_ERROR));
	ATF_CHECK_EQ(2, stub_count(ADAPTER_C_POSTED));
	ATF_CHECK_EQ(4, stub_count(ADAPTER_C_MESSAGE));
	ATF_CHECK_EQ(2, stub_count(ADAPTER_C_SEND));
	/* One for both of the last two, which had arrived. */
	ATF_CHECK_EQ(3, stub_count(ADAPTER_C_RECV));
}

TEST(batch, "Messages that arrived together are answered together, in order")
{
	const struct vfio_user_region_rw rw = read_of(
	    VFIO_PCI_BAR0_REGION_INDEX, 0, 4);
	uint8_t buf[8192];
	uint16_t first;
	size_t len;
	int i;

	server_start();
	client_come(true);
	(void)stub_count(ADAPTER_C_SEND);
	(void)stub_count(ADAPTER_C_RECV);
	first = next_id;
	len = 0;
	for (i = 0; i < 100; i++)
		len += message(buf + len, VFIO_USER_REGION_READ,
		    i % 3 == 2 ? NO_REPLY : 0, &rw, sizeof(rw));
	put(buf, len);
	events_run();
	for (i = 0; i < 100; i++)
		if (i % 3 != 2)
			ATF_CHECK_EQ(0, reply(first + i,
			    VFIO_USER_REGION_READ, NULL, sizeof(rw) + 4));
	ATF_CHECK(no_reply());
	ATF_CHECK_EQ(1, stub_count(ADAPTER_C_RECV));
	ATF_CHECK_EQ(1, stub_count(ADAPTER_C_SEND));
	(void)stub_calls();
	client_gone("detach;");
}

TEST(interrupt, "A client that has a reply has the interrupt of its command")
{
	const struct {
		struct vfio_user_region_rw rw;
		uint32_t value;
	} w = { { 0xc8, VFIO_PCI_BAR0_REGION_INDEX, 4 }, 1 };
	uint64_t n;
	int fd;

	server_start();
	client_come(true);
	fd = eventfd(0, EFD_NONBLOCK);
	ad.irq.msi_fd = dup(fd);
	stub_level = 1;
	put_message(VFIO_USER_REGION_WRITE, 0, &w, 20);
	events_run();
	stub_level = -1;
	ATF_CHECK_EQ(sizeof(n), read(fd, &n, sizeof(n)));
	ATF_CHECK_EQ(1, n);
	/* Without a command there is none: the adapter's work sends it. */
	vfu_irq_level(&ad.irq, true);
	put("x", 1);
	events_run();
	ATF_CHECK_EQ(-1, read(fd, &n, sizeof(n)));
}

TEST(fragments, "A message may arrive in any number of parts")
{
	const struct vfio_user_region_rw rw = read_of(
	    VFIO_PCI_BAR0_REGION_INDEX, 0, 4);
	uint8_t buf[64];
	size_t cut, i, len;

	server_start();
	client_come(true);
	len = message(buf, VFIO_USER_REGION_READ, 0, &rw, sizeof(rw));
	for (cut = 1; cut < len; cut++) {
		put(buf, cut);
		events_run();
		ATF_CHECK(no_reply());
		ATF_CHECK_STREQ("work;", stub_calls());
		/* With the first part of the next one. */
		put(buf + cut, len - cut);
		put(buf, 5);
		events_run();
		ATF_CHECK_EQ(0, reply(next_id - 1, VFIO_USER_REGION_READ, NULL,
		    sizeof(rw) + 4));
		ATF_CHECK(no_reply());
		put(buf + 5, len - 5);
		events_run();
		ATF_CHECK_EQ(0, reply(next_id - 1, VFIO_USER_REGION_READ, NULL,
		    sizeof(rw) + 4));
		(void)stub_calls();
	}
	for (i = 0; i < len; i++) {
		ATF_CHECK(no_reply());
		put(buf + i, 1);
		events_run();
	}
	ATF_CHECK_EQ(0, reply(next_id - 1, VFIO_USER_REGION_READ, NULL,
	    sizeof(rw) + 4));
}

TEST(spurious, "A wakeup without data changes nothing")
{
	server_start();
	client_come(true);
	ad.server.read_ev->func(ad.server.fd, EVF_READ, &ad);
	ATF_CHECK_STREQ("", stub_calls());
	ATF_CHECK(ad.server.fd != -1);
	ad.server.write_ev->func(ad.server.fd, EVF_WRITE, &ad);
	ATF_CHECK_STREQ("work;", stub_calls());
	client_gone("detach;");
}

/* Bytes that wait for the client to read them. */
static size_t
waiting(void)
{
	int n;

	ATF_REQUIRE_EQ(0, ioctl(client, FIONREAD, &n));
	return (n);
}

#define	LOT	1000			/* messages in one go */

TEST(slow_reader, "A client that does not read replies is not read either")
{
	static uint8_t buf[LOT * 32];
	const struct vfio_user_region_rw rw = read_of(
	    VFIO_PCI_CONFIG_REGION_INDEX, 0, 256);
	struct vfio_user_header h;
	uint8_t data[sizeof(rw) + 256];
	unsigned int got, i, sent, step;
	uint16_t first;
	size_t len;

	server_start();
	client_come(true);
	first = next_id;
	sent = 0;
	do {
		for (len = i = 0; i < LOT; i++)
			len += message(buf + len, VFIO_USER_REGION_READ, 0,
			    &rw, sizeof(rw));
		ATF_REQUIRE((sent += LOT) < 100 * LOT);
		put(buf, len);
		events_step();
	} while (!ad.server.blocked);
	/* It waits for space; so does what the client sends now. */
	ATF_CHECK_EQ(2, events_on());
	ATF_CHECK(ad.server.out_len > 0);
	ATF_CHECK(ad.server.out_len <= sizeof(ad.server.out));
	(void)stub_calls();
	for (len = i = 0; i < LOT; i++)
		len += message(buf + len, VFIO_USER_REGION_READ, 0, &rw,
		    sizeof(rw));
	for (i = 0; i < 3; i++) {
		memcpy(&h, buf, HDR);
		for (len = 0; len < sizeof(buf); len += h.size) {
			h.id = (uint16_t)(first + sent++);
			memcpy(buf + len, &h, HDR);
		}
		put(buf, len);
	}
	ATF_CHECK_EQ(0, events_step());
	for (got = step = 0; got < sent; step++) {
		ATF_REQUIRE(step < 100 * LOT);
		for (i = 0; i < 7 && waiting() >= HDR + sizeof(data); i++) {
			ATF_REQUIRE_EQ(0, reply(first + got,
			    VFIO_USER_REGION_READ, data, sizeof(data)));
			ATF_REQUIRE_EQ(0, memcmp(data + sizeof(rw), ad.pci.cfg,
			    256));
			got++;
		}
		events_step();
		(void)stub_calls();
	}
	ATF_CHECK(no_reply());
	ATF_CHECK(!ad.server.blocked);
	ATF_CHECK_EQ(2, events_on());
	ATF_CHECK_EQ(0, ad.server.in_len);
	ATF_CHECK_EQ(0, ad.server.out_len);
	client_gone("detach;");
}

TEST(deaf, "A client that shuts down its end is dropped")
{
	static uint8_t buf[LOT * 32];
	const struct vfio_user_region_rw rw = read_of(
	    VFIO_PCI_CONFIG_REGION_INDEX, 0, 256);
	const size_t one = HDR + sizeof(rw) + 256;
	unsigned int fit, i;
	size_t len;

	server_start();
	client_come(true);
	ATF_REQUIRE_EQ(0, shutdown(client, SHUT_RD));
	put_message(UNKNOWN, 0, NULL, 0);
	events_run();
	client_gone("detach;");
	/* What cannot be answered any more is not executed either. */
	client_come(true);
	ATF_REQUIRE_EQ(0, shutdown(client, SHUT_RD));
	for (len = i = 0; i < LOT; i++)
		len += message(buf + len, VFIO_USER_REGION_READ, 0, &rw,
		    sizeof(rw));
	put(buf, len);
	(void)stub_count(ADAPTER_C_MESSAGE);
	events_run();
	fit = (VFU_BUFFER - VFU_REPLY_MAX) / one + 1;
	ATF_CHECK_EQ(fit, stub_count(ADAPTER_C_MESSAGE));
	client_gone("detach;");
	/* Also if it has sent much more. */
	client_come(true);
	put_message(UNKNOWN, 0, NULL, 0);
	put("abc", 3);
	close(client);
	client = -1;
	events_run();
	ATF_CHECK_STREQ("detach;", stub_calls());
	ATF_CHECK_EQ(0, stub_count(ADAPTER_C_BROKEN));
	client_come(true);
}

TEST(errors, "A signal, or a socket without space, does not drop a client")
{
	static const int harmless[] = { EINTR, EAGAIN };
	static const int fatal[] = { ECONNRESET, EPIPE, EIO };
	unsigned int i;

	server_start();
	client_come(true);
	for (i = 0; i < nitems(harmless); i++) {
		recv_error = harmless[i];
		put_message(UNKNOWN, 0, NULL, 0);
		events_run();
		ATF_CHECK_EQ(ENOTSUP, reply(next_id - 1, UNKNOWN, NULL, 0));
		send_error = harmless[i];
		put_message(UNKNOWN, 0, NULL, 0);
		ATF_CHECK_EQ(1, events_step());
		ATF_CHECK(no_reply());
		ATF_CHECK(ad.server.blocked);
		events_run();
		ATF_CHECK_EQ(ENOTSUP, reply(next_id - 1, UNKNOWN, NULL, 0));
		ATF_CHECK(!ad.server.blocked);
	}
	/* All but the last byte of a reply. */
	send_leaves = 1;
	put_message(UNKNOWN, 0, NULL, 0);
	ATF_CHECK_EQ(1, events_step());
	ATF_CHECK(ad.server.blocked);
	ATF_CHECK_EQ(HDR - 1, waiting());
	send_leaves = 0;
	events_run();
	ATF_CHECK_EQ(ENOTSUP, reply(next_id - 1, UNKNOWN, NULL, 0));
	ATF_CHECK(!ad.server.blocked);
	(void)stub_calls();
	for (i = 0; i < nitems(fatal); i++) {
		recv_error = fatal[i];
		put_message(UNKNOWN, 0, NULL, 0);
		ATF_CHECK_EQ(1, events_step());
		ATF_CHECK_EQ(-1, ad.server.fd);
		client_gone("detach;");
		client_come(true);
		send_error = fatal[i];
		put_message(UNKNOWN, 0, NULL, 0);
		ATF_CHECK_EQ(1, events_step());
		ATF_CHECK_EQ(-1, ad.server.fd);
		client_gone("detach;");
		client_come(true);
	}
}

/* A request to map a page of a file, or a range without access. */
static size_t
dma_map(uint8_t *buf, uint64_t gpa)
{
	const struct vfio_user_dma_map map = { sizeof(map),
	    VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE, 0, gpa, PAGE };

	return (message(buf, VFIO_USER_DMA_MAP, 0, &map, sizeof(map)));
}

/* The page has this file's letter; 0: it has no access. */
static void
check_page(uint64_t gpa, int letter)
{
	const char *p = vfu_dma_addr(&ad.dma, gpa, PAGE);

	ATF_CHECK_EQ_MSG(letter, p == NULL ? 0 : *p, "page %#jx: %d",
	    (uintmax_t)gpa, p == NULL ? 0 : *p);
}

static int
file(const char *letter)
{
	int fd;

	fd = stub_memory(PAGE);
	ATF_REQUIRE_EQ(1, pwrite(fd, letter, 1, 0));
	return (fd);
}

TEST(descriptors, "A descriptor belongs to the message whose bytes it came with")
{
	uint8_t a[48], b[48], x[128] = { 0 };
	size_t cut, len;
	uint16_t first;
	int fd_a, fd_b, step, wait;

	server_start();
	fd_a = file("a");
	fd_b = file("b");
	fds_idle += 2;
	client_come(true);
	for (step = 0, wait = 0; wait < 2; wait++) {
		for (cut = 0; cut < sizeof(a); cut++, step++) {
			/* One of another size before it. */
			put_message(UNKNOWN, NO_REPLY, x, sizeof(x));
			events_run();
			first = next_id;
			ATF_REQUIRE_EQ(sizeof(a), dma_map(a, 0x10000));
			(void)dma_map(b, 0x20000);
			/* With one byte of it, before the next message. */
			if (cut > 0)
				put(a, cut);
			if (wait)
				events_run();
			put_fds(a + cut, 1, &fd_a, 1);
			if (wait)
				events_run();
			if (cut + 1 < sizeof(a))
				put(a + cut + 1, sizeof(a) - cut - 1);
			put_fds(b, sizeof(b), &fd_b, 1);
			events_run();
			ATF_REQUIRE_EQ(0, reply(first, VFIO_USER_DMA_MAP, NULL,
			    0));
			ATF_REQUIRE_EQ(0, reply(first + 1, VFIO_USER_DMA_MAP,
			    NULL, 0));
			check_page(0x10000, 'a');
			check_page(0x20000, 'b');
			ATF_CHECK_EQ(0, ad.server.nfds);
			vfu_dma_clear(&ad.dma);
		}
	}
	/* With a message that is only a header. */
	for (cut = 0; cut < HDR; cut++) {
		(void)message(a, VFIO_USER_DEVICE_RESET, 0, NULL, 0);
		first = next_id;
		(void)dma_map(b, 0x20000);
		if (cut > 0)
			put(a, cut);
		put_fds(a + cut, 1, &fd_a, 1);
		events_run();
		if (cut + 1 < HDR)
			put(a + cut + 1, HDR - cut - 1);
		put_fds(b, sizeof(b), &fd_b, 1);
		events_run();
		ATF_REQUIRE_EQ(0, reply(first - 1, VFIO_USER_DEVICE_RESET,
		    NULL, 0));
		ATF_REQUIRE_EQ(0, reply(first, VFIO_USER_DMA_MAP, NULL, 0));
		check_page(0x20000, 'b');
		vfu_dma_clear(&ad.dma);
	}
	/* Between messages without one. */
	first = next_id;
	len = dma_map(x, 0x10000);
	put(x, len);
	len = dma_map(x, 0x20000);
	put_fds(x, len, &fd_a, 1);
	len = dma_map(x, 0x30000);
	put(x, len);
	events_run();
	check_page(0x10000, 0);
	check_page(0x20000, 'a');
	check_page(0x30000, 0);
	ATF_CHECK_EQ(3, ad.dma.n);
	vfu_dma_clear(&ad.dma);
	/* With two messages at once: it is the last one's, though a part. */
	for (cut = 1; cut <= sizeof(a); cut++) {
		len = dma_map(x, 0x10000);
		len += dma_map(x + len, 0x20000);
		put_fds(x, len - sizeof(a) + cut, &fd_b, 1);
		events_run();
		check_page(0x10000, 0);
		if (cut < sizeof(a)) {
			ATF_CHECK_EQ(1, ad.dma.n);
			ATF_CHECK_EQ(1, ad.server.nfds);
			put(x + len - sizeof(a) + cut, sizeof(a) - cut);
			events_run();
		}
		check_page(0x20000, 'b');
		vfu_dma_clear(&ad.dma);
	}
	(void)stub_calls();
	(void)dma_map(a, 0x10000);
	/* An incomplete message's is closed when the client leaves. */
	put_fds(a, 20, &fd_a, 1);
	events_run();
	ATF_CHECK_EQ(1, ad.server.nfds);
	client_gone("work;detach;");
	/* So is one that it never read. */
	client_come(true);
	put_fds(a, 20, &fd_a, 1);
	put_fds(a, 20, &fd_a, 1);
	client_gone("work;work;detach;");
}

TEST(passed, "Descriptors that no command keeps are closed, each once")
{
	const struct {
		struct vfio_user_irq_set set;
	} msi = { { sizeof(msi), VFIO_IRQ_SET_DATA_EVENTFD |
	    VFIO_IRQ_SET_ACTION_TRIGGER, VFIO_PCI_MSI_IRQ_INDEX, 0, 1 } };
	uint8_t buf[64];
	int event, fds[VFU_FDS_MAX], i, memory, pair[2];
	size_t len;

	server_start();
	event = eventfd(0, EFD_NONBLOCK);
	memory = file("a");
	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	fds_idle += 4;
	client_come(true);
	/* Those of a kind whose close cannot block at once. */
	for (i = 0; i < VFU_FDS_MAX; i++)
		fds[i] = i % 2 ? event : memory;
	len = message(buf, UNKNOWN, NO_REPLY, NULL, 0);
	odd_closes = closed = 0;
	put_fds(buf, len, fds, VFU_FDS_MAX);
	events_run();
	ATF_CHECK_EQ(fds_idle + 2, stub_fds());
	ATF_CHECK_EQ(0, closed);
	ATF_CHECK_EQ(VFU_FDS_MAX, odd_closes);
	/* Others in a thread of their own. */
	for (i = 0; i < VFU_FDS_MAX; i++)
		fds[i] = pair[i % 2];
	put_fds(buf, len, fds, VFU_FDS_MAX);
	events_run();
	ATF_CHECK_EQ(fds_idle + 2, stub_fds());
	ATF_CHECK_EQ(VFU_FDS_MAX, closed);
	/* One that a command keeps. */
	len = message(buf, VFIO_USER_DEVICE_SET_IRQS, NO_REPLY, &msi,
	    sizeof(msi));
	closed = 0;
	put_fds(buf, len, &event, 1);
	events_run();
	ATF_CHECK_EQ(0, closed);
	ATF_REQUIRE(ad.irq.msi_fd != -1);
	ATF_CHECK_EQ(FD_CLOEXEC, fcntl(ad.irq.msi_fd, F_GETFD));
	ATF_CHECK_EQ(fds_idle + 3, stub_fds());
	(void)stub_calls();
	odd_closes = 0;
	client_gone("detach;");
	ATF_CHECK_EQ(1, odd_closes);
	/* Too many that wait to be closed. */
	client_come(true);
	closes = 1;
	len = message(buf, VFIO_USER_DEVICE_RESET, NO_REPLY, NULL, 0);
	put_fds(buf, len, pair, 2);
	events_run();
	closes = -1;
	ATF_CHECK(hung_up());
	client_gone("reset;log: client dropped: too many descriptors to "
	    "close;detach;");
}

TEST(too_many, "A message has 16 descriptors at most")
{
	uint8_t buf[64];
	int fd, fds[VFU_FDS_MAX + 1], i;
	size_t len;

	server_start();
	fd = eventfd(0, EFD_NONBLOCK);
	fds_idle++;
	for (i = 0; i <= VFU_FDS_MAX; i++)
		fds[i] = fd;
	client_come(true);
	len = message(buf, VFIO_USER_DEVICE_RESET, NO_REPLY, NULL, 0);
	put_fds(buf, len, fds, VFU_FDS_MAX + 1);
	check_dropped("too many descriptors");
	/* With its parts. */
	for (i = 0; i < VFU_FDS_MAX; i++) {
		ATF_CHECK_EQ(i, ad.server.nfds);
		put_fds(buf + i, 1, fds, 1);
		events_run();
	}
	ATF_CHECK_EQ(0, ad.server.nfds);
	(void)stub_calls();
	put_fds(buf, 1, fds, VFU_FDS_MAX);
	events_run();
	ATF_CHECK_STREQ("work;", stub_calls());
	put_fds(buf + 1, 1, fds, VFU_FDS_MAX);
	check_dropped("too many descriptors");
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, connect);
	ATF_TP_ADD_TC(tp, left);
	ATF_TP_ADD_TC(tp, resources);
	ATF_TP_ADD_TC(tp, version);
	ATF_TP_ADD_TC(tp, frames);
	ATF_TP_ADD_TC(tp, replies);
	ATF_TP_ADD_TC(tp, batch);
	ATF_TP_ADD_TC(tp, interrupt);
	ATF_TP_ADD_TC(tp, fragments);
	ATF_TP_ADD_TC(tp, spurious);
	ATF_TP_ADD_TC(tp, slow_reader);
	ATF_TP_ADD_TC(tp, deaf);
	ATF_TP_ADD_TC(tp, errors);
	ATF_TP_ADD_TC(tp, descriptors);
	ATF_TP_ADD_TC(tp, passed);
	ATF_TP_ADD_TC(tp, too_many);
	return (atf_no_error());
}
