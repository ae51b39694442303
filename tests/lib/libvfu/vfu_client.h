/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The vfio-user server and a client at the other end of its socket, in one
 * thread, step by step: the server runs in events_run().  The program is linked
 * with --wrap=accept4, --wrap=recvmsg and --wrap=send.
 */

#ifndef _VFU_CLIENT_H_
#define	_VFU_CLIENT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vfio_user.h"
#include "vfu_device.h"

#define	HDR		sizeof(struct vfio_user_header)
#define	UNKNOWN		VFIO_USER_DEVICE_FEATURE
#define	NO_REPLY	VFIO_USER_F_NO_REPLY

extern int	client;		/* its socket, or -1 */
extern unsigned int fds_idle; /* descriptors open without a client */
extern uint16_t	next_id;	/* of the next message */

/*
 * What the server's send(2) and recvmsg(2) do: fail with this errno, once; and
 * send() leaves so many bytes.
 */
extern int	send_error, recv_error;
extern size_t	send_leaves;

/* accept4(2) fails with this errno, each time; its calls. */
extern int	accept_error;
extern unsigned int accepts;

/* Start the server, without a client. */
void	server_start(void);

/* Connect from a socket with an address, as a client may; returns it. */
int	dial(void);
/* Connect, and negotiate if `version'. */
void	client_come(bool version);
/*
 * Leave, or be dropped; check that nothing of the client stays, and that the
 * adapter was called so: stub_calls().
 */
void	client_gone(const char *calls);

/* Send bytes, or bytes with descriptors. */
void	put(const void *data, size_t len);
void	put_fds(const void *data, size_t len, const int *fds, int nfds);
/* Build a message, whose number is next_id++; returns its size in bytes. */
size_t	message(uint8_t *buf, unsigned int command, uint32_t flags,
	    const void *data, size_t len);
/* Build one and send it. */
void	put_message(unsigned int command, uint32_t flags, const void *data,
	    size_t len);

/*
 * Take the next reply, which must be to this command and, if it is no error,
 * have `len' bytes of data; they are copied if `data' is not NULL.  Returns its
 * error, or 0.
 */
int	reply(uint16_t id, unsigned int command, void *data, size_t len);
/* Whether no reply waits. */
bool	no_reply(void);
/* Whether the server has closed the connection, after all its replies. */
bool	hung_up(void);
/*
 * Check that the server drops the client, for this reason, and serves the next
 * one, which becomes `client'.
 */
void	check_dropped(const char *why);

#endif /* !_VFU_CLIENT_H_ */
