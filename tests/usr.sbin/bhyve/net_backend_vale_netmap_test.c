/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The VALE backend on FreeBSD, with bhyve's event loop and configuration and
 * ports of the kernel's switch.
 */

#include <sys/types.h>
#include <sys/param.h>
#include <sys/capsicum.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/sockio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <net/if.h>
#include <net/if_tap.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "backend.h"
#include "libvale.h"
#include "mevent.h"
#include "net_backends_priv.h"
#include "port.h"
#include "said.h"
#include "test.h"
#include "wait_until.h"

#define	PORT_A		"vale7:a"
#define	PORT_B		"vale7:b"
#define	PORT_C		"vale7:c"
#define	FRAME_MAX	16110
#define	NOBODY		65534
#define	HEADER		12	/* virtio-net's, bytes */
#define	HDRLEN		54	/* Ethernet, IPv4, TCP */
#define	PACKET		40000	/* bytes of one to be cut */

static const uint8_t mac_a[6] = { 2, 0, 0, 0, 0, 0xa };
static const uint8_t mac_b[6] = { 2, 0, 0, 0, 0, 0xb };
static const uint8_t mac_c[6] = { 2, 0, 0, 0, 0, 0xc };

static void *
event_loop(void *arg __unused)
{
	mevent_dispatch();
	return (NULL);
}

static bool looping;

static void
on_clock(int fd __unused, enum ev_type type __unused, void *param __unused)
{
	__atomic_store_n(&looping, true, __ATOMIC_RELEASE);
}

/*
 * Skip the test if the kernel has no netmap; start the event loop.  It must run
 * before backends are opened: a descriptor of its own could have the number of
 * one that it still has to forget.
 */
static void
need_netmap(void)
{
	pthread_t thread;

	if (access(NETMAP_DEVICE_NAME, R_OK | W_OK) != 0)
		atf_tc_skip("%s: %s", NETMAP_DEVICE_NAME, strerror(errno));
	ATF_REQUIRE(mevent_add(1, EVF_TIMER, on_clock, NULL) != NULL);
	ATF_REQUIRE_EQ(0, pthread_create(&thread, NULL, event_loop, NULL));
	wait_until(__atomic_load_n(&looping, __ATOMIC_ACQUIRE),
	    "the event loop does not run");
}

/* The loop forgets a descriptor some time after its backend is closed. */
static net_backend_t *
open_port(const char *name)
{
	net_backend_t *be;

	wait_until(backend_try(&be, name) == 0, "%s cannot be opened", name);
	ATF_REQUIRE_MSG(backend_port(be)->fp_ops->fpo_set_sink != NULL,
	    "not the backend under test");
	return (be);
}

static void
fill(uint8_t *frame, size_t len, const uint8_t *dst, const uint8_t *src,
    uint32_t seed)
{
	size_t i;

	memcpy(frame, dst, 6);
	memcpy(frame + 6, src, 6);
	frame[12] = 0x88;
	frame[13] = 0xb5;
	for (i = 14; i < len; i++) {
		seed = seed * 1664525 + 1013904223;
		frame[i] = seed >> 24;
	}
}

static void
send_one(net_backend_t *be, uint8_t *frame, size_t len)
{
	struct iovec iov = { frame, len };

	ATF_REQUIRE_EQ((ssize_t)len, netbe_send(be, &iov, 1));
}

static ssize_t
receive_one(net_backend_t *be, void *buf, size_t size)
{
	struct iovec iov = { buf, size };

	return (netbe_recv(be, &iov, 1));
}

/* Receive the next frame of `len' bytes, which may come later. */
static void
await_one(net_backend_t *be, void *buf, size_t size, size_t len)
{
	wait_until(receive_one(be, buf, size) == (ssize_t)len,
	    "no frame of %zu bytes", len);
}

