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
#include <sys/eventfd.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include "ctl_impl.h"
#include "test.h"
#include "wait_until.h"
#include "wrap.h"

/* A connection's thread. */
struct client {
	struct ctl_conn	 conn;
	struct vale_wire wire;
	pthread_t	 thread;
	int		 error;
	bool		 replace;
};

static bool	no_eventfd;
static bool	replace;		/* what ask() asks for */

WRAP(int, eventfd, unsigned int value, int flags)
{
	ATF_CHECK_EQ(0, value);
	errno = EMFILE;
	return (no_eventfd ? -1 : __real_eventfd(value, flags));
}

int
ctl_why(struct ctl_conn *cc, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cc->cc_wire->vw_why, sizeof(cc->cc_wire->vw_why), fmt, ap);
	va_end(ap);
	return (error);
}

int
ctl_why_errno(struct ctl_conn *cc, int error)
{
	return (ctl_why(cc, error, "errno"));
}

static void *
request(void *arg)
{
	struct client *cl = arg;
	size_t size = 0;

	cl->error = cl->replace ? ctl_replace(&cl->conn, &size) :
	    ctl_reload(&cl->conn, &size);
	ATF_CHECK_EQ(0, size);
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
	cl->conn.cc_wire = &cl->wire;
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
	ATF_CHECK_STREQ(why, cl->wire.vw_why);
}

TEST(starts, "The descriptor is there before the first request, or an error")
{
	struct client cl = { .conn.cc_wire = &cl.wire };

	ATF_CHECK_EQ(-1, ctl_reload_fd());
	request(&cl);
	ATF_CHECK_EQ(EBADF, cl.error);
	ATF_CHECK_STREQ("errno", cl.wire.vw_why);
	no_eventfd = true;
	ATF_CHECK_EQ(EMFILE, ctl_reload_start());
	no_eventfd = false;
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
	answered(&a, EINVAL, "first");
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
	answered(&a, EINVAL, "again");
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
	answered(&b, EINVAL, "one");
	ctl_reload_begin(CTL_RELOAD);
	ATF_CHECK_EQ(0, asked());
	/* Who has confirmed is not answered by one that nobody has. */
	ask(&b);
	ctl_reload_end(CTL_RELOAD, "two");
	answered(&a, EINVAL, "two");
	ctl_reload_begin(CTL_REPLACE);
	ATF_CHECK_EQ(0, asked());
	ATF_CHECK_EQ(CTL_RELOAD, ctl_reload_wish());
	ctl_reload_end(CTL_REPLACE, "");
	answered(&b, 0, "");
}

TEST(cut, "The middle of an error is cut if the reply has no space for it")
{
	static const size_t lengths[] = { 1, 126, 127, 128, 129, 511 };
	char expected[CTL_RELOAD_WHY_SIZE], why[CTL_RELOAD_WHY_SIZE];
	struct client cl;
	unsigned int i, j;
	size_t len;

	ATF_REQUIRE_EQ(0, ctl_reload_start());
	for (i = 0; i < nitems(lengths); i++) {
		len = lengths[i];
		for (j = 0; j < len; j++)
			why[j] = 'a' + j % 26;
		why[len] = '\0';
		strlcpy(expected, why, sizeof(expected));
		if (len > 127)
			snprintf(expected, sizeof(expected), "%.62s...%s", why,
			    why + len - 62);
		ask(&cl);
		ctl_reload_begin(CTL_RELOAD);
		ctl_reload_end(CTL_RELOAD, why);
		answered(&cl, EINVAL, expected);
	}
}

TEST_PROGRAM
