/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The server's side of one vfio-user socket: one client at a time, messages
 * in, replies out.
 *
 * All that has arrived is taken with one recvmsg(2) and handled in order;
 * replies are gathered and sent with one send(2).  Buffers have fixed sizes:
 * a client that does not read its replies is not read from either.
 *
 * Belongs to one thread.
 */

#ifndef _VFU_SERVER_H_
#define	_VFU_SERVER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vfio_user.h"

struct mevent;
struct adapter;

/* The most data in one region access, bytes (max_data_xfer_size). */
#define	VFU_XFER_MAX	4096
/* The longest message: VFIO_USER_REGION_WRITE_MULTI, or the JSON of VERSION. */
#define	VFU_MSG_MAX	8192
/* The longest reply: data of a region read behind its headers. */
#define	VFU_REPLY_MAX	(VFU_XFER_MAX + 64)
/* Descriptors in one message (max_msg_fds). */
#define	VFU_FDS_MAX	16
#define	VFU_BUFFER	65536

struct vfu_server {
	struct mevent	*listen_ev;
	int		 fd;		/* the client, or -1 */
	struct mevent	*read_ev;
	struct mevent	*write_ev;	/* on while replies wait */
	bool		 blocked;	/* replies wait for the client */
	bool		 negotiated;	/* VERSION has been seen */
	bool		 broken;	/* to be dropped */

	/*
	 * Descriptors not yet given to a message.  They came with the bytes
	 * that end at fd_pos in `in', and belong to the message that holds
	 * the last of these.
	 */
	int		 fds[VFU_FDS_MAX];
	int		 nfds;
	size_t		 fd_pos;

	size_t		 in_len;
	size_t		 out_len;
	uint8_t		 in[VFU_BUFFER];
	uint8_t		 out[VFU_BUFFER];
};

/* A command as it came in, and the place for the reply's payload. */
struct vfu_request {
	const struct vfio_user_header *header;
	const uint8_t	*data;		/* the payload */
	size_t		 len;
	int		*fds;		/* what is taken is replaced by -1 */
	int		 nfds;
	uint8_t		*reply;		/* room for VFU_REPLY_MAX - header */
	size_t		 reply_len;
};

/* Watch the VM's listening socket.  0 or an errno. */
int	vfu_server_init(struct adapter *ad);

/*
 * vfu_version.c: answer VERSION.  Returns 0, or an errno for a client that
 * cannot be served.
 */
int	vfu_version(struct adapter *ad, struct vfu_request *req);

/*
 * vfu_device.c: carry out any other command.  Returns 0 or the errno for the
 * reply.
 */
int	vfu_command(struct adapter *ad, struct vfu_request *req);

#endif /* !_VFU_SERVER_H_ */
