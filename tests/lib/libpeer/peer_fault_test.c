/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The handler of SIGBUS, with pages that are really gone: those of a file that
 * is truncated after it was mapped, as the handler does not look at seals, and
 * huge pages of which the system has none.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/systm.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "peer_fault.h"
#include "peer_mem.h"
#include "test.h"
#include "wrap.h"

#define	PAGE	PEER_MEM_PAGE
#define	RW		(PROT_READ | PROT_WRITE)
#define	HUGE	(2UL << 20)
#define	GPA	0x100000
#define	SIZE	(16 * PAGE)
#define	OWNERS	3

static struct peer_mem	dmas[OWNERS];
static int		lost[OWNERS];	/* calls */

static unsigned int	fixed_fail;	/* so many fixed mappings fail */

WRAP(void *, mmap, void *addr, size_t len, int prot, int flags, int fd,
    off_t offset)
{
	if ((flags & MAP_FIXED) != 0 && fixed_fail > 0) {
		fixed_fail--;
		errno = ENOMEM;
		return (MAP_FAILED);
	}
	return (__real_mmap(addr, len, prot, flags, fd, offset));
}

/* The compiler cannot tell that these copies are not needed. */
static void	*(*volatile copy)(void *, const void *, size_t) = memcpy;

static void
on_lost(void *arg)
{
	(*(int *)arg)++;
}

static void
on_pause(void *arg __attribute__((__unused__)),
    bool paused __attribute__((__unused__)))
{
}

static void
start(void)
{
	int i;

	errno = EIO;
	ATF_REQUIRE_EQ(0, peer_fault_init());
	for (i = 0; i < OWNERS; i++) {
		peer_mem_init(&dmas[i], 0, on_pause, NULL);
		ATF_REQUIRE_EQ(0, peer_fault_add(&dmas[i], on_lost, &lost[i]));
	}
}

/*
 * Map a file, then truncate it.  peer_mem_map() takes only files that cannot be
 * truncated; so the mapping is exchanged for that of another.
 */
