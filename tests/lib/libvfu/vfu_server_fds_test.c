/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Descriptors that come with messages: which message has them, how many there
 * may be, and who closes them.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include <atf-c.h>

#include "event_stub.h"
#include "open_fds.h"
#include "test.h"
#include "vfu_stub.h"

#include "peer_close.h"
#include "vfu_client.h"
#include "wrap.h"

#define	PAGE		4096
/* Linux 6.5 has it, younger C libraries have its name. */
#define	PASSPIDFD	76
#define	RW		(PROT_READ | PROT_WRITE)

/* peer_close() fails after so many calls; -1: never. */
static int	closes = -1;
static int	closed;			/* calls */

/* Calls of close(2) by the server that adapter_watch() would interrupt. */
static int	odd_closes;

WRAP(int, close, int fd)
{
	odd_closes += dev.vdev_server.calls % 2;
	return (__real_close(fd));
}

WRAP(bool, peer_close, int fd)
{
	if (closes == 0)
		return (false);
	closes -= closes > 0;
	closed++;
	return (__real_peer_close(fd));
}

/* A request to map a page of a file, or a range without access. */
static size_t
dma_map(uint8_t *buf, uint64_t gpa)
{
	const struct vfio_user_dma_map map = { sizeof(map),
	    VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE, 0, gpa, PAGE };

	return (message(buf, VFIO_USER_DMA_MAP, 0, &map, sizeof(map)));
}

/* The page has this file's letter; 0: it has no access. */
static void
check_page(uint64_t gpa, int letter)
{
	const char *p = peer_mem_addr(&dev.vdev_mem, gpa, PAGE, RW);

	ATF_CHECK_EQ_MSG(letter, p == NULL ? 0 : *p, "page %#jx: %d",
	    (uintmax_t)gpa, p == NULL ? 0 : *p);
}

static int
file(const char *letter)
{
	int fd;

	fd = stub_memory(PAGE);
	ATF_REQUIRE_EQ(1, pwrite(fd, letter, 1, 0));
	return (fd);
}

TEST(descriptors, "A descriptor belongs to the message with whose bytes it "
    "came")
{
	uint8_t a[48], b[48], x[128] = { 0 };
	size_t cut, len;
	uint16_t first;
	int fd_a, fd_b, step, wait;

	server_start();
	fd_a = file("a");
	fd_b = file("b");
	fds_idle += 2;
	client_come(true);
	for (step = 0, wait = 0; wait < 2; wait++) {
		for (cut = 0; cut < sizeof(a); cut++, step++) {
			/* One of another size before it. */
			put_message(UNKNOWN, NO_REPLY, x, sizeof(x));
			events_run();
			first = next_id;
			ATF_REQUIRE_EQ(sizeof(a), dma_map(a, 0x10000));
			(void)dma_map(b, 0x20000);
			/* With one byte of it, before the next message. */
			if (cut > 0)
				put(a, cut);
			if (wait)
				events_run();
			put_fds(a + cut, 1, &fd_a, 1);
			if (wait)
				events_run();
			if (cut + 1 < sizeof(a))
				put(a + cut + 1, sizeof(a) - cut - 1);
			put_fds(b, sizeof(b), &fd_b, 1);
			events_run();
			ATF_REQUIRE_EQ(0, reply(first, VFIO_USER_DMA_MAP, NULL,
			    0));
			ATF_REQUIRE_EQ(0, reply(first + 1, VFIO_USER_DMA_MAP,
			    NULL, 0));
			check_page(0x10000, 'a');
			check_page(0x20000, 'b');
			ATF_CHECK_EQ(0, dev.vdev_server.nfds);
			peer_mem_clear(&dev.vdev_mem);
		}
	}
	/* With a message that is only a header. */
	for (cut = 0; cut < HDR; cut++) {
		(void)message(a, VFIO_USER_DEVICE_RESET, 0, NULL, 0);
		first = next_id;
		(void)dma_map(b, 0x20000);
		if (cut > 0)
			put(a, cut);
		put_fds(a + cut, 1, &fd_a, 1);
		events_run();
		if (cut + 1 < HDR)
			put(a + cut + 1, HDR - cut - 1);
		put_fds(b, sizeof(b), &fd_b, 1);
		events_run();
		ATF_REQUIRE_EQ(0, reply(first - 1, VFIO_USER_DEVICE_RESET,
		    NULL, 0));
		ATF_REQUIRE_EQ(0, reply(first, VFIO_USER_DMA_MAP, NULL, 0));
		check_page(0x20000, 'b');
		peer_mem_clear(&dev.vdev_mem);
	}
	/* Between messages without one. */
	first = next_id;
	len = dma_map(x, 0x10000);
	put(x, len);
	len = dma_map(x, 0x20000);
	put_fds(x, len, &fd_a, 1);
	len = dma_map(x, 0x30000);
	put(x, len);
	events_run();
	check_page(0x10000, 0);
	check_page(0x20000, 'a');
	check_page(0x30000, 0);
	ATF_CHECK_EQ(3, dev.vdev_mem.n);
	peer_mem_clear(&dev.vdev_mem);
	/* With two messages at once: it is the last one's, though a part. */
	for (cut = 1; cut <= sizeof(a); cut++) {
		len = dma_map(x, 0x10000);
		len += dma_map(x + len, 0x20000);
		put_fds(x, len - sizeof(a) + cut, &fd_b, 1);
		events_run();
		check_page(0x10000, 0);
		if (cut < sizeof(a)) {
			ATF_CHECK_EQ(1, dev.vdev_mem.n);
			ATF_CHECK_EQ(1, dev.vdev_server.nfds);
			put(x + len - sizeof(a) + cut, sizeof(a) - cut);
			events_run();
		}
		check_page(0x20000, 'b');
		peer_mem_clear(&dev.vdev_mem);
	}
	(void)stub_calls();
	(void)dma_map(a, 0x10000);
	/* An incomplete message's is closed when the client leaves. */
	put_fds(a, 20, &fd_a, 1);
	events_run();
	ATF_CHECK_EQ(1, dev.vdev_server.nfds);
	client_gone("detach;");
	/* So is one that it never read. */
	client_come(true);
	put_fds(a, 20, &fd_a, 1);
	put_fds(a, 20, &fd_a, 1);
	client_gone("detach;");
}

