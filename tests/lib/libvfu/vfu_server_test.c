/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The server and its client: connections, framing, replies, errors of the
 * socket.  vfio-user specification, "Socket", "Header" and "Socket
 * Disconnection Behavior".  Descriptors that come with messages are in
 * vfu_server_fds_test.c.
 */

#include <sys/param.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "open_fds.h"
#include "vfu_stub.h"
#include "event_stub.h"
#include "test.h"
#include "peer_accept.h"
#include "vfu_client.h"

/* A register read, as payload. */
static struct vfio_user_region_rw
read_of(uint32_t region, uint64_t offset, uint32_t count)
{
	return ((struct vfio_user_region_rw){ offset, region, count });
}

/* Run what is there, and again after a second. */
static void
look_twice(void)
{
	events_run();
	ATF_CHECK(vfu_server_again(&dev.vdev_server));
	vfu_server_listen(&dev);
	events_run();
}

TEST(connect, "One client is served at a time; the next finds nothing of it")
{
	static const struct vfio_user_version version;
	int i, second;

	server_start();
	for (i = 0; i < 3; i++) {
		dev.vdev_refusals = 1;
		client_come(i == 1);
		ATF_CHECK_EQ(0, dev.vdev_refusals);
		ATF_CHECK_EQ(3, events_used());
		ATF_CHECK_EQ(2, events_on());
		ATF_CHECK_EQ(1, stub_count(VFU_C_CONNECT));
		ATF_CHECK((fcntl(dev.vdev_server.fd,
		    F_GETFL) & O_NONBLOCK) != 0);
		ATF_CHECK((fcntl(dev.vdev_server.fd,
		    F_GETFD) & FD_CLOEXEC) != 0);
		/* Half a message. */
		if (i == 2)
			put("abc", 3);
		events_run();
		(void)stub_calls();
		client_gone("detach;");
		ATF_CHECK_EQ(1, stub_count(VFU_C_DISCONNECT));
	}
	client_come(true);
	second = client;
	client = dial();
	put_message(VFIO_USER_VERSION, 0, &version, sizeof(version));
	/* The rest is read, too, or the client would have ECONNRESET. */
	put_message(UNKNOWN, 0, NULL, 0);
	look_twice();
	ATF_CHECK_STREQ("log 5: second client refused;", stub_calls());
	ATF_CHECK_EQ(1, stub_count(VFU_C_REFUSED));
	ATF_CHECK_EQ(EBUSY, reply(next_id - 2, VFIO_USER_VERSION, NULL, 0));
	ATF_CHECK(hung_up());
	close(client);
	client = second;
	put_message(UNKNOWN, 0, NULL, 0);
	events_run();
	ATF_CHECK_EQ(ENOTSUP, reply(next_id - 1, UNKNOWN, NULL, 0));
	client_gone("detach;");
}

TEST(put_off, "A second client waits for a second, once, and is served if the "
    "first one leaves meanwhile")
{
	int i, second;

	server_start();
	for (i = 0; i < 3; i++) {
		client_come(true);
		second = client;
		client = dial();
		events_run();
		ATF_CHECK_STREQ("", stub_calls());
		ATF_CHECK(!hung_up());
		if (i == 1) {
			/* Another that has left, too: nobody is refused. */
			close(client);
			client = dial();
		}
		close(second);
		events_run();
		ATF_CHECK_STREQ(i == 1 ? "detach;attach;detach;attach;" :
		    "detach;attach;", stub_calls());
		ATF_CHECK(!vfu_server_again(&dev.vdev_server));
		client_gone("detach;");
	}
	client_come(true);
	second = client;
	client = dial();
	look_twice();
	ATF_CHECK(hung_up());
	close(client);
	/* The next one at once. */
	client = dial();
	events_run();
	ATF_CHECK(hung_up());
	close(client);
	ATF_CHECK_STREQ("log 5: second client refused;log 5: second client "
	    "refused;", stub_calls());
	client = second;
	client_gone("detach;");
	ATF_CHECK_EQ(0, stub_count(VFU_C_ACCEPT));
}

TEST(left, "A client may connect before the last one is seen to have left")
{
	server_start();
	client_come(true);
	close(client);
	client = dial();
	/*
	 * The listening socket's event is handled first.  Then the table has
	 * the new client's in the place of the old one's.
	 */
	ATF_CHECK(events_step() >= 1);
	ATF_CHECK_STREQ("detach;attach;", stub_calls());
	ATF_CHECK_EQ(0, stub_count(VFU_C_REFUSED));
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
		client_gone("log 4: client refused: out of resources;");
		ATF_CHECK_EQ(0, stub_count(VFU_C_CONNECT));
	}
	/* A connection that is gone before it is accepted. */
	dev.vdev_server.listen_ev->func(dev.vdev_server.listen_ev->fd, &dev);
	client_come(true);
	client_gone("detach;");
	events_fail = 1;
	ATF_CHECK_EQ(ENOSPC, vfu_server_init(&dev, stub_listen_fd));
}