/* So that the switch learns both addresses. */
static void
introduce(net_backend_t *a, net_backend_t *b)
{
	uint8_t frame[FRAME_MAX];

	fill(frame, 60, mac_b, mac_a, 0);
	send_one(a, frame, 60);
	await_one(b, frame, sizeof(frame), 60);
	fill(frame, 60, mac_a, mac_b, 0);
	send_one(b, frame, 60);
	await_one(a, frame, sizeof(frame), 60);
	ATF_REQUIRE_EQ(0, receive_one(b, frame, sizeof(frame)));
}

TEST(exchange, "Frames of all sizes, in any fragments, arrive intact and in "
    "order")
{
	static const size_t sizes[] = { 15, 60, 63, 64, 65, 1514, 1518, 2047,
	    2048, 2049, 4096, 9018, FRAME_MAX };
	static uint8_t frame[FRAME_MAX], got[FRAME_MAX + 1];
	struct iovec out[3];
	net_backend_t *a, *b;
	size_t cut, i;

	need_netmap();
	a = open_port(PORT_A);
	b = open_port(PORT_B);
	introduce(a, b);
	for (i = 0; i < nitems(sizes); i++)
		for (cut = 1; cut < sizes[i]; cut += 1 + sizes[i] / 7) {
			fill(frame, sizes[i], mac_b, mac_a, i + cut);
			out[0] = (struct iovec){ frame, cut };
			out[1] = (struct iovec){ frame + cut, 0 };
			out[2] = (struct iovec){ frame + cut, sizes[i] - cut };
			ATF_CHECK_EQ((ssize_t)sizes[i], netbe_send(a, out, 3));
			wait_until(netbe_peek_recvlen(b) > 0, "no frame");
			ATF_CHECK_EQ((ssize_t)sizes[i], netbe_peek_recvlen(b));
			memset(got, 0, sizeof(got));
			ATF_CHECK_EQ((ssize_t)sizes[i],
			    receive_one(b, got, sizeof(got)));
			ATF_CHECK_EQ_MSG(0, memcmp(frame, got, sizes[i]),
			    "%zu bytes, cut at %zu", sizes[i], cut);
			ATF_CHECK_EQ(0, receive_one(b, got, sizeof(got)));
			ATF_CHECK_EQ(0, receive_one(a, got, sizeof(got)));
		}
	netbe_cleanup(a);
	netbe_cleanup(b);
}

TEST(batch, "Deferred frames arrive with the flush, and are received in place")
{
	static uint8_t frames[200][300];
	struct iovec iov[64], out;
	uint8_t got[300];
	struct frame_port *pa, *pb;
	net_backend_t *a, *b;
	uint32_t i;

	need_netmap();
	a = open_port(PORT_A);
	b = open_port(PORT_B);
	introduce(a, b);
	pa = backend_port(a);
	pb = backend_port(b);
	for (i = 0; i < nitems(frames); i++) {
		fill(frames[i], sizeof(frames[i]), mac_b, mac_a, i);
		out = (struct iovec){ frames[i], 60 + i };
		ATF_CHECK(port_send(pa, &out, 1));
		ATF_CHECK_EQ(0, receive_one(b, got, sizeof(got)));
	}
	frame_port_flush(pa);
	frame_port_sync(pb);
	for (i = 0; i < nitems(frames); i++) {
		ATF_REQUIRE_EQ(1, port_peek(pb, iov, nitems(iov)));
		ATF_CHECK_EQ(60 + i, iov[0].iov_len);
		ATF_CHECK_EQ(0, memcmp(frames[i], iov[0].iov_base, 60 + i));
		frame_next(pb->fp_source);
	}
	ATF_CHECK_EQ(0, port_peek(pb, iov, nitems(iov)));
	netbe_cleanup(a);
	netbe_cleanup(b);
}

