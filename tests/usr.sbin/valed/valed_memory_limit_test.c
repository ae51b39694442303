/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * How much memory ports and pipes can make valed use, and how many places
 * connections take: limits of all, and of a user.
 */

#include <sys/param.h>
#include <sys/stat.h>
#include <sys/systm.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "test.h"
#include "vale_client.h"
#include "valed_run.h"
#include "wait_until.h"

#define	A		61001
#define	B		61002
#define	C		61003
#define	PORTS		16
#define	MB		(1024u * 1024)

/* As in ctl.h: the test is about the program. */
#define	PLACES		320
#define	PLACES_ADMIN	8
#define	PLACES_USER	156

/* Publish frames whose slots name every buffer that memory may have. */
static void
name_all(struct vale_client_port *cp)
{
	struct netmap_ring *ring = cp->cp_ring[0].vcr_txring;
	uint32_t idx = VALE_BUF_FIRST;

	while (idx < cp->cp_nbufs) {
		for (; !nm_ring_empty(ring) && idx < cp->cp_nbufs; idx++) {
			ring->slot[ring->head].buf_idx = idx;
			ring->slot[ring->head].len = 60;
			ring->head = ring->cur = nm_ring_next(ring,
			    ring->head);
		}
		ATF_REQUIRE_EQ(0, vale_client_txsync(cp, 0));
		wait_until(vale_client_txsync(cp, 0) == 0 &&
		    nm_ring_space(ring) == ring->num_slots - 1, "%u", idx);
	}
}

/* Memory of which valed has a descriptor. */
struct memory {
	ino_t		seen[4096];
	unsigned int	n;
	uint64_t	bytes;
};

static void
memory_count(const char *path, const char *what, void *arg)
{
	struct memory *m = arg;
	struct stat st;
	unsigned int i;

	if (strncmp(what, "/memfd:vale", strlen("/memfd:vale")) != 0 ||
	    stat(path, &st) == -1)
		return;
	for (i = 0; i < m->n; i++)
		if (m->seen[i] == st.st_ino)
			return;
	ATF_REQUIRE(m->n < nitems(m->seen));
	m->seen[m->n++] = st.st_ino;
	m->bytes += (uint64_t)st.st_blocks * 512;
}

/* The bytes that it takes. */
static uint64_t
memory_used(pid_t pid)
{
	static struct memory m;

	m.n = 0;
	m.bytes = 0;
	valed_descriptors(pid, memory_count, &m);
	return (m.bytes);
}

/* A number of /proc/pid/status, in bytes. */
static uint64_t
status(pid_t pid, const char *key)
{
	char line[128], path[32];
	uint64_t kb = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	ATF_REQUIRE(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, key, strlen(key)) == 0)
			kb = strtoull(line + strlen(key) + 1, NULL, 10);
	fclose(f);
	return (kb * 1024);
}

/* Open as much as there may be, and have valed touch all of it. */
static unsigned int
fill(uid_t uid, struct vale_client_port *cp, const char *option)
{
	const struct nmreq_register big = { .nr_tx_slots = 8192,
	    .nr_rx_slots = 8192, .nr_extra_bufs = 4096 };
	const struct nmreq_register pipe = { .nr_tx_slots = 4096,
	    .nr_rx_slots = 4096 };
	char name[32], why[128];
	unsigned int n, last, pipes = 0;
	int error = 0;

	for (n = 0; n < PORTS; n++) {
		snprintf(name, sizeof(name), "vale%u:p%u", uid, n);
		error = valed_try(&cp[n], uid, name, big, -1, why);
		if (error != 0)
			break;
	}
	ATF_REQUIRE_MSG(n > 0 && error == ENOMEM, "%u %s", n, why);
	ATF_CHECK_MSG(strstr(why, option) != NULL, "%s", why);
	/* Pipes of the first, until there is no more for them, either. */
	for (last = n; last < PORTS; last++) {
		snprintf(name, sizeof(name), "vale%u:p0{%u", uid, pipes++);
		error = valed_try(&cp[last], uid, name, pipe, -1, why);
		if (error != 0)
			break;
	}
	ATF_CHECK_MSG(error == ENOMEM && strstr(why, option) != NULL, "%s",
	    why);
	while (n-- > 0)
		name_all(&cp[n]);
	return (last);
}

static void memory_body(pid_t limited);

