/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Memory of ports and pipes as valed gives it out: when it is free again, extra
 * buffers, memory without a port, and a port once more.
 */

#include <sys/param.h>
#include <sys/systm.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "test.h"
#include "vale_client.h"
#include "vale_find.h"
#include "vale_layout.h"
#include "valed_run.h"
#include "wait_until.h"

/* As in vale_memory.h: the test is about the program. */
#define	NULLS	8
#define	EXTRA	2048

/* With a connection of this process's user.  Returns 0 or an errno. */
static int
try(struct vale_client_port *cp, const char *name, struct nmreq_register reg)
{
	return (valed_try(cp, geteuid(), name, reg, -1, NULL));
}

static struct vale_client_port
open_reg(const char *name, struct nmreq_register reg)
{
	return (valed_open(geteuid(), name, reg, -1));
}

#define	OPEN(name, ...)							\
	open_reg(name, (struct nmreq_register){ __VA_ARGS__ })

PID_TEST(reopened, "What is closed can be opened at once: a port, an end of "
    "a pipe, the last place of a memory; what is open cannot")
{
	static const char *const names[] = { "vale0:a", "vale0:a{1",
	    "vale0:b}1" };
	const struct nmreq_register reg = { .nr_mode = NR_REG_ALL_NIC };
	struct vale_client_port cp, null[NULLS], b = OPEN("vale0:b");
	unsigned int i, k;

	for (i = 0; i < nitems(names); i++)
		for (k = 0; k < 300; k++) {
			cp = open_reg(names[i], reg);
			if (k % 100 == 0)
				ATF_CHECK_EQ(EBUSY, try(&null[0], names[i],
				    reg));
			vale_client_close(&cp);
		}
	for (i = 0; i < NULLS; i++)
		null[i] = OPEN("x", .nr_mode = NR_REG_NULL,
		    .nr_mem_id = b.cp_reg.nr_mem_id);
	ATF_CHECK_EQ(ENOSPC, try(&cp, "x", null[0].cp_reg));
	for (k = 0; k < 100; k++) {
		vale_client_close(&null[0]);
		null[0] = open_reg("x", null[1].cp_reg);
	}
	for (i = 0; i < NULLS; i++)
		vale_client_close(&null[i]);
	vale_client_close(&b);
}

/* The list of extra buffers: their number.  Each is one that `seen' lacks. */
static unsigned int
extra_take(const struct vale_client_port *cp, const char *bufs, bool *seen,
    unsigned int max)
{
	uint32_t buf = cp->cp_nifp->ni_bufs_head;
	unsigned int n = 0;

	while (buf != 0) {
		ATF_REQUIRE(buf >= VALE_BUF_FIRST && buf < max);
		ATF_REQUIRE(!seen[buf]);
		seen[buf] = true;
		buf = *(const uint32_t *)(const void *)(bufs +
		    (size_t)buf * VALE_BUF_SIZE);
		n++;
	}
	return (n);
}

/* Note the buffers of a ring. */
static void
ring_take(const struct netmap_ring *ring, bool *seen)
{
	unsigned int i;

	for (i = 0; i < ring->num_slots; i++) {
		ATF_REQUIRE(!seen[ring->slot[i].buf_idx]);
		seen[ring->slot[i].buf_idx] = true;
	}
}

PID_TEST(extra, "Ends of pipes have extra buffers that nobody else has, as "
    "many as the memory has left")
{
	struct vale_client_port port = OPEN("vale0:a");
	struct vale_client_port m = OPEN("vale0:a{1", .nr_extra_bufs = 58);
	struct vale_client_port s = OPEN("vale0:a}1", .nr_extra_bufs = 3);
	struct vale_client_port n = OPEN("x", .nr_mode = NR_REG_NULL,
	    .nr_mem_id = port.cp_reg.nr_mem_id, .nr_extra_bufs = EXTRA);
	const char *bufs = (char *)m.cp_ring[0].vcr_txring +
	    m.cp_ring[0].vcr_txring->buf_ofs;
	const unsigned int max = (m.cp_base + m.cp_reg.nr_memsize - bufs) /
	    VALE_BUF_SIZE;
	bool *seen = calloc(max, sizeof(*seen));

	ATF_REQUIRE(seen != NULL);
	ATF_CHECK_EQ(58, m.cp_reg.nr_extra_bufs);
	ATF_CHECK_EQ(3, s.cp_reg.nr_extra_bufs);
	ATF_CHECK_EQ(EXTRA - 58 - 3, n.cp_reg.nr_extra_bufs);
	ring_take(port.cp_ring[0].vcr_txring, seen);
	ring_take(port.cp_ring[0].vcr_rxring, seen);
	ring_take(m.cp_ring[0].vcr_txring, seen);
	ring_take(m.cp_ring[0].vcr_rxring, seen);
	ATF_CHECK_EQ(58, extra_take(&m, bufs, seen, max));
	bufs = s.cp_base + (bufs - m.cp_base);
	ATF_CHECK_EQ(3, extra_take(&s, bufs, seen, max));
	bufs = n.cp_base + (bufs - s.cp_base);
	ATF_CHECK_EQ(EXTRA - 58 - 3, extra_take(&n, bufs, seen, max));
	/* There are no more; an end that is opened again has no old list. */
	vale_client_close(&m);
	m = OPEN("vale0:a{1", .nr_extra_bufs = 1);
	ATF_CHECK_EQ(0, m.cp_reg.nr_extra_bufs);
	ATF_CHECK_EQ(0, m.cp_nifp->ni_bufs_head);
	free(seen);
	vale_client_close(&n);
	vale_client_close(&s);
	vale_client_close(&m);
	vale_client_close(&port);
}

