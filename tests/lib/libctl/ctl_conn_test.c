/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Connections of the control socket: who gets a place, how one is set up and
 * ends, who waits for whom, and what a request's packets are received and
 * answered with.  All calls are this thread's.
 */

#include <sys/param.h>
#include <sys/mman.h>

#include <fcntl.h>

#include <atf-c.h>

#include "ctl.c"
#include "wrap.h"

#include "test.h"

#define	FD	1000		/* no descriptor: calls are taken below */

/*
 * Calls, what they return, and how often they were made.
 */

static struct {
	unsigned int	attrs;		/* initialized, not destroyed */
	unsigned int	broadcasts;
	unsigned int	created, create_error;
	unsigned int	waits;
	unsigned int	polls;
	unsigned int	sends;
	unsigned int	serves;
	unsigned int	mems;		/* allocated, not freed */
	unsigned int	pauses, accepts, ended, closed, drops;
	int		closed_fd, ended_fd;
	bool		no_memory, close_full;
} c;
static struct ctl_who who;
static int	who_error;
static void	(*on_wait)(void);
static void	(*on_create)(struct ctl_conn *cc, const pthread_attr_t *attr);
static struct ctl_conn *const conns = ctl_conns;
static struct ctl_conn *const last = &ctl_conns[CTL_MAX - 1];

WRAP(int, ctl_who, int fd, struct ctl_who *whop)
{
	ATF_CHECK(fd == FD);
	if (who_error == 0)
		*whop = who;
	return (who_error);
}

WRAP(void, vale_grant_serve, struct vale_grant *gr)
{
	ATF_CHECK(gr->gr_port != NULL);
	c.serves++;
	/* It is not closed as a port. */
	gr->gr_port = NULL;
}

/* The packet's is followed, and preceded, by no memory. */
static char	*wire_at;

WRAP(void *, malloc, size_t size)
{
	const size_t page = 65536;

	if (size < VALE_WIRE_MAX)
		return (__real_malloc(size));
	if (c.no_memory)
		return (NULL);
	ATF_REQUIRE_EQ(VALE_WIRE_MAX, size);
	wire_at = mmap(NULL, size + 2 * page, PROT_NONE, MAP_PRIVATE |
	    MAP_ANONYMOUS, -1, 0);
	ATF_REQUIRE(wire_at != MAP_FAILED);
	wire_at += page;
	ATF_REQUIRE_EQ(0, mprotect(wire_at, size, PROT_READ | PROT_WRITE));
	c.mems++;
	return (wire_at);
}

WRAP(void, free, void *p)
{
	if (p == NULL || p != wire_at) {
		__real_free(p);
		return;
	}
	ATF_REQUIRE_EQ(0, mprotect(wire_at, VALE_WIRE_MAX, PROT_NONE));
	wire_at = NULL;
	c.mems--;
}

WRAP(int, pthread_attr_init, pthread_attr_t *attr)
{
	c.attrs++;
	return (__real_pthread_attr_init(attr));
}

WRAP(int, pthread_attr_destroy, pthread_attr_t *attr)
{
	c.attrs--;
	return (__real_pthread_attr_destroy(attr));
}

static bool
locked(void)
{
	if (pthread_mutex_trylock(&conns_lock) == EBUSY)
		return (true);
	pthread_mutex_unlock(&conns_lock);
	return (false);
}

WRAP(int, pthread_cond_broadcast, pthread_cond_t *cond)
{
	ATF_CHECK(cond == &conns_left);
	ATF_CHECK(locked());
	/* Who waits finds that it has gone. */
	ATF_CHECK(!conns[0].cc_open);
	ATF_CHECK_EQ(0, conns[0].cc_used);
	ATF_CHECK_EQ(0, c.mems);
	c.broadcasts++;
	return (0);
}

static bool	late;			/* the time is over */

WRAP(int, pthread_cond_clockwait, pthread_cond_t *cond, pthread_mutex_t *m,
    clockid_t clock, const struct timespec *until)
{
	struct timespec now;

	clock_gettime(clock, &now);
	ATF_CHECK(clock == CLOCK_MONOTONIC &&
	    until->tv_sec <= now.tv_sec + CTL_SETTLE_S);
	ATF_CHECK(cond == &conns_left && m == &conns_lock);
	ATF_CHECK(locked());
	ATF_REQUIRE_MSG(++c.waits < 1000, "waits for ever");
	if (late)
		return (ETIMEDOUT);
	on_wait();
	return (0);
}

