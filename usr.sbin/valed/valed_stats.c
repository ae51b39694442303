/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Counters on demand: those of an adapter's model, its server, its interrupts
 * and its port; those of an attached interface and its port.  All of them are
 * read into one array, without locks, while their owners go on counting.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapter.h"
#include "e82545.h"
#include "frame_port.h"
#include "libvale.h"
#include "vale_wire.h"
#include "valed_stats.h"

/*
 * Counters without a table elsewhere.  Every frame is copied into guest memory
 * once; a frame that goes through the port's ring is copied into that first.
 */
#define	OTHER_COUNTERS(X)						\
	X(OTHER_IRQ_SENT, "irq_sent", "interrupts sent to the client")	\
	X(OTHER_IRQ_UNMASKED, "irq_unmasked", "unmasks seen")		\
	X(OTHER_ANNOUNCES, "announces", "times its address was announced") \
	X(OTHER_COPIES, "copies", "copies of frames made")

enum other_counter {
	COUNTER_IDS(OTHER_COUNTERS)
	OTHER_NCOUNTERS
};

static const struct counter_row other_counter_table[OTHER_NCOUNTERS] = {
	COUNTER_ROWS(OTHER_COUNTERS)
};

static const struct counter_row adapter_counter_table[ADAPTER_NCOUNTERS] = {
	COUNTER_ROWS(ADAPTER_COUNTERS)
};

/* The index of each table in the array. */
enum {
	AT_MODEL	= 0,
	AT_CLIENT	= AT_MODEL + E82545_NCOUNTERS,
	AT_ADAPTER	= AT_CLIENT + VFU_NCOUNTERS,
	AT_FRAME_PORT	= AT_ADAPTER + ADAPTER_NCOUNTERS,
	AT_OTHER	= AT_FRAME_PORT + FRAME_PORT_NCOUNTERS,
	AT_PORT		= AT_OTHER + OTHER_NCOUNTERS,
	NCOUNTERS	= AT_PORT + VALE_NCOUNTERS
};

/* The counters of an interface, and after them those of its port. */
#define	HOSTIF_NALL	(HOSTIF_NCOUNTERS + VALE_NCOUNTERS)

/* The tables of a device: those of its port have a prefix. */
struct section {
	int				 at;
	const char			*prefix;	/* of its names */
	const struct counter_row	*table;
};

static const struct section adapter_sections[] = {
	{ AT_MODEL,	"",		e82545_counter_table },
	{ AT_CLIENT,	"",		vfu_counter_table },
	{ AT_ADAPTER,	"",		adapter_counter_table },
	{ AT_FRAME_PORT, "",		frame_port_counter_table },
	{ AT_OTHER,	"",		other_counter_table },
	{ AT_PORT,	"port_",	vale_counter_table },
	{ NCOUNTERS,	NULL,		NULL },
};

static const struct section hostif_sections[] = {
	{ 0,		"",		hostif_counter_table },
	{ HOSTIF_NCOUNTERS, "port_",	vale_counter_table },
	{ HOSTIF_NALL,	NULL,		NULL },
};

_Static_assert(AT_PORT <= VALE_DEVICE_COUNTERS &&
    HOSTIF_NCOUNTERS <= VALE_DEVICE_COUNTERS, "a device has all its counters");

static void
snapshot(const struct adapter *ad, uint64_t value[NCOUNTERS])
{
	int i;

	e82545_counters(ad->dev, value + AT_MODEL);
	for (i = 0; i < VFU_NCOUNTERS; i++)
		value[AT_CLIENT + i] =
		    atomic_load_64(&ad->vfu.vdev_counters[i]);
	for (i = 0; i < ADAPTER_NCOUNTERS; i++)
		value[AT_ADAPTER + i] = atomic_load_64(&ad->counters[i]);
	for (i = 0; i < FRAME_PORT_NCOUNTERS; i++)
		value[AT_FRAME_PORT + i] =
		    frame_port_counter(ad->net.an_port, i);
	value[AT_OTHER + OTHER_IRQ_SENT] =
	    atomic_load_64(&ad->vfu.vdev_irq.sent);
	value[AT_OTHER + OTHER_IRQ_UNMASKED] =
	    atomic_load_64(&ad->vfu.vdev_irq.unmasked);
	value[AT_OTHER + OTHER_ANNOUNCES] = atomic_load_64(&ad->announces);
	if (vale_port_counters(ad->config.ac_backend, value + AT_PORT) != 0)
		memset(value + AT_PORT, 0, VALE_NCOUNTERS * sizeof(*value));
	value[AT_OTHER + OTHER_COPIES] = value[AT_MODEL + E82545_C_RX_FRAME] +
	    value[AT_PORT + VALE_C_RX_COPY];
}

static void
hostif_snapshot(const struct hostif *hi, uint64_t value[HOSTIF_NALL])
{
	uint64_t *port = value + HOSTIF_NCOUNTERS;
	int i;

	for (i = 0; i < HOSTIF_NCOUNTERS; i++)
		value[i] = hostif_counter(hi, i);
	if (vale_port_counters(hostif_port_name(hi), port) != 0)
		memset(port, 0, VALE_NCOUNTERS * sizeof(*port));
}

