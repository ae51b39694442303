/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A port that libvale opens over a connection to valed: what it asks for, what
 * it leaves if that fails, and how its syncs wait.  The test is the switch.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/systm.h>
#include <dev/netmap/vale_fdb.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "fail_calls.h"
#include "open_fds.h"
#include "test.h"
#include "vale_client.h"
#include "vale_layout.h"
#include "wait_until.h"
#include "wire_connect.h"
#include "wrap.h"

#define	RINGS		2
#define	SLOTS		8

/* Mutexes that were held during the last call. */
static int64_t	locked_in_call;
/* A frame comes for these rings while the user goes to sleep. */
static struct vale_csb *late;

WRAP(int, vale_client_call, int fd, struct vale_client_call *call)
{
	locked_in_call = fail_held().fhl_locks;
	return (__real_vale_client_call(fd, call));
}

WRAP(bool, vale_client_rxwait, struct vale_client_port *cp, unsigned int i)
{
	if (late != NULL)
		atomic_store_rel_32(&late->rx_ktoa.hwtail, 1);
	late = NULL;
	return (__real_vale_client_rxwait(cp, i));
}

/* A port of which this program is the switch. */
struct port {
	char			*base;
	size_t			 size;
	int			 fd;		/* valed's end */
	int			 kick[2 * RINGS]; /* the same; transmit first */
	struct vale_csb		*csb;
	struct nmreq_register	 asked;		/* what the request had */
	struct vale_desc	*d;
};

/* Have a port granted on the next connection. */
static void
prepare_port(struct port *p)
{
	static const struct vale_params params = { .rings = RINGS,
	    .tx_slots = SLOTS, .rx_slots = SLOTS };
	struct nmreq_register reg = { .nr_tx_rings = RINGS,
	    .nr_rx_rings = RINGS, .nr_tx_slots = SLOTS, .nr_rx_slots = SLOTS };
	struct vale_region_layout rl;
	struct vale_window_layout wl;
	struct vale_window vv = { .vv_extra = 0 };
	int all[2 + 2 * RINGS], pair[2];
	unsigned int i;

	memset(p, 0, sizeof(*p));
	vale_shared_layout(&rl, &params, 0);
	vale_window_layout(&wl, RINGS, SLOTS, SLOTS);
	p->size = reg.nr_memsize = rl.rl_size;
	reg.nr_offset = VALE_WINDOW_OFFSET(rl.rl_frames);
	all[0] = memfd_create("port", MFD_CLOEXEC);
	ATF_REQUIRE_EQ(0, ftruncate(all[0], p->size));
	p->base = mmap(NULL, p->size, PROT_READ | PROT_WRITE, MAP_SHARED,
	    all[0], 0);
	ATF_REQUIRE(p->base != MAP_FAILED);
	p->csb = (struct vale_csb *)(void *)p->base;
	for (i = 0; i < RINGS; i++)
		p->csb[i].tx_ktoa.hwtail = SLOTS - 1;
	all[1] = memfd_create("window", MFD_CLOEXEC);
	vv.vv_bufs = rl.rl_bufs;
	vv.vv_end = rl.rl_size;
	ATF_REQUIRE_EQ(0, ftruncate(all[1], wl.wl_size));
	ATF_REQUIRE_EQ(sizeof(vv), pwrite(all[1], &vv, sizeof(vv), 0));
	for (i = 0; i < 2 * RINGS; i++) {
		ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
		p->kick[i] = pair[0];
		all[2 + i] = pair[1];
	}
	p->fd = prepare();
	wire_reply(p->fd, 0, "", &reg, sizeof(reg), all, nitems(all));
	for (i = 0; i < nitems(all); i++)
		close(all[i]);
}

static void
port_open(struct port *p, const struct vale_params *params)
{
	struct wire_request wr;

	prepare_port(p);
	p->d = vale_open("vale0:a", params);
	ATF_REQUIRE_MSG(p->d != NULL, "%s", strerror(errno));
	wr = request(p->fd, NETMAP_REQ_REGISTER, "vale0:a", sizeof(p->asked));
	memcpy(&p->asked, wr.wr_body, sizeof(p->asked));
}

/* valed lets go of the port. */
static void
port_end(struct port *p)
{
	unsigned int i;

	for (i = 0; i < nitems(p->kick); i++)
		close(p->kick[i]);
	munmap(p->base, p->size);
}

static void
port_close(struct port *p)
{
	vale_close(p->d);
	port_end(p);
	finish();
}

