/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The netmap API of libvale and hostile users: rings with any indexes, buffers,
 * lengths and flags, ports that are opened and closed, switches of several
 * ports.  Users cannot give addresses (NS_INDIRECT) of other processes, as all
 * are in this one.  Invariants:
 *
 *  - Indirect frames are read from their place only (ASan); all other data is
 *    in the ports' memory, after which nothing is mapped.
 *  - vale_txsync() consumes and releases all slots.  vale_rxsync() returns
 *    slots with lengths up to a buffer's, in complete frames, and fails if and
 *    only if head or cur is outside the user's slots.
 *  - A sink gets complete frames, in memory that their sender may read (ASan),
 *    and only while its port's ring is empty.
 *  - The counters add up as libvale.h says.
 *  - In the end two new ports of the same switch exchange frames.
 *  - An input has the same effect without the fast paths: it runs twice, with
 *    vale_txsync() and with vale_general_txsync(), and results, rings, frames
 *    and counters are equal.  For that, time depends on the input alone.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <libvale.h>
#include <vale_pair.h>

#include <dev/netmap/vale_rate.h>

#include "frame.h"
#include "frame_cut.h"
#include "frame_vnet.h"
#include "setting.h"
#include "switch.h"
#include "vale_general.h"

#define	INDIRECT	65535		/* bytes one can point to */
#define	HEADER		12		/* bytes of a virtio-net header */

static const char *const names[NAMES] = {
	"vale0:a", "vale0:b", "vale0:c", "vale0:d", "vale1:a", "vale1:b",
	"vale:x", "vale2"		/* the last is none */
};

static struct port {
	struct vale_desc *d;
	unsigned int	 rings;
	struct vale_desc *r;		/* the operation's ring pair */
	bool		 touched;	/* slots of its receive ring, too */
	unsigned int	 header;	/* vale_set_header() */
	uint8_t		*bytes;		/* for indirect slots */
	uint32_t	 sink;		/* frames it takes a time */
	uint64_t	 sunk;		/* and has taken */
} ports[PORTS];

#define	MONITORS	2

static struct vale_desc *monitors[MONITORS];

static int (*txsync)(struct vale_desc *);
static uint64_t effect;			/* digest of what users have seen */
static struct timespec now;

/*
 * The effect of an input.
 */

int	fuzz_clock_gettime(clockid_t clock, struct timespec *ts);

int
fuzz_clock_gettime(clockid_t clock __unused, struct timespec *ts)
{
	*ts = now;
	return (0);
}

/*
 * The key of a switch's addresses: always the same.  With another key other
 * addresses are removed from a full table, and runs would differ.
 */
int
getentropy(void *buf, size_t len)
{
	memset(buf, 0x5a, len);
	return (0);
}

/* FNV-1a. */
static void
digest(const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len-- > 0)
		effect = (effect ^ *p++) * 0x100000001b3;
}

static void
digest_number(uint64_t n)
{
	digest(&n, sizeof(n));
}

static int
digest_port(const struct vale_port_info *pi, void *arg __unused)
{
	digest(pi->vpi_counter, sizeof(pi->vpi_counter));
	return (0);
}

static void
digest_ring(const struct netmap_ring *ring)
{
	uint32_t i;

	digest_number(ring->head);
	digest_number(ring->cur);
	digest_number(ring->tail);
	for (i = 0; i < MIN(ring->num_slots, 64); i++) {
		digest_number(ring->slot[i].buf_idx);
		digest_number(ring->slot[i].len);
		digest_number(ring->slot[i].flags);
	}
}

/* The bytes of the frames that a receive ring shows. */
static void
digest_shown(const struct vale_desc *d)
{
	struct netmap_ring *ring = d->rxring;
	const struct netmap_slot *slot;
	uint32_t i;

	for (i = ring->head; i != ring->tail; i = nm_ring_next(ring, i)) {
		slot = &ring->slot[i];
		digest(NETMAP_BUF(ring, slot->buf_idx), slot->len);
	}
}

