/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* The network of an adapter; see adapter_net.h. */

#include <sys/param.h>
#include <sys/eventfd.h>

#include <dev/e1000/e82545_reg.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapter_net.h"
#include "frame_port.h"
#include "libvale.h"
#include "tap_port.h"
#include "vale_frame_port.h"

/* A sync has failed, or works again. */
static void __attribute__((__format__(__printf__, 1, 0)))
net_vlog(const char *fmt, va_list ap)
{
	char line[256];

	vsnprintf(line, sizeof(line), fmt, ap);
	fprintf(stderr, "%s\n", line);
}

/*
 * A port of a switch.
 */

static int
vale_net_open(struct adapter_net *an, const char *name,
    uint32_t mtu __unused, char *why, size_t size)
{
	struct vale_frame_port *vp = malloc(sizeof(*vp));
	struct vale_desc *d = vp == NULL ? NULL : vale_open(name, NULL);

	if (d == NULL) {
		snprintf(why, size, "backend=%s: %s", name,
		    vale_frame_port_why(name, errno));
		free(vp);
		return (-1);
	}
	if (vale_frame_port_init(vp, d, net_vlog) != 0) {
		snprintf(why, size, "backend=%s: %s", name, strerror(errno));
		vale_close(d);
		free(vp);
		return (-1);
	}
	an->an_vale = d;
	an->an_port = &vp->vfp_port;
	an->an_fd = d->fd;
	return (0);
}

static void
vale_net_close(struct adapter_net *an)
{
	vale_close(an->an_vale);
	free(__containerof(an->an_port, struct vale_frame_port, vfp_port));
}

/*
 * A TAP.
 */

static int
tap_net_open(struct adapter_net *an, const char *name, uint32_t mtu, char *why,
    size_t size)
{
	an->an_port = tap_port_open(name, mtu, why, size);
	if (an->an_port == NULL)
		return (-1);
	an->an_fd = tap_port_fd(an->an_port);
	return (0);
}

static void
tap_net_close(struct adapter_net *an)
{
	tap_port_close(an->an_port);
}

/*
 * None.
 */

struct none_port {
	struct frame_port	none_port;
	struct frame_source	none_source;
};

static bool
none_send(struct frame_port *port __unused, const struct frame *frame __unused)
{
	return (false);
}

static void
none_nothing(struct frame_port *port __unused)
{
}

static bool
none_peek(struct frame_source *source __unused, struct frame *frame __unused)
{
	return (false);
}

static const struct frame_port_ops none_ops = {
	.fpo_send = none_send,
	.fpo_flush = none_nothing,
	.fpo_sync = none_nothing,
};

static int
none_net_open(struct adapter_net *an, const char *name,
    uint32_t mtu __unused, char *why, size_t size)
{
	struct none_port *np = calloc(1, sizeof(*np));

	/* An event that never comes. */
	an->an_fd = np == NULL ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (an->an_fd == -1) {
		snprintf(why, size, "%s: %s", name, strerror(errno));
		free(np);
		return (-1);
	}
	np->none_port.fp_ops = &none_ops;
	np->none_port.fp_source = &np->none_source;
	np->none_source.fs_peek = none_peek;
	an->an_port = &np->none_port;
	return (0);
}

static void
none_net_close(struct adapter_net *an)
{
	close(an->an_fd);
	free(__containerof(an->an_port, struct none_port, none_port));
}

/* By the beginnings of their names. */
static const struct adapter_net_type {
	const char	*nty_name;
	int		(*nty_open)(struct adapter_net *an, const char *name,
			    uint32_t mtu, char *why, size_t size);
	void		(*nty_close)(struct adapter_net *an);
} types[] = {
	{ "vale", vale_net_open, vale_net_close },
	{ ADAPTER_NET_NONE, none_net_open, none_net_close },
	{ "", tap_net_open, tap_net_close },
};

int
adapter_net_open(struct adapter_net *an, const char *name, uint32_t mtu,
    char *why, size_t size)
{
	const struct adapter_net_type *type = types;

	while (strncmp(name, type->nty_name, strlen(type->nty_name)) != 0)
		type++;
	*an = (struct adapter_net){ .an_type = type };
	if (type->nty_open(an, name, mtu, why, size) != 0)
		return (-1);
	an->an_port->fp_frame_max = adapter_net_frame_max(mtu);
	return (0);
}

uint32_t
adapter_net_frame_max(uint32_t mtu)
{
	return (mtu == 0 ? UINT32_MAX : mtu + E82545_HDRLEN_MAX);
}

void
adapter_net_close(struct adapter_net *an)
{
	if (an->an_port != NULL)
		an->an_type->nty_close(an);
	*an = (struct adapter_net){ .an_port = NULL };
}

bool
adapter_net_gone(const struct adapter_net *an)
{
	return (an->an_type->nty_close == tap_net_close &&
	    tap_port_gone(an->an_port));
}
