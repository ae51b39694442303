/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The control socket's server, with its threads, while calls fail: each call
 * that the server makes in a scenario, once and twice.  Then a request is
 * refused with a reason, or the connection ends, or all goes on; nothing stays
 * of what failed, who was connected before is served, and the same request
 * succeeds when it is made again.
 */

#include <sys/param.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "ctl.c"
#include "wrap.h"

#include "fail_calls.h"
#include "peer_close.h"
#include "peer_fault.h"
#include "send_fds.h"
#include "test.h"
#include "vale_memory.h"
#include "vale_test.h"
#include "wait_until.h"

#define	REG_SIZE	sizeof(struct nmreq_register)
#define	ALL		.nr_mode = NR_REG_ALL_NIC, .nr_tx_slots = 16,	\
			.nr_rx_slots = 16

static int	faults;			/* peer_fault_add(), not removed */

WRAP(int, peer_fault_add, struct peer_mem *dma, void (*lost)(void *arg),
    void *arg)
{
	const int error = __real_peer_fault_add(dma, lost, arg);

	atomic_add_32((uint32_t *)&faults, error == 0);
	return (error);
}

WRAP(void, peer_fault_remove, struct peer_mem *dma)
{
	atomic_add_32((uint32_t *)&faults, -1);
	__real_peer_fault_remove(dma);
}

static int	drop_error;

/* Drop the privileges of a thread, which has none. */
static int
drop(void)
{
	errno = drop_error;
	return (drop_error == 0 ? 0 : -1);
}

static unsigned int pauses;		/* of the thread that accepts */

WRAP(void, peer_accept_pause, int error)
{
	pauses++;
	__real_peer_accept_pause(error);
}

/*
 * What the server has.
 */

static struct held {
	struct fail_held fh;
	unsigned int	conns, memories;
	int		faults;
} at_rest;

static struct held
held_now(void)
{
	struct held h;
	unsigned int i;

	h = (struct held){ .fh = fail_held(), .faults = faults };
	for (i = 0; i < CTL_MAX; i++) {
		h.conns += atomic_load_acq_32(&ctl_conns[i].cc_used) != 0;
		h.memories += vale_memories[i] != NULL;
	}
	return (h);
}

/*
 * Return whether all is closed that a scenario had: the server has no more than
 * after any earlier one.
 */
static bool
rests(void)
{
	const struct held h = held_now(), r = at_rest;

	if (h.fh.fhl_allocs > r.fh.fhl_allocs ||
	    h.fh.fhl_mapped > r.fh.fhl_mapped ||
	    h.fh.fhl_mutexes > r.fh.fhl_mutexes ||
	    h.fh.fhl_locks > r.fh.fhl_locks ||
	    h.fh.fhl_fds > r.fh.fhl_fds ||
	    h.fh.fhl_inherited > r.fh.fhl_inherited ||
	    h.conns > r.conns || h.memories > r.memories ||
	    h.faults > r.faults)
		return (false);
	at_rest = h;
	return (true);
}

/*
 * A client.
 */

static int		 listen_fd;
static struct sockaddr_un sun = { AF_UNIX, "ctl" };
static union {
	struct vale_wire wire;
	char		 packet[VALE_WIRE_MAX];
} reply;

static int
client_connect(void)
{
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	ATF_REQUIRE(s != -1);
	ATF_REQUIRE_EQ(0, connect(s, (struct sockaddr *)&sun, sizeof(sun)));
	return (s);
}

/* Requests of a connection, one after the other. */
struct step {
	uint16_t	request;
	const char	*name;
	const void	*body;
	size_t		size;
	ssize_t		reply;		/* bytes of the body; -1: any */
	unsigned int	nfds;
};

#define	GONE		(-1)		/* the server has closed it */
#define	OPENS(n, nfds, ...)						\
	{ NETMAP_REQ_REGISTER, n, &(const struct nmreq_register){	\
	    __VA_ARGS__ }, REG_SIZE, REG_SIZE, nfds }
#define	SHARES(nfds)	{ VALE_WIRE_SHARE, "", NULL, 0, REG_SIZE, nfds }