TEST(open, "A port is asked for with its parameters, and is as valed grants it")
{
	const struct vale_params params = { .tx_slots = 3, .rx_slots = 4,
	    .rings = VALE_RINGS_MAX };
	const unsigned int fds = open_fds();
	struct port p;
	struct vale_desc *d;
	unsigned int i;

	port_open(&p, NULL);
	ATF_CHECK_EQ(NR_REG_ALL_NIC, p.asked.nr_mode);
	ATF_CHECK_EQ(0, p.asked.nr_tx_slots);
	ATF_CHECK_EQ(0, p.asked.nr_tx_rings);
	ATF_CHECK_EQ(0, p.asked.nr_flags);
	for (i = 0; i < RINGS; i++) {
		d = vale_ring(p.d, i);
		ATF_CHECK_STREQ("vale0:a", d->common->name);
		ATF_CHECK_EQ(VALE_BUF_SIZE, d->common->indirect_max);
		ATF_CHECK(d->txring == NETMAP_TXRING(d->common->nifp, i));
		ATF_CHECK(d->rxring == NETMAP_RXRING(d->common->nifp, i));
		ATF_CHECK(vale_ring(d, 0) == p.d);
	}
	ATF_CHECK_ERRNO(EINVAL, vale_ring(p.d, RINGS) == NULL);
	port_close(&p);
	port_open(&p, &params);
	ATF_CHECK_EQ(3, p.asked.nr_tx_slots);
	ATF_CHECK_EQ(4, p.asked.nr_rx_slots);
	ATF_CHECK_EQ(VALE_RINGS_MAX, p.asked.nr_tx_rings);
	ATF_CHECK_EQ(VALE_RINGS_MAX, p.asked.nr_rx_rings);
	port_close(&p);
	ATF_CHECK_EQ(fds, open_fds());
}

TEST(open_monitor, "A monitor is asked for by its directions")
{
	struct vale_params params = { .monitor = VALE_MIRROR_TX };
	struct port p;

	port_open(&p, &params);
	ATF_CHECK_EQ(NR_MONITOR_TX, p.asked.nr_flags);
	port_close(&p);
	params.monitor = VALE_MIRROR_RX;
	port_open(&p, &params);
	ATF_CHECK_EQ(NR_MONITOR_RX, p.asked.nr_flags);
	port_close(&p);
	params.monitor = VALE_MIRROR_BOTH;
	port_open(&p, &params);
	ATF_CHECK_EQ(NR_MONITOR_TX | NR_MONITOR_RX, p.asked.nr_flags);
	port_close(&p);
}

TEST(open_filter, "A filter is sent before the monitor is asked for; if it is "
    "refused, nothing is opened")
{
	static const struct vale_insn filter[] = { { 0x20, 1, 2, 3 },
	    { 0x06, 0, 0, 1 } };
	struct vale_params params = { .monitor = VALE_MIRROR_TX,
	    .filter = filter, .filter_len = nitems(filter) };
	const unsigned int fds = open_fds();
	struct vale_wire_filter wf;
	struct wire_request wr;
	struct port p;
	int fd;

	fd = prepare_reply(EINVAL, NULL, 0);
	ATF_CHECK_ERRNO(EINVAL, vale_open("vale0:a", &params) == NULL);
	wr = request(fd, VALE_WIRE_FILTER, "vale0:a", sizeof(wf));
	memcpy(&wf, wr.wr_body, sizeof(wf));
	ATF_CHECK_EQ(nitems(filter), wf.wf_len);
	ATF_CHECK(memcmp(filter, wf.wf_insn, sizeof(filter)) == 0);
	ATF_CHECK_EQ(0, wf.wf_insn[nitems(filter)].code);
	finish();
	ATF_CHECK_EQ(fds, open_fds());
	params.filter_len = VALE_FILTER_MAX + 1;
	ATF_CHECK_ERRNO(E2BIG, vale_open("vale0:a", &params) == NULL);
	/* Without a length there is none. */
	params.filter_len = 0;
	port_open(&p, &params);
	port_close(&p);
	ATF_CHECK_EQ(fds, open_fds());
}

