/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Counters of ports for the next process: valed_counters_keep.h.
 */

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"
#include "libvale.h"
#include "vale_setting.h"
#include "vale_wire.h"
#include "valed_counters_keep.h"
#include "valed_options.h"
#include "valed_store.h"
#include "valed_watch.h"

#define	STORE_NAME	"counters"

/* Return the counter of this name, or VALE_NCOUNTERS. */
static unsigned int
counter_named(const char *name)
{
	unsigned int i;

	for (i = 0; i < VALE_NCOUNTERS; i++)
		if (strcmp(vale_counter_table[i].cr_name, name) == 0)
			break;
	return (i);
}

/* Set a counter, except an unknown one, or that of a port that is not there. */
static void
line_set(char *line, const struct valed_options *opt)
{
	const char *port = strsep(&line, "\t"), *name = strsep(&line, "\t");
	const unsigned int counter = name == NULL ? VALE_NCOUNTERS :
	    counter_named(name);
	uint64_t value;
	char *end;

	if (line == NULL || counter == VALE_NCOUNTERS ||
	    !valed_options_adapter(opt, port))
		return;
	value = strtoull(line, &end, 10);
	if (*end == '\0' && value <= INT64_MAX)
		(void)vale_port_count(port, counter, value);
}

void
valed_counters_keep_start(const struct valed_options *opt)
{
	char *next, *text;

	if (!valed_store_take_text(STORE_NAME, &text))
		return;
	next = text;
	while (next != NULL)
		line_set(strsep(&next, "\n"), opt);
	free(text);
	/* The counters would be wrong after a crash. */
	valed_store_remove(STORE_NAME);
}

static int
write_port(const struct vale_wire_device *wd, void *arg)
{
	uint64_t counter[VALE_NCOUNTERS];
	unsigned int i;

	if (wd->wdv_kind != VALE_DEVICE_ADAPTER ||
	    vale_port_counters(wd->wdv_port, counter) == -1)
		return (0);
	for (i = 0; i < VALE_NCOUNTERS; i++)
		fprintf(arg, "%s\t%s\t%" PRIu64 "\n", wd->wdv_port,
		    vale_counter_table[i].cr_name, counter[i]);
	return (0);
}

void
valed_counters_keep(void)
{
	char *text = NULL;
	size_t size;
	FILE *fp;

	fp = open_memstream(&text, &size);
	if (fp != NULL)
		valed_watch_list(write_port, fp);
	if (fp == NULL || fclose(fp) != 0 ||
	    !valed_store_put_text(STORE_NAME, text))
		warn("the counters of ports are not kept");
	free(text);
}
