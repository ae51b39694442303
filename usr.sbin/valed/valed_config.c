/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Configuration files and -o: variables of bhyve_config(5),
 *
 *	pci.bus.slot.function.name=value
 *
 * one a line; blanks may surround the =.  Empty lines and lines that start with
 * # are ignored.  A later -k or -o replaces the value of an earlier one; within
 * a file a variable may be set once.
 *
 * This file checks names, and remembers where each variable was set, for
 * messages.  valed_options.c checks the values.  The tree of the variables is
 * bhyve's (config.h).
 */

#include <sys/param.h>

#include <ctype.h>
#include <err.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "config.h"
#include "valed.h"

#define	PREFIX		"pci."

/* Where a variable was set. */
struct origin {
	unsigned int	 file;		/* counts -k and -o */
	char		*where;		/* "vale0.conf:7", "-o name=value" */
};

struct config_node {
	struct valed_config_node	public;
	struct origin			first;	/* variable of the node */
	struct origin			origin[VALED_NVARIABLES];
};

const char *const valed_variables[VALED_NVARIABLES] = {
	"path", "fd", "mac", "mtu", "itr", "itr_min", "csb", "direct", "mem",
	"rate", "burst", "limit", "private", "weight", "backend", "device"
};

static struct config_node	 nodes[VALED_MAXADAPTERS];
static unsigned int		 nnodes;
static unsigned int		 file;		/* being read */

static void __dead2 __printflike(3, 4)
bad(int code, const char *where, const char *fmt, ...)
{
	char why[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	errx(code, "%s: %s", where, why);
}

int
valed_variable(const char *name, size_t len)
{
	int i;

	for (i = 0; i < VALED_NVARIABLES; i++) {
		if (strlen(valed_variables[i]) == len &&
		    memcmp(valed_variables[i], name, len) == 0)
			return (i);
	}
	return (-1);
}

/* Parse "n." with n from 0 to max, and advance *p. */
static bool
node_number(const char **p, int max, int *n)
{
	const char *start = *p;

	*n = 0;
	while (isdigit((unsigned char)**p) && *n <= max)
		*n = *n * 10 + (*(*p)++ - '0');
	return (*p != start && (*start != '0' || *p == start + 1) &&
	    *n <= max && *(*p)++ == '.');
}

/* The node of a place, or NULL. */
static struct config_node *
node_find(int bus, int slot, int func)
{
	struct config_node *cn;

	for (cn = nodes; cn < nodes + nnodes; cn++) {
		if (cn->public.bus == bus && cn->public.slot == slot &&
		    cn->public.func == func)
			return (cn);
	}
	return (NULL);
}

/* Add a node. */
static struct config_node *
node_add(int bus, int slot, int func, const char *where, int code)
{
	struct config_node *cn;
	char name[32];

	if (nnodes == nitems(nodes))
		bad(code, where, "more than %d adapters", VALED_MAXADAPTERS);
	snprintf(name, sizeof(name), PREFIX "%d.%d.%d", bus, slot, func);
	if (find_config_node(name) != NULL)
		bad(code, where, "slot %d:%d:%d is that of an option -s", bus,
		    slot, func);
	cn = &nodes[nnodes++];
	cn->public.bus = bus;
	cn->public.slot = slot;
	cn->public.func = func;
	cn->public.nvl = create_config_node(name);
	return (cn);
}

static void
origin_set(struct origin *o, const char *where)
{
	free(o->where);
	o->where = strdup(where);
	if (o->where == NULL)
		err(EX_OSERR, NULL);
	o->file = file;
}

/* The value of "name=value", and the end of the name before it. */
static const char *
split(const char *text, const char **end)
{
	const char *equals = strchr(text, '=');

	if (equals == NULL)
		return (NULL);
	for (*end = equals; *end > text && isblank((unsigned char)(*end)[-1]);)
		(*end)--;
	for (equals++; isblank((unsigned char)*equals);)
		equals++;
	return (equals);
}

/* Set a variable from "name=value". */
static void
set(const char *text, const char *where, int code)
{
	struct config_node *cn;
	const char *end, *p, *value;
	int bus, func, i, slot;

	value = split(text, &end);
	if (value == NULL)
		bad(code, where, "not name=value");
	p = text + strlen(PREFIX);
	if (strncmp(text, PREFIX, strlen(PREFIX)) != 0 ||
	    !node_number(&p, VALED_MAXBUS, &bus) ||
	    !node_number(&p, VALED_MAXSLOT, &slot) ||
	    !node_number(&p, VALED_MAXFUNC, &func) ||
	    (i = valed_variable(p, end - p)) == -1)
		bad(code, where, "unknown variable \"%.*s\"",
		    (int)MIN(end - text, 128), text);
	if (*value == '\0')
		bad(code, where, "%s=: the value is missing",
		    valed_variables[i]);
	cn = node_find(bus, slot, func);
	if (cn == NULL)
		cn = node_add(bus, slot, func, where, code);
	/* 0 is the file of what is not set. */
	if (cn->origin[i].file == file)
		bad(code, where, "%s= twice: see %s", valed_variables[i],
		    cn->origin[i].where);
	if (cn->first.where == NULL)
		origin_set(&cn->first, where);
	origin_set(&cn->origin[i], where);
	set_config_value_node(cn->public.nvl, valed_variables[i], value);
}

void
valed_config_option(const char *text)
{
	char where[160];

	file++;
	snprintf(where, sizeof(where), "-o %s", text);
	set(text, where, EX_USAGE);
}

/* Set what a line says.  It has `len' bytes and ends with a newline, or not. */
static void
set_line(char *line, size_t len, const char *where)
{
	if (memchr(line, '\0', len) != NULL)
		bad(EX_CONFIG, where, "not text");
	while (len > 0 && isspace((unsigned char)line[len - 1]))
		line[--len] = '\0';
	while (isspace((unsigned char)*line))
		line++;
	if (*line != '#' && *line != '\0')
		set(line, where, EX_CONFIG);
}

void
valed_config_file(const char *path)
{
	char *line = NULL, where[PATH_MAX + 16];
	unsigned int number = 0;
	size_t size = 0;
	ssize_t len;
	FILE *f;

	file++;
	f = fopen(path, "re");
	if (f == NULL)
		err(EX_NOINPUT, "-k %s", path);
	while ((len = getline(&line, &size, f)) != -1) {
		snprintf(where, sizeof(where), "%s:%u", path, ++number);
		set_line(line, len, where);
	}
	if (!feof(f))
		err(EX_NOINPUT, "-k %s", path);
	free(line);
	fclose(f);
}

const struct valed_config_node *
valed_config_next(const struct valed_config_node *last)
{
	const struct config_node *cn = (const struct config_node *)last;

	cn = cn == NULL ? nodes : cn + 1;
	return (cn == nodes + nnodes ? NULL : &cn->public);
}

const char *
valed_config_where(const struct nvlist *nvl, const char *name)
{
	const struct config_node *cn;
	int i;

	i = valed_variable(name, strlen(name));
	for (cn = nodes; cn < nodes + nnodes; cn++) {
		if (cn->public.nvl != nvl)
			continue;
		return (i != -1 && cn->origin[i].where != NULL ?
		    cn->origin[i].where : cn->first.where);
	}
	return (NULL);
}

void
valed_config_clear(void)
{
	struct config_node *cn;
	int i;

	for (cn = nodes; cn < nodes + nnodes; cn++) {
		free(cn->first.where);
		for (i = 0; i < VALED_NVARIABLES; i++)
			free(cn->origin[i].where);
	}
	memset(nodes, 0, sizeof(nodes));
	nnodes = 0;
	init_config();
}
