/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <sys/param.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <linux/pci_regs.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "loop.h"
#include "open_fds.h"
#include "send_fds.h"
#include "test.h"
#include "vfu_device.h"
#include "vfu_message.h"
#include "vfu_state.h"
#include "peer_mem_journal.h"
#include "vfu_takeover.h"
#include "wrap.h"

#define	PAGE		4096
#define	BAR		0
#define	BAR_SIZE	0x20000
#define	PAGES_AT	0x10000		/* a register for each page */
#define	GPA		0x100000
#define	NAMES		512
#define	EXPECTED	4096
#define	HDR		sizeof(struct vfio_user_header)
#define	MULTI		40

/* What outlives the processes. */
static struct shared {
	uint32_t	current;	/* index of dev; atomic */
	uint32_t	ready;		/* processes that serve; atomic */
	uint32_t	fds;		/* of the process, as it began */
	uint32_t	die_at;		/* points left, or 0; atomic */
	uint32_t	unkept;		/* a client was accepted, and is not in
					   the store; atomic */
	uint32_t	resets, attaches, detaches;
	uint64_t	last;		/* the last write's number */
	uint64_t	wrong;		/* a write's that was not the next */
	char		why[128];	/* of a process that cannot go on */
	struct vfu_device dev[2];
	struct peer_mem_journal journal;
} *sh;

pid_t		takeover_pid = -1;
bool		takeover_traced;
unsigned int	takeover_processes;

static int	listen_fd, client = -1;
static int	store[2];		/* the store's, the processes' end */
static int	memory[2], msi[2];

/* The store: what was put, and not removed. */
static struct peer_kept kept[NAMES];
static char	names[NAMES][PEER_KEEP_NAME];

/*
 * A process.
 */

/* Its errors are seen as its end. */
static void __attribute__((__noreturn__))
die(const char *why)
{
	snprintf(sh->why, sizeof(sh->why), "%s", why);
	abort();
}

#define	NEED(cond)	do { if (!(cond)) die(#cond); } while (0)

/* A place at which a process may be told to die. */
static void
point(void)
{
	uint32_t n;

	/* Also the client makes these calls. */
	if (takeover_pid != 0)
		return;
	n = atomic_load_32(&sh->die_at);
	if (n == 0)
		return;
	/* Unless the client has changed it meanwhile. */
	if (atomic_cmpset_acq_32(&sh->die_at, n, n - 1) && n == 1)
		raise(SIGKILL);
}

/* A call, with a point before it and one after it. */
#define	POINTS(type, call)						\
	do {								\
		type value_;						\
		int error_;						\
									\
		point();						\
		value_ = (call);					\
		error_ = errno;						\
		point();						\
		errno = error_;						\
		return (value_);					\
	} while (0)

/* A process has accepted a client. */
static int
accepted(int fd)
{
	if (fd != -1 && takeover_pid == 0)
		atomic_store_32(&sh->unkept, 1);
	return (fd);
}

WRAP(int, accept4, int s, struct sockaddr *addr, socklen_t *len, int flags)
{
	POINTS(int, accepted(__real_accept4(s, addr, len, flags)));
}

WRAP(int, poll, struct pollfd *fds, nfds_t n, int timeout)
{
	POINTS(int, __real_poll(fds, n, timeout));
}

WRAP(int, setsockopt, int s, int level, int name, const void *value,
    socklen_t len)
{
	POINTS(int, __real_setsockopt(s, level, name, value, len));
}

WRAP(int, pipe2, int *fds, int flags)
{
	POINTS(int, __real_pipe2(fds, flags));
}

WRAP(int, epoll_ctl, int epfd, int op, int fd, struct epoll_event *ev)
{
	POINTS(int, __real_epoll_ctl(epfd, op, fd, ev));
}

WRAP(ssize_t, recvmsg, int s, struct msghdr *msg, int flags)
{
	POINTS(ssize_t, __real_recvmsg(s, msg, flags));
}

WRAP(int, recvmmsg, int s, struct mmsghdr *msgs, unsigned int n, int flags,
    struct timespec *timeout)
{
	POINTS(int, __real_recvmmsg(s, msgs, n, flags, timeout));
}

WRAP(ssize_t, write, int fd, const void *buf, size_t len)
{
	POINTS(ssize_t, __real_write(fd, buf, len));
}

WRAP(ssize_t, splice, int in, off_t *off_in, int out, off_t *off_out,
    size_t len, unsigned int flags)
{
	POINTS(ssize_t, __real_splice(in, off_in, out, off_out, len, flags));
}