static uint8_t *
vanishing(struct peer_mem *dma, off_t left)
{
	const char *why;
	uint8_t *p;
	int fd;

	fd = memfd_create("good", MFD_ALLOW_SEALING);
	ATF_REQUIRE(fd != -1 && ftruncate(fd, SIZE) == 0);
	ATF_REQUIRE_EQ(0, fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	ATF_REQUIRE_EQ(0, peer_mem_map(dma, fd, 0, GPA, SIZE, RW, &why));
	close(fd);
	p = peer_mem_addr(dma, GPA, SIZE, RW);
	ATF_REQUIRE(p != NULL);
	fd = memfd_create("bad", 0);
	ATF_REQUIRE(fd != -1 && ftruncate(fd, SIZE) == 0);
	ATF_REQUIRE(mmap(p, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED |
	    MAP_FIXED, fd, 0) == p);
	memset(p, 'x', SIZE);
	ATF_REQUIRE_EQ(0, ftruncate(fd, left));
	close(fd);
	return (p);
}

TEST(own, "A copy goes on when the pages that it reads or writes are gone")
{
	static uint8_t buf[SIZE];
	uint8_t *p, *q;
	uint64_t gpa;

	start();
	p = vanishing(&dmas[1], 2 * PAGE);
	q = vanishing(&dmas[2], SIZE);
	memset(p, 'y', PAGE);
	ATF_CHECK(!peer_mem_gone(&dmas[1], &gpa));
	/* Read over the edge; the page at hand is as it was. */
	memset(buf, 'z', sizeof(buf));
	copy(buf, p + PAGE, 5 * PAGE);
	ATF_CHECK_EQ('x', buf[0]);
	ATF_CHECK_EQ('x', buf[PAGE - 1]);
	ATF_CHECK_EQ(0, buf[PAGE]);
	ATF_CHECK_EQ(0, buf[5 * PAGE - 1]);
	ATF_CHECK_EQ('z', buf[5 * PAGE]);
	ATF_REQUIRE(peer_mem_gone(&dmas[1], &gpa));
	ATF_CHECK(gpa >= GPA + 2 * PAGE && gpa < GPA + 6 * PAGE);
	ATF_CHECK_EQ(4, lost[1]);
	ATF_CHECK_EQ(NULL, peer_mem_addr(&dmas[1], GPA, 1, RW));
	/* Write; what is written stays in this owner's page. */
	memset(p + 6 * PAGE, 'w', SIZE - 6 * PAGE);
	ATF_CHECK_EQ('w', p[2 * PAGE]);
	/* The others notice nothing. */
	ATF_CHECK_EQ(0, lost[0]);
	ATF_CHECK_EQ(0, lost[2]);
	ATF_CHECK_EQ('x', q[0]);
	ATF_CHECK(peer_mem_addr(&dmas[2], GPA, SIZE, RW) == q);
	ATF_CHECK(!peer_mem_gone(&dmas[2], &gpa));
	/* All of it is unmapped, and the next client has its memory. */
	peer_mem_reset(&dmas[1]);
	ATF_CHECK_EQ(-1, msync(p, SIZE, MS_ASYNC));
	p = vanishing(&dmas[1], SIZE);
	p[0] = p[SIZE - 1];
	ATF_CHECK_EQ(SIZE, (size_t)(peer_mem_addr(&dmas[1], GPA + SIZE - 1, 1,
	    RW) - (void *)p) + 1);
}

TEST(spare, "Each owner has a spare page of its own")
{
	uint8_t *p, *q;

	start();
	p = vanishing(&dmas[0], 0);
	q = vanishing(&dmas[1], 0);
	memset(p, 'p', SIZE);
	ATF_CHECK_EQ(0, q[0]);
	memset(q, 'q', SIZE);
	ATF_CHECK_EQ('p', p[SIZE - 1]);
	ATF_CHECK_EQ(SIZE / PAGE, lost[0]);
	ATF_CHECK_EQ(SIZE / PAGE, lost[1]);
}

/* Mappings of this process. */
static unsigned int
mappings(void)
{
	unsigned int n = 0;
	FILE *f;
	int c;

	f = fopen("/proc/self/maps", "r");
	ATF_REQUIRE(f != NULL);
	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return (n);
}

TEST(mappings, "Thousands of pages that are replaced do not use up the "
    "mappings of the process")
{
	enum { RANGES = 8, PAGES = 2000, BYTES = PAGES * PAGE };
	uint8_t *p[RANGES], word[16];
	const char *why;
	unsigned int before, i, j, n = 0;
	uint64_t gpa;
	int fd, gone;

	start();
	gone = memfd_create("gone", 0);
	ATF_REQUIRE(gone != -1);
	for (i = 0; i < RANGES; i++) {
		/* Ranges of one file would be one mapping. */
		fd = memfd_create("good", MFD_ALLOW_SEALING);
		ATF_REQUIRE(fd != -1 && ftruncate(fd, BYTES) == 0);
		ATF_REQUIRE_EQ(0, fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
		gpa = GPA + i * 2 * BYTES;
		ATF_REQUIRE_EQ(0, peer_mem_map(&dmas[1], fd, 0, gpa, BYTES,
		    RW, &why));
		p[i] = peer_mem_addr(&dmas[1], gpa, BYTES, RW);
		ATF_REQUIRE(mmap(p[i], BYTES, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_FIXED, gone, 0) == p[i]);
	}
	before = mappings();
	/* Every other page, and then accesses across two pages. */
	for (j = 0; j + 2 < PAGES; j += 2)
		for (i = 0; i < RANGES; i++) {
			p[i][j * PAGE] = 1;
			if (j % 100 == 0)
				n = MAX(n, mappings());
		}
	for (j = 1; j < PAGES; j++) {
		copy(word, p[j % RANGES] + j * PAGE - 8, sizeof(word));
		copy(p[j % RANGES] + j * PAGE - 8, p[(j + 1) % RANGES] +
		    (PAGES - j) * PAGE - 8, sizeof(word));
	}
	n = MAX(n, mappings());
	ATF_CHECK_MSG(n <= before + 200, "%u mappings, %u before", n, before);
	ATF_CHECK(lost[1] > RANGES * PAGES / 2);
	ATF_CHECK_EQ(0, lost[0] + lost[2]);
	peer_mem_reset(&dmas[1]);
	ATF_CHECK(mappings() <= before);
	for (i = 0; i < RANGES; i++)
		ATF_CHECK_EQ(-1, msync(p[i], BYTES, MS_ASYNC));
}

/* Other owners' ranges come and go while a thread faults. */
static uint32_t	stop;

static void *
churn(void *arg)
{
	struct peer_mem *dma = arg;
	const char *why;
	uint64_t i;
	int fd;

	fd = memfd_create("churn", MFD_ALLOW_SEALING);
	ATF_REQUIRE(fd != -1 && ftruncate(fd, 64 * PAGE) == 0);
	ATF_REQUIRE_EQ(0, fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	for (i = 0; atomic_load_32(&stop) == 0; i++) {
		ATF_REQUIRE_EQ(0, peer_mem_map(dma, fd, 0, (i % 64) << 20,
		    (1 + i % 7) * PAGE, RW, &why));
		if (i % 64 == 63)
			peer_mem_clear(dma);
	}
	close(fd);
	return (NULL);
}

TEST(threads, "The handler finds the right owner while other tables change")
{
	pthread_t thread[2];
	uint8_t *p;
	int i, n;

	start();
	for (i = 0; i < 2; i++)
		ATF_REQUIRE_EQ(0, pthread_create(&thread[i], NULL, churn,
		    &dmas[i]));
	for (n = 0; n < 200; n++) {
		p = vanishing(&dmas[2], 0);
		for (i = 0; i < SIZE; i += PAGE)
			p[i]++;
		ATF_REQUIRE_EQ((n + 1) * SIZE / PAGE, lost[2]);
		peer_mem_reset(&dmas[2]);
	}
	atomic_store_32(&stop, 1);
	for (i = 0; i < 2; i++) {
		ATF_REQUIRE_EQ(0, pthread_join(thread[i], NULL));
		ATF_CHECK_EQ(0, lost[i]);
	}
}

/* How a child ends that does `act' with the handler set. */
static int
ends(void (*act)(void))
{
	pid_t pid;
	int status;

	pid = fork();
	ATF_REQUIRE(pid != -1);
	if (pid == 0) {
		act();
		_exit(0);
	}
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	return (status);
}

static uint8_t *elsewhere, *guest;

static void
touch_elsewhere(void)
{
	*(volatile uint8_t *)elsewhere = 1;
}

static void
touch_guest(void)
{
	*(volatile uint8_t *)guest = 1;
}

/* Send SIGBUS to this process with any code, as only itself may. */
static void
send_code(int code, void *addr)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_signo = SIGBUS;
	info.si_code = code;
	info.si_addr = addr;
	syscall(SYS_rt_sigqueueinfo, getpid(), SIGBUS, &info);
}

static void
sent_raise(void)
{
	raise(SIGBUS);
}

static void
sent_kill(void)
{
	kill(getpid(), SIGBUS);
}

/* With what looks like an address of guest memory. */
static void
sent_queue(void)
{
	send_code(SI_QUEUE, guest);
}

static void
sent_user(void)
{
	send_code(SI_USER, guest);
}

TEST(elsewhere, "A SIGBUS elsewhere, or sent by a process, ends the process")
{
	void (*const sent[])(void) = { sent_raise, sent_kill, sent_queue,
	    sent_user };
	unsigned int i;
	int fd, status;

	start();
	guest = vanishing(&dmas[0], 0);
	fd = memfd_create("other", 0);
	ATF_REQUIRE(fd != -1 && ftruncate(fd, PAGE) == 0);
	elsewhere = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
	    0);
	ATF_REQUIRE(elsewhere != MAP_FAILED && ftruncate(fd, 0) == 0);
	status = ends(touch_guest);
	ATF_CHECK_EQ_MSG(0, status, "status %#x", status);
	status = ends(touch_elsewhere);
	ATF_CHECK_MSG(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS,
	    "status %#x", status);
	for (i = 0; i < nitems(sent); i++) {
		status = ends(sent[i]);
		ATF_CHECK_MSG(WIFSIGNALED(status) && WTERMSIG(status) ==
		    SIGBUS, "%u: status %#x", i, status);
	}
}

TEST(poisoned, "A page with a memory error is lost when it is accessed, and "
    "not before")
{
	uint8_t *p, *q;
	uint64_t gpa;

	start();
	p = vanishing(&dmas[1], SIZE);
	q = vanishing(&dmas[2], SIZE);
	/* Found by the system: nobody needs the page now. */
	send_code(BUS_MCEERR_AO, p + 3 * PAGE + 100);
	ATF_CHECK_EQ(0, lost[1]);
	ATF_CHECK_EQ('x', p[3 * PAGE + 100]);
	ATF_CHECK(!peer_mem_gone(&dmas[1], &gpa));
	/* Found by this thread. */
	send_code(BUS_MCEERR_AR, p + 3 * PAGE + 100);
	ATF_CHECK_EQ(1, lost[1]);
	ATF_REQUIRE(peer_mem_gone(&dmas[1], &gpa));
	ATF_CHECK_EQ(GPA + 3 * PAGE + 100, gpa);
	ATF_CHECK_EQ('x', p[3 * PAGE - 1]);
	ATF_CHECK_EQ(0, p[3 * PAGE]);
	ATF_CHECK_EQ(0, p[4 * PAGE - 1]);
	ATF_CHECK_EQ('x', p[4 * PAGE]);
	ATF_CHECK_EQ(NULL, peer_mem_addr(&dmas[1], GPA, 1, RW));
	ATF_CHECK_EQ(0, lost[2]);
	ATF_CHECK(peer_mem_addr(&dmas[2], GPA, SIZE, RW) == q);
}

TEST(no_mappings, "A copy goes on when no mapping can be split")
{
	static uint8_t buf[3 * PAGE];
	uint8_t *p;

	start();
	p = vanishing(&dmas[0], PAGE);
	fixed_fail = 1;
	errno = EDOM;
	copy(buf, p + 2 * PAGE + 5, 2 * PAGE);
	/* errno is the copy's, whatever the handler does. */
	ATF_CHECK_EQ(EDOM, errno);
	ATF_CHECK_EQ(1, lost[0]);
	ATF_CHECK_EQ(0, buf[0]);
	ATF_CHECK_EQ(0, buf[2 * PAGE - 1]);
	memset(p, 'w', SIZE);
	ATF_CHECK_EQ('w', p[SIZE - 1]);
	ATF_CHECK_EQ(1, lost[0]);
	peer_mem_reset(&dmas[0]);
	ATF_CHECK_EQ(-1, msync(p, SIZE, MS_ASYNC));
}

static void
touch_guest_no_memory(void)
{
	fixed_fail = 99;
	*(volatile uint8_t *)guest = 1;
}

TEST(no_memory, "The process ends if nothing can be mapped")
{
	int status;

	start();
	guest = vanishing(&dmas[0], 0);
	status = ends(touch_guest_no_memory);
	ATF_CHECK_MSG(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS,
	    "status %#x", status);
}

/* Descriptors; of those that a program it runs would not have, if cloexec. */
static int
count_fds(bool cloexec)
{
	int fd, flags, n;

	n = 0;
	for (fd = 0; fd < PEER_FAULT_MAX + 256; fd++) {
		flags = fcntl(fd, F_GETFD);
		n += flags != -1 && (!cloexec || (flags & FD_CLOEXEC) != 0);
	}
	return (n);
}

TEST(owners, "PEER_FAULT_MAX tables can be added; an error leaves nothing")
{
	static struct peer_mem dma[PEER_FAULT_MAX + 1];
	struct rlimit limit;
	int cloexec, fd, fds, i;

	for (i = 0; i < (int)nitems(dma); i++)
		peer_mem_init(&dma[i], 0, on_pause, NULL);
	fds = count_fds(false);
	cloexec = count_fds(true);
	fd = dup(0);
	close(fd);
	/* No descriptor. */
	limit.rlim_cur = fd;
	limit.rlim_max = PEER_FAULT_MAX + 256;
	ATF_REQUIRE_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	ATF_CHECK_EQ(EMFILE, peer_fault_add(&dma[0], on_lost, &lost[0]));
	limit.rlim_cur = limit.rlim_max;
	ATF_REQUIRE_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	/* No file of a page. */
	signal(SIGXFSZ, SIG_IGN);
	ATF_REQUIRE_EQ(0, getrlimit(RLIMIT_FSIZE, &limit));
	limit.rlim_cur = 0;
	ATF_REQUIRE_EQ(0, setrlimit(RLIMIT_FSIZE, &limit));
	ATF_CHECK_EQ(EFBIG, peer_fault_add(&dma[0], on_lost, &lost[0]));
	ATF_CHECK_EQ(fds, count_fds(false));
	limit.rlim_cur = limit.rlim_max;
	ATF_REQUIRE_EQ(0, setrlimit(RLIMIT_FSIZE, &limit));

	for (i = 0; i < PEER_FAULT_MAX; i++)
		ATF_REQUIRE_EQ(0, peer_fault_add(&dma[i], on_lost,
		    &lost[i == PEER_FAULT_MAX - 1]));
	ATF_CHECK_EQ(ENOSPC, peer_fault_add(&dma[i], on_lost, &lost[2]));
	ATF_CHECK_EQ(fds + PEER_FAULT_MAX, count_fds(false));
	ATF_CHECK_EQ(cloexec + PEER_FAULT_MAX, count_fds(true));
	/* The last one is found. */
	ATF_REQUIRE_EQ(0, peer_fault_init());
	*(volatile uint8_t *)vanishing(&dma[PEER_FAULT_MAX - 1], 0) = 1;
	ATF_CHECK_EQ(1, lost[1]);
	/* One leaves, and there is space for one. */
	peer_fault_remove(&dma[7]);
	peer_fault_remove(&dma[7]);
	ATF_CHECK_EQ(fds + PEER_FAULT_MAX - 1, count_fds(false));
	ATF_CHECK_EQ(0, peer_fault_add(&dma[i], on_lost, &lost[2]));
	ATF_CHECK_EQ(ENOSPC, peer_fault_add(&dma[7], on_lost, &lost[2]));
	*(volatile uint8_t *)vanishing(&dma[i], 0) = 1;
	ATF_CHECK_EQ(1, lost[2]);
}

static void
touch_removed(void)
{
	peer_fault_remove(&dmas[0]);
	*(volatile uint8_t *)guest = 1;
}

TEST(removed, "A table that is removed is not used; its slot gets a page "
    "without what was written there")
{
	struct peer_mem *dma;
	uint8_t *p;
	int status;

	start();
	p = vanishing(&dmas[0], 0);
	*p = 'a';
	ATF_CHECK_EQ(1, lost[0]);
	peer_mem_reset(&dmas[0]);
	peer_fault_remove(&dmas[0]);
	memset(&dmas[0], 0xff, sizeof(dmas[0]));
	/* The others are found, past the empty slot. */
	p = vanishing(&dmas[1], 0);
	*p = 'b';
	ATF_CHECK_EQ(1, lost[1]);
	dma = malloc(sizeof(*dma));
	ATF_REQUIRE(dma != NULL);
	peer_mem_init(dma, 0, on_pause, NULL);
	ATF_REQUIRE_EQ(0, peer_fault_add(dma, on_lost, &lost[2]));
	p = vanishing(dma, 0);
	ATF_CHECK_EQ(0, *p);
	ATF_CHECK_EQ(1, lost[2]);
	ATF_CHECK_EQ(1, lost[0]);
	peer_mem_reset(dma);
	peer_fault_remove(dma);
	free(dma);
	/* Without its owner, memory that vanishes ends the process. */
	peer_mem_init(&dmas[0], 0, on_pause, NULL);
	ATF_REQUIRE_EQ(0, peer_fault_add(&dmas[0], on_lost, &lost[0]));
	guest = vanishing(&dmas[0], 0);
	status = ends(touch_removed);
	ATF_CHECK_MSG(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS,
	    "status %#x", status);
}

/* Tables are added, removed and freed. */
static void *
come_and_go(void *arg)
{
	struct peer_mem *dma;
	uint64_t *rounds = arg;

	while (atomic_load_32(&stop) == 0) {
		dma = malloc(sizeof(*dma));
		ATF_REQUIRE(dma != NULL);
		peer_mem_init(dma, 0, on_pause, NULL);
		ATF_REQUIRE_EQ(0, peer_fault_add(dma, on_lost, &lost[0]));
		peer_fault_remove(dma);
		/* A handler that still looked would find a fault there. */
		memset(dma, 0xff, sizeof(*dma));
		free(dma);
		atomic_add_64(rounds, 1);
	}
	return (NULL);
}

TEST(removed_threads, "Tables are removed while a thread faults")
{
	pthread_t thread;
	uint64_t rounds = 0, seen;
	uint8_t *p;
	int i, n;

	start();
	/* The slot that changes is looked at before that of the fault. */
	peer_fault_remove(&dmas[0]);
	ATF_REQUIRE_EQ(0, pthread_create(&thread, NULL, come_and_go, &rounds));
	for (n = 0; n < 200; n++) {
		p = vanishing(&dmas[2], 0);
		for (i = 0; i < SIZE; i += PAGE)
			p[i]++;
		ATF_REQUIRE_EQ((n + 1) * SIZE / PAGE, lost[2]);
		peer_mem_reset(&dmas[2]);
		seen = atomic_load_64(&rounds);
		while (n % 10 == 0 && atomic_load_64(&rounds) == seen)
			sched_yield();
	}
	atomic_store_32(&stop, 1);
	ATF_REQUIRE_EQ(0, pthread_join(thread, NULL));
	ATF_CHECK_EQ(0, lost[0]);
}

TEST_PROGRAM
