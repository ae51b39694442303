/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The thread of an attached interface: each call that it makes, in order, and
 * what it does if one fails.  The interface's kind, the switch and the kernel
 * are this file's.
 */

#include <sys/param.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "test.h"
#include "trace.h"
#include "wrap.h"

#include "hostif.c"

#define	SLOTS	80
#define	STOP_FD	77

static const char	*fails;		/* the call that fails, */
static int		 fails_error;	/* with this errno */
static int		 write_errors[3]; /* of the next calls */
static unsigned int	 writes;
static struct timespec	 now;
static int		 poll_result;
static short		 revents[8];
static unsigned int	 receive_left, send_left; /* rounds that move a frame */
static bool		 in_table;
static const struct vale_common common = { .name = "vale0:h0" };
static struct vale_desc	 port = { .fd = 9, .common = &common };
static struct hostif	 one = { .port = &port, .stop_fd = STOP_FD };
static union {
	struct netmap_ring ring;
	uint8_t		 bytes[sizeof(struct netmap_ring) +
			    SLOTS * sizeof(struct netmap_slot)];
} ring;

/* Note the call, and return whether it must fail. */
static bool
call(const char *name)
{
	note("%s; ", name);
	if (fails == NULL || strcmp(fails, name) != 0)
		return (false);
	errno = fails_error;
	return (true);
}

/*
 * The kind
 */

static const char *
kind_start(struct hostif *hi __unused)
{
	return (call("start") ? "rings" : NULL);
}

static void
kind_stop(struct hostif *hi __unused)
{
	note("stop; ");
}

static unsigned int
kind_receive(struct hostif *hi __unused)
{
	note("receive; ");
	return (receive_left > 0 ? receive_left-- > 0 : 0);
}

static unsigned int
kind_send(struct hostif *hi __unused)
{
	note("send; ");
	return (send_left > 0 ? send_left-- > 0 : 0);
}

static unsigned int
kind_poll(struct hostif *hi __unused, struct pollfd *pfd, unsigned int max)
{
	ATF_CHECK_EQ(HOSTIF_FDS_MAX, max);
	pfd[0] = (struct pollfd){ .fd = 20, .events = POLLIN };
	pfd[1] = (struct pollfd){ .fd = 21, .events = POLLIN | POLLOUT };
	return (2);
}

static void
kind_event(struct hostif *hi __unused, const struct pollfd *pfd)
{
	note("event %d %#x; ", pfd->fd, pfd->revents);
}

static void
kind_tick(struct hostif *hi __unused)
{
	note("tick; ");
}

#define	KIND {								\
	kind_start, kind_stop, kind_receive, kind_send, kind_poll,	\
	kind_event, kind_tick						\
}
const struct hostif_ops hostif_packet_ops = KIND, hostif_xdp_ops = KIND;

/*
 * What hostif.c calls
 */

struct vale_desc *
vale_open(const char *name, const struct vale_params *params)
{
	note("%s, %u and %u slots, ", name, params->rx_slots,
	    params->tx_slots);
	return (call("port") ? NULL : &port);
}

void
vale_close(struct vale_desc *desc)
{
	note("close %s; ", desc->common->name);
}

int
vale_rxsync(struct vale_desc *desc)
{
	ATF_CHECK_EQ(&port, desc);
	note("rxsync; ");
	return (0);
}

void
peer_log(struct peer_log_source *ls, int priority, const char *name,
    const char *fmt, va_list ap)
{
	char line[256];

	vsnprintf(line, sizeof(line), fmt, ap);
	note("log %d %s: %s (%u); ", priority, name, line, ls->pls_lines);
}

void
peer_log_left(struct peer_log_source *ls __unused, const char *name)
{
	note("left %s; ", name);
}

void
hostif_link_ask(struct hostif *hi __unused)
{
	note("ask; ");
}

void
hostif_link_event(struct hostif *hi __unused)
{
	note("link; ");
}

bool
hostif_forget(const struct hostif *hi __unused)
{
	note("forget; ");
	return (in_table);
}

void
hostif_close(struct hostif_fds *fds)
{
	note("close %u from %d; ", fds->hf_nfds, fds->hf_fd[0]);
}

/*
 * The system's
 */

WRAP(void *, calloc, size_t n, size_t size)
{
	static struct hostif hi;

	ATF_REQUIRE_EQ(sizeof(hi), n * size);
	memset(&hi, 0, sizeof(hi));
	return (call("calloc") ? NULL : &hi);
}