TEST(memory, "What valed can be made to touch is within the limits, of a user "
    "and of all; then that is refused with a line which names the option, and "
    "others go on")
{
	pid_t limited;

	valed_needs_users();
	valed_run_control = "control,mode=666,mem=310M,user_mem=120M";
	limited = valed_run(atf_tc_get_config_var(tc, "srcdir"));
	memory_body(limited);
	valed_end(limited);
}

static void
memory_body(pid_t limited)
{
	static struct vale_client_port a[PORTS], b[PORTS], r[PORTS];
	uint64_t before, private;
	unsigned int i, na, nb, nr;
	char why[128];

	before = status(limited, "RssAnon");
	na = fill(A, a, "user_mem=");
	ATF_CHECK(na >= 2);
	ATF_CHECK_MSG(memory_used(limited) <= 120 * MB, "%ju",
	    (uintmax_t)memory_used(limited));
	ATF_CHECK(memory_used(limited) > 60 * MB);
	/* Others have theirs. */
	nb = fill(B, b, "user_mem=");
	ATF_CHECK_EQ(na, nb);
	ATF_CHECK_MSG(memory_used(limited) <= 240 * MB, "%ju",
	    (uintmax_t)memory_used(limited));
	/* An administrator has what is left of all. */
	for (i = 0; i < na; i++)
		vale_client_close(&a[i]);
	nr = fill(0, r, "ports may not have more memory: mem=");
	ATF_CHECK(nr > 2);
	private = status(limited, "RssAnon") - before;
	ATF_CHECK_MSG(memory_used(limited) + private <= 310 * MB, "%ju %ju",
	    (uintmax_t)memory_used(limited), (uintmax_t)private);
	ATF_CHECK_EQ(ENOMEM, valed_try(&a[0], A, "vale0:x",
	    (struct nmreq_register){ .nr_tx_slots = 16384,
	    .nr_rx_slots = 16384 }, -1, why));
	ATF_CHECK_MSG(strstr(why, "ports may not have more memory: mem=") !=
	    NULL, "%s", why);
	/* What is given back can be had. */
	for (i = 0; i < nr; i++)
		vale_client_close(&r[i]);
	for (i = 0; i < nb; i++)
		vale_client_close(&b[i]);
	na = fill(A, a, "user_mem=");
	ATF_CHECK(na >= 2);
	for (i = 0; i < na; i++)
		vale_client_close(&a[i]);
	wait_until(memory_used(limited) == 0, "%ju",
	    (uintmax_t)memory_used(limited));
}

/* Whether the connection has a place. */
static bool
served(int fd)
{
	struct nmreq_vale_list list = { .nr_bridge_idx = 0 };
	struct nmreq_header hdr = { .nr_version = NETMAP_API,
	    .nr_reqtype = NETMAP_REQ_VALE_LIST };
	struct vale_client_call call = { .hdr = &hdr, .body = &list,
	    .size = sizeof(list), .reply = &list, .reply_max = sizeof(list) };

	return (vale_client_call(fd, &call) == 0 || errno == ENOENT);
}

/* Connect until that fails.  Returns how often it did not. */
static unsigned int
crowd(uid_t uid, int fds[PLACES + 1])
{
	unsigned int n;

	for (n = 0; n <= PLACES; n++) {
		fds[n] = valed_dial(uid);
		if (!served(fds[n])) {
			close(fds[n]);
			break;
		}
	}
	return (n);
}

PID_TEST(places, "A user has half of the places of programs, and programs "
    "leave some to administrators")
{
	static int a[PLACES + 1], b[PLACES + 1], c[PLACES + 1], r[PLACES + 1];
	unsigned int na, nb, nr;

	valed_needs_users();
	/* The connection of valed_run() may still have one. */
	na = crowd(A, a);
	ATF_CHECK_EQ(PLACES_USER, na);
	nb = crowd(B, b);
	ATF_CHECK_EQ(PLACES_USER, nb);
	ATF_CHECK_EQ(0, crowd(C, c));
	nr = crowd(0, r);
	ATF_CHECK(nr == PLACES_ADMIN || nr == PLACES_ADMIN - 1);
	/* A place that is given up can be had by any other. */
	close(a[0]);
	ATF_CHECK_EQ(1, crowd(C, c));
	close(c[0]);
	while (--na > 0)
		close(a[na]);
	while (nb-- > 0)
		close(b[nb]);
	while (nr-- > 0)
		close(r[nr]);
}

TEST_PROGRAM
