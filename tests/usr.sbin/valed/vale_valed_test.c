/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * libvale over a connection to valed: which requests it sends, what it makes of
 * replies, and how it waits.  valed is this program: each vale_client_connect()
 * takes the next of the connections that a case has prepared.
 */

#include <sys/param.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/systm.h>
#include <dev/netmap/vale_fdb.h>
#include <dev/netmap/vale_rate.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "test.h"
#include "vale_client.h"
#include "vale_layout.h"
#include "wire_peer.h"
#include "wait_until.h"

#define	CONNECTIONS	8
#define	RINGS		2
#define	SLOTS		8

/* The user's ends that come next, and all of valed's. */
static int user_end[CONNECTIONS], valed_end[CONNECTIONS];
static unsigned int prepared, connected;
/* Calls until this one fails, with EMFILE; 0: none does. */
static unsigned int fail_at;

/* The next allocation fails.  What was allocated, less what was freed. */
static bool fail_alloc;
static int allocated;
/* Mutexes that are held, and were during the last call. */
static int locked, locked_in_call;
/* A frame comes for these rings while the user goes to sleep. */
static struct vale_csb *late;

int	__wrap_vale_client_connect(const char *path);
int	__real_vale_client_call(int fd, struct vale_client_call *call);
int	__wrap_vale_client_call(int fd, struct vale_client_call *call);
bool	__real_vale_client_rxwait(struct vale_client_port *cp, unsigned int i);
bool	__wrap_vale_client_rxwait(struct vale_client_port *cp, unsigned int i);
int	__real_epoll_create1(int flags);
int	__wrap_epoll_create1(int flags);
int	__real_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev);
int	__wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev);
int	__real_eventfd(unsigned int count, int flags);
int	__wrap_eventfd(unsigned int count, int flags);
void	*__real_malloc(size_t size);
void	*__wrap_malloc(size_t size);
void	*__real_calloc(size_t n, size_t size);
void	*__wrap_calloc(size_t n, size_t size);
void	__real_free(void *p);
void	__wrap_free(void *p);
int	__real_pthread_mutex_lock(pthread_mutex_t *m);
int	__wrap_pthread_mutex_lock(pthread_mutex_t *m);
int	__real_pthread_mutex_unlock(pthread_mutex_t *m);
int	__wrap_pthread_mutex_unlock(pthread_mutex_t *m);

int
__wrap_vale_client_connect(const char *path)
{
	ATF_CHECK_STREQ("the path", path);
	if (connected == prepared) {
		errno = ECONNREFUSED;
		return (-1);
	}
	return (user_end[connected++]);
}

int
__wrap_vale_client_call(int fd, struct vale_client_call *call)
{
	locked_in_call = locked;
	return (__real_vale_client_call(fd, call));
}

bool
__wrap_vale_client_rxwait(struct vale_client_port *cp, unsigned int i)
{
	if (late != NULL)
		atomic_store_rel_32(&late->rx_ktoa.hwtail, 1);
	late = NULL;
	return (__real_vale_client_rxwait(cp, i));
}

static bool
fails(void)
{
	if (fail_at == 0 || --fail_at > 0)
		return (false);
	errno = EMFILE;
	return (true);
}

int
__wrap_epoll_create1(int flags)
{
	ATF_CHECK_EQ(EPOLL_CLOEXEC, flags);
	return (fails() ? -1 : __real_epoll_create1(flags));
}

int
__wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	return (fails() ? -1 : __real_epoll_ctl(epfd, op, fd, ev));
}

int
__wrap_eventfd(unsigned int count, int flags)
{
	ATF_CHECK_EQ(EFD_NONBLOCK | EFD_CLOEXEC, flags);
	return (fails() ? -1 : __real_eventfd(count, flags));
}

static void *
alloc_result(void *p)
{
	allocated += p != NULL;
	return (p);
}

static bool
alloc_fails(void)
{
	const bool r = fail_alloc;

	fail_alloc = false;
	if (r)
		errno = ENOMEM;
	return (r);
}

