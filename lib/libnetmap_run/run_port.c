/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Ports of this process.  netmap_run.h.
 *
 * As with netmap, descriptors that register one name share the port: its rings,
 * its memory and its settings are those of the first.  A descriptor has all
 * rings or one (NR_REG_ONE_NIC), so threads with a descriptor each use the port
 * at the same time.  The port is closed with the last of them.
 *
 * A ring may have several descriptors, unless one of them has asked for
 * NR_EXCLUSIVE.
 *
 * Monitors and memory without a port (NR_REG_NULL) are not shared: each
 * registration makes one.
 */

#include <sys/mman.h>
#include <sys/systm.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netmap_run.h"

static pthread_mutex_t ports_lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, run_port) ports = TAILQ_HEAD_INITIALIZER(ports);

void
run_ports_lock(void)
{
	pthread_mutex_lock(&ports_lock);
}

void
run_ports_unlock(void)
{
	pthread_mutex_unlock(&ports_lock);
}

void
run_ports_leave(void)
{
	struct run_port *rp;

	TAILQ_FOREACH(rp, &ports, rp_link) {
		pthread_mutex_init(&rp->rp_lock, NULL);
		memset(rp->rp_sync, 0, sizeof(rp->rp_sync));
	}
}

/*
 * Find the port of this name, or return NULL.  A port whose valed has ended is
 * left to its descriptors.
 */
static struct run_port *
port_find(const char *name)
{
	struct run_port *rp;

	TAILQ_FOREACH(rp, &ports, rp_link)
		if (!rp->rp_single && strcmp(rp->rp_name, name) == 0 &&
		    vale_client_alive(rp->rp_client.cp_fd))
			break;
	return (rp);
}

/* Return whether each registration makes a port. */
static bool
port_single(const struct nmreq_register *reg)
{
	return ((reg->nr_flags & (NR_MONITOR_TX | NR_MONITOR_RX)) != 0 ||
	    reg->nr_mode == NR_REG_NULL);
}

/* Make the port's descriptors the library's own, or no longer. */
static void
port_own(const struct run_port *rp, bool own)
{
	const struct vale_client_port *cp = &rp->rp_client;
	unsigned int i;

	for (i = 0; i < cp->cp_nrings; i++) {
		run_own_set(cp->cp_ring[i].vcr_tx_kick, own);
		run_own_set(cp->cp_ring[i].vcr_rx_kick, own);
	}
	run_own_set(cp->cp_window, own);
	run_own_set(cp->cp_memory, own);
	run_own_set(cp->cp_fd, own);
}

static void
port_add(struct run_port *rp, const char *name,
    const struct nmreq_register *reg)
{
	pthread_mutex_init(&rp->rp_lock, NULL);
	snprintf(rp->rp_name, sizeof(rp->rp_name), "%s", name);
	rp->rp_single = port_single(reg);
	TAILQ_INSERT_TAIL(&ports, rp, rp_link);
	port_own(rp, true);
}

/*
 * Return a descriptor of the memory for a new pipe: that of its port, or
 * nr_mem_id.  -1 if this process has neither.  The memory may be another
 * user's, if the descriptor was passed.
 */
static int
port_proof(const char *name, const struct nmreq_register *reg)
{
	const struct run_port *rp;
	unsigned int end;
	size_t len = vale_pipe_name(name, &end);

	TAILQ_FOREACH(rp, &ports, rp_link)
		if (reg->nr_mem_id != 0 ? reg->nr_mem_id ==
		    rp->rp_client.cp_reg.nr_mem_id : len != 0 &&
		    !rp->rp_single && strlen(rp->rp_name) == len &&
		    memcmp(rp->rp_name, name, len) == 0)
			return (rp->rp_client.cp_memory);
	return (-1);
}

/* Map a port that is new in this process over the program's mappings. */
static int
port_started(struct run_port *rp)
{
	int error;

	if (run_maps_port(&rp->rp_client) == 0)
		return (0);
	error = errno;
	/* The connection is its descriptor's. */
	rp->rp_client.cp_fd = -1;
	vale_client_close(&rp->rp_client);
	errno = error;
	return (-1);
}

/* Open a port over the descriptor's connection. */
static struct run_port *
port_new(struct run_desc *rd, const char *name,
    const struct nmreq_register *reg, char *why)
{
	struct run_port *rp;
	int error;

	if (run_connect(rd) == -1)
		return (NULL);
	rp = calloc(1, sizeof(*rp));
	if (rp == NULL)
		return (NULL);
	run_request_begin(rd->rd_fd);
	error = vale_client_open(&rp->rp_client, rd->rd_fd, name, reg,
	    port_proof(name, reg), why);
	run_request_end(rd->rd_fd);
	if (error == -1 || port_started(rp) == -1) {
		error = errno;
		free(rp);
		errno = error;
		return (NULL);
	}
	port_add(rp, name, reg);
	return (rp);
}

