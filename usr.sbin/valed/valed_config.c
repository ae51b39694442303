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
 * messages.  valed_values.c checks the values.  The options of -s are variables
 * here, too (valed_options.c), of nodes that -k and -o cannot change.
 */

#include <sys/param.h>

#include <ctype.h>
#include <err.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "adapter_config.h"
#include "valed_config.h"

#define	PREFIX		"pci."

/* Nodes of -s, and of files and -o. */
static struct valed_node	 nodes[2 * VALED_MAXADAPTERS];
static unsigned int		 nnodes;
static unsigned int		 nfiles;	/* nodes of -k and -o */
static unsigned int		 file;		/* being read */

void
valed_bad(struct valed_where where, const char *fmt, ...)
{
	char why[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	errx(where.wh_option[0] != '\0' ||
	    strncmp(where.wh_text, "-o ", 3) == 0 ? EX_USAGE : EX_CONFIG,
	    "%s%s: %s", where.wh_option, where.wh_text, why);
}

int
valed_variable(const char *name, size_t len)
{
	int i;

	/* mutants: AddressSanitizer sees it */
	for (i = 0; i < VALED_NVARIABLES; i++) {
		if (strlen(valed_variables[i].var_name) == len &&
		    memcmp(valed_variables[i].var_name, name, len) == 0)
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
	/* mutants: behind the greatest number a digit is no dot */
	while (isdigit((unsigned char)**p) && *n <= max)
		*n = *n * 10 + (*(*p)++ - '0');
	return (*p != start && (*start != '0' || *p == start + 1) &&
	    *n <= max && *(*p)++ == '.');
}

struct valed_node *
valed_config_find(int bus, int slot, int func)
{
	struct valed_node *vn;

	for (vn = nodes; vn < nodes + nnodes; vn++) {
		if (vn->nd_bus == bus && vn->nd_slot == slot &&
		    vn->nd_func == func)
			return (vn);
	}
	return (NULL);
}

/* Add a node. */
static struct valed_node *
node_add(int bus, int slot, int func)
{
	struct valed_node *vn = &nodes[nnodes++];

	vn->nd_bus = bus;
	vn->nd_slot = slot;
	vn->nd_func = func;
	return (vn);
}

struct valed_node *
valed_config_slot(int bus, int slot, int func, const char *option)
{
	struct valed_node *vn = node_add(bus, slot, func);

	vn->nd_option = option;
	return (vn);
}

/* The node of a place, which is added if there is none. */
static struct valed_node *
node_get(int bus, int slot, int func, struct valed_where where)
{
	struct valed_node *vn = valed_config_find(bus, slot, func);

	if (vn != NULL && vn->nd_option == NULL)
		return (vn);
	if (nfiles == VALED_MAXADAPTERS)
		valed_bad(where, "more than %d adapters", VALED_MAXADAPTERS);
	if (vn != NULL)
		valed_bad(where, "slot %d:%d:%d is that of an option -s", bus,
		    slot, func);
	nfiles++;
	return (node_add(bus, slot, func));
}

/* Set *p to a copy of `len' bytes. */
static void
string_set(char **p, const char *s, size_t len)
{
	free(*p);
	*p = strndup(s, len);
	if (*p == NULL)
		err(EX_OSERR, NULL);
}

void
valed_config_set(struct valed_node *vn, int variable, const char *value,
    size_t len)
{
	string_set(&vn->nd_variable[variable].nt_value, value, len);
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
set(const char *text, struct valed_where where)
{
	struct valed_node *vn;
	const char *end, *p, *value;
	int bus, func, i, slot;

	value = split(text, &end);
	if (value == NULL)
		valed_bad(where, "not name=value");
	p = text + strlen(PREFIX);
	if (strncmp(text, PREFIX, strlen(PREFIX)) != 0 ||
	    !node_number(&p, VALED_MAXBUS, &bus) ||
	    !node_number(&p, VALED_MAXSLOT, &slot) ||
	    !node_number(&p, VALED_MAXFUNC, &func) ||
	    (i = valed_variable(p, end - p)) == -1)
		valed_bad(where, "unknown variable \"%.*s\"",
		    (int)MIN(end - text, 128), text);
	if (*value == '\0')
		valed_bad(where, "%s=: the value is missing",
		    valed_variables[i].var_name);
	vn = node_get(bus, slot, func, where);
	/* 0 is the file of what is not set. */
	if (vn->nd_variable[i].nt_file == file)
		valed_bad(where, "%s= twice: see %s", valed_variables[i].var_name,
		    vn->nd_variable[i].nt_where);
	if (vn->nd_first == NULL)
		string_set(&vn->nd_first, where.wh_text,
		    strlen(where.wh_text));
	string_set(&vn->nd_variable[i].nt_where, where.wh_text,
	    strlen(where.wh_text));
	vn->nd_variable[i].nt_file = file;
	valed_config_set(vn, i, value, strlen(value));
}

void
valed_config_option(const char *text)
{
	char where[160];

	file++;
	snprintf(where, sizeof(where), "-o %s", text);
	set(text, (struct valed_where){ "", where });
}

/* Set what a line says.  It has `len' bytes and ends with a newline, or not. */
static void
set_line(char *line, size_t len, struct valed_where where)
{
	if (memchr(line, '\0', len) != NULL)
		valed_bad(where, "not text");
	/* mutants 2: the byte before is the allocator's, and no blank */
	/* mutants: blanks at the beginning are skipped, too */
	while (len > 0 && isspace((unsigned char)line[len - 1]))
		line[--len] = '\0';
	while (isspace((unsigned char)*line))
		line++;
	if (*line != '#' && *line != '\0')
		set(line, where);
}

void
valed_config_file(const char *path)
{
	char *line = NULL, where[PATH_MAX + 16];
	unsigned int number = 0;
	/* mutants: getline(3) allocates a line if there is none */
	size_t size = 0;
	ssize_t len;
	FILE *f;

	file++;
	f = fopen(path, "re");
	if (f == NULL)
		err(EX_NOINPUT, "-k %s", path);
	while ((len = getline(&line, &size, f)) != -1) {
		snprintf(where, sizeof(where), "%s:%u", path, ++number);
		set_line(line, len, (struct valed_where){ "", where });
	}
	if (!feof(f))
		err(EX_NOINPUT, "-k %s", path);
	free(line); /* mutants: LeakSanitizer sees it, in these tests */
	fclose(f);
}

const struct valed_node *
valed_config_next(const struct valed_node *last)
{
	const struct valed_node *vn;

	for (vn = last == NULL ? nodes : last + 1; vn < nodes + nnodes; vn++)
		if (vn->nd_option == NULL)
			return (vn);
	return (NULL);
}

struct valed_where
valed_config_where(const struct valed_node *vn, int variable)
{
	const char *where = vn->nd_variable[variable].nt_where;

	if (vn->nd_option != NULL)
		return ((struct valed_where){ "-s ", vn->nd_option });
	return ((struct valed_where){ "", where != NULL ? where :
	    vn->nd_first });
}

void
valed_config_clear(void)
{
	struct valed_node *vn;
	int i;

	/* mutants: the node is zero, or AddressSanitizer sees it */
	for (vn = nodes; vn < nodes + nnodes; vn++) {
		free(vn->nd_first);
		for (i = 0; i < VALED_NVARIABLES; i++) {
			free(vn->nd_variable[i].nt_value);
			free(vn->nd_variable[i].nt_where);
		}
	}
	memset(nodes, 0, sizeof(nodes));
	nnodes = nfiles = 0;
}
