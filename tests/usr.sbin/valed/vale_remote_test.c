/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A frame port over a port of another valed's switch (vale_remote.h): frames to
 * and from ports of libvale, a valed that stops, and what a hostile one sends.
 * One process does what the opener and the adapter do.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/systm.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "frame_vnet.h"
#include "open_fds.h"
#include "test.h"
#include "vale_find.h"
#include "vale_remote.h"
#include "vale_test.h"
#include "vale_vnet.h"
#include "valed_run.h"
#include "wait_until.h"
#include "wire_peer.h"

#define	NAME	"vale0:vm1"

struct remote {
	int			 conn;
	struct vale_remote	 vr;
	struct frame_port	*port;
	struct nmreq_register	 reg;
	int			 fds[VALE_REMOTE_FDS];
	char			 why[sizeof(((struct vale_wire *)0)->vw_why)];
};

/* Ask for the port, and have the descriptors. */
static void
dial(struct remote *r)
{
	r->conn = vale_client_connect(vale_find_path());
	ATF_REQUIRE(r->conn != -1);
	ATF_REQUIRE_EQ(0, vale_remote_ask(r->conn, NAME));
	ATF_REQUIRE_EQ_MSG(0, vale_remote_answer(r->conn, &r->reg, r->fds,
	    r->why), "%s", r->why);
	ATF_REQUIRE_EQ(0, vale_remote_ready(r->conn, r->why));
	ATF_CHECK_STREQ("", r->why);
}

static void
init(struct remote *r)
{
	vale_remote_init(&r->vr);
	r->port = &r->vr.vrm_frames.vfp_port;
	r->port->fp_frame_max = UINT32_MAX;
	frame_port_set_offloads(r->port);
	ATF_CHECK(r->port->fp_offloads);
}

static void
have(struct remote *r)
{
	dial(r);
	ATF_REQUIRE_EQ(0, vale_remote_open(&r->vr, NAME, &r->reg, r->fds));
	ATF_CHECK(!vale_remote_gone(&r->vr));
	ATF_CHECK(!vale_remote_bad(&r->vr));
}

static void
begin(struct remote *r)
{
	init(r);
	have(r);
}

static void
end(struct remote *r)
{
	vale_remote_close(&r->vr);
	close(r->conn);
}

/* Send bytes in fragments of up to `fraglen'.  Returns the errno. */
static int
put(struct remote *r, const uint8_t *buf, uint32_t len, uint32_t fraglen,
    const uint8_t *hdr)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	uint32_t off, n = 0;

	for (off = 0; off < len; off += fraglen)
		iov[n++] = (struct iovec){ __DECONST(uint8_t *, buf + off),
		    MIN(fraglen, len - off) };
	frame_set(&frame, n, len);
	if (hdr != NULL)
		ATF_REQUIRE(frame_vnet_decode(&frame, hdr));
	return (frame_port_send(r->port, &frame));
}

static bool
is_readable(const struct remote *r)
{
	struct pollfd pfd = { .fd = vale_remote_fd(&r->vr), .events = POLLIN };

	return (poll(&pfd, 1, 0) == 1);
}

/* Wait for a frame, and take it to `buf'.  Returns its length. */
static uint32_t
take(struct remote *r, struct frame *frame, uint8_t *buf)
{
	static struct iovec iov[FRAME_MAXIOV];
	uint32_t i, len = 0;

	frame->f_iov = iov;
	frame_port_sync(r->port);
	while (!frame_peek(r->port->fp_source, frame)) {
		wait_until(is_readable(r), "a frame");
		frame_port_sync(r->port);
	}
	for (i = 0; i < frame->f_niov; i++) {
		memcpy(buf + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	ATF_CHECK_EQ(frame->f_len, len);
	frame_next(r->port->fp_source);
	return (len);
}

static void
expect_none(struct remote *r)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };

	frame_port_sync(r->port);
	ATF_CHECK(!frame_peek(r->port->fp_source, &frame));
	ATF_CHECK(!is_readable(r));
}

