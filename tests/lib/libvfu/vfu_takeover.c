/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The client: it sends messages, notes what the reply to each must be, and
 * compares.  See vfu_takeover.h.
 */

#include <sys/param.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "send_fds.h"
#include "test.h"
#include "vfu_message.h"
#include "vfu_takeover.h"
#include "vfu_takeover_impl.h"

#define	EXPECTED	4096
#define	HDR		sizeof(struct vfio_user_header)
#define	MULTI		40

int		takeover_sndbuf;

static int	client = -1;
static int	memory[2], msi[2];

static struct expected {
	uint16_t	ex_id;
	uint16_t	ex_command;
	uint32_t	ex_error;
	uint32_t	ex_len;		/* of the data, */
	uint32_t	ex_at;		/* of which these bytes are known */
	uint32_t	ex_value;
	bool		ex_known;
} expected[EXPECTED];
static uint64_t	nsent, nreplied;	/* messages with a reply */
static uint64_t	writes;			/* number of the last write */
static uint16_t	next_id;
static char	mapped[TAKEOVER_PAGES];	/* the file's letter, or 0 */
static bool	refused;		/* a range was, once */
static uint8_t	rest[VFU_MSG_MAX];	/* not sent yet */
static size_t	rest_len;
static uint8_t	replies[VFU_REPLY_MAX];
static size_t	replies_len;

unsigned int
takeover_missing(void)
{
	return ((unsigned int)(nsent - nreplied));
}

static void
check_reply(const struct vfio_user_header *h, const uint8_t *data)
{
	const struct expected *e = &expected[nreplied % EXPECTED];
	uint32_t value;

	ATF_REQUIRE_MSG(nreplied < nsent, "a reply to %u that nobody expects",
	    h->id);
	nreplied++;
	ATF_REQUIRE_EQ_MSG(e->ex_id, h->id, "reply %u, not %u", h->id,
	    e->ex_id);
	ATF_REQUIRE_EQ(e->ex_command, h->command);
	ATF_REQUIRE_EQ_MSG(e->ex_error, h->error,
	    "command %u: error %u, not %u", h->command, h->error, e->ex_error);
	ATF_REQUIRE_EQ(HDR + (h->error == 0 ? e->ex_len : 0), h->size);
	if (!e->ex_known || h->error != 0)
		return;
	memcpy(&value, data + e->ex_at, sizeof(value));
	ATF_REQUIRE_EQ_MSG(e->ex_value, value, "command %u: %#x, not %#x",
	    h->command, value, e->ex_value);
}

void
takeover_poll(void)
{
	struct vfio_user_header h;
	ssize_t n;

	takeover_store_poll();
	for (;;) {
		n = recv(client, replies + replies_len, sizeof(replies) -
		    replies_len, MSG_DONTWAIT);
		ATF_REQUIRE_MSG(n != 0, "the connection was closed: %s",
		    takeover_said());
		if (n == -1)
			return;
		replies_len += n;
		while (replies_len >= HDR) {
			memcpy(&h, replies, HDR);
			ATF_REQUIRE(h.size >= HDR && h.size <= VFU_REPLY_MAX);
			if (h.size > replies_len)
				break;
			check_reply(&h, replies + HDR);
			replies_len -= h.size;
			memmove(replies, replies + h.size, replies_len);
		}
	}
}

static void
client_send(const void *data, size_t len, const int *fd)
{
	const uint8_t *p = data;
	ssize_t n;

	while (len > 0) {
		n = send_fds(client, p, len, fd, fd != NULL, MSG_DONTWAIT);
		if (n == -1) {
			ATF_REQUIRE_EQ_MSG(EAGAIN, errno, "%s",
			    takeover_said());
			/* Nobody else makes room. */
			takeover_next();
			takeover_poll();
			continue;
		}
		fd = NULL;
		p += n;
		len -= n;
	}
}

void
takeover_rest(void)
{
	if (rest_len > 0)
		client_send(rest, rest_len, NULL);
	rest_len = 0;
}

