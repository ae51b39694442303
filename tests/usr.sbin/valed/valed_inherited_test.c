/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Sockets that valed inherits: which descriptor a name stands for, and what is
 * said of one that does not fit.
 */

#include <sys/param.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include <atf-c.h>

#include "adapter_config.h"
#include "said.h"
#include "test.h"
#include "valed_activation.h"
#include "valed_control.h"
#include "valed_options.h"

static struct valed_options opt;
static struct valed_why why;

/* A socket of a type, with a flag, at a descriptor; it listens, or not. */
static void
socket_at(int fd, int domain, int type, bool listens)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int s = socket(domain, type, 0);

	if (s == -1)
		err(1, "socket");
	if (listens && domain == AF_UNIX)
		(void)bind(s, (void *)&sun, sizeof(sa_family_t));
	if (listens && type != SOCK_DGRAM)
		(void)listen(s, 1);
	(void)fcntl(s, F_SETFL, O_APPEND);
	if (s != fd) {
		dup2(s, fd);
		close(s);
	}
}

/*
 * In a child: descriptors from 3 on, as a service manager has them; and a
 * standard input that fits.
 */
static void
inherit(const char *pid, const char *fds, const char *names)
{
	static char env[64];
	char own[16];

	snprintf(own, sizeof(own), "%d", getpid());
	setenv("LISTEN_PID", pid == NULL ? own : pid, 1);
	unsetenv("LISTEN_FDS");
	if (fds != NULL)
		setenv("LISTEN_FDS", fds, 1);
	/* What is behind the names is none of them. */
	snprintf(env, sizeof(env), "LISTEN_FDNAMES=%s", names);
	strlcpy(env + strlen(env) + 1, "behind:behind", 14);
	putenv(env);
	socket_at(0, AF_UNIX, SOCK_STREAM, true);
	socket_at(3, AF_UNIX, SOCK_STREAM, true);
	socket_at(4, AF_UNIX, SOCK_SEQPACKET, true);
	socket_at(5, AF_UNIX, SOCK_STREAM, false);
	socket_at(6, AF_INET, SOCK_STREAM, true);
	socket_at(7, AF_UNIX, SOCK_STREAM, true);
	socket_at(8, AF_UNIX, SOCK_DGRAM, false);
	valed_activation_init();
}

#define	NO_NAME		"no such name in LISTEN_FDNAMES"
#define	NO_STREAM	"not a listening stream socket of the UNIX domain"
#define	NO_PACKET	"not a listening sequential-packet socket of the "  \
			"UNIX domain"

TEST(found, "A descriptor is found by its number or name, if it is for this "
    "process, and a listening socket of its type")
{
	static const struct {
		const char *pid, *fds, *names, *name;
		int type, fd;
		const char *why;
	} rows[] = {
		{ NULL, "6", "a:b:c:d:e:f", "a", SOCK_STREAM, 3, NULL },
		{ NULL, "6", "a:b:c:d:e:f", "b", SOCK_SEQPACKET, 4, NULL },
		{ NULL, "6", "a:b:c:d:e:f", "e", SOCK_STREAM, 7, NULL },
		{ NULL, "5", "a:b:c:d:e:f", "e", SOCK_STREAM, 7, NULL },
		{ NULL, "4", "a:b:c:d:e:f", "e", SOCK_STREAM, -1, NO_NAME },
		{ NULL, "0", "a", "a", SOCK_STREAM, -1, NO_NAME },
		{ NULL, NULL, "a", "a", SOCK_STREAM, -1, NO_NAME },
		{ "1", "6", "a", "a", SOCK_STREAM, -1, NO_NAME },
		{ "", "6", "a", "a", SOCK_STREAM, -1, NO_NAME },
		{ NULL, "x", "a", "a", SOCK_STREAM, -1, NO_NAME },
		{ NULL, "-1", "a", "a", SOCK_STREAM, -1, NO_NAME },
		{ NULL, "6", "", "a", SOCK_STREAM, -1, NO_NAME },
		{ NULL, "6", "ab:b", "a", SOCK_STREAM, -1, NO_NAME },
		{ NULL, "6", "a:b", "ab", SOCK_STREAM, -1, NO_NAME },
		{ NULL, "6", "x:y:z:u:aa", "aa", SOCK_STREAM, 7, NULL },
		{ NULL, "6", "x:y:z:u:", "v", SOCK_STREAM, -1, NO_NAME },
		{ NULL, "6", "same:b:c:d:same", "same", SOCK_STREAM, 3, NULL },
		{ NULL, "6", "a", "behind", SOCK_STREAM, -1, NO_NAME },
		{ NULL, "6", "c:b:a", "a", SOCK_STREAM, -1, NO_STREAM },
		{ NULL, "6", "c:b:a:d", "d", SOCK_STREAM, -1, NO_STREAM },
		{ NULL, "6", "a:b", "b", SOCK_STREAM, -1, NO_STREAM },
		{ NULL, "6", "a:b", "a", SOCK_SEQPACKET, -1, NO_PACKET },
		/* Numbers need no environment. */
		{ "1", "0", "", "3", SOCK_STREAM, 3, NULL },
		{ "1", "0", "", "4", SOCK_SEQPACKET, 4, NULL },
		{ "1", "0", "", "007", SOCK_STREAM, 7, NULL },
		{ "1", "0", "", "8", SOCK_STREAM, -1, NO_STREAM },
		{ "1", "0", "", "99", SOCK_STREAM, -1, NO_STREAM },
		{ "1", "0", "", "0", SOCK_STREAM, 0, NULL },
		{ "1", "0", "", "2147483648", SOCK_STREAM, -1, NO_STREAM },
		{ "1", "0", "", "4294967299", SOCK_STREAM, -1, NO_STREAM },
		{ "1", "0", "", "3x", SOCK_STREAM, -1, NO_NAME },
	};
	const char *why;
	unsigned int i;
	int fd, status;

	for (i = 0; i < nitems(rows); i++) {
		fflush(stdout);
		if (fork() == 0) {
			fd = -1;
			inherit(rows[i].pid, rows[i].fds, rows[i].names);
			why = valed_activation_fd(rows[i].name, rows[i].type,
			    &fd);
			if ((why == NULL) != (rows[i].why == NULL) ||
			    (why != NULL && strcmp(why, rows[i].why) != 0))
				errx(1, "row %u: %s", i, why);
			if (fd != rows[i].fd)
				errx(1, "row %u: fd %d", i, fd);
			if (fd != -1 && (fcntl(fd, F_GETFL) & (O_NONBLOCK |
			    O_APPEND)) != (O_NONBLOCK | O_APPEND))
				errx(1, "row %u: it blocks, or has lost a flag",
				    i);
			/* By the program that valed executes, too. */
			if (fd != -1 && fcntl(fd, F_GETFD) != 0)
				errx(1, "row %u: it is not inherited", i);
			_exit(0);
		}
		ATF_REQUIRE(wait(&status) != -1);
		ATF_CHECK_EQ_MSG(0, status, "row %u", i);
	}
}