WRAP(void, free, void *p)
{
	note("free %s; ", p == NULL ? "nothing" : p == &one ? "live" : "it");
}

WRAP(int, clock_gettime, clockid_t id, struct timespec *ts)
{
	ATF_CHECK_EQ(CLOCK_MONOTONIC, id);
	*ts = now;
	return (0);
}

WRAP(int, close, int fd)
{
	note("close %d; ", fd);
	return (0);
}

WRAP(int, eventfd, unsigned int n, int flags)
{
	ATF_CHECK_EQ(0, n);
	ATF_CHECK_EQ(EFD_CLOEXEC | EFD_NONBLOCK, flags);
	return (call("eventfd") ? -1 : STOP_FD);
}

WRAP(int, poll, struct pollfd *pfd, nfds_t n, int timeout_ms)
{
	nfds_t i;

	note("poll");
	for (i = 0; i < n; i++) {
		note(" %d:%#x", pfd[i].fd, pfd[i].events);
		pfd[i].revents = revents[i];
	}
	note(" %d ms; ", timeout_ms);
	return (poll_result);
}

WRAP(int, prctl, int option, const char *name)
{
	ATF_CHECK_EQ(PR_SET_NAME, option);
	note("name %s; ", name);
	return (0);
}

WRAP(int, pthread_create, pthread_t *thread, const pthread_attr_t *attr,
    void *(*fn)(void *), void *arg)
{
	ATF_CHECK(attr == NULL && fn == hostif_main);
	ATF_CHECK_STREQ("h0", ((struct hostif *)arg)->fds.hf_name);
	if (call("thread"))
		return (fails_error);
	*thread = 5;
	return (0);
}

WRAP(int, pthread_detach, pthread_t thread)
{
	ATF_CHECK(pthread_equal(pthread_self(), thread));
	note("detach; ");
	return (0);
}

WRAP(int, pthread_join, pthread_t thread, void **result)
{
	ATF_CHECK(result == NULL);
	note("join %ju; ", (uintmax_t)thread);
	return (0);
}

WRAP(ssize_t, write, int fd, const void *p, size_t len)
{
	ATF_CHECK_EQ(STOP_FD, fd);
	ATF_CHECK_EQ(sizeof(uint64_t), len);
	ATF_CHECK_EQ(1, *(const uint64_t *)p);
	ATF_REQUIRE(writes < nitems(write_errors));
	note("write; ");
	if (write_errors[writes++] == 0)
		return (len);
	errno = write_errors[writes - 1];
	return (-1);
}

/*
 * Test cases
 */

TEST(withdrawn, "The thread is woken once, and again if a signal came between")
{
	static const struct {
		int		errors[3];
		unsigned int	writes;
	} cases[] = {
		{ { 0 }, 1 }, { { EAGAIN }, 1 }, { { EINTR, 0 }, 2 },
		{ { EINTR, EINTR, EAGAIN }, 3 }
	};
	size_t i;

	for (i = 0; i < nitems(cases); i++) {
		memcpy(write_errors, cases[i].errors, sizeof(write_errors));
		writes = 0;
		one.withdrawn = 0;
		ATF_CHECK(!hostif_is_withdrawn(&one));
		/* Of an earlier call. */
		errno = EINTR;
		hostif_withdrawn(&one);
		ATF_CHECK(hostif_is_withdrawn(&one));
		ATF_CHECK_EQ(1, one.withdrawn);
		ATF_CHECK_EQ(cases[i].writes, writes);
	}
}

/* Slot i of the ring has `len' bytes with this flag. */
static void
slot(uint32_t i, uint16_t len, uint16_t flags)
{
	ring.ring.slot[i] = (struct netmap_slot){ .buf_idx = i, .len = len,
	    .flags = flags };
}

