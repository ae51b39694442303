/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Ports of this process on a switch of valed, through libvale and through the
 * memory that the two share.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/systm.h>
#include <sys/wait.h>
#include <dev/netmap/vale_fdb.h>
#include <dev/netmap/vale_rate.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "test.h"
#include "vale_client.h"
#include "vale_find.h"
#include "vale_test.h"
#include "valed_run.h"
#include "wait_until.h"

/*
 * Open a port with so many ring pairs, through the client alone.  NULL with
 * errno if valed refuses it.
 */
static struct vale_client_port *
client_try(const char *name, unsigned int rings)
{
	struct vale_client_port *cp = calloc(1, sizeof(*cp));
	int error;

	ATF_REQUIRE(cp != NULL);
	error = valed_try(cp, geteuid(), name, (struct nmreq_register){
	    .nr_tx_rings = rings }, -1, NULL);
	if (error != 0) {
		free(cp);
		errno = error;
		return (NULL);
	}
	ATF_REQUIRE_EQ(rings, cp->cp_nrings);
	return (cp);
}

static struct vale_client_port *
client_open_rings(const char *name, unsigned int rings)
{
	struct vale_client_port *cp = client_try(name, rings);

	ATF_REQUIRE_MSG(cp != NULL, "%s: %s", name, strerror(errno));
	return (cp);
}

static struct vale_client_port *
client_open(const char *name)
{
	return (client_open_rings(name, 1));
}

static void
client_close(struct vale_client_port *cp)
{
	vale_client_close(cp);
	free(cp);
}

/* The number of ports. */
static int
one_port(const struct vale_port_info *info __unused, void *arg)
{
	++*(unsigned int *)arg;
	return (0);
}

static unsigned int
ports(void)
{
	unsigned int n = 0;

	ATF_REQUIRE_EQ(0, vale_list(NULL, one_port, &n));
	return (n);
}

VALED_TEST(frames, "Frames of every length pass both ways, are counted, and "
    "wake who waits")
{
	static const uint32_t lens[] = { T_FRAME_MIN, 60, 1514, 2048, 2049,
	    9014, 65536 };
	struct vale_desc *a, *b;
	unsigned int i;

	a = t_open("vale0:a", 64, 64);
	b = t_open("vale0:b", 64, 64);
	t_expect_none(a);
	t_expect_none(b);
	for (i = 0; i < nitems(lens); i++) {
		ATF_CHECK(!t_readable(b));
		t_send(a, lens[i], EVERYBODY, 1, i);
		wait_until(t_readable(b), "%u bytes", lens[i]);
		ATF_REQUIRE_EQ(0, vale_rxsync(b));
		ATF_CHECK(t_readable(b));
		t_expect(b, lens[i], 1, i);
		t_expect_none(b);
		t_send(b, lens[i], 1, 2, i);
		t_expect(a, lens[i], 2, i);
		t_expect_none(a);
	}
	T_COUNT(a, TX_FRAME, i);
	T_COUNT(a, RX_FRAME, i);
	T_COUNT(b, TX_FRAME, i);
	T_COUNT(b, RX_COPY, i);
	T_COUNT(a, TX_FLOOD, 1 + i - 1);
	vale_close(a);
	vale_close(b);
	wait_until(ports() == 0, "%u", ports());
}

VALED_TEST(space, "A user that fills the transmit ring is woken when there is "
    "space")
{
	struct vale_client_port *cp = client_open("vale0:a");
	struct pollfd pfd = { .fd = cp->cp_ring[0].vcr_tx_kick,
	    .events = POLLIN };
	struct netmap_ring *ring = cp->cp_ring[0].vcr_txring;
	uint32_t n, sent = 0;

	while (sent < 10 * ring->num_slots) {
		n = nm_ring_space(ring);
		for (sent += n; n > 0; n--) {
			ring->slot[ring->head].len = 60;
			ring->head = ring->cur = nm_ring_next(ring,
			    ring->head);
		}
		ATF_REQUIRE_EQ(0, vale_client_txsync(cp, 0));
		/* No time limit: valed must not forget the kick. */
		while (nm_ring_empty(ring) && !vale_client_txwait(cp, 0))
			ATF_REQUIRE_EQ(1, poll(&pfd, 1, -1));
	}
	client_close(cp);
}