static void
store_put(void *arg __unused, const char *name, int fd)
{
	point();
	NEED(send_fds(store[1], name, strlen(name) + 1, &fd, 1, 0) > 0);
	if (strcmp(name, "client") == 0)
		atomic_store_32(&sh->unkept, 0);
	point();
}

static void
store_remove(void *arg __unused, const char *name)
{
	char text[PEER_KEEP_NAME + 1];
	int n;

	n = snprintf(text, sizeof(text), "-%s", name);
	point();
	NEED(send(store[1], text, n + 1, 0) == n + 1);
	point();
}

static const struct peer_keep keep = {
	.pke_put = store_put,
	.pke_remove = store_remove,
};

static void
on_pause(void *arg __unused, bool paused __unused)
{
	point();
}

/* The value of a register. */
static uint32_t
reg(uint64_t off)
{
	return ((uint32_t)off * 2654435761U);
}

static uint64_t
on_read(void *arg, int bar __unused, uint64_t off, int size __unused)
{
	struct vfu_device *vd = arg;
	const char *p;

	point();
	if (off < PAGES_AT)
		return (reg(off));
	p = peer_mem_addr(&vd->vdev_mem, GPA + (off - PAGES_AT) / 8 * 2 * PAGE,
	    PAGE, PROT_READ | PROT_WRITE);
	return (p == NULL ? 0 : *p);
}

static void
on_write(void *arg, int bar __unused, uint64_t off, int size __unused,
    uint64_t value)
{
	struct vfu_device *vd = arg;

	point();
	if (off == TAKEOVER_LINE)
		vfu_irq_level(&vd->vdev_irq, true);
	if (value != sh->last && value != sh->last + 1 && sh->wrong == 0)
		sh->wrong = value;
	atomic_store_64(&sh->last, value);
	point();
}

static void
on_bus_master(void *arg __unused, bool on __unused)
{
}

static void
on_reset(void *arg)
{
	point();
	sh->resets++;
	vfu_device_reset(arg);
	point();
}

static void
on_attach(void *arg __unused)
{
	sh->attaches++;
}

static void
on_detach(void *arg)
{
	vfu_device_reset(arg);
	vfu_device_release(arg);
	sh->detaches++;
}

static void
on_log(void *arg __unused, int priority __unused, const char *fmt, va_list ap)
{
	vsnprintf(sh->why, sizeof(sh->why), fmt, ap);
}

static const struct vfu_pci_field fields[] = {
	{ PCI_VENDOR_ID, 4, 0x56789abc, 0 },
	{ PCI_COMMAND, 2, 0, PCI_COMMAND_MASTER | PCI_COMMAND_INTX_DISABLE },
	{ PCI_INTERRUPT_LINE, 1, 0, 0xff },
};

static const struct vfu_device_type type = {
	.vdt_field = fields,
	.vdt_nfields = nitems(fields),
	.vdt_bar_size = { [BAR] = BAR_SIZE }
};

static const struct vfu_device_ops ops = {
	.vdo_read = on_read,
	.vdo_write = on_write,
	.vdo_bus_master = on_bus_master,
	.vdo_reset = on_reset,
	.vdo_attach = on_attach,
	.vdo_detach = on_detach,
	.vdo_log = on_log,
};

/* Take over from the process before, if there was one. */
static void
take_over(void)
{
	static uint8_t state[VFU_STATE_MAX];
	const uint32_t old = sh->current, new = old ^ 1;
	struct vfu_device *vd = &sh->dev[new];
	const char *why = "";
	size_t i, len = 0;

	if (takeover_processes > 1) {
		len = vfu_state_save(&sh->dev[old], state, sizeof(state),
		    &why);
		if (len == 0)
			die(why);
	}
	memset(vd, 0, sizeof(*vd));
	vfu_device_init(vd, &ops, &type, 0x1101, vd);
	peer_mem_init(&vd->vdev_mem, 0, on_pause, vd);
	vfu_device_set_keep(vd, &keep);
	NEED(vfu_server_init(vd, listen_fd) == 0);
	if (len != 0 && vfu_state_restore(vd, state, len, &sh->journal, kept,
	    NAMES, &why) != 0)
		die(why);
	peer_mem_set_journal(&vd->vdev_mem, &sh->journal);
	atomic_store_rel_32(&sh->current, new);
	for (i = 0; i < NAMES; i++) {
		if (names[i][0] == '\0')
			continue;
		if (!kept[i].pkt_used)
			store_remove(NULL, names[i]);
		if (kept[i].pkt_fd != -1)
			close(kept[i].pkt_fd);
	}
	vfu_irq_flush(&vd->vdev_irq);
}

