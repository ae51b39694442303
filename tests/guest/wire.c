/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Sends and receives traffic inside the guests, and checks every byte.
 *
 *	wire udp-send address port size count [pause_us]
 *	wire udp-sweep address port first last	one datagram of each size
 *	wire zero-send address port size count	one at a time, not copied by the
 *					kernel (MSG_ZEROCOPY)
 *	wire ring-send interface mac address port size count
 *					datagrams of IPv4, in a ring shared with
 *					the kernel (packet(7), PACKET_TX_RING)
 *	wire xsk-send interface mac address port size count
 *					the same, from memory of an AF_XDP socket,
 *					one at a time
 *	wire udp-recv port		until the sender says that it is done
 *	wire tcp-send address port bytes
 *	wire tcp-recv port		one connection
 *
 * Every byte is a function of its place: in UDP of the datagram's number and
 * the offset, in TCP of the offset.  The receivers print one line of "name
 * value" pairs; the exit status is 0 if all bytes were correct, even if
 * datagrams were lost.
 *
 * Addresses are numeric, IPv4 or IPv6.
 */

#include <sys/mman.h>
#include <sys/socket.h>

#include <linux/errqueue.h>
#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ether.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <arpa/inet.h>

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "wait_until.h"

#define	UDP_MAX		65507
#define	SWEEP_BYTES	32768		/* not answered; a socket takes 212992
					   with all overhead */
#define	TCP_CHUNK	65536
#define	SEEN_MAX	(1U << 24)
#define	LOST_MAX	8		/* that are named */

struct udp_head {
	uint32_t	seq;
	uint32_t	size;
};
/* Flags in size.  UDP_ASK: the receiver sends the head back. */
#define	UDP_ASK		0x80000000
/* UDP_END: this is the last datagram, and the receiver does not count it. */
#define	UDP_END		0x40000000

static uint8_t buf[UDP_MAX > TCP_CHUNK ? UDP_MAX : TCP_CHUNK];

static double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((double)ts.tv_sec + (double)ts.tv_nsec / 1e9);
}

/* The byte at offset i of stream key. */
static uint8_t
pattern(uint32_t key, uint64_t i)
{
	uint64_t x;

	x = (i + ((uint64_t)key << 32) + 1) * 0x9e3779b97f4a7c15ULL;
	return ((uint8_t)(x >> 56));
}

static uint64_t
number(const char *s, uint64_t max)
{
	char *end;
	unsigned long long v;

	errno = 0;
	v = strtoull(s, &end, 10);
	if (errno != 0 || *s == '\0' || *end != '\0' || v > max)
		errx(2, "%s: not a number up to %ju", s, (uintmax_t)max);
	return (v);
}

static socklen_t
address(struct sockaddr_storage *ss, const char *host, const char *port)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)ss;
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)ss;
	in_port_t p;

	memset(ss, 0, sizeof(*ss));
	p = htons((uint16_t)number(port, 65535));
	if (inet_pton(AF_INET, host, &sin->sin_addr) == 1) {
		sin->sin_family = AF_INET;
		sin->sin_port = p;
		return (sizeof(*sin));
	}
	if (inet_pton(AF_INET6, host, &sin6->sin6_addr) == 1) {
		sin6->sin6_family = AF_INET6;
		sin6->sin6_port = p;
		return (sizeof(*sin6));
	}
	errx(2, "%s: not an address", host);
}

/* A socket bound to a port, for IPv4 and IPv6. */
static int
bound(int type, const char *port)
{
	struct sockaddr_storage ss;
	socklen_t len;
	int on = 1, rcvbuf = 4 << 20, s;

	len = address(&ss, "::", port);
	s = socket(AF_INET6, type, 0);
	if (s < 0)
		err(1, "socket");
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (type == SOCK_DGRAM)
		setsockopt(s, SOL_SOCKET, SO_RCVBUFFORCE, &rcvbuf,
		    sizeof(rcvbuf));
	if (bind(s, (struct sockaddr *)&ss, len) != 0)
		err(1, "bind");
	return (s);
}

