/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Ports of a process: which registrations share one, which rings a descriptor
 * gets, what a registration returns, and what is closed and freed.
 */

#include <sys/param.h>
#include <sys/mman.h>

#include <errno.h>
#include <stdlib.h>

#include <atf-c.h>

#include "netmap_run.h"
#include "run_memory.h"
#include "run_said.h"
#include "test.h"

/* What valed grants. */
atomic_bool run_own[RUN_FDS];
static unsigned int nrings = 2;
static uint16_t	mem_id = 40;
static uint32_t	extra_bufs;
static char	base[4096] __attribute__((__aligned__(64)));
#define	OFFSET	128

/* What fails. */
static int	connect_error, open_error, maps_error, memory_error, mmap_error,
		fstat_error;
static int	dead = -1;		/* a connection whose valed has ended */

static int
result(int error)
{
	errno = error != 0 ? error : EXDEV;
	return (error != 0 ? -1 : 0);
}

static int
the_close(int fd)
{
	say(" close(%d)", fd);
	errno = EXDEV;
	return (0);
}

static void *
the_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	say(" mmap(%p,%zu,%d,%d,%d,%jd)", addr, len, prot, flags, fd,
	    (intmax_t)offset);
	return (result(mmap_error) == -1 ? MAP_FAILED : (void *)0x66000);
}

const struct run_calls *
run_calls(void)
{
	static const struct run_calls calls = { .close = the_close,
	    .mmap = the_mmap };

	return (&calls);
}

int	__wrap_fstat(int, struct stat *);
int	__wrap_munmap(void *, size_t);

int
__wrap_fstat(int fd, struct stat *st)
{
	st->st_ino = fd;
	return (result(fstat_error));
}

int
__wrap_munmap(void *addr, size_t len)
{
	say(" munmap(%p,%zu)", addr, len);
	errno = EXDEV;
	return (0);
}

/* Locks: the ports' has no name. */
static int	locked;

int	__wrap_pthread_mutex_lock(pthread_mutex_t *);
int	__wrap_pthread_mutex_unlock(pthread_mutex_t *);
int	__wrap_pthread_mutex_init(pthread_mutex_t *,
	    const pthread_mutexattr_t *);
int	__wrap_pthread_mutex_destroy(pthread_mutex_t *);

int
__wrap_pthread_mutex_lock(pthread_mutex_t *m __unused)
{
	ATF_REQUIRE_EQ(0, locked++);
	return (0);
}

int
__wrap_pthread_mutex_unlock(pthread_mutex_t *m __unused)
{
	ATF_REQUIRE_EQ(1, locked--);
	return (0);
}

int
__wrap_pthread_mutex_init(pthread_mutex_t *m __unused,
    const pthread_mutexattr_t *attr __unused)
{
	say(" init");
	return (0);
}

int
__wrap_pthread_mutex_destroy(pthread_mutex_t *m __unused)
{
	say(" destroy");
	return (0);
}

int
run_connect(struct run_desc *rd)
{
	ATF_CHECK_EQ(1, locked);
	say(" connect(%d)", rd->rd_fd);
	return (result(connect_error));
}

void
run_request_begin(int fd)
{
	say(" begin(%d)", fd);
}

void
run_request_end(int fd)
{
	say(" end(%d)", fd);
}

/* A port; its memory and its window are those of its connection. */
static void
grant(struct vale_client_port *cp, int fd)
{
	cp->cp_fd = fd;
	cp->cp_memory = fd + 100;
	cp->cp_base = base;
	cp->cp_nrings = nrings;
	cp->cp_nifp = (void *)(base + OFFSET);
	cp->cp_reg = (struct nmreq_register){ .nr_offset = OFFSET,
	    .nr_memsize = 2, .nr_tx_slots = 3, .nr_rx_slots = 4,
	    .nr_tx_rings = 5, .nr_rx_rings = 6, .nr_mem_id = mem_id,
	    .nr_extra_bufs = extra_bufs, .nr_mode = NR_REG_ALL_NIC };
}

