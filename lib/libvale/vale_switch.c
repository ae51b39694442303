/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Switches and ports: creation, destruction, lists.
 *
 * A switch changes in steps: the lists, with both locks of a change; the view
 * that senders have (vale_view.c), which waits until no sender has an earlier
 * view; then what the change must not do before.  Only vs_change is owned while
 * a change waits, so a thread that looks at the lists, or changes another
 * switch, does not wait.
 *
 * A port that is removed is in no view when its addresses are removed.  Between
 * the two, frames for them are flooded.
 *
 * A switch exists as long as a port, a monitor or a change uses it (vs_refs).
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "frame_vnet.h"
#include "vale_error.h"
#include "vale_filter.h"
#include "vale_mirror.h"
#include "vale_name.h"
#include "vale_region.h"
#include "vale_rules.h"
#include "vale_rxq.h"
#include "vale_setting_preset.h"
#include "vale_switch.h"
#include "vale_txq.h"
#include "vale_user.h"
#include "vale_view.h"

#define	INDIRECT_MAX	UINT16_MAX	/* bytes: what slot.len can hold */

static TAILQ_HEAD(, vale_switch) vale_switches =
    TAILQ_HEAD_INITIALIZER(vale_switches);

struct vale_switch *
vale_switch_find(const char *name, size_t len)
{
	struct vale_switch *vs;

	mtx_assert(&vale_lock, MA_OWNED);
	TAILQ_FOREACH(vs, &vale_switches, vs_link) {
		if (strlen(vs->vs_name) == len &&
		    memcmp(vs->vs_name, name, len) == 0)
			break;
	}
	return (vs);
}

static struct vale_switch *
switch_create(const char *name, size_t len)
{
	struct vale_switch *vs;
	uint64_t seed[2];
	int error;

	mtx_assert(&vale_lock, MA_OWNED);
	if (getentropy(seed, sizeof(seed)) == -1)
		return (NULL);
	vs = aligned_alloc(VALE_CACHE_LINE, sizeof(*vs));
	if (vs == NULL)
		return (NULL);
	memset(vs, 0, sizeof(*vs));
	memcpy(vs->vs_name, name, len);
	error = pthread_mutex_init(&vs->vs_change, NULL);
	if (error != 0) {
		free(vs);
		errno = error;
		return (NULL);
	}
	vale_fdb_init(&vs->vs_fdb, seed);
	TAILQ_INIT(&vs->vs_mirrors);
	vs->vs_batch = VALE_BATCH_MAX;
	vs->vs_reserved = true;
	vs->vs_view = (uintptr_t)&vs->vs_views[0];
	vale_preset_switch(vs);
	TAILQ_INSERT_TAIL(&vale_switches, vs, vs_link);
	return (vs);
}

static void
switch_destroy(struct vale_switch *vs)
{
	mtx_assert(&vale_lock, MA_OWNED);
	MPASS(vs->vs_nports == 0 && TAILQ_EMPTY(&vs->vs_mirrors));
	TAILQ_REMOVE(&vale_switches, vs, vs_link);
	pthread_mutex_destroy(&vs->vs_change);
	free(vs);
}

void
vale_switch_change(struct vale_switch *vs)
{
	mtx_assert(&vale_lock, MA_OWNED);
	vs->vs_refs++;
	pthread_mutex_unlock(&vale_lock);
	pthread_mutex_lock(&vs->vs_change);
	pthread_mutex_lock(&vale_lock);
}

void
vale_switch_changed(struct vale_switch *vs)
{
	mtx_assert(&vale_lock, MA_OWNED);
	pthread_mutex_unlock(&vs->vs_change);
	if (--vs->vs_refs == 0)
		switch_destroy(vs);
}

/* Find the port with the least index from `i' on, or NULL. */
static struct vale_port *
switch_next(const struct vale_switch *vs, unsigned int i)
{
	mtx_assert(&vale_lock, MA_OWNED);
	for (; i < VALE_FDB_PORTS; i++)
		if (vs->vs_port[i] != NULL)
			return (vs->vs_port[i]);
	return (NULL);
}

/* All ports of a switch. */
#define	SWITCH_FOREACH(port, vs)					\
	for ((port) = switch_next((vs), 0); (port) != NULL;		\
	    (port) = switch_next((vs), (port)->vp_index + 1))

