/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Memory of another process's port that vanishes: the process is dropped, and
 * nobody else notices.  The connection is served by this thread, and a file
 * that has no pages takes the place of a part of its memory.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <string.h>
#include <unistd.h>

#include <atf-c.h>

/* Its threads do not run: the functions below take their place. */
#include "ctl.c"
#include "wrap.h"

#include "send_fds.h"
#include "test.h"
#include "vale_clock.h"
#include "vale_shared.h"
#include "vale_test.h"
#include "peer_fault.h"

/* Linux 6.5 has it, younger C libraries have its name. */
#define	PASSPIDFD	76

static struct ctl_conn	*cc = &ctl_conns[0];
static int		 client;	/* its end of the connection */
static uint8_t		*memory;	/* valed's mapping */
static struct nmreq_register reg;

/* Connect a client, and open its port. */
static void
start(void)
{
	struct nmreq_register *body;
	int fds[2];

	ATF_REQUIRE_EQ(0, peer_fault_init());
	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds));
	cc->cc_fd = fds[0];
	client = fds[1];
	cc->cc_wire = calloc(1, VALE_WIRE_MAX);
	ATF_REQUIRE(cc->cc_wire != NULL);
	cc->cc_body = body = (void *)(cc->cc_wire + 1);
	vale_grant_init(&cc->cc_grant, 0, false, fds[0],
	    cc->cc_wire->vw_header.nr_name, cc->cc_wire->vw_why);
	cc->cc_wire->vw_magic = VALE_WIRE_MAGIC;
	cc->cc_wire->vw_header.nr_version = NETMAP_API;
	cc->cc_wire->vw_header.nr_reqtype = NETMAP_REQ_REGISTER;
	strlcpy(cc->cc_wire->vw_header.nr_name, "vale0:c", VALE_NAME_SIZE);
	body->nr_mode = NR_REG_ALL_NIC;
	ATF_REQUIRE(send(client, cc->cc_wire, sizeof(struct vale_wire) +
	    sizeof(*body), 0) > 0);
	ATF_REQUIRE(ctl_serve_request(cc));
	ATF_REQUIRE_EQ(0, cc->cc_wire->vw_error);
	reg = *body;
	memory = peer_mem_addr(&cc->cc_grant.gr_dma, 0, reg.nr_memsize,
	    PROT_READ | PROT_WRITE);
	ATF_REQUIRE(memory != NULL);
}

/* What ctl_conn_thread() does at the end. */
static void
stop(void)
{
	ctl_port_close(cc);
	close(cc->cc_fd);
	free(cc->cc_wire);
	close(client);
}

/* From `at' on there is no memory; what is there can be read until then. */
static void
vanish(uint8_t *at)
{
	const size_t left = memory + reg.nr_memsize - at;
	int fd = memfd_create("gone", 0);

	ATF_REQUIRE(fd != -1);
	ATF_REQUIRE(mmap(at, left, PROT_READ | PROT_WRITE, MAP_SHARED |
	    MAP_FIXED, fd, 0) == at);
	close(fd);
}

/* The connection has ended. */
static bool
dropped(void)
{
	char c[VALE_WIRE_MAX];

	while (recv(client, c, sizeof(c), MSG_DONTWAIT) > 0)
		;
	return (recv(client, c, sizeof(c), MSG_DONTWAIT) == 0);
}

static struct netmap_ring *
ring_of(unsigned int i)
{
	struct netmap_if *nifp = cc->cc_grant.gr_port->common->nifp;

	return (NETMAP_TXRING(nifp, i));
}

TEST(transmit, "A client is dropped that publishes a frame whose buffer is "
    "gone")
{
	struct vale_desc *a = t_open("vale0:a", 64, 64);
	struct netmap_ring *ring;

	start();
	ring = ring_of(0);
	ring->slot[0].len = 60;
	vanish((uint8_t *)NETMAP_BUF(ring, 0));
	ATF_CHECK(!dropped());
	((struct vale_csb *)(void *)memory)->tx_atok.head = 1;
	ATF_CHECK(vale_shared_tx(cc->cc_grant.gr_port));
	ATF_CHECK(dropped());
	ATF_CHECK(!ctl_serve_request(cc));
	stop();
	/* Its place can be taken. */
	start();
	stop();
	vale_close(a);
}