TEST(full, "A receiver with a full ring loses later frames, and the sender "
    "does not wait")
{
	uint8_t frame[64], got[64];
	net_backend_t *a, *b;
	uint32_t i, last = 0, n, seq;

	need_netmap();
	a = open_port(PORT_A);
	b = open_port(PORT_B);
	introduce(a, b);
	for (i = 0; i < 5000; i++) {
		fill(frame, sizeof(frame), mac_b, mac_a, 1);
		memcpy(frame + 14, &i, sizeof(i));
		send_one(a, frame, sizeof(frame));
	}
	/* The sender's thread may send the last ones meanwhile. */
	for (n = 0; receive_one(b, got, sizeof(got)) > 0; n++, last = seq) {
		memcpy(&seq, got + 14, sizeof(seq));
		ATF_REQUIRE_MSG(n < 1000 ? seq == n : seq > last,
		    "frame %u is %u, after %u", n, seq, last);
	}
	ATF_CHECK_MSG(n >= 1000 && n < 5000, "%u frames", n);
	introduce(a, b);
	netbe_cleanup(a);
	netbe_cleanup(b);
}

TEST(gone, "Ports and the switch are opened and closed; a port that stays "
    "works")
{
	uint8_t frame[64], got[64];
	net_backend_t *a, *b;
	int i, j;

	need_netmap();
	a = open_port(PORT_A);
	for (i = 0; i < 20; i++) {
		b = open_port(PORT_B);
		introduce(a, b);
		fill(frame, sizeof(frame), mac_b, mac_a, i);
		send_one(a, frame, sizeof(frame));
		netbe_cleanup(b);
		/* To the closed port: its address is still learned. */
		for (j = 0; j < 100; j++)
			send_one(a, frame, sizeof(frame));
		ATF_CHECK_EQ(0, receive_one(a, got, sizeof(got)));
		if (i % 4 == 0) {
			netbe_cleanup(a);
			a = open_port(PORT_A);
		}
	}
	netbe_cleanup(a);
}

/* Run a function, and return what it writes to standard error. */
static const char *
messages(void (*what)(void))
{
	said_start();
	what();
	return (said());
}

static net_backend_t *dead;

/* Make a descriptor unusable, as if its port was destroyed. */
static void
lose_port(void)
{
	uint8_t frame[64];
	struct iovec iov = { frame, sizeof(frame) };
	struct frame_port *port;
	int i, null, saved;

	saved = dup(dead->fd);
	null = open("/dev/null", O_RDWR);
	ATF_REQUIRE(saved != -1 && null != -1);
	ATF_REQUIRE(dup2(null, dead->fd) != -1);
	fill(frame, sizeof(frame), mac_b, mac_a, 0);
	for (i = 0; i < 3000; i++)
		netbe_send(dead, &iov, 1);
	ATF_CHECK_EQ(-1, netbe_send(dead, &iov, 1));
	ATF_CHECK_EQ(ENOBUFS, errno);
	for (i = 0; i < 10; i++)
		ATF_CHECK_EQ(0, netbe_recv(dead, &iov, 1));
	ATF_REQUIRE(dup2(saved, dead->fd) != -1);
	port = backend_port(dead);
	frame_port_flush(port);
	frame_port_sync(port);
	close(saved);
	close(null);
}

static int
count(const char *text, const char *word)
{
	int n;

	for (n = 0; (text = strstr(text, word)) != NULL; n++)
		text += strlen(word);
	return (n);
}

TEST(dead, "The failure of a port is reported once and loses its frames, until "
    "the port works again")
{
	const char *text;
	net_backend_t *b;

	need_netmap();
	dead = open_port(PORT_A);
	text = messages(lose_port);
	ATF_CHECK_EQ_MSG(1, count(text, "cannot send"), "%s", text);
	ATF_CHECK_EQ_MSG(1, count(text, "cannot receive"), "%s", text);
	ATF_CHECK_EQ_MSG(1, count(text, "can send again"), "%s", text);
	ATF_CHECK_EQ_MSG(1, count(text, "can receive again"), "%s", text);
	b = open_port(PORT_B);
	introduce(dead, b);
	netbe_cleanup(b);
	netbe_cleanup(dead);
}

static const char *wanted;

static void
try_wanted(void)
{
	net_backend_t *be;

	ATF_CHECK_MSG(backend_try(&be, wanted) != 0, "%s", wanted);
}