/* Close the descriptors that came; returns how many. */
static unsigned int
take_fds(struct msghdr *msg)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	int fds[VALE_WIRE_REPLY_FDS];
	unsigned int i, n;

	ATF_REQUIRE_EQ(0, msg->msg_flags & (MSG_TRUNC | MSG_CTRUNC));
	if (c == NULL)
		return (0);
	n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	ATF_REQUIRE(n <= nitems(fds));
	memcpy(fds, CMSG_DATA(c), n * sizeof(int));
	for (i = 0; i < n; i++)
		close(fds[i]);
	return (n);
}

/* Check what is granted, and that what is refused has a reason only. */
static void
check_reply(const struct step *st, size_t size, unsigned int nfds)
{
	const struct nmreq_register *reg = (const void *)(&reply.wire + 1);
	const struct nmreq_register *asked = st->body;

	ATF_CHECK_EQ(VALE_WIRE_MAGIC, reply.wire.vw_magic);
	if (reply.wire.vw_error != 0) {
		ATF_CHECK(reply.wire.vw_why[0] != '\0');
		ATF_CHECK_EQ(0, size);
		ATF_CHECK_EQ(0, nfds);
		return;
	}
	ATF_CHECK_STREQ("", reply.wire.vw_why);
	ATF_CHECK_EQ(st->nfds, nfds);
	if (st->reply != -1)
		ATF_CHECK_EQ((size_t)st->reply, size);
	/* Extra buffers are all or none. */
	if (st->request == NETMAP_REQ_REGISTER)
		ATF_CHECK(reg->nr_extra_bufs == asked->nr_extra_bufs ||
		    reg->nr_extra_bufs == 0);
}

