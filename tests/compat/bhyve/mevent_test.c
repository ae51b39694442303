/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * compat/bhyve/mevent.c.  Handlers end the loops; a loop that does not end
 * fails by Kyua's timeout.
 */

#include <sys/cdefs.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include <atf-c.h>

#include "mevent.h"
#include "test.h"

/* What a handler does, and how often it was called. */
struct watch {
	struct mevent	*ev;
	struct mevent	*other;		/* to delete or disable, if any */
	int		 calls;
	int		 stop_after;	/* calls; 0: never */
	int		 fd;		/* the handler's argument */
	enum ev_type	 type;
	bool		 drain;		/* read a byte */
	bool		 delete_self;
	bool		 disable_self;
	bool		 disable_other;	/* rather than delete it */
	pthread_t	 thread;	/* that called the handler */
};

static void
on_event(int fd, enum ev_type type, void *param)
{
	struct watch *w;
	char c;

	w = param;
	w->calls++;
	w->fd = fd;
	w->type = type;
	w->thread = pthread_self();
	if (w->drain)
		ATF_CHECK_EQ(1, read(fd, &c, 1));
	if (w->other != NULL) {
		ATF_CHECK_EQ(0, w->disable_other ? mevent_disable(w->other) :
		    mevent_delete(w->other));
		w->other = NULL;
	}
	if (w->delete_self)
		ATF_CHECK_EQ(0, mevent_delete(w->ev));
	if (w->disable_self)
		ATF_CHECK_EQ(0, mevent_disable(w->ev));
	if (w->calls == w->stop_after)
		mevent_stop(mevent_loop());
}

static void
make_pipe(int fds[2], int bytes)
{
	ATF_REQUIRE_EQ(0, pipe(fds));
	while (bytes-- > 0)
		ATF_REQUIRE_EQ(1, write(fds[1], "x", 1));
}

TEST_WITH(level, "timeout", "60", "A handler is called while its descriptor is "
    "readable")
{
	struct watch w = { .stop_after = 3, .drain = true };
	char c;
	int fds[2];

	make_pipe(fds, 4);
	w.ev = mevent_add(fds[0], EVF_READ, on_event, &w);
	ATF_REQUIRE(w.ev != NULL);
	mevent_dispatch();
	ATF_CHECK_EQ(3, w.calls);
	ATF_CHECK_EQ(fds[0], w.fd);
	ATF_CHECK_EQ(EVF_READ, w.type);
	ATF_CHECK_EQ_MSG(1, read(fds[0], &c, 1), "stopped at once");
	ATF_CHECK_EQ(0, mevent_delete(w.ev));
}

TEST_WITH(disabled, "timeout", "60", "The handler of a disabled event is not "
    "called, not even for a hangup, until it is enabled")
{
	struct watch off = { 0 };
	struct watch on = { .stop_after = 5 };
	int hangup[2], ready[2];

	make_pipe(hangup, 0);
	ATF_REQUIRE_EQ(0, close(hangup[1]));
	make_pipe(ready, 1);
	off.ev = mevent_add_disabled(hangup[0], EVF_READ, on_event, &off);
	on.ev = mevent_add(ready[0], EVF_READ, on_event, &on);
	ATF_REQUIRE(off.ev != NULL && on.ev != NULL);
	mevent_dispatch();
	ATF_CHECK_EQ(0, off.calls);
	ATF_CHECK_EQ(5, on.calls);

	ATF_CHECK_EQ(0, mevent_disable(on.ev));
	ATF_CHECK_EQ(0, mevent_disable(on.ev));
	ATF_CHECK_EQ(0, mevent_enable(off.ev));
	ATF_CHECK_EQ(0, mevent_enable(off.ev));
	off.stop_after = 2;
	mevent_dispatch();
	ATF_CHECK_EQ(2, off.calls);
	ATF_CHECK_EQ(5, on.calls);
	ATF_CHECK_EQ(0, mevent_delete(off.ev));
	ATF_CHECK_EQ(0, mevent_delete(on.ev));
}