VALED_TEST(indirect, "A slot with NS_INDIRECT is copied; valed does not follow "
    "an address of another process")
{
	struct vale_desc *a, *b;
	struct vale_client_port *c;
	struct vale_client_ring *vcr;
	uint8_t buf[2048];
	uint64_t counters[VALE_NCOUNTERS];

	a = t_open("vale0:a", 64, 64);
	b = t_open("vale0:b", 64, 64);
	t_make(buf, sizeof(buf), EVERYBODY, 1, 7);
	t_put(a, buf, sizeof(buf), sizeof(buf), true);
	ATF_REQUIRE_EQ(0, vale_txsync(a));
	t_expect(b, sizeof(buf), 1, 7);
	c = client_open("vale0:c");
	vcr = &c->cp_ring[0];
	vcr->vcr_tx_slots[0].len = 60;
	vcr->vcr_tx_slots[0].flags = NS_INDIRECT;
	vcr->vcr_tx_slots[0].ptr = (uintptr_t)buf;
	/* Past vale_client_txsync(), which would copy. */
	atomic_store_rel_32(&vcr->vcr_csb->tx_atok.head, 1);
	(void)!send(vcr->vcr_tx_kick, "", 1, 0);
	wait_until(vale_port_counters("vale0:c", counters) == 0 &&
	    counters[VALE_C_TX_DROP_BUF] == 1, "%ju",
	    (uintmax_t)counters[VALE_C_TX_DROP_BUF]);
	t_expect_none(b);
	client_close(c);
	vale_close(a);
	vale_close(b);
}

/*
 * Write anything to the first `n' words of a port's memory: the CSB and the
 * rings.
 */
static void
scribble(struct vale_client_port *cp, size_t n, uint32_t *seed)
{
	uint32_t *words = (uint32_t *)(void *)cp->cp_base;
	struct vale_csb *csb;
	unsigned int i;

	for (i = 0; i < 64; i++)
		atomic_store_32(&words[test_below(seed, n)],
		    test_chance(seed, 1, 2) ? test_below(seed, 1100) :
		    test_random(seed));
	/* The heads, so that the rest is looked at. */
	csb = cp->cp_ring[test_below(seed, cp->cp_nrings)].vcr_csb;
	atomic_store_32(&csb->tx_atok.head, test_below(seed, 1030));
	atomic_store_32(&csb->rx_atok.head, test_below(seed, 1030));
	(void)send(cp->cp_ring[0].vcr_tx_kick, "", 1, MSG_DONTWAIT);
}

/* Take all frames, whatever they are. */
static void
drain(struct vale_desc *d)
{
	ATF_REQUIRE_EQ(0, vale_rxsync(d));
	d->rxring->head = d->rxring->cur = d->rxring->tail;
}

VALED_TEST(scribbled, "A port whose user writes anything to its memory "
    "disturbs no other")
{
	struct vale_client_port *bad;
	struct vale_desc *a, *b;
	uint32_t i, seed = 11;
	size_t n;

	a = t_open("vale0:a", 64, 64);
	b = t_open("vale0:b", 64, 64);
	t_send(b, 60, EVERYBODY, 2, 0);
	t_expect(a, 60, 2, 0);
	bad = client_open_rings("vale1:bad", 2);
	client_close(client_open("vale1:other"));
	n = (NETMAP_BUF(bad->cp_ring[0].vcr_txring, 0) - bad->cp_base) /
	    sizeof(uint32_t);
	for (i = 0; i < 2000; i++) {
		scribble(bad, n, &seed);
		t_send(a, 60, 2, 1, i);
		t_expect(b, 60, 1, i);
	}
	client_close(bad);
	/*
	 * On the same switch it may send any frame, but to its own ring only.
	 */
	bad = client_open_rings("vale0:bad", 2);
	for (i = 0; i < 2000; i++) {
		scribble(bad, n, &seed);
		t_send(a, 60, 2, 1, i);
		drain(a);
		drain(b);
	}
	client_close(bad);
	T_COUNT(a, TX_FRAME, 4001 - 1);
	vale_close(a);
	vale_close(b);
	wait_until(ports() == 0, "%u", ports());
}

VALED_TEST(punched, "A hole in a port's memory costs its user the contents, "
    "and nobody else anything")
{
	struct vale_client_port *cp;
	struct vale_desc *a, *b;

	a = t_open("vale0:a", 64, 64);
	b = t_open("vale0:b", 64, 64);
	cp = client_open("vale0:c");
	ATF_CHECK_EQ(-1, ftruncate(cp->cp_memory, 4096));
	ATF_CHECK_EQ(-1, ftruncate(cp->cp_memory, 1 << 30));
	ATF_REQUIRE_EQ(0, fallocate(cp->cp_memory,
	    FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
	    cp->cp_reg.nr_memsize));
	t_send(a, 60, EVERYBODY, 1, 1);
	t_expect(b, 60, 1, 1);
	client_close(cp);
	vale_close(a);
	vale_close(b);
}