/* Parse these arguments with what inherit() has. */
static void
parse(char *const *args)
{
	char *argv[8] = { (char []){ "valed" } };
	int argc = 1;

	inherit(NULL, "6", "a:ctl");
	while (args[argc - 1] != NULL) {
		argv[argc] = args[argc - 1];
		argc++;
	}
	if (!valed_options(argc, argv, &opt, &why))
		errx(why.wy_status, "%s", why.wy_text);
}

TEST(refused, "One that does not fit, or is used twice, is refused")
{
	static const struct {
		char *args[5];
		int status;
		const char *line;
	} rows[] = {
		{ { "-s", "1,e1000,vale0:a,fd=a", "-s",
		    "2,e1000,vale0:b,fd=3" }, EX_USAGE,
		    "-s 2,e1000,vale0:b,fd=3: fd=3: used twice" },
		{ { "-s", "2,e1000,vale0:b,fd=3,path=x" }, EX_USAGE,
		    "-s 2,e1000,vale0:b,fd=3,path=x: both path= and fd=" },
		{ { "-s", "2,e1000,vale0:b,fd=ctl" }, EX_USAGE,
		    "-s 2,e1000,vale0:b,fd=ctl: fd=ctl: " NO_STREAM },
		{ { "-s", "2,e1000,vale0:b,fd=b" }, EX_USAGE,
		    "-s 2,e1000,vale0:b,fd=b: fd=b: " NO_NAME },
		{ { "-c", "fd=a" }, EX_USAGE, "-c fd=a: " NO_PACKET },
		{ { "-c", "fd=b" }, EX_USAGE, "-c fd=b: " NO_NAME },
		{ { "-c", "fd=ctl,mode=0" }, EX_USAGE, "-c fd=ctl,mode=0: "
		    "group= and mode= are of who made the socket" },
		{ { "-c", "fd=ctl,group=0" }, EX_USAGE, "-c fd=ctl,group=0: "
		    "group= and mode= are of who made the socket" },
		{ { "-c", "fd=ctl,mode=0,x" }, EX_USAGE,
		    "-c fd=ctl,mode=0,x: unknown option \"x\"" },
		{ { "-k", "f" }, EX_CONFIG, "f:3: both path= and fd=" },
	};
	char line[256];
	unsigned int i;
	int status;
	FILE *f;

	f = fopen("f", "w");
	ATF_REQUIRE(f != NULL && fputs("pci.0.1.0.device=e1000\n"
	    "pci.0.1.0.backend=vale0:a\npci.0.1.0.path=x\npci.0.1.0.fd=3\n",
	    f) >= 0 && fclose(f) == 0);
	for (i = 0; i < nitems(rows); i++) {
		said_start();
		if (fork() == 0) {
			parse(rows[i].args);
			_exit(0);
		}
		ATF_REQUIRE(wait(&status) != -1);
		snprintf(line, sizeof(line), "%s: %s\n",
		    program_invocation_short_name, rows[i].line);
		ATF_CHECK_STREQ(line, said());
		ATF_CHECK_EQ_MSG(rows[i].status, WEXITSTATUS(status), "%u", i);
	}
}

TEST_PROGRAM
