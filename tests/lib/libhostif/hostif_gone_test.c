/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Memory of an interface attached through AF_XDP that vanishes: the interface
 * is detached, with a line, and nobody else notices.  A file without pages
 * takes the place of the memory.
 */

#include <sys/param.h>
#include <sys/mman.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "frame_vnet.h"
#include "hostif_impl.h"
#include "hostif_pair.h"
#include "open_fds.h"
#include "test.h"
#include "peer_mem.h"
#include "peer_fault.h"
#include "wait_until.h"
#include "wrap.h"

#define	LINE	"hostif_gone_test: vale0:h0: detached: its memory is gone\n"

static bool	early;		/* it vanishes before hostif_attach() returns */

/* From now on the log is a file of the test case. */
static void
log_file(void)
{
	int fd = open("log", O_RDWR | O_CREAT | O_APPEND, 0600);

	ATF_REQUIRE(fd != -1 && dup2(fd, STDERR_FILENO) != -1);
	close(fd);
}

/* How often the line was written.  There is no other one. */
static unsigned int
detached(void)
{
	char line[256];
	unsigned int n = 0;
	FILE *f = fopen("log", "r");

	ATF_REQUIRE(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL) {
		ATF_REQUIRE_STREQ(LINE, line);
		n++;
	}
	fclose(f);
	return (n);
}