/* Flood the switch from its own port until killed. */
static void __dead2
flood(unsigned int i)
{
	struct vale_client_port *cp;
	struct netmap_ring *ring, *rxring;
	unsigned int k = 0;
	char name[32];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(name, sizeof(name), "vale0:flood%u", i);
	cp = client_open_rings(name, 1 + i);
	for (;; k = (k + 1) % cp->cp_nrings) {
		ring = cp->cp_ring[k].vcr_txring;
		rxring = cp->cp_ring[k].vcr_rxring;
		while (!nm_ring_empty(ring)) {
			t_make((uint8_t *)NETMAP_BUF(ring,
			    ring->slot[ring->head].buf_idx), 60, 3, 4, i);
			ring->slot[ring->head].len = 60;
			ring->head = ring->cur = nm_ring_next(ring,
			    ring->head);
		}
		vale_client_txsync(cp, k);
		vale_client_rxsync(cp, k);
		rxring->head = rxring->cur = rxring->tail;
		sched_yield();
	}
}

VALED_TEST(killed, "Processes that are killed while they send and receive "
    "leave free ports, and no other process misses a frame")
{
	struct vale_desc *a, *b, *c;
	unsigned int i, j, seq = 0;
	uint64_t counters[VALE_NCOUNTERS];
	char name[32];
	pid_t pid;

	a = t_open("vale0:a", 64, 64);
	b = t_open("vale0:b", 64, 64);
	/* The floods are for station 3, which does not receive. */
	c = t_open("vale0:c", 64, 64);
	t_send(c, 60, EVERYBODY, 3, 0);
	t_expect(a, 60, 3, 0);
	t_send(b, 60, EVERYBODY, 2, 0);
	t_expect(a, 60, 2, 0);
	/* valed gives it to one port after the other. */
	t_expect(b, 60, 3, 0);
	for (i = 0; i < 1000; i++) {
		/* An address that does not send is forgotten after minutes. */
		t_send(b, 60, 2, 2, i);
		t_send(c, 60, 3, 3, i);
		snprintf(name, sizeof(name), "vale0:flood%u", i % 3);
		pid = fork();
		ATF_REQUIRE(pid != -1);
		if (pid == 0)
			flood(i % 3);
		wait_until(vale_port_counters(name, counters) == 0 &&
		    counters[VALE_C_TX_FRAME] > 0, "%s", name);
		for (j = 0; j < 20; j++) {
			t_send(a, 60, 2, 1, seq);
			t_expect(b, 60, 1, seq++);
		}
		kill(pid, SIGKILL);
		ATF_REQUIRE_EQ(pid, waitpid(pid, NULL, 0));
		wait_until(vale_port_counters(name, counters) == -1 &&
		    errno == ENXIO, "%s", name);
	}
	T_COUNT(b, RX_DROP_FULL, 0);
	T_COUNT(b, RX_FRAME, 1 + 1000 * 20);
	vale_close(c);
	vale_close(a);
	vale_close(b);
	wait_until(ports() == 0, "%u", ports());
}

VALED_TEST(rings, "Frames of each ring go to that ring of another port, modulo "
    "its number, and wake who waits for that; counters are sums")
{
	const struct vale_params params = { .rings = 3, .tx_slots = 64 };
	const struct vale_params more = { .rings = VALE_RINGS_MAX + 1 };
	struct vale_desc *a, *b, *c;
	unsigned int i, j;

	ATF_CHECK_ERRNO(EINVAL, vale_open("vale0:a", &more) == NULL);
	a = vale_open("vale0:a", &params);
	b = vale_open("vale0:b", &params);
	ATF_REQUIRE(a != NULL && b != NULL);
	c = t_open("vale0:c", 64, 64);
	ATF_CHECK_ERRNO(EINVAL, vale_ring(a, 3) == NULL);
	ATF_CHECK(vale_ring(vale_ring(b, 2), 0) == b);
	for (i = 0; i < 3; i++)
		t_expect_none(vale_ring(b, i));
	for (i = 0; i < 3; i++) {
		t_send(vale_ring(a, i), 60, EVERYBODY, 1, i);
		wait_readable(vale_ring(b, i)->fd, "ring %u", i);
		for (j = 0; j < 3; j++)
			ATF_CHECK_EQ(i == j, t_readable(vale_ring(b, j)));
		t_expect(vale_ring(b, i), 60, 1, i);
		t_expect_none(vale_ring(b, i));
		t_expect(c, 60, 1, i);
	}
	/* As libvale's syncs do, several rings at once. */
	for (i = 0; i < 3; i++)
		t_queue(vale_ring(b, i), 1514, 1, 2, 10 + i);
	for (i = 3; i-- > 0;)
		ATF_REQUIRE_EQ(0, vale_txsync(vale_ring(b, i)));
	for (i = 0; i < 3; i++)
		t_expect(vale_ring(a, i), 1514, 2, 10 + i);
	T_COUNT(a, TX_FRAME, 3);
	T_COUNT(b, RX_FRAME, 3);
	T_COUNT(a, RX_FRAME, 3);
	T_COUNT(b, LEARNED, 1);
	vale_close(a);
	vale_close(b);
	vale_close(c);
	wait_until(ports() == 0, "%u", ports());
}

