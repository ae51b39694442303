/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The cost of the switch, a frame.  Each sender is a thread with a port, and
 * also serves the ports of its destinations: it sends a batch with one sync,
 * and syncs each destination that received frames, which returns the slots of
 * the batch before; so no receiver sleeps.  With -f every frame goes to all
 * destinations of its sender.  The bare loop reads the sender's slots, copies
 * the frames to the same buffers and fills in the destinations' slots.
 *
 * With -r a receiver takes so many frames with a sync: fewer than a batch with
 * several, more when several batches are there.  -k sets the batch of the
 * switch.
 *
 * With -i the switch has unused ports; the same on a switch without them takes
 * the place of the bare loop.
 */

#include <sys/types.h>

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "libvale.h"

#define	PORTS		254
#define	BUF		2048	/* bytes of a slot's buffer */
#define	SLOTS		1024	/* of a ring, at least */

struct sender {
	struct vale_desc *tx;
	struct vale_desc *rx[PORTS];
	uint32_t	 bare[PORTS];	/* next slot of the bare loop */
};

struct net {
	struct bench_what what;
	bool		 flood;
	bool		 guard;		/* each port has a VLAN, and a guard */
	uint32_t	 take;		/* frames a sync of a receiver; 0: all */
	uint32_t	 batch;		/* of the switch; 0: the default */
	uint32_t	 slots;		/* of a frame */
	uint32_t	 ring;		/* frames in the senders' rings */
	struct sender	*sender;
	struct vale_desc *idle[PORTS];
	unsigned int	 first;		/* number of the switch; -f: of the
					   first sender's */
	struct net	*alone;		/* the same without idle ports */
};

static struct vale_desc *
port_open(const char *kind, unsigned int vale, unsigned int n, uint32_t slots)
{
	struct vale_params params = { .tx_slots = slots, .rx_slots = slots };
	struct vale_desc *d;
	char name[64];

	snprintf(name, sizeof(name), "vale%u:%s%u", vale, kind, n);
	d = vale_open(name, &params);
	if (d == NULL)
		err(1, "%s", name);
	return (d);
}

#define	EVERYBODY	PORTS

static void
put_addrs(uint8_t *frame, unsigned int dst, unsigned int src)
{
	memcpy(frame, (uint8_t[]){ 2, 0, 0, 0, 0, dst, 2, 0, 0, 0, 0, src },
	    12);
	if (dst == EVERYBODY)
		memset(frame, 0xff, 6);
}

/* Have the switch learn the port of a destination. */
static void
announce(struct vale_desc *d, unsigned int n)
{
	struct netmap_ring *ring = d->txring;
	struct netmap_slot *slot = &ring->slot[ring->head];

	put_addrs((uint8_t *)NETMAP_BUF(ring, slot->buf_idx), EVERYBODY, n);
	slot->len = 60;
	ring->head = ring->cur = nm_ring_next(ring, ring->head);
	if (vale_txsync(d) == -1)
		err(1, "%s", d->common->name);
}

/*
 * Fault in the buffers of a port's receive ring: a short run does not use all
 * of its slots before, and would measure page faults.
 */
static void
touch(struct vale_desc *d)
{
	struct netmap_ring *ring = d->rxring;
	uint32_t i;

	for (i = 0; i < ring->num_slots; i++)
		memset(NETMAP_BUF(ring, ring->slot[i].buf_idx), 0, BUF);
}

/* Take all frames, and return the slots of those taken before. */
static void
take(struct vale_desc *d)
{
	d->rxring->head = d->rxring->cur = d->rxring->tail;
	if (vale_rxsync(d) == -1)
		err(1, "%s", d->common->name);
}

/* Take all frames, `n' slots or less with a sync. */
static void
take_some(struct vale_desc *d, uint32_t n)
{
	struct netmap_ring *ring = d->rxring;
	uint32_t there;

	do {
		there = nm_ring_space(ring);
		ring->head = ring->cur = (ring->head +
		    (there < n ? there : n)) % ring->num_slots;
		if (vale_rxsync(d) == -1)
			err(1, "%s", d->common->name);
	} while (nm_ring_space(ring) > 0);
}

/* The destination of the frame that begins in slot `i' of a sender's ring. */
static uint32_t
destination(const struct net *net, uint32_t i)
{
	return (i / net->slots % net->what.destinations);
}