WRAP(bool, peer_close, int fd)
{
	c.closed++;
	c.closed_fd = fd;
	return (!c.close_full);
}

WRAP(void, peer_accept_end, int fd)
{
	c.ended++;
	c.ended_fd = fd;
}

/*
 * Setting up a connection.
 */

static void
check_attr(struct ctl_conn *cc, const pthread_attr_t *attr)
{
	size_t size;
	int state;

	ATF_REQUIRE(attr != NULL);
	ATF_REQUIRE_EQ(0, pthread_attr_getdetachstate(attr, &state));
	ATF_CHECK_EQ(PTHREAD_CREATE_DETACHED, state);
	ATF_REQUIRE_EQ(0, pthread_attr_getstacksize(attr, &size));
	ATF_CHECK_EQ(256 * 1024, size);
	ATF_CHECK_EQ(1, c.attrs);
	ATF_CHECK_EQ(1, cc->cc_used);
	ATF_CHECK(cc->cc_open);
	ATF_CHECK(!locked());
}

static void *(*created_start)(void *);
static struct ctl_conn *created;

WRAP(int, pthread_create, pthread_t *thread __unused,
    const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	created = arg;
	created_start = start;
	c.created++;
	if (on_create != NULL)
		on_create(arg, attr);
	return (c.create_error);
}

/* Slots are taken by connections of a user. */
static void
take(unsigned int from, unsigned int n, uid_t uid, bool admin)
{
	while (n-- > 0)
		conns[from++] = (struct ctl_conn){ .cc_used = 1, .cc_fd = -1,
		    .cc_who = { uid, admin } };
}

static void
is_user(uid_t uid)
{
	who = (struct ctl_who){ uid, false };
}

static void
is_admin(void)
{
	who = (struct ctl_who){ 0, true };
}

TEST(sets, "What a connection begins with does not depend on who had its place")
{
	struct ctl_conn *cc = last - CTL_ADMIN;
	const int serial = 1;

	memset(conns, 0xff, sizeof(ctl_conns));
	take(0, CTL_MAX, 1, true);
	memset(cc, 0xff, sizeof(*cc));
	cc->cc_used = 0;
	cc->cc_grant.gr_npassed = 0;
	on_create = check_attr;
	is_user(7);
	ATF_REQUIRE_EQ(0, ctl_accept(FD, false));
	ATF_CHECK_EQ(1, c.created);
	ATF_CHECK(created == cc && created_start == ctl_conn_thread);
	ATF_CHECK_EQ(0, c.attrs);
	ATF_CHECK_EQ(7, cc->cc_who.cw_uid);
	ATF_CHECK(!cc->cc_who.cw_admin);
	ATF_CHECK(!cc->cc_reserved);
	ATF_CHECK(cc->cc_wire == (void *)wire_at);
	ATF_CHECK(cc->cc_body == wire_at + sizeof(struct vale_wire));
	ATF_CHECK_EQ(FD, cc->cc_fd);
	ATF_CHECK(!vale_grant_any(&cc->cc_grant));
	ATF_CHECK_EQ(-1, cc->cc_grant.gr_window);
	ATF_CHECK_EQ(0, cc->cc_grant.gr_nfds);
	ATF_CHECK_EQ(serial, cc->cc_serial);
	/* The next one is another, in whatever place. */
	take(cc - conns, 1, 7, false);
	cc[1].cc_used = 0;
	is_admin();
	ATF_REQUIRE_EQ(0, ctl_accept(FD, true));
	ATF_CHECK(created == cc + 1);
	ATF_CHECK(cc[1].cc_reserved && cc[1].cc_who.cw_admin);
	ATF_CHECK_EQ(serial + 1, cc[1].cc_serial);
}