int
vale_client_open(struct vale_client_port *cp, int fd, const char *name,
    const struct nmreq_register *reg, int proof, char *why)
{
	say(" open(%d,%s,%u,%d)", fd, name, reg->nr_mode, proof);
	if (open_error != 0)
		strcpy(why, "valed's words");
	else
		grant(cp, fd);
	return (result(open_error));
}

static struct nmreq_register share_reg;

int
vale_client_share(struct vale_client_port *cp, int fd,
    char name[NETMAP_REQ_IFNAMSIZ])
{
	say(" share(%d)", fd);
	strcpy(name, "vale0:s");
	if (open_error == 0) {
		grant(cp, fd);
		cp->cp_reg.nr_mode = share_reg.nr_mode;
		cp->cp_reg.nr_ringid = share_reg.nr_ringid;
		cp->cp_reg.nr_flags = share_reg.nr_flags;
	}
	return (result(open_error));
}

void
vale_client_close(struct vale_client_port *cp)
{
	say(" client_close(%d)", cp->cp_fd);
	errno = EXDEV;
}

bool
vale_client_alive(int fd)
{
	return (fd != dead);
}

/* A pipe's name is that of its port, a brace and more. */
size_t
vale_pipe_name(const char *name, unsigned int *end)
{
	const size_t len = strcspn(name, "{}");

	*end = 0;
	return (name[len] == '\0' ? 0 : len);
}

int
run_maps_port(const struct vale_client_port *cp)
{
	say(" maps(%d)", cp->cp_fd);
	return (result(maps_error));
}

/* The port whose memory is not mapped. */
static int	memory_fails;

int
run_maps_memory(const struct vale_client_port *cp, const struct stat *memory,
    void *addr, size_t len, int prot, int flags, off_t offset)
{
	say(" memory(%d,%ju,%p,%zu,%d,%d,%jd)", cp->cp_fd,
	    (uintmax_t)memory->st_ino, addr, len, prot, flags,
	    (intmax_t)offset);
	return (result(cp->cp_fd == memory_fails ? memory_error : 0));
}

static struct run_desc desc[8];
static struct nmreq_register reg;
static char	why[128];

/* Register with desc[n], whose connection is n.  Returns 0 or an errno. */
static int
registers(int n, const char *name, uint32_t mode, uint64_t flags)
{
	int r;

	desc[n] = (struct run_desc){ .rd_fd = n };
	reg.nr_mode = mode;
	reg.nr_flags = flags;
	memset(why, 'x', sizeof(why) - 1);
	why[0] = '\0';
	errno = 0;
	r = run_port_open(&desc[n], name, &reg, why);
	ATF_CHECK_EQ(0, locked);
	ATF_CHECK(r == 0 || r == -1);
	return (r == 0 ? 0 : errno != 0 ? errno : -1);
}

#define	ALL	NR_REG_ALL_NIC
#define	ONE	NR_REG_ONE_NIC
#define	TX	NR_TX_RINGS_ONLY
#define	RX	NR_RX_RINGS_ONLY
#define	EXCL	NR_EXCLUSIVE

static void
quiet(void)
{
	said_text[0] = '\0';
}

static void
gives(int n)
{
	run_port_close(&desc[n]);
	ATF_CHECK_EQ(0, locked);
}