void *
__wrap_malloc(size_t size)
{
	return (alloc_result(alloc_fails() ? NULL : __real_malloc(size)));
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return (alloc_result(alloc_fails() ? NULL : __real_calloc(n, size)));
}

void
__wrap_free(void *p)
{
	allocated -= p != NULL;
	__real_free(p);
}

int
__wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
	locked++;
	return (__real_pthread_mutex_lock(m));
}

int
__wrap_pthread_mutex_unlock(pthread_mutex_t *m)
{
	locked--;
	return (__real_pthread_mutex_unlock(m));
}

/* Prepare a connection; returns valed's end. */
static int
prepare(void)
{
	int fd[2];

	ATF_REQUIRE(prepared < CONNECTIONS);
	setenv(VALE_WIRE_ENV, "the path", 1);
	wire_pair(fd);
	user_end[prepared] = fd[0];
	return (valed_end[prepared++] = fd[1]);
}

/* A connection with this reply. */
static int
prepare_reply(int error, const void *body, size_t size)
{
	int fd = prepare();

	wire_reply(fd, error, "", body, size, NULL, 0);
	return (fd);
}

/* All connections were taken, and are closed; all memory is freed. */
static void
finish(void)
{
	struct wire_request wr;

	ATF_CHECK_EQ(prepared, connected);
	ATF_CHECK_EQ(0, allocated);
	while (prepared > 0) {
		prepared--;
		if (wire_pending(valed_end[prepared]))
			wire_take(valed_end[prepared], &wr);
		ATF_CHECK(!vale_client_alive(valed_end[prepared]));
		close(valed_end[prepared]);
	}
	connected = 0;
}

/* The request that came over a connection. */
static struct wire_request
request(int fd, uint16_t type, const char *name, size_t size)
{
	struct wire_request wr;

	wire_take(fd, &wr);
	ATF_CHECK_EQ(type, wr.wr_wire.vw_header.nr_reqtype);
	ATF_CHECK_EQ(NETMAP_API, wr.wr_wire.vw_header.nr_version);
	ATF_CHECK_STREQ(name, wr.wr_wire.vw_header.nr_name);
	ATF_CHECK_EQ(size, wr.wr_size);
	ATF_CHECK_EQ(0, wr.wr_nfds);
	return (wr);
}

/* Pages. */

struct page {
	struct vale_wire_page	 page;
	union {
		struct vale_wire_port	 port[2];
		struct vale_wire_addr	 addr[2];
	};
};

static struct page
ports(unsigned int count, const char *first, const char *second)
{
	struct page p;
	unsigned int i, k;

	memset(&p, 0, sizeof(p));
	p.page.wp_count = count;
	for (i = 0; i < count; i++) {
		strcpy(p.port[i].wo_name, i == 0 ? first : second);
		p.port[i].wo_index = 3 + i;
		p.port[i].wo_rings = 2;
		p.port[i].wo_tx_slots = 64;
		p.port[i].wo_rx_slots = 128;
		p.port[i].wo_ncounters = VALE_NCOUNTERS;
		for (k = 0; k < VALE_NCOUNTERS; k++)
			p.port[i].wo_counter[k] = 100 * i + k;
	}
	return (p);
}

static size_t
ports_size(unsigned int count)
{
	return (sizeof(struct vale_wire_page) +
	    count * sizeof(struct vale_wire_port));
}

struct shown {
	unsigned int	n;
	unsigned int	stop_at;	/* entry at which show() returns 7 */
	struct vale_port_info port[4];
	struct vale_fdb_entry addr[4];
};

static int
show_port(const struct vale_port_info *info, void *arg)
{
	struct shown *s = arg;

	ATF_REQUIRE(s->n < nitems(s->port));
	s->port[s->n++] = *info;
	return (s->n == s->stop_at ? 7 : 0);
}

