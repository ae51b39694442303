/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The rings of a port that was opened over a connection: syncs and waits, step
 * by step.  Both sides are in this process: the switch (vale_open_shared())
 * and, with the memory mapped a second time, the client.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/systm.h>
#include <dev/netmap/vale_fdb.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "test.h"
#include "vale_client.h"
#include "vale_shared.h"
#include "vale_test.h"
#include "wire_peer.h"

#define	SLOTS		8
#define	RINGS		2

struct port {
	struct vale_shared	 shared;
	size_t			 size;
	struct vale_desc	*d;		/* in the switch */
	int			 fd;		/* the switch's side */
	int			 kick[RINGS][2]; /* receive, transmit */
	struct vale_client_port	 cp;
};

static void
wake(void *arg, unsigned int ring, bool tx)
{
	struct port *p = arg;

	(void)!send(p->kick[ring][tx], "", 1, MSG_DONTWAIT);
}

/* A window in memory whose buffers are from `bufs' to `end'. */
static int
window(const struct nmreq_register *reg, size_t bufs, size_t end)
{
	const struct vale_window vv = { .vv_bufs = bufs, .vv_end = end };
	struct vale_window_layout wl;
	int fd = memfd_create("window", MFD_CLOEXEC);

	vale_window_layout(&wl, reg->nr_tx_rings, reg->nr_tx_slots,
	    reg->nr_rx_slots);
	ATF_REQUIRE_EQ(0, ftruncate(fd, wl.wl_size));
	ATF_REQUIRE_EQ(sizeof(vv), pwrite(fd, &vv, sizeof(vv), 0));
	return (fd);
}

/* Have the client open what the switch has in `memory'. */
static void
grant(struct port *p, int memory, size_t bufs, size_t end, const char *name,
    const struct nmreq_register *reg)
{
	int all[2 + 2 * RINGS], fd[2], pair[2];
	unsigned int i, n = 2;

	all[0] = memory;
	all[1] = window(reg, bufs, end);
	for (i = 0; i < 2 * reg->nr_tx_rings; i++) {
		ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
		/* Transmit first. */
		p->kick[i / 2][i % 2 == 0] = pair[0];
		all[n++] = pair[1];
	}
	wire_pair(fd);
	p->fd = fd[1];
	wire_reply(fd[1], 0, "", reg, sizeof(*reg), all, n);
	ATF_REQUIRE_EQ(0, vale_client_open(&p->cp, fd[0], name, reg, -1,
	    NULL));
	while (n > 1)
		close(all[--n]);
}

static void
port_open(struct port *p, const char *name, unsigned int monitor)
{
	const struct vale_params params = { .rings = RINGS, .tx_slots = SLOTS,
	    .rx_slots = SLOTS, .monitor = monitor };
	struct nmreq_register reg = { .nr_mode = NR_REG_ALL_NIC,
	    .nr_tx_rings = RINGS, .nr_rx_rings = RINGS,
	    .nr_tx_slots = SLOTS, .nr_rx_slots = SLOTS };
	struct vale_region_layout rl;
	int memory = memfd_create("port", MFD_CLOEXEC);

	vale_shared_layout(&rl, &params, 0);
	memset(p, 0, sizeof(*p));
	if ((monitor & VALE_MIRROR_TX) != 0)
		reg.nr_flags |= NR_MONITOR_TX;
	if ((monitor & VALE_MIRROR_RX) != 0)
		reg.nr_flags |= NR_MONITOR_RX;
	p->size = vale_shared_size(&params, 0);
	ATF_REQUIRE_EQ(0, ftruncate(memory, p->size));
	p->shared.memory = mmap(NULL, p->size, PROT_READ | PROT_WRITE,
	    MAP_SHARED, memory, 0);
	ATF_REQUIRE(p->shared.memory != MAP_FAILED);
	p->shared.wake = wake;
	p->shared.arg = p;
	p->d = vale_open_shared(name, &params, &p->shared);
	ATF_REQUIRE(p->d != NULL);
	reg.nr_memsize = p->size;
	reg.nr_offset = VALE_WINDOW_OFFSET(rl.rl_frames);
	grant(p, memory, rl.rl_bufs, p->size, name, &reg);
	close(memory);
}

