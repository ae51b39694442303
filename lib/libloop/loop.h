/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * An event loop for each thread, over epoll(7).
 *
 * An event belongs to the loop of the thread that added it, and loop_run()
 * calls its handler in that thread.  Events are persistent.  They are level
 * triggered: a handler is called again until it removes the cause; those of the
 * type LOOP_READ_NEW are edge triggered.  Handlers may add, enable, disable and
 * delete any event, including their own.
 *
 * Any thread may call loop_enable(), loop_disable(), loop_delete() and
 * loop_stop(); the other functions are the loop's own thread's.  If that thread
 * calls loop_disable() or loop_delete(), the handler is not called after that.
 * If another thread does, the handler may still run once, or be running, when
 * the function returns.
 */

#ifndef _LOOP_H_
#define	_LOOP_H_

#include <stdint.h>

enum loop_type {
	LOOP_READ,	/* fd is readable, or at end of file */
	LOOP_WRITE,	/* fd is writable */
	LOOP_READ_NEW	/* fd is readable when the event is enabled, and each
			   time that more data has come */
};

struct loop;
struct loop_event;

/*
 * Call func(fd, arg) when the event occurs; after loop_add_disabled(), not
 * before loop_enable().  A loop accepts a pair of fd and type once.  Returns
 * NULL with errno: EEXIST if the pair exists, EPERM if epoll(7) does not accept
 * the fd (a regular file), or that of epoll_ctl(2) or malloc(3).
 */
struct loop_event *loop_add(int fd, enum loop_type type,
	    void (*func)(int fd, void *arg), void *arg);
struct loop_event *loop_add_disabled(int fd, enum loop_type type,
	    void (*func)(int fd, void *arg), void *arg);

/*
 * Have the handler called, or not.  Returns 0, or -1 with the errno of
 * epoll_ctl(2), which is never a lack of memory.
 */
int	loop_enable(struct loop_event *ev);
int	loop_disable(struct loop_event *ev);

/* Delete the event; the caller must not use it again. */
void	loop_delete(struct loop_event *ev);

/*
 * Have the loop call func(arg) after each round: when the handlers of all
 * events that occurred have returned.  So a handler can leave work that takes
 * long until all others have had their turn.  A loop has one such function.
 * Returns 0, or -1 with errno.
 */
int	loop_round(void (*func)(void *arg), void *arg);

/*
 * Have the next round come after so many milliseconds, if no event comes
 * before; 0: after the events that there are.  Of several calls in a round the
 * shortest time counts.  The loop's own thread.
 */
void	loop_round_within(int ms);

/*
 * Have the loop look for an event for up to `ns' nanoseconds before it waits;
 * 0, the default: do not.  The loop looks for as long as that has paid lately,
 * and only while no other thread needs the processor.  The loop's own thread.
 */
void	loop_poll(uint64_t ns);

/*
 * Return the calling thread's loop, for another thread to stop, or NULL with
 * errno.  The loop is valid as long as the thread exists.
 */
struct loop *loop_self(void);

/* Run the calling thread's loop until loop_stop().  Exits if it cannot. */
void	loop_run(void);

/*
 * Have loop_run() return when the current handler does.  If the thread is not
 * in loop_run(), its next call returns at once.
 */
void	loop_stop(struct loop *loop);

#endif /* !_LOOP_H_ */
