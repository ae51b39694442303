/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* The network of an adapter; see adapter_net.h. */

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <dev/e1000/e82545_reg.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapter_net.h"
#include "frame_none.h"
#include "libvale.h"
#include "peer_fds.h"
#include "tap_port.h"
#include "vale_frame_port.h"
#include "vale_remote.h"
#include "valed_opener.h"

/* Print that a sync has failed, or works again. */
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
	frame_none_init(&np->none_port, &np->none_source);
	an->an_port = &np->none_port;
	return (0);
}

static void
none_net_close(struct adapter_net *an)
{
	close(an->an_fd);
	free(__containerof(an->an_port, struct none_port, none_port));
}

/*
 * A port of another valed's switch, which comes later.
 */

static int
remote_net_open(struct adapter_net *an, const char *name, uint32_t mtu __unused,
    char *why, size_t size)
{
	an->an_remote = malloc(sizeof(*an->an_remote));
	if (an->an_remote == NULL) {
		snprintf(why, size, "%s: %s", name, strerror(errno));
		return (-1);
	}
	vale_remote_init(an->an_remote);
	an->an_port = &an->an_remote->vrm_frames.vfp_port;
	an->an_fd = -1;
	return (0);
}

static void
remote_net_close(struct adapter_net *an)
{
	vale_remote_close(an->an_remote);
	free(an->an_remote);
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
static const struct adapter_net_type remote = {
	.nty_open = remote_net_open, .nty_close = remote_net_close
};

int
adapter_net_open(struct adapter_net *an, const char *name, uint32_t mtu,
    int opener, char *why, size_t size)
{
	const struct adapter_net_type *type = types;

	while (strncmp(name, type->nty_name, strlen(type->nty_name)) != 0)
		type++;
	*an = (struct adapter_net){ .an_type = opener != -1 ? &remote : type,
	    .an_opener = opener };
	if (an->an_type->nty_open(an, name, mtu, why, size) != 0)
		return (-1);
	an->an_port->fp_frame_max = adapter_net_frame_max(mtu);
	return (0);
}

static void
remote_net_lose(struct adapter_net *an)
{
	vale_remote_close(an->an_remote);
	an->an_fd = -1;
}

/* Receive a message of the opener.  Returns its bytes, 0 at the end, or -1. */
static ssize_t
net_receive(const struct adapter_net *an, struct valed_opened *vod,
    int fds[VALE_REMOTE_FDS], unsigned int *nfds)
{
	const struct iovec iov = { vod, sizeof(*vod) };
	/* The opener sends no more. */
	struct peer_fds mf = { .mf_fd = fds, .mf_max = VALE_REMOTE_FDS };
	const ssize_t n = peer_fds_recv(an->an_opener, &iov, 1, &mf,
	    MSG_DONTWAIT);

	*nfds = mf.mf_n;
	return (n);
}

/* Have the port that a message has. */
static void
net_opened(struct adapter_net *an, const char *name,
    const struct valed_opened *vod, const int fds[VALE_REMOTE_FDS],
    unsigned int nfds, char *why, size_t size)
{
	errno = EMFILE;			/* descriptors are missing */
	if (nfds == VALE_REMOTE_FDS && vale_remote_open(an->an_remote, name,
	    &vod->vod_reg, fds) == 0) {
		an->an_fd = vale_remote_fd(an->an_remote);
		return;
	}
	snprintf(why, size, "the port cannot be used: %s", strerror(errno));
	while (nfds < VALE_REMOTE_FDS && nfds > 0)
		close(fds[--nfds]);
	adapter_net_again(an);
}

bool
adapter_net_news(struct adapter_net *an, const char *name, char *why,
    size_t size)
{
	struct valed_opened vod;
	int fds[VALE_REMOTE_FDS];
	unsigned int nfds;
	const ssize_t n = net_receive(an, &vod, fds, &nfds);

	why[0] = '\0';
	if (n == -1)
		return (true);
	remote_net_lose(an);
	if (n == (ssize_t)sizeof(vod) && vod.vod_what == VALED_OPENED) {
		net_opened(an, name, &vod, fds, nfds, why, size);
		return (true);
	}
	/* No other message has any. */
	while (nfds > 0)
		close(fds[--nfds]);
	if (n != (ssize_t)sizeof(vod))
		snprintf(why, size, "the process that opens it has ended, "
		    "until valed is started again");
	else if (vod.vod_what != VALED_LOST)
		snprintf(why, size, "%.*s", (int)sizeof(vod.vod_why),
		    vod.vod_why);
	return (n == (ssize_t)sizeof(vod));
}

void
adapter_net_again(struct adapter_net *an)
{
	remote_net_lose(an);
	/* If there is no space, the opener has been told, and will do it. */
	(void)send(an->an_opener, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool
adapter_net_bad(const struct adapter_net *an)
{
	return (an->an_remote != NULL && vale_remote_bad(an->an_remote));
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
	return (an->an_remote != NULL ? vale_remote_gone(an->an_remote) :
	    an->an_type->nty_close == tap_net_close &&
	    tap_port_gone(an->an_port));
}