struct vale_port *
vale_switch_port(const struct vale_switch *vs, const char *name)
{
	struct vale_port *port;

	SWITCH_FOREACH(port, vs)
		if (strcmp(port->vp_common.name, name) == 0)
			return (port);
	return (NULL);
}

/* Take its place and its mirror from a port. */
static void
switch_unplace(struct vale_port *port)
{
	struct vale_switch *vs = port->vp_switch;

	(void)vale_mirror_set(port, NULL, 0);
	if (!port->vp_monitor) {
		MPASS(vs->vs_port[port->vp_index] == port);
		vs->vs_port[port->vp_index] = NULL;
		vs->vs_nports--;
	}
}

/* Give a port a place, and its preset settings. */
static int
switch_place(struct vale_switch *vs, struct vale_port *port)
{
	unsigned int i;

	if (vale_switch_port(vs, port->vp_common.name) != NULL)
		return (vale_fail(EBUSY));
	if (vs->vs_nports == VALE_FDB_PORTS)
		return (vale_fail(ENOSPC));
	for (i = 0; vs->vs_port[i] != NULL; i++)
		;
	port->vp_index = i;
	vs->vs_port[i] = port;
	vs->vs_nports++;
	atomic_store_8(&vs->vs_weight[i], 1);
	if (vale_preset_port(port) == -1) {
		switch_unplace(port);
		vale_fdb_set_limit(&vs->vs_fdb, i, 0);
		return (-1);
	}
	return (0);
}

/* Give a ring pair the place of its port, and its inbox the same. */
static void
pair_attach(struct vale_pair *pair)
{
	struct vale_port *in = pair->pa_inbox, *port = pair->pa_port;

	pair->pa_rx.rq_share.sh_weight = port->vp_switch->vs_weight;
	if (in != NULL) {
		in->vp_switch = port->vp_switch;
		in->vp_index = port->vp_index;
		pair_attach(in->vp_pair);
	}
}

/* Add a port or monitor to a switch. */
static int
switch_add(struct vale_switch *vs, struct vale_port *port)
{
	struct vale_pair *pair;
	int r;

	port->vp_switch = vs;
	if (!port->vp_monitor)
		r = switch_place(vs, port);
	else if (vale_switch_port(vs, port->vp_common.name) == NULL)
		r = vale_fail(ENXIO);
	else
		r = vale_mirror_set(port, port->vp_common.name,
		    port->vp_mirror_what);
	if (r == -1)
		return (-1);
	VALE_PAIRS_FOREACH(pair, port)
		pair_attach(pair);
	vs->vs_refs++;
	vale_view_publish(vs);
	return (0);
}

/* Add a port or monitor to its switch, which is created if necessary. */
static int
switch_attach(struct vale_port *port)
{
	struct vale_switch *vs;
	size_t len = strcspn(port->vp_common.name, ":");
	int error, r;

	mtx_assert(&vale_lock, MA_OWNED);
	vs = vale_switch_find(port->vp_common.name, len);
	if (vs == NULL) {
		if (port->vp_monitor)
			return (vale_fail(ENXIO));
		vs = switch_create(port->vp_common.name, len);
		if (vs == NULL)
			return (-1);
	}
	vale_switch_change(vs);
	r = switch_add(vs, port);
	error = errno;
	vale_switch_changed(vs);
	errno = error;
	return (r);
}

static void
switch_detach(struct vale_port *port)
{
	struct vale_switch *vs = port->vp_switch;

	mtx_assert(&vale_lock, MA_OWNED);
	vale_switch_change(vs);
	switch_unplace(port);
	vale_view_publish(vs);
	if (!port->vp_monitor)
		vale_fdb_flush(&vs->vs_fdb, port->vp_index);
	vs->vs_refs--;
	vale_switch_changed(vs);
}

const char *
vale_name_error(const char *name)
{
	return (vale_name_check(name, &vale_name_user));
}

int
vale_port_params(struct vale_params *params)
{
	if (params->tx_slots == 0)
		params->tx_slots = VALE_SLOTS_DEFAULT;
	if (params->rx_slots == 0)
		params->rx_slots = VALE_SLOTS_DEFAULT;
	if (params->rings == 0)
		params->rings = 1;
	if (params->rings > VALE_RINGS_MAX ||
	    params->tx_slots < VALE_SLOTS_MIN ||
	    params->tx_slots > VALE_SLOTS_MAX / params->rings ||
	    params->rx_slots < VALE_SLOTS_MIN ||
	    params->rx_slots > VALE_SLOTS_MAX / params->rings)
		return (vale_fail(EINVAL));
	return (0);
}