/* Make a request.  Returns the error of the reply, or GONE. */
static int
ask(int s, const struct step *st)
{
	static union {
		struct vale_wire wire;
		char	packet[VALE_WIRE_MAX];
	} r;
	union {
		struct cmsghdr	align;
		char	space[CMSG_SPACE(VALE_WIRE_REPLY_FDS * sizeof(int))];
	} control;
	struct iovec iov = { &reply, sizeof(reply) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t n;

	memset(&r, 0, sizeof(r));
	r.wire.vw_magic = VALE_WIRE_MAGIC;
	r.wire.vw_header.nr_version = NETMAP_API;
	r.wire.vw_header.nr_reqtype = st->request;
	strlcpy(r.wire.vw_header.nr_name, st->name, VALE_NAME_SIZE);
	if (st->size > 0)
		memcpy(&r.wire + 1, st->body, st->size);
	if (send(s, &r, sizeof(r.wire) + st->size, MSG_NOSIGNAL) == -1)
		return (GONE);
	wait_readable(s, "a reply");
	n = recvmsg(s, &msg, MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return (GONE);
	ATF_REQUIRE(n >= (ssize_t)sizeof(struct vale_wire));
	check_reply(st, n - sizeof(struct vale_wire), take_fds(&msg));
	return (reply.wire.vw_error);
}

/* Return how many connections are served. */
static unsigned int
served(void)
{
	unsigned int i, n = 0;

	pthread_mutex_lock(&conns_lock);
	for (i = 0; i < CTL_MAX; i++)
		n += ctl_conns[i].cc_open;
	pthread_mutex_unlock(&conns_lock);
	return (n);
}

/* Connect when the former client's connection has been closed. */
static int
connect_next(void)
{
	wait_until(served() <= 1, "%u connections", served());
	return (client_connect());
}

static unsigned int times;		/* that a call fails */
static bool	interrupted;		/* and the errno is EINTR */
static unsigned int refusals, ends;	/* how failures ended */

/*
 * Make all requests of a connection.  What a failure has refused, or the
 * connection that it has ended, succeeds the next time.
 */
static void
session(const struct step *st, unsigned int n)
{
	unsigned int again = 0, i;
	const char *name;
	int error, s = connect_next();

	for (i = 0; i < n; i++) {
		error = ask(s, &st[i]);
		if (error == 0)
			continue;
		name = fail_calls_name();
		ATF_REQUIRE_MSG(name != NULL && again < times, "%s: %s: %s",
		    name, st[i].name, reply.wire.vw_why);
		again++;
		if (error != GONE) {
			refusals++;
			i--;
			continue;
		}
		ends++;
		ATF_CHECK_MSG(!interrupted || (strcmp(name, "accept4") != 0 &&
		    strcmp(name, "send") != 0 && strcmp(name, "recvmsg") != 0),
		    "%s was interrupted", name);
		close(s);
		s = connect_next();
		i = -1U;
	}
	close(s);
}

/*
 * The scenario.
 */

static const struct vale_wire_page page;
static struct vale_wire_filter filter = { .wf_len = 1,
	.wf_insn = { { 0x06, 0, 0, 1 } } };
static struct vale_wire_value values[2];

static const struct step keeps[] = { OPENS("vale0:keep", 4, ALL) };
static const struct step monitor[] = {
	{ VALE_WIRE_FILTER, "", &filter, sizeof(filter), 0, 0 },
	OPENS("vale0:keep", 4, ALL, .nr_flags = NR_MONITOR_RX),
	{ VALE_WIRE_MISSED, "", NULL, 0, sizeof(uint64_t), 0 },
};
static const struct step port[] = {
	{ VALE_WIRE_FILTER, "", &filter, sizeof(filter), 0, 0 },
	{ VALE_WIRE_FILTER, "", &(const struct vale_wire_filter){ 0 },
	    sizeof(filter), 0, 0 },
	OPENS("vale0:p", 8, ALL, .nr_tx_rings = 3, .nr_extra_bufs = 5),
	{ VALE_WIRE_SET, "vale0:p", values, sizeof(values), 0, 0 },
	{ VALE_WIRE_MIRROR, "vale0:p", &(const struct vale_wire_mirror){
	    VALE_MIRROR_TX, "vale0:keep" }, sizeof(struct vale_wire_mirror), 0,
	    0 },
	{ VALE_WIRE_PORT_SETTINGS, "vale0:p", NULL, 0, -1, 0 },
	{ VALE_WIRE_PORTS, "", &page, sizeof(page), -1, 0 },
	{ VALE_WIRE_ADDRS, "vale0", &page, sizeof(page), -1, 0 },
	SHARES(8),
};
static const struct step own_pipe[] = {
	OPENS("vale0:q{1", 4, ALL), SHARES(4),
};
static const struct step pipe_there[] = {
	OPENS("vale0:keep}1", 4, ALL, .nr_extra_bufs = 2), SHARES(4),
};
static const struct step memory[] = {
	OPENS("x", 2, .nr_mode = NR_REG_NULL, .nr_mem_id = 1,
	    .nr_extra_bufs = 3), SHARES(2),
};
static const struct step look[] = {
	{ VALE_WIRE_PORTS, "", &page, sizeof(page), -1, 0 },
};
static const struct step here[] = {
	SHARES(4),
	{ VALE_WIRE_PORT_SETTINGS, "vale0:keep", NULL, 0, -1, 0 },
};

#define	SESSION(st)	session(st, nitems(st))

/* Little is left for what is not given back. */
static const struct ctl_options options = { CTL_WHO_NOGROUP, 100 << 20,
	100 << 20 };

/* Start the server.  Returns an errno. */
static int
start(void)
{
	int error;

	error = ctl_start(listen_fd, &options, drop);
	if (error == 0)
		ctl_go();
	return (error);
}

static void
prepare(void)
{
	const struct rlimit files = { 256, 256 };

	ATF_REQUIRE_EQ(0, setrlimit(RLIMIT_NOFILE, &files));
	ATF_REQUIRE_EQ(0, peer_fault_init());
	ATF_REQUIRE_EQ(0, peer_close_start(drop));
	ATF_REQUIRE_EQ(0, peer_accept_start());
	listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK |
	    SOCK_CLOEXEC, 0);
	ATF_REQUIRE_EQ(0, bind(listen_fd, (struct sockaddr *)&sun,
	    sizeof(sun)));
	ATF_REQUIRE_EQ(0, listen(listen_fd, 8));
}

/* Let call `n' fail.  Returns false if there are not so many. */
static bool
fails(uint32_t n)
{
	uint32_t failed;

	fail_calls(NULL, n, times);
	SESSION(monitor);
	SESSION(port);
	SESSION(own_pipe);
	SESSION(pipe_there);
	SESSION(memory);
	wait_until(served() == 1, "%u connections", served());
	failed = fail_calls_end();
	/* One that could not be closed is when the next one comes. */
	SESSION(look);
	wait_until(rests(), "%s, call %u: %u connections, %u memories, %d "
	    "faults, %jd descriptors, %jd allocations", fail_calls_name(), n,
	    held_now().conns, held_now().memories, held_now().faults,
	    (intmax_t)held_now().fh.fhl_fds,
	    (intmax_t)held_now().fh.fhl_allocs);
	/* No name is being opened any more. */
	ATF_CHECK(!ctl_owner_taken("vale0:p", true));
	return (failed > 0);
}

/* Each call fails that the server makes. */
static void
each(void)
{
	struct vale_desc *b;
	int64_t fds;
	uint32_t n = 0;
	int s;

	fail_calls_spare(true);
	prepare();
	fail_calls_spare(false);
	ATF_REQUIRE_EQ(0, ctl_start(listen_fd, &options, drop));
	fail_calls_spare(true);
	ctl_go();
	vale_wire_put(&values[0], VALE_SETTING_RATE,
	    &(const struct vale_setting_value){ .sv_number = 1000000 });
	vale_wire_put(&values[1], VALE_SETTING_VLAN,
	    &(const struct vale_setting_value){ .sv_number = 10 });
	b = t_open("vale0:b", 16, 16);
	s = client_connect();
	ATF_REQUIRE_EQ(0, ask(s, keeps));
	/* The server has closed what it sent before it answers again. */
	ATF_REQUIRE_EQ(0, ask(s, &here[1]));
	SESSION(look);
	/* Who is served has waited for ctl_go(). */
	ATF_CHECK_EQ(-1, sem_trywait(&ctl_goes));
	wait_until(served() == 1 && held_now().conns == 1, "one connection");
	at_rest = held_now();
	fds = at_rest.fh.fhl_fds;
	while (fails(++n))
		continue;
	printf("%u calls: %u refused, %u ended\n", n - 1, refusals, ends);
	ATF_CHECK(refusals >= 20 && ends >= 10);
	/* The reserve has its descriptors; at first, some were to be closed. */
	ATF_CHECK_MSG(at_rest.fh.fhl_fds + 4 > fds, "%jd, and %jd at first",
	    (intmax_t)at_rest.fh.fhl_fds, (intmax_t)fds);
	/* Nothing has happened to the one that was there. */
	ATF_CHECK_EQ(0, ask(s, &here[0]));
	ATF_CHECK_EQ(0, ask(s, &here[1]));
	close(s);
	vale_close(b);
}

TEST(once, "Each call of the server fails once")
{
	times = 1;
	each();
}

TEST(twice, "Each call of the server fails, and the next one of its kind")
{
	times = 2;
	each();
}

TEST(interrupted, "Each call of the server is interrupted: what is sent and "
    "received is so all the same")
{
	times = 1;
	interrupted = true;
	fail_calls_error(EINTR);
	each();
	ATF_CHECK_EQ(0, pauses);
}

/* Start the server with call `n' failing.  Ends this process. */
static void __dead2
start_failing(uint32_t n)
{
	const char *name;
	uint32_t failed;
	bool needed;
	int error;

	fail_calls(NULL, n, 1);
	error = start();
	failed = fail_calls_end();
	fail_calls_spare(true);
	name = fail_calls_name();
	/* What it cannot do without. */
	needed = failed > 0 && (strcmp(name, "eventfd") == 0 ||
	    strcmp(name, "sem_init") == 0 ||
	    strcmp(name, "pthread_create") == 0);
	if (needed != (error != 0))
		_exit(2);
	if (error == 0)
		SESSION(look);
	/* The start has waited for the end of the thread's privileges. */
	if (error == 0 && sem_trywait(&ctl_ready) == 0)
		_exit(3);
	_exit(failed == 0);
}

TEST(starts, "Each call of the start fails: the errno says so, or all goes on")
{
	uint32_t n = 0;
	int status;

	prepare();
	do {
		if (fork() == 0)
			start_failing(++n);
		n++;
		ATF_REQUIRE(wait(&status) != -1);
		ATF_REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	} while (WEXITSTATUS(status) == 0);
	ATF_CHECK_MSG(n >= 5, "%u", n);
	/* It cannot do without the end of its privileges. */
	drop_error = EACCES;
	ATF_CHECK_EQ(EACCES, start());
}

TEST_PROGRAM