static void
check_message(const char *port, const char *why)
{
	const char *text;

	wanted = port;
	text = messages(try_wanted);
	ATF_CHECK_MSG(strstr(text, port) != NULL, "%s: %s", port, text);
	ATF_CHECK_MSG(strstr(text, why) != NULL, "%s: %s", port, text);
}

TEST(refused, "A bad name and a port in use are refused, with the option and "
    "the reason")
{
	net_backend_t *a;

	need_netmap();
	check_message("vale7", "the port's name is missing");
	check_message("vale7:", "the port's name is missing");
	check_message("vale7:a/b", "after the ':' only letters");
	check_message("vale-x:b", "before the ':' only letters");
	check_message("vale012345678901:b", "more than 15 characters");
	check_message("vale7:0123456789012345", "more than 15 characters");
	a = open_port(PORT_A);
	check_message(PORT_A, "open already");
	netbe_cleanup(a);
	netbe_cleanup(open_port(PORT_A));
}

TEST(limited, "The descriptor of a port is for its switch; when the adapter "
    "has its headers, it is for frames only")
{
	static const unsigned long all[] = { NIOCTXSYNC, NIOCRXSYNC,
	    NIOCCTRL };
	unsigned long cmds[8];
	struct vale_desc *d;
	ssize_t n;

	need_netmap();
	d = vale_open(PORT_A, NULL);
	ATF_REQUIRE(d != NULL);
	n = cap_ioctls_get(d->fd, cmds, nitems(cmds));
	ATF_CHECK_EQ(nitems(all), n);
	ATF_CHECK_ERRNO(ENOTCAPABLE, read(d->fd, cmds, 1) == -1);
	ATF_CHECK_ERRNO(ENOTCAPABLE, mmap(NULL, PAGE_SIZE, PROT_READ,
	    MAP_SHARED, d->fd, 0) == MAP_FAILED);
	ATF_CHECK_EQ(0, vale_set_header(d, 12));
	ATF_CHECK_EQ(0, vale_limit(d));
	ATF_CHECK_ERRNO(ENOTCAPABLE, vale_set_header(d, 0) == -1);
	ATF_CHECK_EQ(0, vale_txsync(d));
	ATF_CHECK_EQ(0, vale_rxsync(d));
	vale_close(d);
}

/* Wait until frames are pending at the ring's head. */
static void
await_pending(struct vale_desc *d)
{
	struct pollfd pfd = { .fd = d->fd, .events = POLLIN };

	ATF_REQUIRE_EQ(1, poll(&pfd, 1, 60000));
	ATF_REQUIRE(d->rxring->head != d->rxring->tail);
}

static void
take_all(struct vale_desc *d)
{
	d->rxring->head = d->rxring->cur = d->rxring->tail;
}

TEST(waiting, "A user that waits for each frame needs no system call to "
    "receive it, and its slots return")
{
	uint8_t frame[60];
	struct vale_desc *d;
	net_backend_t *a;
	uint32_t i;
	int null, saved;

	need_netmap();
	a = open_port(PORT_A);
	d = vale_open(PORT_B, NULL);
	ATF_REQUIRE(d != NULL);
	ATF_CHECK_EQ(0, vale_rxsync(d));
	fill(frame, sizeof(frame), mac_b, mac_a, 1);
	send_one(a, frame, sizeof(frame));
	await_pending(d);

	/* A system call fails from now on. */
	saved = dup(d->fd);
	null = open("/dev/null", O_RDWR);
	ATF_REQUIRE(saved != -1 && null != -1);
	ATF_REQUIRE(dup2(null, d->fd) != -1);
	ATF_CHECK_EQ(0, vale_rxsync(d));
	take_all(d);
	ATF_CHECK_EQ(0, vale_rxsync(d));
	ATF_CHECK_EQ(-1, vale_rxsync(d));
	ATF_REQUIRE(dup2(saved, d->fd) != -1);
	close(saved);
	close(null);

	for (i = 0; i < 3 * d->rxring->num_slots; i++) {
		send_one(a, frame, sizeof(frame));
		await_pending(d);
		ATF_CHECK_EQ(0, vale_rxsync(d));
		take_all(d);
		ATF_CHECK_EQ(0, vale_rxsync(d));
	}
	/* One that does not wait finds the next frame, too. */
	send_one(a, frame, sizeof(frame));
	wait_until(vale_rxsync(d) == 0 && d->rxring->head != d->rxring->tail,
	    "no frame");
	vale_close(d);
	netbe_cleanup(a);
}