static int
udp_socket(const char *host, const char *port)
{
	struct sockaddr_storage ss;
	socklen_t len;
	int s;

	len = address(&ss, host, port);
	s = socket(ss.ss_family, SOCK_DGRAM, 0);
	if (s < 0 || connect(s, (struct sockaddr *)&ss, len) != 0)
		err(1, "connect");
	return (s);
}

/* Sends datagram number seq; its size is at least the header's. */
static void
datagram(int s, uint32_t seq, uint32_t size, uint32_t ask, int flags)
{
	struct udp_head h;
	uint32_t i;

	h.seq = htonl(seq);
	h.size = htonl(size | ask);
	memcpy(buf, &h, sizeof(h));
	for (i = sizeof(h); i < size; i++)
		buf[i] = pattern(seq, i);
	while (send(s, buf, size, flags) < 0)
		if (errno != ENOBUFS && errno != ECONNREFUSED)
			err(1, "send");
}

/*
 * Tells the receiver that no more datagrams follow, until it answers.  If the
 * answer is lost, it has gone.
 */
static void
finished(int s)
{
	struct pollfd pfd = { .fd = s, .events = POLLIN };
	const double end = now() + WAIT_S;
	struct udp_head h;

	for (;;) {
		datagram(s, 0, sizeof(h), UDP_ASK | UDP_END, 0);
		if (poll(&pfd, 1, 1000) == 1) {
			if (recv(s, &h, sizeof(h), 0) == sizeof(h) ||
			    errno == ECONNREFUSED)
				return;
			err(1, "answer");
		}
		if (now() > end)
			errx(1, "the receiver does not answer");
	}
}

static int
udp_send(char **argv)
{
	uint32_t count, pause_us, seq, size;
	int s;

	size = (uint32_t)number(argv[2], UDP_MAX);
	count = (uint32_t)number(argv[3], SEEN_MAX);
	pause_us = argv[4] != NULL ? (uint32_t)number(argv[4], 1000000) : 0;
	if (size < sizeof(struct udp_head))
		errx(2, "size: at least %zu", sizeof(struct udp_head));
	s = udp_socket(argv[0], argv[1]);
	for (seq = 0; seq < count; seq++) {
		datagram(s, seq, size, 0, 0);
		if (pause_us != 0)
			usleep(pause_us);
	}
	finished(s);
	printf("sent %u\n", count);
	return (0);
}

/* Waits until the other side has received datagram number seq. */
static void
answered(int s, uint32_t seq)
{
	struct udp_head h;

	wait_readable(s, "no answer to datagram %u", seq);
	if (recv(s, &h, sizeof(h), 0) != sizeof(h))
		err(1, "answer");
	if (ntohl(h.seq) != seq)
		errx(1, "an answer to datagram %u", ntohl(h.seq));
}

static int
udp_sweep(char **argv)
{
	uint32_t bytes = 0, first, last, size;
	bool ask;
	int s;

	first = (uint32_t)number(argv[2], UDP_MAX);
	last = (uint32_t)number(argv[3], UDP_MAX);
	if (first < sizeof(struct udp_head))
		errx(2, "size: at least %zu", sizeof(struct udp_head));
	s = udp_socket(argv[0], argv[1]);
	for (size = first; size <= last; size++) {
		/* Never more than the other side can buffer. */
		bytes += size;
		ask = bytes >= SWEEP_BYTES || size % 16 == 0;
		datagram(s, size - first, size, ask ? UDP_ASK : 0, 0);
		if (ask) {
			answered(s, size - first);
			bytes = 0;
		}
	}
	finished(s);
	printf("sent %u\n", last - first + 1);
	return (0);
}

/*
 * Sends each datagram when the kernel has given back the memory of the one before.
 * Prints of how many it says that it has copied them nevertheless.
 */