TEST(peek, "A frame is all its slots, up to the end of the ring or the most "
    "that a frame has")
{
	static uint8_t bufs[SLOTS][2048];
	static struct frame known[SLOTS];
	struct iovec iov[FRAME_MAXIOV + 1];
	struct frame frame = { .f_iov = iov };
	uint32_t at = 3, i;

	*(uint64_t *)(uintptr_t)&ring.ring.buf_ofs =
	    (uintptr_t)bufs - (uintptr_t)&ring;
	*(uint32_t *)(uintptr_t)&ring.ring.num_slots = SLOTS;
	*(uint32_t *)(uintptr_t)&ring.ring.nr_buf_size = sizeof(bufs[0]);
	port.rxring = &ring.ring;
	port.rxframe = known;
	ring.ring.tail = 3;
	ATF_CHECK(!hostif_peek(&one, &at, &frame));
	ATF_CHECK_EQ(3, at);

	/* One slot, and one more. */
	slot(3, 60, 0);
	slot(4, 61, 0);
	ring.ring.tail = 5;
	memset(&iov, 0xa5, sizeof(iov));
	frame.f_flags = frame.f_gso_type = 0xa5;
	ATF_CHECK(hostif_peek(&one, &at, &frame));
	ATF_CHECK_EQ(4, at);
	ATF_CHECK_EQ(1, frame.f_niov);
	ATF_CHECK_EQ(60, frame.f_len);
	ATF_CHECK_EQ(0, frame.f_flags);
	ATF_CHECK_EQ(0, frame.f_gso_type);
	ATF_CHECK_EQ((void *)bufs[3], iov[0].iov_base);
	ATF_CHECK_EQ(60, iov[0].iov_len);
	CALLS("");

	/* Three, and what is known of them, around the end of the ring. */
	at = SLOTS - 1;
	ring.ring.tail = 3;
	slot(SLOTS - 1, 2000, VALE_SLOT_FRAME | NS_MOREFRAG);
	known[SLOTS - 1] = (struct frame){ .f_niov = 9, .f_len = 7,
	    .f_flags = FRAME_CSUM_PARTIAL, .f_gso_type = FRAME_GSO_TCPV4,
	    .f_gso_size = 1000 };
	slot(0, 700, NS_MOREFRAG);
	slot(1, 0, 0);
	ATF_CHECK(hostif_peek(&one, &at, &frame));
	ATF_CHECK_EQ(2, at);
	ATF_CHECK_EQ(3, frame.f_niov);
	ATF_CHECK_EQ(2700, frame.f_len);
	ATF_CHECK_EQ(FRAME_CSUM_PARTIAL, frame.f_flags);
	ATF_CHECK_EQ(FRAME_GSO_TCPV4, frame.f_gso_type);
	ATF_CHECK_EQ(1000, frame.f_gso_size);
	ATF_CHECK_EQ((void *)bufs[SLOTS - 1], iov[0].iov_base);
	ATF_CHECK_EQ(2000, iov[0].iov_len);
	ATF_CHECK_EQ((void *)bufs[0], iov[1].iov_base);
	ATF_CHECK_EQ(700, iov[1].iov_len);
	ATF_CHECK_EQ(0, iov[2].iov_len);

	/* The last slot of the ring says that there is more. */
	slot(2, 90, NS_MOREFRAG);
	ATF_CHECK(hostif_peek(&one, &at, &frame));
	ATF_CHECK_EQ(3, at);
	ATF_CHECK_EQ(1, frame.f_niov);
	ATF_CHECK_EQ(90, frame.f_len);

	/* More than a frame may have. */
	at = 5;
	ring.ring.tail = 4;
	for (i = 0; i < SLOTS; i++)
		slot(i, 100, NS_MOREFRAG);
	iov[FRAME_MAXIOV].iov_len = 7;
	ATF_CHECK(hostif_peek(&one, &at, &frame));
	ATF_CHECK_EQ(5 + FRAME_MAXIOV, at);
	ATF_CHECK_EQ(FRAME_MAXIOV, frame.f_niov);
	ATF_CHECK_EQ(100 * FRAME_MAXIOV, frame.f_len);
	ATF_CHECK_EQ(7, iov[FRAME_MAXIOV].iov_len);
	CALLS("");
}

/* The sum of all counters, with which one that is not expected shows. */
static uint64_t
counted(const struct hostif *hi)
{
	uint64_t sum = 0;
	int c;

	for (c = 0; c < HOSTIF_NCOUNTERS; c++)
		sum += hostif_counter(hi, c);
	return (sum);
}

#define	TAKEN	(-1)

