/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * All counters, and the state of adapters, for Prometheus: in the text format
 * of OpenMetrics 1.0, or in Prometheus's own (version 0.0.4), which names and
 * types counters otherwise and has no units.
 *
 * A counter of valed(8) becomes a metric: "tx_bytes" of a port is
 * vale_port_transmit_bytes_total.  Counters of dropped frames of one direction
 * are one metric, with a label for the reason; so are those of frames that were
 * filtered, which is no loss: they were for others.
 */

#include <sys/param.h>

#include <err.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "valectl.h"

/* All samples of a metric are together. */
struct family {
	char		 fa_name[80];	/* without "_total" */
	const char	*fa_type;
	const char	*fa_unit;	/* the end of its name, or "" */
	char		 fa_help[96];
	char		*fa_text;	/* its samples: fa_file's */
	size_t		 fa_size;
	FILE		*fa_file;
};

#define	FAMILIES_MAX	256

struct families {
	struct family	 fml_family[FAMILIES_MAX];
	size_t		 fml_n;
	bool		 fml_openmetrics;
};

/* Print `s' with escapes, for labels and descriptions. */
static void
escape(FILE *f, const char *s)
{
	for (; *s != '\0'; s++) {
		if (*s == '\n')
			fputs("\\n", f);
		else {
			if (*s == '"' || *s == '\\')
				putc('\\', f);
			putc(*s, f);
		}
	}
}

static const char *
unit_of(const char *name)
{
	static const char *const units[] = { "bytes", "frames", "seconds" };
	const size_t len = strlen(name);
	size_t i, n;

	for (i = 0; i < nitems(units); i++) {
		n = strlen(units[i]);
		if (len > n && strcmp(name + len - n, units[i]) == 0 &&
		    name[len - n - 1] == '_')
			return (units[i]);
	}
	return ("");
}

/* Find or make the metric with a name. */
static struct family *
family(struct families *fs, const char *type, const char *name,
    const char *help)
{
	struct family *fa;

	for (fa = fs->fml_family; fa < fs->fml_family + fs->fml_n; fa++)
		if (strcmp(fa->fa_name, name) == 0)
			return (fa);
	if (fs->fml_n == FAMILIES_MAX)
		errx(EX_DATAERR, "more than %d metrics", FAMILIES_MAX);
	fs->fml_n++;
	strlcpy(fa->fa_name, name, sizeof(fa->fa_name));
	strlcpy(fa->fa_help, help, sizeof(fa->fa_help));
	fa->fa_type = type;
	fa->fa_unit = unit_of(name);
	fa->fa_file = open_memstream(&fa->fa_text, &fa->fa_size);
	if (fa->fa_file == NULL)
		err(EX_OSERR, NULL);
	return (fa);
}

/* Return how names of counters and others end in samples. */
static const char *
suffix_of(const struct family *fa)
{
	if (strcmp(fa->fa_type, "counter") == 0)
		return ("_total");
	return (strcmp(fa->fa_type, "info") == 0 ? "_info" : "");
}

/*
 * Add a sample.  Labels with their values follow, up to a NULL; a label without
 * value is left out.
 */
static void __attribute__((__sentinel__))
sample(struct family *fa, const char *value, ...)
{
	const char *name, *text, *before = "{";
	va_list ap;

	fprintf(fa->fa_file, "%s%s", fa->fa_name, suffix_of(fa));
	va_start(ap, value);
	while ((name = va_arg(ap, const char *)) != NULL) {
		text = va_arg(ap, const char *);
		if (text == NULL)
			continue;
		fprintf(fa->fa_file, "%s%s=\"", before, name);
		escape(fa->fa_file, text);
		putc('"', fa->fa_file);
		before = ",";
	}
	va_end(ap);
	fprintf(fa->fa_file, "} %s\n", value);
}

/* Who counts: "port", and its labels. */
struct source {
	const char	*so_kind;
	const char	*so_device;	/* the device's name, or NULL */
	const char	*so_switch;	/* or NULL */
	const char	*so_port;
};

/* Take the switch from a name like "vale0:vm1", which is changed. */
static void
source_init(struct source *so, const char *kind, const char *device,
    char *name)
{
	char *port = strchr(name, ':');

	so->so_kind = kind;
	so->so_device = device;
	so->so_switch = NULL;
	so->so_port = name;
	if (port != NULL) {
		*port = '\0';
		so->so_switch = name;
		so->so_port = port + 1;
	}
}

/* Add a sample of a source. */
static void
source_sample(const struct source *so, struct family *fa, const char *reason,
    const char *value)
{
	/* "port" has no device. */
	if (so->so_device == NULL)
		sample(fa, value, "switch", so->so_switch, "port", so->so_port,
		    "reason", reason, NULL);
	else
		sample(fa, value, so->so_kind, so->so_device, "switch",
		    so->so_switch, "port", so->so_port, "reason", reason, NULL);
}

/* Add a counter, with its name in valed(8), its kind and its description. */
static void
source_counter(struct families *fs, const struct source *so,
    const char *counter, unsigned int kind, const char *help, uint64_t value)
{
	const char *direction = "", *rest = counter, *reason = NULL;
	char name[80], number[24];

	if (strncmp(counter, "tx_", 3) == 0)
		direction = "transmit_";
	else if (strncmp(counter, "rx_", 3) == 0)
		direction = "receive_";
	if (*direction != '\0') {
		rest += 3;
		reason = rest;
		if (strncmp(reason, "drop_", 5) == 0)
			reason += 5;
		if (kind == COUNTER_KIND_DROP) {
			rest = "dropped_frames";
			help = "frames dropped, by reason";
		} else if (kind == COUNTER_KIND_FILTER) {
			rest = "filtered_frames";
			help = "frames filtered, by reason";
		} else
			reason = NULL;
	}
	snprintf(name, sizeof(name), "vale_%s_%s%s", so->so_kind, direction,
	    rest);
	snprintf(number, sizeof(number), "%" PRIu64, value);
	source_sample(so, family(fs, "counter", name, help), reason, number);
}

