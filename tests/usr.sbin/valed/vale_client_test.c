/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A connection to valed: what is sent, and that no reply, however wrong, leaves
 * a descriptor or a mapping.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/systm.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "fail_calls.h"
#include "open_fds.h"
#include "send_fds.h"
#include "test.h"
#include "vale_client.h"
#include "vale_find.h"
#include "vale_layout.h"
#include "wire_peer.h"

struct talk {
	int			 fd[2];
	struct nmreq_header	 hdr;
	struct vale_client_call	 call;
	char			 reply[32];
};

static void
talk(struct talk *t)
{
	memset(t, 0, sizeof(*t));
	wire_pair(t->fd);
	t->hdr.nr_version = NETMAP_API;
	t->hdr.nr_reqtype = NETMAP_REQ_PORT_INFO_GET;
	t->hdr.nr_body = 0x1234;
	strcpy(t->hdr.nr_name, "vale0:a");
	t->call.hdr = &t->hdr;
	t->call.reply = t->reply;
	t->call.reply_max = sizeof(t->reply);
	/* What must be gone when it returns. */
	strcpy(t->call.why, "earlier");
	t->call.reply_size = 99;
}

static void
talk_end(struct talk *t)
{
	close(t->fd[0]);
	close(t->fd[1]);
}

TEST(path, "The environment names the socket, or it is the default")
{
	ATF_REQUIRE_EQ(0, unsetenv(VALE_WIRE_ENV));
	ATF_CHECK_STREQ(VALE_WIRE_PATH, vale_find_path());
	ATF_REQUIRE_EQ(0, setenv(VALE_WIRE_ENV, "/else/where", 1));
	ATF_CHECK_STREQ("/else/where", vale_find_path());
}

TEST(connect, "A socket is connected, and closed on exec; a failure leaves no "
    "descriptor")
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct rlimit limit, none;
	char path[sizeof(sun.sun_path) + 1];
	const unsigned int fds = open_fds();
	int fd, l;

	memset(path, 'a', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	ATF_CHECK_ERRNO(ENAMETOOLONG, vale_client_connect(path) == -1);
	path[sizeof(path) - 2] = '\0';
	ATF_CHECK_ERRNO(ENOENT, vale_client_connect(path) == -1);
	ATF_CHECK_EQ(fds, open_fds());
	l = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	memcpy(sun.sun_path, path, sizeof(sun.sun_path));
	ATF_REQUIRE_EQ(0, bind(l, (struct sockaddr *)&sun, sizeof(sun)));
	ATF_CHECK_ERRNO(ECONNREFUSED, vale_client_connect(path) == -1);
	ATF_REQUIRE_EQ(0, listen(l, 1));
	ATF_REQUIRE_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
	none = limit;
	none.rlim_cur = 0;
	ATF_REQUIRE_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
	ATF_CHECK_ERRNO(EMFILE, vale_client_connect(path) == -1);
	ATF_REQUIRE_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	fd = vale_client_connect(path);
	ATF_REQUIRE(fd != -1);
	ATF_CHECK_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
	ATF_CHECK(vale_client_alive(fd));
	close(l);
	ATF_CHECK(!vale_client_alive(fd));
	close(fd);
	ATF_CHECK_EQ(fds, open_fds());
}

TEST(refused, "An error has its errno and its sentence; descriptors with it "
    "are closed")
{
	struct vale_wire wire = { .vw_magic = VALE_WIRE_MAGIC,
	    .vw_error = ENOSPC };
	struct talk t;
	unsigned int fds;
	char name[sizeof(t.hdr.nr_name)];

	talk(&t);
	fds = open_fds();
	wire_reply(t.fd[1], EBUSY, "it is open", "", 0, t.fd, 2);
	ATF_CHECK_ERRNO(EBUSY, vale_client_call(t.fd[0], &t.call) == -1);
	ATF_CHECK_STREQ("it is open", t.call.why);
	ATF_CHECK_EQ(fds, open_fds());
	/* Without a NUL. */
	memset(wire.vw_why, 'w', sizeof(wire.vw_why));
	memset(name, 'n', sizeof(name));
	memcpy(wire.vw_header.nr_name, name, sizeof(name));
	SEND_FDS(t.fd[1], &wire, sizeof(wire), NULL, 0);
	ATF_CHECK_ERRNO(ENOSPC, vale_client_call(t.fd[0], &t.call) == -1);
	ATF_CHECK_EQ(sizeof(wire.vw_why) - 1, strlen(t.call.why));
	ATF_CHECK_EQ(sizeof(name) - 1, strlen(t.hdr.nr_name));
	/* It begins no other line, and says nothing to a terminal. */
	wire_reply(t.fd[1], EBUSY, "no\n<0>valed:\r \x1b[2J\x7f\x9b~", "", 0,
	    NULL, 0);
	ATF_CHECK_ERRNO(EBUSY, vale_client_call(t.fd[0], &t.call) == -1);
	ATF_CHECK_STREQ("no?<0>valed:? ?[2J??~", t.call.why);
	talk_end(&t);
}