/* Send a message and note what its reply is. */
static void
command(unsigned int cmd, bool post, const void *data, size_t len,
    const int *fd, const struct expected *e, size_t cut)
{
	uint8_t buf[2 * VFU_MSG_MAX];
	struct expected *x = &expected[nsent % EXPECTED];
	const size_t old = rest_len;

	while (takeover_missing() == EXPECTED)
		takeover_poll();
	/* The last message's rest and this one's descriptor: one piece. */
	memcpy(buf, rest, old);
	if (!post) {
		*x = *e;
		x->ex_id = next_id;
		x->ex_command = cmd;
		nsent++;
	}
	len = vfu_message(buf + old, next_id++, cmd, post ?
	    VFIO_USER_F_NO_REPLY : 0, data, len);
	cut = cut == 0 ? len : 1 + cut % len;
	client_send(buf, old + cut, fd);
	rest_len = len - cut;
	memcpy(rest, buf + old + cut, rest_len);
}

static void
read_region(uint32_t region, uint64_t off, uint32_t count, uint32_t value,
    size_t cut)
{
	const struct vfio_user_region_rw rw = { off, region, count };
	const struct expected e = { .ex_len = sizeof(rw) + count,
	    .ex_at = sizeof(rw), .ex_known = true, .ex_value = value };

	command(VFIO_USER_REGION_READ, false, &rw, sizeof(rw), NULL, &e, cut);
}

static void
write_bar(uint64_t off, bool post, size_t cut)
{
	struct {
		struct vfio_user_region_rw rw;
		uint64_t value;
	} data = { { off, BAR, 8 }, ++writes };
	const struct expected e = { .ex_len = sizeof(data.rw) };

	command(VFIO_USER_REGION_WRITE, post, &data, sizeof(data), NULL, &e,
	    cut);
}

static void
write_multi(uint32_t n, bool post, size_t cut)
{
	struct {
		struct vfio_user_write_multi multi;
		struct vfio_user_write_one one[MULTI];
	} data = { { n }, { { 0 } } };
	const struct expected e = { .ex_len = sizeof(data.multi) };
	uint32_t i;

	for (i = 0; i < n; i++) {
		data.one[i] = (struct vfio_user_write_one){ 8 * i, BAR, 8,
		    { 0 } };
		++writes;
		memcpy(data.one[i].data, &writes, sizeof(writes));
	}
	command(VFIO_USER_REGION_WRITE_MULTI, post, &data, sizeof(data.multi) +
	    n * sizeof(data.one[0]), NULL, &e, cut);
}

/* Map a page of one of two files, each apart from the others. */
static void
map_page(unsigned int page, unsigned int file, size_t cut)
{
	const struct vfio_user_dma_map map = { sizeof(map),
	    VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE, page * PAGE,
	    GPA + page * 2 * PAGE, PAGE };
	const struct expected e = { .ex_error = mapped[page] ? EEXIST : 0 };

	refused |= mapped[page] != 0;
	if (!mapped[page])
		mapped[page] = 'a' + file;
	command(VFIO_USER_DMA_MAP, false, &map, sizeof(map), &memory[file], &e,
	    cut);
}

static void
unmap_page(unsigned int page, bool all, size_t cut)
{
	struct vfio_user_dma_unmap unmap = { sizeof(unmap), 0,
	    GPA + page * 2 * PAGE, PAGE };
	const struct expected e = { .ex_len = sizeof(unmap),
	    .ex_error = all || mapped[page] ? 0 : ENOENT };

	if (all) {
		unmap.flags = VFIO_DMA_UNMAP_FLAG_ALL;
		unmap.address = unmap.size = 0;
		memset(mapped, 0, sizeof(mapped));
	}
	mapped[page] = 0;
	command(VFIO_USER_DMA_UNMAP, false, &unmap, sizeof(unmap), NULL, &e,
	    cut);
}

static void
set_msi(int which, size_t cut)
{
	const struct vfio_user_irq_set set = { sizeof(set), which == -1 ?
	    VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER :
	    VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
	    VFIO_PCI_MSI_IRQ_INDEX, 0, which != -1 };
	const struct expected e = { 0 };

	command(VFIO_USER_DEVICE_SET_IRQS, false, &set, sizeof(set),
	    which == -1 ? NULL : &msi[which], &e, cut);
}

/* Whether a page is mapped. */
static bool
any_mapped(void)
{
	unsigned int i;

	for (i = 0; i < TAKEOVER_PAGES && !mapped[i]; i++)
		continue;
	return (i < TAKEOVER_PAGES);
}

