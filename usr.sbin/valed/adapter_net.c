/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* The network of an adapter; see adapter_net.h. */

#include <sys/param.h>

#include <dev/e1000/e82545_reg.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "adapter_net.h"
#include "libvale.h"
#include "tap_port.h"

/* A sync has failed, or works again. */
static void __attribute__((__format__(__printf__, 1, 0)))
net_vlog(const char *fmt, va_list ap)
{
	char line[256];

	vsnprintf(line, sizeof(line), fmt, ap);
	fprintf(stderr, "%s\n", line);
}

static int
net_open_vale(struct adapter_net *an, const char *name, char *why, size_t size)
{
	an->an_vale = vale_open(name, NULL);
	if (an->an_vale == NULL) {
		snprintf(why, size, "backend=%s: %s", name,
		    vale_frame_port_why(name, errno));
		return (-1);
	}
	if (vale_frame_port_init(&an->an_vale_port, an->an_vale,
	    net_vlog) != 0) {
		snprintf(why, size, "backend=%s: %s", name, strerror(errno));
		vale_close(an->an_vale);
		an->an_vale = NULL;
		return (-1);
	}
	an->an_port = &an->an_vale_port.vfp_port;
	an->an_fd = an->an_vale->fd;
	return (0);
}

int
adapter_net_open(struct adapter_net *an, const char *name, uint32_t mtu,
    char *why, size_t size)
{
	if (strncmp(name, "vale", 4) == 0) {
		if (net_open_vale(an, name, why, size) != 0)
			return (-1);
	} else {
		an->an_port = tap_port_open(name, mtu, why, size);
		if (an->an_port == NULL)
			return (-1);
		an->an_fd = tap_port_fd(an->an_port);
	}
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
	if (an->an_vale != NULL)
		vale_close(an->an_vale);
	else if (an->an_port != NULL)
		tap_port_close(an->an_port);
	an->an_port = NULL;
	an->an_vale = NULL;
}

bool
adapter_net_gone(const struct adapter_net *an)
{
	return (an->an_vale == NULL && tap_port_gone(an->an_port));
}