TEST(takes, "Bad headers, an interface that is down, and a frame that is "
    "longer than the MTU, without one VLAN tag")
{
	static const struct {
		int		counter;	/* or TAKEN */
		uint32_t	len;
		const char	*type;		/* Ethernet's */
		int		niov;
		uint32_t	mtu;
		bool		down;
		uint8_t		gso;		/* with 54 + 1460 bytes */
		uint32_t	first;		/* bytes in the first slot */
	} cases[] = {
		{ TAKEN, 14, "\x08\0", 1, .mtu = 1500 },
		{ HOSTIF_C_TX_BAD, 13, "\x08\0", 1, .mtu = 1500 },
		{ HOSTIF_C_TX_BAD, 13, "\x08\0", 1, .mtu = 1500, .down = true },
		{ HOSTIF_C_TX_DOWN, 60, "\x08\0", 1, .mtu = 1500,
		    .down = true },
		{ TAKEN, 1514, "\x08\0", 1, .mtu = 1500 },
		{ HOSTIF_C_TX_MTU, 1515, "\x08\0", 1, .mtu = 1500 },
		{ HOSTIF_C_TX_MTU, 1518, "\x08\0", 1, .mtu = 1500 },
		{ TAKEN, 60000, "\x08\0", 1, .mtu = 0 },
		{ TAKEN, 1518, "\x81\0", 1, .mtu = 1500 },
		{ HOSTIF_C_TX_MTU, 1519, "\x81\0", 1, .mtu = 1500 },
		{ TAKEN, 1518, "\x88\xa8", 1, .mtu = 1500 },
		{ HOSTIF_C_TX_MTU, 1519, "\x88\xa8", 1, .mtu = 1500 },
		{ HOSTIF_C_TX_MTU, 1518, "\x80\0", 1, .mtu = 1500 },
		{ HOSTIF_C_TX_MTU, 1518, "\x82\0", 1, .mtu = 1500 },
		{ HOSTIF_C_TX_MTU, 1518, "\x81\x01", 1, .mtu = 1500 },
		{ HOSTIF_C_TX_MTU, 1518, "\x81\xff", 1, .mtu = 1500 },
		{ HOSTIF_C_TX_MTU, 1518, "\x87\xa8", 1, .mtu = 1500 },
		{ HOSTIF_C_TX_MTU, 1518, "\x89\xa8", 1, .mtu = 1500 },
		{ HOSTIF_C_TX_MTU, 1518, "\x88\xa7", 1, .mtu = 1500 },
		{ HOSTIF_C_TX_MTU, 1518, "\x88\xa9", 1, .mtu = 1500 },
		/* A slot with the tag and what follows it, or not. */
		{ TAKEN, 1518, "\x81\0", 2, .mtu = 1500, .first = 18 },
		{ HOSTIF_C_TX_MTU, 1518, "\x81\0", 2, .mtu = 1500,
		    .first = 17 },
		{ TAKEN, 1514, "\x08\0", 2, .mtu = 1500, .first = 2 },
		/* Its segments count. */
		{ TAKEN, 60000, "\x08\0", 2, .mtu = 1500,
		    .gso = FRAME_GSO_TCPV4 },
		{ HOSTIF_C_TX_MTU, 60000, "\x08\0", 2, .mtu = 1499,
		    .gso = FRAME_GSO_TCPV4 },
	};
	static uint8_t bytes[60000];
	struct iovec iov[2] = { { bytes, 0 }, { NULL, 0 } };
	struct frame frame = { .f_iov = iov, .f_hdr_len = 54,
	    .f_gso_size = 1460 };
	size_t i;

	memset(bytes, 'x', sizeof(bytes));
	for (i = 0; i < nitems(cases); i++) {
		memset(one.counters, 0, sizeof(one.counters));
		memcpy(bytes + 12, cases[i].type, 2);
		one.up = !cases[i].down;
		one.mtu = cases[i].mtu;
		frame.f_len = cases[i].len;
		frame.f_niov = cases[i].niov;
		frame.f_gso_type = cases[i].gso;
		iov[0].iov_len = cases[i].first != 0 ? cases[i].first :
		    cases[i].len;
		ATF_CHECK_EQ_MSG(cases[i].counter == TAKEN,
		    hostif_takes(&one, &frame), "case %zu", i);
		ATF_CHECK_EQ_MSG(cases[i].counter != TAKEN, counted(&one),
		    "case %zu", i);
		if (cases[i].counter != TAKEN)
			ATF_CHECK_EQ_MSG(1, hostif_counter(&one,
			    cases[i].counter), "case %zu", i);
	}
}

