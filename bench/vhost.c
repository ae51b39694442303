/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The time of a single frame through vhost-user, beside single.c: this program
 * plays two guests with virtio-net, whose backends are at two sockets, or one.
 *
 *	vhost [-k kind] [-n frames] socket [socket]
 *
 * One sends a frame to the other, and then the other back.  With one socket the
 * backend answers each frame itself, an ARP request.  The time is from the
 * store that posts the frame until the receiver's eventfd is readable.  A
 * backend that does not poll is notified by an eventfd.
 *
 * The output is a line as of single.c, of kind vhost, or -k.  Its `messages'
 * are these notifications, a frame.
 *
 * Protocol: QEMU's docs/interop/vhost-user.rst.  Rings: VIRTIO 1.2, section
 * 2.7.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/systm.h>
#include <sys/un.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ring.h>

#include "bench.h"
#include "send_fds.h"

#define	RAM		(1 << 20)
#define	GPA		0x100000
#define	SLOTS		64
#define	RINGS		0x1000		/* a ring has so many bytes */
#define	AVAIL		0x800
#define	USED		0xc00
#define	BUFS		0x10000
#define	BUF		2048
#define	HDR		12		/* bytes of virtio's header */
#define	LEN		60
#define	WARM		200		/* frames that are not measured */
#define	WAIT_MS		60000

/* Requests, and bits of their flags. */
enum {
	GET_FEATURES = 1, SET_FEATURES, SET_OWNER, SET_MEM_TABLE = 5,
	SET_VRING_NUM = 8, SET_VRING_ADDR, SET_VRING_BASE,
	SET_VRING_KICK = 12, SET_VRING_CALL, GET_PROTOCOL_FEATURES = 15,
	SET_PROTOCOL_FEATURES, SET_VRING_ENABLE = 18
};
#define	VERSION		1
#define	F_PROTOCOL_FEATURES (UINT64_C(1) << 30)

struct message {
	uint32_t	request;
	uint32_t	flags;
	uint32_t	size;
	union {
		uint64_t	u64;
		struct {
			uint32_t	index, num;
		} state;
		struct {
			uint32_t	index, flags;
			uint64_t	desc, used, avail, log;
		} addr;
		struct {
			uint32_t	nregions, padding;
			uint64_t	gpa, size, addr, offset;
		} memory;
	} payload;
} __attribute__((__packed__));

/* Its receive ring is 0, its transmit ring 1. */
struct guest {
	int		 s;
	uint8_t		*ram;
	struct vring_desc *desc[2];
	volatile struct vring_avail *avail[2];
	volatile struct vring_used *used[2];
	int		 kick[2], call[2];
	uint16_t	 seen;		/* of the receive ring's used ones */
	uint64_t	 kicks;
};

static void
put(struct guest *g, uint32_t request, struct message *m, uint32_t size, int fd)
{
	const size_t n = offsetof(struct message, payload) + size;

	m->request = request;
	m->flags = VERSION;
	m->size = size;
	if (send_fds(g->s, m, n, &fd, fd != -1, 0) != (ssize_t)n)
		err(1, "send");
}

static void
put_u64(struct guest *g, uint32_t request, uint64_t value, int fd)
{
	struct message m = { .payload.u64 = value };

	put(g, request, &m, sizeof(m.payload.u64), fd);
}

static uint64_t
ask(struct guest *g, uint32_t request)
{
	const size_t n = offsetof(struct message, payload) + sizeof(uint64_t);
	struct message m = { 0 };

	put(g, request, &m, 0, -1);
	if (recv(g->s, &m, n, MSG_WAITALL) != (ssize_t)n ||
	    m.request != request)
		errx(1, "no answer to request %u", request);
	return (m.payload.u64);
}

static void
ring_start(struct guest *g, uint32_t i)
{
	uint8_t *ring = g->ram + i * RINGS;
	struct message m = { .payload.state = { i, SLOTS } };
	int n;

	g->desc[i] = (void *)ring;
	g->avail[i] = (void *)(ring + AVAIL);
	g->used[i] = (void *)(ring + USED);
	for (n = 0; n < SLOTS; n++) {
		g->desc[i][n] = (struct vring_desc){
		    .addr = GPA + BUFS + (i * SLOTS + n) * BUF,
		    .len = i == 0 ? BUF : HDR + LEN,
		    .flags = i == 0 ? VRING_DESC_F_WRITE : 0 };
		g->avail[i]->ring[n] = n;
	}
	if (i == 0)
		g->avail[i]->idx = SLOTS;
	else
		g->avail[i]->flags = VRING_AVAIL_F_NO_INTERRUPT;
	put(g, SET_VRING_NUM, &m, sizeof(m.payload.state), -1);
	m.payload.state.num = 0;
	put(g, SET_VRING_BASE, &m, sizeof(m.payload.state), -1);
	m = (struct message){ .payload.addr = { .index = i,
	    .desc = (uintptr_t)g->desc[i], .used = (uintptr_t)g->used[i],
	    .avail = (uintptr_t)g->avail[i] } };
	put(g, SET_VRING_ADDR, &m, sizeof(m.payload.addr), -1);
	g->kick[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	g->call[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (g->kick[i] == -1 || g->call[i] == -1)
		err(1, "eventfd");
	put_u64(g, SET_VRING_CALL, i, g->call[i]);
	put_u64(g, SET_VRING_KICK, i, g->kick[i]);
	m = (struct message){ .payload.state = { i, 1 } };
	put(g, SET_VRING_ENABLE, &m, sizeof(m.payload.state), -1);
}

static void
guest_start(struct guest *g, const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct message m;
	uint64_t features;
	int fd, i;

	g->s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (g->s == -1)
		err(1, "socket");
	strlcpy(sun.sun_path, path, sizeof(sun.sun_path));
	for (i = 0; connect(g->s, (struct sockaddr *)&sun, sizeof(sun)) == -1;
	    i++) {
		if (i == WAIT_MS / 100)
			err(1, "%s", path);
		usleep(100000);
	}
	fd = memfd_create("guest", MFD_CLOEXEC);
	if (fd == -1 || ftruncate(fd, RAM) == -1)
		err(1, "memory");
	g->ram = mmap(NULL, RAM, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (g->ram == MAP_FAILED)
		err(1, "mmap");
	features = ask(g, GET_FEATURES);
	if ((features & (1ULL << VIRTIO_F_VERSION_1)) == 0 ||
	    (features & F_PROTOCOL_FEATURES) == 0)
		errx(1, "features %#jx", (uintmax_t)features);
	(void)ask(g, GET_PROTOCOL_FEATURES);
	put_u64(g, SET_PROTOCOL_FEATURES, 0, -1);
	put(g, SET_OWNER, &m, 0, -1);
	put_u64(g, SET_FEATURES, 1ULL << VIRTIO_F_VERSION_1 |
	    F_PROTOCOL_FEATURES, -1);
	m = (struct message){ .payload.memory = { .nregions = 1, .gpa = GPA,
	    .size = RAM, .addr = (uintptr_t)g->ram } };
	put(g, SET_MEM_TABLE, &m, sizeof(m.payload.memory), fd);
	close(fd);
	for (i = 0; i < 2; i++)
		ring_start(g, i);
}

/* Put a frame into the next buffer; it is not posted yet. */
static void
queue(struct guest *g, uint8_t to, uint8_t from)
{
	uint8_t *buf = g->ram + BUFS +
	    (SLOTS + g->avail[1]->idx % SLOTS) * BUF, *arp = buf + HDR + 14;

	memset(buf, 0, HDR + LEN);
	buf[HDR] = buf[HDR + 6] = 2;
	buf[HDR + 5] = to;
	buf[HDR + 11] = from;
	/* Who has 192.0.2.1?  Tell 192.0.2.2. */
	be16enc(buf + HDR + 12, ETH_P_ARP);
	be16enc(arp, ARPHRD_ETHER);
	be16enc(arp + 2, ETH_P_IP);
	arp[4] = 6;
	arp[5] = 4;
	be16enc(arp + 6, ARPOP_REQUEST);
	memcpy(arp + 8, buf + HDR + 6, 6);
	be32enc(arp + 14, 0xc0000202);
	be32enc(arp + 24, 0xc0000201);
}

static void
post(struct guest *g, int ring)
{
	static const uint64_t one = 1;

	atomic_thread_fence_rel();
	g->avail[ring]->idx++;
	atomic_thread_fence_seq_cst();
	if ((g->used[ring]->flags & VRING_USED_F_NO_NOTIFY) != 0)
		return;
	g->kicks++;
	if (write(g->kick[ring], &one, sizeof(one)) != sizeof(one))
		err(1, "kick");
}

/* Take the frames that have come, and give their buffers back; return how many. */
static unsigned int
receive(struct guest *g)
{
	unsigned int n = 0;
	uint64_t events;

	(void)!read(g->call[0], &events, sizeof(events));
	while (g->seen != g->used[0]->idx) {
		atomic_thread_fence_acq();
		g->avail[0]->ring[g->avail[0]->idx % SLOTS] =
		    g->used[0]->ring[g->seen++ % SLOTS].id;
		post(g, 0);
		n++;
	}
	return (n);
}

static void
exchange(struct guest *g[2], uint32_t frames, uint64_t *times_ns)
{
	struct guest *to;
	struct pollfd pfd;
	unsigned int from;
	uint64_t begun;
	uint32_t n;

	for (n = 0; n < frames; n++) {
		from = n % 2;
		to = g[!from];
		queue(g[from], !from, from);
		begun = bench_now_ns();
		post(g[from], 1);
		do {
			pfd = (struct pollfd){ to->call[0], POLLIN, 0 };
			if (poll(&pfd, 1, WAIT_MS) < 1)
				errx(1, "a frame was lost");
			if (times_ns != NULL)
				times_ns[n] = bench_now_ns() - begun;
		} while (receive(to) == 0);
	}
}

/* The backend may not forward yet: send until a frame comes. */
static void
begin(struct guest *g[2])
{
	struct pollfd pfd = { g[1]->call[0], POLLIN, 0 };
	int i;

	for (i = 0; receive(g[1]) == 0; i++) {
		if (i == WAIT_MS / 100)
			errx(1, "no frame comes");
		queue(g[0], 1, 0);
		post(g[0], 1);
		(void)poll(&pfd, 1, 100);
	}
	/* Those that are still coming. */
	usleep(500000);
	(void)receive(g[1]);
}

static int
compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y ? -1 : x > y);
}

static void __dead2
usage(void)
{
	fprintf(stderr, "usage: vhost [-k kind] [-n frames] socket [socket]\n");
	exit(1);
}

int
main(int argc, char **argv)
{
	struct guest guests[2] = { 0 }, *g[2] = { &guests[0], &guests[1] };
	const char *kind = "vhost";
	uint32_t frames = 20000;
	uint64_t *times_ns;
	int ch;

	while ((ch = getopt(argc, argv, "k:n:")) != -1) {
		switch (ch) {
		case 'k':
			kind = optarg;
			break;
		case 'n':
			frames = bench_number(optarg, 100, 10000000);
			break;
		default:
			usage();
		}
	}
	if (argc - optind != 1 && argc - optind != 2)
		usage();
	times_ns = calloc(frames, sizeof(*times_ns));
	if (times_ns == NULL)
		err(1, NULL);
	guest_start(g[0], argv[optind]);
	if (argc - optind == 2)
		guest_start(g[1], argv[optind + 1]);
	else
		g[1] = g[0];
	begin(g);
	exchange(g, WARM, NULL);
	guests[0].kicks = guests[1].kicks = 0;
	exchange(g, frames, times_ns);
	qsort(times_ns, frames, sizeof(*times_ns), compare);
	printf("%s,0,0,%u,%.1f,%.1f,%.2f,0,0,0\n", kind, frames,
	    times_ns[frames / 2] / 1e3,
	    times_ns[frames - 1 - frames / 100] / 1e3,
	    (double)(guests[0].kicks + guests[1].kicks) / frames);
	return (0);
}
