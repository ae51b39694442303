/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Opens ports on a switch, and runs operations on them in order:
 *
 *	vale_traffic PORT ... -- OPERATION ...
 *
 *	send,P,S,D[,N[,L]]	N frames (1) of L bytes (60) from port number P,
 *				from 0, from station S to station D; station 0
 *				is broadcast
 *	isend,P,S,D[,N[,L]]	the same as indirect frames
 *	fsend,P,S,D,N,L,H	the same, the first H bytes in their own slot
 *	lost,P			an indirect frame in unmapped memory
 *	arp,P,S,A		an ARP request of station S as 192.0.2.A
 *	link,P,N		a frame of station 1 to 01:80:c2:00:00:N
 *	tag,P,N			the frames that port P sends have a tag for VLAN
 *				N, which L counts; 0: none
 *	recv			print "recv" and each port's number of frames
 *	show,P			print "S>D:L" for each frame of port P, or
 *				"S>D@N:L" if it has a tag for VLAN N
 *	open,NAME  close,P	open another port, close one
 *	header,P,BYTES		port P's frames begin with a virtio-net header
 *				of that length, all zero; L, H and "show" count
 *				it
 *	run,COMMAND		run a shell command; exit if it fails
 *	rate,MS[,N]		for MS ms, port 0 sends to port 1, 256 frames of
 *				60 bytes at a time, to N stations (1) in turn;
 *				prints "rate FRAMES tx NS all NS", ns a frame
 *	storm,MS		for MS ms, all ports send to all, a thread each,
 *				with pauses; prints "storm FRAMES"
 *
 * A sync delivers before it returns, so the output does not depend on timing.
 */

#include <sys/ioctl.h>

#include <err.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libvale.h"

#define	PORTS	16
#define	BATCH	256
#define	FRAME	60

static struct vale_desc *port[PORTS];
static unsigned int header[PORTS];
static unsigned int tag[PORTS];
static unsigned int nports;

static void
station(uint8_t *addr, unsigned int n)
{
	const uint8_t a[6] = { 2, 0, 0, 0, n >> 8, n };

	if (n == 0)
		memset(addr, 0xff, 6);
	else
		memcpy(addr, a, 6);
}

static unsigned int
station_number(const uint8_t *addr)
{
	return ((addr[0] & 1) != 0 ? 0 : addr[4] << 8 | addr[5]);
}

static struct vale_desc *
nth(unsigned int n)
{
	if (n >= nports || port[n] == NULL)
		errx(1, "no port %u", n);
	return (port[n]);
}

static void
open_port(const char *name)
{
	if (nports == PORTS)
		errx(1, "%s: too many ports", name);
	port[nports] = vale_open(name, NULL);
	if (port[nports++] == NULL)
		err(1, "%s", name);
}

static void
sync_tx(struct vale_desc *d)
{
	if (vale_txsync(d) == -1)
		err(1, "%s: txsync", d->common->name);
}

/* Queue one slot.  The ring is empty after each sync, so there is a slot. */
static void
queue(struct vale_desc *d, const uint8_t *data, uint32_t len, uint16_t flags)
{
	struct netmap_ring *ring = d->txring;
	struct netmap_slot *slot = &ring->slot[ring->head];

	if (nm_ring_space(ring) == 0)
		sync_tx(d);
	slot->len = len;
	slot->flags = flags;
	if ((flags & NS_INDIRECT) != 0)
		slot->ptr = (uintptr_t)data;
	else
		memcpy(NETMAP_BUF(ring, slot->buf_idx), data, len);
	ring->head = ring->cur = nm_ring_next(ring, ring->head);
}

static void
op_send(char *args, uint16_t flags)
{
	static uint8_t frame[2048];
	unsigned int dst, first = 0, i, len = FRAME, n = 1, p, src;
	struct vale_desc *d;

	if (sscanf(args, "%u,%u,%u,%u,%u,%u", &p, &src, &dst, &n, &len,
	    &first) < 3 || len > sizeof(frame) - 64 || first > len)
		errx(1, "send: %s", args);
	d = nth(p);
	memset(frame, 0, sizeof(frame));
	station(frame + header[p], dst);
	station(frame + header[p] + 6, src);
	if (tag[p] != 0) {
		frame[header[p] + 12] = 0x81;
		frame[header[p] + 14] = tag[p] >> 8;
		frame[header[p] + 15] = tag[p];
	}
	for (i = 0; i < n; i++) {
		if (first != 0)
			queue(d, frame, first, flags | NS_MOREFRAG);
		queue(d, frame + first, len - first, flags);
	}
	sync_tx(d);
}