/*
 * Invariants.
 */

struct totals {
	uint64_t	copies, arrived;
	bool		fail;
};

static int
check_port(const struct vale_port_info *pi, void *arg)
{
	const uint64_t *c = pi->vpi_counter;
	struct totals *t = arg;
	uint64_t dropped, unicast;

	dropped = c[VALE_C_TX_DROP_RUNT] + c[VALE_C_TX_DROP_OVERSIZE] +
	    c[VALE_C_TX_DROP_BUF] + c[VALE_C_TX_DROP_LEN] +
	    c[VALE_C_TX_DROP_FRAGS] + c[VALE_C_TX_DROP_CUT] +
	    c[VALE_C_TX_DROP_HEADER] + c[VALE_C_TX_DROP_RATE] +
	    c[VALE_C_TX_DROP_NODEST] + c[VALE_C_TX_DROP_SELF] +
	    c[VALE_C_TX_DROP_PRIVATE] + c[VALE_C_TX_DROP_VLAN] +
	    c[VALE_C_TX_DROP_SOURCE] + c[VALE_C_TX_DROP_IP] +
	    c[VALE_C_TX_DROP_RESERVED];
	/*
	 * If no port was opened or closed, copies to one port are frames of one
	 * port.
	 */
	INVARIANT(c[VALE_C_TX_FRAME] >= dropped + c[VALE_C_TX_FLOOD]);
	unicast = c[VALE_C_TX_FRAME] - dropped - c[VALE_C_TX_FLOOD];
	INVARIANT(c[VALE_C_TX_COPY] >= unicast + c[VALE_C_TX_FLOOD]);
	INVARIANT(c[VALE_C_TX_COPY] <= unicast + c[VALE_C_TX_FLOOD] * PORTS);
	t->copies += c[VALE_C_TX_COPY] + c[VALE_C_TX_MIRROR];
	t->arrived += c[VALE_C_RX_FRAME] + c[VALE_C_RX_DROP_FULL];
	INVARIANT(c[VALE_C_RX_FRAME] == c[VALE_C_RX_COPY] +
	    c[VALE_C_RX_DIRECT]);
	return (0);
}

/* What the switch had for a monitor.  Only the library's own names tell. */
static uint64_t
monitor_arrived(struct vale_desc *d)
{
	const uint64_t *c = vale_desc_pair(d)->pa_counter;

	return (c[VALE_C_RX_FRAME] + c[VALE_C_RX_DROP_FULL]);
}

/* Take all frames. */
static void
monitor_take(struct vale_desc *d)
{
	struct netmap_ring *ring = d->rxring;

	INVARIANT(vale_rxsync(d) == 0);
	ring->head = ring->cur = ring->tail;
}

static void
monitor_close(unsigned int i)
{
	if (monitors[i] == NULL)
		return;
	vale_close(monitors[i]);
	monitors[i] = NULL;
}

static struct totals
totals(void)
{
	struct totals t = { 0 };
	unsigned int i;

	vale_list(NULL, check_port, &t);
	for (i = 0; i < MONITORS; i++)
		if (monitors[i] != NULL) {
			monitor_take(monitors[i]);
			t.arrived += monitor_arrived(monitors[i]);
		}
	return (t);
}

/*
 * Frames are complete: a chain of slots, each with their number.  The user may
 * have taken some of the first one.
 */
static void
check_shown(const struct port *p)
{
	struct netmap_ring *ring = p->r->rxring;
	const struct netmap_slot *slot;
	uint32_t i, left;
	bool more, whole;

	INVARIANT(ring->tail < ring->num_slots);
	if (p->touched)
		return;
	left = 0;
	more = whole = false;
	for (i = ring->head; i != ring->tail; i = nm_ring_next(ring, i)) {
		slot = &ring->slot[i];
		if (!more)
			left = NS_RFRAGS(slot);
		INVARIANT(slot->len > 0 && slot->len <= ring->nr_buf_size);
		INVARIANT(left > 0);
		left--;
		more = (slot->flags & NS_MOREFRAG) != 0;
		INVARIANT(!whole || more == (left > 0));
		whole |= !more;
	}
	INVARIANT(!more);
}