TEST(permission, "Without permission on /dev/netmap the message says so")
{
	struct stat sb;
	pid_t pid;
	int status;

	need_netmap();
	if (stat(NETMAP_DEVICE_NAME, &sb) == 0 && (sb.st_mode & S_IWOTH) != 0)
		atf_tc_skip("everybody may open " NETMAP_DEVICE_NAME);
	ATF_REQUIRE_EQ(0, chmod(".", 0777));
	pid = fork();
	ATF_REQUIRE(pid != -1);
	if (pid == 0) {
		if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
			_exit(2);
		wanted = PORT_A;
		_exit(strstr(messages(try_wanted), "no permission") == NULL);
	}
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	ATF_CHECK_EQ(0, status);
}

/* Ones' complement sum, RFC 1071. */
static uint16_t
sum(const uint8_t *p, size_t len)
{
	uint32_t s;
	size_t i;

	for (i = 0, s = 0; i < len; i++)
		s += i % 2 == 0 ? p[i] << 8 : p[i];
	while (s > 0xffff)
		s = (s & 0xffff) + (s >> 16);
	return (s);
}

TEST(vnet_header, "The switch provides virtio-net headers, translates them "
    "between ports, and does what they request")
{
	static uint8_t with[HEADER + FRAME_MAX], got[HEADER + FRAME_MAX];
	uint8_t *frame = with + HEADER;
	net_backend_t *a, *b;
	struct iovec iov[2];

	need_netmap();
	a = open_port(PORT_A);
	b = open_port(PORT_B);
	introduce(a, b);
	ATF_REQUIRE((netbe_get_cap(a) & VIRTIO_NET_F_CSUM) != 0);
	ATF_REQUIRE_EQ(0, netbe_set_cap(a, VIRTIO_NET_F_CSUM | 1 << 16,
	    HEADER));
	ATF_CHECK_EQ(HEADER, netbe_get_vnet_hdr_len(a));

	fill(frame, 200, mac_b, mac_a, 5);
	iov[0] = (struct iovec){ with, HEADER };
	iov[1] = (struct iovec){ frame, 200 };
	ATF_CHECK_EQ(HEADER + 200, netbe_send(a, iov, 2));
	await_one(b, got, sizeof(got), 200);
	ATF_CHECK_EQ(0, memcmp(frame, got, 200));

	/* The checksum of bytes 34 to the end goes to byte 40. */
	memset(frame + 40, 0, 2);
	with[0] = 1;				/* NEEDS_CSUM */
	with[6] = 34;				/* csum_start */
	with[8] = 6;				/* csum_offset */
	ATF_CHECK_EQ(HEADER + 200, netbe_send(a, iov, 2));
	await_one(b, got, sizeof(got), 200);
	ATF_CHECK_EQ(0, memcmp(frame, got, 40));
	ATF_CHECK_EQ(0, memcmp(frame + 42, got + 42, 200 - 42));
	ATF_CHECK_EQ(0xffff, sum(got + 34, 200 - 34));

	fill(frame, 200, mac_a, mac_b, 6);
	send_one(b, frame, 200);
	await_one(a, got, sizeof(got), HEADER + 200);
	ATF_CHECK_EQ(0, memcmp(frame, got + HEADER, 200));
	netbe_cleanup(a);
	netbe_cleanup(b);

	/* No header is left for the next frame. */
	a = open_port(PORT_A);
	b = open_port(PORT_B);
	introduce(a, b);
	netbe_cleanup(a);
	netbe_cleanup(b);
}

/* A frame port that takes offloads; *bep is its backend. */
static struct frame_port *
open_offloads(net_backend_t **bep, const char *name)
{
	struct frame_port *port;

	*bep = open_port(name);
	port = backend_port(*bep);
	frame_port_set_offloads(port);
	ATF_REQUIRE(port->fp_offloads);
	return (port);
}

