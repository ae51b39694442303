/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A frame port over a TAP; see tap_port.h.
 *
 * read(2) returns a frame that the host sent, write(2) makes the host receive
 * one, each after a virtio-net header.  Without offloads the header that is
 * written is zeros, a frame that is complete, and the host sends only such
 * frames.  See Linux's Documentation/networking/tuntap.rst.  Few hosts have a
 * header for segments of UDP: the sender must cut those.
 *
 * The port has a buffer for one frame, which frame_peek() fills and
 * frame_next() empties.
 *
 * No locks: the sending thread only writes, and the receiving thread has the
 * rest.
 */

#include <sys/param.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <linux/if.h>
#include <linux/if_tun.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frame_host.h"
#include "frame_port.h"
#include "frame_vnet.h"
#include "tap_port.h"

/* More than the longest frame: an interface's MTU has 16 bits. */
#define	TAP_FRAME_SIZE	(65536 + 64)

struct tap_port {
	struct frame_port	 tap_port;
	struct frame_source	 tap_source;
	int			 tap_fd;
	bool			 tap_gone;	/* the interface was deleted */
	char			 tap_name[TAP_NAME_SIZE];
	struct frame		 tap_pending;	/* what is in tap_frame; f_len
						   0: nothing */
	uint8_t			 tap_frame[TAP_FRAME_SIZE];
};

static struct tap_port *
tap_of_port(struct frame_port *port)
{
	return (__containerof(port, struct tap_port, tap_port));
}

static struct tap_port *
tap_of_source(struct frame_source *source)
{
	return (__containerof(source, struct tap_port, tap_source));
}

static bool
tap_send(struct frame_port *port, const struct frame *frame)
{
	struct iovec iov[1 + FRAME_MAXIOV];
	uint8_t hdr[FRAME_VNET_SHORT] = { 0 };

	if (port->fp_offloads)
		frame_vnet_encode(frame, hdr, sizeof(hdr));
	iov[0].iov_base = hdr;
	iov[0].iov_len = sizeof(hdr);
	memcpy(iov + 1, frame->f_iov, frame->f_niov * sizeof(*iov));
	return (writev(tap_of_port(port)->tap_fd, iov, 1 + frame->f_niov) >=
	    0);
}

static void
tap_nothing(struct frame_port *port __unused)
{
}

/* Complete a frame that the host's stack has left incomplete, or drop it. */
static void
tap_complete(struct tap_port *tp, const uint8_t *hdr)
{
	struct frame *frame = &tp->tap_pending;

	(void)frame_vnet_decode(frame, hdr);
	if (frame_host_prepare(frame, tp->tap_frame) == FRAME_HOST_OK)
		return;
	frame_port_count(&tp->tap_port, FRAME_PORT_C_RX_BAD_HEADER);
	frame->f_len = 0;
}

/*
 * Receive a frame, if there is one.  Frames that are shorter than a header, or
 * whose header is invalid, are dropped.
 */
static void
tap_receive(struct tap_port *tp)
{
	uint8_t hdr[FRAME_VNET_SHORT];
	struct iovec iov[2] = {
		{ hdr, sizeof(hdr) }, { tp->tap_frame, sizeof(tp->tap_frame) }
	};
	struct frame *frame = &tp->tap_pending;
	ssize_t len;

	do {
		len = readv(tp->tap_fd, iov, nitems(iov));
		if (len == -1 && errno == EBADFD && !tp->tap_gone) {
			tp->tap_gone = true;
			fprintf(stderr, "%s: the interface is gone\n",
			    tp->tap_name);
		}
		if (len <= 0)
			return;
		len -= sizeof(hdr);
		frame_set(frame, 1, MAX(len, 0));
		if (tp->tap_port.fp_offloads && len > 0)
			tap_complete(tp, hdr);
	} while (frame->f_len == 0);
}

static bool
tap_peek(struct frame_source *source, struct frame *frame)
{
	struct tap_port *tp = tap_of_source(source);
	struct iovec *iov = frame->f_iov;

	if (tp->tap_pending.f_len == 0)
		tap_receive(tp);
	if (tp->tap_pending.f_len == 0)
		return (false);
	*frame = tp->tap_pending;
	frame->f_iov = iov;
	iov[0].iov_base = tp->tap_frame;
	iov[0].iov_len = frame->f_len;
	return (true);
}

static void
tap_next(struct frame_source *source)
{
	tap_of_source(source)->tap_pending.f_len = 0;
}

/* Set what the host may send here.  Returns 0, or -1 with errno. */
static int
tap_offloads(const struct tap_port *tp, unsigned long accepted)
{
	const int hdrlen = FRAME_VNET_SHORT;

	return (ioctl(tp->tap_fd, TUNSETVNETHDRSZ, &hdrlen) == 0 &&
	    ioctl(tp->tap_fd, TUNSETOFFLOAD, accepted) == 0 ? 0 : -1);
}

static bool
tap_set_offloads(struct frame_port *port)
{
	return (tap_offloads(tap_of_port(port), TUN_F_CSUM | TUN_F_TSO4 |
	    TUN_F_TSO6 | TUN_F_TSO_ECN) == 0);
}