/*
 * Operations.
 */

static void
op_open(struct port *p, const struct op *op)
{
	struct vale_params params = { .tx_slots = op->c, .rx_slots = op->d,
	    .rings = op->a / PORTS % RINGS + 1 };
	const char *name = names[op->b % NAMES];
	bool ok;
	int i;

	if (p->d != NULL)
		return;
	p->d = vale_open(name, &params);
	ok = (params.tx_slots == 0 || (params.tx_slots >= VALE_SLOTS_MIN &&
	    params.tx_slots <= VALE_SLOTS_MAX / params.rings)) &&
	    (params.rx_slots == 0 || (params.rx_slots >= VALE_SLOTS_MIN &&
	    params.rx_slots <= VALE_SLOTS_MAX / params.rings)) &&
	    op->b % NAMES != NAMES - 1;
	if (!ok) {
		INVARIANT(p->d == NULL && errno == EINVAL);
		return;
	}
	for (i = 0; i < PORTS; i++)
		if (&ports[i] != p && ports[i].d != NULL &&
		    strcmp(ports[i].d->common->name, name) == 0) {
			INVARIANT(p->d == NULL && errno == EBUSY);
			return;
		}
	INVARIANT(p->d != NULL);
	p->rings = params.rings;
	p->touched = false;
	p->sink = p->sunk = 0;
	p->header = 0;
}

static bool
readable(const struct vale_desc *d)
{
	struct pollfd pfd = { d->fd, POLLIN, 0 };

	return (poll(&pfd, 1, 0) == 1);
}

/* What a frame asks for can be done. */
static void
check_offload(const struct port *p, const struct frame *f)
{
	struct frame_cut cut;

	if (f->f_flags == 0) {
		INVARIANT(f->f_gso_type == FRAME_GSO_NONE);
		return;
	}
	INVARIANT(p->header == VALE_HEADER_FRAME);
	INVARIANT(frame_cut_begin(&cut, f));
	INVARIANT(cut.fc_hdrlen == f->f_hdr_len);
	digest_number(f->f_gso_type);
	digest_number(f->f_gso_size);
	digest_number(f->f_csum_start);
	digest_number(f->f_csum_offset);
}

static void
take(void *arg, struct frame_source *frames)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame f = { .f_iov = iov };
	struct port *p = arg;
	static uint8_t frame[VALE_FRAME_MAX];
	size_t len;
	uint32_t left;
	int j;

	INVARIANT(!readable(p->d) || p->touched);
	for (left = p->sink; left > 0; left--) {
		/* Frames of more fragments are left to the ring. */
		if (!frame_peek(frames, &f) || f.f_niov > FRAME_MAXIOV / 2)
			break;
		for (j = 0, len = 0; j < f.f_niov; j++) {
			INVARIANT(iov[j].iov_len <= sizeof(frame) - len);
			memcpy(frame + len, iov[j].iov_base, iov[j].iov_len);
			len += iov[j].iov_len;
		}
		INVARIANT(len >= VALE_FRAME_MIN && len == f.f_len);
		check_offload(p, &f);
		digest(frame, len);
		frame_next(frames);
		p->sunk++;
	}
}

static void
op_sink(struct port *p, const struct op *op)
{
	uint64_t counters[VALE_NCOUNTERS];

	if (p->rings > 1) {
		INVARIANT(vale_set_sink(p->d, take, p) == -1);
		return;
	}
	p->sink = op->b;
	INVARIANT(vale_set_sink(p->d, p->sink == 0 ? NULL : take, p) == 0);
	INVARIANT(vale_port_counters(p->d->common->name, counters) == 0);
	INVARIANT(counters[VALE_C_RX_DIRECT] == p->sunk);
}