TEST_WITH(pair, "timeout", "60", "A descriptor can have one read and one write "
    "event; a regular file has none")
{
	struct watch r = { .drain = true, .stop_after = 1 };
	struct watch w = { .disable_self = true };
	struct mevent *ev;
	int fd, s[2];

	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	r.ev = mevent_add(s[0], EVF_READ, on_event, &r);
	w.ev = mevent_add(s[0], EVF_WRITE, on_event, &w);
	ATF_REQUIRE(r.ev != NULL && w.ev != NULL);
	ATF_CHECK_EQ(NULL, mevent_add(s[0], EVF_READ, on_event, &r));
	ATF_CHECK_EQ(NULL, mevent_add(s[0], EVF_WRITE, on_event, &w));

	w.stop_after = 1;
	mevent_dispatch();
	ATF_CHECK_EQ(1, w.calls);
	ATF_CHECK_EQ(0, r.calls);
	ATF_REQUIRE_EQ(1, write(s[1], "x", 1));
	mevent_dispatch();
	ATF_CHECK_EQ(1, r.calls);
	ATF_CHECK_EQ(s[0], r.fd);
	ATF_CHECK_EQ(s[0], w.fd);

	/* Deleting one event must not remove the other one's registration. */
	ATF_CHECK_EQ(0, mevent_delete(r.ev));
	w.stop_after = 2;
	ATF_CHECK_EQ(0, mevent_enable(w.ev));
	mevent_dispatch();
	ATF_CHECK_EQ(2, w.calls);
	ATF_CHECK_EQ(0, mevent_delete(w.ev));

	fd = open("file", O_RDWR | O_CREAT, 0600);
	ATF_REQUIRE(fd != -1);
	ev = mevent_add(fd, EVF_READ, on_event, &r);
	ATF_CHECK_EQ(NULL, ev);
	ev = mevent_add_disabled(fd, EVF_READ, on_event, &r);
	ATF_CHECK_EQ_MSG(NULL, ev, "an event that can never be enabled");
}

TEST_WITH(timer, "timeout", "60", "Timers fire periodically, several with the "
    "same period, and change their period")
{
	struct watch a = { .stop_after = 3 };
	struct watch b = { .stop_after = 3 };
	struct watch never = { 0 };
	int calls;

	a.ev = mevent_add(1, EVF_TIMER, on_event, &a);
	b.ev = mevent_add(1, EVF_TIMER, on_event, &b);
	never.ev = mevent_add(1000 * 1000, EVF_TIMER, on_event, &never);
	ATF_REQUIRE(a.ev != NULL && b.ev != NULL && never.ev != NULL);
	ATF_CHECK_EQ(NULL, mevent_add(0, EVF_TIMER, on_event, &a));
	/* Each of the two stops the loop once. */
	mevent_dispatch();
	mevent_dispatch();
	ATF_CHECK(a.calls >= 3);
	ATF_CHECK(b.calls >= 3);
	ATF_CHECK_EQ(0, never.calls);
	ATF_CHECK_EQ(EVF_TIMER, a.type);

	ATF_CHECK_EQ(0, mevent_timer_update(a.ev, 1000 * 1000));
	ATF_CHECK_EQ(0, mevent_timer_update(never.ev, 1));
	ATF_CHECK_EQ(-1, mevent_timer_update(never.ev, 0));
	calls = a.calls;
	never.stop_after = 2;
	mevent_dispatch();
	ATF_CHECK_EQ(calls, a.calls);
	ATF_CHECK_EQ(2, never.calls);
	ATF_CHECK_EQ(0, mevent_delete(a.ev));
	ATF_CHECK_EQ(0, mevent_delete(b.ev));
	ATF_CHECK_EQ(0, mevent_delete(never.ev));
}

