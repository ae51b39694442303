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

static const struct section {
	int				 at;
	const char			*prefix;	/* of its names */
	const struct counter_row	*table;
} sections[] = {
	{ AT_MODEL,	"",		e82545_counter_table },
	{ AT_CLIENT,	"",		vfu_counter_table },
	{ AT_ADAPTER,	"",		adapter_counter_table },
	{ AT_FRAME_PORT, "",		frame_port_counter_table },
	{ AT_OTHER,	"",		other_counter_table },
	{ AT_PORT,	"port_",	vale_counter_table },
	{ NCOUNTERS,	NULL,		NULL },
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

/* Return a counter's row, and the prefix of its table. */
static const struct counter_row *
counter_row(int i, const char **prefix)
{
	const struct section *sec = sections;

	while (i >= sec[1].at)
		sec++;
	*prefix = sec->prefix;
	return (&sec->table[i - sec->at]);
}

void
valed_stats_adapter(const struct adapter *ad, valed_stats_show *show,
    void *arg)
{
	uint64_t value[NCOUNTERS];
	const char *prefix;
	int i;

	snapshot(ad, value);
	for (i = 0; i < AT_PORT; i++)
		show(counter_row(i, &prefix), value[i], arg);
}

void
valed_stats_interface(const struct hostif *hi, valed_stats_show *show,
    void *arg)
{
	int i;

	for (i = 0; i < HOSTIF_NCOUNTERS; i++)
		show(&hostif_counter_table[i], hostif_counter(hi, i), arg);
}

void
valed_stats_print(const struct adapter_list *adapters)
{
	uint64_t value[NCOUNTERS];
	const char *name, *prefix;
	const struct adapter *ad;
	int i;

	TAILQ_FOREACH(ad, adapters, link) {
		snapshot(ad, value);
		for (i = 0; i < NCOUNTERS; i++) {
			name = counter_row(i, &prefix)->cr_name;
			printf("%s %s%s %" PRIu64 "\n", ad->config.ac_name,
			    prefix, name, value[i]);
		}
	}
	fflush(stdout);
}

/* The counters of an interface, and after them those of its port. */
#define	HOSTIF_NALL	(HOSTIF_NCOUNTERS + VALE_NCOUNTERS)

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

static const struct counter_row *
hostif_counter_row(int i, const char **prefix)
{
	*prefix = i < HOSTIF_NCOUNTERS ? "" : "port_";
	return (i < HOSTIF_NCOUNTERS ? &hostif_counter_table[i] :
	    &vale_counter_table[i - HOSTIF_NCOUNTERS]);
}

void
valed_stats_hostif(struct hostif *hi, void *arg __unused)
{
	const char *name, *prefix;
	uint64_t value[HOSTIF_NALL];
	int i;

	hostif_snapshot(hi, value);
	for (i = 0; i < HOSTIF_NALL; i++) {
		name = hostif_counter_row(i, &prefix)->cr_name;
		printf("%s %s%s %" PRIu64 "\n", hostif_name(hi), prefix, name,
		    value[i]);
	}
	fflush(stdout);
}

/* End a line with each counter of dropped frames that has grown. */
static void
live_drops(const uint64_t *d, int n,
    const struct counter_row *(*row)(int i, const char **prefix))
{
	const struct counter_row *cr;
	const char *prefix;
	int i;

	for (i = 0; i < n; i++) {
		cr = row(i, &prefix);
		if (d[i] != 0 && cr->cr_kind == COUNTER_KIND_DROP)
			printf(", %s%s %" PRIu64, prefix, cr->cr_name, d[i]);
	}
	putchar('\n');
}

void
valed_stats_hostif_live(struct hostif *hi, void *arg __unused)
{
	uint64_t d[HOSTIF_NALL], now[HOSTIF_NALL], **last = hostif_live(hi);
	int i;

	if (*last == NULL &&
	    (*last = calloc(HOSTIF_NALL, sizeof(**last))) == NULL)
		return;
	hostif_snapshot(hi, now);
	for (i = 0; i < HOSTIF_NALL; i++)
		d[i] = now[i] - (*last)[i];
	memcpy(*last, now, sizeof(now));
	printf("%s tx %" PRIu64 " frames %" PRIu64 " batches %" PRIu64
	    " calls, rx %" PRIu64 " frames %" PRIu64 " batches, "
	    "port tx %" PRIu64 " rx %" PRIu64, hostif_name(hi),
	    d[HOSTIF_C_TX_FRAME], d[HOSTIF_C_TX_BATCH], d[HOSTIF_C_TX_CALL],
	    d[HOSTIF_C_RX_FRAME], d[HOSTIF_C_RX_BATCH],
	    d[HOSTIF_NCOUNTERS + VALE_C_TX_FRAME],
	    d[HOSTIF_NCOUNTERS + VALE_C_RX_FRAME]);
	live_drops(d, HOSTIF_NALL, hostif_counter_row);
	fflush(stdout);
}

static void
live_line(const struct adapter *ad, const uint64_t *now, const uint64_t *last)
{
	uint64_t d[NCOUNTERS];
	unsigned int i;

	for (i = 0; i < NCOUNTERS; i++)
		d[i] = now[i] - last[i];
	printf("%s tx %" PRIu64 " frames %" PRIu64 " batches %" PRIu64
	    " kicks, rx %" PRIu64 " frames %" PRIu64 " batches, "
	    "%" PRIu64 " interrupts, %" PRIu64 " exits, "
	    "port tx %" PRIu64 " rx %" PRIu64, ad->config.ac_name,
	    d[AT_MODEL + E82545_C_TX_FRAME], d[AT_MODEL + E82545_C_TX_BATCH],
	    d[AT_MODEL + E82545_C_TX_KICK], d[AT_MODEL + E82545_C_RX_FRAME],
	    d[AT_MODEL + E82545_C_RX_BATCH], d[AT_OTHER + OTHER_IRQ_SENT],
	    d[AT_MODEL + E82545_C_REG_READ] + d[AT_MODEL + E82545_C_REG_WRITE],
	    d[AT_PORT + VALE_C_TX_FRAME], d[AT_PORT + VALE_C_RX_FRAME]);
	live_drops(d, NCOUNTERS, counter_row);
}

void
valed_stats_live(const struct adapter_list *adapters)
{
	uint64_t now[NCOUNTERS];
	struct adapter *ad;

	TAILQ_FOREACH(ad, adapters, link) {
		if (ad->live == NULL && (ad->live = calloc(NCOUNTERS,
		    sizeof(*ad->live))) == NULL)
			return;
		/* An adapter may be on its way to another port. */
		pthread_mutex_lock(&ad->mtx);
		snapshot(ad, now);
		live_line(ad, now, ad->live);
		pthread_mutex_unlock(&ad->mtx);
		memcpy(ad->live, now, sizeof(now));
	}
	fflush(stdout);
}
