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
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "loop.h"
#include "peer_accept.h"
#include "peer_close.h"
#include "peer_fds.h"
#include "vfu_device.h"

/* Reads without a turn of the loop, of messages that have descriptors. */
#define	READS	16

static void	server_readable(int fd, void *arg);
static void	server_writable(int fd, void *arg);

/*
 * Report that the client violated the protocol, for the first time; the caller
 * must drop it.
 */
static void
server_broken(struct vfu_device *vd, const char *how)
{
	if (vd->vdev_server.broken)
		return;
	vfu_log(vd, LOG_WARNING, "client dropped: %s", how);
	vfu_count(vd, VFU_C_BROKEN);
	vd->vdev_server.broken = true;
}

/* Close a descriptor that the client passed and that no command has kept. */
static void
server_close_passed(struct vfu_device *vd, int fd)
{
	if (peer_fd_kind(fd) == PEER_FD_OTHER) {
		if (peer_close(fd))
			return;
		server_broken(vd, "too many descriptors to close");
	}
	vfu_server_close(&vd->vdev_server, fd);
}

/* Close the first `n' descriptors, but those that a command has kept. */
static void
server_close_fds(struct vfu_device *vd, int n)
{
	struct vfu_server *srv = &vd->vdev_server;
	int i;

	for (i = 0; i < n; i++) {
		if (srv->fds[i] != -1)
			server_close_passed(vd, srv->fds[i]);
	}
	srv->nfds -= n;
	memmove(srv->fds, srv->fds + n, srv->nfds * sizeof(srv->fds[0]));
	memmove(srv->fd_end, srv->fd_end + n,
	    srv->nfds * sizeof(srv->fd_end[0]));
}

/*
 * End a connection; if `error' is not 0, that is the reply to the request that
 * is there.  What was not read may have descriptors, and the watchdog interrupts
 * their close if that takes long.
 */
static void
server_hang_up(struct vfu_server *srv, int fd, int error)
{
	struct vfio_user_header h;

	atomic_store_32(&srv->calls, srv->calls + 1);
	if (error != 0 &&
	    recv(fd, &h, sizeof(h), MSG_DONTWAIT) == (ssize_t)sizeof(h)) {
		h.size = sizeof(h);
		h.flags = VFIO_USER_F_REPLY | VFIO_USER_F_ERROR;
		h.error = error;
		(void)send(fd, &h, sizeof(h), MSG_NOSIGNAL);
	}
	peer_hang_up(fd);
	atomic_store_32(&srv->calls, srv->calls + 1);
}

void
vfu_server_drop(struct vfu_device *vd)
{
	struct vfu_server *srv = &vd->vdev_server;

	loop_delete(srv->read_ev);
	loop_delete(srv->write_ev);
	/* A process that takes the socket for a new client's sees its end. */
	server_hang_up(srv, srv->fd, 0);
	vfu_stream_go(vd);
	vfu_server_close(srv, srv->fd);
	srv->fd = -1;
	server_close_fds(vd, srv->nfds);
	vd->vdev_ops->vdo_detach(vd->vdev_arg);
	vfu_count(vd, VFU_C_DISCONNECT);
	/* The next may be waiting. */
	if (srv->listen_ev != NULL && vfu_server_again(srv))
		vfu_server_listen(vd);
}

/*
 * Return whether there is a client that has closed its end, before a read event
 * says so.  poll(2) ignores a descriptor of -1.
 */
static bool
server_left(const struct vfu_server *srv)
{
	struct pollfd pfd = { .fd = srv->fd };

	return (poll(&pfd, 1, 0) == 1);
}

/* Close a connection that is not served; QEMU prints the error. */
static void
server_refuse(struct vfu_device *vd, int fd, bool reserved, int error)
{
	struct vfu_server *srv = &vd->vdev_server;

	server_hang_up(srv, fd, error);
	if (reserved)
		peer_accept_end(fd);
	else if (!peer_close(fd))
		vfu_server_close(srv, fd);
}

/* Do not look for a client until vfu_server_again(). */
static void
server_wait(struct vfu_device *vd)
{
	loop_disable(vd->vdev_server.listen_ev);
	atomic_store_32(&vd->vdev_server.listening, VFU_WAITS);
}

