/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Events without waiting: peer_signal.h.
 *
 * The process has one context for its requests.  A request that is done is an
 * entry of the context's ring, in memory that the kernel shares, and stays
 * there until the head has passed it.  Nobody looks at the entries.  The head
 * is set only when the kernel finds the ring full, to the tail, which is that
 * of requests done before: an older value of another thread only makes the ring
 * full sooner.
 */

#include <sys/param.h>
#include <sys/syscall.h>
#include <sys/systm.h>

#include <errno.h>

#include <linux/aio_abi.h>
#include <linux/fs.h>

#include <string.h>
#include <unistd.h>

#include "peer_signal.h"

/* Requests that the ring has space for, at least. */
#define	EVENTS		256
/* The beginning of the ring, which the kernel does not change any more. */
#define	RING_MAGIC	0xa10a10a1
struct ring {
	uint32_t	id;
	uint32_t	nr;		/* entries */
	uint32_t	head;		/* ours */
	uint32_t	tail;		/* the kernel's */
	uint32_t	magic;
	uint32_t	compat_features;
	uint32_t	incompat_features;
	uint32_t	header_length;
};

static aio_context_t context;

static struct ring *
ring(void)
{
	return ((struct ring *)(uintptr_t)context);
}

int
peer_signal_start(void)
{
	if (syscall(SYS_io_setup, EVENTS, &context) == -1)
		return (errno);
	if (ring()->magic == RING_MAGIC && ring()->incompat_features == 0)
		return (0);
	syscall(SYS_io_destroy, context);
	context = 0;
	return (ENOTSUP);
}

uint64_t
peer_signal_context(void)
{
	return (context);
}

static long
submit(struct iocb *list[], unsigned int n)
{
	const long done = syscall(SYS_io_submit, context, (long)n, list);

	return (MAX(done, 0));
}

unsigned int
peer_signal(const int *fds, unsigned int n)
{
	struct iocb request[PEER_SIGNAL_MAX], *list[PEER_SIGNAL_MAX];
	unsigned int done, i;

	MPASS(n <= PEER_SIGNAL_MAX);
	if (context == 0 || n == 0)
		return (0);
	for (i = 0; i < n; i++) {
		memset(&request[i], 0, sizeof(request[i]));
		request[i].aio_lio_opcode = IOCB_CMD_PREAD;
		request[i].aio_fildes = fds[i];
		request[i].aio_rw_flags = RWF_NOWAIT;
		request[i].aio_flags = IOCB_FLAG_RESFD;
		request[i].aio_resfd = fds[i];
		list[i] = &request[i];
	}
	done = submit(list, n);
	if (done == n)
		return (n);
	atomic_store_rel_32(&ring()->head, atomic_load_acq_32(&ring()->tail));
	return (done + submit(list + done, n - done));
}