TEST(receive, "A client is dropped whose receive buffers are gone; the sender "
    "goes on, and the others get the frame")
{
	struct vale_desc *a = t_open("vale0:a", 64, 64);
	struct vale_desc *b = t_open("vale0:b", 64, 64);

	start();
	vanish((uint8_t *)NETMAP_BUF(ring_of(1), 0));
	t_send(a, 60, EVERYBODY, 1, 7);
	t_expect(b, 60, 1, 7);
	ATF_CHECK(vale_shared_rx(cc->cc_grant.gr_port));
	ATF_CHECK(dropped());
	stop();
	t_send(a, 60, EVERYBODY, 1, 8);
	t_expect(b, 60, 1, 8);
	vale_close(a);
	vale_close(b);
}

TEST(index, "A client is dropped whose rings and CSB are gone")
{
	struct vale_desc *a = t_open("vale0:a", 64, 64);
	struct vale_desc *b = t_open("vale0:b", 64, 64);

	start();
	vanish(memory);
	ATF_CHECK(!vale_shared_tx(cc->cc_grant.gr_port));
	ATF_CHECK(dropped());
	t_send(a, 60, EVERYBODY, 1, 7);
	t_expect(b, 60, 1, 7);
	stop();
	vale_close(a);
	vale_close(b);
}

/* A request for the settings of vale0:c, with `n' copies of a descriptor. */
static int
ask_with(unsigned int n, int fd)
{
	struct vale_wire wire = { .vw_magic = VALE_WIRE_MAGIC };
	int fds[SEND_FDS_MAX];
	unsigned int i;

	for (i = 0; i < n; i++)
		fds[i] = fd;
	wire.vw_header.nr_version = NETMAP_API;
	wire.vw_header.nr_reqtype = VALE_WIRE_PORT_SETTINGS;
	strlcpy(wire.vw_header.nr_name, "vale0:c", VALE_NAME_SIZE);
	SEND_FDS(client, &wire, sizeof(wire), fds, n);
	ATF_REQUIRE(ctl_serve_request(cc));
	return (cc->cc_wire->vw_error);
}

/* All copies of the other end are closed. */
static bool
all_closed(int fd)
{
	struct pollfd pfd = { .fd = fd };

	return (poll(&pfd, 1, 0) == 1 && (pfd.revents & POLLHUP) != 0);
}

TEST(options, "Credentials and what else comes with a request are no "
    "descriptors; a request that lacks some of its own is refused")
{
	static const int options[] = { SO_PASSCRED, SO_PASSSEC, PASSPIDFD,
	    SO_TIMESTAMP };
	static const unsigned int numbers[] = { 0, 1, VALE_WIRE_FDS,
	    VALE_WIRE_FDS + 1, SEND_FDS_MAX };
	unsigned int i, j;
	int fds[2];

	start();
	for (i = 0; i <= nitems(options); i++) {
		for (j = 0; j < nitems(numbers); j++) {
			ATF_REQUIRE_EQ(0, pipe(fds));
			ATF_CHECK_EQ(numbers[j] > VALE_WIRE_FDS ? EMFILE : 0,
			    ask_with(numbers[j], fds[1]));
			close(fds[1]);
			ATF_CHECK(all_closed(fds[0]));
			close(fds[0]);
			ATF_CHECK_EQ(0, cc->cc_grant.gr_npassed);
		}
		/* Each stays set beside the next. */
		if (i < nitems(options) && setsockopt(cc->cc_fd, SOL_SOCKET,
		    options[i], &(int){ 1 }, sizeof(int)) == -1)
			ATF_REQUIRE_EQ(ENOPROTOOPT, errno);
	}
	stop();
}

/* Publish a frame of 60 bytes in slot `i', to everybody. */
static void
publish(uint32_t i)
{
	struct netmap_ring *ring = ring_of(0);

	t_make((uint8_t *)NETMAP_BUF(ring, ring->slot[i].buf_idx), 60,
	    EVERYBODY, 3, i);
	ring->slot[i].len = 60;
	atomic_store_rel_32(&((struct vale_csb *)(void *)memory)->tx_atok.head,
	    i + 1);
}

/* Have a request wait at valed's end. */
static void
ask(void)
{
	(void)!send(client, "", 1, MSG_DONTWAIT);
}

TEST(leaves, "What the client had published when it left is sent")
{
	struct vale_desc *b = t_open("vale0:b", 64, 64);

	start();
	publish(0);
	stop();
	t_expect(b, 60, 3, 0);
	vale_close(b);
}