static void
op_lost(unsigned int p)
{
	/* No memory is mapped at address 0. */
	queue(nth(p), (const uint8_t *)64, FRAME, NS_INDIRECT);
	sync_tx(nth(p));
}

static void
op_arp(const char *args)
{
	static const uint8_t arp[] = { 0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1 };
	static const uint8_t net[] = { 192, 0, 2 };
	uint8_t frame[FRAME] = { 0 };
	unsigned int a, p, src;

	if (sscanf(args, "%u,%u,%u", &p, &src, &a) != 3)
		errx(1, "arp: %s", args);
	station(frame, 0);
	station(frame + 6, src);
	memcpy(frame + 12, arp, sizeof(arp));
	station(frame + 22, src);
	memcpy(frame + 28, net, sizeof(net));
	frame[31] = a;
	memcpy(frame + 38, net, sizeof(net));
	queue(nth(p), frame, sizeof(frame), 0);
	sync_tx(nth(p));
}

static void
op_link(const char *args)
{
	uint8_t frame[FRAME] = { 0x01, 0x80, 0xc2 };
	unsigned int n, p;

	if (sscanf(args, "%u,%u", &p, &n) != 2)
		errx(1, "link: %s", args);
	frame[5] = n;
	station(frame + 6, 1);
	queue(nth(p), frame, sizeof(frame), 0);
	sync_tx(nth(p));
}

static void
op_tag(const char *args)
{
	unsigned int n, p;

	if (sscanf(args, "%u,%u", &p, &n) != 2 || p >= PORTS)
		errx(1, "tag: %s", args);
	tag[p] = n;
}

static void
op_header(const char *args)
{
	struct nmreq_port_hdr req = { 0 };
	struct nmreq_header hdr = { 0 };
	unsigned int n, p;

	if (sscanf(args, "%u,%u", &p, &n) != 2 || n > 64)
		errx(1, "header: %s", args);
	hdr.nr_version = NETMAP_API;
	hdr.nr_reqtype = NETMAP_REQ_PORT_HDR_SET;
	hdr.nr_body = (uintptr_t)&req;
	strcpy(hdr.nr_name, nth(p)->common->name);
	req.nr_hdr_len = n;
	if (ioctl(nth(p)->fd, NIOCCTRL, &hdr) == -1)
		err(1, "header: %s", args);
	header[p] = n;
}

/* Print the stations of a frame, and its tag if the slot has it. */
static void
show_frame(const uint8_t *frame, uint32_t len)
{
	printf(" %u>%u", station_number(frame + 6), station_number(frame));
	if (len >= 16 && frame[12] == 0x81 && frame[13] == 0)
		printf("@%u", (frame[14] & 0xf) << 8 | frame[15]);
}

/*
 * Take the frames of a port, and print them if `skip', the bytes before each
 * frame, is not negative.  A frame counts with its last slot, if it has any
 * bytes.
 */
static unsigned int
drain(struct vale_desc *d, int skip)
{
	struct netmap_ring *ring = d->rxring;
	const struct netmap_slot *slot;
	const uint8_t *buf;
	unsigned int len = 0, n = 0;

	if (vale_rxsync(d) == -1)
		err(1, "%s: rxsync", d->common->name);
	for (; ring->head != ring->tail; ring->head = ring->cur =
	    nm_ring_next(ring, ring->head)) {
		slot = &ring->slot[ring->head];
		buf = (const uint8_t *)NETMAP_BUF(ring, slot->buf_idx);
		if (skip >= 0 && len <= (unsigned int)skip &&
		    len + slot->len > (unsigned int)skip)
			show_frame(buf + skip - len, slot->len - (skip - len));
		len += slot->len;
		if ((slot->flags & NS_MOREFRAG) != 0 || len == 0)
			continue;
		if (skip >= 0)
			printf(":%u", len);
		len = 0;
		n++;
	}
	if (vale_rxsync(d) == -1)
		err(1, "%s: rxsync", d->common->name);
	return (n);
}

static void
op_recv(void)
{
	unsigned int i;

	printf("recv");
	for (i = 0; i < nports; i++) {
		if (port[i] != NULL)
			printf(" %u", drain(port[i], -1));
	}
	printf("\n");
}

static void
op_show(unsigned int p)
{
	printf("show");
	drain(nth(p), header[p]);
	printf("\n");
}

static void
op_close(unsigned int p)
{
	vale_close(nth(p));
	port[p] = NULL;
}

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec);
}