TEST_WITH(signal, "timeout", "60", "A signal calls its event's handler once "
    "instead of its action")
{
	struct watch w = { .stop_after = 1 };

	w.ev = mevent_add(SIGTERM, EVF_SIGNAL, on_event, &w);
	ATF_REQUIRE(w.ev != NULL);
	ATF_REQUIRE_EQ(0, kill(getpid(), SIGTERM));
	mevent_dispatch();
	ATF_CHECK_EQ(1, w.calls);
	ATF_CHECK_EQ(SIGTERM, w.fd);
	ATF_CHECK_EQ(EVF_SIGNAL, w.type);

	w.stop_after = 2;
	ATF_REQUIRE_EQ(0, kill(getpid(), SIGTERM));
	mevent_dispatch();
	ATF_CHECK_EQ(2, w.calls);
	ATF_CHECK_EQ(0, mevent_delete(w.ev));
}

TEST_WITH(delete_self, "timeout", "60", "A handler deletes its own event and "
    "is not called again")
{
	struct watch once = { .delete_self = true };
	struct watch clock = { .stop_after = 3 };
	int fds[2];

	make_pipe(fds, 1);
	once.ev = mevent_add(fds[0], EVF_READ, on_event, &once);
	clock.ev = mevent_add(1, EVF_TIMER, on_event, &clock);
	ATF_REQUIRE(once.ev != NULL && clock.ev != NULL);
	mevent_dispatch();
	ATF_CHECK_EQ(1, once.calls);

	/* The descriptor is free for another event. */
	once.stop_after = 2;
	once.ev = mevent_add(fds[0], EVF_READ, on_event, &once);
	ATF_REQUIRE(once.ev != NULL);
	mevent_dispatch();
	ATF_CHECK_EQ(2, once.calls);
	ATF_CHECK_EQ(0, mevent_delete(clock.ev));
}

/* Two events are ready in the same round; the first called ends the other. */
static void
end_other(bool disable)
{
	struct watch clock = { .stop_after = 3 };
	struct watch w[2];
	int fds[2][2], i;

	for (i = 0; i < 2; i++) {
		make_pipe(fds[i], 1);
		w[i] = (struct watch){ .disable_other = disable,
		    .disable_self = true };
		w[i].ev = mevent_add(fds[i][0], EVF_READ, on_event, &w[i]);
		ATF_REQUIRE(w[i].ev != NULL);
	}
	w[0].other = w[1].ev;
	w[1].other = w[0].ev;
	clock.ev = mevent_add(1, EVF_TIMER, on_event, &clock);
	ATF_REQUIRE(clock.ev != NULL);
	mevent_dispatch();
	ATF_CHECK_EQ(1, w[0].calls + w[1].calls);

	for (i = 0; i < 2; i++)
		if (disable || w[i].calls == 1)
			ATF_CHECK_EQ(0, mevent_delete(w[i].ev));
	ATF_CHECK_EQ(0, mevent_delete(clock.ev));
}

TEST_WITH(delete_other, "timeout", "60", "After a handler deletes or disables "
    "another ready event, that event's handler is not called")
{
	end_other(false);
	end_other(true);
}

TEST_WITH(delete_close, "timeout", "60", "mevent_delete_close() closes the "
    "descriptor, mevent_delete() does not")
{
	struct watch a = { 0 }, b = { 0 };
	int fds[2];

	make_pipe(fds, 1);
	a.ev = mevent_add(fds[0], EVF_READ, on_event, &a);
	b.ev = mevent_add(fds[1], EVF_WRITE, on_event, &b);
	ATF_REQUIRE(a.ev != NULL && b.ev != NULL);
	ATF_CHECK_EQ(0, mevent_delete(a.ev));
	ATF_CHECK_EQ(0, mevent_delete_close(b.ev));
	ATF_CHECK(fcntl(fds[0], F_GETFD) != -1);
	ATF_CHECK_EQ(-1, fcntl(fds[1], F_GETFD));
	ATF_CHECK_EQ(EBADF, errno);
}

/* Two events that occur together, and what their handlers have left to do. */
static struct watch pair_of[2];
static int rounds;