/* All of the interface's memory has no pages any more. */
static void
vanish(void)
{
	unsigned long start, end, found = 0;
	char line[512];
	int fd = memfd_create("gone", 0);
	FILE *f = fopen("/proc/self/maps", "r");

	ATF_REQUIRE(fd != -1 && f != NULL);
	while (fgets(line, sizeof(line), f) != NULL) {
		if (strstr(line, "/memfd:hostif") == NULL)
			continue;
		ATF_REQUIRE(sscanf(line, "%lx-%lx", &start, &end) == 2);
		ATF_REQUIRE(mmap((void *)start, end - start,
		    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
		    (void *)start);
		found += end - start;
	}
	ATF_REQUIRE_EQ(HOSTIF_XDP_MEMORY(1), found);
	fclose(f);
	close(fd);
}

static void
send_frame(void)
{
	uint8_t frame[60];

	make_frame(frame, sizeof(frame), 1);
	wire_send(NULL, frame, sizeof(frame));
}

/* What hostif_stop() joins. */
static void *
nothing(void *arg)
{
	return (arg);
}

WRAP(int, pthread_create, pthread_t *thread, const pthread_attr_t *attr,
    void *(*fn)(void *), void *arg)
{
	const int error = __real_pthread_create(thread, attr, fn, arg);

	if (error == 0 && early) {
		vanish();
		send_frame();
		/* It has ended. */
		wait_until(pthread_tryjoin_np(*thread, NULL) == 0, "it serves");
		ATF_REQUIRE_EQ(1, detached());
		ATF_REQUIRE_EQ(0, __real_pthread_create(thread, attr, nothing,
		    NULL));
	}
	return (error);
}

/* Attach h0, as valed does. */
static void
attach_listed(void)
{
	struct hostif_fds fds;
	char why[HOSTIF_WHY];

	ATF_REQUIRE_MSG(hostif_open("h0", HOSTIF_XDP, &fds, why) == 0,
	    "%s", why);
	ATF_REQUIRE_MSG(hostif_attach("vale0:h0", &fds, why) == 0, "%s", why);
}

static void
start(void)
{
	use_xdp();
	log_file();
	ATF_REQUIRE_EQ(0, peer_fault_init());
	make_pair();
	open_wire();
	port = vale_open("vale0:t", NULL);
	ATF_REQUIRE(port != NULL);
}

static void
count_one(struct hostif *one __unused, void *arg)
{
	++*(unsigned int *)arg;
}

/* It is detached, everything is closed, and it can be attached again. */
static void
ends(unsigned int before)
{
	uint8_t hdr[FRAME_VNET_LONG];
	unsigned int n = 0;

	wait_until(open_fds() == before, "%u descriptors", open_fds());
	ATF_REQUIRE_EQ(1, detached());
	hostif_each(count_one, &n);
	ATF_REQUIRE_EQ(0, n);
	ATF_REQUIRE_EQ(-1, hostif_detach("vale0:h0"));
	ATF_REQUIRE_EQ(ENXIO, errno);
	early = false;
	attach_listed();
	hostif_each(count_one, &n);
	ATF_REQUIRE_EQ(1, n);
	vale_rxsync(port);
	port->rxring->head = port->rxring->cur = port->rxring->tail;
	send_frame();
	ATF_REQUIRE_EQ(60, port_receive(hdr));
	ATF_REQUIRE_EQ(1, frame_number(buf));
	ATF_REQUIRE_EQ(0, hostif_detach("vale0:h0"));
	ATF_REQUIRE_EQ(-1, hostif_detach("vale0:h0"));
	ATF_REQUIRE_EQ(ENXIO, errno);
	ATF_REQUIRE_EQ(before, open_fds());
	ATF_REQUIRE_EQ(1, detached());
}

ROOT_TEST(receive, "An interface is detached that receives a frame where its "
    "memory is gone")
{
	unsigned int before;

	start();
	before = open_fds();
	attach_listed();
	vanish();
	ATF_REQUIRE_EQ(0, detached());
	send_frame();
	ends(before);
}

ROOT_TEST(transmit, "An interface is detached that sends a frame from where "
    "its memory is gone; another port gets the frame")
{
	struct vale_desc *sender = port;
	uint8_t frame[60], hdr[FRAME_VNET_LONG];
	unsigned int before;

	start();
	sender = vale_open("vale0:s", NULL);
	ATF_REQUIRE(sender != NULL);
	before = open_fds();
	attach_listed();
	vanish();
	make_frame(frame, sizeof(frame), 7);
	sender->txring->slot[0].ptr = (uintptr_t)frame;
	sender->txring->slot[0].len = sizeof(frame);
	sender->txring->slot[0].flags = NS_INDIRECT;
	sender->txring->head = sender->txring->cur = 1;
	ATF_REQUIRE_EQ(0, vale_txsync(sender));
	ATF_REQUIRE_EQ(60, port_receive(hdr));
	ATF_REQUIRE_EQ(7, frame_number(buf));
	ends(before);
}

ROOT_TEST(attaching, "An interface whose memory is gone while it is being "
    "attached is detached")
{
	unsigned int before;

	start();
	before = open_fds();
	early = true;
	attach_listed();
	ends(before);
}

ROOT_TEST(stopped, "An interface whose memory is gone can be stopped by who "
    "started it")
{
	unsigned int before;

	start();
	before = open_fds();
	attach();
	vanish();
	send_frame();
	wait_until(detached() == 1, "it serves");
	ATF_REQUIRE(hostif_is_withdrawn(hi));
	hostif_stop(hi);
	ATF_REQUIRE_EQ(before, open_fds());
}

ROOT_TEST(many, "No more interfaces have memory than vanishing pages can be "
    "told of")
{
	static struct peer_mem dma[PEER_FAULT_MAX];
	struct hostif_fds fds;
	char why[HOSTIF_WHY];
	unsigned int i;

	start();
	ATF_REQUIRE_EQ(0, hostif_open("h0", HOSTIF_XDP, &fds, why));
	for (i = 0; i < PEER_FAULT_MAX; i++)
		ATF_REQUIRE_EQ(0, peer_fault_add(&dma[i], hostif_withdrawn,
		    NULL));
	ATF_REQUIRE_EQ(-1, hostif_attach("vale0:h0", &fds, why));
	ATF_REQUIRE_EQ(ENOSPC, errno);
	ATF_REQUIRE_STREQ("vale0:h0: memory: No space left on device", why);
	peer_fault_remove(&dma[5]);
	ATF_REQUIRE_EQ(0, hostif_attach("vale0:h0", &fds, why));
	ATF_REQUIRE_EQ(0, hostif_detach("vale0:h0"));
	/* It has given its place back. */
	ATF_REQUIRE_EQ(0, peer_fault_add(&dma[5], hostif_withdrawn, NULL));
}

TEST_PROGRAM