TEST(opens, "A port is opened over the descriptor's connection, and closed "
    "with the last of its descriptors")
{
	ATF_CHECK_EQ(0, registers(1, "vale0:a", ALL, 0));
	SAID(" connect(1) begin(1) open(1,vale0:a,1,-1) end(1) maps(1) init");
	ATF_CHECK_EQ(1, desc[1].rd_fd);
	ATF_CHECK_STREQ("vale0:a", desc[1].rd_port->rp_name);
	ATF_CHECK_EQ(1, blocks);
	ATF_CHECK_EQ(OFFSET, reg.nr_offset);
	ATF_CHECK_EQ(2, reg.nr_memsize);
	ATF_CHECK_EQ(3, reg.nr_tx_slots);
	ATF_CHECK_EQ(4, reg.nr_rx_slots);
	ATF_CHECK_EQ(5, reg.nr_tx_rings);
	ATF_CHECK_EQ(6, reg.nr_rx_rings);
	ATF_CHECK_EQ(40, reg.nr_mem_id);
	/* Another descriptor has it, and needs no connection of its own. */
	ATF_CHECK_EQ(0, registers(2, "vale0:a", ALL, 0));
	SAID(" close(2)");
	ATF_CHECK_EQ(1, desc[2].rd_fd);
	ATF_CHECK(desc[2].rd_port == desc[1].rd_port);
	ATF_CHECK_EQ(2, desc[2].rd_port->rp_refs);
	ATF_CHECK_EQ(0, registers(3, "vale0:b", ALL, 0));
	ATF_CHECK(desc[3].rd_port != desc[1].rd_port);
	quiet();
	gives(1);
	SAID("");
	ATF_CHECK_EQ(2, blocks);
	gives(2);
	SAID(" client_close(1) destroy");
	ATF_CHECK_EQ(1, blocks);
	gives(3);
	SAID(" client_close(3) destroy");
	ATF_CHECK_EQ(0, blocks);
	/* It is there no more. */
	ATF_CHECK_EQ(0, registers(4, "vale0:a", ALL, 0));
	SAID(" connect(4) begin(4) open(4,vale0:a,1,-1) end(4) maps(4) init");
}

TEST(errors, "What fails leaves nothing behind")
{
	connect_error = ECONNREFUSED;
	ATF_CHECK_EQ(ECONNREFUSED, registers(1, "vale0:a", ALL, 0));
	SAID(" connect(1)");
	connect_error = 0;
	fails = made;
	ATF_CHECK_EQ(ENOMEM, registers(1, "vale0:a", ALL, 0));
	SAID(" connect(1)");
	open_error = EBUSY;
	ATF_CHECK_EQ(EBUSY, registers(1, "vale0:a", ALL, 0));
	SAID(" connect(1) begin(1) open(1,vale0:a,1,-1) end(1)");
	ATF_CHECK_STREQ("valed's words", why);
	ATF_CHECK_EQ(0, blocks);
	open_error = 0;
	maps_error = ENFILE;
	ATF_CHECK_EQ(ENFILE, registers(1, "vale0:a", ALL, 0));
	SAID(" connect(1) begin(1) open(1,vale0:a,1,-1) end(1) maps(1)"
	    " client_close(-1)");
	ATF_CHECK_EQ(0, blocks);
	maps_error = 0;
	ATF_CHECK_EQ(0, registers(1, "vale0:a", ALL, 0));
	ATF_CHECK_EQ(1, blocks);
}

TEST(single, "Monitors and memory without a port are each one of their own, "
    "and so is a port whose valed has ended")
{
	static const struct {
		uint32_t mode;
		uint64_t flags;
	} rows[] = {
		{ ALL, NR_MONITOR_TX },
		{ ALL, NR_MONITOR_RX },
		{ NR_REG_NULL, 0 },
	};
	unsigned int i;

	for (i = 0; i < nitems(rows); i++) {
		ATF_CHECK_EQ(0, registers(1, "x", rows[i].mode,
		    rows[i].flags));
		ATF_CHECK_EQ(0, registers(2, "x", rows[i].mode,
		    rows[i].flags));
		ATF_CHECK(desc[1].rd_port != desc[2].rd_port);
		/* No port of that name is found. */
		ATF_CHECK_EQ(0, registers(3, "x", ALL, 0));
		ATF_CHECK(desc[3].rd_port != desc[2].rd_port);
		ATF_CHECK(desc[3].rd_port != desc[1].rd_port);
		/* Nor does one take its place. */
		ATF_CHECK_EQ(0, registers(4, "x", rows[i].mode,
		    rows[i].flags));
		ATF_CHECK(desc[4].rd_port != desc[3].rd_port);
		gives(1);
		gives(2);
		gives(3);
		gives(4);
		ATF_CHECK_EQ(0, blocks);
	}
	ATF_CHECK_EQ(0, registers(1, "x", ALL, 0));
	dead = 1;
	ATF_CHECK_EQ(0, registers(2, "x", ALL, 0));
	ATF_CHECK(desc[1].rd_port != desc[2].rd_port);
	ATF_CHECK_EQ(0, registers(3, "x", ALL, 0));
	ATF_CHECK(desc[3].rd_port == desc[2].rd_port);
	ATF_CHECK_EQ(0, registers(4, "y", ALL, 0));
	/* The one that is alive has not the name. */
	dead = 2;
	ATF_CHECK_EQ(0, registers(5, "y", ALL, 0));
	ATF_CHECK(desc[5].rd_port == desc[4].rd_port);
}

