/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * bhyve's event loop: the part that a network device and its backends use.
 *
 * An event belongs to the loop of the thread that added it, and
 * mevent_dispatch() calls its handler in that thread.  Events are persistent
 * and level triggered.  Handlers may add, change and delete any event,
 * including their own.
 */

#ifndef _MEVENT_H_
#define	_MEVENT_H_

enum ev_type {
	EVF_READ,	/* fd is readable, or at end of file */
	EVF_WRITE,	/* fd is writable */
	EVF_TIMER,	/* periodic; fd is the period in ms, > 0 */
	EVF_SIGNAL,	/* fd is the number of the signal */
};

struct mevent;

/*
 * Call func(fd, type, param) when the event occurs; after
 * mevent_add_disabled(), not before mevent_enable().  A loop accepts a pair of
 * fd and type once, except for timers.  EVF_SIGNAL blocks the signal in the
 * calling thread; all other threads must have it blocked.  Returns NULL with
 * errno if the pair exists, if epoll(7) does not accept the fd (a regular
 * file), or if resources run out.
 */
struct mevent *mevent_add(int fd, enum ev_type type,
	    void (*func)(int, enum ev_type, void *), void *param);
struct mevent *mevent_add_disabled(int fd, enum ev_type type,
	    void (*func)(int, enum ev_type, void *), void *param);

/* Whether the handler is called.  0, or -1 with errno. */
int	mevent_enable(struct mevent *evp);
int	mevent_disable(struct mevent *evp);

/*
 * Delete the event; the caller must not use it again.  mevent_delete_close()
 * also closes the fd, after the handler has returned if it is running.
 */
int	mevent_delete(struct mevent *evp);
int	mevent_delete_close(struct mevent *evp);

/* Run the calling thread's loop until loop_stop() (loop.h). */
void	mevent_dispatch(void);

#endif /* !_MEVENT_H_ */