bool
vfu_server_again(struct vfu_server *srv)
{
	/*
	 * The device's thread may change it meanwhile, if its client leaves:
	 * then it looks once more than it needs to.
	 */
	if (atomic_load_32(&srv->listening) != VFU_WAITS)
		return (false);
	atomic_store_32(&srv->listening, VFU_AGAIN);
	return (true);
}

void
vfu_server_listen(struct vfu_device *vd)
{
	struct vfu_server *srv = &vd->vdev_server;

	vfu_assert_thread(vd);
	if (atomic_load_32(&srv->listening) != VFU_AGAIN)
		return;
	atomic_store_32(&srv->listening, loop_enable(srv->listen_ev) == 0 ?
	    VFU_LISTENS : VFU_WAITS);
}

/*
 * Accept a connection.  It is lost if the process ends after accept4(2) and
 * before the store has it, so nothing may be done between the two calls.
 */
static void
server_accept(int fd, void *arg)
{
	struct vfu_device *vd = arg;
	struct vfu_server *srv = &vd->vdev_server;
	bool reserved;
	int s;

	if (server_left(srv))
		vfu_server_drop(vd);
	if (srv->fd != -1 && !srv->put_off) {
		srv->put_off = true;
		server_wait(vd);
		return;
	}
	s = peer_accept(fd, SOCK_NONBLOCK | SOCK_CLOEXEC, &reserved);
	if (s == -1) {
		if (peer_accept_fails(errno)) {
			vfu_count(vd, VFU_C_ACCEPT);
			server_wait(vd);
		}
		return;
	}
	if (reserved || srv->fd != -1) {
		vfu_count(vd, VFU_C_REFUSED);
		vfu_log(vd, LOG_NOTICE, reserved ?
		    "client refused: no descriptor is left" :
		    "second client refused");
		server_refuse(vd, s, reserved, reserved ? EMFILE : EBUSY);
		return;
	}
	if (vfu_server_come(vd, s) == 0)
		return;
	vfu_log(vd, LOG_WARNING, "client refused: out of resources");
	server_refuse(vd, s, false, ENOMEM);
}

/* Add the socket to the loop.  Returns 0 or an errno. */
static int
server_add(struct vfu_device *vd, int s)
{
	struct vfu_server *srv = &vd->vdev_server;
	int error;

	srv->read_ev = loop_add(s, VFU_STREAM_KEPT(vd) ? LOOP_READ_NEW :
	    LOOP_READ, server_readable, vd);
	if (srv->read_ev == NULL)
		return (errno);
	srv->write_ev = loop_add_disabled(s, LOOP_WRITE, server_writable, vd);
	if (srv->write_ev != NULL)
		return (0);
	error = errno;
	loop_delete(srv->read_ev);
	return (error);
}

int
vfu_server_come(struct vfu_device *vd, int s)
{
	struct vfu_server *srv = &vd->vdev_server;
	int error;

	srv->blocked = srv->negotiated = srv->broken = srv->short_said =
	    srv->put_off = false;
	srv->in_len = srv->out_len = 0;
	error = vfu_stream_come(vd, s);
	if (error != 0)
		return (error);
	srv->fd = s;
	error = server_add(vd, s);
	if (error != 0) {
		vfu_stream_go(vd);
		srv->fd = -1;
		return (error);
	}
	vfu_count(vd, VFU_C_CONNECT);
	vd->vdev_refusals = 0;
	vd->vdev_ops->vdo_attach(vd->vdev_arg);
	return (0);
}

/* Read messages only while all replies are sent. */
static void
server_block(struct vfu_server *srv, bool blocked)
{
	srv->blocked = blocked;
	if (blocked) {
		loop_disable(srv->read_ev);
		loop_enable(srv->write_ev);
	} else {
		loop_disable(srv->write_ev);
		loop_enable(srv->read_ev);
	}
}

int
vfu_server_restore(struct vfu_device *vd, int s, const int pipe[2],
    const struct vfu_progress *progress, uint64_t taken)
{
	struct vfu_server *srv = &vd->vdev_server;
	int error;

	error = server_add(vd, s);
	if (error != 0)
		return (error);
	srv->blocked = srv->broken = srv->short_said = srv->put_off = false;
	srv->negotiated = progress->vpr_negotiated;
	srv->in_len = 0;
	srv->out_len = progress->vpr_out_len;
	error = vfu_stream_restore(vd, s, pipe, progress, taken);
	if (error != 0) {
		loop_delete(srv->write_ev);
		loop_delete(srv->read_ev);
		srv->out_len = 0;
		srv->negotiated = false;
		return (error);
	}
	srv->fd = s;
	if (srv->out_len > 0)
		server_block(srv, true);
	return (0);
}