static int
show_addr(const struct vale_fdb_entry *entry, void *arg)
{
	struct shown *s = arg;

	ATF_REQUIRE(s->n < nitems(s->addr));
	s->addr[s->n++] = *entry;
	return (s->n == s->stop_at ? 7 : 0);
}

/* The number from which a request wants a page. */
static uint32_t
asked(int fd, uint16_t type, const char *name)
{
	struct wire_request wr = request(fd, type, name,
	    sizeof(struct vale_wire_page));
	struct vale_wire_page page;

	memcpy(&page, wr.wr_body, sizeof(page));
	ATF_CHECK_EQ(0, page.wp_count);
	return (page.wp_first);
}

TEST(list, "Ports are listed page by page, until a page is empty")
{
	const struct page two = ports(2, "vale0:a", "vale0:b"),
	    one = ports(1, "vale0:c", NULL), none = ports(0, NULL, NULL);
	const unsigned int fds = wire_open_fds();
	struct shown s = { .n = 0 };
	int fd[3];

	fd[0] = prepare_reply(0, &two, ports_size(2));
	fd[1] = prepare_reply(0, &one, ports_size(1));
	fd[2] = prepare_reply(0, &none, ports_size(0));
	ATF_CHECK_EQ(0, vale_list(NULL, show_port, &s));
	ATF_CHECK_EQ(0, asked(fd[0], VALE_WIRE_PORTS, ""));
	ATF_CHECK_EQ(2, asked(fd[1], VALE_WIRE_PORTS, ""));
	ATF_CHECK_EQ(3, asked(fd[2], VALE_WIRE_PORTS, ""));
	finish();
	ATF_REQUIRE_EQ(3, s.n);
	ATF_CHECK_STREQ("vale0:a", s.port[0].pi_name);
	ATF_CHECK_STREQ("vale0:b", s.port[1].pi_name);
	ATF_CHECK_STREQ("vale0:c", s.port[2].pi_name);
	ATF_CHECK_EQ(4, s.port[1].pi_index);
	ATF_CHECK_EQ(2, s.port[1].pi_rings);
	ATF_CHECK_EQ(64, s.port[1].pi_tx_slots);
	ATF_CHECK_EQ(128, s.port[1].pi_rx_slots);
	ATF_CHECK_EQ(100 + VALE_NCOUNTERS - 1,
	    s.port[1].pi_counter[VALE_NCOUNTERS - 1]);
	/* Of a switch. */
	fd[0] = prepare_reply(0, &none, ports_size(0));
	ATF_CHECK_EQ(0, vale_list("vale3", show_port, &s));
	ATF_CHECK_EQ(0, asked(fd[0], VALE_WIRE_PORTS, "vale3"));
	finish();
	ATF_CHECK_EQ(fds, wire_open_fds());
}

TEST(list_ends, "A list ends with what the function returns, or with an error")
{
	const struct page two = ports(2, "vale0:a", "vale0:b");
	struct shown s = { .stop_at = 1 };

	prepare_reply(0, &two, ports_size(2));
	ATF_CHECK_EQ(7, vale_list("vale0", show_port, &s));
	ATF_CHECK_EQ(1, s.n);
	/* In the second page. */
	s = (struct shown){ .stop_at = 3 };
	prepare_reply(0, &two, ports_size(2));
	prepare_reply(0, &two, ports_size(2));
	ATF_CHECK_EQ(7, vale_list("vale0", show_port, &s));
	ATF_CHECK_EQ(3, s.n);
	/* A page of another size than it says. */
	s.n = 0;
	prepare_reply(0, &two, ports_size(2) - 1);
	ATF_CHECK_ERRNO(EPROTO, vale_list("vale0", show_port, &s) == -1);
	prepare_reply(0, &two, ports_size(1));
	ATF_CHECK_ERRNO(EPROTO, vale_list("vale0", show_port, &s) == -1);
	prepare_reply(ENXIO, NULL, 0);
	ATF_CHECK_ERRNO(ENXIO, vale_list("vale0", show_port, &s) == -1);
	ATF_CHECK_EQ(0, s.n);
	finish();
	ATF_CHECK_ERRNO(ECONNREFUSED, vale_list("vale0", show_port, &s) ==
	    -1);
	fail_alloc = true;
	ATF_CHECK_ERRNO(ENOMEM, vale_list("vale0", show_port, &s) == -1);
}