VALED_TEST(other_rings, "An invalid head in one ring is counted, and kicks "
    "that nobody reads fill a socket; the other rings go on")
{
	struct vale_client_port *cp = client_open_rings("vale0:a", 3);
	struct vale_desc *b = t_open("vale0:b", 64, 64);
	struct vale_client_ring *vcr = &cp->cp_ring[1];
	struct netmap_ring *ring = cp->cp_ring[2].vcr_txring;
	uint64_t counters[VALE_NCOUNTERS];
	unsigned int i;

	while (send(vcr->vcr_tx_kick, "kick", 4, MSG_DONTWAIT) > 0 &&
	    send(vcr->vcr_rx_kick, "kick", 4, MSG_DONTWAIT) > 0)
		;
	atomic_store_rel_32(&vcr->vcr_csb->tx_atok.head, ring->num_slots);
	atomic_store_rel_32(&vcr->vcr_csb->rx_atok.head, ring->num_slots);
	(void)!send(cp->cp_ring[0].vcr_tx_kick, "", 1, 0);
	wait_until(vale_port_counters("vale0:a", counters) == 0 &&
	    counters[VALE_C_TX_BAD_RING] > 0, "head of ring 1");
	for (i = 0; i < 200; i++) {
		t_make((uint8_t *)NETMAP_BUF(ring,
		    ring->slot[ring->head].buf_idx), 60, EVERYBODY, 1, i);
		ring->slot[ring->head].len = 60;
		ring->head = ring->cur = nm_ring_next(ring, ring->head);
		ATF_REQUIRE_EQ(0, vale_client_txsync(cp, 2));
		wait_until(vale_rxsync(b) == 0 && !nm_ring_empty(b->rxring),
		    "frame %u", i);
		t_expect(b, 60, 1, i);
	}
	/* To the rings of the others: ring 1 stays as it is. */
	t_send(b, 60, 1, 2, 0);
	wait_until(vale_client_rxsync(cp, 0) == 0 &&
	    !nm_ring_empty(cp->cp_ring[0].vcr_rxring), "no frame");
	client_close(cp);
	vale_close(b);
	wait_until(ports() == 0, "%u", ports());
}

TEST(descriptors, "Ports with many rings take up to half of valed's "
    "descriptors; others find theirs, and what is closed is free again")
{
	const struct rlimit limit = { 400, 400 };
	struct vale_client_port *cp[4];
	char name[] = "vale0:p0";
	unsigned int i;
	pid_t valed;

	ATF_REQUIRE_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	valed = valed_run(atf_tc_get_config_var(tc, "srcdir"));
	/* 400 / 8 ring pairs but the first of each. */
	for (i = 0; i < 3; i++) {
		name[sizeof(name) - 2] = '0' + i;
		cp[i] = client_open_rings(name, 16);
	}
	ATF_CHECK_ERRNO(EMFILE, client_try("vale0:p3", 16) == NULL);
	ATF_CHECK_ERRNO(EMFILE, client_try("vale0:p3", 7) == NULL);
	cp[3] = client_open_rings("vale0:p3", 6);
	client_close(client_open("vale0:one"));
	ATF_CHECK_ERRNO(EMFILE, client_try("vale0:p4", 2) == NULL);
	/* What is closed is free at once. */
	for (i = 0; i < 50; i++) {
		client_close(cp[2]);
		cp[2] = client_open_rings("vale0:p4", 16);
	}
	for (i = 0; i < 4; i++)
		client_close(cp[i]);
	wait_until(ports() == 0, "%u", ports());
	valed_end(valed);
}