static int
zero_send(char **argv)
{
	const uint32_t size = (uint32_t)number(argv[2], UDP_MAX);
	const uint32_t count = (uint32_t)number(argv[3], SEEN_MAX);
	union {
		struct cmsghdr	h;
		uint8_t		b[256];
	} control;
	struct sock_extended_err ee;
	uint32_t copied = 0, seq;
	int on = 1, s;

	s = udp_socket(argv[0], argv[1]);
	if (setsockopt(s, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof(on)) != 0)
		err(1, "SO_ZEROCOPY");
	for (seq = 0; seq < count; seq++) {
		struct msghdr m = { .msg_control = &control,
		    .msg_controllen = sizeof(control) };

		datagram(s, seq, size, 0, MSG_ZEROCOPY);
		wait_readable(s, "datagram %u is not sent", seq);
		if (recvmsg(s, &m, MSG_ERRQUEUE) < 0 ||
		    m.msg_controllen < CMSG_LEN(sizeof(ee)))
			err(1, "MSG_ERRQUEUE");
		memcpy(&ee, CMSG_DATA(&control.h), sizeof(ee));
		if (ee.ee_origin != SO_EE_ORIGIN_ZEROCOPY || ee.ee_data != seq)
			errx(1, "datagram %u: another report", seq);
		copied += (ee.ee_code & SO_EE_CODE_ZEROCOPY_COPIED) != 0;
	}
	finished(s);
	printf("sent %u copied %u\n", count, copied);
	return (0);
}

#define	RING_FRAMES	64
#define	RING_FRAME	2048		/* bytes, with the head */
#define	RING_HEAD	TPACKET_ALIGN(sizeof(struct tpacket2_hdr))

/* A socket with a ring on an interface, and the address of the ring. */
static int
ring_open(const char *interface, uint8_t **ring)
{
	struct sockaddr_ll sll = { .sll_family = AF_PACKET,
	    .sll_ifindex = (int)if_nametoindex(interface),
	    .sll_protocol = htons(ETH_P_IP) };
	struct tpacket_req req = { .tp_block_size = RING_FRAMES * RING_FRAME,
	    .tp_block_nr = 1, .tp_frame_size = RING_FRAME,
	    .tp_frame_nr = RING_FRAMES };
	int s, version = TPACKET_V2;

	s = socket(AF_PACKET, SOCK_RAW, 0);
	if (s < 0 || setsockopt(s, SOL_PACKET, PACKET_VERSION, &version,
	    sizeof(version)) != 0 || setsockopt(s, SOL_PACKET, PACKET_TX_RING,
	    &req, sizeof(req)) != 0 ||
	    bind(s, (struct sockaddr *)&sll, sizeof(sll)) != 0)
		err(1, "packet(7)");
	*ring = mmap(NULL, RING_FRAMES * RING_FRAME, PROT_READ | PROT_WRITE,
	    MAP_SHARED, s, 0);
	if (*ring == MAP_FAILED)
		err(1, "mmap");
	return (s);
}

/* Put datagram number seq, without a checksum, at p; returns its length. */
static uint32_t
ring_put(uint8_t *p, char **argv, uint32_t seq, uint32_t size)
{
	struct {
		struct ether_header eth;
		struct ip	 ip;
		struct udphdr	 udp;
		struct udp_head	 h;
	} __attribute__((__packed__)) f = {
		.eth.ether_type = htons(ETHERTYPE_IP),
		.ip = { .ip_v = 4, .ip_hl = 5, .ip_ttl = 64,
		    .ip_p = IPPROTO_UDP,
		    .ip_len = htons((uint16_t)(size + 28)) },
		.udp = { .uh_sport = htons(1),
		    .uh_dport = htons((uint16_t)number(argv[3], 65535)),
		    .uh_ulen = htons((uint16_t)(size + 8)) },
		.h = { .seq = htonl(seq), .size = htonl(size) },
	};
	uint32_t i, sum = 0;
	uint16_t word;

	ether_aton_r(argv[1], (struct ether_addr *)f.eth.ether_dhost);
	f.eth.ether_shost[0] = 2;
	inet_pton(AF_INET, argv[2], &f.ip.ip_dst);
	/* Not an address of the other side's: it would drop the datagram. */
	f.ip.ip_src.s_addr = f.ip.ip_dst.s_addr ^ htonl(0xc0);
	for (i = 0; i < sizeof(f.ip); i += 2) {
		memcpy(&word, (uint8_t *)&f.ip + i, 2);
		sum += word;
	}
	f.ip.ip_sum = (uint16_t)~(sum % 0xffff);
	memcpy(p, &f, sizeof(f));
	for (i = sizeof(f.h); i < size; i++)
		p[sizeof(f) - sizeof(f.h) + i] = pattern(seq, i);
	return ((uint32_t)(sizeof(f) - sizeof(f.h)) + size);
}

