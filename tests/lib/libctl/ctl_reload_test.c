/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Requests for a reload: this thread is valed's main thread, and others are
 * connections.
 */

#include <sys/param.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include "ctl_impl.h"
#include "test.h"
#include "wait_until.h"

/* A connection's thread. */
struct client {
	struct ctl_conn	 conn;
	char		 body[CTL_RELOAD_WHY_SIZE];
	pthread_t	 thread;
	int		 error;
	bool		 replace;
};

static bool	replace;		/* what ask() asks for */

int
vale_grant_why_errno(struct vale_grant *gr, int error)
{
	struct ctl_conn *cc = __containerof(gr, struct ctl_conn, cc_grant);

	strlcpy(cc->cc_body, "errno", CTL_RELOAD_WHY_SIZE);
	return (error);
}

static void *
request(void *arg)
{
	struct client *cl = arg;
	struct vale_wire wire = { 0 };
	size_t size = 0;

	wire.vw_header.nr_reqtype = cl->replace ? VALE_WIRE_REPLACE :
	    VALE_WIRE_RELOAD;
	cl->conn.cc_wire = &wire;
	cl->error = ctl_reload(&cl->conn, &size);
	if (cl->error == 0)
		cl->body[size] = '\0';
	return (NULL);
}

/* How many have asked for the next one. */
static unsigned int
asked(void)
{
	char line[64], path[64];
	unsigned int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", ctl_reload_fd());
	f = fopen(path, "r");
	ATF_REQUIRE(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL)
		(void)sscanf(line, "eventfd-count: %x", &n);
	fclose(f);
	return (n);
}

/* A client asks. */
static void
ask(struct client *cl)
{
	const unsigned int n = asked();

	memset(cl, 0, sizeof(*cl));
	cl->conn.cc_body = cl->body;
	cl->replace = replace;
	ATF_REQUIRE_EQ(0, pthread_create(&cl->thread, NULL, request, cl));
	wait_until(asked() == n + 1, "%u requests", asked());
	wait_readable(ctl_reload_fd(), "the request");
}

/* It is answered so. */
static void
answered(struct client *cl, int error, const char *why)
{
	ATF_REQUIRE_EQ(0, pthread_join(cl->thread, NULL));
	ATF_CHECK_EQ_MSG(error, cl->error, "%d", cl->error);
	ATF_CHECK_STREQ(why, cl->body);
}

TEST(starts, "The descriptor is there before the first request")
{
	struct client cl = { .conn.cc_body = cl.body };

	ATF_CHECK_EQ(-1, ctl_reload_fd());
	request(&cl);
	ATF_CHECK_EQ(EBADF, cl.error);
	ATF_CHECK_STREQ("errno", cl.body);
	ATF_REQUIRE_EQ(0, ctl_reload_start());
	ATF_CHECK_EQ(FD_CLOEXEC, fcntl(ctl_reload_fd(), F_GETFD));
	ATF_CHECK_EQ(O_NONBLOCK, fcntl(ctl_reload_fd(), F_GETFL) & O_NONBLOCK);
	ATF_CHECK_EQ(0, asked());
	/* A signal has asked, and nobody waits. */
	ctl_reload_begin(CTL_RELOAD);
	ctl_reload_end(CTL_RELOAD, "");
	ATF_CHECK_EQ(0, asked());
}

TEST(answers, "Each request is answered by the reload that begins after it")
{
	struct client a, b, c;

	ATF_REQUIRE_EQ(0, ctl_reload_start());
	ask(&a);
	ctl_reload_begin(CTL_RELOAD);
	ATF_CHECK_EQ(0, asked());
	ask(&b);
	ask(&c);
	ctl_reload_end(CTL_RELOAD, "first");
	answered(&a, 0, "first");
	ATF_CHECK_EQ(2, asked());
	/* It was not theirs, either. */
	ctl_reload_end(CTL_RELOAD, "none");
	ctl_reload_begin(CTL_RELOAD);
	ATF_CHECK_EQ(0, asked());
	ctl_reload_end(CTL_RELOAD, "");
	answered(&b, 0, "");
	answered(&c, 0, "");
	ask(&a);
	ctl_reload_begin(CTL_RELOAD);
	ctl_reload_end(CTL_RELOAD, "again");
	answered(&a, 0, "again");
}

TEST(replaces, "A reload that may disconnect clients is one of its own")
{
	struct client a, b;

	ATF_REQUIRE_EQ(0, ctl_reload_start());
	ask(&a);
	replace = true;
	ask(&b);
	ATF_CHECK_EQ(CTL_REPLACE, ctl_reload_wish());
	ctl_reload_begin(CTL_REPLACE);
	/* The other one waits. */
	ATF_CHECK_EQ(1, asked());
	ATF_CHECK_EQ(CTL_RELOAD, ctl_reload_wish());
	ctl_reload_end(CTL_REPLACE, "one");
	answered(&b, 0, "one");
	ctl_reload_begin(CTL_RELOAD);
	ATF_CHECK_EQ(0, asked());
	/* Who has confirmed is not answered by one that nobody has. */
	ask(&b);
	ctl_reload_end(CTL_RELOAD, "two");
	answered(&a, 0, "two");
	ctl_reload_begin(CTL_REPLACE);
	ATF_CHECK_EQ(0, asked());
	ATF_CHECK_EQ(CTL_RELOAD, ctl_reload_wish());
	ctl_reload_end(CTL_REPLACE, "");
	answered(&b, 0, "");
}

TEST(longest, "An error comes whole")
{
	char why[CTL_RELOAD_WHY_SIZE];
	struct client cl;
	unsigned int i;

	for (i = 0; i < sizeof(why) - 1; i++)
		why[i] = 'a' + i % 26;
	why[i] = '\0';
	ATF_REQUIRE_EQ(0, ctl_reload_start());
	ask(&cl);
	ctl_reload_begin(CTL_RELOAD);
	ctl_reload_end(CTL_RELOAD, why);
	answered(&cl, 0, why);
}

TEST_PROGRAM