TEST(rings, "The rings of a descriptor, and how it waits")
{
	static const struct {
		uint32_t mode;
		uint16_t ring;
		uint64_t flags;
		int error;
		unsigned int first, end;
		bool tx, rx, exclusive, tx_poll, rx_poll;
	} rows[] = {
		{ ALL, 1, 0, 0, 0, 2, 1, 1, 0, 1, 0 },
		{ NR_REG_NULL, 1, 0, 0, 0, 2, 1, 1, 0, 1, 0 },
		{ ONE, 0, 0, 0, 0, 1, 1, 1, 0, 1, 0 },
		{ ONE, 1, 0, 0, 1, 2, 1, 1, 0, 1, 0 },
		{ ONE, 2, 0, EINVAL, 0, 0, 0, 0, 0, 0, 0 },
		{ NR_REG_SW, 0, 0, EOPNOTSUPP, 0, 0, 0, 0, 0, 0, 0 },
		{ NR_REG_NIC_SW, 0, 0, EOPNOTSUPP, 0, 0, 0, 0, 0, 0, 0 },
		{ ALL, 0, TX, 0, 0, 2, 1, 0, 0, 1, 0 },
		{ ALL, 0, RX, 0, 0, 2, 0, 1, 0, 1, 0 },
		{ ALL, 0, NR_NO_TX_POLL, 0, 0, 2, 1, 1, 0, 0, 0 },
		{ ALL, 0, NR_DO_RX_POLL, 0, 0, 2, 1, 1, 0, 1, 1 },
		{ ONE, 0, EXCL, EBUSY, 0, 0, 0, 0, 0, 0, 0 },
	};
	const struct run_desc *rd = &desc[2];
	unsigned int i;

	/* Port to share, so that what is refused is refused here. */
	ATF_REQUIRE_EQ(0, registers(1, "x", ALL, 0));
	for (i = 0; i < nitems(rows); i++) {
		reg.nr_ringid = rows[i].ring;
		ATF_CHECK_EQ_MSG(rows[i].error, registers(2, "x",
		    rows[i].mode, rows[i].flags), "%u", i);
		ATF_CHECK_STREQ(rows[i].error == EINVAL ?
		    "the port has fewer rings" : rows[i].error == EOPNOTSUPP ?
		    "a port has no rings of the host" :
		    rows[i].error == EBUSY ?
		    "other descriptors have the rings" : "", why);
		ATF_CHECK_EQ('x', why[strlen(why) + 1]);
		if (rows[i].error != 0) {
			ATF_CHECK_EQ(2, rd->rd_fd);
			ATF_CHECK_EQ(1, desc[1].rd_port->rp_refs);
			continue;
		}
		ATF_CHECK_EQ_MSG(rows[i].first, rd->rd_first, "%u", i);
		ATF_CHECK_EQ_MSG(rows[i].end, rd->rd_end, "%u", i);
		ATF_CHECK_EQ_MSG(rows[i].tx, rd->rd_tx, "%u", i);
		ATF_CHECK_EQ_MSG(rows[i].rx, rd->rd_rx, "%u", i);
		ATF_CHECK_EQ_MSG(rows[i].exclusive, rd->rd_exclusive, "%u", i);
		ATF_CHECK_EQ_MSG(rows[i].tx_poll, rd->rd_tx_poll, "%u", i);
		ATF_CHECK_EQ_MSG(rows[i].rx_poll, rd->rd_rx_poll, "%u", i);
		gives(2);
	}
	gives(1);
	reg.nr_ringid = 0;
	ATF_CHECK_EQ(0, registers(1, "x", ALL, EXCL));
	ATF_CHECK(desc[1].rd_exclusive);
}