/* Receive what flight() has sent, after a while. */
static void *
land(void *arg)
{
	const struct timespec pause = { .tv_nsec = 200000000 };
	int *fds = arg;

	nanosleep(&pause, NULL);
	close(fds[0]);
	close(fds[1]);
	return (NULL);
}

/* Send descriptors that nobody receives, as many as there may be. */
static void
flight(int s, unsigned int n)
{
	union {
		struct cmsghdr	hdr;
		char		space[CMSG_SPACE(100 * sizeof(int))];
	} control;
	struct iovec iov = { "", 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = &control, .msg_controllen = sizeof(control) };
	unsigned int i;

	control.hdr.cmsg_level = SOL_SOCKET;
	control.hdr.cmsg_type = SCM_RIGHTS;
	control.hdr.cmsg_len = CMSG_LEN(100 * sizeof(int));
	for (i = 0; i < 100; i++)
		((int *)CMSG_DATA(&control.hdr))[i] = s;
	for (i = 0; i < n; i += 100)
		if (sendmsg(s, &msg, MSG_DONTWAIT) == -1) {
			ATF_REQUIRE_EQ(ETOOMANYREFS, errno);
			return;
		}
}

TEST(in_flight, "A port is opened although other processes of the user have "
    "sent as many descriptors as may wait to be received")
{
	const struct rlimit limit = { 400, 400 };
	pthread_t thread;
	pid_t valed;
	int fds[2];

	ATF_REQUIRE_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	valed = valed_run(atf_tc_get_config_var(tc, "srcdir"));
	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds));
	flight(fds[0], 500);
	ATF_REQUIRE_EQ(0, pthread_create(&thread, NULL, land, fds));
	client_close(client_open("vale0:one"));
	ATF_REQUIRE_EQ(0, pthread_join(thread, NULL));
	wait_until(ports() == 0, "%u", ports());
	valed_end(valed);
}

/* Wait for a frame, and take it. */
static void
t_take_one(struct vale_desc *d, uint32_t seq)
{
	struct t_frame f;

	wait_until(vale_rxsync(d) == 0 && !nm_ring_empty(d->rxring),
	    "frame %u", seq);
	ATF_REQUIRE(t_take(d, &f));
	ATF_CHECK_EQ(seq, f.tf_seq);
}

VALED_TEST(monitor, "A monitor gets copies, and knows what it missed")
{
	const struct vale_params params = { .rx_slots = 16,
	    .monitor = VALE_MIRROR_TX };
	struct vale_desc *a, *b, *m;
	unsigned int got = 0, i;

	a = t_open("vale0:a", 64, 64);
	b = t_open("vale0:b", 64, 64);
	ATF_CHECK_ERRNO(ENXIO, vale_open("vale0:c", &params) == NULL);
	m = vale_open("vale0:a", &params);
	ATF_REQUIRE(m != NULL);
	ATF_CHECK_EQ(2, ports());
	for (i = 0; i < 40; i++)
		t_send(a, 60, EVERYBODY, 1, i);
	wait_until(vale_missed(m) == 25, "missed %ju",
	    (uintmax_t)vale_missed(m));
	/* Copies come on the monitor's own time. */
	wait_until((got += t_drain(m)) >= 15, "%u copies", got);
	ATF_CHECK_EQ(15, got);
	ATF_CHECK_EQ(0, vale_missed(a));
	for (i = 0; i < 40; i++)
		t_take_one(b, i);
	ATF_CHECK_EQ(0, vale_txsync(m));
	t_queue(m, 60, EVERYBODY, 1, 0);
	ATF_CHECK_ERRNO(EIO, vale_txsync(m) == -1);
	vale_close(m);
	vale_close(a);
	vale_close(b);
}

VALED_TEST(many, "All ports of a switch are listed, and one more is refused")
{
	struct vale_desc *d[VALE_FDB_PORTS];
	char name[32];
	unsigned int i;

	for (i = 0; i < nitems(d); i++) {
		snprintf(name, sizeof(name), "vale0:p%u", i);
		d[i] = t_open(name, 2, 2);
	}
	ATF_CHECK_EQ(nitems(d), ports());
	ATF_CHECK(vale_open("vale0:more", NULL) == NULL);
	ATF_CHECK_EQ(ENOSPC, errno);
	ATF_CHECK(vale_open("vale0:p3", NULL) == NULL);
	for (i = 0; i < nitems(d); i++)
		vale_close(d[i]);
	wait_until(ports() == 0, "%u", ports());
}

TEST_PROGRAM
