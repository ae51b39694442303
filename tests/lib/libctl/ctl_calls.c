/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>

#include <atf-c.h>

/* Its threads do not run: the functions below take their place. */
#include "ctl.c"
#include "wrap.h"

#include "ctl_calls.h"
#include "send_fds.h"
#include "peer_fault.h"

#define	ALLOCS_MAX	1024
#define	HELD_MAX	16

struct vale_shared shared_last;
void		(*on_open)(void);
unsigned int	more_calls;
struct vale_desc *more_desc;
size_t		more_last;
unsigned int	peer_copies = 1;
const int	*peer_fds;
dev_t		fstat_dev;

/*
 * Calls that fail.
 */

static enum call fail_call;
static unsigned int fail_n, fail_times, fails, fail_calls;
static int	fail_error;
static struct things live;

void
calls_fail(enum call call, unsigned int n, unsigned int times, int error)
{
	fail_call = call;
	fail_n = n;
	fail_times = times;
	fail_error = error;
	fails = fail_calls = 0;
}

unsigned int
calls_failed(void)
{
	fail_times = 0;
	return (fails);
}

/* Whether this one does, with errno. */
static bool
failing(enum call call)
{
	if (call != fail_call || fail_times == 0 || ++fail_calls < fail_n)
		return (false);
	fail_times--;
	fails++;
	errno = fail_error;
	return (true);
}

/*
 * Each allocation ends where a page does, and behind it there is none: so there
 * is none of what was freed.
 */

static struct {
	void	*p, *base;
	size_t	 len;
} allocs[ALLOCS_MAX];

static void *
guarded(size_t size)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	const size_t body = roundup2(MAX(size, 1), page);
	unsigned int i;
	char *base;

	for (i = 0; i < ALLOCS_MAX && allocs[i].p != NULL; i++)
		continue;
	ATF_REQUIRE(i < ALLOCS_MAX);
	base = mmap(NULL, body + 2 * page, PROT_NONE, MAP_PRIVATE |
	    MAP_ANONYMOUS, -1, 0);
	ATF_REQUIRE(base != MAP_FAILED);
	ATF_REQUIRE_EQ(0, mprotect(base + page, body, PROT_READ | PROT_WRITE));
	allocs[i].base = base;
	allocs[i].len = body + 2 * page;
	allocs[i].p = base + page + rounddown2(body - size, 16);
	live.th_allocs++;
	return (allocs[i].p);
}

WRAP(void *, calloc, size_t n, size_t size)
{
	return (failing(CALL_CALLOC) ? NULL : guarded(n * size));
}

WRAP(void *, malloc, size_t size)
{
	void *p = failing(CALL_MALLOC) ? NULL : guarded(size);

	if (p != NULL)
		memset(p, 0xa5, size);
	return (p);
}

WRAP(void, free, void *p)
{
	unsigned int i;

	for (i = 0; p != NULL && i < ALLOCS_MAX; i++)
		if (allocs[i].p == p) {
			ATF_REQUIRE_EQ(0, munmap(allocs[i].base,
			    allocs[i].len));
			allocs[i].p = NULL;
			live.th_allocs--;
			return;
		}
	__real_free(p);
}

/*
 * Locks.
 */

static pthread_mutex_t *held[HELD_MAX];

static unsigned int
held_find(const pthread_mutex_t *m)
{
	unsigned int i;

	for (i = 0; i < HELD_MAX && held[i] != m; i++)
		continue;
	return (i);
}

void
locks_check(void)
{
	unsigned int i;

	for (i = 0; i < HELD_MAX; i++)
		ATF_REQUIRE_MSG(held[i] == NULL, "a lock is held");
}

WRAP(int, pthread_mutex_destroy, pthread_mutex_t *m)
{
	live.th_mutexes--;
	return (__real_pthread_mutex_destroy(m));
}

WRAP(int, pthread_mutex_init, pthread_mutex_t *m,
    const pthread_mutexattr_t *attr)
{
	if (failing(CALL_MUTEX_INIT))
		return (errno);
	live.th_mutexes++;
	return (__real_pthread_mutex_init(m, attr));
}