void
takeover_send(enum takeover_kind kind, uint32_t *seed, bool split)
{
	const struct vfio_user_device_info info = { .argsz = sizeof(info) };
	const struct expected e = { .ex_len = sizeof(info),
	    .ex_error = refused && !any_mapped() ? EOPNOTSUPP : 0 };
	const struct expected unknown = { .ex_error = ENOTSUP }, none = { 0 };
	const unsigned int page = test_below(seed, TAKEOVER_PAGES);
	const unsigned int file = test_below(seed, 2);
	const size_t cut = split ? 1 + test_below(seed, VFU_MSG_MAX) : 0;
	const uint32_t off = 8 * test_below(seed, PAGES_AT / 8);
	uint8_t zeros[64] = { 0 };

	switch (kind) {
	case TAKEOVER_READ:
		read_region(BAR, off, 4, takeover_reg(off), cut);
		break;
	case TAKEOVER_READ_PAGE:
		read_region(BAR, PAGES_AT + 8 * page, 4, mapped[page], cut);
		break;
	case TAKEOVER_POST:
	case TAKEOVER_WRITE:
		write_bar(off, kind == TAKEOVER_POST, cut);
		break;
	case TAKEOVER_MULTI:
	case TAKEOVER_POST_MULTI:
		write_multi(1 + test_below(seed, MULTI),
		    kind == TAKEOVER_POST_MULTI, cut);
		break;
	case TAKEOVER_CONFIG:
		read_region(VFIO_PCI_CONFIG_REGION_INDEX, 0, 256, 0x56789abc,
		    cut);
		break;
	case TAKEOVER_MAP:
	case TAKEOVER_MAP_AGAIN:
		map_page(page, file, cut);
		if (kind == TAKEOVER_MAP_AGAIN)
			map_page(page, file ^ 1, cut);
		break;
	case TAKEOVER_UNMAP:
	case TAKEOVER_UNMAP_ALL:
		unmap_page(page, kind == TAKEOVER_UNMAP_ALL, cut);
		break;
	case TAKEOVER_IRQS:
	case TAKEOVER_IRQS_OFF:
		set_msi(kind == TAKEOVER_IRQS ? (int)file : -1, cut);
		break;
	case TAKEOVER_INFO:
		command(VFIO_USER_DEVICE_GET_INFO, false, &info, sizeof(info),
		    NULL, &e, cut);
		break;
	case TAKEOVER_RESET:
		command(VFIO_USER_DEVICE_RESET, false, NULL, 0, NULL, &none,
		    cut);
		break;
	default:
		command(VFIO_USER_DEVICE_FEATURE, false, zeros, sizeof(zeros),
		    &memory[0], &unknown, cut);
	}
}

void
takeover_wait(void)
{
	int status;

	takeover_rest();
	while (takeover_missing() > 0) {
		takeover_poll();
		ATF_REQUIRE_EQ_MSG(0, waitpid(takeover_pid, &status, WNOHANG),
		    "process %u has ended: %s", takeover_processes,
		    takeover_said());
		sched_yield();
	}
}

bool
takeover_died(void)
{
	int status;

	while (takeover_missing() > 0) {
		takeover_poll();
		if (waitpid(takeover_pid, &status, WNOHANG) == 0) {
			sched_yield();
			continue;
		}
		ATF_REQUIRE_MSG(WIFSIGNALED(status) && WTERMSIG(status) ==
		    SIGKILL, "process %u has ended: %s", takeover_processes,
		    takeover_said());
		takeover_pid = -1;
		return (true);
	}
	return (false);
}

void
takeover_check(void)
{
	const struct pollfd pfd = { .fd = msi[0], .events = POLLIN };
	unsigned int files[2] = { 0 }, i;
	uint64_t events;

	/* With a reply, all that was posted before is done. */
	read_region(BAR, 0, 4, 0, 0);
	for (i = 0; i < TAKEOVER_PAGES; i++) {
		if (mapped[i])
			files[mapped[i] - 'a'] = 1;
		read_region(BAR, PAGES_AT + 8 * i, 4, mapped[i], 0);
	}
	takeover_wait();
	ATF_CHECK_EQ_MSG(0, takeover_sh->wrong, "write %ju is not the next",
	    (uintmax_t)takeover_sh->wrong);
	ATF_CHECK_EQ(writes, takeover_sh->last);
	/* An event comes. */
	set_msi(0, 0);
	takeover_wait();
	(void)!read(msi[0], &events, sizeof(events));
	write_bar(TAKEOVER_LINE, false, 0);
	takeover_wait();
	ATF_CHECK_EQ(1, poll(&(struct pollfd){ pfd.fd, pfd.events, 0 }, 1, 0));
	/* The store has what it must have, and no more. */
	takeover_poll();
	ATF_CHECK_EQ(1, takeover_store_count("client"));
	ATF_CHECK_EQ(2, takeover_store_count("pipe."));
	ATF_CHECK_EQ(1, takeover_store_count("msi"));
	ATF_CHECK_EQ(files[0] + files[1], takeover_store_count("mem."));
	ATF_CHECK_EQ(4 + files[0] + files[1], takeover_store_count(""));
	ATF_CHECK_EQ(0, takeover_sh->detaches);
	ATF_CHECK_EQ(1, takeover_sh->attaches);
}