VALED_TEST(offloads, "Partial checksums and segments pass as they are, and are "
    "completed and cut for a port without them")
{
	static struct vn_sent s;
	static uint8_t got[VN_BYTES];
	struct vale_desc *plain, *with;
	struct frame frame;
	struct remote r;
	uint32_t mss, seed = 1;
	uint8_t hdr[FRAME_VNET_LONG];
	struct packet p;
	int i;

	for (i = 0; i < VN_BYTES; i++)
		vn_payload[i] = i * 7 + i / 256;
	begin(&r);
	plain = vn_port("vale0:plain", 0, 1024, 2);
	with = vn_port("vale0:with", VN_LONG, 1024, 3);
	/* What they have sent, so that they are learned. */
	(void)take(&r, &frame, got);
	(void)take(&r, &frame, got);
	wait_until(t_count(plain, VALE_C_RX_FRAME) == 1, "station 3");
	t_drain(plain);
	for (i = 0; i < 60; i++) {
		p = vn_packet(20000, &seed);
		mss = i % 3 == 0 ? 0 : 500 + 300 * (i % 4);
		if (mss == 0)
			p.paylen = MIN(p.paylen, 1400);
		vn_make(&s, &p, mss, 2, 1);
		ATF_REQUIRE(frame_port_takes_uncut(r.port, &frame));
		ATF_REQUIRE_EQ(0, put(&r, s.data, s.len, s.len, s.hdr));
		frame_port_flush(r.port);
		wait_until((vale_rxsync(plain), nm_ring_space(plain->rxring) >=
		    (mss == 0 ? 1 : howmany(p.paylen, mss))), "frame %d", i);
		vn_expect(plain, 0, &s);
		vn_make(&s, &p, mss, 3, 1);
		ATF_REQUIRE_EQ(0, put(&r, s.data, s.len, s.len / 20 + 1,
		    s.hdr));
		frame_port_flush(r.port);
		wait_until(t_drain(plain) == 0 && (vale_rxsync(with),
		    !nm_ring_empty(with->rxring)), "frame %d", i);
		vn_expect(with, VN_LONG, &s);
		vn_make(&s, &p, mss, 1, 3);
		vn_put_sent(with, VN_LONG, &s, 2048, false);
		ATF_REQUIRE_EQ(0, vale_txsync(with));
		ATF_REQUIRE_EQ(s.len, take(&r, &frame, got));
		frame_vnet_encode(&frame, hdr, sizeof(hdr));
		ATF_CHECK_EQ(0, memcmp(s.hdr, hdr, sizeof(hdr)));
		ATF_CHECK_EQ(0, memcmp(s.data, got, s.len));
	}
	vale_close(plain);
	vale_close(with);
	end(&r);
}

/* Have frames begin with a header of so many bytes. */
static void
set_header(const struct remote *r, unsigned int len)
{
	const struct nmreq_port_hdr body = { .nr_hdr_len = len };
	struct nmreq_header hdr = { .nr_version = NETMAP_API,
	    .nr_reqtype = NETMAP_REQ_PORT_HDR_SET, .nr_name = NAME };
	struct vale_client_call call = { .hdr = &hdr, .body = &body,
	    .size = sizeof(body) };

	ATF_REQUIRE_EQ(0, vale_client_call(r->conn, &call));
}

VALED_TEST(headless, "Frames without a header, as there are before it is set, "
    "are skipped, and who waits is woken by the next one")
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	uint8_t got[60];
	struct vale_desc *a;
	struct remote r;
	int i;

	init(&r);
	a = t_open("vale0:a", 64, 64);
	/* Before the port is opened here. */
	dial(&r);
	for (i = 0; i < 3; i++)
		t_send(a, 60, EVERYBODY, 2, i);
	wait_until(t_count(a, VALE_C_TX_COPY) == 3, "copies");
	ATF_REQUIRE_EQ(0, vale_remote_open(&r.vr, NAME, &r.reg, r.fds));
	/* The first time, nobody has waited yet. */
	for (i = 0; i < 10; i++) {
		set_header(&r, 0);
		t_send(a, 60, EVERYBODY, 2, 2 * i);
		t_send(a, 60, EVERYBODY, 2, 2 * i + 1);
		wait_until(r.vr.vrm_client.cp_ring[0].vcr_csb->rx_ktoa.hwtail ==
		    (unsigned int)(5 + 3 * i), "two frames");
		frame_port_sync(r.port);
		ATF_CHECK(!frame_peek(r.port->fp_source, &frame));
		set_header(&r, VALE_HEADER);
		t_send(a, 60, EVERYBODY, 2, i);
		wait_until(is_readable(&r), "a kick");
		ATF_CHECK_EQ(60, take(&r, &frame, got));
		expect_none(&r);
	}
	vale_close(a);
	end(&r);
}

