/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Network backends: the dispatch over the linker set, and the TAP backend,
 * which every program has.
 *
 * A TAP is an Ethernet interface of the host with a file at its other end:
 * read(2) returns a frame that the host sent, write(2) makes the host receive
 * one, each after a virtio-net header.  A frontend without headers writes zeros
 * there: a frame that is complete; and unless it asks for offloads, the host
 * sends only such frames.  See Linux's Documentation/networking/tuntap.rst.
 */

#include <sys/cdefs.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <linux/if.h>
#include <linux/if_tun.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "debug.h"
#include "iov.h"
#include "net_backends.h"
#include "net_backends_priv.h"
#include "net_utils.h"
#include "pci_emul.h"

#define	TAP_FRAME_MAX	65536	/* bytes, and more than any interface's MTU */
#define	TAP_HEADER_MIN	10	/* bytes of a virtio-net header */
#define	TAP_HEADER_MAX	12
#define	TAP_MAXIOV	256	/* fragments of a frame */
#define	TAP_OFFLOADS							\
	(VIRTIO_NET_F_CSUM | VIRTIO_NET_F_HOST_TSO4 |			\
	VIRTIO_NET_F_HOST_TSO6 | VIRTIO_NET_F_GUEST_CSUM |		\
	VIRTIO_NET_F_GUEST_TSO4 | VIRTIO_NET_F_GUEST_TSO6)

struct tap_priv {
	struct mevent	*mevp;
	char		 name[IFNAMSIZ];
	bool		 gone;		/* the interface was deleted */
	ssize_t		 len;		/* of what is in buf; 0: nothing */
	char		 buf[TAP_HEADER_MAX + TAP_FRAME_MAX];
};

/* An errno, with the capability that is missing. */
static const char *
tap_error(int error)
{
	static _Thread_local char why[128];

	snprintf(why, sizeof(why), "%s%s", strerror(error), error == EPERM ?
	    ": it takes CAP_NET_ADMIN" : "");
	return (why);
}

/* Set the MTU if one was asked for, and bring the interface up. */
static int
tap_configure(struct ifreq *ifr, nvlist_t *nvl)
{
	const char *value;
	unsigned long mtu;
	int error, s;

	s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s == -1) {
		EPRINTLN("%s: socket: %s", ifr->ifr_name, strerror(errno));
		return (-1);
	}
	error = -1;
	value = get_config_value_node(nvl, "mtu");
	if (value != NULL) {
		if (net_parsemtu(value, &mtu) != 0 || mtu > TAP_FRAME_MAX) {
			EPRINTLN("%s: mtu=%s: not an MTU", ifr->ifr_name,
			    value);
			goto out;
		}
		ifr->ifr_mtu = mtu;
		if (ioctl(s, SIOCSIFMTU, ifr) != 0) {
			EPRINTLN("%s: mtu=%s: %s", ifr->ifr_name, value,
			    tap_error(errno));
			goto out;
		}
	}
	if (ioctl(s, SIOCGIFFLAGS, ifr) != 0) {
		EPRINTLN("%s: no such interface: %s", ifr->ifr_name,
		    strerror(errno));
		goto out;
	}
	if ((ifr->ifr_flags & IFF_UP) == 0) {
		ifr->ifr_flags |= IFF_UP;
		if (ioctl(s, SIOCSIFFLAGS, ifr) != 0) {
			EPRINTLN("%s: cannot bring the interface up: %s",
			    ifr->ifr_name, tap_error(errno));
			goto out;
		}
	}
	error = 0;
out:
	close(s);
	return (error);
}

static void
tap_cleanup(struct net_backend *be)
{
	struct tap_priv *priv;

	priv = NET_BE_PRIV(be);
	if (priv->mevp != NULL)
		mevent_delete(priv->mevp);
	if (be->fd != -1)
		close(be->fd);
	be->fd = -1;
}

/*
 * Get the interface.  One that was created with multi_queue is opened only as
 * such, and has one queue then.
 */