static int
refuse(char *why, const char *text, int error)
{
	memcpy(why, text, strlen(text) + 1);
	return (run_fail(error));
}

/* Take the rings that `reg' asks for, of those that the port has. */
static int
desc_rings(struct run_desc *rd, const struct run_port *rp,
    const struct nmreq_register *reg, char *why)
{
	const uint64_t flags = reg->nr_flags;

	rd->rd_first = 0;
	rd->rd_end = rp->rp_client.cp_nrings;
	if (reg->nr_mode == NR_REG_ONE_NIC) {
		if (reg->nr_ringid >= rd->rd_end)
			return (refuse(why, "the port has fewer rings",
			    EINVAL));
		rd->rd_first = reg->nr_ringid;
		rd->rd_end = rd->rd_first + 1;
	} else if (reg->nr_mode != NR_REG_ALL_NIC &&
	    reg->nr_mode != NR_REG_NULL)
		return (refuse(why, "a port has no rings of the host",
		    EOPNOTSUPP));
	rd->rd_tx = (flags & NR_RX_RINGS_ONLY) == 0;
	rd->rd_rx = (flags & NR_TX_RINGS_ONLY) == 0;
	rd->rd_exclusive = (flags & NR_EXCLUSIVE) != 0;
	rd->rd_tx_poll = (flags & NR_NO_TX_POLL) == 0;
	rd->rd_rx_poll = (flags & NR_DO_RX_POLL) != 0;
	return (0);
}

/*
 * Return whether the descriptor has rings of a direction: 0 transmit, 1
 * receive.
 */
static bool
desc_has(const struct run_desc *rd, unsigned int dir)
{
	return (dir == 0 ? rd->rd_tx : rd->rd_rx);
}

/* Take the rings.  False if others exclude that. */
static bool
rings_take(const struct run_desc *rd, struct run_port *rp)
{
	unsigned int dir, i;

	for (dir = 0; dir < 2; dir++)
		for (i = rd->rd_first; desc_has(rd, dir) && i < rd->rd_end; i++)
			if (rp->rp_exclusive[dir][i] ||
			    (rd->rd_exclusive && rp->rp_users[dir][i] > 0))
				return (false);
	for (dir = 0; dir < 2; dir++)
		for (i = rd->rd_first; desc_has(rd, dir) && i < rd->rd_end;
		    i++) {
			rp->rp_users[dir][i]++;
			rp->rp_exclusive[dir][i] = rd->rd_exclusive;
		}
	return (true);
}

static void
rings_give(const struct run_desc *rd, struct run_port *rp)
{
	unsigned int dir, i;

	for (dir = 0; dir < 2; dir++)
		for (i = rd->rd_first; desc_has(rd, dir) && i < rd->rd_end;
		    i++) {
			rp->rp_users[dir][i]--;
			rp->rp_exclusive[dir][i] = false;
		}
}

/*
 * Describe the port in the request.  The netmap_if is that of the rings of this
 * descriptor (libvale.h).  The list of extra buffers is in that of the
 * descriptor that has them: the first.
 */
static void
port_describe(const struct run_desc *rd, struct run_port *rp,
    struct nmreq_register *reg)
{
	const struct nmreq_register *granted = &rp->rp_client.cp_reg;
	const unsigned int n = rp->rp_client.cp_nrings;
	struct netmap_if *nifp;

	reg->nr_offset = granted->nr_offset;
	if (n > 1 && reg->nr_mode == NR_REG_ONE_NIC)
		reg->nr_offset += (1 + rd->rd_first) * VALE_NIFP_SIZE(n);
	reg->nr_memsize = granted->nr_memsize;
	reg->nr_tx_slots = granted->nr_tx_slots;
	reg->nr_rx_slots = granted->nr_rx_slots;
	reg->nr_tx_rings = granted->nr_tx_rings;
	reg->nr_rx_rings = granted->nr_rx_rings;
	reg->nr_mem_id = granted->nr_mem_id;
	reg->nr_extra_bufs = 0;
	if (rp->rp_refs > 1)
		return;
	reg->nr_extra_bufs = granted->nr_extra_bufs;
	nifp = (void *)(rp->rp_client.cp_base + reg->nr_offset);
	if (nifp != rp->rp_client.cp_nifp) {
		nifp->ni_bufs_head = rp->rp_client.cp_nifp->ni_bufs_head;
		rp->rp_client.cp_nifp->ni_bufs_head = 0;
	}
}

