/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * valed's control socket, and ports and pipes of other processes.  An input is
 * a sequence of operations (ops.h) of two clients, each of any user, which send
 * packets of any kind, with descriptors of any kind, write anything to the
 * memory of their ports, and withdraw pages of it.  This process receives and
 * transmits as the threads of valed do, in turn.  A third port of the same
 * switch, of this process, exchanges frames with them.
 *
 * Invariants: each packet has a reply of the right form, or ends the
 * connection; the third port's rings stay in order, and its counters
 * consistent; whatever the clients did, two new ports exchange a frame at the
 * end, and there is no descriptor more than before.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Its threads do not run: the functions below take their place. */
#include "ctl.c"
#include "wrap.h"

#include <dev/netmap/vale_fdb_entry.h>
#include <fcntl.h>

#include "ops.h"
#include "pass_fds.h"
#include "setting.h"
#include "vale_pipe.h"
#include "vale_shared.h"
#include "vale_window.h"

#define	CLIENTS		2

enum {
	CONTROL_REGISTER,	/* a valid request */
	CONTROL_PACKET,		/* any */
	CONTROL_WRITE,		/* to the CSB and the rings */
	CONTROL_TX_HEAD,	/* publish */
	CONTROL_RX_HEAD,
	CONTROL_TX,		/* transmit what is published */
	CONTROL_SEND,		/* from the third port */
	CONTROL_RECEIVE,	/* there */
	CONTROL_LEAVE,		/* disconnect, and connect again, as any user */
	CONTROL_PASS,		/* with descriptors and credentials */
	CONTROL_PUNCH,		/* a hole into the memory */
	CONTROL_SETTING,	/* of any port, or a port that comes and goes */
	CONTROL_NOPS
};

/* Who the clients are: root, and two users. */
static const uid_t users[] = { 0, 70001, 70002 };

static struct client {
	struct ctl_conn	*cc;
	unsigned int	 user;		/* in users[] */
	int		 fd;		/* the client's end */
	int		 fds[VALE_WIRE_REPLY_FDS]; /* that came with replies */
	unsigned int	 nfds;
	uint8_t		*memory;	/* of its port or pipe, or NULL */
	size_t		 size;
	unsigned int	 rings;
	bool		 is_pipe;
	struct vale_pipe pipe;
	struct vale_window_ring heads;
} clients[CLIENTS];
static struct vale_desc	*third;
static struct vale_wire	*packet;

/* The switch's time is the same whenever an input runs. */
int	fuzz_clock_gettime(clockid_t clock, struct timespec *ts);

int
fuzz_clock_gettime(clockid_t clock __unused, struct timespec *ts)
{
	ts->tv_sec = 1;
	ts->tv_nsec = 0;
	return (0);
}

/* The other end of the socket is another user. */
static uid_t peer;

WRAP(int, getsockopt, int s, int level, int name, void *value, socklen_t *len)
{
	const struct ucred cred = { getpid(), peer, peer };

	if (level != SOL_SOCKET || name != SO_PEERCRED)
		return (__real_getsockopt(s, level, name, value, len));
	INVARIANT(*len == sizeof(cred));
	memcpy(value, &cred, sizeof(cred));
	return (0);
}

static void
connect_client(struct client *cl)
{
	struct ctl_conn *cc = &ctl_conns[cl - clients];
	int fds[2];

	INVARIANT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) ==
	    0);
	memset(cc, 0, sizeof(*cc));
	cc->cc_used = 1;
	cc->cc_fd = fds[0];
	peer = users[cl->user];
	INVARIANT(ctl_who(fds[0], &cc->cc_who) == 0);
	INVARIANT(cc->cc_who.cw_admin == (cl->user == 0));
	cc->cc_wire = malloc(VALE_WIRE_MAX);
	INVARIANT(cc->cc_wire != NULL);
	cc->cc_body = cc->cc_wire + 1;
	vale_grant_init(&cc->cc_grant, cc->cc_who.cw_uid, cc->cc_who.cw_admin,
	    fds[0], cc->cc_wire->vw_header.nr_name, cc->cc_wire->vw_why);
	cl->cc = cc;
	cl->fd = fds[1];
	cl->nfds = 0;
	cl->memory = NULL;
}

