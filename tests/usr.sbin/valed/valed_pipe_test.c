/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Pipes as valed sees them: how many there are, and what programs that are
 * killed, hostile or in a hurry leave there.  netmap_pipe_test has what passes
 * through.
 */

#include <sys/param.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/systm.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
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

/* Pipes in one memory: vale_memory.h. */
#define	PIPES	32

/* Open a port or an end.  Returns 0 or an errno. */
static int
try(struct vale_client_port *cp, const char *name, uint32_t tx_slots,
    uint32_t rx_slots, char why[128])
{
	return (valed_try(cp, geteuid(), name, (struct nmreq_register){
	    .nr_tx_slots = tx_slots, .nr_rx_slots = rx_slots }, -1, why));
}

static struct vale_client_port
client(const char *name, uint32_t slots)
{
	return (valed_open(geteuid(), name, (struct nmreq_register){
	    .nr_tx_slots = slots, .nr_rx_slots = slots }, -1));
}

/* The same, as soon as there is a place. */
static struct vale_client_port
client_later(const char *name, uint32_t slots)
{
	struct vale_client_port cp;
	char why[128];
	int error = 0;

	wait_until((error = try(&cp, name, slots, slots, why)) != ENOSPC,
	    "%s", why);
	ATF_REQUIRE_MSG(error == 0, "%s: %s", name, why);
	return (cp);
}

static void
refused(const char *name, uint32_t tx_slots, uint32_t rx_slots, int error,
    const char *words)
{
	struct vale_client_port cp;
	char why[128];

	ATF_CHECK_EQ_MSG(error, try(&cp, name, tx_slots, rx_slots, why),
	    "%s: %s", name, why);
	ATF_CHECK_MSG(strstr(why, words) != NULL, "%s: %s", name, why);
}

static void
descriptor_count(const char *path __unused, const char *what, void *arg)
{
	*(unsigned int *)arg += strncmp(what, "socket:", 7) == 0 ||
	    strncmp(what, "/memfd:", 7) == 0;
}

/*
 * The sockets and memory that are open in valed.  At first that may be one
 * more, which valed_run() has connected and closed.
 */
static unsigned int
descriptors(pid_t pid)
{
	unsigned int n = 0;

	valed_descriptors(pid, descriptor_count, &n);
	return (n);
}

/* Mappings of ports' memory. */
static unsigned int
mappings(pid_t pid)
{
	char line[512], path[32];
	unsigned int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "r");
	ATF_REQUIRE(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL)
		n += strstr(line, "memfd:vale") != NULL;
	fclose(f);
	return (n);
}

PID_TEST(many, "A memory has places for so many pipes, which are used again")
{
	struct vale_client_port a[PIPES], b;
	unsigned int before = descriptors(valed), i;
	char name[32];

	for (i = 0; i < PIPES; i++) {
		snprintf(name, sizeof(name), "vale0:x{%u", i);
		a[i] = client(name, 8);
		ATF_CHECK_EQ(a[0].cp_reg.nr_mem_id, a[i].cp_reg.nr_mem_id);
	}
	refused("vale0:x{more", 8, 8, ENOSPC, "32 at most");
	b = client("vale0:y{more", 8);
	vale_client_close(&b);
	/* With other slots, buffers that are elsewhere could be lost. */
	vale_client_close(&a[7]);
	refused("vale0:x{more", 4, 4, ENOSPC, "32 at most");
	refused("vale0:x{more", 8, 4, ENOSPC, "32 at most");
	refused("vale0:x{more", 4, 8, ENOSPC, "32 at most");
	a[7] = client_later("vale0:x{more", 8);
	for (i = 0; i < PIPES; i++)
		vale_client_close(&a[i]);
	wait_until(descriptors(valed) <= before, "%u, at first %u",
	    descriptors(valed), before);
	/* A new memory. */
	a[0] = client("vale0:x{0", 16);
	vale_client_close(&a[0]);
}