/* Take the next frame at a port, which the second sync may show. */
static void
require_frame(struct frame_port *port, struct frame *frame)
{
	if (!frame_peek(port->fp_source, frame)) {
		frame_port_sync(port);
		if (!frame_peek(port->fp_source, frame))
			frame_port_sync(port);
		ATF_REQUIRE(frame_peek(port->fp_source, frame));
	}
	frame_next(port->fp_source);
}

/* A segment of the packet from byte `off' of its payload on is correct. */
static void
check_segment(const uint8_t *packet, size_t off, const uint8_t *frame,
    size_t len)
{
	uint8_t pseudo[12] = { 0 };

	ATF_CHECK_EQ(0, memcmp(packet, frame, 16));
	ATF_CHECK_EQ(len - 14, (size_t)frame[16] << 8 | frame[17]);
	ATF_CHECK_EQ(0xffff, sum(frame + 14, 20));
	ATF_CHECK_EQ(off, (size_t)frame[40] << 8 | frame[41]);
	ATF_CHECK_EQ(0, memcmp(packet + HDRLEN + off, frame + HDRLEN,
	    len - HDRLEN));
	memcpy(pseudo, frame + 26, 8);
	pseudo[9] = 6;
	pseudo[10] = (len - 34) >> 8;
	pseudo[11] = (len - 34) & 0xff;
	ATF_CHECK_EQ(0xffff, ((uint32_t)sum(pseudo, 12) +
	    sum(frame + 34, len - 34)) % 0xffff == 0 ? 0xffff : 0);
}

TEST(offloads, "Between frame ports a packet passes uncut; another port gets "
    "complete segments")
{
	static uint8_t packet[PACKET], got[FRAME_MAX];
	struct iovec out[2], in[FRAME_MAXIOV];
	struct frame frame = { .f_iov = out }, rx = { .f_iov = in };
	struct frame_port *pa, *pb;
	net_backend_t *a, *b, *c;
	ssize_t len;
	size_t off;
	int i;

	need_netmap();
	pa = open_offloads(&a, PORT_A);
	pb = open_offloads(&b, PORT_B);
	c = open_port(PORT_C);
	/* The switch learns b and c. */
	fill(packet, 60, mac_a, mac_b, 1);
	out[0] = (struct iovec){ packet, 60 };
	ATF_CHECK(port_send(pb, out, 1));
	frame_port_flush(pb);
	ATF_CHECK_EQ(60, receive_one(c, got, sizeof(got)));
	require_frame(pa, &rx);
	ATF_CHECK_EQ(60, rx.f_len);
	ATF_CHECK_EQ(0, rx.f_flags);
	ATF_CHECK_EQ(0, memcmp(packet, in[0].iov_base, 60));
	fill(packet, 60, mac_b, mac_c, 2);
	send_one(c, packet, 60);
	require_frame(pb, &rx);
	ATF_CHECK_EQ(1, rx.f_niov);
	ATF_CHECK_EQ(60, rx.f_len);
	ATF_CHECK_EQ(0, rx.f_flags);
	ATF_CHECK_EQ(0, memcmp(packet, in[0].iov_base, 60));

	fill(packet, sizeof(packet), mac_b, mac_a, 3);
	memset(packet + 12, 0, HDRLEN - 12);
	packet[12] = 8;
	packet[14] = 0x45;
	packet[16] = (PACKET - 14) >> 8;
	packet[17] = (PACKET - 14) & 0xff;
	packet[22] = 64;
	packet[23] = 6;
	packet[26] = packet[30] = 10;
	packet[46] = 0x50;
	packet[47] = 0x10;
	out[0] = (struct iovec){ packet, HDRLEN };
	out[1] = (struct iovec){ packet + HDRLEN, PACKET - HDRLEN };
	frame_set(&frame, 2, PACKET);
	frame.f_flags = FRAME_CSUM_PARTIAL;
	frame.f_gso_type = FRAME_GSO_TCPV4;
	frame.f_hdr_len = HDRLEN;
	frame.f_gso_size = 1460;
	frame.f_csum_start = 34;
	frame.f_csum_offset = 16;
	ATF_REQUIRE(frame_port_takes_uncut(pa, &frame));
	ATF_CHECK_EQ(0, frame_port_send(pa, &frame));
	frame_port_flush(pa);
	require_frame(pb, &rx);
	ATF_CHECK_EQ(PACKET, rx.f_len);
	ATF_CHECK_EQ(FRAME_CSUM_PARTIAL, rx.f_flags);
	ATF_CHECK_EQ(FRAME_GSO_TCPV4, rx.f_gso_type);
	ATF_CHECK_EQ(1460, rx.f_gso_size);
	for (i = 0, off = 0; i < rx.f_niov; off += in[i++].iov_len)
		ATF_CHECK_EQ(0, memcmp(packet + off, in[i].iov_base,
		    in[i].iov_len));

	memcpy(packet, mac_c, 6);
	ATF_CHECK_EQ(0, frame_port_send(pa, &frame));
	frame_port_flush(pa);
	for (off = 0; off < PACKET - HDRLEN; off += len - HDRLEN) {
		len = MIN(1514, PACKET - off);
		await_one(c, got, sizeof(got), len);
		check_segment(packet, off, got, len);
	}
	ATF_CHECK_EQ(0, receive_one(c, got, sizeof(got)));

	/* Small, and only a checksum. */
	frame.f_len = 100;
	out[1].iov_len = 100 - HDRLEN;
	frame.f_gso_type = FRAME_GSO_NONE;
	ATF_CHECK_EQ(0, frame_port_send(pa, &frame));
	frame_port_flush(pa);
	ATF_CHECK_EQ(100, receive_one(c, got, sizeof(got)));
	ATF_CHECK_EQ(0, memcmp(packet, got, 50));
	ATF_CHECK_EQ(0xffff, sum(got + 34, 100 - 34));
	netbe_cleanup(a);
	netbe_cleanup(b);
	netbe_cleanup(c);
}