TEST(passed, "Descriptors that no command keeps are closed, each once")
{
	const struct {
		struct vfio_user_irq_set set;
	} msi = { { sizeof(msi), VFIO_IRQ_SET_DATA_EVENTFD |
	    VFIO_IRQ_SET_ACTION_TRIGGER, VFIO_PCI_MSI_IRQ_INDEX, 0, 1 } };
	uint8_t buf[64];
	int event, fds[VFU_FDS_MAX], i, memory, pair[2];
	size_t len;

	server_start();
	event = eventfd(0, EFD_NONBLOCK);
	memory = file("a");
	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	fds_idle += 4;
	client_come(true);
	/* Those of a kind whose close cannot block at once. */
	for (i = 0; i < VFU_FDS_MAX; i++)
		fds[i] = i % 2 ? event : memory;
	len = message(buf, UNKNOWN, NO_REPLY, NULL, 0);
	odd_closes = closed = 0;
	put_fds(buf, len, fds, VFU_FDS_MAX);
	events_run();
	ATF_CHECK_EQ(fds_idle + 2, open_fds());
	ATF_CHECK_EQ(0, closed);
	ATF_CHECK_EQ(VFU_FDS_MAX, odd_closes);
	/* Others in a thread of their own. */
	for (i = 0; i < VFU_FDS_MAX; i++)
		fds[i] = pair[i % 2];
	put_fds(buf, len, fds, VFU_FDS_MAX);
	events_run();
	ATF_CHECK_EQ(fds_idle + 2, open_fds());
	ATF_CHECK_EQ(VFU_FDS_MAX, closed);
	/* One that a command keeps. */
	len = message(buf, VFIO_USER_DEVICE_SET_IRQS, NO_REPLY, &msi,
	    sizeof(msi));
	closed = 0;
	put_fds(buf, len, &event, 1);
	events_run();
	ATF_CHECK_EQ(0, closed);
	ATF_REQUIRE(dev.vdev_irq.msi_fd != -1);
	ATF_CHECK_EQ(FD_CLOEXEC, fcntl(dev.vdev_irq.msi_fd, F_GETFD));
	ATF_CHECK_EQ(fds_idle + 3, open_fds());
	(void)stub_calls();
	odd_closes = 0;
	client_gone("detach;");
	ATF_CHECK_EQ(1, odd_closes);
	/* Too many that wait to be closed. */
	client_come(true);
	closes = 0;
	len = message(buf, VFIO_USER_DEVICE_RESET, NO_REPLY, NULL, 0);
	put_fds(buf, len, pair, 2);
	events_run();
	closes = -1;
	ATF_CHECK(hung_up());
	client_gone("reset;log 4: client dropped: too many descriptors to "
	    "close;detach;");
}

TEST(refused, "The connection of a client that is refused is closed by a "
    "thread, or here if that is not possible")
{
	int first;

	server_start();
	events_fail = 1;
	client = dial();
	events_run();
	client_gone("log 4: client refused: out of resources;");
	ATF_CHECK_EQ(1, closed);
	client_come(false);
	first = client;
	client = dial();
	closes = 0;
	events_run();
	ATF_REQUIRE(vfu_server_again(&dev.vdev_server));
	vfu_server_listen(&dev);
	events_run();
	ATF_CHECK(hung_up());
	closes = -1;
	close(client);
	client = first;
	client_gone("log 5: second client refused;detach;");
}