TEST(addresses, "Addresses are listed with their ports and ages")
{
	struct page p = { .page.wp_count = 2 };
	const struct page none = { .page.wp_count = 0 };
	struct shown s = { .n = 0 };
	int fd[2];

	memcpy(p.addr[1].wa_addr, "\2\0\0\0\0\1", 6);
	p.addr[1].wa_port = 253;
	p.addr[1].wa_age_s = 70000;
	fd[0] = prepare_reply(0, &p, sizeof(p.page) + sizeof(p.addr));
	fd[1] = prepare_reply(0, &none, sizeof(p.page));
	ATF_CHECK_EQ(0, vale_fdb_list("vale0", show_addr, &s));
	ATF_CHECK_EQ(0, asked(fd[0], VALE_WIRE_ADDRS, "vale0"));
	ATF_CHECK_EQ(2, asked(fd[1], VALE_WIRE_ADDRS, "vale0"));
	ATF_REQUIRE_EQ(2, s.n);
	ATF_CHECK_EQ(0, memcmp("\2\0\0\0\0\1", s.addr[1].fe_addr, 6));
	ATF_CHECK_EQ(253, s.addr[1].fe_port);
	ATF_CHECK_EQ(70000, s.addr[1].fe_age_s);
	s = (struct shown){ .stop_at = 2 };
	prepare_reply(0, &p, sizeof(p.page) + sizeof(p.addr));
	ATF_CHECK_EQ(7, vale_fdb_list("vale0", show_addr, &s));
	finish();
}

TEST(counters, "A port's counters are those of the port with the name, or ENXIO")
{
	const struct page two = ports(2, "vale0:a", "vale0:b"),
	    none = ports(0, NULL, NULL);
	uint64_t c[VALE_NCOUNTERS];

	prepare_reply(0, &two, ports_size(2));
	ATF_CHECK_EQ(0, vale_port_counters("vale0:b", c));
	ATF_CHECK_EQ(100, c[0]);
	ATF_CHECK_EQ(100 + VALE_NCOUNTERS - 1, c[VALE_NCOUNTERS - 1]);
	prepare_reply(0, &two, ports_size(2));
	prepare_reply(0, &none, ports_size(0));
	ATF_CHECK_ERRNO(ENXIO, vale_port_counters("vale0:", c) == -1);
	prepare_reply(EIO, NULL, 0);
	ATF_CHECK_ERRNO(EIO, vale_port_counters("vale0:b", c) == -1);
	finish();
}

/* What a setting has sent. */
static void
set(int fd, const char *name, enum vale_wire_setting setting, uint64_t value,
    uint32_t burst)
{
	struct wire_request wr = request(fd, VALE_WIRE_SET, name,
	    sizeof(struct vale_wire_set));
	struct vale_wire_set ws;

	memcpy(&ws, wr.wr_body, sizeof(ws));
	ATF_CHECK_EQ(setting, ws.ws_setting);
	ATF_CHECK_EQ(value, ws.ws_value);
	ATF_CHECK_EQ(burst, ws.ws_burst);
}

