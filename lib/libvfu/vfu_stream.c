/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* The client's byte stream, exact beyond the process; see vfu_stream.h. */

#include <sys/param.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "loop.h"
#include "peer_keep.h"
#include "vfu_device.h"

/*
 * What is noted.
 */

static void
stream_commit(struct vfu_device *vd, bool connected)
{
	struct vfu_server *srv = &vd->vdev_server;
	struct vfu_stream *st = &srv->stream;
	const uint32_t next = (st->vsm_now & 1) ^ 1;

	st->vsm_progress[next] = (struct vfu_progress){
	    .vpr_done = st->vsm_done, .vpr_out_pos = st->vsm_out_pos,
	    .vpr_out_len = srv->out_len, .vpr_piped = st->vsm_piped,
	    .vpr_connected = connected, .vpr_negotiated = srv->negotiated };
	atomic_store_rel_32(&st->vsm_now, next);
}

uint64_t
vfu_stream_taken(const struct vfu_stream *st)
{
	const struct vfu_take *t = &st->vsm_take[st->vsm_taking & 1];
	const uint32_t len = t->vtk_msg.msg_len;

	return (t->vtk_base + (len == VFU_NOT_TAKEN ? 0 : len));
}

/* Note that the bytes before `taken' have been taken, and no others. */
static struct vfu_take *
stream_taken(struct vfu_stream *st, uint64_t taken)
{
	const uint32_t next = (st->vsm_taking & 1) ^ 1;
	struct vfu_take *t = &st->vsm_take[next];

	memset(t, 0, sizeof(*t));
	t->vtk_base = taken;
	t->vtk_msg.msg_len = VFU_NOT_TAKEN;
	atomic_store_rel_32(&st->vsm_taking, next);
	return (t);
}

void
vfu_stream_init(struct vfu_stream *st)
{
	memset(st, 0, sizeof(*st));
	st->vsm_pipe[0] = st->vsm_pipe[1] = -1;
	stream_taken(st, 0);
}

/*
 * A client comes and goes.
 */

/*
 * Have messages read from the first on that has not been carried out: `untaken'
 * bytes are before it.
 */
static int
stream_seek(int s, uint64_t untaken)
{
	const int off = (int)untaken;

	return (setsockopt(s, SOL_SOCKET, SO_PEEK_OFF, &off, sizeof(off)) ==
	    -1 ? errno : 0);
}

int
vfu_stream_again(struct vfu_device *vd)
{
	const struct vfu_server *srv = &vd->vdev_server;

	return (stream_seek(srv->fd, srv->stream.vsm_done -
	    vfu_stream_taken(&srv->stream) + srv->in_len));
}

int
vfu_stream_come(struct vfu_device *vd, int s)
{
	struct vfu_stream *st = &vd->vdev_server.stream;
	int error;

	if (!VFU_STREAM_KEPT(vd))
		return (0);
	MPASS(st->vsm_pipe[0] == -1);
	/* First: until then it is lost if the process ends. */
	peer_keep_put(vd->vdev_keep, "client", s);
	error = stream_seek(s, 0);
	if (error == 0 && pipe2(st->vsm_pipe, O_NONBLOCK | O_CLOEXEC) == -1)
		error = errno;
	if (error != 0) {
		peer_keep_remove(vd->vdev_keep, "client");
		return (error);
	}
	stream_taken(st, st->vsm_done);
	st->vsm_untaken = 0;
	st->vsm_rounds = VFU_ROUNDS;
	st->vsm_unread = false;
	peer_keep_put(vd->vdev_keep, "pipe.0", st->vsm_pipe[0]);
	peer_keep_put(vd->vdev_keep, "pipe.1", st->vsm_pipe[1]);
	stream_commit(vd, true);
	return (0);
}

void
vfu_stream_go(struct vfu_device *vd)
{
	struct vfu_server *srv = &vd->vdev_server;
	struct vfu_stream *st = &srv->stream;
	int i;

	if (!VFU_STREAM_KEPT(vd))
		return;
	srv->negotiated = false;
	srv->out_len = st->vsm_out_pos = st->vsm_piped = st->vsm_left = 0;
	st->vsm_unsure = false;
	stream_commit(vd, false);
	peer_keep_remove(vd->vdev_keep, "client");
	peer_keep_remove(vd->vdev_keep, "pipe.1");
	peer_keep_remove(vd->vdev_keep, "pipe.0");
	for (i = 0; i < 2; i++) {
		close(st->vsm_pipe[i]);
		st->vsm_pipe[i] = -1;
	}
}

/*
 * Messages.
 */

void
vfu_stream_done(struct vfu_device *vd, size_t size)
{
	struct vfu_stream *st = &vd->vdev_server.stream;

	st->vsm_done += size;
	if (!VFU_STREAM_KEPT(vd))
		return;
	st->vsm_untaken++;
	stream_commit(vd, true);
}

