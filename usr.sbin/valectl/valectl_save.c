/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * --save: settings that are in force and that a configuration file of valed(8)
 * does not have are written there.  valed itself can open no file.
 *
 * A setting that differs from its line replaces the value there; one without a
 * line is added if it is not the default: behind the backend of its adapter, or
 * at the end.  All other lines stay as they are.  The new file takes the place
 * of the old one when it is complete.
 */

#include <sys/stat.h>

#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include <net/if.h>

#include "valectl.h"
#include "vale_setting.h"

struct line {
	char	*l_text;	/* with the newline */
	char	*l_name;	/* of a variable, or NULL */
	char	*l_value;
};

static struct line	*lines;
static size_t		 nlines;
static bool		 changed;

static char *
copy(const char *s, size_t len)
{
	char *p = strndup(s, len);

	if (p == NULL)
		err(EX_OSERR, NULL);
	return (p);
}

/* Set what a line is.  Blanks may be around the name, the = and the value. */
static void
line_set(struct line *l, const char *text)
{
	const char *begin = text, *end = text + strlen(text), *equals;
	const char *name_end;

	*l = (struct line){ .l_text = copy(text, strlen(text)) };
	while (isspace((unsigned char)*begin))
		begin++;
	while (end > begin && isspace((unsigned char)end[-1]))
		end--;
	equals = memchr(begin, '=', end - begin);
	if (*begin == '#' || equals == NULL)
		return;
	for (name_end = equals; name_end > begin &&
	    isblank((unsigned char)name_end[-1]);)
		name_end--;
	for (equals++; equals < end && isblank((unsigned char)*equals);)
		equals++;
	l->l_name = copy(begin, name_end - begin);
	l->l_value = copy(equals, end - equals);
}

/* Insert a line at `at'. */
static void
line_insert(size_t at, const char *text)
{
	lines = reallocarray(lines, nlines + 1, sizeof(*lines));
	if (lines == NULL)
		err(EX_OSERR, NULL);
	memmove(&lines[at + 1], &lines[at], (nlines++ - at) * sizeof(*lines));
	line_set(&lines[at], text);
}

static struct line *
line_find(const char *name)
{
	size_t i;

	for (i = 0; i < nlines; i++)
		if (lines[i].l_name != NULL &&
		    strcmp(lines[i].l_name, name) == 0)
			return (&lines[i]);
	return (NULL);
}

static void
file_read(const char *path)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f;

	f = fopen(path, "re");
	if (f == NULL)
		err(EX_NOINPUT, "%s", path);
	while (getline(&text, &size, f) != -1) {
		line_insert(nlines, text);
		/* The last one may have no newline; another may follow. */
		if (strchr(text, '\n') == NULL) {
			lines[nlines - 1].l_text = realloc(
			    lines[nlines - 1].l_text, strlen(text) + 2);
			if (lines[nlines - 1].l_text == NULL)
				err(EX_OSERR, NULL);
			strcat(lines[nlines - 1].l_text, "\n");
		}
	}
	if (ferror(f))
		err(EX_NOINPUT, "%s", path);
	free(text);
	fclose(f);
}

/* Write all to a new file, which then takes the old one's name. */
static void
file_write(const char *path)
{
	char name[PATH_MAX + 16], real[PATH_MAX];
	struct stat st;
	size_t i;
	FILE *f;
	int fd;

	/* The file itself, not a symbolic link to it. */
	if (realpath(path, real) == NULL || stat(real, &st) == -1)
		err(EX_NOINPUT, "%s", path);
	snprintf(name, sizeof(name), "%s.XXXXXX", real);
	fd = mkostemp(name, O_CLOEXEC);
	if (fd == -1)
		err(EX_CANTCREAT, "%s", name);
	/* Whoever is not its owner may not give it to him. */
	if (fchown(fd, st.st_uid, st.st_gid) == -1 && errno != EPERM)
		goto fail;
	if (fchmod(fd, st.st_mode & 07777) == -1 ||
	    (f = fdopen(fd, "w")) == NULL)
		goto fail;
	for (i = 0; i < nlines; i++)
		fputs(lines[i].l_text, f);
	if (fflush(f) != 0 || fsync(fd) == -1 || fclose(f) != 0 ||
	    rename(name, real) == -1)
		goto fail;
	return;

fail:
	fd = errno;
	unlink(name);
	errno = fd;
	err(EX_IOERR, "%s", path);
}

/*
 * Return whether "pci.1.2.3.backend" is a name, and the length of "pci.1.2.3".
 */
static bool
is_backend(const char *name, size_t *len)
{
	static const char last[] = ".backend";

	*len = strlen(name);
	if (strncmp(name, "pci.", 4) != 0 || *len <= strlen(last))
		return (false);
	*len -= strlen(last);
	return (strcmp(name + *len, last) == 0);
}

/*
 * Find what variables of a port or switch start with: "pci.0.1.0",
 * "port.vale0:x" or "switch.vale0"; and the line of the file behind which new
 * variables come.
 */
