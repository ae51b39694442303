/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A frame port (frame_port.h) over a port of a switch that is in another valed.
 * The port comes and goes with that valed; the frame port stays.
 *
 * Two processes make it.  One asks the other valed for the port, and keeps the
 * connection: it may make system calls, and has nothing to do with guests.  The
 * other has the port's memory and the sockets for kicks, and nothing with which
 * it could ask for more:
 *
 *	vale_remote_ask()	\
 *	vale_remote_answer()	 | the process with the connection
 *	vale_remote_ready()	/
 *		descriptors and struct nmreq_register
 *	vale_remote_open()	the process with the frame port
 *
 * Neither trusts the other valed, nor is it trusted: vale_client_take().
 */

#ifndef _VALE_REMOTE_H_
#define	_VALE_REMOTE_H_

#include <stdbool.h>

#include "vale_client.h"
#include "vale_frame_port.h"

/* The descriptors of a port: its memory, the window, and a socket a ring. */
#define	VALE_REMOTE_FDS	4

/*
 * Ask for the port `name' over a connection, and for a virtio-net header on
 * each of its frames.  There are two answers, which the caller waits for.
 * Returns 0, or -1 with an errno of vale_client_ask().
 */
int	vale_remote_ask(int fd, const char *name);

/*
 * Receive the first answer.  Returns 0 with *reg and the descriptors, which
 * were found to be memory and local sockets, so that close(2) of them does not
 * wait.  Or -1 with errno of vale_client_answer(), or EPROTO; `why' has as many
 * bytes as vw_why, and is a sentence or "".
 */
int	vale_remote_answer(int fd, struct nmreq_register *reg,
	    int fds[VALE_REMOTE_FDS], char *why);

/* Receive the second one.  Returns and fails as the first. */
int	vale_remote_ready(int fd, char *why);

struct vale_remote {
	struct vale_frame_port	 vrm_frames;
	struct vale_client_port	 vrm_client;
	struct vale_common	 vrm_common;
	struct vale_desc	 vrm_desc;
	int			 vrm_fds[VALE_REMOTE_FDS];
	bool			 vrm_open;
	bool			 vrm_bad;	/* what valed has written is
						   not valid */
	bool			 vrm_found;	/* since the last sync there
						   was a frame, or a kick was
						   asked for */
	bool			 vrm_stuck;	/* the ring was full for so
						   long that nothing waits
						   before its tail moves: */
	uint32_t		 vrm_tail;	/* that is here */
	uint32_t		 vrm_sent;	/* the head that was
						   published */
};

/*
 *
 * Make vr->vrm_frames.vfp_port a frame port without a port, which drops what is
 * sent, and receives nothing.  This and the functions below, and those of the
 * frame port, are one thread's, which may be in valed's sandbox.
 */
void	vale_remote_init(struct vale_remote *vr);

/*
 * Have the port, which there must not be.  The descriptors become its own, also
 * if this fails.  Returns 0, or -1 with errno of vale_client_take(), or EPROTO.
 */
int	vale_remote_open(struct vale_remote *vr, const char *name,
	    const struct nmreq_register *reg, const int fds[VALE_REMOTE_FDS]);

/* Do without the port, if there is one.  A thread closes the descriptors. */
void	vale_remote_close(struct vale_remote *vr);

/* Return the descriptor that is readable if the port has frames. */
int	vale_remote_fd(const struct vale_remote *vr);

/*
 * Return whether there is no port, or valed has ended: the descriptor stays
 * readable.
 */
bool	vale_remote_gone(const struct vale_remote *vr);

/* Return whether the port should be closed and opened again: vrm_bad. */
bool	vale_remote_bad(const struct vale_remote *vr);

#endif /* !_VALE_REMOTE_H_ */