TEST(refused, "A connection that cannot be served takes no place")
{
	is_user(7);
	who_error = ENOTCONN;
	ATF_CHECK_EQ(ENOTCONN, ctl_accept(FD, false));
	who_error = 0;
	ATF_CHECK_EQ(EMFILE, ctl_accept(FD, true));
	c.no_memory = true;
	ATF_CHECK_EQ(ENOMEM, ctl_accept(FD, false));
	c.no_memory = false;
	ATF_CHECK_EQ(0, c.created);
	c.create_error = EAGAIN;
	on_create = check_attr;
	ATF_CHECK_EQ(EAGAIN, ctl_accept(FD, false));
	ATF_CHECK_EQ(1, c.created);
	ATF_CHECK_EQ(0, created->cc_used);
	ATF_CHECK(!created->cc_open);
	/* Who has seen that it was there waits no longer. */
	ATF_CHECK_EQ(1, c.broadcasts);
	ATF_CHECK_EQ(0, c.mems);
	ATF_CHECK_EQ(0, c.attrs);
	ATF_CHECK(!locked());
}

TEST(places, "The last places are for administrators; a user has half of the "
    "others, whatever administrators have")
{
	const unsigned int users = CTL_MAX - CTL_ADMIN;

	ATF_CHECK_EQ(156, CTL_USER_MAX);
	is_user(7);
	ATF_CHECK(conn_free(&who) == &conns[users - 1]);
	take(0, CTL_USER_MAX - 1, 7, false);
	ATF_CHECK(conn_free(&who) != NULL);
	take(CTL_USER_MAX - 1, 1, 7, false);
	ATF_CHECK(conn_free(&who) == NULL);
	ATF_CHECK_EQ(EAGAIN, ctl_accept(FD, false));
	is_user(8);
	ATF_CHECK(conn_free(&who) != NULL);
	/* An administrator with that uid is none of its connections. */
	take(CTL_USER_MAX - 1, 1, 7, true);
	is_user(7);
	ATF_CHECK(conn_free(&who) != NULL);
	/* The places of the others: the last, and none. */
	take(0, users - 1, 1, false);
	is_user(8);
	ATF_CHECK(conn_free(&who) == &conns[users - 1]);
	take(users - 1, 1, 1, false);
	ATF_CHECK(conn_free(&who) == NULL);
	is_admin();
	ATF_CHECK(conn_free(&who) == last);
	take(users, CTL_ADMIN - 1, 0, true);
	ATF_CHECK(conn_free(&who) == last);
	take(CTL_MAX - 1, 1, 0, true);
	ATF_CHECK(conn_free(&who) == NULL);
	conns[0].cc_used = 0;
	ATF_CHECK(conn_free(&who) == &conns[0]);
	take(0, CTL_USER_MAX, 0, false);
	conns[CTL_MAX - 2].cc_used = 0;
	ATF_CHECK(conn_free(&who) == &conns[CTL_MAX - 2]);
	/* One has as many as there are. */
	take(0, CTL_MAX, 0, true);
	last->cc_used = 0;
	ATF_CHECK(conn_free(&who) == last);
}

/*
 * Waiting for connections whose clients have left.
 */

static int	ends[2][2];	/* of clients that are there, and have left */

static void
ends_open(void)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0,
		    ends[i]));
	close(ends[1][1]);
}

/* A connection is served. */
static void
serve(struct ctl_conn *cc, bool left, uint64_t serial)
{
	*cc = (struct ctl_conn){ .cc_used = 1, .cc_open = true,
	    .cc_fd = ends[left][0], .cc_serial = serial };
}

static struct ctl_conn *leaving[4];

/* The first of them closes; one place is taken again. */
static void
leave_one(void)
{
	unsigned int i;

	/* Some wake up for others. */
	if (c.waits % 2 == 1)
		return;
	for (i = 0; i < nitems(leaving); i++)
		if (leaving[i] != NULL) {
			if (leaving[i] == &conns[5])
				serve(leaving[i], true, 1000);
			else
				leaving[i]->cc_open = false;
			leaving[i] = NULL;
			return;
		}
	atf_tc_fail("waits for nobody");
}

