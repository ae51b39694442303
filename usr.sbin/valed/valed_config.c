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
 * and of the same form those of switches, ports that are no adapter's, and
 * interfaces of the host:
 *
 *	switch.vale0.setting=value
 *	port.vale0:port.setting=value
 *	attach.vale0:interface=kind
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
#include <sys/stat.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <paths.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "adapter_config.h"
#include "vale_setting.h"
#include "valed_config.h"

#define	PREFIX		"pci."

/* What the names of the other variables start with. */
static const char *const prefixes[] = { [VALED_OF_SWITCH] = "switch.",
    [VALED_OF_PORT] = "port.", [VALED_OF_ATTACH] = "attach." };

/* Nodes of -s, and of files and -o. */
static struct valed_node	 nodes[2 * VALED_MAXADAPTERS];
static unsigned int		 nnodes;
static unsigned int		 nfiles;	/* nodes of -k and -o */
static unsigned int		 file;		/* being read */
static struct valed_line	*lines;
static unsigned int		 nlines;
static struct valed_why		*wrong;		/* of valed_config_begin() */

bool
valed_config_ok(void)
{
	return (wrong->wy_status == 0);
}

bool
valed_wrong(int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	valed_why_setv(wrong, status, fmt, ap);
	va_end(ap);
	return (false);
}

bool
valed_bad(struct valed_where where, const char *fmt, ...)
{
	char text[VALED_WHY_SIZE];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return (valed_wrong(where.wh_option[0] != '\0' ||
	    strncmp(where.wh_text, "-o ", 3) == 0 ? EX_USAGE : EX_CONFIG,
	    "%s%s: %s", where.wh_option, where.wh_text, text));
}

int
valed_variable(const char *name, size_t len)
{
	int i;

	for (i = 0; i < VALED_NVARIABLES; i++) {
		if (strlen(valed_variables[i].var_name) == len &&
		    memcmp(valed_variables[i].var_name, name, len) == 0)
			return (i);
	}
	return (-1);
}

