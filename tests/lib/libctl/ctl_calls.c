/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <sys/param.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <stdarg.h>

#include <atf-c.h>

/* Its threads do not run: the functions below take their place. */
#include "ctl.c"
#include "wrap.h"

#include "ctl_calls.h"
#include "fail_calls.h"
#include "send_fds.h"
#include "peer_fault.h"

struct vale_shared shared_last;
void		(*on_open)(void);
unsigned int	more_calls;
struct vale_desc *more_desc;
size_t		more_last;
unsigned int	peer_copies = 1;
const int	*peer_fds;
dev_t		fstat_dev;

/* As the C library's, it reads six arguments, whatever the caller passes. */
long	__real_syscall(long nr, ...);
long	__wrap_syscall(long nr, ...);

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
	return (FAIL_CALL("fstat") ? -1 : n);
}

WRAP(struct vale_desc *, vale_open_shared, const char *name,
    const struct vale_params *params, const struct vale_shared *shared)
{
	shared_last = *shared;
	return (__real_vale_open_shared(name, params, shared));
}

/* No thread is started. */

WRAP(int, pthread_create, pthread_t *thread __unused,
    const pthread_attr_t *attr __unused, void *(*start)(void *) __unused,
    void *arg __unused)
{
	return (0);
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
	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET |
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