static int
tap_get(int fd, struct ifreq *ifr)
{
	ifr->ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
	if (ioctl(fd, TUNSETIFF, ifr) == 0)
		return (0);
	if (errno != EINVAL)
		return (-1);
	ifr->ifr_flags |= IFF_MULTI_QUEUE;
	return (ioctl(fd, TUNSETIFF, ifr));
}

static int
tap_init(struct net_backend *be, const char *devname, nvlist_t *nvl,
    net_be_rxeof_t cb, void *param)
{
	struct tap_priv *priv;
	struct ifreq ifr;

	priv = NET_BE_PRIV(be);
	memset(&ifr, 0, sizeof(ifr));
	if (strlcpy(ifr.ifr_name, devname, sizeof(ifr.ifr_name)) >=
	    sizeof(ifr.ifr_name)) {
		EPRINTLN("%s: interface name too long", devname);
		return (-1);
	}
	be->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (be->fd == -1) {
		EPRINTLN("%s: /dev/net/tun: %s", devname, strerror(errno));
		return (-1);
	}
	if (tap_get(be->fd, &ifr) != 0) {
		if (errno == EBUSY)
			EPRINTLN("%s: the interface is in use already",
			    devname);
		else if (errno == EINVAL)
			EPRINTLN("%s: not a TAP interface", devname);
		else if (errno == EPERM)
			EPRINTLN("%s: cannot open the interface: %s, or an "
			    "interface that was created for this user or its "
			    "group", devname, tap_error(errno));
		else
			EPRINTLN("%s: cannot open the interface: %s", devname,
			    strerror(errno));
		goto fail;
	}
	strlcpy(priv->name, devname, sizeof(priv->name));
	if (tap_configure(&ifr, nvl) != 0)
		goto fail;
	if (be->set_cap(be, 0, 0) != 0) {
		EPRINTLN("%s: cannot set offloads: %s", devname,
		    strerror(errno));
		goto fail;
	}
	priv->mevp = mevent_add_disabled(be->fd, EVF_READ, cb, param);
	if (priv->mevp == NULL) {
		EPRINTLN("%s: cannot wait for frames: %s", devname,
		    strerror(errno));
		goto fail;
	}
	return (0);

fail:
	tap_cleanup(be);
	return (-1);
}

/*
 * The fragments with those of a header before them, unless the frontend has put
 * one there.  Returns how many, or -1 if they are too many.
 */
static int
tap_iov(const struct net_backend *be, struct iovec *to, char *hdr,
    const struct iovec *iov, int iovcnt)
{
	int n = 0;

	if (iovcnt > TAP_MAXIOV) {
		errno = EMSGSIZE;
		return (-1);
	}
	if (be->be_vnet_hdr_len == 0) {
		to[n].iov_base = hdr;
		to[n++].iov_len = TAP_HEADER_MIN;
	}
	memcpy(to + n, iov, iovcnt * sizeof(*iov));
	return (n + iovcnt);
}

static ssize_t
tap_send(struct net_backend *be, const struct iovec *iov, int iovcnt)
{
	struct iovec all[1 + TAP_MAXIOV];
	char hdr[TAP_HEADER_MIN] = { 0 };
	ssize_t len;
	int n;

	n = tap_iov(be, all, hdr, iov, iovcnt);
	if (n == -1)
		return (-1);
	len = writev(be->fd, all, n);
	return (len == -1 ? -1 : len - (n - iovcnt) * TAP_HEADER_MIN);
}

/* The interface was deleted; its descriptor would stay readable for ever. */
static void
tap_gone(struct net_backend *be)
{
	struct tap_priv *priv = NET_BE_PRIV(be);

	if (!priv->gone)
		EPRINTLN("%s: the interface is gone", priv->name);
	priv->gone = true;
	mevent_disable(priv->mevp);
}