TEST(set, "Each setting is sent with its name and value; an error is valed's")
{
	struct vale_rate_conf rate = { VALE_RATE_MAX, 9, false };
	int fd;

	fd = prepare_reply(0, NULL, 0);
	ATF_CHECK_EQ(0, vale_set_ageing("vale0", 11));
	set(fd, "vale0", VALE_WIRE_AGEING, 11, 0);
	fd = prepare_reply(0, NULL, 0);
	ATF_CHECK_EQ(0, vale_set_limit("vale0:a", UINT32_MAX));
	set(fd, "vale0:a", VALE_WIRE_LIMIT, UINT32_MAX, 0);
	fd = prepare_reply(0, NULL, 0);
	ATF_CHECK_EQ(0, vale_set_weight("vale0:a", 13));
	set(fd, "vale0:a", VALE_WIRE_WEIGHT, 13, 0);
	fd = prepare_reply(0, NULL, 0);
	ATF_CHECK_EQ(0, vale_set_private("vale0:a", true));
	set(fd, "vale0:a", VALE_WIRE_PRIVATE, 1, 0);
	fd = prepare_reply(0, NULL, 0);
	ATF_CHECK_EQ(0, vale_set_batch("vale0", 14));
	set(fd, "vale0", VALE_WIRE_BATCH, 14, 0);
	fd = prepare_reply(0, NULL, 0);
	ATF_CHECK_EQ(0, vale_set_rate("vale0:a", &rate));
	set(fd, "vale0:a", VALE_WIRE_RATE, VALE_RATE_MAX, 9);
	rate.rc_frames = true;
	fd = prepare_reply(0, NULL, 0);
	ATF_CHECK_EQ(0, vale_set_rate("vale0:a", &rate));
	set(fd, "vale0:a", VALE_WIRE_RATE_FRAMES, VALE_RATE_MAX, 9);
	finish();
	prepare_reply(EINVAL, NULL, 0);
	ATF_CHECK_ERRNO(EINVAL, vale_set_batch("vale0", 0) == -1);
	finish();
}

TEST(mirror, "A mirror's name goes with the request, if it fits")
{
	char name[VALE_NAME_SIZE + 1];
	struct vale_wire_mirror wm;
	struct wire_request wr;
	int fd;

	memset(name, 'm', sizeof(name));
	name[VALE_NAME_SIZE] = '\0';
	ATF_CHECK_ERRNO(EINVAL, vale_set_mirror("vale0:b", name,
	    VALE_MIRROR_TX) == -1);
	ATF_CHECK_ERRNO(EINVAL, vale_set_mirror("vale0:b", NULL,
	    VALE_MIRROR_TX) == -1);
	name[VALE_NAME_SIZE - 1] = '\0';
	fd = prepare_reply(0, NULL, 0);
	ATF_CHECK_EQ(0, vale_set_mirror("vale0:b", name, VALE_MIRROR_TX));
	wr = request(fd, VALE_WIRE_MIRROR, "vale0:b", sizeof(wm));
	memcpy(&wm, wr.wr_body, sizeof(wm));
	ATF_CHECK_EQ(VALE_MIRROR_TX, wm.wm_what);
	ATF_CHECK_STREQ(name, wm.wm_of);
	/* None. */
	fd = prepare_reply(0, NULL, 0);
	ATF_CHECK_EQ(0, vale_set_mirror("vale0:b", NULL, 0));
	wr = request(fd, VALE_WIRE_MIRROR, "vale0:b", sizeof(wm));
	memcpy(&wm, wr.wr_body, sizeof(wm));
	ATF_CHECK_EQ(0, wm.wm_what);
	ATF_CHECK_EQ('\0', wm.wm_of[0]);
	finish();
}

