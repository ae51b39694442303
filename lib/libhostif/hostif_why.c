/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Why an interface cannot be opened or attached, in words: hostif.h.
 */

#include <sys/param.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "hostif_impl.h"

int
hostif_fail(char why[HOSTIF_WHY], int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, HOSTIF_WHY, fmt, ap);
	va_end(ap);
	errno = error;
	return (-1);
}

int
hostif_fail_step(char why[HOSTIF_WHY], const char *ifname, const char *step)
{
	/* What may be refused, and who may do it. */
	static const struct {
		const char	*step;
		const char	*takes;
	} steps[] = {
		{ "packet socket", "CAP_NET_RAW" },
		{ "SO_SNDBUFFORCE", "CAP_NET_ADMIN" },
		{ "map of sockets", "CAP_BPF and CAP_NET_ADMIN" },
		{ "program", "CAP_BPF and CAP_NET_ADMIN" },
		{ "cannot attach an XDP program", "CAP_NET_ADMIN" },
		{ "AF_XDP", "CAP_NET_RAW" },
		{ "AF_XDP memory", "CAP_IPC_LOCK, or more memory that may be "
		    "locked" },
	};
	const int code = errno;
	const char *takes = NULL;
	unsigned int i;

	for (i = 0; i < nitems(steps); i++)
		if (strcmp(steps[i].step, step) == 0)
			takes = steps[i].takes;
	/* Units of systemd name the families that they permit. */
	if (code == EAFNOSUPPORT)
		return (hostif_fail(why, code, "%s: %s: %s: the kernel has "
		    "none, or the service may not use it: it takes the drop-in "
		    "attach.conf, and then a restart", ifname, step,
		    strerror(code)));
	/* AF_XDP has another error for memory that may not be locked. */
	if (takes != NULL && (code == EPERM ||
	    (code == ENOBUFS && strcmp(step, "AF_XDP memory") == 0)))
		return (hostif_fail(why, code, "%s: %s: %s: it takes %s",
		    ifname, step, strerror(code), takes));
	return (hostif_fail(why, code, "%s: %s: %s", ifname, step,
	    strerror(code)));
}
