/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* See valed_guard_calls.h. */

#include <sys/param.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "adapter_config.h"
#include "valed_address.h"
#include "valed_guard.h"
#include "valed_guard_calls.h"
#include "valed_options.h"

struct valed_options opt;
struct valed_change vc;
bool	replace = true;
static struct valed_why why;
static off_t	seen;			/* of what was said */

void
conf(const char *text)
{
	FILE *f = fopen("new", "w");

	ATF_REQUIRE(f != NULL);
	ATF_REQUIRE(fputs(text, f) >= 0);
	ATF_REQUIRE_EQ(0, fclose(f));
	ATF_REQUIRE_EQ(0, rename("new", "valed.conf"));
}

char	*argv[] = { (char []){ "valed" }, (char []){ "-k" },
	(char []){ "valed.conf" }, (char []){ "-c" }, (char []){ "ctl" },
	NULL };

void
start(const char *text, int argc)
{
	int fd = open("err", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	ATF_REQUIRE(fd != -1 && dup2(fd, STDERR_FILENO) != -1);
	close(fd);
	conf(text);
	argv[argc] = NULL;
	/* There is none, unless a test makes one. */
	valed_address_file = "machine-id";
	ATF_REQUIRE(valed_options(argc, argv, &opt, &why));
	ATF_REQUIRE_EQ(-1, valed_guard_fd());
	ATF_REQUIRE(valed_guard_start(argc, argv, &opt, &why));
	ATF_REQUIRE(valed_guard_fd() != -1);
}

void
said_both(const char *notes, const char *expected)
{
	char done[4096] = "", other[4096] = "", text[4096], *line, *rest = text;
	char prefix[64];
	int fd = open("err", O_RDONLY);
	ssize_t n = pread(fd, text, sizeof(text) - 1, seen);
	char *to;

	ATF_REQUIRE(n >= 0);
	close(fd);
	snprintf(prefix, sizeof(prefix), "%s: reloaded: ",
	    program_invocation_short_name);
	text[n] = '\0';
	seen += n;
	while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
		to = other;
		if (strncmp(line, prefix, strlen(prefix)) == 0) {
			to = done;
			line += strlen(prefix);
		}
		strlcat(to, line, sizeof(other));
		strlcat(to, "\n", sizeof(other));
	}
	if (notes != NULL)
		ATF_CHECK_STREQ(notes, done);
	ATF_CHECK_STREQ(expected, other);
}

void
said(const char *expected)
{
	said_both(NULL, expected);
}

bool
exists(const char *path)
{
	struct stat st;

	return (lstat(path, &st) == 0);
}

bool
listens(const char *path, int type)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	bool ok;

	strlcpy(sun.sun_path, path, sizeof(sun.sun_path));
	ok = connect(s, (void *)&sun, sizeof(sun)) == 0;
	ATF_CHECK(ok || errno == ECONNREFUSED);
	close(s);
	return (ok);
}

void
check_socket(int fd, const char *path)
{
	struct sockaddr_un sun;
	socklen_t len = sizeof(sun);
	int on = 0;

	memset(&sun, 0, sizeof(sun));
	ATF_REQUIRE_EQ(0, getsockname(fd, (void *)&sun, &len));
	ATF_CHECK_STREQ(path, sun.sun_path);
	len = sizeof(on);
	ATF_REQUIRE_EQ(0, getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on,
	    &len));
	ATF_CHECK_EQ(1, on);
	ATF_CHECK_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
}

void
comes(int what, int slot)
{
	ATF_REQUIRE(valed_guard_change(&vc));
	ATF_REQUIRE_EQ_MSG(what, (int)vc.vc_what, "%d", vc.vc_what);
	ATF_CHECK_EQ_MSG(slot, vc.vc_config.ac_slot, "%d",
	    vc.vc_config.ac_slot);
	ATF_CHECK(!vc.vc_lost);
	if (what != VALED_ADD)
		ATF_CHECK_EQ(-1, vc.vc_config.ac_listen);
}

void
ends_why(const char *why)
{
	comes(VALED_END, 0);
	ATF_CHECK_STREQ(why, vc.vc_why);
}

void
ends(void)
{
	ends_why("");
}

void
reserves(int slot, const char *port, int answer)
{
	comes(VALED_RESERVE, slot);
	ATF_CHECK_STREQ(port, vc.vc_config.ac_backend);
	valed_guard_answer(answer);
}

void
asks(int slot, int answer)
{
	comes(VALED_ASK, slot);
	valed_guard_answer(answer);
}

void
moves(int slot, const char *port, int answer)
{
	comes(VALED_MOVE, slot);
	ATF_CHECK_STREQ(port, vc.vc_config.ac_backend);
	valed_guard_answer(answer);
}

void
removes(int slot)
{
	comes(VALED_REMOVE, slot);
	valed_guard_answer(0);
}

void
adds(int slot, const char *name, const char *port, const char *path,
    bool no_csb, const char *new, int answer)
{
	comes(VALED_ADD, slot);
	ATF_CHECK_STREQ(name, vc.vc_config.ac_name);
	ATF_CHECK_STREQ(port, vc.vc_config.ac_backend);
	ATF_CHECK_STREQ(path, vc.vc_config.ac_path);
	ATF_CHECK_EQ(no_csb, !vc.vc_config.ac_csb);
	if (new == NULL)
		ATF_CHECK_EQ(-1, vc.vc_config.ac_listen);
	else
		check_socket(vc.vc_config.ac_listen, new);
	valed_guard_answer(answer);
}

void
reload(const char *text)
{
	conf(text);
	ATF_REQUIRE(valed_guard_reload(replace));
}