TEST(lost, "Each lost frame is counted under its reason, and each reason is "
    "logged once")
{
	hostif_lost(&one, ENOBUFS);
	CALLS("log 5 vale0:h0: a queue or filter of the interface drops "
	    "frames (0); ");
	ATF_CHECK_EQ(HOSTIF_SAID_QUEUE, one.said);
	hostif_lost(&one, EBUSY);
	CALLS("");
	ATF_CHECK_EQ(2, hostif_counter(&one, HOSTIF_C_TX_QUEUE));
	hostif_lost(&one, EIO);
	CALLS("log 5 vale0:h0: the kernel cannot send a frame: Input/output "
	    "error (0); ");
	hostif_lost(&one, EPERM);
	hostif_lost(&one, ENOBUFS + 1);
	hostif_lost(&one, EBUSY + 1);
	hostif_lost(&one, 0);
	CALLS("");
	ATF_CHECK_EQ(5, hostif_counter(&one, HOSTIF_C_TX_REFUSED));
	ATF_CHECK_EQ(HOSTIF_SAID_QUEUE | HOSTIF_SAID_REFUSED, one.said);
	hostif_lost(&one, ENOBUFS);
	CALLS("");
	ATF_CHECK_EQ(3, hostif_counter(&one, HOSTIF_C_TX_QUEUE));
	ATF_CHECK_EQ(8, counted(&one));
	one.said = 0;
	hostif_lost(&one, EIO);
	ATF_CHECK_EQ(HOSTIF_SAID_REFUSED, one.said);
}

#define	TICK_NS		((uint64_t)HOSTIF_TICK_MS * 1000000)
#define	ALL_POLLED	"20:0x1 21:0x5"

TEST(events, "What is waited for, and for how long")
{
	one.ops = &hostif_xdp_ops;
	one.fds.hf_fd[HOSTIF_FD_LINK] = 10;
	one.fds.hf_fd[1] = 11;
	now = (struct timespec){ 5, 7 };
	ATF_CHECK(hostif_events(&one, false));
	CALLS("tick; left vale0:h0; poll 77:0x1 9:0x1 10:0x1 " ALL_POLLED
	    " 0 ms; ");
	ATF_CHECK_EQ(5000000007 + TICK_NS, one.tick_ns);
	/* One nanosecond before the next tick, and then. */
	now.tv_nsec += TICK_NS - 1;
	one.tx_state = HOSTIF_TX_FULL;
	ATF_CHECK(hostif_events(&one, true));
	CALLS("left vale0:h0; poll 77:0x1 -1:0x1 10:0x1 " ALL_POLLED
	    " 250 ms; ");
	now.tv_nsec++;
	one.tx_state = HOSTIF_TX_AGAIN;
	ATF_CHECK(hostif_events(&one, true));
	CALLS("tick; left vale0:h0; poll 77:0x1 -1:0x1 10:0x1 " ALL_POLLED
	    " 1 ms; ");
	one.tx_state = HOSTIF_TX_IDLE;
	ATF_CHECK(hostif_events(&one, true));
	CALLS("left vale0:h0; poll 77:0x1 9:0x1 10:0x1 " ALL_POLLED
	    " 250 ms; ");
	ATF_CHECK_EQ(4, hostif_counter(&one, HOSTIF_C_POLL));
	ATF_CHECK_EQ(4, counted(&one));

	/* Nothing is left of it but its port. */
	one.gone = true;
	now.tv_sec++;
	ATF_CHECK(hostif_events(&one, true));
	CALLS("left vale0:h0; poll 77:0x1 9:0x1 10:0x1 -1 ms; ");
	one.log.pls_left = 1;
	ATF_CHECK(hostif_events(&one, true));
	CALLS("left vale0:h0; poll 77:0x1 9:0x1 10:0x1 250 ms; ");
	ATF_CHECK(hostif_events(&one, false));
	CALLS("left vale0:h0; poll 77:0x1 9:0x1 10:0x1 0 ms; ");
}

