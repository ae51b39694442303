/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Both ends of a pipe in this process, for tests.  A function fails the test
 * case if a call fails that must not.
 */

#ifndef _PIPE_ENDS_H_
#define	_PIPE_ENDS_H_

#include <stdint.h>

#include "vale_pipe.h"
#include "vale_window.h"

/* Memory: a page that is of a port, buffers of a port, a pipe. */
#define	PIPE_BUFS		VALE_PAGE
#define	PIPE_PORT_BUFS	10
#define	PIPE_AT		(PIPE_BUFS + PIPE_PORT_BUFS * VALE_BUF_SIZE)

struct pipe_ends {
	char			*base;
	size_t			 size;
	struct vale_pipe_layout	 pl;
	struct vale_pipe	 end[2];
	struct vale_window_ring	 heads[2];
};

/* A pipe with these slots from the master and from the slave. */
void	pipe_setup(struct pipe_ends *f, uint32_t master, uint32_t slave);
void	pipe_free(struct pipe_ends *f);
/* Initialize the memory of the pipe again. */
void	pipe_init(struct pipe_ends *f);
/* Copy the slots that are an end's own to the memory, as valed does. */
void	pipe_return(struct pipe_ends *f, unsigned int end);
/* The number that a buffer's must be less than. */
uint32_t pipe_nbufs(const struct pipe_ends *f);
/* Open an end again. */
void	pipe_attach(struct pipe_ends *f, unsigned int end);

/* Sync.  0 or an errno. */
int	pipe_tx(struct vale_pipe *pp);
int	pipe_rx(struct vale_pipe *pp);

/* Put a frame of 60 bytes in the next slot. */
void	pipe_put(struct vale_pipe *pp, uint32_t seq, uint16_t flags);
/* Take the next frame, which must be this one.  Returns its slot. */
struct netmap_slot *pipe_take(struct vale_pipe *pp, uint32_t seq);

/*
 * Each buffer of the pipe must be in one slot: of the receiver, if it is
 * between what was released and published, else of the sender.
 */
void	pipe_check_buffers(struct pipe_ends *f);

#endif /* !_PIPE_ENDS_H_ */