TEST(open_fails, "What is out of range is not asked for; whatever fails, "
    "nothing is left")
{
	struct vale_params params = { .monitor = VALE_MIRROR_BOTH + 1 };
	const unsigned int fds = open_fds();
	struct port p;
	bool failed = true;
	uint32_t n;

	setenv(VALE_WIRE_ENV, "the path", 1);
	ATF_CHECK_ERRNO(EINVAL, vale_open("vale0:a", &params) == NULL);
	params = (struct vale_params){ .rings = VALE_RINGS_MAX + 1 };
	ATF_CHECK_ERRNO(EINVAL, vale_open("vale0:a", &params) == NULL);
	ATF_CHECK_ERRNO(EINVAL, vale_open("vale0:a{1", NULL) == NULL);
	ATF_CHECK(vale_name_error("vale0:a{1") != NULL);
	ATF_CHECK(vale_name_error("vale0:a") == NULL);
	ATF_CHECK_ERRNO(ECONNREFUSED, vale_open("vale0:a", NULL) == NULL);
	prepare_reply(EBUSY, NULL, 0);
	ATF_CHECK_ERRNO(EBUSY, vale_open("vale0:a", NULL) == NULL);
	finish();
	ATF_CHECK_EQ(fds, open_fds());
	fail_calls(NULL, 1, 1);
	ATF_CHECK_ERRNO(ENOMEM, vale_open("vale0:a", NULL) == NULL);
	ATF_CHECK_EQ(1, fail_calls_end());
	/* Each call from the connection on, by an error that does not pass. */
	fail_calls_error(EIO);
	for (n = 2; failed; n++) {
		prepare_port(&p);
		fail_calls(NULL, n, 1);
		p.d = vale_open("vale0:a", NULL);
		failed = fail_calls_end() > 0;
		ATF_CHECK_EQ_MSG(failed, p.d == NULL, "%s, call %u",
		    fail_calls_name(), n);
		if (p.d != NULL)
			vale_close(p.d);
		port_end(&p);
		finish();
		ATF_CHECK_EQ_MSG(fds, open_fds(), "%s, call %u",
		    fail_calls_name(), n);
	}
	ATF_CHECK_MSG(n > 4 * RINGS, "%u", n);
}

TEST(port_requests, "Requests about a port go over its connection")
{
	const uint64_t missed = 12;
	struct nmreq_port_hdr hdr;
	struct wire_request wr;
	struct port p;

	port_open(&p, NULL);
	wire_reply(p.fd, 0, "", NULL, 0, NULL, 0);
	ATF_CHECK_EQ(0, vale_set_header(p.d, 12));
	wr = request(p.fd, NETMAP_REQ_PORT_HDR_SET, "vale0:a", sizeof(hdr));
	memcpy(&hdr, wr.wr_body, sizeof(hdr));
	ATF_CHECK_EQ(12, hdr.nr_hdr_len);
	ATF_CHECK_ERRNO(EOPNOTSUPP, vale_set_header(p.d, VALE_HEADER_FRAME) ==
	    -1);
	wire_reply(p.fd, EINVAL, "", NULL, 0, NULL, 0);
	ATF_CHECK_ERRNO(EINVAL, vale_set_header(p.d, 13) == -1);
	(void)request(p.fd, NETMAP_REQ_PORT_HDR_SET, "vale0:a", sizeof(hdr));
	wire_reply(p.fd, 0, "", &missed, sizeof(missed), NULL, 0);
	ATF_CHECK_EQ(12, vale_missed(p.d));
	/* Two threads have a request each, one after the other. */
	ATF_CHECK_EQ(1, locked_in_call);
	ATF_CHECK_EQ(0, fail_held().fhl_locks);
	(void)request(p.fd, VALE_WIRE_MISSED, "vale0:a", 0);
	ATF_CHECK_EQ(0, vale_limit(p.d));
	ATF_CHECK_EQ(0, vale_set_sink(p.d, NULL, NULL));
	ATF_CHECK_ERRNO(EOPNOTSUPP, vale_set_sink(p.d,
	    (void (*)(void *, struct frame_source *))(uintptr_t)1, NULL) ==
	    -1);
	ATF_CHECK(!wire_pending(p.fd));
	shutdown(p.fd, SHUT_RDWR);
	ATF_CHECK_EQ(0, vale_missed(p.d));
	port_close(&p);
}

/* Consume ring 1's slots when the user sleeps. */
static void *
consume(void *arg)
{
	struct port *p = arg;
	struct vale_csb *csb = &p->csb[1];

	wait_until(atomic_load_32(&csb->tx_atok.appl_need_kick) != 0,
	    "who waits");
	/* Not all of it first. */
	atomic_store_32(&csb->tx_atok.appl_need_kick, 0);
	atomic_store_rel_32(&csb->tx_ktoa.hwtail, 0);
	(void)!send(p->kick[2], "", 1, 0);
	wait_until(atomic_load_32(&csb->tx_atok.appl_need_kick) != 0,
	    "who waits");
	atomic_store_rel_32(&csb->tx_ktoa.hwtail, 1);
	(void)!send(p->kick[2], "", 1, 0);
	return (NULL);
}