/* Returns the length without a header that the frontend does not have. */
static ssize_t
tap_read(struct net_backend *be, const struct iovec *iov, int iovcnt)
{
	struct iovec all[1 + TAP_MAXIOV];
	char hdr[TAP_HEADER_MIN];
	ssize_t len;
	int n;

	n = tap_iov(be, all, hdr, iov, iovcnt);
	if (n == -1)
		return (-1);
	len = readv(be->fd, all, n);
	if (len == -1 && errno == EBADFD)
		tap_gone(be);
	if (len == -1)
		return (errno == EAGAIN ? 0 : -1);
	return (len - (n - iovcnt) * TAP_HEADER_MIN);
}

static ssize_t
tap_peek_recvlen(struct net_backend *be)
{
	struct tap_priv *priv;
	struct iovec iov;
	ssize_t len;

	priv = NET_BE_PRIV(be);
	if (priv->len == 0) {
		iov.iov_base = priv->buf;
		iov.iov_len = sizeof(priv->buf);
		len = tap_read(be, &iov, 1);
		if (len <= 0)
			return (len);
		priv->len = len;
	}
	return (priv->len);
}

static ssize_t
tap_recv(struct net_backend *be, const struct iovec *iov, int iovcnt)
{
	struct tap_priv *priv;
	ssize_t len;

	priv = NET_BE_PRIV(be);
	if (priv->len == 0)
		return (tap_read(be, iov, iovcnt));
	len = buf_to_iov(priv->buf, priv->len, iov, iovcnt, 0);
	priv->len = 0;
	return (len);
}

static void
tap_recv_enable(struct net_backend *be)
{
	struct tap_priv *priv;

	priv = NET_BE_PRIV(be);
	if (!priv->gone)
		mevent_enable(priv->mevp);
}

static void
tap_recv_disable(struct net_backend *be)
{
	struct tap_priv *priv;

	priv = NET_BE_PRIV(be);
	mevent_disable(priv->mevp);
}

static uint64_t
tap_get_cap(struct net_backend *be __unused)
{
	return (TAP_OFFLOADS);
}

static int
tap_set_cap(struct net_backend *be, uint64_t features,
    unsigned int vnet_hdr_len)
{
	int hdrlen = vnet_hdr_len == 0 ? TAP_HEADER_MIN : (int)vnet_hdr_len;
	unsigned long accepted = 0;

	if ((features & ~TAP_OFFLOADS) != 0 ||
	    (features != 0 && vnet_hdr_len == 0))
		return (-1);
	/* What the host may send here. */
	if ((features & VIRTIO_NET_F_GUEST_CSUM) != 0)
		accepted |= TUN_F_CSUM;
	if ((features & VIRTIO_NET_F_GUEST_TSO4) != 0)
		accepted |= TUN_F_TSO4 | TUN_F_TSO_ECN;
	if ((features & VIRTIO_NET_F_GUEST_TSO6) != 0)
		accepted |= TUN_F_TSO6 | TUN_F_TSO_ECN;
	if (ioctl(be->fd, TUNSETVNETHDRSZ, &hdrlen) != 0 ||
	    ioctl(be->fd, TUNSETOFFLOAD, accepted) != 0)
		return (-1);
	be->be_vnet_hdr_len = vnet_hdr_len;
	return (0);
}

static struct net_backend tap_backend = {
	.prefix = "tap",
	.priv_size = sizeof(struct tap_priv),
	.init = tap_init,
	.cleanup = tap_cleanup,
	.send = tap_send,
	.peek_recvlen = tap_peek_recvlen,
	.recv = tap_recv,
	.recv_enable = tap_recv_enable,
	.recv_disable = tap_recv_disable,
	.get_cap = tap_get_cap,
	.set_cap = tap_set_cap,
};
DATA_SET(net_backend_set, tap_backend);

