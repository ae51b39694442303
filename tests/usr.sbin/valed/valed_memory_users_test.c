/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Whose memory a port or pipe is in, with programs of two users and of root:
 * who gets it, by which number, name or descriptor, and what that shows.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/systm.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "test.h"
#include "vale_client.h"
#include "valed_run.h"
#include "wait_until.h"

/* Users: the connection of a process is that of its effective user. */
static const uid_t users[] = { 0, 61001, 61002 };
#define	A	61001
#define	B	61002

#define	OPEN(uid, name, ...)						\
	valed_open(uid, name, (struct nmreq_register){ __VA_ARGS__ }, -1)

/* It is refused with one line that has these words. */
static void
refused(uid_t uid, const char *name, struct nmreq_register reg, int proof,
    int error, const char *words)
{
	struct vale_client_port cp;
	char why[128] = "";
	int r = valed_try(&cp, uid, name, reg, proof, why);

	ATF_CHECK_EQ_MSG(error, r, "%u, %s: %d %s", uid, name, r, why);
	ATF_CHECK_MSG(strstr(why, words) != NULL && strchr(why, '\n') == NULL,
	    "%u, %s: %s", uid, name, why);
	if (r == 0)
		vale_client_close(&cp);
}

#define	REFUSED(uid, name, error, words, ...)				\
	refused(uid, name, (struct nmreq_register){ __VA_ARGS__ }, -1,	\
	    error, words)

/* VALE_WIRE_INFO of a name, or of memory `id'.  0 or an errno. */
static int
info_get(uid_t uid, const char *name, unsigned int id,
    struct nmreq_port_info_get *info)
{
	struct nmreq_header hdr = { .nr_version = NETMAP_API,
	    .nr_reqtype = VALE_WIRE_INFO };
	struct vale_client_call call = { .hdr = &hdr, .body = info,
	    .size = sizeof(*info), .reply = info,
	    .reply_max = sizeof(*info) };
	int error, fd = valed_dial(uid);

	*info = (struct nmreq_port_info_get){ .nr_mem_id = id };
	snprintf(hdr.nr_name, sizeof(hdr.nr_name), "%s", name);
	error = vale_client_call(fd, &call) == 0 ? 0 : errno;
	close(fd);
	return (error);
}

static bool
same_memory(const struct vale_client_port *a, const struct vale_client_port *b)
{
	char *at = a->cp_base + a->cp_bufs;

	*at ^= 1;
	if (b->cp_base[at - a->cp_base] != *at)
		return (false);
	*at ^= 1;
	return (b->cp_base[at - a->cp_base] == *at);
}

/* What a user can do with the number of memory, own or another's. */
static void
by_number(uid_t uid, const struct vale_client_port *port, bool own)
{
	const unsigned int id = port->cp_reg.nr_mem_id;
	struct nmreq_port_info_get info;
	struct vale_client_port cp;

	if (!own) {
		REFUSED(uid, "x", EPERM, "another user's", .nr_mem_id = id,
		    .nr_mode = NR_REG_NULL);
		REFUSED(uid, "any{1", EPERM, "another user's",
		    .nr_mem_id = id);
		ATF_CHECK_EQ(EPERM, info_get(uid, "", id, &info));
		return;
	}
	cp = OPEN(uid, "x", .nr_mem_id = id, .nr_mode = NR_REG_NULL);
	ATF_CHECK(same_memory(port, &cp));
	vale_client_close(&cp);
	cp = OPEN(uid, "any{1", .nr_mem_id = id);
	ATF_CHECK(same_memory(port, &cp));
	vale_client_close(&cp);
	ATF_CHECK_EQ(0, info_get(uid, "", id, &info));
	ATF_CHECK_EQ(port->cp_reg.nr_memsize, info.nr_memsize);
}

/* What it can do with a descriptor of it. */
static void
by_descriptor(uid_t uid, const struct vale_client_port *port)
{
	const unsigned int id = port->cp_reg.nr_mem_id;
	const struct nmreq_register null = { .nr_mode = NR_REG_NULL,
	    .nr_mem_id = id };
	struct vale_client_port cp;

	cp = valed_open(uid, "x", null, port->cp_memory);
	ATF_CHECK(same_memory(port, &cp));
	vale_client_close(&cp);
	/* It names the memory, too. */
	cp = valed_open(uid, "x", (struct nmreq_register){
	    .nr_mode = NR_REG_NULL }, port->cp_memory);
	ATF_CHECK(same_memory(port, &cp));
	vale_client_close(&cp);
}