TEST(ready, "What poll(2) says is ready; nothing if it fails or the time is up")
{
	const char *polled = "left vale0:h0; poll 77:0x1 9:0x1 10:0x1 "
	    ALL_POLLED " 0 ms; ";
	char expected[256];
	size_t i;

	one.ops = &hostif_xdp_ops;
	one.fds.hf_fd[HOSTIF_FD_LINK] = 10;
	one.tick_ns = UINT64_MAX;
	for (i = 0; i < 5; i++)
		revents[i] = POLLIN;
	for (poll_result = -1; poll_result <= 0; poll_result++) {
		ATF_CHECK(hostif_events(&one, false));
		CALLS(polled);
	}
	for (i = 0; i < 5; i++) {
		memset(revents, 0, sizeof(revents));
		revents[i] = POLLERR;
		poll_result = 1;
		ATF_CHECK_EQ(i != POLL_STOP, hostif_events(&one, false));
		snprintf(expected, sizeof(expected), "%s%s", polled,
		    i == POLL_LINK ? "link; " : i == POLL_KIND ?
		    "event 20 0x8; " : i > POLL_KIND ? "event 21 0x8; " : "");
		CALLS(expected);
	}
	for (i = 1; i < 5; i++)
		revents[i] = POLLIN;
	ATF_CHECK(hostif_events(&one, false));
	snprintf(expected, sizeof(expected), "%slink; event 20 0x1; "
	    "event 21 0x1; ", polled);
	CALLS(expected);
	/* The end comes first. */
	revents[0] = POLLIN;
	ATF_CHECK(!hostif_events(&one, false));
	CALLS(polled);
}

/* How often the trace has this in it. */
static unsigned int
times(const char *s)
{
	const char *p = trace;
	unsigned int n = 0;

	while ((p = strstr(p, s)) != NULL) {
		n++;
		p++;
	}
	return (n);
}

#define	ROUND	"receive; rxsync; send; "

TEST(serve, "It sleeps after a round in which nothing moved, and looks for "
    "events after 64 in which something did")
{
	one.ops = &hostif_xdp_ops;
	one.tick_ns = UINT64_MAX;
	one.fds.hf_fd[HOSTIF_FD_LINK] = 10;
	poll_result = 1;
	revents[POLL_STOP] = POLLIN;
	hostif_serve(&one);
	CALLS("ask; " ROUND "left vale0:h0; poll 77:0x1 9:0x1 10:0x1 "
	    ALL_POLLED " 250 ms; ");
	/* It was received, or sent. */
	receive_left = 1;
	send_left = 2;
	hostif_serve(&one);
	CALLS("ask; " ROUND ROUND ROUND "left vale0:h0; poll 77:0x1 9:0x1 "
	    "10:0x1 " ALL_POLLED " 250 ms; ");
	receive_left = 3;
	send_left = 1;
	hostif_serve(&one);
	CALLS("ask; " ROUND ROUND ROUND ROUND "left vale0:h0; poll 77:0x1 "
	    "9:0x1 10:0x1 " ALL_POLLED " 250 ms; ");
	receive_left = send_left = 64;
	hostif_serve(&one);
	ATF_CHECK_EQ(64, times(ROUND));
	ATF_CHECK_EQ(1, times(" 0 ms; "));
	ATF_CHECK_EQ(1, times("poll"));
	trace[0] = '\0';
	/* Nothing is looked at any more. */
	receive_left = 2;
	one.withdrawn = 1;
	hostif_serve(&one);
	CALLS("ask; " ROUND);
}

TEST(thread, "The thread has the interface's name; without its memory it frees "
    "what is its own to free")
{
	one.ops = &hostif_xdp_ops;
	one.tick_ns = UINT64_MAX;
	one.fds = (struct hostif_fds){ .hf_name = "h0", .hf_nfds = 3,
	    .hf_fd = { 10 } };
	one.log.pls_lines = 8;
	poll_result = 1;
	revents[POLL_STOP] = POLLIN;
	ATF_CHECK(hostif_main(&one) == NULL);
	ATF_CHECK_EQ(1, times("name h0; ask; receive; "));
	ATF_CHECK_EQ(1, times("poll"));
	ATF_CHECK_EQ(0, times("log") + times("forget") + times("free"));
	trace[0] = '\0';
	one.withdrawn = 1;
	ATF_CHECK(hostif_main(&one) == NULL);
	CALLS("name h0; ask; " ROUND "log 5 vale0:h0: detached: its memory is "
	    "gone (0); forget; ");
	in_table = true;
	ATF_CHECK(hostif_main(&one) == NULL);
	CALLS("name h0; ask; " ROUND "log 5 vale0:h0: detached: its memory is "
	    "gone (0); forget; detach; stop; close 77; close 3 from 10; "
	    "close vale0:h0; free nothing; free live; ");
}

