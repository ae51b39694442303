/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * bhyve's event loop, over epoll(7).
 *
 * bhyve has one loop; here each thread has its own.  An event belongs to the
 * loop of the thread that added it, and mevent_dispatch() calls its handler in
 * that thread.  A program that adds and dispatches from one thread sees no
 * difference.
 *
 * Events are persistent and level triggered: a handler is called again until it
 * removes the cause.  Handlers may add, change and delete any event, including
 * their own.
 *
 * Any thread may call mevent_enable(), mevent_disable(), mevent_timer_update(),
 * mevent_delete(), mevent_delete_close() and mevent_stop().  If the loop's own
 * thread calls mevent_disable() or mevent_delete(), the handler is not called
 * after that.  If another thread does, the handler may still run once, or be
 * running, when the function returns.
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
struct mevent_loop;

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

/* A timer's new period in ms, counted from now.  0, or -1 with errno. */
int	mevent_timer_update(struct mevent *evp, int msecs);

/*
 * Delete the event; the caller must not use it again.  mevent_delete_close()
 * also closes the fd, after the handler has returned if it is running.
 */
int	mevent_delete(struct mevent *evp);
int	mevent_delete_close(struct mevent *evp);

/* Run the calling thread's loop until mevent_stop(). */
void	mevent_dispatch(void);

/*
 * The functions below are not in bhyve.
 *
 * mevent_round() makes the calling thread's loop call func(param) after each
 * round: when the handlers of all events that occurred have returned.  A
 * handler can so leave work that takes long until all others have had their
 * turn.  A loop has one such function.  Returns 0, or -1 with errno.
 *
 * mevent_loop() returns the calling thread's loop, for another thread to stop,
 * or NULL with errno.  It is valid as long as the thread exists.
 * mevent_stop() makes mevent_dispatch() return when the current handler does.
 * If the thread is not in mevent_dispatch(), its next call returns at once.
 */
int	mevent_round(void (*func)(void *), void *param);
struct mevent_loop *mevent_loop(void);
void	mevent_stop(struct mevent_loop *loop);

#endif /* !_MEVENT_H_ */
