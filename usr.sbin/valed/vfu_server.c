/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The connection of the client: accept, framing, replies and disconnect.  See
 * vfu_server.h; spec "Socket", "Header" and "Socket Disconnection Behavior".
 *
 * A client that violates the framing is dropped, because the rest of its data
 * has no known structure.  A client that sends an invalid command in a valid
 * frame gets an error reply.
 */

#include <sys/param.h>
#include <sys/socket.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "adapter.h"
#include "mevent.h"
#include "peer_fds.h"
#include "valed.h"
#include "peer_accept.h"
#include "peer_close.h"

static void	server_readable(int fd, enum ev_type type, void *arg);
static void	server_writable(int fd, enum ev_type type, void *arg);

/*
 * Report that the client violated the protocol, for the first time; the caller
 * must drop it.
 */
static void
server_broken(struct adapter *ad, const char *how)
{
	if (ad->server.broken)
		return;
	adapter_log(ad, LOG_WARNING, "client dropped: %s", how);
	adapter_count(ad, ADAPTER_C_BROKEN);
	ad->server.broken = true;
}

/* Close a descriptor; adapter_watch() interrupts it if that takes long. */
static void
server_close(struct vfu_server *srv, int fd)
{
	atomic_store_32(&srv->calls, srv->calls + 1);
	close(fd);
	atomic_store_32(&srv->calls, srv->calls + 1);
}

/* Close a descriptor that the client passed and that no command has kept. */
static void
server_close_passed(struct adapter *ad, int fd)
{
	if (peer_fd_kind(fd) == PEER_FD_OTHER) {
		if (peer_close(fd))
			return;
		server_broken(ad, "too many descriptors to close");
	}
	server_close(&ad->server, fd);
}

static void
server_close_fds(struct adapter *ad)
{
	struct vfu_server *srv = &ad->server;
	int i;

	for (i = 0; i < srv->nfds; i++) {
		if (srv->fds[i] != -1)
			server_close_passed(ad, srv->fds[i]);
	}
	srv->nfds = 0;
}

void
vfu_server_drop(struct adapter *ad)
{
	struct vfu_server *srv = &ad->server;

	mevent_delete(srv->read_ev);
	mevent_delete(srv->write_ev);
	/* Messages that were not read may have descriptors, too. */
	server_close(srv, srv->fd);
	srv->fd = -1;
	server_close_fds(ad);
	adapter_count(ad, ADAPTER_C_DISCONNECT);
	adapter_detach(ad);
}

/*
 * Whether there is a client that has closed its end, before a read event says
 * so.  poll(2) ignores a descriptor of -1.
 */
static bool
server_left(const struct vfu_server *srv)
{
	struct pollfd pfd = { .fd = srv->fd };

	return (poll(&pfd, 1, 0) == 1);
}

/* Close a connection that is not served. */
static void
server_refuse(struct adapter *ad, int fd, bool reserved)
{
	if (reserved)
		peer_accept_end(fd);
	else if (!peer_close(fd))
		server_close(&ad->server, fd);
}

/* No client can be accepted: do not look for any until vfu_server_again(). */
static void
server_wait(struct adapter *ad)
{
	mevent_disable(ad->server.listen_ev);
	adapter_count(ad, ADAPTER_C_ACCEPT);
	atomic_store_32(&ad->server.listening, VFU_WAITS);
}

bool
vfu_server_again(struct vfu_server *srv)
{
	/* While it is so, the adapter's thread does not change it. */
	if (atomic_load_32(&srv->listening) != VFU_WAITS)
		return (false);
	atomic_store_32(&srv->listening, VFU_AGAIN);
	return (true);
}

void
vfu_server_listen(struct adapter *ad)
{
	struct vfu_server *srv = &ad->server;

	adapter_assert_thread(ad);
	if (atomic_load_32(&srv->listening) != VFU_AGAIN)
		return;
	atomic_store_32(&srv->listening, mevent_enable(srv->listen_ev) == 0 ?
	    VFU_LISTENS : VFU_WAITS);
}