/* Append a device's counters to *wd, without those of its port. */
static void
device_counters(struct vale_wire_device *wd, const struct section *sec,
    const uint64_t *value)
{
	const struct counter_row *cr;
	struct vale_wire_counter *wn;
	int i;

	for (; sec->prefix[0] == '\0'; sec++)
		for (i = sec[0].at; i < sec[1].at; i++) {
			cr = &sec->table[i - sec->at];
			wn = &wd->wdv_counter[wd->wdv_ncounters++];
			strlcpy(wn->wn_name, cr->cr_name, sizeof(wn->wn_name));
			strlcpy(wn->wn_what, cr->cr_desc, sizeof(wn->wn_what));
			wn->wn_kind = cr->cr_kind;
			wn->wn_value = value[i];
		}
}

void
valed_stats_adapter(const struct adapter *ad, struct vale_wire_device *wd)
{
	uint64_t value[NCOUNTERS];

	snapshot(ad, value);
	device_counters(wd, adapter_sections, value);
}

void
valed_stats_interface(const struct hostif *hi, struct vale_wire_device *wd)
{
	uint64_t value[HOSTIF_NCOUNTERS];
	int i;

	for (i = 0; i < HOSTIF_NCOUNTERS; i++)
		value[i] = hostif_counter(hi, i);
	device_counters(wd, hostif_sections, value);
}

static void
print_counters(const char *name, const struct section *sec,
    const uint64_t *value)
{
	int i;

	for (; sec->table != NULL; sec++)
		for (i = sec[0].at; i < sec[1].at; i++)
			printf("%s %s%s %" PRIu64 "\n", name, sec->prefix,
			    sec->table[i - sec->at].cr_name, value[i]);
	fflush(stdout);
}

void
valed_stats_print(const struct adapter_list *adapters)
{
	uint64_t value[NCOUNTERS];
	const struct adapter *ad;

	TAILQ_FOREACH(ad, adapters, link) {
		snapshot(ad, value);
		print_counters(ad->config.ac_name, adapter_sections, value);
	}
}

void
valed_stats_hostif(struct hostif *hi, void *arg __unused)
{
	uint64_t value[HOSTIF_NALL];

	hostif_snapshot(hi, value);
	print_counters(hostif_name(hi), hostif_sections, value);
}

/*
 * Replace `n' counters by what has come since *last.  Returns false if there is
 * no memory.
 */
static bool
live_changes(uint64_t *d, uint64_t **last, int n)
{
	uint64_t now;
	int i;

	if (*last == NULL && (*last = calloc(n, sizeof(**last))) == NULL)
		return (false);
	for (i = 0; i < n; i++) {
		now = d[i];
		d[i] -= (*last)[i];
		(*last)[i] = now;
	}
	return (true);
}

/* End a line with each counter of dropped frames that has grown. */
static void
live_drops(const uint64_t *d, const struct section *sec)
{
	const struct counter_row *cr;
	int i;

	for (; sec->table != NULL; sec++)
		for (i = sec[0].at; i < sec[1].at; i++) {
			cr = &sec->table[i - sec->at];
			if (d[i] != 0 && cr->cr_kind == COUNTER_KIND_DROP)
				printf(", %s%s %" PRIu64, sec->prefix,
				    cr->cr_name, d[i]);
		}
	putchar('\n');
	fflush(stdout);
}

void
valed_stats_hostif_live(struct hostif *hi, void *arg __unused)
{
	uint64_t d[HOSTIF_NALL];

	hostif_snapshot(hi, d);
	if (!live_changes(d, hostif_live(hi), HOSTIF_NALL))
		return;
	printf("%s tx %" PRIu64 " frames %" PRIu64 " batches %" PRIu64
	    " calls, rx %" PRIu64 " frames %" PRIu64 " batches, "
	    "port tx %" PRIu64 " rx %" PRIu64, hostif_name(hi),
	    d[HOSTIF_C_TX_FRAME], d[HOSTIF_C_TX_BATCH], d[HOSTIF_C_TX_CALL],
	    d[HOSTIF_C_RX_FRAME], d[HOSTIF_C_RX_BATCH],
	    d[HOSTIF_NCOUNTERS + VALE_C_TX_FRAME],
	    d[HOSTIF_NCOUNTERS + VALE_C_RX_FRAME]);
	live_drops(d, hostif_sections);
}

static void
live_line(const struct adapter *ad, const uint64_t *d)
{
	printf("%s tx %" PRIu64 " frames %" PRIu64 " batches %" PRIu64
	    " kicks, rx %" PRIu64 " frames %" PRIu64 " batches, "
	    "%" PRIu64 " interrupts, %" PRIu64 " exits, "
	    "port tx %" PRIu64 " rx %" PRIu64, ad->config.ac_name,
	    d[AT_MODEL + E82545_C_TX_FRAME], d[AT_MODEL + E82545_C_TX_BATCH],
	    d[AT_MODEL + E82545_C_TX_KICK], d[AT_MODEL + E82545_C_RX_FRAME],
	    d[AT_MODEL + E82545_C_RX_BATCH], d[AT_OTHER + OTHER_IRQ_SENT],
	    d[AT_MODEL + E82545_C_REG_READ] + d[AT_MODEL + E82545_C_REG_WRITE],
	    d[AT_PORT + VALE_C_TX_FRAME], d[AT_PORT + VALE_C_RX_FRAME]);
	live_drops(d, adapter_sections);
}

void
valed_stats_live(const struct adapter_list *adapters)
{
	uint64_t d[NCOUNTERS];
	struct adapter *ad;

	TAILQ_FOREACH(ad, adapters, link) {
		/* An adapter may be on its way to another port. */
		pthread_mutex_lock(&ad->mtx);
		snapshot(ad, d);
		if (live_changes(d, &ad->live, NCOUNTERS))
			live_line(ad, d);
		pthread_mutex_unlock(&ad->mtx);
	}
}