/* Whether desc[n] gets a ring of "x", or all; it keeps them if so. */
static int
gets(int n, int ring, uint64_t flags)
{
	reg.nr_ringid = ring;
	return (registers(n, "x", ring == -1 ? ALL : ONE, flags));
}

TEST(exclusive, "A ring that a descriptor has for itself is no one else's, nor "
    "is one had for itself that others have")
{
	nrings = 3;
	ATF_CHECK_EQ(0, gets(1, 1, 0));
	ATF_CHECK_EQ(EOPNOTSUPP, registers(2, "x", NR_REG_SW, 0));
	ATF_CHECK_EQ(EINVAL, gets(2, 3, 0));
	ATF_CHECK_EQ(EBUSY, gets(2, -1, EXCL));
	ATF_CHECK_EQ(EBUSY, gets(2, 1, EXCL));
	/* It may ask for others then. */
	reg.nr_mode = NR_REG_SW;
	ATF_CHECK_EQ(-1, run_port_open(&desc[2], "x", &reg, why));
	ATF_CHECK_EQ(EOPNOTSUPP, errno);
	reg.nr_mode = ALL;
	reg.nr_flags = 0;
	ATF_CHECK_EQ(0, run_port_open(&desc[2], "x", &reg, why));
	ATF_CHECK_EQ(0, desc[2].rd_first);
	ATF_CHECK_EQ(3, desc[2].rd_end);
	gives(2);
	ATF_CHECK_EQ(EBUSY, gets(2, 1, EXCL | TX));
	ATF_CHECK_EQ(EBUSY, gets(2, 1, EXCL | RX));
	ATF_CHECK_EQ(0, gets(2, 0, EXCL));
	ATF_CHECK_EQ(EBUSY, gets(3, 0, 0));
	ATF_CHECK_EQ(EBUSY, gets(3, -1, 0));
	ATF_CHECK_EQ(EBUSY, gets(3, 0, TX));
	ATF_CHECK_EQ(EBUSY, gets(3, 0, RX));
	/* Those that are refused have taken none. */
	ATF_CHECK_EQ(0, gets(3, 2, EXCL | TX));
	ATF_CHECK_EQ(EBUSY, gets(4, 2, TX));
	ATF_CHECK_EQ(EBUSY, gets(4, 2, 0));
	ATF_CHECK_EQ(0, gets(4, 2, EXCL | RX));
	ATF_CHECK_EQ(EBUSY, gets(5, 2, RX));
	ATF_CHECK_EQ(0, gets(5, 1, 0));
	/* They come back. */
	gives(2);
	ATF_CHECK_EQ(0, gets(2, 0, 0));
	gives(2);
	ATF_CHECK_EQ(0, gets(2, 0, EXCL));
	gives(3);
	ATF_CHECK_EQ(0, gets(3, 2, TX));
	ATF_CHECK_EQ(EBUSY, gets(6, 2, EXCL | TX));
	ATF_CHECK_EQ(EBUSY, gets(6, 2, RX));
	gives(4);
	ATF_CHECK_EQ(0, gets(4, 2, EXCL | RX));
	/* One of two that have it. */
	gives(1);
	ATF_CHECK_EQ(EBUSY, gets(1, 1, EXCL));
	gives(5);
	ATF_CHECK_EQ(0, gets(1, 1, EXCL));
	gives(1);
	gives(2);
	gives(3);
	ATF_CHECK_EQ(1, blocks);
	gives(4);
	ATF_CHECK_EQ(0, blocks);
	ATF_CHECK_EQ(0, gets(1, -1, EXCL));
	ATF_CHECK_EQ(EBUSY, gets(2, 2, RX));
	ATF_CHECK_EQ(EBUSY, gets(2, 0, TX));
}