/* What ctl_conn_thread() does at the end, and a client that dies. */
static void
leave(struct client *cl)
{
	struct ctl_conn *cc = cl->cc;

	if (cl->memory != NULL)
		munmap(cl->memory, cl->size);
	free(cl->pipe.pp_txring);
	free(cl->pipe.pp_rxring);
	cl->pipe = (struct vale_pipe){ 0 };
	while (cl->nfds > 0)
		close(cl->fds[--cl->nfds]);
	ctl_port_close(cc);
	close(cc->cc_fd);
	free(cc->cc_wire);
	close(cl->fd);
}

/* VALE_WIRE_SHARE: as many as there were. */
static void
take_fds_again(struct client *cl, const struct cmsghdr *c)
{
	int fds[VALE_WIRE_REPLY_FDS];
	unsigned int i;

	INVARIANT(c->cmsg_len == CMSG_LEN(cl->nfds * sizeof(int)));
	memcpy(fds, CMSG_DATA(c), cl->nfds * sizeof(int));
	for (i = 0; i < cl->nfds; i++)
		close(fds[i]);
}

/* Return a ring of a client's own window. */
static struct netmap_ring *
attach_ring(unsigned int dir, uint32_t slots)
{
	struct netmap_ring *ring = aligned_alloc(NM_CACHE_ALIGN,
	    vale_ring_size(slots));

	INVARIANT(ring != NULL);
	memset(ring, 0, vale_ring_size(slots));
	vale_ring_init(ring, 0, 0, dir, slots);
	return (ring);
}

/* Find an end.  What others have written there may be anything. */
static void
attach(struct client *cl, const struct nmreq_register *reg, unsigned int end)
{
	uint32_t slots[2];
	struct vale_pipe_layout pl;
	struct vale_window vv;

	slots[end] = reg->nr_tx_slots;
	slots[!end] = reg->nr_rx_slots;
	vale_pipe_layout(&pl, slots);
	INVARIANT(pread(cl->fds[1], &vv, sizeof(vv), 0) == sizeof(vv));
	cl->pipe = (struct vale_pipe){
		.pp_txring = attach_ring(0, slots[end]),
		.pp_rxring = attach_ring(1, slots[!end]),
		.pp_heads = &cl->heads,
		.pp_nbufs = (vv.vv_end - vv.vv_bufs) / VALE_BUF_SIZE,
	};
	vale_pipe_find(&cl->pipe, (char *)cl->memory + vv.vv_pipe, &pl, end);
	vale_pipe_attach(&cl->pipe, &pl, end, (vv.vv_pipe + pl.pl_bufs -
	    vv.vv_bufs) / VALE_BUF_SIZE);
}

/* Keep the descriptors of a reply; map the memory, which is the first. */
static void
take_fds(struct client *cl, struct msghdr *msg)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	const struct nmreq_register *reg = (const void *)(packet + 1);
	unsigned int end;

	if (c == NULL)
		return;
	if (cl->nfds > 0) {
		take_fds_again(cl, c);
		return;
	}
	cl->nfds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(cl->fds, CMSG_DATA(c), cl->nfds * sizeof(int));
	if (cl->cc->cc_grant.gr_null) {
		INVARIANT(cl->nfds == 2);
		return;
	}
	cl->rings = reg->nr_tx_rings;
	INVARIANT(cl->rings >= 1 && reg->nr_rx_rings == cl->rings);
	INVARIANT(cl->nfds == 2 + 2 * cl->rings);
	cl->size = reg->nr_memsize;
	INVARIANT(lseek(cl->fds[0], 0, SEEK_END) == (off_t)cl->size);
	cl->memory = mmap(NULL, cl->size, PROT_READ | PROT_WRITE, MAP_SHARED,
	    cl->fds[0], 0);
	INVARIANT(cl->memory != MAP_FAILED);
	cl->is_pipe = vale_pipe_name(packet->vw_header.nr_name, &end) != 0;
	if (cl->is_pipe)
		attach(cl, reg, end);
}

