/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * An event loop for valed's files in one thread, step by step: the functions of
 * loop.h that they use, with events in a table.  As for epoll(7), no event is
 * of a regular file, and a descriptor has one event of a type.  A wrong call
 * aborts the program.
 */

#ifndef _EVENT_STUB_H_
#define	_EVENT_STUB_H_

#include <stdbool.h>
#include <stdint.h>

#include "loop.h"

#define	EVENTS		16

struct loop_event {
	int		fd;
	enum loop_type	type;
	void		(*func)(int fd, void *arg);
	void		*arg;
	bool		used, on;
	int		epoll;		/* of a LOOP_READ_NEW; or -1 */
};

extern struct loop_event	events[EVENTS];
/* The event to add that fails: 1 for the next one, 0 for none. */
extern unsigned int	events_fail;
/* How often an event was enabled that was so already, or disabled. */
extern unsigned int	events_repeated;

/* The shortest time of loop_round_within(), or -1: events_step() resets 0. */
extern int		round_within;

/* What loop_poll() was told last. */
extern uint64_t		polls_ns;

/* How many events there are, and how many of them are enabled. */
unsigned int	events_used(void);
unsigned int	events_on(void);

/*
 * Call the handlers of all enabled events that are ready, once, then the
 * function of loop_round(), if any.  Returns how many handlers were called; 1
 * if only that function was, after a loop_round_within() of 0.
 */
unsigned int	events_step(void);

/* Call handlers until no event is ready. */
void	events_run(void);

#endif /* !_EVENT_STUB_H_ */
