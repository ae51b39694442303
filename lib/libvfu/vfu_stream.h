/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The client's byte stream, so that a process which ends at any instruction
 * leaves it exact: the next process carries out each message that was not, and
 * sends each reply once.  Only if descriptors are kept (vfu_device_set_keep());
 * the process leaves the device's memory, the socket and a pipe.
 *
 * Messages stay in the socket until they have been carried out: they are read
 * with MSG_PEEK, from SO_PEEK_OFF on, with duplicates of their descriptors.
 * What has been carried out is taken from the socket later, for several
 * messages at once.  recvmmsg(2) takes it, since the kernel then writes how
 * much it was into the device's memory, in the same call, before any signal is
 * looked at.  A socket that has old messages is always readable, so the loop
 * only looks for new ones (LOOP_READ_NEW).
 *
 * No call tells how much it has sent in this way without a structure with an
 * address in it, which the sandbox does not permit.  So replies are written
 * into a pipe, which is noted, and then moved to the socket by splice(2), in
 * which the kernel takes from one what it gives the other.  What is in the pipe
 * has not been sent.
 *
 * What is noted, and what a message has done to it, becomes valid by one store:
 * struct vfu_progress exists twice.
 *
 * This takes one system call more for each write to the socket, and one more
 * for VFU_UNTAKEN messages.  A message must fit into the client's send buffer,
 * with what the kernel needs for it: 32 KB are enough for the longest one, and
 * the kernel's default is more.  A line says so if the rest of one does not
 * come.
 *
 * A process may end when it has carried out a message, or a part, but has not
 * noted that.  Then the next one carries it out again, which is harmless:
 *
 *	VERSION, DEVICE_GET_*	have no effect
 *	DMA_MAP, DMA_UNMAP	the journal of ranges has the message's number:
 *				what it has recorded is not done again
 *	SET_IRQS		sets the same descriptors, or masks the line;
 *				to unmask or trigger may send one event more,
 *				as vfu_irq_restore()
 *	REGION_READ		of configuration space, has no effect; of a
 *				register, may have cleared it: the model must
 *				make up for that
 *	REGION_WRITE		writes the same value to the same register, and
 *				nothing was written since
 *	REGION_WRITE_MULTI	goes on with the write that was not noted
 *	DEVICE_RESET		resets once more
 *
 * Only the device's thread uses it.
 */

#ifndef _VFU_STREAM_H_
#define	_VFU_STREAM_H_

#include <sys/socket.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vfu_device;

/*
 * Messages, and bytes of them, that have been carried out and are not taken
 * from the socket yet, at most.  They take up a part of the client's send
 * buffer, of which the kernel wants three quarters free before it says that a
 * client can write again.
 */
#define	VFU_UNTAKEN		8
#define	VFU_UNTAKEN_BYTES	2048
/*
 * They are taken, too, if so many rounds of the loop have had no message, each
 * of which comes after VFU_ROUND_MS milliseconds at the latest: a client with a
 * small buffer has no space before.
 */
#define	VFU_ROUNDS		4
#define	VFU_ROUND_MS		10

/* What is valid together. */
struct vfu_progress {
	uint64_t	vpr_done;	/* bytes of messages carried out, of
					   all clients */
	uint32_t	vpr_out_pos;	/* the replies not sent yet begin, */
	uint32_t	vpr_out_len;	/* and end */
	uint32_t	vpr_piped;	/* of them, so many went to the pipe */
	bool		vpr_connected;
	bool		vpr_negotiated;
};

/* Taking bytes from the socket. */
struct vfu_take {
	uint64_t	vtk_base;	/* those taken before */
	struct mmsghdr	vtk_msg;	/* msg_len: those taken since, or */
#define	VFU_NOT_TAKEN	UINT32_MAX
};

struct vfu_stream {
	/* The state that counts. */
	uint32_t	vsm_now;	/* index of progress; atomic */
	uint32_t	vsm_taking;	/* index of take; atomic */
	struct vfu_progress vsm_progress[2];
	struct vfu_take	vsm_take[2];
	/*
	 * This process's, which become progress with stream_commit(), together
	 * with others of struct vfu_server.
	 */
	uint64_t	vsm_done;
	uint32_t	vsm_out_pos;
	uint32_t	vsm_piped;
	uint32_t	vsm_left;	/* of them, so many are in the pipe */
	bool		vsm_unsure;	/* or fewer: another process has
					   written them */
	bool		vsm_unread;	/* the bytes after vsm_done may have
					   descriptors that are not known */
	unsigned int	vsm_untaken;	/* messages */
	unsigned int	vsm_rounds;	/* since something was read, at most
					   VFU_ROUNDS */
	int		vsm_pipe[2];	/* -1 without a client */
};

/* Whether the device's stream is kept. */
#define	VFU_STREAM_KEPT(vd)	((vd)->vdev_keep != NULL)

/* Begin without a client. */
void	vfu_stream_init(struct vfu_stream *st);

/*
 * Begin with a client, on this socket, whose messages are read from the first
 * on.  The store has the socket before anything else is done.  Returns 0 or an
 * errno; then the store does not have it.
 */
int	vfu_stream_come(struct vfu_device *vd, int s);

/*
 * Forget the client, whose connection has ended: the store may have a duplicate
 * of the socket.  The caller closes the socket.
 */
void	vfu_stream_go(struct vfu_device *vd);

/*
 * Count a message of `size' bytes that has been carried out, and whose reply is
 * in `out'.
 */
void	vfu_stream_done(struct vfu_device *vd, size_t size);

/*
 * Take the messages that have been carried out from the socket, if they are
 * many, or if `all'.  Not while descriptors wait for the rest of their message:
 * they may have come with the end of these messages, and would be lost if the
 * process ended.
 */
void	vfu_stream_take(struct vfu_device *vd, bool all);

/* End a round of the loop. */
void	vfu_stream_round(struct vfu_device *vd);

/* Read again from the end of `in' on.  Returns 0 or an errno. */
int	vfu_stream_again(struct vfu_device *vd);

/*
 * Send replies.  Returns 0 if all are sent, or an errno: EAGAIN or EINTR if
 * some are left.
 */
int	vfu_stream_send(struct vfu_device *vd);

/*
 * Return how far a client's messages have been taken from the socket, in bytes.
 */
uint64_t vfu_stream_taken(const struct vfu_stream *st);

/*
 * Go on with a client, from a state with out_len and negotiated of struct
 * vfu_server, and with what is in *progress, vpr_out_pos being 0.  `taken' is
 * what vfu_stream_taken() returned.  Returns 0 or an errno; the descriptors are
 * the device's only after success.
 */
int	vfu_stream_restore(struct vfu_device *vd, int s, const int pipe[2],
	    const struct vfu_progress *progress, uint64_t taken);

#endif /* !_VFU_STREAM_H_ */