TEST(no_accept, "If accept(2) fails for lack of descriptors or memory, each "
    "retry of the server calls accept(2) once")
{
	static const int waits[] = { EMFILE, ENFILE, ENOBUFS, ENOMEM };
	static const int goes_on[] = { EAGAIN, EINTR, ECONNABORTED };
	unsigned int i, j;

	server_start();
	client = dial();
	for (i = 0; i < nitems(waits); i++) {
		accept_error = waits[i];
		for (j = 0; j < 3; j++) {
			accepts = 0;
			events_run();
			events_run();
			ATF_CHECK_EQ(1, accepts);
			ATF_CHECK_EQ(0, events_on());
			ATF_CHECK_EQ(1, stub_count(VFU_C_ACCEPT));
			/* Not before it is told to. */
			vfu_server_listen(&dev);
			ATF_CHECK_EQ(0, events_on());
			ATF_CHECK(vfu_server_again(&dev.vdev_server));
			ATF_CHECK(!vfu_server_again(&dev.vdev_server));
			ATF_CHECK_EQ(0, events_on());
			vfu_server_listen(&dev);
			ATF_CHECK_EQ(1, events_on());
			ATF_CHECK(!vfu_server_again(&dev.vdev_server));
			vfu_server_listen(&dev);
			ATF_CHECK_EQ(0, events_repeated);
		}
	}
	for (i = 0; i < nitems(goes_on); i++) {
		accept_error = goes_on[i];
		ATF_CHECK_EQ(1, events_step());
		ATF_CHECK_EQ(1, events_on());
	}
	ATF_CHECK_EQ(0, stub_count(VFU_C_ACCEPT));
	ATF_CHECK_EQ(0, stub_count(VFU_C_REFUSED));
	ATF_CHECK_STREQ("", stub_calls());
	accept_error = 0;
	events_run();
	ATF_CHECK_STREQ("attach;", stub_calls());
	client_gone("detach;");
}

/* So many descriptors that poll(2) takes all events even if these are all. */
static void
fill(void)
{
	while (dup(STDIN_FILENO) < EVENTS)
		continue;
}

/* Open no more descriptors than there are; or as many as before. */
static void
limit(bool none)
{
	static struct rlimit before;
	struct rlimit rl;
	int fd;

	if (!none) {
		ATF_REQUIRE_EQ(0, setrlimit(RLIMIT_NOFILE, &before));
		return;
	}
	ATF_REQUIRE_EQ(0, getrlimit(RLIMIT_NOFILE, &before));
	fd = dup(client);
	ATF_REQUIRE_EQ(0, close(fd));
	rl = before;
	rl.rlim_cur = fd;
	ATF_REQUIRE_EQ(0, setrlimit(RLIMIT_NOFILE, &rl));
}

TEST(reserve, "A client that comes when no descriptors are left sees the end; "
    "the descriptor kept for that is kept for the next")
{
	unsigned int i, n;
	int fds, served;

	fill();
	ATF_REQUIRE_EQ(0, peer_accept_start());
	server_start();
	for (i = 0; i < 20; i++) {
		client = dial();
		limit(true);
		n = open_fds();
		accepts = 0;
		events_run();
		ATF_CHECK(hung_up());
		ATF_CHECK_EQ(2, accepts);
		ATF_CHECK_EQ(n, open_fds());
		ATF_CHECK_EQ(1, stub_count(VFU_C_REFUSED));
		ATF_CHECK_EQ(0, stub_count(VFU_C_ACCEPT));
		limit(false);
		client_gone("log 5: client refused: no descriptor is left;");
	}
	/* The one that is served does not notice. */
	client_come(true);
	served = client;
	client = dial();
	limit(true);
	look_twice();
	limit(false);
	ATF_CHECK(hung_up());
	ATF_CHECK_STREQ("log 5: client refused: no descriptor is left;",
	    stub_calls());
	close(client);
	client = served;
	put_message(UNKNOWN, 0, NULL, 0);
	events_run();
	ATF_CHECK_EQ(ENOTSUP, reply(next_id - 1, UNKNOWN, NULL, 0));
	client_gone("detach;");
	/* A connection may keep it.  Then there are fewer, until there are
	   descriptors again, and no more than before when it ends. */
	for (i = 0; i < 3; i++) {
		bool reserved;

		client = dial();
		limit(true);
		fds = peer_accept(dev.vdev_server.listen_ev->fd, SOCK_CLOEXEC,
		    &reserved);
		ATF_REQUIRE(fds != -1 && reserved);
		limit(false);
		if (i == 2)
			peer_accept_watch();
		peer_accept_end(fds);
		ATF_CHECK(hung_up());
		client_gone("");
	}
}