static void
op_slot(struct port *p, struct netmap_ring *ring, const struct op *op)
{
	struct netmap_slot *slot = &ring->slot[op->c % ring->num_slots];

	slot->buf_idx = op->d;
	slot->len = op->d >> 32;
	slot->flags = op->d >> 48;
	/* Memory of exactly as many bytes as the slot says. */
	slot->ptr = (uintptr_t)p->bytes + INDIRECT -
	    MIN(slot->len, INDIRECT);
}

/* Send a correct frame, with the slots that are left. */
static void
op_send(struct port *p, const struct op *op)
{
	struct netmap_ring *ring = p->r->txring;
	struct netmap_slot *slot;
	uint32_t head = ring->head, i, len, left, n;
	uint8_t addrs[12] = { 2 }, *buf;
	bool own;

	if (head >= ring->num_slots)
		return;
	addrs[6] = 2;
	addrs[5] = op->d >> 4 & 15;
	addrs[11] = op->d & 15;
	if (addrs[5] == 0)
		memset(addrs, 0xff, 6);
	left = op->b;
	n = 0;
	do {
		slot = &ring->slot[head];
		own = slot->buf_idx >= 2 && slot->buf_idx < 4;
		len = MIN(op->c, own ? ring->nr_buf_size : INDIRECT);
		len = MIN(MAX(len, 1), left);
		slot->len = len;
		slot->flags = left > len ? NS_MOREFRAG : 0;
		if (own) {
			buf = (uint8_t *)NETMAP_BUF(ring, slot->buf_idx);
			for (i = 0; i < len && n + i < sizeof(addrs); i++)
				buf[i] = addrs[n + i];
		} else {
			slot->flags |= NS_INDIRECT;
			memcpy(p->bytes, addrs, sizeof(addrs));
			slot->ptr = (uintptr_t)p->bytes;
		}
		n += len;
		left -= len;
		head = nm_ring_next(ring, head);
	} while (left > 0 && head != ring->head);
	ring->head = ring->cur = head;
}

static void
op_header(struct port *p, const struct op *op)
{
	static const unsigned int kinds[] = { 0, 10, HEADER,
	    VALE_HEADER_FRAME };

	p->header = kinds[op->b & 3];
	INVARIANT(vale_set_header(p->d, p->header) == 0);
}

/*
 * A packet of TCP or UDP and its virtio-net header, in p->bytes.  Returns the
 * length of both.
 */
static uint32_t
make_packet(struct port *p, const struct op *op)
{
	const bool v6 = (op->d >> 8 & 1) != 0, udp = (op->d >> 9 & 1) != 0;
	const uint32_t l4 = v6 ? 54 : 34, hdrlen = l4 + (udp ? 8 : 20);
	uint8_t *hdr = p->bytes, *f = p->bytes + HEADER;
	uint32_t at, len;

	len = MIN(HEADER + hdrlen + op->b, INDIRECT);
	memset(p->bytes, 0, HEADER + hdrlen);
	hdr[0] = FRAME_CSUM_PARTIAL;
	hdr[1] = op->c == 0 ? FRAME_GSO_NONE : udp ? FRAME_GSO_UDP_L4 : v6 ?
	    FRAME_GSO_TCPV6 : FRAME_GSO_TCPV4;
	le16enc(hdr + 2, hdrlen);
	le16enc(hdr + 4, op->c);
	le16enc(hdr + 6, l4);
	le16enc(hdr + 8, udp ? 6 : 16);
	f[0] = f[6] = 2;
	f[5] = op->d >> 4 & 15;
	f[11] = op->d & 15;
	if (f[5] == 0)
		memset(f, 0xff, 6);
	be16enc(f + 12, v6 ? 0x86dd : 0x0800);
	f[14] = v6 ? 0x60 : 0x45;
	f[v6 ? 20 : 23] = udp ? 17 : 6;
	if (!udp)
		f[l4 + 12] = 0x50;
	at = (op->d >> 16 & 127) % len;
	p->bytes[at] ^= op->d >> 24;
	return (len);
}