int
pci_parse_legacy_config(nvlist_t *nvl, const char *opt)
{
	char *copy, *name, *rest, *value;

	if (opt == NULL)
		return (0);
	rest = copy = strdup(opt);
	if (copy == NULL)
		return (-1);
	while ((name = strsep(&rest, ",")) != NULL) {
		value = strchr(name, '=');
		if (value == NULL) {
			set_config_bool_node(nvl, name, true);
			continue;
		}
		*value++ = '\0';
		set_config_value_node(nvl, name, value);
	}
	free(copy);
	return (0);
}

int
netbe_legacy_config(nvlist_t *nvl, const char *opts)
{
	char *name;
	size_t len;

	if (opts == NULL)
		return (0);
	len = strcspn(opts, ",");
	name = strndup(opts, len);
	if (name == NULL)
		return (-1);
	set_config_value_node(nvl, "backend", name);
	free(name);
	if (opts[len] == '\0')
		return (0);
	return (pci_parse_legacy_config(nvl, opts + len + 1));
}

static struct net_backend *
netbe_find(const char *type)
{
	struct net_backend **bep;

	SET_FOREACH(bep, net_backend_set)
		if (strncmp(type, (*bep)->prefix, strlen((*bep)->prefix)) == 0)
			return (*bep);
	return (NULL);
}

int
netbe_init(net_backend_t **ret, nvlist_t *nvl, net_be_rxeof_t cb, void *param)
{
	const char *name, *type;
	struct net_backend *be, *template;
	int error;

	*ret = NULL;
	name = get_config_value_node(nvl, "backend");
	if (name == NULL) {
		EPRINTLN("no network backend given");
		return (EINVAL);
	}
	type = get_config_value_node(nvl, "type");
	template = netbe_find(type == NULL ? name : type);
	if (template == NULL) {
		EPRINTLN("%s: no such network backend",
		    type == NULL ? name : type);
		return (EINVAL);
	}
	be = calloc(1, sizeof(*be) + template->priv_size);
	if (be == NULL) {
		EPRINTLN("%s: %s", name, strerror(errno));
		return (ENOMEM);
	}
	*be = *template;
	be->fd = -1;
	error = be->init(be, name, nvl, cb, param);
	if (error != 0) {
		free(be);
		return (error);
	}
	*ret = be;
	return (0);
}

void
netbe_cleanup(net_backend_t *be)
{
	if (be != NULL) {
		be->cleanup(be);
		free(be);
	}
}

uint64_t
netbe_get_cap(net_backend_t *be)
{
	return (be->get_cap(be));
}

int
netbe_set_cap(net_backend_t *be, uint64_t features, unsigned int vnet_hdr_len)
{
	if (vnet_hdr_len != 0 && vnet_hdr_len != 10 && vnet_hdr_len != 12)
		return (-1);
	be->fe_vnet_hdr_len = vnet_hdr_len;
	return (be->set_cap(be, features, vnet_hdr_len));
}

size_t
netbe_get_vnet_hdr_len(net_backend_t *be)
{
	return (be->be_vnet_hdr_len);
}

ssize_t
netbe_send(net_backend_t *be, const struct iovec *iov, int iovcnt)
{
	return (be->send(be, iov, iovcnt));
}

ssize_t
netbe_peek_recvlen(net_backend_t *be)
{
	return (be->peek_recvlen(be));
}

ssize_t
netbe_recv(net_backend_t *be, const struct iovec *iov, int iovcnt)
{
	return (be->recv(be, iov, iovcnt));
}

ssize_t
netbe_rx_discard(net_backend_t *be)
{
	char buf[2048];
	struct iovec iov;
	ssize_t len;

	len = be->peek_recvlen(be);
	if (len <= 0)
		return (len);
	iov.iov_base = buf;
	iov.iov_len = sizeof(buf);
	be->recv(be, &iov, 1);
	return (len);
}

void
netbe_rx_disable(net_backend_t *be)
{
	be->recv_disable(be);
}

void
netbe_rx_enable(net_backend_t *be)
{
	be->recv_enable(be);
}
