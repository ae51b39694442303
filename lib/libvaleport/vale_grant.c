/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Replies, and what registrations ask for: vale_grant.h. */

#include <sys/param.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vale_grant.h"

void
vale_grant_init(struct vale_grant *gr, uid_t uid, bool admin, int fd,
    const char *name, char *why)
{
	gr->gr_uid = uid;
	gr->gr_admin = admin;
	gr->gr_fd = fd;
	gr->gr_name = name;
	gr->gr_why = why;
	gr->gr_npassed = gr->gr_nfds = 0;
	gr->gr_window = -1;
	gr->gr_port = NULL;
	gr->gr_pipe = NULL;
	gr->gr_null = false;
	gr->gr_rest_ns = 0;
}

bool
vale_grant_any(const struct vale_grant *gr)
{
	return (gr->gr_port != NULL || gr->gr_pipe != NULL || gr->gr_null);
}

int
vale_grant_why(struct vale_grant *gr, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(gr->gr_why, sizeof(((struct vale_wire *)0)->vw_why), fmt, ap);
	va_end(ap);
	return (error);
}

int
vale_grant_why_errno(struct vale_grant *gr, int error)
{
	if (gr->gr_why[0] == '\0')
		return (vale_grant_why(gr, error, "%s", strerror(error)));
	return (error);
}

int
vale_grant_reply(struct vale_grant *gr, int fd)
{
	int error;

	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd != -1) {
		gr->gr_fds[gr->gr_nfds++] = fd;
		return (0);
	}
	error = errno;
	while (gr->gr_nfds > 0)
		close(gr->gr_fds[--gr->gr_nfds]);
	return (error);
}

unsigned int
vale_grant_rings(const struct nmreq_register *reg)
{
	return (MAX(1, MAX(reg->nr_tx_rings, reg->nr_rx_rings)));
}

void
vale_grant_params(const struct nmreq_register *reg, struct vale_params *params)
{
	params->rings = vale_grant_rings(reg);
	params->tx_slots = reg->nr_tx_slots;
	params->rx_slots = reg->nr_rx_slots;
	if (params->tx_slots == 0)
		params->tx_slots = VALE_SLOTS_DEFAULT;
	if (params->rx_slots == 0)
		params->rx_slots = VALE_SLOTS_DEFAULT;
	/* Other flags say how poll(2) works: that is the user's. */
	params->monitor =
	    ((reg->nr_flags & NR_MONITOR_TX) != 0 ? VALE_MIRROR_TX : 0) |
	    ((reg->nr_flags & NR_MONITOR_RX) != 0 ? VALE_MIRROR_RX : 0);
	/* The filter is not the registration's. */
	params->filter = NULL;
	params->filter_len = 0;
}