/* Send it, with a header of the port's kind, in slots of c bytes. */
static void
op_offload(struct port *p, const struct op *op)
{
	struct netmap_ring *ring = p->r->txring;
	struct netmap_slot *slot;
	uint32_t head = ring->head, left, n, off;
	uint16_t flags;

	if (head >= ring->num_slots)
		return;
	left = make_packet(p, op);
	/* Where the header begins. */
	off = p->header > VALE_HEADER_FRAME ? HEADER - p->header : HEADER;
	left -= off;
	(void)frame_vnet_decode(&p->r->txframe[head], p->bytes);
	flags = p->header == VALE_HEADER_FRAME ? VALE_SLOT_FRAME : 0;
	do {
		slot = &ring->slot[head];
		n = MIN(left, HEADER + op->c % 5000);
		slot->len = n;
		slot->ptr = (uintptr_t)p->bytes + off;
		slot->flags = NS_INDIRECT | flags |
		    (left > n ? NS_MOREFRAG : 0);
		flags = 0;
		off += n;
		left -= n;
		head = nm_ring_next(ring, head);
	} while (left > 0 && head != ring->head);
	ring->head = ring->cur = head;
}

static void
op_txsync(struct port *p)
{
	struct netmap_ring *ring = p->r->txring;
	struct totals before, after;
	uint32_t head = ring->head;
	int error;

	before = totals();
	error = txsync(p->r);
	digest_number(error);
	digest_ring(ring);
	vale_list(NULL, digest_port, NULL);
	after = totals();
	INVARIANT((error == 0) == (head < ring->num_slots));
	INVARIANT(error == 0 || errno == EINVAL);
	INVARIANT(ring->head < ring->num_slots);
	INVARIANT(nm_ring_space(ring) == ring->num_slots - 1);
	INVARIANT(after.copies - before.copies ==
	    after.arrived - before.arrived);
}

static void
op_rxsync(struct port *p, const struct op *op)
{
	struct netmap_ring *ring = p->r->rxring;
	unsigned int n;
	int error;

	error = vale_rxsync(p->r);
	INVARIANT(error == 0 || errno == EINVAL);
	INVARIANT(ring->head < ring->num_slots);
	check_shown(p);
	digest_number(error);
	digest_ring(ring);
	/* A user that changed slots may find anything there. */
	if (!p->touched)
		digest_shown(p->r);
	/* A port that is going to sleep is woken by the next frame only. */
	if (error == 0 && ring->cur == ring->tail)
		INVARIANT(!readable(p->r));
	for (n = 0; n < op->b && !nm_ring_empty(ring); n++)
		ring->head = ring->cur = nm_ring_next(ring, ring->head);
}

static int
look_port(const struct vale_port_info *pi, void *arg)
{
	unsigned int *n = arg;

	INVARIANT(pi->vpi_index < 254);
	++*n;
	return (0);
}

static int
look_address(const struct vale_fdb_entry *e __unused, void *arg __unused)
{
	return (0);
}

static void
op_look(const struct op *op)
{
	const struct vale_desc *d = ports[op->a % PORTS].d;
	struct vale_rate_conf conf;
	unsigned int i, n, open;

	n = open = 0;
	for (i = 0; i < PORTS; i++)
		open += ports[i].d != NULL;
	INVARIANT(vale_list(NULL, look_port, &n) == 0);
	INVARIANT(n == open);
	(void)vale_fdb_list("vale0", look_address, NULL);
	(void)setting_to("vale0", "ageing", "%u", op->c);
	if (d == NULL)
		return;
	/* None, or one that few frames exceed, or most. */
	conf.rc_rate = op->d;
	conf.rc_burst = op->c;
	conf.rc_frames = op->c % 2 == 0;
	INVARIANT((setting_rate(d->common->name, &conf) == 0) ==
	    (conf.rc_rate <= VALE_RATE_MAX &&
	    conf.rc_burst <= VALE_RATE_BURST_MAX));
}

