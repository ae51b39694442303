/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Clients of valed's control socket that do not read, pass descriptors for
 * nothing, or are too many.  What a request is refused for is tested beside the
 * library, in tests/lib/libctl.
 */

#include <sys/param.h>
#include <sys/socket.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "send_fds.h"
#include "test.h"
#include "vale_client.h"
#include "valed_run.h"
#include "wait_until.h"

/* As CTL_MAX of lib/libctl/ctl.h: the test is about the program. */
#define	CONNECTIONS	320

struct packet {
	struct vale_wire w;
	union {
		struct nmreq_register	 reg;
		struct nmreq_vale_list	 list;
		struct vale_wire_page	 page;
		uint8_t			 bytes[VALE_WIRE_MAX -
		    sizeof(struct vale_wire)];
	} u;
};

static int
dial(void)
{
	int fd = vale_client_connect("control");

	ATF_REQUIRE_MSG(fd != -1, "%s", strerror(errno));
	return (fd);
}

/* A valid request, without a body. */
static void
prepare(struct packet *p, uint16_t type, const char *name)
{
	memset(p, 0, sizeof(*p));
	p->w.vw_magic = VALE_WIRE_MAGIC;
	p->w.vw_header.nr_version = NETMAP_API;
	p->w.vw_header.nr_reqtype = type;
	strlcpy(p->w.vw_header.nr_name, name,
	    sizeof(p->w.vw_header.nr_name));
}

/* Send `len' bytes and receive the reply; returns its length. */
static ssize_t
converse(int fd, struct packet *p, size_t len)
{
	ssize_t n;

	ATF_REQUIRE_EQ((ssize_t)len, send(fd, p, len, MSG_NOSIGNAL));
	n = recv(fd, p, sizeof(*p), 0);
	ATF_REQUIRE_MSG(n == 0 || n >= (ssize_t)sizeof(p->w), "%zd", n);
	return (n);
}

/* Send a request with `n' copies of a descriptor. */
static void
send_with(int fd, struct packet *p, size_t len, int passed, unsigned int n)
{
	int copies[64];
	unsigned int i;

	for (i = 0; i < n; i++)
		copies[i] = passed;
	SEND_FDS(fd, p, len, copies, n);
}

VALED_TEST(descriptors, "Descriptors that no request takes are closed; no "
    "request has more than 18")
{
	static const unsigned int numbers[] = { 1, VALE_WIRE_FDS,
	    VALE_WIRE_FDS + 1, 64 };
	static struct packet p;
	struct pollfd pfd;
	int fd = dial(), fds[2];
	size_t i;

	for (i = 0; i < nitems(numbers); i++) {
		ATF_REQUIRE_EQ(0, pipe(fds));
		prepare(&p, VALE_WIRE_PORTS, "");
		send_with(fd, &p, sizeof(p.w) + sizeof(p.u.page), fds[1],
		    numbers[i]);
		close(fds[1]);
		ATF_CHECK(recv(fd, &p, sizeof(p), 0) > 0);
		ATF_CHECK_EQ(numbers[i] > VALE_WIRE_FDS ? EMFILE : 0,
		    p.w.vw_error);
		/* The end of file comes when all copies are closed. */
		pfd = (struct pollfd){ .fd = fds[0], .events = POLLIN };
		ATF_CHECK_EQ(1, poll(&pfd, 1, WAIT_S * 1000));
		close(fds[0]);
	}
	close(fd);
}

VALED_TEST(deaf, "A client that does not read its replies is dropped; others "
    "are served")
{
	static struct packet p;
	int fd = dial(), other = dial();
	ssize_t n;

	prepare(&p, NETMAP_REQ_REGISTER, "vale0:a");
	p.u.reg.nr_mode = NR_REG_ALL_NIC;
	converse(fd, &p, sizeof(p.w) + sizeof(p.u.reg));
	do {
		prepare(&p, VALE_WIRE_PORTS, "");
		n = send(fd, &p, sizeof(p.w) + sizeof(p.u.page),
		    MSG_NOSIGNAL);
	} while (n != -1);
	ATF_CHECK(errno == EPIPE || errno == ECONNRESET);
	/* Its port has gone with it. */
	do {
		prepare(&p, NETMAP_REQ_VALE_LIST, "vale0:a");
		ATF_REQUIRE(converse(other, &p, sizeof(p.w) +
		    sizeof(p.u.list)) > 0);
	} while (p.w.vw_error == 0);
	ATF_CHECK_EQ(ENXIO, p.w.vw_error);
	close(fd);
	close(other);
}

VALED_TEST(crowd, "One connection too many is closed; when another ends, there "
    "is a place again")
{
	static struct packet p;
	int fd[CONNECTIONS], i, more;
	ssize_t n;

	for (i = 0; i < CONNECTIONS; i++) {
		fd[i] = dial();
		/* The connection that valed_run() made may not have ended. */
		do {
			prepare(&p, NETMAP_REQ_VALE_LIST, "");
			n = send(fd[i], &p, sizeof(p.w) + sizeof(p.u.list),
			    MSG_NOSIGNAL);
			if (n != -1)
				n = recv(fd[i], &p, sizeof(p), 0);
			if (n <= 0) {
				close(fd[i]);
				fd[i] = dial();
			}
		} while (n <= 0);
	}
	more = dial();
	ATF_CHECK(recv(more, &p, sizeof(p), 0) <= 0);
	close(more);
	close(fd[7]);
	do {
		more = dial();
		prepare(&p, NETMAP_REQ_VALE_LIST, "");
		n = send(more, &p, sizeof(p.w) + sizeof(p.u.list),
		    MSG_NOSIGNAL);
		if (n != -1)
			n = recv(more, &p, sizeof(p), 0);
		close(more);
	} while (n <= 0);
	fd[7] = -1;
	for (i = 0; i < CONNECTIONS; i++)
		if (fd[i] != -1)
			close(fd[i]);
}

TEST_PROGRAM