PID_TEST(stops, "A valed that does not run holds up one flush, what finds no "
    "slot is dropped, and all else is sent when it runs again")
{
	uint8_t sent[60];
	unsigned int dropped = 0, got = 0, i;
	struct vale_desc *a;
	struct remote r;
	int status;

	begin(&r);
	a = t_open("vale0:a", 64, 4096);
	t_expect_none(a);
	valed_kill(valed, SIGSTOP);
	ATF_REQUIRE_EQ(valed, waitpid(valed, &status, WUNTRACED));
	for (i = 0; i < 100000; i++) {
		t_make(sent, 60, EVERYBODY, 1, i);
		if (put(&r, sent, 60, 60, NULL) != 0)
			dropped++;
		if (i % 64 == 0)
			frame_port_flush(r.port);
	}
	frame_port_flush(r.port);
	ATF_CHECK(r.vr.vrm_stuck);
	ATF_CHECK(dropped >= i - VALE_SLOTS_DEFAULT);
	valed_kill(valed, SIGCONT);
	wait_until((got += t_drain(a)) == i - dropped, "%u of %u", got,
	    i - dropped);
	/* It waits again, once valed has returned slots. */
	wait_until(put(&r, sent, 60, 60, NULL) == 0, "slots");
	frame_port_flush(r.port);
	wait_until((got += t_drain(a)) == i - dropped + 1, "%u", got);
	ATF_CHECK(!vale_remote_gone(&r.vr));
	vale_close(a);
	end(&r);
}

/*
 * A valed of the test's own, which is hostile.
 */

/* Have the client take what a real port has, changed by change(). */
static int
hostile(struct remote *r, void (*change)(struct remote *r))
{
	dial(r);
	change(r);
	return (vale_remote_open(&r->vr, NAME, &r->reg, r->fds));
}

/* In the place of a descriptor, another one. */
static void
replace(int *fd, int with)
{
	ATF_REQUIRE(with != -1);
	close(*fd);
	*fd = with;
}

/* A copy of the file of a descriptor, without seals, with `size' bytes. */
static int
unsealed(int fd, off_t size)
{
	static char page[65536];
	const int to = memfd_create("copy", MFD_ALLOW_SEALING);
	ssize_t n;
	off_t at = 0;

	while ((n = pread(fd, page, MIN((off_t)sizeof(page), size - at), at)) >
	    0) {
		ATF_REQUIRE_EQ(n, pwrite(to, page, n, at));
		at += n;
	}
	ATF_REQUIRE_EQ(0, ftruncate(to, size));
	return (to);
}

static off_t
size_of(int fd)
{
	return (lseek(fd, 0, SEEK_END));
}

static void
memory_unsealed(struct remote *r)
{
	replace(&r->fds[0], unsealed(r->fds[0], size_of(r->fds[0])));
}

