/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A guest's memory whose pages the kernel takes away, and valed's handler of
 * SIGBUS (peer_fault.h).  This changes the whole machine, so it runs in a test
 * guest.
 *
 *	lost_page poison	two pages have a memory error, as if the
 *				hardware had found it: madvise(2),
 *				MADV_HWPOISON
 *	lost_page overcommit	a hole is punched, and vm.overcommit_memory=2
 *				refuses the page that would fill it
 *
 * The exit status is 0 if the copies went on with spare pages, and 77, after a
 * line with the reason, if the kernel cannot do it.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peer_mem.h"
#include "peer_fault.h"

#ifndef MADV_HWPOISON
#define	MADV_HWPOISON	100
#endif

#define	PAGE		PEER_MEM_PAGE
#define	RW		(PROT_READ | PROT_WRITE)
#define	PAGES		16
#define	SIZE		(PAGES * PAGE)
#define	GPA		0x100000
#define	CHUNK		(64 * 1024)	/* bytes */
#define	UNSUPPORTED	77		/* exit status */
#define	OVERCOMMIT	"/proc/sys/vm/overcommit_memory"

#define	REQUIRE(cond)							\
	do {								\
		if (!(cond))						\
			err(1, "%s:%d: %s", __FILE__, __LINE__, #cond);	\
	} while (0)

/* Two clients' memory.  All bytes are 'x'. */
static struct client {
	struct peer_mem	dma;
	int		fd;
	uint8_t		*ram;		/* as valed has it */
	int		lost;		/* calls */
} clients[2];

/* The compiler cannot tell that these copies are not needed. */
static void	*(*volatile copy)(void *, const void *, size_t) = memcpy;

static void
on_lost(void *arg)
{
	((struct client *)arg)->lost++;
}

static void
on_pause(void *arg __attribute__((__unused__)),
    bool paused __attribute__((__unused__)))
{
}

static void
connect_clients(void)
{
	struct client *c;
	const char *why;

	REQUIRE(peer_fault_init() == 0);
	for (c = clients; c < clients + nitems(clients); c++) {
		peer_mem_init(&c->dma, 0, on_pause, NULL);
		REQUIRE(peer_fault_add(&c->dma, on_lost, c) == 0);
		c->fd = memfd_create("guest", MFD_ALLOW_SEALING);
		REQUIRE(c->fd != -1 && ftruncate(c->fd, SIZE) == 0);
		REQUIRE(fcntl(c->fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
		REQUIRE(peer_mem_map(&c->dma, c->fd, 0, GPA, SIZE, RW,
		    &why) == 0);
		c->ram = peer_mem_addr(&c->dma, GPA, SIZE, RW);
		memset(c->ram, 'x', SIZE);
	}
}

/*
 * Copy from before page `n' of the first client's memory to after it, and back.
 * Only that page is lost, at its first byte.
 */
static void
access_lost(unsigned int n)
{
	static uint8_t buf[3 * PAGE];
	struct client *c = &clients[0];
	uint8_t *page = c->ram + n * PAGE;
	int before = c->lost;
	uint64_t gpa;

	memset(buf, 'b', sizeof(buf));
	copy(buf, page - PAGE, sizeof(buf));
	REQUIRE(c->lost == before + 1);
	REQUIRE(peer_mem_gone(&c->dma, &gpa));
	REQUIRE(before > 0 || (gpa >= GPA + n * PAGE &&
	    gpa < GPA + (n + 1) * PAGE));
	REQUIRE(buf[0] == 'x' && buf[PAGE - 1] == 'x');
	REQUIRE(buf[PAGE] == 0 && buf[2 * PAGE - 1] == 0);
	REQUIRE(buf[2 * PAGE] == 'x' && buf[3 * PAGE - 1] == 'x');
	/* What is written can be read there; 0 is left for the next. */
	memset(page, 'w', PAGE);
	copy(buf, page, PAGE);
	REQUIRE(buf[0] == 'w' && buf[PAGE - 1] == 'w');
	memset(page, 0, PAGE);
	REQUIRE(c->lost == before + 1);
	REQUIRE(peer_mem_addr(&c->dma, GPA, 1, RW) == NULL);
	/* The other client keeps its memory. */
	REQUIRE(clients[1].lost == 0);
	REQUIRE(peer_mem_addr(&clients[1].dma, GPA, SIZE,
	    RW) == clients[1].ram);
	REQUIRE(clients[1].ram[n * PAGE] == 'x');
}

/* The process that shares the memory poisons a page; it may die of that. */
static void
poison(unsigned int n)
{
	uint8_t *ram;
	pid_t pid;
	int status;

	pid = fork();
	REQUIRE(pid != -1);
	if (pid == 0) {
		ram = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
		    clients[0].fd, 0);
		REQUIRE(ram != MAP_FAILED);
		ram[n * PAGE] = 'x';
		if (madvise(ram + n * PAGE, PAGE, MADV_HWPOISON) == -1) {
			printf("MADV_HWPOISON: %s\n", strerror(errno));
			fflush(stdout);
			_exit(UNSUPPORTED);
		}
		_exit(0);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
		exit(WEXITSTATUS(status));
	/* Nobody here has accessed the page. */
	REQUIRE(clients[0].lost == 0);
}

static void
write_setting(const char *value)
{
	int fd;

	fd = open(OVERCOMMIT, O_WRONLY);
	REQUIRE(fd != -1);
	REQUIRE(write(fd, value, 1) == 1);
	close(fd);
}

/* Punch a hole of a page, and leave no page to fill it. */
static void
overcommit(int memory, off_t at)
{
	off_t len;
	int fd;

	fd = memfd_create("filler", 0);
	REQUIRE(fd != -1);
	write_setting("2");
	REQUIRE(fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
	    at, PAGE) == 0);
	len = 0;
	while (fallocate(fd, 0, len, CHUNK) == 0)
		len += CHUNK;
	REQUIRE(errno == ENOSPC || errno == ENOMEM);
	while (fallocate(fd, 0, len, PAGE) == 0)
		len += PAGE;
	REQUIRE(errno == ENOSPC || errno == ENOMEM);
	printf("%jd bytes reach the limit\n", (intmax_t)len);
}

int
main(int argc, char **argv)
{
	static char out[BUFSIZ];

	/* Neither a buffer nor a file has memory meanwhile. */
	setvbuf(stdout, out, _IOFBF, sizeof(out));
	if (argc != 2 || access("/lib/guest.sh", R_OK) == -1)
		errx(1, "usage, in a test guest: lost_page "
		    "poison|overcommit");
	connect_clients();
	if (strcmp(argv[1], "poison") == 0) {
		poison(3);
		poison(7);
		access_lost(3);
		access_lost(7);
	} else if (strcmp(argv[1], "overcommit") == 0) {
		overcommit(clients[0].fd, 5 * PAGE);
		access_lost(5);
		write_setting("0");
	} else
		errx(1, "%s", argv[1]);
	printf("%d lost\n", clients[0].lost);
	return (0);
}
