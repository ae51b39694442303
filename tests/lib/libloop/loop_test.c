/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * lib/libloop.  Handlers end the loops; a loop that does not end
 * fails by Kyua's timeout.
 */

#include <sys/param.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "loop.h"
#include "test.h"
#include "wrap.h"

/* What a handler does, and how often it was called. */
struct seen {
	struct loop_event *ev;
	struct loop_event *other;	/* to delete or disable, if any */
	int		 calls;
	int		 stop_after;	/* calls; 0: never */
	int		 fd;		/* the handler's argument */
	bool		 drain;		/* read a byte */
	bool		 delete_self;
	bool		 disable_self;
	bool		 disable_other;	/* rather than delete it */
	pthread_t	 thread;	/* that called the handler */
};

static void
on_event(int fd, void *param)
{
	struct seen *w;
	char c;

	w = param;
	w->calls++;
	w->fd = fd;
	w->thread = pthread_self();
	if (w->drain)
		ATF_CHECK_EQ(1, read(fd, &c, 1));
	if (w->other != NULL) {
		if (w->disable_other)
			ATF_CHECK_EQ(0, loop_disable(w->other));
		else
			loop_delete(w->other);
		w->other = NULL;
	}
	if (w->delete_self)
		loop_delete(w->ev);
	if (w->disable_self)
		ATF_CHECK_EQ(0, loop_disable(w->ev));
	if (w->calls == w->stop_after)
		loop_stop(loop_self());
}

static void
make_pipe(int fds[2], int bytes)
{
	ATF_REQUIRE_EQ(0, pipe(fds));
	while (bytes-- > 0)
		ATF_REQUIRE_EQ(1, write(fds[1], "x", 1));
}

TEST_WITH(new, "timeout", "60", "The handler of what is new is called once for "
    "what it leaves, until more comes or it is enabled again")
{
	struct seen new = { 0 }, w = { .stop_after = 3 };
	int fds[2], ready[2];

	make_pipe(fds, 2);
	make_pipe(ready, 1);
	new.ev = loop_add(fds[0], LOOP_READ_NEW, on_event, &new);
	w.ev = loop_add(ready[0], LOOP_READ, on_event, &w);
	ATF_REQUIRE(new.ev != NULL && w.ev != NULL);
	loop_run();
	ATF_CHECK_EQ(1, new.calls);
	ATF_CHECK_EQ(1, write(fds[1], "x", 1));
	w.stop_after += 3;
	loop_run();
	ATF_CHECK_EQ(2, new.calls);
	ATF_CHECK_EQ(0, loop_disable(new.ev));
	ATF_CHECK_EQ(0, loop_enable(new.ev));
	w.stop_after += 3;
	loop_run();
	ATF_CHECK_EQ(3, new.calls);
	/* The end, too. */
	ATF_CHECK_EQ(0, close(fds[1]));
	w.stop_after += 3;
	loop_run();
	ATF_CHECK_EQ(4, new.calls);
	loop_delete(new.ev);
	loop_delete(w.ev);
}

static bool full;

WRAP(int, epoll_ctl, int epfd, int op, int fd, struct epoll_event *event)
{
	if (!full || op != EPOLL_CTL_ADD)
		return (__real_epoll_ctl(epfd, op, fd, event));
	errno = ENOSPC;
	return (-1);
}

TEST_WITH(full, "timeout", "60", "A disabled event can be enabled when its "
    "user may watch no more descriptors; a new one cannot be added")
{
	struct seen w = { .stop_after = 1 };
	int fds[2];

	make_pipe(fds, 1);
	w.ev = loop_add_disabled(fds[0], LOOP_READ, on_event, &w);
	ATF_REQUIRE(w.ev != NULL);
	full = true;
	ATF_CHECK_ERRNO(ENOSPC, loop_add(fds[1], LOOP_WRITE, on_event, &w) ==
	    NULL);
	ATF_CHECK_EQ(0, loop_enable(w.ev));
	loop_run();
	ATF_CHECK_EQ(1, w.calls);
	loop_delete(w.ev);
}

TEST_WITH(pair, "timeout", "60", "A descriptor can have one read and one write "
    "event; a regular file has none")
{
	struct seen r = { .drain = true, .stop_after = 1 };
	struct seen w = { .disable_self = true };
	struct loop_event *ev;
	int fd, s[2];

	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	r.ev = loop_add(s[0], LOOP_READ, on_event, &r);
	w.ev = loop_add(s[0], LOOP_WRITE, on_event, &w);
	ATF_REQUIRE(r.ev != NULL && w.ev != NULL);
	ATF_CHECK_EQ(NULL, loop_add(s[0], LOOP_READ, on_event, &r));
	ATF_CHECK_EQ(NULL, loop_add(s[0], LOOP_WRITE, on_event, &w));

	w.stop_after = 1;
	loop_run();
	ATF_CHECK_EQ(1, w.calls);
	ATF_CHECK_EQ(0, r.calls);
	ATF_REQUIRE_EQ(1, write(s[1], "x", 1));
	loop_run();
	ATF_CHECK_EQ(1, r.calls);
	ATF_CHECK_EQ(s[0], r.fd);
	ATF_CHECK_EQ(s[0], w.fd);

	/* Deleting one event must not remove the other one's registration. */
	loop_delete(r.ev);
	w.stop_after = 2;
	ATF_CHECK_EQ(0, loop_enable(w.ev));
	loop_run();
	ATF_CHECK_EQ(2, w.calls);
	loop_delete(w.ev);

	fd = open("file", O_RDWR | O_CREAT, 0600);
	ATF_REQUIRE(fd != -1);
	ev = loop_add(fd, LOOP_READ, on_event, &r);
	ATF_CHECK_EQ(NULL, ev);
	ev = loop_add_disabled(fd, LOOP_READ, on_event, &r);
	ATF_CHECK_EQ_MSG(NULL, ev, "an event that can never be enabled");
}