PID_TEST(numbers, "Memory is had by its number only by its user, root is no "
    "exception, or by who has a descriptor of it")
{
	struct vale_client_port port, other;
	unsigned int i, k;
	int fd;

	valed_needs_users();
	for (i = 0; i < nitems(users); i++) {
		port = OPEN(users[i], "vale0:p");
		for (k = 0; k < nitems(users); k++) {
			by_number(users[k], &port, i == k);
			by_descriptor(users[k], &port);
		}
		/* No proof: another memory, another file, two descriptors. */
		k = (i + 1) % nitems(users);
		other = OPEN(users[k], "vale0:other");
		refused(users[k], "x", (struct nmreq_register){
		    .nr_mode = NR_REG_NULL,
		    .nr_mem_id = port.cp_reg.nr_mem_id }, other.cp_memory,
		    EPERM, "no descriptor of it");
		refused(users[k], "x{1", (struct nmreq_register){
		    .nr_mem_id = port.cp_reg.nr_mem_id }, port.cp_window,
		    EPERM, "no descriptor of it");
		fd = open("/dev/null", O_RDONLY);
		refused(users[k], "x{1", (struct nmreq_register){
		    .nr_mem_id = port.cp_reg.nr_mem_id }, fd,
		    EPERM, "no descriptor of it");
		close(fd);
		vale_client_close(&other);
		vale_client_close(&port);
	}
	/* Numbers of none. */
	REFUSED(A, "x", EINVAL, "no memory 321", .nr_mode = NR_REG_NULL,
	    .nr_mem_id = 321);
	REFUSED(A, "x", EINVAL, "no memory 322", .nr_mode = NR_REG_NULL,
	    .nr_mem_id = 322);
}

PID_TEST(names, "Pipes of one name are two for two users, who do not meet; one "
    "of another's port is refused, also to root")
{
	struct vale_client_port a, b, port, again;
	struct nmreq_port_info_get info;
	unsigned int i;

	valed_needs_users();
	a = OPEN(A, "vale0:x{1", .nr_tx_slots = 8);
	b = OPEN(B, "vale0:x{1", .nr_tx_slots = 16);
	ATF_CHECK(!same_memory(&a, &b));
	ATF_CHECK_EQ(0, info_get(A, "vale0:x{1", 0, &info));
	ATF_CHECK_EQ(8, info.nr_tx_slots);
	ATF_CHECK_EQ(0, info_get(B, "vale0:x}1", 0, &info));
	ATF_CHECK_EQ(16, info.nr_rx_slots);
	ATF_CHECK_EQ(b.cp_reg.nr_mem_id, info.nr_mem_id);
	/* To others there is none: what it would have if they opened it. */
	ATF_CHECK_EQ(0, info_get(0, "vale0:x{1", 0, &info));
	ATF_CHECK_EQ(0, info.nr_mem_id);
	ATF_CHECK_EQ(1024, info.nr_tx_slots);
	/* The port is in the memory of its user's pipes. */
	port = OPEN(A, "vale0:x");
	ATF_CHECK(same_memory(&a, &port));
	ATF_CHECK(!same_memory(&b, &port));
	REFUSED(0, "vale0:x{2", EPERM, "another user's", .nr_mem_id = 0);
	REFUSED(0, "vale0:x}1", EPERM, "another user's", .nr_mem_id = 0);
	ATF_CHECK_EQ(0, info_get(0, "vale0:x{2", 0, &info));
	ATF_CHECK_EQ(0, info.nr_mem_id);
	/* B goes on in its own. */
	again = OPEN(B, "vale0:x}1");
	ATF_CHECK(same_memory(&b, &again));
	vale_client_close(&again);
	vale_client_close(&b);
	/* Its own are there until valed has seen that. */
	wait_until(info_get(B, "vale0:x{1", 0, &info) == 0 &&
	    info.nr_mem_id == 0, "memory %u", info.nr_mem_id);
	REFUSED(B, "vale0:x{1", EPERM, "another user's", .nr_mem_id = 0);
	/* Who opens the port next does not get that memory. */
	vale_client_close(&port);
	for (i = 0; i < nitems(users); i++) {
		port = OPEN(users[i], "vale0:x");
		ATF_CHECK_EQ(users[i] == A, same_memory(&a, &port));
		vale_client_close(&port);
	}
	vale_client_close(&a);
}