WRAP(int, pthread_mutex_lock, pthread_mutex_t *m)
{
	unsigned int i = held_find(NULL);

	ATF_REQUIRE_MSG(held_find(m) == HELD_MAX, "locked twice");
	ATF_REQUIRE(i < HELD_MAX);
	held[i] = m;
	return (__real_pthread_mutex_lock(m));
}

WRAP(int, pthread_mutex_unlock, pthread_mutex_t *m)
{
	unsigned int i = held_find(m);

	ATF_REQUIRE_MSG(i < HELD_MAX, "unlocked, and was not locked");
	held[i] = NULL;
	return (__real_pthread_mutex_unlock(m));
}

/*
 * Other calls.
 */

int	__real_fcntl(int fd, int cmd, ...);
int	__wrap_fcntl(int fd, int cmd, ...);
long	__real_syscall(long nr, ...);
long	__wrap_syscall(long nr, ...);

/* As the C library's, it reads an argument, whatever the caller passes. */
int __attribute__((__no_sanitize__("address")))
__wrap_fcntl(int fd, int cmd, ...)
{
	va_list ap;
	long arg;

	va_start(ap, cmd);
	arg = va_arg(ap, long);
	va_end(ap);
	if ((cmd == F_ADD_SEALS || cmd == F_DUPFD_CLOEXEC) &&
	    failing(CALL_FCNTL))
		return (-1);
	return (__real_fcntl(fd, cmd, arg));
}

WRAP(int, ftruncate, int fd, off_t size)
{
	return (failing(CALL_FTRUNCATE) ? -1 : __real_ftruncate(fd, size));
}

WRAP(int, memfd_create, const char *name, unsigned int flags)
{
	return (failing(CALL_MEMFD) ? -1 : __real_memfd_create(name, flags));
}

WRAP(ssize_t, pread, int fd, void *buf, size_t len, off_t at)
{
	return (failing(CALL_PREAD) ? -1 : __real_pread(fd, buf, len, at));
}

WRAP(ssize_t, pwrite, int fd, const void *buf, size_t len, off_t at)
{
	return (failing(CALL_PWRITE) ? -1 : __real_pwrite(fd, buf, len, at));
}

WRAP(int, socketpair, int domain, int type, int protocol, int fds[2])
{
	return (failing(CALL_SOCKETPAIR) ? -1 : __real_socketpair(domain, type,
	    protocol, fds));
}