static void
server_accept(int fd, enum ev_type type __unused, void *arg)
{
	struct adapter *ad = arg;
	struct vfu_server *srv = &ad->server;
	bool reserved;
	int s;

	s = peer_accept(fd, SOCK_NONBLOCK | SOCK_CLOEXEC, &reserved);
	if (s == -1) {
		if (peer_accept_fails(errno))
			server_wait(ad);
		return;
	}
	if (server_left(srv))
		vfu_server_drop(ad);
	if (reserved || srv->fd != -1) {
		adapter_count(ad, ADAPTER_C_REFUSED);
		adapter_log(ad, LOG_NOTICE, reserved ?
		    "client refused: no descriptor is left" :
		    "second client refused");
		server_refuse(ad, s, reserved);
		return;
	}
	srv->read_ev = mevent_add(s, EVF_READ, server_readable, ad);
	if (srv->read_ev == NULL)
		goto fail;
	srv->write_ev = mevent_add_disabled(s, EVF_WRITE, server_writable, ad);
	if (srv->write_ev == NULL)
		goto fail_read;
	srv->fd = s;
	srv->blocked = srv->negotiated = srv->broken = false;
	srv->in_len = srv->out_len = 0;
	adapter_count(ad, ADAPTER_C_CONNECT);
	adapter_attach(ad);
	return;

fail_read:
	mevent_delete(srv->read_ev);
fail:
	adapter_log(ad, LOG_WARNING, "client refused: out of resources");
	server_refuse(ad, s, false);
}

int
vfu_server_init(struct adapter *ad)
{
	ad->server.fd = -1;
	ad->server.listening = VFU_LISTENS;
	ad->server.listen_ev = mevent_add(ad->config->ac_listen, EVF_READ,
	    server_accept, ad);
	return (ad->server.listen_ev == NULL ? errno : 0);
}

void
vfu_server_fini(struct adapter *ad)
{
	struct vfu_server *srv = &ad->server;

	if (srv->listen_ev == NULL)
		return;
	mevent_delete(srv->listen_ev);
	srv->listen_ev = NULL;
	if (srv->fd != -1)
		vfu_server_drop(ad);
}

/*
 * Send the pending replies.  If the socket does not take all of them, stop
 * reading until it has.
 */
static void
server_flush(struct adapter *ad)
{
	struct vfu_server *srv = &ad->server;
	ssize_t n;

	if (srv->out_len == 0)
		return;
	n = send(srv->fd, srv->out, srv->out_len, MSG_NOSIGNAL);
	adapter_count(ad, ADAPTER_C_SEND);
	if (n == -1) {
		if (errno != EAGAIN && errno != EINTR)
			srv->broken = true;
		n = 0;
	}
	srv->out_len -= n;
	memmove(srv->out, srv->out + n, srv->out_len);
	if ((srv->out_len > 0) == srv->blocked)
		return;
	srv->blocked = !srv->blocked;
	if (srv->blocked) {
		mevent_disable(srv->read_ev);
		mevent_enable(srv->write_ev);
	} else {
		mevent_disable(srv->write_ev);
		mevent_enable(srv->read_ev);
	}
}

/* Execute a complete message, and queue its reply. */
static void
server_message(struct adapter *ad, const struct vfio_user_header *h,
    const uint8_t *data, int *fds, int nfds)
{
	struct vfu_server *srv = &ad->server;
	struct vfio_user_header reply;
	struct vfu_request req;
	int error;

	adapter_count(ad, ADAPTER_C_MESSAGE);
	req.header = h;
	req.data = data;
	req.len = h->size - sizeof(*h);
	req.fds = fds;
	req.nfds = nfds;
	req.reply = srv->out + srv->out_len + sizeof(reply);
	req.reply_len = 0;

	if (srv->negotiated) {
		error = vfu_command(ad, &req);
		/* A client that has the reply must have the interrupt. */
		vfu_irq_flush(&ad->irq);
	} else if (h->command != VFIO_USER_VERSION) {
		server_broken(ad, "command before VERSION");
		return;
	} else {
		error = vfu_version(ad, &req);
		if (error == 0)
			srv->negotiated = true;
		else
			server_broken(ad, "no common version");
	}
	if (error != 0)
		adapter_count(ad, ADAPTER_C_ERROR);
	if ((h->flags & VFIO_USER_F_NO_REPLY) != 0) {
		adapter_count(ad, ADAPTER_C_POSTED);
		return;
	}
	reply.id = h->id;
	reply.command = h->command;
	MPASS(error == 0 || req.reply_len == 0);
	reply.size = sizeof(reply) + req.reply_len;
	reply.flags = VFIO_USER_F_REPLY | (error != 0 ? VFIO_USER_F_ERROR : 0);
	reply.error = error;
	memcpy(srv->out + srv->out_len, &reply, sizeof(reply));
	srv->out_len += reply.size;
}