static void
on_round(void *param)
{
	ATF_CHECK_EQ(&rounds, param);
	rounds++;
	ATF_CHECK_EQ(rounds, pair_of[0].calls);
	ATF_CHECK_EQ(rounds, pair_of[1].calls);
	if (rounds == 4)
		mevent_stop(mevent_loop());
}

TEST_WITH(round, "timeout", "60", "mevent_round()'s function is called after "
    "the handlers of all events that occurred")
{
	int fds[2], i;

	for (i = 0; i < 2; i++) {
		make_pipe(fds, 1);
		pair_of[i].ev = mevent_add(fds[0], EVF_READ, on_event,
		    &pair_of[i]);
		ATF_REQUIRE(pair_of[i].ev != NULL);
	}
	ATF_REQUIRE_EQ(0, mevent_round(on_round, &rounds));
	mevent_dispatch();
	ATF_CHECK_EQ(4, rounds);
	for (i = 0; i < 2; i++)
		ATF_CHECK_EQ(0, mevent_delete(pair_of[i].ev));
}

TEST_WITH(stop_before, "timeout", "60", "mevent_stop() before "
    "mevent_dispatch() makes the next call return at once")
{
	struct watch w = { .stop_after = 2 };
	int fds[2];

	make_pipe(fds, 1);
	w.ev = mevent_add(fds[0], EVF_READ, on_event, &w);
	ATF_REQUIRE(w.ev != NULL);
	mevent_stop(mevent_loop());
	mevent_dispatch();
	ATF_CHECK_EQ(0, w.calls);
	mevent_dispatch();
	ATF_CHECK_EQ(2, w.calls);
	ATF_CHECK_EQ(0, mevent_delete(w.ev));
}

/* A thread with a loop and an event. */
struct loop_thread {
	pthread_t	 id;
	pthread_mutex_t	 mtx;
	pthread_cond_t	 cond;
	struct mevent_loop *loop;	/* set when it is up */
	struct watch	 w;
	int		 fds[2];
};

static void *
loop_main(void *arg)
{
	struct loop_thread *t;

	t = arg;
	t->w.ev = mevent_add_disabled(t->fds[0], EVF_READ, on_event, &t->w);
	pthread_mutex_lock(&t->mtx);
	t->loop = mevent_loop();
	pthread_cond_signal(&t->cond);
	pthread_mutex_unlock(&t->mtx);
	mevent_dispatch();
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
	ATF_CHECK(t[0].loop != mevent_loop());

	ATF_CHECK_EQ(0, mevent_enable(t[0].w.ev));
	ATF_REQUIRE_EQ(0, pthread_join(t[0].id, NULL));
	ATF_CHECK_EQ(3, t[0].w.calls);
	ATF_CHECK(pthread_equal(t[0].w.thread, t[0].id));

	mevent_stop(t[1].loop);
	ATF_REQUIRE_EQ(0, pthread_join(t[1].id, NULL));
	ATF_CHECK_EQ(0, t[1].w.calls);

	/* Their threads have ended; the events still must be deleted. */
	for (i = 0; i < 2; i++)
		ATF_CHECK_EQ(0, mevent_delete_close(t[i].w.ev));
	ATF_CHECK_EQ(-1, fcntl(t[0].fds[0], F_GETFD));
}

TEST_WITH(delete_remote, "timeout", "60", "A thread deletes events of another "
    "thread's running loop")
{
	struct loop_thread t = { 0 };
	int i;

	for (i = 0; i < 200; i++) {
		t = (struct loop_thread){ 0 };
		loop_start(&t);
		ATF_CHECK_EQ(0, mevent_enable(t.w.ev));
		ATF_CHECK_EQ(0, mevent_delete_close(t.w.ev));
		mevent_stop(t.loop);
		ATF_REQUIRE_EQ(0, pthread_join(t.id, NULL));
		ATF_CHECK_EQ(-1, fcntl(t.fds[0], F_GETFD));
		ATF_REQUIRE_EQ(0, close(t.fds[1]));
		pthread_cond_destroy(&t.cond);
		pthread_mutex_destroy(&t.mtx);
	}
}

TEST_PROGRAM
