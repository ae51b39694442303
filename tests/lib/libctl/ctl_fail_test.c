/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Requests during which a call fails: the reply says so, and nothing is left.
 */

#include <sys/param.h>

#include <errno.h>
#include <string.h>

#include <atf-c.h>

#include "ctl_calls.h"
#include "test.h"
#include "vale_layout.h"

/* An error of no call, and for which nothing is tried again. */
#define	ERROR		EXFULL
#define	FOREVER		1000000

static struct peer peer, other;

/* What is open while a request fails. */
static const struct scene {
	const char	*name;		/* of the port, or pipe */
	struct nmreq_register reg;
	unsigned int	 nfds;		/* of the reply */
	unsigned int	 calls;		/* that can fail: 1 << enum call */
} scenes[] = {
	{ "vale0:p", { .nr_mode = NR_REG_ALL_NIC, .nr_tx_rings = 3,
	    .nr_extra_bufs = 5 }, 2 + 2 * 3,
	    1 << CALL_CALLOC | 1 << CALL_DMA_MAP | 1 << CALL_FAULT_ADD |
	    1 << CALL_FCNTL | 1 << CALL_FSTAT | 1 << CALL_FTRUNCATE |
	    1 << CALL_MALLOC | 1 << CALL_MEMFD | 1 << CALL_MUTEX_INIT |
	    1 << CALL_OPEN_SHARED | 1 << CALL_PWRITE | 1 << CALL_SOCKETPAIR },
	{ "vale0:keep", { .nr_mode = NR_REG_ALL_NIC,
	    .nr_flags = NR_MONITOR_RX }, 4,
	    1 << CALL_CALLOC | 1 << CALL_DMA_MAP | 1 << CALL_FAULT_ADD |
	    1 << CALL_FCNTL | 1 << CALL_FSTAT | 1 << CALL_FTRUNCATE |
	    1 << CALL_MALLOC | 1 << CALL_MEMFD | 1 << CALL_MUTEX_INIT |
	    1 << CALL_OPEN_SHARED | 1 << CALL_PWRITE | 1 << CALL_SOCKETPAIR },
	{ "vale0:p{1", { .nr_mode = NR_REG_ALL_NIC }, 4,
	    1 << CALL_CALLOC | 1 << CALL_FCNTL | 1 << CALL_FSTAT |
	    1 << CALL_FTRUNCATE | 1 << CALL_MALLOC | 1 << CALL_MEMFD |
	    1 << CALL_MUTEX_INIT | 1 << CALL_PREAD | 1 << CALL_PWRITE |
	    1 << CALL_SOCKETPAIR },
	/* In memory of a port that is there. */
	{ "vale0:keep}1", { .nr_mode = NR_REG_ALL_NIC }, 4,
	    1 << CALL_FCNTL | 1 << CALL_FTRUNCATE | 1 << CALL_MALLOC |
	    1 << CALL_MEMFD | 1 << CALL_PREAD | 1 << CALL_PWRITE |
	    1 << CALL_SOCKETPAIR },
	{ "x", { .nr_mode = NR_REG_NULL, .nr_mem_id = 1 }, 2,
	    1 << CALL_CALLOC | 1 << CALL_FCNTL | 1 << CALL_FSTAT |
	    1 << CALL_FTRUNCATE | 1 << CALL_MEMFD | 1 << CALL_MUTEX_INIT |
	    1 << CALL_PWRITE },
};

/* The errno of the reply if the n-th call fails. */
static int
error_of(enum call call, unsigned int n)
{
	switch (call) {
	case CALL_PREAD:
		return (EIO);
	case CALL_PWRITE:
		return (ENOMEM);
	case CALL_FSTAT:
		/* The second one is that of peer_mem_map(). */
		return (n == 1 ? ERROR : EINVAL);
	default:
		return (ERROR);
	}
}

static int
ask(struct peer *p, const struct scene *s)
{
	return (peer_ask(p, NETMAP_REQ_REGISTER, s->name, &s->reg,
	    sizeof(s->reg)));
}

/* The n-th call fails.  False: there is none. */
static bool
fails(const struct scene *s, enum call call, unsigned int n)
{
	const struct things before = things_now();
	int error, want = error_of(call, n);

	calls_fail(call, n, FOREVER, ERROR);
	error = ask(&peer, s);
	if (calls_failed() == 0) {
		/* What it says of memory that is closed. */
		peer_end(&peer);
		peer_connect(&peer, 1001, false);
		return (false);
	}
	/* malloc(3) sets it, whatever the test says. */
	if (call == CALL_MALLOC)
		want = ENOMEM;
	ATF_CHECK_EQ_MSG(want, error, "%s: call %d of %d: %d", s->name, n, call,
	    error);
	ATF_CHECK_STREQ(strerror(want), peer.pe_reply.wire.vw_why);
	ATF_CHECK_EQ(0, peer.pe_size);
	ATF_CHECK_EQ(0, peer.pe_nfds);
	ATF_CHECK(!vale_grant_any(&peer.pe_cc->cc_grant));
	ATF_CHECK_EQ(-1, peer.pe_cc->cc_grant.gr_window);
	things_check(&before);
	return (true);
}