static void
on_round(void *arg __unused)
{
	vfu_server_round(&sh->dev[sh->current]);
}

static void __attribute__((__noreturn__))
serve(void)
{
	int i;

	/* Its own descriptors are those that a new program would have. */
	if (client != -1)
		close(client);
	close(store[0]);
	for (i = 0; i < 2; i++) {
		close(memory[i]);
		close(msi[i]);
	}
	take_over();
	sh->fds = open_fds();
	atomic_store_rel_32(&sh->ready, takeover_processes);
	if (takeover_traced) {
		(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
	}
	NEED(loop_round(on_round, NULL) == 0);
	loop_run();
	_exit(0);
}

/*
 * The store.
 */

static void
stored(const char *name, int fd)
{
	size_t i, none = NAMES;

	for (i = 0; i < NAMES; i++) {
		if (names[i][0] == '\0')
			none = MIN(i, none);
		else if (strcmp(names[i], name) == 0)
			break;
	}
	if (i < NAMES)
		close(kept[i].pkt_fd);
	else
		i = none;
	ATF_REQUIRE(i < NAMES);
	strcpy(names[i], name);
	kept[i].pkt_name = names[i];
	kept[i].pkt_fd = fd;
}

static void
unstored(const char *name)
{
	size_t i;

	for (i = 0; i < NAMES; i++) {
		if (strcmp(names[i], name) != 0)
			continue;
		close(kept[i].pkt_fd);
		names[i][0] = '\0';
		kept[i].pkt_fd = -1;
	}
}

/* What the processes have told it. */
static void
store_poll(void)
{
	char text[PEER_KEEP_NAME + 1];
	union {
		struct cmsghdr	align;
		char		space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { text, sizeof(text) };
	struct msghdr msg;
	int fd;

	for (;;) {
		memset(&msg, 0, sizeof(msg));
		msg.msg_iov = &iov;
		msg.msg_iovlen = 1;
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		if (recvmsg(store[0], &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) ==
		    -1)
			return;
		if (text[0] == '-') {
			unstored(text + 1);
			continue;
		}
		ATF_REQUIRE(CMSG_FIRSTHDR(&msg) != NULL);
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
		stored(text, fd);
	}
}

static unsigned int
store_count(const char *prefix)
{
	unsigned int n = 0;
	size_t i;

	for (i = 0; i < NAMES; i++)
		n += names[i][0] != '\0' && strncmp(names[i], prefix,
		    strlen(prefix)) == 0;
	return (n);
}

/*
 * Processes.
 */

static void
process_start(void)
{
	int status;

again:
	store_poll();
	takeover_processes++;
	fflush(NULL);
	takeover_pid = fork();
	ATF_REQUIRE(takeover_pid != -1);
	if (takeover_pid == 0)
		serve();
	while (atomic_load_acq_32(&sh->ready) != takeover_processes) {
		if (waitpid(takeover_pid, &status, WNOHANG) != 0) {
			/* It may have died at a point. */
			ATF_REQUIRE_MSG(WIFSIGNALED(status) &&
			    WTERMSIG(status) == SIGKILL,
			    "process %u has ended: %s", takeover_processes,
			    sh->why);
			goto again;
		}
		sched_yield();
		store_poll();
	}
	if (takeover_traced)
		ATF_REQUIRE_EQ(takeover_pid, waitpid(takeover_pid, &status,
		    WUNTRACED));
}

void
takeover_kill(void)
{
	int status;

	ATF_REQUIRE_EQ(0, kill(takeover_pid, SIGKILL));
	do {
		ATF_REQUIRE_EQ(takeover_pid, waitpid(takeover_pid, &status, 0));
	} while (WIFSTOPPED(status));
	ATF_REQUIRE_MSG(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
	    "process %u has ended by itself, %#x: %s", takeover_processes,
	    status, sh->why);
	takeover_pid = -1;
}

void
takeover_next(void)
{
	if (takeover_pid == -1)
		process_start();
}

/*
 * The client.
 */

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
	ATF_REQUIRE_EQ_MSG(e->ex_error, h->error, "command %u: error %u, not %u",
	    h->command, h->error, e->ex_error);
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

	store_poll();
	for (;;) {
		n = recv(client, replies + replies_len, sizeof(replies) -
		    replies_len, MSG_DONTWAIT);
		ATF_REQUIRE_MSG(n != 0, "the connection was closed: %s",
		    sh->why);
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
			ATF_REQUIRE_EQ_MSG(EAGAIN, errno, "%s", sh->why);
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
	/* The rest of the last message, and this one's descriptor: one piece. */
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
		read_region(BAR, off, 4, reg(off), cut);
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
		    "process %u has ended: %s", takeover_processes, sh->why);
		sched_yield();
	}
}

