/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The server side of a vfio-user socket, for one client at a time.
 *
 * The server reads what has arrived with one recvmsg(2), handles the messages
 * in order, and sends all replies with one send(2).  If another process may
 * have to go on, it does more: vfu_stream.h.  Buffers have fixed sizes: while a
 * client does not read its replies, the server does not read its messages.
 *
 * Only the device's thread uses it.
 */

#ifndef _VFU_SERVER_H_
#define	_VFU_SERVER_H_

#include <sys/systm.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "vfio_user.h"
#include "vfu_stream.h"

struct loop_event;
struct vfu_device;

/* Bytes in one region access, at most (max_data_xfer_size). */
#define	VFU_XFER_MAX	4096
/* Bytes of a message, at most: REGION_WRITE_MULTI, or the JSON of VERSION. */
#define	VFU_MSG_MAX	8192
/* Bytes of a reply, at most: headers, and the data of a region read. */
#define	VFU_REPLY_MAX	(VFU_XFER_MAX + 64)
/* Descriptors in one message, at most (max_peer_fds). */
#define	VFU_FDS_MAX	16
#define	VFU_BUFFER	65536

/* Whether the server looks for a client. */
enum vfu_listening {
	VFU_LISTENS,
	VFU_WAITS,		/* accept(2) failed, or there is a client */
	VFU_AGAIN		/* it is to look again */
};

struct vfu_server {
	struct loop_event	*listen_ev;
	uint32_t	 listening;	/* enum vfu_listening; atomic */
	int		 fd;		/* the client, or -1 */
	struct loop_event	*read_ev;
	struct loop_event	*write_ev;	/* enabled while blocked */
	bool		 blocked;	/* replies are pending */
	bool		 negotiated;	/* VERSION has succeeded */
	bool		 broken;	/* must be dropped */
	bool		 short_said;	/* a line, of its send buffer */
	bool		 put_off;	/* a second client was, once */
	uint32_t	 calls;		/* starts and ends of close(2), as
					   in struct vfu_irq */

	/*
	 * Descriptors that no message has taken yet.  Each came with the bytes
	 * before its fd_end in `in', and belongs to the message with the last
	 * of these bytes.
	 */
	int		 fds[2 * VFU_FDS_MAX];
	size_t		 fd_end[2 * VFU_FDS_MAX];
	int		 nfds;

	size_t		 in_len;
	size_t		 out_len;
	uint8_t		 in[VFU_BUFFER];
	uint8_t		 out[VFU_BUFFER];

	struct vfu_stream stream;
};

/* A command, and the payload of its reply. */
struct vfu_request {
	const struct vfio_user_header *header;
	const uint8_t	*data;		/* the payload */
	size_t		 len;
	int		*fds;		/* -1 for those taken */
	int		 nfds;
	uint8_t		*reply;		/* VFU_REPLY_MAX less a header */
	size_t		 reply_len;
};

/* Close a descriptor; the watchdog interrupts a close that takes long. */
static inline void
vfu_server_close(struct vfu_server *srv, int fd)
{
	atomic_store_32(&srv->calls, srv->calls + 1);
	close(fd);
	atomic_store_32(&srv->calls, srv->calls + 1);
}

/* Drop the client; there must be one. */
void	vfu_server_drop(struct vfu_device *vd);

/*
 * Accept clients on a listening socket, which the caller keeps.  The calling
 * thread becomes the device's.  0 or an errno.
 */
int	vfu_server_init(struct vfu_device *vd, int listen_fd);

/*
 * Look for clients again.  The server stops to look for them if accept(2) fails
 * because the process has no descriptor left, or the kernel no memory, and,
 * once for each client, when a second client comes: Linux closes a process's
 * socket some milliseconds after its parent has waited for its end, and may
 * have started the next.  vfu_server_again() returns whether the server has
 * stopped, and must then be followed by vfu_server_listen(), in the device's
 * thread.  The main thread, once a second.
 */
bool	vfu_server_again(struct vfu_server *srv);
void	vfu_server_listen(struct vfu_device *vd);

/*
 * Serve a client with this socket, which becomes the device's.  Returns 0 or an
 * errno.  The device's thread, if there is no client.
 */
int	vfu_server_come(struct vfu_device *vd, int s);

/*
 * Go on with a client that another process has served; `s' and `pipe' become
 * the device's on success.  See vfu_stream_restore(); the replies are in
 * vdev_server.out.
 */
int	vfu_server_restore(struct vfu_device *vd, int s, const int pipe[2],
	    const struct vfu_progress *progress, uint64_t taken);

/* End a round of the loop: vfu_stream.h.  The device's thread. */
void	vfu_server_round(struct vfu_device *vd);

/* Accept no more clients, and drop the one there is.  Init may have failed. */
void	vfu_server_fini(struct vfu_device *vd);

/*
 * Handle VERSION: vfu_version.c.  Returns 0, or an errno if the client must be
 * dropped.
 */
int	vfu_version(struct vfu_device *vd, struct vfu_request *req);

#endif /* !_VFU_SERVER_H_ */