TEST(txsync, "A transmit sync returns when all is consumed, or ENXIO if valed "
    "has gone")
{
	struct vale_desc *d;
	struct port p;
	pthread_t thread;

	port_open(&p, NULL);
	/* It is consumed at once. */
	p.d->txring->head = p.d->txring->cur = 1;
	p.csb[0].tx_ktoa.hwtail = 0;
	ATF_CHECK_EQ(0, vale_txsync(p.d));
	ATF_CHECK_EQ(0, p.csb[0].tx_atok.appl_need_kick);
	ATF_CHECK_EQ(1, p.csb[0].tx_atok.head);
	d = vale_ring(p.d, 1);
	d->txring->head = d->txring->cur = 2;
	ATF_REQUIRE_EQ(0, pthread_create(&thread, NULL, consume, &p));
	ATF_CHECK_EQ(0, vale_txsync(d));
	ATF_CHECK_EQ(0, pthread_join(thread, NULL));
	ATF_CHECK_EQ(SLOTS - 1, nm_ring_space(d->txring));
	d->txring->head = SLOTS;
	ATF_CHECK_ERRNO(EINVAL, vale_txsync(d) == -1);
	d->txring->head = d->txring->cur = 3;
	shutdown(p.kick[2], SHUT_RDWR);
	ATF_CHECK_ERRNO(ENXIO, vale_txsync(d) == -1);
	port_close(&p);
}

static bool
readable(struct vale_desc *d)
{
	struct pollfd pfd = { .fd = d->fd, .events = POLLIN };

	return (poll(&pfd, 1, 0) == 1);
}

TEST(rxsync, "A receive sync without frames makes the descriptor readable with "
    "the next, or if one has come meanwhile")
{
	struct vale_desc *d;
	struct port p;

	port_open(&p, NULL);
	d = vale_ring(p.d, 1);
	ATF_CHECK(!readable(d));
	ATF_CHECK_EQ(0, vale_rxsync(d));
	ATF_CHECK_EQ(1, p.csb[1].rx_atok.appl_need_kick);
	ATF_CHECK(!readable(d));
	(void)!send(p.kick[3], "", 1, 0);
	ATF_CHECK(readable(d));
	ATF_CHECK(!readable(p.d));
	/* Frames: nothing is asked. */
	p.csb[1].rx_atok.appl_need_kick = 0;
	p.csb[1].rx_ktoa.hwtail = 2;
	ATF_CHECK_EQ(0, vale_rxsync(d));
	ATF_CHECK_EQ(2, nm_ring_space(d->rxring));
	ATF_CHECK_EQ(0, p.csb[1].rx_atok.appl_need_kick);
	ATF_CHECK(readable(d));
	d->rxring->head = d->rxring->cur = 2;
	ATF_CHECK_EQ(0, vale_rxsync(d));
	ATF_CHECK_EQ(1, p.csb[1].rx_atok.appl_need_kick);
	ATF_CHECK(!readable(d));
	/* A frame comes after the look at the ring. */
	late = &p.csb[1];
	p.csb[1].rx_ktoa.hwtail = 2;
	d->rxring->head = d->rxring->cur = 2;
	ATF_CHECK_EQ(0, vale_rxsync(d));
	ATF_CHECK(readable(d));
	p.csb[1].rx_ktoa.hwtail = 2;
	ATF_CHECK_EQ(0, vale_rxsync(d));
	ATF_CHECK(!readable(d));
	/* Who polls asks for nothing. */
	p.csb[1].rx_atok.appl_need_kick = 0;
	d->rxring->flags |= VALE_RING_POLLED;
	ATF_CHECK_EQ(0, vale_rxsync(d));
	ATF_CHECK_EQ(0, p.csb[1].rx_atok.appl_need_kick);
	d->rxring->flags &= ~VALE_RING_POLLED;
	d->rxring->head = SLOTS;
	ATF_CHECK_ERRNO(EINVAL, vale_rxsync(d) == -1);
	shutdown(p.kick[3], SHUT_RDWR);
	ATF_CHECK_ERRNO(ENXIO, vale_rxsync(d) == -1);
	port_close(&p);
}

TEST_PROGRAM