static void
prefix_find(const char *name, char *prefix, size_t size, size_t *at)
{
	size_t i, len;

	*at = nlines;
	snprintf(prefix, size, "%s.%s", strchr(name, ':') != NULL ? "port" :
	    "switch", name);
	for (i = 0; i < nlines; i++) {
		if (lines[i].l_name == NULL ||
		    !is_backend(lines[i].l_name, &len) ||
		    strcmp(lines[i].l_value, name) != 0)
			continue;
		snprintf(prefix, size, "%.*s", (int)len, lines[i].l_name);
		*at = i + 1;
	}
}

/* Set a variable of the file. */
static void
variable_set(const char *prefix, const char *setting, const char *text,
    size_t at)
{
	char name[256], line[VALE_SETTING_SIZE + 256];
	struct line *l;

	snprintf(name, sizeof(name), "%s.%s", prefix, setting);
	snprintf(line, sizeof(line), "%s=%s\n", name, text);
	l = line_find(name);
	if (l != NULL) {
		if (strcmp(l->l_value, text) == 0)
			return;
		free(l->l_text);
		free(l->l_name);
		free(l->l_value);
		line_set(l, line);
	} else
		line_insert(at, line);
	fputs(line, stdout);
	changed = true;
}

/* Return a variable's value in the file, or NULL. */
static const char *
variable_get(const char *prefix, const char *setting)
{
	const struct line *l;
	char name[256];

	snprintf(name, sizeof(name), "%s.%s", prefix, setting);
	l = line_find(name);
	return (l != NULL ? l->l_value : NULL);
}

/* Get the value that valed has by the file; false if the file has none. */
static bool
file_value(const char *prefix, unsigned int i, struct vale_setting_value *sv)
{
	const struct vale_setting *se = &vale_setting_table[i];
	const char *text = variable_get(prefix, se->se_name);

	vale_setting_default(i, sv);
	if (text == NULL)
		return (true);
	if (vale_setting_parse(i, text, sv) == -1)
		return (false);
	if (se->se_kind == VALE_KIND_RATE)
		vale_setting_burst(sv);
	return (true);
}

/* Save one setting. */
static void
setting_save(const char *name, unsigned int i,
    const struct vale_setting_value *sv)
{
	const struct vale_setting *se = &vale_setting_table[i];
	struct vale_setting_value saved;
	char prefix[128], port[128], text[VALE_SETTING_SIZE];
	size_t at;

	prefix_find(name, prefix, sizeof(prefix), &at);
	/* An adapter's port may have a line of its own. */
	snprintf(port, sizeof(port), "port.%s", name);
	if (variable_get(port, se->se_name) != NULL)
		strlcpy(prefix, port, sizeof(prefix));
	if (file_value(prefix, i, &saved) && vale_setting_same(sv, &saved))
		return;
	vale_setting_print(i, sv, text, sizeof(text));
	variable_set(prefix, se->se_name, text, at);
}

static void
settings_save(const char *name)
{
	const enum vale_setting_scope scope = strchr(name, ':') != NULL ?
	    VALE_OF_PORT : VALE_OF_SWITCH;
	struct vale_setting_value sv[VALE_NSETTINGS];
	unsigned int i;

	/* The port or switch may have gone meanwhile. */
	if (vale_setting_get(name, scope, sv) == -1) {
		warnx("%s: %s", name, vale_error()[0] != '\0' ? vale_error() :
		    strerror(errno));
		return;
	}
	for (i = 0; i < VALE_NSETTINGS; i++)
		if (vale_setting_table[i].se_scope == scope)
			setting_save(name, i, &sv[i]);
}

/* Say that a port may be an attached interface, of which the file has none. */
static void
tell_attached(const char *name)
{
	char attach[128], prefix[128];
	size_t at;

	prefix_find(name, prefix, sizeof(prefix), &at);
	snprintf(attach, sizeof(attach), "attach.%s", name);
	if (strncmp(prefix, "pci.", 4) != 0 && line_find(attach) == NULL &&
	    if_nametoindex(strchr(name, ':') + 1) != 0)
		warnx("%s: an attached interface is not saved: see \"%s=\" in "
		    "valed(8)", name, attach);
}

void
vc_save(const char *path)
{
	char last[VALE_NAME_SIZE] = "", name[VALE_NAME_SIZE];
	struct vc_ports ports;
	size_t i;

	file_read(path);
	vc_ports_read(NULL, &ports);
	for (i = 0; i < ports.vcp_n; i++) {
		strlcpy(name, ports.vcp_info[i].vpi_name, sizeof(name));
		name[strcspn(name, ":")] = '\0';
		if (strcmp(name, last) != 0)
			settings_save(name);
		strlcpy(last, name, sizeof(last));
		settings_save(ports.vcp_info[i].vpi_name);
		tell_attached(ports.vcp_info[i].vpi_name);
	}
	free(ports.vcp_info);
	if (changed)
		file_write(path);
}