TEST(settles, "Who asks waits for all connections whose clients have left, and "
    "for no other")
{
	ends_open();
	on_wait = leave_one;
	ctl_settle(NULL);
	serve(&conns[0], false, 1);
	serve(&conns[1], true, 2);
	conns[1].cc_open = false;
	ctl_settle(NULL);
	ATF_CHECK_EQ(0, c.waits);
	serve(leaving[0] = &conns[0], true, 2);
	ctl_settle(NULL);
	ATF_CHECK_EQ(2, c.waits);
	c.waits = 0;
	serve(leaving[0] = &conns[0], true, 3);
	serve(leaving[1] = &conns[5], true, 4);
	serve(&conns[6], false, 5);
	serve(leaving[2] = last, true, 6);
	ctl_settle(&conns[6]);
	ATF_CHECK_EQ(6, c.waits);
	ATF_CHECK(!locked());
	/* The one that came since is another: now it is waited for, */
	leaving[0] = &conns[5];
	conns[5].cc_serial = 999;
	ctl_settle(NULL);
	ATF_CHECK_EQ(8, c.waits);
	/* and not by itself, nor by who has left. */
	serve(&conns[5], true, 7);
	ctl_settle(&conns[5]);
	serve(last, true, 8);
	ctl_settle(&conns[5]);
	ATF_CHECK_EQ(8, c.waits);
	/* One that has left waits for nobody, one that is there does. */
	serve(&conns[5], false, 7);
	leaving[0] = last;
	ctl_settle(&conns[5]);
	ATF_CHECK_EQ(10, c.waits);
}

TEST(settles_late, "A connection that does not end is waited for once, and not "
    "for long")
{
	ends_open();
	serve(&conns[0], true, 1);
	serve(&conns[1], true, 2);
	late = true;
	ctl_settle(NULL);
	ATF_CHECK_EQ(1, c.waits);
	ctl_settle(NULL);
	ATF_CHECK_EQ(1, c.waits);
	/* Another one is. */
	late = false;
	on_wait = leave_one;
	serve(leaving[0] = &conns[2], true, 3);
	ctl_settle(NULL);
	ATF_CHECK_EQ(2, c.waits);
	/* So is one that has the place of one that was waited for. */
	conn_open(leaving[0] = &conns[0], true);
	ctl_settle(NULL);
	ATF_CHECK_EQ(4, c.waits);
	ATF_CHECK(!locked());
}

/* Who waited has a place. */
static void
leave_place(void)
{
	conns[3].cc_open = false;
	conns[3].cc_used = 0;
}

TEST(settles_place, "A connection that finds no place waits for those whose "
    "clients have left, and looks again")
{
	ends_open();
	take(0, CTL_MAX, 1, true);
	serve(&conns[3], true, 9);
	on_wait = leave_place;
	is_admin();
	ATF_CHECK_EQ(0, ctl_accept(FD, false));
	ATF_CHECK_EQ(1, c.waits);
	ATF_CHECK(created == &conns[3]);
	/* If there is one, it does not. */
	serve(&conns[4], true, 10);
	conns[3].cc_used = 0;
	ATF_CHECK_EQ(0, ctl_accept(FD, false));
	ATF_CHECK_EQ(1, c.waits);
}

/*
 * Packets.
 */

static ssize_t	recv_n;
static int	recv_errno;
static ssize_t	send_n[3];
static int	send_errno;
static size_t	sent_len;

WRAP(ssize_t, recvmsg, int fd, struct msghdr *msg, int flags)
{
	ATF_CHECK_EQ(FD, fd);
	ATF_CHECK_EQ(MSG_DONTWAIT | MSG_CMSG_CLOEXEC, flags);
	ATF_CHECK_EQ(1, msg->msg_iovlen);
	ATF_CHECK(msg->msg_iov[0].iov_base == wire_at);
	ATF_CHECK_EQ(VALE_WIRE_MAX, msg->msg_iov[0].iov_len);
	ATF_CHECK(msg->msg_name == NULL);
	ATF_CHECK_EQ(PEER_FDS_SPACE(VALE_WIRE_FDS), msg->msg_controllen);
	msg->msg_controllen = 0;
	errno = recv_errno;
	/* These are over the next time. */
	if (recv_errno == EINTR || recv_errno == ENOMEM)
		recv_errno = EAGAIN;
	return (recv_n);
}