TEST(get, "Settings are read from valed")
{
	const struct vale_port_settings ps = { .ps_weight = 5 };
	const struct vale_switch_settings ss = { .ss_batch = 6 };
	struct vale_wire_set ws = { .ws_setting = VALE_WIRE_RATE,
	    .ws_burst = 7, .ws_value = 8 };
	struct vale_port_settings p;
	struct vale_switch_settings s;
	struct vale_rate_conf rate;
	int fd;

	fd = prepare_reply(0, &ps, sizeof(ps));
	ATF_CHECK_EQ(0, vale_port_settings("vale0:a", &p));
	(void)request(fd, VALE_WIRE_PORT_GET, "vale0:a", 0);
	ATF_CHECK_EQ(5, p.ps_weight);
	fd = prepare_reply(0, &ss, sizeof(ss));
	ATF_CHECK_EQ(0, vale_switch_settings("vale0", &s));
	(void)request(fd, VALE_WIRE_SWITCH_GET, "vale0", 0);
	ATF_CHECK_EQ(6, s.ss_batch);
	fd = prepare_reply(0, &ws, sizeof(ws));
	ATF_CHECK_EQ(0, vale_get_rate("vale0:a", &rate));
	(void)request(fd, VALE_WIRE_RATE_GET, "vale0:a", 0);
	ATF_CHECK_EQ(7, rate.rc_burst);
	ATF_CHECK_EQ(8, rate.rc_rate);
	ATF_CHECK(!rate.rc_frames);
	ws.ws_setting = VALE_WIRE_RATE_FRAMES;
	prepare_reply(0, &ws, sizeof(ws));
	ATF_CHECK_EQ(0, vale_get_rate("vale0:a", &rate));
	ATF_CHECK(rate.rc_frames);
	prepare_reply(ENXIO, NULL, 0);
	ATF_CHECK_ERRNO(ENXIO, vale_get_rate("vale0:a", &rate) == -1);
	ATF_CHECK_EQ(8, rate.rc_rate);
	/* A reply of another size. */
	prepare_reply(0, &ps, sizeof(ps) - 1);
	ATF_CHECK_ERRNO(EPROTO, vale_port_settings("vale0:a", &p) == -1);
	prepare_reply(0, &ss, sizeof(ss) - 1);
	ATF_CHECK_ERRNO(EPROTO, vale_switch_settings("vale0", &s) == -1);
	prepare_reply(0, NULL, 0);
	ATF_CHECK_ERRNO(EPROTO, vale_get_rate("vale0:a", &rate) == -1);
	ATF_CHECK_EQ(0, locked_in_call);
	finish();
}