static void
source_gauge(struct families *fs, const struct source *so, const char *what,
    const char *help, const char *fmt, ...)
    __attribute__((__format__(__printf__, 5, 6)));

static void
source_gauge(struct families *fs, const struct source *so, const char *what,
    const char *help, const char *fmt, ...)
{
	char name[80], number[24];
	va_list ap;

	snprintf(name, sizeof(name), "vale_%s_%s", so->so_kind, what);
	va_start(ap, fmt);
	vsnprintf(number, sizeof(number), fmt, ap);
	va_end(ap);
	source_sample(so, family(fs, "gauge", name, help), NULL, number);
}

static void
add_port(struct families *fs, const struct vale_port_info *info)
{
	struct source so;
	char name[VALE_NAME_SIZE];
	int i;

	strlcpy(name, info->vpi_name, sizeof(name));
	source_init(&so, "port", NULL, name);
	source_gauge(fs, &so, "link_up", "whether the port's link is up", "%d",
	    info->vpi_link);
	for (i = 0; i < VALE_NCOUNTERS; i++)
		source_counter(fs, &so, vale_counter_table[i].cr_name,
		    vale_counter_table[i].cr_kind,
		    vale_counter_table[i].cr_desc, info->vpi_counter[i]);
}

static void
add_adapter(struct families *fs, const struct source *so,
    const struct vale_wire_device *wd)
{
	char addr[VC_ADDRESS_SIZE];

	vc_address(wd->wdv_addr, addr);
	sample(family(fs, fs->fml_openmetrics ? "info" : "gauge",
	    fs->fml_openmetrics ? "vale_adapter" : "vale_adapter_info",
	    "the adapter's port and address"), "1", "adapter", wd->wdv_name,
	    "switch", so->so_switch, "port", so->so_port, "address", addr,
	    NULL);
	source_gauge(fs, so, "client_connected",
	    "whether a client is connected", "%d",
	    (wd->wdv_flags & VALE_DEVICE_CLIENT) != 0);
	if (wd->wdv_since_s != 0)
		source_gauge(fs, so, "client_start_time_seconds",
		    "since when the client is connected, since 1970",
		    "%" PRIu64, wd->wdv_since_s);
	source_gauge(fs, so, "csb_enabled", "whether the driver uses the CSB",
	    "%d", (wd->wdv_flags & VALE_DEVICE_CSB) != 0);
	source_gauge(fs, so, "link_up", "whether the driver sees a carrier",
	    "%d", (wd->wdv_flags & VALE_DEVICE_LINK) != 0);
	source_gauge(fs, so, "interrupt_interval_seconds",
	    "least time between two interrupts", "%.9f",
	    wd->wdv_itr_ns / 1e9);
}

static void
add_device(struct families *fs, const struct vale_wire_device *wd)
{
	const struct vale_wire_counter *wn;
	char port[VALE_NAME_SIZE];
	struct source so;

	strlcpy(port, wd->wdv_port, sizeof(port));
	source_init(&so, vc_device_kind(wd), wd->wdv_name, port);
	if (wd->wdv_kind == VALE_DEVICE_ADAPTER)
		add_adapter(fs, &so, wd);
	for (wn = wd->wdv_counter;
	    wn < wd->wdv_counter + wd->wdv_ncounters; wn++)
		source_counter(fs, &so, wn->wn_name, wn->wn_kind, wn->wn_what,
		    wn->wn_value);
}

/* Print a metric, and free its samples. */
static void
family_end(struct family *fa, FILE *f, bool openmetrics)
{
	/* What names a metric: in the older format all of a sample's name. */
	const char *suffix = openmetrics ? "" : suffix_of(fa);

	if (fclose(fa->fa_file) != 0)
		err(EX_OSERR, NULL);
	fprintf(f, "# HELP %s%s ", fa->fa_name, suffix);
	escape(f, fa->fa_help);
	fprintf(f, "\n# TYPE %s%s %s\n", fa->fa_name, suffix, fa->fa_type);
	if (openmetrics && fa->fa_unit[0] != '\0')
		fprintf(f, "# UNIT %s %s\n", fa->fa_name, fa->fa_unit);
	fwrite(fa->fa_text, 1, fa->fa_size, f);
	free(fa->fa_text);
}

int
vc_metrics(FILE *f, bool openmetrics)
{
	struct vc_state st;
	struct families *fs;
	size_t i;

	if (vc_state_get(&st) == -1)
		return (-1);
	fs = calloc(1, sizeof(*fs));
	if (fs == NULL)
		err(EX_OSERR, NULL);
	fs->fml_openmetrics = openmetrics;
	for (i = 0; i < st.vcs_ports.vcp_n; i++)
		add_port(fs, &st.vcs_ports.vcp_info[i]);
	for (i = 0; i < st.vcs_devices.vcd_n; i++)
		add_device(fs, &st.vcs_devices.vcd_device[i]);
	for (i = 0; i < fs->fml_n; i++)
		family_end(&fs->fml_family[i], f, openmetrics);
	if (openmetrics)
		fputs("# EOF\n", f);
	free(fs);
	vc_state_free(&st);
	return (0);
}

void
vc_show_metrics(bool openmetrics)
{
	if (vc_metrics(stdout, openmetrics) == -1)
		vc_fail();
}