/*
 * Sends up to a ring of datagrams, and overwrites each as soon as the kernel
 * says that it is sent.  Prints how many it said so of at once.
 */
static int
ring_send(char **argv)
{
	const uint32_t size = (uint32_t)number(argv[4], 1024);
	const uint32_t count = (uint32_t)number(argv[5], RING_FRAMES);
	struct tpacket2_hdr *h[RING_FRAMES];
	uint32_t free = 0, i, left;
	uint8_t *ring;
	int s;

	s = ring_open(argv[0], &ring);
	for (i = 0; i < count; i++) {
		h[i] = (struct tpacket2_hdr *)(ring + i * RING_FRAME);
		h[i]->tp_len = ring_put((uint8_t *)h[i] + RING_HEAD, argv, i,
		    size);
		h[i]->tp_status = TP_STATUS_SEND_REQUEST;
	}
	if (send(s, NULL, 0, MSG_DONTWAIT) < 0)
		err(1, "send");
	for (left = count; left > 0; usleep(1000)) {
		for (i = left = 0; i < count; i++)
			if (__atomic_load_n(&h[i]->tp_status,
			    __ATOMIC_ACQUIRE) != TP_STATUS_AVAILABLE)
				left++;
			else
				memset((uint8_t *)(h[i] + 1), 0xff,
				    RING_FRAME - sizeof(*h[i]));
		if (free == 0) {
			free = count - left + 1;
			printf("sent %u free %u\n", count, free - 1);
			fflush(stdout);
		}
	}
	printf("all free\n");
	return (0);
}

/* A ring of an AF_XDP socket: both indices, and the entries. */
struct xsk_ring {
	uint32_t	*producer, *consumer;
	void		*entries;
};

static struct xsk_ring
xsk_ring(int s, off_t page, const struct xdp_ring_offset *off)
{
	uint8_t *p = mmap(NULL, off->desc + RING_FRAMES *
	    sizeof(struct xdp_desc), PROT_READ | PROT_WRITE, MAP_SHARED, s,
	    page);

	if (p == MAP_FAILED)
		err(1, "mmap");
	return ((struct xsk_ring){ (uint32_t *)(p + off->producer),
	    (uint32_t *)(p + off->consumer), p + off->desc });
}

/* Open such a socket, with `memory' of RING_FRAMES frames. */
static int
xsk_open(const char *interface, uint8_t *memory, struct xsk_ring *tx,
    struct xsk_ring *done)
{
	const struct sockaddr_xdp sxdp = { .sxdp_family = AF_XDP,
	    .sxdp_flags = XDP_COPY, .sxdp_ifindex = if_nametoindex(interface) };
	const struct xdp_umem_reg reg = { .addr = (uintptr_t)memory,
	    .len = RING_FRAMES * RING_FRAME, .chunk_size = RING_FRAME };
	const int n = RING_FRAMES;
	struct xdp_mmap_offsets off;
	socklen_t len = sizeof(off);
	int s;

	s = socket(AF_XDP, SOCK_RAW, 0);
	if (s < 0 ||
	    setsockopt(s, SOL_XDP, XDP_UMEM_REG, &reg, sizeof(reg)) != 0 ||
	    setsockopt(s, SOL_XDP, XDP_UMEM_FILL_RING, &n, sizeof(n)) != 0 ||
	    setsockopt(s, SOL_XDP, XDP_UMEM_COMPLETION_RING, &n,
	    sizeof(n)) != 0 ||
	    setsockopt(s, SOL_XDP, XDP_TX_RING, &n, sizeof(n)) != 0 ||
	    getsockopt(s, SOL_XDP, XDP_MMAP_OFFSETS, &off, &len) != 0)
		err(1, "AF_XDP");
	*tx = xsk_ring(s, XDP_PGOFF_TX_RING, &off.tx);
	*done = xsk_ring(s, XDP_UMEM_PGOFF_COMPLETION_RING, &off.cr);
	if (bind(s, (const struct sockaddr *)&sxdp, sizeof(sxdp)) != 0)
		err(1, "AF_XDP: bind");
	return (s);
}