/* Initialize ring pair `i' of a port. */
static int
pair_init(struct vale_port *port, unsigned int i,
    const struct vale_region_layout *rl, const struct vale_params *params)
{
	struct vale_pair *pair = &port->vp_pair[i];
	struct vale_desc *d = &pair->pa_desc;
	struct vale_region_rings rr;
	int error;

	vale_region_find(&port->vp_region, rl, i, params, &rr);
	pair->pa_port = port;
	pair->pa_index = i;
	pair->pa_rx_buf = rr.rr_rx_buf;
	if (vale_txq_init(&pair->pa_tx, params->tx_slots) == -1)
		return (-1);
	if (vale_rxq_init(&pair->pa_rx, params->rx_slots,
	    port->vp_shared ? &pair->pa_rx_user : NULL) == -1) {
		error = errno;
		vale_txq_fini(&pair->pa_tx);
		return (vale_fail(error));
	}
	d->fd = pair->pa_rx.rq_fd;
	d->txring = rr.rr_txring;
	d->rxring = rr.rr_rxring;
	d->txframe = rr.rr_txframe;
	d->rxframe = rr.rr_rxframe;
	d->common = &port->vp_common;
	return (0);
}

/* Check that the filter is that of a monitor, and can be run: 0 or -1. */
static int
port_filter_check(const struct vale_params *params)
{
	if (params->filter_len > VALE_FILTER_MAX)
		return (vale_fail(E2BIG));
	if (params->filter_len > 0 && (params->monitor == 0 ||
	    !vale_filter_valid(params->filter, params->filter_len)))
		return (vale_fail(EINVAL));
	return (0);
}

/* Copy a monitor's filter. */
static int
port_filter(struct vale_port *port, const struct vale_params *params)
{
	if (params->filter_len == 0)
		return (0);
	port->vp_filter = calloc(params->filter_len,
	    sizeof(*port->vp_filter));
	if (port->vp_filter == NULL)
		return (-1);
	memcpy(port->vp_filter, params->filter,
	    params->filter_len * sizeof(*port->vp_filter));
	return (0);
}

/* Make a port without memory, lock and ring pairs. */
static struct vale_port *
port_alloc(const char *name, const struct vale_params *params,
    const struct vale_user_port *up)
{
	struct vale_port *port;
	void *memory;

	/* Nobody touches most of it, arrays of batches: no memset(3). */
	memory = calloc(1, vale_port_size(params->rings) + VALE_CACHE_LINE);
	if (memory == NULL)
		return (NULL);
	port = (void *)roundup2((uintptr_t)memory, VALE_CACHE_LINE);
	port->vp_memory = memory;
	memcpy(port->vp_common.name, name, strlen(name));
	port->vp_common.indirect_max = INDIRECT_MAX;
	port->vp_rules = &vale_rules_none;
	port->vp_monitor = params->monitor != 0;
	port->vp_mirror_what = params->monitor;
	if (up != NULL) {
		port->vp_shared = true;
		port->vp_wake = up->up_wake;
		port->vp_wake_arg = up->up_arg;
		port->vp_closed = up->up_closed;
	}
	if (port_filter(port, params) == -1) {
		free(memory);
		return (NULL);
	}
	return (port);
}

/* Initialize the port's memory and ring pairs. */
static int
port_init(struct vale_port *port, const struct vale_params *params,
    const struct vale_user_port *up)
{
	struct vale_region *vr = &port->vp_region;
	struct vale_region_layout rl;

	if (up != NULL) {
		rl = up->up_layout;
		vr->vr_base = up->up_memory;
		/* What an earlier port has left there. */
		memset(vr->vr_base, 0, rl.rl_tx);
	} else if (vale_region_map(vr, &rl, params) == -1)
		return (-1);
	vale_region_init(vr, &rl, port->vp_common.name, params);
	port->vp_common.nifp = vr->vr_nifp;
	for (; port->vp_npairs < params->rings; port->vp_npairs++)
		if (pair_init(port, port->vp_npairs, &rl, params) == -1)
			return (-1);
	return (0);
}