WRAP(ssize_t, send, int fd, const void *buf, size_t len, int flags)
{
	ATF_CHECK_EQ(FD, fd);
	ATF_CHECK(buf == wire_at);
	ATF_CHECK_EQ(MSG_NOSIGNAL | MSG_DONTWAIT, flags);
	ATF_REQUIRE_MSG(c.sends < nitems(send_n), "sent too often");
	sent_len = len;
	errno = send_errno;
	return (send_n[c.sends++]);
}

/* The connection of a client; its packets are made below. */
static struct ctl_conn *
connect_one(void)
{
	is_user(7);
	take(1, CTL_MAX - 1, 1, true);
	ATF_REQUIRE_EQ(0, ctl_accept(FD, false));
	ATF_REQUIRE(created == &conns[0]);
	return (created);
}

TEST(receives, "A receive that fails for a moment is no end, and answers "
    "nothing; all others are")
{
	static const struct {
		int	error;
		bool	goes_on;
	} errors[] = {
		{ EINTR, true }, { EAGAIN, true }, { ECONNRESET, false },
		{ ENOMEM, true }, { EINTR + 1, false }, { EAGAIN - 1, false },
	};
	struct ctl_conn *cc = connect_one();
	unsigned int i;

	recv_n = -1;
	for (i = 0; i < nitems(errors); i++) {
		recv_errno = errors[i].error;
		ATF_CHECK_EQ(errors[i].goes_on, ctl_serve_request(cc));
	}
	recv_n = 0;
	ATF_CHECK(!ctl_serve_request(cc));
	ATF_CHECK_EQ(0, c.sends);
}

TEST(replies, "A reply that a signal interrupts is sent again; one that the "
    "client does not take ends the connection")
{
	static const struct {
		ssize_t	n[3];
		int	error;
		unsigned int calls;
		bool	goes_on;
	} replies[] = {
		{ { 224 }, 0, 1, true },
		{ { 224 }, EINTR, 1, true },
		{ { -1, -1, 224 }, EINTR, 3, true },
		{ { -1 }, EAGAIN, 1, false },
		{ { -1 }, EPIPE, 1, false },
		{ { -1 }, EINTR + 1, 1, false },
	};
	struct ctl_conn *cc = connect_one();
	unsigned int i;

	for (i = 0; i < nitems(replies); i++) {
		c.sends = 0;
		/* No request: it is answered with an error. */
		recv_n = 1;
		memcpy(send_n, replies[i].n, sizeof(send_n));
		send_errno = replies[i].error;
		ATF_CHECK_EQ(replies[i].goes_on, ctl_serve_request(cc));
		ATF_CHECK_EQ(replies[i].calls, c.sends);
		ATF_CHECK_EQ(sizeof(struct vale_wire), sent_len);
	}
}

TEST(clears, "What a packet does not have is zero in the reply")
{
	struct ctl_conn *cc = connect_one();
	struct vale_wire want;
	size_t i;

	memset(wire_at, 'x', VALE_WIRE_MAX);
	recv_n = 1;
	send_n[0] = 224;
	ATF_CHECK(ctl_serve_request(cc));
	memset(&want, 0, sizeof(want));
	want.vw_magic = VALE_WIRE_MAGIC;
	want.vw_error = EPROTO;
	strlcpy(want.vw_why, "the request is of another version",
	    sizeof(want.vw_why));
	ATF_CHECK(memcmp(&want, wire_at, sizeof(want)) == 0);
	for (i = sizeof(want); i < VALE_WIRE_MAX; i++)
		ATF_REQUIRE_EQ(0, wire_at[i]);
	/* The largest packet has nothing behind it. */
	c.sends = 0;
	recv_n = VALE_WIRE_MAX;
	ATF_CHECK(ctl_serve_request(cc));
	ATF_CHECK_EQ(EINVAL, cc->cc_wire->vw_error);
}

/*
 * The thread of a connection, and its end.
 */

static int	poll_fd;

WRAP(int, poll, struct pollfd *pfd, nfds_t n, int timeout)
{
	if (timeout == 0)
		return (__real_poll(pfd, n, timeout));
	ATF_CHECK_EQ(1, n);
	ATF_CHECK_EQ(poll_fd, pfd->fd);
	ATF_CHECK_EQ(POLLIN, pfd->events);
	ATF_CHECK_EQ(-1, timeout);
	c.polls++;
	/* The second packet is the end. */
	if (c.polls + c.serves > 1)
		recv_n = 0;
	return (1);
}

