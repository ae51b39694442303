/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The guard as a process (valed_guard.c), where the test's process is the one
 * that serves: what it reads, what it refuses, how it ends, and calls that are
 * interrupted.
 */

#include <sys/param.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include <atf-c.h>

#include "adapter_config.h"
#include "fail_calls.h"
#include "open_fds.h"
#include "test.h"
#include "valed_config.h"
#include "valed_guard.h"
#include "valed_options.h"
#include "valed_serve.h"
#include "wait_until.h"

static struct valed_options opt;
static struct valed_why why;

void
valed_serve_watch(struct adapter *ending __unused)
{
}

/* Lines of an adapter, with a socket of its name. */
#define	NODE(slot, name)						\
	"pci.0." #slot ".0.device=e1000\n"				\
	"pci.0." #slot ".0.backend=vale0:" name "\n"			\
	"pci.0." #slot ".0.path=" name ".sock\n"
#define	A	NODE(1, "a")
#define	C	NODE(3, "c")

static void
conf(const char *text)
{
	FILE *f = fopen("valed.conf", "w");

	ATF_REQUIRE(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
}

static char	*argv[] = { (char []){ "valed" }, (char []){ "-k" },
	(char []){ "valed.conf" }, NULL };

static void
start(const char *text)
{
	conf(text);
	ATF_REQUIRE(valed_options(3, argv, &opt, &why));
	ATF_REQUIRE(valed_guard_start(3, argv, &opt, &why));
}

/* Have the guard read this configuration. */
static bool
reads(const char *text)
{
	conf(text);
	valed_options_free(&opt);
	why = (struct valed_why){ .wy_status = 0 };
	ATF_REQUIRE(valed_guard_read());
	wait_readable(valed_guard_fd(), "the configuration");
	return (valed_guard_options(&opt, &why));
}

static bool
exists(const char *path)
{
	return (access(path, F_OK) == 0);
}

TEST(refuses, "A process that a client has taken over has what the "
    "configuration names opened, and sockets that valed has created removed, "
    "and nothing else")
{
	struct adapter_config ac = { .ac_slot = 2, .ac_fd = -1,
	    .ac_path = "b.sock", .ac_control = "/c" };
	char line[HOSTIF_WHY], where[VALED_WHERE_SIZE];
	struct hostif_fds fds;
	FILE *f;

	start(A);
	ATF_CHECK_EQ(-1, valed_guard_socket(&ac, &why));
	ATF_CHECK_STREQ("No such file or directory", why.wy_text);
	ATF_CHECK_EQ(-1, valed_guard_opener(&ac, &why));
	ac.ac_slot = 1;
	/* Its port is on this process's switch. */
	ATF_CHECK_EQ(-1, valed_guard_opener(&ac, &why));
	/* The path is the configuration's: another valed listens there. */
	ATF_CHECK_EQ(-1, valed_guard_socket(&ac, &why));
	ATF_CHECK_STREQ("valed.conf:3: path=a.sock: socket in use",
	    why.wy_text);
	ATF_CHECK(!exists("b.sock"));
	ATF_CHECK(!valed_guard_open("vale0:lo", &fds, line));
	ATF_CHECK_EQ(ENOENT, errno);
	ATF_CHECK_STREQ("not in the configuration", line);
	ATF_CHECK(!valed_guard_where(&ac, VALED_NVARIABLES, where));
	ATF_CHECK(!valed_guard_where(&ac, -1, where));
	ATF_CHECK(valed_guard_where(&ac, VALED_V_PATH, where));
	ATF_CHECK_STREQ("valed.conf:3", where);
	ATF_CHECK(!valed_guard_where(&ac, VALED_V_MAC, where));
	f = fopen("b.sock", "w");
	ATF_REQUIRE(f != NULL && fclose(f) == 0);
	valed_guard_unlink("b.sock");
	valed_guard_unlink("valed.conf");
	ATF_CHECK(exists("b.sock") && exists("valed.conf") && exists("a.sock"));
	/* Another file on the path of one that valed has created. */
	ATF_REQUIRE(rename("b.sock", "a.sock") == 0);
	valed_guard_unlink("a.sock");
	ATF_CHECK(exists("a.sock"));
	/* A message of another size ends the guard. */
	ATF_REQUIRE_EQ(1, write(valed_guard_fd(), "", 1));
	ATF_CHECK_EQ(-1, valed_guard_socket(&ac, &why));
	ATF_CHECK_STREQ(VALED_GUARD_GONE, why.wy_text);
}

TEST(interrupted, "Calls that a signal or a lack of memory interrupts are "
    "repeated")
{
	static const struct {
		const char *name;
		int	error;
	} rows[] = {
		{ "recv", EINTR }, { "recvmsg", EINTR }, { "recvmsg", ENOMEM },
		{ "send", EINTR }, { "send", ENOBUFS }, { "send", ENOMEM },
	};
	unsigned int i;
	uint32_t n;

	start(A);
	for (i = 0; i < nitems(rows); i++) {
		fail_calls_error(rows[i].error);
		n = 0;
		do {
			/* In either process. */
			fail_calls(rows[i].name, ++n, 2);
			ATF_CHECK_MSG(reads(n % 2 == 0 ? A : A C), "%s, %d",
			    rows[i].name, rows[i].error);
		} while (fail_calls_end() > 0);
		ATF_CHECK_MSG(n > 1, "%s", rows[i].name);
	}
	/* Other errors are the end. */
	fail_calls_error(EBADF);
	fail_calls("send", 1, 1);
	ATF_CHECK(!valed_guard_read());
	ATF_CHECK_EQ(EBADF, errno);
	fail_calls_end();
	ATF_REQUIRE(valed_guard_read());
	fail_calls("recvmsg", 1, 1);
	ATF_CHECK(!valed_guard_options(&opt, &why));
	ATF_CHECK_STREQ(VALED_GUARD_GONE, why.wy_text);
	valed_guard_end(false);
}

TEST_PROGRAM
