/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Sockets that valed inherits, from systemd(1) or another program, instead of
 * creating them.  See sd_listen_fds(3): LISTEN_FDS descriptors, from 3 on, have
 * the names in LISTEN_FDNAMES, which colons separate, if LISTEN_PID is this
 * process.  Who made the socket owns its name in the file system: valed neither
 * locks nor removes it.  Nor does valed set FD_CLOEXEC: the program that the
 * supervisor executes inherits the same descriptors with the same numbers.
 */

#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peer_fd.h"
#include "valed_activation.h"

/* Descriptors that were passed to this process. */
static int	passed;
static bool	ignored;

/* Return the value of an environment variable as a number, or 0. */
static int
env_number(const char *name)
{
	const char *value;

	value = getenv(name);
	return (value == NULL ? 0 : (int)strtonum(value, 0, INT_MAX, NULL));
}

void
valed_activation_init(void)
{
	if (env_number("LISTEN_PID") == getpid())
		passed = env_number("LISTEN_FDS");
}

void
valed_activation_ignore(bool ignore)
{
	ignored = ignore;
}

void
valed_activation_each(void (*fn)(const char *name, size_t len, int fd))
{
	const char *p;
	size_t len;
	int i;

	p = getenv("LISTEN_FDNAMES");
	for (i = 0; p != NULL && i < passed; i++) {
		len = strcspn(p, ":");
		fn(p, len, VALED_ACTIVATION_START + i);
		p = p[len] == ':' ? p + len + 1 : NULL;
	}
}

/* What named() looks for, and finds: the first. */
static const char *wanted;
static int	found;

static void
named(const char *name, size_t len, int fd)
{
	if (found == -1 && strlen(wanted) == len &&
	    memcmp(name, wanted, len) == 0)
		found = fd;
}

/* Return the descriptor of a name, or -1. */
static int
fd_named(const char *name)
{
	wanted = name;
	found = -1;
	valed_activation_each(named);
	return (found);
}

void
valed_activation_until(int fd)
{
	char *names = getenv("LISTEN_FDNAMES"), *p = names, text[16];
	int i;

	passed = fd - VALED_ACTIVATION_START;
	snprintf(text, sizeof(text), "%d", passed);
	setenv("LISTEN_FDS", text, 1);
	for (i = 0; p != NULL && i < passed; i++) {
		p += strcspn(p, ":");
		if (*p == ':' && i + 1 < passed)
			p++;
	}
	if (p != NULL)
		*p = '\0';
}

const char *
valed_activation_fd(const char *name, int type, int *fdp)
{
	const char *unfit = NULL;
	int fd, flags;

	if (ignored) {
		*fdp = 0;
		return (NULL);
	}
	if (name[strspn(name, "0123456789")] == '\0')
		fd = (int)strtonum(name, 0, INT_MAX, &unfit);
	else
		fd = fd_named(name);
	if (fd == -1)
		return ("no such name in LISTEN_FDNAMES");
	if (unfit != NULL || !peer_socket_is(fd, SO_DOMAIN, AF_UNIX) ||
	    !peer_socket_is(fd, SO_TYPE, type) ||
	    !peer_socket_is(fd, SO_ACCEPTCONN, 1))
		return (type == SOCK_STREAM ?
		    "not a listening stream socket of the UNIX domain" :
		    "not a listening sequential-packet socket of the UNIX "
		    "domain");
	flags = fcntl(fd, F_GETFL);
	if (flags == -1 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) == -1)
		return (strerror(errno));
	*fdp = fd;
	return (NULL);
}