/* The same with six. */
long __attribute__((__no_sanitize__("address")))
__wrap_syscall(long nr, ...)
{
	struct stat *st;
	va_list ap;
	long a[6], n;
	unsigned int i;

	va_start(ap, nr);
	for (i = 0; i < nitems(a); i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	n = __real_syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (nr != SYS_fstat || n == -1)
		return (n);
	st = (struct stat *)a[1];
	st->st_dev += fstat_dev;
	/* What it has filled in is not to be used. */
	return (failing(CALL_FSTAT) ? -1 : n);
}

WRAP(struct vale_desc *, vale_open_shared, const char *name,
    const struct vale_params *params, const struct vale_shared *shared)
{
	shared_last = *shared;
	if (on_open != NULL)
		on_open();
	return (failing(CALL_OPEN_SHARED) ? NULL : __real_vale_open_shared(name,
	    params, shared));
}

WRAP(void, vale_shared_more, struct vale_desc *d, size_t more)
{
	more_calls++;
	more_desc = d;
	more_last = more;
	__real_vale_shared_more(d, more);
}

WRAP(int, peer_mem_map, struct peer_mem *dma, int fd, uint64_t offset,
    uint64_t gpa, uint64_t size, int prot, const char **why)
{
	return (failing(CALL_DMA_MAP) ? errno : __real_peer_mem_map(dma, fd,
	    offset, gpa, size, prot, why));
}

WRAP(int, peer_fault_add, struct peer_mem *dma, void (*lost)(void *arg),
    void *arg)
{
	int error = failing(CALL_FAULT_ADD) ? errno :
	    __real_peer_fault_add(dma, lost, arg);

	live.th_faults += error == 0;
	return (error);
}

WRAP(void, peer_fault_remove, struct peer_mem *dma)
{
	live.th_faults--;
	__real_peer_fault_remove(dma);
}

/* Who waits for connections whose clients have left: they close. */

WRAP(int, pthread_cond_clockwait, pthread_cond_t *cond, pthread_mutex_t *m,
    clockid_t clock __unused, const struct timespec *until __unused)
{
	struct ctl_conn *cc;
	bool any = false;

	ATF_REQUIRE(cond == &conns_left && m == &conns_lock);
	__wrap_pthread_mutex_unlock(m);
	locks_check();
	for (cc = ctl_conns; cc < ctl_conns + CTL_MAX; cc++)
		if (cc->cc_open && conn_left(cc)) {
			conn_close(cc);
			any = true;
		}
	ATF_REQUIRE(any);
	return (__wrap_pthread_mutex_lock(m));
}

/* No thread is started. */

WRAP(int, pthread_create, pthread_t *thread __unused,
    const pthread_attr_t *attr __unused, void *(*start)(void *) __unused,
    void *arg __unused)
{
	return (0);
}

/*
 * What there is.
 */

/* Descriptors, and those that another program would have. */
static void
fds_now(struct things *th)
{
	struct dirent *e;
	DIR *dir = opendir("/proc/self/fd");

	ATF_REQUIRE(dir != NULL);
	while ((e = readdir(dir)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		th->th_fds++;
		if ((__real_fcntl(atoi(e->d_name), F_GETFD, 0L) &
		    FD_CLOEXEC) == 0)
			th->th_inherited++;
	}
	closedir(dir);
}

/* Mappings of memory of ports. */
static unsigned int
maps_now(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned int n = 0;

	ATF_REQUIRE(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL)
		n += strstr(line, "memfd:vale") != NULL;
	fclose(f);
	return (n);
}

struct things
things_now(void)
{
	struct things th = live;
	unsigned int i;

	locks_check();
	fds_now(&th);
	th.th_maps = maps_now();
	for (i = 0; i < CTL_MAX; i++)
		th.th_memories += vale_memories[i] != NULL;
	return (th);
}

void
things_check(const struct things *before)
{
	const struct things th = things_now();

	ATF_CHECK_EQ(before->th_fds, th.th_fds);
	ATF_CHECK_EQ(before->th_inherited, th.th_inherited);
	ATF_CHECK_EQ(before->th_maps, th.th_maps);
	ATF_CHECK_EQ(before->th_allocs, th.th_allocs);
	ATF_CHECK_EQ(before->th_mutexes, th.th_mutexes);
	ATF_CHECK_EQ(before->th_faults, th.th_faults);
	ATF_CHECK_EQ(before->th_memories, th.th_memories);
}

/*
 * Clients.
 */

/* Who connects. */
static struct ctl_who peer_who;

WRAP(int, ctl_who, int fd __unused, struct ctl_who *who)
{
	*who = peer_who;
	return (0);
}

static struct ctl_conn *
conn_of(int fd)
{
	unsigned int i;

	for (i = 0; i < CTL_MAX; i++)
		if (ctl_conns[i].cc_open && ctl_conns[i].cc_fd == fd)
			return (&ctl_conns[i]);
	atf_tc_fail("no connection");
}

void
peer_connect(struct peer *p, uid_t uid, bool admin)
{
	static bool started;
	int fds[2];

	if (!started)
		ATF_REQUIRE_EQ(0, peer_fault_init());
	started = true;
	ATF_REQUIRE_EQ(0, __real_socketpair(AF_UNIX, SOCK_SEQPACKET |
	    SOCK_CLOEXEC, 0, fds));
	peer_who = (struct ctl_who){ uid, admin };
	ATF_REQUIRE_EQ(0, ctl_accept(fds[1], false));
	p->pe_cc = conn_of(fds[1]);
	p->pe_fd = fds[0];
	p->pe_nfds = 0;
}

void
peer_close_fds(struct peer *p)
{
	while (p->pe_nfds > 0)
		close(p->pe_fds[--p->pe_nfds]);
}

void
peer_end(struct peer *p)
{
	peer_close_fds(p);
	close(p->pe_fd);
	ATF_CHECK(!ctl_serve_request(p->pe_cc));
	conn_close(p->pe_cc);
	locks_check();
}

void
peer_leave(struct peer *p)
{
	peer_close_fds(p);
	close(p->pe_fd);
	locks_check();
}

/* Take the descriptors of the reply. */
static void
peer_take(struct peer *p, struct msghdr *msg)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(msg);

	ATF_REQUIRE_EQ(0, msg->msg_flags & (MSG_TRUNC | MSG_CTRUNC));
	peer_close_fds(p);
	if (c == NULL)
		return;
	p->pe_nfds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	ATF_REQUIRE(p->pe_nfds <= nitems(p->pe_fds));
	memcpy(p->pe_fds, CMSG_DATA(c), p->pe_nfds * sizeof(int));
}

/* Receive it. */
static void
peer_receive(struct peer *p)
{
	union {
		struct cmsghdr	align;
		char		space[CMSG_SPACE(sizeof(p->pe_fds))];
	} control;
	struct iovec iov = { &p->pe_reply, sizeof(p->pe_reply) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t n;

	n = recvmsg(p->pe_fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	ATF_REQUIRE(n >= (ssize_t)sizeof(struct vale_wire));
	p->pe_body = &p->pe_reply.wire + 1;
	p->pe_size = n - sizeof(struct vale_wire);
	peer_take(p, &msg);
}

int
peer_packet(struct peer *p, const void *packet, size_t len, int passed)
{
	const struct vale_wire *wire = &p->pe_reply.wire;
	int fds[SEND_FDS_MAX];
	unsigned int i;
	size_t n;

	for (i = 0; i < peer_copies; i++)
		fds[i] = peer_fds != NULL ? peer_fds[i] : passed;
	SEND_FDS(p->pe_fd, packet, len, fds, peer_fds != NULL || passed != -1 ?
	    peer_copies : 0);
	ATF_REQUIRE(ctl_serve_request(p->pe_cc));
	peer_receive(p);
	locks_check();
	ATF_CHECK_EQ(0, p->pe_cc->cc_grant.gr_nfds);
	ATF_CHECK_EQ(0, p->pe_cc->cc_grant.gr_npassed);
	ATF_CHECK_EQ(VALE_WIRE_MAGIC, wire->vw_magic);
	ATF_CHECK_EQ(wire->vw_error != 0, wire->vw_why[0] != '\0');
	for (n = strlen(wire->vw_why); wire->vw_error != 0 &&
	    n < sizeof(wire->vw_why); n++)
		ATF_REQUIRE(wire->vw_why[n] == '\0');
	return (wire->vw_error);
}

int
peer_pass(struct peer *p, uint16_t request, const char *name, const void *body,
    size_t size, int passed)
{
	static union {
		struct vale_wire wire;
		char	packet[VALE_WIRE_MAX];
	} r;

	memset(&r, 0, sizeof(r));
	r.wire.vw_magic = VALE_WIRE_MAGIC;
	r.wire.vw_header.nr_version = NETMAP_API;
	r.wire.vw_header.nr_reqtype = request;
	strlcpy(r.wire.vw_header.nr_name, name, VALE_NAME_SIZE);
	/* What a server must overwrite. */
	memset(r.wire.vw_why, 'x', sizeof(r.wire.vw_why));
	r.wire.vw_error = -1;
	if (size > 0)
		memcpy(&r.wire + 1, body, size);
	return (peer_packet(p, &r, sizeof(r.wire) + size, passed));
}

int
peer_ask(struct peer *p, uint16_t request, const char *name, const void *body,
    size_t size)
{
	return (peer_pass(p, request, name, body, size, -1));
}

void
peer_renew(struct peer *p)
{
	const struct ctl_who who = p->pe_cc->cc_who;

	peer_end(p);
	peer_connect(p, who.cw_uid, who.cw_admin);
}

void
peers_connect(struct peer *p, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		peer_connect(&p[i], 1001, false);
}

void
peers_close(struct peer *p, unsigned int n)
{
	while (n-- > 0)
		peer_end(&p[n]);
}

struct nmreq_register
peer_open(struct peer *p, const char *name, struct nmreq_register reg,
    int passed)
{
	ATF_REQUIRE_EQ_MSG(0, peer_pass(p, NETMAP_REQ_REGISTER, name, &reg,
	    sizeof(reg), passed), "%s: %s", name, p->pe_reply.wire.vw_why);
	ATF_CHECK_STREQ("", p->pe_reply.wire.vw_why);
	ATF_REQUIRE_EQ(sizeof(reg), p->pe_size);
	memcpy(&reg, p->pe_body, sizeof(reg));
	return (reg);
}