/* Fill a sender's ring with frames, once. */
static void
fill(const struct net *net, unsigned int sender)
{
	struct netmap_ring *ring = net->sender[sender].tx->txring;
	struct netmap_slot *slot;
	uint32_t dst, i, left = 0;

	for (i = 0; i < ring->num_slots; i++) {
		slot = &ring->slot[i];
		if (left == 0) {
			left = net->what.bytes;
			dst = sender * net->what.destinations +
			    destination(net, i);
			put_addrs((uint8_t *)NETMAP_BUF(ring, slot->buf_idx),
			    net->flood ? EVERYBODY : dst, PORTS - 1 - sender);
		}
		slot->len = left < BUF ? left : BUF;
		left -= slot->len;
		slot->flags = left > 0 ? NS_MOREFRAG : 0;
	}
}

/* Frames of station `n' may come from here, and no others. */
static void
guard(const struct net *net, const struct vale_desc *d, unsigned int n)
{
	const uint8_t source[6] = { 2, 0, 0, 0, 0, n };

	if (net->guard)
		bench_guard(d->common->name, source);
}

static void
set_batch(const struct net *net, unsigned int vale)
{
	char batch[16], name[32];

	if (net->batch == 0)
		return;
	snprintf(name, sizeof(name), "vale%u", vale);
	snprintf(batch, sizeof(batch), "%u", net->batch);
	if (vale_set(name, "batch", batch) == -1)
		err(1, "%s", name);
}

static void
net_open(struct net *net)
{
	const struct bench_what *what = &net->what;
	struct sender *s;
	uint32_t d, i, slots, vale;

	net->slots = (what->bytes + BUF - 1) / BUF;
	/* Two batches fit, and no frame wraps around the ring's end. */
	slots = 2 * (net->take > what->batch ? net->take : what->batch) *
	    net->slots + 1;
	if (slots < SLOTS)
		slots = SLOTS;
	slots += (net->slots - slots % net->slots) % net->slots;
	net->sender = calloc(what->senders, sizeof(*net->sender));
	if (net->sender == NULL)
		err(1, NULL);
	for (i = 0; i < what->senders; i++) {
		s = &net->sender[i];
		vale = net->first + (net->flood ? i : 0);
		s->tx = port_open("tx", vale, i, slots);
		guard(net, s->tx, PORTS - 1 - i);
		for (d = 0; d < what->destinations; d++) {
			s->rx[d] = port_open("rx", vale,
			    i * what->destinations + d, slots);
			guard(net, s->rx[d], i * what->destinations + d);
		}
		set_batch(net, vale);
	}
	for (i = 0; i < what->idle; i++)
		net->idle[i] = port_open("idle", net->first, i, 0);
	for (i = 0; i < what->senders; i++) {
		s = &net->sender[i];
		for (d = 0; d < what->destinations; d++)
			announce(s->rx[d], i * what->destinations + d);
		fill(net, i);
	}
	for (i = 0; i < what->senders; i++) {
		for (d = 0; d < what->destinations; d++) {
			take(net->sender[i].rx[d]);
			take(net->sender[i].rx[d]);
			touch(net->sender[i].rx[d]);
		}
	}
}

/* Send the next `n' slots of a sender's ring. */
static void
post(struct sender *s, uint32_t n)
{
	struct netmap_ring *ring = s->tx->txring;

	ring->head = ring->cur = (ring->head + n) % ring->num_slots;
	if (vale_txsync(s->tx) == -1)
		err(1, "%s", s->tx->common->name);
}

static void
run(void *arg, unsigned int thread, uint64_t frames)
{
	const struct net *net = arg;
	const struct bench_what *what = &net->what;
	struct sender *s = &net->sender[thread];
	uint32_t d, i, n, receivers;

	receivers = what->destinations;
	if (!net->flood && what->batch < receivers)
		receivers = what->batch;
	n = what->batch * net->slots;
	for (; frames > 0; frames -= frames < what->batch ? frames :
	    what->batch) {
		d = destination(net, s->tx->txring->head);
		post(s, n);
		for (i = 0; i < receivers; i++) {
			take(s->rx[d]);
			if (++d == what->destinations)
				d = 0;
		}
	}
}

/* With -r: the only receiver takes so many frames with a sync. */
static void
run_taking(void *arg, unsigned int thread, uint64_t frames)
{
	const struct net *net = arg;
	const struct bench_what *what = &net->what;
	struct sender *s = &net->sender[thread];
	uint64_t sent;
	uint32_t waiting = 0;

	for (sent = 0; sent < frames; sent += what->batch) {
		post(s, what->batch * net->slots);
		waiting += what->batch;
		if (waiting < net->take)
			continue;
		take_some(s->rx[0], net->take * net->slots);
		waiting = 0;
	}
}

static void
run_alone(void *arg, unsigned int thread, uint64_t frames)
{
	const struct net *net = arg;

	run(net->alone, thread, frames);
}