struct vale_port *
vale_port_new(const char *name, const struct vale_params *params,
    const struct vale_user_port *up)
{
	struct vale_params p = *params;
	struct vale_port *port;
	int error;

	if (vale_name_error(name) != NULL || vale_port_params(&p) != 0 ||
	    (p.monitor & ~VALE_MIRROR_BOTH) != 0) {
		errno = EINVAL;
		return (NULL);
	}
	if (port_filter_check(&p) == -1)
		return (NULL);
	port = port_alloc(name, &p, up);
	if (port == NULL)
		return (NULL);
	error = pthread_mutex_init(&port->vp_rate_lock, NULL);
	if (error != 0) {
		free(port->vp_filter);
		free(port->vp_memory);
		errno = error;
		return (NULL);
	}
	if (port_init(port, &p, up) == 0)
		return (port);
	error = errno;
	vale_port_free(port);
	errno = error;
	return (NULL);
}

void
vale_port_free(struct vale_port *port)
{
	struct vale_pair *pair;

	if (port->vp_closed != NULL)
		port->vp_closed(port);
	VALE_PAIRS_FOREACH(pair, port) {
		vale_rxq_fini(&pair->pa_rx);
		vale_txq_fini(&pair->pa_tx);
	}
	vale_region_destroy(&port->vp_region);
	pthread_mutex_destroy(&port->vp_rate_lock);
	vale_rules_free(port->vp_rules);
	free(port->vp_filter);
	free(port->vp_memory);
}

int
vale_port_attach(struct vale_port *port)
{
	int r;

	pthread_mutex_lock(&vale_lock);
	r = switch_attach(port);
	pthread_mutex_unlock(&vale_lock);
	return (r);
}

struct vale_desc *
vale_open(const char *name, const struct vale_params *params)
{
	const struct vale_params none = { .tx_slots = 0 };
	struct vale_port *port;
	int error;

	port = vale_port_new(name, params != NULL ? params : &none, NULL);
	if (port == NULL)
		return (NULL);
	if (vale_port_attach(port) == 0)
		return (&port->vp_pair[0].pa_desc);
	error = errno;
	vale_port_free(port);
	errno = error;
	return (NULL);
}

void
vale_close(struct vale_desc *d)
{
	struct vale_port *port = vale_desc_port(d);

	MPASS(d == &port->vp_pair[0].pa_desc);
	pthread_mutex_lock(&vale_lock);
	switch_detach(port);
	pthread_mutex_unlock(&vale_lock);
	vale_port_free(port);
}

int
vale_set_address(struct vale_desc *d, const uint8_t addr[6])
{
	struct vale_port *port = vale_desc_port(d);

	pthread_mutex_lock(&vale_lock);
	memcpy(port->vp_address, addr, sizeof(port->vp_address));
	pthread_mutex_unlock(&vale_lock);
	return (vale_preset_address(port->vp_common.name));
}

struct vale_desc *
vale_ring(struct vale_desc *d, unsigned int ring)
{
	struct vale_port *port = vale_desc_port(d);

	if (ring < port->vp_npairs)
		return (&port->vp_pair[ring].pa_desc);
	errno = EINVAL;
	return (NULL);
}

int
vale_set_header(struct vale_desc *d, unsigned int len)
{
	struct vale_port *port = vale_desc_port(d);

	if (len != 0 && len != FRAME_VNET_SHORT && len != FRAME_VNET_LONG &&
	    (len != VALE_HEADER_FRAME || port->vp_shared))
		return (vale_fail(EINVAL));
	pthread_mutex_lock(&vale_lock);
	vale_switch_change(port->vp_switch);
	atomic_store_8(&port->vp_header, len);
	vale_view_publish(port->vp_switch);
	vale_switch_changed(port->vp_switch);
	pthread_mutex_unlock(&vale_lock);
	return (0);
}

int
vale_limit(struct vale_desc *d __unused)
{
	return (0);
}

/* Count the frames that found no slot in a ring pair, or in its inbox. */
static uint64_t
pair_missed(const struct vale_pair *pair)
{
	uint64_t missed;

	missed = atomic_load_64(&pair->pa_counter[VALE_C_RX_DROP_FULL]);
	if (pair->pa_inbox != NULL)
		missed += pair_missed(pair->pa_inbox->vp_pair);
	return (missed);
}

uint64_t
vale_missed(const struct vale_desc *d)
{
	const struct vale_port *port =
	    ((const struct vale_pair *)(const void *)d)->pa_port;
	const struct vale_pair *pair;
	uint64_t missed = 0;

	VALE_PAIRS_FOREACH(pair, port)
		missed += pair_missed(pair);
	return (missed);
}