TEST(names, "A name that no request can have is that of nothing")
{
	char name[sizeof(((struct nmreq_header *)0)->nr_name) + 1];
	struct vale_switch_settings s;
	int fd;

	memset(name, 'v', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	ATF_CHECK_ERRNO(ENXIO, vale_switch_settings(name, &s) == -1);
	name[sizeof(name) - 2] = '\0';
	fd = prepare_reply(ENXIO, NULL, 0);
	ATF_CHECK_ERRNO(ENXIO, vale_switch_settings(name, &s) == -1);
	(void)request(fd, VALE_WIRE_SWITCH_GET, name, 0);
	finish();
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

/* Lay the memory out: CSBs, netmap_if, rings, and no more buffers than slots. */
static void
layout(struct port *p)
{
	const size_t rings = VALE_PAGE, size = vale_ring_size(SLOTS);
	struct netmap_if *nifp;
	struct netmap_ring *ring;
	unsigned int i, k;

	p->csb = (struct vale_csb *)(void *)p->base;
	nifp = (struct netmap_if *)(void *)(p->csb + RINGS);
	vale_nifp_init(nifp, "vale0:a", RINGS);
	for (i = 0; i < 2 * RINGS; i++) {
		ring = (void *)(p->base + rings + i * size);
		VALE_LAYOUT_SET(ssize_t, nifp->ring_ofs[i],
		    (char *)ring - (char *)nifp);
		vale_ring_init(ring, (int64_t)(rings + (2 * RINGS - i) * size),
		    i % RINGS, i >= RINGS, SLOTS);
		for (k = 0; k < SLOTS; k++)
			ring->slot[k].buf_idx = VALE_BUF_FIRST + i * SLOTS + k;
		if (i < RINGS) {
			ring->tail = SLOTS - 1;
			p->csb[i].tx_ktoa.hwtail = SLOTS - 1;
		}
	}
}

/* Have a port granted on the next connection. */
static void
prepare_port(struct port *p)
{
	struct nmreq_register reg = { .nr_tx_rings = RINGS,
	    .nr_rx_rings = RINGS, .nr_offset = RINGS * sizeof(*p->csb) };
	int all[1 + 2 * RINGS], pair[2];
	unsigned int i;

	memset(p, 0, sizeof(*p));
	p->size = 16 * VALE_PAGE + (VALE_BUF_FIRST + 2 * RINGS * SLOTS) *
	    VALE_BUF_SIZE;
	all[0] = memfd_create("port", MFD_CLOEXEC);
	ATF_REQUIRE_EQ(0, ftruncate(all[0], p->size));
	p->base = mmap(NULL, p->size, PROT_READ | PROT_WRITE, MAP_SHARED,
	    all[0], 0);
	ATF_REQUIRE(p->base != MAP_FAILED);
	layout(p);
	for (i = 0; i < 2 * RINGS; i++) {
		ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
		p->kick[i] = pair[0];
		all[1 + i] = pair[1];
	}
	p->fd = prepare();
	reg.nr_memsize = p->size;
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
	const unsigned int fds = wire_open_fds();
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
		ATF_CHECK_STREQ("vale0:a", d->name);
		ATF_CHECK_EQ(VALE_BUF_SIZE, d->indirect_max);
		ATF_CHECK(d->txring == NETMAP_TXRING(d->nifp, i));
		ATF_CHECK(d->rxring == NETMAP_RXRING(d->nifp, i));
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
	ATF_CHECK_EQ(fds, wire_open_fds());
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

TEST(open_fails, "What is out of range is not asked for; whatever fails, nothing is "
    "left")
{
	struct vale_params params = { .monitor = VALE_MIRROR_BOTH + 1 };
	const unsigned int fds = wire_open_fds();
	struct port p;
	unsigned int i;

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
	ATF_CHECK_EQ(fds, wire_open_fds());
	fail_alloc = true;
	ATF_CHECK_ERRNO(ENOMEM, vale_open("vale0:a", NULL) == NULL);
	/* An eventfd, an epoll and two events for each ring. */
	for (i = 1; i <= 4 * RINGS; i++) {
		prepare_port(&p);
		fail_at = i;
		ATF_CHECK_ERRNO(EMFILE, vale_open("vale0:a", NULL) == NULL);
		ATF_CHECK_EQ(0, fail_at);
		port_end(&p);
		finish();
		ATF_CHECK_EQ(fds, wire_open_fds());
	}
	fail_at = i;
	port_open(&p, NULL);
	ATF_CHECK_EQ(1, fail_at);
	fail_at = 0;
	port_close(&p);
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
	ATF_CHECK_ERRNO(EOPNOTSUPP, vale_set_header(p.d, VALE_HEADER_SLOT) ==
	    -1);
	wire_reply(p.fd, EINVAL, "", NULL, 0, NULL, 0);
	ATF_CHECK_ERRNO(EINVAL, vale_set_header(p.d, 13) == -1);
	(void)request(p.fd, NETMAP_REQ_PORT_HDR_SET, "vale0:a", sizeof(hdr));
	wire_reply(p.fd, 0, "", &missed, sizeof(missed), NULL, 0);
	ATF_CHECK_EQ(12, vale_missed(p.d));
	/* Two threads have a request each, one after the other. */
	ATF_CHECK_EQ(1, locked_in_call);
	ATF_CHECK_EQ(0, locked);
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

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, list);
	ATF_TP_ADD_TC(tp, list_ends);
	ATF_TP_ADD_TC(tp, addresses);
	ATF_TP_ADD_TC(tp, counters);
	ATF_TP_ADD_TC(tp, set);
	ATF_TP_ADD_TC(tp, mirror);
	ATF_TP_ADD_TC(tp, get);
	ATF_TP_ADD_TC(tp, names);
	ATF_TP_ADD_TC(tp, open);
	ATF_TP_ADD_TC(tp, open_monitor);
	ATF_TP_ADD_TC(tp, open_fails);
	ATF_TP_ADD_TC(tp, port_requests);
	ATF_TP_ADD_TC(tp, txsync);
	ATF_TP_ADD_TC(tp, rxsync);
	return (atf_no_error());
}
