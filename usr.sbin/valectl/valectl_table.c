/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The table of ports, for people.  Adapters whose port is on no switch of this
 * valed, those of control= and TAPs, are in it, too.
 */

#include <sys/param.h>

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "vale_setting.h"
#include "valectl.h"

enum {
	PORT,
	KIND,
	ADDRESS,
	CLIENT,
	LINK,
	VLAN,
	RATE,
	TX,			/* from here on numbers */
	RX,
	DROP,
	NCOLUMNS
};

/* Bytes of a cell, with its NUL. */
#define	CELL_SIZE	VALE_NAME_SIZE

struct row {
	char	cell[NCOLUMNS][CELL_SIZE];
};

static const struct row titles = { .cell = { [PORT] = "PORT",
    [KIND] = "KIND", [ADDRESS] = "ADDRESS", [CLIENT] = "CLIENT",
    [LINK] = "LINK", [VLAN] = "VLAN", [RATE] = "RATE", [TX] = "TX",
    [RX] = "RX", [DROP] = "DROP" } };

/* Print a number of frames: all of its digits if there are at most five. */
static void
number(char *cell, uint64_t n)
{
	const char *unit = "KMGTPE";
	double d = n / 1000.0;

	if (n < 100000) {
		snprintf(cell, CELL_SIZE, "%" PRIu64, n);
		return;
	}
	for (; d >= 999.95; unit++)
		d /= 1000;
	snprintf(cell, CELL_SIZE, "%.1f%c", d, *unit);
}

/* Print for how long a client has been connected. */
static void
client(char *cell, uint64_t since_s)
{
	const uint64_t now_s = time(NULL);
	const uint64_t s = now_s > since_s ? now_s - since_s : 0;

	if (since_s == 0)
		strlcpy(cell, "none", CELL_SIZE);
	else if (s < 60)
		snprintf(cell, CELL_SIZE, "%" PRIu64 "s", s);
	else if (s < 3600)
		snprintf(cell, CELL_SIZE, "%" PRIu64 "m", s / 60);
	else if (s < 86400)
		snprintf(cell, CELL_SIZE, "%" PRIu64 "h", s / 3600);
	else
		snprintf(cell, CELL_SIZE, "%" PRIu64 "d", s / 86400);
}

/* Print a rate as it can be set: in the greatest unit without fraction. */
static void
rate(char *cell, const struct vale_setting_value *sv)
{
	char text[VALE_SETTING_SIZE], *end;
	static const char *const units[] = { "", "K", "M", "G" };
	unsigned int i = 0;
	uint64_t n;

	vale_setting_print(VALE_SETTING_RATE, sv, text, sizeof(text));
	text[strcspn(text, ",")] = '\0';
	n = strtoull(text, &end, 10);
	if (n == 0)
		return;
	for (; n % 1000 == 0 && i < nitems(units) - 1; i++)
		n /= 1000;
	snprintf(cell, CELL_SIZE, "%" PRIu64 "%s%s", n, units[i], end);
}

static void
vlan(char *cell, const struct vale_setting_value sv[VALE_NSETTINGS])
{
	const char *trunk = sv[VALE_SETTING_TRUNK].sv_text;

	if (sv[VALE_SETTING_VLAN].sv_number != 0)
		snprintf(cell, CELL_SIZE, "%" PRIu64,
		    sv[VALE_SETTING_VLAN].sv_number);
	else if (trunk[0] != '\0' && strcmp(trunk, "no") != 0 &&
	    snprintf(cell, CELL_SIZE, "trunk:%s", trunk) >= CELL_SIZE)
		strlcpy(cell + CELL_SIZE - 4, "...", 4);
}

static void
link_is(struct row *row, bool up)
{
	strlcpy(row->cell[LINK], up ? "up" : "down", CELL_SIZE);
}

static void
row_begin(struct row *row, const char *name)
{
	unsigned int i;

	for (i = 0; i < NCOLUMNS; i++)
		strlcpy(row->cell[i], "-", CELL_SIZE);
	strlcpy(row->cell[PORT], name, CELL_SIZE);
}

