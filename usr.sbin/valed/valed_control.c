/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The option -c: where the control socket is, who can connect to it, who of
 * those is an administrator, and how much memory the others' ports may have.
 */

#include <sys/param.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <ctype.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peer_mem.h"
#include "valed_activation.h"
#include "valed_control.h"
#include "valed_socket.h"

#define	OPTION_SIZE	512

/* What is wrong with the option. */
static char why[OPTION_SIZE + 128];

static const char * __printflike(1, 2)
bad(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return (why);
}

/* Parse a group's name or number. */
static const char *
parse_group(const char *name, const char *value, gid_t *gid)
{
	const struct group *gr;
	const char *errstr;

	if (*gid != VALED_NOGROUP)
		return (bad("%s= twice", name));
	if (value[strspn(value, "0123456789")] == '\0') {
		*gid = (gid_t)strtonum(value, 0, VALED_NOGROUP - 1, &errstr);
		return (errstr == NULL ? NULL : bad("%s=%s: not the number of "
		    "a group", name, value));
	}
	gr = getgrnam(value);
	if (gr == NULL)
		return (bad("%s=%s: no such group", name, value));
	*gid = gr->gr_gid;
	return (NULL);
}

static const char *
parse_mode(const char *value, mode_t *mode)
{
	char *end;
	unsigned long n;

	if (*mode != VALED_NOMODE)
		return (bad("mode= twice"));
	n = strtoul(value, &end, 8);
	if (value[strspn(value, "01234567")] != '\0' || n > ACCESSPERMS)
		return (bad("mode=%s: not an octal number up to 777", value));
	*mode = n;
	return (NULL);
}

bool
valed_size_parse(const char *value, uint64_t *size)
{
	static const char suffixes[] = "MGT";
	const char *p, *suffix;
	unsigned int shift;
	uint64_t n = 0;

	for (p = value; isdigit((unsigned char)*p) && n <= PEER_MEM_BYTES; p++)
		n = n * 10 + (*p - '0');
	suffix = *p == '\0' ? NULL : strchr(suffixes, *p);
	if (suffix == NULL || p[1] != '\0')
		return (false);
	shift = 20 + 10 * (suffix - suffixes);
	*size = n << shift;
	return (n != 0 && n <= PEER_MEM_BYTES >> shift);
}

/* Parse a size, which is 0 before. */
static const char *
parse_size(const char *name, const char *value, uint64_t *size)
{
	if (*size != 0)
		return (bad("%s= twice", name));
	if (!valed_size_parse(value, size))
		return (bad("%s=%s: not a size from 1M to 1T, with M, G or T",
		    name, value));
	return (NULL);
}

/* Set what was not given. */
static void
size_defaults(struct ctl_options *o)
{
	if (o->mem == 0)
		o->mem = (uint64_t)sysconf(_SC_PHYS_PAGES) *
		    sysconf(_SC_PAGESIZE) / 4;
	if (o->user_mem == 0)
		o->user_mem = o->mem / 2;
}

static const char *
parse_option(struct control_config *co, const char *s)
{
	static const char *const names[] = { "group", "mode", "admin", "mem",
	    "user_mem" };
	const size_t len = strcspn(s, "=");
	unsigned int i;

	for (i = 0; i < nitems(names); i++)
		if (strlen(names[i]) == len && memcmp(names[i], s, len) == 0)
			break;
	if (i == nitems(names))
		return (bad("unknown option \"%s\"", s));
	if (s[len] == '\0' || s[len + 1] == '\0')
		return (bad("%s=: the value is missing", names[i]));
	s += len + 1;
	switch (i) {
	case 0:
		return (parse_group("group", s, &co->co_access.va_group));
	case 1:
		return (parse_mode(s, &co->co_access.va_mode));
	case 2:
		return (parse_group("admin", s, &co->co_options.admin));
	case 3:
		return (parse_size("mem", s, &co->co_options.mem));
	default:
		return (parse_size("user_mem", s, &co->co_options.user_mem));
	}
}

/* Parse the path, or fd= and what valed_activation_fd() takes. */
static const char *
parse_socket(struct control_config *co, const char *s)
{
	const char *error;

	if (strncmp(s, "fd=", strlen("fd=")) == 0) {
		error = valed_activation_fd(s + strlen("fd="), SOCK_SEQPACKET,
		    &co->co_fd);
		return (error == NULL ? NULL : bad("%s", error));
	}
	if (*s == '\0')
		return (bad("one path is needed"));
	if (strlcpy(co->co_path, s, sizeof(co->co_path)) >=
	    sizeof(co->co_path))
		return (bad("longer than %zu bytes", sizeof(co->co_path) - 1));
	return (NULL);
}

const char *
valed_control_parse(struct control_config *co, const char *option)
{
	char text[OPTION_SIZE], *p = text;
	const char *error;

	*co = (struct control_config){ .co_fd = -1, .co_listen = -1,
	    .co_access = { VALED_NOGROUP, VALED_NOMODE },
	    .co_options = { .admin = VALED_NOGROUP } };
	if (strlcpy(text, option, sizeof(text)) >= sizeof(text))
		return (bad("longer than %zu bytes", sizeof(text) - 1));
	error = parse_socket(co, strsep(&p, ","));
	while (error == NULL && p != NULL)
		error = parse_option(co, strsep(&p, ","));
	if (error == NULL && co->co_fd != -1 &&
	    (co->co_access.va_group != VALED_NOGROUP ||
	    co->co_access.va_mode != VALED_NOMODE))
		return (bad("group= and mode= are of who made the socket"));
	size_defaults(&co->co_options);
	return (error);
}