TEST(describes, "The netmap_if of the descriptor's rings; extra buffers are in "
    "that of the first")
{
	struct netmap_if *all = (void *)(base + OFFSET);
	struct netmap_if *second;

	extra_bufs = 7;
	all->ni_bufs_head = 99;
	ATF_CHECK_EQ(0, gets(1, -1, 0));
	ATF_CHECK_EQ(OFFSET, reg.nr_offset);
	ATF_CHECK_EQ(7, reg.nr_extra_bufs);
	ATF_CHECK_EQ(99, all->ni_bufs_head);
	ATF_CHECK_EQ(0, gets(2, 1, 0));
	ATF_CHECK_EQ(0, reg.nr_extra_bufs);
	ATF_CHECK_EQ(99, all->ni_bufs_head);
	ATF_CHECK_EQ(OFFSET + 2 * VALE_NIFP_SIZE(2), reg.nr_offset);
	second = (void *)(base + reg.nr_offset);
	ATF_CHECK_EQ(0, second->ni_bufs_head);
	ATF_CHECK_EQ(0, gets(3, 0, 0));
	ATF_CHECK_EQ(OFFSET + VALE_NIFP_SIZE(2), reg.nr_offset);
	gives(1);
	gives(2);
	gives(3);
	ATF_CHECK_EQ(0, gets(1, 1, 0));
	ATF_CHECK_EQ(OFFSET + 2 * VALE_NIFP_SIZE(2), reg.nr_offset);
	ATF_CHECK_EQ(7, reg.nr_extra_bufs);
	ATF_CHECK_EQ(99, second->ni_bufs_head);
	ATF_CHECK_EQ(0, all->ni_bufs_head);
	gives(1);
	/* With one ring pair, there is one only. */
	nrings = 1;
	all->ni_bufs_head = 98;
	ATF_CHECK_EQ(0, gets(1, 0, 0));
	ATF_CHECK_EQ(OFFSET, reg.nr_offset);
	ATF_CHECK_EQ(98, all->ni_bufs_head);
}

TEST(proofs, "A pipe is opened with the memory of its port, or that which the "
    "program asks for by its number")
{
	mem_id = 41;
	ATF_CHECK_EQ(0, registers(1, "vale0:p", ALL, NR_MONITOR_TX));
	mem_id = 42;
	ATF_CHECK_EQ(0, registers(2, "vale0:p", ALL, 0));
	mem_id = 43;
	ATF_CHECK_EQ(0, registers(3, "vale0:q", ALL, 0));
	quiet();
	reg.nr_mem_id = 0;
	ATF_CHECK_EQ(0, registers(4, "vale0:p{1", ALL, 0));
	ATF_CHECK(strstr(said_text, " open(4,vale0:p{1,1,102)") != NULL);
	reg.nr_mem_id = 0;
	ATF_CHECK_EQ(0, registers(4, "vale0:q}1", ALL, 0));
	ATF_CHECK(strstr(said_text, " open(4,vale0:q}1,1,103)") != NULL);
	reg.nr_mem_id = 0;
	ATF_CHECK_EQ(0, registers(4, "vale0:{1", ALL, 0));
	ATF_CHECK(strstr(said_text, " open(4,vale0:{1,1,-1)") != NULL);
	reg.nr_mem_id = 0;
	ATF_CHECK_EQ(0, registers(4, "vale0:pp{1", ALL, 0));
	ATF_CHECK(strstr(said_text, " open(4,vale0:pp{1,1,-1)") != NULL);
	reg.nr_mem_id = 0;
	ATF_CHECK_EQ(0, registers(5, "", ALL, 0));
	reg.nr_mem_id = 0;
	ATF_CHECK_EQ(0, registers(4, "vale0:r", ALL, 0));
	ATF_CHECK(strstr(said_text, " open(4,vale0:r,1,-1)") != NULL);
	/* By its number, whatever its name. */
	reg.nr_mem_id = 41;
	ATF_CHECK_EQ(0, registers(4, "vale0:q{2", ALL, 0));
	ATF_CHECK(strstr(said_text, " open(4,vale0:q{2,1,101)") != NULL);
	reg.nr_mem_id = 44;
	ATF_CHECK_EQ(0, registers(4, "vale0:q{3", ALL, 0));
	ATF_CHECK(strstr(said_text, " open(4,vale0:q{3,1,-1)") != NULL);
}