void
vfu_stream_take(struct vfu_device *vd, bool all)
{
	struct vfu_server *srv = &vd->vdev_server;
	struct vfu_stream *st = &srv->stream;
	uint64_t left = st->vsm_done - vfu_stream_taken(st);
	char discarded[VFU_MSG_MAX];
	struct vfu_take *t;
	struct iovec iov;
	int n;

	if (!VFU_STREAM_KEPT(vd) || st->vsm_unread || (!all &&
	    st->vsm_untaken < VFU_UNTAKEN && left < VFU_UNTAKEN_BYTES))
		return;
	st->vsm_untaken = 0;
	for (; left > 0; left -= n) {
		iov.iov_base = discarded;
		iov.iov_len = MIN(left, sizeof(discarded));
		t = stream_taken(st, vfu_stream_taken(st));
		t->vtk_msg.msg_hdr.msg_iov = &iov;
		t->vtk_msg.msg_hdr.msg_iovlen = 1;
		/* recvmmsg(2) closes descriptors, which may block. */
		atomic_store_32(&srv->calls, srv->calls + 1);
		n = recvmmsg(srv->fd, &t->vtk_msg, 1, MSG_DONTWAIT, NULL);
		atomic_store_32(&srv->calls, srv->calls + 1);
		/* The message is there, as the server has read it. */
		if (n != 1 || t->vtk_msg.msg_len == 0 ||
		    t->vtk_msg.msg_len > iov.iov_len) {
			srv->broken = true;
			return;
		}
		n = (int)t->vtk_msg.msg_len;
	}
}

void
vfu_stream_round(struct vfu_device *vd)
{
	struct vfu_server *srv = &vd->vdev_server;
	struct vfu_stream *st = &srv->stream;

	if (srv->fd == -1 || st->vsm_rounds == VFU_ROUNDS)
		return;
	if (++st->vsm_rounds < VFU_ROUNDS) {
		loop_round_within(VFU_ROUND_MS);
		return;
	}
	if (srv->nfds == 0)
		vfu_stream_take(vd, true);
	if (srv->in_len > 0 && !srv->short_said) {
		srv->short_said = true;
		vfu_log(vd, LOG_NOTICE, "the rest of a message has not come "
		    "yet: the client needs a send buffer of 32 KB");
	}
}

/*
 * Replies.
 */

/* Return whether nothing is in the pipe. */
static bool
pipe_empty(const struct vfu_stream *st)
{
	struct pollfd pfd = { .fd = st->vsm_pipe[0], .events = POLLIN };

	return (poll(&pfd, 1, 0) == 0);
}

/* Move what is in the pipe.  Returns 0 or an errno. */
static int
pipe_move(struct vfu_device *vd)
{
	struct vfu_server *srv = &vd->vdev_server;
	struct vfu_stream *st = &srv->stream;
	ssize_t n;

	n = splice(st->vsm_pipe[0], NULL, srv->fd, NULL, st->vsm_left,
	    SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	vfu_count(vd, VFU_C_SEND);
	if (n > 0) {
		st->vsm_left -= n;
		return (0);
	}
	if (n == -1 && errno != EAGAIN)
		return (errno);
	/* The pipe is empty, or the socket is full. */
	if (!st->vsm_unsure || !pipe_empty(st))
		return (EAGAIN);
	st->vsm_left = 0;
	return (0);
}

int
vfu_stream_send(struct vfu_device *vd)
{
	struct vfu_server *srv = &vd->vdev_server;
	struct vfu_stream *st = &srv->stream;
	ssize_t n;
	int error;

	while (srv->out_len > 0) {
		if (st->vsm_piped == 0) {
			n = write(st->vsm_pipe[1], srv->out + st->vsm_out_pos,
			    srv->out_len - st->vsm_out_pos);
			if (n == -1)
				return (errno);
			st->vsm_piped = st->vsm_left = n;
			stream_commit(vd, true);
		}
		while (st->vsm_left > 0) {
			error = pipe_move(vd);
			if (error != 0)
				return (error);
		}
		st->vsm_out_pos += st->vsm_piped;
		st->vsm_piped = 0;
		st->vsm_unsure = false;
		if (st->vsm_out_pos == srv->out_len)
			srv->out_len = st->vsm_out_pos = 0;
		stream_commit(vd, true);
	}
	return (0);
}

/*
 * Another process goes on.
 */

/*
 * Discard what is in the pipe.  It was not noted, so it is still in `out', too,
 * and is no more than `out' has.
 */
static void
pipe_discard(int fd)
{
	char buf[4096];
	size_t left = VFU_BUFFER;

	while (left > 0 && read(fd, buf, sizeof(buf)) > 0)
		left -= sizeof(buf);
}

int
vfu_stream_restore(struct vfu_device *vd, int s, const int pipe[2],
    const struct vfu_progress *progress, uint64_t taken)
{
	struct vfu_server *srv = &vd->vdev_server;
	struct vfu_stream *st = &srv->stream;
	int error;

	error = stream_seek(s, progress->vpr_done - taken);
	if (error != 0)
		return (error);
	if (progress->vpr_piped == 0)
		pipe_discard(pipe[0]);
	stream_taken(st, taken);
	st->vsm_done = progress->vpr_done;
	st->vsm_out_pos = 0;
	st->vsm_piped = st->vsm_left = progress->vpr_piped;
	st->vsm_unsure = st->vsm_unread = true;
	st->vsm_untaken = VFU_UNTAKEN;	/* perhaps */
	st->vsm_rounds = 0;
	st->vsm_pipe[0] = pipe[0];
	st->vsm_pipe[1] = pipe[1];
	stream_commit(vd, true);
	return (0);
}