/* valed ends. */
static void
port_end(struct port *p)
{
	unsigned int i;

	vale_close(p->d);
	close(p->fd);
	for (i = 0; i < RINGS; i++) {
		close(p->kick[i][0]);
		close(p->kick[i][1]);
	}
}

static void
port_close(struct port *p)
{
	port_end(p);
	vale_client_close(&p->cp);
	munmap(p->shared.memory, p->size);
}

/* The kicks that wait at a socket, taken. */
static ssize_t
kicks(int fd)
{
	char buf[4096];
	ssize_t n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);

	return (n == -1 && errno == EAGAIN ? 0 : n);
}

/* Put a frame in the next slot of a ring, without a sync. */
static struct netmap_slot *
put(struct port *p, unsigned int i, uint32_t seq)
{
	struct netmap_ring *ring = p->cp.cp_ring[i].vcr_txring;
	struct netmap_slot *slot = &ring->slot[ring->head];

	t_make((uint8_t *)NETMAP_BUF(ring, slot->buf_idx), 60, EVERYBODY, 1,
	    seq);
	slot->len = 60;
	slot->flags = 0;
	ring->head = ring->cur = nm_ring_next(ring, ring->head);
	return (slot);
}

/* The same, and publish it. */
static void
publish(struct port *p, unsigned int i, uint32_t seq)
{
	put(p, i, seq);
	ATF_REQUIRE_EQ(0, vale_client_txsync(&p->cp, i));
}

TEST(full_socket, "A kick that the socket has no space for is not waited for")
{
	struct vale_csb *csb;
	struct port p;

	port_open(&p, "valet0:a", 0);
	while (send(p.cp.cp_ring[0].vcr_tx_kick, "kick", 4, MSG_DONTWAIT) > 0)
		;
	csb = p.cp.cp_ring[0].vcr_csb;
	publish(&p, 0, 1);
	ATF_CHECK_EQ(0, csb->tx_ktoa.kern_need_kick);
	ATF_CHECK(vale_shared_tx(p.d));
	port_end(&p);
	/* Nor if there is no valed: no signal. */
	csb->tx_ktoa.kern_need_kick = 1;
	publish(&p, 0, 2);
	vale_client_close(&p.cp);
	munmap(p.shared.memory, p.size);
}

TEST(invalid, "An invalid head or cur is refused, and set back")
{
	struct netmap_ring *ring, *rxring;
	struct vale_csb *csb;
	struct port p;

	port_open(&p, "valet0:a", 0);
	ring = p.cp.cp_ring[1].vcr_txring;
	rxring = p.cp.cp_ring[1].vcr_rxring;
	csb = p.cp.cp_ring[1].vcr_csb;
	publish(&p, 1, 0);
	kicks(p.kick[0][true]);
	csb->tx_ktoa.kern_need_kick = 1;
	ring->cur = 3;
	ring->head = SLOTS;
	ATF_CHECK_ERRNO(EINVAL, vale_client_txsync(&p.cp, 1) == -1);
	ATF_CHECK_EQ(1, ring->head);
	ATF_CHECK_EQ(1, ring->cur);
	ATF_CHECK_EQ(1, csb->tx_atok.head);
	ATF_CHECK_EQ(0, kicks(p.kick[0][true]));
	/* The last one is valid. */
	ring->head = ring->cur = SLOTS - 1;
	ATF_CHECK_EQ(0, vale_client_txsync(&p.cp, 1));

	rxring->head = 2;
	rxring->cur = 3;
	ATF_CHECK_EQ(0, vale_client_rxsync(&p.cp, 1));
	ATF_CHECK_EQ(2, csb->rx_atok.head);
	ATF_CHECK_EQ(3, csb->rx_atok.cur);
	rxring->head = SLOTS;
	ATF_CHECK_ERRNO(EINVAL, vale_client_rxsync(&p.cp, 1) == -1);
	ATF_CHECK_EQ(2, rxring->head);
	ATF_CHECK_EQ(2, rxring->cur);
	rxring->cur = SLOTS;
	ATF_CHECK_ERRNO(EINVAL, vale_client_rxsync(&p.cp, 1) == -1);
	ATF_CHECK_EQ(2, rxring->cur);
	ATF_CHECK_EQ(2, csb->rx_atok.head);
	ATF_CHECK_EQ(3, csb->rx_atok.cur);
	rxring->head = rxring->cur = SLOTS - 1;
	ATF_CHECK_EQ(0, vale_client_rxsync(&p.cp, 1));
	port_close(&p);
}