/* Fill in what a device says of itself; the port says the rest. */
static void
row_device(struct row *row, const struct vale_wire_device *wd)
{
	char addr[VC_ADDRESS_SIZE];

	strlcpy(row->cell[KIND], vc_device_kind(wd), CELL_SIZE);
	if (wd->wdv_kind != VALE_DEVICE_ADAPTER)
		return;
	vc_address(wd->wdv_addr, addr);
	strlcpy(row->cell[ADDRESS], addr, CELL_SIZE);
	client(row->cell[CLIENT], wd->wdv_since_s);
	link_is(row, (wd->wdv_flags & VALE_DEVICE_LINK) != 0);
}

static void
row_port(struct row *row, const struct vale_port_info *info)
{
	struct vale_setting_value sv[VALE_NSETTINGS];

	link_is(row, info->vpi_link);
	number(row->cell[TX], info->vpi_counter[VALE_C_TX_FRAME]);
	number(row->cell[RX], info->vpi_counter[VALE_C_RX_FRAME]);
	number(row->cell[DROP], vc_drops(info->vpi_counter));
	/* The port may be gone by now. */
	if (vale_setting_get(info->vpi_name, VALE_OF_PORT, sv) == -1)
		return;
	rate(row->cell[RATE], &sv[VALE_SETTING_RATE]);
	vlan(row->cell[VLAN], sv);
}

static const struct vale_wire_device *
device_of(const struct vc_devices *devices, const char *port)
{
	size_t i;

	for (i = 0; i < devices->vcd_n; i++)
		if (strcmp(devices->vcd_device[i].wdv_port, port) == 0)
			return (&devices->vcd_device[i]);
	return (NULL);
}

/* Fill rows; returns how many. */
static size_t
rows_fill(struct row *rows, const struct vc_ports *ports,
    const struct vc_devices *devices)
{
	const struct vale_wire_device *wd;
	struct row *row = rows;
	size_t i;

	for (i = 0; i < ports->vcp_n; i++, row++) {
		row_begin(row, ports->vcp_info[i].vpi_name);
		wd = device_of(devices, ports->vcp_info[i].vpi_name);
		if (wd != NULL)
			row_device(row, wd);
		else
			strlcpy(row->cell[KIND], "program", CELL_SIZE);
		row_port(row, &ports->vcp_info[i]);
	}
	for (i = 0; i < devices->vcd_n; i++) {
		wd = &devices->vcd_device[i];
		if (vc_ports_find(ports, wd->wdv_port) != NULL)
			continue;
		row_begin(row, wd->wdv_port);
		row_device(row++, wd);
	}
	return (row - rows);
}

static void
row_print(const struct row *row, const int width[NCOLUMNS])
{
	int i;

	for (i = 0; i < NCOLUMNS; i++)
		printf("%*s%c", i < TX ? -width[i] : width[i], row->cell[i],
		    i < NCOLUMNS - 1 ? ' ' : '\n');
}

void
vc_show_table(void)
{
	int width[NCOLUMNS] = { 0 };
	struct vc_state st;
	struct row *rows;
	size_t i, n;
	int c;

	if (vc_state_get(&st) == -1)
		vc_fail();
	rows = calloc(1 + st.vcs_ports.vcp_n + st.vcs_devices.vcd_n,
	    sizeof(*rows));
	if (rows == NULL)
		err(EX_OSERR, NULL);
	rows[0] = titles;
	n = 1 + rows_fill(rows + 1, &st.vcs_ports, &st.vcs_devices);
	for (i = 0; i < n; i++)
		for (c = 0; c < NCOLUMNS; c++)
			width[c] = MAX(width[c], (int)strlen(rows[i].cell[c]));
	for (i = 0; i < n; i++)
		row_print(&rows[i], width);
	free(rows);
	vc_state_free(&st);
}