TEST(malformed, "A malformed reply is an error, and its descriptors are closed")
{
	char buf[sizeof(struct vale_wire) +
	    sizeof(((struct talk *)0)->reply) + 1];
	struct vale_wire wire = { .vw_magic = VALE_WIRE_MAGIC };
	struct talk t;
	unsigned int fds, i;
	int all[VALE_WIRE_REPLY_FDS + 1];

	talk(&t);
	fds = open_fds();
	for (i = 0; i < nitems(all); i++)
		all[i] = t.fd[1];
	/* A byte too short, and too long. */
	SEND_FDS(t.fd[1], &wire, sizeof(wire) - 1, all, 2);
	ATF_CHECK_ERRNO(EPROTO, vale_client_call(t.fd[0], &t.call) == -1);
	memset(buf, 0, sizeof(buf));
	memcpy(buf, &wire, sizeof(wire));
	SEND_FDS(t.fd[1], buf, sizeof(buf), all, 2);
	ATF_CHECK_ERRNO(EPROTO, vale_client_call(t.fd[0], &t.call) == -1);
	/* More descriptors than any reply has. */
	SEND_FDS(t.fd[1], &wire, sizeof(wire), all, nitems(all));
	ATF_CHECK_ERRNO(EPROTO, vale_client_call(t.fd[0], &t.call) == -1);
	/* Of another version. */
	wire.vw_magic++;
	SEND_FDS(t.fd[1], &wire, sizeof(wire), all, 2);
	ATF_CHECK_ERRNO(EPROTO, vale_client_call(t.fd[0], &t.call) == -1);
	ATF_CHECK_STREQ("", t.call.why);
	ATF_CHECK_EQ(fds, open_fds());
	talk_end(&t);
}

TEST(interrupted, "A signal does not end a call; another error does")
{
	struct wire_request wr;
	struct talk t;
	uint32_t failed, n;

	talk(&t);
	wire_reply(t.fd[1], 0, "", "", 0, NULL, 0);
	fail_calls_error(EINTR);
	for (n = 0, failed = 1; failed > 0; ) {
		fail_calls(NULL, ++n, 2);
		ATF_CHECK_EQ(0, vale_client_call(t.fd[0], &t.call));
		failed = fail_calls_end();
		ATF_CHECK(failed == 0 || failed == 2);
		wire_take(t.fd[1], &wr);
		ATF_CHECK(!wire_pending(t.fd[1]));
		wire_reply(t.fd[1], 0, "", "", 0, NULL, 0);
	}
	ATF_CHECK(n > 2);
	fail_calls_error(ENOMEM);
	fail_calls("sendmsg", 1, 1);
	ATF_CHECK_ERRNO(ENOMEM, vale_client_call(t.fd[0], &t.call) == -1);
	ATF_CHECK(!wire_pending(t.fd[1]));
	fail_calls_error(EIO);
	fail_calls("recvmsg", 1, 1);
	ATF_CHECK_ERRNO(EIO, vale_client_call(t.fd[0], &t.call) == -1);
	fail_calls_end();
	/* The reply is still there. */
	ATF_CHECK(vale_client_alive(t.fd[0]));
	ATF_CHECK(wire_pending(t.fd[0]));
	talk_end(&t);
}

/* The second descriptor. */
static int window_fd;