/*
 * The size of the message at `p', of which `len' bytes have arrived; 0 if it is
 * not known yet or invalid.
 */
static size_t
server_frame(struct adapter *ad, const uint8_t *p, size_t len,
    struct vfio_user_header *h)
{
	if (len < sizeof(*h))
		return (0);
	memcpy(h, p, sizeof(*h));
	if (h->size < sizeof(*h) || h->size > VFU_MSG_MAX) {
		server_broken(ad, "message of invalid size");
		return (0);
	}
	if ((h->flags & VFIO_USER_F_TYPE) != VFIO_USER_F_COMMAND) {
		server_broken(ad, "not a command");
		return (0);
	}
	return (h->size);
}

/* Execute all complete messages, as long as there is space for replies. */
static void
server_parse(struct adapter *ad)
{
	struct vfu_server *srv = &ad->server;
	struct vfio_user_header h;
	size_t pos, size;
	bool owner;

	pos = 0;
	while (!srv->broken) {
		size = server_frame(ad, srv->in + pos, srv->in_len - pos, &h);
		if (size == 0 || size > srv->in_len - pos)
			break;
		if (sizeof(srv->out) - srv->out_len < VFU_REPLY_MAX) {
			server_flush(ad);
			if (srv->blocked)
				break;
		}
		owner = srv->nfds > 0 && srv->fd_pos <= pos + size;
		server_message(ad, &h, srv->in + pos + sizeof(h), srv->fds,
		    owner ? srv->nfds : 0);
		if (owner)
			server_close_fds(ad);
		pos += size;
	}
	srv->in_len -= pos;
	memmove(srv->in, srv->in + pos, srv->in_len);
	if (srv->nfds > 0)
		srv->fd_pos -= pos;
}

/* After messages: send the replies. */
static void
server_finish(struct adapter *ad)
{
	server_flush(ad);
	if (ad->server.broken)
		vfu_server_drop(ad);
}

static void
server_drop_fd(void *arg, int fd)
{
	server_close_passed(arg, fd);
}

/* Take the descriptors that arrived with a recvmsg(2). */
static void
server_take_fds(struct adapter *ad, struct msghdr *msg)
{
	struct vfu_server *srv = &ad->server;
	struct peer_fds mf = { .mf_fd = srv->fds, .mf_n = srv->nfds,
	    .mf_max = VFU_FDS_MAX, .mf_drop = server_drop_fd, .mf_arg = ad };

	if (!peer_fds_take(msg, &mf))
		server_broken(ad, "too many descriptors");
	if (mf.mf_n > (unsigned int)srv->nfds)
		srv->fd_pos = srv->in_len;
	srv->nfds = mf.mf_n;
}

/*
 * Bytes to read.  The kernel ends a read after the bytes that descriptors came
 * with, so the descriptors belong to the last message read.  While that message
 * is incomplete, read no further than its end: its descriptors must not be
 * mixed up with those of the next message.
 */
static size_t
server_room(const struct vfu_server *srv)
{
	struct vfio_user_header h;

	if (srv->nfds == 0)
		return (sizeof(srv->in) - srv->in_len);
	if (srv->in_len < sizeof(h))
		return (sizeof(h) - srv->in_len);
	memcpy(&h, srv->in, sizeof(h));
	return (h.size - srv->in_len);
}

static void
server_readable(int fd, enum ev_type type __unused, void *arg)
{
	struct adapter *ad = arg;
	struct vfu_server *srv = &ad->server;
	union {
		struct cmsghdr	align;
		char		buf[PEER_FDS_SPACE(VFU_FDS_MAX)];
	} control;
	struct msghdr msg;
	struct iovec iov;
	ssize_t n;

	iov.iov_base = srv->in + srv->in_len;
	iov.iov_len = server_room(srv);
	memset(&msg, 0, sizeof(msg));
	msg.msg_iov = &iov;
	msg.msg_iovlen = 1;
	msg.msg_control = control.buf;
	msg.msg_controllen = sizeof(control.buf);
	n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	adapter_count(ad, ADAPTER_C_RECV);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		vfu_server_drop(ad);
		return;
	}
	srv->in_len += n;
	server_take_fds(ad, &msg);
	server_parse(ad);
	server_finish(ad);
}

/* The socket takes data again: continue, and send the rest. */
static void
server_writable(int fd __unused, enum ev_type type __unused, void *arg)
{
	struct adapter *ad = arg;

	server_parse(ad);
	server_finish(ad);
}