static void third_send(const struct op *op);

/* Have what was sent served, and read the reply; `empty' packets end it. */
static void
answer(struct client *cl, bool empty)
{
	union {
		struct cmsghdr	align;
		char		space[CMSG_SPACE(VALE_WIRE_REPLY_FDS *
				    sizeof(int))];
	} control;
	struct iovec iov = { packet, VALE_WIRE_MAX };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t n;

	if (!ctl_serve_request(cl->cc)) {
		INVARIANT(empty);
		leave(cl);
		connect_client(cl);
		return;
	}
	n = recvmsg(cl->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	INVARIANT(n >= (ssize_t)sizeof(*packet));
	INVARIANT(packet->vw_magic == VALE_WIRE_MAGIC);
	INVARIANT(strnlen(packet->vw_why, sizeof(packet->vw_why)) <
	    sizeof(packet->vw_why));
	INVARIANT((packet->vw_error == 0) == (packet->vw_why[0] == '\0'));
	INVARIANT(packet->vw_error == 0 || n == (ssize_t)sizeof(*packet));
	take_fds(cl, &msg);
}

/* Send `len' bytes of the packet. */
static void
converse(struct client *cl, size_t len)
{
	INVARIANT(send(cl->fd, packet, len, MSG_NOSIGNAL) == (ssize_t)len);
	answer(cl, len == 0);
}

static void
prepare(uint16_t type, const char *name)
{
	memset(packet, 0, VALE_WIRE_MAX);
	packet->vw_magic = VALE_WIRE_MAGIC;
	packet->vw_header.nr_version = NETMAP_API;
	packet->vw_header.nr_reqtype = type;
	strlcpy(packet->vw_header.nr_name, name,
	    sizeof(packet->vw_header.nr_name));
}

static void
op_register(struct client *cl, const struct op *op)
{
	static const char *const pipes[8] = { "", "", "", "", "{1", "}1",
	    "{2", "}1" };
	struct nmreq_register *reg = (void *)(packet + 1);
	char name[VALE_NAME_SIZE];

	snprintf(name, sizeof(name), "vale0:c%u%s", op->b % 4,
	    pipes[op->c >> 24 & 7]);
	prepare(NETMAP_REQ_REGISTER, name);
	reg->nr_mode = op->c >> 29 == 7 ? NR_REG_NULL : NR_REG_ALL_NIC;
	reg->nr_tx_slots = op->c & 0x1f;
	reg->nr_rx_slots = op->c >> 8 & 0x1f;
	reg->nr_extra_bufs = op->c >> 16 & 0xf;
	reg->nr_tx_rings = op->c >> 20 & 3;
	reg->nr_rx_rings = op->c >> 22 & 3;
	reg->nr_mem_id = op->c >> 27 & 3;
	converse(cl, sizeof(*packet) + sizeof(*reg));
}

/* A packet that may be right in all but what the operation says. */
static void
op_packet(struct client *cl, const struct op *op)
{
	static const char *const names[] = { "vale0:third", "vale0", "",
	    "vale0:c1", "vale7:x", "vale0:c0" };
	static const char *const pipes[] = { "vale0:c1{1", "vale0:c2}2",
	    "vale0:c0{", "x}1" };
	const struct ctl_request *r = &requests[op->a / CLIENTS %
	    nitems(requests)];
	size_t len = sizeof(*packet) + r->size;

	prepare(r->type, (op->c >> 24 & 3) == 3 ?
	    pipes[op->b % nitems(pipes)] : names[op->b % nitems(names)]);
	memcpy(packet + 1, &op->d, sizeof(op->d));
	switch (op->c % 8) {
	case 0:
		len = op->c >> 8 & 0xff;
		break;
	case 1:
		len = MIN(op->c >> 8, VALE_WIRE_MAX);
		break;
	case 2:
		((uint8_t *)packet)[(op->c >> 8) % len] = op->d;
		break;
	case 3:
		memset(packet->vw_header.nr_name, op->c >> 8,
		    sizeof(packet->vw_header.nr_name));
		break;
	}
	converse(cl, len);
}

/*
 * Any request with c & 31 descriptors from kind b on, mostly to attach an
 * interface that has as many; or with those of the other client's port, which
 * prove that it is known.
 */
static void
op_pass(struct client *cl, const struct op *op)
{
	const struct client *other = &clients[cl == clients];
	const struct ctl_request *r = &requests[op->a / CLIENTS %
	    nitems(requests)];
	const int on = (op->c >> 8 & 7) == 0;
	struct hostif_fds *hf = (void *)(packet + 1);
	unsigned int i, n = op->c & 31;
	int fds[32];

	for (i = 0; i < n; i++)
		fds[i] = pass_fd(op->b + i);
	if (n > 0 && (op->c >> 11 & 3) == 0 && other->nfds > 0)
		fds[0] = other->fds[op->b % other->nfds];
	prepare((op->c >> 13 & 3) != 0 ? NETMAP_REQ_VALE_ATTACH : r->type,
	    "vale0:eth0");
	if (packet->vw_header.nr_reqtype == NETMAP_REQ_VALE_ATTACH) {
		strlcpy(hf->hf_name, "eth0", sizeof(hf->hf_name));
		hf->hf_kind = op->d & 3;
		hf->hf_flags = op->d >> 2 & 1;
		hf->hf_nfds = n + ((op->d >> 3 & 7) == 0);
		r = NULL;
	} else
		memcpy(hf, &op->d, sizeof(op->d));
	/* As of a socket that systemd makes with PassCredentials=yes. */
	INVARIANT(setsockopt(cl->cc->cc_fd, SOL_SOCKET, SO_PASSCRED, &on,
	    sizeof(on)) == 0);
	if (pass_send(cl->fd, packet, sizeof(*packet) + (r != NULL ? r->size :
	    sizeof(*hf)), fds, n, PASS_RIGHTS | (op->c >> 16 &
	    (PASS_CREDS | PASS_FIRST))) > 0)
		answer(cl, false);
}

/* Withdraw pages: valed reads zeros there. */
static void
op_punch(struct client *cl, const struct op *op)
{
	const off_t page = getpagesize();

	INVARIANT(fallocate(cl->fds[0], FALLOC_FL_PUNCH_HOLE |
	    FALLOC_FL_KEEP_SIZE, op->c % (cl->size / page) * page,
	    (1 + op->b % 16) * page) == 0);
}

/* What an administrator does meanwhile. */
static void
op_setting(const struct op *op)
{
	static const char *const names[] = { "vale0:third", "vale0:c0",
	    "vale0:c1", "vale0:c2" };
	const char *name = names[op->b % nitems(names)];
	const struct vale_params params = { .tx_slots = 16, .rx_slots = 16,
	    .monitor = op->d & (VALE_MIRROR_TX | VALE_MIRROR_RX) };
	struct vale_desc *d;

	switch (op->a % 8) {
	case 0:
		(void)setting_to("vale0", "ageing", "%u", op->c % 4);
		break;
	case 1:
		(void)setting_to(name, "limit", "%u", op->c % 4);
		break;
	case 2:
		(void)setting_to(name, "weight", "%u", op->c % 4);
		break;
	case 3:
		(void)vale_set(name, "private", (op->c & 1) ? "on" : "off");
		(void)vale_set(name, "link", (op->c & 6) == 6 ? "down" :
		    (op->c & 6) == 4 ? "uplink" : "up");
		(void)vale_set_carrier(name, op->c & 8);
		break;
	case 4:
		(void)setting_mirror(name, names[op->c % nitems(names)], op->d &
		    (VALE_MIRROR_TX | VALE_MIRROR_RX));
		break;
	case 5:
		(void)setting_to("vale0", "batch", "%u", op->c % 64);
		break;
	default:
		d = vale_open(params.monitor != 0 ? name : "vale0:guest",
		    &params);
		if (d == NULL)
			break;
		third_send(op);
		INVARIANT(vale_rxsync(d) == 0);
		vale_close(d);
	}
}

/* As it is without settings. */
static void
unset(void)
{
	INVARIANT(vale_set("vale0", "ageing", "300") == 0);
	INVARIANT(vale_set("vale0", "batch", "1024") == 0);
	INVARIANT(vale_set("vale0:third", "limit", "0") == 0);
	INVARIANT(vale_set("vale0:third", "weight", "1") == 0);
	INVARIANT(vale_set("vale0:third", "private", "off") == 0);
	INVARIANT(vale_set("vale0:third", "link", "up") == 0);
	INVARIANT(vale_set("vale0:third", "mirror", "no") == 0);
}

static void
op_write(struct client *cl, const struct op *op)
{
	size_t words = cl->size / sizeof(uint32_t);
	uint32_t *p = (uint32_t *)(void *)cl->memory;

	if (cl->is_pipe && op->b % 8 != 0) {
		p = (uint32_t *)(void *)cl->pipe.pp_csb;
		words = 2048;
	}
	/* Mostly to the beginning, where CSB and rings are. */
	p[op->c % (op->b % 8 == 0 ? words : MIN(words, 2048))] = op->d;
}

static void
third_send(const struct op *op)
{
	struct netmap_ring *ring = third->txring;
	struct netmap_slot *slot;
	unsigned int n = op->b % 40 + 1;
	uint8_t *buf;

	for (; n > 0; n--) {
		slot = &ring->slot[ring->head];
		buf = (uint8_t *)NETMAP_BUF(ring, slot->buf_idx);
		memset(buf, 0xff, 12);
		memcpy(buf + 6, "\2\0\0\0\0\3", 6);
		slot->len = 14 + op->c % 2000;
		slot->flags = 0;
		ring->head = ring->cur = nm_ring_next(ring, ring->head);
	}
	INVARIANT(vale_txsync(third) == 0);
}

static void
third_receive(void)
{
	struct netmap_ring *ring = third->rxring;
	uint64_t c[VALE_NCOUNTERS];

	INVARIANT(vale_rxsync(third) == 0);
	for (; ring->head != ring->tail; ring->head = nm_ring_next(ring,
	    ring->head))
		INVARIANT(ring->slot[ring->head].len <= ring->nr_buf_size);
	ring->cur = ring->head;
	INVARIANT(vale_port_counters(third->common->name, c) == 0);
	INVARIANT(c[VALE_C_RX_FRAME] == c[VALE_C_RX_COPY]);
	INVARIANT(c[VALE_C_RX_BAD_RING] == 0 && c[VALE_C_RX_BAD_BUF] == 0);
}

/* Transmit, as valed does for a port, or the client itself into a pipe. */
static void
op_transmit(struct client *cl, const struct op *op, unsigned int ring)
{
	struct netmap_ring *tx = cl->pipe.pp_txring, *rx = cl->pipe.pp_rxring;
	bool kick;

	if (cl->is_pipe) {
		tx->head = tx->cur = op->c % (tx->num_slots + 1);
		tx->slot[op->b % tx->num_slots].buf_idx = op->d;
		rx->head = rx->cur = op->c % (rx->num_slots + 1);
		(void)vale_pipe_txsync(&cl->pipe, &kick);
		(void)vale_pipe_rxsync(&cl->pipe, &kick);
		vale_pipe_txwait(&cl->pipe);
		vale_pipe_rxwait(&cl->pipe);
		return;
	}
	vale_shared_tx(vale_ring(cl->cc->cc_grant.gr_port, ring));
	vale_shared_rx(vale_ring(cl->cc->cc_grant.gr_port, ring));
	vale_shared_wait(vale_ring(cl->cc->cc_grant.gr_port, ring));
}

static void
op_run(const struct op *op)
{
	struct client *cl = &clients[op->a % CLIENTS];
	struct vale_csb *csb = (void *)cl->memory;
	unsigned int ring = 0;

	if (csb != NULL && cl->is_pipe)
		csb = cl->pipe.pp_csb;
	else if (csb != NULL) {
		ring = op->a / CLIENTS % cl->rings;
		csb += ring;
	}
	switch (op->kind % CONTROL_NOPS) {
	case CONTROL_REGISTER:
		op_register(cl, op);
		break;
	case CONTROL_PACKET:
		op_packet(cl, op);
		break;
	case CONTROL_WRITE:
		if (csb != NULL)
			op_write(cl, op);
		break;
	case CONTROL_TX_HEAD:
		if (csb != NULL)
			csb->tx_atok.head = op->c;
		break;
	case CONTROL_RX_HEAD:
		if (csb != NULL)
			csb->rx_atok.head = op->b % 2 == 0 ?
			    csb->rx_ktoa.hwtail : op->c;
		break;
	case CONTROL_TX:
		if (csb != NULL)
			op_transmit(cl, op, ring);
		break;
	case CONTROL_SEND:
		third_send(op);
		break;
	case CONTROL_RECEIVE:
		third_receive();
		break;
	case CONTROL_LEAVE:
		leave(cl);
		cl->user = op->b % nitems(users);
		connect_client(cl);
		break;
	case CONTROL_PASS:
		op_pass(cl, op);
		break;
	case CONTROL_PUNCH:
		if (cl->nfds > 0 && cl->memory != NULL)
			op_punch(cl, op);
		break;
	case CONTROL_SETTING:
		op_setting(op);
		break;
	}
}

/* Two new ports exchange a frame. */
static void
works(void)
{
	const struct op op = { .kind = 0 };
	struct vale_desc *d = vale_open("vale0:works", NULL);

	INVARIANT(d != NULL);
	INVARIANT(vale_rxsync(d) == 0);
	third_send(&op);
	INVARIANT(vale_rxsync(d) == 0);
	INVARIANT(nm_ring_space(d->rxring) == 1);
	vale_close(d);
}

void
target_op(struct rng *rng, struct op *op)
{
	op->kind = rng_below(rng, CONTROL_NOPS);
	if (op->kind == CONTROL_LEAVE && !rng_one_in(rng, 8))
		op->kind = CONTROL_TX;
	op->a = rng_below(rng, CLIENTS * nitems(requests));
	op->b = rng_number(rng);
	op->c = op->kind == CONTROL_TX_HEAD || op->kind == CONTROL_RX_HEAD ?
	    rng_below(rng, 40) : rng_number(rng);
	op->d = rng_number(rng);
}

/* A port, some of its memory, and frames both ways. */
size_t
target_phrase(struct rng *rng, struct op *ops, size_t max)
{
	/* A client and a ring. */
	const uint8_t a = rng_below(rng, 4 * CLIENTS);
	size_t i, n = MIN(max, 8);

	for (i = 0; i < n; i++) {
		target_op(rng, &ops[i]);
		ops[i].a = a;
	}
	ops[0].kind = CONTROL_REGISTER;
	if (n == 8) {
		ops[1].kind = ops[2].kind = CONTROL_WRITE;
		ops[3].kind = CONTROL_TX_HEAD;
		ops[3].c = rng_below(rng, 32);
		ops[4].kind = rng_one_in(rng, 4) ? CONTROL_PUNCH : CONTROL_TX;
		ops[5].kind = CONTROL_SEND;
		ops[6].kind = CONTROL_RX_HEAD;
		ops[7].kind = CONTROL_RECEIVE;
	}
	return (n);
}

int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct vale_params params = { .tx_slots = 64,
	    .rx_slots = 64 };
	struct op ops[OPS_MAX];
	int fds;
	size_t i, n;

	(void)pass_fd(0);
	fds = fds_open();
	packet = malloc(VALE_WIRE_MAX);
	INVARIANT(packet != NULL);
	third = vale_open("vale0:third", &params);
	INVARIANT(third != NULL);
	for (i = 0; i < CLIENTS; i++) {
		clients[i].user = 1 + i;
		connect_client(&clients[i]);
	}
	n = ops_read(data, size, ops);
	for (i = 0; i < n; i++)
		op_run(&ops[i]);
	for (i = 0; i < CLIENTS; i++)
		leave(&clients[i]);
	unset();
	third_receive();
	works();
	vale_close(third);
	free(packet);
	INVARIANT(fds_open() == fds);
	return (0);
}
