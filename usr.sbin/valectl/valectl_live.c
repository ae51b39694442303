/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Rates: what ports have counted since the report before, by the time that has
 * passed.  The busiest port comes first.  On a terminal each report takes the
 * place of the one before, and ports that do not fit are left out.
 */

#include <sys/param.h>
#include <sys/ioctl.h>

#include <err.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "valectl.h"

/* What happens to a port, a second. */
struct rate {
	const char	*rt_name;
	double		 rt_tx_frames;
	double		 rt_tx_bits;
	double		 rt_rx_frames;
	double		 rt_rx_bits;
	double		 rt_drops;	/* in both directions */
};

static double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (ts.tv_sec + ts.tv_nsec / 1e9);
}

uint64_t
vc_drops(const uint64_t counter[VALE_NCOUNTERS])
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < VALE_NCOUNTERS; i++)
		if (vale_counter_table[i].cr_kind == COUNTER_KIND_DROP)
			sum += counter[i];
	return (sum);
}

/*
 * Find a port's counters of before; a new port, also of its name, began with 0.
 */
static const uint64_t *
before(const struct vc_ports *last, const struct vale_port_info *info)
{
	static const struct vale_port_info none;
	const struct vale_port_info *old = vc_ports_find(last, info->vpi_name);

	if (old == NULL || old->vpi_counter[VALE_C_TX_SYNC] >
	    info->vpi_counter[VALE_C_TX_SYNC] ||
	    old->vpi_counter[VALE_C_RX_FRAME] >
	    info->vpi_counter[VALE_C_RX_FRAME])
		old = &none;
	return (old->vpi_counter);
}

static void
rate_fill(struct rate *rt, const struct vale_port_info *info,
    const uint64_t *last, double s)
{
	const uint64_t *c = info->vpi_counter;

	rt->rt_name = info->vpi_name;
	rt->rt_tx_frames = (c[VALE_C_TX_FRAME] - last[VALE_C_TX_FRAME]) / s;
	rt->rt_tx_bits = 8 * (c[VALE_C_TX_BYTE] - last[VALE_C_TX_BYTE]) / s;
	rt->rt_rx_frames = (c[VALE_C_RX_FRAME] - last[VALE_C_RX_FRAME]) / s;
	rt->rt_rx_bits = 8 * (c[VALE_C_RX_BYTE] - last[VALE_C_RX_BYTE]) / s;
	rt->rt_drops = (vc_drops(c) - vc_drops(last)) / s;
}

static int
rate_compare(const void *a, const void *b)
{
	const struct rate *x = a, *y = b;
	const double d = y->rt_tx_frames + y->rt_rx_frames -
	    (x->rt_tx_frames + x->rt_rx_frames);

	return (d > 0 ? 1 : d < 0 ? -1 : strcmp(x->rt_name, y->rt_name));
}

/* Return a terminal's lines for ports, or `n'. */
static size_t
lines(size_t n)
{
	struct winsize ws;

	if (!isatty(STDOUT_FILENO) ||
	    ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == -1 || ws.ws_row < 3)
		return (n);
	return (MIN(n, ws.ws_row - 2U));
}

static void
print_text(const struct rate *rates, size_t n)
{
	size_t i;

	if (isatty(STDOUT_FILENO))
		fputs("\033[H\033[2J", stdout);
	printf("%-30s %11s %9s %11s %9s %11s\n", "port", "tx frame/s",
	    "Mbit/s", "rx frame/s", "Mbit/s", "drop/s");
	n = lines(n);
	for (i = 0; i < n; i++)
		printf("%-30s %11.0f %9.1f %11.0f %9.1f %11.0f\n",
		    rates[i].rt_name, rates[i].rt_tx_frames,
		    rates[i].rt_tx_bits / 1e6, rates[i].rt_rx_frames,
		    rates[i].rt_rx_bits / 1e6, rates[i].rt_drops);
	fflush(stdout);
}

static void
print_json(const struct rate *rates, size_t n)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < n; i++)
		json_array_append_new(list, json_pack(
		    "{s:s, s:f, s:f, s:f, s:f, s:f}", "name",
		    rates[i].rt_name, "tx_frames", rates[i].rt_tx_frames,
		    "tx_bits", rates[i].rt_tx_bits, "rx_frames",
		    rates[i].rt_rx_frames, "rx_bits", rates[i].rt_rx_bits,
		    "drops", rates[i].rt_drops));
	vc_print_json(list);
	fflush(stdout);
}

/* Print what has changed between two reports. */
static void
report(const struct vc_ports *last, const struct vc_ports *ports, double s,
    bool json)
{
	struct rate *rates;
	size_t i;

	rates = calloc(ports->vcp_n + 1, sizeof(*rates));
	if (rates == NULL)
		err(EX_OSERR, NULL);
	for (i = 0; i < ports->vcp_n; i++)
		rate_fill(&rates[i], &ports->vcp_info[i],
		    before(last, &ports->vcp_info[i]), s);
	qsort(rates, ports->vcp_n, sizeof(*rates), rate_compare);
	if (json)
		print_json(rates, ports->vcp_n);
	else
		print_text(rates, ports->vcp_n);
	free(rates);
}

/* Read the ports, also of a valed that is restarted meanwhile. */
static void
ports_again(const char *name, struct vc_ports *ports)
{
	unsigned int tries = 0;

	while (vc_ports_get(name, ports) == -1) {
		if (!vc_again(&tries))
			vc_fail();
		free(ports->vcp_info);
	}
	if (name != NULL && ports->vcp_n == 0)
		errx(EX_DATAERR, "%s: there is no such switch", name);
}

void
vc_live(const char *name, unsigned int interval_s, unsigned int count,
    bool json)
{
	struct vc_ports last, ports;
	double last_s, s;
	unsigned int i;

	vc_ports_read(name, &last);
	last_s = now();
	for (i = 0; count == 0 || i < count; i++) {
		sleep(interval_s);
		ports_again(name, &ports);
		s = now();
		report(&last, &ports, s - last_s, json);
		free(last.vcp_info);
		last = ports;
		last_s = s;
	}
	free(last.vcp_info);
}