/* VLANs and guards. */
static void
op_rule(const char *name, const struct op *op)
{
	char list[64];

	switch (op->b & 3) {
	case 0:
		snprintf(list, sizeof(list), "%u", op->c % 16);
		INVARIANT(vale_set(name, "vlan", list) == 0);
		break;
	case 1:
		snprintf(list, sizeof(list), "%u,%u-%u", op->c % 16,
		    (unsigned int)(op->d % 16), (unsigned int)(op->d % 32));
		INVARIANT((vale_set(name, "trunk", list) == 0) ==
		    (op->c % 16 != 0 && op->d % 16 != 0));
		snprintf(list, sizeof(list), "%u", (unsigned int)(op->d % 3));
		(void)vale_set(name, "native", list);
		break;
	case 2:
		snprintf(list, sizeof(list), "02:00:00:00:00:%02x", op->c % 4);
		INVARIANT(vale_set(name, "source", op->d % 2 != 0 ? list :
		    "any") == 0);
		break;
	case 3:
		snprintf(list, sizeof(list), "%u.0.0.0/8,::/%u", op->c % 256,
		    (unsigned int)(op->d % 160));
		INVARIANT((vale_set(name, "ip", list) == 0) ==
		    (op->d % 160 <= 128));
		snprintf(list, sizeof(list), "%.*s", (int)strcspn(name, ":"),
		    name);
		INVARIANT(vale_set(list, "reserved", op->c % 2 != 0 ? "on" :
		    "off") == 0);
		break;
	}
}

static void
op_set(const struct port *p, const struct op *op)
{
	const char *of = names[op->d % NAMES], *name = p->d->common->name;
	const size_t len = strcspn(name, ":") + 1;
	char vale[VALE_NAME_SIZE];
	unsigned int what;

	if ((op->b & 4) != 0) {
		op_rule(name, op);
		return;
	}
	switch (op->b & 3) {
	case 0:
		INVARIANT(vale_set(name, "private", op->c % 2 ? "on" : "off") ==
		    0);
		INVARIANT(strcmp(setting_of(name, "private"), op->c % 2 != 0 ?
		    "on" : "off") == 0);
		break;
	case 1:
		INVARIANT((setting_to(name, "weight", "%u", op->c) == 0) ==
		    (op->c >= 1 && op->c <= VALE_WEIGHT_MAX));
		break;
	case 2:
		snprintf(vale, sizeof(vale), "%.*s", (int)len - 1, name);
		INVARIANT((setting_to(vale, "batch", "%u", op->c) == 0) ==
		    (op->c >= 1 && op->c <= VALE_BATCH_MAX));
		break;
	case 3:
		what = op->c % 4;
		INVARIANT((setting_mirror(name, of, what) == 0) ==
		    (what == 0 || (strncmp(of, name, len) == 0 &&
		    strcmp(of, name) != 0)));
		break;
	}
}

static void
op_monitor(const struct op *op)
{
	const struct vale_params params = { .rx_slots = 32,
	    .monitor = op->c & 3 };
	const char *name = names[op->b % NAMES];
	const unsigned int n = op->a & 1;
	bool open = false;
	int i;

	monitor_close(n);
	if (params.monitor == 0)
		return;
	for (i = 0; i < PORTS; i++)
		open |= ports[i].d != NULL &&
		    strcmp(ports[i].d->common->name, name) == 0;
	monitors[n] = vale_open(name, &params);
	INVARIANT((monitors[n] != NULL) == open);
	if (!open)
		INVARIANT(errno == (op->b % NAMES == NAMES - 1 ? EINVAL :
		    ENXIO));
}