TEST(no_reserve, "When others have taken the reserve, the server waits; it is "
    "filled again when it can be")
{
	unsigned int i;
	bool reserved;
	int l;

	fill();
	ATF_REQUIRE_EQ(0, peer_accept_start());
	server_start();
	l = dev.vdev_server.listen_ev->fd;
	/* As many as there are. */
	for (i = 0; i < 8; i++) {
		(void)dial();
		client = dial();
		limit(true);
		ATF_REQUIRE(peer_accept(l, SOCK_CLOEXEC, &reserved) != -1);
		ATF_CHECK(reserved);
		limit(false);
		ATF_REQUIRE(peer_accept(l, SOCK_CLOEXEC, &reserved) != -1);
		ATF_CHECK(!reserved);
	}
	client = dial();
	limit(true);
	peer_accept_watch();
	peer_accept_pause(EMFILE);
	events_run();
	ATF_CHECK_EQ(1, stub_count(VFU_C_ACCEPT));
	ATF_CHECK_EQ(0, events_on());
	limit(false);
	peer_accept_watch();
	limit(true);
	ATF_CHECK(peer_accept(l, SOCK_CLOEXEC, &reserved) != -1);
	ATF_CHECK(reserved);
	limit(false);
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
	ATF_CHECK_EQ(1, stub_count(VFU_C_ERROR));
	client_gone("detach;");
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
	(void)stub_count(VFU_C_MESSAGE);
	for (i = 0; i < nitems(bad); i++) {
		h.size = bad[i];
		put(&h, HDR);
		check_dropped("message of invalid size");
		/* Nothing but VERSION was executed. */
		ATF_CHECK_EQ(1, stub_count(VFU_C_MESSAGE));
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
	ATF_CHECK_STREQ("reset;", stub_calls());
	i = message(buf, VFIO_USER_DEVICE_RESET, 0, NULL, 0);
	h.flags = 1;
	memcpy(buf + i, &h, HDR);
	i += HDR;
	i += message(buf + i, VFIO_USER_DEVICE_RESET, 0, NULL, 0);
	put(buf, i);
	events_run();
	ATF_CHECK_EQ(0, reply(next_id - 3, VFIO_USER_DEVICE_RESET, NULL, 0));
	ATF_CHECK_EQ(0, reply(next_id - 2, VFIO_USER_DEVICE_RESET, NULL, 0));
	client_gone("reset;log 4: client dropped: not a command;detach;");
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
	(void)stub_count(VFU_C_MESSAGE);
	(void)stub_count(VFU_C_SEND);
	(void)stub_count(VFU_C_RECV);
	stub_value = 0x12345678;
	next_id = 0xfffe;
	put_message(VFIO_USER_REGION_READ, 0, &rw, sizeof(rw));
	events_run();
	ATF_CHECK_EQ(0, reply(0xfffe, VFIO_USER_REGION_READ, &got,
	    sizeof(got)));
	ATF_CHECK_EQ(0x12345678, got.value);
	ATF_CHECK(no_reply());
	ATF_CHECK_STREQ("read 0+0x10,4;", stub_calls());
	rw.count = 3;
	put_message(VFIO_USER_REGION_READ, 0, &rw, sizeof(rw));
	events_run();
	ATF_CHECK_EQ(EINVAL, reply(0xffff, VFIO_USER_REGION_READ, NULL, 0));
	ATF_CHECK_EQ(1, stub_count(VFU_C_ERROR));
	/* None if the client wants none. */
	put_message(VFIO_USER_REGION_READ, NO_REPLY, &rw, sizeof(rw));
	put_message(VFIO_USER_DEVICE_RESET, NO_REPLY, NULL, 0);
	events_run();
	ATF_CHECK(no_reply());
	ATF_CHECK_STREQ("reset;", stub_calls());
	ATF_CHECK_EQ(1, stub_count(VFU_C_ERROR));
	ATF_CHECK_EQ(2, stub_count(VFU_C_POSTED));
	ATF_CHECK_EQ(4, stub_count(VFU_C_MESSAGE));
	ATF_CHECK_EQ(2, stub_count(VFU_C_SEND));
	/* One for both of the last two, which had arrived. */
	ATF_CHECK_EQ(3, stub_count(VFU_C_RECV));
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
	(void)stub_count(VFU_C_SEND);
	(void)stub_count(VFU_C_RECV);
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
	ATF_CHECK_EQ(1, stub_count(VFU_C_RECV));
	ATF_CHECK_EQ(1, stub_count(VFU_C_SEND));
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
	dev.vdev_irq.msi_fd = dup(fd);
	stub_level = 1;
	put_message(VFIO_USER_REGION_WRITE, 0, &w, 20);
	events_run();
	stub_level = -1;
	ATF_CHECK_EQ(sizeof(n), read(fd, &n, sizeof(n)));
	ATF_CHECK_EQ(1, n);
	/* Without a command there is none: the adapter's work sends it. */
	vfu_irq_level(&dev.vdev_irq, true);
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
		ATF_CHECK_STREQ("", stub_calls());
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
	dev.vdev_server.read_ev->func(dev.vdev_server.fd, &dev);
	ATF_CHECK_STREQ("", stub_calls());
	ATF_CHECK(dev.vdev_server.fd != -1);
	dev.vdev_server.write_ev->func(dev.vdev_server.fd, &dev);
	ATF_CHECK_STREQ("", stub_calls());
	client_gone("detach;");
}

TEST(end, "A server that ends drops its client, once")
{
	server_start();
	client_come(false);
	vfu_server_fini(&dev);
	ATF_CHECK(hung_up());
	ATF_CHECK_STREQ("detach;", stub_calls());
	ATF_CHECK_EQ(0, events_used());
	vfu_server_fini(&dev);
	ATF_REQUIRE_EQ(0, unlink("s"));
	server_start();
	vfu_server_fini(&dev);
	ATF_CHECK_STREQ("", stub_calls());
	ATF_CHECK_EQ(0, events_used());
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
	} while (!dev.vdev_server.blocked);
	/* It waits for space; so does what the client sends now. */
	ATF_CHECK_EQ(2, events_on());
	ATF_CHECK(dev.vdev_server.out_len > 0);
	ATF_CHECK(dev.vdev_server.out_len <= sizeof(dev.vdev_server.out));
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
			ATF_REQUIRE_EQ(0, memcmp(data + sizeof(rw),
			    dev.vdev_pci.cfg, 256));
			got++;
		}
		events_step();
		(void)stub_calls();
	}
	ATF_CHECK(no_reply());
	ATF_CHECK(!dev.vdev_server.blocked);
	ATF_CHECK_EQ(2, events_on());
	ATF_CHECK_EQ(0, dev.vdev_server.in_len);
	ATF_CHECK_EQ(0, dev.vdev_server.out_len);
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
	(void)stub_count(VFU_C_MESSAGE);
	events_run();
	fit = (VFU_BUFFER - VFU_REPLY_MAX) / one + 1;
	ATF_CHECK_EQ(fit, stub_count(VFU_C_MESSAGE));
	client_gone("detach;");
	/* Also if it has sent much more. */
	client_come(true);
	put_message(UNKNOWN, 0, NULL, 0);
	put("abc", 3);
	close(client);
	client = -1;
	events_run();
	ATF_CHECK_STREQ("detach;", stub_calls());
	ATF_CHECK_EQ(0, stub_count(VFU_C_BROKEN));
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
		ATF_CHECK(dev.vdev_server.blocked);
		events_run();
		ATF_CHECK_EQ(ENOTSUP, reply(next_id - 1, UNKNOWN, NULL, 0));
		ATF_CHECK(!dev.vdev_server.blocked);
	}
	/* All but the last byte of a reply. */
	send_leaves = 1;
	put_message(UNKNOWN, 0, NULL, 0);
	ATF_CHECK_EQ(1, events_step());
	ATF_CHECK(dev.vdev_server.blocked);
	ATF_CHECK_EQ(HDR - 1, waiting());
	send_leaves = 0;
	events_run();
	ATF_CHECK_EQ(ENOTSUP, reply(next_id - 1, UNKNOWN, NULL, 0));
	ATF_CHECK(!dev.vdev_server.blocked);
	(void)stub_calls();
	for (i = 0; i < nitems(fatal); i++) {
		recv_error = fatal[i];
		put_message(UNKNOWN, 0, NULL, 0);
		ATF_CHECK_EQ(1, events_step());
		ATF_CHECK_EQ(-1, dev.vdev_server.fd);
		client_gone("detach;");
		client_come(true);
		send_error = fatal[i];
		put_message(UNKNOWN, 0, NULL, 0);
		ATF_CHECK_EQ(1, events_step());
		ATF_CHECK_EQ(-1, dev.vdev_server.fd);
		client_gone("detach;");
		client_come(true);
	}
}

TEST_PROGRAM
