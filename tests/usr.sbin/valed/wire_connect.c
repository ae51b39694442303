/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <sys/param.h>
#include <sys/systm.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <atf-c.h>

#include "fail_calls.h"
#include "test.h"
#include "vale_client.h"
#include "wire_connect.h"
#include "wrap.h"

#define	CONNECTIONS	8

/* The user's ends that come next, and all of valed's. */
static int user_end[CONNECTIONS], valed_end[CONNECTIONS];
static unsigned int prepared, connected;

WRAP(int, vale_client_connect, const char *path)
{
	ATF_CHECK_STREQ("the path", path);
	if (connected == prepared) {
		errno = ECONNREFUSED;
		return (-1);
	}
	return (user_end[connected++]);
}

int
prepare(void)
{
	int fd[2];

	ATF_REQUIRE(prepared < CONNECTIONS);
	setenv(VALE_WIRE_ENV, "the path", 1);
	wire_pair(fd);
	user_end[prepared] = fd[0];
	return (valed_end[prepared++] = fd[1]);
}

int
prepare_reply(int error, const void *body, size_t size)
{
	int fd = prepare();

	wire_reply(fd, error, "", body, size, NULL, 0);
	return (fd);
}

void
finish(void)
{
	struct wire_request wr;

	ATF_CHECK_EQ(prepared, connected);
	ATF_CHECK_EQ(0, fail_allocs());
	while (prepared > 0) {
		prepared--;
		if (wire_pending(valed_end[prepared]))
			wire_take(valed_end[prepared], &wr);
		ATF_CHECK(!vale_client_alive(valed_end[prepared]));
		close(valed_end[prepared]);
	}
	connected = 0;
}

struct wire_request
request(int fd, uint16_t type, const char *name, size_t size)
{
	struct wire_request wr;

	wire_take(fd, &wr);
	ATF_CHECK_EQ(type, wr.wr_wire.vw_header.nr_reqtype);
	ATF_CHECK_EQ(NETMAP_API, wr.wr_wire.vw_header.nr_version);
	ATF_CHECK_STREQ(name, wr.wr_wire.vw_header.nr_name);
	ATF_CHECK_EQ(size, wr.wr_size);
	ATF_CHECK_EQ(0, wr.wr_nfds);
	return (wr);
}