static bool
tap_takes_uncut(const struct frame_port *port __unused,
    const struct frame *frame)
{
	return (frame->f_gso_type != FRAME_GSO_UDP_L4);
}

static const struct frame_port_ops tap_ops = {
	.fpo_send = tap_send,
	.fpo_flush = tap_nothing,
	.fpo_sync = tap_nothing,
	.fpo_set_offloads = tap_set_offloads,
	.fpo_takes_uncut = tap_takes_uncut,
};

/* Return what is missing, besides the errno. */
static const char *
tap_missing(int error)
{
	return (error == EPERM ? ": it takes CAP_NET_ADMIN" : "");
}

/* Write a sentence behind the name.  Returns -1. */
static int __printflike(4, 5)
tap_fail(char *why, size_t size, const char *name, const char *fmt, ...)
{
	va_list ap;
	int n;

	n = snprintf(why, size, "%s: ", name);
	va_start(ap, fmt);
	if ((size_t)n < size)
		vsnprintf(why + n, size - n, fmt, ap);
	va_end(ap);
	return (-1);
}

/*
 * Set the MTU if one was asked for, and bring the interface up, with a socket
 * for requests.
 */
static int
tap_configure(int s, struct ifreq *ifr, uint32_t mtu, char *why, size_t size)
{
	if (mtu != 0) {
		ifr->ifr_mtu = mtu;
		if (ioctl(s, SIOCSIFMTU, ifr) != 0)
			return (tap_fail(why, size, ifr->ifr_name,
			    "mtu=%u: %s%s", mtu, strerror(errno),
			    tap_missing(errno)));
	}
	if (ioctl(s, SIOCGIFFLAGS, ifr) != 0)
		return (tap_fail(why, size, ifr->ifr_name,
		    "no such interface: %s", strerror(errno)));
	if ((ifr->ifr_flags & IFF_UP) != 0)
		return (0);
	ifr->ifr_flags |= IFF_UP;
	if (ioctl(s, SIOCSIFFLAGS, ifr) != 0)
		return (tap_fail(why, size, ifr->ifr_name,
		    "cannot bring the interface up: %s%s", strerror(errno),
		    tap_missing(errno)));
	return (0);
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

/* Say why tap_get() has failed.  Returns -1. */
static int
tap_refused(const char *name, int error, char *why, size_t size)
{
	switch (error) {
	case EBUSY:
		return (tap_fail(why, size, name,
		    "the interface is in use already"));
	case EINVAL:
		return (tap_fail(why, size, name, "not a TAP interface"));
	case EPERM:
		return (tap_fail(why, size, name,
		    "cannot open the interface: %s%s, or an interface that was "
		    "created for this user or its group", strerror(error),
		    tap_missing(error)));
	default:
		return (tap_fail(why, size, name,
		    "cannot open the interface: %s", strerror(error)));
	}
}

static int
tap_open(struct tap_port *tp, uint32_t mtu, char *why, size_t size)
{
	struct ifreq ifr;
	int error, s;

	tp->tap_fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (tp->tap_fd == -1)
		return (tap_fail(why, size, tp->tap_name, "/dev/net/tun: %s",
		    strerror(errno)));
	memset(&ifr, 0, sizeof(ifr));
	strlcpy(ifr.ifr_name, tp->tap_name, sizeof(ifr.ifr_name));
	if (tap_get(tp->tap_fd, &ifr) != 0)
		return (tap_refused(tp->tap_name, errno, why, size));
	s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s == -1)
		return (tap_fail(why, size, tp->tap_name, "socket: %s",
		    strerror(errno)));
	error = tap_configure(s, &ifr, mtu, why, size);
	close(s);
	if (error == 0 && tap_offloads(tp, 0) != 0)
		error = tap_fail(why, size, tp->tap_name,
		    "cannot set offloads: %s", strerror(errno));
	return (error);
}

struct frame_port *
tap_port_open(const char *name, uint32_t mtu, char *why, size_t size)
{
	struct tap_port *tp;

	if (strlen(name) >= sizeof(tp->tap_name)) {
		tap_fail(why, size, name, "interface name too long");
		return (NULL);
	}
	tp = calloc(1, sizeof(*tp));
	if (tp == NULL) {
		tap_fail(why, size, name, "%s", strerror(errno));
		return (NULL);
	}
	strlcpy(tp->tap_name, name, sizeof(tp->tap_name));
	tp->tap_port.fp_ops = &tap_ops;
	tp->tap_port.fp_source = &tp->tap_source;
	tp->tap_source.fs_peek = tap_peek;
	tp->tap_source.fs_next = tap_next;
	if (tap_open(tp, mtu, why, size) != 0) {
		tap_port_close(&tp->tap_port);
		return (NULL);
	}
	return (&tp->tap_port);
}

void
tap_port_close(struct frame_port *port)
{
	struct tap_port *tp = tap_of_port(port);

	if (tp->tap_fd != -1)
		close(tp->tap_fd);
	free(tp);
}

int
tap_port_fd(const struct frame_port *port)
{
	return (__containerof(port, const struct tap_port, tap_port)->tap_fd);
}

bool
tap_port_gone(const struct frame_port *port)
{
	return (__containerof(port, const struct tap_port,
	    tap_port)->tap_gone);
}