TEST(thread, "A connection's thread waits, serves, and ends with its client")
{
	struct ctl_conn *cc = connect_one();

	poll_fd = FD;
	recv_n = 1;
	send_n[0] = 224;
	ATF_CHECK(ctl_conn_thread(cc) == NULL);
	ATF_CHECK_EQ(2, c.polls);
	ATF_CHECK_EQ(1, c.sends);
	ATF_CHECK_EQ(0, c.serves);
	ATF_CHECK_EQ(1, c.broadcasts);
	ATF_CHECK(!locked());
	ATF_CHECK_EQ(1, c.closed);
	ATF_CHECK_EQ(FD, c.closed_fd);
	ATF_CHECK_EQ(0, c.ended);
}

TEST(thread_port, "One with a port is woken by that, too")
{
	struct ctl_conn *cc = connect_one();

	poll_fd = FD;
	recv_n = 1;
	send_n[0] = 224;
	cc->cc_grant.gr_port = (void *)&c;
	ATF_CHECK(ctl_conn_thread(cc) == NULL);
	ATF_CHECK_EQ(1, c.serves);
	ATF_CHECK_EQ(1, c.polls);
}

TEST(ends, "A descriptor of the reserve goes back there; any other is closed, "
    "by this thread if no other has the time")
{
	struct ctl_conn *cc;
	int fds[2];

	is_admin();
	take(1, CTL_MAX - 1, 1, true);
	ATF_REQUIRE_EQ(0, ctl_accept(FD, true));
	cc = created;
	conn_close(cc);
	ATF_CHECK_EQ(1, c.ended);
	ATF_CHECK_EQ(FD, c.ended_fd);
	ATF_CHECK_EQ(0, c.closed);
	ATF_REQUIRE_EQ(0, pipe(fds));
	conn_shut(fds[0], false);
	ATF_CHECK_EQ(fds[0], c.closed_fd);
	ATF_CHECK_EQ(0, fcntl(fds[0], F_GETFD));
	c.close_full = true;
	conn_shut(fds[0], false);
	ATF_CHECK_EQ(-1, fcntl(fds[0], F_GETFD));
	ATF_CHECK_EQ(2, c.closed);
	ATF_CHECK_EQ(1, c.ended);
}

/*
 * The thread that accepts.
 */

static struct step {
	int	fd;
	int	error;
	bool	reserved;
	bool	fails;		/* peer_accept_fails() */
} steps[] = {
	{ -1, EAGAIN, false, false },
	{ -1, EMFILE, false, true },
	{ FD, EMFILE, false, false },
	{ FD, EMFILE, true, true },
	{ FD, EMFILE, false, true },
	{ -1, ECONNABORTED, false, false },
};
static int	pause_error;
static int	drop_error;
static unsigned int posted;

WRAP(int, peer_accept, int fd, int flags, bool *reserved)
{
	const struct step *s = &steps[c.accepts];

	ATF_CHECK_EQ(poll_fd, fd);
	ATF_CHECK_EQ(SOCK_CLOEXEC, flags);
	/* Each wait is for one. */
	ATF_CHECK_EQ(++c.accepts, c.polls);
	/* The third connection's client is unknown. */
	who_error = c.accepts == 5 ? EINVAL : 0;
	if (c.accepts == nitems(steps))
		ctl_error = ECANCELED;
	*reserved = s->reserved;
	errno = s->error;
	return (s->fd);
}

WRAP(bool, peer_accept_fails, int error)
{
	ATF_CHECK_EQ(steps[c.accepts - 1].error, error);
	return (steps[c.accepts - 1].fails);
}

WRAP(void, peer_accept_pause, int error)
{
	c.pauses++;
	pause_error = error;
}

static int
drop(void)
{
	c.drops++;
	errno = drop_error;
	return (drop_error != 0 ? -1 : 0);
}