/* The frames are written once; then only the indexes change. */
static void
op_rate(const char *args)
{
	struct vale_desc *from = nth(0), *to = nth(1);
	struct netmap_ring *ring = from->txring;
	uint8_t frame[FRAME] = { 0 };
	uint64_t begun, end, frames = 0, got = 0, t, tx = 0;
	unsigned int ms, n = 1;
	uint32_t i;

	if (sscanf(args, "%u,%u", &ms, &n) < 1 || n == 0)
		errx(1, "rate: %s", args);
	for (i = 0; i < n; i++) {
		station(frame, 1);
		station(frame + 6, 2 + i);
		queue(to, frame, FRAME, 0);
	}
	sync_tx(to);
	station(frame + 6, 1);
	for (i = 0; i < ring->num_slots; i++) {
		station(frame, 2 + i % n);
		ring->slot[i].len = FRAME;
		ring->slot[i].flags = 0;
		memcpy(NETMAP_BUF(ring, ring->slot[i].buf_idx), frame, FRAME);
	}
	drain(to, -1);
	begun = now_ns();
	for (end = begun + ms * UINT64_C(1000000); (t = now_ns()) < end; ) {
		for (i = 0; i < BATCH; i++)
			ring->head = nm_ring_next(ring, ring->head);
		ring->cur = ring->head;
		sync_tx(from);
		tx += now_ns() - t;
		frames += BATCH;
		got += drain(to, -1);
	}
	if (got != frames)
		errx(1, "rate: sent %ju, received %ju", (uintmax_t)frames,
		    (uintmax_t)got);
	printf("rate %ju tx %.2f all %.2f\n", (uintmax_t)frames,
	    (double)tx / frames, (double)(t - begun) / frames);
}

struct storm {
	pthread_t	st_thread;
	struct vale_desc *st_port;
	unsigned int	st_number;
	uint64_t	st_end_ns;
	uint64_t	st_frames;
};

static void *
storm(void *arg)
{
	struct storm *st = arg;
	uint8_t frame[FRAME] = { 0 };
	uint32_t i, random = st->st_number + 1;

	while (now_ns() < st->st_end_ns) {
		for (i = 0; i < BATCH; i++) {
			random = random * 1103515245 + 12345;
			station(frame, (random >> 16) % (8 * PORTS));
			station(frame + 6,
			    st->st_number * 8 + 1 + (random >> 24) % 8);
			queue(st->st_port, frame, FRAME, 0);
		}
		sync_tx(st->st_port);
		drain(st->st_port, -1);
		st->st_frames += BATCH;
		usleep(1000);
	}
	return (NULL);
}

static void
op_storm(unsigned int ms)
{
	struct storm st[PORTS];
	uint64_t frames = 0;
	unsigned int i;

	for (i = 0; i < nports; i++) {
		st[i] = (struct storm){ .st_port = nth(i), .st_number = i,
		    .st_end_ns = now_ns() + ms * UINT64_C(1000000) };
		if (pthread_create(&st[i].st_thread, NULL, storm, &st[i]) != 0)
			errx(1, "pthread_create");
	}
	for (i = 0; i < nports; i++) {
		pthread_join(st[i].st_thread, NULL);
		frames += st[i].st_frames;
	}
	printf("storm %ju\n", (uintmax_t)frames);
}

static void
operation(char *op)
{
	char *args = strchr(op, ',');
	unsigned int n;

	if (args == NULL)
		args = op + strlen(op);
	else
		*args++ = '\0';
	n = strtoul(args, NULL, 10);
	if (strcmp(op, "send") == 0 || strcmp(op, "fsend") == 0)
		op_send(args, 0);
	else if (strcmp(op, "isend") == 0)
		op_send(args, NS_INDIRECT);
	else if (strcmp(op, "lost") == 0)
		op_lost(n);
	else if (strcmp(op, "arp") == 0)
		op_arp(args);
	else if (strcmp(op, "link") == 0)
		op_link(args);
	else if (strcmp(op, "tag") == 0)
		op_tag(args);
	else if (strcmp(op, "recv") == 0)
		op_recv();
	else if (strcmp(op, "show") == 0)
		op_show(n);
	else if (strcmp(op, "open") == 0)
		open_port(args);
	else if (strcmp(op, "close") == 0)
		op_close(n);
	else if (strcmp(op, "header") == 0)
		op_header(args);
	else if (strcmp(op, "rate") == 0)
		op_rate(args);
	else if (strcmp(op, "storm") == 0)
		op_storm(n);
	else if (strcmp(op, "run") != 0)
		errx(1, "%s?", op);
	else if (fflush(stdout) == 0 && system(args) != 0)
		errx(1, "run: %s", args);
	fflush(stdout);
}

int
main(int argc, char *argv[])
{
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		open_port(argv[i]);
	for (i++; i < argc; i++)
		operation(argv[i]);
	return (0);
}