/* Sends each datagram when the kernel has given back the frame of the one before. */
static int
xsk_send(char **argv)
{
	const uint32_t size = (uint32_t)number(argv[4], 1024);
	const uint32_t count = (uint32_t)number(argv[5], SEEN_MAX);
	uint8_t *memory = mmap(NULL, RING_FRAMES * RING_FRAME, PROT_READ |
	    PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct xsk_ring done, tx;
	uint32_t i;
	int s;

	s = xsk_open(argv[0], memory, &tx, &done);
	for (i = 0; i < count; i++) {
		((struct xdp_desc *)tx.entries)[i % RING_FRAMES] =
		    (struct xdp_desc){ .len = ring_put(memory, argv, i, size) };
		__atomic_store_n(tx.producer, i + 1, __ATOMIC_RELEASE);
		if (sendto(s, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0)
			err(1, "sendto");
		wait_until(__atomic_load_n(done.producer, __ATOMIC_ACQUIRE) ==
		    i + 1, "datagram %u is not sent", i);
		__atomic_store_n(done.consumer, i + 1, __ATOMIC_RELEASE);
	}
	printf("sent %u\n", count);
	return (0);
}

static int
udp_recv(char **argv)
{
	struct sockaddr_storage from;
	socklen_t fromlen;
	struct pollfd pfd;
	struct udp_head h;
	uint8_t *seen;
	uint32_t i, last, lost, seq;
	uint64_t bad, duplicate, good, late;
	ssize_t n;

	seen = calloc(SEEN_MAX / 8 + 1, 1);
	if (seen == NULL)
		err(1, "calloc");
	pfd.fd = bound(SOCK_DGRAM, argv[0]);
	pfd.events = POLLIN;
	bad = duplicate = good = late = 0;
	last = 0;
	while (poll(&pfd, 1, WAIT_S * 1000) == 1) {
		fromlen = sizeof(from);
		n = recvfrom(pfd.fd, buf, sizeof(buf), MSG_TRUNC,
		    (struct sockaddr *)&from, &fromlen);
		if (n < 0)
			err(1, "recv");
		memcpy(&h, buf, sizeof(h));
		seq = ntohl(h.seq);
		if (n < (ssize_t)sizeof(h) || seq > SEEN_MAX ||
		    (ntohl(h.size) & ~(UDP_ASK | UDP_END)) != (uint32_t)n) {
			bad++;
			continue;
		}
		if ((ntohl(h.size) & UDP_ASK) != 0 && sendto(pfd.fd, &h,
		    sizeof(h), 0, (struct sockaddr *)&from, fromlen) < 0)
			err(1, "answer");
		if ((ntohl(h.size) & UDP_END) != 0)
			break;
		for (i = sizeof(h); i < (uint32_t)n; i++)
			if (buf[i] != pattern(seq, i))
				break;
		if (i < (uint32_t)n) {
			bad++;
			continue;
		}
		if ((seen[seq / 8] & 1 << seq % 8) != 0) {
			duplicate++;
			continue;
		}
		seen[seq / 8] |= (uint8_t)(1 << seq % 8);
		if (seq < last)
			late++;
		else
			last = seq;
		good++;
	}
	for (i = lost = 0; i <= last && lost < LOST_MAX; i++)
		if ((seen[i / 8] & 1 << i % 8) == 0)
			printf("%s %u", lost++ == 0 ? "lost" : "", i);
	if (lost != 0)
		printf("\n");
	printf("good %ju bad %ju duplicate %ju late %ju\n", (uintmax_t)good,
	    (uintmax_t)bad, (uintmax_t)duplicate, (uintmax_t)late);
	return (bad != 0 || duplicate != 0 || late != 0);
}

/* Returns a connected socket, or -1 with errno. */
static int
tcp_try(const struct sockaddr_storage *ss, socklen_t len)
{
	int error, s;

	s = socket(ss->ss_family, SOCK_STREAM, 0);
	if (s < 0)
		err(1, "socket");
	if (connect(s, (const struct sockaddr *)ss, len) == 0)
		return (s);
	error = errno;
	close(s);
	errno = error;
	return (-1);
}

/* Connects to a receiver that may not listen yet. */
static int
tcp_connect(const char *host, const char *port)
{
	struct sockaddr_storage ss;
	socklen_t len;
	int s;

	len = address(&ss, host, port);
	wait_until((s = tcp_try(&ss, len)) >= 0, "%s", strerror(errno));
	return (s);
}

/* Waits until the other side has read everything, and reports. */
static int
tcp_finish(int s, uint64_t bytes, double start)
{
	shutdown(s, SHUT_WR);
	if (recv(s, buf, 1, 0) != 0)
		errx(1, "connection did not end well");
	printf("bytes %ju seconds %.6f\n", (uintmax_t)bytes, now() - start);
	return (0);
}

static int
tcp_send(char **argv)
{
	uint64_t at, left;
	ssize_t n;
	size_t i, want;
	double start;
	int s;

	left = number(argv[2], UINT64_MAX);
	s = tcp_connect(argv[0], argv[1]);
	start = now();
	for (at = 0; left > 0; at += (uint64_t)n, left -= (uint64_t)n) {
		want = left < TCP_CHUNK ? (size_t)left : TCP_CHUNK;
		for (i = 0; i < want; i++)
			buf[i] = pattern(0, at + i);
		n = send(s, buf, want, MSG_NOSIGNAL);
		if (n < 0)
			err(1, "send");
	}
	return (tcp_finish(s, at, start));
}

static int
tcp_recv(char **argv)
{
	uint64_t at, bad;
	ssize_t i, n;
	double start;
	int l, s;

	l = bound(SOCK_STREAM, argv[0]);
	if (listen(l, 1) != 0)
		err(1, "listen");
	s = accept(l, NULL, NULL);
	if (s < 0)
		err(1, "accept");
	/*
	 * A sender that finds the end of this one waits for the next receiver.
	 */
	close(l);
	start = now();
	bad = 0;
	for (at = 0; (n = recv(s, buf, TCP_CHUNK, 0)) > 0; at += (uint64_t)n)
		for (i = 0; i < n; i++)
			if (buf[i] != pattern(0, at + (uint64_t)i))
				bad++;
	if (n < 0)
		err(1, "recv");
	printf("bytes %ju bad %ju seconds %.6f\n", (uintmax_t)at,
	    (uintmax_t)bad, now() - start);
	return (bad != 0);
}

int
main(int argc, char **argv)
{
	const char *verb;

	verb = argc > 1 ? argv[1] : "";
	argv += 2;
	argc -= 2;
	if (strcmp(verb, "udp-send") == 0 && (argc == 4 || argc == 5))
		return (udp_send(argv));
	if (strcmp(verb, "udp-sweep") == 0 && argc == 4)
		return (udp_sweep(argv));
	if (strcmp(verb, "zero-send") == 0 && argc == 4)
		return (zero_send(argv));
	if (strcmp(verb, "ring-send") == 0 && argc == 6)
		return (ring_send(argv));
	if (strcmp(verb, "xsk-send") == 0 && argc == 6)
		return (xsk_send(argv));
	if (strcmp(verb, "udp-recv") == 0 && argc == 1)
		return (udp_recv(argv));
	if (strcmp(verb, "tcp-send") == 0 && argc == 3)
		return (tcp_send(argv));
	if (strcmp(verb, "tcp-recv") == 0 && argc == 1)
		return (tcp_recv(argv));
	fprintf(stderr, "usage: wire udp-send address port size count [pause]\n"
	    "       wire udp-sweep address port first last\n"
	    "       wire zero-send address port size count\n"
	    "       wire ring-send interface mac address port size count\n"
	    "       wire xsk-send interface mac address port size count\n"
	    "       wire udp-recv port\n"
	    "       wire tcp-send address port bytes\n"
	    "       wire tcp-recv port\n");
	return (2);
}