/* Release a reference to a port.  The ports' lock. */
static void
port_release(struct run_port *rp)
{
	if (--rp->rp_refs > 0)
		return;
	TAILQ_REMOVE(&ports, rp, rp_link);
	port_own(rp, false);
	vale_client_close(&rp->rp_client);
	pthread_mutex_destroy(&rp->rp_lock);
	free(rp);
}

/* Give the descriptor its rings of the port. */
static int
port_join(struct run_desc *rd, struct run_port *rp,
    const struct nmreq_register *reg, char *why)
{
	if (desc_rings(rd, rp, reg, why) == -1)
		return (-1);
	if (!rings_take(rd, rp))
		return (refuse(why, "other descriptors have the rings",
		    EBUSY));
	/* A copy of the connection of its own is not needed. */
	if (rd->rd_fd != rp->rp_client.cp_fd) {
		run_own_set(rd->rd_fd, false);
		run_calls()->close(rd->rd_fd);
	}
	rd->rd_fd = rp->rp_client.cp_fd;
	rd->rd_port = rp;
	rp->rp_refs++;
	return (0);
}

int
run_port_open(struct run_desc *rd, const char *name,
    struct nmreq_register *reg, char *why)
{
	struct run_port *rp = NULL;
	int error, r;

	run_ports_lock();
	if (!port_single(reg))
		rp = port_find(name);
	if (rp == NULL)
		rp = port_new(rd, name, reg, why);
	r = rp != NULL ? port_join(rd, rp, reg, why) : -1;
	error = errno;
	if (r == 0)
		port_describe(rd, rp, reg);
	run_ports_unlock();
	errno = error;
	return (r);
}

int
run_port_share(struct run_desc *rd)
{
	char name[NETMAP_REQ_IFNAMSIZ], why[VALE_NAME_SIZE];
	struct run_port *rp;
	int error, r;

	rp = calloc(1, sizeof(*rp));
	if (rp == NULL)
		return (-1);
	run_request_begin(rd->rd_fd);
	r = vale_client_share(&rp->rp_client, rd->rd_fd, name);
	run_request_end(rd->rd_fd);
	if (r == -1 || port_started(rp) == -1) {
		error = errno;
		free(rp);
		errno = error;
		return (-1);
	}
	port_add(rp, name, &rp->rp_client.cp_reg);
	/* valed has granted the rings, and nobody here has any. */
	r = port_join(rd, rp, &rp->rp_client.cp_reg, why);
	MPASS(r == 0);
	return (0);
}

void
run_port_close(struct run_desc *rd)
{
	run_ports_lock();
	rings_give(rd, rd->rd_port);
	port_release(rd->rd_port);
	run_ports_unlock();
}

int
run_port_sync(struct run_port *rp, unsigned int dir, unsigned int ring)
{
	struct run_sync *rs = &rp->rp_sync[dir][ring];
	int cancel, r = 0;

	/* A kick is a point at which the thread would be cancelled. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	atomic_store(&rs->rsy_wanted, true);
	while (atomic_load(&rs->rsy_wanted) &&
	    !atomic_exchange(&rs->rsy_busy, true)) {
		/* What was published before it was wanted is seen. */
		(void)atomic_exchange(&rs->rsy_wanted, false);
		r = dir == 0 ? vale_client_txsync(&rp->rp_client, ring) :
		    vale_client_rxsync(&rp->rp_client, ring);
		atomic_store(&rs->rsy_busy, false);
	}
	pthread_setcancelstate(cancel, NULL);
	return (r);
}

void *
run_port_mmap(const struct run_port *rp, void *addr, size_t len, int prot,
    int flags, off_t offset)
{
	const int fd = rp->rp_client.cp_memory;
	const struct run_port *other;
	void *map = MAP_FAILED;
	struct stat st;
	int error;

	run_ports_lock();
	if (fstat(fd, &st) == 0)
		map = run_calls()->mmap(addr, len, prot, flags, fd, offset);
	TAILQ_FOREACH(other, &ports, rp_link) {
		if (map == MAP_FAILED || run_maps_memory(&other->rp_client,
		    &st, map, len, prot, flags, offset) == 0)
			continue;
		error = errno;
		munmap(map, len);
		map = MAP_FAILED;
		errno = error;
	}
	run_ports_unlock();
	return (map);
}