const char *
valed_unknown(const char *name, size_t len)
{
	return (len == strlen("burst") && memcmp(name, "burst", len) == 0 ?
	    ": see rate=limit,burst=size" : "");
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

/* Find or add the node of a place; NULL: it cannot be added. */
static struct valed_node *
node_get(int bus, int slot, int func, struct valed_where where)
{
	struct valed_node *vn = valed_config_find(bus, slot, func);

	if (vn != NULL && vn->nd_option == NULL)
		return (vn);
	if (nfiles == VALED_MAXADAPTERS)
		valed_bad(where, "more than %d adapters", VALED_MAXADAPTERS);
	else if (vn != NULL)
		valed_bad(where, "slot %d:%d:%d is that of an option -s", bus,
		    slot, func);
	else {
		nfiles++;
		return (node_add(bus, slot, func));
	}
	return (NULL);
}

/* Set *p to a copy of `len' bytes. */
static void
string_set(char **p, const char *s, size_t len)
{
	free(*p);
	*p = strndup(s, len);
	if (*p == NULL)
		valed_wrong(EX_OSERR, "%s", strerror(errno));
}

void
valed_config_set(struct valed_node *vn, int variable, const char *value,
    size_t len)
{
	string_set(&vn->nd_variable[variable].nt_value, value, len);
}

/* Return the value of "name=value", and the end of the name. */
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

static bool
unknown(const char *text, const char *end, struct valed_where where)
{
	const char *name = end;

	while (name > text && name[-1] != '.')
		name--;
	return (valed_bad(where, "unknown variable \"%.*s\"%s",
	    (int)MIN(end - text, 128), text,
	    valed_unknown(name, end - name)));
}

/* Parse the name of a switch, a port or an attached interface. */
static bool
line_name(struct valed_line *ln, const char *name, size_t len,
    struct valed_where where)
{
	char port[VALE_NAME_SIZE + 2];
	const char *error;

	/* A switch has the name of a port without a port. */
	snprintf(port, sizeof(port), "%.*s%s", (int)MIN(len, VALE_NAME_SIZE),
	    name, ln->ln_of == VALED_OF_SWITCH ? ":p" : "");
	error = ln->ln_of == VALED_OF_SWITCH && memchr(name, ':', len) != NULL ?
	    "not the name of a switch" : vale_name_error(port);
	if (error != NULL)
		return (valed_bad(where, "%.*s: %s", (int)MIN(len, 128), name,
		    error));
	memcpy(ln->ln_name, name, len);
	ln->ln_name[len] = '\0';
	return (true);
}

/* Parse what is behind the prefix, up to `end'. */
static bool
line_parse(struct valed_line *ln, const char *text, const char *p,
    const char *end, struct valed_where where)
{
	const char *dot = end;

	if (ln->ln_of == VALED_OF_ATTACH)
		return (line_name(ln, p, end - p, where));
	/* Names may have dots, those of settings have none. */
	while (dot > p && dot[-1] != '.')
		dot--;
	ln->ln_setting = vale_setting_named(dot, end - dot);
	if (dot == p || ln->ln_setting == VALE_NSETTINGS ||
	    vale_setting_table[ln->ln_setting].se_scope !=
	    (ln->ln_of == VALED_OF_SWITCH ? VALE_OF_SWITCH : VALE_OF_PORT))
		return (unknown(text, end, where));
	return (line_name(ln, p, dot - 1 - p, where));
}

/* Find or add the line that sets the same, or return NULL. */
static struct valed_line *
line_get(const struct valed_line *like, struct valed_where where)
{
	struct valed_line *all, *ln;
	unsigned int i;

	for (i = 0; i < nlines; i++) {
		ln = &lines[i];
		if (ln->ln_of == like->ln_of &&
		    ln->ln_setting == like->ln_setting &&
		    strcmp(ln->ln_name, like->ln_name) == 0)
			return (ln);
	}
	if (nlines == VALED_LINES_MAX) {
		valed_bad(where, "more than %d variables of switches and ports",
		    VALED_LINES_MAX);
		return (NULL);
	}
	all = reallocarray(lines, nlines + 1, sizeof(*lines));
	if (all == NULL) {
		valed_wrong(EX_OSERR, "%s", strerror(errno));
		return (NULL);
	}
	lines = all;
	lines[nlines] = *like;
	return (&lines[nlines++]);
}

/* Set a variable that is no adapter's, with this prefix. */
static void
set_other(enum valed_of of, const char *text, const char *end,
    const char *value, struct valed_where where)
{
	struct valed_line like = { .ln_of = of }, *ln;

	if (!line_parse(&like, text, text + strlen(prefixes[of]), end, where))
		return;
	if (*value == '\0') {
		valed_bad(where, "%.*s=: the value is missing",
		    (int)MIN(end - text, 128), text);
		return;
	}
	ln = line_get(&like, where);
	if (ln == NULL)
		return;
	if (ln->ln_file == file)
		valed_bad(where, "%.*s= twice: see %s",
		    (int)MIN(end - text, 128), text, ln->ln_where);
	string_set(&ln->ln_value, value, strlen(value));
	string_set(&ln->ln_where, where.wh_text, strlen(where.wh_text));
	ln->ln_file = file;
}

/* Parse "pci.bus.slot.function.name".  Returns the variable, or -1. */
static int
node_parse(const char *text, const char *end, int place[3])
{
	const char *p = text + strlen(PREFIX);

	return (strncmp(text, PREFIX, strlen(PREFIX)) != 0 ||
	    !node_number(&p, VALED_MAXBUS, &place[0]) ||
	    !node_number(&p, VALED_MAXSLOT, &place[1]) ||
	    !node_number(&p, VALED_MAXFUNC, &place[2]) ? -1 :
	    valed_variable(p, end - p));
}

/* Set a variable of an adapter. */
static void
set_node(const char *text, const char *end, const char *value,
    struct valed_where where)
{
	struct valed_node *vn = NULL;
	int i, place[3];

	i = node_parse(text, end, place);
	if (i == -1)
		unknown(text, end, where);
	else if (*value == '\0')
		valed_bad(where, "%s=: the value is missing",
		    valed_variables[i].var_name);
	else
		vn = node_get(place[0], place[1], place[2], where);
	if (vn == NULL)
		return;
	/* 0 is the file of what is not set. */
	if (vn->nd_variable[i].nt_file == file)
		valed_bad(where, "%s= twice: see %s",
		    valed_variables[i].var_name, vn->nd_variable[i].nt_where);
	if (vn->nd_first == NULL)
		string_set(&vn->nd_first, where.wh_text,
		    strlen(where.wh_text));
	string_set(&vn->nd_variable[i].nt_where, where.wh_text,
	    strlen(where.wh_text));
	vn->nd_variable[i].nt_file = file;
	valed_config_set(vn, i, value, strlen(value));
}

/* Set a variable from "name=value". */
static void
set(const char *text, struct valed_where where)
{
	const char *end, *value;
	unsigned int of;

	value = split(text, &end);
	if (value == NULL) {
		valed_bad(where, "not name=value");
		return;
	}
	for (of = 0; of < nitems(prefixes); of++)
		if (strncmp(text, prefixes[of], strlen(prefixes[of])) == 0) {
			set_other(of, text, end, value, where);
			return;
		}
	set_node(text, end, value, where);
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
	if (memchr(line, '\0', len) != NULL) {
		valed_bad(where, "not text");
		return;
	}
	while (len > 0 && isspace((unsigned char)line[len - 1]))
		line[--len] = '\0';
	while (isspace((unsigned char)*line))
		line++;
	if (*line != '#' && *line != '\0')
		set(line, where);
}

/*
 * Open a file that ends, without waiting for others as of a FIFO.  Returns NULL
 * if there is none.
 */
static FILE *
file_open(const char *path)
{
	const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat null, st;
	FILE *f = NULL;

	if (fd != -1 && fstat(fd, &st) == 0) {
		if (!S_ISREG(st.st_mode) && (!S_ISCHR(st.st_mode) ||
		    stat(_PATH_DEVNULL, &null) == -1 ||
		    null.st_rdev != st.st_rdev))
			valed_wrong(EX_NOINPUT, "-k %s: not a regular file",
			    path);
		else if (st.st_size > VALED_FILE_MAX)
			valed_wrong(EX_CONFIG, "-k %s: larger than %d bytes",
			    path, VALED_FILE_MAX);
		else
			f = fdopen(fd, "r");
	}
	if (f == NULL)
		valed_wrong(EX_NOINPUT, "-k %s: %s", path, strerror(errno));
	if (f == NULL && fd != -1)
		close(fd);
	return (f);
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
	f = file_open(path);
	if (f == NULL)
		return;
	while (valed_config_ok() && (len = getline(&line, &size, f)) != -1) {
		snprintf(where, sizeof(where), "%s:%u", path, ++number);
		set_line(line, len, (struct valed_where){ "", where });
	}
	if (!feof(f))
		valed_wrong(EX_NOINPUT, "-k %s: %s", path, strerror(errno));
	free(line);
	fclose(f);
}

unsigned int
valed_config_lines(const struct valed_line **all)
{
	*all = lines;
	return (nlines);
}

struct valed_where
valed_line_where(const struct valed_line *line)
{
	return ((struct valed_where){ "", line->ln_where });
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
valed_config_begin(struct valed_why *why)
{
	struct valed_node *vn;
	int i;

	wrong = why;
	for (vn = nodes; vn < nodes + nnodes; vn++) {
		free(vn->nd_first);
		for (i = 0; i < VALED_NVARIABLES; i++) {
			free(vn->nd_variable[i].nt_value);
			free(vn->nd_variable[i].nt_where);
		}
	}
	memset(nodes, 0, sizeof(nodes));
	nnodes = nfiles = 0;
	while (nlines > 0) {
		free(lines[--nlines].ln_value);
		free(lines[nlines].ln_where);
	}
	free(lines);
	lines = NULL;
}