TEST(invalid, "What is not an open interface is not started, and nothing is "
    "done for it")
{
	static const struct {
		uint32_t	kind, nfds;
		const char	*name;
		bool		valid;
	} cases[] = {
		{ HOSTIF_PACKET, 2, .name = "h0", .valid = true },
		{ HOSTIF_PACKET, 1, .name = "h0" },
		{ HOSTIF_PACKET, 17, .name = "h0", .valid = true },
		{ HOSTIF_PACKET, 18, .name = "h0" },
		{ HOSTIF_XDP, 6, .name = "h0", .valid = true },
		{ HOSTIF_XDP, 5, .name = "h0" },
		{ HOSTIF_XDP, 17, .name = "h0", .valid = true },
		{ HOSTIF_XDP, 18, .name = "h0" },
		{ HOSTIF_AUTO, 2, .name = "h0" },
		{ HOSTIF_NKINDS, 2, .name = "h0" },
		{ UINT32_MAX, 2, .name = "h0" },
		{ HOSTIF_PACKET, 2, .name = "0123456789abcde", .valid = true },
		{ HOSTIF_PACKET, 2, .name = "0123456789abcdef" },
	};
	struct hostif_fds fds;
	char why[HOSTIF_WHY];
	size_t i;

	/* A valid one gets further. */
	fails = "calloc";
	for (i = 0; i < nitems(cases); i++) {
		memset(&fds, 0, sizeof(fds));
		fds.hf_kind = cases[i].kind;
		fds.hf_nfds = cases[i].nfds;
		memcpy(fds.hf_name, cases[i].name, MIN(HOSTIF_NAME_SIZE,
		    strlen(cases[i].name)));
		ATF_CHECK(hostif_start("vale0:h0", &fds, why) == NULL);
		ATF_CHECK_STREQ(cases[i].valid ? "vale0:h0: out of memory" :
		    "vale0:h0: not an open interface", why);
		CALLS(cases[i].valid ? "calloc; " : "");
	}
}

#define	SERVE	"eventfd; start; "
#define	OPEN	"calloc; vale0:h0, 4096 and 0 slots, port; " SERVE

TEST(start, "Each step of the start, what is undone if it fails, and the end")
{
	static const struct {
		const char	*step, *calls, *message;
	} steps[] = {
		{ "port", "calloc; vale0:h0, 4096 and 0 slots, port; "
		    "free it; ", "vale0:h0: port: Input/output error" },
		{ "eventfd", "calloc; vale0:h0, 4096 and 0 slots, port; "
		    "eventfd; close vale0:h0; free it; ",
		    "vale0:h0: eventfd: Input/output error" },
		{ "start", OPEN "close 77; close vale0:h0; free it; ",
		    "vale0:h0: rings: Input/output error" },
		{ "thread", OPEN "thread; stop; close 77; close vale0:h0; "
		    "free it; ", "vale0:h0: thread: Input/output error" },
	};
	const struct hostif_fds fds = { .hf_kind = HOSTIF_XDP, .hf_nfds = 6,
	    .hf_name = "h0", .hf_fd = { 10, 11, 12, 13, 14, 15 } };
	struct hostif *hi;
	char why[HOSTIF_WHY];
	size_t i;

	fails_error = EIO;
	for (i = 0; i < nitems(steps); i++) {
		fails = steps[i].step;
		ATF_CHECK(hostif_start("vale0:h0", &fds, why) == NULL);
		ATF_CHECK_STREQ(steps[i].message, why);
		CALLS(steps[i].calls);
	}
	fails = NULL;
	hi = hostif_start("vale0:h0", &fds, why);
	ATF_REQUIRE(hi != NULL);
	CALLS(OPEN "thread; ");
	ATF_CHECK_EQ(0, memcmp(&fds, &hi->fds, sizeof(fds)));
	ATF_CHECK(hi->ops == &hostif_xdp_ops && hi->port == &port);
	ATF_CHECK(hi->up && hi->link.hl_ether && !hi->gone);
	ATF_CHECK_STREQ("h0", hi->link.hl_name);
	ATF_CHECK_STREQ("h0", hostif_name(hi));
	ATF_CHECK_STREQ("vale0:h0", hostif_port_name(hi));
	ATF_CHECK(*hostif_live(hi) == NULL);
	*hostif_live(hi) = (void *)&one;
	hi->counters[HOSTIF_C_POLL] = 7;
	ATF_CHECK_EQ(7, hostif_counter(hi, HOSTIF_C_POLL));
	hostif_stop(hi);
	CALLS("write; join 5; stop; close 77; close 6 from 10; close vale0:h0; "
	    "free live; free it; ");
}