/* Whether a sync has set the ring's time; it is cleared. */
static bool
stamped(struct netmap_ring *ring)
{
	const bool set = ring->ts.tv_sec != 0;

	memset(&ring->ts, 0, sizeof(ring->ts));
	return (set);
}

TEST(timestamps, "A sync of a receive ring sets its time, one of a transmit "
    "ring if the user wants it")
{
	struct netmap_ring *ring, *rxring;
	struct port p;

	port_open(&p, "valet0:a", 0);
	ring = p.cp.cp_ring[0].vcr_txring;
	rxring = p.cp.cp_ring[0].vcr_rxring;
	ATF_CHECK_EQ(0, vale_client_txsync(&p.cp, 0));
	ATF_CHECK_EQ(0, vale_client_rxsync(&p.cp, 0));
	ATF_CHECK(!stamped(ring) && stamped(rxring));
	ring->flags |= NR_TIMESTAMP;
	ATF_CHECK_EQ(0, vale_client_txsync(&p.cp, 0));
	ATF_CHECK(stamped(ring) && !stamped(rxring));
	ATF_CHECK_EQ(0, vale_client_rxsync(&p.cp, 0));
	ATF_CHECK(!stamped(ring) && stamped(rxring));
	port_close(&p);
}

/* Waits that take kicks. */
static bool
wait_for(struct port *p, bool tx)
{
	return (tx ? vale_client_txwait(&p->cp, 0) :
	    vale_client_rxwait(&p->cp, 0));
}

TEST(drained, "Who waits takes all kicks, however many, and sees when valed "
    "has ended")
{
	static const unsigned int counts[] = { 0, 1, 63, 64, 65, 128, 200 };
	struct port p;
	unsigned int i, j;
	bool tx;
	int fd;

	for (tx = false;; tx = true) {
		port_open(&p, "valet0:a", 0);
		fd = tx ? p.cp.cp_ring[0].vcr_tx_kick :
		    p.cp.cp_ring[0].vcr_rx_kick;
		for (i = 0; i < nitems(counts); i++) {
			for (j = 0; j < counts[i]; j++)
				wake(&p, 0, tx);
			(void)wait_for(&p, tx);
			ATF_CHECK_EQ(0, kicks(fd));
			ATF_CHECK_EQ(0, p.cp.cp_gone);
		}
		ATF_CHECK(vale_client_alive(p.cp.cp_fd));
		wake(&p, 0, tx);
		port_end(&p);
		ATF_CHECK(!vale_client_alive(p.cp.cp_fd));
		(void)wait_for(&p, tx);
		(void)wait_for(&p, tx);
		ATF_CHECK_EQ(1, p.cp.cp_gone);
		vale_client_close(&p.cp);
		munmap(p.shared.memory, p.size);
		if (tx)
			break;
	}
}