/* Have valed grant a port so, and open it.  Returns 0 or an errno. */
static int
open_with(struct vale_client_port *cp, const char *name, const void *body,
    size_t size, unsigned int nfds, int memory)
{
	const struct nmreq_register reg = { .nr_mode = NR_REG_ALL_NIC };
	unsigned int before, i;
	int all[VALE_WIRE_REPLY_FDS], error, fd[2], null, result;
	char why[128] = "earlier";

	null = open("/dev/null", O_RDWR);
	wire_pair(fd);
	for (i = 0; i < nfds; i++)
		all[i] = i == 0 ? memory : i == 1 ? window_fd : null;
	wire_reply(fd[1], 0, "", body, size, all, nfds);
	before = open_fds();
	memset(cp, 0xa5, sizeof(*cp));
	result = vale_client_open(cp, fd[0], name, &reg, -1, why);
	ATF_REQUIRE(result == 0 || result == -1);
	error = result == 0 ? 0 : errno;
	close(null);
	close(fd[1]);
	if (error == 0) {
		ATF_CHECK_EQ(before - 2 + nfds, open_fds());
		return (0);
	}
	/* The connection stays usable. */
	ATF_CHECK_EQ(before - 2, open_fds());
	ATF_CHECK_EQ(0, close(fd[0]));
	ATF_CHECK_STREQ("", why);
	return (error);
}

#define	SLOTS		4

/*
 * Lay out a port with `n' ring pairs, and make its window.  Returns the
 * memory's descriptor.
 */
static int
layout(struct nmreq_register *reg, unsigned int n)
{
	const struct vale_params params = { .rings = n, .tx_slots = SLOTS,
	    .rx_slots = SLOTS };
	struct vale_region_layout rl;
	struct vale_window_layout wl;
	struct vale_window vv = { .vv_extra = 7 };
	int fd = memfd_create("memory", MFD_CLOEXEC);

	vale_shared_layout(&rl, &params, 0);
	vale_window_layout(&wl, n, SLOTS, SLOTS);
	*reg = (struct nmreq_register){ .nr_memsize = rl.rl_size,
	    .nr_offset = VALE_WINDOW_OFFSET(rl.rl_frames), .nr_tx_rings = n,
	    .nr_rx_rings = n, .nr_tx_slots = SLOTS, .nr_rx_slots = SLOTS };
	vv.vv_bufs = rl.rl_bufs;
	vv.vv_end = rl.rl_size;
	ATF_REQUIRE_EQ(0, ftruncate(fd, rl.rl_size));
	window_fd = memfd_create("window", MFD_CLOEXEC);
	ATF_REQUIRE_EQ(0, ftruncate(window_fd, wl.wl_size));
	ATF_REQUIRE_EQ(sizeof(vv), pwrite(window_fd, &vv, sizeof(vv), 0));
	return (fd);
}

static bool
mapped(const char *base)
{
	unsigned char page;

	return (mincore(__DECONST(char *, base), VALE_PAGE, &page) == 0);
}

/* A grant of one ring pair that is refused with EPROTO. */
static void
grant_refused(const char *name, const struct nmreq_register *reg, int fd)
{
	struct vale_client_port cp;

	ATF_CHECK_EQ_MSG(EPROTO, open_with(&cp, name, reg, sizeof(*reg), 4,
	    fd), "%s at %#jx of %#jx", name, (uintmax_t)reg->nr_offset,
	    (uintmax_t)reg->nr_memsize);
}