/* Send a frame of 60 bytes from one end, and take it at the other. */
static void
pass(struct vale_client_port *from, struct vale_client_port *to, char c)
{
	struct netmap_ring *tx = from->cp_ring[0].vcr_txring;
	struct netmap_ring *rx = to->cp_ring[0].vcr_rxring;

	memset(NETMAP_BUF(tx, tx->slot[tx->head].buf_idx), c, 60);
	tx->slot[tx->head].len = 60;
	tx->head = tx->cur = nm_ring_next(tx, tx->head);
	ATF_REQUIRE_EQ(0, vale_client_txsync(from, 0));
	ATF_REQUIRE_EQ(0, vale_client_rxsync(to, 0));
	ATF_REQUIRE_EQ(1, nm_ring_space(rx));
	ATF_CHECK_EQ(60, rx->slot[rx->head].len);
	ATF_CHECK_EQ(c, *NETMAP_BUF(rx, rx->slot[rx->head].buf_idx));
	rx->head = rx->cur = rx->tail;
	ATF_REQUIRE_EQ(0, vale_client_rxsync(to, 0));
}

PID_TEST(passed, "Who was passed a descriptor of another's memory has pipes "
    "with its user")
{
	struct vale_client_port port, a, b;

	valed_needs_users();
	port = OPEN(A, "vale0:x");
	b = valed_open(B, "vale0:x{1", (struct nmreq_register){
	    .nr_tx_slots = 8 }, port.cp_memory);
	a = OPEN(A, "vale0:x}1");
	ATF_CHECK(same_memory(&port, &b));
	ATF_CHECK_EQ(8, a.cp_reg.nr_rx_slots);
	pass(&b, &a, 'b');
	pass(&a, &b, 'a');
	/* The same end is taken, whoever asks; and B needs it each time. */
	refused(B, "vale0:x{1", (struct nmreq_register){ .nr_mem_id = 0 },
	    port.cp_memory, EBUSY, "open already");
	REFUSED(A, "vale0:x{1", EBUSY, "open already", .nr_mem_id = 0);
	vale_client_close(&b);
	REFUSED(B, "vale0:x{1", EPERM, "another user's", .nr_mem_id = 0);
	vale_client_close(&a);
	vale_client_close(&port);
}

PID_TEST(monitors, "A monitor's memory is had by no number and no descriptor, "
    "not even by its own user, but by its connection")
{
	struct vale_client_port port, m, n, cp;
	char name[NETMAP_REQ_IFNAMSIZ];
	struct nmreq_port_info_get info;
	unsigned int i, id;

	valed_needs_users();
	port = OPEN(A, "vale0:x");
	m = OPEN(A, "vale0:x", .nr_flags = NR_MONITOR_TX);
	n = OPEN(0, "vale0:x", .nr_flags = NR_MONITOR_RX);
	/* Programs tell memories by their numbers. */
	ATF_CHECK(m.cp_reg.nr_mem_id != port.cp_reg.nr_mem_id);
	ATF_CHECK(m.cp_reg.nr_mem_id != n.cp_reg.nr_mem_id);
	for (i = 0; i < nitems(users); i++) {
		id = m.cp_reg.nr_mem_id;
		REFUSED(users[i], "x", EINVAL, "there is no memory",
		    .nr_mode = NR_REG_NULL, .nr_mem_id = id);
		refused(users[i], "x", (struct nmreq_register){
		    .nr_mode = NR_REG_NULL, .nr_mem_id = id }, m.cp_memory,
		    EINVAL, "there is no memory");
		refused(users[i], "x", (struct nmreq_register){
		    .nr_mode = NR_REG_NULL }, m.cp_memory, EINVAL,
		    "no memory is named");
		cp = valed_open(users[i], "any{1", (struct nmreq_register){
		    .nr_mem_id = 0 }, n.cp_memory);
		ATF_CHECK(!same_memory(&n, &cp));
		vale_client_close(&cp);
		ATF_CHECK_EQ(EINVAL, info_get(users[i], "", id, &info));
		ATF_CHECK_EQ(EINVAL, info_get(users[i], "",
		    n.cp_reg.nr_mem_id, &info));
	}
	/* No number is that of a monitor. */
	for (id = 2; id < 1000; id++)
		if (valed_try(&cp, A, "x", (struct nmreq_register){
		    .nr_mode = NR_REG_NULL, .nr_mem_id = id }, -1, NULL) ==
		    0) {
			ATF_CHECK_EQ(port.cp_reg.nr_mem_id, id);
			vale_client_close(&cp);
		}
	ATF_REQUIRE_EQ(0, vale_client_share(&cp, dup(m.cp_fd), name));
	ATF_CHECK(same_memory(&m, &cp));
	vale_client_close(&cp);
	vale_client_close(&m);
	vale_client_close(&n);
	vale_client_close(&port);
}

TEST_PROGRAM