PID_TEST(sparse, "Memory for pipes that there are not is not used, nor mapped "
    "by valed without a port")
{
	struct vale_client_port a = client("vale0:x{1", 0), port;
	struct stat st;

	ATF_CHECK_EQ(0, mappings(valed));
	ATF_REQUIRE_EQ(0, fstat(a.cp_memory, &st));
	ATF_CHECK(st.st_size > 100 << 20);
	/* The rings' four times 16 KB. */
	ATF_CHECK_MSG(st.st_blocks * 512 < 256 * 1024, "%jd",
	    (intmax_t)st.st_blocks);
	port = client("vale0:x", 0);
	ATF_CHECK_EQ(a.cp_reg.nr_mem_id, port.cp_reg.nr_mem_id);
	ATF_CHECK_EQ(1, mappings(valed));
	ATF_REQUIRE_EQ(0, fstat(a.cp_memory, &st));
	ATF_CHECK(st.st_blocks * 512 < 512 * 1024);
	/* Nobody can change its size. */
	ATF_CHECK_EQ(-1, ftruncate(a.cp_memory, 4096));
	ATF_CHECK_EQ(-1, ftruncate(a.cp_memory, 1 << 30));
	vale_client_close(&port);
	vale_client_close(&a);
}

/* Send frames into a pipe, or take them out, until killed. */
static void __dead2
flood(unsigned int i)
{
	struct vale_client_port cp;
	struct netmap_ring *ring;
	char why[128];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (try(&cp, i % 2 == 0 ? "vale0:f{1" : "vale0:f}1", 64, 64, why) !=
	    0)
		sched_yield();
	for (;;) {
		ring = cp.cp_ring[0].vcr_txring;
		while (!nm_ring_empty(ring)) {
			ring->slot[ring->head].len = 60;
			ring->head = ring->cur = nm_ring_next(ring,
			    ring->head);
		}
		if (vale_client_txsync(&cp, 0) == -1 ||
		    vale_client_rxsync(&cp, 0) == -1)
			_exit(1);
		ring = cp.cp_ring[0].vcr_rxring;
		ring->head = ring->cur = ring->tail;
		sched_yield();
	}
}

PID_TEST(killed, "Ends whose programs are killed leave a pipe that works, and "
    "nothing in valed; ports miss no frame")
{
	const unsigned int before = descriptors(valed);
	struct vale_client_port cp;
	unsigned int i, j, seq = 0;
	struct vale_desc *a, *b;
	pid_t pid[2] = { -1, -1 };
	int status;

	a = t_open("vale0:a", 64, 64);
	b = t_open("vale0:b", 64, 64);
	t_send(b, 60, EVERYBODY, 2, 0);
	t_expect(a, 60, 2, 0);
	for (i = 0; i < 300; i++) {
		j = i % 2;
		if (pid[j] != -1) {
			kill(pid[j], SIGKILL);
			ATF_REQUIRE_EQ(pid[j], waitpid(pid[j], &status, 0));
			/* It had found nothing wrong. */
			ATF_CHECK(WIFSIGNALED(status));
		}
		pid[j] = fork();
		ATF_REQUIRE(pid[j] != -1);
		if (pid[j] == 0)
			flood(j);
		for (j = 0; j < 20; j++) {
			t_send(a, 60, 2, 1, seq);
			t_expect(b, 60, 1, seq++);
		}
	}
	for (i = 0; i < 2; i++) {
		kill(pid[i], SIGKILL);
		ATF_REQUIRE_EQ(pid[i], waitpid(pid[i], &status, 0));
	}
	T_COUNT(b, RX_DROP_FULL, 0);
	vale_close(a);
	vale_close(b);
	wait_until(descriptors(valed) <= before && mappings(valed) == 0,
	    "%u, at first %u", descriptors(valed), before);
	cp = client("vale0:f{1", 8);
	ATF_CHECK_EQ(7, nm_ring_space(cp.cp_ring[0].vcr_txring));
	vale_client_close(&cp);
}