TEST_WITH(delete_self, "timeout", "60", "A handler deletes its own event and "
    "is not called again")
{
	struct seen once = { .delete_self = true };
	struct seen clock = { .stop_after = 3 };
	int fds[2], ready[2];

	make_pipe(fds, 1);
	make_pipe(ready, 1);
	once.ev = loop_add(fds[0], LOOP_READ, on_event, &once);
	clock.ev = loop_add(ready[0], LOOP_READ, on_event, &clock);
	ATF_REQUIRE(once.ev != NULL && clock.ev != NULL);
	loop_run();
	ATF_CHECK_EQ(1, once.calls);

	/* The descriptor is free for another event. */
	once.stop_after = 2;
	once.ev = loop_add(fds[0], LOOP_READ, on_event, &once);
	ATF_REQUIRE(once.ev != NULL);
	loop_run();
	ATF_CHECK_EQ(2, once.calls);
	loop_delete(clock.ev);
}

/* Two events are ready in the same round; the first called ends the other. */
static void
end_other(bool disable)
{
	struct seen clock = { .stop_after = 3 };
	struct seen w[2];
	int fds[2][2], i, ready[2];

	make_pipe(ready, 1);
	for (i = 0; i < 2; i++) {
		make_pipe(fds[i], 1);
		w[i] = (struct seen){ .disable_other = disable,
		    .disable_self = true };
		w[i].ev = loop_add(fds[i][0], LOOP_READ, on_event, &w[i]);
		ATF_REQUIRE(w[i].ev != NULL);
	}
	w[0].other = w[1].ev;
	w[1].other = w[0].ev;
	clock.ev = loop_add(ready[0], LOOP_READ, on_event, &clock);
	ATF_REQUIRE(clock.ev != NULL);
	loop_run();
	ATF_CHECK_EQ(1, w[0].calls + w[1].calls);

	for (i = 0; i < 2; i++)
		if (disable || w[i].calls == 1)
			loop_delete(w[i].ev);
	loop_delete(clock.ev);
}

TEST_WITH(delete_other, "timeout", "60", "After a handler deletes or disables "
    "another ready event, that event's handler is not called")
{
	end_other(false);
	end_other(true);
}

/* A thread with a loop and an event. */
struct loop_thread {
	pthread_t	 id;
	pthread_mutex_t	 mtx;
	pthread_cond_t	 cond;
	struct loop	*loop;		/* set when it is up */
	struct seen	 w;
	int		 fds[2];
};

static void *
loop_main(void *arg)
{
	struct loop_thread *t;

	t = arg;
	t->w.ev = loop_add_disabled(t->fds[0], LOOP_READ, on_event, &t->w);
	pthread_mutex_lock(&t->mtx);
	t->loop = loop_self();
	pthread_cond_signal(&t->cond);
	pthread_mutex_unlock(&t->mtx);
	loop_run();
	return (NULL);
}

static void
loop_start(struct loop_thread *t)
{
	make_pipe(t->fds, 1);
	ATF_REQUIRE_EQ(0, pthread_mutex_init(&t->mtx, NULL));
	ATF_REQUIRE_EQ(0, pthread_cond_init(&t->cond, NULL));
	ATF_REQUIRE_EQ(0, pthread_create(&t->id, NULL, loop_main, t));
	pthread_mutex_lock(&t->mtx);
	while (t->loop == NULL)
		pthread_cond_wait(&t->cond, &t->mtx);
	pthread_mutex_unlock(&t->mtx);
	ATF_REQUIRE(t->w.ev != NULL);
}

TEST_WITH(threads, "timeout", "60", "Each thread has its own loop, whose "
    "events other threads enable and which they stop")
{
	struct loop_thread t[2] = {
		{ .w = { .stop_after = 3 } }, { .w = { .stop_after = 0 } },
	};
	int i;

	for (i = 0; i < 2; i++)
		loop_start(&t[i]);
	ATF_CHECK(t[0].loop != t[1].loop);
	ATF_CHECK(t[0].loop != loop_self());

	ATF_CHECK_EQ(0, loop_enable(t[0].w.ev));
	ATF_REQUIRE_EQ(0, pthread_join(t[0].id, NULL));
	ATF_CHECK_EQ(3, t[0].w.calls);
	ATF_CHECK(pthread_equal(t[0].w.thread, t[0].id));

	loop_stop(t[1].loop);
	ATF_REQUIRE_EQ(0, pthread_join(t[1].id, NULL));
	ATF_CHECK_EQ(0, t[1].w.calls);

	/* Their threads have ended; the events still must be deleted. */
	for (i = 0; i < 2; i++)
		loop_delete(t[i].w.ev);
}

TEST_WITH(delete_remote, "timeout", "60", "A thread deletes events of another "
    "thread's running loop")
{
	struct loop_thread t = { 0 };
	int i;

	for (i = 0; i < 200; i++) {
		t = (struct loop_thread){ 0 };
		loop_start(&t);
		ATF_CHECK_EQ(0, loop_enable(t.w.ev));
		loop_delete(t.w.ev);
		loop_stop(t.loop);
		ATF_REQUIRE_EQ(0, pthread_join(t.id, NULL));
		ATF_REQUIRE_EQ(0, close(t.fds[0]));
		ATF_REQUIRE_EQ(0, close(t.fds[1]));
		pthread_cond_destroy(&t.cond);
		pthread_mutex_destroy(&t.mtx);
	}
}

TEST_PROGRAM