int
vfu_server_init(struct vfu_device *vd, int listen_fd)
{
	vd->vdev_thread = pthread_self();
	vd->vdev_server.fd = -1;
	vd->vdev_server.listening = VFU_LISTENS;
	vfu_stream_init(&vd->vdev_server.stream);
	vd->vdev_server.listen_ev = loop_add(listen_fd, LOOP_READ,
	    server_accept, vd);
	return (vd->vdev_server.listen_ev == NULL ? errno : 0);
}

void
vfu_server_fini(struct vfu_device *vd)
{
	struct vfu_server *srv = &vd->vdev_server;

	if (srv->listen_ev == NULL)
		return;
	loop_delete(srv->listen_ev);
	srv->listen_ev = NULL;
	if (srv->fd != -1)
		vfu_server_drop(vd);
}

/* Send replies, with one call.  Returns 0 or an errno. */
static int
server_send(struct vfu_device *vd)
{
	struct vfu_server *srv = &vd->vdev_server;
	ssize_t n;

	n = send(srv->fd, srv->out, srv->out_len, MSG_NOSIGNAL);
	vfu_count(vd, VFU_C_SEND);
	if (n == -1)
		return (errno);
	srv->out_len -= n;
	memmove(srv->out, srv->out + n, srv->out_len);
	return (0);
}

/*
 * Send the pending replies.  If the socket does not take all of them, stop
 * reading until it has.
 */
static void
server_flush(struct vfu_device *vd)
{
	struct vfu_server *srv = &vd->vdev_server;
	int error;

	if (srv->out_len == 0)
		return;
	error = VFU_STREAM_KEPT(vd) ? vfu_stream_send(vd) : server_send(vd);
	if (error != 0 && error != EAGAIN && error != EINTR)
		srv->broken = true;
	if ((srv->out_len > 0) != srv->blocked)
		server_block(srv, !srv->blocked);
}

