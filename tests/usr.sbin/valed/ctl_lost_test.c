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

#include "send_fds.h"
#include "test.h"
#include "vale_test.h"
#include "vfu_fault.h"

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

	ATF_REQUIRE_EQ(0, vfu_fault_init());
	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds));
	cc->cc_fd = fds[0];
	client = fds[1];
	cc->cc_wire = calloc(1, VALE_WIRE_MAX);
	ATF_REQUIRE(cc->cc_wire != NULL);
	cc->cc_body = body = (void *)(cc->cc_wire + 1);
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
	memory = vfu_dma_addr(&cc->cc_dma, 0, reg.nr_memsize,
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
	struct netmap_if *nifp = (void *)(memory + reg.nr_offset);

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
	ATF_CHECK(vale_shared_tx(cc->cc_port));
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
	ATF_CHECK(vale_shared_rx(cc->cc_port));
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
	ATF_CHECK(!vale_shared_tx(cc->cc_port));
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
	wire.vw_header.nr_reqtype = VALE_WIRE_PORT_GET;
	strlcpy(wire.vw_header.nr_name, "vale0:c", VALE_NAME_SIZE);
	send_fds(client, &wire, sizeof(wire), fds, n);
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
			ATF_CHECK_EQ(0, cc->cc_npassed);
		}
		/* Each stays set beside the next. */
		if (i < nitems(options) && setsockopt(cc->cc_fd, SOL_SOCKET,
		    options[i], &(int){ 1 }, sizeof(int)) == -1)
			ATF_REQUIRE_EQ(ENOPROTOOPT, errno);
	}
	stop();
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, transmit);
	ATF_TP_ADD_TC(tp, receive);
	ATF_TP_ADD_TC(tp, index);
	ATF_TP_ADD_TC(tp, options);
	return (atf_no_error());
}