static int
shares(int n)
{
	int r;

	desc[n] = (struct run_desc){ .rd_fd = n };
	errno = 0;
	run_ports_lock();
	r = run_port_share(&desc[n]);
	run_ports_unlock();
	return (r == 0 ? 0 : r == -1 ? errno : -1);
}

TEST(passed, "A port that another process has passed: its rings, its name")
{
	share_reg = (struct nmreq_register){ .nr_mode = ONE, .nr_ringid = 1,
	    .nr_flags = RX };
	fails = made;
	ATF_CHECK_EQ(ENOMEM, shares(1));
	SAID("");
	open_error = ENXIO;
	ATF_CHECK_EQ(ENXIO, shares(1));
	SAID(" begin(1) share(1) end(1)");
	ATF_CHECK_EQ(0, blocks);
	open_error = 0;
	maps_error = ENFILE;
	ATF_CHECK_EQ(ENFILE, shares(1));
	SAID(" begin(1) share(1) end(1) maps(1) client_close(-1)");
	ATF_CHECK_EQ(0, blocks);
	maps_error = 0;
	ATF_CHECK_EQ(0, shares(1));
	SAID(" begin(1) share(1) end(1) maps(1) init");
	ATF_CHECK_EQ(1, desc[1].rd_first);
	ATF_CHECK_EQ(2, desc[1].rd_end);
	ATF_CHECK(!desc[1].rd_tx && desc[1].rd_rx);
	ATF_CHECK_EQ(1, blocks);
	/* It is a port of this process then. */
	ATF_CHECK_EQ(0, registers(2, "vale0:s", ALL, 0));
	ATF_CHECK(desc[2].rd_port == desc[1].rd_port);
	/* A monitor is not. */
	share_reg.nr_flags = NR_MONITOR_RX;
	gives(1);
	gives(2);
	ATF_CHECK_EQ(0, shares(1));
	ATF_CHECK_EQ(0, registers(2, "vale0:s", ALL, 0));
	ATF_CHECK(desc[2].rd_port != desc[1].rd_port);
}

static void *
map(int n)
{
	void *p = run_port_mmap(desc[n].rd_port, (void *)0x1000, 2, 3, 4, 5);

	ATF_CHECK_EQ(0, locked);
	return (p);
}

TEST(maps, "The memory is mapped, and the windows of all ports there; or "
    "nothing")
{
	int i;

	for (i = 1; i < 4; i++)
		ATF_CHECK_EQ(0, registers(i, i == 1 ? "a" : i == 2 ? "b" : "c",
		    ALL, 0));
	quiet();
	ATF_CHECK(map(2) == (void *)0x66000);
	SAID(" mmap(0x1000,2,3,4,102,5) memory(1,102,0x66000,2,3,4,5)"
	    " memory(2,102,0x66000,2,3,4,5) memory(3,102,0x66000,2,3,4,5)");
	memory_fails = 2;
	memory_error = ENOMEM;
	ATF_CHECK(map(2) == MAP_FAILED);
	ATF_CHECK_EQ(ENOMEM, errno);
	SAID(" mmap(0x1000,2,3,4,102,5) memory(1,102,0x66000,2,3,4,5)"
	    " memory(2,102,0x66000,2,3,4,5) munmap(0x66000,2)");
	memory_fails = 0;
	mmap_error = EACCES;
	ATF_CHECK(map(2) == MAP_FAILED);
	ATF_CHECK_EQ(EACCES, errno);
	SAID(" mmap(0x1000,2,3,4,102,5)");
	mmap_error = 0;
	fstat_error = EBADF;
	ATF_CHECK(map(2) == MAP_FAILED);
	ATF_CHECK_EQ(EBADF, errno);
	SAID("");
}

TEST_PROGRAM