static void
memory_short(struct remote *r)
{
	const int fd = unsealed(r->fds[0], size_of(r->fds[0]) - 4096);

	ATF_REQUIRE_EQ(0, fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	replace(&r->fds[0], fd);
}

static void
window_unsealed(struct remote *r)
{
	replace(&r->fds[1], unsealed(r->fds[1], size_of(r->fds[1])));
}

static void
window_short(struct remote *r)
{
	const int fd = unsealed(r->fds[1], size_of(r->fds[1]) - 4096);

	ATF_REQUIRE_EQ(0, fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	replace(&r->fds[1], fd);
}

/* A window whose buffers are elsewhere. */
static void
window_lies(struct remote *r)
{
	const int fd = unsealed(r->fds[1], size_of(r->fds[1]));
	const uint64_t bufs = 0;

	ATF_REQUIRE_EQ(sizeof(bufs), pwrite(fd, &bufs, sizeof(bufs),
	    offsetof(struct vale_window, vv_bufs)));
	ATF_REQUIRE_EQ(0, fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	replace(&r->fds[1], fd);
}

static void
window_outside(struct remote *r)
{
	const int fd = unsealed(r->fds[1], size_of(r->fds[1]));
	const uint64_t end = r->reg.nr_memsize + 4096;

	ATF_REQUIRE_EQ(sizeof(end), pwrite(fd, &end, sizeof(end),
	    offsetof(struct vale_window, vv_end)));
	ATF_REQUIRE_EQ(0, fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	replace(&r->fds[1], fd);
}

static void
rings_two(struct remote *r)
{
	r->reg.nr_tx_rings = r->reg.nr_rx_rings = 2;
}

static void
rings_none(struct remote *r)
{
	r->reg.nr_mode = NR_REG_NULL;
}

static void
slots_many(struct remote *r)
{
	r->reg.nr_rx_slots = VALE_SLOTS_MAX + 1;
}

static void
slots_more(struct remote *r)
{
	r->reg.nr_rx_slots = VALE_SLOTS_MAX;
}

static void
offset_wrong(struct remote *r)
{
	r->reg.nr_offset += VALE_WINDOW_ALIGN;
}

static void
memory_large(struct remote *r)
{
	r->reg.nr_memsize = UINT64_MAX / 2;
}

VALED_TEST(refused, "What is not a port's memory, or may be taken away, is "
    "refused, and no descriptor is left")
{
	static void (*const changes[])(struct remote *) = { memory_unsealed,
	    memory_short, window_unsealed, window_short, window_lies,
	    window_outside, rings_two, rings_none, slots_many, slots_more,
	    offset_wrong, memory_large };
	const unsigned int fds = open_fds();
	struct remote r;
	unsigned int i;

	init(&r);
	for (i = 0; i < nitems(changes); i++) {
		ATF_CHECK_EQ_MSG(-1, hostile(&r, changes[i]), "%u", i);
		ATF_CHECK_EQ_MSG(EPROTO, errno, "%u: %s", i, strerror(errno));
		ATF_CHECK(vale_remote_gone(&r.vr));
		close(r.conn);
		ATF_CHECK_EQ(fds, open_fds());
		wait_until(vale_port_counters(NAME, (uint64_t
		    [VALE_NCOUNTERS]){ 0 }) == -1, "closed");
	}
}

TEST(answers, "An answer without the right descriptors is refused, and they "
    "are closed")
{
	const struct nmreq_register reg = { .nr_tx_rings = 1 };
	int fd[2], file = memfd_create("file", MFD_ALLOW_SEALING), pair[2];
	int event = open("/dev/null", O_RDONLY);
	const int sets[][VALE_REMOTE_FDS + 1] = { { file, file, 0, 0, 0 },
	    { event, file, 0, 0, 0 }, { file, event, 0, 0, 0 } };
	int all[VALE_REMOTE_FDS + 1], fds[VALE_REMOTE_FDS];
	unsigned int i, n, nopen;
	struct nmreq_register got;
	char why[sizeof(((struct vale_wire *)0)->vw_why)];

	wire_pair(pair);
	wire_pair(fd);
	nopen = open_fds();
	for (i = 0; i < nitems(sets) + 4; i++) {
		memcpy(all, sets[i < nitems(sets) ? i : 0], sizeof(all));
		all[2] = all[3] = all[4] = pair[0];
		n = VALE_REMOTE_FDS;
		if (i == nitems(sets))
			n++;
		if (i == nitems(sets) + 1)
			n--;
		if (i == nitems(sets) + 2)
			all[2] = file;
		if (i == nitems(sets) + 3)
			all[3] = event;
		wire_reply(fd[1], 0, "", &reg, sizeof(reg), all, n);
		/* The first set is right. */
		ATF_CHECK_EQ_MSG(i == 0 ? 0 : -1, vale_remote_answer(fd[0],
		    &got, fds, why), "%u", i);
		if (i != 0)
			ATF_CHECK_EQ(EPROTO, errno);
		for (n = 0; i == 0 && n < VALE_REMOTE_FDS; n++)
			close(fds[n]);
		ATF_CHECK_EQ(nopen, open_fds());
	}
	wire_reply(fd[1], 0, "", &reg, sizeof(reg) - 1, all, 0);
	ATF_CHECK_EQ(-1, vale_remote_answer(fd[0], &got, fds, why));
	/* The second answer needs none, and keeps none. */
	wire_reply(fd[1], 0, "", NULL, 0, all, 3);
	ATF_CHECK_EQ(0, vale_remote_ready(fd[0], why));
	ATF_CHECK_EQ(nopen, open_fds());
	close(fd[1]);
	ATF_CHECK_EQ(-1, vale_remote_ready(fd[0], why));
	ATF_CHECK_EQ(EPIPE, errno);
	ATF_CHECK_EQ(-1, vale_remote_ask(fd[0], NAME));
}

/* The port's memory, as the other valed has it. */
static struct vale_csb *
theirs(const struct remote *r)
{
	void *csb = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
	    r->fds[0], 0);

	ATF_REQUIRE(csb != MAP_FAILED);
	return (csb);
}

VALED_TEST(scribble, "Indexes and slots in the memory are checked, and the "
    "window of valed's is not this side's")
{
	struct vale_csb *csb;
	struct remote r;
	uint8_t sent[60] = { 0 };
	int i, window;
	void *w;

	init(&r);
	for (i = 0; i < 3; i++) {
		dial(&r);
		csb = theirs(&r);
		window = dup(r.fds[1]);
		ATF_REQUIRE_EQ(0, vale_remote_open(&r.vr, NAME, &r.reg,
		    r.fds));
		w = mmap(NULL, size_of(window), PROT_READ | PROT_WRITE,
		    MAP_SHARED, window, 0);
		ATF_REQUIRE(w != MAP_FAILED);
		memset(w, 0xff, size_of(window));
		ATF_CHECK_EQ(0, put(&r, sent, 60, 60, NULL));
		frame_port_flush(r.port);
		frame_port_sync(r.port);
		ATF_CHECK(!vale_remote_bad(&r.vr));
		switch (i) {
		case 0:
			csb->rx_ktoa.hwtail = r.reg.nr_rx_slots;
			frame_port_sync(r.port);
			break;
		case 1:
			/* Whatever the slots have, none is longer. */
			((struct netmap_slot *)r.vr.vrm_client.cp_ring[0].
			    vcr_rx_slots)->len = 2049;
			csb->rx_ktoa.hwtail = 1;
			frame_port_sync(r.port);
			break;
		case 2:
			wait_until(csb->tx_ktoa.hwcur == 1, "sent");
			csb->tx_ktoa.hwtail = UINT32_MAX;
			ATF_CHECK_EQ(0, put(&r, sent, 60, 60, NULL));
			frame_port_flush(r.port);
			break;
		}
		ATF_CHECK_MSG(vale_remote_bad(&r.vr), "%d", i);
		ATF_CHECK(vale_remote_gone(&r.vr));
		munmap(w, size_of(window));
		munmap(csb, 4096);
		close(window);
		end(&r);
		ATF_CHECK(!vale_remote_bad(&r.vr));
		wait_until(vale_port_counters(NAME, (uint64_t
		    [VALE_NCOUNTERS]){ 0 }) == -1, "closed");
	}
}

VALED_TEST(kicks, "Who sends kicks without end holds up nobody")
{
	struct remote r;
	int pair[2];
	char many[64 * 17];
	ssize_t left;

	dial(&r);
	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	replace(&r.fds[3], pair[0]);
	init(&r);
	ATF_REQUIRE_EQ(0, vale_remote_open(&r.vr, NAME, &r.reg, r.fds));
	memset(many, 0, sizeof(many));
	ATF_REQUIRE_EQ(sizeof(many), send(pair[1], many, sizeof(many), 0));
	frame_port_sync(r.port);
	left = recv(pair[0], many, sizeof(many), MSG_DONTWAIT);
	ATF_CHECK_EQ_MSG(64, left, "%zd", left);
	close(pair[1]);
	end(&r);
}

TEST_PROGRAM
