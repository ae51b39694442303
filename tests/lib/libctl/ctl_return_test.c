/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What a port or a pipe leaves in its memory for the next one there: which slot
 * has which buffer.
 */

#include <sys/param.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "ctl_calls.h"
#include "fail_calls.h"
#include "test.h"
#include "vale_pipe.h"
#include "vale_shared.h"

#define	REG_SIZE	sizeof(struct nmreq_register)
#define	ALL		.nr_mode = NR_REG_ALL_NIC

static struct peer peers[2];
static struct peer *const one = &peers[0], *const two = &peers[1];

/* The buffer of a slot, in a file; and set it. */
static uint32_t
buf_at(int fd, size_t ring, uint32_t i)
{
	uint32_t buf;

	ATF_REQUIRE_EQ((ssize_t)sizeof(buf), pread(fd, &buf, sizeof(buf), ring +
	    offsetof(struct netmap_ring, slot) +
	    i * sizeof(struct netmap_slot)));
	return (buf);
}

static void
buf_set(int fd, size_t ring, uint32_t i, uint32_t buf)
{
	ATF_REQUIRE_EQ((ssize_t)sizeof(buf), pwrite(fd, &buf, sizeof(buf),
	    ring + offsetof(struct netmap_ring, slot) +
	    i * sizeof(struct netmap_slot)));
}

static void
word_set(int fd, size_t at, uint32_t word)
{
	ATF_REQUIRE_EQ((ssize_t)sizeof(word), pwrite(fd, &word, sizeof(word),
	    at));
}

/* Close an end whose window has these heads and tails. */
static void
leave(struct peer *p, const char *name, uint32_t tx_tail, uint32_t sent,
    uint32_t rx_tail, uint32_t released)
{
	const struct nmreq_register reg = OPEN(p, name, ALL);
	const uint32_t tx = reg.nr_tx_slots, rx = reg.nr_rx_slots;
	const int window = p->pe_fds[1];
	struct vale_window_layout wl;
	uint32_t i;

	vale_window_layout(&wl, 1, tx, rx);
	for (i = 0; i < tx; i++)
		buf_set(window, wl.wl_tx, i, 1000 + i);
	for (i = 0; i < rx; i++)
		buf_set(window, wl.wl_rx, i, 2000 + i);
	word_set(window, wl.wl_tx + offsetof(struct netmap_ring, tail),
	    tx_tail);
	word_set(window, wl.wl_rx + offsetof(struct netmap_ring, tail),
	    rx_tail);
	word_set(window, wl.wl_ring + offsetof(struct vale_window_ring,
	    vwr_sent), sent);
	word_set(window, wl.wl_ring + offsetof(struct vale_window_ring,
	    vwr_released), released);
	peer_renew(p);
}

/* Which slots of a ring of `n' have been left: a bit for each. */
static unsigned int
left(int memory, size_t ring, uint32_t n, uint32_t first_buf)
{
	unsigned int bits = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		if (buf_at(memory, ring, i) == first_buf + i) {
			bits |= 1 << i;
			buf_set(memory, ring, i, 0);
		}
	return (bits);
}

TEST(pipe_returns, "An end leaves the buffers of its slots, from its head to "
    "its tail, and no others; and nothing that is out of its ring")
{
	static const struct {
		uint32_t	first, tail;	/* of 8 slots */
		unsigned int	slots;
	} rows[] = {
		{ 0, 0, 0 }, { 0, 1, 0x01 }, { 0, 7, 0x7f }, { 3, 5, 0x18 },
		{ 7, 0, 0x80 }, { 5, 2, 0xe3 }, { 1, 0, 0xfe },
		{ 8, 2, 0 }, { 2, 8, 0 }, { 9, 9, 0 }, { UINT32_MAX, 1, 0 },
		{ 1, UINT32_MAX, 0 }, { 7, 7, 0 },
	};
	static const uint32_t slots[2] = { 8, 8 };
	static const char *const names[] = { "vale0:a{1", "vale0:a}1" };
	struct vale_pipe_layout pl;
	unsigned int end, i;
	size_t at;
	int memory;

	vale_pipe_layout(&pl, slots);
	peers_connect(peers, 2);
	for (end = 0; end < 2; end++) {
		OPEN(two, names[!end], ALL, .nr_tx_slots = 8,
		    .nr_rx_slots = 8);
		memory = two->pe_fds[0];
		at = two->pe_cc->cc_grant.gr_pipe->cpi_at;
		for (i = 0; i < nitems(rows); i++) {
			leave(one, names[end], rows[i].tail, rows[i].first, 0,
			    0);
			ATF_CHECK_EQ_MSG(rows[i].slots, left(memory, at +
			    pl.pl_tx[end], 8, 1000), "%u tx", i);
			ATF_CHECK_EQ(0, left(memory, at + pl.pl_rx[end], 8,
			    2000));
			leave(one, names[end], 0, 0, rows[i].tail,
			    rows[i].first);
			ATF_CHECK_EQ_MSG(rows[i].slots, left(memory, at +
			    pl.pl_rx[end], 8, 2000), "%u rx", i);
			ATF_CHECK_EQ(0, left(memory, at + pl.pl_tx[end], 8,
			    1000));
		}
		fail_calls("pread", 1, 1);
		leave(one, names[end], 5, 0, 5, 0);
		ATF_CHECK_EQ(1, fail_calls_end());
		ATF_CHECK_EQ(0, left(memory, at + pl.pl_tx[end], 8, 1000));
		fail_calls("malloc", 1, 1);
		leave(one, names[end], 5, 0, 5, 0);
		ATF_CHECK_EQ(1, fail_calls_end());
		ATF_CHECK_EQ(0, left(memory, at + pl.pl_rx[end], 8, 2000));
		peer_renew(two);
	}
	peers_close(peers, 2);
}

TEST(pipe_inits, "A pipe begins with buffers of its own; one in the place of "
    "another has those that are valid")
{
	static const uint32_t slots[2] = { 8, 4 };
	struct vale_pipe_layout pl;
	struct vale_memory *mm;
	uint32_t i, max, own;
	size_t at;

	vale_pipe_layout(&pl, slots);
	peers_connect(peers, 2);
	OPEN(two, "vale0:a", ALL);
	OPEN(one, "vale0:a{1", ALL, .nr_tx_slots = 8, .nr_rx_slots = 4);
	mm = one->pe_cc->cc_grant.gr_memory;
	at = one->pe_cc->cc_grant.gr_pipe->cpi_at;
	own = (at + pl.pl_bufs - mm->mm_bufs) / 2048;
	max = (mm->mm_used - mm->mm_bufs) / 2048;
	for (i = 0; i < 8; i++)
		ATF_CHECK(buf_at(one->pe_fds[0], at + pl.pl_tx[0], i) >= own &&
		    buf_at(one->pe_fds[0], at + pl.pl_tx[0], i) < own + 12);
	buf_set(two->pe_fds[0], at + pl.pl_tx[0], 1, max - 1);
	buf_set(two->pe_fds[0], at + pl.pl_tx[0], 2, max);
	peer_renew(one);
	OPEN(one, "vale0:a{2", ALL, .nr_tx_slots = 8, .nr_rx_slots = 4);
	ATF_CHECK_EQ(max - 1, buf_at(one->pe_fds[0], at + pl.pl_tx[0], 1));
	ATF_CHECK(buf_at(one->pe_fds[0], at + pl.pl_tx[0], 2) < own + 12);
	peers_close(peers, 2);
}

TEST_PROGRAM