/* Open a tap(4) and bring it up. */
static int
tap_open(struct ifreq *ifr)
{
	int fd, s;

	fd = open("/dev/tap", O_RDWR | O_NONBLOCK);
	if (fd == -1)
		atf_tc_skip("/dev/tap: %s", strerror(errno));
	s = socket(AF_LOCAL, SOCK_DGRAM, 0);
	ATF_REQUIRE_EQ(0, ioctl(fd, TAPGIFNAME, ifr));
	ATF_REQUIRE_EQ(0, ioctl(s, SIOCGIFFLAGS, ifr));
	ifr->ifr_flags |= IFF_UP;
	ATF_REQUIRE_EQ(0, ioctl(s, SIOCSIFFLAGS, ifr));
	close(s);
	return (fd);
}

static void
tap_close(int fd, struct ifreq *ifr)
{
	int s;

	close(fd);
	s = socket(AF_LOCAL, SOCK_DGRAM, 0);
	ATF_CHECK_EQ(0, ioctl(s, SIOCIFDESTROY, ifr));
	close(s);
}

/* Attach an interface to the switch, or detach it. */
static int
uplink(const char *ifname, bool on)
{
	struct nmreq_header hdr;
	struct nmreq_vale_attach attach;
	struct nmreq_vale_detach detach;
	int error, fd;

	memset(&hdr, 0, sizeof(hdr));
	memset(&attach, 0, sizeof(attach));
	memset(&detach, 0, sizeof(detach));
	hdr.nr_version = NETMAP_API;
	hdr.nr_reqtype = on ? NETMAP_REQ_VALE_ATTACH : NETMAP_REQ_VALE_DETACH;
	hdr.nr_body = on ? (uintptr_t)&attach : (uintptr_t)&detach;
	snprintf(hdr.nr_name, sizeof(hdr.nr_name), "vale7:%s", ifname);
	attach.reg.nr_mode = NR_REG_ALL_NIC;
	fd = open(NETMAP_DEVICE_NAME, O_RDWR);
	error = ioctl(fd, NIOCCTRL, &hdr) == 0 ? 0 : errno;
	close(fd);
	return (error);
}