PID_TEST(scribbled, "A program that writes anything to the memory of a pipe "
    "disturbs no port but that one, and the pipe can be opened")
{
	struct vale_client_port bad = client("vale1:bad{1", 8), end, port;
	const uint64_t words = bad.cp_reg.nr_memsize / sizeof(uint32_t);
	const uint64_t rings = 8192, pipe = bad.cp_reg.nr_offset /
	    sizeof(uint32_t) - 256;
	uint32_t i, k, seed = 11, *p = (uint32_t *)(void *)bad.cp_base;
	struct vale_desc *a, *b;

	port = client("vale1:bad", 0);
	ATF_REQUIRE_EQ(bad.cp_reg.nr_mem_id, port.cp_reg.nr_mem_id);
	a = t_open("vale0:a", 64, 64);
	b = t_open("vale0:b", 64, 64);
	t_send(b, 60, EVERYBODY, 2, 0);
	t_expect(a, 60, 2, 0);
	for (i = 0; i < 500; i++) {
		for (k = 0; k < 64; k++)
			atomic_store_32(&p[k % 3 == 0 ?
			    test_below(&seed, words) :
			    (k % 3 == 1 ? pipe : 0) +
			    test_below(&seed, rings)],
			    test_chance(&seed, 1, 2) ?
			    test_below(&seed, 2000) : test_random(&seed));
		(void)send(port.cp_ring[0].vcr_tx_kick, "", 1, MSG_DONTWAIT);
		if (try(&end, "vale1:bad}1", 0, 0, (char[128]){ 0 }) == 0) {
			(void)vale_client_txsync(&end, 0);
			(void)vale_client_rxsync(&end, 0);
			vale_client_close(&end);
		}
		t_send(a, 60, 2, 1, i);
		t_expect(b, 60, 1, i);
	}
	/* Holes. */
	ATF_REQUIRE_EQ(0, fallocate(bad.cp_memory,
	    FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
	    bad.cp_reg.nr_memsize));
	vale_client_close(&port);
	vale_client_close(&bad);
	/* What is initialized again is in order. */
	wait_until(try(&bad, "vale1:bad{1", 8, 8, (char[128]){ 0 }) == 0,
	    "%s", strerror(errno));
	ATF_CHECK_EQ(7, nm_ring_space(bad.cp_ring[0].vcr_txring));
	ATF_CHECK_EQ(0, vale_client_txsync(&bad, 0));
	ATF_CHECK_EQ(0, vale_client_rxsync(&bad, 0));
	vale_client_close(&bad);
	vale_close(a);
	vale_close(b);
}

/* Open ends and the port of one name, again and again. */
static void *
hurry(void *arg)
{
	static const char *const names[] = { "vale0:h{1", "vale0:h}1",
	    "vale0:h", "vale0:h{2" };
	struct vale_client_port cp;
	uint32_t seed = *(uint32_t *)arg;
	unsigned int i, opened = 0;
	char why[128];
	int error;

	for (i = 0; i < 500; i++) {
		error = try(&cp, names[test_below(&seed, nitems(names))], 16,
		    16, why);
		ATF_CHECK_MSG(error == 0 || error == EBUSY, "%s", why);
		if (error == 0) {
			opened++;
			ATF_CHECK_EQ(15, nm_ring_space(
			    cp.cp_ring[0].vcr_txring));
			vale_client_close(&cp);
		}
	}
	ATF_CHECK(opened > 0);
	return (NULL);
}

PID_TEST(hurries, "Ends and their port are opened and closed by several at the "
    "same time, and nothing is left")
{
	const unsigned int before = descriptors(valed);
	uint32_t seeds[] = { 1, 22, 333, 4444 };
	pthread_t thread[nitems(seeds)];
	unsigned int i;

	for (i = 0; i < nitems(seeds); i++)
		ATF_REQUIRE_EQ(0, pthread_create(&thread[i], NULL, hurry,
		    &seeds[i]));
	for (i = 0; i < nitems(seeds); i++)
		ATF_REQUIRE_EQ(0, pthread_join(thread[i], NULL));
	wait_until(descriptors(valed) <= before && mappings(valed) == 0,
	    "%u, at first %u", descriptors(valed), before);
}

TEST_PROGRAM