void
takeover_die_at(unsigned int n)
{
	atomic_store_32(&sh->die_at, n);
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
		    sh->why);
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
	ATF_CHECK_EQ_MSG(0, sh->wrong, "write %ju is not the next",
	    (uintmax_t)sh->wrong);
	ATF_CHECK_EQ(writes, sh->last);
	/* An event comes. */
	set_msi(0, 0);
	takeover_wait();
	(void)!read(msi[0], &events, sizeof(events));
	write_bar(TAKEOVER_LINE, false, 0);
	takeover_wait();
	ATF_CHECK_EQ(1, poll(&(struct pollfd){ pfd.fd, pfd.events, 0 }, 1, 0));
	/* The store has what it must have, and no more. */
	takeover_poll();
	ATF_CHECK_EQ(1, store_count("client"));
	ATF_CHECK_EQ(2, store_count("pipe."));
	ATF_CHECK_EQ(1, store_count("msi"));
	ATF_CHECK_EQ(files[0] + files[1], store_count("mem."));
	ATF_CHECK_EQ(4 + files[0] + files[1], store_count(""));
	ATF_CHECK_EQ(0, sh->detaches);
	ATF_CHECK_EQ(1, sh->attaches);
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

static struct sockaddr_un sun = { .sun_family = AF_UNIX, .sun_path = "s" };

int		takeover_sndbuf;

static void
connect_client(void)
{
	client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (takeover_sndbuf != 0)
		ATF_REQUIRE_EQ(0, setsockopt(client, SOL_SOCKET, SO_SNDBUF,
		    &takeover_sndbuf, sizeof(takeover_sndbuf)));
	ATF_REQUIRE_EQ(0, connect(client, (void *)&sun, sizeof(sun)));
}

/* Read the first reply.  Returns 1, 0 if there is none yet, -1 if it is lost. */
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

/* See whether the process has died at a point, and have another one. */
static void
process_again(void)
{
	int status;

	store_poll();
	if (waitpid(takeover_pid, &status, WNOHANG) == 0)
		return;
	ATF_REQUIRE_MSG(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
	    "process %u has ended: %s", takeover_processes, sh->why);
	takeover_pid = -1;
	takeover_next();
}

const char *
takeover_said(void)
{
	return (sh->why);
}

bool
takeover_connect(void)
{
	static const struct vfio_user_version version;
	uint8_t buf[2 * HDR];
	size_t len;
	int there;

	atomic_store_32(&sh->unkept, 0);
	connect_client();
	len = vfu_message(buf, next_id++, VFIO_USER_VERSION, 0, &version,
	    sizeof(version));
	(void)send(client, buf, len, MSG_NOSIGNAL);
	replies_len = 0;
	while ((there = first_reply()) == 0) {
		process_again();
		sched_yield();
	}
	replies_len = 0;
	return (there == 1);
}

bool
takeover_unkept(void)
{
	return (atomic_load_32(&sh->unkept) != 0);
}

bool
takeover_disconnect(void)
{
	const bool died = atomic_load_32(&sh->die_at) == 0;

	takeover_die_at(0);
	close(client);
	client = -1;
	do {
		process_again();
		sched_yield();
	} while (store_count("") > 0);
	return (died);
}

void
takeover_start(void)
{
	static const struct vfio_user_version version;
	const struct expected e = { .ex_len = sizeof(version) +
	    sizeof("{\"capabilities\":{}}") };
	int i;

	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED |
	    MAP_ANON | MAP_NORESERVE, -1, 0);
	ATF_REQUIRE(sh != MAP_FAILED);
	signal(SIGPIPE, SIG_IGN);
	for (i = 0; i < NAMES; i++)
		kept[i] = (struct peer_kept){ names[i], -1, false };
	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC,
	    0, store));
	for (i = 0; i < 2; i++) {
		memory[i] = memory_file('a' + i);
		msi[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	}
	listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
	    0);
	ATF_REQUIRE_EQ(0, bind(listen_fd, (void *)&sun, sizeof(sun)));
	ATF_REQUIRE_EQ(0, listen(listen_fd, 8));
	process_start();
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
	before = sh->fds;
	takeover_kill();
	takeover_next();
	ATF_CHECK_EQ(before, sh->fds);
	close(client);
	client = -1;
	while (atomic_load_32(&sh->detaches) == 0 || store_count("") > 0) {
		store_poll();
		sched_yield();
	}
	takeover_kill();
}