/* What happens while the thread of the port waits. */
static void (*on_wait)(void);
static unsigned int waits;

WRAP(bool, vale_shared_wait, struct vale_desc *d)
{
	waits++;
	if (on_wait != NULL)
		on_wait();
	return (__real_vale_shared_wait(d));
}

static void
publish_late(void)
{
	if (waits == 1)
		publish(0);
	else
		ask();
}

static volatile sig_atomic_t slept;

static void
ask_late(int sig __unused)
{
	slept = true;
	ask();
}

TEST(late, "A frame that is published while the port's thread goes to sleep, "
    "without a kick, is sent")
{
	struct vale_desc *b = t_open("vale0:b", 64, 64);

	start();
	on_wait = publish_late;
	/* If it sleeps, this ends that. */
	signal(SIGALRM, ask_late);
	alarm(60);
	vale_grant_serve(&cc->cc_grant);
	alarm(0);
	on_wait = NULL;
	ATF_CHECK(!slept);
	ATF_CHECK_EQ(2, waits);
	t_expect(b, 60, 3, 0);
	stop();
	vale_close(b);
}

/* The clock of the case `away': only yields and waits advance the clock. */
static uint64_t clock_ns, yield_ns, wait_ns;
static unsigned int yields;

WRAP(int, sched_yield, void)
{
	if (clock_ns == 0)
		return (__real_sched_yield());
	yields++;
	clock_ns += yield_ns;
	return (0);
}

WRAP(int, clock_gettime, clockid_t clock, struct timespec *ts)
{
	if (clock_ns == 0 || clock != CLOCK_MONOTONIC)
		return (__real_clock_gettime(clock, ts));
	ts->tv_sec = clock_ns / 1000000000;
	ts->tv_nsec = clock_ns % 1000000000;
	return (0);
}

/* Publish a frame in each of three waits. */
static void
publish_three(void)
{
	clock_ns += wait_ns;
	if (waits <= 3)
		publish(waits - 1);
	else
		ask();
}

/*
 * Return how often the thread yields for three frames, each of which comes as
 * the thread goes to sleep.
 */
static unsigned int
yields_of(uint64_t ns, uint64_t between_ns)
{
	struct vale_desc *b = t_open("vale0:b", 64, 64);

	start();
	on_wait = publish_three;
	waits = yields = 0;
	clock_ns = 1;
	yield_ns = ns;
	wait_ns = between_ns;
	vale_grant_serve(&cc->cc_grant);
	clock_ns = 0;
	on_wait = NULL;
	ATF_CHECK_EQ(4, waits);
	T_COUNT(b, RX_FRAME, 3);
	stop();
	vale_close(b);
	return (yields);
}

TEST(away, "A thread that waits for more frames yields no more when another one "
    "computes on its processor")
{
	const unsigned int all = yields_of(VALE_AWAY_NS, 0);

	ATF_CHECK_MSG(all > 3 * 3, "%u", all);
	ATF_CHECK_EQ(1, yields_of(VALE_AWAY_NS + 1, 0));
	/* Some time later the thread tries again. */
	ATF_CHECK_EQ_MSG(4, yields_of(VALE_AWAY_NS + 1, VALE_REST_NS), "%u",
	    yields);
}

static void *
send_all(void *arg)
{
	struct vale_desc *a = arg;
	struct nm_csb_atok *atok =
	    &((struct vale_csb *)(void *)memory)->rx_atok;
	unsigned int i;

	for (i = 0; i < 3000; i++) {
		/* It is asleep again, and has taken no kick. */
		atomic_store_32(&atok->appl_need_kick, 1);
		atomic_store_32(&atok->head, i % reg.nr_rx_slots);
		t_send(a, 60, EVERYBODY, 1, i);
	}
	return (NULL);
}

TEST(unread, "Kicks that a client does not read hold up no sender, when their "
    "socket is full")
{
	struct vale_desc *a = t_open("vale0:a", 64, 64);
	struct timespec limit;
	pthread_t thread;

	start();
	ATF_REQUIRE_EQ(0, pthread_create(&thread, NULL, send_all, a));
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 60;
	ATF_REQUIRE_EQ(0, pthread_timedjoin_np(thread, NULL, &limit));
	/* It has been full. */
	ATF_CHECK_EQ(-1, send(cc->cc_grant.gr_kick[0].rx, "", 1, MSG_DONTWAIT));
	stop();
	vale_close(a);
}

TEST_PROGRAM