TEST(accepts, "Connections are accepted; those that are not served are closed, "
    "and a failure makes a pause")
{
	char name[16];

	is_user(7);
	poll_fd = ctl_listen = FD + 1;
	ctl_drop = drop;
	ATF_REQUIRE_EQ(0, sem_init(&ctl_ready, 0, 0));
	ctl_go();
	ATF_CHECK(ctl_thread(NULL) == NULL);
	ATF_CHECK_EQ(nitems(steps), c.accepts);
	ATF_CHECK_EQ(1, c.drops);
	ATF_CHECK_EQ(1, c.created);
	ATF_CHECK_EQ(1, c.pauses);
	ATF_CHECK_EQ(EMFILE, pause_error);
	/* A user's of the reserve, and the unknown one. */
	ATF_CHECK_EQ(1, c.ended);
	ATF_CHECK_EQ(1, c.closed);
	ATF_CHECK_EQ(FD, c.closed_fd);
	ATF_REQUIRE_EQ(0, prctl(PR_GET_NAME, name));
	ATF_CHECK_STREQ("control", name);
	ATF_CHECK_EQ(0, sem_trywait(&ctl_ready));
	ATF_CHECK_EQ(-1, sem_trywait(&ctl_ready));
	/* It has waited until it may. */
	ATF_CHECK_EQ(-1, sem_trywait(&ctl_goes));
}

/*
 * The start.
 */

static int	sem_error, interrupts;
static gid_t	start_admin;
static uint64_t	start_mem, start_user_mem;
static bool	start_port_limit;

WRAP(int, sem_init, sem_t *sem, int shared, unsigned int value)
{
	if (sem_error != 0) {
		errno = sem_error;
		return (-1);
	}
	ATF_CHECK_EQ(0, shared);
	ATF_CHECK_EQ(0, value);
	return (__real_sem_init(sem, shared, value));
}

WRAP(int, sem_wait, sem_t *sem)
{
	int value;

	if (interrupts-- > 0) {
		errno = EINTR;
		return (-1);
	}
	ATF_REQUIRE_EQ(0, sem_getvalue(sem, &value));
	ATF_REQUIRE_EQ(1, value);
	posted++;
	return (__real_sem_wait(sem));
}

WRAP(void, ctl_who_init, gid_t admin)
{
	start_admin = admin;
}

WRAP(void, vale_memory_limits, uint64_t all, uint64_t user)
{
	start_mem = all;
	start_user_mem = user;
}

WRAP(void, vale_grant_limit, void)
{
	start_port_limit = true;
}

/* The thread runs to its end: it cannot drop its privileges. */
static void
run_thread(struct ctl_conn *arg, const pthread_attr_t *attr)
{
	ATF_CHECK(arg == NULL && attr == NULL);
	ATF_CHECK(created_start == ctl_thread);
	ATF_CHECK(created_start(NULL) == NULL);
}

/* It waits for connections. */
static void
post(struct ctl_conn *arg __unused, const pthread_attr_t *attr __unused)
{
	ATF_REQUIRE_EQ(0, sem_post(&ctl_ready));
}

TEST(starts, "The start waits until the thread has dropped its privileges, and "
    "says if it could not, or could not run")
{
	const struct ctl_options options = { 11, 12, 13 };

	sem_error = ENOSPC;
	ATF_CHECK_EQ(ENOSPC, ctl_start(FD, &options, drop));
	ATF_CHECK_EQ(0, c.created);
	sem_error = 0;
	c.create_error = EAGAIN;
	ATF_CHECK_EQ(EAGAIN, ctl_start(FD, &options, drop));
	ATF_CHECK_EQ(0, posted);
	c.create_error = 0;
	on_create = post;
	interrupts = 2;
	ATF_CHECK_EQ(0, ctl_start(FD, &options, drop));
	ATF_CHECK_EQ(1, posted);
	ATF_CHECK_EQ(FD, ctl_listen);
	ATF_CHECK_EQ(11, start_admin);
	ATF_CHECK_EQ(12, start_mem);
	ATF_CHECK_EQ(13, start_user_mem);
	ATF_CHECK(start_port_limit);
	on_create = run_thread;
	drop_error = EACCES;
	ATF_CHECK_EQ(EACCES, ctl_start(FD, &options, drop));
	ATF_CHECK_EQ(2, posted);
	ATF_CHECK_EQ(0, c.accepts);
}

TEST_PROGRAM