TEST(too_many, "A message has 16 descriptors at most")
{
	uint8_t buf[64];
	int fd, fds[VFU_FDS_MAX + 1], i;
	size_t len;

	server_start();
	fd = eventfd(0, EFD_NONBLOCK);
	fds_idle++;
	for (i = 0; i <= VFU_FDS_MAX; i++)
		fds[i] = fd;
	client_come(true);
	len = message(buf, VFIO_USER_DEVICE_RESET, NO_REPLY, NULL, 0);
	put_fds(buf, len, fds, VFU_FDS_MAX + 1);
	check_dropped("too many descriptors");
	/* With its parts. */
	for (i = 0; i < VFU_FDS_MAX; i++) {
		ATF_CHECK_EQ(i, dev.vdev_server.nfds);
		put_fds(buf + i, 1, fds, 1);
		events_run();
	}
	ATF_CHECK_EQ(0, dev.vdev_server.nfds);
	(void)stub_calls();
	put_fds(buf, 1, fds, VFU_FDS_MAX);
	events_run();
	ATF_CHECK_STREQ("", stub_calls());
	put_fds(buf + 1, 1, fds, VFU_FDS_MAX);
	check_dropped("too many descriptors");
}

/* The socket that listens has these options; so have those of clients. */
static void
listen_with(const int *options)
{
	for (; *options != 0; options++)
		if (setsockopt(stub_listen_fd, SOL_SOCKET, *options,
		    &(int){ 1 }, sizeof(int)) == -1)
			ATF_REQUIRE_EQ(ENOPROTOOPT, errno);
}

TEST(options, "Credentials and what else comes with a message, by options of "
    "an inherited socket, are no descriptors")
{
	static const int options[][4] = {
		{ SO_PASSCRED }, { SO_PASSSEC }, { PASSPIDFD },
		{ SO_TIMESTAMP }, { SO_PASSCRED, SO_PASSSEC, PASSPIDFD },
	};
	uint8_t buf[64];
	int fd, fds[VFU_FDS_MAX + 1];
	unsigned int i, j;
	size_t len;

	server_start();
	fd = file("a");
	for (i = 0; i < nitems(fds); i++)
		fds[i] = fd;
	fds_idle++;
	for (i = 0; i < nitems(options); i++) {
		listen_with(options[i]);
		client_come(true);
		for (j = 0; j < 2; j++) {
			/* Without a descriptor, and with one. */
			len = dma_map(buf, 0x10000);
			put_fds(buf, len, fds, j);
			events_run();
			ATF_REQUIRE_EQ(0, reply(next_id - 1,
			    VFIO_USER_DMA_MAP, NULL, 0));
			check_page(0x10000, j == 0 ? 0 : 'a');
			peer_mem_clear(&dev.vdev_mem);
			(void)stub_calls();
		}
		ATF_CHECK_EQ(fds_idle + 2, open_fds());
		/* As many as there may be, and one more. */
		len = message(buf, UNKNOWN, NO_REPLY, NULL, 0);
		put_fds(buf, len, fds, VFU_FDS_MAX);
		events_run();
		ATF_CHECK_EQ(fds_idle + 2, open_fds());
		ATF_CHECK_EQ(0, stub_count(VFU_C_BROKEN));
		put_fds(buf, len, fds, VFU_FDS_MAX + 1);
		events_run();
		ATF_CHECK(hung_up());
		ATF_CHECK_EQ(1, stub_count(VFU_C_BROKEN));
		client_gone("log 4: client dropped: too many descriptors;"
		    "detach;");
	}
}

TEST(no_place, "A client is dropped whose descriptors find no place in the "
    "process; its message is not carried out")
{
	struct rlimit before, rl;
	uint8_t buf[64];
	int fd, fds[2], next;
	size_t len;

	/* poll(2) takes all events. */
	while (dup(STDIN_FILENO) < EVENTS)
		continue;
	server_start();
	fd = file("a");
	fds_idle++;
	fds[0] = fds[1] = fd;
	client_come(true);
	next = dup(fd);
	ATF_REQUIRE_EQ(0, close(next));
	ATF_REQUIRE_EQ(0, getrlimit(RLIMIT_NOFILE, &before));
	rl = before;
	rl.rlim_cur = next + 1;		/* one has a place */
	len = dma_map(buf, 0x10000);
	put_fds(buf, len, fds, 2);
	ATF_REQUIRE_EQ(0, setrlimit(RLIMIT_NOFILE, &rl));
	events_run();
	ATF_REQUIRE_EQ(0, setrlimit(RLIMIT_NOFILE, &before));
	ATF_CHECK_EQ(0, dev.vdev_mem.n);
	check_dropped("too many descriptors");
}

TEST_PROGRAM