TEST(pipe, "The ends of a pipe wake each other, and say what is invalid")
{
	static const uint32_t slots[2] = { SLOTS, SLOTS };
	struct nmreq_register reg = { .nr_mode = NR_REG_ALL_NIC,
	    .nr_tx_rings = 1, .nr_rx_rings = 1, .nr_tx_slots = SLOTS,
	    .nr_rx_slots = SLOTS };
	int memory = memfd_create("pipe", MFD_CLOEXEC);
	struct netmap_ring *tx, *rx, *shared;
	struct vale_pipe_layout pl;
	struct vale_window_layout wl;
	struct port a, b;
	size_t end, size;
	char *base;

	/* The pipe and its windows are all that there is. */
	vale_pipe_layout(&pl, slots);
	vale_window_layout(&wl, 1, SLOTS, SLOTS);
	end = roundup2(pl.pl_size, VALE_WINDOW_ALIGN);
	size = end + 2 * wl.wl_size;
	ATF_REQUIRE_EQ(0, ftruncate(memory, size));
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	ATF_REQUIRE(base != MAP_FAILED);
	vale_pipe_init(base, &pl, pl.pl_bufs / VALE_BUF_SIZE,
	    end / VALE_BUF_SIZE);
	reg.nr_memsize = size;
	reg.nr_offset = VALE_WINDOW_OFFSET(end);
	grant(&a, memory, 0, end, "vale0:x{1", &reg);
	reg.nr_offset = VALE_WINDOW_OFFSET(end + wl.wl_size);
	grant(&b, memory, 0, end, "vale0:x}1", &reg);
	tx = a.cp.cp_ring[0].vcr_txring;
	rx = b.cp.cp_ring[0].vcr_rxring;

	ATF_CHECK(!vale_client_rxwait(&b.cp, 0));
	publish(&a, 0, 1);
	/* To whom the other end is: here, who granted it. */
	ATF_CHECK_EQ(1, kicks(a.kick[0][true]));
	publish(&a, 0, 2);
	ATF_CHECK_EQ(0, kicks(a.kick[0][true]));
	ATF_CHECK(vale_client_rxwait(&b.cp, 0));
	ATF_CHECK_EQ(0, vale_client_rxsync(&b.cp, 0));
	ATF_CHECK_EQ(2, nm_ring_space(rx));
	ATF_CHECK(vale_client_txwait(&a.cp, 0));
	rx->head = rx->cur = 1;
	(void)stamped(rx);
	ATF_CHECK_EQ(0, vale_client_rxsync(&b.cp, 0));
	ATF_CHECK(stamped(rx));
	ATF_CHECK_EQ(1, kicks(b.kick[0][false]));
	tx->head = SLOTS;
	ATF_CHECK_ERRNO(EINVAL, vale_client_txsync(&a.cp, 0) == -1);
	rx->head = SLOTS;
	ATF_CHECK_ERRNO(EINVAL, vale_client_rxsync(&b.cp, 0) == -1);
	ATF_CHECK(!stamped(rx));
	/* A window is no buffer. */
	publish(&a, 0, 3);
	shared = (void *)(base + pl.pl_rx[VALE_PIPE_SLAVE]);
	shared->slot[2].buf_idx = end / VALE_BUF_SIZE;
	ATF_CHECK_ERRNO(EIO, vale_client_rxsync(&b.cp, 0) == -1);
	ATF_CHECK_EQ(2, rx->tail);
	shared->slot[2].buf_idx = end / VALE_BUF_SIZE - 1;
	ATF_CHECK_EQ(0, vale_client_rxsync(&b.cp, 0));
	ATF_CHECK_EQ(3, rx->tail);
	ATF_CHECK_EQ(end / VALE_BUF_SIZE - 1, rx->slot[2].buf_idx);
	/* The other end has gone. */
	close(a.kick[0][true]);
	close(a.kick[0][false]);
	ATF_CHECK_EQ(0, a.cp.cp_gone);
	(void)vale_client_rxwait(&a.cp, 0);
	ATF_CHECK_EQ(1, a.cp.cp_gone);
	vale_client_close(&a.cp);
	vale_client_close(&b.cp);
	munmap(base, size);
	close(memory);
}

TEST_PROGRAM