/* Receive the next frame of the test from the tap, within a second; or 0. */
static ssize_t
tap_read(int fd, uint8_t *buf, size_t size)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	ssize_t len;

	while (poll(&pfd, 1, 1000) == 1) {
		len = read(fd, buf, size);
		if (len >= 14 && buf[12] == 0x88 && buf[13] == 0xb5)
			return (len);
	}
	return (0);
}

TEST(uplink, "An interface attached to the switch sends frames of any number "
    "of fragments intact")
{
	uint8_t frame[1514], got[2048];
	struct iovec out[3];
	struct ifreq ifr;
	net_backend_t *a;
	size_t cut, len;
	int error, fd;

	need_netmap();
	fd = tap_open(&ifr);
	a = open_port(PORT_A);
	error = uplink(ifr.ifr_name, true);
	ATF_CHECK_EQ_MSG(0, error, "%s", strerror(error));
	for (len = 60; error == 0 && len <= sizeof(frame); len += 727)
		for (cut = 1; cut < len / 2; cut += 1 + len / 5) {
			fill(frame, len, mac_b, mac_a, len + cut);
			out[0] = (struct iovec){ frame, cut };
			out[1] = (struct iovec){ frame + cut, cut };
			out[2] = (struct iovec){ frame + 2 * cut,
			    len - 2 * cut };
			ATF_CHECK_EQ((ssize_t)len, netbe_send(a, out, 3));
			ATF_CHECK_EQ((ssize_t)len,
			    tap_read(fd, got, sizeof(got)));
			ATF_CHECK_EQ_MSG(0, memcmp(frame, got, len),
			    "%zu bytes, cut at %zu", len, cut);
		}
	ATF_CHECK_EQ(error, error == 0 ? uplink(ifr.ifr_name, false) : error);
	netbe_cleanup(a);
	tap_close(fd, &ifr);
}

static struct {
	pthread_mutex_t	mtx;
	net_backend_t	*be;
	uint32_t	frames, calls, bad;
} receiver = { .mtx = PTHREAD_MUTEX_INITIALIZER };

static void
on_frames(int fd __unused, enum ev_type type __unused, void *param __unused)
{
	uint8_t got[64];
	uint32_t seq;

	pthread_mutex_lock(&receiver.mtx);
	receiver.calls++;
	while (receive_one(receiver.be, got, sizeof(got)) > 0) {
		memcpy(&seq, got + 14, sizeof(seq));
		receiver.bad += seq != receiver.frames++;
	}
	pthread_mutex_unlock(&receiver.mtx);
}

static uint32_t
received(void)
{
	uint32_t n;

	pthread_mutex_lock(&receiver.mtx);
	n = receiver.frames;
	pthread_mutex_unlock(&receiver.mtx);
	return (n);
}

TEST(event, "bhyve's event loop receives every frame, and none while receiving "
    "is disabled")
{
	uint8_t frame[64];
	net_backend_t *a;
	uint32_t burst, i, n;

	need_netmap();
	a = open_port(PORT_A);
	receiver.be = backend_open(PORT_B, on_frames, NULL);
	for (n = 0, burst = 0; burst < 200; burst++) {
		if (burst % 10 == 0)
			netbe_rx_disable(receiver.be);
		for (i = 0; i <= burst % 50; i++) {
			fill(frame, sizeof(frame), mac_b, mac_a, n);
			memcpy(frame + 14, &n, sizeof(n));
			send_one(a, frame, sizeof(frame));
			n++;
		}
		if (burst % 10 == 0)
			netbe_rx_enable(receiver.be);
		wait_until(received() >= n, "%u of %u frames", received(), n);
	}
	ATF_CHECK_EQ(n, received());
	ATF_CHECK_EQ(0, receiver.bad);
	ATF_CHECK_MSG(receiver.calls <= 2 * n, "%u calls", receiver.calls);
}

TEST_PROGRAM
