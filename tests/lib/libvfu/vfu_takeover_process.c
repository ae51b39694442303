/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The processes that serve the device, and the store of their descriptors.  A
 * process may be told to die at any of its points (takeover_die_at()): they are
 * in the functions that it calls in place of the system's, and in the device's.
 * The store is the client's.
 */

#include <sys/param.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <linux/pci_regs.h>

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "loop.h"
#include "open_fds.h"
#include "send_fds.h"
#include "vfu_message.h"
#include "vfu_state.h"
#include "vfu_takeover.h"
#include "vfu_takeover_impl.h"
#include "wrap.h"

#define	BAR_SIZE	0x20000
#define	NAMES		512

struct takeover_shared *takeover_sh;
const struct sockaddr_un takeover_sun = {
	.sun_family = AF_UNIX,
	.sun_path = "s"
};

pid_t		takeover_pid = -1;
bool		takeover_traced;
unsigned int	takeover_processes;

static int	listen_fd;
static int	store[2];		/* the store's, the processes' end */

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
	snprintf(takeover_sh->why, sizeof(takeover_sh->why), "%s", why);
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
	n = atomic_load_32(&takeover_sh->die_at);
	if (n == 0)
		return;
	/* Unless the client has changed it meanwhile. */
	if (atomic_cmpset_acq_32(&takeover_sh->die_at, n, n - 1) && n == 1)
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
		atomic_store_32(&takeover_sh->unkept, 1);
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
		atomic_store_32(&takeover_sh->unkept, 0);
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
uint32_t
takeover_reg(uint64_t off)
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
		return (takeover_reg(off));
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
	if (value != takeover_sh->last && value != takeover_sh->last + 1 &&
	    takeover_sh->wrong == 0)
		takeover_sh->wrong = value;
	atomic_store_64(&takeover_sh->last, value);
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
	takeover_sh->resets++;
	vfu_device_reset(arg);
	point();
}

static void
on_attach(void *arg __unused)
{
	takeover_sh->attaches++;
}

static void
on_detach(void *arg)
{
	vfu_device_reset(arg);
	vfu_device_release(arg);
	takeover_sh->detaches++;
}

static void
on_log(void *arg __unused, int priority __unused, const char *fmt, va_list ap)
{
	vsnprintf(takeover_sh->why, sizeof(takeover_sh->why), fmt, ap);
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
	const uint32_t old = takeover_sh->current, new = old ^ 1;
	struct vfu_device *vd = &takeover_sh->dev[new];
	const char *why = "";
	size_t i, len = 0;

	if (takeover_processes > 1) {
		len = vfu_state_save(&takeover_sh->dev[old], state,
		    sizeof(state), &why);
		if (len == 0)
			die(why);
	}
	memset(vd, 0, sizeof(*vd));
	vfu_device_init(vd, &ops, &type, 0x1101, vd);
	peer_mem_init(&vd->vdev_mem, 0, on_pause, vd);
	vfu_device_set_keep(vd, &keep);
	NEED(vfu_server_init(vd, listen_fd) == 0);
	if (len != 0 && vfu_state_restore(vd, state, len,
	    &takeover_sh->journal, kept, NAMES, &why) != 0)
		die(why);
	peer_mem_set_journal(&vd->vdev_mem, &takeover_sh->journal);
	atomic_store_rel_32(&takeover_sh->current, new);
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
	vfu_server_round(&takeover_sh->dev[takeover_sh->current]);
}

static void __attribute__((__noreturn__))
serve(void)
{
	/* Its own descriptors are those that a new program would have. */
	takeover_client_close();
	close(store[0]);
	take_over();
	takeover_sh->fds = open_fds();
	atomic_store_rel_32(&takeover_sh->ready, takeover_processes);
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
void
takeover_store_poll(void)
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

unsigned int
takeover_store_count(const char *prefix)
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
	bool stopped = false;
	int status;

again:
	takeover_store_poll();
	takeover_processes++;
	fflush(NULL);
	takeover_pid = fork();
	ATF_REQUIRE(takeover_pid != -1);
	if (takeover_pid == 0)
		serve();
	while (atomic_load_acq_32(&takeover_sh->ready) != takeover_processes) {
		if (waitpid(takeover_pid, &status, WNOHANG) != 0) {
			/* It may have stopped, traced: it is ready. */
			stopped = WIFSTOPPED(status);
			if (stopped)
				break;
			/* It may have died at a point. */
			ATF_REQUIRE_MSG(WIFSIGNALED(status) &&
			    WTERMSIG(status) == SIGKILL,
			    "process %u has ended: %s", takeover_processes,
			    takeover_sh->why);
			goto again;
		}
		sched_yield();
		takeover_store_poll();
	}
	if (takeover_traced && !stopped)
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
	    status, takeover_sh->why);
	takeover_pid = -1;
}

void
takeover_next(void)
{
	if (takeover_pid == -1)
		process_start();
}

void
takeover_die_at(unsigned int n)
{
	atomic_store_32(&takeover_sh->die_at, n);
}

void
takeover_process_again(void)
{
	int status;

	takeover_store_poll();
	if (waitpid(takeover_pid, &status, WNOHANG) == 0)
		return;
	ATF_REQUIRE_MSG(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
	    "process %u has ended: %s", takeover_processes, takeover_sh->why);
	takeover_pid = -1;
	takeover_next();
}

const char *
takeover_said(void)
{
	return (takeover_sh->why);
}

bool
takeover_unkept(void)
{
	return (atomic_load_32(&takeover_sh->unkept) != 0);
}

void
takeover_process_init(void)
{
	int i;

	takeover_sh = mmap(NULL, sizeof(*takeover_sh), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANON | MAP_NORESERVE, -1, 0);
	ATF_REQUIRE(takeover_sh != MAP_FAILED);
	for (i = 0; i < NAMES; i++)
		kept[i] = (struct peer_kept){ names[i], -1, false };
	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC,
	    0, store));
	listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
	    0);
	ATF_REQUIRE_EQ(0, bind(listen_fd, (const void *)&takeover_sun,
	    sizeof(takeover_sun)));
	ATF_REQUIRE_EQ(0, listen(listen_fd, 8));
}