PID_TEST(null, "Memory without a port is that of the number, or new")
{
	struct vale_client_port a = OPEN("vale0:a"), cp, own;
	char *buf;

	own = OPEN("x", .nr_mode = NR_REG_NULL, .nr_mem_id = 1,
	    .nr_tx_rings = 10, .nr_rx_rings = 5);
	ATF_CHECK_EQ(1, own.cp_reg.nr_mem_id);
	ATF_CHECK_EQ(0, own.cp_nrings);
	ATF_CHECK_STREQ("x", own.cp_nifp->ni_name);
	ATF_CHECK_EQ(10, own.cp_nifp->ni_tx_rings);
	ATF_CHECK_EQ(5, own.cp_nifp->ni_rx_rings);
	cp = OPEN("x", .nr_mode = NR_REG_NULL,
	    .nr_mem_id = a.cp_reg.nr_mem_id);
	ATF_CHECK_EQ(a.cp_reg.nr_memsize, cp.cp_reg.nr_memsize);
	buf = a.cp_base + a.cp_bufs + 2 * VALE_BUF_SIZE - 1;
	*buf = 77;
	ATF_CHECK_EQ(77, cp.cp_base[buf - a.cp_base]);
	/* But not what the port's rings are to its program. */
	ATF_CHECK_STREQ("vale0:a", a.cp_nifp->ni_name);
	ATF_CHECK_EQ(0, cp.cp_base[a.cp_reg.nr_offset]);
	/* It stays when the port has gone, which finds it again. */
	vale_client_close(&a);
	a = OPEN("vale0:a");
	ATF_CHECK_EQ(cp.cp_reg.nr_mem_id, a.cp_reg.nr_mem_id);
	ATF_CHECK_EQ(77, a.cp_base[a.cp_bufs + 2 * VALE_BUF_SIZE - 1]);
	vale_client_close(&cp);
	vale_client_close(&own);
	vale_client_close(&a);
}

static void
descriptor_count(const char *path __unused, const char *what __unused,
    void *arg)
{
	++*(unsigned int *)arg;
}

/* The descriptors of valed. */
static unsigned int
descriptors(pid_t pid)
{
	unsigned int n = 0;

	valed_descriptors(pid, descriptor_count, &n);
	return (n);
}

/* Whether both have one memory, and a kick of the one reaches the other. */
static void
same(const struct vale_client_port *a, const struct vale_client_port *b)
{
	char c;

	ATF_CHECK_EQ(0, memcmp(&a->cp_reg, &b->cp_reg, sizeof(a->cp_reg)));
	ATF_CHECK_EQ(a->cp_nrings, b->cp_nrings);
	a->cp_nifp->ni_spare1[1]++;
	ATF_CHECK_EQ(a->cp_nifp->ni_spare1[1], b->cp_nifp->ni_spare1[1]);
	if (a->cp_nrings == 0)
		return;
	ATF_CHECK_EQ(0, vale_client_txsync(
	    __DECONST(struct vale_client_port *, a), 0));
	ATF_CHECK(read(b->cp_ring[0].vcr_rx_kick, &c, 0) == 0);
}

PID_TEST(shared, "A connection's port is given again, as often as that is "
    "asked for, and is there until its last copy is closed")
{
	static const struct {
		const char		*name;
		struct nmreq_register	 reg;
	} kinds[] = {
		{ "vale0:a", { .nr_tx_rings = 3, .nr_tx_slots = 64 } },
		{ "vale0:b{1", { .nr_rx_slots = 64, .nr_extra_bufs = 2 } },
		{ "vale0:of", { .nr_flags = NR_MONITOR_RX } },
		{ "any", { .nr_mode = NR_REG_NULL, .nr_mem_id = 1 } },
	};
	struct vale_client_port of = OPEN("vale0:of"), cp, other;
	char name[NETMAP_REQ_IFNAMSIZ];
	unsigned int fds, i, k;
	int fd;

	fd = vale_client_connect(vale_find_path());
	ATF_CHECK_ERRNO(ENXIO, vale_client_share(&other, fd, name) == -1);
	fds = descriptors(valed);
	for (i = 0; i < nitems(kinds); i++) {
		cp = open_reg(kinds[i].name, kinds[i].reg);
		for (k = 0; k < 20; k++) {
			ATF_REQUIRE_EQ(0, vale_client_share(&other,
			    dup(cp.cp_fd), name));
			ATF_CHECK_STREQ(kinds[i].name, name);
			same(&cp, &other);
			if (k < 19)
				vale_client_close(&other);
		}
		vale_client_close(&cp);
		same(&other, &other);
		if (kinds[i].reg.nr_flags == 0 && kinds[i].reg.nr_mode == 0)
			ATF_CHECK_EQ(EBUSY, try(&cp, kinds[i].name,
			    kinds[i].reg));
		vale_client_close(&other);
		cp = open_reg(kinds[i].name, kinds[i].reg);
		vale_client_close(&cp);
	}
	/* Some of the first ones may have been waiting to be closed. */
	wait_until(descriptors(valed) <= fds, "%u, not %u",
	    descriptors(valed), fds);
	close(fd);
	vale_client_close(&of);
}

TEST_PROGRAM