TEST(renew, "Another interface takes the place of one that is gone: the port "
    "stays open, and its counters; if that fails, all is undone")
{
	static const struct {
		const char	*step, *calls, *message;
	} steps[] = {
		{ "eventfd", "eventfd; ",
		    "vale0:h0: eventfd: Input/output error" },
		{ "start", SERVE "close 77; ",
		    "vale0:h0: rings: Input/output error" },
		{ "thread", SERVE "thread; stop; close 77; ",
		    "vale0:h0: thread: Input/output error" },
	};
	const struct hostif_fds fds = { .hf_kind = HOSTIF_XDP, .hf_nfds = 6,
	    .hf_name = "h0", .hf_fd = { 10, 11, 12, 13, 14, 15 } };
	const struct hostif_fds again = { .hf_kind = HOSTIF_PACKET,
	    .hf_nfds = 2, .hf_name = "h0", .hf_fd = { 30, 31 } };
	const struct hostif_fds bad = { .hf_kind = HOSTIF_PACKET };
	char calls[256], why[HOSTIF_WHY];
	struct hostif *hi;
	uint64_t serial;
	size_t i;

#define	ENDS	"write; join 5; stop; close 77; close 6 from 10; "
#define	FREED	"close vale0:h0; free nothing; free it; "
	fails_error = EIO;
	for (i = 0; i <= nitems(steps); i++) {
		fails = NULL;
		hi = hostif_start("vale0:h0", &fds, why);
		ATF_REQUIRE(hi != NULL);
		trace[0] = '\0';
		writes = nitems(write_errors) - 1;
		if (i == nitems(steps))
			break;
		fails = steps[i].step;
		ATF_CHECK_EQ(-1, hostif_renew(hi, &again, why));
		ATF_CHECK_EQ(fails_error, errno);
		ATF_CHECK_STREQ(steps[i].message, why);
		snprintf(calls, sizeof(calls), ENDS "%s" FREED, steps[i].calls);
		CALLS(calls);
	}
	hi->counters[HOSTIF_C_POLL] = 7;
	ATF_CHECK(hostif_up(hi) && !hostif_gone(hi) && !hostif_gone_now(hi));
	hostif_release(hi);
	CALLS(ENDS);
	ATF_CHECK(!hostif_up(hi) && hostif_gone(hi));
	ATF_CHECK(hostif_gone_now(hi) && !hostif_gone_now(hi));
	hi->link.hl_ether = false;
	hi->outgrown = true;
	hi->withdrawn = 1;
	hi->mtu = hi->said = 1;
	hi->tx_state = HOSTIF_TX_FULL;
	serial = hostif_serial(hi);
	ATF_CHECK_EQ(0, hostif_renew(hi, &again, why));
	CALLS(SERVE "thread; ");
	ATF_CHECK(hostif_gone(hi) == false && hostif_up(hi));
	ATF_CHECK(!hostif_outgrown(hi));
	hi->gone = true;
	ATF_CHECK(hostif_gone_now(hi));
	ATF_CHECK(!hostif_is_withdrawn(hi) && hi->link.hl_ether);
	ATF_CHECK(hi->mtu == 0 && hi->said == 0);
	ATF_CHECK(hi->tx_state == HOSTIF_TX_IDLE);
	ATF_CHECK(hostif_serial(hi) != serial);
	ATF_CHECK(hi->ops == &hostif_packet_ops);
	ATF_CHECK_EQ(7, hostif_counter(hi, HOSTIF_C_POLL));
	writes = nitems(write_errors) - 1;
	ATF_CHECK_EQ(-1, hostif_renew(hi, &bad, why));
	ATF_CHECK_EQ(EINVAL, errno);
	ATF_CHECK_STREQ("vale0:h0: not an open interface: Invalid argument",
	    why);
	CALLS("write; join 5; stop; close 77; close 2 from 30; " FREED);
}

TEST_PROGRAM