int
vale_set_sink(struct vale_desc *d,
    void (*sink)(void *, struct frame_source *), void *arg)
{
	struct vale_port *port = vale_desc_port(d);

	if (port->vp_npairs > 1 && sink != NULL) {
		errno = EOPNOTSUPP;
		return (-1);
	}
	pthread_mutex_lock(&vale_lock);
	vale_switch_change(port->vp_switch);
	/* The port stays in its switch: meanwhile frames go to the ring. */
	atomic_store_32(&port->vp_direct, 0);
	vale_view_publish(port->vp_switch);
	port->vp_sink = sink;
	port->vp_sink_arg = arg;
	atomic_store_rel_32(&port->vp_direct, sink != NULL);
	vale_switch_changed(port->vp_switch);
	pthread_mutex_unlock(&vale_lock);
	return (0);
}

/* Sum up the counters of all rings; other threads may be counting. */
static void
port_counters(const struct vale_port *port, uint64_t counters[VALE_NCOUNTERS])
{
	const struct vale_pair *pair;
	unsigned int i;

	memset(counters, 0, VALE_NCOUNTERS * sizeof(counters[0]));
	VALE_PAIRS_FOREACH(pair, port) {
		for (i = 0; i < VALE_NCOUNTERS; i++)
			counters[i] += i == VALE_C_RX_DROP_FULL ?
			    pair_missed(pair) :
			    atomic_load_64(i == VALE_C_RX_SYNC ?
			    &pair->pa_rx.rq_syncs : &pair->pa_counter[i]);
	}
}

static void
port_info(const struct vale_port *port, struct vale_port_info *info)
{
	memcpy(info->vpi_name, port->vp_common.name, sizeof(info->vpi_name));
	info->vpi_index = port->vp_index;
	info->vpi_rings = port->vp_npairs;
	info->vpi_link = !port->vp_down;
	info->vpi_tx_slots = port->vp_pair[0].pa_tx.vt_nslots;
	info->vpi_rx_slots = port->vp_pair[0].pa_rx.rq_nslots;
	port_counters(port, info->vpi_counter);
}

int
vale_list(const char *switch_name,
    int (*show)(const struct vale_port_info *, void *), void *arg)
{
	const struct vale_port *port;
	struct vale_port_info info;
	struct vale_switch *vs;
	int r = 0;

	pthread_mutex_lock(&vale_lock);
	TAILQ_FOREACH(vs, &vale_switches, vs_link) {
		if (switch_name != NULL &&
		    strcmp(vs->vs_name, switch_name) != 0)
			continue;
		SWITCH_FOREACH(port, vs) {
			port_info(port, &info);
			r = show(&info, arg);
			if (r != 0)
				break;
		}
		if (r != 0)
			break;
	}
	pthread_mutex_unlock(&vale_lock);
	return (r);
}

struct vale_port *
vale_switch_find_port(const char *name)
{
	struct vale_switch *vs;

	vs = vale_switch_find(name, strcspn(name, ":"));
	return (vs != NULL ? vale_switch_port(vs, name) : NULL);
}

int
vale_port_counters(const char *name, uint64_t counters[VALE_NCOUNTERS])
{
	const struct vale_port *port;

	pthread_mutex_lock(&vale_lock);
	port = vale_switch_find_port(name);
	if (port != NULL)
		port_counters(port, counters);
	pthread_mutex_unlock(&vale_lock);
	if (port != NULL)
		return (0);
	errno = ENXIO;
	return (-1);
}

int
vale_fdb_list(const char *switch_name,
    int (*show)(const struct vale_fdb_entry *, void *), void *arg)
{
	struct vale_fdb_entry entry;
	struct vale_switch *vs;
	struct timespec now;
	unsigned int cursor = 0;
	int r = 0;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	pthread_mutex_lock(&vale_lock);
	vs = vale_switch_find(switch_name, strlen(switch_name));
	while (vs != NULL && r == 0 && vale_fdb_next(&vs->vs_fdb, &cursor,
	    (uint32_t)now.tv_sec, &entry))
		r = show(&entry, arg);
	pthread_mutex_unlock(&vale_lock);
	if (vs != NULL)
		return (r);
	errno = ENXIO;
	return (-1);
}