TEST(places, "A window that is elsewhere, or of another size, is refused")
{
	struct nmreq_register reg, bad;
	int fd = layout(&reg, 1);
	struct vale_window vv, was;

	bad = reg;
	bad.nr_offset -= sizeof(struct vale_window);
	grant_refused("vale0:a", &bad, fd);
	bad.nr_offset = reg.nr_offset + VALE_WINDOW_ALIGN;
	grant_refused("vale0:a", &bad, fd);
	bad.nr_offset = reg.nr_memsize;
	grant_refused("vale0:a", &bad, fd);
	bad.nr_offset = VALE_WINDOW_OFFSET(VALE_WINDOW_AT(UINT64_MAX));
	grant_refused("vale0:a", &bad, fd);
	bad = reg;
	bad.nr_memsize = VALE_PAGE;
	grant_refused("vale0:a", &bad, fd);
	bad.nr_memsize = reg.nr_memsize - 1;
	grant_refused("vale0:a", &bad, fd);
	bad = reg;
	bad.nr_tx_slots = 2 * VALE_WINDOW_ALIGN / sizeof(struct netmap_slot);
	grant_refused("vale0:a", &bad, fd);
	bad.nr_tx_slots = 0;
	grant_refused("vale0:a", &bad, fd);
	bad.nr_tx_slots = UINT32_MAX;
	grant_refused("vale0:a", &bad, fd);
	bad = reg;
	bad.nr_rx_slots = 1;
	grant_refused("vale0:a", &bad, fd);
	/* No pipe is there. */
	grant_refused("vale0:a{1", &reg, fd);
	ATF_REQUIRE_EQ(sizeof(was), pread(window_fd, &was, sizeof(was), 0));
#define	WINDOW_REFUSED(name, field, value) do {				\
	vv = was;							\
	vv.field = (value);						\
	ATF_REQUIRE_EQ(sizeof(vv), pwrite(window_fd, &vv, sizeof(vv), 0)); \
	grant_refused((name), &reg, fd);				\
} while (0)
	WINDOW_REFUSED("vale0:a", vv_bufs, 64);
	WINDOW_REFUSED("vale0:a", vv_bufs, was.vv_bufs + VALE_PAGE);
	WINDOW_REFUSED("vale0:a", vv_end, was.vv_bufs - 1);
	WINDOW_REFUSED("vale0:a", vv_end, was.vv_end - 1);
	WINDOW_REFUSED("vale0:a", vv_end, was.vv_end + 1);
	WINDOW_REFUSED("vale0:a{1", vv_pipe, was.vv_bufs - VALE_PAGE);
	WINDOW_REFUSED("vale0:a{1", vv_pipe, was.vv_end);
	WINDOW_REFUSED("vale0:a{1", vv_pipe, UINT64_MAX - VALE_PAGE + 1);
	ATF_REQUIRE_EQ(sizeof(was), pwrite(window_fd, &was, sizeof(was), 0));
	ATF_REQUIRE_EQ(0, ftruncate(window_fd, 2 * VALE_WINDOW_ALIGN));
	grant_refused("vale0:a", &reg, fd);
	close(window_fd);
	close(fd);
}

TEST(not_granted, "A grant that is not valid is refused, and nothing of it is "
    "left")
{
	struct nmreq_register reg;
	struct vale_client_port cp;
	const unsigned int fds = open_fds();
	char name[sizeof(((struct nmreq_header *)0)->nr_name) + 1];
	int fd = layout(&reg, 2), pair[2];

	ATF_CHECK_EQ(EPROTO, open_with(&cp, "vale0:a", &reg, sizeof(reg) - 1,
	    6, fd));
	ATF_CHECK_EQ(EPROTO, open_with(&cp, "vale0:a", &reg, sizeof(reg), 5,
	    fd));
	ATF_CHECK_EQ(EPROTO, open_with(&cp, "vale0:a", &reg, sizeof(reg), 7,
	    fd));
	reg.nr_rx_rings = 1;
	ATF_CHECK_EQ(EPROTO, open_with(&cp, "vale0:a", &reg, sizeof(reg), 6,
	    fd));
	reg.nr_tx_rings = reg.nr_rx_rings = 0;
	ATF_CHECK_EQ(EPROTO, open_with(&cp, "vale0:a", &reg, sizeof(reg), 2,
	    fd));
	reg.nr_tx_rings = reg.nr_rx_rings = VALE_RINGS_MAX + 1;
	ATF_CHECK_EQ(EPROTO, open_with(&cp, "vale0:a", &reg, sizeof(reg),
	    VALE_WIRE_REPLY_FDS, fd));
	close(fd);
	close(window_fd);
	/* mmap(2) fails for a socket. */
	fd = layout(&reg, 1);
	wire_pair(pair);
	ATF_CHECK_EQ(ENODEV, open_with(&cp, "vale0:a", &reg, sizeof(reg), 4,
	    pair[0]));
	close(pair[1]);
	ATF_CHECK(!mapped(cp.cp_base));
	close(pair[0]);
	close(fd);
	close(window_fd);
	ATF_CHECK_EQ(fds, open_fds());
	/* Too long; nothing is sent. */
	wire_pair(pair);
	memset(name, 'v', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	ATF_CHECK_ERRNO(EINVAL, vale_client_open(&cp, pair[0], name, &reg,
	    -1, NULL) == -1);
	ATF_CHECK(!wire_pending(pair[1]));
	name[sizeof(name) - 2] = '\0';
	wire_reply(pair[1], ENXIO, "no", "", 0, NULL, 0);
	ATF_CHECK_ERRNO(ENXIO, vale_client_open(&cp, pair[0], name, &reg,
	    -1, NULL) == -1);
	close(pair[0]);
	close(pair[1]);
}

TEST_PROGRAM