static void
op_run(const struct op *op)
{
	struct port *p = &ports[op->a % PORTS];

	if (op->kind % SWITCH_NOPS == SWITCH_OPEN)
		op_open(p, op);
	else if (op->kind % SWITCH_NOPS == SWITCH_LOOK)
		op_look(op);
	else if (op->kind % SWITCH_NOPS == SWITCH_MONITOR)
		op_monitor(op);
	if (p->d == NULL)
		return;
	p->r = vale_ring(p->d, op->a / PORTS % p->rings);
	switch (op->kind % SWITCH_NOPS) {
	case SWITCH_CLOSE:
		vale_close(p->d);
		p->d = NULL;
		break;
	case SWITCH_TX_SLOT:
		op_slot(p, p->r->txring, op);
		break;
	case SWITCH_RX_SLOT:
		op_slot(p, p->r->rxring, op);
		p->touched = true;
		break;
	case SWITCH_TX_HEAD:
		p->r->txring->head = op->c;
		break;
	case SWITCH_RX_HEAD:
		p->r->rxring->head = op->c;
		p->r->rxring->cur = op->d;
		p->touched = true;
		break;
	case SWITCH_SEND:
		op_send(p, op);
		break;
	case SWITCH_TXSYNC:
		op_txsync(p);
		break;
	case SWITCH_RXSYNC:
		op_rxsync(p, op);
		break;
	case SWITCH_SINK:
		op_sink(p, op);
		break;
	case SWITCH_HEADER:
		op_header(p, op);
		break;
	case SWITCH_OFFLOAD:
		op_offload(p, op);
		break;
	case SWITCH_SET:
		op_set(p, op);
		break;
	}
}

/*
 * The end.
 */

static void
exchange(struct vale_desc *from, struct vale_desc *to)
{
	struct netmap_slot *slot = &from->txring->slot[from->txring->head];
	uint8_t *buf = (uint8_t *)NETMAP_BUF(from->txring, slot->buf_idx);
	struct netmap_ring *ring = to->rxring;

	memset(buf, 0xff, 60);
	buf[6] = 2;
	slot->len = 60;
	from->txring->head = nm_ring_next(from->txring, from->txring->head);
	INVARIANT(vale_rxsync(to) == 0);
	INVARIANT(vale_txsync(from) == 0);
	INVARIANT(readable(to));
	INVARIANT(vale_rxsync(to) == 0);
	INVARIANT(nm_ring_space(ring) == 1);
	INVARIANT(ring->slot[ring->head].len == 60);
	INVARIANT(memcmp(NETMAP_BUF(ring, ring->slot[ring->head].buf_idx),
	    buf, 60) == 0);
}

static void
works(void)
{
	const struct vale_params params = { .tx_slots = 8, .rx_slots = 8 };
	struct vale_desc *a, *b;

	a = vale_open("vale0:works1", &params);
	b = vale_open("vale0:works2", &params);
	INVARIANT(a != NULL && b != NULL);
	exchange(a, b);
	vale_close(a);
	vale_close(b);
}

/* Run an input, and return the digest of its effect. */
static uint64_t
run(const struct op *ops, size_t n, int (*sync)(struct vale_desc *))
{
	unsigned int none;
	size_t i;

	txsync = sync;
	effect = 0xcbf29ce484222325;
	now.tv_sec = 1;
	for (i = 0; i < PORTS; i++) {
		ports[i].bytes = malloc(INDIRECT);
		INVARIANT(ports[i].bytes != NULL);
		memset(ports[i].bytes, 0xa5, INDIRECT);
	}
	for (i = 0; i < n; i++) {
		now.tv_sec += i % 8 == 7;
		op_run(&ops[i]);
	}
	works();
	for (i = 0; i < PORTS; i++) {
		if (ports[i].d != NULL)
			vale_close(ports[i].d);
		free(ports[i].bytes);
	}
	memset(ports, 0, sizeof(ports));
	for (i = 0; i < MONITORS; i++)
		monitor_close(i);
	none = 0;
	vale_list(NULL, look_port, &none);
	INVARIANT(none == 0);
	return (effect);
}

int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct op ops[OPS_MAX];
	size_t n;

	n = ops_read(data, size, ops);
	INVARIANT(run(ops, n, vale_txsync) ==
	    run(ops, n, vale_general_txsync));
	return (0);
}