void
takeover_client_close(void)
{
	int i;

	if (client != -1)
		close(client);
	for (i = 0; i < 2; i++) {
		close(memory[i]);
		close(msi[i]);
	}
}

static int
memory_file(char letter)
{
	char page[PAGE];
	int fd, i;

	fd = memfd_create("guest", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	ATF_REQUIRE(fd != -1);
	memset(page, letter, sizeof(page));
	for (i = 0; i < TAKEOVER_PAGES; i++)
		ATF_REQUIRE_EQ(PAGE, write(fd, page, PAGE));
	ATF_REQUIRE_EQ(0, fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	return (fd);
}

static void
connect_client(void)
{
	client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (takeover_sndbuf != 0)
		ATF_REQUIRE_EQ(0, setsockopt(client, SOL_SOCKET, SO_SNDBUF,
		    &takeover_sndbuf, sizeof(takeover_sndbuf)));
	ATF_REQUIRE_EQ(0, connect(client, (const void *)&takeover_sun,
	    sizeof(takeover_sun)));
}

/*
 * Read the first reply.  Returns 1, 0 if there is none yet, -1 if it is lost.
 */
static int
first_reply(void)
{
	struct vfio_user_header h;
	ssize_t n;

	n = recv(client, replies + replies_len, sizeof(replies) - replies_len,
	    MSG_DONTWAIT);
	if (n == 0 || (n == -1 && errno != EAGAIN))
		return (-1);
	replies_len += MAX(n, 0);
	if (replies_len < HDR)
		return (0);
	memcpy(&h, replies, HDR);
	if (h.size > replies_len)
		return (0);
	ATF_CHECK_EQ(0, h.error);
	ATF_CHECK_EQ(h.size, replies_len);
	return (1);
}

bool
takeover_connect(void)
{
	static const struct vfio_user_version version;
	uint8_t buf[2 * HDR];
	size_t len;
	int there;

	atomic_store_32(&takeover_sh->unkept, 0);
	connect_client();
	len = vfu_message(buf, next_id++, VFIO_USER_VERSION, 0, &version,
	    sizeof(version));
	(void)send(client, buf, len, MSG_NOSIGNAL);
	replies_len = 0;
	while ((there = first_reply()) == 0) {
		takeover_process_again();
		sched_yield();
	}
	replies_len = 0;
	return (there == 1);
}

bool
takeover_disconnect(void)
{
	const bool died = atomic_load_32(&takeover_sh->die_at) == 0;

	takeover_die_at(0);
	close(client);
	client = -1;
	do {
		takeover_process_again();
		sched_yield();
	} while (takeover_store_count("") > 0);
	return (died);
}

void
takeover_start(void)
{
	static const struct vfio_user_version version;
	const struct expected e = { .ex_len = sizeof(version) +
	    sizeof("{\"capabilities\":{}}") };
	int i;

	signal(SIGPIPE, SIG_IGN);
	takeover_process_init();
	for (i = 0; i < 2; i++) {
		memory[i] = memory_file('a' + i);
		msi[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	}
	takeover_next();
	connect_client();
	command(VFIO_USER_VERSION, false, &version, sizeof(version), NULL, &e,
	    0);
	takeover_wait();
}

void
takeover_end(void)
{
	uint32_t before;

	/* A process that takes over has as many as the one before. */
	takeover_wait();
	takeover_kill();
	takeover_next();
	before = takeover_sh->fds;
	takeover_kill();
	takeover_next();
	ATF_CHECK_EQ(before, takeover_sh->fds);
	close(client);
	client = -1;
	while (atomic_load_32(&takeover_sh->detaches) == 0 ||
	    takeover_store_count("") > 0) {
		takeover_store_poll();
		sched_yield();
	}
	takeover_kill();
}
