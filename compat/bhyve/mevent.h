/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * bhyve's event loop, over epoll(7).
 *
 * Unlike bhyve, which has one loop, every thread here has its own: an event
 * belongs to the loop of the thread that added it, and its handler runs in
 * that thread's mevent_dispatch().  A program that adds and dispatches from one
 * thread sees no difference.
 *
 * Events are persistent and level triggered: a handler that leaves its cause
 * in place is called again.  Handlers may add, change and delete any event,
 * their own included.
 *
 * mevent_enable(), mevent_disable(), mevent_timer_update(), mevent_delete(),
 * mevent_delete_close() and mevent_stop() may be called from any thread.  From
 * another thread than the loop's, a handler may still be running, or be just
 * about to, when mevent_disable() or mevent_delete() returns; within the
 * loop's thread it is not called again.
 */

#ifndef _MEVENT_H_
#define	_MEVENT_H_

enum ev_type {
	EVF_READ,	/* fd readable, or at its end */
	EVF_WRITE,	/* fd writable */
	EVF_TIMER,	/* every so many ms; in place of fd: ms > 0 */
	EVF_SIGNAL,	/* in place of fd: the signal's number */
};

struct mevent;
struct mevent_loop;

/*
 * Call func(fd, type, param) when the event happens.  A loop takes each pair
 * of fd and type once, timers excepted.  EVF_SIGNAL blocks the signal in the
 * calling thread; threads that exist already must have it blocked themselves.
 * mevent_add_disabled(): not before mevent_enable().
 * Returns NULL where the pair is there already, the fd cannot be waited for
 * (regular files), or resources lack.
 */
struct mevent *mevent_add(int fd, enum ev_type type,
	    void (*func)(int, enum ev_type, void *), void *param);
struct mevent *mevent_add_disabled(int fd, enum ev_type type,
	    void (*func)(int, enum ev_type, void *), void *param);

/* Let the handler be called, or not.  0, or -1 with errno. */
int	mevent_enable(struct mevent *evp);
int	mevent_disable(struct mevent *evp);

/* A timer's new period in ms, counted from now.  0, or -1 with errno. */
int	mevent_timer_update(struct mevent *evp, int msecs);

/*
 * Forget the event, which must not be used again.  _close: close the fd too,
 * not before its handler, if it is running, has returned.
 */
int	mevent_delete(struct mevent *evp);
int	mevent_delete_close(struct mevent *evp);

/* Run the calling thread's loop until mevent_stop(). */
void	mevent_dispatch(void);

/*
 * Not in bhyve, whose loop never ends.
 *
 * mevent_loop(): the calling thread's loop, for other threads to stop; it
 * lives as long as the thread.  NULL: out of resources.
 * mevent_stop(): have mevent_dispatch() return as soon as the handler that is
 * running returns; when it is not running, the next one returns at once.
 */
struct mevent_loop *mevent_loop(void);
void	mevent_stop(struct mevent_loop *loop);

#endif /* !_MEVENT_H_ */