/* Execute a complete message, and queue its reply. */
static void
server_message(struct vfu_device *vd, const struct vfio_user_header *h,
    const uint8_t *data, int *fds, int nfds)
{
	struct vfu_server *srv = &vd->vdev_server;
	struct vfio_user_header reply;
	struct vfu_request req;
	int error;

	vfu_count(vd, VFU_C_MESSAGE);
	req.header = h;
	req.data = data;
	req.len = h->size - sizeof(*h);
	req.fds = fds;
	req.nfds = nfds;
	req.reply = srv->out + srv->out_len + sizeof(reply);
	req.reply_len = 0;

	if (srv->negotiated) {
		peer_mem_set_tag(&vd->vdev_mem, vfu_message_tag(vd));
		error = vfu_command(vd, &req);
		/* A client that has the reply must have the interrupt. */
		vfu_irq_flush(&vd->vdev_irq);
	} else if (h->command != VFIO_USER_VERSION) {
		server_broken(vd, "command before VERSION");
		return;
	} else {
		error = vfu_version(vd, &req);
		if (error == 0)
			srv->negotiated = true;
		else
			server_broken(vd, "no common version");
	}
	if (error != 0)
		vfu_count(vd, VFU_C_ERROR);
	if ((h->flags & VFIO_USER_F_NO_REPLY) != 0) {
		vfu_count(vd, VFU_C_POSTED);
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
 * Return the size of the message at `p', of which `len' bytes have arrived; 0
 * if the size is not known yet or invalid.
 */
static size_t
server_frame(struct vfu_device *vd, const uint8_t *p, size_t len,
    struct vfio_user_header *h)
{
	if (len < sizeof(*h))
		return (0);
	memcpy(h, p, sizeof(*h));
	if (h->size < sizeof(*h) || h->size > VFU_MSG_MAX) {
		server_broken(vd, "message of invalid size");
		return (0);
	}
	if ((h->flags & VFIO_USER_F_TYPE) != VFIO_USER_F_COMMAND) {
		server_broken(vd, "not a command");
		return (0);
	}
	return (h->size);
}

/* Return how many descriptors belong to the message that ends at `end'. */
static int
server_owned(const struct vfu_server *srv, size_t end)
{
	int n;

	for (n = 0; n < srv->nfds && srv->fd_end[n] <= end; n++)
		continue;
	return (n);
}

/* Execute all complete messages, as long as there is space for replies. */
static void
server_parse(struct vfu_device *vd)
{
	struct vfu_server *srv = &vd->vdev_server;
	struct vfio_user_header h;
	size_t pos, size;
	int i, owned;

	pos = 0;
	while (!srv->broken) {
		size = server_frame(vd, srv->in + pos, srv->in_len - pos, &h);
		if (size == 0 || size > srv->in_len - pos)
			break;
		if (sizeof(srv->out) - srv->out_len < VFU_REPLY_MAX) {
			server_flush(vd);
			if (srv->blocked)
				break;
		}
		owned = server_owned(srv, pos + size);
		if (owned > VFU_FDS_MAX) {
			server_broken(vd, "too many descriptors");
			break;
		}
		server_message(vd, &h, srv->in + pos + sizeof(h), srv->fds,
		    owned);
		pos += size;
		if (!srv->broken)
			vfu_stream_done(vd, size);
		if (owned == 0)
			continue;
		/* The socket's first: the last is closed so as not to block. */
		if (owned == srv->nfds)
			vfu_stream_take(vd, true);
		server_close_fds(vd, owned);
	}
	srv->in_len -= pos;
	memmove(srv->in, srv->in + pos, srv->in_len);
	for (i = 0; i < srv->nfds; i++)
		srv->fd_end[i] -= pos;
	if (srv->nfds == 0)
		vfu_stream_take(vd, false);
}

/* Send the replies, after messages, and drop a client that is broken. */
static void
server_finish(struct vfu_device *vd)
{
	server_flush(vd);
	if (vd->vdev_server.broken)
		vfu_server_drop(vd);
}

static void
server_drop_fd(void *arg, int fd)
{
	server_close_passed(arg, fd);
}

/*
 * Take the descriptors that arrived with a recvmsg(2), at the end of `in'.
 * Returns how many there are.
 */
static int
server_take_fds(struct vfu_device *vd, struct msghdr *msg)
{
	struct vfu_server *srv = &vd->vdev_server;
	struct peer_fds mf = { .mf_fd = srv->fds, .mf_n = srv->nfds,
	    .mf_max = VFU_STREAM_KEPT(vd) ? nitems(srv->fds) : VFU_FDS_MAX,
	    .mf_drop = server_drop_fd, .mf_arg = vd };
	const int before = srv->nfds;

	if (!peer_fds_take(msg, &mf))
		server_broken(vd, "too many descriptors");
	for (; srv->nfds < (int)mf.mf_n; srv->nfds++)
		srv->fd_end[srv->nfds] = srv->in_len;
	return (srv->nfds - before);
}

/*
 * Return how many bytes to read.  The kernel ends a read after the bytes that
 * descriptors came with, so the descriptors belong to the last message read.
 * While that message is incomplete, read no further than its end: its
 * descriptors must not be mixed up with those of the next message.
 *
 * A read that only looks at messages must not end there: it would find the
 * descriptors after its end, or those of bytes that it has found in part, and
 * the next one would find them again.  So each descriptor has its position.
 */
static size_t
server_room(const struct vfu_device *vd)
{
	const struct vfu_server *srv = &vd->vdev_server;
	struct vfio_user_header h;

	if (srv->nfds == 0 || VFU_STREAM_KEPT(vd))
		return (sizeof(srv->in) - srv->in_len);
	if (srv->in_len < sizeof(h))
		return (sizeof(h) - srv->in_len);
	memcpy(&h, srv->in, sizeof(h));
	return (h.size - srv->in_len);
}

/*
 * Read `room' bytes.  Returns as recvmsg(2); *nfds becomes the number of
 * descriptors that came, too.
 */
static ssize_t
server_read(struct vfu_device *vd, size_t room, int *nfds)
{
	struct vfu_server *srv = &vd->vdev_server;
	union {
		struct cmsghdr	align;
		char		buf[PEER_FDS_SPACE(2 * VFU_FDS_MAX)];
	} control;
	struct msghdr msg;
	struct iovec iov;
	ssize_t n;

	iov.iov_base = srv->in + srv->in_len;
	iov.iov_len = room;
	memset(&msg, 0, sizeof(msg));
	msg.msg_iov = &iov;
	msg.msg_iovlen = 1;
	msg.msg_control = control.buf;
	msg.msg_controllen = PEER_FDS_SPACE(VFU_FDS_MAX);
	n = recvmsg(srv->fd, &msg, MSG_CMSG_CLOEXEC |
	    (VFU_STREAM_KEPT(vd) ? MSG_PEEK : 0));
	vfu_count(vd, VFU_C_RECV);
	*nfds = 0;
	if (n > 0 || srv->stream.vsm_unread)
		srv->stream.vsm_rounds = 0;
	if (n >= 0 || errno == EAGAIN)
		srv->stream.vsm_unread = false;
	if (n <= 0)
		return (n);
	srv->in_len += n;
	*nfds = server_take_fds(vd, &msg);
	return (n);
}

/*
 * What the kernel has as one piece, bytes, at most.  Descriptors come with the
 * end of one.
 */
#define	PIECE_MAX	40960

/*
 * Read less: the read has found *nfds descriptors that the next read would find
 * again, as there was no space for all bytes that they came with.  What comes
 * before these bytes is read.
 */
static ssize_t
server_read_less(struct vfu_device *vd, ssize_t n, int *nfds)
{
	struct vfu_server *srv = &vd->vdev_server;
	const int before = srv->nfds - *nfds;
	int i;

	for (i = before; i < srv->nfds; i++)
		server_close_passed(vd, srv->fds[i]);
	srv->nfds = before;
	srv->in_len -= n;
	if (n <= PIECE_MAX || vfu_stream_again(vd) != 0)
		*nfds = 1;
	else
		n = server_read(vd, n - PIECE_MAX, nfds);
	if (*nfds > 0)
		server_broken(vd, "descriptors with too long a message");
	return (n);
}

/* Whether to read again: no event tells of what is there already. */
enum server_again {
	SERVER_WAIT,
	SERVER_AGAIN,
	SERVER_LATER		/* after others had their turn */
};

/* Read once, and handle what was read. */
static enum server_again
server_receive(struct vfu_device *vd)
{
	struct vfu_server *srv = &vd->vdev_server;
	const size_t room = server_room(vd);
	enum server_again again;
	ssize_t n;
	int nfds;

	n = server_read(vd, room, &nfds);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return (errno == EINTR ? SERVER_AGAIN : SERVER_WAIT);
	if (n <= 0) {
		vfu_server_drop(vd);
		return (SERVER_WAIT);
	}
	again = (size_t)n == room ? SERVER_LATER : nfds > 0 ? SERVER_AGAIN :
	    SERVER_WAIT;
	if (again == SERVER_LATER && nfds > 0 && VFU_STREAM_KEPT(vd))
		n = server_read_less(vd, n, &nfds);
	server_parse(vd);
	server_finish(vd);
	return (srv->fd == -1 || srv->blocked || !VFU_STREAM_KEPT(vd) ?
	    SERVER_WAIT : again);
}

static void
server_readable(int fd __unused, void *arg)
{
	struct vfu_device *vd = arg;
	struct vfu_server *srv = &vd->vdev_server;
	enum server_again again;
	unsigned int i = 0;

	do {
		again = server_receive(vd);
	} while (again == SERVER_AGAIN && ++i < READS);
	if (again == SERVER_WAIT)
		return;
	/* There is an event at once. */
	loop_disable(srv->read_ev);
	loop_enable(srv->read_ev);
}

/* Continue, and send the rest: the socket takes data again. */
static void
server_writable(int fd __unused, void *arg)
{
	struct vfu_device *vd = arg;

	server_parse(vd);
	server_finish(vd);
}

void
vfu_server_round(struct vfu_device *vd)
{
	if (!VFU_STREAM_KEPT(vd))
		return;
	vfu_stream_round(vd);
	if (vd->vdev_server.fd != -1 && vd->vdev_server.broken)
		vfu_server_drop(vd);
}