/* The connection can do it afterwards, and close it. */
static void
goes_on(const struct scene *s)
{
	struct things before;

	peer_end(&peer);
	before = things_now();
	peer_connect(&peer, 1001, false);
	ATF_CHECK_EQ_MSG(0, ask(&peer, s), "%s: %s", s->name,
	    peer.pe_reply.wire.vw_why);
	ATF_CHECK_EQ(s->nfds, peer.pe_nfds);
	ATF_CHECK_EQ(before.th_inherited, things_now().th_inherited);
	peer_end(&peer);
	things_check(&before);
	peer_connect(&peer, 1001, false);
}

static void
start(void)
{
	peer_connect(&peer, 1001, false);
	peer_connect(&other, 1001, false);
	GRANTED(sizeof(struct nmreq_register), 4, &other,
	    REGISTER("vale0:keep", .nr_mode = NR_REG_ALL_NIC));
	peer_close_fds(&other);
}

static void
stop(void)
{
	peer_end(&peer);
	peer_end(&other);
}

TEST(each, "Each call of a registration fails: the error and its reason are in "
    "the reply, nothing stays, and the next try succeeds")
{
	const struct scene *s;
	unsigned int call, n;

	start();
	for (s = scenes; s < scenes + nitems(scenes); s++)
		for (call = 0; call < NCALLS; call++) {
			for (n = 1; fails(s, call, n); n++)
				continue;
			ATF_CHECK_EQ_MSG((s->calls & 1 << call) != 0, n > 1,
			    "%s: call %u", s->name, call);
			goes_on(s);
		}
	stop();
}

TEST(again, "What may be short for a moment is tried once more, and not twice")
{
	static const int errors[] = { EBUSY, EPERM, ENOSPC, EMFILE, ENOMEM };
	static const int others[] = { EXFULL, EINVAL, EAGAIN, ENXIO, EIO };
	static const struct scene *const s = &scenes[0];
	struct things before;
	unsigned int i;

	start();
	before = things_now();
	for (i = 0; i < nitems(errors); i++) {
		calls_fail(CALL_FAULT_ADD, 1, 1, errors[i]);
		ATF_CHECK_EQ_MSG(0, ask(&peer, s), "%d", errors[i]);
		ATF_CHECK_STREQ("", peer.pe_reply.wire.vw_why);
		ATF_CHECK_EQ(1, calls_failed());
		peer_end(&peer);
		peer_connect(&peer, 1001, false);
		calls_fail(CALL_FAULT_ADD, 1, 2, errors[i]);
		ATF_CHECK_EQ(errors[i], ask(&peer, s));
		ATF_CHECK_EQ(2, calls_failed());
	}
	for (i = 0; i < nitems(others); i++) {
		calls_fail(CALL_FAULT_ADD, 1, 1, others[i]);
		ATF_CHECK_EQ_MSG(others[i], ask(&peer, s), "%d", others[i]);
		ATF_CHECK_EQ(1, calls_failed());
	}
	things_check(&before);
	stop();
}

TEST(reasons, "What a port cannot be opened for, in words")
{
	static const struct {
		int		error;
		const char	*why;
	} reasons[] = {
		{ EBUSY, "the port is open already" },
		{ ENOSPC, "the switch has no place for another port" },
		{ ENXIO, "there is no such port" },
		{ EMFILE, "Too many open files" },
	};
	unsigned int i;

	start();
	for (i = 0; i < nitems(reasons); i++) {
		calls_fail(CALL_OPEN_SHARED, 1, 2, reasons[i].error);
		REFUSED(reasons[i].error, reasons[i].why, &peer,
		    REGISTER("vale0:p", .nr_mode = NR_REG_ALL_NIC));
	}
	stop();
}

TEST(extra, "Extra buffers that cannot be linked are none; the request goes on")
{
	struct nmreq_register *reg;
	struct vale_window vv;
	unsigned int n;

	start();
	for (n = 1; n <= 3; n++) {
		calls_fail(CALL_PWRITE, n, 1, ERROR);
		GRANTED(sizeof(*reg), 2, &peer, REGISTER("x",
		    .nr_mode = NR_REG_NULL, .nr_mem_id = 1,
		    .nr_extra_bufs = 3));
		ATF_CHECK_EQ(1, calls_failed());
		reg = peer.pe_body;
		ATF_CHECK_EQ(0, reg->nr_extra_bufs);
		ATF_REQUIRE_EQ((ssize_t)sizeof(vv), pread(peer.pe_fds[1], &vv,
		    sizeof(vv), 0));
		ATF_CHECK_EQ(0, vv.vv_extra);
		peer_end(&peer);
		peer_connect(&peer, 1001, false);
	}
	stop();
}

TEST(share, "Descriptors that cannot be given once more: the port stays")
{
	const struct scene *s;
	struct things before;
	unsigned int n;

	start();
	for (s = scenes; s < scenes + nitems(scenes); s++) {
		ATF_REQUIRE_EQ(0, ask(&peer, s));
		peer_close_fds(&peer);
		before = things_now();
		for (n = 1; n <= s->nfds; n++) {
			calls_fail(CALL_FCNTL, n, FOREVER, ERROR);
			REFUSED(ERROR, strerror(ERROR), &peer, VALE_WIRE_SHARE,
			    "", NULL, 0);
			ATF_CHECK_EQ(1, calls_failed());
			things_check(&before);
		}
		GRANTED(sizeof(struct nmreq_register), s->nfds, &peer,
		    VALE_WIRE_SHARE, "", NULL, 0);
		peer_end(&peer);
		peer_connect(&peer, 1001, false);
	}
	stop();
}

TEST_PROGRAM