/* Copy the frame in slot `from' of a sender into the next slots of `to'. */
static void
bare_copy(const struct netmap_ring *ring, uint32_t from,
    struct netmap_ring *to, uint32_t *next, uint32_t slots)
{
	const struct netmap_slot *src;
	struct netmap_slot *dst;

	for (; slots > 0; slots--) {
		src = &ring->slot[from++];
		dst = &to->slot[*next];
		memcpy(NETMAP_BUF(to, dst->buf_idx),
		    NETMAP_BUF(ring, src->buf_idx), src->len);
		dst->len = src->len;
		dst->flags = src->flags;
		if (++*next == to->num_slots)
			*next = 0;
	}
}

static void
bare(void *arg, unsigned int thread, uint64_t frames)
{
	const struct net *net = arg;
	struct sender *s = &net->sender[thread];
	const struct netmap_ring *ring = s->tx->txring;
	uint32_t d, i = 0, n;

	for (; frames > 0; frames--) {
		d = net->flood ? 0 : destination(net, i);
		n = net->flood ? net->what.destinations : 1;
		for (; n > 0; n--, d++)
			bare_copy(ring, i, s->rx[d]->rxring, &s->bare[d],
			    net->slots);
		i += net->slots;
		if (i == ring->num_slots)
			i = 0;
	}
}

/* Add a port's counters to the sums, an array of VALE_NCOUNTERS. */
static int
add_port(const struct vale_port_info *info, void *arg)
{
	uint64_t *sum = arg;
	unsigned int i;

	for (i = 0; i < VALE_NCOUNTERS; i++)
		sum[i] += info->vpi_counter[i];
	return (0);
}

/* Exit if frames were lost, or the switch's batches are others than -k says. */
static void
check(unsigned int batch)
{
	uint64_t sum[VALE_NCOUNTERS] = { 0 };
	const uint64_t *lost = &sum[VALE_C_RX_DROP_FULL];
	const uint64_t *frames = &sum[VALE_C_TX_FRAME];
	const uint64_t *batches = &sum[VALE_C_TX_BATCH];

	(void)vale_list(NULL, add_port, sum);
	if (*lost != 0)
		errx(1, "%ju frames were lost", (uintmax_t)*lost);
	/* The last batch of a send may not be full. */
	if (batch != 0 && (*frames > *batches * batch ||
	    *frames * 2 < *batches * batch))
		errx(1, "%ju batches of %ju frames, not of %u",
		    (uintmax_t)*batches, (uintmax_t)*frames, batch);
}

static void
usage(void)
{
	fprintf(stderr, "usage: switch [-fg] [-b batch] [-d destinations] "
	    "[-i idle] [-k batch]\n              [-n frames] [-r frames] "
	    "[-s bytes] [-t senders]\n");
	exit(1);
}

int
main(int argc, char **argv)
{
	struct net net = { .what = { "switch", 60, 256, 1, 1, 0 } };
	struct bench_what *what = &net.what;
	struct net alone;
	uint32_t frames = 0;
	int ch;

	while ((ch = getopt(argc, argv, "b:d:fgi:k:n:r:s:t:")) != -1) {
		switch (ch) {
		case 'b':
			what->batch = bench_number(optarg, 1, 1024);
			break;
		case 'd':
			what->destinations = bench_number(optarg, 1, PORTS);
			break;
		case 'f':
			net.flood = true;
			what->subject = "flood";
			break;
		case 'g':
			net.guard = true;
			break;
		case 'i':
			what->idle = bench_number(optarg, 0, PORTS);
			break;
		case 'k':
			net.batch = bench_number(optarg, 1, VALE_BATCH_MAX);
			break;
		case 'n':
			frames = bench_number(optarg, 1, UINT32_MAX);
			break;
		case 'r':
			net.take = bench_number(optarg, 1, 1024);
			break;
		case 's':
			what->bytes = bench_number(optarg, 60, 16128);
			break;
		case 't':
			what->senders = bench_number(optarg, 1, PORTS / 2);
			break;
		default:
			usage();
		}
	}
	if (optind != argc || (net.take != 0 &&
	    (what->destinations > 1 || what->idle > 0)) ||
	    what->senders * (what->destinations + 1) + what->idle > PORTS)
		usage();
	if (what->idle > 0) {
		what->subject = "idle";
		alone = net;
		alone.what.idle = 0;
		alone.first = PORTS;
		net.alone = &alone;
		net_open(&alone);
	}
	net_open(&net);
	bench_measure(what, net.take != 0 ? run_taking : run,
	    what->idle > 0 ? run_alone : bare, &net, frames);
	check(net.batch);
	return (0);
}
