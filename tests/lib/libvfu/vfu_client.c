/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <sys/param.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "open_fds.h"
#include "vfu_stub.h"
#include "event_stub.h"
#include "send_fds.h"
#include "vfu_client.h"
#include "vfu_message.h"
#include "wrap.h"

int		client;
unsigned int	fds_idle;
uint16_t	next_id;
int		send_error, recv_error;
size_t		send_leaves;
int		accept_error;
unsigned int	accepts;

WRAP(ssize_t, send, int s, const void *buf, size_t len, int flags)
{
	ATF_REQUIRE_EQ(MSG_NOSIGNAL, flags);
	if (send_error != 0) {
		errno = send_error;
		send_error = 0;
		return (-1);
	}
	return (__real_send(s, buf, len - MIN(len, send_leaves), flags));
}

WRAP(ssize_t, recvmsg, int s, struct msghdr *msg, int flags)
{
	ATF_REQUIRE_EQ(1, msg->msg_iovlen);
	/* It has space for what it asks for. */
	ATF_REQUIRE((uint8_t *)msg->msg_iov->iov_base +
	    msg->msg_iov->iov_len <=
	    dev.vdev_server.in + sizeof(dev.vdev_server.in));
	if (recv_error != 0) {
		errno = recv_error;
		recv_error = 0;
		return (-1);
	}
	return (__real_recvmsg(s, msg, flags));
}

WRAP(int, accept4, int s, struct sockaddr *sa, socklen_t *len, int flags)
{
	accepts++;
	if (accept_error != 0) {
		errno = accept_error;
		return (-1);
	}
	return (__real_accept4(s, sa, len, flags));
}

void
server_start(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX, .sun_path = "s" };
	int listen_fd;

	listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	ATF_REQUIRE_EQ(0, bind(listen_fd, (void *)&sun, sizeof(sun)));
	ATF_REQUIRE_EQ(0, listen(listen_fd, 8));
	stub_start(listen_fd);
	dev.vdev_server.fd = 0;
	dev.vdev_server.listening = VFU_WAITS;
	dev.vdev_thread = 0;
	errno = EIO;
	ATF_REQUIRE_EQ(0, vfu_server_init(&dev, listen_fd));
	ATF_CHECK_EQ(-1, dev.vdev_server.fd);
	ATF_CHECK_EQ(VFU_LISTENS, dev.vdev_server.listening);
	ATF_CHECK(pthread_equal(pthread_self(), dev.vdev_thread));
	dev.vdev_server.calls = UINT32_MAX - 1;	/* it wraps at the first call */
	fds_idle = open_fds();
	client = -1;
}

int
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

void
put_fds(const void *data, size_t len, const int *fds, int nfds)
{
	SEND_FDS(client, data, len, fds, nfds);
}

void
put(const void *data, size_t len)
{
	put_fds(data, len, NULL, 0);
}

size_t
message(uint8_t *buf, unsigned int command, uint32_t flags, const void *data,
    size_t len)
{
	return (vfu_message(buf, next_id++, command, flags, data, len));
}

void
put_message(unsigned int command, uint32_t flags, const void *data, size_t len)
{
	uint8_t buf[VFU_MSG_MAX + 64];

	put(buf, message(buf, command, flags, data, len));
}

int
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

bool
no_reply(void)
{
	char c;

	return (recv(client, &c, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
}

bool
hung_up(void)
{
	char c;
	ssize_t n;

	while ((n = recv(client, &c, 1, MSG_DONTWAIT)) == 1)
		continue;
	/* Not ECONNRESET: peer_hang_up(). */
	return (n == 0);
}

void
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
	ATF_CHECK_STREQ("", stub_calls());
}

void
client_gone(const char *calls)
{
	const char *got;

	close(client);
	client = -1;
	events_run();
	got = stub_calls();
	ATF_CHECK_MSG(strcmp(calls, got) == 0, "%s, not %s", got, calls);
	ATF_CHECK_EQ(-1, dev.vdev_server.fd);
	ATF_CHECK_EQ(1, events_used());
	ATF_CHECK_EQ(1, events_on());
	ATF_CHECK_EQ(0, events_repeated);
	ATF_CHECK_EQ_MSG(fds_idle, open_fds(), "%u descriptors, not %u",
	    open_fds(), fds_idle);
	ATF_CHECK_EQ(0, dev.vdev_server.calls % 2);
}

void
check_dropped(const char *why)
{
	char calls[256];

	events_run();
	ATF_CHECK(hung_up());
	snprintf(calls, sizeof(calls), "log 4: client dropped: %s;detach;",
	    why);
	client_gone(calls);
	ATF_CHECK_EQ(1, stub_count(VFU_C_BROKEN));
	client_come(true);
}
